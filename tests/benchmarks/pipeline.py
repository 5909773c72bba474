"""``python -m tests.benchmarks.pipeline``: the jobs of the pipeline on generated usage, a slice of it at 1x, 4x and 16x.

At 16x it is 500 instances with 100 topics on 3 brokers (`--instances`, `--topics`, `--brokers`), and of each key
`--records-an-hour` records in each of `--hours`; at 4x a quarter of the instances, at 1x a sixteenth. Whether time grows with the
work and no faster, and whether the driver's memory stays as it is, shows at 16x beside 1x.

usage         records as the Kafka source hands them over, in batches as large as the stream's, through `UsageJob.take`: parsed,
              checked, appended to `usage_raw`, added up, staged and merged into the database. Kafka itself is left out
reconcile     the day of these records, from the table that `usage` has just written: recomputed, compared with the database,
              rolled up, through `reconcile`. Boots are no older than the day: of older ones it reads the days before as well
quota_report  a day of minutes, one row for each instance and minute, and 27 days of reports before it, through `report`
closing       invoices of `--months` months, one after the other, as beat has them written: `tests.benchmarks.closing`. No Spark

`--jobs` names those that are wanted; each of the first three needs the other two. Each factor has a process and a database of its
own (SQLite; PostgreSQL with `--postgresql`, where one is installed), and each job of it a JVM with the job's options, so that the
peaks of memory are its own: VmHWM of the JVM and, of all jobs so far, of Python, and what the heap holds at the job's end. A JVM
takes what heap it is given before it collects, so the peak says little unless the heap is small: with `--heap 480m` all factors
must do with the same.
Records are made by Spark while they are read; `generating_s` is what that alone costs. Delta Lake's jars are those of the
pipeline's tests. Figures in `var/reports/pipeline.json`, with what 30 days of all would be: records and bytes in `__usage`, rows
in the database, bytes in the lake, and how long the jobs would take.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.report import keep, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from controlplane.metering.pipeline.settings import Settings

REPORT, CLOSING_REPORT = Path("var/reports/pipeline.json"), Path("var/reports/closing.json")
"""The second one where only `closing` was asked for."""
LARGEST = 16
DAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 21, 1, tzinfo=UTC)
PARTITIONS = 8
MINUTES_A_DAY, DAYS = 1440, 30
ROWS_AT_ONCE = 5000
SPARK_JOBS = ("usage", "reconcile", "quota_report")
CLOSING = "closing"
JOBS = (*SPARK_JOBS, CLOSING)
TABLES = {
    "usage": "metering_usagemaximum",
    "quota_report": "quotas_quotaday",
}


@dataclass(frozen=True, slots=True)
class Slice:
    """How much of it."""

    instances: int
    topics: int
    brokers: int
    hours: int
    records_an_hour: int

    @property
    def keys(self) -> int:
        """Instance, topic and broker."""
        return self.instances * self.topics * self.brokers

    @property
    def records(self) -> int:
        """In `__usage`."""
        return self.keys * self.hours * self.records_an_hour


def records(spark: SparkSession, part: Slice, first: int, end: int) -> DataFrame:
    """Records of the slice as the Kafka source hands them over, those with numbers in [first, end). All keys in turn."""
    from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

    key, turn = f"(id % {part.keys})", f"(id div {part.keys})"
    hour = f"({turn} div {part.records_an_hour})"
    begins = f"timestamp_seconds({int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp())} + {hour} * 3600)"
    members = {
        "version": "1",
        "broker": f"CAST({key} % {part.brokers} + 1 AS INT)",
        "boot": f"concat('b', {key} % {part.brokers})",
        "hour": f"date_format({begins}, \"yyyy-MM-dd'T'HH:00:00'Z'\")",
        "instance": f"concat('ins-', lpad(CAST({key} div {part.topics * part.brokers} AS STRING), 8, '0'))",
        "topic": f"concat('topic-', {key} div {part.brokers} % {part.topics})",
        "produced_bytes": f"({turn} + 1) * ({key} % 977 + 1) * 1000",
        "consumed_bytes": f"({turn} + 1) * ({key} % 991 + 1) * 3000",
        "stored_byte_seconds": f"({turn} + 1) * ({key} % 983 + 1) * 3600000",
    }
    value = F.to_json(F.struct(*(F.expr(text).alias(name) for name, text in members.items())))
    return spark.range(first, end).select(
        value.cast("binary").alias("value"),
        F.expr(f"CAST(id % {PARTITIONS} AS INT)").alias("partition"),
        F.expr(f"id div {PARTITIONS}").alias("offset"),  # without gaps
        F.expr(f"{begins} + INTERVAL 30 MINUTES").alias("timestamp"),
    )


def usage(spark: SparkSession, settings: Settings, part: Slice) -> dict[str, Any]:
    """The stream's batches, one after the other."""
    from controlplane.metering.pipeline import transforms
    from controlplane.metering.pipeline.jobs.usage import UsageJob
    from controlplane.metering.pipeline.raw_table import RawTable
    from controlplane.metering.pipeline.source import MOST_PER_BATCH

    job = UsageJob(settings, spark, RawTable(spark, settings.lake, settings.environment))
    job.topic_id = "benchmark"
    job.sign_of_life(started=True)
    # Classes, and the first compilation.
    job.take(transforms.parsed(records(spark, part, 0, 100)), query="warm up", number=0)
    spans = [(at, min(at + MOST_PER_BATCH, part.records)) for at in range(0, part.records, MOST_PER_BATCH)]
    began = time.monotonic()
    for span in spans:
        records(spark, part, *span).write.format("noop").mode("overwrite").save()
    generating_s = time.monotonic() - began
    began = time.monotonic()
    for number, span in enumerate(spans):
        rows = transforms.parsed(records(spark, part, *span)).persist()
        job.take(rows, query="benchmark", number=number)
        rows.unpersist()
    took_s = time.monotonic() - began
    lake = sum(each.stat().st_size for each in Path(settings.lake).rglob("*.parquet"))
    (sample,) = records(spark, part, 0, 1).collect()
    return {
        "records": part.records, "batches": len(spans), "generating_s": generating_s, "took_s": took_s,
        "records_per_s": part.records / took_s, "lake_bytes": lake, "value_bytes": len(sample.value),
    }  # fmt: skip


