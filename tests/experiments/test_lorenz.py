"""The Lorenz experiment does what the paper's formulas say, on its own series or on another."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import runs
from hyperelm import ELMRegressor, algebras, experiments
from hyperelm.datasets import lorenz
from hyperelm.experiments import Store
from hyperelm.experiments._definition import seed_of
from oracles import hidden, least_squares, prediction_gain, product

TINY = ["networks=2", "n_hidden=[3,4]", "few_hidden=[3]", "positions=420"]


def run(directory, *changes, seed=None):
    experiment = experiments.load("lorenz", quick=True, seed=seed, changes=[*TINY, *changes])
    experiments.run(experiment, directory, jobs=1)
    return experiment


def exported(directory, *options):
    done = runs.command("export", directory, *options)
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


# ---------------------------------------------------------------------- the paper's formulas


def runge_kutta(n, h=0.01):
    def slope(p):
        x, y, z = p
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    positions = [np.ones(3)]
    for _ in range(n - 1):
        p = positions[-1]
        k1 = slope(p)
        k2 = slope(p + h / 2 * k1)
        k3 = slope(p + h / 2 * k2)
        k4 = slope(p + h * k3)
        positions.append(p + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.array(positions)


def pairs(positions):
    X = np.array([positions[t - 2 : t + 1] for t in range(2, len(positions) - 1)])
    return X, positions[3:]


def data(n, train=300):
    """Windows and next positions for training and for the test, each coordinate in [-1, +1]."""
    p = runge_kutta(n)
    p = 2 * (p - p.min(axis=0)) / (p.max(axis=0) - p.min(axis=0)) - 1
    return *pairs(p[:train]), *pairs(p[train:])


def as_numbers(positions, d):
    """(n, T, 3) real coordinates as numbers, in the imaginary parts where there are any."""
    if d == 1:
        return positions.reshape(len(positions), -1, 1)
    return np.concatenate([np.zeros((*positions.shape[:2], 1)), positions], axis=2)


def paper_gain(algebra, weights, data):
    """The prediction gain of the network with these hidden weights, by the formulas of sections 3 and 4."""
    X, y, X_test, y_test = data
    x, t, x_test = (as_numbers(part, algebra.dim) for part in (X, y[:, None], X_test))
    M = least_squares(hidden(x, weights, algebra), t, algebra)
    predicted = product(hidden(x_test, weights, algebra), M, algebra)
    return prediction_gain(y_test, predicted[..., 0] if algebra.dim == 1 else predicted[:, 0, 1:], X_test[:, -1])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run of every model."""
    directory = tmp_path_factory.mktemp("small")
    run(directory)
    return directory


def test_exported_runs_are_the_papers(small):
    rows, known = exported(small), data(420)
    assert len(rows) == 8 * 2 * 2
    for row in rows:
        algebra, L = algebras.get(row["algebra"]), int(row["n_hidden"])
        neurons = round(20 * L / 13) if algebra.dim == 1 else L
        model = ELMRegressor(
            algebra, neurons, weight_scale=float(row["weight_scale"]), ridge=0.0, random_state=int(row["seed"])
        )
        X, y, X_test, y_test = known
        model.fit(as_numbers(X, algebra.dim), as_numbers(y[:, None], algebra.dim))
        numbers = model.predict(as_numbers(X_test, algebra.dim))
        predicted = numbers[..., 0] if algebra.dim == 1 else numbers[:, 0, 1:]
        assert prediction_gain(y_test, predicted, X_test[:, -1]) == pytest.approx(
            float(row["prediction_gain"]), abs=1e-6
        )
        if row["network"] == "0":
            expected = paper_gain(algebra, model.hidden_weights_, known)
            assert float(row["prediction_gain"]) == pytest.approx(expected, abs=1e-6)


def test_models_are_equally_large(small):
    for row in exported(small):
        L, d = int(row["n_hidden"]), algebras.get(row["algebra"]).dim
        neurons = round(20 * L / 13)
        expected = neurons * (9 + 1) + 3 * (neurons + 1) if d == 1 else d * (L * (3 + 1) + L + 1)
        assert (int(row["parameters"]), int(row["neurons"])) == (expected, neurons if d == 1 else L)


