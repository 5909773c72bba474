"""The tax on a bill: one line, on the sum of all others. Pure.

Rule. A month has the tax that was set for it: for the organisation, or else for everybody. Its line is the last one, and its
quantity the sum of all lines before it: charges, credits and adjustments of earlier months alike, which are taxed by the invoice
that they stand on. It is rounded once, half up. A rate of 0 is an exemption: there is no line.

What is paid back of months paid in advance has the tax of the month in which these were charged, in a line of its own where that
is another: no tax is paid back that was not paid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from controlplane.billing.pricing.money import amount_of, product_of, text_of
from controlplane.billing.pricing.rating import TAX, Line, Month, total

UNIT = "net"
"""Of the line's quantity: money, before tax."""
PERCENT = 100
VERSION = 1
"""Of what is sealed of a tax."""


@dataclass(frozen=True, slots=True)
class Tax:
    """What it is called, such as "VAT", and its share of the net amount."""

    name: str
    rate: Decimal

    def __str__(self) -> str:
        """``VAT, 6 %``."""
        return tax_name(self.name, self.rate)


def tax_name(name: str, rate: Decimal) -> str:
    """As people say it. A line has the name where others have their plan, and the rate for its price."""
    return f"{name}, {product_of(rate, Decimal(PERCENT)).normalize():f} %"


Taxes = Mapping[str, Tax | None]
"""Of months whose tax is another than that of the bill, by the month."""
NO_TAXES: Taxes = MappingProxyType({})


def tax_lines(tax: Tax | None, lines: Sequence[Line], month: Month, others: Taxes = NO_TAXES) -> Iterator[Line]:
    """A line for each tax that something is to be taxed with. `others`: of the months in which what is paid back was charged."""
    taxed: dict[Tax | None, list[Line]] = {}
    for line in lines:
        charged = line.charged.of if line.charged else None
        own = tax if charged is None else others.get(str(Month.of(charged)), tax)
        taxed.setdefault(own, []).append(line)
    for each, found in taxed.items():
        net = total(found)
        if each is not None and each.rate and net:
            yield Line(TAX, net, UNIT, each.rate, amount_of(net, each.rate), month.start, month.end, each.name, VERSION)


def tax_document(tax: Tax) -> dict[str, Any]:
    """JSON of it: part of an inputs document."""
    return {"name": tax.name, "rate": text_of(tax.rate)}


def taxes_document(taxes: Taxes) -> dict[str, Any]:
    """Likewise."""
    return {month: None if tax is None else tax_document(tax) for month, tax in sorted(taxes.items())}


def taxes_in(document: Mapping[str, Any] | None) -> Taxes:
    """The other way; None: there were none."""
    return {month: tax_in(tax) for month, tax in (document or {}).items()}


def tax_in(document: Mapping[str, Any] | None) -> Tax | None:
    """The other way; None: there was none."""
    return None if document is None else Tax(document["name"], Decimal(document["rate"]))
