"""The ridge with the smallest leave-one-out error, as `scores` compares them.

Singular vectors give the errors of all ridges at once (`_on_path`). Where there are normal equations of many unknowns,
a Cholesky decomposition for each of a handful of ridges takes less time (`nested`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyperelm._backend.workspace import one_blas
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.loo import AtOneRidge, BySpectrum
from hyperelm._solvers.nested import best_of_few
from hyperelm._solvers.problem import NormalEquations, Problem
from hyperelm._solvers.sample import RowSample
from hyperelm._solvers.scores import Choice, MeanError, joined
from hyperelm._solvers.spectrum import Spectrum, best_permitted

_PER_DECADE = 5  # ridges on the path
_DECOMPOSED = 48  # complex unknowns of a block up to which its singular vectors are found


def best_by_loo(
    accumulator: Accumulator,
    sample: RowSample,
    *,
    free: Sequence[int],
    places: NDArray[np.intp],
    columns: int,
    labels: bool = False,
) -> Choice:
    """The ridge with the smallest leave-one-out error on a sample of the rows that `accumulator` has seen.

    `free` names unknowns that no ridge penalises; `places`, `columns` and `labels` are those of `MeanError`.
    """
    accumulator.check_squares()
    mean = MeanError(sample, places, columns, labels)
    problems = accumulator.remembered("problems", (), accumulator.problems)
    with one_blas(accumulator.work):
        if any(map(_is_large, problems)):
            return best_of_few(accumulator, free, mean)
        return _on_path(Spectrum(accumulator, free, problems), mean)


def _is_large(problem: Problem) -> bool:
    """Whether all ridges of the path take longer than a handful of Cholesky decompositions.

    Singular vectors take as long as ten of these, and every ridge of the path has its own errors and leverages. Those
    of a complex matrix take as long as those of a real one that is 2.5 times as large.
    """
    if not isinstance(problem, NormalEquations):
        return False
    return problem.size > (_DECOMPOSED if np.iscomplexobj(problem.gram) else 2.5 * _DECOMPOSED)


def _on_path(spectrum: Spectrum, mean: MeanError) -> Choice:
    """From the scores of all ridges on the path."""
    if spectrum.largest == 0:  # a constant layer: any ridge leaves its weights at zero
        of_bias = AtOneRidge(spectrum.accumulator, spectrum.reduced)
        return Choice(1.0, float(mean.scores(mean.errors(of_bias, mean.parts(of_bias))).errors[0]))
    ridges = spectrum.path(_PER_DECADE)
    is_exact = mean.sample.is_whole
    of_all = BySpectrum(spectrum, ridges, is_exact)
    parts = mean.parts(of_all, len(ridges))
    scores = mean.scores(mean.errors(of_all, parts), len(ridges))
    best = best_permitted(spectrum.shares(ridges), scores.compared, mean.caution, mean.rounding)
    error, of_best = float(scores.errors[best]), BySpectrum(spectrum, ridges[best : best + 1], is_exact)
    is_bias_only = best == len(ridges) - 1 and mean.leaves_residual(error)
    left_out = joined(of_best, mean.errors(of_best, parts))
    return Choice(float(ridges[best]), error, is_bias_only, cut_off=best == 0, left_out=left_out)
