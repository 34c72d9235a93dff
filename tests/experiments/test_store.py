from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import needs_links, needs_sigkill
from hyperelm.experiments import Store, StoreError, Unit
from hyperelm.experiments._definition import MAIN, Experiment, Result
from hyperelm.experiments._store import FILE, LOCK
from runs import other_program, sql

SETTINGS = {"seed": 0, "models": ["real", "klein4"], "dt": 0.1}
ONE = Experiment("lorenz", SETTINGS, {})


def unit(algebra="real", n_hidden=3, count=2, part=MAIN, variant=""):
    return Unit(part, variant, algebra, n_hidden, 0, count)


def result(unit, gain=1.0):
    return Result([{"network": n, "seed": 10 + n, "prediction_gain": gain + n} for n in unit.networks])


@pytest.fixture
def directory(tmp_path):
    """Results of two units."""
    with Store.running(tmp_path / "out", ONE) as store:
        store.begin_session()
        for u in (unit(), unit("klein4", part="tuned")):
            store.add(u, result(u))
    return tmp_path / "out"


def bits(value):
    return struct.pack("d", value)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5))
def test_numbers_keep_their_bits(tmp_path_factory, values):
    directory = tmp_path_factory.mktemp("bits")
    u = unit(count=len(values))
    with Store.running(directory, ONE) as store:
        store.add(u, Result([{"network": n, "value": value} for n, value in enumerate(values)]))
    with Store.open(directory) as store:
        assert [bits(row["value"]) for row in store.rows()] == [bits(value) for value in values]


def test_rows_have_the_fields_of_unit_and_run(directory):
    with Store.open(directory) as store:
        assert store.rows()[1] == {
            "part": MAIN,
            "variant": "",
            "algebra": "real",
            "n_hidden": 3,
            "network": 1,
            "seed": 11,
            "prediction_gain": 2.0,
        }
        assert {row["part"] for row in store.rows(None)} == {MAIN, "tuned"}
        assert {row["algebra"] for row in store.rows("tuned")} == {"klein4"}


