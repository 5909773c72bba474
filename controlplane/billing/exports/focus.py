"""An invoice as rows of FOCUS 1.2 (FinOps Open Cost and Usage Specification), one a charge, and those as CSV. Pure.

    https://focus.finops.org/focus-specification/v1-2/

Vocabulary. The *billing account* is the organisation, the *resource* the instance. There are no sub accounts: their
columns are null. Columns of our own begin with ``x_``, as the specification asks for.

Decisions.

* `BilledCost` and `EffectiveCost` are the invoice's amounts, rounded to cents: their sum is its total. `ListCost` and
  `ContractedCost` are quantity times unit price without rounding, because the specification wants that product to match.
  Nobody has a price other than the list's.
* What was paid in advance is a Purchase, in the invoice of the month in which it was paid; its charge period is the time that it
  pays for, and may reach beyond the billing period. What is paid back of it is a Purchase with negative amounts. `EffectiveCost`
  is not spread over that time: this service keeps no ledger of what has been used up.
* Every other charge is Usage: what is reserved is billed for each hour in which it is there. An adjustment is usage of a month
  invoiced before, so it stays Usage, with `ChargeClass` Correction; its charge period is in that month, its billing
  period is the invoice's. ``x_AdjustedInvoiceId`` and ``x_AdjustedInvoiceLine`` say what it corrects.
* Tax is a row of its own, a Tax, with no price, quantity or SKU: its costs are the tax alone, and the others' are without it.
* A credit note is a row, a Credit and a Correction of its invoice, and one for each tax in it, a Tax; `InvoiceId` is its
  own number, and its billing period the month in which it was written. Sums by `InvoiceId` stay those of the documents.
* A price of a plan's version is a `SkuPriceId`; bandwidth has one for each size on sale, so the price is part of the id.

CSV is for spreadsheets as well, and those take a text that begins with ``=``, ``+``, ``-`` or ``@`` for a formula: names
that tenants give get an apostrophe in front then. Numbers are written plainly; null is an empty field.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from controlplane.billing.exports.credit_note import CreditNoteDocument
from controlplane.billing.exports.document import CHARGED, TITLES, Charge, InvoiceDocument
from controlplane.billing.pricing.money import product_of, text_of
from controlplane.billing.pricing.rating import CREDIT, TAX
from controlplane.billing.pricing.taxes import tax_name
from controlplane.core.text import cell_text, second_text

VERSION = "1.2"
Value = str | Decimal | datetime | int | None
Row = Mapping[str, Value]
"""The value of each of COLUMNS."""


class Kind(StrEnum):
    """The specification's types of values."""

    STRING = "String"
    DECIMAL = "Decimal"
    MOMENT = "Date/Time"
    JSON = "JSON"
    INTEGER = "Integer"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, whether it may be null, and whether every data set has to have it."""

    name: str
    kind: Kind = Kind.STRING
    nullable: bool = False
    mandatory: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("BilledCost", Kind.DECIMAL, mandatory=True),
    Column("BillingAccountId", mandatory=True),
    Column("BillingAccountName", nullable=True, mandatory=True),
    Column("BillingCurrency", mandatory=True),
    Column("BillingPeriodEnd", Kind.MOMENT, mandatory=True),
    Column("BillingPeriodStart", Kind.MOMENT, mandatory=True),
    Column("ChargeCategory", mandatory=True),
    Column("ChargeClass", nullable=True, mandatory=True),
    Column("ChargeDescription", nullable=True, mandatory=True),
    Column("ChargeFrequency"),
    Column("ChargePeriodEnd", Kind.MOMENT, mandatory=True),
    Column("ChargePeriodStart", Kind.MOMENT, mandatory=True),
    Column("ConsumedQuantity", Kind.DECIMAL, nullable=True),
    Column("ConsumedUnit", nullable=True),
    Column("ContractedCost", Kind.DECIMAL, mandatory=True),
    Column("ContractedUnitPrice", Kind.DECIMAL, nullable=True),
    Column("EffectiveCost", Kind.DECIMAL, mandatory=True),
    Column("InvoiceId", nullable=True),
    Column("InvoiceIssuerName", mandatory=True),
    Column("ListCost", Kind.DECIMAL, mandatory=True),
    Column("ListUnitPrice", Kind.DECIMAL, nullable=True),
    Column("PricingCategory", nullable=True),
    Column("PricingQuantity", Kind.DECIMAL, nullable=True, mandatory=True),
    Column("PricingUnit", nullable=True, mandatory=True),
    Column("ProviderName", mandatory=True),
    Column("PublisherName", mandatory=True),
    Column("ResourceId", nullable=True),
    Column("ResourceName", nullable=True),
    Column("ResourceType", nullable=True),
    Column("ServiceCategory", mandatory=True),
    Column("ServiceName", mandatory=True),
    Column("ServiceSubcategory"),
    Column("SkuId", nullable=True),
    Column("SkuMeter", nullable=True),
    Column("SkuPriceDetails", Kind.JSON, nullable=True),
    Column("SkuPriceId", nullable=True),
    Column("SubAccountId", nullable=True),
    Column("SubAccountName", nullable=True),
    Column("x_AdjustedInvoiceId", nullable=True),
    Column("x_AdjustedInvoiceLine", Kind.INTEGER, nullable=True),
    Column("x_InvoiceLine", Kind.INTEGER),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of our price lists, as the specification writes units; and how many of which were used in each."""

    pricing: str
    consumed: str
    times: int = 1


