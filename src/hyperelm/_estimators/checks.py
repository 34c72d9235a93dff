"""Checks of the rows that users give, and the warnings of a fit.

With `sklearn.set_config(array_api_dispatch=True)` arrays of other libraries than NumPy stay what they are. Fitted
arrays live on the device of the training rows, and targets are moved there. Without that setting, scikit-learn makes
NumPy arrays of them.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import validate_data

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend import NUMPY, Backend, backend_of
from hyperelm._backend.arrays import (
    are_together,
    as_array,
    as_parts,
    check_unmasked,
    detached,
    is_complex,
    numpy_dtype,
    place_of,
    to_numpy,
)
from hyperelm._network.layout import COMPLEX, Layout, looks_turned, takes_complex
from hyperelm._network.network import Network
from hyperelm._solvers.accumulator import check_weight
from hyperelm._solvers.solve import Solution
from hyperelm._training.rows import Array, DenseChunks, Rows, Stored, is_chunked, is_stored


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


class Form(NamedTuple):
    """The axes of rows beside their number and that of features.

    channels : the length of a third axis, or 0
    """

    ndim: int
    channels: int
    is_complex: bool

    @classmethod
    def of(cls, X: Any) -> Form:
        return cls(X.ndim, X.shape[2] if X.ndim == 3 else 0, is_complex(X))

    @classmethod
    def of_layout(cls, layout: Layout) -> Form:
        return cls(layout.ndim, layout.group if layout.ndim == 3 else 0, layout.is_complex)


class RowChecks:
    """The part of an estimator that checks rows."""

    algebra_: Algebra
    network_: Network
    n_features_in_: int
    packing: str
    _form: Form  # of the rows that a fit began with

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, before: int | None = None) -> Rows:
        """Validated rows. `before` is the number of the first row, for chunks, whose values are checked when read."""
        X = self._check_X(X, reset=reset, before=before)
        T = self._check_targets(X, y, before)
        check_consistent_length(X, T)
        return Rows(X, T, self._check_weight(sample_weight, X))

    def _check_targets(self, X: Array, y: Any, before: int | None) -> Array:
        """Validated targets. Each estimator has its own checks. The targets of an auto-encoder are the rows."""
        return X

    def _check_X(self, X: Any, *, reset: bool, before: int | None = None) -> Array:
        """A validated array, (n, columns), (n, features, d) or (n, steps, channels). Integers stay: they are cast chunk
        by chunk. Complex numbers stay, too: they become pairs chunk by chunk."""
        if is_chunked(X):
            raise ValueError(f"`X` must be rows, got {type(X).__name__}. Only `fit` takes chunks of rows.")
        if is_stored(X) or (before is not None and isinstance(X, np.ndarray)):
            X = self._check_stored(Stored(X, "X", before=before or 0), reset=reset)
        elif issparse(X):
            X = dense_by_chunks(self, X, reset=reset, before=before or 0)
        elif has_complex(X):
            X = self._check_complex(X, reset=reset)
        else:
            if not reset and hasattr(X, "ndim"):
                self._check_axes(X)
            with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums up all of it
                X = validate_data(self, as_given(X, "X"), reset=reset, dtype=kept_types(X), allow_nd=True)
        if reset:
            self._form = Form.of(X)
        self._check_axes(X)
        self._check_components(X, "X")
        return X

    def _check_complex(self, X: Any, *, reset: bool) -> Any:
        """Validated complex numbers, (n, features)."""
        array = checked_complex(X, "X", self.algebra_)
        if array.ndim != 2:
            raise ValueError(f"Expected 2D array of complex numbers, (n, features), got `X` of shape {array.shape}.")
        if not reset:
            self._check_axes(array)
        # A frame has names of columns.
        validate_data(self, X if hasattr(X, "shape") else array, reset=reset, skip_check_array=True)
        return array

    def _check_stored(self, X: Stored, *, reset: bool) -> Stored:
        """Check what scikit-learn checks of an array, except its values."""
        if X.ndim < 2:
            must = f"`X` must have shape (n, columns), got {X.shape}."
            raise ValueError(f"Expected 2D array, got 1D array instead: {must}")
        if 0 in X.shape:
            empty = "sample" if len(X) == 0 else "feature"
            raise ValueError(f"Found array with 0 {empty}(s) (shape={X.shape}) while a minimum of 1 is required.")
        if not reset:
            self._check_axes(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _check_axes(self, X: Array) -> None:
        fitted: Network | None = getattr(self, "network_", None)
        form = self._form if fitted is None else Form.of_layout(fitted.input)
        if X.ndim not in (2, 3):
            return
        if (X.ndim, X.shape[2] if X.ndim == 3 else 0) != form[:2]:
            wanted = f"(n, {self.n_features_in_}, {form.channels})" if form.ndim == 3 else "(n, columns)"
            raise ValueError(f"X must have the shape {wanted} that the model was fitted with, got {tuple(X.shape)}.")
        if is_complex(X) != form.is_complex:
            wanted = "complex" if form.is_complex else "real"
            raise ValueError(f"X must be {wanted} as the rows that the model was fitted with, got dtype {X.dtype}.")

    def _check_components(self, array: Array, name: str) -> None:
        """Refuse axes that are neither columns nor numbers nor steps of channels."""
        dim = self.algebra_.dim
        if is_complex(array):
            check_complex(array, name, self.algebra_)
        if array.ndim > (2 if is_complex(array) else 3):
            raise ValueError(
                f"`{name}` must have shape (n, columns), (n, features, {dim}) with numbers of {dim} components "
                f"({self.algebra_.name or 'the dimension of the algebra'}), or (n, time, channels), got shape "
                f"{tuple(array.shape)}. Use `hyperelm.pack` to put channels into components."
            )
        if array.ndim == 3 and array.shape[2] != dim and looks_turned(array.shape):
            steps, channels = array.shape[:0:-1]
            raise ValueError(
                f"`{name}` must have shape (n, time, channels) or (n, features, {dim}), got shape "
                f"{tuple(array.shape)}, which looks like {channels} channels of {steps} steps, (n, channels, time). "
                f"Turn it: {name}.swapaxes(1, 2). If these are {steps} channels, use `hyperelm.pack`."
            )

    def _check_weight(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        if not is_stored(sample_weight):
            return row_weights(sample_weight, X.shape[0])
        if (shape := tuple(sample_weight.shape)) != (len(X),):
            raise ValueError(f"`sample_weight` must have one weight for each of the {len(X)} rows, got shape {shape}.")
        return Stored(sample_weight, "sample_weight")


def dense_by_chunks(estimator: Any, X: Any, *, before: int = 0, **how: Any) -> Stored:
    """Sparse rows, checked as scikit-learn does (`how` goes to its check), that become dense chunk by chunk."""
    rows = validate_data(estimator, X, accept_sparse="csr", dtype=kept_types(X), **how)
    return Stored(DenseChunks(rows), "X", before=before)


def rows_of_search(estimator: Any, X: Any) -> Array:
    """Rows that candidates of any algebra are compared on, in NumPy or dense by chunks."""
    if has_complex(X):
        rows = to_numpy(checked_complex(X, "X", COMPLEX))
        validate_data(estimator, X if hasattr(X, "shape") else rows, skip_check_array=True)
        return rows
    if issparse(X):
        return dense_by_chunks(estimator, X, ensure_min_samples=2)
    rows = validate_data(estimator, as_given(X, "X"), dtype=kept_types(X), allow_nd=True, ensure_min_samples=2)
    return to_numpy(rows)


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """One weight for each row, in NumPy. A single number is the weight of every row, as in scikit-learn."""
    return check_weight(np.full(n_rows, sample_weight) if np.isscalar(sample_weight) else sample_weight, n_rows)


def random_generator(random_state: Any) -> np.random.Generator:
    """NumPy's generator for what scikit-learn calls a random state."""
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


