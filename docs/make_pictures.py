"""The pictures of the README and of the page on the experiments.

That of the README shows the results in `benchmarks/real_data.json`, that of the page those of the experiments:

python docs/make_pictures.py
hyperelm run lorenz && hyperelm run autoencoder && python docs/make_pictures.py results-lorenz results-autoencoder
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from hyperelm.experiments import Store
from hyperelm.metrics import psnr

SHOWN = ["real", "quaternions", "klein4", "R[+1,-1]"]
IMAGES = 5
STATIC = Path(__file__).parent / "_static"
REAL_DATA = Path(__file__).parents[1] / "benchmarks" / "real_data.json"
OURS, REAL, RIVAL = "tab:blue", "tab:orange", "black"
WIND = {
    "ridge regression": ("ridge regression", RIVAL, "--"),
    "Nystroem, ridge": ("ridge on Nystroem features", RIVAL, "-"),
    "GFDL": ("GFDL", RIVAL, ":"),
    "real, 58 neurons": ("our real network, as large", REAL, "-"),
    "complex, 60 neurons": ("our complex network", OURS, "-"),
}
COMPRESSION = {
    "quaternions, principal components, code of 32": ("quaternions", OURS, "o"),
    "R[+1,-1], principal components, code of 32": ("R[+1,-1]", OURS, "s"),
    "real, principal components, code of 11": ("real", REAL, "o"),
}


def reconstructions(axis: plt.Axes, store: Store) -> None:
    """Test images, and below them what a few models make of them."""
    every = store.array("images original test")
    busiest = np.argsort(-every.astype(float).std(axis=(1, 2, 3)))[:IMAGES]
    original = every[busiest]
    rows, labels = [original], ["original"]
    for name in SHOWN:
        images = store.array(f"images {name} test")[busiest]
        rows.append(images)
        labels.append(f"{name}\n{np.mean(psnr(images, original)):.1f} dB")
    height, width = original.shape[1:3]
    axis.imshow(np.concatenate([np.concatenate(list(row), axis=1) for row in rows]).astype(np.uint8))
    axis.set_yticks([height * (n + 0.5) for n in range(len(rows))], labels)
    axis.set_xticks([])
    axis.tick_params(length=0)
    for n in range(1, len(rows)):
        axis.axhline(height * n - 0.5, color="white", linewidth=3)
    for n in range(1, IMAGES):
        axis.axvline(width * n - 0.5, color="white", linewidth=2)
    axis.set_frame_on(False)
    axis.set_title("Unseen images through a code")


def wins(axis: plt.Axes, store: Store) -> None:
    """The share of runs that each model wins."""
    contests: dict[tuple[int, int], list[tuple[float, str]]] = {}
    for row in store.rows():
        contests.setdefault((row["n_hidden"], row["network"]), []).append((row["prediction_gain"], row["algebra"]))
    count = Counter(max(runs)[1] for runs in contests.values())
    names = sorted(store.settings["models"], key=lambda name: count[name])
    shares = [100 * count[name] / len(contests) for name in names]
    bars = axis.barh(names, shares, color=["tab:orange" if name == "real" else "tab:blue" for name in names])
    axis.bar_label(bars, [f"{share:.1f}" for share in shares], padding=3)
    axis.set(xlim=(0, 1.2 * max(shares)), title=f"Best forecast of the Lorenz attractor, % of {len(contests):,}")
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.set_xticks([])


def wind(axis: plt.Axes, tasks: dict[str, Any]) -> None:
    """The error of a forecast over the number of training rows."""
    sizes = sorted(int(name.removeprefix("wind-")) for name in tasks if name.startswith("wind-"))
    for name, (label, color, style) in WIND.items():
        errors = [np.mean(tasks[f"wind-{size}"]["models"][name]["errors"]) for size in sizes]
        axis.plot(sizes, errors, style, color=color, marker="o", markersize=4, label=label)
    axis.set(xscale="log", xlabel="training rows", ylabel="error, in standard deviations")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    axis.set_title("Wind at four sites, six hours ahead")
    axis.legend(loc="upper right", frameon=False)


def compression(axis: plt.Axes, task: dict[str, Any]) -> None:
    """The error of photographs that were compressed, over the size of the model."""
    points = {name: (model["parameters"], np.mean(model["errors"])) for name, model in sorted(task["models"].items())}
    axis.plot(*zip(*(points[name] for name in points if name.startswith("PCA"))), "--^", color=RIVAL, label="plain PCA")
    for name, (label, color, marker) in COMPRESSION.items():
        axis.plot(*points[name], marker, color=color, label=f"ours, {label}")
    axis.set(xlabel="parameters", ylabel="error of a value", ylim=(0, 0.04))
    axis.set_xticks(ticks := [2000, 4000, 6000], [f"{tick:,}" for tick in ticks])
    axis.set_title("Compression of photographs")
    axis.legend(loc="lower left", frameon=False)


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(STATIC / name, dpi=100)
    Image.open(STATIC / name).convert("RGB").quantize(128).save(STATIC / name, optimize=True)  # a small file


def make_result(lorenz: Path, autoencoder: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[1, 1.1])
    with Store.open(autoencoder) as store:
        reconstructions(left, store)
    with Store.open(lorenz) as store:
        wins(right, store)
    save(figure, "result.png")


def make_real() -> None:
    tasks = json.loads(REAL_DATA.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[1.2, 1])
    wind(axes[0], tasks)
    compression(axes[1], tasks["compression"])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, "real.png")


if __name__ == "__main__":
    make_real()
    if sys.argv[1:]:
        make_result(*map(Path, sys.argv[1:]))
