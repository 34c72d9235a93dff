"""The orthogonal block structure of an algebra, found from its table alone.

The matrices Φ_L(u) of left multiplication by the units and their transposes generate a *-algebra of real d x d
matrices, so R^d is an orthogonal sum of irreducible subspaces that all of them leave invariant. In an orthonormal
basis of such a subspace Φ_L(x) becomes a smaller matrix B(x), and isometric subspaces on which they act alike,
brought into the same basis, are *copies* of one block:

    Eᵀφ(xy) = B(x) Eᵀφ(y)        for every copy's basis E (d x n),
    φ(y) = Σ Re(Ē c)             over blocks and copies, with c = Eᵀφ(y).

Matrices that commute with all of them (the commutant) show the structure: the eigenspaces of a random symmetric
one are the irreducible subspaces, an off-diagonal piece of a random one aligns two copies, and a skew one is a
complex structure J on a subspace, in which case B(x) and E = U + iJU are complex with half the size. For an
algebra of dimension d: Klein four-group -> 4 real blocks of size 1; 2 x 2 real matrices -> one real block of size
2 with 2 copies; tessarines -> 2 complex blocks of size 1; quaternions -> one complex block of size 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm.algebra import Algebra

Matrix = NDArray[np.float64]
_TOLERANCE = 1e-9
_TINY = float(np.finfo(float).tiny)
_LARGEST_SPACE = 32  # rows of a matrix for which all that commutes with it is found by an eigenvalue decomposition


@dataclass(frozen=True, eq=False)
class Block:
    """One irreducible block: what left multiplications look like in it, and where its copies lie.

    matrices : (d, n, n), real or complex: B of every unit
    bases : (copies, d, n), of the same kind: E of every copy
    commutant : 1, 2 or 4: the dimension of the matrices that commute with B (R, C or H)
    """

    matrices: NDArray[Any]
    bases: NDArray[Any]
    commutant: int

    @property
    def size(self) -> int:
        """n: rows of the block, counted in its own field."""
        return self.matrices.shape[1]

    @property
    def copies(self) -> int:
        return self.bases.shape[0]

    @property
    def is_complex(self) -> bool:
        return np.iscomplexobj(self.matrices)

    @property
    def parts(self) -> int:
        """Real numbers in one entry: 2 for a complex block, else 1."""
        return 2 if self.is_complex else 1

    @property
    def entries(self) -> Matrix:
        """(d, n n [2]): the entries of B as functions of the components, by row, column, real and imaginary part."""
        return real_columns(self.matrices)

    @property
    def coordinates(self) -> Matrix:
        """(d, n copies [2]): Eᵀφ as functions of the components, by row, copy, real and imaginary part."""
        return real_columns(self.bases.transpose(1, 2, 0))


def real_columns(array: NDArray[Any]) -> Matrix:
    """(d, ...) -> (d, all the rest): the real and the imaginary part of a complex number beside each other."""
    parts = np.stack([array.real, array.imag], axis=-1) if np.iscomplexobj(array) else array
    return parts.reshape(len(array), -1)


@lru_cache(maxsize=256)
def decompose(algebra: Algebra) -> tuple[Block, ...]:
    """The blocks of `algebra`, the same at every call.

    One block, which is always right, stands for a table so close to a more symmetric one that rounding cannot tell
    them apart, and for a table whose commutant would take too long to find: one of more than 32 components that neither
    acts irreducibly nor is the sum of a few simple algebras, such as one with many products that are zero.
    """
    left = np.ascontiguousarray(algebra.table.transpose(0, 2, 1))
    sizes = powers_of_two(np.abs(left).max(axis=(1, 2)))[:, None, None]
    commutant = _commutant(left / sizes)
    if commutant is not None:
        rng = np.random.default_rng(0)
        spaces = _irreducible_spaces(commutant, rng)
        mixer = _random_element(commutant, rng)
        blocks = tuple(_block(copies, mixer, commutant, left, sizes) for copies in _group(spaces, mixer))
        if _reproduces(blocks, left):
            return blocks
    return (Block(matrices=left, bases=np.eye(algebra.dim)[None], commutant=1),)


@lru_cache(maxsize=256)
def unit_algebra(algebra: Algebra) -> tuple[Algebra, float]:
    """The algebra whose table has a largest entry from 1 to 2, and the power of two that its table is to be times."""
    factor = float(powers_of_two(np.abs(algebra.table).max()))
    return (algebra, 1.0) if factor == 1 else (Algebra(algebra.table / factor, units=algebra.units), factor)


def orthogonal_basis(blocks: tuple[Block, ...]) -> Matrix:
    """The (d, d) orthogonal change of basis: columns by block, copy, real then imaginary part."""
    return np.concatenate(
        [
            part
            for block in blocks
            for basis in block.bases
            for part in ((basis.real, basis.imag) if block.is_complex else (basis,))
        ],
        axis=1,
    )


def powers_of_two(sizes: ArrayLike) -> NDArray[np.float64]:
    """The largest powers of two that do not exceed the sizes; 1 for zero. Dividing by them is exact."""
    return np.where(np.asarray(sizes) > 0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


# ---------------------------------------------------------------------- the commutant


def _commutant(left: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """An orthonormal basis (r, d, d) of the matrices S with SA = AS for every A in `left` and every transpose.

    S leaves the eigenspaces of every symmetric matrix alone that is made of these by products and sums. Where another
    such matrix links two eigenspaces, the link is a multiple of an orthogonal matrix, in general, and so S on one of
    them decides S on the other. What is left to find is S on one eigenspace of each group that is linked: a matrix of
    m rows, that commutes with all pieces of the A between the eigenspaces. For a random table m is 1, and for M_n of
    the real numbers, which acts on n copies of R^n, it is n. None stands for an m beyond the budget.
    """
    rng = np.random.default_rng(1)
    spaces = _separated(lambda: _generated(left, rng))
    parts = []
    for group in _linked(spaces, _generated(left, rng)):
        m, copies = group[0].shape[1], len(group)
        if m > _LARGEST_SPACE:
            return None
        basis = np.concatenate(group, axis=1)
        pieces = (basis.T @ left @ basis).reshape(len(left), copies, m, copies, m).swapaxes(2, 3).reshape(-1, m, m)
        within = _kernel(pieces)
        parts.append(sum(space @ within @ space.T for space in group) / np.sqrt(copies))
    return np.concatenate(parts)


def _generated(left: NDArray[np.float64], rng: np.random.Generator) -> Matrix:
    """A random symmetric matrix of the *-algebra that the matrices generate, of degree four in them."""
    factors = np.tensordot(rng.standard_normal((4, len(left))), left, axes=1)
    a, b, c, e = (factor / max(np.linalg.norm(factor), _TINY) for factor in factors)
    element = a @ b.T + c.T @ e + (a + c) / np.sqrt(len(a))
    element /= max(np.linalg.norm(element), _TINY)
    return np.asarray(element + element.T + np.sqrt(len(a)) * element @ element.T)


def _linked(spaces: list[Matrix], mixer: Matrix) -> list[list[Matrix]]:
    """Spaces in groups that a symmetric matrix links, each in the basis in which what commutes is as on the first.

    A group with a link that is not orthogonal, up to a factor, becomes one space.
    """
    groups, rest = [], list(spaces)
    while rest:
        group, orthogonal = [rest.pop(0)], True
        for known in group:  # which grows meanwhile
            links = [known.T @ mixer @ space for space in rest]
            is_linked = [np.linalg.norm(link) > 1e-6 * np.linalg.norm(mixer) for link in links]
            for space, link in (pair for pair, found in zip(zip(rest, links), is_linked) if found):
                orthogonal = orthogonal and _is_orthogonal(link)
                group.append(space @ _polar(link).T if orthogonal else space)
            rest = [space for space, found in zip(rest, is_linked) if not found]
        groups.append(group if orthogonal else [np.concatenate(group, axis=1)])
    return groups


def _is_orthogonal(link: Matrix) -> bool:
    """Up to a factor."""
    values = np.linalg.svd(link, compute_uv=False)
    return link.shape[0] == link.shape[1] and bool(values[-1] > (1 - 1e-6) * values[0])


def _kernel(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis (r, m, m) of all that commutes with `matrices` and their transposes.

    vec(SA - AS) = K vec(S) with K = I⊗Aᵀ - A⊗I, and KᵀK, summed over the matrices, has the commutant as kernel.
    """
    m = matrices.shape[1]
    flat = matrices.reshape(len(matrices), -1)
    products = (flat.T @ flat).reshape(m, m, m, m)  # Σ A_pq A_rs
    squares = np.einsum("pqrq->pr", products) + np.einsum("qpqr->pr", products)
    mixed = products.swapaxes(1, 2).reshape(m * m, m * m)
    normal = np.kron(np.eye(m), squares) + np.kron(squares, np.eye(m)) - 2 * (mixed + mixed.T)
    values, vectors = np.linalg.eigh(normal)
    kernel = vectors[:, values <= _TOLERANCE * max(values[-1], 1.0)]
    return np.ascontiguousarray(kernel.T).reshape(-1, m, m)


