"""Arrays of other libraries, by the array API standard.

NumPy has a path of its own, tuned for CPUs. Arrays of every other library stay where they are: what is computed from
them is computed by their own namespace, on their device. Only small things move, by the functions below: tables, bases
and weights to the rows, and sums of the rows, whose size does not depend on their number, to NumPy.
"""

from __future__ import annotations

import math
import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = ("float32", "float64", "complex64", "complex128")


def is_elsewhere(array: Any) -> bool:
    """Whether it is an array of another library than NumPy: one that follows the standard, or a torch tensor."""
    if isinstance(array, (np.ndarray, np.generic)):
        return False
    torch = sys.modules.get("torch")
    return hasattr(array, "__array_namespace__") or (torch is not None and isinstance(array, torch.Tensor))


def namespace(**arrays: Any) -> Any:
    """NumPy, or the namespace of the other library whose arrays, on one device, all of these are; None counts not."""
    given = {name: array for name, array in arrays.items() if array is not None}
    elsewhere = [array for array in given.values() if is_elsewhere(array)]
    if not elsewhere:
        return np
    if not all(are_together(elsewhere[0], array) for array in given.values()):
        raise ValueError(
            f"{' and '.join(f'`{name}`' for name in given)} must be arrays of one library on one device, got "
            f"{' and '.join(map(place_of, given.values()))}. Move them together."
        )
    return _compat().array_namespace(elsewhere[0])


def are_together(one: Any, other: Any) -> bool:
    """Whether two arrays are of one library and on one device."""
    if is_elsewhere(one) != is_elsewhere(other):
        return False
    return not is_elsewhere(one) or (type(one) is type(other) and _device(one) == _device(other))


def beside(array: NDArray[Any], reference: Any, *, exact: bool = False) -> Any:
    """A copy of a small NumPy array where `reference` lives; fractions with its precision, unless `exact`."""
    dtype = array.dtype
    if dtype.kind in "fc" and not exact:
        dtype = np.result_type(numpy_dtype(reference), np.complex64) if dtype.kind == "c" else numpy_dtype(reference)
    copy = np.array(array, dtype=dtype)
    if not is_elsewhere(reference):
        return copy
    return namespace(reference=reference).asarray(copy, device=_device(reference))


def moved(array: Any, reference: Any) -> Any:
    """An array of any library, or what NumPy makes one of, where `reference` lives; itself if it is there."""
    if are_together(array, reference):
        return array if is_elsewhere(array) else np.asarray(array)
    return beside(to_numpy(array), reference) if is_elsewhere(reference) else to_numpy(array)


def row_block(array: Any, rows: slice) -> Any:
    """Some rows, as all libraries let one ask for them."""
    return array[rows, ...] if is_elsewhere(array) else array[rows]


def taken(array: Any, rows: NDArray[np.intp]) -> Any:
    """The rows with these numbers."""
    xp = namespace(array=array)
    return array[rows] if xp is np else xp.take(array, beside(rows, array), axis=0)


def zeros(shape: tuple[int, ...], reference: Any) -> Any:
    """Zeros where `reference` lives, with its precision."""
    xp = namespace(reference=reference)
    return (
        np.zeros(shape, reference.dtype)
        if xp is np
        else xp.zeros(shape, dtype=reference.dtype, device=_device(reference))
    )


def to_numpy(array: Any) -> NDArray[Any]:
    """The array itself, or a copy of one from elsewhere."""
    if not is_elsewhere(array):
        return np.asarray(array)
    # What is on an accelerator first comes to the host: in torch out of the graph of its gradient, too, and in CuPy.
    host = detached(array).cpu() if hasattr(array, "cpu") else array.get() if hasattr(array, "get") else array
    return np.array(np.from_dlpack(host))


def numpy_dtype(array: Any) -> np.dtype[Any]:
    """Its precision, as NumPy calls it."""
    if not is_elsewhere(array):
        return np.dtype(array.dtype)
    xp = namespace(array=array)
    return next((np.dtype(name) for name in FLOATS if array.dtype == getattr(xp, name)), np.dtype(np.float64))


def as_precision(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in the precision that NumPy calls `dtype`."""
    xp = namespace(array=array)
    return np.asarray(array, dtype=dtype) if xp is np else xp.astype(array, getattr(xp, dtype.name), copy=False)


def concatenated(arrays: list[Any], axis: int = 0) -> Any:
    """One after the other, as NumPy calls it and others call it."""
    xp = namespace(first=arrays[0])
    return np.concatenate(arrays, axis=axis) if xp is np else xp.concat(arrays, axis=axis)


def place_of(array: Any) -> str:
    """The library and the device of an array, for reading."""
    return f"{type(array).__module__.partition('.')[0]} on {_device(array)}" if is_elsewhere(array) else "numpy"


def detached(array: Any) -> Any:
    """Without the record that a gradient needs, which would keep all rows in memory."""
    return array.detach() if hasattr(array, "detach") else array


def lengths(x: Any, axis: int | tuple[int, ...] = -1) -> Any:
    """Euclidean norms over some axes, also where squares are beyond the precision: these are formed in other units."""
    xp = namespace(x=x)
    norm = np.linalg.norm if xp is np else xp.linalg.vector_norm
    info = np.finfo(numpy_dtype(x))
    with np.errstate(over="ignore", under="ignore"):
        found = norm(x, axis=axis)
    if bool(xp.all((found > math.sqrt(info.tiny) / float(info.eps)) & (found < math.inf))):
        return found
    sizes = xp.max(xp.abs(x), axis=axis, keepdims=True)
    units = xp.where((sizes > 0) & xp.isfinite(sizes), sizes, xp.ones_like(sizes))
    return xp.squeeze(units, axis=axis) * norm(x / units, axis=axis)


def sums_of_products(sums: list[list[tuple[Any, Any, float]]], shape: tuple[int, ...], reference: Any) -> Any:
    """Σ c ab of every list of (a, b, c), matrices of the given shape: (sums, *shape), in the place of `reference`."""
    nothing = zeros(shape, reference)
    totals = []
    for pairs in sums:
        total = nothing
        for a, b, c in pairs:
            product = a @ b
            total = total + (product if c == 1 else c * product)
        totals.append(total)
    return namespace(reference=reference).stack(totals) if totals else zeros((0, *shape), reference)


def _device(array: Any) -> Any:
    return _compat().device(array)


def _compat() -> Any:
    try:
        return import_module("array_api_compat")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Arrays of other libraries need the extra 'torch': pip install 'hyperelm[torch]'."
        ) from None
