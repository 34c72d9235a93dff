"""Rows as users give them, and torch tensors above all.

A fit to tensors gives the network that NumPy gives, in tensors, and no rows are on their way to NumPy.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from helpers import VARIED, outputs, through_pickle
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, load, save, to_onnx
from hyperelm._backend.arrays import to_numpy
from hyperelm._estimators.checks import random_generator
from hyperelm._estimators.frame import FrameRegressor

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'hyperelm[test]'")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 10))
Y = np.tanh(X[:, :3] @ RNG.standard_normal((3, 5)))
LABELS = (Y[:, 0] > 0).astype(np.int64) + (Y[:, 1] > 0.5)
WEIGHT = RNG.integers(0, 3, 120).astype(float)
ESTIMATORS = [ELMRegressor, ELMClassifier, ELMAutoencoder]
FITTED = ("hidden_weights_", "output_weights_")
NUMBERS = ("weight_scale_", "ridge_", "condition_", "rank_", "n_parameters_", "solver_", "n_samples_seen_")


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    """The switch, which scikit-learn lets one turn only where SciPy was asked for the same."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def tensor(array):
    return None if array is None else torch.asarray(np.array(array))


def target(model):
    return {ELMRegressor: Y, ELMClassifier: LABELS, ELMAutoencoder: None}[type(model)]


def check_same(model, inputs=X, weight=None, tol=1e-7):
    """Fitted arrays, numbers and outputs of a model fitted to tensors are those of one fitted to NumPy arrays."""
    y = target(model)
    here = clone(model).fit(inputs, y, sample_weight=weight)
    there = clone(model).fit(tensor(inputs), tensor(y), sample_weight=tensor(weight))
    pairs = [(getattr(here, name), getattr(there, name)) for name in FITTED]
    for expected, found in [*pairs, *zip(outputs(here, inputs), outputs(there, tensor(inputs)))]:
        assert isinstance(found, torch.Tensor)
        assert to_numpy(found).dtype == expected.dtype
        assert_allclose(to_numpy(found), expected, rtol=0, atol=tol * np.abs(expected).max())
    for name in NUMBERS:
        expected, found = getattr(here, name), getattr(there, name)
        assert type(found) is type(expected)
        rel = 0.01 if name == "condition_" else max(tol, 1e-6)  # `gram` estimates the condition, to about 1 %
        assert found == (expected if isinstance(expected, str) else pytest.approx(expected, rel=rel))
    assert there.score(tensor(inputs), tensor(y)) == pytest.approx(here.score(inputs, y), abs=tol)
    return there


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", [*VARIED, "sedenions"])
def test_the_network_of_numpy(name, estimator):
    check_same(estimator(name, 5, random_state=0))


@pytest.mark.parametrize("name", ["real", "quaternions", "tessarines"])
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "gram", "ridge": 0.1},
        {"solver": "qr"},
        {"solver": "svd", "ridge": 0.0},
        {"packing": "imaginary", "chunk_size": 7},
        {"packing": "real", "direct_link": True, "bias": False},
        {"direct_link": True, "weight_scale": "paper"},
        {"activation": "leaky_relu", "weight_scale": 0.2},
    ],
    ids=str,
)
def test_options(name, options):
    check_same(ELMRegressor(name, 6, random_state=0, **options))
    check_same(ELMRegressor(name, 6, random_state=0, **options), weight=WEIGHT)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_numbers_as_input(estimator):
    check_same(estimator("quaternions", 4, random_state=0), X[:, :8].reshape(120, 2, 4))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_single_precision_and_integers(estimator):
    """A scale that torch sums up is one of single precision; a fixed one is the same to the last bit."""
    model = estimator("klein4", 4, weight_scale=0.3, ridge=0.1, random_state=0)
    there = check_same(model, X.astype(np.float32), tol=1e-4)
    here = clone(model).fit(X.astype(np.float32), target(model))
    assert_array_equal(to_numpy(there.hidden_weights_), here.hidden_weights_)
    check_same(model, (10 * X).astype(np.int16))


@pytest.mark.parametrize("encoder", ["random", "orthogonal", "pca"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_encoders(encoder, weight):
    model = ELMAutoencoder("tessarines", 2, encoder=encoder, random_state=0)
    there = check_same(model, weight=weight)
    codes = there.transform(tensor(X))
    assert isinstance(there.inverse_transform(codes), torch.Tensor)
    assert_allclose(there.inverse_transform(codes), there.reconstruct(tensor(X)), atol=1e-12)


def test_large_layers_by_searched_schemes():
    """Planes of the inputs of an auto-encoder serve twice."""
    inputs = np.random.default_rng(0).standard_normal((40, 1200, 4))
    inputs[..., 0] = 0
    for name in ("quaternions", "paper-Cl(1,1)"):
        check_same(ELMAutoencoder(name, 50, ridge=1.0, random_state=0), inputs)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 2.0, 2: 0.5}])
def test_class_weight(class_weight):
    there = check_same(ELMClassifier("quaternions", 5, class_weight=class_weight, random_state=0))
    assert_array_equal(to_numpy(there.classes_), [0, 1, 2])


