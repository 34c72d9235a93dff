"""A series of positions from a CSV file: one row a position, one column a coordinate; the first row may have names."""

from __future__ import annotations

import csv
import hashlib
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def digest(path: str) -> str:
    """What tells the content of a file from any other."""
    return hashlib.sha256(_content(path)).hexdigest()


@lru_cache(maxsize=2)
def read(path: str, expected: str) -> NDArray[np.float64]:
    """The positions (n, columns) in a file with this digest."""
    content = _content(path)
    if hashlib.sha256(content).hexdigest() != expected:
        raise ValueError(f"--set series must not change while it is used, but {path} has.")
    try:
        lines = list(csv.reader(content.decode("utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--set series must be 'lorenz' or a readable CSV file, got {path!r}: {error}.") from None
    while lines and not lines[-1]:
        lines.pop()
    header = bool(lines) and bool(lines[0]) and all(cell.strip() and _number(cell) is None for cell in lines[0])
    rows = [_row(line, number, path) for number, line in enumerate(lines[header:], start=1 + header)]
    if not rows:
        raise ValueError(f"--set series must have rows of numbers, but {path} has none.")
    for number, row in enumerate(rows, start=1 + header):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"--set series must have as many columns in every row, got {len(row)} instead of {len(rows[0])} in row "
                f"{number} of {path}."
            )
    return np.array(rows)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            f"--set series must be 'lorenz' or a readable CSV file, got {path!r}: {error.strerror}."
        ) from None


def _row(line: list[str], number: int, path: str) -> list[float]:
    values = []
    for column, cell in enumerate(line or [""], start=1):
        value = _number(cell)
        if value is None or not math.isfinite(value):
            raise ValueError(
                f"--set series must hold numbers without gaps, got {cell!r} in row {number}, column {column} of {path}."
            )
        values.append(value)
    return values


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
