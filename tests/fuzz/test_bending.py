"""What the fuzzers are fed: other messages, batches and inputs that still go all the way in."""

from __future__ import annotations

from random import Random

from dataplane.handlers.table import served
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.primitives import DecodeError
from dataplane.records.batch import check_batch, read_header, read_records
from dataplane.records.header import CorruptBatchError
from dataplane.records.legacy import read_message_set
from tests.dataplane.protocol.strategies import all_messages
from tests.fuzz import seeds
from tests.fuzz.bending import bent_batch, bent_message_set, repaired_batch, repaired_message_set
from tests.fuzz.declared import bent_bytes, made
from tests.fuzz.segments import bent_input

ROOMY = 2**20


def flipped(data: bytes, limit: int) -> bytes:
    """In the fuzzer's place: it alters bytes blindly."""
    return bytes((data[0] ^ 1,)) + data[1:limit]


def test_a_bent_message_is_another_message_of_its_kind():
    random = Random(1)
    same = 0
    messages = list(all_messages())
    for cls, version in messages:
        data = encode(made(cls, version, random), version)
        bent = bent_bytes(cls, version, data, random)
        decode(cls, version, bent)
        same += bent == data
    assert same < len(messages) / 4


def test_bytes_that_are_no_message_become_one():
    for cls, version in all_messages():
        assert isinstance(decode(cls, version, bent_bytes(cls, version, b"\xff", Random(2))), cls)


def test_the_same_seed_bends_the_same_way():
    cls, version, data = next(seeds.golden())
    assert bent_bytes(cls, version, data, Random(3)) == bent_bytes(cls, version, data, Random(3))


def test_some_bent_batches_are_good_and_some_are_not():
    random = Random(4)
    bent = [repaired_batch(bent_batch(batch, random, flipped)) for batch in seeds.batches() for _ in range(100)]
    codes = {int(check_batch(memoryview(each), read_header(each), ROOMY)) for each in bent}
    assert 0 in codes
    assert len(codes) > 1


def test_a_repaired_batch_has_a_right_length_and_crc():
    for batch in seeds.batches():
        torn = bytearray(batch)
        torn[8:12], torn[17:21] = b"\x7f\xff\xff\xff", b"\0\0\0\0"
        repaired = repaired_batch(bytes(torn))
        assert check_batch(memoryview(repaired), read_header(repaired), ROOMY) == 0
        assert read_records(repaired) == read_records(batch)


def test_bent_message_sets_can_be_read_more_often_than_not():
    random = Random(5)
    bent = [
        repaired_message_set(bent_message_set(each, random, flipped))
        for each in seeds.message_sets()
        for _ in range(50)
    ]
    assert sum(map(is_readable, bent)) > len(bent) / 2


def is_readable(message_set: bytes) -> bool:
    """Whether there are whole messages in it."""
    try:
        return bool(read_message_set(message_set))
    except CorruptBatchError:
        return False


def test_requests_in_bent_inputs_are_mostly_whole():
    random = Random(6)
    keys = [row.api.key for row in served(tenant=True)]
    data, whole, asked = b"\0", 0, 0
    for _ in range(300):
        data = bent_input(data, keys, random, flipped)
        assert data[0] in (0, 1)
        control, size, payload = data[1], int.from_bytes(data[2:4]), data[4:]
        if control & 3 == 3 and size >= 2:
            row = next(row for row in served(tenant=True) if row.api.key == keys[payload[0] % len(keys)])
            asked += 1
            try:
                decode(row.api.request, payload[1], payload[2:size])
                whole += 1
            except (DecodeError, ValueError):
                pass
    assert whole > asked / 2 > 0
