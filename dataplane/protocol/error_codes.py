"""Which error codes an answer has: its own, and those of its rows, wherever the declarations have an `error_code`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from dataplane.protocol.schema import wires


class _Plan(NamedTuple):
    """Where codes stand in a structure."""

    has_code: bool
    rows: tuple[tuple[str, bool], ...]  # members that hold structures with codes, and whether they hold many

    @property
    def has_any(self) -> bool:
        return self.has_code or bool(self.rows)


@cache
def _plan(cls: type) -> _Plan:
    found = [(name, wire) for name, wire, _ in wires(cls)]
    rows = tuple(
        (name, wire.kind == "array")
        for name, wire in found
        if wire.kind in ("array", "struct") and isinstance(wire.element, type) and _plan(wire.element).has_any
    )
    return _Plan(any(name == "error_code" for name, _ in found), rows)


def error_codes(message: Any) -> Iterator[int]:
    """All of them, in order, 0 (no error) among them. An answer may have twenty thousand."""
    has_code, rows = _plan(message.__class__)
    if has_code:
        yield message.error_code
    for name, is_array in rows:
        value = getattr(message, name)
        if value is None:
            continue
        for row in value if is_array else (value,):
            yield from error_codes(row)
