"""Hypercomplex matrices as real ones: φ, Φ_L, Φ_R and the product (section 3 of the paper).

A matrix of M x N numbers is an array (M, N, d). φ stacks the components of every number, and with the matrix of
left or right multiplication in place of every number

    φ(AB) = Φ_L(A) φ(B),        φ((AB)ᵀ) = Φ_R(B) φ(Aᵀ).

In the blocks of the algebra (`planes`) the first formula takes fewer multiplications wherever the algebra splits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._arrays import as_precision, beside, lengths, namespace, numpy_dtype
from hyperelm._validation import FloatArray, as_hypercomplex, as_real, check_choice
from hyperelm.algebra import Algebra
from hyperelm.bilinear import block_scheme
from hyperelm.decomposition import decompose
from hyperelm.planes import block_basis, block_matrix, from_planes, gather, planes, put_coordinates, scheme_product

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
    A = as_real(A, "A")
    if A.ndim < 3:
        raise ValueError(f"`A` must have at least 3 axes, (rows, columns, d), got shape {tuple(A.shape)}.")
    *batch, rows, columns, dim = A.shape
    xp = namespace(A=A)
    real: FloatArray = xp.reshape(xp.moveaxis(A, -1, -2), (*batch, rows * dim, columns))
    return real


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
    return np.ascontiguousarray(numbers) if xp is np else numbers


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
    return _spread(A, algebra.table, rows_last=False)


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
    return _spread(namespace(B=B).moveaxis(B, -2, -3), algebra.table.swapaxes(0, 1), rows_last=False)


def right_operator(B: FloatArray, algebra: Algebra) -> FloatArray:
    """Φ_R(B)ᵀ, (..., L, N, d) -> (..., L d, N d): with it the components of a row of AB are those of A times it."""
    return _spread(B, algebra.table.swapaxes(0, 1), rows_last=True)


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
    A = as_real(A, "A")
    if A.ndim < 3:
        raise ValueError(f"`A` must have at least 3 axes, (rows, columns, d), got shape {tuple(A.shape)}.")
    if namespace(A=A) is not np:
        return lengths(A, axis=(-3, -2, -1))
    sizes = np.abs(A).max(axis=(-3, -2, -1), keepdims=True, initial=0)
    units = np.where((sizes > 0) & np.isfinite(sizes), sizes, 1)  # in which squares are numbers
    x = A / units
    square = np.einsum("...mnk,...mnk->...", x, x, dtype=np.float64)
    return (units[..., 0, 0, 0] * np.sqrt(square)).astype(A.dtype)[()]


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
    return {"left": _left, "right": _right, "blocks": _blocks}[method](A, B, algebra)


_DENSE = 4  # units in an entry of a left matrix, on average, from which on a table is dense


def _spread(A: FloatArray, table: NDArray[np.float64], *, rows_last: bool) -> FloatArray:
    """The real matrix that has the d x d matrix Σ_i a_i table[i] (`rows_last`) or its transpose for each number a.

    Entry by entry of that matrix, each one strided pass for every unit in it, as most tables are sparse; a dense one is
    one product.
    """
    *batch, rows, columns, dim = A.shape
    xp = namespace(A=A)
    if xp is not np or np.count_nonzero(table) > _DENSE * dim**2:
        blocks = xp.tensordot(A, beside(table if rows_last else table.swapaxes(1, 2), A), axes=1)
        return xp.reshape(xp.moveaxis(blocks, -2, -3), (*batch, rows * dim, columns * dim))
    out = np.empty((*batch, rows, dim, columns, dim), dtype=A.dtype)
    units: dict[tuple[int, int], list[int]] = {(j, k): [] for j in range(dim) for k in range(dim)}
    for i, j, k in np.argwhere(table).tolist():
        units[j, k].append(i)
    for (j, k), summed in units.items():
        r, c = (j, k) if rows_last else (k, j)
        entry = out[..., :, r, :, c]
        if not summed:
            entry[...] = 0
        for n, i in enumerate(summed):
            if n == 0:
                np.multiply(A[..., i], A.dtype.type(table[i, j, k]), out=entry)
            else:
                entry += A.dtype.type(table[i, j, k]) * A[..., i]
    return out.reshape(*batch, rows * dim, columns * dim)


def _left(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    return from_real(_spread(A, algebra.table, rows_last=False) @ to_real(B), algebra)


def _right(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    """By Φ_R(B)ᵀ neither A nor the product have to be rearranged."""
    xp = namespace(A=A, B=B)
    product = xp.reshape(A, (*A.shape[:-2], A.shape[-2] * A.shape[-1])) @ right_operator(B, algebra)
    numbers: FloatArray = xp.reshape(product, (*product.shape[:-1], B.shape[-2], algebra.dim))
    return numbers


def _blocks(A: FloatArray, B: FloatArray, algebra: Algebra) -> FloatArray:
    if namespace(A=A, B=B) is not np:
        blocks = block_scheme(algebra)
        a, b = planes(A, blocks.left), planes(B, blocks.right)
        return from_planes(scheme_product(a, b, blocks), blocks.out)
    rows, columns = A.shape[-3], B.shape[-2]
    batch = np.broadcast_shapes(A.shape[:-3], B.shape[:-3])
    basis = block_basis(algebra)
    entries, coordinates = planes(A, basis.entries), planes(B, basis.coordinates)
    product = np.empty((algebra.dim, *batch, rows, columns), dtype=A.dtype)
    for block, of_A, of_B in zip(basis.blocks, basis.entry_slices, basis.coordinate_slices):
        put_coordinates(block_matrix(entries[of_A], block) @ gather(coordinates[of_B], block), product[of_B], block)
    return from_planes(product, basis.coordinates)


# One strided pass over an element costs about as much as this many multiply-adds inside a matrix product.
_PASS = 20.0


def _cheapest(a: tuple[int, ...], b: tuple[int, ...], algebra: Algebra) -> str:
    """The method with the least multiply-adds and passes through memory for matrices of these shapes."""
    dim, rows, inner, columns = algebra.dim, a[-3], a[-2], b[-2]
    batch_a, batch_b = np.prod(a[:-3], dtype=float), np.prod(b[:-3], dtype=float)
    batch = max(batch_a, batch_b)
    full = batch * dim * dim * rows * inner * columns
    units = float(np.count_nonzero(algebra.table))
    costs = {
        "right": full + _PASS * batch_b * units * inner * columns,
        "left": full + _PASS * (batch_a * units * rows * inner + dim * (batch_b * inner + batch * rows) * columns),
    }
    products, entries = 0.0, 0.0
    for block in decompose(algebra):
        products += block.parts**2 * block.size**2 * block.copies
        entries += block.parts * block.size**2
    moved = batch_a * entries * rows * inner + dim * (batch_b * inner + batch * rows) * columns
    costs["blocks"] = batch * products * rows * inner * columns + _PASS * moved
    return min(costs, key=lambda method: costs[method])
