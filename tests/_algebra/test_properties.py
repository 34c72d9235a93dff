"""Laws of tables, compared with exact fractions. They do not depend on the sizes of entries and units."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras
from hyperelm._algebra.properties import are_regular, balanced
from oracles import in_units

LAWS = ("commutative", "associative", "alternative", "flexible", "power_associative")
NAMES = [name for name in algebras.names() if algebras.get(name).dim <= 8]


def properties(algebra):
    """All properties that do not depend on the basis. `is_normed` is left out, as it does."""
    found = [getattr(algebra, f"is_{law}") for law in LAWS]
    return *found, algebra.has_identity, algebra.is_nondegenerate, algebra.structure


def by_brute_force(table):
    """Four laws from the associators (xy)z - x(yz) of the units, in exact fractions."""
    d = len(table)
    t = [[[Fraction(float(v)) for v in row] for row in rows] for rows in table]
    commutative = all(t[i][j] == t[j][i] for i, j in product(range(d), repeat=2))
    a = {
        (i, j, k, n): sum(t[i][j][m] * t[m][k][n] - t[j][k][m] * t[i][m][n] for m in range(d))
        for i, j, k, n in product(range(d), repeat=4)
    }
    alternative = all(a[i, j, k, n] == -a[j, i, k, n] and a[i, j, k, n] == -a[i, k, j, n] for i, j, k, n in a)
    flexible = all(a[i, j, k, n] == -a[k, j, i, n] for i, j, k, n in a)
    return commutative, not any(a.values()), alternative, flexible


@given(st.data())
def test_whole_numbers_by_brute_force(data):
    """Algebras in units scaled by whole numbers, with or without one wrong entry."""
    table = algebras.get(data.draw(st.sampled_from([n for n in NAMES if algebras.get(n).dim <= 4]))).table
    s = data.draw(st.sampled_from([1, 3, 10**4, 10**15]))
    table = s * table
    if data.draw(st.booleans()):
        table = table.copy()
        table[data.draw(st.tuples(*[st.integers(0, len(table) - 1)] * 3))] += data.draw(st.sampled_from([1, s]))
    algebra = Algebra(table)
    found = tuple(getattr(algebra, f"is_{law}") for law in LAWS[:4])
    assert found == by_brute_force(algebra.table)


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("R[-200,-200]", "H"),
        ("R[-1e-4,-1e-4]", "H"),
        ("R[-60,-60,-60]", "not associative (alternative)"),
        ("R[-6e7,-6e7,-6e7]", "not associative (alternative)"),
        ("R[1e-4,-1e5]", "M2(R)"),
        ("R[-0.3,-1e-9,2e8]", "not associative (alternative)"),
    ],
)
def test_parameters_of_any_size(name, structure):
    algebra = algebras.get(name)
    assert algebra.structure == structure
    assert not algebra.is_commutative
    assert algebra.has_identity
    assert algebra.is_nondegenerate


@pytest.mark.parametrize("factor", [1e160, 1e-160, 2.0**500, -3.7])
@pytest.mark.parametrize("name", ["octonions", "quaternions", "klein4", "dual", "paper-Cl(1,1)", "sedenions"])
def test_any_factor(name, factor):
    algebra = algebras.get(name)
    assert properties(Algebra(factor * algebra.table)) == properties(algebra)


@given(
    name=st.sampled_from([*NAMES, "Cl(0,3)", "Cl(1,1,1)"]),
    factor=st.one_of(st.integers(-400, 400).map(lambda k: 2.0**k), st.floats(-150, 150).map(lambda e: 10**e)),
    seed=st.integers(0, 2**32 - 1),
)
def test_neither_factor_nor_units_matter(name, factor, seed):
    algebra = algebras.get(name)
    s = 10 ** np.random.default_rng(seed).uniform(-3, 3, algebra.dim)
    assert properties(Algebra(factor * in_units(algebra.table, s))) == properties(algebra)


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["quaternions", "klein4", "R[-1,+1]", "octonions"]))
def test_neither_does_an_orthogonal_change_of_units_before(seed, name):
    """Tables in a random basis, which have rounding errors in place of zeros."""
    algebra, rng = algebras.get(name), np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((algebra.dim, algebra.dim)))
    turned = np.einsum("ai,bj,ck,ijk->abc", turn, turn, turn, algebra.table, optimize=True)
    s = 10 ** rng.uniform(-3, 3, algebra.dim)
    found = properties(Algebra(in_units(turned, s)))
    assert found[:-2] == properties(algebra)[:-2]  # a turned coordinate has another rank
    assert found[-1] == algebra.structure


@given(seed=st.integers(0, 2**32 - 1))
def test_a_small_change_breaks_the_laws(seed):
    rng = np.random.default_rng(seed)
    s = 10 ** rng.uniform(-3, 3, 4)
    table = algebras.get("quaternions").table + 1e-6 * rng.standard_normal((4, 4, 4))
    algebra = Algebra(in_units(table, s))
    assert not algebra.is_associative
    assert algebra.structure == "not associative"


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 5))
def test_a_balanced_table_is_the_same_algebra_in_units_of_powers_of_two(seed, dim):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((dim,) * 3) * (rng.random((dim,) * 3) < 0.6)
    s = 2.0 ** rng.integers(-20, 20, dim)
    one, other = balanced(table), balanced(in_units(table, s))
    assert np.array_equal(one != 0, table != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.array_equal(np.nan_to_num(np.frexp(one / table)[0]), 0.5 * (table != 0))
    np.testing.assert_allclose(np.log2(np.abs(one[one != 0])), np.log2(np.abs(other[one != 0])), atol=3.1)


def test_a_normed_algebra_has_units_of_length_1():
    assert algebras.get("octonions").is_normed
    assert not Algebra(2 * algebras.get("octonions").table).is_normed
    assert not Algebra(1e-200 * algebras.get("octonions").table).is_normed
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))
    table = np.einsum("ai,bj,ck,ijk->abc", turn, turn, turn, algebras.get("octonions").table, optimize=True)
    assert Algebra(table).is_normed
    assert not Algebra(table * (1 + 1e-9)).is_normed


@given(st.data())
def test_full_rank_of_whole_numbers_by_their_determinant(data):
    """Against Leibniz' formula in integers of Python. The last row is a multiple of the first, or nearly so."""
    d, count = data.draw(st.integers(1, 3)), 2
    size = data.draw(st.sampled_from([1, 10, 10**8]))
    matrices = np.array(data.draw(st.lists(st.integers(-size, size), min_size=count * d * d, max_size=count * d * d)))
    matrices = matrices.reshape(count, d, d).astype(float)
    matrices[:, -1] = matrices[:, 0] + data.draw(st.integers(0, 1)) * np.eye(d)[0]

    def determinant(m):
        total = 0
        for order in permutations(range(d)):
            sign = (-1) ** sum(order[a] > order[b] for a in range(d) for b in range(a + 1, d))
            total += sign * math.prod(int(m[i, j]) for i, j in enumerate(order))
        return total

    assert are_regular(matrices) == all(determinant(m) != 0 for m in matrices)


def test_forms_that_rounding_calls_singular():
    form = np.array([[1e8, 1e8 + 1], [1e8 - 1, 1e8]])  # of determinant 1
    assert Algebra(np.stack([form, form], axis=-1)).is_nondegenerate
    assert not Algebra(np.stack([form, 1e8 * np.ones((2, 2))], axis=-1)).is_nondegenerate
