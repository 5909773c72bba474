"""Invoices to make files of, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from controlplane.billing.chain import FIRST, Sealed
from controlplane.billing.exports.document import InvoiceDocument, Names, invoice_document
from controlplane.billing.pricing.documents import line_document
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.rating import total

from .bills import rate_under
from .test_golden_bill import LARGE, MAY, SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.billing.pricing.rating import Line, Period

NAMES = Names("Sluice", "Fruit and more", "orders")
ISSUED = datetime(2025, 6, 1, 6, 0, tzinfo=UTC)


def invoice(lines: Sequence[Line], *, names: Names = NAMES, waived: bool = False) -> InvoiceDocument:
    return invoice_document(sealed(lines), names, last_plan=PRO, waived=waived)


def sealed(lines: Sequence[Line], *, amount: Decimal | None = None) -> Sealed:
    return Sealed(
        number=17,
        organisation="org-fruitmore",
        instance="ins-abcdefgh",
        month=str(MAY),
        currency="CNY",
        total=total(lines) if amount is None else amount,
        created_at=ISSUED,
        lines=[line_document(line) for line in lines],
        input_hash="ab" * 32,
        previous_hash=FIRST,
    )


def worked(*periods: Period) -> InvoiceDocument:
    """The worked bill, or a part of it."""
    return invoice(rate_under(PRO, periods or (SMALL, LARGE), MAY, ISSUED))
