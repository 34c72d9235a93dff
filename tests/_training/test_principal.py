"""Principal components in an algebra, against the best approximation in every block of the decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA, TruncatedSVD

from hyperelm import ELMAutoencoder, algebras, linalg
from hyperelm._algebra.blocks import decompose
from hyperelm._training.principal import is_star_closed

OFFERED = [
    "real",
    "complex",
    "hyperbolic",
    "quaternions",
    "R[-1,+1]",
    "R[+1,-1]",
    "R[+1,+1]",
    "tessarines",
    "klein4",
    "Cl(1,1)",
    "Cl(2,0)",
    "biquaternions",
]
ROWS, FEATURES = 60, 6


def data(dim, seed=0):
    """Correlated components, and a mean that is not zero."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((FEATURES * dim, FEATURES * dim)) * np.linspace(2, 0.1, FEATURES * dim)
    return (rng.standard_normal((ROWS, FEATURES * dim)) @ mixing + 3).reshape(ROWS, FEATURES, dim)


def left_out(x, algebra, components):
    """The least ‖x - xWM‖² there is with W of so many columns.

    In the blocks xWM has rank n L, so by Eckart and Young all singular values after the first n L are lost. Every block
    occurs `copies` times in Φ_L(x), complex ones count twice, and ‖Φ_L(x)‖² = d ‖x‖² for these tables.
    """
    lost = 0.0
    for block in decompose(algebra):
        n = block.size
        image = np.einsum("rfi,iab->rafb", x, block.matrices).reshape(len(x) * n, x.shape[1] * n)
        sigma = np.linalg.svd(image, compute_uv=False)
        lost += block.copies * block.parts * np.sum(sigma[n * components :] ** 2)
    return lost / algebra.dim


def test_which_algebras_offer_it(algebra):
    """Associative, and the transpose of every Φ_L(unit) is some Φ_L(x): by least squares on the table."""
    units = np.array([algebra.left_matrix(unit).ravel() for unit in np.eye(algebra.dim)]).T
    transposed = np.array([algebra.left_matrix(unit).T.ravel() for unit in np.eye(algebra.dim)]).T
    coordinates = np.linalg.lstsq(units, transposed, rcond=None)[0]
    closed = np.allclose(units @ coordinates, transposed)
    assert is_star_closed(algebra) == (closed and algebra.is_associative) == (algebra.name in OFFERED)


@pytest.mark.parametrize("name", OFFERED)
@pytest.mark.parametrize("components", [1, 3, 6])
@pytest.mark.parametrize("bias", [True, False])
def test_reconstruction_is_the_best_there_is(name, components, bias):
    algebra = algebras.get(name)
    x = data(algebra.dim)
    model = ELMAutoencoder(algebra, components, encoder="pca", bias=bias, ridge=0, solver="qr", random_state=0).fit(x)
    error = np.sum((model.reconstruct(x) - x) ** 2)
    best = left_out(x - x.mean(axis=0) if bias else x, algebra, components)
    assert error == pytest.approx(best, rel=1e-8, abs=1e-9 * np.sum(x**2))


@pytest.mark.parametrize("name", OFFERED)
def test_no_step_of_the_encoder_does_better(name):
    """The same optimum without the decomposition: any other W leaves more, whatever the decoder."""
    algebra = algebras.get(name)
    x = data(algebra.dim)
    x -= x.mean(axis=0)
    model = ELMAutoencoder(algebra, 2, encoder="pca", bias=False, ridge=0, random_state=0).fit(x)
    W, rng = model.hidden_weights_, np.random.default_rng(1)

    def error(weights):
        return linalg.lstsq(linalg.matmul(x, weights, algebra), x, algebra, method="svd").residual

    best = error(W)
    for size in (1e-3, 0.1, 10.0):
        for _ in range(5):
            assert error(W + size * rng.standard_normal(W.shape)) > best * (1 - 1e-12)


@pytest.mark.parametrize("name", OFFERED)
def test_not_worse_than_random_and_orthogonal(name):
    algebra = algebras.get(name)
    x = data(algebra.dim)
    scores = {
        encoder: ELMAutoencoder(algebra, 3, encoder=encoder, activation="identity", ridge=0, random_state=0)
        .fit(x)
        .score(x)
        for encoder in ("pca", "random", "orthogonal")
    }
    assert scores["pca"] > max(scores["random"], scores["orthogonal"])


