"""Files as spreadsheets and pandas write them: cells, separators, letters, names, and messages that name the cell."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperelm.experiments import column_names, read_sheet
from hyperelm.experiments._cells import find_decimal, is_missing, kind_of, number
from hyperelm.experiments._sheet import joined_names


def sheet(tmp_path, content, *named, name="data.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_sheet(str(path), "DATA", named, **options)


# ---------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("cell", "by_points", "by_commas"),
    [
        ("12,800.0", 12800.0, None),
        ("12.800,5", None, 12800.5),
        ("1,234", 1234.0, 1.234),
        ("0,123", None, 0.123),
        ("1,23,456", None, None),
        ("4.7%", 4.7, None),
        ("-4,7 %", None, -4.7),
        ("TRUE", 1.0, 1.0),
        ("False", 0.0, 0.0),
        (" 7 ", 7.0, 7.0),
        ("1_0", None, None),
        ("1e3", 1000.0, 1000.0),
        (".5", 0.5, None),
        ("", None, None),
        ("%", None, None),
        (".", None, None),
        ("1.2.3", None, None),
        ("x", None, None),
    ],
)
def test_numbers(cell, by_points, by_commas):
    assert number(cell) == by_points
    assert number(cell, ",") == by_commas


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_reads_back(value):
    assert number(repr(value)) == value
    assert number(repr(value).replace(".", ","), ",") == value


@given(st.integers(-(10**15), 10**15), st.sampled_from(["", "%"]))
def test_groups_of_thousands(value, percent):
    assert number(f"{value:,}{percent}") == value
    assert number(f"{value:,}".replace(",", "."), ",") == value


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "NaN", "null", "#N/A", "NaT"])
def test_missing(cell):
    assert is_missing(cell)
    assert not is_missing("none")  # which is often a level


@pytest.mark.parametrize(
    ("cells", "sep", "decimal"),
    [
        (["1,5", "2"], ";", ","),
        (["1.5", "2"], ";", "."),
        (["1,234"], ";", ","),  # a file with semicolons has commas for decimals
        (["1,234"], ",", "."),
        (["1,234", "1.5"], ";", "."),
        (["31.12.2020", "a"], ";", "."),
        (["1.234,5", "1.234"], "\t", ","),
    ],
)
def test_the_decimal_sign(cells, sep, decimal):
    assert find_decimal(cells, sep) == decimal


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", ""], "number"),
        (["", "NA"], "empty"),
        (["TRUE", "false", ""], "truth"),
        (["a", "b"], "text"),
        ([*map(str, range(30)), "x"], "number"),  # with a cell that is wrong
        (["1", "2", "x"], "text"),
        (["2012/01/01", "2012/01/02"], "date ISO8601"),
        (["2012-01-01 10:00:00", "2012-01-02T10:30Z"], "date ISO8601"),
        (["19580329", "19580405"], "date %Y%m%d"),
        (["19580329", "19581332"], "number"),
        (["1970 Q1", "1970 Q2"], "date quarter"),
        (["31.12.2020", "1.1.2021"], "date %d.%m.%Y"),
        (["Jan 1 2000", "Feb 1 2000"], "date %b %d %Y"),
        (["01/13/2020", "02/01/2020"], "date %m/%d/%Y"),
        (["13/01/2020", "01/02/2020"], "date %d/%m/%Y"),
        (["02/11/2020", "01/12/2020"], "date %d/%m/%Y"),  # in the order of time
        (["01/02/2020", "01/02/2020"], "date %m/%d/%Y"),
        (["2012-01-01", "soon"], "text"),
    ],
)
def test_kinds_of_columns(cells, kind):
    assert kind_of(np.array(cells, dtype=object)) == kind


# ---------------------------------------------------------------------- files

ROWS = [["here", 1.5, 2], ["there", -0.25, 3]]


@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_pandas_writes(tmp_path, sep, decimal, encoding, end, packed):
    frame = pd.DataFrame(ROWS, columns=["größe", "x", "y"])
    content = frame.to_csv(sep=sep, decimal=decimal, index=False, lineterminator=end).encode(encoding)
    found = sheet(tmp_path, gzip.compress(content, mtime=0) if packed else content)
    assert found.names == ["größe", "x", "y"]
    assert (found.sep, found.decimal) == (sep, decimal)
    assert found.texts("größe").tolist() == ["here", "there"]
    assert found.numbers("x").tolist() == [1.5, -0.25]
    assert found.numbers("y").tolist() == [2, 3]


def test_remarks_say_what_is_not_plain(tmp_path):
    assert sheet(tmp_path, "a,b\n1,2\n").remarks == []
    assert sheet(tmp_path, "a;b\n1,5;2\n").remarks == [
        "Columns are separated by semicolons.",
        "Numbers have decimal commas (--decimal . for points).",
    ]
    assert sheet(tmp_path, "a;b\n1,5;2\n", sep=";", decimal=",").remarks == []
    counted = sheet(tmp_path, ",a,b\n0,5,6\n1,7,8\n")
    assert counted.names == ["a", "b"]
    assert counted.remarks == ["The first column, which counts the rows, is left out."]
    (said,) = (shuffled := sheet(tmp_path, ",a,b\n7,5,6\n3,7,8\n")).remarks
    assert shuffled.names == ["a", "b"]
    assert said == "The first column, which has no name and another whole number in every row, is left out."
    assert sheet(tmp_path, ",a,b\n7,5,6\n7,7,8\n").names == ["1", "a", "b"]


def test_what_the_user_says_counts(tmp_path):
    assert sheet(tmp_path, "a|b\n1|2\n", sep="|").names == ["a", "b"]
    assert sheet(tmp_path, "a\tb\n1\t2\n", sep="tab").names == ["a", "b"]
    assert sheet(tmp_path, "a;b\n1,234;2\n", decimal=".").numbers("a").tolist() == [1234]
    for options, message in [({"sep": "--"}, "--sep must be one character"), ({"decimal": "x"}, "--decimal must be")]:
        with pytest.raises(ValueError, match=message):
            sheet(tmp_path, "a,b\n1,2\n", **options)


def test_a_first_column_without_a_name(tmp_path):
    """As R writes the names of rows: it is called by its number."""
    found = sheet(tmp_path, '"","mpg"\n"Mazda",21\n"Datsun",22.8\n')
    assert found.names == ["1", "mpg"]
    assert found.texts("1").tolist() == ["Mazda", "Datsun"]
    numbers = sheet(tmp_path, ",0,1\n0,5,6\n1,7,8\n")  # as pandas writes an array
    assert (numbers.names, len(numbers)) == (["0", "1"], 2)


def test_rows_in_quotes(tmp_path):
    found = sheet(tmp_path, 'a,"b, c"\n"1,200.5","x\ny"\n3,"say ""hi"""\n')
    assert found.names == ["a", "b, c"]
    assert found.numbers("a").tolist() == [1200.5, 3]
    assert found.texts("b, c").tolist() == ["x\ny", 'say "hi"']


