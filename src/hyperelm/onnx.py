"""A model as an ONNX graph of real numbers, in single precision: what prediction computes,

    H = f(X A + a),        Y = H B (+ X C) + b,

with A = Φ_R(W)ᵀ and B = Φ_R(M)ᵀ on raw columns, so that packing is part of the matrices. A classifier's label is that
of the largest output; its probabilities are the nearest point of the simplex, max(y - t, 0) with
t = max_k (y₁ + … + y_k - 1)/k over the outputs in descending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm import activations
from hyperelm.elm import ELMAutoencoder, ELMClassifier
from hyperelm.elm.base import BaseELM
from hyperelm.elm.layout import Layout
from hyperelm.io import fitted_elm

OPSET, IR_VERSION = 18, 8  # of 2022, and read by every runtime since

# The nodes of an activation, one after the other: (operator, further inputs, attributes).
ACTIVATIONS: dict[str, list[tuple[str, list[Any], dict[str, Any]]]] = {
    "tanh": [("Tanh", [], {})],
    "sigmoid": [("Sigmoid", [], {})],
    "relu": [("Relu", [], {})],
    "leaky_relu": [("LeakyRelu", [], {"alpha": 0.01})],
    "sine": [("Sin", [], {})],
    "gaussian": [("Pow", [2.0], {}), ("Neg", [], {}), ("Exp", [], {})],
    "identity": [],
    "hard_tanh": [("Clip", [-1.0, 1.0], {})],
    "softsign": [("Softsign", [], {})],
}


def to_onnx(model: Any, *, decoder: bool = False) -> Any:
    """A fitted model as an ONNX graph, which needs nothing of hyperelm to run.

    Parameters
    ----------
    model : ELMRegressor, ELMClassifier, ELMAutoencoder, or a search whose `best_estimator_` is one
    decoder : bool
        For an auto-encoder: the graph of `inverse_transform`, from codes to rows.

    Returns
    -------
    onnx.ModelProto
        Its input is `X` (with `decoder`, ``code``), of any number of rows in the form that `fit` got, as float32. Its
        outputs are `prediction` of a regressor, `label` and `probabilities` of a classifier, ``code`` and
        `reconstruction` of an auto-encoder. Its metadata name the algebra.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import ELMRegressor, to_onnx
    >>> X = np.random.default_rng(0).standard_normal((100, 6))
    >>> graph = to_onnx(ELMRegressor("klein4", n_hidden=10).fit(X, X[:, 0])).graph
    >>> [node.op_type for node in graph.node]
    ['MatMul', 'Add', 'Tanh', 'MatMul', 'Add', 'Squeeze', 'Identity']
    """
    model = fitted_elm(model)
    network = _Graph()
    if isinstance(model, ELMAutoencoder):
        _add_autoencoder(network, model, decoder)
    elif decoder:
        raise ValueError(f"`decoder` must be False for {type(model).__name__}: it has no inverse transform.")
    elif isinstance(model, ELMClassifier):
        _add_classifier(network, model)
    else:
        network.output("prediction", _shaped(network, _outputs(network, model), model._output), model._output)
    return network.model(model)


def _outputs(network: _Graph, model: BaseELM) -> str:
    """The output layer of raw rows, (n, columns)."""
    X = network.rows("X", model._input)
    return _decoded(network, model, _codes(network, model, X), X)


def _codes(network: _Graph, model: BaseELM, X: str) -> str:
    h = network.affine(X, model._encoder, model._encoder_bias)
    for operator, constants, attributes in ACTIVATIONS[activations.name_of(model._activation)]:
        h = network.node(operator, h, *(network.floats(np.array(value)) for value in constants), **attributes)
    return h


def _decoded(network: _Graph, model: BaseELM, code: str, X: str | None = None) -> str:
    split = model._encoder.shape[1]
    y = network.affine(code, model._decoder[:split], model._decoder_bias)
    if X is None or not model._linked:
        return y
    return network.node("Add", y, network.node("MatMul", X, network.floats(model._decoder[split:])))


def _shaped(network: _Graph, rows: str, layout: Layout) -> str:
    """Columns in the form that the user gave."""
    if layout.ndim == 1:
        return network.node("Squeeze", rows, network.constant(np.array([1])))
    if layout.ndim == 3:
        return network.node("Reshape", rows, network.constant(np.array([0, layout.features, layout.dim])))
    return rows


def _add_autoencoder(network: _Graph, model: ELMAutoencoder, decoder: bool) -> None:
    source, d = model._input, model.algebra_.dim
    of_codes = Layout(source.ndim, d * model.hidden_weights_.shape[1], model.hidden_weights_.shape[1], d, 0, d)
    if decoder:
        code = network.rows("code", of_codes)
    else:
        code = _codes(network, model, network.rows("X", source))
        network.output("code", _shaped(network, code, of_codes), of_codes)
    network.output("reconstruction", _shaped(network, _decoded(network, model, code), source), source)


def _add_classifier(network: _Graph, model: ELMClassifier) -> None:
    scores, classes = _outputs(network, model), len(model.classes_)
    first = network.node("ArgMax", scores, axis=1, keepdims=0)
    label = network.node("Gather", network.constant(_labels(model.classes_)), first)
    network.output("label", label, Layout(1, 1, 1, 1, 0, 1), _labels(model.classes_))
    # One row more, which is cut off again: runtimes before 1.31 die of sorting none.
    padded = network.node("Pad", scores, network.constant(np.array([0, 0, 1, 0])))
    ordered, _ = network.nodes("TopK", 2, padded, network.constant(np.array([classes])), axis=1)
    sums = network.node("CumSum", ordered, network.constant(np.array(1)))
    excess = network.node("Sub", sums, network.floats(np.ones(1)))
    means = network.node("Div", excess, network.floats(np.arange(1, classes + 1)))
    largest = network.node("ReduceMax", means, network.constant(np.array([1])))
    threshold = network.node("Slice", largest, *(network.constant(np.array([n])) for n in (0, -1, 0)))
    probabilities = network.node("Relu", network.node("Sub", scores, threshold))
    network.output("probabilities", probabilities, Layout(2, classes, classes, 1, 0, 1))


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Class labels as a type that graphs have: whole numbers as int64, texts, truth values and floats."""
    if classes.dtype.kind in "UO":
        return classes.astype(object)
    if classes.dtype.kind in "iu" and classes.max() <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes.astype(bool if classes.dtype.kind == "b" else np.float64)
    raise ValueError(f"`classes_` must be numbers or texts for ONNX, got {classes.dtype}. Fit to texts instead.")