def test_weights_are_orthonormal_in_the_algebra():
    """Φ_L(W)ᵀ Φ_L(W) = 1."""
    for name in OFFERED:
        algebra = algebras.get(name)
        model = ELMAutoencoder(algebra, 2, encoder="pca", random_state=0).fit(data(algebra.dim))
        matrix = linalg.left_matrix(model.hidden_weights_[:-1], algebra)
        assert_allclose(matrix.T @ matrix, np.eye(2 * algebra.dim), atol=1e-10)


@pytest.mark.parametrize("components", [1, 4, 10])
def test_real_numbers_give_scikit_learns(components):
    X = data(4).reshape(ROWS, -1)
    pca = PCA(components, svd_solver="full").fit(X)
    model = ELMAutoencoder("real", components, encoder="pca", ridge=0, random_state=0).fit(X)
    assert_allclose(model.reconstruct(X), pca.inverse_transform(pca.transform(X)), atol=1e-6)
    svd = TruncatedSVD(components, algorithm="arpack", random_state=0).fit(X)
    model = ELMAutoencoder("real", components, encoder="pca", bias=False, ridge=0, random_state=0).fit(X)
    assert_allclose(model.reconstruct(X), svd.inverse_transform(svd.transform(X)), atol=1e-6)


def test_codes_are_centred():
    model = ELMAutoencoder("klein4", 3, encoder="pca", random_state=0)
    assert_allclose(model.fit_transform(data(4).reshape(ROWS, -1)).mean(axis=0), 0, atol=1e-10)


def test_sample_weights_are_repetitions():
    x = data(4)
    times = np.random.default_rng(0).integers(0, 4, ROWS)
    for name in ("quaternions", "R[+1,+1]", "tessarines"):
        options = {"n_hidden": 2, "encoder": "pca", "ridge": 0, "random_state": 0}
        weighted = ELMAutoencoder(name, **options).fit(x, sample_weight=times)
        repeated = ELMAutoencoder(name, **options).fit(np.repeat(x, times, axis=0))
        assert_allclose(weighted.reconstruct(x), repeated.reconstruct(x), atol=1e-7)


@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_chunks_change_nothing(chunk_size):
    x = data(4)
    options = {"n_hidden": 2, "encoder": "pca", "ridge": 0, "random_state": 0}
    whole = ELMAutoencoder("R[+1,+1]", **options).fit(x)
    parts = ELMAutoencoder("R[+1,+1]", chunk_size=chunk_size, **options).fit(x)
    assert_allclose(parts.reconstruct(x), whole.reconstruct(x), atol=1e-8)


def test_single_precision():
    x = data(4).astype(np.float32)
    model = ELMAutoencoder("R[+1,+1]", 3, encoder="pca", ridge=0, random_state=0).fit(x)
    assert model.reconstruct(x).dtype == model.transform(x).dtype == np.float32
    best = left_out((x - x.mean(axis=0)).astype(float), algebras.get("R[+1,+1]"), 3)
    assert np.sum((model.reconstruct(x) - x.astype(float)) ** 2) == pytest.approx(best, rel=1e-3)


def test_the_scale_of_components():
    x = data(4)
    scales = {"auto": 1, "paper": 1, "0.1 auto": 0.1, 3.0: 3}
    for scale, factor in scales.items():
        model = ELMAutoencoder("tessarines", 3, encoder="pca", weight_scale=scale, random_state=0).fit(x)
        assert model.weight_scale_ == factor
        plain = ELMAutoencoder("tessarines", 3, encoder="pca", random_state=0).fit(x)
        assert_allclose(model.hidden_weights_, factor * plain.hidden_weights_, atol=1e-12)


def test_same_seed_same_result():
    x = data(4)
    codes = [ELMAutoencoder("tessarines", 3, encoder="pca", random_state=seed).fit_transform(x) for seed in (0, 0, 1)]
    assert_array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])


@pytest.mark.parametrize(
    "name", ["paper-Cl(1,1)", "octonions", "dual", "split-octonions", "sedenions", "dual-quaternions"]
)
def test_refused_by_name(name):
    x = data(algebras.get(name).dim)
    message = "`encoder` must not be 'pca' for " + name.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=message + ".*Use 'orthogonal'"):
        ELMAutoencoder(name, 2, encoder="pca").fit(x)


def test_moments_beyond_single_precision_are_refused():
    X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    with pytest.raises(ValueError, match="`encoder` must not be 'pca' for rows whose squares are beyond float32"):
        ELMAutoencoder(n_hidden=1, encoder="pca").fit(np.float32(1e20) * X)
