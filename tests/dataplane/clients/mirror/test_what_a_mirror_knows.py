"""The pure parts of a mirror: its file, where offsets are in the target, checkpoints, configurations, metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.clients.errors import ConfigurationError
from dataplane.clients.messages import Message
from dataplane.clients.mirror.checkpoints import Checkpoint, Key, from_message, to_message
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.metrics import Row, metrics_text, table
from dataplane.clients.mirror.offset_map import MOST_SEGMENTS, OffsetMap, Segment
from dataplane.clients.mirror.recovery import copied_already
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
        {"target": {**TARGET, "settings": 1}, "sources": [SOURCE]},
    ],
)
def test_what_cannot_be_meant_is_refused(document):
    with pytest.raises(ConfigurationError):
        parse_config(document)


# --- where offsets are ------------------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=15)


@given(STEPS, st.integers(0, 40))
def test_an_offset_is_translated_to_the_first_copied_message_at_or_after_it(steps, offset):
    pairs, offsets, source, target = [], OffsetMap(), 0, 0
    for source_step, target_step in steps:
        source, target = source + source_step, target + target_step
        pairs.append((source, target))
        offsets.add(source, target)
    after = [there for here, there in pairs if here >= offset]
    if offset < pairs[0][0]:
        assert offsets.translated(offset) is None
    else:
        assert offsets.translated(offset) == (after[0] if after else pairs[-1][1] + 1)


def test_messages_in_a_row_are_one_segment_and_old_ones_are_forgotten():
    offsets = OffsetMap()
    for at in range(100):
        offsets.add(10 + at, 5 + at)
    assert offsets.segments == (Segment(10, 5, 100),)
    for at in range(MOST_SEGMENTS):
        offsets.add(1000 + 2 * at, 200 + at)
    assert len(offsets.segments) == MOST_SEGMENTS
    assert offsets.translated(20) is None


# --- after a failure --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coming", "there", "count"),
    [("abc", "", 0), ("abc", "ab", 2), ("abc", "abcd", 3), ("abc", "axc", 1), ("", "a", 0)],
)
def test_what_both_begin_with_is_there_already(coming, there, count):
    ours, theirs = ([Message(one.encode(), timestamp=at) for one in text] for at, text in ((1, coming), (2, there)))
    assert copied_already(ours, theirs) == count


@given(st.text(), st.integers(0, 99), st.integers(0, 2**62), st.integers(0, 2**62), STEPS)
def test_checkpoints_are_read_as_they_were_written(topic, partition, source, target, steps):
    key = Key("old", topic, partition)
    checkpoint = Checkpoint(source, target, tuple(Segment(a, b, 1) for a, b in steps))
    assert from_message(to_message(key, checkpoint)) == (key, checkpoint)


def test_a_checkpoint_stands_there_as_documented():
    message = to_message(Key("old", "orders", 3), Checkpoint(120, 95, (Segment(20, 0, 95),)))
    assert message.key == b'{"source":"old","topic":"orders","partition":3}'
    assert message.value == b'{"version":1,"source_offset":120,"target_offset":95,"segments":[[20,0,95]]}'


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
