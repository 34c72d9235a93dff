"""Readouts: their tables, their real matrices, and what a weight of the bias can show."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import numbers
from hyperelm import Algebra, algebras
from hyperelm._network.readout import READOUTS, Readout, check_readout

LEARNED = Algebra(numbers((3, 3, 3)), name="learned")


def readout(name):
    return Readout(
        name, 3, {"algebra": algebras.learn(numbers((9, 2, 3)), numbers((9, 2, 3), 1)), "learned": LEARNED}.get(name)
    )


@pytest.mark.parametrize("name", READOUTS)
def test_the_operator_is_the_product_of_the_table(name):
    one = readout(name)
    weights, h = numbers((4, 2, one.size), 2), numbers((5, 4, 3), 3)
    expected = np.einsum("nli,lmj,ijk->nmk", h, weights, one.table).reshape(5, 6)
    assert_allclose(h.reshape(5, 12) @ one.operator(weights), expected, atol=1e-12)


def test_a_free_readout_leads_from_every_component_to_every_other():
    table = Readout("free", 3, None).table
    assert table.shape == (3, 9, 3)
    for i, k in np.ndindex(3, 3):
        assert_array_equal(np.argwhere(table[:, 3 * i + k]), [[i, k]])


def test_parameters_of_the_table():
    assert [readout(name).n_parameters for name in READOUTS] == [0, 27, 0]


def test_weights_of_the_bias_that_no_output_shows():
    table = numbers((3, 3, 3))
    table[:, :, 0] = 0  # no target fills the first component
    e = np.array([1.0, 0, 0])
    assert Readout("learned", 3, Algebra(table)).idle(e) == 1
    assert readout("learned").idle(e) == 0
    assert Readout("algebra", 3, Algebra(table)).idle(e) == 0


def test_what_is_refused():
    with pytest.raises(ValueError, match="`readout` must be one of"):
        check_readout("own", LEARNED)
    with pytest.raises(ValueError, match="`readout` must not be 'learned' for an algebra of more than 16 components"):
        check_readout("learned", algebras.clifford(5, 0))
    check_readout("free", algebras.clifford(5, 0))
