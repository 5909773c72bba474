"""Where the stream goes on, what it can never read, and up to when the database is complete. Pure.

Two remember how far the stream has come: Spark's checkpoint, and the database, which notes each batch's last offsets with
the batch. The database decides, for it is what bills are made of: it may have been restored from a backup, and the topic
may have been made again, have lost its oldest records to retention or its newest to an unclean election. Where the two part
the checkpoint is set aside and the stream begins at offsets that are worked out here. To read a record twice changes no
total; so in doubt a partition is read again from its first record.

A record that is gone before it was read is a `Loss`. Counters are cumulative, so a later record of the same boot says as
much, and only the hours it is booked under differ; where there is no later one, usage is missing. Nobody can tell which:
a loss is for an operator to judge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

WHOLE_TOPIC = -1
"""As the partition of a loss."""
MOST_LOOKS = 100


@dataclass(frozen=True, slots=True)
class TopicState:
    """What Kafka says of `__usage`; offsets by partition."""

    id: str
    first: Mapping[int, int]  # the oldest record that is kept
    end: Mapping[int, int]  # where the next one will be written


@dataclass(frozen=True, slots=True)
class Position:
    """What the database says of a partition."""

    topic_id: str
    next_offset: int  # the first record that it does not have
    end_offset: int  # as last seen


@dataclass(frozen=True, slots=True)
class Loss:
    """Records [start, end) of a partition were never read, or some of them."""

    kind: str  # "made again", "expired", "cut"
    partition: int
    start: int
    end: int

    @property
    def sentence(self) -> str:
        """For operators."""
        if self.kind == "made again":
            told = self.end - self.start
            known = f"{told} records that had been seen in it were not read" if told else "all seen in it had been read"
            return f"__usage was made again: of the topic before it, {known}"
        if self.kind == "cut":
            return (
                f"partition {self.partition} of __usage has lost its end: it had been read up to {self.end}"
                f" and ends at {self.start}"
            )
        return f"records {self.start} to {self.end - 1} of partition {self.partition} of __usage expired before they were read"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a query begins in each partition, and what it will never read."""

    offsets: Mapping[int, int] | None  # None: where the checkpoint says, or at the beginning
    losses: tuple[Loss, ...] = ()


def starting(
    known: Mapping[int, Position], topic: TopicState, *, has_checkpoint: bool, follow_database: bool = False
) -> Start:
    """Where to begin. `follow_database`: a batch has shown that the checkpoint is ahead of the database."""
    if not known:
        # A checkpoint without rows is that of another database.
        return Start(topic.first if has_checkpoint else None)
    others = [position for position in known.values() if position.topic_id != topic.id]
    if others:
        unread = sum(max(0, position.end_offset - position.next_offset) for position in others)
        return Start(topic.first, (Loss("made again", WHOLE_TOPIC, 0, unread),))
    losses: list[Loss] = []
    offsets: dict[int, int] = {}
    for partition, first in topic.first.items():
        end = topic.end[partition]
        read = known[partition].next_offset if partition in known else first
        if read < first:
            losses.append(Loss("expired", partition, read, first))
        elif read > end:
            losses.append(Loss("cut", partition, end, read))
        offsets[partition] = read if first <= read <= end else first
    return Start(offsets if losses or follow_database else None, tuple(losses))


def reaching_back(
    known: Mapping[int, Position], topic: TopicState, held: Mapping[int, int]
) -> tuple[Mapping[int, Position], bool]:
    """Positions from which nothing is missing in the lake either, and whether one of them is before the database's.

    `held`: up to where the lake has this topic (raw_commits.py). Where it has nothing at all it begins where the query goes on;
    of a partition that it does not know it has nothing. What is gone from the topic cannot be read: of that the database has its
    share, and it is no loss of usage.
    """
    if not held:
        return known, False
    found = dict(known)
    for partition, position in known.items():
        first = topic.first.get(partition, 0)
        wanted = max(held.get(partition, first), first)
        if position.topic_id == topic.id and wanted < position.next_offset:
            found[partition] = replace(position, next_offset=wanted)
    return found, found != known


@dataclass(frozen=True, slots=True)
class Moved:
    """The last batch that ended, and when the query was last heard to move: with a batch, or with nothing to do."""

    run: str = ""  # Spark's id of one start of a query
    at_ms: int | None = None
    batch_ms: int | None = None
    batch_records: int | None = None


class Looks:
    """Up to when each partition is complete: it held so much at a moment, and so much has been read since.

    A busy topic is never read to its end; but what was its end a moment ago soon is. So looks are remembered until the
    database has reached them.
    """

    def __init__(self) -> None:
        self._open: dict[int, deque[tuple[int, int]]] = {}

    def add(self, at_ms: int, end: Mapping[int, int]) -> None:
        """Where partitions end. `at_ms`: a moment before Kafka was asked."""
        for partition, offset in end.items():
            looks = self._open.setdefault(partition, deque())
            if len(looks) < MOST_LOOKS:
                looks.append((at_ms, offset))

    def complete(self, next_offsets: Mapping[int, int]) -> dict[int, int]:
        """The newest look, in ms, that partitions have been read up to; of those that have reached one since the last time."""
        found: dict[int, int] = {}
        for partition, looks in self._open.items():
            while looks and looks[0][1] <= next_offsets.get(partition, -1):
                found[partition] = looks.popleft()[0]
        return found
