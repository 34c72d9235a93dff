"""Results in a directory: one SQLite file that survives a crash at any moment.

A unit's rows and the mark that it is done are one transaction. Floats are written as text that reads back to the
same bits, and every row has a checksum, as SQLite does not notice changed values. A second, empty database holds the
lock: the system lets go of it when its process ends, however it ends.
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

from hyperelm.experiments.definition import MAIN, Experiment, Result, Row, Settings, Unit

FILE = "results.sqlite"
LOCK = "running.lock"

_SCHEMA = """
create table experiment (name text not null, settings text not null, checksum integer not null);
create table sessions (started text not null, versions text not null, machine text not null, checksum integer not null);
create table units (key text primary key, checksum integer not null);
create table runs (
    part text, variant text, algebra text, n_hidden integer, network integer, seed integer, fields text not null,
    checksum integer not null, primary key (part, variant, algebra, n_hidden, network)
);
create table arrays (name text primary key on conflict replace, data blob not null, checksum integer not null);
"""
KEYS = ("part", "variant", "algebra", "n_hidden", "network", "seed")


class StoreError(Exception):
    """What is wrong with a directory of results, for its user.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hyperelm.experiments import Store
    >>> with Store.open(Path("nowhere")) as store:
    ...     pass
    Traceback (most recent call last):
    hyperelm.experiments.store.StoreError: DIR must be a directory with results, but ... does not exist.
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

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory, self._connection = directory, connection
        found = list(self._select("experiment"))
        if len(found) != 1:
            raise StoreError(_damaged(directory / FILE, "it does not say what it holds"))
        self.name = str(found[0][0])
        self.settings: Settings = self._object("experiment", found[0][1])

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
        """The results of a directory, to add to: made if there are none, refused if not of this `experiment`."""
        path = directory / FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # SQLite keeps files beside its own, which a process that was killed leaves there.
            strange = any(not item.name.startswith((FILE, LOCK)) for item in directory.iterdir())
            fresh = not path.exists()
        except OSError as error:
            raise StoreError(
                f"--out must be a directory that can be written, got {directory}: {error.strerror}."
            ) from None
        if fresh and strange:
            raise StoreError(f"--out must be empty or hold results, but {directory} holds other files. Choose another.")
        for link in (path, directory / LOCK):
            if link.is_symlink():
                raise StoreError(f"--out must hold its own files, but {link} is a symbolic link. Choose another.")
        with _lock(directory), _connection(path, path) as connection:
            if not connection.execute("select 1 from sqlite_master").fetchone():
                _create(connection, experiment)
            store = cls(directory, connection)
            store._check_same(experiment)
            # Not before the file is known to be ours, as this writes to it.
            connection.execute("pragma journal_mode = wal")
            yield store

    def _check_same(self, experiment: Experiment) -> None:
        if self.name != experiment.name:
            raise StoreError(
                f"--out must be another directory: {self.directory} holds the experiment {self.name!r}, not "
                f"{experiment.name!r}."
            )
        mine, theirs = self.settings, json.loads(json.dumps(experiment.settings))
        changed = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
        if changed:
            key = changed[0]
            raise StoreError(
                f"--out must be another directory: the results in {self.directory} have other settings, "
                f"{', '.join(changed)} ({key} is {mine.get(key)!r} there, {theirs.get(key)!r} here)."
            )

    # ------------------------------------------------------------------ writing

    def begin_session(self) -> None:
        """Note with what, and on what, the following runs are done."""
        packages = {name: version(name) for name in ("hyperelm", "numpy", "scipy", "scikit-learn")}
        versions = {"python": platform.python_version()} | packages
        machine = {"system": platform.platform(), "processor": _processor()}
        with self._connection:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            _insert(self._connection, "sessions", started, json.dumps(versions), json.dumps(machine))

    def add(self, unit: Unit, result: Result) -> None:
        """Keep the result of a unit, all or nothing."""
        with self._connection:
            for row in result.rows:
                keys = [row.get(key, getattr(unit, key, None)) for key in KEYS]
                fields = {key: value for key, value in row.items() if key not in KEYS}
                _insert(self._connection, "runs", *keys, json.dumps(fields))
            for name, array in result.arrays.items():
                _insert(self._connection, "arrays", name, _to_bytes(array))
            _insert(self._connection, "units", unit.key)

    # ------------------------------------------------------------------ reading

    def waiting(self, units: Sequence[Unit]) -> list[Unit]:
        """Those of all units of the experiment that are not done yet."""
        done = {key for (key,) in self._select("units")}
        unknown = done - {unit.key for unit in units}
        if unknown:
            reason = f"this version does not divide the work into units such as {min(unknown)!r}"
            raise StoreError(_damaged(self.directory / FILE, reason))
        return [unit for unit in units if unit.key not in done]

    def rows(self, part: str | None = MAIN) -> list[Row]:
        """The runs of a part, or of all, in an order that does not depend on how they were done."""
        where = "" if part is None else "where part = ?"
        found = self._select(
            "runs", f"{where} order by part, variant, n_hidden, network, algebra", () if part is None else (part,)
        )
        return [dict(zip(KEYS, keys)) | self._object("runs", fields) for *keys, fields in found]

    def array(self, name: str) -> NDArray[Any] | None:
        """The array called `name`, if there is one."""
        found = next(self._select("arrays", "where name = ?", (name,)), None)
        try:
            return None if found is None else _from_bytes(found[1])
        except Exception:  # content that is no array can be wrong in any way
            raise StoreError(_damaged(self.directory / FILE, f"the array {name!r} is not as it was written")) from None

    def sessions(self) -> list[dict[str, Any]]:
        """When, with what versions and on what machine the runs were done."""
        return [
            {
                "started": started,
                "versions": self._object("sessions", versions),
                "machine": self._object("sessions", machine),
            }
            for started, versions, machine in self._select("sessions", "order by started")
        ]

    def _object(self, table: str, text: Any) -> dict[str, Any]:
        """What JSON in a row says, which is always an object."""
        try:
            value = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            value = None
        if not isinstance(value, dict):
            reason = f"a row of its table {table!r} is not as it was written"
            raise StoreError(_damaged(self.directory / FILE, reason))
        return value

    def _select(self, table: str, rest: str = "", arguments: Sequence[Any] = ()) -> Iterator[list[Any]]:
        """Rows as they were written."""
        for *values, checksum in self._connection.execute(f"select * from {table} {rest}", arguments):
            if checksum != _checksum(values):
                raise StoreError(_damaged(self.directory / FILE, f"a row of its table {table!r} has changed"))
            yield values


