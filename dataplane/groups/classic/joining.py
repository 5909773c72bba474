"""JoinGroup: the four ways to come into a group.

no id, dynamic   an id is made up; clients that can (v4+) are told to come back with it, so that a client which
                 retries its first request does not leave a dead member behind each time
no id, static    the instance id is new, or its holder is replaced (and fenced): a restart without a rebalance
a pending id     as the first line promised
a member's id    joins the rebalance, starts one, or is told again what was agreed
"""

from __future__ import annotations

from dataclasses import replace

from dataplane.coordination.effects import Store
from dataplane.groups.classic.events import (
    Join,
    JoinResult,
    PendingExpired,
    SessionExpired,
    StaticStored,
    SyncResult,
)
from dataplane.groups.classic.members import Member
from dataplane.groups.classic.model import Group, GroupState, InitialDelay, durable_value
from dataplane.groups.classic.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    Draft,
    forget_pending,
    joined,
    maybe_prepare,
    pending_timer,
    session_timer,
    subscriptions,
    try_complete,
)
from dataplane.protocol.errors import ErrorCode

MAX_PROTOCOLS = 100
"""Of a member. No client offers more than a handful, and every join looks at those of all members. Kafka has no limit."""


def on_join(draft: Draft, ask: Join) -> None:
    """JoinGroup."""
    error = _problem(draft, ask)
    if error != ErrorCode.NONE:
        _refuse(draft, ask, error)
        return
    if not ask.member_id:
        _new_member(draft, ask)
    elif ask.member_id in draft.group.pending:
        _add(draft, ask, ask.member_id)
    else:
        _known_member(draft, ask)
    try_complete(draft)


def _refuse(draft: Draft, ask: Join, error: ErrorCode) -> None:
    draft.reply(ask.token, JoinResult(error, ask.member_id))


def _problem(draft: Draft, ask: Join) -> ErrorCode:
    group = draft.group
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if _is_full(group, ask.member_id, draft.settings.group_max_size):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if len(ask.protocols) > MAX_PROTOCOLS or not group.supports(ask.protocol_type, ask.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _is_full(group: Group, member_id: str, max_size: int) -> bool:
    """In a rebalance the first to join are let in; otherwise its present members."""
    member = group.members.get(member_id)
    if len(group.members) < max_size:
        return False
    if group.state is GroupState.PREPARING:
        return len(group.joining) >= max_size and member_id not in group.joining
    return member is None


# --- without an id ----------------------------------------------------------------------------------------------------


def _new_member(draft: Draft, ask: Join) -> None:
    if ask.instance_id is not None:
        holder = draft.group.static_member(ask.instance_id)
        if holder is None:
            _add(draft, ask, ask.new_member_id)
        else:
            _replace_static(draft, ask, holder)
    elif ask.needs_known_id:
        if len(draft.group.pending) + len(draft.group.members) >= draft.settings.group_max_size:
            _refuse(draft, ask, ErrorCode.GROUP_MAX_SIZE_REACHED)  # ids that were given cost as much as members
            return
        draft.group = replace(draft.group, pending=draft.group.pending.put(ask.new_member_id, None))
        draft.set_timer(pending_timer(ask.new_member_id), ask.session_timeout_ms, PendingExpired(ask.new_member_id))
        draft.reply(ask.token, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, ask.new_member_id))
    else:
        _add(draft, ask, ask.new_member_id)


def _member_of(ask: Join, member_id: str) -> Member:
    return Member(
        member_id,
        ask.instance_id,
        ask.client_id,
        ask.client_host,
        ask.rebalance_timeout_ms,
        ask.session_timeout_ms,
        ask.protocols,
    )


def _add(draft: Draft, ask: Join, member_id: str) -> None:
    forget_pending(draft, member_id)
    group = draft.group
    if not group.members:
        group = replace(group, protocol_type=ask.protocol_type, leader=member_id)
    if group.initial is not None and group.generation == 0:
        group = replace(group, initial=InitialDelay(group.initial.remaining_ms, joined=True))
    draft.group = group
    draft.put(replace(_member_of(ask, member_id), since=group.generation + 1))
    _park(draft, ask, member_id)
    draft.set_timer(session_timer(member_id), NEW_MEMBER_JOIN_TIMEOUT_MS, SessionExpired(member_id))
    maybe_prepare(draft)


