"""Threads and scratch memory for training.

Between two matrix products there is work that no BLAS spreads over the cores: combinations of components,
activations, sums. So the pieces themselves are spread, each on one BLAS thread. A piece writes where no other does, so
which thread takes it does not matter to the result. Products stay whole where there are enough of them, since those of
narrow matrices are slower: into how many pieces the others are cut follows from the number of threads, and so may the
last bits of the result.

Fresh memory of the size of a row block costs more than the arithmetic that fills it, so buffers are used again.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

from hyperelm._memory import scratch

Task = Callable[[], object]
S = TypeVar("S")
T = TypeVar("T")

_WORTHWHILE = 3e8  # multiply-adds below which threads cost more than they bring


class Team:
    """Runs independent tasks on so many `threads`, the caller's among them, and lends arrays by name."""

    def __init__(self, pool: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self._pool, self.threads = pool, threads
        self._buffers: dict[tuple[Any, ...], NDArray[Any]] = {}
        self._made: dict[Hashable, Any] = {}

    def run(self, tasks: Iterable[Task]) -> None:
        """Do all tasks, in any order: whoever is free takes the next."""
        queue = iter(list(tasks))

        def work() -> None:
            for task in queue:
                task()

        futures = [self._pool.submit(work) for _ in range(self.threads - 1)] if self._pool else []
        work()
        for future in futures:
            future.result()

    def map(self, function: Callable[[S], T], arguments: Iterable[S]) -> list[T]:
        """`function` of every argument, in their order."""
        arguments = list(arguments)
        results: dict[int, T] = {}

        def task(n: int) -> None:
            results[n] = function(arguments[n])

        self.run([partial(task, n) for n in range(len(arguments))])
        return [results[n] for n in range(len(arguments))]

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, of_thread: bool = False) -> NDArray[Any]:
        """An uninitialised array: the same memory at every call with this name, or each thread's own."""
        key = (name, np.dtype(dtype), threading.get_ident() if of_thread else None)
        size = math.prod(shape)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[key] = scratch((size,), dtype)
        return buffer[:size].reshape(shape)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made at the first call and kept as long as the team."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made


@contextmanager
def team(multiply_adds: float) -> Iterator[Team]:
    """A team of as many threads as BLAS may use now (one inside a joblib worker), if the work is worth it."""
    if multiply_adds < _WORTHWHILE or (threads := _blas_threads()) == 1:
        yield Team()
        return
    with _on_one_thread(_blas()), ThreadPoolExecutor(threads - 1) as pool:
        yield Team(pool, threads)


@contextmanager
def one_blas() -> Iterator[None]:
    """SciPy's BLAS alone on all threads.

    NumPy and SciPy bring a library each, and the threads of one that wait for work slow down those of the other.
    """
    with _on_one_thread([library for library in _blas() if "numpy.libs" in library.filepath]):
        yield


@contextmanager
def _on_one_thread(libraries: Sequence[Any]) -> Iterator[None]:
    """Limit libraries that threads of the caller may limit at the same time: the last to leave restores them."""
    for library in libraries:
        with _lock:
            holders, before = _limited.get(library.filepath, (0, library.num_threads))
            _limited[library.filepath] = holders + 1, before
            library.set_num_threads(1)
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
if hasattr(os, "register_at_fork"):  # a lock that another thread holds would never be released in the child
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_limited: dict[str, tuple[int, int]] = {}  # by how many, and how many threads there were before


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """The libraries, as threadpoolctl knows them."""
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _blas_threads() -> int:
    return max((library.num_threads for library in _blas()), default=1)


def pieces(length: int, count: int) -> list[slice]:
    """`count` nearly equal slices of a length, fewer if it is shorter."""
    count = max(1, min(count, length))
    return [slice(n * length // count, (n + 1) * length // count) for n in range(count)]


def cuts(tasks: int, threads: int) -> list[int]:
    """Into how many pieces to cut each of so many equal tasks: only those left over when all threads had as many."""
    left = tasks % threads
    return [1] * (tasks - left) + [threads // math.gcd(left, threads)] * left
