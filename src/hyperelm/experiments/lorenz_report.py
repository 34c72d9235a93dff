"""The report of the Lorenz experiment: shares of wins, gains by size, and what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hyperelm import algebras
from hyperelm.experiments.definition import Row
from hyperelm.experiments.report import COLOURS, Claim, Page, Picture, Section, Table
from hyperelm.experiments.statistics import (
    bootstrap_mean,
    bootstrap_shares,
    by,
    can_tell_apart,
    interval,
    shares,
    winners,
)
from hyperelm.experiments.store import Store

GAIN = "prediction_gain"


class Results:
    """The runs of a store, summed up."""

    def __init__(self, store: Store) -> None:
        self.settings = store.settings
        self.models: list[str] = store.settings["models"]
        self.main, self.sensitivity = store.rows("main"), store.rows("sensitivity")
        self.tuned, self.forecast = store.rows("tuned"), store.rows("forecast")
        self.won = winners(self.main, GAIN)
        self.shares = shares(list(self.won.values()), self.models)
        self.draws = bootstrap_shares(list(self.won.values()), self.models)
        self.ranking = [int(n) for n in np.argsort(-self.shares, kind="stable")]

    @property
    def real(self) -> str | None:
        """The real model, if it takes part."""
        return next((name for name in self.models if algebras.get(name).dim == 1), None)

    def share_of(self, name: str) -> float:
        return float(self.shares[self.models.index(name)])

    def tied(self) -> list[list[str]]:
        """The models in their order, neighbours that cannot be told apart together."""
        groups: list[list[str]] = []
        for place, n in enumerate(self.ranking):
            if place and not can_tell_apart(self.draws, self.ranking[place - 1], n):
                groups[-1].append(self.models[n])
            else:
                groups.append([self.models[n]])
        return groups

    def variants(self) -> dict[str, list[Row]]:
        return {str(name): rows for (name,), rows in by(self.sensitivity, "variant").items()}


def build(store: Store, document: dict[str, Any]) -> Page:
    results = Results(store)
    return Page(
        title=document["title"],
        summary=_summary(results, document),
        claims=[Claim(claim["text"], *_VERDICTS[claim["id"]](results, document["paper"])) for claim in document["claims"]]
        if _is_papers(results)
        else [],
        sections=[
            Section("Who wins", _ranking_text(results), [_share_picture(results), _by_size_picture(results)]),
            Section("Gain by size", [], [_gain_picture(results)], [_gain_table(results)]),
            _sensitivity_section(results),
            _tuned_section(results),
            _forecast_section(results, store),
            *_attractor_section(results, store),
        ],
    )


def _is_papers(results: Results) -> bool:
    """Whether the claims of the paper can be held against these runs: its series and its models."""
    return results.settings["series"] == "lorenz" and {"quaternions", "R[-1,+1]", "R[+1,-1]"} <= set(results.models)


def _summary(results: Results, document: dict[str, Any]) -> list[str]:
    settings = results.settings
    source = "the Lorenz system" if settings["series"] == "lorenz" else "a series read from a file"
    sizes = settings["n_hidden"]
    text = [
        f"{len(results.main):,} networks of {len(results.models)} models with {min(sizes)} to {max(sizes)} hypercomplex "
        f"neurons predict the next of {settings['positions']:,} positions of {source} from the last "
        f"{settings['window']}; the first {settings['train']} positions are for training ({document['source']} of the paper)."
    ]
    if results.real:
        text.append(_fairness(results))
    return text


def _fairness(results: Results) -> str:
    """Whether the real model wins, said plainly."""
    real = str(results.real)
    beaten = [name for name, rows in results.variants().items() if _leader(rows, results.models) == real]
    tuned = _mean_gains(results.tuned, results.models)
    best = max(tuned, key=lambda name: tuned[name]) if tuned else None
    words = f"With the settings of the paper the real model wins {results.share_of(real):.1%} of the competitions."
    if beaten:
        words += f" It wins most of them, more than any other model, in these variants: {'; '.join(beaten)}."
    if best == real:
        words += " With every model at its own best weight scale the real model has the highest mean gain of all."
    elif best:
        words += f" With every model at its own best weight scale, {best} has the highest mean gain ({tuned[best]:.1f} dB, "
        words += f"real {tuned[real]:.1f} dB)."
    return words


def _leader(rows: Sequence[Row], models: Sequence[str]) -> str:
    won = list(winners(rows, GAIN).values())
    return models[int(np.argmax(shares(won, models)))]


def _mean_gains(rows: Sequence[Row], models: Sequence[str]) -> dict[str, float]:
    groups = by(rows, "algebra")
    return {name: float(np.mean([row[GAIN] for row in groups[(name,)]])) for name in models if (name,) in groups}


# ---------------------------------------------------------------------- claims


def _first(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    leaders = results.tied()[0]
    share = f"{results.share_of(paper['first']):.3f} of the wins"
    if leaders == [paper["first"]]:
        return "reproduced", f"{share}, and no other model's share can be confused with it."
    if paper["first"] in leaders:
        return "depends", f"{share}, which cannot be told apart from {_and(leaders, but=paper['first'])}."
    return "not reproduced", f"{share}; {_and(leaders)} come first."


def _followers(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    order = [results.models[n] for n in results.ranking]
    found = ", ".join(f"{name} {results.share_of(name):.3f}" for name in order[1:5])
    if set(order[1:3]) != set(paper["followers"]):
        close = any(set(group) >= {*order[1:3], *paper["followers"]} for group in results.tied())
        return ("depends" if close else "not reproduced"), f"Second and following: {found}."
    fourth = results.ranking[3]
    if can_tell_apart(results.draws, results.ranking[2], fourth):
        return "reproduced", f"Second and following: {found}."
    return "reproduced", f"Second and following: {found}. Third and fourth place cannot be told apart."


def _real(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    if results.real is None:
        return "depends", "The real model did not take part."
    share = results.share_of(results.real)
    if share > paper["real_share_below"]:
        return "not reproduced", f"It wins {share:.1%}."
    winning = [name for name, rows in results.variants().items() if _leader(rows, results.models) == results.real]
    if winning:
        return "depends", f"It wins {share:.1%} here, but more than any other model with: {'; '.join(winning)}."
    return "reproduced", f"It wins {share:.1%}."


def _mean(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    if results.real is None:
        return "depends", "The real model did not take part."
    means = _mean_gains(results.main, results.models)
    better = [name for name in means if name != results.real and means[name] > means[results.real]]
    tuned = _mean_gains(results.tuned, results.models)
    behind = [name for name in better if tuned.get(name, np.inf) < tuned.get(results.real, -np.inf)]
    values = f"real {means[results.real]:.1f} dB, the others {min(means[n] for n in means if n != results.real):.1f} to "
    values += f"{max(means[n] for n in means if n != results.real):.1f} dB"
    if len(better) < len(means) - 1:
        return "not reproduced", f"Mean gains: {values}."
    if behind:
        return "depends", f"Mean gains: {values}; but at its own best weight scale the real model beats {_and(behind)}."
    return "reproduced", f"Mean gains: {values}."


_VERDICTS = {"first": _first, "followers": _followers, "real": _real, "mean": _mean}


def _and(names: Sequence[str], but: str = "") -> str:
    names = [name for name in names if name != but]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


# ---------------------------------------------------------------------- pictures and tables


def _colour(results: Results, name: str) -> str:
    return COLOURS[results.models.index(name) % len(COLOURS)]


def _ranking_text(results: Results) -> list[str]:
    groups = [_and(group) for group in results.tied()]
    text = "From the most wins to the fewest: " + "; then ".join(groups) + "."
    tied = [group for group in results.tied() if len(group) > 1]
    if tied:
        text += " The order within a group cannot be told from chance: its intervals of neighbouring places overlap."
    return [text]


def _share_picture(results: Results) -> Picture:
    names = [results.models[n] for n in results.ranking]
    low, high = interval(results.draws)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        values = results.shares[results.ranking]
        errors = [values - low[results.ranking], high[results.ranking] - values]
        axes.bar(names, values, yerr=np.maximum(errors, 0), color=[_colour(results, n) for n in names], capsize=3)
        axes.set_ylabel("share of wins")
        axes.tick_params(axis="x", rotation=30)

    found = ", ".join(f"{name} {results.share_of(name):.3f}" for name in names)
    return Picture(
        "share-of-wins",
        draw,
        f"How often a model has the highest prediction gain of {len(results.won):,} competitions, with 95 % bootstrap "
        "intervals.",
        f"Bar chart of the share of wins: {found}.",
    )


def _by_size_picture(results: Results) -> Picture:
    sizes = sorted({n_hidden for n_hidden, _ in results.won})

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        won = {L: [name for (n, _), name in results.won.items() if n == L] for L in sizes}
        values = np.array([shares(won[L], results.models) for L in sizes])
        ends = np.array([interval(bootstrap_shares(won[L], results.models)) for L in sizes])
        for n, name in enumerate(results.models):
            axes.plot(sizes, values[:, n], color=_colour(results, name), label=name, marker=".", lw=1.2)
            axes.fill_between(sizes, ends[:, 0, n], ends[:, 1, n], color=_colour(results, name), alpha=0.1, lw=0)
        axes.set_xlabel("hypercomplex neurons L")
        axes.set_ylabel("share of wins")
        figure.legend(loc="outside right upper", frameon=False)

    return Picture(
        "share-of-wins-by-size",
        draw,
        "The same by the number of neurons; bands are 95 % bootstrap intervals.",
        f"Lines of the share of wins of each model for {sizes[0]} to {sizes[-1]} neurons.",
    )


def _gain_picture(results: Results) -> Picture:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name in results.models:
            groups = by([row for row in results.main if row["algebra"] == name], "parameters")
            sizes = [int(str(size)) for (size,) in groups]
            gains = [[row[GAIN] for row in rows] for rows in groups.values()]
            ends = np.array([bootstrap_mean(values) for values in gains])
            axes.plot(sizes, [np.mean(values) for values in gains], color=_colour(results, name), label=name, lw=1.2)
            axes.fill_between(sizes, ends[:, 0], ends[:, 1], color=_colour(results, name), alpha=0.15, lw=0)
        axes.set_xlabel("parameters")
        axes.set_ylabel("mean prediction gain (dB)")
        figure.legend(loc="outside right upper", frameon=False)

    means = _mean_gains(results.main, results.models)
    found = ", ".join(f"{name} {value:.1f} dB" for name, value in means.items())
    return Picture(
        "gain-by-parameters",
        draw,
        "Mean prediction gain over the networks by the number of parameters; bands are 95 % bootstrap intervals.",
        f"Lines of the mean prediction gain by the number of parameters. Means over all sizes: {found}.",
    )


def _gain_table(results: Results) -> Table:
    low, high = interval(results.draws)
    groups = by(results.main, "algebra")
    rows = []
    for n in results.ranking:
        name = results.models[n]
        gains = np.array([row[GAIN] for row in groups[(name,)]])
        share = f"{results.shares[n]:.3f} ({low[n]:.3f} to {high[n]:.3f})"
        rows.append([name, share, *(f"{v:.2f}" for v in (gains.mean(), np.median(gains), gains.std()))])
    header = ["model", "share of wins (95 %)", "mean gain (dB)", "median (dB)", "deviation (dB)"]
    return Table("All runs of the main part.", header, rows)


def _sensitivity_section(results: Results) -> Section:
    rows = []
    for variant, runs in results.variants().items():
        means = _mean_gains(runs, results.models)
        leader = _leader(runs, results.models)
        won = shares(list(winners(runs, GAIN).values()), results.models)
        cells = [f"{means[name]:.1f} ({won[n]:.0%})" for n, name in enumerate(results.models)]
        rows.append([variant, leader, *cells])
    return Section(
        "What it depends on",
        [
            "The same networks with one thing changed that the paper leaves open: mean prediction gain in dB, and the "
            "share of wins. A ranking that changes here is a ranking of settings, not of algebras."
        ],
        tables=[Table("Sensitivity", ["variant", "most wins", *results.models], rows)],
    )


def _tuned_section(results: Results) -> Section:
    rows = []
    for name in results.models:
        runs = [row for row in results.tuned if row["algebra"] == name]
        scales = sorted({row["weight_scale"] for row in runs})
        gains = [row[GAIN] for row in runs]
        low, high = bootstrap_mean(gains)
        rows.append([name, ", ".join(f"{s:.3g}" for s in scales), f"{np.mean(gains):.2f} ({low:.2f} to {high:.2f})"])
    rows.sort(key=lambda row: -float(row[2].split()[0]))
    return Section(
        "Every model at its best",
        ["The weight scale of each model and size is the one that predicts the last third of the training positions best."],
        tables=[Table("Tuned on the training positions alone", ["model", "weight scale", "mean gain (dB, 95 %)"], rows)],
    )


def _forecast_section(results: Results, store: Store) -> Section:
    unit = "Lyapunov times" if results.settings["series"] == "lorenz" else "steps"
    groups = by(results.forecast, "algebra")
    rows = [
        [name, f"{np.mean(times):.2f}", f"{min(times):.2f} to {max(times):.2f}"]
        for (name,), runs in groups.items()
        for times in [[row["valid_time"] for row in runs]]
    ]
    rows.sort(key=lambda row: -float(row[1]))
    best = str(rows[0][0])
    truth, path = store.array("truth"), store.array(f"forecast {best}")
    pictures = []
    if truth is not None and path is not None:
        scale = results.settings["dt"] * results.settings["lyapunov"] if unit == "Lyapunov times" else 1

        def draw(figure: Figure) -> None:
            panels = figure.subplots(truth.shape[1], 1, sharex=True, squeeze=False)[:, 0]
            times = scale * np.arange(1, len(truth) + 1)
            for n, axes in enumerate(panels):
                axes.plot(times, truth[:, n], color="black", lw=1, label="series")
                axes.plot(times, path[:, n], color="#d55e00", lw=1, label=best)
                axes.set_ylim(1.3 * truth[:, n].min(), 1.3 * truth[:, n].max())
                axes.set_ylabel(f"x{n + 1}")
            panels[-1].set_xlabel(unit)
            panels[0].legend(loc="upper right", frameon=False, ncols=2)

        pictures.append(
            Picture(
                "forecast",
                draw,
                f"A forecast of {best} that sees nothing but its own predictions, and the series.",
                f"Coordinates of the series and of the forecast of {best} over time in {unit}.",
                (7.2, 4.2),
            )
        )
    return Section(
        "Closed-loop forecasts",
        [
            "The tuned models fed with their own predictions from 20 places of the test part. A forecast is valid while its "
            "error is below 0.4 of the spread of the series; the time is the median over the places."
        ],
        pictures,
        [Table(f"Valid prediction time in {unit}", ["model", "mean over networks", "range"], rows)],
    )


def _attractor_section(results: Results, store: Store) -> list[Section]:
    positions, predicted = store.array("positions"), store.array("predictions")
    if positions is None or predicted is None or positions.shape[1] != 3:
        return []
    name = results.models[min(1, len(results.models) - 1)]

    def draw(figure: Figure) -> None:
        axes: Any = figure.add_subplot(projection="3d")
        part = slice(0, 1500)
        axes.plot(*positions[part].T, color="black", lw=0.6, label="series")
        axes.scatter(*predicted[part][::10].T, color="#d55e00", s=3, label=f"{name}, one step ahead")
        axes.legend(loc="upper left", frameon=False)

    return [
        Section(
            "The attractor",
            pictures=[
                Picture(
                    "attractor",
                    draw,
                    f"1,500 test positions, and every tenth prediction of one network over {name} with the settings of the "
                    "main part.",
                    f"The attractor in three dimensions with predictions of {name} as dots.",
                    (6.4, 5.4),
                )
            ],
        )
    ]
