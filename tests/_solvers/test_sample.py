"""Which rows stand for all rows when they are left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import accumulated
from hyperelm import algebras
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.sample import RowSample, drawn, sample_size


@given(st.integers(1, 400), st.floats(0.01, 1.0), st.integers(0, 1000))
def test_rows_drawn_stand_for_all(count, share, seed):
    lengths = np.random.default_rng(seed).exponential(size=count)
    at, times = drawn(lengths, share)
    assert len(at) == len(set(at.tolist())) == min(count, int(np.ceil(share * count)))
    assert times.sum() == pytest.approx(count)
    farthest = np.argsort(-lengths)[: int(0.25 * len(at))]
    assert set(farthest) <= set(at.tolist())


def test_sample_size():
    algebra = algebras.get("quaternions")
    assert sample_size(Gram(algebra, 100, 1)) > 2000
    assert sample_size(Gram(algebra, 100, 10**5)) > 1900
    assert sample_size(Gram(algebra, 10**5, 1)) == 256


def of_rows(name, n_rows, unknowns):
    rng, dim = np.random.default_rng(0), algebras.get(name).dim
    H, T = rng.standard_normal((n_rows, unknowns, dim)), rng.standard_normal((n_rows, 1, dim))
    return accumulated(Gram, algebras.get(name), H, T)


def test_few_rows_take_the_work_of_rows():
    """They are kept, and a leverage takes as many products as there are rows, not unknowns."""
    assert sample_size(of_rows("real", 400, 2000)) >= 400
    assert sample_size(of_rows("real", 2001, 2000)) == 256


def test_leverage_matrices_are_exact_where_all_rows_can_be_left_out():
    """Otherwise those of octonions count as multiples of the identity, and more rows are affordable."""
    assert 500 < sample_size(of_rows("octonions", 500, 30)) < 1200
    assert sample_size(of_rows("octonions", 1500, 30)) > 4000


def test_a_merged_sample_is_whole_if_both_parts_are():
    def part(is_whole):
        return RowSample(np.zeros((2, 3, 1)), np.zeros((2, 1, 1)), np.ones(2), np.ones(2), is_whole)

    for first, second in ((True, True), (True, False), (False, True)):
        whole = part(first)
        whole.merge(part(second))
        assert whole.is_whole == (first and second)
        assert whole.H.shape == (4, 3, 1)
