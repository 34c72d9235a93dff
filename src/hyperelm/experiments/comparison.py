"""Many candidates on the same repetitions, and which of their differences chance explains.

Each repetition (a random network, or a draw of the data) has a score of every candidate. Candidate a is *ahead of* b if
the paired differences s_a - s_b of n repetitions have

    mean(s_a - s_b) > t · deviation(s_a - s_b) / √n,

where t leaves a chance of 5 % for a mistake in any of all K(K - 1)/2 pairs (Bonferroni). So the best of hundreds is not
called best for having had the most luck. A candidate's places are those that it may hold,

    1 + (candidates that are ahead)  to  K - (candidates that it is ahead of).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

LEVEL = 0.05
_SAME = 1e-6  # scores in dB that differ by less in every repetition are of the same model


class Comparison:
    """Candidates with their scores in n repetitions, more being better.

    Attributes
    ----------
    order : list of str
        The names, best mean first.
    repetitions : int
    """

    def __init__(self, scores: Mapping[str, Sequence[float] | Array]) -> None:
        names = list(scores)
        table = np.array([scores[name] for name in names], dtype=np.float64)
        means = table.mean(axis=1)
        best_first = np.argsort(-means, kind="stable")
        self.order = [names[n] for n in best_first]
        self._at = {name: n for n, name in enumerate(self.order)}
        self._scores, self._means = table[best_first], means[best_first]
        self.repetitions = table.shape[1]
        self._ahead = self._means[:, None] - self._means > self._margins(len(names) * (len(names) - 1) // 2)
        self._ahead &= ~self._same_in_all()

    def _margins(self, pairs: int) -> Array:
        """The differences of means that chance explains, (K, K), if so many pairs are looked at."""
        K, n = self._scores.shape
        if n < 2:
            return np.full((K, K), np.inf)
        centred = self._scores - self._means[:, None]
        products = centred @ centred.T
        squares = np.maximum(np.diag(products)[:, None] + np.diag(products) - 2 * products, 0)
        quantile = stats.t.isf(LEVEL / 2 / max(pairs, 1), n - 1)
        return np.asarray(quantile * np.sqrt(squares / (n * (n - 1))))

    def _same_in_all(self) -> NDArray[np.bool_]:
        return np.array([(np.abs(self._scores - scores) < _SAME).all(axis=1) for scores in self._scores])

    def value(self, name: str) -> float:
        """The mean score."""
        return float(self._means[self._at[name]])

    def margin(self, name: str) -> float:
        """Half the length of the interval of a candidate's distance from the mean of all, for all of them at once."""
        distances = self._scores[self._at[name]] - self._scores.mean(axis=0)
        n, K = self.repetitions, len(self.order)
        if n < 2:
            return float("inf")
        return float(stats.t.isf(LEVEL / 2 / K, n - 1) * distances.std(ddof=1) / np.sqrt(n))

    def is_ahead(self, name: str, other: str) -> bool:
        return bool(self._ahead[self._at[name], self._at[other]])

    def places(self, name: str) -> tuple[int, int]:
        """The first and the last place that a candidate may hold."""
        at = self._at[name]
        return 1 + int(self._ahead[:, at].sum()), len(self.order) - int(self._ahead[at].sum())

    @property
    def contenders(self) -> list[str]:
        """The candidates that may be the best: those of which none is ahead."""
        return [name for name in self.order if self.places(name)[0] == 1]

    @property
    def same(self) -> list[list[str]]:
        """Groups of candidates with the same score in every repetition, which are the same model; best first."""
        same, seen, groups = self._same_in_all(), set[int](), []
        for n in range(len(self.order)):
            if n not in seen:
                group = np.flatnonzero(same[n]).tolist()
                seen.update(group)
                groups.append([self.order[m] for m in group])
        return groups

    def differ_alone(self, name: str, other: str) -> bool:
        """Whether two candidates can be told apart if nothing else is looked at."""
        pair = Comparison({key: self._scores[self._at[key]] for key in (name, other)})
        return pair.is_ahead(name, other) or pair.is_ahead(other, name)


def share_between(scores: Mapping[str, float], groups: Sequence[Sequence[str]]) -> float:
    """The share of the variance of scores that lies between groups and not within them."""
    values = [np.array([scores[name] for name in group]) for group in groups]
    everything = np.concatenate(values)
    total = float(np.sum((everything - everything.mean()) ** 2))
    between = sum(len(group) * (group.mean() - everything.mean()) ** 2 for group in values)
    return float(between / total) if total > 0 else 0.0
