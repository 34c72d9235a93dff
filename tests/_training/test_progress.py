"""The progress bar: silent unless asked for, one line that moves in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hyperelm import ELMRegressor
from hyperelm._training import progress
from hyperelm._training.progress import Progress

X = np.random.default_rng(0).standard_normal((60, 4))


@pytest.fixture
def often(monkeypatch):
    """No pause between two lines."""
    monkeypatch.setattr(progress, "_EVERY", {True: 0.0, False: 0.0})


def shown(title, total, capsys):
    with Progress(title, "gram", total) as bar:
        for _ in range(3):
            bar.advance(20)
    return capsys.readouterr()


@pytest.mark.usefixtures("often")
def test_silent_without_a_title(capsys):
    assert shown("", 60, capsys) == ("", "")


@pytest.mark.usefixtures("often")
def test_lines(capsys):
    out, error = shown("Fit", 60, capsys)
    assert out == ""
    lines = error.splitlines()
    assert [line.partition(" rows")[0] for line in lines] == [f"Fit (gram): {n} of 60" for n in (20, 40, 60)]
    assert "left" in lines[0]
    assert "\r" not in error
    assert [line.partition(",")[0] for line in shown("Fit", None, capsys).err.splitlines()] == [
        "Fit (gram): 20 rows",
        "Fit (gram): 40 rows",
        "Fit (gram): 60 rows",
    ]


def test_lines_are_rare(capsys):
    assert len(shown("Fit", 60, capsys).err.splitlines()) == 1
    assert "60 of 60 rows" in shown("Fit", 60, capsys).err


@pytest.mark.usefixtures("often")
def test_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    error = shown("Fit", 60, capsys).err
    assert error.count("\r") == 3
    assert error.count("\n") == 1
    assert "[##########                    ] 20 of 60 rows" in error
    assert f"[{'#' * 30}] 60 of 60 rows" in error


@pytest.mark.usefixtures("often")
def test_every_pass_is_named(capsys):
    ELMRegressor("real", 30, weight_scale=1e-4, ridge=0, chunk_size=50, verbose=1, random_state=0).fit(X, X)
    error = capsys.readouterr().err
    assert list(dict.fromkeys(line.partition(":")[0] for line in error.splitlines())) == [
        "ELMRegressor (gram)",
        "ELMRegressor (qr)",
        "ELMRegressor (leave-one-out)",
    ]
    ELMRegressor(n_hidden=3, verbose=1).fit((X[a : a + 20], X[a : a + 20]) for a in (0, 20, 40))
    assert "ELMRegressor (qr): 40 rows" in capsys.readouterr().err


def test_slow_work_is_counted_by_the_minute(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress("lorenz", "", 40, unit="runs", done=10) as bar:
        bar.show()
        now[0] += 2
        bar.advance(0, "a leads")  # too soon for a line
        now[0] += 38
        bar.advance(10, "b leads")
        now[0] += 1
        bar.advance(20, "c leads")  # the last line comes at once
    assert capsys.readouterr().err.splitlines() == [
        "lorenz: 10 of 40 runs",
        "lorenz: 20 of 40 runs, 40 s, 15 a minute, 80 s left, b leads",
        "lorenz: 40 of 40 runs, 41 s, 44 a minute, 0 s left, c leads",
    ]
