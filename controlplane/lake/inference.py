"""Which schema JSON values have, judged from some of them. Pure; the answer is a type in Spark's own JSON.

Done once, at the first load, and written into the table: what comes later is read by the same schema, and what does not
fit is kept with a reason. So a doubtful member becomes a string, which holds any JSON: a member of two kinds, one that is
always null, an empty object, what is nested deeper than twenty levels. Numbers are `long` while all are whole and fit,
else `double`.

Members whose name Parquet columns cannot have (spaces, `,;{}()=`), or that Spark does not tell from another one (case), are left
out of `data`; as everything else they are in `value`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from controlplane.lake.schema_types import DEEPEST, MOST_FIELDS, alike, can_be_named

Type = str | dict[str, Any]
"""Spark's JSON: the name of a simple type, or the description of a struct or array."""

MOST_MEMBERS = 1000
"""A map whose keys are data (users, dates) would grow a column for each: it becomes a string. Of the value itself the first
so many are taken."""
MOST_LEVELS = DEEPEST - 4
"""Of the value's members; a type around all of them, and one within the last, are levels as well."""


def infer(values: Iterable[bytes | None]) -> dict[str, Any]:
    """A struct for the objects among the values; without members, if none is one."""
    found: Type | None = None
    for value in values:
        document = _parsed(value)
        if isinstance(document, dict):
            found = _merged(found, _type_of(document))
    settled = _settled(found, is_top=True)
    if not isinstance(settled, dict):
        return _struct({})
    if _size(settled) > MOST_FIELDS:  # of all levels together: then only the first is told apart
        settled = _struct(
            {name: kind if isinstance(kind, str) else "string" for name, kind in _members(settled).items()}
        )
    return settled


def _size(kind: Type | None) -> int:
    """Fields of all levels."""
    if not isinstance(kind, dict):
        return 0
    if kind["type"] == "array":
        return _size(kind["elementType"])
    return sum(1 + _size(member) for member in _members(kind).values())


def _parsed(value: bytes | None) -> object:
    try:
        return json.loads(value.decode()) if value else None
    except (ValueError, RecursionError):
        return None


def _type_of(document: object, depth: int = 0) -> Type | None:
    """None: null, which says nothing."""
    if depth > MOST_LEVELS and isinstance(document, (dict, list)):
        return "string"
    match document:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "long" if -(2**63) <= document < 2**63 else "double"
        case float():
            return "double"
        case dict():
            members = {name: _type_of(member, depth + 1) for name, member in document.items() if can_be_named(name)}
            return _struct(members)
        case list():
            element: Type | None = None
            for member in document:
                element = _merged(element, _type_of(member, depth + 1))
            return {"type": "array", "elementType": element, "containsNull": True}
        case _:
            return "string"


def _merged(one: Type | None, other: Type | None) -> Type | None:
    if one is None or other is None or one == other:
        return other if one is None else one
    if {"long", "double"} == {one if isinstance(one, str) else "", other if isinstance(other, str) else ""}:
        return "double"
    if isinstance(one, dict) and isinstance(other, dict) and one["type"] == other["type"]:
        if one["type"] == "array":
            return {**one, "elementType": _merged(one["elementType"], other["elementType"])}
        members = _members(one)
        for name, kind in _members(other).items():
            members[name] = _merged(members.get(name), kind)
        return _struct(members)
    return "string"


def _members(struct: dict[str, Any]) -> dict[str, Type | None]:
    return {each["name"]: each["type"] for each in struct["fields"]}


def _struct(members: dict[str, Type | None]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in members.items()]
    return {"type": "struct", "fields": fields}


def _settled(kind: Type | None, *, is_top: bool) -> Type:
    """A type that a table can have: what nothing is known of is a string."""
    if not isinstance(kind, dict):
        return kind or "string"
    if kind["type"] == "array":
        return {**kind, "elementType": _settled(kind["elementType"], is_top=False)}
    members: dict[str, Type | None] = {}
    taken: set[str] = set()
    for name, member in _members(kind).items():
        if taken.isdisjoint(alike(name)) and not (is_top and len(members) == MOST_MEMBERS):
            taken |= alike(name)
            members[name] = _settled(member, is_top=False)
    if not is_top and not 0 < len(members) <= MOST_MEMBERS:
        return "string"
    return _struct(members)
