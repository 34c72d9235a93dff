"""The candidates of a search: how many parameters they have, which are listed, and which is taken."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import numbers
from hyperelm import Algebra, ELMRegressor, algebras
from hyperelm._estimators.candidates import Curve, candidates_of, column, mean_square, most_parsimonious
from hyperelm._estimators.grid import NEURONS, SCALES, Grid, Shape
from hyperelm._network.layout import Layout
from hyperelm._network.readout import READOUTS
from hyperelm._training.rows import Rows

LISTS = {
    "algebra": "real",
    "weight_scale": 0.3,
    "n_hidden": 4,
    "n_parameters": None,
    "readout": "algebra",
    "ridge": "auto",
}


def grid(rows=100, dims=(), **parameters):
    return Grid.of(**LISTS | parameters, rows=rows, dims=dims)


# ---------------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", ["real", "complex", "quaternions"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direct_link", [True, False])
@pytest.mark.parametrize("readout", READOUTS)
def test_parameters_are_those_of_a_fitted_network(name, bias, direct_link, readout):
    X, Y, algebra = numbers((40, 8)), numbers((40, 5), 1), algebras.get(name)
    for L in (1, 3, 7):
        model = ELMRegressor(
            name, L, bias=bias, direct_link=direct_link, readout=readout, ridge=1.0, random_state=0
        ).fit(X, Y)
        layouts = (Layout.of(array, algebra, "full") for array in (X, Y))
        assert Shape(*layouts, bias, direct_link, readout).parameters(L) == model.n_parameters_


def shape_of(dim, columns, targets, bias=True, direct_link=False, readout="algebra"):
    real = algebras.get({1: "real", 2: "complex", 4: "quaternions", 8: "octonions"}[dim])
    layouts = (Layout.of(np.zeros((1, width)), real, "full") for width in (columns, targets))
    return Shape(*layouts, bias, direct_link, readout)


@given(
    dim=st.sampled_from([1, 2, 4, 8]),
    columns=st.integers(1, 20),
    targets=st.integers(1, 20),
    bias=st.booleans(),
    direct_link=st.booleans(),
    readout=st.sampled_from(READOUTS),
    parameters=st.integers(1, 10**5),
)
def test_no_other_number_of_neurons_comes_nearer(dim, columns, targets, bias, direct_link, readout, parameters):
    shape = shape_of(dim, columns, targets, bias, direct_link, readout)
    L = shape.neurons(parameters)
    distance = abs(shape.parameters(L) - parameters)
    assert L >= 1
    assert distance <= abs(shape.parameters(L + 1) - parameters)
    assert L == 1 or distance <= abs(shape.parameters(L - 1) - parameters)


def test_sizes():
    shape = shape_of(4, 8, 4)
    assert grid(n_hidden=[3, 9]).sizes(shape) == [3, 9]
    equal = grid(n_hidden="auto", n_parameters=[100, 1000])
    assert equal.neurons is None
    assert equal.sizes(shape) == [shape.neurons(100), shape.neurons(1000)]


def test_auto_compares_readouts_at_equal_numbers_of_parameters():
    own, free = shape_of(4, 8, 4), shape_of(4, 8, 4, readout="free")
    auto = grid(1000, n_hidden="auto", readout="auto")
    assert auto.sizes(own) == list(NEURONS)
    for L, M in zip(auto.sizes(own), auto.sizes(free)):
        assert free.parameters(M) == pytest.approx(own.parameters(L), rel=0.1)
    assert grid(n_hidden=[3, 9], readout="auto").sizes(free) == [3, 9]


def test_auto_takes_readouts_that_can_make_a_difference():
    def names(dim, columns, **options):
        shape = shape_of(dim, 8, columns)
        return [
            s.readout
            for s in grid(readout="auto", **options).shapes(shape.input, shape.output, bias=True, direct_link=False)
        ]

    assert names(1, 3) == ["algebra"]
    assert names(4, 1) == ["algebra", "free"]  # one component: a learned table gives what a free readout gives
    assert names(4, 4) == ["algebra", "learned", "free"]


# ---------------------------------------------------------------------- lists


def test_one_value_is_a_list_of_one():
    own = Algebra(algebras.get("complex").table, name="own")
    found = grid(algebra=own, weight_scale="0.1 auto", n_hidden=np.int64(7), ridge=0.5)
    assert found.algebras == [own]
    assert (found.scales, found.neurons, found.parameters) == (["0.1 auto"], [7], None)
    assert_array_equal(found.ridges, [0.5])


def test_lists_of_any_sort():
    found = grid(algebra=("real", "klein4"), weight_scale=[1, "paper"], n_hidden=np.array([2, 3]), ridge=range(2))
    assert [a.name for a in found.algebras] == ["real", "klein4"]
    assert found.scales == [1, "paper"]
    assert found.neurons == [2, 3]
    assert_array_equal(found.ridges, [0.0, 1.0])
    assert found.ridges.dtype == np.float64


def test_auto_takes_algebras_of_the_catalogue_once():
    tables = [a.table.tobytes() for a in grid(algebra="auto").algebras]
    assert len(set(tables)) == len(tables) > 5
    assert all(a.is_associative and a.is_nondegenerate and a.dim <= 4 for a in grid(algebra="auto").algebras)
    eight = grid(algebra="auto", dims=(8,)).algebras
    assert eight
    assert all(a.dim == 8 and a.is_nondegenerate for a in eight)
    # No algebra has 5 components, so these are channels, which are packed like columns.
    assert grid(algebra="auto", dims=(5,)).algebras == grid(algebra="auto").algebras


def test_auto_takes_scales_and_as_many_neurons_as_there_are_rows():
    assert grid(weight_scale="auto").scales == list(SCALES)
    assert grid(weight_scale=["auto"]).scales == ["auto"]
    for rows, neurons in [(10**6, list(NEURONS)), (64, [16, 32, 64]), (16, [16]), (15, [1])]:
        assert grid(rows, n_hidden="auto").neurons == neurons
    assert grid(ridge="auto").ridges is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algebra": []}, r"`algebra` must be 'auto', a value or a list of at least one, got \[\]"),
        ({"algebra": 3}, "`algebra` must be|must be a name"),
        ({"n_hidden": [0]}, "`n_hidden` must be a whole number >= 1, got 0"),
        ({"n_hidden": [2.5]}, "`n_hidden` must be a whole number >= 1, got 2.5"),
        ({"n_hidden": None}, "`n_hidden` must be 'auto', a value or a list of at least one, got None"),
        ({"n_parameters": [0], "n_hidden": "auto"}, "`n_parameters` must be a whole number >= 1, got 0"),
        ({"n_parameters": 100}, "`n_hidden` must be 'auto' where `n_parameters` decides the number of neurons, got 4"),
        ({"weight_scale": [-1]}, "`weight_scale` must be 'auto'"),
        ({"readout": ["free", "open"]}, "`readout` must be one of 'algebra', 'learned', 'free', got 'open'"),
        ({"ridge": ["loo"]}, "`ridge` must be 'auto' or finite numbers >= 0, got 'loo'"),
        ({"ridge": [-1.0]}, "`ridge` must be"),
        ({"ridge": []}, "`ridge` must be 'auto', a value or a list of at least one"),
    ],
)
def test_messages(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        grid(**parameters)


# ---------------------------------------------------------------------- candidates


def curve(ridges, errors, *, compared=None, unit=1.0, floor=0.0, least=0.0):
    ridges, errors = np.array(ridges, float), np.array(errors, float)
    return Curve(ridges, errors, errors if compared is None else np.array(compared, float), unit, floor, least)


def test_a_candidate_for_every_ridge_of_a_list():
    of_draws = [curve([0.1, 1.0], [4.0, 2.0]), curve([0.1, 1.0], [6.0, 8.0])]
    found = list(candidates_of({"n_hidden": 3}, of_draws, grid(ridge=[0.1, 1.0]), 0.0))
    assert [candidate["ridge"] for candidate in found] == [0.1, 1.0]
    assert_array_equal([candidate["errors"] for candidate in found], [[4, 6], [2, 8]])
    assert all((candidate["n_hidden"], candidate["is_bias_only"]) == (3, False) for candidate in found)


def test_the_best_ridge_of_a_path():
    """By the mean of the draws; their paths follow the sizes of the layers, so the ridge is a geometric mean."""
    errors = [5.0, 1.0, 3.0, 4.0]
    of_draws = [curve([1e-3, 1e-2, 1e-1, 1], errors), curve([4e-3, 4e-2, 4e-1, 4], errors, unit=4.0)]
    (found,) = candidates_of({}, of_draws, grid(), 0.0)
    assert found["ridge"] == pytest.approx(2e-2)
    assert_array_equal(found["errors"], [1.0, 1.0])
    assert not found["is_bias_only"]


def test_a_path_that_ends_with_the_bias_alone():
    (found,) = candidates_of({}, [curve([0.1, 1, 10, 100], [9.0, 8, 7, 1])], grid(), 0.0)
    assert found["ridge"] == pytest.approx(100)
    assert found["is_bias_only"]


@pytest.mark.parametrize(
    ("options", "cut_off"),
    [({}, False), ({"floor": 0.05}, False), ({"floor": 0.5}, True), ({"least": 0.5}, False), ({"least": 1.5}, True)],
)
def test_what_rounding_cuts_off(options, cut_off):
    assert curve([0.1, 1.0], [1.0, 2.0], **options).is_cut_off == cut_off


def test_a_path_that_still_falls_at_its_smallest_ridge():
    ridges = 10.0 ** np.arange(-4, 1)
    assert curve(ridges, [1, 2, 3, 4, 5]).still_falls
    assert not curve(ridges, [5, 4, 3, 2, 1]).still_falls
    assert not curve(ridges, [1, 1.001, 1.002, 1, 1]).still_falls  # within the 1 % that count as equal
    assert not curve(ridges, [1, 2, 3, 4, 5], unit=0.0).still_falls


def test_the_fewest_parameters_among_the_best():
    errors, sizes = np.array([1.0, 1.005, 0.999, 1.5, 1.004]), np.array([50, 20, 80, 5, 20])
    assert most_parsimonious(errors, sizes, 0.0) == 4  # of equal size the smaller error
    assert most_parsimonious(errors, sizes, 1.0) == 3  # differences up to the rounding say nothing
    assert most_parsimonious(np.array([2.0, 1.0]), np.array([1, 9]), 0.0) == 1


@pytest.mark.parametrize("weight", [None, np.array([0.0, 1, 2, 0, 1])])
@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 4)])
def test_the_mean_square_of_targets(shape, weight):
    y = numbers(shape)
    found = mean_square(Rows(np.zeros((5, 1)), y, weight).chunk(slice(0, 5)))
    assert found == pytest.approx(np.average(np.mean(y.reshape(5, -1) ** 2, axis=1), weights=weight))


@pytest.mark.parametrize(("unit", "refused"), [(1e-150, True), (1e-120, False), (1e120, False), (1e150, True)])
def test_targets_whose_errors_are_no_numbers(unit, refused):
    rows = Rows(np.zeros((5, 1)), unit * (1 + np.arange(5.0)), None).chunk(slice(0, 5))
    if refused:
        with pytest.raises(ValueError, match="`y` must have squares and errors within double precision, got numbers"):
            mean_square(rows)
    else:
        assert mean_square(rows) == pytest.approx(11 * unit**2)


def test_targets_that_vanish():
    assert mean_square(Rows(np.zeros((5, 1)), np.zeros(5), None).chunk(slice(0, 5))) == 0
    assert mean_square(Rows(np.zeros((5, 1)), np.ones(5), np.zeros(5)).chunk(slice(0, 5))) == 0


def test_columns_of_results():
    assert column([1, 2.5]).dtype == np.float64
    mixed = column(["auto", 0.1])
    assert mixed.dtype == object
    assert mixed.tolist() == ["auto", 0.1]
    pairs = column(list(product([1, 2], "ab")))  # which NumPy would make a matrix of
    assert pairs.shape == (4,)
    assert_allclose(column([np.float32(1), 2]), [1, 2])
