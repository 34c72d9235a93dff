"""How large and how small numbers may be, and the error for all others.

Training forms sums of squares and compares them. A sum keeps its digits between

    smallest_sum = tiny/eps        and        largest_sum = 1e-6 max

of its precision: above the first no square in it lost digits that matter, and below the second it may still be
multiplied by the coefficients of an algebra. Lengths lie between the roots of both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LARGEST = 1e300  # number that lengths in double precision can be made of
SMALLEST = 1e-300  # length by which numbers can be divided
HEAVIEST = 1e38  # weight of a row: so many rows of that weight have a finite sum

_DOUBLE = np.dtype(np.float64)


def smallest_sum(dtype: Any = _DOUBLE) -> float:
    """The smallest sum of squares that has all its digits."""
    info = np.finfo(dtype)
    return float(info.tiny / info.eps)


def largest_sum(dtype: Any = _DOUBLE) -> float:
    """The largest sum of squares that can be computed with."""
    return 1e-6 * float(np.finfo(dtype).max)


def is_sum(square: float, dtype: Any = _DOUBLE) -> bool:
    """Whether a sum of squares is zero or can be computed with."""
    return square == 0 or smallest_sum(dtype) < square < largest_sum(dtype)


def is_length(length: float, dtype: Any = _DOUBLE) -> bool:
    """Whether the square of a length is zero or can be computed with."""
    return length == 0 or math.sqrt(smallest_sum(dtype)) < length < math.sqrt(largest_sum(dtype))


def refused(name: str, must: str, got: str, way_out: str) -> ValueError:
    """The error for an argument that is beyond the range of numbers."""
    return ValueError(f"`{name}` must {must}, got {got}. {way_out}")
