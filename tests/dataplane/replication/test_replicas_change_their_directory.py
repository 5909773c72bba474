"""Replicas move between the data directories of a broker, and nobody who writes or reads notices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.upkeep.moves import PIECE_BYTES
from dataplane.storage.log import cutting
from tests.dataplane.replication.cluster import SETTINGS, ReplicatedCluster

HOMES = ("a", "b")


def other_home(broker) -> str:
    directory = broker.partition().log.directory
    homes = [f"/data/{broker.id}{suffix}" for suffix in HOMES]
    return next(home for home in homes if not directory.startswith(home))


def move(cluster, broker, home: str) -> None:
    codes = []
    broker.loop.post(lambda: codes.append(broker.replicas.moves.begin(broker.partition(), home)))
    cluster.run(0.0001)
    assert codes == [ErrorCode.NONE]


def world(size: int = 3, **settings) -> ReplicatedCluster:
    return ReplicatedCluster(size, settings=replace(SETTINGS, **settings), homes=HOMES)


@pytest.mark.parametrize("who", [1, 2])
def test_a_leader_or_follower_moves_while_it_is_written_to(who):
    cluster = world(replica_alter_log_dirs_io_max_bytes_per_second=10 * PIECE_BYTES)
    cluster.create(segment_bytes="3000000")
    sent = [cluster.produce(1, f"{n:05d}" + "x" * 100_000) for n in range(40)]
    cluster.run(1)
    broker, home = cluster[who], other_home(cluster[who])
    move(cluster, broker, home)
    assert broker.replicas.moves.future(broker.partition()) is not None
    for n in range(40, 80):
        sent.append(cluster.produce(1, f"{n:05d}" + "x" * 100_000))
        cluster.run(0.02)
    cluster.run(5)
    assert [produced.code for produced in sent] == [ErrorCode.NONE] * 80
    assert broker.replicas.moves.future(broker.partition()) is None
    assert broker.partition().log.directory.startswith(home)
    expected = [f"{n:05d}".encode() for n in range(80)]
    for each in cluster.brokers.values():
        assert [value[:5] for value in each.values()] == expected
    assert cluster.produce(1, "after").code is None
    cluster.run(1)
    assert broker.values()[-1] == b"after"
    assert broker.replicas.accounting.storage_by_instance() == {"aaaabbbb": broker.partition().log.size_bytes}


def test_a_moved_replica_is_found_in_its_new_place_after_a_kill():
    cluster = world(1)
    cluster.create((1,))
    cluster.produce(1, "one", "two")
    cluster.run(0.1)
    home = other_home(cluster[1])
    move(cluster, cluster[1], home)
    cluster.run(1)
    cluster.kill(1)
    again = cluster.start(1)
    cluster.tell_next_epoch(1)
    assert again.partition().log.directory.startswith(home)
    assert again.values() == [b"one", b"two"]


def test_a_follower_that_is_cut_in_the_middle_has_its_copy_begun_anew():
    cluster = world(3, replica_alter_log_dirs_io_max_bytes_per_second=PIECE_BYTES)
    cluster.create((1, 2, 3), segment_bytes="3000000")
    for n in range(20):
        cluster.produce(1, f"{n:05d}" + "x" * 100_000)
    cluster.run(1)
    follower, home = cluster[2], other_home(cluster[2])
    move(cluster, follower, home)
    cluster.run(0.1)
    future = follower.replicas.moves.future(follower.partition())
    assert future is not None
    follower.loop.post(lambda: cutting.truncate(follower.partition().log, 5))
    cluster.elect(1, (1, 2, 3))
    cluster.run(30)
    assert follower.replicas.moves.future(follower.partition()) is None
    assert follower.partition().log.directory.startswith(home)
    assert follower.values() == cluster[1].values()


def test_a_move_back_or_elsewhere_ends_the_move():
    cluster = world(1, replica_alter_log_dirs_io_max_bytes_per_second=PIECE_BYTES)
    cluster.create((1,))
    for _ in range(40):
        cluster.produce(1, "x" * 100_000)
    cluster.run(0.1)
    here = cluster[1].partition().log.directory.rpartition("/")[0]
    move(cluster, cluster[1], other_home(cluster[1]))
    cluster.run(0.1)
    move(cluster, cluster[1], here)
    assert cluster[1].replicas.moves.future(cluster[1].partition()) is None
    cluster.run(10)
    assert cluster[1].partition().log.directory.startswith(here)
    assert [name for name in cluster[1].files.list(other_home(cluster[1])) if "future" in name] == []


def test_a_disk_that_takes_no_copy_leaves_the_replica_as_it_is():
    cluster = world(1)
    cluster.create((1,))
    cluster.produce(1, "one")
    cluster.run(0.1)
    broker, home = cluster[1], other_home(cluster[1])

    def fault(operation, path):
        if path.startswith(home) and operation == "append":
            raise OSError(28, "no space", path)

    broker.files.fault = fault
    move(cluster, broker, home)
    cluster.run(1)
    assert broker.replicas.moves.future(broker.partition()) is None
    assert not broker.partition().state.is_offline
    assert not broker.partition().log.directory.startswith(home)
    produced = cluster.produce(1, "two")
    cluster.run(1)
    assert produced.code is ErrorCode.NONE
    assert broker.values() == [b"one", b"two"]


def test_a_replica_that_is_deleted_on_its_way_takes_its_copy_along():
    cluster = world(1, replica_alter_log_dirs_io_max_bytes_per_second=PIECE_BYTES)
    cluster.create((1,))
    for _ in range(40):
        cluster.produce(1, "x" * 100_000)
    cluster.run(0.1)
    broker, home = cluster[1], other_home(cluster[1])
    partition = broker.partition()
    move(cluster, broker, home)
    cluster.run(0.1)

    def delete():
        broker.replicas.remove(partition)
        broker.logs.delete(partition.topic, partition.index)

    broker.loop.post(delete)
    cluster.run(10)
    assert broker.replicas.moves.future(partition) is None
    assert [name for suffix in HOMES for name in broker.files.list(f"/data/1{suffix}") if "orders" in name] == []
