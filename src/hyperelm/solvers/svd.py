"""The reference: the paper's solution X = φ⁻¹(Φ_L(A)† φ(B)), all rows at once.

It builds Φ_L(A), d² times the size of A, and takes its singular value decomposition. Everything faster is measured
against it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hyperelm._validation import FloatArray
from hyperelm.algebra import Algebra
from hyperelm.products import left_matrix, to_real
from hyperelm.solvers.problem import Triangular
from hyperelm.solvers.rows import add_counts, check_rows, count_in, scaled


class SVD:
    """All the rows, kept as they came; the same questions as of an accumulator."""
