"""A function of one variable from its values and slopes at a few points.

Between two neighbouring points a and b it is the cubic with their values and slopes. With t = (u - a)/(b - a),

    f(u) = f(a) (1 + 2t)(1 - t)² + f(b) t²(3 - 2t) + (b - a) (f'(a) t (1 - t)² - f'(b) t² (1 - t)).

Beyond the first and the last point it is straight. Without points it is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_APART = 0.3  # the least distance of two points


@dataclass
class Curve:
    """points : the value and the slope at each u"""

    points: dict[float, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def through(cls, u: Floats, values: Floats) -> Curve:
        """Through values that are finite, from the largest u down, with slopes by differences.

        Points that lie close to the one before are left out. The curve does not fall beyond the smallest u.
        """
        kept: list[int] = []
        for n in np.argsort(-u).tolist():
            if not np.isfinite(values[n]):
                break
            if not kept or u[kept[-1]] - u[n] >= _APART:
                kept.append(n)
        u, values = u[kept[::-1]], values[kept[::-1]]
        slopes = np.gradient(values, u) if len(u) > 1 else np.zeros(len(u))
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
