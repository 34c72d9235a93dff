"""Split activations: a real function f applied to each component, f(x) = f(x₀) + f(x₁)i₁ + … (equation 26).

The built-in ones work in place on the NumPy array they are given, which they also return; `apply` takes their formula
for arrays of other libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy.special import expit

from hyperelm._arrays import are_together, as_precision, namespace, numpy_dtype
from hyperelm._validation import FloatArray

Activation = Callable[[Any], Any]


def tanh(x: FloatArray) -> FloatArray:
    """1 - 2/(e²ˣ + 1), which takes half the time of NumPy's tanh

    Its error is that of a number near 1, as is the error of a pre-activation in such company. Where all values are
    small, so are their errors, and NumPy keeps them.
    """
    some = x[..., :1]  # which mostly tell that not all are small
    if all(max(part.max(initial=0), -part.min(initial=0)) < 0.25 for part in (some, x)):
        return np.tanh(x, out=x)
    with np.errstate(over="ignore"):
        x *= 2
        np.exp(x, out=x)
        x += 1
        np.divide(-2, x, out=x)
        x += 1
    return x


def sigmoid(x: FloatArray) -> FloatArray:
    """1/(1 + e⁻ˣ)"""
    return expit(x, out=x)


def relu(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0, out=x)


def leaky_relu(x: FloatArray) -> FloatArray:
    """x, or 0.01 x where that is larger"""
    return np.multiply(x, x.dtype.type(0.01), out=x, where=x < 0)


def sine(x: FloatArray) -> FloatArray:
    return np.sin(x, out=x)


def gaussian(x: FloatArray) -> FloatArray:
    """exp(-x²)"""
    np.square(x, out=x)
    np.negative(x, out=x)
    return np.exp(x, out=x)


def identity(x: FloatArray) -> FloatArray:
    return x


def hard_tanh(x: FloatArray) -> FloatArray:
    return np.clip(x, -1, 1, out=x)


def softsign(x: FloatArray) -> FloatArray:
    """x/(1 + |x|)"""
    np.clip(x, np.finfo(x.dtype).min, np.finfo(x.dtype).max, out=x)  # infinities give ±1
    return np.divide(x, 1 + np.abs(x), out=x)


ACTIVATIONS: dict[str, Activation] = {
    function.__name__: function
    for function in (tanh, sigmoid, relu, leaky_relu, sine, gaussian, identity, hard_tanh, softsign)
}

# The same in any namespace, which need not have all of NumPy's functions.
_FORMULAS: dict[Activation, Callable[[Any, Any], Any]] = {
    tanh: lambda x, xp: xp.tanh(x),
    sigmoid: lambda x, xp: 0.5 + 0.5 * xp.tanh(0.5 * x),
    relu: lambda x, xp: 0.5 * (x + xp.abs(x)),
    leaky_relu: lambda x, xp: xp.where(x < 0, 0.01 * x, x),
    sine: lambda x, xp: xp.sin(x),
    gaussian: lambda x, xp: xp.exp(-x * x),
    identity: lambda x, _: x,
    hard_tanh: lambda x, xp: xp.where(xp.abs(x) < 1, x, xp.sign(x)),
    softsign: lambda x, xp: xp.where(xp.isinf(x), xp.sign(x), x / (1 + xp.abs(x))),
}


def get(activation: str | Activation) -> Activation:
    """The function called `activation`; a callable is returned as it is."""
    if callable(activation):
        return activation
    if not isinstance(activation, str):
        raise TypeError(f"`activation` must be a name or a callable, got {activation!r}.")
    name = activation.lower().replace("-", "_").replace(" ", "_")
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    near = get_close_matches(name, ACTIVATIONS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"`activation` must be one of {', '.join(map(repr, ACTIVATIONS))} or a callable, got {activation!r}.{hint}"
    )


def name_of(function: Activation) -> str:
    """The name of a built-in function; others have none that a file could bring along."""
    for name, known in ACTIVATIONS.items():
        if function is known:
            return name
    raise ValueError(
        f"`activation` must be a name for the model to go to a file, got {function!r}: a file that brings its own "
        f"function would run code. Fit with one of {', '.join(map(repr, ACTIVATIONS))}, or use pickle for files of "
        "your own."
    )


def apply(function: Activation, x: FloatArray) -> FloatArray:
    """`function` of every component of x, which it may overwrite; checked to be of the same shape."""
    xp = namespace(x=x)
    if xp is np:
        y = np.asarray(function(x))
    else:
        formula = _FORMULAS.get(function)
        y = function(x) if formula is None else formula(x, xp)
        if not are_together(x, y):
            raise ValueError(f"`activation` must give arrays of {xp.__name__} where it gets them, got {type(y)}.")
    if y.shape != x.shape:
        raise ValueError(
            f"`activation` must work on each component and keep the shape {tuple(x.shape)}, got an array of shape "
            f"{tuple(y.shape)}."
        )
    return as_precision(y, numpy_dtype(x))
