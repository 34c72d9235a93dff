"""Files as they come: each is fitted and predicted without an edit.

The files have the form of those in statsmodels, vega_datasets and aeon (header, separators, kinds of cells), with other
values. `benchmarks/files.py` takes the real ones.
"""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest

from hyperelm import FrameClassifier, experiments, load
from hyperelm.experiments import _search as search
from runs import command as run

FAST = ("--algebra", "real", "--parameters", "60")


def fitted(tmp_path, content, *options, name="data.csv"):
    """Fit a file, and give what was said, the model, and a function that predicts."""
    data, model = tmp_path / name, tmp_path / "model"
    data.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run("fit", data, *options, "--save", model, "--force", *FAST)
    assert done.exit_code == 0, done.output
    assert not re.search(r"\b1 (rows|columns|labels|targets)\b|\.py:|None|\S  is ", done.output)

    def predict(*more, file=data):
        made = run("predict", model, file, *more)
        assert made.exit_code == 0, made.output
        header, *rows = csv.reader(io.StringIO(made.stdout))
        return header, rows, made.stderr

    return done.stdout, load(model), predict


def lines(header, rows):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def weather():
    """As seattle-weather: a date with slashes, numbers, a column of text."""
    rng, days = np.random.default_rng(0), pd.date_range("2012-01-01", periods=150)
    rain = rng.exponential(2, 150).round(1)
    kinds = np.where(rain > 2, "rain", np.where(rng.random(150) < 0.1, "fog", "sun"))
    wind = (2 + 0.5 * rain + rng.random(150)).round(1)
    rows = zip(days.strftime("%Y/%m/%d"), rain, (10 + rng.standard_normal(150)).round(1), wind, kinds)
    return lines("date,precipitation,temp_max,wind,weather", rows)


# ---------------------------------------------------------------------- the forms of real files


def test_labels_beside_dates(weather, tmp_path):
    said, model, predict = fitted(tmp_path, weather, "--target", "weather")
    assert "'weather' is taken as 3 labels: fog, rain, sun." in said
    assert "'date' is a date and becomes month and day." in said
    assert "150 rows, 5 input columns, 3 labels." in said
    assert re.search(r"Share of right labels on 30 rows held out, drawn at random:\n  this model +0\.\d", said)
    assert "logistic regression" in said
    assert "the most frequent label" in said
    assert isinstance(model, FrameClassifier)
    header, rows, _ = predict("--keep", "date", "--probabilities")
    assert header == ["date", "weather", "weather=fog", "weather=rain", "weather=sun"]
    truth = [line.split(",") for line in weather.splitlines()[1:]]
    assert [row[0] for row in rows] == [row[0] for row in truth]
    assert np.mean([row[1] == line[4] for row, line in zip(rows, truth)]) > 0.8
    shares = np.array([row[2:] for row in rows], dtype=float)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


def test_numbers_from_text_and_dates(weather, tmp_path):
    said, _, predict = fitted(tmp_path, weather, "--target", "wind")
    assert "'weather' is text and becomes one column for each of 3 levels (fog, rain, sun)." in said
    header, rows, _ = predict("--keep", "date", "--interval", "0.9")
    assert header == ["date", "wind", "wind_lower", "wind_upper"]
    ends = np.array([row[1:] for row in rows], dtype=float)
    truth = np.array([line.split(",")[3] for line in weather.splitlines()[1:]], dtype=float)
    assert (ends[:, 1] < ends[:, 0]).all()
    assert 0.8 < np.mean((ends[:, 1] <= truth) & (truth <= ends[:, 2])) < 1


def test_a_weekly_series_with_gaps(tmp_path):
    """As co2: days without separators, and targets that are missing."""
    days = pd.date_range("1958-03-29", periods=200, freq="7D").strftime("%Y%m%d")
    values = 315 + 3 * np.sin(np.arange(200) * 2 * np.pi / 52)
    rows = [(day, "" if n % 31 == 5 else f"{value:.1f}") for n, (day, value) in enumerate(zip(days, values))]
    said, _, predict = fitted(tmp_path, lines("date,co2", rows), "--target", "co2", "--series", 10)
    assert "'co2': 7 missing values are filled with the last value before them." in said
    assert "'date' is left out: a date, and rows of a series follow each other anyway." in said
    assert "6 rows whose target is missing are left out." in said
    assert "held out, the last of the series:" in said
    header, rows, _ = predict("--steps", 3)
    assert header == ["row", "co2"]
    assert [row[0] for row in rows] == ["201", "202", "203"]
    ahead = 315 + 3 * np.sin(np.arange(200, 203) * 2 * np.pi / 52)
    np.testing.assert_allclose([float(row[1]) for row in rows], ahead, atol=0.7)
    header, rows, _ = predict("--keep", "date")
    assert (header, rows[0][:2], rows[-1][:2]) == (["row", "date", "co2"], ["11", days[10]], ["201", ""])
    said, _, _ = fitted(tmp_path, (tmp_path / "data.csv").read_bytes(), "--target", "co2")
    assert "7 rows whose target is missing are left out." in said
    assert "'date' is a date and becomes year, month and day." in said


