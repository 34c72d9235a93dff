"""The best of a handful of ridges, for many unknowns: a smaller network tells which ridges to try.

Every ridge λ = 10ᵘσ₁² takes a Cholesky decomposition S = AᴴA + λ = GᴴG, after which the leverage of a row is ‖a G⁻¹‖².
Let f(u) be the logarithm of the score of this ridge (`scores`).

1. A network of every fourth number is fitted with ridges in steps of two decades. Their scores, and the slopes of f,
   give the curve g. Such a fit takes a sixteenth of the time.
2. The whole network is fitted with the ridge where g is smallest. f - g is nearly straight, so its value and its slope
   there correct the curve everywhere. Between two ridges that were tried the correction is cubic (`curve`).
3. Step 2 is repeated while the corrected curve promises a score that is clearly better. On real data the first ridge
   is taken in four of five cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.curve import Curve
from hyperelm._solvers.loo import AtOneRidge, LeftOut, shown_rows
from hyperelm._solvers.scores import Choice, MeanError, Scores, joined
from hyperelm._solvers.spectrum import VALUES, Caution, hold_factors, is_permitted, project_out

_GRID = np.round(np.arange(-16, 2.01, 0.05), 2)  # u at which curves are compared
_BESIDE = 0.01  # the distance to the ridge beside another one, whose score gives the slope
_TRIALS = 12  # of the whole network at most
_FEWEST = 4  # numbers of the smaller network
_HUGE = 100.0  # larger logarithms count as this one
_CLEARLY = 0.05  # the share by which a score must be better to pay for another decomposition
_CLEARLY_LABELS = 0.003  # the same of log losses, which differ less


def best_of_few(accumulator: Accumulator, free: Sequence[int], mean: MeanError) -> Choice:
    """The best of a handful of ridges.

    Leverage matrices that are nearly multiples of the identity count as such until the ridge is found.
    """
    rough = replace(mean, sample=replace(mean.sample, is_whole=False))
    whole, quarter = _Trials(accumulator, free, rough), _Trials(*_every_fourth(accumulator, free, rough))
    error_of_bias, of_bias = whole.of_bias()
    if whole.largest == 0:  # a constant layer: any ridge leaves its weights at zero
        return Choice(1.0, error_of_bias)
    path = _Path(max(float(np.log10(part.problem.floor)) for part in whole.reduced), of_bias, mean.caution)
    clearly = _CLEARLY_LABELS if mean.labels else _CLEARLY
    _follow(quarter, path, clearly)
    _correct(whole, quarter.curve, path, clearly)
    best = whole.best
    if best is None or of_bias <= whole.smallest:
        ridge = whole.largest**2 / float(np.finfo(accumulator.dtype).eps)
        return Choice(ridge, error_of_bias, mean.leaves_residual(error_of_bias))
    u, slope = next((u, slope) for u, (value, slope) in whole.curve.points.items() if value == whole.smallest)
    cut_off = u < path.lowest + 1 and slope > 0
    error, left_out = _exact(accumulator, best, mean)
    return Choice(best.ridge, error, cut_off=cut_off, left_out=left_out)


def _exact(accumulator: Accumulator, best: Choice, mean: MeanError) -> tuple[float, LeftOut | None]:
    """The error and the rows that are left out of this choice, with exact leverage matrices if the sample is whole."""
    blocks, left_out = block_basis(accumulator.algebra).blocks, best.left_out
    is_rough = any(shown_rows(block, is_exact=True) > shown_rows(block, is_exact=False) for block in blocks)
    if not (mean.sample.is_whole and is_rough and left_out is not None):
        return best.error, left_out
    assert isinstance(left_out.method, AtOneRidge)
    method = replace(left_out.method, is_exact=True, step=0.0)
    errors = list(mean.errors(method, mean.parts(method)))
    return float(mean.scores(errors).errors[0]), joined(method, errors)


def _every_fourth(
    accumulator: Accumulator, free: Sequence[int], mean: MeanError
) -> tuple[Accumulator, Sequence[int], MeanError]:
    """The problem of every fourth number and those without a penalty; of few numbers, more of them."""
    penalised = np.setdiff1d(np.arange(accumulator.unknowns), free)
    numbers = np.union1d(penalised[:: int(np.clip(len(penalised) // _FEWEST, 1, 4))], free).astype(np.intp)
    sample = replace(mean.sample, H=mean.sample.H[:, numbers])
    places: list[int] = np.searchsorted(numbers, free).tolist()
    return accumulator.restricted(numbers), places, replace(mean, sample=sample)


def _follow(trials: _Trials, path: _Path, clearly: float) -> None:
    """Try ridges from where extrapolation is always safe on, and smaller ones that promise clearly better scores."""
    first = max(path.lowest, float(np.log10(VALUES.extrapolation)))
    for u in np.arange(first, 0.5, 2.0).tolist():
        trials.tries(u)
    while tried := trials.curve.points:
        expected, first = trials.curve(_GRID), min(tried)
        at = path.smallest(expected, tried, 2.0)
        if at is None or _GRID[at] > first - 0.5 or trials.smallest - expected[at] < clearly:
            break
        if not trials.tries(max(path.lowest, first - 2.0)):
            break


def _correct(trials: _Trials, curve: Curve, path: _Path, clearly: float) -> None:
    """Try the ridges where this curve, corrected by those that were tried, is the smallest."""
    guess, correction = curve(_GRID), Curve()
    slopes = np.gradient(guess, _GRID)
    tried, lowest = trials.curve.points, path.lowest
    for _ in range(_TRIALS):
        expected = guess + correction(_GRID)
        reach = 1.0 if len(tried) < 2 else 2.0  # the curve was a bad guess if it was corrected twice
        at = path.smallest(expected, tried or curve.points, reach, lowest)
        if at is None or trials.smallest - expected[at] < clearly or _is_near(_GRID[at], tried):
            break
        u = float(_GRID[at])
        if trials.tries(u):
            value, slope = tried[u]
            correction.points[u] = value - float(guess[at]), slope - float(slopes[at])
        else:
            lowest = u + 1
    if not trials.smallest < path.of_bias:  # whether small weights are better than the bias alone
        trials.tries(float(_GRID[-1]))


def _is_near(u: float, tried: Iterable[float]) -> bool:
    """Whether a ridge that was tried has practically the same score."""
    return any(abs(u - v) < 0.1 for v in tried)


class _Path(NamedTuple):
    """What limits the ridges to be tried.

    lowest : log₁₀ of the smallest one that rounding lets one see, in units of σ₁²
    of_bias : the logarithm of the score of the bias alone
    """

    lowest: float
    of_bias: float
    caution: Caution

    def smallest(
        self, values: NDArray[np.float64], tried: Collection[float], reach: float, lowest: float = -np.inf
    ) -> int | None:
        """The place on the grid of the smallest of these values; of equal ones the last.

        It is permitted by extrapolation, not below `lowest`, and within `reach` of the ridges that were tried.
        """
        scores = np.append(np.exp(np.minimum(values - self.of_bias, _HUGE)), 1.0)
        permitted = is_permitted(np.append(10.0**_GRID, np.inf), scores, self.caution)[:-1]
        first, last = (min(tried) - reach, max(tried) + reach) if tried else (-np.inf, np.inf)
        permitted &= (max(self.lowest, lowest, first) <= _GRID) & (last >= _GRID)
        if not permitted.any():
            return None
        return int(np.flatnonzero(permitted & (values <= values[permitted].min()))[-1])


class _Trials:
    """Single ridges λ = 10ᵘσ₁² that are tried, with a Cholesky decomposition for each.

    Attributes
    ----------
    curve : the logarithms of the scores of the ridges that were tried, as a function of u
    smallest : the smallest of them
    best : the ridge that it belongs to, if any was tried
    """

    def __init__(self, accumulator: Accumulator, free: Sequence[int], mean: MeanError) -> None:
        self.accumulator, self.mean = accumulator, mean
        self.curve, self.smallest = Curve(), np.inf
        self.best: Choice | None = None
        problems = accumulator.remembered("problems", (), accumulator.problems)
        self.reduced = project_out(accumulator, problems, free)
        self.largest = max(part.problem.largest() for part in self.reduced)
        self._alone = AtOneRidge(accumulator, self.reduced, is_exact=mean.sample.is_whole)
        self._parts = mean.parts(self._alone)

    def of_bias(self) -> tuple[float, float]:
        """The error and the logarithm of the score of the bias alone."""
        scores = self.mean.scores(self.mean.errors(self._alone, self._parts))
        return float(scores.errors[0]), float(self._logarithms(scores)[0])

    def tries(self, u: float) -> bool:
        """Whether there is a score: no matrix is indefinite up to rounding, and degrees of freedom are left."""
        ridge = self.largest**2 * 10**u
        factors = [part.problem.cholesky(ridge) for part in self.reduced] if ridge > 0 else [None]
        found = [factor for factor in factors if factor is not None]
        if len(found) < len(factors):
            return False
        accumulator, reduced = self.accumulator, self.reduced
        method = AtOneRidge(
            accumulator, reduced, found, ridge, self.largest, is_exact=self.mean.sample.is_whole, step=_BESIDE
        )
        errors = list(self.mean.errors(method, self._parts))
        scores = self.mean.scores(errors, 2)
        if not np.isfinite(scores.compared).all():
            return False
        value, beside = self._logarithms(scores).tolist()
        self.curve.points[u] = value, (beside - value) / _BESIDE
        if value < self.smallest:
            self.smallest = value
            self.best = Choice(ridge, float(scores.errors[0]), left_out=joined(method, errors))
            hold_factors(accumulator, reduced, ridge, found)
        return True

    def _logarithms(self, scores: Scores) -> NDArray[np.float64]:
        """Scores below rounding are equal."""
        return np.log(np.maximum(scores.compared + self.mean.rounding, np.finfo(np.float64).tiny))
