"""How much faster is `ELMRegressorCV` than scikit-learn's grid search, and is its choice as good?

Both search the same grid of algebras, weight scales, numbers of neurons and ridges, with as many random layers for
every candidate (in the grid search, by `random_state`), and fit the best candidate in the end. The grid search has 5
folds. Both run in one job on one BLAS thread, and take turns in one process; processor time counts. The error is the
root mean square on rows that neither has seen, of a network with the chosen parameters. It is the mean over other
random layers, so that it measures the choice and not a lucky draw.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits
from timing import best_times

from hyperelm import ELMRegressor, ELMRegressorCV
from hyperelm.datasets import lorenz, sample_patches, sliding_windows

Array = NDArray[np.float64]
DRAWS = 2
LAYERS = range(100, 120)  # the seeds of the random layers that measure a choice
FASTER, WORSE = 10.0, 2.0  # the limits: at least so many times faster, at most so many per cent worse


def data_sets() -> Iterator[tuple[str, str, list[Array]]]:
    """Yield the name, the packing, and the training and test parts of inputs and targets."""
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", "full", train_test_split(scale(X), y / y.std(), test_size=0.4, random_state=0)
    # Predict the Lorenz attractor from 3 positions, in steps of 0.05, with 1 % of noise so that a ridge matters.
    positions = scale(lorenz(7000)[500::5])
    positions += 0.01 * np.random.default_rng(0).standard_normal(positions.shape)
    parts = [sliding_windows(part, 3) for part in (positions[:650], positions[650:])]
    yield "Lorenz", "imaginary", [part[n].reshape(len(part[n]), -1) for n in (0, 1) for part in parts]
    # Predict the colour in the middle of a patch of photographs from the eight pixels around it.
    patches = [sample_patches(1000, split=split, size=3) / 127.5 - 1 for split in ("train", "test")]
    flat = [patch.reshape(len(patch), 9, 3) for patch in patches]
    around = [np.delete(pixels, 4, axis=1).reshape(len(pixels), -1) for pixels in flat]
    yield "patches", "imaginary", [*around, *(pixels[:, 4] for pixels in flat)]


def grid() -> dict[str, list[object]]:
    return {
        "algebra": ["real", "quaternions", "R[-1,+1]", "klein4"],
        "n_hidden": [16, 32, 64],
        "weight_scale": ["0.1 auto", "auto"],
        "ridge": [1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0],
    }


def searches(packing: str) -> dict[str, BaseEstimator]:
    every = grid() | {"random_state": list(range(DRAWS))}
    folds = KFold(5, shuffle=True, random_state=0)
    scoring = "neg_mean_squared_error"
    return {
        "grid": GridSearchCV(ELMRegressor(packing=packing), every, cv=folds, scoring=scoring, error_score="raise"),
        "loo": ELMRegressorCV(**grid(), packing=packing, n_draws=DRAWS, random_state=0),
        "gcv": ELMRegressorCV(**grid(), packing=packing, n_draws=DRAWS, random_state=0, scoring="gcv"),
    }


def chosen(search: BaseEstimator) -> dict[str, object]:
    """The parameters with the best score. In a grid search this is the mean score over the random layers."""
    if isinstance(search, ELMRegressorCV):
        return dict(search.best_params_)
    scores: dict[tuple[object, ...], list[float]] = {}
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        scores.setdefault(tuple(params[name] for name in grid()), []).append(score)
    return dict(zip(grid(), max(scores, key=lambda candidate: float(np.mean(scores[candidate])))))


def test_error(params: dict[str, object], packing: str, parts: list[Array]) -> float:
    X, X_test, y, y_test = parts
    squares = [
        np.mean((ELMRegressor(**params, packing=packing, random_state=seed).fit(X, y).predict(X_test) - y_test) ** 2)
        for seed in LAYERS
    ]
    return float(np.sqrt(np.mean(squares)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    candidates = int(np.prod([len(values) for values in grid().values()]))
    print(f"{candidates} candidates, {DRAWS} random layers each; the grid search makes {5 * DRAWS * candidates} fits")
    print(f"{'':10}{'search':>8}{'times faster':>14}{'error':>10}{'to the grid search':>20}  choice")
    results = {}
    with threadpool_limits(1, user_api="blas"):
        for name, packing, parts in data_sets():
            X, _, y, _ = parts
            jobs = searches(packing)
            fits = {kind: partial(job.fit, X, y) for kind, job in jobs.items()}
            times = best_times(fits, arguments.repeats, time.process_time)
            best = {kind: chosen(job) for kind, job in jobs.items()}
            errors = {kind: test_error(params, packing, parts) for kind, params in best.items()}
            for kind, params in best.items():
                ratio, excess = times["grid"] / times[kind], errors[kind] / errors["grid"] - 1
                row = {"times_faster": ratio, "error": errors[kind], "excess": excess}
                results[f"{name}, {kind}"] = row | {key: getattr(v, "name", v) for key, v in params.items()}
                choice = ", ".join(str(results[f"{name}, {kind}"][key]) for key in grid())
                print(f"{name:10}{kind:>8}{ratio:14.1f}{errors[kind]:10.4f}{100 * excess:+18.1f} %  {choice}")
    for kind in ("loo", "gcv"):
        rows = [row for name, row in results.items() if name.endswith(kind)]
        faster, worse = min(row["times_faster"] for row in rows), 100 * max(row["excess"] for row in rows)
        print(f"{kind}: at least {faster:.1f} times faster (limit {FASTER:.0f})")
        print(f"{kind}: error at most {worse:+.1f} % above (limit {WORSE:+.0f} %)")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
