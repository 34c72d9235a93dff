"""The sums of the normal equations: symmetric corners, schemes, supports."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import VARIED, accumulated, rows_of
from hyperelm import Algebra, algebras, linalg
from hyperelm._algebra import forms, schemes
from hyperelm._algebra.schemes import reverse_scheme, scheme
from hyperelm._linalg.planes import Numbers, block_basis
from hyperelm._solvers import gram
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.solve import solve

# With rows of every array library.
pytestmark = pytest.mark.usefixtures("rows_of_library", "sums_of_few_rows")


@pytest.fixture(scope="module")
def sums_of_few_rows():
    """Few rows are summed, too, as many are: tests of the rows that an accumulator keeps are in `test_dual`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gram, "keeps_few", False)
        yield


def real_form(accumulator):
    """Φ_LᵀΦ_L and Φ_Lᵀφ(T) put together from the blocks by their definition, c = Eᵀφ and φ = Σ Re(Ē c)."""
    algebra, L, N = accumulator.algebra, accumulator.unknowns, accumulator.targets
    square, cross = np.zeros((L, algebra.dim, L, algebra.dim)), np.zeros((L, algebra.dim, N))
    for block, problem in zip(block_basis(algebra).blocks, accumulator.problems()):
        n, copies = block.size, block.copies
        G = problem.gram.reshape(n, L, n, L)
        C = problem.cross.reshape(n, L, copies, N)
        for c, E in enumerate(block.bases):
            square += np.einsum("ip,plqm,jq->limj", E.conj(), G, E, optimize=True).real
            cross += np.einsum("ip,pln->lin", E.conj(), C[:, :, c], optimize=True).real
    return square.reshape(L * algebra.dim, -1), cross.reshape(L * algebra.dim, N)


def check(accumulator, H, T, tol=1e-12):
    P, t = linalg.left_matrix(H, accumulator.algebra), linalg.to_real(T)
    square, cross = real_form(accumulator)
    scale = len(P) * np.abs(P).max() * max(np.abs(P).max(), np.abs(t).max())
    np.testing.assert_allclose(square, P.T @ P, rtol=0, atol=tol * scale)
    np.testing.assert_allclose(cross, P.T @ t, rtol=0, atol=tol * scale)


def check_same(accumulator, H, T):
    """Sums and solution are those of one accumulator over all rows."""
    whole = accumulated(Gram, accumulator.algebra, H, T)
    np.testing.assert_allclose(solve(accumulator, 0.3).coef, solve(whole, 0.3).coef, rtol=0, atol=1e-11)
    assert (accumulator.n_rows, accumulator.weight) == (whole.n_rows, whole.weight)
    assert accumulator.square == pytest.approx(whole.square, rel=1e-13)
    check(accumulator, H, T)


def known(T, algebra):
    """T as the hidden layer of an auto-encoder has left it, its input: with planes by the forward scheme."""
    targets = Numbers(T)
    targets.planes_by_support(lambda support: scheme(algebra, support, None).left)
    return targets


@pytest.fixture(params=[False, True], ids=["plain", "searched"])
def searched(request, monkeypatch):
    """With and without the schemes that are searched for only where products are large."""
    monkeypatch.setattr(gram, "is_large_product", lambda *_: request.param)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("shape", [(7, 1, 1), (5, 5, 2), (3, 4, 9), (1, 3, 2)])
def test_normal_equations_of_the_real_matrix(algebra, shape):
    H, T = rows_of(algebra, shape)
    accumulator = Gram(algebra, *shape[1:])
    accumulator.update(H, T)
    check(accumulator, H, T)


@pytest.mark.parametrize("dim", [2, 3, 4, 8])
def test_tables_without_zeros_take_products_of_components(dim):
    """As learned tables do: no planes of H are formed."""
    table = np.random.default_rng(dim).standard_normal((dim, dim, dim))
    algebra = Algebra(table / np.abs(table).max())
    H, T = rows_of(algebra, (30, 3, 2))
    accumulator = accumulated(Gram, algebra, H, T)
    check(accumulator, H, T)
    assert accumulator._products(Numbers(T))[1].shape == (dim, dim)


