"""Exact leave-one-out residuals, for all ridges at once and without refits.

Row m has the hidden numbers a_m, the targets t_m and the weight w_m. With the fitted weights M its residual is
e_m = a_m M - t_m. The residual that it would have had if M had been fitted without it follows in every block of the
algebra:

1. In the block the row is a matrix A_m = B(a_m), (n, K): n rows of the real problem, which are left out together.
2. S = Σ_m w_m A_mᴴA_m + λ is the matrix of the normal equations for the penalised unknowns.
3. The *leverage matrix* of the row is w_m A_m S⁻¹ A_mᴴ, (n, n). Unknowns without a penalty (the bias) were projected
   out; they add w_m (A_m W)(A_m W)ᴴ, where WWᴴ is the pseudoinverse of their own normal equations.
4. By Woodbury's formula for S without row m,

       e₋ₘ = (1 - leverage matrix)⁻¹ e_m.

Three classes find e_m and the leverage matrices. `BySpectrum` uses the basis V of the singular vectors, in which S is
diagonal: rows that are projected on it once serve every λ. `ByCholesky` uses the Cholesky factor of S for one λ.
`ByBias` is the limit of an infinite λ, in which only the unknowns without a penalty are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.blocks import Block
from hyperelm._linalg.planes import block_basis, block_matrix, coordinate_matrix, from_planes, planes, put_coordinates
from hyperelm._solvers.accumulator import Accumulator, check_weight
from hyperelm._solvers.problem import Array, Cholesky, Reduced
from hyperelm._solvers.spectrum import Spectrum, default_rtol
from hyperelm._validation import FloatArray


class BlockRows(NamedTuple):
    """Some rows in one block of the algebra, without what the free unknowns explain of them (`Reduced.project`).

    rows : (n, m, K), B(a)
    rest : (n, m, copies, N), their targets
    free : (n, m, rank), AW of the free unknowns
    """

    rows: Array
    rest: Array
    free: Array


class LeaveOneOut(Protocol):
    """A way to find residuals and leverage matrices for some ridges."""

    @property
    def accumulator(self) -> Accumulator: ...
    @property
    def reduced(self) -> Sequence[Reduced]: ...
    @property
    def ridges(self) -> NDArray[np.float64]: ...
    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        """Residuals (n, ridges, copies, N, m) of rows in the block with this number, their leverage matrices
        (n, n, ridges, m) without the weight, and the rounding of these, (ridges, 1)."""


def block_rows(accumulator: Accumulator, reduced: Sequence[Reduced], H: FloatArray, T: FloatArray) -> list[BlockRows]:
    """Rows H, (m, L, d), and targets T, (m, N, d), in every block."""
    basis, m = block_basis(accumulator.algebra), len(H)
    entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
    found = []
    for n, block in enumerate(basis.blocks):
        A = block_matrix(entries[basis.entry_slices[n]], block)
        rows, rest, free = reduced[n].project(A, coordinate_matrix(coordinates[basis.coordinate_slices[n]], block))
        found.append(
            BlockRows(
                rows.reshape(block.size, m, rows.shape[1]),
                rest.reshape(block.size, m, block.copies, accumulator.targets),
                free.reshape(block.size, m, free.shape[1]),
            )
        )
    return found


def residuals_by(
    method: LeaveOneOut, H: FloatArray, T: FloatArray, sample_weight: FloatArray | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """The residuals of rows that are left out, (m, ridges, N, d), and the leverage of each row, (m, ridges)."""
    if len(H) == 0:
        shape = (0, len(method.ridges), method.accumulator.targets, method.accumulator.algebra.dim)
        return np.zeros(shape, method.accumulator.dtype), np.zeros(shape[:2])
    return left_out_by(
        method, block_rows(method.accumulator, method.reduced, H, T), check_weight(sample_weight, len(H))
    )


def left_out_by(
    method: LeaveOneOut, blocks: Sequence[BlockRows], weight: NDArray[np.float64] | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """`residuals_by` for rows that `block_rows` has split into the blocks of the algebra.

    The leverage is a mean over the d components, so that its sum over all rows is tr P_λ/d of the hat matrix P_λ.
    """
    accumulator, basis, ridges, m = (
        method.accumulator,
        block_basis(method.accumulator.algebra),
        len(method.ridges),
        blocks[0].rows.shape[1],
    )
    d, leverages = accumulator.algebra.dim, np.zeros((m, ridges))
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

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        n, m, copies, N = block.rest.shape
        spectrum, ridges, part, dtype = self.spectrum, self.ridges, self.spectrum.parts[number], block.rows.real.dtype
        # All in units of the largest singular value, as the squares of rows may be beyond their precision.
        unit = spectrum.largest or 1.0
        P = (block.rows / dtype.type(unit)) @ part.V  # A V
        sigma = np.asarray(part.sigma, np.float64) / unit
        # S = V diag(σ² + λ) Vᴴ, so S⁻¹ divides by these. Singular values that count as zero are left out.
        below = sigma**2 + (ridges / unit / unit)[:, None]
        seen = (ridges[:, None] > 0) & (below > 0) | (sigma > default_rtol(spectrum.accumulator))
        inverse = np.divide(1, below, out=np.zeros(below.shape), where=seen).astype(dtype, copy=False)
        # M = V diag(σ/(σ²+λ)) z, so e = A V diag(σ/(σ²+λ)) z - t.
        coefficients = (inverse * sigma.astype(dtype))[:, None, :] * part.z.T  # (ridges, copies N, K)
        predicted = coefficients.reshape(len(ridges) * copies * N, len(sigma)) @ P.reshape(n * m, len(sigma)).T
        e = np.moveaxis(predicted.reshape(len(ridges), copies, N, n, m), 3, 0)
        e = e - np.moveaxis(block.rest, 1, 3)[:, None]
        leverage = _leverages(lambda p, q: inverse @ (P[p] * P[q].conj()).T, block.free, len(ridges))
        loss = below.max(axis=1, initial=0) / below.min(axis=1, initial=np.inf, where=seen)
        return e, leverage, _rounding(self.accumulator, loss[:, None])


class ByCholesky(NamedTuple):
    """One ridge, from S = GᴴG of every block: without singular vectors, which cost many times as much."""

    accumulator: Accumulator
    reduced: Sequence[Reduced]
    factors: Sequence[Cholesky]
    ridge: float
    largest: float

    @property
    def ridges(self) -> NDArray[np.float64]:
        return np.array([self.ridge])

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        (n, m, K), problem, factor = block.rows.shape, self.reduced[number].problem, self.factors[number]
        e = block.rows.reshape(n * m, K) @ problem.solution(factor) - block.rest.reshape(n * m, -1)
        # A S⁻¹ Aᴴ = (A G⁻¹)(A G⁻¹)ᴴ. Where that is a multiple of 1 the first row of the block shows it.
        alike = has_scalar_leverage(block_basis(self.accumulator.algebra).blocks[number])
        shown = block.rows[:1] if alike else block.rows
        P = problem.through(factor, shown.reshape(len(shown) * m, K)).reshape(len(shown), m, K)

        def penalised(p: int, q: int) -> Array:
            if alike:
                return np.einsum("mk,mk->m", P[0], P[0].conj()) if p == q else np.zeros(m)
            return np.einsum("mk,mk->m", P[p], P[q].conj())

        leverage = _leverages(penalised, block.free, 1)
        loss = np.full((1, 1), (self.largest**2 + self.ridge) / self.ridge)
        return _by_row_last(e.reshape(block.rest.shape)), leverage, _rounding(self.accumulator, loss)


class ByBias(NamedTuple):
    """The ridge that leaves nothing but the free unknowns."""

    accumulator: Accumulator
    reduced: Sequence[Reduced]

    @property
    def ridges(self) -> NDArray[np.float64]:
        return np.array([np.inf])

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        leverage = _leverages(lambda *_: np.zeros(block.rows.shape[1]), block.free, 1)
        return _by_row_last(-block.rest), leverage, _rounding(self.accumulator, np.ones((1, 1)))


def _by_row_last(e: Array) -> Array:
    """Residuals of one ridge, (n, m, copies, N) -> (n, 1, copies, N, m)."""
    return e.transpose(0, 2, 3, 1)[:, None]


@lru_cache(maxsize=256)
def has_scalar_leverage(block: Block) -> bool:
    """Whether the leverage matrices of all rows are multiples of 1, as those of quaternions are.

    The entries are polynomials in the components of the rows, over a common denominator. If they are such multiples for
    random rows, they are for all.
    """
    n, d = block.size, len(block.matrices)
    numbers = np.random.default_rng(0).standard_normal((3, 2, d))
    A = np.einsum("mld,dpq->pmql", numbers, block.matrices).reshape(3 * n, 2 * n)
    hat = (A @ np.linalg.solve(A.conj().T @ A + np.eye(2 * n), A.conj().T)).reshape(n, 3, n, 3)
    leverage = np.einsum("pmqm->mpq", hat)
    return np.allclose(leverage, leverage[:, :1, :1] * np.eye(n), rtol=0, atol=1e-12)


def _leverages(penalised: Callable[[int, int], Array], free: Array, ridges: int) -> Array:
    """The leverage matrices, (n, n, ridges, m): those of the penalised unknowns, entry by entry, plus those of the free
    ones from AW, (n, m, rank)."""
    n, m, _ = free.shape
    leverage = np.empty((n, n, ridges, m), free.dtype)
    for p in range(n):
        for q in range(p + 1):
            leverage[p, q] = penalised(p, q) + np.einsum("mk,mk->m", free[p], free[q].conj())
            leverage[q, p] = leverage[p, q].conj()
    return leverage


def _rounding(accumulator: Accumulator, loss: Array) -> Array:
    """The rounding of leverages, given the squared condition κ² of the matrix with the ridge.

    Up to 0.6 eps κ² was seen from normal equations, and up to 4 eps κ from qr.
    """
    loss = loss if accumulator.squares_condition else np.sqrt(loss)
    return np.minimum((100 + 10 * loss) * np.finfo(accumulator.dtype).eps, 0.01)


def _solve_rows(matrices: Array, e: Array, rounding: Array) -> Array:
    """Solve the small system of every row, (n, n, ridges, m) and (n, ridges, copies, N, m); NaN where it is singular
    up to this rounding.

    By elimination on all rows at once. The matrices are Hermitian and have no negative eigenvalues: no pivoting.
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
