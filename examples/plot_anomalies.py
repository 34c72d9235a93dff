"""
What is unusual about a movement
================================

A wristband measures acceleration and rotation, each of which is a vector with three components. We train on people who
stand or walk, and ask for a score of how usual a short window of the sensors is. Running and badminton are unusual
then. ``ELMAutoencoder.score_samples`` scores a window by how well it is reconstructed, ``ELMRegressor.leverage`` by how
unlike the training windows it is. The rivals are the reconstruction by principal components and an isolation forest.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from hyperelm import ELMAutoencoder, ELMRegressor

# %%
# The data set BasicMotions has 80 records of 100 time steps. It lies in the wheel of the Python package aeon 1.6.0
# (6 MB). ``pip download`` fetches it once into a cache folder. The package is neither installed nor imported.
CACHE = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))
WHEEL = CACHE / "aeon-1.6.0-py3-none-any.whl"
if not WHEEL.exists():
    print(f"Fetching the wheel of aeon 1.6.0, 6 MB, into the cache folder {CACHE.name}")
    options = ["--no-deps", "--retries", "1", "--timeout", "15", "--dest", str(CACHE)]
    pip = [sys.executable, "-m", "pip", "download", *options, "aeon==1.6.0"]
    fetched = subprocess.run(pip, capture_output=True, text=True)
    if not WHEEL.exists():
        reason = (fetched.stderr or fetched.stdout).strip().splitlines()[-1:]
        print("The wheel could not be fetched, so nothing is computed:", *reason)


def records(part):
    """The sensors, (records, steps, 6), and what the people did."""
    with zipfile.ZipFile(WHEEL) as archive:
        name = f"aeon/datasets/data/BasicMotions/BasicMotions_{part}.ts"
        lines = archive.read(name).decode().splitlines()
    first = [line.strip().lower() for line in lines].index("@data") + 1
    cells = [line.strip().split(":") for line in lines[first:] if line.strip()]
    sensors = [[np.array(channel.split(","), dtype=float) for channel in row[:-1]] for row in cells]
    return np.array(sensors).transpose(0, 2, 1), np.array([row[-1] for row in cells])


# %%
# A window has 16 steps. Its vectors are the imaginary parts of quaternions: 2 numbers a step, 32 in all. Each sensor is
# divided by one number, so that its vectors keep their directions.
STEPS, USUAL = 16, ("Standing", "Walking")


def windows(sensors):
    starts = range(0, sensors.shape[1] - STEPS + 1, 4)
    cut = np.stack([sensors[:, start : start + STEPS] for start in starts], axis=1)
    return cut.reshape(-1, STEPS, 2, 3), len(starts)


def quaternions(vectors):
    numbers = np.zeros((len(vectors), 2 * STEPS, 4))
    numbers[:, :, 1:] = vectors.reshape(len(vectors), 2 * STEPS, 3)
    return numbers


def scores(usual, new):
    """How unusual each window is, by every method."""
    flat, new_flat = (part.reshape(len(part), -1) for part in (usual, new))
    numbers, new_numbers = quaternions(usual), quaternions(new)
    pca = PCA(16).fit(flat)
    autoencoder = ELMAutoencoder("quaternions", 8, random_state=0).fit(numbers)
    # A forecast of the last step from those before. Its leverage tells how unlike the training windows these are.
    forecast = ELMRegressor("quaternions", 25, random_state=0).fit(numbers[:, :-2], numbers[:, -2:])
    return {
        "auto-encoder": -autoencoder.score_samples(new_numbers),
        "leverage of a forecast": forecast.leverage(new_numbers[:, :-2]),
        "principal components": ((new_flat - pca.inverse_transform(pca.transform(new_flat))) ** 2).mean(axis=1),
        "isolation forest": -IsolationForest(random_state=0).fit(flat).score_samples(new_flat),
    }


# %%
# The area under the curve is the probability that an unusual window has a higher score than a usual one.
if WHEEL.exists():
    train, train_labels = records("TRAIN")
    test, test_labels = records("TEST")
    usual, _ = windows(train[np.isin(train_labels, USUAL)])
    new, repeats = windows(test)
    scale = usual.std(axis=(0, 1, 3), keepdims=True)
    found = scores(usual / scale, new / scale)
    unusual = np.repeat(~np.isin(test_labels, USUAL), repeats)
    figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for name, score in found.items():
        print(f"{name:25} area under the curve {roc_auc_score(unusual, score):.3f}")
        ranks = score.argsort().argsort() / len(score)
        axis.hist(ranks[unusual], bins=20, histtype="step", label=name)
    axis.set_title("Ranks of unusual windows among all")
    axis.set_xlabel("rank of the score")
    axis.set_ylabel("windows")
    axis.legend()
    plt.show()

# %%
# What was learned:
#
# - **This task is easy, and all methods do it.** Both ways of hyperelm are level with principal components, which are
#   simpler. They are worth their cost where an auto-encoder or a forecast is there anyway.
# - With badminton as the only usual movement all of them fail, with areas of 0.2 to 0.31: whatever is calmer looks
#   usual to a model of wild movements.
