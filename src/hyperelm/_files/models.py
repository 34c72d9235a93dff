"""Models as files, whose format `container` describes.

The header has the class, its parameters, the layouts of input and output and a few fitted numbers; the multiplication
table, the weights, labels, names, what tells how sure the model is and, if wanted, the accumulator of the training rows
are arrays. From these a model is
built as `fit` builds it. Every claim of the header is checked against the arrays. What follows from the arrays is only
computed when it is used, so that loading takes time and memory in proportion to the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hyperelm._algebra.algebra import Algebra
from hyperelm._estimators import ELMAutoencoder, ELMClassifier, ELMClassifierCV, ELMRegressor, ELMRegressorCV
from hyperelm._estimators.base import (
    NUMBERS,
    BaseELM,
    Parts,
    optional_arrays,
    put_together,
    saved_arrays,
    taken_apart,
)
from hyperelm._estimators.frame import FrameClassifier, FrameRegressor
from hyperelm._files.certainty import arrays_of, certainty_in
from hyperelm._files.container import LONGEST_NUMBER, Arrays, Header, read, shown, to_bytes
from hyperelm._files.layouts import layout_fields, layout_of
from hyperelm._files.pipelines import described
from hyperelm._files.restoring import restored
from hyperelm._files.writing import write_whole
from hyperelm._network import activations
from hyperelm._network.network import Network
from hyperelm._network.readout import READOUTS, Readout
from hyperelm._solvers.accumulator import Accumulator, Asleep
from hyperelm._solvers.calibration import Probabilities
from hyperelm._solvers.solve import SOLVERS
from hyperelm._training.certainty import Intervals
from hyperelm._training.passes import REAL
from hyperelm._training.scales import Columns, Scales

__all__ = ["load", "save"]

# The models that files hold; of a search, it is the best estimator.
CLASSES: dict[str, type[BaseELM]] = {
    "ELMRegressor": ELMRegressor,
    "ELMClassifier": ELMClassifier,
    "ELMAutoencoder": ELMAutoencoder,
    "TableRegressor": FrameRegressor,  # its name in the first files
    "FrameClassifier": FrameClassifier,
}
_NAMES = {model_class: name for name, model_class in CLASSES.items()}

_PIPELINE = "Pipeline"
_CERTAINTIES = {ELMClassifier: Probabilities, ELMRegressor: Intervals}  # how models say how sure they are
_STATE = "state."
_READOUT_TABLE = "readout_table_"
_LATER = ("readout", "half_life")  # parameters that files of earlier formats lack
_INPUTS, _TARGETS = "scales.inputs", "scales.targets"


def save(model: Any, path: str | os.PathLike[str], *, state: bool = False) -> None:
    """Write a fitted model to a file, from which `load` makes one whose predictions are the same bit for bit.

    Parameters
    ----------
    model : ELMRegressor, ELMClassifier, ELMAutoencoder, a search whose `best_estimator_` is one, or a Pipeline
        The last step of a pipeline is one of these. The others are scikit-learn's StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler, OneHotEncoder, OrdinalEncoder, SimpleImputer, PCA, ColumnTransformer or pipelines.
    path : str or Path
        Overwritten if it exists, and then whole or not at all.
    state : bool
        Whether the accumulator of the training rows goes into the file, with which `partial_fit` can go on. It does not
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
    model = getattr(model, "best_estimator_", model)  # of any search, which may hold a pipeline
    if isinstance(model, Pipeline):
        header, arrays = _pipeline(model, state)
    else:
        header, arrays = _elm(fitted_elm(model), state)
    write_whole(path, to_bytes(header, arrays))


def fitted_elm(model: Any) -> BaseELM:
    """The model that a file can hold; of a search, the best one."""
    if isinstance(model, (ELMRegressorCV, ELMClassifierCV)):
        check_is_fitted(model)
    model = getattr(model, "best_estimator_", model)
    if type(model) not in _NAMES:
        known = ", ".join(model_class.__name__ for model_class in _NAMES)
        raise ValueError(
            f"`model` must be one of {known}, got {type(model).__name__}, or, to be saved, a pipeline around one. "
            "For other models use skops or, for files of your own, pickle."
        )
    check_is_fitted(model)
    fitted: BaseELM = model
    return fitted


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ELMRegressor, ELMClassifier, ELMAutoencoder or Pipeline

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
    return loaded(path)[1]


def loaded(path: str | os.PathLike[str]) -> tuple[Header, Any]:
    """The header and the model of a file."""
    try:
        header, arrays = read(path)
        if header.get("class") == _PIPELINE:
            return header, restored(header.get("pipeline"), arrays, _model)
        return header, _model(header, arrays)
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {reason}.") from None


def _model(header: Header, arrays: Arrays) -> BaseELM:
    return _Content(header, arrays).model()


# ---------------------------------------------------------------------- from a model


def _elm(model: BaseELM, state: bool) -> tuple[Header, Arrays]:
    """The header and the arrays of a file."""
    parts = taken_apart(model)
    header, arrays = _described(model, parts)
    if state:
        arrays |= {_STATE + name: array for name, array in _arrays_of(parts.accumulator).items()}
    return header, arrays


