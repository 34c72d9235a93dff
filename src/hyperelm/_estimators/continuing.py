"""Going on with a fitted model: more rows, rows that fade, and rows that are forgotten.

After a chunk of m rows, every row before it counts 2^(-m/h) of what it counted, with the half life h, and row i of the
chunk 2^(-(m - 1 - i)/h). So each row has the weight that its age leaves, however the rows were cut into chunks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from hyperelm._backend.arrays import to_numpy
from hyperelm._estimators.checks import RowChecks, check_place
from hyperelm._network.activations import Function
from hyperelm._network.layers import Encoder, Given
from hyperelm._network.layout import Layout
from hyperelm._network.network import Network
from hyperelm._solvers.accumulator import Accumulator, Asleep
from hyperelm._training.certainty import Certainty
from hyperelm._training.fitting import Fitted, fit_without
from hyperelm._training.passes import Training
from hyperelm._training.rows import Array, LocalSource, Rows, Source


class Continuing(RowChecks, ABC):
    """The part of an estimator that goes on from the accumulator of rows that were seen."""

    n_hidden: int
    bias: bool
    packing: str
    direct_link: bool
    readout: str
    ridge: float | str
    solver: str
    half_life: float | None
    _accumulator: Accumulator | Asleep | None
    _certainty: Certainty | None

    def _continue(self, rows: Rows) -> None:
        """Fit to more rows. The first call draws the hidden layer; of its rows only the accumulator is kept."""
        if self.solver == "svd":
            raise ValueError(
                "`solver` must not be 'svd' for partial_fit, which does not keep rows. Use 'qr' or 'auto'."
            )
        if not self.__sklearn_is_fitted__():
            self._check_solver()
            rows, _ = self._aged(rows)
            # An iterator, since later calls cannot read these rows again.
            self._fit(LocalSource(iter([rows]), len(rows), self._title()))
            return
        training, before = self._resumed(rows, "partial_fit")
        rows, remains = self._aged(rows)
        self._train(LocalSource([rows], len(rows), self._title()), training, before, remains)

    def _aged(self, rows: Rows) -> tuple[Rows, float]:
        """Rows with what their age leaves of their weights, and what it leaves of all rows before them."""
        if self.half_life is None:
            return rows, 1.0
        n_rows = len(rows)
        weight = 0.5 ** (np.arange(n_rows - 1, -1, -1) / self.half_life)
        if rows.weight is not None:
            weight *= rows.weight[slice(0, n_rows)]
        return replace(rows, weight=weight), float(0.5 ** (n_rows / self.half_life))

    def _forget(self, rows: Rows) -> None:
        """Fit without rows that were seen."""
        if self.half_life is not None:
            raise ValueError(
                f"`half_life` must be None to forget rows, got {self.half_life!r}: what they count by now is not "
                "known. Wait until they have faded, or fit again without them."
            )
        training, before = self._resumed(rows, "forget")
        if not before.takes_out:
            raise ValueError(
                f"`solver` must be 'gram' to forget rows, got a model fitted by {before.method!r}: rows can be "
                "subtracted from normal equations only. Fit with solver='gram', or without these rows."
            )
        if len(rows) >= before.n_rows:
            raise ValueError(f"`X` must leave some of the {before.n_rows} rows seen, got {len(rows)} rows to forget.")
        source = LocalSource([rows], len(rows), self._title())
        fitted = fit_without(source, training, ridge=self.ridge, labels=self._judged_by_labels(), before=before)
        self._certainty = None  # which these rows had a part in
        self._keep(fitted, training, rows.X)

    def _resumed(self, rows: Rows, method: str) -> tuple[Training, Accumulator]:
        """The pass that takes more rows into the output layer, and the accumulator of those seen so far."""
        if self._accumulator is None:
            raise ValueError(
                f"{method} needs the accumulator of the rows seen, which this model lacks: solver='svd' keeps none, "
                "and a file has it only from `save(model, path, state=True)`. Save it so, or fit it again."
            )
        self._check_solver()  # which may have been changed since; the layers may not
        network = self.network_
        self._check_unchanged(rows, network)
        check_place(rows.X, network.hidden_weights, f"{type(self).__name__}.{method}()")
        encoder = Given(to_numpy(network.hidden_weights))
        training = self._training(encoder, network.activation, network.input, network.output)
        return training, self._accumulator.awake()

    def _check_unchanged(self, rows: Rows, network: Network) -> None:
        layers = network.neurons, network.has_bias, network.has_direct_link, network.readout.name
        if (self.n_hidden, self.bias, self.direct_link, self.readout) != layers:
            raise ValueError(
                "`n_hidden`, `bias`, `direct_link` and `readout` must be what they were in the first call, for "
                f"partial_fit: it keeps the hidden layer, of {network.neurons} neurons, and the sums of readout "
                f"{network.readout.name!r}. Set them back, or fit again."
            )
        if Layout.of(rows.X, self.algebra_, self.packing) != network.input:
            raise ValueError(f"`packing` must be what it was in the first call, for partial_fit, got {self.packing!r}.")
        if self._output_layout(rows) != network.output:
            wanted = network.output.shape(len(rows))
            raise ValueError(f"`y` must have the shape {wanted} of earlier calls, got {rows.T.shape}.")

    # ------------------------------------------------------------------ what an estimator does

    @abstractmethod
    def _fit(self, source: Source) -> None: ...

    @abstractmethod
    def _train(self, source: Source, training: Training, before: Accumulator | None, remains: float = 1.0) -> None: ...

    @abstractmethod
    def _keep(self, fitted: Fitted, training: Training, X: Array) -> None: ...

    @abstractmethod
    def _training(self, encoder: Encoder, activation: Function, of_input: Layout, of_output: Layout) -> Training: ...

    @abstractmethod
    def _check_solver(self) -> None: ...

    @abstractmethod
    def _title(self) -> str: ...

    @abstractmethod
    def _judged_by_labels(self) -> bool: ...

    @abstractmethod
    def _output_layout(self, rows: Rows) -> Layout: ...

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...
