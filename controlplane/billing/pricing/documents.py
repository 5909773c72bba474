"""What a bill is computed from, as one JSON document, and back. Pure.

`inputs_document` holds the plans with their prices, the periods, the usage by the hour, what is late of earlier invoices,
and the moment; its canonical JSON (sorted, no spaces) has a SHA-256. The same document gives the same lines on any
machine, which is how an invoice is checked years later.

Version 2; 3 where something was paid in advance, bandwidth was elastic, its guarantee was missed, or there is a tax: then the
events, the hours and the days of these are in it too, with their price lists and terms, and the tax with its rate. Version 1 had
one plan for the month and the month's usage as one sum, and its lines did not name their plan; invoices that were closed
with it are still read and give the lines that they gave.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.pricing.adjustments import Late, adjustments
from controlplane.billing.pricing.credits import NO_CREDITS, Credits, credit_lines, credits_document, credits_in
from controlplane.billing.pricing.elastic import NOT_ELASTIC, Elastic, elastic_document, elastic_in, elastic_lines
from controlplane.billing.pricing.money import text_of
from controlplane.billing.pricing.plans import Band, Plan
from controlplane.billing.pricing.prepaid import BY_THE_HOUR, DAYS_FROM_EACH_START, Event, Prepaid, account_of
from controlplane.billing.pricing.prepaid_prices import prices_in
from controlplane.billing.pricing.rating import Hours, Line, Month, Period, Size, Term, Used, rate
from controlplane.billing.pricing.taxes import (
    NO_TAXES,
    Tax,
    Taxes,
    tax_document,
    tax_in,
    tax_lines,
    taxes_document,
    taxes_in,
)

VERSION, VERSION_WITH_MORE = 2, 3


def inputs_document(
    terms: Sequence[Term],
    periods: Sequence[Period],
    month: Month,
    now: datetime,
    hours: Hours,
    *,
    late: Sequence[Late] = (),
    waived: bool = False,
    prepaid: Prepaid = BY_THE_HOUR,
    elastic: Elastic = NOT_ELASTIC,
    credits_: Credits = NO_CREDITS,
    tax: Tax | None = None,
    taxes: Taxes = NO_TAXES,
) -> dict[str, Any]:
    """Everything that decides the lines, and whether all usage had been counted by then or that was waived."""
    more: dict[str, Any] = {"prepaid": _prepaid_document(prepaid)} if prepaid.events else {}
    more |= {"elastic": elastic_document(elastic)} if elastic.hours else {}
    more |= {"guarantee": credits_document(credits_)} if credits_.days else {}
    more |= {"tax": tax_document(tax)} if tax is not None else {}
    more |= {"taxes": taxes_document(taxes)} if taxes else {}
    more |= {"version": VERSION_WITH_MORE} if more else {}
    return {
        "version": VERSION,
        "terms": _terms_document(terms),
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
        "used": _hours_document(hours),
        "late": [_late_document(each) for each in late],
        "metering": "waived" if waived else "complete",
        **more,
    }


def besides_usage_in(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the lines besides plans, sizes and usage, as `inputs_document` takes it: for one that has the same."""
    return {
        "prepaid": prepaid_in(inputs),
        "elastic": elastic_in(inputs.get("elastic")),
        "credits_": credits_in(inputs.get("guarantee")),
        "tax": tax_in(inputs.get("tax")),
        "taxes": taxes_in(inputs.get("taxes")),
    }


def rated(inputs: Mapping[str, Any]) -> tuple[Line, ...]:
    """The lines of an inputs document: the month's own, then adjustments of earlier ones, then the tax on all of them."""
    month = month_of(inputs["month"])
    now = datetime.fromisoformat(inputs["now"])
    periods = periods_in(inputs)
    paid = account_of(prepaid_in(inputs), periods, now).paid
    terms = terms_in(inputs)
    own = rate(terms, periods, month, now, hours_in(inputs), paid)
    above = elastic_lines(elastic_in(inputs.get("elastic")), terms, month)
    back = credit_lines(credits_in(inputs.get("guarantee")), terms, periods, month, now)
    net = (*own, *above, *back, *(line for late in late_in(inputs) for line in adjustments(late)))
    return (*net, *tax_lines(tax_in(inputs.get("tax")), net, month, taxes_in(inputs.get("taxes"))))


