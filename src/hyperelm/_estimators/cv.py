"""The searches: a regressor and a classifier that choose their algebra, size, weight scale, readout and ridge.

Candidates are scored without refits, by the exact outputs for rows that are left out (`scoring`, `search`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import to_numpy
from hyperelm._estimators.candidates import mean_square
from hyperelm._estimators.checks import precision
from hyperelm._estimators.classifier import ELMClassifier, checked_labels, label_layout
from hyperelm._estimators.regressor import ELMRegressor, checked_target
from hyperelm._estimators.scoring import OF_LABELS, OF_VALUES
from hyperelm._estimators.search import BaseSearch
from hyperelm._network.activations import Function
from hyperelm._network.layout import COMPLEX, Layout
from hyperelm._training.rows import Chunk, Rows
from hyperelm._validation import FloatArray

_LABEL_ROUNDING = {"log_loss": 1e-4, "accuracy": 0.0, "brier": 1e-4}  # losses hardly change once all labels are right


class ELMRegressorCV(RegressorMixin, BaseSearch):
    """Extreme learning machine for regression that chooses its algebra, size, weight scale, readout and ridge.

    Every combination of the values is scored by the mean squared error of rows left out, without refits, and the
    best is fitted to all rows.

    Parameters
    ----------
    algebra : "auto", algebra or list of algebras, default="auto"
        "auto" takes the associative algebras of the catalogue with up to 4 components, or, for numbers
        (n, features, d), all with d; only those that are nondegenerate.
    n_hidden : "auto", int or list of int, default="auto"
        "auto" takes 16, 32, 64 and 128 neurons, but not more than rows.
    n_parameters : int or list of int, optional
        Compare networks with as nearly as possible this many parameters, instead of equal `n_hidden`: an algebra of
        dimension 4 has four real numbers in every weight.
    activation : str or callable, default="tanh"
    weight_scale : "auto", float, str or list of them, default="auto"
        What `ELMRegressor` takes. "auto" takes multiples of that of `ELMRegressor`, from 0.01 to 3; for that one
        alone write ["auto"].
    bias : bool, default=True
    packing : {"full", "imaginary", "real"}, default="full"
    direct_link : bool, default=False
    readout : "auto", str or list of str, default="auto"
        "algebra", "learned" or "free", as for `ELMRegressor`. "auto" tries all that can make a difference. Where
        `n_hidden` is "auto", they are compared at equal numbers of parameters.
    ridge : "auto", float or list of float, default="auto"
        "auto" looks at a path of ridges for every candidate and keeps the best.
    scoring : {"loo", "gcv"}, default="loo"
        Exact leave-one-out errors, or generalised cross-validation, which reads the rows once. The latter also counts
        components of the output that no column fills.
    n_draws : int, default=3
        Random hidden layers of a candidate. Algebras and weight scales that are far behind on the first have no others.
    solver : {"auto", "gram", "qr", "svd"}, default="auto"
        In the search "auto" is "gram", and "qr" where a ridge is too small for it; "svd" is "qr".
    chunk_size : int, optional
    n_jobs : int, optional
        Layers that are scored at a time, as for joblib. The result is the same for any number of jobs.
    random_state : int, RandomState instance or None, default=None
        The model that is fitted in the end has the same.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    best_algebra_ : Algebra
    best_n_hidden_, best_weight_scale_, best_readout_, best_ridge_ : int, float or str, str, float
    best_estimator_ : ELMRegressor
        Fitted to all rows.
    best_score_ : float
        Its mean squared error of rows left out, with a minus sign.
    best_index_, best_params_ : int, dict
    cv_results_ : dict of arrays
        For every candidate "param_algebra", "param_n_hidden", "param_weight_scale", "param_readout", "param_ridge",
        "params", "n_parameters", "is_bias_only" (whether the mean of the targets is all that it predicts),
        "draw0_test_score", …, "mean_test_score", "std_test_score" and "rank_test_score". Scores are mean squared errors
        with a minus sign, NaN of draws that a candidate did not have; such a candidate is not chosen.
        The mean is minus infinity where the race was over for it before the first draw on all rows.
        With ridge="auto" only the best ridge of each path is listed.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import ELMRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> Y = np.cross(X, np.tanh(X[:, ::-1]))
    >>> model = ELMRegressorCV(["real", "quaternions"], [8, 32], packing="imaginary", random_state=0).fit(X, Y)
    >>> model.best_n_hidden_, bool(model.score(X, Y) > 0.98)
    (32, True)
    >>> len(model.cv_results_["params"])
    40
    """

    best_estimator_: ELMRegressor
    _model, _scorings, _simplest = ELMRegressor, OF_VALUES, "the mean of the targets"

    def predict(self, X: Any) -> FloatArray:
        """The output of the best model for X, in the shape of the y that it was fitted to."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the best model on X and y with `sample_weight`, the mean over the columns or components of y."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, joint: bool = False) -> tuple[FloatArray, FloatArray]:
        """The interval of the best model for X with this `coverage`, `joint` or not, as `ELMRegressor` gives it.

        That the model was chosen does not count.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_interval(X, coverage, joint=joint)

    def _checked_target(self, y: Any) -> NDArray[Any]:
        return to_numpy(checked_target(self, y, algebra=COMPLEX))

    def _output_layout(self, rows: Rows, algebra: Algebra) -> Layout:
        return Layout.of(rows.T, algebra, self.packing)

    def _rounding(self, rows: Chunk) -> float:
        return (1e3 * float(np.finfo(precision(rows.X)).eps)) ** 2 * mean_square(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ELMClassifierCV(ClassifierMixin, BaseSearch):
    """Extreme learning machine for classification that chooses its algebra, size, weight scale, readout and ridge.

    Every combination of the values is scored on rows left out, without refits, and the best is fitted to all rows.

    Parameters
    ----------
    algebra : "auto", algebra or list of algebras, default="auto"
        "auto" takes the associative algebras of the catalogue with up to 4 components, or, for numbers
        (n, features, d), all with d; only those that are nondegenerate.
    n_hidden : "auto", int or list of int, default="auto"
        "auto" takes 16, 32, 64 and 128 neurons, but not more than rows.
    n_parameters : int or list of int, optional
        Compare networks with as nearly as possible this many parameters, instead of equal `n_hidden`: an algebra of
        dimension 4 has four real numbers in every weight.
    activation : str or callable, default="tanh"
    weight_scale : "auto", float, str or list of them, default="auto"
        What `ELMClassifier` takes. "auto" takes multiples of that of `ELMClassifier`, from 0.01 to 3; for that one
        alone write ["auto"].
    bias : bool, default=True
    packing : {"full", "imaginary", "real"}, default="full"
    direct_link : bool, default=False
    readout : "auto", str or list of str, default="auto"
        "algebra", "learned" or "free", as for `ELMClassifier`. "auto" tries all that can make a difference. Where
        `n_hidden` is "auto", they are compared at equal numbers of parameters.
    ridge : "auto", float or list of float, default="auto"
        "auto" looks at a path of ridges for every candidate and keeps the best.
    scoring : {"log_loss", "accuracy", "brier"}, default="log_loss"
        What is asked of the outputs for rows left out. "log_loss" and "brier" take probabilities in proportion to
        exp(a output), with the best of four scales a from 1.5 to 12, as the model that is fitted will be calibrated.
        For "accuracy", the ridges of a path are compared by the log loss.
    n_draws : int, default=3
        Random hidden layers of a candidate. Algebras and weight scales that are far behind on the first have no others.
    solver : {"auto", "gram", "qr", "svd"}, default="auto"
        In the search "auto" is "gram", and "qr" where a ridge is too small for it; "svd" is "qr".
    chunk_size : int, optional
    n_jobs : int, optional
        Layers that are scored at a time, as for joblib. The result is the same for any number of jobs.
    class_weight : dict, "balanced" or None, default=None
        As for `ELMClassifier`. The score of a candidate counts every row with the weight of its class.
    random_state : int, RandomState instance or None, default=None
        The model that is fitted in the end has the same.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    best_algebra_ : Algebra
    best_n_hidden_, best_weight_scale_, best_readout_, best_ridge_ : int, float or str, str, float
    best_estimator_ : ELMClassifier
        Fitted to all rows.
    best_score_ : float
        Its accuracy on rows left out, or its loss with a minus sign.
    best_index_, best_params_ : int, dict
    cv_results_ : dict of arrays
        For every candidate "param_algebra", "param_n_hidden", "param_weight_scale", "param_readout", "param_ridge",
        "params", "n_parameters", "is_bias_only" (whether the shares of the classes are all that it predicts),
        "draw0_test_score", …, "mean_test_score", "std_test_score" and "rank_test_score". Scores are accuracies,
        or losses with a minus sign, NaN of draws that a candidate did not have; such a candidate is not chosen.
        The mean is minus infinity where the race was over for it before the first draw on all rows.
        With ridge="auto" only the best ridge of each path is listed.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hyperelm import ELMClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ELMClassifierCV(["real", "quaternions"], [8, 32], scoring="accuracy", random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.95), bool(model.score(X, y) > 0.95)
    (True, True)
    """

    def __init__(
        self,
        algebra: Any = "auto",
        n_hidden: Any = "auto",
        *,
        n_parameters: Any = None,
        activation: str | Function = "tanh",
        weight_scale: Any = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        readout: Any = "auto",
        ridge: Any = "auto",
        scoring: str = "log_loss",
        n_draws: int = 3,
        solver: str = "auto",
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            algebra,
            n_hidden,
            n_parameters=n_parameters,
            activation=activation,
            weight_scale=weight_scale,
            bias=bias,
            packing=packing,
            direct_link=direct_link,
            readout=readout,
            ridge=ridge,
            scoring=scoring,
            n_draws=n_draws,
            solver=solver,
            chunk_size=chunk_size,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    best_estimator_: ELMClassifier
    _model, _scorings, _simplest = ELMClassifier, OF_LABELS, "the shares of the classes"
    _shared = (*BaseSearch._shared, "class_weight")

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of `predict_proba`."""
        return self.best_estimator_.classes_

    def decision_function(self, X: Any) -> FloatArray:
        """The outputs of the best model for X, (n, n_classes); for two classes their difference, (n,)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """The probabilities of the classes by the best model for X, (n, n_classes)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest output of the best model for X, (n,)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def _checked_target(self, y: Any) -> NDArray[Any]:
        return checked_labels(self, y)

    def _output_layout(self, rows: Rows, algebra: Algebra) -> Layout:
        return label_layout(len(np.unique(np.asarray(rows.T))), algebra)

    def _rounding(self, rows: Chunk) -> float:
        return _LABEL_ROUNDING[self.scoring]
