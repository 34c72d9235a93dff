"""Principal components in an algebra.

In an associative algebra whose left multiplications are closed under transposition, B is a *-homomorphism for every
block: B(XW) = B(X)B(W), and a hypercomplex matrix W has W*W = 1 if B(W)ᴴB(W) = 1 in all of them. The best X ≈ XWW*
with L columns in W therefore has B(W) spanning the n L leading eigenvectors of B(X)ᴴB(X), block by block. To stay
among the matrices that are B of something, a random W₀ is projected onto that span and made orthonormal there:

    B(W) = Y (YᴴY)^{-1/2},      Y = V Vᴴ B(W₀).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.decomposition import Block
from hyperelm.products import block_basis, block_matrix, from_planes, planes
from hyperelm.solvers import Gram


def is_star_closed(algebra: Algebra) -> bool:
    """Whether it is associative and the transpose of every left multiplication is a left multiplication."""
    left = algebra.table.reshape(algebra.dim, -1)
    both = np.concatenate([left, algebra.table.swapaxes(1, 2).reshape(algebra.dim, -1)])
    return algebra.is_associative and bool(np.linalg.matrix_rank(both) == np.linalg.matrix_rank(left))


def principal_components(state: Gram, components: int, free: list[int], rng: np.random.Generator) -> FloatArray:
    """W, (D, L, d), from the normal equations of rows [x] or [x, 1]; `free` names the column of ones, if any.

    Projecting the ones out of AᴴA leaves the covariance; without them it is the matrix of second moments.
    """
    algebra, basis = state.algebra, block_basis(state.algebra)
    D = state.unknowns - len(free)
    start = planes(rng.standard_normal((D, components, algebra.dim)).astype(state.dtype), basis.entries)
    for block, at, problem in zip(basis.blocks, basis.entry_slices, state.problems()):
        if free:
            problem = problem.without(state.unknowns_of(np.asarray(free), problem)).problem
        W = _leading(problem.gram, block_matrix(start[at], block))
        _put_entries(W, start[at], block)
    return from_planes(start, np.asarray(np.linalg.pinv(basis.entries).T, dtype=np.float64))


def _leading(gram: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """An orthonormal basis of the leading eigenvectors, as near as can be to the columns of `start`."""
    K, count = start.shape
    _, V = linalg.eigh(gram, subset_by_index=(K - count, K - 1), check_finite=False)
    u, _, vh = linalg.svd(V.conj().T @ start, check_finite=False)
    return V @ (u @ vh)


def _put_entries(matrix: NDArray[Any], image: FloatArray, block: Block) -> None:
    """The inverse of `block_matrix`: write a matrix (n M, n L) to its planes, (n n [2], M, L)."""
    n, (M, L) = block.size, image.shape[1:]
    entries = matrix.reshape(n, M, n, L).transpose(0, 2, 1, 3)
    parts = image.reshape(n, n, block.parts, M, L)
    parts[:, :, 0] = entries.real
    if block.is_complex:
        parts[:, :, 1] = entries.imag
