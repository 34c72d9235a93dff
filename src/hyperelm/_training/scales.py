"""Where the columns of the training rows lie: their means, and their standard deviations as the spread.

A graph of single precision takes the means off the columns first, and is compared with the model on rows that lie as
the training rows do. No row is kept for it. Two sets of n₁ and n₂ rows have together

    n m = n₁m₁ + n₂m₂,        n s² = n₁s₁² + n₂s₂² + n₁n₂/n (m₁ - m₂)².
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import backend_of
from hyperelm._backend.arrays import chunk_of, namespace, numpy_dtype, to_numpy
from hyperelm._validation import as_real

_ROWS = 64  # of a chunk that are looked at


@dataclass(frozen=True, eq=False)
class Columns:
    """The mean and the spread of every column of `count` rows; the spread of a constant column is 0."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    count: int = 0

    @classmethod
    def of(cls, rows: Any) -> Columns:
        """From rows in any form."""
        xp, values = namespace(rows=rows), backend_of(rows).in_double(as_real(rows, "rows"))
        values = xp.reshape(values, (rows.shape[0], -1))
        sizes = xp.max(xp.abs(values), axis=0)
        units = xp.where(sizes > 0, sizes, xp.ones_like(sizes))  # in which squares are numbers
        values = values / units
        found = (xp.mean(values, axis=0), xp.std(values, axis=0), units)
        mean, spread, units = (np.asarray(to_numpy(part), np.float64) for part in found)
        return cls(mean * units, _beyond_rounding(spread, mean, numpy_dtype(values)) * units, rows.shape[0])

    def merged(self, other: Columns) -> Columns:
        count = self.count + other.count
        p, q = self.count / count, other.count / count
        mean = p * self.mean + q * other.mean
        within = np.hypot(sqrt(p) * self.spread, sqrt(q) * other.spread)
        spread = np.hypot(within, sqrt(p * q) * np.abs(self.mean - other.mean))
        return Columns(mean, _beyond_rounding(spread, mean, mean.dtype), count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and np.array_equal(self.spread, other.spread)

    def rows(self, count: int) -> NDArray[np.float64]:
        """Random rows, (count, columns), whose columns have this mean and spread and end at √3 spreads from the mean.

        Training rows mostly reach that far. Beyond them a model may be of any size.
        """
        within = np.random.default_rng(0).uniform(-sqrt(3), sqrt(3), (count, len(self.mean)))
        return self.mean + self.spread * within


@dataclass(frozen=True)
class Scales:
    """The columns of inputs and of targets."""

    inputs: Columns
    targets: Columns

    @classmethod
    def of(cls, X: Any, T: Any) -> Scales:
        """From up to 64 rows of a chunk, evenly spaced."""
        at = slice(0, None, max(1, X.shape[0] // _ROWS))
        inputs = Columns.of(chunk_of(X, at))
        return cls(inputs, inputs if T is X else Columns.of(chunk_of(T, at)))

    def merged(self, other: Scales) -> Scales:
        return Scales(self.inputs.merged(other.inputs), self.targets.merged(other.targets))


def _beyond_rounding(
    spread: NDArray[np.float64], mean: NDArray[np.float64], dtype: np.dtype[Any]
) -> NDArray[np.float64]:
    """Spreads, 0 where they are what rounding leaves of a constant."""
    return np.where(spread > 10 * float(np.finfo(dtype).eps) * np.abs(mean), spread, 0.0)
