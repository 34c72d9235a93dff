"""How the columns of a file become numbers: a plan that is found from training rows and used again.

A column of numbers stays one column, x. A column of texts with levels l₁, …, l_k becomes k columns [x = l₁], …, [x =
l_k]. A date becomes those of its parts year, month, day and hour that vary. A missing number m becomes the mean of the
training rows, and a column [x = m] is added where training rows have missing values. All else is left out. A plan is a
value. As JSON it goes into a model file, and reading it runs no code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_LEVELS = 20
KINDS = ("number", "levels", "date", "left out")
PARTS = ("year", "month", "day", "hour")
POLICIES = ("mean", "last", "drop", "error")
_SHOWN = 6  # levels that a line lists

Values = NDArray[Any]


@dataclass(frozen=True)
class ColumnStep:
    """What is done to one column.

    Attributes
    ----------
    name : str
    kind : {"number", "levels", "date", "left out"}
    levels : tuple of str
        Of texts, one new column each.
    parts : tuple of str
        Of dates, one new column each.
    means : tuple of float
        Of the number, or of the parts of a date: what a missing value becomes.
    gaps : int
        Training rows where the value is missing. If there are any, a column marks such rows.
    note : str
        The form of dates, or why the column is left out.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    gaps: int = 0
    note: str = ""

    def features(self, mark: bool) -> list[str]:
        """The names of the columns that it becomes; `mark` says whether missing values are marked."""
        names = {
            "number": [self.name],
            "levels": [f"{self.name}={level}" for level in self.levels],
            "date": [f"{self.name}.{part}" for part in self.parts],
            "left out": [],
        }[self.kind]
        return [*names, *([f"{self.name} is missing"] if names and mark and self.gaps else [])]

    def missing(self, values: Values) -> NDArray[np.bool_]:
        """Which of the values are missing, (n,)."""
        if self.kind == "date":
            return np.isnat(values)
        if self.kind == "levels":
            return np.array([value is None for value in values], dtype=bool)
        return np.isnan(values)

    def apply(self, values: Values, policy: str) -> NDArray[np.float64]:
        """The new columns, (n, features). Missing numbers stay NaN where the policy is to drop or to refuse them."""
        gone = self.missing(values)
        if self.kind == "levels":
            found = np.array([[value == level for level in self.levels] for value in values], dtype=np.float64)
            found = found.reshape(len(values), len(self.levels))
            found[gone] = np.nan if policy in ("drop", "error") else 0.0
        else:
            found = values.astype(np.float64)[:, None] if self.kind == "number" else _parts(values, self.parts)
            if policy == "last":
                found = found[_last_known(gone)]
            if policy in ("mean", "last"):
                found = np.where(np.isnan(found), np.array(self.means), found)
        if policy == "mean" and self.gaps:
            found = np.column_stack([found, gone])
        return found

    def unseen(self, values: Values) -> list[str]:
        """Texts that are none of the levels."""
        return sorted({value for value in values if value is not None} - set(self.levels))

    def line(self, policy: str) -> str:
        """What is done to the column, in a sentence; empty for a number that is taken as it is."""
        if self.kind == "left out":
            return f"{self.name!r} is left out: {self.note}."
        filled = {
            "mean": "are filled with the mean and marked in a column of their own",
            "last": "are filled with the last value before them",
            "drop": "drop their rows",
            "error": "are refused",
        }[policy]
        if self.kind == "levels" and policy == "mean":
            filled = "are marked in a column of their own"
        gaps = f"{_counted(self.gaps, 'missing value')} {_singular(filled) if self.gaps == 1 else filled}"
        if self.kind == "number":
            return f"{self.name!r}: {gaps}." if self.gaps else ""
        if self.kind == "date":
            what = f"is a date and becomes {listed(self.parts)}"
        else:
            what = f"is text and becomes one column for each of {len(self.levels)} levels ({_few(self.levels)})"
        return f"{self.name!r} {what}{'; ' + gaps if self.gaps else ''}."


