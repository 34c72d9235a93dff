"""How many rows a chunk has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import algebras
from hyperelm._solvers.accumulator import _SCRATCH, chunk_rows

sizes = st.integers(0, 5000)


@given(name=st.sampled_from(algebras.names()), D=sizes, L=sizes, N=sizes, itemsize=st.sampled_from([4, 8]))
def test_rows_of_a_chunk_are_within_limits(name, D, L, N, itemsize):
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
def test_planes_of_a_chunk_fit_the_scratch_memory(name, planes, dtype, shape):
    """As many planes as the table has products, at most two for each component: of H twice and of X or T once."""
    D, L, N = shape
    itemsize = np.dtype(dtype).itemsize
    row = planes * (max(D, N) + 2 * L) * itemsize
    rows = chunk_rows(algebras.get(name), D, L, N, itemsize)
    assert rows == min(4096, _SCRATCH // row) // 16 * 16


def test_real_numbers_need_no_planes():
    real = algebras.get("real")
    assert chunk_rows(real, 10**6, 2**14, 10**6, 8) == _SCRATCH // (2**14 * 8)
    assert chunk_rows(real, 3, 2**20, 3, 8) == 64
    assert chunk_rows(real, 3, 5, 3, 8) == 4096
