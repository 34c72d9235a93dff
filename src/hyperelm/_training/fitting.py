"""The output layer from a source of rows: which accumulator, which ridge, how many passes.

    min ‖[h, x, e] M - T‖² + λ‖M‖²,

where the row of M that belongs to the bias is not penalised (section 4 of the paper, with ridge).

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

from hyperelm._backend.workspace import one_blas
from hyperelm._solvers.accumulator import Accumulator
from hyperelm._solvers.qr import QR
from hyperelm._solvers.ridge import Choice, best_by_loo, combinations, sample_size
from hyperelm._solvers.solve import SOLVERS, Solution, answer
from hyperelm._solvers.spectrum import LABELS, VALUES, Caution
from hyperelm._training.passes import Sampling, Trained, Training
from hyperelm._training.rows import Source
from hyperelm._training.scales import Scales


@dataclass(frozen=True)
class Fitted:
    """The output weights and what led to them.

    scales : where the columns of the rows lie
    loo_error : the mean squared leave-one-out error of the ridge, or None where no row was left out
    """

    accumulator: Accumulator
    scales: Scales | None
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
    caution = LABELS if labels else VALUES
    find = partial(_solved, ridge=ridge, free=training.free, final=final, caution=caution)
    trained, solution = source.fold(training, find)  # on a cluster, the solution is found where the sums are
    return None if solution is None else Fitted(trained.accumulator, trained.scales, solution, None)


def _by_leave_one_out(source: Source, training: Training, *, labels: bool, final: bool) -> Fitted | None:
    """The solution with the ridge that a second pass over the rows finds."""
    trained = source.fold(training, _checked)
    accumulator, output, free = trained.accumulator, training.output, training.free
    if not (final or accumulator.is_safe):
        return None
    # From the rows themselves none can be left out; their QR decomposition has the same errors.
    for_loo = accumulator
    if not accumulator.leaves_out:
        for_loo = source.fold(replace(training, method=QR), _checked).accumulator
    mix, places = combinations(accumulator.targets, labels=labels), output.places
    if mix is not None:
        for_loo = for_loo.combined(mix)
        places = output.components_of(mix.shape[1])
    sampling = Sampling(training, min(1.0, sample_size(accumulator) / max(accumulator.n_counted, 1)), mix)
    # The sample of rows stays where it is gathered: only the choice comes back from a cluster.
    find = partial(best_by_loo, for_loo, free=free, places=places, columns=output.columns, labels=labels)
    with one_blas():  # threads of NumPy that wait for work after the pass would slow down those of the solution
        choice: Choice = source.fold(sampling, find)
    is_seen = accumulator.shows(choice.error * output.columns * accumulator.weight)
    if not (final or (is_seen and not choice.cut_off)):
        return None
    solution = answer(accumulator, choice.ridge, free=free, final=final)
    if solution is None:
        return None
    solution = replace(solution, is_bias_only=choice.is_bias_only)
    return Fitted(accumulator, trained.scales, solution, choice.error)


def _checked(trained: Trained) -> Trained:
    accumulator = trained.accumulator
    if accumulator.n_rows > 0 and accumulator.weight == 0:
        raise ValueError(f"`sample_weight` must not be zero for all {accumulator.n_rows} rows.")
    return trained


def _solved(
    trained: Trained, ridge: float | str, free: Sequence[int], final: bool, caution: Caution
) -> tuple[Trained, Solution | None]:
    return _checked(trained), answer(trained.accumulator, ridge, free=free, final=final, caution=caution)
