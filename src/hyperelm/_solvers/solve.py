"""From an accumulator to the output weights, with a given ridge or one that `spectrum` chooses.

Normal equations with a fixed ridge need a Cholesky decomposition only; all else takes the singular values.

`gram` is the fastest accumulator. Its backward error is eps times the condition of the matrix, and its forward error is
eps times the square of the condition. `qr` and `svd` promise eps and eps times the condition. "auto" begins with `gram`
and looks at the condition of the matrix, ridge included. Beyond 1e4 in double or 1e3 in single precision it reads the
rows again with `qr`. Rows that are read once go to `qr` at once, unless a fixed ridge keeps the condition small.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hyperelm._backend.workspace import one_blas
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.dual import FewRows, with_cholesky
from hyperelm._solvers.gram import LARGEST_CONDITION, Gram
from hyperelm._solvers.problem import Array, NormalEquations, Problem
from hyperelm._solvers.qr import QR
from hyperelm._solvers.spectrum import (
    VALUES,
    Caution,
    Spectrum,
    default_rtol,
    factors_of,
    hold_factors,
    project_out,
)
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


class Spread(NamedTuple):
    """The rank of Φ_L(A), its condition, and its largest singular value."""

    rank: int
    condition: float
    largest: float


@dataclass(frozen=True)
class Solution:
    """The weights and what is known about them.

    coef : (L, N, d)
    ridge : the penalty that was used
    spread : that of Φ_L(A); None where nobody asked for it and the ridge is so large that it does not matter
    seen : whether the residual by which the ridge was chosen is more than the rounding of the accumulator
    cut_off : whether rounding of the accumulator may hide a better choice: a ridge that is too small for it to show, or
        a column that hardly differs from the bias
    is_bias_only : whether the ridge leaves nothing but the unknowns that it does not penalise
    """

    coef: FloatArray
    ridge: float
    spread: Spread | None
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
    with_spread: bool = True,
) -> Solution:
    """The least-squares solution of the rows that `accumulator` has seen.

    `ridge` is a number or "gcv"; `free` names unknowns that it does not penalise; `rtol` cuts singular values
    relative to the largest; `caution` keeps "gcv" from ridges that are too small; without `with_spread` the spread is
    found only where the solution may need it.
    """
    check_ridge(ridge)
    L = accumulator.unknowns
    if len(set(free)) < len(free) or not all(0 <= unknown < L for unknown in free):
        raise ValueError(f"`free` must name different unknowns, from 0 to {L - 1}, got {list(free)}.")
    if L == 0:
        coef = np.zeros((0, accumulator.targets, accumulator.algebra.dim), accumulator.dtype)
        return Solution(coef, 0.0, Spread(rank=0, condition=1.0, largest=0.0))
    with one_blas(accumulator.work):
        problems = accumulator.remembered("problems", (), accumulator.problems)
        if ridge != "gcv":
            return _with_ridge(accumulator, problems, float(ridge), free, rtol, with_spread=with_spread)
        spectrum = Spectrum(accumulator, free, problems)
        choice = spectrum.best_by_gcv(caution)
        solution = _with_ridge(accumulator, problems, choice.ridge, free, rtol, spectrum)
        cut_off = choice.cut_off or solution.cut_off
        return replace(solution, seen=choice.seen, cut_off=cut_off, is_bias_only=choice.is_bias_only)


def check_ridge(ridge: Any) -> None:
    known = isinstance(ridge, str) and ridge in CHOICES
    if not known and not (is_number(ridge) and ridge >= 0):
        raise ValueError(f"`ridge` must be a finite number >= 0 or one of 'auto', 'loo', 'gcv', got {ridge!r}.")


def _with_ridge(
    accumulator: Accumulator,
    problems: Sequence[Problem],
    ridge: float,
    free: Sequence[int],
    rtol: float | None,
    spectrum: Spectrum | None = None,
    *,
    with_spread: bool = True,
) -> Solution:
    """The solution for one ridge. `spectrum` is that of the problems, where it is known already."""
    free = free if ridge > 0 else ()  # without a ridge nothing is penalised
    # Cholesky solves AᴴA + λ with all singular values, also with those that the eigenvalues of AᴴA hide. It cannot cut
    # singular values, so a larger rtol needs the spectrum.
    uncut = rtol is None or (ridge > 0 and rtol <= np.sqrt(np.finfo(accumulator.dtype).eps))
    normal = with_cholesky(problems) if uncut and (spectrum is None or ridge > 0) else []
    reduced = project_out(accumulator, normal, free)
    factors = factors_of(accumulator, reduced, ridge) if normal else None
    if factors is not None:
        hold_factors(accumulator, reduced, ridge, factors)
        is_needed = with_spread or not _suffices(ridge, accumulator)
        if ridge > 0:
            spread = spread_of(accumulator, problems, rtol, spectrum) if is_needed else None
        else:
            spread = _from_extremes(accumulator, normal, factors)
        if spread is not None or not is_needed:
            xs = [part.restore(factor.solution(part.problem.cross)) for part, factor in zip(reduced, factors)]
            return Solution(accumulator.coef(xs), ridge, spread, cut_off=any(part.hides for part in reduced))
    # Rounding has left too little of AᴴA, or singular values are cut, or there are no normal equations.
    spectrum = spectrum or Spectrum(accumulator, free, problems)
    coef = spectrum.solution(ridge, default_rtol(accumulator) if rtol is None else rtol)
    return Solution(coef, ridge, spread_of(accumulator, problems, rtol, spectrum))


def _suffices(ridge: float, accumulator: Accumulator) -> bool:
    """Whether this ridge alone makes the answer one that `trusted` trusts, whatever the smallest singular value is.

    The condition of the matrix with √λ times the identity below it is at most √((σ₁² + λ)/λ).
    """
    return accumulator.largest_eigenvalue + ridge <= LARGEST_CONDITION[accumulator.dtype.name] ** 2 * ridge


def spread_of(
    accumulator: Accumulator,
    problems: Sequence[Problem] | None = None,
    rtol: float | None = None,
    spectrum: Spectrum | None = None,
) -> Spread:
    """From all singular values, if the spectrum has them or if the cheaper estimate of two of them says too little.

    `problems` and `spectrum` are those of the accumulator, where they are known already.
    """
    problems = accumulator.problems() if problems is None else problems
    if spectrum is not None and spectrum.is_whole:
        values: list[Array] = [part.sigma for part in spectrum.parts]
    else:
        if rtol is None and (normal := with_cholesky(problems)):
            spread = _from_extremes(accumulator, normal, [problem.cholesky(0.0) for problem in normal])
            if spread is not None:
                return spread
        values = [problem.singular_values() for problem in problems]
    largest = max((float(v[0]) for v in values if len(v)), default=0.0)
    cutoff = (default_rtol(accumulator) if rtol is None else rtol) * largest
    rank = sum(problem.multiplicity * int(np.sum(v > cutoff)) for problem, v in zip(problems, values))
    side = accumulator.algebra.dim * min(accumulator.n_rows, accumulator.unknowns)
    if rank < side or side == 0:
        return Spread(rank, float("inf") if side else 1.0, largest)
    return Spread(rank, largest / min(float(v[v > cutoff][-1]) for v in values), largest)


def _from_extremes(
    accumulator: Accumulator, problems: Sequence[NormalEquations | FewRows], factors: Sequence[Any]
) -> Spread | None:
    """Full rank and an estimate of the condition, or None where AᴴA, or AAᴴ, does not show them."""
    extremes = [problem.extreme_values(factor) for problem, factor in zip(problems, factors)]
    largest, smallest = max(e[0] for e in extremes), min(e[1] for e in extremes)
    size = accumulator.algebra.dim * min(accumulator.n_rows, accumulator.unknowns)
    if not smallest > largest * np.sqrt(np.finfo(accumulator.dtype).eps * size):
        return None
    return Spread(size, largest / smallest, largest)


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
    with_spread: bool = True,
) -> Solution | None:
    """The solution by `accumulator`; None where it cannot be trusted and another accumulator can still be tried.

    `final` says that there is no other one. All else is as in `solve`.
    """
    if not (final or accumulator.is_safe):
        return None
    solution = solve(accumulator, ridge, free=free, rtol=rtol, caution=caution, with_spread=with_spread)
    if final and not solution.seen:
        warnings.warn(
            f"Generalised cross-validation by {accumulator.method!r} sees no residual: it is below the rounding of the "
            "squares of the targets. Take 'qr' or 'auto', or subtract the mean of the targets.",
            stacklevel=2,
        )
    return solution if final or trusted(solution, accumulator.dtype) else None


def effective_condition(solution: Solution) -> float:
    """The condition √((σ₁² + λ)/(σₙ² + λ)) of the matrix with √λ times the identity below it; 1 where it is no matter.

    With a ridge, σₙ is the smallest singular value for all unknowns: 0 where the rank is below their number. Without
    one, only singular values above zero matter to the solution of least norm.
    """
    spread = solution.spread
    if spread is None or spread.largest == 0:
        return 1.0
    penalty = min(solution.ridge / spread.largest / spread.largest, 1e300)
    smallest = 1 / spread.condition / spread.condition
    if solution.ridge > 0 and spread.rank < solution.coef.shape[0] * solution.coef.shape[2]:
        smallest = 0.0
    return math.sqrt((1 + penalty) / (smallest + penalty)) if smallest + penalty > 0 else math.inf
