"""Series for one-step prediction: the Lorenz system, and windows of any series with the positions after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._validation import ArgumentError

Point = tuple[float, float, float]


def lorenz(
    n: int = 4000,
    *,
    dt: float = 0.01,
    start: Sequence[float] = (1.0, 1.0, 1.0),
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8 / 3,
) -> NDArray[np.float64]:
    """Compute positions on a trajectory of the Lorenz system by the classical Runge-Kutta method of order 4.

    The system is ẋ = σ(y - x), ẏ = x(ρ - z) - y, ż = xy - βz.

    Parameters
    ----------
    n : int
        The number of positions. The first is `start`.
    dt : float
        The time between two positions, which is one step of the Runge-Kutta method.
    start : three floats
        The first position.
    sigma, rho, beta : float
        The parameters of the system.

    Returns
    -------
    array of shape (n, 3)

    Examples
    --------
    >>> from hyperelm.datasets import lorenz
    >>> lorenz(3).round(3)
    array([[1.   , 1.   , 1.   ],
           [1.013, 1.26 , 0.985],
           [1.049, 1.524, 0.973]])
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1, got {n}.")
    if not 0 < dt < np.inf:
        raise ArgumentError("dt", f"must be a number > 0, got {dt}.")
    for name, value in (("sigma", sigma), ("rho", rho), ("beta", beta)):
        if not np.isfinite(value):
            raise ValueError(f"`{name}` must be finite, got {value}.")
    if np.shape(start) != (3,) or not np.all(np.isfinite(start)):
        raise ArgumentError("start", f"must be three finite numbers, got {start!r}.")

    # Plain floats, because an array of three values costs more than the arithmetic on it.
    dt, sigma, rho, beta = float(dt), float(sigma), float(rho), float(beta)

    def slope(p: Point, v: Point, h: float) -> Point:
        """The slope at p + h v."""
        x, y, z = p[0] + h * v[0], p[1] + h * v[1], p[2] + h * v[2]
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    p: Point = (float(start[0]), float(start[1]), float(start[2]))
    positions = [p]
    for _ in range(n - 1):
        a = slope(p, p, 0.0)
        b = slope(p, a, dt / 2)
        c = slope(p, b, dt / 2)
        d = slope(p, c, dt)
        x, y, z = (p[i] + dt * ((a[i] + 2 * b[i] + 2 * c[i] + d[i]) / 6) for i in range(3))
        p = (x, y, z)
        positions.append(p)
    result = np.array(positions)
    if not np.all(np.isfinite(result)):
        raise ArgumentError("dt", f"must be smaller: the trajectory diverges with dt={dt}.")
    return result


def sliding_windows(series: ArrayLike, window: int = 3) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make the inputs and targets of one-step prediction.

    Parameters
    ----------
    series : array of shape (n,), (n, channels) or (m, n, channels)
        One series of n positions, or m of them. No window goes from one series to the next.
    window : int
        T, the number of positions in an input.

    Returns
    -------
    X : array of shape (n - T, T) or (n - T, T, channels), a read-only view of the series
        Of m series it is a copy of shape (m (n - T), T, channels), series after series.
    y : array of shape (n - T,) or (n - T, channels), the position after each window
        Of m series it has shape (m (n - T), channels).

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
    if series.ndim not in (1, 2, 3):
        raise ValueError(f"`series` must have shape (n,), (n, channels) or (m, n, channels), got {series.shape}.")
    time = 1 if series.ndim == 3 else 0
    positions = series.shape[time]
    if not 1 <= window < positions:
        raise ValueError(
            f"`window` must be at least 1 and less than the {positions} positions of `series`, got {window}."
        )
    inputs, targets = np.split(series, [positions - 1], axis=time)[0], np.split(series, [window], axis=time)[1]
    views = np.lib.stride_tricks.sliding_window_view(inputs, window, axis=time)
    if series.ndim == 1:
        return views, targets
    windows = np.moveaxis(views, -1, -2)
    if series.ndim == 2:
        return windows, targets
    return windows.reshape(-1, *windows.shape[2:]), targets.reshape(-1, series.shape[2])
