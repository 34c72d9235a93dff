"""ELMs for a frame whose columns have names and units of their own.

Columns and targets are standardised for training: x' = (x - a)/s and t' = (t - b)/u. The matrices of the network
contain both scales (`Scaling`), so raw columns go in and come out. Labels are not standardised: b = 0 and u = 1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import is_complex, without_others
from hyperelm._estimators.base import BaseELM
from hyperelm._estimators.checks import precision
from hyperelm._estimators.classifier import ELMClassifier
from hyperelm._estimators.columns import ColumnPlan, listed
from hyperelm._estimators.regressor import ELMRegressor
from hyperelm._network.network import Scaling
from hyperelm._training.fitting import Fitted
from hyperelm._training.rows import Array, Rows, Stored
from hyperelm._training.scales import Columns, Scales
from hyperelm._validation import FloatArray

_SHOWN = 20  # a message lists at most so many names of columns


class NamedColumns(BaseELM):
    """The input columns of a frame: their names, their scales, and how they came from a file."""

    input_offset_: FloatArray
    input_scale_: FloatArray
    column_names_: NDArray[Any]
    target_names_: NDArray[Any]
    window_: NDArray[np.intp]
    horizon_: NDArray[np.intp]
    plan_json_: NDArray[Any]

    _saved: tuple[str, ...] = ("input_offset_", "input_scale_", "column_names_", "target_names_", "window_")
    _saved_if_there = ("horizon_", "plan_json_")  # which files of earlier formats lack

    def name_columns(
        self,
        columns: list[str],
        targets: list[str],
        window: int = 0,
        *,
        horizon: int = 1,
        plan: ColumnPlan | None = None,
    ) -> Self:
        """Remember the names of the columns of a file, and how many of its rows make one input of a series.

        Parameters
        ----------
        columns, targets : list of str
        window : int
            0 where the rows are no series.
        horizon : int
            How many rows after the last one of a window the target is.
        plan : ColumnPlan, optional
            How the columns of a file became `columns`. By default they are taken as they are.

        Returns
        -------
        self
        """
        self.column_names_, self.target_names_ = (np.array(names, dtype=object) for names in (columns, targets))
        self.window_, self.horizon_ = np.array([window]), np.array([horizon])
        self.__dict__.pop("plan_json_", None)
        if plan is not None:
            self.plan_json_ = np.array([json.dumps(plan.to_json(), ensure_ascii=False)], dtype=object)
        return self

    @property
    def plan_(self) -> ColumnPlan:
        """What was done to the columns of the file."""
        if not hasattr(self, "plan_json_"):
            return ColumnPlan.of_numbers(self.column_names_.tolist())
        return ColumnPlan.from_json(json.loads(self.plan_json_[0]))

    def _scaled(self, rows: Rows, *, reset: bool) -> tuple[FloatArray, NDArray[Any]]:
        """The inputs, standardised on the scales of the first rows, and the targets as they are."""
        are_columns = rows.X.ndim == 2 and rows.T.ndim <= 2 and not (is_complex(rows.X) or is_complex(rows.T))
        if isinstance(rows.X, Stored) or isinstance(rows.T, Stored) or not are_columns:
            raise ValueError(
                f"`X` and `y` must be columns in memory, not complex, got shapes {rows.X.shape} and {rows.T.shape}. "
                f"For other rows use `{type(self).__mro__[2].__name__}`."
            )
        if reset:
            self.input_offset_, self.input_scale_ = _standard(rows.X, precision(rows.X))
        return (rows.X - self.input_offset_) / self.input_scale_, rows.T

    def _check_X(self, X: Any, *, reset: bool, before: int | None = None) -> Array:
        """A validated array. The columns of a DataFrame are taken by name where the model knows names of a file."""
        if not reset and self._knows_names() and (names := _names_of(X)):
            X = self._by_name(X, names)
        return super()._check_X(X, reset=reset, before=before)

    def _knows_names(self) -> bool:
        """Whether `name_columns` was called. If a DataFrame was fitted, scikit-learn checks the names instead."""
        columns = self.column_names_.tolist()
        named = hasattr(self, "plan_json_") or columns != [str(n) for n in range(len(columns))]
        return named and not hasattr(self, "feature_names_in_")

    def _by_name(self, X: Any, names: list[str]) -> Any:
        """The input columns of a DataFrame, which has either the columns of the file or those after the plan."""
        plan, window = self.plan_, int(self.window_[0])
        of_file = [step.name for step in plan.used]
        if window > 1:
            if {*of_file}.isdisjoint(names):
                return X  # windows, whose columns have other names
            raise ValueError(
                f"`X` must have windows as rows, {window} rows of {_quoted(of_file)} beside each other, got a frame "
                f"with the columns {_few(names)}. For the rows of a series use the command `hyperelm predict MODEL "
                "DATA`, or make windows with `hyperelm.datasets.sliding_windows`."
            )
        if plan.features != of_file and {*plan.features} <= {*names}:
            plan = ColumnPlan.of_numbers(plan.features)
        wanted = [step.name for step in plan.used]
        lacking = [name for name in wanted if name not in names]
        if lacking:
            noun = "columns" if len(lacking) > 1 else "column"
            raise ValueError(
                f"`X` must have the {noun} {_quoted(lacking)}, which the model needs, got {_few(names)}. Columns are "
                "taken by name, in any order."
            )
        for name in wanted:
            if (count := names.count(name)) > 1:
                raise ValueError(f"`X` must have one column {name!r}, got {count}. Give them different names.")
        return plan.apply_to_cells(X)

    def _name_by_number(self, inputs: int, targets: int) -> None:
        self.name_columns([str(n) for n in range(inputs)], [str(n) for n in range(targets)])

    def _check_columns(self, outputs: int, *scales: tuple[FloatArray, int]) -> None:
        """Refuse what a file says of its columns where that does not fit together."""
        inputs, window, names = self.network_.input.columns, self.window_, (self.column_names_, self.target_names_)
        scales = ((self.input_offset_, inputs), (self.input_scale_, inputs), *scales)
        self.__dict__.setdefault("horizon_", np.array([1]))
        if not (
            all(array.shape == (n,) and array.dtype.kind == "f" and np.isfinite(array).all() for array, n in scales)
            and self.input_scale_.all()
            and all((of.shape, of.dtype.kind) == ((1,), "i") for of in (window, self.horizon_))
            and self.horizon_[0] >= 1
            and all(array.ndim == 1 and array.dtype == object for array in names)
            and (len(names[0]) * max(int(window[0]), 1), len(names[1])) == (inputs, outputs)
        ):
            raise ValueError("what it says of its columns does not fit together")
        self._check_plan()
        self.network_ = replace(self.network_, scaling=self._scaling())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_plan(self) -> None:
        if hasattr(self, "plan_json_") and (self.plan_json_.shape != (1,) or self.plan_json_.dtype != object):
            raise ValueError("its plan of the columns is not a text")
        try:
            features = self.plan_.features
        except RecursionError:
            raise ValueError("its plan of the columns is none") from None
        if features != self.column_names_.tolist():
            raise ValueError("its plan of the columns does not fit their names")


class FrameRegressor(NamedColumns, ELMRegressor):
    """`ELMRegressor` for frames (n, columns) in any units. `hyperelm fit` saves such models.

    It standardises columns and targets by itself, on the scales of the first rows that it sees. Rows of other array
    libraries are copied to NumPy.

    Parameters
    ----------
    algebra, n_hidden, activation, weight_scale, bias, packing, direct_link, readout, ridge, solver, chunk_size, \
