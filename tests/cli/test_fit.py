"""`hyperelm fit` and `predict`: what they print, what they save, and what they refuse."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import needs_links
from hyperelm import ColumnPlan, ELMRegressor, load, save, to_onnx
from hyperelm._estimators.frame import FrameRegressor
from hyperelm._files.container import read, to_bytes
from hyperelm.cli import _fit
from hyperelm.cli._task import Task, windows
from hyperelm.datasets import lorenz
from runs import command as run

FAST = ("--algebra", "real", "--algebra", "complex")

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # some targets here are random


def written(path, rows, header=None):
    lines = ([",".join(header)] if header else []) + [",".join(f"{value!r}" for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def parsed(text):
    names, *rows = csv.reader(io.StringIO(text))
    return names, np.array(rows, dtype=float)


@pytest.fixture
def houses(tmp_path):
    """A nonlinear task in odd units, and a column of text."""
    rng = np.random.default_rng(0)
    size, age = rng.uniform(20, 200, 150), rng.uniform(0, 1e6, 150)
    price = 1e-3 * np.sin(size / 20) + 1e-9 * age
    rows = zip(range(150), size.tolist(), age.tolist(), price.tolist())
    path = tmp_path / "houses.csv"
    path.write_text("name,size,age,price\n" + "".join(f"house {n},{a},{b},{c}\n" for n, a, b, c in rows))
    return path


# ---------------------------------------------------------------------- the model


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("packing", ["full", "imaginary"])
@pytest.mark.parametrize("columns", [None, 3])
def test_scaling_is_folded_in_exactly(bias, direct_link, packing, columns, tmp_path):
    """The same as scikit-learn's scalers around the plain model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * [1e-3, 1, 1e4, 5, 2] + [0, 7, 1e5, 0, -3]
    y = rng.standard_normal((60, columns or 1)) * 1e3 + 50
    y = y if columns else y[:, 0]
    parameters = {"algebra": "quaternions", "n_hidden": 6, "ridge": 0.1, "random_state": 0}
    parameters |= {"bias": bias, "direct_link": direct_link, "packing": packing}
    model = FrameRegressor(**parameters).fit(X, y)
    plain = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), ELMRegressor(**parameters)), transformer=StandardScaler()
    ).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert_allclose(model.predict(X), plain.predict(X), rtol=1e-9, atol=1e-9 * np.abs(y).max())
    save(model, tmp_path / "model", state=True)
    again = load(tmp_path / "model")
    assert_array_equal(again.predict(X), model.predict(X))
    assert_allclose(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X), rtol=1e-9)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e10, 3e14])
