"""The hidden layer h = f(xW), equation 24 of the paper, and what else feeds the output layer, on blocks of rows.

W has D rows of L numbers, and a last row more for the bias, whose input is the number e of `bias`; f is applied to
each component. The output layer sees [h, x, e]: x only with a direct link, e only with a bias.

In training, large layers take the products of planes of a bilinear scheme, which are fewer; small ones take the one
real product with Φ_R(W)ᵀ that prediction takes, too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hyperelm._arrays import beside, concatenated, is_elsewhere, namespace, place_of, zeros
from hyperelm._validation import FloatArray
from hyperelm.activations import Activation, apply
from hyperelm.algebra import Algebra
from hyperelm.bilinear import Scheme, is_worth_searching, scheme
from hyperelm.elm.bias import bias_number, times_bias
from hyperelm.planes import is_identity, planes, scheme_product
from hyperelm.products import right_operator
from hyperelm.solvers.sums import Planes, cached_rows, known_planes, row_blocks, sum_products
from hyperelm.solvers.team import Team, cuts, pieces


class HiddenLayer:
    """What the output layer sees of an input.

    Parameters
    ----------
    weights : array of shape (D + bias, L, d)
        With a bias its row is the last.
    bias, direct_link : bool
    activation : callable
    algebra : Algebra
    """

    def __init__(
        self, weights: FloatArray, bias: bool, direct_link: bool, activation: Activation, algebra: Algebra
    ) -> None:
        self.algebra, self.activation, self.direct_link = algebra, activation, direct_link
        self.weights = weights[:-1, ...] if bias else weights
        self.bias = times_bias(weights[-1, ...], algebra) if bias else None
        D, self.neurons, _ = self.weights.shape
        self.width = self.neurons + (D if direct_link else 0) + (1 if bias else 0)
        self._search = is_worth_searching(D, self.neurons)

    def __call__(self, X: FloatArray, team: Team) -> tuple[FloatArray, Planes | None]:
        """[h, x, e], (m, width, d), of X, (m, D, d), and the planes of X where they are formed.

        Both in memory of the team that the next call overwrites, or where X lives, to which the weights are moved.
        """
        if is_elsewhere(X):
            return self._elsewhere(X, team)
        d, rows, formed = self.algebra.dim, len(X), None
        if self._search:
            by_neuron = team.array("H", (d, self.width, rows), X.dtype)
            formed = self._by_scheme(X, by_neuron[:, : self.neurons], team)
            H = by_neuron.swapaxes(1, 2)
        else:
            H = team.array("H", (d, rows, self.width), X.dtype)
            self._by_operator(X, H[:, :, : self.neurons], team)
        if self.direct_link:
            H[:, :, self.neurons : self.neurons + X.shape[1]] = np.moveaxis(X, -1, 0)
        if self.bias is not None:
            H[:, :, -1] = bias_number(self.algebra)[:, None]
        return np.moveaxis(H, 0, -1), formed

    def _elsewhere(self, X: Any, team: Team) -> tuple[Any, Planes | None]:
        """By planes, as in `_by_scheme`, in the namespace of X."""
        xp, d, rows = namespace(X=X), self.algebra.dim, X.shape[0]
        search = self._search
        known = known_planes(X, lambda support: scheme(self.algebra, support, search=search).left, "wide", team)
        products = scheme(self.algebra, known.support, search=search)
        weights = team.once((self, known.support, place_of(X)), lambda: planes(beside(self.weights, X), products.right))
        y = scheme_product(known.image, weights, products)
        h = xp.reshape(
            beside(products.out, X) @ xp.reshape(y, (y.shape[0], rows * self.neurons)), (d, rows, self.neurons)
        )
        if self.bias is not None:
            h = h + beside(self.bias.T, X)[:, None, :]
        parts = [apply(self.activation, h)]
        if self.direct_link:
            parts.append(xp.moveaxis(X, -1, 0))
        if self.bias is not None:
            parts.append(zeros((d, rows, 1), X) + beside(bias_number(self.algebra), X)[:, None, None])
        return xp.moveaxis(concatenated(parts, axis=2), 0, -1), known if search else None

    def _by_operator(self, X: FloatArray, H: FloatArray, team: Team) -> None:
        h = X.reshape(len(X), -1) @ team.once(self, lambda: right_operator(self.weights, self.algebra))
        if self.bias is not None:
            h += self.bias.ravel()
        H[...] = np.moveaxis(apply(self.activation, h).reshape(len(X), self.neurons, -1), -1, 0)

    def _by_scheme(self, X: FloatArray, H: FloatArray, team: Team) -> Planes:
        """Planes of X, their products with those of W, and back to components.

        H is (d, L, m): what a neuron has to say of all rows lies together, which is how a BLAS wants the left factor
        of HᵀT and HᵀH: these are 4 and 8 % faster than with a transposed one, which it has to rearrange.
        """
        known = known_planes(X, lambda support: scheme(self.algebra, support).left, "wide", team)
        products = scheme(self.algebra, known.support)
        weights = team.once((self, known.support), lambda: self._planes_of_weights(products, known.support, team))
        # Planes of the product that are its components need no memory of their own.
        y = H if is_identity(products.out) else team.array("narrow", (products.out.shape[1], *H.shape[1:]), X.dtype)
        tasks = []
        sums = products.by_out()
        for s in set(range(len(y))) - set(sums):
            y[s] = 0
        longest_first = sorted(sums.items(), key=lambda summed: len(summed[1]), reverse=True)
        for (s, terms), cut in zip(longest_first, cuts(len(sums), team.threads)):
            for neurons in pieces(self.neurons, cut):
                factors = [(weights[q, neurons], known.image[p].T, c) for p, q, c in terms]
                tasks.append(partial(sum_products, factors, y[s, neurons], team, fresh=True))
        team.run(tasks)
        finish = partial(self._finish, products.out.astype(X.dtype), y, H, team)
        team.run([partial(finish, at) for at in row_blocks(self.neurons, cached_rows(len(X), products.out))])
        return known

    def _planes_of_weights(self, products: Scheme, support: tuple[int, ...], team: Team) -> FloatArray:
        """(q, L, D), neuron by neuron as well."""
        by_neuron, right = self.weights.swapaxes(0, 1), products.right
        image = team.array(f"weights by {support}", (right.shape[1], *by_neuron.shape[:2]), by_neuron.dtype)
        some = row_blocks(self.neurons, cached_rows(len(self.weights), right))
        team.run([partial(planes, by_neuron[at], right, out=image[:, at]) for at in some])
        return image

    def _finish(self, out: FloatArray, y: FloatArray, H: FloatArray, team: Team, neurons: slice) -> None:
        """From planes to components, bias and activation of some neurons."""
        y, H = y[:, neurons], H[:, neurons]
        h = H
        if not is_identity(out):
            h = team.array("finish", H.shape, H.dtype, of_thread=True)
            np.matmul(out, y.reshape(len(y), -1), out=h.reshape(len(h), -1))
        if self.bias is not None:
            h += self.bias[neurons].T[:, :, None]
        activated = apply(self.activation, h)
        if activated is not H:
            H[...] = activated
