"""The runs of a search, summed up: tables, and classes of tables that are one algebra with its units renamed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hyperelm._lazy import lazy
from hyperelm.algebra import Algebra
from hyperelm.experiments.comparison import Comparison, share_between
from hyperelm.experiments.definition import Row
from hyperelm.experiments.report import counted, decibels, listed
from hyperelm.experiments.search_tasks import MEASURE, is_linear
from hyperelm.experiments.statistics import by
from hyperelm.experiments.store import Store
from hyperelm.families import Copies, classes, known_names, members, returning_units

Array = NDArray[np.float64]

_TIE = float(10 * np.log10(1.01))  # dB; squared errors within 1 % count as equal


class Results:
    """What the report and the command line say."""

    def __init__(self, store: Store) -> None:
        self.settings = store.settings
        self.algebras = members(store.settings["family"], store.settings["dim"])
        self.classes = classes(self.algebras)
        self.class_of = {name: group for group in self.classes for name in group.members}
        scores = _scores(store.rows())
        self.tables, self.by_class = Comparison(scores), self._of_classes(scores)
        runs = by(store.rows("reference"), "variant")
        self._references = {str(v): float(np.mean([row["score"] for row in rows])) for (v,), rows in runs.items()}
        self.reference = self._references[""]
        # The classes at other weight scales.
        runs = by(store.rows("scale"), "variant")
        self.scales = {str(scale): self._of_classes(_scores(rows)) for (scale,), rows in runs.items()}
        self.parameters = int(store.rows()[0]["parameters"])
        self.reference_parameters = int(store.rows("reference")[0]["parameters"])
        # What is simpler, with the number of parameters and the score; only on the columns of a file.
        self.baselines = {
            str(row["algebra"]): (int(row["parameters"]), float(row["score"])) for row in store.rows("baseline")
        }

    @property
    def is_linear(self) -> bool:
        return is_linear(self.settings)

    @property
    def is_imaginary(self) -> bool:
        return bool(self.settings["packing"] == "imaginary")

    def _of_classes(self, scores: dict[str, Array]) -> Comparison:
        """Classes by number, each with the mean over its tables in every repetition."""
        return Comparison({str(c.number): np.mean([scores[n] for n in c.members], axis=0) for c in self.classes})

    def group(self, number: str) -> Copies:
        return self.classes[int(number) - 1]

    def known(self, names: Sequence[str]) -> list[str]:
        """What the catalogue calls some tables."""
        return [known for name in names for known in known_names(self.algebras[name])]

    def label(self, name: str) -> str:
        """A table with its names."""
        known = [other for other in known_names(self.algebras[name]) if other != name]
        return f"{name} ({', '.join(known)})" if known else name

    def best_of(self, group: Copies) -> str:
        return min(group.members, key=self.tables.order.index)

    @lazy
    def share_between_classes(self) -> float:
        means = {name: self.tables.value(name) for name in self.tables.order}
        return share_between(means, [group.members for group in self.classes])

    @lazy
    def partners(self) -> list[tuple[str, str]]:
        """Pairs of tables that are equal in distribution on imaginary data: each is the other with x* for x."""
        names = {algebra: name for name, algebra in self.algebras.items()}
        found = ((name, names.get(conjugated(algebra))) for name, algebra in self.algebras.items())
        return [(name, other) for name, other in found if other is not None and name < other]

    def correlation(self, scale: str) -> float:
        """The rank correlation of the classes' means with those at another weight scale; nan where all are equal."""
        here, there = (
            [ranking.value(n) for n in self.by_class.order] for ranking in (self.by_class, self.scales[scale])
        )
        if len(set(here)) == 1 or len(set(there)) == 1:
            return float("nan")
        return float(stats.spearmanr(here, there)[0])

    @lazy
    def returning(self) -> dict[str, int]:
        """The units with (xu)u = x(uu) of every class."""
        return {str(c.number): returning_units(c.form) for c in self.classes}

    @lazy
    def returning_correlation(self) -> float | None:
        """The rank correlation of the classes' means with the number of such units; None where that tells nothing."""
        if self.is_linear or len({*self.returning.values()}) == 1:
            return None
        order = self.by_class.order
        found = stats.spearmanr([self.returning[n] for n in order], [self.by_class.value(n) for n in order])
        return float(found[0])

    @property
    def better_baselines(self) -> list[str]:
        """The baselines than which no table is better."""
        return [name for name, (_, score) in self.baselines.items() if not self.better_than(score)]

    def better_than(self, score: float) -> int:
        """How many tables have a squared error that is smaller by more than 1 %."""
        return sum(self.tables.value(name) > score + _TIE for name in self.tables.order)

    def reference_at(self, scale: str) -> float:
        """The mean score of the real networks at another weight scale."""
        return self._references[scale]


def conjugated(algebra: Algebra) -> Algebra:
    """The table x ∘ y = (x* y*)*, with all units behind the first negated."""
    signs = np.ones(algebra.dim)
    signs[1:] = -1
    return Algebra(algebra.table * signs[:, None, None] * signs[:, None] * signs)


def _scores(rows: Sequence[Row]) -> dict[str, Array]:
    """The scores of every table by the number of the network."""
    return {
        str(name): np.array([row["score"] for row in sorted(runs, key=lambda row: int(row["network"]))])
        for (name,), runs in by(rows, "algebra").items()
    }


def outcome(directory: Path) -> list[str]:
    """The first places, for the terminal."""
    with Store.open(directory) as store:
        results = Results(store)
    tables = results.tables
    measure = MEASURE[results.settings["task"]]
    lines = [f"{measure[0].upper()}{measure[1:]}, and the places that chance leaves open:"]
    for place, name in enumerate(tables.order[:5], start=1):
        first, last = tables.places(name)
        held = f"place {first}" if first == last else f"places {first} to {last} of {len(tables.order)}"
        structure = results.algebras[name].structure
        twins = next(len(group) - 1 for group in tables.same if name in group)
        held += f", the same model as {twins} other{'s' * (twins > 1)}" * (twins > 0)
        lines.append(f"{place}. {results.label(name)}, {structure}: {_plain(tables.value(name))}, {held}")
    if len(tables.contenders) == len(tables.order) > 1:
        lines.append("Chance alone may make this order: no algebra is told apart as better than another.")
    if results.baselines:
        lines.append(f"Beside these tables, which have {results.parameters:,} parameters, on the same rows:")
        for name, count, score in beside(results):
            better = f"{results.better_than(score)} of {len(tables.order)} tables are better by 1 % or more"
            lines.append(f"- {name}, {counted(count, 'parameter')}: {_plain(score)}; {better}")
    return [*lines, *([warning(results)] if results.better_baselines else [])]


def beside(results: Results) -> list[tuple[str, int, float]]:
    """What to compare the tables with, on the columns of a file: name, number of parameters and score of each."""
    real = ("real networks", results.reference_parameters, results.reference)
    return [real, *((name, *found) for name, found in results.baselines.items())]


def warning(results: Results) -> str:
    """That something simpler does as well as every table."""
    return f"No table does better than {listed(results.better_baselines)}. Use what is simpler."


def _plain(value: float) -> str:
    """A score for any terminal."""
    return decibels(value).replace("\u00a0", " ").replace("−", "-")
