"""The number e that stands for the bias, in training and in prediction: h = f([x, e] W), y = [h, x, e] M.

It is the identity of the algebra, so that a row w of weights adds e w = w. In an algebra without an identity it is a
number whose products e w reach most: Φ_L(e) has the largest rank that there is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra

_VANISHES = 1e-10  # singular values, relative to the largest


@lru_cache(maxsize=1024)
def bias_number(algebra: Algebra) -> NDArray[np.float64]:
    """e, (d,): the identity, or a number whose products reach as much as those of any number can."""
    e = algebra.identity
    if e is None:
        e = _reaching_most(algebra)
        e.setflags(write=False)
    return e


def times_bias(weights: FloatArray, algebra: Algebra) -> FloatArray:
    """e w for weights w, (..., d)."""
    left = np.tensordot(bias_number(algebra), algebra.table, axes=1)  # (e w)_k = Σ_j w_j left[j, k]
    product: FloatArray = weights @ left.astype(weights.dtype)
    return product


def bias_weights(products: FloatArray, algebra: Algebra) -> FloatArray:
    """The weights w of least norm whose e w are nearest to these, (..., d)."""
    left = np.tensordot(bias_number(algebra), algebra.table, axes=1)
    weights: FloatArray = products @ np.linalg.pinv(left).astype(products.dtype)
    return weights


def _reaching_most(algebra: Algebra) -> NDArray[np.float64]:
    """Of some numbers the one with Φ_L(e) of the largest rank, and among these of the best condition; ‖Φ_L(e)‖ = 1.

    Tried are the number nearest to an identity from the left, which is one where there is any, the units, and a random
    number: almost all numbers have the largest rank.
    """
    d, left = algebra.dim, algebra.table.reshape(algebra.dim, -1)
    nearest = np.linalg.lstsq(left.T, np.eye(d).ravel(), rcond=None)[0]
    if np.linalg.norm(nearest @ left) < _VANISHES:  # what is left of zero is rounding
        nearest = np.zeros(d)
    best, reach = np.eye(d)[0], (0, 0.0)
    for e in (nearest, *np.eye(d), np.random.default_rng(0).standard_normal(d)):
        sigma = np.linalg.svd((e @ left).reshape(d, d), compute_uv=False)
        rank = int(np.sum(sigma > _VANISHES * sigma[0]))
        # Equal conditions differ by rounding, and then the first is taken.
        if rank and (rank, round(sigma[rank - 1] / sigma[0], 6)) > reach:
            best, reach = e / sigma[0], (rank, round(sigma[rank - 1] / sigma[0], 6))
    return best