half_life, random_state, verbose
        As for `ELMRegressor`.

    Attributes
    ----------
    input_offset_, input_scale_ : arrays of shape (columns,)
        The mean and the standard deviation of every input column. The deviation of a constant column is set to 1.
    output_offset_, output_scale_ : arrays of shape (targets,)
    column_names_, target_names_ : arrays of texts
        The names of the input and target columns of a file. By default they are numbers.
    window_, horizon_ : arrays of one int
        The number of consecutive rows that make one input of a series, 0 where rows are no series; and how many rows
        after the last of them the target is.
    plan_ : ColumnPlan
        What was done to the columns of the file, so that they became input columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import FrameRegressor
    >>> metres = np.random.default_rng(0).standard_normal((100, 4))
    >>> far = FrameRegressor("klein4", 8, random_state=0).fit(1000 * metres + 50, metres[:, 0])
    >>> near = FrameRegressor("klein4", 8, random_state=0).fit(metres, metres[:, 0])
    >>> bool(np.allclose(far.predict(1000 * metres + 50), near.predict(metres)))
    True
    """

    output_offset_: FloatArray
    output_scale_: FloatArray

    _saved = (*NamedColumns._saved, "output_offset_", "output_scale_")

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        X, y = without_others(X), without_others(y)
        rows = super()._check_rows(X, y, sample_weight, reset=reset, before=before)
        inputs, T = self._scaled(rows, reset=reset)
        targets = T.reshape(len(rows), -1)
        if reset:
            self.output_offset_, self.output_scale_ = _standard(targets, precision(rows.X))
            self._name_by_number(inputs.shape[1], targets.shape[1])
        scaled = (targets - self.output_offset_) / self.output_scale_
        return Rows(inputs, scaled.reshape(T.shape), rows.weight)

    def _scaling(self) -> Scaling:
        return Scaling(self.input_offset_, self.input_scale_, self.output_offset_, self.output_scale_)

    def _scales_of(self, fitted: Fitted) -> Scales:
        return Scales(
            _columns(self.input_offset_, self.input_scale_), _columns(self.output_offset_, self.output_scale_)
        )

    def _check_restored(self) -> None:
        outputs = self.network_.output.columns
        self._check_columns(outputs, (self.output_offset_, outputs), (self.output_scale_, outputs))


class FrameClassifier(NamedColumns, ELMClassifier):
    """`ELMClassifier` for frames (n, columns) in any units. `hyperelm fit` saves such models for labels.

    It standardises columns by itself, on the scales of the first rows that it sees. Rows of other array libraries are
    copied to NumPy.

    Parameters
    ----------
    algebra, n_hidden, activation, weight_scale, bias, packing, direct_link, readout, ridge, solver, chunk_size, \
