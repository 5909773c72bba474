"""Clients of 0.8 and of today read each other's messages in one topic; what an old one cannot be given is said."""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.records.batch import Record, build_batch, read_header, split_batches
from dataplane.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from dataplane.records.legacy import Message, read_shallow, write_message_set
from dataplane.records.steps import RECORDS_PER_STEP
from dataplane.slices import STEPS_PER_SLICE
from tests.dataplane.handlers.asking import MIB, Tenant, Wire, records_of
from tests.simulation.cluster import SimulatedCluster

OLD_CODECS = [NONE, GZIP, SNAPPY, LZ4]
TIME = 1_700_000_000_123


@pytest.fixture
def tenant():
    cluster = SimulatedCluster(seed=5)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    return Tenant(cluster)


def old(count, magic=0, codec=NONE, value=b"old %d"):
    rows = [Message(n, magic, 0, TIME + n if magic else -1, b"k", value % n) for n in range(count)]
    return write_message_set(rows, codec)


def new(count, codec=NONE, value=b"new %d"):
    rows = [Record(b"k", value % n, (("trace", b"1"),), TIME + n) for n in range(count)]
    return build_batch(rows, now_ms=TIME, codec=codec)


@pytest.mark.parametrize("codec", OLD_CODECS, ids=NAMES.get)
def test_everybody_reads_what_everybody_wrote(tenant, codec):
    assert tenant.produce(0, old(3, 0, codec)).base_offset == 0
    assert tenant.produce(9, new(3, codec)).base_offset == 3
    assert tenant.produce(2, old(3, 1, codec)).base_offset == 6
    assert tenant.produce(1, old(1)).base_offset == 9
    values = [b"old 0", b"old 1", b"old 2", b"new 0", b"new 1", b"new 2", b"old 0", b"old 1", b"old 2", b"old 0"]
    times = [-1, -1, -1, TIME, TIME + 1, TIME + 2, TIME, TIME + 1, TIME + 2, -1]
    for version in range(12):
        rows = tenant.read_all(version)
        assert [row[0] for row in rows] == list(range(10))
        assert [row[3] for row in rows] == values
        assert [row[1] for row in rows] == ([-1] * 10 if version < 2 else times)


def test_the_log_holds_one_batch_for_each_old_request(tenant):
    tenant.produce(0, old(5))
    tenant.produce(2, old(7, 1, LZ4))
    headers = [header for header, _ in split_batches(tenant.fetch(11, 0).records)]
    assert [(h.magic, h.count, h.compression, h.producer_id) for h in headers] == [(2, 5, NONE, -1), (2, 7, LZ4, -1)]


def test_formats_follow_the_version_of_fetch(tenant):
    tenant.produce(9, new(2))
    assert [tenant.fetch(version, 0).records[16] for version in range(6)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_fetch_from_the_middle_begins_there_or_with_the_whole_wrapper(tenant, codec):
    tenant.produce(9, new(5, codec))
    offsets = [row[0] for row in records_of(tenant.fetch(3, 2).records)]
    assert offsets == ([2, 3, 4] if codec == NONE else [0, 1, 2, 3, 4])


def test_no_more_than_asked_but_the_first_message_whatever_its_size(tenant):
    for _ in range(20):
        tenant.produce(9, new(1, value=b"%d" + bytes(1000)))
    data = tenant.fetch(1, 0, max_bytes=5000).records
    assert 3000 < len(data) <= 5000
    assert len(list(read_shallow(tenant.fetch(1, 0, max_bytes=10).records))) == 1
    assert len(list(read_shallow(tenant.fetch(3, 0, answer_bytes=2500).records))) == 2
    assert len(tenant.read_all(0, max_bytes=2500)) == 20


def test_a_large_log_is_read_in_pieces_by_an_old_client(tenant):
    for _ in range(12):
        tenant.produce(9, new(2000, value=b"%d" + bytes(200)))
    rows = tenant.read_all(1)
    assert [row[0] for row in rows] == list(range(24_000))


def test_one_answer_converts_a_bounded_amount_and_no_partition_starves(tenant):
    tenant.cluster.create_topic("wide", 8)
    for index in range(8):
        leader = tenant.partition("wide", index).state.leader_id
        for _ in range(3):
            batch = bytes(new(900, value=b"%d" + bytes(1000)))
            request = Tenant.produce_request(batch, "wide")
            data = request.topic_data[0]
            object.__setattr__(data.partition_data[0], "index", index)
            answer = tenant.cluster.client.call(leader, request, 9)
            tenant.cluster.until(lambda answer=answer: answer.done)
            assert answer.result().responses[0].partition_responses[0].error_code == 0
    led = [
        i
        for i in range(8)
        if tenant.partition("wide", i).state.leader_id == tenant.partition("wide", 0).state.leader_id
    ]
    wanted = tuple(FetchPartition(partition=i, partition_max_bytes=8 * MIB) for i in led)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="wide", partitions=wanted),)
    )
    served = set()
    for _ in range(3 * len(led)):
        answer = tenant.ask(request, 1, "wide")
        rows = answer.responses[0].partitions
        assert sum(len(row.records) for row in rows) <= 4 * MIB + 1024
        served |= {row.partition_index for row in rows if len(row.records)}
    assert served == set(led)


