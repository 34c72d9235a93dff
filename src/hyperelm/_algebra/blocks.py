"""The orthogonal block structure of an algebra, found from its table alone.

Left multiplication by a number x is a real d x d matrix Φ_L(x). The matrices of the d units, together with their
transposes, split R^d into an orthogonal sum of *irreducible* subspaces: every one of these matrices maps each of the
subspaces into itself, and no smaller subspace has that property. In an orthonormal basis E (d x n) of such a subspace
Φ_L(x) becomes a smaller matrix B(x). Two subspaces on which the matrices act alike are *copies* of one block, and get
bases in which B(x) is the same:

    Eᵀφ(xy) = B(x) Eᵀφ(y)        for the basis E of every copy,
    φ(y) = Σ Re(Ē c)             over blocks and copies, with c = Eᵀφ(y).

The *commutant*, all matrices that commute with the Φ_L of the units and their transposes, shows this structure:

1. The eigenspaces of a random symmetric matrix of the commutant are the irreducible subspaces.
2. A random matrix S of the commutant maps a subspace onto its copies. The piece of S between two copies is an
   orthogonal matrix times a factor, and aligns their bases.
3. If the commutant has skew-symmetric matrices on a subspace, one of them gives J with J² = -1. Then the subspace has
   a complex basis E = U + iJU, in which B(x) is complex and has half the size.

The Klein four-group has 4 real blocks of size 1, the 2 x 2 real matrices one real block of size 2 with 2 copies, the
tessarines 2 complex blocks of size 1 and the quaternions one complex block of size 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._algebra.algebra import Algebra

Array = NDArray[np.float64]

ROUNDING = 64 * float(np.finfo(float).eps)  # the relative error that a scheme, a form or a block may have
_LARGEST_SPACE = 32  # rows of a matrix; `_commuting` solves an eigenvalue problem of 32² rows for it


@dataclass(frozen=True, eq=False)
class Block:
    """One irreducible block: the matrices of left multiplication in it, and the subspaces of its copies.

    matrices : (d, n, n), real or complex: B of every unit
    bases : (copies, d, n), real or complex as `matrices`: E of every copy
    """

    matrices: NDArray[Any]
    bases: NDArray[Any]

    @property
    def size(self) -> int:
        """n: the number of rows of B, complex rows in a complex block."""
        return self.matrices.shape[1]

    @property
    def copies(self) -> int:
        return self.bases.shape[0]

    @property
    def is_complex(self) -> bool:
        return np.iscomplexobj(self.matrices)

    @property
    def parts(self) -> int:
        """How many real numbers an entry of B has: 2 in a complex block, else 1."""
        return 2 if self.is_complex else 1

    @property
    def entries(self) -> Array:
        """(d, n n parts): the entries of B as functions of the components, by row, column and part."""
        return real_columns(self.matrices)

    @property
    def coordinates(self) -> Array:
        """(d, n copies parts): Eᵀφ as functions of the components, by row, copy and part."""
        return real_columns(self.bases.transpose(1, 2, 0))


def real_columns(array: NDArray[Any]) -> Array:
    """(d, ...) -> (d, everything else): a complex number becomes two columns, its real and its imaginary part."""
    parts = np.stack([array.real, array.imag], axis=-1) if np.iscomplexobj(array) else array
    return parts.reshape(len(array), -1)


@lru_cache(maxsize=256)
def decompose(algebra: Algebra) -> tuple[Block, ...]:
    """The blocks of `algebra`, the same at every call.

    One block, the matrices Φ_L themselves, is always right. It is the result in two cases: the table is so close to one
    with more blocks that rounding cannot tell the two apart; or the commutant would take too long to find. That may
    happen beyond 32 components, if many products are zero.
    """
    left = np.ascontiguousarray(algebra.table.transpose(0, 2, 1))
    # Units of any length span the same subspaces. So the search takes units whose matrices have like entries.
    lengths = powers_of_two(np.abs(left).max(axis=(1, 2)))[:, None, None]
    commutant = _commutant(left / lengths)
    if commutant is not None:
        rng = np.random.default_rng(0)

        def drawn() -> Array:
            """The projection of a random matrix onto the commutant, which does not depend on the commutant's basis."""
            matrix = rng.standard_normal(commutant.shape[1:])
            return np.asarray(np.tensordot(np.tensordot(commutant, matrix, axes=2), commutant, axes=1))

        def symmetric() -> Array:
            element = drawn()
            return element + element.T

        spaces = [tidy(space) for space in _eigenspaces(symmetric)]
        blocks = tuple(_block(copies, commutant, left, lengths) for copies in _linked(spaces, drawn()))
        if _reproduces(blocks, left):
            return blocks
    return (Block(matrices=left, bases=np.eye(algebra.dim)[None]),)


@lru_cache(maxsize=256)
def unit_algebra(algebra: Algebra) -> tuple[Algebra, float]:
    """The algebra whose table has a largest entry from 1 to 2, and the power of two that leads back from its table."""
    factor = float(powers_of_two(np.abs(algebra.table).max()))
    return (algebra, 1.0) if factor == 1 else (Algebra(algebra.table / factor, units=algebra.units), factor)


