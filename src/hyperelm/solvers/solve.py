"""From the summary of the rows to the weights, with a given ridge or one that `spectrum` chooses.

Normal equations with a fixed ridge need a Cholesky decomposition only; all else takes the singular values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hyperelm._validation import FloatArray, is_number
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, Cholesky, NormalEquations, Problem
from hyperelm.solvers.spectrum import VALUES, Caution, Spectrum, default_rtol, project_out
from hyperelm.solvers.team import one_blas

CHOICES = ("auto", "loo", "gcv")  # of a ridge that is not given


@dataclass(frozen=True)
class Solution:
    """The weights and what is known about them.

    x : (L, N, d)
    rank, condition : those of Φ_L(A)
    largest : the largest singular value of Φ_L(A)
    ridge : the penalty that was used
    seen : whether the summary shows the residual by which the ridge was chosen
    cut_off : whether smaller ridges than it shows may have been a better choice
    is_bias_only : whether the ridge leaves nothing but the unknowns that it does not penalise
    """

    x: FloatArray
    rank: int
    condition: float
    largest: float
    ridge: float
    seen: bool = True
    cut_off: bool = False
    is_bias_only: bool = False


def solve(
    state: Accumulator,
    ridge: float | str = 0.0,
    *,
    free: Sequence[int] = (),
    rtol: float | None = None,
    caution: Caution = VALUES,
) -> Solution:
    """The least-squares solution of the rows that `state` has seen.

    `ridge` is a number or "gcv"; `free` names rows of X that it does not penalise; `rtol` cuts singular values
    relative to the largest; `caution` keeps "gcv" from ridges that are too small.
    """
    check_ridge(ridge)
    if len(set(free)) < len(free) or not all(0 <= row < state.unknowns for row in free):
        raise ValueError(f"`free` must name different rows of X, from 0 to {state.unknowns - 1}, got {list(free)}.")
    if state.unknowns == 0:
        return Solution(np.zeros((0, state.targets, state.algebra.dim), state.dtype), 0, 1.0, 0.0, 0.0)
    with one_blas():
        return _solve(state, ridge, free, rtol, caution)


def check_ridge(ridge: Any) -> None:
    known = isinstance(ridge, str) and ridge in CHOICES
    if not known and not (is_number(ridge) and ridge >= 0):
        raise ValueError(f"`ridge` must be a finite number >= 0 or one of 'auto', 'loo', 'gcv', got {ridge!r}.")


def _solve(
    state: Accumulator, ridge: float | str, free: Sequence[int], rtol: float | None, caution: Caution
) -> Solution:
    problems = state.problems()
    if ridge != "gcv":
        return _with_ridge(state, problems, float(ridge), free, rtol)
    spectrum = Spectrum(state, free, problems)
    penalty = spectrum.best_by_gcv(caution)
    solution = _with_ridge(state, problems, penalty, free, rtol, spectrum)
    return replace(
        solution,
        seen=spectrum.sees_residual(penalty),
        cut_off=spectrum.is_cut_off(caution),
        is_bias_only=spectrum.is_bias_only(penalty),
    )


def _with_ridge(
    state: Accumulator,
    problems: Sequence[Problem],
    ridge: float,
    free: Sequence[int],
    rtol: float | None,
    spectrum: Spectrum | None = None,
) -> Solution:
    # The singular values that normal equations do not show matter beside a ridge, but to a Cholesky decomposition they
    # are there. A cut among those that are shown it cannot make.
    uncut = rtol is None or (ridge > 0 and rtol <= np.sqrt(np.finfo(state.dtype).eps))
    if uncut and (normal := normal_equations(problems)) and (spectrum is None or ridge > 0):
        solution = _by_cholesky(state, normal, ridge, free, rtol, spectrum)
        if solution is not None:
            return solution
    return _by_spectrum(spectrum or Spectrum(state, free if ridge > 0 else (), problems), problems, ridge, rtol)


def normal_equations(problems: Sequence[Problem]) -> list[NormalEquations]:
    """The problems, if they are all given by normal equations; else none."""
    normal = [problem for problem in problems if isinstance(problem, NormalEquations)]
    return normal if len(normal) == len(problems) else []


def _by_cholesky(
    state: Accumulator,
    problems: Sequence[NormalEquations],
    ridge: float,
    free: Sequence[int],
    rtol: float | None,
    spectrum: Spectrum | None,
) -> Solution | None:
    """From AᴴA + λ = RᴴR, or None where rounding has left too little of AᴴA for that."""
    xs, factors = [], []
    for reduced in project_out(state, problems, free if ridge > 0 else ()):
        factor = reduced.problem.cholesky(ridge)
        if factor is None:
            return None
        xs.append(reduced.restore(reduced.problem.solution(factor)))
        factors.append(factor)
    if ridge > 0:
        return Solution(state.numbers(xs), *_rank_and_condition(state, problems, rtol, spectrum), ridge)
    known = _from_extremes(state, problems, factors)
    return None if known is None else Solution(state.numbers(xs), *known, ridge)


def _by_spectrum(spectrum: Spectrum, problems: Sequence[Problem], ridge: float, rtol: float | None) -> Solution:
    """From the singular value decomposition of every block."""
    state = spectrum.state
    x = spectrum.solution(ridge, default_rtol(state) if rtol is None else rtol)
    return Solution(x, *_rank_and_condition(state, problems, rtol, spectrum), ridge)


def _rank_and_condition(
    state: Accumulator, problems: Sequence[Problem], rtol: float | None, spectrum: Spectrum | None
) -> tuple[int, float, float]:
    """Of Φ_L(A), and its largest singular value: from all of them where they are known, or else as cheap as can be."""
    if spectrum is not None and spectrum.is_whole:
        return _from_values(state, problems, [part.sigma for part in spectrum.parts], rtol)
    if rtol is None and (normal := normal_equations(problems)):
        known = _from_extremes(state, normal, [problem.cholesky(0.0) for problem in normal])
        if known is not None:
            return known
    return _from_values(state, problems, [problem.singular_values() for problem in problems], rtol)


def _from_extremes(
    state: Accumulator, problems: Sequence[NormalEquations], factors: Sequence[Cholesky | None]
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
    cutoff = (default_rtol(state) if rtol is None else rtol) * largest
    rank = sum(problem.multiplicity * int(np.sum(v > cutoff)) for problem, v in zip(problems, values))
    side = state.algebra.dim * min(state.rows, state.unknowns)
    if rank < side or side == 0:
        return rank, float("inf") if side else 1.0, largest
    smallest = min(float(v[v > cutoff][-1]) for v in values)
    return rank, largest / smallest, largest
