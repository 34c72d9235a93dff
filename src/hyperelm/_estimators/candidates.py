"""Candidates of a search: the errors of each along its path of ridges, and which of them is taken.

Candidates within 1 % of the best count as equal, and the one with the fewest parameters is taken.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import limits
from hyperelm._estimators.grid import Grid
from hyperelm._solvers.spectrum import LABELS, VALUES, Caution, best_permitted, is_permitted
from hyperelm._training.rows import Chunk

TIE = 0.01


class Curve(NamedTuple):
    """The mean loss of every ridge, and the smallest ridge and loss that are more than rounding.

    `compared` is what the ridges of a path are compared by, with this `caution`, and `unit` the squared singular value
    that they are multiples of.
    """

    ridges: NDArray[np.float64]
    errors: NDArray[np.float64]
    compared: NDArray[np.float64]
    unit: float
    floor: float
    least: float
    caution: Caution = VALUES

    @property
    def is_cut_off(self) -> bool:
        """Whether a ridge lies below the floor, or an error is lost in rounding."""
        return bool(self.ridges.min() < self.floor or self.errors.min() < self.least)

    @property
    def still_falls(self) -> bool:
        """Whether the smallest ridge of a path is permitted, and better than those a decade above it."""
        above = self.errors[self.ridges > 9 * self.ridges[0]]
        falls = self.errors[0] * (1 + TIE) < above.min(initial=np.inf)
        return bool(falls and self.unit > 0 and is_permitted(self.ridges / self.unit, self.compared, self.caution)[0])


class Part(NamedTuple):
    """A readout and a number of neurons, the one at this `place` among those of the readout.

    `size` is what candidates of equal errors are compared by.
    """

    readout: str
    neurons: int
    parameters: int
    size: int
    place: int


@dataclass(eq=False)
class Layer:
    """Hidden layers over an algebra with a weight scale.

    curves : for each draw, the curves of those parts of the plan that were scored, by their places in the plan
    """

    algebra: Algebra
    scale: str | float
    plan: list[Part]
    curves: list[dict[int, Curve]] = field(default_factory=lambda: [{}])

    def curves_of(self, part: int) -> list[Curve]:
        """The curves of a part on the draws that it had."""
        return [of_draw[part] for of_draw in self.curves if part in of_draw]


def mean_square(rows: Chunk) -> float:
    """Σ w y² / (columns Σw), which candidates are compared by."""
    y = np.asarray(rows.T, dtype=np.float64).reshape(len(rows), -1)
    largest = float(np.abs(y).max(initial=0))
    eps = float(np.finfo(np.float64).eps)  # errors may be smaller than the targets by this, and larger by its inverse
    if not (limits.is_length(eps * largest) and limits.is_length(largest / eps)):
        must = "have squares and errors within double precision"
        raise limits.refused("y", must, f"numbers of {largest:.0e}", "Divide `y` by its size.")
    squares = np.mean(y**2, axis=1)
    return float(np.average(squares, weights=rows.weight)) if rows.count > 0 else 0.0


def candidates_of(
    common: dict[str, Any], curves: Sequence[Curve], grid: Grid, rounding: float
) -> Iterator[dict[str, Any]]:
    """The candidates with some facts in `common`, one for every ridge or the best of the path, from the curves of all
    draws. Those that had no draw have no errors."""
    if not curves:
        listed = [np.nan] if grid.ridges is None else grid.ridges.tolist()
        yield from (common | {"ridge": ridge, "errors": [], "is_bias_only": False} for ridge in listed)
        return
    _, errors, _ = _matched(curves)
    if grid.ridges is not None:
        listed = zip(grid.ridges, errors.T)
        yield from (common | {"ridge": float(ridge), "errors": e, "is_bias_only": False} for ridge, e in listed)
        return
    best = _best_of_path(curves, rounding)
    ridge = float(_mean_ridges(curves)[best])
    is_last = best == errors.shape[1] - 1 and 0 < curves[0].unit < ridge and bool(errors[:, best].mean() > rounding)
    yield common | {"ridge": ridge, "errors": errors[:, best], "is_bias_only": is_last}


def loss_of(curves: Sequence[Curve], rounding: float, *, is_path: bool) -> float:
    """The mean loss of a candidate over its draws: that of the ridge that it would be chosen with.

    Of labels it is what ridges are compared by, since that is finer than accuracy.
    """
    _, errors, compared = _matched(curves)
    means = (compared if curves[0].caution == LABELS else errors).mean(axis=0)
    return float(means[_best_of_path(curves, rounding)] if is_path else means.min())


def averaged(curves: Sequence[Curve]) -> Curve:
    """The mean of curves of one candidate, each from a part of the rows."""
    _, errors, compared = (of_curves.mean(axis=0) for of_curves in _matched(curves))
    return Curve(_mean_ridges(curves), errors, compared, *curves[0][3:])


def _mean_ridges(curves: Sequence[Curve]) -> NDArray[np.float64]:
    """The ridges of a path follow the size of a layer, so their mean is the geometric one."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(_matched(curves)[0]).mean(axis=0)))


def _matched(curves: Sequence[Curve]) -> list[NDArray[np.float64]]:
    """Ridges, errors and what ridges are compared by, (draws, ridges).

    Paths match from their ends down. That of `qr` goes further down than that of normal equations.
    """
    n = min(len(curve.ridges) for curve in curves)
    columns = zip(*((curve.ridges, curve.errors, curve.compared) for curve in curves))
    return [np.stack([of_ridges[-n:] for of_ridges in column]) for column in columns]


def _unit(curves: Sequence[Curve]) -> float:
    return max(curves[0].unit, float(np.finfo(np.float64).tiny))


def _best_of_path(curves: Sequence[Curve], rounding: float) -> int:
    """The place of the ridge that is the best for all draws."""
    ridges, _, compared = _matched(curves)
    return best_permitted(ridges[0] / _unit(curves), compared.mean(axis=0), curves[0].caution, rounding)


def most_parsimonious(errors: NDArray[np.float64], sizes: NDArray[np.intp], rounding: float) -> int:
    """The candidate with the fewest parameters among those as good as the best, and of these the best."""
    ties = np.flatnonzero(errors <= errors.min() * (1 + TIE) + rounding)
    return int(min(ties, key=lambda n: (sizes[n], errors[n])))


def column(values: list[Any]) -> NDArray[Any]:
    """An array of numbers, or of objects where they are not all numbers."""
    if all(isinstance(value, numbers.Number) for value in values):
        return np.asarray(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
