"""The commands `hyperelm algebras`, `run`, `search`, `report` and `export`."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import hyperelm
from hyperelm import Algebra, algebras, experiments
from hyperelm.cli._app import app, clear_errors, examples, write_csv
from hyperelm.experiments import Store

PROPERTIES = ("commutative", "associative", "alternative", "flexible", "power_associative", "normed", "nondegenerate")

# Options of experiments
Out = Annotated[Path | None, typer.Option(help="Where results go, by default results-NAME.", metavar="DIR")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 takes all cores.")]
Seed = Annotated[int | None, typer.Option(help="The seed that all seeds of runs come from.", min=0)]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, in seconds.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="Change a setting; repeatable.", metavar="KEY=VALUE")]
Images = Annotated[str | None, typer.Option(help="Where CIFAR-10 is; or 'openml' or 'sample'.", metavar="DIR")]
Dask = Annotated[str | None, typer.Option(help="Run on the dask cluster with this scheduler.", metavar="ADDRESS")]
Data = Annotated[
    str | None, typer.Option(help="A CSV or Parquet file; or where CIFAR-10 is, for images.", metavar="PATH")
]
Target = Annotated[str | None, typer.Option(help="The columns of the file to predict, with commas.", metavar="COLUMNS")]
Directory = Annotated[Path, typer.Argument(metavar="DIR")]
Name = Annotated[str | None, typer.Argument(help=escape("A name, 'R[g1,...,gn]' or 'Cl(p,q[,r])'. By default, all."))]


@app.command(
    "algebras", epilog=examples("hyperelm algebras", "hyperelm algebras quaternions", "hyperelm algebras 'R[-1,+1]'")
)
def show_algebras(name: Name = None) -> None:
    """List the catalogue of algebras with their properties, or show one of them."""
    with clear_errors(algebra="NAME"):
        if name is None:
            _print_catalogue()
        else:
            _print_algebra(algebras.get(name))


@app.command(
    "run", epilog=examples("hyperelm run lorenz --quick", "hyperelm run autoencoder --data sample --out results")
)
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
    with clear_errors(resumes=True):
        path = _run(name, out, jobs, dask, seed=seed, quick=quick, changes=changes)
        typer.echo(f"Report: {path}")


@app.command(
    "search",
    epilog=examples(
        "hyperelm search --family clifford --dim 4 --quick", "hyperelm search --data wind.csv --target u,v"
    ),
)
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
    """Rank a family of algebras on a task, or on a file. The same command goes on where it was interrupted."""
    task = task or ("csv" if target is not None else "lorenz")
    options = {"task": task, "family": family, "dim": dim, "data": data, "target": target}
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in options.items() if value is not None]
    with clear_errors(resumes=True):
        path = _run("search", out, jobs, seed=seed, quick=quick, changes=[*given, *(changes or [])])
        typer.echo("\n".join([*experiments.outcome(path.parent), f"Report: {path}"]))


@app.command("report", epilog=examples("hyperelm report results-lorenz"))
def write_report(directory: Directory) -> None:
    """Write the report of the results in DIR: report.html, and the figures as SVG and PNG."""
    with clear_errors():
        typer.echo(str(experiments.write_report(directory)))


@app.command("export", epilog=examples("hyperelm export results-lorenz > runs.csv"))
def export_runs(
    directory: Directory,
    everything: Annotated[bool, typer.Option("--all", help="Also the runs of the other parts.")] = False,
) -> None:
    """Print the runs in DIR as CSV, one row a run."""
    with clear_errors():
        with Store.open(directory) as store:
            rows = store.rows(None if everything else experiments.MAIN)
        hidden = set() if everything else {"part", "variant"}
        fields = [key for key in dict.fromkeys([*Store.KEYS, *chain.from_iterable(rows)]) if key not in hidden]
        write_csv([fields, *([row.get(key) for key in fields] for row in rows)])


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
