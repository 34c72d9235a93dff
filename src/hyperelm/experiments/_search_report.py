"""What the report of a search shows: tables, and classes of tables that are one algebra with its units renamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from hyperelm import Algebra
from hyperelm.experiments import _search as tasks
from hyperelm.experiments._definition import Row
from hyperelm.experiments._ranking import Means, grouped, mean_of
from hyperelm.experiments._report import listed
from hyperelm.experiments._store import Store
from hyperelm.families import classes, known_names, members, returning_units

_TIE = float(10 * np.log10(1.01))  # dB; squared errors within 1 % count as equal
SHOWN = 20  # tables that are listed, besides those that have a name

_COLOURS = {"associative": "#d55e00", "commutative, not associative": "#0072b2", "neither of both": "#7f7f7f"}
_LINES = 27  # the names of more classes than these are written small


class SearchResults:
    """The runs of a store, summed up."""

    def __init__(self, store: Store) -> None:
        self.settings, self.measure = store.settings, tasks.TASKS[store.settings["task"]]["measure"]
        self.is_linear = tasks.is_linear(store.settings)
        self.is_imaginary = store.settings["packing"] == "imaginary"
        self.algebras = members(store.settings["family"], store.settings["dim"])
        self.classes = classes(self.algebras)
        self.group = {str(group.number): group for group in self.classes}
        self.class_of = {name: group for group in self.classes for name in group.members}
        main, references = store.rows(), store.rows("reference")
        self.tables = Means(_scores(main))
        self.means = {name: self.tables.value(name) for name in self.tables.order}
        self.by_class = self._of_classes(main)
        self.parameters = int(main[0]["parameters"])
        self.reference_parameters = int(references[0]["parameters"])
        # The mean score of the real networks by weight scale; "" is that of the main part.
        self.references = {str(scale): mean_of(rows, "score") for scale, rows in grouped(references, "variant").items()}
        self.reference = self.references[""]
        # The classes at other weight scales.
        runs = grouped(store.rows("scale"), "variant")
        self.scales = {str(scale): self._of_classes(rows) for scale, rows in runs.items()}
        # The parameters and the score of simpler models, for the columns of a file.
        self.baselines = {
            str(row["algebra"]): (int(row["parameters"]), float(row["score"])) for row in store.rows("baseline")
        }
        better = [name for name, (_, score) in self.baselines.items() if not self.better_than(score)]
        self.warning = f"No table does better than {listed(better)}. Use what is simpler." if better else ""
        # What the tables are compared with: name, number of parameters and score.
        self.beside = [("real networks", self.reference_parameters, self.reference)]
        # A learned table beside the family; results of earlier releases have none.
        self.learned = store.rows("learned")
        if self.learned:
            name = "a learned table" if self.is_linear else f"a learned readout over {self.learned[0]['algebra']}"
            self.beside.append((name, int(self.learned[0]["parameters"]), mean_of(self.learned, "score")))
        self.beside += [(name, *found) for name, found in self.baselines.items()]
        # Groups of several tables that are the same model.
        self.same = [group for group in self.tables.same if len(group) > 1]
        sizes = sorted(Counter(map(len, self.same)).items())
        self.same_sizes = [f"{count} groups of {size} tables" for size, count in sizes]
        # Structures with the numbers of their classes and tables, the most frequent first.
        found = Counter(group.form.structure for group in self.classes)
        tables = Counter(group.form.structure for group in self.class_of.values())
        self.structures = [(name, count, tables[name]) for name, count in found.most_common()]

    def _of_classes(self, rows: Sequence[Row]) -> Means:
        """Classes by number, each with the mean over its tables in every repetition."""
        scores = _scores(rows)
        return Means({str(c.number): np.mean([scores[n] for n in c.members], axis=0) for c in self.classes})

    def label(self, name: str) -> str:
        """A table with its names in the catalogue."""
        known = [other for other in known_names(self.algebras[name]) if other != name]
        return f"{name} ({', '.join(known)})" if known else name

    def class_name(self, number: str) -> str:
        """The number of a class, with the names of its tables or its structure."""
        group = self.group[number]
        names = [known for name in group.members for known in known_names(self.algebras[name])]
        names = [name for name in names if not name.startswith("Cl(")]
        if not names and group.form.is_associative:
            names = [group.form.structure]
        return f"{number} {', '.join(names)}".strip()

    @property
    def listed_tables(self) -> list[str]:
        """The best tables and those that have a name, or all of a small family."""
        order = self.tables.order
        return [t for n, t in enumerate(order) if n < SHOWN or known_names(self.algebras[t]) or len(order) < 50]

    @property
    def share_between_classes(self) -> float:
        """The share of the variance of the tables' means that lies between classes and not within them."""
        groups = [[self.means[name] for name in group.members] for group in self.classes]
        between = np.var(np.repeat([np.mean(group) for group in groups], [len(group) for group in groups]))
        total = np.var(np.concatenate(groups))
        return float(between / total) if total > 0 else 0.0

    @cached_property
    def partners(self) -> list[tuple[str, str]]:
        """Pairs of tables that are equal in distribution on imaginary data: each is the other with x* for x."""
        names = {algebra: name for name, algebra in self.algebras.items()}
        found = ((name, names.get(conjugated(algebra))) for name, algebra in self.algebras.items())
        return [(name, other) for name, other in found if other is not None and name < other]

    @property
    def partners_told_apart(self) -> tuple[int, int]:
        """How many of these pairs differ if each is looked at alone, and if all pairs are considered together."""
        alone = sum(self.tables.differ_alone(*pair) for pair in self.partners)
        return alone, sum(self.tables.is_ahead(a, b) or self.tables.is_ahead(b, a) for a, b in self.partners)

    def twins(self, name: str) -> int:
        """How many other tables are the same model."""
        return sum(len(group) - 1 for group in self.same if name in group)

    def correlation(self, scale: str) -> float:
        """The rank correlation of the classes' means with those at another weight scale. It is nan if all are equal."""
        return self._rank_correlation(self.scales[scale].value)

    def _rank_correlation(self, value: Callable[[str], float]) -> float:
        x, y = ([f(number) for number in self.by_class.order] for f in (value, self.by_class.value))
        return float(stats.spearmanr(x, y)[0]) if len({*x}) > 1 < len({*y}) else float("nan")

    @cached_property
    def returning(self) -> dict[str, int]:
        """The number of units with (xu)u = x(uu) of every class."""
        return {str(c.number): returning_units(c.form) for c in self.classes}

    @cached_property
    def returning_correlation(self) -> float | None:
        """The rank correlation of the classes' means with the number of such units, if it varies."""
        if self.is_linear or len({*self.returning.values()}) == 1:
            return None
        return self._rank_correlation(self.returning.__getitem__)

    @property
    def means_by_returning(self) -> dict[int, float]:
        """The mean of the classes' means for every number of such units."""
        means: dict[int, list[float]] = {}
        for number, count in sorted(self.returning.items(), key=lambda item: item[1]):
            means.setdefault(count, []).append(self.by_class.value(number))
        return {count: float(np.mean(values)) for count, values in means.items()}

    def better_than(self, score: float) -> int:
        """How many tables have a squared error that is smaller by more than 1 %."""
        return sum(mean > score + _TIE for mean in self.means.values())


