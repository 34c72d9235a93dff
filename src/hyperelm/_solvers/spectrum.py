"""All ridges from one decomposition: the weights and their score by generalised cross-validation.

Of the real problem Φ_L(A) φ(X) ≈ φ(B), with n = d Σw rows and the hat matrix P_λ, generalised cross-validation
minimises

    GCV(λ) = n ‖(1 - P_λ) φ(B)‖² / (n - γ tr P_λ)²

over a path of ridges. With the singular values of each block, from which the unpenalised unknowns were projected out,
both curves, and X_λ, cost next to nothing for another λ.

γ = 1 is the classical score. It undersmooths: with repeated rows, heavy tails or few distinct values it takes ridges
near zero. γ > 1 makes every degree of freedom cost more.

The path has two ends. The upper one is σ₁²/eps, σ₁ being the largest singular value: there the penalised weights
vanish to rounding, and the unpenalised bias predicts the mean. The lower one is the higher of two floors.

- Rounding: below `Problem.floor` the accumulator does not show what a ridge does.
- Extrapolation: rows are left unexplained by the ridges above λ, with residuals r. What λ adds to the weights has a
  norm of at most ‖r‖/(2√λ). Along their main direction the rows have a root mean square of σ₁/√n. So what λ adds to
  the prediction of a new row of that length, in whatever direction it points, is at most

      ‖r‖/√n · σ₁/(2√λ).

  This must not be more than 500 times the root mean square of the targets, which is λ/σ₁² >= 1e-6 ‖r‖²/‖t‖². The share
  ‖r‖²/‖t‖² is taken from the scores of the ridges above λ. So the floor is 1e-6 for targets with noise, and lower only
  where more and more of the targets is explained.

Where labels follow from the largest output, an output that is far off costs no more than one label. There γ is 1, and
only rounding has a floor (`Caution`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import limits
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.problem import Problem, Reduced
from hyperelm._validation import FloatArray

PER_DECADE = 10  # ridges that GCV looks at


class Caution(NamedTuple):
    """How the choice of a ridge is kept from too small ones.

    freedom : γ, what a degree of freedom costs
    extrapolation : the smallest ridge on a path for targets with noise, relative to σ₁²
    """

    freedom: float
    extrapolation: float


VALUES = Caution(freedom=1.4, extrapolation=1e-6)  # of targets that are values
LABELS = Caution(freedom=1.0, extrapolation=0.0)  # of targets that are the indicators of labels


class Spectrum:
    """The singular values of every block of the problem that `accumulator` summarises.

    Parameters
    ----------
    accumulator : Accumulator
    free : unknowns that no ridge penalises
    problems : what `accumulator.problems()` gives, where it is known already
    """

    def __init__(
        self, accumulator: Accumulator, free: Sequence[int] = (), problems: Sequence[Problem] | None = None
    ) -> None:
        self.accumulator = accumulator
        self.reduced = project_out(accumulator, accumulator.problems() if problems is None else problems, free)
        self.parts = [part.problem.spectral() for part in self.reduced]
        self.largest = max((float(part.sigma[0]) for part in self.parts if len(part.sigma)), default=0.0)

    @property
    def is_whole(self) -> bool:
        """Whether the singular values are those of Φ_L(A): no unknowns were projected out."""
        return not any(len(part.free) for part in self.reduced)

    @property
    def floor(self) -> float:
        """The smallest ridge, relative to the largest eigenvalue, that rounding in the accumulator lets one see."""
        return max(part.problem.floor for part in self.reduced)

    def path(self, per_decade: int = PER_DECADE) -> NDArray[np.float64]:
        """Ridges from the floor of rounding to 100 σ₁², evenly on a logarithmic scale, and one for the bias alone.

        Relative to σ₁² they are powers of ten, so the paths of two spectra match from their ends down.
        """
        square = self.largest * self.largest
        if square == 0 or not limits.is_sum(square):
            raise limits.refused(
                "ridge",
                "be a number, not searched for, for columns whose squares are beyond double precision",
                f"columns with a largest singular value of {self.largest:g}",
                "Divide the columns by their size.",
            )
        lowest = int(np.ceil(per_decade * np.log10(self.floor)))
        even = 10.0 ** (np.arange(lowest, 2 * per_decade + 1) / per_decade)
        return np.append(square * even, self.largest_ridge)

    def shares(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ridges in units of σ₁²."""
        return np.asarray(ridges / self.largest / self.largest)

    @property
    def largest_ridge(self) -> float:
        """The ridge from which on the penalised weights are zero to rounding."""
        return self.largest * self.largest / float(np.finfo(self.accumulator.dtype).eps)

    def is_bias_only(self, ridge: float) -> bool:
        """Whether a ridge leaves nothing but the unknowns that it does not penalise, and these leave a residual."""
        if self.largest == 0 or ridge < self.largest_ridge:
            return False
        return bool(
            self._residuals(np.array([ridge]))[0]
            > float(np.finfo(self.accumulator.dtype).eps) * self.accumulator.square
        )

    def gcv(self, ridges: NDArray[np.float64], caution: Caution = VALUES) -> NDArray[np.float64]:
        """The scores of ridges; infinite where γ tr P_λ >= n, so that no degrees of freedom are left."""
        n = self.accumulator.algebra.dim * self.accumulator.weight
        seen = [part.sigma > default_rtol(self.accumulator) * self.largest for part in self.parts]
        ranks = [reduced.root.shape[1] + int(kept.sum()) for reduced, kept in zip(self.reduced, seen)]
        # n - γ tr P = (n - γ rank) + γ Σ λ/(σ²+λ) over the singular values that are not zero: in this order the digits
        # are kept where γ tr P is close to n.
        rank = sum(part.multiplicity * rank for part, rank in zip(self.parts, ranks))
        degrees_left = np.full(len(ridges), n - caution.freedom * rank)
        for part, kept in zip(self.parts, seen):
            degrees_left += caution.freedom * part.multiplicity * part.shrinkage(ridges)[:, kept].sum(axis=1)
        numerators = n * self._residuals(ridges)
        return np.divide(numerators, degrees_left**2, out=np.full(len(ridges), np.inf), where=degrees_left > 0)

    def resolution(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The squared error of a row, summed over its targets, that rounding alone may cause, for every ridge.

        A prediction is a sum of numbers of the size ‖h‖‖x_λ‖, with ‖h‖ = σ₁/√n along the main direction of the rows.
        """
        square = np.zeros(len(ridges))
        for part in self.parts:
            seen = part.sigma > default_rtol(self.accumulator) * self.largest
            sigma = np.asarray(part.sigma[seen], np.float64)
            gains = 1 / (sigma + ridges[:, None] / sigma)  # σ/(σ²+λ), also where σ² underflows
            square += gains**2 @ part.energies()[seen]
        eps = float(np.finfo(self.accumulator.dtype).eps)
        return (10 * eps * self.largest) ** 2 * square / max(self.accumulator.weight, 1.0)

    def sees_residual(self, ridge: float) -> bool:
        """Whether the residual that GCV goes by is more than rounding."""
        return self.accumulator.shows(float(self._residuals(np.array([ridge]))[0]))

    def is_cut_off(self, caution: Caution) -> bool:
        """Whether normal equations hide singular values, and the scores still fall at the smallest ridge they show."""
        if self.accumulator.tail is not None or self.largest == 0:
            return False
        lowest = self.floor * self.largest * self.largest
        if not any((part.sigma**2 <= lowest).any() for part in self.parts):
            return False
        ridges = self.path()
        scores = self.gcv(ridges, caution)
        return bool(scores[0] < scores[PER_DECADE] and is_permitted(self.shares(ridges), scores, caution)[0])

    def _residuals(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖(1 - P_λ) φ(B)‖²."""
        tail = self.accumulator.tail
        if tail is None:
            seen = sum(part.explained for part in self.reduced) + sum(float(s.energies().sum()) for s in self.parts)
            tail = max(self.accumulator.square - seen, 0.0)
        tail += sum(part.beyond for part in self.parts)
        return np.asarray(
            sum((part.shrinkage(ridges) ** 2 @ part.energies() for part in self.parts), np.full(len(ridges), tail))
        )

    def best_by_gcv(self, caution: Caution = VALUES) -> float:
        """The ridge on the path with the smallest score; the largest where none has one."""
        if self.largest == 0:
            return 0.0
        self.accumulator.check_squares()
        ridges = self.path()
        scores = self.gcv(ridges, caution)
        weight, n_rows = self.accumulator.weight, self.accumulator.n_rows
        if not np.isfinite(scores).any():
            warnings.warn(
                "No ridge leaves more samples than unknowns, so the largest was taken: weights count samples, and "
                f"their sum is {weight:g} on {n_rows} rows. Give them a mean of 1, or a ridge.",
                stacklevel=2,
            )
            return float(ridges[-1])
        return float(ridges[best_permitted(self.shares(ridges), scores, caution)])

    def solution(self, ridge: float, rtol: float) -> FloatArray:
        """X, (L, N, d), without the singular values up to this share of the largest."""
        cutoff = rtol * self.largest
        xs = [part.restore(spectral.solution(ridge, cutoff)) for part, spectral in zip(self.reduced, self.parts)]
        return self.accumulator.coef(xs)


def best_permitted(
    shares: NDArray[np.float64], scores: NDArray[np.float64], caution: Caution = VALUES, rounding: float = 0.0
) -> int:
    """The number of the best ridge on a path among those that extrapolation permits; of equal ones the largest.

    `shares` are the ridges in units of σ₁²; differences of scores up to `rounding` say nothing.
    """
    permitted = is_permitted(shares, scores, caution)
    best = scores[permitted].min()
    return int(np.flatnonzero(permitted & (scores <= best + rounding))[-1])


def is_permitted(
    shares: NDArray[np.float64], scores: NDArray[np.float64], caution: Caution = VALUES
) -> NDArray[np.bool_]:
    """Which ridges of a path are above the floor of extrapolation, given their scores.

    Ridge k is permitted if two conditions hold. Every larger ridge is permitted. And λ_k/σ₁² is at least
    `caution.extrapolation` times u_k, the share of the targets that the larger ridges leave unexplained: the best of
    their scores, divided by the score of the bias alone, which is the last.
    """
    of_bias = scores[-1]
    best_above = np.minimum.accumulate(np.append(scores[1:], of_bias)[::-1])[::-1]
    unexplained = best_above / of_bias if 0 < of_bias < np.inf else np.ones(len(scores))
    # Ridges below eps count as eps: they cannot be told from no ridge.
    enough = np.maximum(shares, np.finfo(np.float64).eps) >= (1 - 1e-9) * caution.extrapolation * unexplained
    enough[-1] = True
    return np.asarray(np.logical_and.accumulate(enough[::-1])[::-1])


def project_out(accumulator: Accumulator, problems: Sequence[Problem], free: Sequence[int]) -> list[Reduced]:
    """The problems without the free unknowns."""
    if len(free) == 0:
        return [Reduced.unchanged(problem) for problem in problems]
    numbers, rtol = np.asarray(free, dtype=np.intp), default_rtol(accumulator)
    return [problem.without(accumulator.unknowns_of(numbers, problem), rtol) for problem in problems]


def default_rtol(accumulator: Accumulator) -> float:
    """Singular values below this share of the largest count as zero: eps times the larger side of the matrix."""
    return float(
        np.finfo(accumulator.dtype).eps * accumulator.algebra.dim * max(accumulator.n_rows, accumulator.unknowns)
    )
