"""The command line: `hyperelm algebras [NAME]`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from hyperelm import __version__, algebras
from hyperelm.algebra import Algebra
from hyperelm.decomposition import decompose

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
    if name is None:
        _print_catalogue()
        return
    try:
        algebra = algebras.get(name)
    except ValueError as error:
        typer.echo(str(error).replace("`algebra`", "NAME"), err=True)
        raise typer.Exit(2) from None
    _print_algebra(algebra)


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
        table.add_row(name, str(algebra.dim), *("yes" if mark else "·" for mark in marks), algebra.structure)
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
