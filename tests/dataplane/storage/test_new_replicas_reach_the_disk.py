"""A new replica is in use at once and on disk some time; what is half made after a power cut is no replica."""

from __future__ import annotations

import errno
from random import Random
from uuid import UUID

import pytest

from dataplane.storage.log import flushing, removing
from dataplane.storage.log.opening import open_log
from dataplane.storage.manager import LogManager
from dataplane.storage.startup.founding import Founding
from dataplane.tasks import Future
from tests.crashpoints.workload import BROKER, HOME, Jobs, StoppedClock, open_manager
from tests.dataplane.storage.support import append, records_in
from tests.support.faulty_files import NAMES_ONLY, STRICT, FaultyFiles

ONE, TWO = UUID(int=1), UUID(int=2)
POWER_CUTS = [STRICT, NAMES_ONLY, *range(20)]
"""The last are seeds: of what was not synced some is there."""


@pytest.fixture
def files() -> FaultyFiles:
    made = FaultyFiles()
    made.make_directory(HOME)
    made.sync_directory("/")
    return made


@pytest.fixture
def jobs() -> Jobs:
    return Jobs(Random(1))


@pytest.fixture
def manager(files, jobs) -> LogManager:
    return open_manager(files, jobs)


def opened(files) -> LogManager:
    return open_manager(files, Jobs(Random(2)))


def values(log) -> list[bytes]:
    return [value for _, value in records_in(log)]


def test_making_many_replicas_and_writing_to_them_waits_for_no_disk(files, manager):
    calls: list[str] = []
    files.observer = calls.append
    for index in range(60):
        append(manager.create("t", index, ONE), "a")
    assert calls
    assert not [call for call in calls if call.startswith("sync")]


@pytest.mark.parametrize("asks", ["list", "read_file", "size", "remove"])
def test_nothing_is_looked_for_in_a_directory_that_has_just_been_made(files, manager, monkeypatch, asks):
    """Each call lets other threads have the interpreter, and thousands of topics may be made at once."""
    asked: list[str] = []
    original = getattr(files, asks)
    monkeypatch.setattr(files, asks, lambda path: asked.append(path) or original(path))
    log = manager.create("t", 0, ONE)
    assert asked == []
    found = open_log(
        log.shared, log.directory, topic="t", partition=0, topic_id=ONE, config=log.config, clean=True
    )  # as a start would
    for each in (log, found):
        assert (each.start_offset, each.end_offset, each.size_bytes, each.compacted_to) == (0, 0, 0, 0)
        assert [segment.base_offset for segment in each.segments] == [0]
        assert each.epochs.entries() == []


def test_a_killed_process_loses_nothing_of_a_replica_that_it_has_just_made(files, manager):
    append(manager.create("t", 0, ONE), "a")
    disk = files.after_kill()
    jobs = Jobs(Random(2))
    log = open_manager(disk, jobs).get("t", 0)
    assert (log.topic_id, values(log)) == (ONE, [b"a"])
    flushing.flush(log)
    assert values(opened(disk.after_power_cut(STRICT)).get("t", 0)) == [b"a"]


@pytest.mark.parametrize("how", POWER_CUTS, ids=str)
def test_what_a_power_cut_leaves_of_one_is_no_replica_and_can_be_made_again(files, manager, how):
    append(manager.create("t", 0, ONE), "a")
    again = opened(files.after_power_cut(Random(how) if isinstance(how, int) else how))
    assert again.get("t", 0) is None
    log = again.create("t", 0, TWO)
    assert (log.topic_id, log.end_offset) == (TWO, 0)


@pytest.mark.parametrize("how", POWER_CUTS, ids=str)
def test_once_the_job_is_done_it_is_there(files, manager, jobs, how):
    append(manager.create("t", 0, ONE), "a")
    manager.checkpoints.write({})
    jobs.all()
    disk = files.after_power_cut(Random(how) if isinstance(how, int) else how)
    assert opened(disk).get("t", 0).topic_id == ONE


