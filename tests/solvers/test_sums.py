"""Row blocks: how many rows, which components, and what is done with each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import algebras
from hyperelm.solvers import sums
from hyperelm.solvers.sums import (
    by_rows,
    cached_rows,
    chunk_rows,
    known_planes,
    nonzero_components,
    row_blocks,
    team_planes,
)
from hyperelm.solvers.team import Team

SCRATCH = sums._SCRATCH


@pytest.fixture(params=["serial", "threads"])
def crew(request):
    if request.param == "serial":
        yield Team()
        return
    with ThreadPoolExecutor(2) as pool:
        yield Team(pool, 2)


@given(rows=st.integers(0, 200), size=st.integers(1, 220))
def test_row_blocks_cover_all_rows_once(rows, size):
    blocks = list(row_blocks(rows, size))
    assert [n for block in blocks for n in range(block.start, block.stop)] == list(range(rows))
    lengths = [block.stop - block.start for block in blocks]
    assert all(length == size for length in lengths[:-1])
    assert all(1 <= length <= size for length in lengths)


def test_functions_of_row_blocks_are_in_order(crew):
    x = np.arange(2100.0).reshape(700, 3)
    assert by_rows(x, len, crew) == [256, 256, 188]
    parts = by_rows(x, lambda part: part.tolist(), crew, rows=9)
    assert [row for part in parts for row in part] == x.tolist()
    assert by_rows(x[:5], np.sum, crew) == [x[:5].sum()]
    assert by_rows(x[:0], np.sum, crew) == []


def test_parts_are_views(crew):
    x = np.zeros((40, 2))
    by_rows(x, lambda part: part.fill(1), crew, rows=7)
    assert x.all()


def test_exceptions_of_the_function_reach_the_caller(crew):
    def fails(part):
        raise ZeroDivisionError(f"{len(part)} rows")

    with pytest.raises(ZeroDivisionError, match="3 rows"):
        by_rows(np.zeros((3, 1)), fails, crew)


@given(data=st.data())
def test_nonzero_components(data):
    """Where a component has a number other than zero, in any row and column."""
    rows, columns, dim = (data.draw(st.integers(0, limit)) for limit in (600, 3, 5))
    x = np.zeros((rows, columns, dim), data.draw(st.sampled_from([np.float32, np.float64])))
    if x.size:
        places = st.tuples(*(st.integers(0, length - 1) for length in x.shape))
        for place in data.draw(st.lists(places, max_size=4), label="places"):
            x[place] = data.draw(st.sampled_from([1.0, -2.0, 1e-38, np.nan, -0.0]))
    expected = {k for _, _, k in np.argwhere(x).tolist()}
    assert nonzero_components(x, Team()) == tuple(sorted(expected))


@pytest.mark.parametrize("row", [0, 1, 255, 256, 999])
def test_a_single_number_is_found(crew, row):
    x = np.zeros((1000, 4, 4))
    x[row, 3, 2] = 1e-300
    assert nonzero_components(x, crew) == (2,)
    planar = np.ascontiguousarray(np.moveaxis(x, -1, 0))
    assert nonzero_components(np.moveaxis(planar, 0, -1), crew) == (2,)
    assert nonzero_components(x[::-1, ::2], crew) == ()
    assert nonzero_components(x + 1, crew) == (0, 1, 2, 3)


sizes = st.integers(0, 5000)


@given(name=st.sampled_from(algebras.names()), D=sizes, L=sizes, N=sizes, itemsize=st.sampled_from([4, 8]))
def test_rows_of_a_block_are_within_limits(name, D, L, N, itemsize):
    """And no more of them where there is more of anything."""
    algebra = algebras.get(name)
    rows = chunk_rows(algebra, D, L, N, itemsize)
    assert isinstance(rows, int)
    assert 64 <= rows <= 4096
    assert rows % 16 == 0
    for more in ((2 * D, L, N, itemsize), (D, 2 * L, N, itemsize), (D, L, 2 * N, itemsize), (D, L, N, 2 * itemsize)):
        assert chunk_rows(algebra, *more) <= rows


@pytest.mark.parametrize(
    ("name", "planes"),
    [("complex", 4), ("hyperbolic", 2), ("klein4", 4), ("quaternions", 8), ("tessarines", 8), ("octonions", 16)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(450, 1024, 450), (900, 700, 50), (50, 700, 900)])
def test_planes_of_a_block_fit_the_scratch_memory(name, planes, dtype, shape):
    """As many planes as the table has products, at most two for each component: of H twice and of X or T once."""
    D, L, N = shape
    itemsize = np.dtype(dtype).itemsize
    row = planes * (max(D, N) + 2 * L) * itemsize
    rows = chunk_rows(algebras.get(name), D, L, N, itemsize)
    assert rows == min(4096, SCRATCH // row) // 16 * 16


def test_real_numbers_need_no_planes():
    real = algebras.get("real")
    assert chunk_rows(real, 10**6, 2**14, 10**6, 8) == SCRATCH // (2**14 * 8)
    assert chunk_rows(real, 3, 2**20, 3, 8) == 64
    assert chunk_rows(real, 3, 5, 3, 8) == 4096


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
def test_planes_are_combinations_of_components_in_any_layout(crew, layout, planes, shape):
    rng = np.random.default_rng(planes)
    x = LAYOUTS[layout](rng.standard_normal(shape))
    basis = rng.standard_normal((4, planes))
    image = team_planes(x, basis, "planes", crew)
    np.testing.assert_allclose(image, np.einsum("mnd,dp->pmn", x, basis), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("layout", "fastest"), [("numbers", 2), ("planar, by rows", 2), ("planar, by columns", 1)])
def test_planes_lie_in_memory_as_the_numbers_do(crew, layout, fastest):
    """Column by column where the hidden layer has its neurons so, for products that need not rearrange them."""
    x = LAYOUTS[layout](np.ones((30, 20, 4)))
    image = team_planes(x, np.ones((4, 7)), "planes", crew)
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
def test_planes_with_what_is_known_of_the_rows(layout, dtype, data):
    """Whichever rows have components that the first one has not."""
    rows, columns = data.draw(st.integers(0, 200)), data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = np.zeros((rows, columns, 4), dtype)
    for k in range(4):
        first = data.draw(st.integers(0, 2 * rows), label=f"first row with component {k}")
        x[first:, :, k] = rng.standard_normal(x[first:, :, k].shape)
    known = known_planes(LAYOUTS[layout](x), basis_of, "planes", Team())
    assert known.support == tuple(k for k in range(4) if x[..., k].any())
    expected = np.einsum("mnd,dp->pmn", x, basis_of(known.support))
    np.testing.assert_allclose(known.image, expected, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert known.square == pytest.approx(float(np.sum(x.astype(float) ** 2)), rel=1e-5)


def test_planes_are_formed_once_where_the_first_row_tells_all(crew):
    asked = []

    def counted(support):
        asked.append(support)
        return basis_of(support)

    x = np.ones((300, 20, 4))
    x[..., 0] = 0
    known_planes(x, counted, "planes", crew)
    assert asked == [(1, 2, 3)]
    x[299, 3, 0] = 1e-300
    assert known_planes(x, counted, "planes", crew).support == (0, 1, 2, 3)
    assert asked[1:] == [(1, 2, 3), (0, 1, 2, 3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_of_views_are_known_too(crew, dtype):
    """Planes that are components are not formed, but looked at."""
    x = np.arange(700 * 33, dtype=dtype).reshape(700, 33, 1)
    known = known_planes(x, lambda _: np.eye(1), "planes", crew)
    assert np.shares_memory(known.image, x)
    assert known.square == pytest.approx(float(np.sum(x.astype(float) ** 2)), rel=1e-5)


@given(columns=sizes, planes=st.integers(1, 60))
def test_pieces_in_cache_are_products_that_blas_does_not_pack(columns, planes):
    rows = cached_rows(columns, np.ones((8, planes)))
    assert 1 <= rows <= 64
    assert rows == 1 or rows * columns * 8 * planes <= 10**6
