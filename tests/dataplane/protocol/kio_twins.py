"""Our messages as `kio` would build them. kio has one class per message and version; fields pair up by name.

kio is stricter than the wire in places: error codes are an enum, some milliseconds are timedeltas, some datetimes.
`narrow` says which values both sides can hold.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import types
import typing
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.index import KioIndexError, load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.constants import EntityType

from dataplane.protocol.schema import NO_UUID, message_info, wires
from tests.dataplane.protocol.strategies import Narrow

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in ErrorCode]),
    "timedelta_i64": st.integers(-(2**40), 2**40),
    "datetime_i64": st.integers(0, 2**32).map(lambda seconds: seconds * 1000),
}
_STANDALONE = {
    "RequestHeader": ("request_header", EntityType.header),
    "ResponseHeader": ("response_header", EntityType.header),
    "ConsumerProtocolSubscription": ("consumer_protocol_subscription", EntityType.data),
    "ConsumerProtocolAssignment": ("consumer_protocol_assignment", EntityType.data),
}


@cache
def twin(cls: type, version: int) -> type | None:
    """kio's class of one of our messages, None where it has none."""
    key = message_info(cls).api_key
    try:
        if key is None:
            name, kind = _STANDALONE[cls.__name__]
            return load_entity_schema(name, version, kind)
        return (load_request_schema if cls.__name__.endswith("Request") else load_response_schema)(key, version)
    except (KioIndexError, KeyError):
        return None


def kio_bytes(message: Any, version: int) -> bytes:
    """What kio writes for a message of ours."""
    theirs = twin(type(message), version)
    assert theirs is not None
    with io.BytesIO() as out:
        entity_writer(theirs)(out, _convert(message, theirs, version))
        return out.getvalue()


def narrow(cls: type, version: int) -> Narrow:
    """For `strategies.messages`: what kio can hold of the fields of this message and its parts."""
    theirs = twin(cls, version)
    assert theirs is not None
    known = dict(_known(cls, theirs, version))
    return lambda part, name: known.get((part, name))


def _known(cls: type, theirs: type, version: int) -> typing.Iterator[tuple[tuple[type, str], st.SearchStrategy[Any]]]:
    for name, wire, _ in wires(cls):
        if version in wire.versions or version in wire.tagged:
            field = _their_field(theirs, name)
            strategy = _KNOWN.get(field.metadata.get("kafka_type", ""))
            if strategy is not None:
                yield (cls, name), (st.lists(strategy, max_size=2).map(tuple) if wire.kind == "array" else strategy)
            if isinstance(wire.element, type):
                yield from _known(wire.element, _their_part(field), version)


@cache
def _their_field(theirs: type, name: str) -> dataclasses.Field[Any]:
    by_name = {field.name: field for field in dataclasses.fields(theirs)}
    for candidate in (name, name.removesuffix("_ms")):  # kio gives times no unit
        if candidate in by_name:
            return by_name[candidate]
    raise LookupError(f"{theirs.__module__}.{theirs.__name__} has no {name}")


def _their_part(field: dataclasses.Field[Any]) -> type:
    """The structure in a field's type: X, X | None, tuple[X, ...], tuple[X, ...] | None."""
    kind: Any = field.type
    while not isinstance(kind, type) or isinstance(kind, types.GenericAlias):
        kind = next(a for a in typing.get_args(kind) if a not in (None, type(None), ...))
    return kind


def _convert(message: Any, theirs: type, version: int) -> Any:
    arguments = {}
    for name, wire, _ in wires(type(message)):
        if version in wire.versions or version in wire.tagged:
            field = _their_field(theirs, name)
            value = getattr(message, name)
            if value is not None and isinstance(wire.element, type):
                part = _their_part(field)
                value = (
                    _convert(value, part, version)
                    if wire.kind == "struct"
                    else tuple(_convert(item, part, version) for item in value)
                )
            arguments[field.name] = _primitive(value, field.metadata.get("kafka_type", ""))
    return theirs(**arguments)


def _primitive(value: Any, kafka_type: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_primitive(item, kafka_type) for item in value)
    if kafka_type == "error_code":
        return ErrorCode(value)
    if kafka_type == "uuid":
        return None if value == NO_UUID else value
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        return dt.timedelta(milliseconds=value)
    if kafka_type == "datetime_i64":
        return _EPOCH + dt.timedelta(milliseconds=value)
    return value
