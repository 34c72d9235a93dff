"""Readouts: predictions by the formula, weights against brute force, and everything else that a model can do."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from helpers import numbers, quietly
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, algebras, linalg, load, pack, save, to_onnx
from hyperelm._backend.arrays import to_numpy
from hyperelm._network.readout import READOUTS
from hyperelm._training import readouts
from hyperelm.datasets import sample_patches
from oracles import hidden

X = numbers((150, 6))
Y = np.stack([np.tanh(X[:, 0] * X[:, 1]), X[:, 2], np.sin(2 * X[:, 3])], axis=1) + 0.1 * numbers((150, 3), 1)
SHARED = {"n_hidden": 7, "weight_scale": 0.4, "random_state": 0}
NAMES = ["real", "complex", "quaternions", "klein4", "octonions"]


def seen(model, X, packing="full"):
    """[h, x, e], (n, width, d), and the predictions Σ h_i m_j table[i, j, k] of all components."""
    algebra = model.algebra_
    H = hidden(pack(X, algebra, into=packing), model.hidden_weights_, algebra, direct_link=model.direct_link)
    return H, np.einsum("nli,lmj,ijk->nmk", H, model.output_weights_, model.readout_table_, optimize=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("packing", ["full", "imaginary"])
@pytest.mark.parametrize("direct_link", [False, True])
def test_predictions_are_those_of_the_formula(name, readout, packing, direct_link):
    model = ELMRegressor(name, readout=readout, packing=packing, direct_link=direct_link, **SHARED).fit(X, Y)
    d = model.algebra_.dim
    r = d * d if readout == "free" else d
    assert model.readout_table_.shape == (d, r, d)
    assert model.output_weights_.shape[2] == r
    assert (model.readout_algebra_ is None) == (readout == "free")
    _, outputs = seen(model, X, packing)
    used = pack(np.ones((1, 3)), model.algebra_, into=packing)[0] > 0
    assert_allclose(model.predict(X), outputs[:, used], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["gram", "qr", "svd"])
@pytest.mark.parametrize("readout", ["learned", "free"])
def test_weights_against_brute_force(solver, readout):
    """Given the table, no weights have a smaller penalised error: the gradient vanishes."""
    ridge, weight = 0.3, np.random.default_rng(2).uniform(0.5, 2, len(X))
    model = ELMRegressor("quaternions", readout=readout, solver=solver, ridge=ridge, direct_link=True, **SHARED)
    model.fit(X, Y, weight)
    H, outputs = seen(model, X)
    error = outputs[:, :, :3] - Y[:, None]
    of_weights = np.einsum("n,nli,nmk,ijk->lmj", weight, H, error, model.readout_table_[:, :, :3])
    gradient = of_weights[:-1] + ridge * model.output_weights_[:-1]  # the bias is not penalised
    assert np.abs(gradient).max() < 1e-9 * len(X)
    assert np.abs(of_weights[-1]).max() < 1e-9 * len(X)


@pytest.mark.parametrize("ridge", ["loo", "gcv", 0.1])
def test_solvers_agree(ridge):
    for readout in ("learned", "free"):
        models = [
            ELMRegressor("klein4", readout=readout, solver=solver, ridge=ridge, **SHARED).fit(X, Y)
            for solver in ("gram", "qr", "svd")
        ]
        for model in models[1:]:
            assert_allclose(model.predict(X), models[0].predict(X), atol=1e-4)


def test_a_free_readout_is_a_real_network_on_all_components():
    """Leave-one-out errors and all: the same as the real readout of the same hidden layer."""
    model = ELMRegressor("quaternions", readout="free", **SHARED).fit(X, Y)
    codes = seen(model, X)[0][:, :-1].reshape(len(X), -1)
    plain = ELMRegressor("real", n_hidden=1, direct_link=True, weight_scale=1e-9, ridge=model.ridge_, bias=True)
    assert_allclose(plain.fit(codes, Y).predict(codes), model.predict(X), atol=1e-6)


def test_a_learned_table_fits_better_than_the_algebras_own():
    for name in ("quaternions", "klein4", "R[+1,-1]"):
        errors = [
            np.mean((ELMRegressor(name, readout=readout, ridge=1e-6, **SHARED).fit(X, Y).predict(X) - Y) ** 2)
            for readout in READOUTS
        ]
        assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("readout", ["learned", "free"])
def test_leave_one_out_errors_are_those_of_refits(readout):
    """With the table as it is: the other rows are fitted with it, and the row that was left out is predicted."""
    model = ELMRegressor("complex", readout=readout, **SHARED).fit(X[:40], Y[:40])
    H, _ = seen(model, X[:40])
    used = pack(np.ones((1, 3)), model.algebra_, into="full")[0] > 0
    A = np.einsum("nli,ijk->nklj", H, model.readout_table_)
    n, d, L, r = A.shape
    T, penalty = pack(Y[:40], model.algebra_, into="full"), np.repeat(np.arange(L) < L - 1, r) * model.ridge_
    total = 0.0
    for row in range(n):
        P = np.delete(A, row, axis=0).reshape((n - 1) * d, L * r)
        t = np.delete(T, row, axis=0).swapaxes(1, 2).reshape((n - 1) * d, -1)
        x = np.linalg.lstsq(P.T @ P + np.diag(penalty), P.T @ t, rcond=1e-13)[0]
        e = (A[row].reshape(d, L * r) @ x).T - T[row]
        total += np.sum(e[used] ** 2)
    assert model.loo_error_ == pytest.approx(total / (3 * n), rel=1e-6)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("solver", ["gram", "qr"])
def test_more_rows_later_are_as_all_rows_at_once(readout, solver, tmp_path):
    model = ELMRegressor("quaternions", readout=readout, solver=solver, ridge=0.1, **SHARED)
    whole, parts = clone(model).fit(X, Y), clone(model)
    for at in (slice(0, 40), slice(40, 100)):
        parts.partial_fit(X[at], Y[at])
    save(parts, tmp_path / "model", state=True)
    for later in (parts, load(tmp_path / "model")):
        assert_allclose(later.partial_fit(X[100:], Y[100:]).predict(X), whole.predict(X), atol=1e-5)
    by_chunks = clone(model).fit([(X[:70], Y[:70]), (X[70:], Y[70:])])
    assert_allclose(by_chunks.predict(X), whole.predict(X), atol=1e-5)
    parts.set_params(readout="free" if readout != "free" else "algebra")
    with pytest.raises(ValueError, match="and `readout` must be what they were in the first call"):
        parts.partial_fit(X, Y)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("activation", ["tanh", "modtanh", "modrelu"])
def test_files_and_graphs(readout, activation, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    labels = np.digitize(Y[:, 0], [-0.2, 0.2])
    for model, target, method in (
        (ELMRegressor("quaternions", direct_link=True, bias=False), Y, "predict"),
        (ELMClassifier("complex"), labels, "predict_proba"),
        (ELMAutoencoder("klein4", packing="imaginary"), None, "reconstruct"),
    ):
        model.set_params(readout=readout, activation=activation, **SHARED)
        quietly(model.fit, X, target)
        outputs = getattr(model, method)(X)
        save(model, tmp_path / "model")
        again = load(tmp_path / "model")
        assert_array_equal(getattr(again, method)(X), outputs)
        assert_array_equal(again.readout_table_, model.readout_table_)
        assert again.readout == readout
        session = runtime.InferenceSession(to_onnx(model).SerializeToString())
        assert_allclose(session.run(None, {"X": X.astype("f")})[-1], outputs, atol=1e-4)


@pytest.mark.parametrize("readout", ["learned", "free"])
def test_rows_of_another_library(readout, library, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    model = ELMRegressor("quaternions", readout=readout, ridge=0.1, **SHARED).fit(X, Y)
    with sklearn.config_context(array_api_dispatch=True):
        elsewhere = clone(model).fit(library(X), library(Y))
        predicted = elsewhere.predict(library(X))
    assert_allclose(to_numpy(predicted), model.predict(X), atol=1e-5)


@pytest.mark.parametrize("readout", ["learned", "free"])
def test_single_precision(readout):
    model = ELMRegressor("quaternions", readout=readout, **SHARED).fit(X.astype("f"), Y.astype("f"))
    assert model.output_weights_.dtype == np.float32
    assert model.predict(X.astype("f")).dtype == np.float32
    _, outputs = seen(model, X)
    assert_allclose(model.predict(X.astype("f")), outputs[:, 0, :3], atol=1e-3)


@pytest.mark.parametrize("step", [4e9, 1.0])
def test_many_targets_may_be_learned_from_combinations(step, monkeypatch):
    """Of 40 numbers that have a table in common, 16 combinations are enough."""
    monkeypatch.setattr(readouts, "_STEP", step)
    factors = numbers((200, 5, 4), 3), numbers((5, 40, 4), 4)
    pixels = np.tanh(linalg.matmul(*factors, algebras.get("quaternions")).reshape(200, 160) / 6)
    own, learned = (
        ELMAutoencoder("klein4", 6, readout=readout, ridge=1e-6, random_state=0).fit(pixels)
        for readout in ("algebra", "learned")
    )
    assert learned.score(pixels) > own.score(pixels)
    assert learned.n_parameters_ == own.n_parameters_ + 64


def test_a_learned_readout_can_be_the_algebra_of_another_model(tmp_path):
    model = ELMRegressor("quaternions", readout="learned", **SHARED).fit(X, Y)
    other = ELMRegressor(model.readout_algebra_, **SHARED).fit(X, Y)
    assert other.algebra_ == model.readout_algebra_
    save(other, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), other.predict(X))
    assert other.score(X, Y) > 0.3


def test_what_is_refused():
    with pytest.raises(ValueError, match="`readout` must be one of 'algebra', 'learned', 'free', got 'open'"):
        ELMRegressor(readout="open").fit(X, Y)
    with pytest.raises(ValueError, match="`readout` must not be 'learned' for an algebra of more than 16 components"):
        ELMRegressor(algebras.clifford(5, 0), 2, readout="learned").fit(X, Y)


# ---------------------------------------------------------------------- activations that turn with the data


@pytest.mark.parametrize("name", ["complex", "quaternions"])
@pytest.mark.parametrize("activation", ["modtanh", "modrelu"])
def test_a_network_without_a_bias_turns_with_its_data(name, activation):
    """Multiplying the inputs from the left by a unit number multiplies the outputs by it."""
    algebra = algebras.get(name)
    Z, T = numbers((100, 4, algebra.dim)), numbers((100, 2, algebra.dim), 1)
    for direct_link in (False, True):
        model = ELMRegressor(name, 10, activation=activation, bias=False, direct_link=direct_link, ridge=0.1)
        model.fit(Z, T)
        for seed in range(5):
            u = numbers(algebra.dim, seed)
            u /= np.linalg.norm(u)
            turned = algebra.multiply(u, model.predict(Z))
            assert_allclose(model.predict(algebra.multiply(u, Z)), turned, atol=1e-11)


def test_sums_in_single_precision_that_are_close_to_singular():
    """Principal components in float32 without a ridge: rounding makes the normal equations indefinite."""
    pixels = (sample_patches(300, size=8).reshape(300, -1) / 127.5 - 1).astype(np.float32)
    model = ELMAutoencoder("klein4", 50, packing="imaginary", readout="learned", encoder="pca", bias=False, ridge=0.0)
    assert quietly(model.fit, pixels).score(pixels) > 0.9