def _version() -> str:
    from hyperelm import __version__

    return __version__


def _pipeline(pipeline: Pipeline, state: bool) -> tuple[Header, Arrays]:
    last = pipeline.steps[-1][1]

    def own(step: Any) -> tuple[Header, Arrays] | None:
        is_own = isinstance(step, (BaseELM, ELMRegressorCV))
        return _elm(fitted_elm(step), state and step is last) if is_own else None

    node, arrays = described(pipeline, own)
    return {"hyperelm": _version(), "class": _PIPELINE, "pipeline": node}, arrays


def _described(model: BaseELM, parts: Parts) -> tuple[Header, Arrays]:
    """The header and the arrays of a file, without the accumulator."""
    network, numbers = parts.network, dict(parts.numbers)
    header: Header = {
        "hyperelm": _version(),
        "class": _NAMES[type(model)],
        "parameters": {name: _plain(name, value, network) for name, value in model.get_params(deep=False).items()},
        "algebra": network.algebra.name,
        "activation": activations.name_of(network.activation),
        "readout": network.readout.name,
        "input": layout_fields(network.input),
        "output": layout_fields(network.output),
        "solver": numbers.pop("solver_"),
        "container": parts.container,
        "multilabel": parts.multilabel,
        "numbers": {name: None if value is None else _finite(value) for name, value in numbers.items()},
    }
    arrays: Arrays = {
        "table": network.algebra.table,
        "units": np.array(network.algebra.units, dtype=object),
        "hidden_weights_": network.hidden_weights,
        "output_weights_": network.output_weights,
        **parts.arrays,
    }
    if network.readout.name == "learned":
        arrays[_READOUT_TABLE] = network.readout.table
    if parts.scales is not None:
        for name, columns in ((_INPUTS, parts.scales.inputs), (_TARGETS, parts.scales.targets)):
            arrays[name] = np.stack([columns.mean, columns.spread])
    return header, arrays | arrays_of(parts.certainty)


def _arrays_of(accumulator: Accumulator | Asleep | None) -> Mapping[str, NDArray[Any]]:
    if accumulator is None:
        raise ValueError(
            "`state` must be False for this model, which keeps no accumulator of its rows: it was fitted with "
            "solver='svd' or loaded from a file without one."
        )
    return accumulator.arrays()


def _plain(name: str, value: Any, network: Network) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if name == "activation" and callable(value):
        return activations.name_of(value)
    if name == "algebra" and isinstance(value, Algebra):
        if value != network.algebra or (value.name, value.units) != (network.algebra.name, network.algebra.units):
            raise ValueError("`algebra` must be the one that the model was fitted with. Fit it again.")
        return None
    if name == "random_state" and not isinstance(value, int):
        return None
    if name == "class_weight" and isinstance(value, dict):
        return [
            [_plain("a label", label, network), _plain("a weight", weight, network)] for label, weight in value.items()
        ]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and len(str(value)) <= LONGEST_NUMBER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"`{name}` must be a finite number or a text to be saved, got {value!r}.")


def _finite(number: float) -> float | str:
    """A number for JSON, which has no infinity: the text "inf" reads back."""
    return number if math.isfinite(number) else str(number)


# ---------------------------------------------------------------------- to a model


