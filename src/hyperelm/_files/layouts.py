"""Layouts as JSON: how the columns of inputs and outputs lie in numbers."""

from __future__ import annotations

from typing import Any

from hyperelm._algebra.algebra import Algebra
from hyperelm._network.layout import Layout, takes_complex

_WHOLE = ("ndim", "columns", "start", "channels", "group")


def layout_fields(layout: Layout) -> dict[str, int]:
    """What a file says of a layout."""
    return {name: getattr(layout, name) for name in (*_WHOLE, "is_complex")}


def layout_of(fields: dict[str, Any], name: str, algebra: Algebra) -> Layout:
    """The layout of the "input" or the "output", from what a file says.

    Files of earlier formats hold columns or numbers, not complex ones, and no series, so they lack two fields.
    """
    d, ndim = algebra.dim, fields.get("ndim")
    fields = {"group": d if ndim == 3 else fields.get("columns"), "is_complex": False} | fields
    if not all(type(fields.get(key)) is int for key in _WHOLE) or type(fields["is_complex"]) is not bool:
        raise ValueError(f"the layout of its {name} is not whole numbers")
    ndim, columns, start, channels, group = (fields[key] for key in _WHOLE)
    fits = columns >= 1 and start >= 0 and channels >= 1 and start + channels <= d
    fits = fits and ndim in ((2, 3) if name == "input" else (1, 2, 3)) and group >= 1 and columns % group == 0
    if fields["is_complex"]:
        fits = fits and ndim < 3 and takes_complex(algebra) and (group, channels) == (d, d)
        fits = fits and (ndim > 1 or columns == d)
    else:
        fits = fits and (ndim == 3 or group == columns) and (ndim > 1 or columns == 1)
        fits = fits and (ndim < 3 or group != d or channels == d)
    if not fits:
        raise ValueError(f"the layout of its {name} is impossible")
    room = slice(start, start + channels)
    return Layout.filled(ndim, columns, room, d, group=group, is_complex=fields["is_complex"])
