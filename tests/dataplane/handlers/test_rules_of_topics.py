"""Topics that ask for more than storing: another codec, the leader's clock, timestamps in bounds, keys, every record checked."""

from dataclasses import replace

import pytest
from crc32c import crc32c

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, read_header, split_batches
from dataplane.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from dataplane.records.header import CHECKED_FROM, CRC_AT
from dataplane.records.legacy import Message, write_message_set
from dataplane.storage.rules import CODECS, rules_of
from tests.dataplane.handlers.asking import MIB, Tenant
from tests.simulation.cluster import SimulatedCluster
from tests.support.virtual_loop import WALL_CLOCK_START_MS

NOW = WALL_CLOCK_START_MS
OLD_TIME = 1_600_000_000_000


@pytest.fixture
def cluster():
    made = SimulatedCluster(seed=6)
    made.until(made.up)
    return made


def topic(cluster, **config):
    cluster.create_topic("orders", 1, **config)
    return Tenant(cluster)


def batch_of(count=3, codec=NONE, time=OLD_TIME, key=b"k", **more):
    rows = [Record(key, b"value %d" % n, (("h", None),), time + n) for n in range(count)]
    return build_batch(rows, now_ms=time, codec=codec, **more)


def stored(tenant):
    return [header for header, _ in split_batches(tenant.fetch(11, 0).records)]


# --- compression.type -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CODECS)
def test_the_topics_codec_is_what_is_stored(cluster, name):
    tenant = topic(cluster, compression_type=name)
    for sent in NAMES:
        assert tenant.produce(9, batch_of(codec=sent)).error_code == 0
    assert tenant.produce(2, write_message_set([Message(0, 1, 0, 5, b"k", b"v")], SNAPPY)).error_code == 0
    assert [header.compression for header in stored(tenant)] == [CODECS[name]] * 6
    rows = tenant.read_all(11)
    assert [row[3] for row in rows[:3]] == [b"value 0", b"value 1", b"value 2"]
    assert [row[0] for row in rows] == list(range(16))


def test_a_batch_of_the_right_codec_is_stored_as_it_came(cluster):
    tenant = topic(cluster, compression_type="gzip")
    batch = batch_of(codec=GZIP)
    tenant.produce(9, batch)
    assert tenant.fetch(11, 0).records[16:] == batch[16:]


def test_what_grows_beyond_the_limit_by_it_is_too_large(cluster):
    tenant = topic(cluster, compression_type="uncompressed", max_message_bytes="1000")
    batch = build_batch([Record(None, bytes(2000))], now_ms=1, codec=ZSTD)
    assert tenant.produce(9, batch).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert tenant.partition().log.end_offset == 0


def test_retries_of_idempotent_producers_are_recognised_after_preparation(cluster):
    tenant = topic(cluster, compression_type="lz4")
    batch = batch_of(producer_id=4000, producer_epoch=0, base_sequence=0)
    assert [tenant.produce(9, batch).base_offset for _ in range(2)] == [0, 0]
    assert len(stored(tenant)) == 1


# --- timestamps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_log_append_time_is_the_leaders_clock_for_all(cluster, codec):
    tenant = topic(cluster, message_timestamp_type="LogAppendTime")
    row = tenant.produce(9, batch_of(codec=codec))
    assert NOW <= row.log_append_time_ms < NOW + 60_000
    assert tenant.produce(2, write_message_set([Message(0, 1, 0, 5, b"k", b"v")])).log_append_time_ms >= NOW
    headers = stored(tenant)
    assert [header.attributes & 0x08 for header in headers] == [8, 8]
    assert headers[0].max_timestamp == row.log_append_time_ms
    for version in (2, 3, 11):
        times = [time for _, time, _, _ in tenant.read_all(version)]
        assert times[:3] == [row.log_append_time_ms] * 3
        assert times[3] >= row.log_append_time_ms
    found = tenant.offsets(7, row.log_append_time_ms)
    assert (found.offset, found.timestamp) == (0, row.log_append_time_ms)
    assert tenant.offsets(7, OLD_TIME).offset == 0
    assert tenant.offsets(7, -3).timestamp == headers[-1].max_timestamp


def test_the_producers_clock_counts_otherwise(cluster):
    tenant = topic(cluster)
    row = tenant.produce(9, batch_of())
    assert row.log_append_time_ms == -1
    assert [row[1] for row in tenant.read_all(11)] == [OLD_TIME, OLD_TIME + 1, OLD_TIME + 2]


