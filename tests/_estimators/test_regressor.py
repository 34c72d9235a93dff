"""ELMRegressor against the formulas of the paper, written out number by number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from helpers import numbers
from hyperelm import Algebra, ELMRegressor, ELMRegressorCV, RankDeficiencyWarning, algebras, linalg, pack, unpack
from oracles import from_real, hidden, least_squares, left_matrix, penalised, product, ridge_solution, to_real, with_one

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

ROWS = 150


def ridge_formula(H, T, algebra, ridge, *, bias=True):
    """(Φᵀ Φ + λ P)⁻¹ Φᵀ φ(T), where P leaves out the components of the bias."""
    penalty = penalised(algebra, H.shape[1], free=[H.shape[1] - 1] if bias else [])
    return from_real(ridge_solution(left_matrix(H, algebra), to_real(T), ridge, penalty), algebra)


def close(actual, expected, tolerance=1e-8):
    assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("bias", "direct_link"), [(True, False), (False, False), (True, True), (False, True)])
def test_the_formula_of_the_paper(algebra, bias, direct_link):
    D, L, N = 3, 4, 2
    x, t, new = numbers((ROWS, D, algebra.dim)), numbers((ROWS, N, algebra.dim), 1), numbers((20, D, algebra.dim), 2)
    model = ELMRegressor(algebra, L, weight_scale=0.4, ridge=0, bias=bias, direct_link=direct_link, random_state=0)
    model.fit(x, t)
    W = model.hidden_weights_
    assert W.shape == (D + bias, L, algebra.dim)
    options = {"bias": bias, "direct_link": direct_link}
    M = least_squares(hidden(x, W, algebra, **options), t, algebra)
    assert model.output_weights_.shape == M.shape == (L + D * direct_link + bias, N, algebra.dim)
    close(model.output_weights_, M)
    close(model.predict(new), product(hidden(new, W, algebra, **options), M, algebra))
    assert model.predict(new).shape == (20, N, algebra.dim)


def test_hidden_layer_by_left_matrices(algebra):
    """φ(xW) = Φ_L(x) φ(W), the paper's other way to the same numbers."""
    x, t = numbers((ROWS, 2, algebra.dim)), numbers((ROWS, 1, algebra.dim), 1)
    model = ELMRegressor(algebra, 3, weight_scale=0.4, ridge=0, random_state=0).fit(x, t)
    h = linalg.from_real(linalg.left_matrix(with_one(x), algebra) @ linalg.to_real(model.hidden_weights_), algebra)
    H = with_one(np.tanh(h))
    M = least_squares(H, t, algebra)
    close(model.predict(x), linalg.from_real(linalg.left_matrix(H, algebra) @ linalg.to_real(M), algebra))


def test_attributes(algebra):
    d, D, L, N = algebra.dim, 3, 4, 2
    model = ELMRegressor(algebra, L, weight_scale=0.4, ridge=0, random_state=0)
    model.fit(numbers((ROWS, D, d)), numbers((ROWS, N, d)))
    assert model.algebra_ == algebra
    assert model.n_parameters_ == d * ((D + 1) * L + (L + 1) * N)
    assert model.weight_scale_ == 0.4
    assert model.ridge_ == 0
    assert model.n_features_in_ == D
    matrix = linalg.left_matrix(hidden(numbers((ROWS, D, d)), model.hidden_weights_, algebra), algebra)
    assert model.rank_ == np.linalg.matrix_rank(matrix) == d * (L + 1)
    assert 1 <= model.condition_ < 100 * np.linalg.cond(matrix)
    exact = ELMRegressor(algebra, L, weight_scale=0.4, ridge=0, solver="qr", random_state=0)
    exact.fit(numbers((ROWS, D, d)), numbers((ROWS, N, d)))
    assert exact.condition_ == pytest.approx(np.linalg.cond(matrix), rel=1e-8)


def test_parameters_of_the_experiments_of_the_paper():
    """Both auto-encoders of section 5.3 have 3,686,400 parameters; here with a hundredth of the pixels."""
    x, t = numbers((30, 10, 4)), numbers((30, 10, 4))
    model = ELMRegressor("quaternions", 45, bias=False, ridge=0.1).fit(x, t)
    assert model.n_parameters_ == 4 * (10 * 45 + 45 * 10)


@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "klein4", "paper-Cl(1,1)", "octonions"])
def test_tables_are_packed(name, packing):
    """Seven columns and five targets fill no whole number of numbers; what comes out is what went in."""
    algebra = algebras.get(name)
    X, Y, new = numbers((ROWS, 7)), numbers((ROWS, 5), 1), numbers((20, 7), 2)
    model = ELMRegressor(algebra, 3, weight_scale=0.4, ridge=0, packing=packing, random_state=0).fit(X, Y)
    x, t, z = (pack(array, algebra, into=packing) for array in (X, Y, new))
    W = model.hidden_weights_
    assert W.shape == (x.shape[1] + 1, 3, algebra.dim)
    M = least_squares(hidden(x, W, algebra), t, algebra)
    close(model.output_weights_, M)
    expected = unpack(product(hidden(z, W, algebra), M, algebra), algebra, into=packing)[:, :5]
    close(model.predict(new), expected)
    assert model.predict(new).shape == (20, 5)
    assert model.n_features_in_ == 7
    assert model.n_parameters_ == algebra.dim * ((x.shape[1] + 1) * 3 + 4 * t.shape[1])


@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
def test_direct_link_of_a_packed_table(packing):
    algebra = algebras.get("quaternions")
    X, Y = numbers((ROWS, 7)), numbers((ROWS, 5), 1)
    model = ELMRegressor(algebra, 3, weight_scale=0.4, ridge=1e-3, packing=packing, direct_link=True, random_state=0)
    model.fit(X, Y)
    x, t = pack(X, algebra, into=packing), pack(Y, algebra, into=packing)
    H = hidden(x, model.hidden_weights_, algebra, direct_link=True)
    M = ridge_formula(H, t, algebra, 1e-3)
    close(model.predict(X), unpack(product(H, M, algebra), algebra, into=packing)[:, :5])


