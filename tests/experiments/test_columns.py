"""Series from files."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

from helpers import needs_named_pipes
from hyperelm import experiments
from hyperelm.experiments._columns import fixed, read_csv, read_fixed


def written(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def read(path):
    return read_fixed(*fixed(path)).values


@pytest.mark.parametrize(
    "text", ["1,2\n3,4\n", "x,y\n1,2\n3,4", "\ufeffx,y\r\n1,2\r\n3,4\r\n\r\n", " 1 , 2\n3,4e0\n\n\n"]
)
def test_ways_to_write_a_series(tmp_path, text):
    np.testing.assert_array_equal(read(written(tmp_path, text)), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n\n2\n", "got '' in row 2, column 1"),
        (",\n1,2\n", "got '' in row 1, column 1"),
        ("1,1_0\n", "got '1_0' in row 1, column 2"),
        ("1,x\n", "got 'x' in row 1, column 2"),
        ("x,y\n1,nan\n", "got 'nan' in row 2, column 2"),
        ("x,y\n1,2\n3,-1e200\n", r"numbers up to 1e\+100, got -1e\+200 in 'y'"),
        ("1,2\n3\n", "got 1 instead of 2 in row 2"),
        ("x,y\n", "has none"),
        ("", "has none"),
    ],
)
def test_what_is_no_series(tmp_path, text, message):
    with pytest.raises(ValueError, match="--set series must .*" + message):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("first", "named", "header", "remark"),
    [
        ("2019,2020,2021", ["2021"], True, "The first row (2019, 2020, 2021) is taken as names of columns."),
        (
            "2019,2020,2021",
            [],
            False,
            "Columns are called by their numbers from 1 on: the first row (2019, 2020, 2021)",
        ),
        ("2019,2020,2021", ["3"], False, "Columns are called by their numbers from 1 on"),
        ("place,2019,2020", ["2019", "2020"], True, "The first row (place, 2019, 2020) is taken as names of columns."),
        ("0,1,2", ["2"], True, "The first row (0, 1, 2) is taken as names of columns."),
        ("1,2,3", [], True, "The first row (1, 2, 3) is taken as names of columns."),
        ("3,1,2", ["3"], False, "the first row (3, 1, 2) is taken as numbers."),
        ("0.5,1e3,-7", ["1"], False, "the first row (0.5, 1e3, -7) is taken as numbers."),
        ("0.5,1e3,-7", ["1e3"], True, "The first row (0.5, 1e3, -7) is taken as names of columns."),
        ("a,b,c", ["b"], True, ""),
        ("a,b,c", [], True, ""),
    ],
)
def test_whether_the_first_row_has_names(tmp_path, first, named, header, remark):
    rest = "4,5,6\n7,8,9\n"
    found = read_csv(written(tmp_path, f"{first}\n{rest}"), "DATA", named)
    assert found.names == (first.split(",") if header else ["1", "2", "3"])
    assert len(found.values) == 2 + (not header)
    assert remark in found.remark
    assert bool(found.remark) == bool(remark)


def test_the_order_of_two_columns_does_not_tell_names(tmp_path):
    """Two columns that count may be numbers, such as those of a truth table."""
    path = written(tmp_path, b"0,1\n1,0\n")
    assert read_csv(path, "DATA", ["1"]).values.tolist() == [[0, 1], [1, 0]]
    assert read_csv(path, "DATA", ["0"]).values.tolist() == [[1, 0]]


def test_a_file_that_changes(tmp_path):
    path = written(tmp_path, "1\n2\n")
    before = fixed(path)
    assert len(read_fixed(*before).values) == 2
    written(tmp_path, "1\n2\n3\n")
    assert len(read(path)) == 3
    read_fixed.cache_clear()
    with pytest.raises(ValueError, match="must not change while it is used"):
        read_fixed(*before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lyapunov=0", "--set lyapunov must be finite and > 0"),
        ("weight_scale=nan", "--set weight_scale must be finite and > 0"),
        ("scales=[]", "--set scales must not be empty"),
        ("scales=[0.0]", "--set scales must be finite and > 0"),
        ("window=98", "--set train must be at least 303 with windows of 98"),
        ("start=[1.0, 2.0]", "--set start must be three finite numbers"),
        ("dt=-1.0", "--set dt must be a number > 0"),
        ("sensitivity=[{name = 'a'}]", "must have variants with a name and a change"),
        ("sensitivity=[{name = 'a', change = {dt = 'u'}}]", "must change settings to values of their type, got dt='u'"),
        ("sensitivity=[{name = 'a', change = {nothing = 1}}]", "of their type, got nothing=1"),
    ],
)
def test_settings_of_the_lorenz_experiment(change, message):
    with pytest.raises(ValueError, match=r"--set ") as error:
        experiments.load("lorenz", changes=[change])
    assert message in str(error.value)


def test_models_have_their_catalogue_names():
    assert experiments.load("lorenz", changes=["models=['R', 'H']"]).settings["models"] == ["real", "quaternions"]


def test_a_constant_series(tmp_path):
    path = written(tmp_path, 400 * "1,1,1\n")
    with pytest.raises(ValueError, match="must vary"):
        experiments.load("lorenz", changes=[f"series={path}"])


def test_a_large_file_takes_a_few_times_its_size(tmp_path):
    text = 20_000 * "0.123456,-1.23456,12.3456\n"
    path = written(tmp_path, text)
    tracemalloc.start()
    try:
        assert read(path).shape == (20_000, 3)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
    finally:
        tracemalloc.stop()


@needs_named_pipes
@pytest.mark.parametrize(("name", "changes"), [("lorenz", "series={}"), ("search", "task=csv data={} target=a")])
def test_a_pipe_is_refused(tmp_path, name, changes):
    """Processes of a run could not read it again."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"must be a file that can be read again, got '.*/pipe', which is a pipe"):
        experiments.load(name, changes=changes.format(tmp_path / "pipe").split())
