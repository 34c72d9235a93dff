"""The scale of probabilities: the largest likelihood, whatever the outputs are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from hyperelm._solvers.calibration import Probabilities, calibrated


def drawn(seed, rows=200, classes=3, steepness=4.0):
    """Outputs, and labels that are drawn with probabilities in proportion to exp(steepness · outputs)."""
    rng = np.random.default_rng(seed)
    outputs = rng.standard_normal((rows, classes))
    chances = np.cumsum(np.exp(log_softmax(steepness * outputs, axis=1)), axis=1)
    labels = (rng.random(rows)[:, None] > chances).sum(axis=1).clip(max=classes - 1)
    return outputs, labels, rng.uniform(0.1, 2, rows)


@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.5, 8))
def test_no_scale_is_likelier(seed, classes, steepness):
    outputs, labels, weight = drawn(seed, 60, classes, steepness)
    unsure = classes / (weight.sum() + classes)
    targets = (1 - unsure) * np.eye(classes)[labels] + unsure / classes

    def loss(log_scale):
        return -weight @ (targets * log_softmax(np.exp(log_scale) * outputs, axis=1)).sum(axis=1) / weight.sum()

    found = calibrated(outputs, labels, weight, float(weight.sum())).scale
    best = minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert loss(np.log(found)) <= best.fun + 1e-9


def test_the_scale_that_labels_were_drawn_with():
    outputs, labels, _ = drawn(0, 20_000)
    assert_allclose(calibrated(outputs, labels, np.ones(20_000), 20_000).scale, 4.0, rtol=0.05)


def test_a_row_of_weight_two_is_two_rows():
    outputs, labels, _ = drawn(1, 40)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    once = calibrated(outputs, labels, weight.astype(float), float(weight.sum()))
    again = calibrated(
        np.repeat(outputs, weight, axis=0), np.repeat(labels, weight), np.ones(weight.sum()), weight.sum()
    )
    assert_allclose(once.scale, again.scale, rtol=1e-8)


def test_outputs_that_separate_all_labels_or_none():
    labels = np.arange(90) % 3
    sure = calibrated(np.eye(3)[labels], labels, np.ones(90), 90.0)
    assert 3 < sure.scale < 20
    wrong = calibrated(-np.eye(3)[labels], labels, np.ones(90), 90.0)
    assert 0 < wrong.scale < 0.01
    assert calibrated(np.zeros((90, 3)), labels, np.ones(90), 90.0).scale > 0


def test_rows_without_outputs_do_not_count():
    outputs, labels, weight = drawn(2, 40)
    expected = calibrated(outputs[5:], labels[5:], weight[5:], 35.0)
    outputs[:5] = np.nan
    assert calibrated(outputs, labels, weight, 35.0) == expected
    assert calibrated(np.full((4, 2), np.nan), np.zeros(4, int), np.ones(4), 4.0) == Probabilities()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e30])
def test_never_0_or_1(size, dtype):
    outputs = (size * np.random.default_rng(0).standard_normal((50, 4))).astype(dtype)
    found = Probabilities(7.0).of(outputs)
    assert found.dtype == dtype
    assert np.all((found > 0) & (found < 1))
    assert_allclose(found.sum(axis=1), 1, rtol=10 * np.finfo(dtype).eps)
    assert np.array_equal(found.argmax(axis=1), outputs.argmax(axis=1))
