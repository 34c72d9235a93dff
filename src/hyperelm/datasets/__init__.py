"""Data of the paper's experiments."""

from hyperelm.datasets._cifar10 import load_cifar10
from hyperelm.datasets._patches import sample_patches
from hyperelm.datasets._series import lorenz, sliding_windows

__all__ = ["load_cifar10", "lorenz", "sample_patches", "sliding_windows"]