def test_parquet(tmp_path):
    times = pd.to_datetime(["2020-01-31", None])
    frame = pd.DataFrame({"x": [1, 2], "y": [0.5, None], "t": times, "s": ["a", None], "b": [True, False]})
    frame.to_parquet(tmp_path / "data.parquet")
    found = read_sheet(str(tmp_path / "data.parquet"), "DATA")
    assert [found.kind(name) for name in found.names] == ["number", "number", "date ", "text", "truth"]
    assert found.numbers("x").tolist() == [1, 2]
    np.testing.assert_array_equal(found.numbers("y"), [0.5, np.nan])
    assert found.dates("t", "")[0] == np.datetime64("2020-01-31")
    assert found.texts("s").tolist() == ["a", None]
    assert found.numbers("b").tolist() == [1, 0]
    content = (tmp_path / "data.parquet").read_bytes()
    with pytest.raises(ValueError, match="must be a readable CSV file"):
        sheet(tmp_path, content[: len(content) // 2])


def test_parquet_without_its_package(tmp_path, monkeypatch):
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="Parquet files need the package 'pyarrow'"):
        read_sheet(str(tmp_path / "data.parquet"), "DATA")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n\xff,1\n", "byte 9 is not UTF-8. Save it as UTF-8"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6], "the archive is not complete"),
        (gzip.compress(b"a,b\n1,2\n" * 50, mtime=0)[:10] + b"\xff" * 20, "archive"),
        ("a,b\n1,2\n3\n", "got 1 instead of 2 in row 3"),
        ("a,b\n1,2\n3,4,5\n", "got 3 instead of 2 in row 3"),
        ("a,b\n1,2,3\n", "as many names as columns, got 2 for 3"),
        ("a,b\n", "has none"),
        ("", "has none"),
        ('a,b\n"' + "x" * 200_000 + '",1\n', "field larger than field limit"),
    ],
)
def test_files_that_are_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match="DATA must ") as error:
        sheet(tmp_path, content)
    assert message in str(error.value)


def test_dates_of_another_form(tmp_path):
    """A later file may be written otherwise."""
    found = sheet(tmp_path, "d\n31.12.2020\n\n1.1.2021\n")
    assert found.dates("d", "ISO8601").astype(str).tolist() == ["2020-12-31T00:00:00", "NaT", "2021-01-01T00:00:00"]
    wrong = sheet(tmp_path, "d\n31.12.2020\nsoon\n")
    with pytest.raises(ValueError, match=r"must hold dates of one form, got '31.12.2020' in row 2, column 1 \('d'\)"):
        wrong.dates("d", "ISO8601")
    with pytest.raises(ValueError, match=r"must hold dates of one form, got 'soon' in row 3, column 1 \('d'\)"):
        wrong.dates("d", "%d.%m.%Y")


# ---------------------------------------------------------------------- names in options


def test_names_with_commas():
    assert column_names('a, b ,"c, d"', "--inputs") == ["a", "b", "c, d"]
    for text in ("", "a,,b", "a,a", " "):
        with pytest.raises(ValueError, match="--inputs must be different names"):
            column_names(text, "--inputs")


@settings(max_examples=30)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\r\n\0"), min_size=1).map(str.strip).filter(bool),
        min_size=1,
        unique=True,
    )
)
def test_joined_names_read_back(names):
    assert column_names(joined_names(names), "--target") == names
