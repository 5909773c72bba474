"""A full LeaderAndIsr says what a broker hosts; what it has besides, from before its start, is removed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from dataplane.cluster.metadata import FULL_UPDATE, INCREMENTAL_UPDATE
from dataplane.protocol.errors import ErrorCode
from dataplane.replication.leadership import apply_leader_and_isr
from tests.dataplane.replication.cluster import TOPIC, TOPIC_ID, ReplicatedCluster

NEW_ID = UUID(int=99)


def restarted() -> tuple[ReplicatedCluster, object]:
    """A broker with records in one log, in its next life, told of nothing yet."""
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    cluster.produce(1, "old")
    cluster.run(0.5)
    cluster.kill(1)
    broker = cluster.start(1)
    broker.metadata.topic_id = lambda topic: None
    return cluster, broker


def full(cluster, broker, **changes):
    request = replace(cluster.leader_and_isr(broker), type=FULL_UPDATE)
    return apply_leader_and_isr(broker.replicas, replace(request, **changes))


def test_a_log_that_is_not_named_is_removed():
    cluster, broker = restarted()
    full(cluster, broker, topic_states=())
    assert broker.logs.get(TOPIC, 0) is None
    assert not broker.files.exists(f"/data/1/{TOPIC}-0")


def test_a_log_of_another_topic_of_that_name_makes_room_for_the_new_one():
    cluster, broker = restarted()
    state = cluster.leader_and_isr(broker).topic_states[0]
    answer = full(cluster, broker, topic_states=(replace(state, topic_id=NEW_ID),))
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.NONE
    log = broker.logs.get(TOPIC, 0)
    assert (log.topic_id, log.end_offset) == (NEW_ID, 0)


def test_a_log_that_is_named_is_kept():
    cluster, broker = restarted()
    full(cluster, broker)
    assert (broker.logs.get(TOPIC, 0).topic_id, broker.logs.get(TOPIC, 0).end_offset) == (TOPIC_ID, 1)


@pytest.mark.parametrize("epoch", [0, 1])
def test_only_a_full_request_of_the_present_controller_removes_anything(epoch):
    cluster, broker = restarted()
    broker.metadata.controller_epoch = 5
    full(cluster, broker, topic_states=(), controller_epoch=epoch)
    broker.metadata.controller_epoch = 1
    full(cluster, broker, topic_states=(), type=INCREMENTAL_UPDATE)
    assert broker.logs.get(TOPIC, 0).end_offset == 1


def test_a_log_that_metadata_know_here_is_kept_whatever_a_request_leaves_out():
    cluster, broker = restarted()
    broker.metadata.partition = lambda topic, index: SimpleNamespace(replicas=(1,))
    broker.metadata.topic_id = lambda topic: TOPIC_ID
    full(cluster, broker, topic_states=())
    assert broker.logs.get(TOPIC, 0) is not None


def in_use(*replicas, topic_id=TOPIC_ID):
    """A replica that a controller has spoken of, and what metadata say of its partition."""
    cluster, broker = restarted()
    full(cluster, broker)
    known = SimpleNamespace(replicas=replicas) if replicas else None
    broker.metadata.partition = lambda topic, index: known
    broker.metadata.topic_id = lambda topic: topic_id
    return cluster, broker


@pytest.mark.parametrize(
    "known", [(), (1, 2)], ids=["metadata do not know the partition", "metadata have the partition here"]
)
def test_a_replica_that_is_in_use_is_no_stray(known):
    cluster, broker = in_use(*known)
    full(cluster, broker, topic_states=())
    assert broker.replicas.registry.get(TOPIC, 0) is not None
    assert broker.logs.get(TOPIC, 0) is not None


def test_a_replica_in_use_that_was_moved_to_other_brokers_is_removed():
    cluster, broker = in_use(2, 3)
    full(cluster, broker, topic_states=())
    assert broker.replicas.registry.get(TOPIC, 0) is None
    assert broker.logs.get(TOPIC, 0) is None


def test_a_replica_in_use_is_kept_where_metadata_mean_another_topic_of_that_name():
    cluster, broker = in_use(2, 3, topic_id=NEW_ID)
    full(cluster, broker, topic_states=())
    assert broker.replicas.registry.get(TOPIC, 0) is not None
