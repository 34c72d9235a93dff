"""What the estimators share: one network, taken apart and put together again, and no mixture of two fits."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from helpers import numbers, outputs
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, FrameRegressor, algebras
from hyperelm._estimators.base import NUMBERS, Parts, draft, fit_source, put_together, saved_arrays, taken_apart
from hyperelm._network.layers import Drawn
from hyperelm._network.network import Network
from hyperelm._solvers.gram import Gram
from hyperelm._solvers.qr import QR
from hyperelm._training.rows import LocalSource, Rows
from oracles import hidden, product

CLASSES = [ELMRegressor, ELMClassifier, ELMAutoencoder, FrameRegressor]
X = numbers((60, 8))
LABELS = np.array(["no", "perhaps", "yes"])[np.digitize(X[:, 0], [-0.4, 0.4])]


def arguments(model_class, rows=X):
    """What `fit` takes beside X."""
    if model_class is ELMAutoencoder:
        return ()
    return (LABELS[: len(rows)],) if model_class is ELMClassifier else (np.sin(rows[:, :2]),)


def fitted(model_class, rows=X, **parameters):
    model = model_class(**{"algebra": "klein4", "n_hidden": 5, "ridge": 0.1, "random_state": 0} | parameters)
    return model.fit(rows, *arguments(model_class, rows))


def fitted_attributes(model):
    return {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize("model_class", CLASSES)
@pytest.mark.parametrize("parameters", [{}, {"solver": "svd"}, {"algebra": "octonions", "bias": False}], ids=str)
def test_taken_apart_and_put_together(model_class, parameters):
    model = fitted(model_class, **parameters)
    parts = taken_apart(model)
    again = put_together(model_class, model.get_params(), parts)
    assert type(again) is model_class
    assert vars(again).keys() == vars(model).keys()
    assert fitted_attributes(again) == fitted_attributes(model)
    for mine, theirs in zip(outputs(model, X), outputs(again, X), strict=True):
        assert_array_equal(mine, theirs)
    for name in (*NUMBERS, "loo_error_", "solver_", "n_features_in_", "n_parameters_", "algebra_"):
        assert getattr(again, name) == getattr(model, name), name
    for name in saved_arrays(model_class):
        assert_array_equal(getattr(again, name), getattr(model, name))
    assert taken_apart(again).scales == parts.scales
    assert (parts.accumulator is None) == (parameters.get("solver") == "svd")
    if parts.accumulator is not None:
        for one in (model, again):
            one.partial_fit(X[:20], *(a[:20] for a in arguments(model_class)))
        assert_array_equal(again.output_weights_, model.output_weights_)


@pytest.mark.parametrize("model_class", CLASSES)
def test_parts_are_numpy_and_name_what_the_fit_found(model_class):
    parts = taken_apart(fitted(model_class))
    assert isinstance(parts, Parts)
    assert isinstance(parts.network, Network)
    assert {type(parts.network.hidden_weights), type(parts.network.output_weights)} == {np.ndarray}
    assert parts.numbers.keys() == {*NUMBERS, "loo_error_", "solver_"}
    assert all(type(parts.numbers[name]) is wanted for name, wanted in NUMBERS.items())
    classes = {"classes_"} if model_class is ELMClassifier else set()
    named = {"horizon_"} if model_class is FrameRegressor else set()
    assert parts.arrays.keys() == classes | named | {*saved_arrays(model_class)}
    with pytest.raises(FrozenInstanceError):
        parts.network = None


@pytest.mark.parametrize("readout", ["algebra", "learned", "free"])
@pytest.mark.parametrize("ridge", [0.1, "auto"])
def test_rank_and_condition_are_those_of_the_hidden_layer_whenever_they_are_asked_for(readout, ridge):
    model = fitted(ELMRegressor, readout=readout, ridge=ridge)
    assert ("rank_" in vars(model)) == (readout == "learned")  # of which the estimator keeps another accumulator
    later = pickle.loads(pickle.dumps(model))
    exact = fitted(ELMRegressor, readout=readout, ridge=ridge, solver="qr")
    for one in (model, later):
        assert one.rank_ == exact.rank_
        assert one.condition_ == pytest.approx(exact.condition_, rel=0.1)
    model.partial_fit(X[:20], *(a[:20] for a in arguments(ELMRegressor)))
    if readout != "learned":  # whose condition is infinite before and after
        assert model.condition_ != later.condition_  # that of the first fit is forgotten


def test_a_model_that_is_not_fitted_has_no_rank():
    assert not hasattr(ELMRegressor(), "rank_")
    assert not hasattr(ELMRegressor(), "condition_")


def test_numbers_instead_of_columns():
    Z = X.reshape(60, 2, 4)
    model = ELMRegressor("klein4", 5, ridge=0.1, random_state=0).fit(Z, Z[:, :1])
    again = put_together(ELMRegressor, model.get_params(), taken_apart(model))
    assert again.n_features_in_ == model.n_features_in_ == 2
    assert_array_equal(again.predict(Z), model.predict(Z))


def test_names_of_columns_and_the_container_of_results():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    model = fitted(ELMAutoencoder, frame).set_output(transform="pandas")
    parts = taken_apart(model)
    assert parts.container == "pandas"
    again = put_together(ELMAutoencoder, model.get_params(), parts)
    assert list(again.feature_names_in_) == list("abcdefgh")
    assert isinstance(again.transform(frame), pandas.DataFrame)


def test_parts_that_do_not_fit_are_refused():
    classifier, autoencoder = fitted(ELMClassifier), fitted(ELMAutoencoder)
    parts = taken_apart(classifier)
    with pytest.raises(ValueError, match="the layout of its output is not that of"):
        put_together(ELMClassifier, classifier.get_params(), replace(parts, arrays={"classes_": np.arange(4)}))
    parts = taken_apart(autoencoder)
    other = replace(parts.network, output=fitted(ELMRegressor).network_.output)
    with pytest.raises(ValueError, match="the layout of its output is not that of its class"):
        put_together(ELMAutoencoder, autoencoder.get_params(), replace(parts, network=other))


@pytest.mark.parametrize("model_class", CLASSES)
def test_a_network_of_its_own_for_every_fit(model_class):
    """A network that somebody holds stays what it was when the model is fitted again or goes on."""
    model = fitted(model_class)
    held = model.network_
    before = held.outputs(X).copy()
    model.partial_fit(X[:20], *(a[:20] for a in arguments(model_class)))
    assert model.network_ is not held
    model.set_params(random_state=1).fit(X, *arguments(model_class))
    assert_array_equal(held.outputs(X), before)
    assert not np.array_equal(model.network_.outputs(X), before)


@pytest.mark.parametrize("model_class", CLASSES)
def test_prediction_changes_nothing(model_class):
    model = fitted(model_class)
    content = pickle.dumps(model)
    outputs(model, X)
    assert pickle.dumps(model) == content


# ---------------------------------------------------------------------- a fit that fails


def broken(rows=X):
    """Rows with a number that is none, which a fit from chunks finds in the last of them."""
    bad = rows.copy()
    bad[50, 3] = np.nan
    return bad


@pytest.mark.parametrize("model_class", [ELMRegressor, ELMClassifier, ELMAutoencoder])
@pytest.mark.parametrize(
    "change", [{"n_hidden": 0}, {"ridge": -1.0}, {"algebra": "nothing"}, {"weight_scale": "much"}, {"rows": "bad"}]
)
def test_a_fit_that_fails_leaves_no_mixture(model_class, change):
    model = fitted(model_class)
    accumulator = model._accumulator
    columns = X[:, :4]
    chunks = [columns[:30], columns[30:]]
    if "rows" in change:
        chunks[1] = broken()[30:, :4]
    targets = [np.split(a, 2) for a in arguments(model_class)]
    given = list(zip(chunks, *targets))
    with pytest.raises(ValueError, match=r"must be|nothing"):
        model.set_params(**{name: value for name, value in change.items() if name != "rows"}).fit(given)
    for method in ("predict", "predict_proba", "transform", "reconstruct", "score"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError):
                getattr(model, method)(X, *(arguments(model_class) if method == "score" else ()))
    assert not hasattr(model, "hidden_weights_")
    assert not hasattr(model, "output_weights_")
    # The next call begins anew, whatever is left of the first.
    model.set_params(**fitted(model_class).get_params())
    labels = {"classes": np.unique(LABELS)} if model_class is ELMClassifier else {}
    model.partial_fit(X[:40], *(a[:40] for a in arguments(model_class)), **labels)
    assert model.n_samples_seen_ == 40
    assert accumulator.n_rows == 60
    assert model.predict(X).shape[0] == 60 if hasattr(model, "predict") else model.transform(X).shape[0] == 60


def test_more_rows_that_are_refused_leave_the_model_as_it_was():
    for model_class in CLASSES:
        model = fitted(model_class)
        content = pickle.dumps(model)
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(broken(), *arguments(model_class))
        assert pickle.dumps(model) == content


# ---------------------------------------------------------------------- for other rooms


def source(T, chunk_rows=60):
    parts = [Rows(X[n : n + chunk_rows], T[n : n + chunk_rows], None) for n in range(0, 60, chunk_rows)]
    return LocalSource(parts, 60, "")


@pytest.mark.parametrize("chunk_rows", [60, 25])
def test_a_fit_to_any_source(chunk_rows):
    Y = np.sin(X[:, :2])
    model = ELMRegressor("klein4", 5, random_state=0)
    found = fit_source(clone(model), source(Y, chunk_rows), X)
    expected = model.fit(X, Y)
    assert found.n_features_in_ == 8
    assert found.weight_scale_ == pytest.approx(expected.weight_scale_, rel=1e-14)
    assert_allclose(found.predict(X), expected.predict(X), atol=1e-9)


def test_a_source_of_more_axes_is_refused():
    Z = numbers((60, 1, 2, 3))
    for model, first in ((ELMRegressor("klein4"), Rows(Z, X, None)), (ELMRegressor("klein4"), Rows(X, Z, None))):
        with pytest.raises(ValueError, match="with numbers of 4 components"):
            fit_source(model, LocalSource([first], 60, ""), first.X)
        with pytest.raises(ValueError, match="with numbers of 4 components"):
            draft(model, LocalSource([first], 60, ""))


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_a_draft_is_the_pass_that_a_fit_makes(solver):
    Y = np.sin(X[:, :2])
    model = ELMRegressor("klein4", 5, direct_link=True, solver=solver, chunk_size=7, random_state=3)
    work = draft(model, source(Y))
    assert not hasattr(model, "network_")
    model.fit(X, Y)
    assert isinstance(work.encoder, Drawn)
    assert_array_equal(work.encoder.weights, model.hidden_weights_)
    assert (work.input, work.output) == (model.network_.input, model.network_.output)
    assert (work.algebra, work.bias, work.direct_link, work.size) == (algebras.get("klein4"), True, True, 7)
    assert work.method is (QR if solver == "qr" else Gram)
    assert work.width == len(model.output_weights_) == 5 + 2 + 1
    # The network is what the pass sees, times the output weights.
    H, *_ = work.numbers(source(Y).first.chunk(slice(0, 60)))
    assert_allclose(H, hidden(X.reshape(60, 2, 4), model.hidden_weights_, work.algebra, direct_link=True), atol=1e-12)
    y = product(H, model.output_weights_, work.algebra).reshape(60, -1)[:, :2]
    assert_allclose(model.predict(X), y, atol=1e-11)


@pytest.mark.parametrize("change", [{"n_hidden": 0}, {"bias": 1}, {"direct_link": "no"}, {"packing": "half"}])
def test_a_draft_checks_the_parameters(change):
    with pytest.raises(ValueError, match=f"`{next(iter(change))}` must be"):
        draft(ELMRegressor("klein4", **change), source(X[:, :2]))