def conjugated(algebra: Algebra) -> Algebra:
    """The table x ∘ y = (x* y*)*, with all units but the first negated."""
    signs = np.ones(algebra.dim)
    signs[1:] = -1
    return Algebra(algebra.table * signs[:, None, None] * signs[:, None] * signs)


def _scores(rows: Sequence[Row]) -> dict[str, list[float]]:
    """The scores of every table, in the order of the networks."""
    return {str(name): [row["score"] for row in runs] for name, runs in grouped(rows, "algebra").items()}


def build(store: Store, document: dict[str, Any]) -> dict[str, Any]:
    results, settings = SearchResults(store), store.settings
    subject = {
        "lorenz": "predicting the Lorenz system",
        "images": f"patches of images ({'CIFAR-10' if settings['data'] != 'sample' else 'two photographs'})",
        "hidden": f"data made in {settings['hidden']}",
        "csv": f"columns of {settings['data'].rpartition('/')[2]}",
    }[settings["task"]]
    pictures = {"classes": _class_scores}
    if results.returning_correlation is not None:
        pictures["returning-units"] = _by_returning_units
    if results.scales:
        pictures["weight-scales"] = _other_scales
    return {
        "title": f"{document['title']}: {subject}",
        "results": results,
        "pictures": {name: partial(draw, results) for name, draw in pictures.items()},
        "verdicts": {},
        "tasks": tasks,
        "SHOWN": SHOWN,
    }


