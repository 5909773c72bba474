"""Periodic work looks at every partition, a millisecond's worth in each turn; files are written when something changed."""

from itertools import pairwise
from types import SimpleNamespace
from uuid import UUID

import pytest

from dataplane.config import BrokerConfig, Settings
from dataplane.replication.upkeep.housekeeping import Housekeeping
from dataplane.storage.manager import LogManager
from tests.dataplane.storage.support import append
from tests.support.memory_files import ImmediateBackground, MemoryFiles

COUNT = 300
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")


class Loop:
    """Its clock moves by 0.1 ms whenever it is looked at."""

    def __init__(self) -> None:
        self.clock = self
        self.soon = []
        self.ms = 0.0

    def monotonic(self) -> float:
        self.ms += 0.1
        return self.ms / 1000

    def now_ms(self) -> int:
        return 1_000_000

    def call_soon(self, callback) -> None:
        self.soon.append(callback)

    def turns(self) -> int:
        count = 0
        while self.soon:
            count += 1
            self.soon.pop(0)()
        return count


def start():
    loop, files = Loop(), MemoryFiles()
    config = BrokerConfig(id=1, data_dirs=("/d",), internal=("127.0.0.1", 1), settings=Settings())
    logs = LogManager(files, loop, ImmediateBackground(), config)
    logs.open_all()
    partitions = []
    for index in range(COUNT):
        log = logs.create("t", index, UUID(int=1))
        partitions.append(SimpleNamespace(log=log, state=SimpleNamespace(high_watermark=index)))
    replicas = SimpleNamespace(loop=loop, logs=logs, registry=SimpleNamespace(partitions=lambda: iter(partitions)))
    housekeeping = Housekeeping(replicas)
    housekeeping._timers = dict.fromkeys(("isr", "checkpoint", "retention"))
    return loop, files, partitions, housekeeping


def test_a_round_is_many_turns_and_looks_at_everything_once():
    loop, _, partitions, housekeeping = start()
    seen, ends = [], []
    housekeeping._in_slices("isr", iter(partitions), seen.append, lambda: ends.append(len(seen)))
    assert len(seen) < COUNT, "the first turn has an end"
    assert loop.turns() >= 1
    assert seen == partitions
    assert ends == [COUNT]


def test_a_turn_ends_with_the_first_that_takes_long():
    """To look at a partition takes a microsecond, to delete segments of it a thousand."""
    loop, _, partitions, housekeeping = start()
    at_once, seen = [], 0

    def delete(_) -> None:
        nonlocal seen
        seen += 1
        loop.ms += 1.0

    housekeeping._in_slices("retention", iter(partitions), delete)
    while loop.soon:
        before = seen
        loop.soon.pop(0)()
        at_once.append(seen - before)
    assert seen == COUNT
    assert max(at_once) == 1


def test_no_round_begins_before_the_last_has_ended():
    loop, _, partitions, housekeeping = start()
    housekeeping._in_slices("isr", iter(partitions), lambda _: None)
    assert "isr" in housekeeping._under_way
    loop.turns()
    assert housekeeping._under_way == {}


def test_those_with_a_time_to_be_synced_are_looked_at_in_a_round():
    loop, _, partitions, housekeeping = start()
    housekeeping._timers["flush"] = None
    seen = []
    housekeeping._replicas.syncs = SimpleNamespace(timed=lambda: iter(partitions), look_at_time=seen.append)
    housekeeping._look_at_time_in_slices()
    assert len(seen) < COUNT
    loop.turns()
    assert seen == partitions


def test_a_round_ends_when_everything_stops():
    loop, _, partitions, housekeeping = start()
    seen = []
    housekeeping._in_slices("isr", iter(partitions), seen.append)
    del housekeeping._timers["isr"]
    loop.turns()
    assert len(seen) < COUNT


def test_one_that_fails_keeps_none_from_its_turn():
    """Nor the rounds that follow: else nothing of this broker is deleted or checkpointed any more."""
    loop, _, partitions, housekeeping = start()
    seen, ends = [], []

    def look(partition) -> None:
        if partition is partitions[3]:
            raise ValueError("a bug")
        seen.append(partition)

    for rounds in (1, 2):
        housekeeping._in_slices("isr", iter(partitions), look, lambda: ends.append(1))
        loop.turns()
        assert len(seen) == rounds * (COUNT - 1)
        assert len(ends) == rounds
        assert housekeeping._under_way == {}


