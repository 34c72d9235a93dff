"""Hypercomplex least squares from row blocks.

Three objects stand between rows and weights: the block basis of the algebra (`products.block_basis`), which splits
the problem isometrically into small independent ones; an accumulator (`Gram` or `QR`), whose state summarises the
rows seen and does not grow with them; and `solve`, which works on that state alone.
"""

from hyperelm.solvers.choice import LstsqResult, lstsq
from hyperelm.solvers.gram import Gram
from hyperelm.solvers.loo import leave_one_out
from hyperelm.solvers.qr import QR
from hyperelm.solvers.solve import Solution, solve
from hyperelm.solvers.svd import AllRows, svd

__all__ = ["QR", "AllRows", "Gram", "LstsqResult", "Solution", "leave_one_out", "lstsq", "solve", "svd"]
