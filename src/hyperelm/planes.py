"""Numbers as real planes: in all blocks of the algebra, or in any other basis of linear functions of their components.

In the basis of `decomposition` a product falls apart into the blocks of the algebra,

    Eᵀ(AB) = B(A) EᵀB           for every copy of every block.

The planes of an array of numbers are arrays of the real and imaginary parts of all entries of B, or of all coordinates
Eᵀφ; those of one block, side by side, are the matrices that are multiplied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import beside, namespace, sums_of_products
from hyperelm._memory import scratch
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.bilinear import Scheme
from hyperelm.decomposition import Block, decompose


@dataclass(frozen=True)
class BlockBasis:
    """The linear maps between the components of a number and what it is in all the blocks, as real matrices.

    entries : (d, p), from components to the entries of all B(x), by block, row, column, real and imaginary part
    coordinates : (d, d), orthogonal, from components to all Eᵀφ(x), by block, row, copy, real and imaginary part
    """

    blocks: tuple[Block, ...]
    entries: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    entry_slices: tuple[slice, ...]
    coordinate_slices: tuple[slice, ...]


@lru_cache(maxsize=256)
def block_basis(algebra: Algebra) -> BlockBasis:
    blocks = decompose(algebra)
    entries, coordinates = [block.entries for block in blocks], [block.coordinates for block in blocks]
    maps = np.concatenate(entries, axis=1), np.concatenate(coordinates, axis=1)
    return BlockBasis(blocks, *maps, entry_slices=_slices(entries), coordinate_slices=_slices(coordinates))


def _slices(arrays: list[NDArray[np.float64]]) -> tuple[slice, ...]:
    ends = np.cumsum([array.shape[1] for array in arrays]).tolist()
    return tuple(slice(start, end) for start, end in zip([0, *ends], ends))


def planes(x: FloatArray, basis: NDArray[np.float64], out: FloatArray | None = None) -> FloatArray:
    """The linear functionals in the columns of `basis` of every number, (..., d) -> (p, ...), in one pass.

    x may have its components on the last axis in memory, too, or planar: on the first. The result is in `out`, if that
    is given, or else a view of x where the planes are the components and lie as a matrix product wants them.
    """
    dim, p = basis.shape
    xp = namespace(x=x)
    if xp is not np:
        image = xp.reshape(xp.moveaxis(x, -1, 0), (dim, math.prod(x.shape[:-1])))
        image = image if is_identity(basis) else beside(basis.T, x) @ image
        return xp.reshape(image, (p, *x.shape[:-1]))
    if out is None and is_identity(basis) and x.strides[-2] == x.itemsize:
        return np.moveaxis(x, -1, 0)
    used = np.flatnonzero(basis.any(axis=1))
    kept = slice(used[0], used[-1] + 1) if len(used) else slice(0, 1)  # without a real part that is known to be zero
    components = (x.reshape(-1, dim).T if x.flags.c_contiguous else np.moveaxis(x, -1, 0))[kept]
    flat = None if out is None else out.reshape(p, -1)
    image = np.matmul(basis[kept].T.astype(x.dtype), components.reshape(len(components), -1), out=flat)
    return image.reshape(p, *x.shape[:-1]) if out is None else out


def is_identity(basis: FloatArray) -> bool:
    return basis.shape[0] == basis.shape[1] and np.array_equal(basis, np.eye(len(basis)))


def from_planes(image: FloatArray, basis: NDArray[np.float64]) -> FloatArray:
    """The numbers Σ_p image_p basis[:, p], (p, ...) -> (..., d): the inverse of `planes` for an orthogonal basis."""
    (dim, p), (_, *shape), xp = basis.shape, image.shape, namespace(image=image)
    numbers: FloatArray = xp.reshape(xp.reshape(image, (p, math.prod(shape))).T @ beside(basis.T, image), (*shape, dim))
    return numbers


def scheme_product(a: Any, b: Any, scheme: Scheme) -> Any:
    """The planes of a product, (s, ..., M, N), from those of its factors, (p, ..., M, L) and (q, ..., L, N)."""
    groups = scheme.by_out()
    sums = [[(a[p, ...], b[q, ...], c) for p, q, c in groups.get(s, [])] for s in range(scheme.out.shape[1])]
    batch = np.broadcast_shapes(a.shape[1:-2], b.shape[1:-2])
    return sums_of_products(sums, (*batch, a.shape[-2], b.shape[-1]), a)


def block_matrix(entries: FloatArray, block: Block) -> NDArray[Any]:
    """B(A) from its planes of entries, (n n [2], ..., M, L) -> (..., n M, n L), the block's own rows outermost."""
    return _assemble(entries, block, block.size)


def gather(coordinates: FloatArray, block: Block) -> NDArray[Any]:
    """EᵀB of all copies from its planes, (n copies [2], ..., L, N) -> (..., n L, copies N)."""
    return _assemble(coordinates, block, block.copies)


def _assemble(image: FloatArray, block: Block, columns: int) -> NDArray[Any]:
    """Planes (n columns [2], ..., M, L) side by side in one matrix (..., n M, columns L), real or complex."""
    *batch, M, L = image.shape[1:]
    xp = namespace(image=image)
    if image.shape[0] == 1:
        return image[0, ...]
    if xp is not np:
        parts = xp.reshape(image, (block.size, columns, block.parts, *batch, M, L))
        matrix = xp.moveaxis(_joined([parts[:, :, part, ...] for part in range(block.parts)], xp), (0, 1), (-4, -2))
        return xp.reshape(matrix, (*batch, block.size * M, columns * L))
    dtype = np.result_type(image.dtype, np.complex64) if block.is_complex else image.dtype
    matrix = scratch((*batch, block.size, M, columns, L), dtype)
    parts = image.reshape(block.size, columns, block.parts, *batch, M, L)
    for target, part in zip(real_parts(matrix), np.moveaxis(parts, 2, 0)):
        target[...] = np.moveaxis(part, (0, 1), (-4, -2))
    return matrix.reshape(*batch, block.size * M, columns * L)


def put_entries(matrix: NDArray[Any], image: FloatArray, block: Block) -> None:
    """The inverse of `block_matrix`: write a matrix (..., n M, n L) to its planes `image`."""
    _disassemble(matrix, image, block, block.size)


def put_coordinates(matrix: NDArray[Any], image: FloatArray, block: Block) -> None:
    """The inverse of `gather`: write a matrix (..., n L, copies N) to its planes `image`."""
    _disassemble(matrix, image, block, block.copies)


def _disassemble(matrix: NDArray[Any], image: FloatArray, block: Block, columns: int) -> None:
    *batch, M, L = image.shape[1:]
    source = matrix.reshape(*batch, block.size, M, columns, L)
    parts = image.reshape(block.size, columns, block.parts, *batch, M, L)
    for target, part in zip(np.moveaxis(parts, 2, 0), real_parts(source)):
        target[...] = np.moveaxis(part, (-4, -2), (0, 1))


def _joined(parts: list[Any], xp: Any) -> Any:
    """Real and imaginary part as one array; a real part alone as it is."""
    if len(parts) == 1:
        return parts[0]
    dtype = xp.complex64 if parts[0].dtype == xp.float32 else xp.complex128
    return xp.astype(parts[0], dtype) + 1j * xp.astype(parts[1], dtype)


def real_parts(array: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return (array.real, array.imag) if np.iscomplexobj(array) else (array,)
