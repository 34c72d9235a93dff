"""Frames that a model of named columns predicts from: columns are found by their names, as in a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from hyperelm import ColumnPlan, FrameClassifier, FrameRegressor, load, save

RNG = np.random.default_rng(0)
ROWS = 60
FRAME = pd.DataFrame(
    {
        "size": RNG.standard_normal(ROWS),
        "price": 100 + 10 * RNG.standard_normal(ROWS),
        "colour": RNG.choice(["blue", "red"], ROWS),
        "day": pd.date_range("2020-01-01", periods=ROWS).strftime("%d.%m.%Y"),
    }
)
Y = FRAME["size"].to_numpy() + (FRAME["colour"] == "red")


def plan_of(frame=FRAME, **how):
    """The plan that `hyperelm fit` makes for a file with these columns."""
    columns = {name: frame[name].to_numpy() for name in frame if name not in ("colour", "day")}
    if "colour" in frame:
        columns["colour"] = frame["colour"].astype(object).where(frame["colour"].notna(), None).to_numpy(object)
    if "day" in frame:
        columns["day"] = pd.to_datetime(frame["day"], format="%d.%m.%Y").to_numpy()
    return ColumnPlan.of(columns, notes={"day": "%d.%m.%Y"}, **how), columns


def fitted(frame=FRAME, model_class=FrameRegressor, y=Y, **how):
    plan, columns = plan_of(frame, **how)
    model = model_class("klein4", 8, ridge=0.1, random_state=0)
    X = plan.apply(columns)
    known = ~np.isnan(X).any(axis=1)
    return model.fit(X[known], y[known]).name_columns(plan.features, ["y"], plan=plan), X


@pytest.mark.parametrize("from_file", [False, True])
def test_columns_in_another_order_beside_others(from_file, tmp_path):
    model, X = fitted()
    if from_file:
        save(model, tmp_path / "model")
        model = load(tmp_path / "model")
    other = FRAME.assign(more=1.0, why="because")[["why", "day", "price", "more", "colour", "size"]]
    assert_array_equal(model.predict(other), model.predict(X))
    assert_array_equal(model.predict_interval(other), model.predict_interval(X))
    assert_array_equal(model.leverage(other), model.leverage(X))


def test_columns_after_the_plan():
    """Those that `column_names_` lists are taken by their names, too."""
    with_gap = FRAME.assign(size=FRAME["size"].where(FRAME.index > 5))
    model, X = fitted(with_gap)
    assert "size is missing" in model.column_names_
    turned = pd.DataFrame(X, columns=model.column_names_)[model.column_names_[::-1]]
    assert_array_equal(model.predict(turned), model.predict(X))


def test_labels():
    model, X = fitted(model_class=FrameClassifier, y=np.where(Y > 0.5, "much", "little"))
    other = FRAME[FRAME.columns[::-1]]
    assert_array_equal(model.predict(other), model.predict(X))
    assert_array_equal(model.predict_proba(other), model.predict_proba(X))


def test_lacking_columns_are_named():
    model, _ = fitted()
    with pytest.raises(ValueError, match=r"^`X` must have the column 'price', .*got .*size, colour, day"):
        model.predict(FRAME.drop(columns="price"))
    with pytest.raises(ValueError, match=r"^`X` must have the columns 'price' and 'day'"):
        model.predict(FRAME.drop(columns=["price", "day"]))
    twice = pd.concat([FRAME, FRAME[["size"]]], axis=1)
    with pytest.raises(ValueError, match=r"^`X` must have one column 'size', got 2\."):
        model.predict(twice)


def test_gaps_are_filled_as_in_a_file():
    model, _ = fitted()
    gaps = FRAME.astype({"colour": object}).copy()
    gaps.loc[3, "size"] = gaps.loc[4, "colour"] = gaps.loc[5, "day"] = None
    _, columns = plan_of(gaps)
    assert_array_equal(model.predict(gaps), model.predict(model.plan_.apply(columns)))


@pytest.mark.parametrize("missing", ["drop", "error"])
def test_gaps_are_refused_by_name_where_they_are_not_filled(missing):
    model, X = fitted(missing=missing)
    gaps = FRAME.assign(price=FRAME["price"].where(FRAME.index != 7))
    with pytest.raises(ValueError, match=r"^`X` must have no missing values in 'price', .*got 1.*dropna"):
        model.predict(gaps)
    assert_array_equal(model.predict(FRAME), model.predict(X))


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(FRAME["day"], format="%d.%m.%Y"),
        pd.to_datetime(FRAME["day"], format="%d.%m.%Y").dt.tz_localize("UTC"),
        FRAME["day"].astype("string"),
    ],
)
def test_dates_of_any_type(column):
    model, X = fitted()
    assert_array_equal(model.predict(FRAME.assign(day=column)), model.predict(X))


def test_types_of_pandas():
    model, X = fitted()
    other = FRAME.astype({"colour": "category", "size": "Float64", "price": object})
    assert_array_equal(model.predict(other), model.predict(X))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", "big", r"^`X` must hold numbers in 'size', got 'big' in row 2 \("),
        ("size", np.inf, r"^`X` must hold numbers in 'size', got inf in row 2 \("),
        ("day", "soon", r"^`X` must hold dates of the form %d\.%m\.%Y in 'day', got 'soon' in row 2 \(.*to_datetime"),
    ],
)
def test_cells_of_another_kind_are_named(name, value, message):
    model, _ = fitted()
    wrong = FRAME.astype({name: object}).copy()
    wrong.loc[2, name] = value
    with pytest.raises(ValueError, match=message):
        model.predict(wrong)


def test_arrays_are_taken_by_place():
    """So are frames, where the model knows no names."""
    frame = FRAME[["size", "price"]]
    model = FrameRegressor("klein4", 8, ridge=0.1, random_state=0).fit(frame.to_numpy(), Y)
    with pytest.warns(UserWarning, match="feature names"):
        assert_array_equal(model.predict(frame), model.predict(frame.to_numpy()))


def test_names_of_a_frame_that_was_fitted_are_those_of_scikit_learn():
    frame = FRAME[["size", "price"]]
    model = FrameRegressor("klein4", 8, ridge=0.1, random_state=0).fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["price", "size"]])


def test_rows_of_a_series_are_no_windows():
    frame = FRAME[["size", "price"]]
    plan = ColumnPlan.of({name: frame[name].to_numpy() for name in frame}, missing="last")
    windows = np.hstack([frame[:-1], frame[1:]])
    model = FrameRegressor("klein4", 8, ridge=0.1, random_state=0).fit(windows, Y[1:])
    model.name_columns(plan.features, ["y"], 2, plan=plan)
    wide = frame.assign(a=1.0, b=2.0)  # as many columns as a window
    with pytest.raises(
        ValueError, match=r"^`X` must have windows as rows, .*got .*size, price, a, b.*hyperelm predict"
    ):
        model.predict(wide)
    assert model.predict(windows).shape == (ROWS - 1,)


def test_more_rows_of_a_frame():
    plan, _ = plan_of(FRAME[["size", "price"]])
    model = FrameRegressor("klein4", 8, ridge=0.1, weight_scale=0.5, random_state=0)
    X = FRAME[["size", "price"]].to_numpy()
    once, twice = (model.__class__(**model.get_params()).partial_fit(X[:40], Y[:40]) for _ in range(2))
    for part in (once, twice):
        part.name_columns(plan.features, ["y"], plan=plan)
    once.partial_fit(X[40:], Y[40:])
    twice.partial_fit(FRAME[["price", "size"]][40:], Y[40:])
    assert_array_equal(once.predict(X), twice.predict(X))
