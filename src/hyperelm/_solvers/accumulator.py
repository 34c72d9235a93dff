"""What all accumulators share: rows are checked before anything changes, weighted, counted, and merged.

An accumulator summarises the rows (H, T) of a least-squares problem HM ≈ T. Its size does not depend on the number of
rows (`AllRows`, the reference, keeps them). While the rows are fewer than the unknowns it keeps the rows: they are
smaller than their summary, and less work to solve (`dual`). `update` takes in a chunk of rows, `merge` takes in the
rows of another accumulator; rows may arrive in any order and grouping. Rows of another array library are summed where
they live, and only the sums move to NumPy, when they are merged, solved or saved.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import unit_algebra
from hyperelm._algebra.schemes import scheme
from hyperelm._backend import backend_of, limits
from hyperelm._backend.arrays import as_precision, beside, detached, namespace, to_numpy
from hyperelm._backend.workspace import scratch
from hyperelm._linalg.planes import Numbers, block_basis, from_planes, put_coordinates
from hyperelm._solvers.kept import KeepsFew, Remembers
from hyperelm._solvers.problem import Array, Problem
from hyperelm._validation import FloatArray, as_hypercomplex

_SCRATCH = 96 * 2**20  # bytes
_ROUNDING = 100  # times eps of the squares of the targets


class Embedding(NamedTuple):
    """How the real columns of a row lie among the components of its numbers.

    at, source, factor : component at[c] is factor[c] times column source[c]; components that `at` lacks are zero
    shape : (numbers, d)
    """

    at: NDArray[np.intp]
    source: NDArray[np.intp]
    factor: NDArray[np.float64]
    shape: tuple[int, int]

    @property
    def columns(self) -> int:
        """K, the number of columns."""
        return int(self.source.max(initial=-1)) + 1

    @property
    def first_places(self) -> NDArray[np.intp]:
        """The component that shows each column, (K,): the first, where there are several."""
        return self.at[np.unique(self.source, return_index=True)[1]]

    def numbers(self, columns: Array) -> Array:
        """Columns, (..., K), as numbers, (..., numbers, d)."""
        components = np.zeros((*columns.shape[:-1], math.prod(self.shape)), columns.dtype)
        components[..., self.at] = columns[..., self.source] * self.factor.astype(columns.dtype)
        return components.reshape(*columns.shape[:-1], *self.shape)


class Accumulator(KeepsFew, Remembers):
    """A summary of rows H, (m, L, d), with targets T, (m, N, d).

    Parameters
    ----------
    algebra : Algebra
    unknowns, targets : int
        L and N.
    dtype : float32 or float64

    Attributes
    ----------
    n_rows, n_counted : int
        The number of rows seen, and how many of them have a weight above zero.
    weight, square, square_H : float
        Σw, Σ w‖t‖² and Σ w‖h‖² over them.
    tail : float or None
        The part of `square` that no solution explains, where the accumulator keeps it.
    """

    method: str
    basis: tuple[str, ...] = ("coordinates",)  # those of its arrays that depend on the algebra alone
    tail: float | None = None
    squares_condition = False  # whether rounding grows with the square of the condition
    takes_out = False  # whether rows that were seen can be subtracted again
    leaves_out = True  # whether one row can be left out of its sums, and more rows can be added later
    shows_no_ridge = True  # whether it shows the solution without a ridge to full accuracy

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        self.algebra, self.unknowns, self.targets = algebra, unknowns, targets
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.n_rows, self.n_counted, self.weight, self.square, self.square_H = 0, 0, 0.0, 0.0, 0.0
        self.few = []

    # ------------------------------------------------------------------ rows

    def update(
        self,
        H: FloatArray,
        T: FloatArray | Numbers,
        sample_weight: FloatArray | None = None,
        *,
        count: float | None = None,
    ) -> None:
        """Take in a chunk of rows.

        Targets that come as `Numbers` bring the planes that are formed of them already. `count` is the number of
        samples that the rows stand for, if that is not the sum of the weights: weights may be costs.
        """
        targets = T if isinstance(T, Numbers) else Numbers(T)
        namespace(H=H, T=targets.array)
        H = self._shaped(H, self.unknowns, "H")
        shaped = self._shaped(targets.array, self.targets, "T")
        targets = targets if shaped is targets.array else Numbers(shaped)
        n_rows = H.shape[0]
        if n_rows != shaped.shape[0]:
            raise ValueError(f"`H` and `T` must have the same number of rows, got {n_rows} and {shaped.shape[0]}.")
        weight = check_weight(sample_weight, n_rows)
        of_H = Numbers(H)
        for numbers, name in ((of_H, "H"), (targets, "T")):
            check_finite(numbers, name, self.n_rows)
        if weight is not None:
            roots = beside(np.sqrt(weight).astype(self.dtype), H)[:, None, None]
            with np.errstate(over="ignore"):  # `is_safe` tells of it
                of_H, targets = Numbers(H * roots), Numbers(shaped * roots)
        if count is None:
            count = n_rows if weight is None else float(weight.sum())
        self.n_rows += n_rows
        self.n_counted += n_rows if weight is None else int(np.count_nonzero(weight))
        self.weight += count
        self.square += targets.square
        self.square_H += of_H.square
        self.take(of_H.array, targets)

    def merge(self, other: Accumulator) -> None:
        """Take in the rows that `other` has seen."""
        if type(self) is not type(other) or self._form() != other._form():
            raise ValueError(
                "`other` must summarise rows of the same algebra, sizes and precision in the same way, "
                f"got {other!r} for {self!r}."
            )
        self.join(other)
        self.n_rows += other.n_rows
        self.n_counted += other.n_counted
        self.weight += other.weight
        self.square += other.square
        self.square_H += other.square_H

    def fade(self, share: float) -> None:
        """Let every row seen so far count this share of what it counted."""
        if self.few:
            root = self.dtype.type(math.sqrt(share))
            self.few = [(root * H, root * T) for H, T in self.few]
        self._fade(share)
        self.weight, self.square, self.square_H = share * self.weight, share * self.square, share * self.square_H

    def take_out(self, other: Accumulator) -> None:
        """Become the accumulator of the rows that `other` has not seen. `other` is used up."""
        raise NotImplementedError

    @property
    def cancelled(self) -> float:
        """By which factor the rounding of the sums has grown beside them, since rows were taken out."""
        return 1.0

    @property
    def is_possible(self) -> bool:
        """Whether there can be rows that have these sums. Without rows that were not in, they may be impossible."""
        return True

    # ------------------------------------------------------------------ taking turns

    def made_room(self, H: FloatArray, T: FloatArray, weight: FloatArray | None, ridge: float) -> Accumulator:
        """The accumulator to add these rows to, for a fixed ridge: this one, or one that takes its place.

        The rows are read once, so the choice is made before they are added.
        """
        return self

    def can_resume(self, method: type[Accumulator]) -> bool:
        """Whether an accumulator of this class can go on with the rows of this one."""
        return isinstance(self, method)

    def resumed_by(self, method: type[Accumulator]) -> Accumulator:
        """The accumulator of this class that goes on with the rows of this one."""
        assert isinstance(self, method), method
        return self

    def _count_as(self, other: Accumulator) -> None:
        """Stand for the rows that `other` has seen."""
        self.n_rows, self.n_counted, self.weight = other.n_rows, other.n_counted, other.weight
        self.square, self.square_H = other.square, other.square_H

    # ------------------------------------------------------------------ the range of numbers

    @property
    def is_safe(self) -> bool:
        """Whether the lengths of the columns of Φ_L(H) and of the targets are within the precision.

        The first are √Σ‖h‖² times the size of the table. In double precision, squares leave the range before lengths
        do, and then are refused before they come here.
        """
        if self.dtype != np.float32:
            return True
        _, factor = unit_algebra(self.algebra)
        length = math.hypot(factor * math.sqrt(self.square_H), math.sqrt(self.square))
        return length < 0.1 * float(np.finfo(self.dtype).max)

    @property
    def largest_eigenvalue(self) -> float:
        """A number that no eigenvalue of Φ_L(H)ᵀΦ_L(H) exceeds."""
        return self.square_H * table_square(self.algebra)

    def shows(self, residual: float) -> bool:
        """Whether a sum of squared residuals is more than the rounding of the sums that it is a difference of.

        With targets far from zero it is not: the bias explains most of their squares.
        """
        return self.unexplained is not None or residual >= _ROUNDING * float(np.finfo(self.dtype).eps) * self.square

    def check_squares(self) -> None:
        """Refuse to choose a ridge: the scores are made of squares of the targets, which must be within the range."""
        if not limits.is_sum(self.square):
            raise limits.refused(
                "ridge",
                "be a number, not chosen, for targets whose squares are beyond double precision",
                f"targets with a sum of squares of {self.square:g}",
                "Divide the targets by their size.",
            )

    def _check_safe(self, way_out: str) -> None:
        if not self.is_safe:
            of_H, of_T = (math.sqrt(square / self.n_rows) for square in (self.square_H, self.square))
            raise limits.refused(
                "solver",
                f"not be {self.method!r} for rows whose sums are beyond {self.dtype}",
                f"rows of a mean length of {of_H:.0e} and targets of {of_T:.0e}",
                way_out,
            )

    # ------------------------------------------------------------------ files

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The accumulator as named arrays, which `restore` takes, also on another machine and in another release.

        rows : (), the number of rows
        sums : (3,): `weight`, `square` and `tail`
        coordinates : (d, d), the block basis of the other arrays, which the subclass adds
        """
        self.sum_few()
        rows, sums = np.array(self.n_rows, np.int64), np.array([self.weight, self.square, self.tail or 0.0])
        return {"rows": rows, "sums": sums, "coordinates": block_basis(self.algebra).coordinates}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Become the accumulator of the same algebra, sizes and precision that these are the `arrays` of."""
        mine = self.arrays()
        for name, array in mine.items():
            given = arrays.get(name)
            if given is None or given.shape != array.shape or given.dtype != array.dtype:
                raise ValueError(f"The accumulator must have {name!r} of shape {array.shape} and type {array.dtype}.")
        if not all(np.allclose(mine[name], arrays[name], rtol=0, atol=1e-8) for name in self.basis):
            raise ValueError("The accumulator must be in the block basis that this release finds for the algebra.")
        self.n_rows = self.n_counted = int(arrays["rows"])
        self.weight, self.square, tail = arrays["sums"].tolist()
        self.tail = None if self.tail is None else tail

    def awake(self) -> Accumulator:
        """The accumulator itself; one from a file is made of its arrays here (`Asleep`)."""
        return self

    # ------------------------------------------------------------------ what a subclass does

    @abstractmethod
    def _fade(self, share: float) -> None:
        """Multiply all sums by this share."""

    @abstractmethod
    def combined(self, C: NDArray[np.float64]) -> Accumulator:
        """The accumulator of the targets TC, C being (N, R) and real, but for their squares."""

    @abstractmethod
    def restricted(self, unknowns: NDArray[np.intp]) -> Accumulator:
        """The accumulator of these unknowns alone, with the columns of H that belong to them."""

    @abstractmethod
    def over(self, algebra: Algebra, unknowns: Embedding, targets: Embedding) -> Accumulator:
        """The accumulator of the same rows for products in `algebra`.

        This one is over the real numbers. Its columns of H and T are components of the rows of the new one.
        """

    @abstractmethod
    def problems(self) -> Sequence[Problem]:
        """The least-squares problem of every block of the algebra."""

    @property
    def work(self) -> float:
        """The multiply-adds of one solution: a decomposition of every block, and two products with the targets."""
        total = 0.0
        for block in block_basis(self.algebra).blocks:
            K, R = block.size * min(self.unknowns, max(self.n_rows, 1)), block.copies * self.targets
            total += block.parts**2 * K**2 * (K / 6 + R)
        return total

    def coef(self, xs: Sequence[Array]) -> FloatArray:
        """The solutions of all blocks as hypercomplex numbers, (L, N, d)."""
        if self.algebra.dim == 1:
            return xs[0][:, :, None]
        basis = block_basis(self.algebra)
        targets = xs[0].shape[1] // basis.blocks[0].copies
        image = scratch((self.algebra.dim, self.unknowns, targets), self.dtype)
        for x, at, block in zip(xs, basis.coordinate_slices, basis.blocks):
            put_coordinates(x, image, at, block)
        return from_planes(image, basis.coordinates)

    def unknowns_of(self, numbers: NDArray[np.intp], problem: Problem) -> NDArray[np.intp]:
        """The real unknowns of a block's problem that belong to these hypercomplex ones."""
        within = self.unknowns * np.arange(problem.size // max(self.unknowns, 1))
        return (within[:, None] + numbers).ravel()

    def _form(self) -> tuple[Any, ...]:
        return self.algebra, self.unknowns, self.targets, self.dtype

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.algebra.name or self.algebra.dim}, unknowns={self.unknowns}, "
            f"targets={self.targets}, dtype={self.dtype}, n_rows={self.n_rows})"
        )

    def _shaped(self, array: Any, columns: int, name: str) -> FloatArray:
        array = as_hypercomplex(array, self.algebra, name, axes=2)
        if array.ndim != 3 or array.shape[1] != columns:
            raise ValueError(
                f"`{name}` must have shape (rows, {columns}, {self.algebra.dim}), got {tuple(array.shape)}."
            )
        return as_precision(detached(array), self.dtype)


