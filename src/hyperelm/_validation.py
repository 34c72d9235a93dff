"""Checks at the boundary: what an argument must be, what it was, and the way out."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import is_elsewhere, namespace

FloatArray = NDArray[np.floating[Any]]


def is_number(value: Any) -> bool:
    """Whether a parameter is one finite number; an int, which may be too large for a float, is compared as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return abs(value if isinstance(value, int) else float(value)) <= sys.float_info.max


def check_whole(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"`{name}` must be a whole number >= 1, got {value!r}.")


def check_choice(value: Any, choices: Iterable[str], name: str) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")


class HasDimension(Protocol):
    """What a check needs of an algebra."""

    @property
    def dim(self) -> int: ...
    @property
    def name(self) -> str: ...


def as_real(array: Any, name: str) -> FloatArray:
    """`array` as float32 or float64, without a copy where it already is one of them, and of the library it is of."""
    if is_elsewhere(array):
        return _as_real_elsewhere(array, name)
    check_unmasked(array, name)
    array = np.asarray(array)
    if array.dtype.kind == "c":
        raise _complex(array, name)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must be an array of real numbers, got dtype {array.dtype}.")
    return array.astype(np.float64)


def check_unmasked(array: Any, name: str) -> None:
    """Refuse what NumPy would take as numbers without a word."""
    if np.ma.is_masked(array):
        masked = int(np.ma.getmaskarray(array).sum())
        raise ValueError(f"`{name}` must have no masked values, got {masked}. Remove or impute such rows.")


def _as_real_elsewhere(array: Any, name: str) -> Any:
    xp = namespace(array=array)
    if xp.isdtype(array.dtype, "complex floating"):
        raise _complex(array, name)
    return array if array.dtype in (xp.float32, xp.float64) else xp.astype(array, xp.float64)


def _complex(array: Any, name: str) -> TypeError:
    return TypeError(
        f"`{name}` must be real, got dtype {array.dtype}. "
        "Put the components of a number on the last axis: np.stack([z.real, z.imag], axis=-1)."
    )


def as_hypercomplex(array: Any, algebra: HasDimension, name: str, axes: int = 0) -> FloatArray:
    """`array` as a hypercomplex array: at least `axes` axes of numbers, then the component axis."""
    if not hasattr(algebra, "dim"):
        raise TypeError(f"`algebra` must be an Algebra, got {algebra!r}. Take one by its name with `algebras.get`.")
    array = as_real(array, name)
    wanted = {0: "", 1: "(n, ", 2: "(rows, columns, "}[axes]
    label = f"{algebra.dim} ({algebra.name})" if algebra.name else str(algebra.dim)
    if array.ndim == 0 or array.shape[-1] != algebra.dim:
        raise ValueError(
            f"`{name}` must have a last axis of length {label}, got shape {tuple(array.shape)}. "
            "The last axis holds the components of each number."
        )
    if array.ndim < axes + 1:
        raise ValueError(
            f"`{name}` must have at least {axes + 1} axes, {wanted}{algebra.dim}), got shape {tuple(array.shape)}."
        )
    return array
