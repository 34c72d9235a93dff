"""Execute what a store does not hold yet, on all cores, each run on one BLAS thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from importlib import import_module
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
    """
    units = experiment.units()
    with Store.running(directory, experiment) as store:
        done = store.done()
        waiting = [unit for unit in units if unit.key not in done]
        if watch:
            watch.begin(sum(unit.count for unit in units), store.rows(None))
        if not waiting:
            return
        store.begin_session()
        for unit, result in _results(experiment, waiting, jobs):
            store.add(unit, result)
            if watch:
                watch.advance(unit, result.rows)


def _results(experiment: Experiment, units: list[Unit], jobs: int) -> Iterator[tuple[Unit, Result]]:
    """Units with their results, in the order in which they are done."""
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    results: Any = parallel(
        delayed(execute)(experiment.name, experiment.settings, unit, os.getpid()) for unit in units
    )
    yield from results


def execute(name: str, settings: Settings, unit: Unit, parent: int) -> tuple[Unit, Result]:
    """One unit, in whatever process."""
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    with threadpool_limits(1, user_api="blas"):
        return unit, import_module(f"hyperelm.experiments.{name}").execute(unit, settings)
