"""The losses of rows, against scikit-learn's, one row after the other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import softmax
from sklearn.metrics import log_loss as log_loss_of_all

from hyperelm._solvers.losses import brier, log_loss, misses, squares

RNG = np.random.default_rng(0)
OUTPUTS = RNG.normal(0.3, 0.5, (20, 2, 3))
LABELS = RNG.integers(0, 3, 20)
T = np.eye(3)[LABELS][:, None]


def test_losses_of_every_row():
    for n, label in enumerate(LABELS):
        for r in range(2):
            y = OUTPUTS[n, r]
            e = (OUTPUTS - T)[n : n + 1, r : r + 1], T[n : n + 1]
            assert squares(*e)[0, 0] == pytest.approx(np.mean((y - T[n, 0]) ** 2))
            assert log_loss(*e)[0, 0] == pytest.approx(log_loss_of_all([label], softmax(3 * y)[None], labels=[0, 1, 2]))
            assert misses(*e)[0, 0] == (np.argmax(y) != label)
            assert brier(*e)[0, 0] == pytest.approx(np.sum((softmax(3 * y) - T[n, 0]) ** 2))


def test_of_two_classes_the_brier_score_is_half():
    y, t = np.array([[[0.3, 0.7]]]), np.array([[[1.0, 0.0]]])
    assert brier(y - t, t)[0, 0] == pytest.approx((1 / (1 + np.exp(-3 * 0.4))) ** 2)


@pytest.mark.parametrize("loss", [squares, log_loss, misses, brier])
def test_a_row_without_an_error_has_no_loss(loss):
    e = OUTPUTS - T
    e[3, 1] = np.nan
    assert_array_equal(np.argwhere(np.isnan(loss(e, T))), [[3, 1]])
