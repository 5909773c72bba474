"""Elastic bandwidth: set by REST, in the specification, on the bill, and switched off by its budget."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from controlplane.accounts.models import User
from controlplane.admission import elastic
from controlplane.billing import closing
from controlplane.billing.services import plan_choose
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance
from controlplane.metering.elastic import elastic_purge
from controlplane.metering.models import ElasticMinute
from quota.contracts.instance import MIB
from tests.controlplane.conftest import WANTED
from tests.controlplane.test_instances_api import URL, problem
from tests.controlplane.test_lifecycle_mails import subjects
from tests.support.usage import usage_complete

from .passing import Passing

GB = 10**9
REASON = "a test"


@pytest.fixture
def time(monkeypatch):
    """10:20 on 1 April 2026."""
    return Passing(monkeypatch)


@pytest.fixture
def url(alice, brokers, time):
    """Of alice's instance of 5 MiB/s."""
    made = alice.api.post(URL, WANTED)
    time.done(made)
    return f"{URL}/{made.json()['id']}/elastic-bandwidth"


def row():
    return Instance.objects.unscoped(REASON).get()


def carried(gb, *, day=1, direction="produce", epoch=1):
    """So many GB above what was bought, in a minute of April."""
    ElasticMinute.objects.create(
        instance=row().id, direction=direction, epoch=epoch, minute=f"2026-04-{day:02d}T11:05:00Z", bytes=gb * GB
    )


def shown(person, url):
    answer = person.api.get(url)
    assert answer.status_code == 200, answer.content
    return answer.json()


def bill(person, url, month="2026-04"):
    body = person.api.get(url.replace("elastic-bandwidth", f"bill?month={month}")).json()
    return [
        (line["item"], line["quantity"], line["amount"]) for line in body["lines"] if line["item"].startswith("elastic")
    ]


def cap_of(tree):
    limits = tree.spec(row().id).limits
    return limits.elastic_bytes_per_s


def test_it_is_off_until_somebody_wants_it(alice, url, tree):
    body = shown(alice, url)
    assert (body["state"], body["cap_mib_per_s"], body["budget_per_month"], body["cost"]) == ("off", None, None, "0.00")
    assert (body["currency"], body["produced_per_gb"], body["month"]) == ("CNY", "0.08", "2026-04")
    assert cap_of(tree) is None


def test_a_cap_comes_into_the_specification_and_goes_out_of_it(alice, url, tree, time):
    operation = time.done(alice.api.put(url, {"cap_mib_per_s": 8, "budget_per_month": "100.00"}))
    assert (operation.kind, operation.state) == ("instance.update", "succeeded")
    assert (cap_of(tree), tree.spec(row().id).limits.produce_bytes_per_s) == (8 * MIB, 5 * MIB)
    assert {name: shown(alice, url)[name] for name in ("state", "cap_mib_per_s", "budget_per_month")} == {
        "state": "on", "cap_mib_per_s": 8, "budget_per_month": "100.00",
    }  # fmt: skip
    time.done(alice.api.put(url, {"cap_mib_per_s": None}))
    assert (cap_of(tree), shown(alice, url)["state"]) == (None, "off")
    actions = AuditEntry.objects.for_organisation(alice.organisation).filter(action="elastic.set")
    assert [entry.detail["elastic_mib_per_s"] for entry in actions.order_by("pk")] == [
        {"from": None, "to": 8},
        {"from": 8, "to": None},
    ]


def test_asked_twice_it_is_one_change(alice, url):
    first = alice.api.put(url, {"cap_mib_per_s": 8}).json()
    assert alice.api.put(url, {"cap_mib_per_s": 8}).json() == first


