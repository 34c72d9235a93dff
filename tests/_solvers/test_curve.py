"""Curves from values and slopes at a few points, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from hyperelm._solvers.curve import Curve

numbers = st.floats(-10, 10)


@given(st.dictionaries(st.integers(-5, 5).map(float), st.tuples(numbers, numbers), min_size=2))
def test_between_points_it_is_the_cubic_with_their_values_and_slopes(points):
    at = sorted(points)
    values, slopes = zip(*(points[u] for u in at))
    u = np.linspace(at[0], at[-1], 50)
    np.testing.assert_allclose(Curve(points)(u), CubicHermiteSpline(at, values, slopes)(u), rtol=0, atol=1e-10)


@given(st.dictionaries(st.integers(-5, 5).map(float), st.tuples(numbers, numbers), min_size=1))
def test_beyond_the_points_it_is_straight(points):
    first, last = min(points), max(points)
    curve = Curve(points)
    for end, u in ((first, first - 3), (last, last + 3)):
        value, slope = points[end]
        assert curve(np.array([u]))[0] == pytest.approx(value + slope * (u - end), abs=1e-10)


def test_without_points_it_is_zero():
    np.testing.assert_array_equal(Curve()(np.arange(4.0)), np.zeros(4))


def test_through_values_it_stops_at_the_first_that_is_not_finite():
    u = np.arange(-5.0, 2.0)
    values = np.array([1.0, np.inf, 3.0, 2.0, 1.0, 2.0, 5.0])
    curve = Curve.through(u, values, level=2.0)
    assert sorted(curve.points) == u[2:].tolist()
    np.testing.assert_array_equal(curve(u[2:]), values[2:])
    assert curve.points[0.0] == (2.0, 2.0)  # the slope is half of 5 - 1


def test_through_values_it_leaves_out_close_points_and_does_not_fall_beyond_the_last():
    curve = Curve.through(np.array([-1.2, -1.1, -1.0, 0.0]), np.array([0.0, 1.0, 2.0, 3.0]), level=0.1)
    assert sorted(curve.points) == [-1.0, 0.0]
    np.testing.assert_array_equal(curve(np.array([-9.0, -1.0])), [2.0, 2.0])


def test_through_values_that_fall_it_goes_on_to_where_its_slope_is_level():
    u = np.arange(4.0)
    values, level = 0.1 * np.exp(u), 0.05  # every slope is e times the one before
    first = values[1] - values[0]
    curve = Curve.through(u, values, level)
    end = min(curve.points)
    assert first * np.exp(end) == pytest.approx(level)
    assert curve.points[end] == (pytest.approx(values[0] + end * first / 2), 0.0)
    np.testing.assert_allclose(curve(np.array([end - 5, end / 2])), values[0] + first * end * np.array([0.5, 0.375]))


@pytest.mark.parametrize(("level", "way"), [(1e-9, 1.5), (0.999, 1.5), (1.0, 0.0), (5.0, 0.0)])
def test_through_a_straight_line_it_goes_on_for_so_long(level, way):
    u = np.arange(-3.0, 2.0)
    assert min(Curve.through(u, u, level).points) == -3.0 - way
    assert min(Curve.through(u, -u, level).points) == -3.0
