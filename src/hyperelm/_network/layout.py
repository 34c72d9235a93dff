"""How the columns of a data set lie in the components of hypercomplex numbers.

A layout maps every column of a row to one place among the features · d components of that row. A chunk of rows becomes
numbers when its columns are written to their places. For predictions nothing is packed: the real matrices of a network
keep only the rows or columns of these places, so raw columns go in and come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import as_precision, namespace
from hyperelm._validation import FloatArray, check_choice

INTO = ("full", "imaginary", "real")


def components(into: str, algebra: Algebra, argument: str = "into") -> slice:
    """The components that the channels of a number may fill."""
    check_choice(into, INTO, argument)
    if algebra.dim == 1 or into == "real":
        return slice(0, 1)
    return slice(0 if into == "full" else 1, algebra.dim)


class HasShape(Protocol):
    """What a layout needs of an array."""

    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Layout:
    """`columns` real columns as `features` numbers of `dim` components.

    ndim : 1 for a vector, 2 for columns, 3 for numbers that are taken as they are
    start : the first component that columns fill
    channels : how many columns fill one number
    """

    ndim: int
    columns: int
    features: int
    dim: int
    start: int
    channels: int

    @classmethod
    def of(cls, array: HasShape, algebra: Algebra, packing: str) -> Layout:
        """The layout of a validated array of 1, 2 or 3 dimensions."""
        if array.ndim == 3:
            return cls(3, array.shape[1] * algebra.dim, array.shape[1], algebra.dim, 0, algebra.dim)
        room = components("real" if array.ndim == 1 else packing, algebra, "packing")
        columns, channels = 1 if array.ndim == 1 else array.shape[1], room.stop - room.start
        return cls(array.ndim, columns, -(-columns // channels), algebra.dim, room.start, channels)

    @property
    def places(self) -> NDArray[np.intp]:
        """The place of every column among the features · dim components of a row."""
        numbers, channels = np.divmod(np.arange(self.columns), self.channels)
        return numbers * self.dim + self.start + channels

    def components_of(self, numbers: int) -> NDArray[np.intp]:
        """The places of all components that columns may fill, for this many numbers."""
        return (self.dim * np.arange(numbers)[:, None] + self.start + np.arange(self.channels)).ravel()

    @property
    def is_flat(self) -> bool:
        """Whether the columns are the components, in order."""
        return self.columns == self.features * self.dim

    def pack(self, array: NDArray[Any], dtype: DTypeLike) -> FloatArray:
        """Rows as numbers, (m, features, d); a view where they already are."""
        n_rows, xp = array.shape[0], namespace(array=array)
        rows = xp.reshape(as_precision(array, np.dtype(dtype)), (n_rows, self.columns))
        if not self.is_flat:
            rows = backend_of(rows).scattered(rows, self.places, self.features * self.dim)
        numbers: FloatArray = xp.reshape(rows, (n_rows, self.features, self.dim))
        return numbers

    def shape(self, n_rows: int) -> tuple[int, ...]:
        """The shape of this many rows as the user gives and gets them."""
        return (n_rows, self.columns)[: self.ndim] if self.ndim < 3 else (n_rows, self.features, self.dim)
