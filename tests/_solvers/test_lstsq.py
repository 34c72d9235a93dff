"""The choice between the methods, and what the result says about it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from helpers import rows_of
from hyperelm import ELMRegressor, algebras, linalg
from hyperelm._algebra import forms
from hyperelm._solvers.gram import LARGEST_CONDITION, Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import Solution, Spread, effective_condition, trusted

SOLVERS = ["gram", "qr", "svd", "auto"]
methods = pytest.mark.parametrize("method", SOLVERS)


def of_condition(algebra, condition, L=3):
    """Columns of equal real multiples, so that the condition of Φ_L(A) is the product of two known ones."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((20, L)))[0] * np.geomspace(1, 1 / condition, L)
    return np.einsum("ml,d->mld", Q, np.eye(algebra.dim)[0])


@pytest.mark.parametrize(
    ("dtype", "condition", "method"),
    [
        (np.float64, 1.0, "gram"),
        (np.float64, 7e3, "gram"),
        (np.float64, 1.5e4, "qr"),
        (np.float64, 1e9, "qr"),
        (np.float32, 1.0, "gram"),
        (np.float32, 1e2, "gram"),
        (np.float32, 1.5e3, "qr"),
        (np.float32, 1e5, "qr"),
    ],
)
@pytest.mark.parametrize("name", ["real", "klein4", "tessarines", "quaternions", "R[+1,+1]", "paper-Cl(1,1)"])
def test_the_limits_of_normal_equations(name, dtype, condition, method):
    algebra = algebras.get(name)
    A = of_condition(algebra, condition).astype(dtype)
    result = linalg.lstsq(A, A[:, :1], algebra)
    assert np.linalg.cond(linalg.left_matrix(A.astype(float), algebra)) == pytest.approx(condition, rel=0.01)
    assert result.method == method
    assert result.condition == pytest.approx(condition, rel=0.1)


def test_a_ridge_makes_normal_equations_good_enough(algebra):
    A = of_condition(algebra, 1e7)
    assert linalg.lstsq(A, A, algebra).method == "qr"
    assert linalg.lstsq(A, A, algebra, ridge=1e-9).method == "qr"
    assert linalg.lstsq(A, A, algebra, ridge=1e-4).method == "gram"


def test_dependent_columns_are_read_again(algebra):
    A, B = rows_of(algebra, (20, 4, 2))
    A[:, 3] = A[:, 1]
    result = linalg.lstsq(A, B, algebra)
    assert (result.method, result.condition) == ("qr", np.inf)
    assert result.rank == np.linalg.matrix_rank(linalg.left_matrix(A, algebra))


def test_rows_are_read_in_blocks(monkeypatch, algebra):
    """Blocks of any size give the same answer, and none is larger than asked for."""
    A, B = rows_of(algebra, (23, 3, 2))
    expected = np.linalg.lstsq(linalg.left_matrix(A, algebra), linalg.to_real(B), rcond=None)[0]
    for rows in (1, 7, 100):
        monkeypatch.setattr("hyperelm._solvers.lstsq.chunk_rows", lambda *_, rows=rows: rows)
        for method in ("gram", "qr"):
            x = linalg.lstsq(A, B, algebra, method=method).x
            np.testing.assert_allclose(linalg.to_real(x), expected, atol=1e-11)


@methods
def test_residual_and_ridge_of_the_result(algebra, method):
    A, B = rows_of(algebra, (600, 3, 2))
    P, t = linalg.left_matrix(A, algebra), linalg.to_real(B)
    for ridge in (0.0, 2.5, "gcv"):
        result = linalg.lstsq(A, B, algebra, ridge=ridge, method=method)
        assert result.ridge == pytest.approx(ridge) if ridge != "gcv" else result.ridge > 0
        assert result.residual == pytest.approx(np.linalg.norm(P @ linalg.to_real(result.x) - t), rel=1e-12)


@methods
def test_precisions_meet_in_the_larger(method):
    algebra = algebras.get("complex")
    A, B = rows_of(algebra, (10, 2, 1))
    assert linalg.lstsq(A.astype(np.float32), B, algebra, method=method).x.dtype == np.float64
    assert linalg.lstsq(A.astype(np.float32), B.astype(np.float32), algebra, method=method).x.dtype == np.float32


