"""The default ridge: its error against fits without each row, wherever the rows come from, and what is said of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import scale

from hyperelm import BiasOnlyWarning, ELMAutoencoder, ELMClassifier, ELMRegressor, load, save
from hyperelm._solvers import sample as choice

X, Y = load_diabetes(return_X_y=True)
X, Y = scale(X)[:60], scale(Y)[:60]
FLOWERS, SPECIES = load_iris(return_X_y=True)
FLOWERS, SPECIES = scale(FLOWERS)[::3], np.array(["a", "b", "c"])[SPECIES[::3]]
FIXED = {"n_hidden": 8, "weight_scale": 0.3, "random_state": 0}  # every refit draws the same hidden layer


def refitted_errors(kind, parameters, data, target, weight, output):
    """The squared errors of every row under the fit to all the others."""
    errors = []
    for m in range(len(data)):
        others = np.arange(len(data)) != m
        rows = (data[others],) if target is None else (data[others], target[others])
        model = kind(**parameters).fit(*rows, sample_weight=None if weight is None else weight[others])
        errors.append(np.mean(output(model, data[m : m + 1], m) ** 2))
    return np.array(errors)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        *((name, "auto") for name in ("real", "complex", "quaternions", "R[+1,+1]", "paper-Cl(1,1)")),
        ("quaternions", "qr"),
        ("paper-Cl(1,1)", "svd"),
    ],
)
def test_the_error_is_that_of_refits(name, solver):
    model = ELMRegressor(name, **FIXED, solver=solver).fit(X, Y)
    parameters = {"algebra": name, **FIXED, "ridge": model.ridge_}
    expected = refitted_errors(ELMRegressor, parameters, X, Y, None, lambda fitted, x, m: fitted.predict(x) - Y[m])
    assert model.loo_error_ == pytest.approx(expected.mean(), rel=1e-7)


def test_weights_that_stand_for_one_sample_or_less():
    weight = np.random.default_rng(0).uniform(0.2, 1, len(X))
    model = ELMRegressor("quaternions", **FIXED).fit(X, Y, weight)
    parameters = {"algebra": "quaternions", **FIXED, "ridge": model.ridge_}
    expected = refitted_errors(ELMRegressor, parameters, X, Y, weight, lambda fitted, x, m: fitted.predict(x) - Y[m])
    assert model.loo_error_ == pytest.approx(np.average(expected, weights=weight), rel=1e-7)


@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_weights_are_numbers_of_samples(solver):
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    again = np.repeat(np.arange(len(X)), weight)
    weighted = ELMRegressor(**FIXED, solver=solver).fit(X, Y, weight)
    repeated = ELMRegressor(**FIXED, solver=solver).fit(X[again], Y[again])
    assert weighted.ridge_ == pytest.approx(repeated.ridge_, rel=1e-9)
    assert weighted.loo_error_ == pytest.approx(repeated.loo_error_, rel=1e-9)


@pytest.mark.parametrize("class_weight", [None, {"a": 3.0, "b": 1.0, "c": 0.5}])
def test_classifiers(class_weight):
    """An error on a row costs what its class does."""
    fixed = FIXED | {"class_weight": class_weight}
    model = ELMClassifier("quaternions", **fixed).fit(FLOWERS, SPECIES)
    indicators = SPECIES[:, None] == model.classes_
    costs = np.array([class_weight[label] for label in SPECIES]) if class_weight else np.ones(len(SPECIES))
    parameters = {"algebra": "quaternions", **fixed, "ridge": model.ridge_}
    errors = refitted_errors(
        ELMClassifier,
        parameters,
        FLOWERS,
        SPECIES,
        None,
        lambda fitted, x, m: fitted.network_.outputs(x) - indicators[m],
    )
    assert model.loo_error_ == pytest.approx(np.average(errors, weights=costs), rel=1e-7)


@pytest.mark.parametrize("packing", ["full", "imaginary"])
def test_auto_encoders(packing):
    model = ELMAutoencoder("quaternions", **FIXED | {"n_hidden": 2}, packing=packing).fit(FLOWERS)
    parameters = {"algebra": "quaternions", **FIXED, "n_hidden": 2, "packing": packing, "ridge": model.ridge_}
    errors = refitted_errors(
        ELMAutoencoder, parameters, FLOWERS, None, None, lambda fitted, x, _: fitted.reconstruct(x) - x
    )
    assert model.loo_error_ == pytest.approx(errors.mean(), rel=1e-7)


def test_many_targets_are_estimated():
    rng = np.random.default_rng(0)
    T = np.tanh(X @ rng.standard_normal((10, 300))) + 0.5 * rng.standard_normal((60, 300))
    model = ELMRegressor("klein4", **FIXED).fit(X, T)
    parameters = {"algebra": "klein4", **FIXED, "ridge": model.ridge_}
    errors = refitted_errors(ELMRegressor, parameters, X, T, None, lambda fitted, x, m: fitted.predict(x) - T[m])
    assert model.loo_error_ == pytest.approx(errors.mean(), rel=0.1)


def test_rows_from_anywhere(tmp_path, monkeypatch):
    """Files, chunks, clusters and other libraries leave out the same rows as an array."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    dask_array = pytest.importorskip("dask.array")
    from hyperelm import dask

    expected = ELMRegressor(**FIXED).fit(X, Y)
    stored = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    stored[...] = X
    chunks = [(X[:13], Y[:13]), (X[13:40], Y[13:40]), (X[40:], Y[40:])]
    cluster = dask_array.from_array(X, chunks=(17, 10)), dask_array.from_array(Y, chunks=17)
    models = [
        ELMRegressor(**FIXED, chunk_size=7).fit(stored, Y),
        ELMRegressor(**FIXED).fit(chunks),
        dask.fit(ELMRegressor(**FIXED), *cluster),
    ]
    torch = pytest.importorskip("torch")
    with config_context(array_api_dispatch=True):
        models.append(ELMRegressor(**FIXED).fit(torch.asarray(X), torch.asarray(Y)))
    for model in models:
        assert model.ridge_ == pytest.approx(expected.ridge_, rel=1e-9)
        assert model.loo_error_ == pytest.approx(expected.loo_error_, rel=1e-9)


