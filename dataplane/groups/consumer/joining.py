"""ConsumerGroupHeartbeat: who may speak for a member, and what a heartbeat says of it.

epoch 0    joins: a new member; one that was fenced and begins anew; a static one in the place of its predecessor, which has gone
above 0    a member of this epoch; of the one before, if the answer with the new epoch was lost
-1, -2     leaves for good; leaves, and will be back before its session ends (static members only)

A member's id is the client's own (version 1), so a client that repeats a join of which it had no answer is the same member.
(Kafka refuses a static one then, with UNRELEASED_INSTANCE_ID; but it cannot be another process.)

The first of its protocol in a live group of the classic one brings that group along (`inherits`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer
from dataplane.groups.consumer.draft import revocation_timer
from dataplane.groups.consumer.events import HeartbeatResult
from dataplane.groups.consumer.ledger import apply
from dataplane.groups.consumer.model import AWAY_EPOCH, Member, MemberState
from dataplane.groups.consumer.reconciliation import is_within
from dataplane.groups.consumer.records import (
    current_record,
    end_of_member,
    member_record,
    pattern_record,
    target_record,
)
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.consumer.draft import Draft
    from dataplane.groups.consumer.events import Heartbeat
    from dataplane.groups.consumer.model import Group

Problem = tuple[ErrorCode, str]


def on_heartbeat(draft: Draft, ask: Heartbeat) -> None:
    """See the file's text."""
    group = draft.ledger.group()
    inherits = ask.inherits if not group.epoch and not group.members else ()  # else an earlier one has
    if inherits:
        group = apply(group, inherits)
    problem = _problem(draft, group, ask)
    if problem is not None:
        draft.refuse(ask, *problem)
        return
    draft.propose(*inherits)
    if ask.leaves:
        _leave(draft, ask, group.members[ask.member_id])
    else:
        member = _joining(draft, group, ask) if ask.joins else group.members[ask.member_id]
        _hear(draft, ask, member)
        draft.heard_of(draft.ledger.members[ask.member_id])
        draft.visit(ask, partial(_step, draft, ask))


# --- who may speak ----------------------------------------------------------------------------------------------------


def _problem(draft: Draft, group: Group, ask: Heartbeat) -> Problem | None:
    if group.dying:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group is being deleted"
    if ask.joins:
        return _joining_problem(draft, group, ask)
    if not group.epoch:
        return ErrorCode.GROUP_ID_NOT_FOUND, "there is no such group"
    error = identity_problem(group, ask.member_id, ask.instance_id)
    if error != ErrorCode.NONE:
        return (
            error,
            "the member is not in the group" if error == ErrorCode.UNKNOWN_MEMBER_ID else "another has its place",
        )
    member = group.members[ask.member_id]
    if member.classic is not None:
        return ErrorCode.UNKNOWN_MEMBER_ID, "the member speaks the classic protocol"
    if ask.leaves:
        return None
    if ask.epoch == member.epoch:
        return None
    if ask.epoch == member.previous_epoch and is_within(ask.owned, member.assigned):
        return None  # the answer with the new epoch was lost
    return (
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member's epoch is {member.epoch}: it gives up everything and joins again",
    )


