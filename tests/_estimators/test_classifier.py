"""ELMClassifier: least squares on the indicators of the classes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from hyperelm import ELMClassifier, ELMRegressor, algebras

X, CODES = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = np.array(["setosa", "versicolor", "virginica"])[CODES]
FIXED = {"n_hidden": 8, "weight_scale": 0.3, "ridge": 0.1, "random_state": 0}


def indicators(labels):
    return (labels[:, None] == np.unique(labels)).astype(float)


def test_is_regression_on_indicators_in_the_real_parts(algebra):
    """One number a class; its real part is the indicator, the others are zero."""
    targets = np.zeros((len(X), 3, algebra.dim))
    targets[:, :, 0] = indicators(NAMES)
    numbers = np.zeros((len(X), -(-4 // algebra.dim), algebra.dim))
    numbers.reshape(len(X), -1)[:, :4] = X
    model = ELMClassifier(algebra, **FIXED).fit(X, NAMES)
    regression = ELMRegressor(algebra, **FIXED).fit(numbers, targets)
    assert_allclose(model.decision_function(X), regression.predict(numbers)[:, :, 0], atol=1e-9)
    assert_array_equal(model.predict(X), np.unique(NAMES)[regression.predict(numbers)[:, :, 0].argmax(axis=1)])
    assert model.output_weights_.shape == (9, 3, algebra.dim)
    assert model.score(X, NAMES) > 0.8


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.astype(object),
        CODES * 10 - 7,
        CODES.astype(np.uint8),
        CODES.astype(float),
        list(NAMES),
    ],
    ids=["strings", "objects", "integers", "bytes", "floats", "list"],
)
def test_labels_of_any_type(labels):
    model = ELMClassifier("klein4", **FIXED).fit(X, labels)
    assert_array_equal(model.classes_, np.unique(labels))
    predicted = model.predict(X)
    assert predicted.dtype == np.asarray(labels).dtype
    assert set(predicted) <= set(labels)
    assert_array_equal(np.unique(CODES)[np.searchsorted(model.classes_, predicted)], reference(X))


def reference(rows):
    return ELMClassifier("klein4", **FIXED).fit(X, CODES).predict(rows)


def test_booleans():
    model = ELMClassifier("complex", **FIXED).fit(X, CODES == 0)
    assert model.predict(X).dtype == bool
    assert_array_equal(model.predict(X), CODES == 0)


@pytest.mark.parametrize("labels", [NAMES, NAMES == "setosa"], ids=["three", "two"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities(labels, dtype):
    model = ELMClassifier("tessarines", **FIXED).fit(X.astype(dtype), labels)
    rows = 3 * np.random.default_rng(0).standard_normal((200, 4)).astype(dtype)
    probabilities = model.predict_proba(rows)
    assert probabilities.shape == (200, len(model.classes_))
    assert probabilities.dtype == dtype
    assert np.all((probabilities > 0) & (probabilities < 1))
    assert_allclose(probabilities.sum(axis=1), 1, rtol=20 * np.finfo(dtype).eps)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(rows))
    scores = model.decision_function(rows).astype(float)
    if len(model.classes_) == 3:  # ratios of probabilities are powers of those of one number
        logits = np.log(probabilities.astype(float))
        scale = (logits[:, 1] - logits[:, 0]) / (scores[:, 1] - scores[:, 0])
        seen = (probabilities > 1e-3).all(axis=1) & (np.abs(scores[:, 1] - scores[:, 0]) > 0.1)
        assert_allclose(scale[seen], np.median(scale[seen]), rtol=1e-3)


def test_two_classes_have_one_score():
    labels = np.where(CODES == 0, "a", "b")
    model = ELMClassifier("complex", **FIXED).fit(X, labels)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    assert_array_equal(model.predict(X), np.where(scores > 0, "b", "a"))


def weighted_least_squares(weight):
    """Weights of samples by repetition of rows."""
    return ELMClassifier("klein4", **FIXED).fit(np.repeat(X, weight, axis=0), np.repeat(NAMES, weight))


def test_class_weight_by_dict():
    costs = {"setosa": 1, "versicolor": 3, "virginica": 2}
    model = ELMClassifier("klein4", class_weight=costs, **FIXED).fit(X, NAMES)
    expected = weighted_least_squares([costs[name] for name in NAMES])
    assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)
    both = ELMClassifier("klein4", class_weight=costs, **FIXED).fit(X, NAMES, sample_weight=np.full(len(X), 2))
    expected = weighted_least_squares([2 * costs[name] for name in NAMES])
    assert_allclose(both.decision_function(X), expected.decision_function(X), atol=1e-9)


def test_class_weight_balanced():
    rows = np.concatenate([np.arange(0, 50), np.arange(50, 75), np.arange(100, 110)])
    x, labels = X[rows], NAMES[rows]
    balanced = ELMClassifier("klein4", class_weight="balanced", **FIXED).fit(x, labels)
    counts = {"setosa": 50, "versicolor": 25, "virginica": 10}
    by_hand = ELMClassifier(
        "klein4", class_weight={name: 85 / (3 * count) for name, count in counts.items()}, **FIXED
    ).fit(x, labels)
    assert_allclose(balanced.decision_function(x), by_hand.decision_function(x), atol=1e-9)
    plain = ELMClassifier("klein4", **FIXED).fit(x, labels)

    def recall(model):
        return np.mean(model.predict(X[100:]) == "virginica")

    assert recall(balanced) > recall(plain)


@pytest.mark.parametrize("name", ["real", "quaternions", "octonions"])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
@pytest.mark.parametrize("class_weight", [None, {"setosa": 2, "versicolor": 1, "virginica": 0.5}])
def test_partial_fit_equals_fit(name, solver, class_weight):
    """The first pieces do not have all classes."""
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    options = {**FIXED, "solver": solver, "class_weight": class_weight}
    whole = ELMClassifier(name, **options).fit(X, NAMES, weight)
    pieces = ELMClassifier(name, **options)
    for rows in (slice(0, 40), slice(40, 90), slice(90, 150)):
        pieces.partial_fit(X[rows], NAMES[rows], classes=np.unique(NAMES), sample_weight=weight[rows])
    assert_array_equal(pieces.classes_, whole.classes_)
    assert_allclose(pieces.decision_function(X), whole.decision_function(X), atol=1e-8)


def test_partial_fit_goes_on_after_fit_without_classes():
    rows = np.random.default_rng(0).permutation(len(X))
    model = ELMClassifier(**FIXED).fit(X[rows[:100]], NAMES[rows[:100]])
    model.partial_fit(X[rows[100:]], NAMES[rows[100:]])
    assert_allclose(model.decision_function(X), ELMClassifier(**FIXED).fit(X, NAMES).decision_function(X), atol=1e-8)


def test_numbers_as_input():
    model = ELMClassifier("quaternions", **FIXED).fit(X[:, None, :], NAMES)
    table = ELMClassifier("quaternions", **FIXED).fit(X, NAMES)
    assert_array_equal(model.predict_proba(X[:, None, :]), table.predict_proba(X))


def test_a_refused_partial_fit_leaves_the_model_as_it_was():
    model = ELMClassifier(**FIXED).partial_fit(X, NAMES, classes=np.unique(NAMES))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="labels among"):
        model.partial_fit(X[:2], ["rose", "setosa"])
    assert_array_equal(model.decision_function(X), before)


X_NAN, X_INF = X.copy(), X.copy()
X_NAN[3, 2], X_INF[5, 1] = np.nan, -np.inf
FITTED = ELMClassifier(**FIXED).fit(X, NAMES)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ELMClassifier().partial_fit(X, NAMES),
            ValueError,
            "`classes` must be passed on the first call to partial_fit",
        ),
        (
            lambda: ELMClassifier(**FIXED).partial_fit(X, NAMES, classes=["setosa", "versicolor"]),
            ValueError,
            r"`y` must have labels among `classes`, \['setosa' 'versicolor'\], got \['virginica'\]",
        ),
        (
            lambda: ELMClassifier(**FIXED).fit(X, NAMES).partial_fit(X, np.full(len(X), "rose")),
            ValueError,
            r"`y` must have labels among `classes`, .* got \['rose'\]",
        ),
        (
            lambda: ELMClassifier(**FIXED).fit(X, NAMES).partial_fit(X, NAMES, classes=["a", "b"]),
            ValueError,
            "`classes` must be those of the first call",
        ),
        (
            lambda: ELMClassifier(class_weight="balanced").partial_fit(X, NAMES, classes=np.unique(NAMES)),
            ValueError,
            "`class_weight` must not be 'balanced' for partial_fit",
        ),
        *(
            (
                lambda costs=costs: ELMClassifier(class_weight=dict(enumerate(costs))).fit(X, CODES),
                ValueError,
                r"`class_weight` must be finite and not negative, and for some class above zero, got \{0: ",
            )
            for costs in ((0, 0, 0), (1, -1, 1), (1, np.inf, 1), (np.nan, 1, 1))
        ),
        (lambda: ELMClassifier(class_weight="even").fit(X, NAMES), ValueError, "class_weight"),
        (lambda: ELMClassifier().fit(X, np.full(len(X), "a")), ValueError, "at least 2 classes .* only one class"),
        (lambda: ELMClassifier().fit(X, X[:, 0]), ValueError, "Unknown label type: continuous"),
        (lambda: ELMClassifier().fit(X, X), ValueError, "y should be a 1d array"),
        (lambda: ELMClassifier().fit(X, None), ValueError, "requires y to be passed, but the target y is None"),
        (lambda: ELMClassifier().fit(X_NAN, NAMES), ValueError, "Input X contains NaN"),
        (lambda: ELMClassifier().fit(X_INF, NAMES), ValueError, "Input X contains infinity"),
        (lambda: ELMClassifier().fit(X, np.where(CODES == 0, np.nan, CODES)), ValueError, "Input y contains NaN"),
        (lambda: ELMClassifier().fit(X, np.where(CODES == 0, np.inf, CODES)), ValueError, "Input y contains infinity"),
        (lambda: ELMClassifier().fit(sparse.csr_array(X), NAMES), TypeError, "[Ss]parse"),
        (lambda: FITTED.predict(X[:, :3]), ValueError, "X has 3 features, but ELMClassifier is expecting 4 features"),
        (lambda: FITTED.predict_proba(X_NAN), ValueError, "Input X contains NaN"),
        (
            lambda: ELMClassifier().fit(np.ones((150, 2, 3)), NAMES),
            ValueError,
            r"`X` must have .* last axis of length 4 \(quaternions\)",
        ),
        (
            lambda: ELMClassifier().fit(X, NAMES[:20]),
            ValueError,
            r"Found input variables with inconsistent numbers of samples: \[150, 20\]",
        ),
        (lambda: ELMClassifier().predict(X), NotFittedError, "This ELMClassifier instance is not fitted yet"),
        (lambda: ELMClassifier().predict_proba(X), NotFittedError, "is not fitted yet"),
        (lambda: ELMClassifier().decision_function(X), NotFittedError, "is not fitted yet"),
        (lambda: ELMClassifier(n_hidden=0).fit(X, NAMES), ValueError, "`n_hidden` must be a whole number >= 1, got 0"),
        (lambda: ELMClassifier("klien4").fit(X, NAMES), ValueError, "klien4.*[Dd]id you mean.*klein4"),
        (lambda: ELMClassifier(activation="sin").fit(X, NAMES), ValueError, "Did you mean 'sine'"),
        (lambda: ELMClassifier(solver="lu").fit(X, NAMES), ValueError, "`solver` must be one of .* got 'lu'"),
        (lambda: ELMClassifier(ridge=-1).fit(X, NAMES), ValueError, "`ridge` must be a finite number >= 0"),
        (lambda: ELMClassifier(weight_scale=-1).fit(X, NAMES), ValueError, "`weight_scale` must be"),
        (lambda: ELMClassifier(packing="rgb").fit(X, NAMES), ValueError, "`packing` must be one of"),
        (lambda: ELMClassifier(chunk_size=-1).fit(X, NAMES), ValueError, "`chunk_size` must be a whole number >= 1"),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_unnamed_algebra():
    unnamed = algebras.cayley_dickson(-1, 0.5)
    assert ELMClassifier(unnamed, **FIXED).fit(X, NAMES).score(X, NAMES) > 0.8
