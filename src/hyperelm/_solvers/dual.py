"""Fewer rows than unknowns: the dual problem, whose work is that of the rows.

While an accumulator has seen fewer rows than it has unknowns, it keeps the rows. In one block of the algebra they are a
matrix A with n rows and K > n columns. The matrix AAᴴ, (n, n), is smaller than AᴴA, (K, K), and has all that is needed:

    x_λ = Aᴴ (AAᴴ + λ)⁻¹ t,        AAᴴ = U diag(σ²) Uᴴ,        z = Uᴴt,        V = AᴴU diag(1/σ).

V is never formed: products with it are products with A and then with U diag(1/σ) (`Thin`). For one λ a Cholesky
decomposition AAᴴ + λ = GᴴG is enough (`CholeskyOfRows`). With S = AᴴA + λ and a row a,

    a S⁻¹ aᴴ = (aaᴴ - ‖aAᴴG⁻¹‖²)/λ,        S⁻¹ = CCᴴ,        C = (1 - Aᴴ G⁻¹ Gᴴ (Gᴴ + √λ)⁻¹ G⁻ᴴ A)/√λ.

The first is Woodbury's formula. The second is that of a square root after Potter: with W = G⁻ᴴA and the triangular
F = √λ G⁻ᴴ, WWᴴ = 1 - FFᴴ, and (1 - Wᴴ(1 + F)⁻¹W)(1 - Wᴴ(1 + F)⁻ᴴW) = 1 - WᴴW.

As normal equations do, AAᴴ has the squares of the singular values, so rounding grows with the square of the condition.
Where that is too much, the singular value decomposition of A itself takes its place (`Triangular`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import unit_algebra
from hyperelm._backend.workspace import scratch_copy
from hyperelm._lazy import lazy
from hyperelm._linalg.planes import block_basis, block_matrix, coordinate_matrix, planes
from hyperelm._solvers.problem import Array, Cholesky, NormalEquations, Problem, Spectral, Triangular

Kind = TypeVar("Kind", bound=Triangular)


@dataclass(frozen=True)
class Thin:
    """The matrix V = AᴴW, (K, r), as its two factors: the rows A, (n, K), and their coefficients W, (n, r)."""

    A: Array
    coefficients: Array
    __array_ufunc__ = None  # so that NumPy leaves products with it to this class

    def __getitem__(self, at: tuple[slice, Any]) -> Thin:
        """Some of the columns."""
        rows, columns = at
        assert rows == slice(None), rows
        return Thin(self.A, self.coefficients[:, columns])

    def __matmul__(self, right: Array) -> Array:
        return _adjoint_product(self.A, self.coefficients @ right)

    def __rmatmul__(self, left: Array) -> Array:
        return np.asarray((left @ self.A.conj().T) @ self.coefficients)


@dataclass(frozen=True)
class CholeskyOfRows:
    """The solution for one ridge, from the decomposition of AAᴴ + λ and the rows A/f."""

    unit_rows: Array
    of_rows: Cholesky
    ridge: float

    def solution(self, t: Array) -> Array:
        """x = Aᴴ (AAᴴ + λ)⁻¹ t, as (A/f)ᴴ times what the decomposition solves, f (AAᴴ + λ)⁻¹ t."""
        return _adjoint_product(self.unit_rows, self.of_rows.solution(t))

    def through(self, rows: Array) -> Array:
        """aAᴴG⁻¹ of rows a, given aAᴴ/f: hence the product with f."""
        found = self.of_rows.through(rows)
        return found * found.real.dtype.type(self.of_rows.factor)

    def half_solution(self, columns: Array) -> Array:
        """C columns, with CCᴴ = (AᴴA + λ)⁻¹."""
        of_rows, root = self.of_rows, np.sqrt(self.ridge)
        upper = np.conj(of_rows.upper) if np.iscomplexobj(of_rows.upper) else of_rows.upper  # G = f upper
        shifted = scratch_copy(upper)
        shifted *= shifted.real.dtype.type(of_rows.factor)
        shifted.flat[:: len(upper) + 1] += root  # G + √λ
        solve, times = linalg.get_blas_funcs(("trsm", "trmm"), (upper, shifted))
        # From right to left: A, G⁻ᴴ, (Gᴴ + √λ)⁻¹, Gᴴ, G⁻¹, Aᴴ. One factor f is left, as of Gᴴ.
        x = np.asfortranarray(self.unit_rows @ columns)
        x = solve(1, upper, x, trans_a=2, overwrite_b=True)
        x = solve(1, shifted, x, trans_a=2, overwrite_b=True)
        x = times(of_rows.factor, upper, x, trans_a=2, overwrite_b=True)
        x = solve(1, upper, x, overwrite_b=True)
        found = np.array(columns.T, order="C").T  # in the order of the product
        found -= _adjoint_product(self.unit_rows, x)
        found /= columns.real.dtype.type(root)
        return found


@dataclass(frozen=True)
class FewRows(Triangular):
    """A and t of fewer rows than unknowns, solved by AAᴴ.

    factor : f of the algebra's table; AAᴴ is kept as that of A/f, as its square may be beyond the precision
    """

    factor: float = 1.0
    is_dual = True

    @lazy
    def unit_rows(self) -> Array:
        """A/f."""
        return self.R if self.factor == 1 else self.R / self.R.real.dtype.type(self.factor)

    @lazy
    def dual(self) -> NormalEquations:
        """The normal equations of Aᴴ, whose matrix is AAᴴ; t takes the place of their right-hand sides."""
        return NormalEquations(_gram_of_rows(self.unit_rows), self.qt, self.multiplicity, self.factor)

    @property
    def cross(self) -> Array:
        """What the solution of a `cholesky` takes."""
        return self.qt

    def in_basis(self, rows: Array) -> Array:
        """aAᴴ/f of rows a, which serves every ridge."""
        return np.asarray(rows @ self.unit_rows.conj().T)

    @property
    def own_in_basis(self) -> Array:
        """The same of the rows A themselves, AAᴴ/f."""
        return self.dual.gram * self.dual.gram.real.dtype.type(self.factor)

    def largest(self) -> float:
        """An estimate of the largest singular value."""
        return self.dual.largest() if len(self.R) else 0.0

    @property
    def floor(self) -> float:
        return self.dual.floor

    def singular_values(self) -> Array:
        return self.dual.singular_values() if len(self.R) else np.zeros(0)

    def spectral(self) -> Spectral:
        """From AAᴴ = U diag(σ²) Uᴴ."""
        values, U = np.zeros(0, self.R.real.dtype), self.dual.gram  # of no rows, which LAPACK refuses
        if len(U):
            values, U = linalg.eigh(U, driver="evd", check_finite=False)
        values, U = values[::-1], U[:, ::-1]
        sigma = self.dual.roots(values)  # of A/f
        # Where σ is no more than rounding, the column of V is zero. z keeps its part of t, which no solution explains.
        W = np.divide(U, sigma, out=np.zeros_like(U), where=sigma > 0)
        V, z = Thin(self.unit_rows, W), U.conj().T @ self.qt
        return Spectral(sigma * sigma.dtype.type(self.factor), V, z, self.multiplicity)

    def cholesky(self, ridge: float) -> CholeskyOfRows | None:
        """The decomposition of AAᴴ + λ. None where rounding has left that indefinite."""
        of_rows = self.dual.cholesky(ridge)
        return None if of_rows is None else CholeskyOfRows(self.unit_rows, of_rows, ridge)

    def extreme_values(self, cholesky: CholeskyOfRows | None) -> tuple[float, float]:
        """Estimates of the largest and the smallest of the n singular values, given the decomposition for λ = 0."""
        if not len(self.R):
            return 0.0, 0.0
        return self.dual.extreme_values(None if cholesky is None else cholesky.of_rows)


def with_cholesky(problems: Sequence[Problem]) -> list[NormalEquations | FewRows]:
    """The problems, if a Cholesky decomposition solves all of them; else none."""
    found = [problem for problem in problems if isinstance(problem, NormalEquations | FewRows)]
    return found if len(found) == len(problems) else []


def problems_of_rows(kind: type[Kind], algebra: Algebra, rows: Sequence[tuple[Array, Array]]) -> list[Kind]:
    """The problem of every block, of this class, from some chunks of rows H and T."""
    basis = block_basis(algebra)
    H, T = (part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*rows))
    entries, coordinates = planes(H, basis.entries), planes(T, basis.coordinates)
    more = {"factor": unit_algebra(algebra)[1]} if issubclass(kind, FewRows) else {}
    found = []
    for block, of_entries, of_coordinates in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        A = block_matrix(entries[of_entries], block)
        t = coordinate_matrix(coordinates[of_coordinates], block)
        found.append(kind(A, t, block.parts * block.copies, len(A), **more))
    return found


def _adjoint_product(A: Array, x: Array) -> Array:
    """Aᴴx, without a conjugate copy of A."""
    return np.asarray((x.conj().T @ A).conj().T)


def _gram_of_rows(A: Array) -> Array:
    """AAᴴ. NumPy takes the symmetric product for real numbers, but not for complex ones."""
    if not np.iscomplexobj(A) or 0 in A.shape:
        return np.asarray(A @ A.conj().T)
    (herk,) = linalg.get_blas_funcs(("herk",), (A,))
    lower = herk(1, A.T, trans=2, lower=False).T  # of conj(A)Aᵀ the upper triangle, and of its transpose the lower one
    return np.asarray(lower + np.tril(lower, -1).conj().T)
