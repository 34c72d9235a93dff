"""Which rows tell how sure a model is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hyperelm import ELMClassifier, ELMRegressor, algebras
from hyperelm._solvers.gram import Gram
from hyperelm._training.certainty import layout_of_probes, own_share
from hyperelm._training.rows import LocalSource


def data(count=200):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 4))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(count)


@pytest.mark.parametrize(
    ("n_rows", "targets", "expected"),
    [(100, 1, 100), (512, 1, 512), (5000, 1, 512), (80_000, 1, 5000), (10**7, 1, 2**20 // 200), (5000, 10**5, 256)],
)
def test_how_many_rows_a_pass_of_its_own_leaves_out(n_rows, targets, expected):
    accumulator = Gram(algebras.get("real"), 20 if targets > 1 else 199 if n_rows == 10**7 else 20, targets)
    accumulator.n_counted = n_rows
    assert_allclose(own_share(accumulator) * n_rows, expected, rtol=0.01)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 8, 100])
def test_probes_have_at_least_64_columns(dim):
    layout = layout_of_probes(dim)
    assert layout.columns == layout.features * dim
    assert 64 <= layout.columns < 64 + dim


def test_the_same_ridge_gives_the_same_however_it_was_chosen():
    X, y = data()
    chosen = ELMRegressor("real", 10, random_state=0).fit(X, y)
    fixed = ELMRegressor("real", 10, ridge=chosen.ridge_, random_state=0).fit(X, y)
    assert_allclose(fixed.predict_interval(X), chosen.predict_interval(X), rtol=1e-6, atol=1e-6)
    labels = y > 0
    chosen = ELMClassifier("real", 10, random_state=0).fit(X, labels)
    fixed = ELMClassifier("real", 10, ridge=chosen.ridge_, random_state=0).fit(X, labels)
    assert_allclose(fixed.predict_proba(X), chosen.predict_proba(X), rtol=1e-6)


def test_rows_that_are_read_once_are_not_left_out(monkeypatch):
    passes = []
    fold = LocalSource.fold
    monkeypatch.setattr(
        LocalSource, "fold", lambda self, work, finish: passes.append(work.name) or fold(self, work, finish)
    )
    X, y = data()
    settings = {"ridge": 0.1, "weight_scale": 1.0, "random_state": 0}
    ELMRegressor("real", 10, **settings).fit(iter([(X, y)])).partial_fit(X, y)
    ELMClassifier("real", 10, **settings).partial_fit(X, y > 0, [False, True])
    assert "leave-one-out" not in passes
    ELMRegressor("real", 10, chunk_size=50, **settings).fit(X, y)
    assert passes[-1] == "leave-one-out"
