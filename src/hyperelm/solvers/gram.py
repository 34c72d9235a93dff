"""Normal equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.products import block_basis, block_matrix, gather, planes
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, NormalEquations


class Gram(Accumulator):
    method = "gram"

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        self._sums: list[tuple[Array, Array]] = []
        for block in block_basis(algebra).blocks:
            K, R = block.size * unknowns, block.copies * targets
            kind = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
            self._sums.append((np.zeros((K, K), kind), np.zeros((K, R), kind)))

    def _add(self, H: FloatArray, T: FloatArray) -> None:
        basis = block_basis(self.algebra)
        entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
        for n, block in enumerate(basis.blocks):
            A = block_matrix(entries[basis.entry_slices[n]], block)
            G, C = self._sums[n]
            G += A.conj().T @ A
            C += A.conj().T @ gather(coordinates[basis.coordinate_slices[n]], block)

    def _merge(self, other: Gram) -> None:
        for (G, C), (g, c) in zip(self._sums, other._sums):
            G += g
            C += c

    def problems(self) -> list[NormalEquations]:
        blocks = block_basis(self.algebra).blocks
        return [NormalEquations(G, C, b.parts * b.copies) for b, (G, C) in zip(blocks, self._sums)]
