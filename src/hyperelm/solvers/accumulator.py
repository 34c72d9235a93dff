"""What all accumulators share: rows are checked before anything changes, weighted, counted, and merged.

An accumulator summarises the rows (H, T) of a least-squares problem HX ≈ T in a state whose size does not depend
on their number (`AllRows`, the reference, keeps them). `update` takes in a row block, `merge` what another accumulator
has seen; rows may arrive in any order and grouping. Rows of another array library are summed up where they live, and
only the sums come to NumPy, when they are merged, solved or stored.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import as_precision, beside, detached, namespace, to_numpy
from hyperelm._memory import scratch
from hyperelm._validation import FloatArray, as_hypercomplex
from hyperelm.algebra import Algebra
from hyperelm.decomposition import unit_algebra
from hyperelm.planes import block_basis, from_planes, put_coordinates
from hyperelm.solvers.problem import Array, Problem
from hyperelm.solvers.sums import Planes, total_square
from hyperelm.solvers.team import Team

_HEAVIEST = 1e38  # weight of a row: all sums of them are numbers
_LARGEST = 1e300
_ROUNDING = 100  # times eps of the squares of the targets


class Accumulator(ABC):
    """A summary of rows H, (m, L, d), with targets T, (m, N, d).

    Parameters
    ----------
    algebra : Algebra
    unknowns, targets : int
        L and N.
    dtype : float32 or float64

    Attributes
    ----------
    rows, counted : int
        The number M of rows seen, and how many of them have a weight above zero.
    weight, square, square_H : float
        Σw, Σ w‖t‖² and Σ w‖h‖² over them.
    tail : float or None
        The part of `square` that no X explains, where the accumulator keeps it.
    """

    method: str
    basis: tuple[str, ...] = ("coordinates",)  # those of its arrays that depend on the algebra alone
    tail: float | None = None

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        self.algebra, self.unknowns, self.targets = algebra, unknowns, targets
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.rows, self.counted, self.weight, self.square, self.square_H = 0, 0, 0.0, 0.0, 0.0

    def update(
        self,
        H: FloatArray,
        T: FloatArray,
        sample_weight: FloatArray | None = None,
        *,
        count: float | None = None,
        team: Team | None = None,
        known: Planes | None = None,
    ) -> None:
        """Take in a row block.

        `count` says for how many samples it stands where that is not the sum of the weights, as with weights that
        are costs; `team` does the independent pieces of work; `known` are planes of T, formed already.
        """
        namespace(H=H, T=T)
        H, T = self._shaped(H, self.unknowns, "H"), self._shaped(T, self.targets, "T")
        rows = H.shape[0]
        if rows != T.shape[0]:
            raise ValueError(f"`H` and `T` must have the same number of rows, got {rows} and {T.shape[0]}.")
        team = team or Team()
        weight = check_weight(sample_weight, rows)
        square_H, square = check_finite(H, "H", self.rows, team), known.square if known else None
        if square is None or not math.isfinite(square):
            square = check_finite(T, "T", self.rows, team)
        if weight is not None:
            roots = beside(np.sqrt(weight).astype(self.dtype), H)[:, None, None]
            with np.errstate(over="ignore"):  # which is_safe will tell
                H, T, known = H * roots, T * roots, None
            square_H, square = total_square(H, team), total_square(T, team)
        if count is None:
            count = rows if weight is None else float(weight.sum())
        self.rows += rows
        self.counted += rows if weight is None else int(np.count_nonzero(weight))
        self.weight += count
        self.square += square
        self.square_H += square_H
        self._add(H, T, team, known)

    def merge(self, other: Accumulator) -> None:
        """Take in the rows that `other` has seen."""
        if type(self) is not type(other) or self._kind() != other._kind():
            raise ValueError(
                "`other` must summarise rows of the same algebra, sizes and precision in the same way, "
                f"got {other!r} for {self!r}."
            )
        self._merge(other)
        self.rows += other.rows
        self.counted += other.counted
        self.weight += other.weight
        self.square += other.square
        self.square_H += other.square_H

    def _count_as(self, other: Accumulator) -> None:
        """Stand for the rows that `other` has seen."""
        self.rows, self.counted, self.weight = other.rows, other.counted, other.weight
        self.square, self.square_H = other.square, other.square_H

    @property
    def is_safe(self) -> bool:
        """Whether the numbers in the state are within the precision: lengths of columns, √Σ‖h‖² and √Σ‖t‖².

        The first are those of the columns of Φ_L(H), so they are multiplied by the size of the table. Those in single
        precision are known; in double precision squares are beyond it before lengths are.
        """
        if self.dtype != np.float32:
            return True
        _, factor = unit_algebra(self.algebra)
        length = math.hypot(factor * math.sqrt(self.square_H), math.sqrt(self.square))
        return length < 0.1 * float(np.finfo(self.dtype).max)

    def shows(self, residual: float) -> bool:
        """Whether a sum of squared residuals is more than rounding of the sums that it is the difference of.

        With targets far from zero it is not: most of their squares is what the bias explains.
        """
        return self.tail is not None or residual >= _ROUNDING * float(np.finfo(self.dtype).eps) * self.square

    def check_squares(self) -> None:
        """Refuse to choose a ridge: scores are made of squares of the targets, which are numbers only in a range."""
        info = np.finfo(np.float64)
        if 0 < self.square < info.tiny / info.eps or not self.square < 1e-6 * info.max:
            raise ValueError(
                "`ridge` must be a number, not chosen, for targets whose squares are beyond double precision: their "
                f"sum is {self.square:g}. Divide the targets by their size."
            )

    def _check_safe(self, hint: str) -> None:
        if not self.is_safe:
            of_H, of_T = (math.sqrt(square / self.rows) for square in (self.square_H, self.square))
            raise ValueError(
                f"{self.method!r} must have rows whose sums are numbers in {self.dtype}, got rows of a mean length of "
                f"{of_H:.0e} and targets of {of_T:.0e}. {hint}"
            )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays, which `restore` takes, also on another machine and in another release.

        rows : (), whole
        sums : (3,): `weight`, `square` and `tail`
        coordinates : (d, d), the block basis that the other arrays, those of the subclass, are in
        """
        rows, sums = np.array(self.rows, np.int64), np.array([self.weight, self.square, self.tail or 0.0])
        return {"rows": rows, "sums": sums, "coordinates": block_basis(self.algebra).coordinates}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Become the accumulator of the same algebra, sizes and precision that these are the `arrays` of."""
        mine = self.arrays()
        for name, array in mine.items():
            given = arrays.get(name)
            if given is None or given.shape != array.shape or given.dtype != array.dtype:
                raise ValueError(
                    f"The summary of rows must have {name!r} of shape {array.shape} and type {array.dtype}."
                )
        if not all(np.allclose(mine[name], arrays[name], rtol=0, atol=1e-8) for name in self.basis):
            raise ValueError("The summary of rows must be in the block basis that this release finds for the algebra.")
        self.rows = self.counted = int(arrays["rows"])
        self.weight, self.square, tail = arrays["sums"].tolist()
        self.tail = None if self.tail is None else tail

    @abstractmethod
    def _add(self, H: FloatArray, T: FloatArray, team: Team, known: Planes | None) -> None: ...

    @abstractmethod
    def _merge(self, other: Any) -> None: ...

    @abstractmethod
    def combined(self, C: NDArray[np.float64]) -> Accumulator:
        """What the accumulator of the targets TC would hold, C being (N, R) and real, but for their squares."""

    @abstractmethod
    def problems(self) -> Sequence[Problem]:
        """The least-squares problem of every block of the algebra."""

    def numbers(self, xs: Sequence[Array]) -> FloatArray:
        """The unknowns of all blocks as hypercomplex numbers X, (L, N, d)."""
        if self.algebra.dim == 1:
            return xs[0][:, :, None]
        basis = block_basis(self.algebra)
        image = scratch((self.algebra.dim, self.unknowns, self.targets), self.dtype)
        for x, at, block in zip(xs, basis.coordinate_slices, basis.blocks):
            put_coordinates(x, image[at], block)
        return from_planes(image, basis.coordinates)

    def unknowns_of(self, rows: NDArray[np.intp], problem: Problem) -> NDArray[np.intp]:
        """The unknowns of a block that make up the given rows of X; a block has its own rows outermost."""
        within = self.unknowns * np.arange(problem.size // max(self.unknowns, 1))
        return (within[:, None] + rows).ravel()

    def _kind(self) -> tuple[Any, ...]:
        return self.algebra, self.unknowns, self.targets, self.dtype

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.algebra.name or self.algebra.dim}, unknowns={self.unknowns}, "
            f"targets={self.targets}, dtype={self.dtype}, rows={self.rows})"
        )

    def _shaped(self, array: Any, columns: int, name: str) -> FloatArray:
        array = as_hypercomplex(array, self.algebra, name, axes=2)
        if array.ndim != 3 or array.shape[1] != columns:
            raise ValueError(
                f"`{name}` must have shape (rows, {columns}, {self.algebra.dim}), got {tuple(array.shape)}."
            )
        return as_precision(detached(array), self.dtype)


def check_finite(array: FloatArray, name: str, before: int = 0, team: Team | None = None) -> float:
    """Σ x², refusing NaN and infinity and naming their row, counted from `before`. A finite sum is proof enough.

    Numbers so large that lengths made of them would leave double precision are refused, too.
    """
    square = total_square(array, team or Team())
    if math.isfinite(square):
        return square
    array = to_numpy(array)
    bad = ~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if bad.any():
        row = int(np.argmax(bad))
        value = array[row][~np.isfinite(array[row])][0]
        raise ValueError(f"`{name}` must be finite, got {value} in row {before + row}. Remove or impute such rows.")
    largest = float(np.abs(array).max())
    if largest > _LARGEST:
        raise ValueError(f"`{name}` must be at most {_LARGEST:g}, got {largest:g}. Divide it by its size.")
    return square


def check_weight(sample_weight: Any, rows: int) -> NDArray[np.float64] | None:
    """One weight for each row, in NumPy and double precision wherever the rows are: they are few beside the rows."""
    if sample_weight is None:
        return None
    weight = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    if weight.shape != (rows,):
        raise ValueError(f"`sample_weight` must have one weight for each of the {rows} rows, got shape {weight.shape}.")
    bad = ~(weight >= 0) | np.isinf(weight)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"`sample_weight` must be finite and not negative, got {weight[row]:g} in row {row}. Leave such rows out."
        )
    if (largest := weight.max(initial=0)) > _HEAVIEST:
        raise ValueError(
            f"`sample_weight` must be at most {_HEAVIEST:g}, got {largest:g}. Weights count samples: give them a "
            "mean of 1."
        )
    return weight
