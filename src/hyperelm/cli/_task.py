"""What `hyperelm fit` learns from a file: inputs and targets, and what was done to the columns.

Without a window, the columns of a row predict the targets of the same row. In a series, `window` consecutive rows of
the targets and of the other columns predict the targets `horizon` rows after the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm import ColumnPlan
from hyperelm.experiments import Sheet, column_names, read_sheet

Array = NDArray[np.float64]

LEAST_ROWS = 10
FEW_LABELS = 10  # so many different whole numbers are labels
_HELD_OUT = 5  # one in so many rows is held out
MISSING = ("error", "drop", "mean")


@dataclass(frozen=True)
class Options:
    """What the user asks for, beside the file."""

    target: str
    inputs: str | None = None
    exclude: str | None = None
    series: int = 0
    horizon: int = 1
    missing: str | None = None
    labels: bool | None = None  # None where the column decides
    sep: str | None = None
    decimal: str | None = None

    def names(self) -> tuple[list[str], list[str] | None, list[str]]:
        """The names of the targets, of the inputs if given, and of the columns left out, which fit together."""
        targets = column_names(self.target, "--target")
        inputs = None if self.inputs is None else column_names(self.inputs, "--inputs")
        left_out = [] if self.exclude is None else column_names(self.exclude, "--exclude")
        if self.series < 0:
            raise ValueError(f"--series must be the number of rows in a window, at least 1, got {self.series}.")
        if self.horizon < 1 or (self.horizon > 1 and not self.series):
            wanted = "at least 1" if self.series else "left out without --series"
            raise ValueError(f"--horizon must be {wanted}, got {self.horizon}.")
        if self.missing not in (None, *MISSING):
            raise ValueError(f"--missing must be one of {', '.join(MISSING)}, got {self.missing!r}.")
        if inputs is not None and not self.series and set(inputs) & set(targets):
            raise ValueError(f"--inputs must not be targets, got {self.inputs!r}. For a series give --series.")
        for option, names in (("--target", targets), ("--inputs", inputs or [])):
            both = [name for name in names if name in left_out]
            if both:
                raise ValueError(f"--exclude must not name columns of {option}, got {both[0]!r}.")
        if self.labels and self.series:
            raise ValueError("--classify must be left out with --series, which predicts numbers.")
        if self.labels and len(targets) > 1:
            raise ValueError(f"--classify must have one target, got {len(targets)}.")
        return targets, inputs, left_out


@dataclass(frozen=True)
class Task:
    """Inputs (n, columns) and targets (n, targets) of a file, or labels (n,).

    In a series, `last` are the targets in the last row of each window. `remarks` say what was done to the file and its
    columns, a sentence each.
    """

    X: Array
    y: NDArray[Any]
    targets: list[str]
    plan: ColumnPlan
    window: int = 0
    horizon: int = 1
    last: Array | None = None
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: str, options: Options) -> Task:
        """The task that a file and the options of the user make."""
        targets, inputs, left_out = options.names()
        named = [*targets, *(inputs or []), *left_out]
        sheet = read_sheet(path, "DATA", named, sep=options.sep, decimal=options.decimal)
        for name in named:
            sheet.at(name)
        others = [name for name in (inputs or sheet.names) if name not in {*targets, *left_out}]
        for name in others:
            sheet.at(name)  # which refuses two columns with one name
        if not others and not options.series:
            raise ValueError(
                f"--target must leave columns to predict from. For a series give --series. {path} has none."
            )
        remarks = list(sheet.remarks)
        reader = _Reader(sheet, targets, others, inputs is not None, options, remarks)
        return reader.series() if options.series else reader.rows()

    @property
    def labels(self) -> bool:
        """Whether the targets are labels."""
        return self.y.ndim == 1

    @property
    def columns(self) -> list[str]:
        return self.plan.features

    def held_out(self) -> NDArray[np.bool_]:
        """Which rows are held out: one in five, or the last fifth of a series."""
        n = np.arange(len(self.y))
        if self.window:
            return n >= len(n) - len(n) // _HELD_OUT
        return np.random.default_rng(0).permutation(n) % _HELD_OUT == _HELD_OUT - 1


@dataclass(frozen=True)
class _Reader:
    """The columns of a sheet on their way to a task. What is done to them is added to `remarks`."""

    sheet: Sheet
    targets: list[str]
    others: list[str]
    chosen: bool  # whether the user named the inputs
    options: Options
    remarks: list[str]

    @property
    def hint(self) -> str:
        return " Leave a missing value empty." if self.chosen else " To leave a column out, name it with --exclude."

    def rows(self) -> Task:
        """Each row by itself."""
        y, known = self._labels() if self._has_labels() else self._values()
        self._check_gaps(self.targets[0], ~known)
        frame, forms = self.sheet.frame(self.others, hint=self.hint)
        missing = self.options.missing or "mean"
        of_known = {name: column[known] for name, column in frame.items()}
        needed = self.others if self.chosen else ()
        plan = ColumnPlan.of(of_known, missing=missing, notes=forms, needed=needed)
        self._check_plan(plan, frame)
        X, y = plan.apply(of_known), y[known]
        complete = whole(X)
        self.remarks.extend(plan.lines())
        self._say_dropped(int((~known).sum()), "whose target is missing")
        self._say_dropped(int((~complete).sum()), "with missing values")
        X, y = X[complete], y[complete]
        self._check_size(len(y), LEAST_ROWS)
        if y.ndim == 2:
            self._check_spread(y)
        return Task(X, y, self.targets, plan, remarks=self.remarks)

    def series(self) -> Task:
        """Windows of rows. The targets come first, so those of a window are neighbours and make one number."""
        window, horizon = self.options.series, self.options.horizon
        kinds = {name: self.sheet.kind(name) for name in self.others}
        dates = [name for name, kind in kinds.items() if kind.startswith("date") and not self.chosen]
        used = [name for name in self.others if name not in dates]
        frame, forms = self.sheet.frame([*self.targets, *used], dict.fromkeys(self.targets, "number"), self.hint)
        missing = self.options.missing or "last"
        needed = [*self.targets, *(used if self.chosen else [])]
        plan = ColumnPlan.of(frame, missing=missing, notes=forms, needed=needed)
        self._check_plan(plan, frame)
        plan = plan.without(dict.fromkeys(dates, "a date, and rows of a series follow each other anyway"))
        self.remarks.extend(plan.lines())
        y = np.column_stack([frame[name] for name in self.targets])
        self._check_size(len(y) - window - horizon + 1, LEAST_ROWS, window + horizon - 1)
        X = windows(plan.apply(frame), window)[:-horizon]
        filled = plan.apply(frame)[:, [plan.features.index(name) for name in self.targets]]
        last, y = filled[window - 1 : -horizon], y[window + horizon - 1 :]
        known = whole(y)
        complete = known & whole(X)
        self._say_dropped(int((~known).sum()), "whose target is missing")
        self._say_dropped(int((known & ~complete).sum()), "with missing values in their windows")
        X, y, last = X[complete], y[complete], last[complete]
        self._check_size(len(y), LEAST_ROWS)
        self._check_spread(y)
        return Task(X, y, self.targets, plan, window, horizon, last, self.remarks)

    # ------------------------------------------------------------------ targets

    def _has_labels(self) -> bool:
        if self.options.labels is not None:
            return self.options.labels
        kinds = [self.sheet.kind(name) for name in self.targets]
        texts = [name for name, kind in zip(self.targets, kinds) if kind == "text" or kind.startswith("date")]
        if len(kinds) > 1:
            if texts:
                raise self.sheet.refused(
                    texts[0], 0, "numbers in several targets", " Labels can be predicted one by one."
                )
            return False
        if kinds[0] in ("truth", "text"):
            return True
        if kinds[0].startswith("date"):
            raise self.sheet.refused(
                self.targets[0], 0, "numbers or labels as a target", " --classify takes dates as labels."
            )
        if kinds[0] == "empty":
            raise ValueError(
                f"--target must name a column with values, but {self.targets[0]!r} has none in {self.sheet.path}."
            )
        return self._few_whole_numbers()

    def _few_whole_numbers(self) -> bool:
        values = self.sheet.numbers(self.targets[0])
        found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        whole_numbers = bool((found == np.floor(found)).all()) and 1 < len(found) <= FEW_LABELS
        return whole_numbers and int(counts.min()) > 1 and len(values) >= LEAST_ROWS * len(found)

    def _labels(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The labels of the target, and which rows have one."""
        name = self.targets[0]
        kind = self.sheet.kind(name)
        if kind == "number":
            values = self.sheet.numbers(name)
            known = ~np.isnan(values)
            y: NDArray[Any] = np.where(known, values, 0)
            if not (y == np.floor(y)).all():
                wrong = int(np.argmax(y != np.floor(y)))
                raise self.sheet.refused(
                    name, wrong, "whole numbers or texts as labels", " --regress predicts numbers."
                )
            y = y.astype(np.int64)
        else:
            texts = self.sheet.texts(name)
            known = np.array([text is not None for text in texts], dtype=bool)
            y = np.array(["" if text is None else text for text in texts])
        classes = np.unique(y[known])
        if len(classes) < 2:
            raise ValueError(f"--target must name columns that vary, but {name!r} has one value in {self.sheet.path}.")
        if 2 * len(classes) > known.sum():
            found = f"{name!r} has {len(classes):,} different values in {int(known.sum()):,} rows of {self.sheet.path}"
            raise ValueError(f"--target must name a column of numbers, or of labels that occur again, but {found}.")
        few = ", ".join(map(str, classes[:6])) + (", ..." if len(classes) > 6 else "")
        instead = " (--regress predicts a number)" if kind == "number" and self.options.labels is None else ""
        self.remarks.append(f"{name!r} is taken as {len(classes)} labels: {few}{instead}.")
        return y, known

    def _values(self) -> tuple[Array, NDArray[np.bool_]]:
        """The targets as numbers, (n, targets), and which rows have all of them."""
        way = " Leave a missing value empty, or predict labels with --classify."
        y = np.column_stack([self.sheet.numbers(name, way) for name in self.targets])
        return y, whole(y)

    # ------------------------------------------------------------------ checks

    def _check_plan(self, plan: ColumnPlan, frame: dict[str, NDArray[Any]]) -> None:
        for step in plan.used:
            self._check_gaps(step.name, step.missing(frame[step.name]))
        if not plan.features:
            reasons = " ".join(plan.lines())
            raise ValueError(f"DATA must have columns to predict from, but {self.sheet.path} has none. {reasons}")

    def _check_gaps(self, name: str, gone: NDArray[np.bool_]) -> None:
        if self.options.missing == "error" and gone.any():
            way = " --missing mean fills such cells, --missing drop leaves out their rows."
            raise self.sheet.refused(name, int(np.argmax(gone)), "numbers without gaps", way)

    def _check_size(self, rows: int, least: int, more: int = 0) -> None:
        if rows < least:
            found = f"got {rows + more:,} in {self.sheet.path}"
            raise ValueError(f"DATA must have at least {least + more} rows, {found}.")

    def _check_spread(self, y: Array) -> None:
        if not np.ptp(y, axis=0).all():
            still = self.targets[int(np.argmin(np.ptp(y, axis=0)))]
            raise ValueError(f"--target must name columns that vary, but {still!r} has one value in {self.sheet.path}.")

    def _say_dropped(self, count: int, which: str) -> None:
        if count:
            plural = count > 1
            which = which if plural else which.replace("their windows", "its window")
            self.remarks.append(f"{count:,} row{'s' if plural else ''} {which} {'are' if plural else 'is'} left out.")


def whole(rows: Array) -> NDArray[np.bool_]:
    """Which rows have no missing values."""
    return np.asarray(~np.isnan(rows).any(axis=1))


def windows(positions: Array, window: int) -> Array:
    """All windows of `window` consecutive rows, each as one row, also the one that ends with the last row."""
    views = np.lib.stride_tricks.sliding_window_view(positions, window, axis=0)
    return views.swapaxes(1, 2).reshape(len(views), -1)


def counts(text: str, option: str) -> list[int]:
    """Whole numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < len(part) < 10 and int(part) > 0 for part in parts):
        raise ValueError(f"{option} must be whole numbers above 0 with commas between them, got {text!r}.")
    return [int(part) for part in parts]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
