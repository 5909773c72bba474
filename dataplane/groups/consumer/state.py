"""The state machine of a group of the consumer protocol: one pure function, `handle`.

`handle` proposes, and `ledger.apply` believes: nothing of what is proposed is true before `Stored` says that it is committed,
and then it becomes true by the same `apply` by which a successor loads it. One batch of records of a group is on its way at a
time. An event that needs no record (most heartbeats) is answered meanwhile; others wait, and are then taken together, up to a
number: a thousand members that come at once are some dozen epochs and not a thousand.

A batch that the log did not take may be in it all the same (the in-sync replicas were too slow). What it says is then in doubt
for a successor, so the next batch begins with what holds of each of its keys; without another event one is made for that alone
a second later. Where that is too much for one batch, several go before (`clearing`). A batch that was not appended at all leaves
nothing in doubt.

The change of the protocol has to be one batch. Where it does not fit into one, the group stays what it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.coordination.effects import SetTimer, Store
from dataplane.groups.classic import events as classic
from dataplane.groups.consumer import classic_members
from dataplane.groups.consumer.clearing import clearing
from dataplane.groups.consumer.draft import (
    Draft,
    rejoin_timer,
    revocation_of,
    revocation_timer,
    session_of,
    session_timer,
    sync_timer,
)
from dataplane.groups.consumer.events import (
    ClearUp,
    Heartbeat,
    RejoinExpired,
    RevocationExpired,
    SessionExpired,
    Stored,
    SyncExpired,
    refused,
)
from dataplane.groups.consumer.joining import on_heartbeat
from dataplane.groups.consumer.ledger import apply
from dataplane.groups.consumer.model import JOINING_EPOCH, MemberState
from dataplane.groups.consumer.records import size
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.groups.classic.members import Members
    from dataplane.groups.consumer.events import Around, Effect, Event, Expired
    from dataplane.groups.consumer.model import Group
    from dataplane.groups.consumer.records import Record
    from dataplane.groups.settings import ConsumerRules

TOGETHER = 16
"""Events that have waited, and are taken in one go."""
RETRY_MS = 1_000
CLEAR_UP_TIMER = "clear up"
_WAITS_BEHIND_A_STORE_MS = 50
_TIMERS: dict[type, Callable[[str], str]] = {
    SessionExpired: session_timer,
    RevocationExpired: revocation_timer,
    RejoinExpired: rejoin_timer,
    SyncExpired: sync_timer,
}


def handle(group: Group, event: Event, around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    """The group after an event, and what must follow, in order."""
    if isinstance(event, Stored):
        return _stored(group, event, around, now_ms)
    if group.storing and not _mostly_changes_nothing(event):
        return _wait(group, event, around)  # it would write: an assignment is not made to be thrown away
    return _propose(group, (event,), around, now_ms)


def _mostly_changes_nothing(event: Event) -> bool:
    if isinstance(event, Heartbeat):
        return event.epoch > JOINING_EPOCH
    return isinstance(event, classic.Sync | classic.Heartbeat)


def _propose(group: Group, events: tuple[Event, ...], around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    draft = Draft(group, around, now_ms)
    if group.doubtful and not group.storing:
        cleared = clearing(group, around.classic, around.rules.max_batch_bytes // 2)
        if len(cleared) < len(group.doubtful):
            return _store(group, cleared, Stored(cleared, events, group.seen_topics, again=events))
        draft.propose(*cleared)
    done = 0
    for event in events:
        _HANDLERS[type(event)](draft, event)
        done += 1
        if draft.is_left():
            break
    again = draft.settle()
    if not draft.records:
        return replace(group, seen_topics=around.topics_version), [*draft.replies, *draft.timers]
    if group.storing:
        return _wait(group, events[0], around)
    records = tuple(draft.records)
    bringing = [] if group.epoch else [each for each in events if isinstance(each, Heartbeat) and each.inherits]
    if (bringing or draft.members is not None) and size(group.group_id, records) > around.rules.max_batch_bytes:
        return _stay(group, events, draft.members, around, now_ms)
    replies, timers = tuple(draft.replies), tuple(draft.timers)
    then = Stored(records, events[:done], around.topics_version, replies, timers, members=draft.members, again=again)
    return _store(replace(group, waiting=(*group.waiting, *events[done:])), records, then)


def _store(group: Group, records: tuple[Record, ...], then: Stored) -> tuple[Group, list[Effect]]:
    return replace(group, storing=True), [Store(records, then, replace(then, in_doubt=False))]


def _stay(
    group: Group, events: tuple[Event, ...], members: Members | None, around: Around, now_ms: int
) -> tuple[Group, list[Effect]]:
    """The group does not go over into the other protocol, as that does not fit into one batch: what comes of the events then."""
    if members is not None:
        return _propose(replace(group, outgrown=len(members)), events, around, now_ms)
    bringing = [each for each in events if isinstance(each, Heartbeat) and each.inherits]
    message = "the group is of the classic protocol, and too large to change it while it has members"
    effects: list[Effect] = [refused(each, ErrorCode.GROUP_MAX_SIZE_REACHED, message) for each in bringing]
    others = tuple(each for each in events if each not in bringing)
    if others:
        group, more = _propose(group, others, around, now_ms)
        effects += more
    return group, effects


def _wait(group: Group, event: Event, around: Around) -> tuple[Group, list[Effect]]:
    """Until what is on its way has arrived. Whoever waits for an answer is alive."""
    if isinstance(event, SessionExpired | RevocationExpired | RejoinExpired | SyncExpired | ClearUp):
        return group, [_again(event, _WAITS_BEHIND_A_STORE_MS)]
    assert not isinstance(event, Stored)
    member = None if isinstance(event, classic.Leave) else group.members.get(event.member_id)
    heard: list[Effect] = [] if member is None else [session_of(member, around.rules)]
    return replace(group, waiting=(*group.waiting, event)), heard


def _again(event: Expired | ClearUp, delay_ms: int) -> SetTimer[Event]:
    if isinstance(event, ClearUp):
        return SetTimer(CLEAR_UP_TIMER, delay_ms, event)
    return SetTimer(_TIMERS[type(event)](event.member_id), delay_ms, event)


def _stored(group: Group, stored: Stored, around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    waiting = group.waiting
    group = replace(group, storing=False, waiting=())
    effects: list[Effect]
    if stored.error == ErrorCode.NONE:
        written = frozenset(_keys(stored.records))
        doubtful = tuple(key for key in group.doubtful if key not in written)
        group = replace(apply(group, stored.records), seen_topics=stored.topics_version, doubtful=doubtful)
        effects = [*stored.replies, *stored.timers]
        if stored.members is not None:  # who waits is answered in the other protocol
            return replace(group, waiting=(*stored.again, *waiting)), [*stored.replies]
        waiting = (*stored.again, *waiting)
    else:
        if stored.in_doubt:
            group = replace(group, doubtful=tuple(dict.fromkeys((*group.doubtful, *_keys(stored.records)))))
        effects = [*_failed(stored)]
        if group.doubtful:
            effects.append(_again(ClearUp(), RETRY_MS))
    while waiting and not group.storing:
        some, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
        group, more = _propose(group, some, around, now_ms)
        effects += more
    return replace(group, waiting=(*group.waiting, *waiting)), effects


def _keys(records: tuple[Record, ...]) -> Iterator[tuple[int, str]]:
    return ((int(record.kind), record.name) for record in records)


def _failed(stored: Stored) -> Iterator[Effect]:
    """Who asked is told; what time brought about is tried again."""
    for event in stored.events:
        if isinstance(event, SessionExpired | RevocationExpired | RejoinExpired | SyncExpired):
            yield _again(event, RETRY_MS)
        elif not isinstance(event, ClearUp | Stored):
            yield refused(event, stored.error)


def timers_of(group: Group, rules: ConsumerRules) -> Iterator[SetTimer[Event]]:
    """What begins when a group is loaded, or taken over: every member is believed to be alive, and has its time."""
    for member in group.members.values():
        yield session_of(member, rules)
        if member.state is MemberState.UNREVOKED and member.classic is None:
            yield revocation_of(member)


# --- time -------------------------------------------------------------------------------------------------------------


def _on_expired(draft: Draft, event: SessionExpired) -> None:
    member = draft.ledger.members.get(event.member_id)
    if member is not None:
        draft.remove(member)


def _on_classic_expired(draft: Draft, event: RejoinExpired | SyncExpired) -> None:
    """Of a member that speaks the other protocol since, nothing is expected that it would say in this one."""
    member = draft.ledger.members.get(event.member_id)
    if member is not None and member.classic is not None:
        draft.remove(member)


def _on_revocation_expired(draft: Draft, event: RevocationExpired) -> None:
    member = draft.ledger.members.get(event.member_id)
    if member is not None and member.state is MemberState.UNREVOKED and member.epoch == event.epoch:
        draft.remove(member)


def _on_clear_up(draft: Draft, event: ClearUp) -> None:
    """That is done before every event."""
    del draft, event


_HANDLERS: dict[type, Callable[[Draft, Any], None]] = {
    Heartbeat: on_heartbeat,
    classic.Join: classic_members.on_join,
    classic.Sync: classic_members.on_sync,
    classic.Heartbeat: classic_members.on_heartbeat,
    classic.Leave: classic_members.on_leave,
    SessionExpired: _on_expired,
    RejoinExpired: _on_classic_expired,
    SyncExpired: _on_classic_expired,
    RevocationExpired: _on_revocation_expired,
    ClearUp: _on_clear_up,
}
