"""A fitted network as a value: both layers, the layouts of input and output, the algebra and the activation.

Prediction multiplies raw columns by real matrices,

    h = f((x - a) A + α),        y = h B (+ (x - a) C) + β.

A has the rows of Φ_R(W)ᵀ that belong to the columns of the input. B has the columns of Φ_R(M)ᵀ, or of the matrix of
another readout, that belong to the columns of the output. Rows and columns of unused components are left out, so
nothing is packed. The matrices live where the weights do, and so must the rows.

With a `Scaling` the network was trained on standardised columns x' = (x - a)/s and targets t' = (t - b)/u. All but a is
then part of the matrices: 1/s of A and C, u of B, C and β, and b of β. The difference x - a is taken first, because
xA/s - aA/s would lose the digits in which columns far from zero differ.

If rows or their products are too large for the precision of the network, their chunk goes through both layers once
more: in double precision and each row in a unit u of its own, xA = u((x/u)A). Outputs beyond the precision are
then refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import chunks, limits
from hyperelm._backend.arrays import (
    as_precision,
    chunk_of,
    concatenated,
    empty,
    kept_beside,
    moved,
    namespace,
    numpy_dtype,
    to_numpy,
)
from hyperelm._lazy import lazy
from hyperelm._linalg.products import right_operator
from hyperelm._network.activations import Function, apply
from hyperelm._network.layers import bias_number, times_bias
from hyperelm._network.layout import Layout
from hyperelm._network.readout import Readout
from hyperelm._validation import FloatArray

CHUNK = 4096  # rows that prediction takes at a time by default
# From rows x, a matrix A and a bias a, if any, to xA + a in the precision of x.
Product = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Offsets and scales of the input columns, a and s, and of the output columns, b and u."""

    input_offset: FloatArray
    input_scale: FloatArray
    output_offset: FloatArray
    output_scale: FloatArray


