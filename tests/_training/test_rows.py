"""Rows from files and from chunks: the fit is that of the same rows in memory, and memory does not grow with them."""

from __future__ import annotations

import tracemalloc
import weakref
from itertools import pairwise

import h5py
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor
from hyperelm._backend.workspace import current_team
from hyperelm._solvers import sample, scores
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._training.rows import LocalSource, Rows, Stored, is_chunked, is_stored

ROWS = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, 8))
Y = np.tanh(X[:, :3] @ RNG.standard_normal((3, 4)))
CODES = (Y[:, 0] > 0).astype(int) + (Y[:, 1] > 0.5)
WEIGHT = RNG.uniform(0.5, 2, ROWS)
FIXED = {"n_hidden": 6, "weight_scale": 0.3, "ridge": 0.1, "random_state": 0}


def memmap(array, directory, name):
    stored = np.memmap(directory / name, dtype=array.dtype, mode="w+", shape=array.shape)
    stored[...] = array
    return np.memmap(directory / name, dtype=array.dtype, mode="r", shape=array.shape)


def columns_first(array, directory, name):
    stored = np.memmap(directory / name, dtype=array.dtype, mode="w+", shape=array.shape, order="F")
    stored[...] = array
    return stored


def in_zarr(array, directory, name):
    """In pieces that cut the rows elsewhere than the chunks of training do."""
    stored = zarr.open(
        str(directory / name), mode="w", shape=array.shape, chunks=(70, *array.shape[1:]), dtype=array.dtype
    )
    stored[...] = array
    return stored


def in_hdf5(array, directory, name):
    return h5py.File(directory / name, "w").create_dataset("rows", data=array, chunks=(33, *array.shape[1:]))


def contiguous_hdf5(array, directory, name):
    return h5py.File(directory / name, "w").create_dataset("rows", data=array)


STORES = [memmap, columns_first, in_zarr, in_hdf5, contiguous_hdf5]


@pytest.fixture(params=STORES, ids=lambda store: store.__name__)
def store(request, tmp_path):
    """A function that puts an array into a file."""
    names = iter("abcdefgh")
    return lambda array: request.param(np.asarray(array), tmp_path, next(names))


class Watched:
    """An array that says how many rows were read at once, and refuses to be read as a whole."""

    def __init__(self, array):
        self._array, self.shape, self.dtype, self.most, self.reads = array, array.shape, array.dtype, 0, 0

    def __getitem__(self, rows):
        found = self._array[rows]
        self.most, self.reads = max(self.most, len(found)), self.reads + len(found)
        return found

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("converted as a whole")


class Again:
    """GivenChunks that can be read again."""

    def __init__(self, *arrays, size=64):
        self.arrays, self.size, self.passes = arrays, size, 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, len(self.arrays[0]), self.size):
            chunk = tuple(array[start : start + self.size] for array in self.arrays)
            yield chunk if len(chunk) > 1 else chunk[0]


# ---------------------------------------------------------------------- arrays in files


TARGETS = {"table": Y, "vector": Y[:, 0], "numbers": Y.reshape(ROWS, 1, 4)}


@pytest.mark.parametrize(("solver", "chunk_size", "target"), [
    *(("auto", 37, target) for target in TARGETS),
    *((solver, 37, "table") for solver in ("gram", "qr", "svd")),
    ("auto", None, "numbers"),
])  # fmt: skip
def test_regression_from_files_is_that_in_memory(store, target, solver, chunk_size):
    target = TARGETS[target]
    options = {"n_hidden": 6, "solver": solver, "chunk_size": chunk_size, "random_state": 0}
    expected = ELMRegressor(**options).fit(X, target, WEIGHT)
    found = ELMRegressor(**options).fit(store(X), store(target), store(WEIGHT))
    assert_array_equal(found.output_weights_, expected.output_weights_)
    assert_array_equal(found.predict(store(X)), expected.predict(X))
    assert found.n_features_in_ == 8
    # Only some of the arrays are in files.
    mixed = ELMRegressor(**options).fit(store(X), target.tolist(), WEIGHT)
    assert_array_equal(mixed.output_weights_, expected.output_weights_)
    mixed = ELMRegressor(**options).fit(X, store(target), store(WEIGHT))
    assert_array_equal(mixed.output_weights_, expected.output_weights_)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("labels", [CODES, CODES * 1.0, CODES > 0], ids=["whole", "float", "bool"])
