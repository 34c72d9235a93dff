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

Three things keep the choice cheap.

- Rows: errors are exact, but where there are many rows only some of them are left out (`drawn`). These are the rows
  farthest from the origin, which a wrong ridge harms most, and a share of all others, which then stand for the rest.
- Targets: with more than a few dozen targets T, real combinations TC of them are taken, with random signs in C. A real
  number commutes with every hypercomplex one, so TC has the solution MC and the errors times C, whose mean square is
  the same.
- Unknowns: for few of them the singular vectors give the errors of all ridges at once (`_on_path`). For more, a
  Cholesky decomposition of S = AᴴA + λ for each of a handful of ridges takes less time. With S = GᴴG the leverage of a
  row is ‖a G⁻¹‖². The best ridge is bracketed in steps of two decades, then found by a parabola (`_bracketed`). Single
  precision suffices to find it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.blocks import Block
from hyperelm._backend import backend_of, chunks
from hyperelm._backend.arrays import namespace, to_numpy
from hyperelm._backend.workspace import one_blas
from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.loo import (
    AtOneRidge,
    BlockRows,
    BySpectrum,
    LeaveOneOut,
    LeftOut,
    block_rows,
    has_scalar_leverage,
    left_out_by,
)
from hyperelm._solvers.losses import log_loss
from hyperelm._solvers.problem import NormalEquations, Problem, Reduced
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
from hyperelm._validation import FloatArray, as_real

_PER_DECADE = 5  # ridges on the path
_NUMBERS = 2**20  # at most so many real numbers in the rows that are left out and their targets
_PRODUCTS = 2**29  # at most so many products of two of these numbers in the leverages
_FEWEST = 256  # but at least so many rows are left out
_FARTHEST = 0.25  # the share of these that are the rows farthest from the origin
_COMBINATIONS = 32  # of the targets
_SCRATCH = 2**19  # numbers in the errors of some rows for all ridges
_HIGHEST = 2.0  # log₁₀ of the largest ridge, in units of σ₁², that is not infinite
_MODERATE = 1e15  # numbers between this and one over it are within single precision, and so are their products
# A prediction in single precision is off by eps σ₁‖x‖, and ‖x‖ is at most ‖t‖/(2√λ). So its squared error is less than
# 25 eps² σ₁²/λ times that of the bias. An error of 100 times as much is seen.
_NOISE = 2500 * float(np.finfo(np.float32).eps) ** 2
_DECOMPOSED = 800  # unknowns of a block up to which its singular vectors are found, if its rows are simple


@dataclass
class RowSample:
    """Rows to be left out.

    H, T : (m, L, d) and (m, N, d), the hidden layer and the targets
    weight : (m,), the part of the weight of a row that is left out: that of one sample
    times : (m,), how much the squared error of the row counts
    """

    H: FloatArray
    T: FloatArray
    weight: NDArray[np.float64]
    times: NDArray[np.float64]

    def merge(self, other: RowSample) -> None:
        for name in ("H", "T", "weight", "times"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))


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


def sample_size(accumulator: Accumulator) -> int:
    """How many of the rows that `accumulator` has seen are left out."""
    numbers = max(1, (accumulator.unknowns + min(accumulator.targets, _COMBINATIONS)) * accumulator.algebra.dim)
    # A leverage that is a matrix takes all rows that a number has in its block.
    blocks = block_basis(accumulator.algebra).blocks
    rows = max(1 if has_scalar_leverage(block) else block.size for block in blocks)
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
        blocks, targets = block_basis(accumulator.algebra).blocks, sample.T.shape[1]
        if any(_is_large(problem, block, targets) for problem, block in zip(problems, blocks)):
            return _bracketed(accumulator, project_out(accumulator, problems, free), mean)
        return _on_path(Spectrum(accumulator, free, problems), mean)


