"""The stream job's batches on a real local Spark: what is good, what is refused, and that running twice is running once."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from controlplane.metering.pipeline import progress_table, transforms
from controlplane.metering.pipeline.jobs import usage
from controlplane.metering.pipeline.jobs.usage import AheadError, UsageJob
from controlplane.metering.pipeline.positions import TopicState
from controlplane.metering.pipeline.settings import Settings
from quota.contracts.usage import HoursComplete, InstanceRecord, UsageRecord, UserRecord

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(240),
    # PySpark leaves the sockets that results come through to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

SOURCE = StructType(
    [
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)
"""The columns of Spark's Kafka source that the job reads."""
TEN = "2026-05-01T10:00:00Z"


def record(produced: int, *, hour: str = TEN, topic: str = "orders", boot: str = "b1", consumed: int = 0) -> bytes:
    return UsageRecord(2, boot, hour, "ins-k3v9x2qa", topic, produced, consumed, 7200).value()


def complete(hour: str, *, broker: int = 2, boot: str = "b1", **members: object) -> bytes:
    return json.dumps(json.loads(HoursComplete(broker, boot, f"{hour}:00:00Z").value()) | members).encode()


def changed(**members: object) -> bytes:
    return json.dumps(json.loads(record(5)) | members).encode()


def of_instance(**members: object) -> bytes:
    told = InstanceRecord(2, "b1", TEN, "ins-k3v9x2qa", 5432, 987, 12, 3456, 0, "default")
    return json.dumps(json.loads(told.value()) | members).encode()


def of_user(**members: object) -> bytes:
    told = UserRecord(2, "b1", TEN, "ins-k3v9x2qa", "alice", 5432, 987, 12, "default")
    return json.dumps(json.loads(told.value()) | members).encode()


def of_version_1(produced: int, **members: object) -> bytes:
    """As a broker of the release before writes it."""
    document = json.loads(record(produced)) | {"version": 1} | members
    return json.dumps({name: value for name, value in document.items() if name not in ("cluster", "topic_id")}).encode()


def queried(database_file, statement: str) -> list[tuple]:
    connection = sqlite3.connect(database_file)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


@pytest.fixture
def batch(spark):
    """Records as the Kafka source hands them over, offsets counted from 100 on."""

    def make(*values: bytes | None, partition: int = 3, at: datetime | None = datetime(2026, 5, 1, 11, 30, tzinfo=UTC)):
        rows = [(value, partition, 100 + place, at) for place, value in enumerate(values)]
        return transforms.parsed(spark.createDataFrame(rows, SOURCE))

    return make


@pytest.fixture
def job(spark, tmp_path, database_file) -> UsageJob:
    settings = Settings.read({"SLUICE_STACK_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{database_file}"})
    made = UsageJob(settings, spark)
    made.sign_of_life(started=True)
    yield made
    made._database.close()
    made._signs.close()


def maxima(database_file) -> list[tuple]:
    return queried(
        database_file,
        "SELECT boot, topic, hour, broker, produced_bytes, consumed_bytes, source_partition, source_offset"
        " FROM metering_usagemaximum ORDER BY boot, topic, hour",
    )


def counts(database_file) -> tuple:
    return queried(database_file, "SELECT records, bad_records, batch FROM metering_pipelinestatus")[0]


def test_a_record_of_the_contract_is_good_and_keeps_every_member(batch):
    (row,) = transforms.good(batch(record(5, consumed=6))).collect()
    assert row.asDict() == {
        "instance": "ins-k3v9x2qa", "boot": "b1", "topic": "orders", "hour": TEN, "broker": 2, "produced_bytes": 5,
        "consumed_bytes": 6, "stored_byte_seconds": 7200, "source_partition": 3, "source_offset": 100,
        "recorded_at": datetime(2026, 5, 1, 11, 30),  # noqa: DTZ001  # Spark hands out naive times of its session's zone
    }  # fmt: skip


