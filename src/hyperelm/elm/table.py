"""The ELM for a table whose columns have names and units of their own.

Columns are standardised for training, x' = (x - a)/s and t' = (t - b)/u. In prediction all but a is part of the real
matrices of both layers: with h = f(x'A + α) and t' = hB + β,

    h = f((x - a)A/s + α),        t = hBu + βu + b.

So raw columns go in and come out. The difference x - a is taken first: xA/s - aA/s would lose the digits in which
columns far from zero differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperelm._arrays import is_elsewhere, to_numpy
from hyperelm._validation import FloatArray
from hyperelm.elm.dispatch import precision
from hyperelm.elm.passes import Summary
from hyperelm.elm.regressor import ELMRegressor
from hyperelm.elm.rows import Rows, Stored
from hyperelm.elm.scales import Columns, Scales


class TableRegressor(ELMRegressor):
    """`ELMRegressor` for tables (n, columns) in any units: what `hyperelm fit` saves.

    Parameters are those of `ELMRegressor`. The first rows that it sees fix the scales. Rows of other array libraries
    are copied to NumPy.

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
    >>> from hyperelm.elm.table import TableRegressor
    >>> metres = np.random.default_rng(0).standard_normal((100, 4))
    >>> far = TableRegressor("klein4", 8, random_state=0).fit(1000 * metres + 50, metres[:, 0])
    >>> near = TableRegressor("klein4", 8, random_state=0).fit(metres, metres[:, 0])
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

    def name_columns(self, columns: list[str], targets: list[str], window: int = 0) -> TableRegressor:
        """Keep what the columns of the file are called, and how many of its rows make one input of a series."""
        self.column_names_, self.target_names_ = (np.array(names, dtype=object) for names in (columns, targets))
        self.window_ = np.array([window])
        return self

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        X, y = (to_numpy(array) if is_elsewhere(array) else array for array in (X, y))
        rows = super()._check_rows(X, y, sample_weight, reset=reset, before=before)
        if isinstance(rows.X, Stored) or isinstance(rows.T, Stored) or rows.X.ndim != 2 or rows.T.ndim > 2:
            raise ValueError(
                f"`X` and `y` must be tables in memory, got shapes {rows.X.shape} and {rows.T.shape}. For other rows "
                "use `ELMRegressor`."
            )
        table, targets = rows.X, rows.T.reshape(len(rows), -1)
        if reset:
            dtype = precision(table)
            self.input_offset_, self.input_scale_ = _standard(table, dtype)
            self.output_offset_, self.output_scale_ = _standard(targets, dtype)
            self.name_columns([str(n) for n in range(table.shape[1])], [str(n) for n in range(targets.shape[1])])
        scaled = (targets - self.output_offset_) / self.output_scale_
        return Rows((table - self.input_offset_) / self.input_scale_, scaled.reshape(rows.T.shape), rows.weight)

    def _build_operators(self) -> None:
        super()._build_operators()
        self._encoder = self._encoder / self.input_scale_[:, None]
        decoder, bias = self._decoder.copy(), 0 if self._decoder_bias is None else self._decoder_bias
        if self._linked:
            decoder[-len(self.input_scale_) :] /= self.input_scale_[:, None]
        self._decoder, self._decoder_bias = (
            decoder * self.output_scale_,
            bias * self.output_scale_ + self.output_offset_,
        )

    @property
    def _offset(self) -> FloatArray:
        return self.input_offset_

    def _scales_of(self, summary: Summary) -> Scales:
        return Scales(
            Columns(self.input_offset_.astype(np.float64), self.input_scale_.astype(np.float64)),
            Columns(self.output_offset_.astype(np.float64), self.output_scale_.astype(np.float64)),
        )

    def _check_saved(self) -> None:
        """Whether what a file says of the columns fits together."""
        inputs, outputs = self._input.columns, self._output.columns
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


def _standard(table: NDArray[Any], dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """The mean of every column and its standard deviation; 1 for one that varies by rounding alone."""
    columns = Columns.of(table)
    return columns.mean.astype(dtype), np.where(columns.spread > 0, columns.spread, 1.0).astype(dtype)
