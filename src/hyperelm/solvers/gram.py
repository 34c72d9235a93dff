"""Normal equations: the sums Φ_L(H)ᵀΦ_L(H) and Φ_L(H)ᵀφ(T), without ever forming Φ_L(H).

Both are sums of real products of *planes*, linear combinations of the components of H and T.

- HᵀT: the terms of a bilinear scheme of the table (`bilinear`), here with the roles (H, T) -> X.
- HᵀH: for every block of the algebra the products of the entries of B(H), Σ_p B_pqᴴ B_pq' (n³ of size L x L, four
  times as many if it is complex), or, where that is less, of its p independent components (p²), from which
  B(H)ᴴB(H) = Σ_st (B_sᴴB_t) ⊗ H_sᵀH_t follows at the end.

The state is these sums. Forward errors grow with the square of the condition, so `solve` estimates it, and `choice`
decides whether the answer can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._memory import scratch
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.bilinear import Scheme, is_worth_searching, reverse_scheme, scheme
from hyperelm.decomposition import Block, decompose, tidy
from hyperelm.products import block_basis, gather
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, NormalEquations
from hyperelm.solvers.sums import Planes, nonzero_components, sum_products, team_planes
from hyperelm.solvers.team import Team, pieces

_TASKS = 8  # into which HᵀT is split at least, for as many threads

Pair = tuple[int, int, float]
Coefficients = dict[tuple[int, int], complex]


class Kind(NamedTuple):
    """Which scheme sums HᵀT: by the components of T that are not zero in the row block, and by whose planes."""

    support: tuple[int, ...]
    reverse: bool


class Gram(Accumulator):
    """Accumulator of the normal equations of every block."""

    method = "gram"
    basis = ("coordinates", "planes")

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        self._squares = np.zeros((len(gram_plan(algebra).pairs), unknowns, unknowns), self.dtype)
        # HᵀT by the scheme that a row block took, and what has been summed of it in the block basis.
        self._crosses: dict[Kind, FloatArray] = {}
        self._coordinates: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """In the block basis: a scheme that a search finds may be another one on another machine."""
        self._summed()
        return self.__dict__

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Also planes, (d, p): those of H; squares, (sums, L, L): of their products; cross, (d, L, N): Φ_L(H)ᵀφ(T)."""
        own = {"planes": gram_plan(self.algebra).planes, "squares": self._squares, "cross": self._summed()}
        return super().arrays() | own

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self._squares, self._coordinates, self._crosses = arrays["squares"].copy(), arrays["cross"].copy(), {}

    def _add(self, H: FloatArray, T: FloatArray, team: Team, known: Planes | None) -> None:
        plan = gram_plan(self.algebra)
        kind = self._kind_of(T, known, team)
        products = self._scheme(kind)
        of_H, at = _planes_of_H(products, plan)
        at_squares = at[products.left.shape[1] :]
        h = team_planes(H, of_H, "narrow", team)
        t = known.image if known and kind.reverse else team_planes(T, products.out, "wide", team)
        tasks = []
        for total, sums in zip(self._squares, plan.pairs):
            pairs = [(h[at_squares[a]].T, h[at_squares[b]], c) for a, b, c in sums]
            tasks.append(partial(sum_products, pairs, total, team))
        cross = self._cross(kind)
        planes_of_x = products.by_right()
        for q, terms in planes_of_x.items():
            for columns in pieces(self.targets, -(-_TASKS // len(planes_of_x))):
                pairs = [(h[at[p]].T, t[s, :, columns], c) for p, s, c in terms]
                tasks.append(partial(sum_products, pairs, cross[q, :, columns], team))
        team.run(tasks)

    def _kind_of(self, T: FloatArray, known: Planes | None, team: Team) -> Kind:
        if known and reverse_scheme(self.algebra, known.support):
            return Kind(known.support, reverse=True)
        return Kind(known.support if known else nonzero_components(T, team), reverse=False)

    def _scheme(self, kind: Kind) -> Scheme:
        if kind.reverse and (products := reverse_scheme(self.algebra, kind.support)):
            return products
        return scheme(self.algebra, None, kind.support, search=is_worth_searching(self.unknowns, self.targets))

    def _cross(self, kind: Kind) -> FloatArray:
        if kind not in self._crosses:
            planes_of_x = self._scheme(kind).right.shape[1]
            self._crosses[kind] = np.zeros((planes_of_x, self.unknowns, self.targets), self.dtype)
        return self._crosses[kind]

    def _merge(self, other: Gram) -> None:
        self._squares += other._squares
        coordinates = other._coordinates
        for kind, cross in other._crosses.items():
            mine = self._cross(kind)
            mine += cross
        if coordinates is not None:
            mine = self._summed()
            mine += coordinates

    def restricted(self, rows: NDArray[np.intp]) -> Gram:
        """What the accumulator of these rows of X alone would hold."""
        part = Gram(self.algebra, len(rows), self.targets, self.dtype)
        part._squares = self._squares[:, rows[:, None], rows]
        part._coordinates = self._summed()[:, rows]
        part.rows, part.weight, part.square = self.rows, self.weight, self.square
        return part

    def problems(self) -> list[NormalEquations]:
        basis = block_basis(self.algebra)
        coordinates = self._summed()
        return [
            NormalEquations(self._block_gram(n), gather(coordinates[at], block), block.parts * block.copies)
            for n, (block, at) in enumerate(zip(basis.blocks, basis.coordinate_slices))
        ]

    def _summed(self) -> FloatArray:
        """Φ_L(H)ᵀφ(T) in the block basis, as planes (d, L, N), which from now on stand for the sums by scheme."""
        total: FloatArray = scratch((self.algebra.dim, self.unknowns, self.targets), self.dtype)
        flat = total.reshape(self.algebra.dim, -1)
        for kind, cross in self._crosses.items():
            to_coordinates = block_basis(self.algebra).coordinates.T @ self._scheme(kind).right
            for out, row in zip(flat, to_coordinates.astype(self.dtype)):
                for c, plane in zip(row, cross.reshape(len(cross), -1)):
                    out += c * plane
        if self._coordinates is not None:
            total += self._coordinates
        self._coordinates, self._crosses = total, {}
        return total

    def _block_gram(self, n: int) -> Array:
        """B(H)ᴴB(H), (n L, n L), of one block from the sums of its planes."""
        block, assembly = decompose(self.algebra)[n], gram_plan(self.algebra).assembly[n]
        L = self.unknowns
        kind = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
        gram = scratch((block.size, L, block.size, L), kind)
        for total, coefficients in assembly:
            for (q, r), c in coefficients.items():
                gram[q, :, r] += kind.type(c if block.is_complex else c.real) * self._squares[total]
        matrix = gram.reshape(block.size * L, block.size * L)
        # Of the products that are each other's adjoints only one was summed, with twice its coefficient.
        matrix += matrix.conj().T
        matrix *= kind.type(0.5)
        return matrix


@lru_cache(maxsize=256)
def _planes_of_H(products: Scheme, plan: GramPlan) -> tuple[NDArray[np.float64], list[int]]:
    """The different planes of H in HᵀT and HᵀH, and which of them each plane is."""
    basis = np.concatenate([products.left, plan.planes], axis=1)
    columns: list[NDArray[np.float64]] = []
    at: list[int] = []
    for column in basis.T:
        same = (n for n, known in enumerate(columns) if np.allclose(known, column, rtol=0, atol=1e-15))
        at.append(next(same, len(columns)))
        if at[-1] == len(columns):
            columns.append(column)
    return np.stack(columns, axis=1), at


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Which products of planes of H give the Gram matrices.

    planes : (d, p), from the components of H to its planes
    pairs : for every sum, the pairs of planes that it adds up
    assembly : for every block, the sums and where they go: {(row, column) of the block: coefficient}
    """

    planes: NDArray[np.float64]
    pairs: list[list[Pair]]
    assembly: list[list[tuple[int, Coefficients]]]


@lru_cache(maxsize=256)
def gram_plan(algebra: Algebra) -> GramPlan:
    columns: list[NDArray[np.float64]] = []
    pairs: list[list[Pair]] = []
    assembly: list[list[tuple[int, Coefficients]]] = []
    for block in decompose(algebra):
        first = sum(basis.shape[1] for basis in columns)
        components = _independent_components(block)
        if block.parts**2 * block.size**3 < components.shape[1] ** 2:
            columns.append(_entries(block))
            sums = list(_sums_of_entries(block, first))
        else:
            columns.append(components)
            sums = list(_sums_of_components(block, components, first))
        assembly.append([(len(pairs) + n, coefficients) for n, (_, coefficients) in enumerate(sums)])
        pairs.extend(terms for terms, _ in sums)
    return GramPlan(np.concatenate(columns, axis=1), pairs, assembly)


def _entries(block: Block) -> NDArray[np.float64]:
    """(d, n n [2]): the entries of B as functions of the components."""
    flat = block.matrices.reshape(len(block.matrices), -1)
    return flat.view(np.float64) if block.is_complex else flat


def _independent_components(block: Block) -> NDArray[np.float64]:
    """(d, p): orthonormal functions of the components that decide B; the components themselves if all are needed."""
    u, sigma, _ = np.linalg.svd(_entries(block), full_matrices=False)
    seen = sigma > 1e-10 * sigma.max(initial=1e-300)
    return tidy(u[:, seen])


def _sums_of_entries(block: Block, first: int) -> Iterator[tuple[list[Pair], Coefficients]]:
    """Σ_p B_pqᴴ B_pr for q <= r, the real and the imaginary part apart."""
    n, parts = block.size, block.parts
    at = first + parts * np.arange(n * n).reshape(n, n)
    for q in range(n):
        for r in range(q, n):
            twice = 1 if q == r else 2
            yield [(at[p, q] + i, at[p, r] + i, 1.0) for p in range(n) for i in range(parts)], {(q, r): twice}
            if block.is_complex:
                skew = [(at[p, q], at[p, r] + 1, 1.0) for p in range(n)]
                if q != r:
                    skew += [(at[p, q] + 1, at[p, r], -1.0) for p in range(n)]
                yield skew, {(q, r): 2j}


def _sums_of_components(
    block: Block, components: NDArray[np.float64], first: int
) -> Iterator[tuple[list[Pair], Coefficients]]:
    """H_sᵀH_t for s <= t, which stands for itself and its transpose in B(H)ᴴB(H)."""
    matrices = np.tensordot(components.T, block.matrices, axes=1)
    for s, B_s in enumerate(matrices):
        for t, B_t in enumerate(matrices[s:], start=s):
            product = (1 if s == t else 2) * B_s.conj().T @ B_t
            where = np.argwhere(np.abs(product) > 1e-14 * np.abs(product).max(initial=1e-300))
            yield [(first + s, first + t, 1.0)], {(int(q), int(r)): complex(product[q, r]) for q, r in where}
