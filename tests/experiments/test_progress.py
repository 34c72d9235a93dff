from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

from hyperelm import experiments
from hyperelm.experiments import MAIN, Unit, progress
from hyperelm.experiments.progress import Bar, Leader, Lines, watcher
from hyperelm.experiments.statistics import shares, winners

MODELS = ["a", "b", "c"]


def rows(networks=40, seed=0, part=MAIN):
    rng = np.random.default_rng(seed)
    return [
        {"part": part, "algebra": name, "n_hidden": L, "network": n, "gain": float(rng.normal() + 0.3 * (name == "b"))}
        for L in (3, 4)
        for n in range(networks)
        for name in MODELS
    ]


def leader_of(rows):
    leader = Leader("gain")
    for row in rows:
        leader.add(row)
    return str(leader)


def test_the_leader_has_most_wins():
    found = shares(list(winners(rows(), "gain").values()), MODELS)
    assert leader_of(rows()) == f"{MODELS[int(found.argmax())]} leads ({found.max():.0%} of wins)"


def test_the_leader_does_not_depend_on_the_order():
    shuffled = [rows()[n] for n in np.random.default_rng(1).permutation(len(rows()))]
    assert leader_of(shuffled) == leader_of(rows())


def test_ties_are_won_as_in_the_report():
    """The store gives rows by the names of their algebras; runs end in any order."""
    tie = [{"n_hidden": 3, "network": 0, "algebra": name, "gain": 1.0} for name in ("a", "b")]
    assert set(winners(tie, "gain").values()) == {"a"}
    assert leader_of(tie) == leader_of(tie[::-1]) == "a leads (100% of wins)"


def test_a_model_whose_wins_are_all_lost_does_not_lead():
    worse = {"n_hidden": 3, "network": 0, "algebra": "a", "gain": 1.0}
    assert leader_of([worse, worse | {"algebra": "b", "gain": 2.0}]) == "b leads (100% of wins)"


def test_no_leader_yet():
    assert leader_of([]) == ""


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def unit_of(rows):
    return Unit(rows[0]["part"], "", rows[0]["algebra"], rows[0]["n_hidden"], 0, len(rows))


def bare(rows):
    """Rows as a module gives them, without the fields of their unit."""
    return [{"network": row["network"], "gain": row["gain"]} for row in rows]


def test_lines(clock, capsys):
    before = [row for row in rows(10) if row["algebra"] == "a" and row["n_hidden"] == 3]
    after = [row for row in rows(10) if row["algebra"] == "b" and row["n_hidden"] == 3]
    with Lines(Leader("gain")) as watch:
        watch.begin(40, before)
        clock[0] += 2
        watch.advance(unit_of(after), bare(after))  # too soon for a line
        clock[0] += 18
        watch.advance(unit_of(after), bare(after))
        clock[0] += 1
        watch.advance(unit_of(after), bare(after))  # the last line comes at once
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "10 of 40 runs, a leads (100% of wins)"
    assert re.fullmatch(r"30 of 40 runs, 1 a second, 10 s left, [ab] leads \(\d+% of wins\)", lines[1])
    assert re.fullmatch(r"40 of 40 runs, 1 a second, 0 s left, [ab] leads \(\d+% of wins\)", lines[2])
    assert len(lines) == 3


def test_slow_runs_are_counted_by_the_minute(clock, capsys):
    done = [row for row in rows(10) if row["algebra"] == "a" and row["n_hidden"] == 3]
    with Lines(Leader("gain")) as watch:
        watch.begin(40, [])
        clock[0] += 40
        watch.advance(unit_of(done), bare(done))
    assert capsys.readouterr().err.splitlines()[1].startswith("10 of 40 runs, 15 a minute, 120 s left")


def test_only_the_main_part_has_a_leader(capsys):
    with Lines(Leader("gain")) as watch:
        watch.begin(100, rows(2, part="tuned"))
        forecast = Unit("forecast", "", "a", 3, 0, 1)
        watch.advance(forecast, [{"network": 0, "valid_time": 1.0}])
    assert capsys.readouterr().err == "12 of 100 runs\n"


def test_bar(clock, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=screen, force_terminal=True, width=120))
    done = [row for row in rows(10) if row["algebra"] == "b" and row["n_hidden"] == 3]
    with Bar(Leader("gain")) as watch:
        watch.begin(40, [])
        clock[0] += 2
        watch.advance(unit_of(done), bare(done))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    for part in ("10/40", "5 a second", "left", "b leads (100% of wins)"):
        assert part in shown


@pytest.mark.parametrize(("terminal", "kind"), [(True, Bar), (False, Lines)])
def test_watcher(monkeypatch, terminal, kind):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: terminal, raising=False)
    assert isinstance(watcher(experiments.load("lorenz")), kind)


def test_leader_of_runs_that_share_a_number_alone():
    leader = Leader("gain", ("network",))
    for algebra, n_hidden, gain in (("real", 600, 1.0), ("klein4", 450, 2.0)):
        leader.add({"algebra": algebra, "n_hidden": n_hidden, "network": 0, "gain": gain})
    assert str(leader) == "klein4 leads (100% of wins)"
