"""Loads of what is seldom there: topics without records, timestamps that calendars do not agree on, members named like columns of
the load's own. With a real broker, as `test_loads`."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from confluent_kafka import TopicPartition

from controlplane.lake.timestamps import GREGORIAN_SINCE_MS, LARGEST_MS, SAME_SINCE_MS
from controlplane.stack.metering import absence
from tests.integration.clients import TIMEOUT_S, Sender, admin, create_topic, delete_topic
from tests.support.waiting import wait_for

from .world import World

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]

DAY_MS = 86_400_000
SMALLEST_OF_NET = -62_135_596_800_000  # 1 January 0001
LAST_YEAR = 253_402_300_800_000  # the year 10000


def send(world: World, topic: str, *values: bytes, at_ms: int = 0) -> None:
    sender = Sender(world.tenant)
    for value in values:
        sender.producer.produce(topic, value, partition=0, timestamp=at_ms)
    sender.flush()


def test_a_topic_without_records_makes_a_table_without_rows(world):
    create_topic(world.tenant, "orders", 2, factor=1)
    first = world.load("orders", "--schema", "inferred")
    assert first["status"] == 0, first
    assert first["summary"][0].startswith("0 rows, 0 bytes of keys and values, 1 commit")
    [manifest] = world.manifests("orders")
    nothing = {"first": 0, "end": 0, "rows": 0, "bytes": 0, "checksum": "0" * 16}
    assert manifest["partitions"] == {"0": nothing, "1": nothing}
    assert manifest["schema"] == {"kind": "inferred", "type": None}, "there is nothing to infer it from"
    assert world.rows("orders") == []
    assert world.verify("orders") == {"status": 0, "lines": []}
    again = world.load("orders", "--schema", "inferred")
    assert again["summary"] == ["nothing to load: the table has all that the topic has"]
    assert len(world.log("orders")) == 1

    delete_topic(world.tenant, "orders")
    wait_for(lambda: "orders" not in admin(world.tenant).list_topics(timeout=TIMEOUT_S).topics, 30, "the topic to go")
    create_topic(world.tenant, "orders", 1, factor=1)
    send(world, "orders", b'{"user": "u"}', b'{"user": 5}')
    made = world.load("orders", "--schema", "inferred")
    assert made["status"] == 0, made
    assert world.rows("orders") == world.records("orders")
    assert world.sql("orders", "SELECT data, problem FROM {} ORDER BY offset") == [
        [{"user": "u"}, None], [{"user": "5"}, None],
    ]  # fmt: skip
    assert world.load("orders", "--schema", "inferred", "--offsets", "0:0-1")["status"] == 0
    assert world.verify("orders")["status"] == 0


def test_the_table_has_the_milliseconds_that_the_topic_has(world):
    drawn = random.Random(1582)
    moments = [
        -1, 0, SAME_SINCE_MS, SAME_SINCE_MS - 1, GREGORIAN_SINCE_MS, GREGORIAN_SINCE_MS - 1, SMALLEST_OF_NET, SMALLEST_OF_NET - 1,
        LAST_YEAR, LARGEST_MS, -LARGEST_MS, *(drawn.randint(-LARGEST_MS, LARGEST_MS) for _ in range(200)),
        *(drawn.randint(2 * SMALLEST_OF_NET, LAST_YEAR) for _ in range(300)),
    ]  # fmt: skip
    assert world.driver.moments(*moments) == moments
    leap_day = int(datetime(1500, 3, 10, tzinfo=UTC).timestamp() * 1000)
    assert world.driver.moments(leap_day - 1, leap_day + 2 * DAY_MS) == [leap_day - 1, leap_day + 2 * DAY_MS]
    for moment in (leap_day, leap_day + DAY_MS):
        assert world.driver.moments(0, moment) == (
            "the timestamp of offset 1 in partition 0 is of a day that Spark's calendar does not tell from the next one"
        )

    create_topic(world.tenant, "orders", 1, factor=1, retention_ms="-1")
    for moment in (1_700_000_000_000, SMALLEST_OF_NET, GREGORIAN_SINCE_MS - 1, -5, LAST_YEAR, LARGEST_MS):
        send(world, "orders", b"x", at_ms=moment)
    loaded = world.load("orders")
    assert loaded["status"] == 0, loaded
    assert world.rows("orders") == world.records("orders")
    assert world.verify("orders")["status"] == 0
    since = world.load("orders", "--from-time", "1970-01-01T00:00:00Z")
    assert since["status"] == 0, since
    assert world.verify("orders")["status"] == 0

    send(world, "orders", b"nanoseconds", at_ms=1_700_000_000_000_000_000)
    send(world, "orders", b"behind it", at_ms=1_700_000_000_000)
    refused = world.load("orders")
    assert refused["status"] == 1
    assert refused["said"][-1] == (
        "the timestamp of offset 6 in partition 0 is more microseconds from 1970 than Spark can count: delete records up to this"
        " one from the topic; then --skip-expired goes on behind them"
    )
    client = admin(world.tenant)
    [future] = client.delete_records([TopicPartition("orders", 0, 7)], request_timeout=TIMEOUT_S).values()
    future.result(TIMEOUT_S)
    assert world.load("orders", "--skip-expired")["status"] == 0
    assert [row[1] for row in world.rows("orders")] == [0, 1, 2, 3, 4, 5, 7]


def test_members_that_are_named_like_columns_of_the_load_s_own(world):
    create_topic(world.tenant, "orders", 1, factor=1)
    send(
        world,
        "orders",
        b'{"_malformed": "x", "data": 1, "problem": 2, "_read": 3}',
        b'{"_malformed": {"a": 1}, "data": "x"}',
    )
    schema = world.folder / "own.ddl"
    schema.write_text("_malformed STRING, data INT, problem INT, _read INT")
    loaded = world.load("orders", "--schema", str(schema))
    assert loaded["status"] == 0, loaded
    assert world.sql("orders", "SELECT data, problem FROM {} ORDER BY offset") == [
        [{"_malformed": "x", "data": 1, "problem": 2, "_read": 3}, None],
        [None, "the value does not fit the schema"],
    ]
    assert world.rows("orders") == world.records("orders")
