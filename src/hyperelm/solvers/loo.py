"""Exact leave-one-out residuals as a second pass over the rows, for all ridges at once.

Leaving out sample m removes d rows of Φ_L(A). With S = Aᴴ(WA) + λ on the penalised unknowns, the residual that the
sample would have had without itself follows from its leverage block, in every block of the algebra

    e₋ₘ = (1 - w_m B(a_m) S⁻¹ B(a_m)ᴴ)⁻¹ e_m.

In the basis V of the singular vectors S is diagonal, so rows that are projected on it once serve every λ
(`BySpectrum`). For a single λ the Cholesky factor of S does (`ByCholesky`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import to_numpy
from hyperelm._validation import FloatArray, as_hypercomplex
from hyperelm.decomposition import Block
from hyperelm.planes import block_basis, block_matrix, from_planes, gather, planes, put_coordinates
from hyperelm.solvers.accumulator import Accumulator, check_weight
from hyperelm.solvers.gram import Gram
from hyperelm.solvers.problem import Array, Cholesky, Reduced
from hyperelm.solvers.qr import QR
from hyperelm.solvers.solve import Solution
from hyperelm.solvers.spectrum import Spectrum, default_rtol


def leave_one_out(
    state: Accumulator,
    solution: Solution,
    H: FloatArray,
    T: FloatArray,
    sample_weight: FloatArray | None = None,
    *,
    free: Sequence[int] = (),
) -> FloatArray:
    """The residuals HX - T, (m, N, d), that rows among those `state` has seen would have if each were left out.

    `solution` and `free` are what `solve` gave and was given. The hidden layer H, (m, L, d), and the targets T,
    (m, N, d), may be any of the rows, with their weights; a row of leverage 1 has no such residual and gives NaN.
    """
    if not isinstance(state, (Gram, QR)):
        raise ValueError(f"`state` must be a Gram or a QR, got {state!r}.")
    H, T = (
        as_hypercomplex(to_numpy(rows), state.algebra, name, axes=2).astype(state.dtype, copy=False)
        for name, rows in (("H", H), ("T", T))
    )
    ridges = np.array([solution.ridge])
    spectrum = Spectrum(state, free if solution.ridge != 0 else ())  # without a ridge, all unknowns are free
    return left_out_residuals(spectrum, ridges, H, T, sample_weight)[:, 0]


def left_out_residuals(
    spectrum: Spectrum,
    ridges: NDArray[np.float64],
    H: FloatArray,
    T: FloatArray,
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """The residuals of `leave_one_out` for every ridge, (m, ridges, N, d).

    `sample_weight` is what is left out: all of a row's weight, or a part of it.
    """
    return residuals_by(BySpectrum(spectrum, ridges), H, T, sample_weight)[0]


class BlockRows(NamedTuple):
    """Some rows in one block of the algebra, without what the free unknowns explain of them (`Reduced.project`).

    rows : (n, m, K), B(a)
    rest : (n, m, copies, N), their targets
    free : (n, m, rank), AW of the free unknowns
    """

    rows: Array
    rest: Array
    free: Array


class Way(Protocol):
    """How residuals and leverages are found for some ridges."""

    @property
    def state(self) -> Accumulator: ...
    @property
    def reduced(self) -> Sequence[Reduced]: ...
    @property
    def ridges(self) -> NDArray[np.float64]: ...
    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        """Of rows in the block with this number: the residuals (n, ridges, copies, N, m), the leverage blocks
        (n, n, ridges, m), and the rounding of these, (ridges, 1)."""


def block_rows(state: Accumulator, reduced: Sequence[Reduced], H: FloatArray, T: FloatArray) -> list[BlockRows]:
    """Rows H, (m, L, d), and targets T, (m, N, d), in every block."""
    basis, m = block_basis(state.algebra), len(H)
    entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
    found = []
    for n, block in enumerate(basis.blocks):
        A = block_matrix(entries[basis.entry_slices[n]], block)
        rows, rest, free = reduced[n].project(A, gather(coordinates[basis.coordinate_slices[n]], block))
        found.append(
            BlockRows(
                rows.reshape(block.size, m, rows.shape[1]),
                rest.reshape(block.size, m, block.copies, state.targets),
                free.reshape(block.size, m, free.shape[1]),
            )
        )
    return found


def residuals_by(
    way: Way, H: FloatArray, T: FloatArray, sample_weight: FloatArray | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """The residuals of rows that are left out, (m, ridges, N, d), and the leverage of each row, (m, ridges)."""
    if len(H) == 0:
        shape = (0, len(way.ridges), way.state.targets, way.state.algebra.dim)
        return np.zeros(shape, way.state.dtype), np.zeros(shape[:2])
    return left_out_by(way, block_rows(way.state, way.reduced, H, T), check_weight(sample_weight, len(H)))


def left_out_by(
    way: Way, blocks: Sequence[BlockRows], weight: NDArray[np.float64] | None
) -> tuple[FloatArray, NDArray[np.float64]]:
    """As `residuals_by`, of rows in all blocks of the algebra.

    The leverage is a mean over the d components, so that its sum over all rows is tr S_λ/d of the hat matrix S_λ.
    """
    state, basis, ridges, m = way.state, block_basis(way.state.algebra), len(way.ridges), blocks[0].rows.shape[1]
    d, leverages = state.algebra.dim, np.zeros((m, ridges))
    residuals = np.empty((d, m, ridges * state.targets), state.dtype)
    for n, block in enumerate(basis.blocks):
        e, leverage, rounding = way.residuals(n, blocks[n])
        if weight is not None:
            leverage *= weight
        leverages += block.parts * block.copies / d * np.einsum("pprm->mr", leverage).real
        left_out = _solve_rows(np.eye(block.size)[:, :, None, None] - leverage, e, rounding)
        # (n, ridges, copies, N, m) -> (n m, copies ridges N)
        left_out = left_out.transpose(0, 4, 2, 1, 3).reshape(block.size * m, -1)
        put_coordinates(left_out, residuals[basis.coordinate_slices[n]], block)
    return from_planes(residuals, basis.coordinates).reshape(m, ridges, state.targets, d), leverages


class BySpectrum(NamedTuple):
    """All ridges at once, from rows in the basis V of the singular vectors, where S is diagonal."""

    spectrum: Spectrum
    ridges: NDArray[np.float64]

    @property
    def state(self) -> Accumulator:
        return self.spectrum.state

    @property
    def reduced(self) -> Sequence[Reduced]:
        return self.spectrum.reduced

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        n, m, copies, N = block.rest.shape
        spectrum, ridges, part, dtype = self.spectrum, self.ridges, self.spectrum.parts[number], block.rows.real.dtype
        # In units of the largest singular value: the squares of rows may be beyond their precision.
        unit = spectrum.largest or 1.0
        P = (block.rows / dtype.type(unit)) @ part.V
        sigma = np.asarray(part.sigma, np.float64) / unit
        below = sigma**2 + (ridges / unit / unit)[:, None]
        seen = (ridges[:, None] > 0) & (below > 0) | (sigma > default_rtol(spectrum.state))
        inverse = np.divide(1, below, out=np.zeros(below.shape), where=seen).astype(dtype, copy=False)
        coefficients = (inverse * sigma.astype(dtype))[:, None, :] * part.z.T  # (ridges, copies N, K)
        predicted = coefficients.reshape(len(ridges) * copies * N, len(sigma)) @ P.reshape(n * m, len(sigma)).T
        e = np.moveaxis(predicted.reshape(len(ridges), copies, N, n, m), 3, 0)
        e = e - np.moveaxis(block.rest, 1, 3)[:, None]
        leverage = _leverages(lambda p, q: inverse @ (P[p] * P[q].conj()).T, block.free, len(ridges))
        loss = below.max(axis=1, initial=0) / below.min(axis=1, initial=np.inf, where=seen)
        return e, leverage, _rounding(self.state, loss[:, None])


class ByCholesky(NamedTuple):
    """One ridge, from S = GᴴG of every block: without singular vectors, which cost many times as much."""

    state: Accumulator
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
        # a S⁻¹ aᴴ = ‖a G⁻¹‖². Where that is a multiple of 1 the first row of the block shows it.
        alike = has_scalar_leverage(block_basis(self.state.algebra).blocks[number])
        shown = block.rows[:1] if alike else block.rows
        P = problem.through(factor, shown.reshape(len(shown) * m, K)).reshape(len(shown), m, K)

        def penalised(p: int, q: int) -> Array:
            if alike:
                return np.einsum("mk,mk->m", P[0], P[0].conj()) if p == q else np.zeros(m)
            return np.einsum("mk,mk->m", P[p], P[q].conj())

        leverage = _leverages(penalised, block.free, 1)
        loss = np.full((1, 1), (self.largest**2 + self.ridge) / self.ridge)
        return _by_row_last(e.reshape(block.rest.shape)), leverage, _rounding(self.state, loss)


class ByBias(NamedTuple):
    """The ridge that leaves nothing but the free unknowns."""

    state: Accumulator
    reduced: Sequence[Reduced]

    @property
    def ridges(self) -> NDArray[np.float64]:
        return np.array([np.inf])

    def residuals(self, number: int, block: BlockRows) -> tuple[Array, Array, Array]:
        leverage = _leverages(lambda *_: np.zeros(block.rows.shape[1]), block.free, 1)
        return _by_row_last(-block.rest), leverage, _rounding(self.state, np.ones((1, 1)))


def _by_row_last(e: Array) -> Array:
    """Residuals of one ridge, (n, m, copies, N) -> (n, 1, copies, N, m)."""
    return e.transpose(0, 2, 3, 1)[:, None]


@lru_cache(maxsize=256)
def has_scalar_leverage(block: Block) -> bool:
    """Whether the leverage blocks of all rows are multiples of 1, as those of quaternions are.

    They are polynomials in the components of the rows, over a common denominator. Whether these vanish off the diagonal
    and agree on it, random rows decide.
    """
    n, d = block.size, len(block.matrices)
    numbers = np.random.default_rng(0).standard_normal((3, 2, d))
    A = np.einsum("mld,dpq->pmql", numbers, block.matrices).reshape(3 * n, 2 * n)
    hat = (A @ np.linalg.solve(A.conj().T @ A + np.eye(2 * n), A.conj().T)).reshape(n, 3, n, 3)
    leverage = np.einsum("pmqm->mpq", hat)
    return np.allclose(leverage, leverage[:, :1, :1] * np.eye(n), rtol=0, atol=1e-12)


def _leverages(penalised: Callable[[int, int], Array], free: Array, ridges: int) -> Array:
    """The leverage blocks, (n, n, ridges, m), from those of the penalised unknowns, by row and column, and of the free
    ones, AW, (n, m, rank)."""
    n, m, _ = free.shape
    leverage = np.empty((n, n, ridges, m), free.dtype)
    for p in range(n):
        for q in range(p + 1):
            leverage[p, q] = penalised(p, q) + np.einsum("mk,mk->m", free[p], free[q].conj())
            leverage[q, p] = leverage[p, q].conj()
    return leverage


def _rounding(state: Accumulator, loss: Array) -> Array:
    """What rounding may leave of leverages, given the squared condition of S with the ridge.

    Seen was up to 0.6 eps κ² from normal equations and 4 eps κ from qr.
    """
    loss = loss if isinstance(state, Gram) else np.sqrt(loss)
    return np.minimum((100 + 10 * loss) * np.finfo(state.dtype).eps, 0.01)


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
