"""Memory for work on large arrays.

What is freed on the heap stays with the process, in pieces that larger arrays cannot use: scratch memory and results
would add up instead of taking turns. So large arrays that live shortly get pages of their own, huge ones where there
are any, which go back to the system when the array is dropped.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LARGE = 2**20  # bytes


def scratch_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of a matrix for temporary work, in Fortran order, as LAPACK overwrites it."""
    copy = scratch(array.shape[::-1], array.dtype).T
    copy[...] = array
    return copy


def scratch(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros for temporary work."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)
