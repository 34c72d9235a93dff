"""The Gram matrix B(H)ᴴB(H) of one block, from the sums S_n that an accumulator keeps.

It is Σ_F patterns_F ⊗ Q_F with Q_F = Σ_n to_forms[F, n] (S_n ± S_nᵀ)/2 (`_algebra.forms`). The sign is that of the form
F: patterns_F is Hermitian for + and anti-Hermitian for -. So the Gram matrix is

    X + Xᴴ,        X = Σ_n W_n ⊗ S_n,        W_n = ½ Σ_F to_forms[F, n] patterns_F.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.by_numpy import real_parts
from hyperelm._backend.workspace import scratch
from hyperelm._solvers.problem import Array
from hyperelm._validation import FloatArray

_TILE = 128  # rows and columns of a part of a matrix that fits into a cache
_FEW = 2  # matrices in a sum; the sums of more are one product of matrices


def block_gram(patterns: Array, to_forms: NDArray[np.float64], sums: FloatArray, dtype: np.dtype[Any]) -> Array:
    """(n L, n L), from patterns, (F, n, n), coefficients, (F, sums), and sums, (sums, L, L)."""
    (_, n, _), L = patterns.shape, sums.shape[1]
    W = 0.5 * np.tensordot(patterns, to_forms, axes=(0, 0))
    gram = scratch((n, L, n, L), dtype, zeros=False)
    for part, of_part in zip(real_parts(gram), real_parts(W)):
        for q in range(n):
            _put_sums(of_part[q], sums, part[q].swapaxes(0, 1))
    whole: Array = gram.reshape(n * L, n * L)
    _add_adjoint(whole)
    return whole


def _add_adjoint(X: Array) -> None:
    """X += Xᴴ, tile by tile, since the whole may not fit into the cache."""
    tiles = [slice(start, start + _TILE) for start in range(0, len(X), _TILE)]
    for n, rows in enumerate(tiles):
        for columns in tiles[:n]:
            X[rows, columns] += X[columns, rows].conj().T
            X[columns, rows] = X[rows, columns].conj().T
        X[rows, rows] += X[rows, rows].conj().T


def _put_sums(coefficients: NDArray[np.float64], matrices: FloatArray, out: FloatArray) -> None:
    """out_r = Σ_n c_rn M_n."""
    if np.count_nonzero(coefficients) > _FEW * len(out):
        product = coefficients.astype(matrices.dtype) @ matrices.reshape(len(matrices), -1)
        out[...] = product.reshape(out.shape)
        return
    for row, total in zip(coefficients, out):
        used = np.flatnonzero(row)
        if len(used) == 0:
            total[...] = 0
        for place, n in enumerate(used):
            c = total.dtype.type(row[n])
            if place == 0:
                np.multiply(matrices[n], c, out=total)
            else:
                total += matrices[n] if c == 1 else c * matrices[n]
