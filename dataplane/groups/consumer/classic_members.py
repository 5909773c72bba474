"""Members of the classic protocol in a group of the consumer protocol: what their requests are to it.

    JoinGroup   a step of its reconciliation, answered at once: the generation is its member epoch, and nobody is the leader
    SyncGroup   what it is assigned, in the consumers' own words
    Heartbeat   REBALANCE_IN_PROGRESS where joining again would bring it further: then it says what it still has
    LeaveGroup  as there

With the eager strategies a member gives everything up before it joins again; with the cooperative one it says what it
keeps, is first assigned less, and joins once more when it has given up the rest. Either is `reconciliation`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer
from dataplane.groups.classic.events import HeartbeatResult, Join, JoinResult, LeaveResult, SyncResult
from dataplane.groups.classic.joining import MAX_PROTOCOLS
from dataplane.groups.consumer.draft import rejoin_of, rejoin_timer, sync_of, sync_timer
from dataplane.groups.consumer.embedded import (
    PROTOCOL_TYPE,
    STREAMS,
    prefix_of,
    read_subscription,
    that_exist,
    write_assignment,
)
from dataplane.groups.consumer.joining import changed, identity_problem, take_over
from dataplane.groups.consumer.model import Classic, Member, MemberState
from dataplane.groups.consumer.reconciliation import split
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.classic.events import Heartbeat, Leave, Sync
    from dataplane.groups.consumer.draft import Draft
    from dataplane.groups.consumer.embedded import Subscription
    from dataplane.groups.consumer.model import Group

MAX_MEMBER_ID = 300
"""An id that a coordinator has given is not longer."""


# --- JoinGroup --------------------------------------------------------------------------------------------------------


def on_join(draft: Draft, ask: Join) -> None:
    """See the file's text. Who brings an id that is not known was given it by this coordinator or one before."""
    group = draft.ledger.group()
    said = read_subscription(ask.protocols[0][1], prefix_of(group.group_id)) if ask.protocols else None
    error = _joining_problem(draft, group, ask)
    if error != ErrorCode.NONE or said is None:
        draft.refuse(ask, error or ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    if not ask.member_id and ask.needs_known_id:
        draft.answer(ask.token, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, ask.new_member_id))
        return
    ask = replace(ask, member_id=ask.member_id or ask.new_member_id)
    holder = None if ask.instance_id is None else group.static_member(ask.instance_id)
    if holder is not None and holder.member_id != ask.member_id:
        before: Member | None = take_over(draft, group, holder, ask.member_id)
    else:
        before = group.members.get(ask.member_id)
    _hear(draft, ask, said, before)
    draft.may_be_left()
    draft.visit(ask, partial(_join_step, draft, ask, said))


def _joining_problem(draft: Draft, group: Group, ask: Join) -> ErrorCode:
    if group.dying or not group.epoch:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not _speaks_with_others(group, ask):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    holder = None if ask.instance_id is None else group.static_member(ask.instance_id)
    if ask.member_id and ask.instance_id is not None and (holder is None or holder.member_id != ask.member_id):
        return ErrorCode.UNKNOWN_MEMBER_ID if holder is None else ErrorCode.FENCED_INSTANCE_ID
    member = group.members.get(ask.member_id)
    if len(ask.member_id) > MAX_MEMBER_ID or (member is not None and member.classic is None):
        return ErrorCode.UNKNOWN_MEMBER_ID
    if holder is None and member is None and len(group.members) >= draft.around.rules.max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE


def _speaks_with_others(group: Group, ask: Join) -> bool:
    """Whether the members of the classic protocol have one in common: they would need it if they had the group to themselves.

    Nearly all offer the same, so that is looked at and not the members.
    """
    if ask.protocol_type != PROTOCOL_TYPE or not 0 < len(ask.protocols) <= MAX_PROTOCOLS:
        return False
    common = {name for name, _ in ask.protocols}
    if STREAMS in common:
        return False
    member = group.members.get(ask.member_id)
    own = None if member is None or member.classic is None else member.classic.offers
    for offers, number in group.offers.items():
        if offers != own or number > 1:
            common.intersection_update(offers)
    return bool(common)


def _hear(draft: Draft, ask: Join, said: Subscription, before: Member | None) -> None:
    known = before or Member(ask.member_id)
    after = replace(
        known,
        instance_id=ask.instance_id or known.instance_id,
        rack_id=said.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        topics=said.topics,
        pattern=None,
        rebalance_timeout_ms=ask.rebalance_timeout_ms,
        classic=Classic(ask.session_timeout_ms, ask.protocols),
    )
    changed(draft, before, after)


