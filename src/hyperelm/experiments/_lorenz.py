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

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hyperelm import algebras
from hyperelm.datasets import lorenz, sliding_windows
from hyperelm.experiments._columns import SERIES, fixed, read_fixed
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, check, naming, read_document, seed_of
from hyperelm.experiments._networks import Networks
from hyperelm.metrics import prediction_gain

MEASURE = "prediction_gain"
COMPETE = ("n_hidden", "network")
BATCH = 20  # networks of a unit
VALID = 0.4  # a forecast is valid while its error is below this share of the spread of the series
_TRIALS = 3  # networks that choose a weight scale
HORIZON = 8  # Lyapunov times over which forecasts of the Lorenz system are followed
_STEPS = 200  # over which forecasts of other series are followed
STARTS = 20  # forecasts of every network


class Data(NamedTuple):
    """Windows (n, T, c) and the positions after them (n, c), scaled."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.float64]


def prepare(settings: Settings) -> str:
    """Check the settings, and fix the content of a file of positions."""
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
    scale = None
    if unit.part == "sensitivity":
        settings = settings | variants(settings)[unit.variant]
    elif unit.part == "tuned":
        scale = _best_scale(unit, settings)
    return Result(run_networks(unit, settings, read_data(settings), scale))


def run_networks(
    unit: Unit, settings: Settings, data: Data, scale: float | None = None, model: type[Any] | None = None
) -> list[Row]:
    """The rows of a unit's networks, which are of class `Model` or another one with the same methods."""
    scale = scale or _scale(unit.algebra, settings)
    seeds = [seed_of(settings["seed"], unit.algebra, unit.n_hidden, network) for network in unit.networks]
    fitted = (model or Model)(unit.algebra, unit.n_hidden, scale, seeds).fit(data.X, data.y)
    return [
        {
            "network": network,
            "seed": seed,
            "neurons": fitted.neurons,
            "parameters": fitted.parameters,
            "weight_scale": scale,
            "prediction_gain": prediction_gain(data.y_test, predicted, signal=data.X_test[:, -1]),
        }
        for network, seed, predicted in zip(unit.networks, seeds, fitted.predict(data.X_test))
    ]


def _scale(algebra: str, settings: Settings) -> float:
    scale: float = settings["real_weight_scale" if algebras.get(algebra).dim == 1 else "weight_scale"]
    return scale


