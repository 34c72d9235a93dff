"""What is in a model file, as text for people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from hyperelm._estimators import ELMAutoencoder, ELMClassifier
from hyperelm._estimators.base import taken_apart
from hyperelm._estimators.frame import FrameRegressor, NamedColumns
from hyperelm._files.models import loaded
from hyperelm._files.writing import printable
from hyperelm._network import activations
from hyperelm._network.layout import Layout

_SHOWN = 20  # names that a line lists


def describe(path: str | os.PathLike[str]) -> str:
    """What is in a model file, as text: the algebra's table, then one fact on each line.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    str

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from hyperelm import ELMAutoencoder, describe, save
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> with TemporaryDirectory() as folder:
    ...     save(ELMAutoencoder("complex", n_hidden=3).fit(X), f"{folder}/model.hyperelm")
    ...     print(describe(f"{folder}/model.hyperelm").splitlines()[0])
    Algebra complex, dimension 2
    """
    header, model = loaded(path)
    steps = []
    if isinstance(model, Pipeline):
        steps, model = model.steps[:-1], model.steps[-1][1]
    network = model.network_
    source, target, M = network.input, network.output, network.output_weights
    full = network.n_components if network.readout.algebra is None else source.dim * len(M)
    can_go_on = taken_apart(model).accumulator is not None
    error = model.loo_error_
    unit = " (1 is the variance of the targets)" if isinstance(model, FrameRegressor) else ""
    facts = {
        **({"steps": "; ".join(_step(*step) for step in steps)} if steps else {}),
        "model": f"{type(model).__name__}, written by hyperelm {str(header.get('hyperelm'))[:40]}",
        "parameters": f"{network.n_parameters:,} real numbers, {network.dtype}, {os.stat(path).st_size:,} bytes in all",
        **(_columns_of(model) if isinstance(model, NamedColumns) else {}),
        "input": f"{_form(source)} of {_counted(source.dim, 'component')}, packing {model.packing}",
        "hidden": f"{_counted(network.neurons, 'neuron')}, {activations.name_of(network.activation)}"
        + (", bias" if network.has_bias else "")
        + (", direct link" if network.has_direct_link else ""),
        "output": f"{_form(target)}; weights {' x '.join(map(str, M.shape))}, readout {network.readout.name}",
        "trained": f"on {_counted(model.n_samples_seen_, 'row')} by {model.solver_}, "
        + ("and can go on" if can_go_on else "without the accumulator to go on"),
        "error": "not known" if error is None else f"{error:.4g}, the mean square for rows left out one by one{unit}",
        "ridge": _found(model.ridge_, model.ridge),
        "weight scale": _found(model.weight_scale_, model.weight_scale),
        "rank": f"{model.rank_} of {full}, condition {model.condition_:.3g}",
        "random state": str(model.random_state),
    }
    if isinstance(model, ELMClassifier):
        kind = "labels" if model.multilabel_ else "classes"
        facts[kind] = f"{len(model.classes_)}: {_few(model.classes_.tolist())}"
    if isinstance(model, ELMAutoencoder):
        facts["encoder"] = model.encoder
    tables = [str(model.algebra_)]
    if network.readout.name == "learned":
        tables += ["", "Readout:", str(network.readout.algebra)]
    lines = [*tables, "", *(f"{label:{12}}  {value}" for label, value in facts.items())]
    return printable("\n".join(lines), keep="\n")


def _step(name: str, step: Any) -> str:
    """One step of a pipeline on one line."""
    return f"{name}: {' '.join(str(step).split())}"


def _form(layout: Layout) -> str:
    return f"{_given(layout)}, as {_counted(layout.features, 'number')}"


def _given(layout: Layout) -> str:
    """What the user gives for a row."""
    if layout.is_complex:
        return "one complex value" if layout.ndim == 1 else _counted(layout.features, "complex column")
    if layout.ndim == 1:
        return "one value"
    if layout.ndim == 2:
        return _counted(layout.columns, "column")
    if layout.are_numbers:
        return f"{layout.features} x {_counted(layout.dim, 'component')}"
    return f"{_counted(layout.columns // layout.group, 'step')} of {_counted(layout.group, 'channel')}"


def _columns_of(model: NamedColumns) -> dict[str, str]:
    """The columns of a file that a model knows, and what was done to them."""
    window, horizon, plan = int(model.window_[0]), int(model.horizon_[0]), model.plan_
    facts = {"target": ", ".join(model.target_names_), "columns": _few([step.name for step in plan.used])}
    if window:
        ahead = "the next row" if horizon == 1 else f"{horizon} rows ahead"
        facts["window"] = f"{_counted(window, 'row')}, for {ahead}"
    for n, line in enumerate(plan.lines()):
        facts["done to them" if not n else " " * n] = line
    return facts


def _found(value: float, given: object) -> str:
    """A parameter, and what it was chosen by, if it was chosen."""
    return f"{value:g} ({given})" if isinstance(given, str) else f"{value:g}"


def _few(names: Sequence[object]) -> str:
    return ", ".join(map(str, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