def line_documents(inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of an inputs document as its invoice has them."""
    lines = [line_document(line) for line in rated(inputs)]
    if inputs["version"] == 1:
        return [{name: line[name] for name in LINE_1} for line in lines]
    return lines


def terms_in(inputs: Mapping[str, Any]) -> tuple[Term, ...]:
    """The plans, and from when on."""
    if inputs["version"] == 1:
        return (Term(month_of(inputs["month"]).start, _plan(inputs["plan"])),)
    return _terms(inputs["terms"])


def periods_in(inputs: Mapping[str, Any]) -> tuple[Period, ...]:
    """The sizes, and from when to when."""
    return tuple(
        Period(
            datetime.fromisoformat(period["start"]),
            None if period["until"] is None else datetime.fromisoformat(period["until"]),
            Size(Decimal(period["bandwidth_mb_per_s"]), Decimal(period["disk_gb"]), period["partitions"]),
        )
        for period in inputs["periods"]
    )


def hours_in(inputs: Mapping[str, Any]) -> dict[datetime, Used]:
    """What was used; of version 1 all in the month's first hour."""
    if inputs["version"] == 1:
        return {month_of(inputs["month"]).start: Used(**inputs["used"])}
    return _hours(inputs["used"])


def prepaid_in(inputs: Mapping[str, Any]) -> Prepaid:
    """What happened to what is paid in advance."""
    document = inputs.get("prepaid")
    if document is None:
        return BY_THE_HOUR
    events = (
        Event(
            kind=event["kind"],
            at=datetime.fromisoformat(event["at"]),
            months=event["months"],
            prices=None if event["prices"] is None else prices_in(event["prices"]),
            at_end=event["at_end"],
        )
        for event in document["events"]
    )
    return Prepaid(tuple(events), document.get("rule", DAYS_FROM_EACH_START))


def has_hours(inputs: Mapping[str, Any]) -> bool:
    """Whether it knows usage by the hour, or the month's sum only."""
    return int(inputs["version"]) > 1


def late_in(inputs: Mapping[str, Any]) -> tuple[Late, ...]:
    """What it bills of earlier invoices' months."""
    return tuple(
        Late(
            invoice=late["invoice"],
            month=month_of(late["month"]),
            terms=_terms(late["terms"]),
            lines={(item, datetime.fromisoformat(start)): number for item, start, number in late["lines"]},
            billed=_hours(late["billed"]),
            changed=_hours(late["changed"]),
            by_hour=late["by_hour"],
        )
        for late in inputs.get("late", ())
    )


def digest_of(inputs: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


LINE_1 = ("item", "quantity", "unit", "unit_price", "amount", "from", "to")
"""What a line said in version 1."""


def line_document(line: Line) -> dict[str, Any]:
    """A line as it is stored and shown: decimals as text. `adjusts` and `charged` only where there is one."""
    document: dict[str, Any] = {
        "item": line.item,
        "quantity": text_of(line.quantity),
        "unit": line.unit,
        "unit_price": text_of(line.unit_price),
        "amount": text_of(line.amount),
        "from": moment_text(line.start),
        "to": moment_text(line.end),
        "plan": line.plan,
        "plan_version": line.plan_version,
    }
    if line.adjusts is not None:
        document["adjusts"] = asdict(line.adjusts)
    if line.charged is not None:
        document["charged"] = {"kind": line.charged.kind, "at": moment_text(line.charged.at)}
    return document


def month_of(text: str) -> Month:
    """From "2026-11". Raises ValueError."""
    year, _, month = text.partition("-")
    if len(text) != 7 or not (text.isascii() and year.isdigit() and month.isdigit()):
        raise ValueError("must be a month such as 2026-11")
    if not 1 <= int(month) <= 12:
        raise ValueError("must be a month such as 2026-11, from 01 to 12")
    if not 2000 <= int(year) <= 2999:
        raise ValueError("must be a month of the years 2000 to 2999")
    return Month(int(year), int(month))


def moment_text(moment: datetime) -> str:
    """RFC 3339 in UTC; a fraction only where there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _terms_document(terms: Sequence[Term]) -> list[dict[str, Any]]:
    return [{"start": moment_text(term.start), "plan": term.plan.document()} for term in terms]


def _terms(document: Sequence[Mapping[str, Any]]) -> tuple[Term, ...]:
    return tuple(Term(datetime.fromisoformat(term["start"]), _plan(term["plan"])) for term in document)


def _hours_document(hours: Hours) -> list[list[Any]]:
    return [
        [moment_text(hour), used.produced_bytes, used.consumed_bytes, used.stored_byte_seconds]
        for hour, used in sorted(hours.items())
    ]


def _hours(document: Sequence[Sequence[Any]]) -> dict[datetime, Used]:
    return {datetime.fromisoformat(hour): Used(*counts) for hour, *counts in document}


def _prepaid_document(prepaid: Prepaid) -> dict[str, Any]:
    return {
        "events": [
            {
                "kind": event.kind,
                "at": moment_text(event.at),
                "months": event.months,
                "prices": None if event.prices is None else event.prices.document(),
                "at_end": event.at_end,
            }
            for event in prepaid.events
        ],
        **({} if prepaid.rule == DAYS_FROM_EACH_START else {"rule": prepaid.rule}),
    }


def _late_document(late: Late) -> dict[str, Any]:
    return {
        "invoice": late.invoice,
        "month": str(late.month),
        "terms": _terms_document(late.terms),
        "lines": [[item, moment_text(start), number] for (item, start), number in sorted(late.lines.items())],
        "billed": _hours_document(late.billed),
        "changed": _hours_document(late.changed),
        "by_hour": late.by_hour,
    }


def _plan(document: Mapping[str, Any]) -> Plan:
    def typed(kind: type[Any], members: Mapping[str, Any]) -> dict[str, Any]:
        priced = {field.name for field in fields(kind) if "Decimal" in str(field.type)}
        return {
            name: Decimal(value) if name in priced and value is not None else value for name, value in members.items()
        }

    bands = tuple(Band(**typed(Band, band)) for band in document["bands"])
    return Plan(**{**typed(Plan, document), "bands": bands})
