"""What another size or plan would have cost, by REST, in the console and on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client

from controlplane.billing import closing
from controlplane.billing.models import PlanChoice
from controlplane.metering.models import ElasticMinute
from controlplane.quotas.models import QuotaDay
from tests.controlplane.billing.test_bill_api import at
from tests.controlplane.billing.test_costs import GB, MAY, NOW, opened  # noqa: F401  # a fixture
from tests.controlplane.console.conftest import problem_beside, text_of
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem
from tests.support.usage import usage_complete

MIB = 2**20


@pytest.fixture(autouse=True)
def _today(monkeypatch):
    at(monkeypatch, NOW)


@pytest.fixture
def reserved(opened):  # noqa: F811
    """The same under the plan that bills what is reserved: 469 hours at 1.34 and 0.25."""
    PlanChoice.objects.unscoped("a test").all().delete()
    for day, most, throttled in (("2026-05-02", 30 * MIB, 4), ("2026-05-03", 10 * MIB, 0), ("2026-04-30", 90 * MIB, 9)):
        QuotaDay(
            instance=opened.pk, day=day, resource="produce", limit_in_force=20 * MIB, p50=1, p95=most // 2, p99=most,
            most=most, minutes=1440, throttled_minutes=throttled, throttled_ms=0, guarantee="kept",
        ).save(force_insert=True)  # fmt: skip
    return opened


def asked(person, instance, query: str = "") -> dict:
    answer = person.api.get(f"/api/v1/instances/{instance.id}/what-if{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_another_size(alice, reserved):
    body = asked(alice, reserved, "?bandwidth_mib_per_s=40&storage_gib=150.5&partitions=900")
    assert body["was"] == {"currency": "CNY", "total": money(469 * Decimal("1.59")), "plans": ["pro"]}
    per_hour = Decimal("3.04") + 2 * Decimal("0.25") + Decimal("0.31")
    assert body["would"] == {"currency": "CNY", "total": money(469 * per_hour), "plans": ["pro"]}
    assert body["difference"] == money(469 * (per_hour - Decimal("1.59")))
    assert body["size"] == {"bandwidth_mib_per_s": 40, "storage_gib": 150.5, "partitions": 900}
    assert (body["month"], body["so_far"]) == ("2026-05", True)


def test_elastic_use_of_another_bandwidth_is_said_not_to_be_estimated(alice, reserved):
    ElasticMinute.objects.create(
        instance=reserved.pk, direction="produce", epoch=1, minute="2026-05-15T09:00:00Z", bytes=50 * 10**9
    )
    assert asked(alice, reserved, "?storage_gib=150")["elastic_not_estimated"] is False
    body = asked(alice, reserved, "?bandwidth_mib_per_s=40")
    assert body["elastic_not_estimated"] is True
    assert asked(alice, reserved, "?bandwidth_mib_per_s=40&plan=traffic")["elastic_not_estimated"] is False
    client = Client()
    client.force_login(alice.user)
    path = f"/{alice.organisation.id}/instances/{reserved.id}/bill/what-if"
    note = "Elastic use is not estimated"
    assert note in text_of(client.get(f"{path}?ask=1&month=2026-05&bandwidth_mib_per_s=40&plan="))
    assert note not in text_of(client.get(f"{path}?ask=1&month=2026-05&bandwidth_mib_per_s=&plan="))


def test_days_of_the_month_beside_it(alice, reserved):
    produce, consume, storage = asked(alice, reserved, "?bandwidth_mib_per_s=12")["days"]
    assert produce == {
        "resource": "produce", "limit": 12 * MIB, "reported": 2, "over": 1, "mostly_over": 1, "throttled": 1,
        "most": 30 * MIB,
    }  # fmt: skip
    assert (consume["reported"], consume["over"], consume["most"]) == (0, 0, None)
    assert storage["limit"] == 100 * 2**30  # as it was


def test_nothing_else_asked_it_is_what_it_was(alice, reserved):
    body = asked(alice, reserved)
    assert (body["difference"], body["would"]["total"]) == ("0.00", body["was"]["total"])
    assert body["size"] == {"bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 100}


def test_another_plan(alice, reserved):
    body = asked(alice, reserved, "?plan=traffic")
    bill = alice.api.get(f"/api/v1/instances/{reserved.id}/bill?plan=traffic").json()
    assert body["would"] == {"currency": "CNY", "total": bill["total"], "plans": ["traffic"]}


def test_an_invoiced_month_is_asked_of_what_was_invoiced(alice, reserved, monkeypatch):
    usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
    closing.invoice_close(instance=reserved, month=MAY, now=datetime(2026, 6, 1, 7, tzinfo=UTC))
    raised([row(reserved.id, "2026-05-31T23", 9_000 * GB)])  # it came late: no matter of this invoice
    at(monkeypatch, datetime(2026, 6, 2, tzinfo=UTC))
    body = asked(alice, reserved, "?month=2026-05&plan=traffic")
    assert (body["so_far"], body["was"]["total"]) == (False, money(744 * Decimal("1.59")))
    assert body["would"]["total"] == "100.80"


def test_a_month_in_which_it_was_not_there(alice, reserved):
    body = asked(alice, reserved, "?month=2024-01&bandwidth_mib_per_s=40")
    assert (body["size"], body["would"]["total"], body["days"][0]["limit"]) == (None, "0.00", None)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("bandwidth_mib_per_s=0", "bandwidth_mib_per_s"), ("bandwidth_mib_per_s=-1", "bandwidth_mib_per_s"),
        ("bandwidth_mib_per_s=nan", "bandwidth_mib_per_s"), ("bandwidth_mib_per_s=1e999", "bandwidth_mib_per_s"),
        ("storage_gib=", "storage_gib"), ("storage_gib=1_0", "storage_gib"), ("partitions=1.5", "partitions"),
        ("partitions=99999999", "partitions"), ("plan=free", "plan"), ("month=may", "month"),
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused_by_name(alice, reserved, query, field):
    body = problem(alice.api.get(f"/api/v1/instances/{reserved.id}/what-if?{query}"), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == [field]


def test_all_that_is_wrong_is_said_at_once(alice, reserved):
    query = "month=may&bandwidth_mib_per_s=abc&storage_gib=x&partitions=1.5"
    body = problem(alice.api.get(f"/api/v1/instances/{reserved.id}/what-if?{query}"), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == ["month", "bandwidth_mib_per_s", "storage_gib", "partitions"]


def test_to_a_stranger_it_does_not_exist(charlie, reserved):
    problem(charlie.api.get(f"/api/v1/instances/{reserved.id}/what-if"), 404, "not_found")


class TestThePage:
    """Behind a bill."""

    @pytest.fixture
    def get(self, alice, reserved):
        client = Client()
        client.force_login(alice.user)
        return lambda query: client.get(f"/{alice.organisation.id}/instances/{reserved.id}/bill/what-if{query}")

    def test_it_asks_first(self, get):
        page = text_of(get(""))
        assert "Another size or plan" in page
        assert "It would have been" not in page

    def test_it_answers_with_money_and_days(self, get):
        page = text_of(get("?ask=1&month=2026-05&bandwidth_mib_per_s=12&storage_gib=&partitions=&plan="))
        assert f"As it was CNY {money(469 * Decimal('1.59'))}" in page
        assert "Producing 12 MiB/s 30 MiB/s 1 1 1 2" in page

    def test_what_is_wrong_stands_beside_its_field(self, get):
        page = get("?ask=1&bandwidth_mib_per_s=-5&plan=")
        assert page.status_code == 422
        assert "more than 0" in problem_beside(page, "bandwidth_mib_per_s")
        assert get("?ask=1&plan=free").status_code == 422


def money(amount: Decimal) -> str:
    return f"{amount:.2f}"