@methods
def test_rows_that_are_not_finite_are_refused_before_any_work(monkeypatch, method):
    algebra = algebras.get("complex")
    A, B = rows_of(algebra, (600, 2, 1))
    B[577, 0, 1] = np.inf

    def no_work(*_, **__):
        raise AssertionError("work before the check")

    monkeypatch.setattr("hyperelm._solvers.lstsq._accumulate", no_work)
    with pytest.raises(ValueError, match="`B` must be finite, got inf in row 577"):
        linalg.lstsq(A, B, algebra, method=method)


@pytest.mark.parametrize("method", ["auto", "qr", "svd"])
@pytest.mark.parametrize("dependent", [False, True])
def test_ridges_beyond_single_precision(method, dependent):
    H = algebras.get("quaternions")
    A, B = (array.astype(np.float32) for array in rows_of(H, (30, 4, 2)))
    if dependent:
        A[:, 3] = A[:, 0]
    wanted = linalg.lstsq(A, B, H, ridge="gcv", method=method)
    fixed = linalg.lstsq(A, B, H, ridge=2.0, method=method)
    for exponent in (-90, -70, 60):
        unit = np.ldexp(A, exponent)
        found = linalg.lstsq(unit, B, H, ridge="gcv", method=method)
        np.testing.assert_allclose(np.ldexp(found.x, exponent), wanted.x, rtol=0, atol=1e-4)
        found = linalg.lstsq(unit, B, H, ridge=2.0 * 2.0 ** (2 * exponent), method=method)
        np.testing.assert_allclose(np.ldexp(found.x, exponent), fixed.x, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("of_A", "of_B"), [(30, 100), (-45, -105), (10, 110)])
def test_products_of_inputs_and_targets_beyond_single_precision(of_A, of_B):
    H = algebras.get("quaternions")
    A, B = (array.astype(np.float32) for array in rows_of(H, (30, 4, 2)))
    wanted = linalg.lstsq(A, B, H).x
    found = linalg.lstsq(np.ldexp(A, of_A), np.ldexp(B, of_B), H).x
    np.testing.assert_allclose(np.ldexp(found, of_A - of_B), wanted, rtol=0, atol=1e-5)


def solution_of(condition, largest, ridge):
    return Solution(np.zeros((1, 1, 1)), ridge, Spread(1, condition, largest))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e9, np.inf])
@pytest.mark.parametrize("largest", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1.0])
def test_condition_with_a_ridge(condition, largest, ridge):
    got = effective_condition(solution_of(condition, largest, ridge))
    smallest = (largest / condition) ** 2 + ridge
    assert got == pytest.approx(np.sqrt((largest**2 + ridge) / smallest) if smallest else np.inf)
    assert trusted(solution_of(condition, largest, ridge), np.dtype(np.float64)) == (got <= 1e4)
    assert trusted(solution_of(condition, largest, ridge), np.dtype(np.float32)) == (got <= 1e3)


