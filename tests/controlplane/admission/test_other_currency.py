"""Months paid in advance, budgets of elastic bandwidth, caps and thresholds, when an organisation changes its currency."""

from __future__ import annotations

from decimal import Decimal

import pytest

from controlplane.admission import installed as settings_of
from controlplane.admission import prepaid, rules, selectors, services
from controlplane.billing.models import Prepaid, PrepaidEvent
from controlplane.billing.services import plan_choose
from controlplane.core.errors import Conflict
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance
from tests.controlplane.test_instances_api import URL, problem

from .test_prepaid import bill, paid, running, shown, time  # noqa: F401  # fixtures

REASON = "a test"


def choose(person, plan="pro-usd", when="next_month"):
    return plan_choose(organisation=person.organisation, actor="a", plan=plan, when=when)


def refused(person, code, plan="pro-usd"):
    with pytest.raises(Conflict) as found:
        choose(person, plan)
    assert found.value.code == code
    return found.value.detail


class TestPaidInAdvance:
    def test_what_reaches_beyond_the_change_is_named_with_its_end(self, alice, paid):  # noqa: F811
        name = paid.rsplit("/", 1)[1]
        said = refused(alice, "other_currency_in_advance")
        assert f"another currency than USD: {name} (until 2026-05-01T11:00:00Z)" in said
        assert choose(alice, "traffic").plan == "traffic", "in the same currency it is no matter"

    def test_it_is_chosen_once_that_ends_before(self, alice, paid, time):  # noqa: F811
        time.to(2026, 5, 1, 5)
        assert choose(alice).at.month == 6

    def test_what_is_not_open_yet_has_no_end(self, alice, paid):  # noqa: F811
        Prepaid.objects.unscoped(REASON).update(is_waiting=True, ends_at=None)
        assert "(not open yet)" in refused(alice, "other_currency_in_advance")

    def test_nothing_is_bought_or_renewed_while_a_change_is_to_come(self, alice, paid, time):  # noqa: F811
        time.to(2026, 5, 1, 5)
        choose(alice)
        months = {"months": 1, "ends_at": shown(alice, paid)["ends_at"]}
        said = problem(alice.api.post(f"{paid}/prepaid/renew", months), 409, "other_currency_in_advance")
        assert "from 2026-06-01 on the organisation pays in USD" in said["detail"]
        query = "months=1&bandwidth_mib_per_s=20&storage_gib=100&partitions=400"
        problem(alice.api.get(f"/api/v1/prepaid-price?{query}"), 409, "other_currency_in_advance")

    def test_nor_while_another_plan_is_to_come_before_it(self, alice, paid, time):  # noqa: F811
        time.to(2026, 5, 1, 5)
        choose(alice, "pro", when="now")
        choose(alice)
        query = "months=1&bandwidth_mib_per_s=20&storage_gib=100&partitions=400"
        problem(alice.api.get(f"/api/v1/prepaid-price?{query}"), 409, "other_currency_in_advance")

    def test_what_would_renew_itself_goes_on_by_the_hour(self, alice, paid, time):  # noqa: F811
        alice.api.patch(f"{paid}/prepaid", {"at_end": "renew"})
        time.to(2026, 5, 1, 5)
        choose(alice)
        time.to(2026, 5, 1, 11, 1)
        assert prepaid.prepaid_look() == 1
        assert shown(alice, paid)["state"] == "postpaid"

    def test_afterwards_it_is_bought_in_usd_and_growth_and_refund_are_too(self, alice, paid, time):  # noqa: F811
        alice.api.patch(f"{paid}/prepaid", {"at_end": "postpaid"})
        time.to(2026, 5, 1, 5)
        choose(alice)
        time.to(2026, 5, 2)
        prepaid.prepaid_look()
        time.to(2026, 6, 1, 10, 20)
        made = alice.api.post(f"{paid}/prepaid", {"months": 1})
        assert time.done(made).state == "succeeded"
        last = PrepaidEvent.objects.unscoped(REASON).order_by("pk").last()
        assert last.prices["currency"] == "USD"
        time.on(days=1)
        assert shown(alice, paid)["refund"]["currency"] == "USD"
        lines = {item: amount for item, _, amount in bill(alice, paid, "2026-06") if item.startswith("prepaid")}
        assert lines == {"prepaid_bandwidth": "127.14", "prepaid_disk": "22.86"}
        said = refused(alice, "other_currency_in_advance", "pro")
        assert "another currency than CNY" in said

    def test_a_renewal_after_a_late_clock_is_in_the_currency_of_its_day(self, alice, paid, time):  # noqa: F811
        alice.api.patch(f"{paid}/prepaid", {"at_end": "renew"})
        time.to(2026, 5, 1, 5)
        choose(alice)
        time.to(2026, 6, 1, 0, 5)  # beat was away for a month
        assert prepaid.prepaid_look() == 1
        last = PrepaidEvent.objects.unscoped(REASON).order_by("pk").last()
        assert (last.kind, last.prices["currency"]) == ("renewed", "USD")
        time.on(hours=1)
        charged = [line for line in bill(alice, paid, "2026-06") if line[0].startswith("prepaid")]
        assert [amount for _, _, amount in charged] == ["127.14", "22.86"], "nothing of the term in CNY"
        assert alice.api.delete(paid).status_code == 202
        bill(alice, paid, "2026-06")


