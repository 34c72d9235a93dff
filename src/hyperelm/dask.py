"""Training and prediction on a dask cluster, and experiments on it.

Each partition becomes an accumulator where it is. Accumulators are merged in a tree, and one worker solves::

    partition -> accumulator \\
    partition -> accumulator  -> accumulator \\
    partition -> accumulator /                 -> accumulator -> weights
    ...                                      /

Only accumulators move, whose size does not depend on the number of rows. The pass that leaves rows out also moves the
hidden layer of some rows, of bounded size. A task does not change its arguments. So if a worker is lost, only its own
work has to be done again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from joblib import parallel_config
from sklearn.utils.validation import check_is_fitted

from hyperelm._backend import NUMPY
from hyperelm._estimators.autoencoder import ELMAutoencoder
from hyperelm._estimators.base import BaseELM, fit_source
from hyperelm._estimators.classifier import ELMClassifier
from hyperelm._training.rows import Array, Pass, Rows, Stored, add_all

__all__ = ["fit", "predict"]

_PATIENCE = 10  # seconds that a scheduler has to answer
_MERGED = 4  # accumulators that a task merges
_METHODS = (
    *("predict", "predict_proba", "decision_function", "leverage"),
    *("reconstruct", "transform", "inverse_transform", "score_samples"),
)

E = TypeVar("E", bound=BaseELM)
S = TypeVar("S")
R = TypeVar("R")


def fit(estimator: E, X: Any, y: Any = None, sample_weight: Any = None) -> E:
    """Fit an estimator to rows in a dask collection.

    The result is that of `estimator.fit` on all rows, within rounding, however they are partitioned. Partitions may be
    uneven, empty, or of unknown length; they are never gathered.

    Parameters
    ----------
    estimator : ELMRegressor, ELMClassifier or ELMAutoencoder
        Is fitted, as by its own `fit`.
    X : dask array of shape (n, columns) or (n, features, d), or dask frame
    y : dask array or series of shape (n,), or dask array or frame of more axes; None for an auto-encoder
    sample_weight : dask array or series of shape (n,), optional

    Returns
    -------
    estimator

    Examples
    --------
    >>> import dask.array as da
    >>> import hyperelm.dask
    >>> from hyperelm import ELMRegressor
    >>> X = da.random.default_rng(0).standard_normal((1000, 8), chunks=(250, 8))
    >>> model = hyperelm.dask.fit(ELMRegressor(n_hidden=20, random_state=0), X, X[:, 0] * X[:, 1])
    >>> hyperelm.dask.predict(model, X).shape
    (1000,)
    """
    _check_estimator(estimator)
    if estimator.solver == "svd":
        raise ValueError(
            "`solver` must not be 'svd' on a cluster, where no machine holds all rows. Use 'auto' or 'qr'."
        )
    autoencoder, labels = isinstance(estimator, ELMAutoencoder), isinstance(estimator, ELMClassifier)
    if y is None and not autoencoder:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    source = Partitions(
        _inputs(X),
        None if autoencoder else _Collection(y, "y", labels=labels),
        None if sample_weight is None else _Collection(sample_weight, "sample_weight"),
    )
    if sample_weight is not None and len(sample_weight.shape) != 1:
        raise ValueError(f"`sample_weight` must have one axis, got {len(sample_weight.shape)} axes.")
    if labels and source.first.T.ndim != 1:
        raise ValueError(f"`y` must be labels in one axis, got {source.first.T.ndim} axes.")
    return fit_source(estimator, source, source.X.meta, labels=labels)


def predict(estimator: BaseELM, X: Any, *, method: str | None = None) -> Any:
    """What a fitted estimator makes of rows in a dask collection, as a dask collection.

    Parameters
    ----------
    estimator : ELMRegressor, ELMClassifier or ELMAutoencoder
    X : dask array of shape (n, columns) or (n, features, d), or dask frame
    method : str, optional
        What the estimator is asked for: by default "predict", or "reconstruct" of an auto-encoder; or "predict_proba",
        "decision_function", "leverage", "transform", "inverse_transform" or "score_samples", where it has them.

    Returns
    -------
    dask array, or series or frame with the index of X
        Nothing is computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> import hyperelm.dask
    >>> from hyperelm import ELMClassifier
    >>> X = da.random.default_rng(0).standard_normal((1000, 8), chunks=(250, 8))
    >>> model = hyperelm.dask.fit(ELMClassifier(n_hidden=20, random_state=0), X, X[:, 0] > 0)
    >>> hyperelm.dask.predict(model, X, method="predict_proba").compute().shape
    (1000, 2)
    """
    _check_estimator(estimator)
    check_is_fitted(estimator, "network_")
    method = method or ("reconstruct" if isinstance(estimator, ELMAutoencoder) else "predict")
    known = [name for name in _METHODS if hasattr(estimator, name)]
    if method not in known:
        wanted = ", ".join(map(repr, known))
        raise ValueError(f"`method` must be one of {wanted} for {type(estimator).__name__}, got {method!r}.")
    rows = _inputs(X)
    # The result for a row of zeros shows the axes and the type of all results.
    zeros = np.zeros((1, *rows.meta.shape[1:]), dtype=estimator.hidden_weights_.dtype)
    result = getattr(estimator, method)(type(rows.meta)(zeros, columns=rows.meta.columns) if rows.is_frame else zeros)
    model = _load("dask").delayed(estimator, pure=False, traverse=False)
    if rows.is_frame:
        if result.ndim > 2:
            raise ValueError(f"`X` must be an array where {method} gives {result.ndim} axes. Use X.to_dask_array().")
        empty = _as_frame(result[:0], rows.meta)
        return rows.collection.map_partitions(_predicted, model, method, empty, meta=empty)
    array, axes = rows.collection, result.ndim
    return array.map_blocks(
        _predicted,
        model,
        method,
        result[:0],
        dtype=result.dtype,
        chunks=(array.chunks[0], *((length,) for length in result.shape[1:])),
        drop_axis=list(range(axes, array.ndim)),
        new_axis=list(range(array.ndim, axes)) or None,
        meta=result[:0],
    )


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Send what joblib runs in parallel to the cluster whose scheduler has this address."""
    distributed = _load("distributed")
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(f"The dask scheduler {address!r} cannot be reached: {error}.") from None
    with client, parallel_config(backend="dask"):
        yield


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ImportError("A dask cluster needs the extra 'dask': pip install 'hyperelm[dask]'.") from None


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, BaseELM):
        raise TypeError(
            "`estimator` must be an ELMRegressor, ELMClassifier or ELMAutoencoder, "
            f"got {type(estimator).__name__}. Other steps, such as scaling, are done on the collection before."
        )


