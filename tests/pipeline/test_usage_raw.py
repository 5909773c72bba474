"""Raw records on a real Spark with Delta Lake: each once, whatever is killed; hours recomputed from them, and what differs."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane.env import ROOT, Environment
from controlplane.metering.pipeline import folded
from controlplane.metering.pipeline.session import kafka_jars
from controlplane.metering.pipeline.tables import Database
from controlplane.stack.process import dies_with_parent
from quota.contracts.usage import COUNTERS, HoursComplete, InstanceRecord, UsageRecord, UserRecord
from tests.pipeline.raw_driver import KILLS, TOPIC_ID
from tests.support.spark_home import spark_home

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
ONE, TWO = "ins-aaaaaaaa", "ins-bbbbbbbb"
THREE, FOUR = "ins-cccccccc", "ins-dddddddd"
DAY, NEXT = "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"


class Driver:
    """The process. Started by the first order, and again by the first one after its death."""

    def __init__(self, home: Path, folder: Path, database: Path | None = None, url: str = "") -> None:
        """`url`: of a database that is no file."""
        self._home, self._folder, self.database = home, folder, database
        self._url = url or f"sqlite:///{database}"
        self._process: subprocess.Popen[str] | None = None
        self._batch = 0

    def take(
        self,
        records: list[tuple[bytes, int, int, str]],
        kill: str | None = None,
        cluster: str | None = None,
        **how: Any,
    ) -> None:
        """One batch; where it comes to nothing, the same again."""
        order = {"take": [(value.decode(), *rest) for value, *rest in records], "batch": self._batch, "kill": kill}
        order |= {"cluster": cluster, **how}
        answer = self.ask(order)
        if kill is not None:
            assert answer == ("overtaken" if kill == "another job is first" else {"killed": kill})
            answer = self.ask(order | {"kill": None})
        assert answer == "taken"
        self._batch += 1

    def sql(self, statement: str) -> list[list[Any]]:
        return self.ask({"sql": statement})

    def reconcile(self, start: str = DAY, end: str = NEXT, *, raises: bool = False) -> dict[str, Any]:
        return self.ask({"reconcile": [start, end], "raises": raises})

    def run(self, at: str) -> dict[str, Any]:
        """The job at some moment, with what is due."""
        return self.ask({"run": None, "at": at})

    def table(self, cluster_table: str) -> Path:
        """The folder of a table of raw records."""
        return self._folder / "lake" / cluster_table

    def ask(self, order: dict[str, Any]) -> Any:
        process = self._process or self._start()
        print(json.dumps(order), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if answer:
            return json.loads(answer)
        self._process = None
        code = process.wait(20)
        close(process)
        assert code == -signal.SIGKILL, self.tail()
        assert order.get("kill"), self.tail()
        return {"killed": order["kill"]}

    def _start(self) -> subprocess.Popen[str]:
        had_jars = bool(kafka_jars(self._home / "metering"))
        environment = {
            **os.environ, "SLUICE_STACK_DIR": str(self._home), "SPARK_MASTER": "local[2]",
            "SLUICE_LAKE": str(self._folder / "lake"), "DATABASE_URL": self._url,
        }  # fmt: skip
        with (self._folder / "driver.log").open("ab") as log:
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.raw_driver"],
                cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip
        if not process.stdout.readline():
            self.kill()
            if had_jars:
                raise AssertionError(self.tail())
            pytest.skip("Delta Lake and Spark's Kafka source are not here, and Maven Central does not give them")
        return process

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            close(self._process)
            self._process = None

    def tail(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-4000:]


def close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            stream.close()


@pytest.fixture
def driver(tmp_path, database_file) -> Iterator[Driver]:
    connection = sqlite3.connect(database_file)
    connection.execute("CREATE TABLE billing_invoice (instance_id VARCHAR(32), month VARCHAR(7), inputs TEXT)")
    connection.execute("CREATE TABLE instances_instance (id VARCHAR(32), cluster_id BIGINT)")
    connection.commit()
    connection.close()
    with spark_home() as home:
        made = Driver(home, tmp_path, database_file)
        yield made
        made.kill()


def changed(driver: Driver, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(driver.database)
    assert connection.execute(statement, values).rowcount > 0
    connection.commit()
    connection.close()


def told(seed: int, instances: tuple[str, ...] = (ONE, TWO), prefix: str = "b") -> list[tuple[bytes, int, int, str]]:
    """A day of two brokers: counters that grow, records that come twice and late, hours, instances, users, something broken."""
    dice = random.Random(seed)
    ends: dict[int, int] = defaultdict(int)
    counters: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    found = []

    def write(value: bytes, at: str) -> None:
        partition = dice.randrange(3)
        found.append((value, partition, ends[partition], at))
        ends[partition] += 1

    for hour in range(24):
        text, at = f"2026-05-01T{hour:02}:00:00Z", f"2026-05-01T{hour:02}:30:00+00:00"
        for boot in (f"{prefix}1", f"{prefix}2"):
            for instance in instances:
                for topic in ("orders", "clicks"):
                    key = (boot, instance, topic)
                    counters[key] = [value + dice.randint(0, 10**9) for value in counters[key]]
                    record = UsageRecord(int(boot[1]), boot, text, instance, topic, *counters[key], "uuid", "default")
                    for _ in range(dice.choice([1, 1, 2])):
                        write(record.value(), at)
            write(
                InstanceRecord(int(boot[1]), boot, text, instances[0], hour * 10, 0, hour, 0, 0, "default").value(), at
            )
            for user in ("", "alice"):
                write(
                    UserRecord(int(boot[1]), boot, text, instances[0], user, hour * 5, 0, hour, "default").value(), at
                )
            write(HoursComplete(int(boot[1]), boot, text, (), "default").value(), at)
    write(b"broken", "2026-05-01T23:30:00+00:00")
    late = UsageRecord(1, f"{prefix}1", "2026-05-01T03:00:00Z", instances[0], "orders", 1, 1, 1, "uuid", "default")
    write(late.value(), "2026-05-01T23:40:00+00:00")
    return found


def batches(records: list[tuple[bytes, int, int, str]], size: int) -> Iterator[list[tuple[bytes, int, int, str]]]:
    for begins in range(0, len(records), size):
        yield records[begins : begins + size]


def used(records: list[tuple[bytes, int, int, str]]) -> int:
    """Bytes produced in all, as a plain reader counts them."""
    largest: dict[tuple[str, str, str], int] = defaultdict(int)
    for value, *_ in records:
        document = json.loads(value) if value.startswith(b"{") else {}
        if "produced_bytes" in document:
            key = (document["boot"], document["instance"], document["topic"])
            largest[key] = max(largest[key], document["produced_bytes"])
    return sum(largest.values())


@pytest.mark.long
def test_each_record_is_there_once_whatever_is_killed_and_hours_are_what_the_database_has(driver):
    records = told(7)
    cut = list(batches(records, 40))
    for number, batch in enumerate(cut):
        driver.take(batch, kill=KILLS[number // 2 % len(KILLS)] if number % 2 else None)
    assert len(cut) >= 2 * len(KILLS)
    driver.take(cut[1])  # a checkpoint that was lost: old batches come again, cut in another way
    driver.take(cut[2] + cut[3][:10])
    counts = driver.sql("SELECT COUNT(*), COUNT(DISTINCT partition, offset) FROM {usage_raw} WHERE kind <> 'known'")
    assert counts == [[len(records), len(records)]]
    kinds = dict(driver.sql("SELECT kind, COUNT(*) FROM {usage_raw} GROUP BY kind"))
    assert (kinds["complete"], kinds["instance"], kinds["user"], kinds["bad"]) == (48, 48, 96, 1)
    assert driver.sql("SELECT raw, problem FROM {usage_raw} WHERE kind = 'bad'") == [
        ["broken", "not a JSON object with a version"]
    ]
    ends = {
        str(partition): 1 + max(offset for _, at, offset, _ in records if at == partition) for partition in range(3)
    }
    assert driver.ask({"held": TOPIC_ID}) == ends
    assert driver.ask({"held": "another"}) == {}

    compared = driver.reconcile()
    assert (compared["keys"], compared["differences"], compared["raised"]) == (24 * 8, 0, 0)
    sums = driver.sql("SELECT CAST(SUM(produced_bytes) AS BIGINT) FROM {usage_hourly}")
    assert sums == driver.sql("SELECT CAST(SUM(produced_bytes) AS BIGINT) FROM {usage_daily}") == [[used(records)]]
    assert driver.sql("SELECT CAST(SUM(wire_in_bytes) AS BIGINT) FROM {usage_instances_hourly}") == [[2 * 230]]
    driver.reconcile()
    assert driver.sql("SELECT COUNT(*) FROM {usage_hourly}") == [[24 * 4]], "a repetition replaces"
    verified = driver.ask({"verify": [DAY, NEXT]})
    assert (verified["held"], verified["keys"], verified["differences"]) == (ends, 24 * 8, 0)
    of_partitions = [[offset for _, at, offset, _ in records if at == partition] for partition in range(3)]
    places = [verified["places"][str(partition)][:4] for partition in range(3)]
    assert places == [[len(each), len(each), max(each), sum(each)] for each in of_partitions]


@pytest.mark.long  # minutes
def test_a_table_of_before_users_were_counted_is_read_and_gets_their_column_with_the_next_batch(driver):
    records = told(5)
    cut = len(records) // 2
    driver.take(records[:cut], before_users=True)
    assert "user_name" not in {name for name, *_ in driver.sql("DESCRIBE TABLE {usage_raw}")}
    assert driver.reconcile()["differences"] == 0
    driver.take(records[cut:])
    users = "SELECT user_name, COUNT(*) FROM {usage_raw} WHERE kind = 'user' GROUP BY user_name ORDER BY user_name"
    found = dict(driver.sql(users))
    assert set(found) == {None, "", "alice"}, "what came before has no names"
    assert sum(found.values()) == 96
    assert driver.sql("SELECT COUNT(*), COUNT(DISTINCT partition, offset) FROM {usage_raw} WHERE kind <> 'known'") == [
        [len(records), len(records)]
    ]
    assert driver.reconcile()["differences"] == 0


@pytest.mark.long  # minutes
def test_of_two_jobs_that_write_at_the_same_time_each_record_is_there_once(driver):
    records = told(11)
    for number, batch in enumerate(batches(records, 150)):
        driver.take(batch, kill="another job is first" if number < 2 else None)
    counts = driver.sql("SELECT COUNT(*), COUNT(DISTINCT partition, offset) FROM {usage_raw}")
    assert counts == [[len(records), len(records)]]
    assert driver.reconcile()["differences"] == 0


@pytest.mark.long
def test_what_the_database_lacks_is_found_and_put_back(driver):
    for batch in batches(told(8), 400):
        driver.take(batch)
    changed(driver, "DELETE FROM metering_usagemaximum WHERE boot = 'b1' AND hour >= '2026-05-01T20:00:00Z'")
    compared = driver.reconcile()
    assert {(each["against"], each["boot"]) for each in compared["found"]} == {("database", "b1")}
    assert {each["hour"][11:13] for each in compared["found"]} == {"20", "21", "22", "23"}
    assert {each["known"] for each in compared["found"]} == {"0"}
    assert {each["counter"] for each in compared["found"]} <= set(COUNTERS)
    assert driver.reconcile(raises=True)["raised"] > 0
    assert driver.reconcile()["differences"] == 0


@pytest.mark.long
def test_what_was_invoiced_is_compared_and_late_usage_differs_until_it_is_adjusted(driver):
    records = told(9)
    for batch in batches(records, 400):
        driver.take(batch)
    driver.reconcile()  # which writes the roll-ups
    billed = driver.sql(
        "SELECT hour, CAST(SUM(produced_bytes) AS BIGINT), CAST(SUM(consumed_bytes) AS BIGINT),"
        f" CAST(SUM(stored_byte_seconds) AS BIGINT) FROM {{usage_hourly}} WHERE instance = '{ONE}' GROUP BY hour"
    )
    inputs = {"version": 2, "used": billed, "late": []}
    changed(driver, "INSERT INTO billing_invoice VALUES (?, '2026-05', ?)", ONE, json.dumps(inputs))
    assert driver.reconcile()["differences"] == 0
    end = 1 + max(offset for _, partition, offset, _ in records if partition == 0)
    late = UsageRecord(3, "b3", "2026-05-01T05:00:00Z", ONE, "orders", 500, 0, 0, "uuid", "default")
    driver.take([(late.value(), 0, end, "2026-05-01T23:50:00+00:00")])
    (found,) = driver.reconcile()["found"]
    assert (found["against"], found["hour"], found["counter"]) == ("invoices", "2026-05-01T05:00:00Z", "produced_bytes")
    assert int(found["recomputed"]) - int(found["known"]) == 500
    adjusting = {"month": "2026-05", "by_hour": True, "changed": [["2026-05-01T05:00:00Z", 500, 0, 0]]}
    changed(
        driver, "INSERT INTO billing_invoice VALUES (?, '2026-06', ?)", ONE,
        json.dumps({"version": 2, "used": [], "late": [adjusting]}),
    )  # fmt: skip
    assert driver.reconcile()["differences"] == 0


@pytest.mark.long
def test_a_new_table_begins_with_what_the_database_knew(driver):
    """The stream ran before there was a table: the counters of a boot that lives on are known, and its next hour is right."""
    records = told(10)
    early = [record for record in records if record[3] < "2026-05-01T12"]
    driver.take(early)
    driver.kill()
    lake = driver._folder / "lake" / "usage_raw"
    lake.rename(lake.with_name("lost"))
    driver.take([record for record in records if record[3] >= "2026-05-01T12"])
    assert driver.sql("SELECT COUNT(*) FROM {usage_raw} WHERE kind = 'known'") == [[8]]
    compared = driver.reconcile("2026-05-01T12:00:00Z", NEXT)
    assert (compared["keys"], compared["differences"]) == (12 * 8, 0)


@pytest.mark.long
def test_a_cluster_whose_table_is_gone_is_left_out_on_both_sides_until_it_is_back(driver):
    """The second table has what the database knew of the first cluster's instances when it was made: that counts for nothing."""
    two_clusters(driver)
    driver.take(told(12))
    driver.take(told(13, (THREE, FOUR), "c"), cluster="second")
    read_to = int(datetime(2026, 5, 2, 0, 30, tzinfo=UTC).timestamp() * 1000)
    changed(driver, "UPDATE metering_progress SET complete_to_ms = ?", read_to)
    whole = driver.run("2026-05-02T00:40:00+00:00")
    assert only(whole) == (2 * 24 * 8, 0, [])
    rolled_up = driver.sql("SELECT * FROM {usage_hourly} ORDER BY hour, instance, topic")
    assert len(rolled_up) == 2 * 24 * 4

    changed(driver, "DELETE FROM metering_reconciliation")
    lake = driver.table("usage_raw")
    away = lake.rename(lake.with_name("away"))
    without = driver.run("2026-05-02T00:40:00+00:00")
    assert only(without) == (24 * 8, 0, ["default"])
    assert whole["done_to_ms"] - without["done_to_ms"] == 24 * 3_600_000, "the day stays due"
    assert driver.sql("SELECT * FROM {usage_hourly} ORDER BY hour, instance, topic") == rolled_up
    for name in ("usage_daily", "usage_instances_hourly"):
        assert driver.sql(f"SELECT COUNT(DISTINCT instance) FROM {{{name}}} WHERE day = '2026-05-01'") > [[1]]

    away.rename(lake)
    assert driver.run("2026-05-03T00:10:00+00:00") == whole


