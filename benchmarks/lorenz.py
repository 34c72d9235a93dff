"""How much faster is the Lorenz experiment than with the paper's formulas?

The paper's formulas build Φ_L for training and for prediction, and use NumPy's pseudoinverse. Both ways train the same
networks, on one BLAS thread as in the experiment. They take turns in one process, and the ratios of times count.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from timing import best_times

from hyperelm import Algebra, linalg
from hyperelm.experiments import Unit, load
from hyperelm.experiments import _lorenz as experiment
from hyperelm.experiments._networks import Networks

Array = NDArray[np.float64]


def with_bias(X: Array) -> Array:
    one = np.zeros((len(X), 1, X.shape[2]))
    one[..., 0] = 1
    return np.concatenate([X, one], axis=1)


class PaperNetworks(Networks):
    """The same networks, trained and used by the formulas that the paper prints."""

    def __init__(self, algebra: Algebra, weights: Array) -> None:
        self.algebra, self.weights = algebra, weights

    def fit(self, X: Array, T: Array) -> PaperNetworks:
        self.M = [by_pseudoinverse(self.hidden(W, X), T, self.algebra) for W in self.weights]
        self.parameters = self.weights[0].size + self.M[0].size
        return self

    def predict(self, X: Array) -> Iterator[Array]:
        for W, M in zip(self.weights, self.M):
            H = linalg.left_matrix(self.hidden(W, X), self.algebra)
            yield linalg.from_real(H @ M, self.algebra)

    def hidden(self, W: Array, X: Array) -> Array:
        preactivations = linalg.left_matrix(with_bias(X), self.algebra) @ linalg.to_real(W)
        return with_bias(np.tanh(linalg.from_real(preactivations, self.algebra)))


def by_pseudoinverse(H: Array, Y: Array, algebra: Algebra) -> Array:
    return np.linalg.pinv(linalg.left_matrix(H, algebra)) @ linalg.to_real(Y)


class Sweep:
    """The networks of some units of the experiment, of a class of choice."""

    def __init__(self, units: list[Unit], settings: dict[str, object], networks: type[Networks]) -> None:
        self.units, self.settings, self.networks = units, settings, networks
        self.data = experiment.read_data(settings)

    def __call__(self) -> None:
        with patch.object(experiment, "Networks", self.networks):
            self.gains = [
                row["prediction_gain"]
                for unit in self.units
                for row in experiment.run_networks(unit, self.settings, self.data)
            ]


def solve_jobs(settings: dict[str, object], units: list[Unit]) -> dict[str, Callable[[], object]]:
    """Jobs that solve the same hidden layers in both ways, for one network of every model and size."""
    data = experiment.read_data(settings)
    problems, networks = [], []
    for unit in units:
        layer = experiment.fit(replace(unit, count=1), settings, data, 10 / 3)
        X, T = (experiment.numbers(part, layer.algebra) for part in (data.X, data.y[:, None]))
        problems.append((PaperNetworks(layer.algebra, layer.weights).hidden(layer.weights[0], X), T, layer.algebra))
        networks.append((layer, layer.with_bias(next(layer.codes(X))), T))
    return {
        "ours": lambda: [layer.solve(*problem) for layer, *problem in networks],
        "paper": lambda: [by_pseudoinverse(*problem) for problem in problems],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--networks", type=int, default=3, help="networks of every model and size")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    settings = load("lorenz").settings
    sizes = [11, 17, 23, 29, 35]
    units = [Unit("main", "", name, L, 0, arguments.networks) for L in sizes for name in settings["models"]]
    ours, papers = Sweep(units, settings, Networks), Sweep(units, settings, PaperNetworks)
    with threadpool_limits(1, user_api="blas"):
        times = best_times({"ours": ours, "paper": papers}, arguments.repeats)
        solves = best_times(solve_jobs(settings, units), 5 * arguments.repeats)
        profile = cProfile.Profile()
        profile.runcall(ours)
    runs = len(ours.gains)
    difference = float(np.max(np.abs(np.subtract(ours.gains, papers.gains))))
    sweep, solution, each = times["paper"] / times["ours"], solves["paper"] / solves["ours"], 1e3 * times["ours"] / runs
    print(f"{runs} runs of the sweep and solves of all models, L = {', '.join(map(str, sizes))}")
    print(f"whole sweep: {sweep:6.1f} times faster than the paper's formulas (at least 6)")
    print(f"solve:       {solution:6.1f} times faster than the paper's formulas (at least 10)")
    print(f"gains differ by at most {difference:.1e} dB (at most 1e-6); {each:.1f} ms a run")
    pstats.Stats(profile).sort_stats("tottime").print_stats(14)
    if arguments.json:
        result = {"runs": runs, "sweep": sweep, "solve": solution, "difference": difference, "milliseconds": each}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
