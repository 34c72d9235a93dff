"""A function of one variable from its values and slopes at a few points.

Between two neighbouring points a and b it is the cubic with their values and slopes. With t = (u - a)/(b - a),

    f(u) = f(a) (1 + 2t)(1 - t)² + f(b) t²(3 - 2t) + (b - a) (f'(a) t (1 - t)² - f'(b) t² (1 - t)).

Beyond the first and the last point it is straight. Without points it is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_APART = 0.3  # the least distance of two points
_FURTHEST = 1.5  # from the smallest u to where a curve that falls there counts as level


@dataclass
class Curve:
    """points : the value and the slope at each u"""

    points: dict[float, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def through(cls, u: Floats, values: Floats, level: float) -> Curve:
        """From the largest u down to the first value that is not finite, with slopes by differences.

        Points that lie close to the one before are left out. A curve that falls at the smallest u goes on to where its
        slope counts as `level` (`_way_on`), and does not fall any further.
        """
        kept: list[int] = []
        for n in np.argsort(-u).tolist():
            if not np.isfinite(values[n]):
                break
            if not kept or u[kept[-1]] - u[n] >= _APART:
                kept.append(n)
        u, values = u[kept[::-1]], values[kept[::-1]]
        slopes = np.gradient(values, u) if len(u) > 1 else np.zeros(len(u))
        way = _way_on(u, values, level)
        if way > 0:  # by a parabola
            u, values = np.append(u[0] - way, u), np.append(values[0] - slopes[0] * way / 2, values)
            slopes = np.append(0.0, slopes)
        slopes[:1] = np.minimum(slopes[:1], 0)
        return cls(dict(zip(u.tolist(), zip(values.tolist(), slopes.tolist()))))

    def __call__(self, u: Floats) -> Floats:
        if not self.points:
            return np.zeros(u.shape)
        at = np.array(sorted(self.points))
        values, slopes = np.array([self.points[point] for point in at.tolist()]).T
        inside = np.clip(u, at[0], at[-1])
        straight = (u - inside) * np.where(u < at[0], slopes[0], slopes[-1])
        if len(at) == 1:
            return np.asarray(values[0] + straight)
        left = np.clip(np.searchsorted(at, inside, side="right") - 1, 0, len(at) - 2)
        width = at[left + 1] - at[left]
        t = (inside - at[left]) / width
        of_values = values[left] * (1 + 2 * t) * (1 - t) ** 2 + values[left + 1] * t**2 * (3 - 2 * t)
        of_slopes = slopes[left] * t * (1 - t) ** 2 - slopes[left + 1] * t**2 * (1 - t)
        return np.asarray(of_values + width * of_slopes + straight)


def _way_on(u: Floats, values: Floats, level: float) -> float:
    """How far below the smallest u the slope of a curve comes down to `level`, if it goes on as it does there.

    Let p and q be the slopes of the two steps from the smallest u, and c the distance of their middles. A slope that is
    divided by q/p every c is level after c log(p/level)/log(q/p).
    """
    if len(u) < 3:
        return 0.0
    p, q = (np.diff(values) / np.diff(u))[:2].tolist()
    if p <= level:
        return 0.0
    if q <= p:
        return _FURTHEST
    return min(_FURTHEST, (u[2] - u[0]) / 2 * math.log(p / level) / math.log(q / p))
