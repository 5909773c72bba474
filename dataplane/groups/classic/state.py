"""The state machine of a group: one pure function, `handle`, and `apply`, which replays what the log says.

`handle` proposes: it returns the group as it will be, records to store, answers, timers. What must not be believed
before it is committed (an assignment) changes nothing until `AssignmentStored` comes back, and then through `apply`,
which is also how a group is loaded: so what is served and what a successor will load cannot differ.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dataplane.coordination.effects import Store
from dataplane.groups.classic.events import (
    AssignmentStored,
    Effect,
    EmptyStored,
    Event,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinAgain,
    JoinExpired,
    Leave,
    LeaveResult,
    PendingExpired,
    SessionExpired,
    StaticStored,
    Sync,
    SyncExpired,
    SyncResult,
)
from dataplane.groups.classic.joining import on_join, on_static_stored
from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import Group, GroupState, durable_value
from dataplane.groups.classic.rebalance import (
    SYNC_TIMER,
    Draft,
    answer_syncs,
    forget_pending,
    join_time_is_over,
    maybe_prepare,
    refuse_syncs,
    remove,
    remove_all,
    session_of,
    try_complete,
)
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.groups.settings import GroupSettings
    from dataplane.protocol.messages.group_records import GroupMetadataValue, MemberMetadata

S = GroupState


def handle(group: Group, event: Event, settings: GroupSettings, now_ms: int) -> tuple[Group, list[Effect]]:
    """The group after an event, and what must follow, in order."""
    draft = Draft(group, settings, now_ms)
    _HANDLERS[type(event)](draft, event)
    return draft.group, draft.effects


def apply(group: Group, value: GroupMetadataValue) -> Group:
    """What the log says of a group. Members that are as it says keep what is not durable: all that they offer."""
    members = group.members
    found = [_member(members.get(m.member_id), m, value.protocol) for m in value.members]
    if len(found) != len(members) or any(one is not other for one, other in zip(found, members.values(), strict=True)):
        members = Members.of(found)
    return replace(
        group,
        state=S.STABLE if members else S.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
        members=members,
        assignments={m.member_id: m.assignment for m in value.members},
        state_since_ms=value.current_state_timestamp,
        storing=False,
    )


def _member(known: Member | None, value: MemberMetadata, protocol: str | None) -> Member:
    if known is not None and _is_as_written(known, value, protocol):
        return known
    return Member(
        value.member_id,
        value.group_instance_id,
        value.client_id,
        value.client_host,
        value.rebalance_timeout if value.rebalance_timeout >= 0 else value.session_timeout,
        value.session_timeout,
        ((protocol or "", value.subscription),),
    )


def _is_as_written(known: Member, value: MemberMetadata, protocol: str | None) -> bool:
    return (
        known.metadata(protocol) == value.subscription
        and known.session_timeout_ms == value.session_timeout
        and known.rebalance_timeout_ms == value.rebalance_timeout
        and known.instance_id == value.group_instance_id
        and (known.client_id, known.client_host) == (value.client_id, value.client_host)
    )


# --- SyncGroup --------------------------------------------------------------------------------------------------------

_SYNC_REFUSED = {
    S.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    S.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    S.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def _on_sync(draft: Draft, ask: Sync) -> None:
    error = _sync_problem(draft.group, ask)
    if error != ErrorCode.NONE:
        draft.reply(ask.token, SyncResult(error))
        return
    member = draft.group.members[ask.member_id]
    if draft.group.state is S.STABLE:
        draft.group = replace(draft.group, synced=draft.group.synced.put(ask.member_id, None))
        draft.reply(ask.token, _assigned(draft.group, ask.member_id))
        draft.heard_of(member)
    else:
        _park_sync(draft, ask)
    if draft.group.all_synced():
        draft.cancel_timer(SYNC_TIMER)


def _sync_problem(group: Group, ask: Sync) -> ErrorCode:
    if group.state is S.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.member_problem(ask.member_id, ask.instance_id)
    if error != ErrorCode.NONE:
        return error
    if ask.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if ask.protocol_type not in (None, group.protocol_type) or ask.protocol not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return _SYNC_REFUSED.get(group.state, ErrorCode.NONE)


def _park_sync(draft: Draft, ask: Sync) -> None:
    group, member_id = draft.group, ask.member_id
    if member_id in group.syncing:  # a repeated request
        draft.reply(group.syncing[member_id], SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    group = replace(group, syncing=group.syncing.put(member_id, ask.token), synced=group.synced.put(member_id, None))
    draft.group = group
    draft.waits(group.members[member_id])
    if member_id == group.leader and not group.storing:
        draft.group = replace(group, storing=True)
        value = _assignment_value(group, ask, draft.now_ms)
        draft.effects.append(Store(value, AssignmentStored(value)))


def _assignment_value(group: Group, ask: Sync, now_ms: int) -> GroupMetadataValue:
    return durable_value(replace(group, assignments=ask.assignments, state_since_ms=now_ms))


def _on_assignment_stored(draft: Draft, stored: AssignmentStored) -> None:
    group = draft.group
    if group.state is not S.COMPLETING or group.generation != stored.value.generation:
        return  # the group has gone on
    if stored.error != ErrorCode.NONE:
        refuse_syncs(draft, stored.error)
        maybe_prepare(draft)
        return
    draft.enter(S.STABLE)
    draft.group = apply(draft.group, stored.value)
    answer_syncs(draft, partial(_assigned, draft.group))


def _assigned(group: Group, member_id: str) -> SyncResult:
    return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol, group.assignment(member_id))


# --- Heartbeat --------------------------------------------------------------------------------------------------------

HEARTBEAT_ANSWERS = {
    S.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    S.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    S.COMPLETING: ErrorCode.NONE,  # a member may heartbeat between its JoinGroup and its SyncGroup
    S.STABLE: ErrorCode.NONE,
    S.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""What a member of the right generation is told."""


