"""Forward and backward errors over the whole range of conditions, and the cases at its ends.

A problem of given condition is made in the algebra's real form (U diag(s) Vᴴ in every block where the blocks are all
matrices there are, else a random matrix with singular values mixed in from the right), or by scaling columns. The
right-hand side is AX and a small residual orthogonal to the columns of Φ_L(A), so that X is known.
"""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm import algebras, linalg
from hyperelm._linalg.planes import block_basis
from hyperelm._solvers import gram

SOLVERS = ["gram", "qr", "svd", "auto"]
CONDITIONS = {np.float32: 10.0 ** np.arange(0, 7, 2), np.float64: 10.0 ** np.arange(0, 15, 2)}
LIMIT = {np.float32: 1e3, np.float64: 1e4}  # of gram in "auto"

methods = pytest.mark.parametrize("method", SOLVERS)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def unitary(rng, rows, columns, is_complex):
    matrix = rng.standard_normal((rows, columns)) + (1j * rng.standard_normal((rows, columns)) if is_complex else 0)
    return np.linalg.qr(matrix)[0]


def in_blocks(algebra, M, L, condition, rng):
    """U diag(s) Vᴴ in every block, the singular values dealt out among the blocks; None if blocks are constrained."""
    basis = block_basis(algebra)
    if basis.entries.shape[1] != algebra.dim:
        return None
    total = sum(block.size for block in basis.blocks) * L
    s = np.geomspace(1, 1 / condition, total)
    planes = []
    for n, block in enumerate(basis.blocks):
        K = block.size * L
        U, V = (unitary(rng, rows, K, block.is_complex) for rows in (block.size * M, K))
        dealt = s[n :: len(basis.blocks)][:K]
        B = ((U * dealt) @ V.conj().T).reshape(block.size, M, block.size, L).transpose(0, 2, 1, 3)
        B = B.reshape(-1, 1, M, L)
        planes.append(np.concatenate([B.real, B.imag] if block.is_complex else [B], axis=1).reshape(-1, M, L))
    # planes = entriesᵀ components
    components = np.linalg.solve(basis.entries.T, np.concatenate(planes).reshape(algebra.dim, -1))
    return components.reshape(algebra.dim, M, L).transpose(1, 2, 0)


def matrix_of(algebra, M, L, condition, how, rng):
    if how == "mixed" and (A := in_blocks(algebra, M, L, condition, rng)) is not None:
        return A
    A = rng.standard_normal((M, L, algebra.dim)) * np.geomspace(1, 1 / condition, L)[:, None]
    if how == "columns":
        return A
    V = np.linalg.qr(rng.standard_normal((L, L)))[0]
    return np.einsum("mld,ln->mnd", A, V)


