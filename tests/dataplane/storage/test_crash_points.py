"""The writer stopped after every call to the disk: a part of what `make crash` does. And what that once found, by name."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import cutting, flushing, removing, rolling
from tests.crashpoints.points import DAMAGE, Outcome, Run
from tests.crashpoints.report import merged, path_of, report_of, write
from tests.crashpoints.workload import HOME, Jobs, Random, open_manager
from tests.dataplane.storage.support import append, offset_for_timestamp, records_in
from tests.support.faulty_files import NAMES_ONLY, STRICT, FaultyFiles
from tests.support.shard import IncompleteError

TOPIC_ID = UUID(int=1)


@pytest.mark.parametrize("seed", range(3))
def test_at_every_point_what_was_promised_is_there_and_nothing_else(seed):
    outcome = Outcome()
    Run(1000 + seed, outcome, steps=25, every=8).run()
    assert outcome.failures == []
    assert outcome.points > 200


@pytest.mark.parametrize(
    ("seed", "points"),
    [
        pytest.param(8, (584, 689, 747), id="damaged time indexes hid records"),
        pytest.param(16, (973, 991, 1009), id="a late checkpoint took the mark of a new log of the same name"),
        pytest.param(203, (414, 423, 513), id="a late snapshot of producers came to a new log of the same name"),
        pytest.param(42, (88,), id="a deletion was acknowledged between the mark of a cut below it and the cut"),
        pytest.param(3326532, (1588,), id="what was cut before a kill came back after a power cut"),
    ],
)
def test_what_longer_runs_have_found_is_not_found_again(seed, points):
    outcome = Outcome()
    Run(seed, outcome, steps=80, chances=2, only=points).run()
    assert outcome.failures == []
    assert outcome.opened[DAMAGE] == len(points)


def test_what_was_cut_before_a_kill_does_not_come_back_after_a_power_cut():
    """A longer run found it, where the next segment had begun behind the cut: then nothing syncs the one before any more."""
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for value in "abc":
        append(log, value)
    flushing.flush(log)
    manager.checkpoints.note(log)
    manager.checkpoints.settle()
    jobs.all()
    mark = cutting.mark_of_cut(log, 2)
    mark.write()
    cutting.cut(log, 2, mark)  # and killed, before what that leaves to do is done
    manager = open_manager(files, jobs)
    log = manager.get("t", 0)
    assert log.recovery_point == log.end_offset == 2
    rolling.roll(log, 2)
    append(log, "d")
    flushing.flush(log)
    manager.checkpoints.note(log)
    manager.checkpoints.settle()  # from here on no mark says where it was cut
    assert values(after(files)) == [b"a", b"b", b"d"]


def test_the_parts_of_a_run_add_up_to_the_whole(tmp_path):
    outcomes = [Outcome(), Outcome()]
    for number, outcome in enumerate(outcomes):
        Run(number, outcome, steps=5, every=20).run()
        write(report_of(outcome, {"steps": 5}, 10.0 + number), path_of((number + 1, 2), tmp_path))
    whole = merged(tmp_path)
    assert whole["crash_points"] == sum(outcome.points for outcome in outcomes)
    assert whole["by_end"][DAMAGE] == sum(outcome.opened[DAMAGE] for outcome in outcomes) > 0
    assert whole["seconds"] == 11.0
    assert [path.name for path in tmp_path.iterdir()] == ["crash.json"]


def test_a_part_that_is_missing_is_missed(tmp_path):
    write(report_of(Outcome(), {}, 1.0), path_of((1, 2), tmp_path))
    with pytest.raises(IncompleteError, match="1-of-2"):
        merged(tmp_path)


def begin():
    files = FaultyFiles()
    files.make_directory(HOME)
    files.sync_directory("/")
    return files, open_manager(files, jobs := Jobs(Random(1))), jobs


def begin_with_deleted_records(start_offset: int):
    """As `begin`, with a log of six records that begins at `start_offset`: its checkpoint says so."""
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(6):
        append(log, str(n))
    removing.set_start_offset(log, start_offset)
    manager.checkpoints.note(log)
    manager.checkpoints.settle()
    jobs.all()
    return files, manager, jobs, log


def after(files: FaultyFiles, how: str = STRICT):
    return open_manager(files.after_power_cut(how), Jobs(Random(2))).get("t", 0)


def values(log) -> list[bytes]:
    return [value for _, value in records_in(log)]


def test_a_log_that_was_flushed_is_listed_in_its_data_directory():
    files, manager, _ = begin()
    log = manager.create("t", 0, TOPIC_ID)
    append(log, "a")
    flushing.flush(log)
    assert values(after(files)) == [b"a"]


def test_a_clean_stop_of_long_ago_is_not_taken_for_one_of_now():
    files, manager, jobs = begin()
    append(manager.create("t", 0, TOPIC_ID), "a")
    manager.close()
    manager = open_manager(files, jobs)
    append(manager.get("t", 0), "b")
    torn = files.after_power_cut(STRICT)
    assert not torn.exists(f"{HOME}/.kafka_cleanshutdown")


def test_an_orderly_stop_syncs_all_logs_at_once():
    files, manager, jobs = begin()
    for partition in range(20):
        append(manager.create("t", partition, TOPIC_ID), "a", epoch=3)
    jobs.all()
    calls: list[str] = []
    files.observer = calls.append
    manager.close()
    # The second is for the names of the files of epochs, which take their places when they are on disk themselves.
    assert sum(call.startswith("sync below") for call in calls) == 2
    synced = {call.split("/data/")[1] for call in calls if call.startswith("sync /data/")}
    assert not {path for path in synced if path.startswith("t-")}
    opened = open_manager(files.after_power_cut(STRICT), Jobs(Random(2)))
    assert all(values(opened.get("t", partition)) == [b"a"] for partition in range(20))
    assert all(opened.get("t", partition).epochs.entries() == [(3, 0)] for partition in range(20))


def test_an_orderly_stop_that_the_power_cuts_short_loses_no_epoch():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    append(log, "a", epoch=3)
    flushing.flush(log)
    append(log, "b", epoch=5)
    manager.checkpoints.write({})
    jobs.all()
    left = []
    files.observer = lambda call: left.extend([files.after_power_cut(STRICT), files.after_power_cut(NAMES_ONLY)])
    manager.close()
    assert len(left) > 10
    for found in left:
        found.observer = None
        opened = open_manager(found, Jobs(Random(2))).get("t", 0)
        assert opened.epochs.entries() == [(3, 0), (5, 1)][: len(values(opened))]


def test_what_is_late_for_a_deleted_log_leaves_the_next_of_its_name_alone():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    append(log, "a", epoch=7)
    late = flushing.syncer(log)
    manager.delete("t", 0)
    manager.create("t", 0, UUID(int=8))
    late()
    assert not files.exists(f"{HOME}/t-0/leader-epoch-checkpoint")
    jobs.all()


def test_what_rolling_leaves_to_do_is_not_done_in_the_directory_of_the_next_log_of_that_name():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    jobs.all()
    for n in range(6):
        append(log, "x" * 100, producer_id=7, producer_epoch=3, base_sequence=n)
    assert len(log.segments) > 1
    manager.delete("t", 0)
    manager.create("t", 0, UUID(int=8))
    jobs.all()
    assert not [name for name in files.list(f"{HOME}/t-0") if name.endswith((".snapshot", "index"))]


def test_a_checkpoint_that_knows_more_than_there_is_keeps_nothing_from_being_synced():
    files, manager, _ = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(12):
        append(log, "x" * 100 + str(n))
    files.write_file(f"{HOME}/recovery-point-offset-checkpoint", b"0\n1\nt 0 500\n")
    disk = files.after_kill()
    log = open_manager(disk, Jobs(Random(2))).get("t", 0)
    append(log, "more")
    flushing.flush(log)
    recovered = after(disk)
    assert values(recovered)[-1] == b"more"
    assert len(values(recovered)) == 13


def test_segments_that_were_cut_off_do_not_come_back():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(12):
        append(log, "x" * 100 + str(n))
    flushing.flush(log)
    jobs.all()
    boundary = log.segments[2].base_offset
    cutting.truncate(log, boundary)
    for how in (STRICT, NAMES_ONLY):
        assert after(files, how).end_offset == boundary


def test_what_is_written_after_a_cut_is_not_trusted_because_of_a_checkpoint_from_before():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(12):
        append(log, "x" * 100 + str(n))
    flushing.flush(log)
    manager.checkpoints.write({})
    jobs.all()
    cutting.truncate(log, 1)
    for n in range(8):
        append(log, "y" * 100 + str(n))  # nothing of it is synced
    recovered = after(files, NAMES_ONLY)
    assert values(recovered) == [b"x" * 100 + b"0"]


def test_a_log_that_begins_again_below_a_deletion_shows_its_records():
    files, _manager, _jobs, log = begin_with_deleted_records(5)
    cutting.reset(log, 2)
    append(log, "new")
    flushing.flush(log)
    assert records_in(after(files)) == [(2, b"new")]


def test_a_new_log_does_not_begin_where_a_deleted_one_of_its_name_did():
    files, manager, _jobs, log = begin_with_deleted_records(5)
    manager.delete("t", 0)
    log = manager.create("t", 0, UUID(int=2))
    append(log, "new")
    flushing.flush(log)
    assert records_in(after(files)) == [(0, b"new")]


def test_a_checkpoint_that_comes_late_does_not_take_the_mark_of_a_new_log_of_the_same_name():
    files, manager, jobs, log = begin_with_deleted_records(5)
    cutting.reset(log, 3)
    manager.checkpoints.write({})  # on its way
    manager.delete("t", 0)
    log = manager.create("t", 0, UUID(int=2))
    append(log, "new")
    flushing.flush(log)
    jobs.all()
    assert records_in(after(files)) == [(0, b"new")]


def test_an_orderly_stop_forgets_where_a_deleted_log_of_the_same_name_began():
    files, manager, jobs, _log = begin_with_deleted_records(5)
    manager.delete("t", 0)
    append(manager.create("t", 0, UUID(int=2)), "new")
    disk = files.after_kill()
    manager = open_manager(disk, jobs := Jobs(Random(2)))
    append(manager.get("t", 0), "newer")
    manager.close()
    jobs.all()
    assert values(open_manager(disk, Jobs(Random(3))).get("t", 0)) == [b"new", b"newer"]


def test_offsets_that_were_deleted_are_not_given_again_after_a_power_cut():
    files, _manager, _jobs, _log = begin_with_deleted_records(6)
    recovered = after(files)
    assert (recovered.start_offset, recovered.end_offset) == (6, 6)
    append(recovered, "new")
    assert records_in(recovered) == [(6, b"new")]


def test_epochs_of_segments_that_come_back_are_known_again():
    files, manager, _ = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for epoch in range(6):
        append(log, "x" * 100, epoch=epoch)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    removing.set_start_offset(log, 3)
    assert log.epochs.entries() == [(3, 3), (4, 4), (5, 5)]
    recovered = open_manager(files.after_kill(), Jobs(Random(2))).get("t", 0)
    assert recovered.start_offset == 2, "nothing was acknowledged"
    assert recovered.epochs.entries() == [(2, 2), (3, 3), (4, 4), (5, 5)]


def test_an_index_that_comes_late_is_not_put_beside_a_log_that_was_cut_meanwhile():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(6):
        append(log, "x" * 80, now_ms=5_000 + n)
    cutting.truncate(log, 1)  # the first segment is sealed, and its indexes are about to be written
    for n in range(6):
        append(log, "y" * 80, now_ms=6_000 + n)
    jobs.all()
    flushing.flush(log)
    manager.checkpoints.write({})
    jobs.all()
    log = open_manager(files.after_kill(), Jobs(Random(2))).get("t", 0)
    assert [offset_for_timestamp(log, 6_000 + n, log.end_offset)[0] for n in range(6)] == [1, 2, 3, 4, 5, 6]


def test_an_index_of_content_that_was_lost_is_not_used():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    log.founding.settle()
    for n in range(4):
        append(log, "x" * 80, now_ms=5_000 + n)
    for path, content in log.active.packed_indexes():
        files.write_file(path, content)
    disk = files.after_power_cut(NAMES_ONLY)
    manager = open_manager(disk, jobs := Jobs(Random(3)))
    log = manager.get("t", 0)
    assert log.end_offset == 0
    for n in range(4):
        append(log, "y" * 80, now_ms=1_000 + n)
    manager.close()
    jobs.all()
    log = open_manager(disk, Jobs(Random(4))).get("t", 0)
    assert offset_for_timestamp(log, 1_002, log.end_offset)[0] == 2
    assert offset_for_timestamp(log, 4_999, log.end_offset) is None


def test_a_snapshot_of_producers_that_comes_late_is_not_put_beside_a_log_that_was_cut_meanwhile():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(6):
        append(log, "x" * 80, producer_id=7, producer_epoch=0, base_sequence=n)
    cutting.truncate(log, 0)
    cutting.reset(log, 0)
    jobs.all()
    assert [path for path in files.paths() if path.endswith(".snapshot")] == []


def test_a_full_disk_keeps_what_was_acknowledged():
    files, manager, _ = begin()
    log = manager.create("t", 0, TOPIC_ID)
    append(log, "kept")
    files.capacity = sum(len(files.content(path)) for path in files.paths()) + 50
    with pytest.raises(LogFailedError):
        append(log, "x" * 100)
    files.capacity = None
    log = open_manager(files.after_kill(), Jobs(Random(2))).get("t", 0)
    assert values(log) == [b"kept"]


def test_a_cut_in_steps_waits_for_the_disk_in_its_jobs_only():
    files, manager, jobs = begin()
    log = manager.create("t", 0, TOPIC_ID)
    for n in range(12):
        append(log, "x" * 100 + str(n), epoch=n // 4)
    flushing.flush(log)
    jobs.all()
    calls: list[str] = []
    files.observer = calls.append
    mark = cutting.mark_of_cut(log, 3)
    assert calls == []
    mark.write()
    calls.clear()
    cutting.cut(log, 3, mark)
    assert calls
    assert not [call for call in calls if call.startswith("sync")]
    assert values(log) == [b"x" * 100 + str(n).encode() for n in range(3)]
    work = log.cut_work
    work()
    cutting.cut_settled(log, work)
    files.observer = None
    recovered = after(files)
    assert (recovered.end_offset, recovered.epochs.entries()) == (3, [(0, 0)])