class _Content:
    """What a file says, taken out piece by piece and checked."""

    def __init__(self, header: Header, arrays: Arrays) -> None:
        self.header, self.arrays = header, arrays

    def model(self) -> BaseELM:
        model_class = CLASSES.get(self._part("class", str))
        if model_class is None:
            raise ValueError(f"it holds a model of the class {shown(self.header['class'])}, which this release lacks")
        network, numbers = self._network(), self._numbers()
        parameters = self._parameters(model_class)
        container = None
        if model_class is ELMAutoencoder and self.header.get("container") is not None:
            container = self._choice("container", ("default", "pandas", "polars"))
        arrays = self._arrays(model_class, network)
        scales = self._scales(network) if _INPUTS in self.arrays else None
        multilabel = self.header.get("multilabel", False)
        if type(multilabel) is not bool or (multilabel and not issubclass(model_class, ELMClassifier)):
            raise ValueError("it does not say whether rows have several labels")
        kind = next((kind for of, kind in _CERTAINTIES.items() if issubclass(model_class, of)), None)
        certainty = certainty_in(self.arrays, kind, network)
        accumulator = self._accumulator(network, numbers["solver_"])
        parts = Parts(network, numbers, arrays, accumulator, scales, container, certainty, multilabel)
        model = put_together(model_class, parameters | {"algebra": network.algebra}, parts)
        model.algebra = network.algebra if parameters["algebra"] is None else parameters["algebra"]
        if self.arrays:
            raise ValueError(f"it holds the unknown array {shown(min(self.arrays))}")
        return model

    def _parameters(self, model_class: type[BaseELM]) -> dict[str, Any]:
        parameters: dict[str, Any] = self._part("parameters", dict)
        defaults = model_class().get_params(deep=False)
        parameters = {name: defaults.get(name) for name in _LATER} | parameters
        if parameters.keys() != defaults.keys():
            raise ValueError(f"its parameters are not those of {model_class.__name__}")
        for name, value in parameters.items():
            if isinstance(value, list) and name == "class_weight":
                parameters[name] = _pairs(value)
            elif isinstance(value, (list, dict)):
                raise ValueError(f"its parameter {name} is neither a number nor a text")
        if not isinstance(parameters["algebra"], str | None):
            raise ValueError("its parameter algebra is not a text")
        return parameters

    def _network(self) -> Network:
        algebra = self._algebra()
        source, target = (layout_of(self._part(name, dict), name, algebra) for name in ("input", "output"))
        activation = activations.get(self._choice("activation", tuple(activations.ACTIVATIONS)))
        W, M = self._take("hidden_weights_"), self._take("output_weights_")
        readout = self._readout(algebra)
        D, N, d, r = source.features, target.features, algebra.dim, readout.size
        fits = W.ndim == M.ndim == 3 and W.dtype == M.dtype and W.dtype in (np.float32, np.float64)
        fits = fits and W.shape[0] - D in (0, 1) and W.shape[1] >= 1 and W.shape[2] == d
        if not fits or M.shape[1:] != (N, r) or len(M) - W.shape[1] - (len(W) - D) not in (0, D):
            raise ValueError("the shapes and types of its weights do not fit together")
        return Network(algebra, source, target, W, M, activation, readout)

    def _readout(self, algebra: Algebra) -> Readout:
        name = self._choice("readout", READOUTS) if "readout" in self.header else "algebra"
        if name != "learned":
            return Readout(name, algebra.dim, algebra if name == "algebra" else None)
        learned = Algebra(self._take(_READOUT_TABLE), name="learned")
        if learned.dim != algebra.dim:
            raise ValueError("the table of its readout is not of the size of its algebra")
        return Readout(name, algebra.dim, learned)

    def _algebra(self) -> Algebra:
        units = self._take("units")
        if units.dtype != object or units.ndim != 1:
            raise ValueError("the units of its algebra are not texts")
        return Algebra(self._take("table"), name=self._part("algebra", str), units=units.tolist())

    def _numbers(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        numbers = self._part("numbers", dict)
        for name, wanted in NUMBERS.items():
            value = numbers.get(name)
            value = float(value) if wanted is float and value in ("inf", "-inf", "nan") else value
            if type(value) is not wanted:
                raise ValueError(f"it does not say {name}")
            found[name] = value
        error = numbers.get("loo_error_")  # which early files lack
        if error is not None and not (isinstance(error, float) and error >= 0) and error != "inf":
            raise ValueError("it does not say loo_error_")
        found["loo_error_"] = None if error is None else float(error)
        found["solver_"] = self._choice("solver", tuple(SOLVERS)[1:])
        return found

    def _arrays(self, model_class: type[BaseELM], network: Network) -> dict[str, NDArray[Any]]:
        """What scikit-learn wants to know of the columns, the classes, and what else such a model has."""
        source = network.input
        names = [*(["classes_"] if issubclass(model_class, ELMClassifier) else []), *saved_arrays(model_class)]
        arrays = {name: self._take(name) for name in names}
        arrays |= {name: self._take(name) for name in optional_arrays(model_class) if name in self.arrays}
        if "feature_names_in_" in self.arrays:
            texts = self._take("feature_names_in_")
            if texts.dtype != object or texts.shape != source.shape(1)[1:2]:
                raise ValueError("the names of its columns are not one text each")
            arrays["feature_names_in_"] = texts
        return arrays

    def _accumulator(self, network: Network, solver: str) -> Asleep | None:
        names = [name for name in self.arrays if name.startswith(_STATE)]
        arrays = {name.removeprefix(_STATE): self._take(name) for name in names}
        if not arrays:
            return None
        if solver == "svd":
            raise ValueError("it holds an accumulator, which its solver 'svd' has not")
        (method,) = SOLVERS[solver]
        algebra, sizes = network.algebra, (len(network.output_weights), network.output.features)
        if network.readout.name != "algebra":
            algebra, sizes = REAL, (network.n_components, network.output.columns)
        return Asleep(partial(method, algebra, *sizes, network.dtype), arrays)

    def _scales(self, network: Network) -> Scales:
        """Where the columns of the training rows lie, which files of earlier releases do not say."""
        inputs, targets = self._take(_INPUTS), self._take(_TARGETS)
        for columns, layout in ((inputs, network.input), (targets, network.output)):
            right = columns.shape == (2, layout.columns) and columns.dtype == np.float64
            if not right or not np.isfinite(columns).all() or columns[1].min() < 0:
                raise ValueError("what it says of the columns of its training rows does not fit its layouts")
        return Scales(Columns(*inputs), Columns(*targets))

    def _part(self, name: str, wanted: type) -> Any:
        value = self.header.get(name)
        if not isinstance(value, wanted):
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
