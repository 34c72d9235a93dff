"""Single products: complex and real planes against the table, which are chosen, layouts, pieces, and huge numbers."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras
from hyperelm._backend import single_products as module
from hyperelm._backend.single_products import by_components, by_plan, plan_for, single_products

MANY = 9000  # enough for planes, real or complex
NAMES = [*algebras.names(), "Cl(3,0)", "Cl(2,1)", "Cl(0,1,1)", "R[-2]", "R[-2,-1]", "R[+1,+1,+1]", "R[-1,-1,-1,+1]"]


def numbers(dim, dtype=np.float64, count=MANY, seed=0):
    return np.random.default_rng(seed).standard_normal((2, count, dim)).astype(dtype)


def check(found, x, y, table):
    """Each component has an error of a few roundings of the sum of the sizes of its terms."""
    x, y = (np.asarray(part, np.longdouble) for part in (x, y))
    expected, sizes = np.zeros((2, *np.broadcast_shapes(x.shape, y.shape)), np.longdouble)
    for i, j, k in np.argwhere(table).tolist():
        term = x[..., i] * y[..., j] * table[i, j, k]
        expected[..., k] += term
        sizes[..., k] += np.abs(term)
    bound = (2 + np.count_nonzero(table, axis=(0, 1)).max()) * np.finfo(found.dtype).eps * sizes
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= bound)


def sign_table(rng, dim):
    """A random table in which the product of units i and j is a unit i xor j, or its negative."""
    i, j = np.indices((dim, dim))
    table = np.zeros((dim, dim, dim))
    table[i, j, i ^ j] = rng.choice([-1.0, 1.0], (dim, dim))
    return table


# ---------------------------------------------------------------------- the table alone decides


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_products_are_those_of_the_table(name, dtype):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim, dtype)
    found = algebra.multiply(x, y)
    assert found.dtype == dtype
    check(found, x, y, algebra.table)
    check(by_plan(x, y, by_components(algebra.table)), x, y, algebra.table)


def test_quaternions_by_their_formula():
    x, y = numbers(4)
    (a, b, c, d), (e, f, g, h) = x.T, y.T
    expected = np.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        axis=1,
    )
    np.testing.assert_allclose(algebras.get("quaternions").multiply(x, y), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("complex", [(0, 1)]),
        ("quaternions", [(0, 1), (2, 3)]),
        ("tessarines", [(0, 1), (2, 3)]),
        ("R[-1,+1]", [(0, 1), (2, 3)]),
        ("R[+1,-1]", [(0, 2), (1, 3)]),
        ("R[+1,+1]", [(0, 3), (1, 2)]),
        ("octonions", [(0, 1), (2, 3), (4, 5), (6, 7)]),
    ],
)
def test_pairs_of_components_are_complex_numbers_where_the_table_permits_it(name, pairs):
    plan = plan_for(algebras.get(name).table)
    assert plan.planes == pairs
    assert [units for units, _ in plan.sums] == pairs
    assert all(len(terms) == len(pairs) for _, terms in plan.sums)


def test_the_plan_for_quaternions_is_the_formula_of_cayley_and_dickson():
    """(z + wj)(u + vj) = (zu - w v̄) + (zv + w ū)j. The planes are z, w, z̄, w̄ and u, v, ū, v̄."""
    (_, first), (_, second) = plan_for(algebras.get("quaternions").table).sums
    assert sorted(first) == [(0, 0, 1.0), (1, 3, -1.0)]
    assert sorted(second) == [(0, 1, 1.0), (1, 2, 1.0)]


def test_without_complex_numbers_components_are_parts_of_complex_sums():
    plan = plan_for(algebras.get("klein4").table)
    assert plan.planes == [(0, 1), (2, 3)]
    assert [units for units, _ in plan.sums] == [(0, None), (None, 1), (2, None), (None, 3)]


@pytest.mark.parametrize("name", ["real", "dual"])
def test_other_tables_have_real_planes(name):
    assert not plan_for(algebras.get(name).table).is_complex


def test_a_dense_table_and_few_numbers_are_left_to_small_matrices():
    dense = np.random.default_rng(0).standard_normal((4, 4, 4))
    quaternions, klein = (algebras.get(name).table for name in ("quaternions", "klein4"))
    dual = algebras.get("dual").table
    assert single_products(*numbers(4), dense) is None
    assert single_products(*numbers(4, count=1000), quaternions) is None
    assert single_products(*numbers(4, count=0), quaternions) is None
    assert single_products(*numbers(2, count=4000), dual) is None
    assert single_products(*numbers(4, count=4000), klein) is not None


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4, 8]), st.sampled_from([np.float64, np.float32]))
def test_random_sign_tables_have_complex_planes(seed, dim, dtype):
    table = sign_table(np.random.default_rng(seed), dim)
    x, y = numbers(dim, dtype, count=50, seed=seed)
    plan = plan_for(table)
    assert plan.is_complex
    check(by_plan(x, y, plan), x, y, table)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0, 1))
def test_random_tables_of_any_density(seed, dim, density):
    """With coefficients that are not ±1, planes without any term, and odd dimensions."""
    rng = np.random.default_rng(seed)
    table = rng.choice([-1.0, 1.0, 0.5, -3.0, 0.1], (dim, dim, dim)) * (rng.random((dim, dim, dim)) < density)
    x, y = numbers(dim, count=50, seed=seed)
    check(by_plan(x, y, plan_for(table)), x, y, table)


@given(st.integers(0, 2**32 - 1), st.permutations(range(4)), st.sampled_from(NAMES))
def test_units_in_any_order_and_of_any_length(seed, order, name):
    """Pairs that are no neighbours, with sums of a single term among them, and coefficients of any size."""
    table = algebras.get(name).table
    order = [*(k for k in order if k < len(table)), *range(4, len(table))]
    scale = np.random.default_rng(seed).choice([1.0, -1.0, 2.0, 0.25], len(table))
    table = (table * scale[:, None, None] * scale[:, None] / scale)[np.ix_(order, order, order)]
    x, y = numbers(len(table), count=20, seed=seed)
    check(by_plan(x, y, plan_for(table)), x, y, table)


@pytest.mark.parametrize("dim", [4, 8])
def test_dense_and_learned_tables(dim):
    table = np.random.default_rng(dim).standard_normal((dim, dim, dim))
    x, y = numbers(dim)
    check(Algebra(table).multiply(x, y), x, y, table)


# ---------------------------------------------------------------------- memory

LAYOUTS = {
    "numbers": lambda x: x,
    "planar": lambda x: np.ascontiguousarray(x.T).T,
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2],
    "inside wider rows": lambda x: np.concatenate([x[:, :1], x, x], axis=1)[:, 1 : 1 + x.shape[1]],
    "apart in memory": lambda x: np.repeat(x, 3, axis=1)[:, ::3],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "components backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "two axes": lambda x: x.reshape(3, -1, x.shape[1]).swapaxes(0, 1),
}


@pytest.mark.parametrize(("left", "right"), [*itertools.product(LAYOUTS, ["numbers"]), ("planar", "every other")])
@pytest.mark.parametrize("name", ["complex", "quaternions", "R[+1,+1]", "klein4", "dual"])
def test_any_layout_in_memory(name, left, right):
    algebra = algebras.get(name)
    x, y = (part[:MANY] for part in numbers(algebra.dim))
    x, y = LAYOUTS[left](x), LAYOUTS[right](y)
    if x.ndim == 3:
        y = LAYOUTS[left](y)
    before = x.copy(), y.copy()
    check(algebra.multiply(x, y), x, y, algebra.table)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("name", ["quaternions", "klein4", "dual"])
def test_broadcasting(name):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim)
    for left, right in ((x, y[0]), (x[0], y), (x[:, None], y[:2]), (x[:90, None], y[:100]), (x[None], y[:1])):
        check(algebra.multiply(left, right), left, right, algebra.table)


@pytest.mark.parametrize("name", ["quaternions", "R[+1,-1]", "dual"])
def test_the_wider_of_two_types_is_kept(name):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim)
    for left, right in ((x.astype(np.float32), y), (x, y.astype(np.float32))):
        found = algebra.multiply(left, right)
        assert found.dtype == np.float64
        check(found, left, right, algebra.table)


@pytest.mark.parametrize("count", [0, 1, 1000, 2047, 2048, 8191, 8192, 8193, 20_001])
@pytest.mark.parametrize("name", ["real", "quaternions", "klein4", "dual"])
def test_any_count(name, count):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim, count=count)
    check(algebra.multiply(x, y), x, y, algebra.table)


@given(st.integers(1, 300), st.integers(1, 100))
def test_any_size_of_pieces(count, piece):
    """The last piece overlaps with the one before it."""
    table = algebras.get("quaternions").table
    x, y = numbers(4, count=count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", 16 * piece)
        found = by_plan(x, y, plan_for(table))
    np.testing.assert_array_equal(found, by_plan(x, y, plan_for(table)))


# ---------------------------------------------------------------------- laws, and the ends of the range


@pytest.mark.parametrize("name", ["complex", "quaternions", "octonions"])
@given(seed=st.integers(0, 2**32 - 1), exponent=st.integers(-120, 120))
def test_the_norm_of_a_product_is_the_product_of_norms(name, seed, exponent):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim, count=2048, seed=seed)
    x *= 10.0**exponent
    norms = algebra.norm(x) * algebra.norm(y)
    np.testing.assert_allclose(algebra.norm(algebra.multiply(x, y)), norms, rtol=1e-14)


def test_zero_entries_multiply_nothing():
    """An entry of the table that is zero makes no NaN of numbers that are too large."""
    x = np.tile([1.0, 1e200], (10_000, 1))
    np.testing.assert_array_equal(algebras.get("dual").multiply(x, x)[[0, -1]], [[1.0, 2e200]] * 2)


@pytest.mark.parametrize("name", ["quaternions", "R[+1,-1]", "klein4", "tessarines", "octonions"])
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e200, 1.7e308])
def test_huge_and_infinite_numbers_are_those_of_real_planes(name, special):
    algebra = algebras.get(name)
    x, y = numbers(algebra.dim)
    x[::1000, 1] = y[::1500, -1] = special
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found, expected = algebra.multiply(x, y), by_plan(x, y, by_components(algebra.table))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_sums_that_only_complex_planes_would_overflow():
    """(xy)_0 = ((0.72 - 0) - 1) - 1 in units of 1e308, where (0.72 - 0) - (1 + 1) is infinite. No warning is given."""
    x = np.tile([0.85e154, 0.0, 1e154, 1e154], (MANY, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = algebras.get("quaternions").multiply(x, x)
    np.testing.assert_allclose(found / 1e308, np.tile([-1.2775, 0, 1.7, 1.7], (MANY, 1)), rtol=1e-12)


def test_an_overflow_is_reported_as_numpy_is_told_to():
    x = np.tile([1e200, 0.0, 0.0, 0.0], (MANY, 1))
    quaternions = algebras.get("quaternions")
    with pytest.warns(RuntimeWarning, match="overflow"):
        quaternions.multiply(x, x)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        quaternions.multiply(x, x)
