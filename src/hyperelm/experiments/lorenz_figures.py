"""The figures of the Lorenz report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from hyperelm.experiments.definition import Row
from hyperelm.experiments.lorenz_results import GAIN
from hyperelm.experiments.ranking import Ranking
from hyperelm.experiments.report import COLOURS, Picture, decimal, percent
from hyperelm.experiments.statistics import bootstrap_mean, bootstrap_shares, by, interval, shares

TRUTH, PREDICTION = "#000000", "#d55e00"
_SHARE = PercentFormatter(1, decimals=0, symbol="\u00a0%")


def _colour(models: Sequence[str], name: str) -> str:
    return COLOURS[models.index(name) % len(COLOURS)]


def _dashes(models: Sequence[str], name: str) -> str:
    """Another kind of line once the colours are used up."""
    return ("-", "--", ":", "-.")[models.index(name) // len(COLOURS) % 4]


def share_of_wins(wins: Ranking, models: Sequence[str]) -> Picture:
    names = wins.order
    values = np.array([wins.value(name) for name in names])
    ends = np.array([wins.interval(name) for name in names]).T

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        errors = np.abs(ends - values)
        colours = [_colour(models, name) for name in names]
        axes.barh(range(len(names)), values, xerr=errors, color=colours, ecolor="#555555", capsize=3, height=0.7)
        for n, end in enumerate(ends[1]):
            axes.annotate(percent(values[n]), (end, n), xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 1.15 * ends[1].max())
        axes.xaxis.set_major_formatter(_SHARE)
        axes.set_xlabel(f"share of {wins.competitions:,} competitions won")

    found = ", ".join(f"{name} {percent(value)}" for name, value in zip(names, values))
    return Picture(
        "share-of-wins",
        draw,
        "How often each model has the highest prediction gain, with 95\u00a0% bootstrap intervals.",
        f"Bar chart of the share of wins, from the most to the fewest: {found}.",
        (5.0, 0.9 + 0.27 * len(names)),
    )


def share_by_size(won: Mapping[tuple[int, int], str], models: Sequence[str]) -> Picture:
    sizes = sorted({n_hidden for n_hidden, _ in won})
    winners = [[name for (n, _), name in won.items() if n == size] for size in sizes]
    values = np.array([shares(names, models) for names in winners])
    ends = np.array([interval(bootstrap_shares(names, models)) for names in winners])
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

    return Picture(
        "share-of-wins-by-size",
        draw,
        f"The same for each number of neurons ({len(won) // len(sizes)} competitions each). A panel has one model in "
        "colour, with 95\u00a0% bootstrap intervals, and the others in grey.",
        f"One panel for each model with its share of wins for {sizes[0]} to {sizes[-1]} neurons. "
        + " ".join(f"{name}: {percent(v.min(), 0)} to {percent(v.max(), 0)}." for name, v in zip(models, values.T)),
        (5.0, 0.6 + 1.25 * lines),
    )


def gain_by_parameters(rows: Sequence[Row], models: Sequence[str], real: str | None) -> Picture:
    curves = {name: _curve([row for row in rows if row["algebra"] == name]) for name in models}
    others = [name for name in models if name != real]
    panels = [models, others] if real and others else [models]

    def draw(figure: Figure) -> None:
        for axes, names in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels):
            for name in names:
                _band(axes, *curves[name], colour=_colour(models, name), dashes=_dashes(models, name), label=name)
            if len(panels) > 1:
                title = "all models" if real in names else "hypercomplex models only"
                axes.set_title(title, fontsize=9, loc="left")
        figure.axes[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
        figure.axes[-1].set_xlabel("number of parameters")
        figure.supylabel("mean prediction gain (dB)", fontsize=9)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)

    found = "; ".join(f"{name} {decimal(m.min())} to {decimal(m.max())} dB" for name, (_, m, _) in curves.items())
    return Picture(
        "gain-by-parameters",
        draw,
        "Mean prediction gain over the networks by the number of parameters; bands are 95\u00a0% bootstrap intervals."
        + (" Below, the same without the real model." if len(panels) > 1 else ""),
        f"Lines of the mean prediction gain by the number of parameters. Lowest to highest mean: {found}.",
        (5.0, 1.2 + 2.2 * len(panels)),
    )


def _curve(rows: Sequence[Row]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Numbers of parameters, mean gains, and the ends of their intervals (2, ...)."""
    groups = by(rows, "parameters")
    sizes = sorted(groups, key=lambda key: int(str(key[0])))
    gains = [[row[GAIN] for row in groups[size]] for size in sizes]
    ends = np.array([bootstrap_mean(values) for values in gains]).T
    return np.array([size for (size,) in sizes]), np.array([np.mean(values) for values in gains]), ends


