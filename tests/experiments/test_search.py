"""The search over families of algebras: what it computes, what it finds, and what nobody can find."""

from __future__ import annotations

import csv
import html
import io
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_sample_images
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from helpers import needs_fork
from hyperelm import Algebra, ELMRegressor, algebras, experiments, linalg
from hyperelm._network import layers
from hyperelm.datasets import lorenz, sliding_windows
from hyperelm.experiments import Store
from hyperelm.experiments import _search as search
from hyperelm.experiments._definition import Unit, load
from hyperelm.experiments._networks import Networks
from hyperelm.experiments._ranking import Means
from hyperelm.experiments._search_report import SearchResults, conjugated
from hyperelm.families import classes, known_names, members
from hyperelm.metrics import prediction_gain
from runs import command, forked, killed_after_some_rows, rows_so_far

SIGNS = members("signs")
TINY = ["--family", "clifford", "--dim", "2", "--set", "networks=3", "--set", "n_hidden=4", "--set", "few_networks=2"]


def scores(*changes, names=None, networks=1):
    """The scores of candidates, without a store."""
    settings = load("search", changes=[f"networks={networks}", *changes]).settings
    wanted = [u for u in search.units(settings) if u.part == "main" and (names is None or u.algebra in names)]
    return {u.algebra: [row["score"] for row in search.execute(u, settings).rows] for u in wanted}


# ---------------------------------------------------------------------- what is computed


@pytest.fixture(scope="module")
def positions():
    path = lorenz(4000)
    low, high = path.min(axis=0), path.max(axis=0)
    return 2 * (path - low) / (high - low) - 1


@pytest.mark.parametrize("name", ["-+-/--+/+--", "+-+/+--/-++"])
def test_a_run_is_an_elm(positions, name, monkeypatch):
    """A candidate on the Lorenz task is the regressor with the seed of the row, and biases of the scale of weights."""
    monkeypatch.setattr(layers, "AUTO_BIAS", layers.AUTO_SCALE)
    settings = load("search", changes=["n_hidden=6"]).settings
    rows = search.execute(Unit("main", "", name, 6, 0, 2), settings).rows
    X, y = sliding_windows(positions[:300], 3)
    X_test, y_test = sliding_windows(positions[300:], 3)
    for row in rows:
        model = ELMRegressor(SIGNS[name], 6, ridge=0.0, packing="imaginary", random_state=row["seed"])
        predicted = model.fit(X.reshape(-1, 9), y).predict(X_test.reshape(-1, 9))
        assert row["score"] == pytest.approx(prediction_gain(y_test, predicted, signal=X_test[:, -1]), abs=1e-6)
        assert row["parameters"] == model.n_parameters_


def test_candidates_have_the_same_random_numbers():
    settings = load("search", changes=["n_hidden=3"]).settings
    found = [
        [row["seed"] for row in search.execute(Unit("main", "", name, 3, 0, 3), settings).rows]
        for name in list(SIGNS)[:3]
    ]
    assert found[0] == found[1] == found[2]
    assert len({*found[0]}) == 3


def test_the_reference_has_as_many_parameters():
    settings = load("search", changes=["n_hidden=20"]).settings
    real = search.execute(Unit("reference", "", "real", 20, 0, 1), settings).rows[0]
    other = search.execute(Unit("main", "", "+++/+++/+++", 20, 0, 1), settings).rows[0]
    assert other["parameters"] == 4 * (20 * 4 + 21)  # 3 positions and a bias, 20 numbers and a bias
    assert real["parameters"] == real["neurons"] * 10 + 3 * (real["neurons"] + 1)
    assert abs(real["parameters"] - other["parameters"]) <= 6


def test_units():
    settings = load("search").settings
    units = search.units(settings)
    assert sum(unit.part == "main" for unit in units) == 512
    assert {unit.variant for unit in units if unit.part == "scale"} == {"0.1", "2.0"}
    assert (settings["networks"], settings["few_networks"]) == (60, 10)
    linear = search.units(load("search", changes=["task=hidden"]).settings)
    assert {unit.part for unit in linear} == {"main", "reference", "learned"}
    assert [unit.algebra for unit in units if unit.part == "learned"] == ["+++/+++/+++"]  # the Klein four-group


