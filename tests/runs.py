"""What the tests of the experiments and of the command share: running the command, and looking into result folders."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from typer.testing import CliRunner

from hyperelm.cli import app
from hyperelm.experiments._store import Store, StoreError


def command(*arguments):
    """`hyperelm ARGUMENTS` in this process, with its exit code and what it wrote."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
