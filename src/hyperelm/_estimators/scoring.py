"""The scores of all parts of one hidden layer, along their paths of ridges, without refits.

A first pass over the rows gives the accumulator of the whole layer. That of its first neurons is a part of it, and the
sums of all components contain those of every readout. So each part costs one decomposition, which serves every ridge.
A second pass leaves out every row (`_training.leaving_out`). Generalised cross-validation does without it.

A table that is learned has seen all rows, so leaving one out of the output layer alone would flatter it. Its rows are
left out in two halves: errors of the one are those of a table that was learned from the other.

The ridges of a path are compared as by an estimator that chooses its own ridge (`_solvers.scores`): by squared errors
that are raised where few degrees of freedom are left, and for labels by a loss of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.workspace import one_blas
from hyperelm._estimators.candidates import Curve, Part, averaged
from hyperelm._network.layers import Given
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.losses import Loss, brier, log_loss, misses, squares
from hyperelm._solvers.scores import Scores
from hyperelm._solvers.solve import SOLVERS
from hyperelm._solvers.spectrum import LABELS, PER_DECADE, VALUES, Caution, Spectrum, is_permitted
from hyperelm._training.leaving_out import LeavingOut, PartOfLayer
from hyperelm._training.passes import Training
from hyperelm._training.readouts import accumulator_of, free_unknowns, readouts_of
from hyperelm._training.rows import LocalSource, Rows, itself

_LOO_PER_DECADE = 3  # ridges of which "auto" takes leave-one-out residuals
_FAR_RIDGE = 2.0  # times the best score by generalised cross-validation: ridges beyond it are not tried
_LEARNING = 8  # steps of the search for a table; the model that is chosen has as many as it takes


class Scoring(NamedTuple):
    """What candidates are scored by.

    losses : of rows left out, of which the one with the smallest mean counts; none for generalised cross-validation,
        which leaves no row out
    of_path : the losses by which the ridges of a path are compared; none where they are the same
    caution : what keeps the choice of a ridge from too small ones
    best : the score of no loss; the score of a candidate is this minus its mean loss
    """

    losses: tuple[Loss, ...]
    of_path: tuple[Loss, ...] = ()
    caution: Caution = VALUES
    best: float = 0.0

    def scores(self, means: NDArray[np.float64]) -> Scores:
        """From the means of all losses, (losses, ridges)."""
        own, of_path = np.split(means, [len(self.losses)])
        return Scores(own.min(axis=0), (of_path if len(of_path) else own).min(axis=0))


# A model that is fitted is calibrated. Scales that are further apart than this hardly lose likelihood.
_SCALES = (1.5, 3.0, 6.0, 12.0)
_LOG_LOSSES = tuple(partial(log_loss, scale=scale) for scale in _SCALES)

OF_VALUES = {"loo": Scoring((squares,)), "gcv": Scoring(())}
OF_LABELS = {
    "log_loss": Scoring(_LOG_LOSSES, (), LABELS),
    # A path of ridges has many with as few wrong labels.
    "accuracy": Scoring((misses,), _LOG_LOSSES, LABELS, best=1.0),
    "brier": Scoring(tuple(partial(brier, scale=scale) for scale in _SCALES), (), LABELS),
}


class Path(NamedTuple):
    """The ridges for one part of a layer, and which of them are tried."""

    ridges: NDArray[np.float64]
    is_tried: NDArray[np.bool_]

    def filled(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of all ridges, infinite for those that are not tried."""
        found = np.full(len(self.ridges), np.inf)
        found[self.is_tried] = scores
        return found


