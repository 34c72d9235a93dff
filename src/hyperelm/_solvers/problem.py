"""The least-squares problem of one block of the algebra.

A block of the algebra turns the rows into a real or complex problem min ‖Ax - t‖² + λ‖x‖² with K unknowns and R
right-hand sides. An accumulator keeps of it either AᴴA and Aᴴt or, from A = QR, the factor R and Qᴴt. With the
singular value decomposition A = U diag(σ) Vᴴ, that both of them give, and z = Uᴴt,

    x_λ = V diag(σ/(σ²+λ)) z,                     ‖t‖² - ‖A x_λ - t‖² = Σ |z_k|² (1 - (λ/(σ_k²+λ))²).

Some unknowns may be *free* of the penalty (the bias). They are projected out, which leaves a smaller problem of the
same kind, and follow from the others at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._backend.workspace import scratch_copy

_SMALL = 128  # unknowns

Array = NDArray[Any]


class Problem(Protocol):
    """What `solve` asks of a problem.

    multiplicity : how often its singular values are singular values of Φ_L
    size : the number K of unknowns
    floor : the smallest ridge, relative to the largest eigenvalue, whose effect is more than rounding
    without : the problem without the free unknowns. Of the other columns, those that the projection leaves shorter than
        `rtol` times their length, or no longer than rounding, count as zero.
    """

    @property
    def multiplicity(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def floor(self) -> float: ...
    def singular_values(self) -> NDArray[np.float64]: ...
    def spectral(self) -> Spectral: ...
    def without(self, free: NDArray[np.intp], rtol: float) -> Reduced: ...


@dataclass(frozen=True)
class Reduced:
    """A problem from which free unknowns were projected out, and the way back.

    kept, free : which unknowns are penalised and which are not
    of_rows, of_targets : the coefficients of the kept columns of A and of t on the free ones, (free, K) and (free, R)
    root : W, (free, rank), with WWᴴ the pseudoinverse of the free columns' AᴴA
    explained : the part of ‖t‖² that the free columns explain
    """

    problem: Any
    kept: NDArray[np.intp]
    free: NDArray[np.intp]
    of_rows: Array
    of_targets: Array
    root: Array
    explained: float

    @classmethod
    def unchanged(cls, problem: Any) -> Reduced:
        """A problem without free unknowns."""
        nothing = np.zeros((0, 0))
        return cls(problem, np.arange(problem.size), np.arange(0), nothing, nothing, nothing, 0.0)

    def restore(self, x: Array) -> Array:
        """All unknowns, in their order, from the penalised ones."""
        if not len(self.free):
            return x
        whole = np.empty((len(self.kept) + len(self.free), x.shape[1]), dtype=x.dtype)
        whole[self.kept], whole[self.free] = x, self.of_targets - self.of_rows @ x
        return whole

    def project(self, A: Array, t: Array) -> tuple[Array, Array, Array]:
        """Rows A and targets t of the whole problem as those of the reduced one, and AW of the free unknowns."""
        if not len(self.free):
            return A, t, A[:, :0]
        free = A[:, self.free]
        return A[:, self.kept] - free @ self.of_rows, t - free @ self.of_targets, free @ self.root


@dataclass(frozen=True)
class Spectral:
    """σ (K), V (K, K) and z (K, R) of one block, σ descending, and ‖t - Uz‖² where the problem has t itself."""

    sigma: Array
    V: Array
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
    """The triangular factor S of (AᴴA + λ)ᵀ = SᴴS, transposed because rows here are columns to LAPACK."""

    S: Array

    def solution(self, b: Array, factor: float = 1.0) -> Array:
        """x of factor (AᴴA + λ) x = b from factor xᵀ = bᵀ S⁻¹ S⁻ᴴ, with one copy of b."""
        xt = scratch_copy(b.T)
        (trsm,) = linalg.get_blas_funcs(("trsm",), (self.S, xt))
        for alpha, adjoint in ((1 / factor, 0), (1, 2)):
            xt = trsm(alpha, self.S, xt, side=1, trans_a=adjoint, overwrite_b=True)
        return np.asarray(xt.T)

    def inverse_times(self, rows: Array) -> Array:
        """AG⁻¹, (m, K), of rows A, where AᴴA + λ = GᴴG: here G is the conjugate of S."""
        columns = np.conj(rows, order="C").T
        (trsm,) = linalg.get_blas_funcs(("trsm",), (self.S, columns))
        return np.conj(trsm(1, self.S, columns, trans_a=1, overwrite_b=True).T)


@dataclass(frozen=True)
class NormalEquations:
    """AᴴA (K, K) and Aᴴt (K, R) of a problem min ‖fAx - t‖² + λ‖x‖².

    The factor f is that of the algebra's table, whose square may be beyond the precision. All methods answer for fA;
    only `cholesky` factors AᴴA + λ/f².
    """

    gram: Array
    cross: Array
    multiplicity: int
    factor: float = 1.0

    @property
    def size(self) -> int:
        return len(self.gram)

    @property
    def floor(self) -> float:
        """The smallest ridge, relative to the largest eigenvalue, that rounding in the sums lets one see."""
        return float(4 * self.size * np.finfo(self.gram.dtype).eps)

    @property
    def _rounding(self) -> float:
        """What sums of squares may leave of zero: up to 850 eps were seen, for any number of rows."""
        return float(max(2000, self.size) * np.finfo(self.gram.dtype).eps)

    def singular_values(self) -> NDArray[np.float64]:
        values = linalg.eigvalsh(self.gram, check_finite=False)[::-1]
        seen = values > values[0] * np.finfo(values.dtype).eps * self.size
        return self.factor * np.asarray(np.sqrt(np.where(seen, values, 0)), dtype=np.float64)

    def spectral(self) -> Spectral:
        values, vectors = linalg.eigh(self.gram, driver="evd", check_finite=False)
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        sigma = np.sqrt(values)
        seen = values > values.max(initial=0) * np.finfo(values.dtype).eps * self.size
        z = np.zeros_like(self.cross)
        z[seen] = (vectors[:, seen].conj().T @ self.cross) / sigma[seen, None]
        return Spectral(np.where(seen, sigma, 0) * sigma.dtype.type(self.factor), vectors, z, self.multiplicity)

    def without(self, free: NDArray[np.intp], rtol: float) -> Reduced:
        """The Schur complement on the penalised unknowns."""
        kept = np.setdiff1d(np.arange(self.size), free)
        root = self._inverse_root(free)
        coupling = self.gram[np.ix_(free, kept)]
        weights = root @ (root.conj().T @ coupling)
        cross_free = self.cross[free]
        gram = self.gram[np.ix_(kept, kept)]
        before = gram.diagonal().real.copy()
        gram -= coupling.conj().T @ weights
        gone = _clear_vanished(gram, gram.diagonal().real, before, self._rounding)
        gram[gone] = 0
        cross = self.cross[kept]
        cross -= weights.conj().T @ cross_free
        cross[gone] = 0
        inside = root.conj().T @ cross_free
        explained = float(_squares(inside).sum())
        problem = NormalEquations(gram, cross, self.multiplicity, self.factor)
        root = root / root.real.dtype.type(self.factor)
        return Reduced(problem, kept, free, weights, root @ inside, root, explained)

    def _inverse_root(self, at: NDArray[np.intp]) -> Array:
        """W with WWᴴ the pseudoinverse of AᴴA of these unknowns."""
        values, vectors = linalg.eigh(self.gram[np.ix_(at, at)], check_finite=False)
        seen = values > np.abs(values).max(initial=0) * self._rounding
        root: Array = vectors[:, seen] / np.sqrt(values[seen])
        return root

    def cholesky(self, ridge: float) -> Cholesky | None:
        """The factor of AᴴA + λ/f², or None where that is not positive definite to rounding, or no number."""
        ridge = ridge / self.factor / self.factor
        if ridge > float(np.finfo(self.gram.dtype).max):
            return None
        transposed = scratch_copy(self.gram.T)
        transposed.flat[:: self.size + 1] += ridge
        try:
            return Cholesky(linalg.cho_factor(transposed, overwrite_a=True, check_finite=False)[0])
        except linalg.LinAlgError:
            return None

    @property
    def _unit(self) -> float:
        """The largest diagonal entry: in units of it squares of squares do not overflow."""
        return float(self.gram.diagonal().real.max(initial=0)) or 1.0

    def largest(self) -> float:
        """An estimate of the largest singular value of fA, by Lanczos' method."""
        unit = self._unit
        return self.factor * float(np.sqrt(unit) * np.sqrt(lanczos(lambda v: (self.gram @ v) / unit, self.gram)))

    def solution(self, factor: Cholesky) -> Array:
        """x, given the Cholesky factor: (f²AᴴA + λ) x = fAᴴt."""
        return factor.solution(self.cross, self.factor)

    def through(self, factor: Cholesky, rows: Array) -> Array:
        """fAG⁻¹, (m, K), of rows fA, where f²AᴴA + λ = GᴴG: what leverages are the squares of."""
        return factor.inverse_times(rows / rows.real.dtype.type(self.factor))

    def extreme_values(self, factor: Cholesky | None) -> tuple[float, float]:
        """Estimates of the largest and the smallest singular value of fA, given the Cholesky factor of AᴴA.

        By Lanczos' method for AᴴA and for its inverse: a few per cent for a few products. Small matrices give all
        their eigenvalues in that time.
        """
        if self.size <= _SMALL:
            values = self.singular_values()
            return float(values[0]), float(values[-1])
        largest, unit = self.largest(), self._unit
        if factor is None or self.gram.diagonal().real.min(initial=unit) <= np.finfo(self.gram.dtype).eps * unit:
            return largest, 0.0
        # The transposed matrix, of which S is the factor, has the same eigenvalues.
        inverse = lanczos(lambda v: linalg.cho_solve((factor.S, False), v * unit, check_finite=False), self.gram)
        return largest, self.factor * float(np.sqrt(unit) / np.sqrt(inverse))


