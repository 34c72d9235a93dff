"""Which products of planes give the Gram matrices HᵀH of the blocks, and how few of them.

Least squares needs the Gram matrix B(H)ᴴB(H) of every block, where H is a matrix of numbers and B(H) = Σ_s B_s H_s for
the p independent components H_s that decide B. Its entry (q, r) is a sum of products of components,

    Σ_st C_qr[s, t] H_sᵀH_t,    C_qr[s, t] = Σ_j conj(B_s[j, q]) B_t[j, r].

Many of the C_qr depend on each other. So it is enough to know a basis of what they span:

- The *forms* F of a block are a basis of the symmetric parts of all C_qr, and one of their antisymmetric parts.
- The sums Q_F = Σ_st F[s, t] H_sᵀH_t hold all that the rows tell about the block. They are L x L matrices, symmetric
  or antisymmetric as F.
- The Gram matrix is Σ_F patterns_F ⊗ Q_F, where patterns_F[q, r] are the coordinates of C_qr in the basis.

One real product P = H_aᵀH_b of planes H_a = Σ_s a_s H_s and H_b = Σ_s b_s H_s gives two forms, from P + Pᵀ and P - Pᵀ:

    (abᵀ + baᵀ)/2    and    (abᵀ - baᵀ)/2.

Products suffice if these span the forms. Three ways compete:

- the entries of B(H): n³ products, four times as many for a complex block;
- the components: p² products, where a square counts half of a product, because it is symmetric;
- planes that a search finds, for blocks of at most 4 components: the quaternions take 4 products, where components
  take 6 products and 4 squares. The planes for the catalogue's algebras are shipped.

Components are measured in units in which all B_s have entries of like size. Whatever was found must give back all C_qr
to rounding, relative to the lengths of the columns q and r of the B_s. If it does not, or if a basis would take too
long to find, the forms are the elementary ones, e_s e_tᵀ ± e_t e_sᵀ, and the products are those of the components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import ROUNDING, Block, decompose, powers_of_two, real_columns, tidy
from hyperelm._algebra.schemes import PlaneProduct, recall

Array = NDArray[np.float64]
Sums = list[list[PlaneProduct]]

_LARGEST_SEARCHED = 4  # components of a block up to which planes are searched for
_STARTS = 6
_STEPS = 150
_EXACT = 1e-13  # the largest error of a form at which a search ends
_LARGEST_ELIMINATION = 4e8  # multiply-adds for a basis of the forms, about a second
_LARGEST_FORMS = 2**24  # numbers in all forms of a block, 128 megabytes


@dataclass(frozen=True, eq=False)
class BlockForms:
    """The forms of one block.

    components : (d, p), from the components of a number to those that decide B
    matrices : (p, n, n), real or complex: B_s of these components
    forms : (F, p, p), a basis of the symmetric, then of the antisymmetric parts of all C_qr
    signs : (F,), +1 for symmetric forms, -1 for antisymmetric ones
    patterns : (F, n, n), real or complex: the Gram matrix is Σ_F patterns_F ⊗ Q_F
    """

    components: Array
    matrices: NDArray[Any]
    forms: Array
    signs: Array
    patterns: NDArray[Any]


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Products of planes, and the way from them to the forms of all blocks.

    planes : (d, planes), from the components of H to its planes
    sums : for every sum S_n that is kept, the products of planes that it adds up
    to_forms : (F, sums), so that Q_F = Σ_n to_forms[F, n] (S_n ± S_nᵀ)/2
    """

    planes: Array
    sums: Sums
    to_forms: Array


def have_forms(algebra: Algebra) -> bool:
    """Whether the forms of all blocks fit into memory: up to 64 components, and more if the algebra splits."""
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


def form_matrices(algebra: Algebra) -> Array:
    """The forms of all blocks as coefficients of H_sᵀH_t for the components of H, (F, d, d)."""
    return np.concatenate([b.components @ b.forms @ b.components.T for b in gram_forms(algebra)])


