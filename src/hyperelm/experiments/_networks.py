"""Many small networks of one algebra and size on the same rows, trained together.

With a few dozen neurons, the arithmetic of a fit takes less time than the calls that start it. So the networks share
their preparation, and each needs few calls. The normal equations of a network follow from the products of components
H_sᵀH_t and H_sᵀT_k of its hidden layer H and the targets T,

    Φ_L(H)ᵀΦ_L(H) = Σ_st (L_sᵀL_t) ⊗ H_sᵀH_t,        Φ_L(H)ᵀφ(T) = Σ_sk L_s[k, :] ⊗ H_sᵀT_k,

where L_s is the matrix of left multiplication by unit s, L_s[k, j] = table[s, j, k].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hyperelm import Algebra, linalg

Array = NDArray[np.float64]

PATH = np.logspace(-6, 3, 10)  # ridges, in units of the largest eigenvalue of the normal equations
_TRUSTED = 1e4  # up to this condition the normal equations are accurate enough
_REFINABLE = 1e6  # up to this condition one refinement is enough
_ROUNDING = 1e-12  # of the sum of all squares; directions that vary by less vary by rounding alone
_LEFT_OUT = 2000  # the errors of at most so many rows choose a ridge


def draw(shape: tuple[int, int, int], scale: float, seeds: Sequence[int]) -> Array:
    """Random weights, (networks, *shape): those that `ELMRegressor` draws for these seeds."""
    return np.asarray(scale * np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds]))


class Networks:
    """B networks with the given hidden weights, tanh neurons and no ridge.

    The results are those of `ELMRegressor(ridge=0)` with the same weights.

    Parameters
    ----------
    algebra : Algebra
        With an identity, which is the input and the neuron that stand for the bias.
    weights : array of shape (B, D + 1, L, d)
        The last row is that of the bias.

    Attributes
    ----------
    output_weights_ : array of shape (B, L + 1, N, d)
        The last row is that of the bias.
    parameters : int
        The number of parameters of a network.
    """

    def __init__(self, algebra: Algebra, weights: Array) -> None:
        self.algebra, self.weights = algebra, weights
        # Φ_R(W)ᵀ with the bias as its last row.
        biases = weights[:, -1].reshape(len(weights), 1, -1)
        self._encoders = np.concatenate([_right_operator(weights[:, :-1], algebra), biases], axis=1)
        table, d = algebra.table, algebra.dim
        self._squares_to_gram = np.einsum("sjk,tik->jist", table, table).reshape(d * d, d * d)
        self._crosses_to_cross = table.transpose(1, 0, 2).reshape(d, d * d)

    def fit(self, X: Array, T: Array) -> Networks:
        """Find the output layers for rows X of shape (m, D, d) and targets T of shape (m, N, d)."""
        self.output_weights_ = np.stack([self.solve(self.with_bias(codes), T) for codes in self.codes(X)])
        self.parameters = self.weights[0].size + self.output_weights_[0].size
        self._decoders = _right_operator(self.output_weights_[:, :-1], self.algebra)
        self._offsets = self.output_weights_[:, -1].reshape(len(self.weights), -1)
        return self

    def predict(self, X: Array) -> Iterator[Array]:
        """The outputs (m, N, d) of one network after the other, for X (m, D, d) or one for each, (B, m, D, d)."""
        for codes, decoder, offset in zip(self.codes(X), self._decoders, self._offsets):
            yield (codes @ decoder + offset).reshape(len(codes), -1, self.algebra.dim)

    def codes(self, X: Array) -> Iterator[Array]:
        """The hidden layer (m, L d) of one network after the other, all in the same memory."""
        m, D, d = X.shape[-3:]
        rows = np.ones((*X.shape[:-2], D * d + 1))  # the last column is the input of the bias
        rows[..., :-1] = X.reshape(*X.shape[:-2], D * d)
        # Components that are zero in all rows, such as the real part of a position, are left out.
        used = np.flatnonzero(rows.reshape(-1, D * d + 1).any(axis=0))
        h = np.empty((m, self._encoders.shape[2]))
        for x, encoder in zip(np.broadcast_to(rows[..., used], (len(self.weights), m, len(used))), self._encoders):
            yield _tanh(np.matmul(x, encoder[used], out=h))

    def with_bias(self, codes: Array) -> Array:
        """The numbers (m, L + 1, d) that the output layer sees, stored by components."""
        m, d, L = len(codes), self.algebra.dim, self.weights.shape[2]
        H = np.zeros((m, d, L + 1))
        H[:, :, :L] = codes.reshape(m, L, d).swapaxes(1, 2)
        H[:, :, L] = self.algebra.identity
        return H.swapaxes(1, 2)

    def solve(self, H: Array, T: Array) -> Array:
        """The coefficients (K, N, d) that minimise ‖H coef - T‖, for H (m, K, d) and T (m, N, d).

        A Cholesky factor of the normal equations gives them, with one refinement if the condition is beyond 1e4.
        That leaves an error of eps times the condition up to 1e6. Beyond, `lstsq` factorises the rows themselves.
        """
        gram = self._gram(H)
        factor, info = lapack.dpotrf(gram, lower=1, clean=0)
        if info == 0:
            # The 1-norm of a symmetric matrix is not below its 2-norm, so this is not below the condition of Φ_L(H).
            reciprocal = lapack.dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")[0]
            condition = reciprocal**-0.5 if reciprocal > 0 else np.inf
            if condition < _REFINABLE:
                coef = self._by_cholesky(factor, H, T)
                if condition > _TRUSTED:
                    coef += self._by_cholesky(factor, H, T - linalg.matmul(H, coef, self.algebra))
                return coef
        return np.asarray(linalg.lstsq(H, T, self.algebra, method="qr").x, dtype=np.float64)

    def _by_cholesky(self, factor: Array, H: Array, T: Array) -> Array:
        return self._as_numbers(lapack.dpotrs(factor, self._cross(H, T), lower=1)[0])

    def _gram(self, H: Array) -> Array:
        """Φ_L(H)ᵀΦ_L(H), (d K, d K), by components."""
        m, K, d = H.shape
        h = H.swapaxes(1, 2).reshape(m, d * K)
        squares = (h.T @ h).reshape(d, K, d, K).transpose(0, 2, 1, 3).reshape(d * d, K * K)
        return (self._squares_to_gram @ squares).reshape(d, d, K, K).transpose(0, 2, 1, 3).reshape(d * K, d * K)

    def _cross(self, H: Array, T: Array) -> Array:
        """Φ_L(H)ᵀφ(T), (d K, N), by components."""
        (m, K, d), N = H.shape, T.shape[1]
        h, t = H.swapaxes(1, 2).reshape(m, d * K), T.swapaxes(1, 2).reshape(m, d * N)
        crosses = (h.T @ t).reshape(d, K, d, N).transpose(0, 2, 1, 3)
        return (self._crosses_to_cross @ crosses.reshape(d * d, K * N)).reshape(d * K, N)

    def _as_numbers(self, coef: Array) -> Array:
        """(d K, N) by components -> (K, N, d)."""
        return np.moveaxis(coef.reshape(self.algebra.dim, -1, coef.shape[1]), 0, -1)


class RidgeNetworks(Networks):
    """Networks of which each chooses a ridge by exact leave-one-out errors. The bias has no ridge.

    Take A = Φ_L(H) and t = φ(T), both less their means over the rows. With AᵀA = V diag(s²) Vᵀ,

        coef(λ) = V diag(1 / (s² + λ)) VᵀAᵀt.

    One row of data is d rows A_m of A. Without it, the residual e_m = A_m coef - t_m of these rows would be

        (1 - A_m V diag(1 / (s² + λ)) VᵀA_mᵀ - 1/n)⁻¹ e_m.

    The ridge is the λ of a path with the least sum of squares of these residuals, over the components that hold
    targets. At the upper end of the path a network predicts little more than the mean of the targets.
    """

    def solve(self, H: Array, T: Array) -> Array:
        H, n = H[:, :-1], len(H)
        mean_A, mean_t = self._left(H.mean(axis=0)[None])[0], T.mean(axis=0).T
        gram = self._gram(H)
        # AᵀA and Aᵀt of centred rows follow from those of the rows as they are.
        squares, V = np.linalg.eigh(gram - n * mean_A.T @ mean_A)
        squares, cross = np.maximum(squares, 0), V.T @ (self._cross(H, T) - n * mean_A.T @ mean_t)
        cross[squares < _ROUNDING * np.trace(gram)] = 0
        some = np.linspace(0, n - 1, min(n, _LEFT_OUT)).astype(int)
        projected, t = (self._left(H[some]) - mean_A) @ V, T[some].swapaxes(1, 2) - mean_t
        ridges = PATH * max(float(squares[-1]), np.finfo(float).tiny)
        errors = [_left_out(projected, squares + ridge, cross, t, np.any(T, axis=0).T, n) for ridge in ridges]
        coef = V @ (cross / (squares + ridges[int(np.argmin(errors))])[:, None])
        return np.concatenate([self._as_numbers(coef), (mean_t - mean_A @ coef).T[None]])

    def _left(self, H: Array) -> Array:
        """Φ_L of every row of H (m, K, d), (m, d, d K), by components."""
        return np.einsum("mls,sjk->mkjl", H, self.algebra.table, optimize=True).reshape(len(H), self.algebra.dim, -1)


def _left_out(projected: Array, penalised: Array, cross: Array, t: Array, counted: NDArray[np.bool_], n: int) -> float:
    """The sum of squared leave-one-out residuals of rows AV (m, d, unknowns) among n, given VᵀAᵀt (unknowns, N).

    `penalised` is s² + λ. `counted` (d, N) tells which components hold targets.
    """
    identity = np.eye(projected.shape[1])
    scaled = projected / penalised
    leverage = scaled @ projected.swapaxes(1, 2) + identity / n
    residuals = np.linalg.solve(identity - leverage, scaled @ cross - t)
    return float(np.sum(residuals[:, counted] ** 2))


def _right_operator(B: Array, algebra: Algebra) -> Array:
    """Φ_R(B)ᵀ, (..., L, N, d) -> (..., L d, N d): it maps the components of a row of A to those of a row of AB."""
    return np.ascontiguousarray(linalg.right_matrix(B, algebra).swapaxes(-1, -2), dtype=np.float64)


def _tanh(x: Array) -> Array:
    """tanh of x, in place, as 1 - 2/(e²ˣ + 1), which takes half the time of NumPy's tanh.

    The absolute error is that of a number near 1. If all values are small, NumPy's tanh has smaller errors.
    """
    some = x[..., :1]  # a few values mostly suffice to see that not all are small
    if all(max(part.max(initial=0), -part.min(initial=0)) < 0.25 for part in (some, x)):
        return np.asarray(np.tanh(x, out=x))
    with np.errstate(over="ignore"):
        x *= 2
        np.exp(x, out=x)
    x += 1
    np.divide(-2, x, out=x)
    x += 1
    return x
