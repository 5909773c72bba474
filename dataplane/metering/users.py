"""What users of instances moved on the wire, for records: those that changed, in the walk around all instances (`instances`).

Counters are cumulative for each (boot, instance, user). A user who is forgotten and comes again begins from zero, and so does
everybody of an instance that went and came back: so whatever begins later counts under another generation of the boot, as it is
with topics (`usage.boot_text`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dataplane.metering.hours import hour_text
from dataplane.metering.usage import boot_text
from quota.contracts.usage import UserRecord

if TYPE_CHECKING:
    from dataplane.tenancy.user_traffic import UserTraffic, UserTraffics


class Users:
    """Of all instances that this boot has seen."""

    def __init__(self, *, broker: int, boot: str, cluster: str) -> None:
        self._broker, self._boot, self._cluster = broker, boot, cluster
        self._generation = 0
        self._gone: dict[str, list[UserTraffics]] = {}  # of instances that are, and not told since
        self._due: deque[tuple[str, UserTraffics, UserTraffic]] = deque()

    @property
    def has_more(self) -> bool:
        """Whether anybody is still to be told."""
        return bool(self._due)

    def look_at(self, instance_id: str, users: UserTraffics | None, *, closes: bool, anew: bool) -> None:
        """Have those of an instance told who have changed. None: it is gone. `closes`, `anew`: as of the walk."""
        tables = self._gone.pop(instance_id, [])
        if users is not None:
            tables.append(users)
            if users.forget_gone(at_edge=closes):
                self._generation += 1
        for table in tables:
            if anew:
                table.tell_all()
            self._due.extend((instance_id, table, user) for user in table.changed)

    def next(self, hour: int) -> UserRecord | None:
        """The record of the one whose turn it is; None where it has been told since its turn was set."""
        instance_id, table, user = self._due.popleft()
        if user not in table.changed:
            return None
        del table.changed[user]
        user.boot = user.boot or table.last_boot or self._current
        return UserRecord(
            self._broker, user.boot, hour_text(hour), instance_id, user.name, *user.counted, cluster=self._cluster
        )

    def gone(self, instance_id: str, users: UserTraffics) -> None:
        """The broker forgets an instance: the next walk tells the rest. Whatever comes under its name counts from zero."""
        users.last_boot = self._current
        self._gone.setdefault(instance_id, []).append(users)
        self._generation += 1

    @property
    def _current(self) -> str:
        return boot_text(self._boot, self._generation)
