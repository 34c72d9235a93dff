"""The two layers of a network, as training sees them (equations 24 and 25 of the paper).

The hidden layer is h = f([x, e] W). W has D rows of L numbers, and with a bias one more row, whose input is the number
e; f is applied to each component. The output layer sees [h, x, e]: x only with a direct link, e only with a bias.

**The number e** is the identity of the algebra, so that a row w of weights adds e w = w. In an algebra without an
identity it is a number whose products e w reach most: Φ_L(e) has the largest rank that there is.

**Random weights** are normal in every component, with mean 0 and the given scale. An orthogonal encoder has orthonormal
columns instead (or rows, where there are fewer) as a real matrix φ(W), of the length that random ones have.

**Products.** Large layers take the products of planes of a bilinear scheme, which are fewer. Small ones take the one
real product with Φ_R(W)ᵀ that prediction takes, too.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.schemes import is_large_product, scheme
from hyperelm._backend import Beside, Terms, backend_of, limits
from hyperelm._backend.arrays import kept_beside
from hyperelm._lazy import lazy
from hyperelm._linalg.planes import Numbers
from hyperelm._linalg.products import from_real, right_operator, to_real
from hyperelm._network.activations import Function, apply
from hyperelm._validation import FloatArray, is_number

# Pre-activations of this root mean square lie in the bend of tanh, where a layer is neither linear nor saturated.
AUTO_SCALE = 0.5
# The bias of a neuron has twice that. On hundreds of real data sets a bias as large as the rest made networks over
# algebras worse. Without a bias the layer consists of odd functions, and it takes even ones to cancel the unused
# components of a target.
AUTO_BIAS = 1.0
_VANISHES = 1e-10  # singular values, relative to the largest


class HiddenLayer:
    """The numbers [h, x, e] that the output layer sees of an input x.

    Parameters
    ----------
    weights : array of shape (D + bias, L, d)
        With a bias its row is the last.
    bias, direct_link : bool
    activation : Activation or callable
    algebra : Algebra
    """

    def __init__(
        self, weights: FloatArray, bias: bool, direct_link: bool, activation: Function, algebra: Algebra
    ) -> None:
        self.algebra, self.direct_link = algebra, direct_link
        self.weights = weights[:-1, ...] if bias else weights
        self.bias = times_bias(weights[-1, ...], algebra) if bias else None
        self._activate = partial(apply, activation)
        D, self.neurons, _ = self.weights.shape
        self.width = self.neurons + (D if direct_link else 0) + (1 if bias else 0)
        self._by_scheme = is_large_product(D, self.neurons)

    def _by_component(self) -> FloatArray:
        """Φ_R(W)ᵀ as one matrix for each component of the product, (d, D d, L)."""
        operator = right_operator(self.weights, self.algebra)
        by_number = operator.reshape(len(operator), self.neurons, self.algebra.dim)
        return np.ascontiguousarray(np.moveaxis(by_number, -1, 0))

    def __call__(self, x: Numbers) -> FloatArray:
        """[h, x, e], (m, width, d), of inputs (m, D, d), in scratch memory that the next call overwrites."""
        backend = backend_of(x.array)
        constant = None if self.bias is None else bias_number(self.algebra)
        beside = Beside(x.array if self.direct_link else None, constant)
        if not self._by_scheme:
            operator = backend.kept(self, lambda: kept_beside(self._by_component(), x.array))
            return backend.hidden_by_operator(x.array, operator, self.bias, self._activate, beside)
        image = x.planes_by_support(lambda support: scheme(self.algebra, support).left)
        products = scheme(self.algebra, x.support)
        weights = backend.weight_planes(self.weights, products.right, (self, x.support), x.array)
        by_out = products.by_out()
        terms = Terms([by_out.get(s, []) for s in range(products.out.shape[1])], products.out)
        return backend.hidden_by_terms(image, weights, terms, self.bias, self._activate, beside)


# ---------------------------------------------------------------------- random weights


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


def check_weight_scale(scale: Any) -> None:
    known = isinstance(scale, str) and (scale == "paper" or times_auto(scale) is not None)
    if not known and not (is_number(scale) and scale > 0):
        raise ValueError(
            f"`weight_scale` must be 'auto', a multiple of it as '0.1 auto', 'paper' or a number > 0, got {scale!r}."
        )


def scales_of(weight_scale: str | float, features: int, norm: float) -> tuple[float, float]:
    """The scales of the weights and of the bias for so many features of rows whose root mean square norm is `norm`."""
    if weight_scale == "paper":
        return 10 / features, 10 / features
    times = times_auto(weight_scale)
    if times is None:
        return float(weight_scale), float(weight_scale)
    scale = times * AUTO_SCALE / (norm if norm > 0 else 1.0)
    if not math.isfinite(scale):
        must = f"have rows of a size above {limits.SMALLEST:g} for weight_scale={weight_scale!r}"
        raise limits.refused("X", must, f"{norm:g}", "Divide `X` by its size, or give a number.")
    # The input of the bias is 1 in any unit of the data, so its scale does not follow the data.
    return scale, times * AUTO_BIAS


def times_auto(scale: Any) -> float | None:
    """1 for "auto", 0.1 for "0.1 auto", None for a scale that does not follow the data."""
    if not isinstance(scale, str) or not scale.endswith("auto"):
        return None
    try:
        times = float(scale.removesuffix("auto") or 1)
    except ValueError:
        return None
    return times if 0 < times < np.inf else None


# ---------------------------------------------------------------------- the bias


@lru_cache(maxsize=1024)
def bias_number(algebra: Algebra) -> NDArray[np.float64]:
    """e, (d,): the identity, or a number whose products reach as much as those of any number can."""
    e = algebra.identity
    if e is None:
        e = _reaching_most(algebra)
        e.setflags(write=False)
    return e


def times_bias(weights: FloatArray, algebra: Algebra) -> FloatArray:
    """e w for weights w, (..., d)."""
    left = np.tensordot(bias_number(algebra), algebra.table, axes=1)  # (e w)_k = Σ_j w_j left[j, k]
    product: FloatArray = weights @ left.astype(weights.dtype)
    return product


def bias_weights(products: FloatArray, algebra: Algebra) -> FloatArray:
    """The weights w of least norm whose e w are nearest to these, (..., d)."""
    left = np.tensordot(bias_number(algebra), algebra.table, axes=1)
    weights: FloatArray = products @ np.linalg.pinv(left).astype(products.dtype)
    return weights


def _reaching_most(algebra: Algebra) -> NDArray[np.float64]:
    """Of some numbers the one with Φ_L(e) of the largest rank, and among these of the best condition; ‖Φ_L(e)‖ = 1.

    Tried are the number nearest to an identity from the left, which is one where there is any, the units, and a random
    number: almost all numbers have the largest rank.
    """
    d, left = algebra.dim, algebra.table.reshape(algebra.dim, -1)
    nearest = np.linalg.lstsq(left.T, np.eye(d).ravel(), rcond=None)[0]
    if np.linalg.norm(nearest @ left) < _VANISHES:  # what is left of zero is rounding
        nearest = np.zeros(d)
    best, reach = np.eye(d)[0], (0, 0.0)
    for e in (nearest, *np.eye(d), np.random.default_rng(0).standard_normal(d)):
        sigma = np.linalg.svd((e @ left).reshape(d, d), compute_uv=False)
        rank = int(np.sum(sigma > _VANISHES * sigma[0]))
        # Equal conditions differ by rounding, and then the first is taken.
        if rank and (rank, round(sigma[rank - 1] / sigma[0], 6)) > reach:
            best, reach = e / sigma[0], (rank, round(sigma[rank - 1] / sigma[0], 6))
    return best
