"""A state may be made on one machine and solved on another, whose BLAS rounds otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm import algebras, linalg
from hyperelm.decomposition import decompose
from hyperelm.solvers import QR, Gram, solve
from hyperelm.solvers.forms import gram_forms


def noisy(function, rng):
    """As on a machine whose BLAS rounds otherwise."""

    def perturbed(a, *args, **kwargs):
        e = 1e-16 * np.abs(a).max(initial=0) * rng.standard_normal(a.shape)
        return function(a + (e + e.T if function.__name__ == "eigh" else e), *args, **kwargs)

    return perturbed


@pytest.fixture(params=range(4))
def another_machine(request, monkeypatch):
    rng = np.random.default_rng(request.param)
    for name in ("eigh", "svd"):
        monkeypatch.setattr(np.linalg, name, noisy(getattr(np.linalg, name), rng))


@pytest.mark.usefixtures("another_machine")
@pytest.mark.parametrize("name", algebras.names())
def test_blocks_are_the_same_on_another_machine(name):
    """States are kept in their basis, and may be pickled here and solved there."""
    algebra = algebras.get(name)
    here, there = decompose(algebra), decompose.__wrapped__(algebra)
    assert len(here) == len(there)
    for one, other in zip(here, there):
        np.testing.assert_allclose(one.matrices, other.matrices, rtol=0, atol=1e-10)
        np.testing.assert_allclose(one.bases, other.bases, rtol=0, atol=1e-10)
    for one, other in zip(gram_forms(algebra), gram_forms.__wrapped__(algebra), strict=True):
        for field in ("components", "forms", "signs", "entries"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=0, atol=1e-10)


def test_a_pickle_holds_no_sums_by_a_scheme_that_was_searched_for():
    algebra = algebras.get("klein4")
    state = Gram(algebra, 2, 2)
    state.update(np.ones((5, 2, 4)), np.ones((5, 2, 4)))
    kept = state.__getstate__()
    assert not kept["_crosses"]
    assert kept["_squares"] is None


def test_merging_with_itself_after_a_solve():
    algebra = algebras.get("quaternions")
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((9, 2, 4)), rng.standard_normal((9, 3, 4))
    state = Gram(algebra, 2, 3)
    state.update(H[:4], T[:4])
    solve(state, 0.1)
    state.update(H[4:], T[4:])
    state.merge(state)
    P, t = linalg.left_matrix(H, algebra), linalg.to_real(T)
    expected = np.linalg.solve(2 * P.T @ P + 0.1 * np.eye(8), 2 * P.T @ t)
    np.testing.assert_allclose(linalg.to_real(solve(state, 0.1).x), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [Gram, QR])
def test_arrays_of_an_accumulator(kind, algebra):
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((9, 2, algebra.dim)), rng.standard_normal((9, 3, algebra.dim))
    state, again = kind(algebra, 2, 3), kind(algebra, 2, 3)
    state.update(H, T)
    again.restore(state.arrays())
    assert (again.rows, again.weight, again.square, again.tail) == (9, state.weight, state.square, state.tail)
    assert np.array_equal(solve(again, 0.1).x, solve(state, 0.1).x)
    again.update(H, T)
    assert (state.rows, again.rows) == (9, 18)
    assert not np.array_equal(solve(again, 0.1).x, solve(state, 0.1).x)
