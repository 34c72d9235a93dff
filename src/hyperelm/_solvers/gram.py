"""Normal equations: the sums Φ_L(H)ᵀΦ_L(H) and Φ_L(H)ᵀφ(T), without ever forming Φ_L(H).

Both are sums of real products of *planes*, linear combinations of the components of H and T.

1. HᵀH. A plan (`_algebra.forms`) names pairs of planes of H. The accumulator keeps the sums S_n of their products,

       S_n += H_aᵀH_b,        n = 1, 2, …

   A form is the symmetric or antisymmetric part of a combination of them, Q_F = Σ_n to_forms[F, n] (S_n ± S_nᵀ)/2, and
   the Gram matrix of a block is B(H)ᴴB(H) = Σ_F patterns_F ⊗ Q_F.

2. HᵀT. A bilinear scheme of the table (`_algebra.schemes`) names the planes of H and T to multiply. With the roles
   (H, T) -> M its terms (p, q, s, c) give one sum for every plane q of the solution,

       C_q += c H_pᵀT_s,        Φ_L(H)ᵀφ(T) = Σ_q right[:, q] C_q.

   Which scheme is the best depends on the components of T that are not zero, so there may be sums for several schemes.
   Each is kept with its matrix `right`, which is all that the last formula needs.

Forward errors grow with the square of the condition. So `solve` estimates the condition, and `solve.trusted` decides
whether the answer is kept.

All sums are those of the table without its overall factor (`unit_algebra`), whose square may be beyond the precision.
Squares of numbers far from 1 may be beyond the precision, too. The accumulator is then not `is_safe`, and gives no
problem to solve. An algebra with a block of more than 64 components has too many forms: then nothing is summed, and the
accumulator is never safe, so that `auto` goes on to `qr`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import unit_algebra
from hyperelm._algebra.forms import GramPlan, form_matrices, gram_forms, gram_plan, have_forms
from hyperelm._algebra.schemes import Scheme, is_large_product, products_of_components, reverse_scheme, scheme
from hyperelm._backend import Pair, Sums, backend_of, limits
from hyperelm._backend.arrays import is_identity, to_numpy
from hyperelm._backend.workspace import scratch
from hyperelm._linalg.planes import Numbers, block_basis, coordinate_matrix, traces
from hyperelm._solvers.accumulator import Accumulator, Embedding, mixed, row_square, table_square
from hyperelm._solvers.block_gram import block_gram
from hyperelm._solvers.dual import FewRows, problems_of_rows
from hyperelm._solvers.problem import Array, NormalEquations
from hyperelm._solvers.qr import QR
from hyperelm._validation import FloatArray

# The condition up to which the answer of normal equations is trusted.
LARGEST_CONDITION = {"float64": 1e4, "float32": 1e3}


class Cross(NamedTuple):
    """Sums C_q for HᵀT, (planes, L, N), and the matrix `right`, (d, planes), with Φ_L(H)ᵀφ(T) = Σ_q right[:, q] C_q."""

    right: NDArray[np.float64]
    sums: FloatArray


class Gram(Accumulator):
    """Accumulator of the normal equations of every block."""

    method = "gram"
    basis = ("coordinates", "forms")
    squares_condition = True
    takes_out = True
    shows_no_ridge = False

    def __init__(
        self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64, plan: GramPlan | None = None
    ) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        self._unit, self._factor = unit_algebra(algebra)
        self._has_forms = have_forms(self._unit)
        # Sums belong to this plan for ever. On another machine a search may find another plan.
        self._plan = plan
        if self._has_forms and plan is None:
            self._plan = gram_plan(self._unit, search=is_large_product(unknowns, unknowns))
        self._squares: FloatArray | None = None
        self._crosses: list[Cross] = []
        self._taken = 0.0  # Σ w‖h‖² of the rows that were taken out again

    def __getstate__(self) -> dict[str, Any]:
        """In NumPy, and with HᵀT in the block basis: that is half as large, which matters on a cluster."""
        squares = None if self._squares is None else to_numpy(self._squares)
        crosses = [Cross(block_basis(self._unit).coordinates, self._coordinates())] if self._crosses else []
        return self.__dict__ | {"_squares": squares, "_crosses": crosses, "_made": None}

    # ------------------------------------------------------------------ the range of numbers

    @property
    def is_safe(self) -> bool:
        """Whether the entries of HᵀH and HᵀT, by Σ‖h‖² and Σ‖t‖², neither overflow nor vanish."""
        return self._holds(0, 0.0, 0.0)

    def _holds(self, n_rows: int, square_H: float, square: float) -> bool:
        """Whether `is_safe` would hold after so many more rows with Σ‖h‖² = square_H and Σ‖t‖² = square."""
        if not self._has_forms:
            return False
        numbers = (self.n_rows + n_rows) * self.unknowns * self.algebra.dim
        lowest, highest = limits.smallest_sum(self.dtype) * numbers, limits.largest_sum(self.dtype)
        return all(lowest < size < highest for size in self._sizes(square_H, square) if size != 0)

    def _sizes(self, square_H: float = 0.0, square: float = 0.0) -> tuple[float, float]:
        """Bounds of the entries of HᵀH and HᵀT: Σ‖h‖² and √(Σ‖h‖² Σ‖t‖²)."""
        square_H += self.square_H
        return square_H, math.sqrt(square_H) * math.sqrt(self.square + square)

    def made_room(self, H: FloatArray, T: FloatArray, weight: FloatArray | None, ridge: float) -> Accumulator:
        """This accumulator while (σ₁² + λ)/λ, a bound of the squared condition, is below the limit; else a `QR`."""
        heaviest = 1.0 if weight is None else float(weight.max(initial=0.0))
        of_H, of_T = (heaviest * row_square(rows) for rows in (H, T))
        bound = self.largest_eigenvalue + of_H * table_square(self.algebra)
        limit = LARGEST_CONDITION[self.dtype.name]
        is_safe = self._holds(H.shape[0], of_H, of_T) and bound + ridge <= limit**2 * ridge
        return self if is_safe else QR.following(self)

    def can_resume(self, method: type[Accumulator]) -> bool:
        return method in (Gram, QR)

    def resumed_by(self, method: type[Accumulator]) -> Accumulator:
        return QR.following(self) if method is QR else self

    @property
    def largest_eigenvalue(self) -> float:
        """Of the Gram matrices: the largest trace of a block."""
        return self._factor * self._factor * self._largest_trace() if self._has_forms else math.inf

    def _largest_trace(self) -> float:
        """The largest trace of a block's Gram matrix, for the table without its factor; a bound of it for few rows."""
        if self.few:
            return self.square_H * float(np.sum(self._unit.table**2))
        if self._squares is None or self._plan is None:
            return 0.0
        of_blocks = gram_forms(self._unit)
        symmetric = np.concatenate([of_block.signs for of_block in of_blocks]) > 0
        of_forms = symmetric * (self._plan.to_forms @ to_numpy(traces(self._squares)))
        on_diagonal, first = [], 0
        for of_block in of_blocks:
            last = first + len(of_block.forms)
            on_diagonal.append(float(np.einsum("fqq->f", of_block.patterns).real @ of_forms[first:last]))
            first = last
        return max(on_diagonal)

    # ------------------------------------------------------------------ rows

    def _add(self, H: FloatArray, T: Numbers) -> None:
        if self._plan is None or max(self._sizes()) >= limits.largest_sum(self.dtype):
            return  # not safe: `problems` refuses this accumulator, so its sums are never read
        terms, of_H, at = self._products(T)
        backend = backend_of(H)
        h = backend.planes(H, of_H, "narrow")
        h_planes = [h[n, ...] for n in range(of_H.shape[1])]
        t_planes = T.planes(terms.out)
        of_plan = [h_planes[n] for n in at[terms.left.shape[1] :]]
        squares = [[(of_plan[a], of_plan[b], c) for a, b, c in pairs] for pairs in self._plan.sums]
        by_right = terms.by_right()
        crosses: list[list[Pair]] = [
            [(h_planes[at[p]], t_planes[s, ...], c) for p, s, c in by_right.get(q, [])]
            for q in range(terms.right.shape[1])
        ]
        n, L = self._place_of(terms.right), self.unknowns
        known = self._crosses[n].sums if n < len(self._crosses) else None
        self._squares, sums = backend.add_products(
            H, Sums(self._squares, squares, (L, L)), Sums(known, crosses, (L, self.targets))
        )
        self._crosses[n : n + 1] = [Cross(terms.right, sums)]  # replaces entry n, or appends it

    def _products(self, T: Numbers) -> tuple[Scheme, NDArray[np.float64], list[int]]:
        """The scheme for HᵀT, the different planes of H in it and in the plan, and which of them each plane is.

        Where the planes of T are formed already for the hidden layer, a scheme that takes these costs nothing more.
        """
        assert self._plan is not None
        # Only then is it worth to find that scheme, which may take a search.
        reverse = reverse_scheme(self._unit, T.support) if T.has_planes() else None
        if reverse is not None and T.has_planes(reverse.out):
            terms = reverse
        else:
            search = is_large_product(self.unknowns, self.targets)
            schemes = (
                scheme(self._unit, None, T.support, search=search),
                products_of_components(self._unit, T.support),
            )
            terms = min(schemes, key=lambda one: (len(one.terms), one.left.shape[1]))
        return terms, *_planes_of_H(terms, self._plan)

    def _place_of(self, right: NDArray[np.float64]) -> int:
        """Where the sums for this matrix are, or the end of the list."""
        same = (n for n, cross in enumerate(self._crosses) if np.array_equal(cross.right, right))
        return next(same, len(self._crosses))

    def _merge(self, other: Gram) -> None:
        if other._squares is not None and self._plan is not None and other._plan is not None:
            is_same = _are_same(self._plan, other._plan)
            squares = to_numpy(other._squares) if is_same else self._squares_of(other._forms())
            self._squares = squares.copy() if self._squares is None else to_numpy(self._squares) + squares
        for right, sums in other._crosses:
            n = self._place_of(right)
            before = 0 if n == len(self._crosses) else to_numpy(self._crosses[n].sums)
            self._crosses[n : n + 1] = [Cross(right, before + to_numpy(sums))]

    def _fade(self, share: float) -> None:
        self._squares = None if self._squares is None else self._squares * share
        self._crosses = [Cross(right, sums * share) for right, sums in self._crosses]

    def take_out(self, other: Accumulator) -> None:
        self.sum_few()
        other.sum_few()
        other.fade(-1.0)
        self.merge(other)
        self.n_rows, self.n_counted = self.n_rows - 2 * other.n_rows, self.n_counted - 2 * other.n_counted
        self._taken -= other.square_H
        self.square = max(self.square, 0.0)  # which rounding may have left below zero

    @property
    def cancelled(self) -> float:
        return (self.square_H + self._taken) / self.square_H if self.square_H > 0 else math.inf

    @property
    def is_possible(self) -> bool:
        for problem in self._normal_equations():
            values = linalg.eigvalsh(problem.gram, check_finite=False)
            if values[0] < -problem.floor * self.cancelled * max(values[-1], 0.0):
                return False
        return self.n_rows >= 0 and self.weight > 0

    def restricted(self, unknowns: NDArray[np.intp]) -> Gram:
        part = self._part(len(unknowns), self.targets)
        if self.few:
            return self.with_few(part, lambda H: H[:, unknowns], lambda T: T)
        if self._squares is not None:
            part._squares = to_numpy(self._squares)[:, unknowns[:, None], unknowns]
        part._crosses = [Cross(right, to_numpy(sums)[:, unknowns]) for right, sums in self._crosses]
        return part

    def combined(self, C: NDArray[np.float64]) -> Gram:
        part = self._part(self.unknowns, C.shape[1])
        if self.few:
            return self.with_few(part, lambda H: H, lambda T: mixed(T, C))
        part._squares = self._squares
        part._crosses = [Cross(right, to_numpy(sums) @ C.astype(self.dtype)) for right, sums in self._crosses]
        return part

    def _part(self, unknowns: int, targets: int) -> Gram:
        """An accumulator without sums that stands for the same rows, by the same plan."""
        part = Gram(self.algebra, unknowns, targets, self.dtype, self._plan)
        part._count_as(self)
        return part

    def over(self, algebra: Algebra, unknowns: Embedding, targets: Embedding) -> Gram:
        (L, d), N = unknowns.shape, targets.shape[0]
        unit = unit_algebra(algebra)[0]
        plan = gram_plan(unit, search=False) if have_forms(unit) else None  # no rows are to come
        new = Gram(algebra, L, N, self.dtype, plan)
        if self.few:
            return self.with_few(new, lambda H: unknowns.numbers(H[:, :, 0]), lambda T: targets.numbers(T[:, :, 0]))
        new._count_as(self)
        if self._squares is None or plan is None:
            return new
        # HᵀH and HᵀT of all components, as (L, d, L, d) and (L, d, N, d)
        squares = unknowns.numbers(np.moveaxis(unknowns.numbers(self._forms()[0]), 0, 2))
        cross = targets.numbers(np.moveaxis(unknowns.numbers(self._coordinates()[0].T), 0, 2))
        # Q_F = Σ_ij F[i, j] H_iᵀH_j, and Φ_L(H)ᵀφ(T) = Σ_ik table[i, j, k] H_iᵀT_k for every j
        forms = form_matrices(unit)
        new._squares = new._squares_of(
            (forms.reshape(-1, d * d).astype(self.dtype) @ squares.transpose(1, 3, 0, 2).reshape(d * d, -1)).reshape(
                -1, L, L
            )
        )
        of_units = unit.table.transpose(1, 0, 2).reshape(d, d * d).astype(self.dtype)
        sums = (of_units @ cross.transpose(1, 3, 0, 2).reshape(d * d, -1)).reshape(d, L, N)
        new._crosses = [Cross(np.eye(d), sums)]
        return new

    # ------------------------------------------------------------------ files

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Also three arrays of its own.

        forms : (F, d, d), the forms of HᵀH as coefficients of the products of components
        squares : (F, L, L), their sums Q_F
        cross : (d, L, N), Φ_L(H)ᵀφ(T) in the block basis
        """
        self.sum_few()
        cross = self._coordinates()
        cross = cross if self._factor == 1 else self.dtype.type(self._factor) * cross
        own = {"forms": form_matrices(self._unit), "squares": self._forms(), "cross": cross}
        return super().arrays() | own

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        arrays = _in_these_forms(arrays, form_matrices(self._unit))
        super().restore(arrays)
        self._squares = self._squares_of(arrays["squares"])
        # In the block basis, which is orthogonal, the sums are Φ_L(H)ᵀφ(T) itself.
        self._crosses = [Cross(block_basis(self._unit).coordinates, arrays["cross"] / self.dtype.type(self._factor))]
        self.square_H = self._largest_trace()  # the files of a model do without it

    # ------------------------------------------------------------------ from sums to problems

    def problems(self) -> list[NormalEquations] | list[FewRows]:
        if not self._has_forms:
            raise ValueError(
                "`solver` must not be 'gram' for an algebra that does not split into blocks of at most 64 components, "
                f"got one of dimension {self.algebra.dim}. Take 'qr' or 'auto'."
            )
        self._check_safe("It sums squares: take 'qr' or 'auto', or scale the columns.")
        if self.few:
            return problems_of_rows(FewRows, self.algebra, self.few)
        return self._normal_equations()

    def _normal_equations(self) -> list[NormalEquations]:
        basis = block_basis(self._unit)
        grams, coordinates = self._block_grams(), self._coordinates()
        return [
            NormalEquations(gram, coordinate_matrix(coordinates[at], block), block.parts * block.copies, self._factor)
            for gram, at, block in zip(grams, basis.coordinate_slices, basis.blocks)
        ]

    def _forms(self) -> FloatArray:
        """All forms Q_F of HᵀH, (F, L, L)."""
        signs, L = self._signs(), self.unknowns
        if self._squares is None or self._plan is None:
            return scratch((len(signs), L, L), self.dtype)
        forms = scratch((len(signs), L, L), self.dtype, zeros=False)
        halves = 0.5 * self._plan.to_forms.astype(self.dtype)
        np.matmul(halves, to_numpy(self._squares).reshape(-1, L**2), out=forms.reshape(-1, L**2))
        for form, sign in zip(forms, signs):
            form += form.T if sign > 0 else -form.T
        return forms

    def _squares_of(self, forms: FloatArray) -> FloatArray:
        """The sums S_n that have these forms: the inverse of `_forms`.

        The symmetric forms decide the symmetric parts of the S_n, the antisymmetric ones their antisymmetric parts, by
        the pseudoinverse of the rows of `to_forms` that belong to them.
        """
        assert self._plan is not None
        to_forms, signs = self._plan.to_forms, self._signs()
        from_forms = np.zeros(to_forms.T.shape)
        for sign in (1, -1):
            from_forms[:, signs == sign] = np.linalg.pinv(to_forms[signs == sign])
        return np.tensordot(from_forms.astype(self.dtype), forms, axes=1)

    def _signs(self) -> NDArray[np.float64]:
        return np.concatenate([of_block.signs for of_block in gram_forms(self._unit)])

    def _coordinates(self) -> FloatArray:
        """Φ_L(H)ᵀφ(T) in the block basis, as planes (d, L, N)."""
        d, L, N, total = self.algebra.dim, self.unknowns, self.targets, None
        for right, sums in self._crosses:
            to_coordinates = block_basis(self._unit).coordinates.T @ right
            image = sums = to_numpy(sums)
            if not is_identity(np.round(to_coordinates, 15)):
                image = scratch((d, L, N), self.dtype)
                np.matmul(to_coordinates.astype(self.dtype), sums.reshape(len(sums), -1), out=image.reshape(d, -1))
            total = image if total is None else total + image
        return np.zeros((d, L, N), self.dtype) if total is None else total

    def _block_grams(self) -> list[Array]:
        """B(H)ᴴB(H), (n L, n L), of every block."""
        grams, L, first = [], self.unknowns, 0
        sums = None if self._squares is None else to_numpy(self._squares)
        for block, of_block in zip(block_basis(self._unit).blocks, gram_forms(self._unit)):
            of_forms = slice(first, first + len(of_block.forms))
            first = of_forms.stop
            dtype = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
            if sums is None or self._plan is None:
                grams.append(scratch((block.size * L, block.size * L), dtype))
            else:
                grams.append(block_gram(of_block.patterns, self._plan.to_forms[of_forms], sums, dtype))
        return grams


def _in_these_forms(arrays: Mapping[str, NDArray[Any]], forms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
    """The arrays of a file in these forms, if these forms span those of the file; else the same.

    Earlier releases took another basis of the forms of some tables. With G = MF for their forms G and these forms F the
    sums in these forms are M⁺ times the given ones: every combination of G, as the Gram matrices are, comes out the
    same.
    """
    given, squares = arrays.get("forms"), arrays.get("squares")
    if given is None or squares is None or given.dtype != forms.dtype or given.shape[1:] != forms.shape[1:]:
        return arrays
    if 0 in (len(forms), len(given)) or squares.shape[:1] != given.shape[:1] or not np.all(np.isfinite(given)):
        return arrays
    if given.shape == forms.shape and np.allclose(given, forms, rtol=0, atol=1e-8):
        return arrays
    F, G = (matrices.reshape(len(matrices), forms[0].size) for matrices in (forms, given))
    M = np.linalg.lstsq(F.T, G.T, rcond=1e-10)[0].T
    if not np.allclose(M @ F, G, rtol=0, atol=1e-8 * np.abs(G).max(initial=0)):
        return arrays
    sums = np.tensordot(np.linalg.pinv(M), squares, axes=1).astype(squares.dtype)
    return {**arrays, "forms": forms, "squares": sums}


def _are_same(plan: GramPlan, other: GramPlan) -> bool:
    """Whether the sums of two plans can be added: one plan may list the same planes in other products."""
    return (
        plan.sums == other.sums
        and np.array_equal(plan.planes, other.planes)
        and np.array_equal(plan.to_forms, other.to_forms)
    )


@lru_cache(maxsize=256)
def _planes_of_H(terms: Scheme, plan: GramPlan) -> tuple[NDArray[np.float64], list[int]]:
    """The different planes of H in HᵀT and HᵀH, (d, planes), and which of them each plane is."""
    basis = np.concatenate([terms.left, plan.planes], axis=1)
    columns: list[NDArray[np.float64]] = []
    alike: dict[bytes, list[int]] = {}  # by what rounding leaves of them
    at: list[int] = []
    for column, rounded in zip(basis.T, np.round(basis.T, 10) + 0.0):
        known, atol = alike.setdefault(rounded.tobytes(), []), 1e-15 * np.abs(column).max()
        same = (n for n in known if np.allclose(columns[n], column, rtol=0, atol=atol))
        at.append(next(same, len(columns)))
        if at[-1] == len(columns):
            known.append(len(columns))
            columns.append(column)
    return np.stack(columns, axis=1), at
