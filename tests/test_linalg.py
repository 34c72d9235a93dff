from __future__ import annotations

import numpy as np
import pytest

from helpers import rows_of
from hyperelm import algebras, linalg


def system(algebra, shape, seed=0, *, dependent=False):
    A, B = rows_of(algebra, shape, seed)
    if dependent:
        A[:, -1] = 2 * A[:, 0]
    return A, B


@pytest.mark.parametrize("method", ["svd", "qr", "gram", "auto"])
@pytest.mark.parametrize(
    ("shape", "dependent"),
    [
        ((20, 4, 3), False),
        ((3, 5, 2), False),
        ((20, 4, 2), True),
        ((4, 6, 2), True),
        ((1, 3, 2), False),
        ((6, 1, 1), False),
    ],
)
def test_against_the_pseudoinverse(algebra, method, shape, dependent):
    """φ(X) = Φ_L(A)† φ(B): tall, wide, dependent, one row, one column."""
    A, B = system(algebra, shape, dependent=dependent)
    matrix = linalg.left_matrix(A, algebra)
    expected = linalg.from_real(np.linalg.pinv(matrix, rcond=1e-12) @ linalg.to_real(B), algebra)
    result = linalg.lstsq(A, B, algebra, method=method)
    np.testing.assert_allclose(result.x, expected, atol=1e-9 * np.abs(expected).max())
    assert result.rank == np.linalg.matrix_rank(matrix)
    assert result.residual == pytest.approx(
        np.linalg.norm(matrix @ linalg.to_real(expected) - linalg.to_real(B)), abs=1e-9
    )
    assert result.method in (["gram", "qr"] if method == "auto" else [method])
    if result.rank < min(matrix.shape):
        assert result.condition == np.inf
    elif result.method != "gram":
        assert result.condition == pytest.approx(np.linalg.cond(matrix), rel=1e-8)


@pytest.mark.parametrize("method", ["svd", "qr", "auto"])
def test_minimum_norm(algebra, method):
    """Any step in the null space of Φ_L(A) keeps the residual and makes the solution longer."""
    A, B = system(algebra, (3, 5, 2))
    x = linalg.lstsq(A, B, algebra, method=method).x
    _, sigma, rows = np.linalg.svd(linalg.left_matrix(A, algebra))
    null = rows[np.sum(sigma > 1e-10 * sigma[0]) :].T
    step = null @ np.random.default_rng(1).standard_normal((null.shape[1], 2))
    other = x + 1e-3 * linalg.from_real(step, algebra)
    assert linalg.norm(linalg.matmul(A, other, algebra) - linalg.matmul(A, x, algebra)) < 1e-10
    assert linalg.norm(other) > linalg.norm(x)
    np.testing.assert_allclose(null.T @ linalg.to_real(x), 0, atol=1e-10)


@pytest.mark.parametrize("method", ["svd", "qr", "gram", "auto"])
def test_ridge_against_the_formula(algebra, method):
    A, B = system(algebra, (20, 4, 3))
    matrix = linalg.left_matrix(A, algebra)
    normal = matrix.T @ matrix + 0.3 * np.eye(matrix.shape[1])
    expected = np.linalg.solve(normal, matrix.T @ linalg.to_real(B))
    result = linalg.lstsq(A, B, algebra, ridge=0.3, method=method)
    np.testing.assert_allclose(linalg.to_real(result.x), expected, atol=1e-11)


@pytest.mark.parametrize("method", ["svd", "qr", "gram", "auto"])
@pytest.mark.parametrize("shape", [(0, 3, 2), (5, 0, 2), (5, 3, 0), (0, 0, 0)])
def test_empty_axes(method, shape):
    algebra = algebras.get("quaternions")
    M, L, N = shape
    result = linalg.lstsq(np.ones((M, L, 4)), np.ones((M, N, 4)), algebra, method=method)
    assert result.x.shape == (L, N, 4)
    assert np.all(np.isfinite(result.x))


