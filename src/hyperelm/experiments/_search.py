"""Families of algebras compared on a task: every candidate is fitted to the same rows with the same random numbers.

A candidate is an ELM with L hidden numbers in its algebra, Ŷ = tanh(XW + b)V + c, which is one least-squares problem.
On linear data it is Ŷ = XV. Network n of every candidate has the same components of W and b, so candidates differ by
their tables alone and are compared pair by pair. Parts: `main`, the comparison; `scale`, the same with other weight
scales; `reference`, real networks with about as many parameters, or ordinary least squares; `baseline`, for the columns
of a file, ridge regression and the mean of the targets.

The tasks give columns X and Y, and a score of predictions in dB:

- `lorenz`: one-step prediction of the Lorenz system, as in the experiment of that name;
- `images`: patches of 8 x 8 pixels of CIFAR-10 or of two photographs, through a code;
- `hidden`: Y = XM + noise in an algebra that the search has to find, with other numbers for every network;
- `csv`: the columns of a file, some of which are predicted from the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from hyperelm import Algebra, algebras, linalg, pack, unpack
from hyperelm.datasets import sample_patches
from hyperelm.experiments import _lorenz as lorenz
from hyperelm.experiments._autoencoder import VARIABLE, fix_images, read_images
from hyperelm.experiments._columns import fixed, read_fixed
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, load, naming, read_document, seed_of
from hyperelm.experiments._networks import Networks, RidgeNetworks
from hyperelm.families import members
from hyperelm.metrics import prediction_gain, psnr

Array = NDArray[np.float64]

MEASURE = "score"
COMPETE = ("network",)
REAL = "real"
BASELINE = "baseline"
TASKS = read_document("search")["tasks"]  # the measure of each task, and how many networks it takes by default
SIDE = 8  # of a patch, in pixels
PATCHES = (2000, 1000)  # for training and testing
SAMPLES = (200, 100)  # rows of the hidden algebra, for training and testing
FEATURES = 3  # numbers in such a row
HELD_OUT = 0.3  # of the rows of a file
BASELINES = ("ridge regression", "the mean of the targets")  # of the columns of a file


@dataclass(frozen=True)
class Data:
    """Columns of a task: X (n, p) and Y (n, q) for training, X_test and the score of predictions (m, q) of Y_test."""

    X: Array
    Y: Array
    X_test: Array
    score: Callable[[Array], float]


def prepare(settings: Settings) -> str:
    """Check the settings, and fix the data of the task."""
    with naming(family="--family", dim="--dim"):
        members(settings["family"], settings["dim"])
    task = settings["task"]
    if task not in TASKS:
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {task!r}.")
    if task != "csv" and settings["target"]:
        raise ValueError(f"--target must be left out for the task {task!r}: it names columns of a CSV file.")
    if task not in ("csv", "images") and settings["data"]:
        raise ValueError(f"--data must be left out for the task {task!r}, which makes its own data.")
    for key in ("networks", "few_networks"):
        settings[key] = settings[key] or TASKS[task][key]
    settings["packing"] = settings["packing"] or ("full" if task == "hidden" else "imaginary")
    settings["ridge"] = settings["ridge"] or ("loo" if task == "csv" else "none")
    if is_linear(settings) and settings["ridge"] != "none":
        raise ValueError(f"--set ridge must be 'none' for the task 'hidden', got {settings['ridge']!r}.")
    settings["digest"] = ""
    if task == "images":
        patches = fix_images(settings, _patches)
        settings["digest"] = hashlib.sha256(b"".join(part.tobytes() for part in patches)).hexdigest()
        if settings["data"] == "sample":
            return f"The patches are of two photographs; name CIFAR-10 with --data or {VARIABLE}."
    if task == "hidden":
        _prepare_hidden(settings)
    return _prepare_csv(settings) if task == "csv" else ""


def units(settings: Settings) -> list[Unit]:
    names, L = members(settings["family"], settings["dim"]), 0 if is_linear(settings) else settings["n_hidden"]

    def compared(part: str, variant: str, count: int) -> list[Unit]:
        candidates = [Unit(part, variant, name, L, 0, count) for name in names]
        return [*candidates, Unit("reference", variant, REAL, L, 0, count)]

    found = compared(MAIN, "", settings["networks"])
    if is_linear(settings):  # nothing is random but the data
        return found
    for scale in settings["scales"]:
        found += compared("scale", repr(scale), settings["few_networks"])
    return found + [Unit(BASELINE, "", name, 0, 0, 1) for name in BASELINES if settings["task"] == "csv"]


def execute(unit: Unit, settings: Settings) -> Result:
    if unit.part == BASELINE:
        parameters, score = baseline(unit.algebra, settings)
        return Result([{"network": 0, "parameters": parameters, "score": score}])
    real = unit.part == "reference"
    algebra = algebras.get(REAL) if real else members(settings["family"], settings["dim"])[unit.algebra]
    if is_linear(settings):
        return Result([_linear(algebra, settings, network) for network in unit.networks])
    return Result(_networks(algebra, unit, settings))


def _linear(algebra: Algebra, settings: Settings, network: int) -> Row:
    """Ŷ = XV by least squares, on the data of this network."""
    data = read(settings, network)
    X, Y, X_test = _packed(data, algebra, settings)
    V = linalg.lstsq(X, Y, algebra).x
    predicted = np.asarray(linalg.matmul(X_test, V, algebra), dtype=np.float64)
    return {"network": network, "parameters": V.size, "score": _score(predicted, data, algebra, settings)}


def _networks(algebra: Algebra, unit: Unit, settings: Settings) -> list[Row]:
    data = read(settings, 0)
    X, Y, X_test = _packed(data, algebra, settings)
    neurons = unit.n_hidden if algebra.dim > 1 else _as_many(data, unit.n_hidden, settings)
    seeds = [seed_of(settings["seed"], REAL if algebra.dim == 1 else "", neurons, network) for network in unit.networks]
    scale = float(unit.variant) if unit.variant else settings["weight_scale"]
    weights = draw(data.X, (X.shape[1] + 1, neurons, algebra.dim), scale, seeds)
    networks = (RidgeNetworks if settings["ridge"] == "loo" else Networks)(algebra, weights).fit(X, Y)
    parameters = weights[0].size + networks.output_weights_[0].size
    return [
        {
            "network": network,
            "seed": seed,
            "neurons": neurons,
            "parameters": parameters,
            "score": _score(predicted, data, algebra, settings),
        }
        for network, seed, predicted in zip(unit.networks, seeds, networks.predict(X_test))
    ]


def draw(X: Array, shape: tuple[int, int, int], scale: float, seeds: list[int]) -> Array:
    """Random weights, (networks, *shape): the bias in the last row, the others divided by the norm of a row of X."""
    weights = scale * np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds])
    norm = float(np.sqrt(np.mean(np.einsum("ij,ij->i", X, X))))
    weights[:, :-1] /= norm if norm > 0 else 1.0
    return np.asarray(weights)


def _packed(data: Data, algebra: Algebra, settings: Settings) -> tuple[Array, Array, Array]:
    """X, Y and X_test as numbers."""
    into = [settings["packing"], target_packing(settings), settings["packing"]]
    X, Y, X_test = (pack(c, algebra, into=i).astype(np.float64) for c, i in zip((data.X, data.Y, data.X_test), into))
    return X, Y, X_test


def _score(predicted: Array, data: Data, algebra: Algebra, settings: Settings) -> float:
    columns = unpack(predicted, algebra, into=target_packing(settings))
    return data.score(columns[:, : data.Y.shape[1]].astype(np.float64))


def _as_many(data: Data, n_hidden: int, settings: Settings) -> int:
    """Real neurons with about as many parameters as L hidden numbers have: d(L(D + 1) + N(L + 1))."""
    p, q, d = data.X.shape[1], data.Y.shape[1], settings["dim"]
    X, Y, _ = _packed(data, next(iter(members(settings["family"], d).values())), settings)
    return max(round((d * (n_hidden * (X.shape[1] + 1) + Y.shape[1] * (n_hidden + 1)) - q) / (p + 1 + q)), 1)


def read(settings: Settings, network: int) -> Data:
    """The data that a network sees."""
    task = settings["task"]
    if task == "hidden":
        return _hidden(settings, network)
    if task == "csv":
        return _csv(settings["data"], settings["digest"], settings["target"], settings["seed"])
    return _lorenz() if task == "lorenz" else _images(settings["data"])


def baseline(name: str, settings: Settings) -> tuple[int, float]:
    """The number of parameters and the score of one of `BASELINES`."""
    data = read(settings, 0)
    model = RidgeCV(np.logspace(-6, 6, 25)) if name == BASELINES[0] else DummyRegressor()
    made = model.fit(data.X, data.Y).predict(data.X_test).reshape(len(data.X_test), -1)
    p, q = data.X.shape[1], data.Y.shape[1]
    return q * (p + 1 if name == BASELINES[0] else 1), data.score(made)


def is_linear(settings: Settings) -> bool:
    """Whether the model is Ŷ = XV, without a hidden layer."""
    return bool(settings["task"] == "hidden")


def target_packing(settings: Settings) -> str:
    """The components that targets fill. Those of a product are all."""
    return "full" if settings["task"] == "hidden" else str(settings["packing"])


def gain(truth: Array, centre: Array) -> Callable[[Array], float]:
    """10 log₁₀(Σ‖y - centre‖² / Σ‖y - ŷ‖²), in dB: how much better a prediction is than the constant `centre`."""
    spread = float(np.sum((truth - centre) ** 2))

    def score(predicted: Array) -> float:
        # An error below rounding counts as rounding, so the score is finite.
        error = max(float(np.sum((truth - predicted) ** 2)), np.finfo(float).eps ** 2 * spread)
        return float(10 * np.log10(spread / error))

    return score


@lru_cache(maxsize=1)
def _lorenz() -> Data:
    data = lorenz.read_data(load("lorenz").settings)
    X, X_test = (windows.reshape(len(windows), -1) for windows in (data.X, data.X_test))
    return Data(X, data.y, X_test, lambda made: prediction_gain(data.y_test, made, signal=data.X_test[:, -1]))


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


def _prepare_hidden(settings: Settings) -> None:
    with naming(algebra="--set hidden"):
        algebra = algebras.get(settings["hidden"])
    settings["hidden"] = algebra.name or settings["hidden"]
    if algebra.dim != settings["dim"]:
        raise ValueError(
            f"--set hidden must be an algebra of the dimension of the family, {settings['dim']}, got "
            f"{settings['hidden']!r} with {algebra.dim}."
        )


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


def _prepare_csv(settings: Settings) -> str:
    if not settings["data"]:
        raise ValueError("--data must name a CSV file for the task 'csv'.")
    settings["data"], settings["digest"] = fixed(settings["data"], "--data")
    wanted = [name.strip() for name in settings["target"].split(",")]
    settings["target"] = ",".join(wanted)
    columns = read_fixed(settings["data"], settings["digest"], "--data", tuple(wanted))
    targets, rows = columns.values[:, columns.at(wanted)], len(columns.values)
    if len({*wanted}) < len(wanted) or len(wanted) == len(columns.names):
        raise ValueError(f"--target must name different columns, and not all of them, got {settings['target']!r}.")
    if not np.ptp(targets, axis=0).all():
        raise ValueError(f"--target must name columns that vary, got {settings['target']!r}.")
    least, train = 3 * (settings["n_hidden"] + 1), rows - round(HELD_OUT * rows)
    if train < least:
        raise ValueError(
            f"--data must have at least {least} rows for training with {settings['n_hidden']} neurons, got {train} of "
            f"{rows}. Fewer neurons: --set n_hidden={max(train // 3 - 1, 1)}."
        )
    return columns.remark


@lru_cache(maxsize=1)
def _csv(path: str, digest: str, target: str, seed: int) -> Data:
    columns = read_fixed(path, digest, "--data", tuple(target.split(",")))
    values, at = columns.values, columns.at(target.split(","))
    others = [n for n in range(len(columns.names)) if n not in at]
    order = np.random.default_rng(seed).permutation(len(values))
    held_out = round(HELD_OUT * len(values))
    test, train = order[:held_out], order[held_out:]
    spread = values[train].std(axis=0)
    scaled = (values - values[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    X, Y = scaled[:, others], scaled[:, at]
    return Data(X[train], Y[train], X[test], gain(Y[test], np.zeros(len(at))))
