"""The command line: `hyperelm algebras`, `run`, `search`, `report`, `export`, `fit`, `predict`, `info`, ..."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from hyperelm import __version__, algebras, experiments, io, load, to_onnx
from hyperelm._files import printable, write_whole
from hyperelm.algebra import Algebra
from hyperelm.decomposition import decompose
from hyperelm.experiments import Store, StoreError
from hyperelm.experiments.store import KEYS

app = typer.Typer(
    name="hyperelm",
    help="Extreme learning machines over any hypercomplex algebra.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PROPERTIES = (
    "commutative",
    "associative",
    "alternative",
    "flexible",
    "power_associative",
    "normed",
    "nondegenerate",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hyperelm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


@app.command("algebras")
def show_algebras(
    name: Annotated[
        str | None,
        typer.Argument(help="One algebra: a name, 'R[g1,...,gn]' or 'Cl(p,q[,r])'. Without it, the catalogue."),
    ] = None,
) -> None:
    """List the catalogue of algebras with their properties, or show one of them."""
    with _clear_errors():
        if name is None:
            _print_catalogue()
        else:
            _print_algebra(algebras.get(name))


@app.command("run")
def run_experiment(
    name: Annotated[str, typer.Argument(help=f"The experiment: {', '.join(experiments.names())}.")],
    out: Annotated[Path | None, typer.Option(help="Where results go, by default results-NAME.", metavar="DIR")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = -1,
    seed: Annotated[int | None, typer.Option(help="The seed that all seeds of runs come from.", min=0)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in seconds.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting; may be given again.", metavar="KEY=VALUE")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Where CIFAR-10 is, for the auto-encoder; or 'openml' or 'sample'.", metavar="DIR"),
    ] = None,
    dask: Annotated[
        str | None, typer.Option(help="Run on the dask cluster with this scheduler.", metavar="ADDRESS")
    ] = None,
) -> None:
    """Run an experiment of the paper. The same command goes on where it was interrupted."""
    with _clear_errors(algebra="--set models", resumes=True):
        changes = [*(changes or []), *([f"data={data}"] if data is not None else [])]
        directory = out or Path(f"results-{name}")
        path = _run(name, directory, jobs=jobs, seed=seed, quick=quick, changes=changes, dask=dask)
        typer.echo(f"Report: {path}")


@app.command("search")
def search_algebras(
    task: Annotated[str | None, typer.Option(help="lorenz, images, hidden or csv.")] = None,
    family: Annotated[str, typer.Option(help="signs, cayley-dickson or clifford.")] = "signs",
    dim: Annotated[int, typer.Option(help="The dimension of the algebras.")] = 4,
    data: Annotated[
        str | None, typer.Option(help="A CSV file; or where CIFAR-10 is, for the task images.", metavar="PATH")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Columns of the CSV file that the others shall predict.", metavar="COLUMNS")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where results go, by default results-search.", metavar="DIR")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = -1,
    seed: Annotated[int | None, typer.Option(help="The seed that all seeds of runs come from.", min=0)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in seconds.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting; may be given again.", metavar="KEY=VALUE")
    ] = None,
) -> None:
    """Rank a family of algebras on a task, or on a CSV file. The same command goes on where it was interrupted."""
    task = task or ("csv" if target is not None else "lorenz")
    options = {"task": task, "family": family, "dim": dim, "data": data, "target": target}
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in options.items() if value is not None]
    with _clear_errors(algebra="--set hidden", resumes=True):
        from hyperelm.experiments import search_results

        directory = out or Path("results-search")
        path = _run("search", directory, jobs=jobs, seed=seed, quick=quick, changes=[*given, *(changes or [])])
        for line in search_results.outcome(directory):
            typer.echo(line)
        typer.echo(f"Report: {path}")


@app.command("report")
def write_report(directory: Annotated[Path, typer.Argument(metavar="DIR")]) -> None:
    """Write the report of the results in DIR: report.html, and the figures as SVG and PNG."""
    with _clear_errors():
        from hyperelm.experiments import report

        typer.echo(str(report.write(directory)))


@app.command("export")
def export_runs(
    directory: Annotated[Path, typer.Argument(metavar="DIR")],
    everything: Annotated[bool, typer.Option("--all", help="Also the runs of the other tables.")] = False,
) -> None:
    """Print the runs in DIR as CSV, one row a run."""
    with _clear_errors():
        with Store.open(directory) as store:
            rows = store.rows(None if everything else experiments.MAIN)
        hidden = set() if everything else {"part", "variant"}
        fields = [key for key in dict.fromkeys([*KEYS, *chain.from_iterable(rows)]) if key not in hidden]
        _print_csv([fields, *([row.get(key) for key in fields] for row in rows)])


@app.command("fit")
def fit_model(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A CSV file, with names in its first row or without; or a pipe.")
    ],
    target: Annotated[str, typer.Option(help="The columns to predict, with commas.", metavar="COLS")],
    save: Annotated[Path, typer.Option(help="Where the model goes.", metavar="MODEL")],
    inputs: Annotated[str | None, typer.Option(help="The columns to predict from; by default all others.")] = None,
    series: Annotated[
        int, typer.Option(help="Rows follow each other in time; so many predict the next.", metavar="ROWS")
    ] = 0,
    algebra: Annotated[
        list[str] | None, typer.Option(help="An algebra to choose from; may be given again. By default 'auto'.")
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            help="The numbers of parameters that networks of all algebras are compared at, with commas. By default "
            "those of 16 to 128 quaternion neurons.",
            metavar="N,N",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random weights.", min=0)] = 0,
) -> None:
    """Choose a network for a table and save it. Says what was chosen and why, and whether something simpler does."""
    with _clear_errors(algebra="--algebra"):
        from hyperelm import tables

        tables.check_save(save)
        task = tables.Task.read(str(data), target, inputs, series)
        choices = "auto" if algebra in (None, ["auto"]) else [algebras.get(name) for name in algebra or ()]
        sizes = None if parameters is None else tables.counts(parameters, "--parameters")
        result = tables.fit(task, choices, parameters=sizes, seed=seed, verbose=sys.stderr.isatty())
        io.save(result.model, save)
        typer.echo(f"{tables.explain(result, task)}\n\nSaved in {save}. Use it with: hyperelm predict {save} DATA")
        if result.better:
            typer.echo(
                f"Warning: {' and '.join(result.better)} is simpler and does no worse on the rows held out. Use that.",
                err=True,
            )


@app.command("predict")
def predict_rows(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm fit`.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A CSV file with the columns that the model knows.")],
    out: Annotated[Path | None, typer.Option(help="A new file instead of standard output.", metavar="FILE")] = None,
) -> None:
    """Print predictions as CSV: one row for each row of DATA, or for the row after each window of a series."""
    with _clear_errors():
        from hyperelm import tables

        if out is not None:
            tables.check_out(out, "--out")
        names, rows = tables.predict(tables.load_table_model(model), str(data))
        if out is not None:
            write_whole(out, _csv([names, *rows]))
        else:
            _print_csv([names, *rows])


@app.command("info")
def show_model(model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm.save`.")]) -> None:
    """Show what a model file holds: the algebra's table, sizes, and how it was trained."""
    with _clear_errors():
        typer.echo(io.describe(model))


