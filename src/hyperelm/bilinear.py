"""Fewer products: the multiplication of an algebra as a bilinear scheme.

A product of hypercomplex matrices is a sum of real matrix products of *planes*, fixed linear combinations of the
components. A scheme writes the table as

    table[i, j, k] = Σ_t c_t left[i, p_t] right[j, q_t] out[k, s_t],

so that C = AB takes one real product a term,

    A_p = Σ_i left[i, p] A_i,   B_q = Σ_j right[j, q] B_j,   C_s += c_t A_p B_q,   C_k = Σ_s out[k, s] C_s,

and the same terms give AᵀC-like sums such as Φ_L(A)ᵀφ(C) with the roles of `right` and `out` exchanged. Three
schemes compete: the table itself (a term for every entry that is not zero), the blocks of the algebra, and, for
small tables, a canonical polyadic decomposition found by alternating least squares: rank 4 for the Klein four-group,
6 for the tessarines, 7 for 2 x 2 real matrices, 8 for the quaternions, and less where a component of one side is known
to be zero. A scheme competes only if it gives every entry of the table to rounding,
relative to the largest entry with the same left, the same right and the same resulting unit.

Schemes are found for the table without its overall factor, `unit_algebra`, which comes back in the coefficients c.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hyperelm.algebra import Algebra
from hyperelm.decomposition import Block, decompose, unit_algebra

Matrix = NDArray[np.float64]
Factors = tuple[Matrix, Matrix, Matrix]
Term = tuple[int, int, int, float]

_LARGEST_SEARCHED = 4  # dimension up to which a decomposition is searched for
_ATTEMPTS = 8
_SWEEPS = 600
_VANISHED = 1e-9  # of entries of factors
_ROUNDING = 64 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Scheme:
    """Planes of the left factor, the right factor and the product, (d, planes) each, and the terms that join them."""

    left: Matrix
    right: Matrix
    out: Matrix
    terms: tuple[Term, ...]

    def by_out(self) -> dict[int, list[tuple[int, int, float]]]:
        """For every plane of the product, the (left, right, coefficient) that it sums."""
        return _grouped((s, (p, q, c)) for p, q, s, c in self.terms)

    def by_right(self) -> dict[int, list[tuple[int, int, float]]]:
        """For every plane of the right factor, the (left, out, coefficient) that it is summed from in Φ_Lᵀφ."""
        return _grouped((q, (p, s, c)) for p, q, s, c in self.terms)

    def table(self) -> NDArray[np.float64]:
        """The table that the scheme multiplies by."""
        if not self.terms:
            return np.zeros((len(self.left), len(self.right), len(self.out)))
        p, q, s, c = (list(column) for column in zip(*self.terms))
        left, right, out = self.left[:, p] * np.array(c), self.right[:, q], self.out[:, s].T
        return np.stack([(row * right) @ out for row in left])

    def times(self, factor: float) -> Scheme:
        """The scheme of the table times a factor."""
        terms = tuple((p, q, s, factor * c) for p, q, s, c in self.terms)
        return Scheme(self.left, self.right, self.out, terms)


def _grouped(items: Iterable[tuple[int, tuple[int, int, float]]]) -> dict[int, list[tuple[int, int, float]]]:
    groups: dict[int, list[tuple[int, int, float]]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def is_worth_searching(*sides: int) -> bool:
    """Whether products with a matrix of this size are worth the half second that a decomposition may take to find."""
    return math.prod(sides) >= 50_000


def scheme(
    algebra: Algebra, left: tuple[int, ...] | None = None, out: tuple[int, ...] | None = None, *, search: bool = True
) -> Scheme:
    """The scheme with the fewest terms.

    `left` names the components of the left factor that are not all zero, `out` those of the product that matter;
    without `search` only the table and the blocks compete.
    """
    return _scheme(algebra, left, out, search)


@lru_cache(maxsize=256)
def _scheme(algebra: Algebra, left: tuple[int, ...] | None, out: tuple[int, ...] | None, search: bool) -> Scheme:
    unit, factor = unit_algebra(algebra)
    if factor != 1:
        return _scheme(unit, left, out, search).times(factor)
    table = _restricted(algebra, left, out)
    simplest = _by_blocks(algebra, table)
    if len(simplest.terms) >= np.count_nonzero(table) or not (_is_whole(algebra) or _gives(simplest.table(), table)):
        simplest = _by_entries(table)
    if search and table.any() and algebra.dim <= _LARGEST_SEARCHED:
        return min([simplest, *_by_decomposition(table, fewer_than=len(simplest.terms))], key=lambda s: len(s.terms))
    return simplest


def _is_whole(algebra: Algebra) -> bool:
    """Whether the one block is the table itself, and right without looking."""
    first, *others = decompose(algebra)
    return not others and np.array_equal(first.bases, np.eye(algebra.dim)[None])


@lru_cache(maxsize=256)
def block_scheme(algebra: Algebra) -> Scheme:
    """The scheme of the blocks."""
    return _by_blocks(algebra, algebra.table)


def _by_entries(table: NDArray[np.float64]) -> Scheme:
    identity = np.eye(len(table))
    terms = tuple((int(i), int(j), int(k), float(table[i, j, k])) for i, j, k in np.argwhere(table))
    return Scheme(identity, identity, identity, terms)


def _by_blocks(algebra: Algebra, table: NDArray[np.float64]) -> Scheme:
    """One term for every product of an entry of B(a) and a coordinate of b; complex ones take four."""
    blocks, p, q = decompose(algebra), 0, 0
    terms: list[Term] = []
    for block in blocks:
        terms.extend(_block_terms(block, p, q))
        p, q = p + block.entries.shape[1], q + block.coordinates.shape[1]
    rows = np.any(table, axis=(1, 2))
    planes = np.concatenate([block.entries for block in blocks], axis=1) * rows[:, None]
    columns = np.concatenate([block.coordinates for block in blocks], axis=1)
    used = np.any(planes, axis=0)
    outputs = columns * np.any(table, axis=(0, 1))[:, None]
    return Scheme(planes, columns, outputs, tuple(term for term in terms if used[term[0]]))


def _block_terms(block: Block, p: int, q: int) -> Iterator[Term]:
    n, copies, parts = block.size, block.copies, block.parts
    for a in range(n):
        for b in range(n):
            for c in range(copies):
                entry, source, target = (
                    p + parts * (a * n + b),
                    q + parts * (b * copies + c),
                    q + parts * (a * copies + c),
                )
                yield entry, source, target, 1.0
                if block.is_complex:
                    yield entry + 1, source + 1, target, -1.0
                    yield entry, source + 1, target + 1, 1.0
                    yield entry + 1, source, target + 1, 1.0


@lru_cache(maxsize=256)
def reverse_scheme(algebra: Algebra, support: tuple[int, ...]) -> Scheme | None:
    """A scheme for Φ_L(H)ᵀφ(X) on the planes of X that `scheme(algebra, support)` takes for XW, or None.

    An auto-encoder multiplies its inputs twice, once as left factor and once as target: with it their planes are
    formed once. It exists where the table has a symmetry that exchanges the two, and is found with one factor fixed.
    """
    unit, factor = unit_algebra(algebra)
    if factor != 1:
        return None if (found := reverse_scheme(unit, support)) is None else found.times(factor)
    forward, backward = scheme(algebra, support), scheme(algebra, None, support)
    if np.array_equal(forward.left, backward.out):
        return backward
    decomposed = forward.terms == _diagonal(forward.left.shape[1])
    if algebra.dim > _LARGEST_SEARCHED or not decomposed or not backward.terms:
        return None
    factors = _decomposed(_restricted(algebra, None, support), len(forward.terms), out=forward.left)
    return None if factors is None else Scheme(*factors, terms=forward.terms)


def _restricted(algebra: Algebra, left: tuple[int, ...] | None, out: tuple[int, ...] | None) -> NDArray[np.float64]:
    """The table without the components of the left factor and of the product that do not matter."""
    table = np.zeros_like(algebra.table)
    everything = range(algebra.dim)
    kept = np.ix_(everything if left is None else left, everything, everything if out is None else out)
    table[kept] = algebra.table[kept]
    return table


def _by_decomposition(table: NDArray[np.float64], *, fewer_than: int) -> list[Scheme]:
    """The canonical polyadic decompositions of ever smaller rank that alternating least squares finds."""
    found: list[Scheme] = []
    for rank in range(min(2 * len(table), fewer_than - 1), 0, -1):
        factors = _decomposed(table, rank)
        if factors is None:
            break
        found.append(Scheme(*factors, terms=_diagonal(rank)))
    return found


def _diagonal(rank: int) -> tuple[Term, ...]:
    """Plane by plane: the terms of a decomposition."""
    return tuple((r, r, r, 1.0) for r in range(rank))


def _decomposed(table: NDArray[np.float64], rank: int, out: Matrix | None = None) -> Factors | None:
    """The best conditioned exact decomposition of several starts, with the factor `out` if given; or None."""
    best, size = None, np.inf
    for seed in range(_ATTEMPTS):
        factors = _alternating_least_squares(table, rank, np.random.default_rng(seed), out)
        if factors is not None and (largest := max(float(np.abs(f).max()) for f in factors)) < size:
            best, size = factors, largest
    return best


def _alternating_least_squares(
    table: NDArray[np.float64], rank: int, rng: np.random.Generator, out: Matrix | None
) -> Factors | None:
    """Each factor in turn solves a linear problem, kept near its last value by a weight that fades away."""
    factors: list[Matrix] = [rng.standard_normal((len(table), rank)) for _ in range(3)]
    sought = 3
    if out is not None:
        factors[2], sought = out, 2
    unfolded = [np.moveaxis(table, axis, 0).reshape(len(table), -1) for axis in range(3)]
    inertia = 0.1
    for sweep in range(_SWEEPS):
        for axis in range(sought):
            joint = _joint(factors, axis)
            normal = joint.T @ joint + inertia * np.eye(rank)
            update = np.linalg.solve(normal, (unfolded[axis] @ joint + inertia * factors[axis]).T).T
            factors[axis] = np.asarray(update, dtype=np.float64)
        inertia = max(0.93 * inertia, 1e-13)
        if sweep % 10 == 9:
            error = np.abs(factors[0] @ _joint(factors, 0).T - unfolded[0]).max() / np.abs(table).max()
            if error < 1e-9:
                left, right, found = _polished(factors, table, sought)
                if not _gives(np.einsum("ir,jr,kr->ijk", left, right, found), table):
                    return None  # of a table near this one, whose rank is smaller
                if min(np.abs(factor).max(axis=0).min() for factor in (left, found)) < _VANISHED:
                    return None  # a smaller rank does
                return _normalised(left, right, found, out)
            if sweep > _SWEEPS // 3 and error > 1e-3:
                break
    return None


def _gives(found: NDArray[np.float64], table: NDArray[np.float64]) -> bool:
    """Whether every entry is right to rounding, relative to the largest in its slices; to all, if these are zero."""
    sizes = np.full(table.shape, np.abs(table).max(initial=0))
    for axes in ((1, 2), (0, 2), (0, 1)):
        largest = np.abs(table).max(axis=axes, keepdims=True)
        sizes = np.minimum(sizes, np.where(largest > 0, largest, sizes))
    return bool(np.all(np.abs(found - table) <= _ROUNDING * sizes))


def _joint(factors: list[Matrix], axis: int) -> Matrix:
    """The products of the columns of the two other factors, (d², rank)."""
    a, b = (factors[other] for other in range(3) if other != axis)
    return (a[:, None, :] * b).reshape(-1, a.shape[1])


def _polished(factors: list[Matrix], table: NDArray[np.float64], sought: int) -> list[Matrix]:
    """Three steps of Newton's method, of least length, in the first `sought` factors."""
    identity = np.eye(len(table))
    for _ in range(3):
        a, b, c = factors
        derivatives = [
            np.einsum("ix,jr,kr->ijkxr", identity, b, c),
            np.einsum("ir,jx,kr->ijkxr", a, identity, c),
            np.einsum("ir,jr,kx->ijkxr", a, b, identity),
        ]
        jacobian = np.concatenate([d.reshape(table.size, -1) for d in derivatives[:sought]], axis=1)
        error = np.einsum("ir,jr,kr->ijk", a, b, c) - table
        steps = np.linalg.lstsq(jacobian, error.ravel(), rcond=1e-9)[0].reshape(sought, *a.shape)
        factors = [np.asarray(factor - step) for factor, step in zip(factors, steps)] + factors[sought:]
    return factors


def _normalised(left: Matrix, right: Matrix, out: Matrix, given: Matrix | None) -> Factors:
    """The vectors of `left` and `out` of length 1 and positive at their start, so that equal planes look equal."""

    def sizes(factor: Matrix) -> Matrix:
        start = np.argmax(np.abs(factor) > _VANISHED, axis=0)
        return np.linalg.norm(factor, axis=0) * np.sign(factor[start, np.arange(factor.shape[1])])

    of_left, of_out = sizes(left), sizes(out) if given is None else np.ones(out.shape[1])
    return left / of_left, right * of_left * of_out, out / of_out
