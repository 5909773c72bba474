"""UTC hours: a number since 1970 for arithmetic, "2026-11-21T09:00:00Z" for people and contracts. Pure."""

from __future__ import annotations

HOUR_MS = 3_600_000


def hour_of(wall_ms: int) -> int:
    """The hour that a moment lies in."""
    return wall_ms // HOUR_MS


def hour_text(hour: int) -> str:
    """The hour's beginning."""
    days, hour_of_day = divmod(hour, 24)
    year, month, day = _date(days)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour_of_day:02d}:00:00Z"


def _date(days: int) -> tuple[int, int, int]:
    """The Gregorian date so many days after 1970-01-01.

    Years are taken to begin on 1 March, so that the leap day is the last of its year, and counted in eras of 400.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153  # 0 is March
    day = day_of_year - (153 * month + 2) // 5 + 1
    january_or_february = month >= 10
    return era * 400 + year + january_or_february, month - 9 if january_or_february else month + 3, day