def _create(connection: sqlite3.Connection, experiment: Experiment) -> None:
    with connection:
        connection.executescript("begin;" + _SCHEMA)
        _insert(connection, "experiment", experiment.name, json.dumps(experiment.settings))


def _insert(connection: sqlite3.Connection, table: str, *values: Any) -> None:
    row = (*values, _checksum(values))
    connection.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in values))


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """A file that SQLite can read: a copy where it cannot write beside the file, which it does to read, too."""
    if os.access(path.parent, os.W_OK):
        yield path
        return
    with TemporaryDirectory() as folder:
        for file in (path, path.with_name(f"{path.name}-wal")):  # the latter of a process that was killed
            if file.exists():
                shutil.copyfile(file, Path(folder, file.name))
        yield Path(folder, path.name)


@contextmanager
def _connection(path: Path, file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a sound file of results, called `path` in messages."""
    connection = _connect(file)
    connection.text_factory = lambda text: text.decode(errors="replace")  # what has changed, checksums tell
    try:
        # Nothing that a schema could make SQLite do on its own: views, triggers, checks, generated columns.
        if _schema(connection) not in ([], _schema_of_results()):
            raise StoreError(_damaged(path, "it does not have the tables of one"))
        if connection.execute("pragma quick_check").fetchone() != ("ok",):
            raise StoreError(_damaged(path, "its pages do not fit together"))
        yield connection
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            raise StoreError(_damaged(path, "it does not have the tables of one")) from None
        raise StoreError(
            f"{path} could not be read or written: {error}. What it holds is safe; when that is mended, the same "
            "command goes on from there."
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter from a message of SQLite
        raise StoreError(_damaged(path, error)) from None
    finally:
        connection.close()


def _schema(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


@cache
def _schema_of_results() -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema(connection)


def _connect(path: Path, **options: Any) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, **options)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}.") from None


def _damaged(path: Path, reason: object) -> str:
    # SQLite's messages quote the file.
    reason = "".join(c if c.isprintable() else " " for c in str(reason))
    return f"{path} cannot be used as a file of results: {reason}. It was left as it is; choose another directory."


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    path = directory / LOCK
    with closing(_connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("begin exclusive")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise StoreError(
                    f"Another process is running in {directory}: wait for it, or choose another --out."
                ) from None
            raise StoreError(f"{path} cannot be locked: {error}. Choose another --out.") from None
        yield


def _to_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _from_bytes(content: bytes) -> NDArray[Any]:
    """The inverse of `_to_bytes`, which unlike `np.load` takes no memory for what is not there."""
    buffer = io.BytesIO(content)
    np.lib.format.read_magic(buffer)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(buffer)
    return np.frombuffer(content, dtype, offset=buffer.tell()).reshape(shape, order="F" if by_columns else "C").copy()


def _processor() -> str:
    """The name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
