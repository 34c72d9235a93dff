"""Checks at the boundary: what an argument must be, what it was, and the way out."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import backend_of

FloatArray = NDArray[np.floating[Any]]


class ArgumentError(ValueError):
    """A value that an argument must not have. The message is "`argument` reason".

    A caller whose users know the argument by another name, such as an option of a command, writes that name before
    `reason`.
    """

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)  # pickle makes the error again from these
        self.argument, self.reason = argument, reason

    def __str__(self) -> str:
        return f"`{self.argument}` {self.reason}"


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
    return backend_of(array).real(array, name)


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
