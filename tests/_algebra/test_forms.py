"""Forms of the Gram matrix, and the products of planes that span them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras, linalg
from hyperelm._algebra import forms
from hyperelm._algebra.blocks import decompose
from hyperelm._algebra.forms import gram_forms, gram_plan


def multiplications(plan):
    """In units of half a product of M x L matrices: a square is symmetric and takes one, another product two."""
    return sum(2 - (a == b) for total in plan.sums for a, b, _ in total)


def sums_of(plan, H):
    """The sums that the plan keeps of rows H, (m, L, d), by their definition."""
    h = np.einsum("mld,dp->pml", H, plan.planes)
    return [sum(c * h[a].T @ h[b] for a, b, c in pairs) for pairs in plan.sums]


@pytest.mark.parametrize("search", [False, True])
def test_plans_give_every_form_of_random_rows(algebra, search):
    H = np.random.default_rng(0).standard_normal((5, 3, algebra.dim))
    plan = gram_plan(algebra, search=search)
    S = sums_of(plan, H)
    rows = iter(plan.to_forms)
    for block in gram_forms(algebra):
        h = np.einsum("mld,dp->pml", H, block.components)
        for form, sign in zip(block.forms, block.signs):
            expected = sum(form[s, t] * h[s].T @ h[t] for s in range(len(h)) for t in range(len(h)))
            total = sum(c * (P + sign * P.T) / 2 for c, P in zip(next(rows), S))
            np.testing.assert_allclose(total, expected, rtol=0, atol=1e-11)
            np.testing.assert_allclose(expected, sign * expected.T, rtol=0, atol=1e-12)
    assert next(rows, None) is None


@pytest.mark.parametrize(
    ("name", "plain", "found"),
    [
        ("real", 1, 1),
        ("complex", 4, 3),
        ("klein4", 4, 4),
        ("tessarines", 8, 6),
        ("quaternions", 16, 8),
        ("R[-1,+1]", 8, 8),
        ("paper-Cl(1,1)", 16, 11),
        ("octonions", 64, 64),
    ],
)
def test_multiplications(name, plain, found):
    """A search finds fewer, with coefficients that stay small."""
    algebra = algebras.get(name)
    assert multiplications(gram_plan(algebra, search=False)) == plain
    plan = gram_plan(algebra, search=True)
    assert multiplications(plan) == found
    if found < plain:
        np.testing.assert_allclose(np.linalg.norm(plan.planes, axis=0), 1, rtol=1e-12)
        assert np.abs(plan.to_forms).sum(axis=1).max() < 10


def test_growth_of_errors_of_the_quaternions():
    """HᵀH in single precision, by the planes that were found, against its definition in double precision."""
    algebra = algebras.get("quaternions")
    rng = np.random.default_rng(0)
    H = rng.standard_normal((400, 6, 4)).astype(np.float32)
    plan = gram_plan(algebra, search=True)
    h = np.einsum("mld,dp->pml", H, plan.planes.astype(np.float32))
    S = np.stack([h[a].T @ h[b] for [(a, b, _)] in plan.sums])
    Q = np.tensordot(plan.to_forms.astype(np.float32), S, axes=1)
    real = (Q[0] + Q[0].T) / 2
    exact = np.einsum("mld,mkd->lk", H.astype(float), H.astype(float))
    assert np.abs(real - exact).max() < 20 * np.finfo(np.float32).eps * exact.max()


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6))
def test_the_echelon_form_depends_on_the_space_alone(seed, rank, rows):
    rng = np.random.default_rng(seed)
    space = rng.integers(-3, 4, (rank, 7)).astype(float)
    one, pivots = forms._echelon(space.copy())
    mixed = rng.standard_normal((rows + rank, rank)) @ space
    other, again = forms._echelon(mixed)
    assert pivots == again
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(one[:, pivots], np.eye(len(pivots)))


def test_a_table_of_real_parameters_is_searched_too():
    """R[-1,-2] is isomorphic to the quaternions, but its units have other lengths, so it has other forms."""
    algebra = algebras.get("R[-1,-2]")
    found, plain = (multiplications(gram_plan(algebra, search=search)) for search in (True, False))
    assert found < plain


def test_no_planes_where_there_are_none():
    block = gram_forms(algebras.get("quaternions"))[0]
    assert forms._best_planes(block, products=3, squares=1) is None


@pytest.mark.parametrize("L", [1, 2, 3, 5])
def test_squares_in_corners(L):
    """The Gram matrix of real numbers is one square, which is summed in three pieces."""
    algebra = algebras.get("real")
    H = np.random.default_rng(L).standard_normal((8, L, 1))
    result = linalg.lstsq(H, H, algebra, method="gram")
    np.testing.assert_allclose(result.x[..., 0], np.eye(L), atol=1e-12)


def test_an_algebra_without_products():
    algebra = Algebra(np.zeros((2, 2, 2)))
    assert gram_forms(algebra)[0].forms.shape[0] == 0
    result = linalg.lstsq(np.ones((3, 2, 2)), np.ones((3, 1, 2)), algebra, method="gram")
    np.testing.assert_array_equal(result.x, 0)


def check_plan(algebra, search):
    """The Gram matrix Φ_L(H)ᵀΦ_L(H) from the plan, against its definition, relative to the lengths of its columns."""
    d, rng = algebra.dim, np.random.default_rng(0)
    H = rng.standard_normal((7, 2, d)) / np.maximum(np.abs(algebra.table).max(axis=(1, 2)), 1e-300)
    plan = gram_plan(algebra, search=search)
    S, rows = sums_of(plan, H), iter(plan.to_forms)
    (block,) = decompose(algebra)
    (of_block,) = gram_forms(algebra)
    gram = np.zeros((d, 2, d, 2), dtype=of_block.patterns.dtype)
    for pattern, sign in zip(of_block.patterns, of_block.signs):
        total = sum(c * (P + sign * P.T) / 2 for c, P in zip(next(rows), S))
        gram += np.einsum("qr,ab->qarb", pattern, total)
    P = np.einsum("mai,ijq->mjaq", H, block.matrices).reshape(7 * d, 2, d)
    expected = np.einsum("maq,mbr->qarb", P, P)
    lengths = np.sqrt(np.einsum("qaqa->qa", expected))
    np.testing.assert_array_less(np.abs(gram - expected), 1e-12 * lengths[:, :, None, None] * lengths + 1e-300)


@given(seed=st.integers(0, 10_000), dim=st.integers(2, 4), search=st.booleans())
def test_plans_of_tables_of_wide_range(seed, dim, search):
    rng = np.random.default_rng(seed)
    check_plan(Algebra(10 ** rng.uniform(-4, 4, (dim,) * 3) * rng.choice([-1, 1], (dim,) * 3)), search)


@given(seed=st.integers(0, 10_000), spread=st.floats(0.5, 6), search=st.booleans())
def test_plans_of_quaternions_in_other_units(seed, spread, search):
    s = 10 ** np.random.default_rng(seed).uniform(-spread, spread, 4)
    check_plan(Algebra(algebras.get("quaternions").table * s[:, None, None] * s[:, None] / s), search)


def test_elementary_forms_are_a_basis_of_all():
    """These are the forms if a smaller basis would take too long to find."""
    block = decompose(algebras.get("octonions"))[0]
    components, B = forms._independent_components(block)
    found = forms._in_basis(components, B, elementary=True)
    assert len(found.forms) == 64
    assert np.linalg.matrix_rank(found.forms.reshape(64, 64)) == 64
    assert forms._gives_back(found, found.forms)
