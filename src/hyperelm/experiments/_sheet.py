"""The columns of a file, by name: numbers, dates and texts, with messages that name the cell.

The first row has names if

- none of its cells is a number, or
- its cells include all columns that the user named, as with years (2019, 2020, 2021), or
- its cells count the columns (0, 1, 2 or 1, 2, 3), and there are at least three, or one after an empty first cell.

Otherwise columns are called by their numbers from 1 on, and these are never names of the second kind. A first row of
numbers can be taken either way, so a remark says which way it was taken. A first column without a name that counts the
rows is left out. Another column without a name is called by its number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments import _cells as cells
from hyperelm.experiments._content import (
    cells_frame,
    content_of,
    find_separator,
    is_parquet,
    letters_of,
    parquet_frame,
    unreadable,
)
from hyperelm.experiments._definition import near

_SHOWN = 20  # a message lists at most so many names of columns
_LARGEST = 1e100  # the square of a larger value may overflow
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, eq=False)
class Sheet:
    """The columns of a CSV or Parquet file.

    Attributes
    ----------
    path, option : str
        The file, and the option that named it, for messages.
    names : list of str
        The names of the columns.
    columns : list of arrays of shape (n,)
        The cells of every column: texts, or what a Parquet file holds.
    first_row : int
        The number of the first row of cells in the file, from 1 on.
    sep, decimal : str
        The separator and the decimal sign.
    remarks : list of str
        What was done that is not plain.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.experiments import read_sheet
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "data.csv")
    ...     _ = file.write_text("place;wind\\nhere;1,5\\nthere;\\n")
    ...     sheet = read_sheet(str(file), "DATA")
    >>> sheet.kind("place"), sheet.kind("wind"), sheet.numbers("wind")
    ('text', 'number', array([1.5, nan]))
    """

    path: str
    option: str
    names: list[str]
    columns: list[NDArray[Any]]
    first_row: int = 2
    sep: str = ","
    decimal: str = "."
    remarks: list[str] = field(default_factory=list)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Where each name stands."""
        found: dict[str, list[int]] = {}
        for n, name in enumerate(self.names):
            found.setdefault(name, []).append(n)
        return found

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def at(self, name: str) -> int:
        """The place of the column with this `name`."""
        places = self._places.get(name, [])
        if len(places) == 1:
            return places[0]
        if places:
            raise ValueError(f"{self.path} has {len(places)} columns called {name!r}. Give them different names.")
        raise ValueError(f"{self.path} has no column {name!r}.{near(name, self.names)} It has {shown(self.names)}.")

    def kind(self, name: str) -> str:
        """What the column `name` holds: "empty", "number", "truth", "date FORM" or "text"."""
        column = self.columns[self.at(name)]
        if column.dtype == object:
            return cells.kind_of(column, self.decimal)
        return {"b": "truth", "M": "date "}.get(column.dtype.kind, "number")

    def numbers(self, name: str, hint: str = "") -> NDArray[np.float64]:
        """The numbers of the column `name`, NaN where a cell is missing. The message about another ends with `hint`."""
        column = self.columns[self.at(name)]
        if column.dtype == object:
            values, wrong = cells.numbers(column, self.decimal)
        elif column.dtype.kind in "biuf":
            values = column.astype(np.float64)
            wrong = np.isinf(values)
        else:
            values, wrong = np.full(len(column), np.nan), ~np.isnat(column)
        if wrong.any():
            raise self.refused(name, int(np.argmax(wrong)), "numbers", hint)
        if np.abs(values[~np.isnan(values)]).max(initial=0) > _LARGEST:
            large = values[int(np.nanargmax(np.abs(values)))]
            wrong_value = f"got {large:g} in {name!r} of {self.path}"
            raise ValueError(f"{self.option} must hold numbers up to {_LARGEST:g}, {wrong_value}.")
        return values

    def dates(self, name: str, form: str, hint: str = "") -> NDArray[np.datetime64]:
        """The dates of the column `name`, all of one `form`. The message about another cell ends with `hint`."""
        column = self.columns[self.at(name)]
        if column.dtype.kind == "M":
            return column.astype("datetime64[s]")
        texts = self.texts(name)
        present = [text for text in texts if text is not None]
        column = np.array(["" if text is None else text for text in texts], dtype=object)
        found = cells.dates(column, form or cells.FORMS[0])
        if present and np.isnat(found).sum() > len(texts) - len(present):
            form = cells.form_of(present) or form  # which another file may write otherwise
            found = cells.dates(column, form or cells.FORMS[0])
        wrong = np.isnat(found) & np.array([text is not None for text in texts], dtype=bool)
        if wrong.any():
            raise self.refused(name, int(np.argmax(wrong)), "dates of one form", hint)
        return found

    def texts(self, name: str) -> NDArray[Any]:
        """The texts of the column `name`, None where a cell is missing."""
        column = self.columns[self.at(name)]
        if column.dtype == object:
            found = [None if cells.is_missing(cell) else cell.strip() for cell in column]
        else:
            found = [None if value != value else _text(value) for value in column.tolist()]  # NaN and NaT are not equal
        return np.array(found, dtype=object)

    def read(self, name: str, kind: str, hint: str = "") -> NDArray[Any]:
        """The column `name` as what `kind` says that it holds. The message about another cell ends with `hint`."""
        if kind in ("number", "truth"):
            return self.numbers(name, hint)
        if kind.startswith("date"):
            return self.dates(name, kind.removeprefix("date").strip(), hint)
        return self.texts(name)

    def frame(
        self, names: Sequence[str], kinds: Mapping[str, str] | None = None, hint: str = ""
    ) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
        """The columns `names`, and the forms of those that are dates.

        `kinds` says what they hold, if that is known. The message about a cell that is something else ends with `hint`.
        """
        found = {name: (kinds or {}).get(name) or self.kind(name) for name in names}
        forms = {name: kind.removeprefix("date ") for name, kind in found.items() if kind.startswith("date")}
        return {name: self.read(name, kind, hint) for name, kind in found.items()}, forms

    def refused(self, name: str, row: int, wanted: str, hint: str = "") -> ValueError:
        """The error about the cell in the column `name` and a `row` from 0 on, which is not what is `wanted`.

        It ends with a `hint`.
        """
        n = self.at(name)
        called = f" ({name!r})" if name != str(n + 1) else ""
        cell = self.columns[n][row]
        shown_cell = repr(cell if len(cell) < 80 else cell[:77] + "...") if isinstance(cell, str) else str(cell)
        wrong = f"got {shown_cell} in row {self.first_row + row}, column {n + 1}{called} of {self.path}"
        return ValueError(f"{self.option} must hold {wanted}, {wrong}.{hint}")