class Asleep:
    """An accumulator from a file, which stays named arrays until more rows come.

    Making it needs the blocks of the algebra, which take longer to find than a file takes to read.
    """

    def __init__(self, make: Callable[[], Accumulator], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._make, self._arrays = make, arrays

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return self._arrays

    def awake(self) -> Accumulator:
        accumulator = self._make()
        accumulator.restore(self._arrays)
        return accumulator


def check_finite(numbers: Numbers, name: str, before: int = 0) -> float:
    """Σx², refusing NaN and infinity with the number of their row, counted from `before`. A finite sum is proof enough.

    Numbers so large that lengths made of them would leave double precision are refused, too.
    """
    square = numbers.square
    if math.isfinite(square):
        return square
    array = to_numpy(numbers.array)
    bad = ~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if bad.any():
        row = int(np.argmax(bad))
        value = array[row][~np.isfinite(array[row])][0]
        raise ValueError(f"`{name}` must be finite, got {value} in row {before + row}. Remove or impute such rows.")
    largest = float(np.abs(array).max())
    if largest > limits.LARGEST:
        raise limits.refused(name, f"be at most {limits.LARGEST:g}", f"{largest:g}", "Divide it by its size.")
    return square


def check_weight(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """One weight for each row, in NumPy and double precision wherever the rows are: they are few beside the rows."""
    if sample_weight is None:
        return None
    weight = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must have one weight for each of the {n_rows} rows, got shape {weight.shape}."
        )
    bad = ~(weight >= 0) | np.isinf(weight)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"`sample_weight` must be finite and not negative, got {weight[row]:g} in row {row}. Leave such rows out."
        )
    if (largest := weight.max(initial=0)) > limits.HEAVIEST:
        raise limits.refused(
            "sample_weight",
            f"be at most {limits.HEAVIEST:g}",
            f"{largest:g}",
            "Weights count samples: give them a mean of 1.",
        )
    return weight


