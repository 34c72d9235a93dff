"""An algebra is its multiplication table.

A hypercomplex number x = x₀ + x₁i₁ + … + xₙiₙ is an array of d = n + 1 components. The multiplication table holds the
structure constants of the algebra,

    table[i, j, k] = coefficient of unit k in the product (unit i)(unit j).

The product is bilinear, so the table decides everything else: the matrices Φ_L and Φ_R of left and right
multiplication, φ(ax) = Φ_L(a) φ(x) and φ(xa) = Φ_R(a) φ(x) (section 2 of the paper), and every property below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm._algebra import properties
from hyperelm._algebra.notation import default_units, format_number, parse_number
from hyperelm._backend import backend_of
from hyperelm._backend.arrays import beside, namespace
from hyperelm._lazy import lazy
from hyperelm._validation import FloatArray, as_hypercomplex

_LARGEST_PRINTED = 16


class Algebra:
    """A finite-dimensional real algebra, given by its multiplication table.

    Parameters
    ----------
    table : array of shape (d, d, d)
        ``table[i, j, k]`` is the coefficient of unit k in the product of unit i and unit j.
    name : str
        The name in messages and printed tables.
    units : sequence of str, optional
        Names of the d units, or of the d - 1 units after "1".

    Attributes
    ----------
    name : str
    dim : int
        The number d of components of a number.
    units : tuple of str
    table : array of shape (d, d, d)
        Read-only.

    Notes
    -----
    An algebra is immutable. Two algebras are equal, and have the same hash, if their tables are equal.

    Examples
    --------
    >>> from hyperelm import Algebra
    >>> dual = Algebra.from_table([["0"]], units=["ε"], name="dual numbers")
    >>> dual.multiply([1.0, 2.0], [3.0, 4.0])
    array([ 3., 10.])
    >>> dual.is_associative, dual.structure
    (True, 'associative, not semisimple (radical of dimension 1)')
    """

    name: str
    dim: int
    units: tuple[str, ...]
    table: NDArray[np.float64]

    def __init__(self, table: ArrayLike, *, name: str = "", units: Sequence[str] | None = None) -> None:
        constants = _checked_table(table)
        constants.setflags(write=False)
        dim = len(constants)
        identity_first = bool(np.all(constants[0] == np.eye(dim)) and np.all(constants[:, 0] == np.eye(dim)))
        names = default_units(dim, identity=identity_first) if units is None else _checked_units(units, dim)
        self.__dict__.update(name=str(name), dim=dim, units=names, table=constants)

    @classmethod
    def from_table(
        cls, rows: Sequence[Sequence[Any]], *, units: Sequence[str] = ("i", "j", "k"), name: str = ""
    ) -> Algebra:
        """An algebra from a multiplication table as it is printed.

        Parameters
        ----------
        rows : (d - 1) x (d - 1) or d x d entries
            Row i, column j holds the product (unit i)(unit j) as text such as "-k", "1", "0" or "k+0.5j".
            The smaller form leaves out the identity. In the larger form its row and column come first.
        units : sequence of str
            Names of the d - 1 units after "1".
        name : str

        Examples
        --------
        >>> klein = Algebra.from_table([["1", "k", "j"], ["k", "1", "i"], ["j", "i", "1"]], name="klein4")
        >>> klein.structure
        'R^4'
        """
        imaginary = tuple(units)[1:] if tuple(units[:1]) == ("1",) else tuple(units)
        names = _checked_units(("1", *imaginary), len(imaginary) + 1)
        if isinstance(rows, str) or any(isinstance(row, str) for row in rows):
            raise TypeError(
                "`rows` must be a sequence of sequences of entries, got a string for a row. "
                "Write a row as a list such as ['-1', 'k', '-j']."
            )
        entries = [list(row) for row in rows]
        dim, n = len(names), len(imaginary)
        if {len(row) for row in entries} != {len(entries)} or len(entries) not in (n, dim):
            raise ValueError(
                f"`rows` must be {n} x {n} (without the identity) or {dim} x {dim} (with it) for the units "
                f"{', '.join(imaginary)}, got {len(entries)} rows of lengths {[len(row) for row in entries]}. "
                "Name as many `units` as the table has."
            )
        first = dim - len(entries)
        table = np.zeros((dim, dim, dim))
        table[0] = table[:, 0] = np.eye(dim)
        for i, row in enumerate(entries, start=first):
            for j, entry in enumerate(row, start=first):
                try:
                    table[i, j] = parse_number(entry, names)
                except (ValueError, TypeError) as error:
                    raise type(error)(f"`rows` at ({names[i]}, {names[j]}): {error}.") from None
        return cls(table, name=name, units=names)

    def __setattr__(self, attribute: str, value: object) -> None:
        raise AttributeError(f"An Algebra is immutable: {attribute!r} cannot be set. Make a new Algebra instead.")

    # ------------------------------------------------------------------ arithmetic

    def multiply(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """The products xy of numbers x and y, (..., d). The leading axes are broadcast.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> i, j = [0, 1, 0, 0], [0, 0, 1, 0]
        >>> algebras.get("quaternions").multiply(i, j)
        array([0., 0., 0., 1.])
        """
        x, y = as_hypercomplex(x, self, "x"), as_hypercomplex(y, self, "y")
        namespace(x=x, y=y)  # refuses arrays that are not of one library
        return backend_of(x).multiplied(x, y, self.table)

    def conjugate(self, x: ArrayLike) -> FloatArray:
        """The conjugate of x, (..., d): every component but the first is negated, in every algebra."""
        x = as_hypercomplex(x, self, "x")
        return x * beside(np.where(np.arange(self.dim) == 0, 1.0, -1.0), x)

    def norm(self, x: ArrayLike) -> FloatArray:
        """The absolute value of x, the Euclidean norm of the components: (..., d) -> (...)."""
        x = as_hypercomplex(x, self, "x")
        return backend_of(x).lengths(x)

    def left_matrix(self, a: ArrayLike) -> FloatArray:
        """Φ_L(a), the matrix of x -> ax, for numbers a: (..., d) -> (..., d, d)."""
        a = as_hypercomplex(a, self, "a")
        xp = namespace(a=a)
        return xp.moveaxis(xp.tensordot(a, beside(self.table, a), axes=1), -1, -2)

    def right_matrix(self, a: ArrayLike) -> FloatArray:
        """Φ_R(a), the matrix of x -> xa, for numbers a: (..., d) -> (..., d, d)."""
        return self.opposite().left_matrix(a)

    # ------------------------------------------------------------------ properties

    @lazy
    def _even(self) -> NDArray[np.float64]:
        """The table for tests of laws: as it is if all entries are whole numbers, else with entries of like sizes."""
        return self.table if properties.is_whole(self.table) else properties.balanced(self.table)

    @lazy
    def is_commutative(self) -> bool:
        """Whether xy = yx."""
        return properties.holds("commutative", self._even)

    @lazy
    def is_associative(self) -> bool:
        """Whether (xy)z = x(yz)."""
        return properties.holds("associative", self._even)

    @lazy
    def is_alternative(self) -> bool:
        """Whether (xx)y = x(xy) and (yx)x = y(xx)."""
        return properties.holds("left alternative", self._even) and properties.holds("right alternative", self._even)

    @lazy
    def is_flexible(self) -> bool:
        """Whether (xy)x = x(yx)."""
        return properties.holds("flexible", self._even)

    @lazy
    def is_power_associative(self) -> bool:
        """Whether a power of one number does not depend on where the brackets are.

        Over the real numbers x²x = xx² and x²x² = x(xx²) are enough (Albert, 1948).
        """
        return properties.holds("third power", self._even) and properties.holds("fourth power", self._even)

    @lazy
    def is_normed(self) -> bool:
        """Whether ``|xy| = |x||y|``."""
        # An entry above 1 belongs to a product of two units that is longer than 1. It might overflow when squared.
        return bool(np.abs(self.table).max() < 1 + 1e-9) and properties.holds("normed", self.table)

    @lazy
    def identity(self) -> NDArray[np.float64] | None:
        """The number e with ex = xe = x for all x, or None if there is none.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> both = algebras.get("complex").direct_sum(algebras.get("real"))
        >>> both.identity.round(12).tolist()
        [1.0, 0.0, 1.0]
        """
        return properties.identity_of(self.table)

    @property
    def has_identity(self) -> bool:
        """Whether some number e, not necessarily the first unit, has ex = xe = x for all x."""
        return self.identity is not None

    @lazy
    def is_nondegenerate(self) -> bool:
        """Whether the matrix table[:, :, k] of every component k of the product has full rank.

        Then for every x that is not zero there is a y so that component k of xy is not zero.
        """
        return properties.are_regular(self._even.transpose(2, 0, 1))

    @lazy
    def structure(self) -> str:
        """The isomorphism type of a semisimple associative algebra; for other algebras, a phrase.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> [algebras.get(name).structure for name in ("R[-2]", "R[-1,+1]", "tessarines", "octonions")]
        ['C', 'M2(R)', 'C + C', 'not associative (alternative)']
        """
        if self.is_associative:
            return properties.associative_structure(self.table)
        for property_ in ("alternative", "flexible", "power_associative"):
            if getattr(self, f"is_{property_}"):
                return f"not associative ({property_.replace('_', '-')})"
        return "not associative"

    @lazy
    def block_structure(self) -> str:
        """The irreducible blocks of the left multiplications, in words.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> [algebras.get(name).block_structure for name in ("R[-1,+1]", "quaternions")]
        ['2 x 2 real in 2 copies', '2 x 2 complex']
        """
        from hyperelm._algebra.blocks import decompose  # imports this module

        return ", ".join(
            f"{block.size} x {block.size} {'complex' if block.is_complex else 'real'}"
            + (f" in {block.copies} copies" if block.copies > 1 else "")
            for block in decompose(self)
        )

    # ------------------------------------------------------------------ constructions

    def tensor(self, other: Algebra) -> Algebra:
        """The tensor product with another algebra: unit (i, j) comes at place ``i * other.dim + j``."""
        dim = self.dim * other.dim
        table = np.einsum("ijk,lmn->iljmkn", self.table, other.table).reshape(dim, dim, dim)
        return Algebra(table, name=_joined(self, other, "⊗"), units=_tensor_units(self.units, other.units))

    def direct_sum(self, other: Algebra) -> Algebra:
        """The direct sum with an algebra `other`: its numbers are pairs (x, y), and (x, y)(u, v) = (xu, yv)."""
        dim, split = self.dim + other.dim, self.dim
        table = np.zeros((dim, dim, dim))
        table[:split, :split, :split] = self.table
        table[split:, split:, split:] = other.table
        units = _distinct(self.units, other.units)
        return Algebra(table, name=_joined(self, other, "⊕"), units=(*self.units, *units))

    def opposite(self) -> Algebra:
        """The algebra with the product in the other order, x∘y = yx."""
        name = f"opposite of {self.name}" if self.name else ""
        return Algebra(self.table.swapaxes(0, 1), name=name, units=self.units)

    # ------------------------------------------------------------------ equality, copies, pickles

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Algebra):
            return NotImplemented
        return self is other or (self.dim == other.dim and bool(np.all(self.table == other.table)))

    @lazy
    def _hash(self) -> int:
        return hash((self.dim, self.table.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __copy__(self) -> Algebra:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Algebra:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Algebra, name=self.name, units=self.units), (np.array(self.table),)

    # ------------------------------------------------------------------ text

    def _entries(self) -> list[list[str]]:
        return [[format_number(product, self.units) for product in row] for row in self.table]

    def __repr__(self) -> str:
        return f"Algebra({f'{self.name!r}, ' if self.name else ''}dim={self.dim})"

    def __str__(self) -> str:
        """The table as text: each entry is the unit of its row times the unit of its column."""
        title = f"Algebra {self.name or '(unnamed)'}, dimension {self.dim}"
        if self.dim > _LARGEST_PRINTED:
            return f"{title}, units {', '.join(self.units[:4])}, …"
        cells = [["", "|", *self.units], *([unit, "|", *row] for unit, row in zip(self.units, self._entries()))]
        widths = [max(map(len, column)) for column in zip(*cells)]
        head, *body = (" ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in cells)
        rule = "-" * (widths[0] + 1) + "+" + "-" * (len(head) - widths[0] - 2)
        return "\n".join([title, head, rule, *body])

    def _repr_html_(self) -> str:
        if self.dim > _LARGEST_PRINTED:
            return f"<p>{escape(str(self))}</p>"
        head = "".join(f"<th>{escape(unit)}</th>" for unit in self.units)
        body = "".join(
            f"<tr><th>{escape(unit)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for unit, row in zip(self.units, self._entries())
        )
        caption = escape(f"{self.name or 'Algebra'} · {self.structure}")
        return (
            f'<table style="text-align:right"><caption>{caption}</caption>'
            f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _checked_table(table: ArrayLike) -> NDArray[np.float64]:
    constants = np.asarray(table)
    if constants.dtype.kind not in "biuf":
        raise TypeError(
            f"`table` must be an array of real numbers, got dtype {constants.dtype}. "
            "Use Algebra.from_table for entries such as '-k'."
        )
    if constants.ndim != 3 or len(set(constants.shape)) != 1 or constants.size == 0:
        raise ValueError(
            f"`table` must have shape (d, d, d) with d >= 1, got {constants.shape}. "
            "table[i, j, k] is the coefficient of unit k in (unit i)(unit j)."
        )
    if not np.all(np.isfinite(constants)):
        where = tuple(int(n) for n in np.argwhere(~np.isfinite(constants))[0])
        raise ValueError(f"`table` must be finite, got {constants[where]} at {where}. Correct that entry.")
    # Adding zero turns -0.0 into 0.0, so that equal tables have equal bytes and equal hashes.
    return np.array(constants, dtype=np.float64) + 0.0


def _checked_units(units: Sequence[str], dim: int) -> tuple[str, ...]:
    if isinstance(units, str) or not all(isinstance(unit, str) and unit.strip() for unit in units):
        raise TypeError(f"`units` must be a sequence of names that are not empty, got {units!r}.")
    names = tuple(units)
    if len(names) == dim - 1:
        names = ("1", *names)
    if len(names) != dim:
        raise ValueError(f"`units` must name {dim} units, or the {dim - 1} after '1', got {len(names)}: {names}.")
    if len(set(names)) != dim:
        raise ValueError(f"`units` must be different names, got {names}.")
    return names


def _joined(first: Algebra, second: Algebra, sign: str) -> str:
    return f"{first.name} {sign} {second.name}" if first.name and second.name else ""


def _distinct(units: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names `others`, with as many primes as it takes until none of them is among `units`."""
    mark = ""
    while {unit + mark for unit in others} & set(units):
        mark += "'"
    return tuple(unit + mark for unit in others)


def _tensor_units(units: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    first, second = units[1:], _distinct(units[1:], others[1:])
    names = [a + b for a in ("", *first) for b in ("", *second)]
    names[0] = "1" if units[0] == others[0] == "1" else units[0] + others[0]
    return tuple(names) if len(set(names)) == len(names) else default_units(len(names), identity=True)
