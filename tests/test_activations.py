"""Every activation against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import activations

FORMULAS = {
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "relu": lambda x: x if x > 0 else 0.0,
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "sine": math.sin,
    "gaussian": lambda x: math.exp(-x * x),
    "identity": lambda x: x,
    "hard_tanh": lambda x: -1.0 if x < -1 else 1.0 if x > 1 else x,
    "softsign": lambda x: x / (1 + abs(x)),
}


def test_all_have_a_formula_here():
    assert set(activations.ACTIVATIONS) == set(FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_the_formula(name, dtype):
    x = np.concatenate([np.linspace(-4, 4, 81), [-1.0, 0.0, 1.0, -30.0, 30.0]]).astype(dtype).reshape(-1, 2)
    expected = np.vectorize(FORMULAS[name], otypes=[float])(x.astype(float))
    result = activations.apply(activations.get(name), x)
    assert result.dtype == dtype
    assert_allclose(result, expected, rtol=0, atol=30 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", FORMULAS)
def test_works_in_place_also_on_views(name):
    whole = np.random.default_rng(0).standard_normal((6, 8))
    expected = activations.apply(activations.get(name), whole[:, ::2].copy())
    view = whole[:, ::2]
    assert np.shares_memory(activations.apply(activations.get(name), view), whole)
    assert_array_equal(view, expected)


@pytest.mark.parametrize("name", FORMULAS)
def test_large_arguments_are_silent(name):
    """Warnings are errors here: no overflow on the way."""
    x = np.array([-1e30, -800.0, 800.0, 1e30])
    assert np.all(np.isfinite(activations.apply(activations.get(name), x)))
    single = np.array([-1e4, -800.0, 800.0, 1e4], dtype=np.float32)
    assert np.all(np.isfinite(activations.apply(activations.get(name), single)))


@pytest.mark.parametrize(
    ("written", "name"),
    [("Tanh", "tanh"), ("leaky relu", "leaky_relu"), ("hard-tanh", "hard_tanh"), ("ReLU", "relu"), ("SINE", "sine")],
)
def test_spellings(written, name):
    assert activations.get(written) is activations.ACTIVATIONS[name]


def test_callables():
    assert activations.get(np.cos) is np.cos
    x = np.array([[0.5, -1.0]], dtype=np.float32)
    result = activations.apply(lambda values: np.cos(values).astype(np.float64), x)
    assert result.dtype == np.float32
    assert_allclose(result, np.cos([[0.5, -1.0]]), rtol=1e-6)
    assert_array_equal(activations.apply(lambda values: values.tolist(), x), x)


@pytest.mark.parametrize("function", [lambda x: x[:, :1], lambda x: x.sum(), lambda x: x[None]])
def test_callables_of_another_shape_are_refused(function):
    with pytest.raises(
        ValueError, match=r"`activation` must work on each component and keep the shape \(3, 4\), got an array of shape"
    ):
        activations.apply(function, np.ones((3, 4)))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("tahn", ValueError, r"got 'tahn'\. Did you mean 'tanh'\?"),
        ("sigmoidal", ValueError, "Did you mean 'sigmoid'"),
        ("gausian", ValueError, "Did you mean 'gaussian'"),
        ("zzz", ValueError, r"or a callable, got 'zzz'\.$"),
        (None, TypeError, "`activation` must be a name or a callable, got None"),
        (3, TypeError, "`activation` must be a name or a callable, got 3"),
    ],
)
def test_messages(name, error, message):
    with pytest.raises(error, match=message):
        activations.get(name)