def test_what_breaks_the_contract_is_refused_with_a_sentence_and_never_raises(batch):
    refused = {
        None: "no value",
        b"": "not a JSON object with a version",
        b"\xff\x00": "not a JSON object with a version",
        b"[1]": "not a JSON object with a version",
        changed(version=3): "a version newer than 2",
        changed(cluster=None): "cluster or topic_id is missing",
        changed(topic_id=None): "cluster or topic_id is missing",
        changed(topic_id="x" * 37): "topic_id is not a topic's UUID",
        changed(cluster="x" * 65): "cluster is not a cluster's name",
        changed(topic_id="a\0b"): "topic_id is not a topic's UUID",
        changed(instance="k3v9x2qa"): "instance is not an instance id",
        changed(instance="ins-k3v9x2qa\n"): "instance is not an instance id",
        changed(topic=""): "topic is not a topic name",
        changed(topic="x" * 250): "topic is not a topic name",
        changed(topic="a\0b"): "topic is not a topic name",
        changed(boot=None): "boot is not a boot id",
        changed(boot="a\0b"): "boot is not a boot id",
        changed(hour="2026-05-01T10:30:00Z"): "hour is not the beginning of a UTC hour",
        changed(hour="2026-05-01T10:00:00Z\n"): "hour is not the beginning of a UTC hour",
        changed(hour="2026-02-30T10:00:00Z"): "hour is not the beginning of a UTC hour",
        changed(hour="0000-02-01T10:00:00Z"): "hour is not the beginning of a UTC hour",
        changed(broker="two"): "broker is not a number",
        changed(produced_bytes=-1): "produced_bytes is not a count of bytes",
        changed(produced_bytes=2**63): "produced_bytes is not a count of bytes",
        changed(produced_bytes=2**60): "produced_bytes is more than a broker can have counted",
        changed(consumed_bytes=2**62): "consumed_bytes is more than a broker can have counted",
        changed(consumed_bytes="5"): "consumed_bytes is not a count of bytes",
        changed(stored_byte_seconds=1.5): "stored_byte_seconds is not a count of bytes",
        changed(kind="hourly"): "a kind that is not known",
        of_instance(version=3): "a version newer than 2",
        of_instance(instance="x"): "instance is not an instance id",
        of_instance(hour="2026-05-01T10:30:00Z"): "hour is not the beginning of a UTC hour",
        of_instance(requests=-1): "requests is not a count",
        of_instance(wire_in_bytes=2**60): "wire_in_bytes is not a count",
        of_instance(loop_us=None): "loop_us is not a count",
        of_user(version=3): "a version newer than 2",
        of_user(instance="x"): "instance is not an instance id",
        of_user(user=None): "user is not a user's name",
        of_user(user="x" * 256): "user is not a user's name",
        of_user(user="a\0b"): "user is not a user's name",
        of_user(hour="2026-05-01T10:30:00Z"): "hour is not the beginning of a UTC hour",
        of_user(wire_out_bytes=-1): "wire_out_bytes is not a count",
        of_user(requests=None): "requests is not a count",
        complete("2026-05-01T09", version=3): "a version newer than 2",
        complete("2026-05-01T09", broker=None): "broker is not a number",
        complete("2026-05-01T09", boot=""): "boot is not a boot id",
        complete("2026-05-01T09", after=None): "after is not a list of boots",
        complete("2026-05-01T09", after=["x,y"]): "after is not a list of boots",
        complete("2026-05-01T09", after=[None]): "after is not a list of boots",
        complete("2026-05-01T09", after=["b0\n"]): "after is not a list of boots",
        complete("2026-05-32T09"): "hour is not the beginning of a UTC hour",
    }
    rows = batch(*refused, record(1))
    found = {row.source_offset - 100: row.problem for row in rows.where("problem IS NOT NULL").collect()}
    assert list(found.values()) == list(refused.values())
    assert [row.produced_bytes for row in transforms.good(rows).collect()] == [1]


