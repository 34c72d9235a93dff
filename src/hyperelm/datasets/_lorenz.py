"""The Lorenz system, integrated by the classical Runge-Kutta method of order 4.

ẋ = σ(y - x),    ẏ = x(ρ - z) - y,    ż = xy - βz
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    """Compute positions on a trajectory of the Lorenz system.

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

    dt, sigma, rho, beta = float(dt), float(sigma), float(rho), float(beta)

    def slope(x: float, y: float, z: float) -> Point:
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    def ahead(p: Point, v: Point, h: float) -> Point:
        return p[0] + h * v[0], p[1] + h * v[1], p[2] + h * v[2]

    # Plain floats: the overhead of an array of three values is larger than the cost of the arithmetic.
    p: Point = (float(start[0]), float(start[1]), float(start[2]))
    positions = [p]
    for _ in range(n - 1):
        a = slope(*p)
        b = slope(*ahead(p, a, dt / 2))
        c = slope(*ahead(p, b, dt / 2))
        d = slope(*ahead(p, c, dt))
        mean = tuple((a[i] + 2 * b[i] + 2 * c[i] + d[i]) / 6 for i in range(3))
        p = ahead(p, (mean[0], mean[1], mean[2]), dt)
        positions.append(p)
    result = np.array(positions)
    if not np.all(np.isfinite(result)):
        raise ArgumentError("dt", f"must be smaller: the trajectory diverges with dt={dt}.")
    return result
