"""Columns of numbers without gaps, for series and for the columns of a search.

A file is read as `_sheet` says, and a cell that is not a number is an error that names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments._content import SERIES, content_of
from hyperelm.experiments._sheet import Sheet, read_sheet


@dataclass(frozen=True)
class Columns:
    """Names of columns, their values (n, columns), and remarks on how the file was read."""

    names: list[str]
    values: NDArray[np.float64]
    remark: str = ""


def read_csv(
    path: str, option: str, named: Sequence[str] = (), *, only: Sequence[str] | None = None, hint: str = ""
) -> Columns:
    """Columns of numbers without gaps from a CSV or Parquet file or a pipe.

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
    sheet = read_sheet(path, option, named)
    names = sheet.names if only is None else list(only)
    for name in names:
        sheet.at(name)  # which refuses two columns with one name
    values = np.empty((len(sheet), len(names)))
    for n, name in enumerate(names):
        values[:, n] = sheet.numbers(name, hint)
        gaps = np.isnan(values[:, n])
        if gaps.any():
            raise sheet.refused(name, int(np.argmax(gaps)), "numbers without gaps", hint)
    return Columns(names, values, " ".join(sheet.remarks))


def fixed(path: str, option: str = SERIES) -> tuple[str, str]:
    """The full name of a file that every process of a run reads again, and the digest of its content."""
    found = Path(path)
    if found.exists() and not (found.is_file() or found.is_dir()):
        wrong = f"got {path!r}, which is a pipe or a device. Write what comes out of it to a file first"
        raise ValueError(f"{option} must be a file that can be read again, {wrong}.")
    full = str(found.resolve())
    return full, hashlib.sha256(content_of(full, option)).hexdigest()


@lru_cache(maxsize=2)
def read_fixed(path: str, digest: str) -> Columns:
    """All columns of the file of a series with this digest."""
    _check_digest(path, digest, SERIES)
    return read_csv(path, SERIES)


@lru_cache(maxsize=2)
def fixed_sheet(path: str, digest: str, option: str, named: tuple[str, ...]) -> Sheet:
    """The sheet of a file with this digest."""
    _check_digest(path, digest, option)
    return read_sheet(path, option, named)


def _check_digest(path: str, digest: str, option: str) -> None:
    if fixed(path, option)[1] != digest:
        raise ValueError(f"{option} must not change while it is used, but {path} has.")
