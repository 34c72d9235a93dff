"""A multiplication table that fits data, found from sums over the rows.

A layer multiplies rows h of L numbers by weights m, with a table t that is not known:

    y_nk = Σ_l Σ_ij h_li m_lnj t[i, j, k]      (i, k = 1 … d; j = 1 … r, mostly r = d; n = 1 … N targets).

So the matrix of the layer is a sum of r Kronecker products, Σ_j m_j ⊗ t[:, j, :], and both factors are learned.

The best table and weights have the smallest

    f(t) = min_m ‖T - Y‖² + λ‖m‖².

**From sums alone.** The rows enter through G[i, i'] = H_iᵀH_i', (L, L), and C[i, k] = H_iᵀT_k, (L, N). Given t, the
weights solve a linear system, with j and l as the indices of its rows:

    S m = c,    S[j, j'] = Σ_ii'k t[i, j, k] t[i', j', k] G[i, i'] + λ,    c[j] = Σ_ik t[i, j, k] C[i, k],

and f(t) = ‖T‖² - Σ c m. Given m, f is a quadratic function of t, with the second derivatives 2Q and the gradient g:

    Q[ij, i'j'] = ⟨G[i, i'], m_j m_j'ᵀ⟩,    R[ij, k] = ⟨C[i, k], m_j⟩,    g = 2(Qt - R).

**Steps.** Alternating both solutions converges slowly, because the weights follow every change of the table. Variable
projection takes that into account: with the weights always at their optimum, f is a function of t alone. It has the
same gradient, and, after Gauss, Newton and Kaufman, the second derivatives 2J,

    J = Q - BᵀS⁻¹B,        B[j'] = Σ_i' t[i', j', k] G[i', i] m_j        for column (i, j, k) of B.

Column (i, j, k) of B is the transposed matrix of the weights' problem times the derivative of Y by t[i, j, k].
Levenberg's and Marquardt's method solves (J + μ)δ = -g/2. A step is taken if f falls, and then μ falls; otherwise μ
rises. So f never rises.

**Which table.** A table t' = Bt with weights B⁻ᵀm gives the same products, for every invertible B on the index j. In
the search Σ_ik t[i, j, k] t[i, j', k] = d δ_jj' holds, so that the penalty means the same for every table. In the end B
makes the first unit an identity from the left, t[0, j, k] = δ_jk. That makes the table unique for data that were made
in an algebra with such a unit. Where t[0] is close to singular, the table stays as it was in the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._validation import as_real, check_whole, is_number

Array = NDArray[Any]

LARGEST_LEARNED = 16  # components of a table that is learned
STEPS = 60  # at most, of a search for a table
_ENOUGH = 1e-5  # the search ends when a step gains less than this share of what is explained
_EXACT = 1e-14  # … or less than this, of data without noise
_SMALLEST_DAMPING, _FIRST_DAMPING, _LARGEST_DAMPING = 1e-10, 1e-3, 1e8  # μ, relative to the mean of the diagonal of J
_PANEL = 2**22  # numbers in the B of targets that are handled together
_WHOLE = 1e-6  # the distance from a whole number that counts as rounding
_SINGULAR = 1e-2  # the smallest singular value of t[0], relative to the largest, for the first unit to be an identity


@dataclass(frozen=True, eq=False)
class ComponentSums:
    """What rows tell about every table: G, (d, d, L, L), C, (d, e, L, N), and ‖T‖², NaN where it is not known.

    e is the number of components that the targets have, and `eps` the precision in which rows were summed.
    """

    G: Array
    C: Array
    square: float
    eps: float

    @classmethod
    def of(cls, gram: Array, cross: Array, square: float, d: int) -> ComponentSums:
        """From HᵀH, (L d, L d), and HᵀT, (L d, N d), the components of a number side by side."""
        L, N = gram.shape[0] // d, cross.shape[1] // d
        G = gram.reshape(L, d, L, d).transpose(1, 3, 0, 2)
        C = cross.reshape(L, d, N, d).transpose(1, 3, 0, 2)
        eps = float(np.finfo(gram.dtype).eps)
        return cls(np.ascontiguousarray(G, np.float64), np.ascontiguousarray(C, np.float64), square, eps)

    @property
    def dim(self) -> int:
        return len(self.G)

    def of_components(self, filled: NDArray[np.bool_]) -> ComponentSums:
        """The sums of targets with these components alone."""
        return replace(self, C=np.ascontiguousarray(self.C[:, filled]))

    def mixed(self, mix: Array) -> ComponentSums:
        """The sums of the targets T·mix, mix being (N, R) and real."""
        return replace(self, C=np.ascontiguousarray(self.C @ mix), square=np.nan)


@dataclass(frozen=True, eq=False)
class Learned:
    """A table and how the search came to it.

    table : (d, r, d)
    objective : f(t) - ‖T‖², after every step
    """

    table: NDArray[np.float64]
    objective: list[float]


@dataclass(frozen=True, eq=False)
class _Point:
    """A table in the search, and the weights that are the best for it.

    factor : the lower Cholesky factor of S
    m : (r, L, N)
    value : f(t) - ‖T‖² = -Σ c m
    """

    table: Array
    factor: Array
    m: Array
    value: float


def learn_table(sums: ComponentSums, start: Array, ridge: float, steps: int = STEPS) -> Learned:
    """The table with the smallest f(t) that so many steps find from a table to start with."""
    filled = np.asarray(start.any(axis=(0, 1)))  # nothing is asked of components that are zero in all products
    if not filled.any():
        return Learned(np.zeros(start.shape), [0.0])
    sums = sums.of_components(filled)
    point = _point(sums, _balanced(start[:, :, filled]), ridge)
    objective, damping = [point.value], _FIRST_DAMPING
    for _ in range(steps):
        following = _step(sums, point, ridge, damping)
        if following is None:
            break
        (point, damping), before = following, point.value
        objective.append(point.value)
        unexplained = sums.square + point.value
        # Where nearly all is explained, the last steps gain little of it, but many digits of the table.
        is_exact = 0 < unexplained < 1e-3 * sums.square
        if before - point.value <= (_EXACT if is_exact else _ENOUGH) * abs(point.value):
            break
    table = np.zeros(start.shape)
    table[:, :, filled] = point.table
    return Learned(with_left_identity(table), objective)


def random_tables(shape: tuple[int, int, int], count: int, seed: int = 0) -> Iterator[NDArray[np.float64]]:
    """Tables to start from, the same at every call."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) for _ in range(count))


