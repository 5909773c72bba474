"""Two threads of the background may have something to write of one segment, or of one log: what is newer stays."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dataplane.storage.files import SystemFiles
from dataplane.storage.log import LogConfig, closing, cutting
from dataplane.storage.segments.saving import Saves
from tests.dataplane.storage.support import DIRECTORY, append, batch_of, new_files, open_log, stage
from tests.support.faulty_files import STRICT, FaultyFiles
from tests.support.memory_files import ImmediateBackground

WAIT_S = 10


class Slow:
    """A file system where a write can be kept from ending."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.writers = self.most_writers = 0

    def write(self, name: str, content: bytes) -> None:
        self.writers += 1
        self.most_writers = max(self.most_writers, self.writers)
        self.has_begun.set()
        assert self.may_end.wait(WAIT_S)
        SystemFiles().write_file(str(self.directory / name), content)
        self.writers -= 1


def in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_second_writer_waits_for_the_first(tmp_path):
    saves, slow = Saves(), Slow(tmp_path)
    older = in_thread(saves.saver([("index", b"older")], slow.write, Path.unlink))
    assert slow.has_begun.wait(WAIT_S)
    newer = in_thread(saves.saver([("index", b"newer")], slow.write, Path.unlink))
    newer.join(0.05)
    assert (newer.is_alive(), slow.writers) == (True, 1)
    slow.may_end.set()
    for thread in (older, newer):
        thread.join(WAIT_S)
    assert (slow.most_writers, (tmp_path / "index").read_bytes()) == (1, b"newer")


def test_what_is_older_and_comes_later_writes_only_what_nothing_newer_has_written():
    saves, files = Saves(), new_files()
    older = saves.saver([("/list", b"1"), ("/index", b"1")], files.write_file, files.remove)
    newer = saves.saver([("/list", b"2")], files.write_file, files.remove)
    assert (newer(), older()) == (True, True)
    assert (files.read_file("/list"), files.read_file("/index")) == (b"2", b"1")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_was_packed_before_a_change_under_the_files_leaves_none(when):
    saves, files = Saves(), new_files()

    def write(path, content):
        files.write_file(path, content)
        if when == "meanwhile":
            saves.void += 1

    save = saves.saver([("/list", b"1"), ("/index", b"1")], write, files.remove)
    saves.void += when == "before"
    assert not save()
    assert files.list("/") == ["data"]


def test_files_that_go_while_they_are_written_end_with_the_one_under_way(tmp_path):
    saves, slow = Saves(), Slow(tmp_path)
    contents = [(name, b"1") for name in ("list", "index", "times")]
    under_way = in_thread(saves.saver(contents, slow.write, lambda name: (tmp_path / name).unlink()))
    assert slow.has_begun.wait(WAIT_S)
    assert saves.drop(waits=False), "it is being written"
    threading.Timer(0.05, slow.may_end.set).start()
    assert not saves.drop()
    under_way.join(WAIT_S)
    assert list(tmp_path.iterdir()) == []
    assert saves.saver(contents, slow.write, Path.unlink)() is False


@pytest.mark.parametrize("of", ["the segment", "one of its name that was cut off"])
def test_what_is_out_of_date_is_gone_from_the_disk_only_when_what_was_being_written_of_it_has_been_removed(
    tmp_path, of
):
    """A start would believe it, and no transaction behind it would be taken for aborted."""
    saves, slow, done = Saves(), Slow(tmp_path), []
    older = in_thread(saves.saver([("index", b"older")], slow.write, done.append))
    assert slow.has_begun.wait(WAIT_S)
    if of == "the segment":
        saves.void += 1
    else:
        saves.drop(waits=False)
        saves = Saves(saves)
    assert saves.void != saves.void_on_disk
    settling = in_thread(lambda: saves.settle(saves.void, lambda: done.append("synced")))
    settling.join(0.05)
    slow.may_end.set()
    for thread in (older, settling):
        thread.join(WAIT_S)
    assert (done, saves.void_on_disk) == (["index", "synced"], saves.void)


