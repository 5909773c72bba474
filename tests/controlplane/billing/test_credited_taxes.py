"""The tax in what a credit note gives back: how much it is, and that every paper of the note says so."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing import closing
from controlplane.billing.exports.credit_note_pdf import credit_note_pdf
from controlplane.billing.exports.focus import focus_csv
from controlplane.billing.models import Invoice, TaxRate
from controlplane.billing.pricing.credited_taxes import CreditedTax, credited_taxes
from controlplane.billing.pricing.money import CENT
from controlplane.billing.pricing.rating import Month

from .test_credit_note_files import document, text
from .test_credit_notes import note
from .test_invoice_chain import chained

__all__ = ["chained"]

TAXED = "inv-00000005"
NET = {"item": "bandwidth", "plan": "pro", "unit_price": "1.34", "amount": "1000.00"}


def tax(amount: str, rate: str = "0.06", name: str = "VAT") -> dict[str, str]:
    return {"item": "tax", "plan": name, "unit_price": rate, "amount": amount}


def cents(number: int) -> Decimal:
    return number * CENT


class TestTheRule:
    def test_a_note_has_the_share_of_the_tax_that_it_has_of_the_total(self):
        (found,) = credited_taxes([NET, tax("60.00")], Decimal("1060.00"), Decimal(0), Decimal("106.00"))
        assert found == CreditedTax(2, "VAT", Decimal("0.06"), Decimal("6.00"))
        assert str(found) == "VAT, 6 %"

    def test_of_an_invoice_without_a_tax_there_is_none(self):
        assert credited_taxes([NET], Decimal("1000.00"), Decimal(0), Decimal("10.00")) == ()

    def test_each_tax_has_a_part_and_what_was_paid_back_on_the_invoice_a_negative_one(self):
        found = credited_taxes(
            [NET, tax("100.00", "0.1"), tax("-10.00", "0.05", "GST")], Decimal("1090.00"), Decimal(0), Decimal("109.00")
        )
        assert [(each.line, each.name, each.amount) for each in found] == [
            (2, "VAT", Decimal("10.00")), (3, "GST", Decimal("-1.00")),
        ]  # fmt: skip

    @given(st.integers(1, 10**7), st.integers(0, 10**6), st.lists(st.integers(1, 99), max_size=12))
    def test_notes_of_which_nothing_is_left_have_all_of_the_tax(self, net, taxed, percents):
        lines, total = [NET, tax(str(cents(taxed)))], net + taxed
        amounts, left = [], total
        for percent in percents:
            amounts.append(part := left * percent // 100)
            left -= part
        before, found = 0, []
        for part in [each for each in (*amounts, left) if each]:
            (share,) = credited_taxes(lines, cents(total), cents(before), cents(part))
            assert 0 <= share.amount <= cents(part) + CENT
            assert share.amount == share.amount.quantize(CENT)
            found.append(share.amount)
            before += part
        assert sum(found) == cents(taxed)


class TestThePapers:
    TAXES = (CreditedTax(6, "VAT", Decimal("0.06"), Decimal("69.88")),)

    def test_focus_has_a_row_for_it_and_the_credit_is_without_it(self):
        content = focus_csv(document(taxes=self.TAXES)).decode()
        credit, taxed = csv.DictReader(io.StringIO(content, newline=""))
        assert (credit["ChargeCategory"], credit["BilledCost"], credit["x_InvoiceLine"]) == ("Credit", "-1164.62", "1")
        assert (taxed["ChargeCategory"], taxed["ChargeClass"], taxed["ChargeDescription"]) == (
            "Tax", "Correction", "Tax: VAT, 6 %",
        )  # fmt: skip
        assert {taxed[name] for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")} == {"-69.88"}
        assert (taxed["x_AdjustedInvoiceId"], taxed["x_AdjustedInvoiceLine"], taxed["x_InvoiceLine"]) == (
            "inv-00000017", "6", "2",
        )  # fmt: skip
        assert (taxed["PricingQuantity"], taxed["SkuId"]) == ("", "")

    def test_the_pdf_says_how_much_it_is_and_of_which(self):
        shown = text(credit_note_pdf(document(taxes=self.TAXES)))
        assert "GivenbackCNY1,234.50" in shown
        assert "WithouttaxCNY1,164.62" in shown
        assert "VAT,6%CNY69.88" in shown
        assert "tax" not in text(credit_note_pdf(document())).lower()


@pytest.fixture
def taxed(chained, instance) -> Invoice:
    """An invoice with a tax, behind four that have none."""
    since = datetime(2026, 5, 1, tzinfo=UTC)
    TaxRate(month="2026-06", name="VAT", rate=Decimal("0.06"), actor="o@x", at=since).save(force_insert=True)
    closing.invoice_close(instance=instance, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
    return Invoice.objects.for_organisation(chained).get(number=5)


def test_by_rest_a_note_says_its_taxes_and_those_of_one_that_is_given_back_whole_add_up(alice, chained, taxed):
    line = taxed.lines[-1]
    assert line["item"] == "tax"
    note(chained, "10.00")
    note(chained, "12.50", invoice=TAXED)
    note(chained, taxed.total - Decimal("12.50"), invoice=TAXED)
    first, *others = alice.api.get("/api/v1/credit-notes").json()["items"]
    assert (first["tax"], first["taxes"]) == ("0.00", [])
    expected = (Decimal("12.50") * Decimal(line["amount"]) / taxed.total).quantize(CENT)
    assert others[0]["taxes"] == [{"name": "VAT", "rate": "0.06", "amount": str(expected)}]
    assert [each["tax"] for each in others] == [str(expected), str(Decimal(line["amount"]) - expected)]
    assert alice.api.get("/api/v1/credit-notes/crn-00000003").json() == others[1]
    rows = alice.api.get("/api/v1/credit-notes/crn-00000003/focus.csv").content.decode()
    credit, of_tax = csv.DictReader(io.StringIO(rows, newline=""))
    assert Decimal(credit["BilledCost"]) + Decimal(of_tax["BilledCost"]) == -(taxed.total - Decimal("12.50"))
    assert of_tax["BilledCost"] == f"-{others[1]['tax']}"
