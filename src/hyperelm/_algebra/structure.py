"""What an algebra is up to isomorphism, in any basis, and its identity.

A finite-dimensional associative real algebra has the *trace form* τ(x, y) = tr L(xy), where L is left multiplication.
The numbers x with τ(x, y) = 0 for all y are its radical. If the radical is zero, the algebra is semisimple: a direct
sum of matrix algebras over R, C and H. Multiplication by a random element of the centre has one eigenvalue, or one pair
of complex eigenvalues, for each summand:

- a real eigenvalue with an eigenspace of dimension n² belongs to M_n(R) or M_{n/2}(H). On it τ has signature n or -n,
  positive on symmetric matrices and negative on skew-symmetric ones;
- a pair of complex eigenvalues with a space of dimension 2n² belongs to M_n(C).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.laws import balanced, balancing

Array = NDArray[np.float64]
_TOLERANCE = 1e-7  # relative; a change of basis of condition 1e4 still leaves a margin of ten


def associative_structure(table: Array) -> str:
    """The isomorphism type of an associative algebra, such as "H", "M2(R)", "C + C" or "R^4"."""
    table = balanced(table)
    trace_form = np.einsum("ijk,kll->ij", table, table)
    singular_values = np.linalg.svd(trace_form, compute_uv=False)
    radical = int(np.sum(singular_values <= _TOLERANCE * singular_values[0]))
    if radical:
        return f"associative, not semisimple (radical of dimension {radical})"
    summands = Counter(_simple_summands(table, trace_form))
    return " + ".join(_power(name, summands[name]) for name in sorted(summands, key=_order))


def _power(name: str, copies: int) -> str:
    return " + ".join([name] * copies) if copies <= 2 else f"{name}^{copies}"


def _order(name: str) -> tuple[int, str]:
    """R, C and H first, then matrices by size."""
    return (0, str("RCH".index(name))) if len(name) == 1 else (1, name[1:].zfill(8))


def _simple_summands(table: Array, trace_form: Array) -> list[str]:
    multiplication = _random_central(table)
    names: list[str] = []
    for value, size in _distinct(np.linalg.eigvals(multiplication)):
        if value.imag > 0:
            names.append(_matrices(round(float(np.sqrt(size))), "C"))
        elif value.imag == 0:
            names.append(_central_simple(multiplication, value.real, size, trace_form))
    return names


def _random_central(table: Array) -> Array:
    """Left multiplication by an element of the centre: of 20 random ones, that with the widest gaps of eigenvalues."""
    commutators = (table - table.swapaxes(0, 1)).transpose(1, 2, 0).reshape(-1, len(table))
    _, values, rows = np.linalg.svd(commutators, full_matrices=False)
    centre = rows[values <= _TOLERANCE * np.linalg.norm(table)].T
    rng = np.random.default_rng(0)
    best, best_gap = np.zeros_like(table[0]), -1.0
    for _ in range(20):
        candidate = np.einsum("i,ijk->kj", centre @ rng.standard_normal(centre.shape[1]), table)
        candidate /= np.linalg.norm(candidate, 2)
        distinct = np.array([value for value, _ in _distinct(np.linalg.eigvals(candidate))])
        gaps = np.abs(distinct[:, None] - distinct)[~np.eye(len(distinct), dtype=bool)]
        if (gap := float(gaps.min(initial=1.0))) > best_gap:
            best, best_gap = candidate, gap
    return best


def _distinct(values: NDArray[Any]) -> list[tuple[complex, int]]:
    """Clusters of eigenvalues as (mean, size). The mean of a real cluster is made exactly real."""
    tolerance = 100 * _TOLERANCE
    clusters: list[list[complex]] = []
    for value in map(complex, values):
        near = next((c for c in clusters if abs(c[0] - value) < tolerance), None)
        if near is None:
            clusters.append([value])
        else:
            near.append(value)
    means = [complex(np.mean(c)) for c in clusters]
    return [(m.real + 0j if abs(m.imag) < tolerance else m, len(c)) for m, c in zip(means, clusters)]


def _central_simple(multiplication: Array, value: float, size: int, trace_form: Array) -> str:
    """M_n(R) or M_{n/2}(H): what the eigenspace of `value`, of dimension n² = `size`, is as an algebra."""
    _, _, rows = np.linalg.svd(multiplication - value * np.eye(len(multiplication)))
    ideal = rows[-size:].T
    signature = np.sign(np.linalg.eigvalsh(ideal.T @ trace_form @ ideal)).sum()
    n = round(float(np.sqrt(size)))
    return _matrices(n, "R") if signature > 0 else _matrices(n // 2, "H")


def _matrices(n: int, field: str) -> str:
    return field if n == 1 else f"M{n}({field})"


def identity_of(table: Array) -> Array | None:
    """The number e with ex = xe = x for all x, if any: Σ_i e_i table[i, j, k] = Σ_i e_i table[j, i, k] = δ_jk."""
    one = np.eye(len(table))
    e = one[0]
    if not (np.array_equal(table[0], one) and np.array_equal(table[:, 0], one)):
        # A tolerance is only fair to all equations if their coefficients have like sizes.
        even = balanced(table)
        equations = np.stack([even, even.swapaxes(0, 1)], axis=1).reshape(len(e), -1).T
        target = np.tile(one.ravel(), 2)
        e = np.linalg.lstsq(equations, target, rcond=None)[0]
        if np.abs(equations @ e - target).max() > 1e-10 * max(1.0, np.abs(e).max()):
            return None
        e = np.ldexp(e, balancing(table))
    e.setflags(write=False)
    return e
