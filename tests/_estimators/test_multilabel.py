"""Several labels a row, as scikit-learn's MLPClassifier takes and gives them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier, ELMRegressor, describe, load, save, to_onnx

X, Y = make_multilabel_classification(300, 8, n_classes=4, random_state=0)
X = StandardScaler().fit_transform(X)
FIXED = {"n_hidden": 15, "ridge": 0.1, "random_state": 0}


@pytest.mark.parametrize("name", ["real", "quaternions"])
def test_outputs_are_those_of_regression_on_the_indicators(name):
    model = ELMClassifier(name, **FIXED).fit(X, Y)
    outputs = ELMRegressor(name, packing="real", **FIXED)
    # One number a label, its real part the output: so are targets of one column, label by label.
    expected = np.stack([ELMRegressor(name, **FIXED).fit(X, y).predict(X) for y in Y.T], axis=1)
    assert outputs.packing == "real"
    assert_allclose(model.decision_function(X), expected - 0.5, atol=1e-8)
    assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(3 - 6 * expected)), atol=1e-8)
    assert_array_equal(model.predict(X), (expected > 0.5).astype(int))
    assert_array_equal(model.classes_, np.arange(4))
    assert model.multilabel_
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X))


def test_as_mlp_classifier():
    mlp = MLPClassifier((5,), max_iter=2000, random_state=0).fit(X, Y)
    model = ELMClassifier("real", **FIXED).fit(X, Y)
    for method in ("predict", "predict_proba"):
        got, theirs = (getattr(one, method)(X) for one in (model, mlp))
        assert got.shape == theirs.shape == Y.shape
        assert got.dtype.kind == theirs.dtype.kind
    assert_array_equal(model.classes_, mlp.classes_)
    assert roc_auc_score(Y, model.predict_proba(X)) > 0.85
    assert cross_val_score(make_pipeline(StandardScaler(), ELMClassifier(**FIXED)), X, Y, scoring="roc_auc").min() > 0.8
    assert model.__sklearn_tags__().classifier_tags.multi_label


@pytest.mark.parametrize("to", [sparse.csr_array, sparse.csc_matrix, lambda y: y.astype(bool), lambda y: y.tolist()])
def test_forms_of_indicators(to):
    expected = ELMClassifier(**FIXED).fit(X, Y)
    assert_array_equal(ELMClassifier(**FIXED).fit(X, to(Y)).predict_proba(X), expected.predict_proba(X))


def test_chunks_and_partial_fit(tmp_path):
    model = ELMClassifier(weight_scale=0.3, **FIXED)
    expected = clone(model).fit(X, Y).predict_proba(X)
    parts = [(X[:100], Y[:100]), (X[100:], Y[100:])]
    assert_allclose(clone(model).fit(parts).predict_proba(X), expected, atol=1e-8)
    assert_allclose(clone(model).fit(iter(parts)).predict_proba(X), expected, atol=1e-8)
    for classes in (None, np.arange(4)):
        model = clone(model).partial_fit(*parts[0], classes=classes).partial_fit(*parts[1])
        assert_allclose(model.predict_proba(X), expected, atol=1e-8)
    stored = np.memmap(tmp_path / "y", dtype=np.int8, mode="w+", shape=Y.shape)
    stored[...] = Y
    assert_allclose(clone(model).fit(X, stored).predict_proba(X), expected, atol=1e-8)


def test_files_and_graphs(tmp_path):
    model = ELMClassifier(**FIXED).fit(X, Y)
    save(model, tmp_path / "model", state=True)
    again = load(tmp_path / "model")
    assert again.multilabel_
    for method in ("predict", "predict_proba", "decision_function"):
        assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    again.partial_fit(X, Y)
    assert "labels        4: 0, 1, 2, 3" in describe(tmp_path / "model")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    labels, probabilities = session.run(None, {"X": X.astype(np.float32)})
    assert_array_equal(labels, model.predict(X))
    assert_allclose(probabilities, model.predict_proba(X), atol=1e-4)


def test_one_label_a_row_after_several():
    model = ELMClassifier(**FIXED).fit(X, Y)
    model.fit(X, Y[:, 0])
    assert not model.multilabel_
    assert model.predict(X).shape == (300,)


def test_messages():
    fitted = ELMClassifier(**FIXED).fit(X, Y)
    for call, message in [
        (lambda: ELMClassifier().fit(X, Y + Y[:, ::-1]), "Unknown label type: multiclass-multioutput"),
        (lambda: ELMClassifier().fit(X, Y + 0.5), "Unknown label type: continuous-multioutput"),
        (lambda: ELMClassifier(class_weight="balanced").fit(X, Y), "`class_weight` must be None for several labels"),
        (lambda: ELMClassifier().fit([(X, Y), (X, Y * 2)]), "must hold 0 and 1 only"),
        (lambda: ELMClassifier().fit([(X, Y), (X, Y[:, :2])]), r"`y` must have shape \(n, 4\), got shape \(300, 2\)"),
        (lambda: fitted.partial_fit(X, Y[:, :3]), r"`y` must have shape \(n, 4\), got shape \(300, 3\)"),
        (lambda: fitted.partial_fit(X, Y[:, 0]), r"`y` must have shape \(n, 4\), indicators as before"),
        (lambda: ELMClassifier().fit(X, Y[:, 0]).partial_fit(X, Y), "`y` must have one label a row"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
