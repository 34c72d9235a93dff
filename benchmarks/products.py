"""How long do single products of hypercomplex numbers take?

Prints the time of `Algebra.multiply` over several algebras, divided by that of numpy-quaternion where it is installed,
and by that of a product of as many quaternions with the formula in NumPy. All jobs take turns in one run, and the best
time of each counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import best_times

from hyperelm import algebras

NAMES = ["quaternions", "tessarines", "R[-1,+1]", "R[+1,-1]", "R[+1,+1]", "Cl(1,1)", "klein4", "paper-Cl(1,1)"]
OTHERS = ["complex", "octonions", "Cl(3,0)", "sedenions"]


def by_formula(x: Any, y: Any) -> Any:
    """Multiply quaternions, (n, 4), as one writes it in NumPy."""
    (a, b, c, d), (e, f, g, h) = x.T, y.T
    return np.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        axis=-1,
    )


def compiled(x: Any, y: Any) -> Callable[[], object] | None:
    """Return the product of numpy-quaternion, if it is installed."""
    try:
        import quaternion
    except ImportError:
        return None
    a, b = quaternion.as_quat_array(x), quaternion.as_quat_array(y)
    return lambda: a * b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, arguments.numbers, 4))
    jobs: dict[str, Callable[[], object]] = {"formula": lambda: by_formula(x, y)}
    if (product := compiled(x, y)) is not None:
        jobs["numpy-quaternion"] = product
    units = [*jobs]
    for name in [*NAMES, *OTHERS]:
        algebra = algebras.get(name)
        a, b = rng.standard_normal((2, arguments.numbers, algebra.dim)).astype(arguments.dtype)
        jobs[name] = lambda a=a, b=b, algebra=algebra: algebra.multiply(a, b)
    times = best_times(jobs, arguments.repeats)
    print(f"time of {arguments.numbers:,} single products in {arguments.dtype} / time of quaternions in float64 by\n")
    print(f"{'':16}" + "".join(f"{unit:>18}" for unit in units))
    for name in [*NAMES, *OTHERS]:
        print(f"{name:16}" + "".join(f"{times[name] / times[unit]:18.2f}" for unit in units))


if __name__ == "__main__":
    main()
