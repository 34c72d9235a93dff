"""Hypercomplex linear algebra: the public face of `products` and `solvers`."""

from hyperelm.products import from_real, left_matrix, matmul, norm, right_matrix, to_real
from hyperelm.solvers import LstsqResult, lstsq

__all__ = ["LstsqResult", "from_real", "left_matrix", "lstsq", "matmul", "norm", "right_matrix", "to_real"]
