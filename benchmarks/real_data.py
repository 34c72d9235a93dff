"""What are these networks worth on real data, beside the models that a reader would use otherwise?

    pip install -e '.[cli]'
    python benchmarks/real_data.py                                     # all tasks, two at a time, then the pages
    python benchmarks/real_data.py --tasks wind-60 wind-250 --quick    # two splits of some tasks; writes nothing
    python benchmarks/real_data.py --page                              # only write the pages again

The results of every task go to `benchmarks/real_data.json` as soon as it is done. All figures of the pages
`docs/real-data.md` and `docs/when.md` are written from that file (see `real_page.py`). Data come from wheels that are
downloaded once (see `wheels.py`). All tasks together take about half an hour on two cores.

Every split gives all models the same training and test rows. Models have no knowledge of the test rows: the recommended
networks are fixed in `real_tasks.py`, and the main parameter of a rival is found by three folds of the training rows.
Times are seconds of the processor with one thread, and those of `fit` include that search. The error of a regression is
a root mean square, and that of a classification is the share of wrong labels. Differences to our first network are
tested by a paired t-test over the splits, for regressions with the logarithms of the errors. Where splits cut one small
set of rows again and again, the variance is corrected as in `hyperelm.compare`. Over tables, medians are compared by
Wilcoxon's signed-rank test.

MiniRocket (aeon), PyRCN and GFDL run in environments of their own, which are made in `--environments` at the first
call. A rival that cannot be installed or run is listed with the reason. So is a task whose data cannot be downloaded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from peers import Failed, environment
from real_page import write_pages
from real_tasks import Split, Task, tasks
from rivals import Model, disk_bytes, n_parameters

HERE = Path(__file__).parent
RESULTS = HERE / "real_data.json"


@dataclass(frozen=True)
class Run:
    """One model on one split. Seconds are those of the processor, and of `predict` for 1,000 rows."""

    error: float
    fit: float
    predict: float
    parameters: int
    bytes: int


def error(predicted: Any, truth: Any, *, labels: bool) -> float:
    if labels:
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((np.reshape(predicted, truth.shape) - truth) ** 2)))


def run_here(task: Task, model: Model, split: Split, seed: int) -> Run:
    X, Y, unseen, truth = split
    assert model.make
    estimator = model.make(seed)
    start = time.process_time()
    estimator.fit(X, Y)
    fitted = time.process_time()
    predicted = estimator.predict(unseen)
    done = time.process_time()
    return Run(
        error(predicted, truth, labels=task.labels),
        fitted - start,
        1000 * (done - fitted) / len(unseen),
        n_parameters(estimator),
        disk_bytes(estimator, ours=model.ours),
    )


def run_elsewhere(task: Task, package: str, splits: list[Split], python: str | Failed) -> list[Run]:
    """All splits in one process of the environment of a package."""
    if isinstance(python, Failed):
        raise python
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, (X, Y, unseen, _) in enumerate(splits):
            np.savez(folder / f"{seed}.in.npz", X=X, Y=Y, unseen=unseen, channels=task.channels, rows=task.streamed)
        command = [python, str(HERE / "elsewhere.py"), package, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[-1])
        return [read_answer(folder / f"{seed}.out.npz", task, split[3]) for seed, split in enumerate(splits)]


def read_answer(path: Path, task: Task, truth: Any) -> Run:
    with np.load(path) as answer:
        return Run(
            error(answer["predicted"], truth, labels=task.labels),
            float(answer["fit"]),
            1000 * float(answer["predict"]) / len(truth),
            int(answer["parameters"]),
            int(answer["size"]),
        )


def summary(runs: list[Run]) -> dict[str, Any]:
    """The errors of all splits, and the medians of the rest."""
    rest = ("fit", "predict", "parameters", "bytes")
    medians = {name: float(f"{np.median([getattr(run, name) for run in runs]):.6g}") for name in rest}
    return {"errors": [float(f"{run.error:.6g}") for run in runs]} | medians


def measure(name: str, quick: bool, pythons: dict[str, str | Failed]) -> dict[str, Any]:
    """The runs of every model of a task, and the reasons why a model has none."""
    warnings.simplefilter("ignore")  # rivals warn of steps that did not converge in inner folds
    begin = time.perf_counter()
    task = tasks(quick=quick)[name]()
    splits = [task.split(seed) for seed in range(task.n_splits)]
    models, failures = {}, {}
    for model in task.models:
        start = time.perf_counter()
        try:
            if model.package:
                runs = run_elsewhere(task, model.package, splits, pythons[model.package])
            else:
                runs = [run_here(task, model, split, seed) for seed, split in enumerate(splits)]
        except Failed as failure:
            failures[model.name] = str(failure)
            print(f"{name:14}{model.name:50}{failure}", flush=True)
            continue
        models[model.name] = {"ours": model.ours} | summary(runs)
        mean, seconds = np.mean([run.error for run in runs]), time.perf_counter() - start
        print(f"{name:14}{model.name:50}{mean:9.4f}{seconds:9.1f} s", flush=True)
    return {
        "title": task.title,
        "labels": task.labels,
        "splits": task.n_splits,
        "ratio": task.ratio,
        "of_tables": task.of_tables,
        "test_rows": len(splits[0][2]),
        "columns": splits[0][0].shape[1],
        "baseline": baseline(task, splits),
        "models": models,
        "failures": failures,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def attempt(name: str, quick: bool, pythons: dict[str, str | Failed]) -> tuple[str, dict[str, Any] | None]:
    """The name of a task and its results; None if its data cannot be downloaded."""
    try:
        return name, measure(name, quick, pythons)
    except subprocess.CalledProcessError:
        print(f"{name:14}skipped: its data cannot be downloaded", flush=True)
        return name, None


def environments(packages: set[str], folder: Path) -> dict[str, str | Failed]:
    """The Python of every package, or the reason why there is none."""
    found: dict[str, str | Failed] = {}
    for package in sorted(packages):
        try:
            found[package] = environment(package, folder)
        except Failed as failure:
            found[package] = failure
    return found


def baseline(task: Task, splits: list[Split]) -> dict[str, Any] | None:
    if task.naive is None:
        return None
    errors = [error(task.naive(unseen), truth, labels=False) for _, _, unseen, truth in splits]
    return {"name": task.baseline, "error": float(np.mean(errors))}


def read_results(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def run(names: list[str], quick: bool, jobs: int, folder: Path, out: Path | None) -> None:
    """Measure tasks, those that took longest in the last run first, so that the jobs end together."""
    makers = tasks(quick=quick)
    pythons = environments({model.package for name in names for model in makers[name]().models} - {""}, folder)
    before = read_results(RESULTS)
    ordered = sorted(names, key=lambda name: before.get(name, {}).get("seconds", np.inf), reverse=True)
    start = time.perf_counter()
    with parallel_config("loky", inner_max_num_threads=1):
        parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        for name, found in parallel(delayed(attempt)(name, quick, pythons) for name in ordered):
            if found and out:
                results = read_results(out) | {name: found}
                known = {name: results[name] for name in makers if name in results}
                out.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(f"{len(names)} tasks in {(time.perf_counter() - start) / 60:.1f} minutes, {jobs} at a time")


def main() -> None:
    names = list(tasks(quick=False))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=names, default=names, metavar="TASK", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="two splits of each task; nothing is written")
    parser.add_argument("--page", action="store_true", help="write the pages from the results, and end")
    parser.add_argument("--json", type=Path, default=RESULTS, help="another file for the results; the pages stay")
    parser.add_argument("--jobs", type=int, default=2, help="tasks at a time, each with one thread")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "hyperelm-peers")
    options = parser.parse_args()
    if not options.page:
        out = None if options.quick else options.json
        run(options.tasks, options.quick, options.jobs, options.environments, out)
    if not options.quick and options.json == RESULTS:
        write_pages(read_results(options.json), HERE.parent / "docs")


if __name__ == "__main__":
    main()
