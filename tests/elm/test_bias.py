"""The number that stands for the bias; training and prediction as one function, for any table."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from hyperelm import (
    Algebra,
    ELMAutoencoder,
    ELMClassifier,
    ELMRegressor,
    ELMRegressorCV,
    RankDeficiencyWarning,
    algebras,
    load,
    save,
)
from hyperelm.elm.bias import bias_number, bias_weights, times_bias
from hyperelm.elm.networks import Networks
from hyperelm.elm.table import TableRegressor


def permuted(algebra, order):
    """The same algebra with its units in another order."""
    return Algebra(algebra.table[np.ix_(order, order, order)])


def scaled(algebra, scales):
    """The same algebra in the units s_i e_i."""
    s = np.asarray(scales, float)
    return Algebra(algebra.table * s[:, None, None] * s[:, None] / s)


def rotated(algebra, seed):
    """The same algebra in a random basis."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((algebra.dim,) * 2))[0]
    return Algebra(np.einsum("ai,bj,ijk,ck->abc", Q, Q, algebra.table, Q))


def left_only():
    """xy = f(x) y with f(x) = x₀ + x₁: every x with f(x) = 1 is an identity from the left, none from the right."""
    return Algebra(np.stack([np.eye(2)] * 2))


def cross():
    """The cross product in three dimensions: xx = 0, and no Φ_L(x) has a trace."""
    table = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        table[i, j, k], table[j, i, k] = 1, -1
    return Algebra(table)


H, C, R = (algebras.get(name) for name in ("quaternions", "complex", "real"))
LAST = permuted(H, [1, 2, 3, 0])
DOUBLED = Algebra([[[2.0]]])
# Algebras with an identity, and what it is.
WITH_IDENTITY = {
    "quaternions": (H, [1, 0, 0, 0]),
    "1 last": (LAST, [0, 0, 0, 1]),
    "entry 2": (DOUBLED, [0.5]),
    "entry -3": (Algebra([[[-3.0]]]), [-1 / 3]),
    "C + H": (C.direct_sum(H), [1, 0, 1, 0, 0, 0]),
    "other units": (scaled(LAST, [1, 100, 0.1, 4]), [0, 0, 0, 0.25]),
    "units of any size": (scaled(LAST, [1e4, 1e-4, 1, 1e3]), [0, 0, 0, 1e-3]),
    "1 last + entry 2": (LAST.direct_sum(DOUBLED), [0, 0, 0, 1, 0.5]),
    "octonions reversed": (permuted(algebras.get("octonions"), list(range(7, -1, -1))), [0] * 7 + [1]),
}
# Those without.
WITHOUT = {
    "cross": cross(),
    "two cross": cross().direct_sum(cross()),
    "left only": left_only(),
    "R + nothing": R.direct_sum(Algebra([[[0.0]]])),
    "nothing": Algebra(np.zeros((2, 2, 2))),
}


@st.composite
def tables(draw):
    """With and without an identity: permuted, rotated, in other units, direct sums, whole numbers and fractions."""
    kind = draw(st.sampled_from(["named", "permuted", "rotated", "sum", "whole", "fractions", "special"]))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    named = algebras.get(draw(st.sampled_from(["real", "complex", "dual", "quaternions", "klein4", "paper-Cl(1,1)"])))
    if kind == "permuted":
        return scaled(permuted(named, rng.permutation(named.dim)), rng.uniform(0.5, 2, named.dim))
    if kind == "rotated":
        return rotated(named, seed)
    if kind == "sum":
        return permuted(named, rng.permutation(named.dim)).direct_sum(draw(st.sampled_from([C, LAST, DOUBLED])))
    if kind in ("whole", "fractions"):
        d = draw(st.integers(1, 4))
        return Algebra(rng.integers(-1, 2, (d, d, d)) if kind == "whole" else rng.standard_normal((d, d, d)))
    if kind == "special":
        return draw(st.sampled_from([*(a for a, _ in WITH_IDENTITY.values()), *WITHOUT.values()]))
    return named


