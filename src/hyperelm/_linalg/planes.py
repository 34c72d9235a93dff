"""Numbers as real planes: linear functions of their components, one array for each.

In the basis of `_algebra.blocks` a product falls apart into the blocks of the algebra,

    Eᵀ(AB) = B(A) EᵀB           for every copy of every block.

The planes of an array of numbers are the real and imaginary parts of all entries of B, or of all coordinates Eᵀφ. The
planes of one block, side by side, are the matrices that are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import Block, decompose
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import namespace
from hyperelm._lazy import lazy
from hyperelm._validation import FloatArray

Basis = NDArray[np.float64]

_MEMORY = "wide"  # the scratch memory in which numbers form their planes


@dataclass(frozen=True)
class BlockBasis:
    """The linear maps from the components of a number to its entries and coordinates in all blocks.

    entries : (d, p), to the entries of all B(x), by block, row, column, real and imaginary part
    coordinates : (d, d), orthogonal, to all Eᵀφ(x), by block, row, copy, real and imaginary part
    """

    blocks: tuple[Block, ...]
    entries: Basis
    coordinates: Basis
    entry_slices: tuple[slice, ...]
    coordinate_slices: tuple[slice, ...]


@lru_cache(maxsize=256)
def block_basis(algebra: Algebra) -> BlockBasis:
    blocks = decompose(algebra)
    entries, entry_slices = _side_by_side([block.entries for block in blocks])
    coordinates, coordinate_slices = _side_by_side([block.coordinates for block in blocks])
    return BlockBasis(blocks, entries, coordinates, entry_slices, coordinate_slices)


def _side_by_side(maps: list[Basis]) -> tuple[Basis, tuple[slice, ...]]:
    """The columns of all maps in one matrix, and where those of each map are."""
    ends = np.cumsum([columns.shape[1] for columns in maps]).tolist()
    return np.concatenate(maps, axis=1), tuple(slice(start, end) for start, end in zip([0, *ends], ends))


class Numbers:
    """A chunk of numbers, (m, n, d), and what was computed from it. Nothing is computed twice.

    An auto-encoder multiplies its inputs twice, first by the hidden weights and then, as targets, by the hidden layer.
    Both take planes of the same numbers, so they share them through this object. The planes are lost when other numbers
    form theirs.
    """

    def __init__(self, array: FloatArray) -> None:
        self.array = array
        self._formed: tuple[Basis, FloatArray] | None = None  # the last basis: all planes are formed in the same memory

    @lazy
    def square(self) -> float:
        """Σx²."""
        return backend_of(self.array).square(self.array)

    @lazy
    def support(self) -> tuple[int, ...]:
        """The components that are not zero in all numbers."""
        return backend_of(self.array).support(self.array)

    def has_planes(self, basis: Basis | None = None) -> bool:
        """Whether the planes of this basis are formed already, or those of any basis."""
        return self._formed is not None and (basis is None or np.array_equal(self._formed[0], basis))

    def planes(self, basis: Basis) -> FloatArray:
        """The planes of this basis, (p, m, n)."""
        if self._formed is None or not np.array_equal(self._formed[0], basis):
            self._formed = basis, backend_of(self.array).planes(self.array, basis, _MEMORY)
        return self._formed[1]

    def planes_by_support(self, basis_of: Callable[[tuple[int, ...]], Basis]) -> FloatArray:
        """The planes of the basis for the support. If possible, one pass finds the support, the planes and Σx²."""
        if "support" not in self.__dict__:
            support, image, square = backend_of(self.array).examined(self.array, basis_of, _MEMORY)
            self._formed = basis_of(support), image
            # The values of the lazy attributes:
            self.__dict__.update({"support": support} | ({} if square is None else {"square": square}))
        return self.planes(basis_of(self.support))


def block_matrix(entries: FloatArray, block: Block) -> NDArray[Any]:
    """B(A) from its planes of entries, (k n [2], ..., M, L) -> (..., k M, n L), the block's own rows outermost.

    All planes give all k = n rows of the block; those that come first give its first rows.
    """
    rows = entries.shape[0] // (block.size * block.parts)
    return backend_of(entries).assembled(entries, (rows, block.size, block.parts))


def coordinate_matrix(coordinates: FloatArray, block: Block) -> NDArray[Any]:
    """EᵀB of all copies from its planes, (n copies [2], ..., L, N) -> (..., n L, copies N)."""
    return backend_of(coordinates).assembled(coordinates, (block.size, block.copies, block.parts))


def put_entries(matrix: NDArray[Any], image: FloatArray, at: slice, block: Block) -> None:
    """Write a matrix (..., n M, n L) to its planes image[at]: the inverse of `block_matrix`."""
    backend_of(matrix).disassemble(matrix, image, at, (block.size, block.size, block.parts))


def put_coordinates(matrix: NDArray[Any], image: FloatArray, at: slice, block: Block) -> None:
    """Write a matrix (..., n L, copies N) to its planes image[at]: the inverse of `coordinate_matrix`."""
    backend_of(matrix).disassemble(matrix, image, at, (block.size, block.copies, block.parts))


def planes(numbers: FloatArray, basis: Basis) -> FloatArray:
    """The linear functions in the columns of `basis` of every number, (..., d) -> (p, ...)."""
    return backend_of(numbers).planes(numbers, basis)


def from_planes(image: FloatArray, basis: Basis) -> FloatArray:
    """The numbers Σ_p image_p basis[:, p], (p, ...) -> (..., d): the inverse of `planes` for an orthogonal basis."""
    return backend_of(image).from_planes(image, basis)


def traces(matrices: Any) -> Any:
    """The trace of every matrix, (k, n, n) -> (k,)."""
    xp, (k, n, _) = namespace(matrices=matrices), matrices.shape
    return xp.sum(xp.reshape(matrices, (k, n * n))[:, :: n + 1], axis=1)
