"""What serializers put before the content: the id of a schema in a registry, as Confluent's clients do. Pure.

At 0 a byte, 0; at 1 the schema's id, int32 big-endian; at 5, with Protobuf only, the path to the message within its file, as
zigzag varints: how many there are, and each. A path of none is the first message.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from controlplane.schemas.values import UndecodableError

_HEAD_BYTES = 5
_MOST_INDEXES = 16


class Framing(StrEnum):
    """What stands before the content."""

    NONE = "none"
    REGISTRY = "registry"


class Framed(NamedTuple):
    """Content, and what stood before it."""

    content: bytes
    schema_id: int
    path: tuple[int, ...] = ()  # of a message of Protobuf: its place in the file, the place of one within that, …


def unframed(data: bytes, *, with_path: bool = False) -> Framed:
    """Without what a serializer for a schema registry has put before it. Raises UndecodableError."""
    if len(data) < _HEAD_BYTES or data[0]:
        raise UndecodableError("it does not begin with the id of a schema (a byte 0, and four bytes)")
    schema_id = int.from_bytes(data[1:_HEAD_BYTES])
    if not with_path:
        return Framed(data[_HEAD_BYTES:], schema_id)
    count, at = zigzag(data, _HEAD_BYTES)
    if not 0 <= count <= _MOST_INDEXES:
        raise UndecodableError("it does not say which message of its file it is")
    path = []
    for _ in range(count):
        index, at = zigzag(data, at)
        path.append(index)
    return Framed(data[at:], schema_id, tuple(path) or (0,))


def zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits as Avro and Protobuf write those with a sign, and where it ends. Raises UndecodableError."""
    found = shift = 0
    while shift < 70:
        if at >= len(data):
            raise UndecodableError("it ends within a number")
        octet = data[at]
        at += 1
        found |= (octet & 0x7F) << shift
        if octet < 0x80 and found < 2**64:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
    raise UndecodableError("it holds a number of more than 64 bits")
