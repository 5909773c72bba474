"""Groups as the runtime of coordinators sees them: which topic, what is done with an event, what is written for its effects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination import errors
from dataplane.coordination.effects import Store
from dataplane.groups.classic.model import Group
from dataplane.groups.classic.state import handle
from dataplane.groups.consumer import events as consumer_events
from dataplane.groups.consumer.model import Group as ConsumerGroup
from dataplane.groups.consumer.records import Kind, Record
from dataplane.groups.consumer.records import write as write_consumer
from dataplane.groups.consumer.state import handle as handle_consumer
from dataplane.groups.records import write_group
from dataplane.groups.shard import Entry, Groups, owner_of
from dataplane.protocol.errors import ErrorCode
from dataplane.slices import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import KeyValue
    from dataplane.groups.classic.events import Effect, Event
    from dataplane.groups.settings import GroupSettings
    from dataplane.groups.topics import Topics
    from dataplane.protocol.messages.group_records import GroupMetadataValue

_LOG_ERRORS_OF_GROUPS = {
    **errors.LOG_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,  # the members join again, and it is tried again
}


_ENDED = Record(Kind.CLASSIC)


def _ending(effect: consumer_events.Effect) -> consumer_events.Effect:
    """The same, with the classic group's tombstone in front of what is stored."""
    if not isinstance(effect, Store):
        return effect
    records = (_ENDED, *effect.value)
    return Store(records, replace(effect.then, records=records))


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

    def handle(
        self, entry: Entry, event: Event | consumer_events.Event, now_ms: int
    ) -> Sequence[Effect] | Sequence[consumer_events.Effect]:
        """See Machine."""
        if isinstance(event, consumer_events.Event):
            return self._handle_consumer(entry, event, now_ms)
        entry.group, effects = handle(entry.group, event, self._settings, now_ms)
        return effects

    def _handle_consumer(
        self, entry: Entry, event: consumer_events.Event, now_ms: int
    ) -> Sequence[consumer_events.Effect]:
        """Of the consumer protocol. Where the group was of the classic one, which is empty, that ends with the first records."""
        group = entry.consumer or ConsumerGroup(entry.group.group_id)
        around = consumer_events.Around(self._settings.consumer, self._topics.find, self._topics.version)
        if isinstance(event, consumer_events.Stored) and event.error == ErrorCode.NONE and _ENDED in event.records:
            entry.group = Group(entry.group.group_id)
        group, effects = handle_consumer(group, event, around, now_ms)
        entry.put(group)
        return effects if entry.group.is_blank() else [_ending(effect) for effect in effects]

    def records(self, entry: Entry, value: GroupMetadataValue | tuple[Record, ...]) -> list[KeyValue]:
        """See Machine."""
        if isinstance(value, tuple):
            return [write_consumer(entry.group.group_id, record) for record in value]
        return [write_group(entry.group.group_id, value)]

    def told(self, error: ErrorCode) -> ErrorCode:
        """See Machine."""
        return errors.told(error, _LOG_ERRORS_OF_GROUPS)
