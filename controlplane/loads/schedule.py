"""When a load runs next. Pure; moments are aware datetimes.

A load with a schedule runs every so many minutes, counted from when it was given that schedule. What was missed while nobody ran
loads is run once. After a run in vain it is tried again after a minute, two, four, and so on up to a day: at first sooner than
the schedule says, and in the end later, for each try costs a start of Spark.
"""

from __future__ import annotations

from datetime import datetime, timedelta

LEAST_MINUTES, MOST_MINUTES = 15, 7 * 24 * 60
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(days=1)
_MOST_DOUBLED = 20


def first(every_minutes: int | None, now: datetime) -> datetime | None:
    """Of a load that is set up or changed now: at once; None: only when it is asked for."""
    return None if every_minutes is None else now


def after(every_minutes: int | None, since: datetime, now: datetime, failures: int) -> datetime | None:
    """When it is to run again. `since`: when it was given its schedule. `failures`: in a row, up to now."""
    if every_minutes is None:
        return None
    every = timedelta(minutes=every_minutes)
    pause = timedelta(0)
    if failures:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(failures - 1, _MOST_DOUBLED)))
    if pause < every:
        regular = since + ((now - since) // every + 1) * every
        return min(regular, now + pause) if failures else regular
    return since + ((now + pause - since) // every + 1) * every