class Model:
    """ELMs of one size between windows (n, T, c) and positions (n, c) of real coordinates, one for every seed."""

    def __init__(self, algebra: str, n_hidden: int, weight_scale: float, seeds: Sequence[int]) -> None:
        self.algebra, self.n_hidden = algebras.get(algebra), n_hidden
        self.weight_scale, self.seeds = weight_scale, seeds

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Model:
        numbers = self.numbers(X)
        self.networks = Networks(self.algebra, self.draw(X)).fit(numbers, self.numbers(y[:, None]))
        self.parameters = self.networks.weights[0].size + self.networks.output_weights_[0].size
        return self

    def draw(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The hidden weights that `ELMRegressor` draws for these seeds, and the number of neurons."""
        _, T, c = X.shape
        real = self.algebra.dim == 1
        self.neurons = round((c + 1) * (T + 2) * self.n_hidden / (c * (T + 1) + 1)) if real else self.n_hidden
        shape = (T * c + 1 if real else T + 1, self.neurons, self.algebra.dim)
        weights = np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in self.seeds])
        return np.asarray(weights * self.weight_scale)

    def predict(self, X: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """The positions that one network after the other predicts; X may have windows for each, (networks, n, T, c)."""
        return (self.positions(numbers) for numbers in self.networks.predict(self.numbers(X)))

    def numbers(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions (..., T, c) in the imaginary parts, or one number a coordinate for the real model."""
        if self.algebra.dim == 1:
            return positions.reshape(*positions.shape[:-2], -1, 1)
        return np.concatenate([np.zeros_like(positions[..., :1]), positions], axis=-1)

    def positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The positions (n, c) in the numbers of an output."""
        return numbers[..., 0] if self.algebra.dim == 1 else numbers[:, 0, 1:]


def _best_scale(unit: Unit, settings: Settings) -> float:
    """The weight scale with the highest mean gain on the last third of the training positions."""
    positions = _scaled(settings)[: settings["train"]]
    split = 2 * len(positions) // 3
    data = Data(
        *sliding_windows(positions[:split], settings["window"]), *sliding_windows(positions[split:], settings["window"])
    )
    few = replace(unit, first=0, count=_TRIALS)
    gains = [
        np.mean([row["prediction_gain"] for row in run_networks(few, settings, data, scale)])
        for scale in settings["scales"]
    ]
    best: float = settings["scales"][int(np.argmax(gains))]
    return best


def _forecasts(unit: Unit, settings: Settings) -> Result:
    """Feed every network with its own predictions, from several places of the test part on."""
    scale, data, step = _best_scale(unit, settings), read_data(settings), time_step(settings)
    horizon = round(HORIZON / step) if settings["series"] == "lorenz" else _STEPS
    steps = min(horizon, len(data.X_test) // 2)
    starts = np.linspace(0, len(data.X_test) - steps - 1, STARTS).astype(int)
    truth = np.stack([data.y_test[starts + k] for k in range(steps)], axis=1)
    spread = float(np.sqrt(np.mean(np.sum((data.y_test - data.y_test.mean(axis=0)) ** 2, axis=1))))
    seeds = [seed_of(settings["seed"], unit.algebra, unit.n_hidden, network) for network in unit.networks]
    model = Model(unit.algebra, unit.n_hidden, scale, seeds).fit(data.X, data.y)
    paths = _closed_loop(model, data.X_test[starts], steps)
    rows = []
    for network, seed, path in zip(unit.networks, seeds, paths):
        wrong = np.linalg.norm(path - truth, axis=2) > VALID * spread
        valid = np.where(wrong.any(axis=1), wrong.argmax(axis=1), steps)
        valid_time = float(np.median(valid)) * step
        rows.append({"network": network, "seed": seed, "weight_scale": scale, "valid_time": valid_time})
    arrays = {f"forecast {unit.algebra}": paths[0, 0], "truth": truth[0]}
    if unit.algebra == shown_model(settings):
        # One-step predictions with the weight scale of the main part, for the picture.
        model = Model(unit.algebra, unit.n_hidden, _scale(unit.algebra, settings), seeds[:1]).fit(data.X, data.y)
        arrays |= {"positions": data.y_test, "predictions": next(model.predict(data.X_test))}
    return Result(rows, arrays)


def _closed_loop(model: Model, windows: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The positions that every network predicts from its own predictions, (networks, starts, steps, c)."""
    paths = np.empty((len(model.seeds), len(windows), steps, windows.shape[2]))
    current = np.stack([windows] * len(model.seeds))
    for k in range(steps):
        # A forecast far outside the data is wrong whatever its value. Clipping keeps it finite.
        paths[:, :, k] = np.clip(list(model.predict(current)), -10, 10)
        current = np.concatenate([current[:, :, 1:], paths[:, :, None, k]], axis=2)
    return paths


def time_step(settings: Settings) -> float:
    """One step in Lyapunov times, or 1 for a series whose exponent is not known."""
    return float(settings["dt"] * settings["lyapunov"]) if settings["series"] == "lorenz" else 1.0


def shown_model(settings: Settings) -> str:
    """The model whose one-step predictions are shown: the second, as the first is the real one."""
    return str(settings["models"][:2][-1])


def read_data(settings: Settings) -> Data:
    positions, train, window = _scaled(settings), settings["train"], settings["window"]
    return Data(*sliding_windows(positions[:train], window), *sliding_windows(positions[train:], window))


def _scaled(settings: Settings) -> NDArray[np.float64]:
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


def _positions(settings: Settings) -> NDArray[np.float64]:
    if settings["series"] != "lorenz":
        return read_fixed(settings["series"], settings["digest"]).values
    return _lorenz(settings["positions"], settings["dt"], tuple(settings["start"]))


@lru_cache(maxsize=8)
def _lorenz(n: int, dt: float, start: tuple[float, ...]) -> NDArray[np.float64]:
    return lorenz(n, dt=dt, start=start)