def _join_step(draft: Draft, ask: Join, said: Subscription) -> None:
    member = draft.ledger.members.get(ask.member_id)
    if member is None or member.classic is None:  # it left behind this request
        draft.refuse(ask, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    after = draft.advance(member, that_exist(said.owned, draft.around.find_topic))
    draft.heard_of(after)
    draft.timers += [CancelTimer(rejoin_timer(after.member_id)), sync_of(after)]
    protocol = member.classic.protocol
    draft.answer(ask.token, JoinResult(ErrorCode.NONE, after.member_id, after.epoch, PROTOCOL_TYPE, protocol))


# --- SyncGroup and Heartbeat ------------------------------------------------------------------------------------------


def on_sync(draft: Draft, ask: Sync) -> None:
    """Answered with what the member has; what is new to it comes with its next JoinGroup."""
    draft.visit(ask, partial(_sync_step, draft, ask))


def _sync_step(draft: Draft, ask: Sync) -> None:
    group = draft.ledger.group()
    error = _problem(group, ask)
    if error != ErrorCode.NONE:
        draft.refuse(ask, error)
        return
    member = group.members[ask.member_id]
    assert member.classic is not None
    name, metadata = member.classic.protocols[0]
    if ask.protocol_type not in (None, PROTOCOL_TYPE) or ask.protocol not in (None, name):
        draft.refuse(ask, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
        draft.timers.append(rejoin_of(member))
        draft.refuse(ask, ErrorCode.REBALANCE_IN_PROGRESS)
        return
    draft.heard_of(member)
    draft.timers.append(CancelTimer(sync_timer(member.member_id)))
    assignment = write_assignment(member.assigned, group.topics, prefix_of(group.group_id), metadata)
    draft.answer(ask.token, SyncResult(ErrorCode.NONE, PROTOCOL_TYPE, name, assignment))


def on_heartbeat(draft: Draft, ask: Heartbeat) -> None:
    """A member is alive, and learns whether it has to join again."""
    draft.visit(ask, partial(_heartbeat_step, draft, ask))


def _heartbeat_step(draft: Draft, ask: Heartbeat) -> None:
    group = draft.ledger.group()
    error = _problem(group, ask)
    if error == ErrorCode.NONE:
        member = group.members[ask.member_id]
        draft.heard_of(member)
        if _gets_further(draft, group, member):
            error = ErrorCode.REBALANCE_IN_PROGRESS
            draft.timers.append(rejoin_of(member))
    draft.answer(ask.token, HeartbeatResult(error))


def _gets_further(draft: Draft, group: Group, member: Member) -> bool:
    """By joining again: to a newer target, by saying what it has given up, or as all that it waits for is free now."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED:
        return True
    if member.state is MemberState.STABLE:
        return False
    lacks = split(group.targets.get(member.member_id, {}), member.assigned)[1]
    return all(draft.ledger.owner((topic, p)) is None for topic, some in lacks.items() for p in some)


def _problem(group: Group, ask: Sync | Heartbeat) -> ErrorCode:
    if group.dying:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = identity_problem(group, ask.member_id, ask.instance_id)
    if error != ErrorCode.NONE:
        return error
    member = group.members[ask.member_id]
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if ask.generation == member.epoch else ErrorCode.ILLEGAL_GENERATION


# --- LeaveGroup -------------------------------------------------------------------------------------------------------


def on_leave(draft: Draft, ask: Leave) -> None:
    """Of members of the classic protocol; by its instance id alone, as administrators ask, a static one of either."""
    if draft.ledger.group().dying:
        draft.refuse(ask, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return
    left = tuple((member_id, instance, _leave(draft, member_id, instance)) for member_id, instance in ask.members)
    draft.answer(ask.token, LeaveResult(ErrorCode.NONE, left))


def _leave(draft: Draft, member_id: str, instance_id: str | None) -> ErrorCode:
    group = draft.ledger.group()
    if not member_id:
        member = None if instance_id is None else group.static_member(instance_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    else:
        error = identity_problem(group, member_id, instance_id)
        if error != ErrorCode.NONE:
            return error
        member = group.members[member_id]
        if member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    draft.remove(member)
    return ErrorCode.NONE
