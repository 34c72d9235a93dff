"""Which products of planes give HᵀH, and how few of them.

Every entry of a block's Gram matrix B(H)ᴴB(H) is a sum Σ_st C[s, t] H_sᵀH_t over its p independent components, with
a (p, p) matrix of coefficients

    C_qr[s, t] = Σ_j conj(B_s[j, q]) B_t[j, r].

The symmetric and antisymmetric parts of all C_qr span two spaces; a basis of each are the *forms* F of the block, and
the sums Q_F = Σ_st F[s, t] H_sᵀH_t, symmetric or antisymmetric L x L matrices, are all there is to know of the rows.
One product P = H_aᵀH_b of planes H_a = Σ_s a_s H_s and H_b gives a form of either kind, from P + Pᵀ and P - Pᵀ:

    (abᵀ + baᵀ)/2    and    (abᵀ - baᵀ)/2.

So products suffice if these span the forms. Three ways compete: the entries of B(H) (n³ products, four times as many
if it is complex), the components (p², a square counting half of a product), and, for blocks of few components, planes
found by Levenberg and Marquardt's method: 4 products for the quaternions, where components take 6 and 4 squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm.algebra import Algebra
from hyperelm.decomposition import Block, decompose, tidy

Matrix = NDArray[np.float64]
Pair = tuple[int, int, float]
Sums = list[list[Pair]]

_LARGEST_SEARCHED = 4  # components of a block up to which planes are searched for
_STARTS = 6
_STEPS = 150
_EXACT = 1e-13


@dataclass(frozen=True, eq=False)
class BlockForms:
    """What the rows have to tell about one block.

    components : (d, p), from the components of a number to those that decide B
    forms : (F, p, p), a basis of the symmetric, then of the antisymmetric coefficients
    signs : (F,), +1 for symmetric ones, -1 for antisymmetric ones
    entries : (F, n, n), real or complex: the Gram matrix is Σ_F entries_F ⊗ Q_F
    """

    components: Matrix
    forms: Matrix
    signs: Matrix
    entries: NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Products of planes, and the way from them to the forms of all blocks.

    planes : (d, planes), from the components of H to its planes
    sums : for every sum that is kept, the pairs of planes whose products it adds up
    to_forms : (F, sums), so that Q = Σ to_forms[F, n] (S_n ± S_nᵀ)/2
    """

    planes: Matrix
    sums: Sums
    to_forms: Matrix


@lru_cache(maxsize=256)
def gram_forms(algebra: Algebra) -> tuple[BlockForms, ...]:
    """The forms of every block, the same on every machine."""
    return tuple(_forms(block) for block in decompose(algebra))


def form_matrices(algebra: Algebra) -> Matrix:
    """The forms of all blocks as coefficients of H_sᵀH_t for the components of H, (F, d, d)."""
    return np.concatenate([b.components @ b.forms @ b.components.T for b in gram_forms(algebra)])


@lru_cache(maxsize=256)
def gram_plan(algebra: Algebra, *, search: bool) -> GramPlan:
    """The products with the fewest multiplications; with `search`, planes that have to be found compete."""
    planes: list[Matrix] = []
    sums: Sums = []
    to_forms: list[Matrix] = []
    for block, of_block in zip(decompose(algebra), gram_forms(algebra)):
        basis, products = _cheapest(block, of_block, search)
        first = sum(known.shape[1] for known in planes)
        planes.append(of_block.components @ basis)
        sums.extend([(first + a, first + b, c) for a, b, c in pairs] for pairs in products)
        to_forms.append(_spanned(of_block, basis, products))
    return GramPlan(np.concatenate(planes, axis=1), sums, linalg.block_diag(*to_forms))


def cost(sums: Sums) -> int:
    """Multiplications, in units of those that half of a symmetric product takes."""
    return sum(1 if a == b else 2 for pairs in sums for a, b, _ in pairs)


# ---------------------------------------------------------------------- forms


def _forms(block: Block) -> BlockForms:
    components = _independent_components(block)
    B = np.tensordot(components.T, block.matrices, axes=1)
    C = np.einsum("sjq,tjr->qrst", B.conj(), B, optimize=True)
    forms: list[Matrix] = []
    entries: list[NDArray[np.complex128]] = []
    signs: list[float] = []
    for sign in (1.0, -1.0):
        part = (C + sign * C.swapaxes(2, 3)) / 2
        rows = np.concatenate([part.real, part.imag])
        basis, pivots = _echelon(rows.reshape(len(rows) * block.size, part[0, 0].size))
        forms.extend(basis.reshape(len(pivots), *part.shape[2:]))
        # The basis is 1 at its own pivot and 0 at the others, so coordinates can be read off there.
        entries.extend(part.reshape(*part.shape[:2], part[0, 0].size)[:, :, pivots].transpose(2, 0, 1))
        signs += [sign] * len(pivots)
    shape = (len(forms), *C.shape[2:])
    return BlockForms(
        components, np.array(forms).reshape(shape), np.array(signs), np.array(entries).reshape(-1, *C.shape[:2])
    )


