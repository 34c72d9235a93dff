"""Training on dask collections: the fit in memory, however the rows are partitioned and whichever worker is lost."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from dask.delayed import Delayed
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hyperelm.dask
from helpers import needs_sigkill
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR

ROWS = 200
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, 8))
Y = np.tanh(X[:, :3] @ RNG.standard_normal((3, 4)))
LABELS = np.where(Y[:, 0] > 0.3, "up", np.where(Y[:, 1] > 0, "down", "level"))
WEIGHT = RNG.uniform(0.5, 2, ROWS)
OPTIONS = {"n_hidden": 6, "random_state": 0}


@pytest.fixture
def here():
    """All tasks in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(array, lengths, columns=None):
    return da.from_array(array, chunks=(lengths, *(columns or array.shape[axis] for axis in range(1, array.ndim))))


PARTITIONS = {
    "one": (ROWS,),
    "even": (50,) * 4,
    "uneven": (3, 120, 1, 70, 6),
    "empty": (0, 90, 0, 0, 110, 0),
    "rows": (1,) * 5 + (195,),
}


# ---------------------------------------------------------------------- the same as in memory


TARGETS = {"table": Y, "vector": Y[:, 0], "numbers": Y.reshape(ROWS, 1, 4)}
PARAMETERS = [
    {"weight_scale": 0.3, "ridge": 0.1},
    {"weight_scale": "paper", "ridge": 0.0},
    {"solver": "qr"},
    {"solver": "gram", "ridge": 1e-3},
    {"direct_link": True, "bias": False},
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("partitions", "target", "options"),
    [
        *((partitions, target, {}) for partitions in PARTITIONS for target in TARGETS),
        *((partitions, "table", options) for partitions in ("uneven", "empty") for options in PARAMETERS),
    ],
    ids=str,
)
def test_regression(partitions, target, options):
    lengths, target = PARTITIONS[partitions], TARGETS[target]
    expected = ELMRegressor(**OPTIONS | options).fit(X, target, WEIGHT)
    model = ELMRegressor(**OPTIONS | options)
    rows = chunked(X, lengths)
    assert hyperelm.dask.fit(model, rows, chunked(target, lengths), chunked(WEIGHT, lengths)) is model
    assert model.weight_scale_ == pytest.approx(expected.weight_scale_, rel=1e-14)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-10)
    assert (model.rank_, model.n_parameters_, model.n_features_in_) == (
        expected.rank_,
        expected.n_parameters_,
        8,
    )
    outputs = hyperelm.dask.predict(model, rows)
    assert outputs.shape == target.shape
    assert outputs.chunks[0] == lengths
    assert_allclose(outputs.compute(), model.predict(X), atol=1e-12)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("readout", ["learned", "free"])
@pytest.mark.parametrize("ridge", ["auto", "gcv", 0.1])
def test_readouts(readout, ridge):
    model = ELMRegressor("quaternions", readout=readout, ridge=ridge, weight_scale=0.3, **OPTIONS)
    here, there = clone(model).fit(X, Y), clone(model)
    hyperelm.dask.fit(there, chunked(X, (50,) * 4), chunked(Y, (50,) * 4))
    assert_allclose(there.predict(X), here.predict(X), atol=1e-5)


@pytest.mark.usefixtures("here")
@given(cuts=st.lists(st.integers(0, ROWS), max_size=20).map(sorted), others=st.lists(st.integers(0, ROWS), max_size=5))
def test_partitions_change_nothing(cuts, others):
    """Those of the targets may be others."""

    def lengths(cuts):
        return tuple(int(n) for n in np.diff([0, *sorted(cuts), ROWS]))

    options = OPTIONS | {"weight_scale": 0.3, "ridge": 0.1}
    model = hyperelm.dask.fit(ELMRegressor(**options), chunked(X, lengths(cuts)), chunked(Y, lengths(others)))
    assert_allclose(model.predict(X), ELMRegressor(**options).fit(X, Y).predict(X), atol=1e-11)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_precision(dtype):
    pixels = np.clip(40 * X + 128, 0, 255).astype(dtype)
    model = hyperelm.dask.fit(ELMRegressor(**OPTIONS), chunked(pixels, PARTITIONS["uneven"]), chunked(Y, (ROWS,)))
    assert model.output_weights_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    outputs = hyperelm.dask.predict(model, chunked(pixels, (ROWS,)))
    assert outputs.dtype == outputs.compute().dtype == model.output_weights_.dtype


