from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import Algebra, algebras, linalg
from hyperelm._algebra.blocks import decompose

BLOCKS = {
    # name: [(size, copies, complex)]
    "real": [(1, 1, False)],
    "complex": [(1, 1, True)],
    "hyperbolic": [(1, 1, False)] * 2,
    "klein4": [(1, 1, False)] * 4,
    "R[-1,+1]": [(2, 2, False)],
    "R[+1,-1]": [(2, 2, False)],
    "R[+1,+1]": [(2, 2, False)],
    "tessarines": [(1, 1, True)] * 2,
    "quaternions": [(2, 1, True)],
    "paper-Cl(1,1)": [(4, 1, False)],
    "octonions": [(8, 1, False)],
    "sedenions": [(16, 1, False)],
    "biquaternions": [(2, 2, True)],
    "Cl(0,3)": [(2, 1, True)] * 2,
    "Cl(4,1)": [(4, 4, True)],
    "Cl(5,0)": [(4, 2, True)] * 2,
    "Cl(6,0)": [(8, 4, True)],
    "Cl(0,6)": [(8, 8, False)],
    "Cl(7,0)": [(8, 8, True)],
    "Cl(0,7)": [(8, 8, False)] * 2,
    "R[-1,-1,-1,-1,-1,-1]": [(64, 1, False)],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    blocks = decompose(algebras.get(name))
    assert [(b.size, b.copies, b.is_complex) for b in blocks] == BLOCKS[name]


def real_parts(E):
    return (E.real, E.imag) if np.iscomplexobj(E) else (E,)


def check(algebra):
    """The basis is orthogonal, and in it every Φ_L is block-diagonal, with equal blocks for copies, to 1e-12."""
    blocks = decompose(algebra)
    basis = np.concatenate([E for block in blocks for copy in block.bases for E in real_parts(copy)], axis=1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(algebra.dim), atol=1e-12)
    scale = np.abs(algebra.table).max(initial=1e-300)
    for unit, left in enumerate(algebra.left_matrix(np.eye(algebra.dim))):
        expected = np.zeros_like(left)
        start = 0
        for block in blocks:
            matrix = block.matrices[unit]
            if block.is_complex:
                matrix = np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])
            for _ in range(block.copies):
                end = start + len(matrix)
                expected[start:end, start:end] = matrix
                start = end
        np.testing.assert_allclose(basis.T @ left @ basis, expected, atol=1e-12 * scale)


def test_orthogonal_and_block_diagonal(algebra):
    check(algebra)


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), integer=st.booleans())
def test_any_table(seed, dim, integer):
    rng = np.random.default_rng(seed)
    table = rng.integers(-1, 2, (dim,) * 3) if integer else rng.standard_normal((dim,) * 3)
    check(Algebra(table))


@pytest.mark.parametrize("name", ["klein4", "R[-1,+1]", "tessarines", "quaternions", "Cl(0,3)", "Cl(3,0)"])
def test_any_orthogonal_basis_gives_the_same_blocks(name):
    algebra = algebras.get(name)
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((algebra.dim, algebra.dim)))
    turned = Algebra(np.einsum("ai,bj,ck,ijk->abc", turn, turn, turn, algebra.table, optimize=True))
    check(turned)
    shapes = [sorted((b.size, b.copies, b.is_complex) for b in decompose(a)) for a in (algebra, turned)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["klein4", "R[-1,+1]", "tessarines", "quaternions"])
@pytest.mark.parametrize("noise", [1e-12, 4e-12, 1e-11, 1e-8, 1e-5])
def test_tables_near_a_more_symmetric_one(name, noise):
    """Such a table has one block, and least squares is accurate for the table itself, not for the one nearby."""
    rng = np.random.default_rng(0)
    algebra = Algebra(algebras.get(name).table + noise * rng.uniform(-1, 1, (4, 4, 4)))
    check(algebra)
    A, X = rng.standard_normal((40, 5, 4)), rng.standard_normal((5, 2, 4))
    A[:, 1] = A[:, 0] + 1e-6 * rng.standard_normal((40, 4))
    B = np.einsum("mli,lnj,ijk->mnk", A, X, algebra.table)
    np.testing.assert_allclose(linalg.lstsq(A, B, algebra, method="qr").x, X, atol=1e-8)


def test_zero_table_and_large_ones():
    check(Algebra(np.zeros((3, 3, 3))))
    for name in ("R[-1,-1,-1,-1,-1]", "Cl(4,1)", "Cl(2,2,1)", "Cl(6,0)", "Cl(3,0,3)"):
        check(algebras.get(name))


def test_beyond_the_budget_there_is_one_block():
    """A table of zeros commutes with all matrices, which are too many to find."""
    (block,) = decompose(Algebra(np.zeros((40, 40, 40))))
    assert (block.size, block.copies) == (40, 1)


@pytest.mark.parametrize("name", ["klein4", "R[-1,+1]", "tessarines", "quaternions", "octonions"])
def test_sizes_of_matrices_do_not_matter(name):
    """The subspaces do not depend on the lengths of the units of the left factor."""
    algebra = algebras.get(name)
    s = 10.0 ** np.linspace(-12, 12, algebra.dim)
    one, other = decompose(algebra), decompose(Algebra(1e100 * s[:, None, None] * algebra.table))
    assert [b.bases.shape for b in one] == [b.bases.shape for b in other]
    for a, b in zip(one, other):
        np.testing.assert_allclose(a.bases, b.bases, rtol=0, atol=1e-12)
        np.testing.assert_allclose(1e100 * s[:, None, None] * a.matrices, b.matrices, rtol=1e-12, atol=0)


def test_deterministic():
    first = decompose(algebras.get("Cl(4,1)"))
    decompose.cache_clear()
    for a, b in zip(first, decompose(algebras.get("Cl(4,1)"))):
        assert np.array_equal(a.matrices, b.matrices)
        assert np.array_equal(a.bases, b.bases)