@dataclass(frozen=True, eq=False)
class Operators:
    """The real matrices of both layers.

    hidden, hidden_bias : A, (columns, L d), and α or None
    readout, readout_bias : B above C, (L d [+ columns], outputs), and β or None
    """

    hidden: Any
    hidden_bias: Any
    readout: Any
    readout_bias: Any


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network.

    Parameters
    ----------
    algebra : Algebra
    input, output : Layout
        How the columns of rows and targets lie in numbers.
    hidden_weights : array of shape (D + bias, L, d)
        W. The row of the bias is the last.
    output_weights : array of shape (L + direct-link inputs + bias, N, r)
        M. The row of the bias is the last.
    activation : Activation or callable
    readout : Readout
        How the output layer multiplies.
    scaling : Scaling or None
    """

    algebra: Algebra
    input: Layout
    output: Layout
    hidden_weights: Any
    output_weights: Any
    activation: Function
    readout: Readout
    scaling: Scaling | None = None

    # ------------------------------------------------------------------ facts

    @property
    def neurons(self) -> int:
        return int(self.hidden_weights.shape[1])

    @property
    def has_bias(self) -> bool:
        return bool(self.hidden_weights.shape[0] > self.input.features)

    @property
    def has_direct_link(self) -> bool:
        return bool(self.output_weights.shape[0] > self.neurons + self.has_bias)

    @property
    def n_parameters(self) -> int:
        """All real numbers in both layers, and those of a table that was learned.

        A free readout has weights from all components to those that columns of the output fill.
        """
        of_output = np.prod(self.output_weights.shape) + self.readout.n_parameters
        if self.readout.algebra is None:
            of_output = self.n_components * self.output.columns
        return int(np.prod(self.hidden_weights.shape) + of_output)

    @property
    def n_components(self) -> int:
        """The real columns that the output layer sees: components of neurons, columns that are linked, and the bias."""
        links = self.input.columns if self.has_direct_link else 0
        return self.neurons * self.algebra.dim + links + self.has_bias

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.hidden_weights)

    @property
    def offset(self) -> FloatArray | None:
        """What raw columns lose before the first product, if anything."""
        return None if self.scaling is None else self.scaling.input_offset

    def to(self, reference: Any) -> Network:
        """The same network with its weights where the array `reference` lives."""
        W, M = (moved(weights, reference) for weights in (self.hidden_weights, self.output_weights))
        return self if W is self.hidden_weights else replace(self, hidden_weights=W, output_weights=M)

    # ------------------------------------------------------------------ prediction

    def codes(self, X: Any, chunk_size: int | None = None) -> FloatArray:
        """The hidden layer of raw rows, (n, L d)."""
        return self._by_chunks(X, self._chunk_codes, self.operators.hidden.shape[1], chunk_size)

    def decode(self, H: Any) -> FloatArray:
        """The output layer of codes, (n, L d) -> (n, columns)."""
        ops = self.operators
        return self._in_range(H, lambda product, dtype: product(as_precision(H, dtype), ops.readout, ops.readout_bias))

    def outputs(self, X: Any, chunk_size: int | None = None) -> FloatArray:
        """The output of the network for raw rows, (n, columns)."""
        return self._by_chunks(X, self._chunk_outputs, self.output.columns, chunk_size)

    def outputs_beside(self, other: Network, X: Any, chunk_size: int | None = None) -> tuple[FloatArray, FloatArray]:
        """The outputs for raw rows, and those of a network that has the same hidden layer."""
        mine, others = self.operators, other.operators
        bias = None if mine.readout_bias is None else concatenated([mine.readout_bias, others.readout_bias], axis=0)
        joined = replace(mine, readout=concatenated([mine.readout, others.readout], axis=1), readout_bias=bias)
        columns = self.output.columns
        both = self._by_chunks(X, partial(self._chunk_outputs, ops=joined), columns + other.output.columns, chunk_size)
        return both[:, :columns], both[:, columns:]

    def _by_chunks(self, X: Any, layers: Callable[[Any], Any], columns: int, chunk_size: int | None) -> FloatArray:
        Y: FloatArray = empty((X.shape[0], columns), self.hidden_weights)
        for at in chunks(X.shape[0], chunk_size or CHUNK):
            Y[at, ...] = layers(chunk_of(X, at))
        return Y

    def _chunk_codes(self, X: Any) -> FloatArray:
        return self._in_range(X, lambda product, dtype: self._hidden(self._columns(X, dtype), product))

    def _chunk_outputs(self, X: Any, ops: Operators | None = None) -> FloatArray:
        ops = self.operators if ops is None else ops

        def both(product: Product, dtype: np.dtype[Any]) -> FloatArray:
            x = self._columns(X, dtype)
            H = self._hidden(x, product)
            seen = concatenated([H, x], axis=1) if self.has_direct_link else H
            return product(seen, ops.readout, ops.readout_bias)

        return self._in_range(X, both)

    def _columns(self, X: Any, dtype: np.dtype[Any]) -> FloatArray:
        """Rows as the first product takes them, (n, columns)."""
        columns = namespace(X=X).reshape(X, (X.shape[0], self.input.columns))
        return as_precision(columns if self.offset is None else columns - self.offset, dtype)

    def _hidden(self, x: FloatArray, product: Product) -> FloatArray:
        h, xp = product(x, self.operators.hidden, self.operators.hidden_bias), namespace(x=x)
        numbers = xp.reshape(h, (h.shape[0], self.neurons, self.algebra.dim))
        codes: FloatArray = xp.reshape(apply(self.activation, numbers, -1), h.shape)
        return codes

    def _in_range(self, X: Any, layers: Callable[[Product, np.dtype[Any]], FloatArray]) -> FloatArray:
        """Call `layers` in the precision of the network, and again in double if a product is not finite.

        X is only named in the error.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                Y = layers(_affine, self.dtype)
            except _NotFiniteError:
                Y = as_precision(layers(_affine_in_units, np.dtype(np.float64)), self.dtype)
        return self.within_precision(Y, X)

    def within_precision(self, Y: FloatArray, X: Any) -> FloatArray:
        """Y, computed from rows X; refused where it is not finite."""
        xp = namespace(X=X)
        if not xp.all(xp.isfinite(Y)):
            raise limits.refused(
                "X",
                f"have rows whose codes and outputs are within {self.dtype}, the precision of the model",
                f"numbers up to {float(xp.max(xp.abs(X))):.1e}",
                "Divide `X` by its size, or fit in double precision.",
            )
        return Y

    # ------------------------------------------------------------------ matrices

    @lazy
    def operators(self) -> Operators:
        """The real matrices, built when they are first asked for: they are d times as large as the weights."""
        with np.errstate(all="ignore"):  # weights from a file may be of any size
            return self._scaled(self._unscaled())

    def _unscaled(self) -> Operators:
        """The matrices of standardised columns, in NumPy."""
        D, W, M = self.input.features, to_numpy(self.hidden_weights), to_numpy(self.output_weights)
        inputs = slice(None) if self.input.is_flat else self.input.places
        outputs = slice(None) if self.output.is_flat else self.output.places
        hidden_bias = readout_bias = None
        if self.has_bias:
            hidden_bias = times_bias(W[D], self.algebra).ravel()
            e = bias_number(self.algebra).astype(M.dtype)
            M, readout_bias = M[:-1], (e @ self.readout.operator(M[-1:]))[outputs]
        hidden, readout = right_operator(W[:D], self.algebra)[inputs], self.readout.operator(M)[:, outputs]
        if self.has_direct_link:
            split = self.neurons * self.algebra.dim
            readout = np.concatenate([readout[:split], readout[split:][inputs]])
        return Operators(hidden, hidden_bias, readout, readout_bias)

    def _scaled(self, ops: Operators) -> Operators:
        """The matrices of raw columns, where the weights live."""
        if self.scaling is not None:
            s, u, b = self.scaling.input_scale, self.scaling.output_scale, self.scaling.output_offset
            readout, bias = ops.readout.copy(), 0 if ops.readout_bias is None else ops.readout_bias
            if self.has_direct_link:
                readout[-len(s) :] /= s[:, None]
            ops = Operators(ops.hidden / s[:, None], ops.hidden_bias, readout * u, bias * u + b)
        matrices = (ops.hidden, ops.hidden_bias, ops.readout, ops.readout_bias)
        return Operators(*(None if m is None else kept_beside(m, self.hidden_weights) for m in matrices))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "operators"}


class _NotFiniteError(ArithmeticError):
    """A product of finite rows is not finite: its sign may be wrong, so no activation may see it."""


def _affine(x: FloatArray, A: FloatArray, a: FloatArray | None) -> FloatArray:
    y: FloatArray = x @ A
    if a is not None:
        y += a
    xp = namespace(y=y)
    if not xp.isfinite(xp.sum(y)):  # one pass without memory; a sum that is too large itself does no harm
        raise _NotFiniteError
    return y


def _affine_in_units(x: FloatArray, A: FloatArray, a: FloatArray | None) -> FloatArray:
    """The same in double, for rows of any size: a product that is beyond it is infinite, with the right sign."""
    xp, double = namespace(x=x), np.dtype(np.float64)
    sizes = xp.max(xp.abs(x), axis=1, keepdims=True)
    units = xp.where(sizes > 1, sizes, xp.ones_like(sizes))
    y: FloatArray = ((x / units) @ as_precision(A, double)) * units
    return y if a is None else y + as_precision(a, double)
