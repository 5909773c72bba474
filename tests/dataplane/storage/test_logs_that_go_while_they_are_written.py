"""A log goes while the background writes in its directory: the loop waits for no more than it has to, and nothing comes late."""

from __future__ import annotations

import errno
import threading
from functools import partial
from uuid import UUID

import pytest

from dataplane.config import BrokerConfig
from dataplane.storage.cleaner.work import NewSegment, OldSegment
from dataplane.storage.config import LogConfig
from dataplane.storage.files import SystemFiles
from dataplane.storage.log import compacting, cutting, removing
from dataplane.storage.manager import LogManager
from dataplane.storage.segments.segment import Segment
from tests.crashpoints.workload import StoppedClock
from tests.dataplane.storage.support import append
from tests.support.memory_files import ImmediateBackground

WAIT_S = 10


class SlowFiles(SystemFiles):
    """Writing a file does not come to its end until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.written: list[str] = []
        self.under_way = 0

    def write_file(self, path: str, data: bytes) -> None:
        if self.is_slow:
            self.written.append(path.rpartition("/")[2])
            self.under_way += 1
            self.has_begun.set()
            assert self.may_end.wait(WAIT_S)
        super().write_file(path, data)
        if self.is_slow:
            self.under_way -= 1


class World:
    """A broker's logs, and a thread that is at a file of one of them."""

    def __init__(self, tmp_path, **config) -> None:
        self.files = SlowFiles()
        self.writer: threading.Thread | None = None
        self.homes = tuple(str(tmp_path / name) for name in ("a", "b"))
        self.manager = LogManager(
            self.files, StoppedClock(), ImmediateBackground(), BrokerConfig(1, self.homes, ("127.0.0.1", 0))
        )
        self.manager.open_all()
        self.log = self.manager.create("topic", 0, UUID(int=1), LogConfig(**config))
        for epoch in range(6):
            append(self.log, "v" * 100, epoch=epoch)

    def at(self, work) -> threading.Thread:
        """The thread does it, and is at its first file."""
        self.files.is_slow = True
        self.writer = threading.Thread(target=work)
        self.writer.start()
        assert self.files.has_begun.wait(WAIT_S)
        return self.writer

    def ends_soon(self) -> None:
        threading.Timer(0.05, self.files.may_end.set).start()

    def names(self) -> list[str]:
        return [name for home in self.homes for name in self.files.list(f"{home}/topic-0")]

    def end(self) -> None:
        self.files.may_end.set()
        if self.writer is not None:
            self.writer.join(WAIT_S)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.end()


@pytest.fixture
def of_many_segments(tmp_path):
    made = World(tmp_path, segment_bytes=300)
    assert len(made.log.segments) > 2
    yield made
    made.end()


def test_who_deletes_a_log_waits_for_one_file_of_its_indexes_and_not_for_all(world):
    """Each takes two fsyncs."""
    writer = world.at(world.log.active.index_saver())
    world.ends_soon()
    world.manager.delete("topic", 0)
    assert world.files.under_way == 0
    assert world.files.written == [f"{'0' * 20}.index"]
    writer.join(WAIT_S)
    assert world.names() == []


def test_who_closes_it_in_order_waits_for_all_of_them(world):
    world.at(world.log.active.index_saver())
    world.ends_soon()
    world.manager.close()
    assert {f"{'0' * 20}.index", f"{'0' * 20}.timeindex"} <= set(world.names())


def index(log):
    return log.active.index_saver()


def epochs(log):
    return log.epochs.saver()


def anything(log):
    return partial(log.presence.run, partial(log.shared.files.write_file, f"{log.directory}/any", b""))


def founding(log):
    log.founding.is_settled = False
    return log.founding.settle


@pytest.mark.parametrize("work", [index, epochs, anything, founding])
def test_a_disk_that_fails_is_not_waited_for(world, work):
    """What is being written may hang for a minute, and the loop, with the session and all other leaderships, with it."""
    writer = world.at(work(world.log))
    failing = threading.Thread(target=world.log.fail, args=(OSError(errno.EIO, "I/O error"),))
    failing.start()
    failing.join(WAIT_S / 4)
    assert (failing.is_alive(), writer.is_alive()) == (False, True)
    assert world.manager.has_offline_directories()


def test_what_waits_to_be_written_on_a_disk_that_has_failed_is_not(world):
    log = world.log
    waiting = [index(log), anything(log)]
    world.at(epochs(log))
    log.fail(OSError(errno.EIO, "I/O error"))
    for work in waiting:
        work()
    assert world.files.written == ["leader-epoch-checkpoint"]