class _Graph:
    """A graph under construction: nodes and constants get names by their number."""

    def __init__(self) -> None:
        self.onnx = _package()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def rows(self, name: str, layout: Layout) -> str:
        """An input of any number of rows, as columns."""
        self._inputs.append(self._value(name, layout, np.dtype(np.float32)))
        return self.node("Flatten", name, axis=1) if layout.ndim == 3 else name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.nodes(operator, 1, *inputs, **attributes)[0]

    def nodes(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{operator.lower()}_{len(self._nodes)}_{n}" for n in range(count)]
        self._nodes.append(self.onnx.helper.make_node(operator, inputs, names, **attributes))
        return names

    def affine(self, X: str, matrix: NDArray[Any], bias: NDArray[Any] | None) -> str:
        y = self.node("MatMul", X, self.floats(matrix))
        return y if bias is None else self.node("Add", y, self.floats(bias))

    def floats(self, array: NDArray[Any]) -> str:
        with np.errstate(over="ignore"):
            single = array.astype(np.float32, order="C")
        if not np.isfinite(single).all():
            raise ValueError("`model` must have weights within single precision for ONNX. Scale its rows to size 1.")
        return self.constant(single)

    def constant(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def output(self, name: str, value: str, layout: Layout, like: NDArray[Any] | None = None) -> None:
        self._nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value(name, layout, np.dtype(np.float32) if like is None else like.dtype))

    def _value(self, name: str, layout: Layout, dtype: np.dtype[Any]) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, ["n", *layout.shape(0)[1:]])

    def model(self, model: BaseELM) -> Any:
        from hyperelm import __version__

        helper = self.onnx.helper
        graph = helper.make_graph(self._nodes, type(model).__name__, self._inputs, self._outputs, self._constants)
        algebra = model.algebra_
        proto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="hyperelm",
            producer_version=__version__,
        )
        facts = {"algebra": algebra.name, "units": " ".join(algebra.units), "class": type(model).__name__}
        helper.set_model_props(proto, facts)
        self.onnx.checker.check_model(proto, full_check=True)
        return proto


def _package() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ModuleNotFoundError:
        raise ValueError("ONNX needs the extra 'onnx': pip install 'hyperelm[onnx]'.") from None
    return onnx
