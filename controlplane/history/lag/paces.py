"""How fast partitions are written to, by where rounds have seen them end; and when what is unread is pushed out by size. Pure.

A topic with `retention.bytes` keeps about so many bytes of each partition, and what is written pushes out what is oldest. What a
group reads next has its unread bytes behind it, itself included: when these are as many as the limit, it may go. Brokers remove
whole segments, so it goes later than that, by a segment at most: the estimate is the earliest moment, as that by age is.

The pace is that of the last minutes: the newest minute counts WEIGHT, what was before the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controlplane.groups.rounds import Part
    from controlplane.kafka.group_door import Place

WEIGHT = 0.2
FORGOTTEN_S = 600
MS = 1_000


class Pace(NamedTuple):
    """Of a partition: its end, when that was seen, and how many records a second come; None: one look says nothing of it."""

    end: int
    at: int
    per_s: float | None = None


def paced(before: Mapping[Place, Pace], ends: Mapping[Place, int], now_s: int) -> dict[Place, Pace]:
    """Of these ends, as they were seen now. An end that went back, or was not seen for a while, begins anew.

    Where nothing was seen now, because nobody is behind there, what was known stays for as long as a later look can use it.
    """
    found = {place: last for place, last in before.items() if 0 <= now_s - last.at <= FORGOTTEN_S}
    for place, end in ends.items():
        last = before.get(place)
        if last is None or end < last.end or not 0 < now_s - last.at <= FORGOTTEN_S:
            found[place] = Pace(end, now_s)
            continue
        seen = (end - last.end) / (now_s - last.at)
        found[place] = Pace(end, now_s, seen if last.per_s is None else last.per_s + WEIGHT * (seen - last.per_s))
    return found


class Pushed(NamedTuple):
    """When the first unread record is pushed out, and in how long the whole partition is; in ms. `left_ms` inf: not in sight."""

    left_ms: float = math.inf
    whole_ms: float = math.inf


def pushed_out(topic: str, parts: Iterable[Part], limit_bytes: int, paces: Mapping[Place, Pace]) -> tuple[Pushed, bool]:
    """Of the partition where it is soonest, as far as bytes and paces are known; and whether they are known of all."""
    soonest, is_whole = Pushed(), True
    for part in parts:
        pace = paces.get((topic, part.number))
        if part.size is None or pace is None or pace.per_s is None:
            is_whole = False
            continue
        bytes_per_s = pace.per_s * part.size / part.left
        if bytes_per_s > 0:
            left_ms = MS * max(0.0, limit_bytes - part.size) / bytes_per_s
            soonest = min(soonest, Pushed(left_ms, MS * limit_bytes / bytes_per_s))
    return soonest, is_whole