def two_clusters(driver: Driver) -> None:
    """Each with two instances."""
    connection = sqlite3.connect(driver.database)
    for name, instances in (("default", (ONE, TWO)), ("second", (THREE, FOUR))):
        made = connection.execute(
            "INSERT INTO clusters_physicalcluster (name, zookeeper_hosts, state, capacity) VALUES (?, ?, 'open', 10)",
            [name, name],
        )
        connection.executemany(
            "INSERT INTO instances_instance VALUES (?, ?)", [(each, made.lastrowid) for each in instances]
        )
    connection.commit()
    connection.close()


def only(run: dict[str, Any]) -> tuple[int, int, list[str]]:
    """Of a run that compared one range."""
    (compared,) = run["done"]
    return compared["keys"], compared["differences"], compared["gone"]


@pytest.mark.long
def test_what_comes_late_for_a_folded_day_is_put_right_there_and_a_table_that_lacks_records_lowers_nothing(driver):
    records = told(14)
    for batch in batches(records, 400):
        driver.take(batch)
    fold(driver, NEXT)
    # Two instances' hours, four topics' days; one instance's own hours, its users' hours and days.
    rows = 2 * 24 + 4 + 24 + 24 + 2
    compared = driver.reconcile()
    assert (compared["keys"], compared["differences"], compared["raised"]) == (rows, 0, 0)

    end = 1 + max(offset for _, partition, offset, _ in records if partition == 0)
    before = folded_hour(driver, ONE)
    late = UsageRecord(3, "b3", "2026-05-01T05:00:00Z", ONE, "orders", 500, 0, 0, "uuid", "default")
    driver.take([(late.value(), 0, end, "2026-05-01T23:50:00+00:00")])
    assert folded_hour(driver, ONE) == before, "the stream does not see folded days"
    compared = driver.reconcile()
    assert (compared["raised"], compared["differences"]) == (2, 0), "the hour, and the topic's day"
    assert folded_hour(driver, ONE) == before + 500

    changed(driver, "UPDATE metering_foldedhour SET produced_bytes = produced_bytes + 9 WHERE hour LIKE '%T05:00:00Z'")
    compared = driver.reconcile()
    assert (compared["raised"], compared["differences"]) == (0, 2), "both instances have less: that is for an operator"
    assert {(each["against"], each["boot"], each["topic"]) for each in compared["found"]} == {("database", "", "")}

    changed(
        driver,
        "INSERT INTO metering_cap (instance, boot, topic, produced_bytes, reason, set_at, set_by)"
        " VALUES (?, 'b3', 'orders', 200, 'r', '2026-05-02 00:00:00', 's')",
        ONE,
    )
    compared = driver.reconcile()
    assert (compared["raised"], compared["differences"]) == (2, 1)
    assert folded_hour(driver, ONE) == before + 200

    changed(driver, "UPDATE metering_foldedhour SET produced_bytes = produced_bytes + 9 WHERE hour LIKE '%T07:00:00Z'")
    changed(driver, "UPDATE metering_cap SET produced_bytes = 150")
    other = folded_hour(driver, ONE, "2026-05-01T07:00:00Z")
    compared = driver.reconcile()
    assert (compared["raised"], compared["differences"]) == (2, 3)
    assert folded_hour(driver, ONE) == before + 150
    assert folded_hour(driver, ONE, "2026-05-01T07:00:00Z") == other, "a cap changes no other hour"


