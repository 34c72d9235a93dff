"""The search for a classifier: its scores against networks that are fitted again without each row, and its choice."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import scale

from hyperelm import BiasOnlyWarning, ELMClassifier, ELMClassifierCV, compare, load, save

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
LABELS = np.array(["one", "three", "two"])[RNG.integers(0, 3, 30) * (X[:, 0] > -0.5)]


def seeds(random_state, n):
    return np.random.default_rng(random_state).integers(2**31 - 1, size=n).tolist()


def left_out_outputs(y, weight=None, **parameters):
    """The outputs for every row of a network that is fitted to all others."""
    weight = np.ones(len(y)) if weight is None else weight
    model, outputs = ELMClassifier(**parameters), []
    for n in range(len(y)):
        others = weight - np.eye(len(y))[n].clip(max=weight[n])  # of a row of weight 2 one sample is left out
        model.fit(X, y, others, classes=np.unique(y))
        outputs.append(model._outputs(X[n : n + 1], "predict")[1][0])
    return np.array(outputs)


def scored(scoring, y, outputs, weight=None):
    labels = np.unique(y)
    if scoring == "accuracy":
        return accuracy_score(y, labels[np.argmax(outputs, axis=1)], sample_weight=weight)
    scales = [softmax(scale * outputs, axis=1) for scale in (1.5, 3, 6, 12)]  # of which the best counts
    if scoring == "log_loss":
        return max(-log_loss(y, p, sample_weight=weight, labels=labels) for p in scales)
    squares = [np.sum((p - (y[:, None] == labels)) ** 2, axis=1) for p in scales]
    return max(-np.average(of_scale, weights=weight) for of_scale in squares) / (2 if len(labels) == 2 else 1)


@pytest.mark.parametrize("name", ["real", "quaternions", "R[+1,+1]"])
@pytest.mark.parametrize("y", [LABELS, LABELS == "one"], ids=["three classes", "two classes"])
def test_scores_are_those_of_refits(name, y):
    fixed = {"algebra": name, "n_hidden": 3, "weight_scale": 0.4, "ridge": 0.3}
    readouts = ["algebra"] if name == "real" else ["algebra", "free"]
    seed = seeds(5, 1)[0]
    outputs = [left_out_outputs(y, **fixed, readout=readout, random_state=seed) for readout in readouts]
    for scoring in ("log_loss", "accuracy", "brier"):
        search = ELMClassifierCV(**fixed, readout=readouts, n_draws=1, random_state=5, scoring=scoring).fit(X, y)
        expected = [scored(scoring, y, of_readout) for of_readout in outputs]
        assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-7)


@pytest.mark.parametrize("scoring", ["log_loss", "accuracy"])
def test_weights_of_samples_and_classes(scoring):
    """A row of weight 2 is two samples; each counts what an error on its class costs."""
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    of_class = {"one": 0.5, "two": 3.0, "three": 1.0}
    cost = np.array([of_class[label] for label in LABELS])
    fixed = {"algebra": "complex", "n_hidden": 3, "weight_scale": 0.4, "ridge": 0.3, "class_weight": of_class}
    given = {"n_draws": 1, "random_state": 5, "readout": "algebra", "scoring": scoring}
    search = ELMClassifierCV(**fixed, **given).fit(X, LABELS, weight)
    outputs = left_out_outputs(LABELS, weight, **fixed, random_state=seeds(5, 1)[0])
    assert search.best_score_ == pytest.approx(scored(scoring, LABELS, outputs, weight * cost), rel=1e-7)


def test_balanced_classes_have_the_weights_that_make_them_so():
    shares = {label: len(LABELS) / (3 * np.sum(label == LABELS)) for label in np.unique(LABELS)}
    grid = {"algebra": ["real", "klein4"], "n_hidden": [2, 4], "weight_scale": ["auto"], "random_state": 0}
    first, second = (ELMClassifierCV(**grid, class_weight=of).fit(X, LABELS) for of in ("balanced", shares))
    assert_allclose(first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"], rtol=1e-9)
    assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-9)


def test_the_best_model_is_a_classifier(tmp_path):
    search = ELMClassifierCV(["real", "complex"], [2, 8], weight_scale=["auto"], random_state=3).fit(X, LABELS)
    best = search.best_estimator_
    again = ELMClassifier(**search.best_params_, random_state=3).fit(X, LABELS)
    assert isinstance(best, ELMClassifier)
    assert_array_equal(search.classes_, np.unique(LABELS))
    for method in ("predict", "predict_proba", "decision_function"):
        assert_array_equal(getattr(search, method)(X), getattr(again, method)(X))
    assert search.score(X, LABELS) == again.score(X, LABELS)
    save(search, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), search.predict(X))


def test_compare_takes_a_search():
    inputs, labels = load_iris(return_X_y=True)
    search = ELMClassifierCV(["real", "klein4"], [8], weight_scale=["auto"], n_draws=1, random_state=0)
    result = compare({"one": ELMClassifier("klein4", 8, random_state=0), "search": search}, inputs, labels, n_repeats=1)
    assert len(result.scores["search"]) == 5
    assert result.scores["search"].mean() > 0.9


def test_what_is_refused():
    with pytest.raises(ValueError, match="`scoring` must be one of 'log_loss', 'accuracy', 'brier', got 'loo'"):
        ELMClassifierCV(scoring="loo").fit(X, LABELS)
    with pytest.raises(ValueError, match="only one class"):
        ELMClassifierCV("real", [2]).fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="`class_weight` must be finite"):
        ELMClassifierCV("real", [2], class_weight={"one": -1}).fit(X, LABELS)
    with pytest.raises(NotFittedError):
        ELMClassifierCV().predict_proba(X)


def test_noise_is_predicted_by_the_shares_of_the_classes():
    noise = np.random.default_rng(4).integers(0, 2, 60)
    inputs = np.random.default_rng(6).standard_normal((60, 4))
    with pytest.warns(BiasOnlyWarning, match="No candidate does better than the shares of the classes"):
        search = ELMClassifierCV("real", [2, 4], weight_scale=["auto"], random_state=0).fit(inputs, noise)
    outputs = search.best_estimator_.decision_function(10 * inputs)  # of two classes, their difference
    assert_allclose(outputs, 2 * noise.mean() - 1, atol=1e-6)


@pytest.mark.parametrize("source", [load_iris, load_wine, load_breast_cancer])
def test_as_good_a_choice_as_a_grid_search_on_real_data(source):
    inputs, labels = source(return_X_y=True)
    parts = train_test_split(scale(inputs), labels, test_size=0.4, random_state=0, stratify=labels)
    train, test, y, truth = parts
    grid = {"algebra": ["real", "quaternions"], "n_hidden": [8, 32], "weight_scale": ["0.3 auto", "auto"]}
    search = ELMClassifierCV(**grid, readout="algebra", random_state=0).fit(train, y)
    other = GridSearchCV(ELMClassifier(random_state=0), grid, cv=3).fit(train, y)
    assert search.score(test, truth) >= other.score(test, truth) - 0.02


@pytest.mark.parametrize("scoring", ["log_loss", "accuracy", "brier"])
def test_jobs_do_not_change_the_result(scoring):
    given = {"algebra": ["real", "complex"], "n_hidden": [3], "weight_scale": ["auto"], "random_state": 0}
    one, two = (ELMClassifierCV(**given, scoring=scoring, n_jobs=jobs).fit(X, LABELS) for jobs in (1, 2))
    assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
