"""The hidden layer f(xW + b), and what else the output layer sees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import Algebra, activations, algebras
from hyperelm._arrays import to_numpy
from hyperelm.bilinear import is_worth_searching
from hyperelm.elm.hidden import HiddenLayer
from hyperelm.solvers.team import Team


def numbers(shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def plain(x, W, algebra, *, bias, direct_link):
    """[tanh(xW + b), x, 1], one number at a time; the bias is b, as e b = b for the identity e."""
    rows, _, d = x.shape
    weights = W[:-1] if bias else W
    h = np.zeros((rows, W.shape[1], d))
    for i, j, k in np.argwhere(algebra.table):
        h[..., k] += algebra.table[i, j, k] * (x[..., i] @ weights[..., j])
    h = np.tanh(h + W[-1]) if bias else np.tanh(h)
    parts = [h] + [x] * direct_link + [np.broadcast_to(np.eye(d)[0], (rows, 1, d))] * bias
    return np.concatenate(parts, axis=1)


def layer_of(W, algebra, *, bias, direct_link, activation=activations.tanh):
    return HiddenLayer(W, bias, direct_link, activation, algebra)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
def test_small_layers(algebra, bias, direct_link, library):
    x, W = numbers((20, 3, algebra.dim)), 0.3 * numbers((3 + bias, 5, algebra.dim), 1)
    before = x.copy()
    layer = layer_of(W, algebra, bias=bias, direct_link=direct_link)
    H = to_numpy(layer(library(x), Team())[0])
    expected = plain(x, W, algebra, bias=bias, direct_link=direct_link)
    assert H.shape == expected.shape == (20, layer.width, algebra.dim)
    assert_allclose(H, expected, atol=1e-12)
    assert_array_equal(x, before)


@pytest.mark.parametrize("supports", ["full", "imaginary", "real", "none", "changing"])
@pytest.mark.parametrize(
    "name", ["real", "complex", "quaternions", "R[+1,+1]", "tessarines", "paper-Cl(1,1)", "octonions"]
)
def test_large_layers_by_scheme(name, supports, library):
    """For any components that are not zero, also where these differ between blocks of rows."""
    algebra = algebras.get(name)
    D, L = 1000, 50
    assert is_worth_searching(D, L)
    W = 0.02 * numbers((D + 1, L, algebra.dim), 1)
    layer, team = layer_of(W, algebra, bias=True, direct_link=True), Team()
    for seed, kind in enumerate(["full", "imaginary", "full"] if supports == "changing" else [supports]):
        x = numbers((37, D, algebra.dim), seed)
        x[..., {"full": [], "imaginary": [0], "real": slice(1, None), "none": slice(None)}[kind]] = 0
        assert_allclose(
            to_numpy(layer(library(x), team)[0]), plain(x, W, algebra, bias=True, direct_link=True), atol=1e-11
        )


@pytest.mark.parametrize(("D", "L"), [(50_000, 1), (1, 50_000)])
@pytest.mark.parametrize("name", ["real", "klein4"])
def test_large_layers_of_one_neuron_or_input(name, D, L):
    algebra = algebras.get(name)
    W, x = 0.01 * numbers((D + 1, L, algebra.dim), 1), numbers((3, D, algebra.dim))
    layer = layer_of(W, algebra, bias=True, direct_link=False)
    assert_allclose(layer(x, Team())[0], plain(x, W, algebra, bias=True, direct_link=False), atol=1e-11)


def test_threads_and_memory_change_nothing_but_rounding():
    algebra = algebras.get("quaternions")
    W, x = 0.02 * numbers((1001, 60, 4), 1), numbers((130, 1000, 4))
    serial = layer_of(W, algebra, bias=True, direct_link=False)(x, Team())[0].copy()
    with ThreadPoolExecutor(3) as pool:
        team = Team(pool, 4)
        layer = layer_of(W, algebra, bias=True, direct_link=False)
        layer(numbers((200, 1000, 4), 5), team)
        several = layer(x, team)[0].copy()
        assert_allclose(several, serial, rtol=0, atol=1e-14)
        assert_array_equal(layer(x, team)[0], several)


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_single_precision(shape):
    D, L = shape
    algebra = algebras.get("klein4")
    x, W = numbers((20, D, 4), dtype=np.float32), (numbers((D + 1, L, 4), 1) / np.sqrt(D)).astype(np.float32)
    H, _ = layer_of(W, algebra, bias=True, direct_link=False)(x, Team())
    assert H.dtype == np.float32
    assert_allclose(H, plain(x.astype(float), W.astype(float), algebra, bias=True, direct_link=False), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_callables_see_components_in_any_layout(shape):
    D, L = shape
    algebra = algebras.get("tessarines")
    x, W = numbers((20, D, 4)), numbers((D, L, 4), 1) / np.sqrt(D)
    H, _ = layer_of(W, algebra, bias=False, direct_link=False, activation=lambda v: np.tanh(v))(x, Team())
    assert_allclose(H, plain(x, W, algebra, bias=False, direct_link=False), atol=1e-12)
    with pytest.raises(ValueError, match="`activation` must work on each component"):
        layer_of(W, algebra, bias=False, direct_link=False, activation=lambda v: v[:1])(x, Team())


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_the_number_of_the_bias(shape, library):
    """It is the identity, wherever that stands: here in the last unit, and in both parts of a direct sum."""
    D, L = shape
    last = [1, 2, 3, 0]
    cases = [
        (Algebra(algebras.get("quaternions").table[np.ix_(last, last, last)]), [0, 0, 0, 1]),
        (algebras.get("complex").direct_sum(algebras.get("real")), [1, 0, 1]),
    ]
    for algebra, identity in cases:
        x, W = numbers((20, D, algebra.dim)), numbers((D + 1, L, algebra.dim), 1) / np.sqrt(D)
        H = to_numpy(layer_of(W, algebra, bias=True, direct_link=False)(library(x), Team())[0])
        assert_allclose(H[:, :-1], plain(x, W, algebra, bias=True, direct_link=False)[:, :-1], atol=1e-11)
        assert_allclose(H[:, -1], np.broadcast_to(identity, (20, algebra.dim)), atol=1e-14)
