"""What the report of the Lorenz experiment shows: shares of wins, gains by size, and verdicts on the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from hyperelm import Algebra, algebras
from hyperelm.experiments._definition import Row
from hyperelm.experiments._lorenz import MEASURE, STARTS, VALID, shown_model, time_step, variants
from hyperelm.experiments._ranking import (
    Means,
    Wins,
    bootstrap_mean,
    bootstrap_shares,
    grouped,
    mean_of,
    shares,
    winners,
)
from hyperelm.experiments._report import COLOURS, Page, Picture, percent
from hyperelm.experiments._store import Store

TRUTH, PREDICTION = "#000000", "#d55e00"
_SHARE = PercentFormatter(1, decimals=0, symbol="\u00a0%")


class LorenzResults:
    """The runs of a store, summed up."""

    def __init__(self, store: Store) -> None:
        self.settings = store.settings
        self.models: list[str] = store.settings["models"]
        self.is_lorenz = store.settings["series"] == "lorenz"
        self.unit = "Lyapunov times" if self.is_lorenz else "steps"
        self.algebras = {name: algebra for name in self.models if (algebra := _algebra_of(name)) is not None}
        self.real = next((name for name, algebra in self.algebras.items() if algebra.dim == 1), None)
        self.main, self.tuned_runs = store.rows("main"), store.rows("tuned")
        self.won = winners(self.main, MEASURE)
        self.wins = Wins(list(self.won.values()), self.models)
        self.gains = self._gains(self.main)
        self.tuned = Means(self._gains(self.tuned_runs))
        runs = {name: grouped(store.rows("sensitivity"), "variant")[name] for name in variants(store.settings)}
        self.variants = {name: Wins(list(winners(rows, MEASURE).values()), self.models) for name, rows in runs.items()}
        self.variant_gains = {name: self._gains(rows) for name, rows in runs.items()}
        times = grouped(store.rows("forecast"), "algebra")
        found = {str(name): [float(row["valid_time"]) for row in rows] for name, rows in times.items()}
        self.valid_times = dict(sorted(found.items(), key=lambda item: -np.mean(item[1])))

    def _gains(self, rows: Sequence[Row]) -> dict[str, list[float]]:
        """The gains of every model, in the order of sizes and networks."""
        groups = grouped(rows, "algebra")
        return {name: [row[MEASURE] for row in groups[name]] for name in self.models}

    @property
    def led(self) -> list[str]:
        """The variants in which the real model has the most wins, clearly or by chance."""
        return [name for name, wins in self.variants.items() if wins.order[0] == self.real and len(self.models) > 1]

    @property
    def overturned(self) -> list[str]:
        """The variants in which the real model clearly has the most wins."""
        return [name for name in self.led if self.variants[name].clear_leader]

    @property
    def real_is_best_when_tuned(self) -> bool:
        return self.real is not None and self.tuned.clear_leader == self.real

    def rivals(self, names: Sequence[str]) -> list[str]:
        """The other models that cannot be told apart from one of several by their wins."""
        close = {rival for name in names for rival in self.wins.rivals(name)}
        return [name for name in self.wins.order if name in close and name not in names]

    @property
    def mean_gains(self) -> list[tuple[float, list[float]]]:
        """The mean gain of the real model and those of the others, at every size."""
        sizes = [grouped(rows, "algebra") for rows in grouped(self.main, "n_hidden").values()]
        means = [{name: mean_of(rows[name], MEASURE) for name in self.models} for rows in sizes]
        return [(gains.pop(str(self.real)), list(gains.values())) for gains in means]

    @property
    def real_is_last(self) -> int:
        """At how many sizes the mean gain of the real model is below that of all others."""
        return sum(real < min(others) for real, others in self.mean_gains)

    def scales(self, name: str) -> list[float]:
        """The weight scales at which a model is best."""
        return sorted({row["weight_scale"] for row in self.tuned_runs if row["algebra"] == name})


def _algebra_of(name: str) -> Algebra | None:
    """The algebra of a model, unless only another version knows it."""
    try:
        return algebras.get(name)
    except ValueError:
        return None


def build(store: Store, document: dict[str, Any]) -> Page:
    results = LorenzResults(store)
    judged = results.is_lorenz and set(results.models) == set(document["settings"]["models"])
    return Page(
        document["title"] if results.is_lorenz else "Predicting a series",
        results,
        _pictures(results, store),
        _verdicts(results, document["paper"]) if judged else {},
        {"VALID": VALID, "STARTS": STARTS},
    )


def _pictures(results: LorenzResults, store: Store) -> list[Picture]:
    settings, best = results.settings, next(iter(results.valid_times))
    pictures = [
        _share_of_wins(results.wins, results.models),
        _share_by_size(results.won, results.models),
        _gain_by_parameters(results.main, results.models, results.real),
    ]
    truth, path, positions, predicted = map(store.array, ("truth", f"forecast {best}", "positions", "predictions"))
    if truth is None or path is None or positions is None or predicted is None:
        return pictures
    wrong = np.linalg.norm(path - truth, axis=1) > VALID * np.sqrt(positions.var(axis=0).sum())
    valid = int(wrong.argmax()) if wrong.any() else len(truth)
    pictures.append(_forecast(best, truth, path, valid, time_step(settings), results.unit))
    if positions.shape[1] == 3:
        pictures.append(_attractor(shown_model(settings), positions, predicted))
    return pictures


def _verdicts(results: LorenzResults, paper: dict[str, Any]) -> dict[str, str]:
    """The verdict on every claim of the paper. The template has the reasons."""
    wins, real, first = results.wins, str(results.real), paper["first"]
    # A claim that holds in the main part depends on settings if the real model wins with other ones.
    holds = "depends" if results.overturned else "reproduced"

    def verdict(*, fails: bool, depends: bool) -> str:
        return "not reproduced" if fails else "depends" if depends else holds

    follow = all(first <= 3 and last >= 2 for first, last in map(wins.places, paper["followers"]))
    limit, sizes = paper["real_share_below"], len(results.mean_gains)
    means = Means(results.gains)
    worst = all(means.is_ahead(name, real) for name in results.models if name != real)
    sure = results.real_is_last == sizes and worst and not results.real_is_best_when_tuned
    return {
        "first": verdict(fails=wins.places(first)[0] > 1, depends=bool(wins.rivals(first))),
        "followers": verdict(fails=not follow, depends=bool(results.rivals(paper["followers"]))),
        "real": verdict(fails=wins.value(real) >= limit, depends=wins.repetitions * limit < 1),
        "mean": verdict(fails=results.real_is_last == 0, depends=not sure),
    }


def _colour(models: Sequence[str], name: str) -> str:
    return COLOURS[models.index(name) % len(COLOURS)]


def _share_of_wins(wins: Wins, models: Sequence[str]) -> Picture:
    names = wins.order
    values = np.array([wins.value(name) for name in names])
    ends = np.array([wins.interval(name) for name in names]).T

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        errors, colours = np.abs(ends - values), [_colour(models, name) for name in names]
        axes.barh(range(len(names)), values, xerr=errors, color=colours, ecolor="#555555", capsize=3, height=0.7)
        for n, end in enumerate(ends[1]):
            axes.annotate(percent(values[n]), (end, n), xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 1.15 * ends[1].max())
        axes.xaxis.set_major_formatter(_SHARE)
        axes.set_xlabel(f"share of {wins.repetitions:,} competitions won")

    return Picture("share-of-wins", draw, (5.0, 0.9 + 0.27 * len(names)))


def _share_by_size(won: Mapping[tuple[int, int], str], models: Sequence[str]) -> Picture:
    sizes = sorted({n_hidden for n_hidden, _ in won})
    winners = [[name for (n, _), name in won.items() if n == size] for size in sizes]
    values = np.array([shares(names, models) for names in winners])
    ends = np.array([bootstrap_shares(names, models) for names in winners])
    lines = -(-len(models) // 2)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(lines, 2, sharex=True, sharey=True, squeeze=False).ravel()
        for n, (name, axes) in enumerate(zip(models, panels)):
            axes.plot(sizes, values, color="#cccccc", lw=0.6)
            axes.fill_between(sizes, ends[:, 0, n], ends[:, 1, n], color=_colour(models, name), alpha=0.2, lw=0)
            axes.plot(sizes, values[:, n], color=_colour(models, name), marker=".", lw=1.4)
            axes.set_title(name, fontsize=9, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panels[0].yaxis.set_major_formatter(_SHARE)
        for axes in panels[len(models) :]:
            axes.set_axis_off()
        figure.supxlabel("hypercomplex neurons L", fontsize=9)
        figure.supylabel("share of wins", fontsize=9)

    return Picture("share-of-wins-by-size", draw, (5.0, 0.6 + 1.25 * lines), {"sizes": sizes, "shares": values.T})


def _gain_by_parameters(rows: Sequence[Row], models: Sequence[str], real: str | None) -> Picture:
    curves = {name: _curve([row for row in rows if row["algebra"] == name]) for name in models}
    others = [name for name in models if name != real]
    panels = [models, others] if real and others else [models]

    def draw(figure: Figure) -> None:
        for axes, names in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels):
            for name in names:
                x, y, ends = curves[name]
                # The dashes differ where the colours are used up.
                dashes = ("-", "--", ":", "-.")[models.index(name) // len(COLOURS) % 4]
                axes.fill_between(x, *ends, color=_colour(models, name), alpha=0.12, lw=0)
                marker = "." if len(x) < 4 else ""
                axes.plot(x, y, dashes, color=_colour(models, name), label=name, lw=1.2, marker=marker)
            if len(panels) > 1:
                title = "all models" if real in names else "hypercomplex models only"
                axes.set_title(title, fontsize=9, loc="left")
        figure.axes[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
        figure.axes[-1].set_xlabel("number of parameters")
        figure.supylabel("mean prediction gain (dB)", fontsize=9)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)

    facts = {"curves": curves, "panels": len(panels)}
    return Picture("gain-by-parameters", draw, (5.0, 1.2 + 2.2 * len(panels)), facts)


def _curve(rows: Sequence[Row]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Numbers of parameters, mean gains, and the ends of their intervals (2, ...)."""
    groups = sorted(grouped(rows, "parameters").items(), key=lambda item: int(str(item[0])))
    ends = np.array([bootstrap_mean([row[MEASURE] for row in runs]) for _, runs in groups]).T
    return np.array([size for size, _ in groups]), np.array([mean_of(runs, MEASURE) for _, runs in groups]), ends


