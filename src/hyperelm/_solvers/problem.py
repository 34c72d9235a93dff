"""The least-squares problem of one block of the algebra.

In one block of the algebra the rows are a real or complex problem min ‖Ax - t‖² + λ‖x‖² with K unknowns and R
right-hand sides. An accumulator keeps one of two summaries of it: the normal equations AᴴA and Aᴴt, or, from A = QR,
the factor R and Qᴴt. Both give the singular value decomposition A = U diag(σ) Vᴴ and z = Uᴴt, and with these

    x_λ = V diag(σ/(σ²+λ)) z,                     ‖t‖² - ‖A x_λ - t‖² = Σ |z_k|² (1 - (λ/(σ_k²+λ))²).

Some unknowns may be *free* of the penalty (the bias). `without` projects them out, in three steps:

1. Let F be the columns of A that belong to free unknowns, J the other columns, and P = F(FᴴF)⁺Fᴴ the projection on F.
   The penalised unknowns solve the smaller problem min ‖(1 - P)(Jx - t)‖² + λ‖x‖².
2. That problem is of the same kind. Its columns that (1 - P) leaves at the size of rounding are set to zero.
3. The free unknowns follow from x: they are (FᴴF)⁺Fᴴ(t - Jx) (`Reduced.restore`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._backend import NUMPY
from hyperelm._backend.workspace import scratch, scratch_copy
from hyperelm._solvers.lanczos import largest_eigenvalue

_SMALL = 128  # unknowns
_STRIP = 256  # columns that are copied at a time

Array = NDArray[Any]


@dataclass(frozen=True)
class Reduced:
    """A problem from which free unknowns were projected out, and the way back.

    kept, free : which unknowns are penalised and which are not
    of_rows : the coefficients of the kept columns of A on the free ones, (free, K)
    root : W, (free, rank), with WWᴴ the pseudoinverse of the free columns' AᴴA
    of_targets : y, (rank, R), where Wy are the coefficients of t on the free columns
    explained : the part of ‖t‖² that the free columns explain
    gone : the kept columns of which the free ones leave no more than rounding
    hides : whether rounding may hide something in these columns: they were not zero before
    turned : the reflectors and factors of Q, if the reduced rows are those of Qᴴ times the whole ones beyond the rank
    """

    problem: Any
    kept: NDArray[np.intp]
    free: NDArray[np.intp]
    of_rows: Array
    root: Array
    of_targets: Array
    explained: float
    gone: NDArray[np.intp] | None = None
    hides: bool = False
    turned: tuple[Array, Array] | None = None

    @classmethod
    def unchanged(cls, problem: Problem) -> Reduced:
        """A problem without free unknowns."""
        nothing = np.zeros((0, 0))
        return cls(problem, np.arange(problem.size), np.arange(0), nothing, nothing, nothing, 0.0)

    def restore(self, x: Array) -> Array:
        """All unknowns, in their order, from the penalised ones."""
        if not len(self.free):
            return x
        whole = np.empty((len(self.kept) + len(self.free), x.shape[1]), dtype=x.dtype)
        whole[self.kept], whole[self.free] = x, self.root @ self.of_targets - self.of_rows @ x
        return whole

    def project(self, A: Array) -> tuple[Array, Array]:
        """Rows A of the whole problem as those of the reduced one, and AW of the free unknowns."""
        if not len(self.free):
            return A, A[:, :0]
        free, rows = A[:, self.free], scratch((len(A), len(self.kept)), A.dtype, zeros=False)
        if _are_beside(self.kept):
            rows[...] = A[:, self.kept[0] : self.kept[-1] + 1]
        else:
            np.take(A, self.kept, axis=1, out=rows, mode="clip")  # other modes form a copy first
        _subtract_product(rows, free, self.of_rows)
        if self.gone is not None:
            rows[:, self.gone] = 0
        return rows, free @ self.root

    def turned_back(self, reduced: Array) -> Array:
        """What belongs to the rows of the whole problem, from what belongs to those of the reduced one: Q₂ times it."""
        if self.turned is None:
            return reduced
        whole = np.zeros((len(self.turned[0]), reduced.shape[1]), reduced.dtype, order="F")
        whole[len(whole) - len(reduced) :] = reduced
        return _turn(self.turned, whole)


@dataclass(frozen=True)
class Spectral:
    """σ (K), V (K, K) and z (K, R) of one block, σ descending, and ‖t - Uz‖² where the problem has t itself.

    Of n < K rows there are n singular values, and V is (K, n). It may be an object that products can be formed with,
    instead of an array.
    """

    sigma: Array
    V: Any
    z: Array
    multiplicity: int
    beyond: float = 0.0

    def solution(self, ridge: float, cutoff: float) -> Array:
        """x_λ, without the singular values up to `cutoff`."""
        kept = self.sigma > cutoff
        # σ/(σ²+λ) as 1/(σ+λ/σ), in double precision: squares of tiny singular values would underflow, and so may λ.
        sigma = self.sigma[kept].astype(np.float64)
        coefficients = self.z[kept] / (sigma + ridge / sigma)[:, None]
        solution: Array = self.V[:, kept] @ coefficients.astype(self.z.dtype)
        return solution

    def energies(self) -> NDArray[np.float64]:
        """|z_k|², summed over the right-hand sides."""
        return np.asarray(_squares(self.z).sum(axis=1))

    def shrinkage(self, ridges: NDArray[np.float64]) -> NDArray[np.float64]:
        """λ/(σ²+λ) for every ridge and singular value, (ridges, K); 1 where both are zero."""
        below = np.asarray(self.sigma, np.float64) ** 2 + ridges[:, None]
        return np.divide(ridges[:, None], below, out=np.ones(below.shape), where=below > 0)


@dataclass(frozen=True)
class Cholesky:
    """The decomposition f²AᴴA + λ = GᴴG, as the triangular factor conj(G)/f of (AᴴA + λ/f²)ᵀ, `upper`.

    The matrix is transposed because its rows are columns to LAPACK, so that no copy in another order is needed.
    """

    upper: Array
    factor: float = 1.0

    def solution(self, b: Array) -> Array:
        """x of (f²AᴴA + λ) x = f b. The conjugates of both sides have the matrix (f²AᴴA + λ)ᵀ."""
        columns = scratch_copy(b)
        if np.iscomplexobj(columns):
            np.conj(columns, out=columns)
        x = linalg.cho_solve((self.upper, False), columns, overwrite_b=True, check_finite=False)
        x /= x.real.dtype.type(self.factor)
        return np.asarray(np.conj(x, out=x) if np.iscomplexobj(x) else x)

    def through(self, rows: Array) -> Array:
        """fAG⁻¹, (m, K), of rows fA. The squared length of each of its rows is the leverage of that row."""
        copy = scratch_copy(rows.T).T
        if np.iscomplexobj(copy):
            np.conj(copy, out=copy)
        (trsm,) = linalg.get_blas_funcs(("trsm",), (self.upper, copy))
        found: Array = trsm(1 / self.factor, self.upper, copy.T, trans_a=1, overwrite_b=True).T
        return np.conj(found, out=found) if np.iscomplexobj(found) else found

    def half_solution(self, columns: Array) -> Array:
        """G⁻¹ columns, so that (AG⁻¹)(AG⁻¹)ᴴ = A (f²AᴴA + λ)⁻¹ Aᴴ."""
        return self._solved(columns, adjoint=0)

    def adjoint_half_solution(self, columns: Array) -> Array:
        """G⁻ᴴ columns, so that A G⁻¹ times it are A (f²AᴴA + λ)⁻¹ columns."""
        return self._solved(columns, adjoint=2)

    def _solved(self, columns: Array, *, adjoint: int) -> Array:
        (trsm,) = linalg.get_blas_funcs(("trsm",), (self.upper, columns))
        found = trsm(1 / self.factor, self.upper, columns.conj(), trans_a=adjoint)
        return np.conj(found, out=found) if np.iscomplexobj(found) else np.asarray(found)


@dataclass(frozen=True)
class NormalEquations:
    """AᴴA (K, K) and Aᴴt (K, R) of a problem min ‖fAx - t‖² + λ‖x‖².

    The factor f is that of the algebra's table. It is kept apart because its square may be beyond the precision. All
    methods answer for fA.

    multiplicity : how often the singular values of this block are singular values of Φ_L
    """

    gram: Array
    cross: Array
    multiplicity: int
    factor: float = 1.0
    is_dual = False

    @property
    def size(self) -> int:
        """The number K of unknowns."""
        return len(self.gram)

    def in_basis(self, rows: Array) -> Array:
        """Rows as `Cholesky` takes them: as they are."""
        return rows

    @property
    def floor(self) -> float:
        """The smallest ridge, relative to the largest eigenvalue, whose effect is more than the rounding of AᴴA."""
        return float(4 * self.size * np.finfo(self.gram.dtype).eps)

    def moments(self) -> tuple[Array, Array]:
        """AᴴA and Aᴴt."""
        return self.gram, self.cross

    @property
    def _rounding(self) -> float:
        """What may be left of a sum of squares that is zero. Up to 850 eps were seen, for any number of rows."""
        return float(max(2000, self.size) * np.finfo(self.gram.dtype).eps)

    def roots(self, eigenvalues: Array) -> Array:
        """The singular values of A from the eigenvalues of AᴴA; zero where an eigenvalue is no more than rounding."""
        rounding = eigenvalues.max(initial=0) * np.finfo(eigenvalues.dtype).eps * self.size
        return np.asarray(np.sqrt(np.where(eigenvalues > rounding, eigenvalues, 0)))

    def singular_values(self) -> NDArray[np.float64]:
        values = self.roots(linalg.eigvalsh(self.gram, check_finite=False)[::-1])
        return self.factor * values.astype(np.float64)

    def spectral(self) -> Spectral:
        """From AᴴA = V diag(σ²) Vᴴ, which gives z = diag(1/σ) VᴴAᴴt."""
        values, vectors = linalg.eigh(self.gram, driver="evd", check_finite=False)
        sigma, V, z = self.roots(values[::-1]), vectors[:, ::-1], np.zeros_like(self.cross)
        seen = sigma > 0
        z[seen] = (V[:, seen].conj().T @ self.cross) / sigma[seen, None]
        return Spectral(sigma * sigma.dtype.type(self.factor), V, z, self.multiplicity)

    def without(self, free: NDArray[np.intp], rtol: float) -> Reduced:
        """The problem without the free unknowns: the Schur complement JᴴJ - JᴴF (FᴴF)⁺ FᴴJ of AᴴA = [F, J]ᴴ[F, J].

        `rtol` is for `Triangular`. Here rounding decides.
        """
        kept = np.setdiff1d(np.arange(self.size), free)
        # W of (FᴴF)⁺ = WWᴴ, from the eigenvectors of FᴴF.
        values, vectors = linalg.eigh(self.gram[np.ix_(free, free)], check_finite=False)
        seen = values > np.abs(values).max(initial=0) * self._rounding
        root: Array = vectors[:, seen] / np.sqrt(values[seen])
        coupling, cross = self.gram[np.ix_(free, kept)], self.cross[kept]
        of_rows = root @ (root.conj().T @ coupling)  # (FᴴF)⁺ FᴴJ
        gram = self._kept(kept)
        before = gram.diagonal().real.copy()
        _subtract_product(gram, coupling.conj().T, of_rows)
        cross -= of_rows.conj().T @ self.cross[free]
        gone = gram.diagonal().real <= self._rounding * before
        gram[gone], gram[:, gone], cross[gone] = 0, 0, 0
        of_targets = root.conj().T @ self.cross[free]
        root = root / root.real.dtype.type(self.factor)  # the inverse of fF has 1/f
        problem = NormalEquations(gram, cross, self.multiplicity, self.factor)
        explained = float(_squares(of_targets).sum())
        hides = bool(before[gone].any())
        return Reduced(problem, kept, free, of_rows, root, of_targets, explained, np.flatnonzero(gone), hides)

    def _kept(self, kept: NDArray[np.intp]) -> Array:
        """A copy of the rows and columns of AᴴA that are kept, run by run: slices are copied faster than places."""
        found, runs = scratch((len(kept), len(kept)), self.gram.dtype, zeros=False), list(_runs(kept))
        for rows, from_rows in runs:
            for columns, from_columns in runs:
                found[rows, columns] = self.gram[from_rows, from_columns]
        return found

    def cholesky(self, ridge: float) -> Cholesky | None:
        """The decomposition of f²AᴴA + λ. None where rounding has left that indefinite, or λ/f² overflows."""
        ridge = ridge / self.factor / self.factor
        if ridge > float(np.finfo(self.gram.dtype).max):
            return None
        transposed = scratch((self.size, self.size), self.gram.dtype, zeros=False).T
        for start in range(0, self.size, _STRIP):  # LAPACK takes the upper triangle
            strip, end = slice(start, start + _STRIP), start + _STRIP
            transposed[:end, strip] = self.gram[strip, :end].T
        transposed.flat[:: self.size + 1] += ridge
        try:
            return Cholesky(linalg.cho_factor(transposed, overwrite_a=True, check_finite=False)[0], self.factor)
        except linalg.LinAlgError:
            return None

    @property
    def _unit(self) -> float:
        """The largest diagonal entry: in units of it squares of squares do not overflow."""
        return float(self.gram.diagonal().real.max(initial=0)) or 1.0

    def largest(self) -> float:
        """An estimate of the largest singular value of fA."""
        unit = self._unit
        square = largest_eigenvalue(lambda v: (self.gram @ v) / unit, self.gram)
        return self.factor * float(np.sqrt(unit) * np.sqrt(square))

    def extreme_values(self, cholesky: Cholesky | None) -> tuple[float, float]:
        """Estimates of the largest and the smallest singular value of fA, given the decomposition for λ = 0.

        The smallest is one over the largest of the inverse, whose products are solutions. Small matrices give all their
        eigenvalues in the time that such an estimate takes.
        """
        if self.size <= _SMALL:
            values = self.singular_values()
            return float(values[0]), float(values[-1])
        largest, unit = self.largest(), self._unit
        if cholesky is None or self.gram.diagonal().real.min(initial=unit) <= np.finfo(self.gram.dtype).eps * unit:
            return largest, 0.0
        # The transposed matrix, of which this is the factor, has the same eigenvalues.
        factor = (cholesky.upper, False)
        inverse = largest_eigenvalue(lambda v: linalg.cho_solve(factor, v * unit, check_finite=False), self.gram)
        return largest, self.factor * float(np.sqrt(unit) / np.sqrt(inverse))


@dataclass(frozen=True)
class Triangular:
    """R (r, K) and Qᴴt (r, R) of A = QR.

    The accumulator `svd` gives A and t themselves. After a projection R is not triangular.

    multiplicity : how often the singular values of this block are singular values of Φ_L
    n_rows : the number of rows of A, and so of its singular values that are not zero at most
    """

    R: Array
    qt: Array
    multiplicity: int
    n_rows: int
    is_dual = False

    @property
    def size(self) -> int:
        """The number K of unknowns."""
        return self.R.shape[1]

    def in_basis(self, rows: Array) -> Array:
        """Rows as they are."""
        return rows

    @property
    def floor(self) -> float:
        """The smallest ridge, relative to the largest eigenvalue, below which the rounding of rows would decide."""
        return float(16 * np.finfo(self.R.dtype).eps)

    def moments(self) -> tuple[Array, Array]:
        """AᴴA and Aᴴt, in double precision, in which squares of single precision are numbers."""
        R = self.R.astype(np.result_type(self.R, np.float64))
        return R.conj().T @ R, R.conj().T @ self.qt

    def singular_values(self) -> NDArray[np.float64]:
        sigma = linalg.svdvals(self.R, check_finite=False)
        sigma[self.n_rows :] = 0  # only rounding has added these
        return np.asarray(sigma, dtype=np.float64)

    def spectral(self) -> Spectral:
        u, sigma, vh = _singular_vectors(self.R)
        sigma[self.n_rows :] = 0
        z = u.conj().T @ self.qt
        beyond = float(_squares(self.qt - u @ z).sum()) if len(u) > len(z) else 0.0
        return Spectral(sigma, vh.conj().T, z, self.multiplicity, beyond)

    def without(self, free: NDArray[np.intp], rtol: float) -> Reduced:
        """The problem without the free unknowns: the rows of Qᴴ[K, t] beyond the rank of F, from a pivoted F = QR.

        Columns that the projection leaves shorter than `rtol` times their length count as zero.
        """
        kept = np.setdiff1d(np.arange(self.size), free)
        # A sequential QR was seen to leave up to 14 √n_rows eps of columns that vanish.
        rounding = max(rtol, float(32 * np.sqrt(self.n_rows) * np.finfo(self.R.dtype).eps))
        (reflectors, tau), r, pivots = linalg.qr(self.R[:, free], mode="raw", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(r))
        rank = int(np.sum(sizes > sizes.max(initial=0) * rounding))
        root = np.linalg.pinv(r[:rank, np.argsort(pivots)])
        both = scratch((len(kept) + self.qt.shape[1], len(self.R)), self.R.dtype, zeros=False).T
        both[:, : len(kept)], both[:, len(kept) :] = self.R[:, kept], self.qt
        turned = reflectors[:, : len(tau)], tau
        both = _turn(turned, both, adjoint=True)
        rotated, qt = both[:, : len(kept)], both[:, len(kept) :]
        rest = rotated[rank:]
        rest[:, _lengths(rest) <= rounding * _lengths(rotated)] = 0
        problem = replace(self, R=rest, qt=qt[rank:])
        explained = float(_squares(qt[:rank]).sum())
        return Reduced(problem, kept, free, root @ rotated[:rank], root, qt[:rank], explained, turned=turned)


Problem = NormalEquations | Triangular


def _turn(turned: tuple[Array, Array], x: Array, *, adjoint: bool = False) -> Array:
    """Qx, or Qᴴx, of the reflectors and factors that LAPACK's geqrf gives. It overwrites x, in Fortran order."""
    name, transposed = ("unmqr", "C") if np.iscomplexobj(x) else ("ormqr", "T")
    (multiply,) = linalg.get_lapack_funcs((name,), (x,))
    which, workspace = transposed if adjoint else "N", max(1, 64 * x.shape[1])
    found, _, info = multiply("L", which, *turned, x, workspace, overwrite_c=True)
    assert info == 0, info
    return np.asarray(found)


