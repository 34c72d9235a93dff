"""Which algebra, weight scale, readout, ridge and number of neurons: all of a grid, without refits.

The score of a candidate is the mean squared error of rows that it has not seen: exactly, by leaving out one row after
the other (`_solvers.loo`, a second pass over the rows), or estimated by generalised cross-validation in the same pass
(`_solvers.spectrum`). Both give every ridge from one decomposition. The accumulator of a hidden layer contains
that of its first neurons, and the sums of all components contain those of every readout. So the rows go through the
largest layer only. Hidden layers are random: candidates are scored on several and the scores are averaged. The first
draw already leaves out algebras and scales of which no candidate comes near the best. Candidates within 1 % of the best
count as equal, and the one with the fewest parameters is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import to_numpy
from hyperelm._backend.workspace import one_blas
from hyperelm._estimators.base import draft
from hyperelm._estimators.candidates import Curve, Layer, Part, candidates_of, column, mean_square, most_parsimonious
from hyperelm._estimators.checks import (
    BiasOnlyWarning,
    RankDeficiencyWarning,
    as_given,
    kept_types,
    precision,
    random_generator,
    row_weights,
)
from hyperelm._estimators.grid import Grid
from hyperelm._estimators.regressor import ELMRegressor, checked_target
from hyperelm._network.activations import Function
from hyperelm._network.layers import Given
from hyperelm._network.layout import Layout
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.ridge import Scores
from hyperelm._solvers.solve import SOLVERS
from hyperelm._solvers.spectrum import PER_DECADE, Spectrum
from hyperelm._training.passes import LeftOut, PartOfLayer, Training
from hyperelm._training.progress import Progress
from hyperelm._training.readouts import accumulator_of, free_unknowns, readouts_of
from hyperelm._training.rows import LocalSource, Rows, is_chunked, itself
from hyperelm._validation import FloatArray, check_choice, check_whole

_LOO_PER_DECADE = 3  # ridges of which "auto" takes leave-one-out residuals

_LEARNING = 8  # steps of the search for a table; the model that is chosen has as many as it takes
_FAR = 1.25  # times the error of the best on the first draw: algebras and scales beyond it are left out

SCORINGS = ("loo", "gcv")


class ELMRegressorCV(RegressorMixin, BaseEstimator):
    """Extreme learning machine for regression that chooses its algebra, size, weight scale, readout and ridge.

    Every combination of the values is scored by the mean squared error of rows left out, without refits, and the
    best is fitted to all rows.

    Parameters
    ----------
    algebra : "auto", algebra or list of algebras, default="auto"
        "auto" takes the associative algebras of the catalogue with up to 4 components, or, for numbers
        (n, features, d), all with d; only those that are nondegenerate.
    n_hidden : "auto", int or list of int, default="auto"
        "auto" takes 16, 32, 64 and 128 neurons, but not more than rows.
    n_parameters : int or list of int, optional
        Compare networks with as nearly as possible this many parameters, instead of equal `n_hidden`: an algebra of
        dimension 4 has four real numbers in every weight.
    activation : str or callable, default="tanh"
    weight_scale : "auto", float, str or list of them, default="auto"
        What `ELMRegressor` takes. "auto" takes multiples of that of `ELMRegressor`, from 0.01 to 3; for that one
        alone write ["auto"].
    bias : bool, default=True
    packing : {"full", "imaginary", "real"}, default="full"
    direct_link : bool, default=False
    readout : "auto", str or list of str, default="auto"
        "algebra", "learned" or "free", as for `ELMRegressor`. "auto" tries all that can make a difference. Where
        `n_hidden` is "auto", they are compared at equal numbers of parameters.
    ridge : "auto", float or list of float, default="auto"
        "auto" looks at a path of ridges for every candidate and keeps the best.
    scoring : {"loo", "gcv"}, default="loo"
        Exact leave-one-out errors, or generalised cross-validation, which reads the rows once. The latter also counts
        components of the output that no column fills.
    n_draws : int, default=3
        Random hidden layers of a candidate. Algebras and weight scales that are far behind on the first have no others.
    solver : {"auto", "gram", "qr", "svd"}, default="auto"
        In the search "auto" is "gram", and "qr" where a ridge is too small for it; "svd" is "qr".
    chunk_size : int, optional
    random_state : int, RandomState instance or None, default=None
        The model that is fitted in the end has the same.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    best_algebra_ : Algebra
    best_n_hidden_, best_weight_scale_, best_readout_, best_ridge_ : int, float or str, str, float
    best_estimator_ : ELMRegressor
        Fitted to all rows.
    best_score_ : float
        Its mean squared error of rows left out, with a minus sign.
    best_index_, best_params_ : int, dict
    cv_results_ : dict of arrays
        For every candidate "param_algebra", "param_n_hidden", "param_weight_scale", "param_readout", "param_ridge",
        "params", "n_parameters", "is_bias_only" (whether the mean of the targets is all that it predicts),
        "draw0_test_score", …, "mean_test_score", "std_test_score" and "rank_test_score". Scores are mean squared errors
        with a minus sign, NaN of draws that a candidate did not have; such a candidate is not chosen.
        With ridge="auto" only the best ridge of each path is listed.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from hyperelm import ELMRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> Y = np.cross(X, np.tanh(X[:, ::-1]))
    >>> model = ELMRegressorCV(["real", "quaternions"], [8, 32], packing="imaginary", random_state=0).fit(X, Y)
    >>> model.best_n_hidden_, bool(model.score(X, Y) > 0.98)
    (32, True)
    >>> len(model.cv_results_["params"])
    40
    """

    def __init__(
        self,
        algebra: Any = "auto",
        n_hidden: Any = "auto",
        *,
        n_parameters: Any = None,
        activation: str | Function = "tanh",
        weight_scale: Any = "auto",
        bias: bool = True,
        packing: str = "full",
        direct_link: bool = False,
        readout: Any = "auto",
        ridge: Any = "auto",
        scoring: str = "loo",
        n_draws: int = 3,
        solver: str = "auto",
        chunk_size: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algebra = algebra
        self.n_hidden = n_hidden
        self.n_parameters = n_parameters
        self.activation = activation
        self.weight_scale = weight_scale
        self.bias = bias
        self.packing = packing
        self.direct_link = direct_link
        self.readout = readout
        self.ridge = ridge
        self.scoring = scoring
        self.n_draws = n_draws
        self.solver = solver
        self.chunk_size = chunk_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ELMRegressorCV:
        """Score every candidate and fit the best.

        A sample weight is a number of samples: a row of weight 2 counts as two rows, of which one is left out.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        y : array of shape (n,), (n, columns) or (n, N, d)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        self.__dict__.pop("best_estimator_", None)  # a fit that fails leaves no mixture of two
        source = self._source(X, y, sample_weight)
        rows = source.first.chunk(slice(0, len(source.first)))
        if rows.count == 0:
            raise ValueError(f"`sample_weight` must not be zero for all {len(rows)} rows.")
        dims = [array.shape[2] for array in (rows.X, rows.T) if array.ndim == 3]
        given = self.algebra, self.weight_scale, self.n_hidden, self.n_parameters, self.readout, self.ridge
        grid = Grid.of(*given, rows=rows.count, dims=dims)
        seeds = random_generator(self.random_state).integers(2**31 - 1, size=self.n_draws)
        rounding = (1e3 * float(np.finfo(precision(rows.X)).eps)) ** 2 * mean_square(rows)
        self._keep(self._search(grid, seeds.tolist(), source, rounding), rounding)
        if self.cv_results_["is_bias_only"][self.best_index_]:
            warnings.warn(
                "No candidate does better than the mean of the targets on rows that were left out, so that is what the "
                f"model predicts for every row ({len(rows)} rows). Check the inputs and their scales, or give more "
                "rows.",
                BiasOnlyWarning,
                stacklevel=2,
            )
        self.best_estimator_ = fit_chosen(self._network(**self.best_params_), X, y, sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """The output of the best model for X, in the shape of the y that it was fitted to."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, joint: bool = False) -> tuple[FloatArray, FloatArray]:
        """The interval of the best model for X with this `coverage`, `joint` or not, as `ELMRegressor` gives it.

        That the model was chosen does not count.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_interval(X, coverage, joint=joint)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the best model on X and y with `sample_weight`, the mean over the columns or components of y."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight)

    # ------------------------------------------------------------------ candidates

    def _source(self, X: Any, y: Any, sample_weight: Any) -> LocalSource:
        """All rows, in memory."""
        check_choice(self.scoring, SCORINGS, "scoring")
        check_whole(self.n_draws, "n_draws")
        if is_chunked(X):
            raise ValueError(f"`X` must be an array of all rows, got {type(X).__name__}.")
        # Candidates are compared in NumPy; the chosen model is fitted where the rows are.
        X = to_numpy(validate_data(self, as_given(X, "X"), dtype=kept_types(X), allow_nd=True, ensure_min_samples=2))
        y = to_numpy(checked_target(self, y))
        check_consistent_length(X, y)
        weight = None if sample_weight is None else row_weights(sample_weight, len(X))
        return LocalSource([Rows(X, y, weight)], len(X), "")

    def _network(
        self,
        algebra: Any,
        n_hidden: int,
        weight_scale: Any,
        readout: str = "algebra",
        ridge: float = 0.0,
        **changes: Any,
    ) -> ELMRegressor:
        shared = ("activation", "bias", "packing", "direct_link", "solver", "chunk_size", "random_state")
        parameters = {name: getattr(self, name) for name in shared} | changes
        return ELMRegressor(algebra, n_hidden, weight_scale=weight_scale, readout=readout, ridge=ridge, **parameters)

    # ------------------------------------------------------------------ search

    def _search(
        self, grid: Grid, seeds: Sequence[int], source: LocalSource, rounding: float
    ) -> Iterator[dict[str, Any]]:
        """Every candidate with its errors, one of each random layer; differences up to `rounding` say nothing."""
        layers = [
            Layer(algebra, scale, self._plan(algebra, grid, source.first), [])
            for algebra, scale in product(grid.algebras, grid.scales)
        ]
        going_on = layers
        with Progress(type(self).__name__ if self.verbose else "", "", len(layers), unit="layers") as progress:
            for n, seed in enumerate(seeds):
                for layer in going_on:
                    largest = max(part.neurons for part in layer.plan)
                    network = self._network(layer.algebra, largest, layer.scale, random_state=seed)
                    layer.curves.append(self._curves(draft(network, source), layer.plan, grid, source))
                    progress.advance(0 if n else 1)
                if n == 0:
                    best = min(layer.first_error for layer in layers)
                    going_on = [layer for layer in layers if layer.first_error <= _FAR * best + rounding] or layers
        for layer in layers:
            for part, curves in zip(layer.plan, zip(*layer.curves)):
                common = {
                    "algebra": layer.algebra,
                    "n_hidden": part.neurons,
                    "weight_scale": layer.scale,
                    "readout": part.readout,
                    "n_parameters": part.parameters,
                    # Networks that are compared at equal numbers of parameters differ by what a neuron has.
                    "size": part.size,
                }
                yield from candidates_of(common, curves, grid, rounding)

    def _plan(self, algebra: Algebra, grid: Grid, rows: Rows) -> list[Part]:
        """The readouts and numbers of neurons of networks over an algebra."""
        inputs, outputs = (Layout.of(array, algebra, self.packing) for array in (rows.X, rows.T))
        plan = []
        for shape in grid.shapes(inputs, outputs, bias=bool(self.bias), direct_link=bool(self.direct_link)):
            sizes = grid.sizes(shape)
            wanted = [shape.parameters(L) for L in sizes] if grid.parameters is None else grid.parameters
            plan += [Part(shape.readout, L, shape.parameters(L), size) for L, size in zip(sizes, wanted)]
        return plan

    def _curves(self, training: Training, plan: Sequence[Part], grid: Grid, source: LocalSource) -> list[Curve]:
        """The errors of every ridge, for every part of a plan.

        Normal equations show neither ridges nor errors below their rounding. A curve that reaches them is computed
        again with `qr`.
        """
        by_component = any(part.readout != "algebra" for part in plan)
        training = replace(training, readout="free" if by_component else "algebra")
        in_turn = SOLVERS[self.solver if self.solver in ("auto", "gram") else "qr"]
        with one_blas():
            for method in in_turn:
                curves = self._curves_of(replace(training, method=method), plan, grid, source)
                if not any(curve.is_cut_off or (grid.ridges is None and curve.still_falls) for curve in curves):
                    break
        return curves

    def _curves_of(self, training: Training, plan: Sequence[Part], grid: Grid, source: LocalSource) -> list[Curve]:
        accumulator = source.fold(training, itself).accumulator
        if self.solver == "auto" and not accumulator.is_safe:
            return self._curves_of(replace(training, method=SOLVERS["qr"][0]), plan, grid, source)
        parts = [self._part_of_layer(training, accumulator, part, grid) for part in plan]
        if self.scoring == "gcv":
            by_gcv = [p.spectrum.accumulator.algebra.dim * p.spectrum.gcv(p.ridges) for p in parts]
            scores = [Scores(of_ridges, of_ridges) for of_ridges in by_gcv]
        else:
            sums = source.fold(LeftOut(training, parts), itself)
            scores = [Scores.of(*total / (accumulator.weight or 1.0)) for total in sums]
        columns = training.output.columns
        # What normal equations leave of no error: 94 dB below the targets, 41 in single precision.
        least = float(np.finfo(accumulator.dtype).eps ** 0.6) * accumulator.square
        least /= max(accumulator.weight, 1) * columns
        curves = []
        for part, of_path in zip(parts, scores):
            # No candidate is preferred for an error that is smaller than rounding lets one know.
            lowest, unit = part.spectrum.resolution(part.ridges), part.spectrum.largest**2
            errors, compared = (np.maximum(score, lowest) / columns for score in of_path)
            curves.append(Curve(part.ridges, errors, compared, unit, part.spectrum.floor * unit, least))
        return curves

    def _part_of_layer(self, training: Training, accumulator: Accumulator, part: Part, grid: Grid) -> PartOfLayer:
        """The first neurons of a layer with one readout: their problem, and the ridges to try."""
        weights, d = training.encoder.weights, training.algebra.dim
        neurons, L = weights.shape[1], part.neurons
        kept = np.append(np.arange(L), np.arange(neurons, training.width))
        own = replace(training, encoder=Given(weights[:, :L]), readout=part.readout)
        if training.by_component:
            rest = np.arange(neurons * d, accumulator.unknowns)
            accumulator = accumulator.restricted(np.append(np.arange(L * d), rest))
            (readout, *_) = readouts_of(accumulator, own, "gcv", random_starts=0, steps=_LEARNING)
            accumulator = accumulator_of(readout, accumulator, own)
        else:
            accumulator = accumulator.restricted(kept)
        spectrum = Spectrum(accumulator, free_unknowns(accumulator, own))
        ridges = self._path(spectrum) if grid.ridges is None else grid.ridges
        return PartOfLayer(own, kept, spectrum, ridges)

    def _path(self, spectrum: Spectrum) -> NDArray[np.float64]:
        if spectrum.largest == 0:  # a constant layer
            return np.zeros(1)
        path = spectrum.path(PER_DECADE if self.scoring == "gcv" else _LOO_PER_DECADE)
        return np.concatenate([[0.0], path]) if spectrum.accumulator.shows_no_ridge else path

    # ------------------------------------------------------------------ results

    def _keep(self, candidates: Iterable[dict[str, Any]], rounding: float) -> None:
        """The results of all candidates, and the best of them."""
        rows = list(candidates)
        errors = np.full((len(rows), max(len(row["errors"]) for row in rows)), np.nan)
        for n, row in enumerate(rows):
            errors[n, : len(row["errors"])] = row["errors"]
        mean = np.nanmean(errors, axis=1)
        sizes = np.array([row["size"] for row in rows])
        is_complete = ~np.isnan(errors).any(axis=1)
        if not np.isfinite(mean[is_complete]).any():
            raise ValueError(
                "No candidate has an error on rows left out: all have as many unknowns as there are rows. Give fewer "
                "neurons or a ridge > 0."
            )
        names = ("algebra", "n_hidden", "weight_scale", "readout", "ridge")
        results: dict[str, Any] = {f"param_{name}": column([row[name] for row in rows]) for name in names}
        results["param_algebra"] = column([row["algebra"].name or row["algebra"] for row in rows])
        results["params"] = [{name: row[name] for name in names} for row in rows]
        results |= {name: np.array([row[name] for row in rows]) for name in ("n_parameters", "is_bias_only")}
        for n, of_draw in enumerate(errors.T):
            results[f"draw{n}_test_score"] = -of_draw
        with np.errstate(invalid="ignore"):  # infinite errors have no spread
            results |= {"mean_test_score": -mean, "std_test_score": np.nanstd(errors, axis=1)}
        order = np.sort(mean)
        results["rank_test_score"] = np.searchsorted(order, mean).astype(np.int32) + 1
        self.cv_results_ = results
        self.best_index_ = most_parsimonious(np.where(is_complete, mean, np.inf), sizes, rounding)
        self.best_params_ = results["params"][self.best_index_]
        self.best_score_ = float(-mean[self.best_index_])
        self.best_algebra_: Algebra = self.best_params_["algebra"]
        self.best_n_hidden_: int = self.best_params_["n_hidden"]
        self.best_weight_scale_: float | str = self.best_params_["weight_scale"]
        self.best_readout_: str = self.best_params_["readout"]
        self.best_ridge_: float = self.best_params_["ridge"]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def fit_chosen(model: ELMRegressor, X: Any, y: Any, sample_weight: Any = None) -> ELMRegressor:
    """Fit what a search has chosen. It has scored ridge 0 on rows left out, so the rank warning says nothing new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        return model.fit(X, y, sample_weight)
