"""Values as cty puts them into msgpack and JSON, by the types of attributes. Pure.

A number with a fraction is text there: an answer that differs from what was planned is an error of the provider, and a float of
5.1 does. What is known of what is not known yet (cty's refinements) is passed over.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgpack

from controlplane.terraform.values import UNKNOWN, State, number

if TYPE_CHECKING:
    from controlplane.terraform.schema import Attribute, Cty

_UNKNOWN_CODE, _REFINED_CODE = 0, 12


def from_msgpack(data: bytes, attributes: tuple[Attribute, ...]) -> State | None:
    """An object of these attributes; None: there is none."""
    if not data:
        return None
    raw = msgpack.unpackb(data, ext_hook=_ext, strict_map_key=False)
    return None if raw is None else _object(raw, attributes)


def from_json(data: bytes, attributes: tuple[Attribute, ...]) -> State | None:
    """The same of a state file. Attributes that it does not have are null, and those that are no more are left out."""
    raw = json.loads(data, parse_float=Decimal)
    return None if raw is None else _object(raw, attributes)


def to_msgpack(state: State | None, attributes: tuple[Attribute, ...]) -> bytes:
    """As Terraform reads it."""
    packed: bytes = msgpack.packb(None if state is None else _packed_object(state, attributes))
    return packed


def _ext(code: int, data: bytes) -> Any:
    if code in (_UNKNOWN_CODE, _REFINED_CODE):
        return UNKNOWN
    return msgpack.ExtType(code, data)


def _object(raw: dict[str, Any], attributes: tuple[Attribute, ...]) -> State:
    return {each.name: _value(raw.get(each.name), each.type, each.nested) for each in attributes}


def _value(raw: Any, kind: Cty, nested: tuple[Attribute, ...]) -> Any:
    if raw is None or raw is UNKNOWN:
        return raw
    if nested:
        return _object(raw, nested)
    if kind == "number":
        return number(raw)
    if isinstance(kind, tuple):
        name, inner = kind
        if name == "set":
            return frozenset(_value(each, inner, ()) for each in raw)
        return {key: _value(each, inner, ()) for key, each in raw.items()}
    return raw


def _packed_object(state: State, attributes: tuple[Attribute, ...]) -> dict[str, Any]:
    return {each.name: _packed(state.get(each.name), each.nested) for each in attributes}


def _packed(value: Any, nested: tuple[Attribute, ...] = ()) -> Any:
    if value is UNKNOWN:
        return msgpack.ExtType(_UNKNOWN_CODE, b"\0")
    if isinstance(value, dict):
        return _packed_object(value, nested) if nested else {key: _packed(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return [_packed(each) for each in sorted(value, key=str)]
    return format(value, "f") if isinstance(value, Decimal) else value
