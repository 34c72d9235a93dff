"""Interleaved timing: machines are shared and noisy, so jobs take turns and each keeps its best time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of the fastest of `repeats` calls of each job, all jobs called once in each round."""
    times = {name: float("inf") for name in jobs}
    for job in jobs.values():
        job()  # warm up: caches, lazy imports, first touch of memory
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name] = min(times[name], time.perf_counter() - start)
    return times
