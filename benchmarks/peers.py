"""How fast is hyperelm compared with other packages that do the same work?

Training: 10,000 rows of 3,072 values, 600 tanh neurons, targets = inputs. Products: quaternions, one by one and as
matrices. Every package is installed from PyPI into a virtual environment of its own (in `--cache`), where a worker
process waits. A line on its input means "do the work once more", and it answers with the seconds. So all packages take
turns in one run, and the best time of each counts. A package that cannot be installed or run is listed with the reason.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "hyperelm"
ROWS, COLUMNS, NEURONS = 10_000, 3_072, 600
NUMBERS, SIDE = 100_000, 64
SEED = 0
# What is installed before a package: of torch, an index may have this version as a build for CPUs alone.
BEFORE = {"pyrcn": ["torch==2.13.0"]}
MINOR_VERSIONS = {"gfdl": range(12, 16)}  # of Python 3, for packages that do not work with every one that hyperelm does
SLOW = 10.0  # a package that takes so many times as long as hyperelm is timed once

Job = Callable[[], Any]


@dataclass
class Task:
    """One kind of work, and the packages that do it."""

    title: str
    jobs: dict[str, str]  # label: package
    times: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


TASKS = {
    "train": Task(
        f"training on {ROWS:,} x {COLUMNS:,}, {NEURONS} tanh neurons, targets = inputs",
        {OURS: OURS, "pyrcn": "pyrcn", "hpelm": "hpelm", "intelelm": "intelelm", "pyoselm": "pyoselm"},
    ),
    "products": Task(
        f"{NUMBERS:,} products of two quaternions",
        {OURS: OURS, "numpy-quaternion": "numpy-quaternion", "quaternionic": "quaternionic", "clifford": "clifford"},
    ),
    "matrices": Task(
        f"a product of two {SIDE} x {SIDE} matrices of quaternions",
        {OURS: OURS, "numpy-quaternion": "numpy-quaternion", "quaternionic": "quaternionic", "clifford": "clifford"},
    ),
}


# ---------------------------------------------------------------------- the worker


def prepare(task: str, package: str) -> tuple[Job, Job]:
    """Return the work that is timed, and a function whose value shows that all packages do the same work."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    if task == "train":
        X = rng.uniform(-1, 1, (ROWS, COLUMNS))
        train = TRAININGS[package](X)

        def residual() -> float:
            """The root mean square error on training rows. It differs between packages by the random weights only."""
            predicted = train()(X[:1000])
            return float(np.sqrt(np.mean((predicted - X[:1000]) ** 2)))

        return train, residual
    shape = (NUMBERS, 4) if task == "products" else (SIDE, SIDE, 4)
    multiply, to_array = PRODUCTS[package](rng.standard_normal(shape), rng.standard_normal(shape), task == "matrices")
    return multiply, lambda: float(np.linalg.norm(to_array(multiply())))


def _hyperelm_training(X: Any) -> Job:
    from hyperelm import ELMRegressor

    return lambda: (
        ELMRegressor("real", NEURONS, weight_scale=30 / COLUMNS, ridge=0, random_state=SEED).fit(X, X).predict
    )


def _pyrcn_training(X: Any) -> Job:
    from pyrcn.base.blocks import InputToNode
    from pyrcn.extreme_learning_machine import ELMRegressor

    def train() -> Any:
        layer = InputToNode(
            hidden_layer_size=NEURONS, input_activation="tanh", input_scaling=30 / COLUMNS, random_state=SEED
        )
        return ELMRegressor(input_to_node=layer).fit(X, X).predict

    return train


def _hpelm_training(X: Any) -> Job:
    from hpelm import ELM

    def train() -> Any:
        model = ELM(COLUMNS, COLUMNS)
        model.add_neurons(NEURONS, "tanh")
        model.train(X, X, "r")
        return model.predict

    return train


def _intelelm_training(X: Any) -> Job:
    from intelelm import ElmRegressor

    return lambda: ElmRegressor(layer_sizes=(NEURONS,), act_name="tanh", seed=SEED).fit(X, X).predict


def _pyoselm_training(X: Any) -> Job:
    from pyoselm import ELMRegressor

    return lambda: ELMRegressor(n_hidden=NEURONS, activation_func="tanh", random_state=SEED).fit(X, X).predict


def _hyperelm_product(x: Any, y: Any, matrices: bool) -> tuple[Job, Callable[[Any], Any]]:
    from hyperelm import algebras, linalg

    quaternions = algebras.get("quaternions")
    if matrices:
        return lambda: linalg.matmul(x, y, quaternions), lambda z: z
    return lambda: quaternions.multiply(x, y), lambda z: z


def _numpy_quaternion_product(x: Any, y: Any, matrices: bool) -> tuple[Job, Callable[[Any], Any]]:
    import quaternion

    a, b = quaternion.as_quat_array(x), quaternion.as_quat_array(y)
    if matrices:  # neither `@` nor `dot` works for its type
        return lambda: (a[:, :, None] * b).sum(axis=1), quaternion.as_float_array
    return lambda: a * b, quaternion.as_float_array


def _quaternionic_product(x: Any, y: Any, matrices: bool) -> tuple[Job, Callable[[Any], Any]]:
    import quaternionic

    a, b = quaternionic.array(x), quaternionic.array(y)
    if matrices:  # `@` does not work for its type
        return lambda: (a[:, :, None] * b).ndarray.sum(axis=1), lambda z: z
    return lambda: a * b, lambda z: z.ndarray


