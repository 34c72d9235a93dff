"""The figures of a search."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from hyperelm.algebra import Algebra
from hyperelm.experiments.report import Picture, decimal
from hyperelm.experiments.search_results import Results

_COLOURS = {"associative": "#d55e00", "commutative, not associative": "#0072b2", "neither of both": "#7f7f7f"}
_LINES = 27  # classes from which on their names are written small


def _kind(algebra: Algebra) -> str:
    if algebra.is_associative:
        return "associative"
    return "commutative, not associative" if algebra.is_commutative else "neither of both"


def class_name(results: Results, number: str) -> str:
    """The number of a class, and what it is called or is."""
    group = results.group(number)
    names = [name for name in results.known(group.members) if not name.startswith("Cl(")]
    if not names and group.form.is_associative:
        names = [group.form.structure]
    return f"{number} {', '.join(names)}".strip()


def class_scores(results: Results, measure: str) -> Picture:
    """Every class with its mean and the scores of its tables."""
    ranking = results.by_class
    small = len(ranking.order) > _LINES

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for n, number in enumerate(ranking.order):
            group = results.group(number)
            kind = _kind(group.form)
            tables = [results.tables.value(name) for name in group.members]
            axes.plot(tables, [n] * len(tables), "|", color="#999999", ms=5, mew=0.7, zorder=1)
            margin = ranking.margin(number)
            axes.errorbar(
                ranking.value(number),
                n,
                xerr=margin if np.isfinite(margin) else None,
                fmt="o",
                ms=3 if small else 5,
                lw=1,
                color=_COLOURS[kind],
                label=kind,
            )
        axes.axvline(results.reference, color="#000000", lw=0.8, ls=":", label="reference without an algebra")
        for name, (_, score) in results.baselines.items():
            if score:  # the mean of the targets is the zero of the scale
                axes.axvline(score, color="#000000", lw=0.8, ls="--", label=name)
        names = [class_name(results, number) for number in ranking.order]
        axes.set_yticks(range(len(names)), names, fontsize=5.5 if small else 8)
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.set_xlabel(f"{measure} (dB)")
        handles, labels = axes.get_legend_handles_labels()
        kept = dict(zip(labels, handles))
        figure.legend(kept.values(), kept, loc="outside upper center", ncols=2, frameon=False)

    best, worst = ranking.order[0], ranking.order[-1]
    return Picture(
        "classes",
        draw,
        "The classes, best first: means over the tables of a class and all repetitions, with intervals of the distance "
        "from the mean of all classes that hold for all of them at once (95\u00a0%). Grey strokes are single tables.",
        f"Dot chart of {len(ranking.order)} classes from {decimal(ranking.value(best), 2)} dB (class "
        f"{class_name(results, best)}) to {decimal(ranking.value(worst), 2)} dB (class {class_name(results, worst)}).",
        (5.0, 1.3 + (0.12 if small else 0.25) * len(ranking.order)),
    )


def by_returning_units(results: Results, measure: str) -> Picture:
    """The classes' means by the number of units with (xu)u = x(uu)."""
    ranking, counts = results.by_class, sorted({*results.returning.values()})

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, colour in _COLOURS.items():
            of_kind = [n for n in ranking.order if _kind(results.group(n).form) == kind]
            if of_kind:
                x, y = [results.returning[n] for n in of_kind], [ranking.value(n) for n in of_kind]
                axes.plot(x, y, "o", ms=5, mec="none", alpha=0.6, color=colour, label=kind)
        axes.set_xticks(counts)
        axes.margins(x=0.15)
        axes.set_xlabel("units with (xu)u = x(uu)")
        axes.set_ylabel(f"{measure} (dB)", fontsize=8)
        axes.legend(frameon=False)

    means = {c: np.mean([ranking.value(n) for n in ranking.order if results.returning[n] == c]) for c in counts}
    found = ", ".join(f"{decimal(float(mean), 2)} dB for {count}" for count, mean in means.items())
    return Picture(
        "returning-units",
        draw,
        "Means of the classes, each a dot, by how many of their imaginary units u have (xu)u = x(uu).",
        f"Scatter plot of the means of classes by the number of such units. Means over classes: {found}.",
        (5.0, 3.0),
    )


def scales(results: Results) -> Picture:
    """The classes' means at other weight scales over those of the main part."""
    main = results.by_class

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(results.scales), squeeze=False)[0]
        for axes, (scale, ranking) in zip(panels, results.scales.items()):
            for kind, colour in _COLOURS.items():
                of_kind = [n for n in main.order if _kind(results.group(n).form) == kind]
                if of_kind:
                    axes.plot(
                        [main.value(n) for n in of_kind],
                        [ranking.value(n) for n in of_kind],
                        ".",
                        color=colour,
                        label=kind,
                    )
            axes.set_title(f"weight scale {scale}", fontsize=9, loc="left")
            axes.set_xlabel(f"dB at {results.settings['weight_scale']:g}")
        panels[0].set_ylabel("dB")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)

    found = "; ".join(f"{results.correlation(scale):.2f} at {scale}" for scale in results.scales)
    return Picture(
        "weight-scales",
        draw,
        "Means of the classes at other weight scales, each a dot, by their means in the main part.",
        f"Scatter plots of the means of classes. Rank correlation: {found}.",
        (5.0, 2.9),
    )
