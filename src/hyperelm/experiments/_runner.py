"""Do the units that a store does not hold yet, on all cores, each run on one BLAS thread, and show the progress."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from importlib import import_module
from itertools import takewhile
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hyperelm.experiments._definition import MAIN, Experiment, Result, Row, Settings, Unit
from hyperelm.experiments._ranking import Leader
from hyperelm.experiments._store import Store, printable
from hyperelm.progress import Progress


class Watch:
    """Show the progress of `run` on standard error: how many runs are done, and which model leads.

    Parameters
    ----------
    experiment : Experiment

    Examples
    --------
    >>> from hyperelm.experiments import Watch, load
    >>> with Watch(load("lorenz")) as watch:
    ...     pass  # run(experiment, directory, watch=watch)
    """

    def __init__(self, experiment: Experiment) -> None:
        self._name, self._remark = experiment.name, experiment.remark
        self._leader = Leader(experiment.module.MEASURE, experiment.module.COMPETE)
        self._open = ExitStack()

    def begin(self, total: int, done: list[Row]) -> None:
        """Show that rows are `done` already, of so many in `total`."""
        if self._remark:
            print(self._remark, file=sys.stderr, flush=True)
        self._progress = self._open.enter_context(Progress(self._name, "", total, unit="runs", done=len(done)))
        self._progress.advance(0, self._leading(done))
        self._progress.show()

    def advance(self, unit: Unit, rows: list[Row]) -> None:
        """Show that a `unit` is done and gave `rows`."""
        shared = {"part": unit.part, "algebra": unit.algebra, "n_hidden": unit.n_hidden}
        self._progress.advance(len(rows), self._leading([shared | row for row in rows]))

    def _leading(self, rows: list[Row]) -> str:
        for row in rows:
            if row["part"] == MAIN:
                self._leader.add(row)
        return printable(str(self._leader))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


def run(experiment: Experiment, directory: Path, *, jobs: int = -1, watch: Watch | None = None) -> None:
    """Do all runs that `directory` does not hold, and keep them there.

    It may end at any moment: the same call goes on from there, to the same results.

    Parameters
    ----------
    experiment : Experiment
    directory : Path
    jobs : int
        Processes; -1 takes all cores.
    watch : Watch, or any object with its methods `begin` and `advance`, optional
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
        # One limit for all units of this process: to find the BLAS libraries takes as long as a small unit.
        with (
            threadpool_limits(1, user_api="blas"),
            _interruptible() as stop,
            closing(_results(experiment, waiting, jobs, stop)) as results,
        ):
            for unit, result in results:
                store.add(unit, result)
                if watch:
                    watch.advance(unit, result.rows)


def _results(
    experiment: Experiment, units: list[Unit], jobs: int, stop: threading.Event
) -> Generator[tuple[Unit, Result]]:
    """Units with their results, in the order in which they end. No unit begins after `stop`."""
    parent = os.getpid()
    # When loky ends, it drops the units that still wait, with a traceback for each. So only a few may wait. Workers
    # watch their parent from their start on, because some may never get a unit.
    waiting: dict[str, Any] = {"batch_size": 1, "pre_dispatch": "2*n_jobs"}
    parallel = Parallel(jobs, return_as="generator_unordered", initializer=_end_with, initargs=(parent,), **waiting)
    wanted = takewhile(lambda _: not stop.is_set(), units)
    with _interrupts_wait():
        results: Any = parallel(delayed(execute)(experiment.name, experiment.settings, u, parent) for u in wanted)
    try:
        for result in results:  # noqa: UP028 (`yield from` would hand GeneratorExit on)
            yield result
    except GeneratorExit:
        # Nobody takes the results. Workers that are ended amid their work print tracebacks, so they may finish.
        stop.set()
        deque(results, maxlen=0)
        raise


def execute(name: str, settings: Settings, unit: Unit, parent: int) -> tuple[Unit, Result]:
    """Do one unit, in another process than `parent` or in this one, which `run` has limited."""
    if os.getpid() != parent:
        _one_thread()
    return unit, import_module(f"hyperelm.experiments._{name}").execute(unit, settings)


@lru_cache(maxsize=1)
def _one_thread() -> None:
    """Limit this process to one BLAS thread for good. Threads of a dask worker would undo each other's limits."""
    threadpool_limits(1, user_api="blas")


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even by `kill -9`. Otherwise it would wait for work for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that units under way can end and be kept. A second Ctrl-C does not wait."""
    stop = threading.Event()
    usual = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        signal.signal(signal.SIGINT, usual)
        stop.set()

    # If Ctrl-C is ignored or handled by somebody else, that stays so.
    with _interrupts(ask if usual is signal.default_int_handler else usual):
        yield stop
    if stop.is_set():
        raise KeyboardInterrupt


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block Ctrl-C here and in the processes that begin here, to which a terminal sends it, too.

    Processes inherit which signals are ignored. A signal that is also blocked is kept for later, where a system can
    block signals. Starting a resource tracker would unblock them, so it is started before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        with _interrupts(signal.SIG_IGN):
            yield
        return
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _interrupts(signal.SIG_IGN):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupts(handler: Any) -> Iterator[None]:
    """Ctrl-C is handled by `handler`, if this thread may set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