def generation_problem(group: Group, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Why somebody may not speak for a member in the current generation."""
    if group.state is S.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.member_problem(member_id, instance_id)
    if error == ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _on_heartbeat(draft: Draft, ask: Heartbeat) -> None:
    error = generation_problem(draft.group, ask.member_id, ask.instance_id, ask.generation)
    if error == ErrorCode.NONE:
        draft.heard_of(draft.group.members[ask.member_id])
        error = HEARTBEAT_ANSWERS[draft.group.state]
    draft.reply(ask.token, HeartbeatResult(error))


# --- LeaveGroup and time ----------------------------------------------------------------------------------------------


def _on_leave(draft: Draft, ask: Leave) -> None:
    if draft.group.state is S.DEAD:
        draft.reply(ask.token, LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    left = tuple((member, instance, _leave(draft, member, instance)) for member, instance in ask.members)
    draft.reply(ask.token, LeaveResult(ErrorCode.NONE, left))


def _leave(draft: Draft, member_id: str, instance_id: str | None) -> ErrorCode:
    group = draft.group
    if not member_id:  # an administrator removes a static member
        holder = group.static_member(instance_id) if instance_id is not None else None
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        remove(draft, holder)
        return ErrorCode.NONE
    if member_id in group.pending:
        _on_pending_expired(draft, PendingExpired(member_id))
        return ErrorCode.NONE
    error = group.member_problem(member_id, instance_id)
    if error == ErrorCode.NONE:
        remove(draft, group.members[member_id])
    return error


def _on_pending_expired(draft: Draft, event: PendingExpired) -> None:
    forget_pending(draft, event.member_id)
    try_complete(draft)


def _on_session_expired(draft: Draft, event: SessionExpired) -> None:
    member = draft.group.members.get(event.member_id)
    if member is not None and (draft.group.is_new(member) or not draft.group.waits(event.member_id)):
        remove(draft, member)


def _on_join_expired(draft: Draft, event: JoinExpired) -> None:
    del event
    if draft.group.state is S.PREPARING:
        join_time_is_over(draft)


def _on_sync_expired(draft: Draft, event: SyncExpired) -> None:
    """Those who never asked for their assignment are not there any more."""
    group = draft.group
    if group.generation == event.generation and group.state in (S.COMPLETING, S.STABLE):
        remove_all(draft, [m for m in group.members.values() if m.member_id not in group.synced])


def _on_join_again(draft: Draft, event: JoinAgain) -> None:
    """Everybody is believed to be alive."""
    del event
    group = draft.group
    if group.state is S.STABLE and group.leader is None:
        draft.gradually(lambda: (session_of(member) for member in group.members.values()))
        maybe_prepare(draft)


def _on_empty_stored(draft: Draft, event: EmptyStored) -> None:
    """Nobody waits for it. Had it failed, a successor would load members whose sessions then end."""
    del draft, event


_HANDLERS: dict[type, Callable[[Draft, Any], None]] = {
    Join: on_join,
    Sync: _on_sync,
    Heartbeat: _on_heartbeat,
    Leave: _on_leave,
    SessionExpired: _on_session_expired,
    PendingExpired: _on_pending_expired,
    JoinExpired: _on_join_expired,
    SyncExpired: _on_sync_expired,
    JoinAgain: _on_join_again,
    AssignmentStored: _on_assignment_stored,
    EmptyStored: _on_empty_stored,
    StaticStored: on_static_stored,
}
