"""onnxruntime, which knows nothing of algebras, gives what the models give."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.datasets import load_diabetes

from helpers import quietly
from hyperelm import (
    Algebra,
    ELMAutoencoder,
    ELMClassifier,
    ELMRegressor,
    algebras,
    load,
    save,
    to_onnx,
)
from hyperelm._estimators.frame import FrameRegressor
from hyperelm._network.activations import ACTIVATIONS

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

ALGEBRAS = ["real", "complex", "dual", "quaternions", "R[-1,+1]", "tessarines", "klein4", "paper-Cl(1,1)", "octonions"]


def rows(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(model, X, **options):
    """The named outputs of the graph, which has been through a file, for rows in its precision."""
    proto = to_onnx(model, **options)
    X = X.astype(options.get("dtype", "float32"))
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (source,) = session.get_inputs()
    assert source.shape[0] == "n"
    for output in session.get_outputs():
        assert output.shape[0] == "n"
    names = [output.name for output in session.get_outputs()]
    results = [dict(zip(names, session.run(None, {source.name: part}))) for part in (X, X[:1], X[:0])]
    for few in results[1:]:
        for name, value in few.items():
            assert value.shape[1:] == results[0][name].shape[1:]
            if value.dtype in (np.float32, np.float64) and name != "label":
                np.testing.assert_allclose(value, results[0][name][: len(value)], rtol=0, atol=1e-5)
    return results[0]


def close(one, other):
    assert one.shape == other.shape
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ALGEBRAS)
def test_every_estimator(name, dtype):
    X = rows(200, 7, dtype=dtype)
    labels = np.array(["no", "yes", "perhaps"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    parameters = {"algebra": name, "n_hidden": 12, "random_state": 0}
    single = X.astype(np.float32)
    model = ELMRegressor(**parameters).fit(X, np.sin(X[:, :3]))
    close(run(model, single)["prediction"], model.predict(X))
    table = FrameRegressor(direct_link=True, **parameters).fit(10 * X + 3, np.sin(X[:, :3]))
    close(run(table, 10 * single + 3)["prediction"], table.predict(10 * X + 3))
    classifier = ELMClassifier(**parameters).fit(X, labels)
    results = run(classifier, single)
    assert np.mean(results["label"] == classifier.predict(X)) > 0.99
    close(results["probabilities"], classifier.predict_proba(X))
    autoencoder = ELMAutoencoder(**parameters).fit(X)
    results = run(autoencoder, single)
    close(results["code"], autoencoder.transform(X))
    close(results["reconstruction"], autoencoder.reconstruct(X))
    codes = autoencoder.transform(X).astype(np.float32)
    close(run(autoencoder, codes, decoder=True)["reconstruction"], autoencoder.inverse_transform(codes))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
def test_every_form_of_network(activation, direct_link, bias, packing):
    X = rows(100, 5)
    model = ELMRegressor(
        n_hidden=6, activation=activation, direct_link=direct_link, bias=bias, packing=packing, random_state=0
    )
    model.fit(X, np.sin(X[:, :2]))
    close(run(model, X)["prediction"], model.predict(X))


def test_there_are_nodes_for_every_activation():
    assert [name for name, activation in ACTIVATIONS.items() if not activation.nodes] == ["identity"]


@pytest.mark.parametrize("inputs", [(100, 8), (100, 2, 4)])
@pytest.mark.parametrize("targets", [(100,), (100, 1), (100, 3), (100, 2, 4)])
def test_every_form_of_data(inputs, targets):
    X, y = rows(*inputs), rows(*targets, seed=1)
    model = ELMRegressor(n_hidden=6, direct_link=True, random_state=0).fit(X, y)
    close(run(model, X)["prediction"], model.predict(X))


def test_an_autoencoder_of_numbers():
    X = rows(100, 5, 4)
    model = ELMAutoencoder(n_hidden=3, encoder="pca").fit(X)
    results = run(model, X)
    assert results["code"].shape == (100, 3, 4)
    close(results["code"], model.transform(X))
    close(results["reconstruction"], model.reconstruct(X))
    close(run(model, results["code"], decoder=True)["reconstruction"], model.inverse_transform(results["code"]))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 7], dtype=np.int8),
        np.array([3, 200, 100_000_000_000]),
        np.array(["α", "a longer one"]),
        np.array(["α", "b"], dtype=object),
        np.array([False, True]),
        np.array([1.0, 2.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels(labels):
    X = rows(90, 4)
    model = ELMClassifier(n_hidden=10, random_state=0).fit(X, labels[np.arange(90) % len(labels)])
    results = run(model, X)
    assert results["label"].tolist() == model.predict(X).tolist()
    kind = {"i": np.int64, "U": object, "O": object, "b": bool, "f": np.float64}[labels.dtype.kind]
    assert results["label"].dtype == kind
    close(results["probabilities"], model.predict_proba(X))


def test_probabilities_of_outputs_far_from_indicators():
    X = rows(300, 4)
    model = ELMClassifier("real", n_hidden=5, ridge=0.1, random_state=0).fit(X, np.arange(300) % 5)
    weights = 5 * rows(*model.output_weights_.shape, seed=1)
    model.network_ = replace(model.network_, output_weights=weights)
    results = run(model, X)
    assert np.all((results["probabilities"] > 0) & (results["probabilities"] < 1))
    np.testing.assert_allclose(results["probabilities"].sum(axis=1), 1, atol=1e-5)
    close(results["probabilities"], model.predict_proba(X))


def test_metadata_name_the_algebra():
    own = Algebra(algebras.get("klein4").table, name="mine", units=["a", "b", "c"])
    proto = to_onnx(ELMRegressor(own, n_hidden=3).fit(rows(30, 4), rows(30, seed=1)))
    facts = {item.key: item.value for item in proto.metadata_props}
    assert facts == {"algebra": "mine", "units": "1 a b c", "class": "ELMRegressor"}
    assert proto.producer_name == "hyperelm"


def test_what_cannot_be_exported():
    X = rows(40, 4)
    with pytest.raises(ValueError, match="`activation` must be a name for the model to go to a file"):
        to_onnx(ELMRegressor(n_hidden=3, activation=np.tanh).fit(X, X[:, 0]))
    with pytest.raises(ValueError, match="`decoder` must be False for ELMRegressor"):
        to_onnx(ELMRegressor(n_hidden=3).fit(X, X[:, 0]), decoder=True)
    with pytest.raises(ValueError, match="`model` must be one of"):
        to_onnx("model")
    for labels in (np.array([1, 2**64 - 1], dtype=np.uint64), np.array(["2020", "2021"], dtype="M8[D]")):
        with pytest.raises(ValueError, match="`classes_` must be numbers or texts for ONNX"):
            to_onnx(ELMClassifier(n_hidden=3).fit(X, labels[np.arange(40) % 2]))


def test_a_missing_extra_is_one_line(monkeypatch):
    X = rows(9, 4)
    model = ELMRegressor(n_hidden=3).fit(X, X[:, 0])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"^ONNX needs the extra 'onnx': pip install 'hyperelm\[onnx\]'\.$"):
        to_onnx(model)


def test_weights_beyond_single_precision():
    X = rows(50, 4, dtype=np.float64)
    with pytest.raises(ValueError, match="weights within single precision for ONNX"):
        to_onnx(ELMRegressor(n_hidden=5, random_state=0).fit(1e-45 * X, X[:, 0]))


# ---------------------------------------------------------------------- precision


def spread_of_error(got, expected, spread):
    return np.abs(got - expected).max() / spread


def computes_in_double(model):
    return any(node.op_type == "Cast" for node in to_onnx(model).graph.node)


def is_refused(model):
    try:
        to_onnx(model)
    except ValueError as error:
        if "`dtype` must be 'float64' for this model: rounding rows and outputs to float32" not in str(error):
            raise
        return True
    return False


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X / X.std(axis=0), y


@pytest.mark.parametrize("algebra", ["real", "quaternions"])
@pytest.mark.parametrize("scale", ["auto", "3 auto", "10 auto"])
def test_one_column_and_large_weights(algebra, scale):
    """Neurons that are nearly dependent, and output weights that cancel."""
    x = np.sort(np.random.default_rng(0).uniform(-1, 1, (300, 1)), axis=0)
    y = np.sin(7 * x[:, 0])
    for ridge in ("gcv", 1e-12, 0.0):
        model = quietly(ELMRegressor(algebra, 50, weight_scale=scale, ridge=ridge, random_state=0).fit, x, y)
        # What single precision has of the rows is what the model is asked for, too.
        expected = model.predict(x.astype(np.float32).astype(np.float64))
        assert spread_of_error(run(model, x)["prediction"], expected, y.std()) < 2e-4


@pytest.mark.parametrize("kind", [ELMRegressor, FrameRegressor])
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("offset", [0.0, -30.0, 300.0, 1e3, 1e4, 1e5, 1e6])
def test_columns_far_from_zero(kind, direct_link, offset):
    """A graph of single precision agrees with the model, or is refused because the rows that it takes cannot."""
    X, y = diabetes()
    X = X + offset
    for ridge in (1e-3, 1e-6 / max(1, offset**2)):
        model = kind("quaternions", 40, ridge=ridge, direct_link=direct_link, random_state=0).fit(X, y)
        expected = model.predict(X)
        assert spread_of_error(run(model, X, dtype="float64")["prediction"], expected, y.std()) < 1e-3
        of_rounding = spread_of_error(model.predict(X.astype(np.float32).astype(float)), expected, y.std())
        if is_refused(model):
            assert of_rounding > 5e-5
        else:
            assert of_rounding < 2e-4
            assert spread_of_error(run(model, X)["prediction"], expected, y.std()) < 2e-4


def test_single_precision_where_it_suffices():
    X, y = diabetes()
    assert not computes_in_double(ELMRegressor("quaternions", 40, random_state=0).fit(X + 3, y))
    table = FrameRegressor("quaternions", 40, random_state=0).fit(X + 1e3, y)
    assert not computes_in_double(table)
    assert computes_in_double(ELMRegressor("quaternions", 40, ridge=1e-9, random_state=0).fit(X + 1e3, y))


def test_targets_far_from_zero():
    X, y = diabetes()
    model = ELMRegressor("klein4", 30, random_state=0).fit(X, y / y.std() + 1e6)
    with pytest.raises(ValueError, match=r"changes its prediction by .* of the spread"):
        to_onnx(model)
    close(run(model, X, dtype="float64")["prediction"], model.predict(X))


def test_constant_columns_and_targets():
    X, y = diabetes()
    X[:, 3] = 10.0
    for targets in (y, np.full(len(y), 1e6), np.zeros(len(y))):
        model = ELMRegressor("klein4", 20, random_state=0).fit(X, targets)
        close(run(model, X)["prediction"], model.predict(X))
    autoencoder = ELMAutoencoder("klein4", 5, random_state=0).fit(X)
    assert spread_of_error(run(autoencoder, X)["reconstruction"], autoencoder.reconstruct(X), 1) < 1e-3


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_double(activation):
    X = rows(100, 8, dtype=np.float64)
    model = ELMRegressor(n_hidden=6, activation=activation, direct_link=True, random_state=0).fit(X, np.sin(X[:, :2]))
    got = run(model, X, dtype="float64")["prediction"]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, model.predict(X), rtol=1e-12, atol=1e-12)


def test_double_for_every_estimator():
    X = rows(120, 2, 4, dtype=np.float64) + 1e6
    labels = np.array(["no", "yes", "perhaps"])[np.arange(120) % 3]
    classifier = ELMClassifier(n_hidden=5, ridge=1e-3, random_state=0).fit(X, labels)
    results = run(classifier, X, dtype="float64")
    assert results["label"].tolist() == classifier.predict(X).tolist()
    np.testing.assert_allclose(results["probabilities"], classifier.predict_proba(X), atol=1e-7)
    autoencoder = ELMAutoencoder(n_hidden=2, encoder="pca", random_state=0).fit(X)
    results = run(autoencoder, X, dtype="float64")
    assert {value.dtype for value in results.values()} == {np.dtype(np.float64)}
    np.testing.assert_allclose(results["code"], autoencoder.transform(X), atol=1e-7)
    np.testing.assert_allclose(results["reconstruction"], autoencoder.reconstruct(X), atol=1e-7)
    decoded = run(autoencoder, results["code"], dtype="float64", decoder=True)["reconstruction"]
    np.testing.assert_allclose(decoded, autoencoder.reconstruct(X), atol=1e-7)
    with pytest.raises(ValueError, match="`dtype` must be 'float64'"):
        to_onnx(autoencoder)


def test_dtypes_that_are_none():
    model = ELMRegressor(n_hidden=3).fit(rows(30, 4), rows(30, seed=1))
    with pytest.raises(ValueError, match="`dtype` must be one of 'float32', 'float64', got 'float16'"):
        to_onnx(model, dtype="float16")


def test_a_model_of_which_no_rows_are_known():
    """As those of files that say nothing of the training columns: the graph computes in double."""
    X, y = diabetes()
    model = ELMRegressor("quaternions", 40, ridge=1e-9, random_state=0).fit(X + 300, y)
    model._scales = None
    assert computes_in_double(model)
    single = (X + 300).astype(np.float32)
    assert spread_of_error(run(model, single)["prediction"], model.predict(single.astype(float)), y.std()) < 1e-6


def test_a_file_brings_what_the_comparison_needs(tmp_path):
    X, y = diabetes()
    for offset in (0.0, 1e6):
        model = FrameRegressor("quaternions", 40, random_state=0).fit(X + offset, y)
        save(model, tmp_path / "model")
        if offset:
            with pytest.raises(ValueError, match="`dtype` must be 'float64'"):
                to_onnx(load(tmp_path / "model"))
        else:
            assert to_onnx(load(tmp_path / "model")) == to_onnx(model)
