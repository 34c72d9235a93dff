"""Columns of real numbers as components of hypercomplex ones, and back.

`into` says which components the channels of a number fill. "imaginary" stands for the d - 1 imaginary ones (a colour or
a position x i + y j + z k, as in the paper), "full" for all d of them, and "real" for the real part alone. In the real
algebra, which has no imaginary part, all three are the number itself. Components that no channel fills are zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import namespace, zeros
from hyperelm._network.layout import components
from hyperelm._validation import FloatArray, as_hypercomplex, as_real


def pack(
    X: ArrayLike,
    algebra: Algebra | str,
    *,
    channels: int | None = None,
    planar: bool = False,
    into: str = "imaginary",
) -> FloatArray:
    """Real columns as hypercomplex numbers.

    Parameters
    ----------
    X : array of shape (n, p), (n, ..., channels) or (n, channels, ...)
        Columns, or images. Images have the last shape if `planar`.
    algebra : Algebra or str
    channels : int, optional
        The number of columns that make one number; by default as many as `into` has room for.
    planar : bool
        If False, the channels of a number are neighbours, r g b r g b … If True, all columns of the first channel come
        first, r r … g g … b b …
    into : {"imaginary", "full", "real"}
        The components that the channels fill, in order.

    Returns
    -------
    array of shape (n, features, d)
        Where p is not a multiple of `channels`, the last number is padded with zeros (not if `planar`).

    Examples
    --------
    >>> from hyperelm import pack
    >>> pack([[10, 20, 30, 40, 50, 60]], "quaternions")
    array([[[ 0., 10., 20., 30.],
            [ 0., 40., 50., 60.]]])
    >>> pack([[10, 40, 20, 50, 30, 60]], "quaternions", planar=True).shape
    (1, 2, 4)
    """
    algebra = catalogue.get(algebra)
    rows: FloatArray = as_real(X, "X")
    if rows.ndim < 2:
        raise ValueError(f"`X` must have at least 2 axes, (rows, columns), got shape {rows.shape}.")
    start, count = _filled(channels, algebra, into)
    n_rows, xp = rows.shape[0], namespace(X=rows)
    if rows.ndim > 2:
        if rows.shape[1 if planar else rows.ndim - 1] != count:
            raise ValueError(
                f"`X` must have {count} channels on its {'second' if planar else 'last'} axis, got shape {rows.shape}. "
                "Set `channels`, or `planar` for images whose channels come first."
            )
        rows = xp.reshape(rows, (n_rows, math.prod(rows.shape[1:])))
    whole, rest = divmod(rows.shape[1], count)
    if planar and rest:
        raise ValueError(
            f"`X` must have a number of columns divisible by the {count} channels when planar, got {rows.shape[1]}."
        )
    packed = zeros((n_rows, whole + (rest > 0), algebra.dim), rows)
    if planar:
        numbers = xp.moveaxis(xp.reshape(rows, (n_rows, count, whole)), 1, 2)
    else:
        numbers = xp.reshape(rows[:, : whole * count], (n_rows, whole, count))
    packed[:, :whole, start : start + count] = numbers
    if rest:
        packed[:, -1, start : start + rest] = rows[:, whole * count :]
    return packed


def unpack(
    Z: ArrayLike,
    algebra: Algebra | str,
    *,
    channels: int | None = None,
    planar: bool = False,
    into: str = "imaginary",
) -> FloatArray:
    """The inverse of `pack`; padding is kept.

    Parameters
    ----------
    Z : array of shape (n, features, d)
    algebra : Algebra or str
    channels, planar, into
        As for `pack`.

    Returns
    -------
    array of shape (n, features * channels)

    Examples
    --------
    >>> from hyperelm import pack, unpack
    >>> unpack(pack([[1.0, 2.0, 3.0]], "quaternions"), "quaternions")
    array([[1., 2., 3.]])
    """
    algebra = catalogue.get(algebra)
    Z = as_hypercomplex(Z, algebra, "Z", axes=2)
    if Z.ndim != 3:
        raise ValueError(f"`Z` must have 3 axes, (rows, features, {algebra.dim}), got shape {Z.shape}.")
    start, count = _filled(channels, algebra, into)
    filled, xp = Z[:, :, start : start + count], namespace(Z=Z)
    if planar:
        filled = xp.moveaxis(filled, 1, 2)
    columns: FloatArray = xp.reshape(filled, (Z.shape[0], Z.shape[1] * count))
    return columns


def _filled(channels: Any, algebra: Algebra, into: str) -> tuple[int, int]:
    """The first of the components that channels fill, and how many they fill."""
    room = components(into, algebra)
    largest = room.stop - room.start
    if channels is None:
        return room.start, largest
    if not isinstance(channels, (int, np.integer)) or isinstance(channels, bool) or not 1 <= channels <= largest:
        raise ValueError(
            f"`channels` must be a whole number from 1 to {largest} for {algebra.name or algebra.dim} "
            f"with into={into!r}, got {channels!r}."
        )
    return room.start, int(channels)
