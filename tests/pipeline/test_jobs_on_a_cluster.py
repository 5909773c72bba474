"""The daily jobs by spark-submit, on threads of one process and on a standalone Master with two Workers: the same to the byte.

Both begin with copies of one PostgreSQL and one lake. A day of the quota report is due; of usage there are two days, of which
the first is folded and has got a late record, and the second lacks keys in the database and was invoiced wrongly. So executors
read, stage, raise and put right folded days, and the driver publishes, rolls up and notes what differs.

The Workers' folders are apart, programs are started from another folder, and no process of Spark but the driver is told where
the database is.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline import folded
from controlplane.metering.pipeline.jobs import reconcile
from controlplane.metering.pipeline.quota_days import COLUMNS, Added, begins_at, ends_at, row_of
from controlplane.metering.pipeline.session import PACKAGES
from controlplane.metering.pipeline.tables import Database
from quota.contracts.usage import UsageRecord
from tests.support.delta_tables import rows_in
from tests.support.postgresql import PostgreSQLServer
from tests.support.spark_cluster import WORKERS, SparkCluster, executors_of
from tests.support.spark_home import spark_home
from tests.support.spark_submit import Done, Submitter

from .conftest import tables_make
from .test_usage_raw import ONE, TWO, Driver, batches, told

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(3600),  # four to twenty minutes, by what else the machine does
]
JOBS = "controlplane/metering/pipeline/jobs"
INSTANCES = (ONE, TWO, "ins-cccccccc", "ins-dddddddd")
REPORTED = datetime.now(UTC).date() - timedelta(days=2)
"""The day of the quota report: who waited on it is known for a week, and all of its minutes are made."""
BEGINS, FIRST_DAY, SECOND_DAY, END = (f"2026-{day}T00:00:00Z" for day in ("04-29", "04-30", "05-01", "05-02"))
READ_TO = datetime(2026, 5, 2, 0, 30, tzinfo=UTC)
OPERATORS = {"spark.sql.shuffle.partitions": "6", "spark.databricks.delta.snapshotPartitions": "3"}
"""Options that the cluster's operator has chosen, unlike those of a job on one machine."""
TABLES = {
    # Ids count what was inserted; times say when a run was.
    "quotas_quotaday": {"id"},
    "quotas_quotadaystaged": {"id"},
    "metering_reconciliation": {"at_ms"},
    "metering_difference": set(),
    "metering_usagemaximum": {"id", "updated_at_ms"},
    "metering_foldedhour": {"id"},
    "metering_foldedtopicday": {"id"},
    "metering_foldedinstancehour": {"id"},
    "metering_jobrun": {"asked_at_ms", "started_at_ms", "seen_at_ms", "ended_at_ms"},
}
"""What jobs write, and the columns that two runs of the same have different."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the same programs have left, and what they said."""

    ends: tuple[tuple[int, list[str]], ...]  # exit status, and what differs
    database: dict[str, bytes]  # by table: its rows in order, as PostgreSQL writes them
    lake: dict[str, list[str]]
    done: dict[str, Done]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with spark_home() as found:
        yield found


@pytest.fixture(scope="module")
def seed(home, postgresql_server, tmp_path_factory, django_db_blocker) -> Path:
    """The folder of the lake that is copied; the database `seed` belongs to it."""
    folder = tmp_path_factory.mktemp("seed")
    url = postgresql_server.database("seed")
    with django_db_blocker.unblock():
        tables_make(url)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE billing_invoice (instance_id VARCHAR(32), month VARCHAR(7), inputs JSONB)")
        connection.execute("CREATE TABLE instances_instance (id VARCHAR(32), cluster_id BIGINT)")
    minutes_make(url)
    usage_make(url, home, folder)
    return folder


