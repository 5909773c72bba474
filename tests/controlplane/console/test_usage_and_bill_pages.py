"""Usage by day, hour and record; the bill, line by line, to the cent; the price beforehand."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from controlplane.billing import closing, services
from controlplane.billing import selectors as billing
from controlplane.billing.models import TaxRate
from controlplane.billing.pricing.plans import plans_on
from controlplane.billing.pricing.rating import Month
from controlplane.console.templatetags.console import money
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.models import Instance, SpecChange
from tests.controlplane.conftest import run_to_the_end
from tests.support.usage import instances_raise, usage_complete, usage_raise, usage_row

from .conftest import text_of

GIB = 2**30


@pytest.fixture
def used(instance):
    """Open since the first of March 2025; on the second, two hours with usage. Counters go up."""
    SpecChange.objects.unscoped("a test").filter(instance=instance).update(at=datetime(2025, 3, 1, tzinfo=UTC))
    usage_raise(
        usage_row(
            instance.id, f"2025-03-02T{hour:02}", produced, consumed=2 * produced, stored=3600 * produced,
            boot="boot-1", partition=2, offset=offset,
        )
        for hour, produced, offset in ((9, GIB, 17), (10, 3 * GIB, 4711))
    )  # fmt: skip
    return instance


def test_a_day_shows_its_hours_and_their_sum(at_alice, used):
    text = text_of(at_alice.get(f"instances/{used.id}/usage?day=2025-03-02"))
    assert "09:00 1 GiB 2 GiB 1 GiB-hours" in text
    assert "10:00 2 GiB 4 GiB 2 GiB-hours" in text
    assert "Total 3 GiB 6 GiB 3 GiB-hours" in text


def test_what_came_and_went_on_the_wire_stands_below_where_it_was_counted(at_alice, used):
    page = f"instances/{used.id}/usage?day=2025-03-02"
    assert "Came on the wire" not in text_of(at_alice.get(page))
    instances_raise(
        [
            (used.id, "b1", "2025-03-02T09:00:00Z", 1, 2 * GIB, GIB, 1_234, 0, 4_200, 0, 0, 0),
            (used.id, "b1", "2025-03-02T10:00:00Z", 1, 3 * GIB, GIB, 1_300, 0, 4_200, 0, 1, 0),
            (used.id, "b1", "2025-03-03T00:00:00Z", 1, 9 * GIB, GIB, 1_300, 0, 4_200, 0, 2, 0),
        ]
    )
    found = "Came on the wire 3 GiB Went on the wire 1 GiB Requests 1 300 Waited for a limit 4.2 s"
    assert found in text_of(at_alice.get(page))


def test_a_month_shows_its_days_and_leads_to_them(at_alice, used):
    page = at_alice.get(f"instances/{used.id}/usage?month=2025-03")
    assert "2025-03-02 3 GiB 6 GiB" in text_of(page)
    assert 'href="?day=2025-03-02"' in page.content.decode()


def test_an_hour_leads_to_the_record_it_was_counted_from(at_alice, used):
    page = at_alice.get(f"instances/{used.id}/usage?day=2025-03-02")
    assert at_alice.address(f"instances/{used.id}/usage/2025-03-02T10") in page.content.decode()
    text = text_of(at_alice.get(f"instances/{used.id}/usage/2025-03-02T10"))
    assert "orders 1 boot-1 2 GiB 2 147 483 648 B" in text
    assert "2 4 711" in text


def test_a_day_without_usage_says_what_to_do(at_alice, used):
    text = text_of(at_alice.get(f"instances/{used.id}/usage?day=2025-03-03"))
    assert "Nothing used on 2025-03-03" in text
    assert "How to connect" in text


@pytest.mark.parametrize(
    "query", ["day=today", "day=2025-02-30", "day=0001-01-01", "month=2025-13", "month=", "day=2025-3-2"]
)
def test_a_time_that_is_none_is_not_found(at_alice, used, query):
    assert at_alice.get(f"instances/{used.id}/usage?{query}").status_code == 404
    assert at_alice.get(f"instances/{used.id}/usage/{query[-5:]}").status_code == 404


def test_the_bill_says_what_was_billed_from_when_to_when(at_alice, used):
    page = at_alice.get(f"instances/{used.id}/bill?month=2025-03")
    text = text_of(page)
    assert "Bandwidth 2025-03-01 00:00 \N{EN DASH} 2025-04-01 00:00 744 hours 1.34 996.96" in text
    assert "Storage bought" in text
    assert "CNY 1 182.96" in text, "996.96 + 744 x 0.25"
    assert "Records produced" in text
    assert at_alice.address(f"instances/{used.id}/usage?month=2025-03") in page.content.decode()
    assert "By traffic, the whole month would be CNY" in text
    assert "2025-03-01 00:00 2025-04-01 00:00 5 MiB/s 10 GiB 60" in text


def test_a_month_before_the_instance_costs_nothing(at_alice, used):
    assert "Nothing to pay in 2025-02" in text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-02"))


def test_a_deleted_instances_bill_is_found_under_bills(at_alice, used):
    at_alice.post(f"instances/{used.id}/delete", {"confirmation": "events"})
    from controlplane.core.models import Operation

    run_to_the_end(Operation.objects.for_organisation(at_alice.organisation).get(kind="instance.delete").id)
    page = at_alice.get("bills")
    assert at_alice.address(f"instances/{used.id}/bill") in page.content.decode()
    assert "Deleted" in text_of(page)
    bill = at_alice.get(f"instances/{used.id}/bill?month=2025-03")
    assert "1 182.96" in text_of(bill)
    assert at_alice.address(f"instances/{used.id}/settings") not in bill.content.decode()


def test_the_price_is_shown_before_and_while_typing(at_alice, brokers):
    text = text_of(at_alice.get("instances/new"))
    assert "CNY 1 160.70 a month" in text, "730 x (1.34 + 0.25)"
    sizes = "bandwidth_mib_per_s=240&storage_gib=1000&partitions=1700"
    text = text_of(at_alice.get(f"instances/estimate?{sizes}"))
    assert "CNY 10.67 for every hour begun" in text, "7.86 + 2.50 + 0.31"
    assert "Partitions beyond the free ones 0.31 / hour" in text


@pytest.mark.parametrize("sizes", ["", "bandwidth_mib_per_s=x", "bandwidth_mib_per_s=1e400&storage_gib=1&partitions=1",
                                   "bandwidth_mib_per_s=-1&storage_gib=1&partitions=1"])  # fmt: skip
def test_sizes_that_are_none_have_no_price(at_alice, sizes):
    page = at_alice.get(f"instances/estimate?{sizes}")
    assert page.status_code == 200
    assert "Give all three sizes" in text_of(page)


def test_settings_show_the_price_now_beside_the_price_after(at_alice, instance):
    page = at_alice.post(
        f"instances/{instance.id}/settings",
        {"name": "", "bandwidth_mib_per_s": "240", "storage_gib": "10", "partitions": "60"},
    )
    text = text_of(page)
    assert "CNY 5 920.30 a month" in text
    assert "Now: CNY 1 160.70 a month" in text


def test_an_owner_chooses_a_plan_and_a_member_does_not(at_alice, at_bob, monkeypatch):
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: datetime(2026, 5, 20, 9, 30, tzinfo=UTC))
    assert at_bob.post("plan", {"plan": "traffic", "when": "now"}).status_code == 403
    answer = at_alice.post("plan", {"plan": "traffic", "when": "now"}, follow=True)
    assert "The plan is “By traffic” from 2026-05-20 10:00 UTC on." in text_of(answer)
    assert "You pay for what you use." in text_of(at_alice.get("instances/new"))
    at_alice.post("plan", {"plan": "gold", "when": "now"})
    text = text_of(at_bob.get("bills"))
    assert "Price plan: Pro, by the hour, paid in CNY. From 2026-05-20 10:00 UTC on: By traffic, paid in CNY." in text


def test_plans_stand_below_their_currency_which_is_not_said_twice(at_alice):
    page = at_alice.get("bills").content.decode()
    [choices] = re.findall(r'<select name="plan".*?</select>', page, re.DOTALL)
    assert re.findall(r'<optgroup label="([^"]+)"', choices) == ["CNY", "USD"]
    assert re.findall(r'<option value="[^"]+"[^>]*>([^<]+)<', choices) == [
        "Pro, by the hour", "By traffic", "Pro, by the hour, in USD", "By traffic, in USD",
    ]  # fmt: skip


def test_a_taxed_bill_says_which_tax_it_is_and_of_what(at_alice, used):
    since = datetime(2025, 2, 1, tzinfo=UTC)
    TaxRate(month="2025-03", name="VAT", rate=Decimal("0.06"), actor="o@x", at=since).save(force_insert=True)
    text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
    assert re.search(r"Tax VAT, 6 % 2025-03-01 00:00 . 2025-04-01 00:00 [0-9.\s]+ before tax 0\.06 ", text)


def chosen(page) -> dict[str, str]:
    """What the form of plans has, by name."""
    selects = re.finditer(r'<select name="(plan|when)".*?</select>', page.content.decode(), re.DOTALL)
    found = {select[1]: re.search(r'value="([^"]+)" selected', select[0]) for select in selects}
    return {name: option[1] for name, option in found.items() if option}


def test_a_plan_that_is_not_on_sale_is_refused_with_a_sentence(at_alice):
    answer = at_alice.post("plan", {"plan": "gold", "when": "now"}, follow=True)
    assert "Choose one of the plans that are listed, and when it takes effect. Nothing was changed." in text_of(answer)
    assert chosen(answer)["plan"] == "pro"


def test_who_has_seen_another_plan_looks_again(at_alice, monkeypatch):
    """A page that was opened before would take back, unseen, what was chosen since."""
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: datetime(2026, 5, 20, 9, 30, tzinfo=UTC))

    def seen() -> str:
        return re.search(r'name="seen" value="([^"]+)"', at_alice.get("bills").content.decode())[1]

    before = seen()
    at_alice.post("plan", {"plan": "traffic", "when": "next_month", "seen": before})
    answer = at_alice.post("plan", {"plan": "pro", "when": "now", "seen": before}, follow=True)
    assert "The plan was changed since you opened the page: look again. Nothing was changed now." in text_of(answer)
    assert "From 2026-06-01 00:00 UTC on: By traffic, paid in CNY." in text_of(answer)
    assert chosen(answer) == {"plan": "pro", "when": "now"}
    answer = at_alice.post("plan", {"plan": "traffic", "when": "next_month", "seen": before}, follow=True)
    assert chosen(answer) == {"plan": "traffic", "when": "next_month"}, "what was refused stays chosen"
    answer = at_alice.post("plan", {"plan": "pro", "when": "now", "seen": seen()}, follow=True)
    assert "The plan stays “Pro, by the hour”: no change is to come." in text_of(answer)
    assert "UTC on:" not in text_of(answer)


def test_a_bill_names_the_plans_of_its_month(at_alice, used, monkeypatch):
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: datetime(2025, 3, 10, 9, 30, tzinfo=UTC))
    at_alice.post("plan", {"plan": "traffic", "when": "now"})
    text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
    assert "Plan: Pro, by the hour, from 2025-03-10 10:00 UTC on By traffic." in text
    assert "Pro, by the hour, the whole month would be CNY" in text


def test_a_meter_that_is_absent_is_said(at_alice, instance, settings):
    from dataclasses import replace

    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="there is no Java here")
    text = text_of(at_alice.get(f"instances/{instance.id}/usage"))
    assert "Usage is not being metered here: There is no Java here. It is counted, and billed when" in text
    assert "a few seconds" not in text
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="")
    assert "a few seconds" in text_of(at_alice.get(f"instances/{instance.id}/usage"))


def test_a_bill_so_far_says_up_to_when_usage_was_counted(at_alice, used):
    usage_complete(datetime.now(UTC).replace(minute=15) - timedelta(days=2))
    counted = (datetime.now(UTC) - timedelta(days=2)).replace(minute=0)
    text = text_of(at_alice.get(f"instances/{used.id}/bill"))
    assert f"Usage has been counted up to {counted:%Y-%m-%d %H:%M} UTC" in text
    assert "counted up to" not in text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))


def test_sizes_of_a_month_that_is_over_end_with_it(at_alice, used):
    text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
    assert "2025-03-01 00:00 2025-04-01 00:00" in text
    assert " now " in text_of(at_alice.get(f"instances/{used.id}/bill"))


def test_a_size_between_two_on_sale_says_as_what_it_is_billed(at_alice, used):
    page = f"instances/{used.id}/bill/what-if?month=2025-03&ask=1&plan=pro&bandwidth_mib_per_s="
    assert "5 MiB/s is billed as 20 MiB/s" in text_of(at_alice.get(page + "5"))
    assert "50 MiB/s is billed as 60 MiB/s" in text_of(at_alice.get(page + "50"))
    assert "is billed as" not in text_of(at_alice.get(page + "40"))
    assert "is billed as" not in text_of(at_alice.get(page.replace("plan=pro", "plan=traffic") + "5"))


def test_bills_say_the_health_that_the_instances_say(at_alice, used, monkeypatch):
    from controlplane.console.views import bills

    health = type("Health", (), {"state": type("State", (), {"value": "degraded"}), "reasons": ()})
    monkeypatch.setattr(bills, "health_get", lambda instances: {each.id: health for each in instances})
    text = text_of(at_alice.get("bills"))
    assert "Degraded" in text
    assert "Running" not in text


def test_a_month_that_is_none_says_so(at_alice, used):
    for month in ("2026-13", "abc"):
        answer = at_alice.get(f"instances/{used.id}/bill?month={month}")
        assert (answer.status_code, "There is no such month" in text_of(answer)) == (404, True)


class TestInvoices:
    """March 2025 is over on 2 April; what was counted of it decides whether there is an invoice."""

    @pytest.fixture(autouse=True)
    def _second_of_april(self, used, monkeypatch):
        type(used).objects.unscoped("a test").update(created_at=datetime(2025, 3, 1, tzinfo=UTC))
        monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: datetime(2025, 4, 2, tzinfo=UTC))

    def close(self, month: int) -> None:
        for instance in Instance.objects.unscoped("a test").select_related("organisation"):
            now = datetime(2025, month + 1, 2, tzinfo=UTC)
            closing.invoice_close(instance=instance, month=Month(2025, month), now=now)

    def test_a_month_that_waits_says_so_in_words_of_its_tenant(self, at_alice, used):
        usage_complete(datetime(2025, 3, 31, 20, tzinfo=UTC))
        text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
        assert "Waiting for metering" in text
        assert "2025-03 is over, but not all that was used in it has been counted yet, so there is no invoice" in text
        assert "Counted so far: everything up to 2025-03-31 20:00 UTC" in text
        page = at_alice.get("bills")
        assert "Not all invoices of 2025-03 have been written: they wait until all that was used has been" in text_of(
            page
        )
        assert "2025-03: waiting for metering" in text_of(page)
        assert at_alice.address(f"instances/{used.id}/bill?month=2025-03") in page.content.decode()

    def test_one_that_no_longer_waits_is_on_its_way(self, at_alice, used):
        usage_complete(datetime(2025, 4, 1, 20, tzinfo=UTC))
        assert "Invoice on its way" in text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
        assert "wait" not in text_of(at_alice.get("bills"))

    def test_an_adjustment_says_what_it_adjusts_on_both_invoices(self, at_alice, used):
        self.close(3)
        usage_raise(
            [usage_row(used.id, "2025-03-31T23", 4 * GIB, consumed=6 * GIB, stored=3 * 3600 * GIB, boot="boot-1")]
        )
        self.close(4)
        text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-04"))
        assert (
            "Records produced Counted after 2025-03 was invoiced: adjusts invoice inv-00000001 , line 3"
            " 2025-03-31 23:00 \N{EN DASH} 2025-04-01 00:00 1.073742 GB" in text
        )
        text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
        assert "Total of invoice inv-00000001" in text
        assert "Adjusted by later invoices" in text
        assert "inv-00000002 Records produced 2025-03-31 23:00 \N{EN DASH} 2025-04-01 00:00 1.073742 GB 0.00" in text

    def test_an_invoice_is_compared_with_other_plans_by_one_look_at_the_usage(self, at_alice, used, monkeypatch):
        looked, looks = billing.inputs_of, []
        monkeypatch.setattr(billing, "inputs_of", lambda *given, **also: looks.append(given) or looked(*given, **also))
        text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
        assert len(looks) == 1
        asked = {"organisation": at_alice.organisation, "instance_id": used.id, "month": Month(2025, 3)}
        others = [plan for plan in plans_on(date(2025, 3, 1)) if plan.name != billing.bill_get(**asked).plan]
        assert len(others) > 1
        for plan in others:
            would = billing.bill_get(**asked, plan=plan.name)
            assert f"{plan.title}, the whole month would be {plan.currency} {money(would.total)}" in text

    def test_an_invoice_can_be_computed_once_more(self, at_viewer, at_charlie, used):
        self.close(3)
        bill = at_viewer.get(f"instances/{used.id}/bill?month=2025-03").content.decode()
        assert at_viewer.address("invoices/inv-00000001/verify") in bill
        assert "Equal: the seal" in text_of(at_viewer.get("invoices/inv-00000001/verify"))
        usage_raise(
            [usage_row(used.id, "2025-03-31T23", 4 * GIB, consumed=6 * GIB, stored=3 * 3600 * GIB, boot="boot-1")]
        )
        text = text_of(at_viewer.get("invoices/inv-00000001/verify"))
        assert "The invoice is as it was sealed. Known since then:" in text
        assert "is known by now that was not then: the next invoice in CNY adjusts it." in text
        assert "3, Records produced 3.221225472 GB 4.294967296 GB" in text
        assert at_charlie.get("invoices/inv-00000001/verify").status_code == 404

    def test_an_invoice_is_there_as_files(self, at_viewer, at_charlie, used):
        self.close(3)
        pages = [at_viewer.get("bills").content.decode(), at_viewer.get(f"instances/{used.id}/bill?month=2025-03")]
        bill = pages[1].content.decode()
        for path, content_type in (("pdf", "application/pdf"), ("focus.csv", "text/csv; charset=utf-8")):
            address = f"invoices/inv-00000001/{path}"
            assert f'href="{at_viewer.address(address)}" download' in bill
            assert at_viewer.get(address)["Content-Type"] == content_type
            assert at_charlie.get(address).status_code == 404
        assert f'href="{at_viewer.address("invoices/inv-00000001/pdf")}" download' in pages[0]
        assert "sluice bill pdf inv-00000001 &gt; FILE" in text_of(pages[1])
        assert "sluice bill focus inv-00000001 &gt; FILE" in text_of(pages[1])

    def test_a_statement_adds_up_a_month_and_leads_to_its_files(self, at_viewer, at_charlie, used):
        self.close(3)
        page = at_viewer.get("statement?month=2025-03")
        text = text_of(page)
        for words in ("2025-04 Complete 2025-03", "Without tax CNY 1 182.96", "Tax CNY 0.00", "inv-00000001 events"):
            assert words in text, words
        assert "sluice bill statement-pdf --month 2025-03 &gt; FILE" in text
        bill = f"instances/{used.id}/bill"
        assert f'href="{at_viewer.address(bill)}?month=2025-03"' in page.content.decode()
        for path, content_type in (("pdf", "application/pdf"), ("focus.csv", "text/csv; charset=utf-8")):
            address = f"statement/{path}?month=2025-03"
            assert f'href="{at_viewer.address(address)}" download' in page.content.decode()
            assert at_viewer.get(address)["Content-Type"] == content_type
        assert "inv-00000001" not in text_of(at_charlie.get("statement?month=2025-03"))

    def test_a_statement_that_lacks_an_invoice_says_so(self, at_alice, used):
        text = text_of(at_alice.get("statement?month=2025-03"))
        assert "2025-04 Not complete 1 invoice is still to come." in text
        assert "No invoice of this month, and no credit note in it." in text
        assert "is not over. Its invoices are written after its end." in text_of(at_alice.get("statement"))

    @pytest.mark.parametrize("path", ["statement", "statement/pdf", "statement/focus.csv"])
    @pytest.mark.parametrize("month", ["2025-13", "may", "2999-01", ""])
    def test_a_statement_of_no_month_is_not_found(self, at_alice, path, month):
        assert at_alice.get(f"{path}?month={month}").status_code == 404

    def test_bills_lead_to_the_statement_of_the_month_before(self, at_alice, used):
        before = Month.of(SYSTEM_CLOCK.now()).before(1)
        assert f'href="{at_alice.address("statement")}?month={before}"' in at_alice.get("bills").content.decode()

    def test_an_invoice_that_did_not_wait_says_so(self, at_alice, used):
        services.metering_waive(month=Month(2025, 3), instance_id=None, actor="ops@example.com", reason="r")
        closing.invoices_close()
        text = text_of(at_alice.get(f"instances/{used.id}/bill?month=2025-03"))
        assert "This invoice was written before everything had been counted." in text
