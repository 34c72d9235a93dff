"""However a run ends, and on however many processes, the same command leads to the same results."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from joblib import Parallel
from threadpoolctl import threadpool_info

from helpers import needs_file_limits
from hyperelm import experiments
from hyperelm.__main__ import main
from hyperelm.experiments import Store, StoreError, Unit, _runner
from hyperelm.experiments._definition import Experiment, Result
from hyperelm.experiments._store import FILE, LOCK
from runs import command, ready, rows_in, rows_so_far

# ---------------------------------------------------------------------- on an experiment that does nothing


class Watch:
    """What the runner says."""

    def __init__(self):
        self.total, self.before, self.units = 0, 0, []

    def begin(self, total, done):
        self.total, self.before = total, len(done)

    def advance(self, unit, rows):
        self.units.append(unit.n_hidden)


@pytest.fixture
def nothing(monkeypatch):
    """An experiment of five units; a test may put something in the way of some."""
    module = ModuleType("hyperelm.experiments._nothing")
    module.on_the_way = lambda _: None
    module.units = lambda settings: [Unit("main", "", "real", L, 0, settings["networks"]) for L in range(5)]

    def execute(unit, _settings):
        module.on_the_way(unit)
        return Result([{"network": n, "gain": unit.n_hidden / 3 + n} for n in unit.networks])

    module.execute = execute
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Experiment("nothing", {"networks": 2}, {})


def sessions(directory):
    with Store.open(directory) as store:
        return len(store.sessions())


def test_all_units_are_done(nothing, tmp_path):
    watch = Watch()
    experiments.run(nothing, tmp_path, jobs=1, watch=watch)
    assert (watch.total, watch.before, sorted(watch.units)) == (10, 0, [0, 1, 2, 3, 4])
    assert [(row["n_hidden"], row["network"]) for row in rows_in(tmp_path)] == [
        (L, n) for L in range(5) for n in range(2)
    ]


def test_a_finished_run_does_nothing(nothing, tmp_path):
    experiments.run(nothing, tmp_path, jobs=1)
    before = (tmp_path / FILE).read_bytes()
    watch = Watch()
    experiments.run(nothing, tmp_path, jobs=1, watch=watch)
    assert (watch.before, watch.units) == (10, [])
    assert (tmp_path / FILE).read_bytes() == before
    assert sessions(tmp_path) == 1


def stop_at(n_hidden, error):
    def on_the_way(unit):
        if unit.n_hidden == n_hidden:
            raise error

    return on_the_way


def test_only_what_is_missing_is_done_again(nothing, tmp_path):
    nothing.module.on_the_way = stop_at(3, RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        experiments.run(nothing, tmp_path, jobs=1)
    assert {row["n_hidden"] for row in rows_in(tmp_path)} == {0, 1, 2}
    nothing.module.on_the_way = stop_at(0, RuntimeError("done twice"))
    watch = Watch()
    experiments.run(nothing, tmp_path, jobs=1, watch=watch)
    assert (watch.before, watch.units) == (6, [3, 4])
    assert sessions(tmp_path) == 2


def test_results_that_cannot_be_kept_end_the_run(nothing, tmp_path, monkeypatch):
    def full(*_):
        raise StoreError("full")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(StoreError, match="full"):
        experiments.run(nothing, tmp_path, jobs=1)
    assert rows_in(tmp_path) == []


def test_an_interrupt_lets_the_unit_under_way_end(nothing, tmp_path):
    def press(unit):
        if unit.n_hidden == 2:
            signal.raise_signal(signal.SIGINT)

    nothing.module.on_the_way = press
    with pytest.raises(KeyboardInterrupt):
        experiments.run(nothing, tmp_path, jobs=1)
    assert {row["n_hidden"] for row in rows_in(tmp_path)} == {0, 1, 2}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signals that can be blocked")
def test_an_interrupt_while_workers_start_counts(nothing, tmp_path, monkeypatch):
    class Starting(Parallel):
        def __call__(self, tasks):
            signal.raise_signal(signal.SIGINT)
            return super().__call__(tasks)

    monkeypatch.setattr(_runner, "Parallel", Starting)
    with pytest.raises(KeyboardInterrupt):
        experiments.run(nothing, tmp_path, jobs=1)
    assert len(rows_in(tmp_path)) < 10


def test_a_second_interrupt_does_not_wait(nothing, tmp_path):
    def press_twice(unit):
        if unit.n_hidden == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    nothing.module.on_the_way = press_twice
    with pytest.raises(KeyboardInterrupt):
        experiments.run(nothing, tmp_path, jobs=1)
    assert {row["n_hidden"] for row in rows_in(tmp_path)} == {0, 1}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_interrupt_stays_ignored(nothing, tmp_path):
    nothing.module.on_the_way = lambda _: signal.raise_signal(signal.SIGINT)
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        experiments.run(nothing, tmp_path, jobs=1)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert len(rows_in(tmp_path)) == 10


def test_every_unit_has_one_blas_thread(nothing, tmp_path):
    threads = []

    def look(_):
        threads.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    nothing.module.on_the_way = look
    experiments.run(nothing, tmp_path, jobs=1)
    assert set(threads) == {1}


def test_blas_is_limited_once_a_run(nothing, tmp_path, monkeypatch):
    """To find the libraries takes as long as a small unit."""
    limits = []
    limit = _runner.threadpool_limits
    monkeypatch.setattr(_runner, "threadpool_limits", lambda *a, **k: limits.append(a) or limit(*a, **k))
    experiments.run(nothing, tmp_path, jobs=1)
    assert limits == [(1,)]


# ---------------------------------------------------------------------- what a user sees


def ten_rows(gain, **fields):
    return [{"network": n, "prediction_gain": gain} | fields for n in range(10)]


def test_watch(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("hyperelm._training.progress.time.monotonic", lambda: now[0])
    experiment = experiments.load("lorenz")
    with experiments.Watch(experiment) as watch:
        watch.begin(40, ten_rows(0.0, part="main", algebra="real", n_hidden=3))
        now[0] += 20
        watch.advance(Unit("main", "", "klein4", 3, 0, 10), ten_rows(1.0))
        now[0] += 1
        watch.advance(Unit("forecast", "", "real", 3, 0, 1), [{"network": 0, "valid_time": 1.0}])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "lorenz: 10 of 40 runs, real leads (100% of wins)"
    assert lines[1].startswith("lorenz: 20 of 40 runs, ")
    assert lines[1].endswith(" s left, klein4 leads (100% of wins)")
    assert lines[2].startswith("lorenz: 21 of 40 runs, ")
    assert len(lines) == 3


def test_watch_without_a_leader(capsys):
    with experiments.Watch(experiments.load("lorenz")) as watch:
        watch.begin(100, ten_rows(0.0, part="tuned", algebra="real", n_hidden=3))
    assert capsys.readouterr().err == "lorenz: 10 of 100 runs\n"


# ---------------------------------------------------------------------- on the Lorenz experiment

SETTINGS = {
    "networks": 400,
    "n_hidden": [3, 4],
    "few_hidden": [3],
    "positions": 500,
    "models": ["real", "quaternions", "R[-1,+1]"],
    "sensitivity": '[{name = "x", change = {dt = 0.02}}]',
}
RUN = ["run", "lorenz", "--quick", *(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))]


def export(directory):
    done = command("export", directory, "--all")
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The results of a run in one process that nothing interrupts."""
    directory = tmp_path_factory.mktemp("whole")
    changes = [f"{key}={value}" for key, value in SETTINGS.items()]
    experiments.run(experiments.load("lorenz", quick=True, changes=changes), directory, jobs=1)
    return export(directory)