def minutes_make(url: str) -> None:
    """Of the day of the report, with gaps; waits below the limit; and reports of days before."""
    database, dice = Database(Environment.read({"DATABASE_URL": url})), random.Random(3)
    names = [f"ins-{number:08}" for number in range(12)]

    def minute(instance: str, at: int) -> dict[str, object]:
        samples, limit = dice.randint(1, 6), None if instance == names[0] else dice.choice([1000, 2000])
        row: dict[str, object] = {"instance": instance, "at": at, "samples": samples, "minutes": 1}
        for place in ("produce", "consume"):
            row |= {
                f"{place}_bytes_per_s_sum": dice.randint(0, 1200 * samples), f"{place}_bytes_per_s_max": 0,
                f"{place}_limit_bytes_per_s": limit, f"{place}_throttled_ms_max": 0,
                f"{place}_throttled_ms": dice.choice([0, 0, 0, 700, 60_000]),
            }  # fmt: skip
        used = dice.randint(0, 2**49)
        stored = {"storage_used_bytes_sum": used, "storage_used_bytes_max": used, "storage_limit_bytes": 10**12}
        return row | stored | {"connections_sum": 0, "connections_max": 0}

    def wait(instance: str, direction: str, hour: int) -> dict[str, object]:
        started = f"{REPORTED}T{hour:02}:00:00.000Z"
        shares = {"over_1_s_percent": 0, "over_10_s_percent": 0, "over_60_s_percent": 0, "document": "{}"}
        return {
            "instance": instance, "direction": direction, "rule": "", "epoch": 1, "started_at": started,
            "throttled_ms": 60_000, "under_limit_ms": dice.randint(1, 60_000), **shares,
        }  # fmt: skip

    def reported(instance: str, before: int) -> dict[str, object]:
        day = REPORTED - timedelta(days=before)
        added = Added(
            instance, "produce", 2000, 1, 400 + 40 * (20 - before) + dice.randint(0, 9), 3, 4, 5, 9, 0, 0, 0, ()
        )
        return dict(zip(COLUMNS, row_of(day, added), strict=True))

    times = range(begins_at(REPORTED), ends_at(REPORTED), 60)
    rows_put(database, "history_minute", [minute(n, at) for n in names for at in times if dice.random() < 0.7])
    rows_put(database, "history_rolledup", [{"step_s": 60, "until": ends_at(REPORTED) + 3600}])
    waits = [wait(n, direction, dice.randrange(24)) for n in names[::2] for direction in ("produce", "consume")]
    rows_put(database, "quotas_recordedinterval", waits)
    rows_put(database, "quotas_quotaday", [reported(n, before) for n in names for before in range(1, 21)])
    database.close()


def rows_put(database: Database, table: str, rows: list[dict[str, object]]) -> None:
    statement = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({', '.join('?' * len(rows[0]))})"
    with database.transaction() as cursor:
        database.run_many(cursor, statement, [list(row.values()) for row in rows])


def usage_make(url: str, home: Path, folder: Path) -> None:
    """By the stream's own batches. The table begins before the first day; what is wrong is made behind the stream's back."""
    driver, topics = Driver(home, folder, url=url), ("orders", "clicks")

    def record(hour: str, instance: str, topic: str, count: int) -> bytes:
        return UsageRecord(4, "b4", hour, instance, topic, count, 2 * count, 3 * count, "uuid", "default").value()

    def at(hour: str) -> str:
        return hour.replace(":00:00Z", ":30:00+00:00")

    try:
        early = BEGINS.replace("T00", "T22")
        driver.take([(record(early, ONE, "orders", 1), 9, 0, at(early))], now=at(early))
        hours = [FIRST_DAY.replace("T00", f"T{hour:02}") for hour in range(0, 24, 3)]
        of_first_day = [
            (record(hour, instance, topic, 1000 * (number + 2)), at(hour))
            for number, hour in enumerate(hours)
            for instance in INSTANCES
            for topic in topics
        ]
        driver.take([(value, 9, 1 + number, moment) for number, (value, moment) in enumerate(of_first_day)])
        for batch in batches(told(16, INSTANCES), 500):
            driver.take(batch)
        fold(url)
        late = record(hours[2], TWO, "clicks", 1_000_000)
        driver.take([(late, 9, 1 + len(of_first_day), at(SECOND_DAY.replace("T00", "T23")))])
    finally:
        driver.kill()
    invoice = json.dumps({"version": 2, "used": [[SECOND_DAY, 5, 6, 7]], "late": []})
    with psycopg.connect(url) as connection:
        for statement, values in (
            ("DELETE FROM metering_usagemaximum WHERE boot = 'b1' AND hour >= %s", ["2026-05-01T20:00:00Z"]),
            ("UPDATE metering_progress SET complete_to_ms = %s", [int(READ_TO.timestamp() * 1000)]),
            ("INSERT INTO billing_invoice VALUES (%s, '2026-05', %s)", [ONE, invoice]),
        ):
            assert connection.execute(statement.encode(), values).rowcount > 0


def fold(url: str) -> None:
    """All before the second day."""
    database = Database(Environment.read({"DATABASE_URL": url}))
    folded.begin(database)
    assert folded.fold(database, since="", until=SECOND_DAY)
    while folded.sweep(database, folded.NOBODY):
        pass
    database.close()


