"""The report of the Lorenz experiment: shares of wins, gains by size, and what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hyperelm.experiments import lorenz_figures as figures
from hyperelm.experiments.lorenz import STARTS, VALID
from hyperelm.experiments.lorenz_claims import judge
from hyperelm.experiments.lorenz_results import GAIN, Results, algebra_of
from hyperelm.experiments.ranking import Ranking
from hyperelm.experiments.report import Page, Section, Table, counted, decibels, decimal, listed, percent
from hyperelm.experiments.statistics import by, winners
from hyperelm.experiments.store import Store


def build(store: Store, document: dict[str, Any]) -> Page:
    results = Results(store)
    judged = results.is_lorenz and set(results.models) == set(document["settings"]["models"])
    return Page(
        title=document["title"] if results.is_lorenz else "Predicting a series",
        summary=_summary(results, document, judged),
        notice=_notice(results),
        claims=[judge(claim, results, document["paper"]) for claim in document["claims"]] if judged else [],
        sections=[
            _ranking_section(results),
            _gain_section(results),
            *([_sensitivity_section(results)] if results.variants else []),
            _tuned_section(results),
            _forecast_section(results, store),
            *_attractor_section(results, store),
            _models_section(results),
        ],
        unsaid=_unsaid(results, document),
    )


# ---------------------------------------------------------------------- what it is about


def _summary(results: Results, document: dict[str, Any], judged: bool) -> list[str]:
    settings, sizes, models = results.settings, results.settings["n_hidden"], results.models
    source = "the Lorenz system" if results.is_lorenz else "a series read from a file"
    text = (
        f"{counted(len(results.main), 'network')} learnt to predict the next position of {source} from the last "
        f"{settings['window']}, as in {document['source']} of the paper: {counted(len(models), 'model')}, "
        f"{counted(len(sizes), 'size')} ({_span(sizes)} hypercomplex neurons), "
        f"{counted(settings['networks'], 'random network')} each. The first {settings['train']:,} of "
        f"{settings['positions']:,} positions are for training, the others for testing."
    )
    if results.real and len(models) > 1:
        text += " A real network has about as many parameters as the hypercomplex ones that it competes with."
    changed = [key for key, value in document["settings"].items() if settings[key] != value and key != "seed"]
    paragraphs = [text, *([_outcome(results.wins)] if len(models) > 1 else [])]
    if judged and changed:
        paragraphs.append(f"Settings that differ from those chosen for the paper: {listed(changed)}.")
    if not judged:
        paragraphs.append("The paper's claims are about its own series and models; none is judged here.")
    return paragraphs


def _span(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def _outcome(wins: Ranking) -> str:
    first, rivals = wins.order[0], wins.rivals(wins.order[0])
    clear = "clearly more than any other model"
    if rivals:
        every = len(rivals) == len(wins.order) - 1
        clear = f"chance may decide between {'all models' if every else f'it and {listed(rivals)}'}"
    return f"Most wins: {first}, {percent(wins.value(first))} of {wins.competitions:,} competitions; {clear}."


def _notice(results: Results) -> str:
    """Whether the real model wins, said plainly."""
    if results.real is None or len(results.models) == 1:
        return ""
    text = f"The real model wins {percent(results.wins.value(results.real))} of the competitions of the main part."
    unclear = [name for name in results.led if name not in results.overturned]
    if results.overturned:
        text += (
            f" It wins more often than any other model, beyond chance, with: {_shares(results, results.overturned)}."
        )
    if unclear:
        text += f" It has the most wins, but chance may decide, with: {_shares(results, unclear)}."
    if results.variants and not results.led:
        text += " It has the most wins in none of the variants below."
    return text + " " + _tuned_words(results, results.real)


def _shares(results: Results, variants: Sequence[str]) -> str:
    real = str(results.real)
    return "; ".join(f"{name} ({percent(results.variants[name].value(real), 0)} of the wins)" for name in variants)


def _tuned_words(results: Results, real: str) -> str:
    tuned = results.tuned
    gain = {name: decibels(tuned.value(name)) for name in results.models}
    first, second, *_ = tuned.order
    words = "With every model at its own best weight scale, chosen without the test data, "
    if first != real:
        words += f"the highest mean gain is that of {first}, {gain[first]}; the real model has {gain[real]}"
        return words + ("." if tuned.is_ahead(first, real) else ", and chance may decide between them.")
    words += f"the real model has the highest mean gain of all, {gain[real]}; {second} is next with {gain[second]}"
    if not results.real_is_best_when_tuned:
        return words + f". Chance may decide between it and {listed(tuned.rivals(real))}."
    return words + ". The main part compares models at one weight scale; it does not show which algebra predicts best."


def _unsaid(results: Results, document: dict[str, Any]) -> list[str]:
    """What was chosen because the paper does not say it, and what was chosen instead this time."""
    texts = []
    for key, text in document["unsaid"].items():
        if key in ("dt", "start") and not results.is_lorenz:
            continue
        value = results.settings.get(key)
        changed = key in document["settings"] and value != document["settings"][key]
        texts.append(f"{text} In this run, {key} is {value} instead." if changed else text)
    return texts


# ---------------------------------------------------------------------- sections


def _ranking_section(results: Results) -> Section:
    wins, models = results.wins, results.models
    text = [
        "In a competition every model trains one random network of the same size; the highest prediction gain on the "
        "test positions wins. The places by wins, as far as chance lets them be told, all pairs of models considered "
        "together: " + "; ".join(_group(wins, places, names) for places, names in wins.groups()) + "."
    ]
    if any(first < last for (first, last), _ in wins.groups()):
        text.append("Where several places are open, chance decides: with another seed the order may be different.")
    pictures = [figures.share_of_wins(wins, models), figures.share_by_size(winners(results.main, GAIN), models)]
    return Section("Who wins", text, pictures, [_main_table(results)])


def _group(wins: Ranking, places: tuple[int, int], names: Sequence[str]) -> str:
    tied = ", which cannot be told apart" if wins.are_tied(names) else ""
    return f"{_places(places)}: {listed(names)}{tied}"


def _places(places: tuple[int, int]) -> str:
    first, last = places
    return f"place {first}" if first == last else f"places {first} to {last}"


def _place_cell(ranking: Ranking, name: str) -> str:
    return _places(ranking.places(name)).split(" ", 1)[1]


def _main_table(results: Results) -> Table:
    wins, groups = results.wins, by(results.main, "algebra")
    rows = []
    for name in wins.order:
        gains = np.array([row[GAIN] for row in groups[(name,)]])
        share = f"{percent(wins.value(name))} ({_range(wins.interval(name), percent)})"
        rows.append(
            [name, _place_cell(wins, name), share, *map(decimal, (gains.mean(), np.median(gains), gains.std()))]
        )
    header = ["model", "place", "share of wins (95\u00a0%)", "mean gain (dB)", "median (dB)", "deviation (dB)"]
    return Table(
        "All runs of the main part, over all sizes: wins, and the prediction gain with its standard deviation.",
        header,
        rows,
    )


def _gain_section(results: Results) -> Section:
    text = (
        "The prediction gain is ten times the decimal logarithm of the variance of the signal's length by that of the "
        "error's length; more is better, and below 0 dB the error varies more than the signal."
    )
    return Section("Gain by size", [text], [figures.gain_by_parameters(results.main, results.models, results.real)])


def _range(ends: tuple[float, float], text: Callable[[float], str]) -> str:
    low, high = map(text, ends)
    return low.removesuffix("\u00a0%") + f" to {high}"


def _sensitivity_section(results: Results) -> Section:
    first = next(iter(results.variants.values()))
    shares = [[name, *(percent(wins.value(m), 0) for m in results.models)] for name, wins in results.variants.items()]
    gains = [[name, *map(decimal, means.values())] for name, means in results.variant_gains.items()]
    header = ["variant", *results.models]
    return Section(
        "What it depends on",
        [
            f"The main part with one thing changed that the paper leaves open, in {first.competitions} competitions "
            f"each ({listed([str(L) for L in results.settings['few_hidden']])} neurons). These are few: a model is "
            "called ahead only where it is told apart from all others, all pairs considered together. A ranking that "
            "changes here is one of settings, not of algebras."
        ],
        tables=[
            Table("Who wins in each variant.", ["variant", "most wins", "clearly ahead"], _leaders(results), words=3),
            Table("Share of wins.", header, shares),
            Table("Mean prediction gain in dB.", header, gains),
        ],
    )


def _leaders(results: Results) -> list[list[str]]:
    rows = []
    for name, wins in results.variants.items():
        top = [model for model in wins.order if wins.value(model) == wins.value(wins.order[0])]
        rows.append([name, f"{listed(top)}, {percent(wins.value(top[0]), 0)}", wins.clear_leader or "none"])
    return rows


def _tuned_section(results: Results) -> Section:
    tuned = results.tuned
    rows = []
    for name in tuned.order:
        scales = sorted({row["weight_scale"] for row in results.tuned_runs if row["algebra"] == name})
        mean = f"{decimal(tuned.value(name))} ({_range(tuned.interval(name), decimal)})"
        rows.append([name, ", ".join(f"{scale:.3g}" for scale in scales), _place_cell(tuned, name), mean])
    return Section(
        "Every model at its best",
        [
            "For each model and size, the weight scale that predicts the last third of the training positions best; "
            f"the test positions are not seen. Means over {tuned.competitions} networks of each model, with bootstrap "
            "intervals of each by itself, and the places that chance leaves open, all pairs considered together."
        ],
        tables=[
            Table(
                "Tuned on the training positions alone.",
                ["model", "weight scales", "place", "mean gain in dB (95\u00a0%)"],
                rows,
                2,
            )
        ],
    )


def _forecast_section(results: Results, store: Store) -> Section:
    unit = "Lyapunov times" if results.is_lorenz else "steps"
    times = {
        str(name): [row["valid_time"] for row in runs] for (name,), runs in by(results.forecast, "algebra").items()
    }
    order = sorted(times, key=lambda name: -np.mean(times[name]))
    rows = [[name, *(f"{v:.2f}" for v in (np.mean(times[name]), min(times[name]), max(times[name])))] for name in order]
    truth, path, positions = (store.array(key) for key in ("truth", f"forecast {order[0]}", "positions"))
    pictures = []
    if truth is not None and path is not None and positions is not None:
        spread = np.sqrt(positions.var(axis=0).sum())
        wrong = np.linalg.norm(path - truth, axis=1) > VALID * spread
        valid = int(wrong.argmax()) if wrong.any() else len(truth)
        step = results.settings["dt"] * results.settings["lyapunov"] if results.is_lorenz else 1.0
        pictures = [figures.forecast(order[0], truth, path, valid, step, unit)]
    count = results.settings["forecast_networks"]
    return Section(
        "Closed-loop forecasts",
        [
            f"Networks with tuned weight scales, {count} of each model, are fed with their own predictions from "
            f"{STARTS} places of the test part on. A forecast is valid while its error is below {VALID} of the spread "
            "of the series; the time of a network is the median over the places. So few networks give no ranking."
        ],
        pictures,
        [Table(f"Valid prediction time in {unit}.", ["model", "mean", "shortest", "longest"], rows)],
    )


def _attractor_section(results: Results, store: Store) -> list[Section]:
    positions, predicted = store.array("positions"), store.array("predictions")
    if positions is None or predicted is None or positions.shape[1] != 3:
        return []
    name = results.models[min(1, len(results.models) - 1)]
    return [Section("The attractor", pictures=[figures.attractor(name, positions, predicted)])]


def _models_section(results: Results) -> Section:
    rows = []
    for name in results.models:
        algebra = algebra_of(name)
        if algebra is not None:
            marks = ["yes" if mark else "no" for mark in (algebra.is_commutative, algebra.is_associative)]
            rows.append([name, *marks, algebra.structure])
    text = [
        "Algebras of the same structure are the same one in other bases, so near-equal results are to be expected of "
        "them. M2(R) stands for the real 2 × 2 matrices."
    ]
    if "paper-Cl(1,1)" in results.models:
        text.append(
            "The table that the paper prints for Cl(1,1) is used as printed, under the name paper-Cl(1,1). It is not "
            "associative, and so no Clifford algebra; the Clifford algebra Cl(1,1) has the table of R[+1,-1]."
        )
    header = ["model", "commutative", "associative", "structure"]
    return Section("The models", text, tables=[Table("The algebras of the models.", header, rows, words=4)])
