"""What a bill is computed from, as one JSON document, and back. Pure.

`inputs_document` holds the plan's prices, the periods, the usage and the moment; its canonical JSON (sorted, no spaces)
has a SHA-256. The same document gives the same lines on any machine, which is how an invoice is checked years later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.money import text_of
from controlplane.billing.plans import Band, Plan
from controlplane.billing.rating import Line, Month, Period, Size, Used, rate

VERSION = 1


def inputs_document(plan: Plan, periods: Sequence[Period], month: Month, now: datetime, used: Used) -> dict[str, Any]:
    """Everything that decides the lines."""
    return {
        "version": VERSION,
        "plan": plan.document(),
        "periods": [
            {
                "start": moment_text(period.start),
                "until": None if period.until is None else moment_text(period.until),
                "bandwidth_mb_per_s": str(period.size.bandwidth_mb_per_s),
                "disk_gb": str(period.size.disk_gb),
                "partitions": period.size.partitions,
            }
            for period in periods
        ],
        "month": str(month),
        "now": moment_text(now),
        "used": asdict(used),
    }


def rated(inputs: Mapping[str, Any]) -> tuple[Line, ...]:
    """The lines of an inputs document."""
    periods = [
        Period(
            datetime.fromisoformat(period["start"]),
            None if period["until"] is None else datetime.fromisoformat(period["until"]),
            Size(Decimal(period["bandwidth_mb_per_s"]), Decimal(period["disk_gb"]), period["partitions"]),
        )
        for period in inputs["periods"]
    ]
    month = month_of(inputs["month"])
    return rate(_plan(inputs["plan"]), periods, month, datetime.fromisoformat(inputs["now"]), Used(**inputs["used"]))


def digest_of(inputs: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def line_document(line: Line) -> dict[str, str]:
    """A line as it is stored and shown: decimals as text."""
    return {
        "item": line.item,
        "quantity": text_of(line.quantity),
        "unit": line.unit,
        "unit_price": text_of(line.unit_price),
        "amount": text_of(line.amount),
        "from": moment_text(line.start),
        "to": moment_text(line.end),
    }


def month_of(text: str) -> Month:
    """From "2026-11". Raises ValueError."""
    year, _, month = text.partition("-")
    if len(text) != 7 or not (text.isascii() and year.isdigit() and month.isdigit()):
        raise ValueError("must be a month such as 2026-11")
    if not (2000 <= int(year) <= 2999 and 1 <= int(month) <= 12):
        raise ValueError("must be a month of the years 2000 to 2999")
    return Month(int(year), int(month))


def moment_text(moment: datetime) -> str:
    """RFC 3339 in UTC; a fraction only where there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plan(document: Mapping[str, Any]) -> Plan:
    def typed(kind: type[Any], members: Mapping[str, Any]) -> dict[str, Any]:
        priced = {field.name for field in fields(kind) if "Decimal" in str(field.type)}
        return {
            name: Decimal(value) if name in priced and value is not None else value for name, value in members.items()
        }

    bands = tuple(Band(**typed(Band, band)) for band in document["bands"])
    return Plan(**{**typed(Plan, document), "bands": bands})
