"""Credit notes: an operator gives back a part or all of one invoice, and says why.

A note changes nothing of its invoice: it stands beside it, under a number of its own, chained to the note before (chain.py). What
all notes of an invoice give back together is never more than its total. Two operators may write at the same time: what is left
is computed after the head of the chain was read, so who finds the number taken computes it anew, with the other's note.
"""

from __future__ import annotations

import logging
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from controlplane.billing.chain import next_link, number_text
from controlplane.billing.models import CreditNote
from controlplane.billing.pricing.money import CENT, text_of
from controlplane.billing.selectors import credit_note_list, credited_of, invoice_get
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ConcurrentChange, Conflict, FieldProblem, Invalid, PreconditionFailed

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.billing.models import Invoice
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
ATTEMPTS = 20
LONGEST_REASON = 1000
WRITTEN = "credit_note.write"


def credit_note_write(
    *,
    organisation: Organisation,
    invoice: str,
    amount: Decimal,
    reason: str,
    actor: str,
    left: Decimal | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> CreditNote:
    """Give back an amount of the invoice with this number. `left`: what the operator has seen that is left of it.

    On record in the organisation's audit trail. Raises NotFound; Invalid; Conflict where nothing is left; PreconditionFailed
    where something else is left than was seen; ConcurrentChange where others are always faster.
    """
    of = invoice_get(organisation=organisation, number=invoice)
    for _ in range(ATTEMPTS):
        note = _draft(of, amount, reason.strip(), actor, left, clock.now())
        try:
            with transaction.atomic():
                note.save(force_insert=True)
                _record(note, organisation, invoice)
        except IntegrityError:
            if not _is_taken(note):
                raise  # no other operator is the reason: it would be refused each time
            continue  # another operator has taken the number, and perhaps what was left
        transaction.on_commit(partial(LOG.info, "%s, of %s: sealed as %s", note, invoice, note.hash))
        return note
    raise ConcurrentChange(f"{ATTEMPTS} numbers in a row were taken by others")


def _draft(of: Invoice, amount: Decimal, reason: str, actor: str, seen: Decimal | None, now: datetime) -> CreditNote:
    # The head is read before what is left: a note that comes after it takes the number, and then this draft is never saved.
    head = credit_note_list(organisation=of.organisation).order_by("-number").first()
    left = of.total - credited_of(of)
    if left <= 0:
        raise Conflict(
            f"nothing is left of {number_text(of.number)} that could be given back", code="nothing_to_credit"
        )
    problems = [*_amount_problems(amount, left, of.currency), *_reason_problems(reason)]
    if problems:
        raise Invalid.fields(problems)
    if seen is not None and seen != left:
        raise PreconditionFailed(
            f"{of.currency} {text_of(left)} is left of {number_text(of.number)} by now: look again"
        )
    number, previous_hash = next_link(head)
    note = CreditNote(
        number=number,
        organisation_id=of.organisation_id,
        invoice=of,
        currency=of.currency,
        amount=amount.quantize(CENT),
        reason=reason,
        actor=actor,
        created_at=now,
        previous_hash=previous_hash,
    )
    note.hash = note.sealed().hash()
    return note


def _is_taken(note: CreditNote) -> bool:
    """Whether another note has its number. The rows say so: in its error each database names a constraint another way."""
    return CreditNote.objects.for_organisation(note.organisation).filter(number=note.number).exists()


def _amount_problems(amount: Decimal, left: Decimal, currency: str) -> list[FieldProblem]:
    if not amount.is_finite() or amount <= 0:
        return [FieldProblem("amount", "must be above 0")]
    if amount > left:
        return [FieldProblem("amount", f"must be at most {text_of(left)}: so much {currency} is left of the invoice")]
    if amount != amount.quantize(CENT):
        return [FieldProblem("amount", "must have at most two decimals")]
    return []


def _reason_problems(reason: str) -> list[FieldProblem]:
    if not reason:
        return [FieldProblem("reason", "must say why: the tenant reads it")]
    if len(reason) > LONGEST_REASON:
        return [FieldProblem("reason", f"must have at most {LONGEST_REASON} characters")]
    # Control characters would forge lines, and PostgreSQL takes no NUL.
    return [] if reason.isprintable() else [FieldProblem("reason", "must be one line of printable characters")]


def _record(note: CreditNote, organisation: Organisation, invoice: str) -> None:
    detail = {"invoice": invoice, "amount": text_of(note.amount), "currency": note.currency, "reason": note.reason}
    audit.record(
        organisation=organisation,
        actor=note.actor,
        action=WRITTEN,
        target=note.number_text,
        detail=detail,
        at=note.created_at,
    )
