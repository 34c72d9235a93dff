"""Columns of real numbers as components of hypercomplex ones, and back.

`into` says which components a number's channels fill: "imaginary" the d - 1 imaginary ones (a colour or a position
x i + y j + z k, as in the paper), "full" all d of them, "real" the real part alone. In the real algebra, which has
no imaginary part, all three are the number itself. Components that no channel fills are zero.
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
        Columns; or images, the last form if `planar`.
    algebra : Algebra or str
    channels : int, optional
        Columns that make one number; by default as many as `into` has room for.
    planar : bool
        False: the channels of a number are neighbours, r g b r g b …; True: all columns of the first channel come
        first, r r … g g … b b …
    into : {"imaginary", "full", "real"}
        The components that they fill, in order.

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
    X = as_real(X, "X")
    if X.ndim < 2:
        raise ValueError(f"`X` must have at least 2 axes, (rows, columns), got shape {X.shape}.")
    room = components(into, algebra)
    count = _checked_channels(channels, room, algebra, into)
    if X.ndim > 2:
        X = _flat_images(X, count, planar)
    if planar and X.shape[1] % count:
        raise ValueError(
            f"`X` must have a number of columns divisible by the {count} channels when planar, got {X.shape[1]}."
        )
    features = -(-X.shape[1] // count)
    rows, xp = X.shape[0], namespace(X=X)
    packed = zeros((rows, features, algebra.dim), X)
    filled = slice(room.start, room.start + count)
    if planar:
        packed[:, :, filled] = xp.moveaxis(xp.reshape(X, (rows, count, features)), 1, 2)
    else:
        whole, rest = divmod(X.shape[1], count)
        packed[:, :whole, filled] = xp.reshape(X[:, : whole * count], (rows, whole, count))
        if rest:
            packed[:, -1, room.start : room.start + rest] = X[:, whole * count :]
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
    room = components(into, algebra)
    count = _checked_channels(channels, room, algebra, into)
    filled, xp = Z[:, :, room.start : room.start + count], namespace(Z=Z)
    if planar:
        filled = xp.moveaxis(filled, 1, 2)
    columns: FloatArray = xp.reshape(filled, (Z.shape[0], Z.shape[1] * count))
    return columns


def _checked_channels(channels: Any, room: slice, algebra: Algebra, into: str) -> int:
    largest = room.stop - room.start
    if channels is None:
        return largest
    if not isinstance(channels, (int, np.integer)) or isinstance(channels, bool) or not 1 <= channels <= largest:
        raise ValueError(
            f"`channels` must be a whole number from 1 to {largest} for {algebra.name or algebra.dim} "
            f"with into={into!r}, got {channels!r}."
        )
    return int(channels)


def _flat_images(X: FloatArray, count: int, planar: bool) -> FloatArray:
    axis = 1 if planar else X.ndim - 1
    if X.shape[axis] != count:
        where = "second" if planar else "last"
        raise ValueError(
            f"`X` must have {count} channels on its {where} axis, got shape {X.shape}. "
            "Set `channels`, or `planar` for images whose channels come first."
        )
    flat: FloatArray = namespace(X=X).reshape(X, (X.shape[0], math.prod(X.shape[1:])))
    return flat
