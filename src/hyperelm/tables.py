"""From a CSV file to a model that was chosen, compared with what is simpler, and can be used again.

Some rows are held out: one in five, or the last fifth of a series, which is told as the future. On the others
`ELMRegressorCV` chooses by leave-one-out errors. The choice is compared on the rows held out with ridge regression on
the same columns and, for a series, with persistence (the next position is the last one); then it is fitted to all
rows. In a series, `window` consecutive rows predict the targets of the next.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm.datasets import sliding_windows
from hyperelm.elm import ELMRegressorCV
from hyperelm.elm.cv import fit_chosen
from hyperelm.elm.grid import NEURONS, Shape
from hyperelm.elm.table import TableRegressor
from hyperelm.experiments import series
from hyperelm.io import load

Array = NDArray[np.float64]

LEAST_ROWS = 10
_HELD_OUT = 5  # one row in so many
_SEARCH_ROWS = 4000  # of which the search takes as many at most


@dataclass(frozen=True)
class Task:
    """Inputs (n, columns) and targets (n, targets) of a file; `last` are the targets one row before, of a series.

    `remark` says how the first row of the file was taken, if that is not plain.
    """

    X: Array
    y: Array
    columns: list[str]
    targets: list[str]
    window: int
    last: Array | None
    remark: str = ""

    @classmethod
    def read(cls, path: str, target: str, inputs: str | None = None, window: int = 0) -> Task:
        """What the columns called `target` (with commas) are to be predicted from: `inputs`, or all the others.

        With a window, inputs are so many consecutive rows of these columns and of the targets.
        """
        targets = _names(target, "--target")
        chosen = None if inputs is None else _names(inputs, "--inputs")
        if window < 0:
            raise ValueError(f"--series must be the number of rows in a window, at least 1, got {window}.")
        if chosen is not None and not window and set(chosen) & set(targets):
            raise ValueError(f"--inputs must not be targets, got {inputs!r}. For a series give --series.")
        only = None if chosen is None else tuple(dict.fromkeys([*targets, *chosen]))
        try:
            names, values, remark = _columns(path, [*targets, *(chosen or [])], only)
        except series.CellError as error:
            hint = " To leave a column out, name the others with --inputs." if only is None else ""
            raise ValueError(f"{error}{hint}") from None
        at = [names.index(name) for name in _known(targets, names, path)]
        y = values[:, at]
        if not np.ptp(y, axis=0).all():
            still = targets[int(np.argmin(np.ptp(y, axis=0)))]
            raise ValueError(f"--target must name columns that vary, but {still!r} has one value in {path}.")
        # The targets lead, so that those of a window are neighbours and make one number.
        columns = [*(targets if window else []), *(name for name in names if name not in targets)]
        if not columns:
            raise ValueError(
                f"--target must leave columns to predict from. For a series give --series. {path} has none."
            )
        X, last = values[:, [names.index(name) for name in columns]], None
        if window:
            X, y, last = windows(X, window)[:-1], y[window:], y[window - 1 : -1]
        if len(y) < LEAST_ROWS:
            raise ValueError(f"DATA must have at least {LEAST_ROWS + window} rows, got {len(values)} in {path}.")
        return cls(X, y, columns, targets, window, last, remark)

    def held_out(self) -> NDArray[np.bool_]:
        n = np.arange(len(self.y))
        return n >= len(n) - len(n) // _HELD_OUT if self.window else n % _HELD_OUT == _HELD_OUT - 1


@dataclass(frozen=True)
class Result:
    """The model, fitted to all rows, and what led to it."""

    model: TableRegressor
    search: ELMRegressorCV
    errors: dict[str, float]
    held_out: int
    searched: int

    @property
    def better(self) -> list[str]:
        """The baselines that do better."""
        return [name for name, error in self.errors.items() if error < self.errors["this model"]]


def fit(
    task: Task, algebra: Any = "auto", *, parameters: Sequence[int] | None = None, seed: int = 0, verbose: int = 0
) -> Result:
    """Choose a model for `task` and compare it with the baselines.

    Networks over all algebras have nearly the same numbers of `parameters`.
    """
    test = task.held_out()
    rows = np.flatnonzero(~test)
    few = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SEARCH_ROWS)).astype(int)]
    # Three columns (a position, a colour) leave the real part of a number with four components empty.
    packing = "imaginary" if len(task.targets) == 3 and len(task.columns) % 3 == 0 else "full"
    sizes = list(parameters or _sizes(task, packing, len(few)))
    search = ELMRegressorCV(algebra, n_parameters=sizes, packing=packing, random_state=seed, verbose=verbose)
    search.fit(StandardScaler().fit_transform(task.X[few]), StandardScaler().fit_transform(task.y[few]))

    def chosen(at: NDArray[np.intp]) -> TableRegressor:
        # A ridge is a sum over rows, so it grows with them.
        ridge = search.best_ridge_ * len(at) / len(few)
        model = TableRegressor(**search.best_params_ | {"ridge": ridge}, packing=packing, random_state=seed)
        fit_chosen(model, task.X[at], task.y[at])
        return model.name_columns(task.columns, task.targets, task.window)

    spread = task.y[rows].std(axis=0)
    spread = np.where(spread > 0, spread, 1)

    def error(prediction: NDArray[Any]) -> float:
        return float(np.sqrt(np.mean(((prediction - task.y[test]) / spread) ** 2)))

    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 25))).fit(task.X[rows], task.y[rows])
    errors = {"this model": error(chosen(rows).predict(task.X[test]))}
    errors["ridge regression"] = error(ridge.predict(task.X[test]).reshape(-1, len(task.targets)))
    if task.last is not None:
        errors["persistence"] = error(task.last[test])
    return Result(chosen(np.arange(len(task.y))), search, errors, int(test.sum()), len(few))


def _sizes(task: Task, packing: str, rows: int) -> list[int]:
    """The numbers of parameters of networks with 16 to 128 numbers of four components, but not more numbers than rows.

    As many real neurons take their place as have these parameters.
    """
    of_four = 3 if packing == "imaginary" else 4
    inputs, outputs = (-(-len(columns) // of_four) for columns in (task.X[0], task.targets))
    shape = Shape(4, inputs, outputs, bias=True, direct_link=False)
    return [shape.parameters(neurons) for neurons in NEURONS if neurons <= rows] or [shape.parameters(1)]


def explain(result: Result, task: Task) -> str:
    """What was chosen and why, and how it compares, for people."""
    search, results = result.search, result.search.cv_results_
    scores = np.sqrt(-results["mean_test_score"])
    best_of = {
        name: int(min(np.flatnonzero(results["param_algebra"] == name), key=lambda n: scores[n]))
        for name in dict.fromkeys(results["param_algebra"])
    }
    lines = [
        *([task.remark] if task.remark else []),
        f"{len(task.y):,} rows, {len(task.columns)} columns"
        + (f" in windows of {task.window}" if task.window else "")
        + f", {len(task.targets)} target{'s' if len(task.targets) > 1 else ''}.",
        "",
        "Best of each algebra at nearly equal numbers of parameters, by the error of "
        f"{result.searched:,} rows, each left out once (1 is the spread of the targets):",
        f"  {'algebra':16}{'neurons':>8}{'weight scale':>14}{'ridge':>10}{'parameters':>12}{'error':>10}",
    ]
    for name, n in sorted(best_of.items(), key=lambda item: float(scores[item[1]])):
        scale, ridge = results["param_weight_scale"][n], results["param_ridge"][n]
        lines.append(
            f"  {name:16}{results['param_n_hidden'][n]:8}{scale!s:>14}{ridge:10.2g}{results['n_parameters'][n]:12,}"
            f"{scores[n]:10.3g}"
        )
    chosen = search.best_index_
    why = "the smallest error" if scores[chosen] <= scores.min() else "the fewest parameters within 1 % of the best"
    lines += [
        "",
        f"Chosen: {search.best_algebra_.name}, {search.best_n_hidden_} neurons, weight scale"
        f" {search.best_weight_scale_}, ridge {search.best_ridge_:.2g}, error {scores[chosen]:.3g}: {why} of"
        f" {len(scores)} candidates.",
        *_on_size(search),
        "",
        f"Error on {result.held_out:,} rows held out" + (", the last of the series:" if task.window else ":"),
        *(f"  {name:18}{value:10.3g}" for name, value in result.errors.items()),
    ]
    return "\n".join(lines)


def _on_size(search: ELMRegressorCV) -> list[str]:
    """A remark where a search has found its best at the end of what it tried."""
    results, best = search.cv_results_, search.best_index_
    same = results["param_algebra"] == results["param_algebra"][best]
    largest = results["n_parameters"][same].max()
    if results["n_parameters"][best] < largest:
        return []
    return [f"These are the largest networks that were tried; larger ones may do better: --parameters {2 * largest}."]


def predict(model: TableRegressor, path: str) -> tuple[list[str], list[list[float]]]:
    """The names and rows of a table of predictions for a file with the columns of the model.

    Of a series, one for the row after every window: the last is beyond the file. Rows are numbered from 1.
    """
    names, window = model.column_names_.tolist(), int(model.window_[0])
    X = _columns(path, names, names).values
    targets = model.target_names_.tolist()
    if not window:
        return targets, model.predict(X).reshape(len(X), -1).tolist()
    if len(X) < window:
        raise ValueError(f"DATA must have at least {window} rows, a window of the model, got {len(X)} in {path}.")
    predictions = model.predict(windows(X, window)).tolist()
    return ["row", *targets], [[window + 1 + n, *row] for n, row in enumerate(predictions)]


def windows(positions: Array, window: int) -> Array:
    """All runs of `window` rows, as one row each, the last one included."""
    if len(positions) <= window:
        return positions.reshape(1, -1)[: len(positions) == window]
    X, _ = sliding_windows(np.concatenate([positions, positions[:1]]), window)
    return X.reshape(len(X), -1)


def load_table_model(path: str | os.PathLike[str]) -> TableRegressor:
    """The model in a file of `hyperelm fit`."""
    model = load(path)
    if not isinstance(model, TableRegressor):
        raise ValueError(
            f"MODEL must be a file of `hyperelm fit`, got {os.fspath(path)!r}, which holds an {type(model).__name__} "
            "that does not know its columns. Use `hyperelm.load` in Python."
        )
    return model


def check_save(path: Path) -> None:
    """Refuse, before any work, a name under which no model can be saved or under which there is something else."""
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
            raise ValueError(
                f"--save must name a new file or a model, got {str(path)!r}, which is another file."
            ) from None


def check_out(path: Path, option: str) -> None:
    """Refuse to overwrite anything with what can be made again."""
    if path.exists() or path.is_symlink():
        raise ValueError(f"{option} must name a new file, got {str(path)!r}, which exists.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} must name a file in a folder that exists, got {str(path)!r}.")


def counts(text: str, option: str) -> list[int]:
    """Whole numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < len(part) < 10 and int(part) > 0 for part in parts):
        raise ValueError(f"{option} must be whole numbers above 0 with commas between them, got {text!r}.")
    return [int(part) for part in parts]


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{option} must be different names of columns with commas between them, got {text!r}.")
    return names


def _columns(path: str, named: Sequence[str], only: Sequence[str] | None) -> series.Columns:
    found = series.columns(series.content(path, "DATA"), path, "DATA", named, only=only)
    names = found.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path} has {names.count(twice)} columns called {twice!r}. Give them different names.")
    return found


def _known(wanted: Sequence[str], names: list[str], path: str) -> Sequence[str]:
    for name in wanted:
        series.place(name, names, path)
    return wanted
