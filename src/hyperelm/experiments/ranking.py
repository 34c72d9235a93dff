"""Models in the order of a measure, and how far chance lets that order be told.

A model's places are those that it may hold:

    1 + (models that are clearly better)  to  (models) - (models that are clearly worse).

Clearly leaves a chance of 5 % for a mistake in any of all K(K - 1)/2 pairs of equal models (Bonferroni). Of two models
with w and v wins, equal ones share the w + v competitions that one of both wins by tossing coins; the first is clearly
better if

    2 P(at least w of w + v tosses are heads) <= 5 % / (K(K - 1)/2).

Means are compared as `comparison` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hyperelm.experiments.comparison import LEVEL, Comparison
from hyperelm.experiments.definition import Row
from hyperelm.experiments.statistics import bootstrap_mean, bootstrap_shares, interval, shares, winners


class Ranking:
    """The models of some competitions, best first."""

    def __init__(
        self,
        models: Sequence[str],
        values: NDArray[np.float64],
        ends: NDArray[np.float64],
        ahead: NDArray[np.bool_],
        competitions: int,
    ) -> None:
        """`values` (models,) of the measure, `ends` (2, models) of their intervals, and who is ahead of whom."""
        self._at = {name: n for n, name in enumerate(models)}
        self._values, self._ends, self._ahead, self.competitions = values, ends, ahead, competitions
        self.order = sorted(models, key=lambda name: -values[self._at[name]])

    @classmethod
    def by_wins(cls, rows: Sequence[Row], models: Sequence[str], measure: str) -> Ranking:
        """By the share of competitions that a model wins."""
        won = list(winners(rows, measure).values())
        ends = interval(bootstrap_shares(won, models))
        return cls(models, shares(won, models), ends, _ahead_by_wins([won.count(name) for name in models]), len(won))

    @classmethod
    def by_mean(cls, rows: Sequence[Row], models: Sequence[str], measure: str) -> Ranking:
        """By the mean over the competitions, every one of which must have all models."""
        found = {(row["algebra"], row["n_hidden"], row["network"]): row[measure] for row in rows}
        competitions = sorted({key[1:] for key in found})
        table = np.array([[found[(name, *at)] for at in competitions] for name in models])
        compared = Comparison(dict(zip(models, table)))
        ahead = np.array([[compared.is_ahead(name, other) for other in models] for name in models])
        ends = np.array([bootstrap_mean(gains) for gains in table]).T
        return cls(models, table.mean(axis=1), ends, ahead, len(competitions))

    def value(self, name: str) -> float:
        return float(self._values[self._at[name]])

    def interval(self, name: str) -> tuple[float, float]:
        """The ends of the 95 % interval of a model by itself."""
        low, high = self._ends[:, self._at[name]]
        return float(low), float(high)

    def is_ahead(self, name: str, other: str) -> bool:
        """Whether a model is clearly better than another."""
        return bool(self._ahead[self._at[name], self._at[other]])

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


def _ahead_by_wins(wins: Sequence[int]) -> NDArray[np.bool_]:
    """Which models (rows) have clearly more wins than which others (columns)."""
    mine, theirs = np.array(wins)[:, None], np.array(wins)
    pairs = max(len(wins) * (len(wins) - 1) // 2, 1)
    chance = 2 * stats.binom.sf(mine - 1, mine + theirs, 0.5)
    return np.asarray((mine > theirs) & (chance <= LEVEL / pairs))
