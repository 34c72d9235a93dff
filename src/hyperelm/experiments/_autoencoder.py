"""Auto-encoding of colour images (section 5.3 of the paper).

An image of 32 x 32 pixels is 1,024 numbers with red, green and blue in [-1, +1] as imaginary parts; the real model
takes 3,072 values. There are 450 neurons over an algebra or 600 real ones and no biases, so both have 3,686,400
parameters. Parts: `main`, the paper's table; `scale`, other weight scales; `learnt`, principal components in the
algebra instead of random weights, and plain ones with a code of the same size; `readout`, the networks of `main` and
the principal components with another readout than the algebra's own: a learned table, or a free real matrix.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm import ELMAutoencoder, algebras
from hyperelm.datasets import load_cifar10, sample_patches
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, naming, seed_of
from hyperelm.metrics import psnr, ssim

Images = NDArray[np.uint8]

MEASURE = "psnr_test"
COMPETE = ("network",)
VARIABLE = "HYPERELM_CIFAR10"  # the environment variable that names the place of the images
SHOWN = 6  # images of each part in the picture grids
_VALUES = 3072  # values of an image: 32 x 32 pixels of 3 colours
_SAMPLES = (2000, 1000)  # patches of the photographs, for training and testing
_CHUNK = 500  # images that are reconstructed at a time


def prepare(settings: Settings) -> str:
    """Check the settings, and write into them which images are used. Return a remark for the user."""
    with naming(algebra="--set models"):
        settings["models"] = [algebras.get(name).name or name for name in settings["models"]]
    if len({*settings["models"]}) < len(settings["models"]):
        raise ValueError(f"--set models must be different ones, got {settings['models']}.")
    for name in settings["models"]:
        if algebras.get(name).dim not in (1, 4):
            raise ValueError(f"--set models must be real or have 4 components for 3 colours, got {name!r}.")
    if settings["learnt"] and max(4 * settings["n_hidden"], settings["real_n_hidden"]) > _VALUES:
        raise ValueError(
            f"--set learnt must be false for codes of more numbers than an image has, {_VALUES:,}: got "
            f"n_hidden={settings['n_hidden']} of 4 components and real_n_hidden={settings['real_n_hidden']}."
        )
    if unknown := [name for name in settings["readouts"] if name not in ("learned", "free")]:
        raise ValueError(f"--set readouts must be a list of 'learned' and 'free', got {unknown[0]!r}.")
    fix_images(settings, read_images)
    if settings["data"] != "sample":
        return ""
    where = f"name the folder or archive of CIFAR-10 with --data or {VARIABLE}"
    return f"The images are patches of the two photographs in scikit-learn. For the paper's table, {where}."


def fix_images(settings: Settings, read: Callable[[str], tuple[Images, Images]]) -> None:
    """Write the full name of the place of the images and their digest into the settings."""
    option = "--data" if settings["data"] else VARIABLE
    settings["data"] = settings["data"] or os.environ.get(VARIABLE) or "sample"
    if settings["data"] not in ("sample", "openml"):
        settings["data"] = str(Path(settings["data"]).resolve())
    with naming(path=option):
        settings["digest"] = hashlib.sha256(b"".join(part.tobytes() for part in read(settings["data"]))).hexdigest()


@cache
def _has_principal_components(name: str) -> bool:
    """Whether the library finds principal components in an algebra."""
    try:
        ELMAutoencoder(name, 1, encoder="pca", bias=False, ridge=1.0).fit(np.eye(8))
    except ValueError:
        return False
    return True


def units(settings: Settings) -> Iterator[Unit]:
    size = {name: "real_n_hidden" if algebras.get(name).dim == 1 else "n_hidden" for name in settings["models"]}
    sizes = {name: settings[key] for name, key in size.items()}
    yield from (Unit(MAIN, "", name, L, n, 1) for n in range(settings["networks"]) for name, L in sizes.items())
    # The variant has all digits of its factor, because `build` reads the factor from it.
    factors = [repr(factor).removesuffix(".0") for factor in settings["scale_factors"]]
    yield from (Unit("scale", factor, name, L, 0, 1) for factor in factors for name, L in sizes.items())
    if settings["learnt"]:
        able = filter(_has_principal_components, sizes)
        yield from (Unit("learnt", "pca", name, sizes[name], 0, 1) for name in able)
        if "real" in sizes:
            # The code of this model is as long as those of the hypercomplex models.
            yield Unit("learnt", "pca, as large a code", "real", 4 * settings["n_hidden"], 0, 1)
    for readout in settings["readouts"]:
        for name in (name for name in sizes if name != "real"):
            yield Unit("readout", readout, name, sizes[name], 0, 1)
            if settings["learnt"] and _has_principal_components(name):
                yield Unit("readout", f"{readout}, pca", name, sizes[name], 0, 1)


def execute(unit: Unit, settings: Settings) -> Result:
    seed = seed_of(settings["seed"], unit.algebra, unit.n_hidden, unit.first)
    model = build(unit, settings, seed)
    train, test = (images[: settings["images"] or None] for images in read_images(settings["data"]))
    rows = rows_of(train)
    with _peak_memory() as peak:
        start = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - start
    row: Row = {
        "network": unit.first,
        "seed": seed,
        "encoder": model.encoder,
        "weight_scale": model.weight_scale_,
        "parameters": model.n_parameters_,
        "code": unit.n_hidden * algebras.get(unit.algebra).dim,
    }
    arrays: dict[str, NDArray[Any]] = {}
    for part, images in (("train", train), ("test", test)):
        quality, shown = evaluate(model, images)
        row |= {f"{measure}_{part}": float(values.mean()) for measure, values in quality.items()}
        row |= {f"psnr_deviation_{part}": float(quality["psnr"].std())}
        if unit.part == MAIN and unit.first == 0:
            arrays |= {f"psnr {unit.algebra} {part}": quality["psnr"].astype(np.float32)}
            arrays |= {f"images {unit.algebra} {part}": shown, f"images original {part}": images[:SHOWN]}
    return Result([row | {"train_seconds": seconds, "train_peak_bytes": peak[0] if peak else None}], arrays)


def build(unit: Unit, settings: Settings, seed: int) -> ELMAutoencoder:
    """The auto-encoder of a run."""
    real, learnt = algebras.get(unit.algebra).dim == 1, unit.part == "learnt" or unit.variant.endswith(", pca")
    scale = settings["real_weight_scale" if real else "weight_scale"]
    scale *= float(unit.variant) if unit.part == "scale" else 1
    return ELMAutoencoder(
        unit.algebra,
        unit.n_hidden,
        encoder="pca" if learnt else "random",
        weight_scale="auto" if learnt else scale,
        bias=False,
        packing="full" if real else "imaginary",
        readout=unit.variant.removesuffix(", pca") if unit.part == "readout" else "algebra",
        ridge=0.0,
        random_state=seed,
    )


def rows_of(images: Images) -> NDArray[np.float64]:
    """Pixels in [-1, +1], a row for each image, the colours of a pixel side by side."""
    rows = images.reshape(len(images), -1) / 127.5
    rows -= 1
    return np.asarray(rows)


def pixels_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows as images (n, side, side, 3) with values from 0 to 255: the inverse of `rows_of`."""
    side = math.isqrt(rows.shape[1] // 3)
    return np.clip((rows + 1) * 127.5, 0, 255).reshape(-1, side, side, 3)


def evaluate(model: ELMAutoencoder, images: Images) -> tuple[dict[str, NDArray[np.float64]], Images]:
    """The quality of every reconstruction, and the first few of them."""
    measures: dict[str, Callable[..., NDArray[Any]]] = {"psnr": psnr, "ssim": ssim}
    measures["ssim_luma"] = partial(ssim, luma=True)
    quality, shown = {name: np.empty(len(images)) for name in measures}, np.empty_like(images[:SHOWN])
    for start in range(0, len(images), _CHUNK):
        at = slice(start, start + _CHUNK)
        made = pixels_of(model.reconstruct(rows_of(images[at])))
        for name, measure in measures.items():
            quality[name][at] = measure(images[at], made)
        if start == 0:
            shown[...] = np.rint(made[:SHOWN])
    return quality, shown


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """Measure by how many bytes the memory of the process grows at most. The list stays empty if it is not Linux."""
    peak: list[int] = []
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def field(name: str) -> int:
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

    try:
        reset.write_text("5", encoding="ascii")  # resets the largest size to the present one
        before = field("VmRSS")
    except OSError:
        yield peak
        return
    yield peak
    peak.append(max(field("VmHWM") - before, 0))  # not below 0, because Linux counts pages with a delay


@lru_cache(maxsize=1)
def read_images(data: str) -> tuple[Images, Images]:
    """Training and test images, (n, 32, 32, 3)."""
    if data == "sample":
        return sample_patches(_SAMPLES[0], split="train"), sample_patches(_SAMPLES[1], split="test")
    return load_cifar10(data, "batch_1")[0], load_cifar10(data, "test")[0]