def powers_of_two(sizes: ArrayLike) -> Array:
    """The largest powers of two that do not exceed the sizes; 1 for zero. Dividing by them is exact."""
    return np.where(np.asarray(sizes) > 0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


# ---------------------------------------------------------------------- the commutant


def _commutant(left: Array) -> Array | None:
    """An orthonormal basis (r, d, d) of the matrices S with SA = AS for every A in `left` and every transpose.

    The equations SA = AS in all d² entries of S are too many for a large d. Three steps leave fewer unknowns:

    1. Make a random symmetric matrix G from the A by products, sums and transposes. S commutes with G, so S maps every
       eigenspace of G into itself.
    2. Make a second one. Its piece between two eigenspaces is, in general, zero or an orthogonal matrix times a
       factor. In the second case S on one eigenspace decides S on the other: the two are linked.
    3. Solve SA = AS for S on the first eigenspace of each group of linked ones. There S is m x m, and commutes with
       the m x m pieces of all A between the eigenspaces of the group.

    For a random table m is 1; for n x n real matrices, which have n copies of one block, it is n. The result is None
    if m is larger than `_LARGEST_SPACE`.
    """
    rng = np.random.default_rng(1)
    spaces = _eigenspaces(lambda: _generated(left, rng))
    parts = []
    for group in _linked(spaces, _generated(left, rng)):
        m, count = group[0].shape[1], len(group)
        if m > _LARGEST_SPACE:
            return None
        basis = np.concatenate(group, axis=1)
        pieces = (basis.T @ left @ basis).reshape(len(left), count, m, count, m).swapaxes(2, 3).reshape(-1, m, m)
        S = _commuting(pieces)
        parts.append(sum(space @ S @ space.T for space in group) / np.sqrt(count))
    return np.concatenate(parts)


def _generated(left: Array, rng: np.random.Generator) -> Array:
    """A random symmetric matrix made from the matrices and their transposes by sums and by products of up to four."""
    a, b, c, e = map(_unit, np.tensordot(rng.standard_normal((4, len(left))), left, axes=1))
    element = _unit(a @ b.T + c.T @ e + (a + c) / np.sqrt(len(a)))
    return np.asarray(element + element.T + np.sqrt(len(a)) * element @ element.T)


def _unit(matrix: Array) -> Array:
    """The matrix divided by its norm, unless that is zero."""
    return np.asarray(matrix / (np.linalg.norm(matrix) or 1.0))


def _linked(spaces: list[Array], mixer: Array) -> list[list[Array]]:
    """Groups of spaces that `mixer` links: it maps them onto each other. Their bases are aligned.

    Let U be a basis of a space that is in the group, and V one of a space that joins it. The link UᵀMV, with M the
    mixer, is a factor times an orthogonal matrix Q if all its singular values are equal. Then the basis VQᵀ of the new
    space corresponds to U, column by column. If they are not equal for some link, the group becomes one space.
    """
    groups, rest = [], spaces
    while rest:
        first, *rest = rest
        group, orthogonal = [first], True
        for known in group:  # The group grows during the loop.
            unlinked = []
            for space in rest:
                link = known.T @ mixer @ space
                if np.linalg.norm(link) <= 1e-6 * np.linalg.norm(mixer):
                    unlinked.append(space)
                    continue
                u, values, vt = np.linalg.svd(link)
                orthogonal = orthogonal and link.shape[0] == link.shape[1] and values[-1] > (1 - 1e-6) * values[0]
                group.append(space @ (u @ vt).T if orthogonal else space)
            rest = unlinked
        groups.append(group if orthogonal else [np.concatenate(group, axis=1)])
    return groups


def _commuting(matrices: Array) -> Array:
    """An orthonormal basis (r, m, m) of all S that commute with every matrix A, (m, m), and its transpose.

    vec(SA - AS) = K vec(S) with K = I⊗Aᵀ - A⊗I. So S commutes with A if KᵀK vec(S) = 0. The sum of KᵀK over all A and
    all Aᵀ is I⊗Q + Q⊗I - 2 (M + Mᵀ) with Q = Σ AAᵀ + AᵀA and M = Σ A⊗A. Its eigenvectors with eigenvalue zero are the
    basis.
    """
    m = matrices.shape[1]
    flat = matrices.reshape(len(matrices), -1)
    products = (flat.T @ flat).reshape(m, m, m, m)  # [p, q, r, s]: Σ A_pq A_rs
    Q = np.einsum("pqrq->pr", products) + np.einsum("qpqr->pr", products)
    M = products.swapaxes(1, 2).reshape(m * m, m * m)
    values, vectors = np.linalg.eigh(np.kron(np.eye(m), Q) + np.kron(Q, np.eye(m)) - 2 * (M + M.T))
    kernel = vectors[:, values <= 1e-9 * max(values[-1], 1.0)]
    return np.ascontiguousarray(kernel.T).reshape(-1, m, m)


# ---------------------------------------------------------------------- subspaces and their copies


def _eigenspaces(draw: Callable[[], Array]) -> list[Array]:
    """The eigenspaces of a random symmetric matrix: of five draws, the most eigenspaces with the widest gaps."""
    best: tuple[int, float, list[Array]] = (0, 0.0, [])
    for _ in range(5):
        values, vectors = np.linalg.eigh(draw())
        gaps = np.diff(values) / (np.abs(values).max() or 1.0)
        cuts = np.flatnonzero(gaps > 1e-7)
        candidate = (len(cuts) + 1, float(gaps[cuts].min(initial=1.0)), np.split(vectors, cuts + 1, axis=1))
        best = max(best, candidate, key=lambda found: found[:2])
    return best[2]


def tidy(space: Array) -> Array:
    """An orthonormal basis of a space that depends only on the space, not on the basis that is given.

    Projections of the unit vectors are made orthogonal one after another, the longest remaining one first. The basis
    of the whole space is the unit vectors.
    """
    dim, size = space.shape
    if dim == size:
        return np.eye(dim)
    rest = space @ space.T
    columns: list[Array] = []
    for _ in range(size):
        longest, length = _longest_column(rest)
        columns.append(longest / length)
        rest = rest - np.outer(columns[-1], columns[-1] @ rest)
    return np.stack(columns, axis=1) if columns else space


def _longest_column(matrix: Array) -> tuple[Array, float]:
    """The first of the longest columns and its length. Columns that differ by rounding count as equally long."""
    lengths = np.linalg.norm(matrix, axis=0)
    first = int(np.flatnonzero(lengths > 0.999 * lengths.max())[0])
    return matrix[:, first], lengths[first]


# ---------------------------------------------------------------------- a block


def _block(copies: list[Array], commutant: Array, left: Array, lengths: Array) -> Block:
    """The block of some copies, whose bases are aligned.

    With U the basis of the first copy, look for skew-symmetric matrices UᵀSU, S in the commutant. If there are any,
    take an orthogonal J with J² = -1 from them and E = U + iJU, else E = U. In both cases EᵀU = 1, so that
    B = EᵀΦ_L U.
    """
    first = copies[0]
    inside = first.T @ commutant @ first
    differences = (inside - inside.swapaxes(1, 2)).reshape(len(inside), -1)
    _, values, rows = np.linalg.svd(differences, full_matrices=False)
    skew = rows[values > 1e-6].reshape(-1, *inside.shape[1:])  # an orthonormal basis of what they span
    E: NDArray[Any] = np.eye(first.shape[1])
    if len(skew):
        # J is the projection onto this span of a matrix with a single entry, in its first column. That does not depend
        # on the basis of the span, and for the usual tables it gives a J with few entries.
        coefficients, _ = _longest_column(skew[:, :, 0])
        u, _, vt = np.linalg.svd(np.tensordot(coefficients, skew, axes=1))  # J times a factor
        E = _complex_basis(u @ vt)
    matrices = E.T @ (first.T @ (left / lengths) @ first) @ E.real
    return Block(matrices=lengths * _snapped(matrices), bases=_snapped(np.stack([space @ E for space in copies])))


def _complex_basis(J: Array) -> NDArray[np.complex128]:
    """E = U + iJU, (n, n/2), where the columns of U and JU together are orthonormal."""
    rest = np.eye(len(J))
    columns = []
    for _ in range(len(J) // 2):
        u, length = _longest_column(rest)
        u = u / length
        columns.append(u + 1j * (J @ u))
        rest = rest - np.outer(u, u @ rest) - np.outer(J @ u, J @ u @ rest)
    return np.stack(columns, axis=1)


def _snapped(array: NDArray[Any]) -> NDArray[Any]:
    """`array`, changed in place: parts that are whole numbers up to rounding become whole numbers."""
    for part in (array.real, array.imag) if np.iscomplexobj(array) else (array,):
        near = np.abs(part - np.round(part)) < ROUNDING / 4
        part[near] = np.round(part[near])
    return array


def _reproduces(blocks: tuple[Block, ...], left: Array) -> bool:
    """Whether the bases are orthonormal and Φ_L = Σ Re(Ē B Eᵀ) is the matrix of every unit to rounding."""
    basis = np.concatenate([block.coordinates for block in blocks], axis=1)
    if basis.shape != left.shape[1:] or not np.allclose(basis.T @ basis, np.eye(len(basis)), rtol=0, atol=1e-12):
        return False
    rebuilt = sum((E.conj() @ block.matrices @ E.T).real for block in blocks for E in block.bases)
    # Of hundreds of tables in a random orthogonal basis, two had a larger error.
    allowed = len(left) * ROUNDING * np.abs(left).max(axis=(1, 2), keepdims=True)
    return bool(np.all(np.abs(rebuilt - left) <= allowed))
