"""How many real matrix products does one hypercomplex product cost?

Prints the time of a 500 x 500 product over several algebras, divided by the time of the d² real products of the
definition. All jobs take turns in one run, and the best time of each counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from timing import best_times

from hyperelm import algebras, linalg

LIMITS = {"quaternions": 1.3, "klein4": 0.5, "R[-1,+1]": 0.75, "R[+1,-1]": 0.75, "R[+1,+1]": 0.75}
OTHERS = ["complex", "tessarines", "paper-Cl(1,1)", "octonions"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    size = arguments.size
    rng = np.random.default_rng(0)
    real = rng.standard_normal((2, size, size))
    jobs: dict[str, Callable[[], object]] = {"real": lambda: [real[0] @ real[1] for _ in range(16)]}
    for name in [*LIMITS, *OTHERS]:
        algebra = algebras.get(name)
        A, B = rng.standard_normal((2, size, size, algebra.dim))
        for method in ("auto", "left", "right", "blocks"):
            jobs[f"{name} {method}"] = lambda A=A, B=B, algebra=algebra, method=method: linalg.matmul(
                A, B, algebra, method=method
            )
    times = best_times(jobs, arguments.repeats)
    print(f"time of a {size} x {size} product / time of its d² real products\n")
    print(f"{'algebra':16}{'auto':>8}{'limit':>8}{'left':>8}{'right':>8}{'blocks':>8}")
    for name in [*LIMITS, *OTHERS]:
        unit = times["real"] * algebras.get(name).dim ** 2 / 16
        ratio = {m: times[f"{name} {m}"] / unit for m in ("auto", "left", "right", "blocks")}
        limit = f"{LIMITS[name]:8.2f}" if name in LIMITS else " " * 8
        print(f"{name:16}{ratio['auto']:8.2f}{limit}{ratio['left']:8.2f}{ratio['right']:8.2f}{ratio['blocks']:8.2f}")


if __name__ == "__main__":
    main()
