"""The ridge with the smallest leave-one-out error.

Every row m, (a_m, t_m), has an error e₋ₘ when all other rows are fitted (`loo`). With the mean leverage τ of a row the
choice is

    λ = argmin E(λ) ((1 - τ)/(1 - γτ))²,        E(λ) = Σ_m w_m ‖e₋ₘ(λ)‖² / Σ_m w_m,

on the path of `spectrum`, whose last ridge leaves nothing but the mean of the targets. The factor beside E is the one
by which γ raises the score of generalised cross-validation. It is needed because E is the mean of few and correlated
errors: the smallest of many such means tends to be that of a ridge that is too small. On hundreds of real data sets
γ = 1.4 halves the number of those on which the network is worse than ridge regression.

Where labels follow from the largest of the outputs y, the ridge has the smallest log loss of the labels instead. It
takes probabilities in proportion to exp(3y), where y are the outputs for rows that are left out.

Two things keep the choice cheap.

- Rows and targets: of many, a sample is left out, and combinations stand for all targets (`sample`).
- Unknowns: for few of them the singular vectors give the errors of all ridges at once (`_on_path`). For more, a
  Cholesky decomposition of S = AᴴA + λ for each of a handful of ridges takes less time. With S = GᴴG the leverage of a
  row is ‖a G⁻¹‖². The best ridge is bracketed in steps of two decades, then found by a parabola (`_bracketed`). Single
  precision suffices to find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import chunks
from hyperelm._backend.workspace import one_blas
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.loo import (
    AtOneRidge,
    BySpectrum,
    LeaveOneOut,
    LeftOut,
    SplitRows,
    left_out_by,
    split_rows,
)
from hyperelm._solvers.losses import log_loss
from hyperelm._solvers.problem import NormalEquations, Problem, Reduced
from hyperelm._solvers.sample import RowSample
from hyperelm._solvers.spectrum import (
    LABELS,
    VALUES,
    Caution,
    Spectrum,
    best_permitted,
    hold_factors,
    is_permitted,
    project_out,
)

_PER_DECADE = 5  # ridges on the path
_SCRATCH = 2**19  # numbers in the errors of some rows for all ridges
_HIGHEST = 2.0  # log₁₀ of the largest ridge, in units of σ₁², that is not infinite
_MODERATE = 1e15  # numbers between this and one over it are within single precision, and so are their products
# A prediction in single precision is off by eps σ₁‖x‖, and ‖x‖ is at most ‖t‖/(2√λ). So its squared error is less than
# 25 eps² σ₁²/λ times that of the bias. An error of 100 times as much is seen.
_NOISE = 2500 * float(np.finfo(np.float32).eps) ** 2
_CLEARLY = 0.05  # the share by which a score must be better to pay for another decomposition
_CLEARLY_LABELS = 0.003  # the same of log losses, which differ less
_DECOMPOSED = 48  # complex unknowns of a block up to which its singular vectors are found


class Choice(NamedTuple):
    """A ridge and its mean squared leave-one-out error.

    is_bias_only : whether this ridge leaves nothing but the bias
    cut_off : whether this is the smallest ridge that rounding lets one see, so that a smaller one may be better
    left_out : the rows that were left out at this ridge; None where the method is one for the bias alone
    """

    ridge: float
    error: float
    is_bias_only: bool = False
    cut_off: bool = False
    left_out: LeftOut | None = None


class Scores(NamedTuple):
    """Mean squared leave-one-out errors of some ridges, and the scores by which these ridges are compared."""

    errors: NDArray[np.float64]
    compared: NDArray[np.float64]

    @classmethod
    def of(cls, errors: NDArray[np.float64], leverage: NDArray[np.float64]) -> Scores:
        """From errors and the mean leverage τ of a row; infinite where there is no error, or where γτ is 1 or more."""
        left = 1 - VALUES.freedom * leverage
        errors, compared = np.where(np.isnan(errors), np.inf, errors), np.full(len(errors), np.inf)
        spare = np.isfinite(errors) & (left > 0)
        compared[spare] = errors[spare] * ((1 - leverage[spare]) / left[spare]) ** 2
        return cls(errors, compared)


_NO_SCORES = Scores(np.full(1, np.inf), np.full(1, np.inf))  # of a ridge with which a matrix is indefinite


def best_by_loo(
    accumulator: Accumulator,
    sample: RowSample,
    *,
    free: Sequence[int],
    places: NDArray[np.intp],
    columns: int,
    labels: bool = False,
) -> Choice:
    """The ridge with the smallest leave-one-out error on a sample of the rows that `accumulator` has seen.

    `free` names unknowns that no ridge penalises. Of the N d components of an error those in `places` count. They are
    summed and divided by the number of `columns`. `labels` says that targets are indicators.
    """
    accumulator.check_squares()
    mean = _Mean(sample, places, columns, labels)
    problems = accumulator.remembered("problems", (), accumulator.problems)
    with one_blas(accumulator.work):
        if any(map(_is_large, problems)):
            return _bracketed(accumulator, project_out(accumulator, problems, free), mean)
        return _on_path(Spectrum(accumulator, free, problems), mean)


def _is_large(problem: Problem) -> bool:
    """Whether all ridges of the path take longer than a handful of Cholesky decompositions.

    Singular vectors take as long as ten of these, and every ridge of the path has its own errors and leverages. Those
    of a complex matrix take as long as those of a real one that is 2.5 times as large.
    """
    if not isinstance(problem, NormalEquations):
        return False
    return problem.size > (_DECOMPOSED if np.iscomplexobj(problem.gram) else 2.5 * _DECOMPOSED)


Part = tuple[slice, SplitRows]  # some rows of the sample
Errors = tuple[slice, NDArray[np.float64], NDArray[np.float64]]  # some rows, (m, ridges, columns), and their leverages


@dataclass(frozen=True)
class _Mean:
    """The mean squared error of a sample that is left out row by row."""

    sample: RowSample
    places: NDArray[np.intp]
    columns: int
    labels: bool

    @property
    def caution(self) -> Caution:
        return LABELS if self.labels else VALUES

    def parts(self, method: LeaveOneOut, n_ridges: int = 1) -> list[Part]:
        """The sample, as many rows at a time as leave room for the errors of so many ridges."""
        sample = self.sample
        size = max(16, _SCRATCH // max(1, n_ridges * sample.T[0].size))
        return [(at, split_rows(method, sample.H[at], sample.T[at])) for at in chunks(len(sample.H), size)]

    def errors(self, method: LeaveOneOut, parts: Iterable[Part]) -> Iterator[Errors]:
        """The errors of the rows when they are left out, for every ridge of the method."""
        for at, split in parts:
            e, leverages = left_out_by(method, split, self.sample.weight[at])
            e = e.reshape(len(e), len(method.ridges), -1)[:, :, self.places]
            yield at, e.astype(np.float64, copy=False), leverages

    def scores(self, errors: Iterable[Errors], n_ridges: int = 1) -> Scores:
        """The scores of every ridge; infinite where a row has no such error."""
        sample, count = self.sample, 0.0
        total, leverage, of_labels = np.zeros(n_ridges), np.zeros(n_ridges), np.zeros(n_ridges)
        for at, e, of_rows in errors:
            count += float(sample.times[at].sum())
            leverage += sample.times[at] @ of_rows
            total += np.einsum("m,mrc,mrc->r", sample.times[at], e, e)
            if self.labels:
                indicators = sample.T[at].reshape(len(e), 1, -1)[:, :, self.places]
                of_labels += sample.times[at] @ log_loss(e, indicators)
        scores = Scores.of(total / (self.columns * count), leverage / count)
        if not self.labels:
            return scores
        return Scores(scores.errors, np.where(np.isfinite(scores.errors), of_labels / count, np.inf))

    @property
    def rounding(self) -> float:
        """Scores that differ by less are equal: 1e3 eps of the spread of the targets and 4 eps of their size, squared.

        Log losses are never as exact, since they hardly change once all labels are right.
        """
        if self.labels:
            return 1e-4
        T, eps = self.sample.T.astype(np.float64, copy=False), float(np.finfo(self.sample.T.dtype).eps)
        return float((1e3 * eps * T.std(axis=0).max(initial=0)) ** 2 + (4 * eps * np.abs(T).max(initial=0)) ** 2)

    def leaves_residual(self, error: float) -> bool:
        """Whether an error is more than rounding."""
        return self.rounding < error < np.inf


def _on_path(spectrum: Spectrum, mean: _Mean) -> Choice:
    """From the scores of all ridges on the path."""
    if spectrum.largest == 0:  # a constant layer: any ridge leaves its weights at zero
        of_bias = AtOneRidge(spectrum.accumulator, spectrum.reduced)
        return Choice(1.0, float(mean.scores(mean.errors(of_bias, mean.parts(of_bias))).errors[0]))
    ridges = spectrum.path(_PER_DECADE)
    is_exact = mean.sample.is_whole
    of_all = BySpectrum(spectrum, ridges, is_exact)
    parts = mean.parts(of_all, len(ridges))
    scores = mean.scores(mean.errors(of_all, parts), len(ridges))
    best = best_permitted(spectrum.shares(ridges), scores.compared, mean.caution, mean.rounding)
    error, of_best = float(scores.errors[best]), BySpectrum(spectrum, ridges[best : best + 1], is_exact)
    is_bias_only = best == len(ridges) - 1 and mean.leaves_residual(error)
    left_out = _joined(of_best, mean.errors(of_best, parts))
    return Choice(float(ridges[best]), error, is_bias_only, cut_off=best == 0, left_out=left_out)


def _joined(method: LeaveOneOut, errors: Iterable[Errors]) -> LeftOut:
    """The errors of all rows at the one ridge of the method."""
    _, residuals, leverages = zip(*errors)
    return LeftOut(method, np.concatenate(residuals)[:, 0], np.concatenate(leverages)[:, 0])


def _bracketed(accumulator: Accumulator, reduced: Sequence[Reduced], mean: _Mean, *, in_single: bool = True) -> Choice:
    """From the scores of a handful of ridges λ = 10ᵘσ₁², in four steps.

    1. A coarse grid of u, in steps of two decades, gives a first best u.
    2. While the best u is the first or the last one tried, u moves on in that direction, in steps of one decade. It
       moves down only while that makes the score clearly better.
    3. A parabola through the best u and its two neighbours gives one more u, where the parabola is smallest.
    4. Scores up to here are rough where that suffices (`_Trial.rough`). At the last u, rows are left out in full
       precision. The same is done at the best u before it if its rough score is clearly better.
    """
    largest = max(part.problem.largest() for part in reduced)
    alone = AtOneRidge(accumulator, reduced, is_exact=mean.sample.is_whole)
    parts = mean.parts(alone)
    of_bias = mean.scores(mean.errors(alone, parts))
    error_of_bias = float(of_bias.errors[0])
    if largest == 0:  # a constant layer: any ridge leaves its weights at zero
        return Choice(1.0, error_of_bias)
    exact = _Trial(accumulator, reduced, mean, parts, largest, mean.sample.is_whole)
    rough = exact.rough() if in_single else None
    known: dict[float, Scores] = {}
    kept: dict[float, LeftOut] = {}  # at the best u that was tried in full precision

    def exactly(u: float) -> Scores:
        method, errors = exact.of(u)
        if method is None:
            return _NO_SCORES
        scores = mean.scores(errors)
        if all(scores.compared[0] <= score(other) for other in kept):
            kept.clear()
            kept[u] = _joined(method, errors)
            hold_factors(accumulator, reduced, method.ridge, list(method.factors))
        return scores

    def roughly(u: float) -> Scores | None:
        """In single precision; None where that does not show the error."""
        method, errors = (None, []) if rough is None else rough.of(u)
        scores = mean.scores(errors) if method is not None else _NO_SCORES
        return scores if _NOISE * 10.0**-u * error_of_bias <= scores.errors[0] < np.inf else None

    def score(u: float) -> float:
        if u not in known:
            known[u] = roughly(u) or exactly(u)
        return float(known[u].compared[0])

    def is_open(u: float) -> bool:
        """Whether rounding and extrapolation permit this ridge, given the scores of those above it."""
        above = sorted(v for v in known if v > u)
        scores = np.array([np.inf, *map(score, above), of_bias.compared[0]])
        permitted = is_permitted(10.0 ** np.array([u, *above, np.inf]), scores, mean.caution)[0]
        return bool(permitted and (1 - 1e-9) * rounding <= 10**u and u <= _HIGHEST)

    def pays(u: float) -> bool:
        """Whether the score at u is clearly better than that at the next larger u, if there is one."""
        above = [v for v in known if v > u]
        return not above or score(u) < (1 - clearly) * score(min(above))

    clearly = _CLEARLY_LABELS if mean.labels else _CLEARLY
    rounding = max(part.problem.floor for part in reduced)
    lowest = float(np.log10(max(rounding, VALUES.extrapolation)))
    best = min(np.arange(lowest + 1, 0.5, 2.0).tolist() or [0.0], key=score)
    while best == max(known) and is_open(best + 1):
        best = min((best, best + 1), key=score)
    while best == min(known) and pays(best) and is_open(best - 1):
        best = min((best, best - 1), key=score)
    vertex = _vertex(best, {u: score(u) for u in known})
    if vertex not in kept:
        known[vertex] = exactly(vertex)
    if best not in kept and score(best) < (1 - clearly) * min(map(score, kept), default=np.inf):
        known[best] = exactly(best)
    last = next(iter(kept), vertex)
    if rough is not None and score(last) == np.inf:
        return _bracketed(accumulator, reduced, mean, in_single=False)
    if last not in kept or of_bias.compared[0] <= score(last) + mean.rounding:
        ridge = largest**2 / float(np.finfo(accumulator.dtype).eps)
        return Choice(ridge, error_of_bias, mean.leaves_residual(error_of_bias))
    cut_off = last == min(known) and 10 ** (last - 1) < rounding
    return Choice(largest**2 * 10**last, float(known[last].errors[0]), cut_off=cut_off, left_out=kept[last])


@dataclass(frozen=True)
class _Trial:
    """Tries single ridges λ = 10ᵘσ₁², with a Cholesky decomposition for each.

    parts : the rows that are left out
    largest : σ₁
    is_exact : as in `AtOneRidge`
    """

    accumulator: Accumulator
    reduced: Sequence[Reduced]
    mean: _Mean
    parts: Sequence[Part]
    largest: float
    is_exact: bool

    def of(self, u: float) -> tuple[AtOneRidge | None, list[Errors]]:
        """How rows are left out for one ridge, and their errors; None where a matrix is indefinite up to rounding."""
        ridge = self.largest**2 * 10**u
        factors = [part.problem.cholesky(ridge) for part in self.reduced]
        if any(factor is None for factor in factors):
            return None, []
        method = AtOneRidge(self.accumulator, self.reduced, factors, ridge, self.largest, is_exact=self.is_exact)
        return method, list(self.mean.errors(method, self.parts))

    def rough(self) -> _Trial | None:
        """The same in single precision and not exact; None where that precision does not hold the numbers.

        The rounding of AᴴA to single precision acts like a change of the ridge by about 1e-8 σ₁². Scores were off by
        less than 1 % for λ >= 1e-6 σ₁².
        """
        if self.accumulator.dtype != np.float64:
            return None
        problems = [part.problem.in_single() for part in self.reduced]
        parts = [(at, split.in_single()) for at, split in self.parts]
        held = [problem.cross for problem in problems] + [split.T for _, split in parts]
        held += [problem.gram.diagonal() for problem in problems]
        sizes = np.array([float(np.abs(array).max(initial=0)) for array in held])
        if not np.all((sizes == 0) | (sizes > 1 / _MODERATE) & (sizes < _MODERATE)):
            return None
        reduced = [replace(part, problem=problem) for part, problem in zip(self.reduced, problems)]
        return replace(self, reduced=reduced, parts=parts, is_exact=False)


def _vertex(best: float, scores: Mapping[float, float]) -> float:
    """Where the parabola through the logarithms of the scores at the best u and its two neighbours is smallest.

    It is the best u itself if a neighbour is missing or if the parabola is not bent upwards. It lies at most half way
    from the best u to a neighbour.
    """
    below = max((u for u in scores if u < best and scores[u] < np.inf), default=best)
    above = min((u for u in scores if u > best and scores[u] < np.inf), default=best)
    if not below < best < above or min(scores[below], scores[best], scores[above]) <= 0:
        return best
    left, right = best - below, above - best
    fall, rise = (np.log(scores[u] / scores[best]) for u in (below, above))
    bend = fall * right + rise * left
    if not bend > 0:
        return best
    return best + float(np.clip((fall * right**2 - rise * left**2) / (2 * bend), -left / 2, right / 2))
