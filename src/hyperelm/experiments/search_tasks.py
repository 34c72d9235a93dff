"""The tasks on which algebras are compared: columns in, columns out, and how good a prediction is, in dB.

- `lorenz`: one-step prediction of the Lorenz system, as in the experiment of that name;
- `images`: patches of 8 x 8 pixels through a code, of CIFAR-10 or of two photographs;
- `hidden`: Y = XM + noise in an algebra that the search has to find, other numbers for every network;
- `csv`: the columns of a file, of which some are to be predicted from the others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from hyperelm import algebras, linalg
from hyperelm.datasets import sample_patches
from hyperelm.experiments import lorenz, series
from hyperelm.experiments.autoencoder import VARIABLE, read_images
from hyperelm.experiments.definition import Settings, load
from hyperelm.metrics import prediction_gain, psnr

Array = NDArray[np.float64]

TASKS = ("lorenz", "images", "hidden", "csv")
MEASURE = {
    "lorenz": "prediction gain on the later positions",
    "images": "peak signal-to-noise ratio on other patches",
    "hidden": "gain over the mean on other rows",
    "csv": "gain over the mean on held-out rows",
}
# How many networks tell algebras apart in about a minute, and how many show what the weight scale does.
NETWORKS = {"lorenz": (60, 10), "images": (10, 3), "hidden": (10, 1), "csv": (20, 5)}
SIDE = 8  # of a patch, in pixels
PATCHES = (2000, 1000)  # for training and testing
SAMPLES = (200, 100)  # rows of the hidden algebra for training and testing,
FEATURES = 3  # and how many numbers each has
HELD_OUT = 0.3  # of the rows of a file


# What a table of numbers can be predicted with instead.
BASELINES = ("ridge regression", "the mean of the targets")


@dataclass(frozen=True)
class Data:
    """Columns of a task: X (n, p) and Y (n, q) for training, X_test and the score of predictions (m, q) of Y_test."""

    X: Array
    Y: Array
    X_test: Array
    score: Callable[[Array], float]


def prepare(settings: Settings) -> None:
    """Check what concerns the task, and fix which data are meant."""
    task = settings["task"]
    if task not in TASKS:
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {task!r}.")
    if task != "csv" and settings["target"]:
        raise ValueError(f"--target must be left out for the task {task!r}: it names columns of a CSV file.")
    if task not in ("csv", "images") and settings["data"]:
        raise ValueError(f"--data must be left out for the task {task!r}, which makes its own data.")
    for key, count in zip(("networks", "few_networks"), NETWORKS[task]):
        settings[key] = settings[key] or count
    settings["packing"] = settings["packing"] or ("full" if task == "hidden" else "imaginary")
    if settings["packing"] not in ("full", "imaginary"):
        raise ValueError(f"--set packing must be 'full' or 'imaginary', got {settings['packing']!r}.")
    settings["ridge"] = settings["ridge"] or ("loo" if task == "csv" else "none")
    if settings["ridge"] not in (("none",) if is_linear(settings) else ("loo", "none")):
        raise ValueError(f"--set ridge must be 'loo' or 'none', and 'none' for hidden, got {settings['ridge']!r}.")
    settings["digest"] = ""
    {"lorenz": _nothing, "images": _prepare_images, "hidden": _prepare_hidden, "csv": _prepare_csv}[task](settings)


def read(settings: Settings, network: int) -> Data:
    """The data that a network sees."""
    task = settings["task"]
    if task == "hidden":
        return _hidden(settings, network)
    if task == "csv":
        return _csv(settings["data"], settings["digest"], settings["target"], settings["seed"])
    return _lorenz() if task == "lorenz" else _images(settings["data"])


def has_baselines(settings: Settings) -> bool:
    """Whether the rows are a table, which ridge regression and the mean of the targets predict, too."""
    return bool(settings["task"] == "csv")


def baseline(name: str, settings: Settings) -> tuple[int, float]:
    """The number of parameters and the score of one of `BASELINES`."""
    data = read(settings, 0)
    model = RidgeCV(np.logspace(-6, 6, 25)) if name == BASELINES[0] else DummyRegressor()
    made = model.fit(data.X, data.Y).predict(data.X_test).reshape(len(data.X_test), -1)
    p, q = data.X.shape[1], data.Y.shape[1]
    return q * (p + 1 if name == BASELINES[0] else 1), data.score(made)


def remark(settings: Settings) -> str:
    """What a user should know of the data."""
    if settings["task"] == "images" and settings["data"] == "sample":
        return f"The patches are of two photographs; name CIFAR-10 with --data or {VARIABLE}."
    if settings["task"] != "csv":
        return ""
    return series.read_columns(
        settings["data"], settings["digest"], "--data", tuple(settings["target"].split(","))
    ).remark


def is_linear(settings: Settings) -> bool:
    """Whether the model is Y = XM itself, without a hidden layer."""
    return bool(settings["task"] == "hidden")


def target_packing(settings: Settings) -> str:
    """A product of any numbers has all components."""
    return "full" if settings["task"] == "hidden" else str(settings["packing"])


def _nothing(settings: Settings) -> None:
    del settings


def gain(truth: Array, centre: Array) -> Callable[[Array], float]:
    """10 log₁₀(Σ‖y - centre‖² / Σ‖y - ŷ‖²): what a prediction is better than always saying `centre`."""
    spread = float(np.sum((truth - centre) ** 2))

    def score(predicted: Array) -> float:
        # An error below rounding counts as rounding, so that a score is finite.
        error = max(float(np.sum((truth - predicted) ** 2)), np.finfo(float).eps ** 2 * spread)
        return float(10 * np.log10(spread / error))

    return score


# ---------------------------------------------------------------------- Lorenz


@lru_cache(maxsize=1)
def _lorenz() -> Data:
    data = lorenz.read_data(load("lorenz").settings)
    X, X_test = (windows.reshape(len(windows), -1) for windows in (data.X, data.X_test))
    return Data(X, data.y, X_test, lambda made: prediction_gain(data.y_test, made, signal=data.X_test[:, -1]))


# ---------------------------------------------------------------------- images


def _prepare_images(settings: Settings) -> None:
    place = "--data" if settings["data"] else VARIABLE
    settings["data"] = settings["data"] or os.environ.get(VARIABLE) or "sample"
    if settings["data"] not in ("sample", "openml"):
        settings["data"] = str(Path(settings["data"]).resolve())
    try:
        patches = _patches(settings["data"])
    except (ValueError, ImportError) as error:
        raise ValueError(str(error).replace("`path`", place)) from None
    settings["digest"] = hashlib.sha256(b"".join(part.tobytes() for part in patches)).hexdigest()


@lru_cache(maxsize=1)
def _patches(data: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Training and test patches, (n, 8, 8, 3)."""
    if data == "sample":
        return sample_patches(PATCHES[0], size=SIDE, split="train"), sample_patches(PATCHES[1], size=SIDE, split="test")
    train, test = read_images(data)
    return _crops(train, PATCHES[0]), _crops(test, PATCHES[1])


