"""What training does with the rows when it goes through them.

A first look, where it is needed, finds what must be known before the hidden layer is drawn: the norm of the inputs,
the labels. Then every chunk goes through the hidden layer and into an accumulator. A further pass leaves rows out, one
after the other. What each pass gathers can be merged, so that rows may lie on several machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.catalogue import get
from hyperelm._backend import backend_of, limits
from hyperelm._backend.arrays import as_precision, beside, chosen_columns, moved, namespace, numpy_dtype, to_numpy
from hyperelm._lazy import lazy
from hyperelm._linalg.planes import Numbers
from hyperelm._network.activations import Function
from hyperelm._network.layers import Encoder, HiddenLayer, bias_number
from hyperelm._network.layout import Layout
from hyperelm._solvers.accumulator import Accumulator, Embedding, chunk_rows
from hyperelm._solvers.sample import RowSample, drawn, row_lengths
from hyperelm._training.rows import Chunk
from hyperelm._training.scales import Scales
from hyperelm._validation import FloatArray, as_real

_NUMBERS = 2**20  # that are looked at together
_SCRATCH = 3 * 2**20  # numbers in a chunk of rows
REAL = get("real")

Weights = FloatArray | None
# From targets as the user gives them to the array that is packed, and the cost of an error on each row.
Targets = Callable[[NDArray[Any]], tuple[NDArray[Any], Weights]]


def values(T: NDArray[Any]) -> tuple[NDArray[Any], Weights]:
    """Targets that are numbers already; an error costs the same everywhere."""
    return T, None


def check_range(array: Any, dtype: np.dtype[Any], name: str, of: str, *, may_vanish: bool = False) -> None:
    """Refuse numbers that overflow in the precision `dtype`, which is that of `of`, or that all vanish in it."""
    given = numpy_dtype(array)
    if given == dtype or given.kind != "f" or 0 in array.shape:  # whole numbers are within every precision
        return
    xp, info = namespace(array=array), np.finfo(dtype)
    largest = float(xp.max(xp.abs(as_real(array, name))))
    maximum, smallest = float(info.max), float(info.tiny)
    way_out = f"Give `X` in double precision, or divide `{name}` by its size."
    if largest > maximum:
        must = f"be at most {maximum:.0e}, the largest number in the precision of {of}, {dtype}"
        raise limits.refused(name, must, f"{largest:g}", way_out)
    if 0 < largest < smallest and not may_vanish:
        must = f"have a number above {smallest:.0e}, the smallest in the precision of {of}, {dtype}"
        raise limits.refused(name, must, f"at most {largest:g}", way_out)


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
    if X.shape[0] == 0:
        return 0.0
    x, xp, backend = as_real(X, "X"), namespace(X=X), backend_of(X)
    lengths = backend.in_double(backend.lengths(xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))))
    unit = float(xp.max(lengths)) or 1.0  # in which squares are numbers
    return unit * math.sqrt(max(float((lengths / unit) ** 2 @ beside(weight, lengths)), 0.0))


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

    def add(self, gathered: Seen, chunk: Chunk) -> Seen:
        seen = Seen()
        if self.norms:
            w = chunk.weights
            seen.weight, seen.length = float(w.sum()), weighted_length(chunk.X, w)
        if self.labels:
            labels = chunk.T
            if labels.dtype.kind == "f" and np.any(labels != np.trunc(labels)):
                raise ValueError("Unknown label type: continuous. `y` must hold labels of classes, got fractions.")
            seen.labels, seen.counts = np.unique(labels, return_counts=True)
        gathered.merge(seen)
        return gathered


@dataclass
class Trained:
    """What training gathers from rows.

    accumulator : their sums
    scales : where their columns lie; None of no rows
    inputs, sample : X and all rows, to be left out, if one chunk of NumPy's had them. They need no second pass.
    """

    accumulator: Accumulator
    scales: Scales | None = None
    inputs: Any = None
    sample: RowSample | None = None

    def merge(self, other: Trained) -> None:
        self.accumulator.merge(other.accumulator)
        self.see(other.scales)
        self.inputs = self.sample = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows, which stay where they are."""
        return self.__dict__ | {"inputs": None, "sample": None}

    def see(self, scales: Scales | None) -> None:
        self.scales = scales if self.scales is None else self.scales if scales is None else self.scales.merged(scales)