def reconcile(spark: SparkSession, settings: Settings, part: Slice) -> dict[str, Any]:
    """The day, once."""
    from controlplane.metering.pipeline.comparable import Part, day_range
    from controlplane.metering.pipeline.jobs.reconcile import reconcile as compare
    from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER

    day, next_day = (Part(day_range(DAY + timedelta(days=number)), (DEFAULT_CLUSTER,)) for number in range(2))
    assert compare(spark, settings, next_day, now=NOW).keys == 0  # the same; a day without records
    began = time.monotonic()
    compared = compare(spark, settings, day, now=NOW)
    took_s = time.monotonic() - began
    assert (compared.keys, compared.differences) == (part.keys * part.hours, 0), compared
    return {"rows": part.records, "keys": compared.keys, "took_s": took_s, "rows_per_s": part.records / took_s}


def quota_report(spark: SparkSession, settings: Settings, part: Slice) -> dict[str, Any]:
    """One day of the report."""
    from controlplane.metering.pipeline.jobs.quota_report import report
    from controlplane.metering.pipeline.tables import StagingError

    minutes = _minutes_made(settings, part)
    with contextlib.suppress(StagingError):  # the same; a day without minutes has no report
        report(spark, settings.environment, DAY + timedelta(days=1), now=NOW)
    began = time.monotonic()
    rows = report(spark, settings.environment, DAY, now=NOW)
    took_s = time.monotonic() - began
    assert rows == 3 * part.instances, rows
    return {"minutes": minutes, "rows": rows, "took_s": took_s, "minutes_per_s": minutes / took_s}


def _minutes_made(settings: Settings, part: Slice) -> int:
    from controlplane.metering.pipeline.quota_days import COLUMNS, Added, begins_at, row_of
    from controlplane.metering.pipeline.tables import Database

    mib = 2**20

    def minute(instance: int, at: int) -> dict[str, Any]:
        use = (instance * 7919 + at * 31) % (20 * mib)
        row: dict[str, Any] = {"instance": f"ins-{instance:08}", "at": at, "samples": 6, "minutes": 1}
        for name in ("produce", "consume"):
            row |= {
                f"{name}_bytes_per_s_sum": use * 6, f"{name}_bytes_per_s_max": use,
                f"{name}_limit_bytes_per_s": 20 * mib, f"{name}_throttled_ms": use % 3, f"{name}_throttled_ms_max": use % 3,
            }  # fmt: skip
        stored = {
            "storage_used_bytes_sum": use * 600,
            "storage_used_bytes_max": use * 100,
            "storage_limit_bytes": 2**40,
        }
        return row | stored | {"connections_sum": 6, "connections_max": 1}

    def reported(instance: int, before: int) -> dict[str, Any]:
        day = DAY - timedelta(days=before)
        added = Added(f"ins-{instance:08}", "produce", 20 * mib, 1, mib * (30 - before), 3, 4, 5, 1440, 0, 0, 0, ())
        return dict(zip(COLUMNS, row_of(day, added), strict=True))

    database = Database(settings.environment)
    times = range(begins_at(DAY), begins_at(DAY) + 86_400, 60)
    made = _inserted(database, "history_minute", (minute(n, at) for at in times for n in range(part.instances)))
    _inserted(database, "quotas_quotaday", (reported(n, b) for b in range(1, 28) for n in range(part.instances)))
    database.close()
    return made


