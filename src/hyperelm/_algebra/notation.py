"""Numbers of an algebra as text: "k", "-1", "0.5 - 2 j".

`parse_number` gives the coefficients of such a text, `format_number` the text of coefficients.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def default_units(dim: int, *, identity: bool) -> tuple[str, ...]:
    """Names for the units of an algebra of dimension `dim`. The first is "1" if it is the identity, else "e0"."""
    letters = {2: ("i",), 4: ("i", "j", "k")}
    imaginary = letters.get(dim) or tuple(f"e{n}" for n in range(1, dim))
    return ("1" if identity else "e0", *imaginary)


def parse_number(entry: object, units: Sequence[str]) -> NDArray[np.float64]:
    """Coefficients over `units` of an entry such as "-k", "1", "0" or "k+0.5j", or of a plain real number."""
    coefficients = np.zeros(len(units))
    if isinstance(entry, (int, float)) and not isinstance(entry, bool):
        coefficients[0] = entry
        return coefficients
    if not isinstance(entry, str):
        raise TypeError(f"an entry must be a string or a real number, got {entry!r}")
    imaginary = sorted((u for u in units if u != "1"), key=len, reverse=True)
    # If a unit has a name such as e1, "2e1" is twice that unit, and not 20.
    exponent = "" if any(u[0] in "eE" for u in imaginary) else r"(?:[eE][+-]?\d+)?"
    number = rf"(?:\d+\.?\d*|\.\d+){exponent}"
    unit = "|".join(map(re.escape, imaginary)) or r"(?!)"
    term = re.compile(rf"\s*([+-]?)\s*({number})?\s*\*?\s*({unit})?")
    position, text = 0, entry.replace("−", "-").rstrip()
    if not text:
        raise ValueError("an entry must not be empty; write '0' for zero")
    while position < len(text):  # Every character must belong to a term. All terms but the first need a sign.
        match = term.match(text, position)
        if match is None or not (match[2] or match[3]) or (position and not match[1]):
            raise ValueError(
                f"cannot read {entry!r} at {text[position:]!r}: "
                f"an entry is a sum of terms such as '-{imaginary[-1] if imaginary else 1}' or '0.5', "
                f"and the units are {', '.join(units)}"
            )
        coefficients[units.index(match[3]) if match[3] else 0] += float(match[1] + (match[2] or "1"))
        position = match.end()
    return coefficients


def format_number(coefficients: Sequence[float] | NDArray[np.floating], units: Sequence[str]) -> str:
    """A number as text: "-k", "0", "1 + 0.5j"."""
    terms = []
    for c, unit in zip(map(float, coefficients), units):
        if c != 0:
            # Three digits of a fraction: the tables of learned algebras have many.
            digits = f"{c:g}" if c.is_integer() else f"{c:.3g}"
            terms.append(digits if unit == "1" else {1.0: "", -1.0: "-"}.get(c, digits) + unit)
    return (" + ".join(terms) or "0").replace("+ -", "- ")
