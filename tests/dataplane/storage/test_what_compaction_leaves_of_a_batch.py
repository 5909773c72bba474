"""Rules for one batch: the last record of a key stays, tombstones stay for a while, offsets and sequences never change."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.records import compression
from dataplane.records.batch import Record, build_batch, check_stored, read_header, read_records
from dataplane.records.control import Marker, build_marker
from dataplane.records.header import CRC_AT
from dataplane.storage.cleaner.batches import DELETE_HORIZON, KeyMap, Rules, cleaned, entries_of

RULES = Rules(now_ms=50_000, delete_retention_ms=1_000)
EVERY_CODEC = list(compression.NAMES)


def batch_of(*pairs: tuple[bytes | None, bytes | None], codec: int = 0, base_offset: int = 100, **how) -> bytes:
    records = [
        Record(key, value, headers=(("h", b"x"),), timestamp=1_000 + 10 * number)
        for number, (key, value) in enumerate(pairs)
    ]
    return bytes(build_batch(records, now_ms=0, base_offset=base_offset, leader_epoch=3, codec=codec, **how))


def keys_with(latest_offset: int, **last: int) -> KeyMap:
    keys = KeyMap(100)
    for key, offset in last.items():
        assert keys.put(key.encode(), offset)
    keys.latest_offset = latest_offset
    return keys


def clean(batch: bytes, keys: KeyMap, rules: Rules = RULES, *, keeps_producer: bool = False) -> bytes | None:
    left = cleaned(batch, read_header(batch), keys, rules, keeps_producer=keeps_producer)
    if left is None:
        return None
    check_stored(left, read_header(left))
    return bytes(left)


def seen(batch: bytes) -> list[tuple[int, bytes | None, bytes | None, int]]:
    return [(r.offset, r.key, r.value, r.timestamp) for r in read_records(batch)]


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_what_a_later_record_replaces_goes_and_the_rest_is_as_it_was(codec):
    batch = batch_of((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), codec=codec)
    left = clean(batch, keys_with(500, a=400, b=101))
    assert left is not None
    assert read_records(left) == read_records(batch)[1:]
    before, after = read_header(batch), read_header(left)
    assert after.count == 2
    assert after.max_timestamp == 1_020
    same = ("base_offset", "last_offset", "leader_epoch", "compression", "base_timestamp", "base_sequence")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]


def test_a_batch_that_loses_its_last_record_keeps_its_last_offset_and_tells_its_youngest_record():
    left = clean(batch_of((b"a", b"1"), (b"b", b"2")), keys_with(500, b=400))
    assert left is not None
    assert (read_header(left).last_offset, read_header(left).max_timestamp) == (101, 1_000)


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_a_batch_of_which_all_stays_is_the_same_bytes(codec):
    batch = batch_of((b"a", b"1"), (b"b", b"2"), codec=codec)
    assert clean(batch, keys_with(500, a=100)) == batch


def test_a_batch_of_which_nothing_stays_goes():
    assert clean(batch_of((b"a", b"1")), keys_with(500, a=400)) is None


def test_the_last_batch_of_a_producer_stays_as_a_header():
    batch = batch_of((b"a", b"1"), (b"a", b"2"), codec=1, producer_id=7, producer_epoch=2, base_sequence=9)
    left = clean(batch, keys_with(500, a=400), keeps_producer=True)
    assert left is not None
    header = read_header(left)
    assert (len(left), header.count, read_records(left)) == (61, 0, [])
    assert (header.base_offset, header.last_offset) == (100, 101)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.leader_epoch) == (7, 2, 9, 3)
    assert clean(left, keys_with(900), keeps_producer=True) == left
    assert clean(left, keys_with(900)) is None


def test_what_the_map_does_not_reach_stays():
    batch = batch_of((b"a", b"1"), (b"a", b"2"))
    left = clean(batch, keys_with(100, a=99))
    assert left == batch


def test_records_without_a_key_go():
    left = clean(batch_of((None, b"1"), (b"b", b"2")), keys_with(500))
    assert left is not None
    assert [key for _, key, _, _ in seen(left)] == [b"b"]


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_a_tombstone_gets_a_horizon_when_it_is_first_seen_and_goes_when_that_has_passed(codec):
    batch = batch_of((b"a", b"1"), (b"b", None), codec=codec)
    first = clean(batch, keys_with(500, b=101))
    assert first is not None
    header = read_header(first)
    assert header.attributes & DELETE_HORIZON
    assert header.base_timestamp == 51_000
    assert seen(first) == seen(batch)
    assert [r.headers for r in read_records(first)] == [(("h", b"x"),)] * 2
    assert clean(first, keys_with(600), Rules(50_999, 1_000)) == first
    later = clean(first, keys_with(600), Rules(51_000, 99_000))
    assert later is not None
    assert seen(later) == seen(batch)[:1]
    assert read_header(later).base_timestamp == 51_000


def test_a_tombstone_that_a_later_record_replaces_goes_at_once():
    assert clean(batch_of((b"a", None)), keys_with(500, a=400)) is None


def test_log_append_time_is_the_time_of_what_stays():
    batch = bytearray(batch_of((b"a", b"1"), (b"b", None)))
    batch[22] |= 0x08
    header = read_header(batch)._replace(max_timestamp=7_777)
    from crc32c import crc32c

    from dataplane.records.header import HEADER

    HEADER.pack_into(batch, 0, *header)
    batch[CRC_AT : CRC_AT + 4] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    left = clean(bytes(batch), keys_with(500, a=400))
    assert left is not None
    assert seen(left) == [(101, b"b", None, 7_777)]


def test_control_batches_stay():
    marker = bytes(build_marker(Marker.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=5))
    assert clean(marker, keys_with(500)) == marker


@pytest.mark.parametrize("damage", range(61, 87))
def test_what_cannot_be_read_stays_as_it_is_or_loses_only_what_can(damage):
    batch = bytearray(batch_of((b"a", b"1"), (b"b", b"2")))
    batch[damage] ^= 0x55
    left = cleaned(batch, read_header(batch), keys_with(500, a=400, b=400), RULES, keeps_producer=False)
    assert left is None or bytes(left) == bytes(batch) or read_header(left).count == 1


def test_random_bytes_are_not_taken_for_records():
    random = Random(1)
    for _ in range(300):
        batch = bytearray(batch_of((b"a", b"1"), (b"b", b"2"), (b"c", b"3")))
        for _ in range(3):
            batch[random.randrange(61, len(batch))] = random.randrange(256)
        found = entries_of(batch, read_header(batch))
        assert found is None or [entry.offset_delta for entry in found[1]] == sorted({e.offset_delta for e in found[1]})


def test_keys_with_the_same_beginning_are_different_and_the_map_has_an_end():
    keys = KeyMap(3)
    assert keys.put(b"k" * 100, 1)
    assert keys.put(b"k" * 101, 2)
    assert keys.put(b"k", 3)
    assert not keys.put(b"another", 4)
    assert keys.put(b"k", 5)
    assert [keys.last_offset(key) for key in (b"k" * 100, b"k" * 101, b"k", b"another")] == [1, 2, 5, -1]