def test_patches_of_photographs():
    data = search.read(load("search", changes=["task=images", "data=sample"]).settings, 0)
    assert data.X.shape == (2000, 192)
    assert data.X_test.shape == (1000, 192)
    assert np.array_equal(data.X, data.Y)
    assert -1 <= data.X.min() < data.X.max() <= 1
    # Some pixel of the photographs has the first colour.
    photographs = np.concatenate([image.reshape(-1, 3) for image in load_sample_images().images])
    assert np.any(np.all(photographs == np.rint((data.X[0, :3] + 1) * 127.5), axis=1))
    other = data.X_test - 2 / 255 * np.sign(data.X_test)  # one step of 255 in every value
    assert data.score(other) == pytest.approx(10 * np.log10(255**2))


def test_the_gain_over_the_mean():
    truth = np.array([[1.0], [3.0], [5.0]])
    gain = search.gain(truth, np.array([3.0]))
    assert gain(truth + 0.1) == pytest.approx(10 * np.log10(8 / 0.03))
    assert gain(np.full((3, 1), 3.0)) == pytest.approx(0)
    assert 300 < gain(truth) < 320  # rounding is the least error


# ---------------------------------------------------------------------- a hidden algebra


def test_the_hidden_algebra_is_found():
    """Y = XM in R[-1,+1] with 1 % of noise: first of the 512 tables, and so is its class."""
    found = Means(scores("task=hidden"))
    assert known_names(SIGNS[found.order[0]]) == ["R[-1,+1]"]
    assert found.value(found.order[0]) > found.value(found.order[1]) + 20
    by_class = {c.number: np.mean([found.value(name) for name in c.members]) for c in classes(SIGNS)}
    assert "-+-/-+-/+++" in classes(SIGNS)[max(by_class, key=by_class.get) - 1].members
    assert len(found.same) == 512  # tables are different models on numbers with all components


@pytest.mark.parametrize(("family", "hidden", "name"), [
    ("cayley-dickson", "R[-1,+1]", "R[-1,+1]"),
    ("clifford", "Cl(0,1,1)", "Cl(0,1,1)"),
])  # fmt: skip
def test_it_is_found_in_other_families(family, hidden, name):
    found = Means(scores("task=hidden", f"family={family}", f"hidden={hidden}", networks=3))
    assert found.order[0] == name


def test_the_least_squares_of_a_candidate():
    """Against NumPy on the matrix of the linear map M -> XM, column by column."""
    settings = load("search", changes=["task=hidden", "networks=1"]).settings
    data = search.read(settings, 0)
    table = SIGNS["+-+/--+/+-+"].table

    def images(X):
        numbers = X.reshape(len(X), 3, 4)
        return np.einsum("mfi,ijk->mkfj", numbers, table).reshape(4 * len(X), 12)

    M = np.linalg.lstsq(images(data.X), data.Y.ravel(), rcond=None)[0]
    expected = data.score((images(data.X_test) @ M).reshape(-1, 4))
    assert scores("task=hidden", names=["+-+/--+/+-+"])["+-+/--+/+-+"][0] == pytest.approx(expected)


def test_tables_that_are_one_model_on_imaginary_numbers():
    """Without real parts, XM stays among the same maps if a column of the table changes its sign: 64 groups of 8.

    The maps x -> xM are spanned by those with M a unit, and for M = j and imaginary x such a map is column j.
    """
    found = Means(scores("task=hidden", "packing=imaginary"))

    def spanned(name):
        rows = np.array([[1 if sign == "+" else -1 for sign in row] for row in name.split("/")])
        return tuple((rows * rows[0]).ravel())

    expected = {}
    for name in SIGNS:
        expected.setdefault(spanned(name), set()).add(name)
    assert sorted(map(len, expected.values())) == 64 * [8]
    assert {frozenset(group) for group in found.same} == {frozenset(group) for group in expected.values()}
    assert "-+-/-+-/+++" in found.same[0]


