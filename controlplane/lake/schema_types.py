"""Types that a table's schema may have, in Spark's JSON. Pure.

Spark's own reader of that JSON is not for what somebody else has written: it takes user-defined types, for which it imports the
module that they name and unpickles what they carry. So nothing goes there that was not built here, from a short list of names.
Metadata, in which Delta keeps defaults and generated columns, is left out.
"""

from __future__ import annotations

import re
from typing import Any

from controlplane.lake.errors import SchemaError

SIMPLE = frozenset(
    ("binary", "boolean", "byte", "date", "double", "float", "integer", "long", "short", "string", "timestamp")
)  # fmt: skip
DEEPEST, MOST_FIELDS, LONGEST_NAME = 20, 2000, 255
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)", re.ASCII)


def can_be_named(name: str) -> bool:
    """Whether a field may have this name."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def checked(found: object) -> dict[str, Any]:
    """A struct of these types and nothing else of what was there. Raises SchemaError."""
    left = [MOST_FIELDS]
    made = _type(found, DEEPEST, left)
    if not isinstance(made, dict) or made["type"] != "struct":
        raise SchemaError("the schema must be a struct")
    return made


def _type(found: object, deep: int, left: list[int]) -> str | dict[str, Any]:
    if isinstance(found, str):
        return _simple(found)
    if not isinstance(found, dict) or not deep:
        raise SchemaError(f"a type in the schema must be a name or an object, {DEEPEST} deep at most")
    kind = found.get("type")
    if kind == "struct":
        fields = found.get("fields")
        if not isinstance(fields, list):
            raise SchemaError("a struct in the schema must have a list of fields")
        return {"type": "struct", "fields": [_field(each, deep - 1, left) for each in fields]}
    if kind == "array":
        element = _type(found.get("elementType"), deep - 1, left)
        return {"type": "array", "elementType": element, "containsNull": found.get("containsNull") is not False}
    if kind == "map":
        key, value = (_type(found.get(name), deep - 1, left) for name in ("keyType", "valueType"))
        is_null = found.get("valueContainsNull") is not False
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": is_null}
    raise SchemaError("the schema may have structs, arrays and maps, and simple types within")


def _field(found: object, deep: int, left: list[int]) -> dict[str, Any]:
    left[0] -= 1
    if left[0] < 0:
        raise SchemaError(f"the schema may have {MOST_FIELDS} fields")
    name = found.get("name") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(name, str) or not can_be_named(name):
        raise SchemaError(
            f"each field of the schema must have a name of 1 to {LONGEST_NAME} characters that can be printed"
        )
    is_null = found.get("nullable") is not False
    return {"name": name, "type": _type(found.get("type"), deep, left), "nullable": is_null, "metadata": {}}


def _simple(name: str) -> str:
    decimal = _DECIMAL.fullmatch(name)
    if name not in SIMPLE and not (decimal and 0 < int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1])):
        raise SchemaError(f"{name[:50]!r} in the schema is no type that is known here")
    return name
