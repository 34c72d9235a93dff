"""What the three estimators share: one random layer, one least-squares problem.

Training reads the rows in blocks, takes each through the hidden layer and into an accumulator, and solves

    min ‖[h, x, 1] M - T‖² + λ‖M‖²,

where the row of M that belongs to the bias is not penalised (section 4 of the paper, with ridge).
"""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hyperelm import activations, algebras
from hyperelm._validation import FloatArray
from hyperelm.activations import Activation
from hyperelm.algebra import Algebra
from hyperelm.elm.hidden import HiddenLayer
from hyperelm.elm.layout import Layout
from hyperelm.packing import components
from hyperelm.products import right_operator
from hyperelm.solvers import QR, Gram, Solution, solve, svd
from hyperelm.solvers.accumulator import Accumulator
from hyperelm.solvers.choice import METHODS, check_ridge, trusted
from hyperelm.solvers.sums import Planes, chunk_rows, row_blocks
from hyperelm.solvers.team import Team, team

# Pre-activations of this root mean square: in the bend of tanh, where a layer is neither linear nor saturated.
AUTO_SCALE = 0.5


class RankDeficiencyWarning(UserWarning):
    """Columns of the hidden layer are linearly dependent and no ridge chooses among the solutions."""


Weights = FloatArray | None
# Which rows, their hidden layer and targets, the planes of these where they are formed, and who works on them.
Block = tuple[slice, FloatArray, FloatArray, Planes | None, Team]


