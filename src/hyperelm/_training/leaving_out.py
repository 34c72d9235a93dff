"""The second pass of a search: every row is left out, for many parts of one hidden layer at once.

A part is some neurons of the layer with one readout. Its mean losses along a path of ridges λ are

    E(λ) = Σ_m w_m c_m loss(e₋ₘ(λ)) / Σ_m w_m c_m,

where e₋ₘ is the error of row m when all other rows are fitted (`_solvers.loo`), w_m the weight of the row and c_m the
cost of an error on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hyperelm._solvers.loo import BySpectrum, residuals_by
from hyperelm._solvers.losses import Loss
from hyperelm._solvers.spectrum import Spectrum
from hyperelm._training.passes import Training
from hyperelm._training.rows import Chunk

_SCRATCH = 2**22  # numbers in the residuals of rows left out


@dataclass(frozen=True)
class PartOfLayer:
    """One candidate of a search: some neurons of a hidden layer, a readout and a path of ridges.

    training : that of these neurons and this readout
    kept : the numbers of the whole hidden layer that it keeps
    """

    training: Training
    kept: NDArray[np.intp]
    spectrum: Spectrum
    ridges: NDArray[np.float64]


@dataclass(frozen=True)
class LeavingOut:
    """A pass that sums over rows that it leaves out, (losses + 2, ridges), for every part of the hidden layer.

    They are Σ wc loss for each of the `losses`, Σ wc times the leverage, and Σ wc.
    """

    training: Training
    parts: Sequence[PartOfLayer]
    losses: Sequence[Loss]
    name = "left out"

    @property
    def size(self) -> int:
        output = self.training.output
        ridges = max(len(part.ridges) for part in self.parts)
        return max(16, min(self.training.size, _SCRATCH // (ridges * output.dim * max(output.features, output.dim))))

    @property
    def work(self) -> float:
        return self.training.work

    def begin(self) -> list[NDArray[np.float64]]:
        return [np.zeros((len(self.losses) + 2, len(part.ridges))) for part in self.parts]

    def add(self, gathered: list[NDArray[np.float64]], chunk: Chunk) -> list[NDArray[np.float64]]:
        H, t, columns, cost = self.training.numbers(chunk)
        places, costs = self.training.output.places, 1.0 if cost is None else cost
        # A row of weight 2 is two samples, of which one is left out; a cost is that of each of them.
        one, times = np.minimum(chunk.weights, 1) * costs, chunk.weights * costs
        wanted = t.array.reshape(len(one), 1, -1)[:, :, places].astype(np.float64, copy=False)
        for total, part in zip(gathered, self.parts):
            rows, targets, at = H[:, part.kept], t, places
            if part.training.readout == "free":
                (rows, targets), at = part.training.components(rows, columns), np.arange(len(places))
            e, leverage = residuals_by(BySpectrum(part.spectrum, part.ridges), rows, targets.array, one)
            e = e.reshape(len(one), len(part.ridges), -1)[:, :, at].astype(np.float64, copy=False)
            total += (
                *(times @ loss(e, wanted) for loss in self.losses),
                times @ leverage,
                np.full(len(part.ridges), times.sum()),
            )
        return gathered