def test_names_in_quotes_and_years(tmp_path):
    """As macrodata and elnino."""
    rng = np.random.default_rng(0)
    rows = [(1950 + n, *(20 + rng.standard_normal(3)).round(3)) for n in range(61)]
    said, _, predict = fitted(tmp_path, lines('"YEAR","JAN","FEB","MAR"', rows), "--target", "MAR")
    assert "61 rows, 3 input columns, 1 target." in said
    header, rows, _ = predict("--keep", "YEAR")
    assert (header, rows[0][0], len(rows)) == (["YEAR", "MAR"], "1950", 61)


def test_an_index_and_quarters(tmp_path):
    """As Uschange."""
    rng = np.random.default_rng(0)
    rows = [(n, f"{1970 + n // 4} Q{n % 4 + 1}", *rng.standard_normal(3)) for n in range(80)]
    said, _, predict = fitted(tmp_path, lines(",Quarter,Consumption,Income,Savings", rows), "--target", "Consumption")
    assert "The first column, which counts the rows, is left out." in said
    assert "'Quarter' is a date and becomes year and month." in said
    header, rows, said = predict("--keep", "Quarter")
    assert (header, rows[1][0]) == (["Quarter", "Consumption"], "1970 Q2")
    assert "counts the rows" in said


def test_a_spreadsheet_from_germany(tmp_path):
    rng = np.random.default_rng(0)
    prices = [f"{1000 + 10 * n + rng.random():.2f}".replace(".", ",") for n in range(60)]
    rows = [f"{n};{n % 28 + 1}.3.2021;{price};{n % 9},5%" for n, price in enumerate(prices)]
    text = "\n".join(["Nr;Tag;Preis;Anteil", *rows])
    said, _, predict = fitted(tmp_path, text.encode("utf-16"), "--target", "Preis", "--exclude", "Nr")
    assert "Columns are separated by semicolons." in said
    assert "Numbers have decimal commas" in said
    assert "'Tag' is a date and becomes day." in said
    header, rows, _ = predict("--keep", "Nr")
    assert (header, len(rows)) == (["Nr", "Preis"], 60)


def test_parquet(weather, tmp_path):
    frame = pd.read_csv(io.StringIO(weather), parse_dates=["date"])
    frame.to_parquet(tmp_path / "frame.parquet")
    said, _, predict = fitted(tmp_path, (tmp_path / "frame.parquet").read_bytes(), "--target", "wind")
    assert "'date' is a date and becomes month and day." in said
    from_csv = tmp_path / "same.csv"
    from_csv.write_text(weather)
    assert predict()[1] == predict(file=from_csv)[1]


# ---------------------------------------------------------------------- what options say


def test_missing_values(tmp_path):
    rows = [(n, "" if n % 10 == 3 else n * n % 11, "" if n == 7 else n / 2) for n in range(60)]
    text = lines("a,b,y", rows)
    said, model, predict = fitted(tmp_path, text, "--target", "y")
    assert "'b': 6 missing values are filled with the mean and marked in a column of their own." in said
    assert "1 row whose target is missing is left out.\n59 rows, 3 input columns, 1 target." in said
    assert model.column_names_.tolist() == ["a", "b", "b is missing"]
    assert len(predict()[1]) == 60
    said, model, predict = fitted(tmp_path, text, "--target", "y", "--missing", "drop")
    assert "6 rows with missing values are left out.\n53 rows, 2 input columns" in said
    _, rows, remarks = predict()
    assert [n for n, row in enumerate(rows) if row == [""]] == [3, 13, 23, 33, 43, 53]
    assert "6 rows with missing values have no prediction: the model was fitted with --missing drop." in remarks
    refused = run("fit", tmp_path / "data.csv", "--target", "y", "--missing", "error", "--save", tmp_path / "new")
    assert refused.exit_code == 2
    assert "must hold numbers without gaps, got '' in row 9, column 3 ('y')" in refused.stderr
    assert "--missing mean fills such cells, --missing drop leaves out their rows." in refused.stderr


