"""Replicas move to other brokers: asked for, watched, cancelled, and finished by whoever is the controller then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dataplane.cluster.paths import REASSIGN_PARTITIONS, reassignment_json, topic_path
from dataplane.doors import Create
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster


def reassign(
    cluster: ControlledCluster, wanted: Mapping[tuple[str, int], Sequence[int] | None]
) -> dict[tuple[str, int], int]:
    """The error of each partition."""
    outcomes = cluster.wait(Task(cluster.controller().controller.reassign(wanted)))
    cluster.run(0.2)
    return {key: 0 if refusal is None else refusal.code for key, refusal in outcomes.items()}


def ongoing(
    cluster: ControlledCluster,
) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """As ListPartitionReassignments would say it: all, adding, removing."""
    found = cluster.wait(Task(cluster.controller().controller.reassigned()))
    return {(p.topic, p.index): (p.replicas, p.assignment.adding, p.assignment.removing) for p in found}


def topic(cluster: ControlledCluster, name: str) -> dict[str, Any]:
    """The topic's node, without its id."""
    document = json.loads(cluster.data(topic_path(name)))
    del document["topic_id"]
    return dict(document)


def join(cluster: ControlledCluster, name: str, *isr: int) -> None:
    """The leader proposes what its followers' progress allows."""
    error, answer = cluster.propose(cluster.state(name, 0).leader, name, list(isr))
    assert (error, answer.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    cluster.run(0.2)


@pytest.fixture
def cluster() -> ControlledCluster:
    """Five brokers of which 5 is the controller: the others may come and go."""
    cluster = ControlledCluster(5)
    for broker_id in (1, 2, 3, 4):
        if cluster.controller().id == 5:
            break
        cluster.kill(broker_id if cluster.controller().id == broker_id else cluster.controller().id)
        cluster.run(3)
    for broker_id in (1, 2, 3, 4):
        if not cluster.brokers[broker_id].alive:
            cluster.start(broker_id)
    cluster.run(3)
    assert cluster.controller().id == 5
    return cluster


def test_old_and_new_replicas_hold_the_partition_until_the_new_are_in_sync(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    assert reassign(cluster, {("t", 0): (3, 4)}) == {("t", 0): 0}
    assert topic(cluster, "t") == {
        "version": 3,
        "partitions": {"0": [3, 4, 1, 2]},
        "adding_replicas": {"0": [3, 4]},
        "removing_replicas": {"0": [1, 2]},
    }
    assert ongoing(cluster) == {("t", 0): ((3, 4, 1, 2), (3, 4), (1, 2))}
    state = cluster.state("t", 0)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), 1)  # the leader takes over its new followers
    for broker_id in (1, 2, 3, 4):
        told = cluster.brokers[broker_id].leaderships["t", 0]
        assert (told.replicas, told.adding_replicas, told.removing_replicas) == ((3, 4, 1, 2), (3, 4), (1, 2))
        assert told.is_new == (broker_id in (3, 4))
    assert cluster.brokers[5].metadata.partition("t", 0).replicas == (3, 4, 1, 2)  # type: ignore[union-attr]


def test_with_all_the_new_in_sync_the_old_leave_the_lead_moves_and_their_logs_are_deleted(
    cluster: ControlledCluster,
) -> None:
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 4)})
    join(cluster, "t", 1, 2, 4)
    assert ("t", 0) in ongoing(cluster)  # 3 is not there yet
    join(cluster, "t", 1, 2, 4, 3)
    assert ongoing(cluster) == {}
    assert topic(cluster, "t") == {
        "version": 3,
        "partitions": {"0": [3, 4]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    state = cluster.state("t", 0)
    assert (state.leader, state.isr) == (3, (4, 3))
    for broker_id in (1, 2):
        assert cluster.brokers[broker_id].removed == [("t", 0)]
        assert cluster.brokers[broker_id].leaderships == {}
    for broker_id in (3, 4):
        assert cluster.brokers[broker_id].removed == []
        assert cluster.brokers[broker_id].leaderships["t", 0].replicas == (3, 4)
    assert cluster.brokers[5].metadata.partition("t", 0).replicas == (3, 4)  # type: ignore[union-attr]


def test_a_leader_that_stays_keeps_the_lead(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 1)})
    join(cluster, "t", 1, 2, 3)
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (1, (1, 3))


def test_fewer_replicas_or_another_order_are_there_at_once(cluster: ControlledCluster) -> None:
    cluster.create_on("fewer", 1, 2, 3)
    cluster.create_on("order", 1, 2, 3)
    assert reassign(cluster, {("fewer", 0): (2, 3), ("order", 0): (3, 2, 1)}) == {("fewer", 0): 0, ("order", 0): 0}
    assert ongoing(cluster) == {}
    assert (cluster.state("fewer", 0).leader, cluster.state("fewer", 0).isr) == (2, (2, 3))
    assert cluster.brokers[1].removed == [("fewer", 0)]
    assert topic(cluster, "order")["partitions"] == {"0": [3, 2, 1]}
    assert cluster.brokers[2].leaderships["order", 0].replicas == (3, 2, 1)