def test_labels_of_any_type():
    """Texts stay in NumPy, since torch has no arrays of them; whatever can be a tensor follows X."""
    names = np.array(["a", "b", "c"])[LABELS]
    model = ELMClassifier("klein4", 5, random_state=0).fit(tensor(X), names)
    assert isinstance(model.classes_, np.ndarray)
    assert set(model.predict(tensor(X))) <= set("abc")
    for labels in (LABELS, LABELS.tolist(), LABELS.astype(float)):
        assert isinstance(model.fit(tensor(X), labels).predict(tensor(X)), torch.Tensor)
    assert isinstance(model.fit(X, tensor(LABELS)).predict(X), np.ndarray)


def test_targets_and_weights_follow_the_inputs():
    model = ELMRegressor("quaternions", 5, random_state=0)
    expected = model.fit(tensor(X), tensor(Y), tensor(WEIGHT)).predict(tensor(X))
    assert_array_equal(model.fit(tensor(X), Y, WEIGHT).predict(tensor(X)), expected)
    assert_allclose(model.fit(X, tensor(Y), tensor(WEIGHT)).predict(X), to_numpy(expected), atol=1e-9)
    # One number is the weight of every row, as in scikit-learn.
    alike = model.fit(tensor(X), tensor(Y), tensor(np.full(len(X), 2.0))).predict(tensor(X))
    assert_array_equal(model.fit(tensor(X), tensor(Y), 2.0).predict(tensor(X)), alike)


def can_be_pickled(array):
    """Arrays of early releases of array-api-strict cannot."""
    try:
        through_pickle(array)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
