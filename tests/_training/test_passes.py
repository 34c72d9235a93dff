"""Every pass against its formula, and merged from parts as it would be on several machines."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import numbers
from hyperelm import algebras
from hyperelm._network.activations import get
from hyperelm._network.layers import Given
from hyperelm._network.layout import Layout
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.losses import squares
from hyperelm._solvers.qr import QR
from hyperelm._solvers.spectrum import Spectrum
from hyperelm._solvers.svd import AllRows
from hyperelm._training.leaving_out import LeavingOut, PartOfLayer
from hyperelm._training.passes import (
    FirstLook,
    Sampling,
    Seen,
    Trained,
    Training,
    check_range,
    values,
    weighted_length,
)
from hyperelm._training.principal import MomentPass
from hyperelm._training.rows import Rows, add_all
from hyperelm._training.scales import Scales
from oracles import hidden, left_matrix, penalised, refitted_residuals, ridge_solution, to_real

H4 = algebras.get("quaternions")
X, Y = numbers((30, 8)), numbers((30, 4), 1)
WEIGHT = np.random.default_rng(2).integers(0, 3, 30).astype(float)
W = 0.4 * numbers((3, 5, 4), 3)


def training(method=QR, *, bias=True, direct_link=False, targets=values, **options):
    """The pass for two quaternions in, one out, and five neurons."""
    layouts = Layout.of(X, H4, "full"), Layout.of(Y, H4, "full")
    W_ = W if bias else W[:-1]
    return Training(method, Given(W_), bias, direct_link, get("tanh"), H4, *layouts, targets, None, **options)


def gathered(work, rows, cuts=()):
    """What a pass gathers from rows that are cut in these places, merged."""
    arrays = [rows.X, rows.T] + ([] if rows.weight is None else [rows.weight])
    total = None
    for part in zip(*(np.split(array, cuts) for array in arrays)):
        found = add_all(work, work.begin(), Rows(*part, *[None] * (3 - len(part))))
        if total is None:
            total = found
        elif isinstance(found, list):
            total = [mine + theirs for mine, theirs in zip(total, found)]
        else:
            total.merge(found)
    return total


CUTS = [(), (11,), (1, 11, 29)]


# ---------------------------------------------------------------------- the first look


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_norm_of_rows(cuts, weight):
    """√(Σ w‖x‖² / Σw)."""
    seen = gathered(FirstLook(8, norms=True, labels=False), Rows(X, Y, weight), cuts)
    w = np.ones(30) if weight is None else weight
    assert seen.weight == w.sum()
    assert seen.norm == pytest.approx(np.sqrt(w @ np.sum(X**2, axis=1) / w.sum()), rel=1e-14)
    assert seen.labels is None


@pytest.mark.parametrize("cuts", CUTS)
def test_labels_and_how_often_they_occur(cuts):
    labels = np.array(["b", "c", "a"])[np.minimum(np.arange(30) % 4, 2)]
    seen = gathered(FirstLook(8, norms=False, labels=True), Rows(X, labels, None), cuts)
    expected, counts = np.unique(labels, return_counts=True)
    assert_array_equal(seen.labels, expected)
    assert_array_equal(seen.counts, counts)
    assert seen.norm == 0


def test_fractions_are_no_labels():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        gathered(FirstLook(8, norms=False, labels=True), Rows(X, Y[:, 0], None))


def test_nothing_seen():
    seen = Seen()
    seen.merge(Seen())
    assert (seen.norm, seen.labels, seen.counts) == (0, None, None)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_lengths_whose_squares_are_no_numbers(unit):
    expected = unit * np.sqrt(WEIGHT @ np.sum(X**2, axis=1))
    assert weighted_length(unit * X, WEIGHT) == pytest.approx(expected, rel=1e-14)


# ---------------------------------------------------------------------- training


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
def test_what_the_output_layer_sees(bias, direct_link):
    work = training(bias=bias, direct_link=direct_link)
    H, t, targets, cost = work.numbers(Rows(X, Y, None).chunk(slice(0, 30)))
    x = X.reshape(30, 2, 4)
    assert_allclose(H, hidden(x, work.encoder.weights, H4, bias=bias, direct_link=direct_link), atol=1e-13)
    assert_array_equal(t.array, Y.reshape(30, 1, 4))
    assert targets is Y or np.array_equal(targets, Y)
    assert cost is None
    assert work.width == H.shape[1] == 5 + 2 * direct_link + bias
    at, source, factor, shape = work.unknowns
    assert shape == (work.width, 4)
    columns = work.components(H, targets)[0][:, :, 0]
    assert_array_equal(work.unknowns.numbers(columns), H)  # no component that rows may fill is lost
    assert columns.shape[1] == work.unknowns.columns == 20 + 8 * direct_link + bias
    assert len(at) == len(source) == len(factor) == 20 + 8 * direct_link + bias


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("method", [Gram, QR, AllRows])
def test_the_problem_of_the_output_layer(method, weight, cuts):
    """The accumulator solves min ‖√w (Φ_L(H) x - t)‖² + λ‖x‖², where λ leaves out the bias."""
    trained = gathered(training(method), Rows(X, Y, weight), cuts)
    accumulator = trained.accumulator
    w = np.ones(30) if weight is None else weight
    assert type(accumulator) is method
    assert (accumulator.n_rows, accumulator.n_counted) == (30, np.count_nonzero(w))
    assert accumulator.weight == w.sum()
    roots = np.repeat(np.sqrt(w), 4)[:, None]
    P, t = left_matrix(hidden(X.reshape(30, 2, 4), W, H4), H4), to_real(Y.reshape(30, 1, 4))
    expected = ridge_solution(roots * P, roots * t, 0.3, penalised(H4, 6, [5]))
    found = Spectrum(accumulator, [5]).solution(0.3, 1e-13)
    assert_allclose(to_real(found), expected, atol=1e-10)
    if not cuts:
        assert trained.scales == Scales.of(X, Y)
    assert_allclose(trained.scales.inputs.mean, X.mean(axis=0), atol=1e-14)
    assert_allclose(trained.scales.targets.spread, Y.std(axis=0), atol=1e-14)


def test_costs_weigh_errors_but_count_no_samples():
    cost = np.random.default_rng(5).uniform(0.5, 2, 30)
    work = training(Gram, targets=lambda T: (T, cost))
    found = gathered(work, Rows(X, Y, WEIGHT)).accumulator
    expected = gathered(training(Gram), Rows(X, Y, WEIGHT * cost)).accumulator
    assert found.weight == WEIGHT.sum()
    assert found.square == pytest.approx(expected.square)
    for mine, theirs in zip(found.problems(), expected.problems()):
        assert_allclose(mine.gram, theirs.gram, atol=1e-12)


def test_more_rows_go_to_the_accumulator_of_earlier_ones():
    whole = gathered(training(), Rows(X, Y, None)).accumulator
    first = gathered(training(), Rows(X[:12], Y[:12], None)).accumulator
    both = gathered(training(before=first), Rows(X[12:], Y[12:], None)).accumulator
    assert both is first
    assert both.n_rows == 30
    solutions = [Spectrum(accumulator, [5]).solution(0.3, 1e-13) for accumulator in (both, whole)]
    assert_allclose(*solutions, atol=1e-12)


@pytest.mark.parametrize(("ridge", "method"), [(1.0, Gram), (1e-12, QR)])
def test_a_fixed_ridge_that_is_too_small_for_normal_equations(ridge, method):
    found = gathered(training(Gram, ridge=ridge), Rows(X, Y, None)).accumulator
    assert type(found) is method
    assert found.n_rows == 30


def test_merging_with_nothing():
    trained, nothing = gathered(training(), Rows(X, Y, None)), training().begin()
    before = deepcopy(trained.scales)
    trained.merge(nothing)
    assert trained.scales == before
    nothing.merge(trained)
    assert isinstance(nothing, Trained)
    assert (nothing.scales, nothing.accumulator.n_rows) == (before, 30)


def test_it_travels_without_its_layer():
    work = training()
    small = len(pickle.dumps(work))
    gathered(work, Rows(X, Y, None))
    assert "layer" in vars(work)
    again = pickle.loads(pickle.dumps(work))
    assert len(pickle.dumps(work)) == small
    assert "layer" not in vars(again)
    expected, found = (gathered(each, Rows(X, Y, None)).accumulator for each in (work, again))
    assert_array_equal(Spectrum(found).solution(0.1, 1e-13), Spectrum(expected).solution(0.1, 1e-13))


def test_targets_of_another_shape():
    with pytest.raises(ValueError, match=r"`y` must have the shape \(30, 4\) as in the first chunk, got \(30, 3\)"):
        gathered(training(), Rows(X, Y[:, :3], None))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e39, r"`y` must be at most 3e\+38, the largest number in the precision of `X`, float32, got 1e\+39"),
        (-1e39, r"`y` must be at most 3e\+38, the largest number in the precision of `X`, float32, got 1e\+39"),
        (
            1e-39,
            r"`y` must have a number above 1e-38, the smallest in the precision of `X`, float32, got at most 1e-39",
        ),
    ],
)
def test_numbers_beyond_the_precision(value, message, library):
    """Warnings are errors here: there is none on the way."""
    with pytest.raises(ValueError, match=message):
        check_range(library(np.array([value, 0.0])), np.dtype(np.float32), "y", "`X`")


def test_numbers_within_the_precision(library):
    for array in (np.zeros(3), np.zeros(0), np.array([1e-39, 1.0]), np.array([3e38]), np.array([1, 200])):
        check_range(library(array), np.dtype(np.float32), "X", "the model")
    check_range(library(np.array([1e300])), np.dtype(np.float64), "X", "the model")


# ---------------------------------------------------------------------- rows left out


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("mix", [None, numbers((1, 2), 7)])
def test_a_sample_of_all_rows(cuts, mix):
    """One sample of each row is left out; its error counts as often as the row does."""
    sample = gathered(Sampling(training(), 1.0, mix), Rows(X, Y, WEIGHT), cuts)
    counted = WEIGHT > 0
    T = Y.reshape(30, 1, 4)[counted]
    assert_allclose(sample.H, hidden(X.reshape(30, 2, 4), W, H4)[counted], atol=1e-13)
    assert_allclose(sample.T, T if mix is None else np.einsum("mni,nr->mri", T, mix), atol=1e-14)
    assert_array_equal(sample.weight, np.minimum(WEIGHT[counted], 1))
    assert_array_equal(sample.times, WEIGHT[counted])


def test_a_sample_of_some_rows_stands_for_all():
    work = Sampling(training(), 0.4, None)
    sample = gathered(work, Rows(X, Y, None))
    assert len(sample.H) == 12
    assert sample.times.sum() == pytest.approx(30)
    everything = hidden(X.reshape(30, 2, 4), W, H4)
    assert all(np.isclose(everything, row).all(axis=(1, 2)).any() for row in sample.H)
    assert work.work == pytest.approx(0.4 * work.training.work)


def test_a_sample_with_costs():
    cost = np.random.default_rng(5).uniform(0.5, 2, 30)
    work = training(targets=lambda T: (T, cost[: len(T)]))
    sample = gathered(Sampling(work, 1.0, None), Rows(X, Y, WEIGHT + 1))
    assert_allclose(sample.weight, cost)
    assert_allclose(sample.times, (WEIGHT + 1) * cost)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("method", [Gram, QR])
def test_errors_of_rows_left_out(method, cuts):
    """Σ‖e‖² by as many fits as there are rows, for networks of the first neurons, too."""
    work, ridges = training(method), np.array([0.1, 2.0])
    accumulator = gathered(work, Rows(X, Y, None)).accumulator
    kept = [np.array([0, 1, 5]), np.arange(6)]
    spectra = [Spectrum(accumulator.restricted(unknowns), [len(unknowns) - 1]) for unknowns in kept]
    parts = [PartOfLayer(work, unknowns, spectrum, ridges) for unknowns, spectrum in zip(kept, spectra)]
    sums = gathered(LeavingOut(work, parts, [squares]), Rows(X, Y, None), cuts)
    H = hidden(X.reshape(30, 2, 4), W, H4)
    for total, unknowns in zip(sums, kept):
        P, free = left_matrix(H[:, unknowns], H4), [len(unknowns) - 1]
        penalty = penalised(H4, len(unknowns), free)
        for n, ridge in enumerate(ridges):
            e = refitted_residuals(P, Y.reshape(30, 1, 4), H4, ridge, penalty)
            assert total[0, n] == pytest.approx(np.sum(e**2) / 4, rel=1e-8)


# ---------------------------------------------------------------------- second moments


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("bias", [True, False])
def test_second_moments(bias, cuts):
    work = MomentPass(H4, Layout.of(X, H4, "full"), bias, np.dtype(np.float64), None)
    moments = gathered(work, Rows(X, X, WEIGHT), cuts)
    assert moments.weight == WEIGHT.sum()
    assert_allclose(moments.mean.ravel(), WEIGHT @ X / WEIGHT.sum(), atol=1e-14)
    x = X.reshape(30, 2, 4)
    one = np.broadcast_to(np.eye(4)[0], (30, 1, 4))
    expected = Gram(H4, 2 + bias, 0)
    expected.update(np.concatenate([x, *[one] * bias], axis=1), np.zeros((30, 0, 4)), WEIGHT)
    for mine, theirs in zip(moments.gram.problems(), expected.problems()):
        assert_allclose(mine.gram, theirs.gram, atol=1e-12)
