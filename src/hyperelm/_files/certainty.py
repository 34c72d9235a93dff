"""How sure a model is, as named arrays of a file.

probabilities.scale : (1,), the scale of a classifier
intervals.units, .quantiles, .count : what is kept of the residuals of a regressor
intervals.probes : (width, numbers, r), the further output layer that shows the leverage
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._files.container import Arrays
from hyperelm._network.network import Network
from hyperelm._solvers.calibration import Probabilities
from hyperelm._solvers.intervals import LEVELS, Residuals
from hyperelm._training.certainty import Certainty, Intervals, layout_of_probes

_SCALE = "probabilities.scale"
_INTERVALS = tuple(f"intervals.{name}" for name in ("units", "quantiles", "count", "probes"))


def arrays_of(certainty: Certainty | None) -> Arrays:
    if certainty is None:
        return {}
    if isinstance(certainty, Probabilities):
        return {_SCALE: np.array([certainty.scale])}
    residuals = certainty.residuals
    arrays = residuals.units, residuals.quantiles, np.array([residuals.count]), certainty.probes
    return dict(zip(_INTERVALS, arrays))


def certainty_in(arrays: Arrays, kind: type[Certainty] | None, network: Network) -> Certainty | None:
    """What the arrays of a file say, which are taken out; None where they say nothing, as in files before format 3."""
    if kind is Probabilities and _SCALE in arrays:
        scale = arrays.pop(_SCALE)
        if scale.shape != (1,) or scale.dtype != np.float64 or not 0 < scale[0] < np.inf:
            raise ValueError("the scale of its probabilities is not a number above zero")
        return Probabilities(float(scale[0]))
    if kind is Intervals and all(name in arrays for name in _INTERVALS):
        return _intervals([arrays.pop(name) for name in _INTERVALS], network)
    return None


def _intervals(parts: Sequence[NDArray[Any]], network: Network) -> Intervals:
    units, quantiles, count, probes = parts
    columns, of_probes = network.output.columns, layout_of_probes(network.algebra.dim)
    wanted = [(units, (columns,), "f8"), (quantiles, (columns + 1, LEVELS), "f4"), (count, (1,), "f8")]
    fits = all(array.shape == shape and array.dtype == dtype for array, shape, dtype in wanted)
    fits = fits and all((array >= 0).all() for array, _, _ in wanted)
    fits = fits and bool(np.isfinite(units).all()) and 0 < count[0] < np.inf
    fits = fits and not (quantiles[:, 1:] < quantiles[:, :-1]).any()
    fits = fits and probes.shape == (len(network.output_weights), of_probes.features, network.readout.size)
    if not fits or probes.dtype not in (np.float32, network.dtype) or not np.isfinite(probes).all():
        raise ValueError("what it says of its intervals does not fit together")
    return Intervals(Residuals(units, quantiles, float(count[0])), probes)
