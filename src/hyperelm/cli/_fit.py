"""`hyperelm fit`: a network chosen for a file, and compared with simpler models.

Some rows are held out: one in five, or the last fifth of a series. `ELMRegressorCV` or `ELMClassifierCV` chooses a
network on the others by rows left out one by one. The choice is compared on the rows held out with ridge regression on
the same columns and, for a series, with persistence (the next position is the last one); for labels, with logistic
regression and the most frequent label. Then it is fitted to all rows, and `_advice.py` says what else to try.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import (
    BiasOnlyWarning,
    ELMClassifierCV,
    ELMRegressorCV,
    FrameClassifier,
    FrameRegressor,
    RankDeficiencyWarning,
)
from hyperelm.cli._advice import Situation, advise
from hyperelm.cli._task import Task, listed

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Say = Callable[[str], None]

_SEARCH_ROWS = 4000  # the search takes at most so many rows
_NEURONS = (16, 32, 64, 128)
MINE = "this model"


@dataclass(frozen=True)
class Fitted:
    """The model, fitted to all rows, the search that chose it, and what every model loses on each row held out: the
    mean squared error in units of the spread of the targets, or 1 for a wrong label.
    """

    model: FrameRegressor | FrameClassifier
    search: ELMRegressorCV | ELMClassifierCV
    losses: dict[str, Array]
    searched: int

    @property
    def labels(self) -> bool:
        return isinstance(self.model, FrameClassifier)

    @property
    def held_out(self) -> int:
        return len(self.losses[MINE])

    @property
    def compared(self) -> dict[str, float]:
        """The root mean square error of every model, or the share of labels that are right."""
        means = {name: float(np.mean(loss)) for name, loss in self.losses.items()}
        return {name: 1 - mean if self.labels else mean**0.5 for name, mean in means.items()}

    @property
    def scores(self) -> Array:
        """The error of every candidate on rows that were left out: its root mean square, or the log loss."""
        losses = -np.asarray(self.search.cv_results_["mean_test_score"])
        return losses if self.labels else np.asarray(np.sqrt(losses))

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which candidates were scored on all rows and draws. The others were left out early."""
        draws = [score for name, score in self.search.cv_results_.items() if re.fullmatch(r"draw\d+_test_score", name)]
        return np.asarray(~np.isnan(np.stack(draws)).any(axis=0))

    @property
    def best_of_each(self) -> list[int]:
        """The indices of the best candidates of each algebra, best first, and those that were left out early last."""
        names, order = self.search.cv_results_["param_algebra"], np.lexsort((self.scores, ~self.complete)).tolist()
        best: dict[str, int] = {}
        for n in order:
            best.setdefault(names[n], n)
        return [n for n in best.values() if np.isfinite(self.scores[n])]

    @property
    def left_first(self) -> list[str]:
        """The algebras that no candidate was scored of on all rows."""
        names = self.search.cv_results_["param_algebra"]
        return [name for name in dict.fromkeys(names) if not np.isfinite(self.scores[names == name]).any()]

    @property
    def largest(self) -> int:
        """The number of parameters of the largest network over the chosen algebra."""
        names, sizes = (self.search.cv_results_[key] for key in ("param_algebra", "n_parameters"))
        return int(sizes[names == names[self.search.best_index_]].max())

    @property
    def better(self) -> list[str]:
        """The baselines that do better."""
        return [name for name, loss in self.losses.items() if np.mean(loss) < np.mean(self.losses[MINE])]

    @property
    def level(self) -> list[str]:
        """The baselines that do no better, but are behind by at most two standard errors of the mean difference."""
        behind = {name: loss - self.losses[MINE] for name, loss in self.losses.items() if name != MINE}
        return [name for name, more in behind.items() if 0 <= np.mean(more) <= 2 * np.std(more) / len(more) ** 0.5]

    @property
    def warning(self) -> str:
        """A sentence for those who should use something simpler; empty for others."""
        if not self.better:
            return ""
        verbs = "are simpler and do" if len(self.better) > 1 else "is simpler and does"
        use = "one of them" if len(self.better) > 1 else "that"
        ahead = (self.losses[MINE] - self.losses[name] for name in self.better)
        sure = any(np.mean(more) > 2 * np.std(more) / len(more) ** 0.5 for more in ahead)
        doubt = "" if sure else ", though that may be chance"
        return f"Warning: {listed(self.better)} {verbs} better on the rows held out{doubt}. Use {use}."


