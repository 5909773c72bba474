"""What a request for one partition means, learned from one that was decoded: all that `fetch` needs to answer the next.

Shapes are learned only from requests that our own encoder would write in just this way: so the places are known, and
nothing is hidden in them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.protocol.primitives import write_uvarint

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.fetch import FetchRequest
    from dataplane.replication.partition import Partition

DECLINED, ANSWERED, NOTHING_YET = range(3)
"""What becomes of a request that has a known shape."""
_FIRST_WITH_RACK = 11
_FIRST_FLEXIBLE = 12
_FIRST_WITH_IDS = 13
_KEY_AND_VERSION = struct.Struct(">I").unpack_from


@dataclass(slots=True)
class Shape:
    """What a request means; `partition` is where it went last."""

    key_and_version: int
    rest: bytes  # of the request, behind the offset
    physical: str
    topic_id: UUID | None
    index: int
    leader_epoch: int
    max_bytes: int
    min_bytes: int  # 0 where it does not wait
    wait_s: float
    prefix: bytes  # of the answer, between the correlation id and the high watermark
    middle: bytes  # between the log start offset and the length of the records
    flexible: bool
    partition: Partition | None = None


def shape_of(ctx: RequestContext, request: FetchRequest, frame: memoryview) -> tuple[int, Shape] | None:
    """(where the offset stands, the shape)."""
    version = ctx.version
    topic = request.topics[0]
    wanted = topic.partitions[0]
    physical, topic_id = topic.topic, None
    if version >= _FIRST_WITH_IDS:
        topic_id = topic.topic_id
        found = ctx.broker.replicas.topic_of_id(topic_id)
        if found is None or not ctx.owns(found):
            return None
        physical = found
    waits = request.max_wait_ms > 0 and request.min_bytes > 0
    limit = min(wanted.partition_max_bytes, request.max_bytes, ctx.broker.config.settings.fetch_max_bytes)
    place = _place_of_offset(version, len(frame), len(request.rack_id.encode()))
    return place, Shape(
        _KEY_AND_VERSION(frame)[0],
        bytes(frame[place + 8 :]),
        physical,
        topic_id,
        wanted.partition,
        wanted.current_leader_epoch,
        max(limit, 0),
        min(request.min_bytes, request.max_bytes) if waits else 0,
        request.max_wait_ms / 1000,
        _prefix(ctx, physical, topic_id, wanted.partition, request.session_id),
        _middle(version, request.isolation_level),
        version >= _FIRST_FLEXIBLE,
    )


def _place_of_offset(version: int, end: int, rack_bytes: int) -> int:
    """From the end, where what stands behind the offset has a known size."""
    if version >= _FIRST_FLEXIBLE:  # epoch, start, limit, two tags, forgotten, rack with its length, tags
        rack_length = 1 if rack_bytes < 127 else 2
        return end - (4 + 8 + 4 + 2 + 1 + rack_length + rack_bytes + 1) - 8
    rack = 2 + rack_bytes if version >= _FIRST_WITH_RACK else 0
    return end - (8 + 4 + 4 + rack) - 8  # start, limit, forgotten, rack


def _prefix(ctx: RequestContext, physical: str, topic_id: UUID | None, index: int, session_id: int) -> bytes:
    """Tags, throttle time, error, session; one topic, its name or id, one partition, its index, no error."""
    name = ctx.session.names.topic_out(physical).encode()
    if ctx.version < _FIRST_FLEXIBLE:
        topic = len(name).to_bytes(2) + name
        return (
            bytes(6) + session_id.to_bytes(4) + (1).to_bytes(4) + topic + (1).to_bytes(4) + index.to_bytes(4) + bytes(2)
        )
    out = bytearray(7) + session_id.to_bytes(4)
    out.append(2)
    if topic_id is None:
        write_uvarint(out, len(name) + 1)
        out += name
    else:
        out += topic_id.bytes
    return bytes(out) + b"\2" + index.to_bytes(4) + bytes(2)


def _middle(version: int, isolation_level: int) -> bytes:
    """Aborted transactions: null for who reads what is uncommitted; and no preferred replica."""
    if version >= _FIRST_FLEXIBLE:
        return (b"\1" if isolation_level else b"\0") + b"\xff" * 4
    aborted = bytes(4) if isolation_level else b"\xff" * 4
    return aborted + (b"\xff" * 4 if version >= _FIRST_WITH_RACK else b"")
