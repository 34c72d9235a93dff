"""Families of tables, and their classes under signed permutations of the units."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras
from hyperelm.families import FAMILIES, canonical_form, classes, known_names, members, returning_units, sign_table

ALL = [(family, dim) for family in FAMILIES for dim in (2, 4, 8) if family != "signs" or dim == 4]
SIGNS = members("signs")


def renamed(table, order, signs):
    """The table in the units u_a = signs[a] · unit order[a], by their definition: u_a u_b = Σ table'[a, b, c] u_c."""
    d = len(table)
    basis = np.zeros((d, d))
    basis[range(d), order] = signs
    products = np.einsum("ai,bj,ijk->abk", basis, basis, table)
    return products @ np.linalg.inv(basis)


def signed_permutations(d):
    for order in permutations(range(1, d)):
        for signs in product((1, -1), repeat=d - 1):
            yield (0, *order), (1, *signs)


def draw_renaming(data, d):
    order = (0, *data.draw(st.permutations(range(1, d))))
    signs = (1, *data.draw(st.lists(st.sampled_from((1, -1)), min_size=d - 1, max_size=d - 1)))
    return order, signs


def test_a_renaming_is_the_same_algebra():
    """The function `renamed` itself, checked on one product: i -> -k and so on."""
    table = renamed(algebras.get("quaternions").table, (0, 3, 1, 2), (1, -1, 1, 1))
    assert np.array_equal(table[1, 2], [0, 0, 0, -1])  # (-k)i = -j, which is minus the third of the new units
    assert Algebra(table).structure == "H"


@given(st.data())
def test_the_form_does_not_depend_on_the_names_of_units(data):
    family, dim = data.draw(st.sampled_from(ALL))
    algebra = data.draw(st.sampled_from(list(members(family, dim).values())))
    other = Algebra(renamed(algebra.table, *draw_renaming(data, dim)))
    assert canonical_form(other) == canonical_form(algebra)


@given(st.data())
def test_the_form_of_any_table_of_multiples_of_units(data):
    """Products need not form a group, and may be any multiples."""
    d = data.draw(st.integers(2, 4))
    table = np.zeros((d, d, d))
    for i, j in product(range(d), repeat=2):
        table[i, j, data.draw(st.integers(0, d - 1))] = data.draw(st.sampled_from((-2, -1, 0, 1, 0.5)))
    form = canonical_form(Algebra(table))
    assert canonical_form(Algebra(renamed(table, *draw_renaming(data, d)))) == form
    assert any(np.array_equal(renamed(table, *names), form.table) for names in signed_permutations(d))


@given(st.data())
def test_the_form_agrees_with_brute_force(data):
    """Two sign tables are in one class exactly if one of the 48 renamings leads from one to the other."""
    one = SIGNS[data.draw(st.sampled_from(list(SIGNS)))]
    other = SIGNS[data.draw(st.sampled_from(list(SIGNS)))]
    found = any(np.array_equal(renamed(one.table, *names), other.table) for names in signed_permutations(4))
    assert (canonical_form(one) == canonical_form(other)) == found


def test_the_classes_of_sign_tables_are_the_orbits():
    """Classes by trying all renamings of all tables, each written as nine bits."""
    group = list(signed_permutations(4))
    orbits = set()
    for algebra in SIGNS.values():
        orbits.add(frozenset(Algebra(renamed(algebra.table, *names)) for names in group))
    found = classes(SIGNS)
    assert {frozenset(SIGNS[name] for name in c.members) for c in found} == orbits
    assert sum(len(c.members) for c in found) == 512
    assert [c.number for c in found] == list(range(1, 61))
    # Burnside: Σ over S₃ x {±1} of the tables that stay, (512 + 3·32 + 2·8 + 0 + 3·32 + 0) / 12.
    assert len(found) == (512 + 3 * 32 + 2 * 8 + 3 * 32) // 12
    assert sorted({len(c.members) for c in found}) == [2, 6, 12]


