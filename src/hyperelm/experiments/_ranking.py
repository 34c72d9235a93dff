"""Models in the order of a measure, and which of them chance cannot tell apart.

Every repetition (a random network, or a draw of the data) gives a score of every model, and more is better. One model
is *ahead of* another if their difference is beyond chance. "Beyond chance" allows a mistake in any of the K(K - 1)/2
pairs of K models in 5 % of all rankings, so each pair has the level 5 % / (K(K - 1)/2) (Bonferroni).

`Wins` counts the repetitions that a model wins. Two equal models with w and v wins would share these w + v wins like
tosses of a coin, so the first is ahead of the second if

    2 P(at least w of w + v tosses are heads) <= level.

`Means` compares mean scores. Model a is ahead of b if the paired differences s_a - s_b of n repetitions have

    mean(s_a - s_b) > t · deviation(s_a - s_b) / √n,

where t is the quantile of Student's distribution with n - 1 degrees of freedom at that level.

The places that chance leaves open to a model are 1 + (models ahead of it) to K - (models that it is ahead of).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hyperelm.experiments._definition import Row

Array = NDArray[np.float64]

DRAWS = 4000  # of the bootstrap
_LEVEL = 0.05
_SAME = 1e-6  # dB; models whose scores differ by less in every repetition are the same model


class Ranking:
    """Models in the order of their `values`, best first.

    `ahead` (K, K) tells which models (rows) are ahead of which (columns), in the order of `values`.
    """

    def __init__(self, values: Mapping[str, float], ahead: NDArray[np.bool_], repetitions: int) -> None:
        self._at = {name: n for n, name in enumerate(values)}
        self._values, self._ahead, self.repetitions = values, ahead, repetitions
        self.order = sorted(values, key=lambda name: -values[name])

    def value(self, name: str) -> float:
        """The share of wins, or the mean score."""
        return float(self._values[name])

    def is_ahead(self, name: str, other: str) -> bool:
        return bool(self._ahead[self._at[name], self._at[other]])

    def places(self, name: str) -> tuple[int, int]:
        """The first and the last place that chance leaves open to a model."""
        at = self._at[name]
        return 1 + int(self._ahead[:, at].sum()), len(self.order) - int(self._ahead[at].sum())

    def rivals(self, name: str) -> list[str]:
        """The models that cannot be told apart from one."""
        return [o for o in self.order if o != name and not self.is_ahead(o, name) and not self.is_ahead(name, o)]

    @property
    def contenders(self) -> list[str]:
        """The models that no other is ahead of."""
        return [name for name in self.order if self.places(name)[0] == 1]

    @property
    def clear_leader(self) -> str | None:
        """The model that is ahead of all others, if there is one."""
        return self.order[0] if not self.rivals(self.order[0]) else None

    def are_tied(self, names: Sequence[str]) -> bool:
        """Whether no two of several models can be told apart."""
        return len(names) > 1 and all(set(names) <= {name, *self.rivals(name)} for name in names)

    def groups(self) -> list[tuple[tuple[int, int], list[str]]]:
        """Places in order, each with the neighbours that may hold them."""
        return [(places, list(names)) for places, names in groupby(self.order, key=self.places)]


class Wins(Ranking):
    """Models by the share of repetitions that they win.

    `won` has the winner of every repetition. `shares` has the share of every model, and `ends` (2, models) the ends of
    their 95 % intervals. The intervals are those of a bootstrap: repetitions are drawn again with replacement, so the
    numbers of wins are multinomial with the observed shares.
    """

    def __init__(self, won: Sequence[str], models: Sequence[str]) -> None:
        wins = np.array([won.count(name) for name in models])
        chance = 2 * stats.binom.sf(wins[:, None] - 1, wins[:, None] + wins, 0.5)
        ahead = np.asarray((wins[:, None] > wins) & (chance <= _LEVEL / _pairs(len(models))))
        self.shares = wins / len(won)
        self.ends = _interval(np.random.default_rng(0).multinomial(len(won), self.shares, size=DRAWS) / len(won))
        super().__init__(dict(zip(models, self.shares.tolist())), ahead, len(won))

    def interval(self, name: str) -> Array:
        """The ends of the 95 % interval of a model by itself."""
        return self.ends[:, self._at[name]]


class Means(Ranking):
    """Models by their mean score. `scores` has the scores of every model, in the order of the repetitions.

    `same` has groups of models with the same score in every repetition, best first. Such models are one model.
    """

    def __init__(self, scores: Mapping[str, Sequence[float] | Array]) -> None:
        self._scores = np.array(list(scores.values()), dtype=np.float64)
        means = self._scores.mean(axis=1)
        # Scores that are the same but for rounding may have a tiny deviation, and so seem to differ.
        self._same = np.array([(np.abs(self._scores - row) < _SAME).all(axis=1) for row in self._scores])
        ahead = (means[:, None] - means > self._margins()) & ~self._same
        super().__init__(dict(zip(scores, means.tolist())), ahead, self._scores.shape[1])
        self.same = self._groups()

    def _margins(self) -> Array:
        """The differences of means that chance explains, (K, K)."""
        K, n = self._scores.shape
        if n < 2:
            return np.full((K, K), np.inf)
        centred = self._scores - self._scores.mean(axis=1, keepdims=True)
        products = centred @ centred.T
        squares = np.maximum(np.diag(products)[:, None] + np.diag(products) - 2 * products, 0)
        return np.asarray(stats.t.isf(_LEVEL / 2 / _pairs(K), n - 1) * np.sqrt(squares / (n * (n - 1))))

    def interval(self, name: str) -> Array:
        """The ends of the 95 % interval of a model by itself."""
        return bootstrap_mean(self._scores[self._at[name]])

    def margin(self, name: str) -> float:
        """Half the length of the interval of a model's distance from the mean of all, for all models at once."""
        K, n = self._scores.shape
        if n < 2:
            return float("inf")
        distances = self._scores[self._at[name]] - self._scores.mean(axis=0)
        return float(stats.t.isf(_LEVEL / 2 / K, n - 1) * distances.std(ddof=1) / np.sqrt(n))

    def _groups(self) -> list[list[str]]:
        groups: dict[str, list[str]] = {}
        for name in self.order:
            first = next((first for first in groups if self._same[self._at[first], self._at[name]]), name)
            groups.setdefault(first, []).append(name)
        return list(groups.values())

    def differ_alone(self, name: str, other: str) -> bool:
        """Whether two models are told apart if no other pair is looked at."""
        return len(Means({key: self._scores[self._at[key]] for key in (name, other)}).contenders) == 1


