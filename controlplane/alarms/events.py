"""What an event of an instance is, which are wanted, and how those of one source are read: the newest first.

A *source* is one table, or one thing that is put together of several rows; `sources` has them all, by numbers. At the same moment
the order of events is that of these numbers, then of keys, so a *place* (moment, number of the source, key) is exact: over pages
no event comes twice, and none is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet

KINDS = (
    "health.began",
    "health.ended",
    "operation.began",
    "operation.succeeded",
    "operation.failed",
    "alarm.fired",
    "alarm.resolved",
    "instance.resized",
    "throttling.began",
    "throttling.ended",
    "broker.away",
    "broker.back",
    "rebalance.began",
    "rebalance.ended",
    "unread.expiring",
    "unread.safe",
    "group.rebalanced",
)
MARKED = ("instance.resized", "throttling.began", "throttling.ended", "broker.away", "alarm.fired")
"""What charts of the history have marks of."""
Place = tuple[datetime, int, "int | str"]
"""Of an event in the order: moment, number of its source, key."""
Sizes = dict[str, float]
"""By the members of an instance in REST."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event without its moment. `subject` is what people call it, `object` its id or code; sizes are of a resize."""

    kind: str  # one of KINDS
    subject: str
    object: str
    actor: str = ""
    detail: str = ""
    before: Sizes | None = None
    after: Sizes | None = None
    may_be_lost: bool = False  # of unread.safe: some records may have expired before they were read


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, and when."""

    time: datetime
    told: Told
    place: Place

    @property
    def kind(self) -> str:
        return self.told.kind


@dataclass(frozen=True, slots=True)
class Span:
    """Which events are wanted: those in [start, end), of these kinds, behind a place."""

    start: datetime
    end: datetime | None = None
    kinds: frozenset[str] = frozenset(KINDS)
    after: Place | None = None

    def has(self, place: Place) -> bool:
        """Whether an event of these kinds is among them."""
        if place[0] < self.start or (self.end is not None and place[0] >= self.end):
            return False
        if self.after is None:
            return True
        at, of, key = self.after
        if place[0] != at or place[1] != of:
            return place[0] < at or (place[0] == at and place[1] > of)
        return str(place[2]) < str(key)


@dataclass(frozen=True, slots=True)
class Rows:
    """Events that are a row each, of one kind or of several."""

    kinds: Mapping[str, Q]  # which rows are of which
    rows: QuerySet[Any]
    moment: str  # the field that it is ordered by
    told: Callable[[Any], Told]

    def read(self, number: int, span: Span, most: int) -> Iterator[Event]:
        """The newest ones."""
        wanted = [of_kind for kind, of_kind in self.kinds.items() if kind in span.kinds]
        if not wanted:
            return
        moment = self.moment
        rows = self.rows.filter(reduce(or_, wanted), **{f"{moment}__gte": span.start})
        if span.end is not None:
            rows = rows.filter(**{f"{moment}__lt": span.end})
        if span.after is not None:
            rows = rows.filter(_behind(span.after, moment, number))
        for row in rows.order_by(f"-{moment}", "-pk")[:most]:
            at = getattr(row, moment)
            yield Event(at, self.told(row), place=(at, number, row.pk))


@dataclass(frozen=True, slots=True)
class Few:
    """Events that are put together of many rows each: all of them, with their keys, which are texts."""

    kind: str
    found: Sequence[tuple[datetime, str, Told]] = field(default_factory=list)

    def read(self, number: int, span: Span, most: int) -> Iterator[Event]:
        """The newest ones."""
        if self.kind not in span.kinds:
            return
        events = [Event(at, told, place=(at, number, key)) for at, key, told in self.found]
        wanted = [event for event in events if span.has(event.place)]
        yield from sorted(wanted, key=lambda event: (event.time, str(event.place[2])), reverse=True)[:most]


Source = Rows | Few


def _behind(after: Place, moment: str, number: int) -> Q:
    at, of, key = after
    behind = Q(**{f"{moment}__lt": at})
    if number > of:
        behind |= Q(**{moment: at})
    elif number == of:
        behind |= Q(**{moment: at, "pk__lt": key})
    return behind
