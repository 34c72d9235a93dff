"""Every result in `schemes.npz` is right, and no algebra of the catalogue is searched for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hyperelm import algebras
from hyperelm._algebra import forms, schemes
from hyperelm._algebra.forms import gram_forms, gram_plan
from hyperelm._algebra.schemes import reverse_scheme, scheme


def supports(algebra):
    return None, tuple(range(algebra.dim)), tuple(range(1, algebra.dim)), (0,)


@pytest.fixture
def no_search(monkeypatch):
    """Searches fail the test, and nothing that was computed before is taken from a cache."""

    def refuse(*_):
        raise AssertionError("a search was started")

    for cached in (schemes.scheme, schemes.reverse_scheme, forms.gram_plan):
        cached.cache_clear()
    monkeypatch.setattr(schemes, "_alternating_least_squares", refuse)
    monkeypatch.setattr(forms, "_levenberg_marquardt", refuse)


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the shipped results since the caches were cleared."""
    asked, recall_shipped = set(), schemes.recall

    def recall(purpose, sought, search):
        asked.add((purpose, sought.tobytes()))
        return recall_shipped(purpose, sought, search)

    monkeypatch.setattr(schemes, "recall", recall)
    monkeypatch.setattr(forms, "recall", recall)
    return asked


@pytest.mark.usefixtures("no_search")
def test_the_catalogue_is_not_searched_and_every_result_is_used(asked):
    for name in algebras.names():
        algebra = algebras.get(name)
        gram_plan(algebra, search=True)
        for support in supports(algebra):
            scheme(algebra, support, None)
            scheme(algebra, None, support)
            if support is not None:
                reverse_scheme(algebra, support)
    assert asked == set(schemes.shipped())


@pytest.mark.usefixtures("no_search")
def test_another_table_is_searched_for():
    with pytest.raises(AssertionError, match="a search was started"):
        scheme(algebras.get("R[-1,-2]"))
    with pytest.raises(AssertionError, match="a search was started"):
        gram_plan(algebras.get("R[-1,-2]"), search=True)


def test_shipped_decompositions_are_what_a_search_would_accept():
    """They give the table that they are shipped for, with planes of length 1 and a given factor `out`."""
    for (purpose, sought), found in schemes.shipped().items():
        if purpose == "planes" or not found.size:
            continue
        d = len(found)
        rows = np.frombuffer(sought).reshape(d, -1)
        table, out = rows[:, : d * d].reshape(d, d, d), rows[:, d * d :]
        plan = schemes._diagonal_scheme(found)
        assert schemes._gives(plan, table)
        np.testing.assert_allclose(np.linalg.norm(plan.left, axis=0), 1, rtol=1e-15)
        if purpose == "reverse":
            assert np.array_equal(plan.out, out)
        else:
            np.testing.assert_allclose(np.linalg.norm(plan.out, axis=0), 1, rtol=1e-15)


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize("name", algebras.names())
def test_schemes_of_the_catalogue_give_the_table(name):
    algebra = algebras.get(name)
    for support in supports(algebra):
        for left, out in ((support, None), (None, support)):
            found, plain = (scheme(algebra, left, out, search=search) for search in (True, False))
            assert schemes._gives(found, schemes._restricted(algebra, left, out))
            assert len(found.terms) <= len(plain.terms)
        if support is not None and (backward := reverse_scheme(algebra, support)):
            assert schemes._gives(backward, schemes._restricted(algebra, None, support))
            assert np.array_equal(backward.out, scheme(algebra, support).left)


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(
    ("name", "planes"), [("complex", 3), ("tessarines", 3), ("quaternions", 8), ("paper-Cl(1,1)", 11)]
)
def test_shipped_planes_give_the_forms(name, planes):
    for of_block in gram_forms(algebras.get(name)):
        found = forms._searched(of_block)
        _, spanned = forms._spanned(of_block, *found)
        assert forms._gives_back(of_block, spanned)
        assert found[0].shape[1] == planes
        np.testing.assert_allclose(np.linalg.norm(found[0], axis=0), 1, rtol=1e-15)


@pytest.mark.usefixtures("no_search")
def test_a_machine_that_rounds_otherwise_finds_the_same_planes():
    (of_block,) = gram_forms(algebras.get("quaternions"))
    noise = 1e-15 * np.random.default_rng(0).standard_normal(of_block.forms.shape)
    here, there = (forms._searched(block) for block in (of_block, replace(of_block, forms=of_block.forms + noise)))
    assert np.array_equal(here[0], there[0])


@pytest.mark.parametrize("name", ["complex", "tessarines"])
def test_a_search_finds_as_few_products(name):
    """On another machine it may end at other numbers."""
    found = scheme(algebras.get(name))
    again = schemes._smallest_decomposition(algebras.get(name).table, fewer_than=1 + len(found.terms))
    assert again.shape == (len(found.left), 3 * len(found.terms))
