"""Which laws a multiplication table obeys, such as (xy)z = x(yz).

A law says that two polynomials in the components of x, y and z are equal. It is tested at 16 random points, numbers
whose components are whole and at most 64. Two different polynomials of degree four or less agree at such a point with
a probability below 1/32, so they agree at all 16 with a probability below 1e-24.

A table of whole numbers is multiplied exactly, with integers of any size where needed. With another table the two
sides of a law may differ by rounding, relative to what they would be without minus signs:

    |left - right| <= 1e-11 (|left| + |right|).

That makes sense only if all entries have about the same size. So `balanced` first changes the lengths of the units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Points = NDArray[Any]
Multiply = Callable[[Points, Points], Points]
Sides = tuple[Points, Points]

_POINTS = 16
_LARGEST = 64  # component of a point
_ROUNDING = 1e-11
_EXACT = 2.0**53  # below this, whole numbers in double precision are exact
_PRIMES = (2**31 - 1, 2**31 - 19)
_NOISE = (
    30.0  # an entry that is smaller than the largest by this many powers of two may be what rounding left of a zero
)


def _bracketed(multiply: Multiply, x: Points, y: Points, z: Points) -> Sides:
    """(xy)z and x(yz)."""
    return multiply(multiply(x, y), z), multiply(x, multiply(y, z))


def _lengths(multiply: Multiply, x: Points, y: Points, *_: Points) -> Sides:
    """|xy|² and |x|²|y|²."""
    return (multiply(x, y) ** 2).sum(axis=1), (x**2).sum(axis=1) * (y**2).sum(axis=1)


_LAWS: dict[str, Callable[..., Sides]] = {
    "commutative": lambda multiply, x, y, *_: (multiply(x, y), multiply(y, x)),
    "associative": _bracketed,
    "left alternative": lambda multiply, x, y, *_: _bracketed(multiply, x, x, y),
    "right alternative": lambda multiply, x, y, *_: _bracketed(multiply, y, x, x),
    "flexible": lambda multiply, x, y, *_: _bracketed(multiply, x, y, x),
    "third power": lambda multiply, x, *_: _bracketed(multiply, x, x, x),
    "fourth power": lambda multiply, x, *_: _bracketed(multiply, x, x, multiply(x, x)),
    "normed": _lengths,
}


def holds(law: str, table: Array) -> bool:
    """Whether a table obeys a law: exactly if its entries are whole numbers, else up to rounding."""
    sides = _LAWS[law]
    x, y, z = np.random.default_rng(0).integers(-_LARGEST, _LARGEST + 1, (3, _POINTS, len(table))).astype(float)
    with np.errstate(over="ignore"):
        size = sum(sides(_multiplication(np.abs(table)), np.abs(x), np.abs(y), np.abs(z)))
    whole = is_whole(table)
    if whole and np.max(size) >= _EXACT:
        table, x, y, z = map(_integers, (table, x, y, z))
    left, right = sides(_multiplication(table), x, y, z)
    return bool(np.all(left == right) if whole else np.all(np.abs(left - right) <= _ROUNDING * size))


def is_whole(table: Array) -> bool:
    """Whether all entries are whole numbers below 2⁵³. Larger floating-point numbers may have been rounded."""
    return bool(np.all((table == np.round(table)) & (np.abs(table) < _EXACT)))


def are_regular(matrices: Array) -> bool:
    """Whether all of some matrices, (..., d, d), have full rank: exactly if their entries are whole numbers.

    The singular values decide, up to rounding. Where they say that a matrix of whole numbers has not full rank, its
    determinant is tested modulo two primes: it is not zero if one of the two remainders is not zero.
    """
    full = np.linalg.matrix_rank(matrices) == matrices.shape[-1]
    if full.all() or not is_whole(matrices):
        return bool(full.all())
    return all(any(_is_regular(matrix, prime) for prime in _PRIMES) for matrix in matrices[~full])


def _is_regular(matrix: Array, prime: int) -> bool:
    """By elimination modulo a prime below 2³¹, so that products fit into 64 bits."""
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
    """Whole numbers as integers of Python, which have any size."""
    return np.array([int(value) for value in array.ravel()], dtype=object).reshape(array.shape)


def _multiplication(table: Points) -> Multiply:
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


def balanced(table: Array) -> Array:
    """The same algebra with its units made longer or shorter by powers of two, so that entries have like sizes."""
    e = balancing(table)
    return np.ldexp(table, e[:, None, None] + e[:, None] - e)


def balancing(table: Array) -> NDArray[np.intp]:
    """The exponents e of these units 2^e_i u_i.

    In the units s_i u_i entry (i, j, k) is table[i, j, k] s_i s_j / s_k. The lengths s minimise the sum of squares of
    the logarithms of all entries but zeros, which is a linear problem in log s. So the result does not depend on the
    units and on the overall factor of `table`, apart from the rounding of log s.

    What rounding left of a zero must not count. Such an entry is far smaller than the others once the table is
    balanced. So the problem is solved three times, each time without the entries that were far smaller before.
    """
    used = table != 0
    logarithms = np.log2(np.abs(table), where=used, out=np.zeros(table.shape))
    counted, now = used, logarithms
    for _ in range(3):
        s = _log_lengths(logarithms, counted)
        now = logarithms + s[:, None, None] + s[:, None] - s
        counted = used & (now >= now.max(where=used, initial=-np.inf) - _NOISE)
    return np.round(s).astype(np.intp)


def _log_lengths(logarithms: Array, counted: NDArray[np.bool_]) -> Array:
    """The shortest s that minimises Σ (logarithms_ijk + s_i + s_j - s_k)² over the entries that count."""
    ij, ik, jk = (counted.sum(axis=axis) for axis in (2, 1, 0))
    diagonal = np.diag(ij.sum(axis=1) + ij.sum(axis=0) + ik.sum(axis=0))
    normal = diagonal + ij + ij.T - ik - ik.T - jk - jk.T
    logarithms = np.where(counted, logarithms, 0)
    target = logarithms.sum(axis=(0, 1)) - logarithms.sum(axis=(1, 2)) - logarithms.sum(axis=(0, 2))
    return np.asarray(np.linalg.lstsq(normal.astype(float), target, rcond=1e-10)[0], dtype=np.float64)