@app.command("export-onnx")
def export_onnx(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm.save`.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new ONNX file to write.")],
    decoder: Annotated[bool, typer.Option("--decoder", help="Of an auto-encoder, the way from codes to rows.")] = False,
    double: Annotated[
        bool, typer.Option("--double", help="Inputs and outputs as float64, for columns far from zero.")
    ] = False,
) -> None:
    """Write a model as an ONNX graph, which runs without hyperelm."""
    with _clear_errors():
        from hyperelm import tables

        tables.check_out(file, "FILE")
        write_whole(
            file, to_onnx(load(model), decoder=decoder, dtype="float64" if double else "float32").SerializeToString()
        )


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as a CSV file has them."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([*map(_cell, row)] for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> object:
    """A text that neither steers a terminal nor is a formula to a spreadsheet, which an apostrophe prevents."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if re.match(r"\s*[=+\-@].*\w", text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _print_csv(rows: Iterable[Sequence[object]]) -> None:
    """The same bytes as a file, whatever letters a terminal has."""
    sys.stdout.buffer.write(_csv(rows))
    sys.stdout.flush()  # here a full disk is still an error with one line


def _run(
    name: str, directory: Path, *, jobs: int, seed: int | None, quick: bool, changes: list[str], dask: str | None = None
) -> Path:
    """Do an experiment, and write its report."""
    from hyperelm.experiments import progress, report

    if jobs == 0 or jobs < -1:
        raise ValueError(f"--jobs must be -1 or at least 1, got {jobs}.")
    experiment = experiments.load(name, quick=quick, seed=seed, changes=changes)
    with progress.watcher(experiment) as watch, _cluster(dask):
        experiments.run(experiment, directory, jobs=jobs, watch=watch)
    return report.write(directory)


@contextmanager
def _clear_errors(algebra: str = "NAME", *, resumes: bool = False) -> Iterator[None]:
    """One line instead of a traceback for what a user can mend.

    `algebra` is where a wrong one was given, `resumes` says that the command can go on where it was interrupted.
    """
    again = " The same command goes on from here." if resumes else ""
    try:
        yield
    except BrokenPipeError:  # `hyperelm export DIR | head` is no error
        raise
    except (ValueError, OSError, StoreError) as error:
        line = " ".join(reason(error).replace("`algebra`", algebra).split())
        typer.echo(printable(line), err=True)
        raise typer.Exit(2) from None
    except (BrokenExecutor, MemoryError):
        typer.echo(f"A process ended for lack of memory or from outside.{again}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"Interrupted.{again}", err=True)
        raise typer.Exit(130) from None


def reason(error: Exception) -> str:
    """What an error says, without the number that the system has for it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}." if error.filename is None else f"{error.strerror}: {str(error.filename)!r}."


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """All parallel work goes to a dask cluster, if there is one."""
    if address is None:
        yield
        return
    from hyperelm import dask

    with dask.cluster(address):
        yield


def _print_catalogue() -> None:
    table = Table(title="Algebras", header_style="bold", pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("dim", justify="right")
    for column in ("commut.", "assoc.", "altern.", "normed"):
        table.add_column(column, justify="center")
    table.add_column("structure")
    for name in algebras.names():
        algebra = algebras.get(name)
        marks = (algebra.is_commutative, algebra.is_associative, algebra.is_alternative, algebra.is_normed)
        table.add_row(name, str(algebra.dim), *("yes" if mark else "-" for mark in marks), algebra.structure)
    _console().print(table)
    typer.echo("Also 'R[g1,...,gn]' (Cayley-Dickson) and 'Cl(p,q)' or 'Cl(p,q,r)' (Clifford).")
    typer.echo("Show one with: hyperelm algebras NAME")


def _print_algebra(algebra: Algebra) -> None:
    typer.echo(str(algebra))
    typer.echo("")
    facts = {"structure": algebra.structure, "blocks": _describe_blocks(algebra)}
    facts |= {p.replace("_", "-"): "yes" if getattr(algebra, f"is_{p}") else "no" for p in PROPERTIES}
    facts["identity"] = "yes" if algebra.has_identity else "no"
    width = max(map(len, facts))
    for label, value in facts.items():
        typer.echo(f"{label:{width}}  {value}")


def _describe_blocks(algebra: Algebra) -> str:
    return ", ".join(
        f"{block.size} x {block.size} {'complex' if block.is_complex else 'real'}"
        + (f" in {block.copies} copies" if block.copies > 1 else "")
        for block in decompose(algebra)
    )


def _console() -> Console:
    """As wide as the terminal; wide enough for the whole table where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=120)
