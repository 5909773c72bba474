"""`lake_load` from a real broker, through a tenant's port, into Delta tables on the disk. What stands in a table is compared
with what a consumer reads that is neither Java nor Spark; so are counts and checksums of the manifests."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from controlplane.lake.request import KEPT_FOR_HOURS, LONGEST_RUN_S
from controlplane.stack.metering import absence
from tests.integration.clients import TIMEOUT_S, Sender, admin, delete_topic
from tests.integration.clients import create_topic as created
from tests.support.waiting import wait_for

from .world import HEADERS, World, told, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]

REFUSED, ANOTHER_TOPIC, EXPIRED, OVERTAKEN, DIFFERENT = 2, 3, 4, 6, 7


def create_topic(world: World, topic: str, partitions: int) -> None:
    """Keeps its records for ever: those of `write` are of 2023."""
    created(world.tenant, topic, partitions, factor=1, retention_ms="-1")


def write(world: World, topic: str, count: int, *, partitions: int = 2, from_number: int = 0) -> None:
    """Records with and without key, value and headers. The first fifty have JSON of one shape; later ones others, or none."""
    sender = Sender(world.tenant)
    for number in range(from_number, from_number + count):
        fine = b'{"user": "u%d", "amount": %d, "tags": ["a", "b"]}' % (number, number)
        others = (fine, b'{"user": "u", "amount": "much"}', b"\xff\x00no text", b'{"user": "u", "later": true}')
        value = None if number % 9 == 8 else fine if number < 50 else others[number // 2 % 4]
        sender.producer.produce(
            topic, value, b"k%d" % number if number % 3 else None, number % partitions,
            headers=HEADERS if number % 4 == 0 else None, timestamp=1_700_000_000_000 + number * 1000,
        )  # fmt: skip
    sender.flush()


def test_every_record_once_and_any_range_again(world):
    began = time.monotonic()
    create_topic(world, "orders", 2)
    write(world, "orders", 40)

    properties = world.folder / "client.properties"
    properties.write_text("# as for any client of Kafka\nclient.id = lake \\\n  loader\nsecurity.protocol: PLAINTEXT\n")
    first = world.load("orders", "--schema", "inferred", "--properties", str(properties))
    assert first["status"] == 0, first
    assert world.rows("orders") == world.records("orders")
    assert told(world.manifests("orders")) == totals(world.records("orders"))
    print(f"first load after {time.monotonic() - began:.1f} s")
    before = len(world.log("orders"))
    second = world.load("orders")
    assert (second["status"], second["summary"]) == (0, ["nothing to load: the table has all that the topic has"])
    assert len(world.log("orders")) == before, "a load of nothing made a commit"

    write(world, "orders", 60, from_number=40)
    more = world.load("orders", "--offsets-a-commit", "16")
    assert more["status"] == 0, more
    assert len(world.log("orders")) == before + 4
    assert world.rows("orders") == world.records("orders")
    assert told(world.manifests("orders")) == totals(world.records("orders"))

    typed = world.sql(
        "orders", "SELECT data, problem FROM {} WHERE partition = 0 AND offset IN (0, 4, 25, 26, 27) ORDER BY offset"
    )
    assert typed == [
        [{"user": "u0", "amount": 0, "tags": ["a", "b"]}, None],
        [None, None],
        [None, "the value does not fit the schema"],
        [None, "the value is not a JSON object"],
        [{"user": "u", "amount": None, "tags": None}, None],
    ]
    assert world.sql("orders", "SELECT count(*) FROM {} WHERE problem IS NOT NULL")[0][0] == sum(
        manifest["problems"] for manifest in world.manifests("orders")
    )
    assert any("rows do not fit the schema" in line for line in more["summary"])

    world.sql("orders", "DELETE FROM {} WHERE partition = 0 AND offset IN (3, 10, 29)")
    world.sql("orders", "UPDATE {} SET value = NULL WHERE partition = 0 AND offset = 11")
    again = world.load("orders", "--offsets", "0:5-30")
    assert again["status"] == 0, again
    wanted = [record for record in world.records("orders") if record[:2] != (0, 3)]
    assert world.rows("orders") == wanted, "a range that is loaded again is whole, and nothing else was touched"
    compared = world.verify("orders")
    assert compared["status"] == DIFFERENT
    assert [line.split(":")[1].split(",")[0] for line in compared["lines"]] == [" DIFFERENT", " equal"]
    last = world.manifests("orders")[-1]
    assert last["mode"] == "replace"
    assert last["partitions"]["0"] == {
        "first": 5, "end": 30, **totals([record for record in wanted if record[0] == 0 and 5 <= record[1] < 30])["0"],
    }  # fmt: skip
    assert last["loaded"] == {"0": [0, 50], "1": [0, 50]}

    whole = world.load("orders", "--from-time", "2023-11-14T22:13:00Z")
    assert whole["status"] == 0, whole
    assert world.rows("orders") == world.records("orders")
    compared = world.verify("orders")
    assert compared["status"] == 0, compared
    assert len(compared["lines"]) == 2
    outside = world.load("orders", "--offsets", "1:40-51")
    assert (outside["status"], outside["said"][-1]) == (REFUSED, "partition 1: 40-51 is no range of offsets up to 50")
    print(f"whole after {time.monotonic() - began:.1f} s")


@pytest.mark.long
def test_topics_that_lose_records_end_or_begin_again(world):
    created(world.tenant, "table", 1, factor=1, cleanup_policy="compact", segment_bytes="1048576",
            min_cleanable_dirty_ratio="0.1")  # fmt: skip
    sender = Sender(world.tenant)
    for number in range(300):
        sender.send("table", bytes(20_000), b"k%d" % (number % 7), partition=0)
    sender.flush()
    wait_for(lambda: len(world.records("table")) < 200, 60, "the topic to be compacted")
    schema = world.folder / "schema.ddl"
    schema.write_text("user STRING, amount BIGINT\n")
    compacted = world.load("table", "--schema", str(schema))
    assert compacted["status"] == 0, compacted
    [manifest] = world.manifests("table")
    assert [field["type"] for field in manifest["schema"]["type"]["fields"]] == ["string", "long"]
    assert manifest["problems"] == manifest["partitions"]["0"]["rows"], "zeros are no JSON"
    assert manifest["loaded"] == {"0": [0, 300]}
    assert manifest["partitions"]["0"]["rows"] == world.sql("table", "SELECT count(*) FROM {}")[0][0] < 300

    create_topic(world, "orders", 2)
    write(world, "orders", 20)
    assert world.load("orders")["status"] == 0
    write(world, "orders", 20, from_number=20)
    client = admin(world.tenant)
    [future] = client.delete_records([TopicPartition("orders", 0, 14)], request_timeout=TIMEOUT_S).values()
    future.result(TIMEOUT_S)
    refused = world.load("orders")
    assert refused["status"] == EXPIRED
    assert "offsets 10 to 13 of partition 0" in refused["said"][-1]
    gone = world.load("orders", "--skip-expired")
    assert gone["status"] == 0, gone
    assert world.manifests("orders")[-1]["gaps"] == [{"partition": 0, "first": 10, "end": 14}]
    assert world.rows("orders", "offset >= 14 OR partition = 1") == world.records("orders")
    assert len(world.rows("orders")) == 40 - 4

    old = world.topic_id("orders")
    delete_topic(world.tenant, "orders")
    wait_for(lambda: "orders" not in admin(world.tenant).list_topics(timeout=TIMEOUT_S).topics, 30, "the topic to go")
    create_topic(world, "orders", 1)
    write(world, "orders", 5, partitions=1)
    new = world.topic_id("orders")
    another = world.load("orders")
    assert another["status"] == ANOTHER_TOPIC
    assert old in another["said"][-1]
    assert new in another["said"][-1]
    begun = world.load("orders", "--new-topic")
    assert begun["status"] == 0, begun
    assert world.rows("orders", f"topic_id = '{new}'") == world.records("orders")
    assert len(world.rows("orders", f"topic_id = '{old}'")) == 36
    assert world.load("orders")["summary"] == ["nothing to load: the table has all that the topic has"]


@pytest.mark.parametrize(
    ("kill", "commits_made"), [pytest.param("before the commit", 0, marks=pytest.mark.long), ("after the commit", 1)]
)
def test_a_driver_that_is_killed_neither_repeats_nor_skips(world, kill, commits_made):
    create_topic(world, "orders", 2)
    write(world, "orders", 50)
    assert world.load("orders", "--offsets-a-commit", "20", kill=kill) == {"killed": kill}
    assert len(world.manifests("orders")) == commits_made
    assert world.load("orders")["status"] == 0
    assert world.rows("orders") == world.records("orders")
    assert told(world.manifests("orders")) == totals(world.records("orders"))


@pytest.mark.long  # minutes
def test_what_replaces_records_is_killed_tidied_and_overtaken(world):
    create_topic(world, "orders", 2)
    write(world, "orders", 100)
    assert world.load("orders")["status"] == 0
    assert world.load("orders")["summary"] == ["nothing to load: the table has all that the topic has"]
    world.sql("orders", "DELETE FROM {} WHERE offset < 20")
    assert world.load("orders", "--offsets", "0:0-40,1:10-30", kill="while it writes") == {"killed": "while it writes"}
    assert world.load("orders", "--offsets", "0:0-40,1:0-30")["status"] == 0
    assert world.rows("orders") == world.records("orders")

    # A service's load deletes what was replaced long ago, and what killed ones have left; not what was replaced just now,
    # nor what one may have written that was thought dead, goes on, and commits it yet.
    folder = Path(world.uri("orders").removeprefix("file:"))
    left = folder / "part-left-by-a-kill.snappy.parquet"
    left.write_bytes(b"x")
    written = folder / "part-of-a-slow-load.snappy.parquet"
    written.write_bytes(b"x")
    os.utime(left, (time.time() - KEPT_FOR_HOURS * 3600 - 60,) * 2)
    os.utime(written, (time.time() - LONGEST_RUN_S,) * 2)
    files = {*folder.glob("*.parquet")} - {left}
    assert world.load("orders", "--offsets", "0:0-40,1:0-30", "--tidy")["status"] == 0
    assert not left.exists()
    assert files <= {*folder.glob("*.parquet")}
    assert world.rows("orders") == world.records("orders")
    refused = world.load("orders", "--offsets", "0:0-40", "--tidy", kill="nothing may be replaced")
    assert refused["status"] == 1
    assert "load again what is there already when 7 hours have passed" in refused["said"][-1]

    write(world, "orders", 10, from_number=100)
    overtaken = world.load("orders", kill="another load is first")
    assert overtaken["status"] == OVERTAKEN, overtaken
    assert world.rows("orders") == world.records("orders")
