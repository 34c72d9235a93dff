"""The reference: the paper's solution X = φ⁻¹(Φ_L(A)† φ(B)), all rows at once.

It builds Φ_L(A), d² times the size of A, and takes its singular value decomposition. Everything faster is measured
against it. Rows from elsewhere are copied to NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import numpy_dtype, to_numpy
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.products import from_real, left_matrix, to_real
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, Problem, Triangular
from hyperelm.solvers.solve import Solution, solve
from hyperelm.solvers.sums import Planes
from hyperelm.solvers.team import Team


def svd(
    A: FloatArray,
    B: FloatArray,
    algebra: Algebra,
    *,
    ridge: float | str = 0.0,
    sample_weight: FloatArray | None = None,
    count: float | None = None,
    free: Sequence[int] = (),
    rtol: float | None = None,
) -> Solution:
    """The solution X, (L, N, d), of AX ≈ B for A, (M, L, d), and B, (M, N, d); arguments as in
    `solve` and `Accumulator.update`."""
    rows = AllRows(algebra, A.shape[1], B.shape[1], np.result_type(numpy_dtype(A), numpy_dtype(B)))
    rows.update(A, B, sample_weight, count=count)
    return solve(rows, ridge, free=free, rtol=rtol)


class AllRows(Accumulator):
    """The real matrices Φ_L(A) and φ(B) themselves, as one problem."""

    method = "svd"
    tail = 0.0  # the problem has all rows

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        d = algebra.dim
        self._parts: list[tuple[Array, Array]] = [(np.zeros((0, d * unknowns), dtype), np.zeros((0, targets), dtype))]

    def _add(self, H: FloatArray, T: FloatArray, team: Team, known: Planes | None) -> None:
        self._parts.append((left_matrix(to_numpy(H), self.algebra), to_real(to_numpy(T))))

    def _merge(self, other: AllRows) -> None:
        self._parts += other._parts

    def combined(self, C: NDArray[np.float64]) -> AllRows:
        part = AllRows(self.algebra, self.unknowns, C.shape[1], self.dtype)
        part._parts = [(A, t @ C.astype(self.dtype)) for A, t in self._parts]
        part._count_as(self)
        return part

    def problems(self) -> list[Triangular]:
        self._check_safe("Take double precision, or divide the columns by their size.")
        A, t = (np.concatenate(part) for part in zip(*self._parts))
        return [Triangular(A, t, 1, len(A))]

    def numbers(self, xs: Sequence[Array]) -> FloatArray:
        return from_real(xs[0], self.algebra)

    def unknowns_of(self, rows: NDArray[np.intp], problem: Problem) -> NDArray[np.intp]:
        return (self.algebra.dim * rows[:, None] + np.arange(self.algebra.dim)).ravel()