@pytest.mark.parametrize("packing", ["full", "imaginary"])
def test_vectors_stand_in_the_real_part(algebra, packing):
    X, y = numbers((ROWS, 4)), numbers(ROWS, 1)
    # A ridge, since the imaginary parts of the dual numbers multiply to zero, and the hidden layer has not full rank.
    model = ELMRegressor(algebra, 3, weight_scale=0.4, ridge=0.1, packing=packing, random_state=0).fit(X, y)
    x = pack(X, algebra, into=packing)
    t = np.zeros((ROWS, 1, algebra.dim))
    t[:, 0, 0] = y
    H = hidden(x, model.hidden_weights_, algebra)
    M = ridge_formula(H, t, algebra, 0.1)
    close(model.predict(X), product(H, M, algebra)[:, 0, 0])
    assert model.predict(X).shape == (ROWS,)


def test_mixed_dimensions():
    """Numbers in, a table out; a table in, numbers out."""
    x, X = numbers((ROWS, 2, 4)), numbers((ROWS, 8))
    for inputs in (x, X):
        for shape in [(ROWS,), (ROWS, 3), (ROWS, 2, 4)]:
            model = ELMRegressor(n_hidden=4, ridge=0.1, random_state=0).fit(inputs, numbers(shape, 1))
            assert model.predict(inputs).shape == shape
    tables, arrays = (ELMRegressor(n_hidden=4, ridge=0.1, random_state=0) for _ in range(2))
    tables.fit(X, numbers((ROWS, 4), 1))
    arrays.fit(X.reshape(ROWS, 2, 4), numbers((ROWS, 4), 1).reshape(ROWS, 1, 4))
    assert_array_equal(tables.output_weights_, arrays.output_weights_)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("relu", lambda x: np.maximum(x, 0)),
        ("sine", np.sin),
        ("gaussian", lambda x: np.exp(-(x**2))),
        (np.arctan, np.arctan),
    ],
)
def test_activations(name, function):
    algebra = algebras.get("tessarines")
    X, y = numbers((ROWS, 8)), numbers((ROWS, 4), 1)
    model = ELMRegressor(algebra, 4, activation=name, weight_scale=0.4, ridge=0.1, random_state=0).fit(X, y)
    H = hidden(pack(X, algebra, into="full"), model.hidden_weights_, algebra, activation=function)
    M = ridge_formula(H, pack(y, algebra, into="full"), algebra, 0.1)
    close(model.predict(X), unpack(product(H, M, algebra), algebra, into="full"))


def test_weights_are_normal_with_the_scale():
    x = 3 * numbers((50, 20, 4))
    for scale, expected in ((0.7, 0.7), ("paper", 10 / 20)):
        model = ELMRegressor(n_hidden=200, weight_scale=scale, ridge=1, random_state=0).fit(x, x)
        assert model.weight_scale_ == pytest.approx(expected)
        assert model.hidden_weights_.std() == pytest.approx(expected, rel=0.03)
        assert abs(model.hidden_weights_.mean()) < 0.03 * expected
    auto = ELMRegressor(n_hidden=200, ridge=1, random_state=0).fit(x, x)
    # Some constant over the root mean square norm of the rows.
    per_norm = auto.weight_scale_ * np.sqrt((x**2).sum(axis=(1, 2)).mean())
    assert 0.1 < per_norm < 10
    assert auto.hidden_weights_[:-1].std() == pytest.approx(auto.weight_scale_, rel=0.03)
    again = ELMRegressor(n_hidden=10, ridge=1, random_state=0).fit(7 * x[::2], x[::2])
    assert again.weight_scale_ * 7 * np.sqrt((x[::2] ** 2).sum(axis=(1, 2)).mean()) == pytest.approx(per_norm)


@pytest.mark.parametrize("unit", [1000.0, 1e-6])
def test_the_automatic_scale_knows_no_unit(unit):
    X, Y = numbers((ROWS, 8)), numbers((ROWS, 3), 1)
    models = [ELMRegressor("R[-1,+1]", 10, random_state=0).fit(factor * X, Y) for factor in (1, unit)]
    close(models[1].predict(unit * X), models[0].predict(X), 1e-6)


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("ridge", ["gcv", 0.1])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_inputs_give_the_mean(value, ridge, solver):
    """Nothing but the bias can explain anything, and rounding is not taken for a signal."""
    X = np.full((20, 4), value)
    for name in ("real", "complex", "quaternions"):
        model = ELMRegressor(name, 3, ridge=ridge, solver=solver, random_state=0).fit(X, np.arange(20.0))
        assert_allclose(model.predict(X), 9.5, rtol=1e-6)


@pytest.mark.parametrize("ridge", ["gcv", 0.1])
def test_one_row(ridge):
    X, y = numbers((1, 4)), np.array([3.0])
    assert_allclose(ELMRegressor(n_hidden=5, ridge=ridge, random_state=0).fit(X, y).predict(X), y)


def test_ridge_leaves_the_bias_alone(algebra):
    x, t = numbers((60, 2, algebra.dim)), numbers((60, 2, algebra.dim), 1) + 5
    for bias in (True, False):
        for solver in ("auto", "gram", "qr", "svd"):
            model = ELMRegressor(algebra, 3, weight_scale=0.4, ridge=0.7, bias=bias, solver=solver, random_state=0)
            model.fit(x, t)
            H = hidden(x, model.hidden_weights_, algebra, bias=bias)
            M = ridge_formula(H, t, algebra, 0.7, bias=bias)
            close(model.output_weights_, M)
            assert model.ridge_ == 0.7


def test_a_large_ridge_leaves_the_mean():
    X, y = numbers((60, 4)), numbers(60, 1) + 5
    model = ELMRegressor(n_hidden=5, ridge=1e12, random_state=0).fit(X, y)
    assert_allclose(model.predict(X), y.mean(), rtol=1e-6)


