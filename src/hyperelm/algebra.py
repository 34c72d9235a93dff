"""An algebra is its multiplication table.

A hypercomplex number x = x₀ + x₁i₁ + … + xₙiₙ is an array of d = n + 1 components, and an algebra is the
array of structure constants

    table[i, j, k] = coefficient of unit k in the product (unit i)(unit j).

The product is bilinear, so the table decides everything else: the matrices of left and right multiplication,
φ(ax) = Φ_L(a) φ(x) and φ(xa) = Φ_R(a) φ(x) (section 2 of the paper), and every property below.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hyperelm import laws
from hyperelm._arrays import beside, lengths, namespace
from hyperelm._lazy import lazy
from hyperelm._validation import FloatArray, as_hypercomplex
from hyperelm.notation import default_units, format_number, parse_number
from hyperelm.structure import associative_structure, identity_of

_LARGEST_PRINTED = 16


class Algebra:
    """A finite-dimensional real algebra, given by its multiplication table.

    Parameters
    ----------
    table : array of shape (d, d, d)
        ``table[i, j, k]`` is the coefficient of unit k in the product of unit i and unit j.
    name : str
        What messages and printed tables call it.
    units : sequence of str, optional
        Names of the d units, or of the d - 1 behind "1".

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
    An algebra is a value: immutable, equal to and hashed like every other algebra with the same table.

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
            The smaller form leaves out the identity; the larger has its row and column first.
        units : sequence of str
            Names of the d - 1 units behind "1".
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
            raise TypeError("`rows` must be a sequence of sequences of entries, got a string for a row.")
        entries = [list(row) for row in rows]
        sizes = sorted({len(entries), *(len(row) for row in entries)})
        if len(sizes) != 1 or sizes[0] not in (len(imaginary), len(names)):
            n = len(imaginary)
            raise ValueError(
                f"`rows` must be {n} x {n} (without the identity) or {n + 1} x {n + 1} (with it) for the units "
                f"{', '.join(imaginary)}, got {len(entries)} rows of lengths {[len(row) for row in entries]}. "
                "Name as many `units` as the table has."
            )
        dim, first = len(names), len(names) - sizes[0]
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
        """The products xy of numbers x and y, of shape (..., d), broadcast over the leading axes.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> i, j = [0, 1, 0, 0], [0, 0, 1, 0]
        >>> algebras.get("quaternions").multiply(i, j)
        array([0., 0., 0., 1.])
        """
        x, y = as_hypercomplex(x, self, "x"), as_hypercomplex(y, self, "y")
        product: FloatArray = namespace(x=x, y=y).matmul(self.left_matrix(x), y[..., None])[..., 0]
        return product

    def conjugate(self, x: ArrayLike) -> FloatArray:
        """The conjugate of x, of shape (..., d): every component but the first negated; for Clifford algebras too."""
        x = as_hypercomplex(x, self, "x")
        signs = np.full(self.dim, -1.0)
        signs[0] = 1
        conjugate: FloatArray = x * beside(signs, x)
        return conjugate

    def norm(self, x: ArrayLike) -> FloatArray:
        """The absolute value of x, the Euclidean norm of the components: (..., d) -> (...)."""
        norm: FloatArray = lengths(as_hypercomplex(x, self, "x"))
        return norm

    def left_matrix(self, a: ArrayLike) -> FloatArray:
        """Φ_L(a), the matrix of x -> ax, for numbers a: (..., d) -> (..., d, d)."""
        a = as_hypercomplex(a, self, "a")
        xp = namespace(a=a)
        matrices: FloatArray = xp.moveaxis(xp.tensordot(a, beside(self.table, a), axes=1), -1, -2)
        return matrices

    def right_matrix(self, a: ArrayLike) -> FloatArray:
        """Φ_R(a), the matrix of x -> xa, for numbers a: (..., d) -> (..., d, d)."""
        return self.opposite().left_matrix(a)

    # ------------------------------------------------------------------ properties

    @lazy
    def _even(self) -> NDArray[np.float64]:
        """The table that laws are read from: itself, if it has whole numbers, or else with its units balanced."""
        return self.table if laws.is_whole(self.table) else laws.balanced(self.table)

    @lazy
    def is_commutative(self) -> bool:
        """Whether xy = yx."""
        return laws.holds(laws.commutative, self._even)

    @lazy
    def is_associative(self) -> bool:
        """Whether (xy)z = x(yz)."""
        return laws.holds(laws.associative, self._even)

    @lazy
    def is_alternative(self) -> bool:
        """Whether (xx)y = x(xy) and (yx)x = y(xx)."""
        return laws.holds(laws.left_alternative, self._even) and laws.holds(laws.right_alternative, self._even)

    @lazy
    def is_flexible(self) -> bool:
        """Whether (xy)x = x(yx)."""
        return laws.holds(laws.flexible, self._even)

    @lazy
    def is_power_associative(self) -> bool:
        """Whether the powers of one number do not depend on brackets.

        Over the reals x²x = xx² and x²x² = x(xx²) imply the rest (Albert, 1948).
        """
        return laws.holds(laws.third_power, self._even) and laws.holds(laws.fourth_power, self._even)

    @lazy
    def is_normed(self) -> bool:
        """Whether ``|xy| = |x||y|``."""
        largest = np.abs(self.table).max()  # above 1 it is the length of a product of units that is longer than they
        return bool(largest < 1 + 1e-9) and laws.holds(laws.normed, self.table)

    @lazy
    def identity(self) -> NDArray[np.float64] | None:
        """The number e with ex = xe = x for all x, or None where there is none.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> both = algebras.get("complex").direct_sum(algebras.get("real"))
        >>> both.identity.round(12).tolist()
        [1.0, 0.0, 1.0]
        """
        return identity_of(self.table)

    @property
    def has_identity(self) -> bool:
        """Whether some number e, not necessarily the first unit, has ex = xe = x for all x."""
        return self.identity is not None

    @lazy
    def is_nondegenerate(self) -> bool:
        """Whether each coordinate (xy)_k of the product is a bilinear form of full rank."""
        return laws.are_regular(self._even.transpose(2, 0, 1))

    @lazy
    def structure(self) -> str:
        """The isomorphism type of a semisimple associative algebra, whatever its basis; otherwise a phrase.

        Examples
        --------
        >>> from hyperelm import algebras
        >>> [algebras.get(name).structure for name in ("R[-2]", "R[-1,+1]", "tessarines", "octonions")]
        ['C', 'M2(R)', 'C + C', 'not associative (alternative)']
        """
        if self.is_associative:
            return associative_structure(self.table)
        for property_ in ("alternative", "flexible", "power_associative"):
            if getattr(self, f"is_{property_}"):
                return f"not associative ({property_.replace('_', '-')})"
        return "not associative"

    # ------------------------------------------------------------------ constructions

    def tensor(self, other: Algebra) -> Algebra:
        """The tensor product with another algebra: unit (i, j) is number ``i * other.dim + j``."""
        dim = self.dim * other.dim
        table = np.einsum("ijk,lmn->iljmkn", self.table, other.table).reshape(dim, dim, dim)
        return Algebra(table, name=_joined(self, other, "⊗"), units=_tensor_units(self.units, other.units))

    def direct_sum(self, other: Algebra) -> Algebra:
        """The direct sum with an `other` algebra, whose numbers are pairs (x, y) multiplied part by part."""
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

    # ------------------------------------------------------------------ a value

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
        return _rebuild, (np.array(self.table), self.name, self.units)

    # ------------------------------------------------------------------ for reading

    def _entries(self) -> list[list[str]]:
        return [[format_number(product, self.units) for product in row] for row in self.table]

    def _title(self) -> str:
        return f"Algebra {self.name or '(unnamed)'}, dimension {self.dim}"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """The table as text, the row's unit times the column's."""
        if self.dim > _LARGEST_PRINTED:
            return f"{self._title()}, units {', '.join(self.units[:4])}, …"
        cells = [["", *self.units], *([unit, *row] for unit, row in zip(self.units, self._entries()))]
        widths = [max(len(row[n]) for row in cells) for n in range(self.dim + 1)]
        lines = [" ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in cells]
        head = lines[0][: widths[0]] + " |" + lines[0][widths[0] :]
        rule = "-" * (widths[0] + 1) + "+" + "-" * (len(head) - widths[0] - 2)
        body = [line[: widths[0]] + " |" + line[widths[0] :] for line in lines[1:]]
        return "\n".join([self._title(), head, rule, *body])

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


def _rebuild(table: NDArray[np.float64], name: str, units: tuple[str, ...]) -> Algebra:
    return Algebra(table, name=name, units=units)


def _checked_table(table: ArrayLike) -> NDArray[np.float64]:
    constants = np.asarray(table)
    if constants.dtype.kind not in "biuf":
        raise TypeError(
            f"`table` must be an array of real structure constants, got dtype {constants.dtype}. "
            "Use Algebra.from_table for entries such as '-k'."
        )
    if constants.ndim != 3 or len(set(constants.shape)) != 1 or constants.size == 0:
        raise ValueError(
            f"`table` must have shape (d, d, d) with d >= 1, got {constants.shape}. "
            "table[i, j, k] is the coefficient of unit k in (unit i)(unit j)."
        )
    if not np.all(np.isfinite(constants)):
        where = tuple(int(n) for n in np.argwhere(~np.isfinite(constants))[0])
        raise ValueError(f"`table` must be finite, got {constants[where]} at {where}.")
    # Adding zero turns -0.0 into 0.0, so that equal tables have equal bytes and hashes.
    return np.array(constants, dtype=np.float64) + 0.0


def _checked_units(units: Sequence[str], dim: int) -> tuple[str, ...]:
    if isinstance(units, str) or not all(isinstance(unit, str) and unit.strip() for unit in units):
        raise TypeError(f"`units` must be a sequence of names, got {units!r}.")
    names = tuple(units)
    if len(names) == dim - 1:
        names = ("1", *names)
    if len(names) != dim:
        raise ValueError(f"`units` must name {dim} units, or the {dim - 1} behind '1', got {len(names)}: {names}.")
    if len(set(names)) != dim:
        raise ValueError(f"`units` must be different names, got {names}.")
    return names


def _joined(first: Algebra, second: Algebra, sign: str) -> str:
    return f"{first.name} {sign} {second.name}" if first.name and second.name else ""


def _distinct(units: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names `others`, primed until none of them is among `units`."""
    mark = ""
    while {unit + mark for unit in others} & set(units):
        mark += "'"
    return tuple(unit + mark for unit in others)


def _tensor_units(units: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    first, second = units[1:], _distinct(units[1:], others[1:])
    names = [a + b for a in ("", *first) for b in ("", *second)]
    names[0] = "1" if units[0] == others[0] == "1" else units[0] + others[0]
    return tuple(names) if len(set(names)) == len(names) else default_units(len(names), identity=True)
