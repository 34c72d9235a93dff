"""Interleaved timing: machines are shared and noisy, so jobs take turns and each keeps its best time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(
    jobs: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the fastest of `repeats` calls of each job, all jobs called once in each round.

    With the clock `time.process_time`, those that others have the processor do not count.
    """
    times = {name: float("inf") for name in jobs}
    for job in jobs.values():
        job()  # warm up: caches, lazy imports, first touch of memory
    for _ in range(repeats):
        for name, job in jobs.items():
            start = clock()
            job()
            times[name] = min(times[name], clock() - start)
    return times
