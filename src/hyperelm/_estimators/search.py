"""The base of the searches: which algebra, weight scale, readout, ridge and number of neurons.

The score of a candidate is the mean loss of rows that it has not seen: exactly, by leaving out one row after the other,
or estimated by generalised cross-validation (`scoring`). Hidden layers are random: candidates are scored on several and
the scores are averaged. The first draw already leaves out algebras and scales of which no candidate comes near the
best. Candidates within 1 % of the best count as equal, and the one with the fewest parameters is taken.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from hyperelm._algebra.algebra import Algebra
from hyperelm._backend.arrays import is_complex
from hyperelm._estimators.candidates import Layer, Part, candidates_of, column, most_parsimonious
from hyperelm._estimators.checks import (
    BiasOnlyWarning,
    RankDeficiencyWarning,
    random_generator,
    row_weights,
    rows_of_search,
)
from hyperelm._estimators.grid import Grid
from hyperelm._estimators.race import Race
from hyperelm._estimators.scoring import Scorer, Scoring
from hyperelm._network.activations import Function
from hyperelm._network.layout import COMPLEX, Layout
from hyperelm._training.rows import Chunk, LocalSource, Rows, is_chunked
from hyperelm._validation import check_choice, check_whole

S = TypeVar("S", bound="BaseSearch")


class BaseSearch(BaseEstimator):
    """What the searches share: the grid of candidates, how they are scored, and the choice."""

    best_estimator_: Any
    _scorings: Mapping[str, Scoring]  # by the names that `scoring` may have
    _shared: tuple[str, ...] = ("activation", "bias", "packing", "direct_link", "solver", "chunk_size", "random_state")

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
        n_jobs: int | None = None,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self: S, X: Any, y: Any, sample_weight: Any = None) -> S:
        """Score every candidate and fit the best.

        A sample weight is a number of samples: a row of weight 2 counts as two rows, of which one is left out.

        Parameters
        ----------
        X : array of shape (n, columns) or (n, features, d)
        y : array of shape (n,), (n, columns) or (n, N, d)
            The targets, as the model takes them that is chosen.
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
        arrays = source.first.X, source.first.T
        dims = [array.shape[2] for array in arrays if array.ndim == 3]
        is_auto = isinstance(self.algebra, str) and self.algebra == "auto"
        # Of all algebras, only one takes complex numbers.
        algebra = COMPLEX if is_auto and any(map(is_complex, arrays)) else self.algebra
        given = algebra, self.weight_scale, self.n_hidden, self.n_parameters, self.readout, self.ridge
        grid = Grid.of(*given, rows=rows.count, dims=dims)
        seeds = random_generator(self.random_state).integers(2**31 - 1, size=self.n_draws)
        rounding = self._rounding(rows)
        self._keep(self._search(grid, seeds.tolist(), source, rounding), rounding)
        if self.cv_results_["is_bias_only"][self.best_index_]:
            warnings.warn(
                f"No candidate does better than {self._simplest} on rows that were left out, so that is what the "
                f"model predicts for every row ({len(rows)} rows). Check the inputs and their scales, or give more "
                "rows.",
                BiasOnlyWarning,
                stacklevel=2,
            )
        self.best_estimator_ = fit_chosen(self._network(**self.best_params_), X, y, sample_weight)
        return self

    # ------------------------------------------------------------------ what a search says of its targets

    _model: type[Any]  # the class of the model that is chosen
    _simplest: str  # what a model predicts that has learned nothing, for people

    @abstractmethod
    def _checked_target(self, y: Any) -> NDArray[Any]:
        """The targets in NumPy."""

    @abstractmethod
    def _output_layout(self, rows: Rows, algebra: Algebra) -> Layout:
        """How targets become numbers."""

    @abstractmethod
    def _rounding(self, rows: Chunk) -> float:
        """Differences of losses up to this say nothing."""

    # ------------------------------------------------------------------ candidates

    def _source(self, X: Any, y: Any, sample_weight: Any) -> LocalSource:
        """All rows, in memory; sparse ones become dense chunk by chunk."""
        check_choice(self.scoring, self._scorings, "scoring")
        check_whole(self.n_draws, "n_draws")
        if is_chunked(X):
            raise ValueError(f"`X` must be an array of all rows, got {type(X).__name__}.")
        # Candidates are compared in NumPy; the chosen model is fitted where the rows are.
        X, y = rows_of_search(self, X), self._checked_target(y)
        check_consistent_length(X, y)
        weight = None if sample_weight is None else row_weights(sample_weight, len(X))
        return LocalSource([Rows(X, y, weight)], len(X), "")

    def _network(self, algebra: Any, n_hidden: int, weight_scale: Any, **changes: Any) -> Any:
        """The model with these parameters and with what all candidates share."""
        parameters = {name: getattr(self, name) for name in self._shared} | {"ridge": 0.0} | changes
        return self._model(algebra, n_hidden, weight_scale=weight_scale, **parameters)

    # ------------------------------------------------------------------ search

    def _search(
        self, grid: Grid, seeds: Sequence[int], source: LocalSource, rounding: float
    ) -> Iterator[dict[str, Any]]:
        """Every candidate with its losses, one of each random layer; differences up to `rounding` say nothing."""
        layers = [
            Layer(algebra, scale, self._plan(algebra, grid, source.first))
            for algebra, scale in product(grid.algebras, grid.scales)
        ]
        scorer = Scorer(source, self._scorings[self.scoring], self.solver, grid.ridges)
        Race(layers, scorer, self._largest, rounding, self.n_jobs, type(self).__name__ if self.verbose else "").run(
            seeds
        )
        for layer in layers:
            for n, part in enumerate(layer.plan):
                common = {
                    "algebra": layer.algebra,
                    "n_hidden": part.neurons,
                    "weight_scale": layer.scale,
                    "readout": part.readout,
                    "n_parameters": part.parameters,
                    # Networks that are compared at equal numbers of parameters differ by what a neuron has.
                    "size": part.size,
                }
                yield from candidates_of(common, layer.curves_of(n), grid, rounding)

    def _largest(self, layer: Layer, seed: int) -> Any:
        """The largest network of a layer on one draw."""
        largest = max(part.neurons for part in layer.plan)
        return self._network(layer.algebra, largest, layer.scale, random_state=seed)

    def _plan(self, algebra: Algebra, grid: Grid, rows: Rows) -> list[Part]:
        """The readouts and numbers of neurons of networks over an algebra."""
        inputs, outputs = Layout.of(rows.X, algebra, self.packing), self._output_layout(rows, algebra)
        plan = []
        for shape in grid.shapes(inputs, outputs, bias=bool(self.bias), direct_link=bool(self.direct_link)):
            sizes = grid.sizes(shape)
            wanted = [shape.parameters(L) for L in sizes] if grid.parameters is None else grid.parameters
            pairs = enumerate(zip(sizes, wanted))
            plan += [Part(shape.readout, L, shape.parameters(L), size, place) for place, (L, size) in pairs]
        return plan

    # ------------------------------------------------------------------ results

    def _keep(self, candidates: Iterable[dict[str, Any]], rounding: float) -> None:
        """The results of all candidates, and the best of them."""
        rows = list(candidates)
        errors = np.full((len(rows), self.n_draws), np.nan)
        for n, row in enumerate(rows):
            errors[n, : len(row["errors"])] = row["errors"]
        mean, spread = np.full(len(rows), np.inf), np.full(len(rows), np.nan)
        was_scored = ~np.isnan(errors[:, 0])
        with np.errstate(invalid="ignore"):  # infinite errors have no spread
            mean[was_scored] = np.nanmean(errors[was_scored], axis=1)
            spread[was_scored] = np.nanstd(errors[was_scored], axis=1)
        sizes = np.array([row["size"] for row in rows])
        is_complete = ~np.isnan(errors).any(axis=1)
        if not np.isfinite(mean[is_complete]).any():
            raise ValueError(
                "No candidate has an error on rows left out: all have as many unknowns as there are rows. Give fewer "
                "neurons or a ridge > 0."
            )
        names, no_loss = ("algebra", "n_hidden", "weight_scale", "readout", "ridge"), self._scorings[self.scoring].best
        results: dict[str, Any] = {f"param_{name}": column([row[name] for row in rows]) for name in names}
        results["param_algebra"] = column([row["algebra"].name or row["algebra"] for row in rows])
        # Models can be made of the parameters of all candidates, also of those that left the race without a ridge.
        ridges = ["auto" if np.isnan(row["ridge"]) else row["ridge"] for row in rows]
        results["params"] = [{name: row[name] for name in names} | {"ridge": r} for row, r in zip(rows, ridges)]
        results |= {name: np.array([row[name] for row in rows]) for name in ("n_parameters", "is_bias_only")}
        for n, of_draw in enumerate(errors.T):
            results[f"draw{n}_test_score"] = no_loss - of_draw
        results |= {"mean_test_score": no_loss - mean, "std_test_score": spread}
        order = np.sort(mean)
        results["rank_test_score"] = np.searchsorted(order, mean).astype(np.int32) + 1
        self.cv_results_ = results
        self.best_index_ = most_parsimonious(np.where(is_complete, mean, np.inf), sizes, rounding)
        self.best_params_ = results["params"][self.best_index_]
        self.best_score_ = float(no_loss - mean[self.best_index_])
        self.best_algebra_: Algebra = self.best_params_["algebra"]
        self.best_n_hidden_: int = self.best_params_["n_hidden"]
        self.best_weight_scale_: float | str = self.best_params_["weight_scale"]
        self.best_readout_: str = self.best_params_["readout"]
        self.best_ridge_: float = self.best_params_["ridge"]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def fit_chosen(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit what a search has chosen. It has scored ridge 0 on rows left out, so the rank warning says nothing new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        return model.fit(X, y, sample_weight)