class TestElasticBudget:
    def test_an_amount_is_taken_away_before_its_currency_changes(self, alice, running):  # noqa: F811
        put = {"cap_mib_per_s": 8, "budget_per_month": "100.00"}
        assert alice.api.put(f"{running}/elastic-bandwidth", put).status_code == 202
        said = refused(alice, "other_currency_budget")
        assert Instance.objects.unscoped(REASON).get().id in said
        assert alice.api.put(f"{running}/elastic-bandwidth", {"cap_mib_per_s": 8}).status_code == 202
        choose(alice)
        problem(alice.api.put(f"{running}/elastic-bandwidth", put), 409, "other_currency_budget")

    def test_prices_are_those_of_the_plan(self, alice, running, time):  # noqa: F811
        choose(alice)
        time.to(2026, 5, 1, 0, 1)
        body = alice.api.get(f"{running}/elastic-bandwidth").json()
        assert body["currency"] == "USD"


class TestSpend:
    def test_a_cap_counts_in_the_currency_in_which_it_was_set(self, alice, running, time):  # noqa: F811
        services.caps_set(
            organisation=alice.organisation, actor="o", caps={"price_per_month": Decimal(90_000)}, reason="large"
        )
        entry = AuditEntry.objects.for_organisation(alice.organisation).filter(action=services.CAPS_SET).get()
        assert entry.detail["caps"]["price_per_month"]["currency"] == "CNY"

        def cap(currency):
            return selectors.caps_of(alice.organisation, currency=currency)["price_per_month"]

        assert [cap(currency) for currency in ("CNY", "USD", "EUR")] == [90_000, 4300, 0]
        choose(alice)
        time.to(2026, 5, 1, 0, 1)
        services.caps_set(
            organisation=alice.organisation, actor="o", caps={"price_per_month": Decimal(100)}, reason="small"
        )
        assert [cap(currency) for currency in ("CNY", "USD")] == [90_000, 100]
        (spend,) = [use for use in selectors.caps_use(alice.organisation) if use.resource == rules.PRICE]
        assert (spend.limit, spend.default, spend.used) == (100, 4300, Decimal("165.78"))

    def test_whoever_is_held_to_less_does_not_get_the_default_in_the_other_currency(self, alice):
        services.caps_set(
            organisation=alice.organisation, actor="o", caps={"price_per_month": Decimal(500)}, reason="does not pay"
        )
        found = {
            each: selectors.caps_of(alice.organisation, currency=each)["price_per_month"] for each in ("CNY", "USD")
        }
        assert found == {"CNY": 500, "USD": 0}

    def test_what_is_dear_is_confirmed_by_the_threshold_of_its_currency(self, alice, running, time):  # noqa: F811
        choose(alice)
        time.to(2026, 5, 1, 0, 1)
        sizes = {"bandwidth_mib_per_s": 300, "storage_gib": 1000, "partitions": 400}
        said = problem(alice.api.patch(running, sizes), 409, "price_unconfirmed")
        assert said["price"]["currency"] == "USD"
        assert "more than 700.00" in said["detail"]

    def test_thresholds_are_named_by_currency(self, installed):
        assert [settings_of.price_confirmed_above(each) for each in ("CNY", "USD", "EUR")] == [5000, 700, 0]
        installed(price_confirmed_above="100")
        assert [settings_of.price_confirmed_above(each) for each in ("CNY", "USD")] == [100, 700]
        installed(price_confirmed_above="CNY=1,USD=2")
        assert [settings_of.price_confirmed_above(each) for each in ("CNY", "USD")] == [1, 2]
        installed(caps={"price_per_month_usd": 9})
        assert rules.in_currency(settings_of.caps(), "USD")["price_per_month"] == 9


def test_a_new_instance_is_bought_in_usd(alice, brokers, time):  # noqa: F811
    choose(alice, when="now")
    from tests.controlplane.conftest import WANTED

    made = alice.api.post(URL, {**WANTED, "prepaid_months": 2})
    time.done(made)
    time.on(hours=1)
    url = f"{URL}/{made.json()['id']}"
    body = alice.api.get(f"{url}/bill?month=2026-04").json()
    assert (body["currency"], body["plan"]) == ("USD", "pro-usd")
    assert {line["plan"] for line in body["lines"]} <= {"pro_prepaid_usd", "pro-usd"}