def result(submitter: Submitter, server: PostgreSQLServer, seed: Path, name: str) -> Result:
    """All programs, on copies of database and lake."""
    url, lake = server.database(name, like="seed"), submitter.folder.with_name(f"lake-{name}")
    shutil.copytree(seed / "lake", lake)
    environment = {"DATABASE_URL": url, "SLUICE_LAKE": str(lake)}
    done = {
        "report": submitter.run(f"{JOBS}/quota_report.py", environment=environment, packages=False),
        "due": submitter.run(f"{JOBS}/reconcile.py", environment=environment),
        "named": submitter.run(
            f"{JOBS}/reconcile.py", "--from", FIRST_DAY, "--to", END, "--raise", environment=environment
        ),
    }
    return Result(
        tuple((each.status, [line for line in each.out.splitlines() if "\t" in line]) for each in done.values()),
        {table: dump(url, table, others) for table, others in TABLES.items()},
        {table: rows_in(lake / table) for table in reconcile.ROLL_UPS},
        done,
    )


def dump(url: str, table: str, without: set[str]) -> bytes:
    """All rows in order."""
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT * FROM {table} LIMIT 0".encode())
        names = [f'"{column.name}"' for column in found.description or () if column.name not in without]
        wanted = f"COPY (SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(names)}) TO STDOUT"
        with connection.cursor().copy(wanted.encode()) as copy:
            return b"".join(bytes(each) for each in copy)


@pytest.fixture(scope="module")
def alone(home, seed, postgresql_server, tmp_path_factory) -> Result:
    """On threads of the driver."""
    folder = tmp_path_factory.mktemp("alone")
    submitter = Submitter(folder / "programs", "local[2]", home / "metering" / "ivy", packages=PACKAGES)
    return result(submitter, postgresql_server, seed, "alone")


@pytest.fixture(scope="module")
def cluster_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def on_workers(home, seed, postgresql_server, cluster_folder) -> Result:
    """On a cluster."""
    with SparkCluster(cluster_folder / "spark") as cluster:
        told = cluster.of_jobs
        submitter = Submitter(
            cluster_folder / "programs", told["SPARK_MASTER"], home / "metering" / "ivy", Path(told["SPARK_CONF_DIR"]),
            PACKAGES, OPERATORS,
        )  # fmt: skip
        return result(submitter, postgresql_server, seed, "cluster")


def test_programs_end_and_say_the_same(alone, on_workers):
    for each in (alone, on_workers):
        ended = [(done.status, done.out[-2000:]) for done in each.done.values()]
        assert [status for status, _ in ended] == [0, 0, reconcile.DIFFERENT], ended
    assert on_workers.ends == alone.ends
    assert [len(differing) > 0 for _, differing in alone.ends] == [False, True, True]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_database_has_the_same_bytes(alone, on_workers, table):
    assert on_workers.database[table] == alone.database[table]


@pytest.mark.parametrize("table", reconcile.ROLL_UPS)
def test_a_table_of_the_lake_has_the_same_rows(alone, on_workers, table):
    assert on_workers.lake[table] == alone.lake[table]
    assert alone.lake[table]


def test_what_was_to_be_done_was_done(alone):
    rows = {table: text.decode().splitlines() for table, text in alone.database.items()}
    assert sum(f"\t{REPORTED}\t" in f"\t{row}\t" for row in rows["quotas_quotaday"]) == 12 * 3
    assert len(rows["quotas_quotaday"]) == 12 * (3 + 20)
    assert rows["quotas_quotadaystaged"] == []
    assert len(rows["metering_reconciliation"]) == 2
    due, named = ([line.split("\t") for line in differing] for _, differing in alone.ends[1:])
    assert {(line[0], line[3]) for line in due} == {("database", "b1"), ("invoices", "")}
    assert {line[0] for line in named} == {"invoices"}, "what the database lacked it has"
    (late,) = (row.split("\t") for row in rows["metering_foldedhour"] if row.startswith(f"{TWO}\t{FIRST_DAY[:11]}06:"))
    assert late[2] == str(1_000_000 - 3000 + 1000), "the late record of one topic, and what there was of the other"


def test_both_workers_had_tasks_of_spark_and_of_ours(on_workers, cluster_folder):
    for name, done in on_workers.done.items():
        executors = executors_of(cluster_folder / "spark", done.application)
        assert len(set(executors.values())) == WORKERS, (name, executors)
        for tasks in (done.tasks(), done.python_tasks()):
            assert set(tasks) == set(executors), (name, tasks)


def test_what_an_operator_says_of_spark_stands(on_workers):
    """Options for one machine are not put over those of a cluster."""
    for done in on_workers.done.values():
        assert {name: done.properties[name] for name in OPERATORS} == OPERATORS


def test_the_database_is_in_no_configuration(on_workers):
    told = [value for done in on_workers.done.values() for value in done.properties.values()]
    assert not [value for value in told if "postgresql:" in value]
