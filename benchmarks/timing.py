"""Interleaved timing. Machines are shared and noisy, so jobs take turns and the best time of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

_SETTLED = 0.15  # seconds until the BLAS threads of the job before are idle


def best_times(
    jobs: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Measure the seconds of the fastest of `repeats` calls of each job. Each round calls every job once.

    With the clock `time.process_time`, time in which other processes have the processor does not count. BLAS threads
    keep a processor busy for a tenth of a second after their last work. So every job waits until they are idle.
    """
    times = {name: float("inf") for name in jobs}
    for job in jobs.values():
        job()  # warm up: caches, lazy imports, first touch of memory
    for _ in range(repeats):
        for name, job in jobs.items():
            time.sleep(_SETTLED)
            start = clock()
            job()
            times[name] = min(times[name], clock() - start)
    return times
