"""What a group of the classic protocol is: a value, never changed in place.

A *member* is one consumer process; it has a member id that the coordinator gave it, and, if *static*, an instance id
that survives a restart. A *generation* is one agreement on who the members are. In each generation one member is the
*leader*: it alone sees all subscriptions and computes everybody's assignment. A *pending* member has been given
an id and has not come back with it yet. A *token* stands for a request that waits for its answer.

Only part of a group is durable (`durable_value`): members, assignments, generation, as of the last completed rebalance.
The rest (which members wait, which are new) dies with the coordinator, and members rejoin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping


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

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) of the assignment strategies that a member offers, its favourite first."""


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer in a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: int | None = None  # token of a JoinGroup that is parked
    awaiting_sync: int | None = None  # token of a SyncGroup that is parked
    is_new: bool = False  # it has never had an answer, so it cannot heartbeat yet
    needs_sync: bool = False  # of this generation
    offers: tuple[str, ...] = field(init=False)  # the protocols' names: every join looks at those of all members

    def __post_init__(self) -> None:
        object.__setattr__(self, "offers", tuple(name for name, _ in self.protocols))

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for a protocol; nothing if it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    @property
    def waits(self) -> bool:
        """A request of this member is parked here: that is sign of life enough."""
        return self.awaiting_join is not None or self.awaiting_sync is not None


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """The first rebalance of a group waits, so that members that start together meet in one generation."""

    remaining_ms: int
    joined: bool = False  # somebody came during the current wait


@dataclass(frozen=True, slots=True)
class Group:
    """One group. `members` is in order of joining and is copied, never changed."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    state_since_ms: int = -1
    initial: InitialDelay | None = None
    storing: bool = False  # this generation's assignment is on its way to the log

    def static_member(self, instance_id: str) -> Member | None:
        """Who holds an instance id now."""
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def all_joined(self) -> bool:
        """Whether a rebalance has nobody left to wait for."""
        return not self.pending and all(m.awaiting_join is not None for m in self.members.values())

    def rebalance_timeout_ms(self) -> int:
        """The most patient member decides."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

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
        common = self._common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str | None:
        """Every member votes for its first protocol that all have; most votes win, then the first member's order."""
        common = self._common_protocols()
        votes = dict.fromkeys(common, 0)
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if name in votes)] += 1
        return max(votes, key=lambda name: votes[name]) if votes else None

    def _common_protocols(self) -> dict[str, None]:
        """In the first member's order."""
        distinct = list(dict.fromkeys([member.offers for member in self.members.values()]))  # mostly all say the same
        common = dict.fromkeys(distinct[0]) if distinct else {}
        for offers in distinct[1:]:
            names = frozenset(offers)
            common = {name: None for name in common if name in names}
        return common

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
        members=tuple(_member_value(member, group.protocol) for member in group.members.values()),
    )


def _member_value(member: Member, protocol: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=member.assignment,
    )
