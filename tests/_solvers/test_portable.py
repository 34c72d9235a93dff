"""An accumulator may be made on one machine and solved on another, whose BLAS rounds otherwise."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import accumulated, rows_of
from hyperelm import algebras, linalg
from hyperelm._algebra.blocks import decompose
from hyperelm._algebra.forms import gram_forms
from hyperelm._solvers import gram
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._solvers.solve import solve

PLANNED = ["complex", "quaternions", "tessarines", "paper-Cl(1,1)"]  # for which a search finds other planes


def with_plan(plan, algebra, monkeypatch, shape=(2, 3)):
    """An accumulator without rows by another plan: without a search, after one, or with its sums in another order."""
    with monkeypatch.context() as patch:
        patch.setattr(gram, "is_large_product", lambda *_: plan == "searched")
        accumulator = Gram(algebra, *shape)
    if plan == "reordered":
        known = accumulator._plan
        accumulator._plan = replace(known, sums=known.sums[::-1], to_forms=known.to_forms[:, ::-1])
    return accumulator


def check(accumulator, H, T):
    """The ridge solution is that of the real matrix."""
    P, t = linalg.left_matrix(H, accumulator.algebra), linalg.to_real(T)
    expected = np.linalg.solve(P.T @ P + 0.1 * np.eye(P.shape[1]), P.T @ t)
    assert_allclose(linalg.to_real(solve(accumulator, 0.1).coef), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def normal_equations(accumulator):
    """AᴴA and Aᴴt of all blocks in one vector."""
    return np.concatenate([part.ravel() for p in accumulator.problems() for part in (p.gram, p.cross)])


def noisy(function, rng):
    """As on a machine whose BLAS rounds otherwise."""

    def perturbed(a, *args, **kwargs):
        e = 1e-16 * np.abs(a).max(initial=0) * rng.standard_normal(a.shape)
        return function(a + (e + e.T if function.__name__ == "eigh" else e), *args, **kwargs)

    return perturbed


@pytest.fixture(params=range(4))
def another_machine(request, monkeypatch):
    for name in algebras.names():  # what is kept for other tests is found before anything rounds otherwise
        gram_forms(algebras.get(name))
    rng = np.random.default_rng(request.param)
    for name in ("eigh", "svd"):
        monkeypatch.setattr(np.linalg, name, noisy(getattr(np.linalg, name), rng))


@pytest.mark.usefixtures("another_machine")
@pytest.mark.parametrize("name", algebras.names())
def test_blocks_are_the_same_on_another_machine(name):
    """Accumulators are kept in their basis, and may be pickled here and solved there."""
    algebra = algebras.get(name)
    here, there = decompose(algebra), decompose.__wrapped__(algebra)
    assert len(here) == len(there)
    for one, other in zip(here, there):
        np.testing.assert_allclose(one.matrices, other.matrices, rtol=0, atol=1e-10)
        np.testing.assert_allclose(one.bases, other.bases, rtol=0, atol=1e-10)
    for one, other in zip(gram_forms(algebra), gram_forms.__wrapped__(algebra), strict=True):
        for field in ("components", "forms", "signs", "patterns"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", PLANNED)
def test_a_pickle_brings_the_plan_of_its_sums(name, monkeypatch):
    """Where a search finds another plan, an accumulator from elsewhere goes on with its own."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (15, 2, 3))
    accumulator = with_plan("searched", algebra, monkeypatch)
    accumulator.update(H[:9], T[:9])
    pickled = pickle.dumps(accumulator)
    monkeypatch.setattr(gram, "gram_plan", lambda *_, **__: pytest.fail("a plan was made"))
    again = pickle.loads(pickled)
    again.update(H[9:], T[9:])
    check(again, H, T)


