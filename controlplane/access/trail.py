"""What brokers have written to the audit of an instance (`__sluice_audit`), the newest first.

The topic is read from its end backwards, a stretch at a time, until there are as many records as were asked for, or
MOST_LOOKED_AT have been looked at: a filter that fits hardly any costs no more than that, and the answer says where to go on.
Nothing is kept here: what retention has deleted is gone.

Times are those of what happened. A broker writes within seconds, or a minute where it counts denials, so `until` begins
LATEST_WRITTEN behind: what could only be written later than that, since the topic had no leader, is found without `until`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.core.errors import ClusterUnavailable, Invalid
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from controlplane.kafka import groups, record_door
from controlplane.kafka.topics import names_of
from quota.contracts.audit import AuditKind, AuditRecord
from quota.contracts.instance import ContractError
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.instances.models import Instance
    from controlplane.kafka.record_door import Reader
    from controlplane.tenants.models import Organisation

MOST_LOOKED_AT = 2_000
"""Records that one call reads, whatever it finds among them."""
STRETCH = 500
LATEST_WRITTEN = timedelta(minutes=2)
_PLACE = AUDIT_TOPIC, 0
USER = "User:"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """All that is said has to fit. `principal` is whole; a name without "User:" is the user of that name."""

    kind: AuditKind | None = None
    principal: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is said."""
        return self == AuditFilter()

    def takes(self, record: AuditRecord) -> bool:
        """Whether a record is wanted."""
        who = self.principal
        return (
            (self.kind is None or record.kind is self.kind)
            and (who is None or record.principal == (who if who.startswith(USER) else USER + who))
            and (self.outcome is None or record.outcome == self.outcome)
            and (self.since is None or record.time_ms >= _ms(self.since))
            and (self.until is None or record.time_ms < _ms(self.until))
        )


@dataclass(frozen=True, slots=True)
class AuditPage:
    """The newest first. `following`: where the next page goes on; None: there is nothing older."""

    is_on: bool  # whether brokers write now; what they have written stays either way
    is_there: bool  # whether anything was ever written
    records: list[AuditRecord]
    looked_at: int
    not_legible: int  # of these: written by a newer release
    following: int | None


def audit_page(
    *,
    organisation: Organisation,
    instance_id: str,
    wanted: AuditFilter | None = None,
    before: int | None = None,
    most: int = 50,
) -> AuditPage:
    """Up to `most` records; `before`: what the page before has called `following`.

    Raises NotFound, Invalid, ClusterUnavailable.
    """
    instance, wanted = instance_get(organisation=organisation, instance_id=instance_id), wanted or AuditFilter()
    if wanted.since and wanted.until and wanted.since > wanted.until:
        raise Invalid.field("from", "must not be later than to")
    is_on = bool(config_of(instance.config)["audit"])
    span = groups.spans(instance.cluster.address, instance.id, [_PLACE]).get(_PLACE)
    if span is None:
        return AuditPage(is_on, False, [], 0, 0, None)
    first = _first(instance, wanted, span.start, span.end)
    end = _end(instance, wanted, span.end) if before is None else min(before, span.end)
    look = _Look(wanted, most, first, end)
    if look.is_over:  # nothing is there: nobody need be asked
        return AuditPage(is_on, span.end > 0, [], 0, 0, None)
    physical = names_of(instance.id).topic_in(AUDIT_TOPIC), 0
    with record_door.reader(instance.cluster.address, physical) as reader:
        look.through(reader)
    following = look.at if look.at > first else None
    return AuditPage(is_on, True, look.found, look.looked_at, look.not_legible, following)


class _Look:
    """One look backwards, from `at` down to `first`."""

    def __init__(self, wanted: AuditFilter, most: int, first: int, at: int) -> None:
        self._wanted, self._most, self._first = wanted, most, first
        self.at = at  # everything from here on was looked at
        self.found: list[AuditRecord] = []
        self.looked_at = self.not_legible = 0

    @property
    def is_over(self) -> bool:
        return self.at <= self._first or len(self.found) >= self._most or self.looked_at >= MOST_LOOKED_AT

    def through(self, reader: Reader) -> None:
        """Stretch after stretch. What takes too long is where the next page goes on, if there was a stretch before it."""
        size = self._most if self._wanted.takes_everything else STRETCH
        while not self.is_over:
            first = max(self._first, self.at - min(size, MOST_LOOKED_AT - self.looked_at))
            try:
                records = reader.records(first, self.at)
            except ClusterUnavailable:
                if not self.looked_at:
                    raise
                return
            self._take(first, records)

    def _take(self, first: int, records: list[tuple[int, bytes]]) -> None:
        for offset, value in reversed(records):
            self.at = offset
            self.looked_at += 1
            try:
                record = AuditRecord.from_value(value)
            except ContractError:
                self.not_legible += 1
                continue
            if self._wanted.takes(record):
                self.found.append(record)
                if len(self.found) >= self._most:
                    return
        self.at = first


def _first(instance: Instance, wanted: AuditFilter, start: int, end: int) -> int:
    """Nothing before it is wanted: a record is written after it has happened."""
    if wanted.since is None:
        return start
    found = groups.offsets_at(instance.cluster.address, instance.id, [_PLACE], _ms(wanted.since)).get(_PLACE)
    return end if found is None else max(start, found)


def _end(instance: Instance, wanted: AuditFilter, end: int) -> int:
    if wanted.until is None:
        return end
    latest = _ms(wanted.until) + int(LATEST_WRITTEN.total_seconds() * 1000)
    found = groups.offsets_at(instance.cluster.address, instance.id, [_PLACE], latest).get(_PLACE)
    return end if found is None else min(end, found)


def _ms(moment: datetime) -> int:
    return max(0, int(moment.timestamp() * 1000))  # below it, ListOffsets means something else
