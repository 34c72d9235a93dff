"""The hidden layer h = f(xW), equation 24 of the paper, on blocks of rows.

W has D rows of L numbers, and a last row more for the bias, the input 1 + 0i₁ + …; f is applied to each component.
Two ways lead through it: one real product with Φ_R(W)ᵀ, built once, which is what prediction takes; and, for large
layers in training, the products of planes of a bilinear scheme, which are fewer.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hyperelm._validation import FloatArray
from hyperelm.activations import Activation, apply
from hyperelm.algebra import Algebra
from hyperelm.bilinear import is_worth_searching, scheme
from hyperelm.products import is_identity, planes, right_operator
from hyperelm.solvers.sums import nonzero_components, row_blocks, sum_products, team_planes
from hyperelm.solvers.team import Team, pieces

_ROWS = 32  # rows that go back to components and through the activation at a time, in cache


class HiddenLayer:
    """f(xW) for given weights.

    Parameters
    ----------
    weights : array of shape (D + bias, L, d)
    bias : bool
        Whether the last row of the weights is that of the bias.
    activation : callable
    algebra : Algebra
    """

    def __init__(self, weights: FloatArray, bias: bool, activation: Activation, algebra: Algebra) -> None:
        self.algebra, self.activation = algebra, activation
        self.weights = weights[:-1] if bias else weights
        self.bias = weights[-1] if bias else None

    def operator(self) -> FloatArray:
        """Φ_R(W)ᵀ, (D d, L d): rows and columns run as the components of x and of xW do."""
        return right_operator(self.weights, self.algebra)

    def predict(self, X: FloatArray, operator: FloatArray) -> FloatArray:
        """H, (m, L, d), of X, (m, D, d), by one real product."""
        D, L, d = self.weights.shape
        H = X.reshape(len(X), D * d) @ operator
        if self.bias is not None:
            H += self.bias.ravel()
        return apply(self.activation, H).reshape(len(X), L, d)


class Forward:
    """The hidden layer of one row block after another, in training."""

    def __init__(self, layer: HiddenLayer) -> None:
        self.layer = layer
        D, L, _ = layer.weights.shape
        self._search = is_worth_searching(D, L)
        # Planes of the weights by the components of X that are not zero.
        self._weights: dict[tuple[int, ...], FloatArray] = {}
        self._operator: FloatArray | None = None

    def __call__(self, X: FloatArray, team: Team) -> FloatArray:
        """H, (m, L, d), of X, (m, D, d), in memory of the team that the next call overwrites."""
        if self._search:
            return self._by_scheme(X, team)
        if self._operator is None:
            self._operator = self.layer.operator()
        return self.layer.predict(X, self._operator)

    def _by_scheme(self, X: FloatArray, team: Team) -> FloatArray:
        """Planes of X, their products with those of W, back to components, bias and activation."""
        layer, support = self.layer, nonzero_components(X)
        products = scheme(layer.algebra, support, None)
        if support not in self._weights:
            self._weights[support] = planes(layer.weights, products.right)
        weights = self._weights[support]
        x = team_planes(X, products.left, "wide", team)
        H = team.array("H", (layer.algebra.dim, len(X), layer.weights.shape[1]), X.dtype)
        direct = is_identity(products.out)
        y = H if direct else team.array("narrow", (products.out.shape[1], *H.shape[1:]), X.dtype)
        tasks = []
        for s, terms in products.by_out().items():
            for rows in pieces(len(X), 4):
                factors = [(x[p, rows], weights[q], c) for p, q, c in terms]
                tasks.append(partial(sum_products, factors, y[s, rows], team, fresh=True))
        team.run(tasks)
        finish = partial(self._finish, None if direct else products.out)
        team.run([partial(finish, y[:, rows], H[:, rows]) for rows in row_blocks(len(X), _ROWS)])
        return np.moveaxis(H, 0, -1)

    def _finish(self, out: FloatArray | None, y: FloatArray, H: FloatArray) -> None:
        """From planes to components, bias and activation, a few rows at a time and so in cache."""
        if out is not None:
            np.matmul(out.astype(y.dtype), y.reshape(len(y), -1), out=H.reshape(len(H), -1))
        if self.layer.bias is not None:
            H += self.layer.bias.T[:, None, :]
        activated = apply(self.layer.activation, H)
        if activated is not H:
            H[...] = activated
