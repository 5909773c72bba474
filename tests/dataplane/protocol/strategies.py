"""Hypothesis strategies for messages, made from their declarations.

`messages(cls, version)` draws values with every field of that version, nulls where they are allowed, now and then an
array or string that is longer than what one byte of a varint can say. `narrow` lets an oracle that knows fewer values
than the wire (error codes as an enum, say) say which ones it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from dataplane.protocol.api import APIS
from dataplane.protocol.messages import (
    consumer_group_records,
    consumer_protocol,
    group_records,
    headers,
    transaction_records,
)
from dataplane.protocol.schema import Wire, message_info, wires

Narrow = Callable[[type, str], st.SearchStrategy[Any] | None]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LONG = st.integers(127, 300)


def _numbers(kind: str) -> st.SearchStrategy[int]:
    if kind == "uint16":
        return st.integers(0, 65535)
    edge = 2 ** (_BITS[kind] - 1)
    return st.sampled_from([0, 1, -1, edge - 1, -edge]) | st.integers(-edge, edge - 1)


_SHORT_TEXT = st.sampled_from(["", "a", "orders", "tasks.élan-7", "日志", "\N{PARTY POPPER}", "\x00"]) | st.text(
    max_size=5
)
_TEXT = st.one_of(_SHORT_TEXT, _SHORT_TEXT, st.builds(lambda text, n: text * n, st.text(min_size=1, max_size=2), _LONG))
_SHORT_BYTES = st.binary(max_size=6)
_BYTES = st.one_of(_SHORT_BYTES, _SHORT_BYTES, st.builds(lambda data, n: data * n, st.binary(max_size=2), _LONG))

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: _numbers(kind) for kind in (*_BITS, "uint16")},
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES,
    "uuid": st.uuids(),
}


def _array(wire: Wire, version: int, narrow: Narrow | None) -> st.SearchStrategy[Any]:
    if isinstance(wire.element, Wire):
        element = PRIMITIVES[wire.element.kind]
    else:
        assert wire.element is not None
        element = messages(wire.element, version, narrow)
    few = st.lists(element, max_size=2).map(tuple)
    # One element again and again: long for the codec, cheap to draw.
    many = st.builds(lambda item, n: (item,) * n, element, _LONG)
    return st.one_of(few, few, few, few, few, many) if isinstance(wire.element, Wire) else few


def _value(cls: type, name: str, wire: Wire, version: int, narrow: Narrow | None) -> st.SearchStrategy[Any]:
    known = narrow(cls, name) if narrow is not None else None
    if known is not None:
        strategy = known
    elif wire.kind == "array":
        strategy = _array(wire, version, narrow)
    elif wire.kind == "struct":
        assert isinstance(wire.element, type)
        strategy = messages(wire.element, version, narrow)
    else:
        strategy = PRIMITIVES[wire.kind]
    if version in wire.nullable:
        strategy = st.none() | strategy
    if version in wire.tagged:
        default = next(d for n, _, d in wires(cls) if n == name)
        strategy = st.just(default) | strategy
    return strategy


def messages(cls: type, version: int, narrow: Narrow | None = None) -> st.SearchStrategy[Any]:
    """Values of a message or a part of one, as a version can carry them."""
    fields = {
        name: _value(cls, name, wire, version, narrow)
        for name, wire, _ in wires(cls)
        if version in wire.versions or version in wire.tagged
    }
    return st.builds(cls, **fields)


def all_messages() -> Iterator[tuple[type, int]]:
    """Every (message, version) that is declared: requests, answers, headers, records of internal topics."""
    classes = [cls for api in APIS.values() for cls in (api.request, api.response)]
    for module in (headers, group_records, consumer_group_records, transaction_records, consumer_protocol):
        classes += [value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "INFO")]
    for cls in classes:
        versions = message_info(cls).versions
        for version in range(versions.low, versions.high + 1):
            yield cls, version
