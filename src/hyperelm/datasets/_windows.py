"""Cut a series p₁, p₂, … into pairs of an input (p_{t-T+1}, …, p_t) and a target p_{t+1}."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def sliding_windows(series: ArrayLike, window: int = 3) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make the inputs and targets of one-step prediction.

    Parameters
    ----------
    series : array of shape (n,) or (n, channels)
    window : int
        T, the number of positions in an input.

    Returns
    -------
    X : array of shape (n - T, T) or (n - T, T, channels), a read-only view of the series
    y : array of shape (n - T,) or (n - T, channels), the position after each window

    Examples
    --------
    >>> from hyperelm.datasets import sliding_windows
    >>> X, y = sliding_windows([1, 2, 3, 4, 5], window=3)
    >>> X
    array([[1, 2, 3],
           [2, 3, 4]])
    >>> y
    array([4, 5])
    """
    series = np.asarray(series)
    if series.ndim not in (1, 2):
        raise ValueError(f"`series` must have shape (n,) or (n, channels), got {series.shape}.")
    if not 1 <= window < len(series):
        raise ValueError(
            f"`window` must be at least 1 and less than the {len(series)} positions of `series`, got {window}."
        )
    views = np.lib.stride_tricks.sliding_window_view(series[:-1], window, axis=0)
    return views if series.ndim == 1 else views.swapaxes(1, 2), series[window:]