def test_classification_from_files_is_that_in_memory(store, labels, class_weight):
    options = {"n_hidden": 6, "class_weight": class_weight, "random_state": 0}
    expected = ELMClassifier(**options).fit(X, labels, WEIGHT)
    found = ELMClassifier(**options).fit(store(X), store(labels), store(WEIGHT))
    assert_array_equal(found.classes_, expected.classes_)
    assert_array_equal(found.predict(store(X)), expected.predict(X))
    assert_array_equal(found.predict_proba(store(X)), expected.predict_proba(X))


@pytest.mark.parametrize("encoder", ["random", "orthogonal", "pca"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_auto_encoding_from_files_is_that_in_memory(store, encoder, dtype):
    pixels = np.clip(40 * X + 128, 0, 255).astype(dtype)
    options = {"n_hidden": 2, "encoder": encoder, "random_state": 0}
    expected = ELMAutoencoder(**options).fit(pixels, sample_weight=WEIGHT)
    stored = store(pixels)
    found = ELMAutoencoder(**options).fit(stored, sample_weight=store(WEIGHT))
    assert_array_equal(found.output_weights_, expected.output_weights_)
    assert found.output_weights_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert_array_equal(found.transform(stored), expected.transform(pixels))
    assert_array_equal(found.reconstruct(stored), expected.reconstruct(pixels))
    assert found.score(stored) == expected.score(pixels)


def test_numbers_from_files(store):
    Z = X.reshape(ROWS, 2, 4)
    found = ELMRegressor(**FIXED).fit(store(Z), store(Y))
    assert_array_equal(found.predict(store(Z)), ELMRegressor(**FIXED).fit(Z, Y).predict(Z))


def test_partial_fit_takes_rows_from_files(store):
    model = (
        ELMRegressor(**FIXED).partial_fit(store(X[:100]), store(Y[:100])).partial_fit(store(X[100:]), store(Y[100:]))
    )
    assert_allclose(model.predict(X), ELMRegressor(**FIXED).fit(X, Y).predict(X), atol=1e-10)


def test_a_refused_partial_fit_from_a_file_changes_nothing(tmp_path):
    model = ELMRegressor(**FIXED, chunk_size=10).partial_fit(X, Y)
    bad = X.copy()
    bad[55, 3] = np.nan
    with pytest.raises(ValueError, match="`X` must be finite, got nan in row 55"):
        model.partial_fit(memmap(bad, tmp_path, "x"), Y)
    expected = ELMRegressor(**FIXED, chunk_size=10).partial_fit(X, Y).partial_fit(X[:20], Y[:20])
    assert_array_equal(model.partial_fit(X[:20], Y[:20]).output_weights_, expected.output_weights_)


@pytest.mark.parametrize(
    "model",
    [
        ELMRegressor(n_hidden=4, chunk_size=50),
        ELMRegressor(n_hidden=4, chunk_size=50, direct_link=True, solver="qr"),
        ELMClassifier(n_hidden=4, chunk_size=50, class_weight="balanced"),
        ELMAutoencoder(n_hidden=2, chunk_size=50),
        ELMAutoencoder(n_hidden=2, chunk_size=50, encoder="pca"),
    ],
    ids=repr,
)
def test_nothing_is_converted_as_a_whole(model, monkeypatch):
    monkeypatch.setattr("hyperelm._training.passes._NUMBERS", 400)
    inputs, weight = Watched(X), Watched(WEIGHT)
    targets = None if isinstance(model, ELMAutoencoder) else Watched(CODES if isinstance(model, ELMClassifier) else Y)
    model.fit(inputs, targets, sample_weight=weight)
    if isinstance(model, ELMAutoencoder):
        model.transform(inputs), model.reconstruct(inputs), model.score(inputs, sample_weight=weight)
    else:
        model.predict(inputs)
    assert all(array is None or 0 < array.most <= 50 for array in (inputs, targets, weight))


def test_what_is_not_asked_for_is_not_read():
    """With a scale that is given, the first look at a classifier's rows reads its labels and no inputs.

    Then both are read for the sums. Rows of one chunk are at hand to be left out, others are read again.
    """
    for chunk_size, more in ((None, 0), (100, ROWS)):
        inputs, labels = Watched(X), Watched(CODES)
        ELMClassifier(**FIXED, chunk_size=chunk_size).fit(inputs, labels)
        assert (inputs.reads, labels.reads) == (ROWS + more, 2 * ROWS + more)


def test_pieces_of_a_file_are_not_unpacked_for_every_few_rows():
    inputs = Watched(X)
    inputs.chunks = (100, 8)
    stored = Stored(inputs, "X")
    for start in range(0, ROWS, 10):
        assert_array_equal(stored[start : start + 10], X[start : start + 10])
    assert inputs.reads == ROWS
    for start in range(0, ROWS, 33):
        assert_array_equal(stored[start : start + 33], X[start : start + 33])
    assert inputs.reads <= 3 * ROWS


@pytest.mark.parametrize("kind", ["file", "chunks", "iterator"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind, monkeypatch):
    for bound in ("_NUMBERS", "_SCRATCH"):  # of the rows that are kept to be left out
        monkeypatch.setattr(scores if bound == "_SCRATCH" else sample, bound, 2**14)
    rng = np.random.default_rng(1)

    def peak(rows):
        pixels = np.memmap(tmp_path / f"{rows}", dtype=np.uint8, mode="w+", shape=(rows, 64))
        pixels[...] = rng.integers(0, 256, pixels.shape)
        chunks = Again(pixels, size=500)
        source = {"file": pixels, "chunks": chunks, "iterator": iter(chunks)}[kind]
        tracemalloc.start()
        ELMAutoencoder("klein4", 4, chunk_size=500, weight_scale=0.001, random_state=0).fit(source)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1000)  # what is found once is not part of a fit
    # Eight times the rows; when garbage is collected is a matter of chance.
    assert peak(40_000) < 1.2 * peak(5_000) < 40_000 * 64 * 8 / 4


def test_the_score_is_that_of_scikit_learn():
    from sklearn.metrics import r2_score

    data = np.column_stack([X, np.full(ROWS, 3.0)]) + 1000
    for weight in (None, WEIGHT):
        model = ELMAutoencoder(n_hidden=2, chunk_size=70, random_state=0).fit(data)
        expected = r2_score(data, model.reconstruct(data), sample_weight=weight, multioutput="variance_weighted")
        assert model.score(data, sample_weight=weight) == pytest.approx(expected, rel=1e-9)
    constant = np.ones((20, 4))
    assert ELMAutoencoder(n_hidden=2, random_state=0).fit(constant).score(constant) in (0.0, 1.0)


# ---------------------------------------------------------------------- chunks


@given(
    cuts=st.lists(st.integers(0, ROWS), max_size=6).map(sorted),
    ridge=st.sampled_from([0.0, 0.1]),
    solver=st.sampled_from(["auto", "gram", "qr", "svd"]),
    once=st.booleans(),
)
def test_chunks_change_nothing(cuts, ridge, solver, once):
    """Whatever the chunks, some of them empty."""
    options = FIXED | {"ridge": ridge, "solver": solver}
    bounds = [0, *cuts, ROWS]
    chunks = [(X[a:b], Y[a:b], WEIGHT[a:b]) for a, b in pairwise(bounds)]

    class Chunked:
        def __iter__(self):
            return iter(chunks)

    found = ELMRegressor(**options).fit(iter(chunks) if once else Chunked())
    expected = ELMRegressor(**options).fit(X, Y, WEIGHT)
    assert_allclose(found.predict(X), expected.predict(X), atol=1e-9)
    assert found.rank_ == expected.rank_


@pytest.mark.parametrize("scale", ["auto", "paper"])
def test_chunks_that_can_be_read_again_are_looked_at_first(scale):
    chunks = Again(X, Y)
    model = ELMRegressor(n_hidden=6, weight_scale=scale, random_state=0).fit(chunks)
    expected = ELMRegressor(n_hidden=6, weight_scale=scale, random_state=0).fit(X, Y)
    assert model.weight_scale_ == pytest.approx(expected.weight_scale_, rel=1e-14)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    # To see its first chunk, for the scale, to train, and to leave rows out.
    assert chunks.passes == (4 if scale == "auto" else 3)


def test_an_iterator_fixes_the_scale_at_the_first_chunk():
    model = ELMRegressor(n_hidden=6, ridge=0.1, random_state=0).fit(iter(Again(X, Y, size=100)))
    parts = ELMRegressor(n_hidden=6, ridge=0.1, random_state=0)
    for chunk in Again(X, Y, size=100):
        parts.partial_fit(*chunk)
    assert model.weight_scale_ == ELMRegressor(n_hidden=6, random_state=0).fit(X[:100], Y[:100]).weight_scale_
    assert_allclose(model.predict(X), parts.predict(X), atol=1e-10)


def test_only_what_can_be_read_again_begins_with_normal_equations():
    """Neurons of small weights, which are nearly linear: too badly conditioned for them."""
    bad = ELMRegressor("real", 30, weight_scale=1e-4, ridge=0, random_state=0)
    chunks = Again(X, Y)
    exact = ELMRegressor("real", 30, weight_scale=1e-4, ridge=0, solver="svd", random_state=0).fit(X, Y)
    assert exact.condition_ > 1e6
    assert isinstance(bad.fit(chunks)._accumulator, QR)
    assert chunks.passes == 4  # the first chunk, by gram, by qr, and to leave rows out
    assert_allclose(bad.predict(X), exact.predict(X), atol=1e-6)
    assert isinstance(bad.fit(iter(chunks))._accumulator, QR)
    assert_allclose(bad.predict(X), exact.predict(X), atol=1e-6)
    well = ELMRegressor(**FIXED)
    assert isinstance(well.fit(chunks)._accumulator, Gram)
    assert isinstance(well.fit(iter(chunks))._accumulator, Gram)
    assert isinstance(well.set_params(ridge="gcv").fit(iter(chunks))._accumulator, QR)
    assert isinstance(well.set_params(ridge=0.1, solver="qr").fit(iter(chunks))._accumulator, QR)


def test_an_iterator_leaves_normal_equations_when_the_ridge_gets_too_small_for_the_rows():
    options = {"n_hidden": 20, "weight_scale": 1e-3, "ridge": 5e-6, "random_state": 0}
    many = np.tile(X, (4, 1))
    model = ELMRegressor("real", **options).partial_fit(X[:10], Y[:10])
    assert isinstance(model._accumulator, Gram)
    model = ELMRegressor("real", **options).fit(
        (many[a : a + 10], np.tile(Y, (4, 1))[a : a + 10]) for a in range(0, 1200, 10)
    )
    assert isinstance(model._accumulator, QR)
    exact = ELMRegressor("real", solver="svd", **options).fit(many, np.tile(Y, (4, 1)))
    assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)


def test_an_iterable_that_cannot_start_again_is_read_once():
    class Shared:
        def __init__(self):
            self.chunks = iter(Again(X, Y))

        def __iter__(self):
            return self.chunks

    model = ELMRegressor(**FIXED).fit(Shared())
    assert_allclose(model.predict(X), ELMRegressor(**FIXED).fit(X, Y).predict(X), atol=1e-10)


def test_auto_encoder_of_chunks():
    expected = ELMAutoencoder(**FIXED).fit(X).reconstruct(X)
    for chunks in (Again(X), Again(X, Y), iter(Again(X)), ([x, y] for x, y in Again(X, Y))):
        assert_allclose(ELMAutoencoder(**FIXED).fit(chunks).reconstruct(X), expected, atol=1e-10)
    weighted = ELMAutoencoder(**FIXED).fit((x, None, w) for x, w in Again(X, WEIGHT))
    expected = ELMAutoencoder(**FIXED).fit(X, sample_weight=WEIGHT).reconstruct(X)
    assert_allclose(weighted.reconstruct(X), expected, atol=1e-10)
    principal = ELMAutoencoder(n_hidden=2, encoder="pca", random_state=0)
    assert_allclose(principal.fit(Again(X)).reconstruct(X), principal.fit(X).reconstruct(X), atol=1e-9)


def test_chunks_in_other_forms():
    """Frames, lists and integers; pixels scaled on the way stay in single precision."""
    import pandas

    expected = ELMRegressor(**FIXED).fit(X, Y)
    frames = (tuple(map(pandas.DataFrame, chunk)) for chunk in Again(X, Y))
    model = ELMRegressor(**FIXED).fit(frames)
    assert_allclose(model.predict(pandas.DataFrame(X)), expected.predict(X), atol=1e-10)
    assert_allclose(ELMRegressor(**FIXED).fit(list(Again(X, Y))).predict(X), expected.predict(X), atol=1e-10)
    lists = ((x.tolist(), y.tolist()) for x, y in Again(X, Y))
    assert_allclose(ELMRegressor(**FIXED).fit(lists).predict(X), expected.predict(X), atol=1e-10)
    pixels = np.clip(40 * X + 128, 0, 255).astype(np.uint8)
    scaled = ELMAutoencoder(**FIXED).fit(np.float32(chunk) / 128 - 1 for chunk in Again(pixels))
    assert scaled.output_weights_.dtype == np.float32
    assert ELMAutoencoder(**FIXED).fit(Again(pixels)).output_weights_.dtype == np.float64


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 1, "b": 2, "c": 3}])
def test_classes_of_chunks(class_weight):
    """The first chunk has but one of them."""
    order = np.argsort(CODES, kind="stable")
    inputs, labels = X[order], np.array(["a", "b", "c"])[CODES[order]]
    expected = ELMClassifier(**FIXED, class_weight=class_weight).fit(inputs, labels)
    found = ELMClassifier(**FIXED, class_weight=class_weight).fit(Again(inputs, labels, size=20))
    assert_array_equal(found.classes_, ["a", "b", "c"])
    assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-9)
    if class_weight != "balanced":
        once = ELMClassifier(**FIXED, class_weight=class_weight).fit(
            iter(Again(inputs, labels)), classes=["a", "b", "c"]
        )
        assert_allclose(once.decision_function(X), expected.decision_function(X), atol=1e-9)
    more = ELMClassifier(**FIXED, class_weight=class_weight).fit(inputs, labels, classes=["a", "b", "c", "d"])
    assert_array_equal(more.classes_, ["a", "b", "c", "d"])
    assert_array_equal(more.predict(X), expected.predict(X))


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_chunks_without_weight(solver):
    """They say nothing, as rows without weight do among others."""
    weight = np.where(np.arange(ROWS) < 150, 1.0, 0.0)
    expected = ELMRegressor(**FIXED | {"solver": solver}).fit(X, Y, weight)
    parts = [(X[at], Y[at], weight[at]) for at in (slice(0, 150), slice(150, ROWS))]
    assert_allclose(ELMRegressor(**FIXED | {"solver": solver}).fit(parts).predict(X), expected.predict(X), atol=1e-9)
    model = ELMRegressor(**FIXED | {"solver": solver})
    for part in parts:
        model.partial_fit(*part)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="`sample_weight` must not be zero for all 150 rows"):
        ELMRegressor(**FIXED).fit(parts[1:])


