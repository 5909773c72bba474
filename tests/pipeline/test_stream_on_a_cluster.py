"""The usage stream by spark-submit, on threads of one process and on a standalone Master with two Workers: the same to the byte.

Both read `__usage` of one real broker at the same time, each into a database and a lake of its own. SIGTERM stops them, as an
operator does, and started again they go on with what was written meanwhile.

The Workers' folders are apart, no process of Spark but the driver is told where the database is, and what Spark takes for its
file system, where no URI says which, is not the driver's disk.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from controlplane.metering.pipeline import session
from controlplane.stack.metering import absence
from tests.support.delta_tables import rows_in
from tests.support.ports import free_port
from tests.support.processes import HOST, broker_process, secrets_file
from tests.support.spark_cluster import WORKERS, SparkCluster, executors_of
from tests.support.spark_home import spark_home
from tests.support.spark_submit import NO_DISK, Begun, Done, Submitter
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer

from .conftest import tables_make
from .stream import usage_values, usage_write
from .test_jobs_on_a_cluster import dump
from .test_killed_stream import SETTINGS
from .test_usage_raw import told, used

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
STREAM = "controlplane/metering/pipeline/jobs/usage.py"
METERED_WITHIN_S, STOPS_WITHIN_S, LEAVES_WITHIN_S = 300, 60, 30
OPERATORS = {"spark.sql.shuffle.partitions": "3", "spark.databricks.delta.snapshotPartitions": "3"}
"""Options that the cluster's operator has chosen, unlike those of the stream on one machine."""
TABLES = {
    # Ids count what was inserted; times say when the stream looked.
    "metering_usagemaximum": {"id", "updated_at_ms"},
    "metering_instancemaximum": {"id", "updated_at_ms"},
    "metering_usermaximum": {"id", "updated_at_ms"},
    "metering_stagedmaximum": set(),
    "metering_statement": {"id"},
    "metering_boot": {"id"},
    "metering_progress": {"id", "looked_at_ms", "complete_to_ms"},
    "metering_loss": set(),
}
"""What the stream writes, and the columns that two of them have different."""
TERMINATED = 128 + signal.SIGTERM
"""How a JVM ends that was told to."""
RECORDS = told(16)
RUNS = "SELECT state, reason FROM metering_jobrun ORDER BY id"


@dataclass(frozen=True, slots=True)
class Source:
    """The broker's `__usage`."""

    inside: str
    secrets: Path


