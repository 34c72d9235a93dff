"""Planes of numbers against the definition of the blocks, and the ways back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import linalg
from hyperelm.planes import (
    block_basis,
    block_matrix,
    from_planes,
    gather,
    planes,
    put_coordinates,
    put_entries,
)

RNG = np.random.default_rng(0)


def test_blocks_of_a_matrix(algebra):
    """B of every unit times its component, the block's own rows outermost; φ in the bases of the copies."""
    A = RNG.standard_normal((3, 2, algebra.dim))
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(A, basis.coordinates)
    for block, at, to in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        n, copies = block.size, block.copies
        B = np.einsum("mld,dpq->pmql", A, block.matrices).reshape(3 * n, 2 * n)
        assert_allclose(block_matrix(entries[at], block), B, atol=1e-12)
        E = np.einsum("mld,cdp->pmcl", A, block.bases).reshape(3 * n, 2 * copies)
        assert_allclose(gather(coordinates[to], block), E, atol=1e-12)


def test_there_and_back(algebra):
    A = RNG.standard_normal((3, 2, algebra.dim))
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(A, basis.coordinates)
    assert_allclose(from_planes(coordinates, basis.coordinates), A, atol=1e-12)
    for image, slices, whole, put in (
        (entries, basis.entry_slices, block_matrix, put_entries),
        (coordinates, basis.coordinate_slices, gather, put_coordinates),
    ):
        back = np.full_like(image, np.nan)
        for block, at in zip(basis.blocks, slices):
            put(whole(image[at], block), back[at], block)
        assert_array_equal(back, image)


def test_products_fall_apart(algebra):
    A, B = RNG.standard_normal((3, 2, algebra.dim)), RNG.standard_normal((2, 4, algebra.dim))
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(B, basis.coordinates)
    product = planes(linalg.matmul(A, B, algebra, method="left"), basis.coordinates)
    for block, at, to in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        expected = block_matrix(entries[at], block) @ gather(coordinates[to], block)
        assert_allclose(gather(product[to], block), expected, atol=1e-11)


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (1, 5), (5, 1)])
@pytest.mark.parametrize("dim", [1, 4])
def test_where_the_planes_go(shape, dim, planar):
    """To `out` wherever it is given, also where they are components that could be looked at in place."""
    x = RNG.standard_normal((dim, *shape))
    x = np.moveaxis(x, 0, -1) if planar else np.ascontiguousarray(np.moveaxis(x, 0, -1))
    for basis in (np.eye(dim), RNG.standard_normal((dim, 3))):
        out = np.full((basis.shape[1], *shape), np.nan)
        assert planes(x, basis, out=out) is out
        assert_allclose(out, np.einsum("mld,dp->pml", x, basis), atol=1e-12)
        assert_allclose(planes(x, basis), out, atol=1e-12)
        assert_allclose(planes(x.swapaxes(0, 1), basis), out.swapaxes(1, 2), atol=1e-12)
