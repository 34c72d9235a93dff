"""Families of algebras compared on a task: every candidate is fitted to the same rows with the same random numbers.

A candidate is an ELM with L hidden numbers in its algebra, Ŷ = tanh(XW + b)V + c, which is one least-squares problem.
On linear data it is Ŷ = XV. Network n of every candidate has the same components of W and b, so candidates differ by
their tables alone and are compared pair by pair. Parts: `main`, the comparison; `scale`, the same with other weight
scales; `reference`, real networks with about as many parameters, or ordinary least squares; `learned`, a table that is
learned from the data, for the output layer or the linear data; `baseline`, for the columns of a file, ridge regression
and the mean of the targets.

The tasks give columns X and Y, and a score of predictions in dB:

- `lorenz`: one-step prediction of the Lorenz system, as in the experiment of that name;
- `images`: patches of 8 x 8 pixels of CIFAR-10 or of two photographs, through a code;
- `hidden`: Y = XM + noise in an algebra that the search has to find, with other numbers for every network;
- `csv`: the columns of a file, some of which are predicted from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from hyperelm import Algebra, ColumnPlan, ELMRegressor, algebras, linalg, pack, unpack
from hyperelm.datasets import sample_patches
from hyperelm.experiments import _lorenz as lorenz
from hyperelm.experiments._autoencoder import VARIABLE, fix_images, pixels_of, read_images, rows_of
from hyperelm.experiments._columns import fixed, fixed_sheet
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, load, naming, read_document, seed_of
from hyperelm.experiments._networks import Networks, RidgeNetworks, draw
from hyperelm.experiments._sheet import column_names, joined_names
from hyperelm.families import members
from hyperelm.metrics import prediction_gain, psnr

Array = NDArray[np.float64]

MEASURE = "score"
COMPETE = ("network",)
REAL = "real"
BASELINE = "baseline"
LEARNED = "learned"
TASKS = read_document("search")["tasks"]  # the measure of each task, and how many networks it takes by default
SIDE = 8  # of a patch, in pixels
PATCHES = (2000, 1000)  # for training and testing
SAMPLES = (200, 100)  # rows of the hidden algebra, for training and testing
FEATURES = 3  # numbers in such a row
LARGEST_LEARNED = 16  # components of a table that can be learned
HELD_OUT = 0.3  # of the rows of a file
BASELINES = ("ridge regression", "the mean of the targets")  # of the columns of a file


@dataclass(frozen=True)
class Data:
    """Columns of a task: X (n, p) and Y (n, q) for training, X_test and the score of predictions (m, q) of Y_test."""

    X: Array
    Y: Array
    X_test: Array
    score: Callable[[NDArray[Any]], float]


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
    for key, default in TASKS[task].items():
        if key != "measure":
            settings[key] = settings[key] or default
    if is_linear(settings) and settings["ridge"] != "none":
        raise ValueError(f"--set ridge must be 'none' for the task 'hidden', got {settings['ridge']!r}.")
    settings["digest"] = ""
    if task == "csv":
        return _prepare_csv(settings)
    if task == "hidden":
        with naming(algebra="--set hidden"):
            hidden = algebras.get(settings["hidden"])
        settings["hidden"] = hidden.name or settings["hidden"]
        if hidden.dim != settings["dim"]:
            found = f"got {settings['hidden']!r} with {hidden.dim}"
            raise ValueError(
                f"--set hidden must be an algebra of the dimension of the family, {settings['dim']}, {found}."
            )
    if task == "images":
        fix_images(settings, _patches)
    sample = "The patches are of two photographs; name CIFAR-10 with --data or"
    return f"{sample} {VARIABLE}." if settings["data"] == "sample" else ""


def units(settings: Settings) -> list[Unit]:
    names, L = members(settings["family"], settings["dim"]), 0 if is_linear(settings) else settings["n_hidden"]

    def compared(part: str, variant: str, count: int) -> list[Unit]:
        candidates = [Unit(part, variant, name, L, 0, count) for name in names]
        return [*candidates, Unit("reference", variant, REAL, L, 0, count)]

    found = compared(MAIN, "", settings["networks"])
    if settings["dim"] <= LARGEST_LEARNED:
        found.append(Unit(LEARNED, "", hidden_of_learned(settings), L, 0, settings["networks"]))
    if is_linear(settings):  # nothing is random but the data
        return found
    for scale in settings["scales"]:
        found += compared("scale", repr(scale), settings["few_networks"])
    return found + [Unit(BASELINE, "", name, 0, 0, 1) for name in BASELINES if settings["task"] == "csv"]


def execute(unit: Unit, settings: Settings) -> Result:
    if unit.part == BASELINE:
        parameters, score = baseline(unit.algebra, settings)
        return Result([{"network": 0, "parameters": parameters, "score": score}])
    if unit.part == LEARNED:
        return Result([_learned(unit, settings, network) for network in unit.networks])
    real = unit.part == "reference"
    algebra = algebras.get(REAL) if real else members(settings["family"], settings["dim"])[unit.algebra]
    if is_linear(settings):
        return Result([_linear(algebra, settings, network) for network in unit.networks])
    return Result(_networks(algebra, unit, settings))


def _linear(algebra: Algebra, settings: Settings, network: int) -> Row:
    """The score of Ŷ = XV by least squares, on the data of this network."""
    data = read(settings, network)
    X, Y, X_test = _packed(data, algebra, settings)
    V = linalg.lstsq(X, Y, algebra).x
    score = _score(linalg.matmul(X_test, V, algebra), data, algebra, settings)
    return {"network": network, "parameters": V.size, "score": score}


def hidden_of_learned(settings: Settings) -> str:
    """The algebra of the hidden layer whose readout is learned: the Klein four-group, or the first of the family."""
    names = members(settings["family"], settings["dim"])
    return next((name for name, algebra in names.items() if algebra == algebras.get("klein4")), next(iter(names)))


def _learned(unit: Unit, settings: Settings, network: int) -> Row:
    """The score of a learned table: as the readout of a network with the random numbers of all, or on linear data."""
    data = read(settings, network if is_linear(settings) else 0)
    algebra = members(settings["family"], settings["dim"])[unit.algebra]
    if is_linear(settings):
        X, Y, _ = _packed(data, algebra, settings)
        row = _linear(algebras.learn(X, Y), settings, network)
        return row | {"parameters": row["parameters"] + algebra.dim**3}
    seed, norm = seed_of(settings["seed"], "", unit.n_hidden, network), _row_norm(data)
    model = ELMRegressor(
        algebra,
        unit.n_hidden,
        readout="learned",
        packing=settings["packing"],
        weight_scale=settings["weight_scale"],
        ridge="loo" if settings["ridge"] == "loo" else 0.0,
        random_state=seed,
    )
    with catch_warnings():  # the score tells what the warnings of a fit would
        simplefilter("ignore", UserWarning)
        model.fit(data.X / norm, data.Y)
    score = data.score(model.predict(data.X_test / norm).reshape(len(data.X_test), -1))
    shared = {"neurons": unit.n_hidden, "parameters": model.n_parameters_}
    return {"network": network, "seed": seed, **shared, "score": score}


def _row_norm(data: Data) -> float:
    """The root mean square norm of an input row, or 1 if all are zero."""
    return float(np.sqrt(np.mean(np.einsum("ij,ij->i", data.X, data.X)))) or 1.0


def _networks(algebra: Algebra, unit: Unit, settings: Settings) -> list[Row]:
    data = read(settings, 0)
    X, Y, X_test = _packed(data, algebra, settings)
    neurons = unit.n_hidden if algebra.dim > 1 else _as_many(data, unit.n_hidden, settings)
    seeds = [seed_of(settings["seed"], REAL if algebra.dim == 1 else "", neurons, network) for network in unit.networks]
    scale = float(unit.variant) if unit.variant else settings["weight_scale"]
    weights = draw((X.shape[1] + 1, neurons, algebra.dim), scale, seeds)
    # The weights are divided by the norm of a row. The biases, in the last row, are not.
    weights[:, :-1] /= _row_norm(data)
    networks = (RidgeNetworks if settings["ridge"] == "loo" else Networks)(algebra, weights).fit(X, Y)
    shared = {"neurons": neurons, "parameters": networks.parameters}
    return [
        {"network": network, "seed": seed, **shared, "score": _score(predicted, data, algebra, settings)}
        for network, seed, predicted in zip(unit.networks, seeds, networks.predict(X_test))
    ]


def _packed(data: Data, algebra: Algebra, settings: Settings) -> list[NDArray[Any]]:
    """X, Y and X_test as numbers."""
    into = [settings["packing"], _target_packing(settings), settings["packing"]]
    return [pack(columns, algebra, into=i) for columns, i in zip((data.X, data.Y, data.X_test), into)]


def _score(predicted: NDArray[Any], data: Data, algebra: Algebra, settings: Settings) -> float:
    return data.score(unpack(predicted, algebra, into=_target_packing(settings))[:, : data.Y.shape[1]])


def _target_packing(settings: Settings) -> str:
    """The components that targets fill. Those of a product are all."""
    return "full" if is_linear(settings) else str(settings["packing"])


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
    data, is_ridge = read(settings, 0), name == BASELINES[0]
    model = RidgeCV(np.logspace(-6, 6, 25)) if is_ridge else DummyRegressor()
    made = model.fit(data.X, data.Y).predict(data.X_test).reshape(len(data.X_test), -1)
    return data.Y.shape[1] * (data.X.shape[1] * is_ridge + 1), data.score(made)


def is_linear(settings: Settings) -> bool:
    """Whether the model is Ŷ = XV, without a hidden layer."""
    return bool(settings["task"] == "hidden")


def gain(truth: Array, centre: Array) -> Callable[[NDArray[Any]], float]:
    """10 log₁₀(Σ‖y - centre‖² / Σ‖y - ŷ‖²), in dB: how much better a prediction is than the constant `centre`."""
    spread = float(np.sum((truth - centre) ** 2))

    def score(predicted: NDArray[Any]) -> float:
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

    def crops(images: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
        """Patches at random places of as many images, the same every time."""
        rng = np.random.default_rng(0)
        chosen = rng.integers(len(images), size=count)
        rows, columns = (rng.integers(images.shape[axis] - SIDE + 1, size=count) for axis in (1, 2))
        return np.stack([images[n, r : r + SIDE, c : c + SIDE] for n, r, c in zip(chosen, rows, columns)])

    train, test = read_images(data)
    return crops(train, PATCHES[0]), crops(test, PATCHES[1])


@lru_cache(maxsize=1)
def _images(data: str) -> Data:
    originals = _patches(data)
    train, test = map(rows_of, originals)
    return Data(train, train, test, lambda made: float(psnr(originals[1], pixels_of(made)).mean()))


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
    wanted = column_names(settings["target"], "--target")
    settings["target"] = joined_names(wanted)
    task = _task(settings["data"], settings["digest"], settings["target"])
    rows = len(task.Y)
    least, train = 3 * (settings["n_hidden"] + 1), rows - round(HELD_OUT * rows)
    if train < least:
        raise ValueError(
            f"--data must have at least {least} rows for training with {settings['n_hidden']} neurons, got {train} of "
            f"{rows}. Fewer neurons: --set n_hidden={max(train // 3 - 1, 1)}."
        )
    return " ".join(task.remarks)


@dataclass(frozen=True)
class _Task:
    """Inputs (n, p) and targets (n, q) of a file, and what was done to its columns."""

    X: Array
    Y: Array
    remarks: list[str]


@lru_cache(maxsize=2)
def _task(path: str, digest: str, target: str) -> _Task:
    wanted = column_names(target, "--target")
    sheet = fixed_sheet(path, digest, "--data", tuple(wanted))
    if {*wanted} == {*sheet.names}:
        raise ValueError(f"--target must name some columns, and not all of them, got {target!r}.")
    Y = np.column_stack([sheet.numbers(name) for name in wanted])
    known = ~np.isnan(Y).any(axis=1)
    if not known.any() or not np.ptp(Y[known], axis=0).all():
        raise ValueError(f"--target must name columns that vary, got {target!r}.")
    frame, forms = sheet.frame([name for name in sheet.names if name not in wanted])
    plan = ColumnPlan.of({name: column[known] for name, column in frame.items()}, notes=forms)
    if not plan.features:
        raise ValueError(f"--target must leave columns to predict from, got {target!r}. {path} has no others.")
    left = int((~known).sum())
    dropped = [f"{left:,} row{'s' if left > 1 else ''} without a target left out."] if left else []
    X = plan.apply({name: column[known] for name, column in frame.items()})
    return _Task(X, Y[known], [*sheet.remarks, *plan.lines(), *dropped])


@lru_cache(maxsize=1)
def _csv(path: str, digest: str, target: str, seed: int) -> Data:
    task = _task(path, digest, target)
    values, targets = np.column_stack([task.Y, task.X]), task.Y.shape[1]
    order = np.random.default_rng(seed).permutation(len(values))
    held_out = round(HELD_OUT * len(values))
    test, train = order[:held_out], order[held_out:]
    spread = values[train].std(axis=0)
    scaled = (values - values[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    X, Y = scaled[:, targets:], scaled[:, :targets]
    return Data(X[train], Y[train], X[test], gain(Y[test], np.zeros(targets)))