def test_cancelled_it_is_as_before_and_the_new_replicas_are_deleted(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 4)})
    join(cluster, "t", 1, 2, 4)
    assert reassign(cluster, {("t", 0): None}) == {("t", 0): 0}
    assert ongoing(cluster) == {}
    assert topic(cluster, "t")["partitions"] == {"0": [1, 2]}
    assert topic(cluster, "t")["adding_replicas"] == topic(cluster, "t")["removing_replicas"] == {}
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (1, (1, 2))
    assert (cluster.brokers[3].removed, cluster.brokers[4].removed) == ([("t", 0)], [("t", 0)])
    assert cluster.brokers[1].removed == []


def test_a_cancellation_that_would_leave_nobody_in_sync_is_refused(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1)
    reassign(cluster, {("t", 0): (3, 4)})
    join(cluster, "t", 1, 3)
    cluster.kill(1)
    cluster.run(3)
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (3, (3,))
    assert reassign(cluster, {("t", 0): None}) == {("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert cluster.state("t", 0).isr == (3,)
    join(cluster, "t", 3, 4)  # forward is the way that is left
    assert ongoing(cluster) == {}


def test_another_target_replaces_the_first(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 4)})
    assert reassign(cluster, {("t", 0): (4, 2)}) == {("t", 0): 0}
    assert ongoing(cluster) == {("t", 0): ((4, 2, 1), (4,), (1,))}
    assert cluster.brokers[3].removed == [("t", 0)]
    join(cluster, "t", 1, 2, 4)
    assert topic(cluster, "t")["partitions"] == {"0": [4, 2]}


