"""The candidates of a search: algebras x weight scales x sizes x ridges, from lists or "auto".

A size is a number of neurons, or a number P of parameters: with D inputs, N outputs, b biases and k direct links a
network of L neurons over an algebra of dimension d has

    P = d ((D + b) L + (L + k + b) N)

parameters, so networks over different algebras are compared at the L that comes nearest to the same P.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._network.layers import check_weight_scale
from hyperelm._solvers.solve import check_ridge
from hyperelm._validation import check_whole

NEURONS = (16, 32, 64, 128)
SCALES = ("0.01 auto", "0.1 auto", "0.3 auto", "auto", "3 auto")
_LARGEST_DIM = 4  # of the algebras that "auto" takes for columns


class Shape(NamedTuple):
    """What decides, beside the neurons, how many parameters a network has: d, D, N, and whether b and k are there."""

    dim: int
    inputs: int
    outputs: int
    bias: bool
    direct_link: bool

    def unknowns(self, neurons: int) -> int:
        """The rows of the output weights."""
        return neurons + (self.inputs if self.direct_link else 0) + self.bias

    def parameters(self, neurons: int) -> int:
        return self.dim * ((self.inputs + self.bias) * neurons + self.unknowns(neurons) * self.outputs)

    def neurons(self, parameters: int) -> int:
        """As many as come nearest to so many parameters, at least 1."""
        of_one, of_none = self.parameters(1), self.parameters(0)
        return max(1, round((parameters - of_none) / (of_one - of_none)))


class Grid(NamedTuple):
    """The values of the parameters; no ridges where each candidate's own path is searched.

    Of `neurons` and `parameters` one is None.
    """

    algebras: list[Algebra]
    scales: list[str | float]
    neurons: list[int] | None
    parameters: list[int] | None
    ridges: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        algebra: Any,
        weight_scale: Any,
        n_hidden: Any,
        n_parameters: Any,
        ridge: Any,
        *,
        rows: float,
        dims: Sequence[int],
    ) -> Grid:
        """What the parameters say for so many rows, in numbers of so many components if they are not columns."""
        parameters = None if n_parameters is None else _whole(n_parameters, "n_parameters")
        if parameters is not None and not _is_auto(n_hidden):
            raise ValueError(
                f"`n_hidden` must be 'auto' where `n_parameters` decides the number of neurons, got {n_hidden!r}."
            )
        neurons = _neurons(n_hidden, rows) if parameters is None else None
        return cls(_algebras(algebra, dims), _scales(weight_scale), neurons, parameters, _ridges(ridge))

    def sizes(self, shape: Shape) -> list[int]:
        """The numbers of neurons of networks of this shape."""
        if self.parameters is None:
            return list(self.neurons or ())
        return [shape.neurons(parameters) for parameters in self.parameters]


def _algebras(value: Any, dims: Sequence[int]) -> list[Algebra]:
    if not _is_auto(value):
        return [catalogue.get(one) for one in _listed(value, "algebra")]
    known = dict.fromkeys(catalogue.get(name) for name in catalogue.names())  # equal tables have several names
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
    return _whole(value, "n_hidden")


def _whole(value: Any, name: str) -> list[int]:
    numbers_: list[int] = _listed(value, name)
    for number in numbers_:
        check_whole(number, name)
    return numbers_


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
