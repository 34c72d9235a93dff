"""Windows of a series against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hyperelm.datasets import lorenz, sliding_windows


def plain(series, window):
    """Every run of `window` entries of a list that has an entry after it, and that entry."""
    inputs, targets = [], []
    for t in range(len(series) - window):
        inputs.append([series[t + n] for n in range(window)])
        targets.append(series[t + window])
    return inputs, targets


@given(data=st.data())
def test_against_a_loop(data):
    n = data.draw(st.integers(2, 20), label="positions")
    window = data.draw(st.integers(1, n - 1), label="window")
    numbers = st.integers(-1000, 1000)
    channels = data.draw(st.none() | st.integers(1, 4), label="channels")
    position = numbers if channels is None else st.lists(numbers, min_size=channels, max_size=channels)
    series = data.draw(st.lists(position, min_size=n, max_size=n), label="series")
    X, y = sliding_windows(series, window)
    assert (X.tolist(), y.tolist()) == plain(series, window)


@given(st.integers(1, 4), st.integers(2, 8), st.integers(1, 3), st.data())
def test_windows_of_several_series_never_cross(series, n, channels, data):
    window = data.draw(st.integers(1, n - 1))
    many = np.arange(series * n * channels).reshape(series, n, channels)
    X, y = sliding_windows(many, window)
    expected = [plain(one.tolist(), window) for one in many]
    assert X.tolist() == [row for inputs, _ in expected for row in inputs]
    assert y.tolist() == [row for _, targets in expected for row in targets]


def test_the_series_of_the_paper():
    """300 positions give 297 windows of three."""
    series = lorenz(300)
    X, y = sliding_windows(series)
    assert X.shape == (297, 3, 3)
    assert y.shape == (297, 3)
    assert_array_equal(X[0], series[:3])
    assert_array_equal(y[0], series[3])
    assert_array_equal(X[-1], series[-4:-1])
    assert_array_equal(y[-1], series[-1])


@pytest.mark.parametrize("series", [np.arange(6), np.arange(12.0).reshape(6, 2).astype(np.float32)])
def test_windows_are_read_only_views_of_the_same_type(series):
    X, y = sliding_windows(series, 2)
    assert X.dtype == y.dtype == series.dtype
    assert np.shares_memory(X, series)
    assert not X.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        X[0] = 0


def test_the_longest_window():
    X, y = sliding_windows([1, 2, 3, 4], 3)
    assert (X.tolist(), y.tolist()) == ([[1, 2, 3]], [4])


@pytest.mark.parametrize("shape", [(), (1, 5, 2, 2)])
def test_series_of_other_shapes_are_refused(shape):
    with pytest.raises(
        ValueError, match=r"^`series` must have shape \(n,\), \(n, channels\) or \(m, n, channels\), got \("
    ) as error:
        sliding_windows(np.zeros(shape))
    assert str(error.value).endswith(f"got {shape}.")


@pytest.mark.parametrize(("n", "window"), [(5, 0), (5, -1), (5, 5), (5, 6), (1, 1), (0, 1)])
def test_windows_that_do_not_fit_are_refused(n, window):
    message = rf"^`window` must be at least 1 and less than the {n} positions of `series`, got {window}\.$"
    for series in (np.zeros(n), np.zeros((n, 3))):
        with pytest.raises(ValueError, match=message):
            sliding_windows(series, window)
