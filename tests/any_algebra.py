"""Algebras of every sort for hypothesis to draw: with an identity in any place, and without one."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hyperelm import Algebra, algebras
from oracles import in_units


def permuted(algebra, order):
    """The same algebra with its units in another order."""
    return Algebra(algebra.table[np.ix_(order, order, order)])


def scaled(algebra, scales):
    """The same algebra in the units s_i e_i."""
    return Algebra(in_units(algebra.table, np.asarray(scales, float)))


def rotated(algebra, seed):
    """The same algebra in a random basis."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((algebra.dim,) * 2))[0]
    return Algebra(np.einsum("ai,bj,ijk,ck->abc", Q, Q, algebra.table, Q))


def left_only():
    """xy = f(x) y with f(x) = x₀ + x₁: every x with f(x) = 1 is an identity from the left, none from the right."""
    return Algebra(np.stack([np.eye(2)] * 2))


def cross():
    """The cross product in three dimensions: xx = 0, and no Φ_L(x) has a trace."""
    table = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        table[i, j, k], table[j, i, k] = 1, -1
    return Algebra(table)


H, C, R = (algebras.get(name) for name in ("quaternions", "complex", "real"))
LAST = permuted(H, [1, 2, 3, 0])
DOUBLED = Algebra([[[2.0]]])
# Algebras with an identity, and what it is.
WITH_IDENTITY = {
    "quaternions": (H, [1, 0, 0, 0]),
    "1 last": (LAST, [0, 0, 0, 1]),
    "entry 2": (DOUBLED, [0.5]),
    "entry -3": (Algebra([[[-3.0]]]), [-1 / 3]),
    "C + H": (C.direct_sum(H), [1, 0, 1, 0, 0, 0]),
    "other units": (scaled(LAST, [1, 100, 0.1, 4]), [0, 0, 0, 0.25]),
    "units of any size": (scaled(LAST, [1e4, 1e-4, 1, 1e3]), [0, 0, 0, 1e-3]),
    "1 last + entry 2": (LAST.direct_sum(DOUBLED), [0, 0, 0, 1, 0.5]),
    "octonions reversed": (permuted(algebras.get("octonions"), list(range(7, -1, -1))), [0] * 7 + [1]),
}
# Those without.
WITHOUT = {
    "cross": cross(),
    "two cross": cross().direct_sum(cross()),
    "left only": left_only(),
    "R + nothing": R.direct_sum(Algebra([[[0.0]]])),
    "nothing": Algebra(np.zeros((2, 2, 2))),
}


@st.composite
def tables(draw):
    """With and without an identity: permuted, rotated, in other units, direct sums, whole numbers and fractions."""
    kind = draw(st.sampled_from(["named", "permuted", "rotated", "sum", "whole", "fractions", "special"]))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    named = algebras.get(draw(st.sampled_from(["real", "complex", "dual", "quaternions", "klein4", "paper-Cl(1,1)"])))
    if kind == "permuted":
        return scaled(permuted(named, rng.permutation(named.dim)), rng.uniform(0.5, 2, named.dim))
    if kind == "rotated":
        return rotated(named, seed)
    if kind == "sum":
        return permuted(named, rng.permutation(named.dim)).direct_sum(draw(st.sampled_from([C, LAST, DOUBLED])))
    if kind in ("whole", "fractions"):
        d = draw(st.integers(1, 4))
        return Algebra(rng.integers(-1, 2, (d, d, d)) if kind == "whole" else rng.standard_normal((d, d, d)))
    if kind == "special":
        return draw(st.sampled_from([*(a for a, _ in WITH_IDENTITY.values()), *WITHOUT.values()]))
    return named
