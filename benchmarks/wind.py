"""Does an algebra help to forecast real wind from few rows?

    OPENBLAS_NUM_THREADS=1 python benchmarks/wind.py              # wind vectors as complex numbers
    OPENBLAS_NUM_THREADS=1 python benchmarks/wind.py --weather    # temperature, wind and pressure as quaternions

The data are 153,384 hourly values at four sites, from NASA's reanalysis MERRA-2. They come in the wheel of the package
brightwind 2.7.0 (33 MB), which is downloaded once. The package is not installed and not imported.

A row is the last six hours at the four sites, 24 numbers, and the target is the four sites six hours later. Training
rows are drawn at random from the first 100,000 hours, and test rows are all hours from hour 110,000 on. Errors are
root mean squares in units of the standard deviation of a component. Every seed draws other training rows and another
hidden layer; all models of a seed see the same rows. Networks have nearly the same number of parameters. The p-values
are those of paired t-tests over the seeds.

The rivals are persistence (nothing changes in six hours), tuned ridge regression on the same columns, and a linear
model whose weights are numbers of the algebra. The last one shows what the algebra does without neurons.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import ttest_rel
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV
from wheels import fetch

from hyperelm import ELMRegressor

PACKAGE, SITES = "brightwind==2.7.0", ("NE", "NW", "SE", "SW")
LAGS, AHEAD = 6, 6
TRAIN_HOURS, FIRST_TEST_HOUR = 100_000, 110_000
Array = NDArray[np.float64]


def hours(*, weather: bool) -> Array:
    """(hours, sites, components): the wind vector, or temperature, wind vector and pressure."""
    sites = []
    with zipfile.ZipFile(fetch(PACKAGE, 33)) as archive:
        for site in SITES:
            with archive.open(f"brightwind/demo_datasets/MERRA-2_{site}_2000-01-01_2017-06-30.csv") as file:
                frame = pd.read_csv(file)
            speed, direction = frame["WS50m_m/s"], np.deg2rad(frame["WD50m_deg"])
            parts = [-speed * np.sin(direction), -speed * np.cos(direction)]
            if weather:
                parts = [frame["T2M_degC"], *parts, frame["PS_hPa"]]
            sites.append(np.column_stack(parts))
    values = np.stack(sites, axis=1)
    past = values[:TRAIN_HOURS]
    # One factor for a vector keeps its direction. Unlike things are standardised each by itself.
    return (
        (values - past.mean(axis=(0, 1))) / past.std(axis=(0, 1)) if weather else values / past.std(axis=(0, 1)).mean()
    )


def rows(values: Array, now: NDArray[np.intp]) -> tuple[Array, Array]:
    """The six hours up to each of these, and the sites six hours after it."""
    X = np.stack([values[now - lag] for lag in reversed(range(LAGS))], axis=1)
    return X.reshape(len(now), -1), values[now + AHEAD].reshape(len(now), -1)


def unseen_rows(values: Array) -> tuple[Array, Array]:
    return rows(values, np.arange(FIRST_TEST_HOUR, len(values) - AHEAD))


def linear(algebra: str) -> ELMRegressor:
    """A neuron that computes a linear function adds nothing to the direct link."""
    return ELMRegressor(algebra, 1, activation="identity", direct_link=True)


def models(*, weather: bool) -> dict[str, BaseEstimator]:
    ridge = {"ridge regression": RidgeCV(np.logspace(-4, 4, 17))}
    if weather:
        return ridge | {
            "linear, quaternions": linear("quaternions"),
            "real": ELMRegressor("real", 51, direct_link=True),
            "quaternions": ELMRegressor("quaternions", 60, direct_link=True),
            "quaternions, learned": ELMRegressor("quaternions", 60, direct_link=True, readout="learned"),
            "quaternions, free": ELMRegressor("quaternions", 36, direct_link=True, readout="free"),
        }
    return ridge | {
        "linear, complex": linear("complex"),
        "real": ELMRegressor("real", 58, direct_link=True),
        "complex, tanh": ELMRegressor("complex", 60, direct_link=True),
        "complex, modtanh": ELMRegressor("complex", 60, direct_link=True, activation="modtanh"),
    }


def errors(values: Array, count: int, seed: int, *, weather: bool) -> dict[str, tuple[float, int]]:
    """The error and the number of parameters of every model."""
    drawn = np.random.default_rng(seed).choice(np.arange(LAGS, TRAIN_HOURS - AHEAD), count, replace=False)
    X, Y = rows(values, drawn)
    unseen, truth = unseen_rows(values)
    result = {}
    for name, model in models(weather=weather).items():
        if isinstance(model, ELMRegressor):
            model.set_params(random_state=seed)
        model.fit(X, Y)
        parameters = (
            model.n_parameters_ if isinstance(model, ELMRegressor) else model.coef_.size + len(model.intercept_)
        )
        result[name] = float(np.sqrt(np.mean((model.predict(unseen) - truth) ** 2))), parameters
    return result


def p_value(mine: Array, others: Array) -> str:
    p = float(ttest_rel(mine, others).pvalue)
    return "<1e-5" if p < 1e-5 else f"{p:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weather", action="store_true", help="temperature, wind and pressure, as quaternions")
    parser.add_argument("--rows", help="numbers of training rows, separated by commas")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", help="write the mean errors to this file")
    options = parser.parse_args()
    weather = options.weather
    counts = [
        int(count) for count in (options.rows or ("150,500,3000" if weather else "60,120,250,500,1000")).split(",")
    ]
    values = hours(weather=weather)
    windows, truth = unseen_rows(values)
    last = windows[:, -truth.shape[1] :]
    persistence = float(np.sqrt(np.mean((last - truth) ** 2)))
    print(f"{len(truth):,} test rows, {options.seeds} seeds; persistence has an error of {persistence:.4f}\n")
    names = list(models(weather=weather))
    rivals = names[: 4 if weather else 3]
    means: dict[str, list[float]] = {name: [] for name in names}
    for count in counts:
        runs = Parallel(options.jobs)(
            delayed(errors)(values, count, seed, weather=weather) for seed in range(options.seeds)
        )
        if count == counts[0]:
            print(f"{'rows':>6}" + "".join(f"{name:>22}" for name in names))
            print("      " + "".join(f"{runs[0][name][1]:>11,} parameters" for name in names))
        by_name = {name: np.array([run[name][0] for run in runs]) for name in names}
        for name, of_seeds in by_name.items():
            means[name].append(float(of_seeds.mean()))
        print(f"{count:6,}" + "".join(f"{by_name[name].mean():22.4f}" for name in names))
        for n, rival in enumerate(rivals):
            cells = ["" if name in rivals[: n + 1] else p_value(by_name[name], by_name[rival]) for name in names]
            print(f"{'p':>6}" + "".join(f"{cell:>22}" for cell in cells) + f"   against {rival}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": counts, "persistence": persistence, "errors": means}))


if __name__ == "__main__":
    main()
