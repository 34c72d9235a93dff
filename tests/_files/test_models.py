"""A model from a file is the model that was saved, bit for bit; a file that is not one is refused in one line."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import skops.io
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import outputs, through_joblib, through_pickle
from hyperelm import Algebra, ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV, load, save
from hyperelm._files import container, models
from hyperelm._files.certainty import arrays_of
from hyperelm._files.description import describe
from hyperelm._network.activations import ACTIVATIONS

pytestmark = pytest.mark.filterwarnings("ignore::hyperelm.BiasOnlyWarning")  # targets here are random

OWN = Algebra.from_table([["-0.1", "z", "-y"], ["z", "0.7", "x"], ["-y", "x", "-1"]], units="xyz", name="mine <3 ε")


def rows(columns=8, count=40, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal((count, columns)).astype(dtype)


def fitted(kind, X, **parameters):
    model = kind(**{"n_hidden": 5, "random_state": 0, "ridge": 0.1} | parameters)
    if issubclass(kind, ELMClassifier):
        return model.fit(X, np.array(["no", "yes", "perhaps"])[np.arange(len(X)) % 3])
    return model.fit(X) if kind is ELMAutoencoder else model.fit(X, X.reshape(len(X), -1)[:, :3])


def same_bits(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def assert_same(one, other, X):
    """In everything that a model has, but for the accumulator of its rows."""
    assert type(one) is type(other)
    of_one, of_other = outputs(one, X), outputs(other, X)  # which makes what predictions need
    assert vars(one).keys() == vars(other).keys()
    of_networks = vars(one.network_).keys() | {"hidden_weights", "output_weights", "operators", "input", "output"}
    assert vars(one.network_).keys() == vars(other.network_).keys() == of_networks
    pairs = {name: (value, getattr(other, name)) for name, value in vars(one).items() if name != "network_"}
    for mine, theirs in ((one.network_, other.network_), (one.network_.operators, other.network_.operators)):
        pairs |= {f"network_.{name}": (value, getattr(theirs, name)) for name, value in vars(mine).items()}
    for offset in ("input_offset", "input_scale", "output_offset", "output_scale") if one.network_.scaling else ():
        pairs[offset] = getattr(one.network_.scaling, offset), getattr(other.network_.scaling, offset)
    for name, (mine, theirs) in pairs.items():
        if isinstance(mine, np.ndarray) and mine.dtype != object:
            assert same_bits(mine, theirs), name
        elif name in ("algebra_", "network_.algebra"):
            assert (mine, mine.name, mine.units) == (theirs, theirs.name, theirs.units)
        elif name in ("network_.operators", "network_.scaling"):
            assert (mine is None) == (theirs is None)  # what they consist of is compared above
        elif name == "_certainty":
            of_mine, of_theirs = arrays_of(mine), arrays_of(theirs)
            assert of_mine.keys() == of_theirs.keys()
            assert all(same_bits(array, of_theirs[part]) for part, array in of_mine.items())
        elif name not in ("_accumulator", "random_state"):
            assert np.array_equal(mine, theirs), name
    for mine, theirs in zip(of_one, of_other, strict=True):
        assert np.array_equal(mine, theirs) if mine.dtype == object else same_bits(mine, theirs)


def assert_goes_on(one, other, *, exactly):
    """Both have the same weights after more rows: all bits of them, or to eps times the square of the condition, which
    is what `gram` promises."""
    W, V = one.output_weights_, other.output_weights_
    if exactly:
        assert same_bits(W, V)
    else:
        np.testing.assert_allclose(W, V, rtol=0, atol=np.finfo(V.dtype).eps * other.condition_**2 * np.abs(V).max())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hyperelm"


# ---------------------------------------------------------------------- the round trip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", models.CLASSES.values())
def test_every_estimator_algebra_and_type(kind, dtype, algebra, path):
    X = rows(dtype=dtype)
    model = fitted(kind, X, algebra=algebra.name)
    assert save(model, path) is None
    assert_same(model, load(str(path)), X)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("packing", ["full", "imaginary", "real"])
def test_every_form_of_network(activation, direct_link, bias, packing, path):
    X = rows(7)
    model = fitted(ELMRegressor, X, activation=activation, direct_link=direct_link, bias=bias, packing=packing)
    save(model, str(path))
    assert_same(model, load(path), X)


@pytest.mark.parametrize("encoder", ["random", "orthogonal", "pca"])
@pytest.mark.parametrize("shape", [(40, 8), (40, 5, 4)])
def test_every_encoder(encoder, shape, path):
    X = np.random.default_rng(0).standard_normal(shape)
    model = fitted(ELMAutoencoder, X, n_hidden=2, encoder=encoder)
    save(model, path)
    assert_same(model, load(path), X)


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3), (40, 2, 4)])
@pytest.mark.parametrize("solver", ["gram", "qr", "svd"])
def test_every_form_of_target(shape, solver, path):
    X, y = rows().reshape(40, 2, 4), np.random.default_rng(1).standard_normal(shape)
    model = ELMRegressor(n_hidden=3, ridge=0.1, solver=solver, random_state=0).fit(X, y)
    save(model, path)
    again = load(path)
    assert_same(model, again, X)
    assert again.predict(X).shape == shape


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["α", "a longer one"]),
        np.array(["α", ""], dtype=object),
        np.array([False, True]),
        np.array([-3, 200], dtype=np.int16),
        np.array([1, 2], dtype=">u8"),
        np.array([1.0, 2.0], dtype=np.float16),
        np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type(labels, path):
    X = rows()
    weights = {label: 1.0 + n for n, label in enumerate(np.sort(labels)) if labels.dtype.kind != "M"} or None
    model = ELMClassifier(n_hidden=3, random_state=0, class_weight=weights).fit(X, labels[np.arange(40) % 2])
    save(model, path, state=True)
    again = load(path)
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.class_weight == model.class_weight
    assert np.array_equal(again.predict(X), model.predict(X))
    more = labels[np.arange(40) % 2]
    assert_goes_on(again.partial_fit(X, more), model.partial_fit(X, more), exactly=model.solver_ == "qr")


def test_names_of_columns(path):
    X = pd.DataFrame(rows(3), columns=["α", "b", "a longer one"])
    model = ELMRegressor(n_hidden=3).fit(X, X["b"])
    save(model, path)
    again = load(path)
    assert again.feature_names_in_.dtype == object
    assert_same(model, again, X)
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(X.rename(columns={"b": "c"}))


def test_the_container_of_codes(path):
    X = pd.DataFrame(rows(4), columns=list("abcd"))
    model = ELMAutoencoder("complex", n_hidden=3, random_state=0).set_output(transform="pandas").fit(X)
    save(model, path)
    pd.testing.assert_frame_equal(load(path).transform(X), model.transform(X))
    assert_same(model.set_output(transform="default"), load(path).set_output(transform="default"), X)
    refused(signed(path, container="magic"), "its container 'magic' is not one of default, pandas, polars")
    refused(signed(path, container=3), "its header lacks 'container'")


def test_an_algebra_of_ones_own(path):
    X = rows()
    model = fitted(ELMRegressor, X, algebra=OWN)
    save(model, path)
    again = load(path)
    assert_same(model, again, X)
    assert again.algebra is again.algebra_
    assert same_bits(again.fit(X, X[:, :3]).output_weights_, model.output_weights_)


def test_parameters_that_were_changed_after_the_fit(path):
    """What the weights are decides, not what the next fit would make of them."""
    X = rows()
    model = fitted(ELMRegressor, X, direct_link=True)
    before = model.predict(X)
    model.set_params(bias=False, direct_link=False, n_hidden=np.int64(7), activation="relu", algebra="octonions")
    save(model, path)
    again = load(path)
    assert again.get_params() == model.get_params()
    assert same_bits(again.predict(X), before)
    with pytest.raises(ValueError, match="`algebra` must be the one that the model was fitted with"):
        save(model.set_params(algebra=OWN), path)


def test_numbers_that_json_lacks(path):
    X = np.ones((40, 8))
    model = fitted(ELMRegressor, X, ridge=np.float32(0.1), weight_scale=np.float32(0.3))
    assert model.condition_ == np.inf
    save(model, path)
    again = load(path)
    assert again.condition_ == np.inf
    assert again.get_params()["weight_scale"] == float(np.float32(0.3))


def test_a_generator_is_left_out(path):
    X = rows()
    for random_state in (np.random.RandomState(0), np.random.mtrand._rand):
        model = fitted(ELMRegressor, X, random_state=random_state)
        save(model, path)
        assert load(path).random_state is None
        assert_same(model, load(path), X)


def test_a_search_is_its_best_estimator(path):
    X = rows()
    search = GridSearchCV(ELMRegressor(n_hidden=3, random_state=0), {"algebra": ["real", "klein4"]}, cv=2).fit(
        X, X[:, 0]
    )
    save(search, path)
    assert_same(search.best_estimator_, load(path), X)


def test_in_a_new_process(tmp_path):
    X = rows(dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    for name, kind in models.CLASSES.items():
        model = fitted(kind, X, algebra="octonions", activation="sigmoid")
        save(model, tmp_path / name)
        np.savez(tmp_path / f"{name}.npz", *outputs(model, X))
    code = f"""
