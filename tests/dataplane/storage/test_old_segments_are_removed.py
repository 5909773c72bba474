"""Retention by time and size, and moving the start: whole segments, oldest first, readers undisturbed."""

import pytest

from dataplane.records.batch import Record, build_batch, read_header
from dataplane.storage.cleaner.batches import KeyMap, Rules, cleaned
from dataplane.storage.log import LogConfig, OffsetOutOfRangeError, appending, closing, reading, removing, rolling
from dataplane.storage.segments.segment import Segment
from tests.dataplane.storage.support import DIRECTORY, append, new_files, open_log, records_in, stage
from tests.support.memory_files import ImmediateBackground


def filled(background=None, **config):
    """Five segments of two records each; record n is of second n."""
    files = new_files()
    log = open_log(files, background, config=LogConfig(segment_bytes=200, **config))
    for n in range(10):
        append(log, "x" * 30, now_ms=1_000 * n, epoch=n // 4)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6, 8]
    return files, log


def log_files(files) -> list[int]:
    return [int(name[:-4]) for name in files.list(DIRECTORY) if name.endswith(".log")]


def test_by_time():
    files, log = filled(retention_ms=5_000)
    size = log.size_bytes
    freed = removing.apply_retention(log, now_ms=9_000, limit=10)
    assert log.start_offset == 4  # record 3 is six seconds old, record 5 only four
    assert freed == size - log.size_bytes == size * 2 // 5
    assert log_files(files) == [4, 6, 8]
    assert [offset for offset, _ in records_in(log)] == list(range(4, 10))
    with pytest.raises(OffsetOutOfRangeError):
        reading.read(log, 3, 1000, 10, at_least_one=True)
    assert removing.apply_retention(log, now_ms=9_000, limit=10) == 0


def test_without_timestamps_by_when_the_segment_was_written():
    files = new_files()
    log = open_log(files, config=LogConfig(segment_bytes=200, retention_ms=5_000))
    for n in range(10):
        files.now_ms = lambda at=1_000 * n: at
        append(log, "x" * 30, now_ms=-1)
    assert [segment.max_timestamp for segment in log.segments] == [-1] * 5
    removing.apply_retention(log, now_ms=6_000, limit=10)
    assert log.start_offset == 0, "record 1 was written five seconds ago"
    removing.apply_retention(log, now_ms=9_000, limit=10)
    assert log_files(files) == [4, 6, 8]
    removing.apply_retention(log, now_ms=10**9, limit=10)
    assert (log.start_offset, log.size_bytes) == (10, 0)


@pytest.mark.parametrize("retention", [{"retention_ms": 5_000}, {"retention_ms": -1, "retention_bytes": 10**6}])
def test_records_without_timestamps_are_not_taken_for_what_compaction_has_emptied(retention):
    files = new_files()
    files.now_ms = lambda: 1_000
    log = open_log(files, config=LogConfig(segment_bytes=200, cleanup_policy="compact,delete", **retention))
    for _ in range(10):
        append(log, "x" * 30, now_ms=-1)
    assert removing.apply_retention(log, now_ms=6_000, limit=10) == 0
    assert [offset for offset, _ in records_in(log)] == list(range(10))
    removing.apply_retention(log, now_ms=7_000, limit=10)
    assert log.start_offset == (10 if log.config.retention_ms >= 0 else 0)


def emptied_batch(producer_id):
    """What compaction leaves of a producer's last batch, whose only key was written again."""
    batch = build_batch(
        [Record(b"key", b"x" * 30)], now_ms=1_000, producer_id=producer_id, producer_epoch=0, base_sequence=0
    )
    keys = KeyMap(1)
    keys.put(b"key", 100)
    return bytearray(cleaned(batch, read_header(batch), keys, Rules(0, 0), keeps_producer=True))


def test_what_compaction_has_emptied_goes_and_keeps_nothing_behind_it():
    files = new_files()
    files.now_ms = lambda: 10_000  # the files were written later than their records say
    log = open_log(files, config=LogConfig(segment_bytes=200, cleanup_policy="compact,delete", retention_ms=5_000))
    for producer_id in range(3):
        stage(log, emptied_batch(producer_id))
    appending.commit(log)
    for n in range(4):
        append(log, "x" * 30, now_ms=1_000 * n)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 5]
    removing.apply_retention(log, now_ms=6_500, limit=7)
    assert log.start_offset == 5