def test_what_another_cluster_told_is_refused_by_name_and_not_booked(batch, job, database_file, spark, monkeypatch):
    """This job reads the topic of `default`. A broker that names no cluster is older than names."""
    others = [
        changed(cluster="east"), of_instance(cluster="east"), complete("2026-05-01T09", cluster="east"),
        of_user(cluster="east"),
    ]  # fmt: skip
    own = [record(1), changed(cluster="default", produced_bytes=9), of_version_1(4), complete("2026-05-01T09")]
    read = spark.createDataFrame(
        [(value, 3, 100 + place, datetime(2026, 5, 1, 11, 30, tzinfo=UTC)) for place, value in enumerate(others + own)],
        SOURCE,
    )
    monkeypatch.setattr(job, "_query_id", lambda: "0f3a77c2-query")
    job._batch(read, 0)
    assert counts(database_file) == (8, 4, 0)
    assert [row[4] for row in maxima(database_file)] == [9]
    assert queried(database_file, "SELECT COUNT(*) FROM metering_statement") == [(1,)]
    assert queried(database_file, "SELECT COUNT(*) FROM metering_instancemaximum") == [(0,)]
    assert queried(database_file, "SELECT COUNT(*) FROM metering_usermaximum") == [(0,)]
    refused = transforms.parsed(read, "default").where("problem IS NOT NULL").collect()
    assert {row.problem for row in refused} == {"cluster is not default, whose topic it is in"}


def test_records_of_both_versions_are_one_row_and_the_larger_counts(batch, job, database_file):
    """A broker is renewed: its new boot tells what the old one left, under the same key."""
    job.take(batch(of_version_1(5), of_version_1(9), record(9), record(4)), query="q", number=0)
    assert [row[:5] for row in maxima(database_file)] == [("b1", "orders", TEN, 2, 9)]
    assert counts(database_file) == (4, 0, 0)


def test_what_is_told_of_whole_instances_is_no_topics_usage_and_is_not_refused(batch, job, database_file):
    for _ in range(2):
        job.take(batch(of_instance(requests=9), of_instance(), of_instance(requests=3), record(5)), query="q", number=0)
    assert [row[1] for row in maxima(database_file)] == ["orders"]
    assert counts(database_file) == (4, 0, 0)
    of_it = "instance, boot, hour, broker, wire_in_bytes, wire_out_bytes, requests, loop_us, source_partition, source_offset"
    assert queried(database_file, f"SELECT {of_it} FROM metering_instancemaximum") == [
        ("ins-k3v9x2qa", "b1", TEN, 2, 5432, 987, 12, 3456, 3, 101)
    ]


OF_USERS = "user_name, boot, hour, broker, wire_in_bytes, wire_in_bytes_before, wire_out_bytes, requests, source_offset"


def users(database_file) -> list[tuple]:
    return queried(database_file, f"SELECT {OF_USERS} FROM metering_usermaximum ORDER BY user_name, boot, hour")


def test_what_is_told_of_users_is_a_row_of_each_and_hour_and_is_not_refused(batch, job, database_file):
    strange = "Zoë \N{GRINNING FACE}" + "x" * 250
    records = [
        of_user(requests=9), of_user(), of_user(requests=3), of_user(user=""), of_user(user=strange), of_user(user="*"),
        of_user(boot="b1.2", wire_in_bytes=7), of_instance(), record(5),
    ]  # fmt: skip
    for _ in range(2):
        job.take(batch(*records), query="q", number=0)
    assert users(database_file) == [
        ("", "b1", TEN, 2, 5432, 0, 987, 12, 103),
        ("*", "b1", TEN, 2, 5432, 0, 987, 12, 105),
        (strange, "b1", TEN, 2, 5432, 0, 987, 12, 104),
        ("alice", "b1", TEN, 2, 5432, 0, 987, 12, 101),
        ("alice", "b1.2", TEN, 2, 7, 0, 987, 12, 106),
    ]
    assert counts(database_file) == (9, 0, 0)
    assert queried(database_file, "SELECT COUNT(*) FROM metering_boot") == [(1,)], "boots are those of topics"


