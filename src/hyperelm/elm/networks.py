"""Many small networks of one algebra and size on the same rows, trained together.

For a few dozen neurons the arithmetic of a fit takes less time than the calls that start it. So the hidden layers of B
networks are one product, and the normal equations of each follow from its component sums H_sᵀH_t and H_sᵀT_k,

    Φ_L(H)ᵀΦ_L(H) = Σ_st (L_sᵀL_t) ⊗ H_sᵀH_t,        Φ_L(H)ᵀφ(T) = Σ_sk L_s[k, :] ⊗ H_sᵀT_k,

where L_s is the matrix of left multiplication by unit s. Beyond a condition of 1e4 the answer is refined once with the
residual of the rows, which leaves an error of eps times the condition up to 1e6; beyond, `lstsq` finds it by `qr`.
Results are those of `ELMRegressor(ridge=0)` with the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hyperelm import activations, linalg
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.bias import bias_number, times_bias
from hyperelm.products import matmul, right_operator
from hyperelm.solvers.choice import LARGEST_CONDITION

Array = NDArray[np.float64]

_REFINABLE = 1e6


class Networks:
    """B networks with the given hidden weights.

    Parameters
    ----------
    algebra : Algebra
    weights : array of shape (B, D + 1, L, d)
        The last row is that of the bias, an extra input: the number e of `bias`.
    activation : str or callable

    Attributes
    ----------
    output_weights_ : array of shape (B, L + 1, N, d)
        The row of the bias is the last.
    """

    def __init__(self, algebra: Algebra, weights: Array, activation: str | Activation = "tanh") -> None:
        self.algebra, self.weights = algebra, weights
        self._activation = activations.get(activation)
        # Φ_R(W)ᵀ, and below it the bias.
        biases = times_bias(weights[:, -1], algebra).reshape(len(weights), 1, -1)
        self._encoders = np.concatenate([right_operator(weights[:, :-1], algebra), biases], axis=1)
        # L_s[k, j] = table[s, j, k]
        table, d = algebra.table, algebra.dim
        self._squares_to_gram = np.einsum("sjk,tik->jist", table, table).reshape(d * d, d * d)
        self._crosses_to_cross = table.transpose(1, 0, 2).reshape(d, d * d)

    def fit(self, X: Array, T: Array) -> Networks:
        """Find the output layers: X of shape (m, D, d), T of shape (m, N, d)."""
        self.output_weights_ = np.stack([self.solve(self.with_bias(codes), T) for codes in self.codes(X)])
        self._decoders = right_operator(self.output_weights_[:, :-1], self.algebra)
        self._offsets = times_bias(self.output_weights_[:, -1], self.algebra).reshape(len(self.weights), -1)
        return self

    def predict(self, X: Array) -> Iterator[Array]:
        """The outputs (m, N, d) of one network after the other, for X (m, D, d) or one for each, (B, m, D, d)."""
        for codes, decoder, offset in zip(self.codes(X), self._decoders, self._offsets):
            yield (codes @ decoder + offset).reshape(len(codes), -1, self.algebra.dim)

    def codes(self, X: Array) -> Iterator[Array]:
        """The hidden layer (m, L d) of one network after the other, all in the same memory."""
        m, D, d = X.shape[-3:]
        rows = np.ones((*X.shape[:-2], D * d + 1))  # the input of the bias is the last
        rows[..., :-1] = X.reshape(*X.shape[:-2], D * d)
        # Components that are zero throughout, as the real part of a position, cost nothing.
        used = np.flatnonzero(rows.reshape(-1, D * d + 1).any(axis=0))
        h = np.empty((m, self._encoders.shape[2]))
        for x, encoder in zip(np.broadcast_to(rows[..., used], (len(self.weights), m, len(used))), self._encoders):
            yield np.asarray(activations.apply(self._activation, np.matmul(x, encoder[used], out=h)), dtype=np.float64)

    def with_bias(self, codes: Array) -> Array:
        """The numbers (m, L + 1, d) that the output layer sees, by components in memory."""
        m, d, L = len(codes), self.algebra.dim, self.weights.shape[2]
        H = np.zeros((m, d, L + 1))
        H[:, :, :L] = codes.reshape(m, L, d).swapaxes(1, 2)
        H[:, :, L] = bias_number(self.algebra)
        return H.swapaxes(1, 2)

    def solve(self, H: Array, T: Array) -> Array:
        """X (K, N, d) with ‖HX - T‖ least, for H (m, K, d) and T (m, N, d)."""
        m, K, d = H.shape
        h = H.swapaxes(1, 2).reshape(m, d * K)
        squares = (h.T @ h).reshape(d, K, d, K).transpose(0, 2, 1, 3).reshape(d * d, K * K)
        gram = (self._squares_to_gram @ squares).reshape(d, d, K, K).transpose(0, 2, 1, 3).reshape(d * K, d * K)
        factor, info = lapack.dpotrf(gram, lower=1, clean=0)
        if info == 0:
            # The 1-norm of a symmetric matrix is not below its 2-norm, so this is not below the condition of Φ_L(H).
            reciprocal = lapack.dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")[0]
            condition = reciprocal**-0.5 if reciprocal > 0 else np.inf
            if condition < _REFINABLE:
                X = self._by_cholesky(factor, h, T)
                if condition > LARGEST_CONDITION["float64"]:
                    X += self._by_cholesky(factor, h, T - matmul(H, X, self.algebra))
                return X
        return np.asarray(linalg.lstsq(H, T, self.algebra, method="qr").x, dtype=np.float64)

    def _by_cholesky(self, factor: Array, h: Array, T: Array) -> Array:
        m, N, d = T.shape
        K = len(factor) // d
        crosses = (h.T @ T.swapaxes(1, 2).reshape(m, d * N)).reshape(d, K, d, N).transpose(0, 2, 1, 3)
        cross = (self._crosses_to_cross @ crosses.reshape(d * d, K * N)).reshape(d * K, N)
        x, _ = lapack.dpotrs(factor, cross, lower=1)
        return np.moveaxis(x.reshape(d, K, N), 0, -1)
