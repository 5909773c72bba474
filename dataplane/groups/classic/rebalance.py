"""The moves that every way into a rebalance shares: begin one, complete it, lose a member.

A `Draft` is one event's work in progress: the group as it will be, and the effects so far. It lives only inside
`state.handle`, which is a pure function.

    EMPTY --first join--> PREPARING --all joined, or time over--> COMPLETING --assignment committed--> STABLE
      ^------nobody joined----'  ^------------a member comes, goes, or changes its mind-----------------'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.groups.classic.events import (
    Effect,
    EmptyStored,
    Event,
    JoinExpired,
    JoinResult,
    Result,
    SessionExpired,
    SyncExpired,
    SyncResult,
)
from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import FOLLOWS, Group, GroupState, InitialDelay, durable_value
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.settings import GroupSettings

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A member in its first JoinGroup cannot heartbeat; this long its connection is believed to be alive."""

JOIN_TIMER = "join"
SYNC_TIMER = "sync"


def session_timer(member_id: str) -> str:
    """Name of the timer that ends a member's session."""
    return f"session:{member_id}"


def pending_timer(member_id: str) -> str:
    """Name of the timer that forgets an id that was given and not used."""
    return f"pending:{member_id}"


class Draft:
    """A group and what must follow, while one event is handled."""

    __slots__ = ("effects", "group", "now_ms", "settings")

    def __init__(self, group: Group, settings: GroupSettings, now_ms: int) -> None:
        self.group = group
        self.settings = settings
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    def reply(self, token: int, result: Result) -> None:
        """Answer a request."""
        self.effects.append(Reply(token, result))

    def set_timer(self, name: str, delay_ms: int, event: Event) -> None:
        """Start, or start again."""
        self.effects.append(SetTimer(name, delay_ms, event))

    def cancel_timer(self, name: str) -> None:
        """Stop."""
        self.effects.append(CancelTimer(name))

    def heard_of(self, member: Member) -> None:
        """Its session begins anew."""
        self.set_timer(session_timer(member.member_id), member.session_timeout_ms, SessionExpired(member.member_id))

    def put(self, member: Member) -> Member:
        """Add or replace a member (a new one goes last)."""
        self.group = replace(self.group, members=self.group.members.put(member))
        return member

    def enter(self, state: GroupState) -> None:
        """Change state. A move that the table does not have is a bug."""
        assert state in FOLLOWS[self.group.state], f"{self.group.state} -> {state}"
        self.group = replace(self.group, state=state, state_since_ms=self.now_ms)


# --- beginning --------------------------------------------------------------------------------------------------------


def maybe_prepare(draft: Draft) -> None:
    """Begin a rebalance unless one is being prepared already."""
    if GroupState.PREPARING in FOLLOWS[draft.group.state]:
        prepare(draft)


