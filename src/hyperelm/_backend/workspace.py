"""Threads and scratch memory for work on NumPy arrays.

BLAS runs a matrix product on all cores. The work between two products, such as activations and sums, would run on one.
So a team of threads shares all work, and each of them calls BLAS with one thread. The work is cut into pieces. No two
pieces write to the same place, so the result does not depend on which thread takes which piece.

The threads of a BLAS wait for each other in a loop that keeps a processor busy. Where other work runs beside them, most
of the time is lost in that loop. So BLAS gets more than one thread for large decompositions only, and never more than
the processors that the process may use. The threads of a team sleep while they wait.

Products of narrow matrices are slow. So products stay whole where there are enough of them for all threads. The others
are cut into as many pieces as there are threads, so the last bits of a result may depend on the number of threads.

`at_work` makes a team the current one. Kernels ask for it with `current_team`, so no function has to pass it on.

Fresh memory for a chunk of rows costs more than the arithmetic that fills it. So a team lends buffers by name, and
lends the same buffer again at the next chunk. Freed heap memory fragments, so large temporaries get their own pages
(`scratch`). While a ridge is chosen, these pages serve again (`keeping_scratch`).
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

from hyperelm._backend.processors import processors

Task = Callable[[], object]
S = TypeVar("S")
T = TypeVar("T")

_LARGE = 2**21  # bytes; arrays of at least this size get their own pages
_HUGE_PAGE = 2**21  # bytes, on most processors
_SPARE = 2**26  # bytes; dropped memory beyond this is not kept
_WORTHWHILE = 3e8  # multiply-adds; threads cost more than they save for less work
_WORTH_WAITING = 5e9  # multiply-adds; for less work the threads of a BLAS may lose more than they save


# ---------------------------------------------------------------------- memory


class _Spare:
    """Memory of scratch arrays that were dropped, for those to come. It goes back to the system when this is closed."""

    def __init__(self) -> None:
        self._memory: list[mmap.mmap] | None = []

    def put(self, memory: mmap.mmap) -> None:
        if self._memory is not None and sum(map(len, self._memory)) + len(memory) <= _SPARE:
            self._memory.append(memory)

    def taken(self, size: int) -> mmap.mmap | None:
        """The smallest memory of at least this size; None if there is none."""
        fitting = [memory for memory in self._memory or [] if size <= len(memory)]
        if not fitting or self._memory is None:
            return None
        memory = min(fitting, key=len)
        self._memory.remove(memory)
        return memory

    def close(self) -> None:
        self._memory = None


_spare: ContextVar[_Spare | None] = ContextVar("spare", default=None)


@contextmanager
def keeping_scratch() -> Iterator[None]:
    """In this context the memory of a scratch array that is dropped serves the next one of its size.

    New pages take as long as the arithmetic on them.
    """
    spare = _Spare()
    token = _spare.set(spare)
    try:
        yield
    finally:
        _spare.reset(token)
        spare.close()


def scratch(shape: tuple[int, ...], dtype: DTypeLike, *, zeros: bool = True) -> NDArray[Any]:
    """An array for temporary work, whose memory goes back to the system when the array is dropped.

    It holds zeros unless nobody asks for them.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype) if zeros else np.empty(shape, dtype)
    spare = _spare.get()
    known = None if spare is None else spare.taken(size)
    memory = _pages(size) if known is None else known
    flat = np.frombuffer(memory, dtype, count=math.prod(shape))
    if known is not None and zeros:
        flat[...] = 0
    if spare is not None:
        weakref.finalize(flat, spare.put, memory).atexit = False  # every view of the memory keeps `flat` alive
    return flat.reshape(shape)


