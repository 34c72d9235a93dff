"""Several labels a row: a matrix of indicators, (n, labels), and what is predicted for one.

Least squares on indicators estimates the probability of every label by itself. A label is predicted where its output is
above 1/2. Its probability is that of the second of two classes with the outputs 1 - y and y (`_solvers.calibration`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target

from hyperelm._backend.arrays import detached, namespace, to_numpy
from hyperelm._solvers.calibration import Probabilities
from hyperelm._training.passes import Weights
from hyperelm._training.rows import Stored, is_stored
from hyperelm._validation import FloatArray

_HALF = 0.5


def has_labels(y: Any) -> bool:
    """Whether targets have two axes, and more than one column."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and int(shape[1]) > 1


def checked_labels(y: Any, before: int | None) -> NDArray[Any] | Stored:
    """A matrix of indicators, dense. `before` is the number of its first row, for chunks."""
    if is_stored(y) or before is not None:
        return Stored(y if is_stored(y) else _dense(y), "y", before=before or 0)
    labels = _dense(y)
    assert_all_finite(labels, input_name="y")
    kind = type_of_target(labels, input_name="y")
    if kind != "multilabel-indicator":
        raise ValueError(
            f"Unknown label type: {kind}. `y` of shape (n, labels) must hold 0 and 1 only, got an array of shape "
            f"{labels.shape}. Fit one model for each column of other labels."
        )
    return labels


def indicators(labels: NDArray[Any]) -> tuple[NDArray[np.bool_], Weights]:
    """The targets of rows of labels; an error on each costs the same."""
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("Unknown label type: `y` of shape (n, labels) must hold 0 and 1 only.")
    return np.asarray(labels, dtype=bool), None


def above_half(outputs: FloatArray) -> FloatArray:
    """By how much outputs are above 1/2."""
    return outputs - _HALF


def label_probabilities(outputs: FloatArray) -> FloatArray:
    """The probability of every label by itself, (n, labels)."""
    xp = namespace(outputs=outputs)
    pairs = xp.reshape(xp.stack([1 - outputs, outputs], axis=-1), (-1, 2))
    return xp.reshape(Probabilities().of(pairs)[:, 1], outputs.shape)


def predicted_labels(outputs: FloatArray) -> NDArray[np.intp]:
    """Indicators of the labels whose probability is above one half."""
    return np.asarray(to_numpy(outputs) > _HALF, dtype=np.intp)


def _dense(y: Any) -> NDArray[Any]:
    return np.asarray(y.toarray()) if issparse(y) else to_numpy(detached(y))
