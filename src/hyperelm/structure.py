"""What a multiplication table is up to isomorphism, whatever the basis.

A finite-dimensional associative real algebra A has the *trace form* τ(x, y) = tr L(xy), whose kernel is the
radical. Where that is zero, A is a direct sum of matrix algebras over R, C and H, one for each eigenvalue
(pair) that multiplication by a generic element z of the centre has:

- a real eigenvalue whose eigenspace has dimension n² is M_n(R) if τ has positive signature there, and
  M_{n/2}(H) if it is negative (signatures n and -n: symmetric against skew-symmetric matrices);
- a pair of complex eigenvalues with a space of dimension 2n² is M_n(C).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm.laws import balanced, balancing

Table = NDArray[np.float64]
_TOLERANCE = 1e-7  # relative; a change of basis of condition 1e4 still leaves ten times that margin


def associative_structure(table: Table) -> str:
    """The isomorphism type of an associative algebra, such as "H", "M2(R)", "C + C" or "R^4"."""
    table = balanced(table)
    trace_form = np.einsum("ijk,kll->ij", table, table)
    singular_values = np.linalg.svd(trace_form, compute_uv=False)
    nilpotent = int(np.sum(singular_values <= _TOLERANCE * singular_values[0]))
    if nilpotent:
        return f"associative, not semisimple (radical of dimension {nilpotent})"
    summands = Counter(_simple_summands(table, trace_form))
    return " + ".join(_power(name, summands[name]) for name in sorted(summands, key=_order))


def _power(name: str, copies: int) -> str:
    return " + ".join([name] * copies) if copies <= 2 else f"{name}^{copies}"


def _order(name: str) -> tuple[int, str, str]:
    """R, C and H first, then matrices by size."""
    return (0, str("RCH".index(name)), "") if len(name) == 1 else (1, name[1:].zfill(8), "")


def _simple_summands(table: Table, trace_form: Table) -> list[str]:
    multiplication = _generic_central(table)
    values = np.linalg.eigvals(multiplication)
    names: list[str] = []
    for value, size in _distinct(values):
        if value.imag > 0:
            names.append(_matrices(round(float(np.sqrt(size))), "C"))
        elif value.imag == 0:
            names.append(_central_simple(multiplication, value.real, size, trace_form))
    return names


def _generic_central(table: Table) -> Table:
    """Left multiplication by the element of the centre, of several drawn, with the best separated eigenvalues."""
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
        gap = float(gaps.min(initial=1.0))
        if gap > best_gap:
            best, best_gap = candidate, gap
    return best


def _distinct(values: NDArray[Any]) -> list[tuple[complex, int]]:
    """Clusters of eigenvalues as (mean, size); a mean that is real to rounding is made exactly so."""
    tolerance = 100 * _TOLERANCE
    clusters: list[list[complex]] = []
    for value in values:
        near = next((c for c in clusters if abs(c[0] - value) < tolerance), None)
        if near is None:
            clusters.append([complex(value)])
        else:
            near.append(complex(value))
    means = [complex(np.mean(c)) for c in clusters]
    return [(m.real + 0j if abs(m.imag) < tolerance else m, len(c)) for m, c in zip(means, clusters)]


def _central_simple(multiplication: Table, value: float, size: int, trace_form: Table) -> str:
    """M_n(R) or M_{n/2}(H): the ideal on which multiplication by z is `value`, of dimension n² = `size`."""
    _, _, rows = np.linalg.svd(multiplication - value * np.eye(len(multiplication)))
    ideal = rows[-size:].T
    signature = np.sign(np.linalg.eigvalsh(ideal.T @ trace_form @ ideal)).sum()
    n = round(float(np.sqrt(size)))
    return _matrices(n, "R") if signature > 0 else _matrices(n // 2, "H")


def _matrices(n: int, field: str) -> str:
    return field if n == 1 else f"M{n}({field})"


def identity_of(table: Table) -> NDArray[np.float64] | None:
    """The number e with ex = xe = x for all x, if any: Σ_i e_i table[i, j, k] = Σ_i e_i table[j, i, k] = δ_jk."""
    e = np.eye(len(table))[0]
    if not (np.array_equal(table[0], np.eye(len(e))) and np.array_equal(table[:, 0], np.eye(len(e)))):
        # In units of like sizes; else it is exactly the first unit.
        exponents = balancing(table)
        even = balanced(table)
        both = np.stack([even, even.swapaxes(0, 1)], axis=1).reshape(len(e), -1).T
        target = np.tile(np.eye(len(e)).ravel(), 2)
        e = np.linalg.lstsq(both, target, rcond=None)[0]
        if np.abs(both @ e - target).max() > 1e-10 * max(1.0, np.abs(e).max()):
            return None
        e = np.ldexp(e, exponents)
    e.setflags(write=False)
    return e