import numpy as np
from pathlib import Path
from hyperelm import load
folder = Path({str(tmp_path)!r})
X = np.load(folder / "X.npy")
for name in {list(models.CLASSES)}:
    model, expected = load(folder / name), np.load(folder / f"{{name}}.npz")
    methods = ("predict", "decision_function", "predict_proba", "transform", "reconstruct", "score_samples")
    results = [getattr(model, method)(X) for method in methods if hasattr(model, method)]
    assert len(results) == len(expected.files)
    for one, other in zip(results, expected.values()):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_same_model_gives_the_same_file(tmp_path):
    for name in "ab":
        save(fitted(ELMClassifier, rows()), tmp_path / name, state=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# ---------------------------------------------------------------------- going on


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["gram", "qr"])
def test_going_on(solver, dtype, algebra, path):
    """With the state in the file, more rows give what they give without the way through the file.

    The triangle of `qr` is in the file as it is, so all bits are the same. The sums of `gram` are there in a form that
    does not depend on how they were formed, and are rounded once more on the way back. They are rounded in the same way
    at every reading.
    """
    X = rows(dtype=dtype)
    model = fitted(ELMRegressor, X[:25], algebra=algebra.name, solver=solver)
    save(model, path, state=True)
    again = load(path)
    save(again, path, state=True)  # also of a model that has not gone on yet
    again = load(path)
    for one in (model, again):
        one.partial_fit(X[25:], X[25:, :3])
    assert_goes_on(again, model, exactly=solver == "qr")
    assert_goes_on(load(path).partial_fit(X[25:], X[25:, :3]), again, exactly=True)
    assert again.n_samples_seen_ == 40