def _inserted(database: Any, table: str, rows: Iterator[dict[str, Any]]) -> int:
    from itertools import islice

    count = 0
    while portion := list(islice(rows, ROWS_AT_ONCE)):
        columns = list(portion[0])
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        with database.transaction() as cursor:
            database.run_many(cursor, statement, [list(row.values()) for row in portion])
        count += len(portion)
    return count


def one(part: Slice, *, postgresql: bool, master: str, heap: str) -> dict[str, Any]:
    """All jobs on one slice, in this process. `heap`: of each JVM; empty: as in the product."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from controlplane.metering.pipeline import session
    from controlplane.metering.pipeline.settings import Settings
    from controlplane.metering.pipeline.tables import Database
    from controlplane.spark import session as spark_session
    from tests.pipeline.conftest import tables_make
    from tests.support.spark_home import spark_home

    if heap:
        spark_session.HEAP = heap
    jobs: dict[Any, Callable[[Settings], SparkSession]] = {
        usage: session.open_session,
        reconcile: lambda settings: session.open_batch_session(settings, "reconcile", with_delta=True),
        quota_report: lambda settings: session.open_batch_session(settings, "quota-report"),
    }
    with (
        spark_home() as home,
        tempfile.TemporaryDirectory() as name,
        _database(Path(name), postgresql=postgresql) as url,
    ):
        tables_make(url)
        variables = {"SLUICE_STACK_DIR": str(home), "SLUICE_LAKE": f"{name}/lake", "DATABASE_URL": url}
        settings = Settings.read(variables | {"SPARK_MASTER": master})
        database = Database(settings.environment)
        _others_made(database)
        found: dict[str, Any] = {"slice": asdict(part)}
        for job, opened in jobs.items():
            spark = opened(settings)
            found[job.__name__] = job(spark, settings, part) | _peaks(spark)
            session.close_session(spark)
        found["rows"] = {
            name: next(database.read(f"SELECT COUNT(*) FROM {table}"))[0] for name, table in TABLES.items()
        }
        database.close()
    return found


def _others_made(database: Any) -> None:
    """What the jobs read of other apps' tables."""
    with database.transaction() as cursor:
        database.run(cursor, "CREATE TABLE billing_invoice (instance_id VARCHAR(32), month VARCHAR(7), inputs JSONB)")
        database.run(cursor, "CREATE TABLE instances_instance (id VARCHAR(32), cluster_id BIGINT)")


def _peaks(spark: SparkSession) -> dict[str, float]:
    """The most memory that was resident since the process began, and what the JVM's heap holds once it is collected, in MiB."""
    from controlplane.spark.session import jvm_of

    java = jvm_of(spark).java.lang
    peaks = {"jvm": _peak_mib(java.ProcessHandle.current().pid()), "python": _peak_mib(os.getpid())}
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    held = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    return {**{f"{name}_peak_mib": round(peak) for name, peak in peaks.items()}, "jvm_held_mib": round(held)}


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextlib.contextmanager
def _database(directory: Path, *, postgresql: bool) -> Iterator[str]:
    if not postgresql:
        yield f"sqlite:///{directory / 'pipeline.sqlite3'}"
        return
    from tests.support.ports import free_port
    from tests.support.postgresql import PostgreSQLServer

    with PostgreSQLServer(directory / "postgresql", free_port()) as server:
        yield server.database("pipeline")


def closing(part: Slice, *, months: int, postgresql: bool) -> dict[str, Any]:
    """The job that has no Spark, in this process."""
    from tests.benchmarks.closing import measured

    with tempfile.TemporaryDirectory() as name, _database(Path(name), postgresql=postgresql) as url:
        found = measured(name, url, part.instances, months)
    return {CLOSING: found | {"python_peak_mib": round(_peak_mib(os.getpid()))}}


def growth(results: dict[int, dict[str, Any]], job: str) -> dict[str, float]:
    """Time of a factor beside that of the smallest, as often as it has more to do: 1 is linear, less is better than that."""
    smallest = min(results)
    base = results[smallest][job]["took_s"] / smallest
    return {f"{factor}x": round(each[job]["took_s"] / factor / base, 3) for factor, each in results.items()}


