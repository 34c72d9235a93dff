"""All ridges from one decomposition, against the hat matrix and against refits; some of the unknowns alone."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import accumulated, left_out_residuals, rows_of
from hyperelm import Algebra, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve
from hyperelm._solvers.spectrum import VALUES, Spectrum
from oracles import hat_matrix, penalised, refitted_residuals

kinds = pytest.mark.parametrize("kind", [Gram, QR])
RIDGES = np.array([0.0, 0.01, 0.5, 20.0])


@kinds
@pytest.mark.parametrize("free", [(), (2,)])
def test_gcv_of_every_ridge(algebra, kind, free):
    H, T = rows_of(algebra, (14, 3, 2))
    weight = np.random.default_rng(1).uniform(0.5, 2, len(H))
    roots = np.sqrt(np.repeat(weight, algebra.dim))[:, None]
    P, t = roots * linalg.left_matrix(H, algebra), roots * linalg.to_real(T)
    n = algebra.dim * weight.sum()
    scores = Spectrum(accumulated(kind, algebra, H, T, weight), free).gcv(RIDGES)
    for ridge, score in zip(RIDGES, scores):
        S = hat_matrix(P, ridge, penalised(algebra, 3, free))
        expected = n * np.linalg.norm(t - S @ t) ** 2 / (n - VALUES.freedom * np.trace(S)) ** 2
        assert score == pytest.approx(expected, rel=1e-8)


@kinds
def test_gcv_where_the_bias_does_not_have_full_rank(kind):
    """With x·1 for some x a zero divisor, the free unknowns take fewer degrees of freedom than they are."""
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 0, 1] = table[1, 1, 0] = 1
    algebra = Algebra(table)
    H, T = rows_of(algebra, (12, 6, 1))
    H[:, -1] = [1, 0]
    P, t = linalg.left_matrix(H, algebra), linalg.to_real(T)
    ridge = 0.3
    D = np.sqrt(ridge) * np.eye(12)
    D[10:] = 0
    S = P @ np.linalg.pinv(np.vstack([P, D]))[:, :24]
    expected = 24 * np.linalg.norm(t - S @ t) ** 2 / (24 - VALUES.freedom * np.trace(S)) ** 2
    assert Spectrum(accumulated(kind, algebra, H, T), [5]).gcv(np.array([ridge]))[0] == pytest.approx(expected)


@kinds
@pytest.mark.parametrize("free", [(), (2,)])
def test_left_out_residuals_of_every_ridge(algebra, kind, free):
    """The samples are left out in fact, and the rest is solved again."""
    H, T = rows_of(algebra, (9, 3, 2))
    P, penalty = linalg.left_matrix(H, algebra), penalised(algebra, 3, free)
    residuals = left_out_residuals(Spectrum(accumulated(kind, algebra, H, T), free), RIDGES, H, T)
    assert residuals.shape == (9, len(RIDGES), 2, algebra.dim)
    for n, ridge in enumerate(RIDGES):
        expected = refitted_residuals(P, T, algebra, ridge, penalty)
        np.testing.assert_allclose(residuals[:, n], expected, atol=1e-8)


@kinds
def test_a_part_of_a_weight_is_left_out(algebra, kind):
    """Of a row with weight 3, one third leaves it with weight 2: the same as one of three equal rows."""
    H, T = rows_of(algebra, (14, 3, 2))
    weight = np.ones(len(H))
    weight[4] = 3
    once = left_out_residuals(Spectrum(accumulated(kind, algebra, H, T, weight)), RIDGES, H, T, np.minimum(weight, 1))
    again = [*range(len(H)), 4, 4]
    repeated = Spectrum(accumulated(kind, algebra, H[again], T[again]))
    thrice = left_out_residuals(repeated, RIDGES, H[again], T[again])
    np.testing.assert_allclose(thrice[: len(H)], once, atol=1e-9)


@kinds
def test_restricted_to_some_unknowns(algebra, kind):
    H, T = rows_of(algebra, (14, 4, 2))
    weight = np.random.default_rng(1).uniform(0.5, 2, len(H))
    rows = np.array([0, 1, 3])
    part = accumulated(kind, algebra, H, T, weight).restricted(rows)
    whole = accumulated(kind, algebra, H[:, rows], T, weight)
    assert (part.unknowns, part.n_rows, part.weight, part.square) == (3, whole.n_rows, whole.weight, whole.square)
    for ridge in (0.0, 0.3):
        np.testing.assert_allclose(solve(part, ridge, free=[2]).coef, solve(whole, ridge, free=[2]).coef, atol=1e-9)
    np.testing.assert_allclose(Spectrum(part, [2]).gcv(RIDGES), Spectrum(whole, [2]).gcv(RIDGES), rtol=1e-8)
    part.update(H[:5, rows], T[:5])
    whole.update(H[:5, rows], T[:5])
    np.testing.assert_allclose(solve(part, 0.3).coef, solve(whole, 0.3).coef, atol=1e-9)


@kinds
def test_the_path_covers_what_can_be_seen(kind, algebra):
    spectrum = Spectrum(accumulated(kind, algebra, *rows_of(algebra, (14, 3, 2))))
    path = spectrum.path(3)
    assert path[-1] == pytest.approx(spectrum.largest**2 / np.finfo(float).eps)
    assert path[-2] == pytest.approx(100 * spectrum.largest**2)
    assert spectrum.floor * spectrum.largest**2 <= path[0] <= 3 * spectrum.floor * spectrum.largest**2
    np.testing.assert_allclose(path[1:-1] / path[:-2], 10 ** (1 / 3))
