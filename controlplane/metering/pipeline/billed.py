"""What an instance was billed for, hour by hour: what its invoices were computed from, and what later ones adjusted. Pure.

An invoice seals the hours of its month that it was computed from (`inputs`, billing/pricing/documents.py, which this reads as
it stands in the database), and of earlier months the changes that it bills on top. So what was billed of an hour by now is the
hour of the month's own invoice, and every change to it that an invoice since has had. Invoices of the first kind knew their
month's sum only, and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Counters = tuple[int, int, int]
"""Record bytes produced and consumed, byte-seconds stored."""
BY_HOUR = 2
"""The version of inputs since which hours are known."""


def billed_hours(invoices: Iterable[tuple[str, Any]]) -> dict[str, dict[str, Counters]]:
    """Month -> hour -> what was billed, of one instance's invoices (month, inputs) in any order.

    A month that has an invoice by the hour is there, also where nothing was used in it; hours are written as usage records do.
    """
    read = [(month, document_of(inputs)) for month, inputs in invoices]
    found: dict[str, dict[str, Counters]] = {}
    for month, inputs in read:
        if inputs["version"] >= BY_HOUR:
            found[month] = dict(_hours(inputs["used"]))
    for _, inputs in read:
        for late in inputs.get("late", ()):
            hours = found.get(late["month"])
            if hours is not None and late["by_hour"]:
                for hour, changed in _hours(late["changed"]):
                    before = hours.get(hour, (0, 0, 0))
                    hours[hour] = (before[0] + changed[0], before[1] + changed[1], before[2] + changed[2])
    return found


def document_of(inputs: Any) -> Mapping[str, Any]:
    """As the driver of a database hands it over: text, or read already."""
    document: Mapping[str, Any] = json.loads(inputs) if isinstance(inputs, str | bytes) else inputs
    return document


def _hours(rows: Iterable[Iterable[Any]]) -> Iterator[tuple[str, Counters]]:
    for hour, produced, consumed, stored in rows:
        yield hour, (produced, consumed, stored)