@lru_cache(maxsize=256)
def gram_plan(algebra: Algebra, *, search: bool) -> GramPlan:
    """The products with the fewest multiplications. With `search`, planes that have to be found compete."""
    planes: list[Array] = []
    sums: Sums = []
    to_forms: list[Array] = []
    for block, of_block in zip(decompose(algebra), gram_forms(algebra)):
        own_planes, own_sums, own_to_forms = _cheapest(block, of_block, search)
        first = sum(known.shape[1] for known in planes)
        planes.append(of_block.components @ own_planes)
        sums.extend([(first + a, first + b, c) for a, b, c in total] for total in own_sums)
        to_forms.append(own_to_forms)
    return GramPlan(np.concatenate(planes, axis=1), sums, linalg.block_diag(*to_forms))


# ---------------------------------------------------------------------- forms


def _forms(block: Block) -> BlockForms:
    components, B = _independent_components(block)
    if _can_eliminate(block.parts * block.size**2, len(B)):
        found = _in_basis(components, B, elementary=False)
        if _gives_back(found, found.forms):
            return found
    return _in_basis(components, B, elementary=True)


def _can_eliminate(rows: int, p: int) -> bool:
    """Whether a basis of the span of so many C_qr of p components can be found in about a second."""
    return rows * p**2 * min(rows, p**2) <= _LARGEST_ELIMINATION


def _independent_components(block: Block) -> tuple[Array, NDArray[Any]]:
    """(d, p): functions of the components that decide B, and (p, n, n): their matrices B_s, of like sizes.

    The functions are orthonormal after division by the lengths of the units. They are the components themselves if B
    depends on all of them, or if rounding does not allow fewer.
    """
    lengths = powers_of_two(np.abs(block.matrices).max(axis=(1, 2)))
    entries = block.entries / lengths[:, None]
    u, sigma, _ = np.linalg.svd(entries, full_matrices=False)
    functions = tidy(u[:, sigma > 1e-10 * sigma.max(initial=0)])
    if np.abs(functions @ (functions.T @ entries) - entries).max() > len(entries) * ROUNDING:
        functions = np.eye(len(entries))
    return lengths[:, None] * functions, np.tensordot(functions.T, block.matrices / lengths[:, None, None], axes=1)


def _coefficients(B: NDArray[Any]) -> NDArray[Any]:
    """C_qr[s, t], (n, n, p, p)."""
    return np.einsum("sjq,tjr->qrst", B.conj(), B, optimize=True)


def _magnitudes(B: NDArray[Any]) -> Array:
    """(n, n, 1, 1): the size that errors of C_qr are relative to, the longest column q times the longest column r."""
    longest = np.linalg.norm(B, axis=1).max(axis=0, initial=0)
    longest[longest == 0] = 1
    return np.multiply.outer(longest, longest)[..., None, None]


def _in_basis(components: Array, B: NDArray[Any], *, elementary: bool) -> BlockForms:
    """The forms in a basis of the span of the C_qr, or in the elementary basis of all (p, p) matrices."""
    C, magnitudes = _coefficients(B), _magnitudes(B)
    p, n = B.shape[:2]
    found = []
    for sign in (1.0, -1.0):
        part = (C + sign * C.swapaxes(2, 3)) / 2
        relative = part / magnitudes
        # A complex block has real rows, and below them imaginary ones.
        rows = np.concatenate([relative.real, relative.imag]) if np.iscomplexobj(relative) else relative
        basis, pivots = _elementary(p, sign) if elementary else _echelon(rows.reshape(len(rows) * n, p * p))
        # A form is 1 at its own pivot and 0 at the pivots of the others. So coordinates can be read off there.
        pattern = part.reshape(n, n, p * p)[:, :, pivots].transpose(2, 0, 1)
        found.append((basis.reshape(len(pivots), p, p), np.full(len(pivots), sign), pattern))
    forms, signs, patterns = (np.concatenate(arrays) for arrays in zip(*found))
    # Every entry of a pattern costs the sum of two L x L matrices. So what rounding left of zeros becomes zero.
    largest = np.abs(forms).max(axis=(1, 2), initial=0)[:, None, None]
    patterns[np.abs(patterns) * largest <= np.finfo(float).eps * magnitudes[..., 0, 0]] = 0
    return BlockForms(components, B, forms, signs, patterns)


