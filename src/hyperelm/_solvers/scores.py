"""How ridges are compared: by the errors of a sample of the rows, each predicted by a fit to all other rows.

Every row m, (a_m, t_m), has an error e₋ₘ when all other rows are fitted (`loo`). With the mean leverage τ of a row the
choice is

    λ = argmin E(λ) ((1 - τ)/(1 - γτ))²,        E(λ) = Σ_m w_m ‖e₋ₘ(λ)‖² / Σ_m w_m,

on the path of `spectrum`, whose last ridge leaves nothing but the mean of the targets. The factor beside E is the one
by which γ raises the score of generalised cross-validation. It is needed because E is the mean of few and correlated
errors: the smallest of many such means tends to be that of a ridge that is too small. On hundreds of real data sets
γ = 1.4 halves the number of those on which the network is worse than ridge regression.

Where labels follow from the largest of the outputs y, the ridge has the smallest log loss of the labels instead. It
takes probabilities in proportion to exp(3y), where y are the outputs for rows that are left out.

Of many rows a sample is left out, and combinations stand for many targets (`sample`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend import chunks
from hyperelm._lazy import lazy
from hyperelm._solvers.loo import LeaveOneOut, LeftOut, SplitRows, left_out_by, split_rows
from hyperelm._solvers.losses import log_loss
from hyperelm._solvers.sample import RowSample
from hyperelm._solvers.spectrum import LABELS, VALUES, Caution

_SCRATCH = 2**19  # numbers in the errors of some rows for all ridges


class Choice(NamedTuple):
    """A ridge and its mean squared leave-one-out error.

    is_bias_only : whether this ridge leaves nothing but the bias, whose error is more than rounding
    cut_off : whether a ridge that is too small for rounding to show it may be better
    left_out : the rows that were left out at this ridge; None where they were not kept
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


Part = tuple[slice, SplitRows]  # some rows of the sample
Errors = tuple[slice, NDArray[np.float64], NDArray[np.float64]]  # rows, errors (m, ridges, columns), and leverages


@dataclass(frozen=True)
class MeanError:
    """The mean squared error of a sample that is left out row by row.

    Of the N d components of an error those in `places` count. They are summed and divided by the number of `columns`.
    `labels` says that targets are indicators.
    """

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

    @lazy
    def rounding(self) -> float:
        """Scores that differ by less are equal: 1e3 eps of the spread of the targets and 4 eps of their size, squared.

        Log losses are never as exact, since they hardly change once all labels are right.
        """
        if self.labels:
            return 1e-4
        T, eps = self.sample.T.astype(np.float64, copy=False), float(np.finfo(self.sample.T.dtype).eps)
        return float((1e3 * eps * T.std(axis=0).max(initial=0)) ** 2 + (4 * eps * np.abs(T).max(initial=0)) ** 2)

    def logarithms(self, scores: Scores) -> NDArray[np.float64]:
        """The logarithms of the scores plus rounding, so that scores far below it are practically equal."""
        return np.log(np.maximum(scores.compared + self.rounding, np.finfo(np.float64).tiny))

    def leaves_residual(self, error: float) -> bool:
        """Whether an error is more than rounding."""
        return self.rounding < error < np.inf


def joined(method: LeaveOneOut, errors: Iterable[Errors]) -> LeftOut:
    """The errors of all rows at the first ridge, which is that of the method."""
    _, residuals, leverages = zip(*errors)
    return LeftOut(method, np.concatenate(residuals)[:, 0], np.concatenate(leverages)[:, 0])
