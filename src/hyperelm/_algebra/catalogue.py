"""The catalogue of algebras, and two families of algebras with parameters.

*Generalised Cayley-Dickson* algebras R[γ₁, …, γₙ] double the real numbers once for every parameter. The last doubling
has the parameter γₙ. One doubling makes pairs of numbers, which multiply as

    (a, b)(c, d) = (ac + γ d*b, da + bc*),      (a, b)* = (a*, -b).

These are the tables of the paper's Table 1. *Clifford* algebras Cl(p, q, r) have generators that anticommute: p of them
square to +1, q to -1 and r to 0.

The table that the paper prints for Cl(1,1) is in the catalogue as `paper-Cl(1,1)`. It is not a Clifford algebra: its
three units anticommute and all square to +1, and it is not associative. The true Cl(1,1) has the table of R[+1,-1],
the true Cl(2,0) that of R[+1,+1]. In both, one of the three units squares to -1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from itertools import combinations, product

import numpy as np

from hyperelm._algebra.algebra import Algebra
from hyperelm._validation import ArgumentError

__all__ = ["cayley_dickson", "clifford", "get", "names"]

_LARGEST_DIM = 128


def get(name: str | Algebra) -> Algebra:
    """The algebra called `name`.

    Parameters
    ----------
    name : str or Algebra
        A name of the catalogue (see `names`), a common alias ("H", "coquaternions", "bicomplex", …), a
        Cayley-Dickson algebra "R[g1,...,gn]" or a Clifford algebra "Cl(p,q)" or "Cl(p,q,r)". Upper and lower
        case, spaces and hyphens do not matter. A `hyperelm.Algebra` is returned as it is.

    Returns
    -------
    Algebra

    Examples
    --------
    >>> from hyperelm import algebras
    >>> algebras.get("H").structure, algebras.get("R[-1, 2.5]").structure, algebras.get("Cl(3,0)").structure
    ('H', 'M2(R)', 'M2(C)')
    """
    if isinstance(name, Algebra):
        return name
    if not isinstance(name, str):
        raise TypeError(f"`algebra` must be a name or an Algebra, got {name!r} of type {type(name).__name__}.")
    key = _normal(name)
    if key in _KEYS:
        return _catalogued(_KEYS[key])
    family = _parse_family(name)
    if family is not None:
        return family
    near = get_close_matches(key, _KEYS, n=1, cutoff=0.6)
    hint = f" Did you mean {_KEYS[near[0]]!r}?" if near else ""
    raise ArgumentError(
        "algebra",
        f"must be a known name, 'R[g1,...,gn]', 'Cl(p,q)' or 'Cl(p,q,r)', got {name!r}.{hint} "
        f"Known names: {', '.join(_CATALOGUE)}.",
    )


def names() -> list[str]:
    """The names of the catalogue.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from hyperelm import algebras
    >>> algebras.names()[:5]
    ['real', 'complex', 'hyperbolic', 'dual', 'quaternions']
    """
    return list(_CATALOGUE)


def cayley_dickson(*gammas: float) -> Algebra:
    """The generalised Cayley-Dickson algebra R[γ₁, …, γₙ] of dimension 2ⁿ.

    Every parameter doubles the algebra by (a, b)(c, d) = (ac + γ d*b, da + bc*). The last doubling has γₙ.

    Parameters
    ----------
    *gammas : float
        The parameters γ₁, …, γₙ. Without parameters, these are the real numbers.

    Returns
    -------
    Algebra

    Examples
    --------
    >>> from hyperelm import algebras
    >>> algebras.cayley_dickson(-1, -1) == algebras.get("quaternions")
    True
    """
    if not all(math.isfinite(g) for g in gammas):
        raise ValueError(f"`gammas` must be finite real numbers, got {gammas}.")
    _check_dim(len(gammas), "`gammas`")
    table = np.ones((1, 1, 1))
    for gamma in gammas:
        n, single, opposite = len(table), table, table.swapaxes(0, 1)
        conjugation = np.where(np.arange(n) == 0, 1.0, -1.0)[:, None]
        table = np.zeros((2 * n, 2 * n, 2 * n))
        table[:n, :n, :n] = single  # ac
        table[n:, n:, :n] = float(gamma) * opposite * conjugation  # γ d*b, where b comes from the left factor
        table[:n, n:, n:] = opposite  # da
        table[n:, :n, n:] = single * conjugation  # bc*
    return Algebra(table, name=f"R[{','.join(f'{g:+g}' for g in gammas)}]" if gammas else "real")


def clifford(p: int, q: int, r: int = 0) -> Algebra:
    """The Clifford algebra Cl(p, q, r): p generators square to +1, then q to -1, then r to 0.

    Its units are the products of generators, by the number of factors: 1, e1, e2, …, e12, e13, …

    Parameters
    ----------
    p, q, r : int
        How many generators square to +1, -1 and 0; the dimension is 2 to the power of their sum.

    Returns
    -------
    Algebra

    Examples
    --------
    >>> from hyperelm import algebras
    >>> algebras.clifford(2, 0).units
    ('1', 'e1', 'e2', 'e12')
    """
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in (p, q, r)):
        raise ValueError(f"`p`, `q` and `r` must be whole numbers >= 0, got {(p, q, r)}.")
    _check_dim(p + q + r, "`p + q + r`")
    squares = [1] * p + [-1] * q + [0] * r
    blades = [blade for grade in range(p + q + r + 1) for blade in combinations(range(p + q + r), grade)]
    table = np.zeros((len(blades),) * 3)
    for (i, a), (j, b) in product(enumerate(blades), repeat=2):
        # Sorting the generators of ab takes so many swaps, each of which changes the sign. Equal ones are squared.
        swaps = sum(x > y for x in a for y in b)
        sign = (-1) ** swaps * math.prod(squares[generator] for generator in set(a) & set(b))
        table[i, j, blades.index(tuple(sorted(set(a) ^ set(b))))] = sign
    units = ["1", *("e" + "".join(str(n + 1) for n in blade) for blade in blades[1:])]
    return Algebra(table, name=f"Cl({p},{q})" if r == 0 else f"Cl({p},{q},{r})", units=units)


def _check_dim(generators: int, argument: str) -> None:
    if generators >= _LARGEST_DIM.bit_length():  # not 2^generators, which may be too large to compute
        raise ValueError(
            f"{argument} must give a dimension of at most {_LARGEST_DIM}, got 2^{generators}. "
            "For larger algebras pass your own table to Algebra."
        )


def _printed(*rows: str) -> Callable[[str], Algebra]:
    """An algebra with the units i, j, k, from the table in the paper, which leaves out the identity."""
    return lambda name: Algebra.from_table([row.split() for row in rows], name=name)


def _doublings(*gammas: float) -> Callable[[str], Algebra]:
    return lambda name: Algebra(cayley_dickson(*gammas).table, name=name)


def _over_quaternions(scalars: str, unit: str) -> Callable[[str], Algebra]:
    """scalars ⊗ quaternions, with the units 1, i, j, k and then `unit` times each of them."""
    units = ["1", "i", "j", "k", unit, unit + "i", unit + "j", unit + "k"]
    return lambda name: Algebra(get(scalars).tensor(get("quaternions")).table, name=name, units=units)


_CATALOGUE: dict[str, Callable[[str], Algebra]] = {
    "real": _doublings(),
    "complex": _doublings(-1),
    "hyperbolic": _doublings(+1),
    "dual": lambda name: Algebra.from_table([["0"]], units=["ε"], name=name),
    "quaternions": _printed("-1 k -j", "-k -1 i", "j -i -1"),
    "R[-1,+1]": _printed("-1 k -j", "-k 1 -i", "j i 1"),
    "R[+1,-1]": _printed("1 k j", "-k -1 i", "-j -i 1"),
    "R[+1,+1]": _printed("1 k j", "-k 1 -i", "-j i -1"),
    "tessarines": _printed("-1 k -j", "k 1 i", "-j i -1"),
    "klein4": _printed("1 k j", "k 1 i", "j i 1"),
    "Cl(1,1)": lambda _: clifford(1, 1),
    "Cl(2,0)": lambda _: clifford(2, 0),
    "paper-Cl(1,1)": _printed("1 -k -j", "k 1 -i", "j i 1"),
    "octonions": _doublings(-1, -1, -1),
    "split-octonions": _doublings(-1, -1, +1),
    "sedenions": _doublings(-1, -1, -1, -1),
    "dual-quaternions": _over_quaternions("dual", "ε"),
    "biquaternions": _over_quaternions("complex", "h"),
}

_ALIASES = {
    "real": ["R", "reals", "real numbers"],
    "complex": ["C", "complex numbers"],
    "hyperbolic": ["hyperbolic numbers", "split-complex", "double numbers", "perplex", "duplex"],
    "dual": ["dual numbers"],
    "quaternions": ["H", "Q", "quaternion", "Hamilton"],
    "R[-1,+1]": ["coquaternions", "split-quaternions", "coquaternion", "split-quaternion"],
    "tessarines": ["T", "tessarine", "bicomplex", "bicomplex numbers"],
    "klein4": ["K4", "klein", "klein four", "klein four group"],
    "octonions": ["O", "octonion", "Cayley numbers"],
    "split-octonions": ["split-octonion"],
    "sedenions": ["S", "sedenion"],
    "dual-quaternions": ["DH", "dual quaternion"],
    "biquaternions": ["biquaternion", "complex quaternions", "complexified quaternions"],
}


def _normal(name: str) -> str:
    return re.sub(r"[\s_\-+]+", "", name).lower() if not re.search(r"[\[(]", name) else name.replace(" ", "").lower()


_KEYS: dict[str, str] = {_normal(alias): name for name, aliases in _ALIASES.items() for alias in aliases} | {
    _normal(name): name for name in _CATALOGUE
}


@cache
def _catalogued(name: str) -> Algebra:
    return _CATALOGUE[name](name)


def _parse_family(name: str) -> Algebra | None:
    """An algebra from "R[g1,...,gn]" or "Cl(p,q[,r])", or None if the text is neither."""
    match = re.fullmatch(r"\s*(?:(R)\s*\[(.*)\]|(Cl)\s*\((.*)\))\s*", name, flags=re.IGNORECASE)
    if match is None:
        return None
    make: Callable[..., Algebra] = cayley_dickson if match[1] else clifford
    try:
        numbers = [(float if match[1] else int)(part) for part in (match[2] or match[4] or "").split(",")]
    except ValueError:
        numbers = []
    if not numbers or (match[3] and len(numbers) not in (2, 3)):
        wanted = "real numbers, as in 'R[-1,+1]'" if match[1] else "two or three whole numbers, as in 'Cl(3,1)'"
        raise ArgumentError("algebra", f"must hold {wanted} between its brackets, got {name!r}.")
    try:
        return make(*numbers)
    except ValueError as error:
        raise ArgumentError("algebra", f"{name!r}: {error}") from None