def test_the_associative_sign_tables():
    found = {c.form.structure: len(c.members) for c in classes(SIGNS) if c.form.is_associative}
    assert found == {"R^4": 2, "C + C": 6, "M2(R)": 6, "H": 2}


@pytest.mark.parametrize(("family", "dim", "count", "groups"), [
    ("cayley-dickson", 2, 3, 3),
    ("cayley-dickson", 4, 9, 5),
    ("cayley-dickson", 8, 27, 7),
    ("clifford", 2, 3, 3),
    ("clifford", 4, 6, 5),
    ("clifford", 8, 10, 8),
])  # fmt: skip
def test_sizes_of_families(family, dim, count, groups):
    found = members(family, dim)
    assert len(found) == count
    assert all(algebra.dim == dim and algebra.name == name for name, algebra in found.items())
    assert all(algebras.get(name) == algebra for name, algebra in found.items())
    assert len(classes(found)) == groups


@pytest.mark.parametrize("dim", [2, 4, 8])
@pytest.mark.parametrize("family", ["cayley-dickson", "clifford"])
def test_a_class_has_one_structure(family, dim):
    found = members(family, dim)
    for c in classes(found):
        assert {found[name].structure for name in c.members} == {c.form.structure}


def test_names_of_the_catalogue():
    named = {name for algebra in SIGNS.values() for name in known_names(algebra)}
    assert named == {name for name in algebras.names() if algebras.get(name).dim == 4}


@pytest.mark.parametrize("signs", ["", "+++", "+++/+++/++", "+++/+++/++0", "++++/++/+++"])
def test_what_is_no_sign_table(signs):
    with pytest.raises(ValueError, match="`signs` must be three rows of three signs"):
        sign_table(signs)


@pytest.mark.parametrize(
    ("family", "dim", "message"),
    [
        ("octonions", 8, "`family` must be one of signs, cayley-dickson, clifford, got 'octonions'"),
        ("signs", 8, "`dim` must be 4 for the family 'signs', got 8"),
        ("clifford", 3, "`dim` must be 2, 4 or 8 for the family 'clifford', got 3"),
        ("cayley-dickson", 16, "`dim` must be 2, 4 or 8"),
    ],
)
def test_what_is_no_family(family, dim, message):
    with pytest.raises(ValueError, match=message):
        members(family, dim)


def test_sums_of_units_are_refused():
    sum_of_units = Algebra.from_table([["-1", "k+j", "j"], ["k", "1", "i"], ["j", "i", "1"]])
    with pytest.raises(ValueError, match="got a sum for i·j"):
        canonical_form(sum_of_units)


@pytest.mark.parametrize(
    ("name", "count"),
    [("quaternions", 3), ("klein4", 3), ("paper-Cl(1,1)", 2), ("octonions", 7), ("dual", 1), ("sedenions", 15)],
)
def test_returning_units(name, count):
    assert returning_units(algebras.get(name)) == count


@given(st.data(), st.sampled_from(list(SIGNS)))
def test_returning_units_by_their_definition(data, name):
    algebra = SIGNS[name]
    x = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=4, max_size=4)), dtype=float)
    units = np.eye(4)[1:]
    returning = [
        u
        for u in units
        if np.array_equal(algebra.right_matrix(u).T, algebra.multiply(u, u)[0] * algebra.right_matrix(u))
    ]
    for u in returning:
        assert np.array_equal(algebra.multiply(algebra.multiply(x, u), u), algebra.multiply(x, algebra.multiply(u, u)))
    assert len(returning) == returning_units(algebra)


@given(st.data(), st.sampled_from(list(SIGNS)))
def test_returning_units_do_not_depend_on_names(data, name):
    other = Algebra(renamed(SIGNS[name].table, *draw_renaming(data, 4)))
    assert returning_units(other) == returning_units(SIGNS[name])
