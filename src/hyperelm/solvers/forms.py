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

Components are taken in units in which all matrices B_s have like sizes. Whatever was found must give back all C_qr to
rounding, relative to the sizes of the columns q and r of the B_s. Otherwise, and where a basis would take too long to
find, the forms are all elementary ones, e_s e_tᵀ ± e_t e_sᵀ, and the products are those of the components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm.algebra import Algebra
from hyperelm.decomposition import Block, decompose, powers_of_two, real_columns, tidy

Matrix = NDArray[np.float64]
Pair = tuple[int, int, float]
Sums = list[list[Pair]]
BasisOf = Callable[[NDArray[Any], float], tuple[Matrix, list[int]]]

_LARGEST_SEARCHED = 4  # components of a block up to which planes are searched for
_STARTS = 6
_STEPS = 150
_EXACT = 1e-13
_ROUNDING = 64 * float(np.finfo(float).eps)
_LARGEST_ELIMINATION = 4e8  # multiply-adds for a basis of the forms: a second
_LARGEST_FORMS = 2**24  # numbers in all forms of a block: 128 megabytes


@dataclass(frozen=True, eq=False)
class BlockForms:
    """What the rows have to tell about one block.

    components : (d, p), from the components of a number to those that decide B
    matrices : (p, n, n), real or complex: B of these components
    forms : (F, p, p), a basis of the symmetric, then of the antisymmetric coefficients
    signs : (F,), +1 for symmetric ones, -1 for antisymmetric ones
    entries : (F, n, n), real or complex: the Gram matrix is Σ_F entries_F ⊗ Q_F
    """

    components: Matrix
    matrices: NDArray[Any]
    forms: Matrix
    signs: Matrix
    entries: NDArray[Any]


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


def have_forms(algebra: Algebra) -> bool:
    """Whether the forms of all blocks can be held in memory: up to 64 components, and more where the algebra splits."""
    for block in decompose(algebra):
        rows = block.parts * block.size**2
        p = min(algebra.dim, rows)
        count = min(rows, p**2) if _can_eliminate(rows, p) else p**2
        if max(rows, count) * p**2 > _LARGEST_FORMS:
            return False
    return True


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
        basis, products, coordinates = _cheapest(block, of_block, search)
        first = sum(known.shape[1] for known in planes)
        planes.append(of_block.components @ basis)
        sums.extend([(first + a, first + b, c) for a, b, c in pairs] for pairs in products)
        to_forms.append(coordinates)
    return GramPlan(np.concatenate(planes, axis=1), sums, linalg.block_diag(*to_forms))


def cost(sums: Sums) -> int:
    """Multiplications, in units of those that half of a symmetric product takes."""
    return sum(1 if a == b else 2 for pairs in sums for a, b, _ in pairs)


# ---------------------------------------------------------------------- forms


def _forms(block: Block) -> BlockForms:
    components, B = _independent_components(block)
    if _can_eliminate(block.parts * block.size**2, len(B)):
        found = _in_basis(components, B, _spanning)
        if _gives_back(found, found.forms):
            return found
    return _in_basis(components, B, _elementary)


def _can_eliminate(rows: int, p: int) -> bool:
    """Whether a basis of what so many coefficients of p components span can be found soon."""
    return rows * p**2 * min(rows, p**2) <= _LARGEST_ELIMINATION


def _independent_components(block: Block) -> tuple[Matrix, NDArray[Any]]:
    """(d, p): functions of the components that decide B, and (p, n, n): their matrices, which have like sizes.

    They are orthonormal but for the sizes; the components themselves if all are needed, also to rounding.
    """
    sizes = powers_of_two(np.abs(block.matrices).max(axis=(1, 2)))
    entries = block.entries / sizes[:, None]
    u, sigma, _ = np.linalg.svd(entries, full_matrices=False)
    functions = tidy(u[:, sigma > 1e-10 * sigma.max(initial=1e-300)])
    if np.abs(functions @ (functions.T @ entries) - entries).max() > len(entries) * _ROUNDING:
        functions = np.eye(len(entries))
    return sizes[:, None] * functions, np.tensordot(functions.T, block.matrices / sizes[:, None, None], axes=1)


def _coefficients(B: NDArray[Any]) -> NDArray[Any]:
    """C_qr[s, t], (n, n, p, p)."""
    return np.einsum("sjq,tjr->qrst", B.conj(), B, optimize=True)


def _sizes(B: NDArray[Any]) -> Matrix:
    """(n, n, 1, 1): what C_qr is large or small beside, the products of the lengths of the longest columns."""
    lengths = np.linalg.norm(B, axis=1).max(axis=0, initial=0)
    lengths[lengths == 0] = 1
    return np.multiply.outer(lengths, lengths)[..., None, None]