@pytest.mark.usefixtures("no_report")
def test_processes_do_not_change_results(tmp_path, expected):
    done = command(*RUN, "--jobs", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert export(tmp_path) == expected


@needs_file_limits
@pytest.mark.usefixtures("no_report")
def test_a_full_disk(tmp_path, expected):
    """Every time there is a little more space, until it suffices."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for space in (0, 20_000, 60_000, 100_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (space, hard))
        try:
            done = command(*RUN, "--jobs", 1, "--out", tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert done.exit_code == 2, done.output
        assert done.stderr.splitlines()[-1].startswith(str(tmp_path))
        assert "Traceback" not in done.stderr
    assert 1 < len(export(tmp_path).splitlines()) < len(expected.splitlines())
    assert command(*RUN, "--jobs", 1, "--out", tmp_path).exit_code == 0
    assert export(tmp_path) == expected


@pytest.mark.usefixtures("no_report")
def test_a_dask_cluster_gives_the_same(tmp_path, expected):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        done = command(*RUN, "--out", tmp_path, "--dask", cluster.scheduler_address)
    assert done.exit_code == 0, done.output
    assert export(tmp_path) == expected


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes where Linux shows them")
@pytest.mark.usefixtures("no_report")
def test_kill_at_any_moment(tmp_path, expected, monkeypatch):
    """`kill -9`, from the moment at which files are made on, and the same command again."""
    directory, rng = tmp_path / "out", random.Random()
    monkeypatch.setattr(sys, "argv", ["hyperelm", *RUN, "--jobs", "2", "--out", str(directory)])

    def start():
        process = ready().Process(target=main)
        process.start()
        return process

    def kill(process):
        workers.extend(children(process.pid))
        process.kill()
        process.join(60)
        killed.append(process.exitcode == -signal.SIGKILL)

    workers, killed = [], []
    for name in (LOCK, FILE):
        process = start()
        wait_until((directory / name).exists)
        time.sleep(rng.uniform(0, 0.02))
        kill(process)
    for longest in (0.3, 1):
        process = start()
        time.sleep(rng.uniform(0, longest))
        kill(process)
    for _ in range(2):  # when the workers, and who tidies up after them, are there but may have no work yet
        process = start()
        wait_until(lambda pid=process.pid: len(children(pid)) == 3)
        time.sleep(rng.uniform(0, 0.05))
        kill(process)
    for _ in range(2):
        before = len(rows_so_far(directory))
        process = start()
        wait_until(lambda before=before: len(rows_so_far(directory)) > before)
        time.sleep(rng.uniform(0, 0.2))
        kill(process)
    assert killed == 8 * [True]
    assert 0 < len(rows_so_far(directory)) < len(expected.splitlines()) - 1
    assert command(*RUN, "--jobs", 2, "--out", directory).exit_code == 0
    assert export(directory) == expected
    wait_until(lambda: not any(map(is_there, workers)))


@pytest.mark.skipif(os.name != "posix", reason="needs groups of processes")
@pytest.mark.usefixtures("no_report")
def test_interrupt_from_the_keyboard(tmp_path, expected):
    """Ctrl-C goes to the workers, too."""
    words = [sys.executable, "-m", "hyperelm", *RUN, "--jobs", "2", "--out", str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not process.stderr.readline().startswith("lorenz: 0 of"):
            assert process.poll() is None
        time.sleep(random.uniform(0, 0.5))  # workers start in this time, and no run is done in it
        os.killpg(process.pid, signal.SIGINT)
        *lines, last = process.communicate(timeout=60)[1].splitlines()
    assert last == "Interrupted. The same command goes on from here."
    assert all(re.match(r"lorenz: [\d,]+ of [\d,]+ runs, ", line) for line in lines)
    assert process.returncode == 130
    assert command(*RUN, "--jobs", 1, "--out", tmp_path).exit_code == 0
    assert export(tmp_path) == expected
