"""How the output layer multiplies: y_nk = Σ_l Σ_ij h_li m_lnj table[i, j, k], with a table of shape (d, r, d).

- "algebra": the table of the network's algebra, r = d (equation 25 of the paper).
- "learned": a table that fits the data (`_algebra.learning`), r = d. There are as many weights, and the d³ numbers of
  the table.
- "free": r = d², and weight m_ik leads from component i to component k. That is a real matrix on all components, with d
  times as many weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.learning import LARGEST_LEARNED
from hyperelm._linalg.products import right_operator
from hyperelm._validation import FloatArray, check_choice

READOUTS = ("algebra", "learned", "free")


def check_readout(readout: Any, algebra: Algebra) -> None:
    check_choice(readout, READOUTS, "readout")
    if readout == "learned" and algebra.dim > LARGEST_LEARNED:
        raise ValueError(
            f"`readout` must not be 'learned' for an algebra of more than {LARGEST_LEARNED} components, got "
            f"{algebra.dim}: the table would have too many entries. Use 'algebra' or 'free'."
        )


@dataclass(frozen=True, eq=False)
class Readout:
    """The product of the output layer.

    name : one of `READOUTS`
    dim : d, the components of a number
    algebra : the algebra of the product; None for "free", which has none
    """

    name: str
    dim: int
    algebra: Algebra | None

    @property
    def size(self) -> int:
        """r, the numbers in a weight."""
        return self.dim**2 if self.algebra is None else self.dim

    @property
    def table(self) -> NDArray[np.float64]:
        """(d, r, d)."""
        d = self.dim
        return np.eye(d * d).reshape(d, d, d * d).transpose(0, 2, 1) if self.algebra is None else self.algebra.table

    @property
    def n_parameters(self) -> int:
        """The numbers of a table that was learned."""
        return self.dim**3 if self.name == "learned" else 0

    def idle(self, number: NDArray[np.float64]) -> int:
        """How many components of a weight a product with this number does not show.

        A learned table has no products in components that no target fills. So a weight of the bias, whose factor is
        always the same number, has more components than can matter.
        """
        if self.name != "learned":
            return 0
        return self.dim - int(np.linalg.matrix_rank(np.tensordot(number, self.table, axes=1), tol=1e-9))

    def operator(self, weights: FloatArray) -> FloatArray:
        """The real matrix of weights, (L, N, r) -> (L d, N d), so that y = h operator for rows of components."""
        if self.algebra is not None:
            return right_operator(weights, self.algebra)
        (L, N, _), d = weights.shape, self.dim
        return np.ascontiguousarray(weights.reshape(L, N, d, d).swapaxes(1, 2)).reshape(L * d, N * d)