def _is_large(problem: Problem, block: Block, targets: int) -> bool:
    """Whether all ridges of the path take longer than a handful of Cholesky decompositions.

    With singular vectors, every ridge of the path still has its own errors and leverages. These take longer than the
    vectors where rows are complex, where leverages are matrices, and where there are several targets.
    """
    if not isinstance(problem, NormalEquations):
        return False
    is_simple = targets <= 2 and has_scalar_leverage(block) and not np.iscomplexobj(problem.gram)
    return problem.size > (_DECOMPOSED if is_simple else _DECOMPOSED // 10)


Part = tuple[slice, list[BlockRows]]  # some rows of the sample, and these rows in all blocks of the algebra
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
        return [(at, block_rows(method, sample.H[at], sample.T[at])) for at in chunks(len(sample.H), size)]

    def errors(self, method: LeaveOneOut, parts: Iterable[Part]) -> Iterator[Errors]:
        """The errors of the rows when they are left out, for every ridge of the method."""
        for at, blocks in parts:
            e, leverages = left_out_by(method, blocks, self.sample.weight[at])
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
    of_all = BySpectrum(spectrum, ridges)
    parts = mean.parts(of_all, len(ridges))
    scores = mean.scores(mean.errors(of_all, parts), len(ridges))
    best = best_permitted(spectrum.shares(ridges), scores.compared, mean.caution, mean.rounding)
    error, of_best = float(scores.errors[best]), BySpectrum(spectrum, ridges[best : best + 1])
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
    2. While the best u is the first or the last one tried, u moves on in that direction, in steps of one decade.
    3. A parabola through the best u and its two neighbours gives one more u, where the parabola is smallest.
    4. Scores up to here are rough where that suffices (`_Trial.rough`). At the best u, all rows are left out in full
       precision.

    Leverages that are matrices take longer than all else. Where there are such, every second row decides.
    """
    largest = max(part.problem.largest() for part in reduced)
    alone = AtOneRidge(accumulator, reduced)
    parts = mean.parts(alone)
    of_bias = mean.scores(mean.errors(alone, parts))
    error_of_bias = float(of_bias.errors[0])
    if largest == 0:  # a constant layer: any ridge leaves its weights at zero
        return Choice(1.0, error_of_bias)
    exact = _Trial(accumulator, reduced, mean, parts, largest)
    stride = 1 if all(map(has_scalar_leverage, block_basis(accumulator.algebra).blocks)) else 2
    rough = exact.rough(stride) if in_single else None
    known: dict[float, Scores] = {}
    kept: dict[float, tuple[Scores, LeftOut]] = {}  # those of all rows, at the best u that was tried in full precision

    def exactly(u: float) -> Scores:
        method, errors = exact.of(u)
        scores = mean.scores(_every(stride, errors)) if method is not None else _NO_SCORES
        if method is not None and all(scores.compared[0] <= known[other].compared[0] for other in kept):
            kept.clear()
            kept[u] = mean.scores(errors), _joined(method, errors)
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

    rounding = max(part.problem.floor for part in reduced)
    lowest = float(np.log10(max(rounding, VALUES.extrapolation)))
    best = min(np.arange(lowest + 1, 0.5, 2.0).tolist() or [0.0], key=score)
    for step, end in ((1.0, max), (-1.0, min)):
        while best == end(known) and is_open(best + step):
            best = min((best, best + step), key=score)
    vertex = _vertex(best, {u: score(u) for u in known})
    if vertex not in kept:
        known[vertex] = exactly(vertex)  # at once, since in most cases it is the best
    best = min((vertex, best), key=score)
    if best not in kept:
        kept.clear()
        known[best] = exactly(best)
    if rough is not None and score(best) == np.inf:
        return _bracketed(accumulator, reduced, mean, in_single=False)
    if best not in kept or of_bias.compared[0] <= kept[best][0].compared[0] + mean.rounding:
        ridge = largest**2 / float(np.finfo(accumulator.dtype).eps)
        return Choice(ridge, error_of_bias, mean.leaves_residual(error_of_bias))
    cut_off = best == min(known) and 10 ** (best - 1) < rounding
    scores, left_out = kept[best]
    return Choice(largest**2 * 10**best, float(scores.errors[0]), cut_off=cut_off, left_out=left_out)


def _every(stride: int, errors: Iterable[Errors]) -> Iterator[Errors]:
    """The errors of every row whose place is a multiple of the stride."""
    for at, e, leverages in errors:
        yield slice(at.start, at.stop, stride), e[::stride], leverages[::stride]


@dataclass(frozen=True)
class _Trial:
    """Tries single ridges λ = 10ᵘσ₁², with a Cholesky decomposition for each.

    parts : the rows that are left out
    largest : σ₁
    """

    accumulator: Accumulator
    reduced: Sequence[Reduced]
    mean: _Mean
    parts: Sequence[Part]
    largest: float

    def of(self, u: float) -> tuple[AtOneRidge | None, list[Errors]]:
        """How rows are left out for one ridge, and their errors; None where a matrix is indefinite up to rounding."""
        ridge = self.largest**2 * 10**u
        factors = [part.problem.cholesky(ridge) for part in self.reduced]
        if any(factor is None for factor in factors):
            return None, []
        method = AtOneRidge(self.accumulator, self.reduced, factors, ridge, self.largest)
        return method, list(self.mean.errors(method, self.parts))

    def rough(self, stride: int) -> _Trial | None:
        """The same in single precision, for the rows of this stride; None where that does not hold the numbers.

        The rounding of AᴴA to single precision acts like a change of the ridge by about 1e-8 σ₁². Scores were off by
        less than 1 % for λ >= 1e-6 σ₁².
        """
        if self.accumulator.dtype != np.float64:
            return None
        problems = [part.problem.in_single() for part in self.reduced]
        parts = [
            (slice(at.start, at.stop, stride), [rows.in_single(stride) for rows in of_blocks])
            for at, of_blocks in self.parts
        ]
        held = [problem.cross for problem in problems] + [rows.rest for _, of_blocks in parts for rows in of_blocks]
        held += [problem.gram.diagonal() for problem in problems]
        sizes = np.array([float(np.abs(array).max(initial=0)) for array in held])
        if not np.all((sizes == 0) | (sizes > 1 / _MODERATE) & (sizes < _MODERATE)):
            return None
        reduced = [replace(part, problem=problem) for part, problem in zip(self.reduced, problems)]
        return replace(self, reduced=reduced, parts=parts)


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
