"""The loss of a row from the errors of its outputs.

Every function takes errors e = y - t, (m, ridges, columns), of outputs y, and targets t, (m, 1, columns), and gives the
losses of the rows, (m, ridges). A loss is NaN where the errors are.

Targets of labels are indicators: 1 for the class of the row, 0 for the others. The outputs of least squares estimate
the probabilities of the classes, but they may be negative or above 1. So probabilities p are in proportion to exp(ay)
with a scale a (`calibration`):

- `log_loss` is -log p of the class of the row;
- `brier` is Σ (p - t)². For two classes it is half of that, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hyperelm._solvers.calibration import DEFAULT_SCALE

Loss = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


def squares(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG001 (all losses take t)
    """The mean squared error of the columns."""
    return np.asarray(np.einsum("mrc,mrc->mr", e, e) / e.shape[2])


def log_loss(e: NDArray[Any], t: NDArray[Any], scale: float = DEFAULT_SCALE) -> NDArray[Any]:
    """-log of the probability of the label."""
    y = e + t
    z = scale * (y - y.max(axis=2, keepdims=True))
    return np.asarray(np.log(np.exp(z).sum(axis=2)) - (z * t).sum(axis=2))


def brier(e: NDArray[Any], t: NDArray[Any], scale: float = DEFAULT_SCALE) -> NDArray[Any]:
    """Σ (p - t)², half of it for two classes."""
    p = softmax(scale * (e + t), axis=2)
    return np.asarray(((p - t) ** 2).sum(axis=2) / (2 if e.shape[2] == 2 else 1))


def misses(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    """1 where the largest output is not that of the label, else 0."""
    wrong = np.argmax(e + t, axis=2) != np.argmax(t, axis=2)
    return np.where(np.isnan(e).any(axis=2), np.nan, wrong)
