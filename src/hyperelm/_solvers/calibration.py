"""Probabilities of classes from the outputs of least squares, by maximum likelihood on rows that were left out.

The outputs y, one for each of C classes, become the probabilities

    p_k = δ + (1 - Cδ) exp(a y_k) / Σ_j exp(a y_j).

The order of the outputs is that of the probabilities, since a > 0: the class with the largest output is the likeliest.
The floor δ keeps every p away from 0 and 1. It is two roundings of the precision.

The scale a has the largest likelihood on outputs of rows that were left out. -log p is a convex function of a, so
Newton's method finds it in a few steps. Where the outputs separate all classes, the likelihood would grow for ever with
a. So the label of each row counts as a probability vector that is a little less than certain: as Platt does, as if one
row more had been seen of every class for n rows in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import namespace, numpy_dtype
from hyperelm._validation import FloatArray

DEFAULT_SCALE = 3.0  # where no row was left out
_STEPS = 50
_SCALES = 1e-3, 1e4  # the smallest and the largest


class Probabilities(NamedTuple):
    """From outputs to probabilities: a of the formula above."""

    scale: float = DEFAULT_SCALE

    def of(self, outputs: Any) -> FloatArray:
        """Probabilities, (n, classes), of outputs in any array library."""
        xp, floor = namespace(outputs=outputs), self.floor(numpy_dtype(outputs))
        with np.errstate(over="ignore", under="ignore"):
            raised = xp.exp(self.scale * (outputs - xp.max(outputs, axis=1, keepdims=True)))
        shares = raised / xp.sum(raised, axis=1, keepdims=True)
        probabilities: FloatArray = floor + (1 - outputs.shape[1] * floor) * shares
        return probabilities

    @staticmethod
    def floor(dtype: np.dtype[Any]) -> float:
        """δ, the smallest probability that is given in this precision."""
        return 2 * float(np.finfo(dtype).eps)


def calibrated(
    outputs: NDArray[np.float64], labels: NDArray[np.intp], weight: NDArray[np.float64], count: float
) -> Probabilities:
    """The scale with the largest likelihood on outputs, (m, C), of rows that were left out.

    Parameters
    ----------
    outputs : rows that are not finite do not count
    labels : the place of the class of each row, (m,)
    weight : how much each row counts, (m,)
    count : the number of samples that were left out, for which the rows stand
    """
    known = np.isfinite(outputs).all(axis=1)
    outputs, labels, weight = outputs[known], labels[known], weight[known]
    if not weight.sum() > 0:
        return Probabilities()
    weight, classes = weight / weight.sum(), outputs.shape[1]
    # In units of the spread of the outputs the scale is a number near 1, whatever the costs of the classes.
    centred = outputs - outputs.mean(axis=1, keepdims=True)
    unit = float(np.sqrt(weight @ (centred**2).mean(axis=1))) or 1.0
    z = centred / unit
    unsure = classes / (count + classes)
    expected = (1 - unsure) * z[np.arange(len(z)), labels]  # Σ_k t_k z_k, as Σ_k z_k = 0
    a = DEFAULT_SCALE * unit
    best = _loss(a, z, expected, weight)
    for _ in range(_STEPS):
        p = np.exp(a * (z - z.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * z).sum(axis=1)
        slope = float(weight @ (mean - expected))
        bend = float(weight @ ((p * z**2).sum(axis=1) - mean**2))
        step = -slope / bend if bend > 0 else -slope
        new = float(np.clip(a + step, max(a / 4, _SCALES[0] * unit), min(4 * a, _SCALES[1] * unit)))
        loss = _loss(new, z, expected, weight)
        while loss > best and abs(new - a) > 1e-12 * a:
            new = (new + a) / 2
            loss = _loss(new, z, expected, weight)
        done, a, best = abs(new - a) <= 1e-9 * a, new, loss
        if done:
            break
    return Probabilities(a / unit)


def _loss(a: float, z: NDArray[np.float64], expected: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The mean of -Σ_k t_k log p_k, without the floor."""
    top = z.max(axis=1)
    return float(weight @ (np.log(np.exp(a * (z - top[:, None])).sum(axis=1)) + a * (top - expected)))