def test_a_round_that_breaks_off_is_followed_by_another():
    loop, _, partitions, housekeeping = start()

    def broken():
        yield partitions[0]
        raise ValueError("a bug")

    seen = []
    housekeeping._in_slices("isr", broken(), seen.append)
    loop.turns()
    assert (seen, housekeeping._under_way) == ([partitions[0]], {})


def test_checkpoints_are_written_when_something_has_changed():
    loop, files, partitions, housekeeping = start()
    written = []
    files.fault = lambda operation, path: written.append(path) if operation == "write_file" else None
    housekeeping._checkpoint_in_slices()
    loop.turns()
    assert set(written) > {f"/d/{name}" for name in CHECKPOINTS}, (
        "the first round: the files may speak of logs that are gone"
    )
    lines = files.read_file(f"/d/{CHECKPOINTS[1]}").decode().splitlines()
    assert lines[:2] == ["0", str(COUNT)]
    assert sorted(lines[2:]) == sorted(f"t {index} {index}" for index in range(COUNT))
    written.clear()
    housekeeping._checkpoint_in_slices()
    loop.turns()
    assert written == []
    append(partitions[7].log, "v")
    partitions[7].state.high_watermark = 1000
    housekeeping._checkpoint_in_slices()
    loop.turns()
    assert written[-1:] == [f"/d/{CHECKPOINTS[1]}"]
    assert b"t 7 1000\n" in files.read_file(f"/d/{CHECKPOINTS[1]}")


def test_rounds_share_one_slice_a_turn():
    """Two that were under way took two slices of each turn."""
    loop, _, partitions, housekeeping = start()
    seen = {"isr": [], "retention": []}
    for name, found in seen.items():
        housekeeping._in_slices(name, iter(partitions), found.append)
    whose = []
    while loop.soon:
        assert len(loop.soon) == 1
        before = {name: len(found) for name, found in seen.items()}
        loop.soon.pop(0)()
        whose.append([name for name, found in seen.items() if len(found) > before[name]])
    assert whose[:4] == [["isr"], ["retention"], ["isr"], ["retention"]]
    assert max(map(len, whose)) == 1
    assert list(seen.values()) == [partitions, partitions]


@pytest.mark.parametrize("others", [0, 1])
def test_lines_are_joined_before_the_files_are_written_in_slices_of_their_own(monkeypatch, others):
    monkeypatch.setattr("dataplane.storage.checkpoints.lines.LINES_IN_A_BLOCK", 8)
    loop, files, partitions, housekeeping = start()
    checkpoints = housekeeping._replicas.logs.checkpoints
    assert len(list(checkpoints.stale())) > COUNT / 8
    happened, real = [], checkpoints.write_noted
    checkpoints.write_noted = lambda: (happened.append(list(checkpoints.stale())), real())
    housekeeping._checkpoint_in_slices()
    for _ in range(others):
        housekeeping._in_slices("isr", iter(partitions), lambda _: None)
    turns, left = 0, []
    while loop.soon:
        turns += 1
        loop.soon.pop(0)()
        left.append(len(list(checkpoints.stale())))
    assert happened == [[]], "nothing is left to be joined when it is written, and it is written once"
    assert max(before - after for before, after in pairwise(left)) <= 3
    assert files.read_file(f"/d/{CHECKPOINTS[1]}").count(b"\n") == COUNT + 2


def test_a_bug_in_what_follows_a_round_costs_no_other_its_turn(caplog):
    loop, _, partitions, housekeeping = start()
    seen, ends = [], []
    housekeeping._in_slices("isr", iter(partitions[:3]), lambda _: None, lambda: 1 // 0)
    housekeeping._in_slices("retention", iter(partitions), seen.append, lambda: ends.append(1))
    loop.turns()
    assert (seen, ends, housekeeping._under_way) == (partitions, [1], {})
    assert "ZeroDivisionError" in caplog.text


def test_a_round_that_follows_another_has_its_first_slice_in_the_next_turn():
    loop, _, partitions, housekeeping = start()
    seen = []
    housekeeping._in_slices(
        "isr",
        iter(partitions[:1]),
        lambda _: None,
        lambda: housekeeping._in_slices("isr", iter(partitions), seen.append),
    )
    loop.soon.pop(0)()
    assert "isr" in housekeeping._under_way
    assert seen == []
    loop.turns()
    assert seen == partitions
