"""All ridges from one decomposition: the weights and their score by generalised cross-validation.

Of the real problem Φ_L(A) φ(X) ≈ φ(B), with n = d Σw rows and the hat matrix S_λ, generalised cross-validation
minimises

    GCV(λ) = n ‖(1 - S_λ) φ(B)‖² / (n - tr S_λ)²

over a path of ridges. With the singular values of each block, from which the unpenalised unknowns were projected out,
both curves, and X_λ, cost next to nothing for another λ.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyperelm._validation import FloatArray
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Problem, Reduced

PER_DECADE = 10  # ridges that GCV looks at
_ROUNDING = 100  # times eps of the squares of the targets


class Spectrum:
    """The singular values of every block of the problem that `state` summarises.

    Parameters
    ----------
    state : Accumulator
    free : rows of X that no ridge penalises
    problems : what `state.problems()` gives, where it is known already
    """

    def __init__(self, state: Accumulator, free: Sequence[int] = (), problems: Sequence[Problem] | None = None) -> None:
        self.state = state
        self.reduced = project_out(state, state.problems() if problems is None else problems, free)
        self.parts = [part.problem.spectral() for part in self.reduced]
        self.largest = max((float(part.sigma[0]) for part in self.parts if len(part.sigma)), default=0.0)

    @property
    def is_whole(self) -> bool:
        """Whether the singular values are those of Φ_L(A): no unknowns were projected out."""
        return not any(len(part.free) for part in self.reduced)

    @property
    def floor(self) -> float:
        """The smallest ridge, relative to the largest eigenvalue, that rounding in the summary lets one see."""
        return max(part.problem.floor for part in self.reduced)

    def path(self, per_decade: int = PER_DECADE) -> NDArray[np.float64]:
        """Ridges from above the floor to 100 times the largest eigenvalue, evenly on a logarithmic scale.

        Relative to that eigenvalue they are powers of ten, so the paths of two spectra match from their ends down.
        """
        info, square = np.finfo(np.float64), self.largest * self.largest
        if not info.tiny / info.eps < square < info.max * info.eps:
            raise ValueError(
                "`ridge` must be a number, not searched for, for columns whose squares are beyond double precision: "
                f"their largest singular value is {self.largest:g}. Divide the columns by their size."
            )
        lowest = int(np.ceil(per_decade * np.log10(self.floor)))
        return np.asarray(square * 10.0 ** (np.arange(lowest, 2 * per_decade + 1) / per_decade))

    def gcv(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of ridges; infinite where as many unknowns as rows are left."""
        rows = self.state.algebra.dim * self.state.weight
        seen = [part.sigma > default_rtol(self.state) * self.largest for part in self.parts]
        ranks = [reduced.root.shape[1] + int(kept.sum()) for reduced, kept in zip(self.reduced, seen)]
        # n - tr S = (n - rank) + Σ λ/(σ²+λ) over the singular values that are not zero: in this order the digits are
        # kept where tr S is close to n.
        left = np.full(len(ridges), rows - sum(part.multiplicity * rank for part, rank in zip(self.parts, ranks)))
        for part, kept in zip(self.parts, seen):
            left += part.multiplicity * part.shrinkage(ridges)[:, kept].sum(axis=1)
        scores = rows * self._residuals(ridges)
        return np.divide(scores, left**2, out=np.full(len(ridges), np.inf), where=left > 0)

    def sees_residual(self, ridge: float) -> bool:
        """Whether the residual that GCV goes by is more than rounding of the sums that it is the difference of.

        With targets far from zero it is not: most of their squares is what the bias explains.
        """
        if self.state.tail is not None:
            return True
        rounding = _ROUNDING * float(np.finfo(self.state.dtype).eps) * self.state.square
        return bool(self._residuals(np.array([ridge]))[0] >= rounding)

    def is_cut_off(self) -> bool:
        """Whether normal equations hide singular values, and the scores still fall at the smallest ridge they show."""
        if self.state.tail is not None:
            return False
        lowest = self.floor * self.largest * self.largest
        if not any((part.sigma**2 <= lowest).any() for part in self.parts):
            return False
        below, above = self.gcv(np.array([lowest, 10 * lowest]))
        return bool(below < above)

    def _residuals(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖(1 - S_λ) φ(B)‖²."""
        tail = self.state.tail
        if tail is None:
            seen = sum(part.explained for part in self.reduced) + sum(float(s.energies().sum()) for s in self.parts)
            tail = max(self.state.square - seen, 0.0)
        tail += sum(part.beyond for part in self.parts)
        return np.asarray(
            sum((part.shrinkage(ridges) ** 2 @ part.energies() for part in self.parts), np.full(len(ridges), tail))
        )

    def best_by_gcv(self) -> float:
        """The ridge on the path with the smallest score; the largest where none has one."""
        if self.largest == 0:
            return 0.0
        self._check_squares()
        per_decade = PER_DECADE
        while len(ridges := self.path(per_decade)) < 50:  # in single precision rounding leaves few decades
            per_decade += PER_DECADE
        scores = self.gcv(ridges)
        if not np.isfinite(scores).any():
            warnings.warn(
                "No ridge leaves more samples than unknowns, so the largest was taken: weights count samples, and "
                f"their sum is {self.state.weight:g} on {self.state.rows} rows. Give them a mean of 1, or a ridge.",
                stacklevel=2,
            )
            return float(ridges[-1])
        return float(ridges[int(np.argmin(scores))])

    def _check_squares(self) -> None:
        """Scores are made of squares of the targets, which are numbers only up to a size, and from one on."""
        square, info = self.state.square, np.finfo(np.float64)
        vanish = square < info.tiny / info.eps and any(part.z.any() for part in self.parts)
        if vanish or not np.isfinite(square):
            raise ValueError(
                "`ridge` must be a number, not 'gcv', for targets whose squares are beyond double precision: their "
                f"sum is {square:g}. Divide the targets by their size."
            )

    def solution(self, ridge: float, rtol: float) -> FloatArray:
        """X, (L, N, d), without the singular values up to this share of the largest."""
        cutoff = rtol * self.largest
        xs = [part.restore(spectral.solution(ridge, cutoff)) for part, spectral in zip(self.reduced, self.parts)]
        return self.state.numbers(xs)


def project_out(state: Accumulator, problems: Sequence[Problem], free: Sequence[int]) -> list[Reduced]:
    """The problems without some rows of X."""
    if len(free) == 0:
        return [Reduced.unchanged(problem) for problem in problems]
    rows, rtol = np.asarray(free, dtype=np.intp), default_rtol(state)
    return [problem.without(state.unknowns_of(rows, problem), rtol) for problem in problems]


def default_rtol(state: Accumulator) -> float:
    """Singular values below this share of the largest count as zero: eps times the larger side of the matrix."""
    return float(np.finfo(state.dtype).eps * state.algebra.dim * max(state.rows, state.unknowns))
