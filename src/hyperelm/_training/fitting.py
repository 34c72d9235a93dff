"""The output layer from a source of rows: which accumulator, which ridge, how many passes.

    min ‖[h, x, e] M - T‖² + λ‖M‖²,

where the row of M that belongs to the bias is not penalised (section 4 of the paper, with ridge). The product is that
of the readout (`readouts`).

Rows that can be read again are read once for the accumulator and once more to leave rows out: for the choice of the
ridge, and to tell how sure the model is (`certainty`). Where "auto" does not trust the answer of `gram`, all of this is
done again with `qr`. Rows that are read once go to the accumulator that can be trusted in any case.

"auto" gives up `gram` if

- its sums overflow or vanish (`Accumulator.is_safe`),
- the residual by which the ridge was chosen is no more than rounding (`Accumulator.shows`, `Solution.seen`),
- a ridge below those that rounding lets one see may be better (`Choice.cut_off`, `Solution.cut_off`),
- or the condition of the problem with its ridge is too large (`solve.trusted`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hyperelm._backend.workspace import one_blas
from hyperelm._network.readout import Readout
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.gram import LARGEST_CONDITION
from hyperelm._solvers.qr import QR
from hyperelm._solvers.ridge import best_by_loo
from hyperelm._solvers.sample import RowSample, combinations, sample_size
from hyperelm._solvers.scores import Choice
from hyperelm._solvers.solve import SOLVERS, Solution, answer, effective_condition
from hyperelm._solvers.spectrum import LABELS, VALUES
from hyperelm._training.certainty import Certainty, certainty_of, own_share
from hyperelm._training.passes import Sampling, Trained, Training
from hyperelm._training.readouts import accumulator_of, free_unknowns, readouts_of, weights_of
from hyperelm._training.rows import Source
from hyperelm._training.scales import Scales
from hyperelm._validation import FloatArray

Found = TypeVar("Found")


@dataclass(frozen=True)
class Fitted:
    """The output weights and what led to them.

    accumulator : of all rows; more may be added to it
    scales : where the columns of the rows lie
    readout : how the output layer multiplies
    output_weights : (width, N, r)
    loo_error : the mean squared leave-one-out error of the ridge, or None where no row was left out for it
    certainty : what rows that were left out tell about new ones; None where none was
    """

    accumulator: Accumulator
    scales: Scales | None
    readout: Readout
    output_weights: FloatArray
    solution: Solution
    loo_error: float | None
    certainty: Certainty | None = None


def fit_output(
    source: Source,
    training: Training,
    *,
    solver: str,
    ridge: float | str,
    labels: bool = False,
    certain: bool = False,
    before: Accumulator | None = None,
    remains: float = 1.0,
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
    certain : bool
        Whether the model is to tell how sure it is, where rows can be read again.
    before : Accumulator, optional
        The accumulator of rows that were seen earlier.
    remains : float
        The share that is left of what these rows counted.
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
        attempt = replace(training, method=method, ridge=fixed_ridge, before=_resumed(before, method, remains))
        leaves_out = certain and not source.once and before is None
        fitted = _attempt(source, attempt, ridge_rule, labels, leaves_out, final=method is methods[-1])
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


def _resumed(before: Accumulator | None, method: type[Accumulator], remains: float) -> Accumulator | None:
    """The accumulator to go on with: a copy, since rows may be refused when others were taken in already."""
    if before is None:
        return None
    resumed = deepcopy(before).resumed_by(method)
    if remains != 1:
        resumed.fade(remains)
    return resumed


def fit_without(
    source: Source, training: Training, *, ridge: float | str, labels: bool = False, before: Accumulator
) -> Fitted:
    """Fit the output layer without the rows of `source`, which are among those that `before` has seen.

    Their sums are subtracted. The rounding of the sums stays, so it is larger beside what is left of them.
    """
    training, left = replace(training, method=type(before)), deepcopy(before)
    left.take_out(source.fold(training, _checked).accumulator)
    if not left.is_possible:
        raise ValueError(
            "`X` and `y` must be rows that the model was fitted to, with the same weights: without these rows, its "
            "sums are not those of any rows. Give only rows that it has seen, and each as often as it was seen."
        )
    fitted = _solved(Trained(left), training, _ridge_rule(ridge, once=True), labels, final=False, with_spread=True)
    limit = LARGEST_CONDITION[left.dtype.name]
    if fitted is None or effective_condition(fitted.solution) * math.sqrt(left.cancelled) > limit:
        raise ValueError(
            "`X` must leave rows whose normal equations show the solution to be forgotten: without these rows, the "
            f"condition of the problem with its ridge is above {limit:.0e}, so rounding would decide. Give a larger "
            "ridge, or fit to the rows that are left."
        )
    return fitted


def _attempt(
    source: Source, training: Training, ridge: float | str, labels: bool, certain: bool, *, final: bool
) -> Fitted | None:
    """The answer of one accumulator; None where it cannot be trusted and is not the `final` one."""
    if ridge == "loo":
        return _by_leave_one_out(source, training, labels, certain, final=final)
    trained = source.fold(training, _checked)
    with trained.accumulator.remembering():  # the decomposition that gives the solution also leaves rows out
        fitted = _solved(trained, training, ridge, labels, final=final)
        if fitted is None or not certain:
            return fitted
        left_out = accumulator_of(fitted.readout, _for_leave_one_out(source, training, fitted.accumulator), training)
        return _with_certainty(fitted, trained, source, training, left_out, labels=labels)


def _for_leave_one_out(source: Source, training: Training, accumulator: Accumulator) -> Accumulator:
    """The accumulator that rows are left out of: from the rows themselves none can be, but their QR decomposition has
    the same errors."""
    if accumulator.leaves_out:
        return accumulator
    return source.fold(replace(training, method=QR), _checked).accumulator


def _of_sample(trained: Trained, source: Source, sampling: Sampling, find: Callable[[RowSample], Found]) -> Found:
    """What `find` finds of a share of the rows: those that are at hand, or those of a second pass.

    The sample of a pass stays where it is gathered: only what was found comes back from a cluster.
    """
    if trained.sample is not None:
        return find(sampling.of(trained.inputs, trained.sample))
    return source.fold(sampling, find)


def _with_certainty(
    fitted: Fitted, trained: Trained, source: Source, training: Training, left_out: Accumulator, *, labels: bool
) -> Fitted:
    """From rows that are left out for it, with the targets themselves."""
    share = own_share(left_out)
    find = partial(
        certainty_of,
        accumulator=left_out,
        readout=fitted.readout,
        ridge=fitted.solution.ridge,
        training=training,
        labels=labels,
        share=share,
    )
    return replace(fitted, certainty=_of_sample(trained, source, Sampling(training, share, None), find))


def _by_leave_one_out(source: Source, training: Training, labels: bool, certain: bool, *, final: bool) -> Fitted | None:
    """The solution with the ridge, and the table if it is learned, that a second pass over the rows finds."""
    trained = source.fold(training, _checked)
    accumulator, output = trained.accumulator, training.output
    if not (final or accumulator.is_safe):
        return None
    readouts = readouts_of(accumulator, training, "loo", LABELS if labels else VALUES)
    for_loo = _for_leave_one_out(source, training, accumulator)
    whole = problems = [accumulator_of(one, for_loo, training) for one in readouts]
    is_free, targets = training.readout == "free", problems[0].targets
    mix, places = combinations(targets, labels=labels), np.arange(targets) if is_free else output.places
    if mix is not None:
        problems = [problem.combined(mix) for problem in problems]
        places = np.arange(mix.shape[1]) if is_free else output.components_of(mix.shape[1])
    share = min(1.0, sample_size(problems[0]) / max(accumulator.n_counted, 1))
    find = partial(
        _best_of,
        accumulators=problems,
        readouts=readouts,
        training=training,
        labels=labels,
        share=share if certain and mix is None else None,
        free=free_unknowns(problems[0], training),
        places=places,
        columns=output.columns,
    )
    with accumulator.remembering():
        with one_blas():  # threads of NumPy that wait for work after the pass would slow down those of the solution
            best, choice, certainty = _of_sample(trained, source, Sampling(training, share, mix), find)
        chosen = readouts[best]
        problem = accumulator_of(chosen, accumulator, training)
        is_seen = problem.shows(choice.error * output.columns * problem.weight)
        if not (final or (is_seen and not choice.cut_off)):
            return None
        free = free_unknowns(problem, training)
        # An estimator can find the spread of the accumulator that it keeps, but not that of another one.
        solution = answer(problem, choice.ridge, free=free, final=final, with_spread=problem is not accumulator)
    if solution is None:
        return None
    solution = replace(solution, is_bias_only=choice.is_bias_only)
    weights = weights_of(chosen, solution.coef, training)
    fitted = Fitted(accumulator, trained.scales, chosen, weights, solution, choice.error, certainty)
    if certain and certainty is None:  # combinations of the targets were left out, not the targets
        return _with_certainty(fitted, trained, source, training, whole[best], labels=labels)
    return fitted


def _best_of(
    sample: RowSample,
    accumulators: Sequence[Accumulator],
    readouts: Sequence[Readout],
    training: Training,
    labels: bool,
    share: float | None,
    **how: Any,
) -> tuple[int, Choice, Certainty | None]:
    """The accumulator with the smallest leave-one-out error, by its place in the sequence, and the ridge for it.

    Where `share` says which share of the rows the sample is, it also tells how sure the model will be.
    """
    choices = [best_by_loo(accumulator, sample, labels=labels, **how) for accumulator in accumulators]
    best = min(range(len(choices)), key=lambda n: choices[n].error)
    choice, certainty = choices[best], None
    if share is not None:
        problem, readout, known = accumulators[best], readouts[best], choice.left_out
        certainty = certainty_of(
            sample, problem, readout, choice.ridge, training, labels=labels, share=share, known=known
        )
    # What was left out stays where the rows are.
    return best, Choice(choice.ridge, choice.error, choice.is_bias_only, choice.cut_off), certainty


def _checked(trained: Trained) -> Trained:
    accumulator = trained.accumulator
    if accumulator.n_rows > 0 and accumulator.weight == 0:
        raise ValueError(f"`sample_weight` must not be zero for all {accumulator.n_rows} rows.")
    return trained


def _solved(
    trained: Trained,
    training: Training,
    ridge: float | str,
    labels: bool,
    *,
    final: bool,
    with_spread: bool = False,
) -> Fitted | None:
    """The solution with a given ridge, or with the one that generalised cross-validation finds."""
    accumulator, caution = _checked(trained).accumulator, LABELS if labels else VALUES
    if not (final or accumulator.is_safe):
        return None
    chosen = readouts_of(accumulator, training, ridge, caution)[0]
    problem = accumulator_of(chosen, accumulator, training)
    free, with_spread = free_unknowns(problem, training), with_spread or problem is not accumulator
    solution = answer(problem, ridge, free=free, final=final, caution=caution, with_spread=with_spread)
    if solution is None:
        return None
    return Fitted(
        accumulator, trained.scales, chosen, weights_of(chosen, solution.coef, training), solution, loo_error=None
    )
