"""What every accumulator promises, checked against the real matrix Φ_L(H) built in the open."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import VARIED, accumulated, rows_of
from hyperelm import algebras, linalg
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve

# With rows of every array library.
pytestmark = pytest.mark.usefixtures("rows_of_library")

KINDS = [Gram, QR]
RIDGE = 0.3

kinds = pytest.mark.parametrize("kind", KINDS)


def check_against_the_real_matrix(accumulator, H, T, weight=None, tol=1e-10):
    """Ridge solution, singular values, tail and sums of an accumulator that has seen the rows H, T."""
    d = accumulator.algebra.dim
    weight = np.ones(len(H)) if weight is None else weight
    roots = np.sqrt(np.repeat(weight, d))[:, None]
    P, t = roots * linalg.left_matrix(H, accumulator.algebra), roots * linalg.to_real(T)
    x = np.linalg.solve(P.T @ P + RIDGE * np.eye(P.shape[1]), P.T @ t)
    scale = 1 + np.linalg.svd(P, compute_uv=False).max(initial=0) ** 2
    np.testing.assert_allclose(linalg.to_real(solve(accumulator, RIDGE).coef), x, rtol=0, atol=tol * scale)
    values = [np.repeat(p.singular_values(), p.multiplicity) for p in accumulator.problems()]
    found, expected = np.zeros((2, P.shape[1]))
    expected[: min(P.shape)] = np.linalg.svd(P, compute_uv=False)
    all_values = np.sort(np.concatenate(values))[::-1]  # of fewer rows than unknowns, those of the rows
    found[: len(all_values)] = all_values
    np.testing.assert_allclose(found**2, expected**2, rtol=0, atol=tol * scale)
    assert accumulator.n_rows == len(H)
    assert accumulator.weight == pytest.approx(weight.sum(), rel=1e-12)
    assert accumulator.square == pytest.approx(np.linalg.norm(t) ** 2, rel=tol)
    if accumulator.tail is not None and not accumulator.few:
        left = np.linalg.norm(P @ np.linalg.lstsq(P, t, rcond=1e-12)[0] - t) ** 2 if len(H) else 0.0
        assert accumulator.tail == pytest.approx(left, abs=tol * scale)


def normal_equations(accumulator):
    """AᴴA and Aᴴt of all blocks in one vector, whatever the accumulator keeps of them."""
    parts = []
    for problem in accumulator.problems():
        if hasattr(problem, "gram"):
            parts += [problem.gram, problem.cross]
        else:
            parts += [problem.R.conj().T @ problem.R, problem.R.conj().T @ problem.qt]
    return np.concatenate([part.ravel() for part in parts])


@kinds
@given(data=st.data())
def test_any_grouping_order_and_merge_tree(kind, data):
    algebra = algebras.get(data.draw(st.sampled_from(VARIED), label="algebra"))
    M, L, N = (data.draw(st.integers(*limits)) for limits in ((0, 14), (1, 4), (1, 3)))
    H, T = rows_of(algebra, (M, L, N), data.draw(st.integers(0, 1000), label="seed"))
    weight = np.array(data.draw(st.lists(st.floats(0, 4), min_size=M, max_size=M), label="weights"))
    order = np.array(data.draw(st.permutations(range(M)), label="order"), dtype=int)
    cuts = sorted(data.draw(st.lists(st.integers(0, M), max_size=5), label="cuts"))
    accumulators = [kind(algebra, L, N)]
    for rows in np.split(order, cuts):
        if data.draw(st.booleans(), label="new accumulator"):
            accumulators.append(kind(algebra, L, N))
        accumulators[-1].update(H[rows], T[rows], weight[rows])
    while len(accumulators) > 1:
        other = accumulators.pop(data.draw(st.integers(0, len(accumulators) - 1), label="merged"))
        accumulators[data.draw(st.integers(0, len(accumulators) - 1), label="into")].merge(other)
    check_against_the_real_matrix(accumulators[0], H, T, weight)


@kinds
def test_merge_is_associative_and_commutative(algebra, kind):
    H, T = rows_of(algebra, (9, 3, 2))
    blocks = [slice(0, 2), slice(2, 7), slice(7, 9)]

    def accumulators():
        return [accumulated(kind, algebra, H[rows], T[rows]) for rows in blocks]

    a, b, c = accumulators()
    a.merge(b)
    a.merge(c)
    left = a
    a, b, c = accumulators()
    b.merge(c)
    a.merge(b)
    right = a
    a, b, c = accumulators()
    c.merge(b)
    c.merge(a)
    for other in (right, c):
        np.testing.assert_allclose(normal_equations(other), normal_equations(left), rtol=0, atol=1e-12 * algebra.dim)
        assert (other.n_rows, other.weight) == (left.n_rows, left.weight)
        assert other.square == pytest.approx(left.square, rel=1e-14)
    check_against_the_real_matrix(left, H, T)


@kinds
def test_merging_leaves_the_other_alone_and_an_empty_one_changes_nothing(algebra, kind):
    H, T = rows_of(algebra, (8, 3, 2))
    a, b = accumulated(kind, algebra, H[:5], T[:5]), accumulated(kind, algebra, H[5:], T[5:])
    before = pickle.dumps(b)
    a.merge(b)
    assert pickle.dumps(b) == before
    a.merge(kind(algebra, 3, 2))
    check_against_the_real_matrix(a, H, T)
    empty = kind(algebra, 3, 2)
    empty.merge(a)
    check_against_the_real_matrix(empty, H, T)
    assert pickle.dumps(b) == before


@kinds
def test_merging_with_itself_counts_the_rows_twice(kind):
    algebra = algebras.get("tessarines")
    H, T = rows_of(algebra, (8, 3, 2))
    accumulator = accumulated(kind, algebra, H, T)
    accumulator.merge(accumulator)
    check_against_the_real_matrix(accumulator, np.concatenate([H, H]), np.concatenate([T, T]))


@kinds
def test_state_is_small_and_goes_on_after_a_pickle(algebra, kind):
    H, T = rows_of(algebra, (40, 3, 2))
    accumulator = accumulated(kind, algebra, H[:4], T[:4])
    first = len(pickle.dumps(accumulator))
    for start in range(4, 40, 6):
        accumulator.update(H[start : start + 6], T[start : start + 6])
    assert abs(len(pickle.dumps(accumulator)) - first) <= 16
    copy = pickle.loads(pickle.dumps(accumulator))
    more_H, more_T = rows_of(algebra, (5, 3, 2), seed=1)
    copy.update(more_H, more_T)
    check_against_the_real_matrix(copy, np.concatenate([H, more_H]), np.concatenate([T, more_T]))
    check_against_the_real_matrix(accumulator, H, T)


@kinds
def test_integer_weights_are_repeated_rows(algebra, kind):
    H, T = rows_of(algebra, (12, 3, 2))
    counts = np.array([3, 1, 0, 2, 1, 0, 4, 1, 1, 2, 0, 1])
    weighted = accumulated(kind, algebra, H, T, counts)
    repeated = accumulated(kind, algebra, np.repeat(H, counts, axis=0), np.repeat(T, counts, axis=0))
    assert weighted.weight == repeated.weight == counts.sum()
    assert weighted.square == pytest.approx(repeated.square, rel=1e-13)
    np.testing.assert_allclose(normal_equations(weighted), normal_equations(repeated), rtol=0, atol=1e-11)
    for ridge in (0.0, 0.5, "gcv"):
        one, other = solve(weighted, ridge), solve(repeated, ridge)
        np.testing.assert_allclose(one.coef, other.coef, rtol=0, atol=1e-10)
        assert one.ridge == pytest.approx(other.ridge, rel=1e-12)
        assert one.spread.rank == other.spread.rank
    check_against_the_real_matrix(weighted, H, T, counts.astype(float))


@kinds
def test_weight_zero_is_an_absent_row(algebra, kind):
    H, T = rows_of(algebra, (12, 3, 2))
    weight = np.where(np.arange(12) % 3 == 1, 0.0, 0.7)
    kept = weight > 0
    accumulator, without = (
        accumulated(kind, algebra, H, T, weight),
        accumulated(kind, algebra, H[kept], T[kept], weight[kept]),
    )
    np.testing.assert_allclose(normal_equations(accumulator), normal_equations(without), rtol=0, atol=1e-12)
    assert (accumulator.n_rows, without.n_rows) == (12, 8)
    assert accumulator.weight == pytest.approx(without.weight)
    assert accumulator.square == pytest.approx(without.square)


@kinds
@given(data=st.data())
def test_components_that_are_zero_in_some_blocks(kind, data):
    algebra = algebras.get(data.draw(st.sampled_from(VARIED), label="algebra"))
    H, T = rows_of(algebra, (12, 3, 2), data.draw(st.integers(0, 1000), label="seed"))
    masks = st.lists(st.booleans(), min_size=algebra.dim, max_size=algebra.dim)
    accumulator = kind(algebra, 3, 2)
    for rows in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)):
        T[rows] *= data.draw(masks, label="components of T")
        H[rows] *= data.draw(masks, label="components of H")
        part = accumulated(kind, algebra, H[rows], T[rows]) if rows.start == 6 else None
        if part is None:
            accumulator.update(H[rows], T[rows])
        else:
            accumulator.merge(part)
    check_against_the_real_matrix(accumulator, H, T)


@kinds
def test_single_precision_is_kept(algebra, kind):
    H, T = rows_of(algebra, (20, 3, 2))
    accumulator = accumulated(kind, algebra, H, T, dtype=np.float32)
    accumulator.merge(accumulated(kind, algebra, H[:4].astype(np.float32), T[:4].astype(np.float32), dtype=np.float32))
    for problem in accumulator.problems():
        arrays = [problem.gram, problem.cross] if kind is Gram else [problem.R, problem.qt]
        assert {array.dtype for array in arrays} <= {np.dtype(np.float32), np.dtype(np.complex64)}
    check_against_the_real_matrix(accumulator, np.concatenate([H, H[:4]]), np.concatenate([T, T[:4]]), tol=1e-5)
    for ridge in (0.0, 0.1, "gcv"):
        for free in ((), (2,)):
            assert solve(accumulator, ridge, free=free).coef.dtype == np.float32


@kinds
def test_layouts_and_inputs_are_left_alone(algebra, kind):
    H, T = rows_of(algebra, (10, 3, 2))
    expected = normal_equations(accumulated(kind, algebra, H, T))
    planar_H = np.ascontiguousarray(H.transpose(2, 0, 1)).transpose(1, 2, 0)
    planar_T = np.ascontiguousarray(T.transpose(2, 0, 1)).transpose(1, 2, 0)
    for h, t in ((planar_H, planar_T), (np.asfortranarray(H), np.asfortranarray(T)), (H[::-1], T[::-1])):
        copies = h.copy(), t.copy()
        h.setflags(write=False)
        t.setflags(write=False)
        accumulator = accumulated(kind, algebra, h, t)
        accumulator.update(h, t, np.zeros(10))
        np.testing.assert_allclose(normal_equations(accumulator), expected, rtol=0, atol=1e-12 * algebra.dim)
        assert np.array_equal(h, copies[0])
        assert np.array_equal(t, copies[1])


@kinds
def test_integers_and_lists_are_taken(kind):
    algebra = algebras.get("complex")
    accumulator = kind(algebra, 1, 1)
    accumulator.update([[[1, 2]], [[3, -1]]], [[[0, 1]], [[2, 2]]], [1, 2])
    H, T = np.array([[[1.0, 2]], [[3, -1]]]), np.array([[[0.0, 1]], [[2, 2]]])
    check_against_the_real_matrix(accumulator, H, T, np.array([1.0, 2.0]))


@kinds
def test_no_rows_and_no_columns(kind):
    algebra = algebras.get("quaternions")
    accumulator = kind(algebra, 3, 2)
    assert solve(accumulator, 0.1).coef.shape == (3, 2, 4)
    assert not solve(accumulator, 0.0).coef.any()
    accumulator.update(np.zeros((0, 3, 4)), np.zeros((0, 2, 4)))
    assert (accumulator.n_rows, accumulator.weight, accumulator.square) == (0, 0.0, 0.0)
    no_targets = kind(algebra, 3, 0)
    no_targets.update(np.ones((5, 3, 4)), np.ones((5, 0, 4)))
    assert solve(no_targets, 0.1).coef.shape == (3, 0, 4)
    no_unknowns = kind(algebra, 0, 2)
    no_unknowns.update(np.ones((5, 0, 4)), np.ones((5, 2, 4)))
    assert solve(no_unknowns).coef.shape == (0, 2, 4)
    assert no_unknowns.square == 40


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


HC = algebras.get("quaternions")
GOOD_H, GOOD_T = rows_of(HC, (6, 2, 3))


@kinds
@pytest.mark.parametrize(
    ("H", "T", "weight", "error", "message"),
    [
        (GOOD_H[:, :1], GOOD_T, None, ValueError, r"`H` must have shape \(rows, 2, 4\), got \(6, 1, 4\)"),
        (GOOD_H, GOOD_T[:, :2], None, ValueError, r"`T` must have shape \(rows, 3, 4\), got \(6, 2, 4\)"),
        (GOOD_H[None], GOOD_T, None, ValueError, r"`H` must have shape \(rows, 2, 4\), got \(1, 6, 2, 4\)"),
        (GOOD_H[..., :3], GOOD_T, None, ValueError, r"`H` must have a last axis of length 4 \(quaternions\)"),
        (GOOD_H[:, 0], GOOD_T, None, ValueError, "`H` must have at least 3 axes"),
        (GOOD_H, GOOD_T + 0j, None, TypeError, "`T` must be real"),
        (GOOD_H, GOOD_T[:5], None, ValueError, "`H` and `T` must have the same number of rows, got 6 and 5"),
        (changed(GOOD_H, (4, 1, 2), np.nan), GOOD_T, None, ValueError, "`H` must be finite, got nan in row 304"),
        (GOOD_H, changed(GOOD_T, (2, 0, 3), -np.inf), None, ValueError, "`T` must be finite, got -inf in row 302"),
        (
            changed(GOOD_H, (5, 0, 0), np.inf),
            changed(GOOD_T, (1, 0, 0), np.nan),
            None,
            ValueError,
            "`H` must be finite, got inf in row 305",
        ),
        (changed(GOOD_H, (3, 0, 0), np.nan), GOOD_T, np.zeros(6), ValueError, "`H` must be finite, got nan in row 303"),
        (GOOD_H, GOOD_T, np.ones(5), ValueError, r"`sample_weight` must have one weight for each of the 6 rows, got"),
        (GOOD_H, GOOD_T, np.ones((6, 1)), ValueError, "`sample_weight` must have one weight for each"),
        (GOOD_H, GOOD_T, [1, 1, -1, 1, 1, 1], ValueError, "`sample_weight` must be finite and not negative"),
        (GOOD_H, GOOD_T, [1, 1, np.nan, 1, 1, 1], ValueError, "`sample_weight` must be finite and not negative"),
    ],
)
def test_a_refused_update_names_the_fault_and_changes_nothing(kind, H, T, weight, error, message):
    """300 rows came before, in two blocks of which one is larger than what is checked at a time."""
    accumulator = accumulated(kind, HC, *rows_of(HC, (290, 2, 3)))
    accumulator.update(*rows_of(HC, (10, 2, 3), seed=1))
    before = pickle.dumps(accumulator)
    with pytest.raises(error, match=message):
        accumulator.update(H, T, weight)
    assert pickle.dumps(accumulator) == before


@kinds
def test_the_row_of_a_fault_deep_in_a_block(kind):
    H, T = rows_of(HC, (700, 2, 3))
    H[613, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"in row 613\."):
        accumulated(kind, HC, H, T)


@kinds
def test_values_whose_squares_overflow_are_finite(kind):
    H, T = rows_of(algebras.get("complex"), (6, 2, 1))
    accumulator = kind(algebras.get("complex"), 2, 1, np.float32)
    accumulator.update(H, 1e25 * T)
    assert accumulator.n_rows == 6


@kinds
@pytest.mark.parametrize("other_kind", KINDS)
@pytest.mark.parametrize(
    ("name", "L", "N", "dtype"),
    [
        ("tessarines", 2, 3, np.float64),
        ("quaternions", 3, 3, np.float64),
        ("quaternions", 2, 2, np.float64),
        ("quaternions", 2, 3, np.float32),
        ("quaternions", 2, 3, np.float64),
    ],
)
def test_merging_different_kinds_is_refused(kind, other_kind, name, L, N, dtype):
    accumulator, other = accumulated(kind, HC, GOOD_H, GOOD_T), other_kind(algebras.get(name), L, N, dtype)
    if (kind, "quaternions", 2, 3, np.float64) == (other_kind, name, L, N, dtype):
        accumulator.merge(other)
        return
    before = pickle.dumps(accumulator)
    with pytest.raises(ValueError, match="`other` must summarise rows of the same algebra, sizes and precision"):
        accumulator.merge(other)
    assert pickle.dumps(accumulator) == before