# ---------------------------------------------------------------------- the formula, number by number


def product(A, B, algebra):
    """(m, K, d) times (K, N, d), one product of numbers at a time."""
    out = np.zeros((len(A), B.shape[1], algebra.dim))
    for n in range(B.shape[1]):
        for k in range(A.shape[1]):
            out[:, n] += algebra.multiply(A[:, k], np.broadcast_to(B[k, n], A[:, k].shape))
    return out


def packed(X, algebra, packing):
    """Columns in the components that `packing` names, one number after the other."""
    if X.ndim == 3:
        return X
    places = {"full": range(algebra.dim), "imaginary": range(1, algebra.dim), "real": [0]}[packing]
    numbers = np.zeros((len(X), -(-X.shape[1] // len(places)), algebra.dim))
    for c, column in enumerate(X.T):
        number, place = divmod(c, len(places))
        numbers[:, number, places[place]] = column
    return numbers


def codes_of(model, x, algebra, e):
    """h = f([x, e] W)."""
    return np.tanh(product(np.concatenate([x, *e], axis=1), model.hidden_weights_, algebra))


def written_out(model, x, algebra, *, bias, direct_link=False):
    """y = [h, x, e] M."""
    e = [np.broadcast_to(bias_number(algebra), (len(x), 1, algebra.dim))] * bias
    h = codes_of(model, x, algebra, e)
    return product(np.concatenate([h, *[x] * direct_link, *e], axis=1), model.output_weights_, algebra)


def unpacked(Y, algebra, packing, columns):
    places = {"full": range(algebra.dim), "imaginary": range(1, algebra.dim), "real": [0]}[packing]
    return Y[:, :, places].reshape(len(Y), -1)[:, :columns]


def near(got, expected, *weights):
    size = max(1, *(np.abs(w).max(initial=0) for w in (expected, *weights)))
    assert_allclose(got, expected, rtol=0, atol=1e-11 * size)


def quietly(fit, *arguments):
    """Random tables may have dependent columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        return fit(*arguments)


def data(columns=5, rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) + 0.5
    return X, np.sin(X[:, :2]) + 3


# ---------------------------------------------------------------------- the number


def test_unit_zero_of_the_catalogue_exactly(algebra):
    assert_array_equal(bias_number(algebra), np.eye(algebra.dim)[0])
    weights = np.random.default_rng(0).standard_normal((3, 5, algebra.dim))
    assert_array_equal(times_bias(weights, algebra), weights)
    assert_array_equal(bias_weights(weights, algebra), weights)


@pytest.mark.parametrize("name", WITH_IDENTITY)
def test_the_identity_where_there_is_one(name):
    algebra, identity = WITH_IDENTITY[name]
    assert algebra.has_identity
    assert_allclose(algebra.identity, identity, atol=1e-14)
    assert_array_equal(bias_number(algebra), algebra.identity)


@pytest.mark.parametrize("name", WITHOUT)
def test_no_identity(name):
    assert WITHOUT[name].identity is None
    assert not WITHOUT[name].has_identity


def test_an_identity_from_the_left():
    e = bias_number(left_only())
    assert_allclose(left_only().left_matrix(e), np.eye(2), atol=1e-14)


@given(tables())
def test_the_bias_reaches_as_much_as_that_of_any_number(algebra):
    e = bias_number(algebra)
    ranks = [
        np.linalg.matrix_rank(algebra.left_matrix(a))
        for a in np.random.default_rng(1).standard_normal((20, algebra.dim))
    ]
    assert np.linalg.matrix_rank(algebra.left_matrix(e)) == max(ranks)
    if max(ranks):
        assert np.linalg.norm(algebra.left_matrix(e), 2) == pytest.approx(1)


@given(tables(), st.integers(0, 100))
def test_products_with_it(algebra, seed):
    weights = np.random.default_rng(seed).standard_normal((3, algebra.dim))
    products = times_bias(weights, algebra)
    near(products, algebra.multiply(bias_number(algebra), weights))
    near(times_bias(bias_weights(products, algebra), algebra), products)


# ---------------------------------------------------------------------- one function


@given(
    algebra=tables(),
    packing=st.sampled_from(["full", "imaginary", "real"]),
    direct_link=st.booleans(),
    bias=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_predict_is_the_formula(algebra, packing, direct_link, bias, seed):
    assume(packing != "imaginary" or algebra.dim > 1)
    X, T = data(seed=seed)
    model = ELMRegressor(
        algebra, 4, packing=packing, direct_link=direct_link, bias=bias, ridge=1e-3, random_state=seed
    ).fit(X, T)
    for rows in (X, data(rows=7, seed=seed + 1)[0]):
        Y = written_out(model, packed(rows, algebra, packing), algebra, bias=bias, direct_link=direct_link)
        near(model.predict(rows), unpacked(Y, algebra, packing, 2), model.output_weights_)


@given(algebra=tables(), direct_link=st.booleans(), seed=st.integers(0, 1000))
def test_what_was_trained_is_what_is_predicted(algebra, direct_link, seed):
    """The residual on the training rows is the least there is: that of the real least-squares problem."""
    X, _ = data(rows=60, seed=seed)
    x = packed(X, algebra, "full")
    T = np.random.default_rng(seed).standard_normal((60, 2, algebra.dim)) + 3
    model = quietly(ELMRegressor(algebra, 3, direct_link=direct_link, ridge=0, random_state=seed).fit, x, T)
    e = np.broadcast_to(bias_number(algebra), (60, 1, algebra.dim))
    A = np.concatenate([codes_of(model, x, algebra, [e]), *[x] * direct_link, e], axis=1)
    design = np.einsum("mki,ijc->mckj", A, algebra.table).reshape(60 * algebra.dim, -1)
    target = T.swapaxes(1, 2).reshape(-1, 2)
    best = design @ np.linalg.lstsq(design, target, rcond=1e-11)[0] - target
    residual = np.linalg.norm(model.predict(x) - T)
    assert residual == pytest.approx(np.linalg.norm(best), rel=1e-6, abs=1e-9 * np.linalg.norm(T))


CASES = [*(algebra for algebra, _ in WITH_IDENTITY.values()), *WITHOUT.values()]


@pytest.mark.parametrize("algebra", CASES, ids=[*WITH_IDENTITY, *WITHOUT])
def test_every_estimator(algebra, tmp_path):
    X, T = data(rows=60)
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0, 1])]
    parameters = {"algebra": algebra, "n_hidden": 5, "ridge": 1e-3, "random_state": 0}
    x = packed(X, algebra, "full")

    classifier = ELMClassifier(**parameters).fit(X, labels)
    scores = written_out(classifier, x, algebra, bias=True)[:, :, 0]
    near(classifier.decision_function(X), scores, classifier.output_weights_)

    autoencoder = ELMAutoencoder(**parameters).fit(X)
    again = unpacked(written_out(autoencoder, x, algebra, bias=True), algebra, "full", 5)
    near(autoencoder.reconstruct(X), again, autoencoder.output_weights_)
    near(autoencoder.inverse_transform(autoencoder.transform(X)), again, autoencoder.output_weights_)

    first = ELMRegressor(**parameters | {"weight_scale": 0.3}).partial_fit(X[:30], T[:30]).partial_fit(X[30:], T[30:])
    whole = ELMRegressor(**parameters | {"weight_scale": 0.3}).fit(X, T)
    for model in (first, whole):
        expected = unpacked(written_out(model, x, algebra, bias=True), algebra, "full", 2)
        near(model.predict(X), expected, model.output_weights_)
    assert_allclose(first.predict(X), whole.predict(X), atol=1e-7)
    save(whole, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), whole.predict(X))

    table = TableRegressor(**parameters).fit(X, T)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = unpacked(written_out(table, packed(standard, algebra, "full"), algebra, bias=True), algebra, "full", 2)
    near(table.predict(X), Y * T.std(axis=0) + T.mean(axis=0), table.output_weights_)


@pytest.mark.parametrize("algebra", CASES, ids=[*WITH_IDENTITY, *WITHOUT])
def test_networks_that_are_trained_together(algebra):
    rng, d = np.random.default_rng(0), algebra.dim
    x, T, W = rng.standard_normal((50, 2, d)), rng.standard_normal((50, 1, d)) + 3, rng.standard_normal((2, 3, 4, d))
    networks = Networks(algebra, W).fit(x, T)
    for n, got in enumerate(networks.predict(x)):
        model = ELMRegressor(algebra, 4, random_state=0)
        model.hidden_weights_, model.output_weights_ = W[n], networks.output_weights_[n]
        near(got, written_out(model, x, algebra, bias=True), model.output_weights_)


@pytest.mark.parametrize("algebra", [LAST, DOUBLED, C.direct_sum(H), rotated(H, 0), R.direct_sum(Algebra([[[0.0]]]))])
@pytest.mark.parametrize("bias", [True, False])
def test_principal_components(algebra, bias):
    """Codes of the mean vanish, and reconstruction is the formula."""
    X = data(columns=4 * algebra.dim, rows=60)[0]
    x = packed(X, algebra, "full")
    model = ELMAutoencoder(algebra, 2, encoder="pca", bias=bias, ridge=1e-6, random_state=0).fit(x)
    e = [np.broadcast_to(bias_number(algebra), (60, 1, algebra.dim))] * bias
    h = product(np.concatenate([x, *e], axis=1), model.hidden_weights_, algebra)
    near(model.transform(x), h)
    near(model.reconstruct(x), product(np.concatenate([h, *e], axis=1), model.output_weights_, algebra))
    if bias:
        assert_allclose(model.transform(x).mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("algebra", [LAST, DOUBLED, C.direct_sum(H)], ids=["1 last", "entry 2", "C + H"])
def test_a_search_predicts_what_it_reports(algebra):
    X, T = data(rows=80, seed=3)
    search = ELMRegressorCV([algebra], [8], weight_scale=["auto"], n_draws=1, random_state=0).fit(X, T)
    assert np.mean((search.predict(X) - T) ** 2) < -10 * search.best_score_


def test_quaternions_with_their_identity_last_are_as_good_as_any():
    x = np.random.default_rng(0).standard_normal((200, 2, 4))
    T = np.tanh(x[:, :1]) + 10
    for algebra, order in ((H, [0, 1, 2, 3]), (LAST, [1, 2, 3, 0])):
        model = ELMRegressor(algebra, 30, random_state=0).fit(x[..., order], T[..., order])
        assert model.score(x[..., order], T[..., order]) > 0.93


def test_classes_of_an_algebra_with_its_identity_elsewhere():
    X, y = load_iris(return_X_y=True)
    for algebra in (H, LAST, permuted(algebras.get("octonions"), list(range(7, -1, -1)))):
        assert ELMClassifier(algebra, 20, random_state=0).fit(X, y).score(X, y) > 0.95


def test_on_a_cluster():
    da = pytest.importorskip("dask.array")
    from hyperelm import dask

    X, T = data(rows=60)
    here = ELMRegressor(LAST, 5, weight_scale=0.3, ridge=1e-3, random_state=0)
    there = dask.fit(here, da.from_array(X, chunks=(20, 5)), da.from_array(T, chunks=(20, 2)))
    expected = unpacked(written_out(there, packed(X, LAST, "full"), LAST, bias=True), LAST, "full", 2)
    near(there.predict(X), expected, there.output_weights_)
    assert_allclose(there.predict(X), here.fit(X, T).predict(X), atol=1e-9)
