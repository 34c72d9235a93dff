"""The report says what the results say, from the store alone, in one file that any browser shows."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import makes_links, needs_links
from hyperelm import experiments
from hyperelm.datasets import lorenz
from hyperelm.experiments import Store, StoreError
from hyperelm.experiments import _report as report
from hyperelm.experiments import _store as store_module
from hyperelm.experiments._definition import Experiment, Result, Row

TINY = ["networks=2", "n_hidden=[3,4]", "few_hidden=[3]", "positions=700"]
FIGURES = ["share-of-wins", "share-of-wins-by-size", "gain-by-parameters", "forecast", "attractor"]


def run(directory: Path, *changes: str) -> Path:
    """The results of a tiny run, with their report."""
    experiments.run(experiments.load("lorenz", quick=True, changes=[*TINY, *changes]), directory, jobs=1)
    return experiments.write_report(directory)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("lorenz"))


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found[-1:] and self.found[-1][0] != "style":
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    @property
    def verdicts(self) -> list[str]:
        return re.findall(r'class="verdict [a-z]+">([^<]*)<', self.source)

    @property
    def command(self) -> list[str]:
        return shlex.split(html.unescape(re.findall(r"<pre>(.*?)</pre>", self.source, re.DOTALL)[0]))


# ---------------------------------------------------------------------- the file


def test_every_figure_is_there_as_svg_and_png(page):
    for name in FIGURES:
        svg, png = (page.parent / "figures" / f"{name}.{kind}" for kind in ("svg", "png"))
        assert svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")
        assert png.read_bytes().startswith(b"\x89PNG")


def test_it_refers_to_nothing_outside(page):
    elements = Elements(page)
    addresses = [
        value for _, found in elements.found for key, value in found.items() if key in ("src", "href", "srcset")
    ]
    assert len(addresses) == 1 + len(FIGURES)
    assert all(value.startswith("data:") for value in addresses)
    assert not re.search(r"@import|url\(", page.read_text(encoding="utf-8"))
    assert not elements.all("script")


def test_every_image_is_described(page):
    images = Elements(page).all("img")
    assert len(images) == len(FIGURES)
    assert all(len(image["alt"]) > 40 for image in images)


LINKED = ("report.html", "figures/forecast.svg", "figures/forecast.png")


@pytest.fixture(scope="module")
def again(page: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The report of the same results in another folder, where links to another file stood, and that file."""
    folder = tmp_path_factory.mktemp("again")
    results, mine = folder / "results", folder / "mine"
    shutil.copytree(page.parent, results)
    mine.write_text("mine")
    if makes_links():
        for name in LINKED:
            (results / name).unlink()
            (results / name).symlink_to(mine)
    return experiments.write_report(results), mine


def test_twice_gives_the_same_bytes(page, again):
    written, _ = again
    for path in (page, *sorted((page.parent / "figures").iterdir())):
        assert (written.parent / path.relative_to(page.parent)).read_bytes() == path.read_bytes(), path.name
    assert len(list((written.parent / "figures").iterdir())) == 2 * len(FIGURES)


@needs_links
def test_links_are_replaced_and_not_followed(again):
    written, mine = again
    assert mine.read_text() == "mine"
    assert not any((written.parent / name).is_symlink() for name in LINKED)


def rewrite(source: Path, directory: Path, change: Callable[[str], str], name: str = "lorenz") -> None:
    """The same results with texts changed, as somebody else may have written them."""
    with Store.open(source) as store:
        settings = json.loads(change(json.dumps(store.settings)))
        rows: list[Row] = json.loads(change(json.dumps(store.rows(None))))
        keys = ["truth", "positions", "predictions", *(f"forecast {model}" for model in store.settings["models"])]
        arrays = {json.loads(change(json.dumps(key))): store.array(key) for key in keys}
    units = experiments.load("lorenz").module.units(settings)
    with Store.running(directory, Experiment(name, settings, {})) as store:
        store.begin_session()
        for n, unit in enumerate(units):
            about = (unit.part, unit.variant, unit.algebra, unit.n_hidden)
            mine = [
                row for row in rows if tuple(row[key] for key in ("part", "variant", "algebra", "n_hidden")) == about
            ]
            store.add(unit, Result(mine, arrays if n == 0 else {}))