# ---------------------------------------------------------------------- the blocks


def _random_element(commutant: NDArray[np.float64], rng: np.random.Generator) -> Matrix:
    """The projection of a random matrix onto the commutant, which does not depend on the basis of the commutant."""
    matrix = rng.standard_normal(commutant.shape[1:])
    return np.asarray(np.tensordot(np.tensordot(commutant, matrix, axes=2), commutant, axes=1))


def _irreducible_spaces(commutant: NDArray[np.float64], rng: np.random.Generator) -> list[Matrix]:
    """Orthonormal bases of the irreducible subspaces: eigenspaces of a random symmetric commuting matrix."""

    def draw() -> Matrix:
        element = _random_element(commutant, rng)
        return element + element.T

    return [tidy(space) for space in _separated(draw)]


def _separated(draw: Callable[[], Matrix]) -> list[Matrix]:
    """The eigenspaces of a random symmetric matrix: of several draws the one that separates most, and best."""
    best: tuple[int, float, list[Matrix]] = (0, 0.0, [])
    for _ in range(5):
        values, vectors = np.linalg.eigh(draw())
        gaps = np.diff(values) / max(np.abs(values).max(), _TINY)
        cuts = np.flatnonzero(gaps > 1e-7)
        candidate = (len(cuts) + 1, float(gaps[cuts].min(initial=1.0)), np.split(vectors, cuts + 1, axis=1))
        best = max(best, candidate, key=lambda found: found[:2])
    return best[2]


