"""The tax on a bill: what is taxed, by which rate, and that every paper and sum has it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.models import User
from controlplane.billing import closing
from controlplane.billing.models import Invoice, TaxRate
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.forecast import Recent, forecast_document
from controlplane.billing.pricing.money import CENT, amount_of
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.prepaid import BOUGHT, Event, Prepaid
from controlplane.billing.pricing.prepaid_prices import PRO_PREPAID
from controlplane.billing.pricing.rating import Month, Period, Term, Used, spans_of, total
from controlplane.billing.pricing.sharing import TAXED, by_topic
from controlplane.billing.pricing.taxes import Tax, tax_lines
from controlplane.billing.pricing.what_if import what_if_document
from controlplane.billing.services import tax_set
from controlplane.billing.verification import invoice_verify
from controlplane.core.errors import Conflict, Invalid
from controlplane.core.models import AuditEntry
from tests.controlplane.billing.test_bill_api import at, billed
from tests.controlplane.fakes import ManualClock

from .documents import ISSUED, invoice
from .test_focus import read
from .test_golden_bill import LARGE, MAY, SMALL
from .test_invoice_pdf import text as words_of

VAT = Tax("VAT", Decimal("0.06"))
__all__ = ["billed"]


def worked(tax: Tax | None = VAT) -> dict:
    return documents.inputs_document((Term(MAY.start, PRO),), [SMALL, LARGE], MAY, ISSUED, {}, tax=tax)


class TestTheRule:
    """Pure."""

    def test_it_is_one_line_on_the_sum_of_all_others_rounded_once(self):
        *net, line = documents.rated(worked())
        assert total(net) == Decimal("3293.29")
        assert (line.item, line.quantity, line.unit, line.unit_price, line.amount) == (
            "tax", Decimal("3293.29"), "net", Decimal("0.06"), Decimal("197.60"),
        )  # fmt: skip
        assert (line.plan, line.start, line.end) == ("VAT", MAY.start, MAY.end)

    def test_a_document_without_a_tax_is_as_it_ever_was(self):
        assert "tax" not in worked(None)
        assert worked(None)["version"] == 2
        assert [line.item for line in documents.rated(worked(None))] == ["bandwidth", "disk", "partitions"] * 1 + [
            "bandwidth", "disk",
        ]  # fmt: skip

    def test_an_exemption_and_a_bill_of_nothing_have_no_line(self):
        assert list(tax_lines(Tax("VAT", Decimal(0)), documents.rated(worked(None)), MAY)) == []
        assert list(tax_lines(VAT, (), MAY)) == []

    @given(st.decimals("0.001", "1", places=5), st.integers(-(10**9), 10**9))
    def test_what_is_given_back_has_its_tax_given_back(self, rate, cents):
        """Half up by size: an amount and its opposite have taxes that add up to nothing."""
        assert amount_of(cents * CENT, rate) + amount_of(-cents * CENT, rate) == 0

    def test_what_is_paid_back_has_the_tax_with_which_it_was_paid(self):
        bought, back = datetime(2025, 4, 20, tzinfo=UTC), datetime(2025, 5, 10, tzinfo=UTC)
        prepaid = Prepaid((Event(BOUGHT, bought, 3, PRO_PREPAID),))
        periods = [Period(bought, back, SMALL.size)]
        terms, gst = (Term(MAY.start, PRO),), Tax("GST", Decimal("0.1"))
        for taxes, rates in (({}, [VAT.rate]), ({"2025-04": None}, []), ({"2025-04": gst}, [gst.rate])):
            inputs = documents.inputs_document(terms, periods, MAY, ISSUED, {}, prepaid=prepaid, tax=VAT, taxes=taxes)
            lines = documents.rated(inputs)
            refunds = total(line for line in lines if line.charged)
            assert refunds < 0
            assert [line.unit_price for line in lines if line.item == "tax" and line.quantity == refunds] == rates
            assert documents.rated(json.loads(json.dumps(inputs))) == lines
            assert what_if_document(inputs).get("taxes") == inputs.get("taxes")

    def test_forecast_and_what_if_are_taxed_as_the_bill_is(self):
        inputs = worked()
        recent = Recent(MAY.end, MAY.end)
        for document in (forecast_document(inputs, recent), what_if_document(inputs)):
            assert document["tax"] == {"name": "VAT", "rate": "0.06"}
            assert total(documents.rated(document)) == Decimal("3490.89")

    def test_it_is_shared_among_nobody_and_shares_still_add_up_to_the_bill(self):
        lines, spans = documents.rated(worked()), spans_of((Term(MAY.start, PRO),), MAY)
        shares = by_topic(lines, spans, {MAY.start: {"a": Used(2, 1, 5), "b": Used(1, 1, 1)}})
        assert [(each.item, each.amount) for each in shares.unshared if each.reason == TAXED] == [
            ("tax", Decimal("197.60"))
        ]
        together = sum(part.amount for part in shares.parts) + sum(each.amount for each in shares.unshared)
        assert together == shares.total == Decimal("3490.89")


class TestThePapers:
    def test_focus_has_a_row_for_it_with_no_price_and_no_quantity(self):
        rows = read(invoice(documents.rated(worked())))
        tax = rows[-1]
        assert (tax["ChargeCategory"], tax["BilledCost"], tax["ListCost"], tax["ContractedCost"]) == (
            "Tax", "197.60", "197.60", "197.60",
        )  # fmt: skip
        assert tax["ChargeDescription"] == "Tax: VAT, 6 %"
        assert {tax[name] for name in ("PricingQuantity", "PricingUnit", "ListUnitPrice", "SkuId", "ConsumedUnit")} == {
            ""
        }
        assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("3490.89")

    def test_the_pdf_says_name_and_rate(self):
        words = words_of(invoice(documents.rated(worked())))
        assert "VAT,6%" in words
        assert words.index("3,293.29") < words.index("VAT,6%"), "it is not one of the month's charges"
        assert "3,490.89" in words


@pytest.fixture
def operator(db) -> str:
    """Somebody who works for the service."""
    return User.objects.create_user("opal@example.com", "a long pass phrase", is_staff=True).email


@pytest.mark.django_db
class TestSettingIt:
    """`manage.py taxes`."""

    NOW = datetime(2026, 4, 10, tzinfo=UTC)

    def set(self, organisation, percent, month="2026-05", name="VAT"):
        clock = ManualClock()
        clock.time = self.NOW
        return tax_set(
            organisation=organisation,
            month=documents.month_of(month),
            name=name,
            percent=Decimal(percent),
            actor="o@x",
            clock=clock,
        )

    def test_an_organisations_own_goes_before_everybodys_whichever_began_later(self, alice, billed, monkeypatch):
        at(monkeypatch, datetime(2026, 6, 3, tzinfo=UTC))
        self.set(None, "6")
        assert self.of(alice, billed) == [("VAT", "0.06")]
        self.set(alice.organisation, "13.5", name="GST")
        assert self.of(alice, billed) == [("GST", "0.135")]
        self.set(alice.organisation, "0")
        assert self.of(alice, billed) == []

    def of(self, person, instance, month="2026-05"):
        body = person.api.get(f"/api/v1/instances/{instance.id}/bill?month={month}").json()
        assert Decimal(body["total"]) == sum(Decimal(line["amount"]) for line in body["lines"])
        return [(line["plan"], line["unit_price"]) for line in body["lines"] if line["item"] == "tax"]

    def test_it_counts_from_its_month_on_and_an_invoice_seals_it(self, alice, billed, monkeypatch):
        at(monkeypatch, datetime(2026, 6, 3, tzinfo=UTC))
        self.set(alice.organisation, "6")
        assert self.of(alice, billed, "2026-04") == []
        closing.invoice_close(instance=billed, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
        sealed = Invoice.objects.unscoped("a test").get()
        assert sealed.total == total(documents.rated(sealed.inputs))
        assert [each.code for each in invoice_verify(invoice=sealed) if each.code != "usage"] == []
        TaxRate.objects.unscoped("a test").update(
            rate=Decimal("0.07")
        )  # by hand: the service changes no month that has begun
        (difference,) = [each for each in invoice_verify(invoice=sealed) if each.code == "tax"]
        assert (difference.invoiced, difference.recomputed) == ("VAT, 6 %", "VAT, 7 %")
        assert self.of(alice, billed) == [("VAT", "0.06")]

    def test_a_month_that_has_begun_keeps_its_tax_and_all_that_is_wrong_is_said_at_once(self, alice):
        with pytest.raises(Conflict, match="2026-04 has begun"):
            self.set(None, "6", "2026-04")
        for percent in ("101", "-1", "1.2345", "NaN"):
            with pytest.raises(Invalid) as refused:
                self.set(None, percent, name=" ")
            assert [each.field for each in refused.value.errors] == ["name", "percent"]
        assert TaxRate.objects.unscoped("a test").count() == 0

    def test_the_command_sets_and_lists_and_an_organisations_is_in_its_trail(self, alice, operator):
        said = io.StringIO()
        call_command("taxes", stdout=said)
        call_command("taxes", "set", "VAT", "6", "--from", "2999-01", "--actor", operator, stdout=said)
        own = ["--organisation", alice.organisation.pk]
        call_command("taxes", "set", "GST", "0", "--from", "2999-02", "--actor", operator, *own, stdout=said)
        call_command("taxes", stdout=said)
        lines = said.getvalue().splitlines()
        assert lines[0] == "no tax was set: invoices have none"
        assert {f"everybody: VAT 6 % from 2999-01 on, by {operator}"} < {*lines}
        assert f"{alice.organisation.name} ({alice.organisation.pk}): GST 0 % from 2999-02 on, by {operator}" in lines
        entry = AuditEntry.objects.unscoped("a test").get(action="tax.set", target="GST")
        assert (entry.organisation_id, entry.actor) == (alice.organisation.pk, operator)
        unknown = ["x", "6", "--from", "2999-01", "--organisation", "org-none"]
        for words in (["x", "6", "--from", "2999"], ["x", "six", "--from", "2999-01"], unknown):
            with pytest.raises(CommandError):
                call_command("taxes", "set", *words, "--actor", operator)

    def test_everybodys_is_in_the_trail_of_each_organisation(self, alice, charlie):
        self.set(None, "6")
        self.set(alice.organisation, "13")
        entries = AuditEntry.objects.unscoped("a test").filter(action="tax.set").order_by("pk")
        new = {"name": {"from": None, "to": "VAT"}, "percent": {"from": None, "to": "6"}}
        everybody = {"month": "2026-05", **new, "of": "everybody"}
        assert [each.detail for each in entries.filter(organisation=charlie.organisation)] == [everybody]
        assert [each.detail["percent"]["to"] for each in entries.filter(organisation=alice.organisation)] == ["6", "13"]
        assert {(each.actor, each.target) for each in entries} == {("o@x", "VAT")}

    @pytest.mark.parametrize("actor", ["nobody@example.com", "alice", "", "gone@example.com"])
    def test_who_says_so_is_an_operator_of_the_service(self, alice, operator, actor):
        User.objects.create_user("gone@example.com", "a long pass phrase", is_staff=True, is_active=False)
        for said in (actor, alice.user.email):
            with pytest.raises(CommandError, match="no operator"):
                call_command("taxes", "set", "VAT", "6", "--from", "2999-01", "--actor", said)
        assert TaxRate.objects.unscoped("a test").count() == 0
        call_command("taxes", "set", "VAT", "6", "--from", "2999-01", "--actor", f" {operator.upper()}")
        assert TaxRate.objects.unscoped("a test").get().actor == operator