def test_columns(small):
    first, everything = exported(small)[0], exported(small, "--all")
    assert {"algebra", "n_hidden", "network", "seed", "weight_scale", "prediction_gain"} <= set(first)
    assert "part" not in first
    assert {row["part"] for row in everything} == {"main", "sensitivity", "tuned", "forecast"}
    main = [{key: row[key] for key in first} for row in everything if row["part"] == "main"]
    assert main == exported(small)


def test_exported_seeds(small):
    for row in exported(small, "--all"):
        assert int(row["seed"]) == seed_of(0, row["algebra"], int(row["n_hidden"]), int(row["network"]))


def test_another_seed_gives_other_networks(small, tmp_path):
    run(tmp_path, "models=quaternions", seed=1)
    ours = [row for row in exported(small) if row["algebra"] == "quaternions"]
    for mine, other in zip(ours, exported(tmp_path), strict=True):
        assert mine["seed"] != other["seed"]
        assert mine["prediction_gain"] != other["prediction_gain"]


def test_models_and_sizes_do_not_change_a_run(small, tmp_path):
    """A run has the same result in whatever company."""
    run(tmp_path, 'models=["klein4", "real"]', "n_hidden=[4]", "networks=1")
    whole = exported(small)
    for row in exported(tmp_path):
        assert row in whole


def test_sensitivity_changes_one_thing(small):
    with Store.open(small) as store:
        variants, rows, main = store.settings["sensitivity"], store.rows("sensitivity"), store.rows()
    gains = {(row["algebra"], row["n_hidden"], row["network"]): row["prediction_gain"] for row in main}
    assert {} in [variant["change"] for variant in variants]
    for variant in variants:
        here = [row for row in rows if row["variant"] == variant["name"]]
        equal = [row["prediction_gain"] == gains[row["algebra"], row["n_hidden"], row["network"]] for row in here]
        of_real_alone = variant["change"].keys() == {"real_weight_scale"}
        assert equal == [not variant["change"] or (of_real_alone and row["algebra"] != "real") for row in here]
        if "weight_scale" in variant["change"]:
            assert {row["weight_scale"] for row in here if row["algebra"] != "real"} == {
                variant["change"]["weight_scale"]
            }


def test_tuning_does_not_see_the_test_part(tmp_path):
    """The scales that are chosen are the same whatever comes after the training part."""
    positions = runge_kutta(420)
    chosen = []
    for name, rest in (("a", positions[300:]), ("b", np.sin(np.arange(360)).reshape(120, 3))):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, np.concatenate([positions[:300], rest]), delimiter=",")
        run(tmp_path / name, f"series={path}", "scaling=standard", 'models=["real", "quaternions"]')
        rows = exported(tmp_path / name, "--all")
        chosen.append([r["weight_scale"] for r in rows if r["part"] in ("tuned", "forecast")])
    assert chosen[0] == chosen[1]


def test_forecasts(small):
    with Store.open(small) as store:
        settings, rows = store.settings, store.rows("forecast")
        path, truth = store.array("forecast quaternions"), store.array("truth")
    assert path.shape == truth.shape
    step = settings["dt"] * settings["lyapunov"]
    assert all(0 <= row["valid_time"] <= len(truth) * step + 1e-12 for row in rows)


# ---------------------------------------------------------------------- another series


def write(path, columns=3, rows=330, header="", last=()):
    """A smooth series, with some last lines."""
    t = np.arange(rows)[:, None] / 5
    table = np.sin(t * np.sqrt(np.arange(2, columns + 2))) + np.arange(columns)
    lines = [",".join(map(repr, map(float, row))) for row in table]
    path.write_text("\n".join([*([header] if header else []), *lines, *last]) + "\n", encoding="utf-8")
    return path


