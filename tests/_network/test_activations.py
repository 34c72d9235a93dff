"""Every activation against its formula: in place, in any namespace, and under its name."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm._backend.arrays import to_numpy
from hyperelm._network import activations

TANH = activations.ACTIVATIONS["tanh"]
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

OF_MODULUS = {"modtanh": math.tanh, "modrelu": lambda r: max(r - 0.5, 0.0)}


def test_all_have_a_formula_here():
    assert set(activations.ACTIVATIONS) == set(FORMULAS) | set(OF_MODULUS)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_the_formula(name, dtype, library):
    x = np.concatenate([np.linspace(-4, 4, 81), [-1.0, 0.0, 1.0, -30.0, 30.0]]).astype(dtype).reshape(-1, 2)
    expected = np.vectorize(FORMULAS[name], otypes=[float])(x.astype(float))
    result = to_numpy(activations.apply(activations.get(name), library(x), -1))
    assert result.dtype == dtype
    assert_allclose(result, expected, rtol=0, atol=30 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", FORMULAS)
def test_works_in_place_also_on_views(name):
    whole = np.random.default_rng(0).standard_normal((6, 8))
    expected = activations.apply(activations.get(name), whole[:, ::2].copy(), -1)
    view = whole[:, ::2]
    assert np.shares_memory(activations.apply(activations.get(name), view, -1), whole)
    assert_array_equal(view, expected)


@pytest.mark.parametrize("name", FORMULAS)
def test_large_arguments_are_silent(name, library):
    """Warnings are errors here: no overflow on the way."""
    x = np.array([-1e30, -800.0, 800.0, 1e30])
    assert np.all(np.isfinite(to_numpy(activations.apply(activations.get(name), library(x), -1))))
    single = np.array([-1e4, -800.0, 800.0, 1e4], dtype=np.float32)
    assert np.all(np.isfinite(to_numpy(activations.apply(activations.get(name), library(single), -1))))


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 4e-16), (np.float32, 2e-7)])
def test_error_of_tanh(dtype, tol):
    """Where some values are large: that of a number near 1, for all of them."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(-25, 25, 100_001),
            rng.standard_normal(100_000),
            0.25 + 1e-3 * rng.standard_normal(10_000),
            rng.choice([-1, 1], 10_000) * 10.0 ** rng.uniform(-30, 30, 10_000),
            [0.0, -0.0, np.finfo(dtype).tiny, np.finfo(dtype).max, np.finfo(dtype).min],
        ]
    ).astype(dtype)
    y = TANH(x.copy())
    assert y.dtype == dtype
    assert np.abs(y.astype(float) - np.tanh(x.astype(float))).max() < tol
    assert np.abs(y).max() == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("largest", [0.2499, 1e-3, 1e-9, 1e-30])
def test_tanh_of_small_values_is_accurate_to_each(dtype, largest):
    rng = np.random.default_rng(0)
    x = (largest * 10.0 ** -rng.uniform(0, 7, 1000) * rng.choice([-1, 1], 1000)).astype(dtype)
    expected = [math.tanh(value) for value in x.tolist()]
    assert_allclose(TANH(x), expected, rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("other", [0.1, 3.0])
def test_tanh_of_infinities_and_nan(dtype, other):
    x = np.array([np.inf, other, -np.inf], dtype)
    assert_allclose(TANH(x), [1, math.tanh(other), -1], rtol=1e-6)
    x = np.array([other, np.nan, -other], dtype)
    assert_allclose(TANH(x), [math.tanh(other), np.nan, -math.tanh(other)], rtol=1e-6)
    assert np.isnan(TANH(np.full((2, 3), np.nan, dtype))).all()


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "planar"])
def test_tanh_works_in_place(scale, layout):
    x = scale * np.random.default_rng(0).standard_normal((4, 6, 8))
    x = {"C": x, "F": np.asfortranarray(x), "strided": x[:, ::2, 1:7], "planar": np.moveaxis(x, 0, -1)}[layout]
    expected = np.tanh(x)
    assert TANH(x) is x
    assert_allclose(x, expected, rtol=0, atol=4e-16)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 4)])
def test_tanh_of_nothing(shape):
    x = np.zeros(shape)
    assert TANH(x) is x


@pytest.mark.parametrize(
    ("written", "name"),
    [("Tanh", "tanh"), ("leaky relu", "leaky_relu"), ("hard-tanh", "hard_tanh"), ("ReLU", "relu"), ("SINE", "sine")],
)
def test_spellings(written, name):
    assert activations.get(written) is activations.ACTIVATIONS[name]


def test_callables():
    assert activations.get(np.cos) is np.cos
    x = np.array([[0.5, -1.0]], dtype=np.float32)
    result = activations.apply(lambda values: np.cos(values).astype(np.float64), x, -1)
    assert result.dtype == np.float32
    assert_allclose(result, np.cos([[0.5, -1.0]]), rtol=1e-6)
    assert_array_equal(activations.apply(lambda values: values.tolist(), x, -1), x)


@pytest.mark.parametrize("function", [lambda x: x[:, :1], lambda x: x.sum(), lambda x: x[None]])
def test_callables_of_another_shape_are_refused(function):
    with pytest.raises(
        ValueError, match=r"`activation` must work on each component and keep the shape \(3, 4\), got an array of shape"
    ):
        activations.apply(function, np.ones((3, 4)), -1)


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


@pytest.mark.parametrize("name", FORMULAS)
def test_a_built_in_one_has_a_name_and_is_pickled_by_it(name):
    activation = activations.get(name)
    assert activations.name_of(activation) == name
    assert pickle.loads(pickle.dumps(activation)) is activation


def test_a_function_of_the_user_has_no_name_for_a_file():
    with pytest.raises(ValueError, match="`activation` must be a name for the model to go to a file, got <ufunc 'cos'"):
        activations.name_of(np.cos)


# ---------------------------------------------------------------------- of the modulus


def turned(f, x, axis):
    """f(|x|) x/|x|, number by number."""
    x = np.moveaxis(x.astype(float), axis, -1)
    y = np.zeros_like(x)
    for at in np.ndindex(x.shape[:-1]):
        r = math.hypot(*x[at])
        y[at] = f(r) / r * x[at] if r > 0 else 0.0
    return np.moveaxis(y, -1, axis)


@pytest.mark.parametrize("name", OF_MODULUS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("size", [1.0, 1e-25, 1e-42, 1e25])
def test_of_the_modulus_against_the_formula(name, dtype, axis, size, library):
    """Also where squares are beyond the precision, and of zero."""
    x = (size * np.random.default_rng(0).standard_normal((4, 5, 4))).astype(dtype)
    x[0, 0] = x[:, 1, 1] = 0
    result = to_numpy(activations.apply(activations.get(name), library(x.copy()), axis))
    assert result.dtype == dtype
    tol = 30 * np.finfo(dtype).eps * min(1.0, size) + np.finfo(dtype).smallest_subnormal
    assert_allclose(result, turned(OF_MODULUS[name], x, axis), rtol=1e-4 if size > 1 else 0, atol=max(tol, 1e-45))


def test_of_the_modulus_keeps_the_direction_of_infinite_products(library):
    x = np.array([[np.inf, 0.0], [1e308, -1e308], [-np.inf, 3.0]])
    y = to_numpy(activations.apply(activations.get("modtanh"), library(x.copy()), -1))
    assert_allclose(y, [[1, 0], [0.5**0.5, -(0.5**0.5)], [-1, 0]], atol=1e-15)