# An element, ends of attributes in either quotes, a character reference, and mathematics that Matplotlib cannot read.
HOSTILE = "<b>' on='\" on=\"&lt;$\\frac$"


def test_texts_of_the_store_are_escaped(page, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module.platform, "platform", lambda: f"machine {HOSTILE}")
    quoted = json.dumps(HOSTILE)[1:-1]

    def change(text: str) -> str:
        return (
            text.replace("tessarines", f"tess {quoted}")
            .replace("step 0.02", f"step {quoted}")
            .replace('"each"', f'"each {quoted}"')
        )

    rewrite(page.parent, tmp_path / "hostile", change)
    elements = Elements(experiments.write_report(tmp_path / "hostile"))
    for text in ("tess", "step", "each", "machine"):
        assert f"{text} {HOSTILE}" in elements.text.replace("\\\\", "\\").replace('\\"', '"')
    assert {key for _, found in elements.found for key in found if key.startswith("on")} == set()
    assert not elements.all("b")


# ---------------------------------------------------------------------- what cannot be reported


@pytest.mark.parametrize("name", ["../x", "unheard", "", "lorenz_report", "Lorenz"])
def test_an_unknown_experiment_is_refused(page, tmp_path, name):
    rewrite(page.parent, tmp_path / "other", str, name)
    with pytest.raises(StoreError, match=re.escape(f"holds the experiment {name!r}, which this version does not know")):
        experiments.write_report(tmp_path / "other")
    assert not (tmp_path / "other" / "report.html").exists()


def test_settings_of_another_version_are_refused(page, tmp_path):
    rewrite(page.parent, tmp_path / "other", lambda text: text.replace('"lyapunov"', '"liapunow"'))
    with pytest.raises(StoreError, match="made by another version: it lacks the settings lyapunov"):
        experiments.write_report(tmp_path / "other")


def test_an_unfinished_run_is_refused(tmp_path):
    experiment = experiments.load("lorenz", quick=True, changes=TINY)
    first = experiment.units()[0]
    with Store.running(tmp_path, experiment) as store:
        store.begin_session()
        store.add(first, experiment.module.execute(first, experiment.settings))
    with pytest.raises(
        StoreError, match="holds 2 runs and lacks others, such as number 0 of quaternions in the part 'main'"
    ):
        experiments.write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("networks", 3, "does not divide the work into units such as"),
        ("networks", "2", "do not fit together"),
        ("n_hidden", [[3], 4], "does not divide the work into units"),
        ("few_hidden", [], "do not fit together"),
        ("lyapunov", 0.0, "do not fit together"),
        ("sensitivity", [{"change": {}}], "do not fit together"),
    ],
)
def test_settings_that_the_runs_do_not_bear_out(page, tmp_path, key, value, reason):
    shutil.copy(page.parent / store_module.FILE, tmp_path)
    with Store.open(tmp_path) as store, store._connection as connection:
        values = (store.name, json.dumps(store.settings | {key: value}))
        connection.execute(
            "update experiment set settings = ?, checksum = ?", [values[1], store_module._checksum(values)]
        )
    with pytest.raises(StoreError, match=reason):
        experiments.write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_place_that_cannot_be_written(page, tmp_path):
    shutil.copytree(page.parent, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "figures")
    (tmp_path / "copy" / "figures").write_text("in the way")
    with pytest.raises(StoreError, match="could not be written"):
        experiments.write_report(tmp_path / "copy")


@needs_links
def test_a_link_in_place_of_the_figures(page, tmp_path):
    results, mine = tmp_path / "results", tmp_path / "mine"
    shutil.copytree(page.parent, results)
    shutil.rmtree(results / "figures")
    mine.mkdir()
    (results / "figures").symlink_to(mine)
    with pytest.raises(StoreError, match="figures is a symbolic link"):
        experiments.write_report(results)
    assert not list(mine.iterdir())


# ---------------------------------------------------------------------- what it says


@pytest.fixture
def _no_figures(monkeypatch):
    """Most of the time goes into drawing, which the tests of the words do not need."""
    monkeypatch.setattr(report, "_save", lambda *_: "data:,")