@pytest.mark.usefixtures("here")
def test_columns_in_chunks_and_numbers():
    expected = ELMRegressor(**OPTIONS).fit(X, Y).predict(X)
    rows = chunked(X, (70, 130), columns=(3, 5))
    model = hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows, chunked(Y, (70, 130), columns=2))
    assert_allclose(hyperelm.dask.predict(model, rows).compute(), expected, atol=1e-10)
    numbers = X.reshape(ROWS, 2, 4)
    rows = da.from_array(numbers, chunks=(70, 1, 2))
    model = hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows, chunked(Y, (ROWS,)))
    assert_allclose(hyperelm.dask.predict(model, rows).compute(), expected, atol=1e-10)


@pytest.mark.usefixtures("here")
def test_partitions_of_unknown_length():
    kept = X[:, 0] > 0.2
    rows, targets = chunked(X, (60, 0, 140)), chunked(Y, (60, 0, 140))
    chosen = rows[:, 0] > 0.2
    assert np.isnan(rows[chosen].shape[0])
    model = hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows[chosen], targets[chosen])
    assert_allclose(model.predict(X), ELMRegressor(**OPTIONS).fit(X[kept], Y[kept]).predict(X), atol=1e-10)
    assert_allclose(hyperelm.dask.predict(model, rows[chosen]).compute(), model.predict(X[kept]), atol=1e-12)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("class_weight", [None, "balanced", {"up": 1, "down": 2, "level": 3}], ids=str)
def test_classification(class_weight):
    """The first partition has one class, and the second has none."""
    order = np.argsort(LABELS, kind="stable")
    lengths = (5, 0, 100, 95)
    expected = ELMClassifier(**OPTIONS, class_weight=class_weight).fit(X[order], LABELS[order], WEIGHT)
    model = ELMClassifier(**OPTIONS, class_weight=class_weight)
    rows = chunked(X[order], lengths)
    hyperelm.dask.fit(model, rows, chunked(LABELS[order], lengths), chunked(WEIGHT, (ROWS,)))
    assert_array_equal(model.classes_, expected.classes_)
    assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-10)
    assert_array_equal(hyperelm.dask.predict(model, rows).compute(), model.predict(X[order]))
    probabilities = hyperelm.dask.predict(model, rows, method="predict_proba")
    assert probabilities.shape == (ROWS, 3)
    assert_allclose(probabilities.compute(), model.predict_proba(X[order]), atol=1e-12)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-7)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("ridge", ["auto", 0.1])
def test_intervals(ridge):
    expected = ELMRegressor("real", 10, ridge=ridge, random_state=0).fit(X, Y, WEIGHT)
    model = ELMRegressor("real", 10, ridge=ridge, random_state=0)
    rows = chunked(X, (5, 0, 100, 95))
    hyperelm.dask.fit(model, rows, chunked(Y, (ROWS,)), chunked(WEIGHT, (ROWS,)))
    assert_allclose(model.predict_interval(X, joint=True), expected.predict_interval(X, joint=True), rtol=1e-5)
    leverages = hyperelm.dask.predict(model, rows, method="leverage")
    assert_allclose(leverages.compute(), expected.leverage(X), rtol=1e-5)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("encoder", ["random", "orthogonal", "pca"])
def test_auto_encoding(encoder):
    options = {"n_hidden": 2, "encoder": encoder, "random_state": 0}
    rows = chunked(X, PARTITIONS["empty"])
    model = hyperelm.dask.fit(ELMAutoencoder(**options), rows, sample_weight=chunked(WEIGHT, (ROWS,)))
    expected = ELMAutoencoder(**options).fit(X, sample_weight=WEIGHT)
    assert_allclose(model.reconstruct(X), expected.reconstruct(X), atol=1e-10)
    assert_allclose(hyperelm.dask.predict(model, rows).compute(), model.reconstruct(X), atol=1e-12)
    codes = hyperelm.dask.predict(model, rows, method="transform")
    assert_allclose(codes.compute(), model.transform(X), atol=1e-12)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("random_state", [np.random.RandomState(3), None])
