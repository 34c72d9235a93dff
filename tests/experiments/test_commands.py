"""`hyperelm run`, `export` and `report`: what they print, and one clear line for what a user can mend."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sqlite3
import sys
from concurrent.futures import BrokenExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

import hyperelm.dask
from hyperelm import experiments
from hyperelm.cli._commands import app
from hyperelm.experiments import Store
from hyperelm.experiments._store import FILE
from runs import command, other_program, sql

CHANGES = [
    "networks=2",
    "n_hidden=[3,4]",
    "few_hidden=[3]",
    "positions=420",
    'models=["real","klein4"]',
    "sensitivity=[]",
]
RUN = ["run", "lorenz", "--quick", "--jobs", "1", *(word for change in CHANGES for word in ("--set", change))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run leaves, and what it says."""
    directory = tmp_path_factory.mktemp("whole") / "out"
    return directory, command(*RUN, "--out", directory)


@pytest.fixture
def directory(whole, tmp_path):
    """A copy of what a run leaves."""
    return shutil.copytree(whole[0], tmp_path / "out")


def sessions(directory):
    with Store.open(directory) as store:
        return store.sessions()


def assert_one_line(done, *parts, code=2):
    """One line says what is wrong, and nothing else is said."""
    lines = done.stderr.splitlines()
    assert (done.exit_code, len(lines), done.stdout) == (code, 1, ""), done.output
    for part in parts:
        assert str(part) in lines[0]


# ---------------------------------------------------------------------- what they do


def test_run(whole):
    directory, done = whole
    assert done.exit_code == 0, done.output
    assert done.stdout == f"Report: {directory / 'report.html'}\n"
    assert (directory / "report.html").is_file()
    assert "14 of 14 runs" in done.stderr.splitlines()[-1]
    assert "leads" in done.stderr.splitlines()[-1]


def test_a_finished_run_does_nothing(directory):
    before = (directory / FILE).read_bytes()
    done = command(*RUN, "--out", directory)
    assert done.exit_code == 0
    assert done.stdout == f"Report: {directory / 'report.html'}\n"
    assert (directory / FILE).read_bytes() == before
    assert len(sessions(directory)) == 1


@pytest.mark.usefixtures("no_report")
def test_where_results_go_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(*RUN).exit_code == 0
    assert (tmp_path / "results-lorenz" / FILE).is_file()


def test_report(directory):
    (directory / "report.html").unlink()
    done = command("report", directory)
    assert (done.exit_code, done.stdout) == (0, f"{directory / 'report.html'}\n")
    assert (directory / "report.html").is_file()


def test_export(directory):
    done = command("export", directory)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.stderr == ""
    assert [(row["n_hidden"], row["network"], row["algebra"]) for row in rows] == [
        (L, n, name) for L in "34" for n in "01" for name in ("klein4", "real")
    ]
    with Store.open(directory) as store:
        assert [float(row["prediction_gain"]) for row in rows] == [row["prediction_gain"] for row in store.rows()]


def test_export_of_nothing_has_a_header(tmp_path):
    with Store.running(tmp_path, experiments.load("lorenz")):
        pass
    assert command("export", tmp_path).stdout == "algebra,n_hidden,network,seed\n"
    assert command("export", tmp_path, "--all").stdout == "part,variant,algebra,n_hidden,network,seed\n"


@pytest.mark.usefixtures("no_report")
def test_parts_in_any_order_and_sessions(directory):
    """The export of a run in pieces is that of a run at once."""
    expected = command("export", directory, "--all").stdout
    with closing(sqlite3.connect(directory / FILE)) as connection, connection:
        connection.execute("delete from runs where algebra = 'real'")
        connection.execute("delete from units where key like '%/real/%'")
    assert command("export", directory, "--all").stdout != expected
    assert command(*RUN, "--out", directory).exit_code == 0
    assert command("export", directory, "--all").stdout == expected
    assert len(sessions(directory)) == 2


# ---------------------------------------------------------------------- what they refuse

WRONG = {
    "unknown experiment": (["run", "lorentz"], "Did you mean 'lorenz'?"),
    "unknown setting": ([*RUN, "--set", "netwroks=3"], "Did you mean 'networks'?"),
    "no value": ([*RUN, "--set", "networks"], "--set must be of the form key=value"),
    "wrong type": ([*RUN, "--set", "networks=some"], "--set networks must be a whole number such as 2, got 'some'"),
    "unknown model": ([*RUN, "--set", "models=quaternoins"], "--set models must be", "Did you mean 'quaternions'?"),
    "model of another dimension": ([*RUN, "--set", "models=octonions"], "--set models must be real or have 4"),
    "model given twice": ([*RUN, "--set", 'models=["real","real"]'], "--set must leave every run to be done once"),
    "no process": ([*RUN, "--jobs", 0], "--jobs must be -1 or at least 1, got 0"),
    "fewer processes": ([*RUN, "--jobs", -2], "--jobs must be -1 or at least 1, got -2"),
    "seed below zero": ([*RUN, "--set", "seed=-1"], "--seed must be at least 0, got -1"),
}