def test_a_late_record_of_a_user_takes_its_bytes_from_the_hour_behind_it_and_none_is_of_an_hour_to_come(
    batch, job, database_file
):
    at = datetime(2026, 5, 1, 11, 30, tzinfo=UTC)
    eleven = "2026-05-01T11:00:00Z"
    job.take(batch(of_user(hour="2026-06-01T00:00:00Z", wire_in_bytes=100, requests=20), at=at), query="q", number=0)
    assert [row[1:6] for row in users(database_file)] == [("b1", eleven, 2, 100, 0)]
    job.take(batch(of_user(wire_in_bytes=60), of_user(wire_in_bytes=50), at=at), query="q", number=1)
    assert [row[1:6] for row in users(database_file)] == [("b1", TEN, 2, 60, 0), ("b1", eleven, 2, 100, 60)]


def test_every_record_has_one_row_of_the_raw_table_whatever_it_is(batch):
    said, day = datetime(2026, 5, 1, 11, 30, tzinfo=UTC), "2026-05-01"
    early = record(6, hour="2026-06-01T00:00:00Z")
    rows = batch(
        record(5, consumed=6), of_instance(), complete("2026-05-01T10", after=["b0"]), b"broken", None, early, of_user(user=""),
        at=said,
    )  # fmt: skip
    raw = transforms.raw_rows(rows, "t1", NOW)
    assert tuple(raw.columns) == transforms.RAW
    found = [row.asDict() for row in raw.orderBy("offset").collect()]
    assert [row["kind"] for row in found] == [
        "usage", "instance", "complete", "bad", "bad", "usage", "user",
    ]  # fmt: skip
    assert {(row["topic_id"], row["partition"], row["day"]) for row in found} == {("t1", 3, day)}
    assert [row["offset"] for row in found] == list(range(100, 107))
    usage_, instance, whole, broken, empty, ahead, user = found
    assert (usage_["produced_bytes"], usage_["consumed_bytes"], usage_["booked_hour"]) == (5, 6, TEN)
    assert (usage_["raw"], usage_["problem"], usage_["wire_in_bytes"]) == (None, None, None)
    assert (instance["wire_in_bytes"], instance["requests"], instance["cluster"]) == (5432, 12, "default")
    assert (user["user_name"], user["wire_in_bytes"], user["loop_us"], instance["user_name"]) == ("", 5432, None, None)
    assert (whole["hour"], whole["after"], whole["produced_bytes"]) == (TEN, ["b0"], None)
    assert (broken["raw"], broken["problem"]) == ("broken", "not a JSON object with a version")
    assert (empty["raw"], empty["problem"], empty["booked_hour"]) == (None, "no value", None)
    assert (ahead["hour"], ahead["booked_hour"]) == ("2026-06-01T00:00:00Z", "2026-05-01T11:00:00Z")


def test_records_that_an_earlier_release_refused_are_read_again_from_their_text(batch):
    raw = transforms.raw_rows(batch(record(5), b"broken", at=NOW), "t1", NOW)
    refused = raw.select(
        *(
            F.lit("bad").alias(name) if name == "kind"
            else F.when(F.col("offset") == 100, F.lit(record(7).decode())).otherwise(F.col("raw")).alias(name) if name == "raw"
            else F.col(name)
            for name in transforms.RAW
        )
    )  # fmt: skip
    (row,) = transforms.read_again(refused, NOW).collect()
    assert (row.offset, row.kind, row.produced_bytes, row.booked_hour) == (100, "usage", 7, TEN)


def test_what_the_database_knew_has_the_columns_of_the_raw_table(spark, batch):
    known = transforms.known_rows(spark, [("ins-k3v9x2qa", "b1", "orders", TEN, 2, 7, 8, 2**62)], NOW)
    assert tuple(known.columns) == transforms.RAW
    read = transforms.raw_rows(batch(record(5)), "t1", NOW)
    assert [(each.name, each.dataType) for each in known.schema] == [(each.name, each.dataType) for each in read.schema]
    (row,) = known.collect()
    assert (row.kind, row.day, row.booked_hour, row.stored_byte_seconds) == ("known", "2026-05-01", TEN, 2**62)
    assert (row.partition, row.offset, row.wire_in_bytes) == (None, None, None)


