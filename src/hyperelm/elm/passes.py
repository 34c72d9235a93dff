"""What training does with the rows when it goes through them.

A first look, where it is needed, finds what must be known before the hidden layer is drawn: the norm of the inputs,
the labels. Then every row block goes through the hidden layer and into an accumulator. The summaries of both merge, so
that rows may lie anywhere. A search goes through them once more, to leave out one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import beside, is_elsewhere, namespace, to_numpy
from hyperelm._lazy import lazy
from hyperelm._validation import FloatArray, as_real
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.drawing import Encoder
from hyperelm.elm.hidden import HiddenLayer
from hyperelm.elm.layout import Layout
from hyperelm.elm.rows import Block
from hyperelm.elm.scales import Scales
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.choice import as_long_as_safe
from hyperelm.solvers.loo import BySpectrum, residuals_by
from hyperelm.solvers.ridge import RowSample, drawn, mixed, row_lengths
from hyperelm.solvers.spectrum import Spectrum
from hyperelm.solvers.sums import Planes, chunk_rows
from hyperelm.solvers.team import Team

_NUMBERS = 2**20  # that are looked at together
_SCRATCH = 2**22  # numbers in the residuals of rows left out

Weights = FloatArray | None
# From targets as the user gives them to the array that is packed, and the cost of an error on each row.
Targets = Callable[[NDArray[Any]], tuple[NDArray[Any], Weights]]


def values(T: NDArray[Any]) -> tuple[NDArray[Any], Weights]:
    """Targets that are numbers already; an error costs the same everywhere."""
    return T, None


def check_range(y: Any, dtype: np.dtype[Any]) -> None:
    """Refuse targets that are finite and not zero, but not in the precision of the rows."""
    if is_elsewhere(y) or y.dtype == dtype:
        return
    largest, limit = float(np.abs(y).max(initial=0)), float(np.finfo(dtype).max)
    if largest > limit:
        raise ValueError(
            f"`y` must be at most {limit:.0e}, the largest number in the precision of `X`, {dtype}, got {largest:g}. "
            "Give `X` in double precision, or divide `y` by its size."
        )
    if 0 < largest < (limit := float(np.finfo(dtype).tiny)):
        raise ValueError(
            f"`y` must have a number above {limit:.0e}, the smallest in the precision of `X`, {dtype}, got at most "
            f"{largest:g}. Give `X` in double precision, or divide `y` by its size."
        )


def check_inputs_in_range(X: Any, dtype: np.dtype[Any]) -> None:
    """Refuse rows that are finite, but not in the precision of the model that they are to train."""
    if is_elsewhere(X) or X.dtype == dtype:
        return
    largest, limit = float(np.abs(X).max(initial=0)), float(np.finfo(dtype).max)
    if largest > limit:
        raise ValueError(
            f"`X` must be at most {limit:.0e}, the largest number in the precision of the model, {dtype}, got "
            f"{largest:g}. Divide `X` by its size, or begin with rows in double precision."
        )


@dataclass
class Seen:
    """What a first look saw: Σw and √(Σ w‖x‖²) over the rows, and how often it saw which label."""

    weight: float = 0.0
    length: float = 0.0
    labels: NDArray[Any] | None = None
    counts: NDArray[np.intp] | None = None

    def merge(self, other: Seen) -> None:
        self.weight, self.length = self.weight + other.weight, math.hypot(self.length, other.length)
        if self.labels is None or self.counts is None:
            self.labels, self.counts = other.labels, other.counts
        elif other.labels is not None:
            both = np.concatenate([self.labels, other.labels])
            self.labels, at = np.unique(both, return_inverse=True)
            self.counts = np.bincount(at, weights=np.concatenate([self.counts, other.counts])).astype(np.intp)

    @property
    def norm(self) -> float:
        """The root mean square norm of an input row."""
        return self.length / math.sqrt(self.weight) if self.weight > 0 else 0.0


def weighted_length(X: Any, weight: FloatArray) -> float:
    """√(Σ w‖x‖²) of rows; weights are checked later, and count as they are here."""
    if is_elsewhere(X):
        x, xp = as_real(X, "X"), namespace(X=X)
        unit = float(xp.max(xp.abs(x))) or 1.0
        squares = xp.sum((x / unit) ** 2, axis=tuple(range(1, x.ndim)))
        square = float(xp.sum(squares * beside(weight, x)))
    else:
        x, unit, info = np.asarray(X, dtype=np.float64).reshape(len(X), -1), 1.0, np.finfo(np.float64)
        square = float(np.einsum("ij,ij->i", x, x) @ weight)
        if not info.tiny / info.eps < square < np.inf:
            unit = float(np.abs(x).max()) or 1.0
            x = x / unit
            square = float(np.einsum("ij,ij->i", x, x) @ weight)
    return unit * math.sqrt(max(square, 0.0))


@dataclass(frozen=True)
class FirstLook:
    """Sees the norms of inputs of so many `columns`, the labels, or both."""

    columns: int
    norms: bool
    labels: bool
    name = "first look"
    work = 0.0

    @property
    def size(self) -> int:
        return max(1, min(_NUMBERS // self.columns, 4096))

    def begin(self) -> Seen:
        return Seen()

    def add(self, summary: Seen, block: Block, team: Team) -> Seen:
        seen = Seen()
        if self.norms:
            w = block.weights
            seen.weight, seen.length = float(w.sum()), weighted_length(block.X, w)
        if self.labels:
            labels = block.T
            if labels.dtype.kind == "f" and np.any(labels != np.trunc(labels)):
                raise ValueError("Unknown label type: continuous. `y` must hold labels of classes, got fractions.")
            seen.labels, seen.counts = np.unique(labels, return_counts=True)
        summary.merge(seen)
        return summary


@dataclass
class Summary:
    """What training keeps of rows: an accumulator of their sums, and where their columns lie, None of no rows."""

    state: Accumulator
    scales: Scales | None = None

    def merge(self, other: Summary) -> None:
        self.state.merge(other.state)
        self.see(other.scales)

    def see(self, scales: Scales | None) -> None:
        self.scales = scales if self.scales is None else self.scales if scales is None else self.scales.merged(scales)


@dataclass(frozen=True)
class Training:
    """Takes rows through the hidden layer into an accumulator.

    With `ridge`, a fixed one, rows are read once: the accumulator becomes another when this ridge does not suffice.
    """

    kind: type[Accumulator]
    encoder: Encoder
    bias: bool
    direct_link: bool
    activation: Activation
    algebra: Algebra
    input: Layout
    output: Layout
    targets: Targets
    chunk_size: int | None
    ridge: float | None = None
    before: Accumulator | None = None

    @property
    def name(self) -> str:
        return self.kind.method

    @lazy
    def layer(self) -> HiddenLayer:
        return HiddenLayer(self.encoder.weights, self.bias, self.direct_link, self.activation, self.algebra)

    @lazy
    def size(self) -> int:
        D, N, dtype = self.input.features, self.output.features, self.encoder.weights.dtype
        return self.chunk_size or chunk_rows(self.algebra, D, self.layer.width, N, dtype.itemsize)

    @property
    def work(self) -> float:
        width = self.layer.width
        return float(width * (self.input.features + self.output.features + width) * self.algebra.dim**2)

    def begin(self) -> Summary:
        if self.before is not None:
            return Summary(self.before)
        dtype = self.encoder.weights.dtype
        return Summary(self.kind(self.algebra, self.layer.width, self.output.features, dtype))

    def add(self, summary: Summary, block: Block, team: Team) -> Summary:
        H, t, targets, cost, known = self.numbers(block, team)
        summary.see(Scales.of(block.X, targets))
        weight = block.weight if cost is None else cost if block.weight is None else block.weight * cost
        if self.ridge is not None:
            summary.state = as_long_as_safe(summary.state, H, t, weight, self.ridge)
        summary.state.update(H, t, weight, count=block.count, team=team, known=known)
        return summary

    def numbers(self, block: Block, team: Team) -> tuple[FloatArray, FloatArray, Any, Weights, Planes | None]:
        """The hidden layer and the targets of rows, (m, width, d) and (m, N, d); the targets as columns, the cost of an
        error on each row, and planes of the targets where they are known."""
        dtype = self.encoder.weights.dtype
        check_inputs_in_range(block.X, dtype)
        x = self.input.pack(block.X, dtype)
        H, planes = self.layer(x, team)
        if block.targets_are_inputs:
            return H, x, block.X, None, planes
        targets, cost = self.targets(block.T)
        if tuple(targets.shape) != (wanted := self.output.shape(len(block))):
            raise ValueError(f"`y` must have the shape {wanted} as in the first block, got {tuple(targets.shape)}.")
        if is_elsewhere(x) and not is_elsewhere(targets):
            targets = beside(targets, x)  # indicators, which are made of labels in NumPy
        check_range(targets, dtype)
        return H, self.output.pack(targets, dtype), targets, cost, None

    def __getstate__(self) -> dict[str, Any]:
        """Without the layer, which is as large as the weights."""
        return {name: value for name, value in self.__dict__.items() if name not in ("layer", "size")}


@dataclass(frozen=True)
class Sampling:
    """The second pass over the rows: the hidden layer of a share of them, which are then left out one after the other.

    mix : (N, R), the combinations of the targets that stand for all of them; None for the targets themselves
    """

    training: Training
    share: float
    mix: NDArray[np.float64] | None
    name = "leave-one-out"

    @property
    def size(self) -> int:
        return self.training.size

    @property
    def work(self) -> float:
        return self.training.work * self.share

    def begin(self) -> RowSample:
        training = self.training
        targets = training.output.features if self.mix is None else self.mix.shape[1]
        d, dtype = training.algebra.dim, training.encoder.weights.dtype
        H, T = (np.zeros((0, columns, d), dtype) for columns in (training.layer.width, targets))
        return RowSample(H, T, np.zeros(0), np.zeros(0))

    def add(self, summary: RowSample, block: Block, team: Team) -> RowSample:
        cost = None if block.targets_are_inputs else self.training.targets(block.T)[1]
        counted = np.flatnonzero(block.weights * (1.0 if cost is None else cost) > 0)
        times: FloatArray = np.ones(len(counted))
        if self.share < 1 and len(counted):
            at, times = drawn(row_lengths(block.X)[counted], self.share)
            counted = counted[at]
        if len(counted) == 0:
            return summary
        if len(counted) < len(block):
            block = block.taken(counted)
        H, t, _, cost, _ = self.training.numbers(block, team)
        T = to_numpy(t) if self.mix is None else mixed(to_numpy(t), self.mix)
        # A row of weight 2 is two samples, of which one is left out; a cost is that of each of them.
        one, costs = np.minimum(block.weights, 1), 1.0 if cost is None else cost
        summary.merge(RowSample(to_numpy(H).copy(), T, one * costs, times * block.weights * costs))
        return summary


@dataclass(frozen=True)
class LeftOut:
    """The second pass of a search: Σ w‖e‖² of the errors that rows have when they are left out, and the sums of their
    leverages, (2, ridges).

    For every number of neurons there is a spectrum, a path of ridges, and the numbers of the hidden layer it keeps.
    """

    training: Training
    spectra: Sequence[Spectrum]
    paths: Sequence[NDArray[np.float64]]
    kept: Sequence[NDArray[np.intp]]
    name = "left out"

    @property
    def size(self) -> int:
        output = self.training.output
        ridges = max(len(path) for path in self.paths)
        return max(16, min(self.training.size, _SCRATCH // (ridges * output.dim * max(output.features, output.dim))))

    @property
    def work(self) -> float:
        return self.training.work

    def begin(self) -> list[NDArray[np.float64]]:
        return [np.zeros((2, len(path))) for path in self.paths]

    def add(self, summary: list[NDArray[np.float64]], block: Block, team: Team) -> list[NDArray[np.float64]]:
        dtype, output = self.spectra[0].state.dtype, self.training.output
        H, _ = self.training.layer(self.training.input.pack(block.X, dtype), team)
        t = output.pack(block.T, dtype)
        w = block.weights
        for total, spectrum, ridges, unknowns in zip(summary, self.spectra, self.paths, self.kept):
            e, leverage = residuals_by(BySpectrum(spectrum, ridges), H[:, unknowns], t, np.minimum(w, 1))
            e = e.reshape(len(w), len(ridges), -1)[:, :, output.places].astype(np.float64, copy=False)
            total += np.einsum("m,mrc,mrc->r", w, e, e), w @ leverage
        return summary