def month_of(whole: Slice, largest: dict[str, Any]) -> dict[str, Any]:
    """What 30 days of all instances come to, by the largest slice's figures."""
    measured, hours = largest["usage"], DAYS * 24
    month = replace(whole, hours=hours)
    return {
        "records": month.records,
        "records_per_s": round(month.records / (hours * 3600), 1),
        "value_bytes": month.records * measured["value_bytes"],
        "lake_bytes": round(month.records * measured["lake_bytes"] / measured["records"]),
        "database_rows": month.keys * hours,
        "usage_takes_s": round(month.records / measured["records_per_s"]),
        "reconcile_takes_s": round(month.records / largest["reconcile"]["rows_per_s"]),
        "quota_report_takes_s": round(
            DAYS * whole.instances * MINUTES_A_DAY / largest["quota_report"]["minutes_per_s"]
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each factor in a process of its own, print, keep."""
    options = _options(arguments)
    whole = Slice(options.instances, options.topics, options.brokers, options.hours, options.records_an_hour)
    if options.one:
        part = replace(whole, instances=max(1, whole.instances * options.one // LARGEST))
        if options.jobs == [CLOSING]:
            found = closing(part, months=options.months, postgresql=options.postgresql)
        else:
            found = one(part, postgresql=options.postgresql, master=options.master, heap=options.heap)
        print(json.dumps(found))
        return 0
    say = progress()
    results: dict[int, dict[str, Any]] = {}
    for factor in options.factors:
        say(f"{factor}x …")
        results[factor] = {}
        for jobs in (",".join(SPARK_JOBS), CLOSING):  # a process for each: Django has one database
            if set(jobs.split(",")) & set(options.jobs):
                words = [*(arguments if arguments is not None else sys.argv[1:]), "--one", str(factor), "--jobs", jobs]
                results[factor] |= _measured(words)
        for line in _lines(results[factor]):
            say(f"{factor}x: {line}")
    jobs_measured = [job for job in JOBS if job in results[max(results)]]
    figures = {
        "master": options.master,
        "database": "postgresql" if options.postgresql else "sqlite",
        "heap": options.heap or "as in the product",
        "factors": {f"{factor}x": each for factor, each in results.items()},
        "growth": {job: growth(results, job) for job in jobs_measured},
    }
    if SPARK_JOBS[0] in jobs_measured:
        figures["30_days"] = month_of(whole, results[max(results)])
    print(json.dumps({name: figures[name] for name in ("growth", "30_days") if name in figures}, indent=1))
    keep(REPORT if SPARK_JOBS[0] in jobs_measured else CLOSING_REPORT, figures)
    return 0


def _measured(words: Sequence[str]) -> dict[str, Any]:
    """In a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.pipeline", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """For people."""
    if SPARK_JOBS[0] in found:
        streamed, compared, report = (found[job] for job in SPARK_JOBS)
        jvm, held = (max(found[job][name] for job in SPARK_JOBS) for name in ("jvm_peak_mib", "jvm_held_mib"))
        yield (
            f"usage {streamed['records']:,} records, {streamed['records_per_s']:,.0f}/s; reconcile"
            f" {compared['rows']:,} rows, {compared['rows_per_s']:,.0f}/s; quota report {report['minutes']:,} minutes,"
            f" {report['minutes_per_s']:,.0f}/s; JVM {jvm} MiB, of which {held} in use at the end;"
            f" Python {report['python_peak_mib']} MiB"
        )
    if CLOSING in found:
        closed = found[CLOSING]
        yield (
            f"closing {closed['invoices']:,} invoices, {closed['first_invoices_per_s']:.1f}/s of the first month,"
            f" {closed['invoices_per_s']:.1f}/s of month {closed['months']}; nothing to do {closed['idle_s']:.2f} s;"
            f" Python {closed['python_peak_mib']} MiB"
        )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pipeline")
    parser.add_argument("--instances", type=int, default=500, help="at 16x")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--hours", type=int, default=2)
    parser.add_argument("--records-an-hour", type=int, default=2, help="of each instance, topic and broker")
    parser.add_argument("--factors", type=lambda text: sorted(map(int, text.split(","))), default=[1, 4, 16])
    parser.add_argument(
        "--jobs", type=_jobs, default=list(JOBS), metavar="JOB,JOB", help=f"of {', '.join(JOBS)}; without: all"
    )
    parser.add_argument("--months", type=int, default=2, help="that are closed, one after the other")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--heap", default="", help="of each JVM, such as 480m; Spark wants 450 or more; without: the product's"
    )
    parser.add_argument("--one", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _jobs(text: str) -> list[str]:
    jobs = text.split(",")
    if not set(jobs) <= set(JOBS):
        raise argparse.ArgumentTypeError(f"jobs are {', '.join(JOBS)}")
    return jobs


if __name__ == "__main__":
    sys.exit(main())