@pytest.mark.parametrize("kind", [ELMRegressor, ELMClassifier, ELMAutoencoder])
def test_going_on_without_the_state(kind, path):
    X = rows()
    model = fitted(kind, X)
    save(model, path)
    again = load(path)
    arguments = {ELMRegressor: (X[:, :3],), ELMClassifier: (["no"] * len(X),), ELMAutoencoder: ()}[kind]
    with pytest.raises(
        ValueError, match=r"needs the accumulator of the rows seen, .* `save\(model, path, state=True\)`"
    ):
        again.partial_fit(X, *arguments)
    with pytest.raises(ValueError, match="`state` must be False for this model, which keeps no accumulator"):
        save(again, path, state=True)
    assert_same(model, again, X)


def test_a_state_of_another_algebra_is_refused(path):
    X = rows()
    save(fitted(ELMRegressor, X), path, state=True)
    again = load(path)
    again._accumulator.arrays()["coordinates"] = again._accumulator.arrays()["coordinates"] + 1e-3
    before = again.output_weights_.copy()
    with pytest.raises(ValueError, match="in the block basis that this release finds"):
        again.partial_fit(X, X[:, :3])
    again._accumulator.arrays().pop("rows")
    with pytest.raises(ValueError, match=r"must have 'rows' of shape \(\) and type int64"):
        again.partial_fit(X, X[:, :3])
    assert same_bits(again.output_weights_, before)


