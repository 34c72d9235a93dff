"""What a user sees of a run: a live bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hyperelm._files import printable
from hyperelm.experiments.definition import MAIN, Experiment, Row, Unit

_EVERY = 10.0  # seconds between two lines


class Leader:
    """Which model most often has the best run of those that compete, which share some fields, in the main part."""

    def __init__(self, measure: str, shared: tuple[str, ...] = ("n_hidden", "network")) -> None:
        self._measure, self._shared = measure, shared
        self._best: dict[tuple[int, ...], tuple[float, str]] = {}
        self._wins: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        # Of equals, the first by name wins, as in `winners` with the rows of a store.
        at, mine = tuple(row[key] for key in self._shared), (-row[self._measure], row["algebra"])
        best = self._best.get(at)
        if best is None or mine < best:
            if best:
                self._wins[best[1]] -= 1
            self._best[at] = mine
            self._wins[mine[1]] += 1

    def __str__(self) -> str:
        if not self._wins:
            return ""
        name, wins = min(self._wins.items(), key=lambda item: (-item[1], item[0]))
        return f"{printable(name)} leads ({wins / len(self._best):.0%} of wins)"


class _Watch:
    def __init__(self, leader: Leader, remark: str = "") -> None:
        self._leader, self._remark = leader, remark
        self._total = self._count = self._before = 0
        self._started = time.monotonic()

    def begin(self, total: int, done: list[Row]) -> None:
        self._total, self._count, self._before = total, len(done), len(done)
        for row in done:
            self._see(row)
        if self._remark:
            print(self._remark, file=sys.stderr, flush=True)
        self.show()

    def advance(self, unit: Unit, rows: list[Row]) -> None:
        self._count += len(rows)
        for row in rows:
            self._see({"part": unit.part, "algebra": unit.algebra, "n_hidden": unit.n_hidden} | row)
        self.show()

    def _see(self, row: Row) -> None:
        if row["part"] == MAIN:
            self._leader.add(row)

    @property
    def rate(self) -> float:
        """Runs a second in this session."""
        return (self._count - self._before) / max(time.monotonic() - self._started, 1e-9)

    @property
    def speed(self) -> str:
        return f"{self.rate:,.0f} a second" if self.rate >= 1 else f"{60 * self.rate:.0f} a minute"

    def show(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Lines(_Watch):
    """Plain lines on standard error."""

    _last = -_EVERY

    def show(self) -> None:
        now = time.monotonic()
        if now - self._last < _EVERY and self._count < self._total:
            return
        self._last = now
        left = (self._total - self._count) / self.rate if self.rate > 0 else 0
        pieces = [f"{self._count:,} of {self._total:,} runs"]
        if self._count > self._before:
            pieces += [self.speed, f"{left:.0f} s left"]
        print(", ".join([*pieces, str(self._leader)]).rstrip(", "), file=sys.stderr, flush=True)


class Bar(_Watch):
    """A live bar on standard error."""

    def __init__(self, leader: Leader, remark: str = "") -> None:
        super().__init__(leader, remark)
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[leader]}"),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("runs", total=None, rate="", leader="")

    def show(self) -> None:
        rate = self.speed if self._count > self._before else ""
        self._progress.update(self._task, total=self._total, completed=self._count, rate=rate, leader=str(self._leader))

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()


def watcher(experiment: Experiment) -> _Watch:
    """A bar in a terminal, lines elsewhere."""
    module = experiment.module
    watch = Bar if sys.stderr.isatty() else Lines
    return watch(Leader(module.MEASURES[0], module.COMPETE), module.remark(experiment.settings))
