"""The job: `python -m controlplane.metering.pipeline.jobs.reconcile`, or spark-submit with this file.

::

    reconcile                                     # whole days that no run has compared yet, and what has come late since
    reconcile --day 2026-11-21                    # a day again; may be repeated
    reconcile --from 2026-05-01T00 --to 2026-06-01T00     # any hours, the last not included
    reconcile --from … --to … --raise             # and put into the database what it lacks

Hours are recomputed from `usage_raw` by SQL that knows nothing of what the stream keeps (recompute.py), and compared with the
database's and with what invoices were computed from. What differs stands in the database (`metering_reconciliation`) and is said
on standard output, a line each. Of whole days the roll-ups `usage_hourly`, `usage_daily` and `usage_instances_hourly` are
written anew, in place of what they had of these days.

`--raise` puts the largest counters of these hours into the database as the stream does: it raises, and lowers nothing. For a
database that was restored from a backup, and for records that an earlier release refused. Late usage of invoiced months becomes
adjustment lines by itself.

The exit status is 0; 1 where the database or Spark refuse; 2 for words that make no sense; 3 where hours were named that the
stream has not read for certain yet; 4 where the run that was named has begun already, or another one is under way; 5 where there
is no `usage_raw`, or it begins later than the hours that were named; 6 where something differs in hours that were named.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.metering.pipeline import raw_table, reconcile_frames, reconcile_tables, runs, session
from controlplane.metering.pipeline.reconcile_tables import MOST_DIFFERENCES, Compared, Found, Reconciled, hour_of
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark import delta
from controlplane.spark.errors import PlainError, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("sluice.reconcile")
JOB, APP = "reconcile", "reconcile"
DONE, FAILED, NOT_YET, TAKEN, NO_TABLE, DIFFERENT = 0, 1, 3, runs.TAKEN, 5, 6
LATE_DAYS = 35
"""So far back records can be late: `__usage` keeps them no longer."""
SLICES = 16
ROLL_UPS = ("usage_hourly", "usage_daily", "usage_instances_hourly")


class NotYetError(PlainError):
    """Hours were named that the stream has not read for certain yet."""


class NoTableError(PlainError):
    """The lake has no `usage_raw`, or none of these hours."""


@dataclass(frozen=True, slots=True)
class Range:
    """Hours [start, end), as usage records write them."""

    start: str
    end: str

    @property
    def days(self) -> list[str]:
        """The days of which it has all hours; empty where it begins or ends within one."""
        if not (self.start.endswith("T00:00:00Z") and self.end.endswith("T00:00:00Z")):
            return []
        first, last = date.fromisoformat(self.start[:10]), date.fromisoformat(self.end[:10])
        return [(first + timedelta(days=number)).isoformat() for number in range((last - first).days)]


def reconcile(
    spark: SparkSession, settings: Settings, hours: Range, *, now: datetime, raises: bool = False, rolls_up: bool = True
) -> Compared:
    """One range: recomputed, rolled up, raised if that is asked for, and compared."""
    environment = settings.environment
    known = Reconciled(environment)
    try:
        tables = (
            reconcile_frames.records(raw_table.read(spark, settings.lake, [name]), now, name)
            for name in known.clusters()
        )
        read = reduce(DataFrame.unionByName, tables)
        records = reconcile_frames.of_hours(read, hours.start, hours.end).persist()
        recomputed = reconcile_frames.hours(records, known.caps(), hours.start, hours.end).persist()
        raised = _raise(environment, reconcile_frames.maxima(records, hours.start), now) if raises else 0
        if rolls_up and hours.days:
            instances = reconcile_frames.instance_hours(records, hours.start, hours.end)
            _roll_up(settings.lake, recomputed, instances, hours)
        names = known.instances(hours.start, hours.end)
        used = _read(spark, partial(reconcile_tables.used_read, environment, hours.start, hours.end), names)
        billed = _read(spark, partial(reconcile_tables.billed_read, environment, hours.start, hours.end), names)
        with_database = reconcile_frames.against_database(
            recomputed, spark.createDataFrame(used, reconcile_frames.USED, verifySchema=False)
        )
        with_invoices = reconcile_frames.against_invoices(
            recomputed, spark.createDataFrame(billed, reconcile_frames.BILLED, verifySchema=False).persist()
        )
        differing = reconcile_frames.differing(with_database, "database").unionByName(
            reconcile_frames.differing(with_invoices, "invoices")
        ).persist()  # fmt: skip
        first = differing.orderBy("against", "hour", "instance", "topic", "boot", "counter").limit(MOST_DIFFERENCES)
        return Compared(
            hours.start,
            hours.end,
            with_database.count() + with_invoices.count(),
            differing.count(),
            raised,
            [Found(*row) for row in first.collect()],
        )
    finally:
        spark.catalog.clearCache()
        known.close()


def late_from(
    spark: SparkSession, settings: Settings, since_ms: int, before: date, clusters: Sequence[str]
) -> date | None:
    """The first day before another one of which records were written since a moment; None: of none."""
    raw = raw_table.read(spark, settings.lake, clusters)
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    late = raw.where(F.col("recorded_at") >= F.lit(since)).where(
        F.col("day").between((before - timedelta(days=LATE_DAYS)).isoformat(), before.isoformat())
        & (F.col("day") < before.isoformat())
        & F.col("kind").isin("usage", "instance")
    )
    row = late.agg(F.min("day")).first()
    return None if row is None or row[0] is None else date.fromisoformat(row[0])


def _read(spark: SparkSession, read: Callable[[str], Iterable[Any]], names: Sequence[str]) -> Any:
    """By executors, an instance at a time."""
    return spark.sparkContext.parallelize(names, max(1, min(SLICES, len(names)))).flatMap(read)


def _raise(environment: Any, maxima: DataFrame, now: datetime) -> int:
    """Of one boot and topic all rows in one task: two of them would wait for each other's locks."""
    rows = maxima.repartition(SLICES, "instance", "boot", "topic").rdd.map(tuple)
    return int(rows.mapPartitions(partial(_raise_some, environment, int(now.timestamp() * 1000))).sum())


