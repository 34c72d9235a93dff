"""Rivals that need an environment of their own. `real_data.py` starts this file there, with a folder of splits.

    python elsewhere.py aeon FOLDER

Every split is a file `0.in.npz`, `1.in.npz`, ... with X, Y, unseen and the number of channels. The answers are files
`0.out.npz`, ... with the predictions, the processor seconds of fit and predict, the number of parameters and the size
on disk. Nothing of hyperelm is imported here.
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


RIVALS = {"aeon": minirocket, "pyrcn": pyrcn}


def arranged(X: Any, channels: int) -> Any:
    """Rows of (time, channel) as aeon wants them, (rows, channels, times); other rows stay."""
    return X.reshape(len(X), -1, channels).transpose(0, 2, 1).copy() if channels else X


def n_parameters(package: str, model: Any, X: Any, Y: Any) -> int:
    if package == "aeon":
        rocket, _, ridge = (step for _, step in model.steps)
        return int(rocket.parameters[-1].size + ridge.coef_.size + ridge.intercept_.size)
    outputs = len(set(Y.tolist())) if is_labels(Y) else Y.shape[1]
    return (X.shape[1] + 1) * NEURONS + (NEURONS + 1) * outputs


def disk_bytes(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(getattr(model, "best_estimator_", model), Path(folder) / "model")
        return (Path(folder) / "model").stat().st_size


def work(package: str, folder: Path) -> None:
    for seed in range(len(list(folder.glob("*.in.npz")))):
        with np.load(folder / f"{seed}.in.npz") as file:
            Y, channels = file["Y"], int(file["channels"]) if package == "aeon" else 0
            X, unseen = arranged(file["X"], channels), arranged(file["unseen"], channels)
        model = RIVALS[package](Y, seed)
        if seed == 0:  # the first call compiles, which is not counted
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
