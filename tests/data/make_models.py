"""Writes the model files of the current format version beside itself, and what the models give for two rows.

Run it once when the format version goes up, and keep the files of the earlier versions.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hyperelm import (
    Algebra,
    ColumnPlan,
    ELMAutoencoder,
    ELMClassifier,
    ELMRegressor,
    FrameClassifier,
    FrameRegressor,
    save,
)
from hyperelm._files import container

HERE = Path(__file__).parent
MINE = Algebra.from_table([["-0.1", "k", "-j"], ["k", "0.7", "i"], ["-j", "i", "-1"]], name="mine")


def main() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 6))
    labels = np.array(["yes", "no", "perhaps"])[np.arange(30) % 3]
    shared = {"n_hidden": 3, "ridge": 0.1, "random_state": 0}
    mine = {"direct_link": True, "packing": "imaginary", "readout": "learned"}
    regressor = ELMRegressor(MINE, **mine, **shared).fit(X, X[:, :2])
    single = {"activation": "modtanh", "solver": "qr", "readout": "free"}
    classifier = ELMClassifier("quaternions", **single, **shared).fit(X.astype("f"), labels)
    autoencoder = ELMAutoencoder("klein4", encoder="orthogonal", **shared).fit(X)
    frame = FrameRegressor("complex", **shared).fit(1000 * X + 50, X[:, :1])
    plan = ColumnPlan.of(dict(zip("abcdef", X.T)))
    frame.name_columns(plan.features, ["y"], plan=plan)
    labelled = FrameClassifier("klein4", **shared).fit(1000 * X + 50, labels)
    write(frame, 1000 * X[:2] + 50, ["predict"], [X[:2, :1].tolist()])
    write(labelled, 1000 * X[:2] + 50, ["predict", "predict_proba"], [labels[:2].tolist()])
    write(regressor, X[:2], ["predict", "predict_interval", "leverage"], [X[:2, :2].tolist()])
    write(classifier, X[:2], ["predict", "predict_proba"], [labels[:2].tolist()])
    write(autoencoder, X[:2], ["transform", "reconstruct", "score_samples"], [])


def write(model, X, methods, more) -> None:
    path = HERE / f"model-v{container.FORMAT}-{type(model).__name__}.hyperelm"
    save(model, path, state=True)
    X = X.astype(model.hidden_weights_.dtype)
    outputs = {method: np.asarray(getattr(model, method)(X)).tolist() for method in methods}
    record = {"X": X.tolist(), "rows": model.n_samples_seen_, "more": more, "outputs": outputs}
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
