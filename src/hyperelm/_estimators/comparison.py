"""Which of several models is better, by repeated cross-validation and a test that knows that folds share rows.

All models are scored on the same k folds, drawn r times, which gives J = r k scores of each. Take the differences
x_1, …, x_J of the scores of two models. They are not independent, because training parts overlap. A plain t-test would
find differences where there are none. Nadeau and Bengio (2003) correct the variance of the mean by the sizes of the
parts:

    t = mean(x) / sqrt((1/J + n_test/n_train) var(x)),        with J - 1 degrees of freedom.

All models are compared with one of them, the reference, which is named before anything is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit
from sklearn.base import is_classifier
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, cross_validate
from sklearn.utils import indexable

from hyperelm._validation import check_choice

Array = NDArray[np.float64]

_LEVEL = 0.95


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    scores : dict of arrays of shape (splits,)
        The scores of every model on the test parts, in the same order; more is better.
    reference : str
        The model that the others are compared with.
    ratio : float
        The mean of n_test/n_train over the splits.
    """

    scores: dict[str, Array]
    reference: str
    ratio: float

    def test(self, model: str, other: str | None = None) -> dict[str, float]:
        """The difference of two models' mean scores, with the ends of its 95 % interval, t and p (two-sided).

        `other` is the reference by default.
        """
        other = self.reference if other is None else other
        for name in (model, other):
            if name not in self.scores:
                names = ", ".join(map(repr, self.scores))
                raise ValueError(f"`model` and `other` must be among {names}, got {name!r}.")
        difference = self.scores[model] - self.scores[other]
        J = len(difference)
        mean = float(difference.mean())
        error = float(np.sqrt((1 / J + self.ratio) * difference.var(ddof=1)))
        # Scores without any spread differ for certain, or not at all.
        t = mean / error if error > 0 else float(np.sign(mean) * np.inf) if mean else 0.0
        reach = float(stdtrit(J - 1, (1 + _LEVEL) / 2)) * error
        p = float(2 * stdtr(J - 1, -abs(t)))
        return {"difference": mean, "low": mean - reach, "high": mean + reach, "t": t, "p": p}

    def frame(self) -> Any:
        """A pandas frame, one row a model, best first: mean score, spread over the splits, and `test`."""
        pandas = _optional("pandas", "frame")
        rows = {
            name: {"score": scores.mean(), "std": scores.std(ddof=1)} | self.test(name)
            for name, scores in self.scores.items()
        }
        frame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("model")
        frame.loc[self.reference, ["low", "high", "t", "p"]] = np.nan
        return frame.sort_values("score", ascending=False, kind="stable")

    def plot(self, ax: Any = None) -> Any:
        """Draw the differences to the reference with their 95 % intervals, on matplotlib axes, which are returned."""
        if ax is None:
            _, ax = _optional("matplotlib.pyplot", "plot").subplots(layout="constrained")
        names = sorted(self.scores, key=lambda name: float(self.scores[name].mean()))
        for n, name in enumerate(names):
            found = self.test(name)  # all zero for the reference
            reach, marker = found["high"] - found["difference"], "D" if name == self.reference else "o"
            ax.errorbar(found["difference"], n, xerr=reach, fmt=marker, capsize=3, color="C0")
        ax.axvline(0, color="gray", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel(f"score less that of {self.reference}, with 95 % intervals")
        return ax


def compare(
    models: Mapping[str, Any] | Iterable[Any],
    X: Any,
    Y: Any,
    *,
    cv: Any = 5,
    n_repeats: int = 10,
    reference: str | None = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Compare models by repeated cross-validation and the corrected resampled t-test.

    Parameters
    ----------
    models : dict of estimators, or list of them
        A dict gives their names. In a list, the name of a model is its printed form.
    X, Y : arrays of shape (n, ...), or frames
    cv : int or splitter, default=5
        The number of folds, drawn `n_repeats` times (stratified for classifiers). Or a splitter of scikit-learn, such
        as `TimeSeriesSplit` for a series, whose splits are taken as they are.
    n_repeats : int, default=10
    reference : str, optional
        The model that the others are compared with; by default the first.
    scoring : str or callable, optional
        A score of scikit-learn, for which more is better; by default `score` of the models (R², or accuracy).
    n_jobs : int, optional
    random_state : int, RandomState instance or None, default=0
        Decides how the folds are drawn.

    Returns
    -------
    Comparison
        It has `frame()`, `plot()`, and `test(model, other)` for any two models.

    Notes
    -----
    Each p-value is that of a single comparison. Among many models one will seem better by chance. Multiply the p-values
    by the number of models (Bonferroni) before you say that any is better.

    References
    ----------
    C. Nadeau and Y. Bengio, Inference for the generalization error, Machine Learning 52, 239-281, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import RidgeCV
    >>> from hyperelm import ELMRegressor, compare
    >>> X, Y = load_diabetes(return_X_y=True)
    >>> network = ELMRegressor("quaternions", 20, random_state=0)
    >>> result = compare({"ridge": RidgeCV(np.logspace(-4, 4, 9)), "ELM": network}, X, Y, n_repeats=2)
    >>> len(result.scores["ELM"]), sorted(result.test("ELM"))
    (10, ['difference', 'high', 'low', 'p', 't'])
    """
    named = _named(models)
    if reference is None:
        reference = next(iter(named))
    else:
        check_choice(reference, named, "reference")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"`scoring` must be one score, as a name or a callable, got {scoring!r}.")
    X, Y = indexable(X, Y)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        splitter = RepeatedStratifiedKFold if all(map(is_classifier, named.values())) else RepeatedKFold
        cv = splitter(n_splits=int(cv), n_repeats=n_repeats, random_state=random_state)
    elif isinstance(cv, str) or not hasattr(cv, "split"):
        raise ValueError(f"`cv` must be a number of folds or a splitter of scikit-learn, got {cv!r}.")
    splits = list(cv.split(X, Y))
    if len(splits) < 2:
        raise ValueError(f"`cv` must give at least 2 splits, got {len(splits)}.")
    options = {"cv": splits, "scoring": scoring, "n_jobs": n_jobs, "error_score": "raise"}
    scores = {name: cross_validate(model, X, Y, **options)["test_score"] for name, model in named.items()}
    return Comparison(scores, reference, float(np.mean([len(test) / len(train) for train, test in splits])))


def _named(models: Any) -> dict[str, Any]:
    """The models by the names that a dict gives, or else by their printed forms."""
    if not isinstance(models, Iterable):
        raise TypeError(f"`models` must be a dict or a list of estimators, got {type(models).__name__}.")
    named: dict[str, Any] = {}
    printed = ((" ".join(repr(model).split()), model) for model in models)
    for name, model in models.items() if isinstance(models, Mapping) else printed:
        if not hasattr(model, "fit"):
            raise TypeError(f"`models` must be estimators, got {model!r}.")
        if name in named:
            raise ValueError(f"`models` must differ, got {name!r} twice. Name them in a dict.")
        named[name] = model
    if len(named) < 2:
        raise ValueError(f"`models` must be at least two, got {len(named)}.")
    return named


def _optional(module: str, method: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"`Comparison.{method}` needs the package {package!r}: pip install 'hyperelm[cli]'", name=error.name
        ) from None
