"""What a group of the classic protocol is: a value, never changed in place.

A *member* is one consumer process; it has a member id that the coordinator gave it, and, if *static*, an instance id
that survives a restart. A *generation* is one agreement on who the members are. In each generation one member is the
*leader*: it alone sees all subscriptions and computes everybody's assignment. A *pending* member has been given
an id and has not come back with it yet. A *token* stands for a request that waits for its answer.

Only part of a group is durable (`durable_value`): members, assignments, generation, as of the last completed rebalance.
The rest (which members wait, which are new) dies with the coordinator, and members rejoin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dataplane.groups.classic.members import NOBODY, Member, Members, Protocols
from dataplane.groups.classic.sharing import SharedMap
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import GroupMetadataValue, MemberMetadata


class GroupState(Enum):
    """Where a group is. The values are the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"  # no members; it may hold offsets
    PREPARING = "PreparingRebalance"  # waiting for every member to join again
    COMPLETING = "CompletingRebalance"  # joined; waiting for the leader's assignment
    STABLE = "Stable"  # every member has, or may ask for, its assignment
    DEAD = "Dead"  # being removed: nothing may begin


FOLLOWS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING, GroupState.DEAD}),
    GroupState.PREPARING: frozenset({GroupState.COMPLETING, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING: frozenset({GroupState.STABLE, GroupState.PREPARING, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING, GroupState.DEAD}),
    GroupState.DEAD: frozenset({GroupState.EMPTY}),  # the removal could not be written
}
"""What may come after each state. A move that is not here is a bug."""

NONE_PENDING: SharedMap[None] = SharedMap()
Tokens = SharedMap[int]
"""Requests that wait, by member."""
NONE_PARKED: Tokens = SharedMap()
NONE_ASSIGNED: SharedMap[bytes] = SharedMap()


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """The first rebalance of a group waits, so that members that start together meet in one generation."""

    remaining_ms: int
    joined: bool = False  # somebody came during the current wait


@dataclass(frozen=True, slots=True)
class Group:
    """One group. `pending`: ids that were given.

    `joining` and `syncing` are the requests of members that are parked here: JoinGroup until the rebalance is complete, SyncGroup
    until the assignment is committed. `synced`: who of this generation has asked for its assignment.
    """

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: Members = field(default_factory=lambda: NOBODY)
    pending: SharedMap[None] = field(default_factory=lambda: NONE_PENDING)
    joining: Tokens = field(default_factory=lambda: NONE_PARKED)
    syncing: Tokens = field(default_factory=lambda: NONE_PARKED)
    synced: SharedMap[None] = field(default_factory=lambda: NONE_PENDING)
    assignments: Mapping[str, bytes] = field(default_factory=lambda: NONE_ASSIGNED)
    state_since_ms: int = -1
    initial: InitialDelay | None = None
    storing: bool = False  # this generation's assignment is on its way to the log

    def static_member(self, instance_id: str) -> Member | None:
        """Who holds an instance id now."""
        return self.members.holder(instance_id)

    def all_joined(self) -> bool:
        """Whether a rebalance has nobody left to wait for."""
        return not self.pending and len(self.joining) == len(self.members)

    def all_synced(self) -> bool:
        """Whether every member of this generation has asked for its assignment."""
        return len(self.synced) == len(self.members)

    def waits(self, member_id: str) -> bool:
        """A request of the member is parked here: that is sign of life enough."""
        return member_id in self.joining or member_id in self.syncing

    def is_new(self, member: Member) -> bool:
        """It has never had an answer, so it cannot heartbeat yet."""
        return member.since > self.generation

    def assignment(self, member_id: str) -> bytes:
        """What the leader gave it; members that the leader forgot get nothing."""
        return self.assignments.get(member_id, b"")

    def member_problem(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where a newer process has taken the instance id over."""
        member = self.members.get(member_id)
        if instance_id is None:
            return ErrorCode.NONE if member is not None else ErrorCode.UNKNOWN_MEMBER_ID
        if member is not None and member.instance_id == instance_id:
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID if self.static_member(instance_id) is None else ErrorCode.FENCED_INSTANCE_ID

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether somebody who offers these could take part: at least one protocol that everybody has."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        common = self.members.common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str | None:
        """Every member votes for its first protocol that all have; most votes win, then the first member's order."""
        votes = self.members.votes()
        return max(votes, key=lambda name: votes[name]) if votes else None

    def is_blank(self) -> bool:
        """Nothing was ever agreed and nobody is on the way: as if it did not exist (offsets aside)."""
        return self.state is GroupState.EMPTY and self.generation == 0 and not self.pending


def durable_value(group: Group) -> GroupMetadataValue:
    """What the log shall know of a group."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=tuple(_member_value(group, member) for member in group.members.values()),
    )


def _member_value(group: Group, member: Member) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(group.protocol),
        assignment=group.assignment(member.member_id),
    )
