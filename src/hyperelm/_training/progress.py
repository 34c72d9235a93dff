"""How far a fit, a search or an experiment has come, on standard error.

In a terminal the same line is written again and again. Elsewhere a new line is written every ten seconds.
"""

from __future__ import annotations

import sys
import time

_BAR = 30  # characters
_EVERY = {True: 0.1, False: 10.0}  # seconds between two lines in a terminal and elsewhere


class Progress:
    """Show on standard error how much of a task is done.

    Parameters
    ----------
    title : str
        The beginning of the line. Nothing is shown if it is empty.
    name : str
        The step of the task. It follows the title in brackets, unless it is empty.
    total : int or None
        The amount of work, if it is known.
    unit : str
        The plural of what is counted.
    done : int
        The amount that was done before. It does not count for the speed.

    Examples
    --------
    >>> from hyperelm.progress import Progress
    >>> with Progress("", "reading", 100) as progress:
    ...     progress.advance(100)
    """

    def __init__(self, title: str, name: str, total: int | None, *, unit: str = "rows", done: int = 0) -> None:
        self._title, self._total, self._unit = f"{title} ({name})" if title and name else title, total, unit
        self._before, self._seen, self._shown, self._note = done, done, -1, ""
        self._started = self._last = time.monotonic()
        self._terminal = bool(title) and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown != self._seen:
            self.show()
        if self._title and self._terminal:
            print(file=sys.stderr, flush=True)

    def advance(self, count: int, note: str = "") -> None:
        """Add `count` to what is done. The line ends with the last `note`."""
        self._seen, self._note = self._seen + count, note
        if time.monotonic() - self._last >= _EVERY[self._terminal]:
            self.show()

    def show(self) -> None:
        """Write the line now."""
        self._shown, self._last = self._seen, time.monotonic()
        begin, end = ("\r", "\033[K") if self._terminal else ("", "\n")
        if self._title:
            print(f"{begin}{self}", end=end, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        seconds, new = time.monotonic() - self._started, self._seen - self._before
        of, bar, parts = "", "", []
        if self._total is not None:
            of = f" of {self._total:,}"
            if self._terminal:
                bar = f"[{'#' * int(_BAR * self._seen / max(self._total, 1)):{_BAR}}] "
        if new:
            rate = new / max(seconds, 1e-9)
            parts = [f"{seconds:.0f} s", f"{rate:,.0f} a second" if rate >= 1 else f"{60 * rate:.0f} a minute"]
            if self._total is not None:
                parts.append(f"{(self._total - self._seen) / rate:.0f} s left")
        return ", ".join([f"{self._title}: {bar}{self._seen:,}{of} {self._unit}", *parts, *filter(None, [self._note])])
