"""The estimators are scikit-learn's: its own checks, its tools, frames, pickling, threads."""

from __future__ import annotations

from importlib.util import find_spec

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris, load_wine, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_limits

from helpers import through_joblib, through_pickle
from hyperelm import ELMAutoencoder, ELMClassifier, ELMClassifierCV, ELMRegressor, ELMRegressorCV, algebras
from hyperelm._backend import NUMPY, workspace

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

ESTIMATORS = (ELMRegressor, ELMClassifier, ELMAutoencoder)
X, Y = make_regression(60, 8, n_targets=3, noise=0.1, random_state=0)
LABELS = np.where(Y[:, 0] > 0, "up", "down")


def checked():
    """Every estimator, over one component, over numbers that complex arrays hold, and over others."""
    for estimator in ESTIMATORS:
        for name in ("real", "complex", "quaternions"):
            yield estimator(name, random_state=0)
    grid = {"algebra": ["real", "klein4"], "n_hidden": [4, 8]}
    yield ELMClassifierCV(**grid, n_draws=2, random_state=0)
    yield ELMRegressorCV(**grid, weight_scale=["auto"], scoring="gcv", n_draws=2, random_state=0)
    yield ELMClassifierCV("quaternions", 20, weight_scale=["auto"], scoring="accuracy", n_draws=1, random_state=0)
    yield ELMRegressorCV(["complex", "quaternions"], 20, weight_scale=["auto"], ridge=[1e-3, 0.1], random_state=0)


def runs_here(check):
    """Whether a check is about array libraries and devices that are there: the others would skip."""
    places = [value for name, value in check.keywords.items() if name.endswith("_ns_and_device")]
    places.append((check.keywords.get("array_namespace", "numpy"), check.keywords.get("device_name")))
    return all(find_spec(name) and device in (None, "cpu", "CPU_DEVICE", "device1") for name, device in places)


def is_meant_for(estimator, check):
    """One check wants complex arrays to be refused, and over the complex numbers they are what the data are."""
    takes_complex = estimator.algebra == "complex" and not is_classifier(estimator)
    return not (takes_complex and check.func.__name__ == "check_complex_data")


