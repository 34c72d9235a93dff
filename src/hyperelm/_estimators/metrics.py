"""How good a prediction is, as the paper measures it.

The prediction gain of a series (section 5.2) compares the lengths of the signal and of the error, by their sample
variances over time:

    R = 10 log₁₀(var ‖p_t‖ / var ‖p_{t+1} - p̂_{t+1}‖)  in dB.

The peak signal-to-noise ratio of an image is 10 log₁₀(peak² / mean squared error). The structural similarity of two
images (Wang et al., 2004) is the mean over all 7 x 7 windows and channels of

    (2 μ_x μ_y + C₁)(2 σ_xy + C₂) / ((μ_x² + μ_y² + C₁)(σ_x² + σ_y² + C₂)),   C₁ = (0.01 peak)², C₂ = (0.03 peak)²,

with sample variances, which is what scikit-image's `structural_similarity` computes by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._backend import chunks

__all__ = ["prediction_gain", "psnr", "ssim"]

_WINDOW = 7
_AT_ONCE = 512  # images whose windows are in memory together
_LUMA = np.array([0.2125, 0.7154, 0.0721])


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
    >>> from hyperelm._estimators.metrics import prediction_gain
    >>> round(prediction_gain([1.0, 2.0, 3.0, 4.0], [1.1, 2.0, 3.1, 4.0]), 2)
    26.99
    """
    truth, guess = _vectors(y_true, "y_true"), _vectors(y_pred, "y_pred")
    if truth.shape != guess.shape:
        raise ValueError(f"`y_true` and `y_pred` must have the same shape, got {truth.shape} and {guess.shape}.")
    source = truth if signal is None else _vectors(signal, "signal")
    if len(source) != len(truth):
        raise ValueError(f"`signal` must have as many positions as `y_true`, {len(truth)}, got {len(source)}.")
    of_signal, of_error = (np.linalg.norm(vectors, axis=1).var(ddof=1) for vectors in (source, truth - guess))
    if of_error == 0:
        return float("inf")
    with np.errstate(divide="ignore"):
        return float(10 * np.log10(of_signal / of_error))


def _vectors(array: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(array, dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) < 2:
        raise ValueError(f"`{name}` must have shape (n,) or (n, channels) with n >= 2, got {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` must be finite.")
    return array.reshape(len(array), -1)


def psnr(images: ArrayLike, others: ArrayLike, *, data_range: float = 255.0) -> NDArray[np.float64]:
    """The peak signal-to-noise ratio of every image, over all channels, in dB.

    Parameters
    ----------
    images, others : arrays of shape (n, ...)
    data_range : float
        The peak: the largest value less the smallest that an image can have.

    Returns
    -------
    array of shape (n,)
        Infinite where two images are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm._estimators.metrics import psnr
    >>> psnr(np.zeros((1, 8, 8, 3)), np.full((1, 8, 8, 3), 25.5))
    array([20.])
    """
    a, b = _alike(images, others)
    squares = np.empty(len(a))
    for at in chunks(len(a), _AT_ONCE):
        difference = a[at].astype(np.float64) - b[at]
        squares[at] = np.mean(difference.reshape(len(difference), -1) ** 2, axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(data_range**2 / squares))


def ssim(images: ArrayLike, others: ArrayLike, *, data_range: float = 255.0, luma: bool = False) -> NDArray[np.float64]:
    """The structural similarity of every image.

    Parameters
    ----------
    images, others : arrays of shape (n, height, width, channels)
    data_range : float
        The peak: the largest value less the smallest that an image can have.
    luma : bool
        The similarity of the brightness 0.2125 R + 0.7154 G + 0.0721 B instead of the mean over the channels.

    Returns
    -------
    array of shape (n,)
        1 where two images are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm._estimators.metrics import ssim
    >>> image = np.arange(192.0).reshape(1, 8, 8, 3)
    >>> ssim(image, image), ssim(image, image + 20).round(2)
    (array([1.]), array([0.98]))
    """
    a, b = _alike(images, others)
    if a.ndim != 4 or min(a.shape[1:3]) < _WINDOW:
        raise ValueError(
            f"`images` must have shape (n, height, width, channels) with sides of at least {_WINDOW}, got {a.shape}."
        )
    if luma and a.shape[3] != len(_LUMA):
        raise ValueError(f"`images` must have {len(_LUMA)} channels with luma=True, got {a.shape[3]}.")
    similarity = np.empty(len(a))
    for at in chunks(len(a), _AT_ONCE):
        x, y = (array[at].astype(np.float64) for array in (a, b))
        if luma:
            x, y = ((array @ _LUMA)[..., None] for array in (x, y))
        similarity[at] = _similarity(x, y, data_range).mean(axis=(1, 2, 3))
    return similarity


def _similarity(x: NDArray[np.float64], y: NDArray[np.float64], peak: float) -> NDArray[np.float64]:
    mean_x, mean_y = _window_means(x), _window_means(y)
    sample = _WINDOW**2 / (_WINDOW**2 - 1)
    var_x = sample * (_window_means(x * x) - mean_x**2)
    var_y = sample * (_window_means(y * y) - mean_y**2)
    covariance = sample * (_window_means(x * y) - mean_x * mean_y)
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return np.asarray(above / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)))


def _window_means(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of all windows within an image, (n, h, w, c) -> (n, h - 6, w - 6, c), by two matrix products."""
    n, height, width, channels = x.shape
    # Row k of such a matrix takes the mean of the places k to k + 6 on a line.
    down, across = (
        (np.tri(side - _WINDOW + 1, side, _WINDOW - 1) - np.tri(side - _WINDOW + 1, side, -1)) / _WINDOW
        for side in (height, width)
    )
    return np.asarray(across @ (down @ x.reshape(n, height, width * channels)).reshape(n, -1, width, channels))


def _alike(images: ArrayLike, others: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = np.asarray(images), np.asarray(others)
    if a.shape != b.shape or a.ndim < 2:
        raise ValueError(f"`images` and `others` must have the same shape (n, ...), got {a.shape} and {b.shape}.")
    return a, b