@pytest.mark.parametrize("of", ["the segment", "one of its name that was cut off"])
def test_what_is_out_of_date_is_gone_from_the_disk_though_its_segment_has_left_the_log_since(tmp_path, of):
    """The recovery point moves by it, and by a power cut the segment may be back, with what is out of date."""
    saves, slow, done = Saves(), Slow(tmp_path), []
    older = in_thread(saves.saver([("index", b"older")], slow.write, done.append))
    assert slow.has_begun.wait(WAIT_S)
    saves.void += 1
    left = saves if of == "the segment" else Saves(saves)
    void = left.void
    left.drop(waits=False)
    settling = in_thread(lambda: left.settle(void, lambda: done.append("synced")))
    settling.join(0.05)
    slow.may_end.set()
    for thread in (older, settling):
        thread.join(WAIT_S)
    assert done == ["index", "synced"]


def test_a_log_that_is_closed_waits_for_the_indexes_that_are_being_written(tmp_path):
    """Otherwise both write the same file beside, and the log fails when one finds it gone."""
    files = SystemFiles()
    log = open_log(files, directory=str(tmp_path), config=LogConfig(segment_bytes=10_000))
    append(log, "v")
    slow = Slow(tmp_path)
    under_way = in_thread(log.active.index_saver(slow.write))
    assert slow.has_begun.wait(WAIT_S)
    append(log, "w")
    threading.Timer(0.05, slow.may_end.set).start()
    closing.close(log)
    under_way.join(WAIT_S)
    assert not under_way.is_alive()
    assert sorted(path.suffix for path in tmp_path.iterdir() if "0000" in path.name) == [
        ".index", ".log", ".snapshot", ".timeindex",
    ]  # fmt: skip


def filled(files, background):
    """A log of which one segment has ended, and the path of its snapshot, which waits for the background."""
    log = open_log(files, background, config=LogConfig(segment_bytes=300))
    for sequence in range(3):
        stage(log, batch_of("v" * 50, producer_id=7, producer_epoch=0, base_sequence=sequence))
    background.held = True
    append(log, "v" * 100)
    return log, f"{DIRECTORY}/{log.end_offset:020d}.snapshot"


def test_a_snapshot_of_a_log_that_was_cut_meanwhile_is_removed():
    files, background = new_files(), ImmediateBackground()
    log, path = filled(files, background)
    cutting.truncate(log, 1)
    background.release()
    background.release()
    assert not files.exists(path)


def cut_while_its_snapshot_is_written(files, background):
    """As `filled`, where the background comes to it."""
    log, path = filled(files, background)
    written = files.write_file

    def cut_then_write(where, content):
        files.write_file = written
        written(where, content)
        if where == path:
            cutting.cut(log, 1, cutting.mark_of_cut(log, 1))
        else:
            files.write_file = cut_then_write

    files.write_file = cut_then_write
    return log, path


def test_a_snapshot_that_was_removed_late_does_not_come_back_with_a_power_cut():
    """The log may have grown to its offset again, with other batches."""
    files, background = FaultyFiles(), ImmediateBackground()
    files.make_directory(DIRECTORY)
    files.sync_below("/")
    _, path = cut_while_its_snapshot_is_written(files, background)
    background.release()
    assert files.after_power_cut(STRICT).exists(path)
    background.release()
    assert not files.after_power_cut(STRICT).exists(path)


def test_a_snapshot_is_not_removed_late_where_another_log_has_one_of_the_same_name():
    """The log was cut while its snapshot was being written; then it went, and its topic was made again."""
    files, background = new_files(), ImmediateBackground()
    log, path = cut_while_its_snapshot_is_written(files, background)
    background.release()  # it is to be removed, and the background has not come to that
    assert files.exists(path)
    closing.abandon(log)
    files.write_file(path, b"of the new one")
    background.release()
    assert files.read_file(path) == b"of the new one"


def test_a_log_that_is_closed_before_its_snapshot_was_written_lists_it_once():
    files, background = new_files(), ImmediateBackground()
    log, path = filled(files, background)
    closing.close(log)
    assert files.exists(path)
    background.release()
    assert log.producer_state.snapshots.count(log.end_offset) == 1
