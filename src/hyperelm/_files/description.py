"""What is in a model file, as text for people."""

from __future__ import annotations

import os
from typing import Any

from sklearn.pipeline import Pipeline

from hyperelm._estimators import ELMAutoencoder, ELMClassifier
from hyperelm._estimators.base import taken_apart
from hyperelm._files.models import loaded
from hyperelm._files.writing import printable
from hyperelm._network import activations
from hyperelm._network.layout import Layout


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
    facts = {
        **({"steps": "; ".join(_step(*step) for step in steps)} if steps else {}),
        "model": f"{type(model).__name__}, written by hyperelm {str(header.get('hyperelm'))[:40]}",
        "parameters": f"{network.n_parameters:,} real numbers, {network.dtype}, {os.stat(path).st_size:,} bytes in all",
        "input": f"{_form(source)} of {source.dim} components",
        "hidden": f"{network.neurons} neurons, {activations.name_of(network.activation)}"
        + (", bias" if network.has_bias else "")
        + (", direct link" if network.has_direct_link else ""),
        "output": f"{_form(target)}; weights {' x '.join(map(str, M.shape))}, readout {network.readout.name}",
        "trained": f"on {model.n_samples_seen_:,} rows by {model.solver_}, "
        + ("and can go on" if can_go_on else "without the accumulator to go on"),
        "ridge": f"{model.ridge_:g} ({model.ridge})"
        + ("" if model.loo_error_ is None else f", mean squared error {model.loo_error_:.4g} on rows left out"),
        "weight scale": f"{model.weight_scale_:g} ({model.weight_scale})",
        "rank": f"{model.rank_} of {full}, condition {model.condition_:.3g}",
        "random state": str(model.random_state),
    }
    if isinstance(model, ELMClassifier):
        kind = "labels" if model.multilabel_ else "classes"
        facts[kind] = f"{len(model.classes_)}: {', '.join(map(str, model.classes_[:20]))}" + "…" * (
            len(model.classes_) > 20
        )
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
    return f"{_given(layout)}, as {layout.features} number{'s' if layout.features > 1 else ''}"


def _given(layout: Layout) -> str:
    """What the user gives for a row."""
    if layout.is_complex:
        return "one complex value" if layout.ndim == 1 else f"{layout.features} complex columns"
    if layout.ndim == 1:
        return "one value"
    if layout.ndim == 2:
        return f"{layout.columns} columns"
    if layout.are_numbers:
        return f"{layout.features} x {layout.dim} components"
    return f"{layout.columns // layout.group} steps of {layout.group} channels"
