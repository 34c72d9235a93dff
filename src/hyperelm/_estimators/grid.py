"""The candidates of a search: algebras x weight scales x readouts x sizes x ridges, from lists or "auto".

A size is a number of neurons, or a number P of parameters: with D inputs, N outputs, b biases and k direct links a
network of L neurons over an algebra of dimension d has

    P = d ((D + b) L + (L + k + b) N)

parameters, and d³ more for a table that is learned. A free readout has (d L + k' + b) weights for each of N' columns of
the output, k' being the columns that are linked. So networks over different algebras and with different readouts are
compared at the L that comes nearest to the same P.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.learning import LARGEST_LEARNED
from hyperelm._network.layers import check_weight_scale
from hyperelm._network.layout import Layout
from hyperelm._network.readout import READOUTS
from hyperelm._solvers.solve import check_ridge
from hyperelm._validation import check_choice, check_whole

NEURONS = (16, 32, 64, 128)
SCALES = ("0.01 auto", "0.1 auto", "0.3 auto", "auto", "3 auto")
_LARGEST_DIM = 4  # of the algebras that "auto" takes for columns


@dataclass(frozen=True)
class Shape:
    """What decides, beside the neurons, how many parameters a network has."""

    input: Layout
    output: Layout
    bias: bool
    direct_link: bool
    readout: str

    def parameters(self, neurons: int) -> int:
        d, D, N = self.input.dim, self.input.features, self.output.features
        hidden = d * (D + self.bias) * neurons
        if self.readout == "free":
            links = self.input.columns if self.direct_link else 0
            return hidden + (d * neurons + links + self.bias) * self.output.columns
        table = d**3 if self.readout == "learned" else 0
        return hidden + d * (neurons + (D if self.direct_link else 0) + self.bias) * N + table

    def neurons(self, parameters: int) -> int:
        """As many as come nearest to so many parameters, at least 1."""
        of_one, of_none = self.parameters(1), self.parameters(0)
        return max(1, round((parameters - of_none) / (of_one - of_none)))


class Grid(NamedTuple):
    """The values of the parameters; no ridges where each candidate's own path is searched.

    Of `neurons` and `parameters` one is None. `readouts` is None where all that make a difference are tried. If
    `neurons` `stand_for_parameters`, they are those of the algebra's own readout, and others have as many parameters.
    """

    algebras: list[Algebra]
    scales: list[str | float]
    neurons: list[int] | None
    parameters: list[int] | None
    stand_for_parameters: bool
    readouts: list[str] | None
    ridges: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        algebra: Any,
        weight_scale: Any,
        n_hidden: Any,
        n_parameters: Any,
        readout: Any,
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
        return cls(
            _algebras(algebra, dims),
            _scales(weight_scale),
            neurons,
            parameters,
            _is_auto(n_hidden),
            _readouts(readout),
            _ridges(ridge),
        )

    def shapes(self, inputs: Layout, outputs: Layout, *, bias: bool, direct_link: bool) -> list[Shape]:
        """The networks over one algebra, one for every readout.

        If nobody names readouts, those that cannot be better are left out: over the real numbers all are the same, and
        for outputs of one component a learned table gives what a free readout gives.
        """
        readouts = self.readouts
        if readouts is None:
            components = len(np.unique(outputs.places % outputs.dim))
            can_learn = components > 1 and outputs.dim <= LARGEST_LEARNED
            readouts = ["algebra"]
            if outputs.dim > 1:
                readouts += ["learned", "free"] if can_learn else ["free"]
        return [Shape(inputs, outputs, bias, direct_link, readout) for readout in readouts]

    def sizes(self, shape: Shape) -> list[int]:
        """The numbers of neurons of networks of this shape."""
        if self.parameters is not None:
            return [shape.neurons(parameters) for parameters in self.parameters]
        neurons = list(self.neurons or ())
        if not self.stand_for_parameters:
            return neurons
        own = replace(shape, readout="algebra")
        return [shape.neurons(own.parameters(L)) for L in neurons]


def _algebras(value: Any, dims: Sequence[int]) -> list[Algebra]:
    if not _is_auto(value):
        return [catalogue.get(one) for one in _listed(value, "algebra")]
    known = dict.fromkeys(catalogue.get(name) for name in catalogue.names())  # equal tables have several names
    alike = [a for a in known if (a.dim == dims[0] if dims else a.is_associative and a.dim <= _LARGEST_DIM)]
    if not alike:
        return _algebras(value, ())  # channels, which are packed like columns
    return [a for a in alike if a.is_nondegenerate]


def _scales(value: Any) -> list[str | float]:
    scales: list[str | float] = list(SCALES) if _is_auto(value) else _listed(value, "weight_scale")
    for scale in scales:
        check_weight_scale(scale)
    return scales


def _readouts(value: Any) -> list[str] | None:
    if _is_auto(value):
        return None
    readouts: list[str] = _listed(value, "readout")
    for readout in readouts:
        check_choice(readout, READOUTS, "readout")
    return readouts


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
