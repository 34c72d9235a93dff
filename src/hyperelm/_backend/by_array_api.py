"""The kernels for any other library, by the array API standard: the library has its own ways to be fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import (
    are_together,
    beside,
    concatenated,
    moved,
    namespace,
    numpy_dtype,
    refused_complex,
    to_numpy,
    zeros,
)
from hyperelm._backend.by_numpy import is_identity
from hyperelm._backend.interface import Activation, Backend, Basis, BasisOf, Beside, Examined, Sums, Terms
from hyperelm._backend.workspace import at_work

Array = Any


class ArrayApiBackend(Backend):
    """Arrays of a library that follows the standard, or torch tensors."""

    def at_work(self, multiply_adds: float) -> AbstractContextManager[None]:
        return at_work(0.0)  # the library has threads of its own

    # ------------------------------------------------------------------ arrays

    def real(self, array: Array, name: str) -> Array:
        xp = namespace(array=array)
        if xp.isdtype(array.dtype, "complex floating"):
            raise refused_complex(array, name)
        return array if array.dtype in (xp.float32, xp.float64) else xp.astype(array, xp.float64)

    def is_complex(self, array: Array) -> bool:
        return bool(namespace(array=array).isdtype(array.dtype, "complex floating"))

    def float_types(self, array: Array) -> Any:
        xp = namespace(array=array)
        return None if xp.isdtype(array.dtype, "integral") else [xp.float64, xp.float32]

    def in_double(self, array: Array) -> Array:
        return self.real(array, "X")

    def contiguous(self, array: Array) -> Array:
        return array

    def scattered(self, columns: Array, places: NDArray[np.intp], width: int) -> Array:
        m, count = columns.shape
        taken = np.full(width, count)  # every place takes its column, or the last, of zeros
        taken[places] = np.arange(count)
        padded = concatenated([columns, zeros((m, 1), columns)], axis=1)
        return namespace(columns=columns).take(padded, beside(taken, columns), axis=1)

    # ------------------------------------------------------------------ sizes

    def square(self, array: Array) -> float:
        if 0 in array.shape:
            return 0.0
        xp = namespace(array=array)
        sizes = xp.abs(array)
        largest = float(xp.max(sizes)) or 1.0  # in units of which squares are within the precision
        with np.errstate(invalid="ignore"):  # of a library that is made of NumPy
            square = largest * largest * float(xp.sum((sizes / largest) ** 2))
        return math.ulp(0.0) if square == 0 and bool(xp.any(array != 0)) else square

    def lengths(self, array: Array, axis: int | tuple[int, ...] = -1) -> Array:
        xp, info = namespace(array=array), np.finfo(numpy_dtype(array))
        with np.errstate(over="ignore", under="ignore"):
            found = xp.linalg.vector_norm(array, axis=axis)
        if bool(xp.all((found > math.sqrt(info.tiny) / float(info.eps)) & (found < math.inf))):
            return found
        sizes = xp.max(xp.abs(array), axis=axis, keepdims=True)
        units = xp.where((sizes > 0) & xp.isfinite(sizes), sizes, xp.ones_like(sizes))
        return xp.squeeze(units, axis=axis) * xp.linalg.vector_norm(array / units, axis=axis)

    def support(self, numbers: Array) -> tuple[int, ...]:
        used = namespace(numbers=numbers).any(numbers != 0, axis=(0, 1))
        return tuple(np.flatnonzero(to_numpy(used)).tolist())

    # ------------------------------------------------------------------ planes

    def planes(self, numbers: Array, basis: Basis) -> Array:
        xp, (d, p), shape = namespace(numbers=numbers), basis.shape, numbers.shape[:-1]
        image = xp.reshape(xp.moveaxis(numbers, -1, 0), (d, math.prod(shape)))
        image = image if is_identity(basis) else beside(basis.T, numbers) @ image
        return xp.reshape(image, (p, *shape))

    def chunk_planes(self, numbers: Array, basis: Basis, memory: str) -> Array:
        return self.planes(numbers, basis)

    def examined(self, numbers: Array, basis_of: BasisOf, memory: str) -> Examined:
        support = self.support(numbers)
        return Examined(support, self.planes(numbers, basis_of(support)), None)

    def from_planes(self, image: Array, basis: Basis) -> Array:
        xp, (p, *shape) = namespace(image=image), image.shape
        numbers = xp.reshape(image, (p, math.prod(shape))).T @ beside(basis.T, image)
        return xp.reshape(numbers, (*shape, len(basis)))

    def assembled(self, image: Array, shape: tuple[int, int, int]) -> Array:
        xp, (n, k, parts), (*batch, M, L) = namespace(image=image), shape, image.shape[1:]
        entries = xp.reshape(image, (n, k, parts, *batch, M, L))
        if parts == 2:
            dtype = xp.complex64 if image.dtype == xp.float32 else xp.complex128
            matrix = xp.astype(entries[:, :, 0, ...], dtype) + 1j * xp.astype(entries[:, :, 1, ...], dtype)
        else:
            matrix = entries[:, :, 0, ...]
        return xp.reshape(xp.moveaxis(matrix, (0, 1), (-4, -2)), (*batch, n * M, k * L))

    def disassemble(self, matrix: Array, image: Array, at: slice, shape: tuple[int, int, int]) -> None:
        xp, (n, k, parts), (*batch, M, L) = namespace(matrix=matrix), shape, image.shape[1:]
        source = xp.moveaxis(xp.reshape(matrix, (*batch, n, M, k, L)), (-4, -2), (0, 1))
        both = [xp.real(source), xp.imag(source)] if parts == 2 else [source]
        image[at, ...] = xp.reshape(xp.stack(both, axis=2), (n * k * parts, *batch, M, L))

    def spread(self, numbers: Array, table: NDArray[np.float64], *, rows_last: bool) -> Array:
        xp, (*batch, M, L, d) = namespace(numbers=numbers), numbers.shape
        matrices = xp.tensordot(numbers, beside(table if rows_last else table.swapaxes(1, 2), numbers), axes=1)
        return xp.reshape(xp.moveaxis(matrices, -2, -3), (*batch, M * d, L * d))

    # ------------------------------------------------------------------ layers

    def activate(self, activation: Any, array: Array) -> Array:
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
        xp, (m, D, d) = namespace(numbers=numbers), numbers.shape
        h = xp.reshape(numbers, (m, D * d)) @ operator
        h = xp.reshape(h, (m, h.shape[1] // d, d))
        return _with_columns(h if bias is None else h + moved(bias, h), activation, beside)

    def hidden_by_terms(
        self, image: Array, weights: Array, terms: Terms, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        xp = namespace(image=image)
        shape = (image.shape[1], weights.shape[1])
        products = [[(image[p, ...], weights[q, ...].T, c) for p, q, c in pairs] for pairs in terms.sums]
        h = self.from_planes(xp.stack([_summed(pairs, shape, image) for pairs in products]), terms.out)
        return _with_columns(h if bias is None else h + moved(bias, h), activation, beside)

    def weight_planes(self, weights: NDArray[Any], basis: Basis, key: Any, reference: Array) -> Array:
        return self.kept(key, lambda: self.planes(beside(weights.swapaxes(0, 1), reference), basis))

    # ------------------------------------------------------------------ sums over rows

    def add_products(self, reference: Array, *sums: Sums) -> list[Array]:
        xp, results = namespace(reference=reference), []
        for totals, products, shape in sums:
            by_columns = [[(a.T, b, c) for a, b, c in pairs] for pairs in products]
            summed = [_summed(pairs, shape, reference) for pairs in by_columns]
            new = xp.stack(summed) if summed else zeros((0, *shape), reference)
            results.append(new if totals is None else moved(totals, reference) + new)
        return results

    def fold(self, R: Array, qt: Array, A: Array, t: Array) -> tuple[Array, Array, float]:
        xp = namespace(A=A, t=t)
        stacked, targets = (xp.concat([moved(part, new), new]) for part, new in ((R, A), (qt, t)))
        Q, R = xp.linalg.qr(stacked)
        adjoint = xp.matrix_transpose(xp.conj(Q) if xp.isdtype(Q.dtype, "complex floating") else Q)
        qt = adjoint @ targets
        return R, qt, self.square(targets - Q @ qt)


def _with_columns(h: Array, activation: Activation, beside_it: Beside) -> Array:
    """[f(h), x, e], (m, width, d)."""
    parts = [activation(h)]
    if beside_it.inputs is not None:
        parts.append(beside_it.inputs)
    if beside_it.constant is not None:
        parts.append(zeros((h.shape[0], 1, h.shape[2]), h) + beside(beside_it.constant, h))
    return concatenated(parts, axis=1)


def _summed(pairs: Sequence[tuple[Array, Array, float]], shape: tuple[int, int], reference: Array) -> Array:
    """Σ c ab, of this shape."""
    total = zeros(shape, reference)
    for a, b, c in pairs:
        product = a @ b
        total = total + (product if c == 1 else c * product)
    return total


ARRAY_API = ArrayApiBackend()
