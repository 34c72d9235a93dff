"""What the estimators share: parameters, the hidden layer, and the way from rows to a `Network`.

A fit checks the parameters and the rows, looks at the rows where the hidden layer depends on them, draws the hidden
layer, and fits the output layer (`_training.fitting`). The result is the network, `network_`, which predicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from hyperelm._algebra import catalogue
from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import kept_beside, to_numpy
from hyperelm._estimators.checks import (
    Form,
    check_place,
    precision,
    random_generator,
    warn_of,
)
from hyperelm._estimators.continuing import Continuing
from hyperelm._lazy import lazy
from hyperelm._network import activations
from hyperelm._network.activations import Function
from hyperelm._network.layers import Drawn, Encoder, bias_number, check_weight_scale, scales_of, times_auto
from hyperelm._network.layout import Layout, components
from hyperelm._network.network import Network, Scaling
from hyperelm._network.readout import check_readout
from hyperelm._solvers.accumulator import Accumulator, Asleep
from hyperelm._solvers.solve import SOLVERS, Spread, check_ridge, spread_of
from hyperelm._training.certainty import Certainty
from hyperelm._training.fitting import Fitted, fit_output
from hyperelm._training.passes import FirstLook, Seen, Targets, Training, values
from hyperelm._training.rows import Array, GivenChunks, LocalSource, Rows, Source, add_all, is_chunked, itself
from hyperelm._training.scales import Scales
from hyperelm._validation import FloatArray, check_choice, check_whole, is_number

E = TypeVar("E", bound="BaseELM")


class BaseELM(Continuing, BaseEstimator):
    """Parameters, hidden layer, training and prediction of an extreme learning machine."""

    loo_error_: float | None
    n_samples_seen_: int
    solver_: str
    weight_scale_: float
    _saved: tuple[str, ...] = ()  # fitted arrays that a file holds besides those of every model
    _saved_if_there: tuple[str, ...] = ()  # those that it may lack
    _accumulator: Accumulator | Asleep | None
    _certainty: Certainty | None = None  # None where no row was left out
    _scales: Scales | None = None  # None where nobody looked, as in files of earlier releases

    def __init__(
        self,
        algebra: str | Algebra = "quaternions",
        n_hidden: int = 100,
        *,
        activation: str | Function = "tanh",
        weight_scale: str | float = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        readout: str = "algebra",
        ridge: float | str = "auto",
        solver: str = "auto",
        chunk_size: int | None = None,
        half_life: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algebra = algebra
        self.n_hidden = n_hidden
        self.activation = activation
        self.weight_scale = weight_scale
        self.bias = bias
        self.packing = packing
        self.direct_link = direct_link
        self.readout = readout
        self.ridge = ridge
        self.solver = solver
        self.chunk_size = chunk_size
        self.half_life = half_life
        self.random_state = random_state
        self.verbose = verbose

    @property
    def hidden_weights_(self) -> FloatArray:
        """The weights of the hidden layer; the row of the bias is the last."""
        weights: FloatArray = self.network_.hidden_weights
        return weights

    @property
    def output_weights_(self) -> FloatArray:
        """The weights of the output layer; the row of the bias is the last."""
        weights: FloatArray = self.network_.output_weights
        return weights

    @property
    def readout_table_(self) -> NDArray[np.float64]:
        """The product of the output layer, Σ h_i m_j readout_table_[i, j, k]."""
        return self.network_.readout.table

    @property
    def readout_algebra_(self) -> Algebra | None:
        """The algebra with this table; None for a free readout."""
        return self.network_.readout.algebra

    @property
    def n_parameters_(self) -> int:
        """All real numbers in both layers, and those of a table that was learned."""
        return self.network_.n_parameters

    @lazy
    def rank_(self) -> int:
        """The rank of the hidden layer, without the ridge."""
        return self._found_spread().rank

    @lazy
    def condition_(self) -> float:
        """The condition of the hidden layer, without the ridge."""
        return self._found_spread().condition

    def _found_spread(self) -> Spread:
        """What `fit` leaves open where the solution does not need it: it takes a decomposition of its own."""
        accumulator = getattr(self, "_accumulator", None)
        if accumulator is None:
            raise AttributeError(f"{type(self).__name__} has no rank_ and no condition_ before it is fitted.")
        spread = spread_of(accumulator.awake())
        self._keep_spread(spread)
        return spread

    def _keep_spread(self, spread: Spread) -> None:
        self.__dict__.update(rank_=spread.rank, condition_=spread.condition)

    # ------------------------------------------------------------------ parameters

    def _start_fit(self) -> None:
        """Forget an earlier fit, so that one that fails leaves no mixture of both, and check the parameters."""
        self.__dict__.pop("network_", None)
        self._check_parameters()

    def _check_parameters(self) -> None:
        self.algebra_ = catalogue.get(self.algebra)
        activations.get(self._activation_name())
        components(self.packing, self.algebra_, "packing")
        self._check_solver()
        check_whole(self.n_hidden, "n_hidden")
        for name in ("bias", "direct_link"):
            if not isinstance(value := getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"`{name}` must be True or False, got {value!r}.")
        check_weight_scale(self.weight_scale)
        check_readout(self.readout, self.algebra_)

    def _check_solver(self) -> None:
        check_ridge(self.ridge)
        check_choice(self.solver, SOLVERS, "solver")
        self._checked_chunk_size()
        if self.half_life is not None and not (is_number(self.half_life) and self.half_life > 0):
            raise ValueError(
                f"`half_life` must be a number of rows above 0, or None where rows never fade, got {self.half_life!r}."
            )

    def _checked_chunk_size(self) -> int | None:
        if self.chunk_size is not None:
            check_whole(self.chunk_size, "chunk_size")
        return self.chunk_size

    def _activation_name(self) -> str | Function:
        return self.activation

    # ------------------------------------------------------------------ rows

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """The rows that a call of `fit` is about."""
        if is_chunked(X):
            for name, value in (("y", y), ("sample_weight", sample_weight)):
                if value is not None:
                    raise ValueError(
                        f"`{name}` must be None where X gives chunks, got {type(value).__name__}. "
                        "Let X give tuples (X, y) or (X, y, sample_weight)."
                    )
            chunks = GivenChunks(X, self._check_rows)
            # What gives the same iterator again cannot start again.
            return LocalSource(iter(chunks) if iter(X) is iter(X) else chunks, None, self._title())
        rows = self._check_rows(X, y, sample_weight, reset=True)
        return LocalSource([rows], len(rows), self._title())

    def _title(self) -> str:
        return type(self).__name__ if self.verbose else ""

    # ------------------------------------------------------------------ hidden layer

    def _draft(self, source: Source) -> Training:
        """Draw the hidden layer, and give the pass that will fit the output layer."""
        X = source.first.X
        layout = Layout.of(X, self.algebra_, self.packing)
        encoder = self._draw(source, layout, self._look(source, layout), precision(X))
        activation = activations.get(self._activation_name())
        return self._training(encoder, activation, layout, self._output_layout(source.first))

    def _training(self, encoder: Encoder, activation: Function, of_input: Layout, of_output: Layout) -> Training:
        return Training(
            method=SOLVERS[self.solver][0],
            encoder=encoder,
            bias=bool(self.bias),
            direct_link=bool(self.direct_link),
            activation=activation,
            algebra=self.algebra_,
            input=of_input,
            output=of_output,
            targets=self._targets(),
            chunk_size=self.chunk_size,
            readout=self.readout,
        )

    def _look(self, source: Source, layout: Layout, labels: bool = False) -> Seen:
        """What must be known before the hidden layer is drawn, from the first rows where all are read but once."""
        look = FirstLook(layout.columns, self._follows_norms(), labels)
        if not look.norms and not look.labels:
            return Seen()
        if source.once:
            return add_all(look, look.begin(), source.first)
        return source.fold(look, itself)

    def _follows_norms(self) -> bool:
        return times_auto(self.weight_scale) is not None

    def _draw(self, source: Source, layout: Layout, seen: Seen, dtype: np.dtype[Any]) -> Encoder:
        return self._random(layout, seen, dtype)

    def _random(self, layout: Layout, seen: Seen, dtype: np.dtype[Any]) -> Drawn:
        """The weights of the hidden layer, component by component from a normal distribution, and their scale."""
        self.weight_scale_, bias = scales_of(self.weight_scale, layout.features, seen.norm)
        rng, D = random_generator(self.random_state), layout.features
        return Drawn(rng, self.algebra_, D, self.n_hidden, dtype, self.weight_scale_, bias if self.bias else None)

    # ------------------------------------------------------------------ training

    def _fit(self, source: Source) -> None:
        """Draw the hidden layer and fit the output layer to all rows."""
        self._accumulator = None
        self._train(source, self._draft(source), None)

    def _train(self, source: Source, training: Training, before: Accumulator | None, remains: float = 1.0) -> None:
        """Fit the output layer and keep the network.

        `before` is the accumulator of rows that were seen earlier, `remains` the share that is left of their weights.
        """
        fitted = fit_output(
            source,
            training,
            solver=self.solver,
            ridge=self.ridge,
            labels=self._judged_by_labels(),
            certain=self._tells_certainty(),
            before=before,
            remains=remains,
        )
        if before is None:
            self._scales = self._scales_of(fitted)
        self._certainty = fitted.certainty
        self._keep(fitted, training, source.first.X)

    def _keep(self, fitted: Fitted, training: Training, X: Array) -> None:
        accumulator, solution = fitted.accumulator, fitted.solution
        W, M = (kept_beside(weights, X) for weights in (training.encoder.weights, fitted.output_weights))
        layouts, activation = (training.input, training.output), training.activation
        self.network_ = Network(self.algebra_, *layouts, W, M, activation, fitted.readout, self._scaling())
        self._accumulator = accumulator if accumulator.leaves_out else None
        self.ridge_, self.loo_error_ = solution.ridge, fitted.loo_error
        for name in ("rank_", "condition_"):  # those of an earlier fit
            self.__dict__.pop(name, None)
        if solution.spread is not None:
            self._keep_spread(solution.spread)
        self.n_samples_seen_, self.solver_ = accumulator.n_rows, accumulator.method
        idle = fitted.readout.idle(bias_number(self.algebra_)) if self.bias else 0
        warn_of(self, solution, accumulator.n_rows, idle)

    # ------------------------------------------------------------------ what an estimator may change

    def _scales_of(self, fitted: Fitted) -> Scales | None:
        """Where the columns of the rows lie that the first fit saw."""
        return fitted.scales

    def _scaling(self) -> Scaling | None:
        """The scales that rows had been divided by before training, if any."""
        return None

    def _tells_certainty(self) -> bool:
        """Whether rows are left out for how sure the model is."""
        return True

    def _judged_by_labels(self) -> bool:
        """Whether labels, not values, are what the outputs are for."""
        return False

    def _output_layout(self, rows: Rows) -> Layout:
        return Layout.of(rows.T, self.algebra_, self.packing)

    def _targets(self) -> Targets:
        return values

    def _check_restored(self) -> None:
        """Refuse what a file says where it does not fit together."""

    # ------------------------------------------------------------------ prediction

    def _outputs(self, X: Any, method: str) -> tuple[Array, FloatArray]:
        """Checked rows and the outputs of the network for them, (n, columns)."""
        X = self._checked_for_prediction(X, method)
        return X, self.network_.outputs(X, self._checked_chunk_size())

    def _checked_for_prediction(self, X: Any, method: str) -> Array:
        check_is_fitted(self, "network_")
        X = self._check_X(X, reset=False)
        check_place(X, self.network_.hidden_weights, f"{type(self).__name__}.{method}()")
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        return tags


# ---------------------------------------------------------------------- for other rooms


def fit_source(model: E, source: Source, columns: Any, *, labels: bool = False) -> E:
    """Fit a model to rows of any source; `columns` is an array or frame that shows the names of its columns."""
    model._start_fit()
    model._form = Form.of(source.first.X)
    model._check_components(source.first.X, "X")
    if not labels:
        model._check_components(source.first.T, "y")
    validate_data(model, columns, reset=True, skip_check_array=True)
    model._fit(source)
    return model


def draft(model: BaseELM, source: Source) -> Training:
    """Check a model's parameters and draw its hidden layer: the pass that would fit its output layer."""
    model._check_parameters()
    for array, name in ((source.first.X, "X"), (source.first.T, "y")):
        model._check_components(array, name)
    return model._draft(source)


