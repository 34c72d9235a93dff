"""Both layers as real matrices on raw columns: what prediction multiplies by.

The row of Φ_R(W)ᵀ that belongs to a component of an input is the one that its column takes, and the column of Φ_R(M)ᵀ
that belongs to a component of an output is the one that comes out; rows and columns of unused places are left out.
The matrices live where the weights do, and so do the rows that are predicted from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hyperelm import activations
from hyperelm._arrays import as_precision, concatenated, namespace, numpy_dtype, row_block, to_numpy, zeros
from hyperelm._validation import FloatArray, check_whole
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
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

    def _build_operators(self) -> None:
        """encoder, (columns, L d), and decoder, (L d [+ columns], outputs), with the rows of their biases, if any."""
        D, W, M = self._input.features, to_numpy(self.hidden_weights_), to_numpy(self.output_weights_)
        inputs = slice(None) if self._input.is_flat else self._input.places
        outputs = slice(None) if self._output.is_flat else self._output.places
        encoder_bias = decoder_bias = None
        # What was fitted, whatever the parameters are by now.
        if len(W) > D:
            encoder_bias = W[D].ravel()
            M, decoder_bias = M[:-1], M[-1].ravel()[outputs]
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

    def _columns(self, X: Any) -> FloatArray:
        """Rows as the layers take them, (n, columns)."""
        rows = as_precision(X, numpy_dtype(self._encoder))
        columns: FloatArray = namespace(X=X).reshape(rows, (X.shape[0], self._input.columns))
        return columns

    def _codes(self, X: Any) -> FloatArray:
        """The hidden layer of raw rows, (n, L d): one real product and the activation."""
        h: FloatArray = self._columns(X) @ self._encoder
        if self._encoder_bias is not None:
            h += self._encoder_bias
        return activations.apply(self._activation, h)

    def _decode(self, H: FloatArray) -> FloatArray:
        """The output layer of codes, (n, L d) -> (n, columns): one real product."""
        Y: FloatArray = H @ self._decoder
        if self._decoder_bias is not None:
            Y += self._decoder_bias
        return Y

    def _outputs(self, X: Any) -> FloatArray:
        """The network's output for raw rows, (n, columns), block by block."""
        Y: FloatArray = zeros((X.shape[0], self._output.columns), self._encoder)
        for rows in self._row_blocks(X):
            x = row_block(X, rows)
            H = self._codes(x)
            Y[rows, ...] = self._decode(concatenated([H, self._columns(x)], axis=1) if self._linked else H)
        return Y
