"""Principal components in an algebra.

In an associative algebra whose left multiplications are closed under transposition, B is a *-homomorphism for every
block: B(XW) = B(X)B(W), and a hypercomplex matrix W has W*W = 1 if B(W)ᴴB(W) = 1 in all of them. The best X ≈ XWW*
with L columns in W therefore has B(W) spanning the n L leading eigenvectors of B(X)ᴴB(X), block by block. To stay
among the matrices that are B of something, a random W₀ is projected onto that span and made orthonormal there:

    B(W) = Y (YᴴY)^{-1/2},      Y = V Vᴴ B(W₀).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._arrays import beside, concatenated, is_elsewhere, namespace, to_numpy, zeros
from hyperelm._validation import FloatArray, as_real
from hyperelm.algebra import Algebra
from hyperelm.elm import rows
from hyperelm.elm.bias import bias_number, bias_weights
from hyperelm.elm.drawing import Given
from hyperelm.elm.layout import Layout
from hyperelm.planes import block_basis, block_matrix, from_planes, planes, put_entries
from hyperelm.products import right_operator
from hyperelm.solvers import Gram
from hyperelm.solvers.spectrum import project_out
from hyperelm.solvers.sums import chunk_rows
from hyperelm.solvers.team import Team


def is_star_closed(algebra: Algebra) -> bool:
    """Whether it is associative and the transpose of every left multiplication is a left multiplication."""
    left = algebra.table.reshape(algebra.dim, -1)
    both = np.concatenate([left, algebra.table.swapaxes(1, 2).reshape(algebra.dim, -1)])
    return algebra.is_associative and bool(np.linalg.matrix_rank(both) == np.linalg.matrix_rank(left))


class Sums:
    """Second moments of rows [x] or [x, e], in `gram`, and sums of their columns."""

    def __init__(self, gram: Gram, layout: Layout) -> None:
        self.gram, self.layout = gram, layout
        self.columns, self.weight = np.zeros(layout.columns), 0.0

    def merge(self, other: Sums) -> None:
        self.gram.merge(other.gram)
        self.columns, self.weight = self.columns + other.columns, self.weight + other.weight

    @property
    def mean(self) -> FloatArray:
        """The mean of the rows as numbers, (D, d)."""
        return self.layout.pack((self.columns / self.weight)[None], self.gram.dtype)[0]


@dataclass(frozen=True)
class Moments:
    """The pass that sums up second moments."""

    algebra: Algebra
    input: Layout
    bias: bool
    dtype: np.dtype[Any]
    chunk_size: int | None
    name = "components"

    @property
    def size(self) -> int:
        D = self.input.features
        return self.chunk_size or chunk_rows(self.algebra, D, D, 0, self.dtype.itemsize)

    @property
    def work(self) -> float:
        return float(self.input.features**2 * self.algebra.dim**2)

    def begin(self) -> Sums:
        return Sums(Gram(self.algebra, self.input.features + self.bias, 0, self.dtype), self.input)

    def add(self, summary: Sums, block: rows.Block, team: Team) -> Sums:
        x = self.input.pack(block.X, self.dtype)
        if self.bias:
            e = zeros((len(block), 1, self.algebra.dim), x) + beside(bias_number(self.algebra), x)
            x = concatenated([x, e], axis=1)
        summary.gram.update(x, zeros((len(block), 0, self.algebra.dim), x), block.weight, team=team)
        w = block.weights
        columns = as_real(block.X, "X") if is_elsewhere(x) else np.asarray(block.X, dtype=np.float64)
        sums = beside(w, columns) @ namespace(X=x).reshape(columns, (len(block), self.input.columns))
        summary.columns += to_numpy(sums)
        summary.weight += block.count
        return summary


def principal_encoder(sums: Sums, components: int, scale: float, rng: np.random.Generator) -> Given:
    """The leading components times `scale`; with a bias, that takes off the code of the mean: codes are centred."""
    algebra, bias = sums.gram.algebra, sums.gram.unknowns > sums.layout.features
    W = principal_components(sums.gram, components, [sums.layout.features] if bias else [], rng)
    W *= W.dtype.type(scale)
    if bias:
        code = (sums.mean.reshape(1, -1) @ right_operator(W, algebra)).reshape(1, components, -1)
        W = np.concatenate([W, bias_weights(-code, algebra)])
    return Given(W)


def principal_components(state: Gram, components: int, free: list[int], rng: np.random.Generator) -> FloatArray:
    """W, (D, L, d), from the normal equations of rows [x] or [x, e]; `free` names the column of e, if any.

    Projecting this column out of AᴴA leaves the covariance; without them it is the matrix of second moments.
    """
    algebra, basis = state.algebra, block_basis(state.algebra)
    if not state.is_safe:
        raise ValueError(
            f"`encoder` must not be 'pca' for rows whose squares are beyond {state.dtype}: their mean length is "
            f"{np.sqrt(state.square_H / state.rows):.0e}. Divide the columns by their size."
        )
    D = state.unknowns - len(free)
    start = planes(rng.standard_normal((D, components, algebra.dim)).astype(state.dtype), basis.entries)
    for block, at, reduced in zip(basis.blocks, basis.entry_slices, project_out(state, state.problems(), free)):
        W = _leading(reduced.problem.gram, block_matrix(start[at], block))
        put_entries(W, start[at], block)
    return from_planes(start, np.asarray(np.linalg.pinv(basis.entries).T, dtype=np.float64))


def _leading(gram: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """An orthonormal basis of the leading eigenvectors, as near as can be to the columns of `start`."""
    K, count = start.shape
    _, V = linalg.eigh(gram, subset_by_index=(K - count, K - 1), check_finite=False)
    u, _, vh = linalg.svd(V.conj().T @ start, check_finite=False)
    return V @ (u @ vh)