@dataclass(frozen=True)
class ColumnPlan:
    """What is done to the columns of a file, found from training rows.

    Attributes
    ----------
    steps : tuple of ColumnStep
        One for each column of the training file.
    missing : {"mean", "last", "drop", "error"}
        What is done about missing values: the mean of the training rows and a column that marks them, the last value
        before (of a series), rows without a prediction, or an error.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import ColumnPlan
    >>> frame = {"size": np.array([1.0, np.nan, 3.0, 8.0]), "colour": np.array(["red", "blue", "red", "blue"], object)}
    >>> plan = ColumnPlan.of(frame)
    >>> plan.features
    ['size', 'size is missing', 'colour=blue', 'colour=red']
    >>> plan.apply(frame)[1].tolist()
    [4.0, 1.0, 1.0, 0.0]
    """

    steps: tuple[ColumnStep, ...]
    missing: str = "mean"

    @classmethod
    def of(
        cls,
        frame: Mapping[str, Values],
        *,
        missing: str = "mean",
        notes: Mapping[str, str] | None = None,
        needed: Sequence[str] = (),
    ) -> ColumnPlan:
        """The plan for columns.

        Parameters
        ----------
        frame : mapping from names to arrays of shape (n,), such as a DataFrame
            Numbers with NaN, dates with NaT, or texts with None, where a value is missing.
        missing : {"mean", "last", "drop", "error"}, default="mean"
        notes : mapping from names to str, optional
            The forms of dates.
        needed : sequence of str
            Columns that must not be left out.

        Returns
        -------
        ColumnPlan
        """
        notes = notes or {}
        steps = tuple(_step(str(name), np.asarray(frame[name]), notes.get(name, "")) for name in frame)
        for step in steps:
            if step.kind == "left out" and step.name in needed:
                raise ValueError(f"--inputs must be columns that can be used, but {step.name!r} cannot: {step.note}.")
        return cls(steps, missing)

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> ColumnPlan:
        """The plan that takes the columns `names` as they are."""
        return cls(tuple(ColumnStep(name, "number", means=(0.0,)) for name in names), "error")

    def without(self, reasons: Mapping[str, str]) -> ColumnPlan:
        """The plan that also leaves out the columns in `reasons`."""
        left_out = tuple(ColumnStep(name, "left out", note=reason) for name, reason in reasons.items())
        return ColumnPlan((*self.steps, *left_out), self.missing)

    @property
    def used(self) -> list[ColumnStep]:
        """The steps of columns that are not left out."""
        return [step for step in self.steps if step.kind != "left out"]

    @property
    def features(self) -> list[str]:
        """The names of the columns that come out."""
        return [name for step in self.used for name in step.features(self.missing == "mean")]

    def apply(self, frame: Mapping[str, Values]) -> NDArray[np.float64]:
        """The columns that come out of a `frame`, (n, features).

        Rows with missing values have NaN where such rows are to be dropped or refused.
        """
        return np.column_stack([step.apply(np.asarray(frame[step.name]), self.missing) for step in self.used])

    def apply_to_cells(self, frame: Any) -> NDArray[np.float64]:
        """The columns that come out of a `frame` as somebody has it, such as a DataFrame, (n, features).

        Columns are taken by name. Texts may be of any type and dates may be texts of the form that the plan knows. Gaps
        that the plan does not fill are refused.
        """
        found = {step.name: _cells(step, frame[step.name]) for step in self.used}
        for step in self.used:
            gaps = int(step.missing(found[step.name]).sum())
            if gaps and self.missing in ("drop", "error"):
                raise ValueError(
                    f"`X` must have no missing values in {step.name!r}, since the model was fitted with --missing "
                    f"{self.missing}, got {gaps:,}. Leave out such rows: X.dropna(subset=[{step.name!r}])."
                )
        return self.apply(found)

    def lines(self) -> list[str]:
        """What is done to each column that is not taken as it is, a sentence each."""
        return [line for step in self.steps if (line := step.line(self.missing))]

    def remarks(self, frame: Mapping[str, Values]) -> list[str]:
        """What a `frame` has that the training rows did not: unseen texts, and missing values."""
        found = []
        for step in self.used:
            values = np.asarray(frame[step.name])
            if step.kind == "levels" and (unseen := step.unseen(values)):
                rows = int(np.isin(values.astype(str), unseen).sum())
                found.append(
                    f"{step.name!r} has {_few([repr(level) for level in unseen])} in {_counted(rows, 'row')}, which "
                    "the training rows did not have. These rows are predicted as if they had none of the known levels."
                )
            gaps = int(step.missing(values).sum())
            if gaps and self.missing in ("mean", "last"):
                how = "the mean of the training rows" if self.missing == "mean" else "the last value before"
                if step.kind != "levels":
                    found.append(f"{step.name!r}: {_counted(gaps, 'missing value')} filled with {how}.")
                elif not step.gaps:
                    found.append(f"{step.name!r} is missing in {_counted(gaps, 'row')}.")
        return found

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        return {"missing": self.missing, "steps": [vars(step) for step in self.steps]}

    @classmethod
    def from_json(cls, tree: Any) -> ColumnPlan:
        """The plan that `to_json` wrote as `tree`, checked piece by piece."""
        if not isinstance(tree, dict) or tree.get("missing") not in POLICIES or not isinstance(tree.get("steps"), list):
            raise ValueError("its plan of the columns is none")
        return cls(tuple(map(_read_step, tree["steps"])), tree["missing"])


