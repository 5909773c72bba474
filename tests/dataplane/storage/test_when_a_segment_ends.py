"""A new segment begins by size, by time and when an index is full, as in Kafka."""

from dataclasses import replace

import pytest

from dataplane.records.batch import Record, build_batch
from dataplane.storage.config import FOREVER, LogConfig
from dataplane.storage.log import appending, closing, removing, rolling
from tests.dataplane.storage.support import (
    append,
    copy_of,
    latest_timestamp,
    new_files,
    offset_for_timestamp,
    open_log,
    records_in,
    stage,
)

DAY = 86_400_000
DAILY = LogConfig(segment_ms=DAY)


class Clock:
    def __init__(self) -> None:
        self.ms = 10**12

    def now_ms(self) -> int:
        return self.ms


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def untimed() -> bytearray:
    return build_batch([Record(None, b"v", (), -1)], now_ms=-1)


def test_a_batch_that_is_much_younger_than_the_first_begins_a_new_one():
    log = open_log(new_files(), config=DAILY)
    for now_ms in (0, DAY, DAY + 1, 2 * DAY, 2 * DAY + 2):
        append(log, "v", now_ms=now_ms)
    assert bases(log) == [0, 2, 4]


def test_the_clock_does_not_matter_where_batches_have_times():
    clock = Clock()
    log = open_log(new_files(), config=DAILY, now_ms=clock.now_ms)
    append(log, "v", now_ms=5)
    clock.ms += 100 * DAY
    append(log, "v", now_ms=6)
    assert bases(log) == [0]


def test_time_that_goes_back_ends_nothing():
    log = open_log(new_files(), config=DAILY)
    for now_ms in (100 * DAY, 0, 100 * DAY):
        append(log, "v", now_ms=now_ms)
    assert bases(log) == [0]


def test_without_times_the_age_of_the_segment_counts():
    clock = Clock()
    log = open_log(new_files(), config=DAILY, now_ms=clock.now_ms)
    for ms in (0, DAY, DAY + 1, DAY + 2):
        clock.ms = 10**12 + ms
        stage(log, untimed())
        appending.commit(log)
    assert bases(log) == [0, 2]


def test_after_a_restart_the_first_batch_still_counts():
    files = new_files()
    log = open_log(files, config=DAILY)
    append(log, "v", now_ms=7)
    append(log, "v", now_ms=DAY)
    closing.close(log)
    for clean in (True, False):
        log = open_log(files, config=DAILY, clean=clean)
        append(log, "v", now_ms=DAY + 7)
        closing.close(log)
    log = open_log(files, config=DAILY, clean=True)
    append(log, "v", now_ms=DAY + 8)
    assert bases(log) == [0, 4]


def test_a_changed_setting_holds_for_the_segment_there_is():
    log = open_log(new_files(), config=DAILY)
    append(log, "v", now_ms=0)
    append(log, "v", now_ms=1000)
    rolling.configure(log, LogConfig(segment_ms=500))
    append(log, "v", now_ms=500)
    assert bases(log) == [0]
    append(log, "v", now_ms=501)
    assert bases(log) == [0, 3]
    rolling.configure(log, LogConfig(segment_ms=FOREVER))
    append(log, "v", now_ms=10**15)
    assert bases(log) == [0, 3]


