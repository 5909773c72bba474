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

Each cluster has a table of its own. Where one is not there, or begins later than some of the hours, its cluster is left out of
them and named in what was compared; the others are compared all the same (comparable.py). Hours of which no table has anything
are cut from ranges. Both are said on standard error.

Of days that are folded (folded.py) the database has sums, which are compared instead, and put right: a record that came late for
such a day counts from then on, and so does a cap. Not where the records have less in all than the database: they must lack some.

`--raise` puts the largest counters of these hours into the database as the stream does: it raises, and lowers nothing. For a
database that was restored from a backup, and for records that an earlier release refused. Late usage of invoiced months becomes
adjustment lines by itself.

The exit status is 0; 1 where the database or Spark refuse; 2 for words that make no sense; 3 where hours were named that the
stream has not read for certain yet; 4 where the run that was named has begun already, or another one is under way; 5 where there
is no `usage_raw`, or it begins later than the hours that were named; 6 where something differs in hours that were named; 7 where
nothing does, but a part of them, or a cluster, could not be compared.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.metering.pipeline import comparable, raw_table, reconcile_frames, reconcile_tables, runs, session
from controlplane.metering.pipeline.comparable import Part, Range, day_range, hour_of
from controlplane.metering.pipeline.folded import FOLDED, Folded
from controlplane.metering.pipeline.maxima import INSTANCES, TOPICS, USERS, Maxima
from controlplane.metering.pipeline.reconcile_tables import MOST_DIFFERENCES, Compared, Found, Reconciled
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark import delta
from controlplane.spark.errors import PlainError, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("sluice.reconcile")
JOB, APP = "reconcile", "reconcile"
DONE, FAILED, NOT_YET, TAKEN, NO_TABLE, DIFFERENT, NOT_ALL = 0, 1, 3, runs.TAKEN, 5, 6, 7
LATE_DAYS = 35
"""So far back records can be late: `__usage` keeps them no longer."""
SLICES = 16
ROLL_UPS = ("usage_hourly", "usage_daily", "usage_instances_hourly")


class NotYetError(PlainError):
    """Hours were named that the stream has not read for certain yet."""


class NoTableError(PlainError):
    """The lake has no `usage_raw`, or none of these hours."""


def reconcile(
    spark: SparkSession, settings: Settings, part: Part, *, now: datetime, raises: bool = False, rolls_up: bool = True
) -> Compared:
    """Hours of the clusters that can be: recomputed, rolled up, raised if that is asked for, and compared.

    Instances of the others are left out on both sides: a table begins with what the database knew of all clusters.
    """
    environment, hours = settings.environment, part.hours
    known = Reconciled(environment)
    try:
        left_out = known.instances_on([name for name in known.clusters() if name not in part.read])
        others = reconcile_frames.instances(spark, left_out) if left_out else None
        tables = (
            reconcile_frames.records(raw_table.read(spark, settings.lake, [name]), now, name) for name in part.read
        )
        read = reduce(DataFrame.unionByName, tables)
        if others is not None:
            read = reconcile_frames.without(read, others)
        records = reconcile_frames.of_hours(read, hours.start, hours.end).persist()
        recomputed = reconcile_frames.hours(records, known.caps(), hours.start, hours.end).persist()
        instances = reconcile_frames.instance_hours(records, hours.start, hours.end)
        names = sorted({*known.instances(hours.start, hours.end)} - {*left_out})
        folded_hours, open_hours = hours.cut_at(known.folded_to())
        of_source = {
            TOPICS: recomputed,
            INSTANCES: instances,
            USERS: reconcile_frames.user_hours(records, hours.start, hours.end),
        }
        days = FoldedDays(spark, environment, folded_hours.whole_days(), names, of_source, records)
        raised = _raise(environment, reconcile_frames.maxima(records, hours.start), now) if raises else 0
        since_ms = min(known.compared_to_ms(name) or 0 for name in part.read)
        raised += days.put_right(_before_caps(records, known, since_ms, hours))
        if rolls_up and hours.days:
            instances_hourly = reconcile_frames.instances_hourly(instances, records)
            _roll_up(settings.lake, recomputed, instances_hourly, hours, others)
        used = _read(spark, partial(reconcile_tables.used_read, environment, open_hours.start, open_hours.end), names)
        billed = _read(spark, partial(reconcile_tables.billed_read, environment, hours.start, hours.end), names)
        with_database = reconcile_frames.against_database(
            recomputed.where(F.col("hour") >= open_hours.start),
            spark.createDataFrame(used, reconcile_frames.USED, verifySchema=False),
        )
        with_invoices = reconcile_frames.against_invoices(
            recomputed, spark.createDataFrame(billed, reconcile_frames.BILLED, verifySchema=False).persist()
        )
        keys = with_database.count() + with_invoices.count()
        parts = [
            reconcile_frames.differing(with_database, "database"),
            reconcile_frames.differing(with_invoices, "invoices"),
        ]
        for beside, counters in days.beside():
            keys += beside.count()
            parts.append(reconcile_frames.differing(beside, "database", counters))
        differing = reduce(DataFrame.unionByName, parts).persist()
        first = differing.orderBy("against", "hour", "instance", "topic", "boot", "counter").limit(MOST_DIFFERENCES)
        return Compared(
            hours.start,
            hours.end,
            keys,
            differing.count(),
            raised,
            [Found(*row) for row in first.collect()],
            part.gone,
            part.begins_later,
        )
    finally:
        spark.catalog.clearCache()
        known.close()


