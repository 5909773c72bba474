"""OffsetCommit and TxnOffsetCommit, decided: what is appended, what is refused, and whose session a commit prolongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.coordination import errors
from dataplane.groups.classic.members import Member
from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.consumer import epochs
from dataplane.groups.offsets import TopicPartition, commit_problem, transactional_commit_problem
from dataplane.groups.records import write_offset
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.coordination.effects import KeyValue, Producer
    from dataplane.groups.consumer.model import Group as ConsumerGroup
    from dataplane.groups.settings import GroupSettings


@dataclass(frozen=True, slots=True)
class Offset:
    """One offset to commit. `timestamp_ms` -1 means now."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class Commit:
    """A request. A simple consumer has generation -1 and no member id. `retention_ms` -1 means the broker's.

    `producer`: in whose transaction; None: in nobody's.
    """

    offsets: Mapping[TopicPartition, Offset]
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    retention_ms: int = -1
    producer: Producer | None = None
    knows_epochs: bool = False  # its sender's version has the epochs of members (KIP-848)


_END_OF_TIME_MS = 2**63 - 1
"""The latest time that a record can say: a client may ask for more."""


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What to append, for which keys; the errors known already; whose session begins anew."""

    records: list[KeyValue]
    keys: list[TopicPartition]
    errors: dict[TopicPartition, ErrorCode]
    heard_of: Member | None = None


def plan(
    group: Group, ask: Commit, settings: GroupSettings, now_ms: int, consumer: ConsumerGroup | None = None
) -> CommitPlan:
    """Decide. Nothing changes yet. A group of the consumer protocol comes beside one that is as if there were none."""
    judge = commit_problem if ask.producer is None else transactional_commit_problem
    if consumer is not None:
        problem = epochs.commit_problem(
            *(consumer, ask.member_id, ask.generation, ask.instance_id),
            knows_epochs=ask.knows_epochs,
            in_transaction=ask.producer is not None,
        )
    else:
        problem = judge(group, ask.generation, ask.member_id, ask.instance_id)
    member = None
    is_valid = problem in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    if is_valid and ask.producer is None and group.state is not GroupState.EMPTY:  # a producer is no member
        member = group.members[ask.member_id]
    if problem != ErrorCode.NONE:
        return CommitPlan([], [], dict.fromkeys(ask.offsets, problem), member)
    longest = settings.offset_metadata_max_bytes
    errors = {k: ErrorCode.OFFSET_METADATA_TOO_LARGE for k, o in ask.offsets.items() if len(o.metadata) > longest}
    keys = [key for key in ask.offsets if key not in errors]
    records = [write_offset(group.group_id, *key, _value(ask.offsets[key], ask.retention_ms, now_ms)) for key in keys]
    return CommitPlan(records, keys, errors, member)


def _value(offset: Offset, retention_ms: int, now_ms: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=now_ms if offset.timestamp_ms < 0 else offset.timestamp_ms,
        expire_timestamp=-1 if retention_ms < 0 else min(now_ms + retention_ms, _END_OF_TIME_MS),
    )


LOG_ERRORS_OF_COMMITS = {
    **errors.LOG_ERRORS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
_OF_TRANSACTIONS = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
LOG_ERRORS_OF_TRANSACTIONAL_COMMITS = {
    **LOG_ERRORS_OF_COMMITS,
    **{error: error for error in _OF_TRANSACTIONS},
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,  # to be sent again, to the same broker
}
"""Besides those of the log, what is the matter with the transaction, which its producer has to know."""


def told(error: ErrorCode) -> ErrorCode:
    """What a client is told when the log does not take a commit, or a removal."""
    return errors.told(error, LOG_ERRORS_OF_COMMITS)


def told_producer(error: ErrorCode) -> ErrorCode:
    """What a producer is told when its transaction, or the log, does not take a commit."""
    return errors.told(error, LOG_ERRORS_OF_TRANSACTIONAL_COMMITS)
