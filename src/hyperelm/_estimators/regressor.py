"""The ELM for regression."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import as_array, as_parts, as_precision, beside, moved, namespace, numpy_dtype
from hyperelm._estimators.base import BaseELM
from hyperelm._estimators.checks import as_given, checked_complex, has_complex, precision
from hyperelm._network.network import Network
from hyperelm._training.certainty import Intervals, layout_of_probes
from hyperelm._training.passes import check_range
from hyperelm._training.rows import Array, Stored, is_stored
from hyperelm._validation import FloatArray, is_number


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
    half_life : float, optional
        For `partial_fit`: the number of further rows after which a row counts half. By default rows count for ever.
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

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> ELMRegressor:
        """Take rows out again that the output layer was fitted to, as if it had never seen them.

        The result is that of `fit` without them, with the hidden layer as it is. Sums are subtracted, which needs
        solver "gram", or "auto" where it came to it. It is refused where too little is left of them. Intervals
        need another `fit`.

        Parameters
        ----------
        X, y, sample_weight : as they were given to `fit` or `partial_fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hyperelm import ELMRegressor
        >>> X = np.random.default_rng(0).standard_normal((200, 4))
        >>> y = X[:, 0] * X[:, 1]
        >>> model = ELMRegressor("klein4", 8, weight_scale=0.5, ridge=0.1, random_state=0)
        >>> model.fit(X, y).forget(X[:50], y[:50]).n_samples_seen_
        150
        >>> bool(np.allclose(model.predict(X), model.fit(X[50:], y[50:]).predict(X)))
        True
        """
        check_is_fitted(self, "network_")
        self._forget(self._check_rows(X, y, sample_weight, reset=False))
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

    def predict_interval(self, X: Any, coverage: float = 0.9, *, joint: bool = False) -> tuple[FloatArray, FloatArray]:
        """The ends of an interval around every prediction that holds new targets with this probability.

        It is as wide as the leave-one-out residuals of the training rows tell, and wider where a row is unlike them
        (`leverage`). The probability is one over training rows and new rows that are exchangeable, not one for each
        row. Later parts of a series are not exchangeable with earlier ones.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        coverage : float between 0 and 1, default=0.9
        joint : bool, default=False
            Whether all outputs of a row shall be within their intervals at once, with this probability.

        Returns
        -------
        lower, upper : arrays of the shape of `predict(X)`

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.preprocessing import scale
        >>> from hyperelm import ELMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = ELMRegressor(random_state=0).fit(scale(X[:300]), y[:300])
        >>> lower, upper = model.predict_interval(scale(X[300:]), coverage=0.9)
        >>> bool(((lower <= y[300:]) & (y[300:] <= upper)).mean() > 0.85)
        True
        """
        if not (is_number(coverage) and 0 < coverage < 1):
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}.")
        X = self._checked_for_prediction(X, "predict_interval")
        intervals = self._intervals("predict_interval")
        residuals = intervals.residuals
        if coverage > residuals.largest_coverage:
            raise ValueError(
                f"`coverage` must be at most {residuals.largest_coverage:.4g} with the {residuals.count:.4g} samples "
                f"that were left out, got {coverage!r}. Fit to more rows, or give weights a mean of 1."
            )
        network = self.network_
        outputs, probed = network.outputs_beside(self._probing(intervals), X, self._checked_chunk_size())
        xp = namespace(outputs=outputs)
        halves = residuals.half_widths(coverage, joint=bool(joint))
        if network.scaling is not None:
            halves = halves * network.scaling.output_scale
        with np.errstate(over="ignore"):  # far from the training rows nothing is sure
            spread = (1 + xp.mean(probed**2, axis=1)) ** 0.5
            half = spread[:, None] * as_precision(beside(halves, outputs), numpy_dtype(outputs))
            return network.output.given(outputs - half), network.output.given(outputs + half)

    def leverage(self, X: Any) -> FloatArray:
        """How unlike the training rows each row is: 0 for one that the output layer has seen over and over.

        It is h = a (AᵀA + λ)⁻¹ aᵀ of the hidden numbers a of a row and A of the training rows. An error of a prediction
        has a spread of √(1 + h) times that of the targets' noise. The training rows have a mean of at most the number
        of unknowns divided by that of rows. With more than 64 unknowns it is estimated, to about 18 %.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from hyperelm import ELMRegressor
        >>> X = np.random.default_rng(0).standard_normal((500, 4))
        >>> model = ELMRegressor("klein4", 20, random_state=0).fit(X, X[:, 0] * X[:, 1])
        >>> bool(model.leverage(5 * X).mean() > 5 * model.leverage(X).mean())
        True
        """
        X = self._checked_for_prediction(X, "leverage")
        probed = self._probing(self._intervals("leverage")).outputs(X, self._checked_chunk_size())
        with np.errstate(over="ignore"):
            leverages: FloatArray = namespace(probed=probed).mean(probed**2, axis=1)
        return leverages

    def _intervals(self, method: str) -> Intervals:
        if not isinstance(self._certainty, Intervals):
            raise ValueError(
                f"{method} needs rows that were left out, of which this model has none: its last rows were read once, "
                "by partial_fit or from an iterator, or taken out by forget, or it comes from a file of an earlier "
                "release. Call fit with rows that can be read again."
            )
        return self._certainty

    def _probing(self, intervals: Intervals) -> Network:
        """The network with the probes as its output layer."""
        network = self.network_
        layout, scaling = layout_of_probes(network.algebra.dim), network.scaling
        if scaling is not None:
            one = np.ones(layout.columns, network.dtype)
            scaling = replace(scaling, output_offset=0 * one, output_scale=one)
        weights = as_precision(moved(intervals.probes, network.output_weights), network.dtype)
        return replace(network, output=layout, output_weights=weights, scaling=scaling)

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
