"""Moments as text that sorts as time does: "2026-11-21T09:00:03.123Z"."""

from __future__ import annotations

from datetime import UTC, datetime


def text_of(moment: datetime) -> str:
    """To the millisecond."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def text_of_ms(milliseconds: int) -> str:
    """Of milliseconds since 1970."""
    return text_of(datetime.fromtimestamp(milliseconds / 1000, UTC))