def _forecast(name: str, truth: NDArray[Any], path: NDArray[Any], valid: int, step: float, unit: str) -> Picture:
    """A closed-loop forecast (steps, coordinates) beside the truth. It is valid for so many steps of so many units."""
    shown = min(len(truth), max(3 * valid, round(1 / step) if step < 1 else 20))
    times = step * np.arange(1, shown + 1)
    seen = np.concatenate([truth[:shown], path[:valid]])
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = 0.1 * (high - low) + 1e-12
    # The line ends where it leaves the frame, because a forecast that is lost jumps from edge to edge.
    outside = ((path[:shown] < low - margin) | (path[:shown] > high + margin)).any(axis=1)
    inside = int(outside.argmax()) if outside.any() else shown

    def draw(figure: Figure) -> None:
        panels = figure.subplots(truth.shape[1], 1, sharex=True, squeeze=False)[:, 0]
        for n, axes in enumerate(panels):
            axes.plot(times, truth[:shown, n], color=TRUTH, lw=1.2, label="series")
            axes.plot(times[:inside], path[:inside, n], color=PREDICTION, lw=1.2, ls="--", label=f"forecast, {name}")
            axes.axvline(step * valid, color="#777777", lw=0.8, ls=":", label="valid until here")
            axes.set_ylim(low[n] - margin[n], high[n] + margin[n])
            axes.set_ylabel("xyz"[n] if len(panels) <= 3 else f"x{n + 1}")
        panels[-1].set_xlabel(f"time in {unit}")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)

    facts = {"name": name, "time": f"{step * valid:.2f} {unit}"}
    return Picture("forecast", draw, (5.0, 0.9 + 1.15 * truth.shape[1]), facts)


