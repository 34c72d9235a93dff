"""Where does the time of a training go, and what is the least time it could take?

Times the parts of the fit of `training.py`, in the fastest of several fits. Then it times the same matrix products of
planes alone, on the same threads. No training that needs these products and the same solution can be faster than both
together. With `--paper`, all times are shares of the time of the paper's formulas.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from timing import best_times
from training import ALGEBRAS, D, L, images, model, paper_formulas

from hyperelm import algebras
from hyperelm._algebra.forms import gram_plan
from hyperelm._algebra.schemes import scheme
from hyperelm._backend.by_numpy import _sum_products
from hyperelm._backend.workspace import Team, at_work, current_team, pieces
from hyperelm._estimators.base import BaseELM
from hyperelm._solvers.accumulator import chunk_rows
from hyperelm._training import fitting

# The part of the fit that a team of threads works on, by the function that it runs.
TASKS = {
    "_sum_products": "matrix products",
    "form": "planes of inputs and hidden layer",
    "_planes": "planes of the hidden weights",
    "_finish": "back to components, activation",
    "sum_of_squares": "squares, finite values",
}


def parts_of_fit(name: str, X: np.ndarray, repeats: int) -> dict[str, float]:
    """Measure the seconds of each part of the fastest fit; `all` is the whole fit."""
    seconds: dict[str, float] = defaultdict(float)

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            seconds[part] += time.perf_counter() - start
            return result

        return call

    def part_of(function: Any) -> str:
        while isinstance(function, partial):
            function = function.func
        return TASKS.get(getattr(function, "__name__", ""), "other work of the team")

    run, mapped = Team.run, Team.map

    def run_timed(self: Team, tasks: Iterable[Any]) -> None:
        tasks = list(tasks)
        timed(run, part_of(tasks[0] if tasks else None))(self, tasks)

    def map_timed(self: Team, function: Callable[..., Any], arguments: Iterable[Any]) -> list[Any]:
        Team.run = run
        results: list[Any] = timed(mapped, part_of(function))(self, function, arguments)
        Team.run = run_timed
        return results

    Team.run, Team.map = run_timed, map_timed
    fitting._solved = timed(fitting._solved, "solution")
    BaseELM._check_X = timed(BaseELM._check_X, "checks of the input")
    best: dict[str, float] = {"all": np.inf}
    for _ in range(repeats):
        seconds.clear()
        time.sleep(0.15)
        start = time.perf_counter()
        model(name).fit(X)
        seconds["all"] = time.perf_counter() - start
        best = min(best, dict(seconds), key=lambda parts: parts["all"])
    Team.run, Team.map = run, mapped
    best["weights, memory and everything else"] = 2 * best["all"] - sum(best.values())
    return best


def products_alone(name: str, rows: int, repeats: int) -> float:
    """Measure the seconds of the matrix products of a training on so many rows, on planes that were formed before."""
    algebra, rng = algebras.get(name), np.random.default_rng(0)
    m = chunk_rows(algebra, D, L, D, 8)
    layer, cross = (len(scheme(algebra, *parts).terms) for parts in (((1, 2, 3), None), (None, (1, 2, 3))))
    plan = gram_plan(algebra, search=True)
    planes = max(layer, cross)
    x, w = rng.standard_normal((planes, m, D)), rng.standard_normal((planes, L, D))
    h = rng.standard_normal((cross + plan.planes.shape[1], L, m))
    y, totals, squares = np.zeros((layer, L, m)), np.zeros((cross, L, D)), np.zeros((len(plan.sums), L, L))

    def chunk(crew: Team) -> None:
        parts = pieces(L, crew.threads)
        hidden = [([(w[p, at], x[p].T, 1.0)], y[p, at], True) for p in range(layer) for at in parts]
        sums = [([(h[p], x[p], 1.0)], totals[p], False) for p in range(cross)]
        for total, pairs in zip(squares, plan.sums):
            sums.append(([(h[cross + a], h[cross + b].T, c) for a, b, c in pairs], total, False))
        for work in (hidden, sums):
            crew.run([partial(_sum_products, pairs, total, crew, fresh=fresh) for pairs, total, fresh in work])

    with at_work(np.inf):
        return best_times({"chunk": lambda: chunk(current_team())}, 3 * repeats)["chunk"] * rows / m


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algebra", nargs="?", default="quaternions", choices=ALGEBRAS)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--paper", action="store_true", help="compare with the paper's formulas, for quaternions")
    arguments = parser.parse_args()
    X = images(arguments.rows)
    parts = parts_of_fit(arguments.algebra, X, arguments.repeats)
    alone = products_alone(arguments.algebra, arguments.rows, arguments.repeats)
    whole, unit = parts.pop("all"), "training"
    rows = {"training": whole} | dict(sorted(parts.items(), key=lambda part: -part[1]))
    rows |= {"matrix products alone": alone}
    rows |= {"these products and the solution": alone + parts["solution"]}
    if arguments.paper:
        whole, unit = best_times({"paper": lambda: paper_formulas(X)}, 2)["paper"], "paper's formulas"
    print(f"{arguments.algebra:45}share of the time of the {unit}")
    for part, seconds in rows.items():
        print(f"{part:45}{seconds / whole:8.4f}")


if __name__ == "__main__":
    main()