def test_pickling_changes_nothing(algebra):
    H, T = rows_of(algebra, (15, 2, 3))
    accumulator = accumulated(Gram, algebra, H[:9], T[:9])
    kept, before = accumulator.__dict__.copy(), normal_equations(accumulator)
    squares, crosses = accumulator._squares.copy(), [cross.sums.copy() for cross in accumulator._crosses]
    again = pickle.loads(pickle.dumps(accumulator))
    assert accumulator.__dict__.keys() == kept.keys()
    assert all(accumulator.__dict__[name] is value for name, value in kept.items())
    assert_array_equal(accumulator._squares, squares)
    for cross, expected in zip(accumulator._crosses, crosses, strict=True):
        assert_array_equal(cross.sums, expected)
    assert_allclose(normal_equations(again), before, rtol=0, atol=1e-13)
    for one in (accumulator, again):
        one.update(H[9:], T[9:])
    # A pickle holds HᵀT in the block basis, so sums are added in another order.
    assert_allclose(normal_equations(again), normal_equations(accumulator), rtol=0, atol=1e-13)
    check(accumulator, H, T)


@pytest.mark.parametrize(("one", "other"), [("plain", "searched"), ("searched", "plain"), ("plain", "reordered")])
@pytest.mark.parametrize("name", PLANNED)
def test_merging_sums_of_another_plan(name, one, other, monkeypatch):
    """They come in through the forms, and each goes on with its own plan."""
    algebra = algebras.get(name)
    H, T = rows_of(algebra, (20, 2, 3))
    mine, others = (with_plan(plan, algebra, monkeypatch) for plan in (one, other))
    plan = mine._plan
    mine.update(H[:6], T[:6])
    others.update(H[6:12], T[6:12])
    mine.merge(others)
    assert mine._plan is plan
    check(mine, H[:12], T[:12])
    check(others, H[6:12], T[6:12])
    mine.update(H[12:], T[12:])
    check(mine, H, T)
    empty = with_plan(one, algebra, monkeypatch)
    empty.merge(others)
    check(empty, H[6:12], T[6:12])


@pytest.mark.parametrize("plan", ["plain", "searched", "reordered"])
def test_forms_and_sums_of_a_plan_give_each_other(algebra, plan, monkeypatch):
    H, T = rows_of(algebra, (9, 3, 2))
    accumulator = with_plan(plan, algebra, monkeypatch, shape=(3, 2))
    accumulator.update(H, T)
    forms = accumulator._forms()
    accumulator._squares = accumulator._squares_of(forms)
    assert_allclose(accumulator._forms(), forms, rtol=0, atol=1e-12 * np.abs(forms).max())
    check(accumulator, H, T)


def test_merging_with_itself_after_a_solve():
    algebra = algebras.get("quaternions")
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((9, 2, 4)), rng.standard_normal((9, 3, 4))
    accumulator = Gram(algebra, 2, 3)
    accumulator.update(H[:4], T[:4])
    solve(accumulator, 0.1)
    accumulator.update(H[4:], T[4:])
    accumulator.merge(accumulator)
    check(accumulator, np.concatenate([H, H]), np.concatenate([T, T]))


@pytest.mark.parametrize("kind", [Gram, QR])
def test_arrays_of_an_accumulator(kind, algebra):
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((9, 2, algebra.dim)), rng.standard_normal((9, 3, algebra.dim))
    accumulator, again = kind(algebra, 2, 3), kind(algebra, 2, 3)
    accumulator.update(H, T)
    again.restore(accumulator.arrays())
    assert (again.n_rows, again.weight, again.square, again.tail) == (
        9,
        accumulator.weight,
        accumulator.square,
        accumulator.tail,
    )
    # Sums of squares come back through the forms, so to rounding.
    assert_allclose(solve(again, 0.1).coef, solve(accumulator, 0.1).coef, rtol=0, atol=0 if kind is QR else 1e-14)
    again.update(H, T)
    assert (accumulator.n_rows, again.n_rows) == (9, 18)
    check(again, np.concatenate([H, H]), np.concatenate([T, T]))
    check(accumulator, H, T)