UNITS: Mapping[str, Unit] = {
    "hour": Unit("Hours", "Hours"),
    "100 GB hour": Unit("100 GB-Hours", "GB-Hours", 100),
    "100 partitions hour": Unit("100 Partition-Hours", "Partition-Hours", 100),
    "month": Unit("Months", "Months"),
    "100 GB month": Unit("100 GB-Months", "GB-Months", 100),
    "100 partitions month": Unit("100 Partition-Months", "Partition-Months", 100),
    "day": Unit("Days", "Days"),
    "GB": Unit("GB", "GB"),
    "GB hour": Unit("GB-Hours", "GB-Hours"),
}

USAGE = "Usage"


def focus_csv(*documents: InvoiceDocument | CreditNoteDocument) -> bytes:
    """A header and a line for each charge of the invoices, and for each credit and its taxes; UTF-8, CRLF."""
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow([column.name for column in COLUMNS])
    for document in documents:
        rows = focus_rows(document) if isinstance(document, InvoiceDocument) else credit_rows(document)
        for row in rows:
            writer.writerow([_text(row[column.name]) for column in COLUMNS])
    return "".join(lines.written).encode("utf-8", errors="replace")


def focus_rows(document: InvoiceDocument) -> Iterator[Row]:
    """Typed, in the invoice's order."""
    for charge in document.lines:
        yield {**_frame(document), **_charged(charge), **_priced(charge)}


def credit_rows(note: CreditNoteDocument) -> Iterator[Row]:
    """A credit note: money that is given back, and no use of anything. What it corrects was charged in the invoice's month."""
    reason = f"Credit note on invoice {note.invoice} of {note.month}: {note.reason}"
    yield _given_back(note, note.net) | {
        "ChargeCategory": "Credit",
        "ChargeDescription": reason,
        "x_InvoiceLine": 1,
    }
    for number, tax in enumerate(note.taxes, start=2):
        yield _given_back(note, tax.amount) | {
            "ChargeCategory": "Tax",
            "ChargeDescription": f"{TITLES[TAX]}: {tax}",
            "x_AdjustedInvoiceLine": tax.line,
            "x_InvoiceLine": number,
        }


def _given_back(note: CreditNoteDocument, amount: Decimal) -> dict[str, Value]:
    return {
        **{column.name: None for column in COLUMNS if column.nullable},
        **_frame(note),
        **dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), -amount),
        "ChargeClass": "Correction",
        "ChargeFrequency": "One-Time",
        "ChargePeriodStart": note.charged_from,
        "ChargePeriodEnd": note.charged_to,
        "x_AdjustedInvoiceId": note.invoice,
    }


