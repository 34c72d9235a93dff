"""Prediction intervals: laws that they keep, and where they come from."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import ELMRegressor, ELMRegressorCV, load, save
from hyperelm._estimators.frame import FrameRegressor
from hyperelm._training.certainty import Intervals

FIXED = {"n_hidden": 8, "weight_scale": 0.5, "random_state": 0}


def data(seed=0, count=120, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 4))
    clean = np.stack([np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], X[:, 3] ** 2], axis=1)
    return X, clean + noise * rng.standard_normal((count, 2))


def covered(model, X, Y, coverage, joint=False):
    lower, upper = model.predict_interval(X, coverage, joint=joint)
    assert lower.shape == upper.shape == model.predict(X).shape
    inside = (lower <= Y) & (upper >= Y)
    return inside.all(axis=1).mean() if joint else inside.mean()


@pytest.mark.parametrize("readout", ["algebra", "free"])
@pytest.mark.parametrize("ridge", ["auto", "gcv", 0.1, 0.0])
@pytest.mark.parametrize("kind", [ELMRegressor, FrameRegressor])
def test_coverage(kind, ridge, readout):
    model = kind("quaternions", 12, ridge=ridge, readout=readout, random_state=0).fit(*data(0, 500))
    X, Y = data(1, 2000)
    for coverage in (0.5, 0.9):
        assert_allclose(covered(model, X, Y, coverage), coverage, atol=0.05)
        assert_allclose(covered(model, X, Y, coverage, joint=True), coverage, atol=0.06)


@pytest.mark.parametrize("solver", ["gram", "qr", "svd"])
def test_solvers_agree(solver):
    X, Y = data()
    expected = ELMRegressor("real", ridge=0.1, **FIXED).fit(X, Y).predict_interval(X)
    found = ELMRegressor("real", ridge=0.1, solver=solver, **FIXED).fit(X, Y).predict_interval(X)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_by_refits():
    """The half width is a quantile of |e₋ₘ|√(1 - h_m), from models that are fitted without row m."""
    X, Y = data(count=60)
    y = Y[:, 0]
    model = ELMRegressor("real", ridge=0.5, **FIXED).fit(X, y)
    other = ELMRegressor("real", ridge=0.5, **FIXED)
    refits = (other.fit(np.delete(X, m, 0), np.delete(y, m)) for m in range(60))
    left_out = [y[m] - refit.predict(X[m : m + 1])[0] for m, refit in enumerate(refits)]
    h = model.leverage(X)  # exact, with fewer than 64 unknowns
    sizes = np.sort(np.abs(left_out) * np.sqrt(1 - h))
    lower, upper = model.predict_interval(X, 0.8)
    halves = (upper - lower) / 2 / np.sqrt(1 + h)
    assert_allclose(halves, halves[0], rtol=1e-6)
    rank = int(np.ceil(0.8 * 61))
    assert sizes[rank - 2] <= halves[0] <= sizes[rank] + 1e-12


@settings(max_examples=15)
@given(st.integers(0, 1000), st.lists(st.floats(0.05, 0.95), min_size=2, max_size=4), st.booleans())
def test_intervals_grow_with_coverage(seed, coverages, joint):
    X, Y = data(seed, 50)
    model = ELMRegressor("klein4", ridge=0.1, **FIXED).fit(X, Y)
    found = [model.predict_interval(X, coverage, joint=joint) for coverage in sorted(coverages)]
    for (low, high), (lower, higher) in pairwise(found):
        assert np.all(lower <= low)
        assert np.all(high <= higher)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(-50, 50), st.booleans())
def test_unit_and_origin_of_targets(seed, decades, origin, joint):
    X, Y = data(seed, 50)
    unit = 10**decades
    model = ELMRegressor("real", ridge=0.1, **FIXED)
    expected = model.fit(X, Y).predict_interval(X, joint=joint)
    found = model.fit(X, unit * (Y + origin)).predict_interval(X, joint=joint)
    for one, other in zip(found, expected):
        assert_allclose(one / unit - origin, other, rtol=1e-5, atol=1e-5)


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_a_repeated_row_counts_as_weight_two(seed):
    X, Y = data(seed, 40)
    times = np.random.default_rng(seed).integers(1, 4, 40)
    model = ELMRegressor("complex", ridge=0.1, **FIXED)
    expected = model.fit(X, Y, times).predict_interval(X)
    found = model.fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)).predict_interval(X)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_unlike_the_training_rows_have_wider_intervals():
    X, Y = data()
    model = ELMRegressor("quaternions", **FIXED).fit(X, Y)
    near, far = (np.ptp(model.predict_interval(rows), axis=0).mean() for rows in (X, 10 * X))
    assert far > 1.2 * near
    assert model.leverage(10 * X).mean() > 2 * model.leverage(X).mean()


@pytest.mark.parametrize("readout", ["algebra", "learned", "free"])
@pytest.mark.parametrize("kind", [ELMRegressor, FrameRegressor])
def test_files(kind, readout, tmp_path):
    X, Y = data()
    model = kind("quaternions", readout=readout, **FIXED).fit(X, Y)
    save(model, tmp_path / "model.hyperelm")
    again = load(tmp_path / "model.hyperelm")
    assert_array_equal(again.predict_interval(X, 0.7, joint=True), model.predict_interval(X, 0.7, joint=True))
    assert_array_equal(again.leverage(X), model.leverage(X))


def test_many_targets():
    """Combinations of more than 32 targets choose the ridge. The intervals are those of the targets themselves."""
    X, Y = data(0, 300)
    many = np.arange(1, 41) * Y[:, :1]
    model = ELMRegressor("complex", **FIXED).fit(X, many)
    lower, upper = model.predict_interval(X)
    widths = (upper - lower).mean(axis=0)
    assert widths[39] > 10 * widths[0]


def test_a_search_gives_those_of_its_best_model():
    X, Y = data()
    search = ELMRegressorCV(["real"], [8], n_draws=1, random_state=0).fit(X, Y)
    expected = search.best_estimator_.predict_interval(X, 0.8, joint=True)
    assert_array_equal(search.predict_interval(X, 0.8, joint=True), expected)


def test_precision_and_shape():
    X, Y = data()
    numbers = X[:, None, :].astype(np.float32)
    lower, upper = ELMRegressor("quaternions", **FIXED).fit(numbers, numbers).predict_interval(numbers)
    assert lower.dtype == upper.dtype == np.float32
    assert lower.shape == numbers.shape
    assert ELMRegressor("real", **FIXED).fit(X, Y[:, 0]).predict_interval(X)[0].shape == (120,)


def test_more_rows_than_are_left_out(monkeypatch):
    monkeypatch.setattr("hyperelm._training.certainty._ENOUGH", 256)
    X, Y = data(0, 3000)
    model = ELMRegressor("quaternions", ridge=0.1, **FIXED).fit(X, Y)
    assert isinstance(model._certainty, Intervals)
    assert_allclose(model._certainty.residuals.count, 256, rtol=0.1)
    assert_allclose(covered(model, *data(1, 3000), 0.9), 0.9, atol=0.06)


def test_as_many_unknowns_as_rows():
    """Without a ridge each row is fitted exactly, and nothing is known of errors."""
    X, Y = data(count=20)
    with pytest.warns(UserWarning, match="rank"):
        model = ELMRegressor("real", 40, ridge=0, random_state=0).fit(X, Y)
    assert np.isinf(model.predict_interval(X)).all()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda m, X, Y: m.fit(X, Y).predict_interval(X, 1.0), "`coverage` must be a number between 0 and 1, got 1.0"),
        (lambda m, X, Y: m.fit(X, Y).predict_interval(X, "0.9"), "`coverage` must be a number between 0 and 1"),
        (lambda m, X, Y: m.fit(X[:8], Y[:8]).predict_interval(X, 0.9), r"`coverage` must be at most 0.8889 with the 8"),
        (lambda m, X, Y: m.partial_fit(X, Y).predict_interval(X), "predict_interval needs rows that were left out"),
        (lambda m, X, Y: m.fit(X, Y).partial_fit(X, Y).leverage(X), "leverage needs rows that were left out"),
        (lambda m, X, Y: m.fit(iter([(X, Y)])).predict_interval(X), "Call fit with rows that can be read again"),
        (lambda m, X, Y: m.fit(X, Y).forget(X[:9], Y[:9]).predict_interval(X), "needs rows that were left out"),
    ],
)
def test_errors(how, reason):
    with pytest.raises(ValueError, match=reason):
        how(ELMRegressor("real", ridge=0.1, **FIXED), *data())
