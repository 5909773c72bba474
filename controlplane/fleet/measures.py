"""What a map of heat can show. Pure.

Of brokers over time everything; of instances over time what is sampled of them; of both at one moment what the masters say.
`fold` makes one number of the averages of a step, in the order of `columns`; None: it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Number = float | None
Fold = Callable[[Sequence[Number]], Number]


class Unit(StrEnum):
    """How numbers are written."""

    RATE = "rate"
    BYTES = "bytes"
    PERCENT = "percent"
    MS_PER_S = "ms/s"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Measure:
    """One of them. `columns` are of its table; `most`: the scale's end, where it does not follow from what is seen."""

    name: str
    title: str
    unit: Unit
    columns: tuple[str, ...]
    fold: Fold
    most: float | None = None
    is_trouble: bool = False  # any of it is: drawn in another colour


def _first(values: Sequence[Number]) -> Number:
    return values[0]


def _milliseconds(values: Sequence[Number]) -> Number:
    return None if values[0] is None else values[0] / 1000


def _share(values: Sequence[Number]) -> Number:
    """Of two pairs of use and limit the larger share, in percent."""
    pairs = (values[:2], values[2:])
    shares = [100 * used / limit for used, limit in pairs if used is not None and limit]
    return min(max(shares), 100.0) if shares else None


def _sum(values: Sequence[Number]) -> Number:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


_FLOWS = ("produce_bytes_per_s", "consume_bytes_per_s")
_SHARES = (
    "produce_bytes_per_s", "produce_allocated_bytes_per_s", "consume_bytes_per_s", "consume_allocated_bytes_per_s",
)  # fmt: skip
SKEW = "skew"


def _by_name(*measures: Measure) -> Mapping[str, Measure]:
    return {measure.name: measure for measure in measures}


OF_BROKERS: Mapping[str, Measure] = _by_name(
    Measure("flow", "Flow", Unit.RATE, _FLOWS, _sum),
    Measure("allocation", "Allocation used", Unit.PERCENT, _SHARES, _share, most=100),
    Measure("loop", "Broker time", Unit.MS_PER_S, ("loop_us_per_s",), _milliseconds),
    Measure("leaders", "Leaders", Unit.COUNT, ("leaders",), _first),
    Measure("disk", "Disk", Unit.BYTES, ("disk_bytes",), _first),
    # Of the flow: how far each broker is above the average of all in the same step. `selectors` makes it of the flow.
    Measure(SKEW, "Flow above the average", Unit.PERCENT, _FLOWS, _sum),
    Measure("isr", "Replicas not in sync", Unit.COUNT, ("behind",), _first, is_trouble=True),
)
"""Over time, of each broker of a cluster."""
OF_INSTANCES: Mapping[str, Measure] = _by_name(
    Measure("flow", "Flow", Unit.RATE, _FLOWS, _sum),
    Measure("disk", "Disk", Unit.BYTES, ("storage_used_bytes",), _first),
    Measure("connections", "Connections", Unit.COUNT, ("connections",), _first),
)
"""Over time, of each running instance of a cluster; columns are those of the history, without `_sum`."""
NOW: Mapping[str, Measure] = _by_name(
    Measure("flow", "Flow", Unit.RATE, ("produce", "consume"), _sum),
    Measure(
        "allocation", "Allocation used", Unit.PERCENT, ("allocation",), lambda values: _tenths(values[0]), most=100
    ),
    Measure("loop", "Broker time", Unit.MS_PER_S, ("loop",), _milliseconds),
    Measure("leaders", "Leaders", Unit.COUNT, ("leaders",), _first),
)
"""Of each instance on each broker; columns are matrices of `quotas.matrix`."""


def _tenths(thousandths: Number) -> Number:
    return None if thousandths is None else min(thousandths / 10, 100.0)


def above_average(rows: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """By how many percent each is above the average of its column; 0 where it is not above. Rows are equally long."""
    width = max((len(row) for row in rows), default=0)
    found: list[list[Number]] = [[None] * width for _ in rows]
    for at in range(width):
        known = [value for row in rows if (value := row[at]) is not None]
        average = sum(known) / len(known) if known else 0
        for number, row in enumerate(rows):
            value = row[at]
            if value is not None:
                found[number][at] = max(0.0, 100 * (value - average) / average) if average else 0.0
    return found