def _step(name: str, values: Values, note: str) -> ColumnStep:
    if values.dtype.kind == "M":
        gone, parts = np.isnat(values), _parts(values, PARTS)
        vary = [n for n in range(len(PARTS)) if np.ptp(parts[~gone, n]) > 0] if not gone.all() else []
        if not vary:
            return ColumnStep(name, "left out", note="it has one date" if not gone.all() else "it is empty")
        means = tuple(float(np.mean(parts[~gone, n])) for n in vary)
        return ColumnStep(
            name, "date", parts=tuple(PARTS[n] for n in vary), means=means, gaps=int(gone.sum()), note=note
        )
    if values.dtype.kind in "biuf":
        gone = np.isnan(values.astype(np.float64))
        if gone.all():
            return ColumnStep(name, "left out", note="it is empty")
        return ColumnStep(name, "number", means=(float(np.mean(values[~gone])),), gaps=int(gone.sum()))
    present = [str(value) for value in values if value is not None]
    levels = sorted(set(present))
    why = "it is empty" if not levels else "it has one value" if len(levels) == 1 else ""
    if len(levels) > MAX_LEVELS:
        why = f"text with {len(levels):,} different values"
    elif not why and 2 * len(levels) > len(present):
        why = f"text with {len(levels)} different values in {len(present)} rows"
    if why:
        return ColumnStep(name, "left out", note=why)
    return ColumnStep(name, "levels", levels=tuple(levels), gaps=len(values) - len(present))


def _cells(step: ColumnStep, column: Any) -> Values:
    """The column of a DataFrame as numbers with NaN, dates with NaT or texts with None, which a step takes."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "M":  # dates in a time zone become those of UTC
        found: Values = np.asarray(column, dtype="datetime64[s]")
        if step.kind == "date":
            return found
    values = [None if _is_gap(value) else value for value in np.asarray(column, dtype=object)]
    if step.kind == "levels":
        return np.array([None if value is None else _text(value) for value in values], dtype=object)
    if step.kind == "date":
        return _dates(step, values)
    numbers = np.array([np.nan if value is None else _number(value) for value in values], dtype=np.float64)
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ValueError(
            f"`X` must hold numbers in {step.name!r}, got {_shown(values[row])} in row {row} (the first is 0). Leave a "
            "missing value empty."
        )
    return numbers


def _dates(step: ColumnStep, values: Sequence[Any]) -> NDArray[np.datetime64]:
    """Texts as dates of the form that the training file had."""
    import pandas as pd

    texts = np.array([None if value is None else _text(value) for value in values], dtype=object)
    try:
        found = pd.to_datetime(texts, format=step.note or "ISO8601", errors="coerce", utc=True)
    except ValueError:  # such as quarters, which are a form of this library's own
        found = pd.to_datetime(np.full(len(texts), None), utc=True)
    dates = np.asarray(found.tz_localize(None)).astype("datetime64[s]")
    wrong = np.isnat(dates) & np.array([text is not None for text in texts], dtype=bool)
    if wrong.any():
        row = int(np.argmax(wrong))
        of = f" of the form {step.note}" if step.note else ""
        raise ValueError(
            f"`X` must hold dates{of} in {step.name!r}, got {_shown(texts[row])} in row {row} (the first is 0). "
            "Make dates of the column with pandas.to_datetime."
        )
    return dates


def _is_gap(value: Any) -> bool:
    """Whether a cell of a DataFrame is missing: None, or NaN, NaT and pandas.NA, which do not equal themselves."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to anything
        return True


