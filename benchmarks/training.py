"""How long does a hypercomplex ELM train compared with a real one, and in how much memory?

The task is the paper's auto-encoder: M = 10,000 images of 32 x 32 RGB pixels, targets = inputs, with 450 hypercomplex
neurons on 1,024 pixels with a zero real part, or 600 real neurons on 3,072 values, no biases and no ridge. "Training"
is `fit`: checks, random weights, hidden layer and solution. "Whole fit" and the memory include the matrices for
prediction, which a model builds when they are first asked for. Jobs take turns in one process, the best time of each
counts, and the ratios matter. Memory is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from timing import best_times

from hyperelm import ELMAutoencoder, ELMRegressor, algebras, linalg
from hyperelm._algebra.blocks import decompose
from hyperelm._algebra.forms import gram_plan
from hyperelm._algebra.schemes import scheme

ALGEBRAS = ["klein4", "tessarines", "R[-1,+1]", "R[+1,-1]", "R[+1,+1]", "quaternions", "paper-Cl(1,1)"]
# Ratios to the real model: the limit, and the goal.
LIMITS = {"klein4": (1.3, 1.2), "tessarines": (2.2, 1.7), "quaternions": (2.7, 2.0), "paper-Cl(1,1)": (2.8, 2.0)}
LIMITS |= dict.fromkeys(("R[-1,+1]", "R[+1,-1]", "R[+1,+1]"), (2.2, 1.7))
D, L, L_REAL = 1024, 450, 600


def images(rows: int, dtype: type = np.float64) -> np.ndarray:
    """Make uniform noise in the layout of the images. Time and memory do not depend on the values."""
    X = np.zeros((rows, D, 4), dtype=dtype)
    X[..., 1:] = np.random.default_rng(0).uniform(-1, 1, (rows, D, 3))
    return X


def as_real(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X[..., 1:].reshape(len(X), 3 * D))


def model(name: str, **parameters: object) -> ELMAutoencoder:
    real = name == "real"
    settings = {"bias": False, "ridge": 0.0, "weight_scale": 30 / 3072 if real else 10 / 1024, "random_state": 0}
    return ELMAutoencoder(name, L_REAL if real else L, **(settings | parameters))


def whole_fit(name: str, X: np.ndarray) -> ELMAutoencoder:
    """Train, and build the matrices for prediction."""
    fitted = model(name).fit(X)
    assert fitted.network_.operators is not None
    return fitted


def small_model(ridge: float | str) -> ELMRegressor:
    """Fit a network of common size: 5,000 rows of 64 columns and one target."""
    X = np.random.default_rng(0).standard_normal((5000, 64))
    return ELMRegressor("quaternions", 400, ridge=ridge, random_state=0).fit(X, np.sin(X[:, :8]).sum(axis=1))


def plain_numpy(X: np.ndarray) -> np.ndarray:
    W = np.random.default_rng(0).standard_normal((X.shape[1], L_REAL)) * (30 / 3072)
    H = np.tanh(X @ W)
    return cho_solve(cho_factor(H.T @ H), H.T @ X)


def paper_formulas(X: np.ndarray) -> np.ndarray:
    """Train over the quaternions by the paper's formulas: build both Φ_L, and take NumPy's pseudoinverse."""
    algebra = algebras.get("quaternions")
    W = np.random.default_rng(0).standard_normal((D, L, 4)) * (10 / 1024)
    H = linalg.from_real(np.tanh(linalg.left_matrix(X, algebra) @ linalg.to_real(W)), algebra)
    return np.linalg.pinv(linalg.left_matrix(H, algebra)) @ linalg.to_real(X)


def operations(name: str, rows: int) -> float:
    """Count the floating-point operations of our products and of the solution."""
    algebra = algebras.get(name)
    inputs, neurons = (3 * D, L_REAL) if name == "real" else (D, L)
    part = None if name == "real" else (1, 2, 3)
    layers = len(scheme(algebra, part, None).terms) + len(scheme(algebra, None, part).terms)
    gram = sum(2 - (a == b) for total in gram_plan(algebra, search=True).sums for a, b, _ in total)
    blocks = [(block.size * neurons, block.copies, block.parts) for block in decompose(algebra)]
    solution = sum(p**2 * (K**3 / 3 + 2 * K**2 * c * inputs) for K, c, p in blocks)
    return 2.0 * rows * layers * inputs * neurons + rows * gram * neurons**2 + solution


def matrix_product_rate() -> Callable[[], object]:
    A = np.random.default_rng(0).standard_normal((2048, 2048))
    out = np.empty_like(A)
    return lambda: np.matmul(A, A, out=out)


def peak_memory(name: str, rows: int) -> float:
    """Measure the bytes that a fit needs besides the data, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", name, "--rows", str(rows)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def measure_memory(name: str, rows: int) -> None:
    X = images(rows)
    if name == "real":
        X = as_real(X)
    model(name).fit(X[:600])  # what is loaded or searched once in a process is not part of a fit

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    fitted = whole_fit(name, X)
    print(status("VmHWM") - before)
    del fitted