@pytest.mark.parametrize("direct_link", [False, True])
def test_columns_far_from_zero(offset, direct_link):
    """Written out with the standardised columns: nothing cancels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4)) * [1, 2, 5, 1] + offset
    y = np.sin(X[:, 0] - offset)
    model = FrameRegressor("quaternions", 10, direct_link=direct_link, random_state=0).fit(X, y)
    x = ((X - model.input_offset_) / model.input_scale_)[:, None, :]
    plain = ELMRegressor("quaternions", 10, direct_link=direct_link, random_state=0).fit(x, y)
    weights = {"hidden_weights": model.hidden_weights_, "output_weights": model.output_weights_}
    plain.network_ = replace(plain.network_, **weights)
    expected = plain.predict(x) * model.output_scale_ + model.output_offset_
    assert_allclose(model.predict(X), expected, rtol=0, atol=1e-12)


def test_single_precision_keeps_the_digits_of_double_rows():
    X = np.random.default_rng(0).standard_normal((80, 4)) + 1e6
    single = X.astype(np.float32)
    model = FrameRegressor("klein4", 10, random_state=0).fit(single, single[:, 0] - np.float32(1e6))
    step = np.zeros(4)
    step[0] = 1e-3  # which single precision does not see beside 1e6
    assert (model.predict(X + step) != model.predict(X)).all()


def test_a_column_that_does_not_vary():
    X = np.column_stack([np.full(30, 0.1), np.random.default_rng(0).standard_normal(30)])
    model = FrameRegressor("complex", 5, random_state=0).fit(X, X[:, 1])
    assert model.input_scale_[0] == 1
    assert np.isfinite(model.predict(X)).all()


def test_tables_only():
    with pytest.raises(ValueError, match="must be columns in memory"):
        FrameRegressor("complex", 2).fit(np.ones((5, 2, 2)), np.arange(5.0))


def test_the_graph_takes_raw_columns():
    onnxruntime = pytest.importorskip("onnxruntime")
    X = np.random.default_rng(0).standard_normal((40, 4)) * [1, 10, 100, 1] + 5
    model = FrameRegressor("klein4", 5, direct_link=True, random_state=0).fit(X, X[:, :2] ** 2)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    (predicted,) = session.run(["prediction"], {"X": X.astype(np.float32)})
    assert_allclose(predicted, model.predict(X), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_scale_", np.ones(3)),
        ("input_scale_", np.zeros(4)),
        ("output_offset_", np.array([np.nan])),
        ("window_", np.array([3])),
        ("window_", np.array([0.5])),
        ("column_names_", np.arange(4)),
        ("target_names_", np.array(["a", "b"], dtype=object)),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, name, value):
    model = FrameRegressor("klein4", 3, random_state=0).fit(
        np.random.default_rng(0).standard_normal((20, 4)), np.arange(20.0)
    )
    save(model, tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    (tmp_path / "model").write_bytes(to_bytes(header, arrays | {name: value}))
    with pytest.raises(ValueError, match="what it says of its columns does not fit together"):
        load(tmp_path / "model")


# ---------------------------------------------------------------------- the commands


@needs_links
def test_fit_and_predict(houses, tmp_path):
    model = tmp_path / "model"
    done = run("fit", houses, "--target", "price", "--inputs", "size,age", "--save", model, *FAST)
    assert done.exit_code == 0, done.stderr
    assert "150 rows, 2 input columns, 1 target." in done.stdout
    assert "Chosen: " in done.stdout
    assert "ridge regression" in done.stdout
    assert "persistence" not in done.stdout
    assert "\n\nAdvice:\n- If the columns are unlike things, compare with ridge" in done.stdout
    assert done.stderr == ""
    printed = run("predict", model, houses)
    names, values = parsed(printed.stdout)
    assert names == ["price"]
    rows = list(csv.DictReader(houses.read_text().splitlines()))
    X = np.array([[float(row["size"]), float(row["age"])] for row in rows])
    assert_allclose(values, load(model).predict(X).reshape(-1, 1))
    prices = np.array([float(row["price"]) for row in rows])
    assert np.mean((values[:, 0] - prices) ** 2) < 0.05 * prices.var()
    out = tmp_path / "predicted.csv"
    assert run("predict", model, houses, "--out", out).exit_code == 0
    assert out.read_text() == printed.stdout
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for there in (out, tmp_path / "link"):
        other = run("predict", model, houses, "--out", there)
        assert other.exit_code == 2
        assert "--out must name a new file" in other.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_columns_are_found_by_their_names(houses, tmp_path):
    model = tmp_path / "model"
    run("fit", houses, "--target", "price", "--inputs", "size,age", "--save", model, *FAST)
    rows = list(csv.DictReader(houses.read_text().splitlines()))
    turned = tmp_path / "turned.csv"
    turned.write_text("age,note,size\n" + "".join(f"{row['age']},x,{row['size']}\n" for row in rows))
    assert run("predict", model, turned).stdout == run("predict", model, houses).stdout


def test_years_are_names_of_columns(tmp_path):
    rows = np.random.default_rng(0).standard_normal((30, 3)).tolist()
    data, model = written(tmp_path / "years.csv", rows, ["2019", "2020", "2021"]), tmp_path / "model"
    done = run("fit", data, "--target", "2021", "--save", model, *FAST)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(
        "The first row (2019, 2020, 2021) is taken as names of columns.\n30 rows, 2 input columns"
    )
    names, values = parsed(run("predict", model, data).stdout)
    assert names == ["2021"]
    assert_allclose(values, load(model).predict(np.array(rows)[:, :2]))
    numbered = run("fit", data, "--target", "3", "--save", model, "--force", *FAST)
    assert "the first row (2019, 2020, 2021) is taken as numbers.\n31 rows, 2 input columns" in numbered.stdout


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[2Jy\r", "\N{REPLACEMENT CHARACTER}[2Jy\N{REPLACEMENT CHARACTER}"),
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" +A1", "' +A1"),
        ("-2+3", "'-2+3"),
        ("\t=A1", "\N{REPLACEMENT CHARACTER}=A1"),
        ("-2.5", "-2.5"),
        ("+-+/---", "+-+/---"),
        ("größe, in m²", "größe, in m²"),
    ],
)
def test_names_of_a_model_are_only_texts(tmp_path, name, shown):
    """Neither a terminal nor a spreadsheet does anything with them."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    model = FrameRegressor("complex", 3, random_state=0).fit(X, X[:, :1]).name_columns(["a", "b"], [name])
    save(model, tmp_path / "model")
    done = run("predict", tmp_path / "model", written(tmp_path / "x.csv", X.tolist(), "ab"))
    names, values = parsed(done.stdout)
    assert names == [shown]
    assert_array_equal(values[:, 0], model.predict(X).ravel())
    assert all(c.isprintable() or c == "\n" for c in done.stdout)


