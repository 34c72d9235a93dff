"""What `hyperelm fit` advises at its end: what to use or to compare with, for the data at hand.

Each sentence comes from a table of the pages, and names it. The page `docs/when.md` has the same advice with its
reasons. A simpler model that is better is not named here: a warning of `fit` does that.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyperelm.cli._task import listed

FEW_ROWS = 1000  # up to so many rows of vectors such networks were ahead or level
MANY_ROWS = 4000  # from so many on rivals were ahead
MANY_COLUMNS = 100  # so many columns may be a series or an image


@dataclass(frozen=True)
class Advice:
    """A sentence or two, and the sections of the pages that they come from."""

    text: str
    sources: Sequence[str]

    def __str__(self) -> str:
        """As one item of a list, in lines that fit a terminal."""
        text = f"- {self.text} See {listed(self.sources)}."
        return textwrap.fill(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class Situation:
    """What the advice depends on.

    `level` names simpler models that are no better, but chance may explain that. `beaten` says that one is better, and
    `beyond` that the targets held out leave the range of those before. `ordered` names an input by which the rows are
    ordered.
    """

    kind: Literal["numbers", "labels", "series"]
    rows: int
    columns: int
    targets: int
    level: Sequence[str] = ()
    beaten: bool = False
    beyond: bool = False
    ordered: str = ""


def advise(data: Situation) -> list[Advice]:
    """At most three pieces of advice: on the order of the rows, on the simpler models, and on others."""
    others = {"numbers": _for_numbers, "labels": _for_labels, "series": _for_series}[data.kind]
    return [*_on_order(data), *_on_simpler(data), others(data)]


def _on_order(data: Situation) -> list[Advice]:
    if not data.ordered:
        return []
    text = (
        f"The rows are in the order of {data.ordered!r}. If you will predict later rows, the errors above and the "
        "intervals are too good, since the rows held out lie between others. Use --series, or leave out what tells the "
        "time with --exclude."
    )
    return [Advice(text, ["docs/command-line.md#series"])]


def _on_simpler(data: Situation) -> list[Advice]:
    if data.beaten or not data.level:
        return []
    names, several = listed(data.level), len(data.level) > 1
    verbs, use = ("are simpler and do", "one of them") if several else ("is simpler and does", "it")
    as_well = f"{names[0].upper()}{names[1:]} {verbs} as well on the rows held out, up to chance."
    source = _measured("vowels" if data.kind == "labels" else "weather-150")
    return [Advice(f"{as_well} Use {use}, or compare on more rows.", [source])]


def _by_rows(data: Situation) -> Advice | None:
    """For many rows, and for few rows of vectors."""
    if data.rows >= MANY_ROWS:
        return _MANY_ROWS
    is_strength = data.targets > 1 and data.rows <= FEW_ROWS and not data.beaten
    return _VECTORS if is_strength else None


def _for_numbers(data: Situation) -> Advice:
    return _by_rows(data) or Advice(
        "If the columns are unlike things, compare with ridge regression on `Nystroem` features, which was better on "
        "such files, and with extra trees.",
        [_measured("tables-0"), _measured("tables-1")],
    )


def _for_labels(data: Situation) -> Advice:
    if data.columns >= MANY_COLUMNS:
        return Advice(
            "If the columns are steps of a series that may begin at any time, use MiniRocket, which was far better. "
            "If they are pixels, use a convolutional network.",
            [_measured("motions")],
        )
    return Advice(
        "Compare with extra trees and with `Nystroem` features, which were level with such a network on voices and "
        "digits.",
        [_measured("vowels"), _measured("digits")],
    )


def _for_series(data: Situation) -> Advice:
    if data.beyond:
        return Advice(
            "The last part of the series goes beyond the values before it, and a network does not go on with a trend. "
            "Predict the differences between rows.",
            ["docs/command-line.md#series"],
        )
    return _by_rows(data) or Advice(
        "In the forecasts of sensors that were measured, such a network was 1 to 3 % better than ridge regression from "
        "1,000 rows on, and not with fewer.",
        ["docs/sensors.md#what-came-out-on-real-records"],
    )


def _measured(task: str) -> str:
    return f"docs/real-data.md#{task}"


_MANY_ROWS = Advice(
    "With so many rows, compare with ridge regression on `Nystroem` features, which was ahead with 4,000 rows. If the "
    "columns are unlike things, compare with gradient boosting, too.",
    [_measured("wind-4000")],
)
_VECTORS = Advice(
    "Few rows of vectors are what such networks are best at. If your columns are vectors, put the components of each "
    "next to each other.",
    [_measured("wind-60"), _measured("wind-250")],
)