# ---------------------------------------------------------------------- other ways


def through_skops(model):
    content = skops.io.dumps(model)
    strange = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("hyperelm.") or name == "numpy.dtype" for name in strange), strange
    return skops.io.loads(content, trusted=strange)


@pytest.mark.parametrize("way", [through_pickle, through_joblib, through_skops])
@pytest.mark.parametrize("solver", ["gram", "qr"])
@pytest.mark.parametrize("kind", [ELMRegressor, ELMClassifier, ELMAutoencoder])
def test_pickle_joblib_and_skops(kind, solver, way):
    X = rows()
    model = fitted(kind, X, algebra=OWN, solver=solver)
    again = way(model)
    assert_same(model, again, X)
    arguments = {ELMRegressor: (X[:, :3],), ELMClassifier: (["no"] * len(X),), ELMAutoencoder: ()}[kind]
    for one in (model, again):
        one.partial_fit(X, *arguments)
    assert same_bits(again.output_weights_, model.output_weights_)


# ---------------------------------------------------------------------- what is not saved


def test_a_function_is_refused(path):
    X = rows()
    with pytest.raises(ValueError, match=r"`activation` must be a name .* a file that brings its own function would"):
        save(fitted(ELMRegressor, X, activation=np.tanh), path)
    with pytest.raises(ValueError, match="`activation` must be a name"):
        save(fitted(ELMRegressor, X).set_params(activation=lambda x: x), path)
    assert not path.exists()
    save(fitted(ELMRegressor, X, activation=ACTIVATIONS["sine"]), path)
    assert load(path).activation == "sine"


def test_what_cannot_be_saved(path):
    X = rows()
    for model in (ELMRegressor(), ELMRegressorCV()):
        with pytest.raises(NotFittedError):
            save(model, path)
    with pytest.raises(ValueError, match=r"`model` must be one of ELMRegressor, .*, got Pipeline. Save the steps"):
        save(make_pipeline(StandardScaler(), ELMRegressor(n_hidden=3)).fit(X, X[:, 0]), path)

    class Mine(ELMRegressor):
        pass

    with pytest.raises(ValueError, match="got Mine"):
        save(Mine(n_hidden=3).fit(X, X[:, 0]), path)
    with pytest.raises(ValueError, match="`verbose` must be a finite number or a text to be saved, got nan"):
        save(fitted(ELMRegressor, X).set_params(verbose=np.nan), path)
    labels = np.array(["a\0", "b"], dtype=object)
    with pytest.raises(ValueError, match="`classes_` must be numbers or texts without a null character"):
        save(ELMClassifier(n_hidden=3).fit(X, labels[np.arange(40) % 2]), path)
    with pytest.raises(ValueError, match="`classes_` must be numbers or texts, to be saved, got an array of type"):
        save(ELMClassifier(n_hidden=3).fit(X, np.arange(40) % 2 + np.longdouble(0)), path)
    weights = dict.fromkeys(range(2), "x" * 600_000)
    with pytest.raises(ValueError, match="`model` must have parameters of at most 1,048,576 characters"):
        save(fitted(ELMClassifier, X).set_params(class_weight=weights), path)
    assert not path.exists()


# ---------------------------------------------------------------------- files that are refused