def identity_problem(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID where another process has taken the instance id over."""
    member = group.members.get(member_id)
    if member is not None and instance_id in (None, member.instance_id):
        return ErrorCode.NONE
    if instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_held = group.static_member(instance_id) is not None
    return ErrorCode.FENCED_INSTANCE_ID if is_held else ErrorCode.UNKNOWN_MEMBER_ID


def _joining_problem(draft: Draft, group: Group, ask: Heartbeat) -> Problem | None:
    holder = None if ask.instance_id is None else group.static_member(ask.instance_id)
    is_held = holder is not None and holder.member_id != ask.member_id and holder.epoch != AWAY_EPOCH
    if is_held and holder is not None and holder.classic is None:  # as in the classic protocol who comes later has it
        return ErrorCode.UNRELEASED_INSTANCE_ID, "a member of this instance id has not left"
    if holder is None and ask.member_id not in group.members and len(group.members) >= draft.around.rules.max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED, "the group has as many members as it may have"
    return None


# --- coming in --------------------------------------------------------------------------------------------------------


def _joining(draft: Draft, group: Group, ask: Heartbeat) -> Member | None:
    """The member as it was before; None: a new one."""
    holder = None if ask.instance_id is None else group.static_member(ask.instance_id)
    if holder is not None and holder.member_id != ask.member_id:
        return take_over(draft, group, holder, ask.member_id)
    member = group.members.get(ask.member_id)
    if member is not None and member.epoch == AWAY_EPOCH:
        draft.propose(current_record(replace(member, epoch=0, previous_epoch=0)))
        return draft.ledger.members[ask.member_id]
    if member is not None and member.classic is not None:  # it changes its protocol, and keeps its id
        draft.forget_timers(member)
    return member


def take_over(draft: Draft, group: Group, holder: Member, member_id: str) -> Member:
    """A restarted process takes its predecessor's place, with what that was assigned: nobody else notices."""
    draft.propose(*end_of_member(holder.member_id))
    draft.forget_timers(holder)
    member = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
    draft.propose(member_record(member), target_record(member_id, group.targets.get(holder.member_id, {})))
    draft.propose(current_record(member))
    return member


def _hear(draft: Draft, ask: Heartbeat, before: Member | None) -> None:
    """What the member says of itself, where it says anything new."""
    known = before or Member(ask.member_id)
    after = replace(
        known,
        instance_id=_said(ask.instance_id, known.instance_id),
        rack_id=_said(ask.rack_id, known.rack_id),
        client_id=ask.client_id,
        client_host=ask.client_host,
        topics=known.topics if ask.topics is None else tuple(sorted(set(ask.topics))),
        pattern=known.pattern if ask.pattern is None else ask.pattern or None,
        rebalance_timeout_ms=known.rebalance_timeout_ms if ask.rebalance_timeout_ms < 0 else ask.rebalance_timeout_ms,
        assignor=_said(ask.assignor, known.assignor),
        classic=None,
    )
    changed(draft, before, after)
    if ask.matched is not None and after.pattern:
        matched = draft.ledger.group().matched.get(after.pattern)
        if matched is None or matched.topics != ask.matched.topics:
            draft.propose(pattern_record(after.pattern, ask.matched))
            draft.begin_epoch()


def changed(draft: Draft, before: Member | None, after: Member) -> None:
    """What a member says of itself is proposed where it is new. `before`: None of a new member."""
    if before is None or after != before:
        draft.propose(member_record(after))
    if before is None or (after.topics, after.pattern) != (before.topics, before.pattern):
        draft.end_pattern(None if before is None else before.pattern)
        draft.begin_epoch()


def _said(new: str | None, known: str | None) -> str | None:
    return known if new is None else new


def _step(draft: Draft, ask: Heartbeat) -> None:
    member = draft.ledger.members.get(ask.member_id)
    if member is None:  # it left behind this heartbeat
        draft.refuse(ask, ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        return
    after = draft.advance(member, {} if ask.joins else ask.owned)
    before = draft.before.members.get(ask.member_id)
    is_told = ask.joins or ask.says_all or before is None or before.assigned != after.assigned
    assignment = after.assigned if is_told else None
    draft.answer(ask.token, HeartbeatResult(ErrorCode.NONE, after.member_id, after.epoch, assignment))


# --- leaving ----------------------------------------------------------------------------------------------------------


def _leave(draft: Draft, ask: Heartbeat, member: Member) -> None:
    """For good; or, static, for a while: what it has is kept for it until its session ends."""
    if ask.epoch == AWAY_EPOCH and member.instance_id is not None:
        draft.propose(current_record(replace(member, epoch=AWAY_EPOCH, state=MemberState.STABLE, revoking={})))
        draft.timers.append(CancelTimer(revocation_timer(member.member_id)))
    else:
        draft.remove(member)
    draft.answer(ask.token, HeartbeatResult(ErrorCode.NONE, member.member_id, ask.epoch))