@dataclass(frozen=True)
class Scorer:
    """Scores the parts of hidden layers on the rows of a source.

    solver : what the user asked for
    ridges : those of the user; None where each part's own path is searched
    """

    source: LocalSource
    scoring: Scoring
    solver: str
    ridges: NDArray[np.float64] | None

    def curves(self, training: Training, plan: Sequence[Part]) -> list[Curve]:
        """The losses of every ridge, for every part of a plan.

        Normal equations show neither ridges nor errors below their rounding. A curve that reaches them is computed
        again with `qr`.
        """
        largest = max(part.neurons for part in plan)
        training = replace(training, encoder=Given(training.encoder.weights[:, :largest]))
        by_component = any(part.readout != "algebra" for part in plan)
        training = replace(training, readout="free" if by_component else "algebra")
        with one_blas():
            for method in SOLVERS[self.solver if self.solver in ("auto", "gram") else "qr"]:
                curves = self._curves(replace(training, method=method), plan)
                if not any(curve.is_cut_off or (self.ridges is None and curve.still_falls) for curve in curves):
                    break
        return curves

    def _curves(self, training: Training, plan: Sequence[Part]) -> list[Curve]:
        accumulator = self.source.fold(training, itself).accumulator
        if self.solver == "auto" and not accumulator.is_safe:
            return self._curves(replace(training, method=SOLVERS["qr"][0]), plan)
        learned = [part for part in plan if part.readout == "learned" and self.scoring.losses]
        known = [part for part in plan if part not in learned]
        curves = dict(zip(known, self._curves_of(training, accumulator, known, accumulator, self.source)))
        if learned:
            halves = self._halves()
            of_halves = []
            for taught, left_out in zip(halves, reversed(halves)):
                teacher = taught.fold(training, itself).accumulator
                of_halves.append(self._curves_of(training, accumulator, learned, teacher, left_out))
            curves |= dict(zip(learned, map(averaged, zip(*of_halves))))
        return [curves[part] for part in plan]

    def _halves(self) -> list[LocalSource]:
        """Every other of the rows that count, and the rest: all rows, of which half have no weight."""
        rows = self.source.first
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight[:]
        place = np.cumsum(weight > 0)
        if place[-1] < 2:
            return [self.source, self.source]
        parts = (Rows(rows.X, rows.T, weight * (place % 2 == odd)) for odd in (1, 0))
        return [LocalSource([part], len(part), "") for part in parts]

    def _curves_of(
        self,
        training: Training,
        accumulator: Accumulator,
        plan: Sequence[Part],
        teacher: Accumulator,
        left_out: LocalSource,
    ) -> list[Curve]:
        """The curves of parts that `accumulator` fits, by the errors of rows that are left out.

        `teacher` is the accumulator that tables are learned from.
        """
        if not plan:
            return []
        parts, paths = zip(*(self._part_of_layer(training, accumulator, part, teacher) for part in plan))
        columns = training.output.columns
        # What normal equations leave of no error: 94 dB below the targets, 41 in single precision.
        least = float(np.finfo(accumulator.dtype).eps ** 0.6) * accumulator.square
        least /= max(accumulator.weight, 1) * columns
        curves = []
        for part, path, scores in zip(parts, paths, self._scores(training, parts, left_out)):
            unit, caution = part.spectrum.largest**2, self.scoring.caution
            # No candidate is preferred for an error that is smaller than rounding lets one know.
            lowest = 0.0 if caution == LABELS else part.spectrum.resolution(part.ridges) / columns
            errors, compared = (path.filled(np.maximum(score, lowest)) for score in scores)
            seen = 0.0 if caution == LABELS else least
            curves.append(Curve(path.ridges, errors, compared, unit, part.spectrum.floor * unit, seen, caution))
        return curves

    def _scores(self, training: Training, parts: Sequence[PartOfLayer], left_out: LocalSource) -> list[Scores]:
        """The mean loss of every ridge, and what ridges are compared by, for every part."""
        if not self.scoring.losses:
            columns = training.output.columns
            by_gcv = [p.spectrum.accumulator.algebra.dim * p.spectrum.gcv(p.ridges) / columns for p in parts]
            return [Scores(of_ridges, of_ridges) for of_ridges in by_gcv]
        sums = left_out.fold(LeavingOut(training, parts, [*self.scoring.losses, *self.scoring.of_path]), itself)
        means = [total[:-1] / np.maximum(total[-1], np.finfo(np.float64).tiny) for total in sums]
        if self.scoring.caution == LABELS:
            finite = [np.where(np.isnan(of_part[:-1]), np.inf, of_part[:-1]) for of_part in means]
            return [self.scoring.scores(losses) for losses in finite]
        return [Scores.of(errors, leverage) for errors, leverage in means]

    def _part_of_layer(
        self, training: Training, accumulator: Accumulator, part: Part, teacher: Accumulator
    ) -> tuple[PartOfLayer, Path]:
        """The first neurons of a layer with one readout: their problem, and the ridges to try."""
        weights, d = training.encoder.weights, training.algebra.dim
        neurons, L = weights.shape[1], part.neurons
        kept = np.append(np.arange(L), np.arange(neurons, training.width))
        own = replace(training, encoder=Given(weights[:, :L]), readout=part.readout)
        if training.by_component:
            rest = np.arange(neurons * d, accumulator.unknowns)
            places, caution = np.append(np.arange(L * d), rest), self.scoring.caution
            taught = teacher.restricted(places) if part.readout == "learned" else teacher
            (readout, *_) = readouts_of(taught, own, "gcv", caution, random_starts=0, steps=_LEARNING)
            accumulator = accumulator_of(readout, accumulator.restricted(places), own)
        else:
            accumulator = accumulator.restricted(kept)
        spectrum = Spectrum(accumulator, free_unknowns(accumulator, own))
        path = self._path(spectrum) if self.ridges is None else self.ridges
        is_tried = self._is_tried(spectrum, path)
        return PartOfLayer(own, kept, spectrum, path[is_tried]), Path(path, is_tried)

    def _is_tried(self, spectrum: Spectrum, path: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The ridges of a path that are worth a try: generalised cross-validation tells which are far from the best."""
        tried = np.ones(len(path), dtype=bool)
        if self.ridges is not None or not self.scoring.losses or len(path) == 1:
            return tried
        scores = spectrum.gcv(path, self.scoring.caution)
        permitted = is_permitted(spectrum.shares(path), scores, self.scoring.caution)
        near = np.flatnonzero(permitted & (scores <= _FAR_RIDGE * scores[permitted].min()))
        # A decade more on both sides is tried, and above that one ridge in every decade: which ridges extrapolation
        # permits follows from the scores of larger ones.
        tried[: max(near[0] - _LOO_PER_DECADE, 0)] = False
        above = np.arange(near[-1] + _LOO_PER_DECADE + 1, len(path) - 1)
        tried[above] = (len(path) - 2 - above) % _LOO_PER_DECADE == 0
        return tried

    def _path(self, spectrum: Spectrum) -> NDArray[np.float64]:
        if spectrum.largest == 0:  # a constant layer: any ridge leaves its weights at zero
            return np.ones(1)
        path = spectrum.path(PER_DECADE if not self.scoring.losses else _LOO_PER_DECADE)
        return np.concatenate([[0.0], path]) if spectrum.accumulator.shows_no_ridge else path
