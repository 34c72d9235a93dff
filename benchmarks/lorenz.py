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
from pathlib import Path

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


class PaperModel(experiment.Model):
    """The same networks, trained and used by the formulas that the paper prints."""

    def fit(self, X: Array, y: Array) -> PaperModel:
        self.W, numbers, targets = self.draw(X), self.numbers(X), self.numbers(y[:, None])
        self.M = [by_pseudoinverse(self.hidden(W, numbers), targets, self.algebra) for W in self.W]
        self.parameters = self.W[0].size + self.M[0].size
        return self

    def predict(self, X: Array) -> Iterator[Array]:
        for W, M in zip(self.W, self.M):
            H = linalg.left_matrix(self.hidden(W, self.numbers(X)), self.algebra)
            yield self.positions(linalg.from_real(H @ M, self.algebra))

    def hidden(self, W: Array, X: Array) -> Array:
        preactivations = linalg.left_matrix(with_bias(X), self.algebra) @ linalg.to_real(W)
        return with_bias(np.tanh(linalg.from_real(preactivations, self.algebra)))


def by_pseudoinverse(H: Array, Y: Array, algebra: Algebra) -> Array:
    return np.linalg.pinv(linalg.left_matrix(H, algebra)) @ linalg.to_real(Y)


class Sweep:
    """The networks of some units of the experiment, with a model of choice."""

    def __init__(self, units: list[Unit], settings: dict[str, object], model: type[experiment.Model]) -> None:
        self.units, self.settings, self.model = units, settings, model
        self.data = experiment.read_data(settings)

    def __call__(self) -> None:
        self.gains = [
            row["prediction_gain"]
            for unit in self.units
            for row in experiment.run_networks(unit, self.settings, self.data, model=self.model)
        ]


def solve_jobs(settings: dict[str, object], sizes: list[int]) -> dict[str, Callable[[], object]]:
    """Jobs that solve the same hidden layers in both ways, for every model and size."""
    data = experiment.read_data(settings)
    problems, networks = [], []
    for name in settings["models"]:
        for L in sizes:
            model = PaperModel(name, L, 10 / 3, [0])
            W, X, T = model.draw(data.X), model.numbers(data.X), model.numbers(data.y[:, None])
            problems.append((model.hidden(W[0], X), T, model.algebra))
            layer = Networks(model.algebra, W)
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
    ours, papers = Sweep(units, settings, experiment.Model), Sweep(units, settings, PaperModel)
    with threadpool_limits(1, user_api="blas"):
        times = best_times({"ours": ours, "paper": papers}, arguments.repeats)
        solves = best_times(solve_jobs(settings, sizes), 5 * arguments.repeats)
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