@pytest.mark.usefixtures("searched")
def test_supports_of_the_targets_may_change_from_chunk_to_chunk(algebra):
    """All components, without the real part, with it alone, none: each with a scheme of its own, in one accumulator."""
    H, T = rows_of(algebra, (20, 3, 2))
    T[5:10, :, 0] = 0
    T[10:15, :, 1:] = 0
    T[15:] = 0
    accumulator, other = Gram(algebra, 3, 2), Gram(algebra, 3, 2)
    for start, target in zip((0, 5, 10, 15), (accumulator, other, accumulator, other)):
        target.update(H[start : start + 5], T[start : start + 5])
    accumulator.merge(pickle.loads(pickle.dumps(other)))
    check(accumulator, H, T)
    other.update(H[:5], T[:5])
    check(accumulator, H, T)


@pytest.mark.usefixtures("searched")
def test_single_precision(algebra):
    H, T = rows_of(algebra, (40, 3, 2))
    T[:20, :, 0] = 0
    accumulator = Gram(algebra, 3, 2, np.float32)
    accumulator.update(H[:20], T[:20])
    accumulator.update(H[20:], T[20:])
    check(accumulator, H, T, tol=1e-6)


def test_a_square_that_is_known_stands_for_the_check_of_the_targets():
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (12, 3, 2))
    accumulator = Gram(algebra, 3, 2)
    accumulator.update(H, known(T, algebra))
    check_same(accumulator, H, T)
    T[7, 1, 2] = np.nan
    targets = known(T, algebra)
    assert np.isnan(vars(targets)["square"])
    with pytest.raises(ValueError, match="`T` must be finite, got nan in row 19"):
        accumulator.update(H, targets)


def test_reading_the_sums_does_not_disturb_them(algebra):
    """A solve in the middle mirrors the symmetric sums; rows that follow must not count twice."""
    H, T = rows_of(algebra, (12, 5, 2))
    accumulator, part = Gram(algebra, 5, 2), Gram(algebra, 5, 2)
    accumulator.update(H[:4], T[:4])
    solve(accumulator, 0.1)
    part.update(H[4:8], T[4:8])
    accumulator.merge(part)
    solve(accumulator, 0.1)
    accumulator.update(H[8:], T[8:])
    accumulator.problems()
    check(accumulator, H, T)


def test_gram_matrices_are_hermitian_and_definite(algebra):
    H, T = rows_of(algebra, (4, 5, 2))
    accumulator = Gram(algebra, 5, 2)
    accumulator.update(H, T)
    for problem in accumulator.problems():
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
    accumulator = Gram(algebra, L, N)
    accumulator.update(H, T)
    check(accumulator, H, T)


@pytest.mark.parametrize("zero", [[], [0], slice(1, None), slice(None)], ids=["full", "imaginary", "real", "none"])
@pytest.mark.parametrize("name", VARIED)
def test_planes_of_the_targets_that_are_known(name, zero):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (15, 3, 5))
    T[..., zero] = 0
    accumulator = Gram(algebra, 3, 5)
    for rows in (slice(0, 8), slice(8, 15)):
        accumulator.update(H[rows], known(T[rows], algebra))
    check_same(accumulator, H, T)


@pytest.mark.parametrize("name", VARIED)
def test_known_planes_in_single_precision(name):
    algebra = algebras.get(name)
    H, T = (array.astype(np.float32) for array in rows_of(algebra, (40, 3, 5)))
    accumulator = Gram(algebra, 3, 5, np.float32)
    accumulator.update(H, known(T, algebra))
    check(accumulator, H.astype(float), T.astype(float), tol=1e-6)


