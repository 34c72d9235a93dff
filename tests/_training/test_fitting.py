"""Which accumulator and which ridge are taken for rows that are read once, twice, or after others."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import numbers
from hyperelm import algebras
from hyperelm._network.activations import get
from hyperelm._network.layers import Given
from hyperelm._network.layout import Layout
from hyperelm._solvers import sample
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.svd import AllRows
from hyperelm._training import certainty
from hyperelm._training.fitting import fit_output
from hyperelm._training.passes import Trained, Training, values
from hyperelm._training.rows import LocalSource, Rows
from oracles import hidden, left_matrix, penalised, refitted_residuals, ridge_solution, to_real

ALGEBRA = algebras.get("complex")
X = numbers((80, 4))
Y = np.tanh(X[:, :2]) + 0.1 * numbers((80, 2), 1)
W = 0.4 * numbers((3, 5, 2), 3)
H = hidden(X.reshape(80, 2, 2), W, ALGEBRA)
P, T = left_matrix(H, ALGEBRA), Y.reshape(80, 1, 2)
PENALTY = penalised(ALGEBRA, 6, [5])
RIDGES = [0.0, 0.3, "auto", "loo", "gcv"]


def training(scale=1.0, chunk_size=None):
    """A pass with weights of this scale: small ones make neurons nearly linear, and the problem badly conditioned."""
    layouts = Layout.of(X, ALGEBRA, "full"), Layout.of(Y, ALGEBRA, "full")
    return Training(Gram, Given(scale * W), True, False, get("tanh"), ALGEBRA, *layouts, values, chunk_size)


class Counted(LocalSource):
    """Rows that are read again, or once, and the names of the passes over them."""

    def __init__(self, *, once=False, rows=slice(None)):
        part = Rows(X[rows], Y[rows], None)
        super().__init__(iter([part]) if once else [part], None, "")
        self.passes = []

    def fold(self, work, finish):
        self.passes.append(work.name)
        return super().fold(work, finish)


def expected(ridge):
    return ridge_solution(P, to_real(T), ridge, PENALTY)


@pytest.mark.parametrize("solver", ["auto", "gram", "qr", "svd"])
@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("once", [False, True])
def test_the_solution_is_that_of_the_ridge(solver, ridge, once):
    source = Counted(once=once)
    if once and ridge == "loo":
        with pytest.raises(ValueError, match="`ridge` must not be 'loo' where rows are read once"):
            fit_output(source, training(), solver=solver, ridge=ridge)
        return
    fitted = fit_output(source, training(), solver=solver, ridge=ridge)
    found = fitted.solution.ridge
    assert found == ridge or isinstance(ridge, str)
    assert_allclose(to_real(fitted.solution.coef), expected(found), atol=1e-8)
    assert fitted.accumulator.n_rows == 80
    assert fitted.scales.inputs.count == 80
    by_loo = ridge == "loo" or (ridge == "auto" and not once)
    assert (fitted.loo_error is None) == (not by_loo)


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_the_error_of_rows_left_out(solver):
    """Of all rows here, by as many fits; and no other ridge near it has a smaller one."""
    fitted = fit_output(Counted(), training(), solver=solver, ridge="loo")

    def error(ridge):
        return np.mean(refitted_residuals(P, T, ALGEBRA, ridge, PENALTY) ** 2)

    assert fitted.loo_error == pytest.approx(error(fitted.solution.ridge), rel=1e-6)
    assert all(error(fitted.solution.ridge * factor) > 0.99 * fitted.loo_error for factor in (0.1, 0.5, 2, 10))


# ---------------------------------------------------------------------- which accumulator


@pytest.mark.parametrize(
    ("solver", "ridge", "passes"),
    [
        ("auto", 0.3, ["gram"]),
        ("auto", 0.0, ["gram"]),
        ("auto", "gcv", ["gram"]),
        ("auto", "loo", ["gram", "leave-one-out"]),
        ("auto", "auto", ["gram", "leave-one-out"]),
        ("gram", "auto", ["gram", "leave-one-out"]),
        ("qr", 0.3, ["qr"]),
        ("qr", "auto", ["qr", "leave-one-out"]),
        ("svd", "gcv", ["svd"]),
        ("svd", "auto", ["svd", "qr", "leave-one-out"]),  # of all rows in memory none can be left out
    ],
)
def test_passes_over_rows_that_can_be_read_again(solver, ridge, passes):
    source = Counted()
    fitted = fit_output(source, training(chunk_size=50), solver=solver, ridge=ridge)
    assert source.passes == passes
    assert fitted.accumulator.method == passes[0]


@pytest.mark.parametrize("fewest", [256, 20])
@pytest.mark.parametrize("ridge", ["auto", 0.3])
def test_rows_of_one_chunk_are_left_out_without_a_second_pass(ridge, fewest, monkeypatch):
    """All of them, or those that are drawn; the answer is that of a second pass."""
    monkeypatch.setattr(sample, "_FEWEST", fewest)
    monkeypatch.setattr(sample, "_NUMBERS", 0)
    monkeypatch.setattr(certainty, "_ENOUGH", fewest)
    monkeypatch.setattr(certainty, "_FEWEST", fewest)
    source, other = Counted(), Counted()
    fitted = fit_output(source, training(), solver="auto", ridge=ridge, certain=True)
    assert source.passes == ["gram"]
    monkeypatch.setattr(Trained, "sample", property(lambda _: None, lambda *_: None))
    expected = fit_output(other, training(), solver="auto", ridge=ridge, certain=True)
    assert other.passes == ["gram", "leave-one-out"]
    assert fitted.solution.ridge == expected.solution.ridge
    assert fitted.loo_error == expected.loo_error
    assert_array_equal(fitted.certainty.residuals.quantiles, expected.certainty.residuals.quantiles)


@pytest.mark.parametrize("ridge", [0.0, "gcv", "auto"])
def test_a_problem_too_bad_for_normal_equations_is_read_again(ridge):
    source = Counted()
    fitted = fit_output(source, training(1e-5, chunk_size=50), solver="auto", ridge=ridge)
    assert type(fitted.accumulator) is QR
    assert source.passes[0] == "gram"
    assert source.passes[-1] == ("leave-one-out" if ridge == "auto" else "qr")
    alone = fit_output(Counted(), training(1e-5, chunk_size=50), solver="qr", ridge=ridge)
    assert_array_equal(fitted.solution.coef, alone.solution.coef)


@pytest.mark.parametrize(
    ("solver", "ridge", "method"),
    [
        ("auto", 0.3, Gram),  # a fixed ridge that keeps the condition small
        ("auto", 1e-12, QR),  # one that does not
        ("auto", 0.0, QR),
        ("auto", "auto", QR),
        ("auto", "gcv", QR),
        ("gram", "gcv", Gram),
        ("gram", 1e-12, Gram),  # as was asked for
        ("qr", 0.3, QR),
        ("svd", 0.3, AllRows),
    ],
)
def test_rows_that_are_read_once(solver, ridge, method):
    source = Counted(once=True)
    fitted = fit_output(source, training(), solver=solver, ridge=ridge)
    assert type(fitted.accumulator) is method
    assert len(source.passes) == 1


# ---------------------------------------------------------------------- after others


@pytest.mark.parametrize("first", ["gram", "qr"])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
@pytest.mark.parametrize("ridge", [0.3, "auto", "gcv"])
def test_rows_that_come_after_others(first, solver, ridge):
    before = fit_output(Counted(rows=slice(0, 30)), training(), solver=first, ridge=0.3).accumulator
    kept = deepcopy(before)
    source = Counted(rows=slice(30, 80))
    fitted = fit_output(source, training(), solver=solver, ridge=ridge, before=before)
    assert fitted.accumulator.n_rows == 80
    assert fitted.loo_error is None  # the first rows cannot be read again
    assert_allclose(to_real(fitted.solution.coef), expected(fitted.solution.ridge), atol=1e-8)
    # Normal equations can go on as such or as a triangle, a triangle only as one.
    wanted = {"auto": Gram, "gram": Gram, "qr": QR}[solver] if first == "gram" else QR
    assert type(fitted.accumulator) is wanted
    # What was there before stays as it was: the rows may be refused half-way.
    assert fitted.accumulator is not before
    assert before.n_rows == 30
    for mine, theirs in zip(before.arrays().values(), kept.arrays().values()):
        assert_array_equal(mine, theirs)


def test_normal_equations_give_way_when_later_rows_make_the_problem_worse():
    before = fit_output(Counted(rows=slice(0, 30)), training(1e-5), solver="gram", ridge=1.0).accumulator
    source = Counted(rows=slice(30, 80))
    fitted = fit_output(source, training(1e-5), solver="auto", ridge=0.0, before=before)
    assert type(fitted.accumulator) is QR
    assert source.passes == ["gram", "qr"]
    assert fitted.accumulator.n_rows == 80


def test_no_row_left_out_of_rows_after_others():
    before = fit_output(Counted(), training(), solver="qr", ridge=0.3).accumulator
    with pytest.raises(ValueError, match="`ridge` must not be 'loo' where rows are read once, as by partial_fit"):
        fit_output(Counted(), training(), solver="auto", ridge="loo", before=before)


@pytest.mark.parametrize("ridge", [0.3, "auto", "gcv"])
def test_no_weight_at_all(ridge):
    source = LocalSource([Rows(X, Y, np.zeros(80))], 80, "")
    with pytest.raises(ValueError, match="`sample_weight` must not be zero for all 80 rows"):
        fit_output(source, training(), solver="auto", ridge=ridge)
