"""Exact leave-one-out residuals, for all ridges at once and without refits.

Row m has the hidden numbers a_m, the targets t_m and the weight w_m. With the fitted weights M its residual is
e_m = a_m M - t_m. The leave-one-out residual e₋ₘ is the one that M would give if it had been fitted to all other rows.
It is found in every block of the algebra, in four steps:

1. In the block the row is a matrix A_m = B(a_m), (n, K): n rows of the real problem, which are left out together.
2. S = Σ_m w_m A_mᴴA_m + λ is the matrix of the normal equations for the penalised unknowns.
3. The *leverage matrix* of the row is w_m A_m S⁻¹ A_mᴴ, (n, n). Unknowns without a penalty (the bias) were projected
   out; they add w_m (A_m W)(A_m W)ᴴ, where WWᴴ is the pseudoinverse of their own normal equations.
4. By Woodbury's formula for S without row m,

       e₋ₘ = (1 - leverage matrix)⁻¹ e_m.

Two classes find e_m and the leverage matrices. `BySpectrum` uses the basis V of the singular vectors, in which S is
diagonal: rows in that basis serve every λ. `AtOneRidge` uses the Cholesky factor of S for one λ, or the limit of an
infinite λ, in which only the unknowns without a penalty are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.blocks import Block
from hyperelm._linalg.planes import block_basis, block_matrix, coordinate_matrix, from_planes, planes, put_coordinates
from hyperelm._solvers.accumulator import Accumulator, check_weight
from hyperelm._solvers.dual import CholeskyOfRows, with_cholesky
from hyperelm._solvers.problem import Array, Cholesky, Reduced, in_single
from hyperelm._solvers.spectrum import Spectrum, default_rtol, factors_of, project_out
from hyperelm._validation import FloatArray


class BlockRows(NamedTuple):
    """m rows in one block of the algebra, without what the free unknowns explain of them (`Reduced.project`).

    rows : (n, m, K), B(a), in the basis that the method takes
    rest : (n, m, copies, N), their targets
    free : (n, m, rank), AW of the free unknowns
    own : (n, n, m), AAᴴ of the n rows A of each number, where the method is `dual`
    """

    rows: Array
    rest: Array
    free: Array
    own: Array | None

    def in_single(self, stride: int) -> BlockRows:
        """The rows of this stride in single precision, for a method that is not `dual`."""
        rows, rest, free = (in_single(array[:, ::stride]) for array in (self.rows, self.rest, self.free))
        return BlockRows(rows, rest, free, None)


def block_rows(method: LeaveOneOut, H: FloatArray, T: FloatArray) -> list[BlockRows]:
    """Rows H, (m, L, d), and targets T, (m, N, d), in every block."""
    basis, found = block_basis(method.accumulator.algebra), []
    entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
    for n, block in enumerate(basis.blocks):
        A = block_matrix(entries[basis.entry_slices[n]], block)
        t = coordinate_matrix(coordinates[basis.coordinate_slices[n]], block)
        rows, rest, free = method.reduced[n].project(A, t)
        shape, own = (block.size, len(H)), None
        if method.is_dual:
            given = rows.reshape(*shape, rows.shape[1])
            own = np.einsum("pmk,qmk->pqm", given, given.conj())
        rows = method.in_basis(n, rows)
        rest, free = rest.reshape(*shape, block.copies, method.accumulator.targets), free.reshape(*shape, free.shape[1])
        found.append(BlockRows(rows.reshape(*shape, rows.shape[1]), rest, free, own))
    return found


def residuals_by(
    method: LeaveOneOut, H: FloatArray, T: FloatArray, sample_weight: FloatArray | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """The residuals of rows that are left out, (m, ridges, N, d), and the leverage of each row, (m, ridges)."""
    if len(H) == 0:
        shape = (0, len(method.ridges), method.accumulator.targets, method.accumulator.algebra.dim)
        return np.zeros(shape, method.accumulator.dtype), np.zeros(shape[:2])
    return left_out_by(method, block_rows(method, H, T), check_weight(sample_weight, len(H)))


def left_out_by(
    method: LeaveOneOut, blocks: Sequence[BlockRows], weight: NDArray[np.float64] | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """`residuals_by` for rows that `block_rows` has split into the blocks of the algebra.

    The leverage is a mean over the d components, so that its sum over all rows is tr P_λ/d of the hat matrix P_λ.
    """
    accumulator, ridges, m = method.accumulator, len(method.ridges), blocks[0].rows.shape[1]
    basis, d, leverages = block_basis(accumulator.algebra), accumulator.algebra.dim, np.zeros((m, ridges))
    residuals = np.empty((d, m, ridges * accumulator.targets), accumulator.dtype)
    for n, block in enumerate(basis.blocks):
        e, leverage, rounding = method.residuals(n, blocks[n])
        if weight is not None:
            leverage *= weight
        leverages += block.parts * block.copies / d * np.einsum("pprm->mr", leverage).real
        left_out = _solve_rows(np.eye(block.size)[:, :, None, None] - leverage, e, rounding)
        # (n, ridges, copies, N, m) -> (n m, copies ridges N)
        left_out = left_out.transpose(0, 4, 2, 1, 3).reshape(block.size * m, -1)
        put_coordinates(left_out, residuals, basis.coordinate_slices[n], block)
    return from_planes(residuals, basis.coordinates).reshape(m, ridges, accumulator.targets, d), leverages


class BySpectrum(NamedTuple):
    """All ridges at once, from rows in the basis V of the singular vectors, where S is diagonal."""

    spectrum: Spectrum
    ridges: NDArray[np.float64]

    @property
    def accumulator(self) -> Accumulator:
        return self.spectrum.accumulator

    @property
    def reduced(self) -> Sequence[Reduced]:
        return self.spectrum.reduced

    @property
    def is_dual(self) -> bool:
        return False

    def in_basis(self, number: int, rows: Array) -> Array:
        """A V of rows A in the block with this number, in the unit σ₁."""
        scaled = rows / rows.real.dtype.type(self._unit)
        return np.asarray(scaled @ self.spectrum.parts[number].V)

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        """The residuals e, (n, ridges, copies, N, m), of rows in the block with this number, their leverage matrices,
        (n, n, ridges, m), without the weight, and the rounding of these, (ridges, 1)."""
        (n, m, copies, N), P = block.rest.shape, block.rows
        ridges, part, dtype = self.ridges, self.spectrum.parts[number], P.real.dtype
        sigma, below, seen = self._denominators(number)
        inverse = np.divide(1, below, out=np.zeros(below.shape), where=seen).astype(dtype, copy=False)
        # M = V diag(σ/(σ²+λ)) z, so e = A V diag(σ/(σ²+λ)) z - t.
        coefficients = (inverse * sigma.astype(dtype))[:, None, :] * part.z.T  # (ridges, copies N, K)
        predicted = coefficients.reshape(len(ridges) * copies * N, len(sigma)) @ P.reshape(n * m, len(sigma)).T
        e = np.moveaxis(predicted.reshape(len(ridges), copies, N, n, m), 3, 0)
        e = e - np.moveaxis(block.rest, 1, 3)[:, None]
        leverage = _leverages(lambda p, q: inverse @ (P[p] * P[q].conj()).T, block.free, len(ridges))
        loss = below.max(axis=1, initial=0) / below.min(axis=1, initial=np.inf, where=seen)
        return e, leverage, _rounding(self.accumulator, dtype, loss[:, None])

    def half_inverse(self, number: int, columns: Array) -> Array:
        """S^{-1/2} columns of the block with this number, for the first ridge."""
        V, ridge, dtype = self.spectrum.parts[number].V, float(self.ridges[0]), columns.real.dtype
        _, below, seen = self._denominators(number)
        roots = np.sqrt(np.divide(1, below[0], out=np.zeros(below.shape[1]), where=seen[0])) / self._unit
        inner = (columns.conj().T @ V).conj().T  # Vᴴ columns
        found = V @ (roots.astype(dtype)[:, None] * inner)
        # Few rows have fewer singular vectors than unknowns. In all other directions S is the ridge.
        if len(roots) < len(columns) and ridge > 0:
            found = found + (columns - V @ inner) / dtype.type(np.sqrt(ridge))
        return np.asarray(found)

    @property
    def _unit(self) -> float:
        """The largest singular value: squares of rows in other units may be beyond their precision."""
        return self.spectrum.largest or 1.0

    def _denominators(self, number: int) -> tuple[Array, Array, Array]:
        """σ, (K,), and σ² + λ, (ridges, K), in this unit, and which of these count.

        S = V diag(σ² + λ) Vᴴ, so S⁻¹ divides by them. Singular values that count as zero are left out.
        """
        ridges, unit = self.ridges, self._unit
        sigma = np.asarray(self.spectrum.parts[number].sigma, np.float64) / unit
        below = sigma**2 + (ridges / unit / unit)[:, None]
        seen = (ridges[:, None] > 0) & (below > 0) | (sigma > default_rtol(self.spectrum.accumulator))
        return sigma, below, seen


class AtOneRidge(NamedTuple):
    """One ridge, from S = GᴴG of every block: without singular vectors, which cost many times as much.

    With fewer rows than unknowns it is `dual`: the decomposition is then that of AAᴴ + λ (`_solvers.dual`). The ridge
    may be infinite: then the penalised unknowns are zero, and there are no factors. `largest` and `smallest` are
    singular values; the latter matters where the ridge is zero.
    """

    accumulator: Accumulator
    reduced: Sequence[Reduced]
    factors: Sequence[Cholesky | CholeskyOfRows] = ()
    ridge: float = np.inf
    largest: float = 0.0
    smallest: float = 0.0

    @property
    def ridges(self) -> NDArray[np.float64]:
        return np.array([self.ridge])

    @property
    def is_dual(self) -> bool:
        return any(part.problem.is_dual for part in self.reduced)

    def in_basis(self, number: int, rows: Array) -> Array:
        """Rows A in the block with this number as they are, or products of these with the rows that are kept."""
        return np.asarray(self.reduced[number].problem.in_basis(rows))

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        """As those of `BySpectrum`."""
        (n, m, K), e, P, loss = block.rows.shape, -block.rest, block.rows[:, :, :0], 1.0
        is_scalar, ridge = False, self.ridge
        if self.factors:
            factor, cross = self.factors[number], self.reduced[number].problem.cross
            predicted = factor.predicted(block.rows.reshape(n * m, K), cross)
            e = predicted.reshape(block.rest.shape) - block.rest
            # A S⁻¹ Aᴴ = (A G⁻¹)(A G⁻¹)ᴴ. Where that is a multiple of 1 the first row of the block shows it.
            is_scalar = has_scalar_leverage(block_basis(self.accumulator.algebra).blocks[number])
            shown = block.rows[:1] if is_scalar else block.rows
            P = factor.through(shown.reshape(len(shown) * m, K)).reshape(len(shown), m, K)
            loss = (self.largest**2 + self.ridge) / (self.smallest**2 + self.ridge)

        def penalised(p: int, q: int) -> Array:
            if is_scalar and p != q:
                return np.zeros(m)
            p, q = (0, 0) if is_scalar else (p, q)
            products = np.einsum("mk,mk->m", P[p], P[q].conj())
            # A S⁻¹ Aᴴ = (AAᴴ - products)/λ of few rows.
            return products if block.own is None else (block.own[p, q] - products) / products.dtype.type(ridge)

        leverage = _leverages(penalised, block.free, 1)
        # (n, m, copies, N) -> (n, 1, copies, N, m)
        rounding = _rounding(self.accumulator, block.rows.real.dtype, np.full((1, 1), loss))
        return e.transpose(0, 2, 3, 1)[:, None], leverage, rounding

    def half_inverse(self, number: int, columns: Array) -> Array:
        """G⁻¹ columns: like S^{-1/2}, C = G⁻¹ has CCᴴ = S⁻¹."""
        return self.factors[number].half_solution(columns)


LeaveOneOut = BySpectrum | AtOneRidge


class LeftOut(NamedTuple):
    """Rows that were left out at one ridge.

    residuals : (m, columns)
    leverages : (m,)
    """

    method: LeaveOneOut
    residuals: NDArray[np.float64]
    leverages: NDArray[np.float64]


def at_ridge(accumulator: Accumulator, ridge: float, free: Sequence[int]) -> LeaveOneOut:
    """What leaves rows out for this ridge; `free` names unknowns that it does not penalise."""
    problems = accumulator.remembered("problems", (), accumulator.problems)
    free = free if ridge > 0 else ()  # without a ridge nothing is penalised
    normal = with_cholesky(problems)
    reduced = project_out(accumulator, normal, free)
    factors = factors_of(accumulator, reduced, ridge) if normal else None
    if factors is not None:
        if ridge > 0:
            return AtOneRidge(accumulator, reduced, factors, ridge, max(part.problem.largest() for part in reduced))
        extremes = [problem.extreme_values(factor) for problem, factor in zip(normal, factors)]
        largest, smallest = max(pair[0] for pair in extremes), min(pair[1] for pair in extremes)
        is_dual = any(problem.is_dual for problem in normal)  # whose inverse does not exist without a ridge
        if smallest > largest * np.sqrt(default_rtol(accumulator)) and not is_dual:
            return AtOneRidge(accumulator, reduced, factors, ridge, largest, smallest)
    return BySpectrum(Spectrum(accumulator, free, problems), np.array([ridge]))


@lru_cache(maxsize=256)
def has_scalar_leverage(block: Block) -> bool:
    """Whether the leverage matrices of all rows are multiples of the identity, as those of quaternions are.

    Their entries are polynomials in the components of the rows, over a common denominator. So what holds for random
    rows holds for all.
    """
    n, d = block.size, len(block.matrices)
    numbers = np.random.default_rng(0).standard_normal((3, 2, d))
    A = np.einsum("mld,dpq->pmql", numbers, block.matrices).reshape(3 * n, 2 * n)
    hat = (A @ np.linalg.solve(A.conj().T @ A + np.eye(2 * n), A.conj().T)).reshape(n, 3, n, 3)
    leverage = np.einsum("pmqm->mpq", hat)
    return np.allclose(leverage, leverage[:, :1, :1] * np.eye(n), rtol=0, atol=1e-12)


def _leverages(penalised: Callable[[int, int], Array], free: Array, ridges: int) -> Array:
    """The leverage matrices, (n, n, ridges, m), of all unknowns.

    `penalised` gives the entries for the penalised unknowns. The free ones add (AW)(AW)ᴴ of `free`, AW, (n, m, rank).
    """
    n, m, _ = free.shape
    leverage = np.empty((n, n, ridges, m), free.dtype)
    for p in range(n):
        for q in range(p + 1):
            leverage[p, q] = penalised(p, q) + np.einsum("mk,mk->m", free[p], free[q].conj())
            leverage[q, p] = leverage[p, q].conj()
    return leverage


def _rounding(accumulator: Accumulator, dtype: np.dtype[Any], loss: Array) -> Array:
    """The rounding of leverages in this precision; `loss` is the squared condition κ² of the matrix with the ridge.

    Up to 0.6 eps κ² was seen from normal equations, and up to 4 eps κ from qr.
    """
    loss = loss if accumulator.squares_condition else np.sqrt(loss)
    return np.minimum((100 + 10 * loss) * np.finfo(dtype).eps, 0.01)


def _solve_rows(matrices: Array, e: Array, rounding: Array) -> Array:
    """Solve a small system for every row: matrices (n, n, ridges, m), right-hand sides (n, ridges, copies, N, m).

    Both arrays are overwritten. The solution is NaN where the matrix is singular up to this rounding. Elimination works
    on all rows at once, without pivoting: the matrices are Hermitian and have no negative eigenvalues.
    """
    n = len(matrices)
    singular = np.zeros(matrices.shape[2:], dtype=bool)
    for p in range(n):
        bad = matrices[p, p].real <= rounding
        singular |= bad
        matrices[p, p][bad] = 1
        for q in range(p + 1, n):
            factor = matrices[q, p] / matrices[p, p]
            matrices[q] -= factor * matrices[p]
            e[q] -= factor[:, None, None] * e[p]
    for p in reversed(range(n)):
        for q in range(p + 1, n):
            e[p] -= matrices[p, q][:, None, None] * e[q]
        e[p] /= matrices[p, p][:, None, None]
    return np.where(singular[:, None, None], np.nan, e)