@pytest.fixture
def made_up(page, tmp_path, _no_figures) -> Callable[..., Elements]:
    """A report of competitions whose gains are made up."""

    def write(experiment: Experiment, wins: dict[str, int], overturned: bool, tuned: float) -> Elements:
        with Store.open(page.parent) as store:
            arrays = {key: store.array(key) for key in ("truth", "positions", "predictions", "forecast real")}
        winner = [name for name, count in wins.items() for _ in range(count)]
        with Store.running(tmp_path, experiment) as store:
            store.begin_session()
            for n, unit in enumerate(experiment.units()):
                rows = [_made_up(unit, k, winner[k], overturned, tuned) for k in unit.networks]
                store.add(unit, Result(rows, arrays if n == 0 else {}))
        return Elements(experiments.write_report(tmp_path))

    return write


def _made_up(unit: Any, network: int, winner: str, overturned: bool, tuned: float) -> Row:
    gain = 2.0 * (unit.algebra == winner) + 1.0 * (unit.algebra != "real")
    if unit.part == "sensitivity" and unit.variant == "weight scale 0.1" and overturned:
        gain += 10.0 * (unit.algebra == "real")
    if unit.part == "tuned":
        gain = 50.0 + tuned * (unit.algebra == "real") + 0.2 * network
    return {
        "network": network,
        "seed": 1,
        "parameters": 20 * unit.n_hidden,
        "weight_scale": 0.1,
        "prediction_gain": gain,
        "valid_time": 1.0 if unit.algebra == "real" else 0.5,
    }


CLEAR = {
    "quaternions": 200,
    "R[-1,+1]": 100,
    "R[+1,-1]": 90,
    "tessarines": 40,
    "klein4": 30,
    "R[+1,+1]": 20,
    "paper-Cl(1,1)": 18,
    "real": 2,
}
CLOSE = CLEAR | {"quaternions": 150, "R[-1,+1]": 85, "R[+1,-1]": 85, "tessarines": 75, "klein4": 65}


@pytest.fixture
def large() -> Experiment:
    """1,000 competitions, and eleven in each variant: winning all of ten is not beyond chance for one of 8 models."""
    changes = ["networks=500", "n_hidden=[3,4]", "few_hidden=[3]", "few_networks=11", "forecast_networks=1"]
    return experiments.load("lorenz", changes=changes)


def test_claims_that_hold(made_up, large):
    found = made_up(large, CLEAR, overturned=False, tuned=-5.0)
    assert found.verdicts == ["reproduced"] * 4
    assert "quaternions (40.0 %) and R[-1,+1] (20.0 %)" in found.text
    assert "place 1: quaternions; places 2 to 3: R[-1,+1] and R[+1,-1], which cannot be told apart;" in found.text
    assert "The real model wins 0.4 % of the competitions" in found.text
    assert "It has the most wins in none of the variants below." in found.text
    assert "the real model has 46.0 dB." in found.text


def test_claims_that_chance_or_a_choice_overturns(made_up, large):
    found = made_up(large, CLOSE, overturned=True, tuned=5.0)
    assert found.verdicts == ["depends"] * 4
    assert "But R[-1,+1] and R[+1,-1] cannot be told apart from tessarines and klein4." in found.text
    assert "more often than any other model, beyond chance, with: weight scale 0.1 (100 % of the wins)." in found.text
    assert "the real model has the highest mean gain of all, 56.0 dB" in found.text


def test_claims_that_do_not_hold(made_up, large):
    found = made_up(large, CLEAR | {"quaternions": 2, "real": 200}, overturned=False, tuned=0.0)
    assert found.verdicts == ["not reproduced", "reproduced", "not reproduced", "reproduced"]
    assert "real comes first: real (40.0 %) and quaternions (0.4 %)." in found.text
    assert "It wins 40.0 % of 1,000 competitions." in found.text
    assert "the real model has the highest mean gain of all, 51.0 dB" in found.text
    assert "Chance may decide between it and quaternions, R[-1,+1]" in found.text


