"""The ELM as an auto-encoder: the targets are the inputs (section 5.3 of the paper)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import chunks
from hyperelm._backend.arrays import as_precision, beside, chunk_of, concatenated, namespace, to_numpy
from hyperelm._estimators.base import BaseELM
from hyperelm._estimators.checks import check_place, kept_types, random_generator
from hyperelm._network.activations import Function
from hyperelm._network.layers import Encoder, times_auto
from hyperelm._network.layout import Layout
from hyperelm._network.network import CHUNK
from hyperelm._training.passes import Seen
from hyperelm._training.principal import MomentPass, is_star_closed, principal_encoder
from hyperelm._training.rows import Source
from hyperelm._validation import FloatArray, check_choice

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
        "sine", "gaussian", "identity", "hard_tanh", "softsign", or a function of arrays, applied to each component;
        "modtanh" or "modrelu", applied to the modulus of a number.
    weight_scale : "auto", "paper" or float, default="auto"
        Standard deviation of the random weights. "auto" divides by the root mean square norm of the input rows, so
        that results do not depend on the unit of the data; "0.1 auto" is a tenth of that; "paper" is 10/D for D inputs.
        Principal components are multiplied by a number, by 0.1 for "0.1 auto", or left as they are.
    bias : bool, default=True
        An extra input and an extra hidden number 1; the bias of the output is not penalised by ridge.
    packing : {"full", "imaginary", "real"}, default="full"
        How columns become numbers: d of them, d - 1 in the imaginary parts, or one in the real part.
    readout : {"algebra", "learned", "free"}, default="algebra"
        How the output layer multiplies: in the algebra, as in the paper; by a table of the same size that is learned
        from the data, with as many weights; or by a real matrix on all components, with d times as many.
    ridge : float, "auto", "loo" or "gcv", default="auto"
        The penalty on the output weights. "loo" chooses it by exact leave-one-out errors, "gcv" by generalised
        cross-validation, "auto" by the first where rows can be read twice and else by the second. The paper uses 0.
    solver : {"auto", "gram", "qr", "svd"}, default="auto"
        See `hyperelm.linalg.lstsq`.
    chunk_size : int, optional
        Rows of a chunk; by default as many as keep the working memory small.
    half_life : float, optional
        For `partial_fit`: the number of further rows after which a row counts half. By default rows count for ever.
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
    output_weights_ : array of shape (n_hidden + bias, N, r)
        The row of the bias is the last in both. r is d, or d² for a free readout.
    readout_table_ : array of shape (d, r, d)
        The product of the output layer, Σ h_i m_j readout_table_[i, j, k].
    readout_algebra_ : Algebra or None
        The algebra with this table; None for a free readout.
    n_parameters_ : int
        All real numbers in both, the TNP of the paper, and those of a table that was learned.
    rank_, condition_ : int, float
        Of the real matrix of the hidden layer, Φ_L(H).
    ridge_, weight_scale_ : float
        The values that were used.
    loo_error_ : float or None
        The mean squared leave-one-out error of the ridge that was chosen; None where no row was left out. Of many rows
        it is estimated from a sample, and of more than 32 targets from 32 combinations of them.
    solver_ : {"gram", "qr", "svd"}
        What "auto" came to.
    n_samples_seen_ : int
        Rows that the output layer was fitted to.
    n_features_in_ : int
    network_ : Network
        Both layers, the layouts of input and output, the algebra and the activation, as one value.

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

    _tells_certainty = False

    def __init__(
        self,
        algebra: str | Algebra = "quaternions",
        n_hidden: int = 100,
        *,
        encoder: str = "random",
        activation: str | Function = "auto",
        weight_scale: str | float = "auto",
        bias: bool = True,
        packing: str = "full",
        readout: str = "algebra",
        ridge: float | str = "auto",
        solver: str = "auto",
        chunk_size: int | None = None,
        half_life: float | None = None,
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
            readout=readout,
            ridge=ridge,
            solver=solver,
            chunk_size=chunk_size,
            half_life=half_life,
            random_state=random_state,
            verbose=verbose,
        )
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMAutoencoder:
        """Fit the auto-encoder.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d), or iterable of chunks
            Memory maps, zarr and HDF5 arrays are read chunk by chunk. An iterable gives arrays X or tuples
            (X, y, sample_weight) of some rows each, y ignored; an iterator is read once, any other iterable again
            where that is needed.
        y : ignored
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        self._start_fit()
        self._fit(self._source(X, None, sample_weight))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMAutoencoder:
        """Go on with more rows. The first call fixes the encoder and its scale.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        if first:
            self._check_parameters()
        if self.encoder == "pca":
            raise ValueError(
                "`encoder` must not be 'pca' for partial_fit: the components need all rows before the decoder sees "
                "the first. Use fit, or encoder='random'."
            )
        self._continue(self._check_rows(X, None, sample_weight, reset=first))
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMAutoencoder:
        """Take rows out again that the output layer was fitted to, as if it had never seen them.

        The result is that of `fit` without them, with the hidden layer as it is. Sums are subtracted, which needs
        solver "gram", or "auto" where it came to it. It is refused where too little is left of them.

        Parameters
        ----------
        X, sample_weight : as they were given to `fit` or `partial_fit`
        y : ignored

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hyperelm import ELMAutoencoder
        >>> X = np.random.default_rng(0).standard_normal((200, 4))
        >>> model = ELMAutoencoder("klein4", 3, weight_scale=0.5, ridge=0.1, random_state=0)
        >>> model.fit(X).forget(X[:50]).n_samples_seen_
        150
        """
        check_is_fitted(self, "network_")
        self._forget(self._check_rows(X, None, sample_weight, reset=False))
        return self

    def transform(self, X: Any) -> FloatArray:
        """The codes.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n, n_hidden * d), or (n, n_hidden, d) for input of three axes
        """
        X = self._checked_for_prediction(X, "transform")
        codes = self.network_.codes(X, self._checked_chunk_size())
        if self.network_.input.ndim == 3:
            codes = namespace(codes=codes).reshape(codes, (X.shape[0], *self.hidden_weights_.shape[1:]))
        return codes

    def inverse_transform(self, X: Any) -> FloatArray:
        """The decoder: from codes to the form of the input.

        Parameters
        ----------
        X : array of shape (n, n_hidden * d) or (n, n_hidden, d)
            Codes.

        Returns
        -------
        array of shape (n, columns) or (n, features, d)
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=kept_types(X), allow_nd=True, input_name="X", estimator=self)
        check_place(codes, self.hidden_weights_, f"{type(self).__name__}.inverse_transform()")
        xp, n, columns = namespace(X=codes), codes.shape[0], math.prod(codes.shape[1:])
        if columns != self._n_features_out:
            raise ValueError(
                f"`X` must have {self._n_features_out} columns of codes, as `transform` gives, got {columns}."
            )
        rows: FloatArray = xp.reshape(
            self.network_.decode(xp.reshape(codes, (n, columns))), self.network_.input.shape(n)
        )
        return rows

    def reconstruct(self, X: Any) -> FloatArray:
        """What the decoder makes of the codes of X.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of the shape of X
        """
        _, outputs = self._outputs(X, "reconstruct")
        shape = self.network_.input.shape(outputs.shape[0])
        reconstructed: FloatArray = namespace(outputs=outputs).reshape(outputs, shape)
        return reconstructed

    def score_samples(self, X: Any) -> FloatArray:
        """How usual each row is: the higher, the better the auto-encoder knows such rows.

        It is minus the mean of ((x - x̂)/s)² over the columns, with the reconstruction x̂ and the standard deviation s
        of a column of the training rows. Columns that were constant in training, and stay so, count as zero.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from hyperelm import ELMAutoencoder
        >>> X = np.random.default_rng(0).standard_normal((500, 2)) @ np.ones((2, 8))
        >>> model = ELMAutoencoder("klein4", 2, random_state=0).fit(X)
        >>> bool(model.score_samples(X).min() > model.score_samples(np.eye(8)).max())
        True
        """
        X = self._checked_for_prediction(X, "score_samples")
        network, size, scores = self.network_, self._checked_chunk_size() or CHUNK, []
        spreads = as_precision(beside(self._spreads(), network.hidden_weights), network.dtype)
        for at in chunks(X.shape[0], size):
            chunk, xp = chunk_of(X, at), namespace(hidden_weights_=network.hidden_weights)
            outputs = network.outputs(chunk, size)
            x = xp.reshape(as_precision(chunk, network.dtype), outputs.shape)
            scores.append(-xp.mean(((x - outputs) / spreads) ** 2, axis=1))
        return concatenated(scores, axis=0)

    def _spreads(self) -> NDArray[np.float64]:
        """The standard deviations of the columns in training; 1 where the file of an earlier release lacks them."""
        if self._scales is None:
            return np.ones(self.network_.input.columns)
        spread = self._scales.inputs.spread
        return np.where(spread > 0, spread, spread.max() or 1.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance of X that the reconstruction explains, R².

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        y : ignored
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        X = self._checked_for_prediction(X, "score")
        weight = self._check_weight(sample_weight, X)
        network, size = self.network_, self._checked_chunk_size() or CHUNK
        sums = [np.zeros(network.input.columns) for _ in range(3)]
        total = 0.0
        shift: FloatArray | None = None
        for at in chunks(X.shape[0], size):
            chunk, xp = chunk_of(X, at), namespace(hidden_weights_=self.hidden_weights_)
            x = xp.reshape(as_precision(chunk, np.dtype(np.float64)), (chunk.shape[0], network.input.columns))
            if shift is None:
                shift = xp.mean(x, axis=0)  # near the mean of all rows, so that squares lose nothing
            error, x = x - network.outputs(chunk, size), x - shift
            w = np.ones(x.shape[0]) if weight is None else np.asarray(weight[at], dtype=np.float64)
            for column_sums, values in zip(sums, (x, x**2, error**2)):
                column_sums += to_numpy(beside(w, x) @ values)
            total += float(w.sum())
        first, second, errors = sums
        spread = second - first**2 / total
        varies = spread > 1e-12 * second
        if not varies.any():
            return float(not errors.any())
        return float(1 - errors[varies].sum() / spread[varies].sum())

    @property
    def _n_features_out(self) -> int:
        return self.network_.neurons * self.algebra_.dim

    def _activation_name(self) -> str | Function:
        if not (isinstance(self.activation, str) and self.activation == "auto"):
            return self.activation
        return "identity" if self.encoder == "pca" else "tanh"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.encoder, ENCODERS, "encoder")
        if self.encoder == "pca" and not is_star_closed(self.algebra_):
            raise ValueError(
                f"`encoder` must not be 'pca' for {self.algebra_.name or 'this algebra'}: principal components need an "
                "associative algebra whose left multiplications are closed under transposition. Use 'orthogonal'."
            )

    def _check_restored(self) -> None:
        if self.network_.output != self.network_.input:
            raise ValueError("the layout of its output is not that of its class")

    def _follows_norms(self) -> bool:
        return super()._follows_norms() and self.encoder != "pca"

    def _draw(self, source: Source, layout: Layout, seen: Seen, dtype: np.dtype[Any]) -> Encoder:
        if self.encoder == "pca":
            return self._principal(source, layout, dtype)
        return replace(self._random(layout, seen, dtype), orthogonal=self.encoder == "orthogonal")

    def _principal(self, source: Source, layout: Layout, dtype: np.dtype[Any]) -> Encoder:
        """Principal components, found in a pass of their own."""
        if source.once:
            raise ValueError(
                "`encoder` must not be 'pca' where X is an iterator, which is read once: the components need all rows "
                "before the decoder sees the first. Use an iterable that can be read again, or encoder='random'."
            )
        D = layout.features
        if self.n_hidden > D:
            raise ValueError(f"`n_hidden` must be at most the {D} inputs with encoder='pca', got {self.n_hidden}.")
        named = isinstance(self.weight_scale, str)
        self.weight_scale_ = times_auto(self.weight_scale) or 1.0 if named else float(self.weight_scale)
        rng = random_generator(self.random_state)
        find = partial(principal_encoder, components=self.n_hidden, scale=self.weight_scale_, rng=rng)
        return source.fold(MomentPass(self.algebra_, layout, bool(self.bias), dtype, self.chunk_size), find)
