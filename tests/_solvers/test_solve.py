"""Ridge, unpenalised rows and generalised cross-validation, against formulas on the real matrix Φ_L(H)."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm import algebras, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve
from hyperelm._solvers.spectrum import VALUES, Spectrum, is_permitted
from hyperelm._solvers.svd import AllRows
from oracles import penalised, ridge_solution

CLASSES = {"gram": Gram, "qr": QR, "svd": AllRows}
methods = pytest.mark.parametrize("method", CLASSES)


def rows_of(algebra, shape, seed=0, noise=1.0):
    """Rows whose targets follow H with decaying weights, plus noise."""
    M, L, N = shape
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((M, L, algebra.dim)) * np.geomspace(1, 0.05, L)[:, None]
    T = linalg.matmul(H, rng.standard_normal((L, N, algebra.dim)), algebra)
    return H, T + noise * rng.standard_normal(T.shape)


def solved(method, H, T, algebra, ridge=0.0, weight=None, free=(), rtol=None, dtype=np.float64):
    H, T = H.astype(dtype), T.astype(dtype)
    accumulator = CLASSES[method](algebra, H.shape[1], T.shape[1], dtype)
    for rows in np.array_split(np.arange(len(H)), 3):
        accumulator.update(H[rows], T[rows], None if weight is None else weight[rows])
    return solve(accumulator, ridge, free=free, rtol=rtol)


def weighted_system(H, T, algebra, weight=None):
    P, t = linalg.left_matrix(H.astype(float), algebra), linalg.to_real(T.astype(float))
    if weight is None:
        return P, t
    roots = np.sqrt(np.repeat(weight, algebra.dim))[:, None]
    return roots * P, roots * t


@methods
@pytest.mark.parametrize("free", [(), (3,), (2, 0)])
@pytest.mark.parametrize("ridge", [1e-3, 10.0])
def test_ridge_with_unpenalised_rows(algebra, method, free, ridge):
    H, T = rows_of(algebra, (20, 4, 2))
    P, t = weighted_system(H, T, algebra)
    D = np.diag(penalised(algebra, 4, free).astype(float))
    expected = np.linalg.solve(P.T @ P + ridge * D, P.T @ t)
    solution = solved(method, H, T, algebra, ridge, free=free)
    np.testing.assert_allclose(linalg.to_real(solution.coef), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert solution.ridge == ridge
    assert solution.spread.rank == np.linalg.matrix_rank(P)
    assert solution.spread.condition == pytest.approx(np.linalg.cond(P), rel=0.1)
    assert solution.spread.largest == pytest.approx(np.linalg.norm(P, 2), rel=0.05)


@methods
def test_ridge_with_weights_and_unpenalised_rows(algebra, method):
    H, T = rows_of(algebra, (20, 4, 2))
    weight = np.random.default_rng(3).uniform(0, 2, 20)
    P, t = weighted_system(H, T, algebra, weight)
    D = np.diag(penalised(algebra, 4, (1,)).astype(float))
    expected = np.linalg.solve(P.T @ P + 0.2 * D, P.T @ t)
    x = solved(method, H, T, algebra, 0.2, weight=weight, free=(1,)).coef
    np.testing.assert_allclose(linalg.to_real(x), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@methods
def test_ridge_with_fewer_rows_than_unknowns(algebra, method):
    H, T = rows_of(algebra, (3, 5, 2))
    P, t = weighted_system(H, T, algebra)
    for free in ((), (0,), (4,)):
        expected = ridge_solution(P, t, 0.1, penalised(algebra, 5, free))
        x = solved(method, H, T, algebra, 0.1, free=free).coef
        np.testing.assert_allclose(linalg.to_real(x), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@methods
def test_ridge_with_dependent_penalised_columns(algebra, method):
    H, T = rows_of(algebra, (20, 4, 2))
    H[:, 3] = 2 * H[:, 1]
    P, t = weighted_system(H, T, algebra)
    for free in ((), (0,)):
        expected = ridge_solution(P, t, 0.1, penalised(algebra, 4, free))
        x = solved(method, H, T, algebra, 0.1, free=free).coef
        np.testing.assert_allclose(linalg.to_real(x), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@methods
@pytest.mark.parametrize("name", ["real", "quaternions", "dual", "klein4"])
@pytest.mark.parametrize("fault", ["zero", "multiple", "zero divisor"])
def test_dependent_unpenalised_columns(method, name, fault):
    """What is penalised, and the prediction, are unique even where the unpenalised weights are not."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (20, 5, 2))
    if fault == "zero divisor" and name in ("dual", "klein4"):
        divisor = np.array([0.0, 1.0]) if name == "dual" else np.array([1.0, 1.0, 0.0, 0.0])
        H[:, 1] = algebra.multiply(H[:, 1], divisor)
    else:
        H[:, 1] = 0 if fault == "zero" else 2 * H[:, 3]
    P, t = weighted_system(H, T, algebra)
    free = (1, 3)
    expected = ridge_solution(P, t, 0.5, penalised(algebra, 5, free))
    x = linalg.to_real(solved(method, H, T, algebra, 0.5, free=free).coef)
    np.testing.assert_allclose(P @ x, P @ expected, rtol=0, atol=1e-10)
    kept = penalised(algebra, 5, free)
    np.testing.assert_allclose(x[kept], expected[kept], rtol=0, atol=1e-10)


