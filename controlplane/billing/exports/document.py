"""What an invoice says, as one value that every file of it is made from. Pure.

An invoice is of one instance and one month. Its lines are the month's own charges, and adjustments of months that had been
invoiced before. Decimals and moments are typed here, once; what a column or a page makes of them is the writers' matter.

The names of the organisation and of the instance are those of today: an invoice seals their ids only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.chain import Sealed, number_text
from controlplane.billing.pricing.documents import month_of
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.plans import Plan
from controlplane.billing.pricing.rating import TAX, Adjusts, Charged

TITLES: Mapping[str, str] = {
    "bandwidth": "Bandwidth",
    "disk": "Storage bought",
    "partitions": "Partitions beyond the free ones",
    "prepaid_bandwidth": "Bandwidth, in advance",
    "prepaid_disk": "Storage, in advance",
    "prepaid_partitions": "Partitions, in advance",
    "produced": "Records produced",
    "consumed": "Records consumed",
    "stored": "Storage used",
    "elastic_produced": "Produced above the bought bandwidth",
    "elastic_consumed": "Consumed above the bought bandwidth",
    "guarantee_credit": "Credit: bandwidth that could not be had",
    "tax": "Tax",
}
"""The items of a bill in words; the console says the same."""
CHARGED: Mapping[str, str] = {
    "purchase": "Paid in advance",
    "renewal": "Renewed in advance",
    "growth": "For a larger size",
    "refund": "Given back",
}
"""Why something was charged in advance, in words; the console says the same."""
UNITS: Mapping[str, str] = {
    "hour": "hours",
    "GB hour": "GB-hours",
    "100 GB hour": "x 100 GB-hours",
    "100 partitions hour": "x 100 partition-hours",
    "day": "days",
    "month": "months",
    "100 GB month": "x 100 GB-months",
    "100 partitions month": "x 100 partition-months",
    "net": "before tax",
}
"""The units of a bill in words, beside how many of them; documents keep their own. The console says the same."""


def unit_name(unit: str) -> str:
    """``x 100 GB-hours``; a unit without words of its own as it is."""
    return UNITS.get(unit, unit)


@dataclass(frozen=True, slots=True)
class Names:
    """What is called what today. Any text: writers escape it."""

    seller: str
    organisation: str
    instance: str


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of an invoice. `amount` is rounded to cents; quantity times unit price is exact and may differ by less.

    Of an adjustment, quantity and amount are differences: they may be negative, and their quotient is not the unit price.
    """

    number: int  # on the invoice, from 1
    item: str
    title: str
    quantity: Decimal
    unit: str  # as the invoice says it: "100 GB hour"
    unit_price: Decimal
    amount: Decimal
    start: datetime  # UTC, included
    end: datetime  # UTC, not included
    plan: str
    plan_version: int
    adjusts: Adjusts | None
    charged: Charged | None = None  # of what was paid in advance


@dataclass(frozen=True, slots=True)
class InvoiceDocument:
    """An invoice, ready to be written. `total` is the sum of its charges' amounts."""

    number: str  # "inv-00000017", within the organisation
    names: Names
    organisation_id: str
    instance_id: str
    month: str  # "2026-11"
    start: datetime  # of the month, UTC
    end: datetime  # the first moment of the next
    currency: str  # ISO 4217
    charges: tuple[Charge, ...]
    adjustments: tuple[Charge, ...]
    taxes: tuple[Charge, ...]  # on both
    total: Decimal
    issued: datetime  # UTC
    hash: str
    previous_hash: str
    is_waived: bool  # it did not wait until all usage had been counted

    @property
    def lines(self) -> tuple[Charge, ...]:
        """All of them, in the invoice's order."""
        return tuple(sorted((*self.charges, *self.adjustments, *self.taxes), key=lambda charge: charge.number))


def invoice_document(sealed: Sealed, names: Names, *, last_plan: Plan, waived: bool = False) -> InvoiceDocument:
    """Of what was sealed. `last_plan`: the month's; invoices of the first kind had one plan, and lines do not name it.

    Raises ValueError where the lines do not add up to the total: such an invoice was damaged, and is not handed out.
    """
    lines = [_charge(number, line, last_plan) for number, line in enumerate(sealed.lines, start=1)]
    if total_of(line.amount for line in lines) != sealed.total:
        raise ValueError(f"the lines of {number_text(sealed.number)} do not add up to {sealed.total}")
    month = month_of(sealed.month)
    return InvoiceDocument(
        number=number_text(sealed.number),
        names=names,
        organisation_id=sealed.organisation,
        instance_id=sealed.instance,
        month=sealed.month,
        start=month.start,
        end=month.end,
        currency=sealed.currency,
        charges=tuple(line for line in lines if line.adjusts is None and line.item != TAX),
        adjustments=tuple(line for line in lines if line.adjusts is not None),
        taxes=tuple(line for line in lines if line.item == TAX),
        total=sealed.total,
        issued=sealed.created_at,
        hash=sealed.hash(),
        previous_hash=sealed.previous_hash,
        is_waived=waived,
    )


def _charge(number: int, line: Mapping[str, Any], last_plan: Plan) -> Charge:
    adjusts, charged = line.get("adjusts"), line.get("charged")
    return Charge(
        number=number,
        item=line["item"],
        title=TITLES[line["item"]],
        quantity=Decimal(line["quantity"]),
        unit=line["unit"],
        unit_price=Decimal(line["unit_price"]),
        amount=Decimal(line["amount"]),
        start=datetime.fromisoformat(line["from"]),
        end=datetime.fromisoformat(line["to"]),
        plan=line.get("plan", last_plan.name),
        plan_version=line.get("plan_version", last_plan.version),
        adjusts=Adjusts(adjusts["invoice"], adjusts["month"], adjusts["line"]) if adjusts else None,
        charged=Charged(charged["kind"], datetime.fromisoformat(charged["at"])) if charged else None,
    )
