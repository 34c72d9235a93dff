"""How long does training take on torch tensors compared with NumPy arrays?

The task is the paper's auto-encoder, as in `training.py`: M images of 32 x 32 RGB pixels, 450 hypercomplex neurons on
1,024 pixels with a zero real part, or 600 real neurons on 3,072 values. On a CPU both libraries compute the same
products of planes. The ratio then shows what NumPy's own code path gains by threads on pieces that fit the cache and by
reused memory. With `--device cuda` or another device it shows what an accelerator gains. Jobs take turns in one
process, and the best time of each counts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn needs it before SciPy is imported

import numpy as np
import sklearn
import torch
from timing import best_times
from training import as_real, images, model

from hyperelm import ELMAutoencoder

NAMES = ["real", "klein4", "R[-1,+1]", "quaternions"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    sklearn.set_config(array_api_dispatch=True)

    jobs: dict[str, Callable[[], object]] = {}
    for dtype in (np.float64, np.float32):
        X = images(arguments.rows, dtype)
        for name in NAMES:
            here = as_real(X) if name == "real" else X
            there = torch.asarray(here, device=arguments.device)
            for library, rows in (("numpy", here), ("torch", there)):
                label = f"{name}, {np.dtype(dtype).name}, {library}"
                fitted = model(name, ELMAutoencoder).fit(rows[:1000])
                jobs[f"training {label}"] = lambda name=name, rows=rows: model(name).fit(rows)
                jobs[f"prediction {label}"] = lambda fitted=fitted, rows=rows: fitted.reconstruct(rows).sum().item()
    times = best_times(jobs, arguments.repeats)
    print(f"{'torch on ' + arguments.device + ' / NumPy':48}{'ratio':>8}")
    for name in times:
        if name.endswith("torch"):
            label = name.removesuffix(", torch")
            print(f"{label:48}{times[name] / times[f'{label}, numpy']:8.2f}")


if __name__ == "__main__":
    main()
