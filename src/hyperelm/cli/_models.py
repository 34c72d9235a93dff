"""The commands `hyperelm fit`, `predict`, `info` and `export-onnx`."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

import hyperelm
from hyperelm import BiasOnlyWarning, FrameClassifier, FrameRegressor, algebras, describe, load, to_onnx
from hyperelm.cli._app import app, check_new, clear_errors, examples, printable, write_csv, write_new

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm.save`.")]
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="A CSV or Parquet file, also packed by gzip.")]
Series = Annotated[int, typer.Option(help="Rows follow each other in time; so many predict the next.", metavar="ROWS")]
Horizon = Annotated[int, typer.Option(help="Of a series: predict so many rows ahead instead of one.", metavar="ROWS")]
Algebras = Annotated[list[str] | None, typer.Option(help="An algebra to choose from; repeatable. By default 'auto'.")]
Double = Annotated[bool, typer.Option("--double", help="Inputs and outputs as float64, for columns far from zero.")]
Sep = Annotated[
    str | None, typer.Option(help="What separates columns, if not found: a character or 'tab'.", metavar="C")
]
Decimal = Annotated[str | None, typer.Option(help="The decimal sign, if not found: '.' or ','.", metavar="C")]
Missing = Annotated[
    str | None,
    typer.Option(
        help="Missing values: 'error'; 'drop' leaves out the rows; 'mean' fills and marks them. By default rows "
        "without a target are left out, and inputs are filled: with the mean, or in a series with the last value.",
        metavar="HOW",
    ),
]


@app.command(
    "fit",
    epilog=examples(
        "hyperelm fit houses.csv --target price --save model",
        "hyperelm fit weather.csv --target weather --exclude date --save model",
        "hyperelm fit co2.csv --target co2 --series 52 --save model",
    ),
)
def fit_model(
    data: DataFile,
    target: Annotated[str, typer.Option(help="The columns to predict, with commas.", metavar="COLS")],
    save: Annotated[Path, typer.Option(help="Where the model goes.", metavar="MODEL")],
    inputs: Annotated[
        str | None,
        typer.Option(
            help="The columns to predict from, with commas; by default all others. In a series the past of the targets "
            "is always used, too.",
            metavar="COLS",
        ),
    ] = None,
    exclude: Annotated[str | None, typer.Option(help="Columns to leave out, with commas.", metavar="COLS")] = None,
    classify: Annotated[
        bool | None,
        typer.Option(
            "--classify/--regress",
            help="Whether the target is labels or numbers. By default texts, truth values and few whole numbers are "
            "labels.",
            show_default=False,
        ),
    ] = None,
    series: Series = 0,
    horizon: Horizon = 1,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = None,
    algebra: Algebras = None,
    parameters: Annotated[
        str | None,
        typer.Option(help="Sizes to compare, with commas; by default 16 to 128 quaternion neurons.", metavar="N,N"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random weights.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the model if it is there.")] = False,
) -> None:
    """Choose a network for the columns of a file and save it.

    Say what was done to the columns, what was chosen and why, and whether something simpler does.
    """
    with clear_errors(algebra="--algebra"):
        from hyperelm.cli import _fit
        from hyperelm.cli._task import Options, Task, counts

        _check_save(save, force)
        wanted = Options(target, inputs, exclude, series, horizon, missing, classify, sep, decimal)
        choices = "auto" if algebra in (None, ["auto"]) else [algebras.get(name) for name in algebra or ()]
        sizes = None if parameters is None else counts(parameters, "--parameters")
        say = _to_terminal if sys.stderr.isatty() else _to_nobody
        say(f"Reading {data} ...")
        task = Task.read(str(data), wanted)
        with warnings.catch_warnings():
            warnings.simplefilter("always", BiasOnlyWarning)
            warnings.showwarning = _in_one_line
            fitted = _fit.fit(task, choices, parameters=sizes, seed=seed, verbose=sys.stderr.isatty(), say=say)
        hyperelm.save(fitted.model, save)
        report = printable(_fit.explain(fitted, task), keep="\n")
        typer.echo(f"{report}\n\nSaved in {save}. Use it with: hyperelm predict {save} DATA")
        if fitted.warning:
            typer.echo(fitted.warning, err=True)


@app.command(
    "predict",
    epilog=examples(
        "hyperelm predict model new.csv --keep name --interval 0.9 > predictions.csv",
        "hyperelm predict model weather.csv --probabilities",
        "hyperelm predict model co2.csv --steps 12",
    ),
)
def predict_rows(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `hyperelm fit`.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file with the columns that the model knows.")],
    out: Annotated[Path | None, typer.Option(help="A new file instead of standard output.", metavar="FILE")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns of DATA to put beside the predictions, with commas.", metavar="COLS")
    ] = None,
    steps: Annotated[
        int, typer.Option(help="Of a series: go on so many rows beyond the end of DATA.", min=0, metavar="ROWS")
    ] = 0,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Also those of every label.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(help="Also the ends of an interval that holds the value with this probability.", metavar="P"),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
) -> None:
    """Print predictions as CSV: one row for each row of DATA, or for the row after each window of a series."""
    with clear_errors():
        from hyperelm.cli import _predict

        if out is not None:
            check_new(out, "--out")
        loaded = load(model)
        if not isinstance(loaded, FrameRegressor | FrameClassifier):
            raise ValueError(
                f"MODEL must be a file of `hyperelm fit`, got {str(model)!r}, which holds an {type(loaded).__name__} "
                "that does not know its columns. Use `hyperelm.load` in Python."
            )
        found = _predict.predict(
            loaded, str(data), _predict.Options(keep, steps, probabilities, interval, sep, decimal)
        )
        for remark in found.remarks:
            typer.echo(printable(remark), err=True)
        write_csv(found.rows(), out)


@app.command("info", epilog=examples("hyperelm info model"))
def show_model(model: Model) -> None:
    """Show what a model file holds: the algebra's table, sizes, columns, and how it was trained."""
    with clear_errors():
        typer.echo(describe(model))


@app.command("export-onnx", epilog=examples("hyperelm export-onnx model model.onnx"))
def export_onnx(
    model: Model,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new ONNX file to write.")],
    decoder: Annotated[bool, typer.Option("--decoder", help="Of an auto-encoder, the way from codes to rows.")] = False,
    double: Double = False,
) -> None:
    """Write a model as an ONNX graph, which runs without hyperelm."""
    with clear_errors():
        check_new(file, "FILE")
        graph = to_onnx(load(model), decoder=decoder, dtype="float64" if double else "float32")
        write_new(file, graph.SerializeToString())


def _to_terminal(text: str) -> None:
    typer.echo(text, err=True)


def _to_nobody(_: str) -> None:
    pass


def _in_one_line(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"Warning: {message}", err=True)


def _check_save(path: Path, force: bool) -> None:
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
        if not force:
            raise ValueError(f"--save must name a new file, got {str(path)!r}, which exists. --force overwrites it.")