def test_by_size():
    files, log = filled(retention_ms=-1, retention_bytes=1)
    one = log.size_bytes // 5
    rolling.configure(log, LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=3 * one))
    assert removing.apply_retention(log, now_ms=0, limit=10) == 2 * one
    assert log.start_offset == 4
    rolling.configure(log, LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=3 * one - 1))
    assert removing.apply_retention(log, now_ms=0, limit=10) == 0
    rolling.configure(log, LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=0))
    assert removing.apply_retention(log, now_ms=0, limit=10) == 2 * one
    assert log_files(files) == [8]


def test_nothing_from_the_limit_on_goes():
    files, log = filled(retention_ms=0)
    removing.apply_retention(log, now_ms=10**9, limit=5)
    assert log.start_offset == 4
    assert log_files(files) == [4, 6, 8]


def test_whether_anything_is_due_is_told_by_the_oldest_segment_alone(monkeypatch):
    """A transaction that hangs may keep thousands, and every round asks."""
    _, log = filled(retention_ms=5_000)
    asked = []
    youngest_ms = Segment.youngest_ms
    monkeypatch.setattr(Segment, "youngest_ms", lambda segment: asked.append(segment) or youngest_ms(segment))
    assert not removing.is_due(log, now_ms=6_000)
    assert removing.is_due(log, now_ms=6_001)
    assert removing.is_due(log, now_ms=10**9)
    assert {segment.base_offset for segment in asked} <= {0, 2}
    assert removing.apply_retention(log, now_ms=10**9, limit=0) == 0


def test_for_ever_is_for_ever():
    _, log = filled(retention_ms=-1)
    assert removing.apply_retention(log, now_ms=10**15, limit=10) == 0
    assert log.start_offset == 0


def test_a_silent_topic_becomes_empty_and_goes_on_where_it_was():
    files, log = filled(retention_ms=5_000)
    removing.apply_retention(log, now_ms=10**9, limit=10)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (10, 10, 0)
    assert log_files(files) == [10]
    assert removing.apply_retention(log, now_ms=10**9, limit=10) == 0
    assert append(log, "next") == 10
    closing.close(log)
    reopened = open_log(files, clean=True)
    assert (reopened.start_offset, reopened.end_offset) == (10, 11)


def test_epochs_follow_the_start():
    _, log = filled(retention_ms=5_000)
    assert log.epochs.entries() == [(0, 0), (1, 4), (2, 8)]
    removing.set_start_offset(log, 6)
    assert log.epochs.entries() == [(1, 6), (2, 8)]


def test_a_start_within_a_segment_keeps_the_segment_and_hides_its_beginning():
    files, log = filled()
    removing.set_start_offset(log, 5)
    assert log_files(files) == [4, 6, 8]
    assert log.start_offset == 5
    with pytest.raises(OffsetOutOfRangeError):
        reading.read(log, 4, 1000, 10, at_least_one=True)
    removing.set_start_offset(log, 3)
    assert log.start_offset == 5, "it never goes back"
    removing.set_start_offset(log, 99)
    assert log.start_offset == 10, "nor beyond the end"


def test_a_range_being_sent_outlives_its_segment_and_a_restart_does_not_find_it_again():
    background = ImmediateBackground()
    files, log = filled(background)
    sending = reading.read(log, 0, 10_000, 10, at_least_one=True)
    before = sending.read()
    background.held = True
    removing.set_start_offset(log, 6)
    assert log_files(files) == [6, 8]
    assert len([name for name in files.list(DIRECTORY) if name.endswith(".deleted")]) == 3
    assert open_log(files).start_offset == 6
    background.release()
    assert sending.read() == before
