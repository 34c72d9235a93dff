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

Two classes find the weights M and the leverage matrices. `BySpectrum` uses the basis V of the singular vectors, in
which S is diagonal: rows in that basis serve every λ. `AtOneRidge` uses the Cholesky factor of S for one λ, or the
limit of an infinite λ, in which only the unknowns without a penalty are left.

The leverage matrices of some algebras are multiples of the identity, and those of others nearly so (`scalar`). They
count as such where `is_exact` is not asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import Block
from hyperelm._lazy import lazy
from hyperelm._linalg.planes import block_basis, block_matrix, coordinate_matrix, from_planes, planes, put_coordinates
from hyperelm._linalg.products import matmul
from hyperelm._solvers.accumulator import Accumulator, check_weight
from hyperelm._solvers.dual import CholeskyOfRows, with_cholesky
from hyperelm._solvers.problem import Array, Cholesky, Reduced
from hyperelm._solvers.scalar import shown_rows
from hyperelm._solvers.spectrum import Spectrum, default_rtol, factors_of, project_out
from hyperelm._validation import FloatArray

_SIGNS = 16  # random vectors that estimate A S⁻² Aᴴ
_HIGHEST = 16  # leverages of rows whose A S⁻² Aᴴ is exact


class BlockRows(NamedTuple):
    """m rows in one block of the algebra, without what the free unknowns explain of them (`Reduced.project`).

    rows : (k, m, K), the first k of the n rows of B(a), which show its leverage matrix, in the basis of the method
    free : (k, m, rank), AW of the free unknowns
    own : (k, k, m), AAᴴ of the k rows A of each number, where the method is `dual`
    """

    rows: Array
    free: Array
    own: Array | None


class SplitRows(NamedTuple):
    """Rows to be left out: H, (m, L, d), and T, (m, N, d), and H in every block."""

    H: FloatArray
    T: FloatArray
    blocks: list[BlockRows]


def split_rows(method: LeaveOneOut, H: FloatArray, T: FloatArray) -> SplitRows:
    """Rows H, (m, L, d), and targets T, (m, N, d), as the method takes them."""
    basis, blocks = block_basis(method.accumulator.algebra), []
    are_kept = method.is_dual and method.accumulator.are_kept(H)
    for n, block in enumerate(basis.blocks):
        k = shown_rows(block, is_exact=method.is_exact)
        first = basis.entry_slices[n].start
        entries = planes(H, basis.entries[:, first : first + k * block.size * block.parts])
        rows, free = method.reduced[n].project(block_matrix(entries, block))
        own = _products(rows.reshape(k, len(H), rows.shape[1])) if method.is_dual else None
        rows = method.own_in_basis(n)[: k * len(H)] if are_kept else method.in_basis(n, rows)
        shape = k, len(H)
        blocks.append(BlockRows(rows.reshape(*shape, rows.shape[1]), free.reshape(*shape, free.shape[1]), own))
    return SplitRows(H, T, blocks)


