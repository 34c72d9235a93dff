"""Hypercomplex least squares for arrays in memory: min ‖AX - B‖² + λ‖X‖² (section 3 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of, chunks, limits
from hyperelm._backend.arrays import as_precision, detached, kept_beside, namespace, numpy_dtype, taken, to_numpy
from hyperelm._linalg.planes import Numbers
from hyperelm._linalg.products import matmul, norm
from hyperelm._solvers.accumulator import Accumulator, check_finite, chunk_rows, mixed
from hyperelm._solvers.qr import QR
from hyperelm._solvers.ridge import best_by_loo
from hyperelm._solvers.sample import RowSample, combinations, drawn, row_lengths, sample_size
from hyperelm._solvers.scores import Choice
from hyperelm._solvers.solve import SOLVERS, answer, check_ridge
from hyperelm._validation import FloatArray, as_hypercomplex, check_choice, is_number


@dataclass(frozen=True)
class LstsqResult:
    """The answer of `lstsq`.

    Attributes
    ----------
    x : array of shape (L, N, d)
        The solution of least Frobenius norm.
    rank, condition : int, float
        The rank and the condition of the real matrix Φ_L(A). The condition is infinite if columns are dependent. `gram`
        estimates the condition, and sees no singular values below √eps of the largest.
    residual : float
        ‖AX - B‖_F.
    method : str
        The method that was used: "gram", "qr" or "svd".
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
        "gram" solves normal equations, "qr" is a sequential QR decomposition, and "svd" takes the singular values of
        Φ_L(A), as in the paper. "auto" is "gram", and "qr" where the condition is too large for it.
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
    check_choice(method, SOLVERS, "method")
    if rtol is not None and not (is_number(rtol) and 0 <= rtol < 1):
        raise ValueError(f"`rtol` must be a number in [0, 1), got {rtol!r}.")
    for used in SOLVERS[method]:
        accumulator, final, penalty = _accumulate(used, A, B, algebra), used is SOLVERS[method][-1], ridge
        if ridge in ("auto", "loo") and (final or accumulator.is_safe):
            # From the rows themselves (`svd`) none can be left out. Their QR decomposition has the same errors.
            for_loo = accumulator if accumulator.leaves_out else _accumulate(QR, A, B, algebra)
            choice = _left_out(for_loo, A, B)
            if choice.cut_off and not final:
                continue
            penalty = choice.ridge
        if (solution := answer(accumulator, penalty, rtol=rtol, final=final)) is not None:
            break
    assert solution is not None  # the final accumulator always gives an answer
    assert solution.spread is not None  # nobody said that it is not needed
    x = kept_beside(solution.coef, A)
    lengths = [float(norm(matmul(A[at, ...], x, algebra) - B[at, ...])) for at in chunks(A.shape[0], 512)]
    rank, condition, _ = solution.spread
    return LstsqResult(x, rank, condition, math.hypot(*lengths), used.method, solution.ridge)


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
        shape = tuple(B.shape)
        raise ValueError(f"`B` must have as many rows as `A`, {A.shape[0]}, got {B.shape[0]} in shape {shape}.")
    for name, array in (("A", A), ("B", B)):
        square = check_finite(Numbers(array), name)
        if square < np.finfo(np.float64).tiny and 0 < (length := float(norm(array))) < limits.SMALLEST:
            must = f"be zero or at least {limits.SMALLEST:g}"
            raise limits.refused(name, must, f"{length:g}", "Divide it by its size.")
    dtype = np.result_type(numpy_dtype(A), numpy_dtype(B))
    return as_precision(A, dtype), as_precision(B, dtype)


def _accumulate(method: type[Accumulator], A: FloatArray, B: FloatArray, algebra: Algebra) -> Accumulator:
    M, L, N = *A.shape[:2], B.shape[1]
    accumulator = method(algebra, L, N, numpy_dtype(A))
    with backend_of(A).at_work(M * L * (L + N) * algebra.dim**2):
        for at in chunks(M, chunk_rows(algebra, 0, L, N, accumulator.dtype.itemsize)):
            accumulator.update(A[at, ...], B[at, ...])
    return accumulator


def _left_out(accumulator: Accumulator, A: FloatArray, B: FloatArray) -> Choice:
    """The ridge with the smallest leave-one-out error of all components."""
    if 0 in (*A.shape, *B.shape):
        return Choice(0.0, 0.0)
    at, times = drawn(row_lengths(A), min(1.0, sample_size(accumulator) / len(A)))
    H, T = to_numpy(taken(A, at)), to_numpy(taken(B, at))
    if (mix := combinations(B.shape[1])) is not None:
        accumulator, T = accumulator.combined(mix), mixed(T, mix)
    sample = RowSample(H, T, np.ones(len(at)), times, is_whole=len(at) == len(A))
    return best_by_loo(accumulator, sample, free=(), places=np.arange(T[0].size), columns=B.shape[1])
