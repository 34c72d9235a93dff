"""Hypercomplex linear algebra: the public face of `products` and `solvers`."""

from hyperelm.products import from_real, left_matrix, matmul, norm, right_matrix, to_real

__all__ = ["from_real", "left_matrix", "matmul", "norm", "right_matrix", "to_real"]
