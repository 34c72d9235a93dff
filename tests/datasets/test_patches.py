"""Patches of the sample photographs, found again in them by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_sample_image

from hyperelm.datasets import sample_patches

PHOTOGRAPHS = ("china.jpg", "flower.jpg")


def colours(image):
    """One number a pixel."""
    return image @ np.array([1, 256, 256**2])


def places(patch, photograph):
    """All (row, column) where a patch lies in a photograph, both as colours."""
    size = len(patch)
    corners = np.argwhere(photograph[: 1 - size, : 1 - size] == patch[0, 0])
    return [(r, c) for r, c in corners if np.array_equal(photograph[r : r + size, c : c + size], patch)]


@pytest.fixture(scope="module")
def found():
    """Of either split, where the first patches lie: (photograph, row, column), the only place of each."""
    photographs = [colours(load_sample_image(name)) for name in PHOTOGRAPHS]
    by_split = {}
    for split in ("train", "test"):
        by_split[split] = []
        for patch in colours(sample_patches(60, split=split)):
            hits = [(n, r, c) for n, photograph in enumerate(photographs) for r, c in places(patch, photograph)]
            assert len(hits) == 1
            by_split[split] += hits
    return by_split


def test_patches_are_of_both_photographs(found):
    for hits in found.values():
        assert [sum(n == k for n, _, _ in hits) for k in (0, 1)] == [30, 30]
        assert len({n for n, _, _ in hits[:10]}) == 2  # and not one after the other


def test_train_and_test_share_no_pixel(found):
    covered = {split: np.zeros((2, *load_sample_image("china.jpg").shape[:2]), dtype=bool) for split in found}
    for split, hits in found.items():
        for n, r, c in hits:
            covered[split][n, r : r + 32, c : c + 32] = True
    assert covered["train"].any(axis=(1, 2)).all()
    assert not np.any(covered["train"] & covered["test"])
    # A border between them, not chance: all columns of the one are left of all columns of the other.
    columns = {split: np.flatnonzero(pixels.any(axis=(0, 1))) for split, pixels in covered.items()}
    assert columns["train"].max() < columns["test"].min()


def test_patches_are_spread_over_their_area(found):
    for hits in found.values():
        rows, columns = np.array([hit[1:] for hit in hits]).T
        assert np.ptp(rows) > 300
        assert np.ptp(columns) > 150


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 8, 32])
@pytest.mark.parametrize("split", ["train", "test"])
def test_shapes(n, size, split):
    patches = sample_patches(n, split=split, size=size)
    assert patches.shape == (n, size, size, 3)
    assert patches.dtype == np.uint8


def test_defaults():
    patches = sample_patches()
    assert patches.shape == (2000, 32, 32, 3)
    assert_array_equal(patches, sample_patches(2000, split="train", size=32, random_state=0))


def test_reproducible():
    draws = [sample_patches(20, random_state=seed) for seed in (1, 1, 2)]
    assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert not np.array_equal(draws[0], sample_patches(20, split="test", random_state=1))
    fresh = [sample_patches(20, random_state=None) for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_the_largest_size():
    height, width, _ = load_sample_image("china.jpg").shape
    for split, side in (("train", min(height, int(0.6 * width))), ("test", min(height, width - int(0.6 * width)))):
        assert sample_patches(2, split=split, size=side).shape == (2, side, side, 3)
        with pytest.raises(ValueError, match=rf"^`size` must be between 1 and {side}, got {side + 1}\.$"):
            sample_patches(2, split=split, size=side + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "validation"}, "`split` must be 'train' or 'test', got 'validation'"),
        ({"n": 0}, "`n` must be at least 1, got 0"),
        ({"n": -1}, "`n` must be at least 1, got -1"),
        ({"size": 0}, "`size` must be between 1 and 384, got 0"),
        ({"size": -32}, "`size` must be between 1 and 384, got -32"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=rf"^{message}\.$"):
        sample_patches(**arguments)
