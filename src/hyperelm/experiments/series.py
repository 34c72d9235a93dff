"""Numbers from a CSV file: of a series, one row a position, one column a coordinate; the first row may have names."""

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
    return read_columns(path, expected, SERIES)[1]


@lru_cache(maxsize=2)
def read_columns(
    path: str, expected: str, option: str, only: tuple[str, ...] | None = None
) -> tuple[list[str], NDArray[np.float64]]:
    """The `columns` of a file with this digest."""
    found = content(path, option)
    if hashlib.sha256(found).hexdigest() != expected:
        raise ValueError(f"{option} must not change while it is used, but {path} has.")
    return columns(found, path, option, only)


def columns(
    content: bytes, path: str, option: str, only: tuple[str, ...] | None = None
) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the columns, or their numbers from 1 on, and their values (n, columns); `option` named the file.

    With `only`, these columns in this order; the others may hold anything.
    """
    names: list[str] = []
    at: Sequence[int] = ()
    values, width = array("d"), 0  # a few bytes a number, as files may be large
    for number, line in _lines(content, path, option):
        if number == 1 and all(cell.strip() and _number(cell) is None for cell in line):
            names = [cell.strip() for cell in line]
            continue
        if number == 1 and any(map(str.strip, line)) and all(_number(cell) is None for cell in line):
            raise ValueError(
                f"{option} must have a name for every column, got none for column "
                f"{[cell.strip() for cell in line].index('') + 1} of {path}."
            )
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
    return names, table


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
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise ValueError(f"{path} has no column {name!r}. {hint}It has {shown}.")


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