def refused(path, reason):
    """In one line that names the file and the reason."""
    with pytest.raises(ValueError, match=reason) as error:
        load(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    assert type(error.value) is ValueError


@pytest.fixture
def content(path):
    save(fitted(ELMClassifier, rows(), algebra="complex"), path, state=True)
    return path.read_bytes()


def test_a_truncated_file(path, content):
    for length in [0, 1, 7, 8, 9, 100, *range(200, len(content), 199), len(content) - 1]:
        path.write_bytes(content[:length])
        refused(path, "it is not a file of hyperelm, or not all of one")
    path.write_bytes(content + b"\0")
    refused(path, "it is not a file of hyperelm, or not all of one")


def test_an_edited_file(path, content):
    at = content.index(b'\\"n_hidden\\":5')
    for changed in (
        content[:-1] + bytes([content[-1] ^ 1]),
        content[: at + 13] + b"6" + content[at + 14 :],
        content.replace(b'"hidden_weights_"', b'"hidden_weightz_"'),
    ):
        assert changed != content
        assert len(changed) == len(content)
        path.write_bytes(changed)
        refused(path, "its checksum does not fit: it has been changed or damaged")


def test_a_foreign_file(path, tmp_path):
    model = fitted(ELMRegressor, rows())
    foreign = [b"", b"hello", b"\x80" * 100, b"\xff" * 8 + b"{}", pickle.dumps(model), b"PK\x03\x04" + b"\0" * 100]
    for content in foreign:
        path.write_bytes(content)
        refused(path, "it is not a file of hyperelm, or not all of one")
    joblib.dump(model, path)
    refused(path, "it is not a file of hyperelm")
    safetensors.numpy.save_file({"weights": np.ones(3)}, path)
    refused(path, "it is a safetensors file, but not of hyperelm")
    refused(tmp_path, "it is not a file")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")


def signed(path, *, version="1", arrays=None, types=None, **fields):
    """The file with other fields and arrays and a checksum that fits: what somebody might make by hand."""
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["hyperelm"].split("\n")[2])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
    header |= fields
    header["types"] |= types or {}
    tensors |= arrays or {}
    text = json.dumps({name: value for name, value in header.items() if value is not Ellipsis})
    tensors = {name: array for name, array in tensors.items() if array is not Ellipsis}
    changed = path.with_suffix(".changed")
    safetensors.numpy.save_file(tensors, changed, container.signed(version, text, tensors))
    return changed


