"""The loss of a row from the errors of its outputs.

Every function takes errors e = y - t, (m, ridges, columns), of outputs y, and targets t, (m, 1, columns), and gives the
losses of the rows, (m, ridges). A loss is NaN where the errors are.

Targets of labels are indicators: 1 for the class of the row, 0 for the others. The outputs of least squares estimate
the probabilities of the classes, but they may be negative or above 1. Two losses make probabilities p of them:

- `log_loss` is -log p of the class of the row, with p in proportion to exp(3y), which is never zero;
- `brier` is Σ (p - t)², with the p that is nearest to y of all that sum to one and are not negative. For two classes
  it is half of that, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Loss = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

_STEEPNESS = 3.0  # of probabilities, as functions of the outputs


def squares(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG001
    """The mean squared error of the columns."""
    return np.asarray(np.einsum("mrc,mrc->mr", e, e) / e.shape[2])


def log_loss(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    """-log of the probability of the label."""
    y = e + t
    z = _STEEPNESS * (y - y.max(axis=2, keepdims=True))
    return np.asarray(np.log(np.exp(z).sum(axis=2)) - (z * t).sum(axis=2))


def brier(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    """Σ (p - t)² of the probabilities nearest to the outputs, half of it for two classes."""
    p = nearest_probabilities(e + t)
    return np.asarray(((p - t) ** 2).sum(axis=2) / (2 if e.shape[2] == 2 else 1))


def misses(e: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    """1 where the largest output is not that of the label, else 0."""
    wrong = np.argmax(e + t, axis=2) != np.argmax(t, axis=2)
    return np.where(np.isnan(e).any(axis=2), np.nan, wrong)


def nearest_probabilities(y: NDArray[Any]) -> NDArray[Any]:
    """The Euclidean projection of the last axis onto the simplex: max(y - s, 0) with the s that makes it sum to one.

    With the outputs in descending order, s is the largest of the (y₁ + … + y_k - 1)/k.
    """
    ordered = -np.sort(-y, axis=-1)
    threshold = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, y.shape[-1] + 1)
    return np.asarray(np.maximum(y - threshold.max(axis=-1, keepdims=True), 0.0))
