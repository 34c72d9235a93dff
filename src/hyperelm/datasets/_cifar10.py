"""CIFAR-10 from its official files.

A record is a label and 3,072 bytes: 1,024 each of red, green and blue. The Python files of the data set are pickles,
and unpickling may run any code. The unpickler here builds only arrays of numbers, bytes, strings, numbers, lists and
dictionaries, and takes memory in proportion to the size of the file.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._validation import ArgumentError, check_choice

Images = NDArray[np.uint8]

_FILES = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]
_SPLITS = {"train": _FILES[:5], **{f"batch_{n}": [_FILES[n - 1]] for n in range(1, 6)}, "test": _FILES[5:]}
_RECORD = 1 + 3072
_LARGEST = 2**25  # bytes of a file in an archive; official files have 31 million


def load_cifar10(path: str | Path, split: str = "train") -> tuple[Images, NDArray[np.uint8]]:
    """Read images and labels of CIFAR-10.

    Parameters
    ----------
    path : str or Path
        A folder with the official binary files (data_batch_1.bin, ...) or Python files (data_batch_1, ...), or the
        downloaded archive (cifar-10-binary.tar.gz, cifar-10-python.tar.gz); or "openml", which downloads the data set
        with `sklearn.datasets.fetch_openml`.
    split : {"train", "batch_1", ..., "batch_5", "test"}
        All training images, those of one batch (the paper uses batch_1), or the test images.

    Returns
    -------
    images : array of shape (n, 32, 32, 3), of bytes
    labels : array of shape (n,), of bytes

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hyperelm.datasets import load_cifar10
    >>> with TemporaryDirectory() as folder:  # a file with one black image of class 0
    ...     written = Path(folder, "test_batch.bin").write_bytes(bytes(1 + 3072))
    ...     images, labels = load_cifar10(folder, "test")
    >>> images.shape, labels
    ((1, 32, 32, 3), array([0], dtype=uint8))
    """
    check_choice(split, _SPLITS, "split")
    if str(path) == "openml":
        return _from_openml(split)
    pixels, labels = zip(*(_parse(*_content(Path(path), name)) for name in _SPLITS[split]))
    return _pictures(np.concatenate(pixels)), np.concatenate(labels)


def _pictures(pixels: Images) -> Images:
    """Turn colour planes (n, 3072) into images (n, 32, 32, 3)."""
    return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _content(path: Path, name: str) -> tuple[bytes, str]:
    """The content of one file in a folder or archive, and what messages call it."""
    names, kind = (f"{name}.bin", name), "a folder" if path.is_dir() else "an archive"
    try:
        if path.is_dir():
            for file in (path / name for name in names):
                if file.is_file():
                    return file.read_bytes(), str(file)
        else:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and Path(member.name).name in names:
                        return _extracted(archive, member, f"{member.name} in {path}")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        # The message of tarfile has many lines, so we write our own.
        reason = getattr(error, "strerror", None) or "it is not an archive, or it is truncated"
        raise ArgumentError(
            "path", f"must be a folder or an archive with the files of CIFAR-10, got {str(path)!r}: {reason}."
        ) from None
    raise ArgumentError("path", f"must be {kind} with {name}.bin or {name}, got {str(path)!r}, which has neither.")


def _extracted(archive: tarfile.TarFile, member: tarfile.TarInfo, source: str) -> tuple[bytes, str]:
    if member.size > _LARGEST:
        raise ValueError(f"{source} must have at most {_LARGEST:,} bytes, got {member.size:,}.")
    file = archive.extractfile(member)
    return b"" if file is None else file.read(), source


def _parse(content: bytes, source: str) -> tuple[Images, Images]:
    """The pixels (n, 3072) and labels of a file."""
    if content[:1] == b"\x80":  # the first byte of a pickle; a label is at most 9
        pixels, labels = _from_pickle(content, source)
    else:
        if len(content) == 0 or len(content) % _RECORD:
            raise ValueError(
                f"{source} must be a whole number of records of {_RECORD} bytes, got {len(content)} bytes: it is not a "
                "file of CIFAR-10, or it is truncated."
            )
        records = np.frombuffer(content, dtype=np.uint8).reshape(-1, _RECORD)
        pixels, labels = records[:, 1:], records[:, 0]
    wrong = labels[(labels < 0) | (labels > 9)]
    if len(wrong):
        raise ValueError(f"{source} is not a file of CIFAR-10: its labels must be 0 to 9, got {wrong[0]}.")
    return pixels, labels.astype(np.uint8)


def _from_pickle(content: bytes, source: str) -> tuple[Images, NDArray[Any]]:
    try:
        _check_sizes(content)
        batch = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
        pixels, labels = (_values(batch[key]) for key in (b"data", b"labels"))
    except Exception as error:  # a damaged pickle can raise any exception
        # Parts of the message may come from the file, so it is put in one line.
        reason = "".join(c if c.isprintable() else " " for c in str(error)[:500])
        if isinstance(error, pickle.UnpicklingError):
            raise ValueError(f"{source} is refused: {reason}.") from None
        raise ValueError(f"{source} is not a file of CIFAR-10: {type(error).__name__}: {reason}.") from None
    n = labels.size
    fits = pixels.dtype == np.uint8 and pixels.shape == (n, 3072) and n > 0
    if not fits or labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise ValueError(f"{source} is not a file of CIFAR-10: its data are not records of 3,072 bytes with labels.")
    return pixels, labels


def _text(value: str | bytes) -> str:
    """A text from a pickle. Python 2 wrote bytes."""
    return value if isinstance(value, str) else str(value, "ascii")


class _Type:
    """Replaces `numpy.dtype`: the type of the numbers, such as u1. The pickled state has their byte order."""

    def __init__(self, name: str | bytes, *_: object) -> None:
        if not re.fullmatch("[biuf][1248]", _text(name)):
            raise pickle.UnpicklingError(f"it asks for an array of type {_text(name)}, and only numbers are read")
        self.dtype = np.dtype(_text(name))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order: Any = _text(state[1])  # a letter from the file; NumPy checks it
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Replaces an array that a pickle makes empty and then fills by its state."""

    values: NDArray[Any]

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        self.values = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if by_columns else "C")


