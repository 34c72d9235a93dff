"""Fewer products: the multiplication of an algebra as a bilinear scheme.

A *plane* of a hypercomplex matrix is a fixed linear combination of its components: a real matrix. A scheme multiplies
hypercomplex matrices by real products of planes. It writes the table as

    table[i, j, k] = Σ_t c_t left[i, p_t] right[j, q_t] out[k, s_t],

so that C = AB takes one real product for every term t = (p, q, s, c):

    A_p = Σ_i left[i, p] A_i            the planes of the left factor,
    B_q = Σ_j right[j, q] B_j           the planes of the right factor,
    C_s = Σ_t c_t A_(p_t) B_(q_t)       over the terms with s_t = s,
    C_k = Σ_s out[k, s] C_s             the components of the product.

The same terms give Φ_L(A)ᵀφ(C), with `right` and `out` exchanged. Three schemes compete, and the one with the fewest
terms wins:

- the table itself has a term for every entry that is not zero;
- the blocks of the algebra have a term for every product of an entry of B(x) and a coordinate of y;
- a decomposition of a table of at most 4 units has p_t = q_t = s_t = t and all c_t = 1. It takes 4 terms for the Klein
  four-group, 6 for the tessarines, 7 for 2 x 2 real matrices and 8 for the quaternions, and fewer where some
  components of one side are known to be zero.

A scheme is accepted if it gives every entry of the table to rounding, relative to the largest entry with the same left
unit, the same right unit or the same unit of the product. Schemes are found for `unit_algebra`, the table without its
overall factor, and the factor goes into the coefficients c.

A search for a decomposition takes up to half a second, and another machine may end at other numbers. So the package
ships the results for the catalogue's algebras, and those of the searches of `forms`, in `schemes.npz`.
`tools/find_schemes.py` writes this file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import ROUNDING, Block, decompose, unit_algebra

Array = NDArray[np.float64]
Support = tuple[int, ...] | None  # the components that are not always zero; None for all components
Term = tuple[int, int, int, float]
PlaneProduct = tuple[int, int, float]  # two planes, and the coefficient of their product in a sum

SHIPPED = "schemes.npz"
_LARGEST_SEARCHED = 4  # units; no decomposition of a larger table is searched for
_STARTS = 8
_SWEEPS = 600
_VANISHED = 1e-9  # an entry of a factor below this is zero


@dataclass(frozen=True, eq=False)
class Scheme:
    """Planes of the left factor, the right factor and the product, (d, planes) each, and the terms that join them."""

    left: Array
    right: Array
    out: Array
    terms: tuple[Term, ...]

    def by_out(self) -> dict[int, list[PlaneProduct]]:
        """For every plane of the product, the (left, right, coefficient) that it sums."""
        groups = defaultdict(list)
        for p, q, s, c in self.terms:
            groups[s].append((p, q, c))
        return groups

    def by_right(self) -> dict[int, list[PlaneProduct]]:
        """For every plane of the right factor, the (left, out, coefficient) that it sums in Φ_L(A)ᵀφ(C)."""
        exchanged = tuple((p, s, q, c) for p, q, s, c in self.terms)
        return Scheme(self.left, self.out, self.right, exchanged).by_out()

    def times(self, factor: float) -> Scheme:
        """The scheme of the table times a factor."""
        return replace(self, terms=tuple((p, q, s, factor * c) for p, q, s, c in self.terms))


def is_large_product(*sides: int) -> bool:
    """Whether products with a matrix of this size are worth the half second that a search may take."""
    return math.prod(sides) >= 50_000


@lru_cache(maxsize=256)
def scheme(algebra: Algebra, left: Support = None, out: Support = None, *, search: bool = True) -> Scheme:
    """The scheme with the fewest terms.

    `left` names the components of the left factor that are not always zero, `out` the components of the product that
    are needed. Without `search` only the table and the blocks compete.
    """
    unit, factor = unit_algebra(algebra)
    if factor != 1:
        return scheme(unit, left, out, search=search).times(factor)
    table = _restricted(algebra, left, out)
    simplest, is_whole = _by_blocks(algebra, table), np.array_equal(decompose(algebra)[0].bases, [np.eye(algebra.dim)])
    # A block that is Φ_L itself needs no test.
    if len(simplest.terms) >= np.count_nonzero(table) or not (is_whole or _gives(simplest, table)):
        one = np.eye(algebra.dim)
        simplest = Scheme(
            one, one, one, tuple((i, j, k, float(table[i, j, k])) for i, j, k in np.argwhere(table).tolist())
        )
    if search and table.any() and algebra.dim <= _LARGEST_SEARCHED:
        found = _diagonal_scheme(recall("scheme", table, partial(_smallest_decomposition, table, len(simplest.terms))))
        if found and len(found.terms) < len(simplest.terms):
            return found
    return simplest


@lru_cache(maxsize=256)
def products_of_components(algebra: Algebra, out: Support = None) -> Scheme:
    """The scheme for HᵀT with a term H_iᵀT_k for every pair of components that the table joins, at most d² of them.

    Each pair has its own plane of the solution. For tables with few zeros and no decomposition these are the fewest
    products.
    """
    d, one = algebra.dim, np.eye(algebra.dim)
    pairs = np.argwhere(_restricted(algebra, None, out).any(axis=1)).tolist()
    right = np.stack([algebra.table[i, :, k] for i, k in pairs], axis=1) if pairs else np.zeros((d, 0))
    return Scheme(one, right, one, tuple((i, q, k, 1.0) for q, (i, k) in enumerate(pairs)))


@lru_cache(maxsize=256)
def reverse_scheme(algebra: Algebra, support: tuple[int, ...]) -> Scheme | None:
    """A scheme for Φ_L(H)ᵀφ(X) on the planes of X that `scheme(algebra, support)` takes for XW, or None.

    An auto-encoder multiplies its inputs twice, as left factor and as target. With this scheme it forms their planes
    once. The scheme is a decomposition whose factor `out` is given, which exists for tables with some symmetry.
    """
    unit, factor = unit_algebra(algebra)
    if factor != 1:
        return None if (found := reverse_scheme(unit, support)) is None else found.times(factor)
    forward, backward = scheme(algebra, support), scheme(algebra, None, support)
    if np.array_equal(forward.left, backward.out):
        return backward
    rank, table = len(forward.terms), _restricted(algebra, None, support)
    if algebra.dim > _LARGEST_SEARCHED or forward.terms != _diagonal(forward.left.shape[1]) or not backward.terms:
        return None
    sought = np.concatenate([table.reshape(algebra.dim, -1), forward.left], axis=1)
    return _diagonal_scheme(recall("reverse", sought, partial(_decomposed, table, rank, forward.left)))


def _restricted(algebra: Algebra, left: Support, out: Support) -> Array:
    """The table with zeros for the components of the left factor and of the product that are not in the supports."""
    of_left, of_out = (np.isin(np.arange(algebra.dim), range(algebra.dim) if s is None else s) for s in (left, out))
    return np.where(of_left[:, None, None] & of_out, algebra.table, 0.0)


def _gives(found: Scheme, table: Array) -> bool:
    """Whether a scheme gives every entry of the table to rounding.

    An error is relative to the smallest of three numbers: the largest entries with the same i, the same j and the same
    k. A slice of zeros does not count; where all three are zero, the error is relative to the largest entry of all.
    """
    p, q, s, c = (list(column) for column in zip(*found.terms)) if found.terms else ([], [], [], [])
    right, out = found.right[:, q], found.out[:, s].T
    given = np.stack([(row * right) @ out for row in found.left[:, p] * c])
    sizes = np.full(table.shape, np.abs(table).max(initial=0))
    for axes in ((1, 2), (0, 2), (0, 1)):
        largest = np.abs(table).max(axis=axes, keepdims=True)
        sizes = np.minimum(sizes, np.where(largest > 0, largest, sizes))
    return bool(np.all(np.abs(given - table) <= ROUNDING * sizes))


def recall(purpose: str, sought: Array, search: Callable[[], Array | None]) -> Array | None:
    """What was found for `sought`: from the shipped results if they have it, else by a search now.

    `purpose` names the search, as two searches may be given equal arrays.
    """
    found = shipped().get((purpose, sought.tobytes()))
    if found is None:
        return search()
    return found if found.size else None


@cache
def shipped() -> dict[tuple[str, bytes], Array]:
    """The shipped results, by the purpose of the search and the bytes of what was sought.

    The file has two arrays for every search: what was sought, such as a table, and what was found. If the search
    failed, the second array has no columns.
    """
    with files(__package__).joinpath(SHIPPED).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        sought = [name for name in arrays if name.endswith("sought")]
        return {(name.split()[0], arrays[name].tobytes()): arrays[name.replace("sought", "found")] for name in sought}


# ---------------------------------------------------------------------- the blocks


def _by_blocks(algebra: Algebra, table: Array) -> Scheme:
    """The terms of B(x) times the coordinates of y, without the planes of x that the restricted table has as zero."""
    blocks = decompose(algebra)
    entries = np.concatenate([block.entries for block in blocks], axis=1) * np.any(table, axis=(1, 2))[:, None]
    coordinates = np.concatenate([block.coordinates for block in blocks], axis=1)
    terms: list[Term] = []
    p = q = 0
    for block in blocks:
        terms.extend(_block_terms(block, p, q))
        p, q = p + block.entries.shape[1], q + block.coordinates.shape[1]
    used = np.any(entries, axis=0)
    out = coordinates * np.any(table, axis=(0, 1))[:, None]
    return Scheme(entries, coordinates, out, tuple(term for term in terms if used[term[0]]))


def _block_terms(block: Block, p: int, q: int) -> Iterator[Term]:
    """Entry (a, b) of B times coordinate b of copy c goes to coordinate a of copy c; a complex product has four terms.

    The planes of the entries begin at p, those of the coordinates at q.
    """
    n, copies, parts = block.size, block.copies, block.parts
    for a, b, c in np.ndindex(n, n, copies):
        entry = p + parts * (a * n + b)
        source, target = (q + parts * (row * copies + c) for row in (b, a))
        yield entry, source, target, 1.0
        if block.is_complex:
            yield entry + 1, source + 1, target, -1.0
            yield entry, source + 1, target + 1, 1.0
            yield entry + 1, source, target + 1, 1.0


# ---------------------------------------------------------------------- decompositions


def _diagonal_scheme(factors: Array | None) -> Scheme | None:
    """The scheme of the factors left, right and out of a decomposition, beside each other in (d, 3 rank)."""
    if factors is None:
        return None
    left, right, out = (np.ascontiguousarray(factor) for factor in np.split(factors, 3, axis=1))
    return Scheme(left, right, out, _diagonal(left.shape[1]))


def _diagonal(rank: int) -> tuple[Term, ...]:
    """The terms of a decomposition: term t joins the planes t."""
    return tuple((t, t, t, 1.0) for t in range(rank))


def _smallest_decomposition(table: Array, fewer_than: int) -> Array | None:
    """The decomposition with the fewest terms, if it has fewer than so many: search until one term less fails."""
    best, rank = None, min(2 * len(table), fewer_than - 1)
    while rank > 0 and (factors := _decomposed(table, rank)) is not None:
        best, rank = factors, rank - 1
    return best


def _decomposed(table: Array, rank: int, out: Array | None = None) -> Array | None:
    """Of several random starts the decomposition with the smallest entries, (d, 3 rank), or None if all starts fail.

    Small entries keep rounding errors small. If `out` is given, it is the third factor.
    """
    best, size = None, np.inf
    for seed in range(_STARTS):
        factors = _alternating_least_squares(table, rank, np.random.default_rng(seed), out)
        if factors is not None and (largest := float(np.abs(factors).max())) < size:
            best, size = factors, largest
    return best


def _alternating_least_squares(table: Array, rank: int, rng: np.random.Generator, out: Array | None) -> Array | None:
    """A decomposition from one random start, or None.

    The table is linear in each factor: with T_1 the table as a (d, d²) matrix whose rows are its first axis,

        T_1 = left Jᵀ,    J[(j, k), t] = right[j, t] out[k, t],

    and likewise for the other two. A sweep solves these three problems in turn, for F = left, right and out:

        F <- argmin |T - F Jᵀ|² + w |F - (F before)|²  =  (T J + w F)(JᵀJ + w I)⁻¹.

    The weight w keeps a factor near its last value, as the factors would else grow without bounds on their way. It
    fades away. When the error is small, Newton's method makes it as small as rounding allows.
    """
    factors = [rng.standard_normal((len(table), rank)) for _ in range(3)]
    if out is not None:
        factors[2] = out
    sought = 3 if out is None else 2
    unfolded = [np.moveaxis(table, axis, 0).reshape(len(table), -1) for axis in range(3)]
    weight = 0.1
    for sweep in range(1, _SWEEPS + 1):
        for axis in range(sought):
            J, T = _joint(factors, axis), unfolded[axis]
            normal = J.T @ J + weight * np.eye(rank)
            factors[axis] = np.asarray(np.linalg.solve(normal, (T @ J + weight * factors[axis]).T).T, dtype=np.float64)
        weight = max(0.93 * weight, 1e-13)
        if sweep % 10 == 0:
            error = np.abs(factors[0] @ _joint(factors, 0).T - unfolded[0]).max() / np.abs(table).max()
            if error < 1e-9:
                return _accepted(_polished(factors, table, sought), table, out)
            if sweep > _SWEEPS // 3 and error > 1e-3:
                return None  # Starts that are this far off after 200 sweeps do not converge.
    return None


def _joint(factors: Sequence[Array], axis: int) -> Array:
    """J of the two factors other than `axis`: the products of their columns, (d², rank)."""
    a, b = (factors[other] for other in range(3) if other != axis)
    return (a[:, None, :] * b).reshape(-1, a.shape[1])


def _polished(factors: list[Array], table: Array, sought: int) -> list[Array]:
    """Three steps of Newton's method in the first `sought` factors.

    The error e[i, j, k] = Σ_t a[i, t] b[j, t] c[k, t] - table[i, j, k] has the derivatives

        ∂e/∂a[x, t] = δ_ix b[j, t] c[k, t],   ∂e/∂b[x, t] = a[i, t] δ_jx c[k, t],   ∂e/∂c[x, t] = a[i, t] b[j, t] δ_kx.

    The equations have many solutions, and each step takes the one nearest to the factors.
    """
    one = np.eye(len(table))
    for _ in range(3):
        a, b, c = factors
        derivatives = [
            np.einsum("ix,jr,kr->ijkxr", one, b, c),
            np.einsum("ir,jx,kr->ijkxr", a, one, c),
            np.einsum("ir,jr,kx->ijkxr", a, b, one),
        ]
        jacobian = np.concatenate([d.reshape(table.size, -1) for d in derivatives[:sought]], axis=1)
        error = np.einsum("ir,jr,kr->ijk", a, b, c) - table
        steps = np.linalg.lstsq(jacobian, error.ravel(), rcond=1e-9)[0].reshape(sought, *a.shape)
        factors = [np.asarray(factor - step) for factor, step in zip(factors, steps)] + factors[sought:]
    return factors


def _accepted(factors: list[Array], table: Array, given_out: Array | None) -> Array | None:
    """The factors, (d, 3 rank), with planes in a normal form; None if they do not give the table or have a zero plane.

    The columns of `left` and `out` get length 1 and a positive first entry, so that equal planes look equal. `right`
    takes the factors that this needs. An `out` that was given stays as it is.
    """
    left, right, out = factors
    if not _gives(Scheme(left, right, out, _diagonal(left.shape[1])), table):
        return None  # These are the factors of a table nearby, which has a smaller rank.
    if min(np.abs(factor).max(axis=0).min() for factor in (left, out)) < _VANISHED:
        return None  # A plane is zero, so fewer terms would do.

    def signed_lengths(factor: Array) -> Array:
        start = np.argmax(np.abs(factor) > _VANISHED, axis=0)
        return np.linalg.norm(factor, axis=0) * np.sign(factor[start, np.arange(factor.shape[1])])

    of_left, of_out = signed_lengths(left), signed_lengths(out) if given_out is None else np.ones(out.shape[1])
    return np.concatenate([left / of_left, right * of_left * of_out, out / of_out], axis=1)
