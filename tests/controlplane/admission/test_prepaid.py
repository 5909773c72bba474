"""Paying in advance, from the price to the invoice: by REST, and by the clock."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts.models import User
from controlplane.admission import prepaid, scheduling
from controlplane.billing import closing
from controlplane.billing.models import Invoice, Prepaid, PrepaidEvent
from controlplane.billing.services import plan_choose
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import lifecycle
from controlplane.instances.models import Instance
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import ManualClock
from tests.controlplane.test_custom_roles import built_in_given
from tests.controlplane.test_instances_api import URL, problem
from tests.controlplane.test_lifecycle_mails import subjects
from tests.support.usage import usage_complete

from .passing import Passing

REASON = "a test"


@pytest.fixture
def time(monkeypatch):
    """10:20 on 1 April 2026."""
    return Passing(monkeypatch)


@pytest.fixture
def running(alice, brokers, time):
    """The address of alice's instance, paid by the hour since 10:20."""
    made = alice.api.post(URL, WANTED)
    assert time.done(made).state == "succeeded"
    return f"{URL}/{made.json()['id']}"


@pytest.fixture
def paid(alice, time, running):
    """The same, paid in advance from 11:00 on for a month."""
    time.on(minutes=10)
    assert time.done(alice.api.post(f"{running}/prepaid", {"months": 1})).state == "succeeded"
    return running


def shown(person, url):
    answer = person.api.get(f"{url}/prepaid")
    assert answer.status_code == 200, answer.content
    return answer.json()


def bill(person, url, month="2026-04"):
    body = person.api.get(f"{url}/bill?month={month}").json()
    assert Decimal(body["total"]) == sum(Decimal(line["amount"]) for line in body["lines"])
    return [(line["item"], line["quantity"], line["amount"]) for line in body["lines"]]


def look():
    return prepaid.prepaid_look()


def row():
    return Instance.objects.unscoped(REASON).get()


def kinds():
    return list(PrepaidEvent.objects.unscoped(REASON).order_by("pk").values_list("kind", flat=True))


def audited(person):
    entries = AuditEntry.objects.for_organisation(person.organisation).order_by("pk")
    return [action for action in entries.values_list("action", flat=True) if action.startswith("prepaid")]


# --- before -----------------------------------------------------------------------------------------------------------


def test_the_price_is_known_before_anything_is_bought(alice):
    query = "months=3&bandwidth_mib_per_s=20&storage_gib=150&partitions=500"
    body = alice.api.get(f"/api/v1/prepaid-price?{query}").json()
    assert (body["amount"], body["per_month"], body["currency"], body["prices"]) == (
        "4230.00", "1410.00", "CNY", "pro_prepaid",
    )  # fmt: skip
    assert [(item["item"], item["quantity"], item["unit_price"], item["amount"]) for item in body["items"]] == [
        ("prepaid_bandwidth", "3", "890", "2670.00"),
        ("prepaid_disk", "6", "160", "960.00"),
        ("prepaid_partitions", "3", "200", "600.00"),
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [({"months": "0"}, "months"), ({"months": "37"}, "months"), ({"months": "x"}, "months"),
     ({"partitions": "1.5"}, "partitions"), ({"bandwidth_mib_per_s": "-1"}, "bandwidth_mib_per_s"),
     ({"storage_gib": "nan"}, "storage_gib"), ({"storage_gib": ""}, "storage_gib")],
)  # fmt: skip
def test_a_price_of_nonsense_is_refused_by_name(alice, change, field):
    query = {"months": "1", "bandwidth_mib_per_s": "20", "storage_gib": "100", "partitions": "400"} | change
    refused = problem(alice.api.get("/api/v1/prepaid-price", query), 400, "invalid")
    assert [error["field"] for error in refused["errors"]] == [field]