def test_reading_where_nothing_can_be_written(directory, monkeypatch):
    """Also what a process that was killed left in the file beside."""
    before = sorted(path.name for path in directory.iterdir())
    with Store.running(directory, ONE) as running:
        u = unit("klein4")
        running.add(u, result(u))
        monkeypatch.setattr(os, "access", lambda *_: False)
        beside = {path.name: path.read_bytes() for path in directory.iterdir()}
        with Store.open(directory) as store:
            assert [row["algebra"] for row in store.rows()] == ["klein4", "real", "klein4", "real"]
        assert {path.name: path.read_bytes() for path in directory.iterdir()} == beside
    (directory / FILE).write_bytes(b"no results")
    with pytest.raises(StoreError, match=f"^{directory / FILE} cannot be used"), Store.open(directory):
        pass
    assert sorted(path.name for path in directory.iterdir()) == before


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs mounts of its own")
def test_export_from_a_read_only_mount(directory):
    code = "from hyperelm.cli._commands import app; import sys; app(['export', sys.argv[1]])"
    mount = 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" || exit 77; touch "$2/x" || "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, sys.executable, code, str(directory)], capture_output=True, text=True
    )
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("nothing can be mounted here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "algebra,n_hidden,network,seed,prediction_gain"
    assert len(done.stdout.splitlines()) == 3


@needs_links
@pytest.mark.parametrize("name", [FILE, LOCK])
def test_links_are_not_written_through(tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(tmp_path / "other")
    with pytest.raises(StoreError, match=f"{name} is a symbolic link"), Store.running(tmp_path / "out", ONE):
        pass
    assert not (tmp_path / "other").exists()


def test_order_does_not_depend_on_how_runs_were_done(tmp_path):
    units = [unit(a, L, part=part) for a in ("real", "klein4") for L in (3, 11) for part in (MAIN, "tuned")]
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(units)
        with Store.running(tmp_path / str(seed), ONE) as store:
            for u in units:
                store.add(u, result(u))
            found.append(store.rows(None))
    assert found[0] == found[1] == found[2]


def test_waiting_units(directory):
    more = unit("klein4")
    with Store.running(directory, ONE) as store:
        assert store.waiting([more, unit(), unit("klein4", part="tuned")]) == [more]


def test_units_of_another_division_are_refused(directory):
    with Store.running(directory, ONE) as store, pytest.raises(StoreError, match=r"units such as 'main//real/3/0\+2'"):
        store.waiting([unit(count=1), unit("klein4", part="tuned")])


def test_arrays(directory):
    array = np.random.default_rng(0).standard_normal((4, 3))
    with Store.running(directory, ONE) as store:
        store.add(unit("klein4"), Result([], {"path": np.zeros(2)}))
        store.add(unit("klein4", 4), Result([], {"path": array}))
        np.testing.assert_array_equal(store.array("path"), array)
        assert store.array("nothing") is None


def test_a_unit_is_kept_whole_or_not_at_all(directory):
    u = unit("klein4")
    rows = [{"network": 0, "value": 1.0}, {"network": 1, "value": object()}]
    with Store.running(directory, ONE) as store:
        with pytest.raises(TypeError):
            store.add(u, Result(rows, {"path": np.zeros(2)}))
        assert store.waiting([u, unit(), unit("klein4", part="tuned")]) == [u]
        assert len(store.rows(None)) == 4
        assert store.array("path") is None


def test_sessions(directory):
    with Store.open(directory) as store:
        (session,) = store.sessions()
    assert session["started"].endswith("+00:00")
    assert session["versions"]["numpy"] == np.__version__
    assert session["versions"]["python"] == sys.version.split()[0]
    assert session["machine"]["system"]


def test_results_can_be_read_while_they_grow(directory):
    with Store.running(directory, ONE) as writer, Store.open(directory) as reader:
        u = unit("klein4")
        writer.add(u, result(u))
        assert reader.rows() == writer.rows()


# ---------------------------------------------------------------------- who may write


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Experiment("autoencoder", SETTINGS, {}), r"\(experiment is 'lorenz' there, 'autoencoder' here\)"),
        (Experiment("lorenz", SETTINGS | {"seed": 1}, {}), r"other settings, seed \(seed is 0 there, 1 here\)"),
        (Experiment("lorenz", SETTINGS | {"models": ["real"], "seed": 1}, {}), "other settings, models, seed"),
        (Experiment("lorenz", SETTINGS | {"digest": "x"}, {}), r"digest \(digest is None there, 'x' here\)"),
        (Experiment("lorenz", {"seed": 0}, {}), "other settings, dt, models"),
    ],
)
def test_results_of_something_else_are_refused_untouched(directory, other, message):
    before = (directory / FILE).read_bytes()
    with pytest.raises(StoreError, match=message), Store.running(directory, other):
        pass
    assert (directory / FILE).read_bytes() == before


def test_the_same_is_not_refused(directory):
    before = (directory / FILE).read_bytes()
    with Store.running(directory, ONE) as store:
        assert store.settings == SETTINGS
    assert (directory / FILE).read_bytes() == before


def test_only_one_writes(directory):
    with (
        Store.running(directory, ONE),
        pytest.raises(StoreError, match=f"Another process is running in {directory}"),
        Store.running(directory, ONE),
    ):
        pass
    with Store.running(directory, ONE):
        pass


@pytest.mark.parametrize("name", ["data.csv", "report.html"])
def test_other_files_are_refused(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(StoreError, match="holds other files"), Store.running(tmp_path, ONE):
        pass
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(StoreError, match="--out must be a directory that can be written"), Store.running(path, ONE):
            pass
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", [FILE, LOCK])
def test_a_directory_in_place_of_a_file(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match=name), Store.running(tmp_path, ONE):
        pass


def test_a_lock_that_is_something_else(tmp_path):
    (tmp_path / LOCK).write_bytes(b"something else" * 100)
    with pytest.raises(StoreError, match="cannot be locked"), Store.running(tmp_path, ONE):
        pass
    assert (tmp_path / LOCK).read_bytes() == b"something else" * 100


def test_nothing_to_read(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match="does not exist"), Store.open(path):
            pass
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- killed while the file is made

KILLED = {
    "before the lock": "",
    "with the lock": "lock()",
    "with an empty file": "lock(); connect('results.sqlite')",
    "within the first transaction": (
        "lock(); c = connect('results.sqlite'); c.execute('pragma cache_size = 1'); c.execute('begin');"
        "c.execute('create table runs (x text)'); [c.execute('insert into runs values (hex(randomblob(9999)))') "
        "for _ in range(50)]"
    ),
}


@needs_sigkill
@pytest.mark.parametrize("code", KILLED.values(), ids=KILLED)
def test_what_a_killed_process_leaves_is_no_hindrance(tmp_path, code):
    start = (
        "import os, sqlite3, signal\n"
        "def connect(name): return sqlite3.connect(name, isolation_level=None)\n"
        "def lock(): global held; held = connect('running.lock'); held.execute('begin exclusive')\n"
    )
    end = "\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", start + code + end], cwd=tmp_path, stderr=subprocess.PIPE)
    assert done.returncode == -9, done.stderr
    with Store.running(tmp_path, ONE) as store:
        store.add(unit(), result(unit()))
        assert len(store.rows()) == 2


