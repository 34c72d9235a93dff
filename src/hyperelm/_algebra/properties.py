"""What follows from a multiplication table: which laws it obeys, its identity, and its isomorphism type.

**Laws**, such as (xy)z = x(yz). A law says that two polynomials in the components of x, y and z are equal. It is tested
at 16 random points, numbers whose components are whole and at most 64. Two different polynomials of degree four or less
agree at such a point with a probability below 1/32, so they agree at all 16 with a probability below 1e-24.

A table of whole numbers is multiplied exactly, with integers of any size where needed. With another table the two
sides of a law may differ by rounding, relative to what they would be without minus signs:

    |left - right| <= 1e-11 (|left| + |right|).

That makes sense only if all entries have about the same size. So `balanced` first changes the lengths of the units.

**Isomorphism type.** A finite-dimensional associative real algebra has the *trace form* τ(x, y) = tr L(xy), where L is
left multiplication. The numbers x with τ(x, y) = 0 for all y are its radical. If the radical is zero, the algebra is
semisimple: a direct sum of matrix algebras over R, C and H. Multiplication by a random element of the centre has one
eigenvalue, or one pair of complex eigenvalues, for each summand:

- a real eigenvalue with an eigenspace of dimension n² belongs to M_n(R) or M_{n/2}(H). On it τ has signature n or -n,
  positive on symmetric matrices and negative on skew-symmetric ones;
- a pair of complex eigenvalues with a space of dimension 2n² belongs to M_n(C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Points = NDArray[Any]
Multiply = Callable[[Points, Points], Points]
Sides = tuple[Points, Points]

_POINTS = 16
_LARGEST = 64  # component of a point
_ROUNDING = 1e-11  # of the two sides of a law
_TOLERANCE = 1e-7  # of an isomorphism type; ten times the error that a change of basis of condition 1e4 may cause
_EXACT = 2.0**53  # below this, whole numbers in double precision are exact
_PRIMES = (2**31 - 1, 2**31 - 19)
_NOISE = 30.0  # powers of two; an entry that is so much smaller than the largest may be what rounding left of a zero


# ---------------------------------------------------------------------- laws


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


# ---------------------------------------------------------------------- units of like sizes


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
    counted = used
    for _ in range(3):
        # The shortest s that minimises Σ (logarithms_ijk + s_i + s_j - s_k)² over the entries that count.
        ij, ik, jk = (counted.sum(axis=axis) for axis in (2, 1, 0))
        diagonal = np.diag(ij.sum(axis=1) + ij.sum(axis=0) + ik.sum(axis=0))
        normal = diagonal + ij + ij.T - ik - ik.T - jk - jk.T
        these = np.where(counted, logarithms, 0)
        target = these.sum(axis=(0, 1)) - these.sum(axis=(1, 2)) - these.sum(axis=(0, 2))
        s = np.asarray(np.linalg.lstsq(normal.astype(float), target, rcond=1e-10)[0])
        now = logarithms + s[:, None, None] + s[:, None] - s
        counted = used & (now >= now.max(where=used, initial=-np.inf) - _NOISE)
    return np.round(s).astype(np.intp)


# ---------------------------------------------------------------------- identity and isomorphism type


def identity_of(table: Array) -> Array | None:
    """The number e with ex = xe = x for all x, if any: Σ_i e_i table[i, j, k] = Σ_i e_i table[j, i, k] = δ_jk."""
    one = np.eye(len(table))
    e = one[0]
    if not (np.array_equal(table[0], one) and np.array_equal(table[:, 0], one)):
        # One tolerance for all equations makes sense only if their coefficients have like sizes.
        even = balanced(table)
        equations = np.stack([even, even.swapaxes(0, 1)], axis=1).reshape(len(e), -1).T
        target = np.tile(one.ravel(), 2)
        e = np.linalg.lstsq(equations, target, rcond=None)[0]
        if np.abs(equations @ e - target).max() > 1e-10 * max(1.0, np.abs(e).max()):
            return None
        e = np.ldexp(e, balancing(table))
    e.setflags(write=False)
    return e


def associative_structure(table: Array) -> str:
    """The isomorphism type of an associative algebra, such as "H", "M2(R)", "C + C" or "R^4"."""
    table = balanced(table)
    trace_form = np.einsum("ijk,kll->ij", table, table)
    singular_values = np.linalg.svd(trace_form, compute_uv=False)
    radical = int(np.sum(singular_values <= _TOLERANCE * singular_values[0]))
    if radical:
        return f"associative, not semisimple (radical of dimension {radical})"
    summands = Counter(_simple_summands(table, trace_form)).items()
    ordered = sorted(summands, key=lambda item: (len(item[0]), "RCH".find(item[0]), item[0]))  # R, C and H come first
    return " + ".join(" + ".join([name] * n) if n <= 2 else f"{name}^{n}" for name, n in ordered)


def _simple_summands(table: Array, trace_form: Array) -> Iterator[str]:
    multiplication = _random_central(table)
    for value, size in _distinct(np.linalg.eigvals(multiplication)):
        n = round(float(np.sqrt(size)))
        if value.imag > 0:
            yield _matrices(n, "C")
        elif value.imag == 0:
            # The eigenspace of the value has dimension n². It is M_n(R) or M_{n/2}(H).
            _, _, rows = np.linalg.svd(multiplication - value.real * np.eye(len(table)))
            ideal = rows[-size:].T
            signature = np.sign(np.linalg.eigvalsh(ideal.T @ trace_form @ ideal)).sum()
            yield _matrices(n, "R") if signature > 0 else _matrices(n // 2, "H")


def _matrices(n: int, field: str) -> str:
    return field if n == 1 else f"M{n}({field})"


def _random_central(table: Array) -> Array:
    """Left multiplication by an element of the centre: of 20 random ones, that with the widest gaps of eigenvalues."""
    commutators = (table - table.swapaxes(0, 1)).transpose(1, 2, 0).reshape(-1, len(table))
    _, values, rows = np.linalg.svd(commutators, full_matrices=False)
    centre = rows[values <= _TOLERANCE * np.linalg.norm(table)].T
    rng = np.random.default_rng(0)
    drawn = (np.einsum("i,ijk->kj", centre @ rng.standard_normal(centre.shape[1]), table) for _ in range(20))

    def smallest_gap(multiplication: Array) -> float:
        distinct = np.array([value for value, _ in _distinct(np.linalg.eigvals(multiplication))])
        gaps = np.abs(distinct[:, None] - distinct)[~np.eye(len(distinct), dtype=bool)]
        return float(gaps.min(initial=1.0))

    return max((element / np.linalg.norm(element, 2) for element in drawn), key=smallest_gap)


def _distinct(values: NDArray[Any]) -> list[tuple[complex, int]]:
    """Clusters of eigenvalues as (mean, size). The mean of a real cluster is made exactly real."""
    tolerance = 100 * _TOLERANCE
    clusters: list[list[complex]] = []
    for value in map(complex, values):
        near = next((c for c in clusters if abs(c[0] - value) < tolerance), None)
        if near is None:
            clusters.append([value])
        else:
            near.append(value)
    means = [complex(np.mean(c)) for c in clusters]
    return [(m.real + 0j if abs(m.imag) < tolerance else m, len(c)) for m, c in zip(means, clusters)]
