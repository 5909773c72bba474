"""Which offsets of a partition are read from a load's table, and which from the topic. Pure but for the readers.

Below the first offset that a partition holds, a table may have what has expired: one span (`lake.planning`). `Below` is what of
it is of use to a look. `Both` reads for that look: offsets below the boundary are asked of the table, all others of the topic,
so no message comes twice, whatever the two have in common. A look goes from one into the other only where the table's span
reaches the topic's first offset. Otherwise offsets lie between the two that are nowhere, and the look ends where the table does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.kafka.group_door import Span
from controlplane.kafka.message_door import Taken
from controlplane.messages.looking import Direction, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.kafka.message_door import Reads, Room, Stretch


@dataclass(frozen=True, slots=True)
class Below:
    """What a table has of one partition below the topic's first offset."""

    partition: int
    first: int
    end: int  # the boundary: at most the topic's first offset
    is_joined: bool  # to the topic

    def span(self, topic: Span) -> Span:
        """What a look may go through."""
        return Span(self.first, topic.end if self.is_joined else self.end)


def below(partition: int, table: Span | None, topic: Span, start: Position) -> Below | None:
    """None: the table has nothing where this look begins."""
    if table is None:
        return None
    end, at = min(table.end, topic.start), start.offsets[partition]
    is_older = start.direction is Direction.OLDER
    if not (table.start < at <= end if is_older else table.start <= at < end):
        return None
    return Below(partition, table.start, end, table.end >= topic.start)


def may_be_below(topic: Span, partition: int, start: Position) -> bool:
    """Whether a look begins where the topic has nothing more in its direction, or nothing yet."""
    at = start.offsets[partition]
    return 0 < at <= topic.start if start.direction is Direction.OLDER else at < topic.start


class Both:
    """Of one partition. `asks_topic` is called before the topic is asked."""

    def __init__(self, below: Below, table: Reads, topic: Reads, asks_topic: Callable[[], None]) -> None:
        self._below, self._table, self._topic, self._asks_topic = below, table, topic, asks_topic

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        """See message_door.Reads."""
        partition, boundary = self._below.partition, self._below.end
        first, end = wanted[partition]
        taken = Taken(first)
        if first < boundary:
            upto = min(end, boundary)
            taken = self._table.read({partition: (first, upto)}, room)[partition]
            if taken.upto < upto:
                return {partition: taken}
        if end > boundary and not room.is_used_up:
            self._asks_topic()
            rest = self._topic.read({partition: (max(first, boundary), end)}, room)[partition]
            taken = Taken(rest.upto, taken.messages + rest.messages)
        return {partition: taken}
