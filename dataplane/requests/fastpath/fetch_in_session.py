"""The short cut of Fetch in a session: one partition is named, because its reader has got on.

A client that reads in a session names the partitions whose records it has got, with their new offsets; the number of the
request (the epoch of the session) changes each time::

    key version | correlation id | client id, limits, session | epoch | topic, partition, … | fetch offset | rest

What such a request does to its session and what it is answered is plain only as long as nothing else is to be told: no
other partition of the session is due, no other request of it waits, and there are records. Everything else, and whatever
`fetch` declines, goes the slow way (`handlers.records.fetch`, `fetch_sessions`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataplane.handlers.records.fetch import pool_of, principal_of
from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.replication.serving.session_cache import FIRST_VERSION_WITH_IDS
from dataplane.requests.fastpath.fetch_shape import ANSWERED

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.fetch import FetchRequest
    from dataplane.replication.serving.fetch_sessions import FetchSession
    from dataplane.replication.serving.session_cache import SessionPool
    from dataplane.requests.fastpath.fetch_shape import Shape

MAX_SHAPES = 64
_FIRST_WITHOUT_REPLICA = 15
_FIRST_FLEXIBLE = 12
_KEY_AND_VERSION = struct.Struct(">I").unpack_from
_EPOCH = struct.Struct(">i").unpack_from
_EPOCH_BYTES = 4
_OFFSET = struct.Struct(">q").unpack_from


class Answering(Protocol):
    """What answers a request that differs from an earlier one in its offset (`fetch.FetchFastPath`)."""

    def answer(self, frame: memoryview, shape: Shape, place: int) -> int:
        """ANSWERED, or nothing has been done."""
        ...


class _SessionShape(NamedTuple):
    """What a request means, and where in which session."""

    shape: Shape
    session: FetchSession
    pool: SessionPool
    topic: str | UUID
    wanted: FetchPartition  # with some offset


class SessionFastPath:
    """The shapes of one connection that are of sessions."""

    __slots__ = ("_epoch_at", "_places", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[bytes, _SessionShape] = {}  # by the bytes before the offset, without the epoch
        self._places: list[int] = []  # where offsets stand
        self._epoch_at = 0  # the same as long as the client's name and the version are

    def serve(self, frame: memoryview, fetch: Answering) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done.

        Who answers comes with the call: were it kept, the two would refer to each other when the connection has gone.
        """
        found = self._find(frame)
        return found is not None and self._answer(frame, fetch, *found)

    def knows(self, frame: memoryview) -> bool:
        """Whether there is nothing to learn from it."""
        found = self._find(frame)
        return found is not None and not found[0].session.is_closed

    def _find(self, frame: memoryview) -> tuple[_SessionShape, int] | None:
        """What the frame means, and where its offset stands."""
        at = self._epoch_at
        head = bytes(frame[8:at])
        for place in self._places:
            known = self._shapes.get(head + frame[at + _EPOCH_BYTES : place])
            if known is not None and frame[place + 8 :] == known.shape.rest:
                return (known, place) if _KEY_AND_VERSION(frame)[0] == known.shape.key_and_version else None
        return None

    def _answer(self, frame: memoryview, fetch: Answering, known: _SessionShape, place: int) -> bool:
        shape, session, pool, topic, wanted = known
        row = session.partition(topic, shape.index)
        if row is None or not session.expects_only(row, _EPOCH(frame, self._epoch_at)[0]):
            return False
        if fetch.answer(frame, shape, place) != ANSWERED:
            return False
        partition = shape.partition
        assert partition is not None
        row.wanted = FetchPartition(
            wanted.partition,
            wanted.current_leader_epoch,
            _OFFSET(frame, place)[0],
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
            wanted.partition_max_bytes,
        )
        session.told_records(row, partition.high_watermark, partition.log.start_offset, partition.read_waiters)
        pool.touch(session)
        return True

    def remember(self, ctx: RequestContext, request: FetchRequest, frame: memoryview, place: int, shape: Shape) -> None:
        """Learn what is of the session in a request that `fetch` has found to be plain otherwise."""
        pool = pool_of(ctx)
        session = pool.find(request.session_id, principal_of(ctx))
        if session is None or session.uses_topic_ids != (ctx.version >= FIRST_VERSION_WITH_IDS):
            return
        at = _place_of_epoch(frame, ctx.version)
        if at != self._epoch_at or len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
            self._places.clear()
            self._epoch_at = at
        shape.min_bytes = max(1, shape.min_bytes)  # where there are no records the partition may have to be left out
        topic = session.name_of(request.topics[0])
        key = bytes(frame[8:at]) + frame[at + _EPOCH_BYTES : place]
        self._shapes[key] = _SessionShape(shape, session, pool, topic, request.topics[0].partitions[0])
        if place not in self._places:
            self._places.append(place)


def _place_of_epoch(frame: memoryview, version: int) -> int:
    """Behind the client's name, the replica, three limits, the isolation level and the session."""
    name_bytes = max(0, int.from_bytes(frame[8:10], signed=True))
    header = 10 + name_bytes + (1 if version >= _FIRST_FLEXIBLE else 0)
    return header + (0 if version >= _FIRST_WITHOUT_REPLICA else 4) + 3 * 4 + 1 + 4