def test_dry_runs_say_what_it_costs_and_change_nothing(alice, running, time):
    time.on(minutes=10)
    said = alice.api.post(f"{running}/prepaid?dry_run=true", {"months": 2}).json()
    assert (said["price"]["at_once"], said["price"]["per_month_after"]) == ("2100.00", "1050.00")
    assert said["changes"]["prepaid.ends_at"] == [None, "2026-06-01T11:00:00Z"]
    assert (kinds(), shown(alice, running)["state"]) == ([], "postpaid")
    said = alice.api.post(f"{URL}?dry_run=true", {**WANTED, "name": "other", "prepaid_months": 4}).json()
    assert said["price"]["at_once"] == "4200.00"
    assert Instance.objects.unscoped(REASON).count() == 1


def test_what_costs_more_than_a_threshold_wants_a_word_that_it_is_known(alice, running, installed):
    installed(price_confirmed_above="2000")
    refused = problem(alice.api.post(f"{running}/prepaid", {"months": 2}), 409, "price_unconfirmed")
    assert refused["price"] == {"currency": "CNY", "per_month": "1050.00", "in_advance": "2100.00"}
    assert alice.api.post(f"{running}/prepaid", {"months": 2, "confirm_price": True}).status_code == 202


def test_under_a_plan_that_reserves_nothing_nothing_is_paid_in_advance(alice, running, time):
    plan_choose(organisation=alice.organisation, actor="a", plan="traffic")
    time.on(hours=2)
    problem(alice.api.post(f"{running}/prepaid", {"months": 1}), 409, "plan_not_prepaid")


# --- bought -----------------------------------------------------------------------------------------------------------


def test_an_instance_bought_in_advance_is_charged_when_it_opens(alice, brokers, time):
    made = alice.api.post(URL, {**WANTED, "prepaid_months": 1, "prepaid_at_end": "renew"})
    url = f"{URL}/{made.json()['id']}"
    assert (shown(alice, url)["state"], bill(alice, url)) == ("waiting", [])
    time.on(hours=5)
    time.done(made)
    assert bill(alice, url) == [("prepaid_bandwidth", "1", "890.00"), ("prepaid_disk", "1", "160.00")]
    body = shown(alice, url)
    assert (body["state"], body["ends_at"], body["at_end"]) == ("prepaid", "2026-05-01T15:00:00Z", "renew")
    assert body["terms"] == [
        {
            "from": "2026-04-01T15:00:00Z",
            "to": "2026-05-01T15:00:00Z",
            "months": 1,
            "prices": "pro_prepaid",
            "prices_version": 1,
        }
    ]
    assert look() == 1, "the clock notes when it ends"
    assert Prepaid.objects.unscoped(REASON).get().is_waiting is False


def test_what_never_opened_is_not_charged(alice, brokers, time):
    brokers.paused.add(1)
    made = alice.api.post(URL, {**WANTED, "prepaid_months": 12, "confirm_price": True})
    assert run_to_the_end(made.json()["operation_id"]).state == "failed"
    url = f"{URL}/{made.json()['id']}"
    time.on(days=3)
    brokers.paused.clear()
    brokers.apply()
    time.done(alice.api.delete(url))
    assert (bill(alice, url), kinds()) == ([], ["bought", "cancelled"])


def test_what_becomes_of_it_is_said_of_what_is_paid_in_advance_alone(alice, brokers):
    refused = problem(alice.api.post(URL, {**WANTED, "prepaid_at_end": "renew"}), 400, "invalid")
    assert [error["field"] for error in refused["errors"]] == ["prepaid_at_end"]


def test_from_by_the_hour_to_in_advance_no_hour_is_paid_twice(alice, paid):
    assert bill(alice, paid) == [
        ("bandwidth", "1", "1.34"),  # 10:20 to 11:00
        ("disk", "1", "0.25"),
        ("prepaid_bandwidth", "1", "890.00"),
        ("prepaid_disk", "1", "160.00"),
    ]
    assert shown(alice, paid)["ends_at"] == "2026-05-01T11:00:00Z"
    assert audited(alice) == ["prepaid.begin"]


