"""How good a prediction is, as the paper measures it.

Prediction gain (section 5.2), with sample variances over time of the length of the signal and of the error:

    R = 10 log₁₀(var ‖p_t‖ / var ‖p_{t+1} - p̂_{t+1}‖)  in dB.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["prediction_gain"]


def prediction_gain(y_true: ArrayLike, y_pred: ArrayLike, *, signal: ArrayLike | None = None) -> float:
    """The prediction gain of a series of vectors, in dB.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,) or (n, channels)
        The positions and their predictions.
    signal : array of shape (n,) or (n, channels), optional
        The positions before them, whose variance the paper takes; `y_true` by default.

    Returns
    -------
    float
        Infinite where all errors are equally long.

    Examples
    --------
    >>> from hyperelm.metrics import prediction_gain
    >>> round(prediction_gain([1.0, 2.0, 3.0, 4.0], [1.1, 2.0, 3.1, 4.0]), 2)
    26.99
    """
    truth, guess = _vectors(y_true, "y_true"), _vectors(y_pred, "y_pred")
    if truth.shape != guess.shape:
        raise ValueError(f"`y_true` and `y_pred` must have the same shape, got {truth.shape} and {guess.shape}.")
    source = truth if signal is None else _vectors(signal, "signal")
    of_signal = np.linalg.norm(source, axis=1).var(ddof=1)
    of_error = np.linalg.norm(truth - guess, axis=1).var(ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(10 * np.log10(of_signal / of_error))


def _vectors(array: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(array, dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) < 2:
        raise ValueError(f"`{name}` must have shape (n,) or (n, channels) with n >= 2, got {array.shape}.")
    return array.reshape(len(array), -1)
