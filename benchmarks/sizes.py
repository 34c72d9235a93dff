"""How long does training take for rows, unknowns, targets and algebras of many sizes?

Every case is timed beside plain NumPy with as many real components: H = tanh(XW), HᵀH, HᵀT and a Cholesky solution with
a fixed ridge. The printed ratio is the time of `fit` here over that of plain NumPy. Inputs have 16 columns. Both run on
one thread, take turns, and the best time of each counts.

    python benchmarks/sizes.py --quick      the cases with a limit
    python benchmarks/sizes.py              these and many others, the worst ratios last
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits
from timing import best_times

from hyperelm import ELMRegressor, algebras

COLUMNS = 16
FIXED = 1.0  # ridge; one so small that `gram` cannot be trusted with it would time `qr`
NAMES = {1: "real", 2: "complex", 4: "quaternions", 8: "octonions", 16: "sedenions"}
_LARGEST = 6e10  # multiply-adds of plain NumPy, beyond which a case takes too long


class Case(NamedTuple):
    """One problem: `components` are the neurons times the dimension of the algebra."""

    rows: int
    components: int
    dim: int = 1
    targets: int = 1
    ridge: float | str = "auto"
    limit: float | None = None

    def __str__(self) -> str:
        neurons, name = self.components // self.dim, NAMES[self.dim]
        ridge = "chosen" if isinstance(self.ridge, str) else "fixed"
        return f"{self.rows:,} rows, {neurons:,} {name} neurons, {self.targets:,} targets, ridge {ridge}"

    @property
    def work(self) -> float:
        """Count the multiply-adds of plain NumPy."""
        return self.components * (self.rows * (COLUMNS + self.targets + self.components / 2) + self.components**2 / 6)


WITH_LIMIT = [
    Case(500, 1600, 1, limit=1.5),
    Case(500, 1600, 4, limit=1.2),
    Case(500, 1600, 8, limit=2.0),
    Case(500, 1600, 1, ridge=FIXED, limit=0.6),
    Case(5000, 1600, 1, limit=1.6),
    Case(5000, 1600, 8, limit=1.5),
    Case(500, 400, 1, limit=2.0),
]


def others() -> Iterator[Case]:
    """Give rows and components on a grid, then more targets, then more algebras."""
    for ridge in (FIXED, "auto"):
        for rows in (200, 1000, 5000, 20_000, 50_000):
            for components in (50, 200, 800, 2400, 5000):
                yield Case(rows, components, ridge=ridge)
        for rows, components in ((200, 800), (1000, 200), (5000, 800), (1000, 2400)):
            for targets in (10, 100, 1000):
                yield Case(rows, components, targets=targets, ridge=ridge)
            for dim in (2, 4, 8, 16):
                yield Case(rows, components, dim, ridge=ridge)
                yield Case(rows, components, dim, 100, ridge=ridge)


def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Make inputs, and targets that are smooth functions of them with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((case.rows, COLUMNS))
    Y = np.sin(X @ rng.standard_normal((COLUMNS, case.targets)) / COLUMNS**0.5)
    return X, Y + 0.1 * rng.standard_normal(Y.shape)


def plain(case: Case, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    W = np.random.default_rng(0).standard_normal((COLUMNS, case.components)) / COLUMNS**0.5
    H = np.tanh(X @ W)
    gram = H.T @ H
    gram.flat[:: len(gram) + 1] += FIXED
    return cho_solve(cho_factor(gram, overwrite_a=True, check_finite=False), H.T @ Y)


def here(case: Case, X: np.ndarray, Y: np.ndarray) -> ELMRegressor:
    algebra, neurons = algebras.get(NAMES[case.dim]), case.components // case.dim
    return ELMRegressor(algebra, neurons, ridge=case.ridge, random_state=0).fit(X, Y)


def ratio(case: Case, repeats: int, clock: Callable[[], float]) -> float:
    X, Y = data(case)
    jobs = {"plain": lambda: plain(case, X, Y), "here": lambda: here(case, X, Y)}
    times = best_times(jobs, repeats, clock)
    return times["here"] / times["plain"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the cases with a limit")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst ratios to print again")
    parser.add_argument("--only", default="", help="only cases whose description has this text")
    arguments = parser.parse_args()
    cases = WITH_LIMIT if arguments.quick else [*WITH_LIMIT, *(case for case in others() if case.work < _LARGEST)]
    found: list[tuple[float, Case]] = []
    print(f"{'time / plain NumPy':72}{'here':>8}{'at most':>9}")
    with threadpool_limits(1):
        for case in cases:
            if arguments.only not in str(case):
                continue
            repeats = arguments.repeats if case.work < 3e9 else max(1, arguments.repeats // 3)
            value = ratio(case, repeats, time.process_time)
            found.append((value, case))
            mark = "" if case.limit is None else f"{case.limit:9.1f}{'  ok' if value <= case.limit else '  MISSED'}"
            print(f"{case!s:72}{value:8.2f}{mark}", flush=True)
    if not arguments.quick:
        print("\nthe worst")
        for value, case in sorted(found, reverse=True)[: arguments.worst]:
            print(f"{case!s:72}{value:8.2f}")


if __name__ == "__main__":
    main()
