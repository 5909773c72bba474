"""The quota report by REST and in the console. tests/pipeline/test_quota_report.py is about how it is made."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
from controlplane.console.templatetags.console import amount
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.models import Instance
from controlplane.quotas import report
from controlplane.quotas.models import QuotaDay
from controlplane.quotas.report import Outlook


@pytest.fixture
def day(db):
    """A row of the report."""

    def make(instance: str, day: str = "2026-11-21", resource: str = "produce", **members) -> QuotaDay:
        what = {
            "limit_in_force": 1000, "p50": 500, "p95": 900, "p99": 950, "most": 999, "used_permille": 903,
            "minutes": 1440, "throttled_minutes": 3, "throttled_ms": 70_000, "under_limit_ms": 5, "guarantee": "kept",
            "exhausted_on": "2026-12-01",
        }  # fmt: skip
        return QuotaDay.objects.create(instance=instance, day=day, resource=resource, **what | members)

    return make


@pytest.fixture
def operator(db):
    user, _ = accounts.admin_ensure(email="admin@example.com", password="x")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_operator(charlie):
    """REST of an operator of the service, who is in another organisation."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie.api


def items(person, address: str) -> list[dict]:
    answer = person.api.get(f"/api/v1/{address}")
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def test_a_day_says_how_much_was_used_of_what_and_what_is_left(alice, instance, day):
    day(instance.id)
    day("ins-00000000")
    assert items(alice, f"instances/{instance.id}/quota-report?from=2026-11-01") == [
        {
            "instance": instance.id, "day": "2026-11-21", "resource": "produce", "limit": 1000, "p50": 500, "p95": 900,
            "p99": 950, "most": 999, "used_percent": 90.3, "headroom": 100, "minutes": 1440, "throttled_minutes": 3,
            "throttled_ms": 70_000, "throttled_under_limit_ms": 5, "guarantee": "kept", "exhausted_on": "2026-12-01",
        }
    ]  # fmt: skip


def test_without_a_limit_nothing_is_left_or_guaranteed_and_above_it_nothing_is_left(alice, instance, day):
    day(instance.id, limit_in_force=None, used_permille=None, guarantee="", exhausted_on=None)
    day(instance.id, resource="storage", p95=1001)
    free, full = items(alice, f"instances/{instance.id}/quota-report?from=2026-11-01")
    absent = ("limit", "used_percent", "headroom", "guarantee", "exhausted_on")
    assert [free[name] for name in absent] == [None] * 5
    assert full["headroom"] == 0


def test_pages_go_back_in_time_and_leave_nothing_out(alice, instance, day):
    for date in ("2026-11-19", "2026-11-20", "2026-11-21"):
        for resource in ("storage", "consume", "produce"):
            day(instance.id, date, resource)
    address = f"/api/v1/instances/{instance.id}/quota-report?from=2026-11-20&to=2026-11-22&limit=1"
    found, cursor = [], ""
    while cursor is not None:
        page = alice.api.get(f"{address}{cursor and f'&cursor={cursor}'}").json()
        found += [(each["day"][-2:], each["resource"]) for each in page["items"]]
        cursor = page["next"]
    assert found == [(day, resource) for day in ("21", "20") for resource in ("consume", "produce", "storage")]


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("from=2026-11-20T23:59&to=2026-11-21", ["20"]),
        ("from=2026-11-20&to=2026-11-21T00:00:01", ["21", "20"]),
        ("from=2026-11-21&to=2026-11-21", []),
        ("from=2026-11-21&to=9999-12-31T23:59", ["21"]),
    ],
)
def test_a_range_has_the_days_that_begin_in_it(alice, instance, day, query, days):
    for date in ("2026-11-20", "2026-11-21"):
        day(instance.id, date)
    assert [row["day"][-2:] for row in items(alice, f"instances/{instance.id}/quota-report?{query}")] == days


def test_operators_read_everybodys_day_and_nobody_else_does(as_operator, alice, day):
    for name in ("ins-bbbbbbbb", "ins-aaaaaaaa"):
        day(name)
    day("ins-aaaaaaaa", "2026-11-20")
    page = as_operator.get("/api/v1/quota-report?limit=1").json()
    assert [row["instance"] for row in page["items"]] == ["ins-aaaaaaaa"]
    page = as_operator.get(f"/api/v1/quota-report?limit=1&cursor={page['next']}").json()
    assert ([row["instance"] for row in page["items"]], page["next"]) == (["ins-bbbbbbbb"], None)
    assert len(as_operator.get("/api/v1/quota-report?day=2026-11-20").json()["items"]) == 1
    assert as_operator.get("/api/v1/quota-report?day=yesterday").status_code == 400
    assert alice.api.get("/api/v1/quota-report").status_code == 403


