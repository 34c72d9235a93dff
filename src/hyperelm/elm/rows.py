"""Where rows come from: arrays in memory, arrays in files, and blocks that somebody else makes.

Training makes one or more passes over a *source* of rows. A pass starts a summary, adds blocks of rows to it, and does
something with it at the end; what it asks of the rows decides what is read of them. An array in memory was checked as a
whole before; rows from elsewhere are checked when they are read, and no more than a block of them is ever in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from hyperelm._arrays import is_elsewhere, row_block, taken
from hyperelm._lazy import lazy
from hyperelm.elm.progress import Progress
from hyperelm.solvers.accumulator import check_finite
from hyperelm.solvers.sums import row_blocks
from hyperelm.solvers.team import Team, team

S = TypeVar("S")
R = TypeVar("R")


def is_stored(array: Any) -> bool:
    """Whether an array is read in blocks: a memory map, or what is sliced like an array and is none (zarr, HDF5)."""
    if isinstance(array, np.ndarray):
        return isinstance(array, np.memmap)
    sliced = isinstance(getattr(array, "dtype", None), np.dtype) and hasattr(array, "__getitem__")
    # Frames and series are sliced by labels; arrays of other libraries are in memory already.
    other = any(hasattr(array, name) for name in ("iloc", "__array_namespace__"))
    return sliced and not other and not issparse(array) and len(getattr(array, "shape", ())) > 0


def is_blocks(X: Any) -> bool:
    """Whether X is an iterator or another iterable of blocks: nothing that is itself like an array, as most lists."""
    if isinstance(X, list) and X and _are_arrays(X[0]):
        return True
    return hasattr(X, "__iter__") and not any(hasattr(X, name) for name in ("__getitem__", "__array__", "shape"))


class Stored:
    """An array whose rows are read, and checked, when they are needed.

    Parameters
    ----------
    array : array
        What gives rows when it is sliced.
    name : str
        What messages call it.
    before : int
        The number of its first row in messages.
    labels : bool
        Whether it may hold what is not a number.
    """

    def __init__(self, array: Any, name: str, *, before: int = 0, labels: bool = False) -> None:
        self.shape: tuple[int, ...] = tuple(array.shape)
        if any(math.isnan(length) for length in self.shape):
            raise ValueError(
                f"`{name}` must have a known shape, got {self.shape}. Use `hyperelm.dask` for such arrays."
            )
        self.ndim = len(self.shape)
        self.dtype: np.dtype[Any] = array.dtype
        self._array, self._name, self._before = array, name, before
        # What is stored in chunks is read by whole chunks, for none should be unpacked for every few of its rows.
        chunks = getattr(array, "chunks", None)
        self._step = int(np.max(chunks[0])) if chunks else 1
        self._held: tuple[int, NDArray[Any]] | None = None
        if self.dtype.kind == "c":
            raise ValueError(f"Complex data not supported, got `{name}` of dtype {self.dtype}.")
        if not labels and self.dtype.kind not in "biuf":
            raise ValueError(f"`{name}` must be an array of real numbers, got dtype {self.dtype}.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        block = np.ascontiguousarray(self._read(rows.start, rows.stop))
        if block.dtype.kind == "f":
            check_finite(block, self._name, self._before + rows.start)
        return block

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        if self._step == 1:
            return np.asarray(self._array[start:stop])
        if self._held is None or not self._held[0] <= start <= stop <= self._held[0] + len(self._held[1]):
            end = min(-(-stop // self._step) * self._step, len(self))
            self._held = start, np.asarray(self._array[start:end])
        first, held = self._held
        return held[start - first : stop - first]


Array = NDArray[Any] | Stored


class Rows:
    """Inputs with their targets and weights: arrays with one entry a row, in memory or not.

    The targets are as the user gives them (values, or labels); an auto-encoder's are X itself.
    """

    def __init__(self, X: Array, T: Array, weight: Array | None) -> None:
        self.X, self.T, self.weight = X, T, weight

    def __len__(self) -> int:
        return self.X.shape[0]

    def block(self, at: slice) -> Block:
        return Block(self, at)


class Block:
    """Some of the rows, in memory as soon as they are asked for."""

    def __init__(self, rows: Rows, at: slice) -> None:
        self._rows, self._at = rows, at

    def __len__(self) -> int:
        return self._at.stop - self._at.start

    @lazy
    def X(self) -> NDArray[Any]:
        return row_block(self._rows.X, self._at)

    @lazy
    def T(self) -> NDArray[Any]:
        return self.X if self.targets_are_inputs else row_block(self._rows.T, self._at)

    @lazy
    def weight(self) -> NDArray[Any] | None:
        return None if self._rows.weight is None else self._rows.weight[self._at]

    @property
    def weights(self) -> NDArray[Any]:
        """For how many samples each row stands."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def targets_are_inputs(self) -> bool:
        return self._rows.T is self._rows.X

    def taken(self, at: NDArray[np.intp]) -> Block:
        """Those of the rows with these numbers."""
        X = taken(self.X, at)
        T = X if self.targets_are_inputs else taken(self.T, at)
        return Rows(X, T, None if self.weight is None else self.weight[at]).block(slice(0, len(at)))

    @property
    def count(self) -> float:
        """For how many samples the rows stand."""
        return float(len(self)) if self.weight is None else float(self.weight.sum(dtype=np.float64))


