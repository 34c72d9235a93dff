"""The kernels for NumPy: work is cut into pieces that fit into a cache, and the current team of threads takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hyperelm._backend.arrays import check_unmasked, is_identity, refused_complex, to_numpy
from hyperelm._backend.by_array_api import Activation, Backend, Basis, BasisOf, Beside, Pair, Sums, Terms
from hyperelm._backend.single_products import single_products
from hyperelm._backend.workspace import Team, at_work, current_team, cuts, pieces, scratch

Array = NDArray[Any]
S = TypeVar("S")
Factors = tuple[Array, Array, float]  # matrices a and b and the factor c of their product c ab

_DENSE = 4  # a table with more units than this in an average entry of a left matrix is dense
_NARROWEST = 512  # columns; cutting a product into narrower pieces costs more than another thread saves
_NUMBERS = 2**17  # how many squares are summed at a time
_PANEL = 64  # columns that LAPACK factors at a time
_ROWS = 64  # the most rows in one piece, so that it fits the cache
_UNPACKED = 10**6  # the most multiplications in one piece; OpenBLAS copies the factors of larger products


class NumpyBackend(Backend):
    """Arrays of NumPy."""

    keeps_rows = True

    def at_work(self, multiply_adds: float) -> AbstractContextManager[None]:
        return at_work(multiply_adds)

    # ------------------------------------------------------------------ arrays

    def real(self, array: Any, name: str) -> Array:
        check_unmasked(array, name)
        array = np.asarray(array)
        if array.dtype.kind == "c":
            raise refused_complex(array, name)
        if array.dtype in (np.float32, np.float64):
            return array
        if array.dtype.kind not in "biuf":
            raise TypeError(f"`{name}` must be an array of real numbers, got dtype {array.dtype}.")
        return array.astype(np.float64)

    def float_types(self, array: Any) -> Any:
        return None if isinstance(array, np.ndarray) and array.dtype.kind in "iu" else [np.float64, np.float32]

    def in_double(self, array: Array) -> Array:
        return np.asarray(array, dtype=np.float64)

    def scattered(self, columns: Array, places: NDArray[np.intp], width: int) -> Array:
        flat = np.zeros((len(columns), width), dtype=columns.dtype)
        flat[:, places] = columns
        return flat

    # ------------------------------------------------------------------ sizes

    def square(self, array: Array) -> float:
        if np.iscomplexobj(array):
            return self.square(np.stack(real_parts(array)))
        ordered = array.transpose(np.argsort(array.strides)[::-1])
        if ordered.flags.c_contiguous:  # in the order of memory, some numbers at a time
            square = float(sum(_by_rows(ordered.reshape(-1), sum_of_squares, current_team(), _NUMBERS)))
        else:
            square = float(sum(_by_rows(array, sum_of_squares, current_team())))
        return math.ulp(0.0) if square == 0 and array.any() else square

    def lengths(self, array: Array, axis: int | tuple[int, ...] = -1) -> Array:
        return super().lengths(array, axis)[()]  # one length is a number, not an array without axes

    def _norms(self, array: Array, axis: int | tuple[int, ...]) -> Array:
        return np.sqrt(np.add.reduce(np.square(array), axis=axis, dtype=np.float64))

    def support(self, numbers: Array) -> tuple[int, ...]:
        team = current_team()
        return tuple(
            k
            for k in range(numbers.shape[-1])
            if numbers[:1, :, k].any() or any(_by_rows(numbers[:, :, k], np.any, team))
        )

    # ------------------------------------------------------------------ planes

    def planes(self, numbers: Array, basis: Basis, memory: str | None = None) -> Array:
        if memory is None:
            return _planes(numbers, basis)
        return _formed(numbers, basis, memory, current_team(), len)[0]

    def examined(self, numbers: Array, basis_of: BasisOf, memory: str) -> tuple[tuple[int, ...], Array, float]:
        """The support of the first row is a guess. If a later row has more components, planes are formed again."""
        support = self.support(numbers[:1])

        def look(part: Array) -> tuple[list[int], float]:
            """The components outside of the support that are not zero, and Σx²."""
            outside = (k for k in range(part.shape[-1]) if k not in support)
            return [k for k in outside if part[..., k].any()], sum_of_squares(part)

        while True:
            image, seen = _formed(numbers, basis_of(support), memory, current_team(), look)
            missing = {k for found, _ in seen for k in found}
            if not missing:
                return support, image, sum(square for _, square in seen)
            support = tuple(sorted({*support, *missing}))

    def assembled(self, image: Array, shape: tuple[int, int, int]) -> Array:
        if len(image) == 1:
            return np.asarray(image[0])
        (n, k, parts), (*batch, M, L) = shape, image.shape[1:]
        dtype = np.result_type(image.dtype, np.complex64) if parts == 2 else image.dtype
        matrix = scratch((*batch, n, M, k, L), dtype, zeros=False)
        for target, part in zip(real_parts(matrix), np.moveaxis(image.reshape(n, k, parts, *batch, M, L), 2, 0)):
            target[...] = np.moveaxis(part, (0, 1), (-4, -2))
        return matrix.reshape(*batch, n * M, k * L)

    def multiplied(self, x: Array, y: Array, table: NDArray[np.float64]) -> Array:
        found = single_products(x, y, table)
        return np.asarray(super().multiplied(x, y, table)) if found is None else found

    def spread(self, numbers: Array, table: NDArray[np.float64], *, rows_last: bool) -> Array:
        """One strided pass for each unit in each entry of the small matrices. Only a dense table has many of them."""
        *batch, M, L, d = numbers.shape
        if np.count_nonzero(table) > _DENSE * d**2:
            return super().spread(numbers, table, rows_last=rows_last)
        coefficients, out = table.astype(numbers.dtype), np.empty((*batch, M, d, L, d), dtype=numbers.dtype)
        for j, k in np.ndindex(d, d):
            entry = out[..., :, j, :, k] if rows_last else out[..., :, k, :, j]
            units = np.flatnonzero(table[:, j, k])
            if len(units) == 0:
                entry[...] = 0
            for n, i in enumerate(units):
                if n == 0:
                    np.multiply(numbers[..., i], coefficients[i, j, k], out=entry)
                else:
                    entry += coefficients[i, j, k] * numbers[..., i]
        return out.reshape(*batch, M * d, L * d)

    # ------------------------------------------------------------------ layers

    def activate(self, activation: Any, array: Array) -> Array:
        return np.asarray(activation(array))

    def hidden_by_operator(
        self, numbers: Array, operator: Array, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        team, m, (d, _, L) = current_team(), len(numbers), operator.shape
        h = team.array("narrow", (d, m, L), numbers.dtype)
        np.matmul(numbers.reshape(m, -1), operator, out=h)
        if bias is not None:
            h += bias.T[:, None]
        H = team.array("H", (d, m, _width(L, beside)), numbers.dtype)
        H[:, :, :L] = activation(h, 0)
        return _put_beside(H, L, beside)

    def hidden_by_terms(
        self, image: Array, weights: Array, terms: Terms, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        """First the products of planes; then the components, bias and activation of some neurons at a time.

        The layer is (d, width, m) in memory: the numbers of one neuron lie together. BLAS then takes the left factor of
        HᵀT and HᵀH without rearranging it, which makes these products 4 and 8 % faster.
        """
        team, (_, L, _), m, out = current_team(), weights.shape, image.shape[1], terms.out.astype(image.dtype)
        H = team.array("H", (len(out), _width(L, beside), m), image.dtype)
        h, is_direct = H[:, :L], is_identity(out)
        # Planes of the product that are its components need no memory of their own.
        y = h if is_direct else team.array("narrow", (len(terms.sums), L, m), image.dtype)

        def finish(neurons: slice) -> None:
            planes, target = y[:, neurons], h[:, neurons]
            x = target
            if not is_direct:
                x = team.array("finish", target.shape, target.dtype, of_thread=True)
                np.matmul(out, planes.reshape(len(planes), -1), out=x.reshape(len(x), -1))
            if bias is not None:
                x += bias[neurons].T[:, :, None]
            activated = activation(x, 0)
            if activated is not target:
                target[...] = activated

        tasks = []
        longest_first = sorted(enumerate(terms.sums), key=lambda numbered: len(numbered[1]), reverse=True)
        for (s, products), cut in zip(longest_first, cuts(len(terms.sums), team.threads)):
            for neurons in pieces(L, cut):
                factors = [(weights[q, neurons], image[p].T, c) for p, q, c in products]
                tasks.append(partial(_sum_products, factors, y[s, neurons], team, fresh=True))
        team.run(tasks)
        team.map(finish, chunks(L, _cached_rows(m, out)))
        return _put_beside(H.swapaxes(1, 2), L, beside)

    def weight_planes(self, weights: NDArray[Any], basis: Basis, key: Any, reference: Array) -> Array:
        """Formed on all threads, once in a pass; `reference` matters to other libraries only."""

        def form() -> Array:
            team, by_neuron = current_team(), weights.swapaxes(0, 1)
            image = scratch((basis.shape[1], *by_neuron.shape[:2]), by_neuron.dtype)
            neuron_slices = chunks(len(by_neuron), _cached_rows(len(weights), basis))
            team.run([partial(_planes, by_neuron[at], basis, out=image[:, at]) for at in neuron_slices])
            return image

        return self.kept(key, form)

    # ------------------------------------------------------------------ sums over rows

    def add_products(self, reference: Array, *sums: Sums) -> list[Array]:
        team, results = current_team(), []
        work: list[tuple[Sequence[Factors], Array, bool]] = []
        for totals, products, shape in sums:
            fresh = totals is None
            if totals is None:
                totals = np.empty((len(products), *shape), reference.dtype)
            results.append(totals)
            used = sum(map(bool, products))
            cut = min(-(-team.threads // max(1, used)), max(1, shape[1] // _NARROWEST))
            for total, pairs in zip(totals, products):
                # One sum alone would leave threads idle, so it is cut into corners.
                if pairs and used == 1 and all(a is b for a, b, _ in pairs):
                    work.extend((factors, corner, fresh) for factors, corner in _corners(pairs, total))
                    continue
                for at in pieces(shape[1], cut):
                    work.append(([(a.T, b[:, at], c) for a, b, c in pairs], total[:, at], fresh))
        # The longest first, so that all threads end at the same time.
        work.sort(key=lambda task: len(task[0]) * task[1].size, reverse=True)
        team.run([partial(_sum_products, pairs, total, team, fresh=fresh) for pairs, total, fresh in work])
        return results

    def fold(self, R: Any, qt: Any, A: Array, t: Array) -> tuple[Array, Array, float]:
        """LAPACK's tpqrt uses that R is triangular."""
        R, qt = (np.asfortranarray(to_numpy(part)) for part in (R, qt))
        tpqrt, tpmqrt = lapack.get_lapack_funcs(("tpqrt", "tpmqrt"), (R,))
        R, reflectors, t_factor, info = tpqrt(0, min(_PANEL, len(R)), R, A, overwrite_a=True)
        assert info == 0, info
        if t.shape[1]:
            adjoint = "C" if np.iscomplexobj(R) else "T"
            qt, t, info = tpmqrt(0, reflectors, t_factor, qt, t, trans=adjoint, overwrite_a=True)
            assert info == 0, info
        return R, qt, norm_square(t)


