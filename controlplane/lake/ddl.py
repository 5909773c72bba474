"""A schema in Spark's DDL, as Spark's JSON has it: `id BIGINT, tags ARRAY<STRING>`. Pure.

Read here so that a schema is judged when somebody sets up a load, and not by Spark after its start. Only what a table of a
load can have is known: names with backquotes or, of ASCII, without; a colon behind them or none; `NOT NULL`; `COMMENT '…'`;
and types of `schema_types`. Spark knows more (comments, collations, types that no table of a load takes): that is refused.

::

    fields  field, field, …
    field   name [:] type [NOT NULL] [COMMENT 'text']
    type    BIGINT | DECIMAL(10, 2) | ARRAY<type> | MAP<STRING, type> | STRUCT<fields>
"""

from __future__ import annotations

import json
import re
from typing import Any

from controlplane.lake.errors import SchemaError
from controlplane.lake.schema_types import DEEPEST

NAMES = {
    "bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte", "real": "float", "dec": "decimal",
    "numeric": "decimal",
}  # fmt: skip
"""Of types that Spark's DDL calls otherwise than its JSON."""
ALLOWED = (
    "names with types of BIGINT, INT, SMALLINT, TINYINT, DOUBLE, FLOAT, DECIMAL(p,s), BOOLEAN, STRING, BINARY, DATE, TIMESTAMP, "
    "ARRAY<…>, MAP<STRING,…> and STRUCT<…>, such as id BIGINT, customer STRING; or the same in Spark's JSON"
)
_TOKEN = re.compile(
    r"\s*(?:`((?:[^`]|``)*)`|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|([A-Za-z0-9_]+)|([<>(),:]))", re.DOTALL
)
QUOTED, TEXT, WORD, SIGN = 1, 2, 3, 4
_END = (0, "")


def read(text: str) -> Any:
    """DDL or JSON, as Spark's JSON; what types it has is for `schema_types` to judge. Raises SchemaError."""
    text = text.strip()
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise SchemaError("the schema begins with { and is not JSON") from None
    return _Reader(_tokens(text)).whole()


def _tokens(text: str) -> list[tuple[int, str]]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SchemaError(f"{text[at : at + 20]!r} in the schema cannot be read")
        kind = match.lastindex or SIGN
        found.append((kind, match[kind].replace("``", "`") if kind == QUOTED else match[kind]))
        at = match.end()
    return found


class _Reader:
    """From left to right, a token at a time."""

    def __init__(self, tokens: list[tuple[int, str]]) -> None:
        self._tokens, self._at = tokens, 0

    def whole(self) -> dict[str, Any]:
        """All of it."""
        is_struct = self._took("struct", "<")  # with its name, or the fields alone
        made = self._fields(DEEPEST)
        if is_struct:
            self._must(">")
        if self._next != _END:
            raise self._wrong()
        return {"type": "struct", "fields": made}

    @property
    def _next(self) -> tuple[int, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _took(self, *words: str) -> bool:
        """Whether they stand here; they are behind us then."""
        here = [text.lower() for kind, text in self._tokens[self._at : self._at + len(words)] if kind in (WORD, SIGN)]
        is_here = here == [word.lower() for word in words]
        self._at += len(words) if is_here else 0
        return is_here

    def _must(self, sign: str) -> None:
        if not self._took(sign):
            raise self._wrong()

    def _one(self, *kinds: int) -> str:
        kind, text = self._next
        if kind not in kinds:
            raise self._wrong()
        self._at += 1
        return text

    def _wrong(self) -> SchemaError:
        shown = self._next[1][:50]
        return SchemaError(f"{shown!r} in the schema makes no sense there" if shown else "the schema ends too early")

    def _fields(self, deep: int) -> list[dict[str, Any]]:
        found = [self._field(deep)]
        while self._took(","):
            found.append(self._field(deep))
        return found

    def _field(self, deep: int) -> dict[str, Any]:
        name = self._one(QUOTED, WORD)
        self._took(":")
        kind = self._type(deep - 1)
        is_null = not self._took("not", "null")
        if self._took("comment"):
            self._one(TEXT)
        return {"name": name, "type": kind, "nullable": is_null, "metadata": {}}

    def _type(self, deep: int) -> Any:
        if deep < 0:
            raise SchemaError(f"a type in the schema may be {DEEPEST} deep at most")
        name = self._one(WORD).lower()
        name = NAMES.get(name, name)
        if name == "decimal":
            return self._decimal()
        if name not in ("array", "map", "struct"):
            return name
        self._must("<")
        made: dict[str, Any] = {"type": name}
        if name == "array":
            made["elementType"] = self._type(deep - 1)
        elif name == "map":
            made["keyType"] = self._type(deep - 1)
            self._must(",")
            made["valueType"] = self._type(deep - 1)
        else:
            made["fields"] = [] if self._next == (SIGN, ">") else self._fields(deep)
        self._must(">")
        return made

    def _decimal(self) -> str:
        if not self._took("("):
            return "decimal(10,0)"
        precision, scale = self._one(WORD), "0"
        if self._took(","):
            scale = self._one(WORD)
        self._must(")")
        return f"decimal({precision},{scale})"
