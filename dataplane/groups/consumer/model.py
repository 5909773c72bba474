"""What a group of the consumer protocol is: a value, never changed in place.

The coordinator decides who reads what. The *group epoch* grows with every change of members, subscriptions or topics. For each
group epoch there is a *target* assignment, made by an assignor here on the broker. Each member comes to its own target by itself,
with its heartbeats: it is told what to give up, and gets what is new to it when nobody has it any more. So its *member epoch* is
the group epoch whose target it has reached, or is on its way to with nothing left to give up.

    STABLE      it has its target, or does not know of a newer one yet
    UNREVOKED   it has been told to give partitions up (`revoking`), and still has them
    UNRELEASED  it waits for partitions that others have not given up

Members of the classic protocol (`classic_members`) are served beside the others: a JoinGroup is such a member's step,
its generation is its member epoch, and it is told to join again where another would hear more with its heartbeat.

A partition is a member's from the moment it is assigned until the member says that it has given it up: `assigned` and `revoking`
of all members together never name one twice.

Everything is durable but what stands at the end of `Group`: what is on its way to the log, and who waits for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

Assignment = Mapping[UUID, tuple[int, ...]]
"""Partitions by topic id, in order. A topic without any is left out."""
Place = tuple[UUID, int]
"""One partition."""

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
AWAY_EPOCH = -2
"""Of a static member that will be back."""


class MemberState(IntEnum):
    """See the file's text. The numbers are Kafka's, in records."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2


class GroupState(Enum):
    """The names that ConsumerGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # there is no target for the group's epoch yet
    RECONCILING = "Reconciling"  # some member is on its way
    STABLE = "Stable"
    DEAD = "Dead"  # being removed


@dataclass(frozen=True, slots=True)
class Topic:
    """What an assignor needs to know of a topic."""

    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class Matched:
    """The topics that a regular expression matches, as of a time. Physical names, sorted."""

    topics: tuple[str, ...]
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class Classic:
    """What a member of the classic protocol said in its JoinGroup. `protocols`: (name, metadata), its favourite first."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]

    @property
    def protocol(self) -> str:
        """By which its coordinator speaks to it: whatever it likes best, as no other member need understand it."""
        return self.protocols[0][0]

    @property
    def offers(self) -> tuple[str, ...]:
        """The protocols' names."""
        return tuple(name for name, _ in self.protocols)


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer. `topics` are physical names, sorted; `pattern` is the tenant's own text, None where there is none.

    `classic`: of a member that speaks the classic protocol; None: it speaks the consumer protocol.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: Classic | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)

    def holds(self) -> Iterator[Place]:
        """Every partition that nobody else may have."""
        for assignment in (self.assigned, self.revoking):
            yield from places(assignment)


def places(assignment: Assignment) -> Iterator[Place]:
    """The partitions of an assignment, one by one."""
    for topic_id, partitions in assignment.items():
        for partition in partitions:
            yield topic_id, partition


@dataclass(frozen=True, slots=True)
class Group:
    """One group. `members` is in order of joining; no mapping is ever changed.

    `names` and `patterns` count the members that subscribe to a topic, or by a regular expression, `offers` those of the classic
    protocol by the names of the protocols that they offer; `owners` says who has a partition, or has still to give it up. All of
    it follows from the members, and is known without a look at every one.
    """

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    topics: Mapping[str, Topic] = field(default_factory=dict)  # that are subscribed to, and exist
    matched: Mapping[str, Matched] = field(default_factory=dict)  # by regular expression
    members: Mapping[str, Member] = field(default_factory=dict)
    targets: Mapping[str, Assignment] = field(default_factory=dict)  # by member
    names: Mapping[str, int] = field(default_factory=dict)
    patterns: Mapping[str, int] = field(default_factory=dict)
    offers: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    owners: Mapping[UUID, Mapping[int, str]] = field(default_factory=dict)  # of each partition, by topic
    seen_topics: int = -1  # the version of the cluster's topics that `topics` were last compared with
    storing: bool = False  # records are on their way to the log
    waiting: tuple[Any, ...] = ()  # events that would write, and have to wait for that
    doubtful: tuple[tuple[int, str], ...] = ()  # records that failed and may be in the log all the same
    outgrown: int = (
        0  # with so many members it did not fit into one batch as a group of the classic protocol; 0: not tried
    )
    dying: bool = False  # its tombstones are on their way

    @property
    def is_empty(self) -> bool:
        """It has no members, and none on the way, nor one that the log may know of."""
        return not (self.members or self.storing or self.waiting or self.doubtful)

    def is_blank(self) -> bool:
        """As if it did not exist."""
        return self.epoch == 0 and self.is_empty

    def state(self) -> GroupState:
        """Looks at the members until one is on its way."""
        if self.dying:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        for member in self.members.values():
            if member.state is not MemberState.STABLE or member.epoch != self.target_epoch:
                return GroupState.RECONCILING
        return GroupState.STABLE

    def static_member(self, instance_id: str) -> Member | None:
        """Who holds an instance id."""
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def subscribed(self) -> list[str]:
        """Physical names of all topics that members subscribe to, sorted, whether they exist or not."""
        names = dict.fromkeys(self.names)
        for pattern in self.patterns:
            matched = self.matched.get(pattern)
            if matched is not None:
                names.update(dict.fromkeys(matched.topics))
        return sorted(names)

    def topics_of(self, member: Member) -> tuple[str, ...]:
        """What one member subscribes to, by name and by regular expression."""
        matched = self.matched.get(member.pattern) if member.pattern else None
        return member.topics if matched is None else tuple(sorted({*member.topics, *matched.topics}))
