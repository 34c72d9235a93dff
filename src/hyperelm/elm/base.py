"""What the three estimators share: one random layer, one least-squares problem.

Training reads the rows in blocks, takes each through the hidden layer and into an accumulator, and solves

    min ‖[h, x, 1] M - T‖² + λ‖M‖²,

where the row of M that belongs to the bias is not penalised (section 4 of the paper, with ridge).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hyperelm import activations, algebras
from hyperelm._arrays import numpy_dtype, to_numpy
from hyperelm._validation import check_choice, check_whole
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.checks import BiasOnlyWarning, RankDeficiencyWarning, RowChecks
from hyperelm.elm.dispatch import check_place, kept_beside, precision
from hyperelm.elm.drawing import Drawn, Encoder, Given, check_weight_scale, random_generator, times_auto
from hyperelm.elm.layout import Layout
from hyperelm.elm.passes import FirstLook, Sampling, Seen, Summary, Targets, Training, values
from hyperelm.elm.prediction import Prediction
from hyperelm.elm.rows import Array, Blocks, Local, Rows, Source, add_all, is_blocks, itself
from hyperelm.elm.scales import Scales
from hyperelm.packing import components
from hyperelm.solvers import QR, AllRows, Gram, Solution
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.choice import KINDS, METHODS, answer
from hyperelm.solvers.ridge import Choice, best_by_loo, combinations, sample_size
from hyperelm.solvers.solve import check_ridge
from hyperelm.solvers.spectrum import LABELS, VALUES, Caution
from hyperelm.solvers.team import Team, one_blas

# Pre-activations of this root mean square: in the bend of tanh, where a layer is neither linear nor saturated.
AUTO_SCALE = 0.5
# The bias of a neuron has twice that. On hundreds of real tables as large a bias as the rest makes networks over
# algebras worse: without it a layer of odd functions lacks even ones, which must cancel the unused components of a
# target.
AUTO_BIAS = 1.0


class BaseELM(RowChecks, Prediction, BaseEstimator):
    """Parameters, hidden layer, training and prediction of an extreme learning machine."""

    n_features_in_: int
    loo_error_: float | None
    _saved: tuple[str, ...] = ()  # fitted arrays that a file holds besides those of every model
    _state: Accumulator | Mapping[str, NDArray[Any]] | None  # a mapping until a model from a file goes on
    _scales: Scales | None = None  # None where nobody looked, as in files of earlier releases

    def __init__(
        self,
        algebra: str | Algebra = "quaternions",
        n_hidden: int = 100,
        *,
        activation: str | Activation = "tanh",
        weight_scale: str | float = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        ridge: float | str = "auto",
        solver: str = "auto",
        chunk_size: int | None = None,
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
        self.ridge = ridge
        self.solver = solver
        self.chunk_size = chunk_size
        self.random_state = random_state
        self.verbose = verbose

    def _start_fit(self) -> None:
        """Forget an earlier fit, so that one that fails leaves no mixture of both, and check the parameters."""
        self.__dict__.pop("output_weights_", None)
        self._check_parameters()

    def _check_parameters(self) -> None:
        self.algebra_ = algebras.get(self.algebra)
        self._activation = activations.get(self._activation_name())
        components(self.packing, self.algebra_, "packing")
        self._check_solver()
        check_whole(self.n_hidden, "n_hidden")
        for name in ("bias", "direct_link"):
            if not isinstance(value := getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"`{name}` must be True or False, got {value!r}.")
        check_weight_scale(self.weight_scale)

    def _check_solver(self) -> None:
        check_ridge(self.ridge)
        check_choice(self.solver, METHODS, "solver")
        self._check_chunk_size()

    def _activation_name(self) -> str | Activation:
        return self.activation

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """The rows that a call of `fit` is about."""
        if is_blocks(X):
            for name, value in (("y", y), ("sample_weight", sample_weight)):
                if value is not None:
                    raise ValueError(
                        f"`{name}` must be None where X gives blocks, got {type(value).__name__}. "
                        "Let X give tuples (X, y) or (X, y, sample_weight)."
                    )
            blocks = Blocks(X, self._check_rows)
            # What gives the same iterator again cannot start again.
            return Local(iter(blocks) if iter(X) is iter(X) else blocks, None, self._title())
        rows = self._check_rows(X, y, sample_weight, reset=True)
        return Local([rows], len(rows), self._title())

    def _title(self) -> str:
        return type(self).__name__ if self.verbose else ""

    # ------------------------------------------------------------------ hidden layer

    def _look(self, source: Source, labels: bool = False) -> Seen:
        """What must be known before the hidden layer is drawn, from the first rows where all are read but once."""
        look = FirstLook(self._input.columns, self._follows_norms(), labels)
        if not look.norms and not look.labels:
            return Seen()
        if source.once:
            return add_all(look, look.begin(), source.first, Team())
        return source.fold(look, itself)

    def _follows_norms(self) -> bool:
        return times_auto(self.weight_scale) is not None

    def _draw(self, source: Source, seen: Seen, dtype: np.dtype[Any]) -> Encoder:
        return self._random(seen, dtype)

    def _random(self, seen: Seen, dtype: np.dtype[Any]) -> Drawn:
        """The weights of the hidden layer, component by component from a normal distribution, and their scale."""
        self.weight_scale_ = self._scale(seen)
        # The input of the bias is 1 in any unit of the data, so a scale that follows the data leaves it out.
        times = times_auto(self.weight_scale)
        bias = self.weight_scale_ if times is None else times * AUTO_BIAS
        rng, D = random_generator(self.random_state), self._input.features
        return Drawn(rng, self.algebra_, D, self.n_hidden, dtype, self.weight_scale_, bias if self.bias else None)

    def _scale(self, seen: Seen) -> float:
        if self.weight_scale == "paper":
            return 10 / self._input.features
        times = times_auto(self.weight_scale)
        if times is None:
            return float(self.weight_scale)
        scale = times * AUTO_SCALE / (seen.norm if seen.norm > 0 else 1.0)
        if not math.isfinite(scale):
            raise ValueError(
                f"`X` must have rows of a size above 1e-300 for weight_scale={self.weight_scale!r}, got {seen.norm:g}. "
                "Divide `X` by its size, or give a number."
            )
        return scale

    # ------------------------------------------------------------------ training

    def _fit(self, source: Source) -> None:
        """Draw the hidden layer and fit the output layer to all rows."""
        X = source.first.X
        self._input, self._state = Layout.of(X, self.algebra_, self.packing), None
        encoder = self._draw(source, self._look(source), precision(X))
        self._output, self.hidden_weights_ = self._output_layout(source.first), kept_beside(encoder.weights, X)
        self._train(source, encoder, None)

    def _continue(self, rows: Rows) -> None:
        """Take in more rows, which are read once; the first of them fix the hidden layer."""
        if self.solver == "svd":
            raise ValueError(
                "`solver` must not be 'svd' for partial_fit, which does not keep rows. Use 'qr' or 'auto'."
            )
        if not self.__sklearn_is_fitted__():
            self._fit(Local(iter([rows]), len(rows), self._title()))
            return
        if self._state is None:
            raise ValueError(
                "partial_fit needs the summary of the rows seen, which this model lacks: solver='svd' keeps none, and "
                "a file has it only from `save(model, path, state=True)`. Save it so, or fit it again."
            )
        self._check_solver()  # which may have been changed since; the layers may not
        D, L, _ = self.hidden_weights_.shape
        if (self.n_hidden, self.bias, self.direct_link) != (L, self._input.features < D, self._linked):
            raise ValueError(
                "`n_hidden`, `bias` and `direct_link` must be what they were in the first call, for partial_fit: it "
                f"keeps the hidden layer, of {L} neurons. Set them back, or fit again."
            )
        if Layout.of(rows.X, self.algebra_, self.packing) != self._input:
            raise ValueError(f"`packing` must be what it was in the first call, for partial_fit, got {self.packing!r}.")
        if self._output_layout(rows) != self._output:
            wanted = self._output.shape(len(rows))
            raise ValueError(f"`y` must have the shape {wanted} of earlier calls, got {rows.T.shape}.")
        check_place(rows.X, self.hidden_weights_, f"{type(self).__name__}.partial_fit()")
        source, encoder = Local([rows], len(rows), self._title()), Given(to_numpy(self.hidden_weights_))
        self._train(source, encoder, self._resumed(self._state))

    def _resumed(self, state: Accumulator | Mapping[str, NDArray[Any]]) -> Accumulator:
        """The summary of the rows seen, which of a model from a file are arrays up to here."""
        if isinstance(state, Accumulator):
            return state
        (kind,) = KINDS[self.solver_]
        summary: Accumulator = kind(
            self.algebra_, self.output_weights_.shape[0], self._output.features, numpy_dtype(self.output_weights_)
        )
        summary.restore(state)
        return summary

    def _train(self, source: Source, encoder: Encoder, before: Accumulator | None) -> None:
        """Fit the output layer: to rows that can be read again where `auto` asks for it, or to rows read once.

        `before` is the summary of rows that were seen earlier.
        """
        kinds, fixed = KINDS[self.solver], None
        ridge = self._ridge_for(once=source.once or before is not None)
        if source.once:
            if self.solver == "auto" and not isinstance(ridge, str) and ridge > 0:
                fixed = ridge
            kinds = kinds[:1] if fixed else kinds[-1:]
        elif isinstance(before, QR):
            kinds = (QR,)  # there is no way back to normal equations
        for kind in kinds:
            training = self._training(kind, encoder, fixed, _resumed_as(kind, before))
            caution = LABELS if self._judged_by_labels() else VALUES
            solve = self._leave_one_out if ridge == "loo" else partial(_fold_and_solve, ridge=ridge, caution=caution)
            summary, solution, choice = solve(source, training, free=self._free(), final=kind is kinds[-1])
            if solution is not None:
                break
        if before is None:
            self._scales = self._scales_of(summary)
        assert solution is not None  # as the final word is
        self._finish(summary.state, solution, choice)

    def _ridge_for(self, *, once: bool) -> float | str:
        """A number, or how it is chosen from rows that are read `once` or more often."""
        if not isinstance(self.ridge, str):
            return float(self.ridge)
        if once and self.ridge == "loo":
            raise ValueError(
                "`ridge` must not be 'loo' where rows are read once, as by partial_fit and from an iterator: they must "
                "be read again to be left out. Use 'auto', 'gcv' or a number."
            )
        return self.ridge if self.ridge != "auto" else "gcv" if once else "loo"

    def _leave_one_out(
        self, source: Source, training: Training, free: list[int], final: bool
    ) -> tuple[Summary, Solution | None, Choice | None]:
        """The summary of all rows, and the solution with the ridge that a second pass finds."""
        summary = source.fold(training, _checked)
        state = summary.state
        if not (final or state.is_safe):
            return summary, None, None
        # Of all rows at once no row can be left out: their QR decomposition has the same errors.
        left_out = source.fold(replace(training, kind=QR), _checked).state if self.solver == "svd" else state
        labels = self._judged_by_labels()
        mix, places, columns = combinations(state.targets, labels=labels), self._output.places, self._output.columns
        if mix is not None:
            left_out = left_out.combined(mix)
            places = self._output.components_of(mix.shape[1])
        sampling = Sampling(training, min(1.0, sample_size(state) / max(state.counted, 1)), mix)
        # The sample of rows stays where it is gathered: only the choice comes back from a cluster.
        find = partial(best_by_loo, left_out, free=free, places=places, columns=columns, labels=labels)
        with one_blas():  # threads of NumPy that wait for work after the pass would slow down those of the solution
            choice = source.fold(sampling, find)
        seen = state.shows(choice.error * columns * state.weight)
        trusted = final or (seen and not choice.cut_off)
        solution = answer(state, choice.ridge, free=free, final=final) if trusted else None
        return summary, solution and replace(solution, is_bias_only=choice.is_bias_only), choice

    def _training(
        self, kind: type[Accumulator], encoder: Encoder, ridge: float | None, before: Accumulator | None
    ) -> Training:
        return Training(
            kind=kind,
            encoder=encoder,
            bias=bool(self.bias),
            direct_link=self.direct_link,
            activation=self._activation,
            algebra=self.algebra_,
            input=self._input,
            output=self._output,
            targets=self._targets(),
            chunk_size=self.chunk_size,
            ridge=ridge,
            before=before,
        )

    def _scales_of(self, summary: Summary) -> Scales | None:
        """Where the columns of the rows lie that the first fit saw."""
        return summary.scales

    def _judged_by_labels(self) -> bool:
        """Whether labels, not values, are what the outputs are for."""
        return False

    def _output_layout(self, rows: Rows) -> Layout:
        return Layout.of(rows.T, self.algebra_, self.packing)

    def _targets(self) -> Targets:
        return values

    def _width(self) -> int:
        """The rows of the output weights: neurons, inputs that are linked directly, bias."""
        return self.n_hidden + (self._input.features if self.direct_link else 0) + bool(self.bias)

    def _free(self) -> list[int]:
        """Those of them that ridge does not penalise: the bias."""
        return [self._width() - 1] if self.bias else []

    def _finish(self, state: Accumulator, solution: Solution, choice: Choice | None) -> None:
        """Keep the summary for `partial_fit` and the solution, and build what prediction needs."""
        self._state = None if isinstance(state, AllRows) else state
        self.output_weights_ = kept_beside(solution.x, self.hidden_weights_)
        self.rank_, self.condition_, self.ridge_ = solution.rank, solution.condition, solution.ridge
        self.n_parameters_ = math.prod(self.hidden_weights_.shape) + math.prod(self.output_weights_.shape)
        self.loo_error_ = None if choice is None else choice.error
        self.n_samples_seen_, self.solver_ = state.rows, state.method
        self._build_operators()
        if solution.is_bias_only:
            predicted = "the mean of the targets" if self.bias else "zero"
            warnings.warn(
                f"No ridge does better than {predicted} on rows that were left out, so that is what the model predicts "
                f"for every row ({state.rows} rows, {self.n_hidden} neurons). Check the inputs and their scales, or "
                "give more rows.",
                BiasOnlyWarning,
                stacklevel=5,
            )
        full = self.algebra_.dim * len(solution.x)
        if self.ridge == 0 and solution.rank < full:
            warnings.warn(
                f"The hidden layer has rank {solution.rank} of {full} on {state.rows} rows: "
                "the output weights of least norm were taken. Use fewer neurons, more rows, or a ridge.",
                RankDeficiencyWarning,
                stacklevel=5,
            )

    def _checked_for_prediction(self, X: Any, method: str) -> Array:
        check_is_fitted(self, "output_weights_")
        X = self._check_X(X, reset=False)
        check_place(X, self.hidden_weights_, f"{type(self).__name__}.{method}()")
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "output_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags


def _checked(summary: Summary) -> Summary:
    if summary.state.rows > 0 and summary.state.weight == 0:
        raise ValueError(f"`sample_weight` must not be zero for all {summary.state.rows} rows.")
    return summary


def _fold_and_solve(
    source: Source, training: Training, free: list[int], final: bool, ridge: float | str, caution: Caution
) -> tuple[Summary, Solution | None, None]:
    """The summary of all rows, and the solution where that summary lies."""
    return *source.fold(training, partial(_solved, ridge=ridge, free=free, final=final, caution=caution)), None


def _solved(
    summary: Summary, ridge: float | str, free: Sequence[int], final: bool, caution: Caution
) -> tuple[Summary, Solution | None]:
    return _checked(summary), answer(summary.state, ridge, free=free, final=final, caution=caution)


def _resumed_as(kind: type[Accumulator], before: Accumulator | None) -> Accumulator | None:
    """A summary to go on with: a copy, since rows may be refused when others were taken in already."""
    if isinstance(before, Gram) and kind is QR:
        return QR.following(before)
    return deepcopy(before)
