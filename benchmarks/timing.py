"""Interleaved timing: machines are shared and noisy, so jobs take turns and each keeps its best time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

_SETTLED = 0.15  # seconds, or ...
_SHARE = 0.1  # ... this part of the time of the job before


def best_times(
    jobs: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the fastest of `repeats` calls of each job, all jobs called once in each round.

    With the clock `time.process_time`, those that others have the processor do not count. Threads of a BLAS look for
    more work for a tenth of a second after the last, on the next job's processor, and for seconds after gigabytes went
    back to the system fresh memory is slower: each job begins when that is over.
    """
    times = {name: float("inf") for name in jobs}
    for job in jobs.values():
        job()  # warm up: caches, lazy imports, first touch of memory
    last = 0.0
    for _ in range(repeats):
        for name, job in jobs.items():
            time.sleep(max(_SETTLED, _SHARE * last))
            began, start = time.perf_counter(), clock()
            job()
            times[name] = min(times[name], clock() - start)
            last = time.perf_counter() - began
    return times
