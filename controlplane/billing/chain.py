"""Invoices as a chain: each is sealed together with the one before it, so that none can be changed, taken out or slipped in.

Within an organisation invoices are numbered from 1 without gaps. The *hash* of one is the SHA-256 of the canonical JSON of
everything that it says (its lines, its total, the hash of its inputs) and of the hash of the invoice with the number
before; the first has 64 zeros for it. So whoever keeps the newest hash can check all that came before.

Credit notes are a second chain of the organisation, with numbers of their own and by the same rule. The hash of one is of the
hash of its invoice too, so that it gives back a part of that invoice and of no other. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from controlplane.billing.pricing.documents import digest_of, moment_text

FIRST = "0" * 64
PREFIX = "inv-"
NOTE_PREFIX = "crn-"
DIGITS = 8


@dataclass(frozen=True, slots=True)
class Sealed:
    """What an invoice's hash is taken of."""

    number: int
    organisation: str  # ids
    instance: str
    month: str
    currency: str
    total: Decimal
    created_at: datetime
    lines: Sequence[Mapping[str, Any]]
    input_hash: str
    previous_hash: str

    def hash(self) -> str:
        """SHA-256, 64 hexadecimal digits."""
        return digest_of(
            {
                "chain": 1,
                "number": self.number,
                "organisation": self.organisation,
                "instance": self.instance,
                "month": self.month,
                "currency": self.currency,
                "total": f"{self.total:.2f}",
                "created_at": moment_text(self.created_at),
                "lines": list(self.lines),
                "input_hash": self.input_hash,
                "previous_hash": self.previous_hash,
            }
        )


@dataclass(frozen=True, slots=True)
class SealedNote:
    """What a credit note's hash is taken of."""

    number: int
    organisation: str  # its id
    invoice: int  # number of the one of which it gives back a part
    invoice_hash: str
    currency: str
    amount: Decimal
    reason: str
    actor: str
    created_at: datetime
    previous_hash: str  # of the note before

    def hash(self) -> str:
        """SHA-256, 64 hexadecimal digits."""
        return digest_of(
            {
                "credit_notes": 1,
                "number": self.number,
                "organisation": self.organisation,
                "invoice": self.invoice,
                "invoice_hash": self.invoice_hash,
                "currency": self.currency,
                "amount": f"{self.amount:.2f}",
                "reason": self.reason,
                "actor": self.actor,
                "created_at": moment_text(self.created_at),
                "previous_hash": self.previous_hash,
            }
        )


class Link(Protocol):
    """A row of a chain."""

    number: int
    previous_hash: str
    hash: str


def next_link(head: Link | None) -> tuple[int, str]:
    """Number and previous hash of what comes after the head; None: of the first."""
    return (1, FIRST) if head is None else (head.number + 1, head.hash)


def break_before(link: Link, before: Link | None, prefix: str, kind: str) -> tuple[str, str] | None:
    """Code and sentence, where a row does not follow the one that the chain has before it; None: it does."""
    number, previous_hash = next_link(before)
    if link.number != number:
        return "number", f"{number_text(number, prefix)} is missing before it"
    if link.previous_hash != previous_hash:
        return "chain", f"it does not follow the {kind} before it"
    return None


def number_text(number: int, prefix: str = PREFIX) -> str:
    """``inv-00000017``: how people and addresses name an invoice, or a credit note, within its organisation."""
    return f"{prefix}{number:0{DIGITS}d}"


def number_of(text: str, prefix: str = PREFIX) -> int:
    """The other way. Raises ValueError."""
    digits = text.removeprefix(prefix)
    if text == digits or not (digits.isascii() and digits.isdigit() and len(digits) >= DIGITS):
        raise ValueError(f"must be a number such as {number_text(17, prefix)}")
    return int(digits)
