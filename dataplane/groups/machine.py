"""Groups as the runtime of coordinators sees them: which topic, what is done with an event, what is written for its effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination import errors
from dataplane.groups.classic.state import handle
from dataplane.groups.records import write_group
from dataplane.groups.shard import Entry, Groups
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import KeyValue
    from dataplane.groups.classic.events import Effect, Event
    from dataplane.groups.settings import GroupSettings
    from dataplane.protocol.messages.group_records import GroupMetadataValue

_LOG_ERRORS_OF_GROUPS = {
    **errors.LOG_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,  # the members join again, and it is tried again
}


class GroupMachine:
    """See `coordination.machine.Machine`."""

    topic = OFFSETS_TOPIC

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings

    def new_contents(self, new_timers: Callable[[], Deadlines]) -> Groups:
        """See Machine."""
        return Groups(new_timers)

    def name_of(self, entry: Entry) -> str:
        """See Machine."""
        return entry.group.group_id

    def handle(self, entry: Entry, event: Event, now_ms: int) -> Sequence[Effect]:
        """See Machine."""
        entry.group, effects = handle(entry.group, event, self._settings, now_ms)
        return effects

    def records(self, entry: Entry, value: GroupMetadataValue) -> list[KeyValue]:
        """See Machine."""
        return [write_group(entry.group.group_id, value)]

    def told(self, error: ErrorCode) -> ErrorCode:
        """See Machine."""
        return errors.told(error, _LOG_ERRORS_OF_GROUPS)