def _pairs(models: int) -> int:
    return max(models * (models - 1) // 2, 1)


def bootstrap_mean(values: Sequence[float] | Array) -> Array:
    """The ends of the 95 % interval of a mean, (2,)."""
    array = np.asarray(values)
    chosen = np.random.default_rng(0).integers(len(array), size=(DRAWS // 4, len(array)))
    return _interval(array[chosen].mean(axis=1))


def _interval(draws: Array) -> Array:
    return np.asarray(np.quantile(draws, [_LEVEL / 2, 1 - _LEVEL / 2], axis=0))


class Leader:
    """The model that most often has the best run of those that compete, while runs come in.

    Runs compete if they have the same values of the fields `shared`. Of equal runs, the first by name wins.
    """

    def __init__(self, measure: str, shared: tuple[str, ...], rows: Iterable[Row] = ()) -> None:
        self._measure, self._shared = measure, shared
        self._best: dict[tuple[Any, ...], tuple[float, str]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        at, mine = tuple(row[key] for key in self._shared), (-row[self._measure], row["algebra"])
        self._best[at] = min(mine, self._best.get(at, mine))

    @property
    def winners(self) -> dict[tuple[Any, ...], str]:
        """The model with the best run of every competition, by the values of the fields `shared`."""
        return {at: name for at, (_, name) in self._best.items()}

    def __str__(self) -> str:
        if not self._best:
            return ""
        name, wins = min(Counter(self.winners.values()).items(), key=lambda item: (-item[1], item[0]))
        return f"{name} leads ({wins / len(self._best):.0%} of wins)"


def grouped(rows: Iterable[Row], key: str) -> dict[Hashable, list[Row]]:
    """Rows by the value of a field, in the order of their first appearance."""
    groups: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return dict(groups)


def mean_of(rows: Sequence[Row], measure: str) -> float:
    return float(np.mean([row[measure] for row in rows]))
