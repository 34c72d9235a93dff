"""Execute what a store does not hold yet, on all cores, each run on one BLAS thread."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hyperelm.experiments.definition import Experiment, Result, Row, Settings, Unit
from hyperelm.experiments.store import Store


class Watch(Protocol):
    """Whoever looks on."""

    def begin(self, total: int, done: list[Row]) -> None: ...
    def advance(self, unit: Unit, rows: list[Row]) -> None: ...


def run(experiment: Experiment, directory: Path, *, jobs: int = -1, watch: Watch | None = None) -> None:
    """Do all runs that `directory` does not hold, and keep them there.

    It may end at any moment: the same call goes on from there, to the same results.

    Parameters
    ----------
    experiment : Experiment
    directory : Path
    jobs : int
        Processes; -1 takes all cores.
    watch : object with the methods `begin` and `advance`, optional
        Is told of every unit that is done.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.experiments import Store, load, run
    >>> few = ["models=['klein4']", "n_hidden=[11]", "networks=2", "few_hidden=[11]", "few_networks=1"]
    >>> with TemporaryDirectory() as folder:
    ...     run(load("lorenz", quick=True, changes=few), Path(folder), jobs=1)
    ...     with Store.open(Path(folder)) as store:
    ...         len(store.rows())
    2
    """
    units = experiment.units()
    with Store.running(directory, experiment) as store:
        waiting = store.waiting(units)
        if watch:
            watch.begin(sum(unit.count for unit in units), store.rows(None))
        if not waiting:
            return
        store.begin_session()
        with _interruptible() as stop, closing(_results(experiment, waiting, jobs, stop)) as results:
            for unit, result in results:
                store.add(unit, result)
                if watch:
                    watch.advance(unit, result.rows)


def _results(
    experiment: Experiment, units: list[Unit], jobs: int, stop: threading.Event
) -> Generator[tuple[Unit, Result]]:
    """Units with their results, in the order in which they are done; none is begun after `stop`."""
    parallel = Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        batch_size=1,
        # More units than these would wait where loky loses them, with a traceback, when it is ended.
        pre_dispatch="2*n_jobs",
        # Not with the first unit: there may never be one.
        initializer=_end_with,
        initargs=(os.getpid(),),
    )
    wanted = takewhile(lambda _: not stop.is_set(), units)
    with _deaf_children():
        results: Any = parallel(
            delayed(execute)(experiment.name, experiment.settings, unit, os.getpid()) for unit in wanted
        )
    try:
        for result in results:  # noqa: UP028 (`yield from` would hand GeneratorExit on)
            yield result
    except GeneratorExit:
        # Nobody takes the results. Ending workers amid their work is loud, so they come to the end of it.
        stop.set()
        deque(results, maxlen=0)
        raise


def execute(name: str, settings: Settings, unit: Unit, parent: int) -> tuple[Unit, Result]:
    """One unit, in whatever process."""
    if os.getpid() != parent:
        _one_thread()
    with threadpool_limits(1, user_api="blas"):
        return unit, import_module(f"hyperelm.experiments.{name}").execute(unit, settings)


@lru_cache(maxsize=1)
def _one_thread() -> None:
    """One thread for good: those of a dask worker that each set and reset the limit would undo each other's."""
    threadpool_limits(1, user_api="blas")


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even by `kill -9`: it would wait for work for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# ---------------------------------------------------------------------- Ctrl-C


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that units under way can end and be kept; a second Ctrl-C does not wait."""
    stop = threading.Event()
    usual = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        signal.signal(signal.SIGINT, usual)
        stop.set()

    # Where Ctrl-C is ignored, or others handle it, that stays so.
    mine = usual is signal.default_int_handler and _may_handle_signals()
    if mine:
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        if mine:
            signal.signal(signal.SIGINT, usual)
    if stop.is_set():
        raise KeyboardInterrupt


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that are started here do not hear Ctrl-C, which a terminal sends to them, too."""
    if not _may_handle_signals():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # children inherit that a signal is ignored
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _may_handle_signals() -> bool:
    return threading.current_thread() is threading.main_thread()
