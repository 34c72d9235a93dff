"""What a library of arrays must be able to do: the kernels that training and prediction are made of.

All arrays of one call are of one library on one device. `d` is the number of components of a number, `p` the number of
*planes*: fixed linear combinations of the components, given by a matrix `basis` of shape (d, p).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.workspace import current_team

T = TypeVar("T")
Array = Any  # an array of the library
Basis = NDArray[np.float64]
Pair = tuple[Array, Array, float]  # matrices a and b with as many rows, and the factor c of their product c aᵀb
Activation = Callable[[Array], Array]  # which may overwrite what it gets
BasisOf = Callable[[tuple[int, ...]], Basis]


class Terms(NamedTuple):
    """The products of a scheme, by the plane of the result that they add up to.

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
    """Numbers that stand beside the neurons of a hidden layer: the inputs, (m, D, d), and one number, (d,), or None."""

    inputs: Array | None
    constant: NDArray[np.float64] | None


class Examined(NamedTuple):
    """What one pass over numbers finds.

    support : the components that are not zero throughout
    image : (p, m, n), the planes for that support
    square : Σx², or None where the pass does not find it
    """

    support: tuple[int, ...]
    image: Array
    square: float | None


class Backend(ABC):
    """The kernels of one library."""

    @abstractmethod
    def at_work(self, multiply_adds: float) -> AbstractContextManager[None]:
        """A context in which so much work is to be done: threads and memory are kept ready as long as it lasts."""

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called for the first use of this key and kept while one is `at_work`."""
        return current_team().once(key, make)

    # ------------------------------------------------------------------ arrays

    @abstractmethod
    def real(self, array: Array, name: str) -> Array:
        """The array as float32 or float64, without a copy where it is one of them. `name` is for messages."""

    @abstractmethod
    def is_complex(self, array: Array) -> bool:
        """Whether its type is a complex one that scikit-learn's checks do not refuse by themselves."""

    @abstractmethod
    def float_types(self, array: Array) -> Any:
        """The types that an array may keep in a check by scikit-learn; None, for all, if it holds integers."""

    @abstractmethod
    def in_double(self, array: Array) -> Array:
        """The array in the precision for sums over many rows: double, or its own where double may be missing."""

    @abstractmethod
    def contiguous(self, array: Array) -> Array:
        """The array in the order of its axes in memory, where a library lets one choose."""

    @abstractmethod
    def scattered(self, columns: Array, places: NDArray[np.intp], width: int) -> Array:
        """(m, width): column c of `columns` at places[c], and zeros elsewhere."""

    # ------------------------------------------------------------------ sizes

    @abstractmethod
    def square(self, array: Array) -> float:
        """Σ|x|². It is 0 only if all numbers are, and not finite if one is not."""

    @abstractmethod
    def lengths(self, array: Array, axis: int | tuple[int, ...] = -1) -> Array:
        """Euclidean norms over some axes, also where squares are beyond the precision."""

    @abstractmethod
    def support(self, numbers: Array) -> tuple[int, ...]:
        """The components that are not zero throughout numbers (m, n, d)."""

    # ------------------------------------------------------------------ planes

    @abstractmethod
    def planes(self, numbers: Array, basis: Basis) -> Array:
        """The planes of numbers, (..., d) -> (p, ...)."""

    @abstractmethod
    def chunk_planes(self, numbers: Array, basis: Basis, memory: str) -> Array:
        """The planes of a chunk, (m, n, d) -> (p, m, n), in scratch memory of this name or as a view."""

    @abstractmethod
    def examined(self, numbers: Array, basis_of: BasisOf, memory: str) -> Examined:
        """The support of a chunk, (m, n, d), and its planes by the basis for that support, in one pass if possible."""

    @abstractmethod
    def from_planes(self, image: Array, basis: Basis) -> Array:
        """The numbers Σ_p image_p basis[:, p], (p, ...) -> (..., d)."""

    @abstractmethod
    def assembled(self, image: Array, shape: tuple[int, int, int]) -> Array:
        """Planes side by side in one matrix, real or complex.

        `shape` is (n, k, parts): n by k entries of so many parts each, 1 for real and 2 for complex ones. So planes
        (n k parts, ..., M, L) give a matrix (..., n M, k L).
        """

    @abstractmethod
    def disassemble(self, matrix: Array, image: Array, at: slice, shape: tuple[int, int, int]) -> None:
        """Write a matrix to its planes image[at]: the inverse of `assembled`."""

    @abstractmethod
    def spread(self, numbers: Array, table: NDArray[np.float64], *, rows_last: bool) -> Array:
        """Each number a of a matrix, (..., M, L, d), as the d x d matrix Σ_i a_i table[i], or as its transpose.

        The result is (..., M d, L d) if `rows_last`, and then holds the matrices themselves.
        """

    # ------------------------------------------------------------------ layers

    @abstractmethod
    def activate(self, activation: Any, array: Array) -> Array:
        """The activation of every component. A built-in one may overwrite `array`, a callable of the user may not."""

    @abstractmethod
    def hidden_by_operator(
        self, numbers: Array, operator: Array, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        """[f(x Φ + b), x, e], (m, width, d), of numbers x, (m, D, d), and a real matrix Φ, (D d, L d)."""

    @abstractmethod
    def hidden_by_terms(
        self, image: Array, weights: Array, terms: Terms, bias: Array | None, activation: Activation, beside: Beside
    ) -> Array:
        """The same from the planes of x, (p, m, D), and of the weights, (q, L, D), by the products of a scheme."""

    @abstractmethod
    def weight_planes(self, weights: NDArray[Any], basis: Basis, key: Any, reference: Array) -> Array:
        """The planes of weights, (D, L, d) -> (q, L, D), where `reference` lives, kept under `key` during a pass."""

    # ------------------------------------------------------------------ sums over rows

    @abstractmethod
    def add_products(self, reference: Array, *sums: Sums) -> list[Array]:
        """Add Σ c aᵀb of every list of pairs (a, b, c) to its total.

        If all pairs of a list are squares (a is b), only the symmetric part (S + Sᵀ)/2 of its total S is defined.

        Totals that are None begin as zeros, where `reference` lives and with its precision. The new totals come back in
        order, and may be the same arrays.
        """

    @abstractmethod
    def fold(self, R: Array, qt: Array, A: Array, t: Array) -> tuple[Array, Array, float]:
        """Fold rows A and targets t into a QR decomposition: the new R and Qᴴt, and what no solution explains.

        R and qt may be those of another library: they move to A.
        """
