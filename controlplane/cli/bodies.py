"""What was typed, as JSON. Pure, but for files that are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.cli.errors import Misused
from controlplane.cli.values import later, ms_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

NULL = "null"
"""Typed where an API takes null: "no limit", "its default"."""


def role_typed(text: str | None, *, names: tuple[str, ...]) -> tuple[str | None, str | None]:
    """One of `names`, or behind it a role of the organisation's own by its id; what it is not is None. Raises Misused."""
    if text is None:
        return None, None
    if text.startswith("rol-"):
        return None, text
    if text not in names:
        raise Misused(f"{text} is no role: there are {', '.join(names)}, and those of your own by id")
    return text, None


def ms_typed(text: str | None, now: datetime) -> int | None:
    """Milliseconds since 1970 of the moment that was typed, as `values.ms_of` reads it; None: none was. Raises Misused."""
    try:
        return None if text is None else ms_of(text, now)
    except ValueError as error:
        raise Misused(str(error)) from error


def until_typed(until: str | None, length: str | None, now: datetime, *, ends: bool) -> str | None:
    """RFC 3339 of the end of a silence, from `--until` or `--for`; None: `--end`. One of the three is said. Raises Misused."""
    if (until is not None) + (length is not None) + ends != 1:
        raise Misused("say until when by --until or --for, or --end")
    try:
        return until if length is None else later(length, now)
    except ValueError as error:
        raise Misused(str(error)) from error


def said(**members: object) -> dict[str, Any]:
    """The members that were typed: an option that was left out is left out of the request, too."""
    return {name: value for name, value in members.items() if value is not None}


def settings(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """``retention.ms=60000`` for each. Raises Misused."""
    if not pairs:
        return None
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Misused(f"{pair}: must be like retention.ms=60000")
        found[name] = value
    return found


def or_null(text: str | None, *, whole: bool = False) -> float | None:
    """The number that was typed, or None for the word "null". Raises Misused."""
    if text is None or text == NULL:
        return None
    try:
        return int(text) if whole else float(text)
    except ValueError as error:
        raise Misused(f"{text}: must be a number, or {NULL}") from error


def nullable(**texts: str | None) -> dict[str, float | None]:
    """Numbers that may be null, of the options that were typed at all. Raises Misused."""
    return {name: or_null(text) for name, text in texts.items() if text is not None}


def whole_or_null(**texts: str | None) -> dict[str, float | None]:
    """The same for whole numbers. Raises Misused."""
    return {name: or_null(text, whole=True) for name, text in texts.items() if text is not None}


def names_or_each(names: Sequence[str] | None) -> list[str | None] | None:
    """Names, of which "*" is each one that no nearer rule names."""
    return None if names is None else [None if name == "*" else name for name in names]


def file_text(path: Path) -> str:
    """What stands in a file. Raises Misused."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise Misused(f"{path}: {reason}") from error


def file_json(path: Path) -> Any:
    """A JSON document in a file. Raises Misused."""
    try:
        return json.loads(file_text(path))
    except ValueError as error:
        raise Misused(f"{path}: is not JSON: {error}") from error
