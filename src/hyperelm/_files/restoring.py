"""Pipelines from what `pipelines` wrote: every claim is checked before it becomes an attribute of a step.

Private attributes of scikit-learn's classes follow from the public ones. They are those of scikit-learn 1.6 and later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from hyperelm._files.container import Arrays, shown
from hyperelm._files.pipelines import (
    ATTRIBUTES,
    CLASSES,
    DTYPES,
    FIXED,
    NAMES,
    WORDS,
    Node,
    inner_steps,
    is_passthrough,
)

_DEEPEST = 8  # pipelines within pipelines
# What a scaler must have learned if a parameter is true.
_NEEDED = (("mean_", "with_mean"), ("scale_", "with_std"), ("center_", "with_centering"), ("scale_", "with_scaling"))
_CONTAINERS = ("default", "pandas", "polars")


def restored(node: Any, arrays: Arrays, own: Callable[[Node, Arrays], Any]) -> Pipeline:
    """The pipeline of a node. `own` makes an estimator of hyperelm from its node and its arrays."""
    pipeline = Reader(arrays, own).step(node)
    if not isinstance(pipeline, Pipeline):
        raise ValueError("its header lacks 'pipeline'")
    if arrays:
        raise ValueError(f"it holds the unknown array {shown(min(arrays))}")
    return pipeline


class Reader:
    """Steps from nodes and arrays. Arrays are taken out, so that what is left was not expected."""

    def __init__(self, arrays: Arrays, own: Callable[[Node, Arrays], Any]) -> None:
        self.arrays, self._own = arrays, own

    def step(self, node: Any, place: str = "", depth: int = 0) -> Any:
        if isinstance(node, str) and node in WORDS:
            return node
        if not isinstance(node, dict) or depth > _DEEPEST:
            raise ValueError("a step of its pipeline is none")
        if node.get("class") == "ELM":
            names = [name for name in self.arrays if name.startswith(place)]
            model = node.get("model")
            if not isinstance(model, dict):
                raise ValueError("a model within it has no header")
            return self._own(model, {name.removeprefix(place): self.arrays.pop(name) for name in names})
        kind = CLASSES.get(str(node.get("class")))
        if kind is None:
            raise ValueError(f"it has a step of the class {shown(str(node.get('class')))}, which this release lacks")
        if kind is Pipeline:
            step = Pipeline(self._steps(node, place, depth), **self._parameters(node, kind))
            step._validate_steps()
        else:
            step = self._transformer(kind, node, place, depth)
        step._validate_params()
        if (config := node.get("container")) is not None:
            if config not in _CONTAINERS:
                raise ValueError("the frames that a step gives are not of a known library")
            step._sklearn_output_config = {"transform": config}
        return step

    def _transformer(self, kind: type, node: Node, place: str, depth: int) -> Any:
        n = node.get("columns")
        if type(n) is not int or not 0 < n < 2**31:
            raise ValueError("a step does not say how many columns it takes")
        step = kind(**{name: [] for name in inner_steps(kind)}, **self._parameters(node, kind))
        step.n_features_in_ = n
        if place + NAMES in self.arrays:
            step.feature_names_in_ = self._texts(place + NAMES, n)
        if kind is ColumnTransformer:
            self._set_columns(step, node, place, depth)
            return step
        self._set_arrays(step, place, n)
        for attribute, parameter in _NEEDED:
            if getattr(step, parameter, False) and getattr(step, attribute, ...) is None:
                raise ValueError(f"it lacks {attribute} of a step with {parameter}")
        if kind is SimpleImputer:
            self._set_imputer(step, node, place, n)
        if kind in (OneHotEncoder, OrdinalEncoder):
            self._set_categories(step, node, place, n)
        return step

    def _steps(self, node: Node, place: str, depth: int) -> list[tuple[str, Any]]:
        steps = _list(node.get("steps"))
        if not all(isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) for part in steps):
            raise ValueError("the steps of its pipeline have no names")
        if depth == 0 and not (steps and isinstance(steps[-1][1], dict) and steps[-1][1].get("class") == "ELM"):
            raise ValueError("the last step of its pipeline is no model")
        return [(name, self.step(inner, f"{place}{n}.", depth + 1)) for n, (name, inner) in enumerate(steps)]

    def _parameters(self, node: Node, kind: type) -> Node:
        parameters = node.get("parameters")
        if not isinstance(parameters, dict):
            raise ValueError("a step lacks its parameters")
        # What has steps cannot be made without them, so scikit-learn is asked for the names alone.
        # `type` has neither of the two: every estimator of scikit-learn has both.
        names = kind._get_param_names if inner_steps(kind) else kind().get_params  # type: ignore[attr-defined]
        known = set(names())
        unknown = parameters.keys() - (known - {*inner_steps(kind), *FIXED.get(kind, ())})
        if unknown:
            name = shown(min(unknown))
            raise ValueError(f"a step has the parameter {name}, which {kind.__name__} lacks in this scikit-learn")
        return {name: _parameter(value) for name, value in parameters.items()}

    def _set_arrays(self, step: Any, place: str, n: int) -> None:
        """The fitted arrays of a scaler, an imputer or PCA."""
        components = self.arrays.get(place + "components_", np.zeros(0))
        sizes = {"n": n, "k": len(components) if components.ndim else 0}
        for name, form in ATTRIBUTES[type(step)].items():
            if "?" in form and place + name not in self.arrays:
                setattr(step, name, None)
                continue
            array = self._take(place + name)
            shapes = [tuple(sizes[axis] for axis in form if axis in sizes)]
            shapes += [()] if "1" in form else []
            numeric = array.dtype.kind in "fiu" or (name == "statistics_" and array.dtype == object)
            if array.shape not in shapes or not numeric:
                raise ValueError(f"the array {shown(name)} of a step has another shape or type")
            setattr(step, name, array if array.ndim else array.item())

    def _set_imputer(self, step: SimpleImputer, node: Node, place: str, n: int) -> None:
        dtypes = _list(node.get("dtypes"))
        if len(dtypes) != 2 or not all(dtype in DTYPES for dtype in dtypes):
            raise ValueError("an imputer does not say the type of its columns")
        step._fit_dtype, step._fill_dtype = map(np.dtype, dtypes)
        step.indicator_ = None
        if step.add_indicator:
            at = self._take(place + "indicator")
            if at.ndim != 1 or at.dtype.kind != "i" or (at.size and not 0 <= at.min() <= at.max() < n):
                raise ValueError("the missing values that an imputer marks are not those of its columns")
            indicator = MissingIndicator(missing_values=step.missing_values, error_on_new=False)
            indicator.features_, indicator._n_features, indicator.n_features_in_ = at, n, n
            indicator._precomputed = True
            step.indicator_ = indicator

    def _set_categories(self, step: Any, node: Node, place: str, n: int) -> None:
        mixed = _list(node.get("mixed"))
        step.categories_ = [
            self._take(f"{place}categories.{column}") if listed is None else _objects(listed)
            for column, listed in enumerate(mixed)
        ]
        if len(step.categories_) != n or not all(
            c.ndim == 1 and len(c) and c.dtype.kind in "biufO" for c in step.categories_
        ):
            raise ValueError("the categories of an encoder are not those of its columns")
        step._infrequent_enabled = False
        if isinstance(step, OrdinalEncoder):
            at_nan = [[at for at, one in enumerate(c) if _is_nan(one)] for c in step.categories_]
            step._missing_indices = {column: at[-1] for column, at in enumerate(at_nan) if at}
            return
        sizes, drop = [len(c) for c in step.categories_], node.get("drop")
        if drop is not None:
            at_place = [at is None or (type(at) is int and 0 <= at < size) for at, size in zip(_list(drop), sizes)]
            if len(drop) != n or not all(at_place):
                raise ValueError("the categories that an encoder drops are not among its own")
            sizes = [size - (at is not None) for size, at in zip(sizes, drop)]
            drop = np.array(drop, dtype=object)
        step.drop_idx_ = step._drop_idx_after_grouping = drop
        step._n_features_outs = sizes

    def _set_columns(self, step: ColumnTransformer, node: Node, place: str, depth: int) -> None:
        n, names = step.n_features_in_, getattr(step, NAMES, None)
        step.transformers_, step._transformer_to_input_indices, step.output_indices_ = [], {}, {}
        for number, part in enumerate(_list(node.get("parts"))):
            name, inner, scalar, at, where = _part(part, n)
            columns: Any = at if names is None else names[at].tolist()
            if scalar and len(at) != 1:
                raise ValueError("the columns of a step are not columns of its rows")
            columns = columns[0] if scalar else columns
            fitted = self.step(inner, f"{place}{number}.", depth + 1)
            if fitted == "passthrough":
                fitted = FunctionTransformer(accept_sparse=True, check_inverse=False, feature_names_out="one-to-one")
                fitted.n_features_in_ = len(at)
                if names is not None:
                    fitted.feature_names_in_ = names[at]
            elif not isinstance(fitted, str) and not hasattr(fitted, "transform"):
                raise ValueError("a step within it is no transformer")
            step.transformers_.append((name, fitted, columns))
            step._transformer_to_input_indices[name] = at
            step.output_indices_[name] = slice(*where)
        if len(step._transformer_to_input_indices) != len(step.transformers_) or type(node.get("sparse")) is not bool:
            raise ValueError("the steps of its columns do not fit together")
        step.sparse_output_ = node["sparse"]
        listed = [part for part in step.transformers_ if part[0] != "remainder"]
        step.transformers = [(name, _unless_passthrough(inner), columns) for name, inner, columns in listed]
        step._columns = [columns for _, _, columns in listed]
        rest = [part for part in step.transformers_ if part[0] == "remainder"]
        if rest:
            step.remainder = _unless_passthrough(rest[0][1])
        step._remainder = rest[0] if rest else ("remainder", step.remainder, [])
        step._n_features = n

    def _texts(self, name: str, n: int) -> NDArray[Any]:
        texts = self._take(name)
        if texts.dtype != object or texts.shape != (n,):
            raise ValueError("the names of its columns are not one text each")
        return texts

    def _take(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            raise ValueError(f"it lacks the array {shown(name)}")
        return self.arrays.pop(name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a list is missing in what it says of a step")
    return value


def _part(part: Any, n: int) -> tuple[str, Any, bool, list[int], list[int]]:
    """One step of a ColumnTransformer: its name, its node, whether it takes one column, which columns, and where to."""
    if not isinstance(part, list) or len(part) != 5:
        raise ValueError("the steps of its columns are not complete")
    name, _, scalar, at, where = part
    are_whole = all(type(number) is int and 0 <= number < 2**31 for number in (*_list(at), *_list(where)))
    if not (
        isinstance(name, str) and type(scalar) is bool and are_whole and len(where) == 2 and max(at, default=0) < n
    ):
        raise ValueError("the columns of a step are not columns of its rows")
    return name, part[1], scalar, at, where


def _objects(values: Any) -> NDArray[Any]:
    """Categories of several types, such as texts and a missing value."""
    items = [_parameter(value) for value in _list(values)]
    if not all(isinstance(item, (str, int, float)) or item is None for item in items):
        raise ValueError("the categories of an encoder are not those of its columns")
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _unless_passthrough(step: Any) -> Any:
    return "passthrough" if is_passthrough(step) else step


def _parameter(value: Any, depth: int = 0) -> Any:
    """The inverse of `_plain`."""
    if depth > 3:
        raise ValueError("a parameter of a step is no value")
    if isinstance(value, list):
        return [_parameter(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    ((key, inner),) = value.items() if len(value) == 1 else (("", None),)
    if key == "float" and inner in ("nan", "inf", "-inf"):
        return float(inner)
    if key == "tuple" and isinstance(inner, list):
        return tuple(_parameter(item, depth + 1) for item in inner)
    if key == "dtype" and inner in DTYPES:
        return np.dtype(inner).type if inner != "object" else object
    raise ValueError("a parameter of a step is no value")
