"""Invoices as a chain: each is sealed together with the one before it, so that none can be changed, taken out or slipped in.

Within an organisation invoices are numbered from 1 without gaps. The *hash* of one is the SHA-256 of the canonical JSON of
everything that it says (its lines, its total, the hash of its inputs) and of the hash of the invoice with the number
before; the first has 64 zeros for it. So whoever keeps the newest hash can check all that came before. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.pricing.documents import digest_of, moment_text

FIRST = "0" * 64
PREFIX = "inv-"
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


def number_text(number: int) -> str:
    """``inv-00000017``: how people and addresses name an invoice within its organisation."""
    return f"{PREFIX}{number:0{DIGITS}d}"


def number_of(text: str) -> int:
    """The other way. Raises ValueError."""
    digits = text.removeprefix(PREFIX)
    if text == digits or not (digits.isascii() and digits.isdigit() and len(digits) >= DIGITS):
        raise ValueError(f"must be a number such as {number_text(17)}")
    return int(digits)
