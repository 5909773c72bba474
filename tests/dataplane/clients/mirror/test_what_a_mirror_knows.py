"""The pure parts of a mirror: its file, where offsets are in the target, checkpoints, configurations, metrics."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.clients.errors import ConfigurationError
from dataplane.clients.messages import Message
from dataplane.clients.mirror.checkpoints import (
    Checkpoint,
    Key,
    Run,
    TopicIds,
    from_message,
    run_to_message,
    to_message,
)
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.metrics import Row, metrics_text, table
from dataplane.clients.mirror.offset_map import MOST_SEGMENTS, OffsetMap, Segment
from dataplane.clients.mirror.recovery import copied_already
from dataplane.clients.mirror.status import MOST_ROWS, Rates, status_message
from dataplane.clients.mirror.topics import Claims, config_changes

TARGET = {"name": "new", "bootstrap": "h:1"}
SOURCE = {"name": "old", "bootstrap": "h:2", "topics": "orders,bills.*"}


def parsed(source=SOURCE, target=TARGET, **rest):
    return parse_config({"target": target, "sources": [source], **rest})


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_file_and_what_it_leaves_out():
    config = parsed({**SOURCE, "groups": "a.*"}, mirror={"compression": "lz4"})
    (source,) = config.sources
    assert (source.bootstrap, config.target.bootstrap) == ((("h", 2),), (("h", 1),))
    assert (source.prefix, source.mark, config.metrics_port, config.compression) == ("", False, 0, "lz4")
    assert config.delivery == "auto"
    assert [source.translates(group) for group in ("a1", "b")] == [True, False]
    assert not parsed().sources[0].translates("a")


@pytest.mark.parametrize(
    ("topic", "is_copied"),
    [
        ("orders", True),
        ("bills2", True),
        ("orders2", False),
        ("bills.draft", False),
        ("__consumer_offsets", False),
        ("mirror-checkpoints", False),
        ("mirror-status", False),
        ("new.orders", False),  # it came from there
    ],
)
def test_which_topics_are_copied(topic, is_copied):
    config = parsed({**SOURCE, "topics": "orders,bills.*,__consumer_offsets,mirror-.*,new.*", "exclude": "bills.draft"})
    assert config.sources[0].copies(topic, config.target) is is_copied


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"target": TARGET},
        {"target": TARGET, "sources": []},
        {"target": TARGET, "sources": [{"name": "old", "bootstrap": "h:2"}]},
        {"target": TARGET, "sources": [{**SOURCE, "name": "new"}]},
        {"target": TARGET, "sources": [SOURCE, SOURCE]},
        {"target": TARGET, "sources": [{**SOURCE, "topic": "x"}]},
        {"target": TARGET, "sources": [{**SOURCE, "bootstrap": "h"}]},
        {"target": TARGET, "sources": [{**SOURCE, "topics": "("}]},
        {"target": TARGET, "sources": [{**SOURCE, "properties": {"sasl.name": "x"}}]},
        {"target": TARGET, "sources": [SOURCE], "mirror": {"compression": "rar"}},
        {"target": TARGET, "sources": [SOURCE], "mirror": {"port": 1}},
        {"target": TARGET, "sources": [SOURCE], "mirror": {"delivery": "twice"}},
        {"target": {**TARGET, "settings": 1}, "sources": [SOURCE]},
    ],
)
def test_what_cannot_be_meant_is_refused(document):
    with pytest.raises(ConfigurationError):
        parse_config(document)


# --- where offsets are ------------------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=15)
MANY_STEPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=300)


def copied(steps):
    """The places of messages on both sides, and the map of them."""
    pairs, offsets, source, target = [], OffsetMap(), 0, 0
    for source_step, target_step in steps:
        source, target = source + source_step, target + target_step
        pairs.append((source, target))
        offsets.add(source, target)
    return pairs, offsets


@given(STEPS, st.integers(0, 50))
def test_who_goes_on_at_a_translated_offset_misses_nothing_and_reads_nothing_twice(steps, offset):
    pairs, offsets = copied(steps)
    at = offsets.translated(offset)
    before = [there for here, there in pairs if here < offset]
    after = [there for here, there in pairs if here >= offset]
    assert (before[-1] if before else 0) < at <= (after[0] if after else pairs[-1][1] + 1)


@given(MANY_STEPS, st.integers(0, 900))
def test_of_a_long_time_nothing_is_missed_either_and_the_newest_is_exact(steps, offset):
    pairs, offsets = copied(steps)
    assert len(offsets.segments) <= MOST_SEGMENTS
    assert offsets.segments[0][:2] == pairs[0]
    after = [there for here, there in pairs if here >= offset]
    assert offsets.translated(offset) <= (after[0] if after else pairs[-1][1] + 1)
    newest = pairs[-(MOST_SEGMENTS // 2) :]
    if offset > newest[0][0]:
        before = [there for here, there in pairs if here < offset]
        assert offsets.translated(offset) > before[-1]


def test_a_gap_of_the_source_among_markers_of_the_target_lets_nobody_miss_anything():
    """The target falls behind by the gap, and is ahead again when ten markers have come: the map must remember both."""
    for gap in (1, 10, 50, 1_000):
        offsets, pairs = OffsetMap(), []
        for number in range(400):
            source = 10 * number + (gap if number else 0)
            offsets.add_run(source, 11 * number, 10)
            pairs += [(source + at, 11 * number + at) for at in range(10)]
        assert len(offsets.segments) <= MOST_SEGMENTS
        assert [(here, there) for here, there in pairs if offsets.translated(here) > there] == []
        assert all(there - offsets.translated(here) <= 2 * (400 + gap) for here, there in pairs)


def test_transactions_of_the_target_make_old_offsets_less_exact_by_their_markers_alone():
    offsets = OffsetMap()
    for at in range(10_000):  # a marker behind every tenth message
        offsets.add(at, at + at // 10)
    assert len(offsets.segments) <= MOST_SEGMENTS
    assert all(0 <= at + at // 10 - offsets.translated(at) <= 1_000 for at in range(10_000))
    assert offsets.translated(10_000) == 10_999
    exact = [at for at in range(10_000) if offsets.translated(at) == at + at // 10]
    assert exact[-300:] == list(range(9_700, 10_000))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=80))
def test_a_run_is_as_good_as_its_messages(runs):
    whole, single, source, target = OffsetMap(), OffsetMap(), 0, 0
    for source_step, target_step, length in runs:
        source, target = source + source_step, target + target_step
        whole.add_run(source, target, length)
        for at in range(length):
            single.add(source + at, target + at)
        source, target = source + length, target + length
    assert whole.segments == single.segments


def test_messages_in_a_row_are_one_segment():
    offsets = OffsetMap()
    for at in range(100):
        offsets.add(10 + at, 5 + at)
    assert offsets.segments == (Segment(10, 5, 100),)
    assert offsets.translated(3) == 5  # what comes first of what was copied
    assert OffsetMap().translated(3) is None


@given(MANY_STEPS, st.integers(0, 900), st.integers(0, 900))
def test_a_comparison_begins_at_a_message_that_both_sides_have(steps, first_source, first_target):
    pairs, offsets = copied(steps)
    found = offsets.in_both(first_source, first_target)
    if found is not None:
        assert found in pairs
        assert found[0] >= first_source
        assert found[1] >= first_target
    if (first_source, first_target) <= pairs[0] and first_target <= pairs[0][1]:
        assert found == pairs[0]


# --- after a failure --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coming", "there", "count"),
    [("abc", "", 0), ("abc", "ab", 2), ("abc", "abcd", 3), ("abc", "axc", 1), ("", "a", 0)],
)
def test_what_both_begin_with_is_there_already(coming, there, count):
    ours, theirs = ([Message(one.encode(), timestamp=at) for one in text] for at, text in ((1, coming), (2, there)))
    assert copied_already(ours, theirs) == count


@given(st.text(), st.integers(0, 99), st.integers(0, 2**62), st.integers(0, 2**62), STEPS, st.booleans(), st.text())
def test_checkpoints_are_read_as_they_were_written(topic, partition, source, target, steps, is_exact, topic_id):
    key = Key("old", topic, partition)
    segments = tuple(Segment(a, b, 1, a, b % 2) for a, b in steps)
    checkpoint = Checkpoint(source, target, segments, is_exact, TopicIds("", topic_id))
    assert from_message(to_message(key, checkpoint)) == (key, checkpoint)
    assert from_message(run_to_message(Run("old", topic))) == Run("old", topic)


def test_a_checkpoint_stands_there_as_documented():
    checkpoint = Checkpoint(120, 95, (Segment(20, 0, 95),), is_exact=True, topic_ids=TopicIds("0a3c", ""))
    message = to_message(Key("old", "orders", 3), checkpoint)
    assert message.key == b'{"source":"old","topic":"orders","partition":3}'
    value = '{"version":2,"source_offset":120,"target_offset":95,"segments":[[20,0,95,0]],"exact":true,'
    assert message.value == (value + '"topic_ids":["0a3c",""]}').encode()
    before_ids = replace(message, value=(value[:-1] + "}").encode())
    assert from_message(before_ids)[1] == replace(checkpoint, topic_ids=TopicIds())
    message = run_to_message(Run("old", "8f3c"))
    assert (message.key, message.value) == (b'{"source":"old","run":true}', b'{"version":2,"run":"8f3c"}')


def test_configurations_are_followed_but_for_the_targets_own():
    source = {"retention.ms": "5", "cleanup.policy": "compact", "min.insync.replicas": "1"}
    target = {"retention.ms": "7", "max.message.bytes": "9", "min.insync.replicas": "2"}
    assert config_changes(source, target) == {
        "retention.ms": "5",
        "cleanup.policy": "compact",
        "max.message.bytes": None,
    }
    assert config_changes(source, source) == {}


def test_a_topic_of_the_target_comes_from_one_source():
    claims = Claims()
    assert [claims.takes("orders", source) for source in ("a", "b", "a")] == [True, False, True]
    assert claims.takes("b.orders", "b")


def test_metrics_and_the_table_name_each_partition():
    rows = [Row("old", "orders", 1, 7, 3, 2, 3, 100), Row("old", "orders", 0, 0, 1, 1, 1, 10)]
    text = metrics_text(rows)
    assert 'sluice_mirror_lag_messages{source="old",topic="orders",partition="1"} 7\n' in text
    assert 'sluice_mirror_copied_bytes_total{source="old",topic="orders",partition="0"} 10\n' in text
    assert table(rows).splitlines()[1].split() == ["old", "orders", "0", "0", "1", "1"]


def test_the_map_of_offsets_is_among_the_metrics():
    row = Row("old", "orders", 1, 7, 3, 2, 3, 100, end=10, map_segments=4, map_slack=2, is_waiting=1)
    text = metrics_text([row])
    place = '{source="old",topic="orders",partition="1"}'
    for name, value in (("source_end_offset", 10), ("map_segments", 4), ("map_slack_messages", 2), ("is_waiting", 1)):
        assert f"sluice_mirror_{name}{place} {value}\n" in text


# --- what it says of itself -------------------------------------------------------------------------------------------


def test_a_status_stands_there_as_documented():
    rows = [
        Row("old", "orders", 0, 7, 1200, 1150, 3, 100, end=1207, map_segments=64, map_slack=3, map_from=20),
        Row("old", "orders", 1, 9, 0, 0, 0, 0, end=9, is_waiting=1, state="resting"),
    ]
    said = status_message(
        rows, (120.46, 98304.0), source="old", target="new", delivery="exactly_once", at_ms=5, every_s=10.0
    )
    assert (said.key, said.timestamp) == (b"old", 5)
    value = json.loads(said.value)
    furthest, other = value.pop("rows")
    assert value == {
        "version": 1,
        "at_ms": 5,
        "every_s": 10.0,
        "source": "old",
        "target": "new",
        "delivery": "exactly_once",
        "lag": 16,
        "messages_per_s": 120.5,
        "bytes_per_s": 98304.0,
        "partitions": 2,
    }
    assert (furthest["partition"], furthest["state"], furthest["map_from"]) == (1, "resting", None)
    assert other == {
        "topic": "orders",
        "partition": 0,
        "state": "copying",
        "lag": 7,
        "source_end": 1207,
        "source_offset": 1200,
        "target_offset": 1150,
        "map_from": 20,
        "map_segments": 64,
        "map_slack": 3,
    }


def test_of_many_partitions_a_status_names_those_that_are_furthest_behind():
    rows = [Row("old", "orders", number, number, 0, 0, 0, 0) for number in range(3 * MOST_ROWS)]
    said = status_message(rows, (0.0, 0.0), source="old", target="new", delivery="auto", at_ms=5, every_s=10.0)
    value = json.loads(said.value)
    assert value["partitions"] == 3 * MOST_ROWS
    assert [row["lag"] for row in value["rows"]] == list(range(3 * MOST_ROWS - 1, 2 * MOST_ROWS - 1, -1))


def test_rates_are_of_the_time_since_the_last_look():
    rates = Rates(100.0)
    rows = [Row("old", "orders", number, 0, 0, 0, 10, 1_000) for number in range(2)]
    assert rates.since(rows, 110.0) == (2.0, 200.0)
    assert rates.since(rows, 120.0) == (0.0, 0.0)
    assert rates.since(rows[:1], 130.0) == (0.0, 0.0)  # a partition was given up
