"""Which models are told apart, against SciPy's tests of one pair and brute force; places that chance leaves open."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperelm.experiments import Row
from hyperelm.experiments._ranking import (
    Leader,
    Means,
    Wins,
    bootstrap_mean,
    grouped,
    mean_of,
)


def winners(rows):
    """The winner of every competition, (n_hidden, network) -> algebra."""
    return Leader("gain", ("n_hidden", "network"), rows).winners


def by_wins(rows, models):
    return Wins(list(winners(rows).values()), models)


def by_mean(rows, models):
    groups = grouped(rows, "algebra")
    return Means({name: [row["gain"] for row in groups[name]] for name in models})


# ---------------------------------------------------------------------- wins and places


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
    ranking = by_wins(rows_of(wins), list(wins))
    assert ranking.order == ["a", "b", "c", "d"]
    assert [ranking.places(name) for name in "abcd"] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert ranking.groups() == [((1, 1), ["a"]), ((2, 3), ["b", "c"]), ((4, 4), ["d"])]
    assert ranking.are_tied(["b", "c"])
    assert not ranking.are_tied(["a", "b"])
    assert ranking.clear_leader == "a"
    assert ranking.rivals("b") == ["c"]


def test_neighbours_that_are_tied_do_not_tie_the_ends():
    wins = {"a": 120, "b": 96, "c": 66, "d": 18}
    ranking = by_wins(rows_of(wins, 300), list(wins))
    assert [ranking.places(name) for name in "abcd"] == [(1, 2), (1, 3), (2, 3), (4, 4)]
    assert ranking.is_ahead("a", "c")
    assert ranking.clear_leader is None


def test_places_are_told_for_all_pairs_together():
    """40 wins against 22 are beyond chance for two models, but not for some two of four."""
    ranking = by_wins(rows_of({"a": 40, "b": 22}, 62), ["a", "b"])
    assert ranking.clear_leader == "a"
    ranking = by_wins(rows_of({"a": 40, "b": 22, "c": 22, "d": 22}, 106), list("abcd"))
    assert ranking.places("a") == (1, 4)


def test_few_competitions_tell_nothing():
    wins = {"a": 5, "b": 0}
    ranking = by_wins(rows_of(wins, 5), list(wins))
    assert ranking.places("a") == (1, 2)
    wins = {"a": 6, "b": 0}
    assert by_wins(rows_of(wins, 6), list(wins)).clear_leader == "a"


def equal_models(rng: np.random.Generator, models: int, competitions: int, noise: str) -> list[Row]:
    """Runs of models that differ by chance alone, and of competitions that differ."""
    draw = rng.standard_normal if noise == "normal" else lambda size: rng.standard_t(3, size)
    gains = rng.normal(scale=3, size=(competitions, 1)) + draw((competitions, models))
    return [
        {"algebra": f"model {k}", "n_hidden": 11, "network": n, "gain": gain}
        for n, row in enumerate(gains.tolist())
        for k, gain in enumerate(row)
    ]


@pytest.mark.parametrize("way", [by_wins, by_mean], ids=["wins", "means"])
@pytest.mark.parametrize("noise", ["normal", "heavy tails"])
@pytest.mark.parametrize(("models", "competitions"), [(2, 8), (8, 6), (8, 60)])
def test_equal_models_are_denied_no_place(way, noise, models, competitions):
    """In 5 % of all rankings at most, whatever the number of models and competitions."""
    rng, times = np.random.default_rng(0), 200
    names = [f"model {k}" for k in range(models)]
    denied = 0
    for _ in range(times):
        ranking = way(equal_models(rng, models, competitions, noise), names)
        denied += any(ranking.places(name) != (1, models) for name in names)
    assert denied <= stats.binom.isf(0.001, times, 0.05)


def test_wins_by_brute_force():
    """The chance of a split of wins at least as uneven, over all ways in which two equal models can win."""
    for wins in set(product(range(7), repeat=2)) - {(0, 0)}:
        splits = [sum(winner) for winner in product((0, 1), repeat=sum(wins))]
        chance = np.mean([abs(2 * split - sum(wins)) >= abs(wins[0] - wins[1]) for split in splits])
        ranking = by_wins(rows_of(dict(zip("ab", wins)), sum(wins)), ["a", "b"])
        assert (ranking.clear_leader is not None) == bool(chance <= 0.05), wins


def test_means_are_compared_competition_by_competition():
    """A model that is always a little better is clearly ahead, however much the competitions differ."""
    rng = np.random.default_rng(0)
    rows = []
    for n, level in enumerate(rng.normal(scale=50, size=20)):
        for name, lead in (("a", 1.0), ("b", 0.0)):
            gain = level + lead + rng.normal(scale=0.5)
            rows.append({"algebra": name, "n_hidden": 11, "network": n, "gain": gain})
    ranking = by_mean(rows, ["a", "b"])
    assert ranking.clear_leader == "a"
    assert ranking.value("a") == pytest.approx(np.mean([row["gain"] for row in rows if row["algebra"] == "a"]))
    low, high = ranking.interval("a")
    assert high - low > 10


# ---------------------------------------------------------------------- means


def drawn(seed, candidates=6, repetitions=12, spread=1.0):
    rng = np.random.default_rng(seed)
    levels = spread * rng.standard_normal((candidates, 1))
    common = rng.standard_normal(repetitions)  # what pairing takes away
    return {
        f"c{n}": row for n, row in enumerate(levels + common + 0.5 * rng.standard_normal((candidates, repetitions)))
    }


@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 20))
def test_pairs_are_told_apart_as_scipy_does(seed, candidates, repetitions):
    scores = drawn(seed, candidates, repetitions)
    comparison = Means(scores)
    pairs = list(combinations(scores, 2))
    for a, b in pairs:
        p = stats.ttest_rel(scores[a], scores[b]).pvalue * len(pairs)
        better, worse = (a, b) if np.mean(scores[a]) > np.mean(scores[b]) else (b, a)
        assert comparison.is_ahead(better, worse) == (p < 0.05)
        assert not comparison.is_ahead(worse, better)


def test_order_places_and_contenders():
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((3, 10))
    comparison = Means({"low": noise[0] - 5, "high": noise[1] + 5, "higher": noise[2] + 5.001})
    assert comparison.order == ["higher", "high", "low"]
    assert [comparison.places(name) for name in comparison.order] == [(1, 2), (1, 2), (3, 3)]
    assert comparison.contenders == ["higher", "high"]
    assert comparison.value("low") == pytest.approx(np.mean(noise[0]) - 5)


def test_one_repetition_tells_nothing():
    comparison = Means({"a": [1.0], "b": [100.0]})
    assert comparison.order == ["b", "a"]
    assert comparison.contenders == ["b", "a"]
    assert comparison.margin("a") == np.inf


def test_equal_scores_are_one_model():
    comparison = Means({"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 3.5], "c": [1.0, 2.0 + 1e-9, 4.0]})
    assert comparison.same == [["b"], ["c", "a"]]
    assert not comparison.is_ahead("c", "a")


def test_a_constant_difference_beyond_rounding_is_one():
    comparison = Means({"a": [1.0, 2.0, 4.0], "b": [1.5, 2.5, 4.5]})
    assert comparison.is_ahead("b", "a")


def test_the_margin_is_an_interval_of_the_distance_from_the_mean():
    scores = drawn(3, candidates=5)
    distances = scores["c2"] - np.mean(list(scores.values()), axis=0)
    low, high = stats.t.interval(1 - 0.05 / 5, len(distances) - 1, distances.mean(), stats.sem(distances))
    assert Means(scores).margin("c2") == pytest.approx((high - low) / 2)


def test_chance_is_seldom_called_a_difference():
    """Among 40 equal candidates, any difference in at most about one of 20 families."""
    found = [len(Means(drawn(seed, 40, 10, spread=0.0)).contenders) < 40 for seed in range(60)]
    assert sum(found) <= 8


def test_two_alone():
    scores = drawn(5, candidates=30, spread=0.3)
    comparison = Means(scores)
    for a, b in combinations(list(scores)[:6], 2):
        assert comparison.differ_alone(a, b) == (stats.ttest_rel(scores[a], scores[b]).pvalue < 0.05)


# ---------------------------------------------------------------------- winners, shares, intervals

MODELS = ["a", "b", "c"]


def competition(n_hidden, network, **gains):
    return [{"n_hidden": n_hidden, "network": network, "algebra": name, "gain": gain} for name, gain in gains.items()]


def test_winners():
    rows = [
        *competition(3, 0, a=1.0, b=2.0, c=-1.0),
        *competition(3, 1, a=5.0, b=2.0, c=-np.inf),
        *competition(4, 0, c=np.inf, b=2.0, a=3.0),
    ]
    expected = {(3, 0): "b", (3, 1): "a", (4, 0): "c"}
    assert winners(rows) == expected
    assert winners(rows[::-1]) == expected


def test_shares():
    assert Wins(["a", "b", "a", "a"], MODELS).shares == pytest.approx([0.75, 0.25, 0])
    won = list(np.random.default_rng(0).choice(MODELS, size=97))
    assert Wins(won, MODELS).shares.sum() == pytest.approx(1, abs=1e-12)


def test_bootstrap_is_resampling_with_replacement():
    rng = np.random.default_rng(1)
    won = np.array(["a"] * 19 + ["b"] * 15 + ["c"] * 66)
    samples = rng.choice(won, size=(4000, len(won)))
    brute = np.stack([(samples == name).mean(axis=1) for name in MODELS], axis=1)
    expected = np.quantile(brute, [0.025, 0.975], axis=0)
    assert Wins(list(won), MODELS).ends == pytest.approx(expected, abs=0.011)
    np.testing.assert_array_equal(Wins(list(won), MODELS).ends, Wins(list(won), MODELS).ends)


def test_bootstrap_mean():
    values = np.random.default_rng(2).normal(3.0, 2.0, size=400)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert bootstrap_mean(values) == pytest.approx([values.mean() - half, values.mean() + half], abs=0.03)
    assert bootstrap_mean([5.0, 5.0]) == pytest.approx([5, 5])


def test_groups():
    rows = [*competition(3, 0, a=1.0, b=2.0), *competition(4, 0, a=3.0)]
    groups = grouped(rows, "algebra")
    assert groups == {"a": [rows[0], rows[2]], "b": [rows[1]]}
    assert mean_of(groups["a"], "gain") == 2


# ---------------------------------------------------------------------- the leader while runs come in


def runs(networks=40, seed=0, part="main"):
    rng = np.random.default_rng(seed)
    return [
        {"part": part, "algebra": name, "n_hidden": L, "network": n, "gain": float(rng.normal() + 0.3 * (name == "b"))}
        for L in (3, 4)
        for n in range(networks)
        for name in MODELS
    ]


def leader_of(rows):
    return str(Leader("gain", ("n_hidden", "network"), rows))


def test_the_leader_has_most_wins():
    found = by_wins(runs(), MODELS).shares
    assert leader_of(runs()) == f"{MODELS[int(found.argmax())]} leads ({found.max():.0%} of wins)"


def test_the_leader_does_not_depend_on_the_order():
    shuffled = [runs()[n] for n in np.random.default_rng(1).permutation(len(runs()))]
    assert leader_of(shuffled) == leader_of(runs())


def test_ties_are_won_as_in_the_report():
    """The store gives rows by the names of their algebras; runs end in any order."""
    tie = [{"n_hidden": 3, "network": 0, "algebra": name, "gain": 1.0} for name in ("a", "b")]
    assert set(winners(tie).values()) == {"a"}
    assert leader_of(tie) == leader_of(tie[::-1]) == "a leads (100% of wins)"


def test_a_model_whose_wins_are_all_lost_does_not_lead():
    worse = {"n_hidden": 3, "network": 0, "algebra": "a", "gain": 1.0}
    assert leader_of([worse, worse | {"algebra": "b", "gain": 2.0}]) == "b leads (100% of wins)"


def test_no_leader_yet():
    assert leader_of([]) == ""


def test_leader_of_runs_that_share_a_number_alone():
    leader = Leader("gain", ("network",))
    for algebra, n_hidden, gain in (("real", 600, 1.0), ("klein4", 450, 2.0)):
        leader.add({"algebra": algebra, "n_hidden": n_hidden, "network": 0, "gain": gain})
    assert str(leader) == "klein4 leads (100% of wins)"
