"""CIFAR-10 from files that are made here, byte by byte."""

from __future__ import annotations

import copyreg
import functools
import io
import os
import pickle
import struct
import tarfile
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hyperelm.datasets import load_cifar10

FILES = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]
OFFICIAL = os.environ.get("HYPERELM_CIFAR10")


# ---------------------------------------------------------------------- files


def records(n, seed=0):
    """Planes of colours (n, 3072) and labels."""
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(n, 3072), dtype=np.uint8), rng.integers(10, size=n).tolist()


def binary(pixels, labels):
    return b"".join(bytes([label]) + row.tobytes() for label, row in zip(labels, pixels))


def batch(pixels, labels):
    names = [b"image_%d.png" % n for n in range(len(labels))]
    return {b"batch_label": b"training batch 1 of 5", b"labels": labels, b"data": pixels, b"filenames": names}


def python2(pixels, labels):
    """The opcodes that Python 2 and its NumPy wrote with protocol 2; texts are its strings of bytes."""

    def text(content):
        short = len(content) < 256
        return (b"U" + bytes([len(content)]) if short else b"T" + struct.pack("<i", len(content))) + content

    def number(value):
        return b"J" + struct.pack("<i", value)

    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b") + b"\x87R"
    kind = b"cnumpy\ndtype\n" + text(b"u1") + number(0) + number(1) + b"\x87R"
    kind += b"(" + number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    shape = number(pixels.shape[0]) + number(pixels.shape[1]) + b"\x86"
    array += b"(" + number(1) + shape + kind + b"\x89" + text(pixels.tobytes()) + b"tb"
    numbers = b"](" + b"".join(map(number, labels)) + b"e"
    names = b"](" + b"".join(text(b"image_%d.png" % n) for n in range(len(labels))) + b"e"
    items = [text(b"batch_label"), text(b"training batch 1 of 5"), text(b"labels"), numbers]
    items += [text(b"data"), array, text(b"filenames"), names]
    return b"\x80\x02}(" + b"".join(items) + b"u."


WRITERS = {
    "binary": binary,
    "Python 2": python2,
    **{f"protocol {p}": lambda pixels, labels, p=p: pickle.dumps(batch(pixels, labels), p) for p in (2, 3, 4, 5)},
}


def contents(kind, n=3):
    """The six official files by their names."""
    suffix = ".bin" if kind == "binary" else ""
    return {name + suffix: WRITERS[kind](*records(n, seed)) for seed, name in enumerate(FILES)}


def folder(directory, files):
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory


def archive(path, files, inner, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        tar.addfile(tarfile.TarInfo(inner))
        for name, content in files.items():
            member = tarfile.TarInfo(f"{inner}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def images(pixels):
    """Pixel by pixel: (r, c, colour) is byte 1024 colour + 32 r + c."""
    made = np.empty((len(pixels), 32, 32, 3), dtype=np.uint8)
    for r in range(32):
        for c in range(32):
            for colour in range(3):
                made[:, r, c, colour] = pixels[:, 1024 * colour + 32 * r + c]
    return made


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("archived", [False, True])
def test_every_kind_of_file(kind, archived, tmp_path):
    files = contents(kind)
    if archived:
        place = archive(tmp_path / "data.tar.gz", files, f"cifar-10-batches-{'bin' if kind == 'binary' else 'py'}")
    else:
        place = folder(tmp_path, files)
    for seed, split in enumerate(["batch_1", "batch_2", "batch_3", "batch_4", "batch_5", "test"]):
        pixels, labels = records(3, seed)
        got, classes = load_cifar10(place, split)
        assert got.dtype == classes.dtype == np.uint8
        assert_array_equal(got, images(pixels))
        assert_array_equal(classes, labels)


def test_all_training_images_are_the_five_batches_in_turn(tmp_path):
    place = folder(tmp_path, contents("binary"))
    got, classes = load_cifar10(place)
    parts = [load_cifar10(place, f"batch_{n}") for n in range(1, 6)]
    assert_array_equal(got, np.concatenate([part[0] for part in parts]))
    assert_array_equal(classes, np.concatenate([part[1] for part in parts]))
    assert got.shape == (15, 32, 32, 3)


def test_one_file_is_enough_for_its_split(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(binary(*records(2)))
    assert len(load_cifar10(tmp_path, "test")[0]) == 2
    with pytest.raises(ValueError, match=r"data_batch_1.bin or data_batch_1, .*which has neither"):
        load_cifar10(tmp_path)


def test_places_are_texts_or_paths(tmp_path):
    place = folder(tmp_path, contents("binary"))
    assert_array_equal(load_cifar10(str(place), "test")[0], load_cifar10(place, "test")[0])


@pytest.mark.parametrize("mode", ["w", "w:bz2"])
def test_other_archives(mode, tmp_path):
    place = archive(tmp_path / "data.tar", contents("binary"), "cifar-10-batches-bin", mode)
    assert_array_equal(load_cifar10(place, "test")[0], images(records(3, 5)[0]))


def test_images_are_ours_to_change(tmp_path):
    place = folder(tmp_path, contents("Python 2"))
    got, _ = load_cifar10(place, "test")
    got += 1
    assert got.flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["u1", "<i4", ">i8"])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_in_any_order_and_labels_in_arrays(order, kind, protocol, tmp_path):
    pixels, labels = records(4)
    content = pickle.dumps(batch(np.asarray(pixels, order=order), np.array(labels, dtype=kind)), protocol)
    (tmp_path / "test_batch").write_bytes(content)
    got, classes = load_cifar10(tmp_path, "test")
    assert_array_equal(got, images(pixels))
    assert_array_equal(classes, labels)


# ---------------------------------------------------------------------- pickles that would do something else


class Call:
    """Unpickled, it is whatever a function gives."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def in_objects(item):
    array = np.empty(1, dtype=object)
    array[0] = item
    return array


def touch():
    """Make a file in the present folder."""
    return Call(os.system, "echo > touched")


ATTACKS = {
    "os.system": (touch, f"{os.name}.system"),
    "eval": (lambda: Call(eval, "open('touched', 'w')"), "builtin.*eval"),
    "open": (lambda: Call(open, "touched", "w"), r"_?io.open"),
    "getattr": (lambda: Call(getattr, "", "join"), "builtin.*getattr"),
    "partial": (lambda: functools.partial(print, 1), "functools.partial"),
    "numpy.load": (lambda: Call(np.load, "touched", None, True), r"numpy\S*.load"),
    "numpy.fromfile": (lambda: Call(np.fromfile, "touched"), r"numpy\S*.fromfile"),
    "numpy.memmap": (lambda: Call(np.memmap, "touched", "u1", "w+", 0, 1), r"numpy\S*.memmap"),
    "numpy.testing": (lambda: Call(np.testing.assert_equal, 1, 2), r"numpy.testing\S*.assert_equal"),
    "copyreg": (lambda: Call(copyreg._reconstructor, set, object, None), r"copy_?reg._reconstructor"),
    "a class": (lambda: SimpleNamespace(a=1), "types.SimpleNamespace"),
    "in an array of objects": (lambda: in_objects(touch()), "O8"),
    "an array of objects": (lambda: in_objects(b"harmless"), "O8"),
    "a subclass of arrays": (lambda: np.ma.masked_array([1]), r"numpy\S*_mareconstruct"),
    "records": (lambda: np.zeros(1, dtype=[("a", "u1")]), "V1"),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("key", [b"data", b"labels", b"filenames", b"batch_label"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_pickles_build_nothing_but_arrays(attack, key, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, wanted = ATTACKS[attack]
    content = batch(*records(2)) | {key: make()}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(content, protocol))
    with pytest.raises(ValueError, match=f"test_batch is refused: it asks for .*{wanted}.*, and only .* read\\.$"):
        load_cifar10(tmp_path, "test")
    assert os.listdir() == ["test_batch"]


@pytest.mark.parametrize(
    "name",
    [
        "numpy.f2py\ncompile",
        "a\rb\nc",
        "__builtin__\neval",
        "copy_reg\n_reconstructor",
        "os\nsystem",
        "numpy\nndarray.tofile",
    ],
)
def test_names_of_python_2_are_refused_as_written(name, tmp_path):
    content = b"\x80\x02c" + name.encode() + b"\nU\x0cecho > found\x85R."
    (tmp_path / "test_batch").write_bytes(content)
    refused(tmp_path, "it asks for " + name.replace("\n", ".").replace("\r", " "))


class Kind:
    """A type that says it has no addresses in it, with a field of objects."""

    def __reduce__(self):
        return np.dtype, ("V8", False, True), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)


def test_bytes_are_not_taken_for_addresses(tmp_path):
    """With the state of a type at will, NumPy itself would follow any address: it must not see such a state."""
    labels = Call(np.ndarray, (2,), Kind(), struct.pack("<Q", 0x4141414141) * 2)
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch(*records(2)) | {b"labels": labels}, 4))
    with pytest.raises(ValueError, match=r"test_batch is refused: it asks for .*V8"):
        load_cifar10(tmp_path, "test")


BYTES = b"c_codecs\nencode\n"
LISTS = b"]q\x00(" + 300 * b"K\x01" + b"e0]q\x01(" + 300 * b"h\x00" + b"e0](" + 300 * b"h\x01" + b"e"
BOMBS = {
    "bytes of a length": BYTES + b"J" + struct.pack("<i", 10**8) + b"\x85R",
    "a place far away": b"]r" + struct.pack("<I", 2**23),
    "an array of bytes that are not there": b"\x96" + struct.pack("<Q", 10**8),
    "a list in a list in a list": LISTS,
    "a shape of nothing": b"cnumpy\nndarray\n)R(K\x01J" + struct.pack("<i", 2**30) + b"K\x00\x86N\x89C\x00tb",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_pickle_does_not_take_much_memory(bomb, tmp_path):
    pixels, _ = records(2)
    array = pickle.dumps(pixels, 3)[2:-1]  # without the protocol and "stop"
    content = b"\x80\x05}C\x04data" + array + b"sC\x06labels" + BOMBS[bomb] + b"s."
    (tmp_path / "test_batch").write_bytes(content)
    tracemalloc.start()
    try:
        refused(tmp_path, "test_batch is")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", ["", ".bin"])
def test_a_small_archive_does_not_take_much_memory(suffix, tmp_path):
    place = archive(tmp_path / "large.tar.gz", {f"test_batch{suffix}": bytes(2**26)}, "cifar", "w:gz")
    tracemalloc.start()
    try:
        refused(place, r"test_batch\S* in .*large.tar.gz must have at most 33,554,432 bytes, got 67,108,864")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_name_of_several_lines_is_told_in_one(tmp_path):
    content = (
        b"\x80\x04" + b"".join(b"\x8c" + bytes([len(name)]) + name for name in (b"a\n\x1b[2Jb", b"c\r")) + b"\x93."
    )
    (tmp_path / "test_batch").write_bytes(content)
    refused(tmp_path, r"test_batch is refused: it asks for a  \[2Jb\.c , and only arrays are read\.$")


@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_clear_error(content, tmp_path_factory):
    place = tmp_path_factory.mktemp("any")
    (place / "test_batch").write_bytes(b"\x80\x02" + content)
    with pytest.raises(ValueError, match="test_batch is"):
        load_cifar10(place, "test")


# ---------------------------------------------------------------------- files that are wrong


def refused(place, message, split="test"):
    with pytest.raises(ValueError, match=message) as error:
        load_cifar10(place, split)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", [0, 1, 3072, 3074, 2 * 3073 - 1])
def test_short_and_empty_files(length, tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(bytes(length))
    refused(tmp_path, f"test_batch.bin must be a whole number of records of 3073 bytes, got {length} bytes")


@pytest.mark.parametrize("label", [10, 100, 127, 129, 255])
def test_wrong_labels_in_binary_files(label, tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(binary(records(2)[0], [3, label]))
    refused(tmp_path, f"test_batch.bin is not a file of CIFAR-10: its labels must be 0 to 9, got {label}")


@pytest.mark.parametrize("label", [10, 256, 259, -1, 2**40])
def test_wrong_labels_in_python_files(label, tmp_path):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch(records(2)[0], [3, label]), 4))
    refused(tmp_path, f"test_batch is not a file of CIFAR-10: its labels must be 0 to 9, got {label}")


@pytest.mark.parametrize(
    "change",
    [
        {b"data": np.zeros((2, 3072))},
        {b"data": np.zeros((2, 3072), dtype=np.int8)},
        {b"data": np.zeros((2, 3071), dtype=np.uint8)},
        {b"data": np.zeros((2, 3, 1024), dtype=np.uint8)},
        {b"data": np.zeros((3, 3072), dtype=np.uint8)},
        {b"data": bytes(2 * 3072)},
        {b"data": None},
        {b"labels": [1]},
        {b"labels": [1, 2.0]},
        {b"labels": [1, None]},
        {b"labels": [1, [2]]},
        {b"labels": ["1", "2"]},
        {b"labels": [[1, 2], [3, 4]]},
        {b"labels": {1: 2, 3: 4}},
        {b"labels": 1},
        {b"labels": [], b"data": np.zeros((0, 3072), dtype=np.uint8)},
        {b"labels": np.zeros(0, dtype=int), b"data": np.zeros((0, 3072), dtype=np.uint8)},
    ],
)
def test_python_files_of_something_else(change, tmp_path):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch(*records(2)) | change, 4))
    refused(tmp_path, "test_batch is not a file of CIFAR-10: ")


@pytest.mark.parametrize("content", [[1, 2], {b"data": 1}, {}, None, "text", {"data": np.zeros((1, 3072), np.uint8)}])
def test_pickles_of_something_else(content, tmp_path):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(content, 4))
    refused(tmp_path, "test_batch is not a file of CIFAR-10: ")


@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_files(kind, tmp_path):
    content = WRITERS[kind](*records(2))
    for length in np.linspace(1, len(content) - 1, 24).astype(int):
        (tmp_path / "test_batch").write_bytes(content[:length])
        refused(tmp_path, r"test_batch (is|must be)")


def test_foreign_files(tmp_path):
    (tmp_path / "test_batch").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    refused(tmp_path, "test_batch must be a whole number of records")


def test_missing_files_and_folders(tmp_path):
    refused(tmp_path, r"^`path` must be a folder with test_batch.bin or test_batch, got '.*', which has neither\.$")
    refused(tmp_path / "nowhere", r"^`path` must be a folder or an archive with the files of CIFAR-10, got '.*nowhere'")
    place = archive(tmp_path / "some.tar.gz", {"readme.html": b"hello"}, "cifar-10-batches-py")
    refused(place, r"^`path` must be an archive with test_batch.bin or test_batch, got '.*', which has neither\.$")


@pytest.mark.parametrize("content", [b"", b"hello", bytes(2000), binary(*records(2))])
def test_files_that_are_no_archives(content, tmp_path):
    place = tmp_path / "some.tar.gz"
    place.write_bytes(content)
    refused(place, r"^`path` must be (a folder or )?an archive with .*, got .*some.tar.gz")


@pytest.mark.parametrize("kind", ["binary", "Python 2"])
def test_truncated_archives(kind, tmp_path):
    whole = archive(tmp_path / "whole.tar.gz", contents(kind), "cifar-10-batches").read_bytes()
    place = tmp_path / "part.tar.gz"
    for length in np.linspace(0, len(whole) - len(whole) // 6, 40).astype(int):
        place.write_bytes(whole[:length])
        refused(place, r"^`path` must be (a folder or )?an archive with .*part.tar.gz")


def test_damaged_archives(tmp_path):
    """One byte is another, anywhere: the file is read all the same, or refused in one line."""
    whole = archive(tmp_path / "whole.tar.gz", contents("binary"), "cifar-10-batches-bin").read_bytes()
    place, messages = tmp_path / "damaged.tar.gz", []
    for position in np.linspace(0, len(whole) - 1, 60).astype(int):
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            load_cifar10(place, "test")
        except ValueError as error:
            messages.append(str(error))
    assert messages
    assert all("damaged.tar.gz" in message and "\n" not in message for message in messages)


def test_links_in_archives_are_not_followed(tmp_path):
    place = tmp_path / "data.tar"
    with tarfile.open(place, "w") as tar:
        link = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "../elsewhere"
        tar.addfile(link)
    refused(place, "which has neither")


@pytest.mark.parametrize("split", ["", "Test", "batch_0", "batch_6", "batch_x", "validation"])
def test_unknown_splits(split, tmp_path):
    refused(tmp_path, rf"^`split` must be one of 'train', 'batch_1', .*'test', got '{split}'\.$", split)


# ---------------------------------------------------------------------- where there is a network


@pytest.fixture
def openml(monkeypatch):
    """What the server would send, with a mark on the first row of each batch; untouched rows take no memory."""
    data = np.zeros((60_000, 3072), dtype=np.uint8)
    data[::10_000, 1024] = range(1, 7)
    target = np.zeros(60_000, dtype=int)
    target[::10_000] = range(1, 7)
    asked = []

    def fetch(name, **options):
        asked.append((name, options))
        return SimpleNamespace(data=data, target=target.astype(str).astype(object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return asked


@pytest.mark.parametrize(
    ("split", "marks"), [("batch_1", [1]), ("batch_4", [4]), ("train", range(1, 6)), ("test", [6])]
)
def test_openml(openml, split, marks):
    got, labels = load_cifar10("openml", split)
    assert got.shape == (10_000 * len(marks), 32, 32, 3)
    assert got.dtype == labels.dtype == np.uint8
    assert got[::10_000, 0, 0].tolist() == [[0, mark, 0] for mark in marks]
    assert labels[::10_000].tolist() == list(marks)
    assert np.count_nonzero(got) == np.count_nonzero(labels) == len(marks)
    assert openml == [("CIFAR_10", {"version": 1, "as_frame": False})]


def test_openml_without_a_network(monkeypatch):
    def fetch(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    refused("openml", r"^`path` must be a folder or an archive .*where there is no network.*no route to host")


# ---------------------------------------------------------------------- the real files


@pytest.mark.skipif(not OFFICIAL, reason="HYPERELM_CIFAR10 does not say where the images are")
@pytest.mark.parametrize("split", ["batch_1", "test"])
def test_the_official_images(split):
    got, labels = load_cifar10(OFFICIAL, split)
    assert got.shape == (10_000, 32, 32, 3)
    assert got.dtype == labels.dtype == np.uint8
    assert np.all(np.bincount(labels) > 900)
    # Photographs: neighbours are alike, in all three colours; and white, black and all between occur.
    assert np.abs(np.diff(got[:500].astype(int), axis=1)).mean() < 20
    assert np.abs(np.diff(got[:500].astype(int), axis=2)).mean() < 20
    assert np.all(np.bincount(got[:500].ravel(), minlength=256) > 0)