def test_unseen_levels_and_lacking_columns_are_named(weather, tmp_path):
    _, _, predict = fitted(tmp_path, weather, "--target", "wind")
    other = tmp_path / "other.csv"
    other.write_text(weather.replace("fog", "hail"))
    _, rows, remarks = predict(file=other)
    assert len(rows) == 150
    assert re.search(r"'weather' has 'hail' in \d+ rows, which the training rows did not have.", remarks)
    other.write_text("weather\nsun\n")
    done = run("predict", tmp_path / "model", other)
    assert done.exit_code == 2
    assert "has no columns 'date', 'precipitation' and 'temp_max', which the model needs." in done.stderr
    other.write_text(weather.replace(",10.", ",x10.", 1))
    done = run("predict", tmp_path / "model", other)
    assert done.exit_code == 2
    assert re.search(r"must hold numbers, got 'x10\.\d' in row \d+, column 3 \('temp_max'\)", done.stderr)


def test_what_counts_as_labels(tmp_path):
    rows = [(n % 17, n % 3, ["yes", "no"][n % 2], n % 3 == 0) for n in range(60)]
    text = lines("x,few,text,truth", rows)
    said, _, predict = fitted(tmp_path, text, "--target", "few")
    assert "'few' is taken as 3 labels: 0, 1, 2 (--regress predicts a number)." in said
    assert {row[0] for row in predict()[1]} <= {"0", "1", "2"}
    assert "1 target." in fitted(tmp_path, text, "--target", "few", "--regress")[0]
    assert "2 labels: False, True." in fitted(tmp_path, text, "--target", "truth")[0]
    assert "1 target." in fitted(tmp_path, text, "--target", "x")[0]  # 17 whole numbers are not few
    assert "17 labels" in fitted(tmp_path, text, "--target", "x", "--classify")[0]
    for options, message in [
        (["--target", "text", "--regress"], "must hold numbers, got 'yes' in row 2"),
        (["--target", "text,x"], "Labels can be predicted one by one."),
        (["--target", "x,few", "--classify"], "--classify must have one target, got 2."),
        (["--target", "x", "--classify", "--series", "2"], "--classify must be left out with --series"),
        (["--target", "x", "--exclude", "x"], "--exclude must not name columns of --target, got 'x'."),
        (["--target", "x", "--exclude", "y"], "has no column 'y'."),
        (["--target", "x", "--missing", "guess"], "--missing must be one of error, drop, mean, got 'guess'."),
        (["--target", "x", "--horizon", "2"], "--horizon must be left out without --series, got 2."),
    ]:
        done = run("fit", tmp_path / "data.csv", *options, "--save", tmp_path / "new", *FAST)
        assert done.exit_code == 2, done.output
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_columns_that_are_not_needed_may_hold_anything(tmp_path):
    rows = [(f"house {n}", n, "x" if n == 3 else n / 7, n * n) for n in range(40)]
    text = lines("name,size,broken,price", rows)
    said, _, _ = fitted(tmp_path, text, "--target", "price", "--inputs", "size")
    assert said.startswith("40 rows, 1 input column, 1 target.")
    said, _, _ = fitted(tmp_path, text, "--target", "price", "--exclude", "broken")
    assert "'name' is left out: text with 40 different values." in said
    done = run("fit", tmp_path / "data.csv", "--target", "price", "--save", tmp_path / "new")
    assert "got 'x' in row 5, column 3 ('broken')" in done.stderr
    assert "To leave a column out, name it with --exclude." in done.stderr


def test_names_with_commas(tmp_path):
    rows = [(n, n % 7, n * n) for n in range(40)]
    _, model, predict = fitted(
        tmp_path, lines('"size, m²",b,"price, €"', rows), "--target", '"price, €"', "--inputs", 'b,"size, m²"'
    )
    assert model.column_names_.tolist() == ["b", "size, m²"]
    assert predict("--keep", '"size, m²"')[0] == ["size, m²", "price, €"]


# ---------------------------------------------------------------------- series


def test_steps_feed_predictions_back(tmp_path):
    t = np.arange(120) / 5
    rows = list(zip(np.sin(t).round(6), np.cos(t).round(6)))
    _, model, predict = fitted(tmp_path, lines("s,c", rows), "--target", "s,c", "--series", 3)
    header, found, _ = predict("--steps", 4)
    window, expected = np.array(rows[-3:]), []
    for _ in range(4):
        expected.append(model.predict(window.reshape(1, -1))[0])
        window = np.vstack([window[1:], expected[-1]])
    assert header == ["row", "s", "c"]
    np.testing.assert_allclose(np.array(found, dtype=float)[:, 1:], expected, rtol=1e-12)
    header, found, remark = predict("--steps", 2, "--interval", "0.8")
    assert header == ["row", "s", "s_lower", "s_upper", "c", "c_lower", "c_upper"]
    assert found[0][2] < found[0][3] or float(found[0][2]) < float(found[0][3])
    assert found[1][2:4] == ["", ""]
    assert "Intervals are known for the first step alone." in remark


