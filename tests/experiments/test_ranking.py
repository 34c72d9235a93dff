"""Places that chance leaves open are reported as such."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm.experiments.definition import Row
from hyperelm.experiments.ranking import Ranking


def rows_of(wins: dict[str, int], networks: int = 100, **gains: float) -> list[Row]:
    """Runs in which every model wins so often, in turn."""
    winner = [name for name, count in wins.items() for _ in range(count)]
    assert len(winner) == networks
    return [
        {"algebra": name, "n_hidden": 11, "network": n, "gain": gains.get(name, 0.0) + (name == winner[n])}
        for n in range(networks)
        for name in wins
    ]


def test_places_that_chance_leaves_open():
    wins = {"a": 60, "b": 20, "c": 18, "d": 2}
    ranking = Ranking.by_wins(rows_of(wins), list(wins), "gain")
    assert ranking.order == ["a", "b", "c", "d"]
    assert [ranking.places(name) for name in "abcd"] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert ranking.groups() == [((1, 1), ["a"]), ((2, 3), ["b", "c"]), ((4, 4), ["d"])]
    assert ranking.are_tied(["b", "c"])
    assert not ranking.are_tied(["a", "b"])
    assert ranking.clear_leader == "a"
    assert ranking.rivals("b") == ["c"]


def test_neighbours_that_are_tied_do_not_tie_the_ends():
    wins = {"a": 40, "b": 32, "c": 22, "d": 6}
    ranking = Ranking.by_wins(rows_of(wins), list(wins), "gain")
    assert [ranking.places(name) for name in "abcd"] == [(1, 2), (1, 3), (2, 3), (4, 4)]
    assert ranking.is_ahead("a", "c")
    assert ranking.clear_leader is None


def test_few_competitions_tell_nothing():
    wins = {"a": 5, "b": 0}
    ranking = Ranking.by_wins(rows_of(wins, 5), list(wins), "gain")
    assert ranking.places("a") == (1, 2)
    wins = {"a": 6, "b": 0}
    assert Ranking.by_wins(rows_of(wins, 6), list(wins), "gain").clear_leader == "a"


def test_means_are_compared_competition_by_competition():
    """A model that is always a little better is clearly ahead, however much the competitions differ."""
    rng = np.random.default_rng(0)
    rows = []
    for n, level in enumerate(rng.normal(scale=50, size=20)):
        for name, lead in (("a", 1.0), ("b", 0.0)):
            gain = level + lead + rng.normal(scale=0.5)
            rows.append({"algebra": name, "n_hidden": 11, "network": n, "gain": gain})
    ranking = Ranking.by_mean(rows, ["a", "b"], "gain")
    assert ranking.clear_leader == "a"
    assert ranking.value("a") == pytest.approx(np.mean([row["gain"] for row in rows if row["algebra"] == "a"]))
    low, high = ranking.interval("a")
    assert high - low > 10
