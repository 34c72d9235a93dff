"""Schemes: the table they multiply by, how many products they take, and what rounding does in them."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm import Algebra, algebras, linalg
from hyperelm._algebra.schemes import Scheme, is_large_product, products_of_components, reverse_scheme, scheme

SIDES = [(False, False), (True, False), (False, True)]
FOUR_DIMENSIONAL = [name for name in algebras.names() if algebras.get(name).dim == 4]
without = pytest.mark.parametrize(("from_left", "from_out"), SIDES, ids=["full", "left imaginary", "out imaginary"])


def restricted(algebra, left, out):
    """The table with zeros for the components that are not named."""
    table = algebra.table.copy()
    for component in range(algebra.dim):
        if left is not None and component not in left:
            table[component] = 0
        if out is not None and component not in out:
            table[:, :, component] = 0
    return table


def imaginary(algebra, wanted):
    return tuple(range(1, algebra.dim)) if wanted else None


def searched(algebra, left=None, out=None):
    """A scheme with `search`."""
    return scheme(algebra, left, out, search=True)


def table_of(plan: Scheme):
    """The table that the scheme multiplies by, term by term."""
    table = np.zeros((len(plan.left),) * 3)
    for p, q, s, c in plan.terms:
        table += c * np.einsum("i,j,k->ijk", plan.left[:, p], plan.right[:, q], plan.out[:, s])
    return table


def multiplied(plan: Scheme, A, B):
    """AB through the scheme, in the precision of A."""
    cast = A.dtype.type
    C = np.zeros((plan.out.shape[1], A.shape[0], B.shape[1]), A.dtype)
    planes_A, planes_B = A @ plan.left.astype(cast), B @ plan.right.astype(cast)
    for s, terms in plan.by_out().items():
        for p, q, c in terms:
            C[s] += cast(c) * (planes_A[..., p] @ planes_B[..., q])
    return np.tensordot(C, plan.out.astype(cast), axes=(0, 1))


def summed(plan: Scheme, A, C):
    """Φ_L(A)ᵀφ(C) through the scheme."""
    cast = A.dtype.type
    B = np.zeros((plan.right.shape[1], A.shape[1], C.shape[1]), A.dtype)
    planes_A, planes_C = A @ plan.left.astype(cast), C @ plan.out.astype(cast)
    for q, terms in plan.by_right().items():
        for p, s, c in terms:
            B[q] += cast(c) * (planes_A[..., p].T @ planes_C[..., s])
    return np.tensordot(B, plan.right.astype(cast), axes=(0, 1))


@without
@pytest.mark.parametrize("search", [False, True])
def test_table(algebra, from_left, from_out, search):
    left, out = imaginary(algebra, from_left), imaginary(algebra, from_out)
    plan = scheme(algebra, left, out, search=search)
    np.testing.assert_allclose(table_of(plan), restricted(algebra, left, out), rtol=0, atol=1e-14)
    for p, q, s, _ in plan.terms:  # the entries of a term, were its three vectors equally long
        largest = [np.abs(factor).max() for factor in (plan.left[:, p], plan.right[:, q], plan.out[:, s])]
        assert np.cbrt(np.prod(largest)) < 2.2
    assert max((abs(c) for *_, c in plan.terms), default=1.0) <= 1
    assert len(plan.terms) <= np.count_nonzero(restricted(algebra, left, out))


@pytest.mark.parametrize("from_out", [False, True])
def test_products_of_components(algebra, from_out):
    out = imaginary(algebra, from_out)
    plan = products_of_components(algebra, out)
    np.testing.assert_allclose(table_of(plan), restricted(algebra, None, out), rtol=1e-15)
    assert len(plan.terms) <= algebra.dim**2


def test_any_components(algebra):
    rng = np.random.default_rng(0)
    for _ in range(6):
        left, out = (tuple(int(k) for k in np.flatnonzero(rng.random(algebra.dim) < 0.6)) for _ in range(2))
        plan = scheme(algebra, left, out, search=False)
        np.testing.assert_allclose(table_of(plan), restricted(algebra, left, out), rtol=0, atol=1e-14)


def test_no_components(algebra):
    assert scheme(algebra, (), None).terms == ()
    assert scheme(algebra, None, ()).terms == ()


@pytest.mark.parametrize(
    ("name", "full", "less"),
    [
        ("real", 1, 0),
        ("complex", 3, 2),
        ("hyperbolic", 2, 2),
        ("klein4", 4, 4),
        ("tessarines", 6, 6),
        ("R[-1,+1]", 7, 6),
        ("R[+1,-1]", 7, 6),
        ("R[+1,+1]", 7, 6),
        ("paper-Cl(1,1)", 7, 6),
        ("quaternions", 8, 7),
    ],
)
def test_products_that_are_needed(name, full, less):
    algebra = algebras.get(name)
    imaginary_part = imaginary(algebra, True)
    assert len(searched(algebra).terms) <= full
    assert len(searched(algebra, imaginary_part).terms) <= less
    assert len(searched(algebra, None, imaginary_part).terms) <= less


@without
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_in_products(algebra, from_left, from_out, dtype):
    """The errors of AB and of Φ_L(A)ᵀφ(C) are at most 20 eps times the norms of the factors."""
    left, out = imaginary(algebra, from_left), imaginary(algebra, from_out)
    plan = searched(algebra, left, out)
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    for _ in range(5):
        A, B = (rng.standard_normal((4, 4, algebra.dim)).astype(dtype) for _ in range(2))
        C = rng.standard_normal((4, 4, algebra.dim)).astype(dtype)
        if from_left:
            A[..., 0] = 0
        if from_out:
            C[..., 0] = 0
        exact_A, exact_B, exact_C = (x.astype(np.longdouble) for x in (A, B, C))
        table = algebra.table.astype(np.longdouble)
        product = np.einsum("mli,lnj,ijk->mnk", exact_A, exact_B, table)
        if from_out:
            product[..., 0] = 0
        sums = np.einsum("mli,mnk,ijk->lnj", exact_A, exact_C, table)
        got = multiplied(plan, A, B)
        assert got.dtype == dtype
        assert np.linalg.norm((got - product).astype(float)) <= 20 * eps * linalg.norm(A) * linalg.norm(B)
        got = summed(plan, A, C)
        assert np.linalg.norm((got - sums).astype(float)) <= 20 * eps * linalg.norm(A) * linalg.norm(C)


@pytest.mark.parametrize("name", ["R[-2]", "R[3]"])
def test_the_same_at_every_search(name):
    algebra = algebras.get(name)
    for left in (None, imaginary(algebra, True)):
        first, second = searched(algebra, left), scheme.__wrapped__(algebra, left)
        assert first is searched(algebra, left)
        assert first is not second
        assert first.terms == second.terms
        for one, other in ((first.left, second.left), (first.right, second.right), (first.out, second.out)):
            assert np.array_equal(one, other)


def test_groups_hold_every_term(algebra):
    plan = scheme(algebra, search=False)
    by_out = [(p, q, s, c) for s, terms in plan.by_out().items() for p, q, c in terms]
    by_right = [(p, q, s, c) for q, terms in plan.by_right().items() for p, s, c in terms]
    assert sorted(by_out) == sorted(by_right) == sorted(plan.terms)


def test_small_products_are_not_worth_a_search():
    assert not is_large_product(100, 100)
    assert is_large_product(450, 1024)


@pytest.mark.parametrize("support", [(0, 1, 2, 3), (1, 2, 3), (0, 3), (2,), ()], ids=str)
@pytest.mark.parametrize("name", FOUR_DIMENSIONAL)
def test_reverse_schemes(name, support):
    """A reverse scheme has the planes of the forward scheme, bit for bit, and gives the same table."""
    algebra = algebras.get(name)
    forward, backward = scheme(algebra, support), reverse_scheme(algebra, support)
    if name == "paper-Cl(1,1)" and len(support) > 1:
        assert backward is None
        return
    assert np.array_equal(backward.out, forward.left)
    np.testing.assert_allclose(table_of(backward), restricted(algebra, None, support), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(backward.left, axis=0), 1, rtol=0, atol=1e-15)
    assert len(backward.terms) <= len(forward.terms)
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((6, 3, 4)), rng.standard_normal((6, 2, 4))
    X[..., [k for k in range(4) if k not in support]] = 0
    expected = np.einsum("mli,mnk,ijk->lnj", A, X, algebra.table)
    np.testing.assert_allclose(summed(backward, A, X), expected, rtol=0, atol=1e-13)


def test_reverse_schemes_of_other_dimensions(algebra):
    """If there is a reverse scheme, it is right. There is one if the planes are the components."""
    if algebra.dim == 4:
        pytest.skip("tested with more supports")
    for support in (tuple(range(algebra.dim)), (0,)):
        forward, backward = scheme(algebra, support), reverse_scheme(algebra, support)
        if backward is None:
            assert not np.array_equal(forward.left, np.eye(algebra.dim))
            continue
        assert np.array_equal(backward.out, forward.left)
        np.testing.assert_allclose(table_of(backward), restricted(algebra, None, support), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["R[-2]", "R[3]"])
def test_reverse_schemes_are_the_same_at_every_search(name):
    algebra = algebras.get(name)
    support = tuple(range(algebra.dim))
    first, second = reverse_scheme(algebra, support), reverse_scheme.__wrapped__(algebra, support)
    assert first is reverse_scheme(algebra, support)
    assert (first is None) == (second is None)
    if first is not None:
        assert np.array_equal(first.left, second.left)
        assert np.array_equal(first.right, second.right)


@pytest.mark.parametrize(("seed", "dim"), [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (9, 3)])
def test_schemes_of_sparse_tables(seed, dim):
    """Many of these tables have no identity, or zero divisors, or products that are all zero."""
    rng = np.random.default_rng(seed)
    algebra = Algebra(rng.choice([0.0, 0.0, 0.0, 1.0, -1.0], size=(dim, dim, dim)) * (seed > 0))
    for support in (tuple(range(dim)), tuple(range(1, dim)), (0,)):
        forward, backward = scheme(algebra, support), reverse_scheme(algebra, support)
        np.testing.assert_allclose(table_of(forward), restricted(algebra, support, None), rtol=0, atol=1e-13)
        if backward is not None:
            assert np.array_equal(backward.out, forward.left)
            np.testing.assert_allclose(table_of(backward), restricted(algebra, None, support), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "noise"),
    [*(("complex", noise) for noise in (1e-13, 1e-11, 1e-8)), ("klein4", 1e-11), ("quaternions", 1e-13)],
)
def test_tables_near_one_of_smaller_rank(name, noise):
    """A scheme gives the table itself to rounding, not the table nearby that takes fewer products."""
    table = algebras.get(name).table
    algebra = Algebra(table + noise * np.random.default_rng(0).uniform(-1, 1, table.shape))
    everything, imaginary_part = tuple(range(algebra.dim)), imaginary(algebra, True)
    plans = [(scheme(algebra), everything), (scheme(algebra, None, imaginary_part), imaginary_part)]
    plans.append((reverse_scheme(algebra, everything), everything))
    for plan, out in plans:
        if plan is not None:
            np.testing.assert_allclose(table_of(plan), restricted(algebra, None, out), rtol=0, atol=1e-14)


@pytest.mark.parametrize("factor", [1e-160, 3.0, 2.0**70])
def test_an_overall_factor_is_in_the_coefficients(algebra, factor):
    times, plain = scheme(Algebra(factor * algebra.table), search=False), scheme(algebra, search=False)
    np.testing.assert_allclose(table_of(times), factor * algebra.table, rtol=1e-14, atol=1e-14 * factor)
    assert len(times.terms) == len(plain.terms)


def test_entries_far_apart():
    """Units have lengths from 1e-6 to 1e6. Every entry of the table is right relative to the entries beside it."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        s = 10 ** rng.uniform(-6, 6, (3, 4))
        table = np.einsum("i,j,k,ijk->ijk", *s, algebras.get("quaternions").table)
        plan = scheme(Algebra(table))
        np.testing.assert_allclose(
            table_of(plan), table, rtol=1e-12, atol=1e-14 * np.abs(table).min(where=table != 0, initial=np.inf)
        )
