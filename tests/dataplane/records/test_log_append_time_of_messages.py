"""Messages of format 1 that say they have the broker's time: whose time a record gets that a producer has sent so."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_header, read_records
from dataplane.records.compression import GZIP, LZ4, NONE, SNAPPY
from dataplane.records.header import CorruptBatchError
from dataplane.records.legacy import LOG_APPEND_TIME, Message, read_message_set, write_message, write_message_set
from dataplane.records.preparation import NO_RULES, Rules, prepare_messages
from dataplane.records.steps import RECORDS_PER_STEP, run_through

TIMES = (40, 70, 50)
NOW = 1_000


def sent(codec, *, times=TIMES, stamp=None):
    """These messages; in a wrapper that has `stamp` as the broker's time, if it has one."""
    attributes = LOG_APPEND_TIME if stamp is not None else 0
    messages = [Message(n, 1, attributes if codec == NONE else 0, time, b"k", b"v") for n, time in enumerate(times)]
    data = write_message_set(messages, codec)
    if codec == NONE or stamp is None:
        return data
    whole = len(data) - 34  # of the wrapper's value
    return write_message(1, len(times) - 1, stamp, None, data[34:][:whole], codec | attributes)


def prepared(data, rules=NO_RULES):
    return run_through(prepare_messages(memoryview(data), rules, NOW, 2**20))


def times_of(batch):
    return [record.timestamp for record in read_records(batch)]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_all_records_of_a_compressed_message_get_its_time(codec):
    data = sent(codec, stamp=90)
    assert [message.timestamp for message in read_message_set(data)] == [90, 90, 90]
    assert all(message.attributes & LOG_APPEND_TIME for message in read_message_set(data))
    batch = prepared(data)
    assert times_of(batch) == [90, 90, 90]
    assert (read_header(batch).base_timestamp, read_header(batch).max_timestamp) == (90, 90)


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_records_of_a_message_that_does_not_say_so_keep_theirs(codec):
    batch = prepared(sent(codec))
    assert times_of(batch) == list(TIMES)
    assert (read_header(batch).base_timestamp, read_header(batch).max_timestamp) == (40, 70)


def test_a_message_that_is_not_compressed_keeps_its_own():
    assert times_of(prepared(sent(NONE, stamp=90))) == list(TIMES)


@pytest.mark.parametrize(
    ("codec", "times", "stamp", "rules"),
    [
        (NONE, TIMES, 90, Rules(stamps=True)),
        (GZIP, TIMES, 90, Rules(stamps=True)),
        (NONE, (-1,), 90, NO_RULES),
        (GZIP, TIMES, -1, NO_RULES),
    ],
    ids=["topic stamps", "topic stamps, compressed", "no time", "no time, compressed"],
)
def test_a_time_that_is_the_brokers_to_set_is_refused(codec, times, stamp, rules):
    with pytest.raises(CorruptBatchError, match=r"^log append time is not the producer's to set$") as caught:
        prepared(sent(codec, times=times, stamp=stamp), rules)
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_the_batch_of_messages_has_no_producer_and_no_leader_yet(codec):
    header = read_header(prepared(sent(codec)))
    assert header._replace(batch_length=0, crc=0) == (0, 0, -1, 2, 0, codec, 2, 40, 70, -1, -1, -1, 3)


@pytest.mark.parametrize(("times", "latest"), [((-1, -1), -1), ((-7, -5), -1), ((-1, 5), 5), ((7, 5), 7)])
def test_the_maximum_of_a_batch_is_not_below_no_time(times, latest):
    assert read_header(prepared(sent(NONE, times=times))).max_timestamp == latest


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_topic_that_stamps_gives_the_brokers_time_to_all_others(codec):
    batch = prepared(sent(codec), Rules(stamps=True))
    assert times_of(batch) == [NOW] * 3
    assert (read_header(batch).max_timestamp, read_header(batch).attributes) == (NOW, LOG_APPEND_TIME | codec)


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_message_without_a_time_is_in_time_wherever_the_bounds_are(codec):
    batch = prepared(sent(codec, times=(-1, -1)), Rules(before_max_ms=10, after_max_ms=10))
    assert times_of(batch) == [-1, -1]


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("count", [1, RECORDS_PER_STEP - 1, RECORDS_PER_STEP, 2 * RECORDS_PER_STEP + 1])
def test_work_pauses_after_each_full_step(codec, count):
    steps = list(prepare_messages(memoryview(sent(codec, times=(5,) * count)), NO_RULES, NOW, 2**20))
    assert steps == [None] * (count // RECORDS_PER_STEP)
