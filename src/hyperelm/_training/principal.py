"""Principal components in an algebra.

Principal components are the columns of W, with W*W = 1, for which X ≈ XWW* is best. They are found block by block.

1. The algebra must be associative, and the transpose of every left multiplication must be one, too. Then for every
   block B(XW) = B(X)B(W), and W*W = 1 if B(W)ᴴB(W) = 1 in all blocks.
2. So the best W with L columns has a B(W) that spans the n L leading eigenvectors V of B(X)ᴴB(X).
3. Not every matrix with this span is B of some W. To stay among those that are, a random W₀ is projected onto the span
   and made orthonormal there:

       B(W) = Y (YᴴY)^{-1/2},      Y = V Vᴴ B(W₀).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import backend_of, limits
from hyperelm._backend.arrays import beside, concatenated, namespace, to_numpy, zeros
from hyperelm._linalg.planes import block_basis, block_matrix, from_planes, planes, put_entries
from hyperelm._linalg.products import right_operator
from hyperelm._network.layers import Given, bias_number, bias_weights
from hyperelm._network.layout import Layout
from hyperelm._solvers.accumulator import chunk_rows
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.spectrum import project_out
from hyperelm._training.rows import Chunk
from hyperelm._validation import FloatArray, as_real


def is_star_closed(algebra: Algebra) -> bool:
    """Whether an algebra is associative and the transpose of every left multiplication is a left multiplication."""
    left = algebra.table.reshape(algebra.dim, -1)
    both = np.concatenate([left, algebra.table.swapaxes(1, 2).reshape(algebra.dim, -1)])
    return algebra.is_associative and bool(np.linalg.matrix_rank(both) == np.linalg.matrix_rank(left))


@dataclass
class SecondMoments:
    """The second moments `gram` of rows [x] or [x, e], e being the bias, and the weighted sums of their `columns`."""

    gram: Gram
    layout: Layout
    columns: NDArray[np.float64]
    weight: float = 0.0

    def merge(self, other: SecondMoments) -> None:
        self.gram.merge(other.gram)
        self.columns, self.weight = self.columns + other.columns, self.weight + other.weight

    @property
    def mean(self) -> FloatArray:
        """The mean of the rows as numbers, (D, d)."""
        return self.layout.pack((self.columns / self.weight)[None], self.gram.dtype)[0]


@dataclass(frozen=True)
class MomentPass:
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

    def begin(self) -> SecondMoments:
        gram = Gram(self.algebra, self.input.features + self.bias, 0, self.dtype)
        return SecondMoments(gram, self.input, np.zeros(self.input.columns))

    def add(self, gathered: SecondMoments, chunk: Chunk) -> SecondMoments:
        x = self.input.pack(chunk.X, self.dtype)
        if self.bias:
            e = zeros((len(chunk), 1, self.algebra.dim), x) + beside(bias_number(self.algebra), x)
            x = concatenated([x, e], axis=1)
        gathered.gram.update(x, zeros((len(chunk), 0, self.algebra.dim), x), chunk.weight)
        columns = backend_of(chunk.X).in_double(as_real(chunk.X, "X"))
        sums = beside(chunk.weights, columns) @ namespace(X=x).reshape(columns, (len(chunk), self.input.columns))
        gathered.columns += to_numpy(sums)
        gathered.weight += chunk.count
        return gathered


def principal_encoder(moments: SecondMoments, components: int, scale: float, rng: np.random.Generator) -> Given:
    """The hidden layer whose weights are the leading components times `scale`. A bias centres the codes."""
    algebra, bias = moments.gram.algebra, moments.gram.unknowns > moments.layout.features
    W = principal_components(moments.gram, components, [moments.layout.features] if bias else [], rng)
    W *= W.dtype.type(scale)
    if bias:
        code = (moments.mean.reshape(1, -1) @ right_operator(W, algebra)).reshape(1, components, -1)
        W = np.concatenate([W, bias_weights(-code, algebra)])
    return Given(W)


def principal_components(accumulator: Gram, components: int, free: list[int], rng: np.random.Generator) -> FloatArray:
    """W, (D, L, d), from the normal equations of rows [x] or [x, e]; `free` names the column of e, if any.

    Projecting this column out of AᴴA leaves the covariance. Without a bias, AᴴA is the matrix of second moments.
    """
    algebra, basis = accumulator.algebra, block_basis(accumulator.algebra)
    if not accumulator.is_safe:
        raise limits.refused(
            "encoder",
            f"not be 'pca' for rows whose squares are beyond {accumulator.dtype}",
            f"rows of a mean length of {np.sqrt(accumulator.square_H / accumulator.n_rows):.0e}",
            "Divide the columns by their size.",
        )
    D = accumulator.unknowns - len(free)
    start = planes(rng.standard_normal((D, components, algebra.dim)).astype(accumulator.dtype), basis.entries)
    accumulator.sum_few()  # the matrix is that of the columns, however few rows there are
    parts = project_out(accumulator, accumulator.problems(), free)
    for block, at, reduced in zip(basis.blocks, basis.entry_slices, parts):
        W0 = block_matrix(start[at], block)
        K, count = W0.shape
        _, V = linalg.eigh(reduced.problem.gram, subset_by_index=(K - count, K - 1), check_finite=False)
        # With VᴴB(W₀) = U diag(σ) Zᴴ, the matrix Y (YᴴY)^{-1/2} is V U Zᴴ.
        u, _, zh = linalg.svd(V.conj().T @ W0, check_finite=False)
        put_entries(V @ (u @ zh), start, at, block)
    return from_planes(start, np.asarray(np.linalg.pinv(basis.entries).T, dtype=np.float64))
