"""Reading what mirrors say, within an organisation.

A mirror writes a record each few seconds into `mirror-status` of the instance into which it copies (`records`). The last
MOST_RECORDS are looked at, and of each mirror the newest counts: one that is dead is shown as it was heard last, until others
have said much more. The bytes are the instance's own, as all that is read of its topics.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances.selectors import instance_get, refuse_isolated
from controlplane.kafka import groups, message_door
from controlplane.kafka.message_door import Room
from controlplane.kafka.topics import names_of
from controlplane.messages import debts
from controlplane.messages.selectors import spans_of
from controlplane.mirrors.records import STATUS_TOPIC, MirrorSaid, said

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation

MOST_RECORDS = 60
MOST_BYTES = 8 * 2**20
MOST_S = 4.0
LATE_AFTER = 3
"""Periods without a word, after which a mirror counts as silent."""
LEAST_LATE_S = 30.0


@dataclass(frozen=True, slots=True)
class Mirror:
    """One mirror, by the last that it has said."""

    said: MirrorSaid
    at: datetime
    age_s: float
    is_silent: bool

    @property
    def untold(self) -> int:
        """Partitions that are not told one by one."""
        return max(0, self.said.partitions - len(self.said.rows))


def mirrors_read(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> list[Mirror]:
    """By the source's name. Raises NotFound, Conflict, BandwidthUsedUp, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    address = instance.cluster.address
    if STATUS_TOPIC not in groups.topic_names(address, instance.id):
        return []
    refuse_isolated(instance)  # nobody consumes, this way neither
    debts.check_paid(instance.id)
    span = spans_of(instance, STATUS_TOPIC, [0])[0]
    first = max(span.start, span.end - MOST_RECORDS)
    with message_door.door(address).reader(names_of(instance.id).topic_in(STATUS_TOPIC)) as reader:
        room = Room(MOST_RECORDS, MOST_BYTES, time.monotonic() + MOST_S)
        taken = reader.read({0: (first, span.end)}, room)[0]
        debts.keep(instance.id, reader.wait_s)
    if taken.upto < span.end and room.is_late:
        raise ClusterUnavailable("the brokers did not send messages in time")
    latest: dict[str, MirrorSaid] = {}
    for message in taken.messages:
        found = said(message.value)
        if found is not None:
            latest[found.source] = found
    return [_mirror(found, clock) for _, found in sorted(latest.items())]


def _mirror(found: MirrorSaid, clock: Clock) -> Mirror:
    at = _moment(found.at_ms)
    age_s = max(0.0, round((clock.now() - at).total_seconds(), 1))
    return Mirror(found, at, age_s, age_s > max(LEAST_LATE_S, LATE_AFTER * found.every_s))


def _moment(at_ms: int) -> datetime:
    """Of a mirror whose clock is beyond all time: the last moment that there is."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)
