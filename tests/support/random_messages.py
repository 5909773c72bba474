"""Requests that follow a declaration and make little sense: for fuzzing, from a seed.

message = random_message(random, APIS[key].request, version, words=["orders", "g"])
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.protocol.schema import Wire, wires
from dataplane.records.batch import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_message(random: Random, cls: type, version: int, words: Sequence[str]) -> Any:
    """Every field of this version, mostly with what is nearly right: words that exist, small numbers, edges."""
    values = {
        name: _value(random, wire, version, words)
        for name, wire, _ in wires(cls)
        if version in wire.versions and random.random() < 0.9
    }
    return dataclasses.replace(cls(), **values)


def _value(random: Random, wire: Wire, version: int, words: Sequence[str]) -> Any:
    if version in wire.nullable and random.random() < 0.2:
        return None
    if wire.kind == "array":
        element = wire.element
        count = random.choice((0, 1, 1, 1, 2, 5))
        if isinstance(element, Wire):
            return tuple(_value(random, element, version, words) for _ in range(count))
        assert element is not None
        return tuple(random_message(random, element, version, words) for _ in range(count))
    if wire.kind == "struct":
        assert isinstance(wire.element, type)
        return random_message(random, wire.element, version, words)
    return _plain(random, wire.kind, words)


def _plain(random: Random, kind: str, words: Sequence[str]) -> Any:
    if kind == "string":
        return random.choice((*words, *words, "", "__consumer_offsets", "../x", "é" * 50, "a" * 3_000))
    if kind == "bytes":
        return random.randbytes(random.choice((0, 1, 30)))
    if kind == "records":
        return _records(random)
    if kind == "bool":
        return random.random() < 0.5
    if kind == "uuid":
        return UUID(int=random.getrandbits(128))
    if kind == "float64":
        return random.choice((0.0, -1.0, float("inf"), float("nan")))
    return _number(random, kind)


def _number(random: Random, kind: str) -> int:
    if kind == "uint16":
        return random.choice((0, 1, 65_535))
    bits = _BITS[kind]
    top = 2 ** (bits - 1)
    return random.choice((0, 0, 0, 1, 1, -1, 2, 100, top - 1, -top, random.randrange(-top, top)))


def _records(random: Random) -> bytes:
    batch = build_batch([Record(b"k", random.randbytes(20)) for _ in range(random.choice((1, 3)))], now_ms=1_000)
    if random.random() < 0.3:
        batch[random.randrange(len(batch))] ^= 1 << random.randrange(8)
    return bytes(batch)