def test_many_rows_leave_out_some(monkeypatch):
    exact = ELMRegressor(**FIXED).fit(X, Y)
    monkeypatch.setattr(choice, "_NUMBERS", 0)
    monkeypatch.setattr(choice, "_FEWEST", 30)
    some = ELMRegressor(**FIXED, chunk_size=20).fit(X, Y)
    assert some.loo_error_ != exact.loo_error_
    assert some.loo_error_ == pytest.approx(exact.loo_error_, rel=0.5)
    weighted = ELMRegressor(**FIXED, chunk_size=20).fit(X, Y, np.full(60, 2.0))
    assert weighted.loo_error_ > 0


def test_single_precision():
    rows = X.astype(np.float32), Y.astype(np.float32)
    models = [ELMRegressor(**FIXED, solver=solver).fit(*rows) for solver in ("auto", "gram", "qr", "svd")]
    for model in models:
        assert model.loo_error_ == pytest.approx(models[0].loo_error_, rel=1e-3)


def test_rows_that_are_read_once():
    parts = [(X[:30], Y[:30]), (X[30:], Y[30:])]
    once = ELMRegressor(**FIXED).fit(iter(parts))
    assert once.loo_error_ is None
    assert_allclose(once.ridge_, ELMRegressor(**FIXED, ridge="gcv", solver="qr").fit(X, Y).ridge_)
    model = ELMRegressor(**FIXED).fit(X, Y)
    assert model.partial_fit(X, Y).loo_error_ is None
    for call in (lambda m: m.fit(iter(parts)), lambda m: m.partial_fit(X, Y)):
        with pytest.raises(ValueError, match="`ridge` must not be 'loo' where rows are read once"):
            call(ELMRegressor(**FIXED, ridge="loo"))
    assert ELMRegressor(**FIXED, ridge="loo").fit(X, Y).ridge_ == ELMRegressor(**FIXED).fit(X, Y).ridge_
    assert ELMRegressor(**FIXED, ridge=0.5).fit(X, Y).loo_error_ is None


def test_files_keep_the_error(tmp_path):
    for how in ("auto", "gcv"):
        model = ELMRegressor(**FIXED, ridge=how).fit(X, Y)
        save(model, tmp_path / "model")
        assert load(tmp_path / "model").loo_error_ == model.loo_error_


def test_noise_is_predicted_by_its_mean():
    noise = np.random.default_rng(0).standard_normal(60)
    with pytest.warns(BiasOnlyWarning, match="the mean of the targets"):
        model = ELMRegressor(**FIXED).fit(X, noise)
    assert_allclose(model.predict(10 * X), noise.mean(), atol=1e-9)
    with pytest.warns(BiasOnlyWarning, match="better than zero"):
        model = ELMRegressor(**FIXED, bias=False).fit(X, noise)
    assert_allclose(model.predict(10 * X), 0, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ELMRegressor(**FIXED).fit(X, np.ones(60))  # which the mean explains


def test_rows_without_weight_are_never_drawn(monkeypatch):
    """They are far more than those that count, and farther away."""
    monkeypatch.setattr(choice, "_FEWEST", 30)
    monkeypatch.setattr(choice, "_NUMBERS", 0)
    inputs, target = np.concatenate([10 * X, 20 * X, X]), np.concatenate([Y, Y, Y])
    weight = np.repeat([0.0, 0.0, 1.0], len(X))
    weighted, alone = ELMRegressor(**FIXED).fit(inputs, target, weight), ELMRegressor(**FIXED).fit(X, Y)
    assert weighted.ridge_ == pytest.approx(alone.ridge_, rel=1e-9)
    assert weighted.loo_error_ == pytest.approx(alone.loo_error_, rel=1e-9)
    labels = np.where(weight > 0, np.where(target > 0, "up", "down"), "none")
    model = ELMClassifier(**FIXED, class_weight={"up": 1, "down": 1, "none": 0}).fit(inputs, labels)
    assert 0 < model.loo_error_ < 1


@pytest.mark.parametrize(("name", "neurons"), [("quaternions", 30), ("real", 460)])
def test_single_precision_goes_on_to_qr_where_gram_ends_too_early(name, neurons):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3)).astype(np.float32)
    y = np.sin(x[:, 0])
    found, wanted = (ELMRegressor(name, neurons, solver=s, random_state=0).fit(x, y) for s in ("auto", "qr"))
    assert found.loo_error_ < 2 * wanted.loo_error_


def test_targets_whose_squares_are_no_numbers():
    for size in (1e-165, 1e-200, 1e155, 1e200):
        with pytest.raises(ValueError, match="for targets whose squares are beyond double precision"):
            ELMRegressor(**FIXED).fit(X, size * Y)


@pytest.mark.parametrize("neurons", [8, 460])
def test_a_layer_of_zeros(neurons):
    model = ELMRegressor("real", neurons, bias=False, random_state=0).fit(np.zeros((50, 3)), np.arange(50.0))
    assert model.ridge_ == 1
    assert not model.predict(np.zeros((2, 3))).any()
    one = ELMRegressor("real", neurons, random_state=0).fit(X[:1], Y[:1])
    assert_allclose(one.predict(X[:1]), Y[:1])
