"""The output layer from a source of rows: which accumulator, which ridge, how many passes.

    min ‖[h, x, e] M - T‖² + λ‖M‖²,

where the row of M that belongs to the bias is not penalised (section 4 of the paper, with ridge). The product is that
of the readout (`readouts`).

Rows that can be read again are read once for the accumulator and, if leave-one-out errors choose the ridge, once more
to leave rows out. Where "auto" does not trust the answer of `gram`, all of this is done again with `qr`. Rows that are
read once go to the accumulator that can be trusted in any case.

"auto" gives up `gram` if

- its sums overflow or vanish (`Accumulator.is_safe`),
- the residual by which the ridge was chosen is no more than rounding (`Accumulator.shows`, `Solution.seen`),
- a ridge below those that rounding lets one see may be better (`Choice.cut_off`, `Solution.cut_off`),
- or the condition of the problem with its ridge is too large (`solve.trusted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hyperelm._backend.workspace import one_blas
from hyperelm._network.readout import Readout
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.qr import QR
from hyperelm._solvers.ridge import Choice, RowSample, best_by_loo, combinations, sample_size
from hyperelm._solvers.solve import SOLVERS, Solution, answer
from hyperelm._solvers.spectrum import LABELS, VALUES
from hyperelm._training.passes import Sampling, Trained, Training
from hyperelm._training.readouts import accumulator_of, free_unknowns, readouts_of, weights_of
from hyperelm._training.rows import Source
from hyperelm._training.scales import Scales
from hyperelm._validation import FloatArray


@dataclass(frozen=True)
class Fitted:
    """The output weights and what led to them.

    accumulator : of all rows; more may be added to it
    scales : where the columns of the rows lie
    readout : how the output layer multiplies
    output_weights : (width, N, r)
    loo_error : the mean squared leave-one-out error of the ridge, or None where no row was left out
    """

    accumulator: Accumulator
    scales: Scales | None
    readout: Readout
    output_weights: FloatArray
    solution: Solution
    loo_error: float | None


def fit_output(
    source: Source,
    training: Training,
    *,
    solver: str,
    ridge: float | str,
    labels: bool = False,
    before: Accumulator | None = None,
) -> Fitted:
    """Fit the output layer.

    Parameters
    ----------
    source : Source
    training : Training
    solver : a name in `SOLVERS`
    ridge : float, "auto", "loo" or "gcv"
    labels : bool
        Whether targets are the indicators of labels.
    before : Accumulator, optional
        The accumulator of rows that were seen earlier.
    """
    # Rows that were seen earlier cannot be read again, even where those of this call can.
    ridge_rule = _ridge_rule(ridge, once=source.once or before is not None)
    methods, fixed_ridge = SOLVERS[solver], None
    if source.once:
        if solver == "auto" and not isinstance(ridge_rule, str) and ridge_rule > 0:
            fixed_ridge = ridge_rule
        methods = methods[:1] if fixed_ridge else methods[-1:]
    elif before is not None:
        methods = tuple(method for method in methods if before.can_resume(method)) or (type(before),)
    for method in methods:
        attempt = replace(training, method=method, ridge=fixed_ridge, before=_resumed(before, method))
        fitted = _attempt(source, attempt, ridge_rule, labels=labels, final=method is methods[-1])
        if fitted is not None:
            return fitted
    raise AssertionError("the final attempt always gives an answer")


def _ridge_rule(ridge: float | str, *, once: bool) -> float | str:
    """A number, or how it is chosen from rows that are read `once` or more often."""
    if not isinstance(ridge, str):
        return float(ridge)
    if once and ridge == "loo":
        raise ValueError(
            "`ridge` must not be 'loo' where rows are read once, as by partial_fit and from an iterator: they must "
            "be read again to be left out. Use 'auto', 'gcv' or a number."
        )
    return ridge if ridge != "auto" else "gcv" if once else "loo"


def _resumed(before: Accumulator | None, method: type[Accumulator]) -> Accumulator | None:
    """The accumulator to go on with: a copy, since rows may be refused when others were taken in already."""
    return None if before is None else deepcopy(before).resumed_by(method)


def _attempt(source: Source, training: Training, ridge: float | str, *, labels: bool, final: bool) -> Fitted | None:
    """The answer of one accumulator; None where it cannot be trusted and is not the `final` one."""
    if ridge == "loo":
        return _by_leave_one_out(source, training, labels=labels, final=final)
    # On a cluster, the solution is found where the sums are.
    find = partial(_solved, training=training, ridge=ridge, labels=labels, final=final)
    return source.fold(training, find)


def _by_leave_one_out(source: Source, training: Training, *, labels: bool, final: bool) -> Fitted | None:
    """The solution with the ridge, and the table if it is learned, that a second pass over the rows finds."""
    trained = source.fold(training, _checked)
    accumulator, output = trained.accumulator, training.output
    if not (final or accumulator.is_safe):
        return None
    readouts = readouts_of(accumulator, training, "loo", LABELS if labels else VALUES)
    # From the rows themselves none can be left out; their QR decomposition has the same errors.
    for_loo = accumulator
    if not accumulator.leaves_out:
        for_loo = source.fold(replace(training, method=QR), _checked).accumulator
    problems = [accumulator_of(one, for_loo, training) for one in readouts]
    is_free, targets = training.readout == "free", problems[0].targets
    mix, places = combinations(targets, labels=labels), np.arange(targets) if is_free else output.places
    if mix is not None:
        problems = [problem.combined(mix) for problem in problems]
        places = np.arange(mix.shape[1]) if is_free else output.components_of(mix.shape[1])
    share = min(1.0, sample_size(problems[0]) / max(accumulator.n_counted, 1))
    # The sample of rows stays where it is gathered: only the choice comes back from a cluster.
    find = partial(
        _best_of,
        accumulators=problems,
        free=free_unknowns(problems[0], training),
        places=places,
        columns=output.columns,
        labels=labels,
    )
    with accumulator.remembering():
        with one_blas():  # threads of NumPy that wait for work after the pass would slow down those of the solution
            best, choice = source.fold(Sampling(training, share, mix), find)
        chosen = readouts[best]
        problem = accumulator_of(chosen, accumulator, training)
        is_seen = problem.shows(choice.error * output.columns * problem.weight)
        if not (final or (is_seen and not choice.cut_off)):
            return None
        solution = answer(problem, choice.ridge, free=free_unknowns(problem, training), final=final)
    if solution is None:
        return None
    solution = replace(solution, is_bias_only=choice.is_bias_only)
    weights = weights_of(chosen, solution.coef, training)
    return Fitted(accumulator, trained.scales, chosen, weights, solution, choice.error)


def _best_of(sample: RowSample, accumulators: Sequence[Accumulator], **how: Any) -> tuple[int, Choice]:
    """The accumulator with the smallest leave-one-out error, by its place in the sequence, and the ridge for it."""
    choices = [best_by_loo(accumulator, sample, **how) for accumulator in accumulators]
    best = min(range(len(choices)), key=lambda n: choices[n].error)
    return best, choices[best]


def _checked(trained: Trained) -> Trained:
    accumulator = trained.accumulator
    if accumulator.n_rows > 0 and accumulator.weight == 0:
        raise ValueError(f"`sample_weight` must not be zero for all {accumulator.n_rows} rows.")
    return trained


def _solved(trained: Trained, training: Training, ridge: float | str, labels: bool, final: bool) -> Fitted | None:
    """The solution with a given ridge, or with the one that generalised cross-validation finds."""
    accumulator, caution = _checked(trained).accumulator, LABELS if labels else VALUES
    if not (final or accumulator.is_safe):
        return None
    chosen = readouts_of(accumulator, training, ridge, caution)[0]
    problem = accumulator_of(chosen, accumulator, training)
    solution = answer(problem, ridge, free=free_unknowns(problem, training), final=final, caution=caution)
    if solution is None:
        return None
    return Fitted(
        accumulator, trained.scales, chosen, weights_of(chosen, solution.coef, training), solution, loo_error=None
    )
