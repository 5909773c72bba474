"""Events of an instance in time order, over pages: those of every source (`sources`), merged.

Nothing is written for it but spells of throttling: each event is read from where it stands, the newest first. What is older than
90 days is not shown, and goes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from controlplane.alarms.events import KINDS, Event, Place, Span
from controlplane.alarms.sources import NUMBERS, OF_TEXT, sources_of
from controlplane.alarms.upkeep import KEPT
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


def events_get(
    *,
    organisation: Organisation,
    instance_id: str,
    most: int,
    start: datetime | None = None,
    end: datetime | None = None,
    kinds: Sequence[str] = KINDS,
    after: Place | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Event]:
    """The newest ones in [start, end) of these kinds, or those that follow after a place. They outlive the instance.

    Raises NotFound.
    """
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    return events_of(instance, most=most, start=start, end=end, kinds=kinds, after=after, clock=clock)


def events_of(
    instance: Instance,
    *,
    most: int,
    start: datetime | None = None,
    end: datetime | None = None,
    kinds: Sequence[str] = KINDS,
    after: Place | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Event]:
    """The same of an instance that may be gone; the caller has it from a selector within its organisation."""
    now = clock.now()
    oldest = now - KEPT
    span = Span(oldest if start is None else max(start, oldest), end, frozenset(kinds), after)
    streams = [source.read(number, span, most) for number, source in enumerate(sources_of(instance, span, now))]
    # Each is sorted, the newest first; so is what comes of them.
    return list(islice(merge(*streams, key=lambda event: (event.time, -event.place[1]), reverse=True), most))


def kinds_named(text: str | None) -> Sequence[str]:
    """From names with commas between; all, where none is said. Raises Invalid."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise Invalid.field("kinds", f"there is no kind {unknown[0][:64]!r}; there are {', '.join(KINDS)}")
    return names or KINDS


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