def test_solvers_agree(algebra):
    x, t = numbers((ROWS, 3, algebra.dim)), numbers((ROWS, 2, algebra.dim), 1)
    for ridge in (0, 0.1, "gcv"):
        predictions = [
            ELMRegressor(algebra, 4, weight_scale=0.4, ridge=ridge, solver=solver, random_state=0).fit(x, t).predict(x)
            for solver in ("svd", "qr", "gram", "auto")
        ]
        for other in predictions[1:]:
            close(other, predictions[0], 1e-5 if ridge == "gcv" else 1e-9)


def test_gcv_is_no_worse_than_its_neighbours():
    """The criterion n ‖(1 - S)T‖² / (n - tr S)² of the real problem, written out on a grid."""
    algebra = algebras.get("klein4")
    x, t = numbers((40, 3, 4)), numbers((40, 1, 4), 1)
    model = ELMRegressor(algebra, 8, weight_scale=0.4, random_state=0).fit(x, t)
    H = hidden(x, model.hidden_weights_, algebra)
    matrix, target = linalg.left_matrix(H, algebra), linalg.to_real(t)
    free = linalg.to_real(np.eye(9)[-1][:, None, None] * np.ones(4)).ravel()

    def criterion(ridge):
        smoother = matrix @ np.linalg.solve(matrix.T @ matrix + ridge * np.diag(1 - free), matrix.T)
        return np.sum((target - smoother @ target) ** 2) / (len(target) - np.trace(smoother)) ** 2

    best = min(criterion(ridge) for ridge in np.logspace(-4, 6, 101))
    assert criterion(model.ridge_) <= 1.01 * best


def rank_warnings(model, x, t):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, t)
    return [str(w.message) for w in caught if issubclass(w.category, RankDeficiencyWarning)]


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("name", ["real", "quaternions", "klein4", "octonions"])
def test_rank_deficiency_is_warned_of_exactly_without_ridge(name, solver):
    algebra = algebras.get(name)
    x, t = numbers((30, 3, algebra.dim)), numbers((30, 1, algebra.dim), 1)
    options = {"weight_scale": 0.4, "solver": solver, "random_state": 0}
    found = rank_warnings(ELMRegressor(algebra, 40, ridge=0, **options), x, t)
    assert len(found) == 1
    assert f"rank {30 * algebra.dim} of {41 * algebra.dim} on 30 rows" in found[0]
    assert not rank_warnings(ELMRegressor(algebra, 4, ridge=0, **options), x, t)
    for ridge in (1e-3, "gcv"):
        assert not rank_warnings(ELMRegressor(algebra, 40, ridge=ridge, **options), x, t)


def test_the_least_norm_when_deficient(algebra):
    x, t = numbers((10, 2, algebra.dim)), numbers((10, 1, algebra.dim), 1)
    model = ELMRegressor(algebra, 14, weight_scale=0.8, ridge=0, random_state=0)
    with pytest.warns(RankDeficiencyWarning, match="least norm"):
        model.fit(x, t)
    H = hidden(x, model.hidden_weights_, algebra)
    close(model.output_weights_, least_squares(H, t, algebra), 1e-6)
    close(model.predict(x), t, 1e-6)
    assert model.rank_ == np.linalg.matrix_rank(linalg.left_matrix(H, algebra))


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("ridge", [0.1, "gcv"])
@pytest.mark.parametrize("name", ["real", "quaternions", "klein4", "octonions"])
def test_rank_is_that_of_the_hidden_layer_with_ridge_too(name, ridge, solver):
    """Six inputs through the identity have rank d (6 + 1), if the algebra is associative; 30 rows at most 30 d."""
    algebra = algebras.get(name)
    x, few = numbers((ROWS, 6, algebra.dim)), numbers((30, 3, algebra.dim))
    options = {"weight_scale": 0.4, "ridge": ridge, "solver": solver, "random_state": 0}
    model = ELMRegressor(algebra, 20, activation="identity", **options).fit(x, numbers(x.shape, 9))
    matrix = linalg.left_matrix(hidden(x, model.hidden_weights_, algebra, activation=lambda v: v), algebra)
    assert model.rank_ == np.linalg.matrix_rank(matrix)
    assert (model.condition_ == np.inf) == (model.rank_ < matrix.shape[1])
    # (xw)m = x(wm) makes neurons dependent; without it, in the octonions, they are not.
    assert model.rank_ == 7 * algebra.dim or not algebra.is_associative
    assert ELMRegressor(algebra, 40, **options).fit(few, numbers(few.shape, 9)).rank_ <= 30 * algebra.dim


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("shape", [(ROWS, 8), (ROWS, 2, 4)])
def test_single_precision(solver, shape):
    x, t = numbers(shape), numbers((ROWS, 4), 1)
    options = {"n_hidden": 6, "weight_scale": 0.4, "ridge": 0.1, "solver": solver, "random_state": 0}
    model = ELMRegressor(**options).fit(x.astype(np.float32), t.astype(np.float32))
    assert model.predict(x.astype(np.float32)).dtype == np.float32
    assert model.hidden_weights_.dtype == model.output_weights_.dtype == np.float32
    # float64 rows do not change the precision that was fitted.
    close(model.predict(x), model.predict(x.astype(np.float32)), 1e-5)
    algebra = algebras.get("quaternions")
    H = hidden(x.reshape(ROWS, 2, 4), model.hidden_weights_.astype(float), algebra)
    M = ridge_formula(H, t.reshape(ROWS, 1, 4), algebra, 0.1)
    close(model.predict(x.astype(np.float32)), product(H, M, algebra)[:, 0], 1e-4)
    double = ELMRegressor(**options).fit(x, t)
    assert double.predict(x).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, bool])
