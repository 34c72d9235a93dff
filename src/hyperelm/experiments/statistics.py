"""Who wins how often, and how sure that is.

Runs of the same size and number compete; the model with the highest measure wins. Intervals are from the bootstrap:
competitions are drawn again with replacement, so the numbers of wins are multinomial with the observed shares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments.definition import Row

DRAWS = 4000
_LEVEL = 0.95


def winners(rows: Sequence[Row], measure: str) -> dict[tuple[int, int], str]:
    """The winner of every competition, (n_hidden, network) -> algebra."""
    best: dict[tuple[int, int], Row] = {}
    for row in rows:
        at = (row["n_hidden"], row["network"])
        if at not in best or row[measure] > best[at][measure]:
            best[at] = row
    return {at: row["algebra"] for at, row in best.items()}


def shares(won: Sequence[str], models: Sequence[str]) -> NDArray[np.float64]:
    """The share of wins of every model."""
    return np.array([sum(winner == model for winner in won) for model in models]) / max(len(won), 1)


def bootstrap_shares(won: Sequence[str], models: Sequence[str], seed: int = 0) -> NDArray[np.float64]:
    """Shares of wins in bootstrap samples, (draws, models)."""
    drawn = np.random.default_rng(seed).multinomial(len(won), shares(won, models), size=DRAWS)
    return np.asarray(drawn / len(won))


def interval(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ends of the 95 % interval along the first axis, (2, ...)."""
    return np.asarray(np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0))


def by(rows: Sequence[Row], *keys: str) -> dict[tuple[object, ...], list[Row]]:
    """Rows grouped by the values of some fields, in the order of their first appearance."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> NDArray[np.float64]:
    """The 95 % interval of a mean."""
    array = np.asarray(values)
    chosen = np.random.default_rng(seed).integers(len(array), size=(DRAWS // 4, len(array)))
    return interval(array[chosen].mean(axis=1))
