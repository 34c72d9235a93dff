"""One-step prediction of the Lorenz attractor (section 5.2 of the paper).

A network predicts the next position from T = 3 positions, p̂_{t+1} = ELM(p_{t-2}, p_{t-1}, p_t), each of which is the
imaginary part of one number. With L numbers of an algebra of dimension d it has d L (T + 1) + d (L + 1) parameters. A
real network of L' neurons has L'((d - 1)T + 1) + (d - 1)(L' + 1). Both are equally large if

    L' = round(d (T + 2) L / ((d - 1)(T + 1) + 1))     (20 L/13).

Parts: `main`, the paper's sweep; `sensitivity`, the same with one thing changed that the paper leaves open; `tuned`,
every model at its own best weight scale, chosen on the training positions alone; `forecast`, those models fed with
their own predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm import Algebra, algebras
from hyperelm.datasets import lorenz, sliding_windows
from hyperelm.experiments._columns import fixed, read_fixed
from hyperelm.experiments._content import SERIES
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, check, naming, read_document, seed_of
from hyperelm.experiments._networks import Networks, draw
from hyperelm.metrics import prediction_gain

Array = NDArray[np.float64]

MEASURE = "prediction_gain"
COMPETE = ("n_hidden", "network")
BATCH = 20  # networks in a unit of the main part
VALID = 0.4  # a forecast is valid while its error is below this share of the spread of the series
_TRIALS = 3  # the mean gain of so many networks chooses a weight scale
HORIZON = 8  # forecasts of the Lorenz system last so many Lyapunov times
_STEPS = 200  # forecasts of other series last so many steps
STARTS = 20  # every network makes so many forecasts


class Data(NamedTuple):
    """Windows (n, T, c) and the positions after them (n, c), scaled."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def prepare(settings: Settings) -> str:
    """Check the settings, and write into them which file of positions is used. Return a remark for the user."""
    with naming(algebra="--set models", start="--set start", dt="--set dt"):
        settings["models"] = [algebras.get(name).name or name for name in settings["models"]]
        remark, source = "", settings["series"]
        if source != "lorenz":
            source, settings["digest"] = fixed(source)
            columns = read_fixed(source, settings["digest"])
            settings |= {"series": source, "positions": len(columns.values)}
            remark = f"The series is that of {source}, {settings['positions']:,} positions. {columns.remark}".strip()
        _check(settings)
        positions = _positions(settings)
    if not np.ptp(positions, axis=0).any():
        raise ValueError(f"{SERIES} must vary, but all its positions are the same.")
    components = positions.shape[1] + 1
    for name in settings["models"]:
        if algebras.get(name).dim not in (1, components):
            raise ValueError(
                f"--set models must be real or have {components} components for {components - 1} coordinates, got "
                f"{name!r} with {algebras.get(name).dim}."
            )
    return remark


def _check(settings: Settings) -> None:
    train, window, positions = (settings[key] for key in ("train", "window", "positions"))
    least = 3 * (window + 3)  # a third of the training positions chooses the weight scale
    if train < least:
        raise ValueError(f"--set train must be at least {least} with windows of {window}, got {train}.")
    least = train + window + 2
    if positions < least:
        found = f"of which {train} are for training, got {positions}"
        raise ValueError(f"{SERIES} must have at least {least} positions, {found}.")
    for variant in settings["sensitivity"]:
        change = variant.get("change") if isinstance(variant.get("name"), str) else None
        if not isinstance(change, dict):
            raise ValueError(f"--set sensitivity must have variants with a name and a change, got {variant!r}.")
        for key, value in change.items():
            if key not in settings or type(value) is not type(settings[key]):
                found = f"got {key}={value!r}"
                raise ValueError(f"--set sensitivity must change settings to values of their type, {found}.")
        check(settings | change, read_document("lorenz")["limits"])