@pytest.mark.usefixtures("content")
def test_a_file_of_another_version(path):
    reason = r"its format version is 4, and this release reads 3. Install hyperelm 9.1, which wrote it."
    refused(signed(path, version="4", hyperelm="9.1"), reason)
    refused(signed(path, version="12", hyperelm="9.1\x1b[2J"), "Install a later release")
    for version in ("0", "-1", "1.0", "one", "", "1" * 10):
        refused(signed(path, version=version), f"its format version '{version}' is not a number")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"class": "os.system"}, "of the class 'os.system', which this release lacks"),
        ({"class": "x\n\x1b[2J" * 40}, r"of the class 'x\\n\\x1b"),
        ({"class": None}, "its header lacks 'class'"),
        ({"parameters": {}}, "its parameters are not those of ELMClassifier"),
        ({"algebra": 3}, "its header lacks 'algebra'"),
        ({"activation": "sin"}, "its activation 'sin' is not one of"),
        ({"input": {"ndim": 2}}, "the layout of its input is not whole numbers"),
        ({"input": {"ndim": 2, "columns": 10**15, "start": 0, "channels": 2}}, "of its weights do not fit together"),
        ({"input": {"ndim": 1, "columns": 8, "start": 0, "channels": 2}}, "the layout of its input is impossible"),
        ({"input": {"ndim": 2, "columns": 8, "start": 1, "channels": 2}}, "the layout of its input is impossible"),
        ({"input": {"ndim": 3, "columns": 7, "start": 0, "channels": 2}}, "the layout of its input is impossible"),
        (
            {
                "output": {"ndim": 2, "columns": 6, "start": 0, "channels": 2},
                "arrays": {"scales.inputs": Ellipsis, "scales.targets": Ellipsis},
            },
            "the layout of its output is not that of",
        ),
        ({"output": {"ndim": 2, "columns": 6, "start": 0, "channels": 2}}, "columns of its training rows does not fit"),
        ({"numbers": {}}, "it does not say rank_"),
        ({"solver": "magic"}, "its solver 'magic' is not one of"),
        ({"solver": "svd"}, "it holds an accumulator, which its solver 'svd' has not"),
        ({"arrays": {"table": np.zeros((2, 2))}}, r"`table` must have shape \(d, d, d\)"),
        ({"arrays": {"table": np.full((2, 2, 2), np.nan)}}, "`table` must be finite"),
        ({"arrays": {"table": np.zeros((3, 3, 3))}}, "`units` must be different names"),
        ({"arrays": {"table": Ellipsis}}, "it lacks the array 'table'"),
        ({"arrays": {"more": np.zeros(3)}}, "it holds the unknown array 'more'"),
        ({"arrays": {"scales.inputs": np.zeros((2, 3))}}, "what it says of the columns of its training rows"),
        ({"arrays": {"scales.targets": np.full((2, 3), np.nan)}}, "what it says of the columns of its training rows"),
        ({"arrays": {"units": np.zeros(3)}}, "it has texts that are none"),
        ({"arrays": {"units": np.full((2, 1), 2**31, np.uint32)}}, "it has texts that are none"),
        ({"arrays": {"units": np.full((2, 0), 1, np.uint32)}}, "it has an array that is not of its type object"),
        ({"types": {"units": "O"}}, "it has an array of the unknown type 'O'"),
        ({"types": {"units": 1}}, "it has an array of the unknown type '1'"),
        ({"types": {"units": "<c16"}}, "it has an array that is not of its type <c16"),
        ({"arrays": {"hidden_weights_": np.zeros((5, 5, 2), np.float32)}}, "of its weights do not fit together"),
        ({"arrays": {"hidden_weights_": np.zeros((9, 5, 2))}}, "of its weights do not fit together"),
        ({"arrays": {"hidden_weights_": np.zeros((5, 5, 2), np.int64)}}, "of its weights do not fit together"),
        ({"arrays": {"output_weights_": np.zeros((6, 3))}}, "of its weights do not fit together"),
        ({"arrays": {"output_weights_": np.zeros((7, 3, 2))}}, "of its weights do not fit together"),
        ({"arrays": {"classes_": np.zeros(3)}, "types": {"classes_": None}}, "its classes are not different labels"),
        (
            {"arrays": {"classes_": np.arange(4)}, "types": {"classes_": None}},
            "the layout of its output is not that of",
        ),
        ({"arrays": {"feature_names_in_": np.arange(8)}}, "the names of its columns are not one text each"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:40],
)
@pytest.mark.usefixtures("content")
def test_a_file_made_by_hand(changes, reason, path):
    refused(signed(path, **changes), reason)


@pytest.mark.usefixtures("content")
def test_numbers_out_of_range_are_no_warning(path):
    """Which tests and some users turn into errors."""
    save(fitted(ELMRegressor, rows(dtype=np.float32)), path)
    table = np.full((4, 4, 4), 1e300)
    assert not np.isfinite(load(signed(path, arrays={"table": table})).network_.operators.hidden).all()


