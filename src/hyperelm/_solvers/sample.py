"""Which rows are left out to choose a ridge, and which combinations of their targets stand for all of these.

Leave-one-out errors are exact, but where there are many rows only some of them are left out.

- The rows farthest from the origin stand for themselves: a wrong ridge harms them most.
- A share of all others stands for the rest.

With more than a few dozen targets T, real combinations TC of them are taken, with random signs in C. A real number
commutes with every hypercomplex one, so TC has the solution MC and the errors times C, whose mean square is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import backend_of
from hyperelm._backend.arrays import namespace, to_numpy
from hyperelm._backend.workspace import scratch
from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.accumulator import Accumulator, mixed
from hyperelm._solvers.scalar import shown_rows
from hyperelm._validation import FloatArray, as_real

_NUMBERS = 2**20  # at most so many real numbers in the rows that are left out and their targets
_PRODUCTS = 2**29  # at most so many products of two of these numbers in the leverages
_FEWEST = 256  # but at least so many rows are left out
_FARTHEST = 0.25  # the share of these that are the rows farthest from the origin
_COMBINATIONS = 32  # of the targets


@dataclass
class RowSample:
    """Rows to be left out.

    H, T : (m, L, d) and (m, N, d), the hidden layer and the targets
    weight : (m,), the part of the weight of a row that is left out: that of one sample
    times : (m,), how much the squared error of the row counts
    is_whole : whether these are all rows
    """

    H: FloatArray
    T: FloatArray
    weight: NDArray[np.float64]
    times: NDArray[np.float64]
    is_whole: bool = True

    def mixed(self, C: NDArray[np.float64] | None) -> RowSample:
        """With the combinations TC of the targets, (N, R), in their place; the same for None."""
        return self if C is None else replace(self, T=mixed(self.T, C))

    def taken(self, at: NDArray[np.intp], times: NDArray[np.float64]) -> RowSample:
        """Some of these rows. Their hidden layer lies row by row in memory that serves again, as products take it."""
        H = scratch((len(at), *self.H.shape[1:]), self.H.dtype, zeros=False)
        for k in range(H.shape[2]):
            H[..., k] = self.H[at, :, k]
        return RowSample(H, self.T[at], self.weight[at], times, is_whole=False)

    def merge(self, other: RowSample) -> None:
        self.is_whole &= other.is_whole
        for name in ("H", "T", "weight", "times"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))


def sample_size(accumulator: Accumulator) -> int:
    """How many of the rows that `accumulator` has seen are left out.

    A leverage that is a matrix takes all rows that a number has in its block. If that is too much work for all rows,
    the matrices of a sample that are nearly multiples of the identity count as such, and take one row.
    """
    is_exact = accumulator.n_counted <= _affordable(accumulator, is_exact=True)
    return _affordable(accumulator, is_exact=is_exact)


def _affordable(accumulator: Accumulator, *, is_exact: bool) -> int:
    """The number of rows whose leverages take no more products and memory than they may."""
    unknowns = min(accumulator.unknowns, accumulator.n_rows) if accumulator.few else accumulator.unknowns
    numbers = max(1, (unknowns + min(accumulator.targets, _COMBINATIONS)) * accumulator.algebra.dim)
    rows = max(shown_rows(block, is_exact=is_exact) for block in block_basis(accumulator.algebra).blocks)
    return max(_FEWEST, min(_NUMBERS // numbers, _PRODUCTS // (numbers**2 * rows)))


def drawn(lengths: NDArray[np.float64], share: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places of a share of rows of these lengths, and for how many rows each of them stands.

    The longest stand for themselves. Of the others, in the order of their lengths, every k-th stands for k rows.
    """
    n_rows = len(lengths)
    n_drawn = min(n_rows, int(np.ceil(share * n_rows)))
    if n_drawn == n_rows:
        return np.arange(n_rows), np.ones(n_rows)
    order = np.argsort(-lengths, kind="stable")
    longest = int(_FARTHEST * n_drawn)
    others, k = n_drawn - longest, (n_rows - longest) / (n_drawn - longest)
    steps = ((np.arange(others) + 0.5) * (n_rows - longest) / others).astype(np.intp)
    return np.append(order[:longest], order[longest + steps]), np.append(np.ones(longest), np.full(others, k))


def row_lengths(X: Any) -> NDArray[np.float64]:
    """√Σx² of every row, in NumPy."""
    x = as_real(X, "X")
    x = namespace(x=x).reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    return np.asarray(to_numpy(backend_of(x).lengths(x)), np.float64)


def combinations(targets: int, count: int = _COMBINATIONS, *, labels: bool = False) -> NDArray[np.float64] | None:
    """C, (N, count), with E[CCᵀ] = 1; None where all targets are taken, as those of labels are."""
    if labels or targets <= count:
        return None
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(targets, count))
    return signs / np.sqrt(count)