def fit(
    task: Task,
    algebra: Any = "auto",
    *,
    parameters: Sequence[int] | None = None,
    seed: int = 0,
    verbose: int = 0,
    say: Say = lambda _: None,
) -> Fitted:
    """Choose a model for `task` and compare it with the baselines.

    Networks over all algebras have nearly the same numbers of `parameters`. `say` is told what is being done.
    """
    test = task.held_out()
    rows = np.flatnonzero(~test)
    few = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SEARCH_ROWS)).astype(int)]
    # Three columns (a position, a colour) leave the real part of a number with four components empty.
    imaginary = not task.labels and len(task.targets) == 3 and len(task.columns) % 3 == 0
    packing = "imaginary" if imaginary else "full"
    sizes = list(parameters or _sizes(task, packing, len(few)))
    say(f"Choosing a network by {len(few):,} rows, each left out once ...")
    searches = ELMClassifierCV if task.labels else ELMRegressorCV
    search = searches(algebra, n_parameters=sizes, packing=packing, random_state=seed, verbose=verbose)
    y = task.y[few] if task.labels else StandardScaler().fit_transform(task.y[few])
    search.fit(StandardScaler().fit_transform(task.X[few]), y)

    def chosen(at: Rows) -> FrameRegressor | FrameClassifier:
        # The ridge that is best for so many rows is chosen again.
        models = FrameClassifier if task.labels else FrameRegressor
        model = models(**search.best_params_ | {"ridge": "loo"}, packing=packing, random_state=seed)
        with warnings.catch_warnings():
            # The search has chosen a rank-deficient layer by its errors, so there is nothing to warn of, and it has
            # warned where the mean does as well.
            warnings.simplefilter("ignore", RankDeficiencyWarning)
            warnings.simplefilter("ignore", BiasOnlyWarning)
            model.fit(task.X[at], task.y[at])
        return model.name_columns(task.columns, task.targets, task.window, horizon=task.horizon, plan=task.plan)

    say("Comparing it with simpler models on the rows held out ...")
    losses = (_mistakes if task.labels else _errors)(task, chosen(rows), rows, np.flatnonzero(test))
    say("Fitting it to all rows ...")
    return Fitted(chosen(np.arange(len(task.y))), search, losses, len(few))


def _errors(task: Task, model: Any, rows: Rows, test: Rows) -> dict[str, Array]:
    """Mean squared errors of the rows held out, in units of the spread of the targets."""
    spread = task.y[rows].std(axis=0)
    spread = np.where(spread > 0, spread, 1)

    def error(prediction: NDArray[Any]) -> Array:
        return np.asarray(np.mean(((prediction - task.y[test]) / spread) ** 2, axis=1))

    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 25))).fit(task.X[rows], task.y[rows])
    errors = {MINE: error(model.predict(task.X[test]).reshape(len(test), -1))}
    errors["ridge regression"] = error(ridge.predict(task.X[test]).reshape(len(test), -1))
    if task.last is not None:
        errors["persistence"] = error(task.last[test])
    return errors


def _mistakes(task: Task, model: Any, rows: Rows, test: Rows) -> dict[str, Array]:
    """1 for each row held out whose label is wrong, 0 for the others."""
    labels, counts = np.unique(task.y[rows], return_counts=True)
    X, y, folds = task.X[rows], task.y[rows], int(min(5, counts.min()))
    logistic: Any = LogisticRegression(max_iter=1000)
    if folds > 1:
        logistic = GridSearchCV(logistic, {"C": np.logspace(-2, 2, 5)}, cv=folds)
    with warnings.catch_warnings():
        # It is near enough for a comparison, and few rows of a label are no reason to stop.
        warnings.simplefilter("ignore", UserWarning)
        simple = make_pipeline(StandardScaler(), logistic).fit(X, y)
    predicted = {
        MINE: model.predict(task.X[test]),
        "logistic regression": simple.predict(task.X[test]),
        "the most frequent label": labels[np.argmax(counts)],
    }
    return {name: np.asarray(made != task.y[test], dtype=float) for name, made in predicted.items()}


def _sizes(task: Task, packing: str, rows: int) -> list[int]:
    """The numbers of parameters of networks with 16 to 128 numbers of four components, at most one for each row."""
    of_four = 3 if packing == "imaginary" else 4
    D = -(-task.X.shape[1] // of_four)
    N = len(np.unique(task.y)) if task.labels else -(-len(task.targets) // of_four)
    return [4 * ((D + 1) * L + (L + 1) * N) for L in _NEURONS if rows >= L] or [4 * (D + 1 + 2 * N)]


def situation(fitted: Fitted, task: Task) -> Situation:
    """What the advice depends on. Targets held out go beyond those before if one in four is outside their range."""
    test = task.held_out()
    beyond = False
    if task.window:
        before, after = task.y[~test], task.y[test]
        beyond = bool(np.mean((after < before.min(axis=0)) | (after > before.max(axis=0)), axis=0).max() > 0.25)
    return Situation(
        kind="labels" if task.labels else "series" if task.window else "numbers",
        rows=len(task.y),
        columns=task.X.shape[1],
        targets=len(task.targets),
        level=fitted.level,
        beaten=bool(fitted.better),
        beyond=beyond,
        ordered="" if task.window else _order(task),
    )


def _order(task: Task) -> str:
    """The first input that only rises or only falls from row to row, with three values or more; empty for none."""
    steps = np.diff(task.X, axis=0)
    is_ordered = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    at = np.flatnonzero(is_ordered & (np.count_nonzero(steps, axis=0) > 1))
    return task.columns[at[0]] if len(at) else ""


def explain(fitted: Fitted, task: Task) -> str:
    """What was chosen and why, and how it compares, for people."""
    environment = Environment(loader=PackageLoader("hyperelm.cli", ""), trim_blocks=True, lstrip_blocks=True)
    environment.filters["counted"] = lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}"
    advice = advise(situation(fitted, task))
    return environment.get_template("fit.txt.jinja").render(fitted=fitted, task=task, advice=advice).rstrip()
