"""Maintenance windows: when in a week what disturbs an instance's clients may happen. Pure.

A window is a document: ``{"day": "sunday", "hour_utc": 3, "length_hours": 2}`` is open each Sunday from 03:00 to 05:00 UTC. One
that is open past midnight, or past the end of the week, goes on there. The end is no part of it. An instance without one
(None) is never held up.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MEMBERS = ("day", "hour_utc", "length_hours")
LATEST_HOUR, LONGEST_HOURS = 23, 24
WEEK = timedelta(days=7)


def window_problem(value: object) -> str | None:
    """What is wrong with a window; None: nothing."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != set(MEMBERS):
        return f"must be null, or have {', '.join(MEMBERS)} and nothing else"
    if value["day"] not in DAYS:
        return f"must have a day of {', '.join(DAYS)}"
    if not _is_whole(value["hour_utc"], 0, LATEST_HOUR):
        return f"must begin at a whole hour of 0 to {LATEST_HOUR}, in UTC"
    if not _is_whole(value["length_hours"], 1, LONGEST_HOURS):
        return f"must be open for 1 to {LONGEST_HOURS} whole hours"
    return None


def begins_next(window: Mapping[str, Any], after: datetime) -> datetime:
    """When it opens for the first time after a moment in UTC; one that is open then has begun already."""
    return _begun_last(window, after) + WEEK


def is_open(window: Mapping[str, Any] | None, at: datetime) -> bool:
    """Whether what disturbs clients may happen at a moment in UTC."""
    return window is None or at < _begun_last(window, at) + timedelta(hours=window["length_hours"])


def hours_text(window: Mapping[str, Any] | None) -> str:
    """``03:00-05:00``, or nothing."""
    if window is None:
        return ""
    ends = (window["hour_utc"] + window["length_hours"]) % 24
    return f"{window['hour_utc']:02}:00-{ends:02}:00"


def _begun_last(window: Mapping[str, Any], at: datetime) -> datetime:
    """The newest beginning that is not after it."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    begins = midnight + timedelta(days=DAYS.index(window["day"]) - at.weekday(), hours=window["hour_utc"])
    return begins if begins <= at else begins - WEEK


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
