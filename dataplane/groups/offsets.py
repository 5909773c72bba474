"""The offsets that a group has committed: who may commit, what is visible, what has expired.

A commit is *pending* from the moment it is appended until it is committed; only then is it visible. One that is part of a
transaction is pending until the transaction ends (`pending`). Offsets expire
(`offsets.retention`) 7 days after their group became empty; offsets of a simple consumer, which has no group, 7 days
after their own commit; those of a topic that a living consumer group no longer subscribes to, likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.classic.state import generation_problem
from dataplane.groups.pending import Held, Pending, PendingTransactions, Transaction
from dataplane.protocol.codec import decode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from dataplane.protocol.primitives import DecodeError
from quota.contracts.namespace import KEY_LENGTH, split_physical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.protocol.messages.group_records import OffsetCommitValue
    from dataplane.records.steps import Steps

TopicPartition = tuple[str, int]
CONSUMER = "consumer"
END_OF_LOG = 2**63 - 1
"""The place of what is read from a log: behind everything that was read before."""
OFFSETS_PER_PAUSE = 200
"""Looking whether one has expired costs half a microsecond."""
SETTLED_PER_PAUSE = 64


class GroupOffsets:
    """Committed and pending offsets of one group."""

    __slots__ = ("committed", "pending", "transactions")

    def __init__(self, held: Held | None = None) -> None:
        self.committed: dict[TopicPartition, OffsetCommitValue] = {}
        self.pending: dict[TopicPartition, int] = {}  # how many ordinary commits of it are on their way
        self.transactions = PendingTransactions(held)

    def apply(self, key: TopicPartition, value: OffsetCommitValue | None, position: int = END_OF_LOG) -> None:
        """What the log says at a place outside of transactions, in service and at load."""
        if value is None:
            self.committed.pop(key, None)
        else:
            self.committed[key] = value
        if key in self.transactions:
            passed = self.transactions.forget if value is None else self.transactions.overtake
            passed(key, position)

    def apply_in_transaction(
        self, producer_id: int, position: int, key: TopicPartition, value: OffsetCommitValue | None
    ) -> None:
        """What the log says there in a producer's transaction: commits, as nobody removes an offset in one."""
        if value is not None:
            self.transactions.add(producer_id, key, Pending(position, value))

    def settle(self, closed: Transaction, *, committed: bool) -> Steps[None]:
        """A transaction has ended: its offsets become visible, or are forgotten."""
        for number, (key, pending) in enumerate(self.transactions.settle(closed), 1):
            if committed and pending.value is not None:
                self.apply(key, pending.value, pending.position)
            if number % SETTLED_PER_PAUSE == 0:
                yield None

    def begin(self, keys: Iterable[TopicPartition]) -> None:
        """Commits were appended."""
        for key in keys:
            self.pending[key] = self.pending.get(key, 0) + 1

    def finish(self, keys: Iterable[TopicPartition]) -> None:
        """They are committed, or failed."""
        for key in keys:
            self.pending[key] -= 1
            if not self.pending[key]:
                del self.pending[key]

    def is_unstable(self, key: TopicPartition) -> bool:
        """Whether a commit of it is pending."""
        return key in self.pending or key in self.transactions

    def is_settled(self) -> bool:
        """Nothing is pending."""
        return not self.pending and not self.transactions

    def is_empty(self) -> bool:
        """Nothing committed and nothing pending."""
        return not self.committed and self.is_settled()

    def count(self) -> int:
        """How many there are at most: one may be committed and pending again."""
        return len(self.committed) + len(self.pending) + len(self.transactions)

    def has(self, key: TopicPartition) -> bool:
        """Committed or pending."""
        return key in self.committed or self.is_unstable(key)

    def all_keys(self) -> list[TopicPartition]:
        """Committed or pending, in order of first commit."""
        return list(dict.fromkeys([*self.committed, *self.pending, *self.transactions.keys()]))


_COMMIT_ANSWERS = {
    GroupState.EMPTY: ErrorCode.NONE,
    GroupState.PREPARING: ErrorCode.NONE,  # a member commits before it joins again; its heartbeat tells it to
    GroupState.COMPLETING: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def transactional_commit_problem(group: Group, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
    """Why a commit within a transaction is refused: as others are (KIP-447), but for two things.

    Old versions say nothing of a member and are believed. And who began its transaction as a member of this generation may
    end it while the others wait for their assignment.
    """
    says_nothing = generation < 0 and not member_id and instance_id is None
    if group.state is not GroupState.DEAD and (says_nothing or (generation < 0 and group.state is GroupState.EMPTY)):
        return ErrorCode.NONE
    return generation_problem(group, member_id, instance_id, generation)


def commit_problem(group: Group, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
    """Why a commit is refused. A simple consumer (generation -1) may commit while the group has no members."""
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation < 0 and not member_id and instance_id is None and group.state is not GroupState.DEAD:
        return ErrorCode.UNKNOWN_MEMBER_ID  # only members commit while there are any
    error = generation_problem(group, member_id, instance_id, generation)
    return error if error != ErrorCode.NONE else _COMMIT_ANSWERS[group.state]


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Physical topics that the members of a consumer group subscribe to; None where that cannot be known.

    Subscriptions are the consumers' own bytes, in which topics have the tenant's names; the group's name says whose.
    """
    if group.protocol_type != CONSUMER or (group.members and group.protocol is None):
        return None
    prefix = group.group_id[: KEY_LENGTH + 1] if split_physical(group.group_id) else ""
    topics: list[str] = []
    for member in group.members.values():
        try:
            topics += _subscription_topics(member.metadata(group.protocol))
        except (DecodeError, ValueError):
            return None
    return frozenset(prefix + topic for topic in topics)


def _subscription_topics(metadata: bytes) -> tuple[str, ...]:
    """Every version begins with the topics, so a newer one is read as the newest that we know."""
    version = max(0, min(int.from_bytes(metadata[:2], signed=True), 3))
    return decode(ConsumerProtocolSubscription, version, metadata, 2).topics


def expired(
    group: Group, offsets: GroupOffsets, now_ms: int, retention_ms: int, subscribed: frozenset[str] = frozenset()
) -> Steps[dict[TopicPartition, object]]:
    """Committed offsets whose time is over, each with the value that is, in steps: a group may have very many.

    `subscribed` are the topics of a group of the consumer protocol, whose offsets stay; its others expire by their own commit.
    """
    empty_since_ms = -1
    kept: frozenset[str] | None = subscribed
    if group.protocol_type is not None and group.state is GroupState.EMPTY:
        empty_since_ms = group.state_since_ms
    elif group.protocol_type == CONSUMER and group.state is GroupState.STABLE:
        kept = subscribed_topics(group)
    elif group.protocol_type is not None:
        kept = None
    if kept is None:
        return {}
    gone: dict[TopicPartition, object] = {}
    for number, (key, value) in enumerate(list(offsets.committed.items()), 1):
        if (
            key[0] not in kept
            and not offsets.is_unstable(key)
            and _is_over(value, now_ms, empty_since_ms, retention_ms)
        ):
            gone[key] = value
        if number % OFFSETS_PER_PAUSE == 0:
            yield None
    return gone


def _is_over(value: OffsetCommitValue, now_ms: int, empty_since_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp >= 0:
        return now_ms >= value.expire_timestamp
    since_ms = empty_since_ms if empty_since_ms >= 0 else value.commit_timestamp
    return now_ms - since_ms >= retention_ms
