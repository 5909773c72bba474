"""Inputs of the connection's fuzzer, bent: segments repeated, left out, exchanged, or one request with another field.

The form of an input is told in `fuzz_connection`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.protocol.api import APIS
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.schema import message_info
from tests.fuzz.bending import Raw, bent_batch, bent_message_set, repaired_batch, repaired_message_set
from tests.fuzz.declared import bent_bytes

if TYPE_CHECKING:
    from random import Random

Segment = tuple[int, bytes]
"""Control byte and payload."""
REQUEST = 3
_MOST = 12
_LONGEST = 65535
_BATCHES_SINCE = 3


def bent_input(data: bytes, keys: list[int], random: Random, raw: Raw) -> bytes:
    """Another input; `keys` are the APIs that a request's first byte chooses from."""
    segments = _split(data)
    choice = random.random()
    at = random.randrange(len(segments)) if segments else 0
    if not segments or (choice < 0.15 and len(segments) < _MOST):
        segments.insert(at, (random.choice((3, 7)), _any_request(keys, random)))
    elif choice < 0.25:
        segments.insert(at, random.choice(segments))
    elif choice < 0.35 and len(segments) > 1:
        del segments[at]
    elif choice < 0.4:
        random.shuffle(segments)
    elif choice < 0.45:
        segments[at] = random.getrandbits(8), segments[at][1]
    elif choice < 0.5:
        segments[at] = segments[at][0], raw(segments[at][1] or b"\0", _LONGEST)
    else:
        segments[at] = segments[at][0], _bent_payload(*segments[at], keys, random, raw)
    listener = bytes((random.getrandbits(1),)) if random.random() < 0.02 else data[:1]
    return listener + b"".join(bytes((control,)) + len(p).to_bytes(2) + p for control, p in segments[:_MOST])


def _split(data: bytes) -> list[Segment]:
    segments, position = [], 1
    while position + 3 <= len(data):
        size = int.from_bytes(data[position + 1 : position + 3])
        segments.append((data[position], data[position + 3 : position + 3 + size]))
        position += 3 + size
    return segments


def _bent_payload(control: int, payload: bytes, keys: list[int], random: Random, raw: Raw) -> bytes:
    if control & REQUEST != REQUEST or len(payload) < 2:
        return raw(payload or b"\0", _LONGEST)
    cls = APIS[keys[payload[0] % len(keys)]].request
    versions = message_info(cls).versions
    version = payload[1]
    if version not in versions or random.random() < 0.1:
        version = random.randint(versions.low, versions.high)
    if cls is ProduceRequest and random.random() < 0.6:
        body = _with_other_records(payload[2:], version, random, raw)
    else:
        body = bent_bytes(cls, version, payload[2:], random)
    return (bytes((payload[0], version)) + body)[:_LONGEST]


def _any_request(keys: list[int], random: Random) -> bytes:
    number = random.randrange(len(keys))
    cls = APIS[keys[number]].request
    versions = message_info(cls).versions
    version = random.randint(versions.low, versions.high)
    return (bytes((number, version)) + bent_bytes(cls, version, b"", random))[:_LONGEST]


def _with_other_records(body: bytes, version: int, random: Random, raw: Raw) -> bytes:
    """The same request with the records bent: most of what can be wrong with a Produce lies there."""
    try:
        request = decode(ProduceRequest, version, body)
    except DecodeError:
        return bent_bytes(ProduceRequest, version, body, random)

    def other(data: PartitionProduceData) -> PartitionProduceData:
        records = bytes(data.records or b"\0")
        bend, repaired = (
            (bent_message_set, repaired_message_set) if version < _BATCHES_SINCE else (bent_batch, repaired_batch)
        )
        records = bend(records, random, raw)
        return replace(data, records=repaired(records) if random.random() < 0.8 else records)

    topics = tuple(replace(t, partition_data=tuple(map(other, t.partition_data))) for t in request.topic_data)
    return encode(replace(request, topic_data=topics), version)