def _property(results: SearchResults, number: str) -> str:
    algebra = results.group[number].form
    if algebra.is_associative:
        return "associative"
    return "commutative, not associative" if algebra.is_commutative else "neither of both"


def _dots(
    axes: Any, results: SearchResults, x: Callable[[str], float], y: Callable[[str], float], **style: Any
) -> None:
    """The classes as dots, coloured by their properties."""
    for label, colour in _COLOURS.items():
        numbers = [number for number in results.by_class.order if _property(results, number) == label]
        if numbers:
            axes.plot([*map(x, numbers)], [*map(y, numbers)], color=colour, label=label, ls="", **style)


def _class_scores(results: SearchResults) -> Figure:
    """Every class with its mean and the scores of its tables."""
    ranking, order = results.by_class, results.by_class.order
    small = len(order) > _LINES
    figure = Figure(figsize=(5.0, 1.3 + (0.12 if small else 0.25) * len(order)))
    axes = figure.subplots()
    for n, number in enumerate(order):
        tables = [results.means[name] for name in results.group[number].members]
        axes.plot(tables, [n] * len(tables), "|", color="#999999", ms=5, mew=0.7, zorder=1)
        margin, label = ranking.margin(number), _property(results, number)
        xerr = margin if np.isfinite(margin) else None
        style: dict[str, Any] = {"fmt": "o", "ms": 3 if small else 5, "lw": 1, "color": _COLOURS[label]}
        axes.errorbar(ranking.value(number), n, xerr=xerr, label=label, **style)
    axes.axvline(results.reference, color="#000000", lw=0.8, ls=":", label="reference without an algebra")
    for name, (_, score) in results.baselines.items():
        if score:  # the mean of the targets is the zero of the scale
            axes.axvline(score, color="#000000", lw=0.8, ls="--", label=name)
    axes.set_yticks(range(len(order)), [*map(results.class_name, order)], fontsize=5.5 if small else 8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlabel(f"{results.measure} (dB)")
    handles, labels = axes.get_legend_handles_labels()
    kept = dict(zip(labels, handles))
    figure.legend(kept.values(), kept, loc="outside upper center", ncols=2)
    return figure


def _by_returning_units(results: SearchResults) -> Figure:
    """The classes' means by the number of units with (xu)u = x(uu)."""
    figure = Figure(figsize=(5.0, 3.0))
    axes = figure.subplots()
    x, y = results.returning.__getitem__, results.by_class.value
    _dots(axes, results, x, y, marker="o", ms=5, mec="none", alpha=0.6)
    axes.set_xticks([*results.means_by_returning])
    axes.margins(x=0.15)
    axes.set_xlabel("units with (xu)u = x(uu)")
    axes.set_ylabel(f"{results.measure} (dB)", fontsize=8)
    axes.legend()
    return figure


def _other_scales(results: SearchResults) -> Figure:
    """The classes' means at other weight scales over those of the main part."""
    figure = Figure(figsize=(5.0, 2.9))
    panels = figure.subplots(1, len(results.scales), squeeze=False)[0]
    for axes, (scale, ranking) in zip(panels, results.scales.items()):
        _dots(axes, results, results.by_class.value, ranking.value, marker=".")
        axes.set_title(f"weight scale {scale}", fontsize=9, loc="left")
        axes.set_xlabel(f"dB at {results.settings['weight_scale']:g}")
    panels[0].set_ylabel("dB")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
