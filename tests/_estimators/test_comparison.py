"""Repeated cross-validation and the corrected resampled t-test, against the formula and plain loops."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_linnerud
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import RepeatedKFold, TimeSeriesSplit
from sklearn.preprocessing import scale

from hyperelm import ELMClassifier, ELMRegressor, compare
from hyperelm._estimators.comparison import Comparison

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

X, Y = (scale(part) for part in load_linnerud(return_X_y=True))


def nadeau_bengio(x, n_train, n_test):
    """The test as it is written in the paper, with SciPy's distribution."""
    J = len(x)
    mean = sum(x) / J
    variance = sum((value - mean) ** 2 for value in x) / (J - 1)
    t = mean / np.sqrt((1 / J + n_test / n_train) * variance)
    return t, 2 * stats.t.sf(abs(t), df=J - 1)


def test_the_statistic_is_that_of_the_formula():
    inputs, target = load_diabetes(return_X_y=True)
    models = {"ridge": Ridge(0.1), "mean": DummyRegressor()}
    result = compare(models, inputs[:100], target[:100], cv=4, n_repeats=3, random_state=5)
    differences = []
    for train, test in RepeatedKFold(n_splits=4, n_repeats=3, random_state=5).split(inputs[:100]):
        scores = [
            r2_score(target[test], clone(model).fit(inputs[train], target[train]).predict(inputs[test]))
            for model in models.values()
        ]
        differences.append(scores[1] - scores[0])
    t, p = nadeau_bengio(differences, 75, 25)
    found = result.test("mean")
    assert found["t"] == pytest.approx(t)
    assert found["p"] == pytest.approx(p)
    assert found["difference"] == pytest.approx(np.mean(differences))
    half = stats.t.ppf(0.975, 11) * np.mean(differences) / t
    assert (found["low"], found["high"]) == pytest.approx(
        (np.mean(differences) - abs(half), np.mean(differences) + abs(half))
    )
    back = result.test("ridge", "mean")
    assert (back["t"], back["p"]) == pytest.approx((-t, p))


def test_it_finds_no_difference_where_there_is_none_more_often_than_it_says():
    """Two models that are equally bad on noise: p < 5 % for about 5 % of data sets, but for many in a plain t-test."""
    corrected, plain = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        inputs, noise = rng.standard_normal((40, 4)), rng.standard_normal(40)
        first, second = (LinearRegression().fit(inputs[:, part], noise) for part in ([0, 1], [2, 3]))
        splits = list(RepeatedKFold(n_splits=5, n_repeats=3, random_state=0).split(inputs))
        scores = {
            name: np.array(
                [
                    -np.mean((model.fit(inputs[a][:, part], noise[a]).predict(inputs[b][:, part]) - noise[b]) ** 2)
                    for a, b in splits
                ]
            )
            for name, model, part in (("first", first, [0, 1]), ("second", second, [2, 3]))
        }
        corrected.append(Comparison(scores, "first", 8 / 32).test("second")["p"])
        plain.append(stats.ttest_rel(scores["first"], scores["second"]).pvalue)
    assert np.mean(np.array(corrected) < 0.05) <= 0.12
    assert np.mean(np.array(plain) < 0.05) > 0.15


def test_models_that_do_the_same():
    result = compare({"one": Ridge(), "two": Ridge()}, X, Y, n_repeats=2)
    assert result.test("two") == {"difference": 0, "low": 0, "high": 0, "t": 0, "p": 1}
    shifted = Comparison({"a": np.zeros(4), "b": np.ones(4)}, "a", 0.25)
    assert shifted.test("b") == {"difference": 1, "low": 1, "high": 1, "t": np.inf, "p": 0}


