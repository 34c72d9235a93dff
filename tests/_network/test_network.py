"""A fitted network is a value, and predicts by the formula of the paper: for any table and for rows of any size.

It gives the right answer or an error that names it, and never NaN.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from functools import cache
from itertools import product as pairs_of
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from any_algebra import DOUBLED, LAST, WITH_IDENTITY, WITHOUT, C, H, R, permuted, rotated, tables
from helpers import near, numbers, quietly
from hyperelm import Algebra, ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, algebras, linalg, load, save
from hyperelm._backend.arrays import are_together, to_numpy
from hyperelm._estimators.frame import FrameRegressor
from hyperelm._network.activations import ACTIVATIONS, get
from hyperelm._network.layers import bias_number
from hyperelm._network.layout import Layout
from hyperelm._network.network import Network, Scaling
from hyperelm._network.readout import Readout
from hyperelm._solvers.calibration import Probabilities
from hyperelm.experiments._networks import Networks
from oracles import product

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random


# ---------------------------------------------------------------------- the value


def network(algebra, *, bias=True, direct_link=True, packing="full", dtype=np.float64, activation="tanh", seed=0):
    """A network of 5 columns in, 3 columns out and 4 neurons, with random weights."""
    source, target = (Layout.of(np.zeros((1, columns)), algebra, packing) for columns in (5, 3))
    D, N, d = source.features, target.features, algebra.dim
    W = 0.5 * numbers((D + bias, 4, d), seed, dtype)
    M = numbers((4 + direct_link * D + bias, N, d), seed + 1, dtype)
    return Network(algebra, source, target, W, M, get(activation), Readout("algebra", algebra.dim, algebra))


def plainly(network, X, f=np.tanh):
    """Codes and outputs with `linalg` alone: h = f([x, e] W) and y = [h, x, e] M."""
    algebra = network.algebra
    x = packed(X, algebra, "full")
    e = [np.broadcast_to(bias_number(algebra), (len(x), 1, algebra.dim))] * network.has_bias
    h = f(linalg.matmul(np.concatenate([x, *e], axis=1), network.hidden_weights, algebra))
    seen = np.concatenate([h, *[x] * network.has_direct_link, *e], axis=1)
    y = linalg.matmul(seen, network.output_weights, algebra)
    return h.reshape(len(X), -1), y.reshape(len(X), -1)[:, :3]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
@pytest.mark.parametrize("chunk_size", [None, 1, 3])
def test_codes_and_outputs_are_those_of_the_paper(algebra, bias, direct_link, chunk_size):
    net, X = network(algebra, bias=bias, direct_link=direct_link), numbers((7, 5), 5)
    before = X.copy()
    codes, outputs = plainly(net, X)
    near(net.codes(X, chunk_size), codes)
    near(net.outputs(X, chunk_size), outputs)
    if not direct_link:
        near(net.decode(codes), outputs)
    assert_array_equal(X, before)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_codes_of_every_activation(name):
    net, X = network(H, activation=name), numbers((7, 5), 5)
    codes, outputs = plainly(net, X, lambda z: ACTIVATIONS[name].on_axis(-1)(z.copy()))
    near(net.codes(X), codes)
    near(net.outputs(X), outputs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
def test_facts(bias, direct_link):
    net = network(H, bias=bias, direct_link=direct_link, dtype=np.float32)
    assert (net.neurons, net.has_bias, net.has_direct_link, net.dtype) == (4, bias, direct_link, np.float32)
    assert net.n_parameters == net.hidden_weights.size + net.output_weights.size
    assert net.offset is None
    assert_array_equal(net.readout.table, H.table)
    ops = net.operators
    assert ops.hidden.shape == (5, 16)
    assert ops.readout.shape == (16 + 5 * direct_link, 3)
    assert (ops.hidden_bias is None) == (ops.readout_bias is None) == (not bias)
    assert net.operators is ops
    assert {part.dtype for part in vars(ops).values() if part is not None} == {np.dtype(np.float32)}


def test_scaled_columns_are_part_of_the_matrices():
    """x' = (x - a)/s and t' = (t - b)/u."""
    rng = np.random.default_rng(3)
    a, s, b, u = (rng.uniform(1, 2, columns) for columns in (5, 5, 3, 3))
    for bias, direct_link in pairs_of((True, False), (True, False)):
        plain, X = network(H, bias=bias, direct_link=direct_link), 100 * numbers((7, 5), 5)
        net = replace(plain, scaling=Scaling(a, s, b, u))
        assert net.offset is a
        near(net.codes(X), plain.codes((X - a) / s))
        near(net.outputs(X), plain.outputs((X - a) / s) * u + b)


def test_it_is_frozen():
    net = network(H)
    for name in ("hidden_weights", "algebra", "scaling", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(net, name, None)
    with pytest.raises(FrozenInstanceError):
        del net.output_weights
    for value in (net.operators, Scaling(*[np.ones(1)] * 4)):
        with pytest.raises(FrozenInstanceError):
            setattr(value, next(iter(vars(value))), None)


def test_the_weights_of_an_estimator_are_those_of_its_network():
    model = ELMRegressor("klein4", 3, random_state=0).fit(numbers((30, 5)), numbers((30, 2), 1))
    assert model.hidden_weights_ is model.network_.hidden_weights
    assert model.output_weights_ is model.network_.output_weights
    assert model.n_parameters_ == model.network_.n_parameters
    for name in ("hidden_weights_", "output_weights_", "n_parameters_"):
        with pytest.raises(AttributeError):
            setattr(model, name, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_to_another_library_and_back(library, dtype):
    net, X = network(algebras.get("octonions"), dtype=dtype), numbers((7, 5), 5, dtype)
    expected = net.outputs(X)
    there = net.to(library(np.zeros(1, dtype)))
    assert are_together(there.hidden_weights, library(X))
    assert are_together(there.output_weights, library(X))
    codes, outputs = there.codes(library(X)), there.outputs(library(X))
    for found in (codes, outputs):
        assert are_together(found, library(X))
        assert to_numpy(found).dtype == dtype
    assert_allclose(to_numpy(outputs), expected, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert_allclose(to_numpy(codes), net.codes(X), rtol=0, atol=100 * np.finfo(dtype).eps)
    back = there.to(np.zeros(0))
    assert_array_equal(back.hidden_weights, net.hidden_weights)
    assert_array_equal(back.output_weights, net.output_weights)
    assert_array_equal(back.outputs(X), expected)
    assert there.to(library(X)) is there
    assert net.to(X) is net


def test_pickled_without_its_operators():
    net, X = network(algebras.get("sedenions"), activation="sine"), numbers((7, 5), 5)
    small = len(pickle.dumps(net))
    expected = net.outputs(X)
    assert "operators" in vars(net)
    content = pickle.dumps(net)
    assert len(content) == small
    again = pickle.loads(content)
    assert "operators" not in vars(again)
    assert_array_equal(again.outputs(X), expected)
    with pytest.raises(FrozenInstanceError):
        again.algebra = C


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("model-v1-*.hyperelm")), ids=lambda path: path.stem)
def test_models_from_files_of_format_1_are_pickled(path):
    """They predict bit for bit the same, and go on with more rows as the model from the file does."""
    record = json.loads(path.with_suffix(".json").read_text())
    model = load(path)
    X = np.array(record["X"], model.hidden_weights_.dtype)
    again = pickle.loads(pickle.dumps(model))
    for method in record["outputs"]:
        assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    for each in (model, again):
        each.partial_fit(X, *map(np.array, record["more"]))
    assert model.n_samples_seen_ == again.n_samples_seen_ == record["rows"] + len(X)
    assert_array_equal(again.output_weights_, model.output_weights_)


# ---------------------------------------------------------------------- the formula, number by number


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


def codes_of(W, x, algebra, e):
    """h = f([x, e] W)."""
    return np.tanh(product(np.concatenate([x, *e], axis=1), W, algebra))


def by_formula(W, M, x, algebra, *, bias, direct_link=False):
    """y = [h, x, e] M."""
    e = [np.broadcast_to(bias_number(algebra), (len(x), 1, algebra.dim))] * bias
    h = codes_of(W, x, algebra, e)
    return product(np.concatenate([h, *[x] * direct_link, *e], axis=1), M, algebra)


def written_out(model, x, algebra, **options):
    """The same with the weights of a model."""
    return by_formula(model.hidden_weights_, model.output_weights_, x, algebra, **options)


def unpacked(Y, algebra, packing, columns):
    places = {"full": range(algebra.dim), "imaginary": range(1, algebra.dim), "real": [0]}[packing]
    return Y[:, :, places].reshape(len(Y), -1)[:, :columns]


def data(columns=5, rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) + 0.5
    return X, np.sin(X[:, :2]) + 3


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
    A = np.concatenate([codes_of(model.hidden_weights_, x, algebra, [e]), *[x] * direct_link, e], axis=1)
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

    table = FrameRegressor(**parameters).fit(X, T)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = unpacked(written_out(table, packed(standard, algebra, "full"), algebra, bias=True), algebra, "full", 2)
    near(table.predict(X), Y * T.std(axis=0) + T.mean(axis=0), table.output_weights_)


@pytest.mark.parametrize("algebra", [algebra for algebra, _ in WITH_IDENTITY.values()], ids=WITH_IDENTITY)
def test_networks_that_are_trained_together(algebra):
    """Those of the experiments, which are for algebras with an identity."""
    rng, d = np.random.default_rng(0), algebra.dim
    x, T, W = rng.standard_normal((50, 2, d)), rng.standard_normal((50, 1, d)) + 3, rng.standard_normal((2, 3, 4, d))
    networks = Networks(algebra, W).fit(x, T)
    for n, got in enumerate(networks.predict(x)):
        M = networks.output_weights_[n]
        near(got, by_formula(W[n], M, x, algebra, bias=True), M)


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


# ---------------------------------------------------------------------- rows of any size

# Activations that stay within ±1 for arguments of any size; of `sine` that is chance, and the others follow the rows.
SATURATING = ("tanh", "sigmoid", "gaussian", "hard_tanh", "softsign")
BEYOND = "`X` must have rows whose codes and outputs are within float32"
FORMULAS = {
    "tanh": np.tanh,
    "sigmoid": lambda h: 1 / (1 + np.exp(-np.clip(h, -700, 700))),
    "gaussian": lambda h: np.exp(-(np.minimum(np.abs(h), 1e100) ** 2)),
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "softsign": lambda h: h / (1 + np.abs(h)),
}


def finite_or_refused(method, X):
    try:
        return method(X)
    except ValueError as error:
        if "`X` must have rows whose codes and outputs are within" not in str(error):
            raise
        return None


def rows(n=60, columns=6, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal((n, columns)).astype(dtype)


def far(size, seed=1):
    """Double rows of any size, with columns of both signs."""
    return size * np.random.default_rng(seed).uniform(-1, 1, (5, 6))


def in_double(model, X, activation):
    """Both layers in double, with every row in a unit of its own."""
    ops = model.network_.operators
    matrices = (ops.hidden, ops.hidden_bias, ops.readout, ops.readout_bias)
    A, a, B, b = (np.asarray(part, np.float64) for part in matrices)
    units = np.abs(X).max(axis=1, keepdims=True)
    codes = FORMULAS[activation](np.clip((X / units @ A) * units + a, -1e300, 1e300))
    return codes, codes @ B + b


@pytest.mark.parametrize("activation", SATURATING)
@pytest.mark.parametrize("size", [1e30, 3e38, 1e39, 1e60, 1e300])
def test_saturated_neurons_of_single_precision(activation, size):
    X, y = rows(), rows(seed=2)[:, :2]
    model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(X, y)
    Y = model.predict(far(size))
    assert Y.dtype == np.float32
    assert_allclose(Y, in_double(model, far(size), activation)[1], rtol=1e-4, atol=1e-4)

    autoencoder = ELMAutoencoder("complex", 5, activation=activation, random_state=0).fit(X)
    codes, again = in_double(autoencoder, far(size), activation)
    assert_allclose(autoencoder.transform(far(size)), codes, atol=1e-5)
    assert_allclose(autoencoder.reconstruct(far(size)), again, rtol=1e-4, atol=1e-4)

    classifier = ELMClassifier("klein4", 10, activation=activation, random_state=0).fit(X, np.arange(60) % 3)
    scores = in_double(classifier, far(size), activation)[1]
    assert_allclose(classifier.decision_function(far(size)), scores, rtol=1e-4, atol=1e-4)
    assert_allclose(classifier.predict_proba(far(size)).sum(axis=1), 1, atol=1e-5)
    assert classifier.predict(far(size)).shape == (5,)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
def test_outputs_that_follow_the_rows(activation):
    """Within the range of the precision they are right, beyond it they are refused."""
    X = rows()
    model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(X, 1e-3 * X[:, :2])
    wide = ELMRegressor("quaternions", 10, activation=activation, random_state=0)
    wide.fit(X.astype(float), 1e-3 * X[:, :2].astype(float))
    weights = (model.hidden_weights_.astype(float), model.output_weights_.astype(float))
    wide.network_ = replace(wide.network_, hidden_weights=weights[0], output_weights=weights[1])
    assert_allclose(model.predict(far(1e39)), wide.predict(far(1e39)), rtol=1e-4, atol=1e-4 * 1e36)
    with pytest.raises(ValueError, match=BEYOND):
        model.predict(far(1e60))
    autoencoder = ELMAutoencoder("quaternions", 10, activation=activation, random_state=0).fit(X)
    for method in (autoencoder.transform, autoencoder.reconstruct):
        with pytest.raises(ValueError, match=BEYOND):
            method(far(1e60))


@cache
def fitted_to_rows(activation, dtype, direct_link):
    """One model of every class."""
    X = rows(dtype=dtype)
    return [
        ELMRegressor("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0]),
        ELMClassifier("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0] > 0),
        ELMAutoencoder("complex", 4, activation=activation, random_state=0).fit(X),
        FrameRegressor("complex", 4, activation=activation, direct_link=direct_link, random_state=0).fit(X, X[:, 0]),
    ]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(exponent=st.integers(25, 308), direct_link=st.booleans(), seed=st.integers(0, 99))
def test_never_nan(activation, dtype, exponent, direct_link, seed):
    large = far(10.0**exponent, seed)
    methods = ("predict", "decision_function", "predict_proba", "transform", "reconstruct")
    for model, method in pairs_of(fitted_to_rows(activation, dtype, direct_link), methods):
        if hasattr(model, method):
            answer = finite_or_refused(getattr(model, method), large)
            assert answer is None or np.isfinite(answer).all()


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ([1e-5, 1.0], [1e39, -3e38]),  # the first is infinite in single precision, and the smaller of the products
        ([1.0, 1.0, 1.0, 1.0], [2e38, 2e38, -3e38, -3e38]),  # the sum of the first two is infinite
    ],
)
def test_signs_of_what_is_beyond_the_precision(weights, row):
    X = rows(columns=len(row))
    model = ELMAutoencoder("real", 1, bias=False, random_state=0).fit(X)
    model.network_ = replace(model.network_, hidden_weights=np.array(weights, dtype=np.float32)[:, None, None])
    assert model.transform(np.array([row])) == -1


def test_rows_beside_the_large_ones_are_as_they_were():
    X = rows()
    model = ELMRegressor("quaternions", 10, random_state=0).fit(X, X[:, :2])
    mixed = np.concatenate([X.astype(float), far(1e200)])
    assert_allclose(model.predict(mixed)[:60], model.predict(X), atol=1e-5)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e8, 3e38])
def test_probabilities_of_scores_of_any_size(size):
    scores = size * np.array([[1.0, 1, -1], [1, -1, -1], [-1, -1, -1], [0.5, 0.5, 0.5]], dtype=np.float32)
    probabilities = Probabilities().of(scores)
    if size > 1:
        assert_allclose(probabilities, [[0.5, 0.5, 0], [1, 0, 0], [1 / 3] * 3, [1 / 3] * 3], atol=1e-6)
    assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert np.all((probabilities > 0) & (probabilities < 1))


def test_codes_of_any_size():
    X = rows()
    model = ELMAutoencoder("complex", 5, random_state=0).fit(X)
    codes = model.transform(X).astype(float)
    linear = model.inverse_transform(codes) - model.network_.operators.readout_bias
    assert_allclose(model.inverse_transform(1e37 * codes) / 1e37, linear, atol=1e-4)
    with pytest.raises(ValueError, match=BEYOND):
        model.inverse_transform(1e60 * codes)


def test_other_libraries(library, monkeypatch):
    X = rows()
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        for activation in SATURATING:
            model = ELMRegressor("quaternions", 10, activation=activation, random_state=0).fit(
                library(X), library(X[:, 0])
            )
            assert np.isfinite(to_numpy(model.predict(library(far(1e200))))).all()
        model = ELMRegressor("quaternions", 10, activation="relu", random_state=0).fit(library(X), library(X[:, 0]))
        with pytest.raises(ValueError, match=BEYOND):
            model.predict(library(far(1e200)))


def test_more_rows_that_are_too_large_are_refused():
    X = rows()
    model = ELMRegressor("quaternions", 4, random_state=0).partial_fit(X, X[:, 0])
    before = model.predict(X)
    with pytest.raises(
        ValueError, match=r"`X` must be at most 3e\+38, the largest number in the precision of the model"
    ):
        model.partial_fit(far(1e39), np.zeros(5))
    assert_allclose(model.predict(X), before)