def _band(
    axes: Axes, x: NDArray[Any], y: NDArray[Any], ends: NDArray[Any], *, colour: str, dashes: str, label: str
) -> None:
    axes.fill_between(x, *ends, color=colour, alpha=0.12, lw=0)
    axes.plot(x, y, dashes, color=colour, label=label, lw=1.2, marker="." if len(x) < 4 else "")


def forecast(name: str, truth: NDArray[Any], path: NDArray[Any], valid: int, step: float, unit: str) -> Picture:
    """A closed-loop forecast (steps, coordinates) beside the truth, valid for so many steps of a length in a unit."""
    shown = min(len(truth), max(3 * valid, round(1 / step) if step < 1 else 20))
    times = step * np.arange(1, shown + 1)
    seen = np.concatenate([truth[:shown], path[:valid]])
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = 0.1 * (high - low) + 1e-12
    # What leaves the frame does not come back: a forecast that has got lost jumps from edge to edge.
    outside = ((path[:shown] < low - margin) | (path[:shown] > high + margin)).any(axis=1)
    inside = int(outside.argmax()) if outside.any() else shown

    def draw(figure: Figure) -> None:
        panels = figure.subplots(truth.shape[1], 1, sharex=True, squeeze=False)[:, 0]
        for n, axes in enumerate(panels):
            axes.plot(times, truth[:shown, n], color=TRUTH, lw=1.2, label="series")
            axes.plot(times[:inside], path[:inside, n], color=PREDICTION, lw=1.2, ls="--", label=f"forecast, {name}")
            axes.axvline(step * valid, color="#777777", lw=0.8, ls=":", label="valid until here")
            axes.set_ylim(low[n] - margin[n], high[n] + margin[n])
            axes.set_ylabel(_coordinate(n, len(panels)))
        panels[-1].set_xlabel(f"time in {unit}")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)

    return Picture(
        "forecast",
        draw,
        f"The series, and one forecast of the first network of {name}, which sees nothing but its own predictions. It "
        f"is valid for {step * valid:.2f} {unit}, and drawn until it leaves the frame.",
        f"Coordinates of the series and of a forecast of {name} over time, which part after {step * valid:.2f} {unit}.",
        (5.0, 0.9 + 1.15 * truth.shape[1]),
    )


def attractor(name: str, positions: NDArray[Any], predicted: NDArray[Any]) -> Picture:
    """Test positions and one-step predictions (n, 3)."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    margin = 0.15 * (high - low)
    dots = predicted[::10]
    dots = dots[((dots > low - margin) & (dots < high + margin)).all(axis=1)]

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

    hidden = len(predicted[::10]) - len(dots)
    return Picture(
        "attractor",
        draw,
        f"The {len(positions):,} test positions, scaled, and every tenth prediction, one step ahead, of one network of "
        f"{name} with the settings of the main part."
        + (f" {hidden} of these {len(predicted[::10])} predictions lie outside the frame." if hidden else ""),
        f"The test positions in three dimensions as a line, and predictions of {name} as dots around it.",
        (5.0, 4.0),
    )


def _coordinate(n: int, of: int) -> str:
    return "xyz"[n] if of <= 3 else f"x{n + 1}"
