"""The seeded faults of `test_faults_by_seed` on a compacted partition: replicas compact when and as far as each likes.

At the end all replicas agree on the last value of every key and on every record they both have; nothing acknowledged is
lost unless a later record of its key replaced it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_records
from dataplane.storage.log import lookup
from tests.dataplane.replication.cluster import SETTINGS, ReplicatedCluster
from tests.dataplane.replication.test_faults_by_seed import Run

KEYS = 7


class CompactedRun(Run):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.cluster = ReplicatedCluster(seed=seed, settings=replace(SETTINGS, log_cleaner_backoff_ms=200))
        config = {"cleanup_policy": "compact", "segment_bytes": "600", "min_cleanable_dirty_ratio": "0.1"}
        self.cluster.create(min_insync_replicas="2", **config)
        self.cluster.run(0.5)

    def produce(self) -> None:
        leader = self.state.leader
        if leader not in self.down:
            for _ in range(self.random.randint(1, 6)):
                self.number += 1
                value, key = str(self.number), key_of(self.number)
                self.produced.append((value, self.cluster.produce(leader, value, key=key)))

    def tables(self) -> dict[int, dict[int, tuple[bytes, bytes]]]:
        """(key, value) by offset, of each replica."""
        found = {}
        for broker in (1, 2, 3):
            log = self.cluster[broker].partition().log
            records = [
                r for _, b in lookup.batches(log, log.start_offset, log.end_offset) for r in read_records(bytes(b))
            ]
            found[broker] = {record.offset: (record.key, record.value) for record in records}
            assert list(found[broker]) == sorted(found[broker])
        return found


def key_of(number: int) -> bytes:
    return b"k%d" % (number * number % KEYS)


@pytest.mark.parametrize("seed", range(25))
def test_replicas_agree_and_nothing_acknowledged_is_lost(seed: int):
    run = CompactedRun(seed)
    for _ in range(120):
        run.step()
    run.settle()
    tables = run.tables()
    partitions = [run.cluster[broker].partition() for broker in (1, 2, 3)]
    assert len({(p.log.end_offset, p.state.high_watermark) for p in partitions}) == 1
    last = {b: {key: (offset, value) for offset, (key, value) in table.items()} for b, table in tables.items()}
    assert last[1] == last[2] == last[3]
    everything: dict[int, tuple[bytes, bytes]] = {}
    for table in tables.values():
        for offset, record in table.items():
            assert everything.setdefault(offset, record) == record
            assert record[0] == key_of(int(record[1]))
    acknowledged = run.acknowledged()
    assert acknowledged
    for offset, value in acknowledged.items():
        key = key_of(int(value))
        assert last[1][key][0] >= offset
        assert everything.get(offset, (key, value)) == (key, value)
    assert any(run.cluster[broker].replicas.cleaner.rounds for broker in (1, 2, 3))
    assert sorted(run.state.isr) == [1, 2, 3]
    again = run.cluster.produce(run.state.leader, "1", key=b"k1")
    run.cluster.run(0.5)
    assert again.code == ErrorCode.NONE


def test_a_seed_replays_bit_for_bit():
    def digest() -> tuple[int, dict[int, dict[int, tuple[bytes, bytes]]]]:
        run = CompactedRun(4)
        for _ in range(60):
            run.step()
        run.settle()
        return run.cluster.network.digest, run.tables()

    assert digest() == digest()