def problem_of(algebra, condition, how, dtype, seed=0):
    """A, B, the real matrix, the right-hand side, X and the residual, the last four in double precision."""
    rng = np.random.default_rng(seed)
    L = max(3, 12 // algebra.dim)
    A = matrix_of(algebra, 4 * L, L, condition, how, rng).astype(dtype)
    P = linalg.left_matrix(A.astype(np.float64), algebra)
    x = rng.standard_normal((P.shape[1], 1))
    Q = np.linalg.qr(P)[0]
    r = rng.standard_normal((len(P), 1))
    for _ in range(2):
        r -= Q @ (Q.T @ r)
    r *= 1e-3 * np.linalg.norm(P @ x) / np.linalg.norm(r)
    B = linalg.from_real(P @ x + r, algebra).astype(dtype)
    return A, B, P, linalg.to_real(B.astype(np.float64)), x, r


def backward_error(P, b, x):
    """The Karlson-Waldén estimate of the least |ΔA|/|A| for which x solves (A + ΔA)x ≈ b, within a factor of 2."""
    r = b - P @ x
    U, sigma, _ = np.linalg.svd(P, full_matrices=False)
    z = sigma[:, None] * (U.T @ r)
    length, residual = np.linalg.norm(x), np.linalg.norm(r)
    if residual == 0 or length == 0:
        return 0.0
    return np.linalg.norm(z / np.sqrt(length**2 * sigma**2 + residual**2)[:, None]) / sigma[0]


@dtypes
@pytest.mark.parametrize("how", ["mixed", "columns"])
def test_errors_over_the_range_of_conditions(algebra, dtype, how):
    eps = np.finfo(dtype).eps
    for wanted in CONDITIONS[dtype]:
        A, B, P, b, x_true, r = problem_of(algebra, wanted, how, dtype)
        sigma = np.linalg.svd(P, compute_uv=False)
        condition, norm = sigma[0] / sigma[-1], sigma[0]
        assert 0.2 < condition / wanted < 500
        constant = 100 * np.sqrt(len(x_true))
        cut = eps * max(P.shape)
        numpy_x = np.linalg.lstsq(P.astype(dtype), b.astype(dtype), rcond=cut)[0].astype(np.float64)
        numpy_error = backward_error(P, b, numpy_x)
        sensitivity = condition * (1 + condition * np.linalg.norm(r) / (norm * np.linalg.norm(x_true)))
        for method in SOLVERS:
            result = linalg.lstsq(A, B, algebra, method=method)
            x = linalg.to_real(result.x).astype(np.float64)
            forward = np.linalg.norm(x - x_true) / np.linalg.norm(x_true)
            predicted = np.linalg.norm(P @ (x - x_true)) / np.linalg.norm(b)
            where = f"{method} ({result.method}), condition {condition:.1e}"
            assert result.x.dtype == dtype
            if result.method == "gram":
                assert backward_error(P, b, x) <= constant * eps * condition, where
                assert predicted <= constant * eps * condition, where
                assert forward <= constant * eps * condition**2, where
            else:
                assert backward_error(P, b, x) <= 10 * max(numpy_error, 4 * eps), where
                if condition * cut < 0.3:  # no singular value is cut off
                    assert forward <= constant * eps * sensitivity, where
            if method == "auto":
                assert result.method in ("gram", "qr")
                if result.method == "gram":
                    assert condition <= 1.25 * LIMIT[dtype], where
                elif wanted <= 10:
                    pytest.fail(f"auto took {result.method} at condition {condition:.1e}")
            if condition * cut < 0.3 and method != "gram" and result.method != "gram":
                assert result.condition == pytest.approx(condition, rel=0.01 + 10 * eps * condition), where


@dtypes
@pytest.mark.parametrize("how", ["mixed", "columns"])
@pytest.mark.parametrize("name", ["complex", "tessarines", "quaternions", "klein4", "R[-1,+1]", "paper-Cl(1,1)"])
def test_products_that_were_searched_for_keep_the_promise_of_gram(name, dtype, how, monkeypatch):
    """Large problems take fewer products, with cancellation; small ones do here."""
    monkeypatch.setattr(gram, "is_large_product", lambda *_: True)
    eps, algebra = np.finfo(dtype).eps, algebras.get(name)
    for wanted in CONDITIONS[dtype]:
        A, B, P, b, x_true, _ = problem_of(algebra, wanted, how, dtype)
        condition = np.linalg.cond(P)
        constant = 100 * np.sqrt(len(x_true))
        x = linalg.to_real(linalg.lstsq(A, B, algebra, method="gram").x).astype(np.float64)
        assert backward_error(P, b, x) <= constant * eps * condition
        assert np.linalg.norm(x - x_true) / np.linalg.norm(x_true) <= constant * eps * condition**2


@dtypes
@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_auto_with_a_ridge_keeps_its_promise(algebra, dtype, ridge):
    """The condition that counts is that of the matrix with the ridge below it."""
    eps = np.finfo(dtype).eps
    for wanted in CONDITIONS[dtype]:
        A, B, P, b, *_ = problem_of(algebra, wanted, "columns", dtype)
        below = np.sqrt(ridge) * np.linalg.norm(P, 2) * np.eye(P.shape[1])
        stacked, zeros = np.vstack([P, below]), np.zeros((P.shape[1], 1))
        expected = np.linalg.lstsq(stacked, np.vstack([b, zeros]), rcond=None)[0]
        result = linalg.lstsq(A, B, algebra, ridge=ridge * np.linalg.norm(P, 2) ** 2)
        condition = np.linalg.cond(stacked)
        if result.method == "gram":
            assert condition <= 1.25 * LIMIT[dtype]
        error = np.linalg.norm(stacked @ (linalg.to_real(result.x) - expected)) / np.linalg.norm(b)
        assert error <= 100 * np.sqrt(P.shape[1]) * eps * condition


def deficient(algebra, case, rng):
    M, L = {"wide": (3, 5), "one row": (1, 4), "one column": (7, 1)}.get(case, (18, 4))
    A, B = rng.standard_normal((M, L, algebra.dim)), rng.standard_normal((M, 2, algebra.dim))
    if case == "dependent":
        A[:, 3] = A[:, 0] - 2 * A[:, 1]
    if case == "zero column":
        A[:, 2] = 0
    if case == "equal rows":
        A[:] = A[0]
    if case == "zero targets":
        B[:] = 0
    return A, B


@methods
@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        *((case, np.float64) for case in ("dependent", "zero column", "equal rows", "zero targets")),
        *((case, np.float64) for case in ("wide", "one row", "one column")),
        ("dependent", np.float32),
        ("wide", np.float32),
    ],
)
def test_deficient(algebra, case, method, dtype):
    """The minimum-norm solution: that of `numpy.linalg.lstsq` with the same cut on Φ_L(A)."""
    A, B = deficient(algebra, case, np.random.default_rng(0))
    A = A.astype(dtype)
    B = B.astype(dtype)
    eps = np.finfo(dtype).eps
    P, b = linalg.left_matrix(A.astype(np.float64), algebra), linalg.to_real(B.astype(np.float64))
    sigma = np.linalg.svd(P, compute_uv=False)
    rank = int(np.sum(sigma > 1e-5 * sigma[0]))
    expected = np.linalg.lstsq(P, b, rcond=1e-5)[0]
    result = linalg.lstsq(A, B, algebra, method=method)
    kept = sigma[0] / sigma[rank - 1]
    tolerance = 1e3 * eps * kept ** (2 if method == "gram" or result.method == "gram" else 1)
    scale = max(np.linalg.norm(expected), np.linalg.norm(b) / sigma[0])
    assert np.linalg.norm(linalg.to_real(result.x) - expected) <= tolerance * scale
    assert result.rank == rank
    if rank < min(P.shape):
        assert result.condition == np.inf
    if case == "zero targets":
        assert not result.x.any()
        assert result.residual == 0