def with_left_identity(table: Array) -> NDArray[np.float64]:
    """The table Bt of the same products whose first unit is an identity from the left, where that can be.

    Some components k may be zero in all products, because no target has them. On the others t[0, j, k] = δ_jk is
    wanted. For the remaining j, B takes those combinations of t whose t[0] vanishes. Entries that are
    whole numbers but for rounding become whole numbers.
    """
    r = table.shape[1]
    used = np.flatnonzero(table.any(axis=(0, 1)))
    first = table[0][:, used]
    sigma = np.linalg.svd(first, compute_uv=False)
    if len(used) == 0 or used[-1] >= r or sigma[-1] < _SINGULAR * sigma[0]:
        return np.array(table)
    B = np.empty((r, r))
    B[used] = np.linalg.pinv(first)
    B[np.setdiff1d(np.arange(r), used)] = linalg.null_space(first.T).T
    result = np.einsum("ab,ibk->iak", B, table)
    whole = np.round(result)
    return np.where(np.abs(result - whole) < _WHOLE, whole, result)


def _balanced(table: Array) -> Array:
    """The nearest table, (d, r, e), with Σ_ik t[i, j, k] t[i, j', k] = d δ_jj'."""
    d, r, e = table.shape
    u, _, vt = np.linalg.svd(table.transpose(1, 0, 2).reshape(r, d * e), full_matrices=False)
    return np.sqrt(d) * (u @ vt).reshape(r, d, e).transpose(1, 0, 2)


