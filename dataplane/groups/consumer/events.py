"""What happens to a group of the consumer protocol (events), what it answers (results), and what must then be done (effects).

    handle(group, event, around, now_ms) -> (group afterwards, effects in order)

The effects are those of every coordinator (`dataplane.coordination.effects`); here is what they carry. Members of the
classic protocol ask as in a group of theirs (`dataplane.groups.classic.events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.groups.classic import events as classic
from dataplane.groups.consumer.model import AWAY_EPOCH, JOINING_EPOCH
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.classic.members import Members
    from dataplane.groups.consumer.model import Assignment, Matched, Topic
    from dataplane.groups.consumer.records import Record
    from dataplane.groups.settings import ConsumerRules
    from dataplane.protocol.messages.group_records import GroupMetadataValue


class Around(NamedTuple):
    """What is known beside the group: the rules, and the cluster's topics with a number that grows when they change.

    `classic`: what the log shall say of the group of the classic protocol that goes on, where it could not become this one.
    """

    rules: ConsumerRules
    find_topic: Callable[[str], Topic | None]
    topics_version: int
    classic: GroupMetadataValue | None = None


# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """ConsumerGroupHeartbeat, also for joining (epoch 0) and leaving (-1, -2). None: as the member said before.

    `matched` is what the member's regular expression matches, where that was looked for on behalf of this request.
    `inherits`: the records that make this group of one of the classic protocol, where there is one and this member
    joins (`conversion`).
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    client_id: str = ""
    client_host: str = ""
    matched: Matched | None = None
    inherits: tuple[Record, ...] = ()
    token: int = -1

    @property
    def joins(self) -> bool:
        """For the first time, or again."""
        return self.epoch == JOINING_EPOCH

    @property
    def leaves(self) -> bool:
        """For good, or for a restart."""
        return AWAY_EPOCH <= self.epoch < JOINING_EPOCH

    @property
    def says_all(self) -> bool:
        """A client says everything anew when it does not know what has arrived; then it is told everything."""
        named = self.topics is not None or self.pattern is not None
        return self.rebalance_timeout_ms != -1 and named and self.owned is not None


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A member has not been heard of for the session timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationExpired:
    """A member has been asked to give partitions up in an epoch, and its rebalance timeout is over."""

    member_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class RejoinExpired:
    """A member of the classic protocol was told to join again, and its rebalance timeout is over."""

    member_id: str


@dataclass(frozen=True, slots=True)
class SyncExpired:
    """A member of the classic protocol has joined and not asked for its assignment, and its rebalance timeout is over."""

    member_id: str


@dataclass(frozen=True, slots=True)
class ClearUp:
    """Records failed that may be in the log all the same: it is time to write what holds instead."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Records are committed, or failed to be: what was proposed for these events. Then they are answered, and these timers run.

    `topics_version` is that of the topics they were made of. `members`: with these the group is one of the classic protocol
    now. `again`: what is to be handled after this; where there are members, requests that the other protocol has to answer.
    `in_doubt`: where there is an error, whether the log may have the records all the same.
    """

    records: tuple[Record, ...]
    events: tuple[Event, ...] = ()
    topics_version: int = -1
    replies: tuple[Reply[Result], ...] = ()
    timers: tuple[SetTimer[Event] | CancelTimer, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    members: Members | None = None
    again: tuple[Event, ...] = ()
    in_doubt: bool = True


Request = Heartbeat | classic.Join | classic.Sync | classic.Heartbeat | classic.Leave
Expired = SessionExpired | RevocationExpired | RejoinExpired | SyncExpired
Own = Heartbeat | Expired | ClearUp | Stored
"""Events that no group of the classic protocol has."""
Event = Request | Expired | ClearUp | Stored

# --- results and effects ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The answer. `assignment` is None where nothing is new in it."""

    error: ErrorCode
    member_id: str | None = None
    epoch: int = 0
    assignment: Assignment | None = None
    message: str | None = None


Result = HeartbeatResult | classic.Result
Effect = Reply[Result] | Store[tuple["Record", ...], Stored] | SetTimer[Event] | CancelTimer


def refused(ask: Request, error: ErrorCode, message: str | None = None) -> Reply[Result]:
    """The answer to a request of which nothing comes."""
    result: Result
    if isinstance(ask, Heartbeat):
        result = HeartbeatResult(error, message=message)
    elif isinstance(ask, classic.Join):
        result = classic.JoinResult(error, ask.member_id)
    elif isinstance(ask, classic.Sync):
        result = classic.SyncResult(error)
    elif isinstance(ask, classic.Heartbeat):
        result = classic.HeartbeatResult(error)
    else:
        result = classic.LeaveResult(error)
    return Reply(ask.token, result)
