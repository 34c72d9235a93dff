"""How many processors a process may use: pinned, with a quota of its control group, or neither."""

from __future__ import annotations

import os

import numpy as np
import pytest

from hyperelm._backend import processors as module
from hyperelm._backend.processors import cgroup_quota, processors


@pytest.fixture(autouse=True)
def without_memory():
    """The quota is read once in a process."""
    cgroup_quota.cache_clear()
    yield
    cgroup_quota.cache_clear()


def quota(tmp_path, own, files):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "own").write_text(own, encoding="ascii")
    return cgroup_quota(tmp_path, tmp_path / "own")


def test_the_quota_of_version_2_is_the_least_of_a_group_and_those_around_it(tmp_path):
    assert quota(tmp_path, "0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}) == 1.5


def test_the_quota_of_version_1(tmp_path):
    files = {"cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}
    assert quota(tmp_path, "3:memory:/x\n4:cpu,cpuacct:/y\n", files) == 2


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu.max": "max 100000\n"},
        {"cpu.max": "nonsense"},
        {"cpu.max": "100000 0\n"},
        {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
    ],
)
def test_no_quota(tmp_path, files):
    assert quota(tmp_path, "0::/\n", files) == np.inf


def test_no_groups_at_all(tmp_path):
    assert cgroup_quota(tmp_path, tmp_path / "missing") == np.inf


@pytest.mark.parametrize(("of_group", "expected"), [(np.inf, 3), (2.9, 2), (0.5, 1)])
def test_the_least_of_all_limits(monkeypatch, of_group, expected):
    monkeypatch.setattr(os, "process_cpu_count", lambda: 8, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5}, raising=False)
    monkeypatch.setattr(module, "cgroup_quota", lambda: of_group)
    assert processors() == expected
