from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperelm import algebras, linalg
from oracles import product

METHODS = ["auto", "left", "right", "blocks"]


def test_phi_and_its_inverse(algebra):
    A = np.random.default_rng(0).standard_normal((3, 2, algebra.dim))
    R = linalg.to_real(A)
    assert R.shape == (3 * algebra.dim, 2)
    for m in range(3):
        for n in range(2):
            assert np.array_equal(R[m * algebra.dim : (m + 1) * algebra.dim, n], A[m, n])
    assert np.array_equal(linalg.from_real(R, algebra), A)


def test_matrices_are_made_of_the_matrices_of_the_numbers(algebra):
    d = algebra.dim
    A = np.random.default_rng(0).standard_normal((3, 2, d))
    left, right = linalg.left_matrix(A, algebra), linalg.right_matrix(A, algebra)
    assert left.shape == (3 * d, 2 * d)
    assert right.shape == (2 * d, 3 * d)
    for m in range(3):
        for n in range(2):
            np.testing.assert_allclose(left[m * d : (m + 1) * d, n * d : (n + 1) * d], algebra.left_matrix(A[m, n]))
            np.testing.assert_allclose(right[n * d : (n + 1) * d, m * d : (m + 1) * d], algebra.right_matrix(A[m, n]))


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from([*algebras.names(), "Cl(0,3)", "R[-0.5,2]"]),
    shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
)
def test_the_formulas_of_the_paper_and_every_method(seed, name, shape):
    algebra = algebras.get(name)
    M, L, N = shape
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((M, L, algebra.dim)), rng.standard_normal((L, N, algebra.dim))
    C = product(A, B, algebra)
    np.testing.assert_allclose(linalg.left_matrix(A, algebra) @ linalg.to_real(B), linalg.to_real(C), atol=1e-12)
    transposed = linalg.to_real(A.swapaxes(0, 1)), linalg.to_real(C.swapaxes(0, 1))
    np.testing.assert_allclose(linalg.right_matrix(B, algebra) @ transposed[0], transposed[1], atol=1e-12)
    for method in METHODS:
        np.testing.assert_allclose(linalg.matmul(A, B, algebra, method=method), C, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("a", "b"), [((), (5,)), ((5,), ()), ((2, 1), (3,)), ((0,), ()), ((2, 3), (2, 3)), ((1,), (4,))]
)
def test_leading_axes_broadcast(algebra, method, a, b):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((*a, 2, 3, algebra.dim)), rng.standard_normal((*b, 3, 4, algebra.dim))
    expected = np.einsum("...mli,...lnj,ijk->...mnk", A, B, algebra.table, optimize=True)
    C = linalg.matmul(A, B, algebra, method=method)
    assert C.shape == expected.shape
    np.testing.assert_allclose(C, expected, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_layout_and_inputs_are_kept(algebra, method, dtype):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((algebra.dim, 3, 5)).T, rng.standard_normal((5, 8, algebra.dim))[::-1, ::2]
    A, B = A.astype(dtype, order="F")[:, ::-1], B.astype(dtype)
    B = np.repeat(B[:3], 2, axis=0)[::2]
    A.setflags(write=False)
    B.setflags(write=False)
    before = A.copy(), B.copy()
    C = linalg.matmul(A, B, algebra, method=method)
    assert C.dtype == dtype
    np.testing.assert_allclose(C, product(A, B, algebra), rtol=0, atol=200 * np.finfo(dtype).eps)
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])
    for real in (
        linalg.to_real(A),
        linalg.left_matrix(A, algebra),
        linalg.right_matrix(A, algebra),
        linalg.norm(A),
    ):
        assert real.dtype == dtype


def test_mixed_precision_and_integers():
    algebra = algebras.get("quaternions")
    single, double = np.ones((2, 2, 4), np.float32), np.ones((2, 2, 4))
    assert linalg.matmul(single, double, algebra).dtype == np.float64
    assert linalg.matmul(single.astype(int), single.astype(np.uint8), algebra).dtype == np.float64


def test_the_cheapest_method_follows_the_shapes():
    from hyperelm._linalg.products import _cheapest

    octonions = algebras.get("octonions")
    assert _cheapest((4, 300, 8), (300, 5000, 8), octonions) == "left"
    assert _cheapest((5000, 300, 8), (300, 4, 8), octonions) == "right"
    assert _cheapest((300, 300, 4), (300, 300, 4), algebras.get("klein4")) == "blocks"


def test_norm():
    A = np.arange(24.0).reshape(2, 3, 4)
    assert linalg.norm(A) == pytest.approx(np.sqrt(np.sum(A**2)))
    assert linalg.norm(np.stack([A, 2 * A])).shape == (2,)
    tiny = np.ldexp(A.astype(np.float32), -100)
    assert np.ldexp(linalg.norm(tiny), 100) == pytest.approx(linalg.norm(A), rel=1e-6)


H = algebras.get("quaternions")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: linalg.matmul(np.ones((2, 3, 3)), np.ones((3, 2, 4)), H),
            ValueError,
            r"`A` must have a last axis of length 4 \(quaternions\), got shape \(2, 3, 3\)",
        ),
        (
            lambda: linalg.matmul(np.ones((2, 3, 4)), np.ones((2, 2, 4)), H),
            ValueError,
            r"`B` must have as many rows as `A` has columns, got 3 columns in shape \(2, 3, 4\) and 2 rows",
        ),
        (
            lambda: linalg.matmul(np.ones((3, 4)), np.ones((3, 2, 4)), H),
            ValueError,
            r"`A` must have at least 3 axes, \(rows, columns, 4\)",
        ),
        (
            lambda: linalg.matmul(np.ones((2, 3, 4)) * 1j, np.ones((3, 2, 4)), H),
            TypeError,
            "`A` must be real, got dtype complex128",
        ),
        (
            lambda: linalg.matmul(np.ones((2, 3, 4)), np.ones((3, 2, 4)), H, method="fast"),
            ValueError,
            "`method` must be one of 'auto', 'left', 'right', 'blocks', got 'fast'",
        ),
        (
            lambda: linalg.matmul(np.ones((5, 2, 3, 4)), np.ones((4, 3, 2, 4)), H),
            ValueError,
            "leading axes that broadcast",
        ),
        (
            lambda: linalg.from_real(np.ones((6, 2)), H),
            ValueError,
            r"divisible by 4 \(quaternions\), got shape \(6, 2\)",
        ),
        (lambda: linalg.to_real(np.ones((6, 2))), ValueError, "`A` must have at least 3 axes"),
        (lambda: linalg.left_matrix(np.ones((6, 4)), H), ValueError, "`A` must have at least 3 axes"),
        (lambda: linalg.norm(np.ones(4)), ValueError, "`A` must have at least 3 axes"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
