"""The kernels that training and prediction are made of, for any library that follows the array API standard.

`by_numpy` replaces most of them for NumPy, where threads and scratch memory make them faster.

All arrays of one call are of one library on one device. `d` is the number of components of a number, `p` the number of
*planes*: fixed linear combinations of the components, given by a matrix `basis` of shape (d, p).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import (
    are_together,
    as_precision,
    beside,
    concatenated,
    is_identity,
    moved,
    namespace,
    numpy_dtype,
    refused_complex,
    to_numpy,
    zeros,
)
from hyperelm._backend.workspace import alone, current_team

T = TypeVar("T")
Array = Any  # an array of the library
Basis = NDArray[np.float64]
Pair = tuple[Array, Array, float]  # matrices a and b with equally many rows, and the factor c of their product c aᵀb
Activation = Callable[[Array, int], Array]  # of numbers and the axis of their components; may overwrite them
BasisOf = Callable[[tuple[int, ...]], Basis]


class Terms(NamedTuple):
    """The products of a scheme, sorted by the plane of the result to which they add up.

    sums : for every plane s of the result, the (p, q, c) of its sum Σ c X_p W_q
    out : (d, s), from the planes of the result to its components
    """

    sums: Sequence[Sequence[tuple[int, int, float]]]
    out: Basis


class Sums(NamedTuple):
    """Sums of products of matrices.

    totals : (k, *shape), or None for zeros
    products : k lists of pairs (a, b, c), whose products c aᵀb have this shape
    shape : (rows, columns)
    """

    totals: Array | None
    products: Sequence[Sequence[Pair]]
    shape: tuple[int, int]


class Beside(NamedTuple):
    """Columns that follow the neurons of a hidden layer: the inputs, (m, D, d), and one number, (d,), or None."""

    inputs: Array | None
    constant: NDArray[np.float64] | None


class Backend:
    """The kernels, computed by the namespace of the arrays."""

    keeps_rows = False  # whether an accumulator may keep some rows, as memory for them is not scarce

    def at_work(self, multiply_adds: float) -> AbstractContextManager[None]:
        """A context for so much work, in which threads and scratch memory are kept ready."""
        return alone()  # Other libraries have threads of their own.

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called at the first use of this key and kept until `at_work` ends."""
        return current_team().once(key, make)

    # ------------------------------------------------------------------ arrays

    def real(self, array: Array, name: str) -> Array:
        """The array as float32 or float64, without a copy if it is one of them. `name` is for messages."""
        xp = namespace(array=array)
        if xp.isdtype(array.dtype, "complex floating"):
            raise refused_complex(array, name)
        return array if array.dtype in (xp.float32, xp.float64) else xp.astype(array, xp.float64)

    def float_types(self, array: Array) -> Any:
        """The types that scikit-learn's check may leave as they are; None, for all types, if it holds integers."""
        xp = namespace(array=array)
        return None if xp.isdtype(array.dtype, "integral") else [xp.float64, xp.float32]

    def in_double(self, array: Array) -> Array:
        """The array in the precision for sums over many rows: its own, because a device may lack double precision."""
        return self.real(array, "X")

    def scattered(self, columns: Array, places: NDArray[np.intp], width: int) -> Array:
        """(m, width): column c of `columns` at places[c], and zeros elsewhere."""
        m, count = columns.shape
        source = np.full(width, count)  # Every place takes its own column, or the one of zeros that is appended.
        source[places] = np.arange(count)
        padded = concatenated([columns, zeros((m, 1), columns)], axis=1)
        return namespace(columns=columns).take(padded, beside(source, columns), axis=1)

    # ------------------------------------------------------------------ sizes

    def square(self, array: Array) -> float:
        """Σ|x|². It is 0 only if all numbers are 0, and not finite if one of them is not."""
        if 0 in array.shape:
            return 0.0
        xp = namespace(array=array)
        sizes = xp.abs(array)
        largest = float(xp.max(sizes)) or 1.0  # Divided by it, all squares are within the precision.
        with np.errstate(invalid="ignore"):  # for libraries that are made of NumPy
            square = largest * largest * float(xp.sum((sizes / largest) ** 2))
        return math.ulp(0.0) if square == 0 and bool(xp.any(array != 0)) else square

    def lengths(self, array: Array, axis: int | tuple[int, ...] = -1) -> Array:
        """Euclidean norms over some axes, also where squares are beyond the precision."""
        xp, dtype = namespace(array=array), numpy_dtype(array)
        with np.errstate(over="ignore", under="ignore"):
            found = as_precision(self._norms(array, axis), dtype)
        smallest = math.sqrt(np.finfo(dtype).tiny) / float(np.finfo(dtype).eps)
        if 0 in array.shape or bool(xp.all((found > smallest) & (found < math.inf))):
            return found
        sizes = xp.max(xp.abs(array), axis=axis, keepdims=True)
        units = xp.where((sizes > 0) & xp.isfinite(sizes), sizes, xp.ones_like(sizes))
        return as_precision(xp.squeeze(units, axis=axis) * self._norms(array / units, axis), dtype)

    def _norms(self, array: Array, axis: int | tuple[int, ...]) -> Array:
        """Euclidean norms of numbers whose squares are within the precision."""
        return namespace(array=array).linalg.vector_norm(array, axis=axis)

    def support(self, numbers: Array) -> tuple[int, ...]:
        """The components that are not zero in all of the numbers (m, n, d)."""
        used = namespace(numbers=numbers).any(numbers != 0, axis=(0, 1))
        return tuple(np.flatnonzero(to_numpy(used)).tolist())

    # ------------------------------------------------------------------ planes

    def planes(self, numbers: Array, basis: Basis, memory: str | None = None) -> Array:
        """The planes of numbers, (..., d) -> (p, ...), perhaps as a view of them.

        `memory` names the scratch memory for the planes of a chunk, (m, n, d). The next planes there overwrite them.
        """
        xp, (d, p), shape = namespace(numbers=numbers), basis.shape, numbers.shape[:-1]
        image = xp.reshape(xp.moveaxis(numbers, -1, 0), (d, math.prod(shape)))
        image = image if is_identity(basis) else beside(basis.T, numbers) @ image
        return xp.reshape(image, (p, *shape))

    def examined(self, numbers: Array, basis_of: BasisOf, memory: str) -> tuple[tuple[int, ...], Array, float | None]:
        """The support of a chunk, (m, n, d), its planes by the basis for that support, and Σx².

        Where that takes one pass more, the last result is None.
        """
        support = self.support(numbers)
        return support, self.planes(numbers, basis_of(support)), None

    def from_planes(self, image: Array, basis: Basis) -> Array:
        """The numbers Σ_p image_p basis[:, p], (p, ...) -> (..., d)."""
        xp, (p, *shape) = namespace(image=image), image.shape
        numbers = xp.reshape(image, (p, math.prod(shape))).T @ beside(basis.T, image)
        return xp.reshape(numbers, (*shape, len(basis)))

    def assembled(self, image: Array, shape: tuple[int, int, int]) -> Array:
        """Planes as the submatrices of one matrix, real or complex.

        `shape` is (n, k, parts): the matrix has n by k submatrices, and each of them takes one plane, or two planes if
        it is complex. So planes (n k parts, ..., M, L) give a matrix (..., n M, k L).
        """
        xp, (n, k, parts), (*batch, M, L) = namespace(image=image), shape, image.shape[1:]
        entries = xp.reshape(image, (n, k, parts, *batch, M, L))
        matrix = entries[:, :, 0, ...]
        if parts == 2:
            dtype = xp.complex64 if image.dtype == xp.float32 else xp.complex128
            matrix = xp.astype(matrix, dtype) + 1j * xp.astype(entries[:, :, 1, ...], dtype)
        return xp.reshape(xp.moveaxis(matrix, (0, 1), (-4, -2)), (*batch, n * M, k * L))

    def disassemble(self, matrix: Array, image: Array, at: slice, shape: tuple[int, int, int]) -> None:
        """Write a matrix to its planes image[at]: the inverse of `assembled`."""
        xp, (n, k, parts), (*batch, M, L) = namespace(matrix=matrix), shape, image.shape[1:]
        source = xp.reshape(matrix, (*batch, n, M, k, L))
        for part, values in enumerate((xp.real(source), xp.imag(source)) if parts == 2 else (source,)):
            for i, j in np.ndindex(n, k):
                image[at.start + parts * (k * i + j) + part, ...] = values[..., i, :, j, :]

    def multiplied(self, x: Array, y: Array, table: NDArray[np.float64]) -> Array:
        """The products of numbers, (..., d), by the small matrices of left multiplication."""
        xp = namespace(x=x, y=y)
        left = xp.moveaxis(xp.tensordot(x, beside(table, x), axes=1), -1, -2)
        return xp.matmul(left, y[..., None])[..., 0]

    def spread(self, numbers: Array, table: NDArray[np.float64], *, rows_last: bool) -> Array:
        """Each number a of a matrix, (..., M, L, d), replaced by the d x d matrix Σ_i a_i table[i], or its transpose.

        The result is (..., M d, L d). With `rows_last` it holds the matrices themselves, else their transposes.
        """
        xp, (*batch, M, L, d) = namespace(numbers=numbers), numbers.shape
        matrices = xp.tensordot(numbers, beside(table if rows_last else table.swapaxes(1, 2), numbers), axes=1)
        return xp.reshape(xp.moveaxis(matrices, -2, -3), (*batch, M * d, L * d))

    # ------------------------------------------------------------------ layers

    def activate(self, activation: Any, array: Array) -> Array:
        """The activation of every component. A built-in one may overwrite `array`, a callable of the user may not."""
        xp = namespace(array=array)
        formula = getattr(activation, "formula", None)
        activated = activation(array) if formula is None else formula(array, xp)
        if not are_together(array, activated):
            raise ValueError(
                f"`activation` must give arrays of {xp.__name__} where it gets them, got {type(activated)}."
            )
        return activated

    def hidden_by_operator(
        self, numbers: Array, operator: Array, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        """[f(x Φ + b), x, e], (m, width, d), of numbers x, (m, D, d), and real matrices Φ, (d, D d, L), one for each
        component of the result."""
        xp, (m, D, d) = namespace(numbers=numbers), numbers.shape
        h = xp.moveaxis(xp.reshape(numbers, (m, D * d)) @ operator, 0, -1)
        return _layer(h, bias, activation, beside)

    def hidden_by_terms(
        self, image: Array, weights: Array, terms: Terms, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        """The same from the planes of x, (p, m, D), and of the weights, (q, L, D), by the products of a scheme."""
        shape = (image.shape[1], weights.shape[1])
        products = [[(image[p, ...], weights[q, ...].T, c) for p, q, c in pairs] for pairs in terms.sums]
        planes = namespace(image=image).stack([_summed(pairs, shape, image) for pairs in products])
        return _layer(self.from_planes(planes, terms.out), bias, activation, beside)

    def weight_planes(self, weights: NDArray[Any], basis: Basis, key: Any, reference: Array) -> Array:
        """The planes of weights, (D, L, d) -> (q, L, D), where `reference` lives, kept under `key` during a pass."""
        return self.kept(key, lambda: self.planes(beside(weights.swapaxes(0, 1), reference), basis))

    # ------------------------------------------------------------------ sums over rows

    def add_products(self, reference: Array, *sums: Sums) -> list[Array]:
        """Add Σ c aᵀb of every list of pairs (a, b, c) to its total, and return the new totals in order.

        Totals that are None begin as zeros, where `reference` lives and with its precision. Other totals may be
        overwritten. If all pairs of a list are squares (a is b), only the symmetric part (S + Sᵀ)/2 of the new total S
        is defined.
        """
        xp, results = namespace(reference=reference), []
        for totals, products, shape in sums:
            summed = [_summed([(a.T, b, c) for a, b, c in pairs], shape, reference) for pairs in products]
            new = xp.stack(summed) if summed else zeros((0, *shape), reference)
            results.append(new if totals is None else moved(totals, reference) + new)
        return results

    def fold(self, R: Array, qt: Array, A: Array, t: Array) -> tuple[Array, Array, float]:
        """Fold rows A and targets t into a QR decomposition. R and qt may be of another library: they move to A.

        The result is the new R, the new Qᴴt, and the sum of squares of what no solution explains.
        """
        xp = namespace(A=A, t=t)
        stacked, targets = (xp.concat([moved(part, new), new]) for part, new in ((R, A), (qt, t)))
        Q, R = xp.linalg.qr(stacked)
        adjoint = xp.matrix_transpose(xp.conj(Q) if xp.isdtype(Q.dtype, "complex floating") else Q)
        qt = adjoint @ targets
        return R, qt, self.square(targets - Q @ qt)


def _layer(h: Array, bias: Array | None, activation: Activation, columns: Beside) -> Array:
    """[f(h + b), x, e], (m, width, d)."""
    parts = [activation(h if bias is None else h + moved(bias, h), -1)]
    if columns.inputs is not None:
        parts.append(columns.inputs)
    if columns.constant is not None:
        parts.append(zeros((h.shape[0], 1, h.shape[2]), h) + beside(columns.constant, h))
    return concatenated(parts, axis=1)


def _summed(pairs: Sequence[tuple[Array, Array, float]], shape: tuple[int, int], reference: Array) -> Array:
    """Σ c ab, of this shape."""
    total = zeros(shape, reference)
    for a, b, c in pairs:
        product = a @ b
        total = total + (product if c == 1 else c * product)
    return total
