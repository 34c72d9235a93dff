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
from hyperelm._validation import FloatArray

Basis = NDArray[np.float64]


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
    entries, coordinates = [block.entries for block in blocks], [block.coordinates for block in blocks]
    maps = np.concatenate(entries, axis=1), np.concatenate(coordinates, axis=1)
    return BlockBasis(blocks, *maps, entry_slices=_slices(entries), coordinate_slices=_slices(coordinates))


def _slices(arrays: list[Basis]) -> tuple[slice, ...]:
    ends = np.cumsum([array.shape[1] for array in arrays]).tolist()
    return tuple(slice(start, end) for start, end in zip([0, *ends], ends))


class Numbers:
    """A chunk of numbers, (m, n, d), and what is known of it: each fact is found once.

    An auto-encoder multiplies its inputs twice, first by the hidden weights and then, as targets, by the hidden layer.
    Both take planes of the same numbers, so they share them through this object.

    Parameters
    ----------
    array : array of shape (m, n, d)
    memory : str
        The scratch memory that planes are formed in. They are lost when other numbers form planes under this name.
    """

    def __init__(self, array: FloatArray, memory: str = "wide") -> None:
        self.array, self._memory = array, memory
        self._support: tuple[int, ...] | None = None
        self._square: float | None = None
        self._formed: list[tuple[Basis, FloatArray]] = []

    @property
    def square(self) -> float:
        """Σx²."""
        if self._square is None:
            self._square = backend_of(self.array).square(self.array)
        return self._square

    @property
    def support(self) -> tuple[int, ...]:
        """The components that are not zero throughout."""
        if self._support is None:
            self._support = backend_of(self.array).support(self.array)
        return self._support

    def has_planes(self, basis: Basis | None = None) -> bool:
        """Whether the planes of this basis are formed already, or any."""
        return any(basis is None or np.array_equal(known, basis) for known, _ in self._formed)

    def planes(self, basis: Basis) -> FloatArray:
        """The planes of this basis, (p, m, n)."""
        for known, image in self._formed:
            if np.array_equal(known, basis):
                return image
        return self._keep(basis, backend_of(self.array).chunk_planes(self.array, basis, self._memory))

    def planes_by_support(self, basis_of: Callable[[tuple[int, ...]], Basis]) -> FloatArray:
        """The planes of the basis for the support, which is found in the same pass, and so is Σx²."""
        if self._support is None:
            self._support, image, square = backend_of(self.array).examined(self.array, basis_of, self._memory)
            self._square = self._square if square is None else square
            return self._keep(basis_of(self._support), image)
        return self.planes(basis_of(self._support))

    def _keep(self, basis: Basis, image: FloatArray) -> FloatArray:
        self._formed = [(basis, image)]  # all planes of these numbers are formed in the same memory
        return image


def block_matrix(entries: FloatArray, block: Block) -> NDArray[Any]:
    """B(A) from its planes of entries, (n n [2], ..., M, L) -> (..., n M, n L), the block's own rows outermost."""
    return backend_of(entries).assembled(entries, _of_entries(block))


def coordinate_matrix(coordinates: FloatArray, block: Block) -> NDArray[Any]:
    """EᵀB of all copies from its planes, (n copies [2], ..., L, N) -> (..., n L, copies N)."""
    return backend_of(coordinates).assembled(coordinates, _of_coordinates(block))


def put_entries(matrix: NDArray[Any], image: FloatArray, at: slice, block: Block) -> None:
    """Write a matrix (..., n M, n L) to its planes image[at]: the inverse of `block_matrix`."""
    backend_of(matrix).disassemble(matrix, image, at, _of_entries(block))


def put_coordinates(matrix: NDArray[Any], image: FloatArray, at: slice, block: Block) -> None:
    """Write a matrix (..., n L, copies N) to its planes image[at]: the inverse of `coordinate_matrix`."""
    backend_of(matrix).disassemble(matrix, image, at, _of_coordinates(block))


def _of_entries(block: Block) -> tuple[int, int, int]:
    return block.size, block.size, block.parts


def _of_coordinates(block: Block) -> tuple[int, int, int]:
    return block.size, block.copies, block.parts


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
