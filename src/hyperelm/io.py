"""Models as files, whose form `_container` describes.

The header has the class, its parameters, the layouts of input and output and a few fitted numbers; the multiplication
table, the weights, labels, names and, if wanted, the summary of the training rows are arrays. From these a model is
built as `fit` builds it. Nothing is believed that the arrays do not bear out, and nothing is made from them before it
is used, so that loading takes time and memory in proportion to the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hyperelm import activations
from hyperelm._container import LONGEST_NUMBER, Arrays, Header, read, shown, to_bytes
from hyperelm._files import printable, write_whole
from hyperelm.algebra import Algebra
from hyperelm.elm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV
from hyperelm.elm.base import BaseELM
from hyperelm.elm.dispatch import in_numpy
from hyperelm.elm.layout import Layout
from hyperelm.elm.scales import Columns, Scales
from hyperelm.elm.table import TableRegressor
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.choice import METHODS

__all__ = ["load", "save"]

# The models that files hold; of a search, it is the best estimator.
CLASSES: dict[str, type[BaseELM]] = {
    kind.__name__: kind for kind in (ELMRegressor, ELMClassifier, ELMAutoencoder, TableRegressor)
}
# What `fit` found.
NUMBERS = {"rank_": int, "condition_": float, "ridge_": float, "weight_scale_": float, "n_samples_seen_": int}

_STATE = "state."
_INPUTS, _TARGETS = "scales.inputs", "scales.targets"


def save(model: Any, path: str | os.PathLike[str], *, state: bool = False) -> None:
    """Write a fitted model to a file, from which `load` makes one whose predictions are the same bit for bit.

    Parameters
    ----------
    model : ELMRegressor, ELMClassifier, ELMAutoencoder, or a search whose `best_estimator_` is one
    path : str or Path
        Overwritten if it exists, and then whole or not at all.
    state : bool
        Whether the summary of the training rows goes into the file, with which `partial_fit` can go on. It does not
        hold rows, but its size grows with the square of `n_hidden`.

    Notes
    -----
    A `random_state` that is a generator becomes None: its draws are in the weights. A function as `activation` is
    refused, as a file from which a function could come would have to run code.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from hyperelm import ELMRegressor, load, save
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> model = ELMRegressor("klein4", n_hidden=10, random_state=0).fit(X, X[:, 0])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.hyperelm")
    ...     again = load(f"{folder}/model.hyperelm")
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    model = fitted_elm(model)
    header, arrays = _described(model)
    if state:
        arrays |= {_STATE + name: array for name, array in _state_of(model).items()}
    write_whole(path, to_bytes(header, arrays))


