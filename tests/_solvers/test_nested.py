"""The best of a handful of ridges beside all ridges of the path, and the slopes that lead to it."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import accumulated
from hyperelm import algebras, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.nested import _every_fourth, _Trials, best_of_few
from hyperelm._solvers.ridge import _on_path
from hyperelm._solvers.sample import RowSample
from hyperelm._solvers.scores import MeanError
from hyperelm._solvers.spectrum import Spectrum


def layer(algebra, shape, *, noise, labels=False, seed=0):
    """A layer of random neurons with a bias at its end, and targets that another layer gives."""
    M, L, N = shape
    d, rng = algebra.dim, np.random.default_rng(seed)
    X = rng.standard_normal((M, 6, d))
    H = np.tanh(linalg.matmul(X, rng.standard_normal((6, L, d)), algebra) / 6**0.5)
    H[:, -1] = np.eye(d)[0]
    T = np.sin(X[:, :N]) + noise * rng.standard_normal((M, N, d))
    return H, np.eye(N)[T[:, :, 0].argmax(axis=1)][:, :, None] * np.eye(d)[0] if labels else T


def problem(algebra, H, T, *, is_whole=True, labels=False):
    ones = np.ones(len(H))
    places = np.arange(T.shape[1]) * algebra.dim if labels else np.arange(T[0].size)
    mean = MeanError(RowSample(H, T, ones, ones, is_whole), places, len(places), labels)
    return accumulated(Gram, algebra, H, T), (H.shape[1] - 1,), mean


def score(mean, choice):
    """What the ridge of this choice is compared by."""
    at, left_out = slice(0, len(mean.sample.H)), choice.left_out
    return float(mean.scores([(at, left_out.residuals[:, None], left_out.leverages[:, None])]).compared[0])


def slopes(trials, u):
    """The slope that is found at one ridge, and that of the scores of two ridges beside it."""
    for step in (-0.02, 0, 0.02):
        assert trials.try_ridge(u + step)
    below, here, above = (trials.points[u + step] for step in (-0.02, 0, 0.02))
    return here[1], (above[0] - below[0]) / 0.04


@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "R[+1,+1]", "klein4", "octonions"])
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_it_is_nearly_the_best_of_the_path(name, noise, scale):
    algebra = algebras.get(name)
    H, T = layer(algebra, (120, 60, 2), noise=noise)
    accumulator, free, mean = problem(algebra, H, scale * T)
    found, on_path = best_of_few(accumulator, free, mean), _on_path(Spectrum(accumulator, free), mean)
    assert score(mean, found) <= 1.1 * score(mean, on_path)  # twice what counts as clearly better
    assert found.is_bias_only == on_path.is_bias_only


@pytest.mark.parametrize("seed", range(4))
def test_a_target_that_a_small_network_does_not_explain(seed):
    """Two ridges have small scores. The larger is that of the small network, the smaller is better."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1500, 8))
    H = np.tanh(X @ rng.standard_normal((8, 131)) / 8**0.5)
    H[:, -1] = 1
    T = np.sin(X @ rng.standard_normal((8, 3))) + 0.1 * rng.standard_normal((1500, 3))
    accumulator, free, mean = problem(algebras.get("real"), H[..., None], T[..., None])
    found, on_path = best_of_few(accumulator, free, mean), _on_path(Spectrum(accumulator, free), mean)
    assert score(mean, found) <= 1.04 * score(mean, on_path)


@pytest.mark.parametrize("name", ["real", "quaternions", "octonions"])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("u", [-4.0, -2.0, 0.0])
def test_the_slope_is_that_of_the_scores(name, labels, u):
    """Up to the random signs that estimate the change of the leverages."""
    algebra = algebras.get(name)
    H, T = layer(algebra, (200, 40, 3), noise=0.5, labels=labels)
    trials = _Trials(*problem(algebra, H, T, is_whole=False, labels=labels))
    slope, expected = slopes(trials, u)
    assert slope == pytest.approx(expected, abs=0.02 + 0.1 * abs(expected))


@pytest.mark.parametrize("name", ["real", "quaternions", "octonions"])
def test_the_slope_is_right_where_rows_lie_far_from_the_others(name):
    """Their leverages are near 1, so their errors hang on changes of the leverages."""
    algebra = algebras.get(name)
    H, T = layer(algebra, (200, 40, 3), noise=0.5)
    H[:4, :-1] *= 100 ** np.arange(1, 2, 0.25)[:, None, None]
    trials = _Trials(*problem(algebra, H, T, is_whole=False))
    slope, expected = slopes(trials, -8.0)
    assert slope == pytest.approx(expected, abs=0.02 + 0.1 * abs(expected))


