"""Products where the arrays live, against NumPy's, and what moves between libraries."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import algebras, linalg, pack, unpack
from hyperelm._backend.arrays import (
    are_together,
    as_array,
    as_precision,
    beside,
    chunk_of,
    concatenated,
    detached,
    is_elsewhere,
    kept_beside,
    moved,
    namespace,
    numpy_dtype,
    taken,
    to_numpy,
    without_others,
    zeros,
)
from hyperelm._network.layout import INTO
from hyperelm._solvers.solve import SOLVERS

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'hyperelm[test]'")
RNG = np.random.default_rng(0)


def numbers(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def check(result, expected, library, tol=1e-12):
    """Of the library, of the same precision, and the same numbers."""
    assert type(result) is type(library(expected))
    result = to_numpy(result)
    assert result.dtype == expected.dtype
    assert_allclose(result, expected, rtol=0, atol=tol * max(1, np.abs(expected).max(initial=0)))


SHAPES = [((5, 3), (3, 4)), ((2, 1, 5, 3), (3, 3, 4)), ((0, 3), (3, 4)), ((5, 0), (0, 4))]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul(algebra, library, a, b):
    A, B = numbers(*a, algebra.dim), numbers(*b, algebra.dim)
    expected = linalg.matmul(A, B, algebra, method="left")
    for method in ("auto", "left", "right", "blocks"):
        check(linalg.matmul(library(A), library(B), algebra, method=method), expected, library)


@pytest.mark.parametrize("dtypes", [(np.float32, np.float32), (np.float32, np.float64), (np.int64, np.float32)])
def test_precision_is_that_of_numpy(library, dtypes):
    algebra = algebras.get("tessarines")
    A, B = (10 * numbers(3, 3, 4)).astype(dtypes[0]), numbers(3, 3, 4).astype(dtypes[1])
    expected = linalg.matmul(A, B, algebra)
    check(linalg.matmul(library(A), library(B), algebra), expected, library, tol=1e-5)


def test_matrices_and_numbers(algebra, library):
    A, B = numbers(2, 5, 3, algebra.dim), numbers(3, algebra.dim)
    for function in (linalg.left_matrix, linalg.right_matrix):
        check(function(library(A), algebra), function(A, algebra), library)
    check(linalg.to_real(library(A)), linalg.to_real(A), library)
    check(linalg.from_real(library(linalg.to_real(A)), algebra), A, library)
    check(linalg.norm(library(A)), np.sqrt((A**2).sum(axis=(1, 2, 3))), library)
    check(algebra.multiply(library(A), library(B)), algebra.multiply(A, B), library)
    check(algebra.conjugate(library(B)), algebra.conjugate(B), library)
    check(algebra.norm(library(B)), algebra.norm(B), library)
    check(algebra.right_matrix(library(B)), algebra.right_matrix(B), library)


def test_packing(algebra, library):
    X = numbers(4, 4 * algebra.dim * max(1, algebra.dim - 1))
    for options in ({"into": into, "planar": planar} for into in INTO for planar in (False, True)):
        packed = pack(X, algebra, **options)
        check(pack(library(X), algebra, **options), packed, library)
        check(unpack(library(packed), algebra, **options), unpack(packed, algebra, **options), library)
    odd = X[:, : max(1, X.shape[1] - 1)]
    check(pack(library(odd), algebra), pack(odd, algebra), library)


def test_least_squares(algebra, library):
    A, B = numbers(40, 3, algebra.dim), numbers(40, 2, algebra.dim)
    for options in ({"method": method, "ridge": ridge} for method in SOLVERS for ridge in (0.0, "gcv")):
        expected, result = (
            linalg.lstsq(A, B, algebra, **options),
            linalg.lstsq(library(A), library(B), algebra, **options),
        )
        check(result.x, expected.x, library, tol=1e-9)
        assert (result.method, result.rank) == (expected.method, expected.rank)
        assert result.residual == pytest.approx(expected.residual, rel=1e-9)


def test_gradients_flow_through_products():
    """What torch wants for training further parts of a network; a fit leaves no trace of its rows behind."""
    algebra = algebras.get("quaternions")
    A, B = (torch.asarray(numbers(4, 4, 4)).requires_grad_() for _ in range(2))
    linalg.norm(linalg.matmul(A, B, algebra)).backward()
    assert A.grad.shape == B.grad.shape == (4, 4, 4)
    assert not linalg.lstsq(A, B, algebra).x.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, t: linalg.matmul(x, t, algebras.get("complex")), "`A` and `B` must be arrays of one library on one"),
        (lambda x, t: linalg.lstsq(t, x, algebras.get("complex")), "`A` and `B` must be .* got torch on cpu and numpy"),
        (
            lambda x, t: algebras.get("complex").multiply(x, t),
            "`x` and `y` must be .* got numpy and torch on cpu. Move",
        ),
        (lambda _, t: linalg.matmul(t, t.to("meta"), algebras.get("complex")), "got torch on cpu and torch on meta"),
        (lambda _, t: linalg.to_real(t + 0j), "`A` must be real, got dtype torch.complex128"),
        (lambda _, t: linalg.matmul(t[..., :1], t, algebras.get("complex")), r"last axis of length 2 .* \(3, 3, 1\)"),
    ],
)
def test_messages(call, message):
    x = numbers(3, 3, 2)
    with pytest.raises((ValueError, TypeError), match=message):
        call(x, torch.asarray(x))


def test_what_moves(library):
    x = library(numbers(3).astype(np.float32))
    there = beside(np.array([1.5, 2.5]), x)
    assert are_together(there, x)
    assert there.dtype == x.dtype
    assert_array_equal(to_numpy(beside(np.array([1, 2]), x)), [1, 2])
    assert to_numpy(beside(np.array([1.5]), x, exact=True)).dtype == np.float64
    assert moved(x, x) is x
    assert_array_equal(to_numpy(moved([1.0, 2.0], x)), [1, 2])
    assert isinstance(moved(x, numbers(2)), np.ndarray)
    assert namespace(a=x, b=None, c=there) is namespace(x=x)
    assert (namespace(x=x) is np) == (not is_elsewhere(x))


def test_what_stays(library):
    """Arrays that are where they should be are not copied."""
    x, array = library(numbers(3)), numbers(2)
    assert as_array(x) is x
    assert isinstance(as_array([1.0, 2.0]), np.ndarray)
    assert (kept_beside(array, x) is array) == (not is_elsewhere(x))
    assert are_together(kept_beside(array, x), x)
    assert_array_equal(to_numpy(kept_beside(array, x)), array)
    assert detached(x) is x
    assert as_precision(x, np.dtype(np.float64)) is x
    assert to_numpy(array) is array


def test_without_others(library):
    """What is not an array of another library is left to whoever knows what it is."""
    x = numbers(3)
    assert isinstance(without_others(library(x)), np.ndarray)
    assert_array_equal(without_others(library(x)), x)
    for other in ([1, 2], "text", None, x):
        assert without_others(other) is other


def test_gradients_are_left_behind():
    x = torch.ones(3, requires_grad=True)
    assert not detached(x).requires_grad
    assert not detached(2 * x).requires_grad
    assert_array_equal(to_numpy(x), [1, 1, 1])
    plain = torch.ones(3)
    assert detached(plain) is plain


def test_the_same_call_for_every_library(library):
    x = numbers(5, 3)
    there = library(x)
    check(chunk_of(there, slice(1, 3)), x[1:3], library)
    check(taken(there, np.array([4, 0, 4])), x[[4, 0, 4]], library)
    check(concatenated([there, there]), np.concatenate([x, x]), library)
    check(concatenated([there, there], axis=1), np.concatenate([x, x], axis=1), library)
    check(zeros((2, 4), there), np.zeros((2, 4)), library)
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        assert numpy_dtype(library(x.astype(dtype))) == dtype
    check(as_precision(there, np.dtype(np.float32)), x.astype(np.float32), library, tol=1e-6)


def test_copies_do_not_share_memory():
    """A table is read-only, and what a library does to its copy must not change it."""
    table = algebras.get("quaternions").table
    copy = beside(table, torch.zeros(1, dtype=torch.float64))
    copy += 1
    assert not np.array_equal(to_numpy(copy), table)
    back = to_numpy(copy)
    copy += 1
    assert not np.array_equal(to_numpy(copy), back)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    message = "Arrays of other libraries need the extra 'torch': pip install 'hyperelm\\[torch\\]'."
    with pytest.raises(ImportError, match=message):
        linalg.norm(torch.zeros(1, 1, 2))
