"""What the tests of the experiments and of the command share: running the command, and looking into result folders."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

from typer.testing import CliRunner

from helpers import fork
from hyperelm.__main__ import main
from hyperelm.cli import app
from hyperelm.experiments._store import Store, StoreError


def command(*arguments):
    """`hyperelm ARGUMENTS` in this process, with its exit code and what it wrote."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def forked(*arguments):
    """`hyperelm ARGUMENTS` in a fork of this process, which need not import anything, without its output."""

    def run():
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
        sys.argv = ["hyperelm", *map(str, arguments)]
        main()

    return fork(run)


def ready():
    """Starts processes from a server that has imported all and forks, which takes seconds off every start."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hyperelm.cli._commands", "hyperelm.experiments._report"])
    return context


def killed_after_some_rows(process, directory, seconds=60):
    """`kill -9` as soon as the folder holds results."""
    end = time.monotonic() + seconds
    try:
        while not rows_so_far(directory):
            assert process.is_alive(), "it has ended"
            assert time.monotonic() < end, "it takes too long"
            time.sleep(0.005)
    finally:
        process.kill()
        process.join(seconds)
    assert process.exitcode == -signal.SIGKILL


def rows_in(directory):
    """The results that a folder holds, one a run."""
    with Store.open(directory) as store:
        return store.rows(None)


def rows_so_far(directory):
    """The same while another process may still have to make the folder."""
    try:
        return rows_in(directory)
    except StoreError:
        return []


def sql(*statements):
    """A function that changes a database as somebody could by hand."""

    def change(path):
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return change


def other_program(path):
    """Put a database of another program in the place of ours."""
    path.unlink()
    sql("create table notes (text)", "insert into notes values ('mine')")(path)
