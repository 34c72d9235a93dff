"""Networks that are trained together, against the paper's formula written out with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import ELMRegressor, algebras, linalg
from hyperelm.experiments._networks import Networks
from oracles import from_real, hidden, least_squares, left_matrix, product, to_real

SMALL = [name for name in algebras.names() if algebras.get(name).dim <= 8]
EPS = np.finfo(float).eps


# ---------------------------------------------------------------------- the paper, by brute force


def trained(X, T, weights, algebra, activation=np.tanh):
    """The output weights Φ_L(H)⁺ φ(T) of one network."""
    return least_squares(hidden(X, weights, algebra, activation=activation), T, algebra)


def predicted(X, weights, outputs, algebra, activation=np.tanh):
    return product(hidden(X, weights, algebra, activation=activation), outputs, algebra)


def data(algebra, *, m=60, D=2, N=2, L=3, networks=3, seed=0):
    """Rows X and T to learn from, and the weights of some networks."""
    rng = np.random.default_rng(seed)
    d = algebra.dim
    X, T = rng.uniform(-1, 1, (m, D, d)), rng.standard_normal((m, N, d))
    return X, T, rng.standard_normal((networks, D + 1, L, d))


# ---------------------------------------------------------------------- results


@pytest.mark.parametrize("name", SMALL)
def test_against_the_formula(name):
    algebra = algebras.get(name)
    X, T, weights = data(algebra)
    new = data(algebra, m=7, seed=1)[0]
    networks = Networks(algebra, weights).fit(X, T)
    expected = np.stack([trained(X, T, w, algebra) for w in weights])
    assert networks.output_weights_.shape == (3, 4, 2, algebra.dim)
    assert_allclose(networks.output_weights_, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    got = list(networks.predict(new))
    assert_allclose(got, [predicted(new, w, o, algebra) for w, o in zip(weights, expected)], rtol=0, atol=1e-9)


@given(
    name=st.sampled_from(SMALL),
    sizes=st.fixed_dictionaries(
        {"m": st.integers(1, 30), "networks": st.integers(1, 3)}
        | {key: st.integers(1, 4) for key in ("D", "N", "L")}
        | {"seed": st.integers(0, 10**6)}
    ),
)
def test_any_sizes(name, sizes):
    """The outputs of the rows themselves, also where they are fewer than the unknowns."""
    algebra = algebras.get(name)
    X, T, weights = data(algebra, **sizes)
    for got, w in zip(Networks(algebra, weights).fit(X, T).predict(X), weights):
        assert_allclose(got, predicted(X, w, trained(X, T, w, algebra), algebra), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_against_the_regressor(name):
    algebra = algebras.get(name)
    X, T, _ = data(algebra, m=80)
    new = data(algebra, m=20, seed=1)[0]
    models = [
        ELMRegressor(algebra, 4, weight_scale=0.7, ridge=0.0, random_state=seed).fit(X, T) for seed in (3, 14, 15)
    ]
    networks = Networks(algebra, np.stack([model.hidden_weights_ for model in models])).fit(X, T)
    for model, outputs, got in zip(models, networks.output_weights_, networks.predict(new)):
        expected = model.predict(new)
        assert np.linalg.norm(got - expected) < 1e-8 * np.linalg.norm(expected)
        assert np.linalg.norm(outputs - model.output_weights_) < 1e-8 * np.linalg.norm(outputs)


def test_inputs_of_their_own():
    """X of shape (B, m, D, d): every network sees other rows."""
    algebra = algebras.get("quaternions")
    X, T, weights = data(algebra)
    networks = Networks(algebra, weights).fit(X, T)
    own = np.random.default_rng(1).uniform(-1, 1, (3, 5, 2, 4))
    got = list(networks.predict(own))
    assert np.shape(got) == (3, 5, 2, 4)
    for rows, w, outputs, result in zip(own, weights, networks.output_weights_, got):
        assert_allclose(result, predicted(rows, w, outputs, algebra), rtol=0, atol=1e-12)
    same = list(networks.predict(np.stack([own[0]] * 3)))
    assert_array_equal(same, list(networks.predict(own[0])))


@pytest.mark.parametrize("name", ["real", "tessarines", "paper-Cl(1,1)", "octonions"])
def test_networks_do_not_depend_on_each_other(name):
    algebra = algebras.get(name)
    X, T, weights = data(algebra, networks=5)
    together = Networks(algebra, weights).fit(X, T)
    for n, got in enumerate(together.predict(X)):
        alone = Networks(algebra, weights[n : n + 1]).fit(X, T)
        assert_array_equal(alone.output_weights_[0], together.output_weights_[n])
        assert_array_equal(next(alone.predict(X)), got)
    backwards = Networks(algebra, weights[::-1]).fit(X, T)
    assert_array_equal(backwards.output_weights_[::-1], together.output_weights_)


def test_predictions_are_kept():
    """The next network does not overwrite them."""
    algebra = algebras.get("klein4")
    X, T, weights = data(algebra)
    networks = Networks(algebra, weights).fit(X, T)
    one_by_one = [result.copy() for result in networks.predict(X)]
    assert_array_equal(list(networks.predict(X)), one_by_one)


# ---------------------------------------------------------------------- accuracy


@pytest.fixture
def calls(monkeypatch):
    """How often either way of solving is taken."""
    counted = {"cholesky": 0, "qr": 0}
    by_cholesky, lstsq = Networks._by_cholesky, linalg.lstsq

    def count_cholesky(*arguments):
        counted["cholesky"] += 1
        return by_cholesky(*arguments)

    def count_lstsq(*arguments, method):
        counted[method] += 1
        return lstsq(*arguments, method=method)

    monkeypatch.setattr(Networks, "_by_cholesky", count_cholesky)
    monkeypatch.setattr("hyperelm.experiments._networks.linalg.lstsq", count_lstsq)
    return counted


def near_singular(algebra, distance, m=80, K=4, seed=0):
    """H whose last column is nearly the first, and targets with noise."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((m, K, algebra.dim))
    H[:, -1] = H[:, 0] + distance * H[:, -1]
    T = product(H, rng.standard_normal((K, 2, algebra.dim)), algebra)
    return H, T + 0.1 * rng.standard_normal(T.shape)


