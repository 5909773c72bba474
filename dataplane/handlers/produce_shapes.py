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

from dataplane.network.slots import Slot
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import DecodeError, read_uvarint
from dataplane.throttle.gate import throttle_ms

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.network.dispatch import ClientConnection
    from dataplane.protocol.messages.produce import ProduceRequest
    from dataplane.replication.partition import Partition

MAX_SHAPES = 64
MAX_SHAPE_END = 1_024
"""Names that are longer are no reason to compare them with every request."""
_LENGTH = struct.Struct(">i").unpack_from
_FIRST_FLEXIBLE = 9
_HEADER_BYTES = 61
_NO_TAGS = b"\0\0\0"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run of header bytes means."""

    flexible: bool
    physical: str
    index: int
    acks: int
    timeout_s: float
    prefix: bytes  # of the answer, between the correlation id and the error code
    suffix: struct.Struct  # error code … throttle time, of this version
    version: int


class _Answer(Slot):
    """The place of an answer, and what is called when the batch is as safe as was asked."""

    __slots__ = ("_base_offset", "_client", "_correlation_id", "_partition", "_shape", "throttle_time_ms")

    def __init__(
        self, client: ClientConnection, shape: Shape, correlation_id: bytes, partition: Partition, base_offset: int
    ) -> None:
        self.parts = None
        self._client, self._shape, self._correlation_id = client, shape, correlation_id
        self._partition, self._base_offset = partition, base_offset
        self.throttle_time_ms = 0

    def __call__(self, error: ErrorCode) -> None:
        shape = self._shape
        offset = -1 if error else self._base_offset
        tail = _tail(shape, error, offset, self._partition.log.start_offset, self.throttle_time_ms)
        size = 4 + len(shape.prefix) + len(tail)
        self._client.fill(self, (size.to_bytes(4) + self._correlation_id + shape.prefix + tail,))


class ProduceShapes:
    """The shapes of one connection."""

    __slots__ = ("_client", "_lengths", "_shapes")

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._shapes: dict[bytes, Shape] = {}
        self._lengths: list[int] = []

    def serve(self, frame: memoryview) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done."""
        for end in self._lengths:
            shape = self._shapes.get(bytes(frame[8:end]))
            if shape is not None and frame[3] == shape.version and frame[2] == 0:
                return self._append(frame, shape, end)
        return False

    def _append(self, frame: memoryview, shape: Shape, position: int) -> bool:
        end = len(frame) - 3 if shape.flexible else len(frame)
        if end - position <= _HEADER_BYTES:
            return False
        if shape.flexible:
            if frame[end] or frame[end + 1] or frame[end + 2]:
                return False  # not the three empty sections of tags
            try:
                size, position = read_uvarint(frame, position)
            except DecodeError:
                return False
            size -= 1
        else:
            size = _LENGTH(frame, position)[0]
            position += 4
        if size <= _HEADER_BYTES or position + size != end:
            return False
        batch = frame[position:end]
        if batch[16] != 2 or _LENGTH(batch, 8)[0] + 12 != size:
            return False
        client = self._client
        broker, instance = client.broker, client.session.instance
        replicas = broker.replicas
        partition = replicas.leader(shape.physical, shape.index)
        if isinstance(partition, ErrorCode):
            return False
        delay_s = 0.0
        if instance is not None:
            if instance.has_topic_whitelists and instance.topic_denied(shape.physical, client.session.peer):
                return False
            if broker.gate.produce_refusal(instance) is not None:
                return False
        appended = replicas.append(partition, batch, shape.acks)
        if appended.error:
            return False  # nothing was staged: the slow path finds the same error and words the answer
        if instance is not None:
            delay_s = broker.gate.charge_produce(instance, len(frame) + 4)
            if delay_s:
                client.mute_produce(delay_s)
        if shape.acks == 0:
            return True
        answer = _Answer(client, shape, bytes(frame[4:8]), partition, appended.base_offset)
        if delay_s:
            answer.throttle_time_ms = throttle_ms(delay_s)
        client.append_slot(answer)
        replicas.after_commit(partition, appended.last_offset, shape.acks, shape.timeout_s, answer)
        return True

    def remember(self, ctx: RequestContext, request: ProduceRequest, frame: memoryview) -> None:
        """Learn the shape of a request that the slow path has decoded, if it is of the kind that is served here."""
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        if request.transactional_id is not None or request.acks not in (-1, 0, 1) or ctx.version < 3:
            return
        topic = request.topic_data[0]
        data = topic.partition_data[0]
        if not isinstance(data.records, memoryview) or not len(data.records) or data.index < 0:
            return
        flexible = ctx.version >= _FIRST_FLEXIBLE
        end = _end_of_shape(frame, len(data.records), flexible=flexible)
        if end is None or end > MAX_SHAPE_END or len(self._shapes) >= MAX_SHAPES:
            return
        shape = Shape(
            flexible,
            topic.name,
            data.index,
            request.acks,
            request.timeout_ms / 1000,
            _prefix(ctx.session.names.topic_out(topic.name).encode(), data.index, flexible=flexible),
            _SUFFIXES[ctx.version],
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


# error code, base offset, log append time, [log start offset], [no record errors, no message, tags], throttle time, [tags]
_V3, _V5, _V8, _V9 = (struct.Struct(layout) for layout in (">hqqi", ">hqqqi", ">hqqqihi", ">hqqqBBBBiB"))
_SUFFIXES = {3: _V3, 4: _V3, 5: _V5, 6: _V5, 7: _V5, 8: _V8, 9: _V9}


def _tail(shape: Shape, error: ErrorCode, offset: int, start: int, delay_ms: int) -> bytes:
    pack = shape.suffix.pack
    if shape.version == 9:
        return pack(error, offset, -1, start, 1, 0, 0, 0, delay_ms, 0)
    if shape.version == 8:
        return pack(error, offset, -1, start, 0, -1, delay_ms)
    if shape.version >= 5:
        return pack(error, offset, -1, start, delay_ms)
    return pack(error, offset, -1, delay_ms)
