"""Sparse rows: the fit is that of the dense rows, and no more than a chunk of them is ever dense."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from helpers import outputs
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, load, save
from hyperelm._estimators.frame import FrameRegressor

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((90, 12)) < 0.3, RNG.standard_normal((90, 12)), 0.0)
Y = np.tanh(DENSE[:, :3] @ RNG.standard_normal((3, 2)))
LABELS = np.where(Y[:, 0] > 0, "up", "down")
FIXED = {"n_hidden": 6, "random_state": 0}
FORMATS = [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.lil_array, sparse.dok_array]
MODELS = [
    (ELMRegressor("quaternions", **FIXED), Y),
    (ELMRegressor("real", direct_link=True, readout="free", **FIXED), Y),
    (ELMClassifier("complex", **FIXED), LABELS),
    (ELMAutoencoder("klein4", **FIXED), None),
    (ELMAutoencoder("klein4", 2, encoder="pca", random_state=0), None),
]


@pytest.mark.parametrize("to_sparse", FORMATS)
@pytest.mark.parametrize(("model", "y"), MODELS)
def test_fit_and_predict_as_on_dense_rows(model, y, to_sparse):
    dense, thin = clone(model).fit(DENSE, y), clone(model).fit(to_sparse(DENSE), y)
    assert_array_equal(thin.output_weights_, dense.output_weights_)
    for got, expected in zip(outputs(thin, to_sparse(DENSE)), outputs(dense, DENSE)):
        assert_array_equal(got, expected)
    assert thin.score(to_sparse(DENSE), y) == dense.score(DENSE, y)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_types(dtype):
    rows = (3 * DENSE).astype(dtype)
    thin, dense = (clone(MODELS[0][0]).fit(X, Y) for X in (sparse.csr_array(rows), rows))
    assert thin.output_weights_.dtype == dense.output_weights_.dtype
    assert_array_equal(thin.predict(sparse.csr_array(rows)), dense.predict(rows))


def test_partial_fit_and_chunks():
    thin, dense = (clone(MODELS[0][0]).set_params(ridge=0.1, weight_scale=0.3) for _ in range(2))
    for at in (slice(0, 40), slice(40, 90)):
        thin.partial_fit(sparse.csr_array(DENSE)[at], Y[at])
        dense.partial_fit(DENSE[at], Y[at])
    assert_array_equal(thin.output_weights_, dense.output_weights_)
    parts = [(sparse.csr_array(DENSE)[at], Y[at]) for at in (slice(0, 40), slice(40, 90))]
    same = [(X.toarray(), y) for X, y in parts]
    assert_array_equal(thin.fit(parts).output_weights_, dense.fit(same).output_weights_)


def test_search():
    search = ELMRegressorCV(["real", "complex"], [4, 6], weight_scale=["auto"], random_state=0)
    thin, dense = clone(search).fit(sparse.csc_array(DENSE), Y), clone(search).fit(DENSE, Y)
    assert thin.best_params_ == dense.best_params_
    assert_array_equal(thin.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])
    assert_array_equal(thin.predict(sparse.csr_array(DENSE)), dense.predict(DENSE))
    assert search.__sklearn_tags__().input_tags.sparse


def test_search_that_screens_some_of_the_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((450, 4)) < 0.3, rng.standard_normal((450, 4)), 0.0)
    search = ELMRegressorCV(["real", "complex"], [2, 4], ridge=0.1, n_draws=1, random_state=0)
    thin, dense = clone(search).fit(sparse.csr_array(X), X[:, 0]), clone(search).fit(X, X[:, 0])
    assert_array_equal(thin.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])


def test_one_hot_encoder_in_a_pipeline(tmp_path):
    colours = RNG.choice(["red", "green", "blue"], (90, 2))
    model = make_pipeline(OneHotEncoder(), ELMClassifier("quaternions", **FIXED)).fit(colours, colours[:, 0])
    assert model.score(colours, colours[:, 0]) == 1
    save(model[-1], tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(model[0].transform(colours)), colours[:, 0])


@pytest.mark.parametrize("name", ["real", "quaternions"])
def test_never_dense_as_a_whole(name):
    rows, columns = 20_000, 2_000
    X = sparse.random_array((rows, columns), density=0.001, rng=0, format="csr")
    y = np.asarray(X[:, :50].sum(axis=1)).ravel()
    model = ELMRegressor(name, 5, ridge=1e-3, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < rows * columns * 8 / 3


def test_messages():
    nan = sparse.csr_array(DENSE.copy())
    nan.data[3] = np.nan
    fitted = clone(MODELS[0][0]).fit(DENSE, Y)
    for call, message in [
        (lambda: ELMRegressor().fit(nan, Y), "Input X contains NaN"),
        (lambda: fitted.predict(nan), "Input X contains NaN"),
        (lambda: fitted.predict(sparse.csr_array(DENSE[:, :5])), "X has 5 features, but ELMRegressor is expecting 12"),
        (lambda: FrameRegressor().fit(sparse.csr_array(DENSE), Y), "`X` and `y` must be columns in memory"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert ELMRegressor().__sklearn_tags__().input_tags.sparse
    assert not FrameRegressor().__sklearn_tags__().input_tags.sparse