@pytest.mark.parametrize(("name", "taken"), [("klein4", True), ("quaternions", True), ("paper-Cl(1,1)", False)])
def test_known_planes_are_taken_where_a_scheme_can_use_them(name, taken):
    """Seen by planes that are twice as large as those of the targets."""
    algebra = algebras.get(name)
    assert (reverse_scheme(algebra, tuple(range(algebra.dim))) is not None) == taken
    H, T = rows_of(algebra, (9, 3, 2))
    targets = known(T, algebra)
    basis, image = targets._formed
    targets._formed = basis, 2 * image
    accumulator = Gram(algebra, 3, 2)
    accumulator.update(H, targets)
    check(accumulator, H, 2 * T if taken else T)


@pytest.mark.parametrize("name", VARIED)
def test_known_planes_are_of_rows_without_weights(name):
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (15, 3, 2))
    weight = np.random.default_rng(1).uniform(0, 3, 15)
    accumulator = Gram(algebra, 3, 2)
    accumulator.update(H, known(T, algebra), weight)
    roots = np.sqrt(weight)[:, None, None]
    check(accumulator, roots * H, roots * T)


@pytest.mark.parametrize(("solved", "pickled"), [("a", False), ("ab", True)], ids=["first", "both, pickled"])
def test_merging_and_going_on_after_a_solve(algebra, solved, pickled):
    """A solve reads the sums and must leave them as they are, for rows of any support."""
    H, T = rows_of(algebra, (24, 3, 2))
    T[6:12, :, 0] = 0
    a, b = accumulated(Gram, algebra, H[:6], T[:6]), accumulated(Gram, algebra, H[6:12], T[6:12])
    for accumulator in [{"a": a, "b": b}[name] for name in solved]:
        solve(accumulator, 0.1)
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
    accumulators = [Gram(algebra, 2, 3) for _ in range(3)]
    cuts = sorted(data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=8), label="cuts"))
    for rows in np.split(np.arange(20), cuts):
        n = data.draw(st.integers(0, len(accumulators) - 1), label="accumulator")
        T[rows, :, 0] *= data.draw(st.booleans(), label="real part")
        targets = known(T[rows], algebra) if data.draw(st.booleans(), label="known") else T[rows]
        accumulators[n].update(H[rows], targets)
        then = data.draw(st.sampled_from(["nothing", "solve", "pickle", "merge"]), label="then")
        if then == "solve":
            solve(accumulators[n], 0.1)
        elif then == "pickle":
            accumulators[n] = pickle.loads(pickle.dumps(accumulators[n]))
        elif then == "merge" and len(accumulators) > 1:
            other = accumulators.pop(n)
            accumulators[0].merge(other)
    for other in accumulators[1:]:
        accumulators[0].merge(other)
    check_same(accumulators[0], H, T)


@pytest.mark.parametrize("name", ["klein4", "quaternions"])
def test_large_sums_after_a_solve(name):
    """Of a size at which they have pages of their own."""
    algebra = algebras.get(name)
    L, N = 60, 900
    H, T = rows_of(algebra, (9, L, N))
    accumulator, other = Gram(algebra, L, N), Gram(algebra, L, N)
    accumulator.update(H[:3], known(T[:3], algebra))
    solve(accumulator, 0.1)
    other.update(H[3:6], T[3:6])
    solve(other, 0.1)
    accumulator = pickle.loads(pickle.dumps(accumulator))
    accumulator.merge(other)
    accumulator.update(H[6:], known(T[6:], algebra))
    check(accumulator, H, T)


def test_largest_eigenvalue(algebra):
    """Not below the largest eigenvalue, and not above the trace."""
    H, T = rows_of(algebra, (20, 3, 2))
    P = linalg.left_matrix(H, algebra)
    accumulator = accumulated(Gram, algebra, H, T)
    assert np.linalg.norm(P, 2) ** 2 <= accumulator.largest_eigenvalue * (1 + 1e-12)
    assert accumulator.largest_eigenvalue <= np.linalg.norm(P) ** 2 * (1 + 1e-12)
    assert Gram(algebra, 3, 2).largest_eigenvalue == 0