def test_asked_twice_it_is_paid_once(alice, running, time):
    first = alice.api.post(f"{running}/prepaid", {"months": 1}).json()
    time.on(hours=3)
    assert alice.api.post(f"{running}/prepaid", {"months": 1}).json() == first
    assert alice.api.post(f"{running}/prepaid?dry_run=true", {"months": 1}).json()["price"]["at_once"] is None
    problem(alice.api.post(f"{running}/prepaid", {"months": 2}), 409, "prepaid_already")
    assert kinds() == ["bought"]


def test_renewed_twice_with_one_end_it_is_paid_once(alice, paid, time):
    time.on(days=10)
    body = {"months": 2, "ends_at": shown(alice, paid)["ends_at"]}
    first = alice.api.post(f"{paid}/prepaid/renew", body).json()
    assert alice.api.post(f"{paid}/prepaid/renew", body).json() == first
    assert (shown(alice, paid)["ends_at"], kinds()) == ("2026-07-01T11:00:00Z", ["bought", "renewed"])
    problem(alice.api.post(f"{paid}/prepaid/renew", {**body, "months": 3}), 409, "prepaid_changed")
    operation = run_to_the_end(first["operation_id"])
    assert (operation.kind, operation.state) == ("prepaid.renew", "succeeded")
    assert operation.result == {"ends_at": "2026-07-01T11:00:00+00:00"}
    assert bill(alice, paid)[4:] == [("prepaid_bandwidth", "2", "1780.00"), ("prepaid_disk", "2", "320.00")]


def test_an_earlier_account_that_ended_at_the_same_moment_is_another_one(alice, grace, running, time):
    """30 June is the end of a month from 30 May on, and of one from 31 May on."""
    time.to(2026, 5, 30, 10)
    time.done(alice.api.post(f"{running}/prepaid", {"months": 1}))
    body = {"months": 1, "ends_at": shown(alice, running)["ends_at"]}
    first = alice.api.post(f"{running}/prepaid/renew", body).json()
    time.on(hours=1)
    time.done(alice.api.delete(running))
    time.on(minutes=1)
    time.done(alice.api.post(f"{running}/restore"))
    time.to(2026, 5, 31, 10)
    time.done(alice.api.post(f"{running}/prepaid", {"months": 1}))
    assert shown(alice, running)["ends_at"] == body["ends_at"]
    assert alice.api.post(f"{running}/prepaid/renew", body).json() != first
    assert shown(alice, running)["ends_at"] == "2026-07-31T10:00:00Z"


def test_what_has_ended_is_not_decided_any_more(alice, paid, time):
    """In the minute before the clock comes: hours that are over stay paid as they were."""
    time.to(2026, 5, 1, 11, 0, 30)
    problem(alice.api.patch(f"{paid}/prepaid", {"at_end": "postpaid"}), 409, "prepaid_ended")
    body = {"months": 1, "ends_at": "2026-05-01T11:00:00Z"}
    assert alice.api.post(f"{paid}/prepaid/renew", body).status_code == 202


def test_what_goes_on_by_the_hour_is_not_renewed_behind_its_end(alice, paid, time):
    alice.api.patch(f"{paid}/prepaid", {"at_end": "postpaid"})
    time.to(2026, 5, 1, 11, 0, 30)
    body = {"months": 1, "ends_at": "2026-05-01T11:00:00Z"}
    problem(alice.api.post(f"{paid}/prepaid/renew", body), 409, "prepaid_ended")


def test_what_is_paid_by_the_hour_is_not_renewed_and_has_no_end(alice, running):
    body = {"months": 1, "ends_at": "2026-05-01T11:00:00Z"}
    problem(alice.api.post(f"{running}/prepaid/renew", body), 409, "not_prepaid")
    problem(alice.api.patch(f"{running}/prepaid", {"at_end": "renew"}), 409, "not_prepaid")


def test_nobody_pays_for_more_than_five_years(alice, paid):
    for _ in range(4):
        end = shown(alice, paid)["ends_at"]
        answer = alice.api.post(f"{paid}/prepaid/renew", {"months": 36, "ends_at": end, "confirm_price": True})
        if answer.status_code != 202:
            break
    problem(answer, 409, "prepaid_too_long")


