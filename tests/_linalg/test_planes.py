"""Planes of numbers against the definition of the blocks, and the ways back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import linalg
from hyperelm._backend import NUMPY, backend_of
from hyperelm._backend.arrays import is_elsewhere, to_numpy
from hyperelm._backend.by_numpy import _planes
from hyperelm._linalg.planes import (
    Numbers,
    block_basis,
    block_matrix,
    coordinate_matrix,
    from_planes,
    planes,
    put_coordinates,
    put_entries,
    traces,
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
        assert_allclose(coordinate_matrix(coordinates[to], block), E, atol=1e-12)


def test_there_and_back(algebra):
    A = RNG.standard_normal((3, 2, algebra.dim))
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(A, basis.coordinates)
    assert_allclose(from_planes(coordinates, basis.coordinates), A, atol=1e-12)
    for image, slices, whole, put in (
        (entries, basis.entry_slices, block_matrix, put_entries),
        (coordinates, basis.coordinate_slices, coordinate_matrix, put_coordinates),
    ):
        back = np.full_like(image, np.nan)
        for block, at in zip(basis.blocks, slices):
            put(whole(image[at], block), back, at, block)
        assert_array_equal(back, image)


def test_products_fall_apart(algebra):
    A, B = RNG.standard_normal((3, 2, algebra.dim)), RNG.standard_normal((2, 4, algebra.dim))
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(B, basis.coordinates)
    product = planes(linalg.matmul(A, B, algebra, method="left"), basis.coordinates)
    for block, at, to in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        expected = block_matrix(entries[at], block) @ coordinate_matrix(coordinates[to], block)
        assert_allclose(coordinate_matrix(product[to], block), expected, atol=1e-11)


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (1, 5), (5, 1)])
@pytest.mark.parametrize("dim", [1, 4])
def test_where_the_planes_go(shape, dim, planar):
    """To `out` wherever it is given, also where they are components that could be looked at in place."""
    x = RNG.standard_normal((dim, *shape))
    x = np.moveaxis(x, 0, -1) if planar else np.ascontiguousarray(np.moveaxis(x, 0, -1))
    for basis in (np.eye(dim), RNG.standard_normal((dim, 3))):
        out = np.full((basis.shape[1], *shape), np.nan)
        assert _planes(x, basis, out=out) is out
        assert_allclose(out, np.einsum("mld,dp->pml", x, basis), atol=1e-12)
        assert_allclose(planes(x, basis), out, atol=1e-12)
        assert_allclose(planes(x.swapaxes(0, 1), basis), out.swapaxes(1, 2), atol=1e-12)


class Counter:
    """A backend that counts the calls of each kernel, and passes them on."""

    def __init__(self, backend):
        self.backend, self.calls = backend, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            return getattr(self.backend, name)(*arguments)

        return call


@pytest.fixture
def counter(monkeypatch, library):
    counter = Counter(backend_of(library(np.zeros(1))))
    monkeypatch.setattr("hyperelm._linalg.planes.backend_of", lambda *_: counter)
    return counter


def halved(support):
    """A plane for each component that is not zero."""
    return 0.5 * np.eye(4)[:, list(support)]


def without_real_part():
    x = RNG.standard_normal((5, 3, 4))
    x[..., 0] = 0
    return x


def test_each_fact_is_found_once(counter, library):
    x = without_real_part()
    numbers, basis = Numbers(library(x)), halved((1, 2, 3))
    for _ in range(2):
        assert numbers.square == pytest.approx(np.sum(x**2))
        assert numbers.support == (1, 2, 3)
        assert numbers.planes(basis) is numbers.planes(basis.copy())
        assert_allclose(to_numpy(numbers.planes(basis)), np.moveaxis(x[..., 1:] / 2, -1, 0), atol=1e-15)
        assert numbers.planes_by_support(halved) is numbers.planes(basis)
    assert sorted(counter.calls) == ["planes", "square", "support"]


def test_one_pass_finds_support_and_planes_and_perhaps_the_square(counter, library):
    x = without_real_part()
    numbers = Numbers(library(x))
    image = numbers.planes_by_support(halved)
    assert numbers.support == (1, 2, 3)
    assert numbers.planes_by_support(halved) is image
    assert numbers.planes(halved((1, 2, 3))) is image
    assert counter.calls == ["examined"]
    assert numbers.square == pytest.approx(np.sum(x**2))
    assert counter.calls == ["examined"] + ["square"] * is_elsewhere(numbers.array)


def test_a_square_that_is_known_is_kept(counter, library):
    numbers = Numbers(library(without_real_part()))
    square = numbers.square
    numbers.planes_by_support(halved)
    assert numbers.square == pytest.approx(square)
    assert counter.calls == ["square", "examined"]


def test_planes_of_one_basis_at_a_time(library):
    """All planes of the same numbers are formed in the same memory, so other planes take their place."""
    x = RNG.standard_normal((5, 3, 4))
    numbers, bases = Numbers(library(x)), [RNG.standard_normal((4, 3)) for _ in range(2)]
    assert not numbers.has_planes(bases[0])
    for basis in (*bases, *bases):
        assert_allclose(to_numpy(numbers.planes(basis)), np.einsum("mnd,dp->pmn", x, basis), atol=1e-14)
        assert [numbers.has_planes(other) for other in bases] == [other is basis for other in bases]


def test_numbers_take_each_others_memory_and_no_other():
    x, basis = RNG.standard_normal((5, 3, 4)), RNG.standard_normal((4, 3))
    with NUMPY.at_work(0):
        wide, other = Numbers(x), Numbers(2 * x)
        image = wide.planes(basis)
        assert not np.shares_memory(image, NUMPY.planes(3 * x, basis, "narrow"))
        assert_allclose(image, np.einsum("mnd,dp->pmn", x, basis), atol=1e-14)
        assert np.shares_memory(image, other.planes(basis))


def test_traces(library):
    matrices = RNG.standard_normal((3, 4, 4))
    assert_allclose(to_numpy(traces(library(matrices))), np.trace(matrices, axis1=1, axis2=2), atol=1e-14)
    assert traces(library(np.zeros((0, 4, 4)))).shape == (0,)