def test_integers_are_floats(dtype):
    X = np.random.default_rng(0).integers(0, 200, (ROWS, 8)).astype(dtype)
    y = np.random.default_rng(1).integers(-5, 5, (ROWS, 2))
    models = [
        ELMRegressor("klein4", 6, ridge=0.1, random_state=0).fit(inputs, targets)
        for inputs, targets in ((X, y), (X.astype(float), y.astype(float)))
    ]
    assert_array_equal(models[0].predict(X), models[1].predict(X.astype(float)))
    assert models[0].predict(X).dtype == np.float64


@pytest.mark.parametrize("chunk_size", [1, 64, 1000])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
def test_chunks_change_nothing(solver, chunk_size):
    for name in ("quaternions", "octonions") if chunk_size > 1 else ("R[+1,+1]",):
        X, Y = numbers((ROWS, 8)), numbers((ROWS, 3), 1)
        options = {"n_hidden": 5, "ridge": 0.1, "solver": solver, "random_state": 0}
        whole = ELMRegressor(name, **options).fit(X, Y)
        parts = ELMRegressor(name, chunk_size=chunk_size, **options).fit(X, Y)
        close(parts.predict(X), whole.predict(X), 1e-9)


@pytest.mark.parametrize(
    ("solver", "ridge", "scale"),
    [("auto", 0, 0.4), ("gram", 0, "paper"), ("qr", 0, 0.4), ("auto", 0.1, "paper"), ("gram", 0.1, 0.4)],
)
def test_partial_fit_equals_fit(algebra, solver, ridge, scale):
    x, t = numbers((ROWS, 2, algebra.dim)), numbers((ROWS, 2, algebra.dim), 1)
    weight = np.random.default_rng(2).uniform(0.5, 2, ROWS)
    options = {"n_hidden": 3, "weight_scale": scale, "ridge": ridge, "solver": solver, "random_state": 0}
    whole = ELMRegressor(algebra, **options).fit(x, t, weight)
    pieces = ELMRegressor(algebra, **options)
    for rows in (slice(0, 60), slice(60, 61), slice(61, ROWS)):
        pieces.partial_fit(x[rows], t[rows], weight[rows])
    assert_array_equal(pieces.hidden_weights_, whole.hidden_weights_)
    # The smallest singular value decides how long the weights are, and with them what rounding in a Gram matrix does.
    close(pieces.predict(x), whole.predict(x), 1e-8 + (1e-15 * whole.condition_**2 if solver == "gram" else 0))
    assert pieces.rank_ == whole.rank_


def test_partial_fit_from_too_few_rows():
    """Least squares begins before there are as many rows as unknowns."""
    X, y = numbers((60, 4)), numbers(60, 1)
    model = ELMRegressor("complex", 4, weight_scale=0.4, ridge=0, random_state=0)
    with pytest.warns(RankDeficiencyWarning, match="on 2 rows"):
        model.partial_fit(X[:2], y[:2])
    model.partial_fit(X[2:], y[2:])
    close(model.predict(X), ELMRegressor("complex", 4, weight_scale=0.4, ridge=0, random_state=0).fit(X, y).predict(X))


def test_partial_fit_that_fails_leaves_the_model_as_it_was():
    def picky(x):
        return np.where(np.abs(x) > 1e100, np.nan, np.tanh(x))

    X, y = numbers((60, 4)), numbers((60,), 1)
    model = ELMRegressor(n_hidden=5, weight_scale=0.3, chunk_size=10, activation=picky, random_state=0)
    expected = model.partial_fit(X[:20], y[:20]).partial_fit(X[40:], y[40:]).output_weights_
    model = ELMRegressor(n_hidden=5, weight_scale=0.3, chunk_size=10, activation=picky, random_state=0)
    model.partial_fit(X[:20], y[:20])
    bad = X[20:40].copy()
    bad[15] = 1e200
    with pytest.raises(ValueError, match="`H` must be finite"):  # with the second chunk
        model.partial_fit(bad, y[20:40])
    with pytest.raises(ValueError, match="beyond double precision"):  # with the solution
        model.partial_fit(X[20:40], 1e200 * y[20:40])
    assert model.n_samples_seen_ == 20
    assert_array_equal(model.partial_fit(X[40:], y[40:]).output_weights_, expected)


@pytest.mark.parametrize(("dtype", "origins"), [(np.float64, (1e5, 1.7e9)), (np.float32, (300.0, 2e4))])
@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_the_origin_of_the_targets_does_not_matter(dtype, origins, solver):
    """Most of their squares is what the bias explains, and of the difference nothing but rounding may be left."""
    X, y = numbers((200, 8)).astype(dtype), numbers((200,), 1)
    y = (np.sin(X[:, 0]) * X[:, 1] + 0.3 * y).astype(dtype)
    model = ELMRegressor(n_hidden=30, random_state=0, solver=solver)
    wanted = ELMRegressor(n_hidden=30, random_state=0, solver="qr").fit(X, y)
    for origin in origins:
        model.fit(X, y + dtype(origin))
        assert model.loo_error_ == pytest.approx(wanted.loo_error_, rel=0.05)  # with a ridge that is about as good
        assert model.score(X, y + dtype(origin)) > 0.3