def fitted_elm(model: Any) -> BaseELM:
    """The model that a file can hold, in NumPy; of a search, the best one."""
    if isinstance(model, ELMRegressorCV):
        check_is_fitted(model)
    model = getattr(model, "best_estimator_", model)
    if CLASSES.get(type(model).__name__) is not type(model):
        raise ValueError(
            f"`model` must be one of {', '.join(CLASSES)}, got {type(model).__name__}. Save the steps of a pipeline "
            "one by one, or use skops or, for files of your own, pickle."
        )
    check_is_fitted(model)
    return in_numpy(model)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ELMRegressor, ELMClassifier or ELMAutoencoder

    Raises
    ------
    ValueError
        If the file is not such a file, not all of one, has been changed, or is of a later format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from hyperelm import ELMAutoencoder, load, save
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> with TemporaryDirectory() as folder:
    ...     save(ELMAutoencoder("complex", n_hidden=3).fit(X), f"{folder}/model.hyperelm")
    ...     load(f"{folder}/model.hyperelm").transform(X).shape
    (100, 6)
    """
    return _loaded(path)[1]


def _loaded(path: str | os.PathLike[str]) -> tuple[Header, BaseELM]:
    try:
        header, arrays = read(path)
        return header, _Content(header, arrays).model()
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {reason}.") from None


def describe(path: str | os.PathLike[str]) -> str:
    """What is in a model file, for reading: the algebra's table, then a fact a line."""
    header, model = _loaded(path)
    W, M, source, target = model.hidden_weights_, model.output_weights_, model._input, model._output
    biased = len(W) > source.features
    facts = {
        "model": f"{type(model).__name__}, written by hyperelm {str(header.get('hyperelm'))[:40]}",
        "parameters": f"{model.n_parameters_:,} real numbers, {W.dtype}, {os.stat(path).st_size:,} bytes in all",
        "input": f"{_form(source)} of {source.dim} components",
        "hidden": f"{W.shape[1]} neurons, {activations.name_of(model._activation)}"
        + (", bias" if biased else "")
        + (", direct link" if len(M) > W.shape[1] + biased else ""),
        "output": f"{_form(target)}; weights {' x '.join(map(str, M.shape))}",
        "trained": f"on {model.n_samples_seen_:,} rows by {model.solver_}, "
        + ("and can go on" if model._state else "without the state to go on"),
        "ridge": f"{model.ridge_:g} ({model.ridge})"
        + ("" if model.loo_error_ is None else f", mean squared error {model.loo_error_:.4g} on rows left out"),
        "weight scale": f"{model.weight_scale_:g} ({model.weight_scale})",
        "rank": f"{model.rank_} of {source.dim * len(M)}, condition {model.condition_:.3g}",
        "random state": str(model.random_state),
    }
    if isinstance(model, ELMClassifier):
        facts["classes"] = f"{len(model.classes_)}: {', '.join(map(str, model.classes_[:20]))}" + "…" * (
            len(model.classes_) > 20
        )
    if isinstance(model, ELMAutoencoder):
        facts["encoder"] = model.encoder
    lines = [str(model.algebra_), "", *(f"{label:{12}}  {value}" for label, value in facts.items())]
    return printable("\n".join(lines), keep="\n")


def _form(layout: Layout) -> str:
    given = {1: "one value", 2: f"{layout.columns} columns", 3: f"{layout.features} x {layout.dim} components"}
    return f"{given[layout.ndim]}, as {layout.features} number{'s' if layout.features > 1 else ''}"


# ---------------------------------------------------------------------- from a model


def _described(model: BaseELM) -> tuple[Header, Arrays]:
    from hyperelm import __version__

    header: Header = {
        "hyperelm": __version__,
        "class": type(model).__name__,
        "parameters": {name: _plain(name, value, model) for name, value in model.get_params(deep=False).items()},
        "algebra": model.algebra_.name,
        "activation": activations.name_of(model._activation),
        "input": _layout_fields(model._input),
        "output": _layout_fields(model._output),
        "solver": model.solver_,
        "container": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "numbers": {name: _finite(kind(getattr(model, name))) for name, kind in NUMBERS.items()}
        | {"loo_error_": None if model.loo_error_ is None else _finite(float(model.loo_error_))},
    }
    arrays: Arrays = {
        "table": model.algebra_.table,
        "units": np.array(model.algebra_.units, dtype=object),
        "hidden_weights_": model.hidden_weights_,
        "output_weights_": model.output_weights_,
    }
    arrays |= {name: getattr(model, name) for name in ("feature_names_in_", "classes_") if hasattr(model, name)}
    arrays |= {name: getattr(model, name) for name in model._saved}
    if model._scales is not None:
        for name, columns in ((_INPUTS, model._scales.inputs), (_TARGETS, model._scales.targets)):
            arrays[name] = np.stack([columns.mean, columns.spread])
    return header, arrays


def _state_of(model: BaseELM) -> Mapping[str, NDArray[Any]]:
    state = model._state
    if state is None:
        raise ValueError(
            "`state` must be False for this model, which keeps no summary of its rows: it was fitted with solver='svd' "
            "or loaded from a file without one."
        )
    return state.arrays() if isinstance(state, Accumulator) else state


