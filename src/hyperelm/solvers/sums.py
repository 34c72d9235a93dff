"""Planes of a row block and sums of their products, spread over a team."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import is_elsewhere, namespace, to_numpy
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.bilinear import scheme
from hyperelm.products import is_identity, planes
from hyperelm.solvers.team import Team

_SCRATCH = 96 * 2**20
_ROWS = 64  # that are worked on in cache ...
_UNPACKED = 10**6  # ... or fewer: up to so many multiplications OpenBLAS takes factors as they are, without a copy

Pair = tuple[FloatArray, FloatArray, float]


class Planes(NamedTuple):
    """The planes of a row block that `scheme(algebra, support)` takes of its left factor: (p, m, n)."""

    support: tuple[int, ...]
    image: FloatArray


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


def by_rows(array: FloatArray, function: Callable[[FloatArray], Any], team: Team, rows: int = 256) -> list[Any]:
    """`function` of every `rows` rows of an array, in order."""
    parts = [array[block] for block in row_blocks(len(array), rows)]
    results: list[Any] = [None] * len(parts)

    def task(n: int) -> None:
        results[n] = function(parts[n])

    team.run([partial(task, n) for n in range(len(parts))])
    return results


def team_planes(x: FloatArray, basis: NDArray[np.float64], name: str, team: Team) -> FloatArray:
    """The planes of x, (m, n, d) -> (p, m, n), in the team's memory called `name` unless they are views of x.

    They lie in memory as x does: row by row, or column by column.
    """
    if not is_elsewhere(x) and x.strides[0] < x.strides[1]:
        return team_planes(x.swapaxes(0, 1), basis, name, team).swapaxes(1, 2)
    if is_elsewhere(x) or (is_identity(basis) and x.strides[1] == x.itemsize):
        return planes(x, basis)
    image = team.array(name, (basis.shape[1], *x.shape[:2]), x.dtype)
    size = cached_rows(x.shape[1], basis)
    team.run([partial(planes, x[rows], basis, out=image[:, rows]) for rows in row_blocks(len(x), size)])
    return image


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