@pytest.mark.parametrize(
    ("body", "field"),
    [({"cap_mib_per_s": 5}, "cap_mib_per_s"), ({"cap_mib_per_s": 10.5}, "cap_mib_per_s"), ({}, "cap_mib_per_s"),
     ({"cap_mib_per_s": "8"}, "cap_mib_per_s"), ({"cap_mib_per_s": 8, "budget_per_month": "0"}, "budget_per_month"),
     ({"cap_mib_per_s": 8, "budget_per_month": "-1"}, "budget_per_month"),
     ({"cap_mib_per_s": 8, "budget_per_month": 5}, "budget_per_month"), ({"cap_mib_per_s": 8, "cap": 9}, "cap")],
)  # fmt: skip
def test_nonsense_is_refused_by_name(alice, url, body, field):
    refused = problem(alice.api.put(url, body), 400, "invalid")
    assert [error["field"] for error in refused["errors"]] == [field]
    assert row().elastic_mib_per_s is None


def test_a_resize_keeps_the_cap_within_twice_what_is_bought(alice, url, tree, time):
    time.done(alice.api.put(url, {"cap_mib_per_s": 10}))
    address = url.removesuffix("/elastic-bandwidth")
    time.done(alice.api.patch(address, {"bandwidth_mib_per_s": 3}))
    assert cap_of(tree) == 6 * MIB
    time.done(alice.api.patch(address, {"bandwidth_mib_per_s": 20}))
    assert cap_of(tree) is None, "what is bought is more than the cap"


def test_under_a_plan_without_bandwidth_there_is_nothing_to_go_above(alice, url, tree, time):
    time.done(alice.api.put(url, {"cap_mib_per_s": 8}))
    plan_choose(organisation=alice.organisation, actor="a", plan="traffic")
    time.on(hours=2)
    assert elastic.elastic_look() == 1, "it is switched off"
    assert (row().elastic_mib_per_s, elastic.elastic_look()) == (None, 0)
    problem(alice.api.put(url, {"cap_mib_per_s": 8}), 409, "plan_not_elastic")
    assert shown(alice, url)["produced_per_gb"] is None


def test_strangers_find_nothing_and_viewers_look(viewer, charlie, url):
    assert viewer.api.get(url).status_code == 200
    problem(viewer.api.put(url, {"cap_mib_per_s": 8}), 403, "forbidden")
    problem(charlie.api.get(url), 404, "not_found")
    problem(charlie.api.put(url, {"cap_mib_per_s": 8}), 404, "not_found")


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_what_was_carried_is_on_the_bill_by_the_gb(alice, url, time):
    carried(100)
    carried(25, direction="consume")
    time.to(2026, 4, 1, 12, 30)
    assert bill(alice, url) == [("elastic_produced", "100", "8.00"), ("elastic_consumed", "25", "2.00")]
    body = shown(alice, url)
    assert (body["produced_bytes"], body["consumed_bytes"], body["cost"]) == (100 * GB, 25 * GB, "10.00")
    cost = alice.api.get(url.replace("elastic-bandwidth", "cost?month=2026-04")).json()
    assert {"item": "elastic_produced", "so_far": "8.00", "forecast": "8.00"} in cost["items"]


def test_an_invoice_has_it_with_its_files_and_what_came_later_is_seen_and_not_billed(alice, url, time, monkeypatch):
    carried(100)
    time.to(2026, 5, 1, 6)
    usage_complete(time.now)
    assert closing.invoices_close() == 1
    number = "/api/v1/invoices/inv-00000001"
    lines = alice.api.get(number).json()["lines"]
    (line,) = [each for each in lines if each["item"].startswith("elastic")]
    assert (line["plan"], line["plan_version"], line["amount"]) == ("pro_elastic", 1, "8.00")
    assert (line["from"], line["to"]) == ("2026-04-01T11:00:00Z", "2026-04-01T12:00:00Z")
    assert alice.api.post(f"{number}/verify").json()["equal"] is True
    assert alice.api.get(f"{number}/pdf").status_code == 200
    assert b"elastic_produced" in alice.api.get(f"{number}/focus.csv").getvalue()
    carried(7, epoch=2)
    differences = alice.api.post(f"{number}/verify").json()["differences"]
    assert [each["code"] for each in differences] == ["elastic"]
    monkeypatch.setattr("controlplane.metering.elastic.KEPT", timedelta(days=20))
    elastic_purge()
    assert alice.api.post(f"{number}/verify").json()["equal"] is True, "of minutes that are forgotten nothing is said"
    assert bill(alice, url, "2026-05") == []


