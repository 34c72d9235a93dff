"""Readouts in training: from the accumulator of all components to the least-squares problem of each readout.

    "algebra"   the accumulator is over the algebra, and its solution is the output layer
    "free"      the accumulator is over the real numbers, with all components as unknowns
    "learned"   from the sums of "free", tables are learned; the problem is then that of an algebra with such a table

A table is learned at the ridge that generalised cross-validation takes for the algebra's own table, or at the given
one. The search starts from the algebra's own table and from random ones. Where there are many targets, it sees random
combinations of them: their errors have the same mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hyperelm._algebra.algebra import Algebra
from hyperelm._algebra.learning import STEPS, ComponentSums, learn_table, random_tables
from hyperelm._backend.workspace import one_blas
from hyperelm._network.readout import Readout
from hyperelm._solvers.accumulator import Accumulator, Embedding
from hyperelm._solvers.sample import combinations
from hyperelm._solvers.spectrum import VALUES, Caution, Spectrum
from hyperelm._training.passes import Training
from hyperelm._validation import FloatArray

_FEWEST_TARGETS = 16  # that a table is learned from, and more while a step takes less than ...
_STEP = 4e9  # ... so many multiply-adds
_RACE = 4  # steps from every start, after which only the best goes on
_NUDGE = 0.01  # what is added to the algebra's own table, as it may be where the gradient vanishes


def readouts_of(
    accumulator: Accumulator,
    training: Training,
    ridge: float | str,
    caution: Caution = VALUES,
    random_starts: int = 2,
    steps: int = STEPS,
) -> list[Readout]:
    """The readouts among which leave-one-out errors choose: one, or several of which each has a table of its own."""
    name, d = training.readout, training.algebra.dim
    if name != "learned":
        return [Readout(name, d, training.algebra if name == "algebra" else None)]
    with one_blas(accumulator.work):
        penalty = ridge if not isinstance(ridge, str) else _own_ridge(accumulator, training, caution)
        sums = _component_sums(accumulator, training)
        starts = _starts(training, random_starts)
        if ridge != "loo":  # without leave-one-out errors, the objective tells which start is the best
            first = (learn_table(sums, start, penalty, min(steps, _RACE)) for start in starts)
            starts = [min(first, key=lambda found: found.objective[-1]).table] if len(starts) > 1 else starts
        learned = [learn_table(sums, start, penalty, steps) for start in starts]
    return [Readout(name, d, Algebra(found.table, name="learned")) for found in learned]


def accumulator_of(readout: Readout, accumulator: Accumulator, training: Training) -> Accumulator:
    """The accumulator whose solution is the output layer with this readout."""
    if readout.algebra is None or accumulator.algebra == training.algebra:
        return accumulator
    return accumulator.over(readout.algebra, training.unknowns, training.target_columns)


def free_unknowns(accumulator: Accumulator, training: Training) -> list[int]:
    """The unknowns of `accumulator_of` that no ridge penalises: the bias, which is the last."""
    return [accumulator.unknowns - 1] if training.bias else []


def weights_of(readout: Readout, coef: FloatArray, training: Training) -> FloatArray:
    """The solution of `accumulator_of` as weights of the output layer, (width, N, r)."""
    if readout.algebra is not None:
        return coef
    (width, d), N = training.unknowns.shape, training.output.features
    unknowns, targets = training.unknowns.first_places, training.output.places
    weights = np.zeros((width, d, N, d), coef.dtype)
    weights.reshape(width * d, N * d)[unknowns[:, None], targets] = coef[:, :, 0]
    return np.ascontiguousarray(weights.swapaxes(1, 2)).reshape(width, N, d * d)


def _own_ridge(accumulator: Accumulator, training: Training, caution: Caution) -> float:
    """The ridge for the algebra's own table, in the units of tables with Σ_ik t[i, j, k]² = d for every j."""
    own = accumulator.over(training.algebra, training.unknowns, training.target_columns)
    size = float(np.sum(training.algebra.table**2)) / training.algebra.dim**2
    return Spectrum(own, free_unknowns(own, training)).best_by_gcv(caution).ridge / (size or 1.0)


def _component_sums(accumulator: Accumulator, training: Training) -> ComponentSums:
    """HᵀH and HᵀT of all components, without what the bias explains."""
    (problem,) = accumulator.problems()
    unknowns, targets = training.unknowns, training.target_columns
    (width, d), explained = unknowns.shape, 0.0
    if training.bias:
        reduced = problem.without(np.array(free_unknowns(accumulator, training)), 0.0)
        problem, explained = reduced.problem, reduced.explained
        penalised = unknowns.source < problem.size
        at, source, factor = (part[penalised] for part in (unknowns.at, unknowns.source, unknowns.factor))
        unknowns = Embedding(at, source, factor, (width - 1, d))
    squares, cross = problem.moments()
    N = targets.shape[0]
    H_T = targets.numbers(unknowns.numbers(cross.T).reshape(cross.shape[1], -1).T)  # (L d, N, d)
    H_H = unknowns.numbers(unknowns.numbers(squares).reshape(len(squares), -1).T)
    L = unknowns.shape[0] * d
    sums = ComponentSums.of(H_H.reshape(L, L), H_T.reshape(L, N * d), accumulator.square - explained, d)
    mix = combinations(N, max(_FEWEST_TARGETS, int(_STEP / (L * L * d**3))))
    return sums if mix is None else sums.mixed(mix)


def _starts(training: Training, random_starts: int) -> list[NDArray[np.float64]]:
    """Tables to start from. Components that no target fills are zero in all products, so nothing is asked of them."""
    d = training.algebra.dim
    nudge, *tables = random_tables((d, d, d), 1 + random_starts)
    own = training.algebra.table
    filled = np.isin(np.arange(d), training.output.places % d)
    return [table * filled for table in (own + _NUDGE * np.abs(own).max() * nudge, *tables)]
