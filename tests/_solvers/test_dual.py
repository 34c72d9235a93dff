"""Fewer rows than unknowns: the accumulators keep the rows, and solve the dual problem."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from helpers import accumulated, rows_of
from hyperelm import Algebra, ELMRegressor, algebras
from hyperelm._solvers.dual import FewRows, Thin, problems_of_rows
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.loo import AtOneRidge, BySpectrum, at_ridge, residuals_by
from hyperelm._solvers.problem import NormalEquations, Triangular
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve
from hyperelm._solvers.spectrum import Spectrum
from oracles import (
    from_real,
    hat_matrix,
    least_squares,
    left_matrix,
    penalised,
    refitted_residuals,
    ridge_solution,
    to_real,
)

NAMES = ["real", "complex", "quaternions", "R[-1,+1]", "klein4", "octonions"]
L, M, N = 9, 5, 2
kinds = pytest.mark.parametrize("kind", [Gram, QR])
names = pytest.mark.parametrize("name", NAMES)


def few(kind, algebra, weight=None, dtype=np.float64):
    H, T = (rows.astype(dtype) for rows in rows_of(algebra, (M, L, N), 3))
    accumulator = kind(algebra, L, N, dtype)
    accumulator.update(H[:2], T[:2], None if weight is None else weight[:2])
    accumulator.update(H[2:], T[2:], None if weight is None else weight[2:])
    return accumulator, H, T


@kinds
@names
def test_the_solution_of_least_norm(name, kind):
    algebra = algebras.get(name)
    accumulator, H, T = few(kind, algebra)
    assert all(isinstance(p, FewRows if kind is Gram else Triangular) for p in accumulator.problems())
    solution = solve(accumulator, 0.0)
    np.testing.assert_allclose(solution.coef, least_squares(H, T, algebra), rtol=0, atol=1e-10)
    values = np.linalg.svd(left_matrix(H, algebra), compute_uv=False)
    assert solution.spread.rank == algebra.dim * M
    assert solution.spread.condition == pytest.approx(values[0] / values[-1], rel=1e-6)


@kinds
@names
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_ridge_with_a_free_bias_and_weights(name, kind, dtype):
    algebra, weight = algebras.get(name), np.array([1.0, 2.0, 0.5, 0.0, 3.0])
    accumulator, H, T = few(kind, algebra, weight, dtype)
    roots = np.sqrt(np.repeat(weight, algebra.dim))[:, None]
    P, t = roots * left_matrix(H, algebra), roots * to_real(T)
    expected = from_real(ridge_solution(P, t, 0.3, penalised(algebra, L, (8,))), algebra)
    found = solve(accumulator, 0.3, free=(8,)).coef
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e4 * np.finfo(dtype).eps)


@kinds
@names
def test_rows_that_are_left_out(name, kind):
    algebra, ridges = algebras.get(name), np.array([0.01, 0.7])
    accumulator, H, T = few(kind, algebra)
    spectrum = Spectrum(accumulator, (8,))
    e, _ = residuals_by(BySpectrum(spectrum, ridges), H, T, None)
    for n, ridge in enumerate(ridges):
        expected = refitted_residuals(left_matrix(H, algebra), T, algebra, ridge, penalised(algebra, L, (8,)))
        np.testing.assert_allclose(e[:, n], expected, rtol=0, atol=1e-7)


@names
def test_scores_of_ridges_are_those_of_the_sums(name, monkeypatch):
    algebra = algebras.get(name)
    accumulator, H, T = few(Gram, algebra)
    monkeypatch.setattr(Gram, "keeps_few", False)
    summed = accumulated(Gram, algebra, H, T)
    assert isinstance(summed.problems()[0], NormalEquations)
    ridges = np.array([1e-3, 0.1, 10.0])
    expected, found = (Spectrum(each, (8,)).gcv(ridges) for each in (summed, accumulator))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@kinds
def test_rows_become_sums_when_they_are_many(kind):
    """Whether they come one chunk after another, by a merge, or to fewer unknowns."""
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (2 * L, L, N), 4)
    one, other = (accumulated(kind, algebra, H[at], T[at]) for at in (slice(0, 6), slice(6, None)))
    assert one.few
    assert not other.few
    merged, reverse = pickle.loads(pickle.dumps(one)), pickle.loads(pickle.dumps(other))
    merged.merge(other)
    reverse.merge(one)
    one.update(H[6:], T[6:])
    both = [accumulated(kind, algebra, H[at], T[at]) for at in (slice(0, 4), slice(4, 8))]
    both[0].merge(both[1])
    assert both[0].few
    both[0].update(H[8:], T[8:])
    expected = least_squares(H, T, algebra)
    for accumulator in (one, merged, reverse, both[0]):
        assert not accumulator.few
        np.testing.assert_allclose(solve(accumulator).coef, expected, rtol=0, atol=1e-9)
    part = accumulated(kind, algebra, H[:6], T[:6]).restricted(np.arange(3))
    assert not part.few
    np.testing.assert_allclose(solve(part).coef, least_squares(H[:6, :3], T[:6], algebra), rtol=0, atol=1e-9)


@kinds
def test_fewer_unknowns_other_targets_and_files(kind):
    algebra = algebras.get("quaternions")
    accumulator, H, T = few(kind, algebra)
    part = accumulator.restricted(np.arange(1, 8))
    assert part.few
    np.testing.assert_allclose(solve(part).coef, least_squares(H[:, 1:8], T, algebra), rtol=0, atol=1e-10)
    C = np.array([[1.0, -1.0, 0.5], [2.0, 0.0, 1.0]])
    combined = solve(accumulator.combined(C), 0.1).coef
    expected = np.einsum("lnd,nr->lrd", solve(accumulator, 0.1).coef, C)
    np.testing.assert_allclose(combined, expected, rtol=0, atol=1e-10)
    restored = kind(algebra, L, N)
    before = solve(accumulator, 0.1).coef
    restored.restore(accumulator.arrays())
    for each in (restored, accumulator):
        np.testing.assert_allclose(solve(each, 0.1).coef, before, rtol=0, atol=1e-9)


def test_a_table_with_a_factor_whose_square_is_beyond_double_precision():
    quaternions = algebras.get("quaternions")
    algebra = Algebra(quaternions.table * 2.0**600)
    accumulator, H, T = few(Gram, algebra)
    np.testing.assert_allclose(solve(accumulator).coef * 2.0**600, least_squares(H, T, quaternions), rtol=0, atol=1e-10)


def test_products_with_the_two_factors_of_a_matrix():
    rng = np.random.default_rng(0)
    A, W = rng.standard_normal((3, 7)) + 1j * rng.standard_normal((3, 7)), rng.standard_normal((3, 2))
    V, x, rows = A.conj().T @ W, rng.standard_normal((2, 4)), rng.standard_normal((2, 5, 7))
    np.testing.assert_allclose(Thin(A, W) @ x, V @ x)
    np.testing.assert_allclose(rows @ Thin(A, W), rows @ V)
    np.testing.assert_allclose(rows @ Thin(A, W)[:, [1]], rows @ V[:, [1]])


def test_problems_of_several_chunks_are_those_of_all_rows():
    algebra = algebras.get("tessarines")
    H, T = rows_of(algebra, (M, L, N))
    whole = problems_of_rows(FewRows, algebra, [(H, T)])
    parts = problems_of_rows(FewRows, algebra, [(H[:3], T[:3]), (H[3:], T[3:])])
    for a, b in zip(whole, parts):
        np.testing.assert_array_equal(a.R, b.R)
        np.testing.assert_array_equal(a.qt, b.qt)


@pytest.mark.parametrize("name", ["real", "quaternions"])
def test_partial_fit_goes_over_to_the_sums(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.sin(X[:, 0])
    model = ELMRegressor(name, 30, ridge=0.1, weight_scale=0.5, random_state=0)
    for at in (slice(0, 10), slice(10, 20), slice(20, 45), slice(45, 60)):
        model.partial_fit(X[at], y[at])
    whole = ELMRegressor(name, 30, ridge=0.1, weight_scale=0.5, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.output_weights_, whole.output_weights_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "klein4", "octonions"])
def test_one_ridge_takes_one_decomposition_of_few_rows(name):
    algebra = algebras.get(name)
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((7, 12, algebra.dim)), rng.standard_normal((7, 2, algebra.dim))
    H[:, -1] = np.eye(algebra.dim)[0]
    accumulator = accumulated(Gram, algebra, H, T)
    method = at_ridge(accumulator, 0.3, [11])
    assert isinstance(method, AtOneRidge)
    assert method.is_dual
    P, penalty = left_matrix(H, algebra), penalised(algebra, 12, free=[11])
    assert accumulator.are_kept(H)
    for part in method.reduced:  # products of the rows with themselves are known already
        whole = part.turned_back(part.problem.R)
        np.testing.assert_allclose(
            part.turned_back(part.problem.own_in_basis), part.problem.in_basis(whole), atol=1e-12
        )
    residuals, leverages = residuals_by(method, H, T, None)
    np.testing.assert_allclose(residuals[:, 0], refitted_residuals(P, T, algebra, 0.3, penalty), rtol=1e-9, atol=1e-9)
    some, _ = residuals_by(method, H[2:5], T[2:5], None)
    np.testing.assert_allclose(some, residuals[2:5], rtol=1e-9, atol=1e-9)
    hat = np.diagonal(hat_matrix(P, 0.3, penalty)).reshape(7, -1).mean(axis=1)
    np.testing.assert_allclose(leverages[:, 0], hat, rtol=1e-9)


@pytest.mark.parametrize("is_complex", [False, True])
def test_the_square_root_of_the_inverse_is_that_of_all_unknowns(is_complex):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 9)) + (1j * rng.standard_normal((5, 9)) if is_complex else 0)
    few = FewRows(3 * A, rng.standard_normal((5, 1)).astype(A.dtype), 1, 5, factor=3.0)
    C = few.cholesky(0.7).half_solution(np.eye(9, dtype=A.dtype))
    expected = np.linalg.inv(9 * A.conj().T @ A + 0.7 * np.eye(9))
    np.testing.assert_allclose(C @ C.conj().T, expected, rtol=0, atol=1e-13)
