"""Models that a reader would use otherwise, each with a small search over its main parameter, and their sizes."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV, RidgeCV, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

from hyperelm import ELMRegressor, save

ALPHAS = np.logspace(-4, 4, 17)
FEATURE_ALPHAS = np.logspace(-8, 3, 23)  # wide kernels give features that hardly differ, so small penalties
GAMMAS = (0.001, 0.01, 0.1, 1.0)  # divided by the number of columns
FEATURES, TREES, ITERATIONS = 300, 100, 100
STREAMED_ROWS = 200  # that come at a time
CLASS_ITERATIONS = 50  # each has a tree for every class


@dataclass(frozen=True)
class Model:
    """A name, and a function of a seed that gives an estimator; or the package in whose environment it is made."""

    name: str
    make: Callable[[int], Any] | None = None
    ours: bool = False
    package: str = ""


class Kernel(BaseEstimator):
    """Random features and a linear model, with the width of the kernel chosen by three folds."""

    def __init__(self, features: Any, readout: Any) -> None:
        self.features, self.readout = features, readout

    def fit(self, X: Any, Y: Any) -> Kernel:
        pipeline = make_pipeline(self.features, self.readout)
        name = pipeline.steps[0][0]
        grid = {f"{name}__gamma": [gamma / X.shape[1] for gamma in GAMMAS]}
        self.best_estimator_ = GridSearchCV(pipeline, grid, cv=3).fit(X, Y).best_estimator_
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)


class Reconstructing(BaseEstimator):
    """An auto-encoder or PCA as a regressor whose targets are its inputs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, Y: Any) -> Reconstructing:
        self.best_estimator_ = self.model.fit(X)
        return self

    def predict(self, X: Any) -> Any:
        return self.model.inverse_transform(self.model.transform(X))


class AsLarge(BaseEstimator):
    """A real network with nearly as many parameters as 100 quaternion neurons have on the same columns."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Any, Y: Any) -> AsLarge:
        quaternions = ELMRegressor("quaternions", 100, ridge=1.0, random_state=0).fit(X, Y).n_parameters_
        targets = Y.shape[1]
        neurons = round((quaternions - targets) / (X.shape[1] + 1 + targets))
        self.best_estimator_ = ELMRegressor("real", neurons, random_state=self.seed).fit(X, Y)
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)


class Streamed(BaseEstimator):
    """A model that sees a few rows at a time, and each once."""

    def __init__(self, model: Any, rows: int = STREAMED_ROWS) -> None:
        self.model, self.rows = model, rows

    def fit(self, X: Any, Y: Any) -> Streamed:
        self.best_estimator_ = self.model
        for start in range(0, len(X), self.rows):
            self.model.partial_fit(X[start : start + self.rows], Y[start : start + self.rows])
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)


def searched(model: Any, **grid: Any) -> GridSearchCV:
    return GridSearchCV(model, grid, cv=3)


def kernels(ridge: Any) -> list[Model]:
    return [
        Model("RBFSampler, ridge", lambda seed: Kernel(RBFSampler(n_components=FEATURES, random_state=seed), ridge)),
        Model("Nystroem, ridge", lambda seed: Kernel(Nystroem(n_components=FEATURES, random_state=seed), ridge)),
    ]


def perceptron(make: Callable[..., Any], seed: int) -> GridSearchCV:
    return searched(make(hidden_layer_sizes=(64,), max_iter=200, random_state=seed), alpha=[1e-3, 0.1, 10.0])


def trees(make: Callable[..., Any], seed: int) -> GridSearchCV:
    return searched(make(TREES, random_state=seed), min_samples_leaf=[1, 5])


class Boosting(BaseEstimator):
    """Gradient boosting of every target by itself, with the learning rate chosen by three folds of the first target."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Any, Y: Any) -> Boosting:
        model = HistGradientBoostingRegressor(max_iter=ITERATIONS, random_state=self.seed)
        found = GridSearchCV(model, {"learning_rate": [0.03, 0.1]}, cv=3, refit=False).fit(X, Y[:, 0])
        self.best_estimator_ = MultiOutputRegressor(model.set_params(**found.best_params_)).fit(X, Y)
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)


