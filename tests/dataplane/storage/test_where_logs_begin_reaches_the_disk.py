"""A deletion of records holds for ever once checkpoints are settled; what that costs does not grow with the logs of others."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.config import BrokerConfig, Settings
from dataplane.storage.checkpoints.rows import START_OFFSETS, CheckpointRows
from dataplane.storage.log import removing
from dataplane.storage.manager import LogManager
from dataplane.tasks import Future
from tests.dataplane.storage.support import append
from tests.support.memory_files import MemoryFiles

LOGS = 40


class Later:
    """Background work that is done when it is told to."""

    def __init__(self) -> None:
        self.waiting = []

    def run(self, work, *_):
        future = Future()
        self.waiting.append((work, future))
        return future

    def one(self) -> None:
        work, future = self.waiting.pop(0)
        future.resolve(work())

    def all(self) -> None:
        while self.waiting:
            self.one()


class Loop:
    def __init__(self) -> None:
        self.clock = self

    def monotonic(self) -> float:
        return 1.0

    def now_ms(self) -> int:
        return 1_000_000

    def call_later(self, *_):
        return None

    def call_soon(self, callback) -> None:
        callback()


@pytest.fixture
def started():
    """Files, background and logs of two records each; what was noted at the start is written."""
    files, background = MemoryFiles(), Later()
    config = BrokerConfig(id=1, data_dirs=("/d",), internal=("127.0.0.1", 1), settings=Settings())
    logs = LogManager(files, Loop(), background, config)
    logs.open_all()
    for index in range(LOGS):
        log = logs.create("t", index, UUID(int=1))
        append(log, "a")
        append(log, "b")
    background.all()
    logs.checkpoints.write({})
    background.all()
    return files, background, logs


def begins(files: MemoryFiles) -> dict[int, int]:
    """Where logs begin as the disk says, by partition."""
    rows = files.read_file(f"/d/{START_OFFSETS}").decode().splitlines()[2:]
    return {int(partition): int(offset) for _, partition, offset in (row.split() for row in rows)}


def delete(logs: LogManager, index: int, offset: int) -> None:
    log = logs.get("t", index)
    removing.set_start_offset(log, offset)
    logs.checkpoints.note(log)


def test_what_was_noted_is_on_disk_when_it_is_settled(started):
    files, background, logs = started
    delete(logs, 3, 1)
    settled = logs.checkpoints.settle()
    assert not settled.done
    background.all()
    assert settled.done
    assert begins(files) == {3: 1}


def test_it_looks_at_the_logs_that_were_noted_and_at_no_others(started, monkeypatch):
    _, background, logs = started
    looked_at = []
    note = CheckpointRows.note
    monkeypatch.setattr(CheckpointRows, "note", lambda rows, key, *of: looked_at.append(key) or note(rows, key, *of))
    delete(logs, 3, 1)
    logs.checkpoints.settle()
    background.all()
    assert looked_at == [("t", 3)]


def test_what_comes_while_one_is_written_goes_together_with_the_next(started):
    files, background, logs = started
    delete(logs, 3, 1)
    first = logs.checkpoints.settle()
    delete(logs, 4, 2)
    second = logs.checkpoints.settle()
    delete(logs, 5, 1)
    assert logs.checkpoints.settle() is second
    background.one()
    assert (first.done, second.done) == (True, False)
    background.all()
    assert second.done
    assert begins(files) == {3: 1, 4: 2, 5: 1}


def test_one_that_waits_is_not_settled_by_a_writing_that_began_before_it(started):
    """Somebody else's writing may begin as soon as the one before has ended."""
    files, background, logs = started
    delete(logs, 3, 1)
    written = logs.checkpoints.write_noted()
    append(logs.get("t", 9), "c")
    written.then(lambda _: logs.checkpoints.write({("t", 9): 3}))
    delete(logs, 4, 2)
    settled = logs.checkpoints.settle()
    settled.then(lambda _: seen.append(begins(files)))
    seen = []
    background.all()
    assert seen == [{3: 1, 4: 2}]


def test_where_everything_is_on_disk_nothing_is_written(started):
    _, background, logs = started
    assert logs.checkpoints.settle().done
    assert background.waiting == []