# ---------------------------------------------------------------------- arrays of other libraries


def _backend_under_dispatch(array: Any) -> Backend:
    """The backend of an array that stays what it is; NumPy's where scikit-learn makes a NumPy array of it."""
    return backend_of(array) if get_config()["array_api_dispatch"] else NUMPY


def kept_types(X: Any) -> Any:
    """The types that scikit-learn may leave as they are. None stands for all types: integers are cast by chunks."""
    return _backend_under_dispatch(X).float_types(X)


def precision(X: Any) -> np.dtype[Any]:
    """The precision of a model for rows X: single or double."""
    dtype = np.zeros(0, numpy_dtype(X)).real.dtype
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def as_given(array: Any, name: str) -> Any:
    """The array without its gradients. It must not be masked: scikit-learn would drop that silently."""
    check_unmasked(array, name)
    return detached(array)


def has_complex(array: Any) -> bool:
    """Whether an array, a frame or a list, as users give them, holds complex numbers."""
    if hasattr(array, "dtypes"):
        return any(getattr(dtype, "kind", "") == "c" for dtype in np.atleast_1d(np.asarray(array.dtypes, object)))
    if isinstance(array, (list, tuple)):
        first = array[0] if len(array) else 0
        return any(np.iscomplexobj(item) for item in (first if isinstance(first, (list, tuple)) else [first]))
    return hasattr(array, "dtype") and is_complex(array)