@methods
@pytest.mark.parametrize("ridge", [0.0, 0.5, "gcv"])
def test_nothing_penalised(method, ridge):
    algebra = algebras.get("tessarines")
    H, T = rows_of(algebra, (12, 3, 2))
    P, t = weighted_system(H, T, algebra)
    x = solved(method, H, T, algebra, ridge, free=(0, 1, 2)).coef
    np.testing.assert_allclose(linalg.to_real(x), np.linalg.lstsq(P, t, rcond=None)[0], atol=1e-10)


@methods
def test_free_means_nothing_without_a_ridge(algebra, method):
    H, T = rows_of(algebra, (20, 4, 2))
    x = solved(method, H, T, algebra, 0.0, free=(1,)).coef
    assert np.array_equal(x, solved(method, H, T, algebra, 0.0).coef)


class Path:
    """The ridges that GCV looked at, seen from outside."""

    def __init__(self, monkeypatch):
        self.seen = []
        gcv = Spectrum.gcv

        def spy(spectrum, ridges, *caution):
            self.seen.append(ridges)
            return gcv(spectrum, ridges, *caution)

        monkeypatch.setattr(Spectrum, "gcv", spy)

    @property
    def ridges(self):
        path, *_ = self.seen
        return path


def gcv_scores(P, t, ridges, rows, penalty):
    """n RSS / (n - γ tr S)², with the unpenalised columns projected out of the real matrix first."""
    free = P[:, ~penalty]
    basis = np.linalg.svd(free, full_matrices=False)[0][:, : np.linalg.matrix_rank(free)] if free.size else free
    A = P[:, penalty] - basis @ (basis.T @ P[:, penalty])
    t = t - basis @ (basis.T @ t)
    U, sigma, _ = np.linalg.svd(A, full_matrices=False)
    U, sigma = U[:, sigma > 1e-12 * sigma[0]], sigma[sigma > 1e-12 * sigma[0]]
    z = U.T @ t
    outside = np.linalg.norm(t - U @ z) ** 2 if len(P) > len(sigma) + basis.shape[1] else 0.0
    shrink = ridges[:, None] / (sigma**2 + ridges[:, None])
    rss = outside + shrink**2 @ np.sum(z**2, axis=1)
    left = rows - VALUES.freedom * (basis.shape[1] + len(sigma) - shrink.sum(axis=1))
    return np.where(left > 0, rows * rss / left**2, np.inf)


def check_gcv(monkeypatch, method, algebra, H, T, *, weight=None, free=(), dtype=np.float64, tol=1e-6):
    path = Path(monkeypatch)
    solution = solved(method, H, T, algebra, "gcv", weight, free, dtype=dtype)
    ridges = path.ridges
    assert len(ridges) >= 40
    np.testing.assert_allclose(ridges[1:-1] / ridges[:-2], ridges[1] / ridges[0])
    assert ridges[-1] == pytest.approx(ridges[-2] / 100 / np.finfo(dtype).eps)
    assert solution.ridge in ridges
    P, t = weighted_system(H.astype(dtype), T.astype(dtype), algebra, weight)
    rows = algebra.dim * (len(H) if weight is None else weight.sum())
    scores = gcv_scores(P, t, ridges, rows, penalised(algebra, H.shape[1], free))
    chosen = scores[np.flatnonzero(ridges == solution.ridge)[0]]
    assert chosen <= scores[is_permitted(100 * ridges / ridges[-2], scores)].min() * (1 + tol)
    fixed = solved(method, H, T, algebra, solution.ridge, weight, free, dtype=dtype)
    # Normal equations of a ridge so small that it is close to rounding are worth eps σ²/λ.
    amplified = 1e3 * np.finfo(dtype).eps * (1 + solution.spread.largest**2 / max(solution.ridge, 1e-6 * ridges[-1]))
    if method == "gram":
        amplified = max(amplified, 1e3 * np.finfo(dtype).eps * solution.spread.largest**2 / solution.ridge)
    np.testing.assert_allclose(solution.coef, fixed.coef, rtol=0, atol=amplified * np.abs(fixed.coef).max())
    return solution, ridges, scores


