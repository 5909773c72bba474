"""How many records a group has read in a minute, and how many came to what it reads, from where two rounds have seen it. Pure.

Offsets are counted, as tools around Kafka do: what a group commits, and where its partitions end. So marks of transactions
count as records, what a client reads and does not commit counts when it commits, and who sets offsets forward has read what
lies between.

Of a minute in which nobody can say it there is none (None), never 0: there was no look in the minutes before, the group has an
offset in a partition more or less, or a sum went back, as where offsets are set back, or a topic is made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from controlplane.history.resolutions import MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.groups.rounds import Position

TOGETHER_S = 150
"""Looks further apart than that, more than one minute was missed: what came between them says too little of the last one."""


class Moved(NamedTuple):
    """Records in sixty seconds; None: not known."""

    consumed: int | None = None
    produced: int | None = None


class Seen(NamedTuple):
    """Where groups were at a moment, in seconds since 1970, by instance and group."""

    at: int
    positions: Mapping[str, Mapping[str, Position]]


def moved_between(before: Seen | None, now: Seen) -> dict[tuple[str, str], Moved]:
    """By instance and group, of those that were seen now. A round may be late: what came is told as of a whole minute."""
    seconds = 0 if before is None else now.at - before.at
    found: dict[tuple[str, str], Moved] = {}
    for instance, groups in now.positions.items():
        earlier = {} if before is None else before.positions.get(instance, {})
        for group, position in groups.items():
            last = earlier.get(group) if 0 < seconds <= TOGETHER_S else None
            found[instance, group] = Moved() if last is None else _moved(last, position, seconds)
    return found


def _moved(before: Position, now: Position, seconds: int) -> Moved:
    read, written = now.offsets - before.offsets, now.ends - before.ends
    if now.places != before.places or read < 0 or written < 0:
        return Moved()
    return Moved(_of_a_minute(read, seconds), _of_a_minute(written, seconds))


def _of_a_minute(records: int, seconds: int) -> int:
    """Rounded up to one where there was any: a group that reads a record in a long minute does not stand still."""
    return max(round(records * MINUTES.step_s / seconds), int(records > 0))
