"""Models in the order of a measure, and how far chance lets that order be told.

The competitions are drawn again with replacement, for all models at once. A model's places are those that it may hold:

    1 + (models that are clearly better)  to  (models) - (models that are clearly worse),

where clearly means throughout the 95 % interval of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments.definition import Row
from hyperelm.experiments.statistics import DRAWS, bootstrap_shares, can_tell_apart, interval, shares, winners

# With fewer, winning all of them has a chance of 2 · 2⁻⁵ = 6 % for either of two equal models.
_LEAST = 6


class Ranking:
    """The models of some competitions, best first."""

    def __init__(
        self, models: Sequence[str], values: NDArray[np.float64], draws: NDArray[np.float64], competitions: int
    ) -> None:
        """`values` (models,) of the measure, and `draws` (draws, models) of it from the bootstrap."""
        self._at = {name: n for n, name in enumerate(models)}
        self._values, self._draws, self.competitions = values, draws, competitions
        self.order = sorted(models, key=lambda name: -values[self._at[name]])

    @classmethod
    def by_wins(cls, rows: Sequence[Row], models: Sequence[str], measure: str) -> Ranking:
        """By the share of competitions that a model wins."""
        won = list(winners(rows, measure).values())
        return cls(models, shares(won, models), bootstrap_shares(won, models), len(won))

    @classmethod
    def by_mean(cls, rows: Sequence[Row], models: Sequence[str], measure: str) -> Ranking:
        """By the mean over the competitions, every one of which must have all models."""
        found = {(row["algebra"], row["n_hidden"], row["network"]): row[measure] for row in rows}
        competitions = sorted({key[1:] for key in found})
        table = np.array([[found[(name, *at)] for name in models] for at in competitions])
        n = len(table)
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        return cls(models, table.mean(axis=0), drawn @ table / n, n)

    def value(self, name: str) -> float:
        return float(self._values[self._at[name]])

    def interval(self, name: str) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        low, high = interval(self._draws[:, self._at[name]])
        return float(low), float(high)

    def is_ahead(self, name: str, other: str) -> bool:
        """Whether a model is clearly better than another."""
        a, b = self._at[name], self._at[other]
        enough = self.competitions >= _LEAST
        return bool(enough and self._values[a] > self._values[b] and can_tell_apart(self._draws, a, b))

    def places(self, name: str) -> tuple[int, int]:
        """The first and the last place that a model may hold."""
        better = sum(self.is_ahead(other, name) for other in self.order)
        worse = sum(self.is_ahead(name, other) for other in self.order)
        return 1 + better, len(self.order) - worse

    def rivals(self, name: str) -> list[str]:
        """The models that cannot be told apart from one."""
        return [o for o in self.order if o != name and not self.is_ahead(o, name) and not self.is_ahead(name, o)]

    @property
    def clear_leader(self) -> str | None:
        """The model that is clearly better than every other one, if there is one."""
        return self.order[0] if not self.rivals(self.order[0]) else None

    def are_tied(self, names: Sequence[str]) -> bool:
        """Whether no two of several models can be told apart."""
        return len(names) > 1 and all(set(names) <= {name, *self.rivals(name)} for name in names)

    def groups(self) -> list[tuple[tuple[int, int], list[str]]]:
        """Places with the models that may hold them, in order."""
        return [(places, list(names)) for places, names in groupby(self.order, key=self.places)]