def test_strangers_find_nothing_and_viewers_look(viewer, charlie, paid):
    assert viewer.api.get(f"{paid}/prepaid").status_code == 200
    for method, path, body in (
        ("post", "prepaid", {"months": 1}),
        ("patch", "prepaid", {"at_end": "renew"}),
        ("post", "prepaid/renew", {"months": 1, "ends_at": "2026-05-01T11:00:00Z"}),
    ):
        problem(getattr(viewer.api, method)(f"{paid}/{path}", body), 403, "forbidden")
        problem(getattr(charlie.api, method)(f"{paid}/{path}", body), 404, "not_found")
    problem(charlie.api.get(f"{paid}/prepaid"), 404, "not_found")


# --- another size -----------------------------------------------------------------------------------------------------


def test_it_grows_for_the_difference_of_the_hours_that_are_left(alice, paid, time):
    time.to(2026, 4, 16, 11, 30)  # 15 of 30 days
    change = {"bandwidth_mib_per_s": 40, "storage_gib": 150}
    assert alice.api.patch(f"{paid}?dry_run=true", change).json()["price"]["at_once"] == "630.00"
    time.done(alice.api.patch(paid, change))
    assert bill(alice, paid)[4:] == [("prepaid_bandwidth", "0.5", "550.00"), ("prepaid_disk", "0.5", "80.00")]


def test_what_a_larger_size_costs_at_once_is_asked_for_twice_when_it_is_much(alice, paid, time):
    end = shown(alice, paid)["ends_at"]
    time.done(alice.api.post(f"{paid}/prepaid/renew", {"months": 36, "ends_at": end, "confirm_price": True}))
    before, change = bill(alice, paid), {"storage_gib": 150}  # an hour of it costs little
    refused = problem(alice.api.patch(paid, change), 409, "price_unconfirmed")
    assert "costs CNY 5,920.00 at once" in refused["detail"]  # 160 for each of 37 months
    assert refused["price"]["in_advance"] == "5920.00"
    assert (row().storage_gib, bill(alice, paid)) == (10, before)
    time.done(alice.api.patch(paid, {**change, "confirm_price": True}))
    assert row().storage_gib == 150
    assert sum(Decimal(amount) for *_, amount in bill(alice, paid)[len(before) :]) == 5920


def test_those_that_cannot_begin_yet_keep_no_others_from_it(alice, paid, time, monkeypatch):
    monkeypatch.setattr(prepaid, "AT_ONCE", 1)
    first = Instance.objects.unscoped(REASON).get()
    Prepaid.objects.unscoped(REASON).update(is_waiting=True, ends_at=None)
    for name, state in (("a", "creating"), ("b", "failed")):
        other = Instance.objects.unscoped(REASON).get(pk=first.pk)
        other.pk, other.name, other.state = f"ins-0{name}000000", name, state
        other.save(force_insert=True)
        Prepaid(organisation=other.organisation, instance=other, is_waiting=True).save(force_insert=True)
    look()
    assert shown(alice, paid)["ends_at"] == "2026-05-01T11:00:00Z"
    assert Prepaid.objects.unscoped(REASON).get(instance=first).ends_at is not None


def test_an_operator_does_not_make_it_larger(alice, bob, time, paid):
    """That is charged at once. By the hour they may."""
    built_in_given(alice, bob, "operator")
    later = (time.now + timedelta(days=1)).isoformat()
    larger = {"bandwidth_mib_per_s": 40}
    for query in ("", "?dry_run=true"):
        problem(bob.api.patch(f"{paid}{query}", larger), 403, "not_in_role")
        scheduled = bob.api.post(f"{paid}/scheduled-changes{query}", {"at": later, **larger})
        problem(scheduled, 403, "not_in_role")
    at_bob = Client()
    at_bob.force_login(bob.user)
    page = f"/{bob.organisation.id}/instances/{row().id}/settings"
    sizes = {"bandwidth_mib_per_s": "40", "storage_gib": f"{row().storage_gib:g}", "partitions": "60"}
    answer = at_bob.post(page, {"name": row().name, **sizes})
    assert "does not pay in advance" in answer.content.decode()
    assert row().bandwidth_mib_per_s != 40
    assert bob.api.patch(paid, {"name": "another"}).status_code == 202


