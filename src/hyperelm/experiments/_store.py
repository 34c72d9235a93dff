"""Results in a directory: one SQLite file that survives a crash at any moment.

The rows of a unit and the mark that it is done are one transaction. Floats are written as text that reads back to the
same bits. Every row has a checksum, because SQLite does not notice changed values. A second, empty database holds the
lock, which the system releases when its process ends.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments._definition import MAIN, Experiment, Result, Row, Settings, Unit

FILE = "results.sqlite"
LOCK = "running.lock"
_SQL = Path(__file__).with_name("results.sql")  # the tables of a file of results


class StoreError(Exception):
    """A directory of results that cannot be used, with the reason.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hyperelm.experiments import Store
    >>> with Store.open(Path("nowhere")) as store:
    ...     pass
    Traceback (most recent call last):
    hyperelm.experiments._store.StoreError: DIR must be a directory with results, but ... does not exist.
    """


class Store:
    """The results in a directory; `Store.open` and `Store.running` give one.

    Parameters
    ----------
    directory : Path
    connection : sqlite3.Connection

    Attributes
    ----------
    name : str
        The experiment that they are of.
    settings : dict
        Its settings.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.experiments import Store, load
    >>> with TemporaryDirectory() as folder:
    ...     with Store.running(Path(folder), load("lorenz")) as store:
    ...         store.name, store.rows()
    ('lorenz', [])
    """

    KEYS = ("part", "variant", "algebra", "n_hidden", "network", "seed")  # the fields that every row has

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory, self._connection = directory, connection
        found = list(self._select("experiment"))
        if len(found) != 1:
            raise _damaged(directory, "it does not say what it holds")
        self.name = str(found[0][0])
        self.settings: Settings = json.loads(found[0][1])

    # ------------------------------------------------------------------ opening

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator[Store]:
        """The results of a directory, to read."""
        path = directory / FILE
        if not path.is_file():
            raise StoreError(f"DIR must be a directory with results, but {path} does not exist.")
        with _readable(path) as file, _connection(path, file) as connection:
            yield cls(directory, connection)

    @classmethod
    @contextmanager
    def running(cls, directory: Path, experiment: Experiment) -> Iterator[Store]:
        """The results of a directory, to add to. It is made if missing. Results of another `experiment` are refused."""
        path = directory / FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # SQLite keeps files beside its own, and a process that was killed leaves them there.
            strange = any(not item.name.startswith((FILE, LOCK)) for item in directory.iterdir())
        except OSError as error:
            reason = f"got {directory}: {error.strerror}"
            raise StoreError(f"--out must be a directory that can be written, {reason}.") from None
        if strange and not path.exists():
            raise StoreError(f"--out must be empty or hold results, but {directory} holds other files. Choose another.")
        for link in (path, directory / LOCK):
            if link.is_symlink():
                raise StoreError(f"--out must hold its own files, but {link} is a symbolic link. Choose another.")
        with _lock(directory), _connection(path, path) as connection:
            if not _schema(connection):
                with connection:
                    connection.executescript("begin;" + _SQL.read_text(encoding="utf-8"))
                    _insert(connection, "experiment", experiment.name, json.dumps(experiment.settings))
            store = cls(directory, connection)
            mine = {"experiment": store.name} | store.settings
            theirs = {"experiment": experiment.name} | json.loads(json.dumps(experiment.settings))
            changed = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
            if changed:
                key = "experiment" if "experiment" in changed else changed[0]
                raise StoreError(
                    f"--out must be another directory: the results in {directory} have other settings, "
                    f"{', '.join(changed)} ({key} is {mine.get(key)!r} there, {theirs.get(key)!r} here)."
                )
            # This writes to the file, so it comes after the checks.
            connection.execute("pragma journal_mode = wal")
            yield store

    # ------------------------------------------------------------------ writing

    def begin_session(self) -> None:
        """Note the time, the versions and the machine of the following runs."""
        packages = {name: version(name) for name in ("hyperelm", "numpy", "scipy", "scikit-learn")}
        versions = json.dumps({"python": platform.python_version()} | packages)
        machine = json.dumps({"system": platform.platform(), "processor": _processor()})
        with self._connection:
            _insert(self._connection, "sessions", datetime.now(UTC).isoformat(timespec="seconds"), versions, machine)

    def add(self, unit: Unit, result: Result) -> None:
        """Keep the whole `result` of a `unit`, or nothing of it if that fails."""
        with self._connection:
            for row in result.rows:
                keys = [row.get(key, getattr(unit, key, None)) for key in self.KEYS]
                fields = {key: value for key, value in row.items() if key not in self.KEYS}
                _insert(self._connection, "runs", *keys, json.dumps(fields))
            for name, array in result.arrays.items():
                file = io.BytesIO()
                np.save(file, array, allow_pickle=False)
                _insert(self._connection, "arrays", name, file.getvalue())
            _insert(self._connection, "units", unit.key)

    # ------------------------------------------------------------------ reading

    def waiting(self, units: Sequence[Unit]) -> list[Unit]:
        """Which `units` of the experiment are not done yet."""
        done = {key for (key,) in self._select("units")}
        unknown = done - {unit.key for unit in units}
        if unknown:
            raise _damaged(self.directory, f"this version does not divide the work into units such as {min(unknown)!r}")
        return [unit for unit in units if unit.key not in done]

    def rows(self, part: str | None = MAIN) -> list[Row]:
        """The runs of a `part`, or of all parts, in an order that does not depend on how they were done."""
        chosen = "where part = ?1 or ?1 is null order by part, variant, n_hidden, network, algebra"
        found = self._select("runs", chosen, part)
        return [dict(zip(self.KEYS, keys)) | json.loads(fields) for *keys, fields in found]

    def array(self, name: str) -> NDArray[Any] | None:
        """The array called `name`, if there is one."""
        for _, content in self._select("arrays", "where name = ?", name):
            array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
            return array
        return None

    def sessions(self) -> list[dict[str, Any]]:
        """The time, the versions and the machine of every session."""
        return [
            {"started": started, "versions": json.loads(versions), "machine": json.loads(machine)}
            for started, versions, machine in self._select("sessions", "order by started")
        ]

    def _select(self, table: str, rest: str = "", *arguments: Any) -> Iterator[list[Any]]:
        """Rows whose checksums are right."""
        for *values, checksum in self._connection.execute(f"select * from {table} {rest}", arguments):
            if checksum != _checksum(values):
                raise _damaged(self.directory, f"a row of its table {table!r} has changed")
            yield values


def _insert(connection: sqlite3.Connection, table: str, *values: Any) -> None:
    row = (*values, _checksum(values))
    connection.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in values))


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """A file that SQLite can read. SQLite writes beside a file to read it, so a read-only directory needs a copy."""
    if os.access(path.parent, os.W_OK):
        yield path
        return
    with TemporaryDirectory() as folder:
        for file in (path, path.with_name(f"{path.name}-wal")):  # the second is left by a process that was killed
            if file.exists():
                shutil.copyfile(file, Path(folder, file.name))
        yield Path(folder, path.name)


@contextmanager
def _connection(path: Path, file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file of results, which messages call `path`."""
    try:
        with closing(sqlite3.connect(file)) as connection:
            connection.text_factory = lambda text: text.decode(errors="replace")  # the checksums detect changed texts
            # Other schemas are refused. They may have views, triggers or checks, which SQLite would execute.
            if _schema(connection) not in ([], _schema_of_results()):
                raise _damaged(path.parent, "it does not have the tables of one")
            if connection.execute("pragma quick_check").fetchone() != ("ok",):
                raise _damaged(path.parent, "its pages do not fit together")
            yield connection
    except sqlite3.OperationalError as error:
        safe = "Its results are safe. Mend the cause, and the same command goes on from there."
        raise StoreError(f"{path} could not be read or written: {error}. {safe}") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite may quote bytes of the file in a message
        raise _damaged(path.parent, error) from None


def _damaged(directory: Path, reason: object) -> StoreError:
    what = f"{directory / FILE} cannot be used as a file of results: {printable(str(reason))}"
    return StoreError(f"{what}. It was left as it is; choose another directory.")


def _schema(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


@cache
def _schema_of_results() -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SQL.read_text(encoding="utf-8"))
        return _schema(connection)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    path = directory / LOCK
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            connection.execute("begin exclusive")
            yield
    except sqlite3.Error as error:
        if "locked" in str(error):
            wait = "wait for it, or choose another --out"
            raise StoreError(f"Another process is running in {directory}: {wait}.") from None
        raise StoreError(f"{path} cannot be locked: {error}. Choose another --out.") from None


def printable(text: str) -> str:
    """A text from a file without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _processor() -> str:
    """The name of the processor, if the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
