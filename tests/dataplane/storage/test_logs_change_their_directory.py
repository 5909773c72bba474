"""A copy takes a log's place, and a stop at any moment leaves either the log or the whole copy, never less or both."""

from __future__ import annotations

import pytest

from dataplane.storage.config import LogConfig
from dataplane.storage.log import appending, flushing, producing
from tests.dataplane.storage.support import append, copy_of, records_in
from tests.dataplane.storage.test_the_manager_finds_its_logs_again import ID, manager
from tests.support.memory_files import MemoryFiles

HOMES = ("/d1", "/d2")


class StopError(Exception):
    """The machine goes away at this operation."""


def log_with_copy(files):
    """A log of three segments, on disk; its copy, which is not yet."""
    logs = manager(files, homes=HOMES)
    log = logs.create("t", 0, ID, LogConfig(segment_bytes=300))
    for epoch in range(3):
        append(log, *(f"{epoch}-{n}" for n in range(4)), epoch=epoch, producer_id=7, base_sequence=epoch * 4)
        append(log, "x" * 200, epoch=epoch)
    log.epochs.assign(9, log.end_offset)  # a leader that has written nothing yet
    flushing.flush(log)
    future = logs.begin_move(log, "/d2")
    appending.stage_replica(future, memoryview(copy_of(log)))
    appending.commit(future)
    return logs, log, future


def names(files):
    return [f"{home}/{name}" for home in HOMES for name in files.list(home) if name.startswith("t")]


def test_the_copy_is_the_log_from_then_on_and_after_a_start():
    files = MemoryFiles()
    logs, log, future = log_with_copy(files)
    content, epochs = records_in(log), log.epochs.entries()
    moved = logs.finish_move(log, future)
    assert logs.get("t", 0) is moved
    assert (moved.directory, log.failed, future.failed) == ("/d2/t-0", True, True)
    assert (records_in(moved), moved.epochs.entries()) == (content, epochs)
    assert names(files) == ["/d2/t-0"]
    append(moved, "more", epoch=9)
    logs.close()
    again = manager(files, homes=HOMES).get("t", 0)
    assert records_in(again) == [*content, (15, b"more")]
    assert producing.producers_of(again).last_batches().keys() == {7}


def test_a_copy_that_was_not_finished_is_gone_after_a_start():
    files = MemoryFiles()
    _, log, _ = log_with_copy(files)
    content = records_in(log)
    assert len(names(files)) == 2
    files.crash()
    again = manager(files, homes=HOMES)
    assert records_in(again.get("t", 0)) == content
    assert names(files) == ["/d1/t-0"]


def test_a_copy_that_is_not_wanted_any_more_is_removed():
    files = MemoryFiles()
    logs, log, future = log_with_copy(files)
    logs.cancel_move(future)
    assert names(files) == ["/d1/t-0"]
    append(log, "more")
    assert len(records_in(log)) == 16


def test_a_stop_at_any_operation_of_the_change_loses_nothing():
    at, finished = 0, False
    places = set()
    while not finished:
        files = MemoryFiles()
        logs, log, future = log_with_copy(files)
        content = records_in(log)
        left = [at]

        def fault(operation, path, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise StopError

        files.fault = fault
        try:
            logs.finish_move(log, future)
            finished = True
        except StopError:
            pass
        files.fault = None
        files.crash()
        again = manager(files, homes=HOMES)
        found = again.get("t", 0)
        assert records_in(found) == content, at
        assert names(files) == [found.directory], at
        append(found, "more")
        places.add(found.directory)
        at += 1
    assert at > 10
    assert places == {"/d1/t-0", "/d2/t-0"}


def test_what_a_checkpoint_said_of_an_earlier_stay_is_not_believed():
    files = MemoryFiles()
    logs, log, future = log_with_copy(files)
    moved = logs.finish_move(log, future)
    for home in ("/d1", "/d2"):
        logs.checkpoints.write({})
        future = logs.begin_move(moved, home)
        appending.stage_replica(future, memoryview(copy_of(moved)))
        appending.commit(future)
        moved = logs.finish_move(moved, future)
    content = records_in(moved)
    append(moved, "in memory only")
    files.crash()
    assert records_in(manager(files, homes=HOMES).get("t", 0)) == content


@pytest.mark.parametrize("both", [False, True])
def test_a_whole_copy_counts_only_where_the_log_is_gone(both):
    files = MemoryFiles()
    logs, log, future = log_with_copy(files)
    content = records_in(log)
    logs.finish_move(log, future)
    files.rename("/d2/t-0", "/d2/t-0.moved")
    if both:
        files.make_directory("/d1/t-0")
        files.write_file("/d1/t-0/partition.metadata", files.read_file("/d2/t-0.moved/partition.metadata"))
    found = manager(files, homes=HOMES).get("t", 0)
    assert records_in(found) == ([] if both else content)
    assert names(files) == [found.directory]
