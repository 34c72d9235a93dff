"""The ELM for a frame whose columns have names and units of their own.

Columns and targets are standardised for training: x' = (x - a)/s and t' = (t - b)/u. The matrices of the network
contain both scales (`Scaling`), so raw columns go in and come out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.arrays import is_complex, without_others
from hyperelm._estimators.checks import precision
from hyperelm._estimators.regressor import ELMRegressor
from hyperelm._network.network import Scaling
from hyperelm._training.fitting import Fitted
from hyperelm._training.rows import Rows, Stored
from hyperelm._training.scales import Columns, Scales
from hyperelm._validation import FloatArray


class FrameRegressor(ELMRegressor):
    """`ELMRegressor` for frames (n, columns) in any units. `hyperelm fit` saves such models.

    It standardises columns and targets by itself, on the scales of the first rows that it sees. Rows of other array
    libraries are copied to NumPy.

    Parameters
    ----------
    algebra, n_hidden, activation, weight_scale, bias, packing, direct_link, readout, ridge, solver, chunk_size, \
random_state, verbose
        As for `ELMRegressor`.

    Attributes
    ----------
    input_offset_, input_scale_ : arrays of shape (columns,)
        The mean and the standard deviation of every input column. The deviation of a constant column is set to 1.
    output_offset_, output_scale_ : arrays of shape (targets,)
    column_names_, target_names_ : arrays of texts
        The names of the input and target columns of a file. By default they are numbers.
    window_ : array of one int
        The number of consecutive rows that make one input of a series; 0 where rows are no series.

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
        if (
            isinstance(rows.X, Stored)
            or isinstance(rows.T, Stored)
            or rows.X.ndim != 2
            or rows.T.ndim > 2
            or is_complex(rows.X)
            or is_complex(rows.T)
        ):
            raise ValueError(
                f"`X` and `y` must be columns in memory, not complex, got shapes {rows.X.shape} and {rows.T.shape}. "
                "For other rows use `ELMRegressor`."
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
        scaling = ((self.input_offset_, self.input_scale_), (self.output_offset_, self.output_scale_))
        return Scales(*(Columns(mean.astype(np.float64), spread.astype(np.float64)) for mean, spread in scaling))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_restored(self) -> None:
        inputs, outputs, window = self.network_.input.columns, self.network_.output.columns, self.window_
        scales = [(self.input_offset_, inputs), (self.input_scale_, inputs)]
        scales += [(self.output_offset_, outputs), (self.output_scale_, outputs)]
        names = self.column_names_, self.target_names_
        if not (
            all(array.shape == (n,) and array.dtype.kind == "f" and np.isfinite(array).all() for array, n in scales)
            and self.input_scale_.all()
            and (window.shape, window.dtype.kind) == ((1,), "i")
            and all(array.ndim == 1 and array.dtype == object for array in names)
            and (len(names[0]) * max(int(window[0]), 1), len(names[1])) == (inputs, outputs)
        ):
            raise ValueError("what it says of its columns does not fit together")
        self.network_ = replace(self.network_, scaling=self._scaling())


def _standard(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of every column. The latter is 1 where only rounding varies."""
    columns = Columns.of(values)
    return columns.mean.astype(dtype), np.where(columns.spread > 0, columns.spread, 1.0).astype(dtype)
