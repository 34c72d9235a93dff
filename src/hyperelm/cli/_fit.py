"""`hyperelm fit` and `predict`: a network chosen for a CSV file, compared with simpler models, and used again.

Some rows are held out: one in five, or the last fifth of a series. `ELMRegressorCV` chooses a network on the others by
leave-one-out errors. The choice is compared on the rows held out with ridge regression on the same columns and, for a
series, with persistence (the next position is the last one). Then it is fitted to all rows. In a series, `window`
consecutive rows predict the targets of the next.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMRegressorCV, FrameRegressor, RankDeficiencyWarning
from hyperelm.experiments import read_csv

Array = NDArray[np.float64]

LEAST_ROWS = 10
_HELD_OUT = 5  # one in so many rows is held out
_SEARCH_ROWS = 4000  # the search takes at most so many rows
_NEURONS = (16, 32, 64, 128)


@dataclass(frozen=True)
class Task:
    """Inputs (n, columns) and targets (n, targets) of a file. In a series, `last` are the targets one row before.

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
        """The task to predict the columns `target` (with commas) from `inputs`, or from all other columns.

        With a window, inputs are so many consecutive rows of these columns and of the targets.
        """
        targets = _names(target, "--target")
        chosen = None if inputs is None else _names(inputs, "--inputs")
        if window < 0:
            raise ValueError(f"--series must be the number of rows in a window, at least 1, got {window}.")
        if chosen is not None and not window and set(chosen) & set(targets):
            raise ValueError(f"--inputs must not be targets, got {inputs!r}. For a series give --series.")
        only = None if chosen is None else tuple(dict.fromkeys([*targets, *chosen]))
        hint = " To leave a column out, name the others with --inputs." if only is None else ""
        found = read_csv(path, "DATA", [*targets, *(chosen or [])], only=only, hint=hint)
        found.at(found.names)  # which refuses two columns with one name
        names, values, y = found.names, found.values, found.values[:, found.at(targets)]
        if not np.ptp(y, axis=0).all():
            still = targets[int(np.argmin(np.ptp(y, axis=0)))]
            raise ValueError(f"--target must name columns that vary, but {still!r} has one value in {path}.")
        # The targets come first, so those of a window are neighbours and make one number.
        columns = [*(targets if window else []), *(name for name in names if name not in targets)]
        if not columns:
            others = f"For a series give --series. {path} has none"
            raise ValueError(f"--target must leave columns to predict from. {others}.")
        X, last = values[:, found.at(columns)], None
        if window:
            X, y, last = windows(X, window)[:-1], y[window:], y[window - 1 : -1]
        if len(y) < LEAST_ROWS:
            raise ValueError(f"DATA must have at least {LEAST_ROWS + window} rows, got {len(values)} in {path}.")
        return cls(X, y, columns, targets, window, last, found.remark)

    def held_out(self) -> NDArray[np.bool_]:
        n = np.arange(len(self.y))
        return n >= len(n) - len(n) // _HELD_OUT if self.window else n % _HELD_OUT == _HELD_OUT - 1


@dataclass(frozen=True)
class Fitted:
    """The model, fitted to all rows, the search that chose it, and errors on the rows held out."""

    model: FrameRegressor
    search: ELMRegressorCV
    errors: dict[str, float]
    held_out: int
    searched: int

    @property
    def scores(self) -> Array:
        """The error of every candidate on rows that were left out."""
        return np.asarray(np.sqrt(-self.search.cv_results_["mean_test_score"]))

    @property
    def best_of_each(self) -> list[int]:
        """The indices of the best candidates of each algebra, best first."""
        names, order = self.search.cv_results_["param_algebra"], np.argsort(self.scores, kind="stable").tolist()
        return list({names[n]: n for n in reversed(order)}.values())[::-1]

    @property
    def largest(self) -> int:
        """The number of parameters of the largest network over the chosen algebra."""
        names, sizes = (self.search.cv_results_[key] for key in ("param_algebra", "n_parameters"))
        return int(sizes[names == names[self.search.best_index_]].max())

    @property
    def better(self) -> list[str]:
        """The baselines that do better."""
        return [name for name, error in self.errors.items() if error < self.errors["this model"]]


def fit(
    task: Task, algebra: Any = "auto", *, parameters: Sequence[int] | None = None, seed: int = 0, verbose: int = 0
) -> Fitted:
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

    def chosen(at: NDArray[np.intp]) -> FrameRegressor:
        # A ridge is added to a sum over rows, so it grows with their number.
        ridge = search.best_ridge_ * len(at) / len(few)
        model = FrameRegressor(**search.best_params_ | {"ridge": ridge}, packing=packing, random_state=seed)
        with warnings.catch_warnings():
            # The search has chosen a rank-deficient layer by its errors, so there is nothing to warn of.
            warnings.simplefilter("ignore", RankDeficiencyWarning)
            model.fit(task.X[at], task.y[at])
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
    return Fitted(chosen(np.arange(len(task.y))), search, errors, int(test.sum()), len(few))


def _sizes(task: Task, packing: str, rows: int) -> list[int]:
    """The numbers of parameters of networks with 16 to 128 numbers of four components, at most one for each row."""
    of_four = 3 if packing == "imaginary" else 4
    D, N = (-(-len(columns) // of_four) for columns in (task.X[0], task.targets))
    return [4 * ((D + 1) * L + (L + 1) * N) for L in _NEURONS if rows >= L] or [4 * (D + 1 + 2 * N)]


def explain(fitted: Fitted, task: Task) -> str:
    """What was chosen and why, and how it compares, for people."""
    environment = Environment(loader=PackageLoader("hyperelm.cli", ""), trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("fit.txt.jinja").render(fitted=fitted, task=task).rstrip()


def predict(model: FrameRegressor, path: str) -> list[list[Any]]:
    """The names and the rows of the predictions for a file with the columns of the model.

    Of a series, one for the row after every window: the last is beyond the file. Rows are numbered from 1.
    """
    names, targets, window = model.column_names_.tolist(), model.target_names_.tolist(), int(model.window_[0])
    X = read_csv(path, "DATA", names, only=names).values
    if not window:
        return [targets, *model.predict(X).reshape(len(X), -1).tolist()]
    if len(X) < window:
        raise ValueError(f"DATA must have at least {window} rows, a window of the model, got {len(X)} in {path}.")
    rows = model.predict(windows(X, window)).tolist()
    return [["row", *targets], *([window + 1 + n, *row] for n, row in enumerate(rows))]


def windows(positions: Array, window: int) -> Array:
    """All windows of `window` consecutive rows, each as one row, also the one that ends with the last row."""
    views = np.lib.stride_tricks.sliding_window_view(positions, window, axis=0)
    return views.swapaxes(1, 2).reshape(len(views), -1)


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
