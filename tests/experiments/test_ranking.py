"""Places that chance leaves open are reported as such."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

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
    wins = {"a": 120, "b": 96, "c": 66, "d": 18}
    ranking = Ranking.by_wins(rows_of(wins, 300), list(wins), "gain")
    assert [ranking.places(name) for name in "abcd"] == [(1, 2), (1, 3), (2, 3), (4, 4)]
    assert ranking.is_ahead("a", "c")
    assert ranking.clear_leader is None


def test_places_are_told_for_all_pairs_together():
    """40 wins against 22 are beyond chance for two models, but not for some two of four."""
    ranking = Ranking.by_wins(rows_of({"a": 40, "b": 22}, 62), ["a", "b"], "gain")
    assert ranking.clear_leader == "a"
    ranking = Ranking.by_wins(rows_of({"a": 40, "b": 22, "c": 22, "d": 22}, 106), list("abcd"), "gain")
    assert ranking.places("a") == (1, 4)


def test_few_competitions_tell_nothing():
    wins = {"a": 5, "b": 0}
    ranking = Ranking.by_wins(rows_of(wins, 5), list(wins), "gain")
    assert ranking.places("a") == (1, 2)
    wins = {"a": 6, "b": 0}
    assert Ranking.by_wins(rows_of(wins, 6), list(wins), "gain").clear_leader == "a"


def equal_models(rng: np.random.Generator, models: int, competitions: int, noise: str) -> list[Row]:
    """Runs of models that differ by chance alone, and of competitions that differ."""
    draw = rng.standard_normal if noise == "normal" else lambda size: rng.standard_t(3, size)
    gains = rng.normal(scale=3, size=(competitions, 1)) + draw((competitions, models))
    return [
        {"algebra": f"model {k}", "n_hidden": 11, "network": n, "gain": gain}
        for n, row in enumerate(gains.tolist())
        for k, gain in enumerate(row)
    ]


@pytest.mark.parametrize("way", [Ranking.by_wins, Ranking.by_mean], ids=["wins", "means"])
@pytest.mark.parametrize("noise", ["normal", "heavy tails"])
@pytest.mark.parametrize(("models", "competitions"), [(2, 8), (8, 6), (8, 12), (8, 60)])
def test_equal_models_are_denied_no_place(way, noise, models, competitions):
    """In 5 % of all rankings at most, whatever the number of models and competitions."""
    rng, times = np.random.default_rng(0), 200
    names = [f"model {k}" for k in range(models)]
    denied = 0
    for _ in range(times):
        ranking = way(equal_models(rng, models, competitions, noise), names, "gain")
        denied += any(ranking.places(name) != (1, models) for name in names)
    assert denied <= stats.binom.isf(0.001, times, 0.05)


def test_wins_by_brute_force():
    """The chance of a split of wins at least as uneven, over all ways in which two equal models can win."""
    for wins in set(product(range(7), repeat=2)) - {(0, 0)}:
        splits = [sum(winner) for winner in product((0, 1), repeat=sum(wins))]
        chance = np.mean([abs(2 * split - sum(wins)) >= abs(wins[0] - wins[1]) for split in splits])
        ranking = Ranking.by_wins(rows_of(dict(zip("ab", wins)), sum(wins)), ["a", "b"], "gain")
        assert (ranking.clear_leader is not None) == bool(chance <= 0.05), wins


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