def boots(database_file) -> list[tuple]:
    return queried(
        database_file,
        "SELECT broker, boot, first_hour, last_hour, first_at_ms, is_told FROM metering_boot ORDER BY broker, boot",
    )


def test_boots_that_tell_usage_are_kept_with_their_hours_in_whatever_order_records_come(batch, job, database_file):
    early, late = datetime(2026, 5, 1, 10, 5, tzinfo=UTC), datetime(2026, 5, 1, 11, 30, tzinfo=UTC)
    eleven = "2026-05-01T11:00:00Z"
    job.take(batch(record(9, hour=eleven), record(7, boot="b2.3"), at=late), query="q", number=0)
    job.take(batch(record(5), of_version_1(1, boot="b0"), at=early), query="q", number=1)
    assert boots(database_file) == [
        (2, "b1", TEN, eleven, int(early.timestamp() * 1000), 0),
        (2, "b2", TEN, TEN, int(late.timestamp() * 1000), 0),
    ]


def test_boots_that_certain_statements_account_for_are_told_and_stay_so(batch, job, database_file):
    at = datetime(2026, 5, 1, 11, 30, tzinfo=UTC)
    job.take(batch(record(5), record(5, boot="b2"), record(5, boot="b3"), at=at), query="q", number=0)
    said = datetime(2026, 5, 1, 12, 5, tzinfo=UTC)
    job.take(batch(complete("2026-05-01T11", boot="b2", after=["b1", "b3"]), at=said), query="q", number=1)
    with job._database.transaction() as cursor:
        job._database.statements_settle(cursor, int(said.timestamp() * 1000) - 1)
    assert {row[1]: row[-1] for row in boots(database_file)} == {"b1": 0, "b2": 0, "b3": 0}
    with job._database.transaction() as cursor:
        job._database.statements_settle(cursor, int(said.timestamp() * 1000))
    job.take(batch(record(6), record(5, boot="b4"), at=said), query="q", number=2)
    assert {row[1]: row[-1] for row in boots(database_file)} == {"b1": 1, "b2": 1, "b3": 1, "b4": 0}


NOW = datetime(2026, 5, 1, 11, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "recorded", "now", "booked"),
    [
        ("2026-05-01T11", "2026-05-01T11:30", "2026-05-01T11:31", "2026-05-01T11"),
        ("2026-04-01T11", "2026-05-01T11:30", "2026-05-01T11:31", "2026-04-01T11"),  # late: told under the hour it was
        ("2026-05-01T12", "2026-05-01T11:52", "2026-05-01T11:53", "2026-05-01T12"),  # clocks differ by some minutes
        ("2026-05-01T12", "2026-05-01T11:49", "2026-05-01T11:53", "2026-05-01T11"),
        ("2026-06-01T00", "2026-05-01T11:30", "2026-05-01T11:31", "2026-05-01T11"),
        (
            "2026-06-01T00",
            "2026-06-01T00:30",
            "2026-05-01T11:31",
            "2026-05-01T12",
        ),  # its partition's leader is ahead, too
        ("2026-05-01T11", "1969-12-31T23:59", "2026-05-01T11:31", "2026-05-01T11"),  # written without a time
    ],
)
def test_no_record_is_booked_under_an_hour_that_had_not_come_when_it_was_written(batch, told, recorded, now, booked):
    recorded_at, read_at = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (recorded, now))
    rows = batch(record(5, hour=f"{told}:00:00Z"), at=recorded_at)
    facts = transforms.booked(transforms.good(rows), read_at)
    assert [row.hour for row in facts.collect()] == [f"{booked}:00:00Z"]
    assert transforms.early_count(transforms.good(rows), read_at) == int(told > booked)


