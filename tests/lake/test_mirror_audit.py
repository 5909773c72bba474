"""A topic beside its copy, on a real broker: librdkafka writes the copies, each with a fault of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from controlplane.lake.mirror_frames import MARK, Audited, First, Side
from controlplane.stack.metering import absence
from dataplane.clients.mirror import putting
from tests.integration.clients import Sender, create_topic

from .world import HEADERS, World, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
EQUAL, DIFFERENT = 0, 7
FIRST_MS = 1_700_000_000_000

Record = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Partition, time in ms, key, value, headers."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with running(tmp_path_factory.mktemp("audit")) as made:
        made.new_tenant()
        yield made


def written(count: int = 200, partitions: int = 2) -> list[Record]:
    """With and without key, value and headers; every second one of a second later."""
    return [
        (
            number % partitions,
            FIRST_MS + number * 1000,
            b"k%d" % number if number % 3 else None,
            None if number % 9 == 8 else b"" if number % 9 == 7 else b"value %d" % number,
            HEADERS if number % 4 == 0 else [],
        )
        for number in range(count)
    ]


def put(world: World, topic: str, records: Sequence[Record], partitions: int = 2, **config: str) -> None:
    create_topic(world.tenant, topic, partitions, factor=1, retention_ms="-1", **config)
    sender = Sender(world.tenant)
    for partition, time_ms, key, value, headers in records:
        sender.producer.produce(topic, value, key, partition, headers=headers, timestamp=time_ms)
    sender.flush()


def audited(world: World, source: str, target: str, *words: str) -> tuple[int, list[str]]:
    answer = world.driver.audit(
        "--brokers", world.tenant.bootstrap, "--topic", source, "--target-brokers", world.tenant.bootstrap,
        "--target-topic", target, *words,
    )  # fmt: skip
    assert answer["lines"], answer["said"]
    return answer["status"], answer["lines"]


def marked(records: Sequence[Record], name: bytes) -> list[Record]:
    """As a mirror of ours marks what it copies."""
    return [(*rest, [*headers, (putting.MARK, name)]) for *rest, headers in records]


def without(*numbers: int) -> Callable[[list[Record]], list[Record]]:
    return lambda records: [each for number, each in enumerate(records) if number not in numbers]


def changed(number: int, at: int, new: Any) -> Callable[[list[Record]], list[Record]]:
    def change(records: list[Record]) -> list[Record]:
        record = list(records[number])
        record[at] = new
        return [*records[:number], tuple(record), *records[number + 1 :]]

    return change


def swapped(one: int, other: int) -> Callable[[list[Record]], list[Record]]:
    def swap(records: list[Record]) -> list[Record]:
        swapping = list(records)
        swapping[one], swapping[other] = swapping[other], swapping[one]
        return swapping

    return swap


def test_the_mark_is_that_of_our_mirrors():
    assert MARK == putting.MARK


def test_a_copy_is_equal_whatever_its_offsets_and_one_that_is_behind_says_how_far(world):
    records = written()
    put(world, "orders", records)
    before = Sender(world.tenant, transactional_id="aborter")
    create_topic(world.tenant, "copy", 2, factor=1, retention_ms="-1")
    before.producer.init_transactions(30)
    before.producer.begin_transaction()
    before.producer.produce("copy", b"never", b"k", 0)
    before.producer.flush(30)
    before.producer.abort_transaction(
        30
    )  # offsets of the copy are others, and a reader of what is not committed differs
    sender = Sender(world.tenant)
    for partition, time_ms, key, value, headers in marked(records, b"source")[:-6]:
        sender.producer.produce("copy", value, key, partition, headers=headers, timestamp=time_ms)
    sender.flush()
    status, lines = audited(world, "orders", "copy")
    assert status == EQUAL
    assert [line.split(", checksum")[0] for line in lines] == [
        f"partition {partition}: equal, 97 records, 3 behind" for partition in (0, 1)
    ]
    assert audited(world, "orders", "copy", "--whole")[0] == DIFFERENT
    status, lines = audited(world, "orders", "orders", "--whole")
    assert (status, [line.partition(",")[0] for line in lines]) == (
        EQUAL,
        ["partition 0: equal", "partition 1: equal"],
    )


@pytest.mark.parametrize(
    ("name", "fault", "first", "counts"),
    [
        ("lost", without(20), "from record 10 on, at offset 10 of the source and 10 of the target", (1, 0)),
        ("doubled", lambda records: [*records[:21], records[20], *records[21:]], "from record 11 on", (0, 1)),
        ("value", changed(20, 3, b"other"), "another value;", (1, 1)),
        ("null", changed(14, 3, b"null"), "another value;", (1, 1)),
        ("key", changed(20, 2, b""), "another key;", (1, 1)),
        ("headers", changed(20, 4, HEADERS[::-1]), "another headers;", (1, 1)),
        ("time", changed(20, 1, FIRST_MS), "another time;", (1, 1)),
        ("order", swapped(20, 22), "from record 10 on", (0, 0)),
        ("more", lambda records: [*records, records[0]], "the target has more records than the source", (0, 1)),
    ],
)
def test_each_fault_of_a_copy_is_found_and_named(world, name, fault, first, counts):
    records = written(60)
    put(world, f"of-{name}", records)
    put(world, f"to-{name}", fault(records))
    status, lines = audited(world, f"of-{name}", f"to-{name}")
    assert status == DIFFERENT
    assert "DIFFERENT" in lines[0]
    assert first in lines[0]
    assert lines[0].endswith(f"which lacks {counts[0]} of them and has {counts[1]} others")
    assert lines[1].startswith("partition 1: equal, 30 records, checksum")


def test_an_empty_value_and_none_are_different(world):
    records = [(0, FIRST_MS, b"k", None, [])]
    put(world, "nothing", records, partitions=1)
    put(world, "empty", [(0, FIRST_MS, b"k", b"", [])], partitions=1)
    status, lines = audited(world, "nothing", "empty")
    assert status == DIFFERENT
    assert "another value" in lines[0]


def test_times_are_left_out_where_the_target_stamps_records_itself(world):
    records = written(20)
    put(world, "timed", records)
    put(world, "stamped", records, message_timestamp_type="LogAppendTime")
    assert audited(world, "timed", "stamped", "--whole")[0] == EQUAL
    bootstrap = world.tenant.bootstrap
    answer = world.driver.audit(
        "--brokers", bootstrap, "--topic", "timed", "--target-brokers", bootstrap, "--target-topic", "stamped",
        "--from-time", "2023-11-14",
    )  # fmt: skip
    assert (answer["status"], answer["lines"]) == (2, [])
    assert "stamps records itself" in answer["said"][-1]


def test_where_one_side_has_lost_its_beginning_a_time_that_both_have_is_compared(world):
    records = written(100)
    put(world, "long", records)
    put(world, "short", records[40:])
    assert audited(world, "long", "short")[0] == DIFFERENT
    moment = "2023-11-14T22:13:{:02d}Z"  # FIRST_MS is 22:13:20
    status, lines = audited(world, "long", "short", "--from-time", "2023-11-14T22:14:00Z", "--whole")
    assert status == EQUAL
    assert all("equal, 30 records" in line for line in lines)
    both = ("--from-time", moment.format(20), "--to-time", moment.format(30))
    status, lines = audited(world, "long", "long", *both)
    assert [line.split(", checksum")[0] for line in lines] == [
        f"partition {number}: equal, 5 records" for number in (0, 1)
    ]


def test_of_several_sources_in_one_topic_each_is_compared_alone(world):
    ours, theirs = written(40), written(30)
    put(world, "ours", ours)
    put(world, "theirs", theirs)
    put(world, "both", [*marked(ours, b"east"), *marked(theirs, b"west")])
    assert audited(world, "ours", "both")[0] == DIFFERENT
    assert audited(world, "ours", "both", "--marked", "east", "--whole")[0] == EQUAL
    assert audited(world, "theirs", "both", "--marked", "west", "--whole")[0] == EQUAL
    status, lines = audited(world, "theirs", "both", "--marked", "nobody")
    assert (status, lines[0]) == (EQUAL, "partition 0: equal, 0 records, 15 behind, checksum 0000000000000000")


def test_partitions_that_only_one_side_has(world):
    put(world, "three", written(30, 3), partitions=3)
    put(world, "two", [each for each in written(30, 3) if each[0] < 2])
    status, lines = audited(world, "three", "two")
    assert (status, lines[2].split(", checksum")[0]) == (EQUAL, "partition 2: equal, 0 records, 10 behind")
    status, lines = audited(world, "two", "three")
    assert status == DIFFERENT
    assert lines[2].startswith("partition 2: DIFFERENT the target has more records")


def test_what_cannot_be_compared_is_said(world):
    answer = world.driver.audit(
        "--brokers", world.tenant.bootstrap, "--topic", "nowhere", "--target-brokers", world.tenant.bootstrap
    )
    assert (answer["status"], answer["lines"]) == (1, [])
    assert "nowhere" in answer["said"][-1]


def test_a_line_says_what_differs_and_where():
    first = First(10, 12, 17, ("key", "time"))
    found = Audited(3, Side(100, 1), Side(99, 2), 90, first, 1, 0)
    assert not found.is_equal
    assert found.line == (
        "partition 3: DIFFERENT from record 10 on, at offset 12 of the source and 17 of the target: another key and time;"
        " 100 records, 99 in the target, which lacks 1 of them and has 0 others"
    )
