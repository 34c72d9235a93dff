"""How sure a fitted model is: what rows that are left out, at the ridge that was taken, tell about new ones.

    values   the leave-one-out residuals, standardised, and the leverage of new rows (`_solvers.intervals`)
    labels   the scale of the probabilities with the largest likelihood (`_solvers.calibration`)

Where leave-one-out errors choose the ridge, the rows that were left out for it serve again. Otherwise a pass of its own
leaves out a share of the rows. Of many rows a sixteenth suffices, so that a fit with a fixed ridge takes little longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import chunks
from hyperelm._backend.workspace import one_blas
from hyperelm._network.layout import Layout
from hyperelm._network.readout import Readout
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.calibration import Probabilities, calibrated
from hyperelm._solvers.intervals import PROBED, Residuals, probes, standardised
from hyperelm._solvers.loo import LeaveOneOut, LeftOut, at_ridge, residuals_by
from hyperelm._solvers.sample import RowSample, sample_size
from hyperelm._training.passes import Training
from hyperelm._training.readouts import free_unknowns, weights_of
from hyperelm._validation import FloatArray

_SCRATCH = 2**19  # numbers in the residuals of some rows
_TARGETS = 2**22  # numbers in the targets of all rows that a pass of its own leaves out
_FEWEST = 256  # rows that are left out at least
_ENOUGH = 512  # rows, of many rows; a sixteenth of all where that is more
_SHARE = 1 / 16


@dataclass(frozen=True, eq=False)
class Intervals:
    """What prediction intervals need.

    residuals : what is kept of those of rows that were left out
    probes : (width, numbers, r), weights of a further output layer, whose mean square is the leverage of a row
    """

    residuals: Residuals
    probes: FloatArray


Certainty = Intervals | Probabilities


def layout_of_probes(dim: int) -> Layout:
    numbers = -(-PROBED // dim)
    return Layout.filled(2, numbers * dim, slice(0, dim), dim)


def own_share(accumulator: Accumulator) -> float:
    """The share of the rows that a pass of its own leaves out."""
    n_rows, numbers = max(accumulator.n_counted, 1), accumulator.targets * accumulator.algebra.dim
    wanted = min(
        sample_size(accumulator), max(_ENOUGH, int(_SHARE * n_rows)), max(_FEWEST, _TARGETS // max(numbers, 1))
    )
    return min(1.0, wanted / n_rows)


def certainty_of(
    sample: RowSample,
    accumulator: Accumulator,
    readout: Readout,
    ridge: float,
    training: Training,
    *,
    labels: bool,
    share: float,
    known: LeftOut | None = None,
) -> Certainty | None:
    """From a sample of the rows, `share` of all, that `accumulator` has seen; `known` if they were left out already.

    None of no rows, and where the leverage of rows is beyond double precision.
    """
    if len(sample.H) == 0:
        return None
    # Weights at the ends of double precision have leverages beyond it. Their residuals then count as infinite.
    with one_blas(), np.errstate(all="ignore"):
        places = training.output.places if readout.algebra is not None else np.arange(training.output.columns)
        if known is None:
            free = free_unknowns(accumulator, training)
            known = _left_out(sample, at_ridge(accumulator, ridge, free, is_exact=sample.is_whole), places)
        method, residuals, leverages = known
        count = share * float(sample.times.sum())
        if labels:
            indicators = sample.T.reshape(len(sample.T), -1)[:, places]
            return calibrated(residuals + indicators, indicators.argmax(axis=1), sample.times, count)
        of_probes = layout_of_probes(training.algebra.dim)
        numbers = of_probes.features if readout.algebra is not None else of_probes.columns
        weights = weights_of(readout, probes(method, numbers), replace(training, output=of_probes))
        if not np.isfinite(weights).all():
            return None
    return Intervals(Residuals.of(standardised(residuals, leverages), sample.times, count), _compact(weights))


def _compact(weights: FloatArray) -> FloatArray:
    """Weights in single precision, which is more than probes tell, where that can hold them."""
    sizes = np.abs(weights[weights != 0])
    info = np.finfo(np.float32)
    fits = info.tiny < sizes.min(initial=1.0) and sizes.max(initial=1.0) < info.max
    return weights.astype(np.float32) if fits else weights


def _left_out(sample: RowSample, method: LeaveOneOut, places: NDArray[np.intp]) -> LeftOut:
    residuals, leverages = np.empty((len(sample.H), len(places))), np.empty(len(sample.H))
    for at in chunks(len(sample.H), max(16, _SCRATCH // max(1, sample.T[0].size))):
        e, of_rows = residuals_by(method, sample.H[at], sample.T[at], sample.weight[at])
        residuals[at], leverages[at] = e.reshape(len(e), -1)[:, places], of_rows[:, 0]
    return LeftOut(method, residuals, leverages)
