"""Rows of several channels at several times, (n, time, channels): each step is packed as `pack` does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from helpers import outputs
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, describe, load, pack, save
from hyperelm.datasets import lorenz, sliding_windows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 5, 6))
Y = np.tanh(X[:, 0, :2])
LABELS = np.where(Y[:, 0] > 0, "up", "down")
FIXED = {"n_hidden": 4, "random_state": 0, "ridge": 0.1}
MODELS = [(ELMRegressor, Y), (ELMClassifier, LABELS), (ELMAutoencoder, None)]


@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
@pytest.mark.parametrize(("kind", "y"), MODELS)
def test_as_packed_by_hand(kind, y, packing, tmp_path):
    model = kind("quaternions", packing=packing, **FIXED).fit(X, y)
    numbers = pack(X, "quaternions", into=packing)
    by_hand = kind("quaternions", packing=packing, **FIXED).fit(numbers, y)
    assert_allclose(model.hidden_weights_, by_hand.hidden_weights_, atol=1e-12)
    if kind is ELMAutoencoder:
        assert model.reconstruct(X).shape == X.shape
        assert_allclose(model.transform(X), by_hand.transform(numbers), atol=1e-9)
        assert_array_equal(model.inverse_transform(model.transform(X)), model.reconstruct(X))
    else:
        for got, expected in zip(outputs(model, X), outputs(by_hand, numbers)):
            assert_array_equal(got, expected) if got.dtype.kind == "U" else assert_allclose(got, expected, atol=1e-9)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for got, expected in zip(outputs(again, X), outputs(model, X)):
        assert_array_equal(got, expected)
    assert "5 steps of 6 channels" in describe(tmp_path / "model")
    with pytest.raises(ValueError, match=r"X must have the shape \(n, 5, 6\) that the model was fitted with"):
        again.score(X[:, :, :3], y)
    with pytest.raises(ValueError, match=r"\(n, 5, 6\) that the model was fitted with"):
        again.partial_fit(X.reshape(80, -1), y)


def test_targets_of_channels():
    T = X[:, :2, :3] ** 2
    model = ELMRegressor("quaternions", 30, random_state=0).fit(X, T)
    assert model.predict(X).shape == T.shape
    assert_allclose(model.predict(X), ELMRegressor("quaternions", 30, random_state=0).fit(X, T).predict(X))


def test_windows_go_into_an_estimator():
    windows, after = sliding_windows(lorenz(600), 4)
    model = ELMRegressor("quaternions", 40, packing="imaginary", random_state=0).fit(windows[:400], after[:400])
    assert model.network_.input.features == 4
    assert model.score(windows[400:], after[400:]) > 0.99


def test_last_axis_of_the_dimension_is_numbers():
    numbers = RNG.standard_normal((30, 5, 4))
    model = ELMAutoencoder("quaternions", 3, packing="real", random_state=0).fit(numbers)
    assert model.network_.input.features == 5


def test_search_compares_real_networks_with_others():
    search = ELMRegressorCV(["real", "quaternions"], [4], weight_scale=["auto"], random_state=0).fit(X, Y)
    assert search.predict(X).shape == Y.shape
    assert clone(search).set_params(algebra="auto", n_draws=1).fit(X, Y).best_algebra_.dim <= 4


@pytest.mark.parametrize("shape", [(40, 6, 100), (40, 12, 29), (40, 1, 17)])
def test_channels_before_time(shape):
    turned = RNG.standard_normal(shape)
    for model, y in ((ELMClassifier(), LABELS[:40]), (ELMAutoencoder(), None)):
        with pytest.raises(ValueError, match=rf"{shape[1]} channels of {shape[2]} steps.*Turn it: X\.swapaxes\(1, 2\)"):
            model.fit(turned, y)
    ELMAutoencoder(n_hidden=2, ridge=0.1).fit(turned.swapaxes(1, 2))
