"""`hyperelm predict`: a model of `hyperelm fit` applied to a file as it comes.

What was done to the columns of the training file is part of the model and is done again. A series goes on by steps:
each prediction becomes the last row of the next window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm import FrameClassifier, FrameRegressor
from hyperelm.cli._task import Array, listed, whole, windows
from hyperelm.experiments import Sheet, column_names, read_sheet

Model = FrameRegressor | FrameClassifier


@dataclass(frozen=True)
class Options:
    """What the user asks for, beside the model and the file."""

    keep: str | None = None
    steps: int = 0
    probabilities: bool = False
    interval: float | None = None
    sep: str | None = None
    decimal: str | None = None


@dataclass
class Predictions:
    """Columns of predictions by name, and remarks on the file. Rows of a series are numbered from 1."""

    columns: dict[str, list[Any]]
    remarks: list[str] = field(default_factory=list)

    def rows(self) -> list[list[Any]]:
        """The names, and then the rows."""
        return [list(self.columns), *(list(row) for row in zip(*self.columns.values()))]


def predict(model: Model, path: str, options: Options) -> Predictions:
    """The predictions for every row of a file, or of a series for the row after each window."""
    names = [step.name for step in model.plan_.used]
    keep = [] if options.keep is None else column_names(options.keep, "--keep")
    targets, window, horizon = model.target_names_.tolist(), int(model.window_[0]), int(model.horizon_[0])
    if options.steps and not (window and horizon == 1):
        wanted = "left out for a model that is not of a series" if not window else "left out for a model with --horizon"
        raise ValueError(f"--steps must be {wanted}, got {options.steps}. Fit one with --series.")
    if options.interval is not None and not 0 < options.interval < 1:
        raise ValueError(f"--interval must be a probability between 0 and 1, such as 0.9, got {options.interval:g}.")
    if options.interval is not None and isinstance(model, FrameClassifier):
        raise ValueError("--interval must be left out for a model of labels. --probabilities says how sure it is.")
    if options.probabilities and not isinstance(model, FrameClassifier):
        raise ValueError("--probabilities must be left out for a model that predicts numbers.")
    sheet = read_sheet(path, "DATA", [*names, *keep], sep=options.sep, decimal=options.decimal)
    _check_there(sheet, names)
    X, remarks = _inputs(model, sheet)
    remarks = [*sheet.remarks, *remarks]
    clash = [name for name in keep if name in targets]
    if clash:
        raise ValueError(
            f"--keep must not name targets, got {clash[0]!r}: predictions have that name. Rename the column of the "
            "file to keep it."
        )
    kept = {name: ["" if text is None else text for text in sheet.texts(name)] for name in keep}
    if not window:
        return Predictions({**kept, **_outputs(model, X, options)}, remarks)
    if len(X) < window:
        found = f"got {len(X)} in {path}"
        raise ValueError(f"DATA must have at least {window} rows, a window of the model, {found}.")
    if options.steps:
        rows, inputs = range(len(X) + 1, len(X) + options.steps + 1), _steps(model, X, options.steps)
    else:
        rows, inputs = range(window + horizon, len(X) + horizon + 1), windows(X, window)
    # Rows beyond the end of the file have nothing to keep.
    beside = {name: [texts[row - 1] if row <= len(texts) else "" for row in rows] for name, texts in kept.items()}
    outputs = _outputs(model, inputs, options)
    if options.interval is not None and options.steps > 1:
        # An interval is known for a prediction from rows that were seen.
        outputs |= {
            name: [*cells[:1], *[""] * (len(cells) - 1)] for name, cells in outputs.items() if name not in targets
        }
        remarks.append("Intervals are known for the first step alone. For later ones fit a model with --horizon.")
    return Predictions({"row": list(rows), **beside, **outputs}, remarks)


def _check_there(sheet: Sheet, names: list[str]) -> None:
    there = {*sheet.names}
    lacking = [name for name in names if name not in there]
    if len(lacking) > 1:
        raise ValueError(
            f"{sheet.path} has no columns {listed([repr(name) for name in lacking])}, which the model needs."
        )
    for name in names:
        sheet.at(name)


def _inputs(model: Model, sheet: Sheet) -> tuple[Array, list[str]]:
    """The columns that the model takes, (n, columns), NaN in rows without a prediction, and remarks."""
    plan = model.plan_
    kinds = {step.name: {"levels": "text", "date": f"date {step.note}"}.get(step.kind, "number") for step in plan.used}
    frame, _ = sheet.frame(list(kinds), kinds)
    for step in plan.used:
        gone = step.missing(frame[step.name])
        if plan.missing == "error" and gone.any():
            raise sheet.refused(step.name, int(np.argmax(gone)), "numbers without gaps")
    X = plan.apply(frame)
    remarks = plan.remarks(frame)
    empty = int((~whole(X)).sum())
    if empty:
        rows = f"{empty:,} rows with missing values have" if empty > 1 else "1 row with missing values has"
        remarks.append(f"{rows} no prediction: the model was fitted with --missing drop.")
    return X, remarks


def _outputs(model: Model, X: Array, options: Options) -> dict[str, list[Any]]:
    """The columns of predictions. Rows with missing values have empty cells."""
    complete = whole(X)
    if isinstance(model, FrameRegressor):
        names = model.target_names_.tolist()
        made: list[NDArray[Any]] = [model.predict(X[complete])] if complete.any() else [np.empty(0)]
        if options.interval is not None:
            made.extend(model.predict_interval(X[complete], options.interval) if complete.any() else 2 * made)
        parts = [np.full((len(X), len(names)), np.nan) for _ in made]
        for part, values in zip(parts, made):
            part[complete] = values.reshape(int(complete.sum()), -1)
        ends = ("", "_lower", "_upper")[: len(parts)]
        return {f"{name}{end}": _numbers(part[:, n]) for n, name in enumerate(names) for end, part in zip(ends, parts)}
    (target,) = model.target_names_
    columns = {target: _with_gaps(model.predict(X[complete]) if complete.any() else [], complete)}
    if options.probabilities:
        shares = model.predict_proba(X[complete]) if complete.any() else np.empty((0, len(model.classes_)))
        columns |= {f"{target}={label}": _with_gaps(share, complete) for label, share in zip(model.classes_, shares.T)}
    return columns


def _numbers(column: Array) -> list[Any]:
    return ["" if np.isnan(value) else float(value) for value in column]


def _with_gaps(values: Any, whole: NDArray[np.bool_]) -> list[Any]:
    found: list[Any] = [""] * len(whole)
    for row, value in zip(np.flatnonzero(whole), values):
        found[row] = value.item() if isinstance(value, np.generic) else value
    return found


def _steps(model: Model, X: Array, steps: int) -> Array:
    """The windows before the next rows, whose last rows are predictions themselves, (steps, window x columns)."""
    targets, window = model.target_names_.tolist(), int(model.window_[0])
    others = [step.name for step in model.plan_.used if step.name not in targets]
    if others:
        raise ValueError(
            f"--steps must be left out for this model, which also needs {listed([repr(name) for name in others])}, "
            f"unknown beyond the end of the file. Fit a model with --inputs {targets[0]} for the targets alone, with "
            "more targets, or with --horizon."
        )
    rows = X[-window:]
    if np.isnan(rows).any():
        raise ValueError(f"DATA must end with {window} rows without missing values for --steps.")
    marks = X.shape[1] - len(targets)  # columns that mark missing values, which predictions have not
    at = [model.column_names_.tolist().index(name) for name in targets]
    for _ in range(steps - 1):
        row = np.zeros(len(targets) + marks)
        row[at] = model.predict(rows[-window:].reshape(1, -1)).reshape(-1)
        rows = np.vstack([rows, row])
    return windows(rows, window)
