"""Every kernel, for arrays of every library, beside its formula in plain NumPy and beside NumPy's own kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm._backend import ARRAY_API, NUMPY, backend_of
from hyperelm._backend.arrays import are_together, as_complex, as_parts, is_complex, is_elsewhere, to_numpy
from hyperelm._backend.by_array_api import Beside, Sums, Terms

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64]
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def numbers(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def check(found, expected, reference, by_numpy=None):
    """The result lives where `reference` does, has the precision expected, and is the formula's and NumPy's."""
    assert are_together(found, reference)
    for result in (to_numpy(found), *([] if by_numpy is None else [by_numpy])):
        assert result.shape == expected.shape
        assert result.dtype == expected.dtype
        scale = 100 * float(np.finfo(expected.dtype).eps) * max(1.0, float(np.abs(expected).max(initial=0)))
        assert_allclose(result, expected, rtol=0, atol=scale)


def test_which_backend(library):
    x = library(numbers(3))
    assert backend_of(x) is (ARRAY_API if is_elsewhere(x) else NUMPY)
    assert backend_of(x, None) is backend_of(x)
    assert backend_of([1.0]) is backend_of() is NUMPY
    assert backend_of(X=x, Y=x) is backend_of(x)
    if is_elsewhere(x):
        with pytest.raises(ValueError, match="`X` and `Y` must be arrays of one library on one device"):
            backend_of(X=x, Y=numbers(3))


def test_numpy_only_replaces_kernels():
    """What NumPy can do, every other library can do."""
    own = {name for name in vars(type(NUMPY)) if not name.startswith("__")}
    assert own <= set(vars(type(ARRAY_API)))


def test_what_is_kept_while_at_work(library):
    backend, made = backend_of(library(numbers(1))), []

    def make():
        made.append(1)
        return len(made)

    with backend.at_work(1e3):
        assert [backend.kept("key", make) for _ in range(3)] == [1, 1, 1]
        assert backend.kept("other", make) == 2
    with backend.at_work(1e3):
        assert backend.kept("key", make) == 3


# ---------------------------------------------------------------------- arrays


@dtypes
def test_real_arrays_are_themselves(library, dtype):
    x = library(numbers(3, 2, dtype=dtype))
    assert backend_of(x).real(x, "X") is x
    assert backend_of(x).float_types(x) is not None
    assert not is_complex(x)
    assert as_parts(x) is x


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integers_become_double(library, dtype):
    x = np.array([[1, 0], [1, 1]], dtype=dtype)
    there = library(x)
    check(backend_of(there).real(there, "X"), x.astype(float), there, NUMPY.real(x, "X"))
    assert (backend_of(there).float_types(there) is None) == (dtype != np.bool_)


def test_complex_numbers_are_refused(library):
    z = library(np.array([1 + 2j]))
    with pytest.raises(TypeError, match=r"`X` must be real, got dtype .*complex128"):
        backend_of(z).real(z, "X")


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_are_pairs(library, dtype):
    z = np.array([[1 + 2j, 3 - 4j, 0.5j]], dtype=dtype)
    there = library(z)
    parts = as_parts(there)
    assert is_complex(there)
    check(parts, np.stack([z.real, z.imag], axis=-1), there, as_parts(z))
    check(as_complex(parts), z, there, z)


@dtypes
def test_precision_of_sums_over_rows(library, dtype):
    """NumPy's arrays become double; another library may not have double precision."""
    x = library(numbers(3, dtype=dtype))
    found = to_numpy(backend_of(x).in_double(x))
    assert_array_equal(found, to_numpy(x))
    assert found.dtype == (dtype if is_elsewhere(x) else np.float64)


@dtypes
@pytest.mark.parametrize(("places", "width"), [([2, 0, 5], 7), ([], 3), ([1, 0], 2)])
def test_scattered(library, dtype, places, width):
    columns, places = numbers(4, len(places), dtype=dtype), np.array(places, dtype=np.intp)
    expected = np.zeros((4, width), dtype)
    for n, place in enumerate(places):
        expected[:, place] = columns[:, n]
    there = library(columns)
    check(backend_of(there).scattered(there, places, width), expected, there, NUMPY.scattered(columns, places, width))


