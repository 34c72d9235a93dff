"""Every figure and every winner on the pages "On real data" and "When to use it", from the results of `real_data.py`.

The pages have places for them, between the comments `<!-- table NAME -->`, `<!-- sentences NAME -->` or
`<!-- measured TASK TASK -->` and `<!-- end -->`. Only what is between them is replaced, so that no figure is typed by
hand. What was not measured leaves its place empty.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from hyperelm._estimators.comparison import Comparison

LEVEL = 0.05
Result = dict[str, Any]


def reference(result: Result) -> str:
    return next(iter(result["models"]))


def errors(result: Result, model: str) -> NDArray[np.float64]:
    return np.array(result["models"][model]["errors"])


def middle(result: Result, model: str) -> float:
    """The mean error over splits, or the median over tables, which differ in difficulty."""
    return float((np.median if result["of_tables"] else np.mean)(errors(result, model)))


def p_value(result: Result, model: str, other: str) -> float:
    """That of a paired test over the splits, corrected where training parts overlap; by ranks over tables.

    Regressions are compared by the logarithms of their errors, since some photographs are harder than others.
    """
    mine, others = errors(result, model), errors(result, other)
    if result["of_tables"]:
        return float(wilcoxon(mine, others).pvalue)
    if not result["labels"]:
        mine, others = np.log(mine), np.log(others)
    return Comparison({model: -mine, other: -others}, other, result["ratio"]).test(model)["p"]


def by_error(result: Result) -> list[str]:
    return sorted(result["models"], key=lambda name: middle(result, name))


def best_rival(result: Result) -> str:
    return rivals(result)[0]


def rivals(result: Result) -> list[str]:
    return [name for name in by_error(result) if not result["models"][name]["ours"]]


def against_rival(result: Result, rival: str) -> str:
    """Which of the recommended network and a rival is better, by more than chance."""
    mine = reference(result)
    if p_value(result, rival, mine) > LEVEL:
        return "level"
    worse = typical_ratio(result, rival) > 1
    return "ours" if worse else "the rival"


def typical_ratio(result: Result, rival: str) -> float:
    """The error of a rival in units of ours. Over tables it is the median of the ratios, which p is about, too."""
    mine = reference(result)
    if result["of_tables"]:
        return float(np.median(errors(result, rival) / errors(result, mine)))
    return middle(result, rival) / middle(result, mine)


def verdict(result: Result) -> str:
    return against_rival(result, best_rival(result))


def standings(result: Result) -> dict[str, list[str]]:
    """The rivals that are better than the recommended network, level with it, and worse."""
    found: dict[str, list[str]] = {"the rival": [], "level": [], "ours": []}
    for rival in rivals(result):
        found[against_rival(result, rival)].append(rival)
    return found


def splits_won(result: Result) -> int:
    """Of how many splits the recommended network has a smaller error than the best rival."""
    return int(np.sum(errors(result, reference(result)) < errors(result, best_rival(result))))


def of_error(value: float, *, labels: bool) -> str:
    return f"{100 * value:.1f} %" if labels else f"{value:.4f}"


def of_p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def of_seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def of_bytes(value: float) -> str:
    kilobytes = value / 1000
    return f"{kilobytes:.1f}" if kilobytes < 10 else f"{kilobytes:,.0f}"


def grid(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def label(result: Result, name: str) -> str:
    """Ours in italics, and the recommended one bold."""
    mark = "**" if name == reference(result) else "*" if result["models"][name]["ours"] else ""
    return f"{mark}{name}{mark}"


def against(result: Result, name: str) -> str:
    return "" if name == reference(result) else of_p(p_value(result, name, reference(result)))


def model_row(result: Result, name: str) -> list[str]:
    model = result["models"][name]
    return [
        label(result, name),
        of_error(middle(result, name), labels=result["labels"]),
        against(result, name),
        of_seconds(model["fit"]),
        of_seconds(1000 * model["predict"]),
        f"{model['parameters']:,.0f}",
        of_bytes(model["bytes"]),
    ]


def task_table(result: Result) -> str:
    """Every model, the best first."""
    heads = ["model", "error", "p", "fit, s", "predict, ms", "parameters", "kB"]
    notes = [f"{result['splits']} splits, {result['columns']:,} columns and {result['test_rows']:,} test rows each."]
    if result["baseline"]:
        notes.append(f"Without a model ({result['baseline']['name']}) the error is {result['baseline']['error']:.4f}.")
    return table(heads, [model_row(result, name) for name in by_error(result)], result, notes)


def tables_row(result: Result, name: str) -> list[str]:
    mine, model = errors(result, reference(result)), result["models"][name]
    found = errors(result, name)
    shares = [f"{100 * np.mean(found < 0.98 * mine):.0f} %", f"{100 * np.mean(found > 1.02 * mine):.0f} %"]
    return [
        label(result, name),
        f"{np.median(found):.3f}",
        f"{found.mean():.3f}",
        f"{found.max():.2f}",
        *(["", ""] if name == reference(result) else shares),
        against(result, name),
        of_seconds(model["fit"]),
        f"{model['parameters']:,.0f}",
        of_bytes(model["bytes"]),
    ]


def tables_table(result: Result) -> str:
    """Many tables: also how often a model is clearly better or worse than ours."""
    heads = ["model", "median error", "mean", "worst", "2 % better than ours", "2 % worse", "p"]
    rows = [tables_row(result, name) for name in by_error(result)]
    return table([*heads, "fit, s", "parameters", "kB"], rows, result, [f"{result['splits']} tables, one split each."])


def table(heads: list[str], rows: list[list[str]], result: Result, notes: list[str]) -> str:
    skipped = [f"{name} was skipped: {reason}." for name, reason in result["failures"].items()]
    return grid(heads, rows) + "\n\n" + " ".join(notes + skipped)


def summary_row(name: str, result: Result) -> list[str]:
    mine, rival = reference(result), best_rival(result)
    here, there = (of_error(middle(result, model), labels=result["labels"]) for model in (mine, rival))
    better = verdict(result)
    return [
        f"[{name}](#{name})",
        here,
        rival,
        there,
        of_p(p_value(result, rival, mine)),
        f"{splits_won(result)} of {result['splits']}",
        better if better == "level" else f"**{better}**",
        " / ".join(str(len(names)) for names in standings(result).values()),
    ]


def summary_table(results: dict[str, Result]) -> str:
    heads = [
        "task",
        "our error",
        "best rival",
        "its error",
        "p",
        "splits won",
        "better",
        "rivals better / level / worse",
    ]
    return grid(heads, [summary_row(name, result) for name, result in results.items()])


# ---------------------------------------------------------------------- sentences


def listed(names: list[str]) -> str:
    """Names with commas in them, so that semicolons stand between them."""
    return names[0] if len(names) == 1 else f"{'; '.join(names[:-1])}; and {names[-1]}"


def tally(results: dict[str, Result]) -> str:
    """The tasks of each verdict, losses first, and the losses that a verdict of "level" does not show."""
    lines = []
    for kind, text in (
        ("the rival", "The best rival is better than our network"),
        ("level", "The two are level"),
        ("ours", "Our network is better than the best rival"),
    ):
        names = [f"[{name}](#{name})" for name, result in results.items() if verdict(result) == kind]
        lines.append(f"- {text} on {len(names)} of {len(results)} tasks{': ' if names else ''}{', '.join(names)}.")
    for name, result in results.items():
        better = standings(result)["the rival"]
        if verdict(result) == "level" and better:
            lines.append(
                f"- On [{name}](#{name}) the rival with the smallest error is level, but these are better than our "
                f"network by more than chance: {listed(better)}."
            )
        elif verdict(result) == "level" and splits_won(result) == 0:
            lines.append(
                f"- On [{name}](#{name}) the two are level by the test, which has few splits, but {best_rival(result)} "
                "has the smaller error on every one."
            )
    return "\n".join(lines)


def few_rows(results: dict[str, Result]) -> str:
    """Whether the recommended network is first on wind with at most 1,000 rows, or within the noise of the first."""
    measured = {name: results[name] for name in ("wind-60", "wind-250", "wind-1000") if name in results}
    if not measured:
        return ""
    behind = [name for name, result in measured.items() if standings(result)["the rival"]]
    if behind:
        head = f"**Not always: on {listed(behind)} a rival is better by more than chance.**"
    else:
        head = "**It is first among all rivals, or within the noise of the first, at each of these sizes.**"
    lines = [f"- [{name}](#{name}): {place(result)}." for name, result in measured.items()]
    return "\n".join([f"On wind with at most 1,000 rows, is the recommended network first? {head}", "", *lines])


def place(result: Result) -> str:
    """Where the recommended network stands beside the best rival."""
    first = "first" if middle(result, reference(result)) < middle(result, best_rival(result)) else "not first"
    return f"{first}: the error of the best rival ({best_rival(result)}) is {distance(result, best_rival(result))}"


def distance(result: Result, other: str) -> str:
    """By how much another error is larger than that of the recommended network, and whether that may be chance."""
    mine, p = reference(result), p_value(result, other, reference(result))
    here, there = middle(result, mine), middle(result, other)
    if result["labels"]:
        size = f"{of_error(there, labels=True)} instead of {of_error(here, labels=True)}"
    else:
        size = f"{100 * abs(there / here - 1):.1f} % {'larger' if there > here else 'smaller'}"
    of = f"p {of_p(p)}" if p < 1e-4 else f"p = {of_p(p)}"
    return f"{size}, which may be chance ({of})" if p > LEVEL else f"{size} ({of})"


def together(results: dict[str, Result]) -> str:
    """How long it took, from the seconds of the tasks."""
    minutes = sum(result["seconds"] for result in results.values() if "seconds" in result) / 60
    return f"The {len(results)} tasks on this page took {minutes:.0f} minutes, added up." if minutes else ""


def measured(results: dict[str, Result], names: list[str]) -> str:
    """Lines for another page, which point to the tables."""
    known = [name for name in names if name in results]
    return "\n".join(f"- [{name}](real-data.md#{name}): {measured_line(results[name])}" for name in known)


def measured_line(result: Result) -> str:
    """Where the recommended network stands, how large it is, what real neurons do, and who is better."""
    model = result["models"][reference(result)]
    size = f"{model['parameters']:,.0f} parameters, {of_bytes(model['bytes'])} kB, {of_seconds(model['fit'])} s to fit"
    parts = [f"*{reference(result)}* ({size}) is {place(result)}."]
    real = [name for name, found in result["models"].items() if found["ours"] and name.startswith("real, ")]
    if real:
        parts.append(f"That of our real network with as many parameters is {distance(result, real[0])}.")
    better = standings(result)["the rival"]
    if better:
        parts.append(f"Better than ours by more than chance: {listed(better)}.")
    return " ".join(parts)


def section(name: str, result: Result) -> str:
    """The heading of a task comes with its table, so that a task without results leaves nothing on the page."""
    text = (tables_table if result["of_tables"] else task_table)(result)
    return f"### {name}\n\n{result['title']}.\n\n{text}"


def texts(results: dict[str, Result]) -> dict[str, str]:
    """What belongs between the comments, by what the first of them says."""
    found = {f"table {name}": section(name, result) for name, result in results.items()}
    return found | {
        "table summary": summary_table(results),
        "sentences tally": tally(results),
        "sentences few-rows": few_rows(results),
        "sentences time": together(results),
    }


def write_pages(results: dict[str, Result], docs: Path) -> None:
    """Replace what is between the comments on the two pages."""
    found = texts(results)

    def replaced(match: re.Match[str]) -> str:
        kind, _, rest = match["what"].partition(" ")
        text = measured(results, rest.split()) if kind == "measured" else found.get(match["what"], "")
        return (
            f"<!-- {match['what']} -->\n\n{text}\n\n<!-- end -->" if text else f"<!-- {match['what']} -->\n<!-- end -->"
        )

    pattern = r"<!-- (?P<what>(table|sentences|measured) [\w -]+) -->\n.*?<!-- end -->"
    for name in ("real-data.md", "when.md"):
        page = docs / name
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(pattern, replaced, text, flags=re.DOTALL), encoding="utf-8")