def test_all_partitions_see_the_same_hidden_layer(random_state):
    model = ELMRegressor("real", 6, ridge=0, random_state=random_state)
    hyperelm.dask.fit(model, chunked(X, (50,) * 4), chunked(Y, (50,) * 4))
    *W, b = model.hidden_weights_[..., 0]
    H = np.column_stack([np.tanh(X @ W + b), np.ones(ROWS)])
    assert_allclose(model.predict(X), H @ np.linalg.lstsq(H, Y, rcond=None)[0], atol=1e-9)


@pytest.mark.usefixtures("here")
def test_partial_fit_goes_on():
    options = OPTIONS | {"weight_scale": 0.3, "ridge": 0.1}
    model = hyperelm.dask.fit(ELMRegressor(**options), chunked(X[:150], (50,) * 3), chunked(Y[:150], (50,) * 3))
    model.partial_fit(X[150:], Y[150:])
    assert_allclose(model.predict(X), ELMRegressor(**options).fit(X, Y).predict(X), atol=1e-10)


@pytest.mark.usefixtures("here")
def test_badly_conditioned_problems_are_solved_by_qr():
    options = {"n_hidden": 30, "weight_scale": 1e-4, "ridge": 0.0, "random_state": 0}
    rows, targets = chunked(X, (60, 140)), chunked(Y, (60, 140))
    model = hyperelm.dask.fit(ELMRegressor("real", **options), rows, targets)
    assert isinstance(model._accumulator, QR)
    exact = ELMRegressor("real", solver="svd", **options).fit(X, Y)
    assert exact.condition_ > 1e6
    assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)
    assert isinstance(hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows, targets)._accumulator, Gram)


@pytest.mark.usefixtures("here")
def test_frames_keep_names_and_index():
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=pd.date_range("2020", periods=ROWS, name="day"))
    targets = pd.DataFrame(Y, columns=list("uvwx"), index=frame.index)
    rows = dd.from_pandas(frame, npartitions=3)
    model = hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows, dd.from_pandas(targets, npartitions=3))
    expected = ELMRegressor(**OPTIONS).fit(frame, targets)
    assert_array_equal(model.feature_names_in_, expected.feature_names_in_)
    assert_allclose(model.predict(frame), expected.predict(frame), atol=1e-10)
    outputs = hyperelm.dask.predict(model, rows)
    assert list(outputs.columns) == [0, 1, 2, 3]
    pd.testing.assert_index_equal(outputs.compute().index, frame.index)
    vector = hyperelm.dask.fit(ELMRegressor(**OPTIONS), rows, dd.from_pandas(targets["u"], npartitions=3))
    series = hyperelm.dask.predict(vector, rows)
    assert isinstance(series, dd.Series)
    assert_allclose(series.compute(), vector.predict(frame), atol=1e-12)
    # Some partitions lose all their rows, and the columns are not all of one type.
    mixed = frame.assign(a=np.arange(ROWS), b=frame["b"].astype("Float64"))
    few = dd.from_pandas(mixed, npartitions=3)
    few = few[few["a"] < 50]
    labels = dd.from_pandas(pd.Series(LABELS, index=frame.index), npartitions=3).partitions[0].loc[: frame.index[49]]
    classifier = hyperelm.dask.fit(ELMClassifier(**OPTIONS), few.partitions[0], labels)
    found = hyperelm.dask.predict(classifier, few)
    assert_array_equal(found.compute(), classifier.predict(mixed[:50]))
    codes = hyperelm.dask.fit(ELMAutoencoder(n_hidden=1, random_state=0).set_output(transform="pandas"), rows)
    transformed = hyperelm.dask.predict(codes, rows, method="transform")
    pd.testing.assert_frame_equal(transformed.compute(), codes.transform(frame), check_freq=False)


@pytest.mark.usefixtures("here")
def test_an_estimator_reads_a_collection_block_by_block():
    model = ELMRegressor(**OPTIONS).fit(chunked(X, (70, 130), columns=5), chunked(Y, (ROWS,)))
    assert_array_equal(model.output_weights_, ELMRegressor(**OPTIONS).fit(X, Y).output_weights_)
    with pytest.raises(ValueError, match=r"`X` must have a known shape, .* Use `hyperelm.dask`"):
        model.predict(UNKNOWN)