def show(rows: list[tuple[str, float, float | None, float | None]]) -> None:
    print(f"{'ratio':58}{'here':>8}{'at most':>9}{'goal':>7}")
    for label, value, limit, goal in rows:
        limits = "" if limit is None else f"{limit:9.2f}{goal:7.2f}" if goal is not None else f"{limit:9.2f}"
        mark = "" if limit is None else "  ok" if value <= limit else "  MISSED"
        print(f"{label:58}{value:8.3f}{limits}{mark}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="leave out the paper's formulas and the memory")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        measure_memory(arguments.memory_of, arguments.rows)
        return

    M = arguments.rows
    X = images(M)
    R = as_real(X)
    X32, R32, double = X.astype(np.float32), R.astype(np.float32), images(2 * M)
    jobs: dict[str, Callable[[], object]] = {
        "rate": matrix_product_rate(),
        "real": lambda: model("real").fit(R),
        "real float32": lambda: model("real").fit(R32),
    }
    for name in ALGEBRAS:
        jobs[name] = lambda name=name: model(name).fit(X)
    if not arguments.quick:
        # Jobs that follow this one are slower for some seconds. So it comes after the jobs that give the main ratios.
        jobs["paper"] = lambda: paper_formulas(X)
    for name in ("quaternions", "klein4"):
        jobs[f"{name} float32"] = lambda name=name: model(name).fit(X32)
        jobs[f"{name} double"] = lambda name=name: model(name).fit(double)
    for name in ["real", *ALGEBRAS]:
        data = R if name == "real" else X
        for ridge in (1e-3, "auto", "gcv"):
            jobs[f"{name} {ridge}"] = lambda name=name, data=data, ridge=ridge: model(name, ridge=ridge).fit(data)
    for ridge in (1e-3, "auto", "gcv"):
        jobs[f"small {ridge}"] = lambda ridge=ridge: small_model(ridge)
    for name in ("real", "klein4", "quaternions"):
        data = R if name == "real" else X
        jobs[f"{name} whole"] = lambda name=name, data=data: whole_fit(name, data)
    # Timed before the paper's formulas run. After them plain NumPy takes a fifth longer, because of its new memory.
    alone = best_times({"plain": lambda: plain_numpy(R), "real": jobs["real"]}, arguments.repeats)
    times = best_times(jobs, arguments.repeats)

    rows: list[tuple[str, float, float | None, float | None]] = []
    for name in ALGEBRAS:
        rows.append((f"training {name} / real", times[name] / times["real"], *LIMITS[name]))
    for name in ("klein4", "quaternions"):
        rows.append((f"whole fit {name} / real", times[f"{name} whole"] / times["real whole"], None, None))
    rows.append(("real / plain NumPy and SciPy", alone["real"] / alone["plain"], 1.0, 0.9))
    for name in ("real", "klein4", "quaternions"):
        rows.append((f"{name}, float32 / float64", times[f"{name} float32"] / times[name], 0.65, None))
    for name in ["real", *ALGEBRAS]:
        fixed = times[f"{name} 0.001"]
        rows.append((f"{name}, ridge by leave-one-out / fixed ridge", times[f"{name} auto"] / fixed, 1.6, None))
        rows.append((f"{name}, ridge by GCV / fixed ridge", times[f"{name} gcv"] / fixed, 1.5, None))
    for ridge, limit in (("auto", 1.8), ("gcv", None)):
        label = f"5,000 x 64, 400 quaternion neurons, 1 target: {ridge} / fixed"
        rows.append((label, times[f"small {ridge}"] / times["small 0.001"], limit, None))
    for name in ("klein4", "quaternions"):
        rows.append((f"{name}, {2 * M:,} rows / {M:,} rows", times[f"{name} double"] / times[name], 2.2, None))
    if not arguments.quick:
        rows.append(("quaternions / the paper's formulas", times["quaternions"] / times["paper"], 0.08, 0.05))
        # The formulas are faster when repeated alone, in memory that they have just used. Both ratios are printed.
        repeated = best_times({"paper": jobs["paper"]}, arguments.repeats)["paper"]
        rows.append(("quaternions / these, repeated alone", times["quaternions"] / repeated, 0.08, 0.05))
        for name in ["real", *ALGEBRAS]:
            size = (R if name == "real" else X).nbytes
            rows.append((f"{name}, peak extra memory / X", peak_memory(name, M) / size, 0.6, 0.4))
        twice = peak_memory("quaternions", 2 * M) / peak_memory("quaternions", M)
        rows.append((f"quaternions, memory of {2 * M:,} rows / {M:,} rows", twice, 1.05, None))
    show(rows)
    rate = 2 * 2048**3 / times["rate"]
    print(f"\nshare of the speed of matrix products measured in this run, {rate / 1e9:.0f} Gflop/s (goal: 0.75)")
    shares = {name: operations(name, M) / times[name] / rate for name in ["real", *ALGEBRAS]}
    for name, share in shares.items():
        print(f"{name:58}{share:8.2f}")
    if arguments.json:
        result = {"rows": M, "ratios": {label: value for label, value, *_ in rows}, "shares": shares}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
