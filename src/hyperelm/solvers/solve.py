"""From the summary of the rows to the weights: ridge, and its choice by generalised cross-validation.

Of the real problem Φ_L(A) φ(X) ≈ φ(B), with n = d Σw rows and the hat matrix S_λ, generalised cross-validation
minimises

    GCV(λ) = n ‖(1 - S_λ) φ(B)‖² / (n - tr S_λ)²

over a path of ridges, both curves coming from one decomposition of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.products import block_basis, from_planes, put_coordinates
from hyperelm.solvers.problem import Array, Factor, NormalEquations, Problem, Reduced, Spectral

PATH = 60  # ridges that GCV looks at


class State(Protocol):
    """What an accumulator shows to `solve`."""

    algebra: Algebra
    rows: int  # M
    unknowns: int  # L
    targets: int  # N
    weight: float  # Σw
    square: float  # ‖T‖², weighted
    tail: float | None  # the part of it outside the range of A, where the accumulator keeps that

    @property
    def dtype(self) -> np.dtype[Any]: ...
    def problems(self) -> Sequence[Problem]: ...


@dataclass(frozen=True)
class Solution:
    """The weights and what is known about them.

    x : (L, N, d)
    rank, condition : those of Φ_L(A)
    ridge : the penalty that was used
    """

    x: FloatArray
    rank: int
    condition: float
    ridge: float


def default_rtol(dtype: np.dtype[Any], rows: int, columns: int) -> float:
    """Singular values below this share of the largest count as zero: eps times the larger side of the matrix."""
    return float(np.finfo(dtype).eps * max(rows, columns))


def solve(
    state: State, ridge: float | str = 0.0, *, free: Sequence[int] = (), rtol: float | None = None
) -> Solution:
    """The least-squares solution of the rows that `state` has seen.

    `ridge` is a number or "gcv"; `free` names rows of X that it does not penalise; `rtol` cuts singular values
    relative to the largest.
    """
    problems = state.problems()
    if ridge != "gcv" and rtol is None and all(isinstance(problem, NormalEquations) for problem in problems):
        solution = _by_cholesky(state, problems, float(ridge), free)
        if solution is not None:
            return solution
    return _by_spectrum(state, problems, ridge, free, rtol)


def _by_cholesky(
    state: State, problems: Sequence[NormalEquations], ridge: float, free: Sequence[int]
) -> Solution | None:
    """From AᴴA + λ = RᴴR, or None where rounding has left too little of AᴴA for that."""
    xs, factors = [], []
    for problem, reduced in zip(problems, _reduce(state, problems, ridge, free)):
        factor = reduced.problem.cholesky(ridge)
        if factor is None:
            return None
        xs.append(reduced.restore(linalg.cho_solve(factor, reduced.problem.cross, check_finite=False)))
        factors.append(factor if ridge == 0 else problem.cholesky(0.0))
    known = _from_extremes(state, problems, factors)
    if known is None and ridge == 0:
        return None
    rank, condition = known or _from_values(state, problems, [p.singular_values() for p in problems], None)
    return Solution(_numbers(state, xs), rank, condition, ridge)


def _by_spectrum(
    state: State, problems: Sequence[Problem], ridge: float | str, free: Sequence[int], rtol: float | None
) -> Solution:
    """From the singular value decomposition of every block."""
    reduced = _reduce(state, problems, ridge, free)
    spectra = [part.problem.spectral() for part in reduced]
    penalty = _gcv(state, reduced, spectra) if ridge == "gcv" else float(ridge)
    if reduced[0].problem is problems[0]:
        rank, condition = _from_values(state, problems, [spectrum.sigma for spectrum in spectra], rtol)
    else:
        rank, condition = _rank_and_condition(state, problems, rtol)
    if rtol is None:
        rtol = _default_rtol(state) if penalty == 0 else 0.0
    cutoff = rtol * _largest(spectra)
    xs = [part.restore(spectrum.solution(penalty, cutoff)) for part, spectrum in zip(reduced, spectra)]
    return Solution(_numbers(state, xs), rank, condition, penalty)


def _reduce(state: State, problems: Sequence[Problem], ridge: float | str, free: Sequence[int]) -> list[Reduced]:
    """The problems without the unknowns that the ridge does not penalise; unchanged where there is no ridge."""
    if ridge == 0 or len(free) == 0:
        return [Reduced(problem, lambda x: x, 0.0) for problem in problems]
    within = np.asarray(free, dtype=np.intp)
    rows = [
        (within + state.unknowns * np.arange(problem.size // state.unknowns)[:, None]).ravel() for problem in problems
    ]
    return [problem.without(free_rows) for problem, free_rows in zip(problems, rows)]


def _gcv(state: State, reduced: Sequence[Reduced], spectra: Sequence[Spectral]) -> float:
    """The ridge on the path with the smallest GCV score."""
    largest = _largest(spectra)
    if largest == 0:
        return 0.0
    floor = max(part.problem.floor for part in reduced)
    ridges = largest**2 * np.logspace(np.log10(floor), 2, PATH)
    rows = state.algebra.dim * state.weight
    if state.tail is None:
        seen = sum(part.explained for part in reduced) + sum(float(s.energies().sum()) for s in spectra)
        unexplained = max(state.square - seen, 0.0)
    else:
        unexplained = state.tail
    rss = np.full(PATH, unexplained)
    # n - tr S, the free unknowns included in dL; sums of λ/(σ²+λ) keep their digits where tr S is close to n.
    left = np.full(PATH, rows - state.algebra.dim * state.unknowns)
    for spectrum in spectra:
        shrinkage = spectrum.shrinkage(ridges)
        rss += shrinkage**2 @ spectrum.energies()
        left += spectrum.multiplicity * shrinkage.sum(axis=1)
    score = np.divide(rows * rss, left**2, out=np.full(PATH, np.inf), where=left > 0)
    return float(ridges[int(np.argmin(score))]) if np.any(left > 0) else float(ridges[-1])


def _largest(spectra: Sequence[Spectral]) -> float:
    return max((float(spectrum.sigma[0]) for spectrum in spectra if len(spectrum.sigma)), default=0.0)


def _default_rtol(state: State) -> float:
    return default_rtol(state.dtype, state.algebra.dim * state.rows, state.algebra.dim * state.unknowns)


def _rank_and_condition(state: State, problems: Sequence[Problem], rtol: float | None) -> tuple[int, float]:
    if rtol is None and all(isinstance(problem, NormalEquations) for problem in problems):
        known = _from_extremes(state, problems, [problem.cholesky(0.0) for problem in problems])
        if known is not None:
            return known
    return _from_values(state, problems, [problem.singular_values() for problem in problems], rtol)


def _from_extremes(
    state: State, problems: Sequence[NormalEquations], factors: Sequence[Factor | None]
) -> tuple[int, float] | None:
    """Full rank and an estimate of the condition, or None where AᴴA does not show them."""
    extremes = [problem.extreme_values(factor) for problem, factor in zip(problems, factors)]
    largest, smallest = max(e[0] for e in extremes), min(e[1] for e in extremes)
    eps = np.finfo(state.dtype).eps
    if not smallest > largest * np.sqrt(eps * state.algebra.dim * state.unknowns):
        return None
    return state.algebra.dim * state.unknowns, largest / smallest


def _from_values(
    state: State, problems: Sequence[Problem], values: Sequence[Array], rtol: float | None
) -> tuple[int, float]:
    """Rank and condition of Φ_L(A) from the singular values of all blocks."""
    largest = max((float(v[0]) for v in values if len(v)), default=0.0)
    cutoff = (_default_rtol(state) if rtol is None else rtol) * largest
    rank = sum(problem.multiplicity * int(np.sum(v > cutoff)) for problem, v in zip(problems, values))
    side = state.algebra.dim * min(state.rows, state.unknowns)
    if rank < side or side == 0:
        return rank, float("inf") if side else 1.0
    smallest = min(float(v[v > cutoff][-1]) for v in values)
    return rank, largest / smallest


def _numbers(state: State, xs: Sequence[Array]) -> FloatArray:
    """The blocks' unknowns as hypercomplex numbers, (L, N, d)."""
    basis = block_basis(state.algebra)
    image = np.empty((state.algebra.dim, state.unknowns, state.targets), dtype=state.dtype)
    for x, at, block in zip(xs, basis.coordinate_slices, basis.blocks):
        put_coordinates(x, image[at], block)
    return from_planes(image, basis.coordinates)
