"""A credit note as a PDF and as a row of FOCUS 1.2: what they say, and whose they are."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pypdf import PdfReader

from controlplane.billing.chain import FIRST, SealedNote
from controlplane.billing.exports.credit_note import CreditNoteDocument, credit_note_document
from controlplane.billing.exports.credit_note_pdf import credit_note_pdf
from controlplane.billing.exports.document import Names
from controlplane.billing.exports.focus import COLUMNS, focus_csv

from .test_credit_notes import note
from .test_focus import NEVER_NULL
from .test_invoice_chain import chained  # noqa: F401  # a fixture

SEALED = SealedNote(
    number=3,
    organisation="org-fruitmore",
    invoice=17,
    invoice_hash="b" * 64,
    currency="CNY",
    amount=Decimal("1234.50"),
    reason="the port was down",
    actor="ops@example.com",
    created_at=datetime(2026, 7, 9, 7, 30, tzinfo=UTC),
    previous_hash=FIRST,
)


def document(taxes=(), **changes) -> CreditNoteDocument:
    sealed = replace(SEALED, **changes)
    names = Names("Sluice", "Fruit and more", "orders")
    return credit_note_document(sealed, names, instance="ins-abcdefgh", month="2026-05", taxes=taxes)


def row(of: CreditNoteDocument) -> dict[str, str]:
    (found,) = csv.DictReader(io.StringIO(focus_csv(of).decode(), newline=""))
    return found


def text(content: bytes) -> str:
    (page,) = PdfReader(io.BytesIO(content), strict=True).pages
    return "".join(page.extract_text().split())


def test_a_whole_row():
    said = {
        "BilledCost": "-1234.50", "EffectiveCost": "-1234.50", "ListCost": "-1234.50", "ContractedCost": "-1234.50",
        "BillingAccountId": "org-fruitmore", "BillingAccountName": "Fruit and more", "BillingCurrency": "CNY",
        "BillingPeriodStart": "2026-07-01T00:00:00Z", "BillingPeriodEnd": "2026-08-01T00:00:00Z",
        "ChargeCategory": "Credit", "ChargeClass": "Correction", "ChargeFrequency": "One-Time",
        "ChargeDescription": "Credit note on invoice inv-00000017 of 2026-05: the port was down",
        "ChargePeriodStart": "2026-05-01T00:00:00Z", "ChargePeriodEnd": "2026-06-01T00:00:00Z",
        "InvoiceId": "crn-00000003", "InvoiceIssuerName": "Sluice", "ProviderName": "Sluice", "PublisherName": "Sluice",
        "ResourceId": "ins-abcdefgh", "ResourceName": "orders", "ResourceType": "Kafka instance",
        "ServiceCategory": "Integration", "ServiceSubcategory": "Messaging", "ServiceName": "Kafka",
        "x_AdjustedInvoiceId": "inv-00000017", "x_InvoiceLine": "1",
    }  # fmt: skip
    assert row(document()) == {column.name: said.get(column.name, "") for column in COLUMNS}
    assert all(said[name] for name in NEVER_NULL)


def test_a_page_says_what_is_given_back_of_which_invoice_and_why():
    shown = text(credit_note_pdf(document()))
    for line in (
        "Creditnotecrn-00000003", "FromSluice", "ToFruitandmore(org-fruitmore)", "Oninvoiceinv-00000017of2026-05",
        "Instanceorders(ins-abcdefgh)", "Issued2026-07-0907:30UTC", "theportwasdown", "GivenbackCNY1,234.50",
        SEALED.hash(), FIRST, "b" * 64,
    ):  # fmt: skip
        assert line in shown
    assert "\N{LOZENGE}" not in shown


def test_the_same_note_gives_the_same_bytes():
    assert credit_note_pdf(document()) == credit_note_pdf(document())


@pytest.mark.parametrize("reason", ["<b>bold</b> & <para>", "x" * 1000, "a </para> of <img src='/etc/passwd'/>"])
def test_any_reason_fits_in(reason):
    assert "".join(reason.split()) in text(credit_note_pdf(document(reason=reason)))


def test_a_reason_in_chinese_can_be_read_and_what_the_fonts_lack_is_said():
    found = text(credit_note_pdf(document(reason="三号机房断电: 退还半天 <half a day>")))
    assert "三号机房断电:退还半天<halfaday>" in found
    assert "\N{LOZENGE}" not in found
    assert "\N{LOZENGE}standsforacharacter" in text(credit_note_pdf(document(reason="\N{PILE OF POO}")))


@pytest.mark.parametrize(
    ("path", "content_type", "name"),
    [
        ("pdf", "application/pdf", "crn-00000001.pdf"),
        ("focus.csv", "text/csv; charset=utf-8", "crn-00000001-focus.csv"),
    ],
)
def test_it_is_a_file_to_be_saved(alice, bob, chained, path, content_type, name):  # noqa: F811
    note(chained, "12.50")
    for person in (alice, bob):
        answer = person.api.get(f"/api/v1/credit-notes/crn-00000001/{path}")
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == content_type
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_rows_of_an_invoice_and_of_its_notes_add_up_to_what_is_left_of_it(alice, chained):  # noqa: F811
    note(chained, "12.50")
    note(chained, "0.01")
    files = ["invoices/inv-00000001", "credit-notes/crn-00000001", "credit-notes/crn-00000002"]
    answers = [alice.api.get(f"/api/v1/{each}/focus.csv").content.decode() for each in files]
    rows = [each for answer in answers for each in csv.DictReader(io.StringIO(answer, newline=""))]
    invoice = alice.api.get("/api/v1/invoices/inv-00000001").json()
    assert sum(Decimal(each["BilledCost"]) for each in rows) == Decimal(invoice["total"]) - Decimal(invoice["credited"])
