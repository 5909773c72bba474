"""The short cut of Produce: a request for one partition whose header bytes this connection has sent before.

A client repeats the same bytes for a topic-partition in every request; only the correlation id and the records differ::

    key version | correlation id | client id, transactional id, acks, timeout, topic, partition | length | records | tags
                                 `-------------- the shape: compared, not decoded -------------'

What the bytes mean was found by the slow path once; what may have changed since (leadership, whitelists, storage full) is
checked every time. Everything that is not plain success goes the slow way, which knows how to say it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.handlers.records.conversion import FIRST_ZSTD_PRODUCED, is_early_zstd
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import DecodeError, read_uvarint
from dataplane.requests.slots import Slot
from dataplane.throttle.debt_queue import throttle_ms

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.produce import ProduceRequest
    from dataplane.replication.partition import Partition
    from dataplane.requests.served import Served

MAX_SHAPES = 64
MAX_SHAPE_END = 1_024
"""Names that are longer are no reason to compare them with every request."""
_LENGTH = struct.Struct(">i").unpack_from
_KEY_AND_VERSION = struct.Struct(">I").unpack_from
_WORD = struct.Struct("<I").unpack_from
_FIRST_VERSION = 5  # whose answer has a start offset; clients of older ones go the slow way
_FIRST_WITH_RECORD_ERRORS = 8
_FIRST_FLEXIBLE = 9
_HEADER_BYTES = 61
_NO_TAGS = b"\0\0\0"


@dataclass(slots=True)
class Shape:
    """What a run of header bytes means; `partition` is where it went last."""

    flexible: bool
    physical: str
    index: int
    acks: int
    timeout_s: float
    size: bytes  # of the answer, as it comes first
    prefix: bytes  # of the answer, between the correlation id and the error code
    tail: bytes  # of the answer when it is not throttled, behind the result
    version: int
    partition: Partition | None = None


class _Answer(Slot):
    """The place of an answer, and what is called when the batch is as safe as was asked."""

    __slots__ = ("_base_offset", "_client", "_correlation_id", "_partition", "_shape", "throttle_time_ms")

    def __init__(
        self, client: Served, shape: Shape, correlation_id: bytes, partition: Partition, base_offset: int
    ) -> None:
        self.parts = None
        self._client, self._shape, self._correlation_id = client, shape, correlation_id
        self._partition, self._base_offset = partition, base_offset
        self.throttle_time_ms = 0

    def __call__(self, error: ErrorCode) -> None:
        shape = self._shape
        offset = -1 if error else self._base_offset
        result = _pack_result(error, offset, -1, self._partition.log.start_offset)
        tail = _tail(shape.version, self.throttle_time_ms) if self.throttle_time_ms else shape.tail
        self._client.fill_soon(self, (shape.size + self._correlation_id + shape.prefix + result + tail,))


class ProduceFastPath:
    """The shapes of one connection."""

    __slots__ = ("_client", "_lengths", "_shapes")

    def __init__(self, client: Served) -> None:
        self._client = client
        self._shapes: dict[bytes, Shape] = {}
        self._lengths: list[int] = []

    def serve(self, frame: memoryview) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done."""
        for end in self._lengths:
            shape = self._shapes.get(bytes(frame[8:end]))
            if shape is not None and _KEY_AND_VERSION(frame)[0] == shape.version:  # the key of Produce is 0
                batch = _batch_of(frame, end, flexible=shape.flexible)
                return batch is not None and self._append(frame, shape, batch)
        return False

    def _append(self, frame: memoryview, shape: Shape, batch: memoryview) -> bool:
        client = self._client
        broker, instance = client.broker, client.session.instance
        partition = shape.partition
        if partition is None or not partition.is_leader:
            found = broker.replicas.leader(shape.physical, shape.index)
            if isinstance(found, ErrorCode):
                return False
            partition = shape.partition = found
        if partition.rules is not None or (shape.version < FIRST_ZSTD_PRODUCED and is_early_zstd(batch, shape.version)):
            return False
        if instance is not None:
            if instance.has_topic_whitelists and instance.topic_denied(shape.physical, client.session.peer):
                return False
            if broker.gate.produce_refusal(instance) is not None:
                return False
            if instance.rules is not None and instance.rules.concerns(shape.physical):
                return False
        acks = shape.acks
        appended = broker.replicas.append(partition, batch, acks)
        if appended.error or appended.duplicate:
            return False  # nothing was staged: the slow path finds the same and words the answer
        if acks:
            answer = _Answer(client, shape, bytes(frame[4:8]), partition, appended.base_offset)
            told_s = client.told_s
            if told_s:
                answer.throttle_time_ms = throttle_ms(told_s)
            client.append_slot(answer)
            broker.replicas.after_commit(partition, appended.last_offset, acks, shape.timeout_s, answer)
        return True

    def remember(self, ctx: RequestContext, request: ProduceRequest, frame: memoryview) -> None:
        """Learn the shape of a request that the slow path has decoded, if it is of the kind that is served here."""
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        if request.transactional_id is not None or request.acks not in (-1, 0, 1) or ctx.version < _FIRST_VERSION:
            return
        topic = request.topic_data[0]
        data = topic.partition_data[0]
        if not isinstance(data.records, memoryview) or not len(data.records) or data.index < 0:
            return
        if topic.name == OFFSETS_TOPIC:  # always refused
            return
        flexible = ctx.version >= _FIRST_FLEXIBLE
        end = _end_of_shape(frame, len(data.records), flexible=flexible)
        if end is None or end > MAX_SHAPE_END or len(self._shapes) >= MAX_SHAPES:
            return
        prefix = _prefix(ctx.session.names.topic_out(topic.name).encode(), data.index, flexible=flexible)
        tail = _tail(ctx.version, 0)
        shape = Shape(
            flexible,
            topic.name,
            data.index,
            request.acks,
            request.timeout_ms / 1000,
            (4 + len(prefix) + _RESULT_BYTES + len(tail)).to_bytes(4),
            prefix,
            tail,
            ctx.version,
        )
        self._shapes[bytes(frame[8:end])] = shape
        if end not in self._lengths:
            self._lengths.append(end)