class FoldedDays:
    """Whole days that are folded: recomputed sums beside those that the database has of them. None, where `hours` is empty."""

    def __init__(
        self, spark: SparkSession, environment: Any, hours: Range, names: Sequence[str],
        of_source: Mapping[Maxima, DataFrame], records: DataFrame,
    ) -> None:  # fmt: skip
        self._spark, self._environment, self._hours, self._names = spark, environment, hours, names
        self._is_any = hours.start < hours.end
        self._of_source = {source: self._within(rows).persist() for source, rows in of_source.items()}
        self._left_out = {
            source: reconcile_frames.without_beginning(rows, records).persist()
            for source, rows in self._of_source.items()
            if source is not TOPICS
        }

    def put_right(self, before_caps: tuple[set[str], DataFrame] | None) -> int:
        """Put into the database what the records say; how many rows. Not of instances of which the records say less in all.

        Late records only add to these hours, and move usage from later ones to earlier ones. Where there is less, the table lacks
        records: that is for an operator. Where one has just capped a topic of the instance, what the cap changes is put right all
        the same: `before_caps` has these instances, and their hours without the cap.
        """
        count = 0
        less: set[str] = set()
        for number, table in enumerate(FOLDED if self._is_any else ()):
            recomputed, known = self._recomputed(table), self._known(number)
            fallen = set(reconcile_frames.fallen(recomputed, known, table))
            rows = reconcile_frames.wrong(recomputed, known, table)
            if before_caps is not None and table.source is TOPICS and (capped := fallen & before_caps[0]):
                without_cap = reconcile_frames.folded(self._within(before_caps[1]), table)
                rows = reconcile_frames.changed_by_caps(rows, recomputed, without_cap, table, sorted(capped))
                fallen -= capped
            less |= fallen
            if less:
                LOG.warning("the records have less than the database of %s: left as it is", ", ".join(sorted(less)))
                rows = reconcile_frames.without(rows, reconcile_frames.instances(self._spark, sorted(less)))
            put = partial(reconcile_tables.folded_put, self._environment, number)
            count += int(rows.coalesce(SLICES).rdd.map(tuple).mapPartitions(put).sum())
        return count

    def _within(self, rows: DataFrame) -> DataFrame:
        return rows.where((F.col("hour") >= self._hours.start) & (F.col("hour") < self._hours.end))

    def beside(self) -> Iterator[tuple[DataFrame, Sequence[str]]]:
        """What is recomputed beside what is known now, and the counters."""
        for number, table in enumerate(FOLDED if self._is_any else ()):
            known = self._known(number)
            yield reconcile_frames.against_folded(self._recomputed(table), known, table), table.source.counters

    def _recomputed(self, table: Folded) -> DataFrame:
        return self._comparable(reconcile_frames.folded(self._of_source[table.source], table), table)

    def _known(self, number: int) -> DataFrame:
        read = partial(reconcile_tables.folded_read, self._environment, number, self._hours.start, self._hours.end)
        rows = _read(self._spark, read, self._names)
        known = self._spark.createDataFrame(rows, reconcile_frames.folded_schema(FOLDED[number]), verifySchema=False)
        return self._comparable(known, FOLDED[number])

    def _comparable(self, rows: DataFrame, table: Folded) -> DataFrame:
        left_out = self._left_out.get(table.source)
        return rows if left_out is None else reconcile_frames.without(rows, left_out)