class _FullArray(_Array):
    """Replaces an array that a pickle makes in one call."""

    def __init__(self, content: bytes, kind: _Type, shape: tuple[int, ...], order: Any) -> None:
        self.values = np.frombuffer(content, kind.dtype).reshape(shape, order=order)


def _values(item: Any) -> NDArray[Any]:
    if isinstance(item, _Array):
        return item.values
    # A list of lists is refused. A small file can hold one list that contains another many times, and the array of all
    # of them would be huge.
    if not isinstance(item, list) or not all(type(value) is int for value in item):
        raise TypeError("it has neither an array nor a list of whole numbers")
    return np.asarray(item)


def _encoded(text: str, encoding: str | bytes) -> bytes:
    """Replaces `codecs.encode`, by which old protocols write bytes."""
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"it asks for texts in the encoding {encoding!r}, and only bytes are read")
    return text.encode("latin1")


def _check_sizes(content: bytes) -> None:
    """Refuse a memo index that is larger than the file allows: the unpickler would allocate memory for it."""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > number:
            raise pickle.UnpicklingError(f"it refers to object {argument:,} but has fewer objects")


# The names by which all versions of NumPy and Python pickle arrays and bytes, and what we build instead. NumPy's own
# types are unsafe here: a pickle can give them any state, and some states make NumPy read bytes as addresses.
_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _FullArray for core in ("core", "_core")},
    ("_codecs", "encode"): _encoded,
}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that makes arrays and built-in containers only."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, and only arrays are read") from None


def _from_openml(split: str) -> tuple[Images, Images]:
    from sklearn.datasets import fetch_openml

    try:
        data = fetch_openml("CIFAR_10", version=1, as_frame=False)
    except OSError as error:
        raise ArgumentError(
            "path",
            "must be a folder or an archive with the files of CIFAR-10 where there is no network, got 'openml': "
            f"{error}.",
        ) from None
    first, count = _FILES.index(_SPLITS[split][0]), len(_SPLITS[split])
    rows = slice(10_000 * first, 10_000 * (first + count))
    return _pictures(np.asarray(data.data[rows], dtype=np.uint8)), np.asarray(data.target[rows], dtype=np.uint8)