def _raise_some(environment: Any, now_ms: int, rows: Iterable[Sequence[Any]]) -> Iterable[int]:
    return reconcile_tables.maxima_raise(environment, now_ms, rows)


def _roll_up(lake: str, recomputed: DataFrame, instances: DataFrame, hours: Range) -> None:
    """In place of what the tables had of these days; again, if need be: the same ends in the same."""
    hourly = reconcile_frames.hourly(recomputed)
    tables = (hourly, reconcile_frames.daily(hourly), reconcile_frames.instances_hourly(instances))
    replaced = f"day >= '{hours.days[0]}' AND day <= '{hours.days[-1]}'"
    for name, rows in zip(ROLL_UPS, tables, strict=True):
        writer = rows.repartition(1, "day").write.format("delta").mode("overwrite").partitionBy("day")
        uri = raw_table.uri_of(lake, name)
        if delta.is_table(rows.sparkSession, uri):
            writer = writer.option("replaceWhere", replaced)
        writer.save(uri)


def _tidy(spark: SparkSession, lake: str, clusters: Sequence[str]) -> None:
    """Files that no version of a week's needs any more."""
    for name in (*map(raw_table.name_of, clusters), *ROLL_UPS):
        uri = raw_table.uri_of(lake, name)
        if delta.is_table(spark, uri):
            spark.sql(f"VACUUM {delta.named(uri)}")


def work(
    settings: Settings, asked: Sequence[Range], run: runs.Current, *, raises: bool, now: datetime
) -> list[Compared]:
    """All that was asked for, or is due. Spark is started where there is something to do. Raises NotYetError, NoTableError."""
    known = Reconciled(settings.environment)
    try:
        last = known.last_day()
        for hours in asked:
            if last is None or hours.end > hour_of(last + timedelta(days=1)):
                raise NotYetError(
                    f"{hours.start} to {hours.end} cannot be compared yet: the stream has read"
                    + (" no day to its end" if last is None else f" all of {last} and the days before")
                )
        due = [] if asked else known.days_due()
        done = _make(settings, known, asked, due, run, raises=raises, now=now) if asked or due else []
        run.done_to_ms = known.done_to_ms()
        return done
    finally:
        known.close()


def _make(
    settings: Settings, known: Reconciled, asked: Sequence[Range], due: Sequence[date], run: runs.Current, *,
    raises: bool, now: datetime,
) -> list[Compared]:  # fmt: skip
    spark = session.open_batch_session(settings, APP, with_delta=True)
    try:
        begins = _begins(spark, settings, known)
        for hours in asked:
            if begins is None or hours.start < begins:
                raise NoTableError(
                    f"{hours.start} cannot be recomputed: {raw_table.NAME}"
                    + (" is not there yet" if begins is None else f" begins with {begins}")
                )
        done = []
        for hours in asked or _due_ranges(spark, settings, known, due, begins, now):
            began = time.monotonic()
            compared = reconcile(spark, settings, hours, now=now, raises=raises)
            known.note(compared, int(now.timestamp() * 1000))
            run.rows += compared.keys
            done.append(compared)
            LOG.info(
                "%s to %s: %d keys compared, %d counters differ, %d raised, in %.1f s",
                hours.start, hours.end, compared.keys, compared.differences, compared.raised, time.monotonic() - began,
            )  # fmt: skip
        if not asked:
            _tidy(spark, settings.lake, known.clusters())
        return done
    finally:
        session.close_session(spark)