# ---------------------------------------------------------------------- sizes


@pytest.mark.parametrize("dtype", [*DTYPES, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (5, 3, 4), (0, 3), (3, 0, 2)])
def test_square(library, dtype, shape):
    x = numbers(*shape).astype(dtype)
    if np.iscomplexobj(x):
        x = x + dtype(1j) * numbers(*shape).astype(dtype)
    there, expected = library(x), float(np.sum(np.abs(x.astype(complex)) ** 2))
    for found in (backend_of(there).square(there), NUMPY.square(x)):
        assert isinstance(found, float)
        assert found == pytest.approx(expected, rel=1e-5)


@dtypes
def test_square_at_the_ends(library, dtype):
    """It is 0 only if all numbers are, not finite if one is not, and of single precision never beyond double."""
    info = np.finfo(dtype)
    x = np.zeros((4, 3), dtype)
    assert backend_of(library(x)).square(library(x)) == 0
    x[2, 1] = info.smallest_subnormal
    assert backend_of(library(x)).square(library(x)) > 0
    x[2, 1] = np.nan
    assert math.isnan(backend_of(library(x)).square(library(x)))
    x[2, 1] = -np.inf
    assert not math.isfinite(backend_of(library(x)).square(library(x)))
    for size in (1e-30, 1e30):
        large = np.full((4, 3), size, np.float32)
        assert backend_of(library(large)).square(library(large)) == pytest.approx(12 * size**2, rel=1e-5)


@dtypes
@pytest.mark.parametrize("axis", [-1, 0, (0, 1), (-3, -2, -1)])
@pytest.mark.parametrize("exponent", [0, 1, -1])
def test_lengths(library, dtype, axis, exponent):
    """Also where the squares are beyond the precision, of all numbers or of some."""
    unit = dtype(10.0 ** (exponent * (25 if dtype == np.float32 else 200)))
    x = numbers(4, 3, 2, dtype=dtype)
    mixed = x * unit
    mixed[0] = x[0]
    for array in (x * unit, mixed):
        exact = array.astype(np.longdouble)
        expected = np.sqrt(np.sum(exact * exact, axis=axis))
        there = library(array)
        for found in (to_numpy(backend_of(there).lengths(there, axis)), NUMPY.lengths(array, axis)):
            assert found.dtype == dtype
            assert_allclose(found, expected.astype(dtype), rtol=100 * np.finfo(dtype).eps)


def test_lengths_of_nothing_and_of_zeros(library):
    zeros = library(np.zeros((3, 2)))
    assert_array_equal(to_numpy(backend_of(zeros).lengths(zeros)), [0, 0, 0])
    nothing = library(np.zeros((0, 2)))
    assert backend_of(nothing).lengths(nothing).shape == (0,)


def test_support(library):
    x = np.zeros((5, 3, 4))
    assert backend_of(library(x)).support(library(x)) == NUMPY.support(x) == ()
    x[4, 2, 3], x[0, 1, 1] = 1e-300, np.nan
    assert backend_of(library(x)).support(library(x)) == NUMPY.support(x) == (1, 3)
    assert backend_of(library(x[:0])).support(library(x[:0])) == ()


# ---------------------------------------------------------------------- planes


BASES = [np.eye(4), RNG.standard_normal((4, 7)), RNG.standard_normal((4, 2)), np.eye(4)[:, 1:]]


@dtypes
@pytest.mark.parametrize("basis", BASES, ids=lambda basis: str(basis.shape))
@pytest.mark.parametrize("shape", [(5, 3), (1, 1), (0, 3), (2, 5, 3)])
def test_planes_there_and_back(library, dtype, basis, shape):
    x = numbers(*shape, 4, dtype=dtype)
    expected = np.moveaxis(x @ basis.astype(dtype), -1, 0)
    there = library(x)
    backend = backend_of(there)
    image = backend.planes(there, basis)
    check(image, expected, there, NUMPY.planes(x, basis))
    if len(shape) == 2:
        check(backend.planes(there, basis, "wide"), expected, there, NUMPY.planes(x, basis, "wide"))
    back = np.moveaxis(expected, 0, -1) @ basis.T.astype(dtype)
    check(backend.from_planes(image, basis), back, there, NUMPY.from_planes(expected, basis))


