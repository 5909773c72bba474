"""Groups as the runtime of coordinators sees them: which topic, what is done with an event, what is written for its effects.

An event goes to the state machine of the protocol that the group has at the moment. A live group changes it as one
batch of records is committed (`consumer.conversion`). From the batch's append on, and while it is in doubt whether the
log has it, the group of the classic protocol stands still: requests and what time brings wait, and are handled by
whatever the group is afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination import errors
from dataplane.coordination.effects import Reply, SetTimer
from dataplane.groups.classic import events as classic_events
from dataplane.groups.classic.events import Join, JoinAgain, JoinResult, SyncResult
from dataplane.groups.classic.model import Group, GroupState, durable_value
from dataplane.groups.classic.rebalance import session_timer
from dataplane.groups.classic.state import apply, handle
from dataplane.groups.consumer import conversion
from dataplane.groups.consumer import events as consumer_events
from dataplane.groups.consumer.embedded import PROTOCOL_TYPE
from dataplane.groups.consumer.model import Group as ConsumerGroup
from dataplane.groups.consumer.records import Kind, Record
from dataplane.groups.consumer.records import write as write_consumer
from dataplane.groups.consumer.state import RETRY_MS, timers_of
from dataplane.groups.consumer.state import handle as handle_consumer
from dataplane.groups.records import write_group
from dataplane.groups.shard import Entry, Groups, owner_of
from dataplane.protocol.errors import ErrorCode
from dataplane.slices import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import KeyValue
    from dataplane.groups.settings import GroupSettings
    from dataplane.groups.topics import Topics
    from dataplane.protocol.messages.group_records import GroupMetadataValue

_LOG_ERRORS_OF_GROUPS = {
    **errors.LOG_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,  # the members join again, and it is tried again
}


Anything = classic_events.Event | consumer_events.Event
Effects = Sequence[classic_events.Effect | consumer_events.Effect]


class GroupMachine:
    """See `coordination.machine.Machine`."""

    topic = OFFSETS_TOPIC

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics

    def new_contents(self, new_timers: Callable[[], Deadlines]) -> Groups:
        """See Machine."""
        return Groups(new_timers, self._settings.consumer)

    def name_of(self, entry: Entry) -> str:
        """See Machine."""
        return entry.group.group_id

    def owner_of(self, entry: Entry) -> str:
        """See Machine."""
        return owner_of(entry.group.group_id) or INTERNAL

    def handle(self, entry: Entry, event: Anything, now_ms: int) -> Effects:
        """See Machine. What has waited follows as soon as it can."""
        effects = [*self._handle(entry, event, now_ms)]
        while entry.waiting and not _must_wait(entry, entry.waiting[0]):
            effects += self._handle(entry, entry.waiting.pop(0), now_ms)
        return effects

    def _handle(self, entry: Entry, event: Anything, now_ms: int) -> Effects:
        if isinstance(event, classic_events.SessionExpired) and _must_wait(entry, event):
            return [SetTimer(session_timer(event.member_id), RETRY_MS, event)]  # its requests wait as well
        if _must_wait(entry, event):
            entry.waiting.append(event)
            return []
        if entry.consumer is not None and entry.consumer.epoch:
            return self._handle_with_consumers(entry, event, now_ms)
        if isinstance(event, consumer_events.Heartbeat):
            return self._join_as_consumer(entry, event, now_ms)
        if isinstance(event, consumer_events.ClearUp | consumer_events.Stored):
            return self._handle_consumer(entry, event, now_ms)
        if isinstance(event, consumer_events.SessionExpired):  # of a member that was in a group of consumers
            event = classic_events.SessionExpired(event.member_id)
        if isinstance(
            event, consumer_events.RevocationExpired | consumer_events.RejoinExpired | consumer_events.SyncExpired
        ):
            return []
        entry.group, effects = handle(entry.group, event, self._settings, now_ms)
        return effects

    def _handle_with_consumers(self, entry: Entry, event: Anything, now_ms: int) -> Effects:
        """What is left of the time before is nothing to such a group, but for sessions, and an answer that is owed."""
        if isinstance(event, classic_events.SessionExpired):
            event = consumer_events.SessionExpired(event.member_id)
        if isinstance(event, classic_events.StaticStored):
            return [Reply(event.token, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, event.member_id))]
        return self._handle_consumer(entry, event, now_ms) if isinstance(event, _OF_CONSUMERS) else []

    def _join_as_consumer(self, entry: Entry, event: consumer_events.Heartbeat, now_ms: int) -> Effects:
        """Of the consumer protocol, to a group that is not: there is none, it is empty, or its members take part from now on."""
        group = entry.group
        if group.is_blank():
            return self._handle_consumer(entry, event, now_ms)
        if not event.joins:  # it was removed, and its group has changed its protocol since: it may join again
            return [consumer_events.refused(event, ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")]
        if group.state is GroupState.DEAD:
            return [consumer_events.refused(event, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group is being deleted")]
        if group.state is GroupState.EMPTY:
            return self._handle_consumer(entry, replace(event, inherits=(conversion.ENDED,)), now_ms)
        problem = conversion.upgrade_problem(group, self._settings.consumer)
        if problem is not None:
            return [consumer_events.refused(event, ErrorCode.GROUP_ID_NOT_FOUND, problem)]
        return self._upgrade(entry, event, now_ms)

    def _upgrade(self, entry: Entry, event: consumer_events.Heartbeat, now_ms: int) -> Effects:
        """To look at all members is not done twice for one value of the group."""
        if entry.refusal is not None and entry.refusal[0] is entry.group:
            return [consumer_events.refused(event, *entry.refusal[1:])]
        inherits = conversion.taken_over(entry.group, self._topics.find)
        if inherits is None:
            entry.refusal = entry.group, ErrorCode.GROUP_ID_NOT_FOUND, _NOT_UNDERSTOOD
            return [consumer_events.refused(event, *entry.refusal[1:])]
        effects = self._handle_consumer(entry, replace(event, inherits=inherits), now_ms)
        for result in (effect.result for effect in effects if isinstance(effect, Reply)):
            too_large = ErrorCode.GROUP_MAX_SIZE_REACHED
            if isinstance(result, consumer_events.HeartbeatResult) and result.error == too_large:
                entry.refusal = entry.group, too_large, result.message or ""
        return effects

    def _handle_consumer(self, entry: Entry, event: consumer_events.Event, now_ms: int) -> Effects:
        group = entry.consumer or ConsumerGroup(entry.group.group_id)
        classic = _to_go_on_with(entry.group) if group.doubtful else None
        around = consumer_events.Around(self._settings.consumer, self._topics.find, self._topics.version, classic)
        group, effects = handle_consumer(group, event, around, now_ms)
        if not isinstance(event, consumer_events.Stored) or event.error != ErrorCode.NONE:
            entry.put(group)
            return effects
        if event.members is not None:
            return [*effects, *self._hand_over(entry, group, event, now_ms)]
        before = entry.group
        if group.epoch and not before.is_blank() and conversion.ENDED in event.records:
            effects = [*self._take_over(entry, group), *effects]
        entry.put(group)
        return effects

    def _take_over(self, entry: Entry, group: ConsumerGroup) -> list[consumer_events.Effect]:
        """The group is one of the consumer protocol now. Whoever waits for a rebalance of before joins this group instead."""
        before, entry.group = entry.group, Group(group.group_id)
        entry.timers.cancel_all()
        entry.waiting[:0] = [
            Join(
                *(member_id, PROTOCOL_TYPE, member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms),
                *(member.instance_id, member.client_id, member.client_host),
                token=before.joining[member_id],
            )
            for member_id, member in before.members.items()
            if member_id in before.joining
        ]
        syncing = [Reply(token, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)) for token in before.syncing.values()]
        return [*timers_of(group, self._settings.consumer), *syncing]

    def _hand_over(self, entry: Entry, group: ConsumerGroup, stored: consumer_events.Stored, now_ms: int) -> Effects:
        """The group is one of the classic protocol now."""
        assert stored.members is not None
        value = next(record.value for record in reversed(stored.records) if record.kind is Kind.CLASSIC)
        entry.consumer, entry.matched_with = None, {}
        entry.timers.cancel_all()
        entry.waiting[:0] = group.waiting
        inherited = apply(Group(group.group_id, members=stored.members), value)
        entry.group, effects = handle(inherited, JoinAgain(), self._settings, now_ms)
        return effects

    def records(self, entry: Entry, value: GroupMetadataValue | tuple[Record, ...]) -> list[KeyValue]:
        """See Machine."""
        if isinstance(value, tuple):
            return [write_consumer(entry.group.group_id, record) for record in value]
        return [write_group(entry.group.group_id, value)]

    def told(self, error: ErrorCode) -> ErrorCode:
        """See Machine."""
        return errors.told(error, _LOG_ERRORS_OF_GROUPS)


_OF_CONSUMERS = (
    consumer_events.Heartbeat,
    consumer_events.SessionExpired,
    consumer_events.RevocationExpired,
    consumer_events.RejoinExpired,
    consumer_events.SyncExpired,
    consumer_events.ClearUp,
    consumer_events.Stored,
    classic_events.Join,
    classic_events.Sync,
    classic_events.Heartbeat,
    classic_events.Leave,
)
_NOT_UNDERSTOOD = "the group is of the classic protocol, and what its members say is not understood"
_OF_THE_LOG = (classic_events.AssignmentStored, classic_events.EmptyStored, classic_events.StaticStored)


def _to_go_on_with(group: Group) -> GroupMetadataValue | None:
    """What the log shall say of a group of the classic protocol that stays one. None: nothing that a successor could go on with.

    In the middle of a rebalance nobody knows who reads what by the old generation's assignments: without a leader in its
    record, a successor lets all join again.
    """
    if group.is_blank() or (group.members and group.protocol is None):
        return None
    is_settled = group.state in (GroupState.STABLE, GroupState.EMPTY)
    return durable_value(group if is_settled else replace(group, leader=None))


def _must_wait(entry: Entry, event: Anything) -> bool:
    """While it is not certain that the group has become one of the consumer protocol. One that joins it is not to make it anew.

    An assignment that is on its way to the log when that shall begin is waited for: until then nobody knows who was told it.
    """
    between = entry.consumer is not None and not entry.consumer.epoch
    if isinstance(event, consumer_events.Heartbeat):
        return event.joins and (entry.group.storing or (between and not entry.group.is_blank()))
    return between and isinstance(event, classic_events.Event) and not isinstance(event, _OF_THE_LOG)
