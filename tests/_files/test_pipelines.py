"""Pipelines of scikit-learn's scalers, encoders and imputers in files: the same bits come out, others are refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from helpers import outputs
from hyperelm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, describe, load, save
from hyperelm._files import container
from hyperelm._files.container import read, to_bytes

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5)) * [1, 10, 100, 0.1, 1] + 3
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
Y = X[:, 0] * X[:, 1]
FRAME = pandas.DataFrame(
    {
        "town": RNG.choice(["Ulm", "Bern", "Linz"], 60),
        "age": RNG.integers(1, 90, 60),
        "height": np.where(RNG.random(60) < 0.2, np.nan, RNG.standard_normal(60)),
        "size": pandas.Series(RNG.choice(["S", "M", "L"], 60), dtype=object),
        "id": np.arange(60),
    }
)
LABELS = np.where(FRAME["town"] == "Ulm", "yes", "no")


def elm(**parameters):
    return ELMRegressor("quaternions", 6, ridge=0.1, random_state=0, **parameters)


def through_file(model, folder, **options):
    save(model, folder / "model", **options)
    return load(folder / "model")


def check_same(model, rows, folder):
    again = through_file(model, folder)
    assert isinstance(again, Pipeline)
    for got, expected in zip(outputs(again, rows), outputs(model, rows)):
        if got.dtype.kind == "f":  # PCA has arrays column by column, and files row by row: BLAS may round otherwise
            assert_allclose(got, expected, rtol=100 * np.finfo(got.dtype).eps, atol=1e-12)
        else:
            assert_array_equal(got, expected)
    assert [name for name, _ in again.steps] == [name for name, _ in model.steps]
    assert str(again[:-1]) == str(model[:-1])
    return again


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False)],
        [StandardScaler(with_mean=False, with_std=False)],
        [MinMaxScaler((-1, 2), clip=True)],
        [MaxAbsScaler()],
        [RobustScaler(quantile_range=(10.0, 90.0), with_centering=False)],
        [PCA(3, whiten=True, random_state=0)],
        [make_pipeline(MinMaxScaler(), make_pipeline(StandardScaler())), "passthrough", PCA(0.9)],
        [StandardScaler(), ELMAutoencoder("complex", 3, ridge=0.1, random_state=0)],
    ],
    ids=str,
)
def test_scalers(steps, tmp_path):
    model = make_pipeline(*steps, elm()).fit(X, Y)
    again = check_same(model, X, tmp_path)
    assert again.n_features_in_ == 5


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        SimpleImputer(strategy="constant", fill_value=-1.5, keep_empty_features=True),
    ],
    ids=str,
)
def test_imputers(imputer, tmp_path):
    model = make_pipeline(imputer, StandardScaler(), elm()).fit(HOLES, Y)
    again = check_same(model, HOLES, tmp_path)
    single = make_pipeline(clone(imputer), StandardScaler(), elm()).fit(HOLES.astype(np.float32), Y)
    assert check_same(single, HOLES.astype(np.float32), tmp_path)[-1].output_weights_.dtype == np.float32
    more = HOLES.copy()
    more[0] = np.nan
    assert_array_equal(again.predict(more), model.predict(more))


def test_an_imputer_of_texts(tmp_path):
    texts = FRAME[["town", "size"]].to_numpy(dtype=object)
    texts[3, 0] = texts[9, 1] = np.nan
    model = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), elm()).fit(texts, Y)
    check_same(model, texts, tmp_path)


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary", categories=[["Bern", "Linz", "Ulm"], ["S", "M", "L"]]),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
    ],
    ids=str,
)
def test_encoders(encoder, tmp_path):
    frame = FRAME[["town", "size"]]
    model = make_pipeline(encoder, elm()).fit(frame, Y)
    again = check_same(model, frame, tmp_path)
    assert_array_equal(again.feature_names_in_, frame.columns)
    assert_array_equal(again[0].get_feature_names_out(), model[0].get_feature_names_out())
    if encoder.handle_unknown == "ignore":
        other = frame.assign(town="Graz")
        assert_array_equal(again.predict(other), model.predict(other))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame.rename(columns={"town": "city"}))


@pytest.mark.parametrize("kind", [OneHotEncoder, OrdinalEncoder])
def test_categories_that_are_missing_or_mixed(kind, tmp_path):
    rows = FRAME[["town", "age"]].to_numpy(dtype=object)
    rows[3, 0], rows[4, 0] = None, np.nan
    model = make_pipeline(kind(), SimpleImputer(), elm()).fit(rows, Y)
    again = check_same(model, rows, tmp_path)
    assert [categories.dtype for categories in again[0].categories_] == [object, object]


def columns(**options):
    heights = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [("towns", OneHotEncoder(), ["town"]), ("rest", heights, ["height"]), ("gone", "drop", ["id"])], **options
    )


@pytest.mark.parametrize(
    "transformer",
    [
        columns(),
        columns(remainder=OrdinalEncoder()),
        columns(sparse_threshold=0, verbose_feature_names_out=False),
        make_column_transformer(("passthrough", ["age"]), (OneHotEncoder(), ["size"]), (StandardScaler(), [])),
        make_column_transformer((OneHotEncoder(), make_column_selector("town|size")), ("passthrough", slice(1, 2))),
        make_column_transformer((OneHotEncoder(), ["town", "size"]), ("drop", ["height"]), remainder="passthrough"),
        make_column_transformer(
            (StandardScaler(), [1]), ("drop", ["height", "size", "town"]), remainder=MinMaxScaler()
        ),
    ],
    ids=range(7),
)
def test_columns(transformer, tmp_path):
    model = make_pipeline(transformer, ELMClassifier("complex", 5, ridge=0.1, random_state=0)).fit(FRAME, LABELS)
    again = through_file(model, tmp_path)
    shuffled = FRAME[["height", "id", "size", "town", "age"]]
    for frame in (FRAME, shuffled.assign(more=1)):
        assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert_array_equal(again[0].get_feature_names_out(), model[0].get_feature_names_out())
    with pytest.raises(ValueError, match="columns are missing"):
        again.predict(FRAME[["height"]])
    assert type(again[0].set_output(transform="pandas")) is ColumnTransformer


def test_columns_of_arrays_and_training_again(tmp_path):
    transformer = make_column_transformer((StandardScaler(), [0, 1]), (PCA(1), [3, 4]), remainder="passthrough")
    model = make_pipeline(transformer, elm()).fit(X, Y)
    again = check_same(model, X, tmp_path)
    assert_array_equal(again.fit(X[:40], Y[:40]).predict(X), model.fit(X[:40], Y[:40]).predict(X))
    twice = through_file(again, tmp_path)
    assert_array_equal(twice.predict(X), model.predict(X))


def test_state_search_and_frames(tmp_path):
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), elm()).fit(X, Y)
    again = through_file(model, tmp_path, state=True)
    assert isinstance(again[0].transform(X), pandas.DataFrame)
    again[-1].partial_fit(again[0].transform(X), Y)
    search = GridSearchCV(make_pipeline(StandardScaler(), elm()), {"elmregressor__ridge": [0.1, 1]}, cv=2).fit(X, Y)
    assert_array_equal(through_file(search, tmp_path).predict(X), search.predict(X))
    best = make_pipeline(StandardScaler(), ELMRegressorCV("real", [4], n_draws=1, random_state=0)).fit(X, Y)
    assert_array_equal(through_file(best, tmp_path).predict(X), best.predict(X))


def test_description_shows_the_steps(tmp_path):
    save(make_pipeline(SimpleImputer(strategy="median"), MinMaxScaler(), elm()).fit(HOLES, Y), tmp_path / "model")
    text = describe(tmp_path / "model")
    assert "simpleimputer: SimpleImputer(strategy='median'); minmaxscaler: MinMaxScaler()" in text
    assert "ELMRegressor, written by hyperelm" in text


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(SelectKBest(), elm()), "got a step of the class SelectKBest"),
        (make_pipeline(FunctionTransformer(np.log1p), elm()), "got a step of the class FunctionTransformer"),
        (make_pipeline(StandardScaler(), Ridge()), "whose last step is an estimator of hyperelm, got Ridge"),
        (make_pipeline(OneHotEncoder(min_frequency=2), elm()), "`min_frequency of OneHotEncoder` must be None"),
        (make_pipeline(make_column_transformer((SelectKBest(), [0])), elm()), "class SelectKBest"),
        (make_pipeline(StandardScaler(), elm(activation=np.arctan)), "activation"),
        (make_pipeline(SimpleImputer(strategy=np.mean), elm()), "`strategy of SimpleImputer` must be a number"),
    ],
    ids=range(7),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_others_are_refused_by_name(model, message, tmp_path):
    model.set_params(**{name: 1 for name in model.get_params() if name.endswith("selectkbest__k")})
    model.fit(np.abs(X).round(), Y)
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def hostile(change):
    """A sound file of a pipeline whose header or arrays are changed."""

    def write(folder):
        model = make_pipeline(columns(), OneHotEncoder(handle_unknown="ignore"), StandardScaler(with_mean=False), elm())
        save(model.fit(FRAME, Y), folder / "model")
        header, arrays = read(folder / "model")
        change(header["pipeline"], arrays)
        (folder / "model").write_bytes(to_bytes(header, arrays))

    return write


def set_step(n, **entries):
    return lambda node, _: node["steps"][n][1].update(entries)


def nested(node, _):
    for _ in range(30):
        node["steps"] = [["inner", {"class": "Pipeline", "parameters": {}, "steps": node["steps"]}]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_step(2, **{"class": "os.system"}), "a step of the class 'os.system', which this release lacks"),
        (set_step(2, **{"class": "FunctionTransformer"}), "which this release lacks"),
        (set_step(2, columns=10**9), "another shape or type"),
        (set_step(2, columns="9"), "does not say how many columns"),
        (set_step(2, parameters={"func": "print"}), "'func', which StandardScaler lacks"),
        (set_step(2, parameters={"with_mean": 3}), "with_mean"),
        (set_step(2, parameters={"with_mean": {"dtype": "U9"}}), "a parameter of a step is no value"),
        (set_step(2, container="os"), "frames that a step gives"),
        (set_step(1, columns=2**30), "categories of an encoder"),
        (set_step(1, mixed=[[["a"]]]), "categories of an encoder"),
        (set_step(0, parts=[["a", "drop", False, [77], [0, 1]]]), "not columns of its rows"),
        (set_step(0, parts=3), "a list is missing"),
        (set_step(0, sparse=1), "do not fit together"),
        (set_step(3, model=None), "a model within it has no header"),
        (nested, "no model"),
        (lambda node, _: node.update(steps=node["steps"][:2]), "the last step of its pipeline is no model"),
        (lambda node, _: node["steps"].append(["a", "drop"]), "the last step of its pipeline is no model"),
        (lambda node, _: node["steps"][0].__setitem__(0, "__"), "__"),
        (lambda node, _: node["steps"][0].__setitem__(0, 5), "have no names"),
        (lambda _, arrays: arrays.pop("2.scale_"), "lacks scale_ of a step with with_std"),
        (lambda _, arrays: arrays.update({"2.var_": np.zeros(3)}), "'var_' of a step has another shape"),
        (lambda _, arrays: arrays.update({"1.categories.0": np.zeros((2, 2))}), "categories of an encoder"),
        (lambda _, arrays: arrays.update({"9.more": np.zeros(2)}), "unknown array '9.more'"),
        (lambda _, arrays: arrays.update({"0.1.0.indicator": np.array([5])}), "missing values that an imputer marks"),
    ],
    ids=range(24),
)
def test_hostile_files(change, message, tmp_path):
    hostile(change)(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model")


def test_the_format_went_up():
    assert container.FORMAT >= 3
