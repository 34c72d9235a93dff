"""Families of algebras, and which of their tables are one table with its units renamed.

- `signs`: the 512 tables with the products of the Klein four-group up to sign, i·i = ±1, i·j = ±k, …;
- `cayley-dickson`: R[γ₁, …, γₙ] with every γ in {-1, 0, +1};
- `clifford`: Cl(p, q, r) with p + q + r = n.

To rename the units means to permute the units after the first, and to change the sign of some. In all tables above the
product of two units is a multiple of one unit. Two such tables are copies of each other, one with the units of the
other renamed, exactly if their *canonical forms* are equal. The canonical form is the smallest table, in a fixed order
of tables, that comes of renaming the units as follows:

1. Choose a unit that has no new name yet, and a sign. It gets the next name.
2. As long as a product of named units is a multiple of a unit without a name, that unit gets the next name, with the
   sign of the product.
3. Repeat until all units have names. Follow only the choices that lead to the smallest table so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._validation import ArgumentError

__all__ = ["FAMILIES", "Copies", "canonical_form", "classes", "known_names", "members", "returning_units", "sign_table"]

FAMILIES = ("signs", "cayley-dickson", "clifford")


def sign_table(signs: str) -> Algebra:
    """The table of the Klein four-group with these signs.

    Parameters
    ----------
    signs : str
        Three rows of three signs, those of the products of i, j and k with i, j and k.

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
        raise ArgumentError("family", f"must be one of {', '.join(FAMILIES)}, got {family!r}.")
    # Canonical forms of dimension 16 take minutes.
    dims, wanted = ((4,), "4") if family == "signs" else ((2, 4, 8), "2, 4 or 8")
    if dim not in dims:
        raise ArgumentError("dim", f"must be {wanted} for the family {family!r}, got {dim}.")
    n = dim.bit_length() - 1
    if family == "signs":
        found = [sign_table("/".join(map("".join, rows))) for rows in product(product("+-", repeat=3), repeat=3)]
    elif family == "cayley-dickson":
        found = [catalogue.cayley_dickson(*gammas) for gammas in product((-1, 0, 1), repeat=n)]
    else:
        found = [catalogue.clifford(n - q - r, q, r) for r in range(n + 1) for q in range(n - r + 1)]
    return {algebra.name: algebra for algebra in found}


def known_names(algebra: Algebra) -> list[str]:
    """The names that the catalogue has for a table.

    Examples
    --------
    >>> from hyperelm.families import known_names, sign_table
    >>> known_names(sign_table("+++/--+/--+"))
    ['R[+1,-1]', 'Cl(1,1)']
    """
    return [name for name in catalogue.names() if catalogue.get(name) == algebra]


def returning_units(algebra: Algebra) -> int:
    """How many units u after the first have (xu)u = x(uu) for all x.

    If products of units are ± units, then uu = ±1 and the condition says (xu)u = ±x: multiplying by u once more undoes
    x -> xu, up to the sign. A network multiplies from the right twice, (xw)v with the weights w of the hidden layer
    and v of the output layer. So with such units in w, a v can undo what w does. The number does not depend on the
    names of the units.

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
    """Algebras of a family that are one algebra with its units renamed. The number counts from 1 in the family."""

    number: int
    form: Algebra
    members: tuple[str, ...]


def classes(family: Mapping[str, Algebra]) -> list[Copies]:
    """The algebras of a family, in groups of those that are one algebra with its units renamed.

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

# Units that have a name so far: the table of their products, the units in the order of their names, and their signs.
# The table has the products of each unit with itself and with those before it, as (place of the product, coefficient).
# So a naming that goes on from another begins with the same products, and namings of equal length can be compared.
Naming = tuple[tuple[tuple[int, float], ...], tuple[int, ...], tuple[int, ...]]


def canonical_form(algebra: Algebra) -> Algebra:
    """A table that is the same however the units after the first are renamed.

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
    used = algebra.table != 0
    if np.any(used.sum(axis=2) > 1):
        i, j = np.argwhere(used.sum(axis=2) > 1)[0]
        raise ValueError(
            "`algebra` must have multiples of one unit as products of two units, got a sum for "
            f"{algebra.units[i]}·{algebra.units[j]}. Other tables have no canonical form here."
        )
    # For every two units, the unit that their product is a multiple of, and the factor.
    units, factors = used.argmax(axis=2).tolist(), algebra.table.sum(axis=2).tolist()
    namings = [_named((0,), (1,), units, factors)]
    while len(namings[0][1]) < algebra.dim:
        longer = [
            _named((*order, unit), (*signs, sign), units, factors)
            for _, order, signs in namings
            for unit in range(algebra.dim)
            if unit not in order
            for sign in (1, -1)
        ]
        smallest = min(products for products, _, _ in longer)
        namings = [naming for naming in longer if naming[0] == smallest]
    _, order, signs = namings[0]
    s = np.array(signs)
    return Algebra(algebra.table[np.ix_(order, order, order)] * s[:, None, None] * s[:, None] * s)


def _named(
    first: tuple[int, ...], signs_of_first: tuple[int, ...], units: list[list[int]], factors: list[list[float]]
) -> Naming:
    """Give names to the products of named units until all of them have names."""
    order, signs = list(first), list(signs_of_first)
    place = {unit: n for n, unit in enumerate(order)}
    products: list[tuple[int, float]] = []
    n = 0
    while n < len(order):
        for m in range(n + 1):
            for a, b in ((m, n), (n, m)):
                unit, factor = units[order[a]][order[b]], factors[order[a]][order[b]] * signs[a] * signs[b]
                if factor == 0:
                    products.append((len(units), 0.0))  # Zero comes last, so that the smallest table names many units.
                    continue
                if unit not in place:
                    place[unit] = len(order)
                    order.append(unit)
                    signs.append(1 if factor > 0 else -1)
                products.append((place[unit], factor * signs[place[unit]]))
        n += 1
    return tuple(products), tuple(order), tuple(signs)