def variants(settings: Settings) -> dict[str, Settings]:
    """The changes of the part `sensitivity`, by name. What changes the Lorenz system does not apply to other series."""
    own = {"dt", "start"} if settings["series"] != "lorenz" else set[str]()
    return {v["name"]: v["change"] for v in settings["sensitivity"] if not own & v["change"].keys()}


def units(settings: Settings) -> Iterator[Unit]:
    for L in settings["n_hidden"]:
        for first in range(0, settings["networks"], BATCH):
            for name in settings["models"]:
                yield Unit(MAIN, "", name, L, first, min(BATCH, settings["networks"] - first))
    for part, variant in [*(("sensitivity", name) for name in variants(settings)), ("tuned", "")]:
        for L in settings["few_hidden"]:
            for name in settings["models"]:
                yield Unit(part, variant, name, L, 0, settings["few_networks"])
    middle = settings["few_hidden"][len(settings["few_hidden"]) // 2]
    for name in settings["models"]:
        yield Unit("forecast", "", name, middle, 0, settings["forecast_networks"])


def execute(unit: Unit, settings: Settings) -> Result:
    if unit.part == "forecast":
        return _forecasts(unit, settings)
    scale = _best_scale(unit, settings) if unit.part == "tuned" else None
    if unit.part == "sensitivity":
        settings = settings | variants(settings)[unit.variant]
    return Result(run_networks(unit, settings, read_data(settings), scale))


def run_networks(unit: Unit, settings: Settings, data: Data, scale: float | None = None) -> list[Row]:
    """The rows of a unit's networks, at the weight scale of the settings or at another one."""
    scale = scale or _weight_scale(unit, settings)
    networks = fit(unit, settings, data, scale)
    gains = (prediction_gain(data.y_test, made, signal=data.X_test[:, -1]) for made in predict(networks, data.X_test))
    shared = {"neurons": networks.weights.shape[2], "parameters": networks.parameters, "weight_scale": scale}
    return [
        {"network": network, "seed": seed, **shared, MEASURE: gain}
        for network, seed, gain in zip(unit.networks, _seeds(unit, settings), gains)
    ]


def _weight_scale(unit: Unit, settings: Settings) -> float:
    return float(settings["real_weight_scale" if algebras.get(unit.algebra).dim == 1 else "weight_scale"])


def _seeds(unit: Unit, settings: Settings) -> list[int]:
    return [seed_of(settings["seed"], unit.algebra, unit.n_hidden, network) for network in unit.networks]


def fit(unit: Unit, settings: Settings, data: Data, scale: float) -> Networks:
    """The networks of a unit, each of which predicts the position after a window."""
    algebra, (_, T, c) = algebras.get(unit.algebra), data.X.shape
    inputs, neurons = T, unit.n_hidden
    if algebra.dim == 1:
        inputs, neurons = T * c, round((c + 1) * (T + 2) * neurons / (c * (T + 1) + 1))
    networks = Networks(algebra, draw((inputs + 1, neurons, algebra.dim), scale, _seeds(unit, settings)))
    return networks.fit(numbers(data.X, algebra), numbers(data.y[:, None], algebra))


def predict(networks: Networks, X: Array) -> Iterator[Array]:
    """The positions that one network after the other predicts; X may have windows for each, (networks, n, T, c)."""
    for made in networks.predict(numbers(X, networks.algebra)):
        yield made[..., 0] if networks.algebra.dim == 1 else made[:, 0, 1:]


def numbers(positions: Array, algebra: Algebra) -> Array:
    """Positions (..., T, c) in the imaginary parts of numbers, or one real number a coordinate."""
    if algebra.dim == 1:
        return positions.reshape(*positions.shape[:-2], -1, 1)
    return np.concatenate([np.zeros_like(positions[..., :1]), positions], axis=-1)


def _best_scale(unit: Unit, settings: Settings) -> float:
    """The weight scale with the highest mean gain on the last third of the training positions."""
    train, few = settings["train"], replace(unit, first=0, count=_TRIALS)
    data = _split(_scaled(settings)[:train], 2 * train // 3, settings["window"])

    def mean_gain(scale: float) -> float:
        return float(np.mean([row[MEASURE] for row in run_networks(few, settings, data, scale)]))

    return float(max(settings["scales"], key=mean_gain))


def _forecasts(unit: Unit, settings: Settings) -> Result:
    """Feed every network with its own predictions, from several places of the test part on."""
    scale, data, step = _best_scale(unit, settings), read_data(settings), time_step(settings)
    horizon = round(HORIZON / step) if settings["series"] == "lorenz" else _STEPS
    steps = min(horizon, len(data.X_test) // 2)
    starts = np.linspace(0, len(data.X_test) - steps - 1, STARTS).astype(int)
    truth = np.stack([data.y_test[starts + k] for k in range(steps)], axis=1)
    networks = fit(unit, settings, data, scale)
    windows = np.stack([data.X_test[starts]] * unit.count)
    paths = np.empty((unit.count, *truth.shape))
    for k in range(steps):
        # A forecast far outside the data is wrong whatever its value. Clipping keeps it finite.
        paths[:, :, k] = np.clip(list(predict(networks, windows)), -10, 10)
        windows = np.concatenate([windows[:, :, 1:], paths[:, :, None, k]], axis=2)
    valid_times = np.median(valid_steps(paths, truth, data.y_test), axis=1) * step
    rows = [
        {"network": network, "seed": seed, "weight_scale": scale, "valid_time": float(valid_time)}
        for network, seed, valid_time in zip(unit.networks, _seeds(unit, settings), valid_times)
    ]
    arrays = {f"forecast {unit.algebra}": paths[0, 0], "truth": truth[0]}
    if unit.algebra == shown_model(settings):
        # One-step predictions with the weight scale of the main part, for the picture.
        shown = fit(replace(unit, count=1), settings, data, _weight_scale(unit, settings))
        arrays |= {"positions": data.y_test, "predictions": next(predict(shown, data.X_test))}
    return Result(rows, arrays)


def valid_steps(paths: Array, truth: Array, positions: Array) -> NDArray[np.intp]:
    """How many steps of forecasts (..., steps, c) are valid, for a series with these positions (n, c)."""
    wrong = np.linalg.norm(paths - truth, axis=-1) > VALID * np.sqrt(positions.var(axis=0).sum())
    return np.where(wrong.any(axis=-1), wrong.argmax(axis=-1), paths.shape[-2])


def time_step(settings: Settings) -> float:
    """One step in Lyapunov times, or 1 for a series whose exponent is not known."""
    return float(settings["dt"] * settings["lyapunov"]) if settings["series"] == "lorenz" else 1.0


def shown_model(settings: Settings) -> str:
    """The model whose one-step predictions are shown: the second, as the first is the real one."""
    return str(settings["models"][:2][-1])


def read_data(settings: Settings) -> Data:
    return _split(_scaled(settings), settings["train"], settings["window"])


def _split(positions: Array, train: int, window: int) -> Data:
    return Data(*sliding_windows(positions[:train], window), *sliding_windows(positions[train:], window))


def _scaled(settings: Settings) -> Array:
    positions = _positions(settings)
    if settings["scaling"] == "standard":
        part = positions[: settings["train"]]
        spread = part.std(axis=0)
        return np.asarray((positions - part.mean(axis=0)) / np.where(spread > 0, spread, 1))
    if settings["scaling"] == "none":
        return positions
    axis = 0 if settings["scaling"] == "each" else None
    low, high = positions.min(axis=axis), positions.max(axis=axis)
    return np.asarray(2 * (positions - low) / np.where(high > low, high - low, 1) - 1)


def _positions(settings: Settings) -> Array:
    if settings["series"] != "lorenz":
        return read_fixed(settings["series"], settings["digest"]).values
    return _lorenz(settings["positions"], settings["dt"], tuple(settings["start"]))


@lru_cache(maxsize=8)
def _lorenz(n: int, dt: float, start: tuple[float, ...]) -> Array:
    return lorenz(n, dt=dt, start=start)
