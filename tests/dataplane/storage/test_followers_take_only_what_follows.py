"""A follower's log is the leader's, byte for byte, or an error."""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_header
from dataplane.storage.checkpoints.producers import Duplicate
from dataplane.storage.log import CorruptBatchError, LogConfig, appending, closing, lookup, producing
from tests.dataplane.storage.support import append, batch_of, copy_of, new_files, open_log, records_in


def leader():
    log = open_log(new_files())
    append(log, "a", "b", epoch=1)
    append(log, "c", epoch=1, producer_id=9, producer_epoch=0, base_sequence=0)
    append(log, "d", epoch=4)
    return log


def test_a_copy_has_the_same_bytes_epochs_and_producers():
    source, copy = leader(), open_log(new_files(), config=LogConfig(segment_bytes=150))
    appending.stage_replica(copy, memoryview(copy_of(source)))
    assert copy.end_offset == 0
    appending.commit(copy)
    assert copy_of(copy) == copy_of(source)
    assert copy.epochs.entries() == source.epochs.entries() == [(1, 0), (4, 3)]
    again = read_header(batch_of("c", producer_id=9, producer_epoch=0, base_sequence=0))
    assert producing.producers_of(copy).check(again) == producing.producers_of(source).check(again) == Duplicate(2)


def test_a_partial_batch_at_the_end_waits_for_the_next_fetch():
    source, copy = leader(), open_log(new_files())
    data = copy_of(source)
    appending.stage_replica(copy, memoryview(data[:-1]))
    appending.commit(copy)
    assert copy.end_offset == 3
    assert records_in(copy) == records_in(source)[:3]


@pytest.mark.parametrize("skip", [1, 2])
@pytest.mark.parametrize("clean", [True, False])
def test_what_the_leader_compacted_away_is_missing_in_the_copy_too(skip, clean):
    source, files, config = leader(), new_files(), LogConfig(segment_bytes=80)  # a segment for every batch
    copy = open_log(files, config=config)
    batches = [bytes(batch) for _, batch in lookup.batches(source, 0, source.end_offset)]
    left = b"".join(batches[: skip - 1] + batches[skip:])
    appending.stage_replica(copy, memoryview(bytearray(left)))
    appending.commit(copy)
    assert copy.end_offset == source.end_offset
    assert copy_of(copy) == left
    closing.close(copy)
    again = open_log(files, config=config, clean=clean)
    assert (again.end_offset, again.bytes_cut) == (source.end_offset, 0)
    assert copy_of(again) == left


def test_batches_in_the_wrong_order_are_refused():
    source, copy = leader(), open_log(new_files())
    first, second, third = [bytes(batch) for _, batch in lookup.batches(source, 0, source.end_offset)]
    with pytest.raises(CorruptBatchError):
        appending.stage_replica(copy, memoryview(bytearray(first + third + second)))
    appending.commit(copy)
    assert (copy.end_offset, copy.staged_end) == (0, 0)


def test_batches_it_has_already_are_left_out():
    """An answer that crossed the request for what comes after it brings the same again."""
    source, copy = leader(), open_log(new_files())
    first, *others = [bytes(batch) for _, batch in lookup.batches(source, 0, source.end_offset)]
    appending.stage_replica(copy, memoryview(bytearray(first)))
    appending.stage_replica(copy, memoryview(bytearray(first)))  # in the same turn,
    appending.commit(copy)
    appending.stage_replica(copy, memoryview(bytearray(first)))  # in a later one,
    appending.stage_replica(copy, memoryview(bytearray(first + b"".join(others))))  # and with more behind it
    appending.commit(copy)
    assert copy_of(copy) == copy_of(source)
    assert copy.epochs.entries() == source.epochs.entries()


def test_a_batch_of_another_epoch_where_it_has_one_already_is_refused():
    source, copy, other = leader(), open_log(new_files()), open_log(new_files())
    appending.stage_replica(copy, memoryview(copy_of(source)))
    appending.commit(copy)
    append(other, "a", "x", epoch=2)
    with pytest.raises(CorruptBatchError):
        appending.stage_replica(copy, memoryview(copy_of(other)))
    assert copy_of(copy) == copy_of(source)


def test_a_batch_that_begins_before_its_end_and_ends_behind_it_is_refused():
    source, copy = leader(), open_log(new_files())
    append(copy, "a", epoch=1)
    with pytest.raises(CorruptBatchError):
        appending.stage_replica(copy, memoryview(copy_of(source)))
    assert copy.staged_end == copy.end_offset == 1


def test_a_damaged_batch_is_refused_with_all_that_came_with_it():
    source = leader()
    data = copy_of(source)
    for at in (20, len(data) - 1):
        copy = open_log(new_files())
        bad = bytearray(data)
        bad[at] ^= 1
        with pytest.raises(CorruptBatchError) as caught:
            appending.stage_replica(copy, memoryview(bad))
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert copy.staged_end == 0
        assert copy.epochs.latest() == -1
        assert len(producing.producers_of(copy)) == 0