half_life, class_weight, random_state, verbose
        As for `ELMClassifier`.

    Attributes
    ----------
    input_offset_, input_scale_ : arrays of shape (columns,)
        The mean and the standard deviation of every input column. The deviation of a constant column is set to 1.
    column_names_, target_names_ : arrays of texts
        The names of the input columns and of the labels of a file. By default they are numbers.
    plan_ : ColumnPlan
        What was done to the columns of the file, so that they became input columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hyperelm import FrameClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FrameClassifier("klein4", n_hidden=20, random_state=0).fit(1000 * X + 50, y)
    >>> bool(model.score(1000 * X + 50, y) > 0.95)
    True
    """

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        rows = super()._check_rows(without_others(X), y, sample_weight, reset=reset, before=before)
        inputs, labels = self._scaled(rows, reset=reset)
        if reset:
            self._name_by_number(inputs.shape[1], 1)
        return Rows(inputs, labels, rows.weight)

    def _scaling(self) -> Scaling:
        outputs = len(self.classes_)
        dtype = self.input_scale_.dtype
        return Scaling(self.input_offset_, self.input_scale_, np.zeros(outputs, dtype), np.ones(outputs, dtype))

    def _scales_of(self, fitted: Fitted) -> Scales | None:
        scales = fitted.scales
        return None if scales is None else replace(scales, inputs=_columns(self.input_offset_, self.input_scale_))

    def _check_restored(self) -> None:
        super()._check_restored()
        self._check_columns(1)


def _names_of(X: Any) -> list[str]:
    """The names of the columns of a DataFrame; none where they are not all texts, or where X is something else."""
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "__getitem__") else []
    return names if all(isinstance(name, str) for name in names) else []


def _quoted(names: list[str]) -> str:
    return listed([repr(name) for name in names])


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _columns(mean: FloatArray, spread: FloatArray) -> Columns:
    return Columns(mean.astype(np.float64), spread.astype(np.float64))


def _standard(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of every column. The latter is 1 where only rounding varies."""
    columns = Columns.of(values)
    return columns.mean.astype(dtype), np.where(columns.spread > 0, columns.spread, 1.0).astype(dtype)