def _clifford_product(x: Any, y: Any, matrices: bool) -> tuple[Job, Callable[[Any], Any]]:
    """Quaternions as the even part of Cl(3): i = -e23, j = e13, k = -e12."""
    import numpy as np
    from clifford import Cl, MVArray

    layout, blades = Cl(3)
    units = [1 + 0 * blades["e1"], -blades["e23"], blades["e13"], -blades["e12"]]
    basis = np.stack([unit.value for unit in units])

    def numbers(array: Any) -> Any:
        values = array.reshape(-1, 4) @ basis
        return MVArray([layout.MultiVector(value) for value in values]).reshape(array.shape[:-1])

    def components(z: Any) -> Any:
        return np.stack([item.value for item in z.ravel()]) @ basis.T

    a, b = numbers(x), numbers(y)
    if matrices:
        return lambda: np.matmul(a.view(np.ndarray), b.view(np.ndarray)), components
    return lambda: a * b, components


TRAININGS: dict[str, Callable[[Any], Job]] = {
    OURS: _hyperelm_training,
    "pyrcn": _pyrcn_training,
    "hpelm": _hpelm_training,
    "intelelm": _intelelm_training,
    "pyoselm": _pyoselm_training,
}
PRODUCTS: dict[str, Callable[[Any, Any, bool], tuple[Job, Callable[[Any], Any]]]] = {
    OURS: _hyperelm_product,
    "numpy-quaternion": _numpy_quaternion_product,
    "quaternionic": _quaternionic_product,
    "clifford": _clifford_product,
}


def work(task: str, package: str) -> None:
    """Describe this worker in a first line, then answer every line of the input with the seconds of one more turn."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # what packages print must not mix with the answers
    job, check = prepare(task, package)
    start = time.perf_counter()
    checked = check()
    about = {
        "version": importlib.metadata.version(package),
        "check": checked,
        "first": time.perf_counter() - start,
    }
    print(json.dumps(about), file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        job()
        print(time.perf_counter() - start, file=answers, flush=True)


# ---------------------------------------------------------------------- the process that asks the workers


class Failed(Exception):
    """The reason why a package could not be timed, in one line."""


class Worker:
    """A process in the environment of a package."""

    def __init__(self, python: str, task: str, package: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (`close` closes it, with the process)
        self._process = subprocess.Popen(
            [python, __file__, "--work", task, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.about: dict[str, Any] = json.loads(self._answer())

    def turn(self) -> float:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            lines = [text for text in self._errors.read().splitlines() if text.strip()]
            raise Failed(lines[-1].strip() if lines else f"ended with {self._process.returncode}")
        return line

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


def interpreter(package: str) -> str:
    """Return the Python to make an environment with: this one if the package works with it, or another one found."""
    if package not in MINOR_VERSIONS or sys.version_info.minor in MINOR_VERSIONS[package]:
        return sys.executable
    names = [f"python3.{minor}" for minor in MINOR_VERSIONS[package]]
    others = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(name) for name in names] + [
        str(path) for name in names for path in others.glob(f"*/bin/{name}")
    ]
    for python in filter(None, found):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    raise Failed(f"needs Python 3.{MINOR_VERSIONS[package][0]} or newer, which is not installed here")


def environment(package: str, cache: Path) -> str:
    """Return the Python of a virtual environment that has the package; hyperelm's is the one that runs this."""
    if package == OURS:
        return sys.executable
    home = cache / package
    python, done = home / "bin" / "python", home / ".installed"
    if not done.exists():
        subprocess.run([interpreter(package), "-m", "venv", "--clear", str(home)], check=True)
        pip = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *BEFORE.get(package, []), package],
            capture_output=True,
            text=True,
            check=False,
        )
        if pip.returncode:
            lines = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")] or ["ERROR: unknown"]
            raise Failed(f"cannot be installed: {lines[-1].removeprefix('ERROR: ')}")
        done.touch()
    return str(python)


def start(task: Task, name: str, cache: Path) -> dict[str, Worker]:
    workers: dict[str, Worker] = {}
    for label, package in task.jobs.items():
        try:
            workers[label] = Worker(environment(package, cache), name, package)
        except Failed as failure:
            task.failures[label] = str(failure)
    return workers


def measure(task: Task, workers: dict[str, Worker], repeats: int) -> None:
    """Let all workers take turns. A package ten times slower than hyperelm is timed by its first call only."""
    task.times = {label: worker.about["first"] for label, worker in workers.items()}
    for _ in range(repeats):
        for label, worker in list(workers.items()):
            if task.times[label] > max(SLOW * task.times[OURS], 1.0):
                continue
            try:
                seconds = worker.turn()
            except Failed as failure:
                task.failures[label] = str(failure)
                del workers[label]
                continue
            task.times[label] = min(seconds, task.times[label])


def show(task: Task, abouts: dict[str, dict[str, Any]]) -> None:
    print(f"\n{task.title}\n")
    print(f"{'':20}{'version':>12}{'seconds':>12}{'to hyperelm':>14}   check")
    for label in task.jobs:
        if label in task.failures:
            print(f"{label:20}    {task.failures[label]}")
            continue
        about, seconds = abouts[label], task.times[label]
        ratio = seconds / task.times[OURS]
        print(f"{label:20}{about['version']:>12}{seconds:12.4f}{ratio:14.2f}   {about['check']:.6g}")


def main(names: Iterable[str], cache: Path, repeats: int, out: Path | None) -> None:
    result = {}
    for name in names:
        task = TASKS[name]
        workers = start(task, name, cache)
        abouts = {label: worker.about for label, worker in workers.items()}
        measure(task, workers, repeats)
        for worker in workers.values():
            worker.close()
        show(task, abouts)
        ratios = {label: seconds / task.times[OURS] for label, seconds in task.times.items()}
        result[name] = {"title": task.title, "ratios": ratios, "failures": task.failures, "workers": abouts}
    if out:
        out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hyperelm-peers")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
    else:
        main(arguments.tasks, arguments.cache, arguments.repeats, arguments.json)