@pytest.mark.parametrize("ridge", [0.1, "gcv"])
def test_partial_fit(estimator, solver, ridge, library):
    """The accumulator goes on beside the rows, and through a pickle."""
    model = estimator("tessarines", 5, weight_scale=0.3, ridge=ridge, solver=solver, random_state=0)
    y, classes = target(model), {"classes": library(LABELS)} if estimator is ELMClassifier else {}
    parts = [slice(0, 50), slice(50, 90), slice(90, 120)]
    model.partial_fit(library(X[parts[0]]), None if y is None else library(y[parts[0]]), **classes)
    for rows in parts[1:]:
        model = through_pickle(model) if can_be_pickled(library(X[:1])) else model
        model.partial_fit(library(X[rows]), None if y is None else library(y[rows]))
    whole = clone(model).fit(X, y)
    assert_allclose(to_numpy(model.output_weights_), whole.output_weights_, atol=1e-8)
    assert type(model.output_weights_) is type(library(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_files_and_graphs_are_numpy(estimator, tmp_path):
    model = estimator("tessarines", 5, ridge=0.1, random_state=0)
    model.fit(tensor(X), tensor(target(model)))
    save(model, tmp_path / "model", state=True)
    back = load(tmp_path / "model")
    for expected, found in zip(outputs(model, tensor(X)), outputs(back, X)):
        assert isinstance(found, np.ndarray)
        assert_allclose(found, to_numpy(expected), atol=1e-12)
    assert isinstance(model.output_weights_, torch.Tensor)
    back.partial_fit(X, target(model))
    assert to_onnx(model).SerializeToString() == to_onnx(load(tmp_path / "model")).SerializeToString()


def test_only_small_things_come_to_numpy(monkeypatch):
    """Sums of rows, some rows to be left out and a few numbers: never as much as a chunk of rows."""
    sizes, cpu = [], torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda array: (sizes.append(array.numel()), cpu(array))[1])
    monkeypatch.setattr(torch.Tensor, "numpy", None)
    monkeypatch.setattr(torch.Tensor, "__array__", None)
    rows = np.random.default_rng(0).standard_normal((3000, 8))
    for solver in ("gram", "qr"):
        model = ELMRegressor("quaternions", 5, ridge=0.1, solver=solver, chunk_size=1000, random_state=0)
        model.fit(tensor(rows), tensor(rows)).predict(tensor(rows))
    assert max(sizes) < 8 * 1000
    assert sum(sizes) < 2 * 8 * 3000


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rows_elsewhere_than_the_weights_are_refused(estimator):
    model = estimator("quaternions", 5, random_state=0)
    here, there = (clone(model).fit(data, target(model)) for data in (X, tensor(X)))
    method = "transform" if estimator is ELMAutoencoder else "predict"
    with pytest.raises(ValueError, match=rf"{estimator.__name__}.{method}\(\) must use .* torch on cpu, got numpy"):
        getattr(there, method)(X)
    with pytest.raises(ValueError, match=rf"{estimator.__name__}.{method}\(\) must use .* numpy, got torch on cpu"):
        getattr(here, method)(tensor(X))
    with pytest.raises(ValueError, match=rf"{estimator.__name__}.partial_fit\(\) must use the same namespace"):
        there.partial_fit(X, target(model))
    if estimator is ELMAutoencoder:
        with pytest.raises(ValueError, match=r"ELMAutoencoder.inverse_transform\(\) must use the same namespace"):
            there.inverse_transform(here.transform(X))


def test_the_model_that_a_search_chooses_lives_where_the_rows_do():
    search = ELMRegressorCV(["real", "klein4"], [3, 5], random_state=0)
    here, there = clone(search).fit(X, Y, WEIGHT), search.fit(tensor(X), tensor(Y), tensor(WEIGHT))
    assert there.best_params_ == here.best_params_
    assert isinstance(there.predict(tensor(X)), torch.Tensor)
    assert_allclose(to_numpy(there.predict(tensor(X))), here.predict(X), atol=1e-8)


def test_tables_with_units_are_numpy():
    here, there = (FrameRegressor("klein4", 5, random_state=0).fit(*rows) for rows in ((X, Y), (tensor(X), tensor(Y))))
    assert_array_equal(there.predict(X), here.predict(X))


def test_no_record_for_gradients_is_kept():
    """It would keep all rows in memory."""
    rows, targets = tensor(X).requires_grad_(), tensor(Y).requires_grad_()
    model = ELMRegressor("quaternions", 5, random_state=0).fit(rows, targets)
    assert not model.output_weights_.requires_grad
    assert not model.predict(rows).requires_grad


def test_an_activation_must_stay_with_its_argument():
    model = ELMRegressor("real", 5, activation=torch.arctan, random_state=0).fit(tensor(X), tensor(Y))
    expected = ELMRegressor("real", 5, activation=np.arctan, random_state=0).fit(X, Y)
    assert_allclose(to_numpy(model.predict(tensor(X))), expected.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"`activation` must give arrays of .*torch"):
        model.set_params(activation=lambda x: to_numpy(x)).fit(tensor(X), tensor(Y))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_the_switch_tensors_become_numpy_arrays(estimator):
    with sklearn.config_context(array_api_dispatch=False):
        model = estimator("quaternions", 5, random_state=0)
        y = target(model)
        found = clone(model).fit(tensor(X), tensor(y))
        assert isinstance(found.output_weights_, np.ndarray)
        for one, other in zip(outputs(found, tensor(X)), outputs(clone(model).fit(X, y), X)):
            assert_array_equal(one, other)


def test_blocks_of_tensors():
    """As a data loader gives them."""

    class Loader:
        def __iter__(self):
            return ((tensor(X[start : start + 30]), tensor(Y[start : start + 30])) for start in range(0, 120, 30))

    model = ELMRegressor("klein4", 5, random_state=0)
    found = clone(model).fit(Loader())
    assert isinstance(found.output_weights_, torch.Tensor)
    assert_allclose(to_numpy(found.predict(tensor(X))), model.fit(X, Y).predict(X), atol=1e-8)


def test_the_example_of_the_guide():
    """In a process where SciPy has been asked from the start; there, NumPy must go on as before, too."""
    guide = (Path(__file__).parents[2] / "docs" / "accelerators.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    code += """
assert isinstance(model.predict(X), torch.Tensor)
for solver in ("gram", "qr", "svd"):
    ELMRegressor(n_hidden=5, activation="sigmoid", solver=solver).fit(X[:99].numpy(), y[:99].numpy())
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("kind", [ELMRegressor, ELMRegressorCV, ELMAutoencoder])
def test_imaginary_parts_are_not_dropped(kind):
    """The algebra `complex` takes them, others say so."""
    model = kind("klein4", 3, random_state=0)
    refused = "Complex data not supported by the algebra klein4, got `{}` of dtype .*complex128"
    with pytest.raises(ValueError, match=refused.format("X")):
        model.fit(tensor(X) + 1j, tensor(Y))
    if kind is not ELMAutoencoder:
        with pytest.raises(ValueError, match=refused.format("y")):
            model.fit(tensor(X), tensor(Y) + 1j)
    Z, T = X[:, ::2] + 1j * X[:, 1::2], Y + 1j * Y[:, ::-1]
    here = clone(model).set_params(algebra="complex").fit(Z, T)
    there = clone(here).fit(tensor(Z), tensor(T))
    call = "transform" if kind is ELMAutoencoder else "predict"
    expected, found = getattr(here, call)(Z), getattr(there, call)(tensor(Z))
    assert isinstance(found, torch.Tensor)
    assert to_numpy(found).dtype == expected.dtype == np.complex128
    assert_allclose(to_numpy(found), expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [ELMRegressor, ELMClassifier])
def test_weights_and_targets_of_gradients_without_dispatch(kind):
    y = tensor(LABELS.astype(float))
    with sklearn.config_context(array_api_dispatch=False):
        model = kind("complex", 3, random_state=0)
        expected = clone(model).fit(X, LABELS.astype(float), WEIGHT).predict(X)
        found = model.fit(tensor(X), y.requires_grad_(), tensor(WEIGHT).requires_grad_()).predict(X)
    assert_array_equal(found, expected)


def test_random_states():
    def first(state):
        return random_generator(state).standard_normal()

    assert first(3) == first(3) == first(np.int64(3)) == np.random.default_rng(3).standard_normal()
    assert first(np.random.RandomState(3)) == first(np.random.RandomState(3))
    assert first(None) != first(None)