def test_a_clock_that_ran_ahead_books_nothing_into_the_next_month_also_where_all_is_read_again_later(
    batch, job, database_file, monkeypatch
):
    """A broker told of 50 bytes more under June while it was May. Who reads that in June again finds no more."""
    early, june = record(150, hour="2026-06-01T00:00:00Z"), "2026-06-01T00:00:00Z"
    monkeypatch.setattr(usage, "_now_ms", lambda: int(NOW.timestamp() * 1000))
    job.take(batch(record(100), early), query="q", number=0)
    assert [row[2:5:2] for row in maxima(database_file)] == [(TEN, 100), ("2026-05-01T11:00:00Z", 150)]
    assert queried(database_file, "SELECT early_records FROM metering_pipelinestatus") == [(1,)]
    monkeypatch.setattr(usage, "_now_ms", lambda: int(datetime(2026, 6, 2, tzinfo=UTC).timestamp() * 1000))
    ahead = datetime(2026, 6, 1, 0, 5, tzinfo=UTC)  # stamped by a leader that was ahead, too
    job.take(batch(record(100), early, at=ahead), query="r", number=0)
    rows = queried(database_file, "SELECT hour, produced_bytes, produced_bytes_before FROM metering_usagemaximum")
    used = {hour: max(0, produced - before) for hour, produced, before in rows}
    assert used == {TEN: 100, "2026-05-01T11:00:00Z": 50, june: 0}


def statements(database_file) -> list[tuple]:
    return queried(database_file, "SELECT broker, hour, boot, after FROM metering_statement ORDER BY id")


def test_what_brokers_say_of_whole_hours_is_kept_in_order_once_and_is_no_usage(batch, job, database_file):
    said = batch(
        complete("2026-05-01T08", boot="b0"), complete("2026-05-01T09", after=["b0", "c0"]), complete("2026-05-01T07", broker=1),
        record(5),
    )  # fmt: skip
    for _ in range(2):
        job.take(said, query="q", number=0)
    assert statements(database_file) == [
        (2, "2026-05-01T08:00:00Z", "b0", ""),
        (2, "2026-05-01T09:00:00Z", "b1", "b0,c0"),
        (1, "2026-05-01T07:00:00Z", "b1", ""),
    ]
    assert counts(database_file) == (4, 0, 0)
    assert [row[4] for row in maxima(database_file)] == [5]


def test_statements_that_say_no_more_than_what_is_certain_are_dropped(batch, job, database_file):
    job.take(
        batch(complete("2026-05-01T08"), complete("2026-05-01T09"), complete("2026-05-01T07", broker=1)),
        query="q",
        number=0,
    )
    later = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    job.take(batch(complete("2026-05-01T10"), partition=4, at=later), query="q", number=1)
    with job._database.transaction() as cursor:
        job._database.statements_settle(cursor, int(later.timestamp() * 1000) - 1)
    assert statements(database_file) == [
        (2, "2026-05-01T09:00:00Z", "b1", ""),
        (1, "2026-05-01T07:00:00Z", "b1", ""),
        (2, "2026-05-01T10:00:00Z", "b1", ""),
    ]


@pytest.mark.parametrize(
    ("said", "recorded", "taken"),
    [
        ("2026-05-01T10", "2026-05-01T11:00", "2026-05-01T10"),
        ("2026-05-01T10", "2026-05-01T10:52", "2026-05-01T10"),  # clocks differ by some minutes
        ("2026-05-01T10", "2026-05-01T10:40", "2026-05-01T09"),  # it had not ended
        ("2027-01-01T00", "2026-05-01T11:30", "2026-05-01T10"),
        ("2026-05-01T09", "1969-12-31T23:59", "2026-05-01T09"),  # written without a time
    ],
)
def test_no_hour_is_complete_before_it_has_ended(batch, said, recorded, taken):
    recorded_at = datetime.fromisoformat(recorded).replace(tzinfo=UTC)
    (row,) = transforms.statements(batch(complete(said), at=recorded_at), NOW).collect()
    assert row.hour == f"{taken}:00:00Z"
    assert row.said_at_ms > 0


def test_the_largest_of_a_key_is_kept_with_the_place_it_came_from(batch):
    later = record(8)  # neither the first nor the last record of a key has its maximum
    rows = batch(record(5), record(9), record(7), record(9), record(3, topic="clicks"), record(11, boot="b2"), later)
    found = {(row.boot, row.topic): row for row in transforms.maxima(transforms.good(rows)).collect()}
    assert {key: (row.produced_bytes, row.source_offset) for key, row in found.items()} == {
        ("b1", "orders"): (9, 103),
        ("b1", "clicks"): (3, 104),
        ("b2", "orders"): (11, 105),
    }


