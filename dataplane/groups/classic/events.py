"""What happens to a group (events), what it answers (results), and what must then be done (effects).

    handle(group, event) -> (group afterwards, effects in order)

All are plain values, so a test is a list of events and the list of effects expected. Times are milliseconds.
The effects are those of every coordinator (`dataplane.coordination.effects`); here is what they carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer, Gradually, Reply, SetTimer, Store
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.groups.classic.members import Protocols
    from dataplane.protocol.messages.group_records import GroupMetadataValue

# --- events: requests -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    """JoinGroup. `new_member_id` is the id to give if the request comes without one."""

    member_id: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    needs_known_id: bool = False  # the client understands MEMBER_ID_REQUIRED
    can_skip_assignment: bool = False  # the client understands skip_assignment
    new_member_id: str = ""
    token: int = -1


@dataclass(frozen=True, slots=True)
class Sync:
    """SyncGroup. Only the leader's assignments count. Protocol type and name are None where the version has none."""

    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)
    token: int = -1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat."""

    generation: int
    member_id: str
    instance_id: str | None = None
    token: int = -1


@dataclass(frozen=True, slots=True)
class Leave:
    """LeaveGroup: (member id, instance id) of each member that leaves. An empty member id: the one with that instance id."""

    members: tuple[tuple[str, str | None], ...]
    token: int = -1


# --- events: timers and the log ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A member has not been heard of for its session timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class PendingExpired:
    """A member that was given an id never came back with it."""

    member_id: str


@dataclass(frozen=True, slots=True)
class JoinExpired:
    """The time to join again is over."""


@dataclass(frozen=True, slots=True)
class SyncExpired:
    """The time to ask for the assignment of a generation is over."""

    generation: int


@dataclass(frozen=True, slots=True)
class JoinAgain:
    """The group was one of the consumer protocol, and has no leader: everybody has to join again."""


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """The leader's assignment is committed, or failed to be."""

    value: GroupMetadataValue
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class EmptyStored:
    """That the group is empty is committed, or failed to be. Nothing follows: nobody waits for it."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class StaticStored:
    """A static member's new id is committed, or failed to be; its JoinGroup is answered now."""

    token: int
    member_id: str
    old_leader: str | None
    can_skip_assignment: bool
    error: ErrorCode = ErrorCode.NONE


Stored = AssignmentStored | EmptyStored | StaticStored
Request = Join | Sync | Heartbeat | Leave
Event = Request | SessionExpired | PendingExpired | JoinExpired | SyncExpired | JoinAgain | Stored

# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JoinResult:
    """Answer to JoinGroup. `members` (id, instance id, metadata) is for the leader only."""

    error: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Answer to SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """Answer to Heartbeat."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """Answer to LeaveGroup: an error for all, else (member id, instance id, error) of each."""

    error: ErrorCode
    members: tuple[tuple[str, str | None, ErrorCode], ...] = ()


Result = JoinResult | SyncResult | HeartbeatResult | LeaveResult

# --- effects ----------------------------------------------------------------------------------------------------------

OfOne = Reply[Result] | SetTimer[Event] | CancelTimer
"""What follows for one member."""
Effect = OfOne | Store["GroupMetadataValue", Stored] | Gradually[OfOne]