def test_partial_fit_refusals():
    X, y = numbers((30, 4)), numbers(30)
    with pytest.raises(ValueError, match="`solver` must not be 'svd' for partial_fit"):
        ELMRegressor(solver="svd").partial_fit(X, y)
    model = ELMRegressor(n_hidden=3, ridge=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"`y` must have the shape \(30,\) of earlier calls, got \(30, 2\)"):
        model.partial_fit(X, numbers((30, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but ELMRegressor is expecting 4 features"):
        model.partial_fit(X[:, :3], y)
    by_svd = ELMRegressor(n_hidden=3, ridge=0.1, solver="svd").fit(X, y).set_params(solver="auto")
    with pytest.raises(ValueError, match=r"needs the accumulator of the rows seen, .* solver='svd' keeps none"):
        by_svd.partial_fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("scale", [0.4, "auto"])
@pytest.mark.parametrize("ridge", [0.1, "gcv"])
def test_weights_are_repetitions(solver, scale, ridge):
    X, Y = numbers((60, 8)), numbers((60, 3), 1)
    times = np.random.default_rng(2).integers(0, 4, 60)
    options = {"n_hidden": 4, "weight_scale": scale, "ridge": ridge, "solver": solver, "random_state": 0}
    weighted = ELMRegressor(**options).fit(X, Y, sample_weight=times)
    repeated = ELMRegressor(**options).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert weighted.weight_scale_ == pytest.approx(repeated.weight_scale_)
    close(weighted.predict(X), repeated.predict(X), 1e-5 if ridge == "gcv" else 1e-9)


def test_random_state():
    X, y = numbers((60, 8)), numbers(60, 1)

    def weights(state):
        return ELMRegressor(n_hidden=5, ridge=0.1, random_state=state).fit(X, y).output_weights_

    assert_array_equal(weights(0), weights(0))
    assert_array_equal(weights(np.random.RandomState(3)), weights(np.random.RandomState(3)))
    assert not np.array_equal(weights(0), weights(1))
    assert not np.array_equal(weights(None), weights(None))
    generator = np.random.RandomState(3)
    assert not np.array_equal(weights(generator), weights(generator))


def test_predict_changes_nothing():
    X, y = numbers((60, 8)), numbers(60, 1)
    model = ELMRegressor(n_hidden=5, ridge=0.1, random_state=0).fit(X, y)
    before, copy = dict(vars(model)), X.copy()
    expected = model.predict(X)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    assert_array_equal(X, copy)
    assert_array_equal(model.predict(X), expected)
    assert_allclose(model.predict(X[3:4]), expected[3:4], rtol=1e-12)


def test_inputs_are_not_overwritten():
    x, t = numbers((60, 2, 4)), numbers((60, 1, 4), 1)
    before = x.copy(), t.copy()
    for array in (x, t):
        array.setflags(write=False)
    for activation in ("tanh", "identity", "relu"):
        ELMRegressor(n_hidden=5, activation=activation, ridge=0.1, direct_link=True).fit(x, t).predict(x)
    assert_array_equal(x, before[0])
    assert_array_equal(t, before[1])


@pytest.mark.parametrize(("bias", "zero_real_part"), [(False, True), (True, False)])
@pytest.mark.parametrize(
    ("name", "inputs", "neurons"),
    [
        ("quaternions", 256, 200),
        ("klein4", 256, 200),
        ("R[-1,+1]", 256, 200),
        ("tessarines", 256, 200),
        ("paper-Cl(1,1)", 1000, 50),
        ("octonions", 2500, 20),
    ],
)
def test_large_layers(name, inputs, neurons, bias, zero_real_part):
    """Where training takes the products of a bilinear scheme, it gives what prediction and the formula give."""
    assert inputs * neurons >= 50_000
    algebra = algebras.get(name)
    rows = 300 if algebra.dim == 4 else 120
    x, t = numbers((rows, inputs, algebra.dim)), numbers((rows, 2, algebra.dim), 1)
    if zero_real_part:
        x[..., 0] = 0
    scale = 0.5 / np.sqrt(inputs * algebra.dim)
    model = ELMRegressor(algebra, neurons, weight_scale=scale, ridge=1e-2, bias=bias, random_state=0).fit(x, t)
    W = model.hidden_weights_
    # xW by real matrices, one product for every entry of the table.
    full, h = with_one(x) if bias else x, np.zeros((rows, neurons, algebra.dim))
    for i, j, k in np.argwhere(algebra.table):
        h[..., k] += algebra.table[i, j, k] * (full[..., i] @ W[..., j])
    H = with_one(np.tanh(h)) if bias else np.tanh(h)
    M = ridge_formula(H, t, algebra, 1e-2, bias=bias)
    expected = linalg.from_real(linalg.left_matrix(H, algebra) @ linalg.to_real(M), algebra)
    close(model.predict(x), expected, 1e-7)


def test_verbose_shows_progress(capsys):
    X, y = numbers((60, 4)), numbers(60)
    ELMRegressor(n_hidden=3, chunk_size=20, ridge=0.1).fit(X, y)
    assert capsys.readouterr().err == ""
    ELMRegressor(n_hidden=3, chunk_size=20, ridge=0.1, verbose=1).fit(X, y)
    error = capsys.readouterr().err
    assert "ELMRegressor (first look): 60 of 60 rows" in error
    assert "ELMRegressor (gram): 60 of 60 rows" in error


X, Y = numbers((30, 8)), numbers((30, 4), 1)
X_NAN, X_INF, Y_NAN = X.copy(), X.copy(), Y.copy()
X_NAN[3, 2], X_INF[5, 1], Y_NAN[0, 0] = np.nan, np.inf, np.nan
FITTED = ELMRegressor(n_hidden=3, ridge=0.1, random_state=0).fit(X, Y)
FITTED_3D = ELMRegressor(n_hidden=3, ridge=0.1, random_state=0).fit(X.reshape(30, 2, 4), Y)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ELMRegressor().fit(X_NAN, Y), ValueError, "Input X contains NaN"),
        (lambda: ELMRegressor().fit(X_INF, Y), ValueError, "Input X contains infinity"),
        (lambda: ELMRegressor().fit(X, Y_NAN), ValueError, "Input y contains NaN"),
        (lambda: ELMRegressor().fit(X_NAN.reshape(30, 2, 4), Y), ValueError, "Input X contains NaN"),
        (lambda: FITTED.predict(X_NAN), ValueError, "Input X contains NaN"),
        (lambda: ELMRegressor().fit(X + 1j, Y), ValueError, "[Cc]omplex data not supported"),
        (lambda: ELMRegressor().fit(X[:, 0], Y), ValueError, "Expected 2D array, got 1D array instead"),
        (lambda: ELMRegressor().fit(X[:0], Y[:0]), ValueError, r"Found array with 0 sample\(s\)"),
        (lambda: ELMRegressor().fit(X, None), ValueError, "requires y to be passed, but the target y is None"),
        (
            lambda: FITTED.predict(X[:, :5]),
            ValueError,
            "X has 5 features, but ELMRegressor is expecting 8 features as input",
        ),
        (
            lambda: FITTED_3D.predict(X.reshape(30, 2, 4)[:, :1]),
            ValueError,
            "X has 1 features, but ELMRegressor is expecting 2 features as input",
        ),
        (
            lambda: FITTED.predict(X.reshape(30, 2, 4)),
            ValueError,
            r"X must have the shape \(n, columns\) that the model was fitted with, got \(30, 2, 4\)",
        ),
        (
            lambda: FITTED.predict(numbers((5, 8, 4)).tolist()),
            ValueError,
            r"X must have the shape \(n, columns\) that the model was fitted with, got \(5, 8, 4\)",
        ),
        (
            lambda: FITTED_3D.predict(X),
            ValueError,
            r"X must have the shape \(n, 2, 4\) that the model was fitted with, got \(30, 8\)",
        ),
        (
            lambda: ELMRegressor().fit(numbers((30, 1, 2, 3)), Y),
            ValueError,
            r"`X` must .* of 4 components \(quaternions\).* got shape \(30, 1, 2, 3\)\. Use `hyperelm.pack`",
        ),
        (
            lambda: ELMRegressor("octonions").fit(X, numbers((30, 1, 2, 4))),
            ValueError,
            r"`y` must have .* numbers of 8 components \(octonions\).* got shape \(30, 1, 2, 4\)",
        ),
        (
            lambda: ELMRegressor().fit(X, Y[:20]),
            ValueError,
            r"Found input variables with inconsistent numbers of samples: \[30, 20\]",
        ),
        (lambda: ELMRegressor().predict(X), NotFittedError, "This ELMRegressor instance is not fitted yet"),
        (lambda: ELMRegressor(n_hidden=0).fit(X, Y), ValueError, "`n_hidden` must be a whole number >= 1, got 0"),
        (lambda: ELMRegressor(n_hidden=2.5).fit(X, Y), ValueError, "`n_hidden` must be a whole number >= 1, got 2.5"),
        (lambda: ELMRegressor(n_hidden=True).fit(X, Y), ValueError, "`n_hidden` must be a whole number >= 1, got True"),
        (lambda: ELMRegressor(chunk_size=0).fit(X, Y), ValueError, "`chunk_size` must be a whole number >= 1, got 0"),
        (lambda: ELMRegressor("quaternoins").fit(X, Y), ValueError, "quaternoins.*[Dd]id you mean.*quaternions"),
        (lambda: ELMRegressor(3).fit(X, Y), TypeError, "`algebra` must be"),
        (
            lambda: ELMRegressor(activation="tahn").fit(X, Y),
            ValueError,
            "`activation` must be one of .* got 'tahn'. Did you mean 'tanh'?",
        ),
        (lambda: ELMRegressor(activation=3).fit(X, Y), TypeError, "`activation` must be a name or a callable, got 3"),
        (
            lambda: ELMRegressor(activation=lambda x: x[:, :1]).fit(X, Y),
            ValueError,
            "`activation` must work on each component and keep the shape",
        ),
        (
            lambda: ELMRegressor(solver="fast").fit(X, Y),
            ValueError,
            "`solver` must be one of 'auto', 'gram', 'qr', 'svd', got 'fast'",
        ),
        (
            lambda: ELMRegressor(ridge=-1).fit(X, Y),
            ValueError,
            "`ridge` must be a finite number >= 0 or one of 'auto', 'loo', 'gcv', got -1",
        ),
        (lambda: ELMRegressor(ridge="cv").fit(X, Y), ValueError, "`ridge` must be a finite number .* got 'cv'"),
        (lambda: ELMRegressor(ridge=np.nan).fit(X, Y), ValueError, "`ridge` must be a finite number .* got nan"),
        (lambda: ELMRegressor(ridge=[1.0, 2.0]).fit(X, Y), ValueError, "`ridge` must be a finite number"),
        (
            lambda: ELMRegressor(weight_scale="big").fit(X, Y),
            ValueError,
            "`weight_scale` must be 'auto', a multiple of it as '0.1 auto', 'paper' or a number > 0, got 'big'",
        ),
        (lambda: ELMRegressor(weight_scale=0).fit(X, Y), ValueError, "`weight_scale` must be .* got 0"),
        (lambda: ELMRegressor(weight_scale=np.inf).fit(X, Y), ValueError, "`weight_scale` must be .* got inf"),
        (
            lambda: ELMRegressor(packing="half").fit(X, Y),
            ValueError,
            "`packing` must be one of 'full', 'imaginary', 'real', got 'half'",
        ),
        (lambda: ELMRegressor().fit(X, Y, sample_weight=np.ones(3)), ValueError, "got shape .3,"),
        (lambda: ELMRegressor().fit(X, Y, sample_weight=-np.ones(30)), ValueError, "[Nn]egative"),
        (lambda: ELMRegressor().fit(X, Y, sample_weight=np.full(30, np.nan)), ValueError, "got nan in row 0"),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("name", ["bias", "direct_link"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_switches_are_true_or_false(name, value):
    x = numbers((20, 4))
    with pytest.raises(ValueError, match=f"`{name}` must be True or False, got {value!r}"):
        ELMRegressor(n_hidden=2, **{name: value}).fit(x, x)
    ELMRegressor(n_hidden=2, **{name: np.True_}).fit(x, x)


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e160, 1e200])
def test_the_automatic_scale_follows_any_unit(unit):
    x, y = numbers((60, 8)), numbers(60, 1)
    wanted = ELMRegressor(n_hidden=6, random_state=0).fit(x, y)
    model = ELMRegressor(n_hidden=6, random_state=0).fit(x * unit, y)
    assert model.weight_scale_ * unit == pytest.approx(wanted.weight_scale_, rel=1e-12)
    np.testing.assert_allclose(model.predict(x * unit), wanted.predict(x), atol=1e-9)


def test_masked_rows_and_targets_are_refused():
    x, y = numbers((20, 4)), numbers(20, 1)
    with pytest.raises(ValueError, match="`X` must have no masked values"):
        ELMRegressor().fit(np.ma.masked_array(x, mask=x > 0), y)
    with pytest.raises(ValueError, match="`y` must have no masked values"):
        ELMRegressor().fit(x, np.ma.masked_array(y, mask=y > 0))


def test_targets_beyond_the_precision_of_the_rows():
    x, y = numbers((20, 4)).astype(np.float32), 1e50 * numbers(20, 1)
    with pytest.raises(ValueError, match=r"`y` must be at most 3e\+38, .*precision of `X`, float32, got"):
        ELMRegressor().fit(x, y)


def test_direct_links_beyond_single_precision():
    """Their squares are no numbers, so `auto` takes qr, and so does a search."""
    x = numbers((90, 3, 4)).astype(np.float32)
    y = x[:, :1]
    options = {"n_hidden": 4, "direct_link": True, "random_state": 0}
    model = ELMRegressor(ridge=1e30, **options).fit(np.float32(1e20) * x, y)
    assert model.solver_ == "qr"
    assert model.score(np.float32(1e20) * x, y) > 0.999
    search = ELMRegressorCV("quaternions", 4, direct_link=True, ridge=[1e30], random_state=0)
    assert search.fit(np.float32(1e20) * x, y).score(np.float32(1e20) * x, y) > 0.999
    with pytest.raises(ValueError, match="`solver` must not be 'gram' for rows whose sums are beyond float32"):
        ELMRegressor(ridge=1e30, solver="gram", **options).fit(np.float32(1e20) * x, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("name", ["real", "complex", "tessarines", "quaternions", "R[+1,-1]"])
def test_constant_rows_have_the_mean_of_the_targets(name, solver, dtype):
    for seed in range(5):
        y = (numbers(300, seed) + 3).astype(dtype)
        x = np.full((300, 2), 1.5, dtype)
        model = ELMRegressor(name, 10, solver=solver, random_state=seed).fit(x, y)
        assert_allclose(model.predict(x[:1] + dtype(0.1)), y.mean(), rtol=1e3 * np.finfo(dtype).eps)
        assert np.abs(model.output_weights_).max() < 10


@pytest.mark.parametrize("ridge", [0, "gcv", 1e-6])
@pytest.mark.parametrize("late", [1e3, 1e5, 1e7])
def test_rows_that_come_later_may_need_another_solver(ridge, late):
    """`fit` was content with normal equations; with rows that make the problem worse `partial_fit` is not."""
    x = numbers((400, 8))
    x[200:, :4] *= late
    y = x @ np.arange(8.0) + numbers(400, 1)
    options = {"n_hidden": 2, "activation": "identity", "weight_scale": 1.0, "ridge": ridge, "random_state": 0}
    model = ELMRegressor(**options).fit(x[:200], y[:200])
    assert model.solver_ == "gram"
    before = model._accumulator.n_rows
    model.partial_fit(x[200:], y[200:])
    whole = ELMRegressor(**options).fit(x, y)
    assert (before, model.n_samples_seen_) == (200, 400)
    if ridge != "gcv":  # which may choose one that is large enough for normal equations
        assert model.solver_ == ("gram" if late == 1e3 else "qr")
    assert (model.rank_, model.condition_) == (whole.rank_, pytest.approx(whole.condition_, rel=0.1))
    wanted = ELMRegressor(**options | {"ridge": model.ridge_}, solver="svd").fit(x, y)
    if ridge != "gcv":
        error = np.abs(model.output_weights_ - wanted.output_weights_).max() / np.abs(wanted.output_weights_).max()
        assert error < 1e-15 * model.condition_ ** (2 if model.solver_ == "gram" else 1)
    assert_allclose(model.predict(x), wanted.predict(x), rtol=0, atol=1e-8 * np.abs(y).max())


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_targets_of_any_size_in_parts(unit):
    x, y = numbers((60, 8)), numbers(60, 1)
    wanted = ELMRegressor(n_hidden=5, ridge=1.0, random_state=0).partial_fit(x, y)
    model = ELMRegressor(n_hidden=5, ridge=1.0, random_state=0).partial_fit(x, y * unit)
    assert_allclose(model.predict(x) / unit, wanted.predict(x), atol=1e-12)


@pytest.mark.parametrize("unit", [1e-33, 1e30, 1e34])
def test_targets_of_any_size_in_parts_of_single_precision(unit):
    x, y = numbers((60, 8)).astype(np.float32), numbers(60, 1).astype(np.float32)
    wanted = ELMRegressor(n_hidden=5, ridge=1.0, random_state=0).partial_fit(x, y)
    model = ELMRegressor(n_hidden=5, ridge=1.0, random_state=0).partial_fit(x, y * np.float32(unit))
    assert_allclose(model.predict(x) / np.float32(unit), wanted.predict(x), atol=1e-4)


def test_weights_of_any_size():
    x, y, w = numbers((60, 8)).astype(np.float32), numbers(60, 1), np.random.default_rng(2).uniform(1, 2, 60)
    options = {"n_hidden": 5, "ridge": 0.0, "weight_scale": 0.2, "random_state": 0}
    wanted = ELMRegressor(**options).fit(x, y, w).predict(x)
    for unit in (1e-60, 1e30):
        assert_allclose(ELMRegressor(**options).fit(x, y, unit * w).predict(x), wanted, atol=1e-4)
    with pytest.raises(ValueError, match="`sample_weight` must be at most 1e"):
        ELMRegressor(**options).fit(x, y, 1e300 * w)


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("ridge", [0.0, 1.0, "gcv"])
def test_lengths_beyond_single_precision(solver, ridge):
    """Numbers of which the norm is none: refused, never an answer of NaN."""
    x, y = numbers((300, 4)).astype(np.float32), numbers(300, 1).astype(np.float32)
    model = ELMRegressor("real", 6, ridge=ridge, solver=solver, random_state=0)
    with pytest.raises(ValueError, match=r"`solver` must not be '.*' for rows whose sums are beyond float32"):
        model.fit(x, np.float32(5e37) * y)
    with pytest.raises(ValueError, match=r"`solver` must not be '.*' for rows whose sums are beyond float32"):
        model.fit(x, np.float32(1e25) * y, np.full(300, 1e30))


def test_a_warning_that_is_an_error_leaves_no_mixture():
    """Warnings are errors here: the model is whole when the one about the rank comes."""
    x, y = numbers((30, 4)), numbers(30, 1)
    model = ELMRegressor("real", 20, ridge=0, random_state=0)
    with pytest.raises(RankDeficiencyWarning):
        model.fit(x[:10], y[:10])
    assert_allclose(model.predict(x[:10]), y[:10], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": -1.0}, "`ridge` must be"),
        ({"ridge": "foo"}, "`ridge` must be"),
        ({"solver": "foo"}, "`solver` must be one of"),
        ({"n_hidden": 6}, "`n_hidden`, `bias`, `direct_link` and `readout` must be what they were"),
        ({"bias": False}, "`n_hidden`, `bias`, `direct_link` and `readout` must be what they were"),
        (
            {"bias": False, "direct_link": True},
            "`n_hidden`, `bias`, `direct_link` and `readout` must be what they were",
        ),
        ({"direct_link": True}, "`n_hidden`, `bias`, `direct_link` and `readout` must be what they were"),
    ],
)
def test_parameters_changed_between_parts(change, message):
    x, y = numbers((60, 4)), numbers(60, 1)
    model = ELMRegressor(n_hidden=5, ridge=0.1, random_state=0).fit(x[:40], y[:40])
    before = model.predict(x)
    model.set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(x[40:], y[40:])
    model.set_params(bias=True, direct_link=False)
    assert_array_equal(model.predict(x), before)


@pytest.mark.parametrize("size", [-5, 0, 2.5, "all"])
def test_a_chunk_size_that_is_none_after_the_fit(size):
    x, y = numbers((60, 4)), numbers(60, 1)
    model = ELMRegressor(n_hidden=5, ridge=0.1, random_state=0).fit(x, y).set_params(chunk_size=size)
    for call in (lambda: model.predict(x), lambda: model.partial_fit(x, y)):
        with pytest.raises(ValueError, match="`chunk_size` must be a whole number >= 1, got"):
            call()


def test_another_packing_after_the_fit():
    x, y = numbers((60, 12)), numbers((60, 12), 1)
    model = ELMRegressor(n_hidden=5, ridge=0.1, random_state=0).fit(x, y).set_params(packing="imaginary")
    with pytest.raises(ValueError, match="`packing` must be what it was in the first call"):
        model.partial_fit(x, y)


def test_rows_at_the_ends_of_double_precision():
    x, y = numbers((60, 4)), numbers((60, 4), 1)
    model = ELMRegressor(n_hidden=5, activation="identity", random_state=0)
    with pytest.raises(ValueError, match=r"`X` must have rows of a size above 1e-300 for weight_scale='auto', got"):
        model.fit(1e-310 * x, y)
    with pytest.raises(ValueError, match=r"`H` must be at most 1e\+300, got"):
        model.set_params(weight_scale=1.0, ridge=0.0).fit(1e307 * x, y)


def test_targets_below_the_precision_of_the_rows():
    x, y = numbers((20, 4)).astype(np.float32), 1e-60 * numbers(20, 1)
    with pytest.raises(ValueError, match=r"`y` must have a number above 1e-38, .*float32, got at most"):
        ELMRegressor().fit(x, y)
    assert_array_equal(ELMRegressor().fit(x, 0 * y).predict(x), 0)


def test_chunks_with_targets_beyond_the_precision_of_the_rows():
    x, y = numbers((20, 4)).astype(np.float32), 1e50 * numbers(20, 1)
    with pytest.raises(ValueError, match=r"`y` must be at most 3e\+38"):
        ELMRegressor(n_hidden=2).fit(iter([(x, y)]))


@pytest.mark.parametrize("name", ["Cl(6,0)", "Cl(7,0)", "dense"])
def test_large_algebras_by_the_formula(name):
    """They are ready for a fit in a second or two, and give what the formula written out gives."""
    rng = np.random.default_rng(0)
    algebra = Algebra(rng.standard_normal((32, 32, 32)) / 32) if name == "dense" else algebras.get(name)
    d, L = algebra.dim, 2
    X, Y = rng.standard_normal((12, 1, d)), rng.standard_normal((12, 1, d))
    model = ELMRegressor(algebra, L, ridge=0.1, bias=False, random_state=0).fit(X, Y)
    H = np.tanh(np.einsum("mai,alj,ijk->mlk", X, model.hidden_weights_, algebra.table, optimize=True))
    P = np.einsum("mli,ijk->mklj", H, algebra.table, optimize=True).reshape(12 * d, L * d)
    x = np.linalg.solve(P.T @ P + 0.1 * np.eye(L * d), P.T @ Y.reshape(-1))
    np.testing.assert_allclose(model.output_weights_.ravel(), x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.predict(X).ravel(), P @ x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("ridge", ["auto", "gcv", 1e-4])
@pytest.mark.parametrize(("dtype", "spread"), [(np.float32, 3e-3), (np.float64, 1e-7)])
def test_columns_that_hardly_vary_are_left_to_qr(ridge, dtype, spread):
    """Normal equations lose them beside the bias: their spread is that of rounding."""
    z = np.random.default_rng(0).standard_normal((600, 4))
    X, y = (1 + spread * z).astype(dtype), z[:, 0].astype(dtype)
    ridge = ridge if isinstance(ridge, str) else ridge * spread**2
    model = ELMRegressor(n_hidden=10, ridge=ridge, random_state=0).fit(X[:500], y[:500])
    assert model.solver_ == "qr"
    assert model.score(X[500:], y[500:]) > 0.9