def prepare(draft: Draft) -> None:
    """Begin a rebalance: everybody has to join again."""
    if draft.group.state is GroupState.COMPLETING:
        refuse_syncs(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    draft.cancel_timer(SYNC_TIMER)
    delay_ms = draft.group.rebalance_timeout_ms()
    initial = None
    if draft.group.state is GroupState.EMPTY:
        longest_ms, delay_ms = delay_ms, draft.settings.group_initial_rebalance_delay_ms
        initial = InitialDelay(max(longest_ms - delay_ms, 0) if delay_ms else 0)
    draft.group = replace(draft.group, initial=initial, storing=False)
    draft.enter(GroupState.PREPARING)
    draft.set_timer(JOIN_TIMER, delay_ms, JoinExpired())
    try_complete(draft)


def refuse_syncs(draft: Draft, error: ErrorCode) -> None:
    """The assignment that members wait for will not come: there is going to be another rebalance."""
    for member in draft.group.members.values():
        if member.awaiting_sync is not None:
            draft.reply(member.awaiting_sync, SyncResult(error))
            draft.heard_of(member)
    cleared = Members.of(replace(m, awaiting_sync=None, assignment=b"") for m in draft.group.members.values())
    draft.group = replace(draft.group, members=cleared)


# --- completing -------------------------------------------------------------------------------------------------------


def try_complete(draft: Draft) -> None:
    """Complete the rebalance if everybody is there. The initial delay is always waited for."""
    group = draft.group
    if group.state is GroupState.PREPARING and group.initial is None and group.all_joined():
        complete_join(draft)


def join_time_is_over(draft: Draft) -> None:
    """The initial delay goes on while members keep coming; any other wait ends here."""
    initial = draft.group.initial
    if initial is None or not initial.joined or initial.remaining_ms == 0:
        complete_join(draft)
        return
    delay_ms = min(draft.settings.group_initial_rebalance_delay_ms, initial.remaining_ms)
    draft.group = replace(draft.group, initial=InitialDelay(initial.remaining_ms - delay_ms))
    draft.set_timer(JOIN_TIMER, delay_ms, JoinExpired())


def complete_join(draft: Draft) -> None:
    """The next generation: those who joined, and static members, who may be away for a while."""
    for member in list(draft.group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            drop(draft, member)
    if draft.group.members and not _elect_leader(draft):
        # Only absent static members are left: somebody comes back, or their sessions end.
        draft.set_timer(JOIN_TIMER, draft.group.rebalance_timeout_ms(), JoinExpired())
        return
    draft.cancel_timer(JOIN_TIMER)
    draft.group = replace(draft.group, generation=draft.group.generation + 1, initial=None)
    if draft.group.members:
        _answer_joins(draft)
    else:
        draft.group = replace(draft.group, protocol=None, leader=None)
        draft.enter(GroupState.EMPTY)
        draft.effects.append(Store(durable_value(draft.group), EmptyStored()))


def _elect_leader(draft: Draft) -> bool:
    """The leader must be somebody who joined; False where nobody did."""
    members = draft.group.members
    leader = members.get(draft.group.leader or "")
    if leader is None or leader.awaiting_join is None:
        leader = next((m for m in members.values() if m.awaiting_join is not None), None)
    if leader is None:
        return False
    draft.group = replace(draft.group, leader=leader.member_id)
    return True


def _answer_joins(draft: Draft) -> None:
    draft.group = replace(draft.group, protocol=draft.group.select_protocol())
    draft.enter(GroupState.COMPLETING)
    for member in draft.group.members.values():
        if member.awaiting_join is not None:
            draft.reply(member.awaiting_join, joined(draft.group, member))
        draft.heard_of(member)
    members = draft.group.members.values()
    now = Members.of(replace(m, awaiting_join=None, is_new=False, needs_sync=True) for m in members)
    draft.group = replace(draft.group, members=now)
    draft.set_timer(SYNC_TIMER, draft.group.rebalance_timeout_ms(), SyncExpired(draft.group.generation))


def joined(group: Group, member: Member, *, leader_sees_members: bool = True) -> JoinResult:
    """The answer to a member's JoinGroup in the current generation."""
    return JoinResult(
        ErrorCode.NONE,
        member.member_id,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader or "",
        members=subscriptions(group) if leader_sees_members and member.member_id == group.leader else (),
    )


def subscriptions(group: Group) -> tuple[tuple[str, str | None, bytes], ...]:
    """What the leader computes the assignment from."""
    return tuple((m.member_id, m.instance_id, m.metadata(group.protocol)) for m in group.members.values())


# --- losing members ---------------------------------------------------------------------------------------------------


def remove(draft: Draft, member: Member) -> None:
    """A member leaves or is given up: the others rebalance."""
    drop(draft, member)
    maybe_prepare(draft)
    try_complete(draft)


def drop(draft: Draft, member: Member) -> None:
    """Take a member out. What it waits for is answered: its connection would stand still forever."""
    if member.awaiting_join is not None:
        draft.reply(member.awaiting_join, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, ""))
    if member.awaiting_sync is not None:
        draft.reply(member.awaiting_sync, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    draft.cancel_timer(session_timer(member.member_id))
    members = draft.group.members.without(member.member_id)
    leader = draft.group.leader
    if leader == member.member_id:
        leader = members.first()
    draft.group = replace(draft.group, members=members, leader=leader)


def forget_pending(draft: Draft, member_id: str) -> None:
    """An id that was given will not be used (or is being used now)."""
    draft.cancel_timer(pending_timer(member_id))
    if member_id in draft.group.pending:
        draft.group = replace(draft.group, pending=draft.group.pending.without(member_id))
