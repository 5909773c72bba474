"""The moves that every way into a rebalance shares: begin one, complete it, lose a member.

A `Draft` is one event's work in progress: the group as it will be, and the effects so far. It lives only inside
`state.handle`, which is a pure function.

A group of thousands moves as a small one does: what a member waits for is in the group's maps, which are emptied at once, and
what all members are told follows gradually.

    EMPTY --first join--> PREPARING --all joined, or time over--> COMPLETING --assignment committed--> STABLE
      ^------nobody joined----'  ^------------a member comes, goes, or changes its mind-----------------'
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dataplane.coordination.effects import CancelTimer, Gradually, Reply, SetTimer, Store
from dataplane.groups.classic.events import (
    Effect,
    EmptyStored,
    Event,
    JoinExpired,
    JoinResult,
    OfOne,
    Result,
    SessionExpired,
    SyncExpired,
    SyncResult,
)
from dataplane.groups.classic.model import (
    FOLLOWS,
    NONE_ASSIGNED,
    NONE_PARKED,
    NONE_PENDING,
    Group,
    GroupState,
    InitialDelay,
    durable_value,
)
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dataplane.groups.classic.members import Member
    from dataplane.groups.classic.sharing import SharedMap
    from dataplane.groups.settings import GroupSettings

V = TypeVar("V")

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


def session_of(member: Member) -> SetTimer[Event]:
    """The timer that ends a member's session; in place of the one that runs."""
    return SetTimer(session_timer(member.member_id), member.session_timeout_ms, SessionExpired(member.member_id))


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

    def gradually(self, effects: Callable[[], Iterator[OfOne]]) -> None:
        """What follows for many members. Nothing of it may matter to other events: an answer, or the time of a session."""
        self.effects.append(Gradually(effects))

    def heard_of(self, member: Member) -> None:
        """Its session begins anew; that of a member that waits begins with its answer."""
        if not self.group.waits(member.member_id):
            self.effects.append(session_of(member))

    def waits(self, member: Member) -> None:
        """Its session stands still, or it could end when the wait is over, and the answer, which comes gradually, is not there.

        A new member has no session yet, but the time for its first answer, which goes on.
        """
        if not self.group.is_new(member):
            self.cancel_timer(session_timer(member.member_id))

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
    delay_ms = draft.group.members.most_patient_ms()
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
    answer_syncs(draft, lambda _member_id: SyncResult(error))
    draft.group = replace(draft.group, assignments=NONE_ASSIGNED)


def answer_syncs(draft: Draft, answer: Callable[[str], SyncResult]) -> None:
    """Whoever waits for its assignment waits no longer."""
    if draft.group.syncing:
        draft.gradually(partial(_answers, draft.group, draft.group.syncing, answer))
        draft.group = replace(draft.group, syncing=NONE_PARKED)


def _answers(group: Group, waiting: Mapping[str, int], answer: Callable[[str], Result]) -> Iterator[OfOne]:
    """To those that wait, in the order of members; their sessions begin, before they can ask for anything else."""
    for member_id, member in group.members.items():
        if member_id in waiting:
            yield session_of(member)
            yield Reply(waiting[member_id], answer(member_id))


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
    drop_all(draft, _absent(draft.group))
    if draft.group.members and not _elect_leader(draft):
        # Only absent static members are left: somebody comes back, or their sessions end.
        draft.set_timer(JOIN_TIMER, draft.group.members.most_patient_ms(), JoinExpired())
        return
    draft.cancel_timer(JOIN_TIMER)
    draft.group = replace(draft.group, generation=draft.group.generation + 1, initial=None)
    if draft.group.members:
        _answer_joins(draft)
    else:
        draft.group = replace(draft.group, protocol=None, leader=None)
        draft.enter(GroupState.EMPTY)
        draft.effects.append(Store(durable_value(draft.group), EmptyStored()))


def _absent(group: Group) -> list[Member]:
    if len(group.joining) == len(group.members):
        return []
    return [m for m in group.members.values() if m.member_id not in group.joining and m.instance_id is None]


def _elect_leader(draft: Draft) -> bool:
    """The leader must be somebody who joined; False where nobody did."""
    group = draft.group
    leader = (
        group.leader if group.leader in group.joining else next((m for m in group.members if m in group.joining), None)
    )
    draft.group = replace(group, leader=group.leader if leader is None else leader)
    return leader is not None


def _answer_joins(draft: Draft) -> None:
    waiting = draft.group.joining
    draft.group = replace(
        draft.group,
        protocol=draft.group.select_protocol(),
        joining=NONE_PARKED,
        syncing=NONE_PARKED,
        synced=NONE_PENDING,
    )
    draft.enter(GroupState.COMPLETING)
    draft.gradually(partial(_joins, draft.group, waiting))
    draft.set_timer(SYNC_TIMER, draft.group.members.most_patient_ms(), SyncExpired(draft.group.generation))


def _joins(group: Group, waiting: Mapping[str, int]) -> Iterator[OfOne]:
    """Everybody's session begins, that of static members who are away as well."""
    for member_id, member in group.members.items():
        yield session_of(member)
        if member_id in waiting:
            yield Reply(waiting[member_id], joined(group, member))


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


def remove_all(draft: Draft, members: Sequence[Member]) -> None:
    """Several at once."""
    if members:
        drop_all(draft, members)
        maybe_prepare(draft)
        try_complete(draft)


def drop(draft: Draft, member: Member) -> None:
    """Take a member out."""
    group, member_id = draft.group, member.member_id
    for effect in _goodbye(group, member_id):
        draft.effects.append(effect)
    members = group.members.without(member_id)
    draft.group = replace(
        group,
        members=members,
        leader=members.first() if group.leader == member_id else group.leader,
        joining=_less(group.joining, member_id),
        syncing=_less(group.syncing, member_id),
        synced=_less(group.synced, member_id),
    )


def drop_all(draft: Draft, gone: Sequence[Member]) -> None:
    """Take several out."""
    group, ids = draft.group, {member.member_id for member in gone}
    if not ids:
        return
    draft.gradually(lambda: (effect for member in gone for effect in _goodbye(group, member.member_id)))
    members = group.members.without_all(ids)
    draft.group = replace(
        group,
        members=members,
        leader=members.first() if group.leader in ids else group.leader,
        joining=group.joining.without_all(ids),
        syncing=group.syncing.without_all(ids),
        synced=group.synced.without_all(ids),
    )


def _goodbye(group: Group, member_id: str) -> Iterator[OfOne]:
    """What a member waits for is answered: its connection would stand still forever."""
    if member_id in group.joining:
        yield Reply(group.joining[member_id], JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, ""))
    if member_id in group.syncing:
        yield Reply(group.syncing[member_id], SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    yield CancelTimer(session_timer(member_id))


def _less(entries: SharedMap[V], member_id: str) -> SharedMap[V]:
    return entries.without(member_id) if member_id in entries else entries


def forget_pending(draft: Draft, member_id: str) -> None:
    """An id that was given will not be used (or is being used now)."""
    draft.cancel_timer(pending_timer(member_id))
    if member_id in draft.group.pending:
        draft.group = replace(draft.group, pending=draft.group.pending.without(member_id))
