"""Which log, how much of it, and what becomes of a round while the log changes under it."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from dataplane.config import Settings
from dataplane.records.batch import Record, build_batch
from dataplane.storage.cleaner import marker
from dataplane.storage.cleaner.batches import Rules
from dataplane.storage.cleaner.work import CleaningPlan, OldSegment, clean
from dataplane.storage.config import LogConfig
from dataplane.storage.log import appending, compacting, cutting, lookup, reading, removing
from tests.dataplane.storage.cleaning import COMPACT, Cleaning, Clock, cleaning, table
from tests.dataplane.storage.support import (
    DIRECTORY,
    TOPIC_ID,
    latest_timestamp,
    new_files,
    offset_for_timestamp,
    stage,
)


def put(of: Cleaning, *keys: str, value: bytes | None = b"v" * 50, at: int | None = None, epoch: int = 0) -> None:
    records = [Record(key.encode(), value, timestamp=of.clock.ms if at is None else at) for key in keys]
    stage(of.log, build_batch(records, now_ms=of.clock.ms), epoch)
    appending.commit(of.log)


def filled(config: LogConfig = COMPACT, count: int = 40, **how) -> Cleaning:
    of = cleaning(new_files(), Clock(), config, **how)
    for number in range(count):
        put(of, f"k{number % 4}")
        of.clock.ms += 10
    return of


def test_the_active_segment_is_never_touched():
    of = filled()
    active = of.log.segments[-1].base_offset
    before = [row for row in table(of.log) if row[0] >= active]
    of.run()
    assert of.log.cleaned_to == active
    assert [row for row in table(of.log) if row[0] >= active] == before
    assert len(table(of.log)) < 12


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_the_dirty_ratio_decides(ratio):
    of = filled(replace(COMPACT, min_cleanable_dirty_ratio=ratio), 80)
    of.run()
    assert of.cleaner.rounds == 1
    clean_bytes = sum(s.size for s in of.log.segments if s.base_offset < of.log.cleaned_to)
    dirty = 0
    while of.cleaner.rounds == 1:
        put(of, "k1")
        dirt = compacting.dirt_in(of.log, of.log.end_offset, of.clock.ms)
        dirty = sum(part.size for part in dirt.segments if part.end_offset > dirt.first_dirty)
        assert dirt.is_worth_it(of.config) == (dirty > 0 and dirty / (dirty + clean_bytes) > ratio)
        of.run()
    assert dirty / (dirty + clean_bytes) > ratio


def test_min_compaction_lag_leaves_the_young_alone():
    of = filled(replace(COMPACT, min_compaction_lag_ms=200))
    of.run()
    kept_from = of.log.cleaned_to
    ages = {offset: of.clock.ms - (1_000_000 + 10 * offset) for offset, _, _ in table(of.log)}
    assert 0 < kept_from < of.log.segments[-1].base_offset
    assert all(age > 200 for offset, age in ages.items() if offset < kept_from)
    assert [offset for offset, age in ages.items() if age <= 200] == list(range(20, 40))
    of.clock.ms += 10_000
    of.run()
    assert of.log.cleaned_to == of.log.segments[-1].base_offset


def test_max_compaction_lag_overrules_the_ratio():
    of = filled(replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5_000))
    of.run()
    assert of.cleaner.rounds == 0
    of.clock.ms += 5_000
    of.run()
    assert of.cleaner.rounds == 1


def test_max_compaction_lag_ends_a_segment_early():
    assert replace(COMPACT, max_compaction_lag_ms=5_000).rolls_after_ms == 5_000
    assert replace(COMPACT, max_compaction_lag_ms=5_000, cleanup_policy="delete").rolls_after_ms == COMPACT.segment_ms


def test_what_is_not_on_disk_waits():
    of = filled(count=4)
    of.background.held = True
    of.log.shared = of.log.shared._replace(background=of.background)
    for _ in range(40):
        put(of, "k")
    assert compacting.dirt_in(of.log, of.log.end_offset, of.clock.ms).segments == ()


def test_topics_that_are_not_compacted_are_left_alone():
    of = filled(replace(COMPACT, cleanup_policy="delete"))
    of.run()
    assert len(table(of.log)) == 40


def test_more_keys_than_the_map_holds_take_more_rounds():
    of = filled(settings=Settings(log_cleaner_dedupe_buffer_size=2 * 200, log_cleaner_io_buffer_load_factor=1.0))
    of.run()
    assert of.cleaner.rounds > 3
    assert of.log.cleaned_to == of.log.segments[-1].base_offset
    cleaned = [key for offset, key, _ in table(of.log) if offset < of.log.cleaned_to]
    assert len(cleaned) == len(set(cleaned)) == 4


def test_small_segments_become_one():
    of = filled()
    before = len(of.log.segments)
    of.run()
    assert len(of.log.segments) <= 3 < before
    assert of.log.segments[0].base_offset == 0


def test_segments_that_lie_too_far_apart_stay_apart():
    files = new_files()
    sizes = []
    for base in (0, 2**31 - 2, 2**31 + 5):
        batch = build_batch([Record(b"k%d" % base, b"v")], now_ms=1, base_offset=base)
        file = files.open(f"{DIRECTORY}/{base:020d}.log", create=True)
        file.append([batch])
        sizes.append(len(batch))
    olds = (
        OldSegment(0, sizes[0], 2**31 - 2),
        OldSegment(2**31 - 2, sizes[1], 2**31),
        OldSegment(2**31 + 5, sizes[2], 2**31 + 6),
    )
    plan = CleaningPlan(DIRECTORY, olds, 0, Rules(1, 1), 100, 10_000, 10_000, 4096, {})
    outcome = clean(files, plan, lambda count: None)
    assert [[part.base_offset for part in new.replaced] for new in outcome.segments] == [[0, 2**31 - 2]]


def test_deleting_what_a_round_reads_only_ends_that_round():
    of = filled(replace(COMPACT, cleanup_policy="compact,delete"))
    of.background.held = True
    of.cleaner.look()
    removing.set_start_offset(of.log, 30)
    of.background.release()
    of.background.held = False
    of.loop.run()
    assert of.cleaner.rounds == 0
    assert of.log.start_offset == 30
    assert [offset for offset, _, _ in table(of.log)][-1] == 39
    of.clock.ms += 120_000
    of.run()
    assert of.cleaner.rounds == 1


def test_a_cut_while_the_job_runs_throws_its_work_away():
    of = filled()
    end = of.log.segments[3].base_offset
    run_apart = of.background.run_apart

    def cut_meanwhile(work, rate):
        answer = run_apart(work, rate)
        of.cleaner.stop()
        cutting.truncate(of.log, end)
        for number in range(40):
            put(of, f"other{number}", epoch=1)
        return answer

    of.background.run_apart = cut_meanwhile
    of.cleaner.look()
    of.loop.run()
    assert of.cleaner.rounds == 0
    assert [key for offset, key, _ in table(of.log) if offset >= end] == [f"other{n}".encode() for n in range(40)]
    assert of.log.compacted_to == 0
    assert marker.COMPACTED_TO not in of.files.list(DIRECTORY)
    assert not [name for name in of.files.list(DIRECTORY) if name.endswith(".cleaned")]


def test_a_cut_while_recovery_is_told_of_the_round_is_told_to_it_too():
    of = filled()
    end = of.log.segments[3].base_offset
    run = of.background.run

    def cut_meanwhile(work):
        answer = run(work)
        if of.files.exists(f"{DIRECTORY}/{marker.COMPACTED_TO}") and of.log.end_offset > end:
            cutting.truncate(of.log, end)
            of.cleaner.stop()
        return answer

    of.background.run = cut_meanwhile
    of.cleaner.look()
    of.background.run = run
    of.loop.run()
    assert of.cleaner.rounds == 0
    assert of.log.end_offset == end
    assert marker.read(of.files, DIRECTORY, TOPIC_ID) == of.log.compacted_to == 0


def test_a_full_disk_costs_a_pause_and_nothing_else():
    of = filled()
    before = table(of.log)
    of.files.capacity = of.files.used() + 100
    of.run()
    assert of.cleaner.rounds == 0
    assert not of.log.failed
    assert table(of.log) == before
    assert not [name for name in of.files.list(DIRECTORY) if name.endswith(".cleaned")]
    of.files.capacity = None
    of.run()
    assert of.cleaner.rounds == 0
    of.clock.ms += 60_000
    of.run()
    assert of.cleaner.rounds == 1


def test_damage_in_an_old_segment_is_not_written_anew():
    of = filled()
    name = f"{DIRECTORY}/{0:020d}.log"
    of.files.content(name)[80] ^= 1
    before = bytes(of.files.content(name))
    of.run()
    assert of.cleaner.rounds == 0
    assert bytes(of.files.content(name)) == before


def test_a_disk_that_refuses_the_swap_takes_the_log_offline_and_the_next_start_finishes():
    of = filled()
    expected = {key: offset for offset, key, _ in table(of.log)}

    def refuse(operation: str, path: str) -> None:
        if operation == "rename" and path.endswith(".swap"):
            raise OSError(errno.EIO, "no")

    of.files.fault = refuse
    of.run()
    of.files.fault = None
    assert of.log.failed
    again = cleaning(of.files, of.clock, recovery_point=of.log.recovery_point)
    assert again.log.end_offset == 40
    assert {key: offset for offset, key, _ in table(again.log)} == expected
    assert len(table(again.log)) < 40


def test_readers_of_an_old_segment_read_on():
    of = filled()
    found = reading.read(of.log, 0, 10_000, 40, at_least_one=True)
    assert found is not None
    before = found.read()
    of.run()
    assert found.read() == before
    assert reading.read(of.log, 0, 10_000, 40, at_least_one=True).read() != before


@pytest.mark.parametrize("rebuilt", [False, True])
def test_times_are_those_of_records_that_are_left(rebuilt):
    of = cleaning(new_files(), Clock())
    put(of, "old", at=500)
    late = build_batch(
        [Record(b"k", b"v", timestamp=9_000)], now_ms=1, producer_id=5, producer_epoch=0, base_sequence=0
    )
    stage(of.log, late)
    appending.commit(of.log)
    for _ in range(20):
        put(of, "k", at=700)
    of.run()
    [emptied] = [header for header, _ in lookup.batches(of.log, 0, 20) if not header.count]
    assert (emptied.base_offset, emptied.producer_id) == (1, 5)
    if rebuilt:
        for name in of.files.list(DIRECTORY):
            if name.endswith("index"):
                of.files.remove(f"{DIRECTORY}/{name}")
        of = cleaning(of.files, of.clock, recovery_point=20)
    assert next(row[0] for row in table(of.log)) == 0
    assert latest_timestamp(of.log)[1] == 700
    assert offset_for_timestamp(of.log, 701, 22) is None
    assert offset_for_timestamp(of.log, 500, 22)[:2] == (0, 500)


def test_an_index_that_is_saved_late_is_not_put_beside_a_new_segment():
    of = filled()
    late = of.log.segments[0].index_saver()
    of.run()
    new = of.log.segments[0].index
    late()
    assert of.files.read_file(f"{DIRECTORY}/{0:020d}.index") == new.pack()[0]
