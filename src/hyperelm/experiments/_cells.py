"""What the cells of a file mean: numbers, dates, texts, or nothing.

A number is what Python's `float` takes, without underscores. Groups of thousands (12,800.0), a percent sign (4.7% is
4.7) and TRUE or FALSE (1 or 0) are numbers, too. With decimal commas, comma and point change places.

A column holds numbers if nine tenths of its cells do; then a cell that is none is an error. It holds dates if all cells
are dates of one form. Otherwise it holds texts. Empty cells and those that say NA or the like do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cells = NDArray[Any]  # of texts
Dates = NDArray[np.datetime64]

MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "<na>", "nat"}
TRUTH = {"true": 1.0, "false": 0.0}
QUARTER = "quarter"  # 1970 Q1
DAYS = "%Y%m%d"
# The forms of dates. Of those that fit all cells of a column the first is taken, except for days and months.
FORMS = (
    "ISO8601",
    *("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%y"),
    *(f"{date}{time}" for date in ("%m/%d/%Y", "%m/%d/%y") for time in ("", " %H:%M", " %H:%M:%S", " %I:%M:%S %p")),
    *(f"{date}{time}" for date in ("%d/%m/%Y", "%d/%m/%y") for time in ("", " %H:%M", " %H:%M:%S")),
    *("%d-%m-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y"),
    *("%a %b %d %H:%M:%S %Y", QUARTER),
)
_MOSTLY = 0.9  # a column with so many numbers is one of numbers
_LOOKED_AT = 2000  # cells that tell decimal commas from points

_POINTS = re.compile(r"([+-]?)(\d+|[1-9]\d{0,2}(?:,\d{3})+)?(\.\d*)?([eE][+-]?\d{1,4})?\s?(%?)", re.ASCII)
_COMMAS = re.compile(r"([+-]?)(\d+|[1-9]\d{0,2}(?:\.\d{3})+)?(,\d*)?([eE][+-]?\d{1,4})?\s?(%?)", re.ASCII)
_QUARTER = re.compile(r"(\d{4})\s?-?Q([1-4])", re.ASCII)


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, if it holds one. It may be infinite."""
    text = cell.strip()
    if decimal == "." and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    found = (_POINTS if decimal == "." else _COMMAS).fullmatch(text)
    if found is None or not re.search(r"\d", (found[2] or "") + (found[3] or "")):
        return None
    whole = re.sub(r"[.,]", "", found[2] or "")
    return float(f"{found[1]}{whole}{(found[3] or '').replace(',', '.')}{found[4] or ''}")


def numbers(cells: Iterable[str], decimal: str = ".") -> tuple[Array, NDArray[np.bool_]]:
    """The number in every cell, NaN where it is missing, and which cells hold neither a finite number nor nothing."""
    found = [(np.nan, False) if is_missing(cell) else _checked(number(cell, decimal)) for cell in cells]
    values, wrong = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return values, wrong.astype(bool)


def _checked(value: float | None) -> tuple[float, bool]:
    return (np.nan, True) if value is None or not np.isfinite(value) else (value, False)


def find_decimal(cells: Iterable[str], sep: str) -> str:
    """ "," if cells are numbers with decimal commas, else "."."""
    points = commas = both = 0
    for cell in islice((cell for cell in cells if not is_missing(cell)), _LOOKED_AT):
        by_point, by_comma = (number(cell, decimal) for decimal in ".,")
        points += by_point is not None and by_comma is None
        commas += by_comma is not None and by_point is None
        both += by_point is not None and by_comma is not None and by_point != by_comma
    # 1,234 may be either. A file whose columns are not separated by commas has them for decimals.
    return "," if commas > points or (not points and both and sep != ",") else "."


def kind_of(cells: Cells, decimal: str = ".") -> str:
    """What a column holds: "empty", "number", "truth" (TRUE or FALSE), "date FORM" or "text"."""
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    if not present:
        return "empty"
    if all(cell.lower() in TRUTH for cell in present):
        return "truth"
    are_numbers = sum(number(cell, decimal) is not None for cell in present)
    if are_numbers == len(present):
        return f"date {DAYS}" if _are_days(present) else "number"
    form = form_of(present)
    if form:
        return f"date {form}"
    return "number" if are_numbers >= _MOSTLY * len(present) else "text"


def _are_days(cells: Sequence[str]) -> bool:
    """Whether all are days such as 19991231."""
    if not all(len(cell) == 8 and cell.isdigit() and "1800" <= cell[:4] < "2200" for cell in cells):
        return False
    return not bool(np.isnat(dates(np.array(cells, dtype=object), DAYS)).any())


def form_of(present: Sequence[str]) -> str:
    """The form of the dates in cells; empty if they are none, or not all of one form."""
    first = np.array(present[:1], dtype=object)
    if not re.search(r"\d", present[0]) or len(present[0]) > 40:
        return ""
    cells = np.array(list(dict.fromkeys(present)), dtype=object)
    forms = [form for form in FORMS if not np.isnat(dates(first, form)[0])]
    fit = [form for form in forms if not np.isnat(dates(cells, form)).any()]
    if not fit:
        return ""
    if fit[0].startswith("%m/%d") and (other := fit[0].replace("%m/%d", "%d/%m")) in fit:
        # Both are possible: most files are in the order of time.
        in_order = [bool((np.diff(dates(cells, form).astype(np.int64)) >= 0).all()) for form in (fit[0], other)]
        return other if in_order == [False, True] else fit[0]
    return fit[0]


def dates(cells: Cells, form: str) -> Dates:
    """The dates in cells, NaT where a cell is missing or not of this form."""
    import pandas as pd

    texts = [None if is_missing(cell) else cell.strip() for cell in cells]
    if form == QUARTER:
        found = [None if text is None else _QUARTER.fullmatch(text) for text in texts]
        texts = [None if match is None else f"{match[1]}-{3 * int(match[2]) - 2:02d}-01" for match in found]
        form = "%Y-%m-%d"
    found = pd.to_datetime(np.array(texts, dtype=object), format=form, errors="coerce", utc=True)
    return np.asarray(found.tz_localize(None).to_numpy()).astype("datetime64[s]")