def _number(value: Any) -> float:
    """The number in a cell of a DataFrame, infinite where it holds none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.inf


def _shown(value: Any) -> str:
    """A cell in a message."""
    return repr(value) if isinstance(value, str) else str(value)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _parts(dates: NDArray[np.datetime64], parts: Sequence[str]) -> NDArray[np.float64]:
    """Year, month, day and hour (with its minutes as a fraction) of dates, (n, parts); NaN where there is none."""
    seconds = dates.astype("datetime64[s]")
    years, months, days = (seconds.astype(f"datetime64[{unit}]") for unit in "YMD")
    numbers = {
        "year": years.astype(np.int64) + 1970.0,
        "month": (months - years).astype(np.int64) + 1.0,
        "day": (days - months).astype(np.int64) + 1.0,
        "hour": (seconds - days).astype(np.int64) / 3600.0,
    }
    found = np.column_stack([numbers[part] for part in parts])
    found[np.isnat(dates)] = np.nan
    return found


def _last_known(gone: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each row the last one up to it that is not missing, or itself."""
    rows = np.arange(len(gone))
    known = np.maximum.accumulate(np.where(gone, -1, rows))
    return np.where(known < 0, rows, known)


def _read_step(tree: Any) -> ColumnStep:
    wanted: dict[str, Any] = {"name": str, "kind": str, "levels": list, "parts": list, "means": list, "gaps": int}
    wanted["note"] = str
    if not isinstance(tree, dict) or tree.keys() != wanted.keys():
        raise ValueError("its plan of the columns has a step that is none")
    sound = all(type(tree[key]) is kind for key, kind in wanted.items())
    sound = sound and all(type(text) is str for text in (*tree["levels"], *tree["parts"]))
    sound = sound and all(type(value) is float and math.isfinite(value) for value in tree["means"])
    if not sound or tree["kind"] not in KINDS or tree["gaps"] < 0 or len(set(tree["levels"])) < len(tree["levels"]):
        raise ValueError("its plan of the columns has a step that is none")
    levels, parts, means = (tuple(tree[key]) for key in ("levels", "parts", "means"))
    counts = {"number": (0, 0, 1), "levels": (len(levels), 0, 0), "date": (0, len(parts), len(parts))}
    fits = (len(levels), len(parts), len(means)) == counts.get(tree["kind"], (0, 0, 0))
    if not fits or (tree["kind"] in ("levels", "date") and not levels + parts) or not set(parts) <= set(PARTS):
        raise ValueError("its plan of the columns has a step that does not fit together")
    return ColumnStep(tree["name"], tree["kind"], levels, parts, means, tree["gaps"], tree["note"])


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _singular(words: str) -> str:
    first, _, rest = words.partition(" ")
    rest = rest.replace("their own", "its own").replace("their rows", "its row").replace("before them", "before it")
    return f"{'is' if first == 'are' else first + 's'} {rest}"


def listed(words: Sequence[str]) -> str:
    """Words in a sentence: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def _few(levels: Sequence[str]) -> str:
    return ", ".join(levels[:_SHOWN]) + (", ..." if len(levels) > _SHOWN else "")
