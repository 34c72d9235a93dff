"""Prediction of rows of any size: the right answer, or an error that names it, and never NaN."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor
from hyperelm._arrays import to_numpy
from hyperelm.activations import ACTIVATIONS
from hyperelm.elm.classifier import _nearest_probabilities
from hyperelm.elm.table import TableRegressor

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

# Activations that stay within ±1 for arguments of any size; of `sine` that is chance, and the others follow the rows.
SATURATING = ("tanh", "sigmoid", "gaussian", "hard_tanh", "softsign")
BEYOND = "`X` must have rows whose codes and outputs are within float32"
FORMULAS = {
    "tanh": np.tanh,
    "sigmoid": lambda h: 1 / (1 + np.exp(-np.clip(h, -700, 700))),
    "gaussian": lambda h: np.exp(-(np.minimum(np.abs(h), 1e100) ** 2)),
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "softsign": lambda h: h / (1 + np.abs(h)),
}


def finite_or_refused(method, X):
    try:
        return method(X)
    except ValueError as error:
        if "`X` must have rows whose codes and outputs are within" not in str(error):
            raise
        return None


def rows(n=60, columns=6, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal((n, columns)).astype(dtype)


def far(size, seed=1):
    """Double rows of any size, with columns of both signs."""
    return size * np.random.default_rng(seed).uniform(-1, 1, (5, 6))


def written_out(model, X, activation):
    """Both layers in double, with every row in a unit of its own."""
    A, a, B, b = (np.asarray(part, np.float64) for part in vars_of(model))
    units = np.abs(X).max(axis=1, keepdims=True)
    codes = FORMULAS[activation](np.clip((X / units @ A) * units + a, -1e300, 1e300))
    return codes, codes @ B + b


def vars_of(model):
    return model._encoder, model._encoder_bias, model._decoder, model._decoder_bias


@pytest.mark.parametrize("activation", SATURATING)
@pytest.mark.parametrize("size", [1e30, 3e38, 1e39, 1e60, 1e300])
def test_saturated_neurons_of_single_precision(activation, size):
    X, y = rows(), rows(seed=2)[:, :2]
    model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(X, y)
    Y = model.predict(far(size))
    assert Y.dtype == np.float32
    assert_allclose(Y, written_out(model, far(size), activation)[1], rtol=1e-4, atol=1e-4)

    autoencoder = ELMAutoencoder("complex", 5, activation=activation, random_state=0).fit(X)
    codes, again = written_out(autoencoder, far(size), activation)
    assert_allclose(autoencoder.transform(far(size)), codes, atol=1e-5)
    assert_allclose(autoencoder.reconstruct(far(size)), again, rtol=1e-4, atol=1e-4)

    classifier = ELMClassifier("klein4", 10, activation=activation, random_state=0).fit(X, np.arange(60) % 3)
    scores = written_out(classifier, far(size), activation)[1]
    assert_allclose(classifier.decision_function(far(size)), scores, rtol=1e-4, atol=1e-4)
    assert_allclose(classifier.predict_proba(far(size)).sum(axis=1), 1, atol=1e-5)
    assert classifier.predict(far(size)).shape == (5,)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
def test_outputs_that_follow_the_rows(activation):
    """Within the range of the precision they are right, beyond it they are refused."""
    X = rows()
    model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(X, 1e-3 * X[:, :2])
    wide = ELMRegressor("quaternions", 10, activation=activation, random_state=0)
    wide.fit(X.astype(float), 1e-3 * X[:, :2].astype(float))
    for name in ("hidden_weights_", "output_weights_"):
        setattr(wide, name, getattr(model, name).astype(float))
    wide._build_operators()
    assert_allclose(model.predict(far(1e39)), wide.predict(far(1e39)), rtol=1e-4, atol=1e-4 * 1e36)
    with pytest.raises(ValueError, match=BEYOND):
        model.predict(far(1e60))
    autoencoder = ELMAutoencoder("quaternions", 10, activation=activation, random_state=0).fit(X)
    for method in (autoencoder.transform, autoencoder.reconstruct):
        with pytest.raises(ValueError, match=BEYOND):
            method(far(1e60))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(exponent=st.integers(25, 308), direct_link=st.booleans(), seed=st.integers(0, 99))
def test_never_nan(activation, dtype, exponent, direct_link, seed):
    X = rows(dtype=dtype)
    fitted = [
        ELMRegressor("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0]),
        ELMClassifier("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0] > 0),
        ELMAutoencoder("complex", 4, activation=activation, random_state=0).fit(X),
        TableRegressor("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0]),
    ]
    large = far(10.0**exponent, seed)
    methods = ("predict", "decision_function", "predict_proba", "transform", "reconstruct")
    for model, method in product(fitted, methods):
        if hasattr(model, method):
            answer = finite_or_refused(getattr(model, method), large)
            assert answer is None or np.isfinite(answer).all()


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ([1e-5, 1.0], [1e39, -3e38]),  # the first is infinite in single precision, and the smaller of the products
        ([1.0, 1.0, 1.0, 1.0], [2e38, 2e38, -3e38, -3e38]),  # the sum of the first two is infinite
    ],
)
def test_signs_of_what_is_beyond_the_precision(weights, row):
    X = rows(columns=len(row))
    model = ELMAutoencoder("real", 1, bias=False, random_state=0).fit(X)
    model.hidden_weights_ = np.array(weights, dtype=np.float32)[:, None, None]
    model._build_operators()
    assert model.transform(np.array([row])) == -1


def test_rows_beside_the_large_ones_are_as_they_were():
    X = rows()
    model = ELMRegressor("quaternions", 10, random_state=0).fit(X, X[:, :2])
    mixed = np.concatenate([X.astype(float), far(1e200)])
    assert_allclose(model.predict(mixed)[:60], model.predict(X), atol=1e-5)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e8, 3e38])
def test_probabilities_of_scores_of_any_size(size):
    scores = size * np.array([[1.0, 1, -1], [1, -1, -1], [-1, -1, -1], [0.5, 0.5, 0.5]], dtype=np.float32)
    nearest = _nearest_probabilities(scores)
    if size >= 1:
        assert_allclose(nearest, [[0.5, 0.5, 0], [1, 0, 0], [1 / 3] * 3, [1 / 3] * 3], atol=1e-6)
    assert_allclose(nearest.sum(axis=1), 1, atol=1e-6)


def test_codes_of_any_size():
    X = rows()
    model = ELMAutoencoder("complex", 5, random_state=0).fit(X)
    codes = model.transform(X).astype(float)
    linear = model.inverse_transform(codes) - model._decoder_bias
    assert_allclose(model.inverse_transform(1e37 * codes) / 1e37, linear, atol=1e-4)
    with pytest.raises(ValueError, match=BEYOND):
        model.inverse_transform(1e60 * codes)


def test_other_libraries(library, monkeypatch):
    X = rows()
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        for activation in SATURATING:
            model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(
                library(X), library(X[:, 0])
            )
            assert np.isfinite(to_numpy(model.predict(library(far(1e200))))).all()
        model = ELMRegressor("quaternions", 10, activation="relu", random_state=0).fit(library(X), library(X[:, 0]))
        with pytest.raises(ValueError, match=BEYOND):
            model.predict(library(far(1e200)))


def test_more_rows_that_are_too_large_are_refused():
    X = rows()
    model = ELMRegressor("quaternions", 4, random_state=0).partial_fit(X, X[:, 0])
    before = model.predict(X)
    with pytest.raises(
        ValueError, match=r"`X` must be at most 3e\+38, the largest number in the precision of the model"
    ):
        model.partial_fit(far(1e39), np.zeros(5))
    assert_allclose(model.predict(X), before)