@pytest.mark.parametrize("largest", [1e-170, 1e160])
def test_condition_of_matrices_in_extreme_units(largest):
    assert effective_condition(solution_of(7.0, largest, 0.0)) == pytest.approx(7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_read_once(algebra, dtype):
    """Normal equations as long as no eigenvalue can exceed the ridge by the square of the trusted condition."""
    limit = {np.float32: 1e3, np.float64: 1e4}[dtype]
    H, T = (rows.astype(dtype) for rows in rows_of(algebra, (40, 3, 2)))
    largest = np.linalg.norm(linalg.left_matrix(2 * H, algebra), 2) ** 2
    accumulator = Gram(algebra, 3, 2, dtype)
    accumulator.update(H, T)
    assert accumulator.made_room(H, H, None, 30 * algebra.dim * largest / limit**2) is accumulator
    changed = accumulator.made_room(H, H, None, largest / 4 / limit**2)
    assert isinstance(changed, QR)
    assert changed.made_room(H, H, None, 1e9) is changed
    # Before the first row, and with weights.
    empty = Gram(algebra, 3, 2, dtype)
    assert empty.made_room(H, H, np.zeros(40), 1e-30) is empty
    assert isinstance(empty.made_room(H, H, np.full(40, 1e9), 1.0), QR)


@pytest.mark.parametrize("exponent", [-90, -70, 60, 90])
def test_auto_goes_on_where_sums_leave_single_precision(exponent):
    """The rows themselves are numbers of full precision, so `qr` answers; `gram` says why it cannot."""
    H = algebras.get("quaternions")
    A, B = (array.astype(np.float32) for array in rows_of(H, (30, 4, 2)))
    unit = np.ldexp(A, exponent)
    expected = np.linalg.lstsq(linalg.left_matrix(A.astype(float), H), linalg.to_real(B.astype(float)), rcond=None)[0]
    result = linalg.lstsq(unit, B, H)
    assert result.method == "qr"
    assert result.rank == 16
    np.testing.assert_allclose(np.ldexp(linalg.to_real(result.x).astype(float), exponent), expected, atol=1e-5)
    with pytest.raises(ValueError, match="`solver` must not be 'gram' for rows whose sums are beyond float32"):
        linalg.lstsq(unit, B, H, method="gram")


def test_a_residual_that_normal_equations_do_not_see_is_told():
    """Targets far from zero: `gram` warns, `auto` and `svd` find the ridge that `qr` finds."""
    H = algebras.get("quaternions")
    A, B = rows_of(H, (60, 4, 2))
    A[:, 0] = np.eye(4)[0]
    B[..., 0] += 1e8
    with pytest.warns(UserWarning, match="by 'gram' sees no residual.*Take 'qr' or 'auto'"):
        linalg.lstsq(A, B, H, ridge="gcv", method="gram")
    wanted = linalg.lstsq(A, B, H, ridge="gcv", method="qr")
    for method in ("auto", "svd"):
        found = linalg.lstsq(A, B, H, ridge="gcv", method=method)
        assert found.ridge == pytest.approx(wanted.ridge, rel=1e-6)


def test_masked_values_are_not_taken_for_numbers():
    H = algebras.get("quaternions")
    A, B = rows_of(H, (6, 2, 1))
    masked = np.ma.masked_array(A, mask=A > 1)
    with pytest.raises(ValueError, match=f"`A` must have no masked values, got {np.sum(A > 1)}"):
        linalg.lstsq(masked, B, H)
    np.testing.assert_array_equal(linalg.lstsq(np.ma.masked_array(A), B, H).x, linalg.lstsq(A, B, H).x)


@pytest.mark.parametrize(("dtype", "ridges"), [(np.float64, (1e-14, 1e-10, 1e-4)), (np.float32, (1e-6, 1e-4, 1e-2))])
@pytest.mark.parametrize("name", ["real", "quaternions", "klein4"])
def test_a_small_ridge_with_fewer_rows_than_unknowns(name, dtype, ridges):
    """AᴴA has eigenvalues of zero then, whatever the condition of the rows: normal equations may not be trusted."""
    algebra = algebras.get(name)
    A, B = (array.astype(dtype) for array in rows_of(algebra, (20, 50, 1)))
    P, b = linalg.left_matrix(A.astype(float), algebra), linalg.to_real(B.astype(float))
    for ridge in ridges:
        expected = P.T @ np.linalg.solve(P @ P.T + ridge * np.eye(len(P)), b)
        result = linalg.lstsq(A, B, algebra, ridge=ridge)
        square = 1 + np.linalg.norm(P, 2) ** 2 / ridge
        assert result.method == ("gram" if square < LARGEST_CONDITION[np.dtype(dtype).name] ** 2 else "qr")
        error = np.linalg.norm(linalg.to_real(result.x) - expected) / np.linalg.norm(expected)
        assert error < np.finfo(dtype).eps * (100 if result.method == "qr" else square)


@pytest.mark.parametrize("method", ["auto", "qr", "svd"])
def test_a_vanishing_ridge_leads_to_the_solution_of_least_norm(method):
    H = algebras.get("quaternions")
    A, B = rows_of(H, (20, 3, 1))
    A[:, 2] = A[:, 0]
    least = linalg.lstsq(A, B, H, method=method).x
    for ridge in (1e-40, 1e-30, 1e-20, 1e-15):
        np.testing.assert_allclose(linalg.lstsq(A, B, H, ridge=ridge, method=method).x, least, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "qr", "svd", "gram"])
