"""Sequential QR: A = QR of all rows seen, one chunk after another, in memory that does not grow with them.

For every block of the algebra the accumulator keeps the triangular factor R and QᴴT. It folds in new rows by

    [R; B(H)] = Q' [R'; 0],        Q'ᴴ [QᴴT; EᵀT] = [new QᴴT; tail].

‖tail‖² is what no solution can explain. A singular value decomposition of R has the accuracy of one of all the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import to_numpy
from hyperelm._backend.by_numpy import norm_square
from hyperelm._linalg.planes import Numbers, block_basis, block_matrix, coordinate_matrix, planes
from hyperelm._solvers.accumulator import Accumulator, Embedding, mixed
from hyperelm._solvers.dual import problems_of_rows
from hyperelm._solvers.problem import Array, Triangular
from hyperelm._validation import FloatArray


class QR(Accumulator):
    """Accumulator of the triangular factors of every block."""

    method = "qr"
    basis = ("coordinates", "entries")
    tail: float

    def __init__(self, algebra: Algebra, unknowns: int, targets: int, dtype: Any = np.float64) -> None:
        super().__init__(algebra, unknowns, targets, dtype)
        self.tail = 0.0
        self._factors: list[tuple[Array, Array]] = []
        for block in block_basis(algebra).blocks:
            K, R = block.size * unknowns, block.copies * targets
            of_block = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
            self._factors.append((np.zeros((K, K), of_block, order="F"), np.zeros((K, R), of_block, order="F")))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_factors": self._in_numpy(), "_made": None}

    def _in_numpy(self) -> list[tuple[Array, Array]]:
        return [(np.asfortranarray(to_numpy(R)), np.asfortranarray(to_numpy(qt))) for R, qt in self._factors]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Also entries, (d, p): the entries of all B; and of block n R.n, (K, K), and qt.n, (K, R)."""
        self.sum_few()
        factors = {f"R.{n}": np.triu(R) for n, (R, _) in enumerate(self._in_numpy())}
        targets = {f"qt.{n}": qt for n, (_, qt) in enumerate(self._in_numpy())}
        return super().arrays() | {"entries": block_basis(self.algebra).entries} | factors | targets

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self._factors = [
            (np.array(arrays[f"R.{n}"], order="F"), np.array(arrays[f"qt.{n}"], order="F"))
            for n in range(len(self._factors))
        ]
        # The files of a model do without Σ‖h‖²: no eigenvalue of Φ_L(H)ᵀΦ_L(H) exceeds the largest trace of a block.
        self.square_H = max((norm_square(R) for R, _ in self._factors), default=0.0)

    @classmethod
    def following(cls, accumulator: Accumulator) -> QR:
        """Go on from normal equations: as rows σVᴴ with targets z, whose AᴴA and Aᴴt these are."""
        new = cls(accumulator.algebra, accumulator.unknowns, accumulator.targets, accumulator.dtype)
        if accumulator.few:
            return accumulator.with_few(new, lambda H: H, lambda T: T)
        explained = 0.0
        for n, problem in enumerate(accumulator.problems() if accumulator.n_rows else ()):
            part = problem.spectral()
            new._fold(n, part.sigma[:, None] * part.V.conj().T, part.z)
            explained += float(part.energies().sum())
        new._count_as(accumulator)
        new.tail = max(accumulator.square - explained, 0.0)
        return new

    def _add(self, H: FloatArray, T: Numbers) -> None:
        if not self.is_safe:
            return  # nothing will be asked of it
        basis = block_basis(self.algebra)
        entries, coordinates = planes(H, basis.entries), planes(T.array, basis.coordinates)
        for n, block in enumerate(basis.blocks):
            A = block_matrix(entries[basis.entry_slices[n], ...], block)
            self._fold(n, A, coordinate_matrix(coordinates[basis.coordinate_slices[n], ...], block))

    def _merge(self, other: QR) -> None:
        for n, (R, qt) in enumerate(other._in_numpy()):
            self._fold(n, np.triu(R), qt)
        self.tail += other.tail

    def _fade(self, share: float) -> None:
        root = np.sqrt(share)
        self._factors = [(R * R.real.dtype.type(root), qt * qt.real.dtype.type(root)) for R, qt in self._in_numpy()]
        self.tail *= share

    def _fold(self, n: int, A: Array, t: Array) -> None:
        if 0 in A.shape:
            self.tail += backend_of(t).square(t)
            return
        R, qt, rest = backend_of(A).fold(*self._factors[n], A, t)
        self._factors[n] = (R, qt)
        self.tail += rest

    def restricted(self, unknowns: NDArray[np.intp]) -> QR:
        """R is unique up to the signs of its rows."""
        part = QR(self.algebra, len(unknowns), self.targets, self.dtype)
        if self.few:
            return self.with_few(part, lambda H: H[:, unknowns], lambda T: T)
        for n, problem in enumerate(self.problems()):
            part._fold(n, problem.R[:, self.unknowns_of(unknowns, problem)], problem.qt)
        part.tail += self.tail
        part._count_as(self)
        return part

    def combined(self, C: NDArray[np.float64]) -> QR:
        part = QR(self.algebra, self.unknowns, C.shape[1], self.dtype)
        if self.few:
            return self.with_few(part, lambda H: H, lambda T: mixed(T, C))
        part._factors = []
        for R, qt in self._in_numpy():
            of_copies = qt.reshape(len(qt), -1, self.targets) @ C.astype(self.dtype)
            part._factors.append((R, np.asfortranarray(of_copies.reshape(len(qt), -1))))
        part._count_as(self)
        return part

    def over(self, algebra: Algebra, unknowns: Embedding, targets: Embedding) -> QR:
        """The rows of R with the targets Qᵀt have the same sums of products of components as all rows."""
        new = QR(algebra, unknowns.shape[0], targets.shape[0], self.dtype)
        if self.few:
            return self.with_few(new, lambda H: unknowns.numbers(H[:, :, 0]), lambda T: targets.numbers(T[:, :, 0]))
        new._count_as(self)
        ((R, qt),) = self._in_numpy()
        new._add(unknowns.numbers(np.triu(R)), Numbers(targets.numbers(qt)))
        new.tail += self.tail
        return new

    def problems(self) -> Sequence[Triangular]:
        self._check_safe("Take double precision, or divide the columns by their size.")
        if self.few:
            return problems_of_rows(Triangular, self.algebra, self.few)
        blocks = block_basis(self.algebra).blocks
        return [
            Triangular(np.triu(R), qt, block.parts * block.copies, block.size * self.n_rows)
            for block, (R, qt) in zip(blocks, self._in_numpy())
        ]