def _singular_vectors(R: Array) -> tuple[Array, Array, Array]:
    """U, σ and Vᴴ. The fast driver was seen to fail on rows that repeat often. The slow one serves there."""
    try:
        u, sigma, vh = linalg.svd(R, full_matrices=False, check_finite=False)
    except linalg.LinAlgError:
        u, sigma, vh = linalg.svd(R, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return u, sigma, vh


def _are_beside(places: NDArray[np.intp]) -> bool:
    """Whether these increasing places are those of a slice, which is copied faster."""
    return len(places) > 0 and bool(places[-1] - places[0] + 1 == len(places))


def _runs(places: NDArray[np.intp]) -> Iterator[tuple[slice, slice]]:
    """Increasing places as slices: where each of them goes, and where it comes from."""
    ends = np.flatnonzero(np.diff(places, append=-1) != 1) + 1
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist()):
        yield slice(start, end), slice(int(places[start]), int(places[start]) + end - start)


def _subtract_product(c: Array, a: Array, b: Array) -> None:
    """c -= ab, in place and without a matrix for the product. The rows of c are columns to BLAS."""
    if c.size:
        (gemm,) = linalg.get_blas_funcs(("gemm",), (c,))
        gemm(-1, b.T, a.T, beta=1, c=c.T, overwrite_c=True)


def _squares(x: Array) -> NDArray[np.float64]:
    """|x|² in double precision. It is infinite beyond that, which GCV refuses."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(x).astype(np.float64) ** 2)


def _lengths(x: Array) -> Array:
    """The norms of columns, also where squares are beyond the precision."""
    return NUMPY.lengths(np.abs(x), axis=0)
