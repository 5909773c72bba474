"""A second currency: its price lists, months in one and in the other, and what is never added up."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest
from pypdf import PdfReader

from controlplane.billing import closing, costs, selectors, services
from controlplane.billing.models import Invoice
from controlplane.billing.pricing.currencies import MixedCurrenciesError, check_sole_currency
from controlplane.billing.pricing.documents import inputs_document, rated
from controlplane.billing.pricing.elastic import ELASTIC_EDITIONS, PRO_ELASTIC, PRO_ELASTIC_USD
from controlplane.billing.pricing.plans import EDITIONS, PRO, PRO_USD, TRAFFIC, TRAFFIC_USD, plan_on
from controlplane.billing.pricing.prepaid import BOUGHT, Event, Prepaid
from controlplane.billing.pricing.prepaid_prices import PREPAID_EDITIONS, PRO_PREPAID, PRO_PREPAID_USD
from controlplane.billing.pricing.rating import Month, Period, Size, Term, Used, total
from controlplane.billing.verification import invoice_verify
from controlplane.billing.waiting import CLOSE_AFTER
from controlplane.core.errors import Conflict
from controlplane.instances.models import Instance, SpecChange
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem

GB = 10**9
MAY, JUNE, JULY = (Month(2026, month) for month in (5, 6, 7))
SMALL = Size(Decimal(20), Decimal(100), 400)


class TestPriceLists:
    """Each price in CNY divided by 7, rounded half up to four decimals; nothing else differs."""

    @staticmethod
    def divided(value):
        return (value / 7).quantize(Decimal("0.0001"), ROUND_HALF_UP)

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [(PRO_USD, PRO), (TRAFFIC_USD, TRAFFIC), (PRO_PREPAID_USD, PRO_PREPAID), (PRO_ELASTIC_USD, PRO_ELASTIC)],
        ids=lambda each: each.name,
    )
    def test_every_price_is_a_seventh(self, ours, theirs):
        assert (theirs.currency, ours.currency) == ("CNY", "USD")
        for name in (name for name in theirs.__dataclass_fields__ if "_per_" in name):
            price = getattr(theirs, name)
            assert getattr(ours, name) == (None if price is None else self.divided(price)), name
        for band, of_theirs in zip(getattr(ours, "bands", ()), getattr(theirs, "bands", ()), strict=True):
            prices = {name: self.divided(getattr(of_theirs, name)) for name in ("price", "step_price")}
            assert band == replace(of_theirs, **prices)

    def test_whatever_belongs_to_a_plan_has_its_currency(self):
        for edition in (*PREPAID_EDITIONS, *ELASTIC_EDITIONS):
            assert edition.prices.currency == plan_on(edition.plan, edition.valid_from).currency
        sold = {edition.plan.currency for edition in EDITIONS}
        assert sold == {edition.prices.currency for edition in PREPAID_EDITIONS} == {"CNY", "USD"}

    def test_a_month_in_usd(self):
        inputs = inputs_document(
            [Term(MAY.start, PRO_USD)], [Period(MAY.start, None, SMALL)], MAY, MAY.end, {MAY.start: Used(3 * GB)}
        )
        assert [(line.item, str(line.quantity), str(line.unit_price), str(line.amount)) for line in rated(inputs)] == [
            ("bandwidth", "744", "0.1914", "142.40"),
            ("disk", "744", "0.0357", "26.56"),
            ("produced", "3.000000000", "0", "0.00"),
        ]
        assert total(rated(inputs)) == Decimal("168.96")


class TestOneCurrencyABill:
    def inputs(self, plan, prices):
        events = (Event(BOUGHT, datetime(2026, 5, 3, tzinfo=UTC), 1, prices),)
        periods = [Period(MAY.start, None, SMALL)]
        return inputs_document([Term(MAY.start, plan)], periods, MAY, MAY.end, {}, prepaid=Prepaid(events))

    def test_lines_of_one_are_added_up(self):
        for inputs in (self.inputs(PRO, PRO_PREPAID), self.inputs(PRO_USD, PRO_PREPAID_USD)):
            check_sole_currency(inputs, rated(inputs))

    def test_lines_of_two_are_not(self):
        inputs = self.inputs(PRO_USD, PRO_PREPAID)
        with pytest.raises(MixedCurrenciesError, match=r"^the month is billed in USD, and has amounts in CNY$"):
            check_sole_currency(inputs, rated(inputs))

    def test_a_list_that_is_on_no_line_is_no_matter(self):
        """What was paid years ago in the other currency."""
        inputs = self.inputs(PRO_USD, PRO_PREPAID)
        check_sole_currency(inputs, [line for line in rated(inputs) if line.charged is None])


@pytest.fixture
def paying(alice, instance):
    """Open since April 2026; 5 GB in May, 1 GB in June."""
    opened = datetime(2026, 4, 1, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    raised([row(instance.id, "2026-05-02T00", 5 * GB), row(instance.id, "2026-06-02T00", 6 * GB)])
    return Instance.objects.unscoped("a test").select_related("organisation").get(pk=instance.pk)


def choose(person, plan, *moment, when="next_month"):
    clock = ManualClock()
    clock.time = datetime(*moment, tzinfo=UTC)
    return services.plan_choose(
        organisation=person.organisation, actor="a", plan=plan, when=when, clock=clock
    ).at.replace(tzinfo=None)


def close(instance, month: Month) -> Invoice:
    assert closing.invoice_close(instance=instance, month=month, now=month.end + CLOSE_AFTER)
    return Invoice.objects.unscoped("a test").get(instance=instance, month=str(month))


def at(monkeypatch, *moment) -> None:
    monkeypatch.setattr(type(selectors.SYSTEM_CLOCK), "now", lambda _self: datetime(*moment, tzinfo=UTC))


class TestAMonthInEach:
    @pytest.fixture
    def billed(self, alice, paying):
        choose(alice, "pro-usd", 2026, 5, 20)
        return [close(paying, month) for month in (MAY, JUNE)]

    def test_each_invoice_is_in_its_currency(self, alice, billed):
        found = alice.api.get("/api/v1/invoices").json()["items"]
        assert [(each["month"], each["currency"], each["total"]) for each in found] == [
            ("2026-05", "CNY", "1182.96"),
            ("2026-06", "USD", "163.51"),  # 720 hours: 137.81 and 25.70
        ]
        assert [invoice_verify(invoice=invoice) for invoice in billed] == [[], []]

    @pytest.mark.parametrize(("number", "currency", "total"), [(1, "CNY", "1182.96"), (2, "USD", "163.51")])
    def test_so_are_its_files(self, alice, billed, number, currency, total):
        path = f"/api/v1/invoices/inv-{number:08}"
        text = alice.api.get(f"{path}/focus.csv").content.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {each["BillingCurrency"] for each in rows} == {currency}
        assert sum(Decimal(each["BilledCost"]) for each in rows) == Decimal(total)
        pages = PdfReader(io.BytesIO(alice.api.get(f"{path}/pdf").content)).pages
        said = "".join("".join(page.extract_text().split()) for page in pages)
        (other,) = {"CNY", "USD"} - {currency}
        assert currency in said
        assert other not in said

    def test_bills_so_far_forecasts_and_shares_have_that_of_the_month(self, alice, paying, monkeypatch):
        choose(alice, "pro-usd", 2026, 5, 20)
        for month, currency in (("2026-05", "CNY"), ("2026-06", "USD")):
            at(monkeypatch, 2026, int(month[-1]), 25)
            for path in ("bill", "cost", "cost/topics", "cost/users"):
                body = alice.api.get(f"/api/v1/instances/{paying.id}/{path}?month={month}").json()
                assert (path, body["currency"]) == (path, currency)

    def test_sums_of_the_organisation_are_by_currency_and_a_budget_in_the_other_knows_nothing(
        self, alice, paying, monkeypatch
    ):
        at(monkeypatch, 2026, 5, 20)
        made = alice.api.post("/api/v1/budgets", {"name": "all", "amount": "100.00"})
        assert (made.status_code, made.json()["currency"]) == (201, "CNY")
        choose(alice, "pro-usd", 2026, 5, 20)
        at(monkeypatch, 2026, 6, 10)
        costs.costs_refresh()
        for month, currency in (("2026-05", "CNY"), ("2026-06", "USD")):
            totals = alice.api.get(f"/api/v1/cost?month={month}").json()["totals"]
            assert [each["currency"] for each in totals] == [currency]
        (budget,) = alice.api.get("/api/v1/budgets").json()["items"]
        assert (budget["currency"], budget["so_far"], budget["percent"]) == ("CNY", None, None)

    def test_a_what_if_says_both_and_no_difference(self, alice, paying, monkeypatch):
        at(monkeypatch, 2026, 6, 1, 12)
        body = alice.api.get(f"/api/v1/instances/{paying.id}/what-if?month=2026-05&plan=pro-usd").json()
        assert (body["was"]["currency"], body["would"]["currency"], body["difference"]) == ("CNY", "USD", None)


class TestLateUsage:
    """Of a month in one currency, while months are in the other."""

    @pytest.fixture
    def late(self, alice, paying):
        """By traffic; 2 GB of May come once June is in USD."""
        choose(alice, "traffic", 2026, 4, 20)
        choose(alice, "traffic-usd", 2026, 5, 20)
        close(paying, MAY)
        raised([row(paying.id, "2026-05-30T22", 7 * GB), row(paying.id, "2026-06-02T00", 8 * GB)])
        return paying

    def test_it_is_on_no_bill_in_the_other(self, alice, late, monkeypatch):
        at(monkeypatch, 2026, 6, 20)
        body = alice.api.get(f"/api/v1/instances/{late.id}/bill?month=2026-06").json()
        assert [(line["item"], line["plan"]) for line in body["lines"]] == [("produced", "traffic-usd")]
        invoice = close(late, JUNE)
        assert [(line["plan"], "adjusts" in line) for line in invoice.lines] == [("traffic-usd", False)]
        assert (invoice.currency, str(invoice.total)) == ("USD", "0.09")

    def test_verifying_says_in_which_invoice_it_will_stand(self, late):
        (found,) = invoice_verify(invoice=Invoice.objects.unscoped("a test").get(month="2026-05"))
        assert found.detail.endswith("the next invoice in CNY adjusts it")

    def test_it_is_billed_once_months_are_in_its_currency_again(self, alice, late):
        close(late, JUNE)
        choose(alice, "traffic", 2026, 6, 20)
        invoice = close(late, JULY)
        assert [(line["item"], line["amount"], line["adjusts"]["month"]) for line in invoice.lines] == [
            ("produced", "1.20", "2026-05")
        ]
        assert (invoice.currency, str(invoice.total)) == ("CNY", "1.20")


class TestWhoIsNew:
    """Nothing was ever billed: the running month may be in the other currency."""

    def test_all_of_the_running_month_is(self, alice):
        assert choose(alice, "pro-usd", 2026, 5, 20, 9, 30, when="now") == datetime(2026, 5, 1)  # noqa: DTZ001
        terms = selectors.terms_of(organisation=alice.organisation, month=MAY)
        assert [term.plan.name for term in terms] == ["pro-usd"]
        assert choose(alice, "traffic", 2026, 5, 20, 9, 40, when="now") == datetime(2026, 5, 1)  # noqa: DTZ001
        terms = selectors.terms_of(organisation=alice.organisation, month=MAY)
        assert [term.plan.name for term in terms] == ["traffic"]

    def test_prices_are_in_it_at_once(self, alice, brokers):
        now = datetime.now(UTC)
        services.plan_choose(organisation=alice.organisation, actor="a", plan="pro-usd")
        caps = alice.api.get("/api/v1/caps").json()
        assert caps["price_confirmed_above"] == "700.00"
        assert selectors.plan_counted(organisation=alice.organisation, at=now).currency == "USD"
        query = "months=3&bandwidth_mib_per_s=20&storage_gib=100&partitions=400"
        body = alice.api.get(f"/api/v1/prepaid-price?{query}").json()
        assert (body["currency"], body["amount"], body["prices"]) == ("USD", "450.00", "pro_prepaid_usd")

    def test_who_had_an_instance_is_not(self, alice, paying):
        with pytest.raises(Conflict) as refused:
            choose(alice, "pro-usd", 2026, 5, 20, when="now")
        assert refused.value.code == "other_currency"


class TestTheLastHourOfAMonth:
    def test_what_is_bought_counts_in_the_currency_of_the_month_that_has_not_ended(self, alice, paying):
        choose(alice, "pro-usd", 2026, 5, 20)
        last = MAY.end - timedelta(minutes=20)
        assert selectors.plan_counted(organisation=alice.organisation, at=last).name == "pro"
        assert selectors.plan_counted(organisation=alice.organisation, at=MAY.end).name == "pro-usd"


def test_a_what_if_with_months_paid_in_another_currency_is_refused(alice, instance):
    url = f"/api/v1/instances/{instance.id}"
    assert alice.api.post(f"{url}/prepaid", {"months": 1}).status_code == 202
    month = f"{datetime.now(UTC):%Y-%m}"
    assert any("charged" in line for line in alice.api.get(f"{url}/bill?month={month}").json()["lines"])
    problem(alice.api.get(f"{url}/what-if?month={month}&plan=pro-usd"), 409, "other_currency")
    problem(alice.api.get(f"{url}/bill?month={month}&plan=pro-usd"), 409, "other_currency")
    assert alice.api.get(f"{url}/what-if?month={month}&plan=traffic").status_code == 200


class TestByRest:
    """GET and PUT /api/v1/plan."""

    def test_usd_from_the_next_month(self, alice, paying, monkeypatch):
        at(monkeypatch, 2026, 5, 20, 9, 30)
        body = alice.api.get("/api/v1/plan").json()
        assert (body["plan"]["name"], body["plan"]["currency"], body["next"]) == ("pro", "CNY", None)
        problem(alice.api.put("/api/v1/plan", {"plan": "pro-usd"}), 409, "other_currency")
        body = alice.api.put("/api/v1/plan", {"plan": "pro-usd", "when": "next_month"}).json()
        assert (body["plan"]["currency"], body["next"]["name"], body["next"]["currency"], body["next"]["at"]) == (
            "CNY", "pro-usd", "USD", "2026-06-01T00:00:00Z",
        )  # fmt: skip
        at(monkeypatch, 2026, 6, 1)
        assert alice.api.get("/api/v1/plan").json()["plan"]["currency"] == "USD"

    def test_all_price_lists_are_shown_each_in_its_currency(self, alice):
        offered = {each["name"]: each for each in alice.api.get("/api/v1/plan").json()["offered"]}
        assert {name: each["currency"] for name, each in offered.items()} == {
            "pro": "CNY", "traffic": "CNY", "pro-usd": "USD", "traffic-usd": "USD",
        }  # fmt: skip
        for each in offered.values():
            lists = [each[name] for name in ("prices", "in_advance", "elastic") if each[name] is not None]
            assert {prices["currency"] for prices in lists} == {each["currency"]}
        assert offered["pro-usd"]["elastic"]["produced_per_gb"] == "0.0114"
        assert offered["traffic-usd"]["in_advance"] is None

    def test_nonsense_is_refused_by_name(self, alice):
        for body, field in (({"plan": "gold"}, "plan"), ({"plan": "pro", "when": "then"}, "when"), ({}, "plan")):
            refused = problem(alice.api.put("/api/v1/plan", body), 400, "invalid")
            assert [error["field"] for error in refused["errors"]] == [field]

    def test_owners_decide(self, alice, bob):
        problem(bob.api.put("/api/v1/plan", {"plan": "traffic"}), 403, "forbidden")
        assert bob.api.get("/api/v1/plan").status_code == 200