def test_examined(library):
    x = numbers(300, 3, 4)
    x[..., 0], x[:299, :, 2] = 0, 0
    there, full = library(x), RNG.standard_normal((4, 5))

    def basis_of(support):
        return full[:, : 1 + len(support)]

    support, image, square = backend_of(there).examined(there, basis_of, "wide")
    of_numpy = NUMPY.examined(x, basis_of, "wide")
    assert support == of_numpy[0] == (1, 2, 3)
    check(image, np.moveaxis(x @ full[:, :4], -1, 0), there, of_numpy[1])
    assert of_numpy[2] == pytest.approx(np.sum(x**2))
    assert square is None or square == pytest.approx(np.sum(x**2))


@dtypes
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 1), (2, 3, 2), (1, 1, 2), (3, 1, 1)], ids=str)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_matrices_of_planes_and_back(library, dtype, shape, batch):
    """Entry (i, j) of the block stands in rows i M to (i + 1) M and columns j L to (j + 1) L."""
    (n, k, parts), (M, L) = shape, (4, 5)
    image = numbers(n * k * parts, *batch, M, L, dtype=dtype)
    entries = image.reshape(n, k, parts, *batch, M, L)
    entries = entries[:, :, 0] if parts == 1 else (entries[:, :, 0] + 1j * entries[:, :, 1])
    expected = np.concatenate([np.concatenate(list(row), axis=-1) for row in entries], axis=-2)
    expected = expected.astype(np.result_type(dtype, np.complex64) if parts == 2 else dtype)
    there = library(image)
    backend = backend_of(there)
    matrix = backend.assembled(there, shape)
    check(matrix, expected, there, NUMPY.assembled(image, shape))
    whole = np.full((2 + len(image), *batch, M, L), 7.0, dtype)
    target = library(whole)
    backend.disassemble(matrix, target, slice(1, 1 + len(image)), shape)
    NUMPY.disassemble(expected, whole, slice(1, 1 + len(image)), shape)
    for result in (to_numpy(target), whole):
        assert_array_equal(result[1:-1], image)
        assert_array_equal(result[[0, -1]], np.full((2, *batch, M, L), 7.0))