def _crops(images: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """Patches at random places of as many images, the same every time."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(images), size=count)
    rows, columns = (rng.integers(images.shape[axis] - SIDE + 1, size=count) for axis in (1, 2))
    return np.stack([images[n, r : r + SIDE, c : c + SIDE] for n, r, c in zip(chosen, rows, columns)])


@lru_cache(maxsize=1)
def _images(data: str) -> Data:
    train, test = (patches.reshape(len(patches), -1) / 127.5 - 1 for patches in _patches(data))
    originals = _patches(data)[1]

    def score(made: Array) -> float:
        pixels = np.clip((made + 1) * 127.5, 0, 255).reshape(originals.shape)
        return float(psnr(originals, pixels).mean())

    return Data(train, train, test, score)


# ---------------------------------------------------------------------- a hidden algebra


def _prepare_hidden(settings: Settings) -> None:
    algebra = algebras.get(settings["hidden"])
    settings["hidden"] = algebra.name or settings["hidden"]
    if algebra.dim != settings["dim"]:
        raise ValueError(
            f"--set hidden must be an algebra of the dimension of the family, {settings['dim']}, got "
            f"{settings['hidden']!r} with {algebra.dim}."
        )
    if not 0 <= settings["noise"] < np.inf:
        raise ValueError(f"--set noise must be a finite number >= 0, got {settings['noise']}.")


def _hidden(settings: Settings, network: int) -> Data:
    algebra, rng = algebras.get(settings["hidden"]), np.random.default_rng([settings["seed"], network])
    X = rng.standard_normal((sum(SAMPLES), FEATURES, algebra.dim))
    if settings["packing"] == "imaginary":
        X[:, :, 0] = 0
    Y = linalg.matmul(X, rng.standard_normal((FEATURES, 1, algebra.dim)), algebra)[:, 0]
    Y = Y + settings["noise"] * Y.std() * rng.standard_normal(Y.shape)
    columns = X[:, :, int(settings["packing"] == "imaginary") :].reshape(len(X), -1)
    n = SAMPLES[0]
    return Data(columns[:n], Y[:n], columns[n:], gain(Y[n:], Y[:n].mean(axis=0)))


# ---------------------------------------------------------------------- a file


def _prepare_csv(settings: Settings) -> None:
    if not settings["data"]:
        raise ValueError("--data must name a CSV file for the task 'csv'.")
    settings["data"] = series.located(settings["data"], "--data")
    settings["digest"] = series.digest(settings["data"], "--data")
    wanted = [name.strip() for name in settings["target"].split(",")]
    names, values, _ = series.read_columns(settings["data"], settings["digest"], "--data", tuple(wanted))
    for name in wanted:
        series.place(name, names, settings["data"])
    if len({*wanted}) < len(wanted) or len(wanted) == len(names):
        raise ValueError(f"--target must name different columns, and not all of them, got {settings['target']!r}.")
    settings["target"] = ",".join(wanted)
    targets = values[:, [names.index(name) for name in wanted]]
    if not np.ptp(targets, axis=0).all():
        raise ValueError(f"--target must name columns that vary, got {settings['target']!r}.")
    least = 3 * (settings["n_hidden"] + 1)
    rows = len(values) - round(HELD_OUT * len(values))
    if rows < least:
        raise ValueError(
            f"--data must have at least {least} rows for training with {settings['n_hidden']} neurons, got {rows} of "
            f"{len(values)}. Fewer neurons: --set n_hidden={max(rows // 3 - 1, 1)}."
        )


@lru_cache(maxsize=1)
def _csv(path: str, digest: str, target: str, seed: int) -> Data:
    targets = tuple(target.split(","))
    names, values, _ = series.read_columns(path, digest, "--data", targets)
    at = [names.index(name) for name in targets]
    others = [n for n in range(len(names)) if n not in at]
    order = np.random.default_rng(seed).permutation(len(values))
    held_out = round(HELD_OUT * len(values))
    test, train = order[:held_out], order[held_out:]
    spread = values[train].std(axis=0)
    scaled = (values - values[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    X, Y = scaled[:, others], scaled[:, at]
    return Data(X[train], Y[train], X[test], gain(Y[test], np.zeros(len(at))))
