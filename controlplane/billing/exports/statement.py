"""What a month of an organisation comes to: its invoices of the month, and the credit notes written in it. Pure.

An invoice is of one instance, and an organisation may have hundreds. A statement adds them up and seals nothing: the documents
that it names are what counts. Sums are by currency: an organisation that has changed its currency may have documents in two.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from controlplane.billing.exports.credit_note import CreditNoteDocument
from controlplane.billing.pricing.money import total_of


@dataclass(frozen=True, slots=True)
class StatedInvoice:
    """An invoice in a line. Amounts may be negative."""

    number: str  # "inv-00000017"
    instance_id: str
    instance: str  # its name of today
    currency: str
    tax: Decimal  # in `total`
    total: Decimal
    issued: datetime  # UTC

    @property
    def net(self) -> Decimal:
        """Without its tax."""
        return self.total - self.tax


@dataclass(frozen=True, slots=True)
class CurrencySum:
    """Of the documents in one currency. `total`: invoices less credit notes, negative where more is given back."""

    currency: str
    tax: Decimal  # in `invoiced`
    invoiced: Decimal
    credited: Decimal
    credited_tax: Decimal  # in `credited`

    @property
    def net(self) -> Decimal:
        """Of the invoices, without tax."""
        return self.invoiced - self.tax

    @property
    def total(self) -> Decimal:
        return self.invoiced - self.credited


@dataclass(frozen=True, slots=True)
class Statement:
    """Invoices and notes by number. It is complete once no invoice of the month, and no note in it, can come any more."""

    seller: str
    organisation_id: str
    organisation: str  # its name of today
    month: str  # "2026-11"
    start: datetime  # UTC
    end: datetime  # the first moment of the next
    invoices: tuple[StatedInvoice, ...]
    notes: tuple[CreditNoteDocument, ...]  # what one corrects may be of an earlier month
    to_come: int  # instances that were there in the month, as far as is known, and have no invoice yet
    may_come: int  # instances that were gone before, and may bring an invoice that adjusts an earlier one
    is_complete: bool

    @property
    def sums(self) -> tuple[CurrencySum, ...]:
        """By currency; none where there is no document."""
        currencies = {each.currency for each in self.invoices} | {each.currency for each in self.notes}
        return tuple(map(self._sum, sorted(currencies)))

    def _sum(self, currency: str) -> CurrencySum:
        invoices = [each for each in self.invoices if each.currency == currency]
        notes = [each for each in self.notes if each.currency == currency]
        return CurrencySum(
            currency,
            tax=total_of(each.tax for each in invoices),
            invoiced=total_of(each.total for each in invoices),
            credited=total_of(each.amount for each in notes),
            credited_tax=total_of(each.amount - each.net for each in notes),
        )