@dataclass(frozen=True)
class Parts:
    """All that a fitted model is made of, beside its class and its parameters.

    numbers : what `fit` found, by attribute
    arrays : fitted arrays, by attribute
    certainty : what rows that were left out tell, if any were
    container : what `set_output` was told, if anything
    multilabel : whether the outputs are several labels a row
    """

    network: Network
    numbers: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    accumulator: Accumulator | Asleep | None
    scales: Scales | None
    container: str | None
    certainty: Certainty | None = None
    multilabel: bool = False


# What `fit` found, with its type.
NUMBERS: dict[str, type] = {
    "rank_": int,
    "condition_": float,
    "ridge_": float,
    "weight_scale_": float,
    "n_samples_seen_": int,
}


def saved_arrays(model_class: type[BaseELM]) -> tuple[str, ...]:
    """The fitted arrays that a file of such a model must hold."""
    return model_class._saved


def optional_arrays(model_class: type[BaseELM]) -> tuple[str, ...]:
    """The fitted arrays that a file of such a model may hold."""
    return model_class._saved_if_there


def taken_apart(model: BaseELM) -> Parts:
    """The parts of a fitted model, with its weights in NumPy."""
    names = [name for name in ("feature_names_in_", "classes_", *optional_arrays(type(model))) if hasattr(model, name)]
    arrays = {name: to_numpy(getattr(model, name)) for name in (*names, *saved_arrays(type(model)))}
    numbers = {name: wanted(getattr(model, name)) for name, wanted in NUMBERS.items()}
    numbers |= {"loo_error_": model.loo_error_, "solver_": model.solver_}
    container = getattr(model, "_sklearn_output_config", {}).get("transform")
    network = model.network_.to(np.zeros(0))
    multilabel = bool(getattr(model, "multilabel_", False))
    parts = network, numbers, arrays, model._accumulator, model._scales, container
    return Parts(*parts, certainty=model._certainty, multilabel=multilabel)


def put_together(model_class: type[E], parameters: Mapping[str, Any], parts: Parts) -> E:
    """The model with these parameters and parts."""
    model = model_class(**parameters)
    BaseELM._check_parameters(model)  # without checks that take long, such as those for principal components
    layout = parts.network.input
    model.n_features_in_ = layout.shape(1)[1]
    model._form = Form.of_layout(layout)
    model.__dict__.update(parts.numbers, **parts.arrays)
    model.network_, model._accumulator, model._scales = parts.network, parts.accumulator, parts.scales
    model._certainty = parts.certainty
    if parts.multilabel:
        model.multilabel_ = True
    if parts.container is not None:
        model.set_output(transform=parts.container)
    model._check_restored()
    return model