def late_from(
    spark: SparkSession, settings: Settings, since_ms: int, before: date, clusters: Sequence[str]
) -> date | None:
    """The first day before another one of which records were written since a moment; None: of none."""
    raw = raw_table.read(spark, settings.lake, clusters)
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    late = raw.where(F.col("recorded_at") >= F.lit(since)).where(
        F.col("day").between((before - timedelta(days=LATE_DAYS)).isoformat(), before.isoformat())
        & (F.col("day") < before.isoformat())
        & F.col("kind").isin("usage", "instance", "user")
    )
    row = late.agg(F.min("day")).first()
    return None if row is None or row[0] is None else date.fromisoformat(row[0])


def capped_from(
    spark: SparkSession, settings: Settings, key: tuple[str, str, str], before: date, cluster: str
) -> date | None:
    """The first day before another one of which there are records of an (instance, boot, topic); None: of none."""
    instance, boot, topic = key
    rows = raw_table.read(spark, settings.lake, [cluster]).where(
        (F.col("instance") == instance) & (F.col("boot") == boot) & (F.col("topic") == topic)
    )
    row = rows.where((F.col("day") < before.isoformat()) & (F.col("kind") == "usage")).agg(F.min("day")).first()
    return None if row is None or row[0] is None else date.fromisoformat(row[0])


def _read(spark: SparkSession, read: Callable[[str], Iterable[Any]], names: Sequence[str]) -> Any:
    """By executors, an instance at a time."""
    return spark.sparkContext.parallelize(names, max(1, min(SLICES, len(names)))).flatMap(read)


def _raise(environment: Any, maxima: DataFrame, now: datetime) -> int:
    """Of one boot and topic all rows in one task: two of them would wait for each other's locks."""
    rows = maxima.repartition(SLICES, "instance", "boot", "topic").rdd.map(tuple)
    return int(rows.mapPartitions(partial(_raise_some, environment, _ms(now))).sum())


def _raise_some(environment: Any, now_ms: int, rows: Iterable[Sequence[Any]]) -> Iterable[int]:
    return reconcile_tables.maxima_raise(environment, now_ms, rows)


def _before_caps(
    records: DataFrame, known: Reconciled, since_ms: int, hours: Range
) -> tuple[set[str], DataFrame] | None:
    """Instances of which a topic was capped since a moment, and their hours as they would be without; None: none was."""
    new = known.capped_since(since_ms)
    if not new:
        return None
    instances = {instance for instance, *_ in new}
    older = [row for row in known.caps() if tuple(row[:3]) not in new]
    of_capped = records.where(F.col("instance").isin(*instances))
    return instances, reconcile_frames.hours(of_capped, older, hours.start, hours.end)


