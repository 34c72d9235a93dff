"""Means and spreads of columns, against NumPy on all rows at once."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, dask
from hyperelm._training.scales import Columns, Scales


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    offset=st.sampled_from([0.0, 1.0, -1e6, 1e200]),
    scale=st.sampled_from([1e-200, 1.0, 1e3, 1e200]),
    seed=st.integers(0, 99),
)
def test_chunks_are_as_good_as_all_rows(sizes, offset, scale, seed):
    rng = np.random.default_rng(seed)
    chunks = [scale * rng.standard_normal((n, 3)) + offset for n in sizes]
    scales = reduce(Scales.merged, [Scales.of(chunk, chunk[:, 0]) for chunk in chunks])
    units = max(scale, abs(offset))
    rows = np.concatenate(chunks) / units
    found = scales.inputs
    assert_allclose(found.mean / units, rows.mean(axis=0), rtol=0, atol=1e-13)
    assert_allclose(found.spread / units, rows.std(axis=0), rtol=0, atol=1e-13)
    assert_allclose(scales.targets.spread / units, rows[:, 0].std(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e300])
def test_a_constant_has_no_spread(value):
    chunks = [Scales.of(np.full((n, 2), value), np.full(n, value)) for n in (1, 7, 64, 1000)]
    scales = reduce(Scales.merged, chunks)
    assert_array_equal(scales.inputs.spread, 0)


def test_rows_that_lie_as_those_of_training():
    columns = Columns(np.array([1.0, 1e6, 3.0]), np.array([2.0, 5.0, 0.0]))
    rows = columns.rows(20_000)
    assert_allclose(rows.mean(axis=0), columns.mean, atol=0.1)
    assert_allclose(rows.std(axis=0), columns.spread, rtol=0.02)
    assert_array_equal(columns.rows(5), columns.rows(5))


@pytest.mark.parametrize("kind", ["memory", "file", "chunks", "iterator"])
def test_every_source(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 4)) * [1, 2, 3, 0] + [0, 1e3, -5, 7]
    y = X[:, 0] + 10
    parts = [(X[n : n + 500], y[n : n + 500]) for n in range(0, 3000, 500)]
    model = ELMRegressor("complex", 4, weight_scale=0.1, ridge=0.1, chunk_size=500, random_state=0)
    if kind == "memory":
        model.fit(X, y)
    elif kind == "file":
        stored = np.memmap(tmp_path / "X", dtype=X.dtype, mode="w+", shape=X.shape)
        stored[...] = X
        model.fit(stored, y)
    else:
        model.fit(parts if kind == "chunks" else iter(parts))
    found = model._scales
    assert_allclose(found.inputs.mean, X.mean(axis=0), atol=0.5)
    assert_allclose(found.inputs.spread, X.std(axis=0), rtol=0.1)
    assert_allclose(found.targets.spread, y.std(), rtol=0.1)
    again = model.partial_fit(X[:10] + 1e9, y[:10])._scales
    assert again is found


def test_every_estimator():
    X = np.random.default_rng(0).standard_normal((60, 6))
    autoencoder = ELMAutoencoder("complex", 2, random_state=0).fit(X)
    assert autoencoder._scales.inputs is autoencoder._scales.targets
    assert_allclose(autoencoder._scales.inputs.spread, X.std(axis=0))
    classifier = ELMClassifier("complex", 4, random_state=0).fit(X, np.arange(60) % 3)
    assert_allclose(classifier._scales.targets.mean, 1 / 3)


def test_on_a_cluster():
    """As in the process, whatever the order in which partitions are read."""
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((900, 4)) * [1, 2, 3, 0] + [0, 1e3, -5, 7]
    model = ELMRegressor("complex", 4, weight_scale=0.1, ridge=0.1, random_state=0)
    found = [
        dask.fit(model, da.from_array(X, chunks=(60, 4)), da.from_array(X[:, 0], chunks=60))._scales for _ in range(3)
    ]
    assert found[0] == found[1] == found[2]
    assert_allclose(found[0].inputs.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(found[0].inputs.spread, X.std(axis=0), rtol=1e-9)
    assert_allclose(found[0].targets.spread, X[:, 0].std(), rtol=1e-9)