# ---------------------------------------------------------------------- collections


class _Collection:
    """A dask array or frame as a list of partitions, each with whole rows."""

    def __init__(self, collection: Any, name: str, *, labels: bool = False) -> None:
        library = type(collection).__module__.partition(".")[0]
        shape = tuple(getattr(collection, "shape", ()))
        if library != "dask" or not hasattr(collection, "to_delayed") or not shape:
            raise TypeError(
                f"`{name}` must be a dask array or frame, got {type(collection).__name__}. Use dask.array.from_array, "
                "or the estimator itself for data on this machine."
            )
        self.name, self.labels = name, labels
        self.is_frame = not hasattr(collection, "rechunk")
        if self.is_frame:
            self.lengths: tuple[float, ...] = (math.nan,) * collection.npartitions
            self.meta = collection._meta
        else:
            if any(map(math.isnan, shape[1:])):
                raise ValueError(f"`{name}` must have a known number of columns, got shape {shape}.")
            collection = collection.rechunk(dict.fromkeys(range(1, len(shape)), -1))
            self.lengths = collection.chunks[0]
            self.meta = np.empty((0, *shape[1:]), collection.dtype)
        self.collection = collection

    def like(self, other: _Collection) -> _Collection:
        """The same rows in the partitions of another collection."""
        if not any(map(math.isnan, (*self.lengths, *other.lengths))):
            if sum(self.lengths) != sum(other.lengths):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{sum(other.lengths)} in `{other.name}`, {sum(self.lengths)} in `{self.name}`."
                )
            return _Collection(self.collection.rechunk({0: other.lengths}), self.name, labels=self.labels)
        if len(self.lengths) != len(other.lengths):
            raise ValueError(
                f"`{self.name}` must have the {len(other.lengths)} partitions of `{other.name}`, whose lengths are not "
                f"known, got {len(self.lengths)}. Repartition it, or call compute_chunk_sizes() of arrays before."
            )
        return self

    def partitions(self) -> list[Any]:
        return list(np.ravel(np.asarray(self.collection.to_delayed(), dtype=object)))


