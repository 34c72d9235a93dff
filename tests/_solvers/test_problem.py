"""What a block's summary gives, beside NumPy's dense solutions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg

from hyperelm._solvers.problem import NormalEquations, Triangular


def normal_equations(K, R, dtype, seed=0):
    rng = np.random.default_rng(seed)
    A, t = rng.standard_normal((2 * K + 3, K)), rng.standard_normal((2 * K + 3, R))
    if np.dtype(dtype).kind == "c":
        A, t = A + 1j * rng.standard_normal(A.shape), t + 1j * rng.standard_normal(t.shape)
    A, t = A.astype(dtype), t.astype(dtype)
    return NormalEquations(A.conj().T @ A, A.conj().T @ t, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize(("K", "R"), [(1, 1), (5, 0), (7, 3), (40, 200), (200, 2)])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_cholesky_solves_and_keeps_the_sums(K, R, dtype, ridge):
    problem = normal_equations(K, R, dtype)
    gram, cross = problem.gram.copy(), problem.cross.copy()
    x = problem.cholesky(ridge).solution(problem.cross)
    assert x.dtype == dtype
    wanted = np.linalg.solve(gram.astype(np.complex128) + ridge * np.eye(K), cross.astype(np.complex128))
    assert_allclose(x, wanted, rtol=0, atol=1e3 * np.finfo(dtype).eps * np.abs(wanted).max(initial=0))
    assert np.array_equal(problem.gram, gram)
    assert np.array_equal(problem.cross, cross)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_right_hand_sides_may_lie_anyhow(dtype):
    problem = normal_equations(20, 12, dtype)
    factor = problem.cholesky(0.0)
    x = factor.solution(problem.cross)
    for other in (np.asfortranarray(problem.cross), np.repeat(problem.cross, 2, axis=1)[:, ::2]):
        assert_allclose(factor.solution(other), x, rtol=1e-12)


def test_no_cholesky_of_an_indefinite_matrix():
    assert NormalEquations(np.diag([1.0, -1.0]), np.ones((2, 1)), 1).cholesky(0.0) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("K", [30, 150])
def test_extreme_values(K, dtype):
    problem = normal_equations(K, 1, dtype)
    values = np.sqrt(np.linalg.eigvalsh(problem.gram))
    largest, smallest = problem.extreme_values(problem.cholesky(0.0))
    assert largest == pytest.approx(values[-1], rel=0.05)
    assert smallest == pytest.approx(values[0], rel=0.1)


def test_singular_vectors_where_the_fast_driver_fails(monkeypatch):
    """It failed on 150 rows with 96 different ones, by the BLAS of one machine."""
    fast = linalg.svd

    def failing(matrix, *, lapack_driver="gesdd", **how):
        if lapack_driver == "gesdd":
            raise linalg.LinAlgError("SVD did not converge")
        return fast(matrix, lapack_driver=lapack_driver, **how)

    R, t = np.random.default_rng(0).standard_normal((2, 7, 4))
    monkeypatch.setattr(linalg, "svd", failing)
    found = Triangular(R, t, 1, 7).spectral()
    assert_allclose(found.solution(0.1, 0.0), np.linalg.solve(R.T @ R + 0.1 * np.eye(4), R.T @ t))