def _frame(document: InvoiceDocument | CreditNoteDocument) -> dict[str, Value]:
    """What is the same in every row of an invoice, and of a credit note."""
    return {
        "BillingAccountId": document.organisation_id,
        "BillingAccountName": document.names.organisation or None,
        "BillingCurrency": document.currency,
        "BillingPeriodStart": document.start,
        "BillingPeriodEnd": document.end,
        "InvoiceId": document.number,
        "InvoiceIssuerName": document.names.seller,
        "ProviderName": document.names.seller,
        "PublisherName": document.names.seller,
        "ResourceId": document.instance_id,
        "ResourceName": document.names.instance or None,
        "ResourceType": "Kafka instance",
        "ServiceCategory": "Integration",
        "ServiceSubcategory": "Messaging",
        "ServiceName": "Kafka",
        "SubAccountId": None,
        "SubAccountName": None,
    }


def _charged(charge: Charge) -> dict[str, Value]:
    """What it is for, and what it costs."""
    exact = charge.amount if charge.item == TAX else product_of(charge.quantity, charge.unit_price)
    adjusts = charge.adjusts
    return {
        "BilledCost": charge.amount,
        "EffectiveCost": charge.amount,
        "ListCost": exact,
        "ContractedCost": exact,
        "ChargeCategory": _category(charge),
        "ChargeClass": None if adjusts is None else "Correction",
        "ChargeDescription": _description(charge),
        "ChargeFrequency": "Usage-Based" if _category(charge) == USAGE else "One-Time",
        "ChargePeriodStart": charge.start,
        "ChargePeriodEnd": charge.end,
        "x_AdjustedInvoiceId": adjusts.invoice if adjusts else None,
        "x_AdjustedInvoiceLine": adjusts.line if adjusts else None,
        "x_InvoiceLine": charge.number,
    }


def _priced(charge: Charge) -> dict[str, Value]:
    """How much of what, and at which price. Of tax all is null: that is what the specification asks for."""
    if charge.item == TAX:
        return dict.fromkeys(PRICED)
    unit, price = UNITS[charge.unit], text_of(charge.unit_price)
    is_consumed = _category(charge) == USAGE  # the specification wants null where it is not
    return {
        "PricingCategory": "Standard",
        "PricingQuantity": charge.quantity,
        "PricingUnit": unit.pricing,
        "ConsumedQuantity": product_of(charge.quantity, Decimal(unit.times)) if is_consumed else None,
        "ConsumedUnit": unit.consumed if is_consumed else None,
        "ListUnitPrice": charge.unit_price,
        "ContractedUnitPrice": charge.unit_price,
        "SkuId": charge.item,
        "SkuMeter": charge.title,
        "SkuPriceId": f"{charge.plan}.{charge.plan_version}.{charge.item}.{price}",
        "SkuPriceDetails": json.dumps({"x_Plan": charge.plan, "x_PlanVersion": str(charge.plan_version)}),
    }


PRICED = (
    "PricingCategory", "PricingQuantity", "PricingUnit", "ConsumedQuantity", "ConsumedUnit", "ListUnitPrice",
    "ContractedUnitPrice", "SkuId", "SkuMeter", "SkuPriceId", "SkuPriceDetails",
)  # fmt: skip


def _category(charge: Charge) -> str:
    if charge.item == TAX:
        return "Tax"
    if charge.item == CREDIT:
        return "Credit"
    return USAGE if charge.charged is None else "Purchase"


def _description(charge: Charge) -> str:
    """No name that a tenant gave is in it."""
    if charge.item == TAX:
        return f"{charge.title}: {tax_name(charge.plan, charge.unit_price)}"
    if charge.charged is not None:
        return f"{charge.title}: {CHARGED[charge.charged.kind].lower()}"
    if charge.adjusts is None:
        return charge.title
    of_line = "" if charge.adjusts.line is None else f", line {charge.adjusts.line}"
    return f"{charge.title}: adjusts invoice {charge.adjusts.invoice} of {charge.adjusts.month}{of_line}"


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return text_of(value or abs(value))  # a product with nothing may be -0
    if isinstance(value, datetime):
        return second_text(value)
    if isinstance(value, int):
        return str(value)
    return cell_text(value)


class _Lines:
    """What csv writes to: it asks for no more than `write`."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, text: str, /) -> None:
        self.written.append(text)
