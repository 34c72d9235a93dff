"""From an accumulator to the output weights, with a given ridge or one that `spectrum` chooses.

Normal equations with a fixed ridge need a Cholesky decomposition only; all else takes the singular values.

`gram` is the fastest accumulator. It has a backward error of eps times the condition of the matrix and a forward error
of eps times its square; `qr` and `svd` promise eps and eps times the condition. "auto" begins with `gram` and looks at
the condition of the matrix, ridge included. Beyond 1e4 in double or 1e3 in single precision it reads the rows again
with `qr`. Rows that are read once go to `qr` at once, unless a fixed ridge keeps the condition small.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hyperelm._backend.workspace import one_blas
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.gram import LARGEST_CONDITION, Gram
from hyperelm._solvers.problem import Array, Cholesky, NormalEquations, Problem
from hyperelm._solvers.qr import QR
from hyperelm._solvers.spectrum import VALUES, Caution, Spectrum, default_rtol, project_out
from hyperelm._solvers.svd import AllRows
from hyperelm._validation import FloatArray, is_number

CHOICES = ("auto", "loo", "gcv")  # of a ridge that is not given
# The accumulators that a solver tries in turn.
SOLVERS: dict[str, tuple[type[Accumulator], ...]] = {
    "auto": (Gram, QR),
    "gram": (Gram,),
    "qr": (QR,),
    "svd": (AllRows,),
}


@dataclass(frozen=True)
class Solution:
    """The weights and what is known about them.

    coef : (L, N, d)
    rank, condition : those of Φ_L(A)
    largest : the largest singular value of Φ_L(A)
    ridge : the penalty that was used
    seen : whether the accumulator shows the residual by which the ridge was chosen
    cut_off : whether smaller ridges than it shows may have been a better choice
    is_bias_only : whether the ridge leaves nothing but the unknowns that it does not penalise
    """

    coef: FloatArray
    rank: int
    condition: float
    largest: float
    ridge: float
    seen: bool = True
    cut_off: bool = False
    is_bias_only: bool = False


def solve(
    accumulator: Accumulator,
    ridge: float | str = 0.0,
    *,
    free: Sequence[int] = (),
    rtol: float | None = None,
    caution: Caution = VALUES,
) -> Solution:
    """The least-squares solution of the rows that `accumulator` has seen.

    `ridge` is a number or "gcv"; `free` names unknowns that it does not penalise; `rtol` cuts singular values
    relative to the largest; `caution` keeps "gcv" from ridges that are too small.
    """
    check_ridge(ridge)
    if len(set(free)) < len(free) or not all(0 <= row < accumulator.unknowns for row in free):
        raise ValueError(
            f"`free` must name different unknowns, from 0 to {accumulator.unknowns - 1}, got {list(free)}."
        )
    if accumulator.unknowns == 0:
        return Solution(
            np.zeros((0, accumulator.targets, accumulator.algebra.dim), accumulator.dtype), 0, 1.0, 0.0, 0.0
        )
    with one_blas():
        return _solve(accumulator, ridge, free, rtol, caution)


def check_ridge(ridge: Any) -> None:
    known = isinstance(ridge, str) and ridge in CHOICES
    if not known and not (is_number(ridge) and ridge >= 0):
        raise ValueError(f"`ridge` must be a finite number >= 0 or one of 'auto', 'loo', 'gcv', got {ridge!r}.")


def _solve(
    accumulator: Accumulator, ridge: float | str, free: Sequence[int], rtol: float | None, caution: Caution
) -> Solution:
    problems = accumulator.problems()
    if ridge != "gcv":
        return _with_ridge(accumulator, problems, float(ridge), free, rtol)
    spectrum = Spectrum(accumulator, free, problems)
    penalty = spectrum.best_by_gcv(caution)
    solution = _with_ridge(accumulator, problems, penalty, free, rtol, spectrum)
    return replace(
        solution,
        seen=spectrum.sees_residual(penalty),
        cut_off=spectrum.is_cut_off(caution),
        is_bias_only=spectrum.is_bias_only(penalty),
    )


def _with_ridge(
    accumulator: Accumulator,
    problems: Sequence[Problem],
    ridge: float,
    free: Sequence[int],
    rtol: float | None,
    spectrum: Spectrum | None = None,
) -> Solution:
    # Cholesky solves AᴴA + λ with all singular values, also with those that the eigenvalues of AᴴA hide. It cannot cut
    # singular values, so a larger rtol needs the spectrum.
    uncut = rtol is None or (ridge > 0 and rtol <= np.sqrt(np.finfo(accumulator.dtype).eps))
    if uncut and (normal := normal_equations(problems)) and (spectrum is None or ridge > 0):
        solution = _by_cholesky(accumulator, normal, ridge, free, rtol, spectrum)
        if solution is not None:
            return solution
    return _by_spectrum(spectrum or Spectrum(accumulator, free if ridge > 0 else (), problems), problems, ridge, rtol)


def normal_equations(problems: Sequence[Problem]) -> list[NormalEquations]:
    """The problems, if they are all given by normal equations; else none."""
    normal = [problem for problem in problems if isinstance(problem, NormalEquations)]
    return normal if len(normal) == len(problems) else []


def _by_cholesky(
    accumulator: Accumulator,
    problems: Sequence[NormalEquations],
    ridge: float,
    free: Sequence[int],
    rtol: float | None,
    spectrum: Spectrum | None,
) -> Solution | None:
    """From AᴴA + λ = RᴴR, or None where rounding has left too little of AᴴA for that."""
    xs, factors = [], []
    for reduced in project_out(accumulator, problems, free if ridge > 0 else ()):
        factor = reduced.problem.cholesky(ridge)
        if factor is None:
            return None
        xs.append(reduced.restore(reduced.problem.solution(factor)))
        factors.append(factor)
    if ridge > 0:
        return Solution(accumulator.coef(xs), *_rank_and_condition(accumulator, problems, rtol, spectrum), ridge)
    known = _from_extremes(accumulator, problems, factors)
    return None if known is None else Solution(accumulator.coef(xs), *known, ridge)


def _by_spectrum(spectrum: Spectrum, problems: Sequence[Problem], ridge: float, rtol: float | None) -> Solution:
    """From the singular value decomposition of every block."""
    accumulator = spectrum.accumulator
    x = spectrum.solution(ridge, default_rtol(accumulator) if rtol is None else rtol)
    return Solution(x, *_rank_and_condition(accumulator, problems, rtol, spectrum), ridge)


def _rank_and_condition(
    accumulator: Accumulator, problems: Sequence[Problem], rtol: float | None, spectrum: Spectrum | None
) -> tuple[int, float, float]:
    """Of Φ_L(A), and its largest singular value: from all of them where they are known, or else as cheap as can be."""
    if spectrum is not None and spectrum.is_whole:
        return _from_values(accumulator, problems, [part.sigma for part in spectrum.parts], rtol)
    if rtol is None and (normal := normal_equations(problems)):
        known = _from_extremes(accumulator, normal, [problem.cholesky(0.0) for problem in normal])
        if known is not None:
            return known
    return _from_values(accumulator, problems, [problem.singular_values() for problem in problems], rtol)


def _from_extremes(
    accumulator: Accumulator, problems: Sequence[NormalEquations], factors: Sequence[Cholesky | None]
) -> tuple[int, float, float] | None:
    """Full rank and an estimate of the condition, or None where AᴴA does not show them."""
    extremes = [problem.extreme_values(factor) for problem, factor in zip(problems, factors)]
    largest, smallest = max(e[0] for e in extremes), min(e[1] for e in extremes)
    eps = np.finfo(accumulator.dtype).eps
    if not smallest > largest * np.sqrt(eps * accumulator.algebra.dim * accumulator.unknowns):
        return None
    return accumulator.algebra.dim * accumulator.unknowns, largest / smallest, largest


def _from_values(
    accumulator: Accumulator, problems: Sequence[Problem], values: Sequence[Array], rtol: float | None
) -> tuple[int, float, float]:
    """Rank and condition of Φ_L(A) from the singular values of all blocks."""
    largest = max((float(v[0]) for v in values if len(v)), default=0.0)
    cutoff = (default_rtol(accumulator) if rtol is None else rtol) * largest
    rank = sum(problem.multiplicity * int(np.sum(v > cutoff)) for problem, v in zip(problems, values))
    side = accumulator.algebra.dim * min(accumulator.n_rows, accumulator.unknowns)
    if rank < side or side == 0:
        return rank, float("inf") if side else 1.0, largest
    smallest = min(float(v[v > cutoff][-1]) for v in values)
    return rank, largest / smallest, largest


# ---------------------------------------------------------------------- which answer is trusted


def trusted(solution: Solution, dtype: np.dtype[Any]) -> bool:
    """Whether an answer from normal equations is as good as "auto" promises."""
    limit = LARGEST_CONDITION[np.dtype(dtype).name]
    return solution.seen and not solution.cut_off and effective_condition(solution) <= limit


def answer(
    accumulator: Accumulator,
    ridge: float | str,
    *,
    free: Sequence[int] = (),
    rtol: float | None = None,
    caution: Caution = VALUES,
    final: bool,
) -> Solution | None:
    """What `accumulator` says; None where that cannot be trusted and is not the `final` word."""
    if not (final or accumulator.is_safe):
        return None
    solution = solve(accumulator, ridge, free=free, rtol=rtol, caution=caution)
    if final and not solution.seen:
        warnings.warn(
            f"Generalised cross-validation by {accumulator.method!r} sees no residual: it is below the rounding of the "
            "squares of the targets. Take 'qr' or 'auto', or subtract the mean of the targets.",
            stacklevel=2,
        )
    return solution if final or trusted(solution, accumulator.dtype) else None


def effective_condition(solution: Solution) -> float:
    """The condition of the matrix with the ridge below it, √((σ₁² + λ)/(σₙ² + λ)).

    With a ridge, σₙ is that of all unknowns, and 0 where there are more of them than rows; without one, the solution of
    least norm has nothing to do with it.
    """
    if solution.largest == 0:
        return 1.0
    penalty = min(solution.ridge / solution.largest / solution.largest, 1e300)
    smallest = 1 / solution.condition / solution.condition
    if solution.ridge > 0 and solution.rank < solution.coef.shape[0] * solution.coef.shape[2]:
        smallest = 0.0
    return math.sqrt((1 + penalty) / (smallest + penalty)) if smallest + penalty > 0 else math.inf
