"""Normal equations: the sums Φ_L(H)ᵀΦ_L(H) and Φ_L(H)ᵀφ(T), without ever forming Φ_L(H).

Both are sums of real products of *planes*, linear combinations of the components of H and T.

- HᵀT: the terms of a bilinear scheme of the table (`bilinear`), here with the roles (H, T) -> X.
- HᵀH: the products that span the forms of every block (`forms`), from which B(H)ᴴB(H) follows at the end.

The state is these sums. Forward errors grow with the square of the condition, so `solve` estimates it, and `choice`
decides whether the answer can be trusted. Sums are those of the table without its overall factor, `unit_algebra`, whose
square may be beyond the precision. Squares and products of numbers far from 1 may be beyond the precision of the rows:
the sums are then not `is_safe`, and give no problem to solve. A block of more than 64 components has too many
forms: the sums are then not formed at all, and never safe, so that `auto` goes on to `qr`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import are_together, is_elsewhere, namespace, sums_of_products, to_numpy
from hyperelm._memory import scratch
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.bilinear import Scheme, is_worth_searching, reverse_scheme, scheme
from hyperelm.decomposition import unit_algebra
from hyperelm.planes import block_basis, gather, is_identity, real_parts
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.forms import GramPlan, form_matrices, gram_forms, gram_plan, have_forms
from hyperelm.solvers.problem import Array, NormalEquations
from hyperelm.solvers.sums import Pair, Planes, nonzero_components, sum_products, team_planes
from hyperelm.solvers.team import Team, pieces

_DENSE = 4096  # coefficients of the forms in a block's Gram matrix, from which on they are one matrix product
_NARROWEST = 512  # columns of T below which a piece of the products costs more than another thread brings


class Kind(NamedTuple):
    """Which scheme sums HᵀT: by the components of T that are not zero in the row block, and by whose planes."""

    support: tuple[int, ...]
    reverse: bool


class Gram(Accumulator):
    """Accumulator of the normal equations of every block."""

    method = "gram"
    basis = ("coordinates", "forms")

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        self._unit, self._factor = unit_algebra(algebra)
        self._has_forms = have_forms(self._unit)
        # HᵀH as the sums of a plan and HᵀT by the scheme that a row block took, where its rows live ...
        self._squares: FloatArray | None = None
        self._crosses: dict[Kind, FloatArray] = {}
        # ... and, in NumPy, what is summed of them: the forms of HᵀH, (F, L, L), HᵀT in the block basis, (d, L, N).
        self._forms: FloatArray | None = None
        self._coordinates: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Forms and the block basis: products that a search finds may be others on another machine."""
        if self._has_forms:
            self._summed_squares()
            self._summed_crosses()
        return self.__dict__

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Also forms, (F, d, d), of HᵀH; squares, (F, L, L): their sums; cross, (d, L, N): Φ_L(H)ᵀφ(T)."""
        cross = self._summed_crosses()
        cross = cross if self._factor == 1 else self.dtype.type(self._factor) * cross
        own = {"forms": form_matrices(self._unit), "squares": self._summed_squares(), "cross": cross}
        return super().arrays() | own

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        arrays = _in_these_forms(arrays, form_matrices(self._unit))
        super().restore(arrays)
        self._squares, self._crosses = None, {}
        self._forms = arrays["squares"].copy()
        self._coordinates = arrays["cross"] / self.dtype.type(self._factor)
        self.square_H = self._largest_trace()  # the files of a model do without it

    @property
    def is_safe(self) -> bool:
        """Whether the entries of HᵀH and HᵀT, by Σ‖h‖² and Σ‖t‖², neither overflow nor vanish."""
        return self.holds(0, 0.0, 0.0)

    def holds(self, rows: int, square_H: float, square: float) -> bool:
        """Whether it is so with more rows, of these squares; never for an algebra that has too many forms."""
        if not self._has_forms:
            return False
        info, numbers = np.finfo(self.dtype), (self.rows + rows) * self.unknowns * self.algebra.dim
        lowest = float(info.tiny / info.eps) * numbers
        return all(lowest < size < self._highest for size in self._sizes(square_H, square) if size != 0)

    def _sizes(self, square_H: float = 0.0, square: float = 0.0) -> tuple[float, float]:
        """Of HᵀH and HᵀT."""
        square_H += self.square_H
        return square_H, math.sqrt(square_H) * math.sqrt(self.square + square)

    @property
    def _highest(self) -> float:
        return 1e-4 * float(np.finfo(self.dtype).max)  # planes are larger than components, but by no more than that

    def _add(self, H: FloatArray, T: FloatArray, team: Team, known: Planes | None) -> None:
        if max(self._sizes()) >= self._highest or not self._has_forms:
            return  # nothing will be asked of sums that overflow, or that are too many
        plan, kind = self._plan(), self._kind_of(T, known, team)
        products = self._scheme(kind)
        of_H, at = _planes_of_H(products, plan)
        at_squares = at[products.left.shape[1] :]
        h = team_planes(H, of_H, "narrow", team)
        t = known.image if known and kind.reverse else team_planes(T, products.out, "wide", team)
        squares = [[(h[at_squares[a], ...], h[at_squares[b], ...], c) for a, b, c in sums] for sums in plan.sums]
        crosses = {q: [(h[at[p], ...], t[s, ...], c) for p, s, c in terms] for q, terms in products.by_right().items()}
        if not all(are_together(H, sums) for sums in (self._squares, *self._crosses.values()) if sums is not None):
            self._summed_squares()
            self._summed_crosses()
        if is_elsewhere(H):
            self._sum_elsewhere(squares, crosses, kind, H)
        else:
            self._sum(squares, crosses, kind, team)

    def _sum(self, squares: list[list[Pair]], crosses: dict[int, list[Pair]], kind: Kind, team: Team) -> None:
        """Add aᵀb of all pairs of planes to the sums, a team at work."""
        plan, cross = self._plan(), self._cross(kind)
        if self._squares is None:
            self._squares = np.zeros((len(plan.sums), self.unknowns, self.unknowns), self.dtype)
        work: list[tuple[Sequence[Pair], FloatArray]] = []
        parts = min(-(-team.threads // max(1, len(crosses))), max(1, self.targets // _NARROWEST))
        for q, pairs in crosses.items():
            for columns in pieces(self.targets, parts):
                work.append(([(a.T, b[:, columns], c) for a, b, c in pairs], cross[q, :, columns]))
        for total, sums, pairs in zip(self._squares, plan.sums, squares):
            if len(plan.sums) == 1 and all(a == b for a, b, _ in sums):
                work.extend(_corners(pairs, total))
            else:
                work.append((_transposed(pairs), total))
        # The longest first, so that all threads end at the same time.
        work.sort(key=lambda sums: len(sums[0]) * sums[1].size, reverse=True)
        team.run([partial(sum_products, pairs, total, team) for pairs, total in work])

    def _sum_elsewhere(
        self, squares: list[list[Pair]], crosses: dict[int, list[Pair]], kind: Kind, H: FloatArray
    ) -> None:
        """The same where the rows H live, by a library that has its own ways to be fast."""
        L, N, planes_of_x = self.unknowns, self.targets, self._scheme(kind).right.shape[1]
        square = sums_of_products([_transposed(pairs) for pairs in squares], (L, L), H)
        cross = sums_of_products([_transposed(crosses.get(q, [])) for q in range(planes_of_x)], (L, N), H)
        self._squares = square if self._squares is None else self._squares + square
        self._crosses[kind] = cross if kind not in self._crosses else self._crosses[kind] + cross

    def _plan(self) -> GramPlan:
        return gram_plan(self._unit, search=is_worth_searching(self.unknowns, self.unknowns))

    def _kind_of(self, T: FloatArray, known: Planes | None, team: Team) -> Kind:
        if known and reverse_scheme(self._unit, known.support):
            return Kind(known.support, reverse=True)
        return Kind(known.support if known else nonzero_components(T, team), reverse=False)

    def _scheme(self, kind: Kind) -> Scheme:
        if kind.reverse and (products := reverse_scheme(self._unit, kind.support)):
            return products
        return scheme(self._unit, None, kind.support, search=is_worth_searching(self.unknowns, self.targets))

    def _cross(self, kind: Kind) -> FloatArray:
        if kind not in self._crosses:
            planes_of_x = self._scheme(kind).right.shape[1]
            self._crosses[kind] = np.zeros((planes_of_x, self.unknowns, self.targets), self.dtype)
        return self._crosses[kind]

    def _merge(self, other: Gram) -> None:
        if not self._has_forms:
            return
        for mine, others in (
            (self._summed_squares(), other._summed_squares()),
            (self._summed_crosses(), other._summed_crosses()),
        ):
            mine += others

    def restricted(self, rows: NDArray[np.intp]) -> Gram:
        """What the accumulator of these rows of X alone would hold."""
        part = Gram(self.algebra, len(rows), self.targets, self.dtype)
        part._forms = self._summed_squares()[:, rows[:, None], rows]
        part._coordinates = self._summed_crosses()[:, rows]
        part._count_as(self)
        return part

    def combined(self, C: NDArray[np.float64]) -> Gram:
        part = Gram(self.algebra, self.unknowns, C.shape[1], self.dtype)
        part._forms, part._coordinates = self._summed_squares(), self._summed_crosses() @ C.astype(self.dtype)
        part._count_as(self)
        return part

    def problems(self) -> list[NormalEquations]:
        if not self._has_forms:
            raise ValueError(
                "'gram' must have an algebra that splits into blocks of at most 64 components, got one of "
                f"dimension {self.algebra.dim} that does not. Take 'qr' or 'auto'."
            )
        self._check_safe("It sums squares: take 'qr' or 'auto', or scale the columns.")
        basis = block_basis(self._unit)
        coordinates = self._summed_crosses()
        return [
            NormalEquations(gram, gather(coordinates[at], block), block.parts * block.copies, self._factor)
            for gram, at, block in zip(self._block_grams(), basis.coordinate_slices, basis.blocks)
        ]

    @property
    def bound(self) -> float:
        """A number that no eigenvalue of Φ_L(H)ᵀΦ_L(H) exceeds: the largest trace of a block."""
        return self._factor * self._factor * self._largest_trace() if self._has_forms else math.inf

    def _largest_trace(self) -> float:
        """That of the table without its factor."""
        of_blocks = gram_forms(self._unit)
        traces = np.zeros(sum(len(of_block.forms) for of_block in of_blocks))
        if self._forms is not None:
            traces += np.trace(self._forms, axis1=1, axis2=2)
        if self._squares is not None:
            symmetric = np.concatenate([of_block.signs for of_block in of_blocks]) > 0
            traces += symmetric * (self._plan().to_forms @ _traces(self._squares))
        on_diagonal, first = [], 0
        for of_block in of_blocks:
            last = first + len(of_block.forms)
            on_diagonal.append(float(np.einsum("fqq->f", of_block.entries).real @ traces[first:last]))
            first = last
        return max(on_diagonal)

    def _summed_squares(self) -> FloatArray:
        """The forms of HᵀH, which from now on stand for the sums of the plan."""
        signs = np.concatenate([of_block.signs for of_block in gram_forms(self._unit)])
        if self._squares is not None:
            squares = to_numpy(self._squares).reshape(-1, self.unknowns**2)
            forms = scratch((len(signs), self.unknowns, self.unknowns), self.dtype)
            halves = 0.5 * self._plan().to_forms.astype(self.dtype)
            np.matmul(halves, squares, out=forms.reshape(-1, self.unknowns**2))
            for form, sign in zip(forms, signs):
                form += form.T if sign > 0 else -form.T
            if self._forms is not None:
                forms += self._forms
            self._forms, self._squares = forms, None
        if self._forms is None:
            self._forms = np.zeros((len(signs), self.unknowns, self.unknowns), self.dtype)
        return self._forms

    def _summed_crosses(self) -> FloatArray:
        """Φ_L(H)ᵀφ(T) in the block basis, as planes (d, L, N), which from now on stand for the sums by scheme."""
        total = self._coordinates
        for kind, cross in self._crosses.items():
            to_coordinates = block_basis(self._unit).coordinates.T @ self._scheme(kind).right
            image = cross = to_numpy(cross)
            if not is_identity(to_coordinates):
                image = scratch((self.algebra.dim, self.unknowns, self.targets), self.dtype)
                rows = image.reshape(self.algebra.dim, -1)
                np.matmul(to_coordinates.astype(self.dtype), cross.reshape(len(cross), -1), out=rows)
            if total is None:
                total = image
            else:
                total += image
        if total is None:
            total = np.zeros((self.algebra.dim, self.unknowns, self.targets), self.dtype)
        self._coordinates, self._crosses = total, {}
        return total

    def _block_grams(self) -> Iterator[Array]:
        """B(H)ᴴB(H), (n L, n L), of every block."""
        sums, L, first = self._summed_squares(), self.unknowns, 0
        for block, of_block in zip(block_basis(self._unit).blocks, gram_forms(self._unit)):
            kind = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
            gram = scratch((block.size, L, block.size, L), kind)
            totals = sums[first : first + len(of_block.forms)]
            first += len(of_block.forms)
            for part, entries in zip(real_parts(gram), real_parts(of_block.entries)):
                if np.count_nonzero(entries) > _DENSE:
                    product = entries.reshape(len(entries), -1).astype(self.dtype).T @ totals.reshape(len(totals), -1)
                    part[...] = product.reshape(block.size, block.size, L, L).swapaxes(1, 2)
                    continue
                for form, q, r in np.argwhere(entries):
                    part[q, :, r] += self.dtype.type(entries[form, q, r]) * totals[form]
            yield gram.reshape(block.size * L, block.size * L)


def _in_these_forms(arrays: Mapping[str, NDArray[Any]], forms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
    """The arrays of a summary with the sums of other forms, if these forms span them; else the same.

    Earlier releases took another basis of the forms of some tables. With G = MF for their forms G and these forms F the
    sums are those of M⁺: whatever is a combination of G, as the Gram matrices are, comes out the same.
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


def _traces(sums: FloatArray) -> FloatArray:
    xp = namespace(sums=sums)
    return np.trace(sums, axis1=1, axis2=2) if xp is np else to_numpy(xp.linalg.trace(sums))


def _transposed(pairs: list[Pair]) -> list[Pair]:
    return [(a.T, b, c) for a, b, c in pairs]


def _corners(pairs: list[Pair], total: FloatArray) -> Iterator[tuple[list[Pair], FloatArray]]:
    """A sum of squares in three pieces: it is symmetric, so one corner counts twice and the opposite one not at all."""
    first, last = pieces(len(total), 2) if len(total) > 1 else (slice(0, 1), slice(1, 1))
    for rows, columns, times in ((first, last, 2.0), (first, first, 1.0), (last, last, 1.0)):
        yield [(a[:, rows].T, b[:, columns], times * c) for a, b, c in pairs], total[rows, columns]


@lru_cache(maxsize=256)
def _planes_of_H(products: Scheme, plan: GramPlan) -> tuple[NDArray[np.float64], list[int]]:
    """The different planes of H in HᵀT and HᵀH, and which of them each plane is."""
    basis = np.concatenate([products.left, plan.planes], axis=1)
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
