"""Activations: a real function f of each component, f(x) = f(x₀) + f(x₁)i₁ + … (equation 26), or of the modulus.

An activation of the modulus keeps the direction of a number z: it is f(|z|) z/|z|, with the Euclidean norm |z| of the
components. Multiplying by a unit number of the complex numbers or quaternions keeps the norm. So a layer without a bias
turns with its inputs: f(|uz|) uz/|uz| = u f(|z|) z/|z|.

One dictionary holds all that is known of each: the function in place on a NumPy array, its formula in any namespace,
and the nodes of an ONNX graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from hyperelm._backend import backend_of
from hyperelm._backend.arrays import as_precision, numpy_dtype
from hyperelm._validation import FloatArray

Nodes = tuple[tuple[str, tuple[float, ...]], ...]
# What "modrelu" takes off a modulus. A modulus is never negative, so relu(|z|) alone would change nothing.
MODULUS_THRESHOLD = 0.5


@dataclass(frozen=True)
class Activation:
    """A built-in activation.

    in_place : on a NumPy array, which it overwrites and returns
    formula : of an array x and its namespace xp, which need not have all of NumPy's functions
    nodes : the operators of an ONNX graph, one after the other, each with its further inputs
    of_modulus : whether x is the modulus of a number, and not a component
    """

    name: str
    in_place: Callable[[FloatArray], FloatArray]
    formula: Callable[[Any, Any], Any]
    nodes: Nodes
    of_modulus: bool = False

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.in_place(x)

    def on_axis(self, axis: int) -> Activation:
        """The function of an array whose components lie along this axis."""
        if not self.of_modulus:
            return self
        in_place = partial(_scaled_modulus, f=self.in_place, axis=axis)
        return replace(self, in_place=in_place, formula=partial(_modulus_formula, f=self.formula, axis=axis))

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (self.name,)

    def __getstate__(self) -> dict[str, Any]:
        """The name alone, for skops, which does not ask `__reduce__` and cannot store functions."""
        return {"name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(ACTIVATIONS[state["name"]].__dict__)


def _tanh(x: FloatArray) -> FloatArray:
    """1 - 2/(e²ˣ + 1), which takes half the time of NumPy's tanh

    Its absolute error is eps. Pre-activations near 1 have that error already. Where all values are small, NumPy's tanh
    keeps their relative accuracy.
    """
    some = x[..., :1]  # a cheap test first: one column mostly shows a large value
    if all(max(part.max(initial=0), -part.min(initial=0)) < 0.25 for part in (some, x)):
        return np.tanh(x, out=x)
    with np.errstate(over="ignore"):
        x *= 2
        np.exp(x, out=x)
        x += 1
        np.divide(-2, x, out=x)
        x += 1
    return x


def _sigmoid(x: FloatArray) -> FloatArray:
    """1/(1 + e⁻ˣ)"""
    return expit(x, out=x)


def _relu(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0, out=x)


def _leaky_relu(x: FloatArray) -> FloatArray:
    """x, or 0.01 x where that is larger"""
    return np.multiply(x, x.dtype.type(0.01), out=x, where=x < 0)


def _sine(x: FloatArray) -> FloatArray:
    return np.sin(x, out=x)


def _gaussian(x: FloatArray) -> FloatArray:
    """exp(-x²)"""
    np.square(x, out=x)
    np.negative(x, out=x)
    return np.exp(x, out=x)


def _identity(x: FloatArray) -> FloatArray:
    return x


def _hard_tanh(x: FloatArray) -> FloatArray:
    return np.clip(x, -1, 1, out=x)


def _softsign(x: FloatArray) -> FloatArray:
    """x/(1 + |x|)"""
    np.clip(x, np.finfo(x.dtype).min, np.finfo(x.dtype).max, out=x)  # infinities give ±1
    return np.divide(x, 1 + np.abs(x), out=x)


def _shrink(x: FloatArray) -> FloatArray:
    """max(x - 1/2, 0)"""
    x -= x.dtype.type(MODULUS_THRESHOLD)
    return _relu(x)


def _scaled_modulus(x: FloatArray, f: Callable[[FloatArray], FloatArray], axis: int) -> FloatArray:
    """f(|x|) x/|x| in place."""
    with np.errstate(over="ignore", under="ignore"):
        r = np.sqrt(np.sum(np.square(x), axis=axis, keepdims=True))
    if r.min(initial=1) < 1e3 * np.sqrt(np.finfo(x.dtype).tiny) or not np.isfinite(r).all():
        x[...] = _modulus_formula(x, np, lambda y, _: f(y), axis)  # zeros, or squares beyond the precision
    else:
        x *= f(r.copy()) / r
    return x


def _modulus_formula(x: Any, xp: Any, f: Callable[[Any, Any], Any], axis: int) -> Any:
    """f(|x|) x/|x|, with components in units of the largest, so that no square is beyond the precision."""
    largest = float(np.finfo(numpy_dtype(x)).max)
    x = xp.where(x > largest, largest, xp.where(x < -largest, -largest, x))
    units = xp.max(xp.abs(x), axis=axis, keepdims=True)
    x = x / xp.where(units > 0, units, xp.ones_like(units))
    lengths = xp.sqrt(xp.sum(x * x, axis=axis, keepdims=True))  # from 1 to √d, or 0
    with np.errstate(over="ignore"):
        values = f(units * lengths, xp)
    return x * (values / xp.where(lengths > 0, lengths, xp.ones_like(lengths)))


ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("tanh", _tanh, lambda x, xp: xp.tanh(x), (("Tanh", ()),)),
        Activation("sigmoid", _sigmoid, lambda x, xp: 0.5 + 0.5 * xp.tanh(0.5 * x), (("Sigmoid", ()),)),
        Activation("relu", _relu, lambda x, xp: 0.5 * (x + xp.abs(x)), (("Relu", ()),)),
        Activation("leaky_relu", _leaky_relu, lambda x, xp: xp.where(x < 0, 0.01 * x, x), (("PRelu", (0.01,)),)),
        Activation("sine", _sine, lambda x, xp: xp.sin(x), (("Sin", ()),)),
        Activation("gaussian", _gaussian, lambda x, xp: xp.exp(-x * x), (("Pow", (2.0,)), ("Neg", ()), ("Exp", ()))),
        Activation("identity", _identity, lambda x, _: x, ()),
        Activation(
            "hard_tanh", _hard_tanh, lambda x, xp: xp.where(xp.abs(x) < 1, x, xp.sign(x)), (("Clip", (-1.0, 1.0)),)
        ),
        Activation(
            "softsign",
            _softsign,
            lambda x, xp: xp.where(xp.isinf(x), xp.sign(x), x / (1 + xp.abs(x))),
            (("Softsign", ()),),
        ),
        Activation("modtanh", _tanh, lambda x, xp: xp.tanh(x), (("Tanh", ()),), of_modulus=True),
        Activation(
            "modrelu",
            _shrink,
            lambda x, xp: xp.where(x > MODULUS_THRESHOLD, x - MODULUS_THRESHOLD, xp.zeros_like(x)),
            (("Sub", (MODULUS_THRESHOLD,)), ("Relu", ())),
            of_modulus=True,
        ),
    )
}
Function = Activation | Callable[[Any], Any]


def get(activation: str | Function) -> Function:
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


def name_of(function: Function) -> str:
    """The name of a built-in activation; others have none that a file could bring along."""
    if isinstance(function, Activation):
        return function.name
    raise ValueError(
        f"`activation` must be a name for the model to go to a file, got {function!r}: a file that brings its own "
        f"function would run code. Fit with one of {', '.join(map(repr, ACTIVATIONS))}, or use pickle for files of "
        "your own."
    )


def apply(function: Function, x: FloatArray, axis: int) -> FloatArray:
    """`function` of x, which it may overwrite; checked to be of the same shape. Components lie along `axis`."""
    y = backend_of(x).activate(function.on_axis(axis) if isinstance(function, Activation) else function, x)
    if y.shape != x.shape:
        raise ValueError(
            f"`activation` must work on each component and keep the shape {tuple(x.shape)}, got an array of shape "
            f"{tuple(y.shape)}."
        )
    return as_precision(y, numpy_dtype(x))