def test_a_quick_run_claims_little(made_up):
    experiment = experiments.load("lorenz", quick=True, seed=3, changes=["networks=6", "n_hidden=[11]"])
    found = made_up(experiment, {"quaternions": 6}, overturned=False, tuned=0.0)
    assert found.verdicts == ["depends", "depends", "depends", "reproduced"]
    assert "chance may decide between all models" in found.text
    assert "These are too few to tell a small share." in found.text
    assert "Settings that differ from those chosen for the paper: n_hidden, networks, few_networks" in found.text


@pytest.mark.parametrize(
    "changes",
    [
        ['models=["real","quaternions"]'],
        ["models=quaternions", "sensitivity=[]"],
        ["series={csv}"],
        ["series={csv1}", 'models=["real","complex"]'],
    ],
    ids=["models", "one model", "series", "one column"],
)
@pytest.mark.usefixtures("_no_figures")
def test_no_claims_about_other_runs(tmp_path, changes):
    np.savetxt(tmp_path / "s.csv", lorenz(400), delimiter=",")
    np.savetxt(tmp_path / "s1.csv", lorenz(400)[:, 0], delimiter=",")
    files = {"{csv}": str(tmp_path / "s.csv"), "{csv1}": str(tmp_path / "s1.csv")}
    for key, path in files.items():
        changes = [change.replace(key, path) for change in changes]
    text = Elements(run(tmp_path / "out", *changes)).text
    assert "none is judged here" in text
    assert "The paper's claims The paper says" not in text
    assert not re.search("verdict|reproduced", text)
    assert ("What it depends on" in text) == ("sensitivity=[]" not in changes)
    assert ("Runge-Kutta" in text) == ("series" not in changes[0])


@pytest.mark.parametrize(
    "changes",
    [[], ["series={csv}"], ['models=["real","R[-1,+1]"]', "dt=0.02", "weight_scale=1e-3"], ["sensitivity=[]"]],
    ids=["plain", "series", "settings", "no variants"],
)
def test_the_command_gives_the_same_settings(tmp_path, changes):
    np.savetxt(tmp_path / "a series.csv", lorenz(400), delimiter=",")
    changes = [change.replace("{csv}", str(tmp_path / "a series.csv")) for change in changes]
    experiment = experiments.load("lorenz", quick=True, changes=[*TINY, *changes])
    with Store.running(tmp_path / "out", experiment) as store:
        words = shlex.split(report._command(store, report._document(store)))
    assert words[:3] == ["hyperelm", "run", "lorenz"]
    assert set(words[3::2]) == {"--set"}
    assert not any(word.startswith("sensitivity=[{") for word in words)
    assert experiments.load("lorenz", changes=words[4::2]).settings == experiment.settings


def test_the_command_is_on_the_page(page):
    assert Elements(page).command[:3] == ["hyperelm", "run", "lorenz"]


def test_the_command_of_a_quick_run(made_up):
    experiment = experiments.load("lorenz", quick=True, seed=3, changes=["dt=0.02"])
    found = made_up(experiment, {"quaternions": 5}, overturned=False, tuned=0.0)
    assert found.command == ["hyperelm", "run", "lorenz", "--quick", "--seed", "3", "--set", "dt=0.02"]
    assert "In this run, dt is 0.02 instead." in found.text


# ---------------------------------------------------------------------- in a browser


@pytest.mark.parametrize("width", [400, 1200])
def test_in_a_browser(page, open_page, width):
    seen = open_page(page, width)
    assert seen.faults == []
    assert len(seen.images) == len(FIGURES)
    assert seen.width <= width


def test_the_browser_sees_faults(tmp_path, open_page):
    """The test above would fail, were there something to see."""
    (tmp_path / "bad.html").write_text(
        '<!doctype html><link rel="icon" href="data:,"><div style="width: 500px">wide</div>'
        '<img src="https://example.org/x.png">'
        "<img src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>\">"
        '<script>console.warn("beware"); missing()</script>'
    )
    seen = open_page(tmp_path / "bad.html", 400)
    assert seen.width > 400
    faults = "\n".join(seen.faults)
    for fault in (
        "warning: ['beware']",
        "exception: Uncaught",
        "request: https://example.org/x.png",
        "image 0 has not",
        "image 1 is blank",
    ):
        assert fault in faults
