"""The range of numbers, at its ends, and the one message for all others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hyperelm import algebras, linalg
from hyperelm._backend import limits

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@dtypes
def test_the_ends(dtype):
    info = np.finfo(dtype)
    assert limits.smallest_sum(dtype) == pytest.approx(float(info.tiny) / float(info.eps))
    assert limits.largest_sum(dtype) == pytest.approx(1e-6 * float(info.max))
    assert limits.smallest_sum(np.dtype(dtype)) == limits.smallest_sum(dtype)
    assert isinstance(limits.smallest_sum(dtype), float)


def test_double_precision_is_the_default():
    assert limits.smallest_sum() == limits.smallest_sum(np.float64)
    assert limits.largest_sum() == limits.largest_sum(np.float64)
    assert limits.is_sum(1e100)
    assert not limits.is_sum(1e100, np.float32)
    assert limits.is_length(1e30)
    assert not limits.is_length(1e30, np.float32)


@dtypes
def test_sums_within_the_range(dtype):
    low, high = limits.smallest_sum(dtype), limits.largest_sum(dtype)
    for square in (0.0, 1.0, 1.001 * low, 0.999 * high):
        assert limits.is_sum(square, dtype)
    for square in (0.999 * low, low, high, 1.001 * high, math.inf, math.nan, -1.0):
        assert not limits.is_sum(square, dtype)


@dtypes
def test_a_length_is_within_the_range_if_its_square_is(dtype):
    for exponent in range(-60, 60):
        length = 10.0 ** (exponent / 2)
        assert limits.is_length(length, dtype) == limits.is_sum(length * length, dtype), length
    assert limits.is_length(0.0, dtype)
    # Lengths whose squares are beyond double precision, too.
    for length in (1e-200, 1e200, math.inf, math.nan):
        assert not limits.is_length(length, dtype)


@dtypes
def test_sums_within_the_range_have_their_digits(dtype):
    """The square of a number just inside has no less digits than others, and can be multiplied by coefficients."""
    for square in (2 * limits.smallest_sum(dtype), 0.5 * limits.largest_sum(dtype)):
        x = dtype(math.sqrt(square))
        assert float(x * x) == pytest.approx(float(x) ** 2, rel=2 * float(np.finfo(dtype).eps))
        assert np.isfinite(x * x * dtype(1e5))


def test_single_numbers_may_be_larger_than_lengths_that_are_compared():
    assert limits.SMALLEST < math.sqrt(limits.smallest_sum()) < math.sqrt(limits.largest_sum()) < limits.LARGEST
    assert math.isfinite(limits.LARGEST * math.sqrt(1e6))  # lengths of so many of them
    assert np.finfo(float).max > 1 / limits.SMALLEST
    assert math.isfinite(limits.HEAVIEST * 1e100)


def test_the_message_names_argument_range_value_and_way_out():
    error = limits.refused("ridge", "be at most 1", "2", "Take less.")
    assert isinstance(error, ValueError)
    assert str(error) == "`ridge` must be at most 1, got 2. Take less."


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (1e301, {}, r"`A` must be at most 1e\+300, got [\d.e+]+\. Divide it by its size\."),
        (1e-305, {}, r"`A` must be zero or at least 1e-300, got [\d.e-]+\. Divide it by its size\."),
        (1e200, {"method": "gram"}, r"`solver` must not be 'gram' for rows whose sums are beyond float64, got rows of"),
        (1e200, {"ridge": "gcv"}, r"`ridge` must be a number, not searched for, for columns whose squares are beyond"),
    ],
)
def test_who_refuses(size, options, message):
    A, B = np.random.default_rng(0).standard_normal((2, 20, 2, 4))
    with pytest.raises(ValueError, match=message):
        linalg.lstsq(size * A, B, algebras.get("quaternions"), **options)
