"""Messages made, and bent in one place, by their declarations: what lies behind the first check is reached only so.

Random bytes hardly ever get past the first array's length; a message that a client could have sent, with one field of it
replaced, an element twice, or a null where there was none, goes all the way. All that is drawn comes from a `Random`
that the fuzzer seeds, so an input is made again from the same input and seed.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.protocol.codec import decode, encode
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.schema import Wire, wires

if TYPE_CHECKING:
    from random import Random

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SMALL = (0, 1, 2, 3, 5, 7, 10, 100, 1000, -1, -2)
_DEPTH = 4
_CHANCE_DEEPER = 0.7
MEMBER = "the member"
"""For the id that a coordinator gives: see `world`."""
_NAMES = {
    "topic": ("orders", "orders", "strict", "healthy", "missing", "", "__consumer_offsets", "other.orders", "a" * 249),
    "group": ("group", "group", "group", "readers", "", "other.group"),
}
"""Few, so that requests speak of the same."""
_TEXTS = (
    *(MEMBER, MEMBER, "", "a", "orders", "group", "consumer", "consumer", "range", "range", "fuzz", "1", "2", "-1"),
    *("simulate.orders", "../etc", "a" * 249, "日志", "\0", "gzip", "compact", "PLAIN"),
    *("retention.ms", "cleanup.policy", "max.message.bytes", "min.insync.replicas", "quota.produce"),
)


def made(cls: type, version: int, random: Random, depth: int = 0) -> Any:
    """A message, or a part of one, with every field of that version."""
    fields = {
        name: _value(wire, version, random, depth)
        for name, wire, _ in wires(cls)
        if version in wire.versions or (version in wire.tagged and random.random() < 0.5)
    }
    return cls(**fields)


def bent(message: Any, version: int, random: Random) -> Any:
    """The message with one field, somewhere inside, being another."""
    fields = [
        (name, wire) for name, wire, _ in wires(type(message)) if version in wire.versions or version in wire.tagged
    ]
    if not fields:
        return message
    # Where there are structures inside, they are most of the message.
    inner = [field for field in fields if field[1].kind in ("array", "struct")]
    name, wire = random.choice(inner if inner and random.random() < _CHANCE_DEEPER else fields)
    return dataclasses.replace(message, **{name: _bent_value(getattr(message, name), wire, version, random)})


def bent_bytes(cls: type, version: int, data: bytes, random: Random) -> bytes:
    """The same for an encoded message; a new one where the bytes are none, and now and then."""
    try:
        message = decode(cls, version, data) if random.random() < 0.9 else made(cls, version, random)
    except DecodeError:
        message = made(cls, version, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        message = bent(message, version, random)
    try:
        return encode(message, version)
    except (ValueError, struct.error, TypeError):  # decoded so, but of a length that we do not write
        return encode(made(cls, version, random), version)


def _bent_value(value: Any, wire: Wire, version: int, random: Random) -> Any:
    if value is None or random.random() < 0.15:
        return _value(wire, version, random, 0)
    if wire.kind == "struct":
        return bent(value, version, random)
    if wire.kind == "array":
        return _bent_array(value, wire, version, random)
    if wire.kind in _BITS and random.random() < 0.5:
        return _within(value + random.choice((-1, 1, 2, 16, 256)), _BITS[wire.kind])
    if wire.kind in ("bytes", "records") and len(value) > 0 and random.random() < 0.8:
        changed = bytearray(value)
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        return bytes(changed)
    return _value(wire, version, random, 0)


def _bent_array(items: tuple[Any, ...], wire: Wire, version: int, random: Random) -> tuple[Any, ...]:
    at = random.randrange(len(items) + 1)
    choice = random.random()
    if at == len(items) or choice < 0.1:
        return (*items[:at], _element(wire, version, random, 1), *items[at:])
    if choice < 0.2:
        return items[:at] + items[at + 1 :]
    if choice < 0.35:
        return (*items, items[at])
    if isinstance(wire.element, Wire):
        return (*items[:at], _bent_value(items[at], wire.element, version, random), *items[at + 1 :])
    return (*items[:at], bent(items[at], version, random), *items[at + 1 :])


def _element(wire: Wire, version: int, random: Random, depth: int) -> Any:
    if isinstance(wire.element, Wire):
        return _value(wire.element, version, random, depth)
    assert wire.element is not None
    return made(wire.element, version, random, depth)


def _value(wire: Wire, version: int, random: Random, depth: int) -> Any:
    if version in wire.nullable and random.random() < 0.2:
        return None
    if wire.kind == "array":
        size = 0 if depth >= _DEPTH else random.choice((0, 1, 1, 2, 3))
        return tuple(_element(wire, version, random, depth + 1) for _ in range(size))
    if wire.kind == "struct":
        return _element(wire, version, random, depth + 1)
    return random.choice(_NAMES[wire.entity]) if wire.entity in _NAMES else _primitive(wire.kind, random)


def _primitive(kind: str, random: Random) -> Any:
    if kind in _BITS:
        edge = 1 << (_BITS[kind] - 1)
        return _within(random.choice((*_SMALL, edge - 1, -edge, random.randrange(-edge, edge))), _BITS[kind])
    if kind == "uint16":
        return random.choice((0, 1, 9092, 65535))
    if kind == "bool":
        return random.random() < 0.5
    if kind == "float64":
        return random.choice((0.0, -1.0, 1.5, 1e308, float("inf")))
    if kind == "uuid":
        return UUID(int=random.choice((0, 1, random.getrandbits(128))))
    if kind == "string":
        return random.choice(_TEXTS)
    return random.randbytes(random.choice((0, 1, 4, 20, 200)))


def _within(value: int, bits: int) -> int:
    edge = 1 << (bits - 1)
    return (value + edge) % (1 << bits) - edge
