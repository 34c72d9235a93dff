"""Leave-one-out residuals against refitting without each sample."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import accumulated, leave_one_out, rows_of
from hyperelm import ELMRegressor, algebras, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.loo import at_ridge, residuals_by
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve
from oracles import left_matrix, penalised, refitted_residuals

kinds = pytest.mark.parametrize("kind", [Gram, QR])


def refitted(H, T, algebra, ridge, weight, free):
    """The residual of every sample under the fit to all the others."""
    penalty = penalised(algebra, H.shape[1], free)
    return refitted_residuals(left_matrix(H, algebra), T, algebra, ridge, penalty, weight)


def residuals_of(kind, H, T, algebra, ridge=0.0, weight=None, free=(), dtype=np.float64):
    accumulator = kind(algebra, H.shape[1], T.shape[1], dtype)
    accumulator.update(H[:5], T[:5], None if weight is None else weight[:5])
    accumulator.update(H[5:], T[5:], None if weight is None else weight[5:])
    solution = solve(accumulator, ridge, free=free)
    return leave_one_out(accumulator, solution, H.astype(dtype), T.astype(dtype), weight, free=free), solution


@kinds
@pytest.mark.parametrize("ridge", [0.0, 0.4])
@pytest.mark.parametrize("free", [(), (2,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_refits(algebra, kind, ridge, free, weighted):
    H, T = rows_of(algebra, (12, 3, 2))
    weight = np.random.default_rng(1).uniform(0.2, 2, 12) if weighted else None
    residuals, solution = residuals_of(kind, H, T, algebra, ridge, weight, free)
    expected = refitted(H, T, algebra, solution.ridge, np.ones(12) if weight is None else weight, free)
    assert residuals.shape == T.shape
    np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@kinds
def test_weight_zero_leaves_the_residual(algebra, kind):
    H, T = rows_of(algebra, (12, 3, 2))
    weight = np.where(np.arange(12) == 4, 0.0, 1.0)
    residuals, solution = residuals_of(kind, H, T, algebra, 0.1, weight)
    plain = linalg.matmul(H, solution.coef, algebra) - T
    np.testing.assert_allclose(residuals[4], plain[4], atol=1e-12 * algebra.dim)
    np.testing.assert_allclose(residuals, refitted(H, T, algebra, 0.1, weight, ()), rtol=0, atol=1e-9)


@kinds
def test_dependent_columns(algebra, kind):
    """The prediction of the minimum-norm solution is that of any other, with a ridge or without."""
    H, T = rows_of(algebra, (14, 3, 2))
    H[:, 2] = 3 * H[:, 0]
    for ridge in (0.0, 0.2):
        residuals, _ = residuals_of(kind, H, T, algebra, ridge)
        expected = refitted(H, T, algebra, ridge, np.ones(14), ())
        np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@kinds
def test_fewer_rows_than_unknowns(kind):
    """With a ridge the formula holds; without, every leverage is 1 and there is no such residual."""
    for name in ("real", "quaternions", "klein4", "R[+1,+1]"):
        algebra = algebras.get(name)
        H, T = rows_of(algebra, (4, 7, 2))
        residuals, _ = residuals_of(kind, H, T, algebra, 0.5)
        np.testing.assert_allclose(residuals, refitted(H, T, algebra, 0.5, np.ones(4), ()), rtol=0, atol=1e-9)
        assert np.all(np.isnan(residuals_of(kind, H, T, algebra, 0.0)[0]))


@kinds
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("free", [(), (1,)])
@pytest.mark.parametrize("name", ["real", "klein4", "quaternions", "R[+1,+1]"])
def test_a_row_that_alone_decides_an_unknown_has_no_residual(name, kind, free, dtype):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (12, 3, 2))
    H[:, 2] = 0
    H[7, 2] = [0.5, 1, -1, 2][: algebra.dim]
    residuals, _ = residuals_of(kind, H, T, algebra, free=free, dtype=dtype)
    assert residuals.dtype == dtype
    assert np.all(np.isnan(residuals[7]))
    others, expected = np.arange(12) != 7, refitted(H, T, algebra, 0.0, np.ones(12), free)
    np.testing.assert_allclose(residuals[others], expected[others], atol=1e7 * np.finfo(dtype).eps)


@kinds
@pytest.mark.parametrize("name", ["real", "klein4", "quaternions"])
@pytest.mark.parametrize("size", [20, 100])
def test_as_many_unknowns_as_rows_leave_no_residual(name, kind, size):
    """Whatever the condition lets rounding leave of it."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (size, size, 1))
    residuals, solution = residuals_of(kind, np.tanh(H), T, algebra)
    assert solution.spread.rank == size * algebra.dim
    assert np.isnan(residuals).all()


@kinds
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_constant_columns(algebra, kind, ridge):
    """Beside the free one they say nothing: what is left of them is rounding."""
    for seed in range(5):
        H, T = rows_of(algebra, (11, 2, 1), seed)
        H[:, 0], H[:, 1] = H[0, 0], np.eye(algebra.dim)[0]
        if linalg.lstsq(H[:1, 1:], T[:1], algebra).rank < algebra.dim:
            continue  # 1 does not explain everything constant
        residuals, _ = residuals_of(kind, H, T, algebra, ridge, free=(1,))
        np.testing.assert_allclose(residuals, (T.sum(axis=0) - T) / 10 - T, atol=1e-12)