def read_sheet(
    path: str, option: str, named: Sequence[str] = (), *, sep: str | None = None, decimal: str | None = None
) -> Sheet:
    """The columns of a CSV file, a Parquet file or a pipe.

    The separator (comma, semicolon or tab), decimal commas, UTF-8 or UTF-16 and gzip are recognised.

    Parameters
    ----------
    path : str
    option : str
        The option that named the file, for messages.
    named : sequence of str
        Columns that the user named, which tell whether the first row has names.
    sep, decimal : str, optional
        The separator and the decimal sign, if the user says them.

    Returns
    -------
    Sheet

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.experiments import read_sheet
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "data.csv")
    ...     _ = file.write_text("x,y\\n1,2\\n3,4\\n")
    ...     read_sheet(str(file), "DATA").names
    ['x', 'y']
    """
    if sep is not None:
        sep = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
        if len(sep) != 1 or sep in '"\n\r':
            raise ValueError(f"--sep must be one character, such as ',' or ';', or 'tab', got {sep!r}.")
    if decimal is not None and decimal not in (".", ","):
        raise ValueError(f"--decimal must be '.' or ',', got {decimal!r}.")
    content = content_of(path, option)
    if is_parquet(content):
        return _of_parquet(content, path, option)
    text = letters_of(content, path, option)
    del content
    used = sep or find_separator(text)
    frame = cells_frame(text, used, path, option)
    del text
    if frame.empty:
        raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
    columns = [frame[n].to_numpy(dtype=object) for n in frame]
    sign = decimal or cells.find_decimal((cell for row in zip(*columns) for cell in row), used)
    first = [column[0].strip() for column in columns]
    names, remark = _header(first, named, sign)
    remarks = [remark] if remark else []
    if used != "," and sep is None:
        remarks.append(f"Columns are separated by {_SIGNS[used]}.")
    if sign == "," and decimal is None:
        remarks.append("Numbers have decimal commas (--decimal . for points).")
    if names:
        columns = [column[1:] for column in columns]
        if not len(columns[0]):
            raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
        if not names[0] and len(names) > 1 and (_counts(columns[0]) or _is_index(columns[0])):
            what = "counts the rows" if _counts(columns[0]) else "has no name and another whole number in every row"
            remarks.append(f"The first column, which {what}, is left out.")
            names, columns = names[1:], columns[1:]
    found = [name or str(n) for n, name in enumerate(names, start=1)] or [str(n + 1) for n in range(len(columns))]
    return Sheet(path, option, found, columns, 2 if names else 1, used, sign, remarks)