def residuals_by(
    method: LeaveOneOut, H: FloatArray, T: FloatArray, sample_weight: FloatArray | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """The residuals of rows that are left out, (m, ridges, N, d), and the leverage of each row, (m, ridges)."""
    if len(H) == 0:
        shape = (0, len(method.ridges), method.accumulator.targets, method.accumulator.algebra.dim)
        return np.zeros(shape, method.accumulator.dtype), np.zeros(shape[:2])
    return left_out_by(method, split_rows(method, H, T), check_weight(sample_weight, len(H)))


def left_out_by(
    method: LeaveOneOut, split: SplitRows, weight: NDArray[np.float64] | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """`residuals_by` for rows that `split_rows` gives.

    The leverage is a mean over the d components, so that its sum over all rows is tr P_λ/d of the hat matrix P_λ.
    """
    accumulator, ridges, m = method.accumulator, len(method.ridges), len(split.H)
    basis, d, leverages = block_basis(accumulator.algebra), accumulator.algebra.dim, np.zeros((m, ridges))
    residuals = np.empty((d, m, ridges * accumulator.targets), accumulator.dtype)
    for n, (block, e) in enumerate(zip(basis.blocks, _errors(method, split))):
        leverage, rounding = method.leverages(n, split.blocks[n])
        if weight is not None:
            leverage *= weight
        # A multiple of the identity is given by its first entry alone.
        times = block.parts * block.copies * block.size / len(leverage)
        leverages += times / d * np.einsum("pprm->mr", leverage).real
        left_out = _solve_rows(np.eye(len(leverage))[:, :, None, None] - leverage, e, rounding)
        # (n, ridges, copies, N, m) -> (n m, copies ridges N)
        left_out = left_out.transpose(0, 4, 2, 1, 3).reshape(block.size * m, -1)
        put_coordinates(left_out, residuals, basis.coordinate_slices[n], block)
    return from_planes(residuals, basis.coordinates).reshape(m, ridges, accumulator.targets, d), leverages


def _errors(method: LeaveOneOut, split: SplitRows) -> Iterator[Array]:
    """The residuals e = HM - T of the fit in every block, (n, ridges, copies, N, m)."""
    algebra, (m, N, d) = method.accumulator.algebra, split.T.shape
    e = matmul(split.H, method.coefs.astype(split.H.dtype, copy=False), algebra)
    e.reshape(m, -1, N, d)[...] -= split.T[:, None]
    for of_block in _coordinates(e, algebra):
        n, _, copies, _ = of_block.shape
        yield of_block.reshape(n, m, copies, -1, N).transpose(0, 3, 2, 4, 1)


def _coordinates(numbers: FloatArray, algebra: Algebra) -> Iterator[Array]:
    """Numbers (m, N, d) in every block, (n, m, copies, N)."""
    basis, (m, N, _) = block_basis(algebra), numbers.shape
    image = planes(numbers, basis.coordinates)
    for block, at in zip(basis.blocks, basis.coordinate_slices):
        yield coordinate_matrix(image[at], block).reshape(block.size, m, block.copies, N)


@dataclass(frozen=True)
class BySpectrum:
    """All ridges at once, from rows in the basis V of the singular vectors, where S is diagonal."""

    spectrum: Spectrum
    ridges: NDArray[np.float64]
    is_exact: bool = True
    is_dual = False

    @property
    def accumulator(self) -> Accumulator:
        return self.spectrum.accumulator

    @property
    def reduced(self) -> Sequence[Reduced]:
        return self.spectrum.reduced

    def own_in_basis(self, number: int) -> Array:
        raise AssertionError("this method is not `dual`")

    def in_basis(self, number: int, rows: Array) -> Array:
        """A V of rows A in the block with this number, in the unit σ₁."""
        scaled = rows / rows.real.dtype.type(self._unit)
        return np.asarray(scaled @ self.spectrum.parts[number].V)

    @lazy
    def coefs(self) -> FloatArray:
        """The solutions M of all ridges side by side, (L, ridges N, d)."""
        xs, ridges = [], len(self.ridges)
        for number, (part, spectral) in enumerate(zip(self.reduced, self.spectrum.parts)):
            copies, N = _block(self, number).copies, self.accumulator.targets
            sigma, below, seen = self._denominators(number)
            inverse = np.divide(1, below, out=np.zeros(below.shape), where=seen)
            # M = V diag(σ/(σ²+λ)) z
            gains = (inverse * sigma / self._unit).astype(spectral.z.real.dtype, copy=False)
            z = spectral.z.reshape(len(sigma), copies, 1, N)
            x = spectral.V @ (gains.T[:, None, :, None] * z).reshape(len(sigma), copies * ridges * N)
            of_targets = np.repeat(part.of_targets.reshape(-1, copies, 1, N), ridges, axis=2)
            beside = replace(part, of_targets=of_targets.reshape(len(of_targets), copies * ridges * N))
            xs.append(beside.restore(x))
        return self.accumulator.coef(xs)

    def leverages(self, number: int, block: BlockRows) -> tuple[Array, Array]:
        """The leverage matrices, (n, n, ridges, m), of rows in the block with this number, without the weight, and
        their rounding, (ridges, 1).

        Matrices that are multiples of the identity, or count as such, are (1, 1, ridges, m).
        """
        P, shown = block.rows, shown_rows(_block(self, number), is_exact=self.is_exact)
        _, below, seen = self._denominators(number)
        inverse = np.divide(1, below, out=np.zeros(below.shape), where=seen).astype(P.real.dtype, copy=False)
        leverage = np.empty((shown, shown, len(self.ridges), P.shape[1]), P.dtype)
        for p in range(shown):
            for q in range(p + 1):
                leverage[p, q] = inverse @ (P[p] * P[q].conj()).T
                leverage[q, p] = leverage[p, q].conj()
        leverage += _products(block.free[:shown])[:, :, None]
        loss = below.max(axis=1, initial=0) / below.min(axis=1, initial=np.inf, where=seen)
        return leverage, _rounding(self.accumulator, P.real.dtype, loss[:, None])

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


@dataclass(frozen=True)
class AtOneRidge:
    """One ridge, from S = GᴴG of every block: without singular vectors, which cost many times as much.

    With fewer rows than unknowns it is `dual`: the decomposition is then that of AAᴴ + λ (`_solvers.dual`). The ridge
    may be infinite: then the penalised unknowns are zero, and there are no factors. `largest` and `smallest` are
    singular values; the latter matters where the ridge is zero.

    Without `is_exact`, here and in `BySpectrum`, leverage matrices that are nearly multiples of the identity count as
    such.

    With a `step` s, errors and leverages are also those of a second ridge λ 10ˢ, to first order in s. Let x be the
    solution and c = s λ log 10. The solution of the second ridge is x - c S⁻¹x, and its leverages are those of
    A S⁻¹ Aᴴ - c A S⁻² Aᴴ. The last product is estimated with random signs Ω, (K, 16), as (A G⁻¹ G⁻ᴴΩ)(A G⁻¹ G⁻ᴴΩ)ᴴ/16.
    Where a leverage is near 1, the residual and 1 - leverage both change a lot, and the error is their quotient. So the
    16 rows with the highest leverages, in every part of the sample, have the exact product (A G⁻¹ G⁻ᴴ)(A G⁻¹ G⁻ᴴ)ᴴ.
    A method with a step must not be `dual`.
    """

    accumulator: Accumulator
    reduced: Sequence[Reduced]
    factors: Sequence[Cholesky | CholeskyOfRows] = ()
    ridge: float = np.inf
    largest: float = 0.0
    smallest: float = 0.0
    is_exact: bool = True
    step: float = 0.0

    @property
    def ridges(self) -> NDArray[np.float64]:
        return np.array([self.ridge, self.ridge * 10**self.step] if self.step else [self.ridge])

    @property
    def is_dual(self) -> bool:
        return any(part.problem.is_dual for part in self.reduced)

    def in_basis(self, number: int, rows: Array) -> Array:
        """Rows A in the block with this number as they are, or products of these with the rows that are kept."""
        return np.asarray(self.reduced[number].problem.in_basis(rows))

    def own_in_basis(self, number: int) -> Array:
        """The same of the rows that are kept: products of these with each other, which are known already."""
        reduced = self.reduced[number]
        return reduced.turned_back(reduced.problem.own_in_basis)

    @lazy
    def coefs(self) -> FloatArray:
        """The solutions of all ridges side by side, (L, ridges N, d)."""
        xs = []
        for number, part in enumerate(self.reduced):
            copies, N = _block(self, number).copies, self.accumulator.targets
            if self.factors:
                x = self.factors[number].solution(part.problem.cross)
            else:
                x = np.zeros((len(part.kept), copies * N), part.root.dtype)
            of_ridges = [part.restore(x)]
            if self.step:
                factor = self._cholesky(number)
                # `solution` solves S y = f x, so S⁻¹x is y/f.
                of_ridges.append(part.restore(x - self._change(x) / factor.factor * factor.solution(x)))
            by_copy = [solution.reshape(-1, copies, 1, N) for solution in of_ridges]
            xs.append(np.concatenate(by_copy, axis=2).reshape(len(of_ridges[0]), -1))
        return self.accumulator.coef(xs)

    def _change(self, like: Array) -> Any:
        """c in this precision."""
        return like.real.dtype.type(self.step * math.log(10) * self.ridge)

    def _cholesky(self, number: int) -> Cholesky:
        factor = self.factors[number]
        assert isinstance(factor, Cholesky), "a step must not be dual"
        return factor

    def leverages(self, number: int, block: BlockRows) -> tuple[Array, Array]:
        """As those of `BySpectrum`."""
        (_, m, K), k = block.rows.shape, len(block.rows)
        leverage, loss = _products(block.free), 1.0
        of_ridges = [leverage]
        if self.factors:
            # A S⁻¹ Aᴴ = (A G⁻¹)(A G⁻¹)ᴴ. With few rows A₀, where GᴴG = A₀A₀ᴴ + λ, it is
            # (AAᴴ - (A A₀ᴴG⁻¹)(A A₀ᴴG⁻¹)ᴴ)/λ.
            through = self.factors[number].through(block.rows.reshape(k * m, K))
            products = _products(through.reshape(k, m, K))
            if block.own is not None:
                products = (block.own - products) / products.real.dtype.type(self.ridge)
            of_ridges = [leverage + products]
            loss = (self.largest**2 + self.ridge) / (self.smallest**2 + self.ridge)
            if self.step:
                of_squares = self._squares(number, through.reshape(k, m, K), of_ridges[0])
                of_ridges.append(of_ridges[0] - self._change(of_squares) * of_squares)
        rounding = _rounding(self.accumulator, block.rows.real.dtype, np.full((len(of_ridges), 1), loss))
        return np.stack(of_ridges, axis=2), rounding

    def _squares(self, number: int, through: Array, leverage: Array) -> Array:
        """A S⁻² Aᴴ of rows with these A G⁻¹, (k, m, K), and leverage matrices, (k, k, m).

        It is exact for the highest leverages, and an estimate for all others.
        """
        factor, signs = self._cholesky(number), _signs(through.shape[2], through.dtype)
        squares = _products(through @ factor.adjoint_half_solution(signs)) / _SIGNS
        highest = np.argsort(np.einsum("ppm->m", leverage).real)[-_HIGHEST:]
        rows = through[:, highest]
        halves = factor.half_solution(rows.reshape(-1, rows.shape[2]).conj().T)  # G⁻¹ (A G⁻¹)ᴴ
        squares[:, :, highest] = _products(halves.conj().T.reshape(rows.shape))
        return squares

    def half_inverse(self, number: int, columns: Array) -> Array:
        """G⁻¹ columns: like S^{-1/2}, C = G⁻¹ has CCᴴ = S⁻¹."""
        return self.factors[number].half_solution(columns)


LeaveOneOut = BySpectrum | AtOneRidge


class LeftOut(NamedTuple):
    """Rows that were left out at one ridge: residuals, (m, columns), and leverages, (m,)."""

    method: LeaveOneOut
    residuals: NDArray[np.float64]
    leverages: NDArray[np.float64]


def at_ridge(accumulator: Accumulator, ridge: float, free: Sequence[int], *, is_exact: bool = True) -> LeaveOneOut:
    """What leaves rows out for this ridge; `free` names unknowns that it does not penalise."""
    problems = accumulator.remembered("problems", (), accumulator.problems)
    free = free if ridge > 0 else ()  # without a ridge nothing is penalised
    normal = with_cholesky(problems)
    reduced = project_out(accumulator, normal, free)
    factors = factors_of(accumulator, reduced, ridge) if normal else None
    if factors is not None:
        if ridge > 0:
            largest = max(part.problem.largest() for part in reduced)
            return AtOneRidge(accumulator, reduced, factors, ridge, largest, is_exact=is_exact)
        extremes = [problem.extreme_values(factor) for problem, factor in zip(normal, factors)]
        largest, smallest = max(pair[0] for pair in extremes), min(pair[1] for pair in extremes)
        is_dual = any(problem.is_dual for problem in normal)  # whose inverse does not exist without a ridge
        if smallest > largest * np.sqrt(default_rtol(accumulator)) and not is_dual:
            return AtOneRidge(accumulator, reduced, factors, ridge, largest, smallest, is_exact)
    return BySpectrum(Spectrum(accumulator, free, problems), np.array([ridge]), is_exact)


def _block(method: LeaveOneOut, number: int) -> Block:
    return block_basis(method.accumulator.algebra).blocks[number]


def _signs(K: int, dtype: np.dtype[Any]) -> Array:
    """Random signs, (K, 16)."""
    return np.random.default_rng(0).choice(np.array([-1, 1], dtype), size=(K, _SIGNS))


def _products(rows: Array) -> Array:
    """AAᴴ of the n rows A, (n, K), of each of m numbers, from (n, m, K) to (n, n, m)."""
    if len(rows) == 1:
        return np.einsum("pmk,pmk->pm", rows, rows.conj())[None]
    by_number = rows.transpose(1, 0, 2)
    return np.matmul(by_number, by_number.conj().transpose(0, 2, 1)).transpose(1, 2, 0)


def _rounding(accumulator: Accumulator, dtype: np.dtype[Any], loss: Array) -> Array:
    """The rounding of leverages in this precision; `loss` is the squared condition κ² of the matrix with the ridge.

    Up to 0.6 eps κ² was seen from normal equations, and up to 4 eps κ from qr.
    """
    loss = loss if accumulator.squares_condition else np.sqrt(loss)
    return np.minimum((100 + 10 * loss) * np.finfo(dtype).eps, 0.01)


def _solve_rows(matrices: Array, e: Array, rounding: Array) -> Array:
    """Solve a small system for every row: matrices (n, n, ridges, m), right-hand sides (n, ridges, copies, N, m).

    A matrix (1, 1, ridges, m) stands for a multiple of the identity. Both arrays are overwritten. The solution is NaN
    where the matrix is singular up to this rounding. Elimination works on all rows at once, without pivoting: the
    matrices are Hermitian and have no negative eigenvalues.
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
    rows = e if n > 1 else e[None]  # a multiple of the identity divides all rows at once
    for p in reversed(range(n)):
        for q in range(p + 1, n):
            rows[p] -= matrices[p, q][:, None, None] * rows[q]
        rows[p] /= matrices[p, p][:, None, None]
    return np.where(singular[:, None, None], np.nan, e)
