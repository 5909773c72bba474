"""The state machine of a group of the consumer protocol: one pure function, `handle`.

`handle` proposes, and `ledger.apply` believes: nothing of what is proposed is true before `Stored` says that it is committed,
and then it becomes true by the same `apply` by which a successor loads it. One batch of records of a group is on its way at a
time. An event that needs no record (most heartbeats) is answered meanwhile; others wait, and are then taken together, up to a
number: a thousand members that come at once are some dozen epochs and not a thousand.

A batch that the log did not take may be in it all the same (the in-sync replicas were too slow). What it says is then in doubt
for a successor, so the next batch begins with what holds of each of its keys; without another event one is made for that alone
a second later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.coordination.effects import Reply, SetTimer, Store
from dataplane.groups.consumer.draft import Draft, revocation_of, revocation_timer, session_of, session_timer
from dataplane.groups.consumer.events import (
    ClearUp,
    Heartbeat,
    HeartbeatResult,
    RevocationExpired,
    SessionExpired,
    Stored,
)
from dataplane.groups.consumer.joining import on_heartbeat
from dataplane.groups.consumer.ledger import apply
from dataplane.groups.consumer.model import JOINING_EPOCH, MemberState
from dataplane.groups.consumer.records import Kind, Record
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.groups.consumer.events import Around, Effect, Event
    from dataplane.groups.consumer.model import Group
    from dataplane.groups.settings import ConsumerRules

TOGETHER = 16
"""Events that have waited, and are taken in one go."""
RETRY_MS = 1_000
CLEAR_UP_TIMER = "clear up"
_WAITS_BEHIND_A_STORE_MS = 50


def handle(group: Group, event: Event, around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    """The group after an event, and what must follow, in order."""
    if isinstance(event, Stored):
        return _stored(group, event, around, now_ms)
    if group.storing and not (isinstance(event, Heartbeat) and event.epoch > JOINING_EPOCH):
        return _wait(group, event, around)  # it would write: an assignment is not made to be thrown away
    return _propose(group, (event,), around, now_ms)


def _propose(group: Group, events: tuple[Event, ...], around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    draft = Draft(group, around, now_ms)
    if not group.storing:
        draft.clear_up()
    for event in events:
        _HANDLERS[type(event)](draft, event)
    draft.settle()
    if not draft.records:
        return replace(group, seen_topics=around.topics_version), [*draft.replies, *draft.timers]
    if group.storing:
        return _wait(group, events[0], around)
    records = tuple(draft.records)
    then = Stored(records, events, around.topics_version, tuple(draft.replies), tuple(draft.timers))
    return replace(group, storing=True), [Store(records, then)]


def _wait(group: Group, event: Event, around: Around) -> tuple[Group, list[Effect]]:
    """Until what is on its way has arrived. Whoever waits for an answer is alive."""
    if not isinstance(event, Heartbeat):
        return group, [_again(event, _WAITS_BEHIND_A_STORE_MS)]
    heard = [session_of(event.member_id, around.rules)] if event.member_id in group.members else []
    return replace(group, waiting=(*group.waiting, event)), [*heard]


def _again(event: Event, delay_ms: int) -> SetTimer[Event]:
    if isinstance(event, SessionExpired):
        return SetTimer(session_timer(event.member_id), delay_ms, event)
    if isinstance(event, RevocationExpired):
        return SetTimer(revocation_timer(event.member_id), delay_ms, event)
    return SetTimer(CLEAR_UP_TIMER, delay_ms, event)


def _stored(group: Group, stored: Stored, around: Around, now_ms: int) -> tuple[Group, list[Effect]]:
    waiting = group.waiting
    group = replace(group, storing=False, waiting=())
    effects: list[Effect]
    if stored.error == ErrorCode.NONE:
        group = replace(apply(group, stored.records), seen_topics=stored.topics_version, doubtful=())
        effects = [*stored.replies, *stored.timers]
    else:
        group = replace(group, doubtful=_in_doubt(stored.records))
        effects = [*_failed(stored)]
    while waiting and not group.storing:
        some, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
        group, more = _propose(group, some, around, now_ms)
        effects += more
    return replace(group, waiting=waiting), effects


def _in_doubt(records: tuple[Record, ...]) -> tuple[tuple[int, str], ...]:
    """Keys. That a group of the other protocol has ended is not among them: it was empty."""
    keys = dict.fromkeys((int(record.kind), record.name) for record in records if record.kind is not Kind.CLASSIC)
    return tuple(keys)


def _failed(stored: Stored) -> Iterator[Effect]:
    """Who asked is told; what time brought about is tried again."""
    for event in stored.events:
        if isinstance(event, Heartbeat):
            yield Reply(event.token, HeartbeatResult(stored.error))
        elif not isinstance(event, ClearUp):
            yield _again(event, RETRY_MS)
    yield _again(ClearUp(), RETRY_MS)


def timers_of(group: Group, rules: ConsumerRules) -> Iterator[SetTimer[Event]]:
    """What begins when a group is loaded: every member is believed to be alive, and has its time."""
    for member in group.members.values():
        yield session_of(member.member_id, rules)
        if member.state is MemberState.UNREVOKED:
            yield revocation_of(member)


# --- time -------------------------------------------------------------------------------------------------------------


def _on_session_expired(draft: Draft, event: SessionExpired) -> None:
    member = draft.ledger.members.get(event.member_id)
    if member is not None:
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
    SessionExpired: _on_session_expired,
    RevocationExpired: _on_revocation_expired,
    ClearUp: _on_clear_up,
}
