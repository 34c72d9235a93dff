"""Networks with a ridge that each chooses for itself, by exact leave-one-out errors of its training rows.

Take A = Φ_L(H) and t = φ(T) less their means over the rows, as the bias is not penalised. With AᵀA = V diag(s²) Vᵀ,

    x(λ) = V diag(1 / (s² + λ)) VᵀAᵀt.

A row of the data is d rows A_m of A. Without it, the residual e_m = A_m x - t_m of these rows would be

    (1 - A_m V diag(1 / (s² + λ)) VᵀA_mᵀ - 1/n)⁻¹ e_m.

The λ with the least sum of their squares, over the components that hold targets, is taken from a path between 1e-6 and
1e3 times the largest s². At its upper end a network predicts little more than the mean of the targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hyperelm.elm.networks import Networks

Array = NDArray[np.float64]

PATH = np.logspace(-6, 3, 10)  # in units of the largest s²
_CHUNK = 2000  # rows of which A is in memory, and rows whose errors choose among many
_ROUNDING = 1e-12  # of the sum of all squares: what varies by less varies by rounding alone


class RidgeNetworks(Networks):
    """As `Networks`, with a ridge on all weights of the output layer but its bias."""

    def solve(self, H: Array, T: Array) -> Array:
        (n, K, d), N = H.shape, T.shape[1]
        gram, cross = np.zeros(((K - 1) * d, (K - 1) * d)), np.zeros(((K - 1) * d, N))
        mean_A, mean_t = np.zeros((d, (K - 1) * d)), T.mean(axis=0).T
        for start in range(0, n, _CHUNK):
            A, t = self._real(H[start : start + _CHUNK], T[start : start + _CHUNK])
            rows = A.reshape(-1, (K - 1) * d)
            gram += rows.T @ rows
            cross += rows.T @ t.reshape(-1, N)
            mean_A += A.sum(axis=0) / n
        # The sums of centred rows follow from those of rows as they are.
        squares, V = np.linalg.eigh(gram - n * mean_A.T @ mean_A)
        squares, cross = np.maximum(squares, 0), V.T @ (cross - n * mean_A.T @ mean_t)
        cross[squares < _ROUNDING * np.trace(gram)] = 0
        some = np.linspace(0, n - 1, min(n, _CHUNK)).astype(int)
        A, t = self._real(H[some], T[some])
        projected, counted = (A - mean_A) @ V, np.asarray(T.any(axis=0)).T
        ridges = PATH * max(float(squares[-1]), np.finfo(float).tiny)
        errors = [_left_out(projected, squares + ridge, cross, t - mean_t, counted, n) for ridge in ridges]
        x = V @ (cross / (squares + ridges[int(np.argmin(errors))])[:, None])
        offset = mean_t - mean_A @ x
        return np.concatenate([np.moveaxis(x.reshape(K - 1, d, N), 1, 2), offset.T[None]])

    def _real(self, H: Array, T: Array) -> tuple[Array, Array]:
        """A of shape (rows, d, unknowns), without the bias, and t of shape (rows, d, N)."""
        A = np.moveaxis(np.tensordot(H[:, :-1], self.algebra.table, axes=1), -1, 1)
        return A.reshape(len(H), self.algebra.dim, -1), T.swapaxes(1, 2)


def _left_out(projected: Array, penalised: Array, cross: Array, t: Array, counted: NDArray[np.bool_], n: int) -> float:
    """The sum of squared leave-one-out residuals of rows AV (m, d, unknowns) among n, given VᵀAᵀt (unknowns, N).

    `counted` (d, N) says which components hold targets.
    """
    identity = np.eye(projected.shape[1])
    scaled = projected / penalised
    leverage = scaled @ projected.swapaxes(1, 2) + identity / n
    residuals = np.linalg.solve(identity - leverage, scaled @ cross - t)
    return float(np.sum(residuals[:, counted] ** 2))