def _plain(name: str, value: Any, model: BaseELM) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if name == "activation" and callable(value):
        return activations.name_of(value)
    if name == "algebra" and isinstance(value, Algebra):
        if value != model.algebra_ or (value.name, value.units) != (model.algebra_.name, model.algebra_.units):
            raise ValueError("`algebra` must be the one that the model was fitted with. Fit it again.")
        return None
    if name == "random_state" and not isinstance(value, int):
        return None
    if name == "class_weight" and isinstance(value, dict):
        return [[_plain("a label", label, model), _plain("a weight", weight, model)] for label, weight in value.items()]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and len(str(value)) <= LONGEST_NUMBER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"`{name}` must be a finite number or a text to be saved, got {value!r}.")


def _layout_fields(layout: Layout) -> dict[str, int]:
    return {"ndim": layout.ndim, "columns": layout.columns, "start": layout.start, "channels": layout.channels}


def _finite(number: float) -> float | str:
    """JSON has no infinity; its text reads back."""
    return number if math.isfinite(number) else str(number)


# ---------------------------------------------------------------------- to a model


class _Content:
    """What a file says, taken out piece by piece and checked."""

    def __init__(self, header: Header, arrays: Arrays) -> None:
        self.header, self.arrays = header, arrays

    def model(self) -> BaseELM:
        kind = CLASSES.get(self._part("class", str))
        if kind is None:
            raise ValueError(f"it holds a model of the class {shown(self.header['class'])}, which this release lacks")
        algebra = self._algebra()
        model = self._with_parameters(kind, algebra)
        model._activation = activations.get(self._choice("activation", tuple(activations.ACTIVATIONS)))
        model._input, model._output = self._layout("input", algebra), self._layout("output", algebra)
        self._add_weights(model)
        self._add_numbers(model)
        self._add_labels(model)
        if isinstance(model, ELMAutoencoder) and self.header.get("container") is not None:
            model.set_output(transform=self._choice("container", ("default", "pandas", "polars")))
        for name in model._saved:
            setattr(model, name, self._take(name))
        if isinstance(model, TableRegressor):
            model._check_saved()
        model._scales = self._scales(model) if _INPUTS in self.arrays else None
        state = {name.removeprefix(_STATE): self._take(name) for name in list(self.arrays) if name.startswith(_STATE)}
        if state and model.solver_ == "svd":
            raise ValueError("it holds a summary of rows, which its solver 'svd' has not")
        model._state = state or None
        if self.arrays:
            raise ValueError(f"it holds the unknown array {shown(min(self.arrays))}")
        return model

    def _with_parameters(self, kind: type[BaseELM], algebra: Algebra) -> BaseELM:
        parameters = self._part("parameters", dict)
        if parameters.keys() != set(kind._get_param_names()):
            raise ValueError(f"its parameters are not those of {kind.__name__}")
        for name, value in parameters.items():
            if isinstance(value, list) and name == "class_weight":
                parameters[name] = _pairs(value)
            elif isinstance(value, (list, dict)):
                raise ValueError(f"its parameter {name} is neither a number nor a text")
        named = parameters["algebra"]
        if named is not None and not isinstance(named, str):
            raise ValueError("its parameter algebra is not a text")
        model = kind(**parameters | {"algebra": algebra})
        BaseELM._check_parameters(model)
        model.algebra = algebra if named is None else named
        return model

    def _algebra(self) -> Algebra:
        units = self._take("units")
        if units.dtype != object or units.ndim != 1:
            raise ValueError("the units of its algebra are not texts")
        return Algebra(self._take("table"), name=self._part("algebra", str), units=units.tolist())

    def _layout(self, name: str, algebra: Algebra) -> Layout:
        fields = self._part(name, dict)
        if not all(type(fields.get(key)) is int for key in ("ndim", "columns", "start", "channels")):
            raise ValueError(f"the layout of its {name} is not whole numbers")
        ndim, columns, start, channels = (fields[key] for key in ("ndim", "columns", "start", "channels"))
        fits = columns >= 1 and start >= 0 and channels >= 1 and start + channels <= algebra.dim
        fits = fits and ndim in ((2, 3) if name == "input" else (1, 2, 3)) and (ndim > 1 or columns == 1)
        if not fits or (ndim == 3 and (channels != algebra.dim or columns % algebra.dim)):
            raise ValueError(f"the layout of its {name} is impossible")
        return Layout(ndim, columns, -(-columns // channels), algebra.dim, start, channels)

    def _add_weights(self, model: BaseELM) -> None:
        W, M = self._take("hidden_weights_"), self._take("output_weights_")
        D, N, d = model._input.features, model._output.features, model.algebra_.dim
        fits = W.ndim == M.ndim == 3 and W.dtype == M.dtype and W.dtype in (np.float32, np.float64)
        fits = fits and W.shape[0] - D in (0, 1) and W.shape[1] >= 1 and W.shape[2] == d
        if not fits or M.shape[1:] != (N, d) or len(M) - W.shape[1] - (len(W) - D) not in (0, D):
            raise ValueError("the shapes and types of its weights do not fit together")
        model.hidden_weights_, model.output_weights_ = W, M
        model.n_parameters_ = W.size + M.size

    def _add_numbers(self, model: BaseELM) -> None:
        numbers = self._part("numbers", dict)
        for name, kind in NUMBERS.items():
            value = numbers.get(name)
            value = float(value) if kind is float and value in ("inf", "-inf", "nan") else value
            if type(value) is not kind:
                raise ValueError(f"it does not say {name}")
            setattr(model, name, value)
        error = numbers.get("loo_error_")  # which early files lack
        if error is not None and not (isinstance(error, float) and error >= 0) and error != "inf":
            raise ValueError("it does not say loo_error_")
        model.loo_error_ = None if error is None else float(error)
        model.solver_ = self._choice("solver", METHODS[1:])

    def _add_labels(self, model: BaseELM) -> None:
        """What scikit-learn wants to know of the columns, and the classes."""
        source = model._input
        model.n_features_in_ = source.columns if source.ndim == 2 else source.features
        if "feature_names_in_" in self.arrays:
            names = self._take("feature_names_in_")
            if names.dtype != object or names.shape != (model.n_features_in_,):
                raise ValueError("the names of its columns are not one text each")
            model.feature_names_in_ = names
        if isinstance(model, ELMClassifier):
            classes = self._take("classes_")
            if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) != len(classes):
                raise ValueError("its classes are not different labels")
            model.classes_ = classes
            expected = model._layout()
        else:
            expected = source if isinstance(model, ELMAutoencoder) else model._output
        if model._output != expected:
            raise ValueError("the layout of its output is not that of its class")

    def _scales(self, model: BaseELM) -> Scales:
        """Where the columns of the training rows lie, which files of earlier releases do not say."""
        inputs, targets = self._take(_INPUTS), self._take(_TARGETS)
        for columns, layout in ((inputs, model._input), (targets, model._output)):
            right = columns.shape == (2, layout.columns) and columns.dtype == np.float64
            if not right or not np.isfinite(columns).all() or columns[1].min() < 0:
                raise ValueError("what it says of the columns of its training rows does not fit its layouts")
        return Scales(Columns(*inputs), Columns(*targets))

    def _part(self, name: str, kind: type) -> Any:
        value = self.header.get(name)
        if not isinstance(value, kind):
            raise ValueError(f"its header lacks {name!r}")
        return value

    def _choice(self, name: str, choices: tuple[str, ...]) -> str:
        value: str = self._part(name, str)
        if value not in choices:
            raise ValueError(f"its {name} {shown(value)} is not one of {', '.join(choices)}")
        return value

    def _take(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            raise ValueError(f"it lacks the array {name!r}")
        return self.arrays.pop(name)


def _pairs(items: list[Any]) -> dict[Any, Any]:
    plain = (str, int, float)
    if not all(isinstance(p, list) and len(p) == 2 and all(isinstance(item, plain) for item in p) for p in items):
        raise ValueError("its parameter class_weight is not a list of labels and weights")
    return dict(items)
