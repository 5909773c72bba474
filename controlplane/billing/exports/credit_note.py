"""What a credit note says, as one value that every file of it is made from. Pure.

It is issued in one month and gives back a part of the invoice of another: its billing period is the month in which it was
written, what it corrects is in `month`, as with an adjustment on an invoice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from controlplane.billing.chain import NOTE_PREFIX, SealedNote, number_text
from controlplane.billing.exports.document import Names
from controlplane.billing.pricing.credited_taxes import CreditedTax
from controlplane.billing.pricing.documents import month_of
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.rating import Month


@dataclass(frozen=True, slots=True)
class CreditNoteDocument:
    """A credit note, ready to be written. `amount` is what is given back, above 0."""

    number: str  # "crn-00000003", within the organisation
    names: Names
    organisation_id: str
    instance_id: str
    invoice: str  # number of the one that it is about
    invoice_hash: str
    month: str  # the invoice's
    charged_from: datetime  # of that month, UTC
    charged_to: datetime
    start: datetime  # of the month in which it was issued, UTC
    end: datetime  # the first moment of the next
    currency: str  # ISO 4217
    amount: Decimal
    taxes: tuple[CreditedTax, ...]  # in the amount
    reason: str
    issued: datetime  # UTC
    hash: str
    previous_hash: str

    @property
    def net(self) -> Decimal:
        """What is given back without its taxes."""
        return self.amount - total_of(tax.amount for tax in self.taxes)


def credit_note_document(
    sealed: SealedNote, names: Names, *, instance: str, month: str, taxes: tuple[CreditedTax, ...]
) -> CreditNoteDocument:
    """Of what was sealed; instance, month and taxes follow from the invoice."""
    charged, issued = month_of(month), Month.of(sealed.created_at)
    return CreditNoteDocument(
        number=number_text(sealed.number, NOTE_PREFIX),
        names=names,
        organisation_id=sealed.organisation,
        instance_id=instance,
        invoice=number_text(sealed.invoice),
        invoice_hash=sealed.invoice_hash,
        month=month,
        charged_from=charged.start,
        charged_to=charged.end,
        start=issued.start,
        end=issued.end,
        currency=sealed.currency,
        amount=sealed.amount,
        taxes=taxes,
        reason=sealed.reason,
        issued=sealed.created_at,
        hash=sealed.hash(),
        previous_hash=sealed.previous_hash,
    )
