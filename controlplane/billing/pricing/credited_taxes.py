"""How much tax is in what a credit note gives back. Pure.

Rule. A note gives back charges and their tax alike: of each tax of its invoice it has the share that its amount has of the total.
Shares are rounded for all notes up to one together, half up, and a note has what those before it do not have: so the notes of an
invoice of which nothing is left have all of its taxes, to the cent, however many they are.

No note seals it: the lines of its invoice and the notes before it are sealed, and give the same on any day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from controlplane.billing.pricing.money import CENT, amount_of, difference_of
from controlplane.billing.pricing.rating import TAX
from controlplane.billing.pricing.taxes import tax_name

CENTS = 100


@dataclass(frozen=True, slots=True)
class CreditedTax:
    """A part of one tax of an invoice."""

    line: int  # of the invoice, from 1
    name: str
    rate: Decimal
    amount: Decimal

    def __str__(self) -> str:
        """``VAT, 6 %``."""
        return tax_name(self.name, self.rate)


def credited_taxes(
    lines: Sequence[Mapping[str, Any]], total: Decimal, before: Decimal, amount: Decimal
) -> tuple[CreditedTax, ...]:
    """Of a note that gives back an amount of an invoice, of which notes have given back some before."""
    return tuple(_credited(lines, total, before, amount))


def _credited(
    lines: Sequence[Mapping[str, Any]], total: Decimal, before: Decimal, amount: Decimal
) -> Iterator[CreditedTax]:
    if not total:  # no note is written of such an invoice: the row was damaged since
        return
    for number, line in enumerate(lines, start=1):
        if line["item"] == TAX:
            tax = Decimal(line["amount"])
            part = difference_of(_share(tax, before + amount, total), _share(tax, before, total))
            yield CreditedTax(number, line["plan"], Decimal(line["unit_price"]), part)


def _share(tax: Decimal, credited: Decimal, total: Decimal) -> Decimal:
    """Of a tax, what is in so much of a total: in cents, half up by size."""
    cents = Fraction(tax) * Fraction(credited) / Fraction(total) * CENTS
    rounded = (abs(cents) + Fraction(1, 2)) // 1
    return amount_of(Decimal(-rounded if cents < 0 else rounded), CENT)
