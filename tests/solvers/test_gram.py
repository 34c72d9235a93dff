"""The sums of the normal equations: symmetric corners, schemes, supports."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import algebras, linalg
from hyperelm.bilinear import reverse_scheme, scheme
from hyperelm.planes import block_basis
from hyperelm.solvers import Gram, gram, solve
from hyperelm.solvers.sums import Planes

# With rows of every array library.
pytestmark = pytest.mark.usefixtures("rows_of_library")

VARIED = ["real", "complex", "dual", "klein4", "quaternions", "tessarines", "R[+1,+1]", "paper-Cl(1,1)", "octonions"]


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


def accumulated(algebra, H, T):
    """One state that has seen all rows at once."""
    state = Gram(algebra, H.shape[1], T.shape[1])
    state.update(H, T)
    return state


def check_same(state, H, T):
    """Sums and solution are those of one accumulator over all rows."""
    whole = accumulated(state.algebra, H, T)
    np.testing.assert_allclose(solve(state, 0.3).x, solve(whole, 0.3).x, rtol=0, atol=1e-11)
    assert (state.rows, state.weight) == (whole.rows, whole.weight)
    assert state.square == pytest.approx(whole.square, rel=1e-13)
    check(state, H, T)


def planes_of(T, algebra):
    """What the hidden layer of an auto-encoder has formed of T, its input, by the forward scheme."""
    support = tuple(k for k in range(algebra.dim) if T[..., k].any())
    image = np.moveaxis(T @ scheme(algebra, support, None).left.astype(T.dtype), -1, 0)
    return Planes(support, np.ascontiguousarray(image))


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


def test_a_square_that_is_known_stands_for_the_check_of_the_targets():
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (12, 3, 2))
    known = planes_of(T, algebra)._replace(square=float(np.sum(T**2)))
    state = Gram(algebra, 3, 2)
    state.update(H, T, known=known)
    check_same(state, H, T)
    T[7, 1, 2] = np.nan
    with pytest.raises(ValueError, match="`T` must be finite, got nan in row 19"):
        state.update(H, T, known=known._replace(square=np.nan))


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


@pytest.mark.parametrize("zero", [[], [0], slice(1, None), slice(None)], ids=["full", "imaginary", "real", "none"])
@pytest.mark.parametrize("name", VARIED)
def test_planes_of_the_targets_that_are_known(name, zero):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (15, 3, 5))
    T[..., zero] = 0
    state = Gram(algebra, 3, 5)
    for rows in (slice(0, 8), slice(8, 15)):
        state.update(H[rows], T[rows], known=planes_of(T[rows], algebra))
    check_same(state, H, T)


@pytest.mark.parametrize("name", VARIED)
def test_known_planes_in_single_precision(name):
    algebra = algebras.get(name)
    H, T = (array.astype(np.float32) for array in rows_of(algebra, (40, 3, 5)))
    state = Gram(algebra, 3, 5, np.float32)
    state.update(H, T, known=planes_of(T, algebra))
    check(state, H.astype(float), T.astype(float), tol=1e-6)


@pytest.mark.parametrize(("name", "taken"), [("klein4", True), ("quaternions", True), ("paper-Cl(1,1)", False)])
def test_known_planes_are_taken_where_a_scheme_can_use_them(name, taken):
    """Seen by planes that are twice as large as those of the targets."""
    algebra = algebras.get(name)
    assert (reverse_scheme(algebra, tuple(range(algebra.dim))) is not None) == taken
    H, T = rows_of(algebra, (9, 3, 2))
    known = planes_of(T, algebra)
    state = Gram(algebra, 3, 2)
    state.update(H, T, known=known._replace(image=2 * known.image))
    check(state, H, 2 * T if taken else T)


@pytest.mark.parametrize("name", VARIED)
def test_known_planes_are_of_rows_without_weights(name):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (15, 3, 2))
    weight = np.random.default_rng(1).uniform(0, 3, 15)
    state = Gram(algebra, 3, 2)
    state.update(H, T, weight, known=planes_of(T, algebra))
    roots = np.sqrt(weight)[:, None, None]
    check(state, roots * H, roots * T)


@pytest.mark.parametrize("solved", [(), ("a",), ("b",), ("a", "b")], ids=["neither", "first", "second", "both"])
@pytest.mark.parametrize("pickled", [False, True])
def test_merging_and_going_on_after_a_solve(algebra, solved, pickled):
    """A solve keeps HᵀT in another form, with which rows of any form must go together."""
    H, T = rows_of(algebra, (24, 3, 2))
    T[6:12, :, 0] = 0
    a, b = accumulated(algebra, H[:6], T[:6]), accumulated(algebra, H[6:12], T[6:12])
    for state in [{"a": a, "b": b}[name] for name in solved]:
        solve(state, 0.1)
    if pickled:
        a, b = pickle.loads(pickle.dumps(a)), pickle.loads(pickle.dumps(b))
    a.merge(b)
    a.update(H[12:18], T[12:18])
    check_same(b, H[6:12], T[6:12])
    b.update(H[18:], T[18:])
    check_same(a, H[:18], T[:18])
    a.update(H[18:], T[18:])
    check_same(a, H, T)
    check_same(b, np.concatenate([H[6:12], H[18:]]), np.concatenate([T[6:12], T[18:]]))


@given(data=st.data())
def test_any_history(data):
    """Rows with and without known planes, of any support, and solves, pickles and merges between them."""
    algebra = algebras.get(data.draw(st.sampled_from(["complex", "klein4", "quaternions", "paper-Cl(1,1)"])))
    H, T = rows_of(algebra, (20, 2, 3), data.draw(st.integers(0, 1000), label="seed"))
    states = [Gram(algebra, 2, 3) for _ in range(3)]
    cuts = sorted(data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=8), label="cuts"))
    for rows in np.split(np.arange(20), cuts):
        n = data.draw(st.integers(0, len(states) - 1), label="state")
        T[rows, :, 0] *= data.draw(st.booleans(), label="real part")
        known = planes_of(T[rows], algebra) if data.draw(st.booleans(), label="known") else None
        states[n].update(H[rows], T[rows], known=known)
        then = data.draw(st.sampled_from(["nothing", "solve", "pickle", "merge"]), label="then")
        if then == "solve":
            solve(states[n], 0.1)
        elif then == "pickle":
            states[n] = pickle.loads(pickle.dumps(states[n]))
        elif then == "merge" and len(states) > 1:
            other = states.pop(n)
            states[0].merge(other)
    for other in states[1:]:
        states[0].merge(other)
    check_same(states[0], H, T)


@pytest.mark.parametrize("name", ["klein4", "quaternions"])
def test_large_sums_after_a_solve(name):
    """Of a size at which they have pages of their own."""
    algebra = algebras.get(name)
    L, N = 60, 900
    H, T = rows_of(algebra, (9, L, N))
    state, other = Gram(algebra, L, N), Gram(algebra, L, N)
    state.update(H[:3], T[:3], known=planes_of(T[:3], algebra))
    solve(state, 0.1)
    other.update(H[3:6], T[3:6])
    solve(other, 0.1)
    state = pickle.loads(pickle.dumps(state))
    state.merge(other)
    state.update(H[6:], T[6:], known=planes_of(T[6:], algebra))
    check(state, H, T)


def test_bound(algebra):
    """Not below the largest eigenvalue, and not above the trace."""
    H, T = rows_of(algebra, (20, 3, 2))
    P = linalg.left_matrix(H, algebra)
    state = accumulated(algebra, H, T)
    assert np.linalg.norm(P, 2) ** 2 <= state.bound * (1 + 1e-12)
    assert state.bound <= np.linalg.norm(P) ** 2 * (1 + 1e-12)
    assert Gram(algebra, 3, 2).bound == 0


@pytest.mark.parametrize(
    ("dtype", "unit"), [(np.float32, 1e-25), (np.float32, 1e20), (np.float64, 1e-170), (np.float64, 1e170)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_beyond_the_precision_are_not_safe(dtype, unit, weighted):
    """Neither overflow, which NumPy would warn of, nor squares that vanish go unnoticed, whoever has seen them."""
    algebra = algebras.get("quaternions")
    H, T = (array.astype(dtype) for array in rows_of(algebra, (12, 3, 2)))
    weight = np.linspace(0.5, 2, 12) if weighted else None
    state, other = Gram(algebra, 3, 2, dtype), Gram(algebra, 3, 2, dtype)
    state.update(H * dtype(unit), T, weight)
    assert not state.is_safe
    other.merge(pickle.loads(pickle.dumps(state)))
    assert not other.is_safe
    for spoiled in (state, other):
        with pytest.raises(
            ValueError, match=r"'gram' must have rows whose sums are numbers in float.*take 'qr' or 'auto'"
        ):
            solve(spoiled, 0.1)


def test_tiny_rows_beside_others_are_safe():
    algebra = algebras.get("complex")
    H, T = rows_of(algebra, (12, 3, 2))
    H[:6] *= 1e-200
    state = Gram(algebra, 3, 2)
    state.update(H[:6], T[:6])
    assert not state.is_safe
    state.update(H[6:], T[6:])
    assert state.is_safe
    check(state, H, T)
    nothing = Gram(algebra, 3, 2)
    nothing.update(0 * H, T)
    assert nothing.is_safe
    assert not solve(nothing).x.any()


def test_restored_sums_are_as_safe_as_before():
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (12, 3, 2))
    state, restored = accumulated(algebra, H, T), Gram(algebra, 3, 2)
    restored.restore(state.arrays())
    assert restored.is_safe
    np.testing.assert_array_equal(solve(restored, 0.1).x, solve(state, 0.1).x)


@pytest.mark.parametrize("name", ["quaternions", "R[-2,-3]", "octonions", "R[-1e3,-1e-3]"])
def test_sums_of_another_basis_of_the_forms_are_taken(name):
    """As the files of earlier releases have them; sums of other forms are refused."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (12, 3, 2), seed=1)
    state, restored = accumulated(algebra, H, T), Gram(algebra, 3, 2)
    arrays = state.arrays()
    mix = np.linalg.qr(np.random.default_rng(0).standard_normal((len(arrays["forms"]),) * 2))[0]
    mixed = {key: np.tensordot(mix, arrays[key], axes=1) for key in ("forms", "squares")}
    restored.restore({**arrays, **mixed})
    for one in (state, restored):
        one.update(H[:5], T[:5])
    np.testing.assert_allclose(solve(restored, 0.1).x, solve(state, 0.1).x, rtol=0, atol=1e-10)
    if name == "quaternions":
        with pytest.raises(ValueError, match="in the block basis that this release finds"):
            Gram(algebra, 3, 2).restore({**arrays, "forms": arrays["forms"] + np.diag([0, 0, 1e-3, 0])})
