"""A progress bar for passes over many rows: one line that moves in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

_BAR = 30  # characters
_EVERY = {True: 0.1, False: 10.0}  # seconds between two lines in a terminal and elsewhere


class Progress:
    """Says on standard error how many rows a pass has seen; silent without a title."""

    def __init__(self, title: str, name: str, total: int | None) -> None:
        self._title, self._total = title and f"{title} ({name})", total
        self._seen, self._shown = 0, -1
        self._started = self._last = time.monotonic()
        self._terminal = bool(title) and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._title and self._shown != self._seen:
            self._show()
        if self._title and self._terminal:
            print(file=sys.stderr, flush=True)

    def advance(self, rows: int) -> None:
        self._seen += rows
        now = time.monotonic()
        if self._title and now - self._last >= _EVERY[self._terminal]:
            self._last = now
            self._show()

    def _show(self) -> None:
        self._shown = self._seen
        begin, end = ("\r", "\033[K") if self._terminal else ("", "\n")
        print(f"{begin}{self}", end=end, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        seconds = time.monotonic() - self._started
        if self._total is None:
            return f"{self._title}: {self._seen:,} rows, {seconds:.0f} s"
        share = self._seen / max(self._total, 1)
        left = seconds * (1 - share) / share if share else 0.0
        bar = f"[{'#' * int(_BAR * share):{_BAR}}] " if self._terminal else ""
        return f"{self._title}: {bar}{self._seen:,} of {self._total:,} rows, {seconds:.0f} s, {left:.0f} s left"
