"""Hypercomplex matrices as real ones: φ, Φ_L, Φ_R and the product (section 3 of the paper).

A matrix of M x N numbers is an array (M, N, d). φ stacks the components of every number, and with the matrix of
left or right multiplication in place of every number

    φ(AB) = Φ_L(A) φ(B),        φ((AB)ᵀ) = Φ_R(B) φ(Aᵀ).

In the blocks of the algebra (`planes`) the first formula takes fewer multiplications wherever the algebra splits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.blocks import decompose
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import as_precision, empty, namespace, numpy_dtype
from hyperelm._linalg.planes import block_basis, block_matrix, coordinate_matrix, from_planes, planes, put_coordinates
from hyperelm._validation import FloatArray, as_hypercomplex, as_real, check_choice

METHODS = ("auto", "left", "right", "blocks")


def to_real(A: ArrayLike) -> FloatArray:
    """φ(A): the components of every number below each other (section 3 of the paper).

    Parameters
    ----------
    A : array of shape (..., M, N, d)

    Returns
    -------
    array of shape (..., M d, N)

    Examples
    --------
    >>> from hyperelm import linalg
    >>> linalg.to_real([[[0, 1], [2, 3]]])
    array([[0., 2.],
           [1., 3.]])
    """
    A = _as_matrix(A)
    *batch, rows, columns, dim = A.shape
    xp = namespace(A=A)
    return xp.reshape(xp.moveaxis(A, -1, -2), (*batch, rows * dim, columns))


def from_real(R: ArrayLike, algebra: Algebra) -> FloatArray:
    """φ⁻¹(R): the inverse of `to_real`.

    Parameters
    ----------
    R : array of shape (..., M d, N)
    algebra : Algebra

    Returns
    -------
    array of shape (..., M, N, d)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.from_real([[1, 2], [3, 4]], algebras.get("complex"))
    array([[[1., 3.],
            [2., 4.]]])
    """
    R = as_real(R, "R")
    if R.ndim < 2 or R.shape[-2] % algebra.dim:
        raise ValueError(
            f"`R` must be (..., M d, N) with a number of rows divisible by {algebra.dim} "
            f"({algebra.name or 'the dimension of the algebra'}), got shape {tuple(R.shape)}."
        )
    *batch, rows, columns = R.shape
    xp = namespace(R=R)
    numbers = xp.moveaxis(xp.reshape(R, (*batch, rows // algebra.dim, algebra.dim, columns)), -1, -2)
    return xp.reshape(xp.reshape(numbers, (-1,)), numbers.shape)  # in memory, too, in the order of the axes


def left_matrix(A: ArrayLike, algebra: Algebra) -> FloatArray:
    """Φ_L(A): every number replaced by its matrix of left multiplication, so that φ(AB) = Φ_L(A) φ(B).

    Parameters
    ----------
    A : array of shape (..., M, L, d)
    algebra : Algebra

    Returns
    -------
    array of shape (..., d M, d L)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.left_matrix([[[3.0, 4.0]]], algebras.get("complex"))
    array([[ 3., -4.],
           [ 4.,  3.]])
    """
    A = as_hypercomplex(A, algebra, "A", axes=2)
    return backend_of(A).spread(A, algebra.table, rows_last=False)


def right_matrix(B: ArrayLike, algebra: Algebra) -> FloatArray:
    """Φ_R(B): every number of Bᵀ replaced by its matrix of right multiplication, so that φ((AB)ᵀ) = Φ_R(B) φ(Aᵀ).

    Parameters
    ----------
    B : array of shape (..., L, N, d)
    algebra : Algebra

    Returns
    -------
    array of shape (..., d N, d L)

    Examples
    --------
    >>> from hyperelm import algebras, linalg
    >>> linalg.right_matrix([[[3.0, 4.0]]], algebras.get("hyperbolic"))
    array([[3., 4.],
           [4., 3.]])
    """
    B = as_hypercomplex(B, algebra, "B", axes=2)
    return backend_of(B).spread(namespace(B=B).moveaxis(B, -2, -3), algebra.table.swapaxes(0, 1), rows_last=False)


def right_operator(B: FloatArray, algebra: Algebra) -> FloatArray:
    """Φ_R(B)ᵀ, (..., L, N, d) -> (..., L d, N d): with it the components of a row of AB are those of A times it."""
    return backend_of(B).spread(B, algebra.table.swapaxes(0, 1), rows_last=True)


def norm(A: ArrayLike) -> Any:
    """The Frobenius norm of hypercomplex matrices: the root of the sum of the squares of all components.

    Parameters
    ----------
    A : array of shape (..., M, N, d)

    Returns
    -------
    float, or array of shape (...)

    Examples
    --------
    >>> from hyperelm import linalg
    >>> float(linalg.norm([[[3.0, 0.0], [0.0, 4.0]]]))
    5.0
    """
    A = _as_matrix(A)
    return backend_of(A).lengths(A, axis=(-3, -2, -1))


def _as_matrix(A: ArrayLike) -> FloatArray:
    A = as_real(A, "A")
    if A.ndim < 3:
        raise ValueError(f"`A` must have at least 3 axes, (rows, columns, d), got shape {tuple(A.shape)}.")
    return A


def matmul(A: ArrayLike, B: ArrayLike, algebra: Algebra, *, method: str = "auto") -> FloatArray:
    """The matrix product AB over an algebra, (AB)_mn = Σ_l A_ml B_ln.

    Parameters
    ----------
    A : array of shape (..., M, L, d)
    B : array of shape (..., L, N, d)
        Leading axes broadcast as in `numpy.matmul`.
    algebra : Algebra
    method : {"auto", "left", "right", "blocks"}
        Through Φ_L(A), through Φ_R(B), or in the blocks of the algebra. "auto" takes the cheapest for the shapes.

    Returns
    -------
    array of shape (..., M, N, d)

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import algebras, linalg
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 5, 4))
    >>> linalg.matmul(A, B, algebras.get("quaternions")).shape
    (2, 5, 4)
    """
    namespace(A=A, B=B)
    A, B = as_hypercomplex(A, algebra, "A", axes=2), as_hypercomplex(B, algebra, "B", axes=2)
    check_choice(method, METHODS, "method")
    if A.shape[-2] != B.shape[-3]:
        raise ValueError(
            f"`B` must have as many rows as `A` has columns, got {A.shape[-2]} columns in shape "
            f"{tuple(A.shape)} and {B.shape[-3]} rows in shape {tuple(B.shape)}."
        )
    try:
        np.broadcast_shapes(A.shape[:-3], B.shape[:-3])
    except ValueError:
        raise ValueError(
            f"`A` and `B` must have leading axes that broadcast, got shapes {tuple(A.shape)} and {tuple(B.shape)}."
        ) from None
    dtype = np.result_type(numpy_dtype(A), numpy_dtype(B))
    A, B = as_precision(A, dtype), as_precision(B, dtype)
    if method == "auto":
        method = _cheapest(A.shape, B.shape, algebra)
    if method == "left":
        return from_real(left_matrix(A, algebra) @ to_real(B), algebra)
    if method == "blocks":
        return _by_blocks(A, B, algebra)
    # With Φ_R(B)ᵀ, neither the components of A nor those of the product have to be rearranged.
    xp = namespace(A=A)
    product = xp.reshape(A, (*A.shape[:-2], A.shape[-2] * A.shape[-1])) @ right_operator(B, algebra)
    return xp.reshape(product, (*product.shape[:-1], B.shape[-2], algebra.dim))


def _by_blocks(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    """The product of the matrices of every block."""
    basis, batch = block_basis(algebra), np.broadcast_shapes(A.shape[:-3], B.shape[:-3])
    entries, coordinates = planes(A, basis.entries), planes(B, basis.coordinates)
    product = empty((algebra.dim, *batch, A.shape[-3], B.shape[-2]), A)
    for block, of_A, of_B in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        a, b = block_matrix(entries[of_A, ...], block), coordinate_matrix(coordinates[of_B, ...], block)
        put_coordinates(a @ b, product, of_B, block)
    return from_planes(product, basis.coordinates)


# One strided pass over an element costs about as much as this many multiply-adds inside a matrix product.
_PASS = 20.0


def _cheapest(a: tuple[int, ...], b: tuple[int, ...], algebra: Algebra) -> str:
    """The method with the least multiply-adds and passes through memory for matrices of these shapes."""
    dim, rows, inner, columns = algebra.dim, a[-3], a[-2], b[-2]
    batch_a, batch_b = np.prod(a[:-3], dtype=float), np.prod(b[:-3], dtype=float)
    batch, blocks, units = max(batch_a, batch_b), decompose(algebra), np.count_nonzero(algebra.table)
    products = sum(block.parts**2 * block.size**2 * block.copies for block in blocks)
    entries = sum(block.parts * block.size**2 for block in blocks)
    multiply_adds = batch * rows * inner * columns
    rearranged = dim * (batch_b * inner + batch * rows) * columns  # components of B and of the product
    costs = {
        "right": multiply_adds * dim**2 + _PASS * batch_b * units * inner * columns,
        "left": multiply_adds * dim**2 + _PASS * (batch_a * units * rows * inner + rearranged),
        "blocks": multiply_adds * products + _PASS * (batch_a * entries * rows * inner + rearranged),
    }
    return min(costs, key=lambda method: costs[method])
