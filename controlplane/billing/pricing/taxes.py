"""The tax on a bill: one line, on the sum of all others. Pure.

Rule. A month has the tax that was set for it: for the organisation, or else for everybody. Its line is the last one, and its
quantity the sum of all lines before it: charges, credits and adjustments of earlier months alike, which are taxed by the invoice
that they stand on. It is rounded once, half up. A rate of 0 is an exemption: there is no line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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


def tax_lines(tax: Tax | None, lines: Sequence[Line], month: Month) -> Iterator[Line]:
    """The line, where there is a tax and something to be taxed."""
    net = total(lines)
    if tax is not None and tax.rate and net:
        yield Line(TAX, net, UNIT, tax.rate, amount_of(net, tax.rate), month.start, month.end, tax.name, VERSION)


def tax_document(tax: Tax) -> dict[str, Any]:
    """JSON of it: part of an inputs document."""
    return {"name": tax.name, "rate": text_of(tax.rate)}


def tax_in(document: Mapping[str, Any] | None) -> Tax | None:
    """The other way; None: there was none."""
    return None if document is None else Tax(document["name"], Decimal(document["rate"]))
