"""What a leader's proposal of a new ISR is worth (AlterPartition, KIP-497, KIP-841, KIP-903). Pure.

The partition epoch is the version of the state node: a proposal made on an older one is refused, and the leader learns
the present state. A replica may join only if it is registered now, is not shutting down, and is the incarnation that
the leader has seen catch up (its broker epoch): one that was restarted in between may have lost what made it in sync.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataplane.cluster.paths import PartitionState
from dataplane.controller.context import LiveBroker, Partition
from dataplane.controller.decisions import elections
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequestPartitionData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)

UNKNOWN_BROKER_EPOCH = -1
_RECOVERED, _RECOVERING = 0, 1


def judge(
    partition: Partition,
    proposal: AlterPartitionRequestPartitionData,
    sender: int,
    brokers: Mapping[int, LiveBroker],
    shutting_down: Mapping[int, None],
    controller_epoch: int,
    enough: int = 1,
) -> PartitionState | ErrorCode:
    """The state to write; NONE where it is already so; or why not."""
    state = partition.state
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wanted = proposed_isr(proposal)
    isr = tuple(member.broker_id for member in wanted)
    if proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows more than we do: we have been replaced (KAFKA-14154)
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != state.leader or sender not in isr:
        return ErrorCode.INVALID_REQUEST
    if proposal.leader_recovery_state != _RECOVERED:
        return ErrorCode.INVALID_REQUEST
    if len(set(isr)) != len(isr) or any(broker not in partition.replicas for broker in isr):
        return ErrorCode.INVALID_REQUEST
    if isr == state.isr:
        return ErrorCode.NONE  # the answer to the same proposal was lost
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not all(_eligible(member, brokers, shutting_down, partition) for member in wanted):
        return ErrorCode.INELIGIBLE_REPLICA
    epochs = {broker_id: broker.epoch for broker_id, broker in brokers.items()}
    return elections.with_isr(state, isr, epochs, controller_epoch, enough)


def proposed_isr(proposal: AlterPartitionRequestPartitionData) -> tuple[BrokerState, ...]:
    """The ISR asked for; versions before 3 do not say which incarnations."""
    return proposal.new_isr_with_epochs or tuple(BrokerState(broker) for broker in proposal.new_isr)


def recovery_state(state: PartitionState) -> int:
    """What the leader is told of the eligible: while there are any, it must commit nothing that they may lack.

    Kafka's messages have no room for them. Its other use of this field, leaders that were elected uncleanly and recover,
    does not exist without KRaft.
    """
    return _RECOVERING if state.eligible else _RECOVERED


def answer(index: int, error: ErrorCode, partition: Partition | None) -> AlterPartitionResponsePartitionData:
    """The outcome for one partition; the present state comes with it where it was accepted."""
    if error is not ErrorCode.NONE or partition is None or partition.state is None:
        return AlterPartitionResponsePartitionData(partition_index=index, error_code=error)
    state = partition.state
    return AlterPartitionResponsePartitionData(
        partition_index=index,
        error_code=error,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=recovery_state(state),
        partition_epoch=state.partition_epoch,
    )


def _eligible(
    member: BrokerState, brokers: Mapping[int, LiveBroker], shutting_down: Mapping[int, None], partition: Partition
) -> bool:
    broker = brokers.get(member.broker_id)
    if broker is None or member.broker_id in shutting_down or member.broker_id in partition.failed:
        return False
    return member.broker_epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)