@pytest.mark.parametrize(
    ("key", "target", "code"),
    [
        (("t", 0), (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0), (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0), (-1, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0), (1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (("t", 7), (1, 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("no", 0), (1, 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 0), None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    cluster: ControlledCluster, key: tuple[str, int], target: Sequence[int] | None, code: ErrorCode
) -> None:
    cluster.create_on("t", 1, 2)
    before = cluster.data(topic_path("t"))
    assert reassign(cluster, {key: target}) == {key: code}
    assert cluster.data(topic_path("t")) == before


def test_a_broker_that_is_dead_may_be_moved_away_from(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    cluster.kill(1)
    cluster.run(3)
    reassign(cluster, {("t", 0): (3, 2)})
    join(cluster, "t", 2, 3)
    assert ongoing(cluster) == {}
    assert topic(cluster, "t")["partitions"] == {"0": [3, 2]}
    returned = cluster.start(1)
    cluster.run(3)
    assert returned.leaderships == {}


def test_a_new_replica_that_dies_is_waited_for(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 4)})
    join(cluster, "t", 1, 2, 3)
    cluster.kill(4)
    cluster.run(3)
    assert cluster.state("t", 0).isr == (1, 2, 3)
    assert ("t", 0) in ongoing(cluster)
    assert cluster.start(4)
    cluster.run(3)
    assert cluster.brokers[4].leaderships["t", 0].adding_replicas == (3, 4)
    join(cluster, "t", 1, 2, 3, 4)
    assert ongoing(cluster) == {}


@pytest.mark.parametrize("after_s", [round(0.0007 * step, 4) for step in range(12)])
def test_wherever_the_controller_dies_the_next_one_goes_on(cluster: ControlledCluster, after_s: float) -> None:
    """Within the first step, or between the last replica's joining and the end."""
    cluster.create_on("t", 1, 2)
    Task(cluster.controller().controller.reassign({("t", 0): (3, 4)}))
    cluster.run(after_s)
    cluster.kill(5)
    cluster.run(3)
    assert cluster.controller().id != 5
    if not ongoing(cluster):  # nothing was written
        assert topic(cluster, "t")["partitions"] == {"0": [1, 2]}
        assert reassign(cluster, {("t", 0): (3, 4)}) == {("t", 0): 0}
    cluster.start(5)
    cluster.run(3)
    join(cluster, "t", 1, 2, 3)
    leader = cluster.state("t", 0).leader
    cluster.time.call_later(after_s, lambda: cluster.kill(cluster.controller().id))
    cluster.propose(leader, "t", [1, 2, 3, 4])
    cluster.run(6)
    cluster.controller()
    cluster.run(2)
    survivors = [broker_id for broker_id in (3, 4) if cluster.brokers[broker_id].alive]
    isr = cluster.state("t", 0).isr
    if not ongoing(cluster):
        assert topic(cluster, "t")["partitions"] == {"0": [3, 4]}
        assert cluster.state("t", 0).leader in survivors
    else:  # the last join was not written, or the controller that died was one of the new replicas
        assert not {3, 4} <= {*isr}


def test_the_node_of_operators_begins_it_and_goes_when_all_is_done(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    cluster.create_on("u", 1, 2)
    asked = {("t", 0): (3, 2), ("u", 0): (1, 2), ("gone", 0): (1, 2), ("u", 9): (1,)}
    cluster.server.write([Create(REASSIGN_PARTITIONS, reassignment_json(asked))])
    cluster.run(1)
    assert ongoing(cluster) == {("t", 0): ((3, 2, 1), (3,), (1,))}
    assert json.loads(cluster.data(REASSIGN_PARTITIONS)) == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}],
    }
    join(cluster, "t", 1, 2, 3)
    assert ongoing(cluster) == {}
    assert not cluster.exists(REASSIGN_PARTITIONS)


def test_the_node_is_taken_up_by_the_next_controller(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    cluster.server.write([Create(REASSIGN_PARTITIONS, reassignment_json({("t", 0): (3, 2)}))])
    cluster.kill(5)
    cluster.run(4)
    join(cluster, "t", 1, 2, 3)
    assert topic(cluster, "t")["partitions"] == {"0": [3, 2]}
    assert not cluster.exists(REASSIGN_PARTITIONS)


def test_a_request_is_the_latest_word_over_the_node(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    cluster.server.write([Create(REASSIGN_PARTITIONS, reassignment_json({("t", 0): (3, 2)}))])
    cluster.run(1)
    assert reassign(cluster, {("t", 0): None}) == {("t", 0): 0}
    assert not cluster.exists(REASSIGN_PARTITIONS)
    assert topic(cluster, "t")["partitions"] == {"0": [2, 1]}  # the order is lost on the way, as in Kafka


def test_a_node_that_cannot_be_read_is_deleted(cluster: ControlledCluster) -> None:
    cluster.server.write([Create(REASSIGN_PARTITIONS, b"{}")])
    cluster.run(1)
    assert not cluster.exists(REASSIGN_PARTITIONS)


def test_a_topic_that_is_deleted_on_the_way_goes_from_all_its_brokers(cluster: ControlledCluster) -> None:
    cluster.create_on("t", 1, 2)
    cluster.server.write([Create(REASSIGN_PARTITIONS, reassignment_json({("t", 0): (3, 2)}))])
    cluster.run(1)
    assert cluster.delete("t").error is ErrorCode.NONE
    cluster.run(1)
    assert all(cluster.brokers[broker_id].removed == [("t", 0)] for broker_id in (1, 2, 3))
    assert not cluster.exists(topic_path("t"))
    assert not cluster.exists(REASSIGN_PARTITIONS)


def test_a_topic_does_not_grow_while_it_moves(cluster: ControlledCluster) -> None:
    """How many replicas it has cannot be told from a partition that has the old and the new."""
    cluster.create_on("t", 1, 2)
    reassign(cluster, {("t", 0): (3, 4)})
    assert cluster.grow("t", 2).error is ErrorCode.REASSIGNMENT_IN_PROGRESS
    join(cluster, "t", 1, 2, 3, 4)
    assert cluster.grow("t", 2).error is ErrorCode.NONE
    assert len(topic(cluster, "t")["partitions"]["1"]) == 2


def test_preferred_replicas_get_the_lead_back_only_when_the_move_is_over() -> None:
    cluster = ControlledCluster(4, rebalance_s=0.5)
    controller = cluster.controller().id
    a, b, c = (broker.id for broker in cluster.others(controller))
    cluster.create_on("t", a, b)
    reassign(cluster, {("t", 0): (b, c)})
    cluster.run(3)
    assert cluster.state("t", 0).leader == a
    join(cluster, "t", a, b, c)
    assert cluster.state("t", 0).leader == b


def test_many_partitions_move_in_few_transactions(cluster: ControlledCluster) -> None:
    cluster.create("t", assignment=dict.fromkeys(range(450), (1, 2)))
    cluster.run(1)
    version = cluster.server.tree.node(topic_path("t")).version
    assert set(reassign(cluster, {("t", index): (1, 3) for index in range(450)}).values()) == {0}
    assert cluster.server.tree.node(topic_path("t")).version == version + 3
    assert len(ongoing(cluster)) == 450


def removals(cluster: ControlledCluster, broker_id: int) -> list[int]:
    """The leader epochs with which a broker was told to remove replicas."""
    return [
        partition.leader_epoch
        for request in cluster.brokers[broker_id].requests
        if isinstance(request, control.StopReplicaRequest)
        for topic in request.topic_states
        for partition in topic.partition_states
    ]


def test_a_removal_names_the_epoch_in_which_it_was_decided_and_a_deletion_is_above_all(
    cluster: ControlledCluster,
) -> None:
    """KIP-570: so a replica that has come back since is not removed by a request that was late."""
    cluster.create_on("t", 1, 2)
    cluster.run(0.2)
    reassign(cluster, {("t", 0): (2, 3)})
    join(cluster, "t", 1, 2, 3)
    assert removals(cluster, 1) == [cluster.state("t", 0).leader_epoch]
    cluster.delete("t")
    assert removals(cluster, 2) == removals(cluster, 3) == [-2]
