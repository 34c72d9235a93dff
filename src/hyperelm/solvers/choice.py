"""Which accumulator answers: the choice between `gram`, `qr` and `svd`.

`gram` is the fastest, with a backward error of eps times the condition of the matrix and a forward error of eps
times its square; `qr` and `svd` promise eps and eps times the condition. "auto" begins with `gram`, looks at the
condition of what was solved (ridge included), and reads the rows again with `qr` where that is beyond 1e4 in
double or 1e3 in single precision. Rows that are read once go to `qr` at once, unless a fixed ridge keeps the condition
small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hyperelm._arrays import as_precision, beside, detached, is_elsewhere, namespace, numpy_dtype
from hyperelm._validation import FloatArray, as_hypercomplex
from hyperelm.algebra import Algebra
from hyperelm.products import matmul, norm
from hyperelm.solvers.accumulator import Accumulator, check_finite
from hyperelm.solvers.gram import Gram
from hyperelm.solvers.qr import QR
from hyperelm.solvers.solve import Solution, solve
from hyperelm.solvers.sums import chunk_rows, row_blocks, total_square
from hyperelm.solvers.svd import svd
from hyperelm.solvers.team import Team, team

# Up to which the answer of `gram` is kept.
LARGEST_CONDITION = {"float64": 1e4, "float32": 1e3}
METHODS = ("auto", "gram", "qr", "svd")


@dataclass(frozen=True)
class LstsqResult:
    """The answer of `lstsq`.

    Attributes
    ----------
    x : array of shape (L, N, d)
        The solution of least Frobenius norm.
    rank, condition : int, float
        Those of the real matrix Φ_L(A); an estimate of the condition for `gram`, infinite if columns are dependent.
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
    return solution.seen and effective_condition(solution) <= limit


def effective_condition(solution: Solution) -> float:
    """The condition of the matrix with the ridge below it, √((σ₁² + λ)/(σₙ² + λ))."""
    if solution.largest == 0:
        return 1.0
    penalty = min(solution.ridge / solution.largest / solution.largest, 1e300)
    smallest = 1 / solution.condition / solution.condition
    return math.sqrt((1 + penalty) / (smallest + penalty)) if smallest + penalty > 0 else math.inf


def as_long_as_safe(state: Accumulator, H: FloatArray, weight: FloatArray | None, ridge: float) -> Accumulator:
    """What rows H, (m, L, d), that are read once are to be added to.

    Normal equations, as long as a fixed ridge alone keeps their condition where "auto" trusts it; from then on `qr`.
    """
    if not isinstance(state, Gram):
        return state
    table = state.algebra.table.reshape(state.algebra.dim, -1)
    square = total_square(H, Team()) * float(np.linalg.norm(table, 2)) ** 2
    bound = state.bound + square * (1.0 if weight is None else float(weight.max(initial=0.0)))
    limit = LARGEST_CONDITION[state.dtype.name]
    return state if bound + ridge <= limit**2 * ridge else QR.following(state)


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
    ridge : float or "gcv"
        The penalty λ of min ‖AX - B‖² + λ‖X‖²; "gcv" chooses it by generalised cross-validation. With 0 the answer
        is the solution of least Frobenius norm, also where there are fewer rows than unknowns.
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
    A, B, squares = _checked_system(A, B, algebra)
    check_ridge(ridge)
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    if rtol is not None and not (isinstance(rtol, (int, float, np.integer, np.floating)) and 0 <= rtol < 1):
        raise ValueError(f"`rtol` must be a number in [0, 1), got {rtol!r}.")
    if method == "svd":
        return _result(A, B, algebra, svd(A, B, algebra, ridge=ridge, rtol=rtol), "svd")
    if method == "gram" or (method == "auto" and _sums_are_safe(A, *squares)):
        solution = solve(_accumulate(Gram, A, B, algebra), ridge, rtol=rtol)
        if method == "gram" or trusted(solution, numpy_dtype(A)):
            return _result(A, B, algebra, solution, "gram")
    return _result(A, B, algebra, solve(_accumulate(QR, A, B, algebra), ridge, rtol=rtol), "qr")


def check_ridge(ridge: Any) -> None:
    number = isinstance(ridge, (int, float, np.integer, np.floating)) and not isinstance(ridge, bool)
    known = isinstance(ridge, str) and ridge == "gcv"
    if not known and not (number and math.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"`ridge` must be a finite number >= 0 or 'gcv', got {ridge!r}.")


def _checked_system(A: ArrayLike, B: ArrayLike, algebra: Algebra) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
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
    squares = check_finite(A, "A"), check_finite(B, "B")
    dtype = np.result_type(numpy_dtype(A), numpy_dtype(B))
    return as_precision(A, dtype), as_precision(B, dtype), squares


def _sums_are_safe(A: FloatArray, square_A: float, square_B: float) -> bool:
    """Whether the entries of AᴴA and AᴴB, from Σ|a|² and Σ|b|², neither overflow nor vanish."""
    return _is_safe(A, square_A) and (square_B == 0 or _is_safe(A, math.sqrt(square_A) * math.sqrt(square_B)))


def _is_safe(A: FloatArray, square: float) -> bool:
    """Whether sums over the entries of A that are `square` in all are numbers of full precision."""
    info = np.finfo(numpy_dtype(A))
    if square == 0:
        return not bool(namespace(A=A).any(A != 0))
    return float(info.tiny / info.eps) * math.prod(A.shape) < square < float(info.max * info.eps)


def _accumulate(kind: type[Accumulator], A: FloatArray, B: FloatArray, algebra: Algebra) -> Accumulator:
    M, L, N = *A.shape[:2], B.shape[1]
    state = kind(algebra, L, N, numpy_dtype(A))
    with team(0.0 if is_elsewhere(A) else M * L * (L + N) * algebra.dim**2) as crew:
        for rows in row_blocks(M, chunk_rows(algebra, 0, L, N, state.dtype.itemsize)):
            state.update(A[rows, ...], B[rows, ...], team=crew)
    return state


def _result(A: FloatArray, B: FloatArray, algebra: Algebra, solution: Solution, method: str) -> LstsqResult:
    x = beside(solution.x, A) if is_elsewhere(A) else solution.x
    squares = [
        float(norm(matmul(A[rows, ...], x, algebra) - B[rows, ...])) ** 2 for rows in row_blocks(A.shape[0], 512)
    ]
    return LstsqResult(
        x=x,
        rank=solution.rank,
        condition=solution.condition,
        residual=math.sqrt(sum(squares)),
        method=method,
        ridge=solution.ridge,
    )
