"""Columns of real numbers as components of hypercomplex ones, and back.

`into` says which components the channels of a number fill. "imaginary" stands for the d - 1 imaginary ones (a colour or
a position x i + y j + z k, as in the paper), "full" for all d of them, and "real" for the real part alone. In the real
algebra, which has no imaginary part, all three are the number itself. Components that no channel fills are zero. With
room for k channels in a number, C channels fill ⌈C/k⌉ numbers, of which the last is padded with zeros.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import concatenated, namespace, zeros
from hyperelm._network.layout import Layout, components, looks_turned
from hyperelm._validation import FloatArray, as_hypercomplex, as_real, check_whole


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
        Columns, or images and series. These have the last shape if `planar`.
    algebra : Algebra or str
    channels : int, optional
        The number of columns that belong together: each such group begins with a number of its own, and fills as many
        as it needs. By default as many as `into` has room for, or all on the axis of channels.
    planar : bool
        If False, the channels of a number are neighbours, r g b r g b … If True, all columns of the first channel come
        first, r r … g g … b b …
    into : {"imaginary", "full", "real"}
        The components that the channels fill, in order.

    Returns
    -------
    array of shape (n, features, d)
        Components that no channel fills are zero. Where p is not a multiple of `channels`, the last group is padded
        with zeros (not if `planar`).

    Examples
    --------
    >>> from hyperelm import pack
    >>> pack([[10, 20, 30, 40, 50, 60]], "quaternions")
    array([[[ 0., 10., 20., 30.],
            [ 0., 40., 50., 60.]]])
    >>> pack([[10, 40, 20, 50, 30, 60]], "quaternions", planar=True).shape
    (1, 2, 4)

    The 6 channels of a sensor, at 100 times, are two numbers each:

    >>> import numpy as np
    >>> pack(np.zeros((5, 100, 6)), "quaternions").shape
    (5, 200, 4)
    """
    algebra = catalogue.get(algebra)
    rows: FloatArray = as_real(X, "X")
    if rows.ndim < 2:
        raise ValueError(f"`X` must have at least 2 axes, (rows, columns), got shape {rows.shape}.")
    n_rows, xp = rows.shape[0], namespace(X=rows)
    if rows.ndim > 2:
        channels = _channels_of(rows.shape, channels, planar)
        rows = xp.reshape(rows, (n_rows, math.prod(rows.shape[1:])))
    room, group = _filled(channels, algebra, into)
    groups, rest = divmod(rows.shape[1], group)
    if planar and rest:
        raise ValueError(
            f"`X` must have a number of columns divisible by the {group} channels when planar, got {rows.shape[1]}."
        )
    if planar:
        rows = xp.reshape(xp.moveaxis(xp.reshape(rows, (n_rows, group, groups)), 1, 2), (n_rows, groups * group))
    if rest:
        padding = zeros((n_rows, group - rest), rows)
        groups, rows = groups + 1, concatenated([rows, padding], axis=1)
    layout = Layout.filled(3, groups * group, room, algebra.dim, group=group)
    # Always a copy, also where the columns already are the components.
    flat = backend_of(rows).scattered(rows, layout.places, layout.features * layout.dim)
    packed: FloatArray = xp.reshape(flat, (n_rows, layout.features, layout.dim))
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
    room, group = _filled(channels, algebra, into)
    n_rows, features, each = Z.shape[0], Z.shape[1], -(-group // (room.stop - room.start))
    if features % each:
        raise ValueError(
            f"`Z` must have a multiple of {each} numbers in a row, which {group} channels fill with into={into!r}, got "
            f"shape {Z.shape}."
        )
    groups, xp = features // each, namespace(Z=Z)
    filled = xp.reshape(Z[:, :, room], (n_rows, groups, each * (room.stop - room.start)))[:, :, :group]
    if planar:
        filled = xp.moveaxis(filled, 1, 2)
    columns: FloatArray = xp.reshape(filled, (n_rows, groups * group))
    return columns


def _channels_of(shape: tuple[int, ...], channels: Any, planar: bool) -> int:
    """The channels on their axis, which must be as many as `channels`, if that is given."""
    axis, found = ("second", shape[1]) if planar else ("last", shape[-1])
    turned = channels is None and not planar and looks_turned(shape)
    if turned or (channels is not None and found != channels):
        wanted = f"{channels} channels" if channels is not None else "the channels"
        raise ValueError(
            f"`X` must have {wanted} on its {axis} axis, got shape {shape}. Set `channels`, or `planar` for images and "
            "series whose channels come first."
        )
    return found


def _filled(channels: Any, algebra: Algebra, into: str) -> tuple[slice, int]:
    """The components of a number that channels fill, and how many channels belong together."""
    room = components(into, algebra)
    largest = room.stop - room.start
    if channels is None:
        return room, largest
    check_whole(channels, "channels")
    return slice(room.start, room.start + min(int(channels), largest)), int(channels)
