"""Hypercomplex linear algebra: matrices, products and least squares over an algebra."""

from hyperelm._linalg.products import from_real, left_matrix, matmul, norm, right_matrix, to_real
from hyperelm._solvers.lstsq import LstsqResult, lstsq

__all__ = ["LstsqResult", "from_real", "left_matrix", "lstsq", "matmul", "norm", "right_matrix", "to_real"]
