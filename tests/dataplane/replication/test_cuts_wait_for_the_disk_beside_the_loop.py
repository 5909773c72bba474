"""A follower that cuts its log waits for the disk beside the loop, and takes nothing before that is done."""

from __future__ import annotations

import pytest

from dataplane.storage.log import flushing
from tests.dataplane.replication.cluster import ReplicatedCluster


@pytest.fixture
def cluster():
    """Broker 1 led alone, wrote two records that nobody else has, and hears now that broker 2 leads."""
    made = ReplicatedCluster()
    made.create((1, 2, 3))
    made.produce(1, "base")
    made.run(0.5)
    for other in (2, 3):
        made.network.cut("b1", f"b{other}")
    made.produce(1, "only here", "and here", acks=1)
    made.run(0.01)
    made.elect(2, (2, 3), told=(2, 3))
    made.produce(2, "later", acks=1)
    made.run(0.2)
    assert made[1].values() == [b"base", b"only here", b"and here"]
    return made


def heal(cluster):
    for other in (2, 3):
        cluster.network.heal("b1", f"b{other}")
    cluster.tell(told=(1,))


def test_it_takes_nothing_before_the_cut_is_on_disk(cluster):
    background = cluster[1].background
    background.held = True
    heal(cluster)
    cluster.run(2)
    assert cluster[1].values() == [b"base"]
    background.held = False
    background.release()
    cluster.run(1)
    assert cluster[1].values() == [b"base", b"later"]


def test_a_mark_is_on_disk_before_what_was_synced_is_cut(cluster):
    log, background = cluster[1].partition().log, cluster[1].background
    flushing.flush(log)
    background.held = True
    heal(cluster)
    cluster.run(2)
    assert len(cluster[1].values()) == 3
    assert not log.cut_marks
    background.release()
    assert cluster[1].values() == [b"base"]
    assert len(log.cut_marks) == 1
    background.held = False
    background.release()
    cluster.run(1)
    assert cluster[1].values() == [b"base", b"later"]


def test_who_leads_before_the_cut_is_on_disk_brings_it_there_first(cluster):
    background, log = cluster[1].background, cluster[1].partition().log
    background.held = True
    heal(cluster)
    cluster.run(2)
    assert log.cut_work is not None
    cluster.elect(1, (1, 2, 3))
    cluster.run(0.01)
    assert log.cut_work is None
    cluster.produce(1, "mine", acks=1)
    cluster.run(0.01)
    assert cluster[1].values() == [b"base", b"mine"]
    background.held = False
    background.release()
    cluster.run(2)
    assert [cluster[n].values() for n in (1, 2, 3)] == [[b"base", b"mine"]] * 3


def test_a_role_that_changes_before_the_mark_is_written_cuts_nothing(cluster):
    background, log = cluster[1].background, cluster[1].partition().log
    flushing.flush(log)
    background.held = True
    heal(cluster)
    cluster.run(2)
    cluster.elect(1, (1,))
    cluster.run(0.01)
    background.held = False
    background.release()
    cluster.run(2)
    assert cluster[1].values()[:3] == [b"base", b"only here", b"and here"]


def test_a_disk_that_refuses_takes_the_replica_offline(cluster):
    def refuse(operation, path):
        if operation == "sync":
            raise OSError(5, "no", path)

    cluster[1].files.fault = refuse
    heal(cluster)
    cluster.run(1)
    cluster[1].files.fault = None
    assert cluster[1].partition().state.is_offline
