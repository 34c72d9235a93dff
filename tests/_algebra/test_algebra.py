from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras, linalg
from hyperelm._backend.arrays import to_numpy

NUMBERS = st.integers(-9, 9)
QUATERNIONS = [["-1", "k", "-j"], ["-k", "-1", "i"], ["j", "-i", "-1"]]


def vectors(dim, count):
    return st.lists(st.lists(NUMBERS, min_size=dim, max_size=dim), min_size=count, max_size=count).map(
        lambda rows: np.array(rows, dtype=float)
    )


@given(data=st.data(), name=st.sampled_from(algebras.names()), scale=NUMBERS)
def test_product_is_bilinear_and_given_by_the_matrices(data, name, scale):
    algebra = algebras.get(name)
    x, y, z = data.draw(vectors(algebra.dim, 3))
    assert np.array_equal(algebra.multiply(scale * x + y, z), scale * algebra.multiply(x, z) + algebra.multiply(y, z))
    assert np.array_equal(algebra.multiply(z, scale * x + y), scale * algebra.multiply(z, x) + algebra.multiply(z, y))
    assert np.array_equal(algebra.left_matrix(x) @ y, algebra.multiply(x, y))
    assert np.array_equal(algebra.right_matrix(x) @ y, algebra.multiply(y, x))


@given(data=st.data(), name=st.sampled_from(algebras.names()))
def test_first_unit_is_the_identity(data, name):
    algebra = algebras.get(name)
    (x,) = data.draw(vectors(algebra.dim, 1))
    one = np.eye(algebra.dim)[0]
    assert algebra.has_identity
    assert np.array_equal(algebra.multiply(one, x), x)
    assert np.array_equal(algebra.multiply(x, one), x)


def test_left_matrices_are_a_homomorphism_exactly_for_the_associative(algebra):
    units = np.eye(algebra.dim)
    products = algebra.multiply(units[:, None], units[None])
    left = algebra.left_matrix(units)
    homomorphism = np.array_equal(algebra.left_matrix(products), left[:, None] @ left[None])
    assert homomorphism == algebra.is_associative


def test_product_by_the_definition(algebra):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 1, algebra.dim)), rng.standard_normal((4, algebra.dim))
    expected = np.zeros((3, 4, algebra.dim))
    for i in range(algebra.dim):
        for j in range(algebra.dim):
            for k in range(algebra.dim):
                expected[..., k] += x[..., i] * y[..., j] * algebra.table[i, j, k]
    np.testing.assert_allclose(algebra.multiply(x, y), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "commutative", "associative", "alternative", "flexible", "normed", "nondegenerate"),
    [
        ("real", 1, 1, 1, 1, 1, 1),
        ("complex", 1, 1, 1, 1, 1, 1),
        ("dual", 1, 1, 1, 1, 0, 0),
        ("quaternions", 0, 1, 1, 1, 1, 1),
        ("tessarines", 1, 1, 1, 1, 0, 1),
        ("klein4", 1, 1, 1, 1, 0, 1),
        ("paper-Cl(1,1)", 0, 0, 0, 0, 0, 1),
        ("octonions", 0, 0, 1, 1, 1, 1),
        ("split-octonions", 0, 0, 1, 1, 0, 1),
        ("sedenions", 0, 0, 0, 1, 0, 1),
        ("dual-quaternions", 0, 1, 1, 1, 0, 0),
    ],
)
def test_properties(name, commutative, associative, alternative, flexible, normed, nondegenerate):
    algebra = algebras.get(name)
    assert algebra.is_commutative == bool(commutative)
    assert algebra.is_associative == bool(associative)
    assert algebra.is_alternative == bool(alternative)
    assert algebra.is_flexible == bool(flexible)
    assert algebra.is_power_associative
    assert algebra.is_normed == bool(normed)
    assert algebra.is_nondegenerate == bool(nondegenerate)


def test_power_associativity_can_fail():
    # x² = j, x²x = ji = 1, but xx² = ij = 0
    algebra = Algebra.from_table([["j", "0"], ["1", "0"]], units=["i", "j"])
    assert not algebra.is_power_associative
    assert algebra.structure == "not associative"


