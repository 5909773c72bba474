"""What is made of some events: a group as it would be, the records that would make it so, who is answered what.

It lives only inside `state.handle`, which is a pure function. Events are taken together where they had to wait for the log: what
each says of its member first (`joining`), then one new group epoch and target for all of them (`settle`), then each member's own
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer
from dataplane.groups.consumer import records
from dataplane.groups.consumer.events import HeartbeatResult, RevocationExpired, SessionExpired
from dataplane.groups.consumer.ledger import Ledger
from dataplane.groups.consumer.model import Assignment, MemberState
from dataplane.groups.consumer.reconciliation import reconcile
from dataplane.groups.consumer.records import Kind, Record
from dataplane.groups.consumer.target import topics_now, wanted
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.consumer.events import Around, Event, Heartbeat
    from dataplane.groups.consumer.model import Group, Member
    from dataplane.groups.settings import ConsumerRules


def session_timer(member_id: str) -> str:
    """Name of the timer that ends a member's session."""
    return f"session:{member_id}"


def revocation_timer(member_id: str) -> str:
    """Name of the timer that ends the time to give partitions up."""
    return f"revocation:{member_id}"


class Draft:
    """See the file's text."""

    def __init__(self, group: Group, around: Around, now_ms: int) -> None:
        self.before, self.around, self.now_ms = group, around, now_ms
        self.ledger = Ledger(group)
        self.records: list[Record] = []
        self.replies: list[Reply[HeartbeatResult]] = []
        self.timers: list[SetTimer[Event] | CancelTimer] = []
        self._visits: list[Heartbeat] = []
        self._is_new_epoch = False

    # --- what events do -----------------------------------------------------------------------------------------------

    def propose(self, *proposed: Record) -> None:
        """What comes later sees it."""
        for record in proposed:
            self.records.append(record)
            self.ledger.apply(record)

    def answer(self, token: int, result: HeartbeatResult) -> None:
        """When everything that is proposed is committed."""
        self.replies.append(Reply(token, result))

    def refuse(self, ask: Heartbeat, error: ErrorCode, message: str) -> None:
        """Nothing comes of it."""
        self.answer(ask.token, HeartbeatResult(error, message=message))

    def begin_epoch(self) -> None:
        """The group has changed: there is going to be another target."""
        self._is_new_epoch = True

    def visit(self, ask: Heartbeat) -> None:
        """A member's heartbeat is good: it takes its step when there is a target, and is answered."""
        self._visits.append(ask)
        self.timers.append(session_of(ask.member_id, self.around.rules))

    def remove(self, member: Member) -> None:
        """A member is no more: what it had is free."""
        self.propose(*records.end_of_member(member.member_id))
        self.end_pattern(member.pattern)
        self.begin_epoch()
        self.timers += [CancelTimer(session_timer(member.member_id)), CancelTimer(revocation_timer(member.member_id))]

    def end_pattern(self, pattern: str | None) -> None:
        """A member does not subscribe by it any more; perhaps it was the last."""
        group = self.ledger.group()
        if pattern is not None and pattern in group.matched and pattern not in group.patterns:
            self.propose(Record(Kind.PATTERN, pattern))

    def clear_up(self) -> None:
        """What may be in the log and does not hold is overwritten, before anything else."""
        self.propose(*(records.as_it_is(self.before, Kind(kind), name) for kind, name in self.before.doubtful))

    # --- what follows of all of them ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """The group's topics, epoch and target; then each member that was heard of takes its step."""
        self._look_at_topics()
        if self._is_new_epoch:
            self.propose(records.epoch_record(self.ledger.group().epoch + 1))
        self._aim()
        for ask in self._visits:
            self._step(ask)

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

    def _step(self, ask: Heartbeat) -> None:
        ledger = self.ledger
        member = ledger.members.get(ask.member_id)
        if member is None:  # it left behind this heartbeat
            self.refuse(ask, ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
            return
        owned: Assignment | None = {} if ask.joins else ask.owned
        target = ledger.target(ask.member_id)
        after = reconcile(member, ledger.target_epoch, target, lambda place: ledger.owner(place) is None, owned)
        if after is not member:
            self.propose(records.current_record(after))
            self._time_revocation(member, after)
        before = self.before.members.get(ask.member_id)
        is_told = ask.joins or ask.says_all or before is None or before.assigned != after.assigned
        self.answer(
            ask.token,
            HeartbeatResult(ErrorCode.NONE, after.member_id, after.epoch, after.assigned if is_told else None),
        )

    def _time_revocation(self, before: Member, after: Member) -> None:
        if after.state is MemberState.UNREVOKED:
            self.timers.append(revocation_of(after))
        elif before.state is MemberState.UNREVOKED:
            self.timers.append(CancelTimer(revocation_timer(after.member_id)))


def session_of(member_id: str, rules: ConsumerRules) -> SetTimer[Event]:
    """The timer that ends a member's session; in place of the one that runs."""
    return SetTimer(session_timer(member_id), rules.session_timeout_ms, SessionExpired(member_id))


def revocation_of(member: Member) -> SetTimer[Event]:
    """The timer that ends a member's time to give partitions up."""
    event = RevocationExpired(member.member_id, member.epoch)
    return SetTimer(revocation_timer(member.member_id), member.rebalance_timeout_ms, event)
