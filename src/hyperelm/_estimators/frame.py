"""The ELM for a frame whose columns have names and units of their own.

Columns and targets are standardised for training, x' = (x - a)/s and t' = (t - b)/u. The network has both scales as a
part of its matrices (`Scaling`), so raw columns go in and come out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import without_others
from hyperelm._estimators.checks import precision
from hyperelm._estimators.regressor import ELMRegressor
from hyperelm._network.network import Scaling
from hyperelm._training.fitting import Fitted
from hyperelm._training.rows import Rows, Stored
from hyperelm._training.scales import Columns, Scales
from hyperelm._validation import FloatArray


class FrameRegressor(ELMRegressor):
    """`ELMRegressor` for tables (n, columns) in any units: what `hyperelm fit` saves.

    It standardises columns and targets by itself. The first rows that it sees fix the scales. Rows of other array
    libraries are copied to NumPy.

    Parameters
    ----------
    algebra, n_hidden, activation, weight_scale, bias, packing, direct_link, ridge, solver, chunk_size, random_state, \
verbose
        As for `ELMRegressor`.

    Attributes
    ----------
    input_offset_, input_scale_ : arrays of shape (columns,)
        Mean and standard deviation of every input column; 1 for one that does not vary.
    output_offset_, output_scale_ : arrays of shape (targets,)
    column_names_, target_names_ : arrays of texts
        The columns of a file that are inputs and targets; numbered if nobody names them.
    window_ : array of one int
        0, or, of a series, how many consecutive rows of the columns make one input.

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

    input_offset_: FloatArray
    input_scale_: FloatArray
    output_offset_: FloatArray
    output_scale_: FloatArray

    _saved = (
        *("input_offset_", "input_scale_", "output_offset_", "output_scale_"),
        *("column_names_", "target_names_", "window_"),
    )

    def name_columns(self, columns: list[str], targets: list[str], window: int = 0) -> FrameRegressor:
        """Remember the names of the columns of a file, and how many of its rows make one input of a series.

        Parameters
        ----------
        columns, targets : list of str
        window : int
            0 where the rows are no series.

        Returns
        -------
        self
        """
        self.column_names_, self.target_names_ = (np.array(names, dtype=object) for names in (columns, targets))
        self.window_ = np.array([window])
        return self

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        X, y = without_others(X), without_others(y)
        rows = super()._check_rows(X, y, sample_weight, reset=reset, before=before)
        if isinstance(rows.X, Stored) or isinstance(rows.T, Stored) or rows.X.ndim != 2 or rows.T.ndim > 2:
            raise ValueError(
                f"`X` and `y` must be columns in memory, got shapes {rows.X.shape} and {rows.T.shape}. For other rows "
                "use `ELMRegressor`."
            )
        inputs, targets = rows.X, rows.T.reshape(len(rows), -1)
        if reset:
            dtype = precision(inputs)
            self.input_offset_, self.input_scale_ = _standard(inputs, dtype)
            self.output_offset_, self.output_scale_ = _standard(targets, dtype)
            self.name_columns([str(n) for n in range(inputs.shape[1])], [str(n) for n in range(targets.shape[1])])
        scaled = (targets - self.output_offset_) / self.output_scale_
        return Rows((inputs - self.input_offset_) / self.input_scale_, scaled.reshape(rows.T.shape), rows.weight)

    def _scaling(self) -> Scaling:
        return Scaling(self.input_offset_, self.input_scale_, self.output_offset_, self.output_scale_)

    def _scales_of(self, fitted: Fitted) -> Scales:
        return Scales(
            Columns(self.input_offset_.astype(np.float64), self.input_scale_.astype(np.float64)),
            Columns(self.output_offset_.astype(np.float64), self.output_scale_.astype(np.float64)),
        )

    def _check_restored(self) -> None:
        inputs, outputs = self.network_.input.columns, self.network_.output.columns
        scales = [(self.input_offset_, inputs), (self.input_scale_, inputs)]
        scales += [(self.output_offset_, outputs), (self.output_scale_, outputs)]
        right = all(a.shape == (n,) and a.dtype.kind == "f" and np.isfinite(a).all() for a, n in scales)
        right = (
            right and bool(self.input_scale_.all()) and self.window_.shape == (1,) and self.window_.dtype.kind == "i"
        )
        names = self.column_names_, self.target_names_
        right = right and all(array.ndim == 1 and array.dtype == object for array in names)
        if not right or len(names[0]) * max(int(self.window_[0]), 1) != inputs or len(names[1]) != outputs:
            raise ValueError("what it says of its columns does not fit together")
        self.network_ = replace(self.network_, scaling=self._scaling())


def _standard(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """The mean of every column and its standard deviation; 1 for one that varies by rounding alone."""
    columns = Columns.of(values)
    return columns.mean.astype(dtype), np.where(columns.spread > 0, columns.spread, 1.0).astype(dtype)