def test_before_the_first_report_operators_read_none(as_operator):
    assert as_operator.get("/api/v1/quota-report").json() == {"items": [], "next": None}


def test_the_page_shows_each_resource_and_warns_of_a_limit_that_will_be_reached(alice, instance, day, client):
    today = SYSTEM_CLOCK.now().date().isoformat()
    day(instance.id, today, guarantee="missed", exhausted_on="2999-01-01")
    day(instance.id, today, "consume", exhausted_on=today)
    day(instance.id, today, "storage", exhausted_on=today, p95=1000)
    client.force_login(alice.user)
    page = client.get(f"/{alice.organisation.id}/instances/{instance.id}/quota-report").content.decode()
    assert "the limit is reached on 2999-01-01" in page
    assert "By the trend of the last four weeks it is at the limit." in page
    assert "The limit is reached." in page
    assert "Missed" in page
    assert f'1 min 10 s<span class="sub">in 3 of {amount(1440)} minutes</span>' in page
    assert page.index('id="produce-title"') < page.index('id="storage-title"')


@pytest.mark.parametrize(
    ("exhausted_on", "p95", "read_on", "outlook"),
    [
        (None, 1000, "2026-11-22", Outlook.NONE),
        ("2026-11-30", 900, "2026-11-22", Outlook.AHEAD),
        ("2026-11-30", 900, "2026-11-30", Outlook.AHEAD),
        ("2026-11-30", 900, "2026-12-01", Outlook.NONE),  # it has passed, and newer days have no report
        ("2026-11-21", 1000, "2026-11-22", Outlook.REACHED),
        ("2026-11-21", 999, "2026-11-22", Outlook.TREND),
        ("2026-11-21", 1000, "2026-11-23", Outlook.REACHED),  # the report of the 22nd is being made
        ("2026-11-21", 1000, "2026-11-24", Outlook.NONE),
    ],
)
def test_a_forecast_is_told_as_long_as_it_is_one(day, exhausted_on, p95, read_on, outlook):
    row = report.row_of(day("ins-aaaaaaaa", exhausted_on=exhausted_on, p95=p95))
    assert row.outlook(dt.date.fromisoformat(read_on)) is outlook


def test_of_an_instance_that_is_gone_nothing_is_foretold(operator, alice, instance, day, client):
    today = SYSTEM_CLOCK.now().date().isoformat()
    day(instance.id, today, exhausted_on="2999-01-01")
    client.force_login(alice.user)
    pages = (
        (operator, "/fleet/quota-report"),
        (client, f"/{alice.organisation.id}/instances/{instance.id}/quota-report"),
    )
    for who, address in pages:
        assert "2999-01-01" in who.get(address).content.decode()
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state="deleted")
    for who, address in pages:
        assert "2999-01-01" not in who.get(address).content.decode()


def test_operators_search_by_name_and_stay_on_their_day(operator, instance, day):
    day(instance.id)
    day("ins-aaaaaaaa")
    page = operator.get(f"/fleet/quota-report?day=2026-11-21&show=all&q={instance.name.upper()}").content.decode()
    assert instance.id in page
    assert "ins-aaaaaaaa" not in page
    assert '<input type="hidden" name="day" value="2026-11-21">' in page
    rows = operator.get("/fleet/quota-report?q=nothing", headers={"HX-Request": "true"}).content.decode()
    assert "Nothing matches “nothing”" in rows
    assert "<html" not in rows


def test_the_operators_page_shows_a_day_with_the_fullest_first_and_picks(operator, alice, instance, day):
    day(instance.id, used_permille=10, exhausted_on="2026-12-22")
    day("ins-aaaaaaaa", used_permille=999, guarantee="missed", exhausted_on=None)
    day("ins-bbbbbbbb", used_permille=None, guarantee="")
    day("ins-cccccccc", "2026-11-20")

    def shown(query: str = "") -> list[str]:
        page = operator.get(f"/fleet/quota-report{query}").content.decode()
        names = ("ins-aaaaaaaa", "ins-bbbbbbbb", "ins-cccccccc", instance.id)
        return sorted((name for name in names if name in page), key=page.index)

    assert shown() == ["ins-aaaaaaaa", instance.id, "ins-bbbbbbbb"]
    assert shown("?show=missed") == ["ins-aaaaaaaa"]
    assert shown("?show=soon") == ["ins-bbbbbbbb"]
    assert shown("?day=2026-11-20") == ["ins-cccccccc"]
    assert shown("?q=aaaa") == ["ins-aaaaaaaa"]
    for query in ("?day=tomorrow", "?day=9999-12-31&show=soon", "?day=0001-01-01", "?show=nothing"):
        assert operator.get(f"/fleet/quota-report{query}").status_code == 404
