"""Hours from raw records by SQLite: on records that are made by hand, beside what the rule says of them."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime

import pytest

from tests.killed.oracle import Records, of_instances

TEN, ELEVEN, NOON = (f"2026-05-01T{hour}:00:00Z" for hour in (10, 11, 12))
WRITTEN_MS = int(datetime(2026, 5, 1, 12, 30, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def records(tmp_path):
    made = Records(tmp_path / "records.sqlite")
    yield made
    made.close()


def usage(hour, produced, consumed=0, stored=0, *, boot="b1", topic="orders", **more):
    counters = {"produced_bytes": produced, "consumed_bytes": consumed, "stored_byte_seconds": stored}
    return json.dumps({"boot": boot, "hour": hour, "instance": "ins-a", "topic": topic, **counters, **more}).encode()


def add(records, *values, at_ms=WRITTEN_MS, partition=0):
    end = records.ends().get(partition, 0)
    records.add((partition, end + number, at_ms, value) for number, value in enumerate(values))


def produced(records, until=None):
    hours = records.hours(records.ends() if until is None else until)
    return {(boot, topic, hour): used[0] for (_, boot, topic, hour), used in hours.items()}


def test_an_hour_is_the_largest_counter_minus_the_largest_of_earlier_hours(records):
    add(records, usage(TEN, 5, 1, 10), usage(TEN, 9, 1, 12), usage(NOON, 30, 4, 20))
    assert records.hours(records.ends()) == {
        ("ins-a", "b1", "orders", TEN): (9, 1, 12),
        ("ins-a", "b1", "orders", NOON): (21, 3, 8),
    }


def test_neither_order_nor_repetition_changes_an_hour(records):
    values = [usage(TEN, 5), usage(TEN, 9), usage(ELEVEN, 12), usage(ELEVEN, 20), usage(NOON, 20)]
    expected = {("b1", "orders", TEN): 9, ("b1", "orders", ELEVEN): 11, ("b1", "orders", NOON): 0}
    for order in itertools.islice(itertools.permutations(values), 0, 120, 7):
        records._database.execute("DELETE FROM record")
        add(records, *order, *order[::2])
        assert produced(records) == expected


def test_a_late_record_takes_from_a_later_hour_what_belongs_to_an_earlier_one(records):
    add(records, usage(TEN, 5), usage(NOON, 30))
    assert produced(records)["b1", "orders", NOON] == 25
    add(records, usage(ELEVEN, 28))
    assert produced(records) == {("b1", "orders", TEN): 5, ("b1", "orders", ELEVEN): 23, ("b1", "orders", NOON): 2}


def test_an_hour_that_says_less_than_an_earlier_one_has_used_nothing(records):
    add(records, usage(TEN, 50), usage(ELEVEN, 40), usage(NOON, 51))
    assert produced(records) == {("b1", "orders", TEN): 50, ("b1", "orders", ELEVEN): 0, ("b1", "orders", NOON): 1}


def test_each_boot_and_each_topic_count_from_zero(records):
    add(records, usage(TEN, 50), usage(ELEVEN, 7, boot="b2"), usage(ELEVEN, 3, topic="clicks"))
    assert produced(records) == {
        ("b1", "orders", TEN): 50, ("b2", "orders", ELEVEN): 7, ("b1", "clicks", ELEVEN): 3,
    }  # fmt: skip
    assert of_instances(records.hours(records.ends())) == {"ins-a": {TEN: (50, 0, 0), ELEVEN: (10, 0, 0)}}


def test_a_record_is_of_no_later_hour_than_it_was_written_in(records):
    add(records, usage("2026-05-01T13:00:00Z", 5), usage("2026-05-01T14:00:00Z", 8))
    assert produced(records) == {("b1", "orders", NOON): 8}
    within = int(datetime(2026, 5, 1, 12, 51, tzinfo=UTC).timestamp() * 1000)
    add(records, usage("2026-05-01T13:00:00Z", 9), at_ms=within)
    assert produced(records) == {("b1", "orders", NOON): 8, ("b1", "orders", "2026-05-01T13:00:00Z"): 1}


def test_only_records_before_the_offsets_that_are_named_count(records):
    add(records, usage(TEN, 5), usage(TEN, 9))
    add(records, usage(TEN, 7, boot="b2"), partition=1)
    assert produced(records, {0: 1, 1: 0}) == {("b1", "orders", TEN): 5}
    assert produced(records, {0: 2, 1: 1}) == {("b1", "orders", TEN): 9, ("b2", "orders", TEN): 7}
    assert records.ends() == {0: 2, 1: 1}


def test_other_kinds_and_what_is_broken_have_a_place_and_no_usage(records):
    add(records, usage(TEN, 5, 2, 1), b"broken", usage(TEN, 9, kind="instance"), b'{"kind": "complete"}')
    assert produced(records) == {("b1", "orders", TEN): 5}
    assert records.places(records.ends()) == {0: (4, 0 + 1 + 2 + 3, 5 + 2 + 1)}