@pytest.mark.parametrize("method", ["auto", "qr", "svd"])
@pytest.mark.parametrize(
    "scales",
    [(1e-150, 1.0, 1e150), (1e150, 1e150, 1e150), (1e-150, 1e-150, 1e-150), (1e-150, 1e-152, 1e-151), (1.0, 1e-150, 1)],
    ids=["all", "large", "small", "mixed small", "one small"],
)
def test_scaled_columns(algebra, method, scales):
    """Scaling is not undone behind the user's back: the answer is that of the matrix as it stands."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((12, 3, algebra.dim)), rng.standard_normal((12, 2, algebra.dim))
    A *= np.array(scales)[:, None]
    P, b = linalg.left_matrix(A, algebra), linalg.to_real(B)
    expected = np.linalg.lstsq(P, b, rcond=np.finfo(float).eps * max(P.shape))[0]
    result = linalg.lstsq(A, B, algebra, method=method)
    error = np.abs(result.x - linalg.from_real(expected, algebra)).max()
    assert error <= 1e-11 * np.abs(expected).max()
    assert result.rank == algebra.dim * sum(s > 1e-10 * max(scales) for s in scales)


@pytest.mark.parametrize(
    ("method", "dtype", "exponent"),
    [
        *((method, np.float32, n) for method in SOLVERS for n in (-15, -10, 10, 15)),
        *((method, np.float64, n) for method in SOLVERS for n in (-140, -80, 80, 140)),
        *((method, np.float32, n) for method in ("auto", "qr", "svd") for n in (-25, 25)),
        *((method, np.float64, n) for method in ("auto", "qr", "svd") for n in (-200, 200)),
    ],
)
@pytest.mark.parametrize("name", ["real", "quaternions"])
def test_units_of_the_matrix(name, method, dtype, exponent):
    """A power of two in front of A goes into X, for "auto" also where the squares of A leave the range of numbers."""
    algebra = algebras.get(name)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 3, algebra.dim)).astype(dtype)
    B = rng.standard_normal((20, 2, algebra.dim)).astype(dtype)
    expected = linalg.lstsq(A, B, algebra, method="svd").x
    unit = dtype(2.0 ** round(exponent * np.log2(10)))
    result = linalg.lstsq(A * unit, B, algebra, method=method)
    np.testing.assert_allclose(result.x * unit, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)
    assert result.rank == 3 * algebra.dim
