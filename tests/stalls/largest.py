"""The largest legal request of its kind, made from the declarations: the longest array, of the most distinct names.

    message = largest(MetadataRequest, 12, Shape.WIDE, Known(topics, groups), Bounds(2 * MIB, 20_000))

    wide    as many elements in the first array as there may be, each with one of what it holds itself
    deep    one element, and within it as many as there may be: one topic with 20,000 partitions
    flat    no array at all: texts as long as there may be

A request is bounded twice: by its bytes, and (on a tenant's door) by the elements of all its arrays together. First comes
what exists, for that costs most; then names that nobody has heard of, as long as there is room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID

from dataplane.protocol.codec import encode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.schema import Wire, wires
from dataplane.records.batch import Record, build_batch
from dataplane.records.legacy import write_message
from tests.stalls.meanings import GROUP, LONGEST, NAMES, NEW, NUMBERED, TEXT, TOPIC, given

NOW_MS = 1_700_000_000_000
HEADER_BYTES = 200
"""More than stands in front of a request."""
_TRIAL = 64
_BATCH_BYTES = 1_040_000


class Shape(StrEnum):
    """Where the elements are."""

    WIDE = "wide"
    DEEP = "deep"
    FLAT = "flat"


@dataclass(frozen=True)
class Known:
    """Names of what exists, as the door that they are sent to calls it; `sink` takes what is produced."""

    topics: Sequence[str]
    groups: Sequence[str]
    ids: Sequence[UUID] = ()  # of the topics, in their order
    sink: str = "sink"
    sink_partitions: int = 104


@dataclass(frozen=True)
class Bounds:
    """Of a request."""

    bytes: int
    elements: int


def shapes_of(cls: type, version: int) -> tuple[Shape, ...]:
    """Those that differ for this request."""
    arrays = list(_arrays(cls, version))
    if not arrays:
        return (Shape.FLAT,)
    if cls is ProduceRequest:
        return (Shape.WIDE,)
    inner = arrays[0].element
    deeper = isinstance(inner, type) and any(_arrays(inner, version))
    return (Shape.WIDE, Shape.DEEP) if deeper else (Shape.WIDE,)


def largest(cls: type, version: int, shape: Shape, known: Known, bounds: Bounds) -> Any:
    """The request."""
    room = bounds.bytes - HEADER_BYTES
    if cls is ProduceRequest:
        return _produce(version, known, room)
    make = _Maker(version, shape, known)
    if shape is Shape.FLAT:
        return make.message(cls, replace(make.size, pad=_fitting_pad(make, cls, room)))
    one, many = make.message(cls, _Size(1)), make.message(cls, _Size(_TRIAL))
    each_elements = max((count(many) - count(one)) / (_TRIAL - 1), 1)
    each_bytes = max((len(encode(many, version)) - len(encode(one, version))) / (_TRIAL - 1), 1)
    number = min(int((bounds.elements - 8) / each_elements), int(room / each_bytes))
    return _shrunk(make, cls, number, room)


def count(value: Any) -> int:
    """The elements of all arrays together."""
    if isinstance(value, tuple):
        return len(value) + sum(map(count, value))
    if not hasattr(type(value), "__dataclass_fields__"):
        return 0
    return sum(count(getattr(value, name)) for name, *_ in wires(type(value)))


@dataclass(frozen=True)
class _Size:
    number: int
    pad: int = 0


def _shrunk(make: _Maker, cls: type, number: int, room: int) -> Any:
    """As many elements as fit; what is left of the room goes into the names."""
    while True:
        plain = make.message(cls, _Size(number))
        spare = room - len(encode(plain, make.version))
        if spare >= 0:
            break
        number = min(number - 1, int(number * room / (room - spare)))
    if spare < number:
        return plain
    padded = make.message(cls, _Size(number, pad=spare // number))
    return padded if len(encode(padded, make.version)) <= room else plain


def _fitting_pad(make: _Maker, cls: type, room: int) -> int:
    """For messages of texts alone."""
    pad = min(room // 4, LONGEST[TEXT])
    while len(encode(make.message(cls, _Size(1, pad)), make.version)) > room:
        pad //= 2
    return pad


@cache
def _sent(cls: type, version: int) -> list[tuple[str, Wire, Any]]:
    """The fields of a version, but those that are tagged."""
    return [each for each in wires(cls) if version in each[1].versions and version not in each[1].tagged]


def _arrays(cls: type, version: int) -> Iterator[Wire]:
    """Those that a request of this version has."""
    return (wire for _, wire, _ in wires(cls) if wire.kind == "array" and version in wire.versions)


class _Maker:
    def __init__(self, version: int, shape: Shape, known: Known) -> None:
        self.version, self.known = version, known
        self.deep = shape is Shape.DEEP
        self.size = _Size(1)
        self._known = {TOPIC: known.topics, GROUP: known.groups, NEW: (), TEXT: ()}

    def message(self, cls: type, size: _Size) -> Any:
        self.size = size
        return self._structure(cls, 0, self.deep)

    def _structure(self, cls: type, at: int, on_the_way: bool) -> Any:
        """A structure that is number `at` of its array. `on_the_way`: the long array is inside of it."""
        values, first = {}, True
        for name, wire, default in _sent(cls, self.version):
            is_first = first and wire.kind == "array"
            made = given(cls, name, deep=self.deep)
            if made is ...:
                made = self._value(cls, name, wire, default, at, is_first, on_the_way)
            first = first and not (wire.kind == "array" and made)
            values[name] = made
        return cls(**values)

    def _value(self, cls: type, name: str, wire: Wire, default: Any, at: int, is_first: bool, on_the_way: bool) -> Any:
        if wire.kind == "array":
            return self._array(cls, name, wire, is_first, on_the_way, at)
        if wire.kind == "struct" and isinstance(wire.element, type):
            return self._structure(wire.element, 0, on_the_way=False)
        if wire.kind == "string":
            kind = NAMES.get((cls.__name__, name), wire.entity or TEXT)
            return self._name(kind, at) if default is not None or wire.entity else None
        if wire.kind == "uuid" and name == "topic_id" and not self._is_named(cls):
            return self.known.ids[at] if at < len(self.known.ids) else UUID(int=at + 1)
        return at if name in NUMBERED and self.deep else default

    def _is_named(self, cls: type) -> bool:
        return any(wire.entity == TOPIC and self.version in wire.versions for _, wire, _ in wires(cls))

    def _array(self, cls: type, name: str, wire: Wire, is_first: bool, on_the_way: bool, at: int) -> tuple[Any, ...]:
        element, number = wire.element, 1
        holds_more = isinstance(element, type) and any(_arrays(element, self.version))
        top = hasattr(cls, "INFO")
        if top and not is_first:
            return ()
        if (top and not (self.deep and holds_more)) or (on_the_way and is_first and not top):
            number = self.size.number
        if isinstance(element, Wire):
            kind = NAMES.get((cls.__name__, name), element.entity or TEXT)
            return tuple(self._name(kind, n) if element.kind == "string" else n for n in range(number))
        assert isinstance(element, type)
        return tuple(
            self._structure(element, n if number > 1 else at, on_the_way and (top or number == 1))
            for n in range(number)
        )

    def _name(self, kind: str, at: int) -> str:
        known = self._known.get(kind, ())
        if at < len(known):
            return known[at]
        return f"n{at:05d}".ljust(min(6 + self.size.pad, LONGEST.get(kind, LONGEST[TEXT])), "x")


def _produce(version: int, known: Known, room: int) -> ProduceRequest:
    """Batches as large as a topic takes, one for each partition of the sink; what does not fit is left out."""
    each = min(_BATCH_BYTES, (room - 100) // known.sink_partitions)
    records = batch(version, max(each, 200) - 150)
    partitions = min(known.sink_partitions, (room - 100) // (len(records) + 12))
    data = tuple(PartitionProduceData(index, records) for index in range(partitions))
    return ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData(known.sink, data),))


def batch(version: int, size: int, **producer: int) -> bytes:
    """Records of about `size` bytes, in the format that this version of Produce brings."""
    value = bytes(size)
    if version >= 3:
        return bytes(build_batch([Record(None, value)], now_ms=NOW_MS, **producer))
    magic = 1 if version == 2 else 0
    return bytes(write_message(magic, 0, NOW_MS if magic else -1, None, value, 0))
