from __future__ import annotations

import numpy as np
import pytest

from hyperelm.experiments.statistics import (
    bootstrap_mean,
    bootstrap_shares,
    by,
    interval,
    shares,
    winners,
)

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
    assert winners(rows, "gain") == expected
    assert winners(rows[::-1], "gain") == expected


def test_shares():
    assert shares(["a", "b", "a", "a"], MODELS) == pytest.approx([0.75, 0.25, 0])
    assert shares([], MODELS) == pytest.approx([0, 0, 0])
    won = list(np.random.default_rng(0).choice(MODELS, size=97))
    assert shares(won, MODELS).sum() == pytest.approx(1, abs=1e-12)


def test_bootstrap_is_resampling_with_replacement():
    rng = np.random.default_rng(1)
    won = np.array(["a"] * 19 + ["b"] * 15 + ["c"] * 66)
    draws = bootstrap_shares(list(won), MODELS)
    # The same by its definition.
    samples = rng.choice(won, size=(4000, len(won)))
    brute = np.stack([(samples == name).mean(axis=1) for name in MODELS], axis=1)
    assert draws.sum(axis=1) == pytest.approx(np.ones(len(draws)))
    # A standard deviation is 0.04 to 0.05 here, that of a mean of 4000 draws 0.0008.
    assert draws.mean(axis=0) == pytest.approx(brute.mean(axis=0), abs=0.004)
    assert np.cov(draws.T) == pytest.approx(np.cov(brute.T), abs=2e-4)
    assert interval(draws) == pytest.approx(interval(brute), abs=0.011)


def test_bootstrap_is_repeatable():
    won = ["a", "b", "c", "c"]
    np.testing.assert_array_equal(bootstrap_shares(won, MODELS), bootstrap_shares(won, MODELS))


def test_interval():
    draws = np.arange(1001) / 1000
    assert interval(draws) == pytest.approx([0.025, 0.975])
    assert interval(np.stack([draws, 2 * draws], axis=1)).shape == (2, 2)


def test_differences_are_of_dependent_shares():
    """Shares of one sample are not independent: with two models, a win of one is no win of the other."""
    draws = bootstrap_shares(["a"] * 55 + ["b"] * 45, MODELS[:2])
    low, high = interval(draws[:, 0] - draws[:, 1])
    half = 1.96 * 2 * np.sqrt(0.55 * 0.45 / 100)
    assert [low, high] == pytest.approx([0.1 - half, 0.1 + half], abs=0.02)


def test_bootstrap_mean():
    values = np.random.default_rng(2).normal(3.0, 2.0, size=400)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert bootstrap_mean(values) == pytest.approx([values.mean() - half, values.mean() + half], abs=0.03)
    assert bootstrap_mean([5.0, 5.0]) == pytest.approx([5, 5])


def test_groups():
    rows = [*competition(3, 0, a=1.0, b=2.0), *competition(4, 0, a=3.0)]
    groups = by(rows, "algebra", "n_hidden")
    assert list(groups) == [("a", 3), ("b", 3), ("a", 4)]
    assert [row for group in groups.values() for row in group] == rows
