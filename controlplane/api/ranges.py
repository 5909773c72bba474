"""Spans of time, asked for with ``?from=`` and ``?to=``: RFC 3339 or a date, in UTC where no zone is said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid, in_one_pass

if TYPE_CHECKING:
    from rest_framework.request import Request


def range_of(request: Request, *, beginning: datetime | None = None) -> tuple[datetime, datetime]:
    """`from` (where it is not said, `beginning` or that of this month) and `to` (now). Raises Invalid."""
    now = SYSTEM_CLOCK.now()
    said_start, said_end = in_one_pass(lambda: moment_of(request, "from"), lambda: moment_of(request, "to"))
    end = said_end or now
    beginning = beginning or now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    start = said_start or min(end, beginning)
    if start > end:
        raise Invalid.field("from", "must not be later than to")
    return start, end


def span_of(request: Request) -> tuple[datetime | None, datetime | None]:
    """`from` and `to` of a list that needs neither; None: it is not said. Raises Invalid."""
    start, end = in_one_pass(lambda: moment_of(request, "from"), lambda: moment_of(request, "to"))
    if start is not None and end is not None and start > end:
        raise Invalid.field("from", "must not be later than to")
    return start, end


def moment_of(request: Request, name: str) -> datetime | None:
    """A moment that a query parameter names; None: it is not said. Raises Invalid."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        # A + that was not escaped in the address arrives as a space.
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid.field(name, "must be a date or time such as 2026-11-21 or 2026-11-21T09:00:00Z") from error
