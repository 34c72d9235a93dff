"""Arrays of NumPy and of other libraries, and how they move from one to the other.

NumPy has kernels of its own, tuned for CPUs. Arrays of every other library stay where they are: their own namespace
computes with them, by the array API standard, on their device. Only small arrays move, by the functions below: tables,
bases and weights move to the rows, and sums over the rows move to NumPy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = ("float32", "float64", "complex64", "complex128")


def is_elsewhere(array: Any) -> bool:
    """Whether this is an array of another library than NumPy: one that follows the standard, or a torch tensor."""
    if isinstance(array, (np.ndarray, np.generic)):
        return False
    torch = sys.modules.get("torch")
    return hasattr(array, "__array_namespace__") or (torch is not None and isinstance(array, torch.Tensor))


def namespace(**arrays: Any) -> Any:
    """NumPy, or the namespace of another library. All arrays must then be of it and on one device; None is left out."""
    given = {name: array for name, array in arrays.items() if array is not None}
    elsewhere = [array for array in given.values() if is_elsewhere(array)]
    if not elsewhere:
        return np
    if not all(are_together(elsewhere[0], array) for array in given.values()):
        raise ValueError(
            f"{' and '.join(f'`{name}`' for name in given)} must be arrays of one library on one device, got "
            f"{' and '.join(map(place_of, given.values()))}. Move them together."
        )
    return compat().array_namespace(elsewhere[0])


def are_together(one: Any, other: Any) -> bool:
    """Whether two arrays are of one library and on one device."""
    if is_elsewhere(one) != is_elsewhere(other):
        return False
    return not is_elsewhere(one) or (type(one) is type(other) and device_of(one) == device_of(other))


def place_of(array: Any) -> str:
    """The library and the device of an array, for reading."""
    return f"{type(array).__module__.partition('.')[0]} on {device_of(array)}" if is_elsewhere(array) else "numpy"


def device_of(array: Any) -> Any:
    return compat().device(array)


def compat() -> Any:
    """The package that gives every library the names of the standard."""
    try:
        return import_module("array_api_compat")
    except ModuleNotFoundError:
        raise ImportError("Arrays of other libraries need the extra 'torch': pip install 'hyperelm[torch]'.") from None


# ---------------------------------------------------------------------- moving


def beside(array: NDArray[Any], reference: Any, *, exact: bool = False) -> Any:
    """A copy of a small NumPy array where `reference` lives; fractions with its precision, unless `exact`."""
    dtype = array.dtype
    if dtype.kind in "fc" and not exact:
        dtype = np.result_type(numpy_dtype(reference), np.complex64) if dtype.kind == "c" else numpy_dtype(reference)
    copy = np.array(array, dtype=dtype)
    if not is_elsewhere(reference):
        return copy
    return namespace(reference=reference).asarray(copy, device=device_of(reference))


def kept_beside(array: NDArray[Any], reference: Any, *, exact: bool = False) -> Any:
    """A NumPy array where `reference` lives: itself if that is NumPy, or else a copy as by `beside`."""
    return beside(array, reference, exact=exact) if is_elsewhere(reference) else array


def moved(array: Any, reference: Any) -> Any:
    """An array of any library, or what NumPy can make one of, where `reference` lives; itself if it lives there."""
    if are_together(array, reference):
        return as_array(array)
    return beside(to_numpy(array), reference) if is_elsewhere(reference) else to_numpy(array)


def as_array(array: Any) -> Any:
    """An array of another library as it is, anything else as a NumPy array."""
    return array if is_elsewhere(array) else np.asarray(array)


def to_numpy(array: Any) -> NDArray[Any]:
    """The array itself, or a copy of one of another library."""
    return np.asarray(without_others(array))


def without_others(array: Any) -> Any:
    """A copy of an array of another library in NumPy; anything else as it is."""
    if not is_elsewhere(array):
        return array
    # An array on an accelerator first moves to the host: torch also takes it out of the graph of its gradient.
    host = detached(array).cpu() if hasattr(array, "cpu") else array.get() if hasattr(array, "get") else array
    return np.array(np.from_dlpack(host))


def detached(array: Any) -> Any:
    """The array without the record for a gradient, which would keep all rows in memory."""
    return array.detach() if getattr(array, "requires_grad", False) else array


# ---------------------------------------------------------------------- the same call for every library


def numpy_dtype(array: Any) -> np.dtype[Any]:
    """The precision of an array, as NumPy calls it."""
    if not is_elsewhere(array):
        return np.dtype(array.dtype)
    xp = namespace(array=array)
    return next((np.dtype(name) for name in FLOATS if array.dtype == getattr(xp, name)), np.dtype(np.float64))


def as_precision(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in the precision that NumPy calls `dtype`."""
    xp = namespace(array=array)
    return np.asarray(array, dtype=dtype) if xp is np else xp.astype(array, getattr(xp, dtype.name), copy=False)


def chunk_of(array: Any, at: slice) -> Any:
    """Some rows, asked for as every library allows it."""
    return array[at, ...] if is_elsewhere(array) else array[at]


def taken(array: Any, at: NDArray[np.intp]) -> Any:
    """The rows with these numbers."""
    xp = namespace(array=array)
    return array[at] if xp is np else xp.take(array, beside(at, array), axis=0)


def chosen_columns(array: Any, at: NDArray[np.intp]) -> Any:
    """The columns with these numbers: a view where they are the first ones, in order."""
    if np.array_equal(at, np.arange(len(at))):
        return array[:, : len(at)]
    xp = namespace(array=array)
    return array[:, at] if xp is np else xp.take(array, beside(at, array), axis=1)


def zeros(shape: tuple[int, ...], reference: Any) -> Any:
    """Zeros where `reference` lives, with its precision."""
    return namespace(reference=reference).zeros(shape, dtype=reference.dtype, **_where(reference))


def empty(shape: tuple[int, ...], reference: Any) -> Any:
    """An array of any numbers where `reference` lives, with its precision."""
    return namespace(reference=reference).empty(shape, dtype=reference.dtype, **_where(reference))


def _where(reference: Any) -> dict[str, Any]:
    return {"device": device_of(reference)} if is_elsewhere(reference) else {}


def concatenated(arrays: list[Any], axis: int = 0) -> Any:
    """Arrays one after the other."""
    xp = namespace(first=arrays[0])
    return np.concatenate(arrays, axis=axis) if xp is np else xp.concat(arrays, axis=axis)


# ---------------------------------------------------------------------- checks


def is_identity(matrix: NDArray[Any]) -> bool:
    return matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix)))


def check_unmasked(array: Any, name: str) -> None:
    """Refuse masked values: NumPy would silently take them as numbers."""
    if np.ma.is_masked(array):
        masked = int(np.ma.getmaskarray(array).sum())
        raise ValueError(f"`{name}` must have no masked values, got {masked}. Remove or impute such rows.")


def refused_complex(array: Any, name: str) -> TypeError:
    return TypeError(
        f"`{name}` must be real, got dtype {array.dtype}. "
        "Put the components of a number on the last axis: np.stack([z.real, z.imag], axis=-1)."
    )
