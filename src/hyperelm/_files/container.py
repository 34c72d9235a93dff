"""A header in JSON and named arrays in one safetensors file.

The metadata of the file have one entry, "hyperelm", with three parts, each on a line of its own: the format version,
the SHA-256 of version, header and all arrays, and the header. It is one entry because safetensors does not keep the
order of several.

Reading a file executes nothing. It takes memory in proportion to the size of the file, whatever the file claims: the
header must be short, and safetensors checks the sizes of the arrays. Texts, complex numbers and dates are stored as the
numbers that they consist of; the header names their types.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

# Since 2 a model says how its output layer multiplies. Since 3 it says how sure it is and what its columns were, and a
# file may hold a pipeline.
FORMAT = 3
KEY = "hyperelm"
LONGEST_NUMBER = 300  # digits

_LARGEST_HEADER = 2**20  # characters
_TYPES = {"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64"}
_PARTS = {"<c8": np.float32, "<c16": np.float64, "<M8": np.int64}

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


def to_bytes(header: Header, arrays: Arrays) -> bytes:
    """The content of a file with this header and these arrays."""
    stored = {name: _stored(array, name) for name, array in arrays.items()}
    types = {name: type_name for name, (_, type_name) in stored.items() if type_name}
    text = json.dumps(header | {"types": types}, allow_nan=False, separators=(",", ":"))
    if len(text) > _LARGEST_HEADER:
        raise ValueError(f"`model` must have parameters of at most {_LARGEST_HEADER:,} characters, got {len(text):,}.")
    tensors = {name: array for name, (array, _) in stored.items()}
    return to_safetensors(tensors, signed(str(FORMAT), text, tensors))


def signed(version: str, header: str, tensors: Arrays) -> dict[str, str]:
    """The metadata of a file."""
    return {KEY: f"{version}\n{_digest(version, header, tensors)}\n{header}"}


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """The header and the arrays of a file. A ValueError gives the reason if they are not as they were written."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is not a file")
    metadata, tensors = _tensors(path)
    if KEY not in metadata:
        raise ValueError("it is a safetensors file, but not of hyperelm")
    version, digest, text = (*metadata[KEY].split("\n", 2), "", "")[:3]
    _check_version(version, text)
    if digest != _digest(version, text, tensors):
        raise ValueError("its checksum does not fit: it has been changed or damaged")
    header = _parsed(text)
    types = header.pop("types", None)
    if not isinstance(types, dict):
        raise ValueError("its header lacks 'types'")
    return header, {name: _restored(array, types.get(name)) for name, array in tensors.items()}


def shown(text: str) -> str:
    """Text from a file as part of one line."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _tensors(path: str | os.PathLike[str]) -> tuple[dict[str, str], Arrays]:
    try:
        with safe_open(path, framework="numpy") as file:
            names = file.keys()
            strange = next((name for name in names if file.get_slice(name).get_dtype() not in _TYPES), None)
            if strange is not None:
                raise ValueError(f"it has an array {shown(strange)} of an unknown type")
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except SafetensorError:
        raise ValueError("it is not a file of hyperelm, or not all of one") from None


def _digest(version: str, header: str, tensors: Arrays) -> str:
    digest = hashlib.sha256(f"{version}\n{header}\n".encode())
    for name, array in sorted(tensors.items()):
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        digest.update(f"{name} {little.dtype.str} {list(little.shape)}\n".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _check_version(version: str, text: str) -> None:
    if not re.fullmatch(r"[1-9]\d{0,5}", version):
        raise ValueError(f"its format version {shown(version)} is not a number")
    if int(version) > FORMAT:
        found = re.search(r'"hyperelm":\s*"([\w.+!-]{1,40})"', text)
        writer = f"hyperelm {found[1]}" if found else "a later release"
        raise ValueError(
            f"its format version is {version}, and this release reads {FORMAT}. Install {writer}, which wrote it"
        )


def _parsed(text: str) -> Header:
    if len(text) > _LARGEST_HEADER:
        raise ValueError("its header is too long")
    try:
        header = json.loads(text, parse_constant=_whole, parse_int=_whole)
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    return header


def _whole(digits: str) -> int:
    """A whole number that a float can hold, too. This also refuses NaN and infinity, which are not JSON."""
    if len(digits) > LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return int(digits)


def _stored(array: NDArray[Any], name: str) -> tuple[NDArray[Any], str]:
    """An array of a type that safetensors has, in C order, and its own type where that is another."""
    array = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    type_name = "text" if array.dtype.kind == "U" else array.dtype.str.replace(">", "<")
    if array.dtype == object:
        text = np.array([str(item) for item in array])
        if not all(isinstance(item, str) for item in array) or text.tolist() != array.tolist():
            raise ValueError(f"`{name}` must be numbers or texts without a null character at the end, to be saved.")
        array, type_name = text, "object"
    part = np.uint32 if array.dtype.kind == "U" else _PARTS.get(type_name.partition("[")[0])
    if part is not None:
        return np.asarray(array, order="C").reshape(*array.shape, 1).view(part), type_name
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ValueError(f"`{name}` must be numbers or texts, to be saved, got an array of type {array.dtype}.")
    return np.asarray(array, order="C"), ""


def _restored(array: NDArray[Any], type_name: object) -> NDArray[Any]:
    """The inverse of `_stored`."""
    if type_name is None:
        return array
    if not isinstance(type_name, str) or not re.fullmatch(
        r"object|text|<c8|<c16|<M8\[(Y|M|W|D|h|m|s|ms|us|ns)\]", type_name
    ):
        raise ValueError(f"it has an array of the unknown type {shown(str(type_name))}")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"it has an array that is not of its type {type_name}")
    if type_name in ("object", "text"):
        if array.dtype != np.uint32 or array.max(initial=0) > 0x10FFFF:
            raise ValueError("it has texts that are none")
        text = array.view(f"<U{array.shape[-1]}")[..., 0]
        return text.astype(object) if type_name == "object" else text
    part, dtype = _PARTS[type_name.partition("[")[0]], np.dtype(type_name)
    if array.dtype != part or array[..., :1].itemsize * array.shape[-1] != dtype.itemsize:
        raise ValueError(f"it has an array that is not of its type {type_name}")
    return array.view(dtype)[..., 0]