def _park(draft: Draft, ask: Join, member_id: str) -> None:
    draft.group = replace(draft.group, joining=draft.group.joining.put(member_id, ask.token))
    draft.waits(draft.group.members[member_id])


def _replace_static(draft: Draft, ask: Join, holder: Member) -> None:
    """A restarted process takes its place, assignment included. A process that still uses the old member id is fenced."""
    old_leader = draft.group.leader
    member = _take_over(draft, ask, holder)
    group = draft.group
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
        then = StaticStored(ask.token, member.member_id, old_leader, ask.can_skip_assignment)
        draft.effects.append(Store(durable_value(group), then))
        return
    _park(draft, ask, member.member_id)
    maybe_prepare(draft)


def _take_over(draft: Draft, ask: Join, holder: Member) -> Member:
    group, member = draft.group, _member_of(ask, ask.new_member_id)
    joining, syncing = group.joining.get(holder.member_id), group.syncing.get(holder.member_id)
    if joining is not None:
        draft.reply(joining, JoinResult(ErrorCode.FENCED_INSTANCE_ID, holder.member_id))
    if syncing is not None:
        draft.reply(syncing, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
    left = {holder.member_id}
    synced = group.synced.without_all(left)
    draft.group = replace(
        group,
        members=group.members.put_in_place_of(holder, member),
        leader=member.member_id if group.leader == holder.member_id else group.leader,
        joining=group.joining.without_all(left),
        syncing=group.syncing.without_all(left),
        synced=synced if synced is group.synced else synced.put(member.member_id, None),
        assignments={**group.assignments, member.member_id: group.assignment(holder.member_id)},
    )
    draft.cancel_timer(session_timer(holder.member_id))
    draft.heard_of(member)
    return member


def on_static_stored(draft: Draft, stored: StaticStored) -> None:
    """The new id is durable: its owner may know.

    A leader that came back must not compute an assignment nobody asked for: clients that can (v9+) are told to skip it,
    for others the answer still names the old leader, whom nobody is.
    """
    group = draft.group
    member = group.members.get(stored.member_id)
    if stored.error != ErrorCode.NONE or member is None:
        error = stored.error if member is not None else ErrorCode.UNKNOWN_MEMBER_ID
        draft.reply(stored.token, JoinResult(error, ""))
        return
    answer = joined(group, member, leader_sees_members=False)
    if not stored.can_skip_assignment:
        answer = replace(answer, leader=stored.old_leader or "")
    elif group.leader == member.member_id:
        answer = replace(answer, skip_assignment=True, members=subscriptions(group))
    draft.reply(stored.token, answer)


# --- with a member's id -----------------------------------------------------------------------------------------------


def _known_member(draft: Draft, ask: Join) -> None:
    group = draft.group
    error = group.member_problem(ask.member_id, ask.instance_id)
    if error != ErrorCode.NONE:
        _refuse(draft, ask, error)
        return
    member = group.members[ask.member_id]
    is_leader = group.leader == member.member_id
    knows_all = member.protocols == ask.protocols
    if group.state is GroupState.COMPLETING and knows_all:  # the answer was lost
        draft.reply(ask.token, joined(group, member))
    elif (
        group.state is GroupState.STABLE and knows_all and not is_leader
    ):  # a leader that joins again wants a rebalance
        draft.reply(ask.token, joined(group, member))
    else:
        _join_again(draft, ask, member)


def _join_again(draft: Draft, ask: Join, member: Member) -> None:
    before = draft.group.joining.get(member.member_id)
    if before is not None:  # a repeated request; the first one's connection must not stand still
        draft.reply(before, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
    draft.put(
        replace(
            member,
            protocols=ask.protocols,
            rebalance_timeout_ms=ask.rebalance_timeout_ms,
            session_timeout_ms=ask.session_timeout_ms,
        )
    )
    _park(draft, ask, member.member_id)
    maybe_prepare(draft)
