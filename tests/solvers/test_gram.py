"""The sums of the normal equations: symmetric corners, schemes, supports."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from hyperelm import linalg
from hyperelm.products import block_basis
from hyperelm.solvers import Gram, gram, solve


def rows_of(algebra, shape, seed=0):
    M, L, N = shape
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, L, algebra.dim)), rng.standard_normal((M, N, algebra.dim))


def real_form(state):
    """Φ_LᵀΦ_L and Φ_Lᵀφ(T) put together from the blocks by their definition, c = Eᵀφ and φ = Σ Re(Ē c)."""
    algebra, L, N = state.algebra, state.unknowns, state.targets
    square, cross = np.zeros((L, algebra.dim, L, algebra.dim)), np.zeros((L, algebra.dim, N))
    for block, problem in zip(block_basis(algebra).blocks, state.problems()):
        n, copies = block.size, block.copies
        G = problem.gram.reshape(n, L, n, L)
        C = problem.cross.reshape(n, L, copies, N)
        for c, E in enumerate(block.bases):
            square += np.einsum("ip,plqm,jq->limj", E.conj(), G, E, optimize=True).real
            cross += np.einsum("ip,pln->lin", E.conj(), C[:, :, c], optimize=True).real
    return square.reshape(L * algebra.dim, -1), cross.reshape(L * algebra.dim, N)


def check(state, H, T, tol=1e-12):
    P, t = linalg.left_matrix(H, state.algebra), linalg.to_real(T)
    square, cross = real_form(state)
    scale = len(P) * np.abs(P).max() * max(np.abs(P).max(), np.abs(t).max())
    np.testing.assert_allclose(square, P.T @ P, rtol=0, atol=tol * scale)
    np.testing.assert_allclose(cross, P.T @ t, rtol=0, atol=tol * scale)


@pytest.fixture(params=[False, True], ids=["plain", "searched"])
def searched(request, monkeypatch):
    """With and without the schemes that are searched for only where products are large."""
    monkeypatch.setattr(gram, "is_worth_searching", lambda *_: request.param)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("shape", [(7, 1, 1), (9, 2, 3), (5, 5, 2), (3, 4, 9), (1, 3, 2)])
def test_normal_equations_of_the_real_matrix(algebra, shape):
    H, T = rows_of(algebra, shape)
    state = Gram(algebra, *shape[1:])
    state.update(H, T)
    check(state, H, T)


@pytest.mark.usefixtures("searched")
def test_supports_of_the_targets_may_change_from_block_to_block(algebra):
    """All components, without the real part, with it alone, none: each with a scheme of its own, in one state."""
    H, T = rows_of(algebra, (20, 3, 2))
    T[5:10, :, 0] = 0
    T[10:15, :, 1:] = 0
    T[15:] = 0
    state, other = Gram(algebra, 3, 2), Gram(algebra, 3, 2)
    for target, rows in ((state, slice(0, 5)), (other, slice(5, 10)), (state, slice(10, 15)), (other, slice(15, 20))):
        target.update(H[rows], T[rows])
    state.merge(pickle.loads(pickle.dumps(other)))
    check(state, H, T)
    other.update(H[:5], T[:5])
    check(state, H, T)


@pytest.mark.usefixtures("searched")
def test_single_precision(algebra):
    H, T = rows_of(algebra, (40, 3, 2))
    T[:20, :, 0] = 0
    state = Gram(algebra, 3, 2, np.float32)
    state.update(H[:20], T[:20])
    state.update(H[20:], T[20:])
    check(state, H, T, tol=1e-6)


def test_reading_the_state_does_not_disturb_it(algebra):
    """A solve in the middle mirrors the symmetric sums; rows that follow must not count twice."""
    H, T = rows_of(algebra, (12, 5, 2))
    state, part = Gram(algebra, 5, 2), Gram(algebra, 5, 2)
    state.update(H[:4], T[:4])
    solve(state, 0.1)
    part.update(H[4:8], T[4:8])
    state.merge(part)
    solve(state, 0.1)
    state.update(H[8:], T[8:])
    state.problems()
    check(state, H, T)


def test_gram_matrices_are_hermitian_and_definite(algebra):
    H, T = rows_of(algebra, (4, 5, 2))
    state = Gram(algebra, 5, 2)
    state.update(H, T)
    for problem in state.problems():
        assert np.array_equal(problem.gram, problem.gram.conj().T)
        values = np.linalg.eigvalsh(problem.gram)
        assert values[0] > -1e-13 * values[-1]


def test_where_the_schemes_are_worth_searching(algebra):
    """At a size at which a search pays, the sums are still those of the real matrix."""
    if algebra.dim > 4:
        pytest.skip("no search beyond dimension 4")
    L, N = 60, 900
    H, T = rows_of(algebra, (6, L, N))
    T[..., 0] *= algebra.dim == 1
    state = Gram(algebra, L, N)
    state.update(H, T)
    check(state, H, T)
