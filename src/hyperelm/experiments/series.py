"""Numbers from a CSV file: of a series, one row a position, one column a coordinate; the first row may have names.

The first row has names if

- none of its cells is a number, or
- the columns that somebody named are among its cells, as in a table of years (2019, 2020, 2021), or
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
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_SHOWN = 20  # names of columns in a message
_LARGEST = 1e100  # whose square is still a number
SERIES = "--set series"  # the option that names the file of a series


class CellError(ValueError):
    """A cell that is not a number."""


def located(path: str, option: str = SERIES) -> str:
    """The full name of a file, which every process of a run reads again."""
    found = Path(path)
    if found.exists() and not (found.is_file() or found.is_dir()):
        raise ValueError(
            f"{option} must be a file that can be read again, got {path!r}, which is a pipe or a device. Write what "
            "comes out of it to a file first."
        )
    return str(found.resolve())


def digest(path: str, option: str = SERIES) -> str:
    """What tells the content of a file from any other."""
    return hashlib.sha256(content(path, option)).hexdigest()


def read(path: str, expected: str) -> NDArray[np.float64]:
    """The positions (n, columns) in a file with this digest."""
    return read_columns(path, expected, SERIES).values


class Columns(NamedTuple):
    """The names of columns, their values (n, columns), and what to say of the first row, if anything."""

    names: list[str]
    values: NDArray[np.float64]
    remark: str


@lru_cache(maxsize=2)
def read_columns(path: str, expected: str, option: str, named: tuple[str, ...] = ()) -> Columns:
    """All `columns` of a file with this digest."""
    found = content(path, option)
    if hashlib.sha256(found).hexdigest() != expected:
        raise ValueError(f"{option} must not change while it is used, but {path} has.")
    return columns(found, path, option, named)


def columns(
    content: bytes, path: str, option: str, named: Sequence[str] = (), *, only: Sequence[str] | None = None
) -> Columns:
    """The columns of a file that `option` named, some of which somebody has `named`.

    With `only`, these columns in this order; the others may hold anything.
    """
    names: list[str] = []
    remark = ""
    at: Sequence[int] = ()
    values, width = array("d"), 0  # a few bytes a number, as files may be large
    for number, line in _lines(content, path, option):
        if number == 1:
            names, remark = _header(line, named, path, option)
            if names:
                continue
        if not width:
            width = len(line)
            names = names or [str(n) for n in range(1, width + 1)]
            if len(names) != width:
                raise ValueError(
                    f"{option} must have as many names as columns, got {len(names)} for {width} in {path}."
                )
            at = range(width) if only is None else [place(name, names, path) for name in only]
        if len(line) != width:
            if only is None:  # a cell that is no number says more, such as one with other separators
                _row(line, range(len(line)), number, names, path, option)
            raise ValueError(
                f"{option} must have as many columns in every row, got {len(line)} instead of {width} in row "
                f"{number} of {path}."
            )
        values.extend(_row(line, at, number, names, path, option))
    if not width:
        raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
    names, table = [names[n] for n in at], np.array(values).reshape(-1, len(at))
    for row, column in np.argwhere(np.abs(table) > _LARGEST)[:1]:
        raise ValueError(
            f"{option} must hold numbers up to {_LARGEST:g}, got {table[row, column]:g} in {names[column]!r} of {path}."
        )
    return Columns(names, table, remark)


def _header(line: Sequence[str], named: Sequence[str], path: str, option: str) -> tuple[list[str], str]:
    """The names in the first row, none if it has numbers, and what to say of numbers."""
    cells = [cell.strip() for cell in line]
    numbers = [_number(cell) is not None for cell in cells]
    numbered = [str(n) for n in range(len(cells) + 1)]
    if any(numbers):
        called = {*named} <= {*cells} and not {*named} <= {*numbered[1:]}
        counted = len(cells) > 2 and cells in (numbered[:-1], numbered[1:])
        shown = _shown(cells)
        if not (called or counted):
            remark = f"Columns are called by their numbers from 1 on: the first row ({shown}) is taken as numbers."
            return [], remark if all(numbers) else ""
        remark = f"The first row ({shown}) is taken as names of columns."
    else:
        remark = ""
    if not all(cells) and any(cells):
        raise ValueError(
            f"{option} must have a name for every column, got none for column {cells.index('') + 1} of {path}."
        )
    return (cells, remark) if all(cells) else ([], "")


def _lines(content: bytes, path: str, option: str) -> Iterator[tuple[int, list[str]]]:
    """The lines with their numbers; only the last ones may be empty."""
    gap = 0
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=None))
        for number, line in enumerate(lines, start=1):
            if line and gap:
                _row([""], [0], gap, [], path, option)  # which is no number
            if line:
                yield number, line
            else:
                gap = gap or number
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option} must be {_wanted(option)}, got {path!r}: {error}.") from None


def place(name: str, names: list[str], path: str) -> int:
    """Which column of a file is called `name`."""
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise ValueError(f"{path} has {names.count(name)} columns called {name!r}. Give them different names.")
    near = get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{path} has no column {name!r}. {hint}It has {_shown(names)}.")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _wanted(option: str) -> str:
    return "'lorenz' or a readable CSV file" if option == SERIES else "a readable CSV file"


def content(path: str, option: str) -> bytes:
    """What is in a file or comes out of a pipe."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{option} must be {_wanted(option)}, got {path!r}: {error.strerror}.") from None


def _row(line: list[str], at: Sequence[int], number: int, names: Sequence[str], path: str, option: str) -> list[float]:
    values = []
    for n in at:
        cell = line[n]
        value = _number(cell)
        if value is None or not math.isfinite(value):
            name = f" ({names[n]!r})" if n < len(names) and names[n] != str(n + 1) else ""
            where = f"in row {number}, column {n + 1}{name} of {path}"
            raise CellError(
                f"{option} must hold numbers without gaps, got {cell!r} {where}."
                + (" Put commas between columns." if len(line) == 1 and set(cell) & {";", "\t"} else "")
            )
        values.append(value)
    return values


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
