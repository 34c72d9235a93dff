"""Patches of the two photographs that come with scikit-learn, for image experiments without a download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_PHOTOGRAPHS = ("china.jpg", "flower.jpg")
_TRAIN = 0.6  # the share of the width of a photograph, from the left, for training patches


def sample_patches(
    n: int = 2000, *, split: str = "train", size: int = 32, random_state: int | None = 0
) -> NDArray[np.uint8]:
    """Cut square patches at random places of two photographs.

    Parameters
    ----------
    n : int
        The number of patches. Half of them come from each photograph, in random order.
    split : {"train", "test"}
        Training patches lie in the left part of a photograph and test patches in the right part, so they share no
        pixel.
    size : int
        The side of a patch in pixels.
    random_state : int or None
        The seed. None draws other patches every time.

    Returns
    -------
    array of shape (n, size, size, 3), of bytes

    Examples
    --------
    >>> from hyperelm.datasets import sample_patches
    >>> sample_patches(10, size=8).shape
    (10, 8, 8, 3)
    """
    from sklearn.datasets import load_sample_image  # takes time, and few programs need it

    if split not in ("train", "test"):
        raise ValueError(f"`split` must be 'train' or 'test', got {split!r}.")
    if n < 1:
        raise ValueError(f"`n` must be at least 1, got {n}.")
    rng = np.random.default_rng(None if random_state is None else [0 if split == "train" else 1, random_state])
    patches = []
    for count, name in zip((n - n // 2, n // 2), _PHOTOGRAPHS):
        photograph = load_sample_image(name)
        border = int(_TRAIN * photograph.shape[1])
        area = photograph[:, :border] if split == "train" else photograph[:, border:]
        if not 1 <= size <= min(area.shape[:2]):
            raise ValueError(f"`size` must be between 1 and {min(area.shape[:2])}, got {size}.")
        places = np.lib.stride_tricks.sliding_window_view(area, (size, size), axis=(0, 1))
        rows, columns = (rng.integers(places.shape[axis], size=count) for axis in (0, 1))
        patches.append(places[rows, columns].transpose(0, 2, 3, 1))
    return rng.permutation(np.concatenate(patches))
