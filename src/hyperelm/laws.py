"""Which laws a multiplication table obeys, such as (xy)z = x(yz), whatever the size of its entries.

A law says that two polynomials in the components of x, y and z are equal. A polynomial of degree at most four that is
not zero vanishes at a random point of {-64..64}^d with a probability below 1/32. So a law that holds at 16 random
points holds, but for a chance of 1e-24.

Tables of whole numbers are multiplied exactly, in integers of any size. The two sides of other tables may differ by
rounding, relative to what they would be with all minus signs left out,

    |left - right| <= 1e-11 (|left| + |right|).

For that their entries must have like sizes: `balanced` scales the units so that they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Points = NDArray[Any]
Product = Callable[[Points, Points], Points]
Sides = tuple[Points, Points]
Law = Callable[[Product, Points, Points, Points], Sides]  # of x, y and z, of which it may use fewer

_POINTS = 16
_LARGEST = 64  # component of a point
_ROUNDING = 1e-11
_EXACT = 2.0**53  # below which whole numbers in double precision are exact
_PRIMES = (2**31 - 1, 2**31 - 19)
_NOISE = 30.0  # powers of two below the largest entry: smaller ones do not decide how units are scaled


def commutative(multiply: Product, x: Points, y: Points, *_: Points) -> Sides:
    return multiply(x, y), multiply(y, x)


def associative(multiply: Product, x: Points, y: Points, z: Points) -> Sides:
    return multiply(multiply(x, y), z), multiply(x, multiply(y, z))


def left_alternative(multiply: Product, x: Points, y: Points, *_: Points) -> Sides:
    return associative(multiply, x, x, y)


def right_alternative(multiply: Product, x: Points, y: Points, *_: Points) -> Sides:
    return associative(multiply, y, x, x)


def flexible(multiply: Product, x: Points, y: Points, *_: Points) -> Sides:
    return associative(multiply, x, y, x)


def third_power(multiply: Product, x: Points, *_: Points) -> Sides:
    return associative(multiply, x, x, x)


def fourth_power(multiply: Product, x: Points, *_: Points) -> Sides:
    return associative(multiply, x, x, multiply(x, x))


def normed(multiply: Product, x: Points, y: Points, *_: Points) -> Sides:
    return (multiply(x, y) ** 2).sum(axis=1), (x**2).sum(axis=1) * (y**2).sum(axis=1)


def holds(law: Law, table: Table) -> bool:
    """Whether a table obeys a law: exactly if its entries are whole numbers, else up to rounding."""
    x, y, z = np.random.default_rng(0).integers(-_LARGEST, _LARGEST + 1, (3, _POINTS, len(table))).astype(float)
    with np.errstate(over="ignore"):
        size = sum(law(_product(np.abs(table)), np.abs(x), np.abs(y), np.abs(z)))
    whole = is_whole(table)
    if whole and np.max(size) >= _EXACT:
        table, x, y, z = map(_integers, (table, x, y, z))
    one, other = law(_product(table), x, y, z)
    return bool(np.all(one == other) if whole else np.all(np.abs(one - other) <= _ROUNDING * size))


def is_whole(table: Table) -> bool:
    """Whether all entries are whole numbers; larger ones than double precision has exactly are taken as rounded."""
    return bool(np.all((table == np.round(table)) & (np.abs(table) < _EXACT)))


def are_regular(matrices: Table) -> bool:
    """Whether all of some matrices, (..., d, d), have full rank: exactly if their entries are whole numbers.

    The singular values decide, to rounding. A determinant of whole numbers that they call zero is looked at modulo two
    primes.
    """
    full = np.linalg.matrix_rank(matrices) == matrices.shape[-1]
    if full.all() or not is_whole(matrices):
        return bool(full.all())
    return all(any(_is_regular(matrix, prime) for prime in _PRIMES) for matrix in matrices[~full])


def _is_regular(matrix: Table, prime: int) -> bool:
    """By elimination modulo a prime below 2**31, so that products are integers of 64 bits."""
    rows = matrix.astype(np.int64) % prime
    for n in range(len(rows)):
        pivot = n + int(np.argmax(rows[n:, n] != 0))
        if rows[pivot, n] == 0:
            return False
        rows[[n, pivot]] = rows[[pivot, n]]
        rows[n] = rows[n] * pow(int(rows[n, n]), -1, prime) % prime
        rows[n + 1 :] = (rows[n + 1 :] - rows[n + 1 :, n, None] * rows[n]) % prime
    return True


def _integers(array: Points) -> Points:
    """Whole numbers as Python's integers, which have any size."""
    return np.array([int(value) for value in array.ravel()], dtype=object).reshape(array.shape)


def _product(table: Points) -> Product:
    """The product of points, (n, d) and (n, d) -> (n, d)."""
    dim = len(table)
    if table.dtype != object:
        return lambda x, y: np.matmul(y[:, None], (x @ table.reshape(dim, -1)).reshape(-1, dim, dim))[:, 0]
    i, j, k = np.nonzero(table)

    def multiply(x: Points, y: Points) -> Points:
        product = np.zeros((dim, len(x)), dtype=object)
        np.add.at(product, k, (table[i, j, k] * x[:, i] * y[:, j]).T)
        return product.T

    return multiply


def balanced(table: Table) -> Table:
    """The same algebra in units that are scaled by powers of two, so that its entries have like sizes."""
    e = balancing(table)
    return np.ldexp(table, e[:, None, None] + e[:, None] - e)


def balancing(table: Table) -> NDArray[np.intp]:
    """The exponents of the scales s of these units.

    In the units s_i u_i entry (i, j, k) is table[i, j, k] s_i s_j / s_k. The scales minimise the sum of squares of the
    logarithms of all entries but zeros, which is a linear problem in log s. So the result does not depend on the units
    and on the overall factor of `table`, but for the rounding of log s. What rounding leaves of a zero must not count:
    the balanced table shows which entries these are, and then it is made again without them.
    """
    used = table != 0
    logarithms = np.log2(np.abs(table), where=used, out=np.zeros(table.shape))
    counted, now = used, logarithms
    for _ in range(3):
        s = _scales(logarithms, counted)
        now = logarithms + s[:, None, None] + s[:, None] - s
        counted = used & (now >= now.max(where=used, initial=-np.inf) - _NOISE)
    return np.round(s).astype(np.intp)


def _scales(logarithms: Table, counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The s of least length that minimises Σ (logarithms_ijk + s_i + s_j - s_k)² over the entries that count."""
    ij, ik, jk = (counted.sum(axis=axis) for axis in (2, 1, 0))
    diagonal = np.diag(ij.sum(axis=1) + ij.sum(axis=0) + ik.sum(axis=0))
    normal = diagonal + ij + ij.T - ik - ik.T - jk - jk.T
    logarithms = np.where(counted, logarithms, 0)
    target = logarithms.sum(axis=(0, 1)) - logarithms.sum(axis=(1, 2)) - logarithms.sum(axis=(0, 2))
    scales: NDArray[np.float64] = np.linalg.lstsq(normal.astype(float), target, rcond=1e-10)[0]
    return scales
