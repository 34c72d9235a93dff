"""What the report of the auto-encoding experiment shows: the paper's table beside ours, pictures, fair comparisons."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hyperelm.experiments._autoencoder import SHOWN
from hyperelm.experiments._definition import Row
from hyperelm.experiments._ranking import grouped, mean_of
from hyperelm.experiments._report import COLOURS, array
from hyperelm.experiments._store import Store

PARTS = ("train", "test")
SPLIT = ("R[-1,+1]", "R[+1,-1]", "R[+1,+1]")  # the 2 x 2 real matrices in three bases


class AutoencoderResults:
    """The runs of a store, summed up over networks."""

    def __init__(self, store: Store, paper: dict[str, Any]) -> None:
        self.settings, self.models = store.settings, store.settings["models"]
        self.main, scale, learnt, self.readouts = (store.rows(part) for part in ("main", "scale", "learnt", "readout"))
        groups = grouped(self.main, "algebra")
        self.runs = {name: groups[name] for name in self.models}
        self.psnr, self.seconds = (
            {name: mean_of(rows, measure) for name, rows in self.runs.items()}
            for measure in ("psnr_test", "train_seconds")
        )
        # The test PSNR of the first networks, by model and by the multiple of the paper's weight scale.
        first = [row for row in (*self.main, *scale) if row["network"] == 0]
        self.at_scale = {(row["algebra"], float(row["variant"] or 1)): row["psnr_test"] for row in first}
        self.factors = sorted({factor for _, factor in self.at_scale})
        # Random and learnt encoders, the best images first.
        self.encoders: list[Row] = sorted((*self.main, *learnt), key=lambda row: -row["psnr_test"])
        self.readouts.sort(key=lambda row: -row["psnr_test"])
        # The test PSNR with the algebra's own readout, by model and encoder.
        self.own = {(row["algebra"], row["encoder"]): row for row in (*learnt, *self.main) if row["network"] == 0}
        allowed = max(row["parameters"] for row in self.main)
        self.best = next(row for row in self.encoders if row["parameters"] <= allowed)
        # The test PSNR of plain principal components with no more parameters than the networks of the paper.
        plain = [row for row in learnt if row["algebra"] == "real" and row["parameters"] <= 3_686_400]
        self.pca = plain[0]["psnr_test"] if plain else -np.inf
        self.pca_is_better = self.pca > max((self.psnr[name] for name in self.models if name != "real"), default=np.inf)
        self.is_cifar10 = self.settings["data"] != "sample"
        # The paper's claims are judged on its own images, sizes, scales and models.
        same = all(self.settings[key] == value for key, value in paper["settings"].items())
        self.is_papers = self.is_cifar10 and same and set(paper["psnr"]) <= set(self.models)

    @property
    def ratios(self) -> list[float]:
        """The training times of the hypercomplex models, relative to the real one."""
        return [value / self.seconds["real"] for name, value in self.seconds.items() if name != "real"]


def build(store: Store, document: dict[str, Any]) -> dict[str, Any]:
    results = AutoencoderResults(store, document["paper"])
    psnr = {part: [array(store, f"psnr {name} {part}") for name in results.models] for part in PARTS}
    names = ["original", *results.models]
    images = {part: {name: array(store, f"images {name} {part}") for name in names} for part in PARTS}
    return {
        "title": document["title"],
        "results": results,
        "pictures": {
            "psnr": partial(_boxes, psnr, results.models),
            **{f"images-{part}": partial(_grid, images[part]) for part in PARTS},
        },
        "verdicts": _verdicts(results) if results.is_papers else {},
        "mean_of": mean_of,
        "SPLIT": SPLIT,
        "SHOWN": SHOWN,
    }


def _verdicts(results: AutoencoderResults) -> dict[str, str]:
    """The verdict on every claim of the paper. The template has the reasons."""

    def verdict(holds: bool) -> str:
        return "reproduced" if holds else "not reproduced"

    test = results.psnr
    others = [value for name, value in test.items() if name not in SPLIT]
    best, weak = min(test["R[-1,+1]"], test["R[+1,-1]"]), test["R[+1,+1]"]
    better = verdict(min(value for name, value in test.items() if name != "real") > test["real"])
    return {
        "better": "depends" if better == "reproduced" and results.pca_is_better else better,
        "best": verdict(best > max(others)),
        "weak": verdict(best - weak > 1.5),
        "cost": verdict(max(results.ratios) > 80),
    }


def _boxes(psnr: dict[str, list[NDArray[Any]]], models: list[str]) -> Figure:
    """Box plots of the PSNR of all images, by part and model."""
    figure = Figure(figsize=(7.2, 4.0))
    for axes, (part, values) in zip(figure.subplots(1, 2, sharey=True), psnr.items()):
        boxes = axes.boxplot(values, showfliers=False, patch_artist=True, widths=0.6, medianprops={"color": "black"})
        for n, box in enumerate(boxes["boxes"]):
            box.set(facecolor=COLOURS[n % len(COLOURS)], alpha=0.6)
        axes.set_xticks(range(1, len(models) + 1), models, rotation=60, ha="right")
        axes.set_title(f"{part} images")
    figure.axes[0].set_ylabel("PSNR (dB)")
    return figure


def _grid(images: dict[str, NDArray[Any]]) -> Figure:
    """Images in a row for each name."""
    figure = Figure(figsize=(6.4, 1.0 * len(images)))
    for row, (name, shown) in zip(figure.subplots(len(images), SHOWN, squeeze=False), images.items()):
        for axes, image in zip(row, shown):
            axes.imshow(image)
        for axes in row:
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return figure
