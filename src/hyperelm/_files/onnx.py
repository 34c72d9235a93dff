"""A model as an ONNX graph of real numbers: what prediction computes,

    H = f((X - c) A + a),        Y = H B (+ (X - c) C) + b,

with A = Φ_R(W)ᵀ and B = Φ_R(M)ᵀ on raw columns, so that packing is part of the matrices. In single precision c is the
mean of the training columns, which would cancel in X A + a, and a and b are found in double. A classifier's label is
that of the largest output; its probabilities are δ + (1 - Cδ) softmax(s Y) of C classes, with the scale s of the model.

A graph whose inputs and outputs are of single precision computes in single precision, too, if it then agrees with the
graph of double precision on rows like the training rows. Otherwise it computes in double.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._estimators import ELMAutoencoder, ELMClassifier
from hyperelm._estimators.base import BaseELM, Parts, taken_apart
from hyperelm._files.models import fitted_elm
from hyperelm._network import activations
from hyperelm._network.layout import Layout
from hyperelm._network.network import Network
from hyperelm._solvers.calibration import Probabilities
from hyperelm._training.scales import Scales
from hyperelm._validation import check_choice

Center = NDArray[np.float64] | None

OPSET, IR_VERSION = 18, 8  # of 2022, and read by every runtime since

LARGEST_ERROR = 1e-4  # of a graph of single precision, relative to the spread of the outputs
_ROWS = 64  # on which graphs are compared


def to_onnx(model: Any, *, decoder: bool = False, dtype: str = "float32") -> Any:
    """A fitted model as an ONNX graph, which needs nothing of hyperelm to run.

    Parameters
    ----------
    model : ELMRegressor, ELMClassifier, ELMAutoencoder, or a search whose `best_estimator_` is one
    decoder : bool
        For an auto-encoder: the graph of `inverse_transform`, from codes to rows.
    dtype : {"float32", "float64"}
        The precision of inputs and outputs. Where single precision inside the graph would leave an error above 1e-4
        of the spread of the training targets, a graph of "float32" computes in double.

    Returns
    -------
    onnx.ModelProto
        Its input is `X` (with `decoder`, ``code``), of any number of rows in the form that `fit` got, as `dtype`. Its
        outputs are `prediction` of a regressor, `label` and `probabilities` of a classifier, ``code`` and
        `reconstruction` of an auto-encoder. Its metadata name the algebra.

    Raises
    ------
    ValueError
        Also where rows or outputs lose more than 1e-4 of the spread by being rounded to float32, as columns do that
        lie 1e4 times their spread from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import ELMRegressor, to_onnx
    >>> X = np.random.default_rng(0).standard_normal((100, 6))
    >>> graph = to_onnx(ELMRegressor("klein4", n_hidden=10).fit(X, X[:, 0])).graph
    >>> [node.op_type for node in graph.node]
    ['Sub', 'MatMul', 'Add', 'Tanh', 'MatMul', 'Add', 'Squeeze', 'Identity']
    """
    check_choice(dtype, ("float32", "float64"), "dtype")
    model = fitted_elm(model)
    parts = _of_parts(taken_apart(model))
    if decoder and not isinstance(model, ELMAutoencoder):
        raise ValueError(f"`decoder` must be False for {type(model).__name__}: it has no inverse transform.")
    exact = _graph(model, parts, decoder, "float64", "float64")
    if dtype == "float64":
        return exact
    scales = parts.scales
    if scales is None:  # nothing is known of the rows
        return _graph(model, parts, decoder, "float32", "float64")
    rows = scales.inputs.rows(_ROWS)
    if decoder:
        rows = _computed(_graph(model, parts, False, "float64", "float64"), rows)["code"]
    for inside in ("float32", "float64"):
        graph = _graph(model, parts, decoder, "float32", inside)
        error, name = _disagreement(graph, exact, rows, scales)
        if error <= LARGEST_ERROR:
            return graph
    raise ValueError(
        f"`dtype` must be 'float64' for this model: rounding rows and outputs to float32 changes its {name} by "
        f"{error:.1g} of the spread. Take dtype='float64' (`export-onnx --double`), or fit to columns and targets less "
        "their means."
    )


def _of_parts(parts: Parts) -> Parts:
    """The same model where complex numbers are pairs of real ones, since few operators of graphs take them."""
    network = parts.network
    return replace(parts, network=replace(network, input=network.input.of_parts, output=network.output.of_parts))


def _graph(model: BaseELM, parts: Parts, decoder: bool, outside: str, inside: str) -> Any:
    """The graph of a model, of one precision for inputs and outputs and one for what is computed."""
    graph, network = _Graph(np.dtype(outside), np.dtype(inside)), parts.network
    if isinstance(model, ELMAutoencoder):
        _add_autoencoder(graph, parts, decoder)
    elif isinstance(model, ELMClassifier):
        _add_classifier(graph, parts)
    else:
        graph.output("prediction", _shaped(graph, _outputs(graph, parts), network.output), network.output)
    return graph.model(type(model).__name__, network.algebra)


def _computed(graph: Any, rows: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """The outputs of a graph that are floating-point numbers, by their names, each (rows, columns)."""
    from onnx import TensorProto
    from onnx.reference import ReferenceEvaluator

    (source,), float_types = graph.graph.input, (TensorProto.FLOAT, TensorProto.DOUBLE)
    single = source.type.tensor_type.elem_type == TensorProto.FLOAT
    shape = [size.dim_value for size in source.type.tensor_type.shape.dim][1:]
    names = [value.name for value in graph.graph.output if value.type.tensor_type.elem_type in float_types]
    names = [name for name in names if name != "label"]
    with np.errstate(all="ignore"):
        X = rows.reshape(len(rows), *shape).astype(np.float32 if single else np.float64)
        values = ReferenceEvaluator(graph).run(names, {source.name: X})
    return {name: np.asarray(value, np.float64).reshape(len(rows), -1) for name, value in zip(names, values)}


def _disagreement(graph: Any, exact: Any, rows: NDArray[Any], scales: Scales) -> tuple[float, str]:
    """The largest difference between the outputs of two graphs, relative to their spread, and the output's name."""
    worst, of = 0.0, ""
    spreads = {"prediction": scales.targets.spread, "reconstruction": scales.inputs.spread, "probabilities": np.ones(1)}
    got = _computed(graph, rows)
    for name, expected in _computed(exact, rows).items():
        spread = spreads.get(name, expected.std(axis=0))
        # What does not vary is measured by what varies most, or else by its size.
        spread = np.where(spread > 0, spread, spread.max() or np.abs(expected).max() or 1.0)
        errors = np.abs(got[name] - expected) / spread
        error = float(errors.max()) if np.isfinite(errors).all() else np.inf
        worst, of = max((worst, of), (error, name))
    return worst, of