def scheduled_then_paid(alice, bob, time, running, **sizes):
    """Bob, an operator, schedules other sizes while it is paid by the hour; at their time it is paid in advance, by alice."""
    built_in_given(alice, bob, "operator")
    body = {"at": (time.now + timedelta(hours=5)).isoformat(), "confirm_price": True, **sizes}
    made = bob.api.post(f"{running}/scheduled-changes", body)
    assert made.status_code == 201, made.content
    assert time.done(alice.api.post(f"{running}/prepaid", {"months": 1})).state == "succeeded"
    return body, f"{running}/scheduled-changes/{made.json()['id']}"


def test_what_an_operator_has_scheduled_is_not_charged_in_advance_at_its_time(alice, bob, time, running):
    _, change = scheduled_then_paid(alice, bob, time, running, bandwidth_mib_per_s=40)
    time.on(hours=6)
    before = bill(alice, running)
    assert scheduling.changes_carry_out() == 0
    refused = bob.api.get(change).json()
    assert refused["state"] == "refused"
    assert "who has scheduled the change does not pay in advance" in refused["problem"]
    assert row().bandwidth_mib_per_s != 40
    assert bill(alice, running) == before
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.schedule.refuse")
    assert "does not pay in advance" in entry.detail["problem"]


def test_what_an_operator_has_scheduled_is_made_where_it_is_paid_by_the_hour(alice, bob, time, running):
    built_in_given(alice, bob, "operator")
    body = {"at": (time.now + timedelta(hours=5)).isoformat(), "confirm_price": True, "bandwidth_mib_per_s": 40}
    assert bob.api.post(f"{running}/scheduled-changes", body).status_code == 201
    time.on(hours=6)
    assert scheduling.changes_carry_out() == 1
    assert row().bandwidth_mib_per_s == 40


def test_who_pays_in_advance_asks_for_the_same_and_it_is_made_by_them(alice, bob, time, running):
    body, change = scheduled_then_paid(alice, bob, time, running, bandwidth_mib_per_s=40)
    assert alice.api.post(f"{running}/scheduled-changes", body).json()["id"] == change.rpartition("/")[2]
    time.on(hours=6)
    assert scheduling.changes_carry_out() == 1
    assert (row().bandwidth_mib_per_s, alice.api.get(change).json()["actor"]) == (40, "alice@example.com")


def test_it_does_not_become_smaller(alice, paid):
    refused = problem(alice.api.patch(paid, {"partitions": 30, "storage_gib": 20}), 409, "prepaid_not_smaller")
    assert [error["field"] for error in refused["errors"]] == ["partitions"]
    assert row().partitions == 60


def test_by_the_hour_it_does(alice, running):
    assert alice.api.patch(running, {"partitions": 30}).status_code == 202


# --- given back -------------------------------------------------------------------------------------------------------


def test_within_five_days_all_is_paid_back_once_in_an_organisation(alice, grace, paid, time):
    time.on(days=4)
    said = shown(alice, paid)["refund"]
    assert said == {"currency": "CNY", "amount": "1050.00", "five_days": True}
    assert alice.api.delete(f"{paid}?dry_run=true").json()["price"]["at_once"] == "-1050.00"
    time.done(alice.api.delete(paid))
    assert bill(alice, paid)[4:] == [("prepaid_bandwidth", "-1", "-890.00"), ("prepaid_disk", "-1", "-160.00")]
    assert kinds() == ["bought", "five_days"]
    assert shown(alice, paid)["state"] == "postpaid"
    # Restored it is paid by the hour; bought and deleted once more, only what is left is paid back.
    time.on(minutes=1)
    time.done(alice.api.post(f"{paid}/restore"))
    time.on(hours=1)
    time.done(alice.api.post(f"{paid}/prepaid", {"months": 1}))
    time.on(days=3)
    assert shown(alice, paid)["refund"]["five_days"] is False
    time.done(alice.api.delete(paid))
    assert kinds() == ["bought", "five_days", "bought"]
    assert Decimal(bill(alice, paid)[-2][2]) == Decimal("-801.00")  # 27 of 30 days of 890.00