def _roll_up(
    lake: str, recomputed: DataFrame, instances_hourly: DataFrame, hours: Range, others: DataFrame | None
) -> None:
    """In place of what the tables had of these days; again, if need be: the same ends in the same.

    What they had of instances that are left out (`others`) stays: it was recomputed while their cluster's table was there.
    """
    hourly = reconcile_frames.hourly(recomputed)
    tables = (hourly, reconcile_frames.daily(hourly), instances_hourly)
    replaced = f"day >= '{hours.days[0]}' AND day <= '{hours.days[-1]}'"
    for name, rows in zip(ROLL_UPS, tables, strict=True):
        spark, uri = rows.sparkSession, raw_table.uri_of(lake, name)
        options = {}
        if delta.is_table(spark, uri):
            options["replaceWhere"] = replaced
            if others is not None:
                had = spark.read.format("delta").load(uri).where(replaced).select(*rows.columns)
                rows = rows.unionByName(reconcile_frames.of_instances(had, others))  # noqa: PLW2901  # the same, and those
        writer = rows.repartition(1, "day").write.format("delta").mode("overwrite").partitionBy("day")
        writer.options(**options).save(uri)


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
        tables = _tables(spark, settings, known)
        found = _asked_parts(known, asked, tables) if asked else _due_parts(spark, settings, known, due, tables)
        done = []
        for part in found:
            hours, began = part.hours, time.monotonic()
            if part.gone or part.begins_later:
                LOG.warning("%s to %s: left out, since %s", hours.start, hours.end, _lacking(part, tables))
            if part.read:
                compared = reconcile(spark, settings, part, now=now, raises=raises)
                compared = compared._replace(with_late=not asked)
                known.note(compared, _ms(now))
                run.rows += compared.keys
                LOG.info(
                    "%s to %s: %d keys compared, %d counters differ, %d raised, in %.1f s",
                    hours.start, hours.end, compared.keys, compared.differences, compared.raised, time.monotonic() - began,
                )  # fmt: skip
            else:
                compared = Compared(hours.start, hours.end, 0, 0, 0, (), part.gone, part.begins_later)
                _note_days(known, compared, due, now)
            done.append(compared)
        if not asked:
            _tidy(spark, settings.lake, known.clusters())
        return done
    finally:
        session.close_session(spark)


def _tables(spark: SparkSession, settings: Settings, known: Reconciled) -> dict[str, str | None]:
    """From which hour on each cluster's table has all that was told; None: it is not there."""
    return {
        cluster: raw_table.RawTable(spark, settings.lake, settings.environment, cluster).begins()
        for cluster in known.clusters()
    }


def _asked_parts(known: Reconciled, asked: Sequence[Range], tables: Mapping[str, str | None]) -> list[Part]:
    """Raises NoTableError where nothing can be compared of one of the ranges: nothing is done then."""
    found = []
    for hours in asked:
        cut = comparable.parts(hours, tables, known.used, known.retired())
        if not any(part.read for part in cut):
            raise NoTableError(f"{hours.start} to {hours.end} cannot be recomputed: {_lacking(cut[0], tables)}")
        found += cut
    return found


def _due_parts(
    spark: SparkSession, settings: Settings, known: Reconciled, due: Sequence[date], tables: Mapping[str, str | None]
) -> list[Part]:
    """From the first day that something has come for to the last that is due."""
    late = (_late_from(spark, settings, known, cluster, due[0]) for cluster, begins in tables.items() if begins)
    first = min((day for day in late if day is not None), default=due[0])
    hours = Range(hour_of(first), hour_of(due[-1] + timedelta(days=1)))
    return comparable.parts(hours, tables, known.used, known.retired())


def _late_from(spark: SparkSession, settings: Settings, known: Reconciled, cluster: str, before: date) -> date | None:
    since_ms = known.compared_to_ms(cluster)
    if since_ms is None:
        return None
    found = [late_from(spark, settings, since_ms, before, [cluster])]
    found += [
        capped_from(spark, settings, key, before, cluster) for key in known.capped_since(since_ms) if known.folded_to()
    ]
    return min((day for day in found if day is not None), default=None)


def _note_days(known: Reconciled, nothing: Compared, due: Sequence[date], now: datetime) -> None:
    """Days that are due and of which no table has anything: compared with nothing, and so done, unless a table may come back."""
    for day in due:
        hours = day_range(day)
        if nothing.start <= hours.start and hours.end <= nothing.end:
            known.note(nothing._replace(start=hours.start, end=hours.end), _ms(now))


def _lacking(part: Part, tables: Mapping[str, str | None]) -> str:
    """Whose tables do not have some hours, and why."""
    gone = [f"{raw_table.name_of(cluster)} is not there" for cluster in part.gone]
    return ", ".join(gone + [f"{raw_table.name_of(each)} begins with {tables[each]}" for each in part.begins_later])


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _asked(parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Range]:
    if (parsed.start is None) != (parsed.end is None):
        parser.error("--from and --to go together")
    days = [day_range(day) for day in parsed.day]
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
    return _status(done) if asked and parsed.run is None else DONE


def _status(done: Sequence[Compared]) -> int:
    if any(each.differences for each in done):
        return DIFFERENT
    return NOT_ALL if any(each.gone or each.begins_later for each in done) else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