def checks():
    for estimator in checked():
        for _, check in estimator_checks_generator(estimator):
            if runs_here(check) and is_meant_for(estimator, check):
                options = ",".join(map(str, check.keywords.values()))
                name = f"{type(estimator).__name__}-{estimator.algebra}-{check.func.__name__}-{options}"
                yield pytest.param(estimator, check, id=name)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check, monkeypatch):
    """On other array libraries, too, which scikit-learn wants SciPy to have been asked for."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def target(estimator):
    return {ELMRegressor: Y, ELMClassifier: LABELS, ELMAutoencoder: None}[type(estimator)]


def output(estimator, data=X):
    if isinstance(estimator, ELMAutoencoder):
        return np.concatenate([estimator.transform(data), estimator.reconstruct(data)], axis=1)
    return estimator.decision_function(data) if isinstance(estimator, ELMClassifier) else estimator.predict(data)


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def model(request):
    return request.param("tessarines", 10, weight_scale=0.3, ridge=0.1, random_state=0)


def test_kinds():
    assert is_regressor(ELMRegressor())
    assert is_classifier(ELMClassifier())
    assert is_classifier(ELMClassifierCV())
    assert is_regressor(ELMRegressorCV())
    assert not is_classifier(ELMAutoencoder())
    assert not is_regressor(ELMAutoencoder())


def test_clone_and_parameters(model):
    custom = model.set_params(algebra=algebras.cayley_dickson(-1, 2), activation=np.arctan).fit(X, target(model))
    copy = clone(custom)
    assert copy.get_params() == custom.get_params()
    assert not hasattr(copy, "output_weights_")
    assert_array_equal(output(copy.fit(X, target(model))), output(custom))
    assert custom.algebra_ == algebras.cayley_dickson(-1, 2)


def test_repr_names_what_differs_from_the_defaults():
    assert repr(ELMRegressor("klein4", 20)) == "ELMRegressor(algebra='klein4', n_hidden=20)"


def test_grid_search_over_algebra_and_activation():
    features, labels = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), ELMClassifier(n_hidden=10, random_state=0))
    grid = {
        "elmclassifier__algebra": ["real", "klein4", algebras.get("R[+1,+1]"), algebras.cayley_dickson(-0.5)],
        "elmclassifier__activation": ["tanh", "relu", np.sin],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(features, labels)
    assert len(search.cv_results_["params"]) == 12
    assert search.best_score_ > 0.9
    assert search.predict(features).shape == labels.shape
    direct = clone(pipeline).set_params(**search.best_params_)
    assert cross_val_score(direct, features, labels, cv=3).mean() == pytest.approx(search.best_score_)


def test_grid_search_in_workers_gives_the_same():
    features, labels = load_iris(return_X_y=True)
    grid = {"algebra": ["complex", "quaternions"], "activation": ["tanh", "sine"]}
    scores = [
        GridSearchCV(ELMClassifier(n_hidden=8, random_state=0), grid, cv=3, n_jobs=jobs)
        .fit(features, labels)
        .cv_results_["mean_test_score"]
        for jobs in (1, 2)
    ]
    assert_array_equal(*scores)


def test_pipeline_with_the_transformer():
    codes = ELMAutoencoder("klein4", 2, encoder="pca", random_state=0)
    pipeline = make_pipeline(StandardScaler(), codes, ELMRegressor("real", 20, random_state=0)).fit(X, Y)
    assert pipeline.predict(X).shape == Y.shape
    assert pipeline[:-1].get_feature_names_out()[0] == "elmautoencoder0"
    assert len(pipeline[:-1].get_feature_names_out()) == 8


def test_metadata_routing_of_sample_weight(model):
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    scaler, seen = StandardScaler(), []

    class Recorder(type(model)):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(None if sample_weight is None else sample_weight.copy())
            return super().fit(X, y, sample_weight)

    with sklearn.config_context(enable_metadata_routing=True):
        scaler.set_fit_request(sample_weight=False)
        routed = (
            Recorder(**model.get_params()).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        pipeline = make_pipeline(scaler, routed)
        cross_validate(routed, X, target(model), params={"sample_weight": weight}, cv=3, error_score="raise")
        assert len(seen) == 3
        assert all(part is not None and len(part) == 40 for part in seen)
        pipeline.fit(X, target(model), sample_weight=weight)
        assert len(seen) == 4
        plain = type(model)(**model.get_params())
        with pytest.raises(ValueError, match=r"\[sample_weight\] are passed but are not explicitly set"):
            GridSearchCV(plain, {"n_hidden": [3]}, cv=3).fit(X, target(model), sample_weight=weight)
        quiet = (
            Recorder(**model.get_params()).set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
        )
        seen.clear()
        with pytest.raises(TypeError, match="sample_weight"):
            make_pipeline(scaler, quiet).fit(X, target(model), sample_weight=weight)
        assert not seen


def test_partial_fit_can_be_asked_for_weights():
    with sklearn.config_context(enable_metadata_routing=True):
        for estimator in ESTIMATORS:
            requests = estimator().set_partial_fit_request(sample_weight=True).get_metadata_routing()
            assert requests.partial_fit.requests["sample_weight"] is True


@pytest.mark.parametrize("through", [through_pickle, through_joblib])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_pickle_and_joblib(model, through, solver):
    """The same bits come out, and partial_fit goes on where it was."""
    model.set_params(solver=solver)
    y = target(model)
    first, second = slice(0, 35), slice(35, None)
    classes = {"classes": np.unique(LABELS)} if isinstance(model, ELMClassifier) else {}
    model.partial_fit(X[first], None if y is None else y[first], **classes)
    copy = through(model)
    assert_array_equal(output(copy), output(model))
    for one in (model, copy):
        one.partial_fit(X[second], None if y is None else y[second])
    assert_array_equal(output(copy), output(model))
    assert_allclose(output(copy), output(clone(model).fit(X, y)), atol=1e-7 * np.abs(output(model)).max())


def test_partial_fit_goes_on_after_fit_and_unpickling(model):
    y = target(model)
    model.fit(X[:35], None if y is None else y[:35])
    copy = through_pickle(model).partial_fit(X[35:], None if y is None else y[35:])
    whole = clone(model).fit(X, y)
    assert_allclose(output(copy), output(whole), atol=1e-7 * np.abs(output(whole)).max())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(model, library):
    frames = pytest.importorskip(library)
    names = [f"column {n}" for n in range(X.shape[1])]
    frame = frames.DataFrame({name: X[:, n] for n, name in enumerate(names)})
    y = target(model)
    if isinstance(model, ELMRegressor):
        y = frames.DataFrame({"a": Y[:, 0], "b": Y[:, 1], "c": Y[:, 2]})
    elif isinstance(model, ELMClassifier):
        y = frames.Series(LABELS.tolist())
    model.fit(frame, y)
    assert_array_equal(model.feature_names_in_, names)
    assert model.n_features_in_ == 8
    plain = clone(model).fit(X, target(model))
    assert_array_equal(output(model, frame), output(plain))
    other = frame.rename(columns={"column 3": "else"}) if library == "pandas" else frame.rename({"column 3": "else"})
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        output(model, other)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        output(model, X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(library):
    frames = pytest.importorskip(library)
    model = ELMAutoencoder("klein4", 3, random_state=0).set_output(transform=library)
    codes = model.fit_transform(X)
    assert isinstance(codes, frames.DataFrame)
    assert list(codes.columns) == list(model.get_feature_names_out()) == [f"elmautoencoder{n}" for n in range(12)]
    assert_array_equal(codes.to_numpy(), clone(model).set_output(transform="default").fit(X).transform(X))
    assert isinstance(model.inverse_transform(codes.to_numpy()), np.ndarray)


def _threads_of_a_team(_):
    """What training finds in a worker: the number of BLAS threads, and whether a team is one thread."""
    with NUMPY.at_work(1e12):
        return workspace._blas_threads(), workspace.current_team().threads == 1


def test_no_oversubscription_in_workers():
    """As many workers as cores leave one thread of BLAS to each, and then a team is serial."""
    jobs = joblib.cpu_count()
    found = joblib.Parallel(n_jobs=max(2, jobs))(joblib.delayed(_threads_of_a_team)(n) for n in range(2))
    assert found == [(1, True), (1, True)]


def test_a_team_takes_what_blas_may_use():
    with threadpool_limits(1, user_api="blas"), NUMPY.at_work(1e12):
        assert workspace.current_team().threads == 1
    with threadpool_limits(2, user_api="blas"):
        if workspace._blas_threads() == 1:
            pytest.skip("this BLAS was built or started for one thread")
        with NUMPY.at_work(1e12):
            assert workspace.current_team().threads == 2
            assert workspace._blas_threads() == 1  # the pieces are spread, each on one thread of BLAS


def test_jobs_and_threads_do_not_change_results():
    rng = np.random.default_rng(0)
    inputs, targets = rng.standard_normal((2000, 40)), rng.standard_normal((2000, 4))  # enough for a team
    outputs = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            model = ELMRegressor("klein4", 150, ridge=0.1, random_state=0).fit(inputs, targets)
        outputs.append(model.output_weights_)
    assert_allclose(*outputs, atol=1e-9)


def test_routing_through_a_pipeline_in_cross_validation():
    """Weights of 1 and 2 that reach the model are rows that are there once and twice."""
    weight = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = ELMRegressor("klein4", 5, ridge=0.1, weight_scale=0.3, random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        folds = [(np.arange(40), np.arange(40, 60))]
        routed = {"params": {"sample_weight": weight}, "return_estimator": True, "error_score": "raise"}
        found = cross_validate(pipeline, X, Y, cv=folds, **routed)
        times = np.repeat(np.arange(40), weight[:40].astype(int))
        scaled = StandardScaler().fit(X[:40]).transform(X)
    twice = clone(model).fit(scaled[times], Y[times])
    assert_allclose(found["estimator"][0].predict(X), twice.predict(scaled), atol=1e-8)
    assert found["test_score"][0] == pytest.approx(twice.score(scaled[40:], Y[40:], weight[40:]))


def test_names_of_columns_and_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"column {n}" for n in range(8)])
    search = ELMRegressorCV("real", [3], n_draws=1, random_state=0).fit(frame, Y)
    assert_array_equal(search.feature_names_in_, frame.columns)
    codes = ELMAutoencoder("complex", 2, random_state=0).set_output(transform="pandas")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), codes).fit(frame)
    assert list(pipeline.transform(frame).columns) == [f"elmautoencoder{n}" for n in range(4)]
    assert_array_equal(pipeline.get_feature_names_out(), pipeline.transform(frame).columns)
    assert_array_equal(pipeline[-1].feature_names_in_, frame.columns)