def test_jitter_makes_segments_end_earlier_and_not_all_at_the_same_time():
    ends = set()
    for topic in range(40):
        log = open_log(new_files(), config=replace(DAILY, segment_jitter_ms=DAY // 2))
        log.topic = f"topic-{topic}"
        append(log, "v", now_ms=0)
        ends.add(log.rollover.last_timestamp)
        append(log, "v", now_ms=DAY // 2)
        append(log, "v", now_ms=DAY + 1)
        assert bases(log) == [0, 2]
    assert len(ends) > 30
    assert DAY // 2 < min(ends) <= max(ends) <= DAY


def test_a_full_index_ends_a_segment():
    log = open_log(new_files(), config=LogConfig(segment_index_bytes=12 * 5, index_interval_bytes=100))
    for number in range(40):
        append(log, "x" * 120 + str(number), now_ms=number)
    assert len(log.segments) > 5
    for segment in log.segments[:-1]:
        assert segment.index.entries() <= 5
    assert [offset for offset, _ in records_in(log)] == list(range(40))


def test_the_same_in_one_turn():
    log = open_log(new_files(), config=LogConfig(segment_index_bytes=12 * 5, index_interval_bytes=100, segment_ms=1000))
    one = open_log(new_files(), config=log.config)
    for number in range(60):
        now_ms = 70 * number
        stage(log, build_batch([Record(None, b"x" * 120, (), now_ms)], now_ms=now_ms))
        if number == 0:
            appending.commit(log)
        append(one, "x" * 120, now_ms=now_ms)
    appending.commit(log)
    assert bases(one) == bases(log) or len(bases(log)) > 3
    assert [offset for offset, _ in records_in(log)] == list(range(60))


def test_followers_end_segments_too():
    leader = open_log(new_files(), config=DAILY)
    for now_ms in (0, DAY, DAY + 1):
        append(leader, "v", now_ms=now_ms)
    follower = open_log(new_files(), config=DAILY)
    copied = copy_of(leader)
    size = len(copied) // 3
    for number in range(3):
        appending.stage_replica(follower, memoryview(copied)[number * size : (number + 1) * size])
        appending.commit(follower)
    assert bases(follower) == bases(leader) == [0, 2]


@pytest.mark.parametrize("damage", ["torn", "zeros", "missing", "empty"])
def test_a_wrong_time_index_is_built_again(damage):
    files = new_files()
    log = open_log(files, config=LogConfig(index_interval_bytes=100))
    for number in range(50):
        append(log, "x" * 50, now_ms=1000 + number)
    closing.close(log)
    path = log.active.path + ".timeindex"
    if damage == "torn":
        del files.content(path)[-5:]
    elif damage == "zeros":
        files.content(path).extend(bytes(24))
    elif damage == "missing":
        files.remove(path)
    else:
        files.content(path).clear()
    log = open_log(files, config=log.config, clean=True)
    assert latest_timestamp(log)[:2] == (49, 1049)
    for number in (0, 17, 49):
        assert offset_for_timestamp(log, 1000 + number, 99)[:2] == (number, 1000 + number)


def test_the_active_segment_grows_old_too():
    files = new_files()
    log = open_log(files, config=LogConfig(retention_ms=1000))
    append(log, "v", now_ms=5000)
    closing.close(log)
    log = open_log(files, config=log.config, clean=True)
    assert removing.apply_retention(log, 6000, 1) == 0
    assert removing.apply_retention(log, 6001, 1) > 0
    assert (log.start_offset, log.end_offset, log.size_bytes) == (1, 1, 0)
    append(log, "w")
    assert records_in(log) == [(1, b"w")]


@pytest.mark.parametrize("setting", [{"segment_ms": 1}, {"segment_ms": DAY, "segment_jitter_ms": DAY}])
def test_where_there_is_a_floor_no_segment_ends_earlier_for_its_age(setting):
    clock = Clock()
    floor = 600_000
    log = open_log(new_files(), config=LogConfig(least_roll_ms=floor, **setting), now_ms=clock.now_ms)
    for _ in range(300):
        clock.ms += 10
        append(log, "v", now_ms=clock.ms)
    assert bases(log) == [0]


def test_records_that_are_days_apart_do_not_make_a_segment_each_where_there_is_a_floor():
    clock = Clock()
    log = open_log(new_files(), config=replace(DAILY, least_roll_ms=600_000), now_ms=clock.now_ms)
    for day in range(300):
        clock.ms += 10
        append(log, "v", now_ms=2 * day * DAY)
    assert bases(log) == [0]
    clock.ms += 600_000
    append(log, "v", now_ms=601 * DAY)
    append(log, "v", now_ms=700 * DAY)
    assert bases(log) == [0, 300]
