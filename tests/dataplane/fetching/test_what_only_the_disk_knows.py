"""Where an offset stands is looked up in indexes and headers; a fetch for which they are on the disk waits, the loop does not."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from dataplane.doors import NotInMemoryError
from dataplane.replication.serving.cold_lookups import ROUNDS
from dataplane.storage.log import reading
from dataplane.storage.segments.indexed_file import IndexedFile
from tests.dataplane.fetching.support import Door, request, row, rows, single
from tests.dataplane.fetching.test_fetch_fast_path import frame_of, pair
from tests.dataplane.replication.cluster import ReplicatedCluster
from tests.support.memory_files import MemoryFile

OLD, NEW = 0, 900
"""Offsets: of the beginning, and of what the broker remembers itself."""


class Disk:
    """Makes a broker's files cold: what is looked at once has to be brought first, and is brought when the test says so."""

    def __init__(self, files, monkeypatch, *, forgetful: bool = False) -> None:
        self.asked: list[tuple[str, NotInMemoryError, object]] = []
        self.brought: set[tuple[str, int]] = set()
        self.waits = 0
        self._impatient = False
        self._forgetful = forgetful
        files.at_once, files.bring = self._at_once, self._bring
        read = MemoryFile.read

        def cold_read(file, position, size):
            if (file.path, position) not in self.brought:
                if self._impatient:
                    raise NotInMemoryError(file, position, size)
                self.waits += 1
            return read(file, position, size)

        monkeypatch.setattr(MemoryFile, "read", cold_read)

    @contextmanager
    def _at_once(self):
        self._impatient = True
        try:
            yield
        finally:
            self._impatient = False

    def _bring(self, account, missing, done):
        self.asked.append((account, missing, done))

    def turn(self) -> None:
        """What was asked for comes."""
        asked, self.asked = self.asked, []
        for _, missing, done in asked:
            if not self._forgetful:
                self.brought.add((missing.file.path, missing.position))
            done()

    def turns(self) -> int:
        """How many it takes until nobody asks any more."""
        count = 0
        while self.asked:
            self.turn()
            count += 1
        return count


@pytest.fixture
def cluster():
    made = single(2)
    for number in range(1_000):
        made.produce(1, f"{number}", acks=1)
    made.produce(1, "hot", acks=1, index=1)
    made.run(0.1)
    return made


@pytest.fixture
def disk(cluster, monkeypatch):
    return Disk(cluster[1].files, monkeypatch)


def first_offset(answer):
    return int.from_bytes(rows(answer)[0].records[:8])


def test_a_fetch_of_old_data_is_answered_when_the_disk_has_answered(cluster, disk):
    door = Door(cluster)
    answer = door.send(request({0: OLD}), 12)
    assert not answer.done
    assert [account for account, _, _ in disk.asked] == ["ins-aaaabbbb"]
    assert 0 < disk.turns() < ROUNDS
    assert first_offset(answer.result()) == OLD
    assert disk.waits == 0


def test_what_the_broker_remembers_needs_no_disk(cluster, disk):
    answer = Door(cluster).send(request({0: NEW}), 12)
    assert disk.asked == []
    assert first_offset(answer.result()) == NEW


def test_the_answer_has_all_partitions_not_only_those_in_memory(cluster, disk):
    answer = Door(cluster).send(request({1: 0, 0: OLD}), 12)
    assert not answer.done
    disk.turns()
    assert all(rows(answer.result())[index].records for index in (0, 1))


def test_in_a_session_too(cluster, disk):
    door = Door(cluster)
    session = door.fetch({0: NEW}, session_epoch=0).session_id
    answer = door.send(request({0: OLD}, session_id=session, session_epoch=1), 12)
    assert not answer.done
    disk.turns()
    assert first_offset(answer.result()) == OLD


def test_a_request_of_a_known_shape_waits_as_well(cluster, disk):
    quick, slow = pair(cluster)
    for client in (quick, slow):
        assert client.ask(frame_of(12, NEW))
        assert client.ask(frame_of(12, OLD, correlation_id=8)) == b""
    disk.turns()
    assert quick.connection.sent[1:] == slow.connection.sent[1:]
    assert len(quick.connection.sent) == 2


def test_where_memory_forgets_at_once_it_waits_in_the_end(cluster, monkeypatch):
    disk = Disk(cluster[1].files, monkeypatch, forgetful=True)
    answer = Door(cluster).send(request({0: OLD}), 12)
    assert disk.turns() == ROUNDS
    assert first_offset(answer.result()) == OLD
    assert disk.waits > 0


def test_nobody_looks_again_for_a_client_that_is_gone(cluster, disk):
    door = Door(cluster)
    answer = door.send(request({0: OLD}), 12)
    door.give_up()
    disk.turn()
    assert not answer.done
    assert disk.asked == []


def test_one_that_waits_for_more_after_the_disk_waits_no_longer_than_its_connection(cluster, disk):
    _, slow = pair(cluster)
    assert slow.ask(frame_of(12, OLD, min_bytes=10**6, max_wait_ms=60_000)) == b""
    assert disk.turns() > 0
    waiters = cluster[1].partition().queues.read_waiters
    assert len(waiters) == 1
    slow.client.session.instance = None
    slow.client.closed("gone")
    assert len(waiters) == 0


def test_an_index_that_has_to_be_built_is_built_whole_or_not_at_all(cluster, disk):
    log = cluster[1].partition().log
    segment = log.segments[0]
    assert isinstance(segment, IndexedFile)
    segment.packed_indexes()
    segment.forget_index()
    segment.remove_indexes()
    before = log.end_offset, segment.size
    with pytest.raises(NotInMemoryError):
        reading.read(log, OLD, 100, log.end_offset, at_least_one=True, wait=False)
    assert (log.end_offset, segment.size) == before
    assert reading.read(log, 500, 100, log.end_offset, at_least_one=True).position > 0


def test_a_follower_is_told_at_once_what_is_in_memory_and_later_what_is_not(monkeypatch):
    cluster = ReplicatedCluster(size=3)
    cluster.create((1, 2, 3))
    cluster.create((1, 2, 3), index=1)
    cluster.run(1)
    cluster.network.cut("b1", "b3")
    cluster.run(3)  # the fetch that was waiting is over
    for number in range(1_000):
        cluster.produce(1, f"{number}", acks=1)
    cluster.run(0.1)
    disk = Disk(cluster[1].files, monkeypatch)
    cluster.network.heal("b1", "b3")
    cluster.run(3)
    hot = cluster.produce(1, "hot", acks=1, index=1)
    cluster.run(0.1)
    assert hot.code == 0
    assert cluster[3].values(index=1) == [b"hot"]
    assert cluster[3].values() == []
    for _ in range(200):
        disk.turn()
        cluster.run(0.5)
    assert len(cluster[3].values()) == 1_000


def test_a_row_that_waits_for_the_disk_does_not_use_up_what_the_others_may_have(cluster, disk):
    """`max_bytes` is counted anew with each look."""
    answer = Door(cluster).send(request({1: 0, 0: row(0, OLD)}, max_bytes=150), 12)
    disk.turns()
    assert rows(answer.result())[1].records
