"""Formulas written out plainly with dense matrices, for the tests to compare with.

Nothing here calls hyperelm. A function takes an algebra for its size `dim` and its multiplication table `table` alone,
u_i u_j = Σ_k table[i, j, k] u_k. A matrix of numbers has shape (m, K, d): m rows of K numbers of d components each.
"""

from __future__ import annotations

import math

import numpy as np

# ---------------------------------------------------------------------- matrices of numbers


def product(A, B, algebra):
    """AB: (m, K, d) times (K, N, d) is (m, N, d)."""
    return np.einsum("mki,knj,ijc->mnc", A, B, algebra.table, optimize=True)


def left_matrix(A, algebra):
    """Φ_L(A), the real matrix with φ(AB) = Φ_L(A) φ(B): (m, K, d) becomes (m d, K d)."""
    m, K, d = A.shape
    return np.einsum("mki,ijc->mckj", A, algebra.table).reshape(m * d, K * d)


def to_real(A):
    """φ(A): (m, N, d) becomes (m d, N), the components of a number one below the other."""
    return A.swapaxes(1, 2).reshape(-1, A.shape[1])


def from_real(matrix, algebra):
    """φ⁻¹: (m d, N) becomes (m, N, d)."""
    return matrix.reshape(-1, algebra.dim, matrix.shape[1]).swapaxes(1, 2)


def in_units(table, s):
    """The table of the same algebra in the units s_i u_i."""
    return table * s[:, None, None] * s[:, None] / s


# ---------------------------------------------------------------------- the network of the paper


def with_one(X):
    """[X, 1]: one more column, of the number 1 + 0i + 0j + …"""
    one = np.zeros((len(X), 1, X.shape[2]))
    one[:, :, 0] = 1
    return np.concatenate([X, one], axis=1)


def hidden(X, W, algebra, *, activation=np.tanh, bias=True, direct_link=False):
    """What the output layer sees (equation 24): [f([X, 1] W), X, 1]."""
    H = activation(product(with_one(X) if bias else X, W, algebra))
    H = np.concatenate([H, X], axis=1) if direct_link else H
    return with_one(H) if bias else H


def least_squares(H, T, algebra):
    """The output weights of the paper, M = φ⁻¹(Φ_L(H)⁺ φ(T))."""
    return from_real(np.linalg.pinv(left_matrix(H, algebra)) @ to_real(T), algebra)


# ---------------------------------------------------------------------- ridges and leave-one-out


def penalised(algebra, L, free=()):
    """Which of the L d real unknowns the ridge penalises: those of all numbers but the `free` ones, as True."""
    return np.repeat(~np.isin(np.arange(L), free), algebra.dim)


def ridge_solution(P, t, ridge, penalty):
    """The x of least norm among those that minimise ‖Px - t‖² + ridge ‖x[penalty]‖².

    It solves [P; √ridge D] x ≈ [t; 0], where D is the diagonal matrix of the penalties.
    """
    below = np.diag(np.sqrt(ridge) * penalty)
    return np.linalg.lstsq(np.vstack([P, below]), np.vstack([t, np.zeros((len(below), t.shape[1]))]), rcond=1e-13)[0]


def hat_matrix(P, ridge, penalty):
    """S = P (PᵀP + ridge D)⁻¹ Pᵀ, which takes targets to fitted values."""
    return P @ np.linalg.solve(P.T @ P + ridge * np.diag(penalty.astype(float)), P.T)


def refitted_residuals(P, T, algebra, ridge, penalty, weight=None):
    """The residual (M, N, d) of every row under the fit to all the others, by M fits.

    P is Φ_L of the rows, (M d, L d), T their targets, (M, N, d). Row m takes the lines m d, …, m d + d - 1 of P.
    """
    d, t = algebra.dim, to_real(T)
    roots = np.sqrt(np.repeat(np.ones(len(T)) if weight is None else weight, d))[:, None]
    residuals = np.empty_like(t)
    for m in range(len(T)):
        lines = slice(m * d, (m + 1) * d)
        A, b = (np.delete(roots * whole, lines, axis=0) for whole in (P, t))
        residuals[lines] = P[lines] @ ridge_solution(A, b, ridge, penalty) - t[lines]
    return from_real(residuals, algebra)


# ---------------------------------------------------------------------- measures


def prediction_gain(truth, predicted, signal):
    """R = 10 log₁₀(var ‖p_t‖ / var ‖p_{t+1} - p̂_{t+1}‖), one position after the other."""
    of_signal = [math.hypot(*position) for position in signal]
    of_error = [math.dist(p, q) for p, q in zip(truth, predicted)]
    return 10 * math.log10(sample_variance(of_signal) / sample_variance(of_error))


def sample_variance(lengths):
    mean = math.fsum(lengths) / len(lengths)
    return math.fsum((length - mean) ** 2 for length in lengths) / (len(lengths) - 1)