@dtypes
@pytest.mark.parametrize("rows_last", [False, True])
@pytest.mark.parametrize("table", ["sparse", "dense", "zero"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_numbers_spread_as_matrices(library, dtype, rows_last, table, batch):
    d, M, L = 6, 3, 2
    coefficients = RNG.standard_normal((d, d, d))
    if table != "dense":
        coefficients *= RNG.uniform(size=(d, d, d)) < (0.3 if table == "sparse" else 0)
    x = numbers(*batch, M, L, d, dtype=dtype)
    matrices = np.einsum("...mli,ijk->...mljk", x, coefficients.astype(dtype))  # Σ_i x_i table[i]
    matrices = matrices if rows_last else matrices.swapaxes(-1, -2)
    expected = matrices.swapaxes(-2, -3).reshape(*batch, M * d, L * d)
    there = library(x)
    found = backend_of(there).spread(there, coefficients, rows_last=rows_last)
    check(found, expected, there, NUMPY.spread(x, coefficients, rows_last=rows_last))


# ---------------------------------------------------------------------- layers


class Formula:
    """An activation of hyperelm, which has a formula for any library."""

    def __call__(self, x):
        return np.arctan(x)

    def formula(self, x, xp):
        return xp.atan(x)


def activated(h, _=-1):
    """An activation that every library knows, as hyperelm hands it to a layer."""
    return h * h - 2 * h


def test_activations(library):
    x = numbers(3, 2)
    there = library(x)
    backend = backend_of(there)
    check(backend.activate(Formula(), there), np.arctan(x), there, NUMPY.activate(Formula(), x.copy()))
    check(backend.activate(abs, there), np.abs(x), there, NUMPY.activate(abs, x))
    if is_elsewhere(there):
        with pytest.raises(ValueError, match=r"`activation` must give arrays of .* where it gets them, got .*ndarray"):
            backend.activate(lambda _: x, there)


def with_columns(h, beside, x):
    """[f(h), x, e]."""
    parts = [activated(h)]
    if beside.inputs is not None:
        parts.append(x)
    if beside.constant is not None:
        parts.append(np.broadcast_to(beside.constant.astype(h.dtype), (len(h), 1, h.shape[2])))
    return np.concatenate(parts, axis=1)


LAYERS = [(bias, inputs, constant) for bias in (False, True) for inputs in (False, True) for constant in (False, True)]


def layer_of(library, options, dtype):
    """Inputs x, a bias, and what stands beside the neurons, for NumPy and for the library."""
    m, D, L, d = 70, 3, 5, 4
    has_bias, has_inputs, has_constant = options
    x = numbers(m, D, d, dtype=dtype)
    bias = numbers(L, d, dtype=dtype) if has_bias else None
    constant = np.array([1.0, 0.0, -2.0, 0.5]) if has_constant else None
    here = Beside(x if has_inputs else None, constant)
    there = Beside(library(x) if has_inputs else None, constant)
    return x, L, bias, here, there


@dtypes
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_a_layer_by_one_matrix(library, dtype, options):
    x, L, bias, here, there = layer_of(library, options, dtype)
    (m, D, d), operator = x.shape, numbers(4, 3 * 4, L, dtype=dtype)
    h = np.stack([x.reshape(m, D * d) @ of_component for of_component in operator], axis=-1)
    expected = with_columns(h if bias is None else h + bias, here, x)
    reference = library(x)
    bias_there = None if bias is None else library(bias)
    found = backend_of(reference).hidden_by_operator(reference, library(operator), bias_there, activated, there)
    check(found, expected, reference, NUMPY.hidden_by_operator(x, operator, bias, activated, here))


@dtypes
@pytest.mark.parametrize("is_direct", [False, True])
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_a_layer_by_products_of_planes(library, dtype, options, is_direct):
    """One plane of the result is a sum of none."""
    x, L, bias, here, there = layer_of(library, options, dtype)
    image, weights = numbers(3, len(x), 6, dtype=dtype), numbers(2, L, 6, dtype=dtype)
    sums = [[(0, 0, 1.0), (1, 1, -2.0)], [(2, 0, 0.5)], [], [(1, 0, 1.0), (2, 1, 1.0), (0, 1, 3.0)]]
    terms = Terms(sums, np.eye(4) if is_direct else RNG.standard_normal((4, 4)))
    planes = np.zeros((4, len(x), L), dtype)
    for s, products in enumerate(sums):
        for p, q, c in products:
            planes[s] += dtype(c) * image[p] @ weights[q].T
    h = np.moveaxis(planes, 0, -1) @ terms.out.T.astype(dtype)
    expected = with_columns(h if bias is None else h + bias, here, x)
    reference = library(image)
    bias_there = None if bias is None else library(bias)
    found = backend_of(reference).hidden_by_terms(reference, library(weights), terms, bias_there, activated, there)
    check(found, expected, reference, NUMPY.hidden_by_terms(image, weights, terms, bias, activated, here))


@dtypes
def test_planes_of_weights_are_formed_once(library, dtype):
    weights, basis, reference = (
        numbers(3, 5, 4, dtype=dtype),
        RNG.standard_normal((4, 7)),
        library(numbers(1, dtype=dtype)),
    )
    expected = np.moveaxis(weights.swapaxes(0, 1) @ basis.astype(dtype), -1, 0)
    backend = backend_of(reference)
    with backend.at_work(0):
        image = backend.weight_planes(weights, basis, "key", reference)
        check(image, expected, reference)
        assert backend.weight_planes(weights, basis, "key", reference) is image
        assert backend.weight_planes(weights, basis, "other key", reference) is not image


# ---------------------------------------------------------------------- sums over rows


@dtypes
@pytest.mark.parametrize("begun", [False, True])
def test_sums_of_products(library, dtype, begun):
    """Several lists at once, among them sums of no products and a list of no sums."""
    a, b, c = numbers(3, 9, 4, dtype=dtype), numbers(2, 9, 5, dtype=dtype), numbers(9, 4, dtype=dtype)
    lists = [
        ([[(0, 0, 1.0), (2, 1, -3.0)], [], [(1, 1, 0.5)]], (4, 5)),
        ([], (4, 5)),
    ]
    here, there, expected = [], [], []
    a_there, b_there, reference = library(a), library(b), library(c)
    for products, shape in lists:
        before = numbers(len(products), *shape, dtype=dtype)
        totals = [before[n] if begun else np.zeros(shape, dtype) for n in range(len(products))]
        for n, pairs in enumerate(products):
            totals[n] = sum((dtype(factor) * a[p].T @ b[q] for p, q, factor in pairs), totals[n])
        expected.append(np.stack(totals) if totals else np.zeros((0, *shape), dtype))
        here.append(
            Sums(
                before.copy() if begun else None, [[(a[p], b[q], f) for p, q, f in pairs] for pairs in products], shape
            )
        )
        pairs_there = [[(a_there[p, ...], b_there[q, ...], f) for p, q, f in pairs] for pairs in products]
        there.append(Sums(library(before) if begun else None, pairs_there, shape))
    by_numpy = NUMPY.add_products(c, *here)
    found = backend_of(reference).add_products(reference, *there)
    assert len(found) == len(by_numpy) == len(lists)
    for result, of_numpy, formula in zip(found, by_numpy, expected):
        check(result, formula, reference, of_numpy)


@dtypes
def test_a_single_sum_of_squares(library, dtype):
    """Its symmetric part is that of the formula: NumPy does not form both corners."""
    a = numbers(2, 9, 5, dtype=dtype)
    there = library(a)
    planes = [there[0, ...], there[1, ...]]
    pairs = [[(planes[0], planes[0], 1.0), (planes[1], planes[1], -2.0)]]
    (found,) = backend_of(there).add_products(there, Sums(None, pairs, (5, 5)))
    found = to_numpy(found)
    expected = a[0].T @ a[0] - 2 * a[1].T @ a[1]
    assert_allclose((found[0] + found[0].T) / 2, expected, atol=100 * np.finfo(dtype).eps)


def test_totals_of_numpy_move_to_the_rows(library):
    a = numbers(9, 4)
    there = library(a)
    (found,) = backend_of(there).add_products(there, Sums(np.ones((1, 4, 4)), [[(there, there, 1.0)]], (4, 4)))
    found = to_numpy(found)[0]
    assert_allclose((found + found.T) / 2, 1 + a.T @ a, atol=1e-12)


@pytest.mark.parametrize("dtype", [*DTYPES, np.complex64, np.complex128])
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("targets", [0, 2])
def test_rows_folded_into_a_decomposition(library, dtype, rows, targets):
    """The new R has the same RᴴR and RᴴQᴴt as all rows, and what is left over has the rest of Σ|t|²."""

    def drawn(*shape):
        return (numbers(*shape) + (1j * numbers(*shape) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)

    R, qt, A, t = np.triu(drawn(4, 4)), drawn(4, targets), drawn(rows, 4), drawn(rows, targets)
    before = [array.copy() for array in (R, qt, A, t)]
    whole, both = np.concatenate([R, A]), np.concatenate([qt, t])
    gram, cross = whole.conj().T @ whole, whole.conj().T @ both
    tol = 1000 * float(np.finfo(dtype).eps)
    # What was decomposed before may be in NumPy, as from a file.
    for of_R in (library, np.asarray):
        there = library(A)
        args = of_R(R.copy()), of_R(qt.copy()), there, library(t.copy())
        new_R, new_qt, rest = backend_of(there).fold(*args)
        assert are_together(new_R, there)
        new_R, new_qt = np.triu(to_numpy(new_R)), to_numpy(new_qt)
        assert new_R.dtype == new_qt.dtype == dtype
        assert_allclose(new_R.conj().T @ new_R, gram, rtol=0, atol=tol * np.abs(gram).max())
        assert_allclose(new_R.conj().T @ new_qt, cross, rtol=0, atol=tol * np.abs(cross).max(initial=1))
        square = float(np.linalg.norm(both) ** 2)
        assert float(np.linalg.norm(new_qt) ** 2) + rest == pytest.approx(square, rel=tol, abs=tol)
    for array, copy in zip((R, qt, A, t), before):
        assert_array_equal(array, copy)