def test_what_is_what(tmp_path):
    for array in (memmap(X, tmp_path, "m"), in_zarr(X, tmp_path, "z"), in_hdf5(X, tmp_path, "h")):
        assert is_stored(array)
        assert not is_chunked(array)
    import pandas

    for other in (X, X.tolist(), pandas.DataFrame(X), pandas.Series(X[:, 0]), sparse.csr_array(X), np.float64(3), "X"):
        assert not is_stored(other)
        assert not is_chunked(other)
    assert not is_chunked(sparse.coo_array(X))
    for table in ([tuple(row) for row in X], list(X), list(X[:, :, None]), [], [[]]):
        assert not is_chunked(table)
    for chunks in (Again(X), iter([X]), (x for x in [X]), map(np.sqrt, [X]), [(X, Y)], [[X, Y], [X, Y]]):
        assert is_chunked(chunks)
        assert not is_stored(chunks)


BAD = X.copy()
BAD[123, 4] = -np.inf


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ELMRegressor().fit(Watched(BAD), Y), ValueError, "`X` must be finite, got -inf in row 123"),
        (lambda: ELMRegressor().fit(Again(BAD, Y)), ValueError, "`X` must be finite, got -inf in row 123"),
        (lambda: ELMRegressor().fit(iter(Again(X, BAD))), ValueError, "`y` must be finite, got -inf in row 123"),
        (lambda: ELMRegressor(**FIXED).fit(X, Y).predict(Watched(BAD)), ValueError, "got -inf in row 123"),
        (lambda: ELMRegressor().fit(X, Y, Watched(BAD[:, 4])), ValueError, "`sample_weight` must be finite, got -inf"),
        (
            lambda: ELMRegressor().fit(X, Y, Watched(WEIGHT[:9])),
            ValueError,
            r"`sample_weight` must have .* 300 rows, got shape \(9,\)",
        ),
        (lambda: ELMRegressor().fit(Watched(X), Y[:9]), ValueError, r"inconsistent numbers of samples: \[300, 9\]"),
        (lambda: ELMRegressor().fit(Watched(X)), ValueError, "requires y to be passed"),
        (lambda: ELMRegressor().fit(Watched(X[:, 0]), Y), ValueError, "Expected 2D array, got 1D array"),
        (lambda: ELMRegressor().fit(Watched(X[:0]), Y[:0]), ValueError, r"Found array with 0 sample\(s\)"),
        (lambda: ELMRegressor().fit(Watched(X[:, :0]), Y), ValueError, r"Found array with 0 feature\(s\)"),
        (lambda: ELMRegressor().fit(Watched(X + 1j), Y), ValueError, "Complex data not supported"),
        (lambda: ELMRegressor().fit(Watched(X.astype(str)), Y), ValueError, "must be an array of real or complex"),
        (lambda: ELMRegressor(**FIXED).fit(X, Y).predict(Watched(X[:, :3])), ValueError, "X has 3 features"),
        (
            lambda: ELMRegressor(**FIXED).fit(X, Y).predict(Watched(X.reshape(ROWS, 2, 4))),
            ValueError,
            r"X must have the shape \(n, columns\)",
        ),
        (lambda: ELMClassifier().fit(Watched(X), Watched(Y)), ValueError, "must hold 0 and 1 only"),
        (lambda: ELMClassifier().fit(Watched(X), Watched(X[:, 0])), ValueError, "Unknown label type: continuous"),
        (lambda: ELMRegressor().fit(Again(X, Y), Y), ValueError, "`y` must be None where X gives chunks, got ndarray"),
        (
            lambda: ELMRegressor().fit(Again(X, Y), sample_weight=WEIGHT),
            ValueError,
            r"`sample_weight` must be None .* Let X give tuples \(X, y\) or \(X, y, sample_weight\)",
        ),
        (lambda: ELMRegressor().fit(Again(X)), ValueError, "requires y to be passed"),
        (lambda: ELMRegressor().fit(iter([])), ValueError, "`X` must give at least one chunk with rows"),
        (lambda: ELMRegressor().fit(iter([(X[:0], Y[:0])])), ValueError, "`X` must give at least one chunk with rows"),
        (lambda: ELMRegressor().fit(iter([(X, Y, WEIGHT, 1)])), ValueError, "chunks of `X` must be .* got 4 values"),
        (lambda: ELMRegressor(**FIXED).fit(iter([(X, Y), (X[:, :3], Y)])), ValueError, "X has 3 features"),
        (
            lambda: ELMRegressor(**FIXED).fit(iter([(X, Y), (X, Y[:, :3])])),
            ValueError,
            r"`y` must have the shape \(300, 4\) as in the first chunk, got \(300, 3\)",
        ),
        (lambda: ELMRegressor().partial_fit(Again(X, Y), Y), ValueError, "Only `fit` takes chunks of rows"),
        (lambda: ELMRegressor(**FIXED).fit(X, Y).predict(Again(X)), ValueError, "Only `fit` takes chunks of rows"),
        (lambda: ELMClassifier().fit(iter(Again(X, CODES))), ValueError, "`classes` must be passed to fit"),
        (
            lambda: ELMClassifier(class_weight="balanced").fit(iter(Again(X, CODES)), classes=[0, 1, 2]),
            ValueError,
            "`class_weight` must not be 'balanced' where X is an iterator",
        ),
        (
            lambda: ELMClassifier(**FIXED).fit(iter(Again(X, CODES)), classes=[0, 1]),
            ValueError,
            r"`y` must have labels among `classes`, \[0 1\], got \[2\]",
        ),
        (
            lambda: ELMAutoencoder(n_hidden=2, encoder="pca").fit(iter(Again(X))),
            ValueError,
            "`encoder` must not be 'pca' where X is an iterator",
        ),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_scratch_memory_is_free_before_the_solution():
    """The buffers of a team and a solve in memory at the same time would add up."""
    seen = []

    class Watching:
        name, size, work = "watching", 5, 0.0

        def begin(self):
            return 0

        def add(self, gathered, chunk):
            seen.append(weakref.ref(current_team()))
            assert len({id(ref()) for ref in seen}) == 1  # all chunks of a pass are worked on by one team
            return gathered + len(chunk)

    rows = Rows(np.zeros((12, 2)), np.zeros((12, 2)), None)
    total, alive = LocalSource([rows], 12, "").fold(Watching(), lambda gathered: (gathered, [ref() for ref in seen]))
    assert total == 12
    assert alive == [None] * 3


def test_a_fit_that_fails_leaves_no_mixture_of_two_models():
    model = ELMRegressor("complex", n_hidden=4, random_state=0).fit(X, Y)
    broken = X[:, :5].copy()
    broken[250, 1] = np.nan
    with pytest.raises(ValueError, match="`X` must be finite, got nan in row 250"):
        model.set_params(random_state=1).fit((broken[n : n + 100], Y[n : n + 100]) for n in (0, 100, 200))
    for rows in (X, X[:, :5]):
        with pytest.raises(NotFittedError):
            model.predict(rows)
    assert model.partial_fit(X, Y).n_samples_seen_ == ROWS


def test_messages_name_the_chunk():
    chunks = [(X[:100], Y[:100]), (X[100:, :5], Y[100:])]
    with pytest.raises(ValueError, match="Chunk from row 100 on: X has 5 features, but ELMRegressor is expecting 8"):
        ELMRegressor("complex", n_hidden=4).fit(iter(chunks))
