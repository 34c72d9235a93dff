"""Exact leave-one-out residuals as a second pass over the rows.

Leaving out sample m removes d rows of Φ_L(A). With S = Aᴴ(WA) + λ on the penalised unknowns, the residual that the
sample would have had without itself follows from its leverage block, in every block of the algebra

    e₋ₘ = (1 - w_m B(a_m) S⁻¹ B(a_m)ᴴ)⁻¹ e_m.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hyperelm._validation import FloatArray
from hyperelm.products import block_basis, block_matrix, from_planes, gather, matmul, planes, put_coordinates
from hyperelm.solvers.accumulator import Accumulator, check_weight
from hyperelm.solvers.solve import Solution


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
    algebra, basis = state.algebra, block_basis(state.algebra)
    weight = check_weight(sample_weight, len(H), state.dtype)
    if len(H) == 0:
        return np.zeros((0, state.targets, algebra.dim), state.dtype)
    entries = planes(H, basis.entries)
    residuals = planes(matmul(H, solution.x, algebra) - T, basis.coordinates)
    for n, (block, problem) in enumerate(zip(basis.blocks, state.problems())):
        rows = state.unknowns_of(np.asarray(free, dtype=np.intp), problem)
        root = problem.inverse_root(solution.ridge, rows)
        A = block_matrix(entries[basis.entry_slices[n]], block) @ root
        A = A.reshape(block.size, len(H), -1)
        leverage = np.einsum("pmk,qmk->mpq", A, A.conj(), optimize=True)
        if weight is not None:
            leverage *= weight[:, None, None]
        at = basis.coordinate_slices[n]
        e = gather(residuals[at], block).reshape(block.size, len(H), -1).swapaxes(0, 1)
        left_out = _solve_rows(np.eye(block.size) - leverage, e)
        put_coordinates(left_out.swapaxes(0, 1).reshape(block.size * len(H), -1), residuals[at], block)
    return from_planes(residuals, basis.coordinates)


def _solve_rows(matrices: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Solve the small system of every row; NaN where its matrix is singular to rounding."""
    eps = np.finfo(e.dtype).eps
    singular = np.linalg.svd(matrices, compute_uv=False)[:, -1] <= 100 * eps
    matrices = np.where(singular[:, None, None], np.eye(matrices.shape[-1]), matrices)
    solved = np.linalg.solve(matrices, e)
    solved[singular] = np.nan
    return solved
