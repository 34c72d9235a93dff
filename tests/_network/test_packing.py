"""pack and unpack: what goes where, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import counting
from hyperelm import Algebra, algebras, pack, unpack

NAMES = st.sampled_from(["real", "complex", "dual", "quaternions", "klein4", "octonions", "sedenions"])
INTO = st.sampled_from(["imaginary", "full", "real"])


def room(algebra, into):
    """The first component that is filled, and how many there are."""
    if algebra.dim == 1 or into == "real":
        return 0, 1
    return (0, algebra.dim) if into == "full" else (1, algebra.dim - 1)


@st.composite
def settings_of_packing(draw):
    algebra, into = algebras.get(draw(NAMES)), draw(INTO)
    start, largest = room(algebra, into)
    channels = draw(st.one_of(st.none(), st.integers(1, largest)))
    return algebra, into, start, largest if channels is None else channels, channels


@given(settings_of_packing(), st.booleans(), st.integers(0, 4), st.integers(1, 5))
def test_round_trip_and_places(setting, planar, rows, features):
    algebra, into, start, count, channels = setting
    X = counting(rows, features * count)
    options = {"channels": channels, "planar": planar, "into": into}
    Z = pack(X, algebra, **options)
    assert Z.shape == (rows, features, algebra.dim)
    for n in range(rows):
        for f in range(features):
            for c in range(count):
                assert Z[n, f, start + c] == X[n, c * features + f if planar else f * count + c]
    filled = np.zeros(algebra.dim, dtype=bool)
    filled[start : start + count] = True
    assert np.all(Z[..., ~filled] == 0)
    assert_array_equal(unpack(Z, algebra, **options), X)


@given(settings_of_packing(), st.integers(1, 3), st.integers(1, 20))
def test_padding_at_the_end(setting, rows, columns):
    algebra, into, _, count, channels = setting
    X = counting(rows, columns)
    Z = pack(X, algebra, channels=channels, into=into)
    assert Z.shape == (rows, -(-columns // count), algebra.dim)
    back = unpack(Z, algebra, channels=channels, into=into)
    assert_array_equal(back[:, :columns], X)
    assert np.all(back[:, columns:] == 0)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_images(rows, height, width):
    """(n, h, w, c) and (n, c, h, w) of the same picture give the same numbers, pixel by pixel."""
    images = counting(rows, height, width, 3)
    Z = pack(images, "quaternions")
    assert Z.shape == (rows, height * width, 4)
    assert_array_equal(Z[..., 1:].reshape(images.shape), images)
    assert np.all(Z[..., 0] == 0)
    first = np.moveaxis(images, -1, 1)
    assert_array_equal(pack(first, "quaternions", planar=True), Z)
    assert_array_equal(unpack(Z, "quaternions").reshape(images.shape), images)
    assert_array_equal(unpack(Z, "quaternions", planar=True).reshape(first.shape), first)


def test_two_channels_into_four_components():
    assert_array_equal(pack([[1, 2, 3]], "quaternions", channels=2), [[[0, 1, 2, 0], [0, 3, 0, 0]]])
    assert_array_equal(pack([[1, 2]], "quaternions", channels=2, into="full"), [[[1, 2, 0, 0]]])
    assert_array_equal(pack([[1, 2]], "quaternions", into="real"), [[[1, 0, 0, 0], [2, 0, 0, 0]]])
    assert_array_equal(pack([[1, 2]], "real"), [[[1], [2]]])


def test_six_channels_are_two_quaternions_and_nine_are_three():
    six, nine = counting(2, 5, 6), counting(2, 5, 9)
    Z = pack(six, "quaternions")
    assert Z.shape == (2, 10, 4)
    assert_array_equal(Z[0, :2], [[0, 1, 2, 3], [0, 4, 5, 6]])
    assert pack(nine, "quaternions").shape == (2, 15, 4)
    full = pack(nine, "quaternions", into="full")
    assert_array_equal(full[0, :3], [[1, 2, 3, 4], [5, 6, 7, 8], [9, 0, 0, 0]])
    assert pack(counting(2, 5, 2), "quaternions").shape == (2, 5, 4)


@given(NAMES, INTO, st.booleans(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 20))
def test_any_number_of_channels(name, into, planar, rows, steps, channels):
    """Every step begins with a number of its own; against a plain loop, and back."""
    algebra = algebras.get(name)
    start, largest = room(algebra, into)
    each = -(-channels // largest)
    X = counting(rows, steps, channels)
    given_ = np.moveaxis(X, 2, 1) if planar else X
    Z = pack(given_, algebra, channels=channels, planar=planar, into=into)
    expected = np.zeros((rows, steps * each, algebra.dim))
    for n, t, c in np.ndindex(X.shape):
        expected[n, t * each + c // largest, start + c % largest] = X[n, t, c]
    assert_array_equal(Z, expected)
    flat = given_.reshape(rows, -1)
    assert_array_equal(pack(flat, algebra, channels=channels, planar=planar, into=into), expected)
    assert_array_equal(unpack(Z, algebra, channels=channels, planar=planar, into=into), flat)


def test_an_algebra_without_a_name():
    table = np.zeros((2, 2, 2))
    table[0] = table[:, 0] = np.eye(2)
    assert pack([[1.0]], Algebra(table)).shape == (1, 1, 2)


def test_precision_and_copies():
    for dtype, expected in [(np.float32, np.float32), (np.float64, np.float64), (np.uint8, np.float64)]:
        X = np.ones((2, 8), dtype=dtype)
        Z = pack(X, "quaternions", into="full")
        assert Z.dtype == expected
        assert unpack(Z, "quaternions", into="full").dtype == expected
        Z[...] = 5
        assert np.all(X == 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pack([1.0, 2.0], "complex"), ValueError, r"`X` must have at least 2 axes, .* got shape \(2,\)"),
        (lambda: pack([[1j]], "complex"), TypeError, "`X` must be real, got dtype complex128"),
        (lambda: pack([["a"]], "complex"), TypeError, "`X` must be an array of real numbers"),
        (lambda: pack([[1.0]], "quaternoins"), ValueError, "quaternoins.*[Dd]id you mean"),
        (
            lambda: pack([[1.0]], "complex", into="both"),
            ValueError,
            "`into` must be one of 'full', 'imaginary', 'real', got 'both'",
        ),
        (lambda: pack(np.ones((1, 8)), "quaternions", channels=0), ValueError, "`channels` must be .* got 0"),
        (lambda: pack(np.ones((1, 8)), "quaternions", channels=2.0), ValueError, r"`channels` must be .* got 2\.0"),
        (lambda: pack(np.ones((1, 8)), "quaternions", channels=True), ValueError, "`channels` must be .* got True"),
        (
            lambda: pack(np.ones((1, 8)), "quaternions", planar=True),
            ValueError,
            "`X` must have a number of columns divisible by the 3 channels when planar, got 8",
        ),
        (
            lambda: pack(np.ones((5, 8, 8, 4)), "quaternions", channels=3),
            ValueError,
            r"`X` must have 3 channels on its last axis, got shape \(5, 8, 8, 4\)\. Set `channels`, or `planar`",
        ),
        (
            lambda: pack(np.ones((5, 3, 32, 32)), "quaternions"),
            ValueError,
            r"`X` must have the channels on its last axis, got shape \(5, 3, 32, 32\)\. Set `channels`, or `planar`",
        ),
        (
            lambda: pack(np.ones((5, 8, 8, 3)), "quaternions", planar=True, channels=3),
            ValueError,
            "`X` must have 3 channels on its second axis",
        ),
        (
            lambda: unpack(np.ones((5, 2, 3)), "quaternions"),
            ValueError,
            r"`Z` must have a last axis of length 4 \(quaternions\), got shape \(5, 2, 3\)",
        ),
        (lambda: unpack(np.ones((5, 4)), "quaternions"), ValueError, "`Z` must have at least 3 axes"),
        (lambda: unpack(np.ones((1, 5, 2, 4)), "quaternions"), ValueError, "`Z` must have 3 axes"),
        (
            lambda: unpack(np.ones((5, 3, 4)), "quaternions", channels=5),
            ValueError,
            "`Z` must have a multiple of 2 numbers in a row, which 5 channels fill",
        ),
        (lambda: unpack(np.ones((5, 2, 4)), "quaternions", channels=0), ValueError, "`channels` must be"),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()
