"""ELMAutoencoder: codes, decoder, encoders."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from helpers import numbers
from hyperelm import Algebra, ELMAutoencoder, ELMRegressor, algebras, linalg, pack

FIXED = {"n_hidden": 3, "weight_scale": 0.3, "ridge": 0.1, "random_state": 0}


@pytest.mark.parametrize(
    ("packing", "encoder", "bias"),
    [
        ("full", "random", True),
        ("full", "orthogonal", False),
        ("imaginary", "random", False),
        ("imaginary", "orthogonal", True),
        ("real", "random", True),
    ],
)
def test_tables(algebra, packing, encoder, bias):
    X = numbers((60, 7))
    model = ELMAutoencoder(algebra, encoder=encoder, packing=packing, bias=bias, **FIXED).fit(X)
    x = pack(X, algebra, into=packing)
    W = model.hidden_weights_
    h = linalg.matmul(x, W[: x.shape[1]], algebra, method="left") + (W[-1] if bias else 0)
    codes = model.transform(X)
    assert codes.shape == (60, 3 * algebra.dim)
    assert_allclose(codes, np.tanh(h).reshape(60, -1), atol=1e-12)
    assert model.reconstruct(X).shape == X.shape
    assert_allclose(model.inverse_transform(codes), model.reconstruct(X), atol=1e-12)
    assert_allclose(model.fit_transform(X), codes, atol=1e-12)
    assert model.score(X) == pytest.approx(r2_score(X, model.reconstruct(X), multioutput="variance_weighted"))
    assert list(model.get_feature_names_out()) == [f"elmautoencoder{n}" for n in range(3 * algebra.dim)]


def test_numbers_stay_numbers(algebra):
    x = numbers((60, 2, algebra.dim))
    model = ELMAutoencoder(algebra, **FIXED).fit(x)
    codes = model.transform(x)
    assert codes.shape == (60, 3, algebra.dim)
    assert model.reconstruct(x).shape == x.shape
    assert_allclose(model.inverse_transform(codes), model.reconstruct(x), atol=1e-12)
    assert_array_equal(model.inverse_transform(codes.reshape(60, -1)), model.inverse_transform(codes))
    # The targets are the inputs.
    assert_allclose(model.reconstruct(x), ELMRegressor(algebra, **FIXED).fit(x, x).predict(x), atol=1e-10)


def test_orthogonal_encoder(algebra):
    """Orthonormal columns as real vectors, of the length that random ones have."""
    D, L = 6, 5
    x = numbers((40, D, algebra.dim))
    for bias in (True, False):
        model = ELMAutoencoder(algebra, L, encoder="orthogonal", weight_scale=0.3, bias=bias, ridge=0.1, random_state=0)
        W = linalg.to_real(model.fit(x).hidden_weights_[:D])
        gram = W.T @ W
        assert_allclose(gram, gram[0, 0] * np.eye(L), atol=1e-12)
        assert gram[0, 0] == pytest.approx(0.3**2 * D * algebra.dim)


def test_orthogonal_encoder_with_more_neurons_than_inputs():
    x = numbers((40, 2, 4))
    model = ELMAutoencoder(n_hidden=20, encoder="orthogonal", weight_scale=0.3, ridge=0.1, random_state=0).fit(x)
    W = linalg.to_real(model.hidden_weights_[:2])
    gram = W @ W.T
    assert_allclose(gram, gram[0, 0] * np.eye(8), atol=1e-12)


def test_default_activations():
    X = numbers((60, 8))
    for encoder, expected in (("random", "tanh"), ("orthogonal", "tanh"), ("pca", "identity")):
        options = {"n_hidden": 2, "encoder": encoder, "random_state": 0}
        default = ELMAutoencoder(**options).fit_transform(X)
        assert_array_equal(default, ELMAutoencoder(activation=expected, **options).fit_transform(X))
    told = ELMAutoencoder(n_hidden=2, encoder="pca", activation="tanh", random_state=0).fit_transform(X)
    assert np.abs(told).max() <= 1


@pytest.mark.parametrize("encoder", ["random", "orthogonal"])
@pytest.mark.parametrize("name", ["real", "klein4", "quaternions", "octonions"])
@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_partial_fit_equals_fit(encoder, name, solver):
    X = numbers((60, 8))
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    options = {**FIXED, "encoder": encoder, "solver": solver}
    whole = ELMAutoencoder(name, **options).fit(X, sample_weight=weight)
    pieces = ELMAutoencoder(name, **options)
    for rows in (slice(0, 30), slice(30, 31), slice(31, 60)):
        pieces.partial_fit(X[rows], sample_weight=weight[rows])
    assert_allclose(pieces.reconstruct(X), whole.reconstruct(X), atol=1e-9)


def test_parameters():
    x = numbers((60, 6, 4))
    model = ELMAutoencoder(n_hidden=3, ridge=0.1).fit(x)
    assert model.n_parameters_ == 4 * (7 * 3 + 4 * 6)
    assert ELMAutoencoder(n_hidden=3, bias=False, ridge=0.1).fit(x).n_parameters_ == 4 * (6 * 3 + 3 * 6)
    assert model.n_features_in_ == 6
    assert model.algebra_ == algebras.get("quaternions")


def test_precision():
    X = numbers((60, 8))
    for dtype in (np.float32, np.float64):
        model = ELMAutoencoder(**FIXED).fit(X.astype(dtype))
        for array in (model.transform(X.astype(dtype)), model.reconstruct(X.astype(dtype))):
            assert array.dtype == dtype
        assert model.inverse_transform(model.transform(X.astype(dtype))).dtype == dtype
    pixels = np.random.default_rng(0).integers(0, 256, (60, 9)).astype(np.uint8)
    for encoder in ("random", "pca"):
        options = {"n_hidden": 2, "packing": "imaginary", "encoder": encoder, "random_state": 0}
        model = ELMAutoencoder(**options).fit(pixels)
        assert_allclose(
            model.reconstruct(pixels), ELMAutoencoder(**options).fit(pixels.astype(float)).reconstruct(pixels)
        )


def test_transforming_in_chunks_and_not_at_all():
    X = numbers((60, 8))
    model = ELMAutoencoder(**FIXED).fit(X)
    codes = model.transform(X)
    assert_allclose(model.set_params(chunk_size=7).transform(X), codes, atol=1e-13)
    assert_allclose(model.reconstruct(X), model.inverse_transform(codes), atol=1e-12)


CIFAR = os.environ.get("HYPERELM_CIFAR10")


@pytest.mark.skipif(not CIFAR, reason="HYPERELM_CIFAR10 names no folder with data_batch_1.bin of CIFAR-10")
def test_principal_components_of_images():
    """2,000 images, a quarter of the pixels: what the paper does at random is done better from the data."""
    raw = np.fromfile(Path(CIFAR) / "data_batch_1.bin", dtype=np.uint8, count=2000 * 3073).reshape(2000, 3073)
    images = raw[:, 1:].reshape(2000, 3, 32, 32)[:, :, ::2, ::2]
    x = pack(images / 127.5 - 1, "R[+1,+1]", planar=True)
    assert x.shape == (2000, 256, 4)
    train, test = x[:1500], x[1500:]

    def psnr(encoder):
        model = ELMAutoencoder("R[+1,+1]", 60, encoder=encoder, bias=False, ridge=1e-6, random_state=0).fit(train)
        pixels, found = ((np.clip(z[..., 1:], -1, 1) + 1) * 127.5 for z in (test, model.reconstruct(test)))
        return np.mean(10 * np.log10(255**2 / np.mean((pixels - found) ** 2, axis=(1, 2))))

    assert psnr("pca") > psnr("random") + 2


X = numbers((30, 8))
X_NAN, X_INF = X.copy(), X.copy()
X_NAN[3, 2], X_INF[5, 1] = np.nan, np.inf
FITTED = ELMAutoencoder(**FIXED).fit(X)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ELMAutoencoder(n_hidden=2, encoder="pca").partial_fit(X),
            ValueError,
            "`encoder` must not be 'pca' for partial_fit: .* Use fit, or encoder='random'",
        ),
        (
            lambda: ELMAutoencoder(n_hidden=2, encoder="pca").fit(X).partial_fit(X),
            ValueError,
            "`encoder` must not be 'pca' for partial_fit",
        ),
        (
            lambda: ELMAutoencoder(n_hidden=3, encoder="pca").fit(X),
            ValueError,
            "`n_hidden` must be at most the 2 inputs with encoder='pca', got 3",
        ),
        (
            lambda: ELMAutoencoder(encoder="svd").fit(X),
            ValueError,
            "`encoder` must be one of 'random', 'orthogonal', 'pca', got 'svd'",
        ),
        (lambda: ELMAutoencoder().fit(X_NAN), ValueError, "Input X contains NaN"),
        (lambda: ELMAutoencoder().fit(X_INF), ValueError, "Input X contains infinity"),
        (lambda: FITTED.transform(X_NAN), ValueError, "Input X contains NaN"),
        (lambda: FITTED.inverse_transform(np.full((2, 12), np.nan)), ValueError, "Input X contains NaN"),
        (lambda: FITTED.transform(X[:, :3]), ValueError, "X has 3 features, but ELMAutoencoder is expecting 8"),
        (lambda: FITTED.reconstruct(X[:, :3]), ValueError, "X has 3 features, but ELMAutoencoder is expecting 8"),
        (
            lambda: FITTED.inverse_transform(X),
            ValueError,
            "`X` must have 12 columns of codes, as `transform` gives, got 8",
        ),
        (
            lambda: ELMAutoencoder().fit(np.ones((5, 1, 2, 3))),
            ValueError,
            r"`X` must have .* numbers of 4 components \(quaternions\).* got shape \(5, 1, 2, 3\)",
        ),
        (lambda: ELMAutoencoder().transform(X), NotFittedError, "This ELMAutoencoder instance is not fitted yet"),
        (lambda: ELMAutoencoder().inverse_transform(X), NotFittedError, "is not fitted yet"),
        (lambda: ELMAutoencoder().reconstruct(X), NotFittedError, "is not fitted yet"),
        (lambda: ELMAutoencoder(n_hidden=0).fit(X), ValueError, "`n_hidden` must be a whole number >= 1, got 0"),
        (lambda: ELMAutoencoder("tesarines").fit(X), ValueError, "tesarines.*[Dd]id you mean.*tessarines"),
        (lambda: ELMAutoencoder(activation="identty").fit(X), ValueError, "Did you mean 'identity'"),
        (lambda: ELMAutoencoder(solver="lu").fit(X), ValueError, "`solver` must be one of .* got 'lu'"),
        (lambda: ELMAutoencoder(ridge=-1).fit(X), ValueError, "`ridge` must be a finite number >= 0"),
        (lambda: ELMAutoencoder(weight_scale=-1).fit(X), ValueError, "`weight_scale` must be"),
        (lambda: ELMAutoencoder(weight_scale=np.ones(2)).fit(X), ValueError, "`weight_scale` must be"),
        (lambda: ELMAutoencoder(ridge=np.ones(2)).fit(X), ValueError, "`ridge` must be"),
        (lambda: ELMAutoencoder(packing="rgb").fit(X), ValueError, "`packing` must be one of"),
        (lambda: ELMAutoencoder(chunk_size=0).fit(X), ValueError, "`chunk_size` must be a whole number >= 1"),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "table",
    [
        [[[0, 1], [0, 0]], [[0, 1], [0, 0]]],
        [[[1, 0], [-1, 1]], [[0, 0], [0, -1]]],
        [[[0, 1], [1, -1]], [[0, 0], [0, 0]]],
        [[[-1, 0], [0, 0]], [[1, 0], [0, 0]]],
        np.zeros((2, 2, 2)),
        [[[0, 0, 0], [0, 1, 0], [0, 0, 0]], [[-1, 1, 0], [0, 1, 0], [-1, 1, 0]], [[0, 0, -1], [0, 0, 0], [0, 0, -1]]],
    ],
)
def test_wide_layers_of_tables_without_structure(table):
    """Schemes are searched for, some blocks are zero, and the bias may explain less than its unknowns could."""
    algebra = Algebra(np.array(table, dtype=float))
    rows = np.random.default_rng(0).standard_normal((300, 224 * (algebra.dim - 1)))
    found, expected = (
        ELMAutoencoder(algebra, 224, packing="imaginary", ridge=1.0, solver=solver, random_state=0).fit(rows)
        for solver in ("gram", "svd")
    )
    assert_allclose(found.output_weights_, expected.output_weights_, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_samples(dtype):
    """Minus the mean squared error in units of the spread, chunk by chunk, and lower for rows of another kind."""
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((300, 2)) @ rng.standard_normal((2, 8)) * np.logspace(-3, 3, 8)).astype(dtype)
    model = ELMAutoencoder("klein4", 2, encoder="pca", chunk_size=70).fit(rows)
    scores = model.score_samples(rows)
    assert scores.shape == (300,)
    assert scores.dtype == dtype
    spread = model._scales.inputs.spread
    expected = -(((rows - model.reconstruct(rows)) / spread) ** 2).mean(axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-5)
    others = (rng.standard_normal((300, 8)) * np.logspace(-3, 3, 8)).astype(dtype)
    assert np.median(model.score_samples(others)) < np.quantile(scores, 0.05)


def test_scores_of_samples_with_a_constant_column():
    rows = np.random.default_rng(0).standard_normal((50, 4))
    rows[:, 3] = 5.0
    model = ELMAutoencoder("real", 4, random_state=0).fit(rows)
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(ELMAutoencoder("real", 2).fit(np.full((9, 2), 5.0)).score_samples(np.ones((2, 2)))).all()