def test_one_without_records_costs_nothing(files, manager, jobs):
    """Thousands may be made at once, and lose nothing with their directories."""
    log = manager.create("t", 0, ONE)
    for _ in range(2):
        manager.checkpoints.write({})
        jobs.all()
    assert not log.is_founded
    append(log, "a")
    manager.checkpoints.note(log, 0)
    jobs.all()
    assert log.is_founded


@pytest.mark.parametrize("how", POWER_CUTS, ids=str)
def test_records_that_are_on_disk_are_in_a_replica_that_is(files, manager, how):
    log = manager.create("t", 0, ONE)
    append(log, "a")
    flushing.flush(log)
    assert values(opened(files.after_power_cut(Random(how) if isinstance(how, int) else how)).get("t", 0)) == [b"a"]


class Rests:
    """`Loop.call_later` of a loop that does nothing else."""

    def __init__(self) -> None:
        self.wanted: list[tuple[float, object]] = []

    def __call__(self, delay_s, callback) -> None:
        self.wanted.append((delay_s, callback))


def with_rests(files, jobs, rests, count):
    """A manager that takes rests, and so many logs with a record each."""
    manager = LogManager(files, StoppedClock(), jobs, BROKER, rests)
    manager.open_all()
    logs = [manager.create("t", index, ONE) for index in range(count)]
    for log in logs:
        append(log, "a")
    return manager, logs


def test_many_are_made_to_last_one_after_the_other_with_rests(files, jobs):
    """Each takes the interpreter from the loop some sixteen times, and thousands may be made at once."""
    rests = Rests()
    manager, logs = with_rests(files, jobs, rests, 5)
    for settled in range(1, 6):
        manager.checkpoints.write({})  # what waits already does not wait twice
        jobs.all()
        assert [log.is_founded for log in logs] == [True] * settled + [False] * (5 - settled)
        ((rest_s, go_on),) = rests.wanted
        assert rest_s > 0
        rests.wanted.clear()
        go_on()
    jobs.all()
    assert not rests.wanted


def test_those_that_are_settled_otherwise_or_deleted_meanwhile_need_no_rest(files, jobs):
    rests = Rests()
    manager, logs = with_rests(files, jobs, rests, 4)
    manager.checkpoints.write({})
    flushing.flush(logs[1])
    manager.delete("t", 2)
    jobs.all()
    for _, go_on in rests.wanted:
        go_on()
    jobs.all()
    assert [log.is_founded for log in logs] == [True, True, False, True]


def test_very_many_at_an_orderly_stop_take_two_syncs_together(files, manager):
    for index in range(60):
        manager.create("t", index, ONE)
    calls: list[str] = []
    files.observer = calls.append
    manager.close()
    syncs = [call for call in calls if call.startswith("sync")]
    assert syncs.count(f"sync below {HOME}") == 2
    assert not [call for call in syncs if "/t-" in call]
    assert len(syncs) < 20  # what is left is of the directory that has them all
    files.observer = None
    again = opened(files.after_power_cut(STRICT))
    assert [again.get("t", index).topic_id for index in range(60)] == [ONE] * 60
    assert not [name for name in files.list(f"{HOME}/t-0") if name.startswith("founding")]


@pytest.mark.parametrize("how", POWER_CUTS, ids=str)
def test_the_power_may_go_anywhere_in_an_orderly_stop(files, manager, how):
    """The replica is whole or it is not there; where only the process is killed, it is there."""
    append(manager.create("t", 0, ONE), "a")
    manager.create("t", 1, ONE)
    disks: list[FaultyFiles] = []
    images: list[FaultyFiles] = []

    def look(_: str) -> None:
        disks.append(files.after_power_cut(Random(how) if isinstance(how, int) else how))
        images.append(files.after_kill())

    files.observer = look
    manager.close()
    files.observer = None
    for image in images:
        again = opened(image)
        assert [values(again.get("t", partition)) for partition in (0, 1)] == [[b"a"], []]
    assert len(disks) > 10
    for disk in disks:
        again = opened(disk)
        for partition, content in ((0, [b"a"]), (1, [])):
            log = again.get("t", partition)
            assert log is None or (log.topic_id, values(log)) == (ONE, content)


