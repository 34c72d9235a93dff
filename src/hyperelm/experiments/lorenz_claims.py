"""The paper's claims about the Lorenz experiment, and whether the runs of a store bear them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hyperelm.experiments.lorenz_results import GAIN, Results, mean_gains
from hyperelm.experiments.ranking import Ranking
from hyperelm.experiments.report import Claim, decibels, decimal, listed, percent
from hyperelm.experiments.statistics import by


def judge(claim: dict[str, str], results: Results, paper: dict[str, Any]) -> Claim:
    return Claim(claim["text"], *_JUDGES[claim["id"]](results, paper))


def _first(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    wins, first, leader = results.wins, paper["first"], results.wins.order[0]
    if wins.places(first)[0] > 1:
        return "not reproduced", f"{leader} comes first: {_with_shares(wins, [leader, first])}."
    if wins.rivals(first):
        found = f"{_with_shares(wins, [first])} cannot be told apart from {_with_shares(wins, wins.rivals(first))}."
        return "depends", found
    found = f"It comes first, clearly ahead of the second: {_with_shares(wins, wins.order[:2])}."
    return _unless_overturned(results, found)


def _followers(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    wins, followers = results.wins, paper["followers"]
    found = f"The order from the second place on: {_with_shares(wins, wins.order[1:5])}."
    possible = all(first <= 3 and last >= 2 for first, last in map(wins.places, followers))
    if not possible:
        return "not reproduced", found
    rivals = [name for name in wins.order if any(name in wins.rivals(f) for f in followers) and name not in followers]
    if rivals:
        return "depends", f"{found} But {listed(followers)} cannot be told apart from {listed(rivals)}."
    return _unless_overturned(results, found)


def _real(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    wins, limit = results.wins, paper["real_share_below"]
    share = wins.value(str(results.real))
    found = f"It wins {percent(share)} of {wins.competitions:,} competitions."
    if share >= limit:
        return "not reproduced", found
    if wins.competitions * limit < 1:
        return "depends", f"{found} These are too few to tell a small share."
    return _unless_overturned(results, found)


def _mean(results: Results, paper: dict[str, Any]) -> tuple[str, str]:
    del paper
    real = str(results.real)
    means = [mean_gains(rows, results.models) for rows in by(results.main, "n_hidden").values()]
    others = [[gains[name] for name in gains if name != real] for gains in means]
    holds = sum(gains[real] < min(rest) for gains, rest in zip(means, others))
    found = (
        f"All of them do at {holds} of {len(means)} sizes: mean gains are {_span([gains[real] for gains in means])} "
        f"for the real model and {_span([gain for rest in others for gain in rest])} for the others."
    )
    if holds < len(means):
        return ("depends" if holds else "not reproduced"), found
    overall = Ranking.by_mean(results.main, results.models, GAIN)
    if not all(overall.is_ahead(name, real) for name in results.models if name != real):
        return "depends", f"{found} These are too few networks to rule out chance."
    if results.real_is_best_when_tuned:
        return "depends", f"{found} But the real model is best where every model has its own best weight scale."
    return _unless_overturned(results, found)


def _unless_overturned(results: Results, found: str) -> tuple[str, str]:
    """A claim that holds in the main part, if choices that the paper leaves open do not overturn it."""
    if results.overturned:
        return "depends", f"{found} But the real model wins most with: {'; '.join(results.overturned)}."
    return "reproduced", found


def _with_shares(wins: Ranking, names: Sequence[str]) -> str:
    return listed([f"{name} ({percent(wins.value(name))})" for name in names])


def _span(values: Sequence[float]) -> str:
    return f"{decimal(min(values))} to {decibels(max(values))}"


_JUDGES: dict[str, Callable[[Results, dict[str, Any]], tuple[str, str]]] = {
    "first": _first,
    "followers": _followers,
    "real": _real,
    "mean": _mean,
}
