"""Rows that have expired, removed in portions of time: no statement removes more than one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Min

if TYPE_CHECKING:
    from django.db.models import Model

PORTIONS_AT_ONCE = 60
"""In one run of a task."""


def forget(model: type[Model], limit: int, portion_s: int, *, since: int = 0) -> None:
    """Rows of [`since`, `limit`) (seconds since 1970), the oldest first, `portion_s` of them at a time."""
    rows = model._default_manager.filter(at__gte=since)  # noqa: SLF001  # Django's documented API, despite its name
    for _ in range(PORTIONS_AT_ONCE):
        oldest = rows.filter(at__lt=limit).aggregate(least=Min("at"))["least"]
        if oldest is None:
            break
        rows.filter(at__lt=min(limit, oldest + portion_s)).delete()
