"""Plans of columns: what becomes of numbers, texts, dates and gaps, and what a file may say of them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import OneHotEncoder

from hyperelm import ColumnPlan, FrameClassifier, FrameRegressor, load, save
from hyperelm._files.container import read, to_bytes

NAN = np.nan


def texts(*values):
    return np.array(values, dtype=object)


def test_levels_are_those_of_a_one_hot_encoder():
    values = texts(*"abcabcaab")
    plan = ColumnPlan.of({"x": values})
    assert plan.features == ["x=a", "x=b", "x=c"]
    assert_array_equal(plan.apply({"x": values}), OneHotEncoder(sparse_output=False).fit_transform(values[:, None]))
    assert_array_equal(plan.apply({"x": texts("d", None)}), np.zeros((2, 3)))


def test_parts_of_dates_are_those_of_pandas():
    dates = pd.Series(pd.date_range("1969-12-30 22:15", periods=200, freq="7h30min"))
    plan = ColumnPlan.of({"t": dates.to_numpy()})
    expected = [dates.dt.year, dates.dt.month, dates.dt.day, dates.dt.hour + dates.dt.minute / 60]
    assert plan.features == ["t.year", "t.month", "t.day", "t.hour"]
    assert_allclose(plan.apply({"t": dates.to_numpy()}), np.column_stack(expected))
    days = ColumnPlan.of({"t": np.array(["2020-01-01", "2020-01-05"], "datetime64[D]")})
    assert days.features == ["t.day"]  # the only part that varies


def test_means_and_marks_of_missing_values():
    frame = {"a": np.array([1.0, NAN, 3.0]), "b": np.array([1.0, 2.0, 3.0])}
    plan = ColumnPlan.of(frame)
    assert plan.features == ["a", "a is missing", "b"]
    assert_array_equal(plan.apply(frame), [[1, 0, 1], [2, 1, 2], [3, 0, 3]])
    later = {"a": np.array([5.0]), "b": np.array([NAN])}
    assert_array_equal(plan.apply(later), [[5, 0, 2]])
    assert plan.remarks(later) == ["'b': 1 missing value filled with the mean of the training rows."]


@pytest.mark.parametrize("policy", ["drop", "error"])
def test_missing_values_stay_where_rows_go(policy):
    frame = {"a": np.array([1.0, NAN, 3.0, 4.0, 5.0]), "c": texts("x", "x", None, "y", "y")}
    plan = ColumnPlan.of(frame, missing=policy)
    assert np.isnan(plan.apply(frame)).any(axis=1).tolist() == [False, True, True, False, False]


def test_the_last_value_before_a_gap():
    frame = {"a": np.array([NAN, 1.0, NAN, NAN, 4.0])}
    plan = ColumnPlan.of(frame, missing="last")
    assert_array_equal(plan.apply(frame)[:, 0], [2.5, 1, 1, 1, 4])  # there is none before the first: the mean


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (texts(*map(str, range(50))), "text with 50 different values"),
        (texts("a", "b", "c", "c"), "text with 3 different values in 4 rows"),
        (texts("a", "a"), "it has one value"),
        (texts(None, None), "it is empty"),
        (np.full(3, NAN), "it is empty"),
        (np.full(3, "2020-01-01", "datetime64[s]"), "it has one date"),
    ],
)
def test_what_is_left_out(values, reason):
    plan = ColumnPlan.of({"x": values})
    assert plan.features == []
    assert plan.lines() == [f"'x' is left out: {reason}."]
    with pytest.raises(ValueError, match="--inputs must be columns that can be used, but 'x' cannot"):
        ColumnPlan.of({"x": values}, needed=["x"])


def test_lines_say_what_was_done():
    dates = np.array(["2020-01-01", "2021-02-03", "NaT", "2021-02-04"], "datetime64[s]")
    frame = {"n": np.array([1.0, NAN, NAN, 2.0]), "c": texts("a", "b", "a", "b"), "d": dates, "plain": np.arange(4.0)}
    assert ColumnPlan.of(frame).lines() == [
        "'n': 2 missing values are filled with the mean and marked in a column of their own.",
        "'c' is text and becomes one column for each of 2 levels (a, b).",
        "'d' is a date and becomes year, month and day; 1 missing value is filled with the mean and marked in a column "
        "of its own.",
    ]


def test_unseen_levels_are_named():
    plan = ColumnPlan.of({"c": texts("a", "b", "a", "b")})
    unseen, gap = plan.remarks({"c": texts("z", "a", "z", None)})
    assert unseen.startswith("'c' has 'z' in 2 rows, which the training rows did not have.")
    assert gap == "'c' is missing in 1 row."


values = st.one_of(
    st.lists(st.floats(-1e6, 1e6) | st.just(NAN), min_size=8, max_size=8).map(np.array),
    st.lists(st.sampled_from(["a", "b", "ü, ;", None]), min_size=8, max_size=8).map(lambda v: np.array(v, object)),
    st.lists(st.integers(-(10**9), 10**10), min_size=8, max_size=8).map(lambda v: np.array(v).astype("datetime64[s]")),
)


@settings(max_examples=30)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "größe", "x, y", "="]), values, min_size=1, max_size=3),
    st.sampled_from(["mean", "last"]),
)
def test_a_plan_reads_back_and_fills_all_gaps(frame, missing):
    plan = ColumnPlan.of(frame, missing=missing)
    assert ColumnPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    if plan.used:
        X = plan.apply(frame)
        assert X.shape == (8, len(plan.features))
        assert np.isfinite(X).all()


STEP = {"name": "a", "kind": "number", "levels": [], "parts": [], "means": [1.0], "gaps": 0, "note": ""}


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {"missing": "mean"},
        {"missing": "magic", "steps": []},
        {"missing": "mean", "steps": [None]},
        *({"missing": "mean", "steps": [STEP | change]} for change in (
            {"kind": "code"}, {"means": []}, {"means": [float("inf")]}, {"means": [1]}, {"gaps": -1}, {"gaps": True},
            {"levels": ["x"]}, {"kind": "levels", "means": []}, {"kind": "levels", "means": [], "levels": ["x", "x"]},
            {"kind": "date", "parts": ["century"]}, {"name": 3}, {"more": 1},
        )),
    ],
)  # fmt: skip
def test_plans_that_are_none(tree):
    with pytest.raises(ValueError, match="its plan of the columns"):
        ColumnPlan.from_json(tree)


# ---------------------------------------------------------------------- with a model


@pytest.fixture
def planned():
    rng = np.random.default_rng(0)
    frame = {"x": 100 + rng.standard_normal(60), "c": texts(*("ab" * 30)), "gap": rng.standard_normal(60)}
    frame["gap"][::7] = NAN
    return frame, ColumnPlan.of(frame), frame["x"] - 100


@pytest.mark.parametrize("kind", [FrameRegressor, FrameClassifier])
def test_a_model_file_holds_the_plan(planned, kind, tmp_path):
    frame, plan, y = planned
    target = y if kind is FrameRegressor else np.where(y > 0, "up", "down")
    model = kind("complex", 5, random_state=0).fit(plan.apply(frame), target)
    model.name_columns(plan.features, ["y"], plan=plan)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.plan_ == plan
    assert again.horizon_.tolist() == [1]
    assert_array_equal(again.predict(plan.apply(frame)), model.predict(plan.apply(frame)))


def test_files_of_earlier_formats_have_columns_of_numbers(planned, tmp_path):
    frame, plan, y = planned
    model = FrameRegressor("complex", 5, random_state=0).fit(plan.apply(frame), y)
    save(model.name_columns(plan.features, ["y"], plan=plan), tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    del arrays["plan_json_"], arrays["horizon_"]
    (tmp_path / "model").write_bytes(to_bytes(header, arrays))
    again = load(tmp_path / "model")
    assert again.plan_ == ColumnPlan.of_numbers(plan.features)
    assert again.horizon_.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("plan_json_", texts("{}"), "its plan of the columns"),
        ("plan_json_", texts("[" * 100_000), "its plan of the columns"),
        ("plan_json_", texts("x"), ""),
        ("plan_json_", np.arange(2), "its plan of the columns is not a text"),
        ("column_names_", texts("a", "b", "c", "d", "e"), "its plan of the columns does not fit their names"),
        ("horizon_", np.array([0]), "what it says of its columns"),
        ("horizon_", np.array([0.5]), "what it says of its columns"),
    ],
)
def test_files_whose_plan_does_not_fit(planned, tmp_path, name, value, reason):
    frame, plan, y = planned
    model = FrameRegressor("complex", 5, random_state=0).fit(plan.apply(frame), y)
    save(model.name_columns(plan.features, ["y"], plan=plan), tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    (tmp_path / "model").write_bytes(to_bytes(header, arrays | {name: value}))
    with pytest.raises(ValueError, match=f"cannot be loaded: {reason}"):
        load(tmp_path / "model")


def test_a_classifier_standardises_its_columns(planned):
    """The same as a scaler before the plain model."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from hyperelm import ELMClassifier

    frame, plan, y = planned
    X, labels = plan.apply(frame) * [1e3, 1, 1, 1, 1e-3] + 50, np.where(y > 0, "up", "down")
    mine = FrameClassifier("klein4", 6, ridge=0.1, random_state=0).fit(X, labels)
    plain = make_pipeline(StandardScaler(), ELMClassifier("klein4", 6, ridge=0.1, random_state=0)).fit(X, labels)
    assert_allclose(mine.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"must be columns in memory.*use `ELMClassifier`"):
        FrameClassifier("complex", 2).fit(np.ones((6, 2, 2)), [0, 1] * 3)
