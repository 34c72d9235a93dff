"""The command `hyperelm`, and what its subcommands share: output, and errors in one line."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hyperelm import __version__
from hyperelm.experiments import StoreError

app = typer.Typer(
    name="hyperelm",
    help="Extreme learning machines over any hypercomplex algebra.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hyperelm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def examples(*lines: str) -> str:
    """The end of a help text, with examples of the command."""
    return "\n\n".join([f"Example{'s' if len(lines) > 1 else ''}:", *(f"  {escape(line)}" for line in lines)])


def check_new(path: Path, option: str) -> None:
    """Refuse a name that a file has already. What the command writes can be made again, and that file perhaps not."""
    if path.exists() or path.is_symlink():
        raise ValueError(f"{option} must name a new file, got {str(path)!r}, which exists.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must name a file in a folder that exists, got {str(path)!r}.")


def write_new(path: Path, content: bytes) -> None:
    """Write a new file whole or not at all."""
    with open(path, "xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink()
            raise


def write_csv(rows: Iterable[Sequence[object]], path: Path | None = None) -> None:
    """Write rows to a new file, or the same bytes to standard output, whatever letters a terminal has."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([*map(_cell, row)] for row in rows)
    if path is not None:
        write_new(path, text.getvalue().encode())
    else:
        sys.stdout.buffer.write(text.getvalue().encode())
        sys.stdout.flush()  # a full disk must raise here, where it becomes one line


def _cell(value: object) -> object:
    """A text without control characters. An apostrophe keeps a spreadsheet from taking it as a formula."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    number = re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text.strip(), re.IGNORECASE)
    return f"'{text}" if re.match(r"\s*[=+\-@].*\w", text) and not number else text


def printable(text: str, keep: str = "") -> str:
    """A text from a file without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def clear_errors(*, resumes: bool = False, **options: str) -> Iterator[None]:
    """Print one line instead of a traceback for what a user can mend.

    `options` are the options that arguments of the library come from. `resumes` says that the command can go on where
    it was interrupted.
    """
    again = " The same command goes on from here." if resumes else ""
    try:
        yield
    except BrokenPipeError:  # `head` ends before its input does, which is no error
        raise
    except (ImportError, ValueError, OSError, StoreError) as error:
        typer.echo(printable(" ".join(reason(error, options).split())), err=True)
        raise typer.Exit(2) from None
    except (BrokenExecutor, MemoryError):
        typer.echo(f"A process ended for lack of memory or from outside.{again}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"Interrupted.{again}", err=True)
        raise typer.Exit(130) from None


def reason(error: Exception, options: Mapping[str, str] | None = None) -> str:
    """The message of an error, without the system's number for it, and with an option in place of an argument."""
    option = (options or {}).get(getattr(error, "argument", ""))
    if option is not None:
        return f"{option} {error.reason}"  # type: ignore[attr-defined]  # as an ArgumentError has
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}." if error.filename is None else f"{error.strerror}: {str(error.filename)!r}."
