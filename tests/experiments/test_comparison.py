"""Which of many candidates are told apart, against SciPy's tests of one pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hyperelm.experiments.comparison import Comparison, share_between


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
    comparison = Comparison(scores)
    pairs = list(combinations(scores, 2))
    for a, b in pairs:
        p = stats.ttest_rel(scores[a], scores[b]).pvalue * len(pairs)
        better, worse = (a, b) if np.mean(scores[a]) > np.mean(scores[b]) else (b, a)
        assert comparison.is_ahead(better, worse) == (p < 0.05)
        assert not comparison.is_ahead(worse, better)


def test_order_places_and_contenders():
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((3, 10))
    comparison = Comparison({"low": noise[0] - 5, "high": noise[1] + 5, "higher": noise[2] + 5.001})
    assert comparison.order == ["higher", "high", "low"]
    assert [comparison.places(name) for name in comparison.order] == [(1, 2), (1, 2), (3, 3)]
    assert comparison.contenders == ["higher", "high"]
    assert comparison.value("low") == pytest.approx(np.mean(noise[0]) - 5)


def test_one_repetition_tells_nothing():
    comparison = Comparison({"a": [1.0], "b": [100.0]})
    assert comparison.order == ["b", "a"]
    assert comparison.contenders == ["b", "a"]
    assert comparison.margin("a") == np.inf


def test_equal_scores_are_one_model():
    comparison = Comparison({"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 3.5], "c": [1.0, 2.0 + 1e-9, 4.0]})
    assert comparison.same == [["b"], ["c", "a"]]
    assert not comparison.is_ahead("c", "a")


def test_a_constant_difference_beyond_rounding_is_one():
    comparison = Comparison({"a": [1.0, 2.0, 4.0], "b": [1.5, 2.5, 4.5]})
    assert comparison.is_ahead("b", "a")


def test_the_margin_is_an_interval_of_the_distance_from_the_mean():
    scores = drawn(3, candidates=5)
    distances = scores["c2"] - np.mean(list(scores.values()), axis=0)
    low, high = stats.t.interval(1 - 0.05 / 5, len(distances) - 1, distances.mean(), stats.sem(distances))
    assert Comparison(scores).margin("c2") == pytest.approx((high - low) / 2)


def test_chance_is_seldom_called_a_difference():
    """Among 40 equal candidates, any difference in at most about one of 20 families."""
    found = [len(Comparison(drawn(seed, 40, 10, spread=0.0)).contenders) < 40 for seed in range(60)]
    assert sum(found) <= 8


def test_two_alone():
    scores = drawn(5, candidates=30, spread=0.3)
    comparison = Comparison(scores)
    for a, b in combinations(list(scores)[:6], 2):
        assert comparison.differ_alone(a, b) == (stats.ttest_rel(scores[a], scores[b]).pvalue < 0.05)


def test_share_between_groups():
    rng = np.random.default_rng(1)
    groups = [rng.standard_normal(n) + level for n, level in ((4, 0), (7, 1), (3, -2))]
    names = [[f"{n}/{m}" for m in range(len(group))] for n, group in enumerate(groups)]
    scores = {name: value for group, found in zip(names, groups) for name, value in zip(group, found)}
    F, between, within = stats.f_oneway(*groups).statistic, 2, 14 - 3
    assert share_between(scores, names) == pytest.approx(F * between / (F * between + within))
    assert share_between(dict.fromkeys(scores, 1.0), names) == 0
