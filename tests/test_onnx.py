"""onnxruntime, which knows nothing of algebras, gives what the models give."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from hyperelm import Algebra, ELMAutoencoder, ELMClassifier, ELMRegressor, algebras, to_onnx
from hyperelm.activations import ACTIVATIONS
from hyperelm.elm.table import TableRegressor
from hyperelm.onnx import ACTIVATIONS as NODES

ALGEBRAS = ["real", "complex", "dual", "quaternions", "R[-1,+1]", "tessarines", "klein4", "paper-Cl(1,1)", "octonions"]


def rows(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(model, X, **options):
    """The named outputs of the graph, which has been through a file."""
    proto = to_onnx(model, **options)
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
            if value.dtype == np.float32:
                np.testing.assert_allclose(value, results[0][name][: len(value)], rtol=0, atol=1e-5)
    return results[0]


def close(one, other):
    assert one.shape == other.shape
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ALGEBRAS)
def test_every_estimator(name, dtype):
    X = rows(200, 7, dtype=dtype)
    labels = np.array(["no", "yes", "perhaps"])[np.arange(200) % 3]
    parameters = {"algebra": name, "n_hidden": 12, "random_state": 0}
    single = X.astype(np.float32)
    model = ELMRegressor(**parameters).fit(X, np.sin(X[:, :3]))
    close(run(model, single)["prediction"], model.predict(X))
    table = TableRegressor(direct_link=True, **parameters).fit(10 * X + 3, np.sin(X[:, :3]))
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
    assert NODES.keys() == ACTIVATIONS.keys()


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


def test_probabilities_at_the_edges_of_the_simplex():
    """Outputs far from probabilities: projected onto a corner, an edge, or the middle."""
    X = rows(300, 4)
    model = ELMClassifier("real", n_hidden=5, ridge=0.1, random_state=0).fit(X, np.arange(300) % 5)
    model.output_weights_ = 0.5 * rows(*model.output_weights_.shape, seed=1)
    model._build_operators()
    results = run(model, X)
    zeros = np.count_nonzero(results["probabilities"] == 0, axis=1)
    assert set(zeros) >= {3, 4}
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


def test_a_missing_extra_is_one_line():
    code = """
import sys
sys.modules["onnx"] = None
import numpy as np
from hyperelm import ELMRegressor, to_onnx
X = np.ones((9, 4))
try:
    to_onnx(ELMRegressor(n_hidden=3).fit(X, X[:, 0]))
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ONNX needs the extra 'onnx': pip install 'hyperelm[onnx]'.\n"


def test_weights_beyond_single_precision():
    X = rows(50, 4, dtype=np.float64)
    with pytest.raises(ValueError, match="weights within single precision for ONNX"):
        to_onnx(ELMRegressor(n_hidden=5, random_state=0).fit(1e-45 * X, X[:, 0]))