def tidy(space: Matrix) -> Matrix:
    """A basis of the same space that depends on the space alone; the unit vectors for the whole space."""
    dim, size = space.shape
    if dim == size:
        return np.eye(dim)
    rest = space @ space.T
    columns: list[Matrix] = []
    for _ in range(size):
        lengths = np.linalg.norm(rest, axis=0)
        first = np.flatnonzero(lengths > 0.999 * lengths.max())[0]
        columns.append(rest[:, first] / lengths[first])
        rest = rest - np.outer(columns[-1], columns[-1] @ rest)
    return np.stack(columns, axis=1) if columns else space


def _group(spaces: list[Matrix], mixer: Matrix) -> list[list[Matrix]]:
    """Subspaces on which the algebra acts alike: those that a commuting matrix maps onto each other."""
    groups: list[list[Matrix]] = []
    for space in spaces:
        for group in groups:
            if group[0].shape == space.shape and np.linalg.norm(group[0].T @ mixer @ space) > 1e-6:
                group.append(space)
                break
        else:
            groups.append([space])
    return groups


def _block(
    spaces: list[Matrix],
    mixer: Matrix,
    commutant: NDArray[np.float64],
    left: NDArray[np.float64],
    sizes: NDArray[np.float64],
) -> Block:
    first = spaces[0]
    aligned = [first] + [space @ _polar(first.T @ mixer @ space).T for space in spaces[1:]]
    inside = first.T @ commutant @ first
    skew = _orthonormal(inside - inside.swapaxes(1, 2))
    local = _complex_basis(_complex_structure(skew)) if len(skew) else np.eye(first.shape[1])
    # E = U + iJU has EᵀU = 1, so B = EᵀΦ_L U.
    matrices = local.T @ (first.T @ (left / sizes) @ first) @ local.real
    bases = np.stack([space @ local for space in aligned])
    return Block(matrices=sizes * _snapped(matrices), bases=_snapped(bases), commutant=len(skew) + 1)


def _snapped(array: NDArray[Any]) -> NDArray[Any]:
    """`array` with parts that are whole numbers but for rounding made so, in place."""
    for part in (array.real, array.imag) if np.iscomplexobj(array) else (array,):
        near = np.abs(part - np.round(part)) < 16 * np.finfo(float).eps
        part[near] = np.round(part[near])
    return array


def _polar(matrix: Matrix) -> Matrix:
    """The orthogonal factor; by Schur's lemma `matrix` is a multiple of it."""
    u, _, vt = np.linalg.svd(matrix)
    return np.asarray(u @ vt)


def _orthonormal(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis of the span of `matrices`, (r, n, n) -> (rank, n, n)."""
    _, values, rows = np.linalg.svd(matrices.reshape(len(matrices), -1), full_matrices=False)
    return rows[values > 1e-6].reshape(-1, *matrices.shape[1:])


def _complex_structure(skew: NDArray[np.float64]) -> Matrix:
    """An orthogonal J with J² = -1 from the skew part of a commutant (C or H).

    The projection of a single entry of the first column onto that space does not depend on its basis, and gives
    J with few entries for the usual tables.
    """
    reach = np.linalg.norm(skew[:, :, 0], axis=0)
    row = int(np.flatnonzero(reach > 0.999 * reach.max())[0])
    return _polar(np.tensordot(skew[:, row, 0], skew, axes=1))


def _complex_basis(structure: Matrix) -> NDArray[np.complex128]:
    """E = U + iJU, (n, n/2), with the columns of U and JU together orthonormal."""
    rest = np.eye(len(structure))
    columns = []
    for _ in range(len(structure) // 2):
        lengths = np.linalg.norm(rest, axis=0)
        u = rest[:, np.flatnonzero(lengths > 0.999 * lengths.max())[0]]
        u = u / np.linalg.norm(u)
        ju = structure @ u
        columns.append(u + 1j * ju)
        rest = rest - np.outer(u, u @ rest) - np.outer(ju, ju @ rest)
    return np.stack(columns, axis=1)


def _reproduces(blocks: tuple[Block, ...], left: NDArray[np.float64]) -> bool:
    """Whether the bases are orthonormal and the blocks give back the matrix of every unit to rounding."""
    basis = orthogonal_basis(blocks)
    if basis.shape != left.shape[1:] or not np.allclose(basis.T @ basis, np.eye(len(basis)), rtol=0, atol=1e-12):
        return False
    rebuilt = sum((E.conj() @ block.matrices @ E.T).real for block in blocks for E in block.bases)
    rounding = 64 * len(left) * np.finfo(float).eps  # of hundreds of rotated tables two had more
    return bool(np.all(np.abs(rebuilt - left) <= rounding * np.abs(left).max(axis=(1, 2), keepdims=True)))
