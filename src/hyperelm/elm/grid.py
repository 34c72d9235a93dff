"""The candidates of a search: algebras x weight scales x numbers of neurons x ridges, from lists or "auto"."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm import algebras
from hyperelm._validation import check_whole
from hyperelm.algebra import Algebra
from hyperelm.elm.drawing import check_weight_scale
from hyperelm.solvers.solve import check_ridge

NEURONS = (16, 32, 64, 128)
SCALES = ("0.01 auto", "0.1 auto", "0.3 auto", "auto", "3 auto")
_LARGEST_DIM = 4  # of the algebras that "auto" takes for tables


class Grid(NamedTuple):
    """The values of the four parameters; no ridges where each candidate's own path is searched."""

    algebras: list[Algebra]
    scales: list[str | float]
    neurons: list[int]
    ridges: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, algebra: Any, weight_scale: Any, n_hidden: Any, ridge: Any, *, rows: float, dims: Sequence[int]
    ) -> Grid:
        """What the parameters say for so many rows, in numbers of so many components if they are not a table."""
        return cls(_algebras(algebra, dims), _scales(weight_scale), _neurons(n_hidden, rows), _ridges(ridge))


def _algebras(value: Any, dims: Sequence[int]) -> list[Algebra]:
    if not _is_auto(value):
        return [algebras.get(one) for one in _listed(value, "algebra")]
    known = dict.fromkeys(algebras.get(name) for name in algebras.names())  # equal tables have several names
    alike = [a for a in known if (a.dim == dims[0] if dims else a.is_associative and a.dim <= _LARGEST_DIM)]
    if not alike:
        raise ValueError(f"`algebra` must name algebras: none of the catalogue has {dims[0]} components.")
    return [a for a in alike if a.is_nondegenerate]


def _scales(value: Any) -> list[str | float]:
    scales: list[str | float] = list(SCALES) if _is_auto(value) else _listed(value, "weight_scale")
    for scale in scales:
        check_weight_scale(scale)
    return scales


def _neurons(value: Any, rows: float) -> list[int]:
    if _is_auto(value):
        return [L for L in NEURONS if rows >= L] or [1]
    neurons: list[int] = _listed(value, "n_hidden")
    for L in neurons:
        check_whole(L, "n_hidden")
    return neurons


def _ridges(value: Any) -> NDArray[np.float64] | None:
    if _is_auto(value):
        return None
    ridges = _listed(value, "ridge")
    for ridge in ridges:
        if isinstance(ridge, str):
            raise ValueError(f"`ridge` must be 'auto' or finite numbers >= 0, got {ridge!r}.")
        check_ridge(ridge)
    return np.asarray(ridges, dtype=np.float64)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _listed(value: Any, name: str) -> list[Any]:
    """The values that a parameter may take: those of a list, or one."""
    if isinstance(value, (str, Algebra, numbers.Number)):
        return [value]
    values = value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, Iterable) else None
    if not isinstance(values, list) or not values:
        raise ValueError(f"`{name}` must be 'auto', a value or a list of at least one, got {value!r}.")
    return values
