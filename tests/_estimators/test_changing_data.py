"""Rows that fade, and rows that are forgotten."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, load, save

FIXED = {"n_hidden": 6, "weight_scale": 0.5, "ridge": 0.1, "random_state": 0}


def data(count=90):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 4))
    return X, np.tanh(X @ rng.standard_normal((4, 2))) + 0.1 * rng.standard_normal((count, 2))


@settings(max_examples=20)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.floats(1.0, 200.0),
    st.sampled_from(["gram", "qr", "auto"]),
    st.sampled_from(["algebra", "free"]),
)
def test_fading_is_a_refit_with_these_weights(sizes, half_life, solver, readout):
    X, Y = data(sum(sizes))
    given_weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    model = ELMRegressor("quaternions", half_life=half_life, solver=solver, readout=readout, **FIXED)
    for end in np.cumsum(sizes):
        at = slice(end - sizes[list(np.cumsum(sizes)).index(end)], end)
        model.partial_fit(X[at], Y[at], given_weight[at])
    weight = given_weight * 0.5 ** (np.arange(len(X))[::-1] / half_life)
    expected = ELMRegressor("quaternions", solver=solver, readout=readout, **FIXED).fit(X, Y, weight)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    assert model.n_samples_seen_ == len(X)


def test_fading_after_fit_and_in_other_estimators():
    """`fit` takes its rows as equals: they fade when more rows come."""
    X, Y = data()
    weight = 0.5 ** (np.append(np.full(60, 30), np.arange(30)[::-1]) / 20)
    labels = Y[:, 0] > 0
    cases = [(ELMRegressor, (X, Y)), (ELMClassifier, (X, labels)), (ELMAutoencoder, (X, X))]
    for kind, (rows, targets) in cases:
        model = kind("klein4", half_life=20, **FIXED).fit(rows[:60], targets[:60])
        model.partial_fit(rows[60:], targets[60:])
        expected = kind("klein4", **FIXED).fit(rows, targets, weight)
        assert_allclose(model.output_weights_, expected.output_weights_, atol=1e-9)


@pytest.mark.parametrize("half_life", [0, -1.0, "long", np.nan])
def test_half_lives_that_are_none(half_life):
    X, Y = data()
    with pytest.raises(ValueError, match="`half_life` must be a number of rows above 0, or None"):
        ELMRegressor("real", half_life=half_life, **FIXED).partial_fit(X, Y)


@settings(max_examples=20)
@given(st.sets(st.integers(0, 89), min_size=1, max_size=50), st.sampled_from(["algebra", "free", "learned"]))
def test_forgetting_is_a_fit_without_the_rows(places, readout):
    X, Y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    gone = np.isin(np.arange(90), list(places))
    model = ELMRegressor("complex", readout=readout, solver="gram", **FIXED)
    expected = model.fit(X[~gone], Y[~gone], weight[~gone]).predict(X)
    model.fit(X, Y, weight).forget(X[gone], Y[gone], weight[gone])
    assert_allclose(model.predict(X), expected, atol=1e-6 if readout == "learned" else 1e-10)
    assert model.n_samples_seen_ == 90 - len(places)


def test_forgetting_in_other_estimators_and_from_a_file(tmp_path):
    X, Y = data()
    labels = Y[:, 0] > 0
    classifier = ELMClassifier("real", **FIXED).fit(X, labels).forget(X[:30], labels[:30])
    expected = ELMClassifier("real", **FIXED).fit(X[30:], labels[30:])
    assert_allclose(classifier.decision_function(X), expected.decision_function(X), atol=1e-9)
    save(ELMAutoencoder("real", **FIXED).fit(X), tmp_path / "model.hyperelm", state=True)
    model = load(tmp_path / "model.hyperelm").forget(X[:30]).partial_fit(X[:30]).forget(X[60:])
    assert_allclose(model.reconstruct(X), ELMAutoencoder("real", **FIXED).fit(X[:60]).reconstruct(X), atol=1e-9)
    assert model.n_samples_seen_ == 60


def test_a_refused_forgetting_changes_nothing():
    X, Y = data()
    model = ELMRegressor("real", solver="gram", **FIXED).fit(X, Y)
    before = model.predict(X)
    for rows, targets in ((3 * X[:40], Y[:40]), (X, Y)):
        with pytest.raises(ValueError, match="`X`"):
            model.forget(rows, targets)
        assert np.array_equal(model.predict(X), before)
        assert model.n_samples_seen_ == 90


def test_too_little_is_left():
    """After rows of weight 1e12 are gone, the sums of the others are mostly rounding."""
    X, Y = data()
    weight = np.append(np.full(45, 1e12), np.ones(45))
    model = ELMRegressor("real", solver="gram", **FIXED).fit(X, Y, weight)
    with pytest.raises(ValueError, match="so rounding would decide"):
        model.forget(X[:45], Y[:45], weight[:45])


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"solver": "qr"}, "`solver` must be 'gram' to forget rows, got a model fitted by 'qr'"),
        ({"solver": "svd"}, "forget needs the accumulator of the rows seen"),
        ({"half_life": 10}, "`half_life` must be None to forget rows, got 10"),
    ],
)
def test_errors(parameters, reason):
    X, Y = data()
    with pytest.raises(ValueError, match=reason):
        ELMRegressor("real", **FIXED, **parameters).fit(X, Y).forget(X[:5], Y[:5])
    balanced = ELMClassifier("real", class_weight="balanced", **FIXED).fit(X, Y[:, 0] > 0)
    with pytest.raises(ValueError, match="`class_weight` must not be 'balanced' to forget rows"):
        balanced.forget(X[:5], Y[:5, 0] > 0)
