"""How many processors this process may really use.

A machine may have more processors than a process gets: the process may be pinned to some of them (taskset, a batch
system), or its control group may have a quota of processor time (containers). Threads beyond that wait for each other.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def processors() -> int:
    """The number of processors that this process may use at a time."""
    count = getattr(os, "process_cpu_count", os.cpu_count)() or 1  # the first is new in Python 3.13
    if hasattr(os, "sched_getaffinity"):
        count = min(count, len(os.sched_getaffinity(0)))
    return max(1, int(min(count, cgroup_quota())))


@lru_cache(maxsize=1)
def cgroup_quota(groups: Path = _GROUPS, own: Path = _OWN) -> float:
    """The processor time that the control groups of this process have in a second; infinite without a limit.

    Version 2 has a file `cpu.max` with the time and the period. Version 1 has a file for each of them. A group is also
    limited by the groups around it.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return float("inf")
    least = float("inf")
    for _, controllers, path in (line for line in lines if len(line) == 3):
        root = groups / controllers if controllers else groups
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder == groups.parent:
                break
            least = min(least, _quota_of(folder))
    return least


def _quota_of(folder: Path) -> float:
    """The quota that is set for this group alone."""
    try:
        if (both := folder / "cpu.max").is_file():
            quota, period = both.read_text(encoding="ascii").split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii") for name in ("quota", "period")
            )
        return float(quota) / float(period) if quota.strip() != "max" and float(quota) > 0 else float("inf")
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")
