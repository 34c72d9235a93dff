"""The largest eigenvalue of a positive matrix by Lanczos' method.

v, Av, A²v, … are made orthonormal as the columns of Q. Then QᴴAQ is tridiagonal, and its largest eigenvalue is close to
that of A, from below. Columns are added until it hardly changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEPS, _SETTLED = 10, 0.01  # columns at most, and the relative change of the eigenvalue that is small

Array = NDArray[Any]


def largest_eigenvalue(apply: Callable[[Array], Array], like: Array) -> float:
    """From products with the matrix, whose precision and size are those of `like`, up to a few per cent too small."""
    v = np.random.default_rng(0).standard_normal(len(like)).astype(like.dtype)
    basis: list[Array] = [v / np.linalg.norm(v)]
    diagonal: list[float] = []
    beside: list[float] = []
    largest = 0.0
    for _ in range(min(_STEPS, len(like))):
        w = apply(basis[-1])
        diagonal.append(float(np.vdot(basis[-1], w).real))
        for q in basis:  # all of them: with the last two alone, rounding brings the same direction back
            w = w - np.vdot(q, w) * q
        off = np.diag(beside, 1)
        before, largest = largest, float(np.linalg.eigvalsh(np.diag(diagonal) + off + off.T)[-1])
        beside.append(float(np.linalg.norm(w)))
        if not beside[-1] > 1e-6 * abs(diagonal[-1]) or largest - before < _SETTLED * largest:
            break
        basis.append(w / beside[-1])
    return largest