@pytest.mark.long
def test_the_daily_run_looks_for_late_usage_and_caps_of_folded_days(driver):
    two_clusters(driver)
    records = told(15)
    driver.take(records)
    read_to(driver, datetime(2026, 5, 2, 0, 30, tzinfo=UTC))
    driver.run("2026-05-02T00:40:00+00:00")
    fold(driver, NEXT)
    before = folded_hour(driver, ONE)
    end = 1 + max(offset for _, partition, offset, _ in records if partition == 0)
    late = UsageRecord(3, "b3", "2026-05-01T05:00:00Z", ONE, "orders", 500, 0, 0, "uuid", "default")
    # Written before the first run, and read after it.
    driver.take([(late.value(), 0, end, "2026-05-02T00:20:00+00:00")])
    read_to(driver, datetime(2026, 5, 3, 0, 30, tzinfo=UTC))
    driver.run("2026-05-03T00:40:00+00:00")
    assert folded_hour(driver, ONE) == before + 500
    changed(
        driver,
        "INSERT INTO metering_cap (instance, boot, topic, produced_bytes, reason, set_at, set_by)"
        " VALUES (?, 'b3', 'orders', 200, 'r', '2026-05-03 08:00:00', 's')",
        ONE,
    )
    read_to(driver, datetime(2026, 5, 4, 0, 30, tzinfo=UTC))
    driver.run("2026-05-04T00:40:00+00:00")
    assert folded_hour(driver, ONE) == before + 200


def read_to(driver: Driver, moment: datetime) -> None:
    changed(driver, "UPDATE metering_progress SET complete_to_ms = ?", int(moment.timestamp() * 1000))


def fold(driver: Driver, until: str) -> None:
    """All days before, as beat's task does it, and their key rows deleted."""
    database = Database(Environment.read({"DATABASE_URL": f"sqlite:///{driver.database}"}))
    folded.begin(database)
    assert folded.fold(database, since="", until=until)
    while folded.sweep(database, folded.NOBODY):
        pass
    database.close()


def folded_hour(driver: Driver, instance: str, hour: str = "2026-05-01T05:00:00Z") -> int:
    connection = sqlite3.connect(driver.database)
    statement = "SELECT produced_bytes FROM metering_foldedhour WHERE instance = ? AND hour = ?"
    (produced,) = connection.execute(statement, [instance, hour]).fetchone()
    connection.close()
    return produced
