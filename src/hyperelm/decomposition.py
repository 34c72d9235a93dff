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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm.algebra import Algebra

Matrix = NDArray[np.float64]
_TOLERANCE = 1e-9


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
        return self._real(self.matrices)

    @property
    def coordinates(self) -> Matrix:
        """(d, n copies [2]): Eᵀφ as functions of the components, by row, copy, real and imaginary part."""
        return self._real(self.bases.transpose(1, 2, 0))

    def _real(self, array: NDArray[Any]) -> Matrix:
        parts = np.stack([array.real, array.imag], axis=-1) if self.is_complex else array
        return parts.reshape(len(array), -1)


@lru_cache(maxsize=256)
def decompose(algebra: Algebra) -> tuple[Block, ...]:
    """The blocks of `algebra`, the same at every call."""
    left = _left_matrices(algebra)
    commutant = _commutant(left / max(np.abs(left).max(), np.finfo(float).tiny))
    rng = np.random.default_rng(0)
    spaces = _irreducible_spaces(commutant, rng)
    mixer = _random_element(commutant, rng)
    blocks = tuple(_block(copies, mixer, commutant, left) for copies in _group(spaces, mixer))
    if _reproduces(blocks, left):
        return blocks
    # A table so close to a more symmetric one that rounding cannot tell: one block is always right.
    return (Block(matrices=left, bases=np.eye(algebra.dim)[None], commutant=1),)


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


def _left_matrices(algebra: Algebra) -> NDArray[np.float64]:
    return np.ascontiguousarray(algebra.table.transpose(0, 2, 1))


def _commutant(left: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis (r, d, d) of the matrices S with SA = AS for every A in `left` and every transpose.

    vec(SA - AS) = K vec(S) with K = I⊗Aᵀ - A⊗I, and KᵀK, summed over the matrices, has the commutant as kernel.
    """
    dim = left.shape[1]
    squares = np.einsum("ipq,irq->pr", left, left) + np.einsum("iqp,iqr->pr", left, left)
    flat = left.reshape(len(left), -1)
    mixed = (flat.T @ flat).reshape(dim, dim, dim, dim).swapaxes(1, 2).reshape(dim * dim, dim * dim)
    normal = np.kron(np.eye(dim), squares) + np.kron(squares, np.eye(dim)) - 2 * (mixed + mixed.T)
    values, vectors = np.linalg.eigh(normal)
    kernel = vectors[:, values <= _TOLERANCE * max(values[-1], 1.0)]
    return np.ascontiguousarray(kernel.T).reshape(-1, dim, dim)


def _random_element(commutant: NDArray[np.float64], rng: np.random.Generator) -> Matrix:
    """The projection of a random matrix onto the commutant, which does not depend on the basis of the commutant."""
    matrix = rng.standard_normal(commutant.shape[1:])
    return np.asarray(np.tensordot(np.tensordot(commutant, matrix, axes=2), commutant, axes=1))


def _irreducible_spaces(commutant: NDArray[np.float64], rng: np.random.Generator) -> list[Matrix]:
    """Orthonormal bases of the irreducible subspaces: eigenspaces of a random symmetric commuting matrix.

    Of several draws the one that separates most, and best, is taken.
    """
    best: tuple[int, float, list[Matrix]] = (0, 0.0, [])
    for _ in range(5):
        element = _random_element(commutant, rng)
        values, vectors = np.linalg.eigh(element + element.T)
        gaps = np.diff(values) / np.abs(values).max()
        cuts = np.flatnonzero(gaps > 1e-7)
        candidate = (len(cuts) + 1, float(gaps[cuts].min(initial=1.0)), np.split(vectors, cuts + 1, axis=1))
        best = max(best, candidate, key=lambda draw: draw[:2])
    return [tidy(space) for space in best[2]]


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


def _block(spaces: list[Matrix], mixer: Matrix, commutant: NDArray[np.float64], left: NDArray[np.float64]) -> Block:
    first = spaces[0]
    aligned = [first] + [space @ _polar(first.T @ mixer @ space).T for space in spaces[1:]]
    inside = first.T @ commutant @ first
    skew = _orthonormal(inside - inside.swapaxes(1, 2))
    local = _complex_basis(_complex_structure(skew)) if len(skew) else np.eye(first.shape[1])
    # E = U + iJU has EᵀU = 1, so B = EᵀΦ_L U.
    matrices = local.T @ (first.T @ left @ first) @ local.real
    bases = np.stack([space @ local for space in aligned])
    return Block(matrices=_snapped(matrices), bases=_snapped(bases), commutant=len(skew) + 1)


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
    """Whether the bases are orthonormal and the blocks give back the matrices they were made of."""
    basis = orthogonal_basis(blocks)
    if basis.shape != left.shape[1:] or not np.allclose(basis.T @ basis, np.eye(len(basis)), rtol=0, atol=1e-12):
        return False
    rebuilt = sum((E.conj() @ block.matrices @ E.T).real for block in blocks for E in block.bases)
    rounding = 64 * len(left) * np.finfo(float).eps  # of hundreds of rotated tables two had more
    return bool(np.allclose(rebuilt, left, rtol=0, atol=rounding * max(np.abs(left).max(), 1e-300)))
