"""NumPy's kernels: chunks and threads, any layout in memory, which components, and how planes are formed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm._backend import NUMPY, chunks
from hyperelm._backend.by_array_api import Beside, Sums, Terms
from hyperelm._backend.by_numpy import _by_rows, _cached_rows, norm_square, real_parts
from hyperelm._backend.workspace import Team, _current


@pytest.fixture(params=["serial", "threads"])
def crew(request):
    """The current team."""
    with ThreadPoolExecutor(2) as pool:
        team = Team() if request.param == "serial" else Team(pool, 2)
        with _current(team):
            yield team


@given(rows=st.integers(0, 200), size=st.integers(1, 220))
def test_chunks_cover_all_rows_once(rows, size):
    slices = list(chunks(rows, size))
    assert [n for at in slices for n in range(at.start, at.stop)] == list(range(rows))
    lengths = [at.stop - at.start for at in slices]
    assert all(length == size for length in lengths[:-1])
    assert all(1 <= length <= size for length in lengths)


def test_functions_of_rows_are_in_order(crew):
    x = np.arange(2100.0).reshape(700, 3)
    assert _by_rows(x, len, crew) == [256, 256, 188]
    parts = _by_rows(x, lambda part: part.tolist(), crew, 9)
    assert [row for part in parts for row in part] == x.tolist()
    assert _by_rows(x[:5], np.sum, crew) == [x[:5].sum()]
    assert _by_rows(x[:0], np.sum, crew) == []


def test_parts_are_views(crew):
    x = np.zeros((40, 2))
    _by_rows(x, lambda part: part.fill(1), crew, 7)
    assert x.all()


def test_exceptions_of_the_function_reach_the_caller(crew):
    def fails(part):
        raise ZeroDivisionError(f"{len(part)} rows")

    with pytest.raises(ZeroDivisionError, match="3 rows"):
        _by_rows(np.zeros((3, 1)), fails, crew)


@given(data=st.data())
def test_support(data):
    """Where a component has a number other than zero, in any row and column."""
    rows, columns, dim = (data.draw(st.integers(0, limit)) for limit in (600, 3, 5))
    x = np.zeros((rows, columns, dim), data.draw(st.sampled_from([np.float32, np.float64])))
    if x.size:
        places = st.tuples(*(st.integers(0, length - 1) for length in x.shape))
        for place in data.draw(st.lists(places, max_size=4), label="places"):
            x[place] = data.draw(st.sampled_from([1.0, -2.0, 1e-38, np.nan, -0.0]))
    expected = {k for _, _, k in np.argwhere(x).tolist()}
    assert NUMPY.support(x) == tuple(sorted(expected))


@pytest.mark.parametrize("row", [0, 1, 255, 256, 999])
@pytest.mark.usefixtures("crew")
def test_a_single_number_is_found(row):
    x = np.zeros((1000, 4, 4))
    x[row, 3, 2] = 1e-300
    assert NUMPY.support(x) == (2,)
    planar = np.ascontiguousarray(np.moveaxis(x, -1, 0))
    assert NUMPY.support(np.moveaxis(planar, 0, -1)) == (2,)
    assert NUMPY.support(x[::-1, ::2]) == ()
    assert NUMPY.support(x + 1) == (0, 1, 2, 3)


LAYOUTS = {
    "numbers": lambda x: x,
    "planar, by rows": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1),
    "planar, by columns": lambda x: np.asfortranarray(x),
    "numbers, by columns": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("planes", [4, 7])
@pytest.mark.parametrize("shape", [(1, 1, 4), (300, 70, 4), (70, 300, 4), (0, 3, 4)])
@pytest.mark.usefixtures("crew")
def test_planes_are_combinations_of_components_in_any_layout(layout, planes, shape):
    rng = np.random.default_rng(planes)
    x = LAYOUTS[layout](rng.standard_normal(shape))
    basis = rng.standard_normal((4, planes))
    image = NUMPY.planes(x, basis, "planes")
    np.testing.assert_allclose(image, np.einsum("mnd,dp->pmn", x, basis), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("layout", "fastest"), [("numbers", 2), ("planar, by rows", 2), ("planar, by columns", 1)])
@pytest.mark.usefixtures("crew")
def test_planes_lie_in_memory_as_the_numbers_do(layout, fastest):
    """Column by column where the hidden layer has its neurons so, for products that need not rearrange them."""
    x = LAYOUTS[layout](np.ones((30, 20, 4)))
    image = NUMPY.planes(x, np.ones((4, 7)), "planes")
    assert image.strides[fastest] == image.itemsize


def basis_of(support):
    """A plane for each component that is not zero, and their sum, in 5 planes at the most."""
    basis = np.zeros((4, len(support) + 1))
    basis[list(support), range(len(support))] = 1 + np.arange(len(support))
    basis[list(support), -1] = 1
    return basis


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_planes_with_what_is_seen_of_the_rows(layout, dtype, data):
    """Whichever rows have components that the first one has not."""
    rows, columns = data.draw(st.integers(0, 200)), data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = np.zeros((rows, columns, 4), dtype)
    for k in range(4):
        first = data.draw(st.integers(0, 2 * rows), label=f"first row with component {k}")
        x[first:, :, k] = rng.standard_normal(x[first:, :, k].shape)
    support, image, square = NUMPY.examined(LAYOUTS[layout](x), basis_of, "planes")
    assert support == tuple(k for k in range(4) if x[..., k].any())
    expected = np.einsum("mnd,dp->pmn", x, basis_of(support))
    np.testing.assert_allclose(image, expected, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert square == pytest.approx(float(np.sum(x.astype(float) ** 2)), rel=1e-5)


@pytest.mark.usefixtures("crew")
def test_planes_are_formed_once_where_the_first_row_tells_all():
    asked = []

    def counted(support):
        asked.append(support)
        return basis_of(support)

    x = np.ones((300, 20, 4))
    x[..., 0] = 0
    NUMPY.examined(x, counted, "planes")
    assert asked == [(1, 2, 3)]
    x[299, 3, 0] = 1e-300
    assert NUMPY.examined(x, counted, "planes")[0] == (0, 1, 2, 3)
    assert asked[1:] == [(1, 2, 3), (0, 1, 2, 3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("crew")
def test_squares_of_views_are_known_too(dtype):
    """Planes that are components are not formed, but looked at."""
    x = np.arange(700 * 33, dtype=dtype).reshape(700, 33, 1)
    _, image, square = NUMPY.examined(x, lambda _: np.eye(1), "planes")
    assert np.shares_memory(image, x)
    assert square == pytest.approx(float(np.sum(x.astype(float) ** 2)), rel=1e-5)


@given(columns=st.integers(0, 5000), planes=st.integers(1, 60))
def test_pieces_in_cache_are_products_that_blas_does_not_pack(columns, planes):
    rows = _cached_rows(columns, np.ones((8, planes)))
    assert 1 <= rows <= 64
    assert rows == 1 or rows * columns * 8 * planes <= 10**6


@given(
    shape=st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 4)),
    axes=st.permutations(range(3)),
    steps=st.tuples(*[st.sampled_from([1, 2, -1])] * 3),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_squares_are_summed_in_any_layout(shape, axes, steps, dtype):
    numbers = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    array = numbers.transpose(axes)[tuple(slice(None, None, step) for step in steps)]
    expected = sum(float(x) ** 2 for x in array.ravel())
    assert NUMPY.square(array) == pytest.approx(expected, rel=1000 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_squares_of_complex_numbers(layout, dtype):
    rng = np.random.default_rng(0)
    z = LAYOUTS[layout]((rng.standard_normal((30, 5, 4)) + 1j * rng.standard_normal((30, 5, 4))).astype(dtype))
    expected = float(np.sum(np.abs(z.astype(complex)) ** 2))
    assert NUMPY.square(z) == pytest.approx(expected, rel=1e-5)
    assert norm_square(z) == pytest.approx(expected, rel=1e-5)
    assert NUMPY.square(z[:0]) == 0
    z[7, 2, 1] = complex(0, np.inf)
    assert NUMPY.square(z) == np.inf


def test_parts_of_numbers():
    z = np.array([1 + 2j, 3 - 4j])
    real, imaginary = real_parts(z)
    imaginary[0] = 7
    assert z.tolist() == [1 + 7j, 3 - 4j]
    assert real_parts(real) == (real,)


@pytest.mark.parametrize("L", [1, 2, 33])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_symmetric_sum_in_three_pieces(L, alike, threads):
    """One corner counts twice and the opposite one not at all, so the symmetric part is that of the sum."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 20, L))
    products = [[(a, a, 2.0), (b, b if alike else a, -0.5)]]
    with ThreadPoolExecutor(threads) as pool, _current(Team(pool, threads)):
        (total,) = NUMPY.add_products(a, Sums(None, products, (L, L)))
        (twice,) = NUMPY.add_products(a, Sums(total.copy(), products, (L, L)))
    expected = 2 * a.T @ a - 0.5 * b.T @ (b if alike else a)
    symmetric = (total[0] + total[0].T) / 2 if alike else total[0]
    np.testing.assert_allclose(symmetric, expected, atol=1e-12)
    np.testing.assert_allclose(twice, 2 * total, atol=1e-12)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_wide_sums_are_cut_for_many_threads(threads):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((10, 6)), rng.standard_normal((10, 1500))
    with ThreadPoolExecutor(threads) as pool, _current(Team(pool, threads)):
        sums = NUMPY.add_products(
            a, Sums(None, [[(a, a, 1.0)], [], [(a, a, 3.0)]], (6, 6)), Sums(None, [[(a, b, 2.0)]], (6, 1500))
        )
    np.testing.assert_allclose(sums[0], [a.T @ a, 0 * a.T @ a, 3 * a.T @ a], atol=1e-12)
    np.testing.assert_allclose(sums[1], [2 * a.T @ b], atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_layers_do_not_depend_on_threads(threads):
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((3, 70, 6)), rng.standard_normal((3, 90, 6))
    terms = Terms([[(0, 0, 1.0), (1, 2, -2.0)], [], [(2, 1, 0.5)]], rng.standard_normal((2, 3)))
    bias, inputs = rng.standard_normal((90, 2)), rng.standard_normal((70, 4, 2))

    def layer():
        beside = Beside(inputs, np.array([1.0, 2.0]))
        return NUMPY.hidden_by_terms(image, weights, terms, bias, lambda x, _: np.tanh(x), beside).copy()

    with ThreadPoolExecutor(threads) as pool, _current(Team(pool, threads)):
        np.testing.assert_allclose(layer(), layer(), rtol=0, atol=0)
        found = layer()
    np.testing.assert_allclose(found, layer(), rtol=0, atol=1e-13)