def column_names(text: str, option: str) -> list[str]:
    """The names of columns in the text of an option, with commas between them.

    A name with a comma stands in quotes.

    Parameters
    ----------
    text, option : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> from hyperelm.experiments import column_names
    >>> column_names('speed,"place, time"', "--inputs")
    ['speed', 'place, time']
    """
    names = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row]
    if not names or not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{option} must be different names of columns with commas between them, got {text!r}.")
    return names


def joined_names(names: Sequence[str]) -> str:
    """The text of an option that `column_names` reads."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def shown(names: Sequence[str]) -> str:
    """Names with commas between them, at most twenty."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _of_parquet(content: bytes, path: str, option: str) -> Sheet:
    frame = parquet_frame(content, path, option)
    if not frame.size:
        raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
    try:
        columns = [_typed(frame.iloc[:, n]) for n in range(frame.shape[1])]
    except (TypeError, ValueError, OverflowError) as error:
        raise unreadable(path, option, error) from None
    return Sheet(path, option, [str(name) for name in frame.columns], columns, 1)


def _typed(series: Any) -> NDArray[Any]:
    """The numbers, truth values or dates of a column, or the texts of anything else."""
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(series.dtype) and not series.isna().any():
        return np.asarray(series.to_numpy(dtype=bool))
    if types.is_numeric_dtype(series.dtype) and not types.is_complex_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if types.is_datetime64_any_dtype(series.dtype):
        plain = series.dt.tz_convert(None) if series.dt.tz is not None else series
        return np.asarray(plain.to_numpy()).astype("datetime64[s]")
    missing = series.isna().to_numpy()
    return np.array(["" if gone else str(value) for value, gone in zip(series, missing)], dtype=object)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _counts(column: NDArray[Any]) -> bool:
    """Whether a column counts its rows from 0 or from 1 on."""
    return any(
        str(first) == column[0].strip() and all(cell.strip() == str(n) for n, cell in enumerate(column, start=first))
        for first in (0, 1)
    )


def _is_index(column: NDArray[Any]) -> bool:
    """Whether a column has another whole number in every row, as the index of shuffled or filtered rows has."""
    cells = [cell.strip() for cell in column]
    return len(cells) > 1 and len(set(cells)) == len(cells) and all(cell.isdecimal() for cell in cells)


def _header(first: list[str], named: Sequence[str], decimal: str) -> tuple[list[str], str]:
    """The names in the first row, none if it has numbers, and a remark on how a row of numbers was taken."""
    numbers = [cells.number(cell, decimal) is not None for cell in first]
    if not any(first):
        return [], ""
    if not any(numbers):
        return first, ""
    called = bool(named) and {*named} <= {*first} and not {*named} <= {str(n + 1) for n in range(len(first))}
    counts = [str(n) for n in range(len(first) + 1)]
    counted = len(first) > 2 and (first in (counts[:-1], counts[1:]) or (not first[0] and first[1:] == counts[:-2]))
    if called or counted:
        return first, f"The first row ({shown(first)}) is taken as names of columns."
    remark = f"Columns are called by their numbers from 1 on: the first row ({shown(first)}) is taken as numbers."
    return [], remark if all(numbers) else ""
