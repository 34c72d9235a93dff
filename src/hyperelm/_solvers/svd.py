"""The reference: the paper's solution M = φ⁻¹(Φ_L(H)† φ(T)), from all rows at once.

It builds Φ_L(H), d² times the size of H, and takes its singular value decomposition. Everything faster is measured
against it. Rows of other libraries are copied to NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import to_numpy
from hyperelm._linalg.planes import Numbers
from hyperelm._linalg.products import from_real, left_matrix, to_real
from hyperelm._solvers.accumulator import Accumulator, Embedding
from hyperelm._solvers.problem import Array, Problem, Triangular
from hyperelm._validation import FloatArray


class AllRows(Accumulator):
    """The real matrices Φ_L(H) and φ(T) themselves, as one problem."""

    method = "svd"
    leaves_out = False
    keeps_few = False
    tail = 0.0  # the problem has all rows

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        d = algebra.dim
        self._parts: list[tuple[Array, Array]] = [(np.zeros((0, d * unknowns), dtype), np.zeros((0, targets), dtype))]

    def _add(self, H: FloatArray, T: Numbers) -> None:
        self._parts.append((left_matrix(to_numpy(H), self.algebra), to_real(to_numpy(T.array))))

    def _merge(self, other: AllRows) -> None:
        self._parts += other._parts

    def _fade(self, share: float) -> None:
        self._parts = [(np.sqrt(share) * A, np.sqrt(share) * t) for A, t in self._parts]

    def restricted(self, unknowns: NDArray[np.intp]) -> AllRows:
        part = AllRows(self.algebra, len(unknowns), self.targets, self.dtype)
        part._parts = [(A[:, self._columns(unknowns)], t) for A, t in self._parts]
        part._count_as(self)
        return part

    def combined(self, C: NDArray[np.float64]) -> AllRows:
        part = AllRows(self.algebra, self.unknowns, C.shape[1], self.dtype)
        part._parts = [(A, t @ C.astype(self.dtype)) for A, t in self._parts]
        part._count_as(self)
        return part

    def over(self, algebra: Algebra, unknowns: Embedding, targets: Embedding) -> AllRows:
        new = AllRows(algebra, unknowns.shape[0], targets.shape[0], self.dtype)
        for A, t in self._parts:
            new._add(unknowns.numbers(A), Numbers(targets.numbers(t)))
        new._count_as(self)
        return new

    def problems(self) -> list[Triangular]:
        self._check_safe("Take double precision, or divide the columns by their size.")
        A, t = (np.concatenate(part) for part in zip(*self._parts))
        return [Triangular(A, t, 1, len(A))]

    def coef(self, xs: Sequence[Array]) -> FloatArray:
        return from_real(xs[0], self.algebra)

    def unknowns_of(self, numbers: NDArray[np.intp], problem: Problem) -> NDArray[np.intp]:
        return self._columns(numbers)

    def _columns(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of Φ_L(H) that belong to these unknowns."""
        return (self.algebra.dim * numbers[:, None] + np.arange(self.algebra.dim)).ravel()
