"""The size that would have done. Pure.

How much was asked for is known only from below: what waits in front of a broker is in sockets, unread and uncounted. So a
proposal is the largest of

* a quarter more than the limit, or half as much again where clients waited for half of the time or more;
* a tenth more than what flowed in the worst second together with what had been let through and was not paid for yet (twice
  the limit at most: a debt may be of several seconds);

rounded up to a round size. Of storage, which is full or not, it is a quarter more than was bought.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from controlplane.instances.validation import MOST_BANDWIDTH_MIB_PER_S, MOST_STORAGE_GIB
from quota.contracts.instance import MIB

if TYPE_CHECKING:
    from controlplane.remedies.merging import Why

QUARTER_MORE, HALF_MORE, TENTH_MORE, MOST_TIMES = 1.25, 1.5, 1.1, 2.0
HALF_OF_THE_TIME = 0.5
BANDWIDTH_STEPS = ((20, 1), (100, 5), (1_000, 10))
STORAGE_STEPS = ((20, 1), (100, 10), (1_000, 50))
LARGEST_STEP = 100


def bandwidth_proposed(why: Why, bought_mib_per_s: float) -> float | None:
    """MiB/s; None: as much was bought meanwhile, or there is no more to be had."""
    limit = why.worst.limit
    lasted_ms = sum(max(1, each.ended_at_ms - each.started_at_ms) for each in why.intervals)
    more = HALF_MORE if why.waited_ms >= HALF_OF_THE_TIME * lasted_ms else QUARTER_MORE
    asked = max(
        sum(broker.flow + broker.waiting_bytes for broker in interval.moment.brokers) for interval in why.intervals
    )
    wanted = max(limit * more, min(TENTH_MORE * asked, MOST_TIMES * limit))
    return _larger(wanted / MIB, bought_mib_per_s, BANDWIDTH_STEPS, MOST_BANDWIDTH_MIB_PER_S)


def storage_proposed(bought_gib: float) -> float | None:
    """GiB; None: there is no more to be had."""
    return _larger(bought_gib * QUARTER_MORE, bought_gib, STORAGE_STEPS, MOST_STORAGE_GIB)


def _larger(wanted: float, bought: float, steps: tuple[tuple[int, int], ...], most: float) -> float | None:
    step = next((step for below, step in steps if wanted <= below), LARGEST_STEP)
    size = min(float(math.ceil(round(wanted / step, 6)) * step), float(most))
    return size if size > bought else None