# ---------------------------------------------------------------------- what is invariant


def signed_permutation(data):
    P = np.zeros((4, 4))
    P[0, 0] = 1
    order = data.draw(st.permutations([1, 2, 3]))
    P[[1, 2, 3], order] = data.draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=3, max_size=3))
    return P


def residuals(algebra, X, Y, weights):
    networks = Networks(algebra, weights).fit(X, Y)
    return [float(np.linalg.norm(Y - made)) for made in networks.predict(X)]


def problem(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((40, 2, 4)), rng.standard_normal((40, 1, 4))
    X[..., 0] = Y[..., 0] = 0
    return X, Y, rng.standard_normal((2, 3, 4, 4))


@given(st.data(), st.sampled_from(list(SIGNS)))
def test_renaming_units_and_channels_changes_nothing(data, name):
    """The table of A in units P, on data PX and PY with weights PW, is A on X and Y with W."""
    P, (X, Y, W) = signed_permutation(data), problem(1)
    table = np.einsum("ia,jb,kc,abc->ijk", P, P, P, SIGNS[name].table)
    renamed = residuals(Algebra(table), X @ P.T, Y @ P.T, W @ P.T)
    np.testing.assert_allclose(renamed, residuals(SIGNS[name], X, Y, W), rtol=1e-6)


@given(st.sampled_from(list(SIGNS)))
def test_conjugate_tables_are_equal_on_imaginary_data(name):
    """x ∘ y = (x* y*)* with weights W and bias b is A with the weights -W* and the bias b*, which are as likely."""
    X, Y, W = problem(2)
    other = W * [1, -1, -1, -1]
    other[:, :-1] *= -1
    expected = residuals(SIGNS[name], X, Y, other)
    np.testing.assert_allclose(residuals(conjugated(SIGNS[name]), X, Y, W), expected, rtol=1e-6)


def test_tables_of_one_class_are_different_models_on_the_same_data():
    X, Y, W = problem(3)
    split = [algebras.get(name) for name in ("R[-1,+1]", "R[+1,-1]", "R[+1,+1]")]
    assert len({round(residuals(algebra, X, Y, W)[0], 6) for algebra in split}) == 3


# ---------------------------------------------------------------------- a file


@pytest.fixture
def table(tmp_path):
    """Three columns that follow from six others by a product of quaternions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2, 4))
    X[..., 0] = 0
    Y = linalg.matmul(X, rng.standard_normal((2, 1, 4)), algebras.get("quaternions"))[:, 0, 1:]
    path = tmp_path / "a table.csv"
    columns = np.concatenate([Y[:, :1], X[..., 1:].reshape(150, 6), Y[:, 1:]], axis=1)
    np.savetxt(path, columns, delimiter=",", header="u,a,b,c,d,e,f,v,w", comments="")
    return path


def test_columns_of_a_file(table):
    settings = load("search", changes=["task=csv", f"data={table}", "target=v,u"]).settings
    data = search.read(settings, 0)
    assert (data.X.shape, data.Y.shape, data.X_test.shape) == ((105, 7), (105, 2), (45, 7))
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.Y.std(axis=0), 1)
    # The rows are those of the file, in a random order: v and u, and the others as they stand there.
    values = np.loadtxt(table, delimiter=",", skiprows=1)[:, [7, 0, 1, 2, 3, 4, 5, 6, 8]]
    rows = np.random.default_rng(0).permutation(150)[45:]
    expected = (values[rows] - values[rows].mean(axis=0)) / values[rows].std(axis=0)
    np.testing.assert_allclose(np.concatenate([data.Y, data.X], axis=1), expected)


@pytest.mark.usefixtures("no_report")
def test_search_of_a_file(table, tmp_path):
    done = command(
        "search", "--data", table, "--target", "u,v,w", *TINY[2:], "--family", "clifford", "--dim", "4", "--out",
        tmp_path / "out", "--jobs", "1",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    first, second, *_ = done.stdout.splitlines()
    assert first == "Gain over the mean on held-out rows, and the places that chance leaves open:"
    assert second.startswith("1. ")
    with Store.open(tmp_path / "out") as store:
        assert store.settings["task"] == "csv"
        assert len(store.rows()) == 3 * 6


@pytest.mark.usefixtures("no_report")
def test_search_of_noise_tells_nothing_apart(tmp_path):
    data = tmp_path / "noise.csv"
    np.savetxt(data, np.random.default_rng(0).standard_normal((60, 4)), delimiter=",")
    words = ["--family", "clifford", "--dim", "2", *TINY[2:], "--jobs", "1", "--out", tmp_path / "out"]
    done = command("search", "--data", data, "--target", "1,2", *words)
    assert done.exit_code == 0, done.output
    assert "Chance alone may make this order: no algebra is told apart as better than another." in done.stdout
    assert "\n- the mean of the targets, 2 parameters: 0.0 dB; " in done.stdout
    assert "\nNo table does better than ridge regression. Use what is simpler.\n" in done.stdout


@pytest.fixture
def linear(tmp_path):
    """Few rows whose targets are sums of columns with much noise, which networks without a ridge learn by heart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    Y = X @ rng.standard_normal((4, 3)) + 2 * rng.standard_normal((50, 3))
    np.savetxt(tmp_path / "linear.csv", np.hstack([X, Y]), delimiter=",", header="a,b,c,d,x,y,z", comments="")
    return tmp_path / "linear.csv"


def test_baselines_of_a_file(linear):
    settings = load("search", changes=["task=csv", f"data={linear}", "target=x,y,z", "n_hidden=8"]).settings
    found = {u.algebra: search.execute(u, settings).rows for u in search.units(settings) if u.part == "baseline"}
    assert found["the mean of the targets"] == [{"network": 0, "parameters": 3, "score": 0.0}]
    values = np.loadtxt(linear, delimiter=",", skiprows=1)
    rows = np.random.default_rng(0).permutation(50)
    test, train = rows[:15], rows[15:]
    scaler = StandardScaler().fit(values[train])
    train, test = scaler.transform(values[train]), scaler.transform(values[test])
    model = RidgeCV(np.logspace(-6, 6, 25)).fit(train[:, :4], train[:, 4:])
    gain = 10 * np.log10(np.sum(test[:, 4:] ** 2) / np.sum((model.predict(test[:, :4]) - test[:, 4:]) ** 2))
    ((row,), parameters) = found["ridge regression"], 3 * 5
    assert row["score"] == pytest.approx(gain)
    assert row["parameters"] == parameters


def test_a_ridge_makes_networks_as_good_as_their_baselines(linear):
    changes = ["task=csv", f"data={linear}", "target=x,y,z", "n_hidden=8", "family=clifford"]
    with_ridge, without = (
        np.mean([*scores(*changes, f"ridge={ridge}", networks=10).values()]) for ridge in ("loo", "none")
    )
    settings = load("search", changes=changes).settings
    assert settings["ridge"] == "loo"
    _, best = search.baseline("ridge regression", settings)
    assert best - 1.5 < with_ridge < best
    assert without < with_ridge - 1


def test_what_loses_to_its_baselines_is_told(linear, tmp_path):
    words = ["--set", "networks=3", "--set", "few_networks=1", "--set", "n_hidden=8", "--family", "clifford"]
    done = command("search", "--data", linear, "--target", "x,y,z", *words, "--jobs", "1", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert re.search(
        r"- real networks, \d+ parameters: -?\d+\.\d dB; \d of 6 tables are better by 1 % or more\n", done.stdout
    )
    assert re.search(
        r"- ridge regression, 15 parameters: \d\.\d dB; 0 of 6 tables are better by 1 % or more\n", done.stdout
    )
    assert "\nNo table does better than ridge regression. Use what is simpler.\n" in done.stdout
    text = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "What to compare it with" in text
    assert text.count("No table does better than ridge regression. Use what is simpler.") == 2
    assert "Each network takes the ridge with the least leave-one-out error" in text


def test_a_ridge_by_task():
    assert load("search").settings["ridge"] == "none"
    assert load("search", changes=["ridge=loo"]).settings["ridge"] == "loo"
    for changes in (["ridge=gcv"], ["task=hidden", "ridge=loo"]):
        with pytest.raises(ValueError, match="--set ridge must be"):
            load("search", changes=changes)


# ---------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a search leaves, and what it says."""
    directory = tmp_path_factory.mktemp("whole") / "out"
    return directory, command("search", *TINY, "--jobs", "1", "--out", directory)


def test_what_it_says(whole):
    directory, done = whole
    assert done.exit_code == 0, done.output
    *lines, last = done.stdout.splitlines()
    places = lines[1:4]
    assert last == f"Report: {directory / 'report.html'}"
    with Store.open(directory) as store:
        best = SearchResults(store).tables.order
    assert [line.partition(".")[0] for line in places] == ["1", "2", "3"]
    assert [re.match(r"\d\. (Cl\([\d,]+\))", line)[1] for line in places] == best
    assert re.search(r"dB, (place \d|places \d to \d of 3)$", places[0])


@pytest.mark.usefixtures("no_report")
def test_run_search_is_the_same(whole, tmp_path):
    changes = ["family=clifford", "dim=2", "networks=3", "n_hidden=4", "few_networks=2"]
    words = [word for change in changes for word in ("--set", change)]
    assert command("run", "search", *words, "--jobs", "2", "--out", tmp_path).exit_code == 0
    assert command("export", tmp_path, "--all").stdout == command("export", whole[0], "--all").stdout


def test_export(whole):
    rows = list(csv.DictReader(io.StringIO(command("export", whole[0]).stdout)))
    assert len(rows) == 9
    assert {row["algebra"] for row in rows} == {"Cl(1,0)", "Cl(0,1)", "Cl(0,0,1)"}
    assert all(float(row["score"]) for row in rows)


@needs_fork
@pytest.mark.usefixtures("no_report")
def test_killed_and_resumed(tmp_path):
    """`kill -9` amid the work, and the same command again: the results of a search that nothing interrupts."""
    words = ["search", "--family", "cayley-dickson", "--set", "networks=12", "--set", "few_networks=1", "--jobs", "1"]
    words += ["--set", "n_hidden=8", "--set", "scales=[]"]
    directory = tmp_path / "killed"
    killed_after_some_rows(forked(*words, "--out", directory), directory)
    assert 0 < len(rows_so_far(directory)) < 11 * 12
    assert command(*words, "--out", directory).exit_code == 0
    assert command(*words, "--out", tmp_path / "whole").exit_code == 0
    exported = [command("export", path, "--all").stdout for path in (directory, tmp_path / "whole")]
    assert len(exported[0].splitlines()) == 1 + 11 * 12
    assert exported[0] == exported[1]


WRONG = {
    "unknown task": (["--task", "mnist"], "--task must be one of lorenz, images, hidden, csv, got 'mnist'"),
    "unknown family": (["--family", "lie"], "--family must be one of signs, cayley-dickson, clifford, got 'lie'"),
    "signs of another dimension": (["--dim", 8], "--dim must be 4 for the family 'signs', got 8"),
    "no such dimension": (["--family", "clifford", "--dim", 5], "--dim must be 2, 4 or 8"),
    "target of a built-in task": (["--task", "lorenz", "--target", "x"], "--target must be left out"),
    "data of a task without": (["--data", "x.csv"], "--data must be left out for the task 'lorenz'"),
    "no file": (["--target", "x"], "--data must name a CSV file"),
    "file that is not there": (["--target", "x", "--data", "none.csv"], "--data must be a readable CSV file"),
    "column that is not there": (["--target", "z", "--data", "{csv}"], "has no column 'z'"),
    "column given twice": (["--target", "x,x", "--data", "{csv}"], "--target must be different names of columns"),
    "all columns": (["--target", "x,y", "--data", "{csv}"], "and not all of them"),
    "constant column": (["--target", "y", "--data", "{csv}"], "--target must name columns that vary"),
    "no column": (["--target", "", "--data", "{csv}"], "--target must be different names of columns"),
    "few rows": (["--target", "x", "--data", "{csv}"], "--set n_hidden=1"),
    "folder without images": (["--task", "images", "--data", "{dir}"], "--data must be a folder with data_batch_1"),
    "unknown hidden algebra": (["--task", "hidden", "--set", "hidden=quaternoins"], "--set hidden must be"),
    "hidden algebra of another dimension": (["--task", "hidden", "--set", "hidden=octonions"], "with 8"),
    "noise below zero": (["--task", "hidden", "--set", "noise=-1"], "--set noise must be at least 0, got -1.0"),
    "no packing": (["--set", "packing=real"], "--set packing must be one of full, imaginary"),
    "no neuron": (["--set", "n_hidden=0"], "--set n_hidden must be at least 1, got 0"),
    "networks below zero": (["--set", "networks=-1"], "--set networks must be at least 0, got -1"),
    "no weight scale": (["--set", "scales=[0.0]"], "--set scales must be finite and > 0"),
    "no process": (["--jobs", 0], "--jobs must be -1 or at least 1, got 0"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_options(tmp_path, words, message):
    (tmp_path / "x.csv").write_text("x,y\n1,1\n2,1\n3,1\n", encoding="utf-8")
    words = [str(word).format(csv=tmp_path / "x.csv", dir=tmp_path) for word in words]
    done = command("search", *words, "--out", tmp_path / "out")
    assert (done.exit_code, len(done.stderr.splitlines()), done.stdout) == (2, 1, ""), done.output
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_results_of_another_search_are_refused(whole):
    before = (whole[0] / "results.sqlite").read_bytes()
    done = command("search", *TINY, "--seed", "1", "--out", whole[0])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "--out must be another directory" in done.stderr
    assert (whole[0] / "results.sqlite").read_bytes() == before


# ---------------------------------------------------------------------- the report


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    """The report of a search over all sign tables, on a few rows."""
    file = tmp_path_factory.mktemp("data") / "rows.csv"
    np.savetxt(
        file, np.random.default_rng(0).standard_normal((30, 6)), delimiter=",", header="a,b,c,d,e,f", comments=""
    )
    directory = tmp_path_factory.mktemp("signs")
    changes = ["networks=2", "few_networks=1", "n_hidden=2", "scales=[2.0]", "ridge=none", "task=csv", "target=d,e,f"]
    experiments.run(load("search", changes=[*changes, f"data={file}"]), directory, jobs=1)
    return experiments.write_report(directory)


def text_of(page):
    words = re.sub(r"<style>.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", words))


def test_what_the_report_says(signs):
    text = text_of(signs)
    assert "512 tables of dimension 4 (sign variants of the Klein table)" in text
    assert "They fall into 60 classes" in text
    assert "of 256 such pairs" in text
    assert "A real network with" in text
    assert "The paper's claims" not in text
    with Store.open(signs.parent) as store:
        results = SearchResults(store)
    assert f"Best table: {results.label(results.tables.order[0])}" in text
    for name in ("quaternions", "tessarines", "klein4", "paper-Cl(1,1)"):
        assert name in text


def test_the_report_of_a_hidden_algebra(tmp_path):
    changes = ["task=hidden", "packing=imaginary", "family=cayley-dickson", "networks=8"]
    experiments.run(load("search", changes=changes), tmp_path, jobs=1)
    text = text_of(experiments.write_report(tmp_path))
    assert "data made in R[-1,+1]" in text
    assert "Best table: R[-1,+1], " in text
    assert "beyond chance" in text
    assert "Ordinary least squares with 36 parameters" in text
    assert "A check:" not in text
    assert "Columns fill the imaginary parts" in text


def test_equal_models_are_not_left_to_chance(tmp_path):
    """x₁i(m₀ + m₁i) = x₁m₁i² + x₁m₀i: with i² = 1 and with i² = -1 these are the same maps, with i² = 0 others."""
    changes = ["task=hidden", "packing=imaginary", "family=clifford", "dim=2", "hidden=Cl(0,1)", "networks=4"]
    experiments.run(load("search", changes=changes), tmp_path, jobs=1)
    with Store.open(tmp_path) as store:
        assert SearchResults(store).tables.same == [["Cl(0,1)", "Cl(1,0)"], ["Cl(0,0,1)"]]
    text = text_of(experiments.write_report(tmp_path))
    assert "the same model as Cl(1,0)" in text
    assert "chance may decide between it and" not in text
    assert experiments.outcome(tmp_path)[1].endswith("the same model as 1 other")


@pytest.mark.parametrize("width", [400, 1200])
def test_in_a_browser(signs, open_page, width):
    seen = open_page(signs, width)
    assert seen.faults == []
    assert len(seen.images) == 3
    assert seen.width <= width


def test_the_share_of_the_variance_between_classes(whole, monkeypatch):
    """Against the F statistic of SciPy."""
    with Store.open(whole[0]) as store:
        results = SearchResults(store)
    rng = np.random.default_rng(1)
    groups = [rng.standard_normal(n) + level for n, level in ((4, 0), (7, 1), (3, -2))]
    names = [[f"{n}/{m}" for m in range(len(group))] for n, group in enumerate(groups)]
    monkeypatch.setattr(results, "classes", [SimpleNamespace(members=members) for members in names])
    results.means = {name: value for members, group in zip(names, groups) for name, value in zip(members, group)}
    F, between, within = stats.f_oneway(*groups).statistic, 2, 14 - 3
    assert results.share_between_classes == pytest.approx(F * between / (F * between + within))
    results.means = dict.fromkeys(results.means, 1.0)
    assert results.share_between_classes == 0


def test_names_of_columns_are_escaped(tmp_path):
    hostile = "<script>alert(1)</script>"
    values = np.random.default_rng(0).standard_normal((60, 3))
    np.savetxt(tmp_path / "x.csv", values, delimiter=",", header=f"a,b,{hostile}", comments="")
    words = ["search", "--data", tmp_path / "x.csv", "--target", hostile, *TINY, "--jobs", "1", "--out"]
    assert command(*words, tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def repeated(directory):
    """The settings of the command that a report gives."""
    page = (directory / "report.html").read_text(encoding="utf-8")
    words = shlex.split(html.unescape(re.search("<pre>(.*?)</pre>", page, re.DOTALL)[1]))
    assert words[:3] == ["hyperelm", "run", "search"]
    return load("search", changes=[word for word in words[3:] if word != "--set"]).settings


def test_its_command_gives_the_same_settings(whole):
    with Store.open(whole[0]) as store:
        assert repeated(whole[0]) == store.settings


def test_columns_without_names_have_numbers(tmp_path):
    np.savetxt(tmp_path / "x.csv", np.random.default_rng(0).standard_normal((60, 3)), delimiter=",")
    words = ["search", "--data", tmp_path / "x.csv", "--target", "3", *TINY, "--jobs", "1", "--out", tmp_path / "out"]
    done = command(*words)
    assert done.exit_code == 0, done.output
    with Store.open(tmp_path / "out") as store:
        assert store.settings["target"] == "3"
        assert repeated(tmp_path / "out") == store.settings  # a text that looks like a number stays a text


# ---------------------------------------------------------------------- a learned table beside the family


def test_a_learned_table_of_linear_data():
    settings = load("search", changes=["task=hidden", "noise=0"]).settings
    (unit,) = (unit for unit in search.units(settings) if unit.part == "learned")
    row = search.execute(replace(unit, count=1), settings).rows[0]
    assert row["parameters"] == 12 + 64
    assert row["score"] > 200  # without noise the table of the data is found


def test_a_learned_readout_has_the_random_numbers_of_all():
    changes = ["task=images", "data=sample", "networks=1", "few_networks=1"]
    settings = load("search", changes=changes).settings
    (unit,) = (unit for unit in search.units(settings) if unit.part == "learned")
    row = search.execute(unit, settings).rows[0]
    own = search.execute(replace(unit, part="main"), settings).rows[0]
    assert (row["seed"], row["parameters"]) == (own["seed"], own["parameters"] + 64)
    assert row["score"] > own["score"]
