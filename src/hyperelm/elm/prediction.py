"""Both layers as real matrices on raw columns: what prediction multiplies by.

The row of Φ_R(W)ᵀ that belongs to a component of an input is the one that its column takes, and the column of Φ_R(M)ᵀ
that belongs to a component of an output is the one that comes out; rows and columns of unused places are left out.
The matrices live where the weights do, and so do the rows that are predicted from.

Rows that are too large for the precision of the model, or whose products are, go through both layers once more, in
double and each in a unit u of its own, xA = u((x/u)A). What is then beyond the precision is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hyperelm import activations
from hyperelm._arrays import as_precision, concatenated, namespace, numpy_dtype, row_block, to_numpy, zeros
from hyperelm._validation import FloatArray, check_whole
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.bias import times_bias
from hyperelm.elm.dispatch import kept_beside
from hyperelm.elm.layout import Layout
from hyperelm.products import right_operator
from hyperelm.solvers.sums import row_blocks


class _Operator:
    """What `_build_operators` sets, built when it is first asked for: it is d times as large as the weights."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        with np.errstate(all="ignore"):  # weights from a file may be of any size
            model._build_operators()
        return vars(model)[self._name]


class Prediction:
    """The part of an estimator that is needed when it is fitted."""

    algebra_: Algebra
    hidden_weights_: FloatArray
    output_weights_: FloatArray
    chunk_size: int | None
    _activation: Activation
    _encoder: Any = _Operator()
    _encoder_bias: Any = _Operator()
    _decoder: Any = _Operator()
    _decoder_bias: Any = _Operator()
    _linked: Any = _Operator()
    _input: Layout
    _output: Layout

    @property
    def _offset(self) -> FloatArray | None:
        """What raw columns lose before the first product, if anything."""
        return None

    def _build_operators(self) -> None:
        """encoder, (columns, L d), and decoder, (L d [+ columns], outputs), with the rows of their biases, if any."""
        D, W, M = self._input.features, to_numpy(self.hidden_weights_), to_numpy(self.output_weights_)
        inputs = slice(None) if self._input.is_flat else self._input.places
        outputs = slice(None) if self._output.is_flat else self._output.places
        encoder_bias = decoder_bias = None
        # What was fitted, whatever the parameters are by now.
        if len(W) > D:
            encoder_bias = times_bias(W[D], self.algebra_).ravel()
            M, decoder_bias = M[:-1], times_bias(M[-1], self.algebra_).ravel()[outputs]
        self._linked = len(M) > W.shape[1]
        encoder, decoder = right_operator(W[:D], self.algebra_)[inputs], right_operator(M, self.algebra_)[:, outputs]
        if self._linked:
            split = W.shape[1] * self.algebra_.dim
            decoder = np.concatenate([decoder[:split], decoder[split:][inputs]])
        self._encoder, self._encoder_bias, self._decoder, self._decoder_bias = (
            None if matrix is None else kept_beside(matrix, self.hidden_weights_)
            for matrix in (encoder, encoder_bias, decoder, decoder_bias)
        )

    def _check_chunk_size(self) -> None:
        if self.chunk_size is not None:
            check_whole(self.chunk_size, "chunk_size")

    def _row_blocks(self, X: Any) -> Iterator[slice]:
        self._check_chunk_size()  # which may have been changed since the fit
        return row_blocks(X.shape[0], self.chunk_size or 4096)

    def _columns(self, X: Any, dtype: np.dtype[Any]) -> FloatArray:
        """Rows as the layers take them, (n, columns)."""
        columns = namespace(X=X).reshape(X, (X.shape[0], self._input.columns))
        return as_precision(columns if self._offset is None else columns - self._offset, dtype)

    def _codes(self, X: Any) -> FloatArray:
        """The hidden layer of raw rows, (n, L d): one real product and the activation."""
        return self._in_range(X, lambda product, dtype: self._hidden(self._columns(X, dtype), product))

    def _decode(self, H: Any) -> FloatArray:
        """The output layer of codes, (n, L d) -> (n, columns): one real product."""
        return self._in_range(
            H, lambda product, dtype: product(as_precision(H, dtype), self._decoder, self._decoder_bias)
        )

    def _outputs(self, X: Any) -> FloatArray:
        """The network's output for raw rows, (n, columns), block by block."""
        Y: FloatArray = zeros((X.shape[0], self._output.columns), self._encoder)
        for rows in self._row_blocks(X):
            Y[rows, ...] = self._block_outputs(row_block(X, rows))
        return Y

    def _block_outputs(self, X: Any) -> FloatArray:
        def both(product: Product, dtype: np.dtype[Any]) -> FloatArray:
            x = self._columns(X, dtype)
            H = self._hidden(x, product)
            return product(concatenated([H, x], axis=1) if self._linked else H, self._decoder, self._decoder_bias)

        return self._in_range(X, both)

    def _hidden(self, x: FloatArray, product: Product) -> FloatArray:
        return activations.apply(self._activation, product(x, self._encoder, self._encoder_bias))

    def _in_range(self, X: Any, layers: Callable[[Product, np.dtype[Any]], FloatArray]) -> FloatArray:
        """What layers make of rows X in the precision of the model, or, where a product is not finite, in double."""
        dtype = numpy_dtype(self._encoder)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                Y = layers(_affine, dtype)
            except _NotFinite:
                Y = as_precision(layers(_affine_in_units, np.dtype(np.float64)), dtype)
        return self._within_precision(Y, X)

    def _within_precision(self, Y: FloatArray, X: Any) -> FloatArray:
        """What was computed from rows X; infinities and what came of them are refused."""
        xp = namespace(X=X)
        if not xp.all(xp.isfinite(Y)):
            raise ValueError(
                f"`X` must have rows whose codes and outputs are within {numpy_dtype(self._encoder)}, the precision of "
                f"the model, got numbers up to {float(xp.max(xp.abs(X))):.1e}. Divide `X` by its size, or fit in "
                "double precision."
            )
        return Y


# xA + a in the precision of x, of rows x, a matrix A and a bias a, if any.
Product = Callable[[Any, Any, Any], Any]


class _NotFinite(ArithmeticError):
    """A product of finite rows is not finite: its sign may be wrong, so that no activation may see it."""


def _affine(x: FloatArray, A: FloatArray, a: FloatArray | None) -> FloatArray:
    y: FloatArray = x @ A
    if a is not None:
        y += a
    xp = namespace(y=y)
    if not xp.isfinite(xp.sum(y)):  # one pass without memory; a sum that is too large itself does no harm
        raise _NotFinite
    return y


def _affine_in_units(x: FloatArray, A: FloatArray, a: FloatArray | None) -> FloatArray:
    """The same in double, for rows of any size: a product that is beyond it is infinite, with the right sign."""
    xp, double = namespace(x=x), np.dtype(np.float64)
    sizes = xp.max(xp.abs(x), axis=1, keepdims=True)
    units = xp.where(sizes > 1, sizes, xp.ones_like(sizes))
    y: FloatArray = ((x / units) @ as_precision(A, double)) * units
    return y if a is None else y + as_precision(a, double)