def test_nothing_is_cut_and_rows_are_few(method):
    """With rtol=0 the rank is that of the rows all the same."""
    H = algebras.get("quaternions")
    A, B = rows_of(H, (2, 3, 1))
    result = linalg.lstsq(A, B, H, rtol=0, method=method)
    assert result.rank == 8
    expected = np.linalg.pinv(linalg.left_matrix(A, H)) @ linalg.to_real(B)
    np.testing.assert_allclose(linalg.to_real(result.x), expected, atol=1e-7 if method == "gram" else 1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_residuals_of_any_size(unit):
    H = algebras.get("quaternions")
    A, B = rows_of(H, (700, 3, 1))
    wanted = linalg.lstsq(A, B, H).residual
    assert linalg.lstsq(A, B * unit, H).residual == pytest.approx(wanted * unit, rel=1e-10)
    with pytest.raises(ValueError, match=r"`ridge` must be a number, .*Divide the columns"):
        linalg.lstsq(A * unit, B, H, ridge="gcv")


def test_ridges_beyond_the_numbers():
    H = algebras.get("quaternions")
    A, B = (array.astype(np.float32) for array in rows_of(H, (30, 4, 2)))
    for ridge in (10**400, np.inf, -1, np.nan):
        with pytest.raises(ValueError, match="`ridge` must be a finite number"):
            linalg.lstsq(A, B, H, ridge=ridge)
    for method in ("gram", "qr", "svd", "auto"):
        assert np.abs(linalg.lstsq(A, B, H, ridge=1e39, method=method).x).max() < 1e-35


@pytest.mark.parametrize("rtol", [None, 1e-12])
@pytest.mark.parametrize("method", ["auto", "gram", "qr", "svd"])
def test_directions_that_normal_equations_do_not_show_count_beside_a_ridge(method, rtol):
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.standard_normal((50, 6)))[0], np.linalg.qr(rng.standard_normal((6, 6)))[0]
    sigma, ridge = np.array([1, 0.9, 0.8, 0.7, 0.6, 1e-8]), 1e-7
    A = (U * sigma @ V.T)[:, :, None]
    for t in (U[:, 5], U.sum(axis=1)):
        expected = V @ (sigma / (sigma**2 + ridge) * (U.T @ t))
        result = linalg.lstsq(A, t[:, None, None], algebras.get("real"), ridge=ridge, method=method, rtol=rtol)
        assert np.linalg.norm(result.x.ravel() - expected) < 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("ridge", ["gcv", "loo"])
def test_a_path_that_ends_too_early_is_gone_on_with(ridge):
    """The best ridge of targets without noise lies below what normal equations show."""
    x = np.linspace(-1, 1, 300)[:, None]
    y = np.sin(8 * x[:, 0])
    found, expected = (
        ELMRegressor("complex", 40, weight_scale="3 auto", ridge=ridge, solver=solver, random_state=0).fit(x, y)
        for solver in ("auto", "qr")
    )
    assert found.solver_ == "qr"
    assert found.ridge_ == expected.ridge_ < 1e-9
    assert found.score(x, y) > 1 - 1e-9


def test_algebras_with_too_many_forms(monkeypatch):
    """Such as generalised octonions of 128 components; here with a budget that is too small for those of 8."""
    monkeypatch.setattr(forms, "_LARGEST_FORMS", 1000)
    algebra = algebras.get("octonions")
    A, X = rows_of(algebra, (20, 3, 2))[0], rows_of(algebra, (3, 2, 2))[1]
    B = linalg.matmul(A, X, algebra)
    result = linalg.lstsq(A, B, algebra)
    assert result.method == "qr"
    np.testing.assert_allclose(result.x, X, rtol=0, atol=1e-12)
    with pytest.raises(
        ValueError, match=r"must not be 'gram' for an algebra that does not split .* got one of dimension 8\. Take 'qr'"
    ):
        linalg.lstsq(A, B, algebra, method="gram")
    one, other = (pickle.loads(pickle.dumps(Gram(algebra, 3, 2))) for _ in range(2))
    one.merge(other)
    assert isinstance(one.made_room(A, B, None, ridge=1.0), QR)
    X = np.random.default_rng(0).standard_normal((30, 8))
    Y = 2 * X
    for ridge in (0.1, "gcv", "loo"):
        whole = ELMRegressor(algebra, 2, ridge=ridge, direct_link=True, random_state=0).fit(X, Y)
        assert whole.solver_ == "qr"
    parts = ELMRegressor(algebra, 2, ridge=0.1, random_state=0, weight_scale=0.5)
    parts.partial_fit(X[:9], Y[:9]).partial_fit(X[9:], Y[9:])
    whole = ELMRegressor(algebra, 2, ridge=0.1, random_state=0, weight_scale=0.5).fit(X, Y)
    np.testing.assert_allclose(parts.output_weights_, whole.output_weights_, rtol=0, atol=1e-10)