def test_a_series(tmp_path):
    """Windows in, the row after each out; the last prediction is beyond the file."""
    positions = lorenz(420)
    data, model = written(tmp_path / "l.csv", positions.tolist(), "xyz"), tmp_path / "model"
    done = run("fit", data, "--target", "x,y,z", "--series", 3, "--save", model, *FAST)
    assert done.exit_code == 0, done.stderr
    assert "417 rows, 3 input columns in windows of 3, 3 targets." in done.stdout
    assert "persistence" in done.stdout
    names, values = parsed(run("predict", model, data).stdout)
    assert names == ["row", "x", "y", "z"]
    assert_array_equal(values[:, 0], np.arange(4, 422))
    assert np.abs(values[:-1, 1:] - positions[3:]).max() < 0.1
    assert np.abs(values[-1, 1:] - lorenz(421)[-1]).max() < 0.1
    short = run("predict", model, written(tmp_path / "short.csv", [[1, 2, 3]], "xyz"))
    assert short.exit_code == 2
    assert "must have at least 3 rows" in short.stderr
    only = parsed(run("predict", model, written(tmp_path / "three.csv", positions[:3].tolist(), "xyz")).stdout)
    assert_allclose(only[1], values[:1])


def test_a_warning_where_nothing_helps(tmp_path):
    data = written(tmp_path / "noise.csv", np.random.default_rng(0).standard_normal((60, 3)).tolist(), "abc")
    done = run("fit", data, "--target", "c", "--save", tmp_path / "model", "--algebra", "real", "--parameters", "40")
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].startswith("Warning: No candidate does better than the mean of the targets")


def test_a_warning_where_something_simpler_does_better(tmp_path):
    walk = np.cumsum(np.random.default_rng(0).choice([-1.0, 1.0], size=(300, 1)), axis=0)
    data = written(tmp_path / "walk.csv", walk.tolist(), ["x"])
    done = run("fit", data, "--target", "x", "--series", 5, "--save", tmp_path / "model", *FAST)
    assert done.exit_code == 0
    assert done.stderr.startswith("Warning: ")
    assert "persistence" in done.stderr
    assert "better on the rows held out" in done.stderr


def test_errors_and_choice_are_those_of_the_rows_held_out():
    X = np.random.default_rng(0).standard_normal((60, 2))
    plan = ColumnPlan.of_numbers(["a", "b"])
    task = Task(X, X[:, :1] * 2, ["c"], plan)
    result = _fit.fit(task, ["real"])
    assert result.held_out == task.held_out().sum() == 12
    assert result.searched == 48
    assert result.compared["ridge regression"] < 1e-3
    assert result.model.predict(X).shape == (60, 1)
    late = Task(X, X[:, :1], ["a"], plan, 2, 1, X[:, :1]).held_out()
    assert late.sum() == 12
    assert late[-12:].all()


def test_candidates_that_were_left_out_early_come_last():
    """Their scores are those of fewer rows or draws."""

    results = {
        "param_algebra": np.array(["real", "real", "complex", "dual"]),
        "mean_test_score": -np.array([9.0, 4.0, 1.0, 16.0]),
        "draw0_test_score": -np.array([9.0, 4.0, 1.0, 16.0]),
        "draw1_test_score": -np.array([np.nan, 4.0, np.nan, 16.0]),
    }
    fitted = _fit.Fitted(None, SimpleNamespace(cv_results_=results), {}, 1)
    assert fitted.best_of_each == [1, 3, 2]
    assert fitted.complete.tolist() == [False, True, False, True]


def test_windows():
    rows = np.arange(8.0).reshape(4, 2)
    assert_array_equal(windows(rows, 3), [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]])
    assert_array_equal(windows(rows, 4), [np.arange(8)])
    assert_array_equal(windows(rows, 1), rows)


# ---------------------------------------------------------------------- bad input

