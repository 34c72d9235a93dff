"""Hypercomplex matrices as real ones: φ, Φ_L, Φ_R and the product (section 3 of the paper).

A matrix of M x N numbers is an array (M, N, d). φ stacks the components of every number, and with the matrix of
left or right multiplication in place of every number

    φ(AB) = Φ_L(A) φ(B),        φ((AB)ᵀ) = Φ_R(B) φ(Aᵀ).

In the basis of `decomposition` the first formula falls apart into the blocks of the algebra,

    Eᵀ(AB) = B(A) EᵀB           for every copy of every block,

which is fewer multiplications wherever the algebra splits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._arrays import as_precision, beside, namespace, numpy_dtype, sums_of_products
from hyperelm._memory import scratch
from hyperelm._validation import FloatArray, as_hypercomplex, as_real, check_choice
from hyperelm.algebra import Algebra
from hyperelm.bilinear import Scheme, block_scheme
from hyperelm.decomposition import Block, decompose

METHODS = ("auto", "left", "right", "blocks")


def to_real(A: ArrayLike) -> FloatArray:
    """φ(A): the components of every number below each other (section 3 of the paper).

    Parameters
    ----------
    A : array of shape (..., M, N, d)

    Returns
    -------
    array of shape (..., M d, N)

    Examples
    --------
    >>> from hyperelm import linalg
    >>> linalg.to_real([[[0, 1], [2, 3]]])
    array([[0., 2.],
           [1., 3.]])
    """
    A = as_real(A, "A")
    if A.ndim < 3:
        raise ValueError(f"`A` must have at least 3 axes, (rows, columns, d), got shape {tuple(A.shape)}.")
    *batch, rows, columns, dim = A.shape
    xp = namespace(A=A)
    real: FloatArray = xp.reshape(xp.moveaxis(A, -1, -2), (*batch, rows * dim, columns))
    return real


def from_real(R: ArrayLike, algebra: Algebra) -> FloatArray:
    """φ⁻¹(R): the inverse of `to_real`.

    Parameters
    ----------
    R : array of shape (..., M d, N)
    algebra : Algebra

    Returns
    -------
    array of shape (..., M, N, d)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.from_real([[1, 2], [3, 4]], algebras.get("complex"))
    array([[[1., 3.],
            [2., 4.]]])
    """
    R = as_real(R, "R")
    if R.ndim < 2 or R.shape[-2] % algebra.dim:
        raise ValueError(
            f"`R` must be (..., M d, N) with a number of rows divisible by {algebra.dim} "
            f"({algebra.name or 'the dimension of the algebra'}), got shape {tuple(R.shape)}."
        )
    *batch, rows, columns = R.shape
    xp = namespace(R=R)
    numbers = xp.moveaxis(xp.reshape(R, (*batch, rows // algebra.dim, algebra.dim, columns)), -1, -2)
    return np.ascontiguousarray(numbers) if xp is np else numbers


def left_matrix(A: ArrayLike, algebra: Algebra) -> FloatArray:
    """Φ_L(A): every number replaced by its matrix of left multiplication, so that φ(AB) = Φ_L(A) φ(B).

    Parameters
    ----------
    A : array of shape (..., M, L, d)
    algebra : Algebra

    Returns
    -------
    array of shape (..., d M, d L)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.left_matrix([[[3.0, 4.0]]], algebras.get("complex"))
    array([[ 3., -4.],
           [ 4.,  3.]])
    """
    A = as_hypercomplex(A, algebra, "A", axes=2)
    return _spread(A, algebra.table, rows_last=False)


def right_matrix(B: ArrayLike, algebra: Algebra) -> FloatArray:
    """Φ_R(B): every number of Bᵀ replaced by its matrix of right multiplication, so that φ((AB)ᵀ) = Φ_R(B) φ(Aᵀ).

    Parameters
    ----------
    B : array of shape (..., L, N, d)
    algebra : Algebra

    Returns
    -------
    array of shape (..., d N, d L)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.right_matrix([[[3.0, 4.0]]], algebras.get("hyperbolic"))
    array([[3., 4.],
           [4., 3.]])
    """
    B = as_hypercomplex(B, algebra, "B", axes=2)
    return _spread(namespace(B=B).moveaxis(B, -2, -3), algebra.table.swapaxes(0, 1), rows_last=False)


def right_operator(B: FloatArray, algebra: Algebra) -> FloatArray:
    """Φ_R(B)ᵀ, (..., L, N, d) -> (..., L d, N d): with it the components of a row of AB are those of A times it."""
    return _spread(B, algebra.table.swapaxes(0, 1), rows_last=True)


def norm(A: ArrayLike) -> Any:
    """The Frobenius norm of hypercomplex matrices: the root of the sum of the squares of all components.

    Parameters
    ----------
    A : array of shape (..., M, N, d)

    Returns
    -------
    float, or array of shape (...)

    Examples
    --------
    >>> from hyperelm import linalg
    >>> float(linalg.norm([[[3.0, 0.0], [0.0, 4.0]]]))
    5.0
    """
    A = as_real(A, "A")
    if A.ndim < 3:
        raise ValueError(f"`A` must have at least 3 axes, (rows, columns, d), got shape {tuple(A.shape)}.")
    if (xp := namespace(A=A)) is not np:
        return xp.linalg.vector_norm(A, axis=(-3, -2, -1))
    sizes = np.abs(A).max(axis=(-3, -2, -1), keepdims=True, initial=0)
    units = np.where((sizes > 0) & np.isfinite(sizes), sizes, 1)  # in which squares are numbers
    x = A / units
    square = np.einsum("...mnk,...mnk->...", x, x, dtype=np.float64)
    return (units[..., 0, 0, 0] * np.sqrt(square)).astype(A.dtype)[()]


def matmul(A: ArrayLike, B: ArrayLike, algebra: Algebra, *, method: str = "auto") -> FloatArray:
    """The matrix product AB over an algebra, (AB)_mn = Σ_l A_ml B_ln.

    Parameters
    ----------
    A : array of shape (..., M, L, d)
    B : array of shape (..., L, N, d)
        Leading axes broadcast as in `numpy.matmul`.
    algebra : Algebra
    method : {"auto", "left", "right", "blocks"}
        Through Φ_L(A), through Φ_R(B), or in the blocks of the algebra. "auto" takes the cheapest for the shapes.

    Returns
    -------
    array of shape (..., M, N, d)

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import algebras, linalg
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 5, 4))
    >>> linalg.matmul(A, B, algebras.get("quaternions")).shape
    (2, 5, 4)
    """
    namespace(A=A, B=B)
    A, B = as_hypercomplex(A, algebra, "A", axes=2), as_hypercomplex(B, algebra, "B", axes=2)
    check_choice(method, METHODS, "method")
    if A.shape[-2] != B.shape[-3]:
        raise ValueError(
            f"`B` must have as many rows as `A` has columns, got {A.shape[-2]} columns in shape "
            f"{tuple(A.shape)} and {B.shape[-3]} rows in shape {tuple(B.shape)}."
        )
    try:
        np.broadcast_shapes(A.shape[:-3], B.shape[:-3])
    except ValueError:
        raise ValueError(
            f"`A` and `B` must have leading axes that broadcast, got shapes {tuple(A.shape)} and {tuple(B.shape)}."
        ) from None
    dtype = np.result_type(numpy_dtype(A), numpy_dtype(B))
    A, B = as_precision(A, dtype), as_precision(B, dtype)
    if method == "auto":
        method = _cheapest(A.shape, B.shape, algebra)
    return {"left": _left, "right": _right, "blocks": _blocks}[method](A, B, algebra)


def _spread(A: FloatArray, table: NDArray[np.float64], *, rows_last: bool) -> FloatArray:
    """The real matrix that has the d x d matrix Σ_i a_i table[i] (`rows_last`) or its transpose for each number a.

    Entry by entry of that matrix, each one strided pass for every unit in it: tables are sparse.
    """
    *batch, rows, columns, dim = A.shape
    xp = namespace(A=A)
    if xp is not np:
        blocks = xp.tensordot(A, beside(table if rows_last else table.swapaxes(1, 2), A), axes=1)
        return xp.reshape(xp.moveaxis(blocks, -2, -3), (*batch, rows * dim, columns * dim))
    out = np.empty((*batch, rows, dim, columns, dim), dtype=A.dtype)
    units: dict[tuple[int, int], list[int]] = {(j, k): [] for j in range(dim) for k in range(dim)}
    for i, j, k in np.argwhere(table).tolist():
        units[j, k].append(i)
    for (j, k), summed in units.items():
        r, c = (j, k) if rows_last else (k, j)
        entry = out[..., :, r, :, c]
        if not summed:
            entry[...] = 0
        for n, i in enumerate(summed):
            if n == 0:
                np.multiply(A[..., i], A.dtype.type(table[i, j, k]), out=entry)
            else:
                entry += A.dtype.type(table[i, j, k]) * A[..., i]
    return out.reshape(*batch, rows * dim, columns * dim)


def _left(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    return from_real(_spread(A, algebra.table, rows_last=False) @ to_real(B), algebra)


def _right(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    """By Φ_R(B)ᵀ neither A nor the product have to be rearranged."""
    xp = namespace(A=A, B=B)
    product = xp.reshape(A, (*A.shape[:-2], A.shape[-2] * A.shape[-1])) @ right_operator(B, algebra)
    numbers: FloatArray = xp.reshape(product, (*product.shape[:-1], B.shape[-2], algebra.dim))
    return numbers


def _blocks(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    if namespace(A=A, B=B) is not np:
        blocks = block_scheme(algebra)
        a, b = planes(A, blocks.left), planes(B, blocks.right)
        return from_planes(scheme_product(a, b, blocks), blocks.out)
    rows, columns = A.shape[-3], B.shape[-2]
    batch = np.broadcast_shapes(A.shape[:-3], B.shape[:-3])
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(B, basis.coordinates)
    product = np.empty((algebra.dim, *batch, rows, columns), dtype=A.dtype)
    for block, of_A, of_B in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        put_coordinates(block_matrix(entries[of_A], block) @ gather(coordinates[of_B], block), product[of_B], block)
    return from_planes(product, basis.coordinates)


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
    entries = [_parts(block.matrices, block) for block in blocks]
    coordinates = [_parts(block.bases.transpose(1, 2, 0), block) for block in blocks]
    maps = np.concatenate(entries, axis=1), np.concatenate(coordinates, axis=1)
    return BlockBasis(blocks, *maps, entry_slices=_slices(entries), coordinate_slices=_slices(coordinates))


def _parts(array: NDArray[Any], block: Block) -> NDArray[np.float64]:
    """(d, n, m) real or complex -> (d, n m [2]) real."""
    parts = np.stack([array.real, array.imag], axis=-1) if block.is_complex else array
    return parts.reshape(len(parts), -1)


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


def put_coordinates(matrix: NDArray[Any], image: FloatArray, block: Block) -> None:
    """The inverse of `gather`: write a matrix (..., n L, copies N) to its planes `image`."""
    *batch, L, N = image.shape[1:]
    source = matrix.reshape(*batch, block.size, L, block.copies, N)
    parts = image.reshape(block.size, block.copies, block.parts, *batch, L, N)
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


# One strided pass over an element costs about as much as this many multiply-adds inside a matrix product.
_PASS = 20.0


def _cheapest(a: tuple[int, ...], b: tuple[int, ...], algebra: Algebra) -> str:
    """The method with the least multiply-adds and passes through memory for matrices of these shapes."""
    dim, rows, inner, columns = algebra.dim, a[-3], a[-2], b[-2]
    batch_a, batch_b = np.prod(a[:-3], dtype=float), np.prod(b[:-3], dtype=float)
    batch = max(batch_a, batch_b)
    full = batch * dim * dim * rows * inner * columns
    units = float(np.count_nonzero(algebra.table))
    costs = {
        "right": full + _PASS * batch_b * units * inner * columns,
        "left": full + _PASS * (batch_a * units * rows * inner + dim * (batch_b * inner + batch * rows) * columns),
    }
    products, entries = 0.0, 0.0
    for block in decompose(algebra):
        products += block.parts**2 * block.size**2 * block.copies
        entries += block.parts * block.size**2
    moved = batch_a * entries * rows * inner + dim * (batch_b * inner + batch * rows) * columns
    costs["blocks"] = batch * products * rows * inner * columns + _PASS * moved
    return min(costs, key=lambda method: costs[method])
