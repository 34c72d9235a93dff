"""The pictures of the README and of the page on the experiments, from the results of both and of the benchmark on wind:

hyperelm run lorenz && hyperelm run autoencoder && python benchmarks/wind.py --json wind.json
python docs/make_pictures.py results-lorenz results-autoencoder wind.json

`python docs/make_pictures.py wind.json` makes the picture of the wind alone.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from hyperelm.experiments import Store
from hyperelm.metrics import psnr

SHOWN = ["real", "quaternions", "klein4", "R[+1,-1]"]
IMAGES = 5
STATIC = Path(__file__).parent / "_static"
WIND = {
    "ridge regression": ("black", "--"),
    "linear, complex": ("tab:blue", "--"),
    "real": ("tab:orange", "-"),
    "complex, modtanh": ("tab:blue", "-"),
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


def wind(axis: plt.Axes, results: Path) -> None:
    """The error of a forecast over the number of training rows."""
    found = json.loads(results.read_text(encoding="utf-8"))
    axis.axhline(found["persistence"], color="grey", linestyle=":", label="persistence")
    for name, (color, style) in WIND.items():
        label = name if name.startswith(("ridge", "linear")) else f"network, {name}"
        axis.plot(found["rows"], found["errors"][name], style, color=color, marker="o", markersize=4, label=label)
    axis.set(xscale="log", xlabel="training rows", ylabel="error, in standard deviations")
    axis.set_xticks(found["rows"], [f"{count:,}" for count in found["rows"]])
    axis.minorticks_off()
    axis.set_title("Wind at four sites, six hours ahead")
    axis.spines[["top", "right"]].set_visible(False)
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


def make_wind(results: Path) -> None:
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    wind(axis, results)
    save(figure, "wind.png")


if __name__ == "__main__":
    *experiments, benchmark = map(Path, sys.argv[1:])
    if experiments:
        make_result(*experiments)
    make_wind(benchmark)