def _end_of_shape(frame: memoryview, size: int, *, flexible: bool) -> int | None:
    """Where the length of the records begins; None where the frame does not end as it does nearly always."""
    if not flexible:
        end = len(frame) - size - 4
        return end if _LENGTH(frame, end)[0] == size else None
    if bytes(frame[-3:]) != _NO_TAGS:
        return None
    varint_bytes = 1
    while (size + 1) >> (7 * varint_bytes):
        varint_bytes += 1
    return len(frame) - 3 - size - varint_bytes


def _prefix(topic: bytes, index: int, *, flexible: bool) -> bytes:
    """The answer up to the error code: header tags, one topic, its name, one partition, its index."""
    if flexible:
        name = bytearray()
        length = len(topic) + 1
        while length > 0x7F:
            name.append(length & 0x7F | 0x80)
            length >>= 7
        name.append(length)
        return b"\0\x02" + bytes(name) + topic + b"\x02" + index.to_bytes(4)
    return (1).to_bytes(4) + len(topic).to_bytes(2) + topic + (1).to_bytes(4) + index.to_bytes(4)


def _batch_of(frame: memoryview, position: int, *, flexible: bool) -> memoryview | None:
    """The records, whose length stands at `position`; None where they do not fill the rest of the frame."""
    end = len(frame)
    if end - position <= _HEADER_BYTES:
        return None
    if not flexible:
        size = _LENGTH(frame, position)[0]
        return frame[position + 4 :] if position + 4 + size == end else None
    end -= 3
    word = _WORD(frame, position)[0]
    if word & 0x808080 == 0x008080:  # a varint of three bytes: 16 KiB to 2 MiB
        size = (word & 0x7F | word >> 1 & 0x3F80 | word >> 2 & 0x1FC000) - 1
        position += 3
    else:
        try:
            size, position = read_uvarint(frame, position)
        except DecodeError:
            return None
        size -= 1
    if position + size != end or frame[end] or frame[end + 1] or frame[end + 2]:  # three empty sections of tags
        return None
    return frame[position:end]


# The answer after the prefix: error code, base offset, log append time, start offset, then what depends on the version.
_RESULT = struct.Struct(">hqqq")
_pack_result, _RESULT_BYTES = _RESULT.pack, _RESULT.size


def _tail(version: int, throttle_time_ms: int) -> bytes:
    """No errors of single records, no message, the throttle time; with the sections of tags from version 9 on."""
    throttled = throttle_time_ms.to_bytes(4)
    if version >= _FIRST_FLEXIBLE:
        return b"\1\0\0\0" + throttled + b"\0"
    return b"\0\0\0\0\xff\xff" + throttled if version == _FIRST_WITH_RECORD_ERRORS else throttled
