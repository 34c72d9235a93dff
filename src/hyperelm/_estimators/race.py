"""Candidates race: those that cannot win are left out early, so that few of them are scored in full.

A layer is an algebra with a weight scale. Its candidates are numbers of neurons, readouts and ridges. All layers start,
and the race goes on in rounds:

1. *Screening.* Where there are more than some hundred rows, every layer is scored on so many of them, with networks
   that are small for so many, and without readouts that must be learned. Of the layers of each dimension one in nine
   goes on, and the best of every weight scale that is not far behind. Where there are many rows, a further screening
   follows on four times as many, and so on.
2. *First draw.* The layers that are left are scored on all rows, again with networks that are small for so many. Of
   the pairs of a layer and a readout, the best quarter is scored with large networks, and then the best four with all
   numbers of neurons. In the two layers that lead, readouts are learned, too.
3. *Other draws.* Hidden layers are random, and the best of many is the best by luck, too. So the candidates that lead
   are scored on further draws of them, and others follow until none of them shows a smaller loss than the best of those
   that had all draws.

Where there are few candidates, all of them are scored on all rows and draws.

Each layer is scored on one thread, so that results do not depend on the number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from hyperelm._backend import chunks
from hyperelm._backend.workspace import one_thread
from hyperelm._estimators.base import draft
from hyperelm._estimators.candidates import TIE, Curve, Layer, Part, loss_of
from hyperelm._estimators.scoring import Scorer
from hyperelm._solvers.spectrum import LABELS
from hyperelm._training.progress import Progress
from hyperelm._training.rows import LocalSource, Rows

_FEW_ROWS, _MORE = 400, 4  # rows of the first screening, and the factor to the next
_CHUNK = 1024  # rows that are read at a time to take some of them
_FEW_LAYERS = 4  # so many are not screened
_ROWS_FOR_ONE = 2  # rows for each component of the hidden layer, in the networks that layers are first scored with
_ONE_IN = 9  # one in so many layers of each dimension goes on
_FAR = 1.25  # times the loss of the best: weight scales beyond it do not go on
_ONE_LARGE_IN = 4  # one in so many pairs of a layer and a readout has a large network
_ALL_SIZES = 4  # pairs that are scored with all numbers of neurons; so many have a large network at least
_LEARNING = 2  # layers in which readouts are learned
_NEAR = 1.05  # times the loss of the best: numbers of neurons for which readouts are learned, too
_SMALL = 8  # so many candidates do not race
_LEARNED = "learned readouts"
_LEADERS = 4  # candidates that are scored on further draws at a time

Entry = tuple[Layer, list[int]]  # a layer, and which parts of its plan are scored
Pair = tuple[Layer, str]  # a layer and a readout


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
        if self._is_small:
            self._complete([(layer, list(range(len(layer.plan)))) for layer in left], seeds[0], "all rows")
        else:
            for n_rows in self._screenings():
                left = self._screen(left, n_rows, seeds[0])
            self._first_draw(left, seeds[0])
        self._other_draws(seeds)

    # ------------------------------------------------------------------ rounds

    @property
    def _is_small(self) -> bool:
        """Whether there are so few candidates that all are scored in full."""
        return sum(len(layer.plan) for layer in self.layers) <= _SMALL

    def _screenings(self) -> list[int]:
        """The numbers of rows of all screenings: some hundred, then up to half of all rows."""
        n_rows, found = len(self.scorer.source.first), [_FEW_ROWS]
        while 2 * _MORE * found[-1] <= n_rows:
            found.append(found[-1] * _MORE)
        return found if n_rows > _FEW_ROWS else []

    def _screen(self, layers: list[Layer], n_rows: int, seed: int) -> list[Layer]:
        """The layers that go on."""
        if len(layers) <= _FEW_LAYERS:
            return layers
        rows = _some(self.scorer.source.first, n_rows, labels=self.scorer.scoring.caution == LABELS)
        scorer = replace(self.scorer, source=LocalSource([rows], len(rows), ""))
        losses: dict[Layer, float] = {}
        entries = [(layer, _largest(layer, len(rows) / _ROWS_FOR_ONE)) for layer in layers]
        for (layer, _), curves in self._scored(scorer, entries, seed, f"{len(rows):,} rows"):
            losses[layer] = min(self._loss([curve]) for curve in curves.values())
        going_on: set[Layer] = set()
        for dim in {layer.algebra.dim for layer in layers}:
            going_on |= self._best({layer: loss for layer, loss in losses.items() if layer.algebra.dim == dim})
        return [layer for layer in layers if layer in going_on]

    def _best(self, losses: dict[Layer, float]) -> set[Layer]:
        """One layer in nine, and the best of every weight scale that is not far behind."""
        order = sorted(losses, key=lambda layer: losses[layer])
        far = _FAR * losses[order[0]] + self.rounding
        best_of_scales = {layer.scale: layer for layer in reversed(order)}.values()
        return {*order[: -(-len(order) // _ONE_IN)], *(layer for layer in best_of_scales if losses[layer] <= far)}

    def _first_draw(self, layers: list[Layer], seed: int) -> None:
        """Score a network of every readout of a layer, then larger and other ones of the pairs that lead.

        The first networks are small for so many rows. They tell which pairs may lead. Large ones of all pairs would
        take most of the time of a search where rows are few.
        """
        components = _count(self.scorer.source.first) / _ROWS_FOR_ONE
        self._complete([(layer, _largest(layer, components)) for layer in layers], seed, "all rows")
        pairs = self._best_first(layers)
        pairs = pairs[: max(_ALL_SIZES, -(-len(pairs) // _ONE_LARGE_IN))]
        large = [(layer, _of_pairs(pairs, layer, _largest(layer))) for layer in layers]
        self._complete(large, seed, "large networks")
        pairs = self._best_first(layers)[:_ALL_SIZES]
        every = [(layer, _of_pairs(pairs, layer, range(len(layer.plan)))) for layer in layers]
        self._complete(every, seed, "all sizes")
        self._learn(sorted(layers, key=self._first_loss)[:_LEARNING], seed)

    def _learn(self, leading: list[Layer], seed: int) -> None:
        """Score learned readouts of these layers, of which the first is the best.

        They come with the smallest number of neurons that counts as the best with other readouts. Only where that takes
        the lead, the other numbers that are near follow.
        """
        losses = [self._first_loss(layer) for layer in leading]
        equal = [(1 + TIE) * loss + self.rounding for loss in losses]
        smallest = [(layer, self._learned(layer, loss)[:1]) for layer, loss in zip(leading, equal)]
        self._complete(smallest, seed, _LEARNED)
        ahead = [layer for layer in leading if self._first_loss(layer) < losses[0]]
        self._complete([(layer, self._learned(layer, _NEAR * losses[0])) for layer in ahead], seed, _LEARNED)

    def _complete(self, entries: list[Entry], seed: int, name: str) -> None:
        """Score those parts of the first draw that have no curves yet."""
        missing = [(layer, [n for n in parts if n not in layer.curves[0]]) for layer, parts in entries]
        for (layer, _), curves in self._scored(self.scorer, [entry for entry in missing if entry[1]], seed, name):
            layer.curves[0].update(curves)

    def _other_draws(self, seeds: Sequence[int]) -> None:
        """Score candidates on all draws, until no other shows a smaller loss than the best of these."""
        draws = len(seeds)
        for layer in self.layers:
            layer.curves += [{} for _ in seeds[1:]]
        while draws > 1 and (entries := self._leaders(draws)):
            for draw in range(1, draws):
                for (layer, _), curves in self._scored(self.scorer, entries, seeds[draw], f"draw {draw + 1}"):
                    layer.curves[draw].update(curves)

    def _leaders(self, draws: int) -> list[Entry]:
        """The best of the candidates that had one draw and look better than all that had all draws.

        In the beginning, of those that count as equal to the best, the one with the smallest size is among them.
        """
        found = [(self._loss(layer.curves_of(n)), layer, n) for layer in self.layers for n in layer.curves[0]]
        complete = [loss for loss, layer, n in found if len(layer.curves_of(n)) == draws]
        best = min(complete, default=np.inf)
        open_ = sorted((one for one in found if len(one[1].curves_of(one[2])) < draws), key=lambda one: one[0])
        leaders = [one for one in open_ if one[0] < best - self.rounding]
        leaders = leaders if self._is_small else leaders[:_LEADERS]
        if not complete:
            equal = (1 + TIE) * open_[0][0] + self.rounding
            leaders.append(min((one for one in open_ if one[0] <= equal), key=lambda one: one[1].plan[one[2]].size))
        chosen = {(layer, n) for _, layer, n in leaders}
        entries = ((layer, [n for n in range(len(layer.plan)) if (layer, n) in chosen]) for layer in self.layers)
        return [entry for entry in entries if entry[1]]

    # ------------------------------------------------------------------ losses

    def _loss(self, curves: Sequence[Curve]) -> float:
        return loss_of(curves, self.rounding, is_path=self.scorer.ridges is None)

    def _first_loss(self, layer: Layer) -> float:
        """The smallest loss on the first draw."""
        return min(self._loss([curve]) for curve in layer.curves[0].values())

    def _best_first(self, layers: list[Layer]) -> list[Pair]:
        """The pairs of these layers with readouts that were scored, by their smallest losses on the first draw."""
        losses: dict[Pair, float] = {}
        for layer in layers:
            for n, curve in layer.curves[0].items():
                pair = layer, layer.plan[n].readout
                losses[pair] = min(self._loss([curve]), losses.get(pair, np.inf))
        return sorted(losses, key=lambda pair: losses[pair])

    def _learned(self, layer: Layer, loss: float) -> list[int]:
        """The parts with a learned readout whose numbers of neurons have at most this loss with another readout.

        The smallest come first.
        """
        places = {layer.plan[n].place for n, curve in layer.curves[0].items() if self._loss([curve]) <= loss}
        learned = [n for n, part in enumerate(layer.plan) if part.readout == "learned" and part.place in places]
        return sorted(learned, key=lambda n: layer.plan[n].neurons)

    # ------------------------------------------------------------------ work

    def _scored(
        self, scorer: Scorer, entries: Sequence[Entry], seed: int, name: str
    ) -> list[tuple[Entry, dict[int, Curve]]]:
        """The curves of some parts of some layers for one draw."""
        if not entries:
            return []
        candidates = sum(len(parts) for _, parts in entries)
        name = f"{name}, {candidates} candidates"
        found = []
        with Progress(self.title, name, len(entries), unit="layers") as progress:
            jobs = Parallel(n_jobs=self.jobs, return_as="generator")
            tasks = (
                delayed(_curves)(scorer, self.network(layer, seed), [layer.plan[n] for n in parts])
                for layer, parts in entries
            )
            for curves, (layer, parts) in zip(jobs(tasks), entries):
                found.append(((layer, parts), dict(zip(parts, curves))))
                progress.advance(1)
        return found


def _curves(scorer: Scorer, network: Any, parts: list[Part]) -> list[Curve]:
    with one_thread():
        return scorer.curves(draft(network, scorer.source), parts)


def _of_pairs(pairs: Sequence[Pair], layer: Layer, parts: Iterable[int]) -> list[int]:
    """Those of some parts of a layer that belong to one of the pairs."""
    return [n for n in parts if (layer, layer.plan[n].readout) in pairs]


def _largest(layer: Layer, components: float = np.inf) -> list[int]:
    """Of every readout the largest part with at most so many components, or the smallest.

    Readouts that are learned count where there are no others.
    """
    cheap = [n for n, part in enumerate(layer.plan) if part.readout != "learned"] or list(range(len(layer.plan)))
    found: dict[str, int] = {}
    for n in sorted(cheap, key=lambda n: layer.plan[n].neurons):
        part = layer.plan[n]
        if part.neurons * layer.algebra.dim <= components or part.readout not in found:
            found[part.readout] = n
    return sorted(found.values())


def _count(rows: Rows) -> float:
    """For how many samples the rows stand."""
    return len(rows) if rows.weight is None else float(rows.weight[:].sum(dtype=np.float64))


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
    return _rows_at(rows, np.sort(at if labels else at[:count]))


def _rows_at(rows: Rows, at: NDArray[np.intp]) -> Rows:
    """The rows at these places, in increasing order. Of a sparse array only a chunk and these rows become dense."""
    of_chunks = [(chunk, at[(chunk.start <= at) & (at < chunk.stop)]) for chunk in chunks(len(rows), _CHUNK)]
    parts = [rows.chunk(chunk).taken(places - chunk.start) for chunk, places in of_chunks]
    X, T = (np.concatenate([np.asarray(getattr(part, name)) for part in parts]) for name in ("X", "T"))
    return Rows(X, T, None if rows.weight is None else rows.weight[:][at])
