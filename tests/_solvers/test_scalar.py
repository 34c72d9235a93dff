"""Leverage matrices that are multiples of the identity, or nearly so, by algebra."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm import Algebra, algebras
from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.scalar import has_scalar_leverage, is_nearly_scalar


@pytest.mark.parametrize(
    ("name", "is_scalar", "is_near"),
    [
        ("real", True, True),
        ("quaternions", True, True),
        ("octonions", False, True),
        ("biquaternions", False, True),
        ("dual", False, False),  # the second component of a product has more terms than the first
        ("dual-quaternions", False, False),
    ],
)
def test_which_leverages_are_multiples_of_the_identity(name, is_scalar, is_near):
    blocks = block_basis(algebras.get(name)).blocks
    assert all(map(has_scalar_leverage, blocks)) == is_scalar
    assert all(map(is_nearly_scalar, blocks)) == is_near


def test_a_table_without_a_first_row_is_no_multiple():
    table = np.zeros((2, 2, 2))
    table[:, :, 1] = 1  # no product has a first component
    assert not any(map(is_nearly_scalar, block_basis(Algebra(table)).blocks))
    assert all(map(is_nearly_scalar, block_basis(Algebra(np.zeros((2, 2, 2)))).blocks))
