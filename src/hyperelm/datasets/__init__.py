"""Data of the paper's experiments."""

from hyperelm.datasets.lorenz import lorenz
from hyperelm.datasets.windows import sliding_windows

__all__ = ["lorenz", "sliding_windows"]