def chunk_rows(algebra: Algebra, inputs: int, unknowns: int, targets: int, itemsize: int) -> int:
    """Rows of a chunk for D inputs, L unknowns and N targets whose scratch memory is about `_SCRATCH` bytes.

    It is a multiple of 16, which the kernels of a BLAS take at a time.
    """
    planes_of_rows = min(len(scheme(algebra, search=False).terms), 2 * algebra.dim)
    numbers = unknowns if algebra.dim == 1 else planes_of_rows * (max(inputs, targets) + 2 * unknowns)
    return int(np.clip(_SCRATCH // max(1, itemsize * numbers), 64, 4096)) // 16 * 16


@lru_cache(maxsize=256)
def table_square(algebra: Algebra) -> float:
    """The smallest c with ‖φ_L(h)‖² <= c‖h‖² for every number h, in the norm that sums squares."""
    return float(np.linalg.norm(algebra.table.reshape(algebra.dim, -1), 2)) ** 2


def row_square(array: FloatArray) -> float:
    """Σx² of an array of rows."""
    return backend_of(array).square(array)


def mixed(T: FloatArray, C: NDArray[np.float64]) -> FloatArray:
    """TC, (m, R, d), of targets T, (m, N, d)."""
    return np.moveaxis(np.moveaxis(T, -1, 1) @ C.astype(T.dtype), 1, -1)