def _outputs(graph: _Graph, parts: Parts) -> str:
    """The output layer of raw rows, (n, columns)."""
    X, center = _centred(graph, parts)
    return _decoded(graph, parts.network, _codes(graph, parts.network, X, center), X, center)


def _centred(graph: _Graph, parts: Parts) -> tuple[str, Center]:
    """Raw rows less c, and c less the offset that the network takes off itself, if it is not c."""
    X, offset = graph.rows("X", parts.network.input), parts.network.offset
    if graph.inside == np.float64 or parts.scales is None:
        return (X, None) if offset is None else (graph.node("Sub", X, graph.floats(offset)), None)
    with np.errstate(over="ignore"):
        c = parts.scales.inputs.mean.astype(np.float32).astype(np.float64)  # so that nothing is lost in the graph
    return graph.node("Sub", X, graph.floats(c)), c if offset is None else c - offset


def _codes(graph: _Graph, network: Network, X: str, center: Center) -> str:
    ops = network.operators
    h = graph.affine(X, ops.hidden, _shifted(ops.hidden_bias, center, ops.hidden))
    activation = activations.ACTIVATIONS[activations.name_of(network.activation)]
    if not activation.of_modulus:
        return _activated(graph, activation, h)
    L, d = network.neurons, network.algebra.dim
    z = graph.node("Reshape", h, graph.constant(np.array([0, L, d])))
    r = graph.node("Sqrt", graph.node("ReduceSum", graph.node("Mul", z, z), graph.constant(np.array([2])), keepdims=1))
    # The factor f(r)/r of a number; zero stays zero whatever the factor is.
    lengths = graph.node("Max", r, graph.floats(np.array(np.finfo(np.float32).tiny)))
    z = graph.node("Mul", z, graph.node("Div", _activated(graph, activation, r), lengths))
    return graph.node("Reshape", z, graph.constant(np.array([0, L * d])))


def _activated(graph: _Graph, activation: activations.Activation, x: str) -> str:
    for operator, constants in activation.nodes:
        x = graph.node(operator, x, *(graph.floats(np.array(value)) for value in constants))
    return x


def _decoded(graph: _Graph, network: Network, code: str, X: str | None = None, center: Center = None) -> str:
    ops = network.operators
    split = ops.hidden.shape[1]
    B, C = ops.readout[:split], ops.readout[split:]
    if X is None or not network.has_direct_link:
        return graph.affine(code, B, ops.readout_bias)
    y = graph.affine(code, B, _shifted(ops.readout_bias, center, C))
    return graph.node("Add", y, graph.node("MatMul", X, graph.floats(C)))


def _shifted(bias: NDArray[Any] | None, center: Center, matrix: NDArray[Any]) -> NDArray[Any] | None:
    """a + cA, in double."""
    if center is None:
        return bias
    shift = center @ matrix.astype(np.float64)
    return shift if bias is None else bias + shift


def _shaped(graph: _Graph, rows: str, layout: Layout) -> str:
    """Columns in the form that the user gave."""
    if layout.ndim == 1:
        return graph.node("Squeeze", rows, graph.constant(np.array([1])))
    if layout.ndim == 3:
        return graph.node("Reshape", rows, graph.constant(np.array([0, *layout.shape(0)[1:]])))
    return rows