class Pass(Protocol[S]):
    """One reading of the rows."""

    @property
    def name(self) -> str:
        """What the progress bar calls it."""

    @property
    def size(self) -> int:
        """Rows of a block."""

    @property
    def work(self) -> float:
        """Multiply-adds for a row."""

    def begin(self) -> S:
        """The summary of no rows."""

    def add(self, summary: S, block: Block, team: Team) -> S:
        """The summary with more rows, which may be the same object."""


class Source(Protocol):
    """Rows that can be gone through.

    first : what decides shapes and precision; its rows may be a part of all, or none
    once : whether there is but one pass
    """

    first: Rows
    once: bool

    def fold(self, work: Pass[S], finish: Callable[[S], R]) -> R:
        """Add all rows to the summary of a pass, and do something with it."""


def itself(summary: S) -> S:
    """What to do with a summary that is wanted as it is."""
    return summary


def add_all(work: Pass[S], summary: S, rows: Rows, crew: Team, advance: Callable[[int], None] | None = None) -> S:
    """Add rows to a summary, block by block."""
    for at in row_blocks(len(rows), work.size):
        summary = work.add(summary, rows.block(at), crew)
        if advance:
            advance(at.stop - at.start)
    return summary


class Local:
    """Rows that this process reads, one after the other.

    Parameters
    ----------
    parts : iterable of Rows
        An iterator is gone through once.
    total : int or None
        The number of rows, if it is known.
    title : str
        What the progress bar calls it; none is shown if it is empty.
    """

    def __init__(self, parts: Iterable[Rows], total: int | None, title: str) -> None:
        self.once = iter(parts) is parts
        self._parts, self._total, self._title = parts, total, title
        iterator = iter(parts)
        self.first = next(iterator)
        if self.once:
            self._parts = chain([self.first], iterator)

    def fold(self, work: Pass[S], finish: Callable[[S], R]) -> R:
        return finish(self._summary(work))

    def _summary(self, work: Pass[S]) -> S:
        """Of all rows; on return the memory that a team works in is free again."""
        summary = work.begin()
        rows = float("inf") if self._total is None else self._total
        # Other libraries than NumPy have threads of their own.
        rows = 0.0 if is_elsewhere(self.first.X) else rows
        with team(rows * work.work) as crew, Progress(self._title, work.name, self._total) as progress:
            for part in self._parts:
                summary = add_all(work, summary, part, crew, progress.advance)
        return summary


class Blocks:
    """Rows that an iterable gives block by block: (X, y), (X, y, sample_weight), or X where nothing else is needed.

    `check` makes `Rows` of the three, given the number of the first row and whether it is the first block of all.
    """

    def __init__(self, blocks: Iterable[Any], check: Callable[..., Rows]) -> None:
        self._blocks, self._check, self._known = blocks, check, False

    def __iter__(self) -> Iterator[Rows]:
        seen = 0
        for block in self._blocks:
            rows = self._checked(block, seen)
            if rows is not None:
                seen += len(rows)
                yield rows
        if seen == 0:
            raise ValueError("`X` must give at least one block with rows, got none. Can its blocks be read again?")

    def _checked(self, block: Any, seen: int) -> Rows | None:
        arrays = block if _is_tuple(block) else (block,)
        if not 0 < len(arrays) <= 3:
            raise ValueError(
                f"The blocks of `X` must be (X, y) or (X, y, sample_weight), or arrays X for an auto-encoder, got "
                f"{len(arrays)} values."
            )
        X, y, weight = (*arrays, None, None)[:3]
        if hasattr(X, "shape") and X.shape[0] == 0:
            return None
        try:
            rows = self._check(X, y, weight, reset=not self._known, before=seen)
        except ValueError as error:
            raise ValueError(f"Block from row {seen} on: {error}") from error
        self._known = True
        return rows


def _is_tuple(block: Any) -> bool:
    """Whether a block is several arrays, as a tuple or as the list that a data loader gives."""
    return isinstance(block, tuple) or _are_arrays(block)


def _are_arrays(block: Any) -> bool:
    return isinstance(block, tuple | list) and len(block) > 0 and len(getattr(block[0], "shape", ())) > 1
