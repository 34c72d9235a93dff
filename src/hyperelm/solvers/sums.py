"""Planes of a row block, sums of their products, and sums of squares, spread over a team."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import is_elsewhere, namespace, to_numpy
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.bilinear import scheme
from hyperelm.planes import is_identity, planes
from hyperelm.solvers.team import Team

_SCRATCH = 96 * 2**20
_NUMBERS = 2**17  # whose squares are summed at a time
_ROWS = 64  # that are worked on in cache ...
_UNPACKED = 10**6  # ... or fewer: up to so many multiplications OpenBLAS takes factors as they are, without a copy

Pair = tuple[FloatArray, FloatArray, float]
BasisOf = Callable[[tuple[int, ...]], NDArray[np.float64]]
S = TypeVar("S")


class Planes(NamedTuple):
    """The planes of a row block that `scheme(algebra, support)` takes of its left factor, and what is known of it.

    support : the components that are not zero throughout
    image : (p, m, n)
    square : Σx², if it is known
    """

    support: tuple[int, ...]
    image: FloatArray
    square: float | None = None


def row_blocks(rows: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` rows."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def chunk_rows(algebra: Algebra, inputs: int, unknowns: int, targets: int, itemsize: int) -> int:
    """Rows of a block for D inputs, L unknowns and N targets whose scratch memory is about `_SCRATCH` bytes.

    A multiple of 16, which the kernels of a BLAS take at a time.
    """
    planes_of_rows = min(len(scheme(algebra, search=False).terms), 2 * algebra.dim)
    numbers = unknowns if algebra.dim == 1 else planes_of_rows * (max(inputs, targets) + 2 * unknowns)
    return int(np.clip(_SCRATCH // max(1, itemsize * numbers), 64, 4096)) // 16 * 16


def nonzero_components(x: FloatArray, team: Team) -> tuple[int, ...]:
    """The components that are not zero throughout x, (m, n, d)."""
    if is_elsewhere(x):
        return tuple(np.flatnonzero(to_numpy(namespace(x=x).any(x != 0, axis=(0, 1)))).tolist())
    return tuple(k for k in range(x.shape[-1]) if x[:1, :, k].any() or any(by_rows(x[:, :, k], np.any, team)))


def by_rows(array: FloatArray, function: Callable[[FloatArray], S], team: Team, rows: int = 256) -> list[S]:
    """`function` of every `rows` rows of an array, in order."""
    return team.map(function, [array[block] for block in row_blocks(len(array), rows)])


def team_planes(x: FloatArray, basis: NDArray[np.float64], name: str, team: Team) -> FloatArray:
    """The planes of x, (m, n, d) -> (p, m, n), in the team's memory called `name` unless they are views of x.

    They lie in memory as x does: row by row, or column by column.
    """
    return planes(x, basis) if is_elsewhere(x) else _formed(x, basis, name, team, len)[0]


def known_planes(x: FloatArray, basis_of: BasisOf, name: str, team: Team) -> Planes:
    """The planes of x, (m, n, d), by the basis for the components that are not zero throughout it.

    These components and Σx² are found while the planes are formed, in the same pass. The first row tells which they may
    be; where a later one has more of them, planes are formed anew.
    """
    if is_elsewhere(x):
        support = nonzero_components(x, team)
        return Planes(support, planes(x, basis_of(support)))
    support = nonzero_components(x[:1], team)
    while True:
        zero = [k for k in range(x.shape[-1]) if k not in support]
        image, seen = _formed(x, basis_of(support), name, team, partial(_look, zero=zero))
        more = {k for shown, _ in seen for k in shown}
        if not more:
            return Planes(support, image, sum(square for _, square in seen))
        support = tuple(sorted({*support, *more}))


def _look(part: FloatArray, zero: list[int]) -> tuple[list[int], float]:
    """Which of these components are not zero after all, and Σx²."""
    return [k for k in zero if part[..., k].any()], sum_of_squares(part)


def _formed(
    x: FloatArray, basis: NDArray[np.float64], name: str, team: Team, look: Callable[[FloatArray], S]
) -> tuple[FloatArray, list[S]]:
    """The planes of x, and what `look` sees of its rows, some at a time, while they are in cache."""
    if x.strides[0] < x.strides[1]:
        image, seen = _formed(x.swapaxes(0, 1), basis, name, team, look)
        return image.swapaxes(1, 2), seen
    size = cached_rows(x.shape[1], basis)
    if is_identity(basis) and x.strides[1] == x.itemsize:
        return planes(x, basis), by_rows(x, look, team, size)
    image = team.array(name, (basis.shape[1], *x.shape[:2]), x.dtype)

    def form(rows: slice) -> S:
        planes(x[rows], basis, out=image[:, rows])
        return look(x[rows])

    return image, team.map(form, row_blocks(len(x), size))


def cached_rows(columns: int, basis: FloatArray) -> int:
    """How many rows of so many columns to take at a time through a linear map of their components."""
    return max(1, min(_ROWS, _UNPACKED // max(1, columns * basis.size)))


def sum_products(pairs: Sequence[Pair], total: FloatArray, team: Team, *, fresh: bool = False) -> None:
    """total += Σ c ab, or total = Σ c ab if `fresh`."""
    for n, (a, b, c) in enumerate(pairs):
        begins = fresh and n == 0
        product = total if begins else team.array("product", total.shape, total.dtype, of_thread=True)
        np.matmul(a, b, out=product)
        if c != 1:
            product *= total.dtype.type(c)
        if not begins:
            total += product


def total_square(array: FloatArray, team: Team) -> float:
    """Σ x², which is 0 only if all numbers are."""
    square = square_elsewhere(array) if is_elsewhere(array) else _square_in_order(array, team)
    if square == 0 and bool(namespace(array=array).any(array != 0)):
        return math.ulp(0.0)
    return square


def _square_in_order(array: FloatArray, team: Team) -> float:
    """Σ x², some numbers at a time, in the order of memory where they lie without gaps."""
    ordered = array.transpose(np.argsort(array.strides)[::-1])
    if ordered.flags.c_contiguous:
        return float(sum(by_rows(ordered.reshape(-1), sum_of_squares, team, rows=_NUMBERS)))
    return float(sum(by_rows(array, sum_of_squares, team)))


def square_elsewhere(array: Any) -> float:
    """Σ |x|² of an array of another library, which may be beyond the largest number in its precision."""
    if 0 in array.shape:
        return 0.0
    xp = namespace(array=array)
    sizes = xp.abs(array)
    largest = float(xp.max(sizes)) or 1.0
    with np.errstate(invalid="ignore"):  # of a library that is made of NumPy
        return largest * largest * float(xp.sum((sizes / largest) ** 2))


def sum_of_squares(array: FloatArray) -> float:
    """Σ x², in one pass; NaN or infinite where a number is or where it is beyond double precision."""
    x, info = array.reshape(-1), np.finfo(array.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.dot(x, x))
        if array.dtype == np.float32 and not float(info.tiny / info.eps) < square < np.inf:
            # Squares beyond single precision, as of targets in units that make them tiny.
            x = x.astype(np.float64)
            square = float(np.dot(x, x))
    return square
