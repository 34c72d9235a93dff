"""Where rows come from: arrays in memory, sparse arrays, arrays in files, and chunks that the user's code makes.

Training makes one or more passes over a *source* of rows. A pass reads the rows in chunks and gathers something from
them. Only the arrays that it asks for are read. An array in memory was checked as a whole before. Rows from a file or
an iterable are checked when they are read, and no more than one chunk of them is ever in memory. Of a sparse array no
more than one chunk is ever dense.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from hyperelm._backend import backend_of, chunks
from hyperelm._backend.arrays import as_parts, chunk_of, taken
from hyperelm._lazy import lazy
from hyperelm._linalg.planes import Numbers
from hyperelm._solvers.accumulator import check_finite
from hyperelm._training.progress import Progress

S = TypeVar("S")
R = TypeVar("R")


def is_stored(array: Any) -> bool:
    """Whether an array is read in chunks: a memory map, or an object that is sliced like an array (zarr, HDF5)."""
    if isinstance(array, np.ndarray):
        return isinstance(array, np.memmap)
    sliced = isinstance(getattr(array, "dtype", None), np.dtype) and hasattr(array, "__getitem__")
    # Frames and series are sliced by labels; arrays of other libraries are in memory already.
    other = any(hasattr(array, name) for name in ("iloc", "__array_namespace__"))
    return sliced and not other and not issparse(array) and len(getattr(array, "shape", ())) > 0


def is_chunked(X: Any) -> bool:
    """Whether X is an iterable of chunks of rows, and not itself an array or a list of numbers."""
    if isinstance(X, list) and X and _are_arrays(X[0]):
        return True
    return hasattr(X, "__iter__") and not any(hasattr(X, name) for name in ("__getitem__", "__array__", "shape"))


class Stored:
    """An array whose rows are read, and checked, when they are needed.

    Parameters
    ----------
    array : array
        It gives rows when it is sliced.
    name : str
        The name of the array in messages.
    before : int
        The number of the first row in messages.
    labels : bool
        Whether the array may hold labels that are not numbers.
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
        # Files may hold an array in pieces. They are read whole: unpacking one again for every few rows would be slow.
        pieces = getattr(array, "chunks", None)
        self._step = int(np.max(pieces[0])) if pieces else 1
        self._held: tuple[int, NDArray[Any]] | None = None
        if not labels and self.dtype.kind not in "biufc":
            raise ValueError(f"`{name}` must be an array of real or complex numbers, got dtype {self.dtype}.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        chunk = np.ascontiguousarray(self._read(rows.start, rows.stop))
        if chunk.dtype.kind in "fc":
            check_finite(Numbers(as_parts(chunk)), self._name, self._before + rows.start)
        return chunk

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        if self._step == 1:
            return np.asarray(self._array[start:stop])
        if self._held is None or not self._held[0] <= start <= stop <= self._held[0] + len(self._held[1]):
            end = min(-(-stop // self._step) * self._step, len(self))
            self._held = start, np.asarray(self._array[start:end])
        first, held = self._held
        return held[start - first : stop - first]


class DenseChunks:
    """A sparse array of shape (n, columns) whose rows are dense when they are sliced."""

    def __init__(self, array: Any) -> None:
        self._rows = array.tocsr()
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = array.dtype

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        return np.asarray(self._rows[rows].toarray())


Array = NDArray[Any] | Stored


@dataclass(eq=False)
class Rows:
    """Inputs with their targets and weights: arrays with one entry a row, in memory or not.

    The targets are as the user gives them (values, or labels); an auto-encoder's are X itself.
    """

    X: Array
    T: Array
    weight: Array | None

    def __len__(self) -> int:
        return self.X.shape[0]

    def chunk(self, at: slice) -> Chunk:
        return Chunk(self, at)


class Chunk:
    """Some of the rows. Each array is read when it is first asked for; complex numbers become pairs on a last axis."""

    def __init__(self, rows: Rows, at: slice) -> None:
        self._rows, self._at = rows, at

    def __len__(self) -> int:
        return self._at.stop - self._at.start

    @lazy
    def X(self) -> NDArray[Any]:
        return as_parts(chunk_of(self._rows.X, self._at))

    @lazy
    def T(self) -> NDArray[Any]:
        return self.X if self.targets_are_inputs else as_parts(chunk_of(self._rows.T, self._at))

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

    def taken(self, at: NDArray[np.intp]) -> Chunk:
        """The rows at these places."""
        X = taken(self.X, at)
        T = X if self.targets_are_inputs else taken(self.T, at)
        return Rows(X, T, None if self.weight is None else self.weight[at]).chunk(slice(0, len(at)))

    @property
    def count(self) -> float:
        """For how many samples the rows stand."""
        return float(len(self)) if self.weight is None else float(self.weight.sum(dtype=np.float64))


class Pass(Protocol[S]):
    """One reading of the rows, and what it gathers from them."""

    @property
    def name(self) -> str:
        """The name of the pass in the progress line."""

    @property
    def size(self) -> int:
        """The number of rows in a chunk."""

    @property
    def work(self) -> float:
        """The number of multiply-adds for a row."""

    def begin(self) -> S:
        """What is gathered from no rows."""

    def add(self, gathered: S, chunk: Chunk) -> S:
        """What is gathered with these rows, too. It may be the same object, changed."""


class Source(Protocol):
    """Rows for one or more passes.

    first : rows that show shapes and precision: all rows, some of them, or none
    once : whether there can be one pass only
    """

    first: Rows
    once: bool

    def fold(self, work: Pass[S], finish: Callable[[S], R]) -> R:
        """Give all rows to a pass, then give what it gathered to `finish`, and return the result of that."""


def itself(gathered: S) -> S:
    """The `finish` of a pass whose result is wanted as it is."""
    return gathered


def add_all(work: Pass[S], gathered: S, rows: Rows, advance: Callable[[int], None] | None = None) -> S:
    """Give rows to a pass, chunk by chunk."""
    for at in chunks(len(rows), work.size):
        gathered = work.add(gathered, rows.chunk(at))
        if advance:
            advance(at.stop - at.start)
    return gathered


class LocalSource:
    """Rows that this process reads, one after the other.

    Parameters
    ----------
    parts : iterable of Rows
        If it is an iterator, there can be one pass only (`once`).
    total : int or None
        The number of rows, if it is known.
    title : str
        The title of the progress line. No progress is shown if it is empty.
    """

    def __init__(self, parts: Iterable[Rows], total: int | None, title: str) -> None:
        iterator = iter(parts)
        self.once, self.first = iterator is parts, next(iterator)
        self._parts = chain([self.first], iterator) if self.once else parts
        self._total, self._title = total, title

    def fold(self, work: Pass[S], finish: Callable[[S], R]) -> R:
        return finish(self._gathered(work))

    def _gathered(self, work: Pass[S]) -> S:
        """What the pass gathers from all rows. When this returns, the memory of the threads that worked is free."""
        gathered = work.begin()
        n_rows = float("inf") if self._total is None else self._total
        progress = Progress(self._title, work.name, self._total)
        with backend_of(self.first.X).at_work(n_rows * work.work), progress:
            for part in self._parts:
                gathered = add_all(work, gathered, part, progress.advance)
        return gathered


class GivenChunks:
    """Rows that an iterable gives chunk by chunk: (X, y), (X, y, sample_weight), or X where nothing else is needed.

    `check` makes `Rows` of the three arrays. It is told the number of their first row, and whether they are the first.
    """

    def __init__(self, given: Iterable[Any], check: Callable[..., Rows]) -> None:
        self._given, self._check, self._known = given, check, False

    def __iter__(self) -> Iterator[Rows]:
        """Check each chunk and give it as `Rows`, without empty ones."""
        seen = 0
        for chunk in self._given:
            # A chunk may be several arrays, as a tuple or as the list that a data loader gives.
            arrays = chunk if isinstance(chunk, tuple) or _are_arrays(chunk) else (chunk,)
            if not 0 < len(arrays) <= 3:
                raise ValueError(
                    "The chunks of `X` must be (X, y) or (X, y, sample_weight), or arrays X for an auto-encoder, got "
                    f"{len(arrays)} values."
                )
            X, y, weight = (*arrays, None, None)[:3]
            if hasattr(X, "shape") and X.shape[0] == 0:
                continue
            try:
                rows = self._check(X, y, weight, reset=not self._known, before=seen)
            except ValueError as error:
                raise ValueError(f"Chunk from row {seen} on: {error}") from error
            self._known = True
            seen += len(rows)
            yield rows
        if seen == 0:
            raise ValueError("`X` must give at least one chunk with rows, got none. Can its chunks be read again?")


def _are_arrays(chunk: Any) -> bool:
    return isinstance(chunk, tuple | list) and len(chunk) > 0 and len(getattr(chunk[0], "shape", ())) > 1
