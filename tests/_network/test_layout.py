"""Columns and components: the layout of a table, a vector or numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import counting
from hyperelm import algebras, pack
from hyperelm._backend.arrays import as_parts
from hyperelm._network.layout import Layout


@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
@given(name=st.sampled_from(algebras.names()), rows=st.integers(1, 4), columns=st.integers(1, 20))
def test_tables_are_packed_as_pack_does(packing, name, rows, columns):
    algebra = algebras.get(name)
    X = counting(rows, columns)
    layout = Layout.of(X, algebra, packing)
    packed = layout.pack(X, np.float64)
    assert_array_equal(packed, pack(X, algebra, into=packing))
    assert (layout.columns, layout.features, layout.dim) == (columns, packed.shape[1], algebra.dim)
    # Prediction never packs: it finds the columns at their places among the components.
    assert_array_equal(packed.reshape(rows, -1)[:, layout.places], X)
    assert layout.is_flat == (packed[0].size == columns)
    assert layout.shape(7) == (7, columns)


def test_vectors_stand_in_the_real_part(algebra):
    y = counting(5)
    for packing in ("full", "imaginary", "real"):
        layout = Layout.of(y, algebra, packing)
        packed = layout.pack(y, np.float64)
        assert packed.shape == (5, 1, algebra.dim)
        assert_array_equal(packed[:, 0, 0], y)
        assert np.all(packed[:, 0, 1:] == 0)
        assert layout.shape(7) == (7,)


def test_numbers_are_taken_as_they_are(algebra):
    x = counting(5, 3, algebra.dim)
    for packing in ("full", "imaginary", "real"):
        layout = Layout.of(x, algebra, packing)
        packed = layout.pack(x, np.float64)
        assert np.shares_memory(packed, x)
        assert_array_equal(packed, x)
        assert layout.is_flat
        assert_array_equal(layout.places, np.arange(3 * algebra.dim))
        assert layout.shape(7) == (7, 3, algebra.dim)


@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
@given(name=st.sampled_from(algebras.names()), steps=st.integers(1, 4), channels=st.integers(1, 12))
def test_steps_of_channels_are_packed_as_pack_does(packing, name, steps, channels):
    algebra = algebras.get(name)
    X = counting(3, steps, channels)
    layout = Layout.of(X, algebra, packing)
    assert layout.shape(7) == (7, steps, channels)
    if channels == algebra.dim:
        return  # numbers
    packed = layout.pack(X, np.float64)
    assert_array_equal(packed, pack(X, algebra, into=packing))
    assert_array_equal(packed.reshape(3, -1)[:, layout.places], X.reshape(3, -1))
    assert_array_equal(layout.given(X.reshape(3, -1)), X)
    assert not layout.are_numbers


def test_complex_numbers_are_numbers():
    complex_ = algebras.get("complex")
    Z = counting(5, 3) + 1j
    for array, shape in ((Z, (7, 3)), (Z[:, 0], (7,))):
        layout = Layout.of(array, complex_, "full")
        assert layout.is_flat
        assert layout.are_numbers
        assert layout.shape(7) == shape
        parts = as_parts(array)
        packed = layout.pack(parts, np.float64)
        assert_array_equal(packed, np.stack([array.real, array.imag], axis=-1).reshape(5, -1, 2))
        assert_array_equal(layout.given(parts.reshape(5, -1)), array)
        assert layout.of_parts.shape(7) == (7, packed.shape[1], 2)


def test_casts_chunk_by_chunk():
    algebra = algebras.get("quaternions")
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 12)
    packed = Layout.of(pixels, algebra, "imaginary").pack(pixels, np.float32)
    assert packed.dtype == np.float32
    assert_array_equal(packed, pack(pixels, algebra))


def test_layouts_are_compared_by_value():
    algebra = algebras.get("quaternions")
    assert Layout.of(counting(2, 8), algebra, "full") == Layout.of(counting(5, 8), algebra, "full")
    assert Layout.of(counting(2, 8), algebra, "full") != Layout.of(counting(2, 2, 4), algebra, "full")
    assert Layout.of(counting(2, 8), algebra, "full") != Layout.of(counting(2, 7), algebra, "full")
