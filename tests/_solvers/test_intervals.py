"""What is kept of residuals, and probes that show the leverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import algebras
from hyperelm._algebra.algebra import Algebra
from hyperelm._linalg.products import left_matrix, matmul
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.intervals import LEVELS, Residuals, probes, standardised, weighted_quantiles
from hyperelm._solvers.loo import AtOneRidge, BySpectrum, at_ridge, residuals_by
from hyperelm._solvers.qr import QR

TWICE = Algebra(2 * algebras.get("quaternions").table, name="twice")


def rows(algebra, seed=0, count=60, unknowns=5):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((count, unknowns, algebra.dim))
    H[:, -1] = np.eye(algebra.dim)[0]
    return H, rng.standard_normal((count, 2, algebra.dim))


@pytest.mark.parametrize("method", [Gram, QR])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "coquaternions", "octonions", "twice"])
def test_probes_show_the_leverage(name, ridge, method):
    """As many probes as unknowns give a (AᵀA + λ)⁻¹ aᵀ, with the bias not penalised."""
    algebra = TWICE if name == "twice" else algebras.get(name)
    H, T = rows(algebra)
    accumulator = method(algebra, 5, 2)
    accumulator.update(H, T)
    leave_out = at_ridge(accumulator, ridge, [4])
    assert isinstance(leave_out, AtOneRidge if method is Gram else BySpectrum)
    A, d = left_matrix(H, algebra), algebra.dim
    penalty = np.repeat([ridge] * 4 + [0.0], d)
    hat = A @ np.linalg.solve(A.T @ A + np.diag(penalty), A.T)
    expected = hat.diagonal().reshape(60, d).mean(axis=1)
    residuals, leverages = residuals_by(leave_out, H, T, None)
    assert_allclose(leverages[:, 0], expected, rtol=1e-8)
    targets = T.swapaxes(1, 2).reshape(60 * d, 2)
    for m in (0, 17):  # by a fit to all other rows
        at = np.arange(60 * d) // d == m
        rest = A[~at]
        coef = np.linalg.solve(rest.T @ rest + np.diag(penalty), rest.T @ targets[~at])
        assert_allclose(residuals[m, 0].T, A[at] @ coef - targets[at], rtol=1e-7, atol=1e-9)
    numbers = 5 * d
    found = (matmul(H, probes(leave_out, numbers), algebra) ** 2).sum(axis=(1, 2)) / (d * numbers)
    assert_allclose(found, expected, rtol=1e-8)


def test_few_probes_show_it_in_the_mean():
    algebra = algebras.get("quaternions")
    H, T = rows(algebra, count=400, unknowns=40)
    accumulator = Gram(algebra, 40, 2)
    accumulator.update(H, T)
    leave_out = at_ridge(accumulator, 1.0, [39])
    expected = residuals_by(leave_out, H, T, None)[1][:, 0]
    found = (matmul(H, probes(leave_out, 16), algebra) ** 2).mean(axis=(1, 2))
    assert_allclose(found.mean(), expected.mean(), rtol=0.05)
    assert np.std(found / expected) < 0.2


@given(st.integers(0, 10_000), st.integers(1, 80))
def test_quantiles_of_repeated_values(seed, count):
    rng = np.random.default_rng(seed)
    values, times = rng.standard_normal(count).round(1), rng.integers(1, 5, count)
    found = weighted_quantiles(values, times.astype(float))
    repeated = np.sort(np.repeat(values, times))
    assert_array_equal(found, weighted_quantiles(repeated, np.ones(len(repeated))))
    ranks = np.ceil(np.linspace(0, 1, LEVELS) * len(repeated) * (1 - 1e-12)).astype(int)
    assert_array_equal(found, repeated[np.maximum(ranks - 1, 0)])


def test_widths():
    """For a coverage c, the share c (n + 1)/n of the residuals is smaller."""
    rng = np.random.default_rng(0)
    residuals = rng.standard_normal((5000, 3)) * [1.0, 10.0, 0.0]
    found = Residuals.of(residuals, np.ones(5000), 5000.0)
    for coverage in (0.1, 0.5, 0.9, 0.99):
        widths = found.half_widths(coverage, joint=False)
        assert_allclose((np.abs(residuals) <= widths).mean(axis=0)[:2], coverage, atol=0.005)
        box = found.half_widths(coverage, joint=True)
        assert_allclose((np.abs(residuals) <= box).all(axis=1).mean(), coverage, atol=0.005)
        assert widths[2] == box[2] == 0
    assert_allclose(found.units, [1, 10, 0], rtol=0.05)


def test_rows_without_a_residual_count_as_infinite():
    residuals = np.append(np.linspace(-1, 1, 90), [np.nan] * 10)[:, None]
    found = Residuals.of(residuals, np.ones(100), 100.0)
    assert np.isfinite(found.half_widths(0.8, joint=False)).all()
    assert np.isinf(found.half_widths(0.95, joint=False)).all()


def test_standardised():
    """With s_m = e₋ₘ √(1 - h_m), the error of a new row of leverage h/(1 - h) is that of the row left out."""
    e, h = np.array([[2.0], [3.0]]), np.array([0.0, 0.75])
    s = standardised(e, h)
    assert_allclose(s * np.sqrt(1 + h / (1 - h))[:, None], e)
