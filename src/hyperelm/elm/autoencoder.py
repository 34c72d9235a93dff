"""The ELM as an auto-encoder: the targets are the inputs (section 5.3 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hyperelm._validation import FloatArray
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.base import BaseELM, Weights, random_generator
from hyperelm.elm.layout import Layout
from hyperelm.elm.principal import is_star_closed, principal_components
from hyperelm.products import from_real, right_operator, to_real
from hyperelm.solvers import Gram
from hyperelm.solvers.sums import chunk_rows, row_blocks
from hyperelm.solvers.team import team

ENCODERS = ("random", "orthogonal", "pca")


class ELMAutoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseELM):
    """Extreme learning machine as an auto-encoder over a hypercomplex algebra.

    A random or principal encoder, and a decoder fitted by least squares to give back the input.

    Parameters
    ----------
    algebra : str or Algebra, default="quaternions"
        A name of `hyperelm.algebras` or an `Algebra`; "real" gives the classical network.
    n_hidden : int, default=100
        The number of hypercomplex neurons.
    activation : str or callable, default="auto"
        "auto" is tanh, and the identity for principal components; or "tanh", "sigmoid", "relu", "leaky_relu",
        "sine", "gaussian", "identity", "hard_tanh", "softsign", or a function of arrays; applied to each component.
    weight_scale : "auto", "paper" or float, default="auto"
        Standard deviation of the random weights. "auto" divides by the root mean square norm of the input rows, so
        that results do not depend on the unit of the data; "paper" is 10/D for D inputs.
    bias : bool, default=True
        An extra input and an extra hidden number 1; the bias of the output is not penalised by ridge.
    packing : {"full", "imaginary", "real"}, default="full"
        How columns of a table become numbers: d of them, d - 1 in the imaginary parts, or one in the real part.
    ridge : float or "gcv", default="gcv"
        The penalty on the output weights, or its choice by generalised cross-validation. The paper uses 0.
    solver : {"auto", "gram", "qr", "svd"}, default="auto"
        See `hyperelm.linalg.lstsq`.
    chunk_size : int, optional
        Rows of a block; by default as many as keep the working memory small.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        1 shows progress.
    encoder : {"random", "orthogonal", "pca"}, default="random"
        Random weights, as in the paper; random weights whose columns are orthonormal as real vectors; or the span of
        the leading principal components in the algebra, for associative algebras whose left multiplications are
        closed under transposition.

    Attributes
    ----------
    algebra_ : Algebra
    hidden_weights_ : array of shape (D + bias, n_hidden, d)
    output_weights_ : array of shape (n_hidden + bias, N, d)
        The row of the bias is the last in both.
    n_parameters_ : int
        All real numbers in both, the TNP of the paper.
    rank_, condition_ : int, float
        Of the real matrix of the hidden layer, Φ_L(H).
    ridge_, weight_scale_ : float
        The values that were used.
    solver_ : {"gram", "qr", "svd"}
        What "auto" came to.
    n_samples_seen_ : int
        Rows that the output layer was fitted to.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hyperelm import ELMAutoencoder
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = ELMAutoencoder("klein4", n_hidden=8, encoder="pca").fit(X)
    >>> model.transform(X).shape, model.reconstruct(X).shape
    ((1797, 32), (1797, 64))
    >>> bool(model.score(X) > 0.8)
    True
    """

    def __init__(
        self,
        algebra: str | Algebra = "quaternions",
        n_hidden: int = 100,
        *,
        encoder: str = "random",
        activation: str | Activation = "auto",
        weight_scale: str | float = "auto",
        bias: bool = True,
        packing: str = "full",
        ridge: float | str = "gcv",
        solver: str = "auto",
        chunk_size: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            algebra,
            n_hidden,
            activation=activation,
            weight_scale=weight_scale,
            bias=bias,
            packing=packing,
            ridge=ridge,
            solver=solver,
            chunk_size=chunk_size,
            random_state=random_state,
            verbose=verbose,
        )
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMAutoencoder:
        """Fit the auto-encoder.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        y : ignored
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        self._fit(X, X, self._check_weight(sample_weight, X), Layout.of(X, self.algebra_, self.packing))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMAutoencoder:
        """Go on with more rows. The first call fixes the encoder and its scale."""
        first = not self.__sklearn_is_fitted__()
        if first:
            self._check_parameters()
        if self.encoder == "pca":
            raise ValueError(
                "`encoder` must not be 'pca' for partial_fit: the components need all rows before the decoder sees "
                "the first. Use fit, or encoder='random'."
            )
        X = self._check_X(X, reset=first)
        self._continue(X, X, self._check_weight(sample_weight, X), Layout.of(X, self.algebra_, self.packing))
        return self

    def transform(self, X: Any) -> FloatArray:
        """The codes, (n, n_hidden * d), or (n, n_hidden, d) for input of three axes."""
        X = self._checked_for_prediction(X)
        codes = np.empty((len(X), self._encoder.shape[1]), dtype=self._encoder.dtype)
        for rows in row_blocks(len(X), self.chunk_size or 4096):
            codes[rows] = self._codes(X[rows])
        return codes if self._input.ndim == 2 else codes.reshape(len(X), *self.hidden_weights_.shape[1:])

    def inverse_transform(self, X: Any) -> FloatArray:
        """The decoder: from codes to the form of the input."""
        check_is_fitted(self)
        codes = check_array(X, dtype=self._decoder.dtype, allow_nd=True, input_name="X", estimator=self)
        codes = codes.reshape(len(codes), -1)
        if codes.shape[1] != self._n_features_out:
            raise ValueError(f"X must have {self._n_features_out} columns of codes, got {codes.shape[1]}.")
        return self._decode(codes).reshape(self._input.shape(len(codes)))

    def reconstruct(self, X: Any) -> FloatArray:
        """What the decoder makes of the codes of X."""
        X = self._checked_for_prediction(X)
        return self._outputs(X).reshape(self._input.shape(len(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance of X that the reconstruction explains, R²."""
        X = self._checked_for_prediction(X)
        flat = np.asarray(X).reshape(len(X), -1)
        weighting = "variance_weighted"
        return float(r2_score(flat, self._outputs(X), sample_weight=sample_weight, multioutput=weighting))

    @property
    def _n_features_out(self) -> int:
        return self._encoder.shape[1]

    def _activation_name(self) -> str | Activation:
        if not (isinstance(self.activation, str) and self.activation == "auto"):
            return self.activation
        return "identity" if self.encoder == "pca" else "tanh"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.encoder not in ENCODERS:
            raise ValueError(f"`encoder` must be one of {', '.join(map(repr, ENCODERS))}, got {self.encoder!r}.")
        if self.encoder == "pca" and not is_star_closed(self.algebra_):
            raise ValueError(
                f"`encoder` must not be 'pca' for {self.algebra_.name or 'this algebra'}: principal components need an "
                "associative algebra whose left multiplications are closed under transposition. Use 'orthogonal'."
            )

    def _draw(self, X: NDArray[Any], weight: Weights, dtype: np.dtype[Any]) -> None:
        if self.encoder == "pca":
            self._draw_principal(X, weight, dtype)
            return
        super()._draw(X, weight, dtype)
        if self.encoder == "orthogonal":
            D = self._input.features
            W = to_real(self.hidden_weights_[:D])
            # Orthonormal columns, of the length that random ones have; rows where there are more columns.
            Q = linalg.qr(W if W.shape[0] >= W.shape[1] else W.T, mode="economic")[0]
            Q = Q if W.shape[0] >= W.shape[1] else Q.T
            Q *= dtype.type(self.weight_scale_ * np.sqrt(max(W.shape)))
            self.hidden_weights_[:D] = from_real(Q, self.algebra_)

    def _draw_principal(self, X: NDArray[Any], weight: Weights, dtype: np.dtype[Any]) -> None:
        D = self._input.features
        if self.n_hidden > D:
            raise ValueError(f"`n_hidden` must be at most the {D} inputs with encoder='pca', got {self.n_hidden}.")
        state = Gram(self.algebra_, D + bool(self.bias), 0, dtype)
        size = self.chunk_size or chunk_rows(self.algebra_, D, D, 0, dtype.itemsize)
        with team(float(len(X)) * D * D * self.algebra_.dim**2) as crew:
            for rows in row_blocks(len(X), size):
                x = self._input.pack(X[rows], dtype)
                if self.bias:
                    one = np.zeros((len(x), 1, self.algebra_.dim), dtype=dtype)
                    one[..., 0] = 1
                    x = np.concatenate([x, one], axis=1)
                nothing = np.empty((len(x), 0, self.algebra_.dim), dtype=dtype)
                state.update(x, nothing, None if weight is None else weight[rows], team=crew)
        rng = random_generator(self.random_state)
        W = principal_components(state, self.n_hidden, [D] if self.bias else [], rng)
        self.weight_scale_ = 1.0 if isinstance(self.weight_scale, str) else float(self.weight_scale)
        W *= dtype.type(self.weight_scale_)
        if self.bias:
            # Codes of centred rows: the bias takes off the code of the mean.
            mean = _mean(X, weight, self._input, dtype)
            code = (mean.reshape(1, -1) @ right_operator(W, self.algebra_)).reshape(1, self.n_hidden, -1)
            W = np.concatenate([W, -code])
        self.hidden_weights_ = W


def _mean(X: NDArray[Any], weight: Weights, layout: Layout, dtype: np.dtype[Any]) -> FloatArray:
    """The mean of the rows as numbers, (D, d)."""
    columns = np.zeros(layout.columns)
    total = 0.0
    for rows in row_blocks(len(X), 4096):
        block = np.asarray(X[rows], dtype=np.float64).reshape(-1, layout.columns)
        w = np.ones(len(block)) if weight is None else weight[rows]
        columns, total = columns + w @ block, total + float(w.sum())
    return layout.pack((columns / total)[None], dtype)[0]