def _inputs(X: Any) -> _Collection:
    rows = _Collection(X, "X")
    if rows.meta.ndim < 2:
        raise ValueError(f"`X` must have shape (n, columns) or (n, features, d), got {rows.meta.ndim} axis.")
    return rows


def _array(part: Any, name: str, labels: bool = False) -> Array:
    """A partition as an array that is checked when its rows are read. A frame gets the type that holds its columns."""
    if hasattr(part, "to_numpy"):
        types = list(part.dtypes) if part.ndim == 2 else [part.dtype]
        # The types of pandas itself may have missing values, which only floats can hold.
        dtype = np.result_type(*types) if all(isinstance(t, np.dtype) for t in types) else np.float64
        part = part.to_numpy() if labels else part.to_numpy(dtype=dtype)
    return Stored(np.asarray(part), name, labels=labels)


class Partitions:
    """Rows on a cluster, as a source of training."""

    once = False

    def __init__(self, X: _Collection, y: _Collection | None, weight: _Collection | None) -> None:
        self.X = X
        self._others = [None if other is None else other.like(X) for other in (y, weight)]
        meta = _array(X.meta, "X")
        self.first = Rows(meta, meta if y is None else _array(y.meta, "y", y.labels), None)
        self._labels = y is not None and y.labels

    def fold(self, work: Pass[S], finish: Callable[[S], R]) -> R:
        dask = _load("dask")
        tool = dask.delayed(work, pure=False, traverse=False)
        inputs = self.X.partitions()
        others = [[None] * len(inputs) if other is None else other.partitions() for other in self._others]
        gather, merge = dask.delayed(_gathered, pure=False), dask.delayed(_merged, pure=False)
        parts = [gather(tool, n, self._labels, *arrays) for n, arrays in enumerate(zip(inputs, *others))]
        while len(parts) > 1:
            parts = [merge(tool, parts[n : n + _MERGED]) for n in range(0, len(parts), _MERGED)]
        return dask.delayed(_finished, pure=False)(finish, parts[0]).compute()


# ---------------------------------------------------------------------- tasks


def _gathered(work: Pass[S], n: int, labels: bool, X: Any, y: Any, weight: Any) -> tuple[int, S]:
    """The number of rows of a partition, and what a pass gathers from them."""
    try:
        for name, part in (("y", y), ("sample_weight", weight)):
            if part is not None and len(part) != len(X):
                raise ValueError(f"`{name}` must have the {len(X)} rows of `X`, got {len(part)}.")
            if hasattr(part, "index") and hasattr(X, "index") and not X.index.equals(part.index):
                raise ValueError(f"`{name}` must have the index of `X`.")
        inputs = _array(X, "X")
        targets = inputs if y is None else _array(y, "y", labels)
        rows = Rows(inputs, targets, None if weight is None else _array(weight, "sample_weight"))
        with NUMPY.at_work(0.0):
            return len(rows), add_all(work, work.begin(), rows)
    except ValueError as error:
        raise ValueError(f"Partition {n}: {error}") from error


def _merged(work: Pass[Any], parts: Sequence[tuple[int, Any]]) -> tuple[int, Any]:
    """What a pass gathers from several partitions. None of them changes: another task may need it again."""
    total = work.begin()
    for _, part in parts:
        total.merge(part)
    return sum(rows for rows, _ in parts), total


def _finished(finish: Callable[[S], R], part: tuple[int, S]) -> R:
    rows, gathered = part
    if rows == 0:
        raise ValueError("`X` must have at least one row, got none in any partition.")
    return finish(gathered)


def _predicted(part: Any, model: BaseELM, method: str, empty: Any) -> Any:
    """What a model makes of a partition; `empty` is what it makes of no rows."""
    if len(part) == 0:
        return empty
    is_frame = hasattr(part, "index")
    result = getattr(model, method)(part if is_frame else np.asarray(part))
    return _as_frame(result, part) if is_frame else result


def _as_frame(result: Any, frame: Any) -> Any:
    """A result as a series or frame with the index of a frame."""
    pandas = import_module("pandas")
    if isinstance(result, pandas.DataFrame):
        return result.set_axis(frame.index)
    return (pandas.Series if result.ndim == 1 else pandas.DataFrame)(result, index=frame.index)