def test_later_the_days_that_are_left_are_paid_back(alice, paid, time):
    time.on(days=20)
    assert shown(alice, paid)["refund"] == {"currency": "CNY", "amount": "350.00", "five_days": False}
    time.done(alice.api.delete(paid))
    assert bill(alice, paid)[4:] == [
        ("prepaid_bandwidth", "-0.333333333", "-296.67"),
        ("prepaid_disk", "-0.333333333", "-53.33"),
    ]


def test_deleted_again_nothing_more_is_paid_back(alice, grace, paid, time):
    time.on(days=20)
    first = alice.api.delete(paid).json()
    lines = bill(alice, paid)
    time.on(hours=1)
    assert alice.api.delete(paid).json() == first
    assert bill(alice, paid) == lines


def test_a_deletion_that_is_refused_gives_nothing_back(alice, paid):
    alice.api.patch(paid, {"deletion_protection": True})
    problem(alice.api.delete(paid), 409, "deletion_protected")
    assert (kinds(), shown(alice, paid)["state"]) == (["bought"], "prepaid")


def test_destroyed_at_once_it_is_given_back_as_well(alice, paid, time):
    time.on(days=1)
    time.done(alice.api.post(f"{paid}/destroy", {"name": "events"}))
    assert Decimal(alice.api.get(f"{paid}/bill?month=2026-04").json()["total"]) == Decimal("1.59")


# --- the end ------------------------------------------------------------------------------------------------------------


def at_its_end(time, alice, url, at_end):
    if at_end != "expire":
        assert alice.api.patch(f"{url}/prepaid", {"at_end": at_end, "renew_months": 2}).status_code == 200
    time.to(2026, 5, 1, 10, 59)
    assert look() in (0, 1)  # mails
    time.to(2026, 5, 1, 11, 1)
    assert look() == 1
    assert look() == 0


def test_at_its_end_it_is_isolated_and_nothing_more_is_paid(alice, paid, time, grace):
    at_its_end(time, alice, paid, "expire")
    assert (row().state, row().spec_state) == ("isolated", "stopped")
    operation = Operation.objects.unscoped(REASON).get(kind="instance.isolate")
    assert (run_to_the_end(operation.id).state, operation.actor) == ("succeeded", "system")
    assert (row().destroys_at - row().isolated_at).total_seconds() == grace
    time.on(days=3)
    assert bill(alice, paid, "2026-05") == []
    assert (kinds(), shown(alice, paid)["state"]) == (["bought", "expired"], "postpaid")


def test_without_a_grace_period_it_is_kept_all_the_same(alice, paid, time):
    at_its_end(time, alice, paid, "expire")
    assert row().state == "isolated"
    assert (row().destroys_at - row().isolated_at).days == 7


def test_when_its_grace_period_ends_it_is_destroyed(alice, paid, time, grace):
    at_its_end(time, alice, paid, "expire")
    time.on(days=7)
    assert lifecycle.grace_periods_end() == 1
    operation = Operation.objects.unscoped(REASON).get(kind="instance.delete")
    run_to_the_end(operation.id)
    assert (row().state, look()) == ("deleted", 0)
    assert bill(alice, paid, "2026-05") == []


def test_paid_again_it_is_opened_and_the_days_between_cost_nothing(alice, paid, time, grace):
    at_its_end(time, alice, paid, "expire")
    run_to_the_end(Operation.objects.unscoped(REASON).get(kind="instance.isolate").id)
    time.to(2026, 5, 4, 8, 15)
    operation = time.done(alice.api.post(f"{paid}/prepaid", {"months": 1}))
    assert (operation.kind, operation.state, row().state) == ("instance.restore", "succeeded", "running")
    assert shown(alice, paid)["ends_at"] == "2026-06-04T08:00:00Z"
    assert bill(alice, paid, "2026-05") == [("prepaid_bandwidth", "1", "890.00"), ("prepaid_disk", "1", "160.00")]


