"""The command as shells may start it: with streams closed, full or without letters, and with pipes for files."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hyperelm import load
from runs import command

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the devices of a Unix system")
TABLE = "a,b,c\n" + "".join(f"{n},{n * n % 7},{n % 5 + n}\n" for n in range(30))
FIT = ["--target", "c", "--algebra", "real", "--save"]


def shell(folder, *words, tail="", head="", **variables):
    """`hyperelm WORDS` with what a shell can put around it."""
    command = f"{head} {shlex.join([sys.executable, '-m', 'hyperelm', *map(str, words)])} {tail}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=os.environ | variables, timeout=60
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, and a model of it that was fitted with standard error closed."""
    folder = tmp_path_factory.mktemp("main")
    (folder / "table.csv").write_text(TABLE)
    done = shell(folder, "fit", "table.csv", *FIT, "model", tail="2>&-")
    assert done.returncode == 0
    assert "Saved in model" in done.stdout
    return folder


def assert_one_line(done, line):
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def test_output_that_is_closed(folder):
    assert_one_line(shell(folder, "predict", "model", "table.csv", tail=">&-"), "Bad file descriptor.")


@pytest.mark.parametrize("words", [["--help"], ["predict", "model", "table.csv"]])
def test_output_to_a_full_device(folder, words):
    assert_one_line(shell(folder, *words, tail="> /dev/full"), "No space left on device.")


def test_letters_that_a_terminal_lacks(folder):
    done = shell(folder, "algebras", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "quaternions" in done.stdout
    assert "?" not in done.stdout


def test_tables_of_numbers_are_the_same_everywhere(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE.replace("c", "größe", 1), encoding="utf-8")
    words = ["fit", tmp_path / "table.csv", "--target", "größe", *FIT[2:], tmp_path / "model"]
    assert command(*words).exit_code == 0
    words = ["predict", "model", "table.csv"]
    plain = shell(tmp_path, *words, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="").stdout
    assert plain.startswith("größe\n")


def test_tables_from_pipes(folder, tmp_path):
    done = shell(folder, "fit", "/dev/stdin", *FIT, tmp_path / "model", head="cat table.csv |")
    assert done.returncode == 0, done.stderr
    X = np.array([line.split(",")[:2] for line in TABLE.splitlines()[1:]], dtype=float)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), load(folder / "model").predict(X))
    expected = command("predict", folder / "model", folder / "table.csv").stdout
    assert shell(folder, "predict", "model", tail="<(cat table.csv)").stdout == expected != ""


def test_a_run_with_standard_error_closed(tmp_path):
    few = [
        "networks=2",
        "n_hidden=[3]",
        "few_hidden=[3]",
        "positions=420",
        'models=["real","klein4"]',
        "sensitivity=[]",
    ]
    words = ["run", "lorenz", "--quick", "--jobs", 1, *(word for change in few for word in ("--set", change))]
    done = shell(tmp_path, *words, "--out", "out", tail="2>&- <&-")
    assert (done.returncode, done.stdout) == (0, "Report: out/report.html\n")
    assert (tmp_path / "out" / "report.html").is_file()
