"""Auto-encoding of colour images (section 5.3 of the paper).

An image of 32 x 32 pixels is 1,024 numbers with red, green and blue in [-1, +1] as imaginary parts; the real model
takes 3,072 values. There are 450 neurons over an algebra or 600 real ones and no biases, so both have 3,686,400
parameters. Parts: `main`, the paper's table; `scale`, other weight scales; `learnt`, principal components in the
algebra instead of random weights, and plain ones with a code of the same size.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hyperelm import ELMAutoencoder, algebras
from hyperelm.datasets import load_cifar10, sample_patches
from hyperelm.experiments._definition import MAIN, Result, Row, Settings, Unit, naming, seed_of
from hyperelm.metrics import psnr, ssim

MEASURE = "psnr_test"
COMPETE = ("network",)
VARIABLE = "HYPERELM_CIFAR10"  # the environment variable that names the place of the images
SHOWN = 6  # images of each part in the picture grids
_VALUES = 3072  # of an image
_SAMPLES = (2000, 1000)  # patches of the photographs, for training and testing
_CHUNK = 500  # images that are reconstructed at a time

T = TypeVar("T")


def prepare(settings: Settings) -> str:
    """Check the settings, and fix the images."""
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
    train, test = fix_images(settings, read_images)
    settings["digest"] = hashlib.sha256(train.tobytes() + test.tobytes()).hexdigest()
    if settings["data"] != "sample":
        return ""
    return (
        "The images are patches of the two photographs in scikit-learn. For the paper's table, name the folder or "
        f"archive of CIFAR-10 with --data or {VARIABLE}."
    )


def fix_images(settings: Settings, read: Callable[[str], T]) -> T:
    """Write the full name of the place of the images into the settings, and read them."""
    option = "--data" if settings["data"] else VARIABLE
    settings["data"] = settings["data"] or os.environ.get(VARIABLE) or "sample"
    if settings["data"] not in ("sample", "openml"):
        settings["data"] = str(Path(settings["data"]).resolve())
    with naming(path=option):
        return read(settings["data"])


@cache
def _has_principal_components(name: str) -> bool:
    """Whether the library finds principal components in an algebra."""
    try:
        ELMAutoencoder(name, 1, encoder="pca", bias=False, ridge=1.0).fit(np.eye(8))
    except ValueError:
        return False
    return True


def units(settings: Settings) -> Iterator[Unit]:
    def unit(part: str, variant: str, name: str, n_hidden: int, network: int = 0) -> Unit:
        return Unit(part, variant, name, n_hidden, network, 1)

    sizes = {
        name: settings["real_n_hidden" if algebras.get(name).dim == 1 else "n_hidden"] for name in settings["models"]
    }
    yield from (unit(MAIN, "", name, L, n) for n in range(settings["networks"]) for name, L in sizes.items())
    # All digits of a factor, since the run takes it from here.
    factors = [repr(factor).removesuffix(".0") for factor in settings["scale_factors"]]
    yield from (unit("scale", factor, name, L) for factor in factors for name, L in sizes.items())
    if settings["learnt"]:
        yield from (unit("learnt", "pca", name, L) for name, L in sizes.items() if _has_principal_components(name))
        if "real" in sizes:
            # As many numbers in the code as the hypercomplex models have.
            yield unit("learnt", "pca, as large a code", "real", 4 * settings["n_hidden"])


def execute(unit: Unit, settings: Settings) -> Result:
    algebra, network = algebras.get(unit.algebra), unit.first
    seed = seed_of(settings["seed"], unit.algebra, unit.n_hidden, network)
    model = build(unit, settings, seed)
    train, test = (images[: settings["images"] or None] for images in read_images(settings["data"]))
    rows = rows_of(train)
    with _peak_memory() as peak:
        start = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - start
    row: Row = {
        "network": network,
        "seed": seed,
        "encoder": model.encoder,
        "weight_scale": model.weight_scale_,
        "parameters": model.n_parameters_,
        "code": unit.n_hidden * algebra.dim,
    }
    arrays: dict[str, NDArray[Any]] = {}
    for part, images in (("train", train), ("test", test)):
        quality, shown = evaluate(model, images)
        row |= {f"{measure}_{part}": float(values.mean()) for measure, values in quality.items()}
        row |= {f"psnr_deviation_{part}": float(quality["psnr"].std())}
        if unit.part == MAIN and network == 0:
            arrays |= {f"psnr {unit.algebra} {part}": quality["psnr"].astype(np.float32)}
            arrays |= {f"images {unit.algebra} {part}": shown, f"images original {part}": images[:SHOWN]}
    row |= {"train_seconds": seconds, "train_peak_bytes": peak[0] if peak else None}
    return Result([row], arrays)


def build(unit: Unit, settings: Settings, seed: int) -> ELMAutoencoder:
    """The auto-encoder of a run."""
    real, learnt = algebras.get(unit.algebra).dim == 1, unit.part == "learnt"
    scale = settings["real_weight_scale" if real else "weight_scale"]
    scale *= float(unit.variant) if unit.part == "scale" else 1
    return ELMAutoencoder(
        unit.algebra,
        unit.n_hidden,
        encoder="pca" if learnt else "random",
        weight_scale="auto" if learnt else scale,
        bias=False,
        packing="full" if real else "imaginary",
        ridge=0.0,
        random_state=seed,
    )


def rows_of(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pixels in [-1, +1], (n, 3072), the colours of a pixel side by side."""
    rows = images.reshape(len(images), -1) / 127.5
    rows -= 1
    return np.asarray(rows)


def evaluate(
    model: ELMAutoencoder, images: NDArray[np.uint8]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.uint8]]:
    """The quality of every reconstruction, and the first few of them."""
    quality = {name: np.empty(len(images)) for name in ("psnr", "ssim", "ssim_luma")}
    shown = np.empty_like(images[:SHOWN])
    for start in range(0, len(images), _CHUNK):
        at = slice(start, start + _CHUNK)
        made = np.clip((model.reconstruct(rows_of(images[at])) + 1) * 127.5, 0, 255).reshape(images[at].shape)
        quality["psnr"][at] = psnr(images[at], made)
        quality["ssim"][at] = ssim(images[at], made)
        quality["ssim_luma"][at] = ssim(images[at], made, luma=True)
        if start == 0:
            shown[...] = np.rint(made[:SHOWN])
    return quality, shown


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """The most memory that the process takes within, in bytes, beyond that at the beginning, if Linux tells it."""
    peak: list[int] = []
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def field(name: str) -> int:
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

    try:
        reset.write_text("5", encoding="ascii")  # makes the present size the largest so far
        before = field("VmRSS")
    except OSError:
        yield peak
        return
    yield peak
    peak.append(max(field("VmHWM") - before, 0))  # the system counts pages a little late


@lru_cache(maxsize=1)
def read_images(data: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Training and test images, (n, 32, 32, 3)."""
    if data == "sample":
        return sample_patches(_SAMPLES[0], split="train"), sample_patches(_SAMPLES[1], split="test")
    return load_cifar10(data, "batch_1")[0], load_cifar10(data, "test")[0]
