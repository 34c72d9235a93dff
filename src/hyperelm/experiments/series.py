"""Numbers from a CSV file: of a series, one row a position, one column a coordinate; the first row may have names."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from array import array
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SERIES = "--set series"  # the option that names the file of a series


def digest(path: str, option: str = SERIES) -> str:
    """What tells the content of a file from any other."""
    return hashlib.sha256(_content(path, option)).hexdigest()


def read(path: str, expected: str) -> NDArray[np.float64]:
    """The positions (n, columns) in a file with this digest."""
    return read_columns(path, expected, SERIES)[1]


@lru_cache(maxsize=2)
def read_columns(path: str, expected: str, option: str) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the columns, or their numbers from 1 on, and their values (n, columns); `option` named the file."""
    content = _content(path, option)
    if hashlib.sha256(content).hexdigest() != expected:
        raise ValueError(f"{option} must not change while it is used, but {path} has.")
    names: list[str] = []
    values, width = array("d"), 0  # a few bytes a number, as files may be large
    for number, line in _lines(content, path, option):
        if number == 1 and all(cell.strip() and _number(cell) is None for cell in line):
            names = [cell.strip() for cell in line]
            continue
        values.extend(_row(line, number, path, option))
        width = width or len(line)
        if len(line) != width:
            raise ValueError(
                f"{option} must have as many columns in every row, got {len(line)} instead of {width} in row "
                f"{number} of {path}."
            )
    if not values:
        raise ValueError(f"{option} must have rows of numbers, but {path} has none.")
    names = names or [str(n) for n in range(1, width + 1)]
    if len(names) != width:
        raise ValueError(f"{option} must have as many names as columns, got {len(names)} for {width} in {path}.")
    return names, np.array(values).reshape(-1, width)


def _lines(content: bytes, path: str, option: str) -> Iterator[tuple[int, list[str]]]:
    """The lines up to the last that is not empty, with their numbers; an empty one before it is one empty cell."""
    gap = 0
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=None))
        for number, line in enumerate(lines, start=1):
            if line:
                if gap:
                    yield gap, [""]
                yield number, line
            else:
                gap = gap or number
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option} must be {_wanted(option)}, got {path!r}: {error}.") from None


def _wanted(option: str) -> str:
    return "'lorenz' or a readable CSV file" if option == SERIES else "a readable CSV file"


def _content(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{option} must be {_wanted(option)}, got {path!r}: {error.strerror}.") from None


def _row(line: list[str], number: int, path: str, option: str) -> list[float]:
    values = []
    for column, cell in enumerate(line, start=1):
        value = _number(cell)
        if value is None or not math.isfinite(value):
            raise ValueError(
                f"{option} must hold numbers without gaps, got {cell!r} in row {number}, column {column} of {path}."
            )
        values.append(value)
    return values


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
