"""Row blocks on their way into an accumulator: checked before anything is changed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperelm._validation import FloatArray, as_hypercomplex
from hyperelm.algebra import Algebra


class Counts(Protocol):
    """The part of an accumulator's state that counts rows: M, L, N, Σw and ‖T‖²."""

    algebra: Algebra
    rows: int
    unknowns: int
    targets: int
    weight: float
    square: float
    dtype: np.dtype[Any]


def check_rows(
    H: Any, T: Any, sample_weight: Any, state: Counts
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """H, (m, L, d), T, (m, N, d), and the weights, (m,), in the precision of `state`; finite and of one length."""
    H, T = as_hypercomplex(H, state.algebra, "H", axes=2), as_hypercomplex(T, state.algebra, "T", axes=2)
    for name, array, columns in (("H", H, state.unknowns), ("T", T, state.targets)):
        if array.ndim != 3 or array.shape[1] != columns:
            raise ValueError(
                f"`{name}` must have shape (rows, {columns}, {state.algebra.dim}), got {array.shape}."
            )
    if len(H) != len(T):
        raise ValueError(f"`H` and `T` must have the same number of rows, got {len(H)} and {len(T)}.")
    H, T = H.astype(state.dtype, copy=False), T.astype(state.dtype, copy=False)
    check_finite(H, "H", state.rows)
    check_finite(T, "T", state.rows)
    return H, T, check_weight(sample_weight, len(H), state.dtype)


def check_finite(array: FloatArray, name: str, before: int = 0) -> None:
    """Refuse NaN and infinity, naming the row, counted from `before`. A finite sum is proof enough, and cheap."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(array, dtype=array.dtype)):
            return
    bad = ~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if bad.any():
        row = int(np.argmax(bad))
        value = array[row][~np.isfinite(array[row])][0]
        raise ValueError(f"`{name}` must be finite, got {value} in row {before + row}. Remove or impute such rows.")


def check_weight(sample_weight: Any, rows: int, dtype: np.dtype[Any]) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=dtype)
    if weight.shape != (rows,):
        raise ValueError(f"`sample_weight` must have one weight for each of the {rows} rows, got shape {weight.shape}.")
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError("`sample_weight` must be finite and not negative.")
    return weight


def count_in(state: Counts, T: FloatArray, weight: FloatArray | None) -> None:
    """Add the rows with targets T to the counts."""
    state.rows += len(T)
    if weight is None:
        state.weight += len(T)
        state.square += float(np.linalg.norm(T.ravel()) ** 2) if T.flags.c_contiguous else float(np.sum(T * T))
    else:
        state.weight += float(weight.sum(dtype=np.float64))
        state.square += float(np.einsum("mnd,mnd,m->", T, T, weight))


def add_counts(state: Counts, other: Counts) -> None:
    """Merge the counts of `other`, after checking that both summarise the same kind of rows."""
    mine = (state.algebra, state.unknowns, state.targets, state.dtype)
    theirs = (other.algebra, other.unknowns, other.targets, other.dtype)
    if type(state) is not type(other) or mine != theirs:
        raise ValueError(
            "`other` must summarise rows of the same algebra, sizes and precision, got "
            f"{type(other).__name__} {theirs[0].name} {theirs[1:]} for {type(state).__name__} {mine[0].name} {mine[1:]}."
        )
    state.rows += other.rows
    state.weight += other.weight
    state.square += other.square


def scaled(array: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Rows times the square roots of their weights; the array itself where there are none."""
    return array if weight is None else array * np.sqrt(weight)[:, None, None]


def support(x: FloatArray) -> NDArray[np.intp]:
    """The components that are not zero throughout x, (..., d)."""
    return np.array([k for k in range(x.shape[-1]) if x[..., k].any()], dtype=np.intp)
