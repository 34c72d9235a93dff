"""Data of the paper's experiments."""

from hyperelm.datasets.cifar10 import load_cifar10
from hyperelm.datasets.lorenz import lorenz
from hyperelm.datasets.patches import sample_patches
from hyperelm.datasets.windows import sliding_windows

__all__ = ["load_cifar10", "lorenz", "sample_patches", "sliding_windows"]
