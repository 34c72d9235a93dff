"""The advice at the end of `hyperelm fit`: which sentence for which data, and where it comes from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import ColumnPlan
from hyperelm.cli import _fit
from hyperelm.cli._advice import Situation, advise
from hyperelm.cli._task import Task

ROOT = Path(__file__).parents[2]
TABLE = Situation("numbers", rows=500, columns=8, targets=1)
LABELS = Situation("labels", rows=500, columns=8, targets=1)
SERIES = Situation("series", rows=500, columns=8, targets=1)

situations = st.builds(
    Situation,
    kind=st.sampled_from(["numbers", "labels", "series"]),
    rows=st.integers(10, 10_000),
    columns=st.integers(1, 1000),
    targets=st.integers(1, 4),
    level=st.lists(st.sampled_from(["ridge regression", "persistence"]), unique=True),
    beaten=st.booleans(),
    beyond=st.booleans(),
    ordered=st.sampled_from(["", "time"]),
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (TABLE, "unlike things, compare with ridge regression on `Nystroem` features"),
        (replace(TABLE, rows=4000), "With so many rows, compare with"),
        (replace(TABLE, targets=2), "Few rows of vectors"),
        (replace(TABLE, targets=2, rows=1001), "unlike things"),
        (replace(TABLE, targets=2, beaten=True), "unlike things"),
        (LABELS, "Compare with extra trees"),
        (replace(LABELS, columns=100), "use MiniRocket"),
        (SERIES, "In the forecasts of sensors"),
        (replace(SERIES, targets=3), "Few rows of vectors"),
        (replace(SERIES, rows=5000), "With so many rows, compare with"),
        (replace(SERIES, rows=5000, beyond=True), "Predict the differences between rows."),
    ],
)
def test_which_sentence(data, words):
    (advice,) = advise(data)
    assert words in advice.text
    lines = str(advice).splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(line.strip() for line in lines) == f"- {advice.text} See {' and '.join(advice.sources)}."


def test_a_simpler_model_that_is_level_comes_first():
    first, _ = advise(replace(TABLE, level=["ridge regression"]))
    assert first.text.startswith("Ridge regression is simpler and does as well on the rows held out, up to chance.")
    assert "Use it, " in first.text
    first, _ = advise(replace(SERIES, level=["ridge regression", "persistence"]))
    assert first.text.startswith("Ridge regression and persistence are simpler and do as well ")
    assert "Use one of them" in first.text


@given(situations)
def test_every_sentence_has_a_source_on_the_pages(data):
    """One to three pieces of advice; none on a simpler model if a warning names a better one."""
    found = advise(data)
    assert len(found) == 1 + bool(data.level and not data.beaten) + bool(data.ordered)
    for advice in found:
        assert advice.sources
        for source in advice.sources:
            page, _, anchor = source.partition("#")
            heads = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def test_level_means_within_two_standard_errors():
    """Of the mean difference, row by row. A model that is better is not level."""
    rng = np.random.default_rng(0)
    mine = rng.uniform(1, 2, 400)
    noise = rng.standard_normal(400)
    noise = (noise - noise.mean()) / noise.std() / 20  # so 2 standard errors are 0.1 / 20
    losses = {
        _fit.MINE: mine,
        "just level": mine + noise + 0.0049,
        "just behind": mine + noise + 0.0051,
        "better": mine + noise - 0.0001,
        "equal": mine,
    }
    fitted = _fit.Fitted(SimpleNamespace(), SimpleNamespace(), losses, 1)
    assert fitted.level == ["just level", "equal"]
    assert fitted.better == ["better"]
    assert fitted.held_out == 400
    assert fitted.compared[_fit.MINE] == pytest.approx(np.sqrt(mine.mean()))


def test_a_series_that_grows():
    fitted = _fit.Fitted(SimpleNamespace(), SimpleNamespace(), {_fit.MINE: np.zeros(20)}, 1)
    X, plan = np.zeros((100, 3)), ColumnPlan.of_numbers(["y"])
    grows, waves = np.arange(100.0)[:, None], np.sin(np.arange(100.0))[:, None]
    for y, beyond in ((grows, True), (-grows, True), (waves, False), (np.hstack([waves, grows]), True)):
        task = Task(X, y, ["y"] * y.shape[1], plan, 3, 1, y)
        assert _fit.situation(fitted, task) == Situation("series", 100, 3, y.shape[1], [], False, beyond)


def test_rows_in_the_order_of_an_input():
    rng = np.random.default_rng(0)
    noise, time, flag = rng.standard_normal(50), np.arange(50.0) // 7, np.arange(50.0) > 20
    fitted = _fit.Fitted(SimpleNamespace(), SimpleNamespace(), {_fit.MINE: np.zeros(10)}, 1)
    for last, ordered in ((time, "last"), (-time, "last"), (flag, ""), (noise, ""), (np.ones(50), "")):
        task = Task(np.stack([noise, last], axis=1), noise[:, None], ["y"], ColumnPlan.of_numbers(["noise", "last"]))
        assert _fit.situation(fitted, task).ordered == ordered
    (first, _) = advise(replace(TABLE, ordered="time"))
    assert first.text.startswith("The rows are in the order of 'time'.")


def test_a_lead_that_may_be_chance_is_called_so():
    mine = np.linspace(1, 2, 400)
    for lead, words in (
        (0.002, "better on the rows held out, though that may be chance."),
        (0.1, "held out. Use that."),
    ):
        simple = mine - lead + 0.05 * (-1.0) ** np.arange(400)
        fitted = _fit.Fitted(SimpleNamespace(), SimpleNamespace(), {_fit.MINE: mine, "ridge regression": simple}, 1)
        assert words in fitted.warning