def _add_autoencoder(graph: _Graph, parts: Parts, decoder: bool) -> None:
    network = parts.network
    source = network.input
    of_codes = network.code
    if decoder:
        code = graph.rows("code", of_codes)
    else:
        code = _codes(graph, network, *_centred(graph, parts))
        graph.output("code", _shaped(graph, code, of_codes), of_codes)
    graph.output("reconstruction", _shaped(graph, _decoded(graph, network, code), source), source)


def _add_classifier(graph: _Graph, parts: Parts) -> None:
    labels = parts.arrays["classes_"]
    scores, classes = _outputs(graph, parts), len(labels)
    if parts.multilabel:
        _add_labels(graph, scores, classes)
        return
    first = graph.node("ArgMax", scores, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant(_labels(labels)), first)
    graph.output("label", label, Layout.filled(1, 1, slice(0, 1), 1), _labels(labels))
    certainty = parts.certainty if isinstance(parts.certainty, Probabilities) else Probabilities()
    shares = graph.node("Softmax", graph.node("Mul", scores, graph.floats(np.array(certainty.scale))), axis=1)
    floor = certainty.floor(graph.outside)
    probabilities = graph.affine_by(shares, 1 - classes * floor, floor)
    graph.output("probabilities", probabilities, Layout.filled(2, classes, slice(0, 1), 1))


def _add_labels(graph: _Graph, scores: str, classes: int) -> None:
    """Several labels a row: each is predicted where its output is above 1/2."""
    layout = Layout.filled(2, classes, slice(0, 1), 1)
    above = graph.node("Greater", scores, graph.floats(np.array(0.5)))
    graph.output("label", graph.node("Cast", above, to=7), layout, np.zeros(0, np.int64))  # 7 is int64
    scale = Probabilities().scale
    odds = graph.affine_by(scores, 2 * scale, -scale)  # of the two outputs y and 1 - y
    floor = Probabilities.floor(graph.outside)
    probabilities = graph.affine_by(graph.node("Sigmoid", odds), 1 - 2 * floor, floor)
    graph.output("probabilities", probabilities, layout)


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
    """A graph under construction: nodes and constants get names by their number.

    Inputs and outputs are of the precision `outside`, what is computed is of the precision `inside`.
    """

    def __init__(self, outside: np.dtype[Any], inside: np.dtype[Any]) -> None:
        self.onnx, self.outside, self.inside = _package(), outside, inside
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def rows(self, name: str, layout: Layout) -> str:
        """An input of any number of rows, as columns."""
        self._inputs.append(self._value(name, layout, self.outside))
        rows = name if self.inside == self.outside else self.node("Cast", name, to=self._element_type(self.inside))
        return self.node("Flatten", rows, axis=1) if layout.ndim == 3 else rows

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.nodes(operator, 1, *inputs, **attributes)[0]

    def nodes(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{operator.lower()}_{len(self._nodes)}_{n}" for n in range(count)]
        self._nodes.append(self.onnx.helper.make_node(operator, inputs, names, **attributes))
        return names

    def affine(self, X: str, matrix: NDArray[Any], bias: NDArray[Any] | None) -> str:
        y = self.node("MatMul", X, self.floats(matrix))
        return y if bias is None else self.node("Add", y, self.floats(bias))

    def affine_by(self, X: str, factor: float, shift: float) -> str:
        """factor X + shift, entry by entry."""
        scaled = self.node("Mul", X, self.floats(np.array(factor)))
        return self.node("Add", scaled, self.floats(np.array(shift)))

    def floats(self, array: NDArray[Any]) -> str:
        with np.errstate(over="ignore"):
            constants = np.asarray(array).astype(self.inside, order="C")
        if not np.isfinite(constants).all():
            single = "single" if self.inside == np.float32 else "double"
            raise ValueError(
                f"`model` must have weights within {single} precision for ONNX. Scale its rows to size 1"
                + (", or take dtype='float64'." if single == "single" else ".")
            )
        return self.constant(constants)

    def constant(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def output(self, name: str, value: str, layout: Layout, like: NDArray[Any] | None = None) -> None:
        if like is None and self.inside != self.outside:
            value = self.node("Cast", value, to=self._element_type(self.outside))
        self._nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value(name, layout, self.outside if like is None else like.dtype))

    def _value(self, name: str, layout: Layout, dtype: np.dtype[Any]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self._element_type(dtype), ["n", *layout.shape(0)[1:]])

    def _element_type(self, dtype: np.dtype[Any]) -> Any:
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def model(self, name: str, algebra: Algebra) -> Any:
        from hyperelm import __version__

        helper = self.onnx.helper
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)
        proto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="hyperelm",
            producer_version=__version__,
        )
        facts = {"algebra": algebra.name, "units": " ".join(algebra.units), "class": name}
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
        raise ImportError("ONNX needs the extra 'onnx': pip install 'hyperelm[onnx]'.") from None
    return onnx
