"""The `hyperelm` command, with one clear line where its extra is missing or its output cannot be written."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def main() -> None:
    _open_streams()
    try:
        from hyperelm.cli import app, reason
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "hyperelm":
            raise
        sys.exit(f"The command line needs the package {error.name!r}: pip install 'hyperelm[cli]'")
    try:
        app()
    except OSError as error:  # from help and the like; the commands tell of their own
        print(reason(error), file=sys.stderr)
        sys.exit(2)
    finally:
        _drop_unwritten(sys.stdout)


def _open_streams() -> None:
    """Open something in place of each standard stream that was closed, as the next file would take its number.

    What goes to standard error is lost then, and writing to standard output fails.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (it stays open)
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115 (it stays open)
    # A terminal may lack letters that a text has.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # it is a TextIOWrapper


def _drop_unwritten(stream: TextIO) -> None:
    """Leave nothing for the interpreter to write at its end, where it would fail again, in several lines."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