@dataclass(frozen=True)
class Training:
    """Takes rows through the hidden layer into an accumulator.

    With `ridge`, a fixed one, rows are read once: another accumulator takes over when this ridge does not suffice.
    `before` is the accumulator of rows that were seen earlier.

    The accumulator of a readout "algebra" is over the algebra. Those of other readouts are `by_component`: over the
    real numbers, with every component of the hidden layer as an unknown and every column as a target. Its sums contain
    those of any table (`Accumulator.over`).
    """

    method: type[Accumulator]
    encoder: Encoder
    bias: bool
    direct_link: bool
    activation: Function
    algebra: Algebra
    input: Layout
    output: Layout
    targets: Targets
    chunk_size: int | None
    readout: str = "algebra"
    ridge: float | None = None
    before: Accumulator | None = None

    @property
    def name(self) -> str:
        return self.method.method

    @property
    def by_component(self) -> bool:
        return self.readout != "algebra"

    @lazy
    def layer(self) -> HiddenLayer:
        return HiddenLayer(self.encoder.weights, self.bias, self.direct_link, self.activation, self.algebra)

    @property
    def width(self) -> int:
        """The unknowns of the output layer: neurons, inputs that are linked directly, bias."""
        return self.encoder.weights.shape[1] + (self.input.features if self.direct_link else 0) + self.bias

    @lazy
    def unknowns(self) -> Embedding:
        """The components of the width · d numbers [h, x, e] that rows may fill, as columns of an accumulator.

        The components of e are multiples of one column.
        """
        d = self.algebra.dim
        neurons = d * self.encoder.weights.shape[1]
        at = np.arange(neurons)
        if self.direct_link:
            at = np.append(at, neurons + self.input.places)
        source, factor = np.arange(len(at)), np.ones(len(at))
        if self.bias:
            e = bias_number(self.algebra)
            filled = np.flatnonzero(e)
            filled = filled[np.argsort(-np.abs(e[filled]), kind="stable")]  # the column is that of the largest
            at = np.append(at, d * (self.width - 1) + filled)
            source = np.append(source, np.full(len(filled), len(source)))
            factor = np.append(factor, e[filled] / e[filled[0]])
        return Embedding(at, source, factor, (self.width, d))

    @property
    def target_columns(self) -> Embedding:
        """The places of the columns of a target among the components of its numbers."""
        places = self.output.places
        return Embedding(places, np.arange(len(places)), np.ones(len(places)), (self.output.features, self.algebra.dim))

    @lazy
    def size(self) -> int:
        D, N, dtype = self.input.features, self.output.features, self.encoder.weights.dtype
        rows = chunk_rows(self.algebra, D, self.width, N, dtype.itemsize)
        # Rows of many columns from a file or a sparse array take as much memory as what is computed from them.
        return self.chunk_size or min(rows, max(64, _SCRATCH // self.input.columns // 16 * 16))

    @property
    def work(self) -> float:
        width = self.width
        return float(width * (self.input.features + self.output.features + width) * self.algebra.dim**2)

    def begin(self) -> Trained:
        if self.before is not None:
            return Trained(self.before)
        dtype = self.encoder.weights.dtype
        if self.by_component:
            return Trained(self.method(REAL, self.unknowns.columns, self.output.columns, dtype))
        return Trained(self.method(self.algebra, self.width, self.output.features, dtype))

    def add(self, gathered: Trained, chunk: Chunk) -> Trained:
        gathered.inputs = gathered.sample = None
        H, t, targets, cost = self.numbers(chunk)
        gathered.see(Scales.of(chunk.X, targets))
        weight = chunk.weight if cost is None else cost if chunk.weight is None else chunk.weight * cost
        if gathered.accumulator.n_rows == 0 and weight is None and isinstance(H, np.ndarray):
            gathered.inputs, gathered.sample = chunk.X, self.sample(H, t, targets)
        if self.by_component:
            H, t = self.components(H, targets)
        if self.ridge is not None:
            gathered.accumulator = gathered.accumulator.made_room(H, t.array, weight, self.ridge)
        gathered.accumulator.update(H, t, weight, count=chunk.count)
        return gathered

    def numbers(self, chunk: Chunk) -> tuple[FloatArray, Numbers, Any, Weights]:
        """The hidden layer and the targets of rows, (m, width, d) and (m, N, d), the targets as columns, and the cost
        of an error on each row."""
        dtype = self.encoder.weights.dtype
        check_range(chunk.X, dtype, "X", "the model", may_vanish=True)
        x = Numbers(self.input.pack(chunk.X, dtype))
        H = self.layer(x)
        if chunk.targets_are_inputs:
            return H, x, chunk.X, None
        targets, cost = self.targets(chunk.T)
        if tuple(targets.shape) != (wanted := self.output.shape_of_parts(len(chunk))):
            raise ValueError(f"`y` must have the shape {wanted} as in the first chunk, got {tuple(targets.shape)}.")
        targets = moved(targets, x.array)  # the indicators of labels are made in NumPy
        check_range(targets, dtype, "y", "`X`")
        return H, Numbers(self.output.pack(targets, dtype)), targets, cost

    def components(self, H: FloatArray, targets: Any) -> tuple[FloatArray, Numbers]:
        """The hidden layer, (m, width, d), and targets as columns, as rows of an accumulator `by_component`."""
        xp, m = namespace(H=H), H.shape[0]
        flat = chosen_columns(xp.reshape(H, (m, self.width * self.algebra.dim)), self.unknowns.first_places)
        columns = xp.reshape(as_precision(targets, numpy_dtype(H)), (m, self.output.columns, 1))
        return xp.reshape(flat, (m, flat.shape[1], 1)), Numbers(columns)

    def sample(self, H: FloatArray, t: Numbers, targets: Any) -> RowSample:
        """Rows to be left out, each of which counts once. Those of NumPy are not copied."""
        if self.readout == "free":
            H, t = self.components(H, targets)
        ones = np.ones(H.shape[0])
        return RowSample(to_numpy(H), to_numpy(t.array), ones, ones)

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
        d, unknowns, targets = training.algebra.dim, training.width, training.output.features
        if training.readout == "free":
            d, unknowns, targets = 1, training.unknowns.columns, training.output.columns
        targets, dtype = targets if self.mix is None else self.mix.shape[1], training.encoder.weights.dtype
        H, T = (np.zeros((0, columns, d), dtype) for columns in (unknowns, targets))
        return RowSample(H, T, np.zeros(0), np.zeros(0))

    def of(self, inputs: Any, sample: RowSample) -> RowSample:
        """The same of rows that went through the hidden layer already and count once each."""
        if self.share < 1:
            at, times = drawn(row_lengths(inputs), self.share)
            sample = sample.taken(at, times)
        return sample.mixed(self.mix)

    def add(self, gathered: RowSample, chunk: Chunk) -> RowSample:
        cost = None if chunk.targets_are_inputs else self.training.targets(chunk.T)[1]
        counted = np.flatnonzero(chunk.weights * (1.0 if cost is None else cost) > 0)
        times: FloatArray = np.ones(len(counted))
        if self.share < 1 and len(counted):
            at, times = drawn(row_lengths(chunk.X)[counted], self.share)
            counted = counted[at]
        if len(counted) == 0:
            return gathered
        if len(counted) < len(chunk):
            chunk = chunk.taken(counted)
        H, t, columns, cost = self.training.numbers(chunk)
        sample = self.training.sample(H, t, columns).mixed(self.mix)
        # A row of weight 2 is two samples, of which one is left out; a cost is that of each of them.
        one, costs = np.minimum(chunk.weights, 1), 1.0 if cost is None else cost
        gathered.merge(
            RowSample(sample.H.copy(), sample.T, one * costs, times * chunk.weights * costs, self.share == 1)
        )
        return gathered