NUMBERS = "\n".join(f"{n},{n * n % 7},{n % 5}" for n in range(30))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("temp,b,c\n" + NUMBERS, ["--target", "tmp"], "has no column 'tmp'. Did you mean 'temp'?"),
        ("temp,b,c\n" + NUMBERS, ["--target", "b", "--inputs", "tmep"], "Did you mean 'temp'?"),
        ("a,a,c\n" + NUMBERS, ["--target", "a"], "has 2 columns called 'a'"),
        ("a,a,c\n" + NUMBERS, ["--target", "c"], "has 2 columns called 'a'"),
        ("a,b,c\n" + NUMBERS, ["--target", "a,a"], "--target must be different names"),
        ("a,b,c\n" + NUMBERS, ["--target", ""], "--target must be different names"),
        ("a,b,c\n" + NUMBERS, ["--target", "a,b,c"], "must leave columns to predict from"),
        ("a,b,c\n" + NUMBERS, ["--target", "a", "--inputs", "a,b"], "--inputs must not be targets"),
        ("a,b,c\n" + NUMBERS, ["--target", "a", "--series", "-1"], "--series must be the number of rows"),
        ("a,b,c\n" + NUMBERS, ["--target", "a", "--series", "25"], "must have at least 35 rows, got 30"),
        ("a,b,c\n" + NUMBERS, ["--target", "a", "--algebra", "quaternoins"], "Did you mean 'quaternions'?"),
        ("a,b,c\n" + NUMBERS + "\n1,x,2", ["--target", "a"], "got 'x' in row 32, column 2 ('b') of"),
        ("a,b,c\n" + NUMBERS + "\n1,x,2", ["--target", "a"], "To leave a column out, name it with --exclude."),
        (NUMBERS + "\n1,x,2", ["--target", "1"], "got 'x' in row 31, column 2 of"),
        ("a,b,c\n" + NUMBERS + "\n1,,2", ["--target", "a", "--missing", "error"], "got '' in row 32, column 2"),
        ("a,b,c\n" + NUMBERS + "\n1,2", ["--target", "a"], "as many columns in every row, got 2 instead of 3"),
        ("a,b,c\n" + NUMBERS + "\n1,inf,2", ["--target", "a"], "got 'inf' in row 32"),
        ("a,b,c\n" + NUMBERS + "\n1,1e400,2", ["--target", "a"], "got '1e400' in row 32"),
        ("a,b,c\n" + NUMBERS + "\n1,1e200,2", ["--target", "a"], "numbers up to 1e+100, got 1e+200 in 'b'"),
        ("a,b,c\n" + "\n".join(30 * ["1,2,3"]), ["--target", "a"], "columns that vary, but 'a' has one value"),
        ("a,b,c\n1,2,3\n4,5,6", ["--target", "a"], "must have at least 10 rows, got 2"),
        ("a,b\n" + NUMBERS, ["--target", "a"], "as many names as columns, got 2 for 3"),
        ("a\x1b[2J,b,c\n" + NUMBERS, ["--target", "a"], "It has a\N{REPLACEMENT CHARACTER}[2J, b, c."),
        ("a,b,c\n", ["--target", "a"], "has none"),
        ("", ["--target", "a"], "has none"),
        (b"a,b\n\xff\xfe,1\n", ["--target", "a"], "must be a readable CSV file"),
    ],
)
def test_bad_data_is_one_line_and_nothing_is_written(tmp_path, content, options, message):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    data.write_bytes(content.encode() if isinstance(content, str) else content)
    done = run("fit", data, *options, "--save", model)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not model.exists()


def test_names_that_nothing_can_be_saved_under(houses, tmp_path):
    before = houses.read_bytes()
    for path, message in [
        (houses, "--save must name a new file or a model"),
        (tmp_path, "which is a folder"),
        (tmp_path / "nowhere" / "model", "there is no folder"),
    ]:
        done = run("fit", houses, "--target", "price", "--inputs", "size", "--save", path)
        assert done.exit_code == 2
        assert message in done.stderr
    assert houses.read_bytes() == before
    assert run("fit", tmp_path / "no.csv", "--target", "a", "--save", tmp_path / "m").exit_code == 2


def test_models_that_cannot_predict(houses, tmp_path):
    plain = ELMRegressor("real", 3, random_state=0).fit(np.ones((5, 2)), np.arange(5.0))
    save(plain, tmp_path / "plain")
    (tmp_path / "text").write_text("no model")
    for name, message in [
        ("plain", "must be a file of `hyperelm fit`"),
        ("text", "cannot be loaded"),
        ("none", "No such file"),
    ]:
        done = run("predict", tmp_path / name, houses)
        assert done.exit_code == 2
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""


def test_predicting_from_other_columns(houses, tmp_path):
    model = tmp_path / "model"
    run("fit", houses, "--target", "price", "--inputs", "size,age", "--save", model, *FAST)
    done = run("predict", model, written(tmp_path / "x.csv", [[1, 2]], ["sizes", "age"]))
    assert done.exit_code == 2
    assert "has no column 'size'. Did you mean 'sizes'?" in done.stderr
    done = run("predict", model, houses, "--out", tmp_path / "nowhere" / "x.csv")
    assert done.exit_code == 2
    assert "--out must name a file in a folder that exists" in done.stderr
