"""The best of a handful of ridges, for many unknowns: a smaller network tells which ridges to try.

Every ridge λ = 10ᵘσ₁² takes a Cholesky decomposition S = AᴴA + λ = GᴴG, after which the leverage of a row is ‖a G⁻¹‖².
Let f(u) be the logarithm of the score of this ridge (`scores`).

1. The singular vectors of a network of every fourth number give the scores of ridges in steps of a decade. These are
   moved to the ridges that have the same effect on the whole network, and give the curve g. Where g still falls at the
   smallest of these, it goes on to where it would be level.
2. The whole network is fitted with the ridge where g is smallest. f - g is nearly straight, so its value and its slope
   there correct the curve everywhere. Between two ridges that were tried the correction is cubic (`curve`).
3. Step 2 is repeated while the corrected curve promises a score that is clearly better.

Where the smaller network is hardly better than the bias alone, g tells nothing about f and counts as zero. Let 10ᵘσ₁²
be the smallest ridge that g knows. Then the whole network is first fitted at u/2 and at u - 2. Without a ridge that is
better than the bias alone, the largest of all, 100σ₁², is tried last.

**Which ridge has the same effect.** Few random neurons smooth by themselves. L of them with the ridge λ, of whose Ld
degrees of freedom the fit takes the share q = tr P_λ/(Ld), act as infinitely many do with the ridge λ/(1 - q), both in
units of σ₁² (A. Jacot et al., Implicit regularization of random feature models, ICML 2020). Both networks take as many
degrees of freedom, so a whole network with L/s neurons takes the share sq. It acts as the smaller one does if

    λ_whole / (1 - sq) = λ / (1 - q).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.curve import Curve
from hyperelm._solvers.loo import AtOneRidge, BySpectrum, LeftOut
from hyperelm._solvers.scalar import shown_rows
from hyperelm._solvers.scores import Choice, Errors, MeanError, joined
from hyperelm._solvers.spectrum import Caution, Spectrum, hold_factors, is_permitted, project_out

_GRID = np.round(np.arange(-16, 2.01, 0.05), 2)  # u at which curves are compared
_BESIDE = 0.01  # the distance in u to a second ridge, whose score gives the slope
_ROUNDS = 12  # of correction at most
_FEWEST = 4  # numbers with a penalty that the thinned network keeps, if there are as many
_HUGE = 100.0  # logarithms that exceed that of the bias by more count as so much larger
_TELLING = 0.1  # by which share of the score of the bias a network must be better to be a guide for a larger one
_CLEARLY = 0.03  # the share by which a score must be better to pay for another decomposition
_CLEARLY_LABELS = 0.003  # the same of log losses, which differ less
_SHARE = 0.2  # of what a network is better than the bias alone: so much is clearly better, too
_LEAST = 0.1  # of what is clearly better; less never is


def best_of_few(accumulator: Accumulator, free: Sequence[int], mean: MeanError) -> Choice:
    """The best of a handful of ridges."""
    whole = _Trials(accumulator, free, mean)
    error_of_bias, of_bias = whole.of_bias()
    if whole.largest == 0:  # a constant layer: any ridge leaves its weights at zero
        return Choice(1.0, error_of_bias)
    limits = _Limits(max(float(np.log10(part.problem.floor)) for part in whole.reduced), of_bias, mean.caution)
    clearly = _CLEARLY_LABELS if mean.labels else _CLEARLY
    guide = _guide(accumulator, free, mean, limits.lowest, clearly)
    if not limits.best_of(guide) < of_bias - _TELLING:  # a target that only many neurons explain
        smallest = min(guide.points, default=0.0)
        for u in (smallest / 2, smallest - 2):
            whole.try_ridge(max(limits.lowest, u))
        guide = Curve()
    _correct(whole, guide, limits, clearly)
    if whole.method is None or of_bias <= whole.best:
        ridge = whole.largest**2 / float(np.finfo(accumulator.dtype).eps)
        return Choice(ridge, error_of_bias, mean.leaves_residual(error_of_bias))
    u, (_, slope) = min(whole.points.items(), key=lambda point: point[1])
    cut_off = u < limits.lowest + 1 and slope > 0  # the score still falls where rounding begins
    error, left_out = _exact(whole, whole.method, mean)
    return Choice(whole.method.ridge, error, cut_off=cut_off, left_out=left_out)


def _exact(trials: _Trials, method: AtOneRidge, mean: MeanError) -> tuple[float, LeftOut]:
    """The error at the ridge of this method, and the rows that were left out at it.

    Rows are left out again with whole leverage matrices where these are only nearly multiples of the identity, if the
    sample is all rows.
    """
    blocks = block_basis(trials.accumulator.algebra).blocks
    is_rough = any(shown_rows(block, is_exact=True) > shown_rows(block, is_exact=False) for block in blocks)
    method = replace(method, is_exact=mean.sample.is_whole, step=0.0)
    if not (mean.sample.is_whole and is_rough):
        return trials.error, joined(method, trials.errors)
    errors = list(mean.errors(method, mean.parts(method)))
    return float(mean.scores(errors).errors[0]), joined(method, errors)


def _every_fourth(
    accumulator: Accumulator, free: Sequence[int], mean: MeanError
) -> tuple[Accumulator, Sequence[int], MeanError]:
    """The problem of every fourth number with a penalty, and all without. Of fewer than 16 numbers more are kept."""
    penalised = np.setdiff1d(np.arange(accumulator.unknowns), free)
    numbers = np.union1d(penalised[:: int(np.clip(len(penalised) // _FEWEST, 1, 4))], free).astype(np.intp)
    sample = replace(mean.sample, H=mean.sample.H[:, numbers])
    places: list[int] = np.searchsorted(numbers, free).tolist()
    return accumulator.restricted(numbers), places, replace(mean, sample=sample)


def _guide(accumulator: Accumulator, free: Sequence[int], mean: MeanError, lowest: float, clearly: float) -> Curve:
    """The scores of a network of every fourth number, by the ridges that have the same effect on the whole one.

    It goes on below the smallest of these for as long as a decade promises what is clearly better.
    """
    thinned, places, mean = _every_fourth(accumulator, free, mean)
    spectrum, u = Spectrum(thinned, places), np.arange(np.ceil(lowest), 2.0)
    method = BySpectrum(spectrum, spectrum.largest**2 * 10**u, is_exact=False)
    scores = mean.scores(mean.errors(method, mean.parts(method, len(u))), len(u))
    left = spectrum.degrees_left(method.ridges)  # 1 - q
    share = (thinned.unknowns - len(places)) / (accumulator.unknowns - len(free))
    return Curve.through(u + np.log10((1 - share * (1 - left)) / left), mean.logarithms(scores), clearly)


def _correct(trials: _Trials, curve: Curve, limits: _Limits, clearly: float) -> None:
    """Try the ridges where this curve, corrected by those that were tried, is the smallest."""
    tried = trials.points  # to which every trial adds its own
    guess, correction = curve(_GRID), Curve()
    slopes = np.gradient(guess, _GRID)
    for _ in range(_ROUNDS):
        for u, (value, slope) in tried.items():
            of_guess = np.interp(u, _GRID, guess), np.interp(u, _GRID, slopes)
            correction.points[u] = value - float(of_guess[0]), slope - float(of_guess[1])
        expected = guess + correction(_GRID)
        reach = 1.0 if len(tried) < 2 else 2.0  # after two corrections the best ridge may be further away
        at = limits.place_of_best(expected, tried or curve.points, reach)
        enough = float(np.clip(_SHARE * (limits.of_bias - trials.best), _LEAST * clearly, clearly))
        if at is None or trials.best - expected[at] < enough or _is_near(_GRID[at], tried):
            break
        u = float(_GRID[at])
        if not trials.try_ridge(u):
            limits = replace(limits, lowest=max(limits.lowest, u + 1))  # a decade above a ridge that is too small
    if not trials.best < limits.of_bias:  # whether small weights are better than the bias alone
        trials.try_ridge(float(_GRID[-1]))


def _is_near(u: float, tried: Iterable[float]) -> bool:
    """Whether a ridge that was tried has practically the same score."""
    return any(abs(u - v) < 0.1 for v in tried)


@dataclass(frozen=True)
class _Limits:
    """What limits the ridges to be tried.

    lowest : log₁₀ of the smallest ridge above rounding, in units of σ₁²
    of_bias : the logarithm of the score of the bias alone
    caution : what keeps predictions of new rows from exploding
    """

    lowest: float
    of_bias: float
    caution: Caution

    def best_of(self, curve: Curve) -> float:
        """The smallest logarithm of a score between the ends of a curve; infinity where none is permitted."""
        if not curve.points:
            return math.inf
        expected = curve(_GRID)
        at = self.place_of_best(expected, curve.points, 0.0)
        return math.inf if at is None else float(expected[at])

    def place_of_best(self, logarithms: NDArray[np.float64], known: Collection[float], reach: float) -> int | None:
        """The place on the grid of the smallest of these logarithms of scores; of equal ones that of the largest ridge.

        It is above rounding, permitted by extrapolation, and at most `reach` outside the range of the known ridges.
        """
        scores = np.append(np.exp(np.minimum(logarithms - self.of_bias, _HUGE)), 1.0)
        permitted = is_permitted(np.append(10.0**_GRID, np.inf), scores, self.caution)[:-1]
        first, last = (min(known) - reach, max(known) + reach) if known else (-np.inf, np.inf)
        permitted &= (max(self.lowest, first) <= _GRID) & (last >= _GRID)
        if not permitted.any():
            return None
        return int(np.flatnonzero(permitted & (logarithms <= logarithms[permitted].min()))[-1])


class _Trials:
    """Single ridges λ = 10ᵘσ₁² that are tried, with a Cholesky decomposition for each.

    While ridges are compared, leverage matrices that are nearly multiples of the identity count as such.

    Attributes
    ----------
    largest : σ₁
    points : the logarithm of the score, and its slope, at each u that was tried
    best : the smallest of these logarithms
    method, error, errors : what leaves rows out at the ridge that `best` belongs to, and what came out
    """

    def __init__(self, accumulator: Accumulator, free: Sequence[int], mean: MeanError) -> None:
        self.accumulator, self.mean = accumulator, mean
        self.points, self.best = dict[float, tuple[float, float]](), np.inf
        self.method: AtOneRidge | None = None
        self.error, self.errors = np.inf, list[Errors]()
        problems = accumulator.remembered("problems", (), accumulator.problems)
        self.reduced = project_out(accumulator, problems, free)
        self.largest = max(part.problem.largest() for part in self.reduced)
        self._alone = AtOneRidge(accumulator, self.reduced, is_exact=False)
        self._parts = mean.parts(self._alone)  # the same for every ridge

    def of_bias(self) -> tuple[float, float]:
        """The error and the logarithm of the score of the bias alone."""
        scores = self.mean.scores(self.mean.errors(self._alone, self._parts))
        return float(scores.errors[0]), float(self.mean.logarithms(scores)[0])

    def try_ridge(self, u: float) -> bool:
        """Try 10ᵘσ₁², and tell whether it has a score.

        It has none if a matrix is indefinite up to rounding, or if no degrees of freedom are left.
        """
        ridge = self.largest**2 * 10**u
        factors = [part.problem.cholesky(ridge) for part in self.reduced] if ridge > 0 else [None]
        found = [factor for factor in factors if factor is not None]
        if len(found) < len(factors):
            return False
        accumulator, reduced = self.accumulator, self.reduced
        method = AtOneRidge(accumulator, reduced, found, ridge, self.largest, is_exact=False, step=_BESIDE)
        errors = list(self.mean.errors(method, self._parts))
        scores = self.mean.scores(errors, 2)
        if not np.isfinite(scores.compared).all():
            return False
        value, beside = self.mean.logarithms(scores).tolist()
        self.points[u] = value, (beside - value) / _BESIDE
        if value < self.best:
            self.best, self.method, self.error, self.errors = value, method, float(scores.errors[0]), errors
            hold_factors(accumulator, reduced, ridge, found)
        return True
