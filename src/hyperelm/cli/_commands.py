"""The commands `hyperelm algebras`, `run`, `search`, `report`, `export`, `fit`, `predict`, `info` and `export-onnx`."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import hyperelm
from hyperelm import Algebra, FrameRegressor, __version__, algebras, describe, experiments, load, to_onnx
from hyperelm.experiments import Store, StoreError

app = typer.Typer(
    name="hyperelm",
    help="Extreme learning machines over any hypercomplex algebra.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PROPERTIES = ("commutative", "associative", "alternative", "flexible", "power_associative", "normed", "nondegenerate")

# Options of experiments
Out = Annotated[Path | None, typer.Option(help="Where results go, by default results-NAME.", metavar="DIR")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 takes all cores.")]
Seed = Annotated[int | None, typer.Option(help="The seed that all seeds of runs come from.", min=0)]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, in seconds.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="Change a setting; repeatable.", metavar="KEY=VALUE")]
Images = Annotated[str | None, typer.Option(help="Where CIFAR-10 is; or 'openml' or 'sample'.", metavar="DIR")]
Dask = Annotated[str | None, typer.Option(help="Run on the dask cluster with this scheduler.", metavar="ADDRESS")]
Data = Annotated[str | None, typer.Option(help="A CSV file; or where CIFAR-10 is, for images.", metavar="PATH")]
Target = Annotated[str | None, typer.Option(help="Columns of the CSV file to predict.", metavar="COLUMNS")]
Directory = Annotated[Path, typer.Argument(metavar="DIR")]
# Options of models
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm.save`.")]
CsvFile = Annotated[Path, typer.Argument(metavar="DATA", help="A CSV file, with names in its first row or not.")]
Series = Annotated[int, typer.Option(help="Rows follow each other in time; so many predict the next.", metavar="ROWS")]
Algebras = Annotated[list[str] | None, typer.Option(help="An algebra to choose from; repeatable. By default 'auto'.")]
Double = Annotated[bool, typer.Option("--double", help="Inputs and outputs as float64, for columns far from zero.")]
Name = Annotated[str | None, typer.Argument(help="A name, 'R[g1,...,gn]' or 'Cl(p,q[,r])'. By default, all.")]


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


@app.command("algebras")
def show_algebras(name: Name = None) -> None:
    """List the catalogue of algebras with their properties, or show one of them."""
    with _clear_errors(algebra="NAME"):
        if name is None:
            _print_catalogue()
        else:
            _print_algebra(algebras.get(name))


@app.command("run")
def run_experiment(
    name: Annotated[str, typer.Argument(help=f"The experiment: {', '.join(experiments.names())}.")],
    out: Out = None,
    jobs: Jobs = -1,
    seed: Seed = None,
    quick: Quick = False,
    changes: Changes = None,
    data: Images = None,
    dask: Dask = None,
) -> None:
    """Run an experiment of the paper. The same command goes on where it was interrupted."""
    changes = [*(changes or []), *([f"data={data}"] if data is not None else [])]
    with _clear_errors(resumes=True):
        path = _run(name, out, jobs, dask, seed=seed, quick=quick, changes=changes)
        typer.echo(f"Report: {path}")


@app.command("search")
def search_algebras(
    task: Annotated[str | None, typer.Option(help="lorenz, images, hidden or csv.")] = None,
    family: Annotated[str, typer.Option(help="signs, cayley-dickson or clifford.")] = "signs",
    dim: Annotated[int, typer.Option(help="The dimension of the algebras.")] = 4,
    data: Data = None,
    target: Target = None,
    out: Out = None,
    jobs: Jobs = -1,
    seed: Seed = None,
    quick: Quick = False,
    changes: Changes = None,
) -> None:
    """Rank a family of algebras on a task, or on a CSV file. The same command goes on where it was interrupted."""
    task = task or ("csv" if target is not None else "lorenz")
    options = {"task": task, "family": family, "dim": dim, "data": data, "target": target}
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in options.items() if value is not None]
    with _clear_errors(resumes=True):
        path = _run("search", out, jobs, seed=seed, quick=quick, changes=[*given, *(changes or [])])
        typer.echo("\n".join([*experiments.outcome(path.parent), f"Report: {path}"]))


@app.command("report")
def write_report(directory: Directory) -> None:
    """Write the report of the results in DIR: report.html, and the figures as SVG and PNG."""
    with _clear_errors():
        typer.echo(str(experiments.write_report(directory)))


@app.command("export")
def export_runs(
    directory: Directory,
    everything: Annotated[bool, typer.Option("--all", help="Also the runs of the other parts.")] = False,
) -> None:
    """Print the runs in DIR as CSV, one row a run."""
    with _clear_errors():
        with Store.open(directory) as store:
            rows = store.rows(None if everything else experiments.MAIN)
        hidden = set() if everything else {"part", "variant"}
        fields = [key for key in dict.fromkeys([*Store.KEYS, *chain.from_iterable(rows)]) if key not in hidden]
        _write_csv([fields, *([row.get(key) for key in fields] for row in rows)])


@app.command("fit")
def fit_model(
    data: CsvFile,
    target: Annotated[str, typer.Option(help="The columns to predict, with commas.", metavar="COLS")],
    save: Annotated[Path, typer.Option(help="Where the model goes.", metavar="MODEL")],
    inputs: Annotated[str | None, typer.Option(help="The columns to predict from; by default all others.")] = None,
    series: Series = 0,
    algebra: Algebras = None,
    parameters: Annotated[
        str | None,
        typer.Option(help="Sizes to compare, with commas; by default 16 to 128 quaternion neurons.", metavar="N,N"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random weights.", min=0)] = 0,
) -> None:
    """Choose a network for a CSV file and save it. Say what was chosen and why, and whether something simpler does."""
    with _clear_errors(algebra="--algebra"):
        from hyperelm.cli import _fit

        _check_save(save)
        task = _fit.Task.read(str(data), target, inputs, series)
        choices = "auto" if algebra in (None, ["auto"]) else [algebras.get(name) for name in algebra or ()]
        sizes = None if parameters is None else _fit.counts(parameters, "--parameters")
        fitted = _fit.fit(task, choices, parameters=sizes, seed=seed, verbose=sys.stderr.isatty())
        hyperelm.save(fitted.model, save)
        typer.echo(f"{_fit.explain(fitted, task)}\n\nSaved in {save}. Use it with: hyperelm predict {save} DATA")
        if fitted.better:
            better = " and ".join(fitted.better)
            typer.echo(f"Warning: {better} is simpler and does no worse on the rows held out. Use that.", err=True)


@app.command("predict")
def predict_rows(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm fit`.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A CSV file with the columns that the model knows.")],
    out: Annotated[Path | None, typer.Option(help="A new file instead of standard output.", metavar="FILE")] = None,
) -> None:
    """Print predictions as CSV: one row for each row of DATA, or for the row after each window of a series."""
    with _clear_errors():
        from hyperelm.cli import _fit

        if out is not None:
            _check_new(out, "--out")
        loaded = load(model)
        if not isinstance(loaded, FrameRegressor):
            raise ValueError(
                f"MODEL must be a file of `hyperelm fit`, got {str(model)!r}, which holds an {type(loaded).__name__} "
                "that does not know its columns. Use `hyperelm.load` in Python."
            )
        _write_csv(_fit.predict(loaded, str(data)), out)


@app.command("info")
def show_model(model: Model) -> None:
    """Show what a model file holds: the algebra's table, sizes, and how it was trained."""
    with _clear_errors():
        typer.echo(describe(model))


