"""The five figures by which an allocation is judged, from what happened second by second. Pure.

convergence        periods after a change of demand until every broker is within 5 % of its fair share
over-admission     the most that windows of 1, 10 and 60 s held above the limit, in % of it
utilisation        what was let through, of what could have been: the smaller of limit and demand
fairness           Jain's index of flow to fair share, the mean over seconds with any demand
throttled_under    the part of the time in which somebody waited while less than 95 % of the limit was used

The fair share is max-min: no sender gets more than it wants, and what is left goes to the others in equal parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quota.simulator.run import Trace

WINDOWS_S = (1, 10, 60)
_WITHIN = 0.05
_USED = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run. Percentages are of 100; None where there was nothing to judge."""

    convergence_periods: float | None
    over_admission: dict[int, float]  # by window in seconds
    utilisation: float
    fairness: float
    throttled_under: float


def figures(trace: Trace, changes: Sequence[float] = ()) -> Figures:
    """Judge a run. `changes`: the moments at which the demand changed to what then lasts."""
    totals = [sum(row) for row in trace.admitted]
    possible = sum(min(trace.limit, sum(row)) for row in trace.demanded)
    fair = [fair_shares(row, trace.limit) for row in trace.demanded]
    indexes = [_jain(row, shares) for row, shares in zip(trace.admitted, fair, strict=True) if any(shares)]
    unfair_waits = sum(
        throttled and total < _USED * trace.limit for throttled, total in zip(trace.throttled, totals, strict=True)
    )
    return Figures(
        convergence_periods=_convergence(trace, fair, changes),
        over_admission={window: _over(totals, window, trace.limit) for window in WINDOWS_S if window <= len(totals)},
        utilisation=100 * min(1.0, sum(totals) / possible) if possible else 100.0,
        fairness=sum(indexes) / len(indexes) if indexes else 1.0,
        throttled_under=100 * unfair_waits / len(totals),
    )


def fair_shares(demand: Sequence[float], limit: float) -> list[float]:
    """Max-min fair shares of the limit."""
    shares = [0.0] * len(demand)
    rest = float(limit)
    order = sorted(range(len(demand)), key=lambda place: demand[place])
    for left, place in zip(range(len(order), 0, -1), order, strict=True):
        shares[place] = min(demand[place], rest / left)
        rest -= shares[place]
    return shares


def _convergence(trace: Trace, fair: Sequence[Sequence[float]], changes: Sequence[float]) -> float | None:
    """The mean over the changes; a change that never settles counts as the time until the next."""
    if not changes:
        return None
    taken = []
    for number, moment in enumerate(changes):
        end = int(changes[number + 1]) if number + 1 < len(changes) else len(fair)
        seconds = range(int(moment), end)
        near = (second for second in seconds if _near(trace.admitted[second], fair[second], trace.limit))
        taken.append(next(near, end) - int(moment))
    return sum(taken) / len(taken)


def _near(row: Sequence[int], shares: Sequence[float], limit: int) -> bool:
    """Within 5 % of the fair share; of a share near nothing, within 5 % of an equal part of the limit."""
    least = limit / len(row)
    return all(abs(value - share) <= _WITHIN * max(share, least) for value, share in zip(row, shares, strict=True))


def _over(totals: Sequence[int], window: int, limit: int) -> float:
    held = sum(totals[:window])
    most = held
    for new, old in zip(totals[window:], totals, strict=False):
        held += new - old
        most = max(most, held)
    return max(0.0, 100 * (most / (limit * window) - 1))


def _jain(row: Sequence[int], shares: Sequence[float]) -> float:
    ratios = [value / share for value, share in zip(row, shares, strict=True) if share > 0]
    squares = sum(ratio * ratio for ratio in ratios)
    return sum(ratios) ** 2 / (len(ratios) * squares) if squares else 0.0
