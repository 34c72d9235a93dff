"""What are these networks worth on real data, beside the models that a reader would use otherwise?

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/real_data.py            # all tasks, then the page
    python benchmarks/real_data.py --tasks wind-60 wind-250 --quick                    # two splits of some tasks
    python benchmarks/real_data.py --page                                              # only write the tables again

The results of every task go to `benchmarks/real_data.json` as soon as it is done. The tables on the page
`docs/real-data.md` are written from that file. Data come from wheels that are downloaded once (see `wheels.py`).

Every split gives all models the same training and test rows. Models have no knowledge of the test rows: the recommended
networks are fixed in `real_tasks.py`, and the main parameter of a rival is found by three folds of the training rows.
Times are seconds of the processor with one thread, and those of `fit` include that search. The error of a regression is
a root mean square, and that of a classification is the share of wrong labels. Differences to our first network are
tested by a paired t-test over the splits, for regressions with the logarithms of the errors. Where splits cut one small
set of rows again and again, the variance is corrected as in `hyperelm.compare`. Over tables, medians are compared by
Wilcoxon's signed-rank test.

MiniRocket (aeon) and PyRCN run in environments of their own, which are made in `--environments` at the first call. A
rival that cannot be installed or run is listed with the reason.
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
from peers import Failed, environment
from real_page import write_page
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


def run_elsewhere(task: Task, package: str, splits: list[Split], environments: Path) -> list[Run]:
    """All splits in one process of the environment of a package."""
    python = environment(package, environments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, (X, Y, unseen, _) in enumerate(splits):
            np.savez(folder / f"{seed}.in.npz", X=X, Y=Y, unseen=unseen, channels=task.channels)
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


def measure(task: Task, environments: Path) -> dict[str, Any]:
    """The runs of every model, and the reasons why a model has none."""
    splits = [task.split(seed) for seed in range(task.n_splits)]
    models, failures = {}, {}
    for model in task.models:
        start = time.perf_counter()
        try:
            if model.package:
                runs = run_elsewhere(task, model.package, splits, environments)
            else:
                runs = [run_here(task, model, split, seed) for seed, split in enumerate(splits)]
        except Failed as failure:
            failures[model.name] = str(failure)
            print(f"    {model.name:46} {failure}", flush=True)
            continue
        models[model.name] = {"ours": model.ours} | summary(runs)
        print(
            f"    {model.name:46}{np.mean([run.error for run in runs]):9.4f}{time.perf_counter() - start:9.1f} s",
            flush=True,
        )
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
    }


def baseline(task: Task, splits: list[Split]) -> dict[str, Any] | None:
    if task.naive is None:
        return None
    errors = [error(task.naive(unseen), truth, labels=False) for _, _, unseen, truth in splits]
    return {"name": task.baseline, "error": float(np.mean(errors))}


def read_results(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main() -> None:
    names = list(tasks(quick=False))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=names, default=names, metavar="TASK", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="two splits of each task; the page is not written")
    parser.add_argument("--page", action="store_true", help="write the tables of the page from the results, and end")
    parser.add_argument("--json", type=Path, default=RESULTS, help="another file for the results; the page stays")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "hyperelm-peers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # rivals warn of steps that did not converge in inner folds
    if not options.page:
        makers = tasks(quick=options.quick)
        for name in options.tasks:
            task = makers[name]()
            print(f"{name}: {task.title}", flush=True)
            found = measure(task, options.environments)
            if not options.quick:
                results = read_results(options.json) | {name: found}
                ordered = {known: results[known] for known in names if known in results}
                options.json.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    if not options.quick and options.json == RESULTS:
        write_page(read_results(options.json), HERE.parent / "docs" / "real-data.md")


if __name__ == "__main__":
    main()