def test_a_segment_that_leaves_the_log_is_not_waited_for_and_whoever_deletes_the_log_waits(of_many_segments):
    """Its index would lie beside a log of the same name that is made meanwhile."""
    world = of_many_segments
    first = world.log.segments[0]
    writer = world.at(first.index_saver())
    removing.set_start_offset(world.log, world.log.end_offset)
    assert writer.is_alive()
    assert first not in world.log.segments
    world.ends_soon()
    world.manager.delete("topic", 0)
    assert world.files.under_way == 0
    writer.join(WAIT_S)
    world.files.is_slow = False
    world.manager.create("topic", 0, UUID(int=2))
    assert not [name for name in world.names() if name.endswith("index")]


def test_of_a_segment_that_has_left_the_log_nothing_is_written(of_many_segments):
    world = of_many_segments
    first = world.log.segments[0]
    late = first.index_saver()
    removing.set_start_offset(world.log, world.log.end_offset)
    assert (late(), first.index_saver()()) == (False, False)
    assert not [name for name in world.names() if name.startswith("0" * 20)]


def test_those_that_left_it_long_ago_are_not_kept(of_many_segments):
    world = of_many_segments
    first, second = world.log.segments[:2]
    writer = world.at(first.index_saver())
    removing.set_start_offset(world.log, second.base_offset)
    assert world.log.late_saves == [first]
    world.files.may_end.set()
    writer.join(WAIT_S)
    world.files.may_end.clear()
    world.files.has_begun.clear()
    again = world.at(second.index_saver())
    removing.set_start_offset(world.log, world.log.end_offset)
    assert world.log.late_saves == [second]
    world.files.may_end.set()
    again.join(WAIT_S)


def test_one_that_begins_where_another_was_cut_off_waits_for_what_is_being_written_of_that(of_many_segments):
    """Both would write the same file beside, and what the older one has written is removed when it has."""
    world = of_many_segments
    log = world.log
    gone = log.active
    older = world.at(gone.index_saver())
    world.files.is_slow = False
    cutting.truncate(log, log.segments[-2].base_offset)
    while log.active.base_offset < gone.base_offset:
        append(log, "w" * 100, epoch=6)
    assert (log.active is gone, log.active.base_offset) == (False, gone.base_offset)
    assert log.active.is_being_saved(), "nothing that lies under its name is its own yet"
    newer = threading.Thread(target=log.active.index_saver())
    newer.start()
    newer.join(0.05)
    assert newer.is_alive()
    world.files.may_end.set()
    for thread in (older, newer):
        thread.join(WAIT_S)
    assert f"{gone.base_offset:020d}.index" in world.names()


def test_one_of_which_an_index_is_being_written_is_not_compacted_now(of_many_segments):
    """It would be put in the place of the new one's, and removed."""
    world = of_many_segments
    first, second = world.log.segments[:2]
    world.at(first.index_saver())
    replaced = (OldSegment(first.base_offset, first.size, second.base_offset),)
    new = NewSegment(first.base_offset, replaced, first.size, second.base_offset, -1, 0)
    assert not compacting.replace_segments(world.log, new)
    assert (world.log.failed, world.log.segments[0] is first) == (False, True)


def test_nor_is_one_of_which_a_thread_begins_to_write_one_in_between(of_many_segments, monkeypatch):
    """Its index is not lost: it is to be written again."""
    world = of_many_segments
    first, second = world.log.segments[:2]
    assert first.index.entries() >= 0  # in memory
    save, is_being_saved, looks = first.index_saver(), Segment.is_being_saved, []

    def begins_after_the_look(segment):
        found = is_being_saved(segment)
        if not looks:
            world.at(save)
        looks.append(segment)
        return found

    monkeypatch.setattr(Segment, "is_being_saved", begins_after_the_look)
    replaced = (OldSegment(first.base_offset, first.size, second.base_offset),)
    new = NewSegment(first.base_offset, replaced, first.size, second.base_offset, -1, 0)
    assert not compacting.replace_segments(world.log, new)
    world.end()
    assert (world.log.failed, world.log.segments[0] is first) == (False, True)
    assert f"{first.base_offset:020d}.index" not in world.names()
    assert first.has_unsaved_index()


def test_what_is_about_to_be_written_of_one_that_is_compacted_is_not(of_many_segments):
    world = of_many_segments
    save = world.log.segments[0].index_saver()
    assert not world.log.segments[0].void_saves()
    assert not save()