class BaseELM(BaseEstimator):
    """Parameters, hidden layer, training and prediction of an extreme learning machine."""

    algebra_: Algebra
    hidden_weights_: FloatArray
    output_weights_: FloatArray
    n_features_in_: int
    _saved: tuple[str, ...] = ()  # fitted arrays that a file holds besides those of every model
    _state: Accumulator | Mapping[str, NDArray[Any]] | None  # a mapping until a model from a file goes on

    def __init__(
        self,
        algebra: str | Algebra = "quaternions",
        n_hidden: int = 100,
        *,
        activation: str | Activation = "tanh",
        weight_scale: str | float = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        ridge: float | str = "gcv",
        solver: str = "auto",
        chunk_size: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algebra = algebra
        self.n_hidden = n_hidden
        self.activation = activation
        self.weight_scale = weight_scale
        self.bias = bias
        self.packing = packing
        self.direct_link = direct_link
        self.ridge = ridge
        self.solver = solver
        self.chunk_size = chunk_size
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ input

    def _check_parameters(self) -> None:
        self.algebra_ = algebras.get(self.algebra)
        self._activation = activations.get(self._activation_name())
        components(self.packing, self.algebra_, "packing")
        check_ridge(self.ridge)
        for name, lowest in (("n_hidden", 1), ("chunk_size", 1)):
            value = getattr(self, name)
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not (whole and value >= lowest) and not (name == "chunk_size" and value is None):
                raise ValueError(f"`{name}` must be a whole number >= {lowest}, got {value!r}.")
        if self.solver not in METHODS:
            raise ValueError(f"`solver` must be one of {', '.join(map(repr, METHODS))}, got {self.solver!r}.")
        check_weight_scale(self.weight_scale)

    def _activation_name(self) -> str | Activation:
        return self.activation

    def _check_X(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """A validated array, (n, columns) or (n, features, d); integers stay, to be cast block by block."""
        if not reset and isinstance(X, np.ndarray):
            self._check_axes(X)
        X = checked_input(self, X, reset=reset)
        if not reset:
            self._check_axes(X)
        self._check_components(X, "X")
        return X

    def _check_axes(self, X: NDArray[Any]) -> None:
        if X.ndim != self._input.ndim and X.ndim in (2, 3):
            wanted = f"(n, {self._input.features}, {self._input.dim})" if self._input.ndim == 3 else "(n, columns)"
            raise ValueError(f"X must have the shape {wanted} that the model was fitted with, got {X.shape}.")

    def _check_components(self, array: NDArray[Any], name: str) -> None:
        dim = self.algebra_.dim
        if array.ndim > 3 or (array.ndim == 3 and array.shape[-1] != dim):
            raise ValueError(
                f"`{name}` must have shape (n, columns), or (n, features, {dim}) with a last axis of length {dim} "
                f"({self.algebra_.name or 'the dimension of the algebra'}), got shape {array.shape}. "
                "Use `hyperelm.pack` to put channels into components."
            )

    def _check_weight(self, sample_weight: Any, X: NDArray[Any]) -> FloatArray | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64)

    def _dtype(self, X: NDArray[Any]) -> np.dtype[Any]:
        return X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)

    # ------------------------------------------------------------------ hidden layer

    def _draw(self, X: NDArray[Any], weight: Weights, dtype: np.dtype[Any]) -> None:
        """The weights of the hidden layer, component by component from a normal distribution, and their scale."""
        D, d = self._input.features, self.algebra_.dim
        self.weight_scale_ = self._scale(X, weight)
        rng = random_generator(self.random_state)
        W = rng.standard_normal((D + bool(self.bias), self.n_hidden, d), dtype=dtype)
        W[:D] *= dtype.type(self.weight_scale_)
        if self.bias:
            # The input of the bias is 1 in any unit of the data, so a scale that follows the data leaves it out.
            times = times_auto(self.weight_scale)
            W[D] *= dtype.type(self.weight_scale_ if times is None else times * AUTO_SCALE)
        self.hidden_weights_ = W

    def _scale(self, X: NDArray[Any], weight: Weights) -> float:
        if self.weight_scale == "paper":
            return 10 / self._input.features
        times = times_auto(self.weight_scale)
        if times is None:
            return float(self.weight_scale)
        total, count = 0.0, 0.0
        for rows in row_blocks(len(X), 4096):
            block = np.asarray(X[rows], dtype=np.float64).reshape(len(X[rows]), -1)
            squares = np.einsum("ij,ij->i", block, block)
            w = np.ones(len(block)) if weight is None else weight[rows]
            total, count = total + float(squares @ w), count + float(w.sum())
        mean = total / count if count > 0 else 0.0
        return times * AUTO_SCALE / np.sqrt(mean) if mean > 0 else times * AUTO_SCALE

    def _layer(self) -> HiddenLayer:
        return HiddenLayer(self.hidden_weights_, self.bias, self.direct_link, self._activation, self.algebra_)

    # ------------------------------------------------------------------ training

    def _fit(self, X: NDArray[Any], T: NDArray[Any], weight: Weights, output: Layout, cost: Weights = None) -> None:
        """Draw the hidden layer and fit the output layer to all rows.

        `weight` says how many samples a row stands for, `cost` how much an error on it matters.
        """
        self._begin(X, weight, output)
        self._train(X, T, weight, cost, self._dtype(X))

    def _begin(self, X: NDArray[Any], weight: Weights, output: Layout) -> None:
        """Fix how columns lie in numbers, and the hidden layer."""
        self._input, self._output = Layout.of(X, self.algebra_, self.packing), output
        self._draw(X, weight, self._dtype(X))

    def _continue(
        self, X: NDArray[Any], T: NDArray[Any], weight: Weights, output: Layout, cost: Weights = None
    ) -> None:
        """Take in more rows, which are read once; the first of them fix the hidden layer."""
        if self.solver == "svd":
            raise ValueError(
                "`solver` must not be 'svd' for partial_fit, which does not keep rows. Use 'qr' or 'auto'."
            )
        if not self.__sklearn_is_fitted__():
            self._begin(X, weight, output)
            self._state = None
        elif self._state is None:
            raise ValueError(
                "partial_fit needs the summary of the rows seen, which this model lacks: solver='svd' keeps none, and "
                "a file has it only from `save(model, path, state=True)`. Save it so, or fit it again."
            )
        elif output != self._output:
            raise ValueError(f"`y` must have the shape {self._output.shape(len(X))} of earlier calls, got {T.shape}.")
        state = self._resumed() or self._new_state(Gram if self.solver == "gram" else QR, self.hidden_weights_.dtype)
        self._accumulate(state, X, T, weight, cost)
        self._finish(self._solve(state), rows=state.rows)

    def _resumed(self) -> Accumulator | None:
        """The summary of the rows seen, which of a model from a file are arrays up to here."""
        if isinstance(self._state, Mapping):
            state = self._new_state(Gram if self.solver_ == "gram" else QR, self.hidden_weights_.dtype)
            state.restore(self._state)
            return state
        return self._state

    def _train(self, X: NDArray[Any], T: NDArray[Any], weight: Weights, cost: Weights, dtype: np.dtype[Any]) -> None:
        """Fit the output layer to rows that can be read as often as needed."""
        if self.solver == "svd":
            self._state = None
            H = np.ascontiguousarray(self._layer()(self._input.pack(X, dtype), Team())[0])
            count = float(len(X)) if weight is None else float(weight.sum())
            solution = svd(
                H,
                self._output.pack(T, dtype),
                self.algebra_,
                ridge=self.ridge,
                sample_weight=_product(weight, cost),
                count=count,
                free=self._free(),
            )
            self._finish(solution, rows=len(X))
            return
        for kind in {"auto": (Gram, QR), "gram": (Gram,), "qr": (QR,)}[self.solver]:
            state = self._new_state(kind, dtype)
            self._accumulate(state, X, T, weight, cost)
            solution = self._solve(state)
            if trusted(solution, dtype):
                break
        self._finish(solution, rows=len(X))

    def _new_state(self, kind: type[Accumulator], dtype: np.dtype[Any]) -> Accumulator:
        return kind(self.algebra_, self._layer().width, self._output.features, dtype)

    def _accumulate(self, state: Accumulator, X: NDArray[Any], T: NDArray[Any], weight: Weights, cost: Weights) -> None:
        """Take rows through the hidden layer into an accumulator, which the model keeps for `partial_fit`."""
        total = _product(weight, cost)
        for rows, H, t, planes, crew in self._blocks(X, T, state.dtype):
            count = float(len(H)) if weight is None else float(weight[rows].sum())
            sample_weight = None if total is None else total[rows]
            state.update(H, t, sample_weight, count=count, team=crew, known=planes)
        self._state = state

    def _blocks(self, X: NDArray[Any], T: NDArray[Any], dtype: np.dtype[Any]) -> Iterator[Block]:
        """The hidden layer and the targets of one row block after another."""
        layer, D, N = self._layer(), self._input.features, self._output.features
        size = self.chunk_size or chunk_rows(self.algebra_, D, layer.width, N, dtype.itemsize)
        work = float(len(X)) * layer.width * (D + N + layer.width) * self.algebra_.dim**2
        with team(work) as crew:
            for rows in self._progress(len(X), size):
                x = self._input.pack(X[rows], dtype)
                H, planes = layer(x, crew)
                if T is X:
                    yield rows, H, x, planes, crew
                else:
                    yield rows, H, self._output.pack(T[rows], dtype), None, crew

    def _progress(self, rows: int, size: int) -> Iterator[slice]:
        for block in row_blocks(rows, size):
            yield block
            if self.verbose:
                print(f"\r{type(self).__name__}: {block.stop:,} of {rows:,} rows", end="", file=sys.stderr, flush=True)
        if self.verbose:
            print(file=sys.stderr)

    def _solve(self, state: Accumulator) -> Solution:
        return solve(state, self.ridge, free=self._free())

    def _free(self) -> list[int]:
        """The rows of the output weights that ridge does not penalise: the bias."""
        D, L, _ = self.hidden_weights_.shape
        return [L + (D - 1 if self.direct_link else 0)] if self.bias else []

    def _finish(self, solution: Solution, rows: int) -> None:
        """Keep the solution and build what prediction needs."""
        self.output_weights_ = solution.x
        self.rank_, self.condition_, self.ridge_ = solution.rank, solution.condition, solution.ridge
        self.n_parameters_ = self.hidden_weights_.size + self.output_weights_.size
        self.n_samples_seen_ = rows
        self.solver_ = self._state.method if isinstance(self._state, Accumulator) else "svd"
        if self.ridge == 0 and solution.rank < self.algebra_.dim * len(solution.x):
            warnings.warn(
                f"The hidden layer has rank {solution.rank} of {self.algebra_.dim * len(solution.x)} on {rows} rows: "
                "the output weights of least norm were taken. Use fewer neurons, more rows, or a ridge.",
                RankDeficiencyWarning,
                stacklevel=3,
            )
        self._build_operators()

    def _build_operators(self) -> None:
        """The real matrices of both layers, on raw columns: Φ_R(W)ᵀ and Φ_R(M)ᵀ without the unused places."""
        D, W, M = self._input.features, self.hidden_weights_, self.output_weights_
        inputs = slice(None) if self._input.is_flat else self._input.places
        outputs = slice(None) if self._output.is_flat else self._output.places
        self._encoder = right_operator(W[:D], self.algebra_)[inputs]
        self._encoder_bias = self._decoder_bias = None
        # What was fitted, whatever the parameters are by now.
        if len(W) > D:
            self._encoder_bias = W[D].ravel()
            M, self._decoder_bias = M[:-1], M[-1].ravel()[outputs]
        self._linked = len(M) > W.shape[1]
        self._decoder = right_operator(M, self.algebra_)[:, outputs]
        if self._linked:
            split = W.shape[1] * self.algebra_.dim
            self._decoder = np.concatenate([self._decoder[:split], self._decoder[split:][inputs]])

    # ------------------------------------------------------------------ prediction

    def _codes(self, X: NDArray[Any]) -> FloatArray:
        """The hidden layer of raw rows, (n, L d): one real product and the activation."""
        h = np.asarray(X, dtype=self.hidden_weights_.dtype).reshape(len(X), -1) @ self._encoder
        if self._encoder_bias is not None:
            h += self._encoder_bias
        return activations.apply(self._activation, h)

    def _decode(self, H: FloatArray) -> FloatArray:
        """The output layer of codes, (n, L d) -> (n, columns): one real product."""
        Y = H @ self._decoder
        if self._decoder_bias is not None:
            Y += self._decoder_bias
        return Y

    def _outputs(self, X: NDArray[Any]) -> FloatArray:
        """The network's output for raw rows, (n, columns), block by block."""
        Y = np.empty((len(X), self._output.columns), dtype=self.hidden_weights_.dtype)
        for rows in row_blocks(len(X), self.chunk_size or 4096):
            H = self._codes(X[rows])
            if self._linked:
                H = np.concatenate([H, np.asarray(X[rows], dtype=H.dtype).reshape(len(H), -1)], axis=1)
            Y[rows] = self._decode(H)
        return Y

    def _checked_for_prediction(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "output_weights_")
        return self._check_X(X, reset=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "output_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags


def checked_input(estimator: BaseEstimator, X: Any, *, reset: bool, least: int = 1) -> NDArray[Any]:
    """What scikit-learn makes of an input of any number of axes; integers stay."""
    dtype = None if isinstance(X, np.ndarray) and X.dtype.kind in "iu" else [np.float64, np.float32]
    return validate_data(estimator, X, reset=reset, dtype=dtype, allow_nd=True, ensure_min_samples=least)


def _product(weight: Weights, cost: Weights) -> Weights:
    return weight if cost is None else cost if weight is None else weight * cost


def check_weight_scale(scale: Any) -> None:
    number = isinstance(scale, (int, float, np.integer, np.floating)) and not isinstance(scale, bool)
    known = isinstance(scale, str) and (scale == "paper" or times_auto(scale) is not None)
    if not known and not (number and 0 < scale < np.inf):
        raise ValueError(
            f"`weight_scale` must be 'auto', a multiple of it as '0.1 auto', 'paper' or a number > 0, got {scale!r}."
        )


def times_auto(scale: Any) -> float | None:
    """1 for "auto", 0.1 for "0.1 auto", None for a scale that does not follow the data."""
    if not isinstance(scale, str) or not scale.endswith("auto"):
        return None
    try:
        times = float(scale.removesuffix("auto") or 1)
    except ValueError:
        return None
    return times if 0 < times < np.inf else None


def random_generator(random_state: Any) -> np.random.Generator:
    """NumPy's generator for what scikit-learn calls a random state."""
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
