"""The controller's words: LeaderAndIsr and StopReplica, and what they make of the replicas here.

What is refused, and why: a controller epoch below the highest seen (a deposed controller, KAFKA-6082); a broker epoch
below ours (meant for an earlier life of this broker, KIP-380); a leader epoch that is not above ours (overtaken on
its way; said again, it is harmless); a topic id that is not the one on disk (another topic of the same name); the id of
a topic that has gone (its log would stand in the way of the next one of that name); a removal that metadata contradict
(`_is_late`).

A partition changes its role in one go: what is staged is written, then the role changes, then every request that waited for the
old role is told. So a deposed leader acknowledges nothing of what was not committed when it was deposed.
"""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from dataplane.cluster.metadata import FULL_UPDATE
from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Steps, run_through
from dataplane.replication.replica.partition import Partition
from dataplane.replication.upkeep import stray_logs
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import cutting
from quota.contracts.namespace import counted_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dataplane.replication.manager import Replicas
    from dataplane.storage.log import Log

_log = logging.getLogger(__name__)

NO_EPOCH = -1
EPOCH_DURING_DELETE = -2
"""Leader epochs of a StopReplica that holds whatever ours is."""
_LEADERS_PER_STEP, _ROLES_PER_STEP = 64, 8


def apply_leader_and_isr(replicas: Replicas, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Take over the roles that the request gives. Every partition has its own error."""
    return run_through(leader_and_isr_applied(replicas, request))


def leader_and_isr_applied(replicas: Replicas, request: LeaderAndIsrRequest) -> Steps[LeaderAndIsrResponse]:
    """The same in steps, each of whole partitions. No other word of a controller may come in between."""
    refused = _refusal(replicas, request.controller_id, request.controller_epoch, request.broker_epoch)
    if refused is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error_code=refused)
    for number, leader in enumerate(request.live_leaders, 1):
        replicas.peers.learn(leader.broker_id, leader.host_name, leader.port)
        if number % _LEADERS_PER_STEP == 0:
            yield None
    if request.type == FULL_UPDATE:
        for log in (yield from stray_logs.find(replicas, request)):
            _log.warning("%s-%d of the topic id %s is a stray: removed", log.topic, log.partition, log.topic_id)
            _stop(replicas, _Stop(log.topic, log.partition, EPOCH_DURING_DELETE, delete=True))
            yield None
    flat, by_topic = [], []
    grouped = ((topic.topic_name, topic.topic_id, topic.partition_states) for topic in request.topic_states)
    ungrouped = ((state.topic_name, NO_UUID, (state,)) for state in request.ungrouped_partition_states)
    left = _ROLES_PER_STEP
    for name, topic_id, partition_states in chain(grouped, ungrouped):
        errors = []
        for state in partition_states:
            left -= (
                1 if replicas.registry.get(name, state.partition_index) is not None else _ROLES_PER_STEP
            )  # a log is made
            code = _apply(replicas, name, topic_id, state)
            errors.append(
                LeaderAndIsrPartitionError(topic_name=name, partition_index=state.partition_index, error_code=code)
            )
            if left <= 0:
                left = _ROLES_PER_STEP
                yield None
        flat += errors
        by_topic.append(LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=as_array(errors)))
    return LeaderAndIsrResponse(partition_errors=tuple(flat), topics=tuple(by_topic))


def already_refused(replicas: Replicas, request: LeaderAndIsrRequest) -> ErrorCode:
    """Whether it will be, whatever comes before it: epochs only grow. Changes nothing; NONE: not yet."""
    if request.controller_epoch < replicas.metadata.controller_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.STALE_BROKER_EPOCH if _is_for_an_earlier_life(replicas, request.broker_epoch) else ErrorCode.NONE


def _refusal(replicas: Replicas, controller_id: int, controller_epoch: int, broker_epoch: int) -> ErrorCode:
    if not replicas.metadata.saw_controller(controller_id, controller_epoch):
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.STALE_BROKER_EPOCH if _is_for_an_earlier_life(replicas, broker_epoch) else ErrorCode.NONE


def _is_for_an_earlier_life(replicas: Replicas, broker_epoch: int) -> bool:
    own = replicas.broker_epoch()
    # Without a registration, what comes was meant for our previous life: it may name us leader of what we lost.
    return broker_epoch != NO_EPOCH and (own == NO_EPOCH or broker_epoch < own)


def _apply(replicas: Replicas, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> ErrorCode:
    if replicas.broker_id not in state.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replicas.metadata.was_deleted(topic_id):
        return ErrorCode.UNKNOWN_TOPIC_ID
    try:
        partition = _find_or_create(replicas, topic, topic_id, state)
        if partition is None:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition.state.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = partition.state
        if state.leader_epoch > known.leader_epoch:
            _change_role(replicas, partition, state)
        elif state.leader_epoch == known.leader_epoch and state.partition_epoch > known.partition_epoch:
            eligible = bool(state.leader_recovery_state)
            known.adopt_isr(
                state.isr, state.partition_epoch, others_eligible=eligible
            )  # said again by a new controller
            replicas.progress.isr_confirmed(partition)
    except OSError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    except Exception as error:  # noqa: BLE001 - a bug
        return _broken(replicas, topic, state.partition_index, error)
    return ErrorCode.KAFKA_STORAGE_ERROR if partition.state.is_offline else ErrorCode.NONE


def _broken(replicas: Replicas, topic: str, index: int, error: Exception) -> ErrorCode:
    """A bug met one partition: the others have their turn, and the controller is not to say the same for ever."""
    partition = replicas.registry.get(topic, index)
    if partition is None:
        _log.error("%s-%d cannot be here", topic, index, exc_info=error)
    else:
        replicas.roles.broken(partition, error)
    return ErrorCode.KAFKA_STORAGE_ERROR


def _find_or_create(
    replicas: Replicas, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState
) -> Partition | None:
    """None: there is a log of another topic of this name."""
    index = state.partition_index
    partition = replicas.registry.get(topic, index)
    if partition is None:
        log = replicas.logs.get(topic, index)
        if log is None:
            if not state.is_new and replicas.logs.has_offline_directories():
                raise LogFailedError("it may be in a directory that is offline: an empty log would pass for it")
            log = replicas.logs.create(topic, index, topic_id, replicas.configuration.log_config(topic))
        if NO_UUID != topic_id != log.topic_id:
            return None
        partition = _partition_of(replicas, log)
        replicas.add(partition)
    return None if NO_UUID != topic_id != partition.topic_id else partition


def _partition_of(replicas: Replicas, log: Log) -> Partition:
    """The replica that a log is, with no role yet."""
    topic = log.topic
    checkpoint = replicas.logs.checkpoints.high_watermark(topic, log.partition)
    partition = Partition(
        topic,
        log.partition,
        log.topic_id,
        log,
        replicas.rules,
        high_watermark=max(log.start_offset, min(checkpoint, log.end_offset)),
        instance_key=counted_key(topic),
        metadata_version=replicas.metadata.version,
        usage=None if replicas.meter is None else replicas.meter.topic(topic, log.topic_id),
    )
    if log.failed:
        partition.state.fail()
    return partition


def _change_role(replicas: Replicas, partition: Partition, state: LeaderAndIsrPartitionState) -> None:
    replicas.appending.commit(partition)
    if partition.state.is_offline:
        return
    # Else what a new leader appends could be taken for what was cut, after a power cut.
    cutting.settle_cut_now(partition.log)
    led = partition.state.is_leader
    if state.leader == replicas.broker_id:
        replicas.fetchers.leave(partition)
        moved = partition.lead(state, replicas.loop.clock.monotonic())
        replicas.roles.role_changed(partition, led)
        if moved:
            replicas.progress.high_watermark_moved(partition)
    else:
        partition.follow(state)
        replicas.fetchers.follow(partition)
        replicas.roles.role_changed(partition, led)


# --- StopReplica ------------------------------------------------------------------------------------------------------


class _Stop(NamedTuple):
    topic: str
    partition: int
    leader_epoch: int
    delete: bool


def stop_replicas(replicas: Replicas, request: StopReplicaRequest) -> StopReplicaResponse:
    """Stop following and leading; delete the logs where that is asked."""
    return run_through(replicas_stopped(replicas, request))


def replicas_stopped(replicas: Replicas, request: StopReplicaRequest) -> Steps[StopReplicaResponse]:
    """The same in steps."""
    refused = _refusal(replicas, request.controller_id, request.controller_epoch, request.broker_epoch)
    if refused is not ErrorCode.NONE:
        return StopReplicaResponse(error_code=refused)
    errors = []
    for s in _stops(request):
        code = _obey(replicas, s)
        errors.append(StopReplicaPartitionError(topic_name=s.topic, partition_index=s.partition, error_code=code))
        yield None
    return StopReplicaResponse(partition_errors=as_array(errors))


def _stops(request: StopReplicaRequest) -> Iterator[_Stop]:
    for topic_state in request.topic_states:
        for state in topic_state.partition_states:
            yield _Stop(topic_state.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield _Stop(topic.name, index, NO_EPOCH, request.delete_partitions)
    for ungrouped in request.ungrouped_partitions:
        yield _Stop(ungrouped.topic_name, ungrouped.partition_index, NO_EPOCH, request.delete_partitions)


def _obey(replicas: Replicas, stop: _Stop) -> ErrorCode:
    if stop.delete and _is_late(replicas, stop):
        return ErrorCode.FENCED_LEADER_EPOCH
    try:
        return _stop(replicas, stop)
    except Exception as error:  # noqa: BLE001 - a bug
        return _broken(replicas, stop.topic, stop.partition, error)


def _is_late(replicas: Replicas, stop: _Stop) -> bool:
    """Whether this lay in a connection that its controller has closed, and the replica has come here since.

    The request has no topic id, and a deletion is above every leader epoch. But a controller tells of a replica in an
    order: who leads, then what there is (metadata); and takes it back in another: what there is, then what is to be
    removed. So a removal is not of this replica while metadata have it here, or have not said anything since it came.
    """
    metadata, log = replicas.metadata, replicas.logs.get(stop.topic, stop.partition)
    partition = replicas.registry.get(stop.topic, stop.partition)
    if log is None:
        return False
    if partition is not None and partition.metadata_version == metadata.version:
        return True
    known = metadata.partition(stop.topic, stop.partition)
    is_the_same = metadata.topic_id(stop.topic) in (log.topic_id, NO_UUID, None)
    return known is not None and is_the_same and replicas.broker_id in known.replicas


def _stop(replicas: Replicas, stop: _Stop) -> ErrorCode:
    partition = replicas.registry.get(stop.topic, stop.partition)
    if partition is not None:
        if stop.leader_epoch >= 0 and stop.leader_epoch < partition.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        replicas.appending.commit(partition)
        replicas.fetchers.leave(partition)
        replicas.roles.role_changed(partition, led=partition.state.resign())
        if stop.delete:
            replicas.remove(partition)
    if stop.delete and replicas.logs.get(stop.topic, stop.partition) is not None:
        try:
            replicas.logs.delete(stop.topic, stop.partition)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
