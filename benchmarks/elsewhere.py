"""Rivals that need an environment of their own. `real_data.py` starts this file there, with a folder of splits.

    python elsewhere.py aeon FOLDER

Every split is a file `0.in.npz`, `1.in.npz`, ... with X, Y, unseen, the number of channels, and the number of rows that
come at a time (0 for all at once). The answers are files `0.out.npz`, ... with the predictions, the processor seconds
of fit and predict, the number of parameters and the size on disk. Nothing of hyperelm is imported here.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NEURONS = 300


def is_labels(Y: Any) -> bool:
    return Y.dtype.kind not in "f"


def minirocket(_: Any, seed: int) -> Any:
    from aeon.transformations.collection.convolution_based import MiniRocket

    return make_pipeline(MiniRocket(random_state=seed), StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))


def pyrcn(Y: Any, seed: int) -> Any:
    from pyrcn import extreme_learning_machine as elm

    make = elm.ELMClassifier if is_labels(Y) else elm.ELMRegressor
    model = make(hidden_layer_size=NEURONS, input_activation="tanh", random_state=seed)
    return GridSearchCV(model, {"alpha": [1e-3, 1e-1, 10.0, 1000.0], "input_scaling": [0.03, 0.3]}, cv=3)


def gfdl(Y: Any, seed: int) -> Any:
    from gfdl.model import GFDLClassifier, GFDLRegressor

    make = GFDLClassifier if is_labels(Y) else GFDLRegressor
    grid = {"reg_alpha": [1e-3, 1e-1, 10.0, 1000.0], "weight_scheme": ["glorot_uniform", "lecun_uniform"]}
    return GridSearchCV(make((NEURONS,), activation="tanh", seed=seed), grid, cv=3)


RIVALS = {"aeon": minirocket, "pyrcn": pyrcn, "gfdl": gfdl}


class Streamed:
    """A model with its defaults that sees a few rows at a time, and each once."""

    def __init__(self, package: str, seed: int, rows: int) -> None:
        if package == "pyrcn":
            from pyrcn import extreme_learning_machine as elm

            self.best_estimator_ = elm.ELMRegressor(hidden_layer_size=NEURONS, random_state=seed)
        else:
            from gfdl.model import GFDLRegressor

            # Its defaults are linear neurons and no penalty, and `partial_fit` takes one target.
            settings = {"activation": "tanh", "weight_scheme": "lecun_uniform", "reg_alpha": 1.0}
            self.best_estimator_ = MultiOutputRegressor(GFDLRegressor((NEURONS,), seed=seed, **settings))
        self.rows = rows

    def fit(self, X: Any, Y: Any) -> Streamed:
        for start in range(0, len(X), self.rows):
            self.best_estimator_.partial_fit(X[start : start + self.rows], Y[start : start + self.rows])
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)


def arranged(X: Any, channels: int) -> Any:
    """Rows of (time, channel) as aeon wants them, (rows, channels, times); other rows stay."""
    return X.reshape(len(X), -1, channels).transpose(0, 2, 1).copy() if channels else X


def n_parameters(package: str, model: Any, X: Any, Y: Any) -> int:
    if package == "aeon":
        rocket, _, ridge = (step for _, step in model.steps)
        return int(rocket.parameters[-1].size + ridge.coef_.size + ridge.intercept_.size)
    if package == "gfdl":
        parts = getattr(model.best_estimator_, "estimators_", [model.best_estimator_])
        return int(sum(part.W_[0].size + part.b_[0].size + part.coeff_.size for part in parts))
    outputs = len(set(Y.tolist())) if is_labels(Y) else Y.shape[1]
    return (X.shape[1] + 1) * NEURONS + (NEURONS + 1) * outputs


def disk_bytes(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(getattr(model, "best_estimator_", model), Path(folder) / "model")
        return (Path(folder) / "model").stat().st_size


def work(package: str, folder: Path) -> None:
    for seed in range(len(list(folder.glob("*.in.npz")))):
        with np.load(folder / f"{seed}.in.npz") as file:
            Y, rows, channels = file["Y"], int(file["rows"]), int(file["channels"]) if package == "aeon" else 0
            X, unseen = arranged(file["X"], channels), arranged(file["unseen"], channels)
        model = Streamed(package, seed, rows) if rows else RIVALS[package](Y, seed)
        if package == "aeon" and seed == 0:  # the first call compiles, which is not counted
            model.fit(X, Y).predict(unseen)
        start = time.process_time()
        model.fit(X, Y)
        fitted = time.process_time()
        predicted = model.predict(unseen)
        done = time.process_time()
        np.savez(
            folder / f"{seed}.out.npz",
            predicted=predicted,
            fit=fitted - start,
            predict=done - fitted,
            parameters=n_parameters(package, model, X, Y),
            size=disk_bytes(model),
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    work(sys.argv[1], Path(sys.argv[2]))