# --- the budget -------------------------------------------------------------------------------------------------------


@pytest.fixture
def limited(alice, url, time):
    """On, with 10.00 a month: 125 GB."""
    time.done(alice.api.put(url, {"cap_mib_per_s": 8, "budget_per_month": "10.00"}))
    return url


def test_when_its_budget_is_used_up_it_is_off_until_the_month_ends(alice, limited, tree, time, brokers):
    carried(124)
    assert (elastic.elastic_look(), shown(alice, limited)["state"]) == (0, "on")
    carried(1, day=2)
    assert (elastic.elastic_look(), elastic.elastic_look()) == (1, 0)
    body = shown(alice, limited)
    assert (body["state"], body["off_until"]) == ("spent", "2026-05-01T00:00:00Z")
    assert row().generation > tree.spec(row().id).generation, "an operation brings it to the brokers"
    time.to(2026, 4, 30, 23, 59)
    assert elastic.elastic_look() == 0
    time.to(2026, 5, 1)
    assert (elastic.elastic_look(), shown(alice, limited)["state"]) == (1, "on")
    assert shown(alice, limited)["cost"] == "0.00"
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="elastic.")
    assert [entry.action for entry in entries.order_by("pk")] == ["elastic.set", "elastic.off", "elastic.on"]


def test_more_budget_switches_it_on_and_less_than_was_used_off(alice, limited, time):
    carried(200)
    elastic.elastic_look()
    time.on(minutes=1)
    assert alice.api.put(limited, {"cap_mib_per_s": 8, "budget_per_month": "50.00"}).status_code == 202
    assert shown(alice, limited)["state"] == "on"
    assert alice.api.put(limited, {"cap_mib_per_s": 8, "budget_per_month": "16.00"}).status_code == 202
    assert shown(alice, limited)["state"] == "spent"
    assert alice.api.put(limited, {"cap_mib_per_s": 8, "budget_per_month": None}).status_code == 202
    assert shown(alice, limited)["state"] == "on"


def test_without_a_budget_it_stays_on(alice, url, time):
    time.done(alice.api.put(url, {"cap_mib_per_s": 8}))
    carried(10_000)
    assert (elastic.elastic_look(), shown(alice, url)["state"]) == (0, "on")


def test_owners_are_told_once(alice, limited, time, mails):
    User.objects.update(email_verified_at=timezone.now())
    carried(125)
    for _ in range(3):
        elastic.elastic_look()
    ((to, subject),) = subjects(mails)
    assert to == "alice@example.com"
    assert "is off until 2026-05-01 00:00 UTC" in subject
    assert "CNY 10.00" in mails.mails[0].get_content()


def test_of_two_workers_one_switches_it_off(alice, limited, time):
    carried(125)

    class Now:
        def now(self):
            return time.now

    assert [elastic._switch_off(row().id, Now()) for _ in range(2)] == [True, False]


def test_an_isolated_instance_is_left_alone(alice, limited, grace, time):
    carried(125)
    time.done(alice.api.delete(limited.removesuffix("/elastic-bandwidth")))
    assert elastic.elastic_look() == 0


def test_the_cost_of_the_setting_is_that_of_the_bill(alice, limited, time):
    for day in (1, 2, 3):
        carried(13 * day, day=day)
        carried(7, day=day, direction="consume")
    time.to(2026, 4, 3, 12)
    assert Decimal(shown(alice, limited)["cost"]) == sum(Decimal(line[2]) for line in bill(alice, limited))
