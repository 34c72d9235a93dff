"""How the columns of a data set lie in the components of hypercomplex numbers.

A layout maps every column of a row to one place among the features · d components of that row. With room for k channels
in a number, column c of group g in an array of shape (n, groups, group) goes to

    component start + c mod k of number g ⌈group/k⌉ + ⌊c/k⌋.

A chunk of rows becomes numbers when its columns are written to their places. For predictions nothing is packed: the
real matrices of a network keep only the rows or columns of these places, so raw columns go in and come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import as_complex, as_precision, is_complex, namespace
from hyperelm._validation import FloatArray, check_choice

COMPLEX = catalogue.get("complex")
INTO = ("full", "imaginary", "real")


def components(into: str, algebra: Algebra, argument: str = "into") -> slice:
    """The components that the channels of a number may fill."""
    check_choice(into, INTO, argument)
    if algebra.dim == 1 or into == "real":
        return slice(0, 1)
    return slice(0 if into == "full" else 1, algebra.dim)


def takes_complex(algebra: Algebra) -> bool:
    """Whether the numbers of an algebra are the complex ones, real part first."""
    return algebra == COMPLEX


def looks_turned(shape: tuple[int, ...]) -> bool:
    """Whether the last axis of (n, steps, channels) is so long that it is time: sensors have few channels."""
    return shape[-1] > 16 and shape[-1] >= 2 * shape[1]


class HasShape(Protocol):
    """What a layout needs of an array."""

    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Layout:
    """`columns` real columns as `features` numbers of `dim` components.

    ndim : 1 for a vector, 2 for columns or complex numbers, 3 for groups of columns, such as numbers or steps in time
    start : the first component that columns fill
    channels : how many columns fill one number
    group : the columns of a group, which begins with a number of its own; all columns where there is one group
    is_complex : whether the user gives complex numbers, whose parts are the columns here
    """

    ndim: int
    columns: int
    features: int
    dim: int
    start: int
    channels: int
    group: int
    is_complex: bool = False

    @classmethod
    def filled(
        cls, ndim: int, columns: int, room: slice, dim: int, *, group: int | None = None, is_complex: bool = False
    ) -> Layout:
        """The layout whose numbers are filled in order, in the components `room`, by all columns or by each group."""
        group, channels = group or columns, room.stop - room.start
        features = columns // group * -(-group // channels)
        return cls(ndim, columns, features, dim, room.start, channels, group, is_complex)

    @classmethod
    def of(cls, array: HasShape, algebra: Algebra, packing: str) -> Layout:
        """The layout of a validated array of 1, 2 or 3 dimensions."""
        d, every = algebra.dim, slice(0, algebra.dim)
        if is_complex(array):
            features = 1 if array.ndim == 1 else array.shape[1]
            return cls.filled(array.ndim, d * features, every, d, group=d, is_complex=True)
        if array.ndim == 3:
            steps, group = array.shape[1:]
            room = every if group == d else components(packing, algebra, "packing")
            return cls.filled(3, steps * group, room, d, group=group)
        room = components("real" if array.ndim == 1 else packing, algebra, "packing")
        return cls.filled(array.ndim, 1 if array.ndim == 1 else array.shape[1], room, d)

    @property
    def places(self) -> NDArray[np.intp]:
        """The place of every column among the features · dim components of a row."""
        groups, within = np.divmod(np.arange(self.columns), self.group)
        numbers, channels = np.divmod(within, self.channels)
        return (groups * -(-self.group // self.channels) + numbers) * self.dim + self.start + channels

    def components_of(self, numbers: int) -> NDArray[np.intp]:
        """The places of all components that columns may fill, for this many numbers."""
        return (self.dim * np.arange(numbers)[:, None] + self.start + np.arange(self.channels)).ravel()

    @property
    def is_flat(self) -> bool:
        """Whether the columns are the components, in order."""
        return self.columns == self.features * self.dim

    @property
    def are_numbers(self) -> bool:
        """Whether the user gives numbers, as components on a last axis or as complex numbers."""
        return self.is_complex or (self.ndim == 3 and self.group == self.dim)

    def pack(self, array: NDArray[Any], dtype: DTypeLike) -> FloatArray:
        """Rows as numbers, (m, features, d); a view where they already are."""
        n_rows, xp = array.shape[0], namespace(array=array)
        rows = xp.reshape(as_precision(array, np.dtype(dtype)), (n_rows, self.columns))
        if not self.is_flat:
            rows = backend_of(rows).scattered(rows, self.places, self.features * self.dim)
        numbers: FloatArray = xp.reshape(rows, (n_rows, self.features, self.dim))
        return numbers

    def given(self, columns: Any) -> Any:
        """Columns, (m, columns), in the shape and of the kind that the user gives and gets."""
        n_rows, xp = columns.shape[0], namespace(columns=columns)
        if self.is_complex:
            columns = as_complex(xp.reshape(columns, (n_rows, self.features, self.dim)))
        return xp.reshape(columns, self.shape(n_rows))

    def shape(self, n_rows: int) -> tuple[int, ...]:
        """The shape of this many rows as the user gives and gets them."""
        if self.ndim == 3:
            return n_rows, self.columns // self.group, self.group
        return (n_rows, self.features if self.is_complex else self.columns)[: self.ndim]

    def shape_of_parts(self, n_rows: int) -> tuple[int, ...]:
        """The same where complex numbers are pairs of real ones on a last axis."""
        return (*self.shape(n_rows), *([self.dim] if self.is_complex else []))

    @property
    def of_parts(self) -> Layout:
        """The same layout where complex numbers are pairs of real ones on a last axis."""
        return replace(self, ndim=3, is_complex=False) if self.is_complex else self
