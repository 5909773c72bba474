"""What is made of some events: a group as it would be, the records that would make it so, who is answered what.

It lives only inside `state.handle`, which is a pure function. Events are taken together where they had to wait for the log: what
each says of its member first (`joining`, `classic_members`), then one new group epoch and target for all of them (`settle`), then
each member's own step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer
from dataplane.groups.consumer import records
from dataplane.groups.consumer.conversion import handed_over, is_left_to_classic
from dataplane.groups.consumer.events import (
    RejoinExpired,
    Result,
    RevocationExpired,
    SessionExpired,
    SyncExpired,
    refused,
)
from dataplane.groups.consumer.ledger import Ledger
from dataplane.groups.consumer.model import MemberState
from dataplane.groups.consumer.reconciliation import reconcile
from dataplane.groups.consumer.records import Kind, Record
from dataplane.groups.consumer.target import topics_now, wanted
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.groups.classic.members import Members
    from dataplane.groups.consumer.events import Around, Event, Request
    from dataplane.groups.consumer.model import Assignment, Group, Member
    from dataplane.groups.settings import ConsumerRules


def session_timer(member_id: str) -> str:
    """Name of the timer that ends a member's session."""
    return f"session:{member_id}"


def revocation_timer(member_id: str) -> str:
    """Name of the timer that ends the time to give partitions up."""
    return f"revocation:{member_id}"


def rejoin_timer(member_id: str) -> str:
    """Name of the timer that ends the time to join again, of a member of the classic protocol."""
    return f"rejoin:{member_id}"


def sync_timer(member_id: str) -> str:
    """Name of the timer that ends the time to ask for an assignment, of a member of the classic protocol."""
    return f"sync:{member_id}"


class Draft:
    """See the file's text."""

    def __init__(self, group: Group, around: Around, now_ms: int) -> None:
        self.before, self.around, self.now_ms = group, around, now_ms
        self.ledger = Ledger(group)
        self.records: list[Record] = []
        self.replies: list[Reply[Result]] = []
        self.timers: list[SetTimer[Event] | CancelTimer] = []
        self.members: Members | None = None  # with these the group goes on in the classic protocol
        self._visits: list[tuple[Request, Callable[[], None]]] = []
        self._is_new_epoch = False
        self._may_be_left = False

    # --- what events do -----------------------------------------------------------------------------------------------

    def propose(self, *proposed: Record) -> None:
        """What comes later sees it."""
        for record in proposed:
            self.records.append(record)
            self.ledger.apply(record)

    def answer(self, token: int, result: Result) -> None:
        """When everything that is proposed is committed."""
        self.replies.append(Reply(token, result))

    def refuse(self, ask: Request, error: ErrorCode, message: str | None = None) -> None:
        """Nothing comes of it."""
        self.replies.append(refused(ask, error, message))

    def begin_epoch(self) -> None:
        """The group has changed: there is going to be another target."""
        self._is_new_epoch = True

    def visit(self, ask: Request, step: Callable[[], None]) -> None:
        """A member's request is good: it takes its step when there is a target, and is answered."""
        self._visits.append((ask, step))

    def heard_of(self, member: Member) -> None:
        """Its session begins anew."""
        self.timers.append(session_of(member, self.around.rules))

    def remove(self, member: Member) -> None:
        """A member is no more: what it had is free."""
        self.propose(*records.end_of_member(member.member_id))
        self.end_pattern(member.pattern)
        self.begin_epoch()
        self.forget_timers(member)
        self.may_be_left()

    def forget_timers(self, member: Member) -> None:
        """Of a member that is no more."""
        names = (revocation_timer,) if member.classic is None else (rejoin_timer, sync_timer)
        self.timers += [CancelTimer(name(member.member_id)) for name in (session_timer, *names)]

    def may_be_left(self) -> None:
        """It may have been the last of the consumer protocol."""
        self._may_be_left = True

    def is_left(self) -> bool:
        """Whether it was: the group goes on in the classic protocol, and nothing else can be said of it here."""
        return self._may_be_left and is_left_to_classic(self.ledger.group(), self.around.rules)

    def end_pattern(self, pattern: str | None) -> None:
        """A member does not subscribe by it any more; perhaps it was the last."""
        group = self.ledger.group()
        if pattern is not None and pattern in group.matched and pattern not in group.patterns:
            self.propose(Record(Kind.PATTERN, pattern))

    # --- what follows of all of them ----------------------------------------------------------------------------------

    def settle(self) -> tuple[Request, ...]:
        """The group's topics, epoch and target; then each member that was heard of takes its step.

        Or the group goes over into the classic protocol; then these requests are asked again there.
        """
        if self.is_left():
            ends, self.members = handed_over(self.ledger.group(), self.now_ms)
            self.propose(*ends)
            return tuple(ask for ask, _ in self._visits)
        self._look_at_topics()
        if self._is_new_epoch:
            self.propose(records.epoch_record(self.ledger.group().epoch + 1))
        self._aim()
        for _, step in self._visits:
            step()
        return ()

    def _look_at_topics(self) -> None:
        if not self._is_new_epoch and self.before.seen_topics == self.around.topics_version:
            return
        group = self.ledger.group()
        topics = topics_now(group, self.around)
        if topics != group.topics:
            self.propose(records.topics_record(topics))
            self.begin_epoch()

    def _aim(self) -> None:
        group = self.ledger.group()
        if not group.members or group.target_epoch >= group.epoch:
            return
        for member_id, target in wanted(group, self.around.rules.assignors).items():
            before = group.targets.get(member_id, {})
            if target is not before and target != before:
                self.propose(records.target_record(member_id, target))
        self.propose(records.target_epoch_record(group.epoch))

    def advance(self, member: Member, owned: Assignment | None) -> Member:
        """The member after its step. `owned` is what it says that it has; None: as before."""
        ledger = self.ledger
        target = ledger.target(member.member_id)
        after = reconcile(member, ledger.target_epoch, target, lambda place: ledger.owner(place) is None, owned)
        if after is not member:
            self.propose(records.current_record(after))
            if member.classic is None:  # one of the classic protocol has its time to join again
                self._time_revocation(member, after)
        return after

    def _time_revocation(self, before: Member, after: Member) -> None:
        if after.state is MemberState.UNREVOKED:
            self.timers.append(revocation_of(after))
        elif before.state is MemberState.UNREVOKED:
            self.timers.append(CancelTimer(revocation_timer(after.member_id)))


def session_of(member: Member, rules: ConsumerRules) -> SetTimer[Event]:
    """The timer that ends a member's session; in place of the one that runs."""
    ms = rules.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
    return SetTimer(session_timer(member.member_id), ms, SessionExpired(member.member_id))


def revocation_of(member: Member) -> SetTimer[Event]:
    """The timer that ends a member's time to give partitions up."""
    event = RevocationExpired(member.member_id, member.epoch)
    return SetTimer(revocation_timer(member.member_id), member.rebalance_timeout_ms, event)


def rejoin_of(member: Member) -> SetTimer[Event]:
    """The timer that ends a member's time to join again: from when it was first told to."""
    event = RejoinExpired(member.member_id)
    return SetTimer(rejoin_timer(member.member_id), member.rebalance_timeout_ms, event, unless_running=True)


def sync_of(member: Member) -> SetTimer[Event]:
    """The timer that ends a member's time to ask for its assignment."""
    return SetTimer(sync_timer(member.member_id), member.rebalance_timeout_ms, SyncExpired(member.member_id))