@dataclass
class Stream:
    """One of the two."""

    submitter: Submitter
    environment: Mapping[str, str]
    url: str
    lake: Path
    begun: Begun | None = None

    def start(self) -> Begun:
        self.begun = self.submitter.start(STREAM, environment=self.environment)
        return self.begun

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(statement.encode()).fetchall()

    def positions(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT partition, next_offset FROM metering_progress ORDER BY partition")

    def has_read(self, until_ms: float) -> bool:
        """Whether it has, and has looked since, all that was written to the topic before a moment."""
        assert self.begun is not None
        assert self.begun.is_running, self.begun.tail()
        ((read_to_ms,),) = self.rows("SELECT MIN(COALESCE(complete_to_ms, 0)) FROM metering_progress")
        return read_to_ms is not None and read_to_ms >= until_ms

    def stop(self) -> Done:
        assert self.begun is not None
        self.begun.ask()
        done = self.begun.ended(STOPS_WITHIN_S)
        wait_for(lambda: not self.begun.left(), LEAVES_WITHIN_S, "Python to end, and its workers")
        return done


@dataclass(frozen=True, slots=True)
class Result:
    """What a stream has left: by table of the database its rows in order, those of the lake, how its two runs ended."""

    database: dict[str, bytes]
    lake: list[str]
    produced_bytes: int
    done: list[Done]
    runs: list[tuple[str, str]]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Iterator[Source]:
    folder = tmp_path_factory.mktemp("broker")
    secrets, zookeeper = secrets_file(folder), ZooKeeperServer(folder / "zookeeper", free_port())
    broker = broker_process(folder, 1, zookeeper=zookeeper.hosts, secrets=secrets, settings=SETTINGS)
    made = Source(f"{HOST}:{broker.ports['internal']}", secrets)
    try:
        zookeeper.start()
        broker.start()
        wait_for(broker.accepts, 30, "the broker")
        wait_for(lambda: usage_values(made.inside), 60, "the broker's word on the hours before it")
        yield made
    finally:
        broker.kill()
        zookeeper.stop()


@pytest.fixture(scope="module")
def cluster_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def both(source, postgresql_server, cluster_folder, django_db_blocker) -> dict[str, Result]:
    """Read half of the records, are stopped, are started again for the other half, and are stopped."""
    with spark_home() as home, SparkCluster(cluster_folder / "spark") as cluster, contextlib.ExitStack() as stack:
        ivy, of_cluster = home / "metering" / "ivy", cluster.of_jobs
        folder, conf = cluster_folder.with_name("streams"), Path(of_cluster["SPARK_CONF_DIR"])
        submitters = {
            "alone": Submitter(folder / "alone", "local[2]", ivy, packages=session.PACKAGES),
            "cluster": Submitter(
                folder / "cluster", of_cluster["SPARK_MASTER"], ivy, conf, session.PACKAGES, OPERATORS | NO_DISK
            ),
        }
        streams = {}
        for name, submitter in submitters.items():
            with django_db_blocker.unblock():
                streams[name] = stream_of(submitter, source, postgresql_server.database(f"stream-{name}"))
        values, done = [value for value, *_ in RECORDS], {name: list[Done]() for name in streams}
        for half in (values[::2], values[1::2]):
            usage_write(source.inside, half)
            until_ms = time.time() * 1000
            for stream in streams.values():
                stack.callback(stream.start().kill)
            for name, stream in streams.items():
                wait_for(partial(stream.has_read, until_ms), METERED_WITHIN_S, f"stream {name}")
            wait_for(
                lambda: len({str(stream.positions()) for stream in streams.values()}) == 1, 60, "both to be as far"
            )
            for name, stream in streams.items():
                done[name].append(stream.stop())
        return {name: result(stream, done[name]) for name, stream in streams.items()}


def stream_of(submitter: Submitter, source: Source, url: str) -> Stream:
    """With its tables and an empty lake."""
    tables_make(url)
    lake = submitter.folder.with_name(f"{submitter.folder.name}-lake")
    environment = {
        "SLUICE_BROKERS": source.inside, "SLUICE_SECRETS_FILE": str(source.secrets), "DATABASE_URL": url,
        "SLUICE_LAKE": lake.as_uri(), "SLUICE_USAGE_TRIGGER_S": "1",
        "SLUICE_STACK_DIR": str(submitter.folder.with_name(f"{submitter.folder.name}-stack")),
    }  # fmt: skip
    return Stream(submitter, environment, url, lake)


def result(stream: Stream, done: list[Done]) -> Result:
    produced = "produced_bytes - produced_bytes_before"
    ((produced_bytes,),) = stream.rows(f"SELECT SUM(GREATEST({produced}, 0)) FROM metering_usagemaximum")
    return Result(
        {table: dump(stream.url, table, others) for table, others in TABLES.items()},
        rows_in(stream.lake / "usage_raw"),
        int(produced_bytes),
        done,
        stream.rows(RUNS),
    )


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_database_has_the_same_bytes(both, table):
    assert both["cluster"].database[table] == both["alone"].database[table]


def test_the_lake_has_the_same_rows_one_for_each_record(both, source):
    assert both["cluster"].lake == both["alone"].lake
    assert len(both["alone"].lake) == len(usage_values(source.inside))


def test_what_was_to_be_metered_was_metered(both):
    alone = both["alone"]
    rows = {table: len(text.decode().splitlines()) for table, text in alone.database.items()}
    assert alone.produced_bytes == used(RECORDS)
    assert (rows["metering_usagemaximum"], rows["metering_instancemaximum"], rows["metering_usermaximum"]) == (
        192,
        48,
        96,
    )
    assert rows["metering_statement"] > 0
    assert (rows["metering_stagedmaximum"], rows["metering_loss"]) == (0, 0)


def test_a_stream_that_was_told_to_end_has_ended_well(both):
    for each in both.values():
        assert each.runs == [("succeeded", "")] * 2
        assert [done.status for done in each.done] == [TERMINATED] * 2


def test_both_workers_had_tasks_of_spark_and_of_ours(both, cluster_folder):
    for done in both["cluster"].done:
        executors = executors_of(cluster_folder / "spark", done.application)
        assert len(set(executors.values())) == WORKERS, executors
        for tasks in (done.tasks(), done.python_tasks()):
            assert set(tasks) == set(executors), tasks


def test_what_an_operator_says_of_spark_stands_and_where_he_says_nothing_the_stream_has_its_own(both):
    for done in both["cluster"].done:
        assert {name: done.properties[name] for name in OPERATORS} == OPERATORS
        others = {name: done.properties[name] for name in session.OPTIONS if name not in OPERATORS}
        assert others == {name: value for name, value in session.OPTIONS.items() if name not in OPERATORS}


def test_the_database_is_in_no_configuration(both):
    told_of = [value for each in both.values() for done in each.done for value in done.properties.values()]
    assert not [value for value in told_of if "postgresql:" in value]


def test_python_ends_when_its_jvm_is_killed(source, postgresql_server, tmp_path, django_db_blocker):
    """No other JVM is to be had: who starts spark-submit again has a new one."""
    with spark_home() as home, django_db_blocker.unblock():
        submitter = Submitter(tmp_path / "killed", "local[1]", home / "metering" / "ivy", packages=session.PACKAGES)
        stream = stream_of(submitter, source, postgresql_server.database("stream-killed"))
        begun = stream.start()
        try:
            wait_for(lambda: stream.rows(RUNS), METERED_WITHIN_S, "the stream to begin")
            begun.ask(signal.SIGKILL)
            assert begun.ended(STOPS_WITHIN_S).status == -signal.SIGKILL
            wait_for(lambda: not begun.left(), LEAVES_WITHIN_S, "Python to end, and its workers")
        finally:
            begun.kill()
        assert [state for state, _ in stream.rows(RUNS)] == ["failed"]