def _gives_back(of_block: BlockForms, forms: Array) -> bool:
    """Whether Σ_F patterns_F forms_F are the C_qr of the block to rounding."""
    B = of_block.matrices
    errors = np.tensordot(of_block.patterns, forms, axes=(0, 0)) - _coefficients(B)
    return bool(np.all(np.abs(errors) <= len(B) * ROUNDING * _magnitudes(B)))


def _elementary(p: int, sign: float) -> tuple[Array, list[int]]:
    """All e_s e_tᵀ + e_t e_sᵀ with s <= t, or e_s e_tᵀ - e_t e_sᵀ with s < t, and their pivots."""
    s, t = np.triu_indices(p, 0 if sign > 0 else 1)
    basis = np.zeros((len(s), p, p))
    basis[np.arange(len(s)), t, s] = sign
    basis[np.arange(len(s)), s, t] = 1
    return basis, (p * s + t).tolist()


def _echelon(rows: Array) -> tuple[Array, list[int]]:
    """The reduced echelon form, which depends only on the space that the rows span, and its pivots."""
    rows = rows / (np.abs(rows).max(initial=0) or 1.0)
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        rank = len(pivots)
        if rank == len(rows):
            break
        largest = rank + int(np.argmax(np.abs(rows[rank:, column])))
        if abs(rows[largest, column]) < 1e-9:
            continue  # The rows above already span this column.
        rows[[rank, largest]] = rows[[largest, rank]]
        rows[rank] /= rows[rank, column]
        others = np.arange(len(rows)) != rank
        rows[others] -= np.outer(rows[others, column], rows[rank])
        pivots.append(column)
    return rows[: len(pivots)], pivots


# ---------------------------------------------------------------------- products


def _cheapest(block: Block, of_block: BlockForms, search: bool) -> tuple[Array, Sums, Array]:
    """Planes of the independent components, (p, planes), the sums of their products, and the forms in these sums."""
    p = of_block.forms.shape[1]
    found: tuple[Array, Sums] | None = None
    if block.parts**2 * block.size**3 < p**2:
        found = real_columns(of_block.matrices), list(_sums_of_entries(block))
    elif search and len(of_block.forms) and p <= _LARGEST_SEARCHED:
        found = _searched(of_block)
    if found:
        to_forms, spanned = _spanned(of_block, *found)
        if _gives_back(of_block, spanned):
            return *found, to_forms
    # The products of the components. F[s, t] and F[t, s] = ± F[s, t] both take H_sᵀH_t, so s < t counts twice. If the
    # components differ from those of the numbers by their units alone, the units go into `to_forms`. Then the planes
    # are the components of the numbers themselves, and none has to be formed.
    s, t = np.triu_indices(p)
    units = of_block.components.diagonal()
    if not np.array_equal(of_block.components, np.diag(units)):
        units = np.ones(p)
    to_forms = of_block.forms[:, s, t] * (2 - (s == t)) * units[s] * units[t]
    return np.diag(1 / units), [[(a, b, 1.0)] for a, b in zip(s.tolist(), t.tolist())], to_forms


def _sums_of_entries(block: Block) -> Iterator[list[PlaneProduct]]:
    """Σ_p conj(B_pq) B_pr for q <= r: one sum for the real part, and one for the imaginary part if there is one."""
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


