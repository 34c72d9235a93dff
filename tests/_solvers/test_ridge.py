"""The choice of the ridge by leave-one-out errors against fits without each row, and what bounds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import accumulated
from hyperelm import algebras, linalg
from hyperelm._solvers import ridge
from hyperelm._solvers.accumulator import mixed
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.ridge import best_by_loo
from hyperelm._solvers.sample import RowSample, combinations, drawn
from hyperelm._solvers.spectrum import VALUES, Spectrum, is_permitted
from oracles import hat_matrix, left_matrix, penalised, refitted_residuals

kinds = pytest.mark.parametrize("kind", [Gram, QR])


def problem(algebra, shape, seed=0, noise=0.5):
    """Rows H with a column of ones at the end, and targets T that they explain but for noise."""
    M, L, N = shape
    rng = np.random.default_rng(seed)
    H = np.tanh(rng.standard_normal((M, L, algebra.dim)))
    H[:, -1] = np.eye(algebra.dim)[0]
    X = rng.standard_normal((L, N, algebra.dim))
    return H, linalg.matmul(H, X, algebra) + noise * rng.standard_normal((M, N, algebra.dim))


def chosen(kind, algebra, H, T, weight=None, places=None):
    weights = np.ones(len(H)) if weight is None else weight
    sample = RowSample(H, T, np.minimum(weights, 1), weights)
    places = np.arange(T[0].size) if places is None else places
    accumulator = accumulated(kind, algebra, H, T, weight)
    return best_by_loo(accumulator, sample, free=(H.shape[1] - 1,), places=places, columns=len(places))


def by_refits(algebra, H, T, ridges, places):
    """The mean squared error of fits without each row, and the mean leverage, of every ridge."""
    P, penalty = left_matrix(H, algebra), penalised(algebra, H.shape[1], free=[H.shape[1] - 1])
    leverages = np.array([np.trace(hat_matrix(P, ridge, penalty)) / len(P) for ridge in ridges])
    residuals = np.stack([refitted_residuals(P, T, algebra, ridge, penalty) for ridge in ridges])
    errors = np.mean(residuals.reshape(len(ridges), len(H), -1)[:, :, places] ** 2, axis=(1, 2))
    return errors, leverages


@kinds
@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "R[+1,+1]", "klein4", "paper-Cl(1,1)"])
def test_the_choice_is_the_best_of_refits(name, kind):
    algebra = algebras.get(name)
    H, T = problem(algebra, (20, 4, 2), noise=2.0)
    places = np.arange(2 * algebra.dim)[:: max(1, algebra.dim // 2)]  # some components count
    ridges = Spectrum(accumulated(kind, algebra, H, T), [3]).path(5)[-60:]
    errors, leverages = by_refits(algebra, H, T, ridges, places)
    scores = errors * ((1 - leverages) / (1 - VALUES.freedom * leverages)) ** 2
    best = int(np.argmin(scores))
    found = chosen(kind, algebra, H, T, places=places)
    assert found.ridge == pytest.approx(ridges[best], rel=1e-9)
    assert found.error == pytest.approx(errors[best], rel=1e-7)


@kinds
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("decomposed", [0, 800])
def test_the_rows_that_were_left_out_come_with_the_choice(monkeypatch, kind, few, decomposed):
    monkeypatch.setattr(ridge, "_DECOMPOSED", decomposed)
    algebra = algebras.get("quaternions")
    H, T = problem(algebra, (20, 30 if few else 4, 2), noise=2.0)
    found = chosen(kind, algebra, H, T, places=np.array([0, 3, 5]))
    P, penalty = left_matrix(H, algebra), penalised(algebra, H.shape[1], free=[H.shape[1] - 1])
    expected = refitted_residuals(P, T, algebra, found.ridge, penalty).reshape(len(H), -1)[:, [0, 3, 5]]
    np.testing.assert_allclose(found.left_out.residuals, expected, rtol=1e-6, atol=1e-8)
    leverages = np.diagonal(hat_matrix(P, found.ridge, penalty)).reshape(-1, algebra.dim).mean(axis=1)
    np.testing.assert_allclose(found.left_out.leverages, leverages, rtol=1e-6)


@pytest.mark.parametrize("name", ["real", "quaternions", "R[+1,+1]", "klein4", "octonions"])
@pytest.mark.parametrize("noise", [1e-7, 0.05, 1.0, 30.0])
def test_a_handful_of_ridges_finds_what_the_path_finds(monkeypatch, name, noise):
    algebra = algebras.get(name)
    H, T = problem(algebra, (60, 8, 1), noise=noise)
    on_path = chosen(Gram, algebra, H, T)
    monkeypatch.setattr(ridge, "_DECOMPOSED", 0)
    of_few = chosen(Gram, algebra, H, T)
    assert of_few.error <= 1.05 * on_path.error
    assert of_few.is_bias_only == on_path.is_bias_only


@pytest.mark.parametrize("name", ["R[-1,+1]", "octonions", "sedenions", "dual-quaternions"])
@pytest.mark.parametrize("decomposed", [0, 800])
def test_leverage_matrices_of_a_sample(monkeypatch, name, decomposed):
    """Where they are nearly multiples of the identity they count as such, and the choice is nearly the same."""
    monkeypatch.setattr(ridge, "_DECOMPOSED", decomposed)
    algebra = algebras.get(name)
    H, T = problem(algebra, (100, 16, 1), noise=3.0)
    accumulator = accumulated(Gram, algebra, H, T)
    found = []
    for is_whole in (True, False):
        sample = RowSample(H, T, np.ones(100), np.ones(100), is_whole)
        found.append(best_by_loo(accumulator, sample, free=(15,), places=np.arange(algebra.dim), columns=algebra.dim))
    exact, rough = found
    assert rough.error == pytest.approx(exact.error, rel=0.02)
    assert (rough.error == exact.error) == (name == "dual-quaternions")
    assert exact.ridge / 3 < rough.ridge < 3 * exact.ridge


@kinds
def test_a_weight_counts_samples(kind):
    algebra = algebras.get("quaternions")
    H, T = problem(algebra, (25, 4, 2))
    weight = np.random.default_rng(1).integers(0, 4, len(H)).astype(float)
    again = np.repeat(np.arange(len(H)), weight.astype(int))
    weighted, repeated = chosen(kind, algebra, H, T, weight), chosen(kind, algebra, H[again], T[again])
    assert weighted.ridge == pytest.approx(repeated.ridge, rel=1e-9)
    assert weighted.error == pytest.approx(repeated.error, rel=1e-9)


@kinds
def test_the_mean_is_all_that_noise_leaves(kind, monkeypatch):
    algebra = algebras.get("complex")
    rng = np.random.default_rng(3)
    H, _ = problem(algebra, (60, 6, 1))
    T = rng.standard_normal((60, 1, 2))
    found = chosen(kind, algebra, H, T)
    left_out = (T - T.mean(axis=0)) * 60 / 59
    assert found.is_bias_only
    assert found.error == pytest.approx(np.mean(left_out**2))
    monkeypatch.setattr(ridge, "_DECOMPOSED", 0)
    again = chosen(kind, algebra, H, T)
    assert again.ridge == pytest.approx(found.ridge, rel=0.03)  # in units of an estimate
    assert again[1:4] == pytest.approx(found[1:4])
    assert not chosen(kind, algebra, H, np.ones_like(T)).is_bias_only  # which the mean explains


def test_a_sample_of_rows_finds_a_ridge_as_good():
    algebra = algebras.get("quaternions")
    H, T = problem(algebra, (3000, 12, 1), noise=3.0)
    H[:, :-1] *= 0.05
    accumulator = accumulated(Gram, algebra, H, T)
    at, times = drawn(np.linalg.norm(H.reshape(len(H), -1), axis=1), 0.1)
    sample = RowSample(H[at], T[at], np.ones(len(at)), times)
    some = best_by_loo(accumulator, sample, free=(11,), places=np.arange(4), columns=4)
    every = chosen(Gram, algebra, H, T)
    assert some.error == pytest.approx(every.error, rel=0.1)
    assert every.ridge / 10 < some.ridge < every.ridge * 10


@kinds
def test_combinations_of_many_targets(kind):
    """A real number commutes with every other, so errors of combinations are combinations of errors."""
    algebra = algebras.get("quaternions")
    H, T = problem(algebra, (40, 4, 200))
    C = combinations(200)
    assert C.shape[1] < 64
    assert combinations(20) is None
    accumulator = accumulated(kind, algebra, H, T)
    mixed_accumulator = accumulated(kind, algebra, H, mixed(T, C))
    for problem_of, wanted in zip(accumulator.combined(C).problems(), mixed_accumulator.problems()):
        for name in ("cross", "qt"):
            if hasattr(wanted, name):
                np.testing.assert_allclose(abs(getattr(problem_of, name)), abs(getattr(wanted, name)), atol=1e-10)
    sample = RowSample(H, mixed(T, C), np.ones(40), np.ones(40))
    places = np.arange(4 * C.shape[1])
    some = best_by_loo(accumulator.combined(C), sample, free=(3,), places=places, columns=800)
    every = chosen(kind, algebra, H, T)
    assert some.error == pytest.approx(every.error, rel=0.1)
    assert every.ridge / 3 < some.ridge < every.ridge * 3


@given(st.lists(st.floats(1e-12, 10), min_size=3, max_size=30))
def test_the_floor_of_extrapolation(scores):
    """λ/σ₁² is at least 1e-6 times the share of the targets that larger ridges leave unexplained."""
    scores = np.array(scores)
    shares = 10.0 ** np.arange(3 - len(scores), 3)
    permitted = is_permitted(shares, scores)
    assert permitted[-1]
    for n in np.flatnonzero(permitted[:-1]):
        unexplained = min(scores[n + 1 :].min(), scores[-1]) / scores[-1]
        assert max(shares[n], np.finfo(float).eps) >= 0.999 * VALUES.extrapolation * unexplained
    noisy = is_permitted(shares, np.ones(len(shares)))
    np.testing.assert_array_equal(noisy, shares >= 0.999 * VALUES.extrapolation)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["real", "klein4", "quaternions"]), st.sampled_from(["gcv", "loo"]))
def test_no_row_is_predicted_as_anything(seed, name, how):
    """Repeated rows, heavy tails and few distinct values: predictions of rows unlike those seen stay bounded."""
    algebra, rng = algebras.get(name), np.random.default_rng(seed)
    distinct = rng.standard_t(1, (12, 5, algebra.dim)) * 10.0 ** rng.integers(-6, 1, (1, 5, 1))
    at = rng.integers(0, 12, 60)
    H, T = np.tanh(distinct)[at], rng.standard_t(2, (12, 1, algebra.dim))[at] + 0.1 * rng.standard_normal((60, 1, 1))
    x = linalg.lstsq(H, T, algebra, ridge=how).x
    P = linalg.left_matrix(H, algebra)
    longest = np.linalg.norm(P, 2) / np.sqrt(len(P))
    root_mean_square = np.sqrt(np.mean(linalg.to_real(T) ** 2))
    assert longest * np.linalg.norm(linalg.to_real(x)) <= 600 * root_mean_square
