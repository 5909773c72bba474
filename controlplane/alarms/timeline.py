"""Events of an instance in time order: health that changed, operations that began and ended, alarms that fired and were resolved.

Nothing is written for it: each is read from where it stands, the newest first, and merged. At the same moment the order is
that of the sources below, then of their keys, so a cursor (moment, number of the source, key) is exact: over pages no event
comes twice and none is left out. What is older than 90 days is not shown, and goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from controlplane.alarms.machine import EventKind
from controlplane.alarms.models import AlarmEvent
from controlplane.alarms.upkeep import KEPT
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.core.models import OperationState
from controlplane.core.selectors import operation_list
from controlplane.health.models import HealthSpell
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

    from controlplane.core.models import Operation
    from controlplane.tenants.models import Organisation

KINDS = (
    "health.began",
    "health.ended",
    "operation.began",
    "operation.succeeded",
    "operation.failed",
    "alarm.fired",
    "alarm.resolved",
)
NUMBERS = {str(number): number for number in range(5)}
OF_TEXT = (3, 4)
"""Sources by their number, and those whose keys are texts: operations."""
Place = tuple[datetime, int, "int | str"]
"""Of an event in the order: moment, number of its source, key."""


@dataclass(frozen=True, slots=True)
class Event:
    """`subject` is what people call it, `object` its id or code."""

    time: datetime
    kind: str  # one of KINDS
    subject: str
    object: str
    actor: str
    detail: str
    place: Place


@dataclass(frozen=True, slots=True)
class _Source:
    rows: QuerySet[Any]
    moment: str  # the field that it is ordered by
    event: Callable[[Any], tuple[str, str, str, str, str]]  # kind, subject, object, actor, detail


def events_get(
    *,
    organisation: Organisation,
    instance_id: str,
    after: Place | None = None,
    most: int,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Event]:
    """The newest ones, or those that follow after a place. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    oldest = clock.now() - KEPT
    streams = [
        _read(source, number, after, oldest, most) for number, source in enumerate(_sources(organisation, instance.pk))
    ]
    # Each is sorted, the newest first; so is what comes of them.
    return list(islice(merge(*streams, key=lambda event: (event.time, -event.place[1]), reverse=True), most))


def place_text(place: Place) -> tuple[str, str, str]:
    """For a cursor, or an address."""
    at, number, key = place
    return at.isoformat(), str(number), str(key)


def place_of(at: str, number: str, key: str) -> Place:
    """What `place_text` made. Raises Invalid."""
    try:
        moment, of = datetime.fromisoformat(at).astimezone(UTC), NUMBERS[number]
        return moment, of, key if of in OF_TEXT else _whole(key)
    except (KeyError, ValueError, OverflowError) as error:
        raise Invalid.field("cursor", "is not one that this service gave out") from error


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**63):
        raise ValueError(text)
    return int(text)


def _sources(organisation: Organisation, instance_id: str) -> list[_Source]:
    spells = HealthSpell.objects.filter(instance=instance_id)
    operations = operation_list(organisation=organisation).filter(target=instance_id)
    alarms = AlarmEvent.objects.for_organisation(organisation).filter(
        instance=instance_id, kind__in=[EventKind.FIRED.value, EventKind.RESOLVED.value]
    )
    return [
        _Source(alarms, "at", lambda row: (f"alarm.{row.kind}", row.name, row.alarm_id, row.actor, "")),
        _Source(spells, "ended_at", lambda row: ("health.ended", row.title, row.code, "", "")),
        _Source(spells, "began_at", lambda row: ("health.began", row.title, row.code, "", "")),
        _Source(
            operations.exclude(state=OperationState.RUNNING),
            "finished_at",
            lambda row: (f"operation.{row.state}", row.kind, row.pk, row.actor, row.error or _said(row)),
        ),
        _Source(operations, "created_at", lambda row: ("operation.began", row.kind, row.pk, row.actor, "")),
    ]


def _said(operation: Operation) -> str:
    """What an operation of a policy has to say when it has done its work."""
    said = (operation.result or {}).get("said", "")
    return said if isinstance(said, str) else ""


def _read(source: _Source, number: int, after: Place | None, oldest: datetime, most: int) -> Iterator[Event]:
    moment, rows = source.moment, source.rows.filter(**{f"{source.moment}__gte": oldest})
    if after is not None:
        at, of, key = after
        wanted = Q(**{f"{moment}__lt": at})
        if number > of:
            wanted |= Q(**{moment: at})
        elif number == of:
            wanted |= Q(**{moment: at, "pk__lt": key})
        rows = rows.filter(wanted)
    for row in rows.order_by(f"-{moment}", "-pk")[:most]:
        at = getattr(row, moment)
        yield Event(at, *source.event(row), place=(at, number, row.pk))