@methods
@pytest.mark.parametrize("free", [(), (0, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_against_the_hat_matrix(monkeypatch, algebra, method, free, weighted):
    H, T = rows_of(algebra, (15, 6, 2), noise=2.0)
    weight = np.random.default_rng(5).uniform(0.5, 3, 15) if weighted else None
    solution, ridges, scores = check_gcv(monkeypatch, method, algebra, H, T, weight=weight, free=free)
    # The oracle itself, by the definition, at the ridge that was chosen.
    P, t = weighted_system(H, T, algebra, weight)
    D = np.diag(penalised(algebra, 6, free).astype(float))
    S = P @ np.linalg.solve(P.T @ P + solution.ridge * D, P.T)
    n = algebra.dim * (15 if weight is None else weight.sum())
    score = n * np.linalg.norm(t - S @ t) ** 2 / (n - VALUES.freedom * np.trace(S)) ** 2
    assert scores[np.flatnonzero(ridges == solution.ridge)[0]] == pytest.approx(score, rel=1e-6)


@methods
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_in_single_precision(monkeypatch, algebra, method, weighted):
    H, T = rows_of(algebra, (15, 6, 2), noise=2.0)
    weight = np.random.default_rng(5).integers(1, 4, 15).astype(float) if weighted else None
    for free in ((), (2,)):
        with monkeypatch.context() as patch:
            check_gcv(patch, method, algebra, H, T, weight=weight, free=free, dtype=np.float32, tol=1e-3)


@methods
@pytest.mark.parametrize("free", [(), (2,)])
@pytest.mark.parametrize(("dtype", "exponents"), [(np.float32, (-100, 90)), (np.float64, (-470, 490))])
def test_gcv_in_any_unit_of_the_targets(method, free, dtype, exponents):
    """Squares of single precision are beyond it long before the targets are."""
    algebra = algebras.get("quaternions")
    H, T = (array.astype(dtype) for array in rows_of(algebra, (15, 6, 2), noise=2.0))
    wanted = solved(method, H, T, algebra, "gcv", None, free, dtype=dtype)
    for exponent in exponents:
        solution = solved(method, H, np.ldexp(T, exponent), algebra, "gcv", None, free, dtype=dtype)
        assert solution.ridge == wanted.ridge
        tol = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(np.ldexp(solution.coef, -exponent), wanted.coef, rtol=tol, atol=tol)


@methods
@pytest.mark.parametrize("exponent", [-600, 600])
def test_gcv_where_squares_are_no_numbers(method, exponent):
    algebra = algebras.get("complex")
    H, T = rows_of(algebra, (15, 6, 2), noise=2.0)
    with pytest.raises(
        ValueError, match=r"beyond double precision.*Divide the targets|rows whose sums are beyond float64"
    ):
        solved(method, H, np.ldexp(T, exponent), algebra, "gcv")
    assert not solved(method, H, 0 * T, algebra, "gcv").coef.any()


@methods
def test_gcv_with_fewer_rows_than_unknowns(monkeypatch, algebra, method):
    H, T = rows_of(algebra, (5, 8, 2), noise=2.0)
    check_gcv(monkeypatch, method, algebra, H, T, tol=1e-4)


@methods
def test_gcv_with_fewer_rows_than_unknowns_and_unpenalised_ones(monkeypatch, algebra, method):
    H, T = rows_of(algebra, (5, 8, 2), noise=2.0)
    check_gcv(monkeypatch, method, algebra, H, T, free=(7,), tol=1e-4)


@methods
def test_gcv_with_dependent_columns(monkeypatch, algebra, method):
    H, T = rows_of(algebra, (15, 5, 2), noise=2.0)
    H[:, 4] = H[:, 0]
    check_gcv(monkeypatch, method, algebra, H, T)


@methods
def test_gcv_ends(method):
    """No noise: hardly any ridge. Nothing but noise: no weights."""
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (40, 4, 2), noise=0.0)
    solution = solved(method, H, T, algebra, "gcv")
    assert solution.ridge <= 1e-9 * solution.spread.largest**2
    rng = np.random.default_rng(0)
    H, T = np.ones((40, 1, 4)), rng.standard_normal((40, 1, 4))
    T -= T.mean(axis=0)
    solution = solved(method, H, T, algebra, "gcv")
    assert solution.ridge == pytest.approx(solution.spread.largest**2 / np.finfo(float).eps)
    assert solution.is_bias_only
    assert np.abs(solution.coef).max() < 1e-15


@methods
def test_gcv_with_weights_that_do_not_count_samples(method):
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (40, 8, 2), noise=2.0)
    with pytest.warns(UserWarning, match=r"their sum is 1 on 40 rows\. Give them a mean of 1"):
        solution = solved(method, H, T, algebra, "gcv", np.full(40, 1 / 40), (7,))
    assert solution.ridge == pytest.approx(solution.spread.largest**2 / np.finfo(float).eps, rel=0.5)


@methods
def test_gcv_of_nothing(method):
    algebra = algebras.get("complex")
    H, T = rows_of(algebra, (10, 3, 2))
    assert solved(method, 0 * H, T, algebra, "gcv").ridge == 0
    assert not solved(method, 0 * H, T, algebra, "gcv").coef.any()
    solution = solved(method, H, 0 * T, algebra, "gcv")
    assert solution.ridge >= 0
    assert not solution.coef.any()


@methods
@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "klein4"])
def test_gcv_where_the_unpenalised_unknowns_explain_everything(method, name):
    """One row and a bias: the rest is left at zero, and rounding in the sums is not mistaken for data."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (1, 5, 2))
    H[:, 4] = np.eye(algebra.dim)[0]
    x = solved(method, H, T, algebra, "gcv", free=(4,)).coef
    assert np.linalg.norm(x[:4]) < 1e-6
    np.testing.assert_allclose(x[4], T[0], atol=1e-6)


@methods
@pytest.mark.parametrize("ridge", [0.0, "gcv"])
def test_rtol_cuts_singular_values(algebra, method, ridge):
    H, T = rows_of(algebra, (20, 4, 2))
    H[:, 3] *= 1e-3
    P, t = weighted_system(H, T, algebra)
    U, sigma, Vt = np.linalg.svd(P, full_matrices=False)
    solution = solved(method, H, T, algebra, ridge, rtol=0.01)
    kept = sigma > 0.01 * sigma[0]
    assert solution.spread.rank == kept.sum() < len(sigma)
    gains = sigma[kept] / (sigma[kept] ** 2 + solution.ridge)
    expected = Vt[kept].T @ (gains[:, None] * (U[:, kept].T @ t))
    np.testing.assert_allclose(linalg.to_real(solution.coef), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["gram", "qr", "svd"])
def test_gcv_scores_of_few_rows_keep_their_digits(method):
    """Without a row left over, n - γ tr S is a sum of small numbers, not the difference of large ones."""
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (20, 50, 2), noise=2.0)
    P, t = weighted_system(H, T, algebra)
    U, sigma, _ = np.linalg.svd(P, full_matrices=False)
    energies = np.sum((U.T @ t) ** 2, axis=1)
    accumulator = CLASSES[method](algebra, 50, 2, np.float64)
    accumulator.update(H, T)
    for ridge in (1e-6, 1e-3, 1.0, 1e3):
        shrink = ridge / (sigma**2 + ridge)
        left = len(P) - VALUES.freedom * np.sum(1 - shrink)
        expected = len(P) * np.sum(shrink**2 * energies) / left**2 if left > 0 else np.inf
        if method != "gram" or ridge > 0.1:  # which does not see smaller ones
            assert Spectrum(accumulator).gcv(np.array([ridge]))[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"free": [-1]}, r"`free` must name different unknowns, from 0 to 2, got \[-1\]"),
        ({"free": [3]}, "`free` must name different unknowns"),
        ({"free": [1, 1]}, "`free` must name different unknowns"),
        ({"ridge": -1.0}, "`ridge` must be"),
        ({"ridge": np.nan}, "`ridge` must be"),
    ],
)
def test_what_solve_refuses(options, message):
    accumulator = QR(algebras.get("complex"), 3, 1)
    accumulator.update(np.ones((5, 3, 2)), np.ones((5, 1, 2)))
    with pytest.raises(ValueError, match=message):
        solve(accumulator, **{"ridge": 1.0} | options)


@pytest.mark.parametrize("size", [1e307, 1e-320])
@pytest.mark.parametrize("method", ["auto", "gram", "qr", "svd"])
def test_the_ends_of_double_precision_are_refused(method, size):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((200, 3, 4)), rng.standard_normal((200, 2, 4))
    for name, factors in (("A", (size, 1.0)), ("B", (1.0, size))):
        with pytest.raises(ValueError, match=rf"`{name}` must be (at most 1e\+300|zero or at least 1e-300), got"):
            linalg.lstsq(factors[0] * A, factors[1] * B, algebras.get("quaternions"), method=method)
