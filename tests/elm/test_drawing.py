"""Weights that are drawn again elsewhere are the same, and travel as what they are drawn from."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import algebras, linalg
from hyperelm.elm.drawing import Drawn, random_generator


def drawn(**options):
    settings = {"inputs": 20, "neurons": 30, "dtype": np.dtype(np.float64), "scale": 0.3, "bias": 0.7}
    return Drawn(np.random.default_rng(5), algebras.get("quaternions"), **settings | options)


def test_drawn_again():
    encoder = drawn()
    before = encoder.weights
    copy = pickle.loads(pickle.dumps(encoder))
    assert len(pickle.dumps(encoder)) < 2000 < before.nbytes
    assert_array_equal(copy.weights, before)
    assert copy.weights is copy.weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales(dtype):
    W = drawn(inputs=200, dtype=np.dtype(dtype)).weights
    assert W.shape == (201, 30, 4)
    assert W.dtype == dtype
    assert W[:-1].std() == pytest.approx(0.3, rel=0.03)
    assert W[-1].std() == pytest.approx(0.7, rel=0.2)
    assert drawn(bias=None).weights.shape == (20, 30, 4)


@pytest.mark.parametrize("inputs", [5, 80])
def test_orthogonal(inputs):
    """Columns, or rows where there are fewer, as real vectors of the length that random ones have."""
    R = linalg.to_real(drawn(inputs=inputs, bias=None, orthogonal=True).weights)
    gram = R @ R.T if R.shape[0] < R.shape[1] else R.T @ R
    assert_allclose(gram, 0.3**2 * max(R.shape) * np.eye(len(gram)), atol=1e-12)


def test_random_states():
    def first(state):
        return random_generator(state).standard_normal()

    assert first(3) == first(3) == first(np.int64(3)) == np.random.default_rng(3).standard_normal()
    assert first(np.random.RandomState(3)) == first(np.random.RandomState(3))
    assert first(None) != first(None)
