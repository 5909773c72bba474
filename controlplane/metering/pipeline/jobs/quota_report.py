"""The job: `python -m controlplane.metering.pipeline.jobs.quota_report`, or spark-submit with this file.

::

    quota_report                       # all days that can have a report and have none, oldest first
    quota_report --day 2026-11-21      # this day again, in place of what the report has of it; may be repeated

From the minutes of the history (`history_minute`) to rows of `quotas_quotaday`: what executors read and stage is in
`quota_tables`, how minutes become days in `quota_frames`, what a day is then called in `quota_days`. A day is published by
itself, in one transaction; a job that is killed has published days or not, and is started again. settings.py says what it reads
of the environment; executors need the project, and the database.

The exit status is 0; 1 where the database or Spark refuse; 2 for words that make no sense; 3 where a day that was named has
minutes to come; 4 where the run that was named has begun already, or another run is under way; 5 where a day that was named has
minutes no more.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from controlplane.metering.pipeline import quota_frames, quota_tables, runs, session
from controlplane.metering.pipeline.quota_days import AGAIN_DAYS, can_be_made_again, day_of, ends_at
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark.errors import PlainError, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from controlplane.env import Environment

LOG = logging.getLogger("sluice.quota_report")
JOB, APP = "quota_report", "quota-report"
DONE, FAILED, NOT_YET, TAKEN, GONE = 0, 1, 3, runs.TAKEN, 5


def minutes_of(spark: SparkSession, environment: Environment, day: date) -> DataFrame:
    """Read by executors, a slice of time each."""
    spans = quota_tables.slices(day)
    rows = spark.sparkContext.parallelize(spans, len(spans)).flatMap(partial(quota_tables.minutes_read, environment))
    return spark.createDataFrame(rows, quota_frames.MINUTES, verifySchema=False)


def days_of(spark: SparkSession, environment: Environment, day: date, minutes: DataFrame) -> DataFrame:
    """The day of every instance and resource, with what its trend and its guarantee need."""
    context = spark.sparkContext
    before = quota_tables.days_before()
    earlier = context.parallelize(before, 4).flatMap(partial(quota_tables.earlier_read, environment, day))
    waits = context.parallelize(quota_tables.slices(day), 4).flatMap(partial(quota_tables.waits_read, environment))
    days = quota_frames.days(quota_frames.uses(minutes))
    days = quota_frames.with_earlier(days, spark.createDataFrame(earlier, quota_frames.EARLIER, verifySchema=False))
    return quota_frames.with_waits(days, spark.createDataFrame(waits, quota_frames.WAITS, verifySchema=False))


def report(spark: SparkSession, environment: Environment, day: date, *, now: datetime) -> int:
    """One day: made, staged and published; how many rows. Raises StagingError, and errors of Spark and the database."""
    run = uuid4().hex
    days = days_of(spark, environment, day, minutes_of(spark, environment, day))
    staging = partial(_stage, environment, run, day, quota_tables.waits_known(day, now))
    rows = days.rdd.mapPartitions(staging).sum()
    published = quota_tables.Report(environment, now_s=int(now.timestamp()))
    try:
        published.publish(run, day, rows)
    finally:
        published.close()
    return int(rows)


def _stage(environment: Environment, run: str, day: date, waits_known: bool, rows: Iterable[object]) -> Iterable[int]:
    return quota_tables.stage(environment, run, day, waits_known=waits_known, rows=rows)


class NotYetError(PlainError):
    """A day that was named has minutes to come."""


class GoneError(PlainError):
    """A day that was named has minutes no more, or not all: what the report has of it could only become worse."""


def work(settings: Settings, wanted: Sequence[date], run: runs.Current, *, now_s: int) -> None:
    """All days that were asked for, or are due. Spark is started where there is something to do.

    Raises NotYetError and GoneError, both before anything is done.
    """
    known = quota_tables.Report(settings.environment, now_s=now_s)
    try:
        days = list(wanted) or known.due()
        made_to = known.made_to() or 0
        for day in wanted:
            if not can_be_made_again(day, day_of(now_s)):
                raise GoneError(
                    f"{day} stays as it was reported: of days before the last {AGAIN_DAYS} minutes are missing"
                )
            if ends_at(day) > made_to:
                raise NotYetError(
                    f"{day} cannot have a report yet: minutes have been made up to {_moment(made_to)} UTC"
                )
            if not known.has_minutes(day):
                raise GoneError(f"{day} cannot have a report: nothing was sampled")
        if days:
            known.begin()
            _make(settings, days, run)
        run.done_to_ms = known.done_to_ms()
    finally:
        known.close()


def _make(settings: Settings, days: Sequence[date], run: runs.Current) -> None:
    spark = session.open_batch_session(settings, APP)
    try:
        for day in days:
            began = time.monotonic()
            rows = report(spark, settings.environment, day, now=datetime.now(UTC))
            run.rows += rows
            LOG.info("%s: %d rows in %.1f s", day, rows, time.monotonic() - began)
    finally:
        session.close_session(spark)


def main(words: Sequence[str], *, clock: Callable[[], float] = time.time) -> int:
    """The exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(prog="quota_report", description="The quota report of whole days, UTC.")
    parser.add_argument(
        "--day", action="append", default=[], type=date.fromisoformat, help="such as 2026-11-21; may be repeated"
    )
    parser.add_argument("--run", type=int, help="the number of the run that the runner starts")
    asked = parser.parse_args(words)
    settings = Settings.read(os.environ)
    what = " ".join(map(str, asked.day))[: runs.LONGEST_WHAT]
    try:
        with runs.recorded(settings.environment, job=JOB, what=what, number=asked.run) as run:
            work(settings, asked.day, run, now_s=int(clock()))
    except runs.NotBegunError as error:
        LOG.info("%s", error)
        return TAKEN
    except Exception as error:  # noqa: BLE001  # drivers have error trees of their own
        LOG.error("%s", said(error))  # noqa: TRY400  # a page of Java says no more
        return NOT_YET if isinstance(error, NotYetError) else GONE if isinstance(error, GoneError) else FAILED
    return DONE


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
