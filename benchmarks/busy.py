"""What does a fit take on a machine that is busy, or that gives it few processors?

A fit of 500 rows with 500 quaternion neurons runs in processes of its own: alone on one thread, alone with all threads,
three at once, and pinned to one processor. Every process repeats the fit for some seconds and gives the median of its
wall-clock and processor times. All are printed in units of the fit alone on one thread. Run it on a machine that is
quiet otherwise.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from hyperelm import ELMRegressor

_ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def repeated_fit(seconds: float) -> None:
    """Print the median wall-clock and processor seconds of a fit."""
    X = np.random.default_rng(0).standard_normal((500, 64))
    y = np.sin(X[:, :8]).sum(axis=1)
    wall, used = [], []
    end = time.perf_counter() + seconds
    ELMRegressor("quaternions", 500, random_state=0).fit(X, y)
    while time.perf_counter() < end or not wall:
        start, start_used = time.perf_counter(), time.process_time()
        ELMRegressor("quaternions", 500, random_state=0).fit(X, y)
        wall.append(time.perf_counter() - start)
        used.append(time.process_time() - start_used)
    print(statistics.median(wall), statistics.median(used))


def measured(count: int, seconds: float, *, one: bool = False, pinned: bool = False) -> tuple[float, float]:
    """Run so many processes at once, and give the longest of their medians."""
    environment = {name: value for name, value in os.environ.items() if name not in _ONE} | (_ONE if one else {})
    command = [sys.executable, __file__, "--seconds", str(seconds), "--fit"]
    if pinned:
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    found = [tuple(map(float, process.communicate()[0].split())) for process in running]
    return max(pair[0] for pair in found), max(pair[1] for pair in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        repeated_fit(arguments.seconds)
        return
    seconds = arguments.seconds
    wall, used = measured(1, seconds, one=True)
    print(f"{'in units of a fit alone on one thread':45}{'time':>8}{'processor':>11}{'at most':>9}")
    cases = {
        "alone, all threads": (measured(1, seconds), None),
        "three at once, on two cores": (measured(3, seconds), 2.0),
        "pinned to one processor": (measured(1, seconds, pinned=True), 1.2),
    }
    for label, (found, limit) in cases.items():
        mark = "" if limit is None else f"{limit:9.1f}{'  ok' if found[0] <= limit * wall else '  MISSED'}"
        print(f"{label:45}{found[0] / wall:8.2f}{found[1] / used:11.2f}{mark}")


if __name__ == "__main__":
    main()