@pytest.mark.parametrize("name", ["real", "quaternions", "octonions"])
def test_ridges_of_the_guide_take_as_many_degrees_of_freedom_of_the_whole_network(name):
    """On the average of random layers. The same ridge leaves the whole network up to 3.5 times as many."""
    algebra, moved, same = algebras.get(name), [], []
    for seed in range(5):
        H, T = layer(algebra, (400, 160, 1), noise=0.5, seed=seed)
        accumulator, free, mean = problem(algebra, H, T)
        smaller, places, _ = _every_fourth(accumulator, free, mean)
        small, large = Spectrum(smaller, places), Spectrum(accumulator, free)
        decades = np.array([-3.0, -2.0, -1.0])
        left = small.degrees_left(small.largest**2 * 10**decades)
        wanted = 0.25 * (1 - left)
        for u, shares in ((decades + np.log10((1 - wanted) / left), moved), (decades, same)):
            shares.append((1 - large.degrees_left(large.largest**2 * 10**u)) / wanted)
    assert np.abs(np.mean(moved, axis=0) - 1).max() < 0.5 * np.abs(np.mean(same, axis=0) - 1).max()


@pytest.mark.parametrize("name", ["real", "quaternions"])
def test_labels(name):
    algebra = algebras.get(name)
    H, T = layer(algebra, (150, 50, 3), noise=1.0, labels=True)
    accumulator, free, mean = problem(algebra, H, T, labels=True)
    found, on_path = best_of_few(accumulator, free, mean), _on_path(Spectrum(accumulator, free), mean)
    assert score(mean, found) <= 1.01 * score(mean, on_path)


def test_targets_that_the_bias_explains():
    algebra = algebras.get("quaternions")
    H, T = layer(algebra, (80, 60, 1), noise=0.0)
    found = best_of_few(*problem(algebra, H, np.ones_like(T)))
    assert not found.is_bias_only
    assert found.error < 1e-20
    noise = np.random.default_rng(5).standard_normal(T.shape)
    assert (
        best_of_few(*problem(algebra, H, noise)).error
        <= 1.01 * np.mean((noise - noise.mean(axis=0)) ** 2) * (80 / 79) ** 2
    )


def test_a_constant_layer():
    algebra = algebras.get("real")
    H, T = layer(algebra, (80, 60, 1), noise=0.1)
    found = best_of_few(*problem(algebra, np.ones_like(H), T))
    assert found.ridge == 1.0


def test_smaller_ridges_than_rounding_shows_are_cut_off():
    """Targets without noise of directions that only a tiny ridge lets through."""
    algebra, rng = algebras.get("real"), np.random.default_rng(0)
    H = rng.standard_normal((300, 41, 1)) * np.append(10.0 ** -np.linspace(0, 7, 40), 1)[:, None]
    H[:, -1] = 1
    T = linalg.matmul(H, 1e7 * rng.standard_normal((41, 1, 1)), algebra)
    found = best_of_few(*problem(algebra, H, T))
    assert found.cut_off
    assert found.error < 1e-12 * T.var()  # one step of two decades after the other, since fewer columns do not show it


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "neurons"), [("real", 250), ("quaternions", 80)])
def test_a_target_that_only_many_neurons_explain(name, neurons, seed):
    """A network of every fourth neuron does no better than the bias alone, so it tells nothing."""
    algebra, rng = algebras.get(name), np.random.default_rng(seed)
    X = rng.standard_normal((1000, 8))
    H = np.tanh(X @ rng.standard_normal((8, neurons * algebra.dim)) / 8**0.5).reshape(1000, neurons, algebra.dim)
    H[:, -1] = np.eye(algebra.dim)[0]
    T = np.zeros((1000, 1, algebra.dim))
    T[:, 0, 0] = X[:, 0] * X[:, 1] * X[:, 5]
    accumulator, free, mean = problem(algebra, H, T)
    found, on_path = best_of_few(accumulator, free, mean), _on_path(Spectrum(accumulator, free), mean)
    assert score(mean, found) <= 1.1 * score(mean, on_path)
    assert not found.is_bias_only


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_columns_of_which_every_fourth_is_zero(noise):
    algebra, rng = algebras.get("real"), np.random.default_rng(0)
    H = rng.standard_normal((500, 161, 1))
    H[:, ::4] = 0
    H[:, -1] = 1
    T = linalg.matmul(H, rng.standard_normal((161, 1, 1)), algebra) + noise * rng.standard_normal((500, 1, 1))
    accumulator, free, mean = problem(algebra, H, T)
    found, on_path = best_of_few(accumulator, free, mean), _on_path(Spectrum(accumulator, free), mean)
    assert score(mean, found) <= 1.1 * score(mean, on_path)