def test_other_columns_of_a_series(tmp_path):
    t = np.arange(100) / 5
    rows = zip(np.sin(t), np.cos(t), t % 3)
    text = lines("s,c,other", rows)
    _, model, _ = fitted(tmp_path, text, "--target", "s", "--series", 3)
    assert model.column_names_.tolist() == ["s", "c", "other"]
    done = run("predict", tmp_path / "model", tmp_path / "data.csv", "--steps", "2")
    assert done.exit_code == 2
    assert "which also needs 'c' and 'other', unknown beyond the end of the file." in done.stderr
    assert "--inputs s" in done.stderr
    _, model, predict = fitted(tmp_path, text, "--target", "s", "--series", 3, "--inputs", "s")
    assert model.column_names_.tolist() == ["s"]
    assert len(predict("--steps", 2)[1]) == 2
    _, model, _ = fitted(tmp_path, text, "--target", "s", "--series", 3, "--inputs", "c")
    assert model.column_names_.tolist() == ["s", "c"]  # the past of the target is always used


def test_a_horizon(tmp_path):
    """The rows are those of windows and of what comes `horizon` rows after them."""
    values = np.sin(np.arange(80) / 4)
    said, _, predict = fitted(
        tmp_path, lines("s", [(v,) for v in values]), "--target", "s", "--series", 4, "--horizon", 5
    )
    assert "72 rows, 1 input column in windows of 4, 1 target, 5 rows ahead." in said
    _, rows, _ = predict()
    assert ([rows[0][0], rows[-1][0]], len(rows)) == (["9", "85"], 77)
    found = np.array(rows, dtype=float)[:72, 1]
    assert np.abs(found - values[8:]).max() < 0.1
    done = run("predict", tmp_path / "model", tmp_path / "data.csv", "--steps", "2")
    assert "--steps must be left out for a model with --horizon" in done.stderr


# ---------------------------------------------------------------------- the other commands


def test_info_tells_of_the_columns(weather, tmp_path):
    fitted(tmp_path, weather, "--target", "wind")
    text = run("info", tmp_path / "model").output
    assert "target        wind\ncolumns       date, precipitation, temp_max, weather\n" in text
    assert "done to them  'date' is a date and becomes month and day.\n" in text
    assert re.search(r"\n +'weather' is text and becomes one column for each of 3 levels", text)
    assert re.search(r"\nerror +[\d.e-]+, the mean square for rows left out one by one \(1 is the variance", text)
    assert "packing full" in text
    assert "1 columns" not in text
    labels = [line.split("  ")[0] for line in text.splitlines() if re.match(r"[a-z]", line)]
    assert len(labels) == len(set(labels))
    fitted(tmp_path, lines("s", [(n % 7,) for n in range(60)]), "--target", "s", "--series", 2)
    assert "window        2 rows, for the next row\n" in run("info", tmp_path / "model").output


def test_models_are_not_overwritten_silently(weather, tmp_path):
    fitted(tmp_path, weather, "--target", "wind")
    before = (tmp_path / "model").read_bytes()
    done = run("fit", tmp_path / "data.csv", "--target", "wind", "--save", tmp_path / "model", *FAST)
    assert done.exit_code == 2
    assert "which exists. --force overwrites it." in done.stderr
    assert (tmp_path / "model").read_bytes() == before


def test_search_reads_the_same_files(weather, tmp_path):
    (tmp_path / "data.csv").write_text(weather)
    changes = ["task=csv", f"data={tmp_path / 'data.csv'}", "target=wind", "n_hidden=8"]
    experiment = experiments.load("search", changes=changes)
    assert "'weather' is text and becomes one column for each of 3 levels" in experiment.remark
    data = search.read(experiment.settings, 0)
    assert (data.X.shape, data.Y.shape, data.X_test.shape) == ((105, 7), (105, 1), (45, 7))


@pytest.mark.parametrize(
    "name", ["algebras", "run", "search", "report", "export", "fit", "predict", "info", "export-onnx"]
)
def test_every_command_shows_an_example(name):
    assert f"hyperelm {name}" in run(name, "--help").output.split("Example")[1]
    if name == "algebras":
        assert "R[g1,...,gn]" in run(name, "--help").output
        assert "Cl(p,q[,r])" in run(name, "--help").output
