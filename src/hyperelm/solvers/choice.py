"""Which accumulator answers: the choice between `gram`, `qr` and `svd`.

`gram` is the fastest, with a backward error of eps times the condition of the matrix and a forward error of eps
times its square; `qr` and `svd` promise eps and eps times the condition. "auto" begins with `gram`, looks at the
condition of what was solved (ridge included), and reads the rows again with `qr` where that is beyond 1e4 in
double or 1e3 in single precision. Rows that are read once go to `qr` at once, unless a fixed ridge keeps the condition
small.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hyperelm._arrays import as_precision, beside, detached, is_elsewhere, namespace, numpy_dtype, taken, to_numpy
from hyperelm._validation import FloatArray, as_hypercomplex, check_choice, is_number
from hyperelm.algebra import Algebra
from hyperelm.products import matmul, norm
from hyperelm.solvers.accumulator import Accumulator, check_finite
from hyperelm.solvers.gram import Gram
from hyperelm.solvers.qr import QR
from hyperelm.solvers.ridge import Choice, RowSample, best_by_loo, combinations, drawn, mixed, row_lengths, sample_size
from hyperelm.solvers.solve import Solution, check_ridge, solve
from hyperelm.solvers.spectrum import VALUES, Caution
from hyperelm.solvers.sums import chunk_rows, row_blocks, total_square
from hyperelm.solvers.svd import AllRows
from hyperelm.solvers.team import Team, team

# Up to which the answer of `gram` is kept.
LARGEST_CONDITION = {"float64": 1e4, "float32": 1e3}
# What each method asks, in turn.
KINDS: dict[str, tuple[type[Accumulator], ...]] = {
    "auto": (Gram, QR),
    "gram": (Gram,),
    "qr": (QR,),
    "svd": (AllRows,),
}
METHODS = tuple(KINDS)
_SMALLEST = 1e-300  # length of a matrix that numbers divided by it are no infinities


@dataclass(frozen=True)
class LstsqResult:
    """The answer of `lstsq`.

    Attributes
    ----------
    x : array of shape (L, N, d)
        The solution of least Frobenius norm.
    rank, condition : int, float
        Those of the real matrix Φ_L(A), the condition infinite if columns are dependent. `gram` estimates it, and sees
        no singular values below √eps of the largest, as there may be with a ridge.
    residual : float
        ‖AX - B‖_F.
    method : str
        "gram", "qr" or "svd": what was used.
    ridge : float
        The penalty that was used.

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> result = linalg.lstsq([[[1.0, 1.0]]], [[[2.0, 0.0]]], algebras.get("complex"))  # (1 + i) x = 2
    >>> result.x.round(12), result.rank
    (array([[[ 1., -1.]]]), 2)
    """

    x: FloatArray
    rank: int
    condition: float
    residual: float
    method: str
    ridge: float


def trusted(solution: Solution, dtype: np.dtype[Any]) -> bool:
    """Whether an answer from normal equations is as good as "auto" promises."""
    limit = LARGEST_CONDITION[np.dtype(dtype).name]
    return solution.seen and not solution.cut_off and effective_condition(solution) <= limit


def answer(
    state: Accumulator,
    ridge: float | str,
    *,
    free: Sequence[int] = (),
    rtol: float | None = None,
    caution: Caution = VALUES,
    final: bool,
) -> Solution | None:
    """What `state` says; None where that cannot be trusted and is not the `final` word."""
    if not (final or state.is_safe):
        return None
    solution = solve(state, ridge, free=free, rtol=rtol, caution=caution)
    if final and not solution.seen:
        warnings.warn(
            f"Generalised cross-validation by {state.method!r} sees no residual: it is below the rounding of the "
            "squares of the targets. Take 'qr' or 'auto', or subtract the mean of the targets.",
            stacklevel=2,
        )
    return solution if final or trusted(solution, state.dtype) else None


def effective_condition(solution: Solution) -> float:
    """The condition of the matrix with the ridge below it, √((σ₁² + λ)/(σₙ² + λ)).

    With a ridge, σₙ is that of all unknowns, and 0 where there are more of them than rows; without one, the solution of
    least norm has nothing to do with it.
    """
    if solution.largest == 0:
        return 1.0
    penalty = min(solution.ridge / solution.largest / solution.largest, 1e300)
    smallest = 1 / solution.condition / solution.condition
    if solution.ridge > 0 and solution.rank < solution.x.shape[0] * solution.x.shape[2]:
        smallest = 0.0
    return math.sqrt((1 + penalty) / (smallest + penalty)) if smallest + penalty > 0 else math.inf


def as_long_as_safe(
    state: Accumulator, H: FloatArray, T: FloatArray, weight: FloatArray | None, ridge: float
) -> Accumulator:
    """What rows H, (m, L, d), and T, (m, N, d), that are read once are to be added to.

    Normal equations, as long as a fixed ridge alone keeps their condition where "auto" trusts it and their sums are
    numbers; from then on `qr`.
    """
    if not isinstance(state, Gram):
        return state
    heaviest = 1.0 if weight is None else float(weight.max(initial=0.0))
    of_H, of_T = (heaviest * total_square(rows, Team()) for rows in (H, T))
    table = state.algebra.table.reshape(state.algebra.dim, -1)
    bound = state.bound + of_H * float(np.linalg.norm(table, 2)) ** 2
    limit = LARGEST_CONDITION[state.dtype.name]
    safe = state.holds(H.shape[0], of_H, of_T) and bound + ridge <= limit**2 * ridge
    return state if safe else QR.following(state)


def lstsq(
    A: ArrayLike,
    B: ArrayLike,
    algebra: Algebra,
    *,
    ridge: float | str = 0.0,
    method: str = "auto",
    rtol: float | None = None,
) -> LstsqResult:
    """The hypercomplex least-squares problem min ‖AX - B‖_F (section 3 of the paper).

    Parameters
    ----------
    A : array of shape (M, L, d)
    B : array of shape (M, N, d)
    algebra : Algebra
    ridge : float, "auto", "loo" or "gcv"
        The penalty λ of min ‖AX - B‖² + λ‖X‖². "loo" chooses it by exact leave-one-out errors, and so does "auto";
        "gcv" by generalised cross-validation. With 0 the answer is the solution of least Frobenius norm, also where
        there are fewer rows than unknowns.
    method : {"auto", "gram", "qr", "svd"}
        Normal equations, sequential QR, the singular values of Φ_L(A) as in the paper, or what the condition asks for.
    rtol : float, optional
        Singular values below this share of the largest count as zero; by default eps times the larger side of Φ_L(A).

    Returns
    -------
    LstsqResult
        With the solution X, an array of shape (L, N, d).

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import algebras, linalg
    >>> H = algebras.get("quaternions")
    >>> rng = np.random.default_rng(0)
    >>> A, X = rng.standard_normal((50, 3, 4)), rng.standard_normal((3, 2, 4))
    >>> result = linalg.lstsq(A, linalg.matmul(A, X, H), H)
    >>> np.allclose(result.x, X), result.rank, result.method
    (True, 12, 'gram')
    """
    A, B = _checked_system(A, B, algebra)
    check_ridge(ridge)
    check_choice(method, METHODS, "method")
    if rtol is not None and not (is_number(rtol) and 0 <= rtol < 1):
        raise ValueError(f"`rtol` must be a number in [0, 1), got {rtol!r}.")
    kinds = KINDS[method]
    for kind in kinds:
        state, final = _accumulate(kind, A, B, algebra), kind is kinds[-1]
        if ridge in ("auto", "loo") and (final or state.is_safe):
            # Of all rows at once no row can be left out: their QR decomposition has the same errors.
            summary = _accumulate(QR, A, B, algebra) if method == "svd" else state
            choice = _left_out(summary, A, B)
            solution = answer(state, choice.ridge, rtol=rtol, final=final) if final or not choice.cut_off else None
        else:
            solution = answer(state, ridge, rtol=rtol, final=final)
        if solution is not None:
            break
    assert solution is not None  # as the final word is
    return _result(A, B, algebra, solution, kind.method)


def _checked_system(A: ArrayLike, B: ArrayLike, algebra: Algebra) -> tuple[FloatArray, FloatArray]:
    namespace(A=A, B=B)
    A = as_hypercomplex(detached(A), algebra, "A", axes=2)
    B = as_hypercomplex(detached(B), algebra, "B", axes=2)
    for name, array in (("A", A), ("B", B)):
        if array.ndim != 3:
            raise ValueError(
                f"`{name}` must have 3 axes, (rows, columns, {algebra.dim}), got shape {tuple(array.shape)}."
            )
    if A.shape[0] != B.shape[0]:
        raise ValueError(
            f"`B` must have as many rows as `A`, {A.shape[0]}, got {B.shape[0]} in shape {tuple(B.shape)}."
        )
    for name, array in (("A", A), ("B", B)):
        square = check_finite(array, name)
        if square < np.finfo(np.float64).tiny and 0 < (largest := float(norm(array))) < _SMALLEST:
            raise ValueError(
                f"`{name}` must be zero or at least {_SMALLEST:g}, got {largest:g}. Divide it by its size."
            )
    dtype = np.result_type(numpy_dtype(A), numpy_dtype(B))
    return as_precision(A, dtype), as_precision(B, dtype)


def _accumulate(kind: type[Accumulator], A: FloatArray, B: FloatArray, algebra: Algebra) -> Accumulator:
    M, L, N = *A.shape[:2], B.shape[1]
    state = kind(algebra, L, N, numpy_dtype(A))
    with team(0.0 if is_elsewhere(A) else M * L * (L + N) * algebra.dim**2) as crew:
        for rows in row_blocks(M, chunk_rows(algebra, 0, L, N, state.dtype.itemsize)):
            state.update(A[rows, ...], B[rows, ...], team=crew)
    return state


def _left_out(state: Accumulator, A: FloatArray, B: FloatArray) -> Choice:
    """The ridge with the smallest leave-one-out error of all components."""
    N = B.shape[1]
    if 0 in (*A.shape, *B.shape):
        return Choice(0.0, 0.0)
    at, times = drawn(row_lengths(A), min(1.0, sample_size(state) / len(A)))
    rows, targets = to_numpy(taken(A, at)), to_numpy(taken(B, at))
    if (mix := combinations(N)) is not None:
        state, targets = state.combined(mix), mixed(targets, mix)
    sample = RowSample(rows, targets, np.ones(len(at)), times)
    return best_by_loo(state, sample, free=(), places=np.arange(targets[0].size), columns=N)


def _result(A: FloatArray, B: FloatArray, algebra: Algebra, solution: Solution, method: str) -> LstsqResult:
    x = beside(solution.x, A) if is_elsewhere(A) else solution.x
    lengths = [float(norm(matmul(A[rows, ...], x, algebra) - B[rows, ...])) for rows in row_blocks(A.shape[0], 512)]
    return LstsqResult(
        x=x,
        rank=solution.rank,
        condition=solution.condition,
        residual=math.hypot(*lengths),
        method=method,
        ridge=solution.ridge,
    )
