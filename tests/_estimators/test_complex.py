"""Complex arrays over the complex numbers: they are the numbers, and predictions are complex."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

from helpers import outputs, through_pickle
from hyperelm import (
    Algebra,
    ELMAutoencoder,
    ELMClassifier,
    ELMRegressor,
    ELMRegressorCV,
    algebras,
    describe,
    load,
    save,
    to_onnx,
)
from hyperelm._estimators.frame import FrameRegressor

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((120, 5)) + 1j * RNG.standard_normal((120, 5))
T = np.stack([Z[:, 0] * Z[:, 1], np.conj(Z[:, 2])], axis=1)
LABELS = np.where(Z[:, 0].imag > 0, "up", "down")
FIXED = {"n_hidden": 8, "ridge": 1e-3, "random_state": 0}


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("y", [T, T[:, 0]], ids=["columns", "vector"])
@pytest.mark.parametrize("readout", ["algebra", "learned", "free"])
def test_numbers_by_hand(dtype, y, readout, tmp_path):
    z, t = Z.astype(dtype), y.astype(dtype)
    model = ELMRegressor("complex", readout=readout, **FIXED).fit(z, t)
    by_hand = ELMRegressor("complex", readout=readout, **FIXED).fit(pairs(z), pairs(t.reshape(120, -1)))
    found, expected = model.predict(z), by_hand.predict(pairs(z))
    assert (found.shape, found.dtype) == (y.shape, dtype)
    assert model.n_features_in_ == 5
    expected = expected[..., 0] + 1j * expected[..., 1]
    tol = 1e-9 if dtype == np.complex128 else 1e-3
    assert_allclose(found.reshape(120, -1), expected, rtol=0, atol=tol * np.abs(expected).max())
    flat = [array.reshape(120, -1) for array in (pairs(t), pairs(found))]
    assert model.score(z, t) == pytest.approx(r2_score(*flat), rel=1e-5)
    save(model, tmp_path / "model", state=True)
    for again in (load(tmp_path / "model"), through_pickle(model)):
        assert_array_equal(again.predict(z), found)
        assert again.predict(z).dtype == dtype
        more = through_pickle(model).partial_fit(z, t).predict(z)
        assert_allclose(again.partial_fit(z, t).predict(z), more, rtol=0, atol=tol * np.abs(more).max())
    text = describe(tmp_path / "model")
    assert "5 complex columns, as 5 numbers" in text
    assert ("one complex value" if y.ndim == 1 else "2 complex columns") in text


def test_autoencoder(tmp_path):
    model = ELMAutoencoder("complex", 3, random_state=0).fit(Z)
    by_hand = ELMAutoencoder("complex", 3, random_state=0).fit(pairs(Z))
    codes = model.transform(Z)
    assert (codes.shape, codes.dtype) == ((120, 3), np.complex128)
    assert_array_equal(pairs(codes), by_hand.transform(pairs(Z)))
    assert_array_equal(pairs(model.reconstruct(Z)), by_hand.reconstruct(pairs(Z)))
    assert_array_equal(model.inverse_transform(codes), model.reconstruct(Z))
    assert model.score(Z) == by_hand.score(pairs(Z))
    assert len(model.get_feature_names_out()) == 3
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").transform(Z), codes)


def test_other_inputs():
    """A real target of complex rows, complex targets of real rows, labels, files, chunks, lists and frames."""
    pandas = pytest.importorskip("pandas")
    by_hand = ELMRegressor("complex", **FIXED)
    assert_array_equal(
        ELMRegressor("complex", **FIXED).fit(Z, T.real).predict(Z),
        clone(by_hand).fit(pairs(Z), T.real).predict(pairs(Z)),
    )
    assert ELMRegressor("complex", **FIXED).fit(Z.real, T).predict(Z.real).dtype == np.complex128
    labels = ELMClassifier("complex", **FIXED).fit(Z, LABELS)
    for got, expected in zip(
        outputs(labels, Z), outputs(ELMClassifier("complex", **FIXED).fit(pairs(Z), LABELS), pairs(Z))
    ):
        assert_array_equal(got, expected)
    expected = clone(by_hand).fit(Z, T).predict(Z)
    frame = pandas.DataFrame(Z, columns=list("abcde"))
    named = clone(by_hand).fit(frame, pandas.DataFrame(T))
    assert_array_equal(named.feature_names_in_, list("abcde"))
    assert_array_equal(named.predict(frame), expected)
    assert_array_equal(clone(by_hand).fit(Z.tolist(), T.tolist()).predict(Z.tolist()), expected)
    by_chunks = clone(by_hand).set_params(weight_scale=0.3).fit([(Z[:50], T[:50]), (Z[50:], T[50:])])
    assert_allclose(by_chunks.predict(Z), clone(by_hand).set_params(weight_scale=0.3).fit(Z, T).predict(Z), atol=1e-8)


def test_stored(tmp_path):
    rows = np.memmap(tmp_path / "rows", dtype=np.complex128, mode="w+", shape=Z.shape)
    rows[...] = Z
    model = ELMRegressor("complex", **FIXED)
    assert_array_equal(clone(model).fit(rows, T).predict(rows), clone(model).fit(Z, T).predict(Z))
    rows[70, 2] = np.nan
    with pytest.raises(ValueError, match="`X` must be finite, got nan in row 70"):
        model.fit(rows, T)


def test_any_algebra_with_the_table():
    mine = Algebra(algebras.get("complex").table, name="phasors", units=["1", "j"])
    assert ELMRegressor(mine, **FIXED).fit(Z, T).predict(Z).dtype == np.complex128


def test_tools():
    model = ELMRegressor("complex", 20, random_state=0)
    assert cross_val_score(model, Z, T[:, 1]).mean() > 0.7
    search = ELMRegressorCV(n_hidden=[4, 8], weight_scale=["0.3 auto"], n_draws=1, random_state=0).fit(Z, T)
    assert search.best_algebra_ == algebras.get("complex")
    assert search.predict(Z).dtype == np.complex128
    assert search.score(Z, T) > 0.4


def test_onnx_takes_pairs():
    runtime = pytest.importorskip("onnxruntime")
    model = ELMRegressor("complex", **FIXED).fit(Z, T)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(None, {"X": pairs(Z).astype(np.float32)})
    assert_allclose(found, pairs(model.predict(Z)), atol=1e-4)


@pytest.mark.parametrize("name", ["quaternions", "dual", "real"])
def test_other_algebras_say_what_to_do(name):
    for call, argument in [
        (lambda model: model.fit(Z, T), "X"),
        (lambda model: model.fit(Z.real, T), "y"),
        (lambda model: model.fit([(Z, T)]), "X"),
        (lambda model: model.partial_fit(Z, T), "X"),
    ]:
        with pytest.raises(ValueError, match=rf"by the algebra {name}, got `{argument}` .* Take algebra='complex'"):
            call(ELMRegressor(name))


def test_messages():
    model = ELMRegressor("complex", **FIXED).fit(Z, T)
    bad = Z.copy()
    bad[3, 1] = np.inf
    for call, message in [
        (
            lambda: model.predict(Z.real),
            "X must be complex as the rows that the model was fitted with, got dtype float64",
        ),
        (lambda: ELMRegressor("complex").fit(Z.real, T).predict(Z), "X must be real as the rows"),
        (lambda: model.predict(Z[:, :2]), "X has 2 features, but ELMRegressor is expecting 5"),
        (lambda: model.fit(bad, T), "Input X contains infinity"),
        (lambda: model.fit(Z, bad[:, :2]), "Input y contains infinity"),
        (lambda: model.fit(Z[:, 0], T), "Expected 2D array of complex numbers"),
        (lambda: model.fit(Z[:, :4].reshape(120, 2, 2), T), "Expected 2D array of complex numbers"),
        (lambda: FrameRegressor("complex").fit(Z, T), "must be columns in memory, not complex"),
        (lambda: ELMClassifier("complex").fit(Z, Z[:, 0]), "Complex data not supported"),
        (lambda: ELMRegressor("complex", **FIXED).fit([(Z, T), (Z, T.real)]), "`y` must have the shape"),
        (lambda: model.fit(Z, T).partial_fit(Z, T.real), "`y` must"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
