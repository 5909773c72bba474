"""Numbers, moments and names as text for people. Pure. JSON output does not come this way."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DASH = "-"
"""What is not known, or does not apply."""
STEP = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SPANS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_SPAN = re.compile(r"([0-9]{1,9})([smhd])")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT_ENDINGS = ("_at", "_until", "_to")
_MOMENT_NAMES = ("hour", "time", "since", "first", "last", "from", "to", "at")


def plain(text: object) -> str:
    """On one line, and without what would steer a terminal: names of groups may hold anything."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


def in_bytes(count: float) -> str:
    """``1.7 MiB``."""
    amount, unit = float(count), 0
    while abs(amount) >= STEP and unit < len(UNITS) - 1:
        amount, unit = amount / STEP, unit + 1
    digits = 0 if unit == 0 or abs(amount) >= 100 else 1 if abs(amount) >= 10 else 2
    return f"{_trimmed(f'{amount:.{digits}f}')} {UNITS[unit]}"


def moment(text: str) -> str:
    """``2026-11-21 09:00:07Z`` from RFC 3339, in UTC; as it is where it is no moment, or has no zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return plain(text)
    return plain(text) if found.tzinfo is None else f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def since(text: str, now: datetime) -> str:
    """What REST is asked for ``-1h``, ``-30m``, ``-7d``; anything else as it was typed."""
    if not text.startswith("-"):
        return text
    try:
        return (now - span(text[1:])).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return text


def span(text: str) -> timedelta:
    """``90s``, ``30m``, ``4h``, ``7d``. Raises ValueError, whose text says what is taken; OverflowError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text}: must be a length such as 30m, 4h or 7d")
    return int(found[1]) * _SPANS[found[2]]


def ms_of(text: str, now: datetime) -> int:
    """What a moment is in milliseconds since 1970: ago (``-1h``), a date or RFC 3339, in UTC where no zone is said.

    Raises ValueError, whose text says what is taken.
    """
    try:
        found = datetime.fromisoformat(since(text, now))
    except ValueError as error:
        raise ValueError(f"{text}: must be ago, such as -1h, or a date or RFC 3339") from error
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def later(text: str, now: datetime) -> str:
    """RFC 3339 of the moment that is this long (``4h``) from now. Raises ValueError, whose text says what is taken."""
    try:
        return (now + span(text)).isoformat(timespec="seconds")
    except OverflowError as error:
        raise ValueError(f"{text}: is too long") from error


def number(value: float) -> str:
    """5 for 5.0, and no more than 6 decimals."""
    return str(value) if isinstance(value, int) else _trimmed(f"{value:.6f}")


def cell(name: str, value: object) -> str:
    """A member of a document by its name: bytes with a unit, moments to the second, lists on one line."""
    if value is None or value == "":
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _amount(name, value)
    if isinstance(value, str):
        return moment(value) if _is_moment(name) else plain(value)
    if isinstance(value, dict):
        return _joined(f"{plain(key)}={cell(str(key), inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return _joined(cell(name, inner) for inner in value)
    return plain(value)


def changes_text(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Two sides of a change: ``partitions: 3 -> 6; config.retention.ms: not set -> 1000``. What has one side alone says which."""
    was, now = _flat(before or {}), _flat(after or {})
    if before is None or after is None:
        said = "; ".join(f"{plain(name)}: {_value(name, value)}" for name, value in (was | now).items())
        return said and f"{'made' if before is None else 'was'} {said}"
    names = dict.fromkeys([*was, *now])
    pairs = ((name, _value(name, was.get(name)), _value(name, now.get(name))) for name in names)
    return "; ".join(f"{plain(name)}: {old} -> {new}" for name, old, new in pairs)


def _value(path: str, value: object) -> str:
    """Not set and empty are two things: a whitelist that is not set lets in whoever may connect."""
    if value is None:
        return "not set"
    return "empty" if value in ("", [], {}) else cell(path.rpartition(".")[2], value)


def _flat(side: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in side.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) and value else {f"{prefix}{name}": value}
    return found


def _amount(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return in_bytes(value)
    if name.endswith(("_bytes_per_s", "_bytes_per_s_max")):
        return f"{in_bytes(value)}/s"
    if name.endswith("_bytes_max"):
        return in_bytes(value)
    if name.endswith("_byte_hours"):
        return f"{in_bytes(value)} h"
    return number(value)


def _is_moment(name: str) -> bool:
    return name in _MOMENT_NAMES or name.endswith(_MOMENT_ENDINGS)


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(texts) or DASH


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
