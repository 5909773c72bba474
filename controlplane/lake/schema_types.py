"""Types that a table's schema may have, in Spark's JSON. Pure.

Spark's own reader of that JSON is not for what somebody else has written: it takes user-defined types, for which it imports the
module that they name and unpickles what they carry. So nothing goes there that was not built here, from a short list of names.
Metadata, in which Delta keeps defaults and generated columns, is left out.

What Spark takes as a type and no table of a load can have is refused as well: maps with other keys than strings, which JSON does
not know; structs without fields, which Parquet does not know; two fields of one struct that Spark does not tell apart; names with
signs that Delta does not take.
"""

from __future__ import annotations

import re
from typing import Any

from controlplane.lake.errors import SchemaError

SIMPLE = frozenset(
    ("binary", "boolean", "byte", "date", "double", "float", "integer", "long", "short", "string", "timestamp")
)  # fmt: skip
DEEPEST, MOST_FIELDS, LONGEST_NAME = 20, 2000, 255
UNWRITABLE = " ,;{}()\n\t="
"""Signs that Delta takes in no column's name."""
LONGEST_SHOWN = 100
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)", re.ASCII)


def can_be_named(name: str) -> bool:
    """Whether a field may have this name."""
    return _is_printable(name) and not set(name).intersection(UNWRITABLE)


def _is_printable(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def alike(name: str) -> set[str]:
    """Two names that have one of these in common are one to Spark.

    Delta compares names in small letters; Spark's own look-ups compare sign by sign, each as a capital: there the long s is an s,
    and the i without a dot an i.
    """
    signs = (sign.upper() if len(sign.upper()) == 1 else sign for sign in name)
    return {name.lower(), "".join(sign.lower()[0] for sign in signs)}


def checked(found: object) -> dict[str, Any]:
    """A struct of these types and nothing else of what was there. Raises SchemaError."""
    made = _Reader().type(found, DEEPEST, "")
    if not isinstance(made, dict) or made["type"] != "struct":
        raise SchemaError("the schema must be a struct")
    return made


class _Reader:
    """Of one schema. `at`: names of the fields around, with dots between them; empty: the schema itself."""

    def __init__(self) -> None:
        self._left = MOST_FIELDS

    def type(self, found: object, deep: int, at: str) -> str | dict[str, Any]:
        if isinstance(found, str):
            return _simple(found)
        if not isinstance(found, dict) or not deep:
            raise SchemaError(f"a type in the schema must be a name or an object, {DEEPEST} deep at most")
        kind = found.get("type")
        if kind == "struct":
            return {"type": "struct", "fields": self._fields(found.get("fields"), deep - 1, at)}
        if kind == "array":
            element = self.type(found.get("elementType"), deep - 1, at)
            return {"type": "array", "elementType": element, "containsNull": found.get("containsNull") is not False}
        if kind == "map":
            key, value = (self.type(found.get(name), deep - 1, at) for name in ("keyType", "valueType"))
            if key != "string":
                raise SchemaError(f"the map {_shown(at)} of the schema must have keys of STRING: JSON has no others")
            is_null = found.get("valueContainsNull") is not False
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": is_null}
        raise SchemaError("the schema may have structs, arrays and maps, and simple types within")

    def _fields(self, found: object, deep: int, at: str) -> list[dict[str, Any]]:
        if not isinstance(found, list):
            raise SchemaError("a struct in the schema must have a list of fields")
        if not found:
            if not at:
                raise SchemaError("the schema has no field")
            raise SchemaError(f"the struct {_shown(at)} of the schema must have a field")
        made = [self._field(each, deep, at) for each in found]
        taken: dict[str, str] = {}
        for name in (field["name"] for field in made):
            other = next((taken[each] for each in alike(name) if each in taken), None)
            if other is not None:
                self._refuse_two(_below(at, other), _below(at, name))
            taken |= dict.fromkeys(alike(name), name)
        return made

    @staticmethod
    def _refuse_two(one: str, other: str) -> None:
        if one == other:
            raise SchemaError(f"the schema has the field {_shown(one)} twice")
        raise SchemaError(
            f"the fields {_shown(one)} and {_shown(other)} of the schema are one to Spark: it does not tell case apart"
        )

    def _field(self, found: object, deep: int, at: str) -> dict[str, Any]:
        self._left -= 1
        if self._left < 0:
            raise SchemaError(f"the schema may have {MOST_FIELDS} fields")
        name = found.get("name") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(name, str) or not _is_printable(name):
            raise SchemaError(
                f"each field of the schema must have a name of 1 to {LONGEST_NAME} characters that can be printed"
            )
        if not can_be_named(name):
            raise SchemaError(
                f"the field {_shown(_below(at, name))} of the schema has a space or one of ,;{{}}()= in its name"
            )
        kind = self.type(found.get("type"), deep, _below(at, name))
        return {"name": name, "type": kind, "nullable": found.get("nullable") is not False, "metadata": {}}


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _shown(at: str) -> str:
    return at if len(at) <= LONGEST_SHOWN else f"…{at[-LONGEST_SHOWN:]}"


def _simple(name: str) -> str:
    decimal = _DECIMAL.fullmatch(name)
    if name not in SIMPLE and not (decimal and 0 < int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1])):
        raise SchemaError(f"{name[:50]!r} in the schema is no type that is known here")
    return name