@dataclass(frozen=True)
class Triangular:
    """R (r, K) and Qᴴt (r, R) of A = QR.

    From `svd` they are A and t themselves, and after a projection R is not triangular. A has so many `rows`, and so at
    most as many singular values that are not zero.
    """

    R: Array
    qt: Array
    multiplicity: int
    rows: int

    @property
    def size(self) -> int:
        return self.R.shape[1]

    @property
    def floor(self) -> float:
        """Below it predictions would depend on the rounding of the rows."""
        return float(16 * np.finfo(self.R.dtype).eps)

    def singular_values(self) -> NDArray[np.float64]:
        return np.asarray(self._of_rows(linalg.svdvals(self.R, check_finite=False)), dtype=np.float64)

    def _of_rows(self, sigma: Array) -> Array:
        """Without those that only rounding has added, where R has more rows than A had."""
        sigma[self.rows :] = 0
        return sigma

    def spectral(self) -> Spectral:
        u, sigma, vh = linalg.svd(self.R, full_matrices=False, check_finite=False)
        z = u.conj().T @ self.qt
        beyond = float(_squares(self.qt - u @ z).sum()) if len(u) > len(z) else 0.0
        return Spectral(self._of_rows(sigma), vh.conj().T, z, self.multiplicity, beyond)

    def without(self, free: NDArray[np.intp], rtol: float) -> Reduced:
        """The rows beyond the span of the free unknowns' columns, by a pivoted QR of these."""
        kept = np.setdiff1d(np.arange(self.size), free)
        # A sequential QR was seen to leave up to 14 √rows eps of columns that vanish.
        rounding = max(rtol, float(32 * np.sqrt(self.rows) * np.finfo(self.R.dtype).eps))
        rank, r, rotated, qt = _rotated(self.R[:, free], self.R[:, kept], self.qt, rounding)
        rest = rotated[rank:]
        _clear_vanished(rest, _lengths(rest), _lengths(rotated), rounding)
        root = np.linalg.pinv(r) if rank else r.T
        explained = float(_squares(qt[:rank]).sum())
        problem = Triangular(rest, qt[rank:], self.multiplicity, self.rows)
        return Reduced(problem, kept, free, root @ rotated[:rank], root @ qt[:rank], root, explained)


