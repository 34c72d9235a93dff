"""The tables of the page "On real data", from the results of `real_data.py`.

The page has a place for every table, between the comments `<!-- table NAME -->` and `<!-- end -->`. Only what is
between them is replaced, so that no figure is typed by hand.
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
    return next(name for name in by_error(result) if not result["models"][name]["ours"])


def verdict(result: Result) -> str:
    mine, rival = reference(result), best_rival(result)
    if p_value(result, rival, mine) > LEVEL:
        return "level"
    return "ours" if middle(result, mine) < middle(result, rival) else "the rival"


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
    return [f"[{name}](#{name})", here, rival, there, of_p(p_value(result, rival, mine)), verdict(result)]


def summary_table(results: dict[str, Result]) -> str:
    rows = [summary_row(name, result) for name, result in results.items()]
    return grid(["task", "our error", "best rival", "its error", "p", "better"], rows)


def section(name: str, result: Result) -> str:
    """The heading of a task comes with its table, so that a task without results leaves nothing on the page."""
    text = (tables_table if result["of_tables"] else task_table)(result)
    return f"### {name}\n\n{result['title']}.\n\n{text}"


def tables(results: dict[str, Result]) -> dict[str, str]:
    found = {name: section(name, result) for name, result in results.items()}
    return found | {"summary": summary_table(results)}


def write_page(results: dict[str, Result], page: Path) -> None:
    """Replace every table on the page of which there are results."""
    found = tables(results)

    def replaced(match: re.Match[str]) -> str:
        table = found.get(match["name"])
        return f"{match['start']}\n\n{table}\n\n<!-- end -->" if table else match[0]

    pattern = r"(?P<start><!-- table (?P<name>[\w-]+) -->)\n.*?<!-- end -->"
    page.write_text(re.sub(pattern, replaced, page.read_text(encoding="utf-8"), flags=re.DOTALL), encoding="utf-8")