# ---------------------------------------------------------------------- messages

ROWS_OF_X, ROWS_OF_Y = chunked(X, (100, 100)), chunked(Y, (100, 100))
UNKNOWN = ROWS_OF_X[ROWS_OF_X[:, 0] > 0]
FITTED = ELMRegressor(**OPTIONS).fit(X, Y)
FRAME = dd.from_pandas(pd.DataFrame(X), npartitions=2)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda fit: fit(ELMRegressor(), X, Y), TypeError, "`X` must be a dask array or frame, got ndarray"),
        (lambda fit: fit(ELMRegressor(), ROWS_OF_X, Y), TypeError, "`y` must be a dask array or frame, got ndarray"),
        (lambda fit: fit(ELMRegressor(), ROWS_OF_X, ROWS_OF_Y, [1.0]), TypeError, "`sample_weight` must be a dask"),
        (lambda fit: fit(ELMRegressor(), ROWS_OF_X), ValueError, "requires y to be passed"),
        (lambda fit: fit(max, ROWS_OF_X), TypeError, "`estimator` must be an ELMRegressor, .* got builtin"),
        (lambda fit: fit(ELMRegressor(solver="svd"), ROWS_OF_X, ROWS_OF_Y), ValueError, "`solver` must not be 'svd'"),
        (lambda fit: fit(ELMRegressor(ridge=-1), ROWS_OF_X, ROWS_OF_Y), ValueError, "`ridge` must be"),
        (
            lambda fit: fit(ELMRegressor(), ROWS_OF_X, ROWS_OF_Y[:150]),
            ValueError,
            "inconsistent numbers of samples: 200 in `X`, 150 in `y`",
        ),
        (
            lambda fit: fit(ELMRegressor(), UNKNOWN, chunked(Y, (ROWS,))),
            ValueError,
            r"`y` must have the 2 partitions of `X`, .* got 1\. Repartition",
        ),
        (
            lambda fit: fit(ELMRegressor(**OPTIONS), UNKNOWN, ROWS_OF_Y),
            ValueError,
            r"Partition \d: `y` must have the \d+ rows of `X`, got 100",
        ),
        (
            lambda fit: fit(
                ELMRegressor(**OPTIONS), FRAME, dd.from_pandas(pd.DataFrame(Y, np.arange(200) + 7), npartitions=2)
            ),
            ValueError,
            r"Partition \d: `y` must have the index of `X`",
        ),
        (
            lambda fit: fit(ELMRegressor(**OPTIONS), da.sqrt(abs(ROWS_OF_X)) * np.inf, ROWS_OF_Y),
            ValueError,
            r"Partition \d: `X` must be finite, got inf in row \d+",
        ),
        (lambda fit: fit(ELMRegressor(), ROWS_OF_X[:0], ROWS_OF_Y[:0]), ValueError, "`X` must have at least one row"),
        (
            lambda fit: fit(ELMRegressor(), ROWS_OF_X[:, 0], ROWS_OF_Y),
            ValueError,
            r"`X` must have shape \(n, columns\)",
        ),
        (lambda fit: fit(ELMRegressor(), ROWS_OF_X + 1j, ROWS_OF_Y), ValueError, "Complex data not supported"),
        (lambda fit: fit(ELMClassifier(), ROWS_OF_X, ROWS_OF_Y), ValueError, "`y` must be labels in one axis, got 2"),
        (
            lambda fit: fit(ELMRegressor(), ROWS_OF_X[:, :6].reshape(200, 1, 2, 3), ROWS_OF_Y),
            ValueError,
            r"`X` must have .* numbers of 4 components \(quaternions\)",
        ),
        (
            lambda fit: fit(ELMRegressor(), ROWS_OF_X, ROWS_OF_Y, ROWS_OF_X),
            ValueError,
            "`sample_weight` must have one axis, got 2 axes",
        ),
        (
            lambda _: hyperelm.dask.predict(FITTED, FRAME[FRAME.columns[0]]),
            ValueError,
            r"`X` must have shape \(n, columns\) .*, got 1 axis",
        ),
        (lambda _: hyperelm.dask.predict(FITTED, X), TypeError, "`X` must be a dask array or frame"),
        (lambda _: hyperelm.dask.predict(FITTED, ROWS_OF_X[:, :3]), ValueError, "X has 3 features"),
        (lambda _: hyperelm.dask.predict(ELMRegressor(), ROWS_OF_X), NotFittedError, "not fitted yet"),
        (
            lambda _: hyperelm.dask.predict(FITTED, ROWS_OF_X, method="fly"),
            ValueError,
            "`method` must be one of 'predict', 'leverage' for ELMRegressor, got 'fly'",
        ),
        (
            lambda _: hyperelm.dask.predict(ELMClassifier(**OPTIONS).fit(X, LABELS), ROWS_OF_X, method="fit"),
            ValueError,
            "must be one of 'predict', 'predict_proba', 'decision_function' for ELMClassifier, got 'fit'",
        ),
        (
            lambda fit: fit(ELMRegressor(**OPTIONS), ROWS_OF_X, ROWS_OF_Y, da.zeros(ROWS, chunks=100)),
            ValueError,
            "`sample_weight` must not be zero for all 200 rows",
        ),
        (
            lambda _: hyperelm.dask.predict(ELMRegressor(**OPTIONS).fit(X, X.reshape(ROWS, 2, 4)), FRAME),
            ValueError,
            r"predict gives 3 axes. Use X.to_dask_array\(\)",
        ),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make(hyperelm.dask.fit)


