"""Families of algebras, and which of their tables are one table with its units renamed.

- `signs`: the 512 tables with the products of the Klein four-group up to sign, i·i = ±1, i·j = ±k, …;
- `cayley-dickson`: R[γ₁, …, γₙ] with every γ in {-1, 0, +1};
- `clifford`: Cl(p, q, r) with p + q + r = n.

A *signed permutation* P of the units behind the first gives the table of the same algebra in the renamed units,
x ∘ y = P(P⁻¹x · P⁻¹y). Two tables of which the product of any two units is a multiple of one unit (all tables above)
are such copies of each other exactly if their canonical forms are equal. The form is the smallest table that comes of
renaming the units in the order in which they are generated: a unit ±u is chosen, then every new product of units that
have a name gets the next name, and when there is none, the next unit is chosen. Of all choices only those that lead to
the smallest table so far are followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hyperelm import algebras
from hyperelm.algebra import Algebra

__all__ = ["FAMILIES", "Copies", "canonical_form", "classes", "known_names", "members", "returning_units", "sign_table"]

FAMILIES = ("signs", "cayley-dickson", "clifford")
_DIMS = (2, 4, 8)  # the canonical forms of the next dimension take minutes


def sign_table(signs: str) -> Algebra:
    """The algebra of the Klein table with these signs.

    Parameters
    ----------
    signs : str
        Three rows of three signs, of the products of i, j and k by i, j and k.

    Examples
    --------
    >>> from hyperelm import algebras
    >>> from hyperelm.families import sign_table
    >>> sign_table("-+-/--+/+--") == algebras.get("quaternions")
    True
    """
    rows = signs.split("/")
    if [len(row) for row in rows] != [3, 3, 3] or not set("".join(rows)) <= set("+-"):
        raise ValueError(f"`signs` must be three rows of three signs such as '-+-/--+/+--', got {signs!r}.")
    units = ("1kj", "k1i", "ji1")
    entries = [[sign + unit for sign, unit in zip(*pair)] for pair in zip(rows, units)]
    return Algebra.from_table(entries, name=signs)


@cache
def members(family: str, dim: int = 4) -> Mapping[str, Algebra]:
    """The algebras of a family in a dimension, by name.

    Examples
    --------
    >>> from hyperelm.families import members
    >>> len(members("signs")), list(members("clifford", 4))
    (512, ['Cl(2,0)', 'Cl(1,1)', 'Cl(0,2)', 'Cl(1,0,1)', 'Cl(0,1,1)', 'Cl(0,0,2)'])
    """
    if family not in FAMILIES:
        raise ValueError(f"`family` must be one of {', '.join(FAMILIES)}, got {family!r}.")
    if family == "signs":
        if dim != 4:
            raise ValueError(f"`dim` must be 4 for the family 'signs', got {dim}.")
        found = [sign_table("/".join(map("".join, rows))) for rows in product(product("+-", repeat=3), repeat=3)]
    else:
        if dim not in _DIMS:
            raise ValueError(f"`dim` must be 2, 4 or 8 for the family {family!r}, got {dim}.")
        n = dim.bit_length() - 1
        if family == "cayley-dickson":
            found = [algebras.cayley_dickson(*gammas) for gammas in product((-1, 0, 1), repeat=n)]
        else:
            found = [algebras.clifford(n - q - r, q, r) for r in range(n + 1) for q in range(n - r + 1)]
    return {algebra.name: algebra for algebra in found}


def known_names(algebra: Algebra) -> list[str]:
    """The names that the catalogue has for a table.

    Examples
    --------
    >>> from hyperelm.families import known_names, sign_table
    >>> known_names(sign_table("+++/--+/--+"))
    ['R[+1,-1]', 'Cl(1,1)']
    """
    return [name for name in algebras.names() if algebras.get(name) == algebra]


def returning_units(algebra: Algebra) -> int:
    """How many units u behind the first have (xu)u = x(uu) for all x.

    Where products of units are ± units, right multiplication by u is an orthogonal matrix, and (xu)u = x(uu) = ±x says
    that its inverse, which is its transpose, is ± itself. So the sums of such units are those numbers w for which what
    x -> xw does can be undone, transposed, by a right multiplication again: what an output layer v makes of a hidden
    layer xw is (xw)v. The number does not depend on what the units are called.

    Examples
    --------
    >>> from hyperelm import algebras
    >>> from hyperelm.families import returning_units
    >>> [returning_units(algebras.get(name)) for name in ("quaternions", "paper-Cl(1,1)", "octonions")]
    [3, 2, 7]
    """
    table = algebra.table
    twice = np.einsum("xuk,kun->uxn", table, table)
    by_square = np.einsum("uuk,xkn->uxn", table, table)
    return int(np.all(twice == by_square, axis=(1, 2))[1:].sum())


@dataclass(frozen=True)
class Copies:
    """Algebras of a family that are one algebra with its units renamed, numbered from 1 on within the family."""

    number: int
    form: Algebra
    members: tuple[str, ...]


def classes(family: Mapping[str, Algebra]) -> list[Copies]:
    """The algebras of a family in groups of those that differ by a signed permutation of their units alone.

    Examples
    --------
    >>> from hyperelm.families import classes, members
    >>> len(classes(members("signs")))
    60
    """
    groups: dict[Algebra, list[str]] = {}
    for name, algebra in family.items():
        groups.setdefault(canonical_form(algebra), []).append(name)
    return [Copies(n, form, tuple(names)) for n, (form, names) in enumerate(groups.items(), start=1)]


# ---------------------------------------------------------------------- the canonical form

Key = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class _Naming:
    """Units that have got a name so far, in order, each with its sign; and the table of their products.

    `key` has the products of each unit with itself and those before it, as (place of the product, its coefficient), so
    that a longer naming begins with the key of the one that it goes on from.
    """

    units: tuple[int, ...]
    signs: tuple[int, ...]
    key: Key


def canonical_form(algebra: Algebra) -> Algebra:
    """The same table for all signed permutations of the units behind the first.

    Parameters
    ----------
    algebra : Algebra
        Every product of two units must be a multiple of one unit.

    Examples
    --------
    >>> from hyperelm import algebras
    >>> from hyperelm.families import canonical_form
    >>> len({canonical_form(algebras.get(name)) for name in ("R[-1,+1]", "R[+1,-1]", "R[+1,+1]")})
    1
    """
    units, factors = _products(algebra)
    namings = [_close((0,), (1,), units, factors)]
    while len(namings[0].units) < algebra.dim:
        longer = [
            _close((*naming.units, unit), (*naming.signs, sign), units, factors)
            for naming in namings
            for unit in range(algebra.dim)
            if unit not in naming.units
            for sign in (1, -1)
        ]
        smallest = min(naming.key for naming in longer)
        namings = [naming for naming in longer if naming.key == smallest]
    order, signs = list(namings[0].units), np.array(namings[0].signs)
    table = algebra.table[np.ix_(order, order, order)] * signs[:, None, None] * signs[:, None] * signs
    return Algebra(table)


def _products(algebra: Algebra) -> tuple[list[list[int]], list[list[float]]]:
    """The unit of which the product of two units is a multiple, and the factor."""
    used: NDArray[np.bool_] = algebra.table != 0
    if np.any(used.sum(axis=2) > 1):
        i, j = np.argwhere(used.sum(axis=2) > 1)[0]
        raise ValueError(
            "`algebra` must have multiples of one unit as products of two units, got a sum for "
            f"{algebra.units[i]}·{algebra.units[j]}. Only such tables can be compared here."
        )
    return used.argmax(axis=2).tolist(), algebra.table.sum(axis=2).tolist()


def _close(
    first: tuple[int, ...], signs_of_first: tuple[int, ...], units: list[list[int]], factors: list[list[float]]
) -> _Naming:
    """Name the products of units that have names, until all of them have."""
    order, signs = list(first), list(signs_of_first)
    place = {unit: n for n, unit in enumerate(order)}
    key: list[tuple[int, float]] = []
    n = 0
    while n < len(order):
        for m in range(n + 1):
            for a, b in ((m, n), (n, m)):
                unit, factor = units[order[a]][order[b]], factors[order[a]][order[b]] * signs[a] * signs[b]
                if factor == 0:
                    key.append((len(units), 0.0))  # last in order, as few units come of such products
                    continue
                if unit not in place:
                    place[unit] = len(order)
                    order.append(unit)
                    signs.append(1 if factor > 0 else -1)
                key.append((place[unit], factor * signs[place[unit]]))
        n += 1
    return _Naming(tuple(order), tuple(signs), tuple(key))
