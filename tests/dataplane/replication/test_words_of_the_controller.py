"""LeaderAndIsr and StopReplica: what is taken, and what is refused because it comes too late."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from dataplane.cluster.metadata import Metadata
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from dataplane.replication.leadership import apply_leader_and_isr, stop_replicas
from tests.dataplane.replication.cluster import CONTROLLER, TOPIC, TOPIC_ID, ReplicatedCluster, State


def _stop(cluster: ReplicatedCluster, broker_id: int, leader_epoch: int, *, delete: bool, **more: int) -> ErrorCode:
    row = StopReplicaPartitionState(partition_index=0, leader_epoch=leader_epoch, delete_partition=delete)
    topic = StopReplicaTopicState(topic_name=TOPIC, partition_states=(row,))
    request = StopReplicaRequest(controller_id=CONTROLLER, controller_epoch=1, topic_states=(topic,))
    response = stop_replicas(cluster[broker_id].replicas, replace(request, **more))
    return ErrorCode(response.error_code or response.partition_errors[0].error_code)


def _apply(cluster: ReplicatedCluster, request: LeaderAndIsrRequest, broker_id: int = 1) -> LeaderAndIsrResponse:
    return apply_leader_and_isr(cluster[broker_id].replicas, request)


def test_a_deposed_controller_is_refused():
    cluster = ReplicatedCluster()
    cluster.create()
    request = cluster.leader_and_isr(cluster[1])
    assert _apply(cluster, replace(request, controller_epoch=5)).error_code == ErrorCode.NONE
    assert _apply(cluster, replace(request, controller_epoch=4)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert _stop(cluster, 1, 99, delete=True) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert cluster[1].partition().state.is_leader


def test_a_word_for_an_earlier_life_of_the_broker_is_refused():
    cluster = ReplicatedCluster()
    cluster.create()
    late = replace(cluster.leader_and_isr(cluster[1]), broker_epoch=cluster[1].broker_epoch - 1)
    assert _apply(cluster, late).error_code == ErrorCode.STALE_BROKER_EPOCH
    stale = cluster[1].broker_epoch - 1
    assert _stop(cluster, 1, 99, delete=True, broker_epoch=stale) == ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_epoch_that_is_not_above_ours_changes_nothing():
    cluster = ReplicatedCluster()
    cluster.create()
    old = cluster.leader_and_isr(cluster[1])
    cluster.elect(2, (1, 2, 3))
    answer = _apply(cluster, old)
    assert answer.error_code == ErrorCode.NONE
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.NONE
    assert not cluster[1].partition().state.is_leader
    assert cluster[1].partition().state.leader_id == 2


def test_a_new_controller_that_says_the_same_epoch_again_brings_the_isr_it_knows():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(0.5)
    cluster.network.cut("b1", "b3")
    produced = cluster.produce(1, "x")
    cluster.run(0.1)
    state = cluster.controller.states[TOPIC, 0]
    state.isr, state.partition_epoch = (1, 2), 1
    cluster.tell(told=(1,))
    assert cluster[1].partition().state.isr == (1, 2)
    cluster.run(3.5)  # replica 3 is waited for as long as it might join again
    assert cluster.controller.requests == []
    assert produced.code == ErrorCode.NONE


def test_another_topic_of_the_same_name_is_not_taken_for_this_one():
    cluster = ReplicatedCluster()
    cluster.create()
    request = cluster.leader_and_isr(cluster[1])
    (topic,) = request.topic_states
    other = replace(request, topic_states=(replace(topic, topic_id=UUID(int=8)),))
    (answer,) = _apply(cluster, other).topics
    assert answer.topic_id == UUID(int=8)
    assert answer.partition_errors[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_the_answer_can_be_written_in_every_version():
    cluster = ReplicatedCluster()
    cluster.create()
    answer = _apply(cluster, cluster.leader_and_isr(cluster[1]))
    for version in range(8):
        read = decode(LeaderAndIsrResponse, version, encode(answer, version))
        rows = read.topics[0].partition_errors if version >= 5 else read.partition_errors
        assert [row.partition_index for row in rows] == [0]
        assert version < 5 or read.topics[0].topic_id == TOPIC_ID


def test_a_stopped_replica_neither_leads_nor_follows_and_keeps_its_log():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.produce(1, "x")
    cluster.run(0.5)
    assert _stop(cluster, 2, 0, delete=False) == ErrorCode.NONE
    assert _stop(cluster, 1, 0, delete=False) == ErrorCode.NONE
    late = cluster.produce(1, "y")
    cluster.run(1)
    assert late.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].values() == cluster[2].values() == [b"x"]
    assert cluster[1].leadership[-1] == (TOPIC, 0, None)


def test_a_deleted_replica_is_gone_from_disk_and_its_waiters_are_told():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    waiting = cluster.produce(1, "x")
    cluster.run(0.1)
    assert _stop(cluster, 1, -2, delete=True) == ErrorCode.NONE
    assert waiting.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].replicas.registry.get(TOPIC, 0) is None
    assert not cluster[1].files.exists(f"/data/1/{TOPIC}-0")
    assert _stop(cluster, 1, -2, delete=True) == ErrorCode.NONE  # harmless twice


def test_a_deletion_of_an_older_epoch_is_refused():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.elect(1, (1, 2, 3))
    assert _stop(cluster, 1, 0, delete=True) == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster[1].partition().state.is_leader


class Told:
    """A broker with real metadata, told by a controller in its order: who leads, what there is, what is to be removed."""

    def __init__(self) -> None:
        self.cluster = ReplicatedCluster(size=1)
        self.broker = self.cluster[1]
        self.broker.replicas.metadata = self.metadata = Metadata()

    def leads(self, topic_id: UUID, leader_epoch: int = 0) -> None:
        assert self.told_who_leads(topic_id, leader_epoch) == ErrorCode.NONE

    def told_who_leads(self, topic_id: UUID, leader_epoch: int = 0) -> ErrorCode:
        self.cluster.controller.states[TOPIC, 0] = State(1, leader_epoch, (1,), (1,))
        (topic,) = (request := self.cluster.leader_and_isr(self.broker)).topic_states
        request = replace(request, topic_states=(replace(topic, topic_id=topic_id),))
        answer = apply_leader_and_isr(self.broker.replicas, request)
        return ErrorCode(answer.topics[0].partition_errors[0].error_code)

    def update(self, topic_id: UUID, *replicas: int, leader: int = 1, leader_epoch: int = 0) -> None:
        row = UpdateMetadataPartitionState(
            partition_index=0, leader=leader, leader_epoch=leader_epoch, isr=replicas, zk_version=0, replicas=replicas
        )
        topic = UpdateMetadataTopicState(TOPIC, topic_id, (row,))
        self.metadata.apply(UpdateMetadataRequest(controller_id=CONTROLLER, controller_epoch=1, topic_states=(topic,)))

    def created(self, topic_id: UUID, leader_epoch: int = 0) -> None:
        self.leads(topic_id, leader_epoch)
        self.update(topic_id, 1, leader_epoch=leader_epoch)
        self.cluster.produce(1, "x")
        self.cluster.run(0.1)

    def stop(self, leader_epoch: int) -> ErrorCode:
        return _stop(self.cluster, 1, leader_epoch, delete=True)

    def values(self) -> list[bytes | None]:
        return self.broker.values()


OTHER_ID = UUID(int=8)


def test_a_topic_that_is_deleted_goes_once_everybody_has_heard_of_it():
    told = Told()
    told.created(TOPIC_ID)
    told.update(TOPIC_ID, 1, leader=-2)
    assert told.stop(-2) == ErrorCode.NONE
    assert told.broker.logs.get(TOPIC, 0) is None


@pytest.mark.parametrize("leader_epoch", [-2, -1, 5])
@pytest.mark.parametrize("is_announced", [True, False])
def test_a_deletion_that_comes_late_leaves_the_topic_that_was_made_again_alone(leader_epoch, is_announced):
    """It lay in a connection that the controller has closed; by another one it was repeated and answered."""
    told = Told()
    told.created(TOPIC_ID, leader_epoch=3)
    told.update(TOPIC_ID, 1, leader=-2)
    assert told.stop(-2) == ErrorCode.NONE
    told.leads(OTHER_ID)
    if is_announced:
        told.update(OTHER_ID, 1)
    assert told.stop(leader_epoch) == ErrorCode.FENCED_LEADER_EPOCH
    assert told.broker.partition().state.is_leader
    assert told.broker.logs.get(TOPIC, 0).topic_id == OTHER_ID


def test_a_leadership_that_comes_after_its_topic_has_gone_leaves_the_name_to_the_next_one():
    """It lay in a closed connection too: its log would stand in the way of the topic that is made again."""
    told = Told()
    told.created(TOPIC_ID)
    told.update(TOPIC_ID, 1, leader=-2)
    assert told.stop(-2) == ErrorCode.NONE
    assert told.told_who_leads(TOPIC_ID) == ErrorCode.UNKNOWN_TOPIC_ID
    assert told.broker.logs.get(TOPIC, 0) is None
    told.created(OTHER_ID)
    assert told.values() == [b"x"]


def test_a_replica_that_was_moved_away_goes():
    told = Told()
    told.created(TOPIC_ID)
    told.update(TOPIC_ID, 2, 3, leader=2, leader_epoch=1)
    assert told.stop(1) == ErrorCode.NONE
    assert told.broker.logs.get(TOPIC, 0) is None


@pytest.mark.parametrize("leader_epoch", [1, 2])
def test_a_removal_that_comes_late_leaves_the_replica_that_has_come_back_alone(leader_epoch):
    told = Told()
    told.created(TOPIC_ID)
    told.update(TOPIC_ID, 2, 3, leader=2, leader_epoch=1)
    assert told.stop(1) == ErrorCode.NONE
    told.created(TOPIC_ID, leader_epoch=2)
    assert told.stop(leader_epoch) == ErrorCode.FENCED_LEADER_EPOCH
    assert told.values() == [b"x"]


def test_a_log_that_no_controller_has_spoken_of_goes_with_its_topic():
    told = Told()
    told.created(TOPIC_ID)
    told.cluster.kill(1)
    told.broker = told.cluster.start(1)
    assert told.broker.logs.get(TOPIC, 0) is not None
    assert told.stop(-2) == ErrorCode.NONE
    assert told.broker.logs.get(TOPIC, 0) is None


def test_the_first_batch_of_an_epoch_waits_for_no_disk():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    order: list[str] = []
    cluster[1].files.fault = lambda operation, path: order.append(f"{operation} {path.rsplit('/')[-1]}")
    cluster.elect(1, (1,))
    cluster.produce(1, "x")
    cluster.run(0.01)
    assert [entry for entry in order if not entry.startswith("open")] == ["append 00000000000000000000.log"]


def test_nothing_is_acknowledged_as_durable_in_an_epoch_that_cannot_be_written_down():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), flush_messages="1")

    def full(operation: str, path: str) -> None:
        if operation == "write_file":
            raise OSError(28, "No space left on device", path)

    cluster[1].files.fault = full
    cluster.tell_next_epoch(1)
    produced = cluster.produce(1, "x")
    cluster.run(0.01)
    assert produced.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not cluster[1].partition().state.is_leader
    assert cluster[1].partition().state.is_offline