def _in_basis(components: Matrix, B: NDArray[Any], basis_of: BasisOf) -> BlockForms:
    C, sizes = _coefficients(B), _sizes(B)
    p, n = B.shape[:2]
    forms: list[Matrix] = []
    entries: list[NDArray[Any]] = []
    signs: list[float] = []
    for sign in (1.0, -1.0):
        part = (C + sign * C.swapaxes(2, 3)) / 2
        basis, pivots = basis_of(part / sizes, sign)
        forms.extend(basis.reshape(len(pivots), p, p))
        # The basis is 1 at its own pivot and 0 at the others, so coordinates can be read off there.
        entries.extend(part.reshape(n, n, p * p)[:, :, pivots].transpose(2, 0, 1))
        signs += [sign] * len(pivots)
    shape = len(forms), p, p
    all_forms, all_entries = np.array(forms).reshape(shape), np.array(entries).reshape(len(forms), n, n)
    largest = np.abs(all_forms).max(axis=(1, 2), initial=0)[:, None, None]
    all_entries[np.abs(all_entries) * largest <= np.finfo(float).eps * sizes[..., 0, 0]] = 0
    return BlockForms(components, B, all_forms, np.array(signs), all_entries)


def _gives_back(of_block: BlockForms, forms: Matrix) -> bool:
    """Whether Σ_F entries_F forms_F are the C_qr of the block to rounding."""
    B = of_block.matrices
    errors = np.tensordot(of_block.entries, forms, axes=(0, 0)) - _coefficients(B)
    return bool(np.all(np.abs(errors) <= len(B) * _ROUNDING * _sizes(B)))


def _elementary(part: NDArray[Any], sign: float) -> tuple[Matrix, list[int]]:
    """All e_s e_tᵀ ± e_t e_sᵀ with s <= t, or s < t, and their pivots."""
    p = part.shape[2]
    s, t = np.triu_indices(p, 0 if sign > 0 else 1)
    basis = np.zeros((len(s), p, p))
    basis[np.arange(len(s)), t, s] = sign
    basis[np.arange(len(s)), s, t] = 1
    return basis, (p * s + t).tolist()


def _spanning(part: NDArray[Any], sign: float) -> tuple[Matrix, list[int]]:  # noqa: ARG001 (as `_elementary` takes it)
    """A basis of what the coefficients span, and its pivots."""
    rows = np.concatenate([part.real, part.imag]) if np.iscomplexobj(part) else part
    return _echelon(rows.reshape(len(rows) * part.shape[1], part.shape[2] ** 2))


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


def _cheapest(block: Block, of_block: BlockForms, search: bool) -> tuple[Matrix, Sums, Matrix]:
    """Planes of the independent components, (p, planes), the sums of their products, and the forms in these."""
    p = of_block.forms.shape[1]
    found: tuple[Matrix, Sums] | None = None
    if block.parts**2 * block.size**3 < p**2:
        found = real_columns(of_block.matrices), list(_sums_of_entries(block))
    elif search and len(of_block.forms) and p <= _LARGEST_SEARCHED:
        found = _searched(of_block)
    if found:
        coordinates, spanned = _spanned(of_block, *found)
        if _gives_back(of_block, spanned):
            return *found, coordinates
    s, t = np.triu_indices(p)
    # F[s, t] and F[t, s] = ± F[s, t] together; half of the sum, and half of the difference, is what a form takes.
    return np.eye(p), [[(a, b, 1.0)] for a, b in zip(s.tolist(), t.tolist())], of_block.forms[:, s, t] * (2 - (s == t))


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


def _spanned(of_block: BlockForms, planes: Matrix, sums: Sums) -> tuple[Matrix, Matrix]:
    """The coordinates (F, sums) of the forms in what the sums give, and the forms (F, p, p) that have these."""
    given = np.zeros((len(sums), *of_block.forms.shape[1:]))
    for total, pairs in zip(given, sums):
        total += sum(c * np.outer(planes[:, a], planes[:, b]) for a, b, c in pairs)
    coordinates, spanned = np.zeros((len(of_block.forms), len(sums))), np.zeros(of_block.forms.shape)
    for sign in (1.0, -1.0):
        wanted = of_block.signs == sign
        parts = ((given + sign * given.swapaxes(1, 2)) / 2).reshape(len(sums), given.shape[1] ** 2).T
        targets = of_block.forms[wanted].reshape(np.count_nonzero(wanted), len(parts)).T
        found = np.linalg.lstsq(parts, targets, rcond=1e-10)[0].T
        found[np.abs(found) < 1e-14 * np.abs(found).max(axis=1, keepdims=True, initial=0)] = 0
        coordinates[wanted], spanned[wanted] = found, (found @ parts.T).reshape(len(found), *given.shape[1:])
    return coordinates, spanned


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
        coordinates, _ = _spanned(of_block, planes, _found_sums(products, squares))
        size = float(np.abs(coordinates).sum(axis=1).max())
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