def test_a_batch_goes_to_the_database_and_a_rerun_changes_nothing(batch, job, database_file):
    rows = batch(record(5), b"broken", record(9), record(4, hour="2026-05-01T11:00:00Z"))
    for _ in range(2):
        job.take(rows, query="0f3a77c2-query", number=0)
    assert maxima(database_file) == [
        ("b1", "orders", TEN, 2, 9, 0, 3, 102),
        ("b1", "orders", "2026-05-01T11:00:00Z", 2, 4, 0, 3, 103),
    ]
    assert counts(database_file) == (4, 1, 0)
    assert queried(database_file, "SELECT COUNT(*) FROM metering_stagedmaximum") == [(0,)]


def test_batches_in_any_order_end_in_the_same_maxima(batch, job, database_file):
    newer, older = batch(record(9), record(12)), batch(record(5), record(9, topic="clicks"), partition=3)
    job.take(newer, query="q", number=1)
    before = maxima(database_file)
    job.take(older, query="q", number=0)
    assert [row for row in maxima(database_file) if row[1] == "orders"] == before
    assert ("b1", "clicks", TEN, 2, 9, 0, 3, 101) in maxima(database_file)


def next_offsets(database_file) -> list[tuple]:
    return queried(database_file, "SELECT topic_id, partition, next_offset FROM metering_progress")


def test_a_batch_notes_how_far_it_has_come_whatever_its_records_say(batch, job, database_file):
    job.topic_id = "t1"
    job.take(batch(record(9), record(5), b"broken"), query="q", number=0)
    assert next_offsets(database_file) == [("t1", 3, 103)]
    job.take(batch(record(9)), query="q", number=0)
    assert next_offsets(database_file) == [("t1", 3, 103)]


def test_a_checkpoint_that_is_ahead_of_a_restored_database_is_not_followed(batch, job, database_file, tmp_path):
    """Records 80 to 99 are in the topic, and neither in the database nor ahead of the checkpoint."""
    topic = TopicState("t1", first={3: 0}, end={3: 101})
    with job._signs.transaction() as cursor:
        progress_table.begin(job._signs, cursor, topic, {3: 80}, [], 0)
    (tmp_path / "metering" / "checkpoint").mkdir(parents=True)
    assert job._begin(topic, 0) is None
    with pytest.raises(AheadError, match="goes on at 100, and the database has it up to 80"):
        job.take(batch(record(9)), query="q", number=7)
    assert maxima(database_file) == []
    assert job._begin(topic, 0) == {3: 80}
    assert [path.name for path in (tmp_path / "metering").glob("checkpoint*")] == ["checkpoint-before"]


def test_a_database_that_is_away_fails_the_batch_and_leaves_nothing_half_done(batch, job, database_file):
    there = job._database._settings["NAME"]
    job._database.close()
    job._database._settings["NAME"] = f"{there}/nowhere"
    with pytest.raises(sqlite3.OperationalError):
        job.take(batch(record(5)), query="q", number=0)
    job._database._settings["NAME"] = there
    job.take(batch(record(5)), query="q", number=0)
    assert [row[4] for row in maxima(database_file)] == [5]
    assert counts(database_file) == (1, 0, 0)


def test_the_secret_is_in_the_sources_options_and_on_no_command_line(tmp_path):
    from controlplane.metering.pipeline.session import options

    (tmp_path / "secrets.json").write_text(json.dumps({"credentials": {"metering": 'a"b\\c'}}))
    settings = Settings.read({"SLUICE_STACK_DIR": str(tmp_path)})
    assert 'password="a\\"b\\\\c";' in settings.kafka_options()["kafka.sasl.jaas.config"]
    settings.home.mkdir()
    assert not [value for value in options(settings, with_kafka=False).values() if "password" in value]
    assert "a" + '"b' not in repr(settings)