def test_restored_it_is_paid_by_the_hour(alice, paid, time, grace):
    at_its_end(time, alice, paid, "expire")
    time.to(2026, 5, 4, 8, 15)
    time.done(alice.api.post(f"{paid}/restore"))
    time.to(2026, 5, 4, 9, 30)
    assert bill(alice, paid, "2026-05") == [("bandwidth", "2", "2.68"), ("disk", "2", "0.50")]


def test_renewed_by_itself_it_goes_on(alice, paid, time):
    at_its_end(time, alice, paid, "renew")
    assert (row().state, shown(alice, paid)["ends_at"]) == ("running", "2026-07-01T11:00:00Z")
    assert bill(alice, paid, "2026-05") == [("prepaid_bandwidth", "2", "1780.00"), ("prepaid_disk", "2", "320.00")]
    operation = Operation.objects.unscoped(REASON).filter(kind="prepaid.renew").get()
    assert run_to_the_end(operation.id).state == "succeeded"


def test_a_clock_that_was_away_for_months_renews_for_all_of_them(alice, paid, time):
    alice.api.patch(f"{paid}/prepaid", {"at_end": "renew"})
    time.to(2026, 7, 15)
    for _ in range(3):
        assert look() == 1
    assert (look(), shown(alice, paid)["ends_at"]) == (0, "2026-08-01T11:00:00Z")
    assert [line for line in bill(alice, paid, "2026-06") if line[0] in ("bandwidth", "disk")] == []


def test_it_goes_on_by_the_hour(alice, paid, time):
    at_its_end(time, alice, paid, "postpaid")
    time.to(2026, 5, 1, 12, 30)
    assert bill(alice, paid, "2026-05") == [("bandwidth", "2", "2.68"), ("disk", "2", "0.50")]
    assert (row().state, audited(alice)[-1]) == ("running", "prepaid.postpaid")


def test_while_it_is_protected_it_goes_on_by_the_hour(alice, paid, time):
    alice.api.patch(paid, {"deletion_protection": True})
    at_its_end(time, alice, paid, "expire")
    assert (row().state, kinds()) == ("running", ["bought", "postpaid"])
    time.to(2026, 5, 1, 12, 30)
    assert [line[0] for line in bill(alice, paid, "2026-05")] == ["bandwidth", "disk"]


def test_under_a_plan_without_prices_it_cannot_be_renewed_and_goes_on(alice, paid, time):
    alice.api.patch(f"{paid}/prepaid", {"at_end": "renew"})
    plan_choose(organisation=alice.organisation, actor="a", plan="traffic")
    time.to(2026, 5, 1, 11, 1)
    assert (look(), kinds(), row().state) == (1, ["bought", "decided", "postpaid"], "running")


def test_a_worker_that_dies_leaves_it_to_the_next(alice, paid, time, monkeypatch):
    time.to(2026, 5, 1, 11, 1)

    class Killed(BaseException):
        """SIGKILL."""

    def dies(**_members):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "instance_expire", dies)
        with pytest.raises(Killed):
            look()
    assert (kinds(), row().state) == (["bought"], "running")
    assert (look(), row().state) == (1, "isolated")


def test_of_two_workers_that_have_seen_the_same_one_ends_it(alice, paid, time):
    time.to(2026, 5, 1, 11, 1)
    assert [prepaid._end(row().id, ManualClockAt(time)) for _ in range(2)] == [True, False]
    assert kinds() == ["bought", "expired"]


class ManualClockAt(ManualClock):
    """The held clock, where one is handed in."""

    def __init__(self, time):
        super().__init__()
        self.time = time.now


# --- mails --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def reading(mails, paid):
    User.objects.update(email_verified_at=timezone.now())
    return mails


def titles(mails):
    return [subject for _, subject in subjects(mails)]