# ---------------------------------------------------------------------- damage


def noise(path):
    path.write_bytes(random.Random(0).randbytes(5000))


def cut(path):
    os.truncate(path, path.stat().st_size - 5000)


def cut_to_a_header(path):
    os.truncate(path, 90)


def hole(path):
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(4096) + data[8192:])


COLUMNS = ", ".join(f"x as {name}" for name in (*Store.KEYS, "fields", "checksum"))
ENDLESS = f"create view runs as with recursive n(x) as (select 1 union all select x + 1 from n) select {COLUMNS} from n"
DAMAGES = {
    "a schema that SQLite cannot read": sql(
        "pragma writable_schema = on",
        "update sqlite_master set sql = 'create table runs (''x\n\x1b)' where name = 'runs'",
    ),
    "results without an end": sql("drop table runs", ENDLESS),
    "a check of its own": sql("drop table runs", "create table runs (part text check (part > 0))"),
    "noise": noise,
    "cut": cut,
    "cut to a header": cut_to_a_header,
    "hole": hole,
    "of another program": other_program,
    "of another program with the same tables": sql("drop table experiment", "create table experiment (name text)"),
    "without runs": sql("drop table runs"),
    "without units": sql("drop table units"),
    "without its experiment": sql("delete from experiment"),
    "settings that are no JSON": sql("update experiment set settings = 'dt: 0.1'"),
    "other settings": sql("update experiment set settings = replace(settings, '0.1', '0.2')"),
    "a run that is no JSON": sql("update runs set fields = '{' where network = 1"),
    "a number that has changed": sql("update runs set fields = replace(fields, '1.0', '1.1')"),
    "a size that has changed": sql("update runs set n_hidden = 4 where network = 1"),
    "text that is no text": sql("update runs set algebra = cast(x'ff' as text) where network = 1"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_told_and_left_alone(directory, damage):
    path = directory / FILE
    damage(path)
    before = path.read_bytes()

    def read():
        with Store.open(directory) as store:
            store.waiting([unit(), unit("klein4", part="tuned")])
            store.rows(None)

    def write():
        with Store.running(directory, ONE) as store:
            store.waiting([unit(), unit("klein4", part="tuned")])
            store.rows(None)

    for use in (read, write):
        with pytest.raises(
            StoreError, match=rf"{path} cannot be used as a file of results: .*\. It was left as it is"
        ) as error:
            use()
        assert str(error.value).isprintable()
        assert path.read_bytes() == before


def test_a_changed_array_is_told(directory):
    with Store.running(directory, ONE) as store:
        store.add(unit("klein4"), Result([], {"path": np.ones(2)}))
    sql("update arrays set data = x'00'")(directory / FILE)
    with Store.open(directory) as store, pytest.raises(StoreError, match="'arrays' has changed"):
        store.array("path")


def test_no_changed_byte_changes_results(directory):
    """Wherever bytes change, the results are the same or refused."""
    path, rng = directory / FILE, random.Random(1)
    good = path.read_bytes()
    with Store.open(directory) as store:
        rows = store.rows(None)
    outcomes = []
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice([1, 10])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            with Store.open(directory) as store:
                assert store.rows(None) == rows
            outcomes.append("same")
        except StoreError:
            outcomes.append("refused")
    assert set(outcomes) == {"same", "refused"}