# ---------------------------------------------------------------------- arrays


def real_parts(array: Array) -> tuple[Array, ...]:
    """The real and the imaginary part of a complex array; a real array alone."""
    return (array.real, array.imag) if np.iscomplexobj(array) else (array,)


def chunks(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` rows."""
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def _by_rows(array: Array, function: Callable[[Array], S], team: Team, size: int = 256) -> list[S]:
    """`function` of every `size` rows of an array, in order."""
    return team.map(function, [array[at] for at in chunks(len(array), size)])


# ---------------------------------------------------------------------- sizes


def sum_of_squares(array: Array) -> float:
    """Σx² of real numbers in one pass; NaN or infinite where a number is or where it is beyond double precision."""
    x, info = array.reshape(-1), np.finfo(array.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.dot(x, x))
        if array.dtype == np.float32 and not float(info.tiny / info.eps) < square < np.inf:
            x = x.astype(np.float64)  # for squares beyond single precision, as of targets in tiny units
            square = float(np.dot(x, x))
    return square


def norm_square(array: Array) -> float:
    """Σ|x|² of real or complex numbers, in double precision."""
    with np.errstate(over="ignore"):  # infinity is refused where squares are compared
        return float(np.linalg.norm(array.astype(np.result_type(array, np.float64), copy=False)) ** 2)


# ---------------------------------------------------------------------- planes


def _planes(x: Array, basis: Basis, out: Array | None = None) -> Array:
    """The planes of numbers, (..., d) -> (p, ...), in one product.

    In memory the components may be the last axis or the first. The planes are in `out` if that is given. Otherwise they
    are a view of x where they are its components and lie as a matrix product wants them.
    """
    d, p = basis.shape
    if out is None and is_identity(basis) and x.strides[-2] == x.itemsize:
        return np.moveaxis(x, -1, 0)
    used = np.flatnonzero(basis.any(axis=1))
    kept = slice(used[0], used[-1] + 1) if len(used) else slice(0, 1)  # without a real part that is known to be zero
    components = (x.reshape(-1, d).T if x.flags.c_contiguous else np.moveaxis(x, -1, 0))[kept]
    flat = None if out is None else out.reshape(p, -1)
    image = np.matmul(basis[kept].T.astype(x.dtype), components.reshape(len(components), -1), out=flat)
    return image.reshape(p, *x.shape[:-1]) if out is None else out


def _formed(x: Array, basis: Basis, memory: str, team: Team, look: Callable[[Array], S]) -> tuple[Array, list[S]]:
    """The planes of a chunk x, and what `look` sees of its rows, some at a time, while they are in cache.

    Planes lie in memory as x does: row by row, or column by column.
    """
    if x.strides[0] < x.strides[1]:
        image, seen = _formed(x.swapaxes(0, 1), basis, memory, team, look)
        return image.swapaxes(1, 2), seen
    size = _cached_rows(x.shape[1], basis)
    if is_identity(basis) and x.strides[1] == x.itemsize:
        return _planes(x, basis), _by_rows(x, look, team, size)
    image = team.array(memory, (basis.shape[1], *x.shape[:2]), x.dtype)

    def form(at: slice) -> S:
        _planes(x[at], basis, out=image[:, at])
        return look(x[at])

    return image, team.map(form, chunks(len(x), size))


def _cached_rows(columns: int, basis: Array) -> int:
    """How many rows of so many columns to take at a time through a linear map of their components."""
    return max(1, min(_ROWS, _UNPACKED // max(1, columns * basis.size)))


# ---------------------------------------------------------------------- layers and sums


def _width(L: int, beside: Beside) -> int:
    return L + (0 if beside.inputs is None else beside.inputs.shape[1]) + (beside.constant is not None)


def _put_beside(H: Array, L: int, beside: Beside) -> Array:
    """The layer (d, m, width) as (m, width, d), its columns behind the neurons filled in."""
    if beside.inputs is not None:
        H[:, :, L : L + beside.inputs.shape[1]] = np.moveaxis(beside.inputs, -1, 0)
    if beside.constant is not None:
        H[:, :, -1] = beside.constant[:, None]
    return np.moveaxis(H, 0, -1)


def _sum_products(factors: Sequence[Factors], total: Array, team: Team, *, fresh: bool = False) -> None:
    """total += Σ c ab, or total = Σ c ab if `fresh`."""
    if fresh and not factors:
        total[...] = 0
    for n, (a, b, c) in enumerate(factors):
        begins = fresh and n == 0
        product = total if begins else team.array("product", total.shape, total.dtype, of_thread=True)
        np.matmul(a, b, out=product)
        if c != 1:
            product *= total.dtype.type(c)
        if not begins:
            total += product


def _corners(pairs: Sequence[Pair], total: Array) -> Iterator[tuple[list[Factors], Array]]:
    """The four corners of a sum of squares.

    Only S + Sᵀ is ever used. So the upper right corner is computed once, with the factor 2, and the lower left one
    is zero, which saves a quarter of the work.
    """
    first, last = pieces(len(total), 2) if len(total) > 1 else (slice(0, 1), slice(1, 1))
    yield [], total[last, first]
    for rows, columns, times in ((first, last, 2.0), (first, first, 1.0), (last, last, 1.0)):
        yield [(a[:, rows].T, b[:, columns], times * c) for a, b, c in pairs], total[rows, columns]