def _attractor(name: str, positions: NDArray[Any], predicted: NDArray[Any]) -> Picture:
    """Test positions and one-step predictions (n, 3)."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    margin = 0.15 * (high - low)
    every = predicted[::10]
    dots = every[((every > low - margin) & (every < high + margin)).all(axis=1)]

    def draw(figure: Figure) -> None:
        figure.set_layout_engine("none")  # it leaves too much room around three dimensions
        axes: Any = figure.add_axes((0.0, -0.06, 0.95, 1.16), projection="3d")
        axes.plot(*positions.T, color=TRUTH, lw=0.5, alpha=0.7, label="series")
        axes.scatter(*dots.T, color=PREDICTION, s=5, depthshade=False, lw=0, label=f"predictions, {name}")
        for axis, label in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz"):
            axis.set_major_locator(MaxNLocator(4))
            axis.set_pane_color("#f7f7f7")
            axis.set_label_text(label)
        axes.tick_params(labelsize=8, pad=0)
        axes.view_init(elev=18, azim=-60)
        axes.set_box_aspect((1, 1, 0.9), zoom=0.95)
        axes.legend(loc="upper left", bbox_to_anchor=(0.05, 0.9), frameon=False)

    facts = {"name": name, "positions": len(positions), "predictions": len(every), "outside": len(every) - len(dots)}
    return Picture("attractor", draw, (5.0, 4.0), facts)
