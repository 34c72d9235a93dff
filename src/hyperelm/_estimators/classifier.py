"""The ELM for classification: regression onto the indicators of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import detached, kept_beside, namespace, taken, to_numpy
from hyperelm._estimators import multilabel
from hyperelm._estimators.base import BaseELM
from hyperelm._network.layout import Layout
from hyperelm._solvers.calibration import Probabilities
from hyperelm._training.passes import Seen, Targets
from hyperelm._training.rows import Array, Rows, Source, Stored, is_stored
from hyperelm._validation import FloatArray


class ELMClassifier(ClassifierMixin, BaseELM):
    """Extreme learning machine for classification over a hypercomplex algebra.

    The output layer is fitted by least squares to the indicators of the classes, one number a class with the
    indicator in its real part; the class with the largest output is predicted.

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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with those of the samples.

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
        it is estimated from a sample.
    solver_ : {"gram", "qr", "svd"}
        What "auto" came to.
    n_samples_seen_ : int
        Rows that the output layer was fitted to.
    n_features_in_ : int
    network_ : Network
        Both layers, the layouts of input and output, the algebra and the activation, as one value.
    classes_ : array of shape (n_classes,)
        The labels; of a matrix of indicators, the numbers of its columns.
    multilabel_ : bool
        Whether `y` was a matrix of indicators.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hyperelm import ELMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ELMClassifier("tessarines", n_hidden=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        algebra: Any = "quaternions",
        n_hidden: int = 100,
        *,
        activation: Any = "tanh",
        weight_scale: Any = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        readout: str = "algebra",
        ridge: Any = "auto",
        solver: str = "auto",
        chunk_size: int | None = None,
        half_life: float | None = None,
        class_weight: Any = None,
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
            direct_link=direct_link,
            readout=readout,
            ridge=ridge,
            solver=solver,
            chunk_size=chunk_size,
            half_life=half_life,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    classes_: NDArray[Any]
    multilabel_: bool = False
    _counts: NDArray[np.intp]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None) -> ELMClassifier:
        """Fit the network.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d), or iterable of chunks
            Memory maps, zarr and HDF5 arrays are read chunk by chunk. An iterable gives tuples (X, y) or
            (X, y, sample_weight) of some rows each; an iterator is read once, any other iterable several times.
        y : array of shape (n,) or (n, labels)
            Class labels, or indicators, 0 and 1, of several labels a row. None with chunks.
        sample_weight : array of shape (n,), optional
        classes : array of shape (n_classes,), optional
            All labels there will be; needed for an iterator, found elsewhere. Not for indicators.

        Returns
        -------
        self
        """
        self._start_fit(classes)
        self._fit(self._source(X, y, sample_weight))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> ELMClassifier:
        """Go on with more rows. The first call fixes the hidden layer and its scale.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,)
            All labels there will be; needed in the first call.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        if first:
            if classes is None and not multilabel.has_labels(y):
                raise ValueError("`classes` must be passed on the first call to partial_fit: all labels there will be.")
            self._start_fit(None if multilabel.has_labels(y) else classes)
        elif classes is not None and not np.array_equal(_unique(classes), self._labels):
            raise ValueError(f"`classes` must be those of the first call, {self._labels}, got {_unique(classes)}.")
        if self._is_balanced():
            raise ValueError(
                "`class_weight` must not be 'balanced' for partial_fit, which sees a part of the classes' counts. "
                "Pass a dict, or sample_weight."
            )
        self._continue(self._check_rows(X, y, sample_weight, reset=first))
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> ELMClassifier:
        """Take rows out again that the output layer was fitted to, as if it had never seen them.

        The result is that of `fit` without them, with the hidden layer as it is. Sums are subtracted, which needs
        solver "gram", or "auto" where it came to it. It is refused where too little is left of them. The scale
        of the probabilities is then 3, until another `fit`.

        Parameters
        ----------
        X, y, sample_weight : as they were given to `fit` or `partial_fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hyperelm import ELMClassifier
        >>> X = np.random.default_rng(0).standard_normal((200, 4))
        >>> y = X[:, 0] > X[:, 1]
        >>> model = ELMClassifier("klein4", 8, weight_scale=0.5, ridge=0.1, random_state=0)
        >>> model.fit(X, y).forget(X[:50], y[:50]).n_samples_seen_
        150
        """
        check_is_fitted(self, "network_")
        if self._is_balanced():
            raise ValueError(
                "`class_weight` must not be 'balanced' to forget rows, as the counts of the classes would change. Pass "
                "a dict, or sample_weight, to `fit`."
            )
        self._forget(self._check_rows(X, y, sample_weight, reset=False))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The outputs of the network.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n, n_classes), or (n,)
            For two classes their difference. For several labels a row, by how much each output is above 1/2.
        """
        X, scores = self._outputs(X, "decision_function")
        if self.multilabel_:
            return multilabel.above_half(scores)
        if self.classes_.shape[0] > 2:
            return scores
        with np.errstate(over="ignore"):
            return self.network_.within_precision(scores[:, 1] - scores[:, 0], X)

    def predict_proba(self, X: Any) -> FloatArray:
        """The probabilities of the classes, never 0 or 1.

        They are in proportion to exp(a y) of the outputs y. The scale a is the one by which outputs for rows that were
        left out make their labels likeliest. Where no row could be left out, as after `partial_fit`, it is 3.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n, n_classes)
            For several labels a row, the probability of each by itself.
        """
        outputs = self._outputs(X, "predict_proba")[1]
        return multilabel.label_probabilities(outputs) if self.multilabel_ else self._probabilities.of(outputs)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest output.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)

        Returns
        -------
        array of shape (n,) or (n, labels)
            Indicators, 0 and 1, if `y` was a matrix of them.
        """
        _, scores = self._outputs(X, "predict")
        if self.multilabel_:
            return multilabel.predicted_labels(scores)
        largest = to_numpy(namespace(scores=scores).argmax(scores, axis=1))
        labels: NDArray[Any] = taken(self.classes_, largest)
        return labels

    @property
    def _probabilities(self) -> Probabilities:
        return self._certainty if isinstance(self._certainty, Probabilities) else Probabilities()

    def _check_targets(self, X: Array, y: Any, before: int | None) -> Array:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        if multilabel.has_labels(y):
            return self._check_labels(multilabel.checked_labels(y, before))
        if self.multilabel_:
            raise ValueError(f"`y` must have shape (n, {len(self._labels)}), indicators as before, got {np.shape(y)}.")
        if is_stored(y) or before is not None:
            y = y if is_stored(y) else to_numpy(column_or_1d(y, warn=True))
            if len(y.shape) != 1:
                raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
            return Stored(y, "y", before=before or 0, labels=True)
        y = checked_labels(self, y)
        if hasattr(self, "classes_"):
            _check_known(y, self._labels)
        return y

    def _check_labels(self, y: Array) -> Array:
        """A matrix of indicators. Its columns are the classes."""
        if self.class_weight is not None:
            raise ValueError("`class_weight` must be None for several labels a row. Pass sample_weight.")
        if not hasattr(self, "classes_"):
            self.classes_, self.multilabel_ = np.arange(y.shape[1]), True
        if not self.multilabel_ or y.shape[1] != len(self._labels):
            wanted = f"shape (n, {len(self._labels)})" if self.multilabel_ else "one label a row, as `classes` says"
            raise ValueError(f"`y` must have {wanted}, got shape {y.shape}.")
        return y

    def _start_fit(self, classes: Any = None) -> None:
        super()._start_fit()
        self.__dict__.pop("multilabel_", None)
        if classes is not None:
            self.classes_ = _unique(classes)
        elif hasattr(self, "classes_"):
            del self.classes_

    def _look(self, source: Source, layout: Layout, labels: bool = False) -> Seen:
        """Also the classes, unless they were given, and how often each occurs, where that matters."""
        given, balanced = hasattr(self, "classes_"), self._is_balanced()
        if source.once and balanced:
            raise ValueError(
                "`class_weight` must not be 'balanced' where X is an iterator, which is read once. Pass a dict, "
                "weights in the chunks, or an iterable that can be read again."
            )
        if source.once and not given:
            raise ValueError(
                "`classes` must be passed to fit where X is an iterator, which is read once: all labels there will be."
            )
        seen = super()._look(source, layout, labels=balanced or not given)
        if given and balanced:
            seen.merge(Seen(labels=self._labels, counts=np.zeros(len(self._labels), np.intp)))
        if seen.labels is not None and seen.counts is not None:
            self.classes_, self._counts = seen.labels, seen.counts
        if len(self._labels) < 2:
            raise ValueError(
                f"This solver needs samples of at least 2 classes in the data, but the data contains only one "
                f"class: {self._labels[0]!r}"
            )
        return seen

    def _fit(self, source: Source) -> None:
        super()._fit(source)
        self.__dict__.pop("_counts", None)  # which balanced costs are made of, and nothing else
        if self.classes_.dtype.kind in "biuf":  # other libraries have no arrays of texts
            self.classes_ = kept_beside(self.classes_, source.first.X, exact=True)

    def _is_balanced(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == "balanced"

    def _tells_certainty(self) -> bool:
        return not self.multilabel_

    def _judged_by_labels(self) -> bool:
        """Of several labels a row, each is a value by itself: their errors are squared."""
        return not self.multilabel_

    def _output_layout(self, rows: Rows) -> Layout:
        return self._layout()

    def _layout(self) -> Layout:
        """One number a class, its real part the output."""
        return label_layout(self.classes_.shape[0], self.algebra_)

    def _check_restored(self) -> None:
        classes = self._labels
        if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) != len(classes):
            raise ValueError("its classes are not different labels")
        if self.network_.output != self._layout():
            raise ValueError("the layout of its output is not that of its class")

    def _targets(self) -> Targets:
        if self.multilabel_:
            return multilabel.indicators
        if self._is_balanced():
            # Every class has the same sum of costs.
            costs = np.sum(self._counts) / (len(self._counts) * np.maximum(self._counts, 1))
        elif self.class_weight is not None:
            costs = compute_class_weight(self.class_weight, classes=self._labels, y=self._labels)
            if not (np.isfinite(costs).all() and costs.min() >= 0 and costs.max() > 0):
                raise ValueError(
                    "`class_weight` must be finite and not negative, and for some class above zero, got "
                    f"{self.class_weight!r}."
                )
        else:
            costs = None
        return Indicators(self._labels, costs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @property
    def _labels(self) -> NDArray[Any]:
        """The classes in NumPy, where labels are compared."""
        return to_numpy(self.classes_)


@dataclass(frozen=True)
class Indicators:
    """From labels (m,) to indicators (m, classes), and the cost of an error on each."""

    classes: NDArray[Any]
    costs: FloatArray | None

    def __call__(self, labels: NDArray[Any]) -> tuple[NDArray[np.bool_], FloatArray | None]:
        _check_known(labels, self.classes)
        costs = None if self.costs is None else self.costs[np.searchsorted(self.classes, labels)]
        return np.asarray(labels[:, None] == self.classes), costs


def checked_labels(estimator: BaseEstimator, y: Any) -> NDArray[Any]:
    """Labels in NumPy, one for each row."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    y = to_numpy(column_or_1d(detached(y) if hasattr(y, "shape") else np.asarray(y), warn=True))
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return np.asarray(y)


def label_layout(classes: int, algebra: Algebra) -> Layout:
    """One number a class, its real part the output."""
    return Layout.filled(2, classes, slice(0, 1), algebra.dim)


def _check_known(labels: NDArray[Any], classes: NDArray[Any]) -> None:
    unseen = np.setdiff1d(labels, classes)
    if len(unseen):
        raise ValueError(f"`y` must have labels among `classes`, {classes}, got {unseen}.")


def _unique(labels: Any) -> NDArray[Any]:
    return np.unique(to_numpy(labels))
