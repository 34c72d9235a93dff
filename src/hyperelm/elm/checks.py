"""Rows as users give them: checked, and refused with the reason; and what a fit warns of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from hyperelm.algebra import Algebra
from hyperelm.elm.dispatch import accepted_dtypes, is_dispatched, real
from hyperelm.elm.layout import Layout
from hyperelm.elm.rows import Array, Rows, Stored, is_blocks, is_stored
from hyperelm.solvers.accumulator import check_weight


class RankDeficiencyWarning(UserWarning):
    """Columns of the hidden layer are linearly dependent and no ridge chooses among the solutions.

    Examples
    --------
    >>> import warnings
    >>> from hyperelm import RankDeficiencyWarning
    >>> warnings.simplefilter("ignore", RankDeficiencyWarning)
    """


class BiasOnlyWarning(UserWarning):
    """The inputs do not help to predict the targets, so the fitted model predicts their mean for every row.

    Examples
    --------
    >>> import warnings
    >>> from hyperelm import BiasOnlyWarning
    >>> warnings.simplefilter("ignore", BiasOnlyWarning)
    """


class RowChecks:
    """The part of an estimator that checks rows."""

    algebra_: Algebra
    _input: Layout

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        """Validated rows: `before` is the number of the first one in a block, whose arrays are checked when read."""
        X = self._check_X(X, reset=reset, before=before)
        T = self._check_targets(X, y, before)
        check_consistent_length(X, T)
        return Rows(X, T, self._check_weight(sample_weight, X))

    def _check_targets(self, X: Array, y: Any, before: int | None) -> Array:
        """The targets of rows: those of an auto-encoder are the rows."""
        return X

    def _check_X(self, X: Any, *, reset: bool, before: int | None = None) -> Array:
        """A validated array, (n, columns) or (n, features, d); integers stay, to be cast block by block."""
        if is_blocks(X):
            raise ValueError(f"`X` must be rows, got {type(X).__name__}. Only `fit` takes blocks of rows.")
        if is_stored(X) or (before is not None and isinstance(X, np.ndarray)):
            X = self._check_stored(Stored(X, "X", before=before or 0), reset=reset)
        else:
            if not reset and (isinstance(X, np.ndarray) or is_dispatched(X)):
                self._check_axes(X)
            with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums up all of it
                X = validate_data(self, real(X, "X"), reset=reset, dtype=accepted_dtypes(X), allow_nd=True)
        if not reset:
            self._check_axes(X)
        self._check_components(X, "X")
        return X

    def _check_stored(self, X: Stored, *, reset: bool) -> Stored:
        """What scikit-learn checks of an array, but for its values."""
        if X.ndim < 2:
            raise ValueError(
                f"Expected 2D array, got 1D array instead: `X` must have shape (n, columns), got {X.shape}."
            )
        if 0 in X.shape:
            empty = "sample" if len(X) == 0 else "feature"
            raise ValueError(f"Found array with 0 {empty}(s) (shape={X.shape}) while a minimum of 1 is required.")
        if not reset:
            self._check_axes(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _check_axes(self, X: Array) -> None:
        if X.ndim != self._input.ndim and X.ndim in (2, 3):
            wanted = f"(n, {self._input.features}, {self._input.dim})" if self._input.ndim == 3 else "(n, columns)"
            raise ValueError(f"X must have the shape {wanted} that the model was fitted with, got {tuple(X.shape)}.")

    def _check_components(self, array: Array, name: str) -> None:
        dim = self.algebra_.dim
        if array.ndim > 3 or (array.ndim == 3 and array.shape[-1] != dim):
            raise ValueError(
                f"`{name}` must have shape (n, columns), or (n, features, {dim}) with a last axis of length {dim} "
                f"({self.algebra_.name or 'the dimension of the algebra'}), got shape {tuple(array.shape)}. "
                "Use `hyperelm.pack` to put channels into components."
            )

    def _check_weight(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        if is_stored(sample_weight):
            if tuple(sample_weight.shape) != (len(X),):
                raise ValueError(
                    f"`sample_weight` must have one weight for each of the {len(X)} rows, got shape "
                    f"{tuple(sample_weight.shape)}."
                )
            return Stored(sample_weight, "sample_weight")
        return row_weights(sample_weight, X.shape[0])


def row_weights(sample_weight: Any, rows: int) -> NDArray[np.float64] | None:
    """One for each row, in NumPy; a number is that of every row, as in scikit-learn."""
    return check_weight(np.full(rows, sample_weight) if np.isscalar(sample_weight) else sample_weight, rows)