def test_timestamps_out_of_bounds_are_named(cluster):
    tenant = topic(cluster, message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000")
    for time in (NOW - 61_000, NOW + 120_000):
        rows = [Record(b"k", b"v", (), now) for now in (NOW, time, NOW)]
        row = tenant.produce(9, build_batch(rows, now_ms=NOW))
        assert row.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [error.batch_index for error in row.record_errors] == [1]
        old = [Message(n, 1, 0, record.timestamp, b"k", b"v") for n, record in enumerate(rows)]
        assert tenant.produce(2, write_message_set(old)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert tenant.partition().log.end_offset == 0
    assert tenant.produce(9, batch_of(time=NOW)).error_code == 0
    assert tenant.produce(0, write_message_set([Message(0, 0, 0, -1, b"k", b"v")])).error_code == 0  # has no time


# --- keys, and full validation ----------------------------------------------------------------------------------------


def test_a_compacted_topic_takes_no_record_without_a_key(cluster):
    tenant = topic(cluster, cleanup_policy="compact")
    rows = [Record(key, b"v", (), NOW) for key in (b"a", None, b"c", None)]
    row = tenant.produce(9, build_batch(rows, now_ms=NOW))
    assert row.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in row.record_errors] == [1, 3]
    assert "simulate" not in row.error_message
    assert tenant.produce(0, write_message_set([Message(0, 0, 0, -1, None, b"v")])).error_code == 87
    assert tenant.partition().log.end_offset == 0
    assert tenant.produce(9, batch_of()).error_code == 0


def validating(tenant):
    for broker in tenant.cluster.brokers.values():
        settings = replace(broker.replicas.configuration.settings, record_validation="full")
        broker.replicas.configuration.config = replace(broker.replicas.configuration.config, settings=settings)
        for partition in broker.replicas.registry.partitions():
            broker.replicas.configuration.configure(partition)
    return tenant


def lying(body, count=1, codec=NONE):
    """A batch whose header is right, and whose records are these bytes."""
    batch = batch_of(count, codec)[:61] + body
    batch[8:12] = (len(batch) - 12).to_bytes(4)
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
    return batch


GOOD = bytes([12, 0, 0, 0, 1, 1, 0])  # no key, no value
BAD_BODIES = {
    "a length below zero": b"\x01" + GOOD[1:],
    "a length beyond the batch": b"\x7e" + GOOD[1:],
    "a varint that does not end": b"\xff" * 12,
    "an offset that is not the next": bytes([12, 0, 0, 2, 1, 1, 0]),
    "a key beyond the record": bytes([12, 0, 0, 0, 100, 1, 0]),
    "a value beyond the record": bytes([12, 0, 0, 0, 1, 100, 0]),
    "header count below zero": bytes([12, 0, 0, 0, 1, 1, 1]),
    "more headers than bytes": bytes([12, 0, 0, 0, 1, 1, 120]),
    "a header without a name": bytes([16, 0, 0, 0, 1, 1, 2, 1, 0]),
    "bytes after the headers": bytes([14, 0, 0, 0, 1, 1, 0, 0]),
    "bytes after the records": GOOD + b"\0",
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_full_validation_refuses_what_the_header_does_not_show(cluster, body):
    tenant = topic(cluster)
    assert tenant.produce(9, lying(body)).error_code == 0  # the header alone is fine
    validating(tenant)
    end = tenant.partition().log.end_offset
    for _ in range(2):  # the second one comes by the way of repeated requests
        assert tenant.produce(9, lying(body)).error_code == ErrorCode.INVALID_RECORD
    assert tenant.partition().log.end_offset == end
    assert tenant.produce(9, lying(GOOD)).error_code == 0


def test_full_validation_opens_what_is_compressed_within_a_limit(cluster):
    tenant = validating(topic(cluster))
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        assert tenant.produce(9, lying(b"\x7fgarbage", codec=codec)).error_code == ErrorCode.CORRUPT_MESSAGE
        assert tenant.produce(9, batch_of(500, codec)).error_code == 0
    bomb = build_batch([Record(None, bytes(32 * MIB))], now_ms=NOW, codec=ZSTD)
    assert len(bomb) < MIB
    assert tenant.produce(9, bomb).error_code == ErrorCode.INVALID_RECORD
    assert tenant.partition().log.end_offset == 2000


def test_full_validation_puts_a_wrong_largest_timestamp_right(cluster):
    tenant = validating(topic(cluster))
    batch = batch_of()
    batch[35:43] = (OLD_TIME + 999_999).to_bytes(8)
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
    assert tenant.produce(9, batch).error_code == 0
    assert [header.max_timestamp for header in stored(tenant)] == [OLD_TIME + 2]


# --- nothing special ----------------------------------------------------------------------------------------------------


def test_a_topic_that_asks_for_nothing_has_no_rules(cluster):
    tenant = topic(cluster)
    assert tenant.partition().state.settings.rules is None
    assert rules_of(tenant.partition().log.config, "full") is not None
    batch = batch_of()
    tenant.produce(9, batch)
    assert read_header(tenant.fetch(11, 0).records).crc == read_header(batch).crc