@pytest.mark.parametrize(("words", "parts"), [(w, p) for w, *p in WRONG.values()], ids=WRONG)
def test_wrong_options(tmp_path, words, parts):
    assert_one_line(command(*words, "--out", tmp_path / "out"), *parts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("option", "value"), [("--seed", "-1"), ("--seed", "x"), ("--jobs", "two")])
def test_options_that_are_no_such_numbers(tmp_path, option, value):
    done = command(*RUN, option, value, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert option in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [["--seed", "1"], ["--set", "networks=3"], ["--set", "dt=0.02"], ["--set", "models=real"]]
)
def test_results_with_other_settings_are_refused(directory, words):
    before = (directory / FILE).read_bytes()
    assert_one_line(command(*RUN, *words, "--out", directory), "--out must be another directory", directory)
    assert (directory / FILE).read_bytes() == before


def test_a_second_process_is_told(directory):
    experiment = experiments.load("lorenz", quick=True, changes=CHANGES)
    with Store.running(directory, experiment):
        before = (directory / FILE).read_bytes()
        assert_one_line(command(*RUN, "--out", directory), "Another process is running in", directory)
        assert (directory / FILE).read_bytes() == before
        assert command("export", directory).exit_code == 0


def test_a_directory_with_other_files(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    assert_one_line(command(*RUN, "--out", tmp_path), "holds other files")
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        assert_one_line(command(*RUN, "--out", path), "--out must be a directory that can be written", path)
    assert (tmp_path / "file").read_text() == "mine"


def garbage(path):
    path.write_bytes(b"not a database at all" * 1000)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-5000])


DAMAGES = {
    "garbage": garbage,
    "truncated": truncated,
    "of another program": other_program,
    "without a table": sql("drop table runs"),
    "settings that are no JSON": sql("update experiment set settings = 'none'"),
    "settings that are no settings": sql("update experiment set settings = '[]'"),
    "a changed number": sql("update runs set fields = replace(fields, '1', '2')"),
}


@pytest.mark.parametrize("words", [[*RUN, "--out"], ["export"], ["report"]], ids=["run", "export", "report"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_results(directory, damage, words):
    path = directory / FILE
    damage(path)
    before = path.read_bytes()
    assert_one_line(command(*words, directory), path, "cannot be used as a file of results", "It was left as it is")
    assert path.read_bytes() == before


@pytest.mark.parametrize("words", [["export"], ["report"]])
def test_no_results(tmp_path, words):
    for path in (tmp_path, tmp_path / "none"):
        assert_one_line(command(*words, path), "DIR must be a directory with results", path)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("error", [MemoryError(), TerminatedWorkerError("killed")])
def test_a_worker_that_was_ended(tmp_path, monkeypatch, error):
    def run(*_, **__):
        raise error

    monkeypatch.setattr(experiments, "run", run)
    assert issubclass(TerminatedWorkerError, BrokenExecutor)
    assert_one_line(command(*RUN, "--out", tmp_path), "The same command goes on from here.", code=1)


def end_with_output(monkeypatch, target, *arguments):
    """How a command ends whose output goes to a file or file descriptor."""
    with suppress(OSError), open(target, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as end:
            app([str(argument) for argument in arguments])
    return end.value.code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_to_a_full_disk(directory, monkeypatch, capsys):
    assert end_with_output(monkeypatch, "/dev/full", "export", directory) == 2
    assert capsys.readouterr().err == "No space left on device.\n"


def test_output_that_nobody_reads(directory, monkeypatch, capsys):
    """As in `hyperelm export DIR | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    assert end_with_output(monkeypatch, writer, "export", directory) == 1
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- dask


def test_no_scheduler(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(hyperelm.dask, "_PATIENCE", 0.2)
    done = command(*RUN, "--out", tmp_path / "out", "--dask", "tcp://127.0.0.1:9")
    assert_one_line(done, "The dask scheduler 'tcp://127.0.0.1:9' cannot be reached")
    assert not (tmp_path / "out").exists()


def test_no_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = command(*RUN, "--out", tmp_path / "out", "--dask", "tcp://127.0.0.1:9")
    assert_one_line(done, "pip install 'hyperelm[dask]'")
    assert not (tmp_path / "out").exists()