def test_an_exact_table_is_decided_exactly():
    table = algebras.get("quaternions").table.copy()
    table[1, 2, 3] += 1  # no tolerance may hide a whole unit, nor mistake rounding for a law
    assert not Algebra(table).is_associative
    scaled = algebras.cayley_dickson(-0.1, -0.3)
    assert scaled.is_associative
    assert not scaled.is_normed


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("real", "R"),
        ("complex", "C"),
        ("R[-2]", "C"),
        ("R[-1e-6]", "C"),
        ("R[1e8]", "R + R"),
        ("hyperbolic", "R + R"),
        ("quaternions", "H"),
        ("R[-1,+1]", "M2(R)"),
        ("R[+1,-1]", "M2(R)"),
        ("R[+1,+1]", "M2(R)"),
        ("tessarines", "C + C"),
        ("klein4", "R^4"),
        ("Cl(0,2)", "H"),
        ("Cl(3,0)", "M2(C)"),
        ("Cl(0,3)", "H + H"),
        ("Cl(3,1)", "M4(R)"),
        ("Cl(1,3)", "M2(H)"),
        ("Cl(2,3)", "M4(C)"),
        ("biquaternions", "M2(C)"),
        ("octonions", "not associative (alternative)"),
        ("sedenions", "not associative (flexible)"),
        ("paper-Cl(1,1)", "not associative (power-associative)"),
        ("dual", "associative, not semisimple (radical of dimension 1)"),
    ],
)
def test_structure(name, structure):
    assert algebras.get(name).structure == structure


@given(name=st.sampled_from([*algebras.names(), "Cl(0,3)", "Cl(1,3)", "Cl(2,3)"]), seed=st.integers(0, 2**32 - 1))
def test_structure_does_not_depend_on_the_basis(name, seed):
    algebra = algebras.get(name)
    change = np.random.default_rng(seed).standard_normal((algebra.dim, algebra.dim))
    while np.linalg.cond(change) > 1e3:
        change += np.eye(algebra.dim)
    inverse = np.linalg.inv(change)
    table = np.einsum("ai,bj,ijk,kc->abc", change, change, algebra.table, inverse, optimize=True)
    if algebra.is_associative:
        assert Algebra(table).structure == algebra.structure


def test_commutative_group_algebra_of_dimension_32_is_R_to_the_32():
    algebra = algebras.get("hyperbolic")
    for _ in range(4):
        algebra = algebra.tensor(algebras.get("hyperbolic"))
    assert algebra.structure == "R^32"


def test_tensor_direct_sum_and_opposite():
    complex_, quaternions = algebras.get("complex"), algebras.get("quaternions")
    biquaternions = complex_.tensor(quaternions)
    assert biquaternions == algebras.get("biquaternions")
    assert biquaternions.name == "complex ⊗ quaternions"
    assert complex_.tensor(complex_).structure == "C + C"
    both = complex_.direct_sum(quaternions)
    assert (both.dim, both.structure, both.has_identity) == (6, "C + H", True)
    assert np.array_equal(both.multiply([0, 1, 2, 0, 0, 0], [0, 1, 0, 3, 0, 0]), [-1, 0, 0, 6, 0, 0])
    opposite = quaternions.opposite()
    assert np.array_equal(opposite.multiply([0, 1, 0, 0], [0, 0, 1, 0]), [0, 0, 0, -1])
    assert opposite.opposite() == quaternions


def test_algebra_without_identity():
    cross = np.zeros((3, 3, 3))
    for i, j, k in [(0, 1, 2), (1, 2, 0), (2, 0, 1)]:
        cross[i, j, k], cross[j, i, k] = 1, -1
    algebra = Algebra(cross, name="cross product")
    assert not algebra.has_identity
    assert algebra.units == ("e0", "e1", "e2")
    assert np.array_equal(algebra.multiply([1, 0, 0], [0, 1, 0]), [0, 0, 1])