@kinds
@pytest.mark.parametrize("name", ["klein4", "R[-1,+1]", "octonions"])
def test_whole_numbers_and_lists(name, kind):
    algebra = algebras.get(name)
    rng = np.random.default_rng(0)
    H, T = rng.integers(-5, 6, (30, 3, algebra.dim)), rng.integers(-5, 6, (30, 2, algebra.dim))
    accumulator = kind(algebra, 3, 2)
    accumulator.update(H, T)
    solution = solve(accumulator, 0.5)
    expected = leave_one_out(accumulator, solution, H.astype(float), T.astype(float))
    np.testing.assert_array_equal(leave_one_out(accumulator, solution, H, T), expected)
    np.testing.assert_array_equal(leave_one_out(accumulator, solution, H.tolist(), T.tolist()), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_any_size(algebra, dtype):
    """Whose squares are beyond the precision."""
    H, T = rows_of(algebra, (12, 3, 2))
    expected = refitted(H, T, algebra, 0.4, np.ones(12), (2,))
    for exponent in (20, -20) if dtype == np.float32 else (150, -150):
        unit = 10.0**exponent
        residuals, _ = residuals_of(QR, unit * H, T, algebra, 0.4 * unit**2, free=(2,), dtype=dtype)
        np.testing.assert_allclose(residuals, expected, atol=1e4 * np.finfo(dtype).eps * np.abs(expected).max())


@kinds
def test_any_of_the_rows(algebra, kind):
    """A second pass takes row blocks as the first did."""
    H, T = rows_of(algebra, (12, 3, 2))
    weight = np.random.default_rng(1).uniform(0.2, 2, 12)
    accumulator = kind(algebra, 3, 2)
    accumulator.update(H, T, weight)
    solution = solve(accumulator, 0.3)
    expected = refitted(H, T, algebra, 0.3, weight, ())
    for rows in (slice(3, 8), slice(11, 12)):
        residuals = leave_one_out(accumulator, solution, H[rows], T[rows], weight[rows])
        np.testing.assert_allclose(residuals, expected[rows], rtol=0, atol=1e-9)


@kinds
@pytest.mark.parametrize("name", ["real", "quaternions", "klein4"])
def test_none_of_the_rows(kind, name):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (12, 3, 2))
    accumulator = kind(algebra, 3, 2)
    accumulator.update(H, T)
    assert leave_one_out(accumulator, solve(accumulator, 0.3), H[:0], T[:0]).shape == (0, 2, algebra.dim)


@kinds
def test_single_precision(algebra, kind):
    H, T = rows_of(algebra, (15, 3, 2))
    residuals, _ = residuals_of(kind, H, T, algebra, 0.3, dtype=np.float32)
    assert residuals.dtype == np.float32
    expected = refitted(H, T, algebra, 0.3, np.ones(15), ())
    np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_without_a_penalised_unknown():
    """The mean of the other rows: a column of ones that no ridge touches."""
    algebra = algebras.get("quaternions")
    T = np.random.default_rng(0).standard_normal((6, 1, 4))
    H = np.broadcast_to(np.eye(4)[0], (6, 1, 4))
    accumulator = QR(algebra, 1, 1)
    accumulator.update(H, T)
    residuals = leave_one_out(accumulator, solve(accumulator, 0.5, free=[0]), H, T, free=[0])
    others = (T.sum(axis=0) - T) / 5
    np.testing.assert_allclose(np.abs(residuals), np.abs(T - others), atol=1e-12)


def test_columns_that_the_bias_leaves_nothing_of_have_no_leverage():
    """In single precision, 1 % of spread is less than the rounding of normal equations."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal((200, 2)), 1 + 0.01 * rng.standard_normal(200)].astype(np.float32)
    y = rng.standard_normal(200).astype(np.float32)
    settings = {"direct_link": True, "weight_scale": 1e-3, "ridge": 2e-3, "random_state": 0}
    model = ELMRegressor("real", 1, **settings, solver="gram").fit(X, y)
    assert model.leverage(X).sum() <= 5.01  # the number of unknowns


@pytest.mark.parametrize("name", ["R[-1,+1]", "paper-Cl(1,1)", "octonions", "split-octonions", "sedenions"])
def test_matrices_that_are_nearly_multiples_of_the_identity(name):
    """Where they count as such, the errors of all rows together are those of the matrices to a few parts in a
    thousand."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (400 // algebra.dim, 100 // algebra.dim, 1))
    accumulator = accumulated(Gram, algebra, H, T)
    exact, rough = (residuals_by(at_ridge(accumulator, 1.0, (), is_exact=exact), H, T, None) for exact in (True, False))
    assert not np.array_equal(exact[0], rough[0])
    assert np.linalg.norm(rough[0]) == pytest.approx(np.linalg.norm(exact[0]), rel=0.02)
    np.testing.assert_allclose(rough[1], exact[1], rtol=0.6)
    assert rough[1].sum() == pytest.approx(exact[1].sum(), rel=0.05)
