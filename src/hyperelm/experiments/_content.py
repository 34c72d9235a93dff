"""From a file to cells: bytes, letters, the separator, rows.

pandas splits the letters into cells. Here is what it does not say: which letters the bytes are, which separator parts
the columns, and whether all rows have as many.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hyperelm.experiments._cells import number

SERIES = "--set series"  # the option that names the file of a series
SEPARATORS = (",", ";", "\t")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
_LARGEST = 2**32  # bytes of a file, unpacked
_CHUNK = 2**20  # bytes that are unpacked together
_SAMPLE = 100  # rows that tell the separator


def content_of(path: str, option: str) -> bytes:
    """The bytes of a file, unpacked."""
    try:
        content = Path(path).read_bytes()
        if content.startswith(_GZIP):
            content = _unpacked(content)
    except EOFError:
        raise unreadable(path, option, "the archive is not complete") from None
    except zlib.error as error:
        raise unreadable(path, option, f"the archive is damaged ({error})") from None
    except OSError as error:
        raise unreadable(path, option, error.strerror or error) from None
    if len(content) > _LARGEST:
        raise unreadable(path, option, f"it has more than {_LARGEST:,} bytes")
    return content


def _unpacked(content: bytes) -> bytes:
    """What an archive holds, or a little more of it than a file may have."""
    parts, size = [], 0
    with gzip.open(io.BytesIO(content)) as file:
        while size <= _LARGEST and (part := file.read(_CHUNK)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def is_parquet(content: bytes) -> bool:
    return content.startswith(_PARQUET)


def parquet_frame(content: bytes, path: str, option: str) -> Any:
    """The frame of a Parquet file."""
    import pandas as pd

    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("Parquet files need the package 'pyarrow': pip install pyarrow.") from None
    try:
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (pa.ArrowException, ValueError, OSError, KeyError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise unreadable(path, option, reason) from None
    return frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()


def letters_of(content: bytes, path: str, option: str) -> str:
    """The text of a file in UTF-8 or UTF-16, with one kind of line ends."""
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start + 1:,} is not {encoding[:6].upper().rstrip('-')}. Save it as UTF-8"
        raise unreadable(path, option, wrong) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def find_separator(text: str) -> str:
    """The separator that gives the first rows equally many columns, and the most numbers."""
    best, chosen = (False, 0.0, 0), ","
    for sep in SEPARATORS:
        try:
            rows = [row for row in islice(csv.reader(io.StringIO(text), delimiter=sep), _SAMPLE) if row]
        except csv.Error:
            continue
        widths = {len(row) for row in rows}
        if not rows or widths == {1}:
            continue
        cells = [cell for row in rows for cell in row]
        share = sum(number(cell, ".") is not None or number(cell, ",") is not None for cell in cells) / len(cells)
        score = (len(widths) == 1, share, len(rows[0]))
        if score > best:
            best, chosen = score, sep
    return chosen


def cells_frame(text: str, sep: str, path: str, option: str) -> Any:
    """A frame of texts, one row for each of the file, without empty lines at its end."""
    import pandas as pd

    width, rows = _form(text, sep, path, option)
    if not rows:
        return pd.DataFrame()
    names = range(width)
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=sep,
            header=None,
            names=names,
            index_col=False,
            nrows=rows,
            dtype=object,
            na_filter=False,
            skip_blank_lines=False,
            engine="c",
            low_memory=False,
        )
    except (pd.errors.ParserError, OverflowError) as error:
        raise unreadable(path, option, " ".join(str(error).split())[:200]) from None
    if len(frame) != rows:
        wrong = f"its quotes do not fit together: {len(frame):,} or {rows:,} rows"
        raise unreadable(path, option, wrong)
    return frame


def _form(text: str, sep: str, path: str, option: str) -> tuple[int, int]:
    """The number of columns, which must be the same in every row but empty lines, and the number of rows."""
    width = last = 0
    names = False
    for row, cells in _numbered(text, sep, path, option):
        if not cells:
            continue
        if row == 1:
            names = not any(number(cell) is not None for cell in cells)
        if width and len(cells) != width:
            if names and last == 1:
                wrong = f"got {width} for {len(cells)} in {path}"
                raise ValueError(f"{option} must have as many names as columns, {wrong}.")
            wrong = f"got {len(cells)} instead of {width} in row {row} of {path}"
            raise ValueError(f"{option} must have as many columns in every row, {wrong}.")
        width, last = len(cells), row
    return width, last


def _numbered(text: str, sep: str, path: str, option: str) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from enumerate(csv.reader(io.StringIO(text), delimiter=sep), start=1)
    except csv.Error as error:
        raise unreadable(path, option, error) from None


def unreadable(path: str, option: str, reason: object) -> ValueError:
    wanted = "'lorenz' or a readable CSV file" if option == SERIES else "a readable CSV file"
    return ValueError(f"{option} must be {wanted}, got {path!r}: {reason}.")