def _squares(x: Array) -> NDArray[np.float64]:
    """|x|² in double precision, and infinite beyond it, which GCV refuses."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(x).astype(np.float64) ** 2)


def _lengths(x: Array) -> Array:
    """The norms of columns, also where squares are beyond the precision."""
    sizes = np.abs(x).max(axis=0, initial=0)
    units = np.where(sizes > 0, sizes, 1)
    return np.asarray(units * np.linalg.norm(x / units, axis=0))


def _rotated(free: Array, kept: Array, t: Array, rtol: float) -> tuple[int, Array, Array, Array]:
    """Of a pivoted QR of the free columns: their rank, the rows of R that matter, Qᴴ kept and Qᴴ t."""
    geqp3, ormqr = linalg.get_lapack_funcs(("geqp3", "unmqr" if np.iscomplexobj(free) else "ormqr"), (free,))
    factor, pivots, tau, _, info = geqp3(free)
    assert info == 0, info
    sizes = np.abs(np.diagonal(factor))
    rank = int(np.sum(sizes > sizes.max(initial=0) * rtol))
    r = np.empty((rank, free.shape[1]), dtype=free.dtype)
    r[:, pivots - 1] = np.triu(factor)[:rank]
    both = np.concatenate([kept, t], axis=1)
    adjoint = "C" if np.iscomplexobj(free) else "T"
    both, _, info = ormqr("L", adjoint, factor[:, : len(tau)], tau, both, max(1, 64 * both.shape[1]))
    assert info == 0, info
    return rank, r, both[:, : kept.shape[1]], both[:, kept.shape[1] :]


def _clear_vanished(matrix: Array, now: Array, before: Array, rounding: float) -> NDArray[np.bool_]:
    """Zero the columns of which a projection has left nothing but rounding, and say which they are."""
    gone = np.asarray(now <= rounding * before)
    matrix[:, gone] = 0
    return gone


def lanczos(apply: Callable[[Array], Array], like: Array, steps: int = 10) -> float:
    """The largest eigenvalue of a positive matrix given by its products, from below, to a few per cent."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal(len(like)).astype(like.dtype)
    basis: list[Array] = [v / np.linalg.norm(v)]
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(min(steps, len(like))):
        w = apply(basis[-1])
        diagonal.append(float(np.vdot(basis[-1], w).real))
        for q in basis:  # full reorthogonalisation: the basis is tiny, and without it copies appear
            w = w - np.vdot(q, w) * q
        length = float(np.linalg.norm(w))
        if not length > 1e-6 * abs(diagonal[-1]):
            break
        beside.append(length)
        basis.append(w / length)
    values = linalg.eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[: len(diagonal) - 1]))
    return float(values[-1])