def _spanned(of_block: BlockForms, planes: Array, sums: Sums) -> tuple[Array, Array]:
    """The matrix `to_forms`, (F, sums), and the forms (F, p, p) that it gives, near those of the block or not.

    A sum of products c H_aᵀH_b gives the matrix G = Σ c abᵀ. The symmetric forms are sums of the (G + Gᵀ)/2, the
    antisymmetric ones of the (G - Gᵀ)/2, with coefficients by least squares.
    """
    given = np.zeros((len(sums), *of_block.forms.shape[1:]))
    for G, products in zip(given, sums):
        G += sum(c * np.outer(planes[:, a], planes[:, b]) for a, b, c in products)
    to_forms, spanned = np.zeros((len(of_block.forms), len(sums))), np.zeros(of_block.forms.shape)
    for sign in (1.0, -1.0):
        wanted = of_block.signs == sign
        basis = ((given + sign * given.swapaxes(1, 2)) / 2).reshape(len(sums), given.shape[1] ** 2).T
        targets = of_block.forms[wanted].reshape(np.count_nonzero(wanted), len(basis)).T
        found = np.linalg.lstsq(basis, targets, rcond=1e-10)[0].T
        found[np.abs(found) < 1e-14 * np.abs(found).max(axis=1, keepdims=True, initial=0)] = 0
        to_forms[wanted], spanned[wanted] = found, (found @ basis.T).reshape(len(found), *given.shape[1:])
    return to_forms, spanned


# ---------------------------------------------------------------------- search


def _searched(of_block: BlockForms) -> tuple[Array, Sums] | None:
    """The cheapest products and squares of planes that span the forms, if they save a quarter of the work."""
    # Forms of the same algebra differ by rounding between machines, which must find the same planes.
    sought = np.round(of_block.forms, 13) + 0.0
    planes = recall("planes", sought, partial(_cheapest_planes, of_block))
    return None if planes is None else _plane_products(planes)


def _plane_products(factors: Array) -> tuple[Array, Sums]:
    """The planes without repetition, and their products, for the factors a, e, b, e of products aᵀb and squares eᵀe."""
    left, right = np.split(factors, 2, axis=1)
    products = int(np.sum(np.any(left != right, axis=0)))
    sums: Sums = [[(t if t < products else products + t, products + t, 1.0)] for t in range(left.shape[1])]
    return np.concatenate([left[:, :products], right], axis=1), sums


