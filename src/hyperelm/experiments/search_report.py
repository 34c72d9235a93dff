"""The report of a search: classes and tables in order, what chance explains, and what the order depends on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hyperelm.experiments import search_figures as figures
from hyperelm.experiments.comparison import Comparison
from hyperelm.experiments.report import Page, Section, Table, counted, decimal, listed, percent
from hyperelm.experiments.search_results import Results, beside, warning
from hyperelm.experiments.search_tasks import FEATURES, HELD_OUT, MEASURE, PATCHES, SAMPLES, SIDE
from hyperelm.experiments.store import Store

_SHOWN = 20  # tables that are listed, besides those of the catalogue
_NAMED = 8  # contenders that are named in a sentence
_FAMILY = {
    "signs": "sign variants of the Klein table",
    "cayley-dickson": "generalised Cayley-Dickson algebras",
    "clifford": "Clifford algebras",
}


def build(store: Store, document: dict[str, Any]) -> Page:
    results = Results(store)
    return Page(
        title=f"{document['title']}: {_subject(results)}",
        summary=_summary(results),
        notice=_notice(results),
        sections=[
            *([_baseline_section(results)] if results.baselines else []),
            _class_section(results),
            *([_returning_section(results)] if results.returning_correlation is not None else []),
            _table_section(results),
            _chance_section(results),
            *([_scale_section(results)] if results.scales else []),
            _family_section(results),
        ],
        unsaid=[],
    )


def _subject(results: Results) -> str:
    settings = results.settings
    images = "CIFAR-10" if settings["data"] != "sample" else "two photographs"
    return {
        "lorenz": "predicting the Lorenz system",
        "images": f"patches of images ({images})",
        "hidden": f"data made in {settings['hidden']}",
        "csv": f"columns of {settings['data'].rpartition('/')[2]}",
    }[settings["task"]]


# ---------------------------------------------------------------------- what it is about


def _summary(results: Results) -> list[str]:
    settings = results.settings
    return [
        f"{len(results.algebras)} tables of dimension {settings['dim']} ({_FAMILY[settings['family']]}) on one task. "
        f"They fall into {len(results.classes)} classes of tables that differ by a signed permutation of their units "
        f"alone. {_task(results)}",
        _model(results),
        _first(results),
    ]


def _task(results: Results) -> str:
    settings = results.settings
    task = {
        "lorenz": "The next position of the Lorenz system from the last three; the first 300 of 4,000 positions are "
        "for training.",
        "images": f"The colours of patches of {SIDE} x {SIDE} pixels through a code; {PATCHES[0]:,} patches are for "
        f"training, {PATCHES[1]:,} others for testing.",
        "hidden": f"Y = XM with {FEATURES} numbers a row in {settings['hidden']}, and noise of "
        f"{percent(settings['noise'])} of the signal; {SAMPLES[0]} rows for training, {SAMPLES[1]} for testing, drawn "
        f"anew in every repetition.",
        "csv": f"The columns {settings['target']} from the others; {percent(HELD_OUT, 0)} of the rows, drawn at "
        "random, are held out.",
    }[settings["task"]]
    parts = "the imaginary parts" if results.is_imaginary else "all components"
    return f"{task} Columns fill {parts} of numbers in their order."


def _model(results: Results) -> str:
    n = results.tables.repetitions
    if results.is_linear:
        return f"Each table is fitted by least squares, XV with {results.parameters} parameters, in {n} repetitions."
    return (
        f"Each table has {counted(n, 'random network')} of {results.settings['n_hidden']} hidden numbers and "
        f"{results.parameters:,} parameters. Network number n has the same random numbers in all tables, so that "
        "differences between tables are seen pair by pair." + _ridge(results)
    )


def _ridge(results: Results) -> str:
    if results.settings["ridge"] == "none":
        return ""
    return " Each network takes the ridge with the least leave-one-out error of its training rows."


def _first(results: Results) -> str:
    return f"{_leader(results, results.by_class, 'class')} {_leader(results, results.tables, 'table')}"


def _leader(results: Results, ranking: Comparison, noun: str) -> str:
    def name(item: str) -> str:
        return figures.class_name(results, item) if noun == "class" else results.label(item)

    first, twins = ranking.order[0], ranking.same[0]
    rivals = [rival for rival in ranking.contenders if rival not in twins]
    text = f"Best {noun}: {name(first)}, {_db(ranking.value(first))}"
    if len(twins) > 1:
        text += f", the same model as {listed([name(twin) for twin in twins if twin != first])}"
    if not rivals:
        return f"{text}, beyond chance." if len(ranking.order) > 1 else f"{text}."
    if len(rivals) > _NAMED:
        return f"{text}; chance may decide between it and {len(rivals)} others."
    return f"{text}; chance may decide between it and {listed([name(rival) for rival in rivals])}."


def _notice(results: Results) -> str:
    """Whether an algebra is of use at all."""
    best, reference = results.tables.order[0], results.reference
    kind = "Ordinary least squares" if results.is_linear else "A real network"
    better = sum(results.tables.value(name) > reference for name in results.tables.order)
    return (
        f"{kind} with {results.reference_parameters:,} parameters has {_db(reference)}: "
        f"{better} of {len(results.tables.order)} tables are above it; the best, {results.label(best)}, has "
        f"{_db(results.tables.value(best))} with {results.parameters:,} parameters."
        + (f" {warning(results)}" if results.better_baselines else "")
    )


def _db(value: float) -> str:
    return f"{decimal(value, 2)}\u00a0dB"


def _places(ranking: Comparison, name: str) -> str:
    first, last = ranking.places(name)
    return str(first) if first == last else f"{first} to {last}"


# ---------------------------------------------------------------------- rankings


def _baseline_section(results: Results) -> Section:
    best = results.tables.order[0]
    compared = [
        (f"the best table, {results.label(best)}", results.parameters, results.tables.value(best)),
        *beside(results),
    ]
    rows = [[name, f"{count:,}", decimal(score, 2)] for name, count, score in sorted(compared, key=lambda row: -row[2])]
    text = (
        "On the same rows: real networks with about as many parameters as a table has, with a ridge that is chosen in "
        "the same way; ridge regression on the columns, with a ridge chosen by leave-one-out errors of the training "
        "rows; and the mean of the targets, which has 0 dB as all scores are relative to it. The best of "
        f"{len(results.tables.order)} tables is chosen by the rows held out themselves, so its score is too high an "
        "estimate; the others have had no such choice. Squared errors within 1\u00a0% count as equal."
    )
    header = ["model", "parameters", "mean in dB"]
    return Section(
        "What to compare it with",
        [text, *([warning(results)] if results.better_baselines else [])],
        tables=[Table("The best table beside what is simpler.", header, rows)],
    )


def _class_section(results: Results) -> Section:
    ranking, measure = results.by_class, MEASURE[results.settings["task"]]
    by_chance = (len(results.classes) - 1) / max(len(results.algebras) - 1, 1)
    rows = []
    for number in ranking.order:
        group = results.group(number)
        best = results.best_of(group)
        rows.append(
            [
                figures.class_name(results, number),
                best,
                group.form.structure,
                "yes" if group.form.is_commutative else "no",
                str(len(group.members)),
                str(results.returning[number]),
                _places(ranking, number),
                f"{decimal(ranking.value(number), 2)} ± {decimal(ranking.margin(number), 2)}",
                decimal(results.tables.value(best), 2),
            ]
        )
    header = [
        "class",
        "its best table",
        "structure",
        "commutative",
        "tables",
        "(xu)u = x(uu)",
        "places",
        "mean in dB",
        "best in dB",
    ]
    return Section(
        "Classes",
        [
            "A class stands for one algebra, whatever its units are called. Its mean is over its tables, that is, over "
            "the ways to lay the channels of the data on the units; so it has no advantage from having many tables. "
            f"Between classes lies {percent(results.share_between_classes)} of the variance of the tables' means; of "
            f"as many groups made at random it would be {percent(by_chance)}."
        ],
        [figures.class_scores(results, measure)],
        [
            Table(
                f"Classes by the {measure}; places that chance leaves open, all pairs considered together.",
                header,
                rows,
                words=4,
            )
        ],
    )


def _returning_section(results: Results) -> Section:
    return Section(
        "What goes with it",
        [
            "A network of this kind computes (xw)v, a product with weights of the hidden layer and then one with those "
            "of the output layer. Of the properties of a table, one bears on that: for how many imaginary units u "
            "(xu)u = x(uu) holds for all x, so that a second product with u undoes the first. The rank correlation of "
            f"this number with the classes' means is {decimal(float(results.returning_correlation or 0), 2)}."
        ],
        [figures.by_returning_units(results, MEASURE[results.settings["task"]])],
    )


def _table_section(results: Results) -> Section:
    ranking = results.tables
    shown = [
        name for n, name in enumerate(ranking.order) if n < _SHOWN or results.known([name]) or len(ranking.order) < 50
    ]
    rows = [
        [
            results.label(name),
            results.algebras[name].structure,
            str(results.class_of[name].number),
            str(ranking.order.index(name) + 1),
            _places(ranking, name),
            decimal(ranking.value(name), 2),
        ]
        for name in shown
    ]
    text = []
    if results.settings["family"] == "signs":
        text = ["A table is named by its signs: the products of i, of j and of k by i, j, k."]
    if len(shown) < len(ranking.order):
        text.append(f"The first {_SHOWN}, and those that have a name. `hyperelm export` has all of them.")
    header = ["table", "structure", "class", "order", "places", "mean in dB"]
    return Section("Tables", text, tables=[Table("Tables by their mean.", header, rows, words=2)])


def _chance_section(results: Results) -> Section:
    ranking = results.tables
    text = [
        f"Two tables are told apart if the paired differences of their {counted(ranking.repetitions, 'score')} are "
        "beyond chance in a t-test that leaves 5\u00a0% for a mistake in any of all pairs (Bonferroni). With hundreds "
        "of candidates this is strict: the first of many has had luck, too, and its mean is too high an estimate. The "
        "repetitions are "
        + ("draws of the data" if results.is_linear else "random networks on the same rows")
        + ": other data may have another order."
    ]
    if results.is_imaginary and not results.is_linear and results.partners:
        differ = sum(ranking.differ_alone(*pair) for pair in results.partners)
        apart = sum(ranking.is_ahead(a, b) or ranking.is_ahead(b, a) for a, b in results.partners)
        text.append(
            "A check: a table and the one with all imaginary units negated are equal in distribution on data without "
            f"real parts, so that only chance tells them apart. At the level of 5\u00a0% a pair, {differ} of "
            f"{len(results.partners)} such pairs ({percent(differ / len(results.partners))}) differ; with all "
            f"pairs considered together, {apart or 'none'}. Pairs share random numbers, so that these shares scatter."
        )
    same = [group for group in ranking.same if len(group) > 1]
    tables = []
    if same:
        sizes = Counter(len(group) for group in same)
        text.append(
            f"{len(ranking.order)} tables give {len(ranking.same)} models: "
            + listed([f"{count} groups of {size} tables" for size, count in sorted(sizes.items())])
            + " have the same score in every repetition, since they can express the same maps. No data of this kind "
            "tell them apart."
        )
        rows = [[", ".join(map(results.label, group)), decimal(ranking.value(group[0]), 2)] for group in same[:_SHOWN]]
        tables = [Table("Tables that are the same model, best first.", ["tables", "mean in dB"], rows)]
    return Section("What chance explains", text, tables=tables)


def _scale_section(results: Results) -> Section:
    main = results.by_class.order[0]
    rows = [
        [
            scale,
            figures.class_name(results, ranking.order[0]),
            decimal(ranking.value(ranking.order[0]), 2),
            str(len(ranking.contenders)),
            str(ranking.order.index(main) + 1),
            f"{results.correlation(scale):.2f}",
            decimal(results.reference_at(scale), 2),
        ]
        for scale, ranking in results.scales.items()
    ]
    n = next(iter(results.scales.values())).repetitions
    first = f"order of {figures.class_name(results, main)}"
    header = ["weight scale", "best class", "mean in dB", "may be best", first, "rank correlation", "real in dB"]
    return Section(
        "What it depends on",
        [
            f"The same with other weight scales, {counted(n, 'network')} of each table: the best class, how many "
            "classes chance leaves in the running, the order of the class that is first in the main part, the rank "
            "correlation of the classes' means with those of the main part, and the mean of real networks. An order "
            "that changes here is one of settings, not of algebras; and where another scale gives far better scores, "
            "the order there is the one that matters."
        ],
        [figures.scales(results)],
        [Table("Classes at other weight scales.", header, rows, words=2)],
    )


# ---------------------------------------------------------------------- the family


def _family_section(results: Results) -> Section:
    found = Counter(group.form.structure for group in results.classes)
    tables = Counter[str]()
    for group in results.classes:
        tables[group.form.structure] += len(group.members)
    rows = [[structure, str(count), str(tables[structure])] for structure, count in found.most_common()]
    return Section(
        "The family",
        [
            "A signed permutation P of the imaginary units turns a table into x ∘ y = P(P⁻¹x · P⁻¹y), the same algebra "
            "in other units. Networks of the new table on data PX, PY have the same scores, in distribution, as those "
            "of the old one on X, Y: random weights are symmetric, and tanh is odd and acts on each component. On the "
            "same data X, Y they may differ, as the channels of data are not interchangeable: a class is one algebra, "
            "but its tables are different models.",
        ],
        tables=[Table("Classes and tables by structure.", ["structure", "classes", "tables"], rows)],
    )
