"""The short cut of Fetch in a session: one partition is named, because its reader has got on.

A client that reads in a session names the partitions whose records it has got, with their new offsets; the number of the
request (the epoch of the session) changes each time::

    key version | correlation id | client id, limits, session | epoch | topic, partition, … | fetch offset | rest

What such a request does to its session and what it is answered is plain only as long as nothing else is to be told: no
other partition of the session is due, no other request of it waits, and there are records. Everything else, and whatever
`fetch` declines, goes the slow way (`handlers.records.fetch`, `fetch_sessions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataplane.handlers.records.fetch import pool_of, principal_of
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest
from dataplane.protocol.templates import Requests
from dataplane.replication.serving.session_cache import FIRST_VERSION_WITH_IDS
from dataplane.requests.fastpath.fetch_shape import ANSWERED

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.handlers.context import RequestContext
    from dataplane.replication.serving.fetch_sessions import FetchSession
    from dataplane.replication.serving.session_cache import SessionPool
    from dataplane.requests.fastpath.fetch_shape import Shape

MAX_SHAPES = 64
_HOLES = ((FetchRequest, "session_epoch"), (FetchPartition, "fetch_offset"))


class Answering(Protocol):
    """What answers a request that differs from an earlier one in its offset (`fetch.FetchFastPath`)."""

    def answer(self, shape: Shape, correlation_id: bytes, offset: int) -> int:
        """ANSWERED, or nothing has been done."""
        ...


class _SessionShape(NamedTuple):
    """What a request means, and in which session."""

    shape: Shape
    session: FetchSession
    pool: SessionPool
    topic: str | UUID
    wanted: FetchPartition  # with some offset


class SessionFastPath:
    """The shapes of one connection that are of sessions."""

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes = Requests[_SessionShape](APIS[ApiKey.FETCH], _HOLES)

    def serve(self, frame: memoryview, fetch: Answering, access: int) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done.

        `access` is the generation of the reader's. Who answers comes with the call: were it kept, the two would refer to
        each other when the connection has gone.
        """
        found = self._shapes.find(frame)
        return found is not None and self._answer(fetch, access, *found)

    def knows(self, frame: memoryview) -> bool:
        """Whether there is nothing to learn from it."""
        found = self._shapes.find(frame)
        return found is not None and not found[0].session.is_closed

    def _answer(
        self, fetch: Answering, access: int, known: _SessionShape, correlation_id: bytes, epoch: int, offset: int
    ) -> bool:
        shape, session, pool, topic, wanted = known
        row = session.partition(topic, shape.index)
        if row is None or not session.expects_only(row, epoch, access):
            return False
        if fetch.answer(shape, correlation_id, offset) != ANSWERED:
            return False
        partition = shape.partition
        assert partition is not None
        row.wanted = FetchPartition(
            wanted.partition,
            wanted.current_leader_epoch,
            offset,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
            wanted.partition_max_bytes,
        )
        readers = partition.queues.readers(stable_only=shape.stable_only)
        high_watermark = partition.state.high_watermark
        session.told_records(row, high_watermark, partition.log.start_offset, readers)
        pool.touch(session)
        return True

    def remember(self, ctx: RequestContext, request: FetchRequest, frame: memoryview, shape: Shape) -> None:
        """Learn what is of the session in a request that `fetch` has found to be plain otherwise."""
        pool = pool_of(ctx)
        session = pool.find(request.session_id, principal_of(ctx))
        if session is None or session.uses_topic_ids != (ctx.version >= FIRST_VERSION_WITH_IDS):
            return
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.forget()
        shape.min_bytes = max(1, shape.min_bytes)  # where there are no records the partition may have to be left out
        topic = session.name_of(request.topics[0])
        known = _SessionShape(shape, session, pool, topic, request.topics[0].partitions[0])
        self._shapes.learn(frame, ctx.session.names, known)
