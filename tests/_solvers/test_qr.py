"""Sequential QR: triangular factors, what no X explains, and the accuracy of an SVD of everything."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import rows_of
from hyperelm import algebras, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve

# With rows of every array library.
pytestmark = pytest.mark.usefixtures("rows_of_library")


def chunked(algebra, H, T, rows, dtype=np.float64):
    accumulator = QR(algebra, H.shape[1], T.shape[1], dtype)
    for start in range(0, len(H), rows):
        accumulator.update(H[start : start + rows], T[start : start + rows])
    return accumulator


@pytest.mark.parametrize("rows", [1, 4, 30])
def test_factors(algebra, rows):
    """Triangular, with the singular values of Φ_L(H), and Qᴴt with the energy that they explain."""
    H, T = rows_of(algebra, (30, 4, 2))
    P, t = linalg.left_matrix(H, algebra), linalg.to_real(T)
    accumulator = chunked(algebra, H, T, rows)
    values, energy = [], 0.0
    for problem in accumulator.problems():
        assert np.array_equal(problem.R, np.triu(problem.R))
        values.append(np.repeat(np.linalg.svd(problem.R, compute_uv=False), problem.multiplicity))
        energy += np.linalg.norm(problem.qt) ** 2
    sigma = np.linalg.svd(P, compute_uv=False)
    np.testing.assert_allclose(np.sort(np.concatenate(values))[::-1], sigma, atol=1e-12 * sigma[0])
    Q, _ = np.linalg.qr(P)
    explained = np.linalg.norm(Q.T @ t) ** 2
    assert energy == pytest.approx(explained, rel=1e-12)
    assert accumulator.tail == pytest.approx(np.linalg.norm(t) ** 2 - explained, rel=1e-11)
    assert accumulator.square == pytest.approx(energy + accumulator.tail, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_rows_than_unknowns(algebra, rows):
    H, T = rows_of(algebra, (3, 5, 2))
    P, t = linalg.left_matrix(H, algebra), linalg.to_real(T)
    solution = solve(chunked(algebra, H, T, rows))
    np.testing.assert_allclose(
        linalg.to_real(solution.coef), np.linalg.lstsq(P, t, rcond=1e-12)[0], atol=1e-10 * np.abs(solution.coef).max()
    )
    assert solution.spread.rank == np.linalg.matrix_rank(P)
    assert solution.spread.condition == pytest.approx(np.linalg.cond(P), rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_accurate_than_normal_equations(dtype):
    """Condition 1e10 (1e5): rows one block after another lose nothing, sums of squares lose everything."""
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (40, 5, 1))
    kappa = 1e10 if dtype == np.float64 else 1e5
    H = (H * np.geomspace(1, 1 / kappa, 5)[:, None]).astype(dtype)
    X = np.random.default_rng(1).standard_normal((5, 1, 4)) * np.geomspace(1, kappa, 5)[:, None, None]
    T = linalg.matmul(H.astype(float), X, algebra).astype(dtype)
    x = solve(chunked(algebra, H, T, 7, dtype)).coef
    assert np.linalg.norm(x - X) < 100 * np.finfo(dtype).eps * kappa * np.linalg.norm(X)
    gram = Gram(algebra, 5, 1, dtype)
    gram.update(H, T)
    assert np.linalg.norm(solve(gram).coef - X) > 0.1 * np.linalg.norm(X)


def test_many_small_merges_lose_nothing():
    algebra = algebras.get("paper-Cl(1,1)")
    H, T = rows_of(algebra, (400, 3, 2))
    accumulator = QR(algebra, 3, 2)
    for row in range(len(H)):
        part = QR(algebra, 3, 2)
        part.update(H[row : row + 1], T[row : row + 1])
        accumulator.merge(part)
    expected = np.linalg.lstsq(linalg.left_matrix(H, algebra), linalg.to_real(T), rcond=None)[0]
    np.testing.assert_allclose(linalg.to_real(solve(accumulator).coef), expected, atol=1e-14)
    assert accumulator.tail == pytest.approx(
        accumulator.square - np.linalg.norm(linalg.left_matrix(H, algebra) @ expected) ** 2
    )


@pytest.mark.parametrize("before", [0, 3, 40])
def test_going_on_from_normal_equations(algebra, before):
    """Also from none, and from fewer rows than unknowns."""
    H, T = rows_of(algebra, (60, 4, 2))
    gram = Gram(algebra, 4, 2)
    gram.update(H[:before], T[:before])
    accumulator = QR.following(gram)
    accumulator.update(H[before:], T[before:])
    whole = chunked(algebra, H, T, 60)
    assert (accumulator.n_rows, accumulator.weight) == (60, 60.0)
    assert accumulator.square == pytest.approx(whole.square)
    assert accumulator.tail == pytest.approx(whole.tail)
    for ridge in (0.0, 0.5, "gcv"):
        found, expected = solve(accumulator, ridge), solve(whole, ridge)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9 * np.abs(expected.coef).max())
        assert found.ridge == pytest.approx(expected.ridge)


def test_a_restored_state_knows_the_size_of_its_rows():
    """In single precision sizes decide whether its numbers can be trusted."""
    algebra = algebras.get("quaternions")
    rng = np.random.default_rng(0)
    H, T = (rng.standard_normal((20, n, 4)).astype(np.float32) for n in (3, 2))
    for size in (1e10, 1e18):
        accumulator = QR(algebra, 3, 2, np.float32)
        accumulator.update(np.float32(size) * H, T)
        again = QR(algebra, 3, 2, np.float32)
        again.restore(accumulator.arrays())
        assert accumulator.square_H / 10 < again.square_H < 10 * accumulator.square_H
