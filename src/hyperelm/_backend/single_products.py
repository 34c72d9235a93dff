"""Products of many numbers, one by one: sums of products of planes, in pieces that fit the cache.

A plane is one component of all numbers. Component k of xy is Σ t[i, j, k] x_i y_j, so plane k of the products is a sum
of products of planes, one for each entry of the table.

NumPy multiplies two complex planes in one pass, where real planes take six: four products and two sums. So components
are taken in pairs, as real and imaginary parts, where the table permits it. A quaternion is z + wj with z = x_0 + x_1 i
and w = x_2 + x_3 i, and the product of two is

    (z + wj)(u + vj) = (zu - w v̄) + (zv + w ū)j.

In the Klein four-group all units have the square 1, and each component is a part of a complex sum:

    (xy)_0 = Re(z̄u + w̄v),  (xy)_1 = Im(zu + wv),  (xy)_2 = Re(z̄v + w̄u),  (xy)_3 = Im(zv + wu).

Whether one of these two ways is possible, and with which pairs, is found from the table alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Table = NDArray[np.float64]
Units = tuple[int, ...] | tuple[int | None, int | None]
Term = tuple[int, int, float]  # i, j and c of the product c x_i y_j of two planes
Step = tuple[np.ufunc, Any, Any, Array]  # a function, its two arguments and its result
Target = tuple[Callable[[Array], Array], Array]  # which part of a plane is written, and where

_FEWEST = 512  # products for each dimension, from which on complex planes are faster than small matrices
_FEWEST_REAL = 8192  # products, from which on real planes are used
_PIECE = 2**17  # bytes of a plane in one piece

# With z = a + ib and u = c + id: the coefficients of ac, ad, bc and bd in zu, zū, z̄u and z̄ū,
_PRODUCTS = np.array([np.outer([1, s], [1, t]).ravel() for s in (1j, -1j) for t in (1j, -1j)])
# and in Re zu, Re z̄u, Im zu and Im z̄u. Both matrices have orthogonal rows, so scalar products find coefficients.
_PARTS = np.array([[1, 0, 0, -1], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, -1, 0]])


def single_products(x: Array, y: Array, table: Table) -> Array | None:
    """The products of numbers (..., d), or None where the small matrices of left multiplication are faster.

    These are faster for few numbers, and for tables with many entries. Complex planes add in another order than real
    planes do. So where one of their sums overflows, or is ∞ - ∞, the sums of real planes decide.
    """
    shape, dim = np.broadcast_shapes(x.shape, y.shape), len(table)
    count = math.prod(shape[:-1])
    if count < min(_FEWEST * dim, _FEWEST_REAL) or np.count_nonzero(table) > 2 * dim**2:
        return None
    plan = plan_for(table)
    if not plan.is_complex and count < _FEWEST_REAL:
        return None
    x, y = (np.broadcast_to(numbers, shape).reshape(-1, dim) for numbers in (x, y))
    if plan.is_complex:
        try:
            with np.errstate(over="raise", invalid="raise"):
                return by_plan(x, y, plan).reshape(shape)
        except FloatingPointError:
            plan = by_components(table)
    return by_plan(x, y, plan).reshape(shape)


# ---------------------------------------------------------------------- plans


class Plan(NamedTuple):
    """How to multiply: the planes of numbers, and the sums of products of planes that are planes of the result.

    A plane has one unit, or two if it is complex: those of its real and its imaginary part. Of n planes, the conjugate
    of plane i is plane n + i. The parts of a sum go to units in the same way. A part that is no component goes to None.
    """

    planes: list[tuple[int, ...]]
    sums: list[tuple[Units, list[Term]]]

    @property
    def is_complex(self) -> bool:
        return len(self.planes[0]) == 2


def plan_for(table: Table) -> Plan:
    """The plan with the fewest passes through memory that the table permits."""
    return _plan_for(table.tobytes(), len(table))


@lru_cache(maxsize=64)
def _plan_for(table: bytes, dim: int) -> Plan:
    t = np.frombuffer(table).reshape(dim, dim, dim)
    plans = [plan for pairs in _pairings(t) if (plan := _by_pairs(t, pairs))]
    return min(plans, key=_n_apart) if plans else _by_parts(t) or by_components(t)


def by_components(table: Table) -> Plan:
    """A real plane for each component. This works for every table."""
    return Plan([(k,) for k in range(len(table))], [((k,), _terms(t)) for k, t in enumerate(np.moveaxis(table, 2, 0))])


def _by_pairs(table: Table, pairs: NDArray[np.intp]) -> Plan | None:
    """A complex plane for each pair of components: a sum of products c zu, c zū, c z̄u and c z̄ū.

    Each pair of x, of y and of the result may have one of these products between them, with a real c. With more of them
    there would be as much to do as with real planes, and the answer is None.
    """
    n, units = len(pairs), [(i, j) for i, j in pairs.tolist()]
    t = table[np.ix_(*[pairs.ravel()] * 3)].reshape(n, 2, n, 2, n, 2)
    values = (t[..., 0] + 1j * t[..., 1]).transpose(4, 0, 2, 1, 3).reshape(n, n, n, 4)
    c = values @ _PRODUCTS.conj().T / 4
    if np.any(c.imag) or np.any(np.count_nonzero(c, axis=-1) > 1):
        return None
    of_planes = c.real.reshape(n, n, n, 2, 2).transpose(0, 3, 1, 4, 2).reshape(n, 2 * n, 2 * n)
    return Plan([*units], [(pair, _terms(of_pair)) for pair, of_pair in zip(units, of_planes)])


def _by_parts(table: Table) -> Plan | None:
    """A complex plane for each pair of neighbours. Each component is the real or the imaginary part of a sum.

    Each pair of x and of y may have one of the products c zu and c z̄u in that sum, or the answer is None.
    """
    dim, n = len(table), len(table) // 2
    if dim % 2:
        return None
    values = table.reshape(n, 2, n, 2, dim).transpose(4, 0, 2, 1, 3).reshape(dim, n, n, 4)
    c = (values @ _PARTS.T / 2).reshape(dim, n, n, 2, 2)  # the last axes: the part, and z or z̄
    is_used = np.any(c, axis=(1, 2, 4))
    if np.any(is_used.all(axis=1)) or np.any(np.count_nonzero(c, axis=(3, 4)) > 1):
        return None
    plan = Plan([(k, k + 1) for k in range(0, dim, 2)], [])
    for k, is_imaginary in enumerate(is_used[:, 1].tolist()):
        of_planes = np.moveaxis(c[k, :, :, int(is_imaginary)], 2, 0).reshape(2 * n, n)
        plan.sums.append(((None, k) if is_imaginary else (k, None), _terms(of_planes)))
    return plan


def _pairings(table: Table) -> Iterator[NDArray[np.intp]]:
    """Ways to take units in pairs, (d / 2, 2): each unit u with that of eu, for all units e but the first."""
    units = np.arange(len(table))
    for of_e in table[1:]:
        partner = np.argmax(of_e != 0, axis=1)
        has_one = np.count_nonzero(of_e, axis=1) == 1
        if has_one.all() and np.all(partner != units) and np.array_equal(partner[partner], units):
            yield np.stack([units, partner], axis=1)[units < partner]


def _n_apart(plan: Plan) -> int:
    """How many pairs are no neighbours in memory, so that their parts are copied one by one."""
    return sum(j != i + 1 for i, j in plan.planes)


def _terms(coefficients: NDArray[np.float64]) -> list[Term]:
    """The products c x_i y_j with c = coefficients[i, j]."""
    return [(i, j, float(coefficients[i, j])) for i, j in np.argwhere(coefficients).tolist()]


# ---------------------------------------------------------------------- steps


def by_plan(x: Array, y: Array, plan: Plan) -> Array:
    """The products of numbers x and y, (m, d), by a plan.

    All pieces have one size, so the same steps on the same memory compute each of them. The last piece overlaps with
    the one before it.
    """
    out = np.empty(x.shape, np.result_type(x, y))
    dtype = np.result_type(out, np.complex64) if plan.is_complex else out.dtype
    size = math.ceil(len(out) / math.ceil(len(out) * dtype.itemsize / _PIECE))
    n = len(plan.planes)
    *planes, total, product = np.empty((4 * n + 2, size), dtype)
    a, b = planes[: 2 * n], planes[2 * n :]
    loads = [*_loads(x, a, plan), *_loads(y, b, plan)]
    conjugations = [*_conjugations(plan, 0, a), *_conjugations(plan, 1, b)]
    sums = [_steps(terms, a, b, _targets(out, units), total, product) for units, terms in plan.sums]
    for start in range(0, len(out), size):
        first = min(start, len(out) - size)
        at = slice(first, first + size)
        for plane, view in loads:
            np.copyto(plane, view[at])
        for plane, conjugate in conjugations:
            np.conjugate(plane, conjugate)
        for steps, writes in sums:
            for f, left, right, result in steps:
                f(left, right, result)
            for f, left, right, result in writes:
                f(left, right, result[at])
    return out


def _loads(numbers: Array, planes: Sequence[Array], plan: Plan) -> Iterator[tuple[Array, Array]]:
    """Planes or their parts, each with the components that are copied there."""
    for plane, units in zip(planes, plan.planes):
        pair = _pair(numbers, units)
        if pair is None:
            yield from zip((plane.real, plane.imag), (numbers[:, k] for k in units))
        else:
            yield plane, pair


def _conjugations(plan: Plan, side: int, planes: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """The planes of the left (0) or the right (1) factor whose conjugates are used, each with its conjugate."""
    n = len(plan.planes)
    for i in {term[:2][side] for _, terms in plan.sums for term in terms} - {*range(n)}:
        yield planes[i - n], planes[i]


def _targets(out: Array, units: Units) -> list[Target]:
    """Where the parts of a sum go."""
    if len(units) == 1:
        return [(_whole, out[:, units[0]])]
    pair = _pair(out, units)
    if pair is not None:
        return [(_whole, pair)]
    return [(part, out[:, k]) for part, k in zip((_real, _imaginary), units) if k is not None]


def _pair(numbers: Array, units: Units) -> Array | None:
    """Two components of numbers as a complex plane, a view; None where they are no neighbours in memory."""
    i, j = units[0], units[-1]
    if i is None or j != i + 1 or numbers.strides[1] != numbers.itemsize:
        return None
    return numbers[:, i : i + 2].view(np.result_type(numbers, np.complex64))[:, 0]


def _whole(plane: Array) -> Array:
    return plane


_real, _imaginary = attrgetter("real"), attrgetter("imag")


def _steps(
    terms: Sequence[Term], x: Sequence[Array], y: Sequence[Array], targets: list[Target], total: Array, product: Array
) -> tuple[list[Step], list[Step]]:
    """The steps to Σ c x_i y_j in the memory of `total` and `product`, and the last ones, which write to targets."""
    if not terms:
        return [], [(np.multiply, 0.0, 0.0, target) for _, target in targets]
    steps: list[Step] = []
    for n, (i, j, c) in enumerate(terms):
        plane = product if n else total
        steps.append((np.multiply, x[i], y[j], plane))
        if c != 1 and (n == 0 or c != -1):
            steps.append((np.multiply, plane, c, plane))
        if n:
            steps.append((np.subtract if c == -1 else np.add, total, product, total))
    if len(terms) == 1 and targets[0][0] is not _whole:  # a part of a product is no product of parts
        return steps, [(np.multiply, part(total), 1.0, target) for part, target in targets]
    f, left, right, _ = steps.pop()
    return steps, [(f, part(left), part(right), target) for part, target in targets]