def test_an_orderly_stop_leaves_no_work(files, manager):
    append(manager.create("t", 0, ONE), "a")
    manager.close()
    assert files.exists(f"{HOME}/.kafka_cleanshutdown")
    assert values(opened(files.after_power_cut(STRICT)).get("t", 0)) == [b"a"]


def test_a_job_that_comes_late_leaves_the_next_replica_of_that_name_alone(files, manager, jobs):
    manager.create("t", 0, ONE)
    manager.delete("t", 0)
    log = manager.create("t", 0, TWO)
    jobs.all()
    assert not manager.has_offline_directories()
    flushing.flush(log)
    for disk in (files.after_kill(), files.after_power_cut(STRICT)):
        assert opened(disk).get("t", 0).topic_id == TWO


@pytest.mark.parametrize("late", [False, True])
def test_checkpoints_of_a_former_replica_of_that_name_do_not_count(files, manager, jobs, late):
    log = manager.create("t", 0, ONE)
    for _ in range(8):
        append(log, "x" * 100)
    removing.set_start_offset(log, 5)
    flushing.flush(log)
    manager.checkpoints.write({})
    jobs.all()
    manager.delete("t", 0)
    log = manager.create("t", 0, TWO)
    append(log, "new")
    if late:
        manager.checkpoints.write({})  # knows of the new one: may remove the mark, when it is on disk itself
        jobs.all()
    assert values(opened(files.after_kill()).get("t", 0)) == [b"new"]
    flushing.flush(log)
    assert values(opened(files.after_power_cut(STRICT)).get("t", 0)) == [b"new"]
    jobs.all()
    manager.checkpoints.write({})
    jobs.all()
    assert not [name for name in files.list(f"{HOME}/t-0") if name.endswith(".cut")]


class SlowQueue(Jobs):
    """Everything is done in the background but what brings new replicas to disk."""

    def run(self, work):
        return Future() if getattr(work, "__func__", None) is Founding.settle else super().run(work)


def made_again(manager, jobs):
    """A replica of a name that checkpoints on disk still speak of."""
    log = manager.create("t", 0, ONE)
    for _ in range(8):
        append(log, "x" * 100)
    removing.set_start_offset(log, 5)
    flushing.flush(log)
    manager.checkpoints.write({})
    jobs.all()
    manager.delete("t", 0)
    return manager.create("t", 0, TWO)


def test_records_that_were_deleted_before_it_is_on_disk_stay_deleted_after_a_kill(files):
    jobs = SlowQueue(Random(1))
    manager = open_manager(files, jobs)
    log = made_again(manager, jobs)
    for value in "abcdef":
        append(log, value)
    removing.set_start_offset(log, 4)
    manager.checkpoints.write({})
    jobs.all()
    assert not log.is_founded
    assert opened(files.after_kill()).get("t", 0).start_offset == 4


def test_a_mark_that_is_removed_before_it_is_on_disk_does_not_come_back(files, manager, jobs):
    append(made_again(manager, jobs), "a")
    disk = files.after_kill()
    jobs = SlowQueue(Random(2))
    again = open_manager(disk, jobs)
    log = again.get("t", 0)
    again.checkpoints.write({})
    jobs.all()
    assert not log.is_founded
    log.founding.settle()
    again.close()
    assert not [name for name in disk.list(f"{HOME}/t-0") if name.endswith(".cut")]


def test_where_nobody_can_say_what_the_memory_has_kept_it_is_on_disk_at_once(files, monkeypatch):
    monkeypatch.setattr(FaultyFiles, "memory", lambda self: "")
    append(opened(files).create("t", 0, ONE), "a")
    assert values(opened(files.after_kill()).get("t", 0)) == [b"a"]
    assert opened(files.after_power_cut(STRICT)).get("t", 0).topic_id == ONE


def test_a_disk_that_refuses_takes_the_directory_offline(files, manager, jobs):
    log = manager.create("t", 0, ONE)
    append(log, "a")
    manager.checkpoints.note(log)

    def refuse(operation, path):
        if "partition.metadata" in path:
            raise OSError(errno.EIO, "no", path)

    files.fault = refuse
    jobs.all()
    assert log.failed
    assert manager.has_offline_directories()
