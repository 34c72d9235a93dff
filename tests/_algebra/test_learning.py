"""Tables from data: the steps against a numerical derivative, exact recovery, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import numbers
from hyperelm import Algebra, ELMRegressor, algebras
from hyperelm._algebra import learning
from hyperelm._algebra.learning import ComponentSums, learn_table, random_tables, with_left_identity
from oracles import product


def sums_of(H, T):
    h, t = H.reshape(len(H), -1), T.reshape(len(T), -1)
    return ComponentSums.of(h.T @ h, h.T @ t, float(np.sum(t**2)), H.shape[2])


def objective(table, H, T, ridge):
    """f(t) by brute force: one least-squares problem on all rows."""
    (m, L, d), N, r = H.shape, T.shape[1], table.shape[1]
    A = np.einsum("mli,ijk->mklj", H, table).reshape(m * d, L * r)
    t = T.swapaxes(1, 2).reshape(m * d, N)
    x = np.linalg.solve(A.T @ A + ridge * np.eye(L * r), A.T @ t)
    return np.sum((A @ x - t) ** 2) + ridge * np.sum(x**2)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_the_objective_and_its_gradient_are_those_of_the_formula(r):
    H, T, ridge = numbers((30, 4, 3)), numbers((30, 2, 3), 1), 0.3
    table, sums = numbers((3, r, 3), 2), sums_of(H, T)
    point = learning._point(sums, table, ridge)
    assert sums.square + point.value == pytest.approx(objective(table, H, T, ridge), rel=1e-10)
    Q, R = learning._of_table(sums, point.m)
    gradient = 2 * (Q @ table.reshape(3 * r, 3) - R).reshape(table.shape)
    for at in np.ndindex(table.shape):
        up, down = table.copy(), table.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        slope = (objective(up, H, T, ridge) - objective(down, H, T, ridge)) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_second_derivatives_are_exact_where_nothing_is_left_to_explain():
    """After Gauss, Newton and Kaufman: the terms that are left out are those of the residuals."""
    H, M, table = numbers((40, 3, 2)), numbers((3, 2, 2), 1), algebras.get("complex").table
    T = product(H, M, algebras.get("complex"))
    sums = sums_of(H, T)
    point = learning._point(sums, table, 1e-12)
    Q, _ = learning._of_table(sums, point.m)
    J = np.kron(Q, np.eye(2)) - learning._projected(sums, point)
    change = 1e-4 * numbers(table.shape, 3)
    expected = objective(table + change, H, T, 1e-12)
    assert change.ravel() @ J @ change.ravel() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize(
    "name", ["complex", "hyperbolic", "quaternions", "klein4", "tessarines", "R[+1,-1]", "octonions"]
)
def test_data_of_an_algebra_give_back_its_table(name):
    """From a random start, without noise, for ten seeds."""
    algebra = algebras.get(name)
    for seed in range(10):
        # As many weights as components, at least: fewer do not show all of the table.
        X, M = numbers((150, 3, algebra.dim), seed), numbers((3, 3, algebra.dim), 100 + seed)
        found = algebras.learn(X, product(X, M, algebra), n_starts=1, random_state=seed)
        assert_allclose(found.table, algebra.table, rtol=0, atol=1e-8)
        assert found == algebra  # entries that are whole numbers but for rounding are whole numbers


def test_no_step_makes_the_objective_larger():
    H, T = numbers((80, 5, 4)), numbers((80, 3, 4), 1)
    for seed in range(5):
        values = learn_table(sums_of(H, T), next(random_tables((4, 4, 4), 1, seed)), 0.1).objective
        assert len(values) > 3
        assert all(later <= earlier for earlier, later in pairwise(values))


def test_random_starts_end_at_the_same_objective():
    H, M = numbers((200, 4, 4)), numbers((4, 5, 4), 1)
    T = np.tanh(product(H, M, algebras.get("klein4"))) + 0.1 * numbers((200, 5, 4), 2)
    ends = [learn_table(sums_of(H, T), start, 0.1).objective[-1] for start in random_tables((4, 4, 4), 4)]
    assert_allclose(ends, min(ends), rtol=1e-3)


def test_better_than_every_table_of_the_catalogue():
    H, T = numbers((100, 4, 4)), np.tanh(numbers((100, 2, 4), 1) + numbers((100, 4, 4))[:, :2, ::-1])
    learned = learn_table(sums_of(H, T), algebras.get("klein4").table + 0.01 * numbers((4, 4, 4), 5), 1e-9)
    error = sums_of(H, T).square + learned.objective[-1]
    for name in ("quaternions", "klein4", "tessarines", "R[+1,-1]"):
        assert error < objective(algebras.get(name).table, H, T, 1e-9)


@given(seed=st.integers(0, 10**6), r=st.integers(1, 4))
def test_products_stay_the_same_with_an_identity_from_the_left(seed, r):
    """Bt with weights B⁻ᵀm gives what t gives with m."""
    table = numbers((4, r, 4), seed)
    found = with_left_identity(table)
    assert np.linalg.matrix_rank(np.stack([table, found]).transpose(0, 2, 1, 3).reshape(2 * r, 16), tol=1e-6) == r
    sigma = np.linalg.svd(table[0], compute_uv=False)
    if r == 4 and sigma[-1] > 0.011 * sigma[0]:
        assert_array_equal(found[0], np.eye(4))


def test_components_that_no_target_has():
    X, M = numbers((100, 3, 4)), numbers((3, 2, 4), 1)
    Y = product(X, M, algebras.get("quaternions"))
    Y[:, :, 0] = 0
    found = algebras.learn(X, Y)
    assert not found.table[:, :, 0].any()
    assert_array_equal(found.table[0, 1:, 1:], np.eye(3))
    assert objective(found.table, X, Y, 1e-12) < 1e-9 * np.sum(Y**2)


def test_fewer_terms():
    X, M = numbers((100, 3, 4)), numbers((3, 2, 4), 1)
    M[:, :, 2:] = 0
    Y = product(X, M, algebras.get("quaternions"))
    found = algebras.learn(X, Y, n_terms=2)
    assert not found.table[:, 2:].any()
    assert objective(found.table[:, :2], X, Y, 1e-12) < 1e-9 * np.sum(Y**2)


def test_columns():
    X, M = numbers((100, 3, 2)), numbers((3, 2, 2), 1)
    Y = product(X, M, algebras.get("complex"))
    found = algebras.learn(X.reshape(100, 6), Y.reshape(100, 4), dim=2, name="mine")
    assert found == algebras.get("complex")
    assert found.name == "mine"


def test_a_learned_algebra_is_one_like_any_other():
    found = algebras.learn(numbers((60, 2, 4)), numbers((60, 3, 4), 1), ridge=0.1)
    assert isinstance(found, Algebra)
    assert "learned" in str(found)
    assert found.structure.startswith("not associative")
    X = numbers((80, 8), 2)
    assert ELMRegressor(found, 30, random_state=0).fit(X, np.tanh(X[:, :2])).score(X, np.tanh(X[:, :2])) > 0.3


def test_targets_of_zeros():
    found = algebras.learn(numbers((20, 2, 2)), np.zeros((20, 1, 2)))
    assert not found.table.any()


@pytest.mark.parametrize(
    ("X", "Y", "options", "message"),
    [
        (np.ones((5, 4)), np.ones((5, 4)), {}, "`X` must be numbers of shape"),
        (np.ones((5, 4)), np.ones((5, 3)), {"dim": 2}, "`Y` must have a multiple of 2 columns, got 3"),
        (
            np.ones((5, 2, 4)),
            np.ones((4, 2, 4)),
            {},
            "`Y` must have the rows and components of `X`, 5 and 4, got 4 and 4",
        ),
        (
            np.ones((5, 2, 4)),
            np.ones((5, 2, 2)),
            {},
            "`Y` must have the rows and components of `X`, 5 and 4, got 5 and 2",
        ),
        (np.ones((5, 2, 17)), np.ones((5, 2, 17)), {}, "`X` must have numbers of at most 16 components, got 17"),
        (np.ones((5, 2, 4)), np.ones((5, 2, 4)), {"n_terms": 5}, "`n_terms` must be at most the 4 components"),
        (np.ones((5, 2, 4)), np.ones((5, 2, 4)), {"n_terms": 0}, "`n_terms` must be a whole number >= 1, got 0"),
        (np.ones((5, 2, 4)), np.ones((5, 2, 4)), {"n_starts": 0}, "`n_starts` must be a whole number >= 1, got 0"),
        (np.ones((5, 2, 4)), np.ones((5, 2, 4)), {"ridge": -1}, "`ridge` must be a finite number >= 0, got -1"),
        (np.full((5, 2, 4), np.nan), np.ones((5, 2, 4)), {}, "`X` must be finite"),
    ],
)
def test_what_is_refused(X, Y, options, message):
    with pytest.raises(ValueError, match=message):
        algebras.learn(X, Y, **options)
