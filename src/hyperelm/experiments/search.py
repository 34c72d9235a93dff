"""Families of algebras compared on a task: every candidate is fitted to the same rows with the same random numbers.

A candidate is an ELM with L hidden numbers in its algebra, Ŷ = tanh(XW + b)V + c, one least-squares problem; on linear
data it is Ŷ = XV. Network n of every candidate has the same components of W and b, so that candidates differ by their
tables alone and are compared pair by pair. Parts: `main`, the comparison; `scale`, the same with other weight scales;
`reference`, beside each of them real networks with about as many parameters, or ordinary least squares; `baseline`, on
the columns of a file, ridge regression and the mean of the targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hyperelm import algebras, linalg
from hyperelm.algebra import Algebra
from hyperelm.elm.layout import Layout
from hyperelm.elm.networks import Networks
from hyperelm.experiments import search_tasks as tasks
from hyperelm.experiments.definition import MAIN, Result, Row, Settings, Unit, seed_of
from hyperelm.experiments.ridge import RidgeNetworks
from hyperelm.families import members

Array = NDArray[np.float64]

MEASURES = ("score",)
COMPETE = ("network",)
REAL = "real"
BASELINE = "baseline"


def derived(settings: Settings) -> Settings:
    """None follow from others."""
    del settings
    return {}


def prepare(settings: Settings) -> None:
    """Check the settings, and fix which data are meant."""
    try:
        members(settings["family"], settings["dim"])
    except ValueError as error:
        raise ValueError(str(error).replace("`family`", "--family").replace("`dim`", "--dim")) from None
    for key, least in (("networks", 0), ("n_hidden", 1), ("few_networks", 0)):
        if settings[key] < least:
            raise ValueError(f"--set {key} must be at least {least}, got {settings[key]}.")
    for key in ("weight_scale", "scales"):
        values = settings[key] if key == "scales" else [settings[key]]
        if not all(0 < value < np.inf for value in values):
            raise ValueError(f"--set {key} must be finite and > 0, got {settings[key]}.")
    tasks.prepare(settings)


def remark(settings: Settings) -> str:
    return tasks.remark(settings)


def units(settings: Settings) -> list[Unit]:
    names, L = members(settings["family"], settings["dim"]), 0 if tasks.is_linear(settings) else settings["n_hidden"]

    def compared(part: str, variant: str, count: int) -> list[Unit]:
        candidates = [Unit(part, variant, name, L, 0, count) for name in names]
        return [*candidates, Unit("reference", variant, REAL, L, 0, count)]

    main = compared(MAIN, "", settings["networks"])
    if tasks.is_linear(settings):  # nothing is random but the data
        return main
    scales = [compared("scale", repr(scale), settings["few_networks"]) for scale in settings["scales"]]
    simple = tasks.BASELINES if tasks.has_baselines(settings) else ()
    baselines = [Unit(BASELINE, "", name, 0, 0, 1) for name in simple]
    return main + [unit for units in scales for unit in units] + baselines


def execute(unit: Unit, settings: Settings) -> Result:
    if unit.part == BASELINE:
        parameters, score = tasks.baseline(unit.algebra, settings)
        return Result([{"network": 0, "parameters": parameters, "score": score}])
    real = unit.part == "reference"
    algebra = algebras.get(REAL) if real else members(settings["family"], settings["dim"])[unit.algebra]
    if tasks.is_linear(settings):
        rows = [_linear(algebra, settings, network) for network in unit.networks]
    else:
        scale = float(unit.variant) if unit.variant else settings["weight_scale"]
        rows = _networks(algebra, unit, settings, scale)
    return Result(rows)


def _linear(algebra: Algebra, settings: Settings, network: int) -> Row:
    """Ŷ = XV by least squares, on the data of this number."""
    data = tasks.read(settings, network)
    inputs, outputs = _layouts(data, algebra, settings)
    V = linalg.lstsq(_numbers(data.X, inputs), _numbers(data.Y, outputs), algebra).x
    predicted = np.asarray(linalg.matmul(_numbers(data.X_test, inputs), V, algebra), dtype=np.float64)
    return {"network": network, "parameters": V.size, "score": data.score(_columns(predicted, outputs))}


def _networks(algebra: Algebra, unit: Unit, settings: Settings, scale: float) -> list[Row]:
    data = tasks.read(settings, 0)
    inputs, outputs = _layouts(data, algebra, settings)
    neurons = unit.n_hidden if algebra.dim > 1 else _as_many(data, unit.n_hidden, settings)
    seeds = [seed_of(settings["seed"], REAL if algebra.dim == 1 else "", neurons, network) for network in unit.networks]
    weights = draw(data.X, (inputs.features + 1, neurons, algebra.dim), scale, seeds)
    kind = RidgeNetworks if settings["ridge"] == "loo" else Networks
    networks = kind(algebra, weights).fit(_numbers(data.X, inputs), _numbers(data.Y, outputs))
    predictions = networks.predict(_numbers(data.X_test, inputs))
    parameters = weights[0].size + networks.output_weights_[0].size
    return [
        {
            "network": network,
            "seed": seed,
            "neurons": neurons,
            "parameters": parameters,
            "score": data.score(_columns(made, outputs)),
        }
        for network, seed, made in zip(unit.networks, seeds, predictions)
    ]


def draw(X: Array, shape: tuple[int, int, int], scale: float, seeds: list[int]) -> Array:
    """Random weights, (networks, *shape): the bias in the last row, the others divided by the norm of a row of X."""
    weights = scale * np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds])
    norm = float(np.sqrt(np.mean(np.einsum("ij,ij->i", X, X))))
    weights[:, :-1] /= norm if norm > 0 else 1.0
    return np.asarray(weights)


def _layouts(data: tasks.Data, algebra: Algebra, settings: Settings) -> tuple[Layout, Layout]:
    """How the columns of inputs and targets lie in numbers."""
    return (
        Layout.of(data.X, algebra, settings["packing"]),
        Layout.of(data.Y, algebra, tasks.target_packing(settings)),
    )


def _numbers(columns: Array, layout: Layout) -> Array:
    return np.asarray(layout.pack(columns, np.float64), dtype=np.float64)


def _columns(numbers: Array, layout: Layout) -> Array:
    return np.asarray(numbers.reshape(len(numbers), -1)[:, layout.places])


def _as_many(data: tasks.Data, n_hidden: int, settings: Settings) -> int:
    """Real neurons with about as many parameters as L hidden numbers have: d(L(D + 1) + N(L + 1)) of them."""
    p, q, d = data.X.shape[1], data.Y.shape[1], settings["dim"]
    D, N = (layout.features for layout in _layouts(data, next(iter(members(settings["family"], d).values())), settings))
    return max(round((d * (n_hidden * (D + 1) + N * (n_hidden + 1)) - q) / (p + 1 + q)), 1)