@pytest.mark.parametrize("method", ["svd", "qr", "gram", "auto"])
def test_zero_targets_and_zero_matrix(algebra, method):
    A, B = system(algebra, (12, 3, 2))
    assert np.all(linalg.lstsq(A, 0 * B, algebra, method=method).x == 0)
    result = linalg.lstsq(0 * A, B, algebra, method=method)
    assert np.all(result.x == 0)
    assert result.rank == 0


@pytest.mark.parametrize("method", ["svd", "qr", "gram", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_layout_and_inputs_are_kept(method, dtype):
    algebra = algebras.get("tessarines")
    A, B = system(algebra, (24, 4, 3))
    expected = linalg.lstsq(A, B, algebra, method="svd").x
    A, B = np.asfortranarray(A.astype(dtype)), B.astype(dtype)[::-1][::-1]
    A.setflags(write=False)
    before = A.copy(), B.copy()
    result = linalg.lstsq(A, B, algebra, method=method)
    assert result.x.dtype == dtype
    np.testing.assert_allclose(result.x, expected, atol=1e3 * np.finfo(dtype).eps)
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])
    integers = linalg.lstsq((10 * A).astype(np.int16), B, algebra, method=method)
    assert integers.x.dtype == np.float64


def test_rtol_cuts_singular_values(algebra):
    A, B = system(algebra, (20, 4, 2))
    A[:, 0] *= 1e-6
    for method in ("svd", "qr"):
        assert linalg.lstsq(A, B, algebra, method=method).rank == np.linalg.matrix_rank(linalg.left_matrix(A, algebra))
        cut = linalg.lstsq(A, B, algebra, method=method, rtol=np.float32(1e-3))
        matrix = linalg.left_matrix(A, algebra)
        assert cut.rank == np.linalg.matrix_rank(matrix, tol=1e-3 * np.linalg.norm(matrix, 2))
        expected = np.linalg.pinv(matrix, rcond=1e-3) @ linalg.to_real(B)
        np.testing.assert_allclose(linalg.to_real(cut.x), expected, atol=1e-9)


H = algebras.get("quaternions")
A, B = system(H, (6, 2, 1))
A_NAN, B_INF = A.copy(), B.copy()
A_NAN[4, 1, 2] = np.nan
B_INF[2, 0, 0] = -np.inf


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: linalg.lstsq(A, B[:5], H), ValueError, r"`B` must have as many rows as `A`, 6, got 5"),
        (
            lambda: linalg.lstsq(A, B, H, method="fast"),
            ValueError,
            "`method` must be one of 'auto', 'gram', 'qr', 'svd', got 'fast'",
        ),
        (
            lambda: linalg.lstsq(A, B, H, ridge=-1),
            ValueError,
            "`ridge` must be a finite number >= 0 or one of 'auto', 'loo', 'gcv', got -1",
        ),
        (lambda: linalg.lstsq(A, B, H, ridge="cv"), ValueError, "`ridge` must be"),
        (lambda: linalg.lstsq(A, B, "quaternions"), TypeError, "`algebra` must be an Algebra, .* `algebras.get`"),
        (
            lambda: linalg.lstsq(A, B, H, rtol=np.float32(2)),
            ValueError,
            r"`rtol` must be a number in \[0, 1\), got .*2\.0",
        ),
        (lambda: linalg.lstsq(A, B, H, rtol=2), ValueError, r"`rtol` must be a number in \[0, 1\), got 2"),
        (
            lambda: linalg.lstsq(A[..., :3], B, H),
            ValueError,
            r"`A` must have a last axis of length 4 \(quaternions\)",
        ),
        (lambda: linalg.lstsq(A, B[:, 0], H), ValueError, "`B` must have at least 3 axes"),
        (lambda: linalg.lstsq(A[None], B, H), ValueError, "`A` must have 3 axes"),
        (lambda: linalg.lstsq(A + 0j, B, H), TypeError, "`A` must be real"),
        (lambda: linalg.lstsq(A_NAN, B, H), ValueError, "`A` must be finite, got nan in row 4"),
        (lambda: linalg.lstsq(A, B_INF, H), ValueError, "`B` must be finite, got -inf in row 2"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
