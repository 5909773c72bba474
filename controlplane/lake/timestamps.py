"""A record's milliseconds, as Kafka has them, from the timestamp that Spark's Kafka source makes of them.

The source goes by `java.sql.Timestamp`, whose calendar is Julian before 15 October 1582 and knows local mean time before 1900.
It keeps the date and time of day that this calendar shows, and the moment becomes another one: that of a record with .NET's
smallest time, 1 January 0001, is two days late. Here the moment is found again, by the Julian day number of the date, in UTC.

Of two kinds of records it cannot be found, and the load fails with their offset: of those before 1900 in a JVM with another time
zone; and of those on 29 February of the Julian years 100, 200, 300, 500, …, 1500, which the source moves to the first of March,
where those of that day are as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

if TYPE_CHECKING:
    from pyspark.sql import Column

DAY_MS = 86_400_000
GREGORIAN_SINCE_MS = -12_219_292_800_000
"""15 October 1582. What the source says to be before is before, and nothing becomes a day of the ten that were left out."""
SAME_SINCE_MS = -2_208_988_800_000
"""1900: from here on all time zones show the same in both calendars."""
LARGEST_MS = (2**63 - 1) // 1000
"""Spark counts microseconds in eight bytes: that is in the year 294,247."""
UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Greenwich")
JAVA_OPTIONS = ("-Duser.timezone=UTC",)
"""Of a JVM in which moments before 1900 can be found again."""
_EPOCH_DAY = 2_440_588
_SAID = re.compile(r"(the timestamp of offset \d+ in partition \d+ [^.]*)\.")
_OVERFLOW = "long overflow"


def kafka_ms(timestamp: Column) -> Column:
    """Of the source's column `timestamp`, beside its columns `partition` and `offset`."""
    shown = F.unix_millis(timestamp)
    zone = F.call_function("java_method", F.lit("java.time.ZoneId"), F.lit("systemDefault"))
    before = F.when(~zone.isin(*UTC), _refused("before 1900 and the time zone of Spark's JVM is not UTC"))
    before = before.when(shown >= GREGORIAN_SINCE_MS, shown)
    before = before.when(
        _is_two_days(timestamp), _refused("of a day that Spark's calendar does not tell from the next one")
    )
    return F.when(shown >= SAME_SINCE_MS, shown).otherwise(before.otherwise(_julian_ms(timestamp, shown)))


def why(error: Exception) -> str:
    """What is wrong with a record's timestamp, if that is why Spark has failed; empty: it is not."""
    said = _SAID.search(str(error))
    return said[1] if said else ""


def is_too_large(error: Exception) -> bool:
    """Whether Spark has failed at a timestamp beyond LARGEST_MS, or as far back."""
    return _OVERFLOW in str(error)


def _refused(because: str) -> Column:
    """Fails the task."""
    said = F.format_string(
        f"the timestamp of offset %d in partition %d is {because}.", F.col("offset"), F.col("partition")
    )
    return F.raise_error(said).cast("bigint")


def _is_two_days(timestamp: Column) -> Column:
    year = F.year(timestamp)
    is_first_of_march = (F.month(timestamp) == 3) & (F.dayofmonth(timestamp) == 1)  # March
    return is_first_of_march & (F.pmod(year, F.lit(100)) == 0) & (F.pmod(year, F.lit(400)) != 0)


def _julian_ms(timestamp: Column, shown: Column) -> Column:
    """Of the moment at which the Julian calendar shows this. Years begin in March, so that leap days are at their ends."""
    months = F.pmod(F.month(timestamp) + 9, F.lit(12))
    years = F.year(timestamp).cast("bigint") - F.when(F.month(timestamp) <= 2, 1).otherwise(0)  # February
    leap_days = F.floor(years / 4)
    # 1 March of the year 0 is the Julian day 1,721,118; 153 days are the five months from March to July, and so on.
    days = F.dayofmonth(timestamp) - 1 + F.floor((153 * months + 2) / 5) + 365 * years + leap_days + 1_721_118
    return (days - _EPOCH_DAY) * DAY_MS + F.pmod(shown, F.lit(DAY_MS))