@pytest.mark.parametrize(
    ("dtype", "unit"), [(np.float32, 1e-25), (np.float32, 1e20), (np.float64, 1e-170), (np.float64, 1e170)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_beyond_the_precision_are_not_safe(dtype, unit, weighted):
    """Neither overflow, which NumPy would warn of, nor squares that vanish go unnoticed, whoever has seen them."""
    algebra = algebras.get("quaternions")
    H, T = (array.astype(dtype) for array in rows_of(algebra, (12, 3, 2)))
    weight = np.linspace(0.5, 2, 12) if weighted else None
    accumulator, other = Gram(algebra, 3, 2, dtype), Gram(algebra, 3, 2, dtype)
    accumulator.update(H * dtype(unit), T, weight)
    assert not accumulator.is_safe
    other.merge(pickle.loads(pickle.dumps(accumulator)))
    assert not other.is_safe
    for spoiled in (accumulator, other):
        message = rf"`solver` must not be 'gram' for rows whose sums are beyond {np.dtype(dtype)}, .*'qr' or 'auto'"
        with pytest.raises(ValueError, match=message):
            solve(spoiled, 0.1)


def test_tiny_rows_beside_others_are_safe():
    algebra = algebras.get("complex")
    H, T = rows_of(algebra, (12, 3, 2))
    H[:6] *= 1e-200
    accumulator = Gram(algebra, 3, 2)
    accumulator.update(H[:6], T[:6])
    assert not accumulator.is_safe
    accumulator.update(H[6:], T[6:])
    assert accumulator.is_safe
    check(accumulator, H, T)
    nothing = Gram(algebra, 3, 2)
    nothing.update(0 * H, T)
    assert nothing.is_safe
    assert not solve(nothing).coef.any()


def test_restored_sums_are_as_safe_as_before():
    algebra = algebras.get("quaternions")
    H, T = rows_of(algebra, (12, 3, 2))
    accumulator, restored = accumulated(Gram, algebra, H, T), Gram(algebra, 3, 2)
    restored.restore(accumulator.arrays())
    assert restored.is_safe
    # To rounding: the arrays hold forms of HᵀH, and the accumulator keeps the sums of its plan.
    np.testing.assert_allclose(solve(restored, 0.1).coef, solve(accumulator, 0.1).coef, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["quaternions", "R[-2,-3]", "octonions", "R[-1e3,-1e-3]"])
def test_sums_of_another_basis_of_the_forms_are_taken(name):
    """As the files of earlier releases have them; sums of other forms are refused."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (12, 3, 2), seed=1)
    accumulator, restored = accumulated(Gram, algebra, H, T), Gram(algebra, 3, 2)
    arrays = accumulator.arrays()
    mix = np.linalg.qr(np.random.default_rng(0).standard_normal((len(arrays["forms"]),) * 2))[0]
    mixed = {key: np.tensordot(mix, arrays[key], axes=1) for key in ("forms", "squares")}
    restored.restore({**arrays, **mixed})
    for one in (accumulator, restored):
        one.update(H[:5], T[:5])
    # The sums of all forms are mixed, so the smallest have the rounding of the largest.
    entries = np.abs(algebra.table[algebra.table != 0])
    atol = 1e-15 * max(1e5, entries.max() / entries.min())
    np.testing.assert_allclose(solve(restored, 0.1).coef, solve(accumulator, 0.1).coef, rtol=0, atol=atol)
    if name == "quaternions":
        with pytest.raises(ValueError, match="in the block basis that this release finds"):
            Gram(algebra, 3, 2).restore({**arrays, "forms": arrays["forms"] + np.diag([0, 0, 1e-3, 0])})


def test_no_scheme_is_searched_for_small_problems(monkeypatch):
    """A search takes half a second, which only large products are worth."""
    algebra = Algebra.from_table([["-1", "0.5k", "-j"], ["-k", "1.5", "i"], ["j", "-i", "-1"]])
    for module, name in ((schemes, "_smallest_decomposition"), (forms, "_searched")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("searched"))
    H, T = rows_of(algebra, (12, 5, 2))
    check(accumulated(Gram, algebra, H, T), H, T)
