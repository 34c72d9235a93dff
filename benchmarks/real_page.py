"""The tables of the page "On real data", from the results of `real_data.py`.

The page has a place for every table, between the comments `<!-- table NAME -->` and `<!-- end -->`. Only what is
between them is replaced, so that no figure is typed by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from hyperelm._estimators.comparison import Comparison

LEVEL = 0.05
Result = dict[str, Any]


def mean_error(model: dict[str, Any]) -> float:
    return float(np.mean(model["errors"]))


def reference(result: Result) -> str:
    return next(iter(result["models"]))


def p_value(result: Result, model: str, other: str) -> float:
    """That of a paired test over the splits, corrected where training parts overlap."""
    scores = {name: -np.array(result["models"][name]["errors"]) for name in (model, other)}
    return Comparison(scores, other, result["ratio"]).test(model)["p"]


def best_rival(result: Result) -> str:
    rivals = {name: mean_error(model) for name, model in result["models"].items() if not model["ours"]}
    return min(rivals, key=rivals.__getitem__)


def verdict(result: Result) -> str:
    mine, rival = reference(result), best_rival(result)
    if p_value(result, rival, mine) > LEVEL:
        return "level"
    return "ours" if mean_error(result["models"][mine]) < mean_error(result["models"][rival]) else "the rival"


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


def model_row(result: Result, name: str) -> list[str]:
    model, mine = result["models"][name], reference(result)
    against = "" if name == mine else of_p(p_value(result, name, mine))
    label = f"**{name}**" if name == mine else f"*{name}*" if model["ours"] else name
    return [
        label,
        of_error(mean_error(model), labels=result["labels"]),
        against,
        of_seconds(model["fit"]),
        of_seconds(1000 * model["predict"]),
        f"{model['parameters']:,.0f}",
        of_bytes(model["bytes"]),
    ]


def task_table(result: Result) -> str:
    """Every model, the best first. Ours are in italics, and the recommended one is bold."""
    names = sorted(result["models"], key=lambda name: mean_error(result["models"][name]))
    heads = ["model", "error", "p", "fit, s", "predict, ms", "parameters", "kB"]
    text = grid(heads, [model_row(result, name) for name in names])
    notes = [f"{result['splits']} splits, {result['columns']:,} columns and {result['test_rows']:,} test rows each."]
    if result["baseline"]:
        notes.append(f"Without a model ({result['baseline']['name']}) the error is {result['baseline']['error']:.4f}.")
    notes += [f"{name} was skipped: {reason}." for name, reason in result["failures"].items()]
    return text + "\n\n" + " ".join(notes)


def tables_table(result: Result) -> str:
    """Scores over many tables: how often a model is clearly better or worse than ours."""
    mine = np.array(result["models"][reference(result)]["errors"])
    rows = []
    for name in sorted(result["models"], key=lambda name: np.median(result["models"][name]["errors"])):
        model = result["models"][name]
        errors = np.array(model["errors"])
        label = f"**{name}**" if name == reference(result) else f"*{name}*" if model["ours"] else name
        shares = [f"{100 * np.mean(errors < 0.98 * mine):.0f} %", f"{100 * np.mean(errors > 1.02 * mine):.0f} %"]
        shares = ["", ""] if name == reference(result) else shares
        worst = f"{errors.max():.2f}"
        size = [of_seconds(model["fit"]), f"{model['parameters']:,.0f}", of_bytes(model["bytes"])]
        rows.append([label, f"{np.median(errors):.3f}", f"{errors.mean():.3f}", worst, *shares, *size])
    heads = ["model", "median error", "mean", "worst", "better than ours by 2 %", "worse by 2 %"]
    return grid([*heads, "fit, s", "parameters", "kB"], rows) + f"\n\n{result['splits']} tables, one split each."


def summary_table(results: dict[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        mine, rival = reference(result), best_rival(result)
        here, there = (mean_error(result["models"][model]) for model in (mine, rival))
        cells = [of_error(value, labels=result["labels"]) for value in (here, there)]
        p = of_p(p_value(result, rival, mine))
        rows.append([f"[{name}](#{name})", cells[0], rival, cells[1], p, verdict(result)])
    return grid(["task", "our error", "best rival", "its error", "p", "better"], rows)


def tables(results: dict[str, Result]) -> dict[str, str]:
    found = {name: (tables_table if name.startswith("tables") else task_table)(r) for name, r in results.items()}
    return found | {"summary": summary_table(results)}


def write_page(results: dict[str, Result], page: Path) -> None:
    """Replace every table on the page of which there are results."""
    found = tables(results)

    def replaced(match: re.Match[str]) -> str:
        table = found.get(match["name"])
        return f"{match['start']}\n\n{table}\n\n<!-- end -->" if table else match[0]

    pattern = r"(?P<start><!-- table (?P<name>[\w-]+) -->)\n.*?<!-- end -->"
    page.write_text(re.sub(pattern, replaced, page.read_text(encoding="utf-8"), flags=re.DOTALL), encoding="utf-8")