def check_complex(array: Any, name: str, algebra: Algebra | None) -> None:
    """Refuse complex numbers where the algebra, if it is known, has others."""
    if algebra is None or not takes_complex(algebra):
        of = "" if algebra is None else f" by the algebra {algebra.name or algebra.dim}"
        raise ValueError(
            f"Complex data not supported{of}, got `{name}` of dtype {array.dtype}. Take algebra='complex', whose "
            "numbers they are, or give their parts as columns: np.hstack([z.real, z.imag])."
        )


def checked_complex(array: Any, name: str, algebra: Algebra | None) -> Any:
    """Complex numbers of one or two axes, which must be finite and not masked."""
    check_unmasked(array, name)
    array = as_array(detached(array)) if get_config()["array_api_dispatch"] else to_numpy(array)
    check_complex(array, name, algebra)
    check_array(as_parts(array), allow_nd=True, dtype=None, input_name=name)
    return array


def check_place(X: Any, weights: Any, caller: str) -> None:
    """Refuse rows on another device than the weights: nothing is moved without the user's knowledge."""
    if not are_together(X, weights):
        raise ValueError(
            f"Inputs passed to {caller} must use the same namespace and the same device as those passed to fit(), "
            f"{place_of(weights)}, got {place_of(X)}. Move `X` there. Arrays of other libraries than NumPy stay what "
            "they are only under sklearn.set_config(array_api_dispatch=True)."
        )


def warn_of(model: Any, solution: Solution, n_rows: int, idle: int) -> None:
    """Warn where the output layer of `model` predicts a constant, or where it was not unique.

    `idle` is the number of weights that no output shows whatever the rows are.
    """
    if solution.is_bias_only:
        predicted = "the mean of the targets" if model.bias else "zero"
        warnings.warn(
            f"No ridge does better than {predicted} on rows that were left out, so that is what the model predicts "
            f"for every row ({n_rows} rows, {model.n_hidden} neurons). Check the inputs and their scales, or "
            "give more rows.",
            BiasOnlyWarning,
            stacklevel=6,
        )
    full = solution.coef.shape[0] * solution.coef.shape[2] - idle
    if model.ridge == 0 and model.rank_ < full:
        warnings.warn(
            f"The hidden layer has rank {model.rank_} of {full} on {n_rows} rows: "
            "the output weights of least norm were taken. Use fewer neurons, more rows, or a ridge.",
            RankDeficiencyWarning,
            stacklevel=6,
        )
