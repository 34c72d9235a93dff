"""Columns of numbers from a CSV file, whose first row may have the names of the columns.

The first row has names if

- none of its cells is a number, or
- its cells include all columns that the user named, as with years (2019, 2020, 2021), or
- its cells count the columns (0, 1, 2 or 1, 2, 3), and there are at least three.

Otherwise columns are called by their numbers from 1 on, and these are never names of the second kind. A first row of
numbers can be taken either way, so a remark says which way it was taken.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments._definition import near

_SHOWN = 20  # a message lists at most so many names of columns
_LARGEST = 1e100  # the square of a larger value may overflow
SERIES = "--set series"  # the option that names the file of a series


@dataclass(frozen=True)
class Columns:
    """Names of columns, their values (n, columns), and a remark on the first row if it can be taken in two ways."""

    path: str
    names: list[str]
    values: NDArray[np.float64]
    remark: str = ""

    def at(self, wanted: Sequence[str]) -> list[int]:
        """The indices of the columns with these names."""
        return [_place(name, self.names, self.path) for name in wanted]


def read_csv(
    path: str, option: str, named: Sequence[str] = (), *, only: Sequence[str] | None = None, hint: str = ""
) -> Columns:
    """Columns of numbers from a CSV file or a pipe.

    Parameters
    ----------
    path : str
    option : str
        The option that named the file, for messages.
    named : sequence of str
        Columns that the user named, which tell whether the first row has names.
    only : sequence of str, optional
        Read these columns, in this order. The others may hold anything.
    hint : str
        Ends the message about a cell that is not a number.

    Returns
    -------
    Columns
        With the attributes `names`, `values` of shape (n, columns) and `remark`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.experiments import read_csv
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "data.csv")
    ...     _ = file.write_text("x,y\\n1,2\\n3,4\\n")
    ...     read_csv(str(file), "DATA").names
    ['x', 'y']
    """

    names: list[str] = []
    at: Sequence[int] = ()
    remark, width = "", 0
    values = array("d")  # 8 bytes for each value, because files may be large
    for number, line in _lines(_content(path, option), path, option):
        if number == 1:
            names, remark = _header(line, named, path, option)
            if names:
                continue
        if not width:
            width = len(line)
            names = names or [str(n) for n in range(1, width + 1)]
            if len(names) != width:
                wrong = f"got {len(names)} for {width} in {path}"
                raise ValueError(f"{option} must have as many names as columns, {wrong}.")
            at = range(width) if only is None else [_place(name, names, path) for name in only]
        for n in range(len(line)) if only is None else [n for n in at if n < len(line)]:
            value = _number(line[n])
            if value is None or not math.isfinite(value):
                name = f" ({names[n]!r})" if n < width and names[n] != str(n + 1) else ""
                commas = " Put commas between columns." if len(line) == 1 and set(line[n]) & {";", "\t"} else ""
                wrong = f"got {line[n]!r} in row {number}, column {n + 1}{name} of {path}"
                raise ValueError(f"{option} must hold numbers without gaps, {wrong}.{commas}{hint}")
            if abs(value) > _LARGEST:
                wrong = f"got {value:g} in {names[n]!r} of {path}"
                raise ValueError(f"{option} must hold numbers up to {_LARGEST:g}, {wrong}.")
            values.append(value)
        if len(line) != width:
            wrong = f"got {len(line)} instead of {width} in row {number} of {path}"
            raise ValueError(f"{option} must have as many columns in every row, {wrong}.")
    if not width:
        raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
    return Columns(path, [names[n] for n in at], np.array(values).reshape(-1, len(at)), remark)


def fixed(path: str, option: str = SERIES) -> tuple[str, str]:
    """The full name of a file that every process of a run reads again, and the digest of its content."""
    found = Path(path)
    if found.exists() and not (found.is_file() or found.is_dir()):
        wrong = f"got {path!r}, which is a pipe or a device. Write what comes out of it to a file first"
        raise ValueError(f"{option} must be a file that can be read again, {wrong}.")
    full = str(found.resolve())
    return full, hashlib.sha256(_content(full, option)).hexdigest()


@lru_cache(maxsize=2)
def read_fixed(path: str, digest: str, option: str = SERIES, named: tuple[str, ...] = ()) -> Columns:
    """All columns of a file with this digest."""
    if fixed(path, option)[1] != digest:
        raise ValueError(f"{option} must not change while it is used, but {path} has.")
    return read_csv(path, option, named)


def _header(line: Sequence[str], named: Sequence[str], path: str, option: str) -> tuple[list[str], str]:
    """The names in the first row, none if it has numbers, and a remark on how a row of numbers was taken."""
    cells = [cell.strip() for cell in line]
    numbers = [_number(cell) is not None for cell in cells]
    counts = [str(n) for n in range(len(cells) + 1)]
    remark = ""
    if any(numbers):
        called = {*named} <= {*cells} and not {*named} <= {*counts[1:]}
        counted = len(cells) > 2 and cells in (counts[:-1], counts[1:])
        if not (called or counted):
            remark = f"the first row ({_shown(cells)}) is taken as numbers"
            return [], f"Columns are called by their numbers from 1 on: {remark}." if all(numbers) else ""
        remark = f"The first row ({_shown(cells)}) is taken as names of columns."
    if not all(cells) and any(cells):
        wrong = f"got none for column {cells.index('') + 1} of {path}"
        raise ValueError(f"{option} must have a name for every column, {wrong}.")
    return (cells, remark) if all(cells) else ([], "")


def _lines(content: bytes, path: str, option: str) -> Iterator[tuple[int, list[str]]]:
    """The lines, counted from 1. Empty lines at the end are left out; another empty line has one empty cell."""
    empty: list[int] = []
    try:
        for number, line in enumerate(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=None)), start=1):
            if not line:
                empty.append(number)
                continue
            yield from ((n, [""]) for n in empty[:1])
            yield number, line
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, option, error) from None


def _place(name: str, names: list[str], path: str) -> int:
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise ValueError(f"{path} has {names.count(name)} columns called {name!r}. Give them different names.")
    raise ValueError(f"{path} has no column {name!r}.{near(name, names)} It has {_shown(names)}.")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _content(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, option, error.strerror) from None


def _unreadable(path: str, option: str, reason: object) -> ValueError:
    wanted = "'lorenz' or a readable CSV file" if option == SERIES else "a readable CSV file"
    return ValueError(f"{option} must be {wanted}, got {path!r}: {reason}.")


def _number(cell: str) -> float | None:
    """The number in a cell, if it holds one. Python would also read 1_0 as a number."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
