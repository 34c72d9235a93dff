"""The runs of a Lorenz experiment, summed up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hyperelm import algebras
from hyperelm.algebra import Algebra
from hyperelm.experiments.definition import Row
from hyperelm.experiments.ranking import Ranking
from hyperelm.experiments.statistics import by
from hyperelm.experiments.store import Store

GAIN = "prediction_gain"


class Results:
    """What the claims and the sections of the report are made of."""

    def __init__(self, store: Store) -> None:
        self.settings = store.settings
        self.models: list[str] = store.settings["models"]
        self.real = next((name for name in self.models if _is_real(name)), None)
        self.main, self.forecast = store.rows("main"), store.rows("forecast")
        self.tuned_runs, sensitivity = store.rows("tuned"), by(store.rows("sensitivity"), "variant")
        self.wins = Ranking.by_wins(self.main, self.models, GAIN)
        self.tuned = Ranking.by_mean(self.tuned_runs, self.models, GAIN)
        runs = {item["name"]: sensitivity[(item["name"],)] for item in store.settings["sensitivity"]}
        self.variants = {name: Ranking.by_wins(rows, self.models, GAIN) for name, rows in runs.items()}
        self.variant_gains = {name: mean_gains(rows, self.models) for name, rows in runs.items()}

    @property
    def is_lorenz(self) -> bool:
        return bool(self.settings["series"] == "lorenz")

    @property
    def led(self) -> list[str]:
        """The variants in which the real model has the most wins, clearly or by chance."""
        return [name for name, wins in self.variants.items() if wins.order[0] == self.real and len(self.models) > 1]

    @property
    def overturned(self) -> list[str]:
        """Those in which it clearly has."""
        return [name for name in self.led if self.variants[name].clear_leader]

    @property
    def real_is_best_when_tuned(self) -> bool:
        return self.real is not None and self.tuned.clear_leader == self.real


def algebra_of(name: str) -> Algebra | None:
    """The algebra of a model, unless it is of another version's catalogue."""
    try:
        return algebras.get(name)
    except ValueError:
        return None


def _is_real(name: str) -> bool:
    algebra = algebra_of(name)
    return algebra is not None and algebra.dim == 1


def mean_gains(rows: Sequence[Row], models: Sequence[str]) -> dict[str, float]:
    groups = by(rows, "algebra")
    return {name: float(np.mean([row[GAIN] for row in groups[(name,)]])) for name in models}
