"""How unevenly a topic lies: records over partitions, what is written now over them, and leaderships over brokers. Pure.

A share of 1 is an even one. What is not known of one partition makes the whole unknown: a mean without it would be wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controlplane.kafka.client import Partition

DIGITS = 2


@dataclass(frozen=True, slots=True)
class Skew:
    """Times an even share; None: not known, or nothing is there to be shared."""

    fullest_partition: int | None
    fullest: float | None  # of what that partition holds
    busiest_broker: int | None
    leaders: float | None  # of the partitions that this broker leads
    not_preferred: int  # partitions that another than their first replica leads
    hottest_partition: int | None = None
    hottest: float | None = None  # of what was written in the last hour, so much of it to that partition


def skew_of(
    layout: Sequence[Partition], held: Sequence[int | None], written: Sequence[int | None] | None = None
) -> Skew:
    """`held` is what each partition of `layout` holds, in bytes or records; `written` the bytes of the last hour."""
    place, fullest = _largest(held)
    hot, hottest = _largest(written or ())
    leaders = Counter(partition.leader for partition in layout if partition.leader is not None)
    brokers = {broker for partition in layout for broker in partition.replicas}
    busiest = min(leaders, key=lambda broker: (-leaders[broker], broker), default=None)
    return Skew(
        None if place is None else layout[place].partition,
        fullest,
        busiest,
        None if busiest is None else round(leaders[busiest] * len(brokers) / len(layout), DIGITS),
        sum(partition.leader is not None and partition.leader != partition.replicas[0] for partition in layout),
        None if hot is None else layout[hot].partition,
        hottest,
    )


def _largest(held: Sequence[int | None]) -> tuple[int | None, float | None]:
    """Which one, and how many even shares it is."""
    known = [amount for amount in held if amount is not None]
    if len(known) < len(held) or not sum(known):
        return None, None
    place = max(range(len(known)), key=lambda each: (known[each], -each))
    return place, round(known[place] * len(known) / sum(known), DIGITS)


def is_hot(held: Iterable[int | None], *, times: float) -> bool:
    """Whether one partition holds more than so many times what the others hold on average."""
    known = [amount for amount in held if amount is not None]
    if len(known) < 2:  # one partition is compared with nothing
        return False
    largest = max(known)
    return largest * (len(known) - 1) > times * (sum(known) - largest)