def test_frame():
    pandas = pytest.importorskip("pandas")
    network = ELMRegressor("quaternions", 4, packing="imaginary", random_state=0)
    result = compare({"mean": DummyRegressor(), "ELM": network, "ridge": Ridge(10)}, X, Y, n_repeats=2)
    frame = result.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame.index) == {"mean", "ELM", "ridge"}
    assert list(frame.columns) == ["score", "std", "difference", "low", "high", "t", "p"]
    assert frame["score"].is_monotonic_decreasing
    assert frame.loc["mean", ["t", "p"]].isna().all()
    assert frame.loc["ELM", "p"] == result.test("ELM")["p"]


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    result = compare({"mean": DummyRegressor(), "ridge": Ridge(10)}, X, Y, n_repeats=2)
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == sorted(
        result.scores, key=lambda name: result.scores[name].mean()
    )
    assert axes.get_xlabel() == "score less that of mean, with 95 % intervals"
    _, own = pyplot.subplots()
    assert result.plot(own) is own
    pyplot.close("all")


def test_names_splitters_and_scores():
    models = [Ridge(), ELMRegressor("complex", 3, random_state=0)]
    result = compare(models, X, Y, cv=TimeSeriesSplit(4), scoring="neg_mean_absolute_error")
    assert list(result.scores) == ["Ridge()", "ELMRegressor(algebra='complex', n_hidden=3, random_state=0)"]
    assert result.ratio == pytest.approx(np.mean([4 / 4, 4 / 8, 4 / 12, 4 / 16]))
    assert result.reference == "Ridge()"
    assert compare({"a": Ridge(), "b": Ridge(2)}, X, Y, n_repeats=1, reference="b").reference == "b"


def test_classifiers_keep_their_classes_in_every_fold():
    inputs, labels = load_iris(return_X_y=True)
    models = {"ELM": ELMClassifier("klein4", 10, random_state=0), "logistic": LogisticRegression(max_iter=1000)}
    result = compare(models, inputs, labels, cv=3, n_repeats=2)
    assert all(len(scores) == 6 and scores.min() > 0.85 for scores in result.scores.values())


def test_numbers_of_an_algebra():
    numbers = np.random.default_rng(0).standard_normal((30, 2, 4))
    models = {name: ELMRegressor(name, 3, random_state=0) for name in ("quaternions", "klein4")}
    result = compare(models, numbers, numbers[:, :1], cv=3, n_repeats=1)
    assert all(np.isfinite(scores).all() for scores in result.scores.values())


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([Ridge()], {}, "`models` must be at least two, got 1"),
        ([Ridge(), Ridge()], {}, r"`models` must differ, got 'Ridge\(\)' twice"),
        ([Ridge(), "lasso"], {}, "`models` must be estimators, got 'lasso'"),
        (Ridge(), {}, "`models` must be a dict or a list of estimators, got Ridge"),
        ([Ridge(), Ridge(2)], {"reference": "x"}, "`reference` must be one of"),
        ([Ridge(), Ridge(2)], {"cv": "many"}, "`cv` must be a number of folds or a splitter"),
        ([Ridge(), Ridge(2)], {"scoring": ["r2", "max_error"]}, "`scoring` must be one score"),
        ([Ridge(), Ridge(2)], {"cv": 1}, "at least one train/test split"),
        ([Ridge(), Ridge(2)], {"cv": 50}, "Cannot have number of splits"),
    ],
)
def test_what_is_refused(models, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compare(models, X, Y, **options)


def test_a_model_that_was_not_compared():
    result = Comparison({"a": np.zeros(3), "b": np.ones(3)}, "a", 0.5)
    with pytest.raises(ValueError, match="`model` and `other` must be among 'a', 'b', got 'c'"):
        result.test("b", "c")


@pytest.mark.parametrize(("package", "method"), [("pandas", "frame"), ("matplotlib", "plot")])
def test_a_missing_extra_is_one_line(monkeypatch, package, method):
    result = Comparison({"a": np.arange(3.0), "b": np.ones(3)}, "a", 0.25)
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError) as error:
        getattr(result, method)()
    assert str(error.value) == f"`Comparison.{method}` needs the package {package!r}: pip install 'hyperelm[cli]'"
