"""Formats 0 and 1: what was written is read again, tails may be missing, hostile bytes end in one kind of error."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, check_batch, read_header, read_records
from dataplane.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from dataplane.records.down_conversion import Converted, down_convert
from dataplane.records.header import CorruptBatchError, split_batches
from dataplane.records.legacy import Message, read_message_set, read_shallow, write_message, write_message_set
from dataplane.records.lz4 import compress_frame, with_right_checksum, xxhash32_of_few
from dataplane.records.preparation import NO_RULES, Rules, prepare_messages
from dataplane.records.steps import RECORDS_PER_STEP, run_through

OLD_CODECS = [NONE, GZIP, SNAPPY, LZ4]
texts = st.none() | st.binary(max_size=60)
rows = st.lists(st.tuples(texts, texts, st.integers(0, 2**41)), min_size=1, max_size=20)
ROOMY = 2**31


def messages_of(rows, magic, base=0, step=1):
    return [
        Message(base + step * number, magic, 0, time if magic else -1, key, value)
        for number, (key, value, time) in enumerate(rows)
    ]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
@settings(max_examples=25, deadline=None)
@given(rows=rows, base=st.integers(0, 2**40), step=st.integers(1, 3))
def test_a_set_comes_back_with_its_offsets_and_gaps(magic, codec, rows, base, step):
    messages = messages_of(rows, magic, base, step)
    assert read_message_set(write_message_set(messages, codec)) == messages


@pytest.mark.parametrize("magic", [0, 1])
@given(rows=rows, data=st.data())
def test_a_cut_off_tail_is_left_out(magic, rows, data):
    messages = messages_of(rows, magic)
    written = write_message_set(messages)
    end = data.draw(st.integers(0, len(written)))
    whole, size = 0, 0
    for message in messages:
        size += len(write_message_set([message]))
        whole += size <= end
    assert list(read_shallow(written[:end])) == messages[:whole]


@pytest.mark.parametrize("magic", [0, 1])
@given(rows=rows, data=st.data())
def test_a_flipped_bit_is_an_error_or_a_tail_but_for_the_offset(magic, rows, data):
    messages = messages_of(rows, magic)
    written = bytearray(write_message_set(messages))
    bit = data.draw(st.integers(0, 8 * len(written) - 1))
    written[bit // 8] ^= 1 << bit % 8
    try:
        found = list(read_shallow(written))
    except CorruptBatchError:
        return
    assert [m._replace(offset=0) for m in found] == [m._replace(offset=0) for m in messages[: len(found)]]


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), codec=st.sampled_from(range(8)), magic=st.sampled_from([0, 1, 2]))
def test_hostile_bytes_are_one_kind_of_error(data, codec, magic):
    wrapper = write_message(1, 0, 1, None, data, codec) if magic else write_message(0, 0, -1, None, data, codec)
    for hostile in (data, wrapper, wrapper[: len(wrapper) // 2]):
        with suppress(CorruptBatchError):
            read_message_set(hostile, 10_000)
        with suppress(CorruptBatchError):
            run_through(prepare_messages(memoryview(hostile), NO_RULES, 1, ROOMY))


# --- converted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
@settings(max_examples=20, deadline=None)
@given(rows=rows)
def test_up_and_down_again_is_the_same(magic, codec, rows):
    messages = messages_of(rows, magic)
    batch = run_through(prepare_messages(memoryview(write_message_set(messages, codec)), NO_RULES, 7, ROOMY))
    header = read_header(batch)
    assert check_batch(batch, header, ROOMY) == ErrorCode.NONE
    assert (header.compression, header.producer_id, header.count) == (codec, -1, len(rows))
    assert [(r.key, r.value, r.timestamp) for r in read_records(batch)] == [
        (m.key, m.value, m.timestamp) for m in messages
    ]
    converted = Converted(0, ROOMY, at_least_one=True)
    run_through(down_convert(batch, magic, converted))
    assert read_message_set(converted.data) == messages


@pytest.mark.parametrize("codec", [NONE, GZIP])
@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 80), min_size=1, max_size=6), min_size=1, max_size=5),
    limit=st.integers(0, 600),
    first=st.integers(0, 5),
    magic=st.sampled_from([0, 1]),
)
def test_never_more_than_asked_but_for_the_first_message(codec, sizes, limit, first, magic):
    log = bytearray()
    base = 0
    for batch in sizes:
        records = [Record(None, bytes(size), (("h", b"x"),), 5) for size in batch]
        log += build_batch(records, now_ms=1, base_offset=base, codec=codec)
        base += len(batch)
    first = min(first, base - 1)
    log = b"".join(batch for header, batch in split_batches(log) if header.next_offset > first)  # as a log is read
    converted = Converted(first, limit, at_least_one=True)
    run_through(down_convert(memoryview(log), magic, converted))
    shallow = list(read_shallow(converted.data))
    assert sum(len(write_message_set([m])) for m in shallow) == len(converted.data)  # whole messages
    assert shallow
    assert len(converted.data) <= limit or len(shallow) == 1
    offsets = [m.offset for m in read_message_set(converted.data)]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))  # nothing is left out in the middle
    assert offsets[0] == first if codec == NONE else offsets[0] <= first
    assert converted.next_offset == offsets[-1] + 1
    assert converted.is_full == (offsets[-1] + 1 < base)

    nothing = Converted(first, 10, at_least_one=False)
    run_through(down_convert(memoryview(log), magic, nothing))
    assert (nothing.data, nothing.is_full) == (b"", True)


def test_zstd_ends_an_answer_and_is_refused_where_it_begins():
    old = build_batch([Record(None, b"1")], now_ms=1)
    new = build_batch([Record(None, b"2")], now_ms=1, base_offset=1, codec=ZSTD)
    converted = Converted(0, ROOMY, at_least_one=True)
    run_through(down_convert(memoryview(old + new), 1, converted))
    assert [m.offset for m in read_shallow(converted.data)] == [0]
    with pytest.raises(CorruptBatchError) as refused:
        run_through(down_convert(memoryview(new), 1, Converted(1, ROOMY, at_least_one=True)))
    assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_deltas_that_lead_beyond_64_bits_are_corrupt_records(magic, codec):
    batch = build_batch([Record(None, b"1", timestamp=0), Record(None, b"2", timestamp=2**62)], now_ms=1, codec=codec)
    batch[:8] = (2**63 - 1).to_bytes(8)
    batch[27:35] = (2**62).to_bytes(8)
    with pytest.raises(CorruptBatchError) as refused:
        run_through(down_convert(memoryview(batch), magic, Converted(0, ROOMY, at_least_one=True)))
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_work_on_many_records_pauses():
    count = 4 * RECORDS_PER_STEP
    messages = messages_of([(None, b"v", 1)] * count, 1)
    pauses = sum(step is None for step in prepare_messages(memoryview(write_message_set(messages)), NO_RULES, 7, ROOMY))
    assert pauses == 4
    single = b"".join(build_batch([Record(None, b"v")], now_ms=1, base_offset=n) for n in range(count))
    steps = list(down_convert(memoryview(single), 1, Converted(0, ROOMY, at_least_one=True)))
    assert steps == [None] * 4


def test_a_bomb_of_old_is_refused():
    bomb = write_message_set([Message(0, 1, 0, 1, None, bytes(20 * 2**20))], GZIP)
    assert len(bomb) < 2**20
    with pytest.raises(CorruptBatchError) as refused:
        run_through(prepare_messages(memoryview(bomb), NO_RULES, 1, 2**20))
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_message_beyond_the_limit_is_too_large():
    message_set = memoryview(write_message_set([Message(0, 0, 0, -1, None, bytes(1001))]))
    with pytest.raises(CorruptBatchError) as refused:
        run_through(prepare_messages(message_set, Rules(), 1, 1000))
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


# --- lz4 ----------------------------------------------------------------------------------------------------------------


def test_xxhash_of_known_words():
    """Values of the reference implementation (xxhsum)."""
    assert xxhash32_of_few(b"") == 0x02CC5D05
    assert xxhash32_of_few(b"a") == 0x550D7456
    assert xxhash32_of_few(b"abc") == 0x32D153FF


@given(data=st.binary(max_size=300))
def test_only_the_header_checksum_differs_in_format_0(data):
    right, wrong = compress_frame(data), compress_frame(data, wrong_checksum=True)
    assert (right[6], wrong[6]) == (0x82, 0x1A)
    assert right[:6] + right[7:] == wrong[:6] + wrong[7:]
    assert with_right_checksum(wrong) == right == with_right_checksum(right)
