"""Accumulators over the real numbers, of all components, as accumulators over an algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from helpers import VARIED, numbers
from hyperelm import Algebra, algebras
from hyperelm._solvers.accumulator import Embedding
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve
from hyperelm._solvers.svd import AllRows


@pytest.mark.parametrize("name", [*VARIED, "random"])
@pytest.mark.parametrize("method", [Gram, QR, AllRows])
def test_sums_of_components_contain_those_of_every_table(name, method):
    """With components that no column fills, and one number whose components are multiples of one column."""
    algebra = Algebra(1e3 * numbers((3, 3, 3), 7)) if name == "random" else algebras.get(name)
    d, m, L, N = algebra.dim, 60, 4, 3
    H, T, weight = numbers((m, L, d)), numbers((m, N, d), 1), np.random.default_rng(2).uniform(0, 2, m)
    e = 0.3 ** np.arange(d)
    H[:, -1] = e * H[:, -1, :1]
    T[:, :, 1:2] = 0
    filled = np.flatnonzero(np.arange(N * d) % d != 1) if d > 1 else np.arange(N)
    own = (L - 1) * d
    unknowns = Embedding(
        np.arange(L * d), np.append(np.arange(own), np.full(d, own)), np.append(np.ones(own), e), (L, d)
    )
    targets = Embedding(filled, np.arange(len(filled)), np.ones(len(filled)), (N, d))
    by_component = method(algebras.get("real"), own + 1, len(filled))
    columns = H.reshape(m, L * d)[:, : own + 1], T.reshape(m, N * d)[:, filled]
    direct = method(algebra, L, N)
    for rows in (slice(0, 25), slice(25, m)):
        by_component.update(*(part[rows, :, None] for part in columns), weight[rows])
        direct.update(H[rows], T[rows], weight[rows])
    over = by_component.over(algebra, unknowns, targets)
    assert (over.n_rows, over.weight) == (direct.n_rows, direct.weight)
    for ridge in (0.1, "gcv"):
        mine, expected = (solve(one, ridge, free=[L - 1]) for one in (over, direct))
        assert mine.ridge == pytest.approx(expected.ridge, rel=1e-6)
        assert_allclose(mine.coef, expected.coef, rtol=1e-6, atol=1e-8)
