"""Candidates race: those that cannot win are left out early, so that few of them are scored in full.

A layer is an algebra with a weight scale. Its candidates are numbers of neurons, readouts and ridges. All layers start,
and the race goes on in rounds:

1. *Screening.* Every layer is scored on some hundred rows, with networks that are small for so many rows, and without
   readouts that must be learned. One layer in three goes on, and the best of every weight scale. Further screenings
   follow, each on four times as many rows, until these are all.
2. *First draw.* The layers that are left are scored on all rows, with all numbers of neurons. In the layers that lead,
   readouts are learned, too.
3. *Other draws.* Hidden layers are random, so the leading candidates are scored on further draws of them.

Where there are few candidates, all of them are scored on all rows and draws.

Each layer is scored on one thread, so that results do not depend on the number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from hyperelm._backend.workspace import one_thread
from hyperelm._estimators.base import draft
from hyperelm._estimators.candidates import TIE, Curve, Layer, Part
from hyperelm._estimators.scoring import Scorer
from hyperelm._solvers.spectrum import LABELS
from hyperelm._training.progress import Progress
from hyperelm._training.rows import LocalSource, Rows

_FEW_ROWS, _MORE = 400, 4  # rows of the first screening, and the factor to the next
_FEW_LAYERS = 4  # so many are not screened
_ROWS_FOR_ONE = 2  # rows for every component of the hidden layer of a network that is screened
_ONE_IN = 3  # layers goes on
_FAR = 1.25  # times the loss of the best: layers and networks beyond it do not go on
_LEARNING = 2  # layers in which readouts are learned
_NEAR, _LEADERS = 1.05, 8  # times the loss of the best, and at most so many candidates with further draws

Entry = tuple[Layer, list[int]]  # a layer, and which parts of its plan are scored


@dataclass(frozen=True)
class Race:
    """A race of layers.

    scorer : for all rows
    network : the model of a layer for the seed of a draw
    rounding : losses that differ by no more count as equal
    jobs : as for joblib
    title : of the progress lines; nothing is shown if it is empty
    """

    layers: Sequence[Layer]
    scorer: Scorer
    network: Callable[[Layer, int], Any]
    rounding: float
    jobs: int | None
    title: str

    def run(self, seeds: Sequence[int]) -> None:
        """Give every layer its curves."""
        left = list(self.layers)
        for n_rows in self._screenings():
            if len(left) > _FEW_LAYERS and not self._is_small:
                left = self._screen(left, n_rows, seeds[0])
        if self._is_small:
            self._complete([(layer, list(range(len(layer.plan)))) for layer in left], seeds[0], "all rows")
        else:
            self._first_draw(left, seeds[0])
        for draw, seed in enumerate(seeds[1:], 1):
            for (layer, _), curves in self._scored(self.scorer, self._leaders(), seed, f"draw {draw + 1}"):
                layer.curves.append(curves)

    # ------------------------------------------------------------------ rounds

    @property
    def _is_small(self) -> bool:
        """Whether there are so few candidates that all are scored in full."""
        return sum(len(layer.plan) for layer in self.layers) <= _LEADERS

    def _screenings(self) -> list[int]:
        """The numbers of rows of all screenings; the last takes all."""
        n_rows, found = len(self.scorer.source.first), [_FEW_ROWS]
        while found[-1] < n_rows:
            found.append(found[-1] * _MORE)
        return [min(rows, n_rows) for rows in found]

    def _screen(self, layers: list[Layer], n_rows: int, seed: int) -> list[Layer]:
        """The layers that go on."""
        rows = _some(self.scorer.source.first, n_rows, labels=self.scorer.scoring.caution is LABELS)
        scorer = replace(self.scorer, source=LocalSource([rows], len(rows), ""))
        entries = [(layer, _small(layer, n_rows)) for layer in layers]
        losses: dict[Layer, float] = {}
        by_part: list[tuple[Layer, int, float]] = []
        for (layer, _), curves in self._scored(scorer, entries, seed, f"{len(rows):,} rows"):
            losses[layer] = min(curve.loss for curve in curves.values())
            by_part += [(layer, part, curve.loss) for part, curve in curves.items()]
            if rows is self.scorer.source.first:
                layer.curves[0].update(curves)
        order = sorted(layers, key=lambda layer: losses[layer])
        far = _FAR * losses[order[0]] + self.rounding
        for layer, part, loss in by_part:
            if loss > far:
                layer.beaten.add(part)
        best_of_scales = {layer.scale: layer for layer in reversed(order)}.values()
        going_on = {*order[: -(-len(order) // _ONE_IN)], *best_of_scales}
        return [layer for layer in layers if layer in going_on and losses[layer] <= far]

    def _first_draw(self, layers: list[Layer], seed: int) -> None:
        """Score all parts of layers, but learn readouts only in those that lead.

        They are learned for the number of neurons that is the best with other readouts. Only where that takes the lead,
        the others that are near follow.
        """
        self._complete([(layer, _unbeaten(layer)) for layer in layers], seed, "all rows")
        leading = sorted(layers, key=lambda layer: layer.first_loss)[:_LEARNING]
        best = leading[0].first_loss
        self._complete([(layer, _learned(layer, layer.first_loss)) for layer in leading], seed, "learned readouts")
        ahead = [layer for layer in leading if layer.first_loss < best]
        self._complete([(layer, _learned(layer, _NEAR * best)) for layer in ahead], seed, "learned readouts")

    def _complete(self, entries: list[Entry], seed: int, name: str) -> None:
        """Score those parts of the first draw that have no curves yet."""
        missing = [(layer, [n for n in parts if n not in layer.curves[0]]) for layer, parts in entries]
        for (layer, _), curves in self._scored(self.scorer, [entry for entry in missing if entry[1]], seed, name):
            layer.curves[0].update(curves)

    def _leaders(self) -> list[Entry]:
        """The candidates near the best of the first draw, and the smallest of those that count as equal to it."""
        found = [(curve.loss, layer, n) for layer in self.layers for n, curve in layer.curves[0].items()]
        found.sort(key=lambda one: one[0])
        near, equal = (factor * found[0][0] + self.rounding for factor in (_NEAR, 1 + TIE))
        smallest = min((one for one in found if one[0] <= equal), key=lambda one: one[1].plan[one[2]].size)
        leaders = {(layer, n) for loss, layer, n in [*found[:_LEADERS], smallest] if self._is_small or loss <= near}
        entries = ((layer, [n for n in range(len(layer.plan)) if (layer, n) in leaders]) for layer in self.layers)
        return [entry for entry in entries if entry[1]]

    # ------------------------------------------------------------------ work

    def _scored(
        self, scorer: Scorer, entries: Sequence[Entry], seed: int, name: str
    ) -> list[tuple[Entry, dict[int, Curve]]]:
        """The curves of some parts of some layers for one draw."""
        candidates = sum(len(parts) for _, parts in entries)
        name = f"{name}, {candidates} candidates"
        found = []
        with Progress(self.title, name, len(entries), unit="layers") as progress:
            jobs = Parallel(n_jobs=self.jobs, return_as="generator")
            tasks = (
                delayed(_curves)(scorer, self.network(layer, seed), [layer.plan[n] for n in parts])
                for layer, parts in entries
            )
            for (layer, parts), curves in zip(entries, jobs(tasks)):
                found.append(((layer, parts), dict(zip(parts, curves))))
                progress.advance(1)
        return found


def _curves(scorer: Scorer, network: Any, parts: list[Part]) -> list[Curve]:
    with one_thread():
        return scorer.curves(draft(network, scorer.source), parts)


def _cheap(plan: Sequence[Part]) -> list[int]:
    """The parts whose readout is not learned, or all where there are no others."""
    return [n for n, part in enumerate(plan) if part.readout != "learned"] or list(range(len(plan)))


def _unbeaten(layer: Layer) -> list[int]:
    return [n for n in _cheap(layer.plan) if n not in layer.beaten]


def _learned(layer: Layer, loss: float) -> list[int]:
    """The parts with a learned readout whose numbers of neurons have at most this loss with another readout."""
    places = {layer.plan[n].place for n, curve in layer.curves[0].items() if curve.loss <= loss}
    return [n for n, part in enumerate(layer.plan) if part.readout == "learned" and part.place in places]


def _small(layer: Layer, n_rows: int) -> list[int]:
    """The parts that are screened on so many rows: of every readout the largest with few components for so many."""
    most, found = n_rows / (_ROWS_FOR_ONE * layer.algebra.dim), {}
    for n in sorted(_unbeaten(layer), key=lambda n: layer.plan[n].neurons):
        part = layer.plan[n]
        if part.neurons <= most or part.readout not in found:
            found[part.readout] = n
    return sorted(found.values())


def _some(rows: Rows, count: int, *, labels: bool) -> Rows:
    """So many random rows that count; of labels, all classes in their shares."""
    counted = np.arange(len(rows)) if rows.weight is None else np.flatnonzero(rows.weight[:])
    if len(counted) <= count:
        return rows
    at = np.random.default_rng(0).permutation(counted)
    if labels:
        of_rows = np.asarray(rows.T)
        at = at[np.argsort(of_rows[at], kind="stable")]
        first = np.unique(of_rows[at], return_index=True)[1]
        at = at[np.union1d(first, np.linspace(0, len(at) - 1, count).astype(int))]
    at = np.sort(at[:count] if not labels else at)
    X, T = (np.asarray(array)[at] for array in (rows.X, rows.T))
    return Rows(X, T, None if rows.weight is None else rows.weight[:][at])
