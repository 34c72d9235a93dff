"""The two layers as training sees them: the hidden layer f([x, e] W), its random weights, and the number e."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from any_algebra import WITH_IDENTITY, WITHOUT, left_only, tables
from helpers import near, numbers
from hyperelm import Algebra, algebras, linalg
from hyperelm._algebra.schemes import is_large_product
from hyperelm._backend import NUMPY, workspace
from hyperelm._backend.arrays import to_numpy
from hyperelm._linalg.planes import Numbers
from hyperelm._network.activations import ACTIVATIONS
from hyperelm._network.layers import (
    Drawn,
    Given,
    HiddenLayer,
    bias_number,
    bias_weights,
    check_weight_scale,
    times_auto,
    times_bias,
)


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


def layer_of(W, algebra, *, bias, direct_link, activation=ACTIVATIONS["tanh"]):
    return HiddenLayer(W, bias, direct_link, activation, algebra)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
def test_small_layers(algebra, bias, direct_link, library):
    x, W = numbers((20, 3, algebra.dim)), 0.3 * numbers((3 + bias, 5, algebra.dim), 1)
    before = x.copy()
    layer = layer_of(W, algebra, bias=bias, direct_link=direct_link)
    H = to_numpy(layer(Numbers(library(x))))
    expected = plain(x, W, algebra, bias=bias, direct_link=direct_link)
    assert H.shape == expected.shape == (20, layer.width, algebra.dim)
    assert_allclose(H, expected, atol=1e-12)
    assert_array_equal(x, before)


@pytest.mark.parametrize("supports", ["full", "imaginary", "real", "none", "changing"])
@pytest.mark.parametrize(
    "name", ["real", "complex", "quaternions", "R[+1,+1]", "tessarines", "paper-Cl(1,1)", "octonions"]
)
def test_large_layers_by_scheme(name, supports, library):
    """For any components that are not zero, also where these differ between chunks of rows."""
    algebra = algebras.get(name)
    D, L = 1000, 50
    assert is_large_product(D, L)
    W = 0.02 * numbers((D + 1, L, algebra.dim), 1)
    layer = layer_of(W, algebra, bias=True, direct_link=True)
    for seed, kind in enumerate(["full", "imaginary", "full"] if supports == "changing" else [supports]):
        x = numbers((37, D, algebra.dim), seed)
        x[..., {"full": [], "imaginary": [0], "real": slice(1, None), "none": slice(None)}[kind]] = 0
        assert_allclose(
            to_numpy(layer(Numbers(library(x)))), plain(x, W, algebra, bias=True, direct_link=True), atol=1e-11
        )


@pytest.mark.parametrize(("D", "L"), [(50_000, 1), (1, 50_000)])
@pytest.mark.parametrize("name", ["real", "klein4"])
def test_large_layers_of_one_neuron_or_input(name, D, L):
    algebra = algebras.get(name)
    W, x = 0.01 * numbers((D + 1, L, algebra.dim), 1), numbers((3, D, algebra.dim))
    layer = layer_of(W, algebra, bias=True, direct_link=False)
    assert_allclose(layer(Numbers(x)), plain(x, W, algebra, bias=True, direct_link=False), atol=1e-11)


def test_threads_and_memory_change_nothing_but_rounding(monkeypatch):
    algebra = algebras.get("quaternions")
    W, x = 0.02 * numbers((1001, 60, 4), 1), numbers((130, 1000, 4))
    layer = layer_of(W, algebra, bias=True, direct_link=False)
    serial = layer(Numbers(x)).copy()
    monkeypatch.setattr(workspace, "_blas_threads", lambda: 4)
    monkeypatch.setattr(workspace, "processors", lambda: 4)
    with NUMPY.at_work(1e12):
        assert workspace.current_team().threads == 4
        layer(Numbers(numbers((200, 1000, 4), 5)))
        several = layer(Numbers(x)).copy()
        assert_allclose(several, serial, rtol=0, atol=1e-14)
        assert_array_equal(layer(Numbers(x)), several)


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_the_result_is_in_memory_that_the_next_call_takes_again(shape):
    D, L = shape
    layer = layer_of(0.02 * numbers((D + 1, L, 4), 1), algebras.get("klein4"), bias=True, direct_link=False)
    with NUMPY.at_work(0):
        first = layer(Numbers(numbers((20, D, 4))))
        kept = first.copy()
        assert np.shares_memory(layer(Numbers(numbers((20, D, 4), 2))), first)
        assert not np.array_equal(first, kept)
        assert_array_equal(layer(Numbers(numbers((20, D, 4)))), kept)


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_single_precision(shape):
    D, L = shape
    algebra = algebras.get("klein4")
    x, W = numbers((20, D, 4), dtype=np.float32), (numbers((D + 1, L, 4), 1) / np.sqrt(D)).astype(np.float32)
    H = layer_of(W, algebra, bias=True, direct_link=False)(Numbers(x))
    assert H.dtype == np.float32
    assert_allclose(H, plain(x.astype(float), W.astype(float), algebra, bias=True, direct_link=False), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 5), (1000, 50)])
def test_callables_see_components_in_any_layout(shape):
    D, L = shape
    algebra = algebras.get("tessarines")
    x, W = numbers((20, D, 4)), numbers((D, L, 4), 1) / np.sqrt(D)
    H = layer_of(W, algebra, bias=False, direct_link=False, activation=lambda v: np.tanh(v))(Numbers(x))
    assert_allclose(H, plain(x, W, algebra, bias=False, direct_link=False), atol=1e-12)
    with pytest.raises(ValueError, match="`activation` must work on each component"):
        layer_of(W, algebra, bias=False, direct_link=False, activation=lambda v: v[:1])(Numbers(x))


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
        H = to_numpy(layer_of(W, algebra, bias=True, direct_link=False)(Numbers(library(x))))
        assert_allclose(H[:, :-1], plain(x, W, algebra, bias=True, direct_link=False)[:, :-1], atol=1e-11)
        assert_allclose(H[:, -1], np.broadcast_to(identity, (20, algebra.dim)), atol=1e-14)


# ---------------------------------------------------------------------- random weights


def drawn(**options):
    settings = {"inputs": 20, "neurons": 30, "dtype": np.dtype(np.float64), "scale": 0.3, "bias": 0.7}
    return Drawn(np.random.default_rng(5), algebras.get("quaternions"), **settings | options)


def test_given_weights_are_those():
    W = numbers((3, 5, 4))
    assert Given(W).weights is W


def test_drawn_again():
    encoder = drawn()
    before = encoder.weights
    copy = pickle.loads(pickle.dumps(encoder))
    assert len(pickle.dumps(encoder)) < 2000 < before.nbytes
    assert_array_equal(copy.weights, before)
    assert copy.weights is copy.weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales(dtype):
    W = drawn(inputs=200, dtype=np.dtype(dtype)).weights
    assert W.shape == (201, 30, 4)
    assert W.dtype == dtype
    assert W[:-1].std() == pytest.approx(0.3, rel=0.03)
    assert W[-1].std() == pytest.approx(0.7, rel=0.2)
    assert drawn(bias=None).weights.shape == (20, 30, 4)


@pytest.mark.parametrize("inputs", [5, 80])
def test_orthogonal(inputs):
    """Columns, or rows where there are fewer, as real vectors of the length that random ones have."""
    R = linalg.to_real(drawn(inputs=inputs, bias=None, orthogonal=True).weights)
    gram = R @ R.T if R.shape[0] < R.shape[1] else R.T @ R
    assert_allclose(gram, 0.3**2 * max(R.shape) * np.eye(len(gram)), atol=1e-12)


# ---------------------------------------------------------------------- the number of the bias


def test_unit_zero_of_the_catalogue_exactly(algebra):
    assert_array_equal(bias_number(algebra), np.eye(algebra.dim)[0])
    weights = np.random.default_rng(0).standard_normal((3, 5, algebra.dim))
    assert_array_equal(times_bias(weights, algebra), weights)
    assert_array_equal(bias_weights(weights, algebra), weights)


@pytest.mark.parametrize("name", WITH_IDENTITY)
def test_the_identity_where_there_is_one(name):
    algebra, identity = WITH_IDENTITY[name]
    assert algebra.has_identity
    assert_allclose(algebra.identity, identity, atol=1e-14)
    assert_array_equal(bias_number(algebra), algebra.identity)


@pytest.mark.parametrize("name", WITHOUT)
def test_no_identity(name):
    assert WITHOUT[name].identity is None
    assert not WITHOUT[name].has_identity


def test_an_identity_from_the_left():
    e = bias_number(left_only())
    assert_allclose(left_only().left_matrix(e), np.eye(2), atol=1e-14)


@given(tables())
def test_the_bias_reaches_as_much_as_that_of_any_number(algebra):
    e = bias_number(algebra)
    ranks = [
        np.linalg.matrix_rank(algebra.left_matrix(a))
        for a in np.random.default_rng(1).standard_normal((20, algebra.dim))
    ]
    assert np.linalg.matrix_rank(algebra.left_matrix(e)) == max(ranks)
    if max(ranks):
        assert np.linalg.norm(algebra.left_matrix(e), 2) == pytest.approx(1)


@given(tables(), st.integers(0, 100))
def test_products_with_it(algebra, seed):
    weights = np.random.default_rng(seed).standard_normal((3, algebra.dim))
    products = times_bias(weights, algebra)
    near(products, algebra.multiply(bias_number(algebra), weights))
    near(times_bias(bias_weights(products, algebra), algebra), products)


# ---------------------------------------------------------------------- scales


@pytest.mark.parametrize(
    ("scale", "times"),
    [
        *[("auto", 1.0), ("0.1 auto", 0.1), ("3 auto", 3.0), ("2auto", 2.0), ("paper", None), (0.5, None)],
        *[("-1 auto", None), ("0 auto", None), ("inf auto", None), ("nan auto", None), ("much auto", None)],
    ],
)
def test_multiples_of_auto(scale, times):
    assert times_auto(scale) == times
    if times is not None or scale in ("paper", 0.5):
        check_weight_scale(scale)
    else:
        with pytest.raises(ValueError, match=r"`weight_scale` must be 'auto', a multiple of it as '0\.1 auto'"):
            check_weight_scale(scale)


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, None, "Auto", True])
def test_other_scales_are_refused(scale):
    with pytest.raises(ValueError, match="`weight_scale` must be 'auto'"):
        check_weight_scale(scale)
