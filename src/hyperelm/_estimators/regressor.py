"""The ELM for regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import as_array, as_parts, moved, namespace
from hyperelm._estimators.base import BaseELM
from hyperelm._estimators.checks import as_given, checked_complex, has_complex, precision
from hyperelm._training.passes import check_range
from hyperelm._training.rows import Array, Stored, is_stored
from hyperelm._validation import FloatArray


class ELMRegressor(RegressorMixin, BaseELM):
    """Extreme learning machine for regression over a hypercomplex algebra.

    One hidden layer of random neurons, one output layer fitted by least squares.

    Parameters
    ----------
    algebra : str or Algebra, default="quaternions"
        A name of `hyperelm.algebras` or an `Algebra`; "real" gives the classical network.
    n_hidden : int, default=100
        The number of hypercomplex neurons.
    activation : str or callable, default="tanh"
        "tanh", "sigmoid", "relu", "leaky_relu", "sine", "gaussian", "identity", "hard_tanh", "softsign", or a
        function of arrays, applied to each component; "modtanh" or "modrelu", applied to the modulus of a number.
    weight_scale : "auto", "paper" or float, default="auto"
        Standard deviation of the random weights. "auto" divides by the root mean square norm of the input rows, so
        that results do not depend on the unit of the data; "0.1 auto" is a tenth of that; "paper" is 10/D for D inputs.
    bias : bool, default=True
        An extra input and an extra hidden number 1; the bias of the output is not penalised by ridge.
    packing : {"full", "imaginary", "real"}, default="full"
        How columns become numbers: d of them, d - 1 in the imaginary parts, or one in the real part.
    direct_link : bool, default=False
        Whether the inputs also feed the output layer, as in a random vector functional link network.
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
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    algebra_ : Algebra
    hidden_weights_ : array of shape (D + bias, n_hidden, d)
    output_weights_ : array of shape (n_hidden + direct-link inputs + bias, N, r)
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
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hyperelm import ELMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ELMRegressor("quaternions", random_state=0))
    >>> bool(cross_val_score(model, X, y).mean() > 0.45)
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ELMRegressor:
        """Fit the network.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d), or iterable of chunks
            Columns, packed as ``packing`` says, or hypercomplex numbers, taken as they are. Memory maps, zarr and HDF5
            arrays are read chunk by chunk. An iterable gives tuples (X, y) or (X, y, sample_weight) of some rows each;
            an iterator is read once, any other iterable again where that is needed.
        y : array of shape (n,), (n, columns) or (n, N, d)
            One value a row, which stands in the real part; columns, packed like the input; or numbers. None with
            chunks.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        self._start_fit()
        self._fit(self._source(X, y, sample_weight))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ELMRegressor:
        """Go on with more rows. The first call fixes the hidden layer and its scale.

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
        self._continue(self._check_rows(X, y, sample_weight, reset=first))
        return self

    def predict(self, X: Any) -> FloatArray:
        """The network's output.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n,), (n, columns) or (n, N, d)
            As the targets were that it was fitted to; complex if those were.
        """
        _, outputs = self._outputs(X, "predict")
        Y: FloatArray = self.network_.output.given(outputs)
        return Y

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the mean over the columns or the components of y.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        y : array of shape (n,), (n, columns) or (n, N, d)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        Y = self.predict(X)
        y, weight = (None if part is None else moved(part, Y) for part in (y, sample_weight))
        xp, parts = namespace(Y=Y), (as_parts(y), as_parts(Y))
        flat = [xp.reshape(part, (part.shape[0], math.prod(part.shape[1:]))) for part in parts]
        return float(r2_score(*flat, sample_weight=weight))

    def _check_targets(self, X: Array, y: Any, before: int | None) -> Array:
        if is_stored(y) or (before is not None and isinstance(y, np.ndarray)):
            y = Stored(y, "y", before=before or 0)
        else:
            y = moved(checked_target(self, y, algebra=self.algebra_), X)
            check_range(y, precision(X), "y", "`X`")
        self._check_components(y, "y")
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def checked_target(estimator: BaseEstimator, y: Any, *, algebra: Algebra | None = None) -> NDArray[Any]:
    """Numbers of any number of axes; complex ones where the algebra, if it is known, has them."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    if has_complex(y):
        return checked_complex(y, "y", algebra)
    y = check_array(
        as_given(y, "y"), ensure_2d=False, allow_nd=True, dtype="numeric", input_name="y", estimator=estimator
    )
    return as_array(y)