def _pages(size: int) -> mmap.mmap:
    """Memory of whole huge pages: systems align mappings of such a size, so that no small pages are at their ends."""
    size = -(-size // _HUGE_PAGE) * _HUGE_PAGE
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def scratch_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array for temporary work, in Fortran order, as LAPACK overwrites it."""
    copy = scratch(array.shape[::-1], array.dtype, zeros=False).T
    copy[...] = array
    return copy


# ---------------------------------------------------------------------- threads


class Team:
    """So many `threads`, the caller's among them, that do independent tasks, and arrays that are lent by name."""

    def __init__(self, pool: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self._pool, self.threads = pool, threads
        self._buffers: dict[tuple[Any, ...], NDArray[Any]] = {}
        self._made: dict[Hashable, Any] = {}

    def run(self, tasks: Iterable[Task]) -> None:
        """Do all tasks, in any order."""
        self.map(lambda task: task(), tasks)

    def map(self, function: Callable[[S], T], arguments: Iterable[S]) -> list[T]:
        """`function` of every argument, in their order. A thread that is free takes the next argument."""
        waiting: SimpleQueue[tuple[int, S]] = SimpleQueue()  # gives each argument to one thread, with or without a GIL
        for numbered in enumerate(arguments):
            waiting.put(numbered)
        results: dict[int, T] = {}

        def work() -> None:
            while True:
                try:
                    n, argument = waiting.get_nowait()
                except Empty:
                    return
                results[n] = function(argument)

        futures = [self._pool.submit(work) for _ in range(self.threads - 1)] if self._pool else []
        work()
        for future in futures:
            future.result()
        return [results[n] for n in range(len(results))]

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, of_thread: bool = False) -> NDArray[Any]:
        """An uninitialised array: the same memory at every call with this name, or each thread's own."""
        key = (name, np.dtype(dtype), threading.get_ident() if of_thread else None)
        size = math.prod(shape)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[key] = scratch((size,), dtype)
        return buffer[:size].reshape(shape)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called for the first use of this key and kept as long as the team."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


_team: ContextVar[Team | None] = ContextVar("team", default=None)


def current_team() -> Team:
    """The team that is at work, or the calling thread alone."""
    return _team.get() or Team()


@contextmanager
def at_work(multiply_adds: float) -> Iterator[None]:
    """Make a team the current one, with as many threads as BLAS may use now if the work is worth it.

    Inside a worker of joblib that is one thread. BLAS itself has one thread meanwhile.
    """
    threads = min(_blas_threads(), processors()) if multiply_adds >= _WORTHWHILE else 1
    with _limited_to(1, _blas()):
        if threads == 1:
            with _current(Team()):
                yield
            return
        with ThreadPoolExecutor(threads - 1) as pool, _current(Team(pool, threads)):
            yield


@contextmanager
def alone() -> Iterator[None]:
    """Make the calling thread alone the current team, and leave all libraries as they are."""
    with _current(Team()):
        yield


@contextmanager
def _current(team: Team) -> Iterator[None]:
    token = _team.set(team)
    try:
        yield
    finally:
        _team.reset(token)


def pieces(length: int, count: int) -> list[slice]:
    """`count` nearly equal slices of a length, fewer if it is shorter."""
    count = max(1, min(count, length))
    return [slice(n * length // count, (n + 1) * length // count) for n in range(count)]


def cuts(tasks: int, threads: int) -> list[int]:
    """Into how many pieces to cut each of so many equal tasks. Only the last ones, too few for all threads, are cut."""
    left = tasks % threads
    return [1] * (tasks - left) + [threads // math.gcd(left, threads)] * left


# ---------------------------------------------------------------------- threads of BLAS


@contextmanager
def one_blas(multiply_adds: float = math.inf) -> Iterator[None]:
    """Leave all threads to SciPy's BLAS: one if the work is small, and at most one for each processor.

    NumPy and SciPy may each bring a BLAS library. The threads of one library that wait for work slow down those of the
    other.
    """
    threads = processors() if multiply_adds >= _WORTH_WAITING else 1
    with _limited_to(1, _of_numpy_alone()), _limited_to(threads, _blas()):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit all BLAS libraries, and so the teams that are made meanwhile, to one thread."""
    with _limited_to(1, _blas()):
        yield


@contextmanager
def _limited_to(threads: int, libraries: Sequence[Any]) -> Iterator[None]:
    """Limit libraries to so many threads. If several do so at a time, the last to leave restores the old number."""
    for library in libraries:
        with _lock:
            holders, before = _limited.get(library.filepath, (0, library.num_threads))
            _limited[library.filepath] = holders + 1, before
            library.set_num_threads(min(threads, library.num_threads))
    try:
        yield
    finally:
        for library in libraries:
            with _lock:
                holders, before = _limited.pop(library.filepath)
                if holders > 1:
                    _limited[library.filepath] = holders - 1, before
                else:
                    library.set_num_threads(before)


_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # If another thread held the lock, nobody would release it in the child.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_limited: dict[str, tuple[int, int]] = {}  # by library: how many limit it, and its number of threads before


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """The BLAS libraries of the process, as threadpoolctl controls them."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _blas_threads() -> int:
    return max((library.num_threads for library in _blas()), default=1)


@lru_cache(maxsize=1)
def _of_numpy_alone() -> list[Any]:
    """The BLAS libraries that NumPy calls and SciPy does not; none where that cannot be told."""
    of_numpy, of_scipy = (_library_of(name) for name in ("numpy.linalg._umath_linalg", "scipy.linalg._fblas"))
    if of_numpy is None or of_scipy is None or of_numpy == of_scipy:
        return []
    return [library for library in _blas() if os.path.realpath(library.filepath) == of_numpy]


class _Origin(ctypes.Structure):
    """What `dladdr` tells of an address: the file that it was loaded from comes first."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _library_of(module: str) -> str | None:
    """The file of the library that answers when an extension module calls dgemm, as the dynamic linker resolves it."""
    try:
        linked = ctypes.CDLL(import_module(module).__file__)
        find_origin = ctypes.CDLL(None).dladdr
    except (ImportError, OSError, AttributeError, TypeError):  # another system, or another build
        return None
    for name in (f"{prefix}dgemm{suffix}" for prefix in ("scipy_", "") for suffix in ("_64_", "_")):
        function, origin = getattr(linked, name, None), _Origin()
        if function and find_origin(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(origin)) and origin.file:
            return os.path.realpath(os.fsdecode(origin.file))
    return None