def test_conjugate_and_norm(algebra):
    x = np.arange(1.0, algebra.dim + 1)
    assert algebra.conjugate(x)[0] == 1
    assert np.array_equal(algebra.conjugate(x)[1:], -x[1:])
    assert algebra.norm(x) == pytest.approx(np.sqrt(np.sum(x**2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_whose_squares_are_beyond_the_precision(library, dtype):
    algebra, info = algebras.get("quaternions"), np.finfo(dtype)
    sizes = np.array([info.max / 4, info.max**0.5, 1, info.tiny**0.5, info.tiny, 0], dtype=dtype)
    norms = algebra.norm(library(sizes[:, None] * np.array([2, -2, 2, -2], dtype=dtype) / 4))
    np.testing.assert_allclose(to_numpy(norms), sizes, rtol=4 * info.eps)
    assert to_numpy(norms).dtype == dtype
    one = algebra.norm(library(np.array([1e200 if dtype == np.float64 else 1e30, 0, 0, 0], dtype=dtype)))
    np.testing.assert_allclose(float(one), 1e200 if dtype == np.float64 else 1e30, rtol=1e-6)
    assert np.isinf(float(algebra.norm(library(np.array([np.inf, 0, 0, 0], dtype=dtype)))))
    assert np.isnan(float(algebra.norm(library(np.array([np.nan, 0, 0, 0], dtype=dtype)))))
    assert algebra.norm(library(np.zeros((0, 4), dtype=dtype))).shape == (0,)
    whole = linalg.norm(library(np.full((1, 1, 4), sizes[0], dtype=dtype)))
    np.testing.assert_allclose(float(whole), 2.0 * sizes[0], rtol=4 * info.eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(algebra, dtype):
    x = np.ones((2, algebra.dim), dtype=dtype)
    for result in (algebra.multiply(x, x), algebra.conjugate(x), algebra.norm(x), algebra.left_matrix(x)):
        assert result.dtype == dtype
    assert algebra.multiply(x.astype(int), x.astype(int)).dtype == np.float64


def test_from_table_with_and_without_the_identity():
    whole = [["1", "i", "j", "k"], ["i", *QUATERNIONS[0]], ["j", *QUATERNIONS[1]], ["k", *QUATERNIONS[2]]]
    assert Algebra.from_table(QUATERNIONS) == Algebra.from_table(whole) == algebras.get("quaternions")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("-k", [0, 0, 0, -1]),
        ("1", [1, 0, 0, 0]),
        ("0", [0, 0, 0, 0]),
        ("k+0.5j", [0, 0, 0.5, 1]),
        (" - 2 i + .25 ", [0.25, -2, 0, 0]),
        ("2*j - k", [0, 0, 2, -1]),
        ("1e-3i", [0, 1e-3, 0, 0]),
        (-2, [-2, 0, 0, 0]),
        ("−j", [0, 0, -1, 0]),
    ],
)
def test_entries(entry, expected):
    rows = copy.deepcopy(QUATERNIONS)
    rows[0][1] = entry
    assert np.array_equal(Algebra.from_table(rows).table[1, 2], expected)


@given(st.data())
def test_a_printed_table_reads_back(data):
    algebra = Algebra(np.array(data.draw(vectors(3, 9))).reshape(3, 3, 3), units=("1", "e1", "e12"))
    rows = algebra._entries()
    assert Algebra.from_table(rows, units=("e1", "e12")) == algebra


def test_is_a_value():
    algebra, same = algebras.get("quaternions"), Algebra.from_table(QUATERNIONS, name="other name")
    assert algebra == same
    assert hash(algebra) == hash(same)
    assert algebra != algebras.get("klein4")
    assert algebra != "quaternions"
    assert len({algebra, same}) == 1
    assert Algebra(-algebra.table * 0.0) == Algebra(algebra.table * 0.0)
    again = pickle.loads(pickle.dumps(algebra))
    assert (again, again.name, again.units) == (algebra, algebra.name, algebra.units)
    assert copy.deepcopy(algebra) is algebra
    assert copy.copy(algebra) is algebra
    with pytest.raises(AttributeError, match="immutable"):
        algebra.name = "x"
    with pytest.raises(ValueError, match="read-only"):
        algebra.table[0, 0, 0] = 2
    table = algebra.table.copy()
    mine = Algebra(table)
    table[0, 0, 0] = 5
    assert mine == algebra


def test_one_line_names_it():
    assert repr(algebras.get("klein4")) == "Algebra('klein4', dim=4)"
    assert repr(Algebra(np.zeros((3, 3, 3)))) == "Algebra(dim=3)"


def test_reads_well():
    text = str(algebras.get("quaternions"))
    assert text.splitlines() == [
        "Algebra quaternions, dimension 4",
        "  | 1  i  j  k",
        "--+-----------",
        "1 | 1  i  j  k",
        "i | i -1  k -j",
        "j | j -k -1  i",
        "k | k  j -i -1",
    ]
    html = Algebra.from_table([["-1"]], units=["<i>"], name="<b>&")._repr_html_()
    assert "<td>-1</td>" in html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert "<i>" not in html
    large = algebras.get("R[-1,-1,-1,-1,-1]")
    assert str(large) == "Algebra R[-1,-1,-1,-1,-1], dimension 32, units 1, e1, e2, e3, …"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Algebra(np.ones((2, 2, 3))),
            ValueError,
            r"`table` must have shape \(d, d, d\).*got \(2, 2, 3\)",
        ),
        (lambda: Algebra(np.ones((2, 2))), ValueError, r"`table` must have shape \(d, d, d\)"),
        (lambda: Algebra(np.ones((0, 0, 0))), ValueError, r"with d >= 1, got \(0, 0, 0\)"),
        (
            lambda: Algebra(np.full((1, 1, 1), np.nan)),
            ValueError,
            r"`table` must be finite, got nan at \(0, 0, 0\)",
        ),
        (lambda: Algebra(np.full((1, 1, 1), np.inf)), ValueError, "`table` must be finite, got inf"),
        (
            lambda: Algebra(np.ones((1, 1, 1), dtype=complex)),
            TypeError,
            "an array of real numbers, got dtype complex",
        ),
        (lambda: Algebra([["-1"]]), TypeError, "Use Algebra.from_table"),
        (lambda: Algebra(np.ones((2, 2, 2)), units=["a", "b", "c"]), ValueError, "`units` must name 2 units"),
        (lambda: Algebra(np.ones((2, 2, 2)), units=["a", "a"]), ValueError, "`units` must be different"),
        (lambda: Algebra(np.ones((2, 2, 2)), units="i"), TypeError, "`units` must be a sequence of names"),
        (
            lambda: Algebra.from_table([["-q"]], units=["i"]),
            ValueError,
            r"`rows` at \(i, i\): cannot read '-q'",
        ),
        (lambda: Algebra.from_table([["i j"]], units=["i"]), ValueError, "cannot read 'i j' at ' j'"),
        (lambda: Algebra.from_table([[""]], units=["i"]), ValueError, "must not be empty; write '0'"),
        (lambda: Algebra.from_table([["nan"]], units=["i"]), ValueError, "cannot read 'nan'"),
        (lambda: Algebra.from_table([[np.nan]], units=["i"]), ValueError, "`table` must be finite"),
        (lambda: Algebra.from_table([[None]], units=["i"]), TypeError, "must be a string or a real number"),
        (lambda: Algebra.from_table([["1", "k"]]), ValueError, r"`rows` must be 3 x 3 .* or 4 x 4"),
        (lambda: Algebra.from_table(["-1 k"]), TypeError, "sequence of sequences"),
        (
            lambda: algebras.get("complex").multiply([1, 2, 3], [1, 2]),
            ValueError,
            r"`x` must have a last axis of length 2 \(complex\), got shape \(3,\)",
        ),
        (lambda: algebras.get("complex").multiply([1, 2], 1.0), ValueError, r"`y` must have a last axis"),
        (
            lambda: algebras.get("complex").norm([1j, 2]),
            TypeError,
            r"`x` must be real, got dtype complex128.*np.stack",
        ),
        (lambda: algebras.get("complex").norm(["a", "b"]), TypeError, "array of real numbers"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
