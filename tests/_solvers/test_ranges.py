"""Least squares over tables whose entries are far apart, far from 1, or near those of a more symmetric table.

The oracle is NumPy's least squares on Φ_L(A), written out from the table in double precision.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperelm import Algebra, algebras, linalg
from hyperelm._solvers import gram
from oracles import in_units

SEEDS = st.integers(0, 2**32 - 1)
NAMES = ["complex", "klein4", "R[-1,+1]", "tessarines", "quaternions", "paper-Cl(1,1)", "octonions"]


def check(table, dtype=np.float64, seed=0, L=3, N=2):
    """Every method, with as much error as the documentation allows: eps κ² by gram, and eps κ by qr and svd."""
    rng, d, algebra = np.random.default_rng(seed), len(table), Algebra(table)
    A = rng.standard_normal((8 * L, L, d)).astype(dtype)
    size = np.abs(table).max()
    P = np.einsum("mli,ijk->mklj", A.astype(float), table / size).reshape(8 * L * d, L * d)
    sigma = np.linalg.svd(P, compute_uv=False)
    kappa, eps = sigma[0] / sigma[-1], float(np.finfo(dtype).eps)
    X = rng.standard_normal((L * d, N))
    B = P @ X
    B += 1e-3 * np.linalg.norm(B) / np.sqrt(B.size) * rng.standard_normal(B.shape) / kappa
    B = B.reshape(8 * L, d, N).swapaxes(1, 2).astype(dtype)
    expected = np.linalg.lstsq(P, B.swapaxes(1, 2).reshape(-1, N).astype(float), rcond=None)[0]
    expected = expected.reshape(L, d, N).swapaxes(1, 2)
    for method, error in {
        "gram": eps * kappa**2,
        "qr": eps * kappa,
        "svd": eps * kappa,
        "auto": eps * kappa**2,
    }.items():
        if 1000 * error > 0.1:
            continue  # nothing is promised
        result = linalg.lstsq(A, B, algebra, method=method)
        got = result.x.astype(float) * size  # far from 1, squares of x overflow
        np.testing.assert_allclose(got, expected, rtol=0, atol=1000 * error * np.abs(expected).max(), err_msg=method)
        assert result.rank == L * d, method
        np.testing.assert_allclose(result.condition, kappa, rtol=0.2)


@pytest.mark.parametrize("name", ["quaternions", "klein4", "complex"])
def test_units_of_other_lengths(name):
    table = algebras.get(name).table
    for s in ([1, 100, 0.1, 0.1], [1, 0.01, 10, 10], [1, 1e-3, 1, 1e3]):
        check(in_units(table, np.array(s)[: len(table)]))


@given(seed=SEEDS, dim=st.integers(1, 5))
def test_random_tables_of_wide_range(seed, dim):
    rng = np.random.default_rng(seed)
    check(10 ** rng.uniform(-3, 3, (dim,) * 3) * rng.choice([-1, 1], (dim,) * 3), seed=seed)


@given(seed=SEEDS, name=st.sampled_from(NAMES))
def test_known_algebras_in_random_units(seed, name):
    table, rng = algebras.get(name).table, np.random.default_rng(seed)
    check(in_units(table, 10 ** rng.uniform(-2, 2, len(table))), seed=seed)


@settings(max_examples=10)  # each finds the blocks and schemes of a new table
@given(seed=SEEDS, name=st.sampled_from(NAMES[:5]), noise=st.sampled_from([1e-14, 1e-12, 1e-10, 1e-8, 1e-6]))
def test_tables_near_a_more_symmetric_one(seed, name, noise):
    table, rng = algebras.get(name).table, np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "is_large_product", lambda *_: True)
        check(table + noise * rng.uniform(-1, 1, table.shape), seed=seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("factor", "dtype"), [
    (1e-25, np.float32), (1e20, np.float32), (1e-160, np.float64), (1e140, np.float64), (3.7, np.float64)
])  # fmt: skip
def test_tables_far_from_1(name, factor, dtype):
    check(factor * algebras.get(name).table, dtype)


@given(seed=SEEDS, factor=st.floats(-150, 150), dim=st.integers(2, 4))
def test_tables_of_wide_range_far_from_1(seed, factor, dim):
    rng = np.random.default_rng(seed)
    check(10 ** (factor + rng.uniform(-2, 2, (dim,) * 3)) * rng.choice([-1, 1], (dim,) * 3), seed=seed)