def random_networks() -> list[Model]:
    """Other packages whose hidden weights are random."""
    return [Model("PyRCN", package="pyrcn"), Model("GFDL", package="gfdl")]


def regression_rivals() -> list[Model]:
    return [
        Model("ridge regression", lambda _: RidgeCV(ALPHAS)),
        *kernels(RidgeCV(FEATURE_ALPHAS)),
        Model("MLP", partial(perceptron, MLPRegressor)),
        Model("gradient boosting", Boosting),
        Model("extra trees", partial(trees, ExtraTreesRegressor)),
        *random_networks(),
    ]


def classification_rivals(*, series: bool) -> list[Model]:
    def boosting(seed: int) -> Any:
        model = HistGradientBoostingClassifier(max_iter=CLASS_ITERATIONS, random_state=seed)
        return searched(model, learning_rate=[0.05, 0.2])

    return [
        Model("logistic regression", lambda _: searched(LogisticRegression(max_iter=300), C=[0.001, 0.01, 0.1, 1.0])),
        *kernels(RidgeClassifierCV(FEATURE_ALPHAS)),
        Model("MLP", partial(perceptron, MLPClassifier)),
        Model("gradient boosting", boosting),
        Model("extra trees", partial(trees, ExtraTreesClassifier)),
        *random_networks(),
        *([Model("MiniRocket, ridge", package="aeon")] if series else []),
    ]


def compression_rivals() -> list[Model]:
    """PCA with a code of the same size (8 quaternions are a code of 32), and with as many parameters.

    PCA decodes with the weights that it encodes with. Code 22 counts them once, code 11 counts them for both.
    """
    return [
        Model("PCA, code of 32", lambda _: Reconstructing(PCA(32))),
        Model("PCA, code of 22", lambda _: Reconstructing(PCA(22))),
        Model("PCA, code of 11", lambda _: Reconstructing(PCA(11))),
    ]


def stream_rivals() -> list[Model]:
    """Their parameters are the defaults, since a stream cannot be read again for a search."""
    return [
        Model("linear, gradient descent", lambda seed: Streamed(MultiOutputRegressor(SGDRegressor(random_state=seed)))),
        Model("MLP", lambda seed: Streamed(MLPRegressor(hidden_layer_sizes=(64,), random_state=seed))),
        *random_networks(),
    ]


# ---------------------------------------------------------------------- how large a fitted model is


def inner(model: Any) -> Any:
    """What a search found, or the model itself."""
    return getattr(model, "best_estimator_", model)


def n_parameters(model: Any) -> int:
    """Fitted or random numbers that a prediction needs. A tree has two for a test and one for each value of a leaf."""
    model = inner(model)
    if hasattr(model, "n_parameters_"):
        return int(model.n_parameters_)
    if hasattr(model, "steps"):
        return sum(n_parameters(step) for _, step in model.steps)
    if hasattr(model, "_predictors"):  # gradient boosting
        nodes = [tree.nodes["is_leaf"] for trees in model._predictors for tree in trees]
        return int(sum(leaf.sum() + 2 * (~leaf.astype(bool)).sum() for leaf in nodes))
    if hasattr(model, "estimators_"):
        return sum(n_parameters(part) for part in model.estimators_)
    if hasattr(model, "tree_"):
        tree = model.tree_
        return int(tree.n_leaves * np.prod(tree.value.shape[1:]) + 2 * (tree.node_count - tree.n_leaves))
    names = ("coef_", "intercept_", "random_weights_", "random_offset_", "components_", "normalization_", "mean_")
    arrays = [getattr(model, name) for name in names if hasattr(model, name)]
    arrays += [*getattr(model, "coefs_", []), *getattr(model, "intercepts_", [])]
    return int(sum(np.size(array) for array in arrays))


def disk_bytes(model: Any, *, ours: bool) -> int:
    """The size of our file, or of a pickle."""
    if not ours:
        return len(pickle.dumps(inner(model)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hyperelm"
        save(inner(model), path)
        return path.stat().st_size
