"""An invoice's PDF and FOCUS rows by REST: whose they are, what they are called, and that they say what the invoice says."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pypdf import PdfReader

from controlplane.billing import closing
from controlplane.billing.models import Invoice
from controlplane.billing.pricing.rating import Month
from controlplane.instances.models import Instance
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem

from .test_bill_api import billed  # noqa: F401  # a fixture
from .test_invoice_chain import anything_goes  # noqa: F401  # the same

PATHS = ["pdf", "focus.csv"]


@pytest.fixture
def invoiced(billed):  # noqa: F811
    """May of one instance, and June with late usage of May in it."""
    assert closing.invoice_close(instance=billed, month=Month(2026, 5), now=datetime(2026, 6, 1, 6, tzinfo=UTC))
    raised([row(billed.id, "2026-05-03T00", 7_500_000_000)])
    assert closing.invoice_close(instance=billed, month=Month(2026, 6), now=datetime(2026, 7, 1, 6, tzinfo=UTC))
    return billed


def file(person, number: str, path: str):
    return person.api.get(f"/api/v1/invoices/{number}/{path}")


def rows_of(answer) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))


def text_of(answer) -> str:
    return "".join("".join(page.extract_text().split()) for page in PdfReader(io.BytesIO(answer.content)).pages)


@pytest.mark.parametrize(
    ("path", "content_type", "name"),
    [
        ("pdf", "application/pdf", "inv-00000002.pdf"),
        ("focus.csv", "text/csv; charset=utf-8", "inv-00000002-focus.csv"),
    ],
)
def test_it_is_a_file_to_be_saved(alice, invoiced, path, content_type, name):
    answer = file(alice, "inv-00000002", path)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"] == content_type
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert file(alice, "inv-00000002", path).content == answer.content


@pytest.mark.parametrize("number", ["inv-00000001", "inv-00000002"])
def test_rows_say_what_the_invoice_says_and_add_up_to_it(alice, invoiced, number):
    invoice = alice.api.get(f"/api/v1/invoices/{number}").json()
    rows = rows_of(file(alice, number, "focus.csv"))
    assert [
        (row["SkuId"], row["PricingQuantity"], row["ListUnitPrice"], row["BilledCost"], row["ChargePeriodStart"])
        for row in rows
    ] == [
        (line["item"], line["quantity"], line["unit_price"], line["amount"], line["from"]) for line in invoice["lines"]
    ]
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal(invoice["total"])
    assert {row["InvoiceId"] for row in rows} == {number}
    assert {(row["BillingAccountId"], row["BillingAccountName"]) for row in rows} == {
        (alice.organisation.id, alice.organisation.name)
    }
    assert {(row["ResourceId"], row["ResourceName"]) for row in rows} == {(invoiced.id, invoiced.name)}


def test_what_came_late_is_a_correction_of_the_first(alice, invoiced):
    found = [row for row in rows_of(file(alice, "inv-00000002", "focus.csv")) if row["ChargeClass"] == "Correction"]
    assert [(row["SkuId"], row["x_AdjustedInvoiceId"], row["BillingPeriodStart"]) for row in found] == [
        ("produced", "inv-00000001", "2026-06-01T00:00:00Z")
    ]
    assert "Adjustsinvoiceinv-00000001of2026-05" in text_of(file(alice, "inv-00000002", "pdf"))


@pytest.mark.parametrize("number", ["inv-00000001", "inv-00000002"])
def test_pages_have_each_amount_the_total_and_the_hash(alice, invoiced, number):
    invoice = alice.api.get(f"/api/v1/invoices/{number}").json()
    shown = text_of(file(alice, number, "pdf"))
    assert f"Total{invoice['currency']}{Decimal(invoice['total']):,.2f}" in shown
    assert invoice["hash"] in shown
    for line in invoice["lines"]:
        assert f"{Decimal(line['amount']):,.2f}" in shown


def test_the_seller_is_said_by_the_installation(alice, invoiced, settings):
    from dataclasses import replace

    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, seller="Kafka & Sons")
    assert "FromKafka&Sons" in text_of(file(alice, "inv-00000001", "pdf"))
    row, *_ = rows_of(file(alice, "inv-00000001", "focus.csv"))
    assert (row["InvoiceIssuerName"], row["ProviderName"], row["PublisherName"]) == ("Kafka & Sons",) * 3


def test_they_outlive_the_instance(alice, invoiced):
    Instance.objects.unscoped("a test").update(state="deleted", deleted_at=datetime(2026, 7, 2, tzinfo=UTC))
    for path in PATHS:
        assert file(alice, "inv-00000001", path).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_another_organisations_is_answered_like_one_that_is_not_there(charlie, invoiced, path):
    theirs = problem(file(charlie, "inv-00000001", path), 404, "not_found")
    nothing = problem(file(charlie, "inv-00000009", path), 404, "not_found")
    assert {**theirs, "detail": theirs["detail"].replace("inv-00000001", "inv-00000009")} == nothing


@pytest.mark.parametrize("path", PATHS)
def test_an_invoice_that_is_not_what_was_sealed_is_not_handed_out(alice, invoiced, anything_goes, path):  # noqa: F811
    invoice = Invoice.objects.unscoped("a test").get(number=1)
    invoice.lines[0]["amount"] = "1.00"
    invoice.save()
    problem(file(alice, "inv-00000001", path), 409, "invoice_damaged")
    assert file(alice, "inv-00000002", path).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_it_is_read_and_never_changed(alice, invoiced, path):
    for method in (alice.api.post, alice.api.put, alice.api.delete):
        assert method(f"/api/v1/invoices/inv-00000001/{path}").status_code == 405
