"""The weights of the hidden layer: random ones, and how they are drawn again elsewhere.

Every component is normal with mean 0 and the given scale. An orthogonal encoder has instead orthonormal columns (or
rows, where there are fewer) as a real matrix φ(W), of the length that random ones have.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from hyperelm._lazy import lazy
from hyperelm._validation import FloatArray, is_number
from hyperelm.algebra import Algebra
from hyperelm.products import from_real, to_real


class Encoder(Protocol):
    """Whatever has the weights of the hidden layer, (D + bias, L, d)."""

    @property
    def weights(self) -> FloatArray: ...


@dataclass(frozen=True)
class Drawn:
    """Random weights for D inputs and L neurons; `bias` is the scale of a last row, if there is one.

    Only what they are drawn from is pickled: that is a few hundred bytes instead of megabytes.
    """

    rng: np.random.Generator
    algebra: Algebra
    inputs: int
    neurons: int
    dtype: np.dtype[Any]
    scale: float
    bias: float | None
    orthogonal: bool = False

    @lazy
    def weights(self) -> FloatArray:
        D, L, d = self.inputs, self.neurons, self.algebra.dim
        shape = (D + (self.bias is not None), L, d)
        W: FloatArray = deepcopy(self.rng).standard_normal(shape, dtype=self.dtype)
        W[:D] *= self.dtype.type(self.scale)
        if self.bias is not None:
            W[D] *= self.dtype.type(self.bias)
        if self.orthogonal:
            W[:D] = from_real(self._orthogonal(to_real(W[:D])), self.algebra)
        return W

    def _orthogonal(self, W: FloatArray) -> FloatArray:
        wide = W.shape[0] < W.shape[1]
        Q = linalg.qr(W.T if wide else W, mode="economic")[0]
        Q *= self.dtype.type(self.scale * np.sqrt(max(W.shape)))
        return Q.T if wide else Q

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "weights"}


@dataclass(frozen=True)
class Given:
    """Weights that were found from the data."""

    weights: FloatArray


def random_generator(random_state: Any) -> np.random.Generator:
    """NumPy's generator for what scikit-learn calls a random state."""
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def check_weight_scale(scale: Any) -> None:
    known = isinstance(scale, str) and (scale == "paper" or times_auto(scale) is not None)
    if not known and not (is_number(scale) and scale > 0):
        raise ValueError(
            f"`weight_scale` must be 'auto', a multiple of it as '0.1 auto', 'paper' or a number > 0, got {scale!r}."
        )


def times_auto(scale: Any) -> float | None:
    """1 for "auto", 0.1 for "0.1 auto", None for a scale that does not follow the data."""
    if not isinstance(scale, str) or not scale.endswith("auto"):
        return None
    try:
        times = float(scale.removesuffix("auto") or 1)
    except ValueError:
        return None
    return times if 0 < times < np.inf else None
