"""What the report of the auto-encoding experiment shows: the paper's table beside ours, pictures, fair comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hyperelm import algebras
from hyperelm.experiments._autoencoder import SHOWN
from hyperelm.experiments._definition import Row
from hyperelm.experiments._ranking import grouped, mean_of
from hyperelm.experiments._report import COLOURS, Page, Picture
from hyperelm.experiments._store import Store

PARTS = ("train", "test")
SPLIT = ("R[-1,+1]", "R[+1,-1]", "R[+1,+1]")  # the 2 x 2 real matrices in three bases


class AutoencoderResults:
    """The runs of a store, summed up over networks."""

    def __init__(self, store: Store, paper: dict[str, Any]) -> None:
        self.settings, self.paper = store.settings, paper
        self.models: list[str] = store.settings["models"]
        self.main, self.scale, self.learnt = (store.rows(part) for part in ("main", "scale", "learnt"))
        groups = grouped(self.main, "algebra")
        self.runs = {name: groups[name] for name in self.models}
        self.psnr = self.mean("psnr_test")
        self.seconds = self.mean("train_seconds")
        self.is_cifar10 = self.settings["data"] != "sample"
        # The paper's claims are judged on its own images, sizes, scales and models.
        same = all(self.settings[key] == value for key, value in paper["settings"].items())
        self.is_papers = self.is_cifar10 and same and set(paper["psnr"]) <= set(self.models)

    def mean(self, measure: str) -> dict[str, float]:
        """The mean of a measure over the networks of every model."""
        return {name: mean_of(rows, measure) for name, rows in self.runs.items()}

    @property
    def best(self) -> Row:
        """The run with the best images that has no more parameters than the models of the main part."""
        allowed = max(row["parameters"] for row in self.main)
        rivals = [row for row in (*self.main, *self.learnt) if row["parameters"] <= allowed]
        return max(rivals, key=lambda row: float(row["psnr_test"]))

    @property
    def pca(self) -> float:
        """The PSNR on the test images of plain principal components, with no more parameters than the networks."""
        plain = [row for row in self.learnt if row["algebra"] == "real" and row["parameters"] <= 3_686_400]
        return float(plain[0]["psnr_test"]) if plain else -np.inf

    @property
    def pca_is_better(self) -> bool:
        return self.pca > max(value for name, value in self.psnr.items() if name != "real")

    @property
    def ratios(self) -> list[float]:
        """The training times of the hypercomplex models, relative to the real one."""
        return [value / self.seconds["real"] for name, value in self.seconds.items() if name != "real"]

    @property
    def encoders(self) -> list[Row]:
        """The first network of every model and encoder, the best images first."""
        first = [row for row in (*self.main, *self.learnt) if row["network"] == 0]
        return sorted(first, key=lambda row: -float(row["psnr_test"]))

    @property
    def factors(self) -> list[float]:
        return sorted({1.0, *(float(row["variant"]) for row in self.scale)})

    def at_scale(self, name: str, factor: float) -> float:
        """The PSNR of a model on the test images at a multiple of the paper's weight scale."""
        rows = self.main if factor == 1 else self.scale
        of_model = [row for row in rows if row["algebra"] == name and row["network"] == 0]
        return float(next(row["psnr_test"] for row in of_model if factor in (1, float(row["variant"] or 1))))

    def memory(self, name: str) -> str:
        peaks = [row["train_peak_bytes"] for row in self.runs[name] if row["train_peak_bytes"] is not None]
        return f"{np.mean(peaks) / 2**20:.0f}" if peaks else "not known"

    def paper_ratio(self, name: str) -> float:
        """The training time of a model in the paper, relative to the real one."""
        if algebras.get(name).dim == 1:
            return 1.0
        return float(self.paper["hypercomplex_seconds"] / self.paper["real_seconds"])


def encoder_name(row: Row) -> str:
    if row["encoder"] == "random":
        return "random weights"
    return "principal components" if algebras.get(row["algebra"]).dim == 1 else "principal components in the algebra"


def build(store: Store, document: dict[str, Any]) -> Page:
    results = AutoencoderResults(store, document["paper"])
    return Page(
        document["title"],
        results,
        [_box_picture(results, store), *(_grid(results, store, part) for part in PARTS)],
        _verdicts(results) if results.is_papers else {},
        {"encoder_name": encoder_name, "mean_of": mean_of, "SPLIT": SPLIT, "SHOWN": SHOWN},
    )


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


def _box_picture(results: AutoencoderResults, store: Store) -> Picture:
    values = {part: [_array(store, f"psnr {name} {part}") for name in results.models] for part in PARTS}

    def draw(figure: Figure) -> None:
        for axes, part in zip(figure.subplots(1, 2, sharey=True), PARTS):
            boxes = axes.boxplot(values[part], showfliers=False, patch_artist=True, widths=0.6)
            for n, box in enumerate(boxes["boxes"]):
                box.set(facecolor=COLOURS[n % len(COLOURS)], alpha=0.6)
            for line in boxes["medians"]:
                line.set(color="black")
            axes.set_xticks(range(1, len(results.models) + 1), results.models, rotation=60, ha="right")
            axes.set_title(f"{part} images")
        figure.axes[0].set_ylabel("PSNR (dB)")

    return Picture("psnr", draw, (7.2, 4.0))


def _array(store: Store, name: str) -> NDArray[Any]:
    array = store.array(name)
    return np.empty(0) if array is None else array


def _grid(results: AutoencoderResults, store: Store, part: str) -> Picture:
    names = ["original", *results.models]
    images = {name: _array(store, f"images {name} {part}") for name in names}

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(names), SHOWN, squeeze=False)
        for row, name in zip(panels, names):
            for axes, image in zip(row, images[name]):
                axes.imshow(image)
            for axes in row:
                axes.set(xticks=[], yticks=[])
                axes.grid(visible=False)
                axes.spines[:].set_visible(False)
            row[0].set_ylabel(name, rotation=0, ha="right", va="center")

    return Picture(f"images-{part}", draw, (6.4, 1.0 * len(names)))