def test_the_cost_of_loading_follows_the_size_of_the_file(path):
    """A dense table of large dimension: what prediction multiplies by is d times as large as the weights."""
    model = fitted(ELMRegressor, rows())
    model._scales = model._certainty = None  # which would be those of other columns
    save(model, path)
    d = 100
    rng = np.random.default_rng(0)
    large = {
        "table": rng.integers(1, 9, (d, d, d), dtype=np.int8),
        "units": np.frombuffer("".join(f"u{n:03}" for n in range(d)).encode("utf-32-le"), np.uint32).reshape(d, 4),
        "hidden_weights_": rng.standard_normal((2, 50, d), dtype=np.float32),
        "output_weights_": rng.standard_normal((51, 1, d), dtype=np.float32),
    }
    layouts = {
        "input": {"ndim": 2, "columns": d, "start": 0, "channels": d},
        "output": {"ndim": 1, "columns": 1, "start": 0, "channels": d},
    }
    large["hidden_weights_"][-1] = large["output_weights_"][-1] = 0  # the biases
    changed = signed(path, arrays=large, **layouts)
    seconds, peak = cost(lambda: (load(changed), describe(changed)))
    assert seconds < 1
    assert peak < 40 * changed.stat().st_size
    X = rng.standard_normal((3, d), dtype=np.float32)
    table, W, M = (large[name].astype(np.float64) for name in ("table", "hidden_weights_", "output_weights_"))
    codes = np.tanh(np.einsum("ni,lj,ijk->nlk", X, W[0], table, optimize=True))
    expected = np.einsum("nli,lj,ij->n", codes, M[:-1, 0], table[:, :, 0], optimize=True)
    np.testing.assert_allclose(load(changed).predict(X), expected, rtol=1e-3)


def cost(call):
    """Seconds, and bytes at most."""
    tracemalloc.start()
    start = time.perf_counter()
    call()
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("n_hidden", 0, "`n_hidden` must be a whole number >= 1, got 0"),
        ("n_hidden", "5", "`n_hidden` must be a whole number"),
        ("chunk_size", -1, "`chunk_size` must be"),
        ("activation", "sin", "`activation` must be one of"),
        ("activation", 7, "`activation` must be a name"),
        ("packing", "some", "`packing` must be one of"),
        ("ridge", -1.0, "`ridge` must be"),
        ("solver", "magic", "`solver` must be one of"),
        ("weight_scale", "large", "`weight_scale` must be"),
        ("algebra", 5, "its parameter algebra is not a text"),
        ("bias", [1], "its parameter bias is neither a number nor a text"),
        ("class_weight", [[1, 2, 3]], "its parameter class_weight is not a list of labels and weights"),
        ("class_weight", [[[1], 2]], "its parameter class_weight is not a list of labels and weights"),
    ],
)
@pytest.mark.usefixtures("content")
def test_a_parameter_made_by_hand(name, value, reason, path):
    refused(signed(path, parameters=ELMClassifier().get_params() | {name: value}), reason)


def test_headers_that_are_no_header(path):
    texts = ["", "[]", "3", "{", '{"a": NaN}', "[" * 100_000, '{"a":' * 100_000, "1" * 5000, "{}"]
    save(fitted(ELMRegressor, rows()), path)
    with safetensors.safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
    for text in [*texts, '{"x": "' + "x" * 2**20 + '"}']:
        safetensors.numpy.save_file(tensors, path, container.signed("1", text, tensors))
        refused(path, "its header (is not JSON|is not a JSON object|lacks 'types'|is too long)")


# ---------------------------------------------------------------------- files of earlier releases

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("model-v*.hyperelm")), ids=lambda path: path.stem)
def test_files_of_every_version(path):
    """Made by tests/data/make_models.py, with what the model then gave for two rows."""
    model = load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    X = np.asarray(expected["X"], dtype=model.hidden_weights_.dtype)
    for method, values in expected["outputs"].items():
        result = np.asarray(getattr(model, method)(X))
        if method == "predict_proba" and "-v3-" not in path.name:  # files before 3 do not say their scale
            assert np.all((result > 0) & (result < 1))
            assert np.array_equal(result.argmax(axis=1), np.argmax(values, axis=1))
            continue
        if result.dtype.kind == "f":
            np.testing.assert_allclose(result, values, rtol=0, atol=1e-5 if result.dtype == np.float32 else 1e-12)
        else:
            assert result.tolist() == values
    model.partial_fit(X, *expected["more"])
    assert model.n_samples_seen_ == expected["rows"] + len(X)


def test_there_are_files_of_every_version():
    for version in range(1, container.FORMAT + 1):
        assert list(DATA.glob(f"model-v{version}-*.hyperelm"))
    assert all(path.stat().st_size < 20_000 for path in DATA.iterdir())
