"""Usage that comes after its month was invoiced is adjusted on the next invoice, whichever that is, and once."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.billing import closing, services
from controlplane.billing.models import Invoice, Settled
from controlplane.billing.pricing.documents import moment_text
from controlplane.billing.pricing.rating import Month
from controlplane.billing.verification import invoice_verify, organisation_verify
from controlplane.billing.waiting import CLOSE_AFTER
from controlplane.instances.models import Instance, InstanceState, SpecChange
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.support.usage import usage_complete

GB = 10**9
APRIL, MAY, JUNE, JULY = (Month(2026, month) for month in (4, 5, 6, 7))


@pytest.fixture
def paying(alice, instance):
    """By traffic, since March 2026; 5 GB in April. Counters go up."""
    opened = datetime(2026, 3, 1, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    clock = ManualClock()
    clock.time = datetime(2026, 3, 1, tzinfo=UTC)
    services.plan_choose(organisation=alice.organisation, actor="a", plan="traffic", clock=clock)
    raised([row(instance.id, "2026-04-02T00", 5 * GB)])
    return Instance.objects.unscoped("a test").select_related("organisation").get(pk=instance.pk)


def close(instance, month: Month) -> Invoice | None:
    closing.invoice_close(instance=instance, month=month, now=month.end + CLOSE_AFTER)
    return Invoice.objects.unscoped("a test").filter(instance=instance, month=str(month)).first()


def lines(invoice: Invoice) -> list[tuple]:
    return [
        (line["item"], line["quantity"], line["amount"], line["from"][5:13], line["to"][5:13], line.get("adjusts"))
        for line in invoice.lines
    ]


def test_it_is_a_line_of_the_next_invoice_and_of_no_other(paying):
    assert lines(close(paying, APRIL)) == [("produced", "5", "3.00", "04-01T00", "05-01T00", None)]
    raised([row(paying.id, "2026-04-30T22", 7 * GB), row(paying.id, "2026-05-03T00", 8 * GB)])
    assert lines(close(paying, MAY)) == [
        ("produced", "1", "0.60", "05-01T00", "06-01T00", None),
        ("produced", "2", "1.20", "04-30T22", "04-30T23", {"invoice": "inv-00000001", "month": "2026-04", "line": 1}),
    ]
    assert lines(close(paying, JUNE)) == []
    raised([row(paying.id, "2026-04-30T23", 9 * GB)])
    assert [(*line[:3], line[5]["month"]) for line in lines(close(paying, JULY))] == [
        ("produced", "2", "1.20", "2026-04"),
        ("produced", "-1", "-0.60", "2026-05"),
    ], "counters only grow: what April has now, May no longer has"


def test_what_moves_from_one_month_to_the_one_before_is_paid_back_there(paying):
    close(paying, APRIL)
    raised([row(paying.id, "2026-05-03T00", 8 * GB)])
    close(paying, MAY)
    raised([row(paying.id, "2026-04-30T22", 7 * GB)])
    assert lines(close(paying, JUNE)) == [
        ("produced", "2", "1.20", "04-30T22", "04-30T23", {"invoice": "inv-00000001", "month": "2026-04", "line": 1}),
        ("produced", "-2", "-1.20", "05-03T00", "05-03T01", {"invoice": "inv-00000002", "month": "2026-05", "line": 1}),
    ]
    invoice = Invoice.objects.unscoped("a test").get(month="2026-06")
    assert invoice.total == 0


def test_the_sum_of_all_invoices_is_what_all_usage_costs(paying):
    """However it came."""
    close(paying, APRIL)
    for month, told in (
        (MAY, [row(paying.id, "2026-04-02T00", 5 * GB + 4_000_000), row(paying.id, "2026-05-01T00", 9 * GB)]),
        (JUNE, [row(paying.id, "2026-04-02T00", 5 * GB + 8_000_000), row(paying.id, "2026-04-09T00", 6 * GB)]),
        (JULY, [row(paying.id, "2026-05-01T00", 9 * GB + 7_777_777, consumed=123_456_789)]),
    ):
        raised(told)
        close(paying, month)
    sums = {"2026-04": Decimal(0), "2026-05": Decimal(0)}
    for invoice in Invoice.objects.unscoped("a test"):
        assert invoice.total == sum(Decimal(line["amount"]) for line in invoice.lines)
        for line in invoice.lines:
            sums[line.get("adjusts", {"month": invoice.month})["month"]] += Decimal(line["amount"])
    assert sums == {"2026-04": Decimal("3.60"), "2026-05": Decimal("1.80") + Decimal("0.03")}, (
        "6 GB; 3.008 and 0.123 GB"
    )


def test_an_invoice_with_adjustments_is_computed_again_from_its_own_inputs(paying, alice):
    close(paying, APRIL)
    raised([row(paying.id, "2026-04-30T22", 7 * GB)])
    [before] = invoice_verify(invoice=Invoice.objects.unscoped("a test").get(month="2026-04"))
    assert (before.code, before.invoiced, before.recomputed) == ("usage", "5 GB", "7 GB")
    close(paying, MAY)
    for invoice in Invoice.objects.unscoped("a test"):
        assert invoice_verify(invoice=invoice) == [], "what was adjusted is no difference any more"
    assert organisation_verify(organisation=alice.organisation) == []


def test_the_prices_are_those_of_the_invoice_that_is_adjusted(paying, alice):
    close(paying, APRIL)
    clock = ManualClock()
    clock.time = datetime(2026, 5, 1, tzinfo=UTC)
    services.plan_choose(organisation=alice.organisation, actor="a", plan="pro", clock=clock)
    raised([row(paying.id, "2026-04-30T22", 7 * GB)])
    [line] = [line for line in close(paying, MAY).lines if "adjusts" in line]
    assert (line["plan"], line["amount"]) == ("traffic", "1.20")


class TestAnInstanceThatIsGone:
    @pytest.fixture
    def gone(self, paying):
        """Deleted on 20 April."""
        close(paying, APRIL)
        deleted = datetime(2026, 4, 20, tzinfo=UTC)
        opened = datetime(2026, 4, 1, tzinfo=UTC)
        Instance.objects.unscoped("a test").update(created_at=opened, deleted_at=deleted, state=InstanceState.DELETED)
        return Instance.objects.unscoped("a test").select_related("organisation").get(pk=paying.pk)

    def run(self, month: Month) -> int:
        clock = ManualClock()
        clock.time = month.end + CLOSE_AFTER
        return closing.invoices_close(clock=clock)

    @pytest.fixture(autouse=True)
    def _metered(self, paying):
        usage_complete(datetime(2028, 1, 1, tzinfo=UTC))

    def test_it_gets_no_invoice_where_nothing_is_left_and_is_looked_at_once(self, gone, monkeypatch):
        assert self.run(MAY) == 0
        assert [row.month for row in Settled.objects.unscoped("a test")] == ["2026-05"]
        monkeypatch.setattr(closing, "_draft", None)
        assert self.run(MAY) == 0

    def test_it_gets_one_for_what_came_late(self, gone):
        raised([row(gone.id, "2026-04-19T22", 7 * GB)])
        assert self.run(MAY) == 1
        [line] = Invoice.objects.unscoped("a test").get(month="2026-05").lines
        assert (line["quantity"], line["amount"], line["adjusts"]["invoice"]) == ("2", "1.20", "inv-00000001")

    def test_after_a_year_the_matter_is_closed(self, gone):
        raised([row(gone.id, "2026-04-19T22", 7 * GB)])
        assert self.run(Month(2027, 5)) == 0
        assert self.run(Month(2027, 4)) == 1


def test_an_invoice_of_the_first_kind_is_adjusted_by_its_month(paying, alice):
    """It knew the sum of its usage only."""
    first = closing._draft(paying, APRIL, APRIL.end + CLOSE_AFTER)
    terms = first.inputs.pop("terms")
    del first.inputs["late"], first.inputs["metering"]
    first.inputs |= {
        "version": 1, "plan": terms[-1]["plan"],
        "used": {"produced_bytes": 5 * GB, "consumed_bytes": 0, "stored_byte_seconds": 0},
    }  # fmt: skip
    first.lines = closing.documents.line_documents(first.inputs)
    first.input_hash = closing.documents.digest_of(first.inputs)
    first.hash = first.sealed().hash()
    first.save(force_insert=True)
    assert invoice_verify(invoice=first) == []
    raised([row(paying.id, "2026-04-30T22", 7 * GB)])
    [line] = close(paying, MAY).lines
    assert (line["quantity"], line["from"], line["to"]) == ("2", moment_text(APRIL.start), moment_text(APRIL.end))
    assert line["adjusts"] == {"invoice": "inv-00000001", "month": "2026-04", "line": 1}
    assert close(paying, JUNE).lines == []