@app.command("export-onnx")
def export_onnx(
    model: Model,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new ONNX file to write.")],
    decoder: Annotated[bool, typer.Option("--decoder", help="Of an auto-encoder, the way from codes to rows.")] = False,
    double: Double = False,
) -> None:
    """Write a model as an ONNX graph, which runs without hyperelm."""
    with _clear_errors():
        _check_new(file, "FILE")
        graph = to_onnx(load(model), decoder=decoder, dtype="float64" if double else "float32")
        _write_new(file, graph.SerializeToString())


def _check_save(path: Path) -> None:
    """Refuse, before any work, a name under which no model can be saved or which another file has."""
    folder = path.parent.resolve()
    if path.is_dir() or not folder.is_dir():
        what = "which is a folder" if path.is_dir() else f"but there is no folder {str(folder)!r}"
        raise ValueError(f"--save must name a file, got {str(path)!r}, {what}.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ValueError(f"--save must name a file that can be written, got {str(path)!r}.")
    if path.exists():
        try:
            load(path)
        except ValueError:
            found = f"got {str(path)!r}, which is another file"
            raise ValueError(f"--save must name a new file or a model, {found}.") from None


def _check_new(path: Path, option: str) -> None:
    """Refuse a name that a file has already. What the command writes can be made again, and that file perhaps not."""
    if path.exists() or path.is_symlink():
        raise ValueError(f"{option} must name a new file, got {str(path)!r}, which exists.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must name a file in a folder that exists, got {str(path)!r}.")


def _write_new(path: Path, content: bytes) -> None:
    """Write a new file whole or not at all."""
    with open(path, "xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink()
            raise


def _write_csv(rows: Iterable[Sequence[object]], path: Path | None = None) -> None:
    """Write rows to a new file, or the same bytes to standard output, whatever letters a terminal has."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([*map(_cell, row)] for row in rows)
    if path is not None:
        _write_new(path, text.getvalue().encode())
    else:
        sys.stdout.buffer.write(text.getvalue().encode())
        sys.stdout.flush()  # a full disk must raise here, where it becomes one line


def _cell(value: object) -> object:
    """A text without control characters. An apostrophe keeps a spreadsheet from taking it as a formula."""
    if not isinstance(value, str):
        return value
    text = _printable(value)
    number = re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text.strip(), re.IGNORECASE)
    return f"'{text}" if re.match(r"\s*[=+\-@].*\w", text) and not number else text


def _printable(text: str) -> str:
    """A text from a file without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _run(name: str, out: Path | None, jobs: int, dask: str | None = None, **options: Any) -> Path:
    """Do an experiment with the `options` of `experiments.load`, and write its report."""
    if jobs == 0 or jobs < -1:
        raise ValueError(f"--jobs must be -1 or at least 1, got {jobs}.")
    directory = out or Path(f"results-{name}")
    experiment = experiments.load(name, **options)
    cluster = nullcontext() if dask is None else hyperelm.dask.cluster(dask)
    with experiments.Watch(experiment) as watch, cluster:
        experiments.run(experiment, directory, jobs=jobs, watch=watch)
    return experiments.write_report(directory)


@contextmanager
def _clear_errors(*, resumes: bool = False, **options: str) -> Iterator[None]:
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
        typer.echo(_printable(" ".join(reason(error, options).split())), err=True)
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


def _print_catalogue() -> None:
    grid = Table(title="Algebras", header_style="bold", pad_edge=False)
    grid.add_column("name", style="bold", no_wrap=True)
    grid.add_column("dim", justify="right")
    for column in ("commut.", "assoc.", "altern.", "normed"):
        grid.add_column(column, justify="center")
    grid.add_column("structure")
    for name in algebras.names():
        algebra = algebras.get(name)
        marks = (algebra.is_commutative, algebra.is_associative, algebra.is_alternative, algebra.is_normed)
        grid.add_row(name, str(algebra.dim), *("yes" if mark else "-" for mark in marks), algebra.structure)
    console = Console()
    if not console.is_terminal:
        console.width = 120  # wide enough for all columns
    console.print(grid)
    typer.echo("Also 'R[g1,...,gn]' (Cayley-Dickson) and 'Cl(p,q)' or 'Cl(p,q,r)' (Clifford).")
    typer.echo("Show one with: hyperelm algebras NAME")


def _print_algebra(algebra: Algebra) -> None:
    facts = {"structure": algebra.structure, "blocks": algebra.block_structure}
    facts |= {p.replace("_", "-"): "yes" if getattr(algebra, f"is_{p}") else "no" for p in PROPERTIES}
    facts["identity"] = "yes" if algebra.has_identity else "no"
    width = max(map(len, facts))
    typer.echo("\n".join([str(algebra), "", *(f"{label:{width}}  {value}" for label, value in facts.items())]))
