"""From the summary of the rows to the weights: ridge, and its choice by generalised cross-validation.

Of the real problem Φ_L(A) φ(X) ≈ φ(B), with n = d Σw rows and the hat matrix S_λ, generalised cross-validation
minimises

    GCV(λ) = n ‖(1 - S_λ) φ(B)‖² / (n - tr S_λ)²

over a path of ridges, both curves coming from one decomposition of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._memory import scratch_copy
from hyperelm._validation import FloatArray
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, Factor, NormalEquations, Problem, Reduced, Spectral
from hyperelm.solvers.team import one_blas

PER_DECADE = 10  # ridges that GCV looks at


@dataclass(frozen=True)
class Solution:
    """The weights and what is known about them.

    x : (L, N, d)
    rank, condition : those of Φ_L(A)
    largest : the largest singular value of Φ_L(A)
    ridge : the penalty that was used
    """

    x: FloatArray
    rank: int
    condition: float
    largest: float
    ridge: float


def default_rtol(dtype: np.dtype[Any], rows: int, columns: int) -> float:
    """Singular values below this share of the largest count as zero: eps times the larger side of the matrix."""
    return float(np.finfo(dtype).eps * max(rows, columns))


def solve(
    state: Accumulator, ridge: float | str = 0.0, *, free: Sequence[int] = (), rtol: float | None = None
) -> Solution:
    """The least-squares solution of the rows that `state` has seen.

    `ridge` is a number or "gcv"; `free` names rows of X that it does not penalise; `rtol` cuts singular values
    relative to the largest.
    """
    if state.unknowns == 0:
        return Solution(np.zeros((0, state.targets, state.algebra.dim), state.dtype), 0, 1.0, 0.0, 0.0)
    with one_blas():
        return _solve(state, ridge, free, rtol)


def _solve(state: Accumulator, ridge: float | str, free: Sequence[int], rtol: float | None) -> Solution:
    problems = state.problems()
    if ridge != "gcv" and rtol is None and (normal := _normal_equations(problems)):
        solution = _by_cholesky(state, normal, float(ridge), free)
        if solution is not None:
            return solution
    return _by_spectrum(state, problems, ridge, free, rtol)


def _normal_equations(problems: Sequence[Problem]) -> list[NormalEquations]:
    """The problems, if they are all given by normal equations; else none."""
    normal = [problem for problem in problems if isinstance(problem, NormalEquations)]
    return normal if len(normal) == len(problems) else []


def _by_cholesky(
    state: Accumulator, problems: Sequence[NormalEquations], ridge: float, free: Sequence[int]
) -> Solution | None:
    """From AᴴA + λ = RᴴR, or None where rounding has left too little of AᴴA for that."""
    xs, factors = [], []
    for problem, reduced in zip(problems, _reduce(state, problems, ridge, free)):
        factor = reduced.problem.cholesky(ridge)
        if factor is None:
            return None
        cross = scratch_copy(reduced.problem.cross)
        xs.append(reduced.restore(linalg.cho_solve(factor, cross, overwrite_b=True, check_finite=False)))
        factors.append(factor if ridge == 0 else problem.cholesky(0.0))
    known = _from_extremes(state, problems, factors)
    if known is None and ridge == 0:
        return None
    rank, condition, largest = known or _from_values(state, problems, [p.singular_values() for p in problems], None)
    return Solution(state.numbers(xs), rank, condition, largest, ridge)


def _by_spectrum(
    state: Accumulator,
    problems: Sequence[Problem],
    ridge: float | str,
    free: Sequence[int],
    rtol: float | None,
) -> Solution:
    """From the singular value decomposition of every block."""
    reduced = _reduce(state, problems, ridge, free)
    spectra = [part.problem.spectral() for part in reduced]
    penalty = _gcv(state, reduced, spectra) if ridge == "gcv" else float(ridge)
    if reduced[0].problem is problems[0]:
        rank, condition, largest = _from_values(state, problems, [spectrum.sigma for spectrum in spectra], rtol)
    else:
        rank, condition, largest = _rank_and_condition(state, problems, rtol)
    if rtol is None:
        rtol = _default_rtol(state) if penalty == 0 else 0.0
    cutoff = rtol * _largest(spectra)
    xs = [part.restore(spectrum.solution(penalty, cutoff)) for part, spectrum in zip(reduced, spectra)]
    return Solution(state.numbers(xs), rank, condition, largest, penalty)


def _reduce(state: Accumulator, problems: Sequence[Problem], ridge: float | str, free: Sequence[int]) -> list[Reduced]:
    """The problems without the unknowns that the ridge does not penalise; unchanged where there is no ridge."""
    if ridge == 0 or len(free) == 0:
        return [Reduced(problem, lambda x: x, 0.0) for problem in problems]
    rows = np.asarray(free, dtype=np.intp)
    return [problem.without(state.unknowns_of(rows, problem)) for problem in problems]


def _gcv(state: Accumulator, reduced: Sequence[Reduced], spectra: Sequence[Spectral]) -> float:
    """The ridge on the path with the smallest GCV score."""
    largest = _largest(spectra)
    if largest == 0:
        return 0.0
    ridges = largest**2 * _path(max(part.problem.floor for part in reduced))
    rows = state.algebra.dim * state.weight
    if state.tail is None:
        seen = sum(part.explained for part in reduced) + sum(float(s.energies().sum()) for s in spectra)
        unexplained = max(state.square - seen, 0.0)
    else:
        unexplained = state.tail
    rss = np.full(len(ridges), unexplained)
    # n - tr S, the free unknowns included in dL; sums of λ/(σ²+λ) keep their digits where tr S is close to n.
    left = np.full(len(ridges), float(rows - state.algebra.dim * state.unknowns))
    for spectrum in spectra:
        shrinkage = spectrum.shrinkage(ridges)
        rss += shrinkage**2 @ spectrum.energies()
        left += spectrum.multiplicity * (shrinkage.sum(axis=1) + len(spectrum.V) - len(spectrum.sigma))
    score = np.divide(rows * rss, left**2, out=np.full(len(ridges), np.inf), where=left > 0)
    return float(ridges[int(np.argmin(score))]) if np.any(left > 0) else float(ridges[-1])


def _path(floor: float) -> NDArray[np.float64]:
    """Ridges relative to the largest eigenvalue, from above `floor` to 100, evenly on a logarithmic scale."""
    per_decade = PER_DECADE
    while (2 - np.log10(floor)) * per_decade < 50:
        per_decade += PER_DECADE
    lowest = int(np.ceil(per_decade * np.log10(floor)))
    return np.asarray(10.0 ** (np.arange(lowest, 2 * per_decade + 1) / per_decade))


def _largest(spectra: Sequence[Spectral]) -> float:
    return max((float(spectrum.sigma[0]) for spectrum in spectra if len(spectrum.sigma)), default=0.0)


def _default_rtol(state: Accumulator) -> float:
    return default_rtol(state.dtype, state.algebra.dim * state.rows, state.algebra.dim * state.unknowns)


def _rank_and_condition(
    state: Accumulator, problems: Sequence[Problem], rtol: float | None
) -> tuple[int, float, float]:
    if rtol is None and (normal := _normal_equations(problems)):
        known = _from_extremes(state, normal, [problem.cholesky(0.0) for problem in normal])
        if known is not None:
            return known
    return _from_values(state, problems, [problem.singular_values() for problem in problems], rtol)


def _from_extremes(
    state: Accumulator, problems: Sequence[NormalEquations], factors: Sequence[Factor | None]
) -> tuple[int, float, float] | None:
    """Full rank and an estimate of the condition, or None where AᴴA does not show them."""
    extremes = [problem.extreme_values(factor) for problem, factor in zip(problems, factors)]
    largest, smallest = max(e[0] for e in extremes), min(e[1] for e in extremes)
    eps = np.finfo(state.dtype).eps
    if not smallest > largest * np.sqrt(eps * state.algebra.dim * state.unknowns):
        return None
    return state.algebra.dim * state.unknowns, largest / smallest, largest


def _from_values(
    state: Accumulator, problems: Sequence[Problem], values: Sequence[Array], rtol: float | None
) -> tuple[int, float, float]:
    """Rank and condition of Φ_L(A) from the singular values of all blocks."""
    largest = max((float(v[0]) for v in values if len(v)), default=0.0)
    cutoff = (_default_rtol(state) if rtol is None else rtol) * largest
    rank = sum(problem.multiplicity * int(np.sum(v > cutoff)) for problem, v in zip(problems, values))
    side = state.algebra.dim * min(state.rows, state.unknowns)
    if rank < side or side == 0:
        return rank, float("inf") if side else 1.0, largest
    smallest = min(float(v[v > cutoff][-1]) for v in values)
    return rank, largest / smallest, largest