def _begins(spark: SparkSession, settings: Settings, known: Reconciled) -> str | None:
    """From which hour on hours can be recomputed; None: a cluster has no table yet.

    It is where the last table begins of those that lack earlier usage. A cluster that is new lacks none: its table begins with
    its first record, and keeps no hour of the others from being recomputed.
    """
    found: dict[str, str] = {}
    for cluster in known.clusters():
        begins = raw_table.RawTable(spark, settings.lake, settings.environment, cluster).begins()
        if begins is None:
            return None
        found[cluster] = begins
    lacking = [begins for cluster, begins in found.items() if known.used_before(cluster, begins)]
    return max(lacking, default=min(found.values()))


def _due_ranges(
    spark: SparkSession, settings: Settings, known: Reconciled, due: Sequence[date], begins: str | None, now: datetime
) -> list[Range]:
    """From the first day that something has come for to the last that is due; none where there is no table yet.

    Days before the table begins are noted as done, with nothing compared: they will never be.
    """
    if begins is None:
        return []
    since_ms = known.last_at_ms()
    can_be = [day for day in due if hour_of(day) >= begins]
    for day in due:
        if hour_of(day) < begins:
            never = Compared(hour_of(day), hour_of(day + timedelta(days=1)), 0, 0, 0)
            known.note(never, int(now.timestamp() * 1000))
    if not can_be:
        return []
    first = can_be[0]
    if since_ms is not None:
        late = late_from(spark, settings, since_ms, first, known.clusters())
        while late is not None and late < first and hour_of(late) < begins:
            late += timedelta(days=1)
        first = min(first, late or first)
    return [Range(hour_of(first), hour_of(can_be[-1] + timedelta(days=1)))]


def _asked(parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Range]:
    if (parsed.start is None) != (parsed.end is None):
        parser.error("--from and --to go together")
    days = [Range(hour_of(day), hour_of(day + timedelta(days=1))) for day in parsed.day]
    if parsed.start is None:
        return days
    if parsed.start >= parsed.end:
        parser.error("--from must be before --to")
    return [*days, Range(parsed.start, parsed.end)]


def _hour(text: str) -> str:
    """As usage records write it, of a day or an hour. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    if (moment.minute, moment.second, moment.microsecond) != (0, 0, 0):
        raise ValueError("not the beginning of an hour")
    return f"{moment:%Y-%m-%dT%H}:00:00Z"


def main(words: Sequence[str], *, clock: Callable[[], float] = time.time) -> int:
    """The exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(prog="reconcile", description="Usage recomputed from usage_raw, and what differs.")
    parser.add_argument(
        "--day", action="append", default=[], type=date.fromisoformat, help="such as 2026-11-21; may be repeated"
    )
    parser.add_argument("--from", dest="start", type=_hour, help="a day or an hour of UTC, such as 2026-05-01T00")
    parser.add_argument("--to", dest="end", type=_hour, help="likewise, not included")
    parser.add_argument("--raise", dest="raises", action="store_true", help="put into the database what it lacks")
    parser.add_argument("--run", type=int, help="the number of the run that the runner starts")
    parsed = parser.parse_args(words)
    asked = _asked(parsed, parser)
    settings = Settings.read(os.environ)
    what = " ".join(f"{hours.start[:13]}/{hours.end[:13]}" for hours in asked)[: runs.LONGEST_WHAT]
    if parsed.day and parsed.start is None:
        what = " ".join(map(str, parsed.day))[: runs.LONGEST_WHAT]
    now = datetime.fromtimestamp(int(clock()), UTC)
    try:
        with runs.recorded(settings.environment, job=JOB, what=what, number=parsed.run) as run:
            done = work(settings, asked, run, raises=parsed.raises, now=now)
    except runs.NotBegunError as error:
        LOG.info("%s", error)
        return TAKEN
    except Exception as error:  # noqa: BLE001  # drivers have error trees of their own
        LOG.error("%s", said(error))  # noqa: TRY400  # a page of Java says no more
        return NOT_YET if isinstance(error, NotYetError) else NO_TABLE if isinstance(error, NoTableError) else FAILED
    for compared in done:
        for found in compared.found:
            print(*found, sep="\t")  # noqa: T201  # what the program is for
    return DIFFERENT if asked and parsed.run is None and any(each.differences for each in done) else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
