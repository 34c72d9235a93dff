"""Pipelines of scikit-learn's own scalers, encoders and imputers as JSON and named arrays.

A step is a *node* of the header: its class, the parameters that differ from their defaults, the number of columns that
it was fitted to, and the nodes of the steps within it. What it learned from data are arrays, whose names begin with the
place of the step. Classes and attributes are those of a fixed list, so reading a file runs no code. Private attributes
of scikit-learn are not written: they follow from the others (`restoring`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from hyperelm._files.container import LONGEST_NUMBER, Arrays

Node = dict[str, Any]

WORDS = ("passthrough", "drop")
NAMES = "feature_names_in_"
DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool", "object")

# Fitted arrays: n is the number of columns, k that of components, 1 a single number, and with ? it may be missing.
ATTRIBUTES: dict[type, dict[str, str]] = {
    StandardScaler: {"mean_": "n?", "var_": "n?", "scale_": "n?", "n_samples_seen_": "1n"},
    MinMaxScaler: {
        **dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "n"),
        "n_samples_seen_": "1",
    },
    MaxAbsScaler: {"max_abs_": "n", "scale_": "n", "n_samples_seen_": "1"},
    RobustScaler: {"center_": "n?", "scale_": "n?"},
    PCA: {
        "components_": "kn",
        "mean_": "n",
        **dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), "k"),
        **dict.fromkeys(("noise_variance_", "n_samples_", "n_components_"), "1"),
    },
    SimpleImputer: {"statistics_": "n"},
    OneHotEncoder: {},
    OrdinalEncoder: {},
}
CLASSES = {kind.__name__: kind for kind in (*ATTRIBUTES, ColumnTransformer, Pipeline)}
# Parameters of which files hold one value only.
FIXED: dict[type, dict[str, Any]] = {
    OneHotEncoder: {"min_frequency": None, "max_categories": None},
    OrdinalEncoder: {"min_frequency": None, "max_categories": None},
    ColumnTransformer: {"transformer_weights": None},
    Pipeline: {"memory": None, "transform_input": None},
}


# ---------------------------------------------------------------------- from a pipeline


Own = Callable[[Any], tuple[Node, Arrays] | None]


def described(pipeline: Pipeline, own: Own) -> tuple[Any, Arrays]:
    """The node of a pipeline, and the arrays that it refers to.

    `own` makes the node and the arrays of an estimator of hyperelm, or None of anything else.
    """
    last = pipeline.steps[-1][1]
    if own(last) is None:
        raise ValueError(
            f"`model` must be a pipeline whose last step is an estimator of hyperelm, got {type(last).__name__}."
        )
    writer = Writer(own)
    return writer.node(pipeline), writer.arrays


class Writer:
    """Nodes of steps, and the arrays that they refer to."""

    def __init__(self, own: Own) -> None:
        self._own = own
        self.arrays: Arrays = {}

    def node(self, step: Any, place: str = "") -> Node | str:
        """A step as JSON. The names of its arrays begin with `place`."""
        if isinstance(step, str) and step in WORDS:
            return step
        if step is None or is_passthrough(step):
            return "passthrough"
        if (own := self._own(step)) is not None:
            node, arrays = own
            self.arrays |= {place + name: array for name, array in arrays.items()}
            return {"class": "ELM", "model": node}
        kind = type(step)
        if kind not in CLASSES.values():
            known = ", ".join(sorted(CLASSES))
            raise ValueError(
                f"`model` must be a pipeline of estimators of hyperelm and of {known}, got a step of the class "
                f"{kind.__name__}. Use skops or, for files of your own, pickle."
            )
        check_is_fitted(step)
        node = {"class": kind.__name__, "parameters": self._parameters(step)}
        config = getattr(step, "_sklearn_output_config", {}).get("transform")
        if config is not None:
            node["container"] = config
        if kind is Pipeline:
            node["steps"] = [[name, self.node(inner, f"{place}{n}.")] for n, (name, inner) in enumerate(step.steps)]
            return node
        node["columns"] = int(step.n_features_in_)
        if hasattr(step, NAMES):
            self.arrays[place + NAMES] = step.feature_names_in_
        if kind is ColumnTransformer:
            return node | self._of_columns(step, place)
        for name, form in ATTRIBUTES[kind].items():
            if (value := getattr(step, name)) is not None or "?" not in form:
                self.arrays[place + name] = np.asarray(value)
        if kind is SimpleImputer:
            node |= self._of_imputer(step, place)
        if kind in (OneHotEncoder, OrdinalEncoder):
            node |= self._of_encoder(step, place)
        return node

    def _parameters(self, step: BaseEstimator) -> Node:
        defaults = type(step)(**dict.fromkeys(inner_steps(type(step)), ())).get_params(deep=False)
        parameters = {}
        for name, value in step.get_params(deep=False).items():
            where = f"{name} of {type(step).__name__}"
            if name in (wanted := FIXED.get(type(step), {})) and value is not wanted[name]:
                raise ValueError(f"`{where}` must be {wanted[name]} to be saved, got {value!r}.")
            is_step = name in inner_steps(type(step)) or (name == "remainder" and not isinstance(value, str))
            if not is_step and not _same(value, defaults[name]):
                parameters[name] = _plain(value, where)
        return parameters

    def _of_columns(self, step: ColumnTransformer, place: str) -> Node:
        inputs = step._transformer_to_input_indices
        parts = []
        for n, (name, inner, columns) in enumerate(step.transformers_):
            # A step without columns was not fitted, and does nothing.
            node = self.node(inner, f"{place}{n}.") if len(inputs[name]) else "drop"
            where = step.output_indices_.get(name, slice(0, 0))
            scalar = bool(np.isscalar(columns))
            parts.append([name, node, scalar, [int(at) for at in inputs[name]], [where.start, where.stop]])
        return {"parts": parts, "sparse": bool(step.sparse_output_)}

    def _of_imputer(self, step: SimpleImputer, place: str) -> Node:
        values = step.statistics_.tolist()
        if step.statistics_.dtype == object and all(isinstance(value, (int, float)) for value in values):
            self.arrays[place + "statistics_"] = np.array(values, dtype=np.float64)
        if step.indicator_ is not None:
            self.arrays[place + "indicator"] = step.indicator_.features_
        types = step._fit_dtype, getattr(step, "_fill_dtype", step._fit_dtype)
        return {"dtypes": [_name_of_dtype(dtype, "dtype of SimpleImputer") for dtype in types]}

    def _of_encoder(self, step: Any, place: str) -> Node:
        mixed: list[Any] = [None] * len(step.categories_)
        for n, categories in enumerate(step.categories_):
            if categories.dtype == object and not all(isinstance(one, str) for one in categories):
                mixed[n] = _plain(categories, f"categories_ of {type(step).__name__}")  # with None or NaN, say
            else:
                self.arrays[f"{place}categories.{n}"] = categories
        if isinstance(step, OrdinalEncoder) or step.drop_idx_ is None:
            return {"mixed": mixed}
        return {"mixed": mixed, "drop": [None if at is None else int(at) for at in step.drop_idx_]}


def inner_steps(kind: type) -> tuple[str, ...]:
    """The parameters that hold other steps."""
    return {Pipeline: ("steps",), ColumnTransformer: ("transformers",)}.get(kind, ())


def is_passthrough(step: Any) -> bool:
    return type(step) is FunctionTransformer and step.func is None and step.inverse_func is None


def _same(value: Any, default: Any) -> bool:
    both_nan = all(isinstance(one, float) and math.isnan(one) for one in (value, default))
    return (
        both_nan or value is default or (type(value) is type(default) and isinstance(value, str) and value == default)
    )


def _name_of_dtype(dtype: Any, where: str) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    name = "object" if name.startswith("str") else name
    if name not in DTYPES:
        raise ValueError(f"`{where}` must be one of {', '.join(DTYPES)} to be saved, got {dtype!r}.")
    return name


def _plain(value: Any, where: str) -> Any:
    """A parameter as JSON has it; what JSON has not is an object of one entry."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and len(str(value)) <= LONGEST_NUMBER:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (list, np.ndarray)):
        return [_plain(item, where) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(item, where) for item in value]}
    if isinstance(value, (type, np.dtype)):
        return {"dtype": _name_of_dtype(value, where)}
    raise ValueError(f"`{where}` must be a number, a text or a list of them to be saved, got {value!r}.")
