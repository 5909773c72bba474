"""Credit notes in the console: on the tenant's bill, and the form with which operators write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlencode

import pytest

from controlplane.billing import closing
from controlplane.billing.crediting import credit_note_write
from controlplane.billing.models import CreditNote, Invoice, TaxRate
from controlplane.billing.pricing.rating import Month
from controlplane.billing.services import tax_set
from controlplane.instances.models import SpecChange

from .conftest import text_of

PAGE = "/fleet/credit-notes"


@pytest.fixture
def invoice(instance):
    """March, closed."""
    SpecChange.objects.unscoped("a test").filter(instance=instance).update(at=datetime(2025, 3, 1, tzinfo=UTC))
    closing.invoice_close(instance=instance, month=Month(2025, 3), now=datetime(2025, 4, 2, tzinfo=UTC))
    return Invoice.objects.unscoped("a test").get(instance=instance)


@pytest.fixture
def address(invoice):
    return f"{PAGE}?{urlencode({'organisation': invoice.organisation_id, 'invoice': 'inv-00000001'})}"


def notes():
    return list(CreditNote.objects.unscoped("a test").order_by("number"))


def test_a_bill_lists_them_with_their_files(at_alice, alice, invoice):
    page = f"instances/{invoice.instance_id}/bill?month=2025-03"
    assert "Credit" not in text_of(at_alice.get(page))
    credit_note_write(
        organisation=alice.organisation, invoice="inv-00000001", amount=Decimal("12.50"), reason="the <port> was down",
        actor="ops@example.com",
    )  # fmt: skip
    shown = at_alice.get(page)
    text = text_of(shown)
    assert f"Credited: {invoice.currency} 12.50" in text
    after = f"{invoice.total - Decimal('12.50'):,.2f}".replace(",", " ")
    assert f"Total less credit notes: {invoice.currency} {after}" in text.replace("\xa0", " ").replace("\u202f", " ")
    assert re.search(r"would have cost [A-Z]{3} [0-9. \xa0\u202f]+\. [A-Z]", text), "a space between two sentences"
    assert "the &lt;port&gt; was down" in shown.content.decode()
    assert "crn-00000001" in text
    assert at_alice.address("credit-notes/crn-00000001/pdf") in shown.content.decode()
    assert at_alice.get("credit-notes/crn-00000001/pdf").content.startswith(b"%PDF")
    assert at_alice.get("credit-notes/crn-00000001/focus.csv").status_code == 200


def test_an_operator_sees_what_is_left_and_gives_back_a_part(at_staff, invoice, address):
    page = at_staff.get(address)
    assert f"Left of it {invoice.currency} {invoice.total:,.2f}".replace(",", " ") in text_of(page).replace("\xa0", " ")
    left = re.search(r'name="left" value="([0-9.]+)"', page.content.decode())[1]
    sent = {"amount": "12.50", "reason": "the port was down", "left": left}
    answer = at_staff.post(address, sent)
    assert (answer.status_code, answer["Location"]) == (302, address)
    [note] = notes()
    assert (note.amount, note.reason, note.actor) == (Decimal("12.50"), "the port was down", "admin@example.com")
    assert "crn-00000001 is written" in text_of(at_staff.get(address))
    again = at_staff.post(address, sent)
    assert again.status_code == 422
    assert "look again" in text_of(again)
    assert len(notes()) == 1


def test_operators_have_the_file_of_a_note(at_staff, at_alice, alice, invoice, address):
    sent = {"amount": "12.50", "reason": "the port was down", "left": str(invoice.total)}
    at_staff.post(address, sent)
    file = f"/fleet/organisations/{invoice.organisation_id}/credit-notes/crn-00000001/pdf"
    assert file in at_staff.get(address).content.decode()
    answer = at_staff.get(file)
    assert answer.content.startswith(b"%PDF")
    assert answer["Content-Disposition"] == 'attachment; filename="crn-00000001.pdf"'
    assert at_staff.get(file.replace("00000001/pdf", "00000009/pdf")).status_code == 404
    assert at_staff.get(file.replace(invoice.organisation_id, "org-00000000")).status_code == 404
    assert at_alice.client.get(file).status_code == 404


def test_the_tax_in_a_note_is_shown_to_both(at_staff, at_alice, instance):
    since = datetime(2025, 2, 1, tzinfo=UTC)
    TaxRate(month="2025-03", name="VAT", rate=Decimal("0.06"), actor="o@x", at=since).save(force_insert=True)
    SpecChange.objects.unscoped("a test").filter(instance=instance).update(at=datetime(2025, 3, 1, tzinfo=UTC))
    closing.invoice_close(instance=instance, month=Month(2025, 3), now=datetime(2025, 4, 2, tzinfo=UTC))
    written = Invoice.objects.unscoped("a test").get(instance=instance)
    address = f"{PAGE}?{urlencode({'organisation': written.organisation_id, 'invoice': 'inv-00000001'})}"
    sent = {"amount": "10.60", "reason": "the port was down", "left": str(written.total)}
    assert at_staff.post(address, sent).status_code == 302
    said = "10.60 with VAT, 6 %: 0.60"
    assert said in text_of(at_staff.get(address))
    assert said in text_of(at_alice.get(f"instances/{instance.pk}/bill?month=2025-03"))


@pytest.mark.parametrize(
    ("amount", "said"),
    [("99999999", "Must be at most"), ("0", "greater"), ("1.001", "decimal"), ("x", "number"), ("1e1", "number")],
)
def test_an_amount_that_is_none_is_said_beside_its_field(at_staff, invoice, address, amount, said):
    answer = at_staff.post(address, {"amount": amount, "reason": "sorry", "left": str(invoice.total)})
    assert answer.status_code == 422
    assert said in text_of(answer)
    assert notes() == []


def test_of_an_invoice_that_is_given_back_there_is_no_form(at_staff, invoice, address):
    at_staff.post(address, {"amount": str(invoice.total), "reason": "sorry", "left": str(invoice.total)})
    page = at_staff.get(address)
    assert "Nothing is left of this invoice" in text_of(page)
    assert 'name="amount"' not in page.content.decode()


@pytest.mark.parametrize(
    ("organisation", "number", "said"),
    [("org-00000000", "inv-00000001", "No organisation"), (None, "inv-00000009", "No invoice"), (None, "", "required")],
)
def test_what_is_not_there_is_said_beside_its_field(at_staff, invoice, organisation, number, said):
    named = {"organisation": organisation or invoice.organisation_id, "invoice": number}
    page = at_staff.get(f"{PAGE}?{urlencode(named)}")
    assert page.status_code == 422
    assert said.lower() in text_of(page).lower()


def test_operators_read_which_taxes_were_set_by_whom(at_staff, alice):
    assert "Taxes" not in text_of(at_staff.get("/fleet/invoices"))
    about = {"percent": Decimal(6), "actor": "opal@example.com"}
    tax_set(organisation=None, month=Month(2999, 1), name="VAT", **about)
    tax_set(organisation=alice.organisation, month=Month(2999, 2), name="GST", **about | {"percent": Decimal(0)})
    said = text_of(at_staff.get("/fleet/invoices"))
    assert "Taxes" in said
    assert "Everybody VAT, 6 % 2999-01 opal@example.com just now" in said
    assert f"{alice.organisation.name} {alice.organisation.pk} GST, 0 % 2999-02 opal@example.com just now" in said


def test_the_invoices_page_leads_there(at_staff):
    assert PAGE in at_staff.get("/fleet/invoices").content.decode()


def test_a_tenant_has_no_such_page(at_alice, address):
    assert at_alice.client.get(address).status_code in (302, 403, 404)
    assert at_alice.client.post(address, {"amount": "1", "reason": "x", "left": "1"}).status_code in (302, 403, 404)
    assert notes() == []