def _point(sums: ComponentSums, table: Array, ridge: float) -> _Point:
    (d, r, e), L, N = table.shape, sums.G.shape[2], sums.C.shape[3]
    # S[j, j'] = Σ_ii' (Σ_k t[i, j, k] t[i', j', k]) G[i, i'], as one product of matrices
    squares = np.einsum("ijk,abk->jbia", table, table).reshape(r * r, d * d)
    S = (squares @ sums.G.reshape(d * d, -1)).reshape(r, r, L, L).transpose(0, 2, 1, 3).reshape(r * L, r * L)
    c = (table.transpose(1, 0, 2).reshape(r, d * e) @ sums.C.reshape(d * e, -1)).reshape(r * L, N)
    factor = _factor(S, ridge, sums.eps)
    m = linalg.cho_solve((factor, True), c, check_finite=False)
    return _Point(table, factor, m.reshape(r, L, N), -float(np.sum(c * m)))


def _factor(S: Array, ridge: float, eps: float) -> Array:
    """The lower Cholesky factor of S plus a ridge, which is large enough for rounding not to make it indefinite."""
    ridge = max(ridge, eps * float(np.trace(S))) or 1.0
    while True:
        penalised = S.copy()
        penalised.flat[:: len(S) + 1] += ridge
        try:
            factor: Array = linalg.cholesky(penalised, lower=True, overwrite_a=True, check_finite=False)
            return factor
        except linalg.LinAlgError:
            ridge *= 10


def _step(sums: ComponentSums, point: _Point, ridge: float, damping: float) -> tuple[_Point, float] | None:
    """The next point and the damping for the step after it; None where no step makes f smaller."""
    Q, R = _of_table(sums, point.m)
    d, r, e = shape = point.table.shape
    half_gradient = (Q @ point.table.reshape(d * r, e) - R).ravel()
    J = np.kron(Q, np.eye(e)) - _projected(sums, point)
    unit = float(np.trace(J)) / len(J)
    while 0 < unit < np.inf and damping <= _LARGEST_DAMPING:
        damped = J + damping * unit * np.eye(len(J))
        change = linalg.solve(damped, -half_gradient, assume_a="sym", check_finite=False)
        there = _point(sums, _balanced(point.table + change.reshape(shape)), ridge)
        if there.value <= point.value:
            return there, max(damping / 10, _SMALLEST_DAMPING)
        damping *= 10
    return None


def _of_table(sums: ComponentSums, m: Array) -> tuple[Array, Array]:
    """Q, (d r, d r), and R, (d r, e)."""
    d, r, e = sums.dim, len(m), sums.C.shape[1]
    products = np.einsum("jln,bpn->jblp", m, m, optimize=True)
    Q = (sums.G.reshape(d * d, -1) @ products.reshape(r * r, -1).T).reshape(d, d, r, r)
    R = (sums.C.reshape(d * e, -1) @ m.reshape(r, -1).T).reshape(d, e, r)
    return Q.transpose(0, 2, 1, 3).reshape(d * r, d * r), R.transpose(0, 2, 1).reshape(d * r, e)


