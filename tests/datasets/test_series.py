"""The Lorenz system against SciPy's integrators."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

from hyperelm.datasets import lorenz

CLASSICAL = {"sigma": 10.0, "rho": 28.0, "beta": 8 / 3}


def integrated(span, positions, start=(1.0, 1.0, 1.0), *, sigma, rho, beta):
    """Positions at equal steps over `span`, by a method of order 8 with a step of its own."""

    def slope(_, p):
        x, y, z = p
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    times = np.linspace(0, span, positions)
    solution = solve_ivp(slope, (0, span), start, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times)
    assert solution.success
    return solution.y.T


@pytest.mark.parametrize(
    ("start", "parameters"),
    [
        ((1.0, 1.0, 1.0), CLASSICAL),
        ((-3.0, 2.0, 20.0), CLASSICAL),
        ((0.5, -4.0, 9.0), {"sigma": 16.0, "rho": 45.92, "beta": 4.0}),
        ((5.0, 1.0, 2.0), {"sigma": 3.0, "rho": 0.7, "beta": 1.0}),
    ],
)
def test_against_another_integrator(start, parameters):
    got = lorenz(1001, dt=0.001, start=start, **parameters)
    assert_allclose(got, integrated(1.0, 1001, start, **parameters), rtol=0, atol=1e-6)


def test_defaults_are_the_classical_parameters():
    assert lorenz().shape == (4000, 3)
    assert_array_equal(lorenz(50), lorenz(50, dt=0.01, start=(1, 1, 1), **CLASSICAL))


def test_order_of_convergence():
    """A step of half the length leaves a sixteenth of the error."""
    exact = integrated(1.0, 101, **CLASSICAL)
    errors = [np.abs(lorenz(100 * k + 1, dt=0.01 / k)[::k] - exact).max() for k in (1, 2, 4)]
    for coarse, fine in pairwise(errors):
        assert 15 < coarse / fine < 17.5


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("start", [(1.0, 1.0, 1.0), [3, -2, 5], np.array([0.1, 0.2, 0.3])])
def test_shape_and_first_position(n, start):
    positions = lorenz(n, start=start)
    assert positions.shape == (n, 3)
    assert positions.dtype == np.float64
    assert_array_equal(positions[0], start)
    assert_array_equal(positions, lorenz(n + 3, start=start)[:n])


def test_a_trajectory_goes_on_from_any_of_its_positions():
    whole = lorenz(200)
    assert_array_equal(lorenz(100, start=whole[100]), whole[100:])


def test_small_rho_decays_to_the_origin():
    """For ρ < 1 the origin attracts everything, and V = x²/σ + y² + z² falls all the way."""
    positions = lorenz(4000, start=(3.0, -2.0, 5.0), rho=0.5)
    assert np.abs(positions[-1]).max() < 1e-6
    assert np.all(np.diff(positions**2 @ [1 / 10, 1, 1]) < 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_fixed_points(sign):
    """±√(β(ρ - 1)) and ρ - 1, where all slopes are zero."""
    side = sign * np.sqrt(8 / 3 * 27)
    assert_allclose(lorenz(100, start=(side, side, 27.0)), np.tile([side, side, 27.0], (100, 1)), rtol=1e-10)
    assert_array_equal(lorenz(100, start=(0, 0, 0)), np.zeros((100, 3)))


def test_mirror_symmetry():
    """(x, y, z) -> (-x, -y, z) takes trajectories to trajectories."""
    mirrored = lorenz(300, start=(-1, -2, 3))
    assert_array_equal(mirrored * [-1, -1, 1], lorenz(300, start=(1, 2, 3)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"`n` must be at least 1, got 0\."),
        ({"n": -3}, r"`n` must be at least 1, got -3\."),
        ({"dt": 0.0}, r"`dt` must be a number > 0, got 0\.0\."),
        ({"dt": -0.01}, r"`dt` must be a number > 0, got -0\.01\."),
        ({"dt": float("nan")}, r"`dt` must be a number > 0, got nan\."),
        ({"dt": float("inf")}, r"`dt` must be a number > 0, got inf\."),
        ({"dt": 1.0}, r"`dt` must be smaller: the trajectory diverges with dt=1\.0\."),
        ({"start": (1.0, 2.0)}, r"`start` must be three finite numbers, got \(1\.0, 2\.0\)\."),
        ({"start": [1, 2, 3, 4]}, r"`start` must be three finite numbers, got \[1, 2, 3, 4\]\."),
        ({"start": (0.0, float("nan"), 0.0)}, r"`start` must be three finite numbers, got \(0\.0, nan, 0\.0\)\."),
        ({"start": (float("inf"), 0.0, 0.0)}, r"`start` must be three finite numbers, got \(inf, 0\.0, 0\.0\)\."),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        lorenz(**{"n": 50, **arguments})


@pytest.mark.parametrize("arguments", [{"dt": np.float64(1.0)}, {"rho": np.float64(1e200)}])
def test_lorenz_of_numpy_numbers(arguments):
    with pytest.raises(ValueError, match="the trajectory diverges"):
        lorenz(50, **arguments)


@pytest.mark.parametrize("name", ["sigma", "rho", "beta"])
def test_parameters_are_finite(name):
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        lorenz(5, **{name: np.nan})
