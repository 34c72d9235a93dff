"""Sequential QR: A = QR of all rows seen, one row block after another, in memory that does not grow with them.

For every block of the algebra the state is the triangular factor R and QᴴT; new rows are folded in by

    [R; B(H)] = Q' [R'; 0],        Q'ᴴ [QᴴT; EᵀT] = [new QᴴT; tail],

where LAPACK's tpqrt uses that R is triangular. ‖tail‖² is what no X can explain. An SVD of R then has the accuracy
of one of all the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hyperelm._arrays import are_together, beside, is_elsewhere, namespace, to_numpy
from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.planes import block_basis, block_matrix, gather, planes
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.problem import Array, Triangular
from hyperelm.solvers.sums import Planes, square_elsewhere
from hyperelm.solvers.team import Team

_PANEL = 64  # columns that LAPACK factors at a time


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
            kind = np.result_type(self.dtype, np.complex64) if block.is_complex else self.dtype
            self._factors.append((np.zeros((K, K), kind, order="F"), np.zeros((K, R), kind, order="F")))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Also entries, (d, p): the entries of all B; and of block n R.n, (K, K), and qt.n, (K, R)."""
        factors = {f"R.{n}": np.triu(R) for n, (R, _) in enumerate(self._gathered())}
        targets = {f"qt.{n}": qt for n, (_, qt) in enumerate(self._gathered())}
        return super().arrays() | {"entries": block_basis(self.algebra).entries} | factors | targets

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self._factors = [
            (np.array(arrays[f"R.{n}"], order="F"), np.array(arrays[f"qt.{n}"], order="F"))
            for n in range(len(self._factors))
        ]
        # The files of a model do without Σ‖h‖²: no eigenvalue of Φ_L(H)ᵀΦ_L(H) exceeds the largest trace of a block.
        self.square_H = max((_square(R) for R, _ in self._factors), default=0.0)

    @classmethod
    def following(cls, gram: Accumulator) -> QR:
        """Go on from normal equations: as rows whose AᴴA and Aᴴt these are."""
        state = cls(gram.algebra, gram.unknowns, gram.targets, gram.dtype)
        explained = 0.0
        for n, problem in enumerate(gram.problems() if gram.rows else ()):
            part = problem.spectral()
            state._fold(n, part.sigma[:, None] * part.V.conj().T, part.z)
            explained += float(part.energies().sum())
        state._count_as(gram)
        state.tail = max(gram.square - explained, 0.0)
        return state

    def _add(self, H: FloatArray, T: FloatArray, team: Team, known: Planes | None) -> None:
        if not self.is_safe:
            return  # nothing will be asked of it
        basis = block_basis(self.algebra)
        entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
        for n, block in enumerate(basis.blocks):
            A = block_matrix(entries[basis.entry_slices[n], ...], block)
            self._fold(n, A, gather(coordinates[basis.coordinate_slices[n], ...], block))

    def _merge(self, other: QR) -> None:
        for n, (R, qt) in enumerate(other._gathered()):
            self._fold(n, np.triu(R), qt)
        self.tail += other.tail

    def _fold(self, n: int, A: Array, t: Array) -> None:
        if 0 in A.shape:
            self.tail += _square(t)
            return
        if is_elsewhere(A):
            self._fold_elsewhere(n, A, t)
            return
        R, qt = self._gathered()[n]
        tpqrt, tpmqrt = lapack.get_lapack_funcs(("tpqrt", "tpmqrt"), (R,))
        R, reflectors, t_factor, info = tpqrt(0, min(_PANEL, len(R)), R, A, overwrite_a=True)
        assert info == 0, info
        if t.shape[1]:
            adjoint = "C" if np.iscomplexobj(R) else "T"
            qt, t, info = tpmqrt(0, reflectors, t_factor, qt, t, trans=adjoint, overwrite_a=True)
            assert info == 0, info
        self._factors[n] = (R, qt)
        self.tail += _square(t)

    def _fold_elsewhere(self, n: int, A: Array, t: Array) -> None:
        """The same where the rows live, without LAPACK's shape of it."""
        xp = namespace(A=A, t=t)
        R, qt = (part if are_together(part, A) else beside(to_numpy(part), A) for part in self._factors[n])
        stacked, targets = xp.concat([R, A]), xp.concat([qt, t])
        Q, R = xp.linalg.qr(stacked)
        qt = xp.matrix_transpose(xp.conj(Q) if xp.isdtype(Q.dtype, "complex floating") else Q) @ targets
        self._factors[n] = (R, qt)
        self.tail += _square(targets - Q @ qt)

    def _gathered(self) -> list[tuple[Array, Array]]:
        """The factors in NumPy, where they stay until rows from elsewhere come."""
        for n, (R, qt) in enumerate(self._factors):
            if is_elsewhere(R):
                self._factors[n] = (np.asfortranarray(to_numpy(R)), np.asfortranarray(to_numpy(qt)))
        return self._factors

    def __getstate__(self) -> dict[str, Any]:
        self._gathered()
        return self.__dict__

    def restricted(self, rows: NDArray[np.intp]) -> QR:
        """What the accumulator of these rows of X alone would hold, but for signs."""
        part = QR(self.algebra, len(rows), self.targets, self.dtype)
        for n, problem in enumerate(self.problems()):
            part._fold(n, problem.R[:, self.unknowns_of(rows, problem)], problem.qt)
        part.tail += self.tail
        part._count_as(self)
        return part

    def combined(self, C: NDArray[np.float64]) -> QR:
        part = QR(self.algebra, self.unknowns, C.shape[1], self.dtype)
        part._factors = []
        for R, qt in self._gathered():
            of_copies = qt.reshape(len(qt), -1, self.targets) @ C.astype(self.dtype)
            part._factors.append((R, np.asfortranarray(of_copies.reshape(len(qt), -1))))
        part._count_as(self)
        return part

    def problems(self) -> Sequence[Triangular]:
        self._check_safe("Take double precision, or divide the columns by their size.")
        blocks = block_basis(self.algebra).blocks
        return [
            Triangular(np.triu(R), qt, block.parts * block.copies, block.size * self.rows)
            for block, (R, qt) in zip(blocks, self._gathered())
        ]


def _square(t: Array) -> float:
    """‖t‖², which may be beyond the largest number in the precision of t."""
    if is_elsewhere(t):
        return square_elsewhere(t)
    with np.errstate(over="ignore"):  # infinity is what GCV refuses, and all else does without
        return float(np.linalg.norm(t.astype(np.result_type(t, np.float64), copy=False)) ** 2)