# --- what is refused ----------------------------------------------------------------------------------------------------


def test_new_requests_hold_no_old_messages(tenant):
    for version in (3, 9):
        assert tenant.produce(version, old(1)).error_code == ErrorCode.INVALID_RECORD
    assert tenant.partition().log.end_offset == 0


def test_a_batch_that_was_cut_is_refused_once_and_for_all_as_by_kafka(tenant):
    """CORRUPT_MESSAGE would have the client send it again until its delivery time-out."""
    whole = bytes(build_batch([Record(b"k", b"v")], now_ms=1))
    for cut in (whole[:-3], whole[:61], whole[:20], whole[:8] + (10_000).to_bytes(4) + whole[12:]):
        for version in (0, 3, 7, 9):
            answer = tenant.produce(version, cut)
            assert answer.error_code == ErrorCode.INVALID_RECORD
            assert answer.log_start_offset == -1
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    assert tenant.produce(9, flipped).error_code == ErrorCode.CORRUPT_MESSAGE
    assert tenant.partition().log.end_offset == 0


def test_bad_message_sets_are_refused_and_the_connection_lives(tenant):
    good = old(2, 1)
    flipped = bytearray(good)
    flipped[-1] ^= 1
    answers = [tenant.produce(2, bad).error_code for bad in (flipped, old(1, 1, GZIP) * 2, good[:8] + bytes(80))]
    assert answers == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]
    assert tenant.partition().log.end_offset == 0
    assert tenant.produce(2, good).base_offset == 0


def test_a_partial_message_is_left_out_and_nothing_at_all_is_no_error(tenant):
    assert tenant.produce(1, old(3) + old(1)[:20]).base_offset == 0
    assert tenant.partition().log.end_offset == 3
    row = tenant.produce(1, old(1)[:20])
    assert (row.error_code, row.base_offset) == (0, -1)


def test_zstd_needs_clients_that_know_it(tenant):
    batch = new(1, ZSTD)
    for version in (3, 5, 6, 6):  # the second time by the short cut, if it took it
        assert tenant.produce(version, batch).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert tenant.produce(7, batch).error_code == 0
    assert [tenant.fetch(v, 0).error_code for v in (0, 3, 4, 10)] == [76, 76, 0, 0]
    tenant.cluster.create_topic("packed", 1, compression_type="zstd")
    assert tenant.produce(9, new(1), "packed").error_code == 0
    assert [tenant.fetch(v, 0, "packed").error_code for v in (0, 3, 9, 10)] == [76, 76, 76, 0]


def test_down_conversion_can_be_forbidden(tenant):
    tenant.cluster.create_topic("modern", 1, message_downconversion_enable="false")
    assert tenant.produce(0, old(1), "modern").error_code == 0
    assert [tenant.fetch(v, 0, "modern").error_code for v in (0, 3, 4)] == [35, 35, 0]


# --- order and the loop -------------------------------------------------------------------------------------------------


def test_batches_of_a_connection_keep_their_order_while_one_is_converted(tenant):
    tenant.produce(9, new(1))
    large = [tenant.start_produce(1, old(3000, codec=GZIP)) for _ in range(3)]
    small = tenant.start_produce(9, new(1))
    tenant.cluster.until(lambda: small.done)
    assert all(answer.done for answer in large)
    places = [a.result().responses[0].partition_responses[0].base_offset for a in (*large, small)]
    assert places == [1, 3001, 6001, 9001]


def test_acks_0_is_not_answered_and_an_error_ends_the_connection(tenant):
    wire = Wire(tenant)
    wire.send(Tenant.produce_request(old(2000), acks=0), 1)
    wire.send(Tenant.produce_request(new(1), acks=1), 9, correlation_id=7)
    tenant.cluster.until(lambda: wire.answers)
    assert wire.answers[0][:4] == (7).to_bytes(4)
    assert tenant.partition().log.end_offset == 2001
    wire.send(Tenant.produce_request(bytes(60), acks=0), 1)
    tenant.cluster.until(lambda: wire.is_closed)
    assert len(wire.answers) == 1


def test_a_conversion_takes_several_turns_and_others_are_served_between(tenant):
    loop = tenant.cluster.network.loop(f"10.0.0.{tenant.partition().state.leader_id}")
    before = loop.turns
    answer = tenant.start_produce(1, old(20_000, value=b"%d"))
    tenant.cluster.until(lambda: answer.done)
    assert loop.turns - before > 20_000 / RECORDS_PER_STEP / STEPS_PER_SLICE
    assert read_header(tenant.fetch(11, 0).records).count == 20_000