def _independent_components(block: Block) -> Matrix:
    """(d, p): orthonormal functions of the components that decide B; the components themselves if all are needed."""
    u, sigma, _ = np.linalg.svd(block.entries, full_matrices=False)
    seen = sigma > 1e-10 * sigma.max(initial=1e-300)
    return tidy(u[:, seen])


def _echelon(rows: Matrix) -> tuple[Matrix, list[int]]:
    """The reduced echelon form, which depends on the space that the rows span alone, and its pivots."""
    rows = rows / max(np.abs(rows).max(initial=0), np.finfo(float).tiny)
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        rank = len(pivots)
        if rank == len(rows):
            break
        largest = rank + int(np.argmax(np.abs(rows[rank:, column])))
        if abs(rows[largest, column]) < 1e-9:
            continue
        rows[[rank, largest]] = rows[[largest, rank]]
        rows[rank] /= rows[rank, column]
        others = np.arange(len(rows)) != rank
        rows[others] -= np.outer(rows[others, column], rows[rank])
        pivots.append(column)
    return rows[: len(pivots)], pivots


# ---------------------------------------------------------------------- products


def _cheapest(block: Block, of_block: BlockForms, search: bool) -> tuple[Matrix, Sums]:
    """Planes of the independent components, (p, planes), and the sums of their products."""
    p = of_block.forms.shape[1]
    if block.parts**2 * block.size**3 < p**2:
        return of_block.components.T @ block.entries, list(_sums_of_entries(block))
    if search and len(of_block.forms) and p <= _LARGEST_SEARCHED and (found := _searched(of_block)):
        return found
    return np.eye(p), [[(s, t, 1.0)] for s in range(p) for t in range(s, p)]


def _sums_of_entries(block: Block) -> Iterator[list[Pair]]:
    """Σ_p B_pqᴴ B_pr for q <= r, the real and the imaginary part apart."""
    n, parts = block.size, block.parts
    at = parts * np.arange(n * n).reshape(n, n)
    for q in range(n):
        for r in range(q, n):
            yield [(int(at[p, q]) + i, int(at[p, r]) + i, 1.0) for p in range(n) for i in range(parts)]
            if block.is_complex:
                skew = [(int(at[p, q]), int(at[p, r]) + 1, 1.0) for p in range(n)]
                if q != r:
                    skew += [(int(at[p, q]) + 1, int(at[p, r]), -1.0) for p in range(n)]
                yield skew


def _spanned(of_block: BlockForms, planes: Matrix, sums: Sums) -> Matrix:
    """The coordinates (F, sums) of the forms in what the sums give."""
    given = np.zeros((len(sums), *of_block.forms.shape[1:]))
    for total, pairs in zip(given, sums):
        total += sum(c * np.outer(planes[:, a], planes[:, b]) for a, b, c in pairs)
    coordinates = np.zeros((len(of_block.forms), len(sums)))
    for sign in (1.0, -1.0):
        wanted = of_block.signs == sign
        parts = ((given + sign * given.swapaxes(1, 2)) / 2).reshape(len(sums), given[0].size if sums else 0).T
        targets = of_block.forms[wanted].reshape(np.count_nonzero(wanted), len(parts)).T
        coordinates[wanted] = np.linalg.lstsq(parts, targets, rcond=1e-10)[0].T
    coordinates[np.abs(coordinates) < 1e-14] = 0
    return coordinates


# ---------------------------------------------------------------------- search


