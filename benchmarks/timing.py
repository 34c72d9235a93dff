"""Interleaved timing: machines are shared and noisy, so jobs take turns and each keeps its best time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

_SETTLED = 0.15  # seconds


def best_times(
    jobs: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the fastest of `repeats` calls of each job, all jobs called once in each round.

    With the clock `time.process_time`, those that others have the processor do not count. Threads of a BLAS look for
    more work for a tenth of a second after the last, on the next job's processor: each begins when that is over.
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
