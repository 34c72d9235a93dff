"""What the report of the Lorenz experiment shows: shares of wins, gains by size, and verdicts on the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hyperelm import Algebra, algebras
from hyperelm.experiments._definition import Row
from hyperelm.experiments._lorenz import COMPETE, MEASURE, STARTS, VALID, shown_model, time_step, valid_steps, variants
from hyperelm.experiments._ranking import Array, Leader, Means, Wins, bootstrap_mean, grouped
from hyperelm.experiments._report import COLOURS, array, percent
from hyperelm.experiments._store import Store

TRUTH, PREDICTION = "#000000", "#d55e00"
_SHARE = PercentFormatter(1, decimals=0, symbol="\u00a0%")


class LorenzResults:
    """The runs of a store, summed up."""

    def __init__(self, store: Store) -> None:
        self.settings = store.settings
        self.models: list[str] = store.settings["models"]
        self.colours = dict(zip(self.models, cycle(COLOURS)))
        self.is_lorenz = store.settings["series"] == "lorenz"
        self.unit = "Lyapunov times" if self.is_lorenz else "steps"
        self.algebras = {name: algebra for name in self.models if (algebra := _algebra_of(name)) is not None}
        self.real = next((name for name, algebra in self.algebras.items() if algebra.dim == 1), None)
        self.main, self.tuned_runs = store.rows("main"), store.rows("tuned")
        self.wins = self._wins(self.main)
        self.sizes = grouped(self.main, "n_hidden")
        self.by_size = {size: self._wins(rows) for size, rows in self.sizes.items()}
        self.gains = self._gains(self.main)
        self.curves = {name: self._curve(name) for name in self.models}
        # The mean gain of the real model and those of the others at every size, and at how many the real one is last.
        means = {name: curve[1].tolist() for name, curve in self.curves.items()}
        self.mean_gains = [*zip(means.pop(self.real), zip(*means.values()))] if self.real else []
        self.real_is_last = sum(real < min(others, default=np.inf) for real, others in self.mean_gains)
        self.tuned = Means(self._gains(self.tuned_runs))
        self.real_is_best_when_tuned = self.real is not None and self.tuned.clear_leader == self.real
        runs = {name: grouped(store.rows("sensitivity"), "variant")[name] for name in variants(store.settings)}
        self.variants = {name: self._wins(rows) for name, rows in runs.items()}
        # The variants in which the real model has the most wins, and those of them in which it is clearly ahead.
        several = len(self.models) > 1
        self.led = [name for name, wins in self.variants.items() if wins.order[0] == self.real and several]
        self.overturned = [name for name in self.led if self.variants[name].clear_leader]
        self.variant_gains = {name: self._gains(rows) for name, rows in runs.items()}
        times = grouped(store.rows("forecast"), "algebra")
        found = {str(name): [float(row["valid_time"]) for row in rows] for name, rows in times.items()}
        self.valid_times = dict(sorted(found.items(), key=lambda item: -np.mean(item[1])))
        # The forecast that is shown is one of the model with the longest valid time.
        self.step, self.forecaster = time_step(self.settings), next(iter(self.valid_times))
        self.truth, self.path = array(store, "truth"), array(store, f"forecast {self.forecaster}")
        self.positions, self.some = array(store, "positions"), array(store, "predictions")[::10]
        self.valid = int(valid_steps(self.path, self.truth, self.positions))
        self.shown = min(len(self.truth), max(3 * self.valid, round(1 / self.step) if self.step < 1 else 20))
        # Of the one-step predictions, those far outside of the attractor are not drawn.
        self.shown_model = shown_model(self.settings)
        low, high = self.positions.min(axis=0), self.positions.max(axis=0)
        margin = 0.15 * (high - low)
        self.dots = self.some[((self.some > low - margin) & (self.some < high + margin)).all(axis=1)]

    def _wins(self, rows: Sequence[Row]) -> Wins:
        return Wins(list(Leader(MEASURE, COMPETE, rows).winners.values()), self.models)

    def _gains(self, rows: Sequence[Row]) -> dict[str, list[float]]:
        """The gains of every model, in the order of sizes and networks."""
        groups = grouped(rows, "algebra")
        return {name: [row[MEASURE] for row in groups[name]] for name in self.models}

    def _curve(self, name: str) -> tuple[list[int], Array, Array]:
        """Numbers of parameters at all sizes of a model, its mean gains, and the ends of their intervals (2, sizes)."""
        runs = [grouped(rows, "algebra")[name] for rows in self.sizes.values()]
        gains = np.array([[row[MEASURE] for row in rows] for rows in runs])
        return [rows[0]["parameters"] for rows in runs], gains.mean(axis=1), np.stack([*map(bootstrap_mean, gains)], 1)

    def rivals(self, names: Sequence[str]) -> list[str]:
        """The other models that cannot be told apart from one of several by their wins."""
        close = {rival for name in names for rival in self.wins.rivals(name)}
        return [name for name in self.wins.order if name in close and name not in names]

    def scales(self, name: str) -> list[float]:
        """The weight scales at which a model is best."""
        return sorted({row["weight_scale"] for row in self.tuned_runs if row["algebra"] == name})


def _algebra_of(name: str) -> Algebra | None:
    """The algebra of a model, unless only another version knows it."""
    try:
        return algebras.get(name)
    except ValueError:
        return None


def build(store: Store, document: dict[str, Any]) -> dict[str, Any]:
    results = LorenzResults(store)
    judged = results.is_lorenz and set(results.models) == set(document["settings"]["models"])
    pictures = {
        "share-of-wins": _share_of_wins,
        "share-of-wins-by-size": _share_by_size,
        "gain-by-parameters": _gain_by_parameters,
        "forecast": _forecast,
    }
    if results.positions.shape[1] == 3:
        pictures["attractor"] = _attractor
    return {
        "title": document["title"] if results.is_lorenz else "Predicting a series",
        "results": results,
        "pictures": {name: partial(draw, results) for name, draw in pictures.items()},
        "verdicts": _verdicts(results, document["paper"]) if judged else {},
        "VALID": VALID,
        "STARTS": STARTS,
    }


def _verdicts(results: LorenzResults, paper: dict[str, Any]) -> dict[str, str]:
    """The verdict on every claim of the paper. The template has the reasons."""
    wins, real, first = results.wins, str(results.real), paper["first"]
    # A claim that holds in the main part depends on settings if the real model wins with other ones.
    holds = "depends" if results.overturned else "reproduced"

    def verdict(*, fails: bool, depends: bool) -> str:
        return "not reproduced" if fails else "depends" if depends else holds

    follow = all(first <= 3 and last >= 2 for first, last in map(wins.places, paper["followers"]))
    means = Means(results.gains)
    worst = all(means.is_ahead(name, real) for name in results.models if name != real)
    sure = results.real_is_last == len(results.sizes) and worst and not results.real_is_best_when_tuned
    limit = paper["real_share_below"]
    return {
        "first": verdict(fails=wins.places(first)[0] > 1, depends=bool(wins.rivals(first))),
        "followers": verdict(fails=not follow, depends=bool(results.rivals(paper["followers"]))),
        "real": verdict(fails=wins.value(real) >= limit, depends=wins.repetitions * limit < 1),
        "mean": verdict(fails=results.real_is_last == 0, depends=not sure),
    }


def _share_of_wins(results: LorenzResults) -> Figure:
    wins, names = results.wins, results.wins.order
    values = np.array([wins.value(name) for name in names])
    ends = np.array([wins.interval(name) for name in names]).T
    colours = [results.colours[name] for name in names]
    figure = Figure(figsize=(5.0, 0.9 + 0.27 * len(names)))
    axes = figure.subplots()
    axes.barh(names, values, xerr=np.abs(ends - values), color=colours, ecolor="#555555", capsize=3, height=0.7)
    for n, end in enumerate(ends[1]):
        axes.annotate(percent(values[n]), (end, n), xytext=(5, 0), textcoords="offset points", va="center")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.15 * ends[1].max())
    axes.xaxis.set_major_formatter(_SHARE)
    axes.set_xlabel(f"share of {wins.repetitions:,} competitions won")
    return figure


def _share_by_size(results: LorenzResults) -> Figure:
    sizes, values = [*results.by_size], np.array([wins.shares for wins in results.by_size.values()])
    lines = -(-len(results.models) // 2)
    figure = Figure(figsize=(5.0, 0.6 + 1.25 * lines))
    panels = figure.subplots(lines, 2, sharex=True, sharey=True, squeeze=False).ravel()
    for n, (name, axes) in enumerate(zip(results.models, panels)):
        ends = np.array([wins.interval(name) for wins in results.by_size.values()])
        axes.plot(sizes, values, color="#cccccc", lw=0.6)
        axes.fill_between(sizes, *ends.T, color=results.colours[name], alpha=0.2, lw=0)
        axes.plot(sizes, values[:, n], color=results.colours[name], marker=".", lw=1.4)
        axes.set_title(name, fontsize=9, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panels[0].yaxis.set_major_formatter(_SHARE)
    for axes in panels[len(results.models) :]:
        axes.set_axis_off()
    figure.supxlabel("hypercomplex neurons L", fontsize=9)
    figure.supylabel("share of wins", fontsize=9)
    return figure


def _gain_by_parameters(results: LorenzResults) -> Figure:
    """The curves of all models and, in a second panel, those without the real one, which is often far below."""
    panels = {"all models": results.models}
    if results.real and len(results.models) > 1:
        panels["hypercomplex models only"] = [name for name in results.models if name != results.real]
    figure = Figure(figsize=(5.0, 1.2 + 2.2 * len(panels)))
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, names) in zip(rows, panels.items()):
        for name in names:
            x, y, ends = results.curves[name]
            # The dashes differ where the colours are used up.
            dashes = ("-", "--", ":", "-.")[results.models.index(name) // len(COLOURS) % 4]
            axes.fill_between(x, *ends, color=results.colours[name], alpha=0.12, lw=0)
            marker = "." if len(x) < 4 else ""
            axes.plot(x, y, dashes, color=results.colours[name], label=name, lw=1.2, marker=marker)
        if len(panels) > 1:
            axes.set_title(title, fontsize=9, loc="left")
    rows[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    rows[-1].set_xlabel("number of parameters")
    figure.supylabel("mean prediction gain (dB)", fontsize=9)
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _forecast(results: LorenzResults) -> Figure:
    """A forecast (steps, coordinates) beside the truth."""
    truth, path, valid, step, shown = results.truth, results.path, results.valid, results.step, results.shown
    times = step * np.arange(1, shown + 1)
    seen = np.concatenate([truth[:shown], path[:valid]])
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = 0.1 * (high - low) + 1e-12
    # The line ends where it leaves the frame, because a forecast that is lost jumps from edge to edge.
    outside = ((path[:shown] < low - margin) | (path[:shown] > high + margin)).any(axis=1)
    inside = int(outside.argmax()) if outside.any() else shown
    label = f"forecast, {results.forecaster}"
    figure = Figure(figsize=(5.0, 0.9 + 1.15 * truth.shape[1]))
    panels = figure.subplots(truth.shape[1], 1, sharex=True, squeeze=False)[:, 0]
    for n, axes in enumerate(panels):
        axes.plot(times, truth[:shown, n], color=TRUTH, lw=1.2, label="series")
        axes.plot(times[:inside], path[:inside, n], color=PREDICTION, lw=1.2, ls="--", label=label)
        axes.axvline(step * valid, color="#777777", lw=0.8, ls=":", label="valid until here")
        axes.set_ylim(low[n] - margin[n], high[n] + margin[n])
        axes.set_ylabel("xyz"[n] if len(panels) <= 3 else f"x{n + 1}")
    panels[-1].set_xlabel(f"time in {results.unit}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _attractor(results: LorenzResults) -> Figure:
    """Test positions and one-step predictions (n, 3)."""
    figure = Figure(figsize=(5.0, 4.0))
    figure.set_layout_engine("none")  # a layout leaves too much room around three dimensions
    axes: Any = figure.add_axes((0.0, -0.06, 0.95, 1.16), projection="3d")
    axes.plot(*results.positions.T, color=TRUTH, lw=0.5, alpha=0.7, label="series")
    label = f"predictions, {results.shown_model}"
    axes.scatter(*results.dots.T, color=PREDICTION, s=5, depthshade=False, lw=0, label=label)
    for axis, label in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz"):
        axis.set_major_locator(MaxNLocator(4))
        axis.set_pane_color("#f7f7f7")
        axis.set_label_text(label)
    axes.tick_params(labelsize=8, pad=0)
    axes.view_init(elev=18, azim=-60)
    axes.set_box_aspect((1, 1, 0.9), zoom=0.95)
    axes.legend(loc="upper left", bbox_to_anchor=(0.05, 0.9))
    return figure