def _searched(of_block: BlockForms) -> tuple[Matrix, Sums] | None:
    """The cheapest products and squares of planes that span the forms, if they save a quarter of the work."""
    p, antisymmetric = of_block.forms.shape[1], int(np.sum(of_block.signs < 0))
    symmetric = len(of_block.forms) - antisymmetric
    counts = [
        (products, squares)
        for products in range(antisymmetric, p * p // 2 + 1)
        for squares in range(max(0, symmetric - products), p + 1)
        if 4 * (2 * products + squares) <= 3 * p * p
    ]
    for products, squares in sorted(counts, key=lambda count: 2 * count[0] + count[1]):
        planes = _planes_spanning(of_block, products, squares)
        if planes is not None:
            return planes, _found_sums(products, squares)
    return None


def _found_sums(products: int, squares: int) -> Sums:
    """Of planes in the order left factors, right factors, squares."""
    first = 2 * products
    return [[(t, products + t, 1.0)] for t in range(products)] + [[(first + t, first + t, 1.0)] for t in range(squares)]


def _planes_spanning(of_block: BlockForms, products: int, squares: int) -> Matrix | None:
    """Planes (p, 2 products + squares) of length 1: left factors, right factors, squares; or None.

    Of several starts the one whose forms take the smallest coefficients, which bound the growth of errors.
    """
    best, growth = None, np.inf
    for seed in range(_STARTS):
        planes = _levenberg_marquardt(of_block, products, squares, np.random.default_rng(seed))
        if planes is None:
            if best is None and seed >= 2:
                return None
            continue
        size = float(np.abs(_spanned(of_block, planes, _found_sums(products, squares))).sum(axis=1).max())
        if size < growth:
            best, growth = planes, size
    return best


def _levenberg_marquardt(of_block: BlockForms, products: int, squares: int, rng: np.random.Generator) -> Matrix | None:
    """Planes a, b, e with coefficients x: Σ_t x_t (a_t b_tᵀ ± b_t a_tᵀ)/2 + Σ_u x_u e_u e_uᵀ are the forms; or None."""
    F, p = of_block.forms.shape[:2]
    T = products + squares
    planes = rng.standard_normal((p, 2 * products + squares)) / np.sqrt(p)
    x = rng.standard_normal((F, T))
    x[of_block.signs < 0, products:] = 0
    damping, shrink = 1.0, 0.1
    error, jacobian = _residual(of_block, planes, x, products)
    for _ in range(_STEPS):
        value = np.concatenate([planes.ravel(), x.ravel()])
        # Shrinking all factors a little, less and less, leads to small ones.
        normal = jacobian.T @ jacobian + (damping + shrink) * np.eye(len(value))
        step = -np.linalg.solve(normal, jacobian.T @ error + shrink * value)
        new_planes = planes + step[: planes.size].reshape(planes.shape)
        new_x = x + step[planes.size :].reshape(x.shape)
        new_error, new_jacobian = _residual(of_block, new_planes, new_x, products)
        if _objective(new_error, new_planes, new_x, shrink) < _objective(error, planes, x, shrink):
            planes, x, error, jacobian = new_planes, new_x, new_error, new_jacobian
            damping = max(damping / 4, 1e-14)
        else:
            damping *= 3
        shrink = 0.8 * shrink if np.abs(error).max() > 1e-6 else 0.0
        if np.abs(error).max() < _EXACT:
            return planes / np.linalg.norm(planes, axis=0)
    return None


def _objective(error: Matrix, planes: Matrix, x: Matrix, shrink: float) -> float:
    return float(error @ error + shrink * (np.sum(planes**2) + np.sum(x**2)))


def _residual(of_block: BlockForms, planes: Matrix, x: Matrix, products: int) -> tuple[Matrix, Matrix]:
    """What the products leave of the forms, (F p p,), and its derivative by planes and coefficients."""
    F, p = of_block.forms.shape[:2]
    T, signs = x.shape[1], of_block.signs
    left = np.concatenate([planes[:, :products], planes[:, 2 * products :]], axis=1)
    right = planes[:, products:]
    given = np.einsum("it,jt->tij", left, right)
    parts = (given + signs[:, None, None, None] * given.swapaxes(1, 2)) / 2
    error = np.einsum("ft,ftij->fij", x, parts) - of_block.forms
    one = np.eye(p)
    by_left = np.einsum("ft,ik,jt->fijkt", x, one, right)
    by_right = np.einsum("ft,it,jk->fijkt", x, left, one)
    by_left, by_right = ((by + signs[:, None, None, None, None] * by.swapaxes(1, 2)) / 2 for by in (by_left, by_right))
    by_planes = np.zeros((F, p, p, p, planes.shape[1]))
    by_planes[..., :products] = by_left[..., :products]
    by_planes[..., products:] = by_right
    by_planes[..., 2 * products :] += by_left[..., products:]
    by_x = np.einsum("fg,ftij->fijgt", np.eye(F), parts)
    jacobian = np.concatenate([by_planes.reshape(F * p * p, -1), by_x.reshape(F * p * p, F * T)], axis=1)
    return error.ravel(), jacobian
