"""Scratch memory: zeros to write to, of any size."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hyperelm._memory import scratch, scratch_copy

# Empty, small, on both sides of the size from which arrays get pages of their own, and not a multiple of a page.
SHAPES = [(), (0,), (3, 0, 2), (1,), (2, 3, 4), (2**17 - 1,), (2**17,), (2**17 + 1,), (7, 191, 503), (1, 2**18)]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128, "f8", np.dtype(np.intp)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zeros_that_can_be_written(shape, dtype):
    array = scratch(shape, dtype)
    assert array.shape == shape
    assert array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
    array[...] = 1
    assert array.sum() == array.size


@pytest.mark.parametrize("size", [10, 2**18])
def test_every_array_has_its_own_memory(size):
    first = scratch((size,), np.float64)
    first[...] = 7
    second = scratch((size,), np.float64)
    assert not np.shares_memory(first, second)
    assert not second.any()
    second[...] = 5
    assert np.all(first == 7)


@pytest.mark.parametrize("size", [10, 2**18])
def test_zeros_again_after_an_array_was_dropped(size):
    for _ in range(5):
        array = scratch((size,), np.float64)
        assert not array.any()
        array[...] = np.nan
        del array


def test_a_view_keeps_its_memory():
    view = scratch((4, 2**18), np.float64)[2, 5:9]
    view[...] = 3
    others = [scratch((4, 2**18), np.float64) for _ in range(3)]
    for other in others:
        other[...] = 9
    assert view.tolist() == [3.0] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_writes_to_its_own_pages():
    """In an interpreter of its own, as forking one with threads is warned of."""
    program = """
import os
import numpy as np
from hyperelm._memory import scratch
array = scratch((2**18,), np.float64)
child = os.fork()
if child == 0:
    array[...] = 1
    os._exit(0)
os.waitpid(child, 0)
raise SystemExit(int(array.any()))
"""
    # Newer Pythons warn of a fork beside the threads of a BLAS; the child touches nothing but the array.
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (301, 502), (1000, 1), (1, 2**18)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed", "read-only"])
def test_copies_are_in_fortran_order(shape, dtype, layout):
    rows, columns = shape
    array = np.random.default_rng(0).standard_normal((2 * rows, columns)).astype(dtype)
    array = {"strided": array[::2], "reversed": array[:rows][::-1]}.get(layout, array[:rows])
    if layout in "CF":
        array = np.array(array, order=layout)
    array.flags.writeable = layout != "read-only"
    before = array.copy()
    copy = scratch_copy(array)
    assert copy.shape == shape
    assert copy.dtype == dtype
    assert copy.flags.f_contiguous
    assert copy.flags.writeable
    assert not np.shares_memory(copy, array)
    assert_array_equal(copy, array)
    copy[...] = 0
    assert_array_equal(array, before)