# ---------------------------------------------------------------------- a real cluster


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def rows_of(index, owner, directory=None, seconds=0.0):
    """Some rows, made anywhere but with the owner; who makes them leaves a note."""
    assert os.getpid() != owner
    if directory is not None:
        (directory / f"{os.getpid()}").touch()
    time.sleep(seconds)
    return np.random.default_rng(int(index)).standard_normal((100, 8))


def made_on_workers(count, **options):
    make = dask.delayed(rows_of, pure=False)
    parts = [make(n, os.getpid(), **options) for n in range(count)]
    rows = da.concatenate([da.from_delayed(part, (100, 8), dtype=float) for part in parts])
    return rows, np.concatenate([np.random.default_rng(n).standard_normal((100, 8)) for n in range(count)])


@pytest.mark.usefixtures("client")
def test_rows_stay_on_the_workers(monkeypatch):
    """What comes back is as small as the model, whatever the number of rows."""
    rows, values = made_on_workers(20)
    sizes = []
    compute = Delayed.compute

    def weighed(self, **options):
        result = compute(self, **options)
        sizes.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(Delayed, "compute", weighed)
    model = hyperelm.dask.fit(ELMRegressor(n_hidden=4, random_state=0), rows, rows[:, :4] * rows[:, 4:])
    assert len(sizes) == 3  # the scale, the state, and the ridge that leaving out rows has found
    assert max(sizes) < values.nbytes / 5
    expected = ELMRegressor(n_hidden=4, random_state=0).fit(values, values[:, :4] * values[:, 4:])
    assert_allclose(model.predict(values), expected.predict(values), atol=1e-10)
    assert_allclose(hyperelm.dask.predict(model, rows).compute(), expected.predict(values), atol=1e-10)


@needs_sigkill
def test_a_worker_is_killed(client, tmp_path):
    rows, values = made_on_workers(16, directory=tmp_path, seconds=0.2)
    workers = {info["pid"] for info in client.run(lambda: {"pid": os.getpid()}).values()}
    killed = []

    def kill():
        """Somebody who has begun, in the middle of it."""
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.5)
        victim = int(next(tmp_path.iterdir()).name)
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    options = {"n_hidden": 4, "weight_scale": 0.3, "ridge": 0.1, "random_state": 0}
    model = hyperelm.dask.fit(ELMAutoencoder(**options), rows)
    thread.join()
    assert set(killed) <= workers
    assert len(killed) == 1
    assert_allclose(model.reconstruct(values), ELMAutoencoder(**options).fit(values).reconstruct(values), atol=1e-11)
    assert model._accumulator.n_rows == 1600
