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