def _cheapest_planes(of_block: BlockForms) -> Array | None:
    """The factors of the cheapest products for which a search succeeds, (p, 2 (products + squares)), or None."""
    p, antisymmetric = of_block.forms.shape[1], int(np.sum(of_block.signs < 0))
    symmetric = len(of_block.forms) - antisymmetric
    # A product gives one symmetric and one antisymmetric form, a square one symmetric form.
    counts = [
        (products, squares)
        for products in range(antisymmetric, p * p // 2 + 1)
        for squares in range(max(0, symmetric - products), p + 1)
        if 4 * (2 * products + squares) <= 3 * p * p
    ]
    for products, squares in sorted(counts, key=lambda count: 2 * count[0] + count[1]):
        factors = _best_planes(of_block, products, squares)
        if factors is not None:
            return factors
    return None


def _best_planes(of_block: BlockForms, products: int, squares: int) -> Array | None:
    """The factors of so many products and squares that span the forms, (p, 2 (products + squares)), or None.

    Of several starts, the one with the smallest `to_forms` wins, because rounding errors grow by these coefficients.
    The search gives up when the first three starts fail.
    """
    best, growth = None, np.inf
    for seed in range(_STARTS):
        factors = _levenberg_marquardt(of_block, products, squares, np.random.default_rng(seed))
        if factors is None:
            if best is None and seed >= 2:
                return None
            continue
        to_forms, _ = _spanned(of_block, *_plane_products(factors))
        if (size := float(np.abs(to_forms).sum(axis=1).max())) < growth:
            best, growth = factors, size
    return best


def _levenberg_marquardt(of_block: BlockForms, products: int, squares: int, rng: np.random.Generator) -> Array | None:
    """The factors of products and squares that span the forms, from one random start, or None.

    The unknowns v are the planes a_t and b_t of the products, the planes e_u of the squares, and coefficients x. They
    solve, for every form F,

        Σ_t x_Ft (a_t b_tᵀ ± b_t a_tᵀ)/2 + Σ_u x_Fu e_u e_uᵀ = F.

    With r the error of these equations and J its derivative, a step s minimises |r + J s|² + λ |s|² + μ |v + s|²:

        (JᵀJ + (λ + μ) I) s = -(Jᵀr + μ v).

    The damping λ falls after a step that made |r|² + μ |v|² smaller. Any other step is not taken, and λ rises. The
    second weight μ leads to small planes and coefficients, and fades away.
    """
    F, p = of_block.forms.shape[:2]
    count = 2 * products + squares
    planes = rng.standard_normal((p, count)) / np.sqrt(p)
    x = rng.standard_normal((F, products + squares))
    x[of_block.signs < 0, products:] = 0  # A square has no antisymmetric part.
    v = np.concatenate([planes.ravel(), x.ravel()])
    damping, shrink = 1.0, 0.1
    r, J = _residual(of_block, v, products, count)
    for _ in range(_STEPS):
        step = -np.linalg.solve(J.T @ J + (damping + shrink) * np.eye(len(v)), J.T @ r + shrink * v)
        new_r, new_J = _residual(of_block, v + step, products, count)
        if new_r @ new_r + shrink * np.sum((v + step) ** 2) < r @ r + shrink * np.sum(v**2):
            v, r, J = v + step, new_r, new_J
            damping = max(damping / 4, 1e-14)
        else:
            damping *= 3
        shrink = 0.8 * shrink if np.abs(r).max() > 1e-6 else 0.0
        if np.abs(r).max() < _EXACT:
            planes = v[: p * count].reshape(p, count)
            planes = planes / np.linalg.norm(planes, axis=0)
            return np.concatenate([planes[:, :products], planes[:, 2 * products :], planes[:, products:]], axis=1)
    return None


def _residual(of_block: BlockForms, v: Array, products: int, count: int) -> tuple[Array, Array]:
    """The error of the equations, (F p p,), and its derivative by the `count` planes and the coefficients."""
    F, p = of_block.forms.shape[:2]
    planes, x = v[: p * count].reshape(p, count), v[p * count :].reshape(F, -1)
    left, right = np.concatenate([planes[:, :products], planes[:, 2 * products :]], axis=1), planes[:, products:]

    def part(array: Array) -> Array:
        """The symmetric or antisymmetric part in the axes i and j of [f, i, j, ...], by the sign of form f."""
        signs = of_block.signs.reshape(-1, *[1] * (array.ndim - 1))
        return np.asarray((array + signs * array.swapaxes(1, 2)) / 2)

    given = part(np.broadcast_to(np.einsum("it,jt->ijt", left, right), (F, p, p, x.shape[1])))
    error = np.einsum("ft,fijt->fij", x, given) - of_block.forms
    by_left = part(np.einsum("ft,ik,jt->fijkt", x, np.eye(p), right))
    by_right = part(np.einsum("ft,it,jk->fijkt", x, left, np.eye(p)))
    # The planes are a, b and e. A square e is a left and a right factor, so its two derivatives add up.
    by_planes = np.concatenate([by_left[..., :products], by_right], axis=-1)
    by_planes[..., 2 * products :] += by_left[..., products:]
    by_x = np.einsum("fg,fijt->fijgt", np.eye(F), given)
    return error.ravel(), np.concatenate([by_planes.reshape(F * p * p, -1), by_x.reshape(F * p * p, -1)], axis=1)
