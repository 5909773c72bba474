"""Torn tails, damaged blocks, missing segments: recovery ends the log with the last batch that can be trusted."""

import pytest

from dataplane.storage.log import LogConfig, cutting, flushing, producing
from tests.dataplane.storage.support import DIRECTORY, append, new_files, open_log, records_in
from tests.support.memory_files import ImmediateBackground

LOG = f"{DIRECTORY}/{0:020d}.log"
TINY = LogConfig(segment_bytes=200, index_interval_bytes=1)


def two_batches():
    files = new_files()
    log = open_log(files)
    append(log, "a", "b")
    size = log.size_bytes
    append(log, "c", producer_id=4, producer_epoch=0, base_sequence=0)
    return files, size


def test_the_last_batch_torn_at_any_byte_is_cut():
    files, first = two_batches()
    whole = bytes(files.content(LOG))
    for size in range(first, len(whole)):
        files.content(LOG)[:] = whole[:size]
        recovered = open_log(files)
        assert records_in(recovered) == [(0, b"a"), (1, b"b")]
        assert (recovered.end_offset, recovered.size_bytes) == (2, first)
        assert recovered.bytes_cut == size - first
        assert bytes(files.content(LOG)) == whole[:first]
        assert len(producing.producers_of(recovered)) == 0


def test_any_damaged_byte_of_the_last_batch_cuts_it():
    files, first = two_batches()
    whole = bytes(files.content(LOG))
    # base offset and leader epoch lie outside of the CRC: a wrong base offset is found by its place, unless it grew
    covered = [at for at in range(first + 8, len(whole)) if not first + 12 <= at < first + 16]
    for at in covered:
        files.content(LOG)[:] = whole
        files.content(LOG)[at] ^= 0x41
        assert records_in(open_log(files)) == [(0, b"a"), (1, b"b")], at


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"\xff" * 100, b"\x00\x00\x00", bytes(range(256))])
def test_garbage_behind_the_last_batch_is_cut(garbage):
    files, _ = two_batches()
    files.content(LOG).extend(garbage)
    recovered = open_log(files)
    assert records_in(recovered) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert recovered.bytes_cut == len(garbage)


def test_damage_in_an_unsynced_segment_removes_those_behind_it():
    files = new_files()
    log = open_log(files, config=TINY)
    for n in range(12):
        append(log, "x" * 40 + str(n))
    assert len(log.segments) > 3
    second = log.segments[1]
    files.content(second.path + ".log")[70] ^= 1
    recovered = open_log(files, config=TINY)
    assert recovered.end_offset == second.base_offset
    names = [name for name in files.list(DIRECTORY) if name.endswith(".log")]
    assert names == [f"{0:020d}.log", f"{second.base_offset:020d}.log"]
    append(recovered, "goes on")
    assert records_in(recovered)[-1] == (second.base_offset, b"goes on")


def test_a_segment_that_lost_its_end_leaves_no_gap():
    files = new_files()
    log = open_log(files, config=TINY)
    for _ in range(12):
        append(log, "x" * 20)
    assert log.segments[1].base_offset == 2
    first = files.content(LOG)
    del first[len(first) // 2 :]  # exactly one batch: nothing is torn
    recovered = open_log(files, config=TINY)
    assert recovered.end_offset == 1
    assert len(recovered.segments) == 1


def test_what_is_known_to_be_on_disk_is_not_read_again():
    files = new_files()
    log = open_log(files, config=TINY)
    for n in range(12):
        append(log, "x" * 40 + str(n))
    flushing.flush(log)
    damaged = log.segments[0]
    files.content(damaged.path + ".log")[100] ^= 1  # among the records
    assert open_log(files, config=TINY, recovery_point=log.recovery_point).end_offset == 12
    assert open_log(files, config=TINY, recovery_point=0).end_offset == 0


def test_epochs_of_lost_batches_are_forgotten_and_of_found_ones_remembered():
    files = new_files()
    log = open_log(files)
    append(log, "a", epoch=3)
    flushing.flush(log)
    append(log, "b", epoch=4)
    append(log, "c", epoch=5)
    assert log.epochs.entries() == [(3, 0), (4, 1), (5, 2)]
    files.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert open_log(files).epochs.entries() == [(3, 0), (4, 1), (5, 2)]
    files.crash()
    assert open_log(files).epochs.entries() == [(3, 0)]


def test_what_was_cut_does_not_come_back_after_a_power_cut():
    files = new_files()
    log = open_log(files)
    for n in range(5):
        append(log, str(n), epoch=1)
    flushing.flush(log)
    cutting.truncate(log, 2)
    log.epochs.assign(3, 2)
    files.crash()
    recovered = open_log(files, recovery_point=5)
    assert records_in(recovered) == [(0, b"0"), (1, b"1")]
    assert recovered.epochs.latest() == 1


def test_names_that_are_no_segments_are_left_alone():
    files, _ = two_batches()
    files.write_file(f"{DIRECTORY}/notes.log", b"mine")
    files.write_file(f"{DIRECTORY}/{5:020d}.log.deleted", b"half removed")
    recovered = open_log(files)
    assert recovered.end_offset == 3
    assert files.exists(f"{DIRECTORY}/notes.log")
    assert not files.exists(f"{DIRECTORY}/{5:020d}.log.deleted")


def test_after_a_cut_the_part_written_again_counts_as_not_on_disk():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=TINY)
    for n in range(8):
        append(log, "x" * 40 + str(n))
    flushing.flush(log)
    background.held = True
    cutting.truncate(log, 2)
    for n in range(6):
        append(log, "y" * 40 + str(n))
    assert log.recovery_point == 2
    third = log.segments[3]
    files.content(third.path + ".log").clear()
    recovered = open_log(files, config=TINY, recovery_point=log.recovery_point)
    assert recovered.end_offset == third.base_offset, "no gap where a segment lost its content"


def test_a_sync_that_ends_after_a_cut_says_nothing_about_what_came_later():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=TINY)
    background.held = True
    for n in range(6):
        append(log, "x" * 40 + str(n))
    cutting.truncate(log, 1)
    for n in range(6):
        append(log, "y" * 40 + str(n))
    waiting, background._waiting = background._waiting, []
    background._waiting = waiting[:5]  # the syncs of what was there before the cut
    background.release()
    assert log.recovery_point == 0


def test_a_first_segment_that_lost_everything_is_appended_to_again():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=TINY)
    background.held = True
    for n in range(3):
        append(log, "x" * 60 + str(n))
    files.crash()
    recovered = open_log(files, config=LogConfig(index_interval_bytes=1))
    assert recovered.end_offset == 0
    for n in range(5):
        append(recovered, str(n))
    assert records_in(recovered) == [(n, str(n).encode()) for n in range(5)]
    cutting.truncate(recovered, 0)
    assert (recovered.end_offset, recovered.size_bytes) == (0, 0)