def command(directory, path, *changes):
    words = [word for change in (*TINY, f"series={path}", *changes) for word in ("--set", change)]
    return runs.command("run", "lorenz", "--quick", "--jobs", "1", "--out", directory, *words)


@pytest.mark.usefixtures("no_report")
def test_header_or_none(tmp_path):
    one = ('models=["real", "quaternions"]',)
    assert command(tmp_path / "a", write(tmp_path / "a.csv"), *one).exit_code == 0
    assert command(tmp_path / "b", write(tmp_path / "b.csv", header="x,y,z"), *one).exit_code == 0
    rows = exported(tmp_path / "a", "--all")
    assert rows == exported(tmp_path / "b", "--all")
    assert all(np.isfinite(float(row["prediction_gain"])) for row in exported(tmp_path / "a"))


@pytest.mark.usefixtures("no_report")
def test_the_lorenz_system_from_a_file_is_the_same(small, tmp_path):
    path = tmp_path / "lorenz.csv"
    path.write_text("\n".join(",".join(map(repr, map(float, row))) for row in lorenz(420)))
    assert command(tmp_path / "out", path).exit_code == 0
    assert exported(tmp_path / "out") == exported(small)


def test_one_column(tmp_path):
    done = command(tmp_path / "out", write(tmp_path / "a.csv", 1), 'models=["real", "complex"]')
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(("columns", "models"), [(2, "real"), (7, '["real", "octonions"]')])
@pytest.mark.usefixtures("no_report")
def test_other_numbers_of_columns(tmp_path, columns, models):
    done = command(tmp_path / "out", write(tmp_path / "a.csv", columns), f"models={models}")
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("no_report")
def test_a_series_that_changes_is_refused(tmp_path):
    path = write(tmp_path / "a.csv")
    assert command(tmp_path / "out", path, "models=real").exit_code == 0
    before = exported(tmp_path / "out", "--all")
    text = path.read_text()
    path.write_text(text.replace("1.0", "1.5", 1))
    done = command(tmp_path / "out", path, "models=real")
    assert done.exit_code == 2
    assert "other settings, digest" in done.stderr
    assert exported(tmp_path / "out", "--all") == before
    path.write_text(text)
    assert command(tmp_path / "out", path, "models=real").exit_code == 0


WRONG = {
    "text": ({"last": ["1.0,two,3.0"]}, "got 'two' in row 331, column 2"),
    "text below a header": ({"header": "x,y,z", "last": ["1.0,2.0,three"]}, "got 'three' in row 332, column 3"),
    "gap": ({"last": ["1.0,,3.0"]}, "got '' in row 331, column 2"),
    "nan": ({"last": ["1.0,2.0,nan"]}, "got 'nan' in row 331, column 3"),
    "infinity": ({"last": ["inf,2.0,3.0"]}, "got 'inf' in row 331, column 1"),
    "longer row": ({"last": ["1.0,2.0,3.0,4.0"]}, "got 4 instead of 3 in row 331"),
    "shorter row": ({"last": ["1.0,2.0"]}, "got 2 instead of 3 in row 331"),
    "header that is partly numbers": ({"header": "x,1.0,z"}, "got 'x' in row 1, column 1"),
    "too few rows": ({"rows": 304}, "at least 305 positions"),
    "columns for other models": ({"columns": 2}, "--set models must be real or have 3 components for 2 coordinates"),
    "another separator": ({"last": ["1.0;2.0;3.0"]}, "got 1 instead of 3 in row 331"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_series(tmp_path, options, message):
    done = command(tmp_path / "out", write(tmp_path / "a.csv", **options))
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has none"),
        (b"x,y,z\n", "has none"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe" * 50, "a readable CSV file"),
        (b"1,2,3\n\x00,2,3\n", "--set series must"),
    ],
)
def test_a_file_that_is_no_series(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    done = command(tmp_path / "out", tmp_path / "a.csv")
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_file(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        done = command(tmp_path / "out", path)
        assert done.exit_code == 2
        assert f"--set series must be 'lorenz' or a readable CSV file, got '{path}'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