@pytest.mark.parametrize(
    ("at_end", "words"),
    [("expire", "Then it is isolated"), ("renew", "Then it is renewed by itself"), ("postpaid", "Then it goes on")],
)
def test_owners_are_told_a_week_and_a_day_before_each_once(alice, paid, time, reading, at_end, words):
    alice.api.patch(f"{paid}/prepaid", {"at_end": at_end})
    for day, hour, told in ((24, 10, 0), (24, 11, 1), (25, 11, 0), (30, 10, 0), (30, 11, 1), (30, 23, 0)):
        time.to(2026, 4, day, hour)
        assert look() == told, (day, hour)
    assert len(titles(reading)) == 2
    assert all("is paid until 2026-05-01 11:00 UTC" in title for title in titles(reading))
    assert words in reading.mails[0].get_content()


def test_of_a_protected_one_owners_are_told_that_it_goes_on(alice, paid, time, reading):
    alice.api.patch(paid, {"deletion_protection": True})
    time.to(2026, 4, 30, 12)
    look()
    subjects(reading)
    assert "Then it goes on, paid by the hour" in reading.mails[0].get_content()


def test_renewed_it_is_told_before_its_new_end(alice, paid, time, reading):
    time.to(2026, 4, 30, 12)
    look()
    alice.api.post(f"{paid}/prepaid/renew", {"months": 1, "ends_at": shown(alice, paid)["ends_at"]})
    assert look() == 0
    time.to(2026, 5, 31, 12)
    assert look() == 1
    assert len(titles(reading)) == 2


@pytest.mark.parametrize(
    ("at_end", "words"),
    [
        ("expire", "it is paid no more"),
        ("renew", "was renewed until 2026-07-01"),
        ("postpaid", "is paid by the hour since"),
    ],
)
def test_owners_are_told_what_became_of_it(alice, paid, time, reading, at_end, words):
    at_its_end(time, alice, paid, at_end)
    assert [title for title in titles(reading) if words in title] != []


# --- the invoice --------------------------------------------------------------------------------------------------------


def invoiced(time, month, day):
    time.to(2026, month, day, 6)
    usage_complete(time.now)
    closing.invoices_close()
    return Invoice.objects.unscoped(REASON).order_by("-number").first()


def test_invoices_have_what_was_charged_in_their_month_and_can_be_computed_again(alice, grace, paid, time):
    april = invoiced(time, 5, 1)
    assert (april.month, april.total) == ("2026-04", Decimal("1051.59"))
    time.to(2026, 5, 1, 8)  # a few hours before its end it is given back
    time.done(alice.api.delete(paid))
    may = invoiced(time, 6, 1)
    assert may.month == "2026-05"
    for number in ("inv-00000001", "inv-00000002"):
        found = alice.api.post(f"/api/v1/invoices/{number}/verify").json()
        assert (found["equal"], found["differences"]) == (True, [])
        assert alice.api.get(f"/api/v1/invoices/{number}/pdf").status_code == 200
        assert alice.api.get(f"/api/v1/invoices/{number}/focus.csv").status_code == 200
    rows = alice.api.get("/api/v1/invoices/inv-00000001/focus.csv").getvalue().decode()
    assert ",Purchase," in rows
    assert "One-Time" in rows


def test_an_event_that_was_changed_is_seen(alice, paid, time):
    invoice = invoiced(time, 5, 1)
    PrepaidEvent.objects.unscoped(REASON).update(months=2)
    answer = alice.api.post("/api/v1/invoices/inv-00000001/verify").json()
    assert invoice.number == 1
    assert [each["code"] for each in answer["differences"]] == ["prepaid"]


def test_costs_of_the_month_have_it_and_topics_do_not(alice, paid, time):
    time.on(hours=1)
    cost = alice.api.get(f"{paid}/cost?month=2026-04").json()
    assert {"item": "prepaid_bandwidth", "so_far": "890.00", "forecast": "890.00"} in cost["items"]
    shares = alice.api.get(f"{paid}/cost/topics?month=2026-04").json()
    assert {"item": "prepaid_disk", "amount": "160.00", "reason": "in_advance"} in shares["unshared"]
