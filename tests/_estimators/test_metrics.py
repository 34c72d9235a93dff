"""Prediction gain against the paper's formula, written out in plain sums; measures of images against scikit-image."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from skimage.color import rgb2gray
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from sklearn.datasets import load_sample_image

import oracles
from hyperelm.metrics import prediction_gain, psnr, ssim


def series(n, channels, seed):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, channels)) * [3.0, 1.0, 0.5, 2.0][:channels] + 1
    return truth, truth + 0.1 * rng.standard_normal((n, channels))


drawn = given(n=st.integers(2, 30), channels=st.integers(1, 4), seed=st.integers(0, 10**6))


@drawn
def test_against_the_formula(n, channels, seed):
    truth, guess = series(n, channels, seed)
    expected = oracles.prediction_gain(truth.tolist(), guess.tolist(), truth.tolist())
    assert prediction_gain(truth, guess) == pytest.approx(expected, abs=1e-6)
    assert prediction_gain(truth.tolist(), guess.tolist()) == prediction_gain(truth, guess)


@drawn
def test_of_the_positions_before(n, channels, seed):
    positions, _ = series(n + 1, channels, seed)
    truth = positions[1:]
    guess = truth + 0.1 * np.random.default_rng(seed + 1).standard_normal(truth.shape)
    expected = oracles.prediction_gain(truth.tolist(), guess.tolist(), positions[:-1].tolist())
    assert prediction_gain(truth, guess, signal=positions[:-1]) == pytest.approx(expected, abs=1e-6)
    assert prediction_gain(truth, guess, signal=truth) == prediction_gain(truth, guess)


@given(seed=st.integers(0, 10**6), factor=st.floats(1e-6, 1e6), negative=st.booleans())
def test_units_do_not_matter(seed, factor, negative):
    """A factor of both changes nothing; one of the errors alone counts 20 log₁₀ of it."""
    truth, guess = series(20, 3, seed)
    factor = -factor if negative else factor
    gained = prediction_gain(truth, guess)
    assert prediction_gain(factor * truth, factor * guess) == pytest.approx(gained, abs=1e-8)
    larger = prediction_gain(truth, truth + 10 * (guess - truth))
    assert larger == pytest.approx(gained - 20, abs=1e-8)


@given(seed=st.integers(0, 10**6))
def test_rotations_do_not_matter(seed):
    truth, guess = series(20, 3, seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    assert prediction_gain(truth @ turn, guess @ turn) == pytest.approx(prediction_gain(truth, guess), abs=1e-8)


@given(values=st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=20))
def test_one_channel_is_a_column(values):
    truth, guess = np.array(values, dtype=float).T
    errors = np.abs(truth - guess)
    assume(np.ptp(np.abs(truth)) > 0)
    assume(np.ptp(errors) > 0)
    flat = prediction_gain(truth, guess)
    assert isinstance(flat, float)
    assert flat == prediction_gain(truth[:, None], guess[:, None])
    assert flat == pytest.approx(oracles.prediction_gain(truth[:, None], guess[:, None], truth[:, None]))


def test_no_gain_over_guessing_zero():
    truth, _ = series(10, 3, 0)
    assert prediction_gain(truth, np.zeros_like(truth)) == 0


def test_equally_long_errors_gain_infinitely():
    """Also where they point elsewhere; a constant signal gains nothing at all."""
    truth = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 0.0]])
    assert prediction_gain(truth, truth) == math.inf
    error = np.array([[3.0, 4.0], [5.0, 0.0], [-4.0, 3.0]])
    assert prediction_gain(truth, truth + error) == math.inf
    assert prediction_gain(truth, 2 * truth, signal=np.ones((3, 2))) == -math.inf


def test_signals_may_have_another_number_of_channels():
    truth, guess = series(9, 2, 0)
    before, _ = series(9, 3, 1)
    expected = oracles.prediction_gain(truth.tolist(), guess.tolist(), before.tolist())
    assert prediction_gain(truth, guess, signal=before) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["y_true", "y_pred", "signal"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (1, 3), (4, 2, 2)])
def test_arrays_of_other_shapes_are_refused(name, shape):
    arguments = {"y_true": np.ones((4, 2)), "y_pred": np.zeros((4, 2)), "signal": np.ones((4, 2))}
    arguments[name] = np.ones(shape)
    with pytest.raises(
        ValueError, match=rf"^`{name}` must have shape \(n,\) or \(n, channels\) with n >= 2, got \("
    ) as error:
        prediction_gain(arguments["y_true"], arguments["y_pred"], signal=arguments["signal"])
    assert str(error.value).endswith(f"got {shape}.")


@pytest.mark.parametrize("shape", [(4, 3), (5, 2), (4,)])
def test_other_shapes_of_the_prediction_are_refused(shape):
    with pytest.raises(ValueError, match=r"^`y_true` and `y_pred` must have the same shape, got \(4, 2\) and \("):
        prediction_gain(np.ones((4, 2)), np.ones(shape))


# ---------------------------------------------------------------------- images


def random_images(shape, dtype, seed=0):
    """Two stacks of noise."""
    noise = np.random.default_rng(seed).uniform(0, 256, (2, *shape))
    return np.floor(noise).astype(np.uint8) if dtype == "bytes" else noise


def photographs(n, dtype, seed=0):
    """Patches of a photograph, with and without noise."""
    rng = np.random.default_rng(seed)
    photograph = load_sample_image("flower.jpg")
    patches = np.stack([photograph[r : r + 32, c : c + 32] for r, c in rng.integers(300, size=(n, 2))])
    noisy = np.clip(patches + rng.normal(0, 12, patches.shape), 0, 255)
    return (patches, np.rint(noisy).astype(np.uint8)) if dtype == "bytes" else (patches.astype(float), noisy)


def check_against_scikit_image(a, b, peak=255.0):
    expected = [peak_signal_noise_ratio(x, y, data_range=peak) for x, y in zip(a, b)]
    assert_allclose(psnr(a, b, data_range=peak), expected, rtol=1e-12)
    expected = [structural_similarity(x, y, channel_axis=-1, data_range=peak) for x, y in zip(a, b)]
    assert_allclose(ssim(a, b, data_range=peak), expected, rtol=0, atol=1e-12)
    if a.shape[-1] == 3:
        # Of floats, since scikit-image divides bytes by 255.
        grey = [(rgb2gray(x.astype(float)), rgb2gray(y.astype(float))) for x, y in zip(a, b)]
        expected = [structural_similarity(x, y, data_range=peak) for x, y in grey]
        assert_allclose(ssim(a, b, luma=True, data_range=peak), expected, rtol=0, atol=1e-12)


kinds = pytest.mark.parametrize("dtype", ["bytes", "floats"])


@kinds
@pytest.mark.parametrize("sides", [(32, 32), (7, 7), (9, 12), (12, 7), (40, 8)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_random_images(dtype, sides, channels):
    check_against_scikit_image(*random_images((3, *sides, channels), dtype))


@kinds
def test_real_images(dtype):
    a, b = photographs(12, dtype)
    check_against_scikit_image(a, b)
    check_against_scikit_image(a, b[::-1])


@pytest.mark.parametrize("peak", [1.0, 2.0, 65535.0])
def test_other_peaks(peak):
    a, b = (images * (peak / 255) for images in photographs(4, "floats"))
    check_against_scikit_image(a, b, peak)


def test_bytes_do_not_wrap_around():
    dark, light = np.zeros((1, 8, 8, 3), dtype=np.uint8), np.full((1, 8, 8, 3), 255, dtype=np.uint8)
    assert psnr(dark, light) == psnr(light, dark) == 0
    check_against_scikit_image(dark, light)
    check_against_scikit_image(light, dark.astype(float))


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1200])
def test_more_images_than_one_block(n):
    """Every image counts for itself, whichever chunk it is in."""
    a, b = random_images((n, 7, 8, 3), "bytes")
    for measure in (psnr, ssim, lambda x, y: ssim(x, y, luma=True)):
        whole = measure(a, b)
        assert whole.shape == (n,)
        assert_allclose(whole, [measure(x[None], y[None])[0] for x, y in zip(a, b)], rtol=1e-12)
    for place in {0, n // 2, n - 1} if n else ():
        check_against_scikit_image(a[place : place + 1], b[place : place + 1])


@kinds
def test_equal_images(dtype):
    a, _ = photographs(5, dtype)
    flat = np.full((2, 32, 32, 3), 7, dtype=a.dtype)
    for images in (a, flat, 0 * flat):
        assert_array_equal(psnr(images, images), np.inf)
        assert_allclose(ssim(images, images), 1, rtol=0, atol=1e-12)
        assert_allclose(ssim(images, images, luma=True), 1, rtol=0, atol=1e-12)


@given(seed=st.integers(0, 10**6))
def test_images_may_change_places_and_be_turned(seed):
    a, b = random_images((3, 9, 11, 3), "floats", seed)
    for measure in (psnr, ssim):
        value = measure(a, b)
        assert_allclose(measure(b, a), value, rtol=1e-9)
        assert_allclose(measure(a[:, ::-1], b[:, ::-1]), value, rtol=1e-9)
        assert_allclose(measure(a.swapaxes(1, 2), b.swapaxes(1, 2)), value, rtol=1e-9)
        assert_allclose(measure(a[..., ::-1], b[..., ::-1]), value, rtol=1e-9)
    assert np.all(ssim(a, b) <= 1)


def test_psnr_of_any_shape():
    a, b = random_images((4, 6), "floats")
    expected = [peak_signal_noise_ratio(x, y, data_range=255) for x, y in zip(a, b)]
    assert_allclose(psnr(a, b), expected, rtol=1e-12)
    assert_allclose(psnr(a.tolist(), b.tolist()), expected, rtol=1e-12)


@pytest.mark.parametrize("measure", [psnr, ssim])
@pytest.mark.parametrize("shapes", [((2, 8, 8, 3), (2, 8, 8, 1)), ((2, 8, 8, 3), (3, 8, 8, 3)), ((5,), (5,)), ((), ())])
def test_images_of_different_shapes_are_refused(measure, shapes):
    with pytest.raises(ValueError, match=r"^`images` and `others` must have the same shape \(n, \.\.\.\), got \("):
        measure(*map(np.zeros, shapes))


@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 6, 8, 3), (2, 8, 6, 3), (1, 2, 8, 8, 3), (4, 9)])
def test_images_without_windows_are_refused(shape):
    message = r"^`images` must have shape \(n, height, width, channels\) with sides of at least 7, got \("
    with pytest.raises(ValueError, match=message):
        ssim(np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_brightness_is_of_three_colours(channels):
    images = np.zeros((2, 8, 8, channels))
    with pytest.raises(ValueError, match=rf"^`images` must have 3 channels with luma=True, got {channels}\.$"):
        ssim(images, images, luma=True)