def solved(H, T, algebra):
    """The answer by components in memory, as `with_bias` gives them, and NumPy's."""
    K, d = H.shape[1:]
    by_components = np.ascontiguousarray(H.swapaxes(1, 2)).swapaxes(1, 2)
    x = Networks(algebra, np.zeros((1, 2, K, d))).solve(by_components, T)
    return x, from_real(np.linalg.lstsq(left_matrix(H, algebra), to_real(T), rcond=None)[0], algebra)


@pytest.mark.parametrize("name", ["real", "quaternions", "R[+1,+1]", "paper-Cl(1,1)", "dual", "split-octonions"])
@pytest.mark.parametrize(
    ("distance", "low", "high", "way"),
    [
        (1.0, 1, 1e3, {"cholesky": 1, "qr": 0}),
        (1e-5, 2e4, 5e5, {"cholesky": 2, "qr": 0}),
        (1e-8, 1e7, 1e10, {"cholesky": 0, "qr": 1}),
    ],
)
def test_three_regimes(name, distance, low, high, way, calls):
    algebra = algebras.get(name)
    H, T = near_singular(algebra, distance)
    condition = np.linalg.cond(left_matrix(H, algebra))
    assert low < condition < high
    x, expected = solved(H, T, algebra)
    assert calls == way
    got, best = product(H, x, algebra), product(H, expected, algebra)
    error = 100 * EPS * condition
    assert np.linalg.norm(got - best) < error * np.linalg.norm(T)
    assert np.linalg.norm(got - T) < np.linalg.norm(best - T) * (1 + error)
    assert np.linalg.norm(x - expected) < error * condition * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["real", "quaternions", "R[-1,+1]"])
def test_one_refinement_leaves_the_condition_and_not_its_square(name, calls):
    """Without noise the error of the answer itself is eps times the condition."""
    algebra = algebras.get(name)
    H, _ = near_singular(algebra, 3e-6)
    exact = np.random.default_rng(1).standard_normal((4, 2, algebra.dim))
    condition = np.linalg.cond(left_matrix(H, algebra))
    assert 1e5 < condition < 1e6
    x, _ = solved(H, product(H, exact, algebra), algebra)
    assert calls == {"cholesky": 2, "qr": 0}
    assert np.linalg.norm(x - exact) < 20 * EPS * condition * np.linalg.norm(exact)


@pytest.mark.parametrize("name", ["real", "complex", "tessarines", "klein4", "octonions"])
@pytest.mark.parametrize("kind", ["equal columns", "a column of zeros", "few rows", "nothing but zeros"])
def test_rank_deficient(name, kind, calls):
    """The answer of least norm, which is unique."""
    algebra = algebras.get(name)
    H, T = near_singular(algebra, 1.0, m=3 if kind == "few rows" else 40)
    if kind == "equal columns":
        H[:, 3] = H[:, 1]
    elif kind == "a column of zeros":
        H[:, 2] = 0
    elif kind == "nothing but zeros":
        H[:] = 0
    x, expected = solved(H, T, algebra)
    assert calls == {"cholesky": 0, "qr": 1}
    assert_allclose(x, expected, rtol=0, atol=1e-10 * (1 + np.abs(expected).max()))
    if kind == "few rows":
        assert_allclose(product(H, x, algebra), T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [1e-100, 1e-153, 1e-160, 1e-300])
def test_columns_whose_squares_vanish(size):
    """Their share of the outputs is what it is for columns of any size, or nothing."""
    algebra = algebras.get("quaternions")
    H, T = near_singular(algebra, 1.0)
    H[:, 1] *= size
    x, _ = solved(H, T, algebra)
    without = np.delete(H, 1, axis=1)
    outputs = [product(h, solved(h, T, algebra)[1], algebra) for h in (near_singular(algebra, 1.0)[0], without)]
    got = product(H, x, algebra)
    assert min(np.abs(got - expected).max() for expected in outputs) < 1e-9


def test_dead_neurons():
    """A neuron without weights leaves a column of zeros."""
    algebra = algebras.get("quaternions")
    X, T, weights = data(algebra)
    weights[0, :, 1] = 0
    for w, outputs in zip(weights, Networks(algebra, weights).fit(X, T).output_weights_):
        assert_allclose(outputs, trained(X, T, w, algebra), rtol=0, atol=1e-9)
