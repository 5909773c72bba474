"""What a look at expired offsets finds in a load's table: which table, how it is read, and what is said where it cannot be.

Only a look at one partition asks for it, one that begins at an offset or where a page before has ended. A table is asked only
if a load of this instance has read the topic that has the name now (`loads.tables`). What is read there is charged to nobody.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import Unavailable
from controlplane.kafka import topics
from controlplane.kafka.group_door import Span
from controlplane.kafka.message_door import Message, Taken
from controlplane.lake.planning import Span as TableSpan
from controlplane.loads import tables
from controlplane.loads.unread import TableProblem, beside
from controlplane.messages.sources import Below, below, may_be_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from controlplane.core.errors import SluiceError
    from controlplane.instances.models import Instance
    from controlplane.kafka.message_door import Room, Stretch
    from controlplane.lake.rows import Row
    from controlplane.loads.tables import OpenTable
    from controlplane.messages.looking import Position

UNDATED_MS = -1
"""Of a record without a time, in a table: Spark's source has it so."""


@dataclass(frozen=True, slots=True)
class Lake:
    """The table that has what this look begins with."""

    load_id: str
    below: Below
    reader: TableReader


class TableReader:
    """Reads one partition of a table as a `message_door.Reader` reads a topic. Raises TableProblem."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        """See message_door.Reader."""
        found = {}
        for partition, (first, end) in wanted.items():
            span = TableSpan(first, end)
            most = {"rows": max(1, room.messages), "most_bytes": max(1, room.bytes)}
            read = self._table.read(partition, span, until_s=room.until_s, **most)
            messages = [_message(partition, row) for row in read.rows]
            for message in messages:
                room.take(message)
            found[partition] = Taken(read.upto, messages)
        return found


@contextmanager
def lake_of(instance: Instance, topic: str, start: Position, spans: Mapping[int, Span]) -> Iterator[Lake | None]:
    """None: no table has what is looked for. Raises TableProblem where one may have it and cannot be read."""
    partition = next(iter(start.offsets), -1)
    is_one = len(start.offsets) == 1 and not start.unseen and partition in spans
    if not is_one or not may_be_below(spans[partition], partition, start) or not tables.has_loads(instance, topic):
        yield None
        return
    topic_id = topics.get(instance.cluster.address, instance.id, topic).id
    until_s = time.monotonic() + tables.OPEN_S
    unread: TableProblem | None = None
    for load in tables.candidates(instance, topic, topic_id):
        with ExitStack() as stack:
            try:
                table = stack.enter_context(tables.opened(load, topic_id, until_s))
            except TableProblem as problem:
                unread = unread or problem
                continue
            has = table.spans.get(partition)
            span = None if has is None else Span(has.first, has.end)
            found = below(partition, span, spans[partition], start)
            if found is not None:
                yield Lake(load.pk, found, TableReader(table))
                return
    if unread is not None:
        raise unread
    yield None


@contextmanager
def telling(answer: Callable[[], SluiceError]) -> Iterator[None]:
    """Where a table cannot be read: the answer without a table, with a sentence more; 503 if it is worth another try."""
    try:
        yield
    except TableProblem as problem:
        refusal = answer()
        detail = beside(refusal.detail, problem.load_id, problem.sentence)
        members = {**refusal.members, "load": problem.load_id}
        if problem.is_passing:
            raise Unavailable(detail, code="lake_unavailable", members=members) from problem
        raise type(refusal)(detail, code=refusal.code, members=members) from problem


def _message(partition: int, row: Row) -> Message:
    timestamp_ms = None if row.timestamp_ms == UNDATED_MS else row.timestamp_ms
    return Message(partition, row.offset, timestamp_ms, row.key, row.value, row.headers)
