"""All ridges from one decomposition: the weights and their score by generalised cross-validation.

The real problem is Φ_L(A) φ(X) ≈ φ(B), with n = d Σw rows. Its hat matrix P_λ takes the targets to their predictions.
Generalised cross-validation (GCV) chooses the ridge with the smallest score

    GCV(λ) = n ‖(1 - P_λ) φ(B)‖² / (n - γ tr P_λ)²

on a path of ridges. Once the free unknowns are projected out and the singular values σ of every block are known, each
further λ costs next to nothing:

- the residual is ‖(1 - P_λ) φ(B)‖² = tail + Σ (λ/(σ²+λ))² |z|², where no λ explains the tail (`_residuals`),
- the degrees of freedom are tr P_λ = rank - Σ λ/(σ²+λ) (`gcv`),
- the weights are V diag(σ/(σ²+λ)) z (`solution`).

γ = 1 is the classical score. It tends to choose too small a ridge: with repeated rows, heavy tails or few distinct
values it takes ridges near zero. γ > 1 makes every degree of freedom cost more.

The path of ridges has two ends. The upper one is σ₁²/eps, where σ₁ is the largest singular value. There the penalised
weights vanish to rounding, and the unpenalised bias predicts the mean. The lower end is the higher of two floors.

- Rounding: below the `floor` of a problem, the accumulator does not show what a ridge does.
- Extrapolation: a small ridge must not let predictions of new rows explode. The bound follows in four steps.

  1. The ridges above λ leave residuals r. What λ adds to the weights has a norm of at most ‖r‖/(2√λ).
  2. Along their main direction the rows have a root mean square of σ₁/√n. So what λ adds to the prediction of a new
     row of that length, in whatever direction it points, is at most ‖r‖/√n · σ₁/(2√λ).
  3. This must not be more than 500 times the root mean square of the targets, ‖t‖/√n. That is the condition

         λ/σ₁² >= 1e-6 ‖r‖²/‖t‖².

  4. The share ‖r‖²/‖t‖² is taken from the scores of the ridges above λ. So the floor is 1e-6 for targets with noise. It
     is lower only where more and more of the targets is explained.

Where labels follow from the largest output, an output that is far off costs no more than one label. There γ is 1, and
only rounding has a floor (`Caution`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import limits
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.problem import Problem, Reduced
from hyperelm._validation import FloatArray

PER_DECADE = 10  # ridges that GCV looks at


class Caution(NamedTuple):
    """What keeps the choice of a ridge from too small ones.

    freedom : γ, what a degree of freedom costs
    extrapolation : the smallest ridge on a path for targets with noise, relative to σ₁²
    """

    freedom: float
    extrapolation: float


VALUES = Caution(freedom=1.4, extrapolation=1e-6)  # of targets that are values
LABELS = Caution(freedom=1.0, extrapolation=0.0)  # of targets that are the indicators of labels


class ChoiceByGCV(NamedTuple):
    """The ridge with the best score, and how far the accumulator shows that.

    seen : whether the residual is more than rounding
    cut_off : whether a ridge that is too small for the accumulator to show may be better
    is_bias_only : whether only the unknowns without a penalty are left, and these leave a residual
    """

    ridge: float
    seen: bool
    cut_off: bool
    is_bias_only: bool


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
        """Ridges from the floor of rounding to 100 σ₁², evenly on a logarithmic scale, and σ₁²/eps for the bias alone.

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
        return np.append(square * even, square / float(np.finfo(self.accumulator.dtype).eps))

    def shares(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ridges in units of σ₁²."""
        return np.asarray(ridges / self.largest / self.largest)

    def degrees_left(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the degrees of freedom of the penalised unknowns that each ridge takes away."""
        taken = sum(part.multiplicity * part.shrinkage(ridges).sum(axis=1) for part in self.parts)
        return np.asarray(taken / sum(part.multiplicity * len(part.sigma) for part in self.parts))

    def _seen(self) -> list[NDArray[np.bool_]]:
        """Which singular values of every block are not zero."""
        return [part.sigma > default_rtol(self.accumulator) * self.largest for part in self.parts]

    def gcv(self, ridges: NDArray[np.float64], caution: Caution = VALUES) -> NDArray[np.float64]:
        """The scores of ridges; infinite where γ tr P_λ >= n, so that no degrees of freedom are left."""
        n, seen = self.accumulator.algebra.dim * self.accumulator.weight, self._seen()
        ranks = [reduced.root.shape[1] + int(kept.sum()) for reduced, kept in zip(self.reduced, seen)]
        # n - γ tr P = (n - γ rank) + γ Σ λ/(σ²+λ) over the singular values that are not zero: in this order the digits
        # are kept where γ tr P is close to n.
        rank = sum(part.multiplicity * rank for part, rank in zip(self.parts, ranks))
        degrees_left = np.full(len(ridges), n - caution.freedom * rank)
        for part, kept in zip(self.parts, seen):
            degrees_left += caution.freedom * part.multiplicity * part.shrinkage(ridges)[:, kept].sum(axis=1)
        numerators = n * self._residuals(ridges)
        return np.divide(numerators, degrees_left**2, out=np.full(len(ridges), np.inf), where=degrees_left > 0)

    def _residuals(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖(1 - P_λ) φ(B)‖²."""
        tail = self.accumulator.unexplained
        if tail is None:
            seen = sum(part.explained for part in self.reduced) + sum(float(s.energies().sum()) for s in self.parts)
            tail = max(self.accumulator.square - seen, 0.0)
        tail += sum(part.beyond for part in self.parts)
        of_parts = (part.shrinkage(ridges) ** 2 @ part.energies() for part in self.parts)
        return np.asarray(sum(of_parts, np.full(len(ridges), tail)))

    def resolution(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The squared error of a row, summed over its targets, that rounding alone may cause, for every ridge.

        A prediction is a sum of numbers of the size ‖h‖‖x_λ‖, with ‖h‖ = σ₁/√n along the main direction of the rows.
        """
        square = np.zeros(len(ridges))
        for part, seen in zip(self.parts, self._seen()):
            sigma = np.asarray(part.sigma[seen], np.float64)
            gains = 1 / (sigma + ridges[:, None] / sigma)  # σ/(σ²+λ), also where σ² underflows
            square += gains**2 @ part.energies()[seen]
        eps = float(np.finfo(self.accumulator.dtype).eps)
        return (10 * eps * self.largest) ** 2 * square / max(self.accumulator.weight, 1.0)

    def best_by_gcv(self, caution: Caution = VALUES) -> ChoiceByGCV:
        """The ridge on the path with the smallest score; the largest where none has one."""
        accumulator, ridge, cut_off, is_largest = self.accumulator, 0.0, False, False
        if self.largest > 0:
            accumulator.check_squares()
            ridges = self.path()
            scores, shares = self.gcv(ridges, caution), self.shares(ridges)
            best = len(ridges) - 1
            if np.isfinite(scores).any():
                best = best_permitted(shares, scores, caution)
            else:
                warnings.warn(
                    "No ridge leaves more samples than unknowns, so the largest was taken: weights count samples, and "
                    f"their sum is {accumulator.weight:g} on {accumulator.n_rows} rows. Give them a mean of 1, or a "
                    "ridge.",
                    stacklevel=2,
                )
            ridge, is_largest = float(ridges[best]), best == len(ridges) - 1
            # Normal equations may hide singular values. The choice is cut off if scores still fall where these begin.
            lowest = self.floor * self.largest * self.largest
            if accumulator.tail is None and any((part.sigma**2 <= lowest).any() for part in self.parts):
                cut_off = bool(scores[0] < scores[PER_DECADE] and is_permitted(shares, scores, caution)[0])
        residual = float(self._residuals(np.array([ridge]))[0])
        rounding = float(np.finfo(accumulator.dtype).eps) * accumulator.square
        return ChoiceByGCV(ridge, accumulator.shows(residual), cut_off, is_largest and residual > rounding)

    def solution(self, ridge: float, rtol: float) -> FloatArray:
        """The weights, (L, N, d), without the singular values up to this share of the largest."""
        cutoff = rtol * self.largest
        xs = [part.restore(spectral.solution(ridge, cutoff)) for part, spectral in zip(self.reduced, self.parts)]
        return self.accumulator.coef(xs)


def best_permitted(
    shares: NDArray[np.float64], scores: NDArray[np.float64], caution: Caution = VALUES, rounding: float = 0.0
) -> int:
    """The place on a path of the best ridge that extrapolation permits; of equally good ones the largest.

    `shares` are the ridges in units of σ₁². Scores that differ by no more than `rounding` count as equal.
    """
    permitted = is_permitted(shares, scores, caution)
    best = scores[permitted].min()
    return int(np.flatnonzero(permitted & (scores <= best + rounding))[-1])


def is_permitted(
    shares: NDArray[np.float64], scores: NDArray[np.float64], caution: Caution = VALUES
) -> NDArray[np.bool_]:
    """Which ridges of a path are above the floor of extrapolation, given their scores.

    Ridge k is permitted if two conditions hold. Every larger ridge is permitted. And λ_k/σ₁² is at least
    `caution.extrapolation` times u_k. Here u_k is the share of the targets that the larger ridges leave unexplained:
    the best of their scores, divided by the last score, which is that of the bias alone.
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

    def reduced() -> list[Reduced]:
        return [problem.without(accumulator.unknowns_of(numbers, problem), rtol) for problem in problems]

    found: list[Reduced] = accumulator.remembered("reduced", tuple(free), reduced) if problems else []
    return found


def factors_of(accumulator: Accumulator, reduced: Sequence[Reduced], ridge: float) -> list[Any] | None:
    """The Cholesky decompositions of all problems with this ridge; None where rounding has left one indefinite."""
    found: list[Any] | None = accumulator.held("factors", _factors_key(reduced, ridge))
    if found is None:
        found = [factor for part in reduced if (factor := part.problem.cholesky(ridge)) is not None]
    return found if len(found) == len(reduced) else None


def hold_factors(accumulator: Accumulator, reduced: Sequence[Reduced], ridge: float, factors: list[Any]) -> None:
    """Keep the decompositions for whatever takes the same ridge next."""
    accumulator.hold("factors", _factors_key(reduced, ridge), factors)


def _factors_key(reduced: Sequence[Reduced], ridge: float) -> tuple[float, ...]:
    """What tells the decompositions of one accumulator apart: the ridge, and the unknowns that it does not penalise."""
    return ridge, *(int(unknown) for part in reduced for unknown in part.free)


def default_rtol(accumulator: Accumulator) -> float:
    """Singular values below this share of the largest count as zero: eps times the larger side of the matrix."""
    side = accumulator.algebra.dim * max(accumulator.n_rows, accumulator.unknowns)
    return float(np.finfo(accumulator.dtype).eps * side)
