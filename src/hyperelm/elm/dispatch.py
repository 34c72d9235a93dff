"""scikit-learn's array-API dispatch: where the arrays of an estimator live.

With `sklearn.set_config(array_api_dispatch=True)` arrays of other libraries than NumPy stay what they are, and fitted
arrays live where the training rows do, as do targets from elsewhere. Without it scikit-learn makes NumPy arrays of
them.
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np
from sklearn import get_config

from hyperelm._arrays import are_together, beside, detached, is_elsewhere, namespace, numpy_dtype, place_of, to_numpy
from hyperelm._validation import FloatArray, check_unmasked

E = TypeVar("E")


def is_dispatched(array: Any) -> bool:
    """Whether it is an array of another library that stays one."""
    return is_elsewhere(array) and bool(get_config()["array_api_dispatch"])


def accepted_dtypes(X: Any) -> Any:
    """What scikit-learn may leave as it is; None, for all, where these are integers, which are cast block by block."""
    if is_dispatched(X):
        xp = namespace(X=X)
        return None if xp.isdtype(X.dtype, "integral") else [xp.float64, xp.float32]
    return None if isinstance(X, np.ndarray) and X.dtype.kind in "iu" else [np.float64, np.float32]


def precision(X: Any) -> np.dtype[Any]:
    """That of a model for rows X: single or double."""
    dtype = numpy_dtype(X)
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def real(array: Any, name: str) -> Any:
    """An array outside of gradients, and not complex or masked: scikit-learn would drop imaginary parts and masks."""
    check_unmasked(array, name)
    if is_dispatched(array) and namespace(array=array).isdtype(array.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported, got `{name}` of dtype {array.dtype}.")
    return detached(array)


def kept_beside(array: FloatArray, reference: Any) -> Any:
    """A fitted array where `reference` lives."""
    return beside(array, reference) if is_elsewhere(reference) else array


def in_numpy(model: E) -> E:
    """The model, or a copy of it whose arrays are NumPy's: files and graphs know no others."""
    moved = {name: to_numpy(value) for name, value in vars(model).items() if is_elsewhere(value)}
    if moved:
        model = copy(model)
        vars(model).update(moved)
    return model


def check_place(X: Any, weights: Any, caller: str) -> None:
    """Rows must be where the weights are: they are not moved behind the user's back."""
    if not are_together(X, weights):
        raise ValueError(
            f"Inputs passed to {caller} must use the same namespace and the same device as those passed to fit(), "
            f"{place_of(weights)}, got {place_of(X)}. Move `X` there. Arrays of other libraries than NumPy stay what "
            "they are only under sklearn.set_config(array_api_dispatch=True)."
        )