def _projected(sums: ComponentSums, point: _Point) -> Array:
    """BᵀS⁻¹B, (d r e, d r e), some targets n at a time: with S = FFᵀ it is a sum of (F⁻¹B_n)ᵀ(F⁻¹B_n)."""
    (d, r, e), (_, L, N) = point.table.shape, point.m.shape
    total = np.zeros((d * r * e, d * r * e))
    by_product = point.table.transpose(1, 2, 0).reshape(r * e, d)  # (j', k), i'
    step = max(1, _PANEL // (r * L * d * r * e))
    for at in (slice(n, n + step) for n in range(0, N, step)):
        m = point.m[:, :, at].transpose(1, 0, 2).reshape(L, -1)
        Gm = sums.G.reshape(d, d * L, L) @ m  # G[i', i] m_j as i', (i, l), (j, n)
        B = (by_product @ Gm.reshape(d, -1)).reshape(r, e, d, L, r, -1)  # j', k, i, l, j, n
        B = B.transpose(0, 3, 2, 4, 1, 5).reshape(r * L, -1)
        V = linalg.solve_triangular(point.factor, B, lower=True, overwrite_b=True, check_finite=False)
        V = V.reshape(r * L, d * r * e, -1).swapaxes(0, 1).reshape(d * r * e, -1)
        total += V @ V.T
    return total


# ---------------------------------------------------------------------- the public function


def learn(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    dim: int | None = None,
    n_terms: int | None = None,
    ridge: float = 0.0,
    n_starts: int = 3,
    random_state: int = 0,
    name: str = "learned",
) -> Algebra:
    """The algebra that fits linear data best: Y ≈ XM with numbers M and a multiplication table that are both learned.

    The table is normalised so that its first unit is an identity from the left, where that can be. So data that were
    made in an algebra with an identity give back the table of that algebra.

    Parameters
    ----------
    X : array of shape (n, L, d) or (n, L · dim)
    Y : array of shape (n, N, d) or (n, N · dim)
    dim : int, optional
        The number of components d; needed for columns.
    n_terms : int, optional
        How many components a weight has, at most d, which is the default. The product is a sum of as many Kronecker
        products; the table has zeros for the other components.
    ridge : float
        The penalty on M.
    n_starts : int
        Random tables that the search starts from. The best result is taken.
    random_state : int
    name : str
        The name of the algebra.

    Returns
    -------
    Algebra

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import algebras, linalg
    >>> rng = np.random.default_rng(0)
    >>> X, M = rng.standard_normal((100, 3, 4)), rng.standard_normal((3, 2, 4))
    >>> Y = linalg.matmul(X, M, algebras.get("quaternions"))
    >>> algebras.learn(X, Y) == algebras.get("quaternions")
    True
    """
    x, y = _numbers(X, dim, "X"), _numbers(Y, dim, "Y")
    d = x.shape[2]
    if len(x) != len(y) or y.shape[2] != d:
        raise ValueError(
            f"`Y` must have the rows and components of `X`, {len(x)} and {d}, got {len(y)} and {y.shape[2]}."
        )
    if d > LARGEST_LEARNED:
        raise ValueError(f"`X` must have numbers of at most {LARGEST_LEARNED} components, got {d}.")
    r = d if n_terms is None else n_terms
    for value, argument, most in ((r, "n_terms", d), (n_starts, "n_starts", None)):
        check_whole(value, argument)
        if most is not None and value > most:
            raise ValueError(f"`{argument}` must be at most the {most} components of a number, got {value}.")
    if not (is_number(ridge) and ridge >= 0):
        raise ValueError(f"`ridge` must be a finite number >= 0, got {ridge!r}.")
    rows, targets = x.reshape(len(x), -1), y.reshape(len(y), -1)
    sums = ComponentSums.of(rows.T @ rows, rows.T @ targets, float(np.sum(targets**2)), d)
    filled = y.any(axis=(0, 1))  # nothing is asked of components that no target has
    starts = random_tables((d, r, d), n_starts, random_state)
    found = min((learn_table(sums, start * filled, ridge) for start in starts), key=lambda one: one.objective[-1])
    return Algebra(np.pad(found.table, ((0, 0), (0, d - r), (0, 0))), name=name)


def _numbers(array: ArrayLike, dim: int | None, name: str) -> Array:
    """(n, numbers, d) in double precision."""
    numbers = np.asarray(as_real(array, name), np.float64)
    if numbers.ndim == 2 and dim is not None:
        check_whole(dim, "dim")
        if numbers.shape[1] % dim:
            raise ValueError(f"`{name}` must have a multiple of {dim} columns, got {numbers.shape[1]}.")
        numbers = numbers.reshape(len(numbers), -1, dim)
    if numbers.ndim != 3 or (dim is not None and numbers.shape[2] != dim):
        raise ValueError(
            f"`{name}` must be numbers of shape (n, count, d), or columns (n, count · dim) with `dim`, got shape "
            f"{np.shape(array)} and dim={dim}."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"`{name}` must be finite. Remove or impute such rows.")
    return numbers
